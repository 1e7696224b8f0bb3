"""How many rounds and bytes a fit takes, and what may travel with a question."""

import numpy as np
import pytest

from privet import Budget, Categorical, Integer, Numeric, Schema, TopDownClassifier
from privet.errors import BudgetExceeded, FederationError, SchemaError
from privet.federation import (
    Dealer,
    FederatedTable,
    LocalLink,
    Lost,
    Party,
    ProcessLink,
    Refused,
)
from privet.federation import dealer as dealer_module
from privet.federation import links as links_module
from privet.federation import party as party_module
from privet.federation.mpc import Deal
from privet.federation.party import SERIES
from privet.federation.wire import Reply, Request, decode, encode
from privet.learners.topdown import make_candidates, make_view
from privet.tables import Split

from .parties import SCHEMA, rows

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


def like_adult(count):
    """Return a schema of adult's shape, and invented rows of it."""
    generator = np.random.default_rng(0)
    numbers = {
        "age": Integer(0, 120),
        "weight": Numeric(0, 1_500_000),
        "years": Integer(1, 16),
        "gain": Numeric(0, 100_000),
        "loss": Numeric(0, 5_000),
        "hours": Integer(0, 100),
    }
    sizes = {"work": 7, "school": 16, "marital": 7, "job": 14, "relation": 6, "race": 5,
             "sex": 2, "country": 41}  # fmt: skip
    features = {name: Categorical(list(range(size))) for name, size in sizes.items()}
    schema = Schema({**numbers, **features}, target="income", classes=[0, 1])
    columns = [generator.uniform(each.low, each.high, count).round() for each in numbers.values()]
    columns += [generator.integers(size, size=count) for size in sizes.values()]
    table = np.stack(columns, axis=1)
    chance = 1 / (1 + np.exp(-((table[:, 0] - 60) / 20 + table[:, 8] - 3)))
    return schema, table, (generator.random(count) < chance).astype(int)


class Counted(LocalLink):
    """Counts questions, and bytes as a line would carry them."""

    def __init__(self, party):
        super().__init__(party)
        self.rounds = self.bytes = 0

    def send(self, target, question, *given, **options):
        message = encode(Request(1, target, question, given, options))
        self.bytes += len(message)
        self.rounds += 1
        asked = decode(message)
        return super().send(asked.target, asked.name, *asked.given, **asked.options)

    def receive(self, number):
        message = encode(Reply(1, "answer", super().receive(number)))
        self.bytes += len(message)
        return decode(message).value


@pytest.mark.parametrize(
    ("protocol", "most"), [("noisy-counts", 25), ("local-rnm", 40), ("secure-sum", 750)]
)
def test_a_fit_takes_few_rounds_and_as_many_bytes_of_each(protocol, most):
    """On a table of adult's shape, with as many levels: rounds go by level, not by cell."""
    schema, table, target = like_adult(40_000)
    links = [
        Counted(Party(f"p{k}", table[k::4], target[k::4], schema, Budget(1.0), random_state=k))
        for k in range(4)
    ]
    held = FederatedTable(links, protocol=protocol)
    # Fewer cells than by default, and as many levels.
    model = TopDownClassifier(1.0, max_depth=7, max_nodes=12).fit(held)
    assert max(entry.place.level or 0 for entry in model.privacy_.entries) >= 6
    (rounds,) = {link.rounds for link in links}
    assert rounds == held._connections.rounds <= most
    sizes = [link.bytes for link in links]
    assert max(sizes) <= 1.1 * min(sizes)


# What travels with a question


def party(epsilon=4.0, **given):
    return Party("p", *rows(200, 0), SCHEMA, Budget(epsilon), random_state=0, **given)


ROOT, HALVES, PAIR = SERIES + 1, SERIES + 2, SERIES + 3
SPLIT = Split(1, (0, 1, 2, 3))


def test_free_questions_travel_with_a_charged_one_in_their_order():
    one, other = party(), party()
    before = (
        (ROOT, 0, "root", None),
        (HALVES, ROOT, "split", [SPLIT]),
        (0, ROOT, "forget"),
        (PAIR, HALVES, "take", np.array([0, 2])),
    )
    found = one.answer(PAIR, "noisy_class_counts", 1, before=before)
    root = other.answer(0, "root", None)
    pair = other.answer(other.answer(root, "split", [SPLIT]), "take", np.array([0, 2]))
    assert (found == other.answer(pair, "noisy_class_counts", 1)).all()
    with pytest.raises(Refused, match="no such cells"):
        one.answer(ROOT, "noisy_class_counts", 1)
    assert one.table.ledger.total.epsilon == 1


