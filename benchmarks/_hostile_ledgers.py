"""Ledger files that are damaged, or made by somebody who means harm, and what becomes of them.

:func:`mutants` makes such files from real ones, the same for the same seed;
:func:`verdict_on` uses one as Privet would. The tests use a few hundred of them, and
:func:`attack` as many as a benchmark asks for.
"""

from __future__ import annotations

import io
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from fractions import Fraction
from pathlib import Path

from privet.errors import BudgetExceeded, LedgerFileError
from privet.privacy import (
    Budget,
    Cost,
    DiscreteLaplace,
    Entry,
    Exponential,
    LedgerStore,
    Place,
    Question,
    QuestionKind,
)

COLUMNS = ["age", "ill"]

#: Fields of both tables, by what they hold.
FIELDS = {
    "amount": [
        ("opening", "epsilon"),
        ("opening", "rho"),
        ("draws", "reserved"),
        ("draws", "spent"),
        ("opening", "threshold_delta"),
        ("draws", "reserved_delta"),
        ("draws", "spent_delta"),
    ],
    "number": [("opening", "version"), ("opening", "delta"), ("draws", "id")],
    "time": [("opening", "opened"), ("draws", "reserved_at"), ("draws", "settled_at")],
    "text": [("opening", "table_name"), ("draws", "purpose"), ("draws", "asked")],
    "json": [("opening", "columns"), ("draws", "entries"), ("opening", "kinds")],
}
_ENTRY = (
    '{"question": %s, "place": %s, "cells": %s, "mechanism": {"kind": "exponential"}, '
    '"epsilon": "%s", "rho": "0"}'
)
_GOOD = ('{"kind": "label"}', '{"level": 0, "parts": 1}', "1", "1")


def _entry(place: int, value: str) -> str:
    parts = list(_GOOD)
    parts[place] = value
    return f"[{_ENTRY % tuple(parts)}]"


#: What is put there: of the wrong kind, out of range, or such that reading it takes for ever.
ANYTHING = [None, "", "x", -1, 0, 2**62, 1.5, -1e300, float("inf"), b"\xff\xfe", "\0", "\ud7ff"]
VALUES = {
    "amount": [
        "-100", "1e999999999", "1e-999999999", "1E5", "nan", "inf", "-inf", "1/0", "0/0", "/", "1/",
        "0x10", " 1", "1 ", "1_0", "+1", "1.5", "\uff11", "9" * 4_000, "9" * 5_000,
        "1/" + "9" * 4_000, "9" * 100_000, "0", "1/3",
    ],
    "number": ["2", 3, 10**9, -(2**63), 5e-324, 1.0, 0.999, float("-inf"), "9" * 5_000],
    "time": [1e300, -1.0, 253402300800.0, "yesterday", 7, 1e-320],
    "text": ["y" * 200_000, "\u202e", "[red]x[/]", "\x1b[2J", 7, 1.5, b"text"],
    "json": [
        "{", "[", "{}", "null", "1", "[1]", '["a", "a"]', "[null]", '"a"', "NaN", "[NaN]",
        "[Infinity]",
        "[" * 100_000, "[" + "9" * 5_000 + "]", '{"a": 1}', "[{}]", '["\\ud800"]', "\ufeff[]",
        _entry(0, '{"kind": "label", "text": "x"}'), _entry(0, '{"kind": "unknown"}'),
        _entry(0, "[]"),
        _entry(0, '{"kind": "whole-tree", "depth": -1}'), _entry(0, '{"kind": ["label"]}'),
        _entry(1, '{"level": 0, "parts": 0}'), _entry(1, '{"level": null, "parts": null}'),
        _entry(1, '{"level": 1e9, "parts": 1}'), _entry(2, "true"), _entry(2, "1e400"),
        _entry(2, "-1"),
        _entry(3, "-1"), _entry(3, "1e999999999"), _entry(3, "nan"),
    ],
}  # fmt: skip
#: What else a database can have, or lose.
STATEMENTS = [
    "CREATE TRIGGER t AFTER INSERT ON draws BEGIN DELETE FROM draws; END",
    "CREATE VIEW v AS SELECT * FROM draws",
    "CREATE TABLE more (x)",
    "CREATE INDEX i ON draws (purpose)",
    "DROP TABLE draws",
    "DROP TABLE opening",
    "DELETE FROM opening",
    "INSERT INTO opening SELECT * FROM opening",
    "ALTER TABLE draws ADD COLUMN more TEXT",
    "ALTER TABLE draws RENAME TO lines",
    "ALTER TABLE draws RENAME COLUMN spent TO paid",
    "PRAGMA application_id = 7",
    "UPDATE draws SET entries = NULL, spent = NULL",
    "UPDATE draws SET reserved = '0', spent = NULL, settled_at = NULL, entries = NULL",
    "UPDATE draws SET purpose = CAST(x'ff80' AS TEXT)",
    "UPDATE opening SET table_name = CAST(x'c0' AS TEXT)",
    "UPDATE draws SET entries = CAST(x'5bff5d' AS TEXT)",
    "UPDATE draws SET purpose = hex(zeroblob(10000000))",
    "UPDATE draws SET entries = '[' || hex(zeroblob(10000000)) || ']'",
    "UPDATE draws SET reserved = hex(zeroblob(10000000))",
    "UPDATE opening SET columns = zeroblob(20000000)",
]
#: The part that begins a tree of pages, and what its first byte says.
_INNER, _LEAF = 0x05, 0x0D


