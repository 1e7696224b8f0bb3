"""Slips in a schema: no fit fails by them, the budget is spent, and the model is made of noise.

What a user sees of each: before the fit (by types, where there are any, and by ``privet schema
check``), and after it (by released numbers).
"""

import numpy as np
import pandas as pd
import pytest

import privet
from privet import Categorical, Integer, LedgerStore, PrivateTreeClassifier, Schema
from privet.errors import ColumnTypeWarning
from privet.model import load

GOOD = Schema(
    {"age": Integer(0, 120), "ward": Categorical(["medicine", "surgery"])},
    target="state",
    classes=["alive", "dead"],
    table="patients",
)
SLIPS = {
    "a slip in the classes": Schema(
        GOOD.features, "state", classes=["alive", "daed"], table="patients"
    ),
    "labels of another type": GOOD,
    "a slip in the bounds": Schema(
        {**GOOD.features, "age": Integer(0, 12)},
        "state",
        classes=["alive", "dead"],
        table="patients",
    ),
}
by_slip = pytest.mark.parametrize("slip", SLIPS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(7)
    age = rng.integers(18, 95, 4_000)
    dead = rng.random(4_000) < 1 / (1 + np.exp((60 - age) / 8))
    ward = rng.choice(["medicine", "surgery"], 4_000)
    frame = pd.DataFrame({"age": age, "ward": ward, "state": np.where(dead, "dead", "alive")})
    numbers = frame.assign(state=dead.astype(int))
    for name, rows in (("rows", frame), ("numbers", numbers)):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        rows.to_parquet(tmp_path / f"{name}.parquet")
    GOOD.to_toml(tmp_path / "good.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(slip):
    return "numbers" if slip == "labels of another type" else "rows"


@by_slip
def test_a_fit_does_not_fail(slip, folder, call_privet):
    """The budget is gone, and the guarantee holds: of a model that is worth nothing."""
    SLIPS[slip].to_toml(folder / "schema.toml")
    code, *_ = call_privet("ledger", "books", "--create", "--epsilon", 1, "--schema", "schema.toml")
    assert code == 0
    code, out, error = call_privet(
        "fit", f"{data_of(slip)}.csv", "--schema", "schema.toml", "--ledger", "books"
    )
    assert (code, error) == (0, "")  # a CSV file declares no types
    assert "Verdict: private" in out
    assert "Records: " in out  # the number that was paid for
    assert LedgerStore("books").left == 0
    (count, *_) = load("model.json").privacy.counts
    assert f"{count.total:,} records were counted" in out


@by_slip
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_check_finds_it(slip, form, folder, call_privet):
    data = f"{data_of(slip)}.{form}"
    SLIPS[slip].to_toml(folder / "schema.toml")
    code, out, error = call_privet("schema", "check", "schema.toml", data)
    assert code == 6
    assert out.startswith("Sensitive: These are exact statements about the rows")
    assert "The schema does NOT fit the data." in out
    words = {
        "a slip in the classes": "no record has the class 'daed'; the data have 'dead'",
        "labels of another type": "which are numbers, where the schema lists text",
        "a slip in the bounds": "4,000 of 4,000 values (100.00%) lie above high = 12",
    }
    assert words[slip] in out
    warned = form == "parquet" and slip == "labels of another type"
    assert ("every record is left out" in error) is warned
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_schema_that_fits(form, folder, call_privet):
    code, out, error = call_privet("schema", "check", "good.toml", f"rows.{form}")
    assert (code, error) == (0, "")
    assert "A fit uses all 4,000 records." in out
    assert out.rstrip().endswith("The schema fits the data.")


def test_checks_read_as_fits_do(folder, call_privet):
    text = (folder / "rows.csv").read_text()
    (folder / "other.csv").write_text(text.replace(",", ";"), encoding="latin-1")
    code, _, error = call_privet("schema", "check", "good.toml", "other.csv")
    assert code == 2
    assert "--separator" in error
    options = ["--separator", ";", "--encoding", "latin-1", "--decimal", ","]
    code, out, _ = call_privet("schema", "check", "good.toml", "other.csv", *options)
    assert code == 0, out
    code, _, error = call_privet("schema", "check", "good.toml", "rows.parquet", *options)
    assert code == 2
    assert "not for Parquet" in error
    code, out, _ = call_privet("schema", "check", "good.toml", "ro*.parquet", "--tolerance", 0.5)
    assert code == 0, out


def test_types_are_spoken_of_before_the_fit(folder, call_privet):
    code, out, error = call_privet("fit", "numbers.parquet", "--schema", "good.toml")
    assert code == 0
    assert "Warning: the target 'state' holds whole numbers" in error
    assert "Verdict: private" in out


@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
class TestAfterwards:
    """Released numbers, with a seed so that they are the same in every run."""

    def shown(self, slip, folder, call_privet, **options):
        rows = pd.read_csv(folder / f"{data_of(slip)}.csv").astype({"state": object})
        model = PrivateTreeClassifier(1.0, SLIPS[slip], random_state=0, **options).fit(rows)
        model.save("shown.json")
        code, out, error = call_privet("show", "shown.json")
        assert (code, error) == (0, "")
        return model.privacy_, out

    def test_a_class_without_records(self, folder, call_privet):
        card, out = self.shown("a slip in the classes", folder, call_privet)
        assert [len(count.values) for count in card.counts] == [1, 2]
        assert "Doubt: of class 'daed' no more records were counted than noise would make" in out

    def test_far_fewer_records_than_declared(self, folder, call_privet):
        card, out = self.shown("a slip in the classes", folder, call_privet, n_rows=4_000)
        assert card.declared_rows == 4_000
        assert "far below the 4,000 rows that were declared" in out

    @pytest.mark.parametrize("n_rows", [None, 4_000])
    def test_no_records_at_all(self, folder, call_privet, n_rows):
        card, out = self.shown("labels of another type", folder, call_privet, n_rows=n_rows)
        assert "records is no more than noise" in out
        assert any("made of no records at all" in doubt for doubt in card.doubts())

    def test_bounds_that_no_released_number_tells_of(self, folder, call_privet):
        card, out = self.shown("a slip in the bounds", folder, call_privet)
        assert card.doubts() == []
        assert "Doubt:" not in out

    def test_nothing_was_released(self, folder, call_privet):
        options = {"n_rows": 4_000, "probability_share": 0}
        card, out = self.shown("labels of another type", folder, call_privet, **options)
        assert card.counts == ()
        assert "Records: no number of records was released" in out
        assert "Doubt: nothing was released about how many records the model is made of" in out

    def test_all_is_well(self, folder, call_privet):
        rows = pd.read_parquet(folder / "rows.parquet")
        model = PrivateTreeClassifier(1.0, GOOD, random_state=0, n_rows=4_000).fit(rows)
        assert model.privacy_.doubts(GOOD.classes) == []
        (count,) = model.privacy_.counts
        leaves = [node.released["class_counts"] for node in model.tree_.nodes if not node.test]
        assert count.values == tuple(np.sum(leaves, axis=0).tolist())
        assert count.deviation == pytest.approx(np.sqrt(len(leaves) * 2) * 20)


def test_in_python_types_are_spoken_of(folder):
    rows = pd.read_parquet(folder / "numbers.parquet")
    with pytest.warns(ColumnTypeWarning, match="made of noise alone"):
        PrivateTreeClassifier(1.0, GOOD).fit(rows)
    with pytest.warns(ColumnTypeWarning, match="made of noise alone"):
        assert not GOOD.check(rows).fits


def test_drafts_and_ledgers(folder, call_privet):
    code, *_ = call_privet("schema", "draft", "rows.csv", "--out", "draft.toml")
    assert code == 0
    create = ["ledger", "books", "--create", "--epsilon", 3, "--schema"]
    code, _, error = call_privet(*create, "draft.toml")
    assert code == 2
    assert "is a draft" in error
    assert "delete the line draft = true" in error
    assert not (folder / "books").exists()
    code, *_ = call_privet(*create, "good.toml")
    assert code == 0
    fit = ["fit", "rows.csv", "--schema", "draft.toml"]
    code, _, error = call_privet(*fit, "--ledger", "books")
    assert code == 2
    assert "no ledger file pays for one" in error
    assert LedgerStore("books").withdrawals == ()
    assert not (folder / "model.json").exists()
    code, out, _ = call_privet(*fit)
    assert code == 0
    assert "NOT PRIVATE" in out


def test_large_epsilons(folder, call_privet):
    create = ["ledger", "books", "--create", "--epsilon", 20, "--schema", "good.toml"]
    code, _, error = call_privet(*create)
    assert code == 0
    assert "Warning: epsilon 20 protects nobody" in error
    code, _, error = call_privet("fit", "rows.csv", "--schema", "good.toml", "--epsilon", 12)
    assert code == 0
    assert "162,755 to 1" in error
    code, out, _ = call_privet("plan", "--rows", 1000, "--epsilon", 12)
    assert code == 0
    assert "epsilon 12 protects nobody" in out
    code, out, _ = call_privet("plan", "--rows", 1000, "--epsilon", 10)
    assert "protects nobody" not in out


def test_in_python_drafts_draw_from_no_ledger(folder):
    rows = pd.read_parquet(folder / "rows.parquet")
    columns = [*GOOD.names, GOOD.target]
    store = LedgerStore.create("books", privet.Budget(1.0), columns=columns)
    for schema, given in (
        (None, (rows[["age", "ward"]], rows["state"])),
        (Schema.draft(rows), (rows,)),
    ):
        with pytest.raises(privet.PrivetError, match="is a draft"):
            PrivateTreeClassifier(1.0, schema, ledger=store).fit(*given)
    with pytest.raises(privet.PrivetError, match="is a draft"):
        privet.federation.Party(
            "one", rows, None, Schema.draft(rows), privet.Budget(1.0), ledger=store
        )
    assert store.withdrawals == ()
