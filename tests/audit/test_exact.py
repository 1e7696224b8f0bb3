"""The exhaustive audit: programs with known losses, whole estimators, and what it refuses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privet import (
    Budget,
    Categorical,
    DiffPID3Classifier,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTable,
    PrivateTreeClassifier,
    Schema,
)
from privet.audit import exact
from privet.audit.catalogue import MIXED, ONE, cases, of_estimators
from privet.audit.outputs import describe
from privet.audit.probes import SharedProbe
from privet.criteria import ClippedEntropy, Gini, Max
from privet.errors import AuditError
from privet.learners import whole_trees
from privet.learners.whole_trees import TreeBlock
from privet.tables import Multiway

from ..repeated import some_of  # noqa: TID252

# Programs whose loss is known


def test_a_count_with_gaussian_noise_has_its_rho():
    def count(records, noise):
        return int(noise.add_gaussian(np.array([records]), 2.0)[0])

    found = exact.compare(count, 5, 6, most_outcomes=70)
    assert found.rho <= (1 + 1e-9) / 8
    assert found.rho > 0.95 / 8  # a little is lost by rounding
    # delta at epsilon, against the law itself
    k = np.arange(-60, 72)
    pmfs = [np.exp(-((k - value) ** 2) / 8) for value in (5, 6)]
    p, q = (pmf / pmf.sum() for pmf in pmfs)
    true = np.maximum(p - math.exp(0.5) * q, 0).sum()
    assert 0.9 * true < found.delta(0.5) <= true + 1e-12


def test_answers_that_are_not_released_do_not_count():
    """Two counts, of which the program releases only whether the first is larger."""

    def larger(records, noise):
        noisy = noise.add_laplace(np.array([records, 0]), 1.0)
        return bool(noisy[0] > noisy[1])

    def both(records, noise):
        return tuple(noise.add_laplace(np.array([records, 0]), 1.0).tolist())

    assert exact.compare(both, 0, 1).epsilon == pytest.approx(1)
    assert 0.2 < exact.compare(larger, 0, 1).epsilon < 1


def test_adaptive_questions_are_followed():
    """The second question's scale depends on the first answer: the loss is that of the worse."""

    def program(records, noise):
        first = int(noise.add_laplace(np.array([records]), 2.0)[0])
        scale = 1.0 if first > 4 else 4.0
        return first, int(noise.add_laplace(np.array([records]), scale)[0])

    assert exact.compare(program, 0, 1).epsilon == pytest.approx(0.5 + 1)
    assert exact.follow(program, 0, 1, paths=8).epsilon == pytest.approx(1.5)


def test_a_choice_has_the_law_of_its_mechanism():
    scores = {"one": np.array([0, 0, 0]), "other": np.array([1, 0, 0])}

    def flip(table, noise):
        return noise.permute_and_flip(scores[table], 1.0)

    def exponential(table, noise):
        return noise.exponential(scores[table], 1.0)

    e = math.e
    expected = math.log(3 * e / (e + 2))
    assert exact.compare(exponential, "one", "other").epsilon == pytest.approx(expected)
    assert exact.compare(flip, "one", "other").epsilon <= 1


def test_what_only_one_table_can_release_is_an_infinite_loss():
    def program(records, noise):
        return noise.below(2) if records else "nobody"

    found = exact.compare(program, 0, 1)
    assert found.epsilon == math.inf
    assert found.rho == math.inf
    assert found.delta(9.0) == pytest.approx(1)
    assert found.remarks == ("the same answers lead to different questions",)


def test_too_many_outcomes_are_refused():
    def program(records, noise):
        return tuple(noise.below(10) for _ in range(9))

    with pytest.raises(AuditError, match="too many outcomes"):
        exact.compare(program, 0, 1, most_runs=1000)


def test_a_sampler_of_choices_cannot_ask_for_integers():
    with pytest.raises(AuditError, match="integers"):
        exact.law_of(lambda noise: noise.add_laplace(np.zeros(1, np.int64), 1.0))


# The questions of a table, each on all small tables


