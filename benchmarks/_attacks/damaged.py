"""Attacks by damaged and hostile ledgers, schemas and models: crashes, hangs, floods of memory.

Ledgers are those that the attacked version itself made, changed by SQL: every column of every table
in turn, found by asking SQLite. The amounts of version 1 are attacked by name as well.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _attacks.outside import Ended, Found, Place, columns_of, command, set_column, write_json

#: A hang or a flood: what no honest file of this size needs.
SLOW, LARGE = 10.0, 1000.0

#: What is written into a ledger, with what SQL calls it.
VALUES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "bad JSON": ("?", ("{",)),
    "JSON of another shape": ("?", ('{"a": [1, null]}',)),
    "JSON of lists 100,000 deep": ("?", ("[" * 100_000,)),
    "undecodable text": ("CAST(x'ff41fe' AS TEXT)", ()),
    "bytes": ("x'ff00'", ()),
    "a huge number": ("1e300", ()),
    "infinity": ("9e999", ()),
    "'1e999999999'": ("?", ("1e999999999",)),
    "'-100'": ("?", ("-100",)),
    "'nan'": ("?", ("nan",)),
    "a fraction of 2 x 500,000 digits": ("?", ("7" * 500_000 + "/" + "3" * 500_000,)),
    "a text of 20 MB": ("?", ("x" * 20_000_000,)),
}


def ledgers(folder: Path) -> Iterator[Found]:
    """Put hostile values into every column of a ledger; show it, then draw from it."""
    place = Place.make(folder)
    assert place.fit(folder / "m.json", epsilon=0.5).code == 0
    path = folder / "hostile.ledger"
    columns = columns_of(place.ledger)
    for name, (value, given) in VALUES.items():
        for what in ("privet ledger", "privet fit"):
            ends = []
            for table, column, _ in columns:
                shutil.copy(place.ledger, path)
                try:
                    set_column(path, table, column, value, *given)
                except sqlite3.Error:
                    continue  # the table itself refuses it
                if what == "privet ledger":
                    ended = command("ledger", path, seconds=20, gigabytes=4)
                else:
                    ended = place.fit(folder / "m.json", ledger=path, epsilon=0.5, seconds=20)
                ends.append((f"{table}.{column}", ended))
            yield _judged(f"ledger: {name} in a column", f"`{what}`", ends)


def more_budget(folder: Path) -> Iterator[Found]:
    """Let a ledger claim that less than nothing was spent, or was reserved."""
    for column in ("spent", "reserved"):
        place = Place.make(folder / column, total=1.0)
        assert place.fit(folder / "m.json").code == 0
        for table, name, _ in columns_of(place.ledger):
            if name == column:
                set_column(place.ledger, table, name, "'-100'")
            elif name == "spent":
                set_column(place.ledger, table, name, "NULL")
        shown = command("ledger", place.ledger)
        left = re.search(r"left: \w+ ([-\d.e+]+)", shown.text)
        drawn = place.fit(folder / "n.json", epsilon=5.0)
        yield Found(
            f"ledger: {column}='-100' in a ledger of total 1",
            "`privet ledger`; what it says is left; a fit at epsilon 5 from it",
            f"{shown}; {left[1] if left else 'nothing said'}; {drawn}",
            shown.code != 2 or drawn.code != 2,
        )


def schemas(folder: Path) -> Iterator[Found]:
    """Open a ledger with hostile schema files."""
    honest = 'target = "y"\nclasses = ["no", "yes"]\n[features.b]\ntype = "categorical"\n'
    cases = {
        "a key of 20,000 parts": (".".join(["a"] * 20_000) + " = 1\n").encode(),
        "a table of 20,000 parts": ("[" + ".".join(["a"] * 20_000) + "]\n").encode(),
        "a string of 20 MB": f'{honest}values = ["u", "{"x" * 20_000_000}"]\n'.encode(),
        "20 MB of comments": ("# " + "x" * 20_000_000 + "\n" + honest).encode(),
        "2,000,000 categories": (
            honest + "values = [" + ",".join(f'"{i}"' for i in range(2_000_000)) + "]\n"
        ).encode(),
        "undecodable text": honest.encode() + b'values = ["\xff\xfe"]\n',
        "a NUL": honest.encode() + b'values = ["\x00"]\n',
        "lists 100,000 deep": (honest + "values = " + "[" * 100_000 + "\n").encode(),
        "a whole number of 10,000 digits": (honest + "values = [" + "7" * 10_000 + "]\n").encode(),
        "low = 10^400": b'target = "y"\nbounds = [0, 1]\n[features.a]\ntype = "numeric"\n'
        b"low = 1" + b"0" * 400 + b"\nhigh = 2\n",
        "100,000 features": (
            'target = "y"\nclasses = ["no", "yes"]\n'
            + "".join(
                f'[features.f{i}]\ntype = "numeric"\nlow = 0\nhigh = 1\n' for i in range(100_000)
            )
        ).encode(),
        "a date as a category": (honest + "values = [1979-05-27]\n").encode(),
        "an empty file": b"",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in cases.items():
        path, ledger = folder / "hostile.toml", folder / "l.ledger"
        path.write_bytes(text)
        ledger.unlink(missing_ok=True)
        ended = command(
            "ledger", ledger, "--create", "--epsilon", "1", "--schema", path, gigabytes=4
        )  # fmt: skip
        yield _judged(f"schema: {name}", "`privet ledger --create --schema`", [("", ended)])


def chains(folder: Path) -> Iterator[Found]:
    """Show a valid model that is a chain of 20,000 cuts, in every form."""
    place = Place.make(folder)
    plain = place.model()
    for depth in (10, 20_000):
        path = write_json(folder / f"chain{depth}.json", _chain(plain, depth))
        for form in ("text", "dot", "svg", "sql", "python", "json"):
            ended = command("show", path, "--format", form, gigabytes=4)
            well = ended.code in (0, 2) and ended.seconds < SLOW and ended.megabytes < LARGE
            yield Found(
                f"model: a valid chain of {depth:,} cuts",
                f"`privet show --format {form}`: exit, s, MB",
                _used(ended),
                not well or (depth == 10 and ended.code != 0),
                ended.seconds,
                "s",
            )
    ended = command("predict", path, place.data, "--out", folder / "p.csv", gigabytes=4)
    yield Found(
        "model: a valid chain of 20,000 cuts", "`privet predict`: exit, s, MB", _used(ended),
        not ended.graceful or ended.seconds >= SLOW, ended.seconds, "s",
    )  # fmt: skip


def sql(folder: Path) -> Iterator[Found]:
    """Give the SQL of deep chains to DuckDB."""
    import duckdb

    place = Place.make(folder)
    plain = place.model()
    for depth in (100, 500, 1000, 2000):
        path = write_json(folder / "chain.json", _chain(plain, depth))
        (folder / "q.sql").unlink(missing_ok=True)
        ended = command("show", path, "--format", "sql", "--out", folder / "q.sql")
        if ended.code == 0:
            query = (folder / "q.sql").read_text(encoding="utf-8")
            try:
                with duckdb.connect() as base:
                    base.execute("CREATE TABLE data (a DOUBLE, b VARCHAR)")
                    base.execute("INSERT INTO data VALUES (0.5, 'u'), (1.5, 'v')")
                    base.execute(_runnable(query))
                outcome, broken = "DuckDB runs it", False
            except duckdb.Error as error:
                outcome, broken = f"DuckDB refuses it ({type(error).__name__})", True
        else:
            outcome, broken = f"{ended}: {ended.said}", not ended.graceful
        yield Found(
            f"model: the SQL of a chain of {depth:,} cuts", "DuckDB", outcome, broken
        )  # fmt: skip


ATTACKS = [ledgers, more_budget, schemas, chains, sql]


# How it is done


def _judged(attack: str, what: str, ends: list[tuple[str, Ended]]) -> Found:
    failed = [spot for spot, ended in ends if not ended.graceful]
    slowest = max(ends, key=lambda end: end[1].seconds)[1]
    largest = max(ended.megabytes for _, ended in ends)
    broken = bool(failed) or slowest.seconds > SLOW or largest > LARGE
    if len(ends) == 1:
        outcome = _used(slowest)
    else:
        names = sorted({str(ended) for spot, ended in ends if spot in failed})
        shown = (
            f" ({', '.join(failed[:3])}{', ...' if len(failed) > 3 else ''}: {'; '.join(names)})"
        )
        outcome = (
            f"{len(failed)} of {len(ends)} columns fail{shown if failed else ''}; at most "
            f"{slowest.seconds:.1f} s, {largest:.0f} MB"
        )
    return Found(attack, f"{what}: exit, s, MB", outcome, broken, slowest.seconds, "s")


def _used(ended: Ended) -> str:
    return f"{ended}, {ended.seconds:.1f} s, {ended.megabytes:.0f} MB"


def _chain(plain: dict[str, Any], depth: int) -> dict[str, Any]:
    """Return a model whose tree asks one number again and again."""
    nodes: list[dict[str, Any]] = []
    for level in range(depth):
        edge = 2 * (1 - (level + 1) / (depth + 1))
        nodes.append(
            {
                "cut": {"feature": "a", "edges": [edge], "missing": 1},
                "children": [2 * level + 2, 2 * level + 1],
            }
        )
        nodes.append({"value": [1.0, 0.0] if level % 2 else [0.0, 1.0]})
    nodes.append({"value": [0.5, 0.5]})
    return {**plain, "tree": {**plain["tree"], "nodes": nodes}}


def _runnable(query: str) -> str:
    """Return SQL that runs as it is: what is exported may be an expression."""
    text = query.strip().rstrip(";")
    if re.match(r"(?is)(--[^\n]*\n|\s)*(select|with)\b", text):
        return re.sub(r"(?i)\bfrom\s+\S+\s*$", "FROM data", text)
    return f"SELECT {text} FROM data"
