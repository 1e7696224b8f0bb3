"""Learners of persons: every learner, files, cards, parties."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import privet
from privet import (
    Budget,
    DiffPID3Classifier,
    LedgerStore,
    PrivateBoostingClassifier,
    PrivateTable,
    PrivateTreeClassifier,
    Schema,
    TopDownClassifier,
    load,
)
from privet.audit import sample
from privet.cli import app
from privet.datasets import STAYS, make_stays
from privet.errors import BudgetError, FederationError, LedgerFileError
from privet.estimators.registry import estimators
from privet.federation import FederatedTable, Party
from privet.schema import Discovered

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")
ROWS = make_stays(300, most=5)
FRAME = pd.DataFrame(ROWS)
NUMBER = replace(
    STAYS,
    features={n: f for n, f in STAYS.features.items() if n != "age"},
    target="age",
    classes=None,
    bounds=(0, 100),
)


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_every_learner_counts_persons(kind):
    schema = STAYS if kind._of_classes else NUMBER
    model = kind(1.0, schema=schema, random_state=1).fit(FRAME)
    card = model.privacy_
    assert card.adjacency == "add/remove all records of one patient_id"
    assert card.of_persons
    assert card.epsilon <= 1.0
    assert len(model.predict(FRAME.drop(columns="patient_id"))) == len(FRAME)


def test_scores_and_choices_are_of_persons_too():
    model = PrivateTreeClassifier(1.0, STAYS).fit(FRAME)
    assert privet.evaluate(model, FRAME, 1.0).privacy.adjacency == model.privacy_.adjacency
    paid = replace(STAYS, discovered=Discovered(0.25, 0.0, "laplace", 10, 0, 60))
    alone = PrivateTreeClassifier(0.5, paid).fit(FRAME).privacy_
    found = privet.choose([PrivateTreeClassifier(0.5)], FRAME, schema=paid, epsilon=0.5)
    assert found.privacy.adjacency == alone.adjacency
    assert found.privacy.epsilon == pytest.approx(0.75)  # with what the schema cost
    assert found.privacy.counts
    assert found.estimator.record_.path[0] == 0


def test_a_file_and_a_frame_give_the_same_model(tmp_path):
    FRAME.to_csv(tmp_path / "stays.csv", index=False)
    pq.write_table(pa.table(ROWS), tmp_path / "stays.parquet", row_group_size=100)
    STAYS.to_toml(tmp_path / "schema.toml")

    def fitted(table):
        return PrivateTreeClassifier(1.0, STAYS, random_state=7).fit(table).to_model().to_json()

    expected = fitted(FRAME)
    assert fitted(str(tmp_path / "stays.parquet")) == expected
    assert fitted(str(tmp_path / "stays.csv")) == expected
    shuffled = FRAME.sample(frac=1, random_state=3)
    assert fitted(shuffled) == expected
    done = CliRunner().invoke(
        app,
        ["fit", str(tmp_path / "stays.csv"), "--schema", str(tmp_path / "schema.toml"),
         "--epsilon", "1", "--learner", "tree", "--out", str(tmp_path / "model.json")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "all records of one patient_id" in done.output
    assert "replacing one person" in done.output
    model = load(tmp_path / "model.json")
    assert model.schema.unit == "patient_id"
    assert model.privacy.private


def test_a_person_is_counted_once():
    table = PrivateTable(FRAME, None, STAYS, Budget(10**9))
    assert table.root().noisy_counts(10**6).tolist() == [300]


def test_too_many_persons():
    with pytest.raises(BudgetError, match="at most 35,791,394 persons"):
        PrivateTreeClassifier(1.0, STAYS, n_rows=40_000_000).fit(FRAME)
    assert PrivateTreeClassifier(1.0, replace(STAYS, unit=None), n_rows=40_000_000).fit(FRAME)


@pytest.mark.parametrize("protocol", ["noisy-counts", "local-rnm", "secure-sum"])
def test_parties_of_persons(protocol):
    places = np.array([int(who[1:]) % 3 for who in ROWS["patient_id"]])
    parties = [
        Party(f"party {k}", FRAME[places == k], None, STAYS, Budget(40.0), random_state=k)
        for k in range(3)
    ]
    table = FederatedTable(parties, protocol=protocol)
    model = TopDownClassifier(20.0).fit(table)
    assert model.privacy_.of_persons
    assert "a person whose records lie at one party" in " ".join(model.privacy_.notes)
    counts = table.session(Budget(10.0)).root().noisy_counts(10.0)
    assert abs(int(counts[0]) - 300) < 40
    assert model.score(FRAME, FRAME["readmitted"]) > 0.6


def test_parties_with_other_units_are_refused():
    parties = [
        Party(f"party {k}", FRAME, None, schema, Budget(1.0))
        for k, schema in enumerate((STAYS, replace(STAYS, rows_per_unit=2)))
    ]
    with pytest.raises(FederationError, match="rows_per_unit"):
        FederatedTable(parties, protocol="noisy-counts")


def test_parties_may_share_a_person():
    shared = replace(STAYS, parties_per_unit=3)
    parties = [
        Party(f"party {k}", FRAME, None, shared, Budget(10**7), random_state=k) for k in range(3)
    ]
    table = FederatedTable(parties, protocol="noisy-counts")
    counts = table.session(Budget(10**6)).root().noisy_counts(10**6)
    assert counts.tolist() == [300]  # a third of everybody at each
    assert "up to 3 parties" in " ".join(table.notes)


def test_the_statistical_audit_adds_a_person():
    model = DiffPID3Classifier(1.0, STAYS, max_depth=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sample.canary(model, FRAME.head(40), runs=20, n_jobs=1)
    assert found.epsilon <= 1.0


def test_boosting_rounds_need_more_for_persons():
    with pytest.raises(BudgetError, match="too small to be shared"):
        PrivateBoostingClassifier(0.001, schema=STAYS, n_rounds=2).fit(FRAME)


def test_a_ledger_has_one_unit(tmp_path):
    by_person = LedgerStore.create(
        tmp_path / "persons", Budget(2.0), columns=STAYS.columns, unit="patient_id"
    )
    by_record = LedgerStore.create(tmp_path / "records", Budget(2.0), columns=STAYS.columns)
    model = DiffPID3Classifier(1.0, STAYS, max_depth=1, ledger=by_person).fit(FRAME)
    assert model.privacy_.of_persons
    assert by_person.left == 1
    alone = replace(STAYS, unit=None)
    with pytest.raises(LedgerFileError, match=r"what single records pay.*persons by 'patient_id'"):
        DiffPID3Classifier(1.0, STAYS, max_depth=1, ledger=by_record).fit(FRAME)
    with pytest.raises(LedgerFileError, match=r"persons by 'patient_id' pay.*single records"):
        DiffPID3Classifier(1.0, alone, max_depth=1, ledger=by_person).fit(FRAME)
    other = replace(alone, unit="patient", table=None)
    with pytest.raises(LedgerFileError, match="no column 'patient'"):
        DiffPID3Classifier(1.0, other, ledger=by_person).fit(FRAME.assign(patient=1))
    assert by_person.left == 1
    assert by_record.left == 2


def test_old_files_have_no_unit():
    plain = json.loads(json.dumps(replace(STAYS, unit=None).to_dict()))
    assert "unit" not in plain
    assert Schema.from_dict(plain).unit is None
