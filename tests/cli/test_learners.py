"""``privet learners``: the registry, for people."""

import inspect

import pytest

from privet.cli.fit import fit
from privet.cli.learners import FLAGS
from privet.estimators.registry import DEFAULT, learners, parameters_of


def test_all_are_listed_and_the_default_is_the_first(call_privet):
    code, out, _ = call_privet("learners")
    assert code == 0
    lines = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert [line for line in lines if line in learners()] == list(learners())
    assert next(iter(learners())) == DEFAULT
    assert inspect.signature(fit).parameters["learner"].default == DEFAULT


@pytest.mark.parametrize("name", learners())
def test_the_options_of_one_are_those_that_fit_takes(name, call_privet, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = call_privet("learners", name)
    assert code == 0
    first, *rest = [line for line in out.splitlines() if line.strip()]
    for face in (learners()[name].classifier, learners()[name].regressor):
        for option in parameters_of(face) if face else ():
            if option in FLAGS:
                assert FLAGS[option] in first
            else:
                assert any(line.split()[0] == option for line in rest), option
    assert ("--delta" in first) == (name in ("boosting", "additive"))
