"""What repeats is tested in part by ``make test``, and in full by ``make engines``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def some_of(cases: Iterable[Any], chosen: Callable[..., bool]) -> list[Any]:
    """Return all cases of a test; those that are not chosen are run by ``make engines``.

    Parameters
    ----------
    cases : iterable
        Values, or tuples of them for a test with several parameters.
    chosen : function
        Tells of a case, given as arguments, whether the plain run has it.
    """
    found = []
    for case in cases:
        given = case if isinstance(case, tuple) else (case,)
        marks = () if chosen(*given) else pytest.mark.engines
        found.append(pytest.param(*given, marks=marks))
    return found
