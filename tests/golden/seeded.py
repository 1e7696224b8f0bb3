"""A catalogue of seeded models: every learner, and every option that changes what it asks.

``python tests/golden/seeded.py --write`` fits all of them and writes ``seeded/<name>.json``;
with names behind it, only those. Read README.md before that.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from privet import (
    Budget,
    Categorical,
    DiffPC45Classifier,
    DiffPID3Classifier,
    DiPriMeForestClassifier,
    DiPriMeForestRegressor,
    DiPriMeTreeClassifier,
    DiPriMeTreeRegressor,
    LedgerStore,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
    PrivaTreeClassifier,
    Schema,
    SulqID3Classifier,
    TopDownClassifier,
)
from privet.baselines import (
    BDPTClassifier,
    DPGDFClassifier,
    FletcherIslamForestClassifier,
    PatilSinghForestClassifier,
    PatilSinghForestRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
)
from privet.errors import PrivacyLeakWarning, PublishedCostWarning
from privet.federation import FederatedTable, Party

FOLDER = Path(__file__).with_name("seeded")
#: On what the files were written.
PROCESSOR = "processor.txt"
SEED = 18

# Tables ------------------------------------------------------------------------------------------

WARDS = tuple("abcdefghijkl")
FEATURES = {
    "dose": Numeric(-40, 60),
    "age": Numeric(18, 95, bins=7),
    "share": Numeric(0, 1, edges=[0.1, 0.5, 0.75]),
    "sex": Categorical(["f", "m"]),
    "ward": Categorical(WARDS),
    "grade": Categorical([1, 2, 3]),
}
SCHEMAS = {
    "two": Schema(FEATURES, "ill", classes=["no", "yes"], table="patients"),
    "four": Schema(FEATURES, "stage", classes=[1, 2, 3, 4]),
    "number": Schema(FEATURES, "days", bounds=(-10, 30)),
    "rare": Schema(FEATURES, "ill", classes=["no", "yes"]),
    "flags": Schema({f"flag {j}": Categorical([0, 1]) for j in range(6)}, "any", classes=[0, 1]),
}
ROWS = 2_000
#: Wide tables: too many features, so that a block is drawn over a few of them.
WIDE, WIDER = 44, 130


@cache
def make_table(name: str) -> tuple[pa.Table, Schema]:
    """Return a table with everything that a record can be wrong in, and its schema.

    Plain arithmetic on uniform numbers: it is the same everywhere.
    """
    rng = np.random.default_rng(SEED)
    if name == "flags":
        bits = rng.integers(0, 2, (500, 6))
        target = (bits[:, 0] & bits[:, 1]) | bits[:, 2]
        columns = {f"flag {j}": bits[:, j] for j in range(6)}
        return pa.table({**columns, "any": target}), SCHEMAS[name]
    if name.startswith("wide"):
        return _make_wide(WIDE if name.startswith("wide ") else WIDER, name.split()[1], rng)
    dose, age = rng.random(ROWS) * 110 - 45, rng.random(ROWS) * 90 + 10  # some out of bounds
    share = rng.random(ROWS) * rng.random(ROWS)
    sex, ward = rng.integers(0, 3, ROWS), rng.integers(0, 13, ROWS)  # the last is not known
    grade, luck = rng.integers(1, 5, ROWS), rng.random(ROWS)
    days = 8 + 0.2 * dose - 6 * (sex == 1) + 0.1 * (age - 50) * (ward % 3 == 0) + 8 * (luck - 0.5)
    dose[::17], age[5::31], share[7::23] = np.nan, np.nan, np.inf
    columns = {
        "note": [f"record {i}" for i in range(ROWS)],  # no feature
        "age": [None if np.isnan(value) else value for value in age.tolist()],
        "dose": dose,
        "share": share,
        "sex": [("f", "m", None)[code] for code in sex],
        "ward": [(*WARDS, "cellar")[code] for code in ward],
        "grade": [None if i % 29 == 0 else int(code) for i, code in enumerate(grade)],
    }
    if name in ("two", "rare"):
        label = np.where(days > (8 if name == "two" else 17), "yes", "no").astype(object)
        label[::41], label[3::53] = None, "perhaps"
        columns["ill"] = label.tolist()
    elif name == "four":
        label = np.clip(days // 6 + 2, 1, 5).astype(int)  # 5 is not known
        columns["stage"] = [None if i % 43 == 0 else int(code) for i, code in enumerate(label)]
    else:
        days[::37] = np.nan
        columns["days"] = days
    return pa.table(columns), SCHEMAS[name]


def _make_wide(features: int, target: str, rng: np.random.Generator) -> tuple[pa.Table, Schema]:
    """Return a table of many numbers, every fourth a category."""
    rows = 600
    known: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    total = np.zeros(rows)
    for j in range(features):
        values = rng.integers(0, 5, rows) if j % 4 == 3 else rng.random(rows)
        known[f"x{j}"] = Categorical([0, 1, 2, 3]) if j % 4 == 3 else Numeric(-0.25, 1)
        columns[f"x{j}"] = values
        total += values / (j + 1)
    if target == "number":
        schema = Schema(known, "y", bounds=(0, 8))
        return pa.table({**columns, "y": total}), schema
    if target == "four":
        schema = Schema(known, "y", classes=[0, 1, 2, 3])
        return pa.table({**columns, "y": np.clip(total - 1, 0, 3.5).astype(int)}), schema
    schema = Schema(known, "y", classes=[False, True])
    return pa.table({**columns, "y": total > 2.5}), schema


# The catalogue -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A seeded fit: what is fitted to which table, and by which parties, if by some."""

    make: Callable[..., Any]
    table: str
    options: dict[str, Any]
    #: Options of the FederatedTable.
    parties: dict[str, Any] | None = None
    #: What a ledger file of the table allows, if the fit has one.
    store: dict[str, Any] | None = None
    #: How rows are handed over: by names, as an array, or without a schema.
    given: str = field(default="table")

    def fit(self) -> Any:
        """Return the fitted estimator."""
        table, schema = make_table(self.table)
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # a seed is fixed
            warnings.simplefilter("ignore", PublishedCostWarning)
            if self.parties is not None:
                return self._fit_parties(table, schema)
            options = {"schema": schema, "random_state": SEED, **self.options}
            if self.store is not None:
                columns = [*schema.names, schema.target]
                options["ledger"] = LedgerStore.create(
                    Path(folder) / "ledger", Budget(**self.store), columns=columns
                )
            if callable(options["random_state"]):
                options["random_state"] = options["random_state"](SEED)
            model = self.make(**options)
            if self.given == "table":
                return model.fit(table)
            if self.given == "array":
                features = np.column_stack(
                    [np.array(table[name].to_pylist(), dtype=object) for name in schema.names]
                )
                return model.fit(features, table[schema.target].to_pylist())
            known = table.filter(table[schema.target].is_valid())
            return model.fit(known.select(schema.names), known[schema.target])

    def _fit_parties(self, table: pa.Table, schema: Schema) -> Any:
        """Fit the rows of three parties, of which the last has few."""
        owners = np.arange(len(table)) % 20
        held = [owners < 12, (owners >= 12) & (owners < 19), owners == 19]
        parties = [
            Party(f"clinic {k}", table.filter(mine), None, schema, Budget(50.0), random_state=k)
            for k, mine in enumerate(held)
        ]
        model = self.make(**self.options).fit(FederatedTable(parties, **(self.parties or {})))
        for party in parties:
            party.close()
        return model


