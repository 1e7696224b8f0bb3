"""Discovered schemas: exact laws on small tables of persons, and bugs that must be caught."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from privet.audit import discovery
from privet.audit.discovery import PERSONS, DiscoveryProbe, coins_of, compare_coins
from privet.engines import raw
from privet.errors import AuditError, BudgetExceeded
from privet.grids import Magnitudes
from privet.privacy import DiscoveryNoise, Threshold

OPTIONS = {
    "records": {"unit": False},
    "persons": {},
    "rows": {"rows_per_unit": 2},
}
SMALL = PERSONS[1:3]  # two records that are alike, and two in different cells


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_person_more_costs_what_the_books_say(name, gaussian):
    verdict = DiscoveryProbe(2.0, 0.1, gaussian=gaussian, **OPTIONS[name]).audit(2, SMALL)
    assert verdict.holds, (verdict.found, verdict.claim, verdict.delta, verdict.worst)
    assert verdict.found > (0.7 if gaussian else 0.999) * verdict.claim
    assert verdict.pairs == 6


def test_delta_is_nearly_attained_by_records():
    # Thresholds are whole numbers; here one of them nearly fits what lists have of epsilon.
    share = float(1 - DiscoveryProbe(2.0, 0.1, unit=False).plan.noise.bounds_share)
    verdict = DiscoveryProbe(2 / share, 0.1, unit=False).audit(1)
    assert 0.95 * 0.1 < verdict.delta <= 0.1


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
def test_sixty_values_of_one_person(gaussian):
    """The most that a person can have: the threshold is made for this."""
    person = tuple((1.0, f"text {number:02}", 0) for number in range(60))
    probe = DiscoveryProbe(1.0, 0.01, gaussian=gaussian)
    law = coins_of(probe.plan, [person])
    own = [chance for (name, _), chance in law.items() if name == "a"]
    assert len(own) == 60
    appears = 1 - math.prod(1 - chance for chance in own)
    claimed = float(probe.plan.budget.threshold_delta)
    assert 0.8 * claimed < appears <= claimed


def forget_columns(monkeypatch):
    """The noise is that of one column."""
    of = DiscoveryNoise._of
    monkeypatch.setattr(DiscoveryNoise, "_of", lambda self, columns, share: of(self, 1, share))


def weigh_records(monkeypatch):
    """Every record weighs as much as a person with a single one."""
    monkeypatch.setattr(raw, "weights_of", lambda names, order, schema: 60 + 0 * order)


def forget_other_records(monkeypatch):
    """A threshold for persons, and noise for records."""

    of = DiscoveryNoise._of

    def noise(self, columns, share):
        return of(replace(self, parts=1), columns, share)

    monkeypatch.setattr(DiscoveryNoise, "_of", noise)


def without_threshold(monkeypatch):
    monkeypatch.setattr(Threshold, "least", 1)


def threshold_of_records(monkeypatch):
    """The threshold looks at a value of one part only."""
    monkeypatch.setattr(Threshold, "_appears", lambda self, least: self._tail(least - 1))


def threshold_of_one_value(monkeypatch):
    """The threshold forgets that a person may have many values."""
    monkeypatch.setattr(Threshold, "_appears", lambda self, least: self._tail(least - self.parts))


LOSSES = {
    "columns do not add up": forget_columns,
    "records weigh one": weigh_records,
    "noise of records": forget_other_records,
}
DELTAS = {
    "no threshold": (without_threshold, {"unit": False}),
    "for a record": (threshold_of_records, {"rows_per_unit": 2}),
}


@pytest.mark.parametrize("name", LOSSES)
def test_mutants_are_caught(name, monkeypatch):
    mutate = LOSSES[name]
    mutate(monkeypatch)
    verdict = DiscoveryProbe(2.0, 0.1).audit(2, PERSONS[1:2])
    assert not verdict.holds
    assert verdict.found > 1.3 * verdict.claim


def test_eighths_must_be_paid_for(monkeypatch):
    """Magnitudes have all of the budget, and their eighths a part besides: the books refuse it."""
    of = DiscoveryNoise._of

    def again(self, columns, share):
        return of(self, columns, 1 if share > Fraction(1, 2) else share)

    monkeypatch.setattr(DiscoveryNoise, "_of", again)
    with pytest.raises(BudgetExceeded):
        DiscoveryProbe(2.0, 0.1).audit(1)


@pytest.mark.parametrize("name", DELTAS)
def test_mutants_of_the_threshold_are_caught(name, monkeypatch):
    mutate, options = DELTAS[name]
    alike = (((1.0, "u", 0), (1.0, "u", 1)),)
    assert DiscoveryProbe(2.0, 0.1, **options).audit(1, alike).holds
    mutate(monkeypatch)
    verdict = DiscoveryProbe(2.0, 0.1, **options).audit(1, alike)
    assert verdict.delta > 0.1
    assert not verdict.holds


def test_a_threshold_for_one_value_is_caught(monkeypatch):
    threshold_of_one_value(monkeypatch)
    person = tuple((1.0, f"text {number:02}", 0) for number in range(60))
    probe = DiscoveryProbe(1.0, 0.01)
    law = coins_of(probe.plan, [person])
    assert 1 - math.prod(1 - p for (name, _), p in law.items() if name == "a") > 0.01


def test_noise_that_is_shared_is_noticed(monkeypatch):
    """If one noise served two counts, coins would not be independent."""
    add = discovery._Told._add

    def shared(self, law, values, scale):
        noisy = add(self, law, values, scale)
        return values + (noisy - values).flat[0]

    monkeypatch.setattr(discovery._Told, "_add", shared)
    with pytest.raises(AuditError, match="depends on another"):
        coins_of(DiscoveryProbe(1.0, 0.01, unit=False).plan, [PERSONS[0]])


def test_coins_of_two_tables():
    one, other = {"a": 0.5, "b": 0.2}, {"a": 0.5, "b": 0.4, "c": 0.1}
    found = compare_coins(one, other)
    assert found.epsilon == math.inf  # c appears on one table only
    assert found.delta(5.0) == pytest.approx(0.1)
    alone = compare_coins(one, {"a": 0.5, "b": 0.4})
    assert alone.epsilon == pytest.approx(math.log(2))


def test_magnitudes_are_those_of_the_proof():
    assert Magnitudes().size == 163
    assert Fraction(Magnitudes().bounds(0, 162)[1]) == 2**51
