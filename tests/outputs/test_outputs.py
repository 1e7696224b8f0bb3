"""Files that are written: refused early, complete or absent, and nobody else's to read."""

import os
import resource
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from privet.errors import OutputError
from privet.outputs import OutputFile, check_output, ledger_files
from privet.schema import Numeric, Schema

SCHEMA = Schema({"x": Numeric(0, 1)}, "y", classes=["no", "yes"])


def refusal(path, apart_from=None) -> str:
    before = sorted(Path(path).parent.iterdir()) if Path(path).parent.is_dir() else None
    with pytest.raises(OutputError) as caught:
        OutputFile(path, apart_from)
    if before is not None:
        assert sorted(Path(path).parent.iterdir()) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_is_there_until_all_is_there(tmp_path):
    path = tmp_path / "file"
    with OutputFile(path) as output:
        assert not path.exists()
        assert len(list(tmp_path.iterdir())) == 1  # the temporary file
        output.write("all of it")
    assert path.read_text() == "all of it"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyError), OutputFile(path):
        raise KeyError
    with suppress(KeyError), OutputFile(path) as output, output.writing() as file:
        file.write(b"half")
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["itself", "hard link", "symbolic link", "other spelling"])
def test_an_input_is_known_by_what_it_is(tmp_path, kind):
    ledger = tmp_path / "ledger"
    ledger.write_text("books")
    path = {"itself": ledger, "other spelling": tmp_path / "." / "x" / ".." / "ledger"}.get(
        kind, tmp_path / "other"
    )
    (tmp_path / "x").mkdir()
    if kind == "hard link":
        os.link(ledger, path)
    elif kind == "symbolic link":
        path.symlink_to(ledger)
    assert "it is the ledger" in refusal(path, {"the ledger": ledger})
    assert "it is the ledger" in refusal(path, {"the data": None, **ledger_files(ledger)})
    assert ledger.read_text() == "books"


def test_files_that_are_not_there_yet_are_compared_too(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "later")
    assert "it is the model" in refusal(tmp_path / "link", {"the model": tmp_path / "later"})
    for ending in ("-journal", "-wal", "-shm"):
        message = refusal(tmp_path / f"books{ending}", ledger_files(tmp_path / "books"))
        assert f"the ledger's {ending} file" in message
    OutputFile(tmp_path / "books-journals", ledger_files(tmp_path / "books")).close()


def test_only_plain_files_are_replaced(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "to pipe").symlink_to(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        server.bind("socket")
        for name in ("pipe", "to pipe", "folder", "socket"):
            assert "name a plain file" in refusal(tmp_path / name)
    assert "name a plain file" in refusal("/dev/null")
    assert "lead nowhere" in refusal(tmp_path / "loop")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_names_that_cannot_be(tmp_path):
    assert "too long" in refusal(tmp_path / ("x" * 256))
    assert "too long" in refusal(tmp_path / ("é" * 128))
    assert "folder does not exist" in refusal(tmp_path / "absent" / "x")
    (tmp_path / "file").write_text("")
    assert "folder does not exist" in refusal(tmp_path / "file" / "x")
    assert "not one that files can have" in refusal(tmp_path / "a\0b")


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "m", "." * 3 + "x" * 252, "\udcff"])
def test_names_at_the_limit(tmp_path, name):
    with OutputFile(tmp_path / name) as output:
        output.write("content")
    assert (tmp_path / name).read_text() == "content"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_missing_rights(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o400)
    assert "not writable" in refusal(tmp_path / "file")
    tmp_path.chmod(0o500)
    try:
        assert "not writable" in refusal(tmp_path / "new")
        with pytest.raises(OutputError, match="not writable"):
            check_output(tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


def test_a_sticky_folder_lets_only_owners_replace(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "not writable" in refusal(tmp_path / "file")


@pytest.mark.parametrize(
    ("umask", "before", "after"),
    [(0o022, None, 0o644), (0o077, None, 0o600), (0o000, None, 0o666), (0o022, 0o600, 0o600),
     (0o077, 0o644, 0o600), (0o022, 0o755, 0o644)],
)  # fmt: skip
def test_rights_are_those_of_the_umask_or_tighter(tmp_path, umask, before, after):
    path = tmp_path / "schema.toml"
    if before is not None:
        path.write_text("")
        path.chmod(before)
    old = os.umask(umask)
    try:
        SCHEMA.to_toml(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == after


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    SCHEMA.to_toml(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert Schema.from_toml(tmp_path / "folder" / "file") == SCHEMA
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "link"]


def test_a_write_that_fails_says_why_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="larger than files may be"), OutputFile(path) as file:
            file.write("x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_characters_that_no_file_holds(tmp_path):
    strange = Schema({"\ud800": Numeric(0, 1)}, "y", classes=["no", "yes"])
    with pytest.raises(OutputError, match="files cannot hold"):
        strange.to_toml(tmp_path / "schema.toml")
    assert not list(tmp_path.iterdir())


def test_checking_alone_writes_nothing(tmp_path):
    assert check_output(tmp_path / "file") == tmp_path / "file"
    assert not list(tmp_path.iterdir())


def test_names_of_devices_and_processes_are_no_files(tmp_path):
    """They may lead to a plain file that somebody else writes to."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", tmp_path / "link"):
        with pytest.raises(OutputError, match="a pipe or a device"):
            check_output(path)


def test_what_is_there_is_replaced_unless_told_otherwise(tmp_path):
    path = tmp_path / "out.json"
    with OutputFile(path, replace=False) as output:
        output.write("one")
    with pytest.raises(OutputError, match="there is such a file already"):
        OutputFile(path, replace=False)
    (tmp_path / "link.json").symlink_to(path)
    with pytest.raises(OutputError, match="there is such a file already"):
        check_output(tmp_path / "link.json", replace=False)
    with OutputFile(path) as output:
        output.write("two")
    assert path.read_text() == "two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "out.json"]
