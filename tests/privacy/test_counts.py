"""Released numbers of records: which are remembered, and what they give reason to doubt."""

import math

import numpy as np
import pytest

from privet import Budget, Categorical, Numeric, PrivateTable, Schema
from privet.federation import FederatedTable, Party
from privet.privacy import Ledger, NoisyCount, doubts_of, say_counts

SCHEMA = Schema(
    {"x": Numeric(0, 1), "c": Categorical(["u", "v"])}, target="y", classes=["no", "yes"]
)
ROWS = [[k / 100, "uv"[k % 2]] for k in range(100)]
LABELS = ["no", "yes", "yes", "perhaps"] * 25


def table(epsilon=math.inf):
    return PrivateTable(ROWS, LABELS, SCHEMA, Budget(epsilon), random_state=0)


pytestmark = pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")


def test_numbers_of_the_whole_table_are_remembered():
    opened = table()
    root = opened.root()
    assert opened.ledger.counts == ()
    root.noisy_counts(1.0)
    (count,) = opened.ledger.counts
    assert abs(count.total - 75) < 50
    assert count.deviation == pytest.approx(math.sqrt(2))
    parts = root.partition("c")
    parts.noisy_class_counts(math.inf)
    assert opened.ledger.counts[1] == NoisyCount((25, 50), 0.0)
    parts.noisy_counts(math.inf)  # less noise than before
    assert opened.ledger.counts[0] == NoisyCount((75,), 0.0)


def test_the_noise_of_cells_adds_up():
    opened = table()
    parts = opened.root().partition("c")
    parts.noisy_counts([0.5, 1.0, 2.0])
    (count,) = opened.ledger.counts
    assert count.deviation == pytest.approx(math.sqrt(2 * (4 + 1 + 1 / 4)))
    opened.root().noisy_class_counts(0.1)
    assert opened.ledger.counts[1].total_deviation == pytest.approx(
        math.sqrt(2) * 10 * math.sqrt(2)
    )


def test_numbers_of_a_part_of_the_table_are_not():
    opened = table()
    parts = opened.root().partition("c")
    parts[0].noisy_counts(math.inf)
    parts.take(np.array([0, 1])).noisy_counts(math.inf)
    parts[0].partition("x").noisy_counts(math.inf)
    assert opened.ledger.counts == ()
    opened.parts(3, 0).noisy_counts(math.inf)
    assert opened.ledger.counts == (NoisyCount((75,), 0.0),)


def test_books_know_which_cells_are_all():
    root = Ledger(Budget(1.0)).root
    three = root.divide(np.zeros(3, dtype=np.intp))
    assert root.cover_all
    assert three.cover_all
    assert not three.take(np.array([0, 2])).cover_all
    assert three.take(np.array([2, 0, 1])).cover_all
    assert not three.divide(np.array([0, 0, 2])).cover_all  # a cell without parts
    assert three.divide(np.array([0, 1, 1, 2])).cover_all
    assert not three.take(np.array([1])).divide(np.array([0, 0])).cover_all
    assert not root.take(np.zeros(0, dtype=np.intp)).cover_all


def test_a_session_has_its_own_and_tells_the_table():
    opened = table(4.0)
    fit = opened.session(Budget(1.0))
    deeper = fit.session(Budget(0.5))
    deeper.root().noisy_counts(0.5)
    assert fit.ledger.counts == deeper.ledger.counts == opened.ledger.counts != ()
    assert opened.session(Budget(1.0)).ledger.counts == ()


@pytest.mark.parametrize(
    ("protocol", "honest", "noises"), [("noisy-counts", None, 4), ("secure-sum", 2, 2)]
)
def test_parties(protocol, honest, noises):
    pytest.importorskip("cryptography")
    parties = [
        Party(f"p{k}", ROWS[k::4], LABELS[k::4], SCHEMA, Budget(9.0), random_state=k)
        for k in range(4)
    ]
    with FederatedTable(parties, protocol=protocol, honest=honest) as federated:
        federated.root().noisy_counts(2.0)
        federated.root().noisy_class_counts(1.0)
        rows, classes = federated.ledger.counts
    assert rows.deviation == pytest.approx(math.sqrt(2 * noises) / 2)
    assert classes.deviation == pytest.approx(math.sqrt(2 * noises))
    assert abs(rows.total - 75) < 60


def test_within_noise_of_zero():
    assert NoisyCount((30,), 10.0).is_empty
    assert not NoisyCount((31,), 10.0).is_empty
    assert NoisyCount((0,), 0.0).is_empty
    assert NoisyCount((100, 4), 2.0).empty_classes == (1,)
    (doubt,) = doubts_of([NoisyCount((-3,), 10.0)], 500, None)
    assert doubt.startswith("-3 records is no more than noise")
    assert "privet schema check" in doubt
    (doubt,) = doubts_of([NoisyCount((900, 4), 2.0)], None, ["alive", "dead"])
    assert doubt.startswith("of class 'dead' no more records were counted than noise would make")
    (doubt,) = doubts_of([NoisyCount((900, 4), 2.0)], None, None)
    assert doubt.startswith("of class 2 no more")


def test_far_below_what_was_declared():
    counts = [NoisyCount((790,), 2.0)]
    (doubt,) = doubts_of(counts, 1_000, None)
    assert doubt.startswith("about 790 records were used, far below the 1,000 rows")
    assert doubts_of(counts, 900, None) == []
    assert doubts_of(counts, None, None) == []
    assert doubts_of([NoisyCount((790,), 20.0)], 1_000, None) == []  # it may be noise


def test_nothing_was_released():
    assert "nothing was released about how many" in doubts_of([], 1_000, None)[0]
    assert "are not in this file" in doubts_of([], None, None, bought=True)[0]
    assert say_counts([], None) == ["no number of records was released"]


def test_many_classes_are_not_all_told():
    (line,) = say_counts([NoisyCount(tuple(range(26)), 1.5)], [*"abcdefghijklmnopqrstuvwxyz"])
    assert line.endswith("class 'e' 4 and so on")
    (doubt,) = doubts_of([NoisyCount((9_999, *[0] * 25), 1.5)], None, None)
    assert "class 6 and others" in doubt
