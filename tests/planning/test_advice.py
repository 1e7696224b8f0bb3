"""The plan: its parts, what it says of protocols against a simulated node, and bad input."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from privet import (
    Categorical,
    Numeric,
    PrivateTable,
    PrivateTreeClassifier,
    PrivaTreeClassifier,
    Schema,
    TopDownClassifier,
)
from privet.errors import BudgetError, PrivacyLeakWarning
from privet.federation import FederatedTable, Party
from privet.learners import privatree, topdown
from privet.planning import (
    PlanError,
    exponential_loss,
    federated,
    label_loss,
    make_plan,
    protocols,
)
from privet.planning.advice import BINS, DEEPEST_APART, LABEL_ERROR, MOST_BINS
from privet.planning.protocols import gain_slope
from privet.privacy import EXPONENTIAL_KINDS, Budget
from privet.tables import Split, list_candidates


def gini(counts):
    rows = counts.sum(axis=-1)
    return rows - (counts**2).sum(axis=-1) / np.maximum(rows, 1e-9)


def scores_of(histograms):
    """Return minus the loss of every cut, from histograms (feature, bin, class)."""
    left = np.cumsum(histograms, axis=1)[:, :-1]
    right = histograms.sum(axis=1, keepdims=True) - left
    return -(gini(np.maximum(left, 0)) + gini(np.maximum(right, 0))).ravel()


class Node:
    """A node of a table that k parties hold, and one split of it by every protocol."""

    def __init__(self, rng, rows, features, bins, parties, strength):
        x = rng.integers(0, bins, (rows, features))
        y = (rng.random(rows) < 0.5 + strength * np.where(x[:, 0] >= bins // 2, 0.5, -0.5)) * 1
        who = rng.integers(0, parties, rows)
        self.rng, self.parties, self.features = rng, parties, features
        self.parts = np.zeros((parties, features, bins, 2))
        for j in range(features):
            np.add.at(self.parts, (who, j, x[:, j], y), 1)
        self.all = self.parts.sum(axis=0)
        self.scores = scores_of(self.all)

    def lost(self, chosen):
        return self.scores.max() - self.scores[chosen]

    def flip(self, scores, scale):
        return int((scores + self.rng.exponential(scale, scores.shape)).argmax())

    def single_machine(self, e):
        return self.lost(self.flip(self.scores, 2 / e))

    def histograms(self, e, noises):
        noise = self.rng.laplace(0, self.features / e, (noises, *self.all.shape)).sum(axis=0)
        return self.lost(scores_of(self.all + noise).argmax())

    def secure(self, e):
        """Shares of the noise make one noise on the sums of the parties' own scores."""
        return self.lost(self.flip(sum(map(scores_of, self.parts)), 2 / e))

    def local(self, e):
        own = sorted({self.flip(scores_of(part), 4 / e) for part in self.parts})
        left = np.cumsum(self.all, axis=1)[:, :-1].reshape(-1, 2)[own]
        tables = np.stack([left, self.all.sum(axis=1)[0] - left], axis=1)
        noise = self.rng.laplace(0, 2 * len(own) / e, (self.parties, *tables.shape)).sum(axis=0)
        return self.lost(own[int((-gini(np.maximum(tables + noise, 0)).sum(axis=1)).argmax())])

    def all_protocols(self, e):
        return {
            "single machine": self.single_machine(e),
            "secure sum": self.secure(e),
            "LocalRNM": self.local(e),
            "NoisyCounts": self.histograms(e, self.parties),
        }


@pytest.mark.parametrize(("parties", "e"), [(4, 0.33), (24, 0.8)])
def test_losses_and_their_order_on_a_simulated_node(parties, e):
    """Random rows: what is said stays above what is lost, and the winner wins."""
    rng, features, bins = np.random.default_rng(parties), 10, 16
    said = {
        one.name: one.split_loss
        for one in protocols(
            e, 1.0, candidates=features * (bins - 1), features=features, bins=bins, parties=parties
        )
    }
    runs = [Node(rng, 2000, features, bins, parties, 0.5).all_protocols(e) for _ in range(60)]
    lost = {name: np.mean([run[name] for run in runs]) for name in said}
    assert all(lost[name] <= said[name] for name in said)
    order, expected = (sorted(losses, key=losses.get) for losses in (lost, said))
    assert set(order[:2]) == set(expected[:2]) == {"single machine", "secure sum"}
    if parties == 4:
        assert order[2] == expected[2] == "LocalRNM"


