"""Nobody at one end of a line can run code at the other: nothing is unpickled after the start."""

import multiprocessing.connection
import pickle

import numpy as np
import pytest

from privet import Budget, LedgerStore, TopDownClassifier
from privet.federation import FederatedTable, Lost, ProcessLink, Refused
from privet.federation.wire import MOST_REFUSAL, Reply, WireError, encode

from .parties import (
    Bomb,
    forbid_pickle,
    make,
    make_babbling,
    make_nothing,
    make_odd,
    make_poisoned,
    make_with_ledger,
)

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


def test_a_coordinator_runs_no_code_at_a_party(tmp_path):
    link = ProcessLink("p", make, ("p", 50), patience=60.0)
    try:
        assert link.receive(link.send(0, "root", None)) == 1
        link._outbox.put(pickle.dumps(Bomb(tmp_path / "ran")))
        number = link.send(0, "root", None)
        with pytest.raises(Lost):  # the line ends: who sends such things asks nothing
            link.receive(number)
        link._process.join(20)
        assert not (tmp_path / "ran").exists()
    finally:
        link.close()


def test_a_party_runs_no_code_at_the_coordinator(tmp_path):
    link = ProcessLink("odd", make_babbling, (str(tmp_path / "ran"), "odd"), patience=60.0)
    try:
        root = link.receive(link.send(0, "root", None))
        with pytest.raises(Lost, match="answered nonsense"):
            link.receive(link.send(root, "noisy_counts", 1))
        assert not (tmp_path / "ran").exists()
    finally:
        link.close()


def test_nothing_is_unpickled_after_the_start(monkeypatch):
    """A whole fit, with both ends unable to unpickle anything."""
    links = [ProcessLink(f"p{k}", make_poisoned, (f"p{k}", 200, k, 4.0)) for k in range(2)]
    with FederatedTable(links) as table:  # all have started: they have answered
        monkeypatch.setattr(pickle, "loads", forbid_pickle)
        monkeypatch.setattr(pickle, "load", forbid_pickle)
        monkeypatch.setattr(multiprocessing.connection._ForkingPickler, "loads", forbid_pickle)
        with pytest.raises(AssertionError, match="was unpickled"):
            multiprocessing.connection._ForkingPickler.loads(b"")
        model = TopDownClassifier(2.0, max_nodes=1, n_thresholds=4).fit(table)
        monkeypatch.undo()
    assert len(table.parties) == 2
    assert model.privacy_.private


def test_an_answer_that_cannot_be_sent_is_a_failure_and_not_the_end_of_the_pipe():
    link = ProcessLink("odd", make_odd, ("strays", "odd"), patience=60.0)
    try:
        root = link.receive(link.send(0, "root", None))
        with pytest.raises(Lost, match="failed"):
            link.receive(link.send(root, "noisy_counts", 1))
        assert link.receive(link.send(0, "root", None)) == 2
    finally:
        link.close()


def test_a_question_that_cannot_be_sent_is_said_where_it_is_asked():
    link = ProcessLink("p", make, ("p", 50), patience=60.0)
    try:
        for odd in (object(), np.zeros(3), Budget(1.0), "\ud800", [float("nan")]):
            with pytest.raises(WireError):
                link.send(0, "root", odd)
        with pytest.raises(WireError, match="a question has a number"):
            link.send(-1, "root", None)
        assert link.receive(link.send(0, "root", None)) == 1
    finally:
        link.close()


@pytest.mark.parametrize(
    "message", [b"", encode(Reply(1, "answer"))], ids=["no message", "no question"]
)
def test_what_is_no_question_ends_the_line_and_settles_the_books(tmp_path, message):
    store = LedgerStore.create(tmp_path / "a.ledger", Budget(3.0), columns=["x", "c", "y"])
    link = ProcessLink("a", make_with_ledger, ("a", tmp_path / "a.ledger"), patience=60.0)
    try:
        root = link.receive(link.send(0, "root", None))
        link.receive(link.send(root, "noisy_counts", 0.25))
        link._outbox.put(message)
        with pytest.raises(Lost):
            link.receive(link.send(0, "root", None))
        link._process.join(20)
        assert float(store.left) == 2.75
    finally:
        link.close()


def test_a_long_refusal_is_cut():
    link = ProcessLink("b", make_nothing, ("long",), patience=60.0)
    try:
        with pytest.raises(Refused, match="'b' refuses: xxx") as caught:
            link.receive(link.send(0, "describe"))
        assert len(str(caught.value)) < MOST_REFUSAL + 50
    finally:
        link.close()
