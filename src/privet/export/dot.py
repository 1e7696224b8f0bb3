"""A tree or an ensemble in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privet.ensemble import Ensemble
from privet.export._outline import Entry, Noise, outlines, start_words, summary
from privet.tree import Tree
from privet.visible import visible


def to_dot(model: Tree | Ensemble, *, noise: Noise | None = None, fold: bool = True) -> str:
    """Return the model as a Graphviz graph, for ``dot -Tpdf`` and the like.

    Leaves that say the same are drawn as one, as in :func:`~privet.export.to_text`. An ensemble
    becomes one graph with a cluster for every tree, or for every feature if it is additive.

    Parameters
    ----------
    model : Tree or Ensemble
    noise, fold
        As for :func:`~privet.export.to_text`.

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
    title = [visible(model.schema.target)]
    if isinstance(model, Ensemble):
        title += [summary(model), start_words(model)]
    lines = [f"  graph [label={_quoted(*title)}, labelloc=t]", "  node [shape=box]"]
    for cluster, entries in enumerate(outlines(model, noise, fold=fold), start=1):
        if isinstance(model, Tree):
            lines += _statements(entries, "  n")
        else:
            lines += [f"  subgraph cluster_{cluster} {{"]
            lines += [f"    graph [label={_quoted(entries[0].condition)}]"]
            lines += [*_statements(entries, f"    t{cluster}_n"), "  }"]
    return "\n".join(["digraph {", *lines, "}"])


def _statements(entries: Sequence[Entry], name: str) -> Iterator[str]:
    """Yield a statement for every node, then for every edge; ``name`` begins the nodes' names."""
    for position, entry in enumerate(entries):
        verdict = entry.verdict
        if verdict is None:
            label, style = _quoted(entry.feature, entry.counts), ""
        else:
            uncertain = verdict.within_noise or verdict.folded
            label = _quoted(verdict.label, *verdict.details)
            style = ', style="rounded,dashed"' if uncertain else ', style="rounded"'
        yield f"{name}{position} [label={label}{style}]"
    for position, entry in enumerate(entries):
        for child in entry.children:
            label = _quoted(entries[child].branch)
            yield f"{name}{position} -> {name.strip()}{child} [label={label}]"


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
