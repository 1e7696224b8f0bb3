"""An entry for the registry: what the person and the model say, in a form that is valid."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest
import yaml

import privet
from privet import Budget, LedgerStore, Schema
from privet.datasets import PATIENTS, STAYS, make_patients, make_stays
from privet.errors import ReportError
from privet.report import Facts, Release, read_release, to_registry

STANDARD = Path(__file__).parents[3] / "shared" / "standards" / "deployments-schema.yaml"
SAID = {
    "name": "Readmission of patients",
    "data_curators": ["A hospital"],
    "description": "Who comes back within 30 days",
    "intended_use": "Planning of beds; not for decisions about one patient",
    "region": "Nowhere",
    "registry_authors": ["Its data office"],
    "justification": 'Epsilon 1: "as a rule" of the house: #1 \\ ünïcode',
    "sector": "Healthcare",
}
ROWS = pa.table(make_patients(1_000, seed=2))


def models():
    yield privet.PrivateTreeClassifier(1.0, PATIENTS, test_share=0.2).fit(ROWS)
    yield privet.PrivateBoostingClassifier(1.0, PATIENTS, delta=1e-6, n_rounds=2).fit(ROWS)
    yield privet.PrivateTreeClassifier(0.5, STAYS).fit(pa.table(make_stays(300, seed=2)))


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("books")
    store = LedgerStore.create(folder / "books", Budget(3.0), columns=PATIENTS.columns)
    for _ in range(2):
        paid = privet.PrivateTreeClassifier(1.0, PATIENTS, ledger=store).fit(ROWS)
    release = Release.from_dict(SAID)
    found = [Facts(model.to_model()) for model in models()]
    found.append(Facts(paid.to_model(), store.books))
    return [(facts, yaml.safe_load(to_registry(facts, release))) for facts in found]


def wrong(value, schema):
    """Return what of a value is not as a schema says."""
    checked = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return [error.message for error in checked.iter_errors(value)]


@pytest.mark.data
def test_entries_are_valid_by_the_registrys_schema(entries):
    schema = yaml.safe_load(STANDARD.read_text())
    for _, entry in entries:
        assert wrong(entry, schema) == []
    # It can fail.
    for spoil in (
        lambda e: e.pop("status"),
        lambda e: e.update(more=1),
        lambda e: e.update(tier="3"),
        lambda e: e["deployment"]["basic"].update(data_curators=[]),
        lambda e: e["deployment"]["dp_variant"].update(variant_name="Pure"),
        lambda e: e["deployment"]["privacy_loss"]["privacy_parameters"].update(epsilon="1"),
    ):
        bad = json.loads(json.dumps(entries[0][1]))
        spoil(bad)
        assert wrong(bad, schema) != []


def test_what_it_says(entries):
    (tree, one), (_, boosted), (_, persons), (_, paid) = entries
    assert one["url_slug"] == "readmission-of-patients"
    basic = one["deployment"]["basic"]
    assert basic["data_product_type"] == "Machine learning model"
    assert basic["publication_date"] == tree.model.record.date
    assert basic["data_product_sector"] == "Healthcare"
    assert one["deployment"]["implementation"]["justification"] == SAID["justification"]
    loss = one["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0}
    assert loss["privacy_unit"] == "record"
    assert one["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert "2.72%" in loss["privacy_parameters_details"]
    of_boosting = boosted["deployment"]
    assert of_boosting["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    parameters = of_boosting["privacy_loss"]["privacy_parameters"]
    assert parameters["delta"] == 1e-6
    assert parameters["rho"] == float(Budget(1.0, delta=1e-6).limit)
    assert persons["deployment"]["privacy_loss"]["privacy_unit"].startswith("person")
    model = paid["deployment"]["deployment_model"]
    assert model["release_type"] == "Many releases"
    assert "epsilon 3" in model["release_type_details"]
    assert one["deployment"]["deployment_model"]["release_type"] == "One release"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "TODO"}, "placeholder"),
        ({"description": "..."}, "placeholder"),
        ({"intended_use": "<what for>"}, "placeholder"),
        ({"region": ""}, "placeholder"),
        ({"data_curators": []}, "list of names"),
        ({"data_curators": "A hospital"}, "list of names"),
        ({"registry_authors": ["?"]}, "placeholder"),
        ({"sector": "Health"}, "must be one of"),
        ({"publication_date": "2026"}, "must be a day"),
        ({"curator": "a"}, "not known"),
        ({"dynamic": "no"}, "true or false"),
        ({"name": 3}, "must be text"),
    ],
)
def test_what_only_people_know_is_not_invented(change, says):
    with pytest.raises(ReportError, match=says):
        Release.from_dict(SAID | change)


def test_a_schema_file_may_have_it(tmp_path):
    path = tmp_path / "schema.toml"
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in SAID.items()]
    path.write_text(PATIENTS.toml() + "\n[release]\n" + "\n".join(lines), encoding="utf-8")
    assert Schema.from_toml(path) == PATIENTS
    assert read_release(path) == Release.from_dict(SAID)


def test_all_that_is_missing_is_named():
    with pytest.raises(ReportError, match="name, data_curators, description, intended_use, region"):
        Release.from_dict({})


def test_a_model_that_is_not_private_is_not_registered():
    with pytest.warns(privet.PrivacyLeakWarning):
        seeded = privet.PrivateTreeClassifier(1.0, PATIENTS, random_state=1).fit(ROWS)
    with pytest.raises(ReportError, match="not private"):
        to_registry(Facts(seeded.to_model()), Release.from_dict(SAID))


def test_the_command(tmp_path):
    model, said, out = (tmp_path / name for name in ("model.json", "said.toml", "entry.yaml"))
    next(models()).save(model)
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in SAID.items()]
    said.write_text("[release]\n" + "\n".join(lines) + "\npublication_date = 2026-02-01\n")
    assert read_release(said).publication_date == "2026-02-01"

    def run(*more):
        command = [sys.executable, "-m", "privet", "report", model, "--out", out, *more]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    assert run("--format", "registry").returncode == 2
    assert run("--release", said).returncode == 2
    assert not out.exists()
    found = run("--format", "registry", "--release", said)
    assert found.returncode == 0, found.stderr
    entry = yaml.safe_load(out.read_text())
    assert entry["deployment"]["basic"]["publication_date"] == "2026-02-01"
    said.write_text("[release]\nname = 'x'\n")
    assert "only you can say" in run("--format", "registry", "--release", said, "--force").stderr
    said.write_text("[release")
    assert "not a TOML file" in run("--format", "registry", "--release", said, "--force").stderr