def test_noise_of_counts():
    """Deviations against draws: scale features / e per cell, half of the cells on a side."""
    rng, features, bins, parties, e, f = np.random.default_rng(0), 6, 8, 5, 0.5, 0.25
    found = protocols(e, f, candidates=42, features=features, bins=bins, parties=parties, honest=3)
    by_name = {one.name: one for one in found}
    cells = rng.laplace(0, features / e, (20_000, parties, bins // 2)).sum(axis=(1, 2))
    assert by_name["NoisyCounts"].count_deviation == pytest.approx(cells.std(), rel=0.03)
    own = rng.laplace(0, 2 * parties / e, (20_000, parties)).sum(axis=1)
    assert by_name["LocalRNM"].count_deviation == pytest.approx(own.std(), rel=0.03)
    labels = rng.laplace(0, 1 / f, (20_000, parties)).sum(axis=1)
    assert by_name["NoisyCounts"].label_deviation == pytest.approx(labels.std(), rel=0.03)
    assert by_name["single machine"].count_deviation is None
    assert by_name["secure sum"].label_deviation is None


def test_noise_of_choices_among_parties():
    """Five parties, of which three make the noise: losses against draws, at the worst gap."""
    rng, e, f, shares = np.random.default_rng(1), 0.5, 0.25, 5 / 3
    given = {"candidates": 42, "features": 6, "bins": 8, "parties": 5}
    single, secure, *_ = protocols(e, f, **given, honest=3)
    everyone = protocols(e, f, **given)[1]
    assert everyone.split_loss == single.split_loss < secure.split_loss
    assert everyone.label_loss == single.label_loss < secure.label_loss
    for candidates, scale, said in ((42, 2 / e, secure.split_loss), (2, 1 / f, secure.label_loss)):
        noise = rng.gamma(shares, scale, (20_000, candidates))
        gaps = np.linspace(0.1, 8, 30) * scale
        behind = [(g * ((noise[:, 1:].max(axis=1) - g) > noise[:, 0])).mean() for g in gaps]
        assert max(behind) == pytest.approx(said, rel=0.06)


@pytest.mark.parametrize("classes", [2, 3, 5, 6, 10, 50])
def test_the_slope_of_a_gain(classes):
    """No table is steeper; a pure node with a small child is as steep."""
    rng, bound = np.random.default_rng(classes), gain_slope(classes)

    def slopes(counts):
        p = counts / counts.sum(axis=-1, keepdims=True)
        return 1 - 2 * p + (p**2).sum(axis=-1, keepdims=True)

    def length(children):
        found = slopes(children.sum(axis=1, keepdims=True)) - slopes(children)
        return np.sqrt((found**2).sum(axis=(1, 2))).max()

    for evenness in (0.02, 0.1, 1.0, 20.0):
        for other in (0.02, 0.1, 1.0, 20.0):
            sides = [rng.dirichlet([each] * classes, 2000) for each in (evenness, other)]
            parts = np.stack([rng.random(2000) ** 6, np.ones(2000)], axis=1)
            assert length(np.stack(sides, axis=1) * parts[..., None] + 1e-9) <= bound * 1.0001
    pure = np.eye(classes)[0] * 1e9
    of_one, of_all = np.eye(classes)[1], np.arange(classes) > 0
    steepest = [length(np.array([[pure, child]]) + 1e-6) for child in (of_one, of_all)]
    assert max(steepest) == pytest.approx(bound, rel=1e-3)
    assert steepest[0] == pytest.approx(math.sqrt(8), rel=1e-3)


def test_the_librarys_labels_lose_what_the_plan_says():
    """Labels of 8 leaves by ``choose_labels``, the gap being the worst."""
    leaves, epsilon = 8, 0.25
    schema = Schema({"x": Numeric(0, leaves, bins=leaves)}, target="y", classes=[0, 1])
    lead = round(1 / epsilon)  # where a swap costs most
    x = np.repeat(np.arange(leaves) + 0.5, 60 + lead)
    y = np.tile(np.r_[np.zeros(30 + lead, int), np.ones(30, int)], leaves)
    table = PrivateTable(x.reshape(-1, 1), y, schema, Budget(1000.0))
    cells = table.root().split([Split(0, (*range(leaves), leaves))])
    labels = np.array([cells.choose_labels(Fraction(1, 4))[:leaves] for _ in range(500)])
    said = label_loss(2, epsilon)
    slack = 5 * lead / 2 / math.sqrt(labels.size)
    assert lead * np.mean(labels == 1) == pytest.approx(said, abs=slack)
    assert slack < said / 4  # a factor of two would be seen


def test_losses_grow_with_depth_and_shrink_with_rows_and_epsilon():
    small, rich = make_plan(2000, 0.5, parties=3), make_plan(20_000, 0.5, parties=3)
    dear = make_plan(2000, 5.0, parties=3)
    for name, levels in small.levels.items():
        losses = [level.loss for level in levels]
        assert losses == sorted(losses)
        for better in (rich, dear):
            assert better.depths[name] >= small.depths[name]
            assert all(
                new.loss <= old.loss + 1e-12
                for new, old in zip(better.levels[name], levels, strict=True)
            )


def test_budgets_add_up_and_labels_get_what_they_need():
    plan = make_plan(50_000, 1.0)
    for level in plan.levels["single machine"]:
        assert sum(level.split_epsilons) + level.label_epsilon == pytest.approx(1.0)
        assert level.gain_epsilons == ()
        assert level.label_epsilon <= 0.5
        if level.label_epsilon < 0.5:
            assert level.label_loss == pytest.approx(LABEL_ERROR)
    leaves = plan.affordable_leaves
    assert leaves * label_loss(2, 0.5) <= LABEL_ERROR * 50_000 < (leaves + 1) * label_loss(2, 0.5)


def test_who_wins():
    alone = make_plan(10_000, 1.0)
    assert (alone.winner, alone.advantage, list(alone.levels)) == (
        "single machine", None, ["single machine"]
    )  # fmt: skip
    few, many = make_plan(50_000, 1.0, parties=3), make_plan(50_000, 1.0, parties=60)
    assert (few.winner, many.winner) == ("secure sum", "secure sum")
    assert few.advantage > 1 < many.advantage
    assert make_plan(5, 1.0, parties=50).depth == 0  # more parties than rows


def test_the_plan_for_parties_is_what_the_learner_pays():
    """Told depth and rows, TopDownClassifier charges what the plan says, level by level."""
    schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)}, target="y", classes=[0, 1])
    rng = np.random.default_rng(3)
    x = rng.random((4000, 2))
    y = ((x[:, 0] > 0.5) & (x[:, 1] > 0.3)) * 1
    parties = [Party(str(k), x[k::2], y[k::2], schema, Budget(10.0)) for k in range(2)]
    plan = make_plan(4000, 8.0, numbers=2, parties=2)
    said = plan.levels["secure sum"][1]
    model = TopDownClassifier(epsilon=8.0, max_depth=2, min_gain=0.0, n_rows=4000)
    model.fit(FederatedTable(parties))
    assert model.tree_.depth == 2
    paid = [entry.epsilon for entry in model.privacy_.entries]
    pairs = zip(said.split_epsilons, said.gain_epsilons, strict=True)
    assert paid == pytest.approx([*(cost for pair in pairs for cost in pair), said.label_epsilon])
    assert sum(paid) == pytest.approx(8.0)
    view = topdown.make_view(schema, topdown.THRESHOLDS)
    offered = list_candidates(topdown.make_candidates(view, missing=True), view)
    assert plan.candidates == len(offered)
    levels = topdown.make_levels(Fraction(8), 4000, federated.make_options(federated.BINS))
    assert plan.auto_depth == len(levels)


