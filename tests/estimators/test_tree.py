"""PrivateTreeClassifier as people use it, and the public rules by which it chooses."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet import (
    Budget,
    Categorical,
    Numeric,
    PrivacyLeakWarning,
    PrivateTreeClassifier,
    Schema,
)
from privet.datasets import PATIENTS, make_patients
from privet.errors import PrivetError
from privet.learners._assembly import _leaf
from privet.learners._views import scale_cuts
from privet.learners.whole_trees import (
    HIGHEST_RATE,
    TreeBlock,
    block_depths,
    block_shares,
    make_plan,
    shallow_depths,
)
from privet.privacy import SeededNoise
from privet.tables import Leaf, View
from privet.tables.tree_sums import GatheredRecords
from privet.tables.whole_trees import MOST_STOP, Menu, _Drawing

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")


@SEEDED
@pytest.mark.parametrize("gap", [None, np.nan, "maybe"])
def test_records_without_a_known_class_are_left_out(gap):
    """Same noise, same tree: it is as if they were not there."""
    generator = np.random.default_rng(0)
    x = generator.random((400, 1))
    y = np.where(x[:, 0] > 0.4, "yes", "no").astype(object)
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=["no", "yes"])
    unknown = generator.random(400) < 0.3
    y[unknown] = gap
    trees = [
        PrivateTreeClassifier(1.0, schema, random_state=3).fit(x[rows], y[rows]).tree_
        for rows in (np.full(400, True), ~unknown)
    ]
    assert trees[0].to_dict() == trees[1].to_dict()


def test_it_finds_the_known_structure_and_spends_what_was_asked():
    table = pa.table(make_patients(20_000, seed=7))
    held_out = pa.table(make_patients(10_000, seed=8))
    model = PrivateTreeClassifier(epsilon=1.0, schema=PATIENTS).fit(table)
    accuracy = np.mean(model.predict(held_out) == np.asarray(held_out["readmitted"]))
    # The majority scores 0.72; 20 fits lay between 0.828 and 0.841.
    assert accuracy > 0.79
    card = model.privacy_
    assert card.private
    assert card.epsilon == 1.0
    assert {entry.mechanism.kind for entry in card.entries} == {
        "discrete-laplace",
        "quantiles",
        "whole-tree",
    }
    # A twentieth of what the count of rows left is for class counts in the leaves.
    asked = {entry.question.kind: entry.epsilon for entry in card.entries}
    assert asked["class-counts"] == pytest.approx(0.98 / 20)
    shares = model.predict_proba(held_out)
    assert 0 < shares.min() < shares.max() < 1
    labels = model.classes_[shares.argmax(axis=1)]
    np.testing.assert_array_equal(labels, model.predict(held_out))


@SEEDED
@given(
    epsilon=st.floats(0.001, 20),
    max_depth=st.sampled_from(["auto", 1, 2, 3, 4, 5, 7]),
    share=st.sampled_from(["auto", 0.0, 0.1, 0.5]),
    declared=st.booleans(),
    rows=st.integers(0, 600),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=30)
def test_the_ledger_adds_up_to_epsilon(epsilon, max_depth, share, declared, rows, seed):
    schema = Schema(
        {"a": Numeric(0, 1), "b": Categorical(["u", "v"]), "c": Numeric(-1, 1)},
        target="y",
        classes=["p", "q"],
    )
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": generator.random(rows),
            "b": generator.choice(["u", "v", "w"], rows),
            "c": generator.normal(size=rows),
        }
    )
    model = PrivateTreeClassifier(
        epsilon=epsilon,
        schema=schema,
        max_depth=max_depth,
        n_rows=max(rows, 1) if declared else None,
        probability_share=share,
        random_state=seed,
    ).fit(table, generator.choice(["p", "q"], rows))
    assert model.privacy_.epsilon <= epsilon
    if epsilon <= HIGHEST_RATE:  # no block is drawn with more, and the rest stays unspent
        assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-12)
    drawn = [e.cost.epsilon for e in model.privacy_.entries if e.mechanism.kind == "whole-tree"]
    assert max(drawn, default=0) <= HIGHEST_RATE  # none, where tests are public
    assert max_depth == "auto" or model.tree_.depth <= max_depth
    assert model.predict(table).shape == (rows,)


@SEEDED
def test_three_classes_and_a_lookup():
    generator = np.random.default_rng(1)
    wards = np.array(list("abcdefgh"))
    ward = generator.integers(0, 8, 3_000)
    truth = np.array(["x", "y", "z"])[(ward * 5) % 3]
    noise = generator.random(3_000)
    schema = Schema(
        {"ward": Categorical(wards.tolist()), "noise": Numeric(0, 1)},
        target="t",
        classes=["x", "y", "z"],
    )
    frame = pd.DataFrame({"ward": wards[ward], "noise": noise})
    model = PrivateTreeClassifier(epsilon=1.0, schema=schema, random_state=0).fit(frame, truth)
    assert np.mean(model.predict(frame) == truth) > 0.99
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1)


@SEEDED
def test_bought_probabilities_rank_and_agree_with_the_labels():
    table = pa.table(make_patients(20_000, seed=7))
    model = PrivateTreeClassifier(
        epsilon=1.0, schema=PATIENTS, probability_share=0.2, random_state=0
    ).fit(table)
    shares = model.predict_proba(table)
    assert len(np.unique(shares[:, 1])) > 4
    labels = model.classes_[shares.argmax(axis=1)]
    np.testing.assert_array_equal(labels, model.predict(table))
    leaves = [model.tree_.nodes[leaf] for leaf in model.tree_.leaves()]
    assert all("class_counts" in leaf.released for leaf in leaves)


@SEEDED
def test_merging_tests_changes_the_time_and_not_the_law():
    """The same seed need not give the same tree, but both find an easy structure."""
    x = np.random.default_rng(0).random((2_000, 2)).round(1)
    y = (x[:, 0] > 0.5).astype(int)
    schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)}, target="y", classes=[0, 1])
    for merge in (True, False):
        model = PrivateTreeClassifier(
            epsilon=1.0, schema=schema, merge_tests=merge, random_state=0
        ).fit(x, y)
        assert np.mean(model.predict(x) == y) > 0.99


def test_without_noise_it_classifies_as_well_as_a_tree_of_that_depth_can(patients):
    with pytest.warns(PrivacyLeakWarning, match="infinite"):
        model = PrivateTreeClassifier(epsilon=float("inf"), schema=PATIENTS, max_depth=2).fit(
            patients
        )
    assert not model.privacy_.private
    truth = np.asarray(patients["readmitted"])
    best = 0.0
    frame = patients.to_pandas()
    # Brute force over single cuts of the two features that matter, for a lower bound.
    for cut in (1, 2, 3):
        for level in (1.0, 1.3, 1.6):
            guess = (frame["previous_stays"] >= cut) | (frame["creatinine"] >= level)
            best = max(best, np.mean(np.where(guess, "yes", "no") == truth))
    assert np.mean(model.predict(patients) == truth) >= best - 0.005


def test_an_empty_table_fits():
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
    model = PrivateTreeClassifier(schema=schema).fit(np.zeros((0, 1)), [])
    assert model.privacy_.private
    assert set(model.predict([[0.1], [0.9]])) <= {0, 1}


def test_the_model_travels(patients, tmp_path):
    model = PrivateTreeClassifier(schema=PATIENTS, n_rows=6_000).fit(patients)
    model.save(tmp_path / "model.json")
    loaded = privet.load(tmp_path / "model.json")
    assert loaded.learner == "tree"
    np.testing.assert_array_equal(loaded.predict(patients), model.predict(patients))


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0},
        {"epsilon": 1e-7},
        {"max_depth": "deep"},
        {"max_depth": 0},
        {"n_rows": 0},
        {"n_rows": 2.5},
        {"probability_share": 1.0},
        {"probability_share": -0.1},
        {"probability_share": "some"},
        {"probability_share": float("nan")},
        {"merge_tests": 3},
    ],
)
def test_bad_parameters_get_a_clear_error(parameters, tmp_path):
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
    store = privet.LedgerStore.create(tmp_path / "books", privet.Budget(1), columns=["x", "y"])
    with pytest.raises(PrivetError):
        PrivateTreeClassifier(schema=schema, ledger=store, **parameters).fit([[0.5]], [1])
    assert store.spent == 0


class TestRules:
    @pytest.mark.parametrize(
        ("mass", "max_depth", "depths"),
        [
            (10, None, (2,)),
            (100, None, (3,)),
            (5_000, None, (3, 3)),
            (1e6, None, (3, 3, 3)),
            (1e6, 1, (1,)),
            (1e6, 3, (3,)),
            (1_000, 4, (3,)),
            (1_500, 4, (3, 1)),
            (1e6, 4, (3, 1)),
            (1e6, 5, (3, 2)),
            (1e6, 8, (3, 3, 2)),
            (10, 20, (2,)),
        ],
    )
    def test_depths(self, mass, max_depth, depths):
        assert block_depths(mass, max_depth) == depths

    def test_shares_are_whole(self):
        for depths in ((2,), (2, 2), (3, 3), (3, 1), (3, 3, 3)):
            for classes in (2, 7):
                assert sum(block_shares(depths, classes)) == 1
        assert block_shares((2, 2), 2) == (Fraction(1, 2), Fraction(1, 2))
        assert (
            block_shares((2, 2), 3)
            == block_shares((3, 3), 2)
            == (Fraction(7, 20), Fraction(13, 20))
        )

    def test_cuts_lie_between_the_bounds_and_see_both_ends(self):
        cuts = scale_cuts(Numeric(-10, 1_000), 32)
        assert list(cuts) == sorted(set(cuts))
        assert all(-10 < cut < 1_000 for cut in cuts)
        assert any(0 < cut < 1e-3 for cut in cuts)  # "above zero"
        assert len(scale_cuts(Numeric(0, 100), 32)) == 41

    def test_a_plan_spends_the_budget(self):
        schema = Schema({f"x{j}": Numeric(0, 1) for j in range(5)}, target="y", classes=[0, 1])
        for rows in (5, 10, 1_000, 100_000):
            for share in (None, Fraction(0), Fraction(1, 10)):
                plan = make_plan(schema, rows, Fraction(1), None, share, Budget(1.0))
                parts = [plan.quantiles, plan.leaves, plan.labels, *(b.amount for b in plan.blocks)]
                assert sum(part or 0 for part in parts) == 1

    def test_leaves_buy_counts_where_they_pay_or_as_asked(self):
        schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])

        def leaves(rows, share):
            return make_plan(schema, rows, Fraction(1), None, share, Budget(1.0)).leaves

        assert leaves(999, None) is None
        assert leaves(1_000, None) == leaves(10**6, None) == Fraction(1, 20)
        assert leaves(10**6, Fraction(0)) is None
        assert leaves(5, Fraction(1, 5)) == leaves(10**6, Fraction(1, 5)) == Fraction(1, 5)

    @pytest.mark.parametrize("share", [None, Fraction(0), Fraction(1, 2)])
    def test_a_share_for_leaves_changes_no_other_rule(self, share):
        """Each rows x epsilon is just at a limit: of two blocks, of quantiles, of few records."""
        schema = Schema({f"x{j}": Numeric(0, 1) for j in range(3)}, target="y", classes=[0, 1])
        plans = {
            rows: make_plan(schema, rows, Fraction(1), None, share, Budget(1.0))
            for rows in (10, 2_000, 3_000)
        }
        assert plans[10].labels is None
        assert [block.depth for block in plans[2_000].blocks] == [3, 3]
        assert plans[2_000].quantiles is None
        assert plans[3_000].quantiles is not None

    @pytest.mark.parametrize(
        ("rows", "max_depth", "blocks"),
        [
            (59, None, [(2, None)]),
            (1_039, None, [(2, None)]),
            (1_040, None, [(2, None), (2, None)]),
            (1_999, None, [(2, None), (2, None)]),
            (2_000, None, [(3, 4), (3, 4)]),
            (10_000, None, [(3, 4), (3, 4)]),
            (10_000, 4, [(2, None), (2, None)]),
            (3_000, 4, [(2, None), (2, None)]),
            (3_000, 3, [(2, None), (1, None)]),
            (3_000, 2, [(2, None)]),
        ],
    )
    def test_many_classes_have_more_blocks_sooner(self, rows, max_depth, blocks):
        schema = Schema({f"x{j}": Numeric(0, 1) for j in range(9)}, "y", classes=range(26))
        plan = make_plan(schema, rows, Fraction(1), max_depth, Fraction(0), Budget(1.0))
        assert [(block.depth, block.width) for block in plan.blocks] == blocks
        assert all(block.bought for block in plan.blocks if block.width)
        depths = tuple(block.depth for block in plan.blocks)
        if depths in ((2, 2), (3, 3)):
            first, second = plan.blocks
            assert first.amount / second.amount == Fraction(35, 65)

    @pytest.mark.parametrize(
        ("classes", "second"),
        [(2, 2_000), (3, 600), (5, 600), (6, 400), (10, 400), (11, 440), (26, 1_040)],
    )
    def test_the_second_block_needs_records_for_every_class(self, classes, second):
        assert shallow_depths(second - 1, None, classes) == (2,)
        assert shallow_depths(second, None, classes) == (2, 2)

    @pytest.mark.parametrize(("classes", "few"), [(2, 100), (3, 1_500), (26, 1_500)])
    def test_branches_end_early_less_often_only_on_few_records(self, classes, few):
        schema = Schema({f"x{j}": Numeric(0, 1) for j in range(9)}, "y", classes=range(classes))
        for rows, stop in ((few - 1, 0.125), (few, 0.5)):
            plan = make_plan(schema, rows, Fraction(1), None, Fraction(0), Budget(1.0))
            assert {block.stop for block in plan.blocks} == {stop}

    def test_an_affordable_block_of_depth_three_stays(self):
        schema = Schema(
            {f"x{j}": Categorical(list("abc")) for j in range(8)}, "y", classes=range(5)
        )
        for rows in (600, 1_500):
            plan = make_plan(schema, rows, Fraction(1), None, None, Budget(1.0))
            assert [(block.depth, block.width) for block in plan.blocks] == [(3, None)]

    def test_below_a_mass_of_ten_tests_are_public(self):
        schema = Schema(
            {
                "a": Numeric(0, 1),
                "b": Numeric(0, 1),
                "c": Categorical(list("uvw")),
                "d": Numeric(0, 1),
            },
            target="y",
            classes=[0, 1],
        )

        def plan(rows, max_depth=None, schema=schema, **given):
            return make_plan(schema, rows, Fraction(1), max_depth, None, Budget(1.0), **given)

        few = plan(9)
        assert (few.blocks, few.quantiles, few.leaves, few.labels) == ((), None, None, 1)
        assert (few.public, few.public_leaves) == ((0, 2), 8)
        assert (plan(9, 1).public, plan(9, 64).public) == ((0,), (0, 2))
        assert plan(10).labels is None
        assert plan(9, declared=False).labels is None  # a noisy count says too little
        one = Schema({"a": Numeric(0, 1)}, target="y", classes=[0, 1])
        assert plan(9, schema=one).public == (0,)
        huge = Categorical([str(i) for i in range(5_000)])
        wide = Schema({"a": huge, "b": Numeric(0, 1)}, target="y", classes=[0, 1])
        assert plan(9, schema=wide).public == (1,)
        assert plan(9, 1, schema=wide).public == ()

    def test_wide_tables_are_limited(self):
        schema = Schema({f"x{j}": Numeric(0, 1) for j in range(400)}, target="y", classes=[0, 1])
        plan = make_plan(schema, 50_000, Fraction(1), None, Fraction(0), Budget(1.0))
        assert all(isinstance(block, TreeBlock) and block.width for block in plan.blocks)
        narrow = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
        plan = make_plan(narrow, 50_000, Fraction(1), None, Fraction(0), Budget(1.0))
        assert all(block.width is None for block in plan.blocks)

    @pytest.mark.parametrize(
        ("rows", "max_depth", "depths"),
        [(399, None, [2]), (3_000, None, [2, 2]), (6_000, None, [2] * 3), (10**5, None, [2] * 4),
         (10**5, 4, [2, 2]), (10**5, 3, [2, 1]), (10**5, 1, [1])],
    )  # fmt: skip
    def test_without_blocks_of_depth_three_there_are_more_of_them(self, rows, max_depth, depths):
        features = {f"x{j}": Numeric(0, 1) for j in range(784)}
        schema = Schema(features, target="y", classes=range(10))
        plan = make_plan(schema, rows, Fraction(1), max_depth, Fraction(0), Budget(1.0))
        assert [block.depth for block in plan.blocks] == depths
        assert (plan.quantiles or 0) + sum(block.amount for block in plan.blocks) == 1

    def test_beyond_a_million_rows_the_blocks_stay_as_they_are(self):
        schema = Schema({f"x{j}": Numeric(0, 1) for j in range(14)}, target="y", classes=[0, 1])
        million, ten = (
            make_plan(schema, rows, Fraction(1), None, Fraction(0), Budget(1.0))
            for rows in (10**6, 10**7)
        )
        assert million == ten
        assert [block.depth for block in ten.blocks] == [3, 3, 3]
        assert ten.blocks[0].width is None


class TestFewRecords:
    """Rows x epsilon below ten: public tests, bought labels."""

    SCHEMA = Schema(
        {"a": Numeric(0, 8), "b": Numeric(0, 1), "c": Categorical(list("uv")), "d": Numeric(0, 1)},
        target="y",
        classes=["no", "yes"],
    )

    def table(self, rows, seed):
        generator = np.random.default_rng(seed)
        frame = pd.DataFrame(
            {
                "a": generator.random(rows) * 8,
                "b": generator.random(rows),
                "c": generator.choice(["u", "v"], rows),
                "d": generator.random(rows),
            }
        )
        return frame, np.where((frame["a"] > 2) & (frame["c"] == "v"), "yes", "no")

    def test_only_labels_are_bought_and_they_are_mostly_right(self):
        right = []
        for seed in range(20):
            frame, labels = self.table(900, seed)
            model = PrivateTreeClassifier(0.01, self.SCHEMA, n_rows=900).fit(frame, labels)
            (entry,) = model.privacy_.entries
            assert (entry.question.kind, entry.mechanism.kind) == ("label", "permute-and-flip")
            assert model.privacy_.epsilon == 0.01
            right.append(np.mean(model.predict(frame) == labels))
        assert np.mean(right) > 0.75  # 40 means of 20 fits lay between 0.94 and 0.98

    def test_tests_do_not_depend_on_rows(self):
        """The tests of all trees, of very different tables, are those of the schema."""
        seen = set()
        for seed in range(30):
            frame, labels = self.table(40 * (seed % 3), seed)
            model = PrivateTreeClassifier(0.02, self.SCHEMA, n_rows=100).fit(frame, labels)
            for node in model.tree_.nodes:
                if node.test is not None:
                    seen.add(node.test)
        cuts = [test for test in seen if test.feature == "a"]
        assert [test.edges for test in cuts] == [(2.0,)]
        assert {test.feature for test in seen} == {"a", "c"}

    def test_a_share_for_leaves_is_kept(self):
        frame, labels = self.table(300, 0)
        model = PrivateTreeClassifier(
            0.02, self.SCHEMA, n_rows=300, probability_share=0.5, max_depth=1
        ).fit(frame, labels)
        asked = {entry.question.kind: entry.epsilon for entry in model.privacy_.entries}
        assert asked == {"label": pytest.approx(0.01), "class-counts": pytest.approx(0.01)}
        assert model.tree_.depth <= 1

    def test_bounds_without_a_cut_between_them(self):
        low = 1.0
        close = Numeric(low, np.nextafter(low, 2), bins=1)
        schema = Schema({"x": close}, target="y", classes=[0, 1])
        model = PrivateTreeClassifier(0.1, schema, n_rows=9).fit([[low]] * 9, [1] * 9)
        assert len(model.tree_.nodes) == 1

    def test_a_noisy_count_leads_to_a_draw(self):
        frame, labels = self.table(100, 0)
        model = PrivateTreeClassifier(0.02, self.SCHEMA).fit(frame, labels)
        kinds = {entry.mechanism.kind for entry in model.privacy_.entries}
        assert kinds == {"discrete-laplace", "whole-tree"}


@SEEDED
def test_many_classes_get_sixteen_leaves():
    """Nine features, ten classes, four of them told apart by two levels and all by four."""
    generator = np.random.default_rng(2)
    x = generator.random((3_000, 9))
    y = (x[:, 0] * 10).astype(int)
    schema = Schema({f"x{j}": Numeric(0, 1) for j in range(9)}, target="y", classes=range(10))
    model = PrivateTreeClassifier(0.5, schema, n_rows=3_000, random_state=0).fit(x, y)
    assert model.tree_.depth == 4
    assert np.mean(model.predict(x) == y) > 0.7  # four leaves: at most 0.4


@SEEDED
def test_a_wide_table_fits():
    generator = np.random.default_rng(0)
    x = generator.random((3_000, 150))
    y = (x[:, 77] > 0.5).astype(int)
    schema = Schema({f"x{j}": Numeric(0, 1) for j in range(150)}, target="y", classes=[0, 1])
    model = PrivateTreeClassifier(epsilon=2.0, schema=schema, random_state=0).fit(x, y)
    assert np.mean(model.predict(x) == y) > 0.95
    assert any(entry.question.kind == "features" for entry in model.privacy_.entries)
    assert model.privacy_.epsilon == pytest.approx(2.0)


class TestManyCategories:
    """A lookup of many categories has a tiny prior, about classes^-categories: it must count."""

    CATEGORIES, CLASSES = 400, 10

    def table(self, rows):
        categories = np.arange(rows) % self.CATEGORIES
        schema = Schema(
            {"c": Categorical(list(range(self.CATEGORIES))), "x": Numeric(0, 1)},
            target="y",
            classes=list(range(self.CLASSES)),
        )
        frame = pd.DataFrame({"c": categories, "x": np.full(rows, 0.5)})
        return schema, frame, categories % self.CLASSES

    @SEEDED
    @pytest.mark.parametrize("max_depth", [1, 2, "auto"])
    def test_it_is_found(self, max_depth):
        schema, frame, labels = self.table(8_000)
        model = PrivateTreeClassifier(
            epsilon=2.0, schema=schema, max_depth=max_depth, random_state=0
        ).fit(frame, labels)
        assert np.mean(model.predict(frame) == labels) > 0.99

    def test_one_more_record_changes_little(self):
        """The root's choice at depth 2, which sums up lookups below it, on two neighbours."""
        menu = Menu((False, True), (self.CATEGORIES, 2), (1,), MOST_STOP)
        laws = []
        for rows in (8_000, 8_001):
            categories = np.arange(rows) % self.CATEGORIES
            codes = np.array([categories, np.zeros(rows, dtype=int)]).astype(np.uint16)
            labels = (categories % self.CLASSES).astype(np.uint8)
            counts = np.concatenate([np.bincount(categories, minlength=self.CATEGORIES), [rows, 0]])
            ones = np.ones(rows, dtype=np.int64)
            source = GatheredRecords(codes, labels, ones, counts, menu.sizes)
            drawing = _Drawing(source, menu, self.CLASSES, 2, 1.0, False, SeededNoise(0), 1)
            seen = []
            # Record the log weights of the choice, and take the leaf: the last candidate here.
            drawing._choose = lambda logs, seen=seen: seen.append(logs) or len(logs) - 1
            drawing.draw(drawing.whole, 2)
            logs = seen[0] - seen[0].max()
            laws.append(logs - np.log(np.exp(logs).sum()))
        assert np.isfinite(laws).all()
        assert np.abs(laws[0] - laws[1]).max() <= 1.0 + 1e-9


