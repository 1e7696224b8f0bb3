"""Under secure sums a tree has the law that it has on one table: the same noise, the same tree.

Scales and ties are not seen here, as both have the same noise: ``test_blind_choice`` has them.
"""

import itertools

import numpy as np
import pytest

from privet import Budget, Categorical, Numeric, Schema, TopDownClassifier
from privet.federation import FederatedTable, Party
from privet.federation.protocols.secure_sums import comparable
from privet.learners.topdown import make_view
from privet.privacy import DiscreteLaplace, NoisyMaxShare, PermuteAndFlip, Released, SeededNoise
from privet.tables import PrivateCells, list_candidates

from ..repeated import some_of  # noqa: TID252

THRESHOLDS = 7

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")


class Recorded(SeededNoise):
    """A party's noise, of which a list keeps all shares."""

    def __init__(self, seed):
        super().__init__(seed)
        self.drawn = []

    def draw(self, sampler):
        self.drawn.append(super().draw(sampler))
        return self.drawn[-1]


class Tape:
    """What the parties' shares made together, question by question."""

    def __init__(self, noises):
        assert len({len(noise.drawn) for noise in noises}) == 1
        self._left = [sum(shares) for shares in zip(*(n.drawn for n in noises), strict=True)]

    def take(self, count):
        first = self._left[0]
        found, rest = first[:count], first[count:]
        self._left[:1] = [rest] if rest.size else []
        assert found.size == count
        return found

    @property
    def is_over(self):
        return not self._left


def replay(monkeypatch, tape):
    """Let one table's answers have the noise of a tape, and its choices the parties' criterion."""
    choose_best = PrivateCells.choose_best

    def choose_alike(self, candidates, criterion, amount, *, how):
        classes, view = len(self.schema.classes), make_view(self.schema, THRESHOLDS)
        lines = comparable(criterion, classes, len(list_candidates(candidates, view)))
        return choose_best(self, candidates, lines, amount, how=how)

    def choose(self, scores, _):
        like = NoisyMaxShare(int(self.spread), self.epsilon, 1)
        return int(np.argmax(like.units * scores + like.step * tape.take(len(scores))))

    def release(self, exact, _):
        return Released(exact + tape.take(exact.size).reshape(exact.shape))

    monkeypatch.setattr(PrivateCells, "choose_best", choose_alike)
    monkeypatch.setattr(PermuteAndFlip, "choose", choose)
    monkeypatch.setattr(DiscreteLaplace, "release", release)


def rows(schema, count, seed):
    generator = np.random.default_rng(seed)
    x, c = generator.random(count), generator.choice(list("uvw"), count)
    classes = len(schema.classes)
    y = ((x * classes).astype(int) + (c == "u") + (generator.random(count) < 0.2)) % classes
    return np.array([[a, b] for a, b in zip(x, c, strict=True)], dtype=object), y


EPSILONS = (0.3, 4.0, 60.0)
CRITERIA = ((2, "gini"), (3, "gini"), (7, "gini"), (3, "max"))
OPTIONS = ({"max_depth": 5}, {}, {"min_weight": 0.02})


def is_one_of_twelve(k, j, i, skewed):
    """Every epsilon meets every criterion, and each of them all options, skewed and not."""
    return i == (k + j) % 3 and skewed == (k + j) % 2


@pytest.mark.parametrize(
    ("epsilon", "criterion", "option", "skewed"),
    some_of(itertools.product(range(3), range(4), range(3), range(2)), is_one_of_twelve),
)
def test_the_same_noise_makes_the_same_tree(monkeypatch, epsilon, criterion, option, skewed):
    epsilon, (classes, criterion) = EPSILONS[epsilon], CRITERIA[criterion]
    schema = Schema(
        {"x": Numeric(0, 1), "c": Categorical(list("uvw"))}, "y", classes=list(range(classes))
    )
    X, y = rows(schema, 600, classes)
    owner = y % 3 if skewed else np.arange(len(y)) % 3
    noises = [Recorded(seed) for seed in range(3)]
    parties = [
        Party(f"p{k}", X[owner == k], y[owner == k], schema, Budget(epsilon), random_state=noise)
        for k, noise in enumerate(noises)
    ]
    options = {"epsilon": epsilon, "criterion": criterion, "n_thresholds": THRESHOLDS}
    options |= OPTIONS[option]
    shared = TopDownClassifier(**options).fit(FederatedTable(parties))
    tape = Tape(noises)
    replay(monkeypatch, tape)
    alone = TopDownClassifier(schema=schema, random_state=0, **options).fit(X, y)
    assert shared.tree_.to_dict() == alone.tree_.to_dict()
    assert shared.privacy_.epsilon == alone.privacy_.epsilon == epsilon
    assert tape.is_over
    assert alone.tree_.n_leaves > 1 or epsilon < 1
