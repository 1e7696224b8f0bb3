"""``privet audit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli._outputs import Force
from privet.cli._reading import Decimal, Encoding, Separator, read_data
from privet.cli.learners import estimator_for, find

if TYPE_CHECKING:
    from privet.audit.catalogue import Case
    from privet.cli._terminal import PlainTable
    from privet.estimators._base import PrivateEstimator
    from privet.model import Model
    from privet.report import Attachment

#: The exit code if something is not as private as it says.
FAILED = 3


def audit(
    learner: Annotated[
        str | None,
        typer.Option(help="Which learner (see: privet learners). [default: all]", metavar="NAME"),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The epsilon of the fits.")] = 1.0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Follow all outcomes on small tables (the default).")
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Fit this often on two neighbouring tables instead; with --membership: how many "
            "models [default: 32]."
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="What published algorithms cost as printed.")
    ] = False,
    readers: Annotated[
        bool,
        typer.Option("--readers", help="Try to make one record change how others are read."),
    ] = False,
    membership: Annotated[
        bool,
        typer.Option(
            "--membership",
            help="Guess who was learnt from, on your own rows (--data), with the learner and the "
            "settings of a model (--model). The result is for the owner's eyes only.",
        ),
    ] = False,
    model: Annotated[Path | None, typer.Option(help="With --membership: the model file.")] = None,
    records: Annotated[
        int | None, typer.Option(help="With --exact: most records of a table. [default: 2]")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Your table. With --samples: against itself with one record more. With "
            "--membership: halves of it."
        ),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="With --data: its schema file.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="With --samples: keep the runs here, and go on from there.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many processes work.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the result as JSON, too: privet report --attach shows it."),
    ] = None,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Try to show that models are less private than their ledgers say."""
    from privet.errors import AuditError
    from privet.model import load
    from privet.outputs import OutputFile, check_output
    from privet.schema import Schema

    if sum([exact, samples is not None and not membership, published, readers, membership]) > 1:
        raise AuditError(
            "choose one of --exact, --samples, --published, --readers and --membership"
        )
    if readers and learner is not None:
        raise AuditError("--readers is about all learners: leave --learner out")
    if membership:
        if data is None or model is None:
            raise AuditError("--membership needs --data, your rows, and --model, a model file")
        if learner is not None or schema is not None or store is not None:
            raise AuditError("--membership takes learner, settings and schema from the --model")
    elif model is not None:
        raise AuditError("--model goes with --membership")
    elif (data is not None or store is not None) and (samples is None or learner is None):
        raise AuditError("--data and --store go with --samples and --learner")
    elif (data is None) != (schema is None):
        raise AuditError("--data and --schema go together")
    if records is not None and (
        samples is not None or published or readers or membership or records < 1
    ):
        raise AuditError("--records goes with --exact and is at least 1")
    if learner is not None:
        find(learner)
    inputs = {"the data": data, "the schema": schema, "the model": model}
    if store is not None:
        check_output(store, inputs)
    if published:
        if out is not None:
            raise AuditError("--published is about papers, and not about a model: leave --out out")
        _published()
        return
    written: dict[str, Any] = {"separator": separator, "encoding": encoding, "decimal": decimal}
    with ExitStack() as kept:
        # Whether the result can be written is known before minutes of work.
        output = None
        if out is not None:
            taken = {**inputs, "the store": store}
            output = kept.enter_context(OutputFile(out, taken, replace=force))
        if membership:
            assert data is not None
            assert model is not None
            result = _membership(load(model), data, samples or 32, **written)
        elif readers:
            result = _readers()
        elif samples is not None:
            fits = _invented(learner, epsilon)
            if data is not None:
                assert schema is not None
                assert learner is not None
                public = Schema.from_toml(schema)
                table = read_data(data, public, **written)
                own = estimator_for(find(learner), public)(epsilon=epsilon, schema=public)
                fits = iter([(type(own).__name__, own, table, None)])
            result = _sampled(fits, epsilon, samples, store, jobs, own=data is not None)
        else:
            result = _exact(learner, epsilon, records or 2, jobs)
        if output is not None:
            output.write(result.to_json())
    if not result.holds:
        raise typer.Exit(FAILED)


def _today() -> str:
    import time

    return time.strftime("%Y-%m-%d", time.gmtime())


def _result(
    table: PlainTable, *, holds: bool, own: bool = False, note: str = "", **numbers: float
) -> Attachment:
    """Return a table that was shown as a result that can be kept."""
    from privet.report import Attachment

    return Attachment(
        table.title,
        holds,
        own,
        _today(),
        table.columns,
        tuple(table.rows),
        (note,) if note else (),
        tuple(numbers.items()),
    )