@SEEDED
def test_wide_tables_fit_without_noise_and_without_much_memory():
    x = np.random.default_rng(0).random((2_000, 150))
    y = (x[:, 7] > 0.5).astype(int)
    schema = Schema({f"x{j}": Numeric(0, 1) for j in range(150)}, target="y", classes=[0, 1])
    with pytest.warns(PrivacyLeakWarning, match="infinite"):
        model = PrivateTreeClassifier(epsilon=float("inf"), schema=schema).fit(x, y)
    assert np.mean(model.predict(x) == y) > 0.95


def test_a_drawn_label_is_always_the_most_probable_class(generator):
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=["a", "b", "c"])
    view = View.of_bins(schema)
    for _ in range(2_000):
        label = int(generator.integers(0, 3))
        counts = generator.integers(-40, 400, 3)
        node = _leaf(Leaf(label), view, counts, 20.0)
        assert int(np.argmax(node.value)) == label
        assert sum(node.value) == pytest.approx(1)


@SEEDED
def test_classes_are_sorted_as_scikit_learns_scores_expect(patients):
    backwards = Schema(PATIENTS.features, PATIENTS.target, classes=["yes", "no"])
    model = PrivateTreeClassifier(
        schema=backwards, n_rows=6_000, probability_share=0.3, random_state=0
    ).fit(patients)
    assert model.classes_.tolist() == ["no", "yes"]
    truth = np.asarray(patients["readmitted"])
    ill = model.predict_proba(patients)[:, 1]
    assert ill[truth == "yes"].mean() > ill[truth == "no"].mean() + 0.2
    assert np.mean(model.predict(patients) == truth) > 0.75


def test_bounds_far_from_zero_fit():
    schema = Schema({"x": Numeric(1e12, 1e12 + 1)}, target="y", classes=[0, 1])
    x = 1e12 + np.linspace(0, 1, 5_000)[:, None]
    model = PrivateTreeClassifier(schema=schema, n_rows=5_000).fit(x, (x[:, 0] > 1e12 + 0.5) * 1)
    assert model.privacy_.private


@pytest.mark.parametrize("classes", [2, 3])
def test_only_blocks_of_two_classes_leave_a_large_budget_unspent(classes):
    schema = Schema({"a": Numeric(0, 1)}, "y", classes=list(range(classes)))
    plan = make_plan(schema, 5_000, Fraction(100), None, Fraction(0), Budget(100.0))
    spent = [block.amount for block in plan.blocks]
    assert all(amount == HIGHEST_RATE for amount in spent) == (classes == 2)
    assert classes == 2 or sum(spent) == Fraction(100) - plan.quantiles
