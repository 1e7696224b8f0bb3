"""Records that parties set aside for a test score: each by its own hash, in its own books."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privet import (
    Budget,
    Categorical,
    Numeric,
    PrivateAdditiveClassifier,
    Schema,
    SulqID3Classifier,
    TopDownClassifier,
    baselines,
)
from privet.audit import exact
from privet.audit.catalogue import ONE
from privet.errors import BudgetError, BudgetExceeded, FederationError
from privet.federation import PROTOCOLS, FederatedTable, LocalLink, Party, Refused
from privet.federation.party import CHARGED
from privet.federation.wire import Request, decode_as, encode
from privet.model import PrivacyCard
from privet.privacy import DiscreteLaplace
from privet.privacy.coins import drawing_from
from privet.tables import PrivateTable
from privet.tables import cells as wall

from .parties import SCHEMA, rows

HALVES = {"training": Fraction(1, 2), "test": Fraction(1, 2)}
SHARES = {"training": Fraction(4, 5), "test": Fraction(1, 5)}
#: The question about one score of two classes that is the same for all records.
SCORES = ((0.5,), ())


def party_of(place, count=600, epsilon=4.0, **options):
    return Party(f"p{place}", *rows(count, place), SCHEMA, Budget(epsilon), **options)


def learner(**options):
    return TopDownClassifier(1.0, max_nodes=3, n_thresholds=4, test_share=0.2, **options)


def spent(parties):
    return [party.table.ledger.total.epsilon for party in parties]


def exact_counts(table):
    """Return how many records of each class a private table has: inside the wall."""
    engine = wall.behind_table[table].engine
    return engine.class_counts(engine.root(table._view(None)))[0]


# What is learnt, and what it costs


class Wire(LocalLink):
    """Sends all that is asked and answered through the codec, and notes the names of questions."""

    def __init__(self, party):
        super().__init__(party)
        self.asked = []

    def send(self, target, question, *given, **options):
        message = encode(Request(1, target, question, given, options))
        read = decode_as(Request, message)
        self.asked.append(read.name)
        return super().send(read.target, read.name, *read.given, **read.options)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_score_costs_no_further_epsilon_at_any_party(protocol):
    parties = [party_of(k) for k in range(3)]
    links = [Wire(party) for party in parties]
    table = FederatedTable(links, protocol=protocol)
    model = learner(test_by="c").fit(table)
    assert spent(parties) == [1, 1, 1]
    assert model.privacy_.epsilon == 1
    found = model.evaluation_
    assert found.share == 0.2
    assert abs(found.n_records - 360) < 200  # 7 deviations of noise and hash together
    assert set(found.of_groups()) == {*"uvw", "(missing or unknown)"}
    asked = PROTOCOLS[protocol].asks_of_scores
    for link in links:
        assert link.asked.count(asked["noisy_confusion"]) == 1
        assert link.asked.count(asked["noisy_score_counts"]) == 1
    for party in parties:
        places = {entry.place.portion for entry in party.table.ledger.entries}
        assert places == {"training", "test"}
    noise = DiscreteLaplace(1, Fraction(1, 2)).variance
    expected = noise if protocol == "secure-sum" else 3 * noise
    assert found.confusion.variance == pytest.approx(expected, rel=1e-12)
    assert found.scores.variance == pytest.approx(expected, rel=1e-12)
    table._connections.ask_all("left")  # with which parties hear what is not needed any more
    assert not any(party._portions or party._cells for party in parties)
    assert any("at every party, by one key" in note for note in model.privacy_.notes)


def test_a_forest_on_parts_is_scored_as_well():
    parties = [party_of(k) for k in range(2)]
    model = baselines.RandomTreesClassifier(1.0, n_estimators=3, max_depth=2, test_share=0.5)
    model.fit(FederatedTable(parties, protocol="noisy-counts"))
    assert spent(parties) == [1, 1]
    assert model.evaluation_.confusion is not None


def test_several_classes_have_a_confusion_matrix_only():
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=["a", "b", "c"])
    x = np.linspace(0, 1, 300).reshape(-1, 1)
    y = np.array(list("abc"))[(x[:, 0] * 2.99).astype(int)]
    allowed = CHARGED - {"share_score_counts"}
    parties = [Party(n, x, y, schema, Budget(9.0), allowed=allowed) for n in ("p", "q")]
    model = TopDownClassifier(9.0, max_nodes=4, n_thresholds=4, test_share=0.5)
    found = model.fit(FederatedTable(parties)).evaluation_
    assert found.confusion.values.shape == (1, 3, 3)
    assert found.scores is None
    assert spent(parties) == [9, 9]


# A party trusts no coordinator: its own books see to it that nobody pays twice


def ask(party, target, question, *given, amount=1):
    return party.answer(target, question, *given, amount)


def test_a_partys_own_books_take_the_dearer_portion_and_add_up_all_else():
    party = party_of(0)
    portions = party.answer(0, "portions", SHARES, 7)
    roots = {name: party.answer(portions, "root", name, None) for name in SHARES}
    ask(party, roots["training"], "noisy_class_counts")
    ask(party, roots["test"], "noisy_confusion", SCORES)
    assert spent([party]) == [1]
    ask(party, roots["test"], "noisy_score_counts", SCORES, (0.0,))
    assert spent([party]) == [2]
    # The same portions once more are another division: what is asked of them adds up.
    again = party.answer(0, "portions", SHARES, 7)
    ask(party, party.answer(again, "root", "training", None), "noisy_counts")
    assert spent([party]) == [3]
    ask(party, party.answer(0, "root", None), "noisy_counts")
    assert spent([party]) == [4]
    with pytest.raises(BudgetExceeded):
        ask(party, roots["training"], "noisy_counts", amount=3)
    party.close()
    with pytest.raises(Refused, match="books are closed"):
        ask(party, roots["test"], "noisy_counts")


def learn_from_all(monkeypatch):
    """Let a coordinator put the learner's questions to the whole table."""
    real = FederatedTable.portions

    def portions(self, shares, key):
        found = real(self, shares, key)
        found["training"]._division = found["training"]._portion = None
        return found

    monkeypatch.setattr(FederatedTable, "portions", portions)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_training_question_to_the_whole_table_costs_twice_at_every_party(monkeypatch, protocol):
    learn_from_all(monkeypatch)
    parties = [party_of(k) for k in range(2)]
    model = learner().fit(FederatedTable(parties, protocol=protocol))
    assert model.privacy_.epsilon == 1  # so the coordinator says
    assert spent(parties) == [2, 2]  # and so it is
    poor = [party_of(k, epsilon=1.0) for k in range(2)]
    with pytest.raises((FederationError, BudgetExceeded), match="above the budget"):
        learner().fit(FederatedTable(poor, protocol=protocol))
    assert spent(poor) == [1, 1]