@pytest.mark.parametrize(
    "before",
    [
        ((ROOT, 0, "root", None), (ROOT, 0, "root", None)),
        ((HALVES, 0, "root", None), (ROOT, 0, "root", None)),
        ((1, 0, "root", None),),
        ((0, 0, "root", None),),
        ((-SERIES, 0, "root", None),),
        ((2**31 * SERIES + 1, 0, "root", None),),
        ((True, 0, "root", None),),
        ((ROOT, 0, "root"),),
        ((ROOT, 0, "noisy_counts", 1),),
        ((ROOT, 0, "public_key"),),
        ((ROOT, 0, "step", []),),
        ((ROOT, 0, "describe"),),
        ((ROOT, 0),),
        ((ROOT, 0, b"root", None),),
        ((ROOT, 77, "split", [SPLIT]),),
        ((ROOT, 0, "split", [SPLIT]),),
        ((ROOT, 0, "root", object()),),
        ((ROOT, 0, "root", np.zeros(3, dtype=np.int64)),),
        ((0, 0, "forget"),) * 5_000,
        "root",
        {"root": None},
        None,
    ],
    ids=range(22),
)  # fmt: skip
def test_what_travels_with_a_question_is_checked_before_anything_is_paid(before):
    asked = party()
    root = asked.answer(0, "root", None)
    with pytest.raises((Refused, Lost)):
        asked.answer(root, "noisy_counts", 1, before=before)
    assert asked.table.ledger.total.epsilon == 0


def test_numbers_are_never_used_again():
    asked = party()
    asked.answer(0, "left", before=((HALVES, 0, "root", None), (0, HALVES, "forget")))
    for number in (HALVES, ROOT):
        with pytest.raises(Refused, match="rising order"):
            asked.answer(0, "left", before=((number, 0, "root", None),))
    asked.answer(0, "left", before=((PAIR, 0, "root", None), (2 * SERIES + 1, 0, "root", None)))
    assert asked.answer(0, "series") == 3  # none of those that were seen


def test_a_party_keeps_so_many_cells_and_series_at_most(monkeypatch):
    asked = party()
    monkeypatch.setattr(party_module, "MOST_KEPT", 3)
    asked.answer(0, "left", before=tuple((SERIES + k, 0, "root", None) for k in (1, 2, 3)))
    with pytest.raises(Refused, match="too many cells"):
        asked.answer(0, "root", None)
    with pytest.raises(Refused, match="too many cells"):
        asked.answer(0, "left", before=((SERIES + 4, 0, "root", None),))
    asked.answer(0, "left", before=((0, SERIES + 1, "forget"), (SERIES + 5, 0, "root", None)))
    monkeypatch.setattr(party_module, "MOST_SERIES", 1)
    with pytest.raises(Refused, match="rising order"):
        asked.answer(0, "left", before=((2 * SERIES + 1, 0, "root", None),))


def test_two_federations_of_the_same_parties_do_not_mix_their_cells_up():
    parties = [party(epsilon=1e6)]
    tables = [
        FederatedTable(parties, protocol="noisy-counts").session(Budget(1e5)) for _ in range(2)
    ]
    roots = [table.root() for table in tables]
    halves = [root.partition("c") for root in roots]
    for _ in range(2):
        for half, root in zip(halves, roots, strict=True):
            assert half.noisy_counts(1_000).sum() == root.noisy_counts(1_000)[0] == 200


def test_many_free_questions_find_their_way(monkeypatch):
    monkeypatch.setattr(links_module, "MOST_BEFORE", 40)
    monkeypatch.setattr(party_module, "MOST_BEFORE", 40)
    one = party(epsilon=1e6)
    table = FederatedTable([one], protocol="noisy-counts").session(Budget(1e6))
    kept = [table.root() for _ in range(90)]
    assert kept[0].noisy_counts(1_000)[0] == kept[-1].noisy_counts(1_000)[0] == 200
    del kept
    for _ in range(6):
        table.root().noisy_counts(1)
    assert len(one._cells) < 10


def test_a_view_that_a_party_refuses_stops_before_anything_is_paid():
    one = party()
    table = FederatedTable([one], protocol="noisy-counts").session(Budget(1.0))
    other = make_view(Schema({"x": Numeric(0, 5)}, "y", classes=[0, 1]), 4)
    with pytest.raises((FederationError, SchemaError), match="its own schema"):
        table.root(other).noisy_counts(1)
    assert one.table.ledger.total.epsilon == 0


