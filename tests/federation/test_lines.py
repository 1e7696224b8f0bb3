"""Nobody at one end of a line can run code at the other: nothing is unpickled after the start."""

import multiprocessing.connection
import pickle

import pytest

from privet import TopDownClassifier
from privet.federation import FederatedTable, Lost, ProcessLink

from .parties import Bomb, forbid_pickle, make, make_babbling, make_poisoned

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
    links = [ProcessLink(f"p{k}", make_poisoned, (f"p{k}", 200, k, 4.0)) for k in range(3)]
    with FederatedTable(links) as table:  # all have started: they have answered
        monkeypatch.setattr(pickle, "loads", forbid_pickle)
        monkeypatch.setattr(pickle, "load", forbid_pickle)
        monkeypatch.setattr(multiprocessing.connection._ForkingPickler, "loads", forbid_pickle)
        with pytest.raises(AssertionError, match="was unpickled"):
            multiprocessing.connection._ForkingPickler.loads(b"")
        model = TopDownClassifier(2.0, max_nodes=2).fit(table)
        monkeypatch.undo()
    assert len(table.parties) == 3
    assert model.privacy_.private
