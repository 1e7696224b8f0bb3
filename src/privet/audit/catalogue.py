"""What is audited: every estimator with its options, and every question, on very small schemas.

A question of a table, or of parties, that is charged has at least one case; a test makes sure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet.audit.discovery import DiscoveryProbe
from privet.audit.exact import Record, Table, Verdict, audit, neighbours_by_person, universe
from privet.audit.probes import Probe, SharedProbe
from privet.criteria import Gini, Max
from privet.estimators import (
    DiffPC45Classifier,
    DiffPID3Classifier,
    DiPriMeForestClassifier,
    DiPriMeForestRegressor,
    DiPriMeTreeClassifier,
    DiPriMeTreeRegressor,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
    PrivaTreeClassifier,
    SulqID3Classifier,
    TopDownClassifier,
)
from privet.schema import Categorical, Numeric, Schema
from privet.tables import Basis, Multiway, Peaks, Tabled

_A, _B = Categorical(["u"]), Categorical(["u"])
_X = Numeric(0, 1, bins=2)
ONE = Schema({"a": _A}, target="y", classes=[0, 1])
TWO = Schema({"a": _A, "b": _B}, target="y", classes=[0, 1])
MIXED = Schema({"a": _A, "x": _X}, target="y", classes=[0, 1])
NUMERIC = Schema({"x": _X}, target="y", classes=[0, 1])
THREE_CLASSES = Schema({"a": _A}, target="y", classes=[0, 1, 2])
FOUR_CLASSES = Schema({"a": _A}, target="y", classes=[0, 1, 2, 3])
FOUR_CLASSES_MIXED = Schema({"a": _A, "x": _X}, target="y", classes=[0, 1, 2, 3])
FIVE_CLASSES = Schema({"a": _A}, target="y", classes=["a", "b", "c", "d", "e"])
THREE = Schema({name: _A for name in "abc"}, target="y", classes=[0, 1])
CONTINUOUS = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
#: Their targets are far from a score of zero, furthest and nearest.
FAR_AND_NEAR: tuple[Record, ...] = tuple(("u", y) for y in (0.3, 1.0, 0.0))
WITHIN: tuple[Record, ...] = tuple(("u", y) for y in (0.3, 0.9))
NUMBERS: tuple[Record, ...] = tuple((x, 0) for x in (0.1, 0.9))
PAIR = Schema({"a": Categorical(["u", "v"]), "b": _B}, target="y", classes=[0, 1])
PAIR_NUMBER = Schema({"a": Categorical(["u", "v"]), "b": _B}, target="y", bounds=(0, 1))
NUMBER = Schema({"a": _A}, target="y", bounds=(0, 1))
DELTA = 1e-6
#: How many pairs of neighbours that differ by a person the short audit compares.
_PERSONS = 8
#: Functions of a feature's codes, longer at some than what a question cuts them to.
_STEEP_A = Peaks.of(1.4, np.array([0.3, 0.6]))
_STEEP_X = Tabled.of(np.array([[-2.0, 0.5], [0.7, -0.5], [0.0, 0.0]]))


@dataclass(frozen=True)
class Case:
    """An estimator, or a question, and how it is audited.

    Attributes
    ----------
    learner : str
        The name by which the command line knows the estimator; ``"question"`` for a question.
    options : str
        What sets this case apart.
    estimator : estimator, Probe or SharedProbe
    how : dict
        Options of :func:`privet.audit.exact.audit`.
    records : sequence of records, optional
        The universe; by the schema if None.
    """

    learner: str
    options: str
    estimator: Any
    how: dict[str, Any] = field(default_factory=dict)
    records: Sequence[Record] | None = None

    @property
    def name(self) -> str:
        """How a table of verdicts calls it."""
        return f"{type(self.estimator).__name__}, {self.options}"

    def audit(
        self,
        *,
        most_records: int = 2,
        n_jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Verdict:
        """Compare all neighbouring tables of up to ``most_records`` records."""
        return audit(
            self.estimator,
            records=self.records,
            most_records=most_records,
            n_jobs=n_jobs,
            progress=progress,
            **self.how,
        )

    def short(self, last: int | None = None) -> Verdict:
        """Compare the empty table with one record, and one record with any two that contain it.

        As far as the values of these schemas are interchangeable (classes, bounds and categories
        are, an unknown category nearly so), this stands for all tables of up to two records. With
        ``last``, only that number of pairs, from the end.
        """
        records = self.records or universe(self.estimator.schema)
        alone: Table = (records[0],)
        pairs = [((), alone), *((alone, (record, *alone)) for record in records)]
        if self.estimator.schema.unit is not None:
            whole = neighbours_by_person(records, 2)
            pairs = [pair for pair in whole if len(pair[0]) < 2][-_PERSONS:]
        return audit(self.estimator, pairs=pairs[-last:] if last else pairs, **self.how)


@dataclass(frozen=True)
class DiscoveryCase(Case):
    """A discovered schema, of which persons with several records are the neighbours."""

    def audit(
        self,
        *,
        most_records: int = 2,
        n_jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Verdict:
        """Compare all neighbouring tables of up to ``most_records`` persons."""
        del n_jobs
        verdict: Verdict = self.estimator.audit(most_records)
        if progress is not None:
            progress(verdict.pairs, verdict.pairs)
        return verdict

    def short(self, last: int | None = None) -> Verdict:
        """Compare the empty table with all tables of one person."""
        del last
        verdict: Verdict = self.estimator.audit(1)
        return verdict


def cases(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield all cases at an epsilon."""
    yield from of_estimators(epsilon)
    yield from of_questions(epsilon)
    yield from of_persons(epsilon)
    yield from of_discoveries(epsilon)