def test_several_counts_in_one_question_are_those_of_several_questions():
    one, other = party(), party()
    amounts = [0.5, [0.25, 1, 0.5, 0.25]]
    roots = [each.answer(0, "root", None) for each in (one, other)]
    parts = [each.answer(1, "split", [SPLIT]) for each in (one, other)]
    together = one.answer(0, "noisy_class_counts", amounts, of=[roots[0], parts[0]])
    apart = [
        other.answer(roots[1], "noisy_class_counts", amounts[0]),
        other.answer(parts[1], "noisy_class_counts", amounts[1]),
    ]
    assert all((a == b).all() for a, b in zip(together, apart, strict=True))
    assert one.table.ledger.total == other.table.ledger.total
    assert one.table.ledger.entries == other.table.ledger.entries
    with pytest.raises(BudgetExceeded):
        one.answer(0, "noisy_class_counts", [9], of=[roots[0]])
    for given, of in (([1, 1], [1]), ([1], [77]), ([1], [0])):
        with pytest.raises(Refused):
            one.answer(0, "noisy_class_counts", given, of=of)
    with pytest.raises(Refused):
        one.answer(0, "noisy_counts", [1], of=[1])
    assert one.table.ledger.total == other.table.ledger.total


# Who deals


def three(**given):
    return [
        Party(f"p{k}", *rows(200, k), SCHEMA, Budget(8.0), random_state=k, **given)
        for k in range(3)
    ]


def make_dealer(name):
    return Dealer(name)


def best(table, amount=2):
    view = make_view(SCHEMA, 9)
    candidates = make_candidates(view, missing=True)
    from privet.criteria import Gini

    return table.session(Budget(4.0)).root(view).choose_best(candidates, Gini(), amount, how="flip")


def test_another_organisation_can_deal():
    model = TopDownClassifier(2.0, max_depth=1)
    expected = model.fit(FederatedTable(three())).predictor_
    for dealer in (Dealer("notary"), ProcessLink("notary", make_dealer, ("notary",))):
        with FederatedTable(three(), dealer=dealer, deals=6) as table:
            found = TopDownClassifier(2.0, max_depth=1).fit(table)
        assert found.predictor_ == expected
        assert "the dealer 'notary', who is not the coordinator, pools" in str(found.privacy_.notes)


def test_a_party_cannot_deal():
    parties = three()
    for dealer in ("p0", parties[0], Dealer("p0"), LocalLink(parties[1])):
        with pytest.raises(FederationError, match="a party cannot deal"):
            FederatedTable(parties, dealer=dealer)
    with pytest.raises(FederationError, match="a Dealer, or a link"):
        FederatedTable(parties, dealer=7)
    for deals in (3, 0, 2_000, True, 4.0):
        with pytest.raises(FederationError, match="deals must be"):
            FederatedTable(parties, deals=deals)
    for given in ({"dealer": Dealer()}, {"deals": 9}):
        with pytest.raises(FederationError, match="for secure sums"):
            FederatedTable(parties, protocol="noisy-counts", **given)


def test_owners_may_choose_the_dealer_themselves():
    parties, dealer = three(), Dealer()
    roster = {each.name: each.keys.public_key for each in parties}
    dealer.join(roster)
    for each in parties:
        each.join(roster, dealer.public_key)
    assert len(best(FederatedTable(parties, dealer=dealer))) == 1
    with pytest.raises(FederationError, match="has its dealer; another one is refused"):
        FederatedTable(parties)


class Shifted(Deal):
    """The bits are those of another number: a comparison with a threshold of the dealer's."""

    @staticmethod
    def _bits_of(number):
        return Deal._bits_of(number + np.uint64(1_000))


def test_a_dealer_that_cheats_ends_the_run_and_the_books_say_what_was_spent(monkeypatch):
    monkeypatch.setattr(dealer_module, "Deal", Shifted)
    parties = three()
    with pytest.raises(FederationError, match="the dealer cheats"):
        best(FederatedTable(parties))
    assert [float(each.table.ledger.total.epsilon) for each in parties] == [2.0] * 3
    assert not any(each._choices for each in parties)


