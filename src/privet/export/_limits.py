"""What exports refuse: models that are so large or deep that a form cannot hold them.

Exports take time and memory in proportion to what they write. Nothing that a learner of Privet
makes comes near these limits (its trees have at most 64 levels); files that others made may.
"""

from __future__ import annotations

from privet.ensemble import Ensemble
from privet.errors import ExportError
from privet.tree import Cut, Node, Tree

#: An export writes at most about this many characters, indentation aside: a gigabyte in memory.
MAX_CHARACTERS = 1 << 29
#: A number with what stands around it.
_NUMBER = 40


def check_size(model: Tree | Ensemble, copies: int = 1) -> None:
    """Refuse a model whose names and numbers, written out at every place, would be too much.

    A file says "category 7" where an export writes the category's text, so a small file can ask for
    an export that no memory holds.

    Parameters
    ----------
    model : Tree or Ensemble
    copies : int, default=1
        How often the form writes each tree.
    """
    schema = model.schema
    listed = {
        name: sum(len(str(value)) + 4 for value in getattr(feature, "values", ()))
        for name, feature in schema.features.items()
    }
    classes = sum(len(str(value)) + _NUMBER for value in schema.classes or ()) or _NUMBER
    trees = model.trees if isinstance(model, Ensemble) else (model,)
    total = 0
    for tree in trees:
        total += sum(_size(node, listed, classes) for node in tree.nodes)
        if total * copies > MAX_CHARACTERS:
            raise ExportError(
                "the model is too large for this form: it would take more than "
                f"{MAX_CHARACTERS:,} characters"
            )


def check_depth(found: int, most: int, form: str) -> None:
    """Refuse a model that is deeper than a form can be."""
    if found > most:
        raise ExportError(
            f"the model is too deep for {form}: it has {found:,} levels, and {most:,} are possible"
        )


def _size(node: Node, listed: dict[str, int], classes: int) -> int:
    """Return about how many characters a node takes."""
    if node.test is None:
        return classes
    name = len(node.test.feature) + _NUMBER
    if isinstance(node.test, Cut):
        return (len(node.test.edges) + 2) * (name + _NUMBER)
    return 2 * listed[node.test.feature] + node.test.n_children * name
