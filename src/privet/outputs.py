"""Files that are written: opened before anything is spent, and complete or not there at all.

Whatever Privet writes, it writes through :class:`OutputFile`:

* The file must be a plain file, or not be there yet: pipes, devices, sockets and folders are
  refused. A symbolic link is followed; the file that it leads to is replaced and the link stays.
* It must not be one of the inputs, nor a file that a ledger needs. What counts is the file, not
  its name: links are looked through.
* Commands replace a file that is there only if they are told to (``replace``).
* A temporary file is opened beside it at once. So a missing folder, missing rights or a name that
  is too long are found before there is anything to lose. The content goes there, and replaces the
  old file in one step when it is complete. Whatever is killed leaves the old file, or no file, and
  at worst a hidden temporary one.
* A new file has the rights that the caller's umask allows. One that replaces another has the rights
  that both the umask and the old file allow.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from privet.errors import OutputError

_NO_FILE = "it is a folder, a pipe or a device; name a plain file"
#: What is said of half a surrogate pair.
UNWRITABLE = "a name or value holds a character that files cannot hold"
#: Characters that tell temporary files apart.
_MARK = 8

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "it would be larger than files may be",
    errno.EACCES: "the folder or the file is not writable",
    errno.EPERM: "the folder or the file is not writable",
    errno.EROFS: "the disk is read-only",
    errno.ENAMETOOLONG: "its name is too long",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "the folder does not exist",
    errno.ELOOP: "its symbolic links lead nowhere",
}


class OutputFile:
    """A file that is going to be written, opened now. Use it in a ``with`` statement.

    Parameters
    ----------
    path : path
        The file to write.
    apart_from : mapping of str to path or None, optional
        Files that it must not be, by what to call them: ``{"the ledger": path}``.
    replace : bool, default=True
        Whether a file that is there already may be replaced; else it is refused.

    Raises
    ------
    OutputError
        If the file cannot be written, with the reason.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.json"
    >>> with OutputFile(path) as output:
    ...     there_before = path.exists()
    ...     output.write("{}")
    >>> there_before, path.read_text()
    (False, '{}')
    """

    def __init__(
        self,
        path: str | Path,
        apart_from: Mapping[str, str | Path | None] | None = None,
        *,
        replace: bool = True,
    ) -> None:
        self.path = Path(path)
        self._target = check_output(self.path, apart_from, replace=replace)
        try:
            self._temporary, self._file = _opened_beside(self._target)
        except OSError as error:
            raise OutputError(f"cannot write {self.path}: {_reason(error)}") from error

    def write(self, content: str) -> None:
        """Write all of the file, in UTF-8."""
        try:
            encoded = content.encode("utf-8")
        except UnicodeEncodeError:
            raise OutputError(f"cannot write {self.path}: {UNWRITABLE}") from None
        with self.writing() as file:
            file.write(encoded)

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Yield the file to write to; at the end, put it in its place."""
        try:
            yield self._file
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self._target)
        except OSError as error:
            self.close()
            raise OutputError(f"cannot write {self.path}: {_reason(error)}") from error
        with suppress(OSError):  # the content is safe; its name may not survive a power cut
            folder = os.open(self._target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Give up what was not written completely."""
        with suppress(OSError):  # closing writes what is left, for which there may be no room
            self._file.close()
        with suppress(OSError):
            self._temporary.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_output(
    path: str | Path,
    apart_from: Mapping[str, str | Path | None] | None = None,
    *,
    replace: bool = True,
) -> Path:
    """Return where an output really lies, or raise an error if it must not be written.

    Parameters
    ----------
    path, apart_from, replace
        As :class:`OutputFile` takes them.
    """
    there: os.stat_result | None
    if _is_of_the_system(path):
        raise OutputError(f"cannot write {path}: {_NO_FILE}")
    try:
        target = Path(os.path.realpath(path))
        there = target.lstat()
    except FileNotFoundError:
        there = None
    except (OSError, ValueError) as error:
        raise OutputError(f"cannot write {path}: {_reason(error)}") from error
    for what, other in (apart_from or {}).items():
        if other is not None and _is_same(target, there, Path(os.path.realpath(other))):
            raise OutputError(
                f"cannot write {path}: it is {what}, which would be lost; take another name"
            )
    if there is None:
        if not target.parent.is_dir():
            raise OutputError(f"cannot write {path}: {_REASONS[errno.ENOENT]}")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise OutputError(f"cannot write {path}: {_REASONS[errno.EACCES]}")
        return target
    if stat.S_ISLNK(there.st_mode):
        raise OutputError(f"cannot write {path}: {_REASONS[errno.ELOOP]}")
    if not stat.S_ISREG(there.st_mode):
        raise OutputError(f"cannot write {path}: {_NO_FILE}")
    if not replace:
        raise OutputError(
            f"cannot write {path}: there is such a file already; take another name, or replace it "
            "with --force"
        )
    if not os.access(target, os.W_OK) or _is_kept_by_others(target.parent, there):
        raise OutputError(f"cannot write {path}: {_REASONS[errno.EACCES]}")
    return target


def ledger_files(ledger: str | Path | None) -> dict[str, Path]:
    """Return a ledger with the files that SQLite makes and deletes beside it, by their names."""
    if ledger is None:
        return {}
    path = Path(os.path.realpath(ledger))
    beside = ("-journal", "-wal", "-shm")
    return {
        "the ledger": path,
        **{f"the ledger's {ending} file": path.with_name(path.name + ending) for ending in beside},
    }


def _is_of_the_system(path: str | Path) -> bool:
    """Tell whether a path leads through names of devices and processes, such as /dev/stdout.

    What these lead to may be a plain file, into which somebody else is writing.
    """
    place = os.path.abspath(path)  # noqa: PTH100  # without following links
    for _ in range(40):
        if place.startswith(("/dev/", "/proc/")) and not place.startswith("/dev/shm/"):  # noqa: S108
            return True
        try:
            place = os.path.normpath(Path(place).parent / os.readlink(place))  # noqa: PTH115
        except (OSError, ValueError):  # no link
            return False
    return False


def _is_same(target: Path, there: os.stat_result | None, other: Path) -> bool:
    """Tell whether two paths lead to one file, or would if there were one."""
    if target == other:
        return True
    if there is None:
        return False
    try:
        return os.path.samestat(there, other.stat())
    except OSError:
        return False


def _is_kept_by_others(folder: Path, there: os.stat_result) -> bool:
    """Tell whether the folder lets only others replace the file: it is sticky, as /tmp is."""
    above = folder.stat()
    if not above.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return False
    return os.geteuid() not in (0, there.st_uid, above.st_uid)


def _opened_beside(target: Path) -> tuple[Path, BinaryIO]:
    """Open a new file beside the target, with a name that is no longer than its own."""
    kept = f".{target.name}"
    allowed = max(len(os.fsencode(target.name)), 2 * _MARK)
    while len(os.fsencode(kept)) > allowed - _MARK - 1:
        kept = kept[:-1]
    temporary = target.with_name(f"{kept}.{os.urandom(_MARK // 2).hex()}")
    file = temporary.open("xb")
    try:
        if target.exists():
            rights = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            os.chmod(temporary, rights & stat.S_IMODE(target.stat().st_mode))  # noqa: PTH101
    except OSError:
        file.close()
        temporary.unlink()
        raise
    return temporary, file


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError) or error.errno is None:
        return "its name is not one that files can have"
    return _REASONS.get(error.errno, os.strerror(error.errno).lower())
