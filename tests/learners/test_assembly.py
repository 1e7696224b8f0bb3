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


sketches = st.recursive(
    st.builds(Leaf, st.integers(0, 1)),
    lambda inner: splits().flatmap(
        lambda split: st.tuples(*[inner] * split.n_children).map(
            lambda children: Branch(split, children)
        )
    ),
    max_leaves=12,
)


def predict(sketch, record):
    while isinstance(sketch, Branch):
        sketch = sketch.children[sketch.split.children[record[sketch.split.feature]]]
    return sketch.label


def impossible(sketch, open_codes):
    """Tell whether any branch has a child that no record can reach."""
    if isinstance(sketch, Leaf):
        return False
    feature = sketch.split.feature
    for child, below in enumerate(sketch.children):
        codes = {c for c in open_codes[feature] if sketch.split.children[c] == child}
        left = [*open_codes[:feature], codes, *open_codes[feature + 1 :]]
        if not codes or impossible(below, left):
            return True
    return False


@given(sketches)
def test_every_record_keeps_its_label_and_no_dead_end_is_left(sketch):
    pruned = without_dead_ends(sketch, tuple(frozenset(range(size)) for size in SIZES))
    for record in itertools.product(*map(range, SIZES)):
        assert predict(pruned, record) == predict(sketch, record)
    assert not impossible(pruned, [set(range(size)) for size in SIZES])