def _membership(model: Model, data: Path, models: int, **written: Any) -> Attachment:
    from privet.audit.membership import RATES, attack
    from privet.cli._terminal import PlainTable, progress_bar, say
    from privet.report import Facts

    estimator = _again(model)
    rows = read_data(data, model.schema, **written)
    with progress_bar() as report:
        found = attack(estimator, rows, models=models, progress=report("fits"))
    given = Facts(replace(model, privacy=found.card, record=None)).guarantee
    exceeds = found.exceeds(given)
    table = PlainTable(
        "A membership attack on the owner's rows",
        ["measure", "found", "from", "to", "allowed at most", "guessing"],
    )
    lines = [
        (f"members found at {rate:.0%} false alarms", one, given.true_positives(rate), rate)
        for rate, one in zip(RATES, found.true_positives, strict=True)
    ]
    lines.append(("advantage", found.advantage, given.advantage, 0.0))
    for name, one, most, guess in lines:
        table.add(
            name, f"{one.value:.2%}", f"{one.low:.2%}", f"{one.high:.2%}", f"{most:.2%}",
            f"{guess:.0%}",
        )  # fmt: skip
    area = found.area
    table.add(
        "area under the ROC curve", f"{area.value:.4f}", f"{area.low:.4f}", f"{area.high:.4f}", "",
        "0.5",
    )  # fmt: skip
    table.show()
    whom = "persons" if model.schema.unit is not None else "records"
    note = (
        f"{found.models} models of {type(estimator).__name__} with the settings of the model, each "
        f"of a random half of {found.members:,} {whom}; who was in which half was guessed by "
        "likelihood ratios from the other models (LiRA). Intervals are of 95 % over models. A weak "
        "attack proves nothing; one above what is allowed would prove a bug."
    )
    say(note)
    if not given.holds:
        say("Nothing is promised by these fits, so there is nothing to compare with.")
    say(
        "These numbers are exact statements about your table, for the owner's eyes only: publish "
        "nothing of them.",
        style="yellow",
    )
    if exceeds:
        say("the attack finds more than the budget allows", lead="Does not hold:", style="red")
    return _result(
        table,
        holds=not exceeds,
        own=True,
        note=note,
        true_positives_at_1_percent=found.true_positives[0].value,
        true_positives_at_10_percent=found.true_positives[1].value,
        advantage=found.advantage.value,
        area=area.value,
    )


def _again(model: Model) -> PrivateEstimator:
    """Return the estimator that a model came from, by its record."""
    from privet.errors import AuditError
    from privet.estimators.registry import estimators

    if model.record is None:
        raise AuditError("the model file does not say with which settings it was made")
    kinds = {kind.__name__: kind for kind in estimators()}
    kind = kinds.get(model.record.estimator)
    if kind is None:
        raise AuditError("the model file names an estimator that this Privet does not have")
    known = set(kind().get_params())
    settings = {name: value for name, value in model.record.settings.items() if name in known}
    # Records that are set aside for a test are in no half.
    settings |= {"schema": model.schema, "test_share": None, "test_by": None}
    return kind(**settings)


def _exact(learner: str | None, epsilon: float, records: int, jobs: int) -> Attachment:
    from privet.audit.catalogue import cases
    from privet.cli._terminal import PlainTable, progress_bar, say

    chosen = [case for case in cases(epsilon) if learner is None or case.learner == learner]
    table = PlainTable(
        f"All neighbouring tables of up to {records} record{'s' * (records != 1)}",
        ["learner", "ledger", "found", "outcomes", "fits", "s", "verdict"],
    )
    holds = True
    with progress_bar() as report:
        for case in chosen:
            verdict = case.audit(most_records=records, n_jobs=jobs, progress=report(case.name))
            holds &= verdict.holds
            table.add(
                f"{case.learner}: {case.options}",
                f"{'rho' if verdict.claimed.accountant == 'zCDP' else 'epsilon'} "
                f"{verdict.claim:.4g}",
                f"{verdict.found:.4g}",
                "all" if verdict.exhaustive else "paths",
                str(verdict.runs),
                f"{verdict.seconds:.1f}",
                "holds" if verdict.holds else "does not hold",
                styles=["green" if verdict.holds else "red"],
            )
            if not verdict.holds:
                say(f"{case.name}: {_why(verdict)}", lead="Does not hold:", style="red")
    table.show()
    note = (
        "Found: the largest log ratio of an output's probabilities (rho: the largest Renyi "
        "divergence by its order) on two tables that differ in one record; outcomes: whether all "
        "were followed, or some paths. More than the ledger says would be a bug."
    )
    say(note)
    return _result(table, holds=holds, note=note)


