"""Detached signatures of models."""

import json
from contextlib import closing

import numpy as np
import pytest

from privet import TopDownClassifier
from privet.cli import main
from privet.network.runs import Run
from privet.network.signatures import (
    BadSignatureError,
    SignatureError,
    make_signing_key,
    sign,
    verify,
)
from privet.outputs import OutputFile

from .houses import SCHEMA, STUDY, Town, rows


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A model with its signature, and the signer's public key."""
    folder = tmp_path_factory.mktemp("released")
    table = rows(100, 0)
    learner = TopDownClassifier(epsilon=1.0, schema=SCHEMA, max_depth=1)
    learner.fit(table).to_model().save(folder / "model.json")
    make_signing_key(folder / "signing.key", folder / "signing.pub")
    with OutputFile(folder / "model.json.sig") as out:
        sign(
            folder / "model.json",
            folder / "signing.key",
            out,
            study=STUDY,
            parties={"north": "ab" * 32},
        )
    return folder


@pytest.fixture
def folder(released, tmp_path):
    for path in released.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / path.name).chmod(0o600)
    return tmp_path


def check(folder):
    return verify(folder / "model.json", folder / "model.json.sig", folder / "signing.pub")


def test_a_signature_says_which_study_and_parties(folder):
    statement = check(folder)
    assert statement["study"] == STUDY
    assert statement["parties"] == {"north": "ab" * 32}


def test_another_model_or_one_that_was_changed(folder):
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text + " ")
    with pytest.raises(BadSignatureError, match="not the file that was signed"):
        check(folder)


@pytest.mark.parametrize("field", ["study", "parties", "time", "card", "model", "learner"])
def test_a_statement_that_was_changed(field, folder):
    path = folder / "model.json.sig"
    signed = json.loads(path.read_text())
    value = signed["statement"][field]
    signed["statement"][field] = {} if field == "parties" else value[:-1] + other(value[-1])
    path.write_text(json.dumps(signed))
    with pytest.raises(BadSignatureError, match="was changed"):
        check(folder)


def other(character):
    return "0" if character != "0" else "1"


def test_another_signer(folder):
    make_signing_key(folder / "other.key", folder / "other.pub")
    with pytest.raises(BadSignatureError, match="another key"):
        verify(folder / "model.json", folder / "model.json.sig", folder / "other.pub")
    # Who signs for himself, under the name of another key, does not pass either.
    with OutputFile(folder / "model.json.sig") as out:
        sign(folder / "model.json", folder / "other.key", out)
    signed = json.loads((folder / "model.json.sig").read_text())
    make = json.loads((folder / "model.json.sig").read_text())
    make["signer"] = verify_signer(folder)
    (folder / "model.json.sig").write_text(json.dumps(make))
    assert signed["signer"] != make["signer"]
    with pytest.raises(BadSignatureError, match="does not hold"):
        check(folder)


def verify_signer(folder):
    with OutputFile(folder / "again.sig") as out:
        sign(folder / "model.json", folder / "signing.key", out)
    return json.loads((folder / "again.sig").read_text())["signer"]


def test_damaged_signature_files(folder):
    path = folder / "model.json.sig"
    good = path.read_bytes()
    generator = np.random.default_rng(3)
    for _ in range(300):
        damaged = bytearray(good)
        damaged[generator.integers(len(damaged))] = generator.integers(256)
        path.write_bytes(bytes(damaged))
        try:
            check(folder)
        except SignatureError:
            continue
        assert json.loads(bytes(damaged)) == json.loads(good)  # white space only
    for text in ("", "[]", "{}", '{"format": "privet-signature"}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(SignatureError):
            check(folder)


def test_keys_that_are_none(folder):
    (folder / "signing.key").chmod(0o644)
    with OutputFile(folder / "x.sig") as out, pytest.raises(SignatureError, match="chmod 600"):
        sign(folder / "model.json", folder / "signing.key", out)
    with pytest.raises(SignatureError, match="public key"):
        verify(folder / "model.json", folder / "model.json.sig", folder / "model.json")
    with pytest.raises(SignatureError, match="not replaced"):
        make_signing_key(folder / "signing.key", folder / "new.pub")
    assert not (folder / "new.pub").exists()


def test_the_commands(folder, monkeypatch, capsys):
    def privet(*arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.argv", ["privet", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return caught.value.code or 0, captured.out, captured.err

    town = Town(folder / "town")
    key = ("--key", "mine.key")
    code, made, _ = privet("sign", "--make-key", *key)
    assert code == 0
    code, _, error = privet("sign", "--make-key", *key, "--force")
    assert code == 2
    assert "keys are not replaced" in error
    code, out, _ = privet(
        "sign", "model.json", *key, "--study", town.folder / "study.toml", "--out", "s.sig"
    )
    assert code == 0
    assert f"Study: '{STUDY}'" in out
    assert "'north'" in out
    assert privet("sign", "model.json", *key, "--run", "nowhere")[0] == 2
    checked = ("verify", "model.json", "--key", "mine.pub", "--signature", "s.sig")
    code, out, _ = privet(*checked)
    assert code == 0
    assert "Verdict: the signature holds" in out
    (fingerprint,) = [line.split(": ")[1] for line in made.split("\n") if "Fingerprint" in line]
    assert f"Signer: {fingerprint}" in out
    (folder / "model.json").write_text((folder / "model.json").read_text() + "\n")
    code, _, error = privet(*checked)
    assert code == 7
    assert "not the file that was signed" in error
    assert privet("verify", "nothing.json", "--key", "mine.pub")[0] == 2
    assert privet("sign", "nothing.json", *key)[0] == 2
    assert privet("sign", *key)[0] == 2
    assert not (folder / "nothing.json.sig").exists()


def test_a_run_says_who_stayed(folder, monkeypatch, capsys):
    prints = {name: 32 * mark for name, mark in [("north", "ab"), ("south", "cd"), ("west", "ef")]}
    plan = {"study": STUDY, "learner": "TopDownClassifier", "parties": prints}
    with closing(Run.create(folder / "run", plan)) as run:
        run.keep("north", 1, b"question", b"answer", sync=True)
        run.lose("south", 1, b"question")
        run.went_on()
        run.lose("west", 2, b"the last one")  # nothing is asked after it: it took part
    monkeypatch.chdir(folder)

    def privet(*arguments):
        command = ("sign", "model.json", "--key", "signing.key", "--out", "s.sig", "--force")
        monkeypatch.setattr("sys.argv", ["privet", *command, *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code or 0, capsys.readouterr().err

    assert privet("--run", "run") == (0, "")
    statement = verify(folder / "model.json", folder / "s.sig", folder / "signing.pub")
    assert statement["study"] == STUDY
    assert statement["parties"] == {"north": prints["north"], "west": prints["west"]}
    assert privet("--run", "run", "--study", "study.toml")[0] == 2
    (folder / "run" / "seed").unlink()
    code, error = privet("--run", "run")
    assert code == 2
    assert "there is no run in run" in error
    plan["learner"] = "PrivaTreeClassifier"
    Run.create(folder / "other", plan).close()
    code, error = privet("--run", "other")
    assert code == 2
    assert "name the run that made the model" in error
