"""``privet audit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli._reading import Decimal, Encoding, Separator, read_data
from privet.cli.learners import estimator_for, find

if TYPE_CHECKING:
    from privet.audit.catalogue import Case

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
        int | None, typer.Option(help="Fit so often on two neighbouring tables instead.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="What published algorithms cost as printed.")
    ] = False,
    readers: Annotated[
        bool,
        typer.Option("--readers", help="Try to make one record change how others are read."),
    ] = False,
    records: Annotated[
        int | None, typer.Option(help="With --exact: most records of a table. [default: 2]")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="With --samples: your table, against itself with one record more."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="With --data: its schema file.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="With --samples: keep the runs here, and go on from there.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many processes work.")] = 1,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Try to show that models are less private than their ledgers say."""
    from privet.errors import AuditError
    from privet.outputs import check_output
    from privet.schema import Schema

    if sum([exact, samples is not None, published, readers]) > 1:
        raise AuditError("choose one of --exact, --samples, --published and --readers")
    if readers and learner is not None:
        raise AuditError("--readers is about all learners: leave --learner out")
    if (data is not None or store is not None) and (samples is None or learner is None):
        raise AuditError("--data and --store go with --samples and --learner")
    if (data is None) != (schema is None):
        raise AuditError("--data and --schema go together")
    if records is not None and (samples is not None or published or readers or records < 1):
        raise AuditError("--records goes with --exact and is at least 1")
    if learner is not None:
        find(learner)
    if store is not None:
        check_output(store, {"the data": data, "the schema": schema})
    if published:
        _published()
        return
    if readers:
        holds = _readers()
    elif samples is not None:
        fits = _invented(learner, epsilon)
        if data is not None:
            assert schema is not None
            assert learner is not None
            public = Schema.from_toml(schema)
            table = read_data(data, public, separator=separator, encoding=encoding, decimal=decimal)
            model = estimator_for(find(learner), public)(epsilon=epsilon, schema=public)
            fits = iter([(type(model).__name__, model, table, None)])
        holds = _sampled(fits, epsilon, samples, store, jobs, own=data is not None)
    else:
        holds = _exact(learner, epsilon, records or 2, jobs)
    if not holds:
        raise typer.Exit(FAILED)


def _exact(learner: str | None, epsilon: float, records: int, jobs: int) -> bool:
    from privet.audit.catalogue import cases
    from privet.cli._terminal import PlainTable, progress_bar, say

    chosen = [case for case in cases(epsilon) if learner is None or case.learner == learner]
    table = PlainTable(
        f"All neighbouring tables of up to {records} records",
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
    say(
        "Found: the largest log ratio of an output's probabilities (rho: the largest Renyi "
        "divergence by its order) on two tables that differ in one record; outcomes: whether all "
        "were followed, or some paths. More than the ledger says would be a bug."
    )
    return holds


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
) -> bool:
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
    say(
        "At least: a lower bound on epsilon at 95 % confidence; could show: the most that this "
        "number of runs can. A small bound proves nothing, one above the claim proves a bug."
    )
    if own:
        say(
            "These numbers are exact statements about your table: treat them as sensitive.",
            style="yellow",
        )
    return holds


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


def _readers() -> bool:
    from privet.audit import readers
    from privet.cli._terminal import PlainTable, progress_bar, say

    with progress_bar() as report:
        verdict = readers.audit(rounds=len(readers.SCHEMAS), progress=report("readers"))
    broken = Counter(found.writer for found in verdict.counterexamples)
    table = PlainTable(
        "Tables with and without one hostile record", ["container", "compared", "verdict"]
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
    say(
        "Compared: tables that were read with and without one record more, which had a hostile "
        "value or shape. No other record may be read differently, and no error or warning may "
        "depend on it."
    )
    return verdict.holds
