"""Discovered schemas: what is found, from what, and what is refused before anything is spent."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from privet import (
    Budget,
    Categorical,
    Date,
    Integer,
    Kinds,
    LedgerStore,
    Numeric,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
    Schema,
    Source,
    load,
)
from privet.engines import weighing
from privet.engines.raw import RawCounts
from privet.errors import (
    BudgetError,
    BudgetExceeded,
    DataError,
    LedgerFileError,
    PrivacyLeakWarning,
    SchemaError,
)
from privet.grids import Magnitudes
from privet.reading import Columns
from privet.robustness import NoGuarantee, forest_votes, promise_of
from privet.schema import Discovered
from privet.tables import DiscoveryPlan, NothingFoundError, repeated_discovery

ROWS = 6_000


def make_table(rows=ROWS, seed=1):
    generator = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + generator.integers(0, 700, rows)
    return pa.table(
        {
            "age": generator.uniform(17, 90, rows),
            "change": generator.normal(0, 3, rows),
            "stays": generator.integers(0, 9, rows),
            "day": pa.array(days),
            "ward": generator.choice(["surgery", "medicine", "Zoo", "ärzte"], rows),
            "ill": generator.choice([0, 1], rows),
        }
    )


TABLE = make_table()
KINDS = Kinds(
    {
        "age": "number",
        "change": "number",
        "stays": "integer",
        "day": "date",
        "ward": "category",
        "ill": "category",
    },
    "ill",
)


def check(schema):
    """Bounds are outer ends of frequent eighths; an empty one beyond may pass by chance."""
    age, change = schema.features["age"], schema.features["change"]
    assert age.low <= 22
    assert age.high >= 80
    assert change.low <= -4
    assert change.high >= 4
    assert isinstance(schema.features["stays"], Integer)
    assert schema.features["stays"].low <= 0
    assert schema.features["stays"].high >= 7
    day = schema.features["day"]
    assert isinstance(day, Date)
    assert day.to_dict()["low"] <= "2020-01-01"
    assert day.to_dict()["high"] >= "2021-12-31"
    assert schema.features["ward"] == Categorical(["Zoo", "medicine", "surgery", "ärzte"])
    assert tuple(schema.classes) == (0, 1)


@pytest.mark.parametrize("accountant", ["pure", "zcdp", "none"])
def test_what_is_found(accountant, tmp_path):
    ledger = None
    if accountant != "none":
        delta = None if accountant == "pure" else 1e-6
        ledger = LedgerStore.create(
            tmp_path / "l", Budget(2, delta=delta, threshold_delta=1e-6), columns=[*KINDS.columns]
        )
    schema = Schema.discover(TABLE, KINDS, 1.0, 1e-6, ledger=ledger)
    check(schema)
    assert not schema.drafted
    paid = schema.discovered
    assert (paid.epsilon, paid.delta, paid.columns, paid.lists) == (1.0, 1e-6, 6, 2)
    assert paid.noise == {"pure": "laplace", "zcdp": "gaussian"}.get(accountant, paid.noise)
    if ledger is not None:
        (draw,) = ledger.withdrawals
        assert draw.spent is not None
        assert float(draw.spent_delta) == (1e-6 if accountant == "pure" else 5e-7)
        assert [entry.question.count for entry in draw.entries] == [6, 4]
    again = Schema.from_dict(schema.to_dict())
    assert again == schema


def forms(tmp_path):
    pa.csv.write_csv(TABLE, tmp_path / "t.csv")
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet", row_group_size=1000)
    (tmp_path / "folder").mkdir()
    for part in range(3):
        piece = TABLE.slice(part * 2000, 2000)
        pa.parquet.write_table(piece, tmp_path / "folder" / f"{part}.parquet")
    yield TABLE.to_pandas()
    yield pl.from_arrow(TABLE)
    yield tmp_path / "t.csv"
    yield str(tmp_path / "t.parquet")
    yield Source(tmp_path / "folder")
    yield TABLE.to_reader(max_chunksize=700)
    yield iter(TABLE.slice(0, ROWS).to_batches(max_chunksize=999))


@pytest.mark.filterwarnings("ignore:column 'day' holds text")
def test_every_container_gives_the_same(tmp_path):
    """Frames, files of text and of types, folders and streams: the same counts, to the last."""
    plan = DiscoveryPlan.of(KINDS, math.inf, 0.1, None)
    known = None
    for source in [TABLE, TABLE.take(np.random.default_rng(2).permutation(ROWS)), *forms(tmp_path)]:
        found = repeated_discovery(source, plan)(NoNoise())
        known = known or found
        assert found == known
    assert sum(known.texts["ward"].values()) == ROWS


class NoNoise:
    private = False

    def add_laplace(self, values, scale):
        return values

    add_gaussian = add_laplace


def counts(unit=None, **given):
    kinds = Kinds({"x": "number", "a": "category", "y": Categorical([0, 1])}, "y", unit, **given)
    return RawCounts(["x"], ["a"], Magnitudes(), kinds.readable)


def test_counts_are_right():
    table = pa.table(
        {"x": [0.0, 1.0, 1.9, -4.0, None, math.inf], "a": ["u", "v", "u", None, "", "u"]}
    )
    found = counts()
    for start in (0, 3):
        found.add(Columns.of(table.slice(start, 3)))
    histogram = found.histograms[0]
    assert histogram.sum() == 5
    cells = Magnitudes().cells(np.array([0.0, 1.0, -4.0, math.inf]))
    assert histogram[cells].tolist() == [1, 2, 1, 1]
    ((texts, numbers),) = found.texts(0)
    assert dict(zip(texts, numbers.tolist(), strict=True)) == {"": 1, "u": 3, "v": 1}
    assert texts == sorted(texts)


def test_persons_are_counted_once_however_their_records_are_spread():
    table = pa.table(
        {
            "x": [1.0, 1.0, 5.0, 1.0, 1.0, None],
            "a": ["u", "u", "v", "u", "w", None],
            "id": ["1", "2", "1", None, None, "2"],
        }
    )
    totals = []
    for sizes in ((6,), (2, 2, 2), (1,) * 6):
        found = counts(unit="id")
        start = 0
        for size in sizes:
            found.add(Columns.of(table.slice(start, size)))
            start += size
        ((texts, numbers),) = found.texts(0)
        totals.append((found.histograms.tolist(), dict(zip(texts, numbers.tolist(), strict=True))))
    assert totals[0] == totals[1] == totals[2]
    assert totals[0][1] == {"u": 30 + 30 + 60, "v": 30, "w": 60}


def persons_table():
    """Three records for every other person, by large whole numbers as identifiers."""
    table = make_table(9_000)
    numbers = np.where(np.arange(9_000) % 2, np.arange(9_000), np.arange(9_000) // 6 * 2)
    return table.append_column("id", pa.array(2**60 + numbers))


def test_persons_are_the_unit_of_schema_card_and_ledger(tmp_path):
    table = persons_table()
    kinds = Kinds(KINDS.columns, "ill", unit="id")
    store = LedgerStore.create(
        tmp_path / "l",
        Budget(3, threshold_delta=1e-6),
        columns=[*kinds.listed],
        kinds=kinds.listed,
    )
    schema = Schema.discover(table, kinds, 1.0, 1e-6, ledger=store)
    check(schema)
    assert schema.unit == "id"
    assert schema.discovered.parts == 60
    card = PrivateTreeClassifier(1.0, schema=schema, ledger=store).fit(table).privacy_
    assert card.private
    assert card.of_persons
    assert card.epsilon == 2.0
    assert [entry.mechanism.sensitivity for entry in card.entries[:2]] == [6 * 60, 4 * 60]
    records = Schema.discover(table, KINDS, 1.0, 1e-6)
    with pytest.raises(LedgerFileError, match="persons by 'id' pay"):
        PrivateTreeClassifier(0.5, schema=records, ledger=store).fit(table)
    with pytest.raises(LedgerFileError, match="persons by 'id' pay"):
        Schema.discover(table, KINDS, 0.5, 1e-7, ledger=store)
    assert store.left == 1


def test_shares_of_persons_change_nothing(monkeypatch):
    """Records are put together share by share, and kept on the disk if they are many."""
    kinds = Kinds(KINDS.columns, "ill", unit="id")
    plan = DiscoveryPlan.of(kinds, 1.0, 1e-6, None)
    stream = pa.table(persons_table()).to_reader(max_chunksize=700)
    whole = repeated_discovery(stream, plan)(NoNoise())
    monkeypatch.setattr(weighing, "SHARE_ROWS", 1_000)
    monkeypatch.setattr("privet.engines.raw._LARGE", 1_000)
    assert repeated_discovery(persons_table(), plan)(NoNoise()) == whole


def test_identifiers_are_compared_exactly():
    """Two large numbers that are one as 64-bit floats are two persons."""
    table = pa.table({"x": [1.0, 1.0], "a": ["u", "u"], "id": [2**60, 2**60 + 1]})
    found = counts(unit="id")
    found.add(Columns.of(table))
    assert found.histograms.sum() == 120


def test_what_is_known_is_not_asked():
    kinds = Kinds(
        {"age": Numeric(0, 120), "ward": Categorical(["a"]), "stays": "integer", "ill": "category"},
        "ill",
    )
    schema = Schema.discover(TABLE, kinds, 1.0, 1e-6)
    assert schema.features["age"] == Numeric(0, 120)
    assert (schema.discovered.columns, schema.discovered.lists) == (2, 1)


def test_a_number_as_the_target():
    kinds = Kinds({"ward": Categorical(["surgery"]), "age": "number"}, "age")
    schema = Schema.discover(TABLE, kinds, 1.0)
    low, high = schema.bounds
    assert low <= 22
    assert high >= 80
    assert schema.discovered == Discovered(1.0, 0.0, "laplace", 1, 0)
    model = PrivateTreeRegressor(1.0, schema=schema).fit(TABLE)
    card = model.privacy_
    assert card.private
    assert card.accountant == "pure"
    assert (card.epsilon, card.delta) == (2.0, 0.0)
    declared = Kinds({"ward": Categorical(["surgery"]), "age": "number"}, "age", n_rows=ROWS)
    low, high = Schema.discover(TABLE, declared, 1.0).bounds
    assert low <= 22
    assert high >= 80


@pytest.fixture(scope="module")
def schema():
    return Schema.discover(TABLE, KINDS, 0.5, 1e-6)


class TestCards:
    def test_they_add_what_the_schema_cost(self, schema, tmp_path):
        model = PrivateTreeClassifier(0.5, schema=schema).fit(TABLE)
        card = model.privacy_
        assert card.private
        assert not card.warnings
        assert card.epsilon == pytest.approx(1.0)
        assert card.delta == 1e-6
        assert card.requested_epsilon == 1.0
        assert card.replace_one_epsilon > 1.5
        assert card.entries[0].question.count == 6
        assert any("the schema was discovered" in note for note in card.notes)
        model.save(tmp_path / "m.json")
        again = load(tmp_path / "m.json")
        assert again.privacy == card
        assert again.schema.discovered == schema.discovered
        promise = promise_of(model)
        assert (promise.epsilon, promise.delta) == (1.0, 1e-6)
        assert promise.rho == math.inf

    def test_votes_are_not_certified(self, schema):
        from privet import DiPriMeForestClassifier

        forest = DiPriMeForestClassifier(
            0.5, schema=schema, n_estimators=3, max_depth=2, partition=True
        ).fit(TABLE)
        with pytest.raises(NoGuarantee, match="discovered"):
            forest_votes(forest, TABLE)

    def test_one_ledger_pays_for_both(self, tmp_path):
        store = LedgerStore.create(
            tmp_path / "l",
            Budget(1, threshold_delta=1e-6),
            columns=[*KINDS.columns],
            kinds=KINDS.listed,
        )
        schema = Schema.discover(TABLE, KINDS, 0.1, 1e-6, ledger=store)
        PrivateTreeClassifier(0.9, schema=schema, ledger=store).fit(TABLE)
        assert float(store.left) < 1e-6
        assert store.books.left_delta == 0


class TestRefusals:
    def test_nothing_is_spent(self, tmp_path):
        store = LedgerStore.create(
            tmp_path / "l",
            Budget(1, threshold_delta=1e-6),
            columns=[*KINDS.columns, "id"],
            kinds=KINDS.listed,
        )
        others = dict(KINDS.columns)
        strange = Kinds({**others, "nowhere": "number"}, "ill")
        whole = Kinds({**others, "age": "integer"}, "ill")
        persons = Kinds(others, "ill", unit="id")
        unnamed = TABLE.append_column("id", pa.array(["p"] * ROWS))
        for source, kinds, given, error, match in (
            (TABLE, KINDS, (0.1,), BudgetError, "only be found with a delta"),
            (TABLE, KINDS, (0.1, 0), BudgetError, "only be found with a delta"),
            (TABLE, KINDS, (0.1, 1.5), BudgetError, "below 1"),
            (TABLE, KINDS, (0, 1e-6), BudgetError, "positive"),
            (TABLE, KINDS, (0.1, 1e-3), BudgetExceeded, "left for thresholds"),
            (TABLE, KINDS, (2, 1e-6), BudgetExceeded, "epsilon"),
            (TABLE, strange, (0.1, 1e-6), DataError, "no column 'nowhere'"),
            (TABLE, whole, (0.1, 1e-6), LedgerFileError, "other kinds of columns: see 'age'"),
            (
                unnamed,
                persons,
                (0.1, 1e-6),
                LedgerFileError,
                "records pay, and this is paid by persons",
            ),
            (np.zeros((3, 6)), KINDS, (0.1, 1e-6), DataError, "named columns"),
            (TABLE, {"age": "number"}, (0.1, 1e-6), SchemaError, "Kinds.from_toml"),
        ):
            with pytest.raises(error, match=match):
                Schema.discover(source, kinds, *given, ledger=store)
            assert store.left == 1

    def test_if_all_is_known_nothing_is_asked(self):
        kinds = Kinds({"age": Numeric(0, 120), "ill": Categorical([0, 1])}, "ill")
        with pytest.raises(SchemaError, match="nothing to pay for"):
            Schema.discover(TABLE, kinds, 1.0)
        assert kinds.schema().features["age"].high == 120

    def test_too_little_is_an_error_that_says_what_is_spent(self, tmp_path):
        few = TABLE.slice(0, 20)
        store = LedgerStore.create(
            tmp_path / "l", Budget(1, threshold_delta=1e-6), columns=[*KINDS.columns]
        )
        with pytest.raises(NothingFoundError, match="stays spent"):
            Schema.discover(few, KINDS, 0.1, 1e-6, ledger=store)
        assert float(store.left) == pytest.approx(0.9)

    def test_a_column_without_anything_is_left_out(self):
        rare = TABLE.append_column("code", pa.array([f"c{i}" for i in range(ROWS)]))
        kinds = Kinds({**KINDS.columns, "code": "category"}, "ill")
        with pytest.warns(UserWarning, match="in 1 columns nothing was frequent.*'code'"):
            schema = Schema.discover(rare, kinds, 1.0, 1e-6)
        assert "code" not in schema.names

    def test_a_seed_and_no_noise_make_drafts(self):
        for given in ({"epsilon": 1.0, "random_state": 1}, {"epsilon": math.inf}):
            with pytest.warns(PrivacyLeakWarning, match="draft"):
                schema = Schema.discover(TABLE, KINDS, delta=1e-6, **given)
            assert schema.drafted
            assert schema.discovered is None
            with pytest.warns(PrivacyLeakWarning):
                model = PrivateTreeClassifier(1.0, schema=schema).fit(TABLE)
            assert not model.privacy_.private


class TestWhatIsNotAsked:
    """The type of a column, and whether values are whole or missing, are declared or not used."""

    def test_types_do_not_matter(self):
        plan = DiscoveryPlan.of(KINDS, math.inf, 0.1, None)
        texts = pd.DataFrame({name: TABLE[name].to_pylist() for name in TABLE.column_names})
        for name in ("age", "stays", "day"):
            texts[name] = texts[name].astype(str)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert repeated_discovery(texts, plan)(NoNoise()) == repeated_discovery(TABLE, plan)(
                NoNoise()
            )

    def test_one_record_changes_no_other(self):
        """A hostile record adds its own counts, and nothing else."""
        plan = DiscoveryPlan.of(KINDS, math.inf, 0.1, None)
        plain = pa.table(
            {
                name: pa.array([str(v) for v in TABLE[name].to_pylist()])
                for name in TABLE.column_names
            }
        )
        known = raw(plain, plan)
        for hostile in ("", "NaN", "x" * 5000, "\0", "1e999", "-0", "2020-01-01"):
            more = pa.concat_tables(
                [pa.table({name: [hostile] for name in plain.column_names}), plain]
            )
            cells, texts = raw(more, plan)
            assert (cells - known[0] >= 0).all()
            assert (cells - known[0]).sum() <= len(plan.numbers)
            for before, after in zip(known[1], texts, strict=True):
                changed = {text for text in after if after[text] != before.get(text)}
                assert set(before) <= set(after)
                assert changed <= {hostile}

    def test_missing_values_are_counted_nowhere(self):
        table = pa.table(
            {"x": pa.array([None] * 9, pa.float64()), "a": pa.array([None] * 9, pa.string())}
        )
        found = counts()
        found.add(Columns.of(table))
        assert not found.histograms.any()
        assert not list(found.texts(0))


def raw(table, plan):
    from privet.tables.discovery import _counted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = _counted(table, plan)
    found = [
        {
            text: n
            for texts, ns in held.texts(place)
            for text, n in zip(texts, ns.tolist(), strict=True)
        }
        for place in range(len(plan.lists))
    ]
    return held.histograms, found


def test_many_texts_are_cut_to_what_a_file_holds():
    """By noisy counts, which are public; nothing that was paid for is lost."""
    from privet.tables.discovery import Found

    kinds = Kinds({"a": "category", "b": "number", "y": Categorical([0, 1])}, "y")
    plan = DiscoveryPlan.of(kinds, 1.0, 1e-6, None)
    many = {f"{number:0400}": 10_000 - number for number in range(9_000)}
    cells = [0] * plan.magnitudes.size
    cells[50] = 10**6
    eighths = [0] * (plan.magnitudes.size * plan.magnitudes.eighths_each)
    schema = plan.schema(Found({"b": cells}, {"b": eighths}, {"a": many}), drafted=False)
    kept = schema.features["a"].values
    assert 1_000 < len(kept) < 9_000
    assert kept[0] == f"{0:0400}"
    assert len(schema.toml()) < 2**21


@pytest.mark.parametrize(
    ("numbers", "kind", "cells", "eighths"),
    [
        ([0.0], "number", (0, 1), (0, 1)),
        ([5.0], "number", (4, 8), (5, 5.5)),
        ([-5.0, 0.0], "number", (-8, 0), (-5.5, 0)),
        ([-5.0], "number", (-8, -4), (-5.5, -5)),
        ([20.0, 100.0], "number", (16, 128), (20, 104)),
        ([1.0], "integer", (1, 2), (1, 2)),
        ([0.0, 5.0], "integer", (0, 7), (0, 5)),
        ([-5.0, 0.3], "integer", (-8, 0), (-5, 0)),
        ([1e300], "number", (2.0**50, 2.0**51), (2.0**50, 9 * 2.0**47)),
        ([1e300], "integer", (2**50, 2**51 - 1), (2**50, 9 * 2**47 - 1)),
        ([-1e300, 1e300], "date", (-719_162, 2_932_896), (-719_162, 2_932_896)),
        ([-1e300], "date", (-719_162, -719_161), (-719_162, -719_161)),
        ([1e300], "date", (2_932_895, 2_932_896), (2_932_895, 2_932_896)),
        ([1e-40], "number", (0, 1), (0, 1)),
    ],
)
def test_bounds_of_cells(numbers, kind, cells, eighths):
    """All of the outermost cells, or only what lies between frequent eighths of them."""
    kinds = Kinds({"x": kind, "y": Categorical([0, 1])}, "y", n_rows=10**9)
    plan = DiscoveryPlan.of(kinds, 1.0, None, None)
    assert plan.magnitudes == Magnitudes(1)
    size, each = plan.magnitudes.size, plan.magnitudes.eighths_each
    counts, finer = np.zeros(size, dtype=int), np.zeros(size * each, dtype=int)
    counts[plan.magnitudes.cells(np.array(numbers))] = 100 * plan.least
    for expected in (cells, eighths):
        feature = plan._number("x", plan.bounds(counts.tolist(), finer.tolist()))
        assert (feature.low, feature.high) == expected
        finer[plan.magnitudes.eighths(np.array(numbers))] = 4 * plan.least_of_eighth


def test_nothing_is_cut_off_where_noise_could_hide_much():
    plan = DiscoveryPlan.of(Kinds({"x": "number", "y": Categorical([0, 1])}, "y"), 1.0, None, None)
    counts = np.zeros(plan.magnitudes.size, dtype=int)
    finer = np.zeros(plan.magnitudes.size * plan.magnitudes.eighths_each, dtype=int)
    counts[plan.magnitudes.cells(np.array([5.0]))] = plan.least
    finer[plan.magnitudes.eighths(np.array([5.0]))] = plan.least
    assert plan.least_of_eighth > plan.least / 8
    assert plan.bounds(counts.tolist(), finer.tolist()) == (4, 16)
    many = plan.bounds((1_000 * counts).tolist(), (1_000 * finer).tolist())
    assert many == (5, 5.5)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_neighbours_are_frequent_together(delta):
    """A thin tail over two cells is found; one cell of a pair with a frequent one is not."""
    kinds = Kinds({"x": "number", "y": Categorical([0, 1])}, "y")
    plan = DiscoveryPlan.of(kinds, 1.0, delta, None)
    assert plan.least < plan.least_of_two < 2 * plan.least
    zero = plan.magnitudes.size // 2
    counts = [0] * plan.magnitudes.size
    counts[zero] = 100 * plan.least
    assert plan.frequent(counts) == [zero, zero]
    small, larger = plan.least_of_two // 2 - 2, plan.least_of_two // 2 + 1
    counts[zero + 20 : zero + 22] = small, larger
    assert plan.frequent(counts) == [zero, zero]
    counts[zero + 20] += 2
    first, last = plan.frequent(counts)
    assert (first, last) == (zero, zero + 21)


def test_how_often_noise_is_frequent():
    """The sum of two noises against its law, where the chance is large enough to be counted."""
    kinds = Kinds({"x": "number", "y": Categorical([0, 1])}, "y")
    rng = np.random.default_rng(0)
    for delta in (None, 1e-6):
        plan = DiscoveryPlan.of(kinds, 0.01, delta, None)
        noise = plan.noise.counts
        draw = rng.normal if plan.gaussian else rng.laplace
        drawn = draw(0, noise.scale, (2, 200_000)).sum(axis=0)
        found = (drawn >= plan._reached(noise, 0.01, 2)).mean()
        assert 0.0088 < found < 0.0112  # five deviations are 0.0011


@pytest.mark.parametrize("octaves", [1, 2])
def test_every_number_is_in_its_eighth(octaves):
    places = Magnitudes(octaves)
    powers, parts = range(-30, 51), (1, 1.1, 1.125, 1.5, 1.99)
    numbers = np.array([s * 2.0**e * f for s in (-1, 1) for e in powers for f in parts])
    eighths = places.eighths(numbers)
    np.testing.assert_array_equal(eighths // places.eighths_each, places.cells(numbers))
    for number, eighth in zip(numbers, eighths.tolist(), strict=True):
        low, high = places.ends_of_eighth(eighth)
        assert low <= number <= high or abs(number) > 2.0**50
    assert (np.diff(eighths[np.argsort(numbers)]) >= 0).all()
    np.testing.assert_array_equal(
        places.eighths(np.array([np.nan, 0.0, -0.0, np.inf, -np.inf])),
        [
            -1,
            *[places.eighths_each * (places.size // 2)] * 2,
            *places.eighths(np.array([2.0**50, -(2.0**50)])),
        ],
    )


@pytest.mark.parametrize("octaves", [1, 2])
def test_every_number_is_in_its_cell(octaves):
    cells = Magnitudes(octaves)
    numbers = np.array([s * 2.0**e * f for s in (-1, 1) for e in range(-30, 51) for f in (1, 1.5)])
    for number, cell in zip(numbers, cells.cells(numbers).tolist(), strict=True):
        low, high = cells.bounds(cell, cell)
        assert low <= number <= high
        assert 0 <= cell < cells.size
    order = cells.cells(np.sort(numbers))
    assert (np.diff(order) >= 0).all()
