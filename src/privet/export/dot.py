"""A tree in the language of Graphviz."""

from __future__ import annotations

from privet.export._outline import outline
from privet.tree import Tree


def to_dot(tree: Tree) -> str:
    """Return the tree as a Graphviz graph, for ``dot -Tpdf`` and the like.

    Leaves that say the same are drawn as one, as in :func:`~privet.export.to_text`.

    Examples
    --------
    >>> from privet.schema import Categorical, Schema
    >>> from privet.tree import Grouping, Node
    >>> schema = Schema({"sex": Categorical(["f", "m"])}, "stay", bounds=(0, 30))
    >>> print(to_dot(Tree(schema, (
    ...     Node(Grouping("sex", (0, 1), other=1), (1, 2)), Node(value=(4.5,)), Node(value=(6.0,)),
    ... ))))
    digraph {
      graph [label="stay", labelloc=t]
      node [shape=box]
      n0 [label="sex"]
      n1 [label="4.5", style="rounded"]
      n2 [label="6", style="rounded"]
      n0 -> n1 [label="f"]
      n0 -> n2 [label="m, other or missing"]
    }
    """
    entries = outline(tree)
    lines = [f"  graph [label={_quoted(entries[0].condition)}, labelloc=t]", "  node [shape=box]"]
    for position, entry in enumerate(entries):
        verdict = entry.verdict
        if verdict is None:
            label, style = _quoted(entry.feature, entry.counts), ""
        else:
            details = [verdict.probability, verdict.counts]
            label, style = _quoted(verdict.label, *details), ', style="rounded"'
        lines.append(f"  n{position} [label={label}{style}]")
    for position, entry in enumerate(entries):
        for child in entry.children:
            label = _quoted(entries[child].branch)
            lines.append(f"  n{position} -> n{child} [label={label}]")
    return "\n".join(["digraph {", *lines, "}"])


def _quoted(*lines: str) -> str:
    r"""Return lines of text as a DOT string in which nothing has a special meaning.

    In a quoted label, ``\`` starts an escape and ``&`` an entity; ``<>|{}`` mean something only in
    HTML-like labels and record shapes, which are not used here.
    """
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
        for line in lines
        if line
    )
    return '"' + "\\n".join(escaped) + '"'
