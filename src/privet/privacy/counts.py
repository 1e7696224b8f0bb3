"""How many records a fit learnt from, as far as released numbers tell.

A class list with a slip, or labels of another type, leave records out, and no fit fails by that. If
a number of records was bought on the way, it shows. All of this is made of what was released and
what is public, so it costs nothing and may be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privet.visible import quoted

#: What is within this many standard deviations of zero may be nothing but noise.
NOISE_WIDTH = 3.0
#: Fewer records than this part of what was declared, noise allowed for, are far fewer.
FAR_BELOW = 0.8
#: So many classes are named.
_TOLD = 5
#: What can be done about it.
_CHECK = "Whether the schema fits the data, its owner sees by: privet schema check"


@dataclass(frozen=True)
class NoisyCount:
    """A released number of all records that were learnt from, or one number for every class.

    Attributes
    ----------
    values : tuple of int
        One number, or one for each of the schema's classes.
    deviation : float
        The standard deviation of the noise in each (or a bound on it); 0 if there is none.
    """

    values: tuple[int, ...]
    deviation: float

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.values)

    @property
    def total_deviation(self) -> float:
        """The standard deviation of the noise in :attr:`total`."""
        return math.sqrt(len(self.values)) * self.deviation

    @property
    def is_empty(self) -> bool:
        """Whether there may have been no records at all, as far as the noise lets one see."""
        return self.total <= NOISE_WIDTH * self.total_deviation

    @property
    def empty_classes(self) -> tuple[int, ...]:
        """The places of the classes of which the same is true."""
        width = NOISE_WIDTH * self.deviation
        return tuple(k for k, value in enumerate(self.values) if value <= width)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for files."""
        return {"values": list(self.values), "deviation": self.deviation}


def say_counts(
    counts: Sequence[NoisyCount], classes: Sequence[Any] | None, whom: str = "records"
) -> list[str]:
    """Say which numbers of records, or of persons, were released."""
    told = []
    for count in counts:
        noise = f"with noise of standard deviation {count.deviation:.3g}"
        if len(count.values) == 1:
            told.append(f"{count.total:,} {whom} were counted, {noise}")
        else:
            named = zip(_names(count, classes), count.values, strict=True)
            each = ", ".join(f"{name} {value:,}" for name, value in list(named)[:_TOLD])
            more = " and so on" if len(count.values) > _TOLD else ""
            told.append(f"{whom} of each class were counted, each {noise}: {each}{more}")
    return told or [f"no number of {whom} was released"]


def doubts_of(
    counts: Sequence[NoisyCount],
    declared: int | None,
    classes: Sequence[Any] | None,
    *,
    bought: bool = False,
) -> list[str]:
    """Say what released numbers give reason to doubt, or that there are none.

    Parameters
    ----------
    counts : sequence of NoisyCount
    declared : int or None
        The number of rows that was declared as public.
    classes : sequence or None
        What to call the classes.
    bought : bool, default=False
        Whether a number of records was bought that is not at hand, as in older files.
    """
    if not counts:
        why = (
            "the numbers of records that were bought are not in this file"
            if bought
            else "nothing was released about how many records the model is made of"
        )
        return [f"{why}, so that it may be made of none: nothing here would tell. {_CHECK}"]
    empty = [count for count in counts if count.is_empty]
    if empty:
        return [
            f"{empty[0].total:,} records is no more than noise (standard deviation "
            f"{empty[0].total_deviation:.3g}): the model may be made of no records at all. Are the "
            f"classes, or the target, written as in the data? {_CHECK}"
        ]
    told = []
    best = min(counts, key=lambda count: count.total_deviation)
    if declared is not None:
        most = best.total + NOISE_WIDTH * best.total_deviation
        if most < FAR_BELOW * declared:
            told.append(
                f"about {best.total:,} records were used, far below the {declared:,} rows that "
                f"were declared: the others have a target that is missing or unknown. {_CHECK}"
            )
    for count in counts:
        if len(count.values) > 1 and count.empty_classes:
            names = _names(count, classes)
            shown = ", ".join(names[k] for k in count.empty_classes[:_TOLD])
            more = " and others" if len(count.empty_classes) > _TOLD else ""
            told.append(
                f"of {shown}{more} no more records were counted than noise would make: is it "
                f"written as in the data? {_CHECK}"
            )
    return told


def _names(count: NoisyCount, classes: Sequence[Any] | None) -> list[str]:
    if classes is None or len(classes) != len(count.values):
        return [f"class {k + 1}" for k in range(len(count.values))]
    return [f"class {quoted(value)}" for value in classes]
