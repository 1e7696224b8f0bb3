"""Deliberate bugs in a test score, each of which the exact audit must catch."""

import numpy as np
import pytest

from privet import PrivateTable, PrivateTreeClassifier, SulqID3Classifier
from privet.audit import exact
from privet.audit.catalogue import ONE, of_estimators, of_questions
from privet.engines import bases, questions
from privet.engines.blocks import Block
from privet.privacy import DiscreteGaussian, DiscreteLaplace, Exponential, PermuteAndFlip
from privet.tables import cells as wall

CASES = {case.options: case for case in of_questions(1.0)}
TESTED = [case for case in of_estimators(1.0) if case.estimator.test_share is not None]
RECORDS = exact.universe(ONE)
#: Every record comes to a table of two: some are learnt from, some are tested on.
PAIRS = [((RECORDS[0], RECORDS[3]), (record, RECORDS[0], RECORDS[3])) for record in RECORDS]


def model():
    """Return a model all of whose epsilon one record can feel."""
    return SulqID3Classifier(1.0, ONE, max_depth=1, test_share=0.5)


def audit(estimator, pairs=PAIRS):
    return exact.audit(estimator, pairs=pairs, paths=12)


@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
def test_the_cases_have_records_on_both_sides():
    """Else nothing would be audited: the key is that of audits."""
    sides = set()
    real = PrivateTable.portions

    def look(self, shares, key):
        found = real(self, shares, key)
        for name, table in found.items():
            engine = wall.behind_table[table].engine
            if engine.class_counts(engine.root(table._view(None))).sum():
                sides.add(name)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateTable, "portions", look)
        for record in RECORDS:
            exact.run(exact._Fit(model()), (record,), ())
    assert sides == {"training", "test"}


def test_a_training_question_to_the_whole_table_costs_twice(monkeypatch):
    assert audit(model()).holds
    real = PrivateTable.portions

    def learn_from_all(self, shares, key):
        found = real(self, shares, key)
        wall.behind_table[found["training"]] = wall.behind_table[self]
        return found

    monkeypatch.setattr(PrivateTable, "portions", learn_from_all)
    verdict = audit(model())
    assert not verdict.holds
    assert verdict.claim == 1.0
    assert verdict.found > 1.5


def test_testing_on_the_whole_table_costs_twice(monkeypatch):
    real = PrivateTable.portions

    def test_on_all(self, shares, key):
        found = real(self, shares, key)
        wall.behind_table[found["test"]] = wall.behind_table[self]
        return found

    monkeypatch.setattr(PrivateTable, "portions", test_on_all)
    verdict = audit(model())
    assert not verdict.holds
    assert verdict.found > 1.5


def test_records_divided_by_position(monkeypatch):
    """A new record moves all others to the other side."""

    def by_position(self, step):
        return np.arange(len(self)) % 2 * (step.count // 2)

    pairs = [((RECORDS[0],) * 2 + (RECORDS[3],), (RECORDS[0],) * 3 + (RECORDS[3],))]
    assert audit(model(), pairs).holds
    monkeypatch.setattr(Block, "_part", by_position)
    verdict = audit(model(), pairs)
    assert not verdict.holds


def scale_of(mechanism, factor):
    def mutate(patch):
        real = mechanism.scale.fget
        patch.setattr(mechanism, "scale", property(lambda self: factor * real(self)))

    return mutate


def too_much_of_a_record(patch):
    """Errors are added beside all of the record, not as parts of it."""

    def moments(distances):
        found = bases.error_moments(distances)
        found[:, 3] = bases.UNIT
        return found

    patch.setattr(questions, "error_moments", moments)


def twice_a_record(patch):
    patch.setattr(questions, "error_moments", lambda far: 2 * bases.error_moments(far))


@pytest.mark.parametrize(
    ("options", "mutate"),
    [
        ("noisy_confusion, 2 classes, pure", scale_of(DiscreteLaplace, 0.5)),
        ("noisy_confusion, 4 classes, zCDP", scale_of(DiscreteGaussian, 0.5)),
        ("noisy_score_counts, 2 bins, pure", scale_of(DiscreteLaplace, 0.5)),
        ("noisy_score_counts, 2 bins, zCDP", scale_of(DiscreteGaussian, 0.5)),
        ("noisy_errors, near and far, pure", too_much_of_a_record),
        ("noisy_errors, near and far, zCDP", twice_a_record),
        ("choose_scores, 2 models, pure", scale_of(PermuteAndFlip, 0.5)),
        ("choose_scores, 2 models, zCDP", scale_of(Exponential, 0.5)),
        ("choose_scores, 2 models of a number, pure", scale_of(PermuteAndFlip, 0.5)),
    ],
)
def test_a_bug_in_a_question_is_caught(monkeypatch, options, mutate):
    assert CASES[options].short().holds
    mutate(monkeypatch)
    verdict = CASES[options].short()
    assert not verdict.holds
    assert verdict.found > verdict.claim


def test_every_kind_of_target_has_a_case_with_a_test_share():
    assert {
        (len(case.estimator.schema.classes or ()), getattr(case.estimator, "delta", None) is None)
        for case in TESTED
    } >= {(2, True), (2, False), (3, True), (3, False), (0, True), (0, False)}
    assert any(isinstance(case.estimator, PrivateTreeClassifier) for case in TESTED)
