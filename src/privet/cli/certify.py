"""``privet certify``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli._outputs import Force, check_ending

if TYPE_CHECKING:
    from privet.cli._terminal import PlainTable
    from privet.robustness import Estimate, Guarantee, Promise

#: The columns of the table that show a bound.
_SHOWN = {
    "paper": "paper's bound",
    "pure": "pure",
    "zcdp": "zCDP",
    "approximate": "(epsilon, delta)",
}
#: A larger runs file is refused: it would hold a million scores.
_MOST_BYTES = 1 << 24
#: Expected accuracies on the clean table that are shown if none is given.
_ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)

#: What is said of a model whose schema has a unit.
_PERSONS = (
    "The model counts persons, so rows are persons here: a poisoned one may have any number of "
    "records."
)


def certify(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    rows: Annotated[int, typer.Option(help="How many rows the table has.")],
    poisoned: Annotated[
        str, typer.Option(help="Shares of the rows, or numbers of rows, with commas between.")
    ] = "0.1%,0.5%,1%",
    accuracy: Annotated[
        float | None,
        typer.Option(
            help="The expected accuracy of fits on the clean table. If neither this nor one of the "
            "next two is given, the bounds for several accuracies are shown."
        ),
    ] = None,
    runs_file: Annotated[
        Path | None,
        typer.Option(help="Instead: a text file with one score per line, of independent fits."),
    ] = None,
    attack_success: Annotated[
        float | None,
        typer.Option(help="Instead: the expected success of an attack on clean models."),
    ] = None,
    success: Annotated[
        bool, typer.Option("--success", help="The runs file has success rates of an attack.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Rows may be changed, not only added or removed.")
    ] = False,
    same_plan: Annotated[
        bool,
        typer.Option(
            "--same-plan",
            help="Every fit asks the same questions at the same price: use this ledger's rho.",
        ),
    ] = False,
    confidence: Annotated[float, typer.Option(help="With --runs-file.")] = 0.95,
    plot: Annotated[
        Path | None, typer.Option(help="Write the curve to this SVG file, too.")
    ] = None,
    force: Force = False,
) -> None:
    """Say what a model's privacy guarantees against poisoned rows."""
    from privet.cli._terminal import say
    from privet.outputs import OutputFile, check_output
    from privet.robustness import NoGuarantee, accuracy_after, attack_success_after, curve

    given = sum(option is not None for option in (accuracy, runs_file, attack_success))
    if given > 1:
        raise NoGuarantee("give at most one of --accuracy, --runs-file and --attack-success")
    if success and runs_file is None:
        raise NoGuarantee("--success goes with --runs-file")
    if plot is not None and not given:
        raise NoGuarantee("--plot needs --accuracy, --runs-file or --attack-success to start from")
    inputs = {"the model": model, "the runs file": runs_file}
    if plot is not None:
        check_ending(plot, (".svg",))
        check_output(plot, inputs, replace=force)
    promise, of_persons, classes = _promise(model, same_plan=same_plan)
    whom = [_PERSONS] if of_persons else []
    sizes = [_size(text, rows) for text in poisoned.split(",")]
    if not given:
        _overview(promise, sizes, rows, changed=changed).show()
        for sentence in [
            f"Every fit stays within {promise}.",
            *_overview_sentences(changed),
            *_use(promise, _ACCURACIES[-1], sizes, 1 / classes, changed=changed),
            *whom,
        ]:
            say(sentence)
        return
    of_attack = success or attack_success is not None
    clean: float | Estimate
    if runs_file is not None:
        clean = _estimate(runs_file, confidence)
    else:
        number = attack_success if accuracy is None else accuracy
        assert number is not None
        clean = number
    after = attack_success_after if of_attack else accuracy_after
    found = [after(promise, clean, x, changed=changed) for x in sizes]
    measure = found[0].measure
    drawn = None
    if plot is not None:
        drawn = curve(promise, clean, max(sizes), measure=measure, changed=changed)
    _table(found, sizes, rows).show()
    told = [f"Every fit stays within {promise}.", *_sentences(found[0], clean, changed)]
    if not of_attack:
        start = found[0].clean
        told += _use(promise, start, sizes, 1 / classes, changed=changed)
    told += whom
    for sentence in told:
        say(sentence)
    if plot is not None and drawn is not None:
        with OutputFile(plot, inputs) as output:
            output.write(drawn.to_svg() + "\n")
        say(f"Wrote {plot}.")


def _use(
    promise: Promise, clean: float, sizes: list[int], guess: float, *, changed: bool
) -> list[str]:
    """Say for which numbers of rows nothing useful is promised, and which epsilon would do it.

    A promise is of no use if guessing a class at random is as accurate.
    """
    from privet.robustness import accuracy_after, promise_of

    if clean <= guess:
        return [f"An accuracy of {clean:g} is no more than guessing: nothing can be promised."]
    useless = [
        size
        for size in sizes
        if accuracy_after(promise, clean, size, changed=changed).best <= guess
    ]
    if not useless:
        return []

    def helps(epsilon: float) -> bool:
        one = promise_of(epsilon=epsilon)
        return accuracy_after(one, clean, least, changed=changed).best > guess

    least, low, high = min(useless), 1e-9, 100.0
    told = (
        f"Nothing useful is promised against {least:,} poisoned rows"
        + (" and more" if least < max(sizes) else "")
        + f": no more than {guess:.3g}, which guessing reaches, even if fits on the clean table "
        f"have an accuracy of {clean:.4g}."
    )
    if not helps(low):
        return [f"{told} No epsilon would do."]
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if helps(middle) else (low, middle)
    return [
        f"{told} A fit with epsilon {_two_digits_down(low):g} or less would promise more than that "
        f"against {least:,}, if it were as accurate."
    ]