CASES: dict[str, Case] = {}


def keep(
    name: str,
    make: Callable[..., Any],
    table: str,
    *,
    parties: dict[str, Any] | None = None,
    store: dict[str, Any] | None = None,
    given: str = "table",
    **options: Any,
) -> None:
    """Put a case into the catalogue."""
    assert name not in CASES, name
    CASES[name] = Case(make, table, options, parties, store, given)


def by_level(level: int) -> float:
    """Return a budget of one's own for a level of TopDown."""
    return 1 / level


# TopDown
_topdown = TopDownClassifier
keep("topdown", _topdown, "two")
keep("topdown_four", _topdown, "four", n_rows=ROWS)
keep("topdown_array", _topdown, "two", given="array", max_nodes=6)
keep("topdown_drafted", _topdown, "two", given="drafted", schema=None, max_nodes=6)
keep("topdown_random_state", _topdown, "two", random_state=np.random.RandomState, max_nodes=6)
keep("topdown_generator", _topdown, "two", random_state=np.random.default_rng, max_nodes=6)
keep("topdown_no_noise", _topdown, "two", epsilon=float("inf"), max_nodes=12, max_depth=5)
keep("topdown_depth", _topdown, "two", max_depth=3)
keep("topdown_nodes", _topdown, "two", max_nodes=5, min_weight=0.05)
keep("topdown_uniform", _topdown, "two", budget="uniform", leaf_fraction=0.25)
keep("topdown_own_budget", _topdown, "two", budget=by_level, n_thresholds=7)
keep("topdown_gain", _topdown, "two", min_gain=3.0, n_thresholds=10)
keep("topdown_max", _topdown, "four", criterion="max")
keep("topdown_clipped_entropy", _topdown, "four", criterion="clipped_entropy")
keep("topdown_entropy", _topdown, "two", criterion="entropy", n_rows=ROWS)
keep("topdown_exponential", _topdown, "two", split="exponential")
keep("topdown_rnm", _topdown, "two", split="rnm")
keep("topdown_rnm_max", _topdown, "four", split="rnm", criterion="max", max_depth=4)
for _criterion in ("gini", "entropy"):
    keep(
        f"topdown_published_{_criterion}",
        _topdown,
        "two",
        calibration="published",
        split="rnm",
        criterion=_criterion,
        n_rows=ROWS,
        max_nodes=16,
        epsilon=4.0,
    )

