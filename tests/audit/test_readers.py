"""The audit of readers: it passes a reader that keeps the law, and catches those that do not."""

import csv
import datetime
import math
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privet.audit import hostile, readers
from privet.audit.readers import SCHEMAS, Container
from privet.reading import Columns
from privet.schema import Date, Numeric, all_numbers

WRITERS = {writer.name: writer for writer in readers.known_writers()}
LISTS = [WRITERS["lists in a list"]]
FILES = [WRITERS["CSV"]]


# A reader that keeps the law: item by item


def number(item):
    try:
        return float(item)
    except Exception:
        return math.nan


def day(item):
    try:
        found = datetime.date.fromisoformat(item) if isinstance(item, str) else item
        return math.nan if len(str(item)) < 10 else found.toordinal()
    except Exception:
        return math.nan


def text(item):
    try:
        return str(int(item)) if type(item) is float and item.is_integer() else str(item)
    except Exception:
        return None


def code(item, values):
    if all_numbers(values):
        found, listed = number(item), [float(value) for value in values]
    else:
        found, listed = text(item), list(values)
    return listed.index(found) if found in listed else len(listed)


def read_rows(rows, targets, schema):
    found = []
    for features, target in zip(rows, targets, strict=True):
        row = features
        if not isinstance(row, list | tuple) or len(row) != len(schema.names):
            row = [None] * len(schema.names)
        cells = [
            day(cell)
            if isinstance(feature, Date)
            else number(cell)
            if isinstance(feature, Numeric)
            else code(cell, feature.values)
            for cell, feature in zip(row, schema.features.values(), strict=True)
        ]
        last = number(target) if schema.classes is None else code(target, schema.classes)
        found.append([*cells, last])
    return np.array(found, dtype=np.float64).reshape(-1, len(schema.names) + 1)


def records_of(path):
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def good(container: Container, schema):
    if isinstance(container.table, Path):
        records = records_of(container.table)
        return read_rows([r[:-1] for r in records], [r[-1] for r in records], schema)
    return read_rows(container.table, container.target, schema)


def test_a_reader_that_keeps_the_law_passes():
    verdict = readers.audit(good, writers=[*LISTS, *FILES], rounds=2)
    assert verdict.holds, list(map(str, verdict.counterexamples))
    assert min(verdict.compared.values()) > 400
    assert verdict.refused == ()


# Deliberately broken readers


def common_type(container, schema):
    """Numpy finds one type for all."""
    return good(Container(np.asarray(container.table).tolist(), container.target), schema)


def common_type_of_labels(container, schema):
    return good(Container(container.table, np.asarray(container.target).tolist()), schema)


def switches_at_a_quote(container, schema):
    """One reader by lines, one by records; a quote decides."""
    content = container.table.read_text(encoding="utf-8")
    if '"' not in content:
        return good(container, schema)
    lines = content.split("\n")[1:-1]
    records = [next(csv.reader([line]), []) for line in lines]
    whole = [r if len(r) == len(schema.names) + 1 else [""] * 3 for r in records]
    return read_rows([r[:-1] for r in whole], [r[-1] for r in whole], schema)


def ends_records_at_cr(container, schema):
    """A CR ends a record, in quotes, too."""
    container.table.write_bytes(container.table.read_bytes().replace(b"\r", b'"\n"'))
    return good(container, schema)


def drops_long_fields(container, schema):
    records = [r for r in records_of(container.table) if max(map(len, r), default=0) < 131_072]
    return read_rows([r[:-1] for r in records], [r[-1] for r in records], schema)


def warns_of_a_value(container, schema):
    if any(target == "?" for target in container.target):
        warnings.warn("there is a question mark", UserWarning, stacklevel=1)
    return good(container, schema)


def counts_in_a_warning(container, schema):
    warnings.warn(f"{len(container.table)} rows", UserWarning, stacklevel=1)
    return good(container, schema)


def narrower_type(container, schema):
    found = good(container, schema)
    return found if np.isnan(found).any() else found.astype(np.float32)


def fills_from_above(container, schema):
    """What is missing is taken from the record before: no other record is read alone."""
    found = good(container, schema)
    for row in range(1, len(found)):
        gaps = np.isnan(found[row])
        found[row, gaps] = found[row - 1, gaps]
    return found


