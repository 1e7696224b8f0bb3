"""Curves are the bounds at many places, and their picture is well-formed."""

from xml.etree import ElementTree

import numpy as np
import pytest

from privet.robustness import NoGuarantee, accuracy_after, curve, promise_of


@pytest.mark.parametrize("measure", ["accuracy", "attack success"])
def test_a_curve_and_its_picture(measure):
    promise = promise_of(epsilon=0.1, rho=0.0005)
    found = curve(promise, 0.3, 50, measure=measure, points=6)
    assert found.poisoned.tolist() == [0, 10, 20, 30, 40, 50]
    assert found.best[0] == pytest.approx(0.3)
    steps = np.diff(found.best)
    assert np.all(steps < 0 if measure == "accuracy" else steps > 0)
    picture = ElementTree.fromstring(found.to_svg())
    lines = picture.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4  # the best, the paper's, pure, zCDP
    assert measure in found.to_svg()


def test_a_curve_says_the_same_as_a_single_bound():
    promise = promise_of(epsilon=0.5, delta=1e-3)
    found = curve(promise, 0.9, 5, changed=True)
    assert found.poisoned.tolist() == list(range(6))
    for x in range(6):
        one = accuracy_after(promise, 0.9, x, changed=True)
        assert {name: values[x] for name, values in found.bounds.items()} == one.bounds
        assert found.best[x] == one.best


def test_a_long_curve_is_quick_and_an_empty_one_is_a_point():
    assert len(curve(promise_of(epsilon=1e-5), 0.9, 10**7).best) == 101
    assert curve(promise_of(epsilon=1), 0.9, 0).poisoned.tolist() == [0]
    assert "<svg" in curve(promise_of(epsilon=1), 0.9, 0).to_svg()


def test_bad_input():
    with pytest.raises(NoGuarantee):
        curve(promise_of(epsilon=1), 0.9, 5, measure="loss")
    with pytest.raises(NoGuarantee):
        curve(promise_of(epsilon=1), 0.9, -1)