# Friedman and Schuster
for _table in ("two", "four"):
    keep(f"sulq_{_table}", SulqID3Classifier, _table, epsilon=8.0, max_depth=2)
keep("sulq_published", SulqID3Classifier, "two", epsilon=8.0, max_depth=2, calibration="published")
for _name, _make in (("diffpid3", DiffPID3Classifier), ("diffpc45", DiffPC45Classifier)):
    keep(_name, _make, "two")
    for _criterion in ("max", "gini", "clipped_entropy"):
        keep(f"{_name}_four_{_criterion}", _make, "four", criterion=_criterion, max_depth=3)
    keep(f"{_name}_entropy", _make, "two", criterion="entropy", n_max=ROWS, max_depth=3)
    keep(f"{_name}_published", _make, "two", calibration="published", max_depth=3)
    keep(f"{_name}_no_noise", _make, "flags", epsilon=float("inf"), max_depth=3)
keep("diffpc45_unpruned", DiffPC45Classifier, "two", confidence=None, max_depth=3, epsilon=4.0)
keep("diffpc45_pruned_more", DiffPC45Classifier, "two", confidence=0.1, max_depth=3, epsilon=4.0)

# PrivaTree
_privatree = PrivaTreeClassifier
keep("privatree", _privatree, "two")
keep("privatree_four", _privatree, "four", n_rows=ROWS)
keep("privatree_auto_quantile", _privatree, "two", n_rows=ROWS, epsilon=3.0)
keep("privatree_no_noise", _privatree, "two", epsilon=float("inf"), max_depth=3, n_rows=ROWS)
keep("privatree_leaf_error", _privatree, "two", leaf_error=0.2, max_depth=2)
for _binning in ("quantile", "joint-quantile", "leaking-quantile", "scales", "uniform"):
    for _bins in (None, 7, 10):
        keep(
            f"privatree_{_binning}_{_bins or 'usual'}".replace("-", "_"),
            _privatree,
            "two" if _bins != 7 else "four",
            binning=_binning,
            max_bins=_bins,
            max_depth=3,
        )
    keep(
        f"privatree_histogram_{_binning}".replace("-", "_"),
        _privatree,
        "two",
        binning=_binning,
        split="histogram",
        max_depth=2,
        epsilon=4.0,
    )
    keep(
        f"privatree_published_{_binning}".replace("-", "_"),
        _privatree,
        "two",
        binning=_binning,
        split="histogram",
        calibration="published",
        n_rows=ROWS,
        max_depth=3,
    )
