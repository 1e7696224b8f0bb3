"""Attacks on reading: one record that changes how others are read, or what a message says.

Bounds on epsilon: two inputs that differ by one record are fitted often at a claimed epsilon of 1;
the event "the model predicts the class that it can only predict if other records were read
otherwise" is fixed beforehand. What is read is also told without noise, by predictions of a model
that has one class for every category.
"""

from __future__ import annotations

import gzip
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from _attacks.outside import SCALE, Found, Place, command, least_epsilon

FITS = max(20, round(5000 * SCALE))
ROWS = 1237
SECRET = "Zzyzx7391"


# Bounds on epsilon


def bound(
    attack: str, fit: Callable[[bool], str], *, likelier: str, fits: int = FITS
) -> Iterator[Found]:
    """Fit often without and with the record; bound epsilon by how often a class is predicted.

    ``likelier`` is the class that the attack makes likelier with the record.
    """
    seen: dict[bool, list[str]] = {False: [], True: []}
    for more in (False, True):
        for _ in range(fits):
            seen[more].append(fit(more))
            if seen[more] == ["refused"]:
                seen[more] *= fits
                break
    hits = [seen[more].count(likelier) for more in (True, False)]
    refused = [seen[more].count("refused") for more in (False, True)]
    if any(refused):
        which = ["without the record", "with it"]
        told = " and ".join(which[j] for j in (0, 1) if refused[j])
        yield Found(
            attack, "epsilon at a claimed 1, at least", f"refused {told}", len(set(refused)) > 1
        )
        return
    epsilon = least_epsilon(hits[0], hits[1], fits)
    yield Found(
        attack,
        "epsilon at a claimed 1, at least",
        f"{epsilon:.2f} ({hits[1]:,} of {fits:,} without the record, {hits[0]:,} with it)",
        epsilon > 1,
        epsilon,
        "epsilon",
    )


def csv_returns(folder: Path) -> Iterator[Found]:
    attack = "CSV: one added line with 60 carriage returns"
    rows = b"0,u,no\n" * 30
    line = b"\r".join([b"0,u,yes"] * 61) + b"\n"
    yield from _csv_bound(attack, folder, rows, line, likelier="yes")
    found = _read(folder, b"b\n" + b"u\n" * 10 + b"\r".join([b"v"] * 61) + b"\n")
    extra = len(found) - 10
    yield Found(attack, "records that the line is read as", f"{extra}", extra > 1, extra, "records")


def csv_return_ended(folder: Path) -> Iterator[Found]:
    attack = "CSV: one quoted field in a file some of whose records end in a carriage return"
    rows = b"0,u,yes\r" * 100 + b"0,u,no\n" * 50
    yield from _csv_bound(attack, folder, rows, b'0,"u",no\n', likelier="no")
    before, after = (
        _read(folder, b"b,c\n" + b"v,1\r" * 100 + b"u,1\n" * 50 + more)
        for more in (b"", b'u,"1"\n')
    )
    lost = before.count("v") - after.count("v")
    yield Found(
        attack, "other records that the field removes", f"{lost}", lost != 0, lost, "records"
    )


def csv_long_field(folder: Path) -> Iterator[Found]:
    attack = "CSV: a field above 131,072 characters, and a quote in another record"
    rows = b"b,c\n" + b"u,1\n" * 10 + b"v," + b"z" * 140_000 + b"\n"
    before, after = _read(folder, rows), _read(folder, rows + b'u,"1"\n')
    changed = before != after[:11]
    yield Found(
        attack,
        "the record with the long field is read as",
        f"{before[10:11]} alone, {after[10:11]} with a quoted field elsewhere",
        changed,
    )


def csv_line_break(folder: Path) -> Iterator[Found]:
    found = _read(folder, b'b,c\nu,"one\ntwo\nthree"\n')
    yield Found(
        "CSV: a person writes two line breaks into a quoted comment",
        "records that the one written record is read as",
        f"{len(found)}: {found}",
        found != ["u"],
        len(found),
        "records",
    )


def csv_semicolons(folder: Path) -> Iterator[Found]:
    place = Place.make(folder)
    text = place.data.read_text(encoding="utf-8").replace(",", ";")
    place.data.write_text(text, encoding="utf-8")
    ended = place.fit(folder / "m.json")
    said = ended.text.replace(str(folder), "")
    helps = ended.code == 0 or bool(re.search(r"separat|delimit|semicolon|';'", said))
    outcome = f"{ended}: {ended.said}".replace(f"{folder}/", "")
    yield Found("CSV: `a;b;y`", "what the command says", outcome, not helps)


