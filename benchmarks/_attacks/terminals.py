"""Attacks on terminals: text from files that acts as markup, moves the cursor or plays the verdict.

Every text of a file in turn becomes a hostile one, and the real command shows the file on a real
(pseudo) terminal. The model says of itself that it is not private.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from _attacks.outside import (
    VERDICT,
    Ended,
    Found,
    Place,
    columns_of,
    command,
    set_column,
    texts_of,
    with_text,
    write_json,
)

_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_WILD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def payloads(place: Place) -> dict[str, str]:
    """Return hostile texts; some say what this very version says of a private model."""
    verdict = honest_verdict(place)
    return {
        "markup that closes nothing": "[/x]",
        "escape characters": "\x1b[2J\x1b[H\x1b]0;title\x07",
        "a verdict in markup": f"x\n[green]{verdict}[/]",
        "a verdict in escape characters": f"x\r\n\x1b[32m{verdict}\x1b[0m",
        "C1 control characters": "\x9b2J\x85",
        "direction characters": "\u202egnihtyna\u2066",
    }


def honest_verdict(place: Place) -> str:
    """Return the line by which the command says that a model is private."""
    place.model("honest.json")
    shown = command("show", place.folder / "honest.json", tty=True)
    lines = [_COLOUR.sub(b"", line).decode().strip() for line in shown.out.splitlines()]
    found = [line for line in lines if VERDICT in line.lower() and "not" not in line.lower()]
    assert len(found) == 1, shown.text
    return found[0].replace("/", "")  # it becomes a file's name, too


def card(folder: Path) -> Iterator[Found]:
    """Show a model whose texts are hostile, and certify it."""
    place = Place.make(folder)
    plain = place.model()
    plain["privacy"]["private"] = False
    plain["privacy"]["warnings"] = ["a fixed seed"]
    spots = [spot for spot in texts_of(plain) if spot[0] not in ("format", "version")]
    path = folder / "hostile.json"
    for name, payload in payloads(place).items():
        ends = []
        for spot in spots:
            write_json(path, with_text(plain, spot, payload))
            ends.append((".".join(map(str, spot)), command("show", path, tty=True)))
            if spot[:2] == ("privacy", "warnings"):
                ends.append(("certify", command("certify", path, "--rows", "100", tty=True)))
        yield _judged(f"model: {name} in a text of the file", ends)


def ledger_texts(folder: Path) -> Iterator[Found]:
    """Show a ledger whose texts are hostile."""
    place = Place.make(folder)
    assert place.fit(folder / "m.json").code == 0
    path = folder / "hostile.ledger"
    for name, payload in payloads(place).items():
        ends = []
        for table, column, kind in columns_of(place.ledger):
            if "TEXT" not in kind:
                continue
            shutil.copy(place.ledger, path)
            set_column(path, table, column, "?", payload)
            ends.append((f"{table}.{column}", command("ledger", path, tty=True)))
        yield _judged(f"ledger: {name} in a text of the file", ends)


def file_names(folder: Path) -> Iterator[Found]:
    """Name files in a hostile way."""
    place = Place.make(folder)
    place.model()
    for name, payload in payloads(place).items():
        real = folder / f"name {payload}"  # a stroke in it makes one folder more
        real.mkdir(parents=True, exist_ok=True)
        missing = real / "missing"
        runs: dict[str, Callable[[], Ended]] = {
            "fit --out": lambda real=real: place.fit(real / "m.json", books=False, tty=True),
            "ledger --create": lambda real=real: command(
                "ledger", real / "l.ledger", "--create", "--epsilon", "1", "--schema",
                place.schema, tty=True),
            "show": lambda missing=missing: command("show", missing, tty=True),
            "ledger": lambda missing=missing: command("ledger", missing, tty=True),
            "fit": lambda missing=missing: command(
                "fit", missing, "--schema", place.schema, tty=True),
            "fit --schema": lambda missing=missing: command(
                "fit", place.data, "--schema", missing, tty=True),
        }  # fmt: skip
        yield _judged(f"file name: {name}", [(key, run()) for key, run in runs.items()])


def schema_texts(folder: Path) -> Iterator[Found]:
    """Fit with, and complain about, a schema whose texts are hostile."""
    import tomli_w

    place = Place.make(folder)
    for name, payload in payloads(place).items():
        ends = []
        shapes = {
            "table": {"table": payload},
            "classes": {"classes": ["no", "yes", payload]},
            "target": {"target": payload},
            "unknown key": {payload: 1},
            "feature": {"features": {payload: {"type": "categorical", "values": ["u", "v"]}}},
            "values": {"features": {"b": {"type": "categorical", "values": ["u", payload]}}},
            "type": {"features": {payload: {"type": payload}}},
        }
        for spot, change in shapes.items():
            plain = {
                "target": "y",
                "classes": ["no", "yes"],
                "features": {"b": {"type": "categorical", "values": ["u", "v"]}},
                **change,
            }
            path = folder / "hostile.toml"
            path.write_text(tomli_w.dumps(plain), encoding="utf-8")
            ends.append(
                (spot, command("fit", place.data, "--schema", path, "--learner", "sulq",
                               "--max-depth", "1", "--out", folder / "m.json", tty=True))
            )  # fmt: skip
        yield _judged(f"schema: {name} in a text of the file", ends)


ATTACKS = [card, ledger_texts, file_names, schema_texts]


# How it is judged


def _judged(attack: str, ends: list[tuple[str, Ended]]) -> Found:
    failed = [spot for spot, ended in ends if not _ended_well(ended)]
    wild = [spot for spot, ended in ends if acts(ended.out)]
    fooled = [spot for spot, ended in ends if plays_verdict(ended.out)]
    parts = []
    for what, spots in (
        ("the command fails", failed),
        ("raw control characters", wild),
        ("a line of its own says that the model is private", fooled),
    ):
        if spots:
            shown = ", ".join(spots[:3]) + (", ..." if len(spots) > 3 else "")
            parts.append(f"{what}: {len(spots)} ({shown})")
    return Found(
        attack,
        "what the command shows",
        f"{len(ends)} runs: " + ("; ".join(parts) or "plain text"),
        bool(parts),
        len({*failed, *wild, *fooled}),
        "places",
    )


def _ended_well(ended: Ended) -> bool:
    said = ended.out
    return ended.code in (0, 2) and b"Traceback" not in said and b"Unexpected error" not in said


def acts(raw: bytes) -> bool:
    """Tell whether raw output has control or direction characters beyond colours and lines."""
    # The command's own: it hides and shows the cursor around its spinner.
    plain = re.sub(rb"\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r", b"", _COLOUR.sub(b"", raw))
    return _WILD.search(plain.decode("utf-8", "replace")) is not None


def plays_verdict(raw: bytes) -> bool:
    """Tell whether a line says that the model is private, which never is true here."""
    if b"fit as described" in raw and b"Wrote" in raw and b"NOT PRIVATE" not in raw:
        # An honest fit has its own verdict, once.
        return sum(_is_verdict(line) for line in raw.splitlines()) > 1
    return any(_is_verdict(line) for line in raw.splitlines())


def _is_verdict(line: bytes) -> bool:
    words = _COLOUR.sub(b"", line).decode("utf-8", "replace").strip(" \r\u2502\u2503")
    return VERDICT in words.lower() and words.lower().startswith(("private", "verdict"))