@pytest.mark.parametrize(
    ("reader", "writer", "what"),
    [
        (common_type, LISTS, "another record is read differently"),
        (common_type, LISTS, "reading fails"),
        (common_type_of_labels, LISTS, "another record is read differently"),
        (switches_at_a_quote, FILES, "there is not one row for every record"),
        (ends_records_at_cr, FILES, "there is not one row for every record"),
        (drops_long_fields, FILES, "there is not one row for every record"),
        (warns_of_a_value, LISTS, "a warning depends on it"),
        (counts_in_a_warning, LISTS, "a warning depends on it"),
        (narrower_type, LISTS, "the type of what is read depends on it"),
        (fills_from_above, LISTS, "it is read differently in other company"),
    ],
)
def test_a_broken_reader_is_caught(reader, writer, what):
    verdict = readers.audit(reader, writers=writer, rounds=1 if writer is FILES else len(SCHEMAS))
    assert not verdict.holds
    assert what in {found.what for found in verdict.counterexamples}
    for found in verdict.counterexamples:
        assert found.writer == writer[0].name


# The library's own


UNTYPED = tuple(name for name in WRITERS if name.startswith(("CSV", "lists", "tuples")))


def test_the_library_reads_lists_and_files_record_by_record():
    verdict = readers.audit(writers=[WRITERS[name] for name in UNTYPED])
    assert verdict.holds, list(map(str, verdict.counterexamples))


def test_the_library_reads_containers_of_fixed_types_record_by_record():
    """Some of each library's; `privet audit --readers` tries all."""
    typed = [writer for name, writer in WRITERS.items() if name not in UNTYPED][::2]
    verdict = readers.audit(writers=typed)
    assert verdict.holds, list(map(str, verdict.counterexamples))
    assert all(verdict.compared.values())
    assert verdict.refused == ()


# The audit itself


def test_the_same_seed_gives_the_same_audit():
    one, again, other = (readers.audit(common_type, writers=LISTS, seed=seed) for seed in (3, 3, 4))
    assert one == again
    assert one != other


def test_all_schemas_and_columns_and_places_are_tried():
    seen = set()

    def look(container, schema):
        seen.add(schema.toml())
        return good(container, schema)

    calls = []
    readers.audit(
        look, writers=LISTS, rounds=len(SCHEMAS), progress=lambda *done: calls.append(done)
    )
    assert seen == {schema.toml() for schema in SCHEMAS}
    assert calls == [(k + 1, len(SCHEMAS)) for k in range(len(SCHEMAS))]


def test_what_cannot_be_read_at_all_is_said():
    def refuse(container, schema):
        raise TypeError("no such container")

    verdict = readers.audit(refuse, writers=LISTS)
    assert verdict.holds
    assert verdict.refused == ("lists in a list",)


def test_an_error_that_states_the_number_of_rows_is_caught():
    def refuse(container, schema):
        raise TypeError(f"{len(container.table)} rows of a kind that is not known")

    assert not readers.audit(refuse, writers=LISTS).holds


def test_hostile_values_are_what_they_say():
    values = hostile.values()
    assert values["60 CR"] == "\r" * 60
    assert len(values["a long text"]) > 131_072
    with pytest.raises(RuntimeError):
        float(values["an object that refuses"])
    assert len({kind for kind, _ in hostile.rows(2)}) == len(list(hostile.rows(2)))


def test_persons_are_read_alone():
    verdict = readers.audit(readers.read_persons)
    assert verdict.holds, verdict.counterexamples[:3]
    assert not set(verdict.refused) & {"CSV", "Parquet"}


def test_identifiers_of_a_common_type_are_caught(monkeypatch):
    """One missing identifier, and all others are read as 64-bit floats: as pandas would do."""
    exact = Columns.identifiers

    def common(self, schema):
        found = exact(self, schema)
        texts = found.to_pylist()
        if None in texts:
            texts = [None if text is None else text + b".0" for text in texts]
        return pa.array(texts, pa.large_binary())

    monkeypatch.setattr(Columns, "identifiers", common)
    verdict = readers.audit(readers.read_persons, writers=FILES)
    assert {found.what for found in verdict.counterexamples} >= {
        "another record is read differently"
    }