keep("privatree_published_select", _privatree, "four", calibration="published", n_rows=ROWS)
keep("privatree_histogram_four", _privatree, "four", split="histogram", epsilon=4.0, max_depth=2)
keep("privatree_ordered", _privatree, "two", categories="ordered", max_depth=3)
keep("privatree_ordered_four", _privatree, "four", categories="ordered", binning="uniform")
keep("privatree_ordered_flags", _privatree, "flags", categories="ordered", max_depth=2)

# Whole trees of classes
_tree = PrivateTreeClassifier
keep("tree", _tree, "two")
keep("tree_four", _tree, "four")
keep("tree_tested", _tree, "two", n_rows=ROWS, test_share=0.3)
keep("tree_tested_four", _tree, "four", max_depth=1, test_share=0.3)
keep("tree_weighed", _tree, "two", max_depth=2, class_weight={"yes": 3.0})
keep("tree_small", _tree, "two", epsilon=0.02, n_rows=ROWS)
keep("tree_public", _tree, "two", epsilon=0.004, n_rows=ROWS)
keep("tree_public_four", _tree, "four", epsilon=0.004, n_rows=ROWS, probability_share=0.5)
keep("tree_declared", _tree, "two", n_rows=ROWS)
keep("tree_quantiles", _tree, "two", epsilon=3.0, n_rows=ROWS)
keep("tree_probabilities", _tree, "four", probability_share=0.25)
keep("tree_probabilities_quantiles", _tree, "two", probability_share=0.25, epsilon=4.0)
keep("tree_flags", _tree, "flags", epsilon=8.0, probability_share=0.2)
keep("tree_unmerged", _tree, "flags", epsilon=8.0, merge_tests=False)
for _depth in (1, 2, 4, 5):
    keep(f"tree_depth_{_depth}", _tree, "two", max_depth=_depth, n_rows=ROWS)
keep("tree_wide", _tree, "wide classes", epsilon=8.0)
keep("tree_wide_little", _tree, "wide classes", epsilon=1.5)
keep("tree_wider", _tree, "wider classes", epsilon=8.0)
keep("tree_wide_four", _tree, "wide four", epsilon=8.0)
keep("tree_wide_four_little", _tree, "wide four", epsilon=1.5)
keep("tree_no_noise", _tree, "flags", epsilon=float("inf"), max_depth=3)

# Whole trees of a number
_regression = PrivateTreeRegressor
keep("regression_tree", _regression, "number")
keep("regression_tree_declared", _regression, "number", n_rows=ROWS, epsilon=0.5)
keep("regression_tree_quantiles", _regression, "number", n_rows=ROWS, epsilon=3.0)
keep("regression_tree_blocks", _regression, "number", epsilon=10.0, max_depth=7)
keep("regression_tree_depth", _regression, "number", max_depth=2, merge_tests=False)
keep("regression_tree_wide", _regression, "wide number", epsilon=8.0)
keep("regression_tree_wider", _regression, "wider number", epsilon=4.0, max_depth=2)
keep("regression_tree_no_noise", _regression, "number", epsilon=float("inf"), max_depth=2)
for _criterion in ("sad", "sse"):
    keep(f"regression_tree_{_criterion}", _regression, "number", criterion=_criterion)
    keep(
        f"regression_tree_{_criterion}_declared",
        _regression,
        "number",
        criterion=_criterion,
        n_rows=ROWS,
        epsilon=3.0,
        max_depth=4,
    )

