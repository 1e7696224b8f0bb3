"""The page: in plain words, the model, the books, the record."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from privet import __version__
from privet.export._words import word
from privet.privacy import mechanism_words, odds_words, place_words, question_words
from privet.privacy.ledger import readable
from privet.report import _words as say
from privet.report._charts import left_of, trade_off, waterfall
from privet.report._facts import Facts, State
from privet.report._html import Html, folded, joined, listed, table, tag
from privet.report._html import facts as pairs
from privet.report._model import model_section
from privet.report._style import policy, script, style

#: More entries, features and draws are not shown.
_MOST_ENTRIES, _MOST_FEATURES, _MOST_DRAWS = 1_000, 500, 500
#: Charts of more rows are left out; the tables have them all.
_MOST_BARS = 40
#: False-positive rates at which the attacker's best chance is told.
_RATES = (0.01, 0.1)


def to_html(facts: Facts) -> str:
    """Return the page."""
    schema = facts.model.schema
    title = f"Privacy report: {word(schema.target)}"
    if schema.table is not None:
        title += f", learnt from {word(schema.table)}"
    body = tag(
        "body",
        tag("a", "To the content", href="#content", class_="skip"),
        tag(
            "header",
            tag("h1", title),
            tag("p", _subtitle(facts), class_="quiet"),
            tag(
                "nav",
                tag(
                    "ul",
                    *(
                        tag("li", tag("a", name, href=f"#{place}"))
                        for name, place in (
                            ("In plain words", "words"),
                            ("The model", "model"),
                            ("The books", "books"),
                            ("The record", "record"),
                        )
                    ),
                ),
                aria_label="Sections",
            ),
            class_="top",
        ),
        tag(
            "main",
            _verdict(facts),
            _plain_words(facts),
            model_section(facts),
            _books(facts),
            _record(facts),
            id="content",
        ),
        tag(
            "footer",
            f"Written by Privet {__version__} from the model file"
            + (", and the table's ledger file" if facts.books else "")
            + (f", with {len(facts.attached)} attached results" if facts.attached else "")
            + ". The page needs no network, and no script to be read.",
        ),
        Html(f"<script>{script()}</script>"),
    )
    head = joined(
        (
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'),
            tag("title", title),
            Html(f"<style>{style()}</style>"),
        )
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n{tag("head", head)}\n{body}\n</html>\n'


def _subtitle(facts: Facts) -> str:
    record = facts.model.record
    if record is None:
        return f"Learner: {say.learner_words(facts)}. The model file does not say when it was made."
    made = f"Privet {record.versions.get('privet', '(version not known)')}"
    return f"Learner: {say.learner_words(facts)}; made on {record.date} by {made}."


# In plain words ---------------------------------------------------------------------------------


def _verdict(facts: Facts) -> Html:
    """Return the verdict, which follows from the state alone."""
    owners = None
    if facts.owners_only:
        owners = tag(
            "div",
            tag("p", "For the owner's eyes only", class_="word"),
            tag(
                "p",
                "An attached result is an exact statement about the rows, which no budget "
                "covers. Do not publish this page; write another one without it.",
            ),
            class_="verdict bad",
            role="note",
        )
    if facts.state is State.NOT_PRIVATE:
        inner: Sequence[object] = (
            tag("p", "NOT PRIVATE", class_="word"),
            tag("p", "No guarantee holds for this model. Do not publish it. Why:"),
            listed(facts.reasons),
        )
        kind = "bad"
    elif facts.state is State.DOUBTFUL:
        inner = (
            tag("p", "Private, with doubts", class_="word"),
            tag(
                "p",
                "The guarantee holds as described below. But released numbers, or the amount "
                "itself, give reason not to publish it yet:",
            ),
            listed(f"{line}." for line in facts.doubts),
        )
        kind = "doubt"
    else:
        inner = (
            tag("p", "Private", class_="word"),
            tag(
                "p",
                "The guarantee holds as described below, under the assumptions that the record "
                "names. This is computed from the model's books"
                + (" and the table's ledger." if facts.books else "."),
            ),
        )
        kind = "good"
    return joined(
        (owners, tag("div", *inner, class_=f"verdict {kind}", role="note", aria_label="Verdict"))
    )


def _plain_words(facts: Facts) -> Html:
    given, card = facts.guarantee, facts.model.privacy
    parts: list[object] = [
        tag("h2", "In plain words", id="words"),
        tag("p", say.what_words(facts)),
        tag("h3", "Who is protected"),
        tag("p", say.who_words(facts)),
        tag("h3", "What the numbers mean"),
    ]
    if not given.holds:
        parts.append(
            tag(
                "p",
                "Nothing is promised, so there is no number to explain: an attacker may find "
                "out everything that the model was learnt from.",
            )
        )
    else:
        delta = f", delta {given.delta:.2g}" if given.delta else ""
        chances = [given.true_positives(rate) for rate in _RATES]
        advantage = given.advantage
        spent = (
            ""
            if math.isclose(card.epsilon, given.epsilon)
            else f" (spent: {card.epsilon:.4g}, which is itself an answer, so that the promise is "
            "what could have been spent)"
        )
        parts += [
            tag("p", say.promise_words(facts)),
            tag(
                "ul",
                _figure(f"ε ≤ {given.epsilon:.4g}", f"privacy loss per {facts.whom}{delta}{spent}"),
                _figure(odds_words(given.epsilon), "the most that odds of 1 to 1 can become"),
                *(
                    _figure(
                        f"{chance:.1%}",
                        f"of members found at most, at {rate:.0%} false alarms",
                    )
                    for rate, chance in zip(_RATES, chances, strict=True)
                ),
                _figure(f"{advantage:.1%}", "advantage over guessing, at most"),
                class_="figures",
            ),
            tag("h3", "An attacker's best chance"),
            tag(
                "p",
                f"Suppose that somebody knows everything but one {facts.whom}, and wants to find "
                f"out "
                "whether that one is in the table. They may call some who are not in it members by "
                "mistake (false alarms); the more of these they accept, the more members they "
                "find. "
                "No attack, known or not, can do better than this:",
            ),
            table(
                "The most that an attacker can do",
                ("false alarms accepted", "members found, at most", "by guessing"),
                [
                    (f"{rate:.0%}", f"{chance:.2%}", f"{rate:.0%}")
                    for rate, chance in zip(_RATES, chances, strict=True)
                ],
                numbers=(0, 1, 2),
                total=("advantage (found less false alarms)", f"{advantage:.2%}", "0%"),
            ),
            tag(
                "figure",
                trade_off(
                    given,
                    "Members found at most, against others taken for members: "
                    + ", ".join(
                        f"{chance:.1%} at {rate:.0%}"
                        for rate, chance in zip(_RATES, chances, strict=True)
                    )
                    + ". Guessing is the diagonal.",
                ),
                tag(
                    "figcaption",
                    f"Computed by {facts.bound_words} (docs/proofs/odds.md). Dashed: guessing.",
                ),
            ),
        ]
    parts += [tag("h3", "What is not promised"), listed(say.not_promised(facts))]
    return tag("section", *parts, aria_labelledby="words")


def _figure(number: str, meaning: str) -> Html:
    return tag("li", tag("b", number), tag("span", meaning))


# The books --------------------------------------------------------------------------------------


def _books(facts: Facts) -> Html:
    card, spending = facts.model.privacy, facts.spending
    digits, total = spending.shown
    names = [row.what if row.times == 1 else f"{row.times} x {row.what}" for row in spending.rows]
    parts: list[object] = [tag("h2", "The books", id="books")]
    unit = spending.unit
    if spending.known and math.isfinite(spending.total):
        running, rows = 0.0, []
        for row, name, shown in zip(spending.rows, names, digits, strict=True):
            running += float(shown)
            places = len(shown.partition(".")[2])
            rows.append((name, row.where, row.how, shown, f"{running:.{places}f}"))
        parts += [
            tag("h3", f"Where {unit} went"),
            tag(
                "p",
                f"The total is what the dearest {facts.whom} paid, question by question. A "
                f"{facts.whom} lies in one cell of every level, in one leaf, and in one portion of "
                "the table: questions to other cells cost others, and are not in these rows.",
            ),
        ]
        if len(rows) <= _MOST_BARS:
            amounts = [float(row.amount) for row in spending.rows]
            chart = waterfall(names, amounts, [*digits, total])
            parts.append(
                tag(
                    "figure",
                    chart,
                    tabindex="0",
                    role="group",
                    aria_label="Chart of where the total went",
                )
            )
        parts.append(
            table(
                f"What the dearest {facts.whom} paid, in {unit}; the rows add up to the total",
                ("question", "asked of", "mechanism", unit, "so far"),
                rows,
                numbers=(3, 4),
                total=("total", "", "", total, total),
                class_="path",
            )
        )
        if unit == "rho" and math.isfinite(card.epsilon):
            parts.append(
                tag(
                    "p",
                    f"Rho {card.rho:.4g} is epsilon {card.epsilon:.4g} at delta {card.delta:.2g}"
                    + (
                        ", what the schema cost added in epsilon and delta."
                        if card.accountant not in ("zCDP", "pure or zCDP")
                        else "."
                    ),
                )
            )
    else:
        why = (
            "Something was released that no budget covers, so there is no total to add up to."
            if not math.isfinite(spending.total)
            else "This file does not say which entries lie on the dearest path (it has no record), "
            "so they are shown below without a sum: entries of one level, or of leaves at several "
            "levels, are paid by different records."
        )
        parts += [tag("h3", f"Where {unit} went"), tag("p", why)]
    parts.append(
        folded(
            f"Everything that was asked: {len(card.entries):,} entries",
            table(
                "All entries of the model's books, also off the dearest path",
                ("no.", "question", "asked of", "cells", "mechanism", unit),
                [
                    (
                        str(place + 1),
                        question_words(entry.question),
                        place_words(entry.place),
                        f"{entry.cells:,}",
                        mechanism_words(entry.mechanism),
                        f"{entry.epsilon if unit == 'epsilon' else entry.rho:.4g}",
                    )
                    for place, entry in enumerate(card.entries[:_MOST_ENTRIES])
                ],
                numbers=(0, 3, 5),
            ),
            None
            if len(card.entries) <= _MOST_ENTRIES
            else tag("p", f"{len(card.entries) - _MOST_ENTRIES:,} more are in the model file."),
        )
    )
    parts += [tag("h3", "The table's ledger"), *_ledger(facts)]
    return tag("section", *parts, aria_labelledby="books")


def _ledger(facts: Facts) -> list[object]:
    books = facts.books
    if books is None:
        return [
            tag(
                "p",
                "No ledger file was given, so this page cannot say what else was released from the "
                "table, nor what is left of its budget. If there is none, nobody adds up what "
                "several releases cost.",
            )
        ]
    found, how = facts.draws
    own = {draw.id for draw in found}
    shown = books.withdrawals[-_MOST_DRAWS:]
    limit = float(books.budget.limit)
    bar = left_of(
        [
            (f"draw {draw.id}: {draw.purpose}", float(draw.counted), draw.id in own)
            for draw in books.withdrawals
        ],
        limit,
        f"Of {books.budget}, {readable(books.spent, books.budget)} is spent and "
        f"{readable(books.left, books.budget)} is left.",
    )
    unit = "epsilon" if books.budget.accountant == "pure" else "rho"
    rows = [
        (
            str(draw.id),
            time.strftime("%Y-%m-%d", time.gmtime(draw.reserved_at)),
            draw.purpose,
            draw.asked,
            "settled" if draw.spent is not None else "reserved, counts in full",
            f"{float(draw.counted):.6g}",
        )
        for draw in shown
    ]
    which = {
        "this": "The marked draw is this model's: the model names it, and the entries agree.",
        "alike": "The model does not name its draw. The marked ones have exactly its entries: "
        "it is one of them.",
        "none": "No draw has this model's entries: it was not paid for from this ledger.",
    }[how]
    deltas: list[object] = []
    if books.budget.threshold_delta:
        deltas.append(
            tag(
                "p",
                f"Delta of thresholds: {float(books.spent_delta):.3g} spent, "
                f"{float(books.left_delta):.3g} left.",
            )
        )
    return [
        pairs(
            (
                ("total, for ever", str(books.budget)),
                ("spent so far", readable(books.spent, books.budget)),
                ("left", readable(books.left, books.budget)),
            )
        ),
        tag(
            "figure",
            bar,
            tag(
                "figcaption",
                "From left to right: what draws took (orange: this model; blue: others), and what "
                "is left (pale).",
            ),
        ),
        tag("p", which),
        table(
            "All draws, in order"
            if len(shown) == len(books.withdrawals)
            else f"The last {len(shown)} draws",
            ("draw", "day", "purpose", "asked for", "state", f"counted {unit}"),
            rows,
            numbers=(0, 5),
            marked=[place for place, draw in enumerate(shown) if draw.id in own],
            total=("", "", "", "", "all draws", f"{float(books.spent):.6g}"),
        ),
        *deltas,
    ]


# The record -------------------------------------------------------------------------------------


def _record(facts: Facts) -> Html:
    model = facts.model
    card, schema, record = model.privacy, model.schema, model.record
    given = facts.guarantee
    settings: list[tuple[object, object]] = [("learner", say.learner_words(facts))]
    if record is None:
        settings.append(("date, versions, settings", "not in the model file"))
    else:
        settings += [("made on", record.date)]
        settings += [(f"version of {name}", number) for name, number in record.versions.items()]
        settings += [(name, _setting(value)) for name, value in record.settings.items()]
    target = (
        "classes: " + ", ".join(word(value) for value in schema.classes[:50])
        if schema.classes is not None
        else f"number, {schema.bounds[0]:g} to {schema.bounds[1]:g}"  # type: ignore[index]
    )
    features = [
        (word(name), say.feature_words(feature))
        for name, feature in list(schema.features.items())[:_MOST_FEATURES]
    ]
    more = len(schema.features) - len(features)
    trust = (
        "one owner holds all rows and adds the noise (central model); the analyst's code sees only "
        "answers"
        if card.protocol is None
        else f"several parties, each behind a wall of its own (federated model); protocol: "
        f"{card.protocol}"
    )
    delta = f", delta {card.delta:.2g}" if card.delta else ""
    rho = "" if card.accountant == "pure" else f"; rho {card.rho:.4g}"
    parts: list[object] = [
        tag("h2", "The record", id="record"),
        tag(
            "p",
            "Laid out along the questions that NIST SP 800-226 asks about a guarantee of "
            "differential privacy, from the guarantee at the top to the data at the bottom. Where "
            "Privet cannot know an answer, the page says so.",
        ),
        tag("h3", "The guarantee: parameters and unit"),
        pairs(
            (
                ("private", "yes" if facts.state is not State.NOT_PRIVATE else "NO"),
                (
                    "asked for",
                    f"epsilon {card.requested_epsilon:.6g}"
                    + (f", delta {card.requested_delta:.2g}" if card.requested_delta else ""),
                ),
                ("spent", f"epsilon {card.epsilon:.6g}{delta}{rho}"),
                ("neighbouring tables", card.adjacency),
                (f"replacing one {facts.whom}", f"epsilon {card.replace_one_epsilon:.6g}{delta}"),
                ("unit of privacy", say.who_words(facts)),
                ("accounting", say.accountant_words(facts)),
                (
                    "comparing with others",
                    "compare epsilons only for the same unit and the same neighbours: for replaced "
                    "records take the line above; for other variants compare the attacker's best "
                    "chances, which mean the same everywhere"
                    + (
                        ""
                        if not given.holds
                        else f" (here {given.true_positives(0.01):.2%} at 1 % false alarms)"
                    ),
                ),
                ("several releases", say.composition_words(facts)),
            )
        ),
        tag("h3", "Algorithms and their correctness"),
        table(
            "Mechanisms, and where they are proved private",
            ("mechanism", "proof note"),
            facts.mechanisms,
        ),
        pairs(settings),
        listed(card.notes) if card.notes else None,
        tag("p", f"Made of answers afterwards, at no cost: {say.POST_PROCESSING}"),
        tag("h3", "Utility, and bias across groups"),
        tag("p", _utility(facts)),
        tag("h3", "Evidence"),
        *_attached(facts),
        tag("h3", "Side channels and security of the implementation"),
        table("Side channels", ("channel", "state"), say.SIDE_CHANNELS),
        tag("h3", "Trust, threats and access"),
        pairs(
            (
                ("trust model", trust),
                (
                    "against whom",
                    "anybody who sees the model and everything else that is public, with "
                    "any knowledge and any computer (docs/threat-model.md)",
                ),
                ("access to the table", "not covered: who may read the rows is the owner's to say"),
                (
                    "access to the model",
                    "needs none: it may be published"
                    if facts.state is State.PRIVATE
                    else "see the verdict",
                ),
            )
        ),
        tag("h3", "The data, and what was taken as public"),
        listed(say.public_words(facts)),
        tag("p", say.PREPROCESSING),
        tag(
            "p",
            "How the data were collected, and with whose consent: not covered; Privet cannot "
            "know. The owner adds it where this page is filed.",
        ),
        folded(
            f"The schema: {len(schema.features):,} features and the target",
            table(
                "Schema",
                ("column", "what is public of it"),
                [(f"{word(schema.target)} (target)", target), *features],
            ),
            None if more <= 0 else tag("p", f"{more:,} more features are in the model file."),
            printed=len(features) <= 100,
        ),
    ]
    return tag("section", *parts, aria_labelledby="record")


def _setting(value: Any) -> str:
    if value is None:
        return "automatic, or not given"
    return (
        {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


def _utility(facts: Facts) -> str:
    found = facts.model.evaluation
    if found is None:
        return (
            "Not covered: no records were set aside for a test, so neither the quality of the "
            "model "
            "nor how it differs between groups is known."
        )
    name, one = next(found.measures())
    said = (
        f"{name.capitalize()} {one.value:.3g} ({one.low:.3g} to {one.high:.3g}) on other "
        f"{facts.whom}s; details above."
        if one.enough
        else "Too few records were set aside to say anything."
    )
    if found.by is None:
        return f"{said} Bias across groups: not covered, no column was named (test_by)."
    return f"{said} By {word(found.by)}: see the groups above."


def _attached(facts: Facts) -> list[object]:
    if not facts.attached:
        return [
            tag(
                "p",
                "No audit's result is attached. ",
                tag("code", "privet audit --out"),
                " writes one for the learner; with ",
                tag("code", "--membership"),
                ", an attack on the owner's rows, for the owner's eyes only.",
            )
        ]
    found: list[object] = []
    for one in facts.attached:
        state = "nothing found against the guarantee" if one.holds else "CONTRADICTS the guarantee"
        found += [
            tag("h4", one.title),
            tag(
                "p",
                f"{one.date}: {state}."
                + (" For the owner's eyes only." if one.owners_only else ""),
            ),
            table(one.title, one.head, one.rows),
            *(tag("p", note, class_="quiet") for note in one.notes),
        ]
    return found
