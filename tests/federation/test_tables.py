"""A table held by parties: what it answers, what each party pays, and what goes wrong."""

import gc
import os
import re
import signal
import sys
import time
from contextlib import suppress
from fractions import Fraction
from threading import Barrier, Thread

import numpy as np
import pandas as pd
import pytest

from privet import (
    Budget,
    Categorical,
    DiffPC45Classifier,
    DiffPID3Classifier,
    LedgerStore,
    Numeric,
    PrivateBoostingClassifier,
    PrivateTreeClassifier,
    PrivaTreeClassifier,
    Schema,
    SulqID3Classifier,
    TopDownClassifier,
    baselines,
    load,
)
from privet.criteria import Gini, GiniChords, Max
from privet.errors import BudgetError, BudgetExceeded, DataError, FederationError, SchemaError
from privet.federation import (
    PROTOCOLS,
    FederatedTable,
    LocalLink,
    Lost,
    Party,
    ProcessLink,
    Refused,
)
from privet.federation.mpc import ChoiceShape, Deal, MaskKeys, dealing, open_sum
from privet.federation.party import CHARGED
from privet.federation.wire import Request, encode
from privet.learners.topdown import make_candidates, make_view
from privet.privacy import QuestionKind
from privet.tables import QUESTIONS, Multiway, PrivateTable, ReleasedSplits, Split, View, gains_of

from ..repeated import some_of  # noqa: TID252
from .parties import (
    SCHEMA,
    make,
    make_babbling,
    make_nothing,
    make_odd,
    make_sleepy,
    make_with_ledger,
    rows,
)

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


def party_of(k, count=500, **given):
    return make(f"p{k}", count, seed=k, random_state=k, **given)


def accuracy(model):
    features, target = rows(2_000, 99)
    return np.mean(model.predict(features) == target)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "model",
    [TopDownClassifier(4.0, max_nodes=3), DiffPID3Classifier(4.0, max_depth=1),
     SulqID3Classifier(4.0, max_depth=1), DiffPC45Classifier(4.0, max_depth=1),
     DiffPC45Classifier(4.0, max_depth=1, criterion="gini", calibration="published"),
     PrivaTreeClassifier(4.0, max_depth=2, binning="scales"),
     PrivaTreeClassifier(4.0, max_depth=2, binning="uniform", split="histogram", n_rows=2_000)],
    ids=["topdown", "diffpid3", "sulq", "diffpc45", "diffpc45, published", "privatree",
         "privatree by histograms"],
)  # fmt: skip
def test_learners_run_unchanged(protocol, model):
    parties = [party_of(k) for k in range(4)]
    model.fit(FederatedTable(parties, protocol=protocol))
    exact = isinstance(model, TopDownClassifier | PrivaTreeClassifier)
    # Noisy counts on 4,096 steps tell nothing.
    lost = protocol == "noisy-counts" and isinstance(model, DiffPC45Classifier)
    assert accuracy(model) > (0.4 if lost else 0.9 if exact else 0.6)
    assert model.privacy_.epsilon <= 4
    for party in parties:
        assert party.table.ledger.total.epsilon <= 4
        assert float(party.table.ledger.total.epsilon) == pytest.approx(model.privacy_.epsilon)


@pytest.mark.parametrize(
    ("options", "match"),
    [({}, "binning='scales'"), ({"binning": "quantile"}, "binning='scales'"),
     ({"binning": "scales", "categories": "ordered"}, "categories='auto'"),
     ({"binning": "uniform", "calibration": "published", "n_rows": 9}, "one table")],
    ids=["auto", "quantile", "ordered", "published"],
)  # fmt: skip
def test_privatree_needs_public_bins_of_parties(options, match):
    parties = [party_of(k) for k in range(2)]
    with pytest.raises(FederationError, match=match):
        PrivaTreeClassifier(4.0, **options).fit(FederatedTable(parties))
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_too_many_splits_are_refused_before_anything_is_spent():
    many = {f"x{k}": Numeric(0, 1) for k in range(40)}
    schema = Schema(many, target="y", classes=[0, 1])
    features, target = np.full((20, 40), 0.5), [0, 1] * 10
    parties = [Party(f"p{k}", features, target, schema, Budget(1.0)) for k in range(2)]
    with pytest.raises(FederationError, match="splits at most, not 163,"):
        DiffPC45Classifier(1.0).fit(FederatedTable(parties))
    with pytest.raises(BudgetError, match="too small to share"):
        PrivaTreeClassifier(1e-4, binning="scales").fit(FederatedTable(parties))
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_choices_that_no_message_can_hold_are_refused_before_they_are_paid(monkeypatch):
    parties = [party_of(k) for k in range(2)]
    table = FederatedTable(parties).session(Budget(1.0))
    monkeypatch.setattr("privet.federation.protocols.secure_sums.MOST_BYTES", 2**20 + 100)
    with pytest.raises(FederationError, match=r"too large.*fewer features or cuts"):
        table.root().choose_best(Multiway(), Gini(), 1, how="flip")
    assert [party.table.ledger.total.epsilon for party in parties] == [0, 0]
    shape = ChoiceShape(3, 7, 6, 2, 5)
    assert shape.randomness_size == Deal(bytes(32), shape, 3).corrections().size


@pytest.mark.engines
def test_labels_of_very_many_rows_still_have_noise_that_can_be_shared():
    model = PrivaTreeClassifier(1.0, max_depth=1, binning="scales", n_rows=10**9)
    model.fit(FederatedTable([party_of(k) for k in range(2)]))
    assert min(entry.epsilon for entry in model.privacy_.entries) == 1e-5


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_counts_are_those_of_all_parties(protocol):
    parties = [party_of(k, count, epsilon=1e6) for k, count in enumerate((700, 0, 3, 100))]
    table = FederatedTable(parties, protocol=protocol).session(Budget(1e6))
    counts = np.asarray(table.root().noisy_class_counts(1000))
    assert counts.sum() == 803
    assert int(table.root().noisy_counts(1000)[0]) == 803
    parts = table.root().partition("c").noisy_counts(1000)
    assert parts.sum() == 803
    assert table.parts(3, key=1).noisy_counts(1000).sum() == 803


def test_the_sum_has_one_noise():
    """Four parties' shares: a quarter of the variance that four noises have."""
    spreads = {}
    for protocol in ("secure-sum", "noisy-counts"):
        parties = [party_of(k, 0, epsilon=1e6) for k in range(4)]
        table = FederatedTable(parties, protocol=protocol).session(Budget(1e6))
        root = table.root()
        drawn = [np.asarray(root.noisy_class_counts(0.5))[0] for _ in range(1_500)]
        spreads[protocol] = np.var(drawn)
    one = 2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2
    assert spreads["secure-sum"] == pytest.approx(one, rel=0.15)
    assert spreads["noisy-counts"] == pytest.approx(4 * one, rel=0.15)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_splits_are_chosen_from_all_rows(protocol):
    parties = [party_of(k, epsilon=1e5) for k in range(3)]
    table = FederatedTable(parties, protocol=protocol).session(Budget(1e5))
    view = make_view(SCHEMA, 9)
    candidates = make_candidates(view, missing=True)
    (split,) = table.root(view).choose_best(candidates, Gini(), 1_000, how="flip")
    assert split.feature == 0
    assert view.cuts[0][split.children.index(1) - 1] == pytest.approx(0.5)
    counts = table.root(view).split([split]).noisy_class_counts(1_000)
    (gain,) = gains_of(counts, [split], Gini())
    assert gain / Gini().scale == pytest.approx(0.4 * 1_500, rel=0.1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.filterwarnings("ignore:epsilon is infinite")
def test_without_noise_parties_disagree_and_still_find_a_tree(protocol):
    parties = [party_of(k, 60 + 5 * k, epsilon=float("inf")) for k in range(3)]
    model = TopDownClassifier(float("inf"), max_nodes=9)
    model.fit(FederatedTable(parties, protocol=protocol))
    assert accuracy(model) > 0.85
    assert not model.privacy_.private


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_party_refuses_what_its_owner_did_not_allow(protocol):
    stingy = party_of(3, epsilon=0.5)
    parties = [*(party_of(k) for k in range(3)), stingy]
    table = FederatedTable(parties, protocol=protocol)
    with pytest.raises(FederationError, match=r"'p3' has epsilon 0.5 left.*Nothing was spent"):
        TopDownClassifier(4.0, max_nodes=3).fit(table)
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)
    root = stingy.answer(0, "root", None)
    with pytest.raises(BudgetExceeded, match="budget"):  # whatever the coordinator thinks
        stingy.answer(root, "noisy_class_counts", 0.6)
    assert stingy.table.ledger.total.epsilon == 0
    features, target = rows(20, 0)
    silent = Party("s", features, target, SCHEMA, Budget(9.0), allowed=["choose_best"])
    table = FederatedTable([party_of(0), silent], protocol=protocol).session(Budget(4.0))
    with pytest.raises(Refused, match="does not allow"):
        table.root().noisy_class_counts(1)
    assert silent.table.ledger.total.epsilon == 0
    with pytest.raises(FederationError, match="can allow"):
        Party("s", features, target, SCHEMA, Budget(9.0), allowed=["rows"])


