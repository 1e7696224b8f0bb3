"""A tree or an ensemble as text, for terminals and logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count

from privet.ensemble import Ensemble
from privet.export._outline import Entry, Noise, outlines, start_words, summary
from privet.export._words import plural
from privet.tree import Tree
from privet.visible import visible

#: What lies deeper is not indented further but goes on elsewhere. Learners make no deeper trees.
_LEVELS = 64


def to_text(
    model: Tree | Ensemble,
    *,
    max_depth: int | None = None,
    max_lines: int | None = None,
    noise: Noise | None = None,
    fold: bool = True,
) -> str:
    """Return the model as indented lines.

    Neighbouring leaves with the same answer share a line; their released counts are added up.
    Edges have as few digits as say the same of every point of the feature's public grid; those of
    whole numbers are whole (``stays <= 1``), and those of dates are days. A branch that nothing but
    missing or unknown values go to is one line.

    A branch that is more than 64 tests deep goes on below its tree, under a number, so that the
    text grows with the model and not with the square of its depth.

    An ensemble's first lines say what its scores mean and where they start. The trees follow, with
    the scores that they add; those of an additive ensemble are added up, feature by feature.

    Parameters
    ----------
    model : Tree or Ensemble
        What predicts classes or a number.
    max_depth : int, optional
        Show this many levels of tests of each tree; a line that leads further down says how many
        lines are left out.
    max_lines : int, optional
        Return at most this many lines; if there are more, the last one says how many are left out.
    noise : mapping, optional
        What released numbers may be off by (:attr:`privet.model.Model.noise`): a leaf whose counts
        are no more than that says so.
    fold : bool, default=True
        False writes out branches for missing or unknown values, too.

    Examples
    --------
    >>> from privet.schema import Numeric, Schema
    >>> from privet.tree import Cut, Node
    >>> schema = Schema({"age": Numeric(0, 120)}, "readmitted", classes=["no", "yes"])
    >>> tree = Tree(schema, (
    ...     Node(Cut("age", (40.0, 65.0), missing=3), (1, 2, 3, 4)),
    ...     Node(value=(0.9, 0.1), released={"class_counts": (118, -3)}),
    ...     Node(value=(0.8, 0.2), released={"class_counts": (60, 14)}),
    ...     Node(value=(0.4, 0.6), released={"class_counts": (31, 50)}),
    ...     Node(value=(0.5, 0.5), released={"class_counts": (1, 0)}),
    ... ))
    >>> print(to_text(tree))
    readmitted
    ├─ age < 65: no (0.80 to 0.90; 2 leaves; noisy counts: no 178, yes 11)
    ├─ age >= 65: yes (0.60; noisy counts: no 31, yes 50)
    └─ age missing: no (0.50; noisy counts: no 1, yes 0)
    >>> print(to_text(tree, max_lines=2))
    readmitted
    ... (3 lines left out)

    Two trees of scores:

    >>> stumps = [
    ...     Tree(schema, (
    ...         Node(Cut("age", (edge,), missing=0), (1, 2)),
    ...         Node(value=(-0.21,)),
    ...         Node(value=(0.4,)),
    ...     ), scores=1)
    ...     for edge in (40.0, 65.0)
    ... ]
    >>> print(to_text(Ensemble(schema, (-0.1,), stumps)))
    readmitted: additive model of 2 trees whose scores add up to the log odds of readmitted = yes
    start: -0.1
    age:
    ├─ age < 40: -0.42
    ├─ 40 <= age < 65: +0.19
    ├─ age >= 65: +0.8
    └─ age missing: -0.42
    """
    if max_depth is not None and max_depth < 0:
        raise ValueError("max_depth must be at least 0")
    if max_lines is not None and max_lines < 1:
        raise ValueError("max_lines must be at least 1")
    lines: list[str] = []
    numbers = count(1)
    if isinstance(model, Ensemble):
        lines.append(f"{visible(model.schema.target)}: {summary(model)}")
        lines.append(start_words(model))
    for entries in outlines(model, noise, fold=fold):
        after_title = ":" if isinstance(model, Ensemble) else ""
        lines += _lines(entries, max_depth, after_title, numbers)
    if max_lines is not None and len(lines) > max_lines:
        kept = lines[: max_lines - 1]
        lines = [*kept, f"... ({plural(len(lines) - len(kept), 'line')} left out)"]
    return "\n".join(lines)


def _lines(
    entries: Sequence[Entry], max_depth: int | None, after_title: str, numbers: Iterator[int]
) -> Iterator[str]:
    """Yield the lines of a tree; what lies too deep follows, with a number that leads to it."""
    sizes = _sizes(entries)
    roots = deque([(0, 0, "")])  # of what is written as one block: position, depth and number
    while roots:
        root, root_depth, mark = roots.popleft()
        # position, level in the block, what precedes it, what precedes its children
        waiting = [(root, 0, mark, "")]
        while waiting:
            position, level, lead, below = waiting.pop()
            entry, depth = entries[position], root_depth + level
            if entry.verdict is not None:
                details = f" ({'; '.join(entry.verdict.details)})" if entry.verdict.details else ""
                yield f"{lead}{entry.condition}: {entry.verdict.label}{details}"
            elif depth == max_depth:
                left_out = plural(sizes[position] - 1, "line")
                yield f"{lead}{entry.condition}: ... ({left_out} left out)"
            elif level == _LEVELS:
                number = next(numbers)
                yield f"{lead}{entry.condition}: goes on at [{number}]"
                roots.append((position, depth, f"[{number}] "))
            else:
                yield lead + entry.condition + (after_title if position == 0 else "")
                *others, last = entry.children
                waiting.append((last, level + 1, below + "└─ ", below + "   "))
                waiting += [
                    (child, level + 1, below + "├─ ", below + "│  ") for child in reversed(others)
                ]


def _sizes(entries: Sequence[Entry]) -> list[int]:
    """Return the number of entries at and below each entry."""
    sizes = [1] * len(entries)
    for position in reversed(range(len(entries))):
        sizes[position] += sum(sizes[child] for child in entries[position].children)
    return sizes