@pytest.mark.parametrize(("rows", "epsilon"), [(10**7, 3e-4), (10**8, 1e-3), (10**9, 3e-3)])
def test_a_secure_sum_is_not_refused_at_the_depth_that_is_taken(rows, epsilon):
    depth = federated.auto_depth(epsilon, rows, federated.BINS, shared=True)
    shares = federated.make_shares(epsilon, rows, depth, federated.BINS)
    assert federated.refusal(shares, 300, 2, 4) is None
    deeper = federated.auto_depth(epsilon, rows, federated.BINS, shared=False)
    shares = federated.make_shares(epsilon, rows, depth + 1, federated.BINS)
    assert deeper > depth
    assert federated.refusal(shares, 300, 2, 4) is not None


def test_the_plan_has_the_estimators_defaults():
    options = TopDownClassifier()._check_parameters(
        Schema({"a": Numeric(0, 1)}, target="y", classes=[0, 1])
    )["options"]
    assert federated.make_options(federated.BINS) == options


SMALL = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)}, target="y", classes=[0, 1])


@pytest.mark.parametrize("depth", [2, 8])
def test_the_plan_for_one_machine_is_what_the_learner_pays(depth):
    plan = make_plan(4000, 1.0, numbers=2)
    said = plan.levels["single machine"][depth - 1]
    model = PrivaTreeClassifier(epsilon=1.0, binning="uniform", max_depth=depth)
    options = model._check_parameters(SMALL)["options"]
    paid = privatree.make_plan(SMALL, 4000, Fraction(1), options)
    assert plan.estimator == 'PrivaTreeClassifier(binning="uniform")'
    assert said.label_epsilon == pytest.approx(float(paid.leaf), rel=1e-6)
    assert said.split_epsilons == pytest.approx([float(paid.node)] * depth)
    assert (paid.quantile, paid.bins) == (None, BINS)