def ask(schema, budget, question):
    """Return a program that asks one question of a table of records."""

    def program(records, noise):
        columns = np.empty((len(records), len(schema.names) + 1), dtype=object)
        for place, record in enumerate(records):
            columns[place] = record
        table = PrivateTable(columns[:, :-1], columns[:, -1], schema, budget, random_state=noise)
        return describe(question(table))

    return program


NUMBERS = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
FREE = np.ones((1, 2), dtype=bool)
#: Whole trees are drawn with a rate that is a little smaller, for rounding.
QUESTIONS = {
    "counts": (ONE, lambda t: t.root().partition("a").noisy_class_counts(1)),
    "max": (MIXED, lambda t: t.root().choose_splits(Multiway(), Max(), 1, FREE)),
    "gini": (MIXED, lambda t: t.root().choose_splits(Multiway(), Gini(), 1, FREE)),
    "gini, exponential": (
        MIXED, lambda t: t.root().choose_splits(Multiway(), Gini(), 1, FREE, flip=False),
    ),
    "entropy": (
        MIXED, lambda t: t.root().choose_splits(Multiway(), ClippedEntropy(0.05, 2), 1, FREE),
    ),
    "features": (MIXED, lambda t: t.root().choose_features(1, 1)),
    "median": (NUMBERS, lambda t: t.quantiles(0, 2, 1)),
    "quartiles": (NUMBERS, lambda t: t.quantiles(0, 4, 1)),
    "thirds": (NUMBERS, lambda t: t.quantiles(0, 3, 1)),
    "label": (ONE, lambda t: t.root().choose_labels(1)),
    "tree": (MIXED, lambda t: t.root().draw_trees(1, 1)),
    "two blocks": (
        ONE, lambda t: whole_trees.grow(
            t.root(), (TreeBlock(1, Fraction(1, 2)), TreeBlock(1, Fraction(1, 2))), merge=True
        ),
    ),
}  # fmt: skip
#: The least that small tables show of what is paid.
SHOWN = {
    "thirds": 0.35,
    "entropy": 0.15,
    "gini": 0.3,
    "gini, exponential": 0.25,
    "tree": 0.6,
    "two blocks": 0.3,
}


@pytest.mark.filterwarnings("ignore:random_state is fixed")
@pytest.mark.parametrize("name", some_of(QUESTIONS, "two blocks".__ne__))
def test_no_question_costs_more_than_its_amount(name):
    schema, question = QUESTIONS[name]
    program = ask(schema, Budget(1.0), question)
    records = exact.universe(schema)
    if schema is NUMBERS:
        records = [(x, 0) for x in (0.1, 0.5, 0.9)]
    tables = [(), records[:1], [records[0], records[-1]]]
    if name == "two blocks":
        tables = tables[1:2]
        records = records[:1]
    found = [
        exact.compare(program, tuple(table), (record, *table))
        for table in tables
        for record in records
    ]
    worst = max(comparison.epsilon for comparison in found)
    assert not any(comparison.remarks for comparison in found)
    assert SHOWN.get(name, 0.45) < worst <= 1 + exact.TOLERANCE


# Whole estimators


