"""Deliberate bugs, each of which the audit must catch.

Every mutation is injected into the library, books included: the ledger goes on claiming what it
claims. The same audit passes without the mutation.
"""

import math
import secrets

import numpy as np
import pytest

from privet import (
    Budget,
    Categorical,
    DiffPID3Classifier,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateTable,
    PrivateTreeClassifier,
    Schema,
    SulqID3Classifier,
)
from privet.audit import exact
from privet.audit.catalogue import ONE, TWO
from privet.engines.blocks import Block
from privet.engines.lineage import Divide
from privet.learners import friedman_schuster
from privet.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    PermuteAndFlip,
    Question,
    QuestionKind,
    WholeTree,
    quantiles,
)
from privet.tables import PrivateCells
from privet.tables import cells as wall

U0, U1, V0, V1 = exact.universe(ONE)
SHORT = [((), (U0,)), ((U0,), (V1, U0)), ((U0, V1), (U0, U0, V1))]
#: The second attribute tells the classes apart, the first one does not.
UNEQUAL = (("u", "u", 0),) * 5 + (("u", None, 1),) * 10
FOUR = Schema({name: Categorical(["u"]) for name in "abcd"}, target="y", classes=[0, 1])


def audit(model, *, pairs=SHORT, **options):
    return exact.audit(model, pairs=pairs, **options)


# 1. Half the noise


def halve(monkeypatch, mechanism, name="scale", factor=0.5):
    real = getattr(mechanism, name).fget
    monkeypatch.setattr(mechanism, name, property(lambda self: factor * real(self)))


@pytest.mark.parametrize(
    ("mechanism", "name", "factor", "model", "options"),
    [
        (DiscreteLaplace, "scale", 0.5, SulqID3Classifier(1.0, ONE, max_depth=1), {}),
        (
            PermuteAndFlip,
            "scale",
            0.5,
            DiffPID3Classifier(8.0, TWO, max_depth=1),
            {"pairs": [(UNEQUAL, (("u", "u", 0), *UNEQUAL))]},
        ),
        (WholeTree, "rate", 2.0, PrivateTreeClassifier(1.0, ONE, max_depth=1, n_rows=99), {}),
        (
            DiscreteGaussian,
            "scale",
            0.5,
            PrivateAdditiveClassifier(1.0, delta=1e-6, schema=ONE),
            {"paths": 2},
        ),
    ],
    ids=["Laplace", "permute-and-flip", "whole trees", "Gaussian"],
)
def test_too_little_noise(monkeypatch, mechanism, name, factor, model, options):
    assert audit(model, **options).holds
    halve(monkeypatch, mechanism, name, factor)
    verdict = audit(model, **options)
    assert not verdict.holds
    assert verdict.found > verdict.claim


# 2. Features composed in parallel


def test_features_composed_in_parallel(monkeypatch):
    """Every attribute's histogram has the whole share, and the books charge it once."""
    model = SulqID3Classifier(1.0, FOUR, max_depth=1)
    record = ("u", "u", "u", "u", 0)
    options = {"pairs": [((record,) * 4, (record,) * 5)], "paths": 8}
    assert audit(model, **options).holds
    real_charge, real_choose = PrivateCells._charge, friedman_schuster._by_counts
    charged = []

    def charge_once(self, chosen, question):
        once = (id(self._table), question, self.depth)
        if self.depth != 1 or question.kind is not QuestionKind.CLASS_COUNTS or once not in charged:
            charged.append(once)
            real_charge(self, chosen, question)

    def choose(cells, unused, view, share, *, published):
        charged.clear()
        return real_choose(cells, unused, view, share * int(unused[0].sum()), published=published)

    monkeypatch.setattr(PrivateCells, "_charge", charge_once)
    monkeypatch.setattr(friedman_schuster, "_by_counts", choose)
    verdict = audit(model, **options)
    assert not verdict.holds
    assert verdict.found > 1.2 * verdict.claim


# 3. A stop rule on exact counts


def test_a_stop_rule_on_exact_counts(monkeypatch):
    model = DiffPID3Classifier(8.0, ONE, max_depth=1)
    pairs = [((U0,) * k, (U0,) * (k + 1)) for k in range(4)]
    assert audit(model, pairs=pairs).holds

    def exact_counts(self, amount):
        self._charge(self._noises(amount, l1=1, squared_l2=1), Question(QuestionKind.ROW_COUNT))
        engine = wall.behind_table[self._table].engine
        return engine.class_counts(wall.behind_cells[self]).sum(axis=1)

    monkeypatch.setattr(PrivateCells, "noisy_counts", exact_counts)
    verdict = audit(model, pairs=pairs)
    assert not verdict.holds
    assert verdict.found == math.inf


