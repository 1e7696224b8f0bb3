"""Sums and choices of which nobody sees a part: one noise, as on a single machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.criteria import HALVINGS, MAX_ROWS, MOST_CHORDED, Criterion, MinOfLinear
from privet.errors import FederationError
from privet.federation.answers import (
    is_dealt_to,
    is_key,
    is_left,
    is_place,
    is_sealed,
    is_shown,
    passes,
    tagged_words_of,
    words_of,
)
from privet.federation.dealer import Dealer
from privet.federation.links import Connections, Link, LocalLink
from privet.federation.mpc import (
    MOST_DEALS,
    MOST_OPTIONS,
    ChoiceShape,
    check_cryptography,
    check_range,
    has_room,
    kept_of,
    open_sum,
    openings,
    winners,
)
from privet.federation.party import Lost, Refused, check_honest
from privet.federation.protocols.base import AggregationProtocol, SplitChoice
from privet.federation.wire import MOST_BYTES
from privet.privacy import (
    SMALLEST_RATE,
    DiscreteLaplace,
    LaplaceShare,
    NoisyMaxShare,
    Question,
    QuestionKind,
    Released,
    as_float,
    exact,
)
from privet.privacy.budget import Amount
from privet.privacy.coins import draw_bytes
from privet.schema import Schema
from privet.tables import Split, Tally, list_candidates

if TYPE_CHECKING:
    from privet.federation.cells import Amounts, FederatedCells
    from privet.federation.table import FederatedTable

#: No sum of counts and noise is larger, for any amount that can be shared; nearly all sums whose
#: masks do not cancel are.
_LARGEST = 2**40
#: How many times parties are connected anew in a run: each time costs a question.
_MOST_ANEW = 16


class SecureSums(AggregationProtocol):
    """Counts that are summed under masks, and choices by sums that nobody sees.

    The parties' shares of noise add up to *one* noise. Splits and labels are chosen by noisy scores
    of all parties' rows, of which only the largest one's place is seen
    (:mod:`privet.federation.mpc`).
    """

    name: ClassVar[str] = "secure-sum"
    asks: ClassVar[Mapping[str, str]] = {
        "noisy_counts": "share_counts",
        "noisy_class_counts": "share_class_counts",
        "choose_labels": "share_labels",
        "choose_best": "share_splits",
        "choose_splits": "share_splits",
    }
    asks_of_scores: ClassVar[Mapping[str, str]] = {
        "noisy_confusion": "share_confusion",
        "noisy_score_counts": "share_score_counts",
    }
    #: Shares of noise are drawn from tables of a limited size.
    least_amount: ClassVar[Fraction] = SMALLEST_RATE

    def __init__(
        self,
        parties: int,
        honest: int | None,
        least: int,
        dealer: Link | None = None,
        deals: int | None = None,
    ) -> None:
        check_cryptography()
        if parties < 2:
            raise FederationError("a secure sum needs two parties or more")
        super().__init__(parties, None, least)
        self.honest = parties if honest is None else honest
        if least < self.honest:
            raise FederationError(
                f"least={least} needs honest={least} or fewer: with fewer parties than "
                "honest ones there is too little noise"
            )
        if deals is not None and not parties < deals <= MOST_DEALS:
            raise FederationError(
                f"deals must be a whole number above the number of parties, at most {MOST_DEALS}: "
                "every party checks one at least, and one is used"
            )
        self._deals = deals
        #: How many times as many deals the parties want as there are members and one.
        self._times: int | None = None
        #: Whether somebody else deals, and a link to whoever does.
        self._apart = dealer is not None
        self._dealer = LocalLink(Dealer()) if dealer is None else dealer
        #: The public keys of the parties and of the dealer; how many times they were made anew.
        self._public_keys: dict[str, bytes] = {}
        self._dealer_key, self._anew = b"", 0

    @property
    def trust(self) -> str:
        """See :class:`AggregationProtocol`."""
        return (
            f"this epsilon holds if at least {self.honest} of the parties are honest, that "
            "is, add their share of the noise, show it to nobody and keep it nowhere, if the keys "
            "that parties have of each other are theirs, and, for splits and labels, if all follow "
            f"the protocol and {self._who_deals} pools what it knows with none of them"
        )

    @property
    def _who_deals(self) -> str:
        if not self._apart:
            return "the coordinator"
        return f"the dealer {self._dealer.name!r}, who is not the coordinator,"

    def noises(self, members: int) -> float:
        """See :class:`AggregationProtocol`: ``honest`` shares are one noise."""
        return members / self.honest

    def connect(self, connections: Connections) -> None:
        """See :class:`AggregationProtocol`: public keys, and a key that only the parties have."""
        while True:
            try:
                return self._connect(connections)
            except Refused as refused:
                self._left(connections, refused)

    def _connect(self, connections: Connections) -> None:
        self._public_keys = dict(connections.ask_all("public_key", check=is_key))
        self._dealer_key = dealer = self._ask_dealer(0, "public_key", check=is_key)
        roster = self._public_keys
        if not self._apart:  # without the signatures, which are for the others
            roster = {name: key[:32] for name, key in roster.items()}
        self._ask_dealer(0, "join", roster)
        connections.ask_all("join", self._public_keys, dealer)
        sealed = [given for _, given in connections.ask_all("seal", check=is_sealed) if given]
        connections.ask_all("unseal", sealed[0] if sealed else {})
        self._times = None

    def _left(
        self, connections: Connections, refused: Refused
    ) -> tuple[dict[str, Amount], list[str]]:
        """Return what every party has left, and whose keys are gone, after one has refused.

        Raises what it was refused with, unless somebody has come back without its keys, which end
        with a process (docs/proofs/journal.md).
        """
        try:
            # If they refuse this, too, the others are not asked: a run that goes on when an owner
            # has changed his mind asks the same questions but this one.
            for link in connections.refusing:
                with suppress(Lost):  # which is noticed when all are asked
                    link.receive(link.send(0, "left"))
            answers = connections.ask_all("left", check=is_left)
            gone = [name for name, (_, key, _) in answers if key is None]
            if self._apart and self._dealer_key:
                key = self._ask_dealer(0, "public_key", check=is_key)
                gone += [self._dealer.name] if key != self._dealer_key else []
        except Refused:
            raise refused from None
        if not gone or self._anew == _MOST_ANEW:
            raise refused
        self._anew += 1
        return {name: left for name, (left, _, _) in answers}, gone

    def _connect_anew(self, table: FederatedTable, amount: Amount, refused: Refused) -> None:
        """Let a question be paid again, under new keys, if all parties can afford it; or raise.

        A process has ended, and with it the keys: what the others sent cannot be read.
        """
        found, gone = self._left(table._connections, refused)
        needed = table.ledger.rise(table.ledger.left + amount)
        for name, left in found.items():
            if left < needed:
                raise FederationError(
                    f"the process of {', '.join(gone)} ended in the middle of a question under "
                    "secret keys, which are gone. To pay it again, and to go on, takes epsilon "
                    f"{as_float(needed):.6g}, and party {name!r} has {as_float(left):.6g} left: "
                    "the run stops. The ledgers show what was spent; fit again, with an epsilon "
                    "that leaves a reserve"
                ) from refused
        self.connect(table._connections)
        table.ledger.pay_besides(amount)
        table._paid_again.append((", ".join(gone), amount))

    def close(self) -> None:
        """See :class:`AggregationProtocol`."""
        self._dealer.close()

    def _ask_dealer(
        self, target: int, question: str, *given: Any, check: Callable[[Any], bool] | None = None
    ) -> Any:
        """Return the dealer's answer."""
        answer = self._dealer.receive(self._dealer.send(target, question, *given))
        if check is not None and not passes(check, answer):
            raise FederationError(f"dealer {self._dealer.name!r} answered nonsense")
        return answer

    def check_party(self, name: str, key: bytes | None, members: int, doubted: int) -> None:
        """See :class:`AggregationProtocol`."""
        if key != self._public_keys[name]:
            raise FederationError(
                f"party {name!r} has joined another federation since, or was started again, with "
                "new keys: make a new FederatedTable. Nothing was spent"
            )
        check_honest(name, self.honest, members, doubted)

    def check_choices(
        self, schema: Schema, criterion: Criterion, options: int, how: str | None
    ) -> None:
        """See :class:`AggregationProtocol`."""
        if how not in (None, "flip"):
            raise FederationError(
                "under secure sums, splits are chosen by permute-and-flip: ask for 'flip', or use "
                "another protocol"
            )
        found = comparable(criterion, len(schema.classes or ()), options)
        if found is None:
            raise FederationError(
                f"under secure sums, {criterion.name!r} cannot judge splits: it takes more than "
                f"sums and comparisons; use 'gini' or 'max' (Gini up to {MOST_CHORDED:,} classes), "
                "or another protocol"
            )
        if options > MOST_OPTIONS:
            raise FederationError(
                f"under secure sums, parties choose among {MOST_OPTIONS:,} splits at most, not "
                f"{options:,}: take fewer features or cuts, or another protocol"
            )
        check_range(found.spread * MAX_ROWS, options)

    def noisy_counts(self, cells: FederatedCells, amount: Amounts) -> Released:
        """See :class:`AggregationProtocol`."""
        question = Question(QuestionKind.ROW_COUNT)
        return self._whole(cells, self._sum(cells, "share_counts", (), amount, 1, question)[:, 0])

    def noisy_class_counts(self, cells: FederatedCells, amount: Amounts) -> Released:
        """See :class:`AggregationProtocol`."""
        classes = len(cells.schema.classes or ())
        question = Question(QuestionKind.CLASS_COUNTS)
        total = self._sum(cells, "share_class_counts", (), amount, classes, question)
        return self._whole(cells, total)

    def _whole(self, cells: FederatedCells, total: NDArray[np.int64]) -> Released:
        """Return sums of parts of persons, if they are such, as whole persons."""
        parts = cells.schema.unit_parts
        return Released(total if parts == 1 else np.rint(total / parts).astype(np.int64))

    def count_outcomes(
        self,
        cells: FederatedCells,
        question: str,
        kind: QuestionKind,
        given: tuple[Any, ...],
        amount: Amount,
        numbers: int,
    ) -> Tally:
        """See :class:`AggregationProtocol`."""
        share, parts = self.asks_of_scores[question], cells.schema.unit_parts
        total = self._sum(cells, share, given, amount, numbers, Question(kind))
        variance = DiscreteLaplace(parts, exact(amount)).variance / parts**2
        return Tally(total / parts, self.noises(len(cells._table.parties)) * variance, laplace=True)

    def _sum(
        self,
        cells: FederatedCells,
        share: str,
        about: tuple[Any, ...],
        amount: Amounts,
        numbers: int,
        question: Question,
    ) -> NDArray[np.int64]:
        """Return a sum over the parties of numbers that nobody sees, with one noise.

        Of some numbers per cell, in parts of persons if the schema has a unit; ``about`` is what
        the question comes with before its amount.
        """
        table = cells._table
        while True:
            parts = cells.schema.unit_parts
            shares = [LaplaceShare(parts, each, self.honest) for each in cells._amounts(amount)]
            cells._charge(shares, question)
            members = table.parties
            given = (*about, amount, self.honest, members, draw_bytes(16))
            try:
                masked = cells._ask(share, *given, check=words_of(len(cells) * numbers))
            except Refused as refused:
                self._connect_anew(table, max(each.cost.epsilon for each in shares), refused)
                continue
            if len(masked) == len(members):
                break
            # The masks of a lost member do not cancel: what came is noise, and those who are left
            # are asked, and charged, again.
            if len(table.parties) < max(table.least, 2):
                raise FederationError("too few parties are left for a sum")
            table._missed |= set(members) - set(table.parties)
        total = open_sum([part for _, part in masked]).view(np.int64)
        if np.abs(total.astype(np.float64)).max(initial=0.0) > _LARGEST:
            raise FederationError(
                "the sum is no count: a party answered nonsense, or lost its keys"
            )
        return total.reshape(len(cells), numbers)

    def choose_labels(self, cells: FederatedCells, amount: Amount) -> list[int]:
        """See :class:`AggregationProtocol`."""
        mechanism = NoisyMaxShare(cells.schema.unit_parts, exact(amount), self.honest)
        shape = ChoiceShape(len(cells), len(cells.schema.classes or ()))
        question = Question(QuestionKind.LABEL)
        return self._choose(cells, "share_labels", (amount,), shape, mechanism, question)

    def choose_splits(self, cells: FederatedCells, choice: SplitChoice) -> list[Split]:
        """See :class:`AggregationProtocol`. Always by permute-and-flip, nearly."""
        candidates, view = choice.candidates, cells.view
        offered = list_candidates(candidates, view)
        classes = len(cells.schema.classes or ())
        criterion = comparable(choice.criterion, classes, len(offered))
        assert criterion is not None  # check_choices
        spread = cells.schema.unit_parts * criterion.spread
        mechanism = NoisyMaxShare(spread, choice.amount, self.honest)
        regions = sum(candidates.width(feature, view) for feature, _ in offered)
        terms, forms, _ = criterion.linear_forms(classes).shape
        shape = ChoiceShape(len(cells), len(offered), regions * terms, forms, criterion.halvings)
        given = (candidates, criterion, choice.amount, choice.allowed)
        question = Question(QuestionKind.SPLIT, choice.criterion.name)
        places = self._choose(cells, "share_splits", given, shape, mechanism, question)
        return [candidates.split(*offered[place], cell, view) for cell, place in enumerate(places)]

    def _choose(
        self,
        cells: FederatedCells,
        share: str,
        given: tuple[Any, ...],
        shape: ChoiceShape,
        mechanism: NoisyMaxShare,
        question: Question,
    ) -> list[int]:
        """Return for every cell the option with the largest noisy sum over the parties."""
        if not len(cells):
            return []
        if 8 * shape.randomness_size > MOST_BYTES - 2**20:  # some room for what is around the words
            raise FederationError(
                "under secure sums, a choice among that many splits takes messages that are too "
                "large: take fewer features or cuts, or another protocol"
            )
        table = cells._table
        while True:
            cells._charge([mechanism], question)
            members = table.parties
            asked = (*given, mechanism.honest, members, draw_bytes(16))
            chosen = None
            try:
                choices = dict(cells._ask(share, *asked, check=is_place))
                if len(choices) == len(members):
                    chosen = self._run_choice(table._connections, choices, shape)
            except Refused as refused:
                self._connect_anew(table, mechanism.cost.epsilon, refused)
                continue
            table._connections.forget(choices)
            if chosen is not None:
                return chosen
            # As for sums: without a member nothing can be read, and the others are asked again.
            self._times = None
            if len(table.parties) < max(table.least, 2):
                raise FederationError("too few parties are left for a choice")
            table._missed |= set(members) - set(table.parties)

    def _run_choice(
        self, connections: Connections, choices: dict[str, int], shape: ChoiceShape
    ) -> list[int] | None:
        """Let parties be dealt randomness, pass on what they open, and return what they chose.

        ``choices`` has the number under which each party takes part. None after a loss.
        """
        chosen: list[int] = []
        members = sorted(choices)
        for some in shape.batches():
            given = self._deal(connections, choices, some)
            if given is None:
                return None
            for size, is_read in openings(some):
                check = tagged_words_of(size) if is_read else words_of(size)
                answers = connections.ask_all("step", target=choices, each=given, check=check)
                if len(answers) < len(choices):
                    return None
                sent = dict(answers)
                # Each gets the words of the others, as they sent them.
                given = {
                    name: [sent[other] for other in members if other != name] for name in members
                }
            found = winners(open_sum(list(sent.values())), shape.options)
            if found.min() < 0:
                raise FederationError(
                    "the choice is no option: a party answered nonsense, or lost its keys"
                )
            chosen += found.tolist()
        return chosen

    def _deal(
        self, connections: Connections, choices: dict[str, int], shape: ChoiceShape
    ) -> dict[str, Any] | None:
        """Return what every party is dealt for some rows of a choice. None after a loss."""
        members = sorted(choices)
        if self._times is None:  # after choices were given up, parties want to be shown more
            wanted = dict(connections.ask_all("step", [], target=choices, check=is_place))
            if len(wanted) < len(choices):
                return None
            self._times = max(1, -min(wanted.values()) // (len(members) + 1))
        count = min(max(self._deals or 0, (len(members) + 1) * self._times), MOST_DEALS)
        number, shown = self._ask_dealer(
            0, "deal", tuple(shape), members, count, check=is_shown(count)
        )
        said = dict(connections.ask_all("step", shown, target=choices, check=is_place))
        if len(said) < len(choices):
            return None
        if min(said.values()) < 0:
            raise FederationError(
                "a party wants to be shown more deals than it said: it was asked something else, "
                "or lost its keys"
            )
        kept = kept_of(said.values(), count)
        given: dict[str, Any] = self._ask_dealer(
            0, "reveal", number, kept, check=is_dealt_to(members)
        )
        return given


def comparable(criterion: Criterion, classes: int, options: int) -> MinOfLinear | None:
    """Return what parties choose splits by: as close to a criterion as there is room for.

    None if sums and comparisons cannot tell it.
    """
    for halvings in reversed(HALVINGS):
        found = criterion.as_min_of_linear(classes, halvings)
        if found is None or has_room(found.spread * MAX_ROWS, options):
            return found
    return found  # a choice that is refused
