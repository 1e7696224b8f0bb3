"""Questions audited by themselves: all are asked, sums and choices of parties have their laws."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from privet.audit import exact
from privet.audit.catalogue import ONE, of_estimators, of_questions
from privet.audit.laws import laplace_mass, largest, polya, shares_mass
from privet.audit.probes import SharedProbe
from privet.engines import STEP, Basis, blocks
from privet.errors import AuditError
from privet.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    JointQuantiles,
    LaplaceShare,
    NoisyMaxShare,
    PermuteAndFlip,
    TopOf,
    WholeTree,
    quantiles,
)
from privet.privacy.mechanisms import round_up
from privet.tables import Cells, PrivateCells, PrivateTable, scores

CASES = {case.options: case for case in of_questions(1.0)}
#: What costs nothing, and what no budget covers: a study asks it, and its model is marked.
FREE = {"take", "split", "partition", "root", "parts", "start_scores", "mark_leak", "session"} | {
    "close"
}
LEAKING = {"leaking_means", "leaking_quantiles"}


# The catalogue asks everything


def questions():
    return {
        name
        for kind in (*PrivateCells.__mro__, PrivateTable)
        if kind.__module__.startswith("privet.tables") and kind is not Cells
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    } - (FREE | LEAKING)


@pytest.mark.filterwarnings("ignore")  # fits with a seed, and as published
def test_every_question_that_is_charged_has_a_case(monkeypatch):
    asked = {}

    def note(kind, name):
        real = getattr(kind, name)

        def ask(self, *given, **options):
            bound = inspect.signature(real).bind(self, *given, **options).arguments
            asked.setdefault(name, []).append((self.schema, bound))
            return real(self, *given, **options)

        monkeypatch.setattr(kind, name, ask)

    for name in questions():
        note(PrivateCells if hasattr(PrivateCells, name) else PrivateTable, name)
    for case in [*of_questions(), *of_estimators()]:
        schema = case.estimator.schema
        if isinstance(case.estimator, SharedProbe):
            exact.run(exact._Fit(case.estimator), (), ())
        elif case.learner == "question" or set(asked) < questions():
            model = clone(case.estimator).set_params(random_state=1)
            if case.learner == "question":
                model.set_params(whole_draws=True)
            rows = np.array([exact.universe(schema)[0]], dtype=object)
            model.fit(rows[:, :-1], rows[:, -1])
    assert set(asked) == questions()
    assert {bound["count"] for _, bound in asked["choose_features"]} == {2}
    assert {bound["depth"] for _, bound in asked["draw_trees"]} >= {2, 3}
    for name in ("choose_labels", "noisy_class_counts", "mpc_noisy_counts", "mpc_exact_counts"):
        assert max(len(schema.classes) for schema, _ in asked[name]) >= 4


# Deliberate bugs: the same audit passes without them


def change(monkeypatch, mechanism, name, to):
    real = getattr(mechanism, name).fget
    monkeypatch.setattr(mechanism, name, property(lambda self: to(self, real(self))))


def leave_out_a_share(monkeypatch, mechanism):
    """The second party adds none."""
    real, calls = mechanism.release, []

    def release(self, exact, noise):
        calls.append(noise)
        if len(calls) % 2:
            return real(self, exact, noise)
        units = self.units if isinstance(self, NoisyMaxShare) else 1
        return units * np.array(exact)

    monkeypatch.setattr(mechanism, "release", release)


def as_if_monotone(monkeypatch):
    """The score can rise and fall; half of the spread is claimed, the rate is twice too high."""
    for room in (scores, quantiles):
        monkeypatch.setattr(room, "spread_of", lambda sensitivity, *, monotone: sensitivity)


def as_if_n_were_public(monkeypatch):
    """How many records should be beyond a scale is a share of two, not of the table's own."""
    real = scores.ScaleChoice._fits

    def fits(self, before, beyond, rows):
        return real(self, before, beyond, np.full_like(rows, 2))

    monkeypatch.setattr(scores.ScaleChoice, "_fits", fits)


def as_if_only_the_far_counted(monkeypatch):
    """A record within the scale moves the score by the share, which is forgotten."""

    def mechanism(self):
        part, parts = self.share.numerator, self.share.denominator
        return Exponential(2 * (parts - part), self.epsilon)

    monkeypatch.setattr(scores.ScaleChoice, "mechanism", property(mechanism))


def cut_slopes(monkeypatch, largest=1, longest=1):
    """A record may add more than its noise was made for."""
    real = blocks.bounded_weights
    monkeypatch.setattr(
        blocks, "bounded_weights", lambda r, s, c, length: real(r, s, largest * c, longest * length)
    )