# Boosting
_classes, _number = PrivateBoostingClassifier, PrivateBoostingRegressor
keep("boosting_tree", _classes, "two", epsilon=0.5)
keep("boosting_tree_four", _classes, "four", n_rows=ROWS)
keep("boosting_rare", _classes, "rare", epsilon=0.4, n_rows=ROWS)
keep("boosting_rare_counted", _classes, "rare", epsilon=0.4)
keep("boosting_slopes_rare", _classes, "rare", delta=1e-6, n_rows=ROWS)
keep("boosting_few", _classes, "two", n_rows=ROWS)
keep("boosting_labels", _classes, "two", aim="labels", n_rows=ROWS)
keep("boosting_labels_counted", _classes, "two", aim="labels")
keep("boosting", _classes, "two", epsilon=8.0)
keep("boosting_four", _classes, "four", n_rounds=2, max_depth=2)
keep("boosting_delta", _classes, "two", delta=1e-6, n_rounds=3)
keep("boosting_delta_tested", _classes, "two", delta=1e-6, n_rounds=2, max_depth=1, test_share=0.3)
keep("boosting_delta_four", _classes, "four", delta=1e-6, n_rounds=2, max_depth=1)
keep("boosting_delta_auto", _classes, "two", delta=1e-6, epsilon=2.0)
keep("boosting_delta_declared", _classes, "two", delta=1e-6, epsilon=0.1, n_rows=ROWS)
keep("boosting_delta_labels", _classes, "two", delta=1e-6, aim="labels", n_rows=ROWS)
keep("boosting_slopes_wide", _classes, "wide classes", delta=1e-6, n_rows=600)
keep("boosting_from_slopes", _classes, "two", delta=1e-6, n_rounds=2, max_depth=1, n_rows=30_000)
keep("boosting_weighed", _classes, "two", n_rounds=2, max_depth=1, class_weight={"no": 0.25})
keep("boosting_rounds", _classes, "two", n_rounds=9, max_depth=1, n_rows=ROWS)
keep("boosting_unmerged", _classes, "flags", n_rounds=2, merge_tests=False)
keep("boosting_wide", _classes, "wide classes", delta=1e-6, n_rounds=2)
keep("boosting_no_noise", _classes, "flags", epsilon=float("inf"), n_rounds=3)
keep(
    "boosting_ledger",
    _classes,
    "two",
    store={"epsilon": 4.0, "delta": 1e-5},
    delta=1e-6,
    aim="labels",
    n_rows=ROWS,
)
keep("boosting_number_reach", _number, "number", epsilon=2.0)
keep("boosting_number_reach_declared", _number, "number", epsilon=2.0, n_rows=ROWS)
keep("boosting_number", _number, "number", epsilon=0.5)
keep("boosting_number_little", _number, "number", epsilon=0.2)
keep("boosting_number_constant", _number, "number", epsilon=0.05)
keep("boosting_number_tested", _number, "number", n_rounds=2, max_depth=1, test_share=0.3)
keep("boosting_number_delta", _number, "number", delta=1e-6, n_rounds=3)
keep("boosting_number_delta_auto", _number, "number", delta=1e-6, epsilon=0.5)
keep("boosting_number_depth", _number, "number", n_rounds=2, max_depth=2, merge_tests=False)
keep("boosting_number_wide", _number, "wide number", n_rounds=2, epsilon=4.0)

# Additive models
for _budget, _delta in (("pure", None), ("delta", 1e-6)):
    for _table in ("two", "four"):
        keep(
            f"additive_{_table}_{_budget}",
            PrivateAdditiveClassifier,
            _table,
            delta=_delta,
            epsilon=4.0,
        )
    keep(f"additive_number_{_budget}", PrivateAdditiveRegressor, "number", delta=_delta, epsilon=4)
keep("additive_weighed", PrivateAdditiveClassifier, "four", class_weight={2: 4.0})
keep("additive_two_bent", PrivateAdditiveClassifier, "two", delta=1e-6, epsilon=9.0)
keep("additive_no_noise", PrivateAdditiveClassifier, "flags", epsilon=float("inf"))

# DiPriMe
for _name, _make, _table in (
    ("classes", DiPriMeForestClassifier, "two"),
    ("number", DiPriMeForestRegressor, "number"),
):
    for _variant in ("flip", "exp", "uniform"):
        keep(f"diprime_{_name}_{_variant}", _make, _table, variant=_variant, epsilon=4.0)
        keep(
            f"diprime_{_name}_{_variant}_published",
            _make,
            _table,
            variant=_variant,
            calibration="published",
            n_estimators=2,
            max_depth=3,
            max_features=3,
        )
    keep(
        f"diprime_{_name}_together",
        _make,
        _table,
        partition=False,
        n_estimators=2,
        rho=0.4,
        n_rows=ROWS,
        epsilon=4.0,
    )
    keep(f"diprime_{_name}_published_rows", _make, _table, calibration="published", n_rows=400)
    keep(f"diprime_{_name}_features", _make, _table, max_features=1, n_estimators=2, max_depth=2)