NEEDED = {
    "noisy-counts": {"topdown": ["noisy_counts", "noisy_class_counts"], "sulq": ["noisy_counts"]},
    "local-rnm": {"topdown": ["choose_best", "noisy_class_counts"], "diffpid3": ["choose_splits"]},
    "secure-sum": {
        "topdown": ["share_counts", "share_class_counts", "share_splits", "share_labels"],
        "diffpid3": ["share_counts", "share_class_counts", "share_splits"],
        "sulq": ["share_counts", "share_class_counts"],
    },
}
LEARNERS = {
    "topdown": TopDownClassifier(4.0, max_nodes=3),
    "diffpid3": DiffPID3Classifier(4.0, max_depth=1),
    "sulq": SulqID3Classifier(4.0, max_depth=1),
}


@pytest.mark.parametrize(
    ("protocol", "learner", "question"),
    [(p, m, q) for p, some in NEEDED.items() for m, questions in some.items() for q in questions],
)
def test_what_is_needed_and_not_allowed_is_noticed_before_anything_is_spent(
    protocol, learner, question
):
    features, target = rows(200, 0)
    strict = Party("s", features, target, SCHEMA, Budget(4.0), allowed=CHARGED - {question})
    parties = [party_of(0), party_of(1), strict]
    with pytest.raises(FederationError, match=rf"'s' does not allow the question '{question}'"):
        LEARNERS[learner].fit(FederatedTable(parties, protocol=protocol))
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_not_needed_need_not_be_allowed(protocol, learner):
    allowed = {
        "noisy-counts": ["noisy_counts", "noisy_class_counts"],
        "local-rnm": ["noisy_counts", "noisy_class_counts", "choose_best", "choose_splits"],
        "secure-sum": {
            "topdown": ["share_counts", "share_class_counts", "share_splits", "share_labels"],
            "diffpid3": ["share_counts", "share_class_counts", "share_splits"],
            "sulq": ["share_counts", "share_class_counts"],
        },
    }[protocol]
    if isinstance(allowed, dict):
        allowed = allowed[learner]
    parties = [
        Party(f"p{k}", *rows(300, k), SCHEMA, Budget(4.0), allowed=allowed) for k in range(3)
    ]
    LEARNERS[learner].fit(FederatedTable(parties, protocol=protocol))


def test_a_party_answers_known_questions_only():
    party = party_of(0)
    for question in ("rows", "_handles", "__class__", "draw_trees", "close"):
        with pytest.raises(Refused, match="does not know"):
            party.answer(0, question)
    with pytest.raises(Refused, match="about cells"):
        party.answer(0, "noisy_counts", 1)
    with pytest.raises(Refused, match="no such cells"):
        party.answer(77, "noisy_counts", 1)
    root = party.answer(0, "root", None)
    party.answer(root, "forget")
    with pytest.raises(Refused, match="no such cells"):
        party.answer(root, "noisy_counts", 1)


def test_a_party_trusts_no_criterion_but_its_own():
    class Understated(Gini):
        """Claims that a record changes next to nothing."""

        spread = 1

    party = party_of(0)
    view = make_view(SCHEMA, 9)
    root = party.answer(0, "root", view)
    candidates = make_candidates(view, missing=True)
    with pytest.raises(Refused, match="does not know what"):
        party.answer(root, "choose_best", candidates, Understated(), 1, how="flip")
    assert party.table.ledger.total.epsilon == 0
    assert len(party.answer(root, "choose_best", candidates, Gini(), 1, how="flip")) == 1


def test_a_party_trusts_no_candidates_view_or_numbers_that_it_has_not_checked():
    """What a class refuses, a party refuses, though the asker got around the class."""
    party = party_of(0)
    view = make_view(SCHEMA, 9)
    root = party.answer(0, "root", view)
    candidates = make_candidates(view, missing=True)
    doubled = make_candidates(view, missing=True)
    object.__setattr__(doubled, "sides", [np.full((1, size), 100) for size in view.sizes])
    hollow = make_view(SCHEMA, 9)
    object.__setattr__(hollow, "cuts", (None,) * len(view.cuts))
    asked = [
        (root, "choose_best", doubled, Gini(), 1),
        (root, "share_splits", doubled, GiniChords(2, 5), 1, 2, ["a", "b"], bytes(16)),
        (0, "root", hollow),
        (root, "choose_best", candidates, Gini(), np.array(1.0)),
    ]
    for target, question, *given in asked:
        with pytest.raises(Refused, match="does not know what"):
            party.answer(target, question, *given)
    other = make_view(Schema({"x": Numeric(0, 5)}, SCHEMA.target, classes=SCHEMA.classes), 9)
    with pytest.raises(SchemaError, match="its own schema"):
        party.answer(0, "root", other)
    assert party.table.ledger.total.epsilon == 0


def test_an_array_passes_for_no_tuple_of_children():
    """A table of two columns has half as many rows as it has bytes: records changed their cells."""
    party = party_of(0)
    root = party.answer(0, "root", None)
    cells = party.answer(root, "split", [Split(1, (0, 1, 2, 3))])
    pair = party.answer(cells, "take", np.array([0, 1]))
    wide, whole = Split(1, (0,) * 4), Split(1, (0,) * 4)
    object.__setattr__(wide, "children", np.ones((4, 2), dtype=np.uint8))
    hidden = Split(1, (0,) * 4)
    hidden.__dict__["child_of"] = np.ones(8, dtype=np.int32)  # what a cache says is not looked at
    with pytest.raises(Refused, match="does not know what"):
        party.answer(pair, "split", [wide, whole])
    with pytest.raises(Refused, match="does not know what"):
        party.answer(0, "root", np.zeros(3, dtype=np.int64))
    with pytest.raises(Lost):
        party.answer(cells, "take", np.array([[0, 1]]))  # two cells that count as one
    same = party.answer(pair, "split", [hidden, whole])
    assert len(party._cells[same][0]) == 2
    assert party.answer(same, "noisy_class_counts", 1).shape == (2, 2)


class Alike(Categorical):
    """Is equal to everything, and has a code less than it has."""

    __hash__ = None

    def __eq__(self, other):
        return True

    @property
    def size(self):
        return 1


def test_a_view_is_of_the_partys_own_schema():
    """Codes beyond the sizes of a view lead records to cells of others."""
    fake = Schema(SCHEMA.features, SCHEMA.target, classes=SCHEMA.classes)
    object.__setattr__(fake, "features", {**SCHEMA.features, "c": Alike(list("uvw"))})
    view = make_view(SCHEMA, 9)
    object.__setattr__(view, "schema", fake)
    party = party_of(0)
    for question in ("root", "parts"):
        given = (view,) if question == "root" else (2, 1, view)
        with pytest.raises(Refused, match="does not know what"):
            party.answer(0, question, *given)
    root = PrivateTable(*rows(20, 0), SCHEMA, Budget(1.0)).root(view)
    with pytest.raises(ValueError, match="one child for every code"):
        root.split([Split(1, (0,))])


class Clumsy(Party):
    """Fails, and says where."""

    def answer(self, target, question, *given, **options):
        if question in self.allowed:
            raise IndexError("record 17 has code 42")
        return super().answer(target, question, *given, **options)


def test_what_goes_wrong_at_a_party_says_nothing_of_its_rows(monkeypatch):
    party = party_of(0)
    root = party.answer(0, "root", None)

    def fail(self, amount):
        raise IndexError("record 17 has code 42")

    monkeypatch.setattr("privet.tables.private.PrivateCells.noisy_counts", fail)
    clumsy = LocalLink(Clumsy("p1", *rows(20, 0), SCHEMA, Budget(1.0)))
    for ask in (
        lambda: party.answer(root, "noisy_counts", 1),
        lambda: clumsy.receive(clumsy.send(1, "noisy_counts", 1)),
    ):
        with pytest.raises(Lost, match="failed") as caught:
            ask()
        assert "17" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


@pytest.mark.parametrize("count", [-(2**63), 2**53, -(2**53)])
def test_counts_beyond_any_table_are_nonsense(count):
    class Liar(LocalLink):
        def receive(self, number):
            asked = self._waiting[number][1]
            answer = super().receive(number)
            return np.full(1, count) if asked == "noisy_counts" else answer

    table = FederatedTable([party_of(0), Liar(party_of(1))], protocol="noisy-counts")
    with pytest.raises(FederationError, match="'p1' did not answer, or answered nonsense"):
        table.session(Budget(1.0)).root().noisy_counts(1)


