"""What a study would cost at a site, and whether the policy allows it: before any answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from privet.errors import BudgetExceeded, PrivetError
from privet.federation import PROTOCOLS
from privet.network.journal import Journal
from privet.network.policy import Policy, PolicyError, StudyPolicy
from privet.network.site import check_approved, cost_of, journal_path, state_of
from privet.privacy import Budget, LedgerStore, as_float
from privet.privacy.budget import Amount
from privet.privacy.ledger import readable
from privet.schema import Schema
from privet.visible import quoted


@dataclass(frozen=True)
class StudyCheck:
    """What a dry run found about one study.

    Attributes
    ----------
    name : str
    epsilon : float
        What the study may spend on the rows in all.
    spent : float
        What it has spent.
    left : str
        What the ledger file has left for other things.
    protocols : tuple of str
        The protocols all of whose questions are allowed, those of a test score perhaps not.
    scored : tuple of str
        Those of them whose questions of a test score are allowed, too.
    problems : tuple of str
        Why it would not be answered; none if it would.
    """

    name: str
    epsilon: float
    spent: float
    left: str
    protocols: tuple[str, ...]
    scored: tuple[str, ...]
    problems: tuple[str, ...]


def check_study(
    policy: Policy, name: str, *, epsilon: float | None = None, protocol: str | None = None
) -> StudyCheck:
    """Say what a study would cost, and whether the policy allows it. Nothing is reserved.

    Parameters
    ----------
    policy : Policy
    name : str
        The study.
    epsilon : float, optional
        What an analyst asks for; all that the policy allows if None.
    protocol : str, optional
        By which protocol; any if None.
    """
    study = policy.study(name)
    schema = Schema.from_toml(policy.schema)
    store = LedgerStore(policy.ledger)
    problems: list[str] = []
    spent: Amount = Fraction(0)
    begun = False
    path = journal_path(policy, name)
    if path.exists():
        journal = Journal.look(path)
        try:
            answers = list(journal.of_kind("answer"))
            spent = cost_of(answers[-1]).epsilon if answers else spent
            begun = store.study(name) is not None
            if any(journal.of_kind("closed")):
                problems.append("it is closed: take another name for a new study")
        finally:
            journal.close()
    if (trouble := state_of(policy, name).trouble) is not None:
        problems.append(trouble)
    for check in (
        schema.check_corrected,
        lambda: study.check_date(datetime.now(UTC)),
        lambda: check_approved(policy, study),
        lambda: None if begun else _check_ledger(store, schema, study),
    ):
        try:
            check()
        except PrivetError as error:
            problems.append(str(error))
    possible = tuple(
        each for each, kind in PROTOCOLS.items() if set(kind.asks.values()) <= study.questions
    )
    scored = tuple(
        each for each in possible if set(PROTOCOLS[each].asks_of_scores.values()) <= study.questions
    )
    problems += _asked(study, spent, epsilon, protocol, possible)
    if not study.questions:
        problems.append("no question is allowed")
    books = store.books
    left = readable(books.left, books.budget)
    return StudyCheck(name, study.epsilon, as_float(spent), left, possible, scored, tuple(problems))


def _check_ledger(store: LedgerStore, schema: Schema, study: StudyPolicy) -> None:
    try:
        store.check(study.budget, columns=schema.columns, table=schema.table, unit=schema.unit)
    except BudgetExceeded as error:
        raise PolicyError(
            f"the ledger has less left ({error.left}) than the study may spend "
            f"(epsilon {study.epsilon:g})"
        ) from None


def _asked(
    study: StudyPolicy,
    spent: Amount,
    epsilon: float | None,
    protocol: str | None,
    possible: tuple[str, ...],
) -> list[str]:
    """Return what is wrong with what an analyst asks for."""
    found = []
    if epsilon is not None:
        left = study.budget.limit - spent
        if Budget(epsilon).limit > left:
            found.append(
                f"a fit with epsilon {epsilon:g} is more than the policy has left for the study "
                f"(epsilon {float(left):g})"
            )
    if protocol is not None:
        if protocol not in PROTOCOLS:
            raise PolicyError(
                f"{quoted(protocol)} is no protocol; there are {', '.join(PROTOCOLS)}"
            )
        if protocol not in possible:
            missing = sorted(set(PROTOCOLS[protocol].asks.values()) - study.questions)
            found.append(f"{protocol} also asks {', '.join(missing)}, which is not allowed")
        if protocol == "secure-sum" and not study.peers:
            found.append("secure-sum needs the fingerprints of the other parties (peers)")
    return found