def of_discoveries(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield the cases of discovered schemas."""
    for gaussian in (False, True):
        noise = "Gaussian" if gaussian else "Laplace"
        for options, given in (
            ("records", {"unit": False}),
            ("persons", {}),
            ("2 rows per person", {"rows_per_unit": 2}),
        ):
            model = DiscoveryProbe(epsilon, 0.01, gaussian=gaussian, **given)
            yield DiscoveryCase("schema", f"{options}, {noise} noise", model)


def of_estimators(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield the cases of whole estimators."""
    yield from _trees(epsilon)
    yield from _added(epsilon)
    yield from _friedman_schuster(epsilon)
    yield from _privatree(epsilon)
    yield from _topdown(epsilon)
    yield from _forests(epsilon)


def _trees(epsilon: float) -> Iterator[Case]:
    def case(options: str, schema: Schema, how: dict[str, Any] | None = None, **given: Any) -> Case:
        model = PrivateTreeClassifier(epsilon, schema, **given)
        return Case("tree", options, model, how or {})

    drawn, public = math.ceil(20 / epsilon), max(1, int(5 / epsilon))
    yield case("depth 1, paid count", ONE, max_depth=1)
    yield case("depth 2", ONE, max_depth=2, n_rows=drawn)
    yield case("a number and a category", MIXED, max_depth=1, n_rows=drawn)
    yield case("without merging", MIXED, max_depth=1, n_rows=drawn, merge_tests=False)
    yield case("three classes", THREE_CLASSES, max_depth=1, n_rows=drawn)
    yield case("with probabilities", ONE, max_depth=1, n_rows=drawn, probability_share=0.5)
    yield case("public tests", MIXED, n_rows=public)
    follow: dict[str, Any] = {"paths": 4}
    yield case("a test share", ONE, follow, max_depth=1, n_rows=2 * drawn, test_share=0.5)
    yield case("a test share, paid count", ONE, follow, max_depth=1, test_share=0.5)
    yield case("a test share by group", ONE, follow, max_depth=1, test_share=0.5, test_by="a")
    yield case("quantiles", NUMERIC, {"paths": 4}, max_depth=1, n_rows=round(2_000 / epsilon))


def _added(epsilon: float) -> Iterator[Case]:
    few: dict[str, Any] = {"most_outcomes": 2}
    follow: dict[str, Any] = {"paths": 8}
    for delta in (None, DELTA):
        account = "pure" if delta is None else "zCDP"
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        one_round: dict[str, Any] = {"n_rounds": 1, "max_depth": 1, **given}
        two_rounds: dict[str, Any] = {"n_rounds": 2, "max_depth": 1, **given}
        classes, number = PrivateBoostingClassifier, PrivateBoostingRegressor
        yield Case("boosting", f"one round, {account}", classes(schema=ONE, **one_round), few)
        yield Case("boosting", f"two rounds, {account}", classes(schema=ONE, **two_rounds), follow)
        yield Case(
            "boosting", f"three classes, {account}", classes(schema=THREE_CLASSES, **two_rounds),
            follow,
        )  # fmt: skip
        yield Case("boosting", f"one round, {account}", number(schema=NUMBER, **one_round), few)
        yield Case(
            "boosting", f"two rounds, {account}", number(schema=NUMBER, **two_rounds), follow
        )
        for schema in (ONE, THREE_CLASSES):
            tested: dict[str, Any] = {"test_share": 0.5, "schema": schema, **one_round}
            options = f"a test share, {len(schema.classes or ())} classes, {account}"
            yield Case("boosting", options, classes(**tested), {"paths": 4})
        yield Case(
            "boosting", f"a test share, {account}",
            number(schema=NUMBER, test_share=0.5, **one_round), {"paths": 4},
        )  # fmt: skip
        if delta is None:  # a tree, after counts have said whether a class is rare
            some: dict[str, Any] = {"max_depth": 1, "n_rows": round(600 / epsilon), **given}
            yield Case("boosting", "one tree, pure", classes(schema=ONE, **some), follow)
        many = round((2_000 if delta is None else 1_000) / epsilon)
        yield Case(
            "boosting", f"bought reach, {account}",
            number(schema=NUMBER, n_rows=many, **two_rounds), follow,
        )  # fmt: skip
        for model, schema in (
            (PrivateAdditiveClassifier, ONE),
            (PrivateAdditiveClassifier, THREE_CLASSES),
            (PrivateAdditiveRegressor, NUMBER),
        ):
            options = f"{len(schema.classes or ()) or 'no'} classes, {account}"
            yield Case("additive", options, model(schema=schema, **given), follow)


def _friedman_schuster(epsilon: float) -> Iterator[Case]:
    for calibration in ("valid", "published"):
        given: dict[str, Any] = {
            "epsilon": epsilon, "schema": TWO, "max_depth": 1, "calibration": calibration,
        }  # fmt: skip
        small = {**given, "schema": ONE}
        many = {"paths": 12} if calibration == "published" else {}
        yield Case("sulq", calibration, SulqID3Classifier(**small), many)
        for criterion in ("max", "gini", "clipped_entropy", "entropy"):
            bound = {"n_max": 100} if criterion == "entropy" else {}
            options: dict[str, Any] = {"criterion": criterion, **bound}
            name = f"{criterion}, {calibration}"
            yield Case("diffpid3", name, DiffPID3Classifier(**given, **options))
            mixed = {**given, "schema": MIXED}
            yield Case("diffpc45", name, DiffPC45Classifier(**mixed, **options))
        deep = {**given, "max_depth": 2}
        yield Case("diffpid3", f"depth 2, {calibration}", DiffPID3Classifier(**deep), {"paths": 12})
        yield Case("sulq", f"depth 2, {calibration}", SulqID3Classifier(**deep), {"paths": 12})
        pruned = {**given, "schema": MIXED, "max_depth": 2}
        yield Case(
            "diffpc45", f"depth 2, {calibration}", DiffPC45Classifier(**pruned), {"paths": 12}
        )


def _privatree(epsilon: float) -> Iterator[Case]:
    def case(options: str, schema: Schema, how: dict[str, Any] | None = None, **given: Any) -> Case:
        shared = {"max_depth": 1, "max_bins": 2, "n_rows": 9, "leaf_error": 0.5, **given}
        return Case("privatree", options, PrivaTreeClassifier(epsilon, schema, **shared), how or {})

    yield case("select", MIXED)
    yield case("select, paid count", ONE, n_rows=None)
    yield case("select, three classes", THREE_CLASSES)
    yield case("select, four classes", FOUR_CLASSES, {"most_outcomes": 2})
    yield case("select, depth 2", TWO, {"paths": 12}, max_depth=2)
    yield case("select, quantiles", NUMERIC, {"paths": 12}, binning="quantile", max_bins=3)
    yield case("histograms", MIXED, {"most_outcomes": 2}, split="histogram")
    yield case("histograms, depth 2", TWO, {"paths": 12}, split="histogram", max_depth=2)
    yield case(
        "histograms, published", MIXED, {"paths": 12}, split="histogram", calibration="published",
        binning="quantile",
    )  # fmt: skip


def _forests(epsilon: float) -> Iterator[Case]:
    follow: dict[str, Any] = {"paths": 12}

    def case(options: str, model: Any, how: dict[str, Any] | None = None) -> Case:
        return Case("diprime", options, model, how or {})

    classes, number = DiPriMeForestClassifier, DiPriMeForestRegressor
    given: dict[str, Any] = {"epsilon": epsilon, "max_depth": 1, "n_estimators": 2}
    for variant in ("uniform", "exp", "flip"):
        kind: dict[str, Any] = {"variant": variant, **given}
        paper: dict[str, Any] = {"calibration": "published", "max_features": 2, **kind}
        alone: dict[str, Any] = {"epsilon": epsilon, "max_depth": 1, "variant": variant}
        yield case(f"{variant}, two parts", classes(schema=PAIR, **kind), follow)
        yield case(f"{variant}, published", classes(schema=PAIR, **paper), follow)
        yield case(f"{variant}, one tree", DiPriMeTreeClassifier(schema=PAIR, **alone))
        yield case(
            f"{variant}, one tree", DiPriMeTreeRegressor(schema=PAIR_NUMBER, **alone), follow
        )
    yield case("a number and a category", classes(schema=MIXED, variant="exp", **given), follow)
    yield case("depth 2", DiPriMeTreeClassifier(epsilon, TWO, max_depth=2), follow)
    yield case("paid count", DiPriMeTreeClassifier(epsilon, ONE), follow)
    yield case("every tree on all rows", classes(schema=TWO, partition=False, **given), follow)
    yield case("three classes", classes(schema=THREE_CLASSES, **given), follow)
    yield case("four classes", classes(schema=FOUR_CLASSES, **given), follow)
    yield case("two parts", number(schema=NUMBER, **given), follow)
    yield case(
        "two parts, a test share", classes(schema=PAIR, test_share=0.5, **given), {"paths": 4}
    )
    yield Case(
        "tree",
        "a number, bought reach",
        PrivateTreeRegressor(epsilon, NUMBER, max_depth=1, n_rows=round(2_000 / epsilon)),
        follow,
    )
    yield Case(
        "tree",
        "a number, linear",
        PrivateTreeRegressor(epsilon, NUMBER, max_depth=1, n_rows=math.ceil(200 / epsilon)),
        follow,
    )
    for criterion in ("sad", "sse"):
        yield Case(
            "tree",
            f"a number, {criterion}",
            PrivateTreeRegressor(epsilon, NUMBER, max_depth=1, n_rows=9, criterion=criterion),
            follow,
        )


def _topdown(epsilon: float) -> Iterator[Case]:
    def case(options: str, schema: Schema, how: dict[str, Any] | None = None, **given: Any) -> Case:
        shared = {"max_depth": 1, "n_thresholds": 1, "n_rows": 9, **given}
        return Case("topdown", options, TopDownClassifier(epsilon, schema, **shared), how or {})

    few, some = {"most_outcomes": 2}, {"paths": 12}
    for split in ("flip", "exponential", "rnm"):
        yield case(split, MIXED, few, split=split)
    for criterion in ("max", "clipped_entropy", "entropy"):
        yield case(criterion, MIXED, few, criterion=criterion)
    yield case("paid count", ONE, few, n_rows=None, max_depth="auto")
    yield case("three classes", THREE_CLASSES, few)
    yield case("four classes", FOUR_CLASSES, few)
    for budget in ("decay", "uniform"):
        yield case(f"depth 2, {budget}", TWO, some, max_depth=2, budget=budget)
    yield case("depth 2, one node", MIXED, some, max_depth=2, max_nodes=1)
    yield case("depth 2, counts", MIXED, some, max_depth=2, min_weight=0.1, min_gain=0)
    for criterion in ("entropy", "gini"):
        yield case(
            f"{criterion}, published", MIXED, some, max_depth=2, criterion=criterion, split="rnm",
            calibration="published",
        )  # fmt: skip


def of_questions(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield the cases of single questions: those that no estimator above asks, or not like this."""

    def case(
        options: str,
        question: str,
        schema: Schema,
        limits: dict[str, Any] | None = None,
        records: Sequence[Record] | None = None,
        *,
        by: str | None = None,
        delta: float | None = None,
        **given: Any,
    ) -> Case:
        model = Probe(question, epsilon, schema, given=given, by=by, delta=delta)
        return Case("question", f"{question}, {options}", model, limits or {}, records)

    most_telling = {"paths": 2}
    for delta in (None, DELTA):
        account = "pure" if delta is None else "zCDP"
        yield case(f"2 of 3, {account}", "choose_features", THREE, count=2, delta=delta)
        yield case(
            f"2 parts, {account}", "joint_quantiles", CONTINUOUS, most_telling, NUMBERS,
            feature="x", parts=2, delta=delta,
        )  # fmt: skip
        yield case(f"max, {account}", "choose", TWO, delta=delta)
        yield case(f"4 classes, {account}", "choose_labels", FOUR_CLASSES, by="a", delta=delta)
        yield case(f"4 classes, {account}", "noisy_class_counts", FOUR_CLASSES, delta=delta)
        yield case(
            f"median of the target, {account}", "quantiles", NUMBER, most_telling,
            WITHIN, feature="y", parts=2, delta=delta,
        )  # fmt: skip
        yield case(
            f"2 classes, {account}", "noisy_confusion", ONE, {"most_outcomes": 3}, scores=(0.5,),
            delta=delta,
        )  # fmt: skip
        yield case(
            f"4 classes, {account}", "noisy_confusion", FOUR_CLASSES, most_telling, by="a",
            scores=(0.5, 0.0, 0.0, -0.5), delta=delta,
        )  # fmt: skip
        yield case(
            f"2 bins, {account}", "noisy_score_counts", ONE, {"most_outcomes": 3}, scores=(0.5,),
            ends=(0.5,), delta=delta,
        )  # fmt: skip
        yield case(
            f"near and far, {account}", "noisy_errors", NUMBER, most_telling, FAR_AND_NEAR,
            scores=(0.25,), delta=delta,
        )  # fmt: skip
        two = [(0.5,), (-0.5,)]
        yield case(f"2 models, {account}", "choose_scores", ONE, scores=two, delta=delta)
        yield case(
            f"2 models of a number, {account}", "choose_scores", NUMBER, None, FAR_AND_NEAR,
            scores=[(0.0,), (1.0,)], delta=delta,
        )  # fmt: skip
        for share in (Fraction(1, 50), Fraction(3, 10), Fraction(1, 2), Fraction(9, 10)):
            yield case(
                f"{share} beyond, {account}", "noisy_scale", NUMBER, None, FAR_AND_NEAR,
                scores=(0.0,), share=share, delta=delta,
            )  # fmt: skip
    yield case(
        "3 parts", "joint_quantiles", CONTINUOUS, most_telling, NUMBERS, feature="x", parts=3
    )
    a_and_x = Basis(((0, _STEEP_A), (1, _STEEP_X)))
    yield case("two features", "noisy_sums", MIXED, most_telling, delta=DELTA, basis=a_and_x)
    for schema, basis, start in (
        (MIXED, a_and_x, (0.5,)),
        (FOUR_CLASSES_MIXED, Basis(((1, _STEEP_X),)), (0.5, 0.0, 0.0, -0.5)),
    ):
        yield case(
            f"{len(schema.classes or ())} classes", "noisy_slopes", schema, most_telling,
            delta=DELTA, basis=basis, scores=start, largest=0.5, longest=1.5,
        )  # fmt: skip
    yield case(
        "two classes", "noisy_calibration", ONE, most_telling, delta=DELTA, scores=(0.5,),
        shift=0.25, factor=1.5,
    )  # fmt: skip
    yield case("5 classes", "choose_labels", FIVE_CLASSES)
    yield case("gini", "choose", MIXED, criterion=Gini())
    yield case("of some", "choose", THREE, among=["a", "c"])
    yield case(
        "4 classes", "choose_splits", FOUR_CLASSES_MIXED, candidates=Multiway(), criterion=Gini(),
        allowed=np.ones((1, 2), dtype=bool),
    )  # fmt: skip
    yield case(
        "4 classes", "choose_best", FOUR_CLASSES_MIXED, {"most_outcomes": 2},
        candidates=Multiway(), criterion=Gini(), how="rnm",
    )  # fmt: skip
    for depth, schema in ((3, MIXED), (2, FOUR_CLASSES_MIXED), (3, FOUR_CLASSES)):
        options = f"depth {depth}, {len(schema.classes or ())} classes"
        model = Probe(
            "draw_trees", epsilon, schema, given={"depth": depth, "merge": False}, whole_draws=False
        )
        yield Case("question", f"draw_trees, {options}", model, most_telling)
    yield from _shared(epsilon)


def of_persons(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield the cases of schemas with a unit: neighbours differ by a whole person."""

    def case(
        question: str, schema: Schema, limits: dict[str, Any] | None = None, /, **more: Any
    ) -> Case:
        records = more.pop("records", None)
        shared = {name: more.pop(name) for name in ("by", "delta") if name in more}
        schema = replace(schema, unit="who", rows_per_unit=more.pop("rows", None))
        kind = f"{schema.unit_parts} parts, {'pure' if shared.get('delta') is None else 'zCDP'}"
        model = Probe(question, epsilon, schema, given=more, **shared)
        return Case("question", f"{question} of persons, {kind}", model, limits or {}, records)

    most_telling = {"paths": 2}
    for delta in (None, DELTA):
        yield case("choose_labels", ONE, by="a", delta=delta)
        yield case("choose_labels", ONE, by="a", delta=delta, rows=2)
        yield case("choose_features", TWO, count=1, delta=delta)
        yield case("noisy_class_counts", ONE, most_telling, by="a", delta=delta, rows=2)
        yield case(
            "quantiles", CONTINUOUS, most_telling, records=NUMBERS, feature="x", parts=2,
            delta=delta,
        )  # fmt: skip
        yield case("noisy_gradients", ONE, most_telling, by="a", delta=delta, rows=2, scores=(0.5,))
        yield case("noisy_confusion", ONE, most_telling, by="a", delta=delta, scores=(0.5,))
        yield case("noisy_score_counts", ONE, most_telling, delta=delta, scores=(0.5,), ends=(0.5,))
        yield case(
            "noisy_errors", NUMBER, most_telling, records=FAR_AND_NEAR, delta=delta, scores=(0.25,)
        )
        yield case("choose_scores", ONE, delta=delta, scores=[(0.5,), (-0.5,)])
    yield case("draw_trees", ONE, most_telling, by="a", depth=1, merge=False)
    yield case("choose_splits", TWO, candidates=Multiway(), criterion=Gini(),
               allowed=np.ones((1, 2), dtype=bool))  # fmt: skip
    yield case("noisy_sums", ONE, most_telling, delta=DELTA, rows=2, basis=Basis(((0, _STEEP_A),)))
    persons = replace(TWO, unit="who")
    for criterion, bound in (("max", None), ("entropy", 100)):
        model = DiffPID3Classifier(epsilon, persons, max_depth=1, criterion=criterion, n_max=bound)
        yield Case("diffpid3", f"{criterion}, persons", model, {"paths": 4})


def _shared(epsilon: float) -> Iterator[Case]:
    """Yield the questions that two parties answer under secure sums, by what each is asked.

    Two records only, one for each party, of different classes: an answer takes many rounds.
    """

    def case(share: str, options: str, question: str, schema: Schema, **given: Any) -> Case:
        parts = {name: given.pop(name) for name in ("by", "honest") if name in given}
        model = SharedProbe(question, epsilon, schema, given=given, **parts)
        first, *_, last = universe(schema)
        records = (first, (last[0], *first[1:-1], last[-1]))
        return Case("question", f"{share}, {options}", model, {}, records)

    counts, labels = "noisy_class_counts", "choose_labels"
    for honest in (2, 1):
        options = f"{honest} of 2 honest"
        yield case("share_counts", options, "noisy_counts", ONE, by="a", honest=honest)
        yield case("share_class_counts", options, counts, ONE, by="a", honest=honest)
        yield case("share_labels", options, labels, ONE, honest=honest)
    yield case("share_class_counts", "4 classes", counts, FOUR_CLASSES)
    yield case("share_confusion", "2 classes", "noisy_confusion", ONE, scores=(0.5,))
    bins: dict[str, Any] = {"scores": (0.5,), "ends": (0.5,)}
    yield case("share_score_counts", "2 bins", "noisy_score_counts", ONE, **bins)
    yield case("share_labels", "4 classes", labels, FOUR_CLASSES)
    given: dict[str, Any] = {"candidates": Multiway(), "how": "flip"}
    for criterion, schema in ((Max(), TWO), (Gini(), FOUR_CLASSES_MIXED)):
        options = f"{criterion.name}, {len(schema.classes or ())} classes"
        yield case("share_splits", options, "choose_best", schema, criterion=criterion, **given)