#: Of every estimator a case that is compared on all pairs here. Of its others the last pair is (a
#: table of one record, and the same with the last one), the last two where paths are followed. All
#: pairs of these are compared with ``make engines``.
WHOLE = {
    "PrivateTreeClassifier, with probabilities",
    "PrivateTreeRegressor, a number, linear",
    "PrivateBoostingClassifier, two rounds, zCDP",
    "PrivateBoostingRegressor, two rounds, pure",
    "PrivateAdditiveClassifier, 2 classes, zCDP",
    "PrivateAdditiveRegressor, no classes, pure",
    "SulqID3Classifier, valid",
    "DiffPID3Classifier, max, valid",
    "DiffPC45Classifier, max, valid",
    "PrivaTreeClassifier, select",
    "PrivaTreeClassifier, histograms",
    "TopDownClassifier, flip",
    "DiPriMeForestClassifier, flip, two parts",
    "DiPriMeForestRegressor, two parts",
    "DiPriMeTreeClassifier, flip, one tree",
    "DiPriMeTreeRegressor, exp, one tree",
}
#: Compared with ``make engines`` only: others here ask the same questions, with fewer rounds,
#: levels or classes, or by another criterion.
LONG = {
    "PrivateTreeClassifier, without merging",
    "PrivateTreeClassifier, a number and a category",
    "PrivateTreeClassifier, depth 2",
    "PrivateTreeClassifier, quantiles",
    "PrivateBoostingClassifier, one round, pure",
    "PrivateBoostingClassifier, one round, zCDP",
    "PrivateBoostingClassifier, three classes, pure",
    "PrivateBoostingRegressor, one round, pure",
    "PrivateBoostingRegressor, one round, zCDP",
    "PrivateAdditiveClassifier, 3 classes, zCDP",
    "DiffPID3Classifier, clipped_entropy, published",
    "DiffPID3Classifier, entropy, published",
    "DiffPID3Classifier, gini, published",
    "DiffPC45Classifier, clipped_entropy, published",
    "DiffPC45Classifier, entropy, published",
    "DiffPC45Classifier, gini, published",
}
#: The same of questions, and of what tests/audit/test_discovery.py has, too.
LONG_QUESTIONS = {
    "Probe, draw_trees, depth 3, 4 classes",
    "SharedProbe, share_splits, gini, 4 classes",
    "SharedProbe, share_labels, 4 classes",
    "DiscoveryProbe, 2 rows per person, Gaussian noise",
    "DiscoveryProbe, 2 rows per person, Laplace noise",
    "DiscoveryProbe, persons, Laplace noise",
}


def is_whole(case):
    return case.learner == "question" or case.name in WHOLE


def check(case, last):
    verdict = case.short(last)
    assert verdict.holds, (verdict.found, verdict.claim, verdict.worst, verdict.remarks)
    assert verdict.found > 0.1 * verdict.claim  # it does see something
    assert verdict.exhaustive == ("paths" not in case.how)


def name_of(case):
    return f"{case.learner}: {case.name}"


def some_cases(case):
    return case.name not in LONG | LONG_QUESTIONS


@pytest.mark.parametrize("case", some_of(cases(1.0), some_cases), ids=name_of)
def test_every_estimator_and_question_keeps_its_promise(case):
    if isinstance(case.estimator, SharedProbe):
        last = 1
    elif is_whole(case):
        last = None
    else:
        last = 2 if "paths" in case.how else 1
    check(case, last)


@pytest.mark.engines
@pytest.mark.parametrize("case", [case for case in cases(1.0) if not is_whole(case)], ids=name_of)
def test_estimators_keep_their_promise_on_all_pairs(case):
    check(case, None)


def test_every_estimator_has_a_case_that_is_compared_on_all_pairs():
    assert {case.name for case in cases(1.0)} >= LONG_QUESTIONS
    estimators = {case.name: type(case.estimator) for case in of_estimators()}
    assert set(estimators) >= WHOLE | LONG
    assert {estimators[name] for name in WHOLE} == set(estimators.values())


def test_what_is_known_of_a_table_is_not_run_again():
    runs = []

    def program(records, noise):
        runs.append(records)
        return int(noise.add_laplace(np.array([records]), 1.0)[0])

    known = {}
    first = exact.compare(program, 0, 1, known=known)
    before = runs.count(0)
    again = exact.compare(program, 0, 1, known=known)
    assert runs.count(0) == before > 1
    assert first.epsilon == again.epsilon == pytest.approx(1)
    # A program that is not the same on the table any more is found out.
    changed = exact.compare(lambda *given: (program(*given),), 0, 1, known=known)
    assert changed.remarks == ("the same answers lead to different outputs",)


def test_the_cases_cover_every_estimator():
    import privet

    mine = {type(case.estimator).__name__ for case in of_estimators()}
    public = {name for name in privet.__all__ if name.endswith(("Classifier", "Regressor"))}
    assert mine == public


RICH = {"x": Numeric(0, 1), "a": Categorical(["u", "v"]), "z": Numeric(-1, 1)}
TARGETS = {
    "two": {"classes": [0, 1]},
    "three": {"classes": [0, 1, 2]},
    "number": {"bounds": (0, 1)},
}