TURN = bytes(range(16))


def joined(names, **given):
    """Return a party that knows the others, and its root."""
    features, target = rows(500, 0)
    party = Party("p", features, target, SCHEMA, Budget(9.0), **given)
    party.join({"p": party.keys.public_key} | {name: MaskKeys(name).public_key for name in names})
    return party, party.answer(0, "root", None)


def test_a_party_joins_no_round_that_its_owner_would_not():
    """A roster is its owner's, who also says how many of it may be honest."""
    party, root = joined("abc", trusted=3)
    with pytest.raises(FederationError, match="another one is refused"):
        party.answer(0, "join", {"p": party.keys.public_key, "x": MaskKeys("x").public_key})
    strange = [
        (2, ["p", "x"], TURN),  # not in the roster
        (2, ["a", "b"], TURN),  # without itself
        (2, ["p", "a", "a"], TURN),
        (2, "pa", TURN),
        (2.5, ["p", "a", "b", "c"], TURN),
        (True, ["p", "a", "b", "c"], TURN),
        (2, ["p", "a", "b", "c"], b"short"),
        (2, ["p", "a", "b", "c"], "text"),
    ]
    for honest, members, turn in strange:
        for question in ("share_class_counts", "share_labels"):
            with pytest.raises(Refused, match="no such round"):
                party.answer(root, question, 1, honest, members, turn)
    with pytest.raises(Refused, match="no such round"):
        party.answer(root, "share_labels", 1, TURN)
    # One of the four may not be honest, so one of any members may not be.
    for honest, members in ((4, ["p", "a", "b", "c"]), (2, ["p", "a"]), (3, ["p", "a", "b"])):
        with pytest.raises(Refused, match="its owner counts on"):
            party.answer(root, "share_class_counts", 1, honest, members, TURN)
    assert party.table.ledger.total.epsilon == 0
    assert party.answer(root, "share_class_counts", 1, 3, ["p", "a", "b", "c"], TURN).size == 2
    assert party.answer(root, "share_class_counts", 1, 2, ["p", "a", "b"], TURN[::-1]).size == 2
    assert party.table.ledger.total.epsilon == 2
    for trusted in (0, 1.5, True, "2"):
        with pytest.raises(FederationError, match="trusted must be"):
            joined("a", trusted=trusted)


def ask_round(parties, question, *asked, honest=3, cells=None, turn=None):
    """Return what the parties answer in one round; any of what is asked may differ by party."""
    cells = cells or [party.answer(0, "root", None) for party in parties]
    members, turn = [party.name for party in parties], turn or os.urandom(16)
    each = [
        [given[k] if isinstance(given, Differing) else given for given in (*asked, honest)]
        for k in range(len(parties))
    ]
    return [
        party.answer(target, question, *mine, members, turn)
        for party, target, mine in zip(parties, cells, each, strict=True)
    ]


class Differing(list):
    """One thing for each party."""


def bound(count=3):
    parties = [party_of(k, 50 * k, epsilon=1e6) for k in range(count)]
    FederatedTable(parties)
    return parties


def is_sum(masked):
    """Tell whether masks have cancelled: by chance they do for no cell."""
    total = open_sum(masked).view(np.int64)
    return bool((np.abs(total.astype(float)) < 2**40).all())


def test_a_round_is_bound_to_its_terms():
    """With less noise asked of the others, the first would be charged far less than it loses."""
    parties = bound()
    assert is_sum(ask_round(parties, "share_class_counts", 1.0))
    assert is_sum(ask_round(parties, "share_class_counts", Differing([1, 1.0, Fraction(1)])))
    lessened = ask_round(parties, "share_class_counts", Differing([0.01, 9.0, 9.0]))
    fewer = ask_round(parties, "share_class_counts", 1.0, honest=Differing([3, 2, 2]))
    view = make_view(SCHEMA, 9)
    roots = [party.answer(0, "root", None) for party in parties]
    finer = [party.answer(0, "root", view) for party in parties]
    others = ask_round(parties, "share_class_counts", 1.0, cells=[roots[0], *finer[1:]])
    children = [
        party.answer(root, "split", [Split(1, (0, 1, 1, 1) if k else (0, 0, 1, 1))])
        for k, (party, root) in enumerate(zip(parties, roots, strict=True))
    ]
    divided = ask_round(parties, "share_class_counts", 1.0, cells=children)
    with pytest.raises(Refused, match="does not know what"):
        parties[0].answer(roots[0], "split", splits=[Split(1, (0, 1, 1, 1))])
    halves = [party.answer(0, "parts", 4, 7, None) for party in parties]
    assert is_sum(ask_round(parties, "share_class_counts", [1.0] * 4, cells=halves))
    taken = [
        party.answer(half, "take", np.array([0, 1 + (k > 0)]))
        for k, (party, half) in enumerate(zip(parties, halves, strict=True))
    ]
    apart = ask_round(parties, "share_class_counts", 1.0, cells=taken)
    keyed = [party.answer(0, "parts", 4, 7 + (k > 0), None) for k, party in enumerate(parties)]
    by_key = ask_round(parties, "share_class_counts", 1.0, cells=keyed)
    spread = ask_round(
        parties,
        "share_class_counts",
        Differing([[1, 1, 1, 1], [1, 1, 1, 2], [1] * 4]),
        cells=halves,
    )
    for masked in (lessened, fewer, others, divided, apart, by_key, spread):
        assert not is_sum(masked)


@pytest.mark.parametrize("protocol", ["noisy-counts", "local-rnm"])
@pytest.mark.parametrize("learner", [DiffPID3Classifier, TopDownClassifier])
def test_a_card_has_the_noise_of_all_parties(learner, protocol):
    """The number of records is a sum of noisy counts: an entry has the noise of one party's."""
    parties = [Party(f"p{k}", *rows(400, k), SCHEMA, Budget(2.0), random_state=k) for k in range(4)]
    model = learner(2.0, max_depth=2).fit(FederatedTable(parties, protocol=protocol)).to_model()
    (count,) = [each for each in model.privacy.counts if len(each.values) == 2]
    asked = [e for e in model.privacy.entries if e.question.kind is QuestionKind.CLASS_COUNTS]
    # What its leaves, or one level, were asked: four noises of each, not one.
    least = min(entry.variance for entry in asked)
    assert count.deviation**2 >= 4 * least * (1 - 1e-9)
    assert not model.noise
    page = model.report()
    assert re.search("The noise in one party.{1,6}s count", page)
    assert "The noise in a bought count" not in page


def choice_of(parties, question, *asked, **given):
    """Return the first words that a choice opens, as the coordinator could read them."""
    for party in parties:  # choices are left hanging here, of which a party thinks the worst
        party._given_up = 0
        party._choices.clear()
    choices = ask_round(parties, question, *asked, **given)
    names = range(len(parties))
    options = {"share_labels": 2, "share_splits": 2}[question]
    shape = (
        ChoiceShape(1, options) if question == "share_labels" else ChoiceShape(1, options, 13, 2, 5)
    )
    masters = [bytes([number]) * 32 for number in range(4)]
    digests = [Deal(master, shape, 3).digests() for master in masters]
    words = []
    for place in names:
        parties[place].answer(choices[place], "step", digests)
        key, name = parties[place].keys.common_key(), parties[place]._choices[choices[place]]
        said = [dealing.said_of(key, name._round_name, digests, each) for each in names]
        kept = dealing.kept_of(said, 4)
        deal = Deal(masters[kept], shape, 3)
        # The parties trust the key of no dealer here: let each read its own key as it is.
        parties[place].keys.open_dealt = lambda sealed, _: sealed
        part = dealing.parts_of(deal.corrections(), 3)[place]
        checked = [masters[other] for other in dealing.checked_by(place, kept, 4, 3)]
        given = (checked, deal.keys[place], part)
        words.append(parties[place].answer(choices[place], "step", given)[0])
        hidden = dealing.draw_rounds(deal.keys[place], part, place, shape, 3)
        words[-1] = words[-1] - next(hidden).hidden
    # Under the key that the parties have in common: take it away, as they would.
    step = parties[0]._choices[choices[0]]
    key = step._keys.common_pad(step._round_name + (1).to_bytes(4, "little"), words[0].size)
    return open_sum(words) - key


