"""From drawn splits to a published tree."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from privet.learners._assembly import without_dead_ends
from privet.tables import Branch, Leaf, Split

SIZES = (4, 3, 2)


@st.composite
def splits(draw):
    feature = draw(st.integers(0, 2))
    size = SIZES[feature]
    if draw(st.booleans()):
        cut = draw(st.integers(0, size - 2))
        return Split(feature, tuple(int(code > cut) for code in range(size)))
    return Split(feature, tuple(range(size)))


subtrees = st.recursive(
    st.builds(Leaf, st.integers(0, 1)),
    lambda inner: splits().flatmap(
        lambda split: st.tuples(*[inner] * split.n_children).map(
            lambda children: Branch(split, children)
        )
    ),
    max_leaves=12,
)


def predict(subtree, record):
    while isinstance(subtree, Branch):
        subtree = subtree.children[subtree.split.children[record[subtree.split.feature]]]
    return subtree.label


def impossible(subtree, open_codes):
    """Tell whether any branch has a child that no record can reach."""
    if isinstance(subtree, Leaf):
        return False
    feature = subtree.split.feature
    for child, below in enumerate(subtree.children):
        codes = {c for c in open_codes[feature] if subtree.split.children[c] == child}
        left = [*open_codes[:feature], codes, *open_codes[feature + 1 :]]
        if not codes or impossible(below, left):
            return True
    return False


@given(subtrees)
def test_every_record_keeps_its_label_and_no_dead_end_is_left(subtree):
    pruned = without_dead_ends(subtree, tuple(frozenset(range(size)) for size in SIZES))
    for record in itertools.product(*map(range, SIZES)):
        assert predict(pruned, record) == predict(subtree, record)
    assert not impossible(pruned, [set(range(size)) for size in SIZES])