def make_ledgers(folder: Path) -> list[Path]:
    """Write real ledgers: of both accountants, with deltas, unsettled draws, and a long one."""
    count, best = DiscreteLaplace(1, Fraction(1, 9)), Exponential(1, Fraction(1, 9))
    entries = [
        Entry(Question(QuestionKind.ROW_COUNT), Place(), 1, count.facts, count.cost),
        Entry(Question(QuestionKind.SPLIT, "gini"), Place(1, 3), 3, best.facts, best.cost),
        Entry(Question(QuestionKind.QUANTILES, feature="age"), Place(), 1, best.facts, best.cost),
    ]
    paths = []
    for name, budget, draws in (
        ("pure", Budget(10), 4), ("zcdp", Budget(4, delta=1e-6), 4),
        ("deltas", Budget(10, threshold_delta=1e-5), 4), ("long", Budget(99), 30),
    ):  # fmt: skip
        paths.append(folder / f"{name}.ledger")
        kinds = {"age": "number", "ill": "category"} if budget.threshold_delta else None
        store = LedgerStore.create(
            paths[-1], budget, columns=COLUMNS, table="patients", kinds=kinds
        )
        asked = Budget(Fraction(1, 3), threshold_delta=1e-6 if kinds else 0)
        for number in range(draws):
            reservation = store.reserve(asked, f"fit {number}", columns=COLUMNS)
            if number % 3:
                reservation.settle(Cost.pure(Fraction(2, 9)), entries)
    return paths


def every_field() -> Iterator[tuple[str, str, tuple[object, ...]]]:
    """Yield edits of every field: what each is, a statement, and its values."""
    for kind, places in FIELDS.items():
        for table, column in places:
            for value in [*ANYTHING, *VALUES[kind]]:
                yield (
                    f"{table}.{column} = {value!r:.40}",
                    f"UPDATE {table} SET {column} = ?",
                    (value,),
                )
    for statement in STATEMENTS:
        yield statement, statement, ()