def test_a_choice_is_bound_to_its_terms():
    parties = bound()
    both, first = np.array([[True, True]]), np.array([[True, False]])

    def small(words):
        return bool((np.abs(words.view(np.int64).astype(float)) < 2**40).all())

    assert small(choice_of(parties, "share_labels", 1.0))
    assert not small(choice_of(parties, "share_labels", Differing([0.01, 9.0, 9.0])))
    assert not small(choice_of(parties, "share_labels", 1.0, honest=Differing([3, 2, 2])))
    asked = (Multiway(), GiniChords(2, 5), 1.0, both)
    assert small(choice_of(parties, "share_splits", *asked))
    offered = ReleasedSplits({1: [Split(1, (0, 1, 2, 3))]})
    same = ReleasedSplits({1: [Split(1, (1, 0, 2, 3))]})
    for place, other in ((0, Differing([offered, same, same])), (2, Differing([0.01, 9.0, 9.0])),
                         (3, Differing([both, first, first]))):  # fmt: skip
        changed = [*asked[:place], other, *asked[place + 1 :]]
        assert not small(choice_of(parties, "share_splits", *changed))


def test_a_coordinator_that_asks_for_less_noise_elsewhere_gets_an_error():
    class Meddler(LocalLink):
        def send(self, target, question, *given, **options):
            if question == "share_class_counts":
                given = (9.0, *given[1:])
            return super().send(target, question, *given, **options)

    parties = [party_of(k, epsilon=20.0) for k in range(3)]
    table = FederatedTable([parties[0], *map(Meddler, parties[1:])])
    with pytest.raises(FederationError, match="the sum is no count"):
        table.session(Budget(1.0)).root().noisy_class_counts(0.01)


def test_owners_may_give_the_roster_themselves():
    parties = [party_of(k, epsilon=8.0) for k in range(3)]
    roster = {party.name: party.keys.public_key for party in parties}
    for party in parties:
        party.join(roster)
    model = TopDownClassifier(4.0, max_nodes=3).fit(FederatedTable(parties))
    assert accuracy(model) > 0.9
    with pytest.raises(FederationError, match="another one is refused"):
        FederatedTable(parties[:2])


def test_a_new_federation_has_new_keys():
    """Unless the roster is the owners' own: then no coordinator can have another one."""
    a, b, c = parties = [party_of(k, epsilon=9.0) for k in range(3)]
    FederatedTable([a, b])
    old, key = a.answer(0, "root", None), a.keys.public_key
    choice = a.answer(old, "share_labels", 1, 2, ["p0", "p1"], TURN)
    spent = a.table.ledger.total.epsilon
    table = FederatedTable(parties)
    assert a.keys.public_key != key
    assert a.keys.peers == {"p1", "p2"}
    with pytest.raises(Refused, match="no such choice"):
        a.answer(choice, "step", [])
    assert a.table.ledger.total.epsilon == spent
    table.session(Budget(1.0)).root().noisy_class_counts(1)
    assert a.table.ledger.total.epsilon == spent + 1
    with pytest.raises(FederationError, match="another one is refused"):
        c.answer(0, "join", {"p2": c.keys.public_key, "x": MaskKeys("x").public_key})


def test_a_smaller_federation_is_not_more_honest():
    parties = [
        Party(f"p{k}", *rows(50, k), SCHEMA, Budget(9.0), trusted=np.int64(3)) for k in range(4)
    ]
    table = FederatedTable(parties, honest=3).session(Budget(1.0))
    table.root().noisy_class_counts(1)
    # One of the four may not be honest: it need not be the one that left.
    with pytest.raises(Refused, match="its owner counts on 2"):
        FederatedTable(parties[:3]).session(Budget(1.0))
    FederatedTable(parties[:3], honest=2).session(Budget(1.0)).root().noisy_class_counts(1)


def test_after_a_loss_the_others_go_on_in_a_new_federation():
    good = [party_of(k, epsilon=9.0) for k in range(3)]
    table = FederatedTable([*good, Late(party_of(3, epsilon=9.0), "share_splits", 0)])
    model = TopDownClassifier(4.0, max_nodes=3)
    for _ in range(2):  # the second time, the names are still known
        with pytest.raises(FederationError, match=r"'p3' did not answer.*without the lost ones"):
            model.fit(table)
    assert accuracy(model.fit(FederatedTable(good))) > 0.9
    assert all(4 < party.table.ledger.total.epsilon < 9 for party in good)


def test_a_choice_that_was_answered_wrongly_is_over():
    party, root = joined("ab")
    with pytest.raises(FederationError, match="no key in common"):
        party.answer(root, "share_labels", 1, 2, ["p", "a", "b"], TURN)
    assert party.table.ledger.total.epsilon == 0
    party.keys._common = bytes(32)
    choice = party.answer(root, "share_labels", 1, 2, ["p", "a", "b"], TURN)
    with pytest.raises(FederationError, match="no deals to keep one of"):
        party.answer(choice, "step", np.zeros(3, dtype=np.uint64))
    with pytest.raises(Refused, match="no such choice"):
        party.answer(choice, "step", np.zeros(3, dtype=np.uint64))


def test_cells_that_are_not_needed_are_forgotten():
    party = party_of(0)
    table = FederatedTable([party, party_of(1)], protocol="noisy-counts").session(Budget(4.0))
    for _ in range(5):
        table.root().noisy_counts(0.1)
    table.root()
    assert len(party._cells) <= 3


class Faulty(LocalLink):
    """Answers charged questions wrongly."""

    def __init__(self, party, fault):
        super().__init__(party)
        self.fault = fault

    def receive(self, number):
        question = self._waiting[number][1]
        answer = super().receive(number)
        if question not in self.party.allowed:
            return answer
        if self.fault == "lost":
            raise Lost("gone")
        return {"nonsense": "ten", "shape": np.zeros(99, dtype=np.int64), "huge": None}[self.fault]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", ["lost", "nonsense", "shape"])
def test_the_run_goes_on_without_a_faulty_party_or_stops(protocol, fault):
    good = [party_of(k, epsilon=8.0) for k in range(3)]
    links = [*good, Faulty(party_of(3, epsilon=8.0), fault)]
    with pytest.raises(FederationError, match="'p3'"):
        TopDownClassifier(1.0, max_nodes=3).fit(FederatedTable(links, protocol=protocol))
    spent = [float(party.table.ledger.total.epsilon) for party in good]
    assert max(spent) <= 1
    good = [party_of(k, epsilon=8.0) for k in range(3)]
    links = [*good, Faulty(party_of(3, epsilon=8.0), fault)]
    secure = {"honest": 3} if protocol == "secure-sum" else {}
    table = FederatedTable(links, protocol=protocol, least=3, **secure)
    model = TopDownClassifier(2.0, max_nodes=3)
    if protocol == "secure-sum":
        # Those who are left pay again for the round that was lost.
        counts = table.session(Budget(4.0)).root().noisy_class_counts(1)
        assert abs(int(np.asarray(counts).sum()) - 1_500) < 60
        assert {float(p.table.ledger.total.epsilon) for p in good} == {2.0}
    else:
        model.fit(table)
        assert accuracy(model) > 0.8
    assert table.parties == ("p0", "p1", "p2")


NONSENSE = [None, "ten", 1.5, -1.0, (), {"a": 1}, [None], np.zeros(3), b"", object()]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("question", ["describe", "series", "public_key", "seal", "left"])
def test_nonsense_of_any_kind_is_a_loss(protocol, question):
    class Odd(LocalLink):
        said = None

        def receive(self, number):
            asked = self._waiting[number][1]
            answer = super().receive(number)
            return self.said if asked == question else answer

    if question in ("public_key", "seal") and protocol != "secure-sum":
        return  # is not asked
    for said in NONSENSE:
        odd = Odd(party_of(0, epsilon=8.0))
        odd.said = said
        links = [odd, *(party_of(k, epsilon=8.0) for k in (1, 2))]
        with pytest.raises(FederationError, match="'p0' did not answer, or answered nonsense"):
            TopDownClassifier(2.0, max_nodes=3, max_depth=2).fit(
                FederatedTable(links, protocol=protocol)
            )


def nonsense_splits():
    """Splits as they come through a line: nobody made them by their class."""
    for children in ("text", (0.5,) * 9, (2**40,) * 9, (2**31 - 2,) * 9, (0, 3), None, (0,) * 9):
        split = object.__new__(Split)
        split.__dict__.update(feature=0, children=children)
        yield split
    yield "split"


@pytest.mark.parametrize("split", list(nonsense_splits()), ids=map(str, range(8)))
def test_proposals_that_are_no_splits_are_a_loss(split):
    class Odd(LocalLink):
        def receive(self, number):
            asked = self._waiting[number][1]
            answer = super().receive(number)
            return [split] if asked == "choose_best" else answer

    links = [Odd(party_of(0, epsilon=8.0)), *(party_of(k, epsilon=8.0) for k in (1, 2))]
    table = FederatedTable(links, protocol="local-rnm", least=2)
    TopDownClassifier(2.0, max_nodes=1, n_thresholds=9).fit(table)
    assert table.parties == ("p1", "p2")


