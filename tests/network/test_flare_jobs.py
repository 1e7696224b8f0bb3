"""Jobs of NVFlare itself: its server and two clients, each a process, with mutual TLS."""

import importlib.util
from pathlib import Path

import pytest

from privet import TopDownClassifier, load
from privet.network import site

from .flared import STUDY, Project
from .sites import until
from .test_flare import GIVEN, check_books, in_one_process, tree

pytestmark = [
    pytest.mark.network,
    pytest.mark.filterwarnings("ignore:random_state is fixed", "ignore::DeprecationWarning"),
    pytest.mark.skipif(importlib.util.find_spec("nvflare") is None, reason="needs privet[nvflare]"),
]


def test_jobs_of_nvflare(tmp_path):
    """One start of NVFlare, which takes long, for three jobs: done, aborted, killed."""
    project = Project(tmp_path, epsilon=3.0)
    south = project.houses[1]
    learner = TopDownClassifier(**GIVEN)

    def said(name="server"):
        return (tmp_path / f"{name}.out").read_text()

    def submit(name, executor):
        return session.submit_job(str(project.write(name, executor, learner)))

    def ended(job):
        return session.wait_for_job(job, timeout=900)["status"]

    with project.running() as session:
        job = submit("done", "test_party.Seeded")
        assert ended(job) == "FINISHED:COMPLETED", said()
        (path,) = Path(session.download_job_result(job)).rglob("model.json")
        assert tree(load(path)) == tree(in_one_process())
        check_books(project)
        assert "question 9  'noisy_class_counts'" in said("south")
        # Its owner withdraws: nobody is asked anything, until somebody aborts the job.
        site.withdraw(south.policy, STUDY)
        job = submit("aborted", "test_party.Seeded")
        until(lambda: "has withdrawn the approval" in said(), 900)
        session.abort_job(job)
        until(lambda: "NVFlare has ended the job while party 'south'" in said(), 900)
        assert ended(job) == "FINISHED:ABORTED"
        check_books(project)
        # A client whose process is killed: the job ends, and every ledger says what it spent.
        site.approve(south.policy, STUDY)
        assert "COMPLETED" not in ended(submit("killed", "test_party.Dying"))
        assert said().count("a new job pays anew") > 1
        for house in project.houses:
            journal, ledger = house.books()
            assert journal == ledger
            assert 1 < ledger[1] < 2