def random_pairs(target, seed, count):
    """Return tables of four records with gaps and strange values, and neighbours of all kinds."""
    generator = np.random.default_rng(seed)
    values = target.get("classes", [-0.2, 0.0, 0.3, 1.0, 2.0])

    def record():
        return (
            generator.choice([0.1, 0.4, 0.9, math.nan]).item(),
            str(generator.choice(["u", "v", "w"])),
            generator.choice([-0.5, 0.0, 0.7]).item(),
            values[generator.integers(len(values))],
        )

    for _ in range(count):
        table = [record() for _ in range(4)]
        place = int(generator.integers(4))
        yield tuple(table), tuple(table[:place] + table[place + 1 :])
        yield tuple(table), (*table[:place], record(), *table[place:])


@pytest.mark.parametrize(
    ("kind", "delta"),
    some_of(
        itertools.product(TARGETS, [None, 1e-5]),
        lambda kind, delta: (kind, delta) in {("two", 1e-5), ("number", None), ("three", None)},
    ),
)
def test_added_scores_keep_their_promise_on_larger_tables(kind, delta):
    """Missing and unknown values, records in the middle: a few paths through whole fits."""
    number = kind == "number"
    boosting = PrivateBoostingRegressor if number else PrivateBoostingClassifier
    additive = PrivateAdditiveRegressor if number else PrivateAdditiveClassifier
    pairs = list(random_pairs(TARGETS[kind], 1, 1))
    few = [tuple(tuple((a, y) for _, a, _, y in table) for table in pair) for pair in pairs]
    rich, poor = (Schema(features, "y", **TARGETS[kind]) for features in (RICH, {"a": RICH["a"]}))
    # Slopes of all features are one question, in too many numbers to follow.
    of_slopes = kind == "two" and delta is not None
    for model, tables in (
        (boosting(3.0, delta=delta, schema=poor, n_rounds=3, max_depth=1, n_rows=40), few),
        (additive(3.0, delta=delta, schema=poor), few)
        if of_slopes
        else (additive(3.0, delta=delta, schema=rich), pairs),
    ):
        verdict = exact.audit(model, pairs=tables, paths=4)
        assert verdict.holds, (verdict.found, verdict.claim)
        assert verdict.found > 0.3 * verdict.claim


def test_several_processes_find_the_same():
    model = DiffPID3Classifier(1.0, ONE, max_depth=1)
    calls = []
    one = exact.audit(model, most_records=1)
    two = exact.audit(model, most_records=1, n_jobs=2, progress=lambda *done: calls.append(done))
    assert (one.found, one.outputs, one.runs) == (two.found, two.outputs, two.runs)
    assert calls[-1] == (4, 4)


def test_the_universe_and_its_neighbours():
    schema = Schema({"x": Numeric(-1, 3), "a": Categorical(["u", "v"])}, "y", classes=["n", "p"])
    records = exact.universe(schema)
    assert set(records) == set(itertools.product((-1, 3), ("u", None), ("n", "p")))
    pairs = list(exact.neighbours(records[:2], 2))
    assert len(pairs) == 2 + 2 * 2
    assert all(len(more) == len(table) + 1 and more[1:] == table for table, more in pairs)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (PrivateTreeClassifier(1.0), "schema"),
        (PrivateTreeClassifier(1.0, ONE, ledger="x"), "ledger"),
        (PrivateTreeClassifier(1.0, ONE, random_state=1), "random_state"),
        (PrivateTreeClassifier(math.inf, ONE), "finite"),
    ],
    ids=["no schema", "ledger", "seed", "no noise"],
)
def test_what_cannot_be_audited_is_refused(model, match):
    with pytest.raises(AuditError, match=match):
        exact.audit(model)


def test_an_audited_model_is_marked():
    """The source of an audit is not private, and the card says so."""
    seen = []

    def program(records, noise):
        model = PrivateTreeClassifier(1.0, ONE, max_depth=1, random_state=noise)
        with pytest.warns(UserWarning, match="random_state is fixed"):
            model.fit(np.array([["u"]], dtype=object), np.array([0]))
        seen.append(model.privacy_.private)
        return 0

    exact.compare(program, 0, 1)
    assert seen
    assert not any(seen)