def csv_bomb(folder: Path) -> Iterator[Found]:
    """Read a small gzipped file that is a billion bytes."""
    place = Place.make(folder)
    path = folder / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b,y\n")
        for _ in range(1000):
            file.write(b"0,u," + b"x" * 1_000_000 + b"\n")
    ended = command(
        "fit", path, "--schema", place.schema, "--learner", "sulq", "--out", folder / "m.json",
        gigabytes=4,
    )  # fmt: skip
    yield Found(
        f"CSV: {path.stat().st_size / 1e6:.0f} MB of gzip that are 1,000 MB",
        "`privet fit`: exit, s, MB",
        f"{ended}, {ended.seconds:.1f} s, {ended.megabytes:.0f} MB",
        not ended.graceful or ended.megabytes > 1000 or ended.seconds > 20,
        ended.seconds,
        "s",
    )


def list_labels(_: Path) -> Iterator[Found]:
    attack = "list: one text among labels that are numbers"
    labels: list[Any] = [1.0] * 100 + [2] * 50
    rows = [[0.0]] * 150

    def fit(more: bool) -> str:
        return _fit_tree(
            rows + [[0.0]] * more, labels + ["x"] * more, classes=["1", "2"], ask=[[0.0]]
        )

    yield from bound(attack, fit, likelier="2")


def list_rows(_: Path) -> Iterator[Found]:
    from privet import Categorical

    attack = "list: one text among rows of numbers"
    rows: list[Any] = [[1.0]] * 100 + [[1]] * 50
    labels = ["yes"] * 100 + ["no"] * 50

    def fit(more: bool) -> str:
        return _fit_tree(
            rows + [["x"]] * more,
            labels + ["yes"] * more,
            classes=["no", "yes"],
            ask=[["1"]],
            feature=Categorical(["1", "2"]),
        )

    yield from bound(attack, fit, likelier="no")


def list_truths(_: Path) -> Iterator[Found]:
    attack = "list: one number among labels that are True and False"
    labels: list[Any] = [True] * 100 + [False] * 50
    rows = [[0.0]] * 150

    def fit(more: bool) -> str:
        return _fit_tree(
            rows + [[0.0]] * more, labels + [7] * more, classes=["True", "0"], ask=[[0.0]]
        )

    yield from bound(attack, fit, likelier="0")


# Without noise


def whole_numbers_as_floats(_: Path) -> Iterator[Found]:
    import pandas as pd

    from privet import Categorical, DiffPID3Classifier, Schema

    attack = "pandas: a missing value makes floats of whole numbers beyond 2^53"
    big = 2**53 + 1
    schema = Schema({"b": Categorical([big, "other"])}, "y", classes=["big", "other", "none"])
    known = pd.DataFrame({"b": [big, "other", None] * 200, "y": ["big", "other", "none"] * 200})
    model = DiffPID3Classifier(epsilon=1e4, schema=schema, max_depth=1).fit(known)
    before = list(model.predict(pd.DataFrame({"b": [big] * 100})))
    after = list(model.predict(pd.DataFrame({"b": [big] * 100 + [None]})))[:100]
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    yield Found(
        attack,
        "other records that are read otherwise, of 100",
        f"{changed} (read as {before[0]}, with a missing value as {after[0]})",
        changed > 0,
        changed,
        "records",
    )


def messages(_: Path) -> Iterator[Found]:
    """Put one bad record into lists of 1,237; see who speaks, and if counts or values are said."""
    import numpy as np

    good = [[1.0]] * (ROWS - 1)
    words = ["yes"] * (ROWS - 1)
    cases: dict[str, tuple[Any, Any]] = {
        "a ragged row": ([*good, [1.0, 2.0]], ["yes"] * ROWS),
        "a nested label": ([[1.0]] * ROWS, [*words, ["yes", "no"]]),
        "y with two dimensions": ([[1.0]] * ROWS, [["yes", SECRET]] * ROWS),
        "y with two dimensions (array)": ([[1.0]] * ROWS, np.array([["yes", SECRET]] * ROWS)),
        "a complex label": ([[1.0]] * ROWS, [*words[: ROWS - 1], 7391 + 1j]),
        "y of complex numbers": ([[1.0]] * ROWS, [1.0] * (ROWS - 1) + [7391 + 1j]),
        "bytes among labels": ([[1.0]] * ROWS, [*words, SECRET.encode() + b"\xff"]),
        "bytes among rows": ([*good, [SECRET.encode() + b"\xff"]], ["yes"] * ROWS),
        "a whole number of 400 digits": ([*good, [10**400]], ["yes"] * ROWS),
        "a lone surrogate": ([*good, [SECRET + "\ud800"]], ["yes"] * ROWS),
    }
    for name, (rows, labels) in cases.items():
        # One record may not make a fit fail; labels that are all of a wrong shape may.
        outcome, broken = _said_by_fit(rows, labels, may_refuse="dimensions" in name)
        yield Found(f"list: {name}", "what the fit does", outcome, broken)


