"""Jobs of NVFlare itself: its server and two clients, each a process, with mutual TLS.

Each test starts NVFlare once, which takes long, for several jobs.
"""

import importlib.util
from pathlib import Path

import pytest

from privet import TopDownClassifier, load
from privet.network import site

from .flared import STUDY, Project, end
from .sites import Relay, until
from .test_flare import GIVEN, check_books, in_one_process, tree

pytestmark = [
    pytest.mark.network,
    pytest.mark.filterwarnings("ignore:random_state is fixed", "ignore::DeprecationWarning"),
    pytest.mark.skipif(importlib.util.find_spec("nvflare") is None, reason="needs privet[nvflare]"),
]


def test_jobs_of_nvflare(tmp_path):
    """Done, aborted, killed."""
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


def test_lines_that_are_cut_and_a_server_that_dies(tmp_path):
    """South's line leads through a relay that is cut: for a moment, then for good."""
    relays = []

    def lead(port):
        relays.append(Relay(port))
        return relays[0].number

    project = Project(tmp_path, relay=lead, patience=120, epsilon=4.0, total=5.0)
    learner = TopDownClassifier(**GIVEN)

    def said(name="server"):
        return (tmp_path / f"{name}.out").read_text()

    def charged():
        return said("south").count("  question ")

    def submit(session, name, executor="test_party.Slow"):
        return session.submit_job(str(project.write(name, executor, learner)))

    def ended(session, job):
        return session.wait_for_job(job, timeout=900)["status"]

    def true_books():
        found = [house.books() for house in project.houses]
        assert all(journal == ledger for journal, ledger in found)
        return [journal[1] for journal, _ in found]

    with project.running() as session:
        # For a moment, again and again: NVFlare dials again, and answers are sent again.
        job = submit(session, "cut")
        for question in range(1, 4):
            until(lambda question=question: charged() >= question, 900)
            relays[0].cut()
        assert ended(session, job) == "FINISHED:COMPLETED", said()
        (path,) = Path(session.download_job_result(job)).rglob("model.json")
        assert tree(load(path)) == tree(in_one_process())
        check_books(project)
        # For good: the job ends by the study's patience, and its log says who was waited for.
        before = charged()
        job = submit(session, "gone")
        until(lambda: charged() > before, 900)
        relays[0].broken = True
        relays[0].cut()
        assert "COMPLETED" not in ended(session, job)
        assert "(party 'south' did not answer in time)" in said()
        spent = true_books()
        assert all(1 < each < 2 for each in spent)
        # The line is back, and the server dies: nobody is charged for what was not asked.
        relays[0].broken = False
        before = charged()
        submit(session, "dead")
        until(lambda: charged() > before, 900)
        end(project.started["server"])
        after = true_books()
        assert all(old < new < old + 1 for old, new in zip(spent, after, strict=True))
        # Started again, it finds the clients; the journal is free, and a new job pays anew.
        project.start("server")
        again = project.session()
        job = submit(again, "anew", "test_party.Seeded")
        assert ended(again, job) == "FINISHED:COMPLETED", said()
        again.close()
        assert true_books() == [each + 1 for each in after]