class _AtAParty(SulqID3Classifier):
    """Is fitted on a federation of one party, and has the card of that party's own books."""

    def fit(self, X, y):
        noise, self.random_state = self.random_state, None
        party = Party("p", X, y, self.schema, Budget(9.0), random_state=noise)
        with drawing_from(bytes):  # the key of audits
            super().fit(FederatedTable([party], protocol="noisy-counts"))
        ledger = party.table.ledger
        self.privacy_ = PrivacyCard.of(ledger, self.privacy_.warnings, rows_declared=False)
        return self


def audit():
    records = exact.universe(ONE)
    pairs = [((), (record,)) for record in records]
    return exact.audit(_AtAParty(1.0, ONE, max_depth=1, test_share=0.5), pairs=pairs, paths=12)


def test_the_law_of_a_partys_answers_is_what_its_books_say(monkeypatch):
    assert audit().holds
    real = PrivateTable.portions

    def not_disjoint(self, shares, key):
        found = real(self, shares, key)
        wall.behind_table[found["training"]] = wall.behind_table[self]
        return found

    monkeypatch.setattr(PrivateTable, "portions", not_disjoint)
    verdict = audit()
    assert verdict.claim == 1.0
    assert verdict.found > 1.5


def test_books_are_charged_again_without_noise_of_a_portion():
    party, again = party_of(0), party_of(0)
    series = 2**32
    before = (
        (series + 1, 0, "portions", SHARES, 7),
        (series + 2, series + 1, "root", "test", None),
    )
    given = (series + 2, "noisy_confusion", SCORES, 1)
    party.answer(*given, before=before)

    class Silent:
        def __getattr__(self, name):
            raise AssertionError("noise was drawn")

    # Before anything is made of it: portions have the noise of their table.
    inside = wall.behind_table[again.table]
    wall.behind_table[again.table] = wall.Inside(inside.engine, Silent())
    again.recall(*given, before=before)
    assert spent([again]) == spent([party]) == [1]
    with pytest.raises(Exception, match="failed"):  # the check can fail
        again.answer(*given)