@pytest.mark.parametrize(("numbers", "categories"), [(2, []), (0, [2]), (1, [2, 3, 9, 40])])
def test_the_plan_for_one_machine_has_the_learners_candidates_and_mechanism(numbers, categories):
    plan = make_plan(4000, 1.0, numbers=numbers, categories=categories, max_depth=3)
    features = {f"n{k}": Numeric(0, 1) for k in range(numbers)}
    features |= {f"c{k}": Categorical(range(size)) for k, size in enumerate(categories)}
    schema = Schema(features, target="y", classes=[0, 1])
    model = PrivaTreeClassifier(1.0, schema, binning="uniform", max_depth=1, random_state=0)
    options = model._check_parameters(schema)["options"]
    assert plan.candidates == sum(cuts for cuts, _ in privatree.count_sizes(schema, options))
    level = plan.levels["single machine"][0]
    epsilon, number = level.split_epsilons[0], plan.candidates
    assert level.protocol.split_loss == pytest.approx(exponential_loss(number, epsilon, 2.0))
    with pytest.warns(PrivacyLeakWarning):
        model.fit(np.array([[0.5] * len(features)]), [1])
    (chosen,) = [e for e in model.privacy_.entries if e.question.kind == "split"]
    assert chosen.mechanism.kind in EXPONENTIAL_KINDS


def test_plans_say_whose_trees_they_are_and_how_they_share():
    """One machine and "single machine" among parties are different things."""
    alone, apart = make_plan(20_000, 1.0), make_plan(20_000, 1.0, parties=4)
    assert alone.levels["single machine"] != apart.levels["single machine"]
    assert alone.estimator.startswith("PrivaTreeClassifier")
    assert "levels share the rest equally" in alone.sharing
    assert apart.estimator == "TopDownClassifier"
    assert f"a level {topdown.DECAY} of what the level above" in apart.sharing
    assert f"gains {topdown.GAIN_SHARE} of a level" in apart.sharing
    first, second, *_ = apart.levels["single machine"][4].split_epsilons
    assert second / first == pytest.approx(float(topdown.DECAY))