class Late(LocalLink):
    """Is gone when labels are chosen, or the class counts of a later question are summed."""

    def __init__(self, party, question, first):
        super().__init__(party)
        self.question, self.first = question, first

    def receive(self, number):
        if self._waiting[number][1] == self.question:
            self.first -= 1
            if self.first < 0:
                raise Lost("gone")
        return super().receive(number)


@pytest.mark.parametrize(
    ("model", "question", "first"),
    [
        (TopDownClassifier(4.0, max_nodes=3), "share_labels", 0),
        (DiffPID3Classifier(4.0, max_depth=1), "share_splits", 0),
        (SulqID3Classifier(4.0, max_depth=1), "share_class_counts", 1),
    ],
    ids=["topdown", "diffpid3", "sulq"],
)
def test_a_loss_that_cannot_be_paid_again_stops_the_run_and_names_the_party(model, question, first):
    good = [party_of(k, epsilon=9.0) for k in range(3)]
    late = Late(party_of(3, epsilon=9.0), question, first)
    table = FederatedTable([*good, late], honest=3, least=3)
    with pytest.raises(FederationError, match="'p3' left in the middle of a question"):
        model.fit(table)
    spent = {float(party.table.ledger.total.epsilon) for party in good}
    assert len(spent) == 1
    assert max(spent) <= 4


def test_features_in_another_order_are_another_schema():
    turned = Schema(dict(reversed(SCHEMA.features.items())), "y", classes=[0, 1])
    features, target = rows(50, 0)
    other = Party("other", features[:, ::-1], target, turned, Budget(1.0))
    with pytest.raises(FederationError, match=r"or their order, of 'other' and 'p0' differ"):
        FederatedTable([party_of(0), other], protocol="noisy-counts")


class Leaver(LocalLink):
    """Answers until it has heard this many votes."""

    votes = 3

    def receive(self, number):
        if self._waiting[number][1] == "step":
            self.votes -= 1
            if self.votes < 0:
                raise Lost("gone")
        return super().receive(number)


def test_a_choice_that_loses_a_party_is_made_again_and_paid_again():
    good = [party_of(k, epsilon=1e4) for k in range(3)]
    table = FederatedTable([*good, Leaver(party_of(3, epsilon=1e4))], honest=3, least=3)
    session = table.session(Budget(1e4))
    view = make_view(SCHEMA, 9)
    candidates = make_candidates(view, missing=True)
    (split,) = session.root(view).choose_best(candidates, Gini(), 1_000, how="flip")
    assert split.feature == 0
    assert table.parties == ("p0", "p1", "p2")
    assert {float(party.table.ledger.total.epsilon) for party in good} == {2_000.0}
    assert float(session.ledger.total.epsilon) == 2_000.0
    session.session(Budget(1.0))  # what is not needed is forgotten with the next question
    assert not any(party._choices for party in good)


@pytest.mark.engines
def test_parties_choose_by_all_rows_where_no_party_could():
    """Each of many parties alone has too few rows for its budget."""
    parties = [party_of(k, 60, epsilon=8.0) for k in range(12)]
    table = FederatedTable(parties).session(Budget(8.0))
    view = make_view(SCHEMA, 9)
    candidates = make_candidates(view, missing=True)
    middle = [
        split.feature == 0 and abs(view.cuts[0][split.children.index(1) - 1] - 0.5) < 0.11
        for _ in range(20)
        for split in table.root(view).choose_best(candidates, Gini(), 0.1, how="flip")
    ]
    assert sum(middle) >= 15
    assert table.root().choose_labels(1) in ([0], [1])


@pytest.mark.filterwarnings("ignore:epsilon is infinite")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("candidates", ["binary", "all codes"])
def test_the_split_is_that_of_one_table_however_rows_are_divided(classes, candidates):
    """Each party has one class only: none of them can tell any split from another."""
    generator = np.random.default_rng(classes)
    schema = Schema(SCHEMA.features, target="y", classes=list(range(classes)))
    x = generator.random((900, 2))
    y = (x[:, 0] * classes + generator.normal(0, 0.3, 900)).astype(int).clip(0, classes - 1)
    features = pd.DataFrame({"x": x[:, 0], "c": np.where(x[:, 1] < 0.3, "u", "v")})
    endless = Budget(float("inf"))
    parties = [Party(f"p{k}", features[y == k], y[y == k], schema, endless) for k in range(classes)]
    view = make_view(schema, 9)
    offered = make_candidates(view, missing=True) if candidates == "binary" else Multiway()
    table = PrivateTable(features, y, schema, endless)
    for criterion in (GiniChords(classes, 9), Max()):
        (alone,) = table.root(view).choose_splits(
            offered, criterion, float("inf"), np.ones((1, 2), dtype=bool)
        )
        session = FederatedTable(parties).session(endless)
        asked = Gini() if isinstance(criterion, GiniChords) else criterion
        assert session.root(view).choose_splits(
            offered, asked, float("inf"), np.ones((1, 2), dtype=bool)
        ) == [alone]