# Sides


def test_persons_are_on_the_same_side_at_all_parties():
    schema = Schema(
        {"x": Numeric(0, 1)}, target="y", classes=[0, 1], unit="who", parties_per_unit=2
    )
    sides = {}
    for name in ("p", "q"):
        for who in range(12):
            frame = pd.DataFrame({"x": [0.1, len(name) / 3], "y": [0, 1], "who": [f"n{who}"] * 2})
            frame["x"] += 0.01 if name == "q" else 0
            party = Party(name, frame, None, schema, Budget(1.0))
            found = party.table.portions(HALVES, 5)
            held = {side: int(exact_counts(table).sum()) for side, table in found.items()}
            assert sorted(held.values()) == [0, 30]  # all records of a person, half of 60 parts
            sides.setdefault(who, set()).add(max(held, key=held.get))
    assert all(len(found) == 1 for found in sides.values())
    assert len(set().union(*sides.values())) == 2


def test_a_coordinator_that_names_other_portions_elsewhere_reads_nothing():
    """Secure sums: masks cancel if all members were asked the same of the same records."""
    parties = [party_of(k) for k in range(2)]
    table = FederatedTable(parties).session(Budget(2.0))
    cells = table.portions(SHARES, 7)["test"].root()
    liar = table._connections.links[1].party
    real = liar._divide
    liar._divide = lambda target, given: real(target, (given[0], given[1] + 1))
    with pytest.raises(FederationError, match="the sum is no count"):
        cells.noisy_class_counts(1)


# The noise of sums


def noise_of(table, amount):
    """Return 4,000 noises of counts of scores of nobody, and what is said of their variance."""
    bins = np.linspace(-1, 1, 1_999).tolist()
    found = table.root().noisy_score_counts(table.start_scores((9.0,)), bins, amount)
    assert found.laplace
    return found.values.ravel(), found.variance


@pytest.mark.filterwarnings("ignore:random_state is fixed")
@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize(
    ("protocol", "honest", "times"),
    [("noisy-counts", None, 5), ("secure-sum", None, 1), ("secure-sum", 2, 2.5)],
)
def test_the_variance_is_that_of_all_parties_noise(protocol, honest, times, unit):
    """With seeds, so that it cannot fail by chance; without one, 15 % are 6 deviations."""
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1], unit=unit)
    frame = pd.DataFrame({"x": [], "y": [], "who": []})
    parties = [Party(f"p{k}", frame, None, schema, Budget(1.0), random_state=k) for k in range(5)]
    table = FederatedTable(parties, protocol=protocol, honest=honest).session(Budget(1.0))
    found, variance = noise_of(table, Fraction(1, 2))
    q = np.exp(-0.5)
    alone = 2 * q / (1 - q) ** 2 if unit is None else 2 / 0.5**2
    rounded = 5 / 12 if unit is not None and protocol != "secure-sum" else 0
    assert variance == pytest.approx(times * alone + rounded, rel=1e-4)
    assert found.var() == pytest.approx(variance, rel=0.15)
    assert abs(found.mean()) < 6 * np.sqrt(variance / len(found))


# What is refused, before anything is spent


@pytest.mark.parametrize(
    "given",
    [
        (),
        ((SHARES, 7), 1),
        ([("training", Fraction(1))], 7),
        ({"training": 0.8, "test": 0.2}, 7),
        ({"training": Fraction(4, 5), "test": Fraction(2, 5)}, 7),
        ({"training": Fraction(6, 5), "test": Fraction(-1, 5)}, 7),
        ({"all": Fraction(1)}, 7),
        ({}, 7),
        (SHARES, -1),
        (SHARES, 2**64),
        (SHARES, 7.0),
        (SHARES, True),
    ],
)
def test_a_party_refuses_portions_that_are_none(given):
    with pytest.raises(Refused):
        party_of(0, 20).answer(0, "portions", *given)


