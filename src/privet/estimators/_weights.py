"""Class weights as a public prior: what a published model says, weighed by declared numbers.

A model that says how probable classes are among the records it was learnt from says it of another
mixture of classes, too, by Bayes' rule: the probability of each class is multiplied by its weight,
and they are divided by their sum. To predict the most probable class then is to count mistakes on
a class by its weight (Elkan, *The Foundations of Cost-Sensitive Learning*, 2001, section 2).

Weights are declared and the model is published, so this is post-processing: it costs nothing, and
no sensitivity grows with a weight (docs/proofs/post-processing.md). Weights of records do neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.errors import DataError, SchemaError
from privet.estimators.parameters import Parameter
from privet.schema import Schema
from privet.tree import Node, Tree

#: Weights beyond these are taken for mistakes.
_LEAST, _MOST = 1e-9, 1e9

SAMPLE_WEIGHT = (
    "sample_weight is refused: a record of weight w moves every answer w times as far, and the "
    "noise of all would have to be w times as large; what a record weighs may be sensitive, too. "
    "To weigh classes, declare class_weight={...}, which costs nothing; if persons have several "
    "records, the schema's unit lets each count once. Nothing was spent"
)


@dataclass(frozen=True)
class ClassWeights(Parameter):
    """Declared weights of classes: a mapping; on the command line ``no:1,yes:5``."""

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        return (
            "None or a mapping from classes to numbers from 1e-9 to 1e9, declared and not counted "
            "in the data ('balanced' would need counts that somebody pays for; after a fit, "
            "privacy_.counts has what was released, for weights at no further cost)"
        )

    @property
    def readable(self) -> str:
        """See :class:`Parameter`."""
        return "none, or weights such as no:1,yes:5"

    def accept(self, value: Any) -> dict[Any, float] | None:
        """See :class:`Parameter`."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ValueError
        for weight in value.values():
            if isinstance(weight, bool) or not isinstance(weight, Real):
                raise ValueError
            if not _LEAST <= float(weight) <= _MOST:
                raise ValueError
        return {name: float(weight) for name, weight in value.items()}

    def read(self, text: str) -> dict[str, float] | None:
        """See :class:`Parameter`."""
        if text.lower() == "none":
            return None
        pairs = [part.rpartition(":") for part in text.split(",")]
        if not all(name and colon for name, colon, _ in pairs):
            raise ValueError
        return {name.strip(): float(weight) for name, _, weight in pairs}


def weights_of(given: Mapping[Any, float] | None, schema: Schema) -> NDArray[np.float64] | None:
    """Return one weight for every class of a schema; 1 for those that are not named."""
    if given is None:
        return None
    assert schema.classes is not None
    known = {str(value): place for place, value in enumerate(schema.classes)}
    weights = np.ones(len(schema.classes))
    for name, weight in given.items():
        if str(name) not in known:
            raise SchemaError("class_weight names a class that the schema does not have")
        weights[known[str(name)]] = weight
    return weights


def weighed(predictor: Tree | Ensemble, weights: NDArray[np.float64]) -> Tree | Ensemble:
    """Return a predictor of classes whose probabilities are weighed.

    A leaf that is sure of its label stays so: it says nothing that could be weighed.
    """
    if isinstance(predictor, Ensemble):
        logs = np.log(weights)
        more = [logs[1] - logs[0]] if len(predictor.start) == 1 else list(logs - logs.mean())
        start = tuple(a + float(b) for a, b in zip(predictor.start, more, strict=True))
        return replace(predictor, start=start)
    nodes = tuple(_weighed_node(node, weights) for node in predictor.nodes)
    return replace(predictor, nodes=nodes)


def _weighed_node(node: Node, weights: NDArray[np.float64]) -> Node:
    if not node.value:
        return node
    shares = np.array(node.value) * weights
    shares /= shares.sum()
    return replace(node, value=tuple(shares.tolist()), released=dict(node.released))


def note_of(weights: NDArray[np.float64], schema: Schema) -> str:
    """Return what a card says of weights."""
    listed = zip(schema.classes or (), weights.tolist(), strict=True)
    told = ", ".join(f"{name} {weight:g}" for name, weight in listed)
    return (
        f"the published probabilities were multiplied by declared weights of classes ({told}) "
        "after everything was released: the shares of classes are not those of the records"
    )


def refuse_weights(given: Mapping[str, Any]) -> None:
    """Refuse what ``fit`` does not take; of weights of records, say why."""
    if given.get("sample_weight") is not None:
        raise DataError(SAMPLE_WEIGHT)
    unknown = [name for name in given if name != "sample_weight"]
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")