def _why(verdict: Any) -> str:
    one, other = verdict.worst
    seen = "; ".join(verdict.remarks) or f"found {verdict.found:.4g}, ledger {verdict.claim:.4g}"
    return f"{seen}; worst on {list(one)} and {list(other)}"


def _sampled(
    fits: Iterator[tuple[str, Any, Any, Any]],
    epsilon: float,
    samples: int,
    store: Path | None,
    jobs: int,
    *,
    own: bool,
) -> Attachment:
    from privet.audit import sample
    from privet.cli._terminal import PlainTable, progress_bar, say

    table = PlainTable(
        f"{samples} fits on each of two tables that differ in one record",
        ["estimator", "claimed", "at least", "could show", "event", "verdict"],
    )
    holds = True
    with progress_bar() as report:
        for name, estimator, X, y in fits:
            options: dict[str, Any] = {
                "runs": samples, "n_jobs": jobs, "store": store, "progress": report(name),
            }  # fmt: skip
            found = sample.canary(estimator, X, y, **options)
            holds &= not found.exceeds(epsilon)
            table.add(
                name,
                f"{epsilon:g}" + (f", {found.delta:g}" if found.delta else ""),
                f"{found.epsilon:.3g}",
                f"{found.best_possible:.3g}",
                found.event,
                "does not hold" if found.exceeds(epsilon) else "nothing found",
                styles=["red" if found.exceeds(epsilon) else ""],
            )
    table.show()
    note = (
        "At least: a lower bound on epsilon at 95 % confidence; could show: the most that this "
        "number of runs can. A small bound proves nothing, one above the claim proves a bug."
    )
    say(note)
    if own:
        say(
            "These numbers are exact statements about your table: treat them as sensitive.",
            style="yellow",
        )
    return _result(table, holds=holds, own=own, note=note)


def _invented(learner: str | None, epsilon: float) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield estimators and a few invented rows."""
    for case in _defaults(learner, epsilon):
        rows, target = few_rows(case.estimator.schema)
        yield case.name, case.estimator, rows, target


def _defaults(learner: str | None, epsilon: float) -> Iterator[Case]:
    """Yield the first case of every estimator."""
    from privet.audit.catalogue import of_estimators

    seen = set()
    for case in of_estimators(epsilon):
        kind = type(case.estimator)
        if kind not in seen and (learner is None or case.learner == learner):
            seen.add(kind)
            yield case


def few_rows(schema: Any) -> tuple[Any, Any]:
    """Return four records of a schema, as columns."""
    import numpy as np

    from privet.audit.exact import universe

    records = universe(schema)[:1] * 4
    rows = np.array([record[:-1] for record in records], dtype=object)
    return rows, np.array([record[-1] for record in records])


def _published() -> None:
    from privet.audit.published import counterexamples
    from privet.cli._terminal import PlainTable, progress_bar

    table = PlainTable(
        "Published calibrations that cost more than their papers say",
        ["algorithm", "claimed", "found", "times", "tables"],
    )
    with progress_bar() as report:
        for found in counterexamples():
            report(found.name)(1, 1)
            table.add(
                found.name,
                f"{found.claimed:g}",
                f"{found.found:.4g}",
                f"{found.found / found.claimed:.3g}",
                found.tables,
            )
    table.show()


def _readers() -> Attachment:
    from privet.audit import readers
    from privet.cli._terminal import PlainTable, progress_bar, say
    from privet.report import Attachment

    rounds = len(readers.SCHEMAS)
    with progress_bar() as report:
        verdicts = {
            what: readers.audit(reader, rounds=rounds, progress=report(what))
            for what, reader in {"values": readers.read, "persons": readers.read_persons}.items()
        }
    rows: list[tuple[str, ...]] = []
    for what, verdict in verdicts.items():
        broken = Counter(found.writer for found in verdict.counterexamples)
        table = PlainTable(
            f"Tables with and without one hostile record: {what}",
            ["container", "compared", "verdict"],
        )
        for name, compared in verdict.compared.items():
            held = "only errors compared" if name in verdict.refused else "holds"
            table.add(
                name,
                str(compared),
                "does not hold" if broken[name] else held,
                styles=["red" if broken[name] else "green"],
            )
        for found in verdict.counterexamples:
            say(str(found), lead="Does not hold:", style="red")
        table.show()
        rows += [(what, *row) for row in table.rows]
    note = (
        "Compared: tables that were read with and without one record more, which had a hostile "
        "value or shape. No other record may be read differently, or become another person's, and "
        "no error or warning may depend on it."
    )
    say(note)
    return Attachment(
        "Tables with and without one hostile record",
        all(verdict.holds for verdict in verdicts.values()),
        False,
        _today(),
        ("tried", *table.columns),
        tuple(rows),
        (note,),
    )