def test_a_party_refuses_questions_to_portions_and_scores_that_are_none():
    party = party_of(0, 20)
    portions = party.answer(0, "portions", HALVES, 7)
    test = party.answer(portions, "root", "test", None)
    train = party.answer(portions, "root", "training", None)
    whole = party.answer(0, "root", None)
    for target, *asked in [
        (portions, "root", None),
        (portions, "root", "comparison", None),
        (portions, "portions", HALVES, 7),
        (portions, "noisy_counts", 1),
        (portions, "take", np.arange(1)),
        (test, "root", "test", None),
        (test, "noisy_confusion", 1),
        (test, "noisy_confusion", ((0.5, 0.5), ()), 1),
        (test, "noisy_confusion", ((float("inf"),), ()), 1),
        (test, "noisy_confusion", ((0.5,), ((train, (1.0,)),)), 1),  # of other records
        (test, "noisy_confusion", ((0.5,), ((whole, (1.0,)),)), 1),
        (test, "noisy_confusion", ((0.5,), ((test, (1.0, 2.0)),)), 1),
        (test, "noisy_confusion", ((0.5,), ((test, ("x",)),)), 1),
        (test, "noisy_confusion", ((0.5,), ((test,),)), 1),
        (test, "noisy_confusion", ((0.5,), ((99, (1.0,)),)), 1),
        (test, "noisy_confusion", ((0.5,), 3), 1),
        (test, "noisy_confusion", None, 1),
    ]:
        with pytest.raises(Refused):
            party.answer(target, *asked)
    party.answer(portions, "forget")
    with pytest.raises(Refused):
        party.answer(portions, "root", "test", None)
    assert spent([party]) == [0]
    party.answer(test, "noisy_confusion", ((0.5,), ((test, (1.0,)),)), 1)  # cells are kept
    assert spent([party]) == [1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("question", ["noisy_confusion", "noisy_score_counts"])
def test_what_an_owner_does_not_allow_is_noticed_before_anything_is_spent(protocol, question):
    needed = PROTOCOLS[protocol].asks_of_scores[question]
    parties = [party_of(0), party_of(1, allowed=CHARGED - {needed})]
    with pytest.raises(FederationError, match=rf"'p1' does not allow the question '{needed}'"):
        learner().fit(FederatedTable(parties, protocol=protocol))
    assert spent(parties) == [0, 0]


def test_a_budget_too_small_to_be_shared_is_noticed_before_anything_is_spent():
    schema = Schema({"x": Categorical(["a", "b"])}, target="y", classes=[0, 1], unit="who")
    frame = pd.DataFrame({"x": ["a", "b"], "y": [0, 1], "who": [1, 2]})
    parties = [Party(n, frame, None, schema, Budget(1.0)) for n in "pq"]
    model = SulqID3Classifier(0.005, max_depth=1, test_share=0.5)
    with pytest.raises(BudgetError, match="share the noise of a test score"):
        model.fit(FederatedTable(parties))
    assert spent(parties) == [0, 0]


def test_what_adds_curves_still_learns_from_no_parties():
    with pytest.raises(FederationError, match="noisy_gradients"):
        PrivateAdditiveClassifier(1.0).fit(FederatedTable([party_of(0), party_of(1)]))


def test_scores_and_cells_of_other_tables_are_not_mixed():
    table = FederatedTable([party_of(0)], protocol="noisy-counts").session(Budget(1.0))
    parts = table.portions(HALVES, 7)
    scores = parts["test"].start_scores((0.5,))
    for cells in (table.root(), parts["training"].root()):
        with pytest.raises(ValueError, match="another table"):
            scores.add(cells, np.zeros((1, 1)))
        with pytest.raises(ValueError, match="another table"):
            cells.noisy_confusion(scores, 1)
    with pytest.raises(ValueError, match="finite"):
        scores.add(parts["test"].root(), np.full((1, 1), np.inf))
    with pytest.raises(ValueError, match="another table"):
        scores.add_curves(parts["test"].root(), ())
    with pytest.raises(FederationError, match="once"):
        parts["test"].portions(HALVES, 7)