def test_parties_of_one_class_each_learn_what_one_table_would():
    features, target = rows(4_000, 1)
    parties = [
        Party(f"p{k}", features[mine], target[mine], SCHEMA, Budget(4.0), random_state=k)
        for k in range(4)
        for mine in [(target == k % 2) & (np.arange(4_000) % 4 // 2 == k // 2)]
    ]
    model = TopDownClassifier(4.0, max_nodes=7).fit(FederatedTable(parties))
    assert accuracy(model) > 0.85


def test_losses_that_cannot_be_compared_are_refused_before_anything_is_spent():
    parties = [party_of(k) for k in range(3)]
    table = FederatedTable(parties)
    for learner in (TopDownClassifier, DiffPID3Classifier):
        with pytest.raises(FederationError, match=r"'clipped_entropy'.*'gini' or 'max'"):
            learner(4.0, criterion="clipped_entropy").fit(table)
    with pytest.raises(FederationError, match="permute-and-flip"):
        TopDownClassifier(4.0, split="rnm").fit(table)
    with pytest.raises(FederationError, match="published"):
        TopDownClassifier(4.0, split="rnm", calibration="published", n_rows=1_500).fit(table)
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_choices_have_their_noise_from_end_to_end():
    """How often what is one record worse wins, or as good, tells the scale of the noise."""
    count, two = 600, Categorical(["n", "y"])
    schema = Schema({"id": Categorical(range(count)), "a": two, "b": two}, "y", classes=[0, 1])
    # Of every id one record of the first class, and two of the second; "a" tells which.
    X = np.array([[i, a, "n"] for i in range(count) for a in "nyy"], dtype=object)
    y = (X[:, 1] == "y").astype(int)
    parties = [Party(f"p{k}", X[k::3], y[k::3], schema, Budget(4.0)) for k in range(3)]
    cells = FederatedTable(parties).session(Budget(4.0)).root().partition("id")
    cells = cells.take(np.arange(count))
    allowed = np.tile([False, True, True], (count, 1))
    amount = 1.5
    worse = np.exp(-amount) / 2  # 0.11; with twice the noise 0.24
    labels = cells.choose_labels(amount)
    assert 1 - np.mean(labels) == pytest.approx(worse, abs=0.071)  # 5.5 deviations: 1e-7
    splits = cells.choose_splits(Multiway(), Max(), Fraction(amount), allowed)
    assert np.mean([split.feature == 2 for split in splits]) == pytest.approx(worse, abs=0.071)
    table = FederatedTable([party_of(k, 0) for k in range(3)]).session(Budget(0.5))
    empty = table.parts(3_000, key=1).choose_labels(0.5)
    assert np.mean(empty) == pytest.approx(0.5, abs=0.051)  # with steps of one record: 0.38


def test_a_choice_that_is_no_option_is_noticed():
    class Liar(LocalLink):
        """Answers the right number of words, and none that was asked for."""

        def receive(self, number):
            voted = self._waiting[number][1] == "step"
            answer = super().receive(number)
            last = voted and isinstance(answer, np.ndarray)
            return answer + np.uint64(5) if last else answer

    links = [LocalLink(party_of(0, 0)), Liar(party_of(1, 0))]
    view = make_view(SCHEMA, 4)
    candidates = make_candidates(view, missing=True)
    assert sum(map(len, candidates.sides)) == 9  # of the sixteen that four bits could name
    cells = FederatedTable(links).session(Budget(4.0)).parts(64, 1, view)
    with pytest.raises(FederationError, match="no option"):
        cells.choose_best(candidates, Gini(), 1, how="flip")


def test_secure_sums_choose_by_permute_and_flip_only():
    parties = [party_of(k) for k in range(2)]
    table = FederatedTable(parties).session(Budget(1.0))
    view = make_view(SCHEMA, 9)
    with pytest.raises(FederationError, match="permute-and-flip"):
        table.root(view).choose_best(make_candidates(view, missing=True), Gini(), 1, how="rnm")
    with pytest.raises(Refused, match="no such choice"):
        parties[0].answer(7, "step", [])
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_too_small_a_budget_is_refused_before_it_is_spent():
    parties = [party_of(k) for k in range(2)]
    root = FederatedTable(parties).session(Budget(1.0)).root()
    for ask in (root.noisy_class_counts, root.choose_labels):
        with pytest.raises(BudgetError, match="too small"):
            ask(Fraction(1, 10**7))
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_splits_that_are_not_allowed_are_never_chosen():
    parties = [party_of(k, epsilon=1e4) for k in range(3)]
    table = FederatedTable(parties).session(Budget(1e4))
    view = make_view(SCHEMA, 9)
    candidates = make_candidates(view, missing=True)
    allowed = np.array([[False, True]])
    (split,) = table.root(view).choose_splits(candidates, Gini(), 1_000, allowed)
    assert split.feature == 1
    for _ in range(20):
        (split,) = table.root(view).choose_splits(candidates, Gini(), Fraction(1, 1_000), allowed)
        assert split.feature == 1


def test_what_does_not_sum_is_refused_before_anything_is_spent():
    parties = [party_of(k) for k in range(2)]
    table = FederatedTable(parties)
    for model in (PrivateTreeClassifier(1.0), PrivateBoostingClassifier(1.0)):
        with pytest.raises(FederationError, match=r"sums over parties \(draw_trees\)") as caught:
            model.fit(table)
        for able in ("TopDown", "PrivaTree", "DiffPC45", "DiffPID3", "SulqID3"):
            assert f"{able}Classifier" in str(caught.value)
        assert "PrivateTreeClassifier" not in str(caught.value).partition("federation:")[2]
    with pytest.raises(FederationError, match="quantiles"):
        table.quantiles(0, 4, 1)
    with pytest.raises(FederationError, match="draw_trees"):
        table.root().draw_trees(1, 1)
    with pytest.raises(BudgetError, match="pure"):
        table.session(Budget(1.0, delta=1e-6))
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_a_federation_says_what_it_can():
    able = {"noisy_counts", "noisy_class_counts", "choose_labels", "choose_best", "choose_splits"}
    scored = {"noisy_confusion", "noisy_score_counts"}
    free = {"root", "parts", "take", "split", "partition", "portions", "start_scores"}
    for protocol in PROTOCOLS.values():
        assert set(protocol.asks) == able
        assert set(protocol.asks_of_scores) == scored
        assert {*protocol.asks.values(), *protocol.asks_of_scores.values()} <= CHARGED
    table = FederatedTable([party_of(0), party_of(1)])
    assert {question for question in QUESTIONS if table.can(question)} == able | scored | free
    with pytest.raises(FederationError, match="draw_trees"):
        table.session(Budget(1.0), ["draw_trees"])
    view = make_view(SCHEMA, 4)
    assert table.root(view).view == view
    assert len(list(table.parts(3, 1))) == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "kind",
    [
        baselines.BDPTClassifier,
        baselines.DPGDFClassifier,
        baselines.FletcherIslamForestClassifier,
        baselines.PatilSinghForestClassifier,
        baselines.RandomTreesClassifier,
    ],
)
def test_whatever_asks_for_sums_only_learns_from_parties(kind, protocol):
    parties = [party_of(k) for k in range(3)]
    model = kind(4.0).fit(FederatedTable(parties, protocol=protocol))
    if kind is baselines.BDPTClassifier:  # the others toss coins of their own
        assert accuracy(model) > 0.8
    assert model.privacy_.protocol == protocol
    paid = {float(party.table.ledger.total.epsilon) for party in parties}
    assert paid == {model.privacy_.epsilon}


def test_plausible_mistakes_have_clear_errors(monkeypatch):
    features, target = rows(10, 0)
    frame = pd.DataFrame(features, columns=["x", "c"])
    table = PrivateTable(features, target, SCHEMA, Budget(1.0))
    for parties in ([frame, frame], frame, {"a": party_of(0)}, party_of(0), [table] * 2, None, 3):
        with pytest.raises(FederationError, match="give a list of parties"):
            FederatedTable(parties)
    with pytest.raises(FederationError, match="own name"):
        FederatedTable([])
    for name in (1, "", None, b"p"):
        with pytest.raises(FederationError, match="name is text"):
            Party(name, features, target, SCHEMA, Budget(1.0))
    with pytest.raises(FederationError, match=r"such as Budget\(1.0\)"):
        Party("p", features, target, SCHEMA, 1.0)
    with pytest.raises(FederationError, match="must be a Schema"):
        Party("p", features, target, None, Budget(1.0))
    for budget in (Budget(1.0, delta=1e-6), Budget(rho=1)):
        with pytest.raises(FederationError, match="pure budgets only"):
            Party("p", features, target, SCHEMA, budget)
    for held in (party_of(0), [party_of(0), party_of(1)], (LocalLink(party_of(0)),)):
        with pytest.raises(FederationError, match=r"fit\(FederatedTable"):
            TopDownClassifier(1.0).fit(held)
    with pytest.raises(DataError, match="no column 'y'"):
        Party("p", features, None, SCHEMA, Budget(1.0))
    assert FederatedTable([party_of(0), party_of(1)], honest=np.int64(2)).honest == 2
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(FederationError, match=r"pip install privet\[federation\]"):
        FederatedTable([party_of(0), party_of(1)])
    with pytest.raises(FederationError, match=r"pip install privet\[federation\]"):
        MaskKeys("p")


def test_the_target_may_be_a_column():
    features, target = rows(40, 0)
    frame = pd.DataFrame({"y": target, "c": features[:, 1], "x": features[:, 0].astype(float)})
    one = Party("p", frame, None, SCHEMA, Budget(1e6))
    other = Party("p", features, target, SCHEMA, Budget(1e6))
    counts = [
        party.answer(party.answer(0, "root", None), "noisy_class_counts", 1_000).tolist()
        for party in (one, other)
    ]
    assert counts[0] == counts[1]


def test_schemas_may_differ_in_the_tables_name_and_in_nothing_else():
    """Each owner's ledger file knows its table by its own name."""
    named = [Schema(SCHEMA.features, "y", classes=[0, 1], table=name) for name in ("N", "S")]
    for protocol in PROTOCOLS:
        parties = [
            Party(f"p{k}", *rows(800, k), schema, Budget(4.0)) for k, schema in enumerate(named)
        ]
        table = FederatedTable(parties, protocol=protocol)
        assert table.schema.table is None
        assert [party.table.schema.table for party in parties] == ["N", "S"]
        for schema in (None, SCHEMA, named[1]):
            model = TopDownClassifier(4 / 3, schema, max_nodes=3).fit(table)
        assert model.schema_.table is None
    same = FederatedTable([party_of(0), party_of(1)])
    assert same.schema == SCHEMA
    features = SCHEMA.features
    for other, part in (
        (Schema(features, "z", classes=[0, 1]), "the target"),
        (Schema(features, "y", classes=[0, 1, 2]), "the classes"),
        (Schema({**features, "x": Numeric(0, 2)}, "y", classes=[0, 1]), "the feature 'x'"),
        (Schema({"x": features["x"]}, "y", classes=[0, 1]), "the features, or their order,"),
    ):
        given = rows(10, 0)[0][:, : len(other.names)]
        strange = Party("strange", given, [0] * 10, other, Budget(1.0))
        with pytest.raises(FederationError, match=rf"{part} of 'strange' and 'p0' differ"):
            FederatedTable([party_of(0), strange])


def test_what_is_closed_says_so():
    with FederatedTable([party_of(0), party_of(1)]) as table:
        session = table.session(Budget(1.0))
    for ask in (session.root, lambda: TopDownClassifier(1.0).fit(table)):
        with pytest.raises(FederationError, match="federation is closed"):
            ask()
    table.close()
    with party_of(2) as party:
        pass
    with pytest.raises(Refused, match="books are closed"):
        FederatedTable([party, party_of(1)])


@pytest.mark.filterwarnings("ignore:epsilon is infinite")
def test_an_endless_budget_is_not_an_endless_fit():
    parties = [Party(f"p{k}", *rows(300, k), SCHEMA, Budget(float("inf"))) for k in range(2)]
    table = FederatedTable(parties)
    model = TopDownClassifier(1.0, max_nodes=3).fit(table)
    assert model.privacy_.private
    assert model.privacy_.epsilon <= 1
    model = TopDownClassifier(float("inf"), max_nodes=3).fit(table)
    assert model.privacy_.warnings == ("epsilon is infinite, so there is no noise at all",)


def test_the_card_says_what_it_rests_on(tmp_path):
    parties = [party_of(k, epsilon=9.0) for k in range(4)]
    for protocol, honest in (("secure-sum", 3), ("noisy-counts", None)):
        table = FederatedTable(parties, protocol=protocol, honest=honest)
        model = SulqID3Classifier(1.0, max_depth=1).fit(table)
        model.save(tmp_path / "model.json")
        (note,) = load(tmp_path / "model.json").privacy.notes[1:]
        assert "4 parties" in note
        assert protocol in note
        assert ("at least 3 of the parties are honest" in note) == (protocol == "secure-sum")
    links = [*parties[:3], Late(party_of(3, epsilon=9.0), "noisy_counts", 0)]
    table = FederatedTable(links, protocol="noisy-counts", least=3)
    model = SulqID3Classifier(1.0, max_depth=1).fit(table)
    assert "3 parties (1 more lost on the way)" in model.privacy_.notes[-1]


def test_bad_federations_are_refused(tmp_path):
    features, target = rows(10, 0)
    with pytest.raises(FederationError, match="protocol"):
        FederatedTable([party_of(0), party_of(1)], protocol="trust-me")
    with pytest.raises(FederationError, match="own name"):
        FederatedTable([party_of(0), party_of(0)])
    with pytest.raises(FederationError, match="two parties"):
        FederatedTable([party_of(0)])
    with pytest.raises(FederationError, match="honest"):
        FederatedTable([party_of(0), party_of(1)], honest=3)
    other = Party("o", [[0.5]], [0], _other_schema(), Budget(1.0))
    with pytest.raises(FederationError, match="different schemas"):
        FederatedTable([party_of(0), other])
    table = FederatedTable([party_of(0), party_of(1)])
    with pytest.raises(SchemaError, match="another schema"):
        TopDownClassifier(1.0, _other_schema()).fit(table)
    store = LedgerStore.create(tmp_path / "books", Budget(9.0), columns=["x", "c", "y"])
    with pytest.raises(BudgetError, match="own ledger"):
        TopDownClassifier(1.0, ledger=store).fit(table)
    party = Party("a", features, target, SCHEMA, Budget(2.0), ledger=store)
    party.answer(party.answer(0, "root", None), "noisy_counts", 0.5)
    party.close()
    assert float(store.spent) == 0.5
    with pytest.raises(Refused, match="refuses"):
        FederatedTable([LocalLink(party), party_of(1)], protocol="noisy-counts").session(
            Budget(1.0)
        ).root().noisy_counts(0.1)


def _other_schema():
    from privet import Numeric, Schema

    return Schema({"x": Numeric(0, 2)}, target="y", classes=[0, 1])


# Other processes


def processes(seeded=True):
    return [
        ProcessLink(f"p{k}", make, (f"p{k}", 500, k, 4.0, k if seeded else None)) for k in range(3)
    ]


@pytest.mark.parametrize("protocol", some_of(PROTOCOLS, "secure-sum".__eq__))
def test_processes_grow_the_same_tree(protocol):
    table = FederatedTable(processes(), protocol=protocol)
    try:
        there = TopDownClassifier(2.0, max_nodes=3).fit(table)
    finally:
        table.close()
    parties = [party_of(k) for k in range(3)]
    here = TopDownClassifier(2.0, max_nodes=3).fit(FederatedTable(parties, protocol=protocol))
    assert there.predictor_ == here.predictor_
    assert there.privacy_.entries == here.privacy_.entries
    assert not there.privacy_.private  # the parties' noise was seeded, and they say so


@pytest.mark.parametrize(("kind", "patience"), [("dies", 60.0), ("sleeps", 1.0)])
def test_a_process_that_ends_or_is_late_is_lost(kind, patience):
    parties = [party_of(k) for k in range(2)]
    odd = ProcessLink("odd", make_odd, (kind, "odd"), patience=60.0)
    table = FederatedTable([*parties, odd], protocol="noisy-counts", least=2)
    odd.patience = patience
    session = table.session(Budget(4.0))
    root = session.root()
    assert abs(int(root.noisy_counts(2)[0]) - 1_000) < 60
    assert table.parties == ("p0", "p1")
    assert abs(int(root.noisy_counts(1)[0]) - 1_000) < 60
    assert {float(party.table.ledger.total.epsilon) for party in parties} == {3.0}
    table.close()  # the lost one's line, too
    assert not odd._process.is_alive()


def test_a_lost_party_settles_its_books(tmp_path):
    LedgerStore.create(tmp_path / "ledger", Budget(9.0), columns=["x", "c", "y"])
    link = ProcessLink("odd", make_sleepy, ("odd", str(tmp_path / "ledger")), patience=60.0)
    table = FederatedTable([party_of(0), link], protocol="noisy-counts", least=1)
    session = table.session(Budget(4.0))
    root = session.root()
    link.patience = 0.5
    root.noisy_counts(1)
    assert table.parties == ("p0",)
    table.close()
    assert LedgerStore(tmp_path / "ledger").spent == 1


def test_patience_is_for_the_answer_and_not_for_every_message():
    """Somebody who chatters, and somebody who does not read, are lost in time."""
    link = ProcessLink("p", make_odd, ("chatters", "p"), patience=60.0)
    try:
        root = link.receive(link.send(0, "root", None))
        link.patience = 1.0
        number = link.send(root, "noisy_counts", 1)
        with pytest.raises(Lost, match="in time"):
            link.receive(number)
        os.kill(link._process.pid, signal.SIGSTOP)
        for _ in range(3):
            link.send(0, "root", "x" * 2**20)  # more than a pipe holds
    finally:
        link.close()
    assert not link._process.is_alive()


def test_late_answers_and_second_answers_are_dropped():
    link = ProcessLink("p", make, ("p", 50, 0, 4.0, 0))
    try:
        first = link.send(0, "describe")
        second = link.send(0, "root", None)  # the answer to the first is still on the line
        assert link.receive(second) == 1
        link._pipe.send_bytes(
            encode(Request(second, 0, "describe"))
        )  # an answer with an old number
        third = link.send(1, "noisy_counts", 1)
        assert link.receive(third).shape == (1,)
        assert first < second < third
    finally:
        link.close()


@pytest.mark.parametrize("how", ["garbage", "number", "kind", "text", "question", "long", "half"])
def test_a_process_that_answers_nonsense_is_lost(how):
    good = [party_of(k) for k in range(2)]
    link = ProcessLink("odd", make_babbling, (how, "odd"), patience=60.0)
    with FederatedTable([*good, link], protocol="noisy-counts", least=2) as table:
        root = table.session(Budget(4.0)).root()
        link.patience = 1.0 if how == "half" else 60.0
        assert abs(int(root.noisy_counts(2)[0]) - 1_000) < 60
        assert table.parties == ("p0", "p1")
    assert not link._process.is_alive()


def test_slow_parties_are_waited_for_at_the_same_time(monkeypatch):
    links = [ProcessLink(f"s{k}", make_odd, ("sleeps", f"s{k}"), patience=60.0) for k in range(3)]
    with FederatedTable([party_of(0), *links], protocol="noisy-counts", least=1) as table:
        root = table.session(Budget(4.0)).root()
        order = []
        for name in ("send", "receive"):
            plain = getattr(ProcessLink, name)
            monkeypatch.setattr(
                ProcessLink,
                name,
                lambda *given, _name=name, _plain=plain, **options: (
                    order.append(_name) or _plain(*given, **options)
                ),
            )
        for link in links:
            link.patience = 0.5
        root.noisy_counts(1)
        assert order[:4] == ["send", "send", "send", "receive"]
        assert table.parties == ("p0",)


def test_an_answer_that_came_in_time_is_read_late():
    """The asker may have been busy with another party."""
    link = ProcessLink("p", make, ("p", 50, 0, 4.0, 0), patience=60.0)
    try:
        root = link.receive(link.send(0, "root", None))
        link.patience = 3.0
        number = link.send(root, "noisy_counts", 1)
        time.sleep(4)
        assert link.receive(number).shape == (1,)
    finally:
        link.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((make_nothing, ("own",)), "the rows are not here"),
        ((make_nothing, ("other",)), "could not be made; call its make by itself"),
        ((make_nothing, ("none",)), "returns no Party"),
        ((make, ("another name",)), "another name than the link's"),
    ],
    ids=["own", "other", "none", "name"],
)
def test_a_party_that_cannot_be_made_says_why(given, said):
    with pytest.raises(Refused, match=f"'b' refuses: .*{said}") as caught:
        FederatedTable([party_of(0), ProcessLink("b", *given)])
    assert "17" not in str(caught.value)