for _name, _make, _table in (
    ("classes", DiPriMeTreeClassifier, "four"),
    ("number", DiPriMeTreeRegressor, "number"),
):
    keep(f"diprime_tree_{_name}", _make, _table)
    keep(
        f"diprime_tree_{_name}_rows",
        _make,
        _table,
        epsilon=2.0,
        n_rows=ROWS,
        max_features=2,
        rho=0.3,
    )
    for _variant in ("flip", "exp", "uniform"):
        keep(
            f"diprime_tree_{_name}_{_variant}",
            _make,
            _table,
            variant=_variant,
            calibration="published",
            max_depth=2,
        )
keep("diprime_forest_four", DiPriMeForestClassifier, "four", n_estimators=3, max_depth=2)
keep("diprime_tested", DiPriMeForestClassifier, "four", n_estimators=3, max_depth=2, test_share=0.3)
keep("diprime_no_noise", DiPriMeTreeClassifier, "flags", epsilon=float("inf"), max_depth=3)

# Baselines
keep("bdpt", BDPTClassifier, "two")
keep("bdpt_four", BDPTClassifier, "four", epsilon=4.0, max_depth=3, n_bins=7)
keep("dpgdf", DPGDFClassifier, "two")
keep("dpgdf_forest", DPGDFClassifier, "four", epsilon=2.0, n_estimators=3, max_depth=2, n_bins=7)
for _criterion in ("gini", "max", "clipped_entropy"):
    keep(
        f"patil_singh_{_criterion}",
        PatilSinghForestClassifier,
        "four",
        criterion=_criterion,
        n_estimators=2,
        epsilon=8.0,
    )
keep(
    "patil_singh_parts",
    PatilSinghForestClassifier,
    "two",
    partition=True,
    n_estimators=2,
    n_bins=7,
    max_features=3,
    max_depth=2,
    epsilon=4.0,
)
keep(
    "patil_singh_declared",
    PatilSinghForestClassifier,
    "two",
    n_estimators=2,
    n_rows=ROWS,
    epsilon=8.0,
)
keep("patil_singh_number", PatilSinghForestRegressor, "number", n_estimators=2, epsilon=8.0)
keep(
    "patil_singh_number_parts",
    PatilSinghForestRegressor,
    "number",
    partition=True,
    n_estimators=2,
    n_bins=7,
    max_features=2,
    n_rows=ROWS,
    max_depth=2,
    epsilon=4.0,
)
_fletcher_islam = FletcherIslamForestClassifier
keep("fletcher_islam", _fletcher_islam, "two", n_estimators=2, epsilon=8.0)
keep(
    "fletcher_islam_unpruned",
    _fletcher_islam,
    "four",
    n_estimators=2,
    prune=False,
    min_support=60,
    n_bins=4,
    max_depth=2,
    epsilon=8.0,
)
keep("fletcher_islam_declared", _fletcher_islam, "two", n_estimators=3, n_rows=500, epsilon=8.0)
for _name, _make, _table in (
    ("classes", RandomTreesClassifier, "four"),
    ("number", RandomTreesRegressor, "number"),
):
    keep(f"random_trees_{_name}", _make, _table, n_estimators=2, epsilon=4.0)
    keep(f"random_trees_{_name}_parts", _make, _table, n_estimators=2, partition=True, max_depth=3)
    keep(f"random_trees_{_name}_declared", _make, _table, n_estimators=1, n_rows=500)

# Federations
for _protocol in ("noisy-counts", "local-rnm", "secure-sum"):
    _end = _protocol.replace("-", "_")
    _given: dict[str, Any] = {"parties": {"protocol": _protocol}, "epsilon": 8.0}
    keep(f"federated_topdown_{_end}", _topdown, "two", max_depth=2, n_thresholds=7, **_given)
    keep(
        f"federated_topdown_declared_{_end}",
        _topdown,
        "four",
        n_rows=ROWS,
        max_depth=2,
        n_thresholds=3,
        criterion="max",
        **_given,
    )
    keep(f"federated_diffpid3_{_end}", DiffPID3Classifier, "two", max_depth=2, **_given)
    keep(
        f"federated_diffpc45_{_end}",
        DiffPC45Classifier,
        "flags",
        criterion="gini",
        max_depth=2,
        **_given,
    )
    keep(f"federated_sulq_{_end}", SulqID3Classifier, "two", max_depth=1, **_given)
    keep(
        f"federated_privatree_{_end}",
        _privatree,
        "two",
        binning="uniform",
        max_bins=7,
        max_depth=2,
        **_given,
    )
    keep(
        f"federated_privatree_histogram_{_end}",
        _privatree,
        "two",
        binning="scales",
        max_bins=4,
        max_depth=1,
        split="histogram",
        n_rows=ROWS,
        **_given,
    )
