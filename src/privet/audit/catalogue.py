"""What is audited: every estimator with its options, on very small schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from privet.audit.exact import Table, Verdict, audit, universe
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

_A, _B = Categorical(["u"]), Categorical(["u"])
_X = Numeric(0, 1, bins=2)
ONE = Schema({"a": _A}, target="y", classes=[0, 1])
TWO = Schema({"a": _A, "b": _B}, target="y", classes=[0, 1])
MIXED = Schema({"a": _A, "x": _X}, target="y", classes=[0, 1])
NUMERIC = Schema({"x": _X}, target="y", classes=[0, 1])
THREE_CLASSES = Schema({"a": _A}, target="y", classes=[0, 1, 2])
PAIR = Schema({"a": Categorical(["u", "v"]), "b": _B}, target="y", classes=[0, 1])
PAIR_NUMBER = Schema({"a": Categorical(["u", "v"]), "b": _B}, target="y", bounds=(0, 1))
NUMBER = Schema({"a": _A}, target="y", bounds=(0, 1))
DELTA = 1e-6


@dataclass(frozen=True)
class Case:
    """An estimator and how it is audited.

    Attributes
    ----------
    learner : str
        The name by which the command line knows the estimator.
    options : str
        What sets this case apart.
    estimator : estimator
    how : dict
        Options of :func:`privet.audit.exact.audit`.
    """

    learner: str
    options: str
    estimator: Any
    how: dict[str, Any] = field(default_factory=dict)

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
        """Compare all neighbouring tables of up to so many records."""
        return audit(
            self.estimator,
            most_records=most_records,
            n_jobs=n_jobs,
            progress=progress,
            **self.how,
        )

    def short(self) -> Verdict:
        """Compare the empty table with one record, and one record with any two that contain it.

        As far as the values of these schemas are interchangeable (classes, bounds and categories
        are, an unknown category nearly so), this stands for all tables of up to two records.
        """
        records = universe(self.estimator.schema)
        alone: Table = (records[0],)
        pairs = [((), alone), *((alone, (record, *alone)) for record in records)]
        return audit(self.estimator, pairs=pairs, **self.how)


def cases(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield all cases at an epsilon."""
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

    yield case("depth 1, paid count", ONE, max_depth=1)
    yield case("depth 2", ONE, max_depth=2, n_rows=9)
    yield case("a number and a category", MIXED, max_depth=1, n_rows=9)
    yield case("without merging", MIXED, max_depth=1, n_rows=9, merge_tests=False)
    yield case("three classes", THREE_CLASSES, max_depth=1, n_rows=9)
    yield case("with probabilities", ONE, max_depth=1, n_rows=9, probability_share=0.5)
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
    yield case("two parts", number(schema=NUMBER, **given), follow)
    for criterion in ("linear", "sad", "sse"):
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
    for budget in ("decay", "uniform"):
        yield case(f"depth 2, {budget}", TWO, some, max_depth=2, budget=budget)
    yield case("depth 2, one node", MIXED, some, max_depth=2, max_nodes=1)
    yield case("depth 2, counts", MIXED, some, max_depth=2, min_weight=0.1, min_gain=0)
    for criterion in ("entropy", "gini"):
        yield case(
            f"{criterion}, published", MIXED, some, max_depth=2, criterion=criterion, split="rnm",
            calibration="published",
        )  # fmt: skip
