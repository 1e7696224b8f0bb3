"""Everything that a fitted model holds, as a value that can be compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import FunctionType
from typing import Any

import numpy as np

_PLAIN = (str, bytes, int, bool, type(None), Fraction, Enum, PurePath)


def describe(value: Any) -> Hashable:
    """Return a hashable value that is equal for equal contents, down to the last attribute."""
    return _describe(value, ())


def released_by(model: Any) -> Hashable:
    """Return what a fitted estimator holds beyond its parameters, whatever the attributes' names.

    An attribute that nobody ought to see is part of it: what can be read is released.
    """
    parameters = set(model._get_param_names())
    # The source of noise is a parameter in an audit only: whoever keeps it, keeps a secret.
    given = {id(vars(model)[name]) for name in parameters - {"random_state"}}
    return tuple(
        (name, "a parameter" if id(value) in given else describe(value))
        for name, value in sorted(vars(model).items())
        if name not in parameters
    )


def _describe(value: Any, inside: tuple[int, ...]) -> Hashable:
    if isinstance(value, float):
        return ("float", value.hex())  # tells zeros apart, and not-a-number is equal to itself
    if isinstance(value, _PLAIN):
        return (type(value).__name__, value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return _describe(value.item(), inside)
    if id(value) in inside:
        return ("again", len(inside) - inside.index(id(value)))
    inside = (*inside, id(value))
    if isinstance(value, Mapping) and not dataclasses.is_dataclass(value):
        parts = [(_describe(k, inside), _describe(v, inside)) for k, v in value.items()]
        return ("mapping", tuple(sorted(parts, key=repr)))
    if isinstance(value, set | frozenset):
        return ("set", tuple(sorted((_describe(part, inside) for part in value), key=repr)))
    if isinstance(value, list | tuple | np.ndarray):
        return (type(value).__name__, tuple(_describe(part, inside) for part in value))
    if isinstance(value, type | FunctionType):
        return ("code", f"{value.__module__}.{value.__qualname__}")
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return (name, tuple(_describe(part, inside) for part in _contents(value)))


def _contents(value: Any) -> tuple[Any, ...]:
    """Return the attributes of an object; what has none says what it can of itself."""
    slots = [
        (slot, getattr(value, slot))
        for kind in type(value).__mro__
        for slot in _slots(kind)
        if hasattr(value, slot)
    ]
    attributes = [*slots, *sorted(getattr(value, "__dict__", {}).items())]
    if attributes:
        return tuple(attributes)
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:
        return (repr(value),)
    return (reduced,) if isinstance(reduced, str) else tuple(map(repr, reduced[1:]))


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
