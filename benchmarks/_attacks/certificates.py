"""Attacks on certificates: numbers that must be the same for every fit of one learner, and a proof.

No privacy is lost here; a stated guarantee against poisoned rows is weaker than it says.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _attacks.outside import Found

FITS = 12
SEEDS = 200


def federated_counts(_: Path) -> Iterator[Found]:
    """Fit a federated PrivaTree often without a declared number of rows."""
    import numpy as np

    from privet import Budget, Categorical, Numeric, PrivaTreeClassifier, Schema
    from privet.federation import FederatedTable, Party
    from privet.robustness import accuracy_after, promise_of

    attack = "certificates of a federated PrivaTree without n_rows"
    schema = Schema(
        {"a": Numeric(0, 1), "b": Categorical(["u", "v"])}, "y", classes=["no", "yes"]
    )  # fmt: skip
    rng = np.random.default_rng(1)
    rhos, certified = [], []
    for _fit in range(FITS):
        parties = []
        for name in ("north", "south"):
            numbers = rng.random(100)
            rows = [[float(x), "uv"[int(x > 0.5)]] for x in numbers]
            labels = ["yes" if x > 0.5 else "no" for x in numbers]
            parties.append(Party(name, np.array(rows, dtype=object), labels, schema, Budget(1.0)))
        with FederatedTable(parties, protocol="noisy-counts") as table:
            model = PrivaTreeClassifier(epsilon=1.0, binning="uniform", max_depth=3).fit(table)
        promise = promise_of(_as_model(model))
        rhos.append(promise.rho)
        certified.append(accuracy_after(promise, 0.9, 5).best)
    yield Found(
        attack,
        f"rho that every fit stays within, least and largest of {FITS} fits (epsilon^2/2 is 0.5)",
        f"{min(rhos):.4f} to {max(rhos):.4f}",
        max(rhos) - min(rhos) > 1e-9,
        max(rhos) - min(rhos),
        "rho",
    )
    yield Found(
        attack,
        "certified accuracy after 5 poisoned rows, from 0.9",
        f"{min(certified):.4f} to {max(certified):.4f}",
        max(certified) - min(certified) > 1e-9,
        max(certified) - min(certified),
        "accuracy",
    )


def _as_model(estimator: Any) -> Any:
    """Return what a saved model is, learner's name included."""
    from privet.model import Model

    return Model(estimator.predictor_, estimator.privacy_, estimator.learner)


def forest_coins(_: Path) -> Iterator[Found]:
    """Let tree 0 split otherwise; see whether tree 1 is offered other features.

    Without noise, every node of a ``uniform`` forest is split by the feature that public coins
    offer among those that can still divide it, whatever the records say. So tree 1's first feature
    may not depend on the table, and where its first test is the same on two tables, the features
    of the next level may not either.
    """
    import numpy as np

    from privet import Categorical, DiPriMeForestClassifier, Schema

    names = ["a", "b", "c", "d"]
    values = ["p", "q", "r", "s"]
    schema = Schema({name: Categorical(values) for name in names}, "y", classes=["no", "yes"])
    rng = np.random.default_rng(2)
    tables = [rng.choice(values, size=(300, 4), p=p).astype(object)
              for p in ([0.7, 0.1, 0.1, 0.1], [0.45, 0.35, 0.1, 0.1])]  # fmt: skip
    labels = np.array(["no", "yes"] * 150)
    for partition in (False, True):
        changed = compared = 0
        for seed in range(SEEDS):
            seen = []
            for rows in tables:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = DiPriMeForestClassifier(
                        epsilon=float("inf"), schema=schema, variant="uniform", n_estimators=2,
                        max_depth=2, partition=partition, random_state=seed,
                    ).fit(rows, labels)  # fmt: skip
                seen.append(model.predictor_.trees[1].nodes)
            if not partition:
                compared += 1
                changed += seen[0][0].test.feature != seen[1][0].test.feature
            elif seen[0][0].test == seen[1][0].test:
                compared += 1
                one, other = (
                    [nodes[k].test and nodes[k].test.feature for k in nodes[0].children]
                    for nodes in seen
                )
                changed += one != other
        rows_of = "its own rows" if partition else "all rows"
        which = "next feature after the same first test" if partition else "first feature"
        yield Found(
            f"DiPriMe: tree 0's splits decide what tree 1 is offered (each tree on {rows_of})",
            f"forests whose tree 1 is offered another {which} on another table",
            f"{changed} of {compared} (seeds 0 to {SEEDS - 1})",
            changed > 0,
            changed,
            "forests",
        )


ATTACKS = [federated_counts, forest_coins]