# 4. Empty cells omitted


def test_empty_cells_omitted(monkeypatch):
    model = DiffPID3Classifier(1.0, ONE, max_depth=1)

    def only_what_is_there(self, counts, chosen):
        released = np.zeros_like(counts)
        there = counts > 0
        noise = wall.behind_table[self._table].noise
        if there.any():
            released[there] = chosen[0].release(Exact(counts[there]), noise)
        return released

    monkeypatch.setattr(PrivateCells, "_release", only_what_is_there)
    verdict = audit(model)
    assert not verdict.holds
    assert verdict.found == math.inf


# 5. Parts by position


def test_parts_by_position(monkeypatch):
    """Children get every second record instead of those with a code: a new one moves them all."""
    model = DiffPID3Classifier(1.0, ONE, max_depth=1)
    pairs = [((U0, U1, U0), (U1, U0, U1, U0)), ((U0, V1), (U0, U0, V1))]
    assert audit(model, pairs=pairs).holds
    real = Block.cells

    def by_position(self, lineage):
        found = real(self, lineage)
        if isinstance(lineage.step, Divide):
            inside = found >= 0
            found[inside] = np.arange(len(found))[inside] % lineage.size
        return found

    monkeypatch.setattr(Block, "cells", by_position)
    verdict = audit(model, pairs=pairs)
    assert not verdict.holds
    assert verdict.found > verdict.claim


# 6. The value of the noisy maximum


def test_the_value_of_the_noisy_maximum(monkeypatch):
    model = DiffPID3Classifier(1.0, FOUR, max_depth=1)
    record = ("u", "u", "u", "u", 0)
    stranger = (*record[:-1], 1)  # a mistake of every attribute
    pairs = [((record,) * 30, (stranger, *(record,) * 30))]
    assert audit(model, pairs=pairs).holds
    kept = []

    def noisy_maximum(self, scores, noise):
        noisy = noise.add_laplace(scores, 2 * self.scale)
        kept.append(int(noisy.max()))
        return int(noisy.argmax())

    real = DiffPID3Classifier._learn

    def keep(self, table, **options):
        kept.clear()
        tree = real(self, table, **options)
        self.score_ = tuple(kept)
        return tree

    monkeypatch.setattr(PermuteAndFlip, "choose", noisy_maximum)
    monkeypatch.setattr(DiffPID3Classifier, "_learn", keep)
    verdict = audit(model, pairs=pairs, most_outcomes=16)
    assert not verdict.holds
    assert verdict.found > verdict.claim


# 7. A score that can fall, treated as if it only rose


def median_program(records, noise):
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
    rows = np.array(records, dtype=float).reshape(-1, 1)
    table = PrivateTable(rows, np.zeros(len(rows), int), schema, Budget(1.0), random_state=noise)
    return table.quantiles(0, 2, 1)


@pytest.mark.filterwarnings("ignore:random_state is fixed")
def test_a_score_that_is_not_monotone_treated_as_monotone(monkeypatch):
    pairs = [((0.2, 0.8), (0.9, 0.2, 0.8)), ((0.2, 0.2, 0.2), (0.8, 0.2, 0.2, 0.2))]

    def worst():
        return max(exact.compare(median_program, *pair).epsilon for pair in pairs)

    assert worst() <= 1 + exact.TOLERANCE
    monkeypatch.setattr(quantiles, "spread_of", lambda sensitivity, *, monotone: sensitivity)
    assert worst() > 1.1


# 8. The seed, or the source of noise, kept on the model


@pytest.mark.parametrize("hidden", ["seed", "source", "rows"])
def test_something_kept_on_the_model(monkeypatch, hidden):
    model = PrivateTreeClassifier(1.0, ONE, max_depth=1, n_rows=99)
    assert audit(model, pairs=SHORT[:1]).holds
    real = PrivateTreeClassifier._learn

    def keep(self, table, **options):
        room = wall.behind_table[table]
        self._kept = {
            "seed": secrets.randbits(64),
            "source": room.noise,
            "rows": {"n": room.engine.rows},
        }[hidden]
        return real(self, table, **options)

    monkeypatch.setattr(PrivateTreeClassifier, "_learn", keep)
    verdict = audit(model, pairs=SHORT[:1])
    assert not verdict.holds
    assert verdict.remarks