for _split in ("exponential", "rnm"):
    keep(
        f"federated_topdown_local_rnm_{_split}",
        _topdown,
        "two",
        parties={"protocol": "local-rnm"},
        epsilon=8.0,
        split=_split,
        max_depth=2,
        n_thresholds=7,
    )
keep(
    "federated_topdown_two_honest",
    _topdown,
    "flags",
    parties={"protocol": "secure-sum", "honest": 2},
    epsilon=8.0,
    max_depth=2,
)


# Files -------------------------------------------------------------------------------------------


def write(case: Case, path: Path) -> None:
    """Fit a case and save its model, without the record, which has the day and the versions."""
    replace(case.fit().to_model(), record=None).save(path)


def processor() -> list[str]:
    """Return the instructions that numpy found here: last digits of powers depend on them."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    return [*found.get("baseline", []), *found.get("found", [])]


def first_difference(known: Any, found: Any, where: str = "", *, within: float = 0) -> str | None:
    """Return where two plain values first differ, and how; None if they do not.

    Fractions may be off by a part ``within`` of them.
    """
    if isinstance(known, dict) and isinstance(found, dict):
        if list(known) != list(found):
            return f"{where or 'the model'} has the keys {list(found)}, not {list(known)}"
        pairs = [(f"{where}.{key}" if where else key, known[key], found[key]) for key in known]
    elif isinstance(known, list) and isinstance(found, list):
        pairs = [(f"{where}[{i}]", *pair) for i, pair in enumerate(zip(known, found, strict=False))]
        pairs.append((f"the length of {where}", len(known), len(found)))
    elif isinstance(known, float) and isinstance(found, float):
        if math.isclose(known, found, rel_tol=within, abs_tol=within):
            return None
        return f"{where} is {found!r}, not {known!r}"
    elif type(known) is type(found) and known == found:
        return None
    else:
        return f"{where} is {found!r:.200}, not {known!r:.200}"
    told = (first_difference(a, b, place, within=within) for place, a, b in pairs)
    return next((text for text in told if text), None)


def check(name: str, known: bytes, found: bytes, *, alike: bool) -> None:
    """Raise if a model is not byte for byte what it was, and say where it first differs.

    On a processor that is not ``alike`` the one that the files are from, last digits may differ.
    """
    if known == found:
        return
    old, new = json.loads(known), json.loads(found)
    within = 0 if alike else 1e-12
    if not alike and first_difference(old, new, within=within) is None:
        return
    # The predictor says more than the card, and the card more than the rest.
    parts = [key for key in ("tree", "ensemble", "privacy") if key in old]
    told = [first_difference(old[key], new.get(key), key, within=within) for key in parts]
    told.append(first_difference(old, new, within=within))
    lines = "\n  ".join(dict.fromkeys(text for text in told if text))
    raise AssertionError(
        f"the seeded model {name!r} is not what it was:\n  {lines or 'only the writing differs'}\n"
        "If its law or its stream was meant to change, see tests/golden/README.md."
    )


def main() -> None:
    """Write files again."""
    parser = argparse.ArgumentParser(description="Fit the catalogue of seeded models.")
    parser.add_argument("--write", action="store_true", help="write the files again")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to")
    parser.add_argument("names", nargs="*", help="only these cases")
    given = parser.parse_args()
    if not given.write:
        parser.error("give --write to replace the files; pytest compares them")
    given.folder.mkdir(exist_ok=True)
    if not given.names:
        for path in given.folder.glob("*.json"):
            path.unlink()
        (given.folder / PROCESSOR).write_text(json.dumps(processor()) + "\n")
    for name in given.names or CASES:
        write(CASES[name], given.folder / f"{name}.json")
    sys.stdout.write(f"{len(given.names or CASES)} models written to {given.folder}\n")


if __name__ == "__main__":
    main()
