"""docs/federation.md, step by step: five folders, five processes, one signed model."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import privet
from privet.datasets import make_stays
from privet.network import Certificate

from .sites import free_port

HOSPITALS = ("north", "south", "west")
PAGE = Path(privet.__file__).parents[2] / "docs" / "federation.md"


def run(folder, *words):
    """Run a command in a folder; return what it said."""
    return start(folder, *words).communicate(timeout=600)[0]


def start(folder, *words):
    source = str(Path(privet.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "privet", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def block_of(name):
    """Return the TOML of the page that begins with a comment."""
    return re.search(rf"```toml\n# {name}.*?\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


@pytest.mark.network
def test_the_page_can_be_followed(tmp_path):
    folders = {name: tmp_path / name for name in (*HOSPITALS, "study", "notary")}
    for folder in folders.values():
        folder.mkdir()
    study = folders["study"]
    # 1. Rows and a schema
    stays = pd.DataFrame(make_stays(3_000)).drop(columns="patient_id")
    for place, name in enumerate(HOSPITALS):
        stays.iloc[place::3].to_csv(folders[name] / f"{name}.csv", index=False)
    run(folders["north"], "schema", "draft", "north.csv", "--target", "readmitted",
        "--out", "draft.toml")  # fmt: skip
    schema = (folders["north"] / "draft.toml").read_text()
    assert "draft = true" in schema
    for folder in folders.values():
        (folder / "schema.toml").write_text(re.sub(r"(?m)^draft = true.*\n", "", schema))
    # 2. Keys
    for name in HOSPITALS:
        assert "Fingerprint: " in run(folders[name], "party", "keygen", name)
        (study / f"{name}.pem").write_bytes((folders[name] / f"{name}.pem").read_bytes())
    assert "Fingerprint: " in run(study, "coordinator", "keygen")
    assert "Fingerprint: " in run(folders["notary"], "dealer", "keygen", "notary")
    (study / "notary.pem").write_bytes((folders["notary"] / "notary.pem").read_bytes())
    prints = {
        name: Certificate.read(study / f"{name}.pem", name).fingerprint
        for name in (*HOSPITALS, "coordinator", "notary")
    }
    # 3. Books and policies
    port = free_port()
    for name in HOSPITALS:
        folder = folders[name]
        (folder / "coordinator.pem").write_bytes((study / "coordinator.pem").read_bytes())
        text = block_of("party.toml").replace("north", name).replace("7443", str(port))
        text = text.replace('fingerprint = "..."', f'fingerprint = "{prints["coordinator"]}"')
        text = text[: text.index("[studies.readmission.peers]")]
        peers = [f'{other} = "{prints[other]}"' for other in HOSPITALS if other != name]
        lines = [text, "[studies.readmission.peers]", *peers]
        lines += ["[studies.readmission.dealer]", f'notary = "{prints["notary"]}"']
        (folder / "party.toml").write_text("\n".join(lines) + "\n")
        run(folder, "ledger", f"{name}.ledger", "--create", "--epsilon", "2",
            "--schema", "schema.toml")  # fmt: skip
        run(folder, "party", "approve", "readmission")
        assert "would be answered" in run(folder, "party", "check")
    # 4. The study
    text = block_of("study.toml").replace("7443", str(port))
    text = text[: text.index("[parties.north]")]
    for name in HOSPITALS:
        text += f'[parties.{name}]\ncertificate = "{name}.pem"\nfingerprint = "{prints[name]}"\n'
    text += f'[dealer.notary]\ncertificate = "notary.pem"\nfingerprint = "{prints["notary"]}"\n'
    (study / "study.toml").write_text(text)
    # Somebody else deals
    text = block_of("dealer.toml").replace("7443", str(port))
    text = text.replace('fingerprint = "..."', f'fingerprint = "{prints["coordinator"]}"')
    for name in HOSPITALS:
        text = text.replace(f'{name} = "..."', f'{name} = "{prints[name]}"')
    (folders["notary"] / "dealer.toml").write_text(text)
    (folders["notary"] / "coordinator.pem").write_bytes((study / "coordinator.pem").read_bytes())
    words = ("fit", "--parties", "study.toml", "--learner", "topdown", "--epsilon", "1")
    serving = [start(folders[name], "party", "serve") for name in HOSPITALS]
    serving.append(start(folders["notary"], "dealer", "serve"))
    try:
        said = run(study, *words, "--check")
        assert said.count("has epsilon 1 left") == 3, said
        said = run(study, *words, "--out", "model.json")
        assert "Wrote model.json" in said, said
        assert "spent epsilon 1 " in said
        assert "notary is here" in said
    finally:
        for each in serving:
            each.send_signal(signal.SIGTERM)
            each.communicate(timeout=600)
    # 5. The signed model, and the books
    run(study, "sign", "--make-key", "--key", "signing.key")
    (kept,) = (study / "runs").iterdir()
    run(study, "sign", "model.json", "--key", "signing.key", "--run", kept)
    said = run(study, "verify", "model.json", "--key", "signing.pub")
    assert all(name in said for name in HOSPITALS), said
    for name in HOSPITALS:
        said = run(folders[name], "party", "status")
        assert re.search(r"readmissio.* 1 +0 ", said), said
        assert "question" in run(folders[name], "party", "log", "readmission")
        run(folders[name], "party", "close", "readmission")
        assert "1" in run(folders[name], "ledger", f"{name}.ledger")