def test_what_another_process_cannot_import_is_refused():
    with pytest.raises(FederationError, match="function of a module"):
        ProcessLink("b", lambda: make("b"))


# What a second look found


@pytest.mark.parametrize("odd", [str, Fraction, np.float64, int, bytes])
def test_cuts_of_another_kind_are_refused_whatever_the_rows(odd):
    """Among other numbers, a text fails only for records near it: an answer that nobody pays."""
    schema = Schema({"x": Numeric(0, 10)}, target="y", classes=[0, 1])
    for value in (2.5, 7.5):
        party = Party("p", [[value]], [0], schema, Budget(1.0))
        cuts = [float(k) for k in range(1, 10)]
        cuts[6] = b"7" if odd is bytes else odd(7)
        view = object.__new__(View)
        object.__setattr__(view, "schema", schema)
        object.__setattr__(view, "cuts", (tuple(cuts),))
        with pytest.raises(Refused, match="does not know what 'root' came with"):
            party.answer(0, "root", view)


def test_a_number_has_no_more_cuts_than_codes():
    """Cuts differ and lie on the grid, which has one point for every code but two."""
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
    assert len(schema.features["x"].grid) <= 65_534
    with pytest.raises(ValueError, match="a cut is a point of its feature's grid"):
        View(schema, (tuple(np.linspace(0.1, 0.9, 65_535).tolist()),))


