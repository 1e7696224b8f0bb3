"""A model card in Markdown, as hubs of models show them: a head of metadata, then the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from privet import __version__
from privet.errors import ReportError
from privet.evaluation import Estimate
from privet.privacy import odds_words
from privet.report import _words as say
from privet.report._facts import Facts, State
from privet.visible import visible

#: What Markdown would take for markup; what HTML would, becomes an entity.
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")


def to_model_card(facts: Facts) -> str:
    """Return the card.

    Raises
    ------
    ReportError
        If something is attached that is for the owner's eyes only: cards are published.
    """
    if facts.owners_only:
        raise ReportError(
            "an attached result is for the owner's eyes only, and a model card is for everybody: "
            "leave it out"
        )
    model, given = facts.model, facts.guarantee
    card, schema, found = model.privacy, model.schema, model.evaluation
    task = "tabular-regression" if schema.classes is None else "tabular-classification"
    head = [
        "---",
        "library_name: privet",
        f"pipeline_tag: {task}",
        "tags:",
        "  - differential-privacy",
        "  - decision-tree",
        f"  - {re.sub(r'[^a-z0-9]+', '-', model.learner.lower())[:40].strip('-') or 'privet'}",
        "---",
        "",
    ]
    verdict = {
        State.PRIVATE: "Private: the guarantee holds as described.",
        State.DOUBTFUL: "Private, with doubts:",
        State.NOT_PRIVATE: "NOT PRIVATE. No guarantee holds; do not publish. Why:",
    }[facts.state]
    reasons = facts.reasons if facts.state is State.NOT_PRIVATE else facts.doubts
    lines = [
        *head,
        f"# {_plain(schema.target)}",
        "",
        _plain(say.what_words(facts)),
        "",
        "## Privacy",
        "",
        f"**{verdict}**",
        "",
        *(f"- {_plain(line)}" for line in reasons),
        *([""] if reasons else []),
        f"**Who is protected.** {_plain(say.who_words(facts))}",
        "",
    ]
    if given.holds:
        lines += [
            _plain(say.promise_words(facts)),
            "",
            *_table(
                ("what", "value"),
                [
                    ("epsilon, at most", f"{given.epsilon:.6g}"),
                    ("delta", f"{given.delta:.3g}"),
                    ("neighbouring tables", card.adjacency),
                    ("odds of 1 to 1 become at most", odds_words(given.epsilon)),
                    (
                        "members found at most, 1 % false alarms",
                        f"{given.true_positives(0.01):.2%}",
                    ),
                    (
                        "members found at most, 10 % false alarms",
                        f"{given.true_positives(0.1):.2%}",
                    ),
                    ("advantage over guessing, at most", f"{given.advantage:.2%}"),
                ],
            ),
        ]
    lines += ["### What is not promised", ""]
    lines += [f"- {_plain(line)}" for line in say.not_promised(facts)]
    lines += ["", "## How values are read", "", _plain(say.PREPROCESSING), "", "## Evaluation", ""]
    if found is None:
        lines += ["Not known: no records were set aside for a test.", ""]
    else:
        rows = [
            (name, f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}")
            if one.enough
            else (name, "too few records", "")
            for name, one in _measures(facts)
        ]
        lines += _table(("measure", "estimate", "95 % interval"), rows)
    lines += ["## Where the budget went", ""]
    spending = facts.spending
    digits, total = spending.shown
    shown = [
        (row.what, row.where, row.how, digit)
        for row, digit in zip(spending.rows, digits, strict=True)
    ]
    if spending.known:
        shown.append(("**total**", "", "", total))
    lines += _table(("question", "asked of", "mechanism", spending.unit), shown)
    lines += ["## Training", ""]
    record = model.record
    facts_of = [("learner", say.learner_words(facts)), ("model", say.kind_words(facts))]
    if record is not None:
        facts_of += [("made on", record.date)]
        facts_of += [(f"version of {name}", one) for name, one in record.versions.items()]
        facts_of += [(name, str(value)) for name, value in record.settings.items()]
    lines += _table(("what", "value"), facts_of)
    lines += ["### What was taken as public", ""]
    lines += [f"- {_plain(line)}" for line in say.public_words(facts)]
    lines += [
        "",
        *_table(
            ("column", "public"),
            [(name, say.feature_words(feature)) for name, feature in schema.features.items()],
        ),
    ]
    lines += [
        "## How to use it",
        "",
        "```python",
        "import privet",
        "",
        'model = privet.load("model.json")',
        "model.predict(table)",
        "```",
        "",
        f"Written by Privet {__version__}.",
    ]
    return "\n".join(lines) + "\n"


def _measures(facts: Facts) -> list[tuple[str, Estimate]]:
    found = facts.model.evaluation
    assert found is not None
    rows = list(found.measures())
    if found.by is not None:
        for group, part in found.of_groups().items():
            name, one = next(part.measures())
            rows.append((f"{name}, {found.by} = {group}", one))
    return rows


def _plain(text: object) -> str:
    """Return text in which nothing is markup."""
    return escape(_MARKUP.sub(r"\\\1", visible(str(text))), quote=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(_bold(cell) for cell in cells) + " |"

    return [line(head), "| " + " | ".join("---" for _ in head) + " |", *map(line, rows), ""]


def _bold(cell: str) -> str:
    return cell if cell == "**total**" else _plain(cell)