def edited(content: bytes, statement: str, values: tuple[object, ...]) -> bytes | None:
    """Return a ledger after a statement; None if the database itself refuses it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(content)
        try:
            connection.execute(statement, values)
        except (sqlite3.Error, OverflowError):
            return None
        return connection.serialize()


def bent(content: bytes, random_: random.Random) -> tuple[str, bytes]:
    """Return a ledger whose bytes were changed, and how."""
    data, page = bytearray(content), int.from_bytes(content[16:18])
    pages = len(data) // page

    def start() -> int:
        return page * random_.randrange(pages)

    how = random_.choice(
        [
            "bits",
            "bits",
            "head",
            "page heads",
            "pointers",
            "zeros",
            "pages",
            "cut",
            "longer",
            "text",
        ]
    )
    if how == "bits":
        for _ in range(random_.choice([1, 1, 2, 8, 64])):
            data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    elif how == "head":
        data[random_.randrange(100)] = random_.randrange(256)
    elif how == "page heads":
        at = start()
        at += 100 if at == 0 else 0
        data[at + random_.randrange(12)] = random_.choice([0, 1, 2, _INNER, 10, _LEAF, 127, 255])
    elif how == "pointers":  # all children of a page are the same page
        inner = [
            at for at in range(0, len(data), page) if data[at + (100 if not at else 0)] == _INNER
        ]
        at = random_.choice(inner) if inner else start()
        child = random_.randrange(1, pages + 1).to_bytes(4)
        for place in range(at + 12, at + 12 + 2 * int.from_bytes(data[at + 3 : at + 5]), 2):
            cell = at + int.from_bytes(data[place : place + 2])
            data[cell : cell + 4] = child
        data[at + 8 : at + 12] = child
    elif how == "zeros":
        at = random_.randrange(len(data))
        length = min(random_.choice([8, 100, 4096]), len(data) - at)
        data[at : at + length] = bytes(length)
    elif how == "pages":
        one, other = start(), start()
        data[one : one + page] = data[other : other + page]
    elif how == "cut":
        del data[random_.randrange(len(data)) :]
    elif how == "longer":
        data += random_.randbytes(random_.choice([1, page, 10 * page]))
    else:
        digits = [at for at, byte in enumerate(data) if byte in b"0123456789/"]
        for at in random_.sample(digits, min(3, len(digits))):
            data[at] = random_.choice(b"0123456789/e.-+ \xff\x00")
    return how, bytes(data)


def mutants(paths: list[Path], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield hostile ledgers: hostile values of all fields in random order, and in turn bent bytes.

    When all fields had all values, in all kinds of books, bytes are bent until there are enough.
    """
    random_, contents = random.Random(seed), [path.read_bytes() for path in paths]
    edits = [(content, *edit) for content in contents[:3] for edit in every_field()]
    random_.shuffle(edits)
    for number in range(count):
        found = None
        while edits and found is None and number % 2:
            content, how, statement, values = edits.pop()
            found = edited(content, statement, values)
        yield (how, found) if found is not None else bent(random_.choice(contents), random_)


def verdict_on(path: Path) -> str:
    """Use a file in every way: look, show, draw and settle. Return "refused" or "used".

    An error of any other kind than a ledger's passes through, and so does a ledger that shows less
    than nothing spent, or more than there is.
    """
    from privet.cli._show import say_withdrawals

    store = LedgerStore(path)
    try:
        draws, total = store.withdrawals, store.budget.limit
        assert 0 <= store.spent <= total
        assert store.left == total - store.spent
        books = store.books
        assert 0 <= books.spent_delta <= books.budget.threshold_delta
        assert all(0 <= draw.counted <= draw.reserved for draw in draws)
        assert all(isinstance(name, str) for name in store.columns)
        with redirect_stdout(io.StringIO()):
            say_withdrawals(draws, store.budget)
        before = store.spent
        reservation = store.reserve(Budget(Fraction(1, 1000)), "more", columns=COLUMNS)
        assert store.spent > before
        reservation.settle(Cost.pure(Fraction(1, 2000)), [])
        assert before < store.spent <= total
    except LedgerFileError as error:
        message = str(error)
        assert message
        assert "\n" not in message.replace(str(path), "")
        assert len(message) < 400 + len(str(path))
        return "refused"
    except BudgetExceeded:
        return "used"
    return "used"


def attack(folder: Path, count: int, seed: int) -> dict[str, float]:
    """Use some hostile ledgers; return how many were refused and used, and the longest time."""
    paths, found, longest = make_ledgers(folder), Counter[str](), 0.0
    target = folder / "hostile.ledger"
    for how, content in mutants(paths, count, seed):
        for left in (target, target.with_name(target.name + "-journal")):
            left.unlink(missing_ok=True)
        target.write_bytes(content)
        start = time.perf_counter()
        try:
            found[verdict_on(target)] += 1
        except BaseException as error:
            error.add_note(f"after: {how}")
            raise
        longest = max(longest, time.perf_counter() - start)
    return {**found, "longest seconds": longest}