def _two_digits_down(value: float) -> float:
    """Round down to two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / unit) * unit


def _promise(path: Path, *, same_plan: bool) -> tuple[Promise, bool, int]:
    """Return what a model's card promises, whether to persons, and how many classes it has."""
    from privet.errors import ModelFileError
    from privet.model import load
    from privet.robustness import NoGuarantee, promise_of

    try:
        published = load(path)
    except ModelFileError as error:
        raise NoGuarantee(f"no guarantee can be given: {error}") from None
    if published.schema.classes is None:
        raise NoGuarantee(
            "no guarantee can be given: this model predicts a number, which has no accuracy; "
            "privet.robustness takes any score between 0 and 1"
        )
    promise = promise_of(published, same_plan=same_plan)
    return promise, published.privacy.of_persons, len(published.schema.classes)


def _size(text: str, rows: int) -> int:
    """Return the number of rows that a share or a number stands for."""
    from privet.robustness import NoGuarantee, poisoned_rows

    text = text.strip()
    if text.endswith("%"):
        return poisoned_rows(text, rows)
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise NoGuarantee(
            "--poisoned takes percentages and whole numbers of rows, such as 0.1%,0.5%,36"
        )
    poisoned_rows(0, rows)  # checks the rows
    if int(text) > rows:
        raise NoGuarantee("no guarantee can be given: there are more poisoned rows than rows")
    return int(text)


def _estimate(path: Path, confidence: float) -> Estimate:
    from privet.robustness import NoGuarantee, expected

    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise NoGuarantee(f"{path} is too large: it must have one number per line")
        lines = raw.decode("utf-8-sig").split()
    except (OSError, UnicodeDecodeError):
        raise NoGuarantee(f"cannot read {path}; it must be a text file of numbers") from None
    if lines and not _is_number(lines[0]):
        lines = lines[1:]  # a heading
    if not lines or not all(map(_is_number, lines)):
        raise NoGuarantee(f"{path} must have one number per line, the score of one fit")
    return expected([float(line) for line in lines], confidence=confidence)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _table(found: list[Guarantee], sizes: list[int], rows: int) -> PlainTable:
    from privet.cli._terminal import PlainTable

    below = found[0].measure == "accuracy"
    relation = "at least" if below else "at most"
    columns = ("share", "rows", *_SHOWN.values(), "best")
    table = PlainTable(
        f"Expected {found[0].measure} after poisoning is {relation}", columns, right=columns
    )
    for one, size in zip(found, sizes, strict=True):
        bounds = [one.bounds.get(name) for name in _SHOWN]
        table.add(
            f"{size / rows:.4%}",
            str(size),
            *("-" if bound is None else _digits(bound, below=below) for bound in bounds),
            _digits(one.best, below=below),
            styles=["bold"],
        )
    return table


def _overview(promise: Promise, sizes: list[int], rows: int, *, changed: bool) -> PlainTable:
    """Return the best bounds for several accuracies on the clean table."""
    from privet.cli._terminal import PlainTable
    from privet.robustness import accuracy_after

    columns = ("share", "rows", *(f"{clean:g}" for clean in _ACCURACIES))
    table = PlainTable(
        "Expected accuracy after poisoning is at least, if on the clean table it is",
        columns,
        right=columns,
    )
    for size in sizes:
        found = [accuracy_after(promise, clean, size, changed=changed) for clean in _ACCURACIES]
        table.add(
            f"{size / rows:.4%}", str(size), *(_digits(one.best, below=True) for one in found)
        )
    return table


def _digits(value: float, *, below: bool) -> str:
    """Round a lower bound down and an upper bound up."""
    rounded = math.floor(value * 1000) if below else math.ceil(value * 1000)
    return f"{rounded / 1000:.3f}"


def _sentences(one: Guarantee, clean: Any, changed: bool) -> list[str]:
    what = {"accuracy": "accuracy", "attack success": "success rate of the attack"}[one.measure]
    if one.confidence is None:
        start = f"if it is {one.clean:.4g} on the clean table, as you say"
    else:
        limit = "at least" if one.measure == "accuracy" else "at most"
        start = (
            f"since it is {limit} {one.clean:.4g} on the clean table, by {clean.fits} fits "
            f"(mean {clean.value:.4g}) and with confidence {one.confidence:g}"
        )
    return [
        f"The numbers bound the {what} on the same test rows, expected over the noise of a fit "
        f"with the same settings, {start}. {_scope(changed)}",
        "best: the best of these bounds, of their composition row by row, and of zCDP at all "
        "orders. Shares are rounded up to whole rows.",
    ]


def _overview_sentences(changed: bool) -> list[str]:
    return [
        "Each column starts from an expected accuracy of fits on the clean table, which this "
        "command does not know, and has the best bound on the accuracy on the same test rows, "
        f"expected over the noise of a fit with the same settings. {_scope(changed)}",
        "For your own accuracy, with every bound: give --accuracy, or --runs-file with the "
        "accuracies of several fits, from which a confidence limit is taken. Shares are rounded up "
        "to whole rows.",
    ]


def _scope(changed: bool) -> str:
    counted = "added, removed or changed (which counts twice)" if changed else "added or removed"
    return (
        f"They hold for every way in which that number of rows are {counted} before the fit, by "
        "somebody who does not know its noise. They say nothing about one fitted model."
    )