def test_a_party_that_was_cheated_once_joins_no_choice_any_more(monkeypatch):
    parties = three()
    with monkeypatch.context() as cheating:
        cheating.setattr(dealer_module, "Deal", Shifted)
        with pytest.raises(FederationError, match="cheats"):
            best(FederatedTable(parties))
    spent = [each.table.ledger.total for each in parties]
    with pytest.raises(Refused, match=r"did not belong together\. Its owner decides"):
        best(FederatedTable(parties, dealer=Dealer("another")))
    table = FederatedTable(parties).session(Budget(1.0))
    assert table.root().noisy_counts(1).shape == (1,)  # sums need no dealer
    assert parties[0].table.ledger.total.epsilon == spent[0].epsilon + 1


class Waits(Dealer):
    """Cheats in one deal, and shows nothing unless that one is kept: no one could check it."""

    bad, tries = 0, 0

    def _deal(self, shape, members, count):
        number, digests = super()._deal(shape, members, count)
        self.shown = count
        wanted, _, masters, _ = self._shown[number]
        digests[self.bad] = Shifted(masters[self.bad], wanted, len(members)).digests()
        return number, digests

    def _reveal(self, number, kept):
        self.tries += 1
        raise Lost("unlucky" if kept != self.bad else "lucky")


def test_a_dealer_that_gives_up_until_it_is_lucky_is_shown_the_door():
    """With every choice that is given up, four times as many deals are wanted."""
    parties = three()
    roster = {each.name: each.keys.public_key for each in parties}
    dealer = Waits()
    dealer.join(roster)
    for each in parties:
        each.join(roster, dealer.public_key)
    for tries, deals in enumerate([4, 16, 64, 256, 1024]):
        with pytest.raises(FederationError, match="lucky"):
            best(FederatedTable(parties, dealer=dealer), 0.01)
        assert dealer.shown == deals
        # A choice that is left hanging counts as given up when the next one is asked for.
        assert [each._given_up for each in parties] == [tries] * 3
    spent = [each.table.ledger.total for each in parties]
    with pytest.raises(Refused, match=r"joins no more of them, and nothing .* begin a new study"):
        best(FederatedTable(parties, dealer=dealer), 0.01)
    assert dealer.tries == 5
    assert [each.table.ledger.total for each in parties] == spent


def test_choices_that_are_asked_for_at_once_do_not_give_a_dealer_more_tries():
    """Each of them is told of those that were given up, or hang, when it is shown its deals."""
    parties = three()
    FederatedTable(parties)  # which joins them
    first, names = parties[0], ["p0", "p1", "p2"]
    root = first.answer(0, "root", None)
    choices = [
        first.answer(root, "share_labels", 0.1, 3, names, bytes([number]) * 16)
        for number in range(4)
    ]
    for given_up, choice in enumerate(choices):
        wanted = 4 * 4**given_up
        assert first.answer(choice, "step", [bytes(96)] * (wanted - 1)) == -wanted
        assert first.answer(choice, "step", [bytes(96)] * wanted) >= 0
        if given_up % 2:
            first.answer(choice, "forget")
    assert first.misdealt == (4, False)


def test_after_a_choice_that_was_given_up_more_deals_are_made():
    parties = three()
    for each in parties[:2]:
        each._given_up = 1
    assert len(best(FederatedTable(parties))) == 1


class Flips(LocalLink):
    """Flips a bit of what the others sent, in the second opening."""

    def send(self, target, question, *given, **options):
        opened = given[0] if question == "step" and isinstance(given[0], list) else []
        if opened and isinstance(opened[0], tuple):
            self.turn = getattr(self, "turn", 0) + 1
            if self.turn == 2:
                (words, tag), *others = given[0]
                words = words.copy()
                words[0] ^= np.uint64(1)
                given = ([(words, tag), *others],)
        return super().send(target, question, *given, **options)


def test_a_relay_that_flips_a_bit_ends_the_run():
    parties = three()
    with pytest.raises(FederationError, match="changed on the way"):
        best(FederatedTable([parties[0], Flips(parties[1]), parties[2]]))
    assert not parties[1]._choices


def test_a_dealer_that_answers_nonsense_or_is_gone_stops_the_run():
    class Odd(LocalLink):
        def receive(self, number):
            asked = self._waiting[number][1]
            answer = super().receive(number)
            if asked == self.which and self.said == "gone":
                raise Lost("dealer is gone")
            return self.said if asked == self.which else answer

    for which in ("public_key", "deal", "reveal"):
        for said in (None, "ten", {}, (1, []), "gone"):
            odd = Odd(Dealer())
            odd.which, odd.said = which, said
            with pytest.raises(FederationError, match=r"nonsense|gone"):
                best(FederatedTable(three(), dealer=odd))