def test_more_bins_and_splits_than_the_estimators_take_are_not_planned():
    TopDownClassifier(n_thresholds=MOST_BINS - 1)._check_parameters(SMALL)
    PrivaTreeClassifier(max_bins=MOST_BINS)._check_parameters(SMALL)
    TopDownClassifier(max_nodes=2**DEEPEST_APART - 1)._check_parameters(SMALL)
    for model in (
        TopDownClassifier(n_thresholds=MOST_BINS),
        PrivaTreeClassifier(max_bins=MOST_BINS + 1),
        TopDownClassifier(max_nodes=2 ** (DEEPEST_APART + 1) - 1),
    ):
        with pytest.raises(BudgetError, match=r"from|between"):
            model._check_parameters(SMALL)


def test_a_tree_that_the_default_cannot_fill_is_told():
    plan = make_plan(10**8, 100.0, parties=4, max_depth=DEEPEST_APART)
    assert 2**plan.depth - 1 > plan.max_nodes == TopDownClassifier().max_nodes
    assert make_plan(10**8, 100.0).max_nodes is None


@pytest.mark.parametrize("parties", [1, 3])
@pytest.mark.parametrize("tolerance", [0.5, 0.999])
def test_a_large_tolerance_does_not_make_every_tree_affordable(parties, tolerance):
    """A loss is cut at that of a guess, 0.5; compared after that, depth 10 was affordable."""
    plan = make_plan(1, 0.001, tolerance=tolerance, parties=parties)
    assert plan.depth == plan.affordable_leaves == 0
    assert not any(level.affordable for levels in plan.levels.values() for level in levels)
    loose, strict = (make_plan(10_000, 1.0, parties=parties, tolerance=t) for t in (0.6, 0.4))
    assert max(strict.depths.values()) < 10 > max(loose.depths.values())
    for name, levels in loose.levels.items():
        assert all(level.affordable == (level.uncapped <= 0.6) for level in levels)
        assert loose.depths[name] >= strict.depths[name]


@pytest.mark.parametrize("parties", [1, 3])
@pytest.mark.parametrize("epsilon", [100.0, 1e100, 1.7e308])
def test_huge_budgets(parties, epsilon):
    plan = make_plan(2 * 10**9, epsilon, parties=parties)
    assert plan.depth == 10
    assert plan.affordable_leaves == 2 * 10**9  # not more than there are rows
    assert plan.advantage is None if parties == 1 else plan.advantage > 1


def test_tiny_budgets():
    assert make_plan(100, 1e-100, parties=3).depth == 0
    with pytest.raises(PlanError, match="epsilon must be at least 1e-100"):
        make_plan(100, 1e-320)


@pytest.mark.parametrize("parties", [1, 3])
def test_a_category_may_have_one_value(parties):
    """A record has it, or it is missing or unknown: a schema may say so."""
    plan = make_plan(10_000, 1.0, numbers=0, categories=[1], parties=parties)
    assert plan.features == plan.candidates == 1
    assert plan.depth > 0
    more = make_plan(10_000, 1.0, numbers=2, categories=[1, 2, 5], parties=parties)
    assert more.features == 5


def test_what_parties_refuse_is_not_advised():
    plan = make_plan(10**6, 1e-6, parties=3)
    assert plan.levels["secure sum"][0].refused == (
        "the budget is too small to share its noise among parties"
    )
    assert (plan.winner, plan.second, plan.depth) == ("LocalRNM", "NoisyCounts", 0)
    wide = make_plan(10**9, 1.0, numbers=5000, parties=3, max_depth=1)
    assert "options at most" in wide.levels["secure sum"][0].refused
    assert wide.depths["secure sum"] == 0 != wide.depth


def test_a_plan_is_plain_data():
    plain = make_plan(1000, 1.0, parties=2, max_depth=3).to_dict()
    again = json.loads(json.dumps(plain))
    assert again["levels"]["secure sum"][2]["depth"] == 3
    assert again["levels"]["LocalRNM"][0]["protocol"]["rows_needed"] is None
    assert again["depth"] == again["depths"][again["winner"]]