def test_positions_mean_the_same_however_they_come():
    party = party_of(0)
    root = party.answer(0, "root", None)
    cells = party.answer(root, "split", [Split(1, (0, 1, 2, 3))])
    counts = {
        kind: len(party.answer(party.answer(cells, "take", kind([True, 0])), "noisy_counts", 0.1))
        for kind in (list, tuple, np.array)
    }
    assert set(counts.values()) == {2}
    for nothing in ([], (), np.array([], dtype=int)):
        taken = party.answer(cells, "take", nothing)
        assert len(party.answer(taken, "noisy_counts", 0.1)) == 0


def test_a_round_is_answered_once_also_in_two_threads():
    parties = [party_of(k, 3, epsilon=1e6) for k in range(2)]
    FederatedTable(parties)
    party, answered = parties[0], []
    root, before = party.answer(0, "root", None), sys.getswitchinterval()

    def ask(turn, start):
        start.wait()
        with suppress(FederationError):
            asked = (1, 2, ["p0", "p1"], turn.to_bytes(16, "little"))
            answered.append(party.answer(root, "share_class_counts", *asked))

    sys.setswitchinterval(1e-6)
    try:
        for turn in range(300):
            start = Barrier(2)
            threads = [Thread(target=ask, args=(turn, start)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(answered) == 300


def test_a_party_that_joined_another_federation_is_noticed():
    parties = [party_of(k) for k in range(3)]
    first = FederatedTable(parties)
    FederatedTable(parties[:2])
    with pytest.raises(FederationError, match="'p0' has joined another federation"):
        SulqID3Classifier(1.0, max_depth=1).fit(first)
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_options_that_would_be_ignored_are_refused():
    parties = [party_of(k) for k in range(4)]
    with pytest.raises(FederationError, match="honest=3 or fewer"):
        FederatedTable(parties, least=3)
    with pytest.raises(FederationError, match="for secure sums"):
        FederatedTable(parties, protocol="noisy-counts", honest=2)
    table = FederatedTable(parties, protocol="noisy-counts")
    with pytest.raises(FederationError, match="none is drawn"):
        TopDownClassifier(1.0, split="rnm").fit(table)
    with pytest.raises(BudgetError, match="or to the Party"):
        TopDownClassifier(1.0, random_state=1).fit(table)
    with pytest.raises(DataError, match="without y"):
        TopDownClassifier(1.0).fit(table, [0, 1])
    assert all(party.table.ledger.total.epsilon == 0 for party in parties)


def test_proposals_are_booked_as_they_are_made():
    for how, name in (("rnm", "report-noisy-max"), ("exponential", "exponential")):
        parties = [party_of(k) for k in range(2)]
        model = TopDownClassifier(1.0, split=how, max_depth=1)
        model.fit(FederatedTable(parties, protocol="local-rnm"))
        for books in (model.privacy_.entries, parties[0].table.ledger.entries):
            assert any(entry.mechanism.kind == name for entry in books)


def test_what_nobody_has_any_more_settles_its_books(tmp_path):
    store = LedgerStore.create(tmp_path / "a.ledger", Budget(3.0), columns=["x", "c", "y"])
    party = Party("a", *rows(50, 0), SCHEMA, Budget(1.0), ledger=store)
    root = party.answer(0, "root", None)
    party.answer(root, "noisy_counts", 0.25)
    cells = party._cells[root][0]
    assert float(store.left) == 2.0
    del party
    gc.collect()
    assert float(store.left) == 2.75
    with pytest.raises(BudgetExceeded, match="closed"):
        cells.noisy_counts(0.1)


def test_a_process_that_is_ended_settles_its_books(tmp_path):
    store = LedgerStore.create(tmp_path / "a.ledger", Budget(3.0), columns=["x", "c", "y"])
    link = ProcessLink("a", make_with_ledger, ("a", tmp_path / "a.ledger"))
    link.receive(link.send(0, "describe"))
    assert float(store.left) == 2.0
    link._process.terminate()  # what an interpreter does with its processes at its end
    link._process.join(20)
    assert float(store.left) == 3.0
    link.close()


def test_an_owner_who_counts_on_fewer_is_heard_before_anybody_pays():
    parties = [
        Party(f"p{k}", *rows(50, k), SCHEMA, Budget(1.0), trusted=2 if k == 3 else None)
        for k in range(4)
    ]
    with pytest.raises(FederationError, match=r"'p3' refuses.*rest on 4.*counts on 2"):
        TopDownClassifier(1.0, max_depth=1).fit(FederatedTable(parties))
    assert [party.table.ledger.left for party in parties] == [1] * 4
    TopDownClassifier(1.0, max_depth=1).fit(FederatedTable(parties, honest=2))


def test_all_records_are_counted_by_one_noise():
    """Not by that of every class."""
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=list(range(30)))
    empty = np.zeros((0, 1))
    parties = [Party(f"p{k}", empty, [], schema, Budget(1.0), random_state=k + 5) for k in range(2)]
    cells = FederatedTable(parties).session(Budget(1.0)).parts(3_000, key=1)
    counts = cells.noisy_counts(0.2)
    # The deviation is 5 sqrt(2); of thirty noises 39. Six standard errors of it.
    assert np.std(counts) == pytest.approx(5 * np.sqrt(2), abs=6 * 7.1 / np.sqrt(1_200))
    assert cells.take(np.array([], dtype=int)).noisy_counts(0.2).shape == (0,)


def test_weak_splits_are_found_by_parties():
    """On few chords neither of these moves the class shares from one chord to another."""
    generator = np.random.default_rng(3)
    X = generator.integers(0, 2, (20_000, 6))
    one, other = X[:, 2], X[:, 3]
    share = np.where(one == 0, np.where(other == 1, 0.19, 0.59), np.where(other == 1, 0.69, 0.29))
    y = (generator.random(len(X)) < share).astype(int)
    schema = Schema({f"f{j}": Categorical([0, 1]) for j in range(6)}, "y", classes=[0, 1])
    parties = [Party(f"p{k}", X[k::3], y[k::3], schema, Budget(20.0)) for k in range(3)]
    model = TopDownClassifier(20.0, max_depth=2).fit(FederatedTable(parties))
    assert np.mean(model.predict(X) == y) > 0.68


def test_fractions_are_made_anew():
    class Odd(int):
        """Whatever it is compared with, it is what one likes."""

    party = party_of(0)
    amount = Fraction(1, 10**6)
    amount._numerator = Odd(1)
    root = party.answer(0, "root", None)
    with pytest.raises(Refused, match="does not know what"):
        party.answer(root, "noisy_class_counts", amount)
    assert party.table.ledger.total.epsilon == 0


@pytest.mark.parametrize("patience", [0, -1, float("nan"), float("inf"), None, "a", True])
def test_patience_is_a_number_of_seconds(patience):
    with pytest.raises(FederationError, match="patience must be"):
        ProcessLink("north", make, ("north",), patience=patience)
    with pytest.raises(FederationError, match="given must be a tuple"):
        ProcessLink("north", make, "north")


def test_a_forked_process_neither_charges_nor_settles(tmp_path):
    store = LedgerStore.create(tmp_path / "a.ledger", Budget(1.0), columns=SCHEMA.columns)
    party = Party("a", *rows(50, 0), SCHEMA, Budget(1.0), ledger=store)
    root = party.answer(0, "root", None)
    if not (child := os.fork()):
        try:
            party.answer(root, "noisy_counts", 1.0)
        except BudgetError:
            party.close()  # as when a process ends
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    party.answer(root, "noisy_counts", 1.0)
    assert store.spent == 1
    party.close()
    assert store.spent == 1