@pytest.mark.parametrize(
    ("options", "mutate"),
    [
        (
            "choose_features, 2 of 3, pure",
            lambda m: change(m, TopOf, "scale", lambda s, _: round_up(s.spread / s.epsilon)),
        ),
        (
            "choose_features, 2 of 3, zCDP",
            lambda m: change(m, TopOf, "scale", lambda s, _: round_up(s.spread / s.epsilon)),
        ),
        (
            "joint_quantiles, 2 parts, pure",
            lambda m: change(m, JointQuantiles, "rate", lambda _, rate: 2 * rate),
        ),
        (
            "joint_quantiles, 2 parts, zCDP",
            lambda m: change(m, JointQuantiles, "rate", lambda _, rate: 2 * rate),
        ),
        (
            "choose, max, pure",
            lambda m: change(m, PermuteAndFlip, "scale", lambda _, scale: scale / 2),
        ),
        (
            "choose_labels, 4 classes, pure",
            lambda m: change(m, PermuteAndFlip, "scale", lambda _, scale: scale / 2),
        ),
        (
            "noisy_class_counts, 4 classes, pure",
            lambda m: change(m, DiscreteLaplace, "scale", lambda _, scale: scale / 2),
        ),
        (
            "draw_trees, depth 3, 2 classes",
            lambda m: change(m, WholeTree, "rate", lambda _, rate: 2 * rate),
        ),
        (
            "draw_trees, depth 3, 4 classes",
            lambda m: change(m, WholeTree, "rate", lambda _, rate: 2 * rate),
        ),
        *(
            (f"noisy_scale, 1/2 beyond, {account}", mutate)
            for account in ("pure", "zCDP")
            for mutate in (as_if_monotone, as_if_n_were_public)
        ),
        ("noisy_scale, 9/10 beyond, pure", as_if_only_the_far_counted),
        ("quantiles, median of the target, pure", as_if_monotone),
        (
            "noisy_sums, two features",
            lambda m: m.setattr(Basis, "most_squares", lambda _: STEP**2),
        ),
        ("noisy_slopes, 2 classes", lambda m: cut_slopes(m, largest=2)),
        ("noisy_slopes, 4 classes", lambda m: cut_slopes(m, longest=2)),
        (
            "noisy_calibration, two classes",
            lambda m: change(m, DiscreteGaussian, "scale", lambda _, scale: scale / 4),
        ),
        ("share_counts, 2 of 2 honest", lambda m: leave_out_a_share(m, LaplaceShare)),
        ("share_class_counts, 4 classes", lambda m: leave_out_a_share(m, LaplaceShare)),
        ("share_confusion, 2 classes", lambda m: leave_out_a_share(m, LaplaceShare)),
        ("share_score_counts, 2 bins", lambda m: leave_out_a_share(m, LaplaceShare)),
        ("share_labels, 2 of 2 honest", lambda m: leave_out_a_share(m, NoisyMaxShare)),
        (
            "share_splits, max, 2 classes",
            lambda m: change(m, NoisyMaxShare, "rate", lambda _, rate: 2 * rate),
        ),
    ],
)
def test_a_bug_in_a_question_is_caught(monkeypatch, options, mutate):
    mutate(monkeypatch)  # without it the case holds: test_exact.py runs all of them
    shared = isinstance(CASES[options].estimator, SharedProbe)
    verdict = CASES[options].short(1 if shared else None)
    assert not verdict.holds
    assert verdict.found > verdict.claim


def test_books_of_a_party_that_say_too_little_are_caught(monkeypatch):
    """The coordinator's books are right: what counts is what the party's own say."""
    real = PrivateCells._charge

    def half(self, mechanisms, question):
        real(
            self, [LaplaceShare(1, each.epsilon / 2, each.honest) for each in mechanisms], question
        )

    monkeypatch.setattr(PrivateCells, "_charge", half)
    verdict = CASES["share_counts, 2 of 2 honest"].short()
    assert verdict.claim == 0.5
    assert not verdict.holds


@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")
def test_parties_that_add_no_noise_at_all_are_refused(monkeypatch):
    monkeypatch.setattr(LaplaceShare, "release", lambda self, exact, noise: np.array(exact))
    with pytest.raises(AuditError, match="none at all"):
        exact.audit(SharedProbe("noisy_counts", 1.0, ONE), most_records=1)


# The laws


def test_all_shares_together_are_discrete_laplace_noise():
    for scale in (0.5, 1.0, 7.0):
        for low, high in [(None, -1), (None, 0), (-3, 4), (2, None), (0, 1)]:
            found = shares_mass(low, high, scale, weight=Fraction(1))
            assert found == pytest.approx(laplace_mass(low, high, scale), abs=1e-12)


def test_half_of_the_shares_are_less_noise_and_convolve_to_the_whole():
    half, whole = polya(0.25, Fraction(1, 2)), polya(0.25, Fraction(1))
    assert np.convolve(half, half)[:100] == pytest.approx(whole[:100], rel=1e-12)
    assert whole[:5] == pytest.approx([-math.expm1(-0.25) * math.exp(-0.25 * x) for x in range(5)])


def test_the_law_of_the_largest_by_draws():
    """False alarms: five deviations on each of three shares, below 2e-6 in all."""
    law, scores = polya(0.2, Fraction(1)), np.array([3, 0, 1])
    places = np.arange(3)
    leads = scores[None, :] - scores[:, None] + (places[None, :] < places[:, None])
    exactly = np.exp(largest(law, leads))
    assert exactly.sum() == pytest.approx(1)
    draws = 200_000
    noise = np.random.default_rng(1).geometric(-math.expm1(-0.2), (draws, 3)) - 1
    seen = np.bincount((scores + noise).argmax(axis=1), minlength=3) / draws
    assert (np.abs(seen - exactly) < 5 * np.sqrt(exactly * (1 - exactly) / draws)).all()