def missing_target(folder: Path) -> Iterator[Found]:
    attack = "one missing number as the target"
    place = Place.make(folder)
    place.schema.write_text(
        'target = "y"\nbounds = [0, 1]\n[features.a]\ntype = "numeric"\nlow = 0\nhigh = 2\n',
        encoding="utf-8",
    )
    ended = {}
    for more in ("", "1,\n"):
        place.data.write_text("a,y\n" + "1,1\n0,0\n" * 50 + more, encoding="utf-8")
        ended[more] = command(
            "fit", place.data, "--schema", place.schema, "--learner", "tree", "--max-depth", "1",
            "--n-rows", "100", "--out", folder / "m.json",
        )  # fmt: skip
    one, other = ended.values()
    yield Found(
        attack,
        "does the fit succeed",
        f"without the record {one}, with it {other}",
        one.code != other.code,
    )


ATTACKS = [
    csv_returns,
    csv_return_ended,
    csv_long_field,
    csv_line_break,
    csv_semicolons,
    csv_bomb,
    list_labels,
    list_rows,
    list_truths,
    whole_numbers_as_floats,
    messages,
    missing_target,
]


# How it is done


def _csv_bound(
    attack: str, folder: Path, rows: bytes, line: bytes, *, likelier: str
) -> Iterator[Found]:
    """Fit files often with the real command, in this process."""
    import typer.main

    from privet import load
    from privet.cli import app
    from privet.errors import PrivetError

    place = Place.make(folder)
    files = {False: folder / "one.csv", True: folder / "other.csv"}
    files[False].write_bytes(b"a,b,y\n" + rows)
    files[True].write_bytes(b"a,b,y\n" + rows + line)
    out = folder / "often.json"
    run: Any = typer.main.get_command(app)

    def fit(more: bool) -> str:
        out.unlink(missing_ok=True)
        args = ["fit", str(files[more]), "--schema", str(place.schema), "--learner", "tree",
                "--max-depth", "1", "--n-rows", "100", "--out", str(out)]  # fmt: skip
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                run.main(args, prog_name="privet", standalone_mode=False)
        except PrivetError:
            return "refused"
        import pandas as pd

        return str(load(out).predict(pd.DataFrame({"a": [0.0], "b": ["u"]}))[0])

    yield from bound(attack, fit, likelier=likelier)


def _fit_tree(rows: Any, labels: Any, *, classes: Any, ask: Any, feature: Any = None) -> str:
    from privet import Numeric, PrivateTreeClassifier, Schema
    from privet.errors import PrivetError

    schema = Schema({"a": feature or Numeric(0, 2, bins=2)}, "y", classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = PrivateTreeClassifier(
                epsilon=1.0, schema=schema, max_depth=1, n_rows=150
            ).fit(rows, labels)  # fmt: skip
            return str(model.predict(ask)[0])
        except PrivetError:
            return "refused"


def _read(folder: Path, table: bytes) -> list[str]:
    """Tell how a CSV file is read: as u, v or none, record by record."""
    import pandas as pd
    import pyarrow.csv

    from privet import Categorical, DiffPID3Classifier, Schema

    schema = Schema({"b": Categorical(["u", "v"])}, "y", classes=["u", "v", "none"])
    known = pd.DataFrame({"b": ["u", "v", None] * 200, "y": ["u", "v", "none"] * 200})
    model = DiffPID3Classifier(epsilon=1e4, schema=schema, max_depth=1).fit(known)
    model.save(folder / "reader.json")
    (folder / "read.csv").write_bytes(table)
    ended = command(
        "predict", folder / "reader.json", folder / "read.csv", "--out", folder / "told.csv"
    )
    if ended.code != 0:
        return [f"{ended}"]
    told = pyarrow.csv.read_csv(folder / "told.csv")
    return [str(value) for value in told["prediction"].to_pylist()]


def _said_by_fit(rows: Any, labels: Any, *, may_refuse: bool) -> tuple[str, bool]:
    from privet import Numeric, PrivateTreeClassifier, Schema
    from privet.errors import PrivetError

    schema = Schema({"a": Numeric(0, 2, bins=2)}, "y", classes=["no", "yes"])
    model = PrivateTreeClassifier(epsilon=1.0, schema=schema, max_depth=1, n_rows=100)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model.fit(rows, labels)
            outcome, message, ours = "fits", "", True
        except PrivetError as error:
            outcome, message, ours = f"{type(error).__name__}", str(error), True
        except Exception as error:
            outcome, ours = f"{type(error).__name__} of another library", False
            message = f"{error} {error!r}"
    message += " ".join(str(warning.message) for warning in told)
    counts = any(str(count) in message.replace(",", "") for count in (ROWS, ROWS - 1))
    values = any(value in message for value in (SECRET, "7391"))
    parts = [outcome]
    parts += ["states the number of rows"] if counts else []
    parts += ["states values"] if values else []
    parts += ["warns"] if told else []
    fails = not ours or (outcome != "fits" and not may_refuse)
    return ", ".join(parts), fails or counts or values
