"""How a model came about: when, by which versions, with which settings, for which part of a budget.

None of it is about the rows. A seed is never part of it, nor is the path of a file.
"""

from __future__ import annotations

import datetime
import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from privet import __version__
from privet.errors import ModelFileError

#: What settings of an estimator are left out: the schema is written elsewhere.
_LEFT_OUT = frozenset({"schema", "ledger", "random_state", "verbose"})
#: The packages whose versions matter: where noise, sums and the estimators come from.
_PACKAGES = ("opendp", "numpy", "scikit-learn")
#: Longer texts, lists and numbers of settings are refused in files.
_MOST = 10_000
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Record:
    """How a model came about.

    Attributes
    ----------
    date : str
        The day of the fit in UTC: ``"2026-01-31"``.
    versions : mapping of str to str
        Of Privet, Python and the packages that noise and sums come from.
    estimator : str
        The name of the estimator.
    settings : mapping of str to plain values
        Its parameters.
    path : tuple of int
        The entries of the card that the total consists of, by their positions: those that the
        dearest record has paid (docs/proofs/ledger.md).
    draw : int or None
        Which draw of a ledger file paid for the fit.
    """

    date: str
    versions: Mapping[str, str]
    estimator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: tuple[int, ...] = ()
    draw: int | None = None

    def __post_init__(self) -> None:
        for name in ("versions", "settings"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        object.__setattr__(self, "path", tuple(self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        held = self.date, dict(self.versions), self.estimator, dict(self.settings)
        return (Record, (*held, self.path, self.draw))

    @classmethod
    def of(
        cls,
        estimator: str,
        settings: Mapping[str, Any],
        path: tuple[int, ...],
        draw: int | None = None,
    ) -> Record:
        """Write down a fit that ends now."""
        kept = {name: _plain(value) for name, value in settings.items() if name not in _LEFT_OUT}
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return cls(today, dict(_versions()), estimator, kept, path, draw)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for files."""
        return {
            "date": self.date,
            "versions": dict(self.versions),
            "estimator": self.estimator,
            "settings": dict(self.settings),
            "path": list(self.path),
            "draw": self.draw,
        }

    @classmethod
    def from_dict(cls, plain: Any, entries: int) -> Record:
        """Read a record of a model with this many entries; check everything."""
        names = {"date", "versions", "estimator", "settings", "path", "draw"}
        if not isinstance(plain, dict) or set(plain) != names:
            raise ModelFileError("the record lacks fields or has some that are not known")
        date, estimator, draw, path = (plain[n] for n in ("date", "estimator", "draw", "path"))
        if not isinstance(date, str) or _DAY.fullmatch(date) is None:
            raise ModelFileError("the record has a date that is none")
        if not isinstance(estimator, str) or len(estimator) > _MOST:
            raise ModelFileError("the record does not say which estimator there was")
        for name in ("versions", "settings"):
            held = plain[name]
            if not isinstance(held, dict) or len(held) > _MOST:
                raise ModelFileError(f"the record's {name} are damaged")
        if not all(isinstance(one, str) and len(one) < _MOST for one in plain["versions"].values()):
            raise ModelFileError("the record's versions are damaged")
        if not all(_is_plain(value) for value in plain["settings"].values()):
            raise ModelFileError("the record's settings are damaged")
        if draw is not None and (type(draw) is not int or not 0 < draw < 2**62):
            raise ModelFileError("the record names a draw that is none")
        if (
            not isinstance(path, list)
            or not all(type(place) is int and 0 <= place < entries for place in path)
            or any(a >= b for a, b in pairwise(path))
        ):
            raise ModelFileError("the record's path does not lead along the card's entries")
        return cls(date, plain["versions"], estimator, plain["settings"], tuple(path), draw)


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    """Return what runs here; looking for it takes milliseconds."""
    found = {"privet": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # vendored, or not installed as a package
            found[name] = "unknown"
    return found


def _plain(value: Any) -> Any:
    """Return a setting as plain data; of what is none, only its type is told."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", 1) == 0:  # numpy's scalars
        value = item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"a {type(value).__name__}"


def _is_plain(value: Any, deep: int = 0) -> bool:
    if deep > 8:
        return False
    if isinstance(value, list):
        return len(value) <= _MOST and all(_is_plain(one, deep + 1) for one in value)
    if isinstance(value, dict):
        return len(value) <= _MOST and all(_is_plain(one, deep + 1) for one in value.values())
    if isinstance(value, str):
        return len(value) <= _MOST
    return value is None or isinstance(value, bool | int | float)