class TestFlagship:
    def test_it_is_what_the_estimator_does(self):
        schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)}, target="y", classes=[0, 1])
        rng = np.random.default_rng(0)
        x = rng.random((3000, 2))
        y = (x[:, 0] > 0.3) * 1
        model = PrivateTreeClassifier(epsilon=1.0, schema=schema, n_rows=3000).fit(x, y)
        said = make_plan(3000, 1.0, numbers=2).flagship
        assert [depth for depth, _ in said.blocks] == [3, 3]
        assert model.tree_.depth <= said.depth
        spent = {round(entry.epsilon, 9) for entry in model.privacy_.entries}
        blocks = [cost for _, cost in said.blocks]
        named = {*blocks, said.quantiles / 2, said.leaves}  # quantiles of two features
        assert spent == {round(cost, 9) for cost in named}
        assert sum(blocks) + said.quantiles + said.leaves == pytest.approx(1.0)
        assert said.labels is None

    def test_labels_of_public_tests(self):
        said = make_plan(900, 0.01, numbers=2).flagship
        assert (said.depth, said.blocks, said.quantiles, said.leaves) == (2, (), None, None)
        assert said.labels == 0.01
        assert said.shortfall == pytest.approx(4 / (2 * math.e) / 0.01)  # four leaves, two classes

    def test_the_shortfall_is_kept(self):
        """Noise features, one test that matters: accuracy of draws against the best tree."""
        schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)}, target="y", classes=[0, 1])
        rng, rows, epsilon = np.random.default_rng(1), 400, 0.1
        x = rng.random((rows, 2))
        y = (x[:, 0] > 0.5) * 1
        said = make_plan(rows, epsilon, numbers=2).flagship
        assert said.blocks == ((2, 0.1),)
        lost = []
        for _ in range(20):
            model = PrivateTreeClassifier(epsilon=epsilon, schema=schema, n_rows=rows).fit(x, y)
            lost.append(rows - np.sum(model.predict(x) == y))
        assert np.mean(lost) <= said.shortfall < rows  # the best tree is always right

    def test_no_more_rows_are_lost_than_there_are(self):
        assert make_plan(1000, 0.01).flagship.shortfall == 1000

    def test_too_little_epsilon(self):
        assert make_plan(1000, 1e-5).flagship is None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rows": 0}, "rows must be at least 1; say how many"),
        ({"rows": 10.5}, "rows must be a whole number"),
        ({"rows": 2**31}, "rows must be at most 2,147"),
        ({"numbers": 10**9}, "numeric features must be at most 100,000"),
        ({"categories": [10**9]}, "categories must be at most 65,534"),
        ({"classes": 10**9}, "classes must be at most 10,000"),
        ({"parties": 10**9}, "parties must be at most 100,000"),
        ({"epsilon": 0}, "epsilon must be a positive number; a usual budget"),
        ({"epsilon": math.inf}, "epsilon must be a positive number"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"parties": 0}, "parties must be at least 1; 1 means"),
        ({"classes": 1}, "classes must be at least 2; one class"),
        ({"numbers": 0}, "a tree needs a feature"),
        ({"numbers": -1}, "numeric features must be at least 0"),
        ({"categories": [0]}, "categories must be at least 1"),
        ({"categories": None}, "categories must be a list"),
        ({"categories": 3}, "categories must be a list"),
        ({"bins": 1}, "one bin cannot be split"),
        ({"bins": 1025}, "bins must be at most 1,024"),
        ({"bins": 1025, "parties": 3}, "bins must be at most 1,024"),
        ({"max_depth": 21, "parties": 3}, "max_depth must be at most 20"),
        ({"epsilon": 10**400}, "epsilon must be smaller"),
        ({"max_depth": 0}, "max_depth must be at least 1"),
        ({"max_depth": 31}, "at most 30"),
        ({"tolerance": 0}, "tolerance must lie between"),
        ({"parties": 3, "honest": 4}, "more honest parties"),
        ({"parties": 3, "honest": 0}, "honest must be at least 1"),
        ({"honest": 1}, "with one there is nobody to trust"),
    ],
)
def test_bad_input(change, match):
    with pytest.raises(PlanError, match=match):
        make_plan(**{"rows": 100, "epsilon": 1.0, **change})
