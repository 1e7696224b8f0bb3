"""Attacks on files that are written: what is destroyed, lost, left behind or readable by others."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _attacks.outside import Ended, Found, Place, command, is_model, spent


def out_is_input(folder: Path) -> Iterator[Found]:
    """Give the ledger, the data or the schema as ``--out``, under its own or another name."""
    for which in ("ledger", "data", "schema"):
        for way in ("its name", "a hard link", "a symbolic link"):
            place = Place.make(folder / which / way.split()[-2])
            target = getattr(place, which)
            before = target.read_bytes()
            out = target
            if way != "its name":
                out = target.parent / f"model-{target.name}"
                out.unlink(missing_ok=True)
                if way == "a hard link":
                    out.hardlink_to(target)
                else:
                    out.symlink_to(target)
            ended = place.fit(out)
            after = target.read_bytes() if target.exists() else b""
            destroyed = after != before and not (which == "ledger" and spent(target) is not None)
            charged = spent(place.ledger)
            cost = "the ledger is gone" if charged is None else f"{charged:g} spent"
            yield Found(
                f"`--out` is the {which}, by {way}",
                "exit code; is the file destroyed; what was spent",
                f"{ended}; {'DESTROYED' if destroyed else 'as it was'}; {cost}",
                destroyed or charged != 0 or ended.code != 2,
            )


def out_is_special(folder: Path) -> Iterator[Found]:
    """Give a FIFO, a socket or a device as ``--out``."""
    import socket

    for kind in ("FIFO", "socket", "device"):
        place = Place.make(folder / kind)
        out = folder / kind / "out"
        out.unlink(missing_ok=True)
        if kind == "FIFO":
            os.mkfifo(out)
        elif kind == "socket":
            with tempfile.TemporaryDirectory() as short:  # names of sockets are short
                socket.socket(socket.AF_UNIX).bind(f"{short}/s")
                shutil.move(f"{short}/s", out)
        else:
            try:
                os.mknod(out, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                yield Found(f"`--out` is a {kind}", "", "not run: needs root", False)
                continue
        before = stat.S_IFMT(out.lstat().st_mode)
        ended = place.fit(out, seconds=20)
        replaced = not out.exists() or stat.S_IFMT(out.lstat().st_mode) != before
        charged = spent(place.ledger)
        yield Found(
            f"`--out` is a {kind}",
            "exit code; is it replaced; what was spent",
            f"{ended}; {'REPLACED' if replaced else 'as it was'}; {charged:g} spent",
            replaced or charged != 0 or ended.code != 2,
        )


def long_name(folder: Path) -> Iterator[Found]:
    for length in (240, 250, 255, 256):
        place = Place.make(folder / str(length))
        out = place.folder / ("m" * (length - 5) + ".json")
        ended = place.fit(out)
        yield _kept(f"`--out` has a name of {length} characters", place, ended, out)


def full_disk(folder: Path) -> Iterator[Found]:
    """Write the model, and open a ledger, on a disk without space (a small tmpfs)."""
    done = subprocess.run(
        ["unshare", "-Urm", sys.executable, "-c",
         "import sys; from _attacks.files import on_full_disk; on_full_disk(sys.argv[1])", folder],
        capture_output=True, check=False, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        yield Found("full disk", "", f"not run: no disk of our own ({last})", False)
        return
    for line in done.stdout.splitlines():
        yield Found(**json.loads(line))


def on_full_disk(given: str) -> None:
    """Measure in a namespace of mounts; print one JSON line per outcome."""
    from _attacks.outside import warm

    warm()
    folder = Path(given)
    disk = folder / "disk"
    disk.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
    place = Place.make(folder / "table")
    filler = disk / "filler"
    _fill(filler)
    out = disk / "model.json"
    ended = place.fit(out)
    _print(_kept("`--out` on a full disk", place, ended, out))
    filler.unlink()
    for path in disk.iterdir():
        path.unlink()
    _fill(filler)
    books = disk / "new.ledger"
    create = ("ledger", books, "--create", "--epsilon", "1", "--schema", place.schema)
    ended = command(*create)
    left = books.exists()
    filler.unlink()
    again = command(*create)
    _print(
        Found(
            "creating a ledger on a full disk",
            "exit code; what is left; creating it again with space",
            f"{ended}; {'a file that is no ledger' if left else 'nothing left'}; {again}",
            ended.code != 2 or left or again.code != 0,
        )
    )
    books.unlink(missing_ok=True)
    _fill(filler)
    data = disk / "predictions.csv"
    ended = command("schema", "draft", place.data, "--out", disk / "schema.toml")
    half = (disk / "schema.toml").exists()
    _print(
        Found(
            "a drafted schema on a full disk",
            "exit code; is a half-written file left",
            f"{ended}; {'yes' if half else 'no'}",
            ended.code != 2 or half,
        )
    )
    place.model()
    ended = command("predict", place.folder / "model.json", place.data, "--out", data)
    half = data.exists()
    _print(
        Found(
            "predictions on a full disk",
            "exit code; is a half-written file left",
            f"{ended}; {'yes' if half else 'no'}",
            ended.code != 2 or half,
        )
    )


def umask(folder: Path) -> Iterator[Found]:
    """Write every kind of file under umask 077."""
    place = Place.make(folder)
    place.model()

    def tight() -> None:
        os.umask(0o077)

    written = {
        "model": (place.folder / "m.json", place.fit),
        "schema draft": (folder / "s.toml", lambda out, **options: command(
            "schema", "draft", place.data, "--out", out, **options)),
        "picture": (folder / "m.svg", lambda out, **options: command(
            "show", folder / "model.json", "--format", "svg", "--out", out, **options)),
        "predictions": (folder / "p.csv", lambda out, **options: command(
            "predict", folder / "model.json", place.data, "--out", out, **options)),
        "ledger": (folder / "l.ledger", lambda out, **options: command(
            "ledger", out, "--create", "--epsilon", "1", "--schema", place.schema, **options)),
    }  # fmt: skip
    modes = {}
    for name, (out, write) in written.items():
        out.unlink(missing_ok=True)
        ended: Any = write(out, before=tight)
        modes[name] = f"{stat.S_IMODE(out.stat().st_mode):04o}" if out.exists() else str(ended)
    loose = [name for name, mode in modes.items() if not mode.endswith("00")]
    yield Found(
        "umask 077",
        "modes of the files that are written",
        ", ".join(f"{name} {mode}" for name, mode in modes.items()),
        bool(loose),
    )


ATTACKS = [out_is_input, out_is_special, long_name, full_disk, umask]


# How it is done


def _kept(attack: str, place: Place, ended: Ended, out: Path) -> Found:
    """Tell whether budget was spent for a model that is nowhere."""
    charged = spent(place.ledger)
    found = [path for path in _named(ended, out) if is_model(path)]
    if charged is None:
        where = "the ledger is DAMAGED"
    elif charged == 0:
        where = "nothing spent"
    elif out in found:
        where = f"{charged:g} spent, the model is at --out"
    elif found:
        where = f"{charged:g} spent, the model is where the command says"
    elif b'"privet-model"' in ended.out:
        where = f"{charged:g} spent, the model is on standard output"
    else:
        where = f"{charged:g} spent, the model is NOWHERE"
    # Another exit code than 0 and 2 may say that the model is elsewhere; 1 is an unexpected error.
    failed = ended.code in (None, 1) or b"Traceback" in ended.err
    return Found(
        attack,
        "exit code; budget; where the model is",
        f"{ended}; {where}",
        failed or "NOWHERE" in where or "DAMAGED" in where,
    )


def _named(ended: Ended, out: Path) -> list[Path]:
    """Return the files that could hold the model: the target, and what the command names."""
    words = ended.text.replace("\n", " ").split()
    named = [Path(word.strip("'\".,;:()")) for word in words if "/" in word]
    found = []
    for path in [out, *named]:
        try:
            if path.is_file():
                found.append(path)
        except OSError:
            continue
    return found


def _fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        for block in (b"\0" * 4096, b"\0"):
            try:
                while file.write(block):
                    pass
            except OSError:
                continue


def _print(found: Found) -> None:
    print(json.dumps(found.__dict__), flush=True)
