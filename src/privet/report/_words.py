"""Sentences that pages, registry entries and model cards share."""

from __future__ import annotations

import math

from privet.ensemble import Ensemble
from privet.export._words import plural, word
from privet.model import EITHER
from privet.privacy import odds_words
from privet.report._facts import Facts
from privet.schema import Categorical, Feature, Numeric
from privet.visible import quoted, visible


def kind_words(facts: Facts) -> str:
    """Say what kind of model it is."""
    predictor = facts.model.predictor
    if isinstance(predictor, Ensemble):
        kind = "additive model" if predictor.additive else "ensemble"
        return f"{kind} of {plural(len(predictor.trees), 'tree')}"
    return f"decision tree with {predictor.n_leaves:,} " + (
        "leaf" if predictor.n_leaves == 1 else "leaves"
    )


def what_words(facts: Facts) -> str:
    """Say what was learnt from what."""
    schema = facts.model.schema
    table = "a table" if schema.table is None else f"the table {quoted(schema.table)}"
    kind = kind_words(facts)
    article = "an" if kind[0] in "aeiou" else "a"
    predicted = (
        f"which of {plural(len(schema.classes), 'class').replace('classs', 'classes')} "
        f"{quoted(schema.target)} is"
        if schema.classes is not None
        else f"the number {quoted(schema.target)}"
    )
    return (
        f"This is {article} {kind} that predicts {predicted} from "
        f"{plural(len(schema.names), 'column')} of {table}."
    )


def who_words(facts: Facts) -> str:
    """Say who is protected."""
    schema = facts.model.schema
    if not facts.guarantee.holds:
        return f"Nobody: the verdict says why. The unit would have been the {facts.whom}."
    if schema.unit is not None or facts.model.privacy.of_persons:
        column = "" if schema.unit is None else f" (told apart by the column {quoted(schema.unit)})"
        return (
            f"Every person in the table{column}, with all of their records together. The numbers "
            "here are per person, however many records there are of one."
        )
    return (
        "Every record of the table, each by itself. If a person has several records, the numbers "
        "here are for one of them: with k records, epsilon is k times as large for the person."
    )


def promise_words(facts: Facts) -> str:
    """Say what epsilon means, in odds."""
    given, whom = facts.guarantee, facts.whom
    whose = "somebody's records are" if whom == "person" else "a certain record is"
    said = (
        f"Whoever gives odds of 1 to 1 that {whose} in the table, and then sees everything that "
        f"was "
        f"released, can be brought to at most {odds_words(given.epsilon)}"
    )
    if given.delta:
        said += (
            f", save by what happens with a probability below about delta = {given.delta:.2g}, "
            "which may tell more"
        )
    return f"{said}. That is so whatever else they know, and whatever is computed from the model."


def not_promised(facts: Facts) -> list[str]:
    """Say what is not promised."""
    if not facts.guarantee.holds:
        return ["Anything at all."]
    card, schema, whom = facts.model.privacy, facts.model.schema, facts.whom
    found = [
        "That nothing can be learnt about a person. What holds for people in general (smokers fall "
        "ill more often) is what a model is for, and can be concluded about those who are not in "
        "the table, too.",
        "That what was declared as public is protected: names of columns, bounds, lists of "
        "categories and classes.",
    ]
    if whom == "record":
        found.append("That several records of one person are protected as one.")
    found.append(
        f"The same for somebody who knows that the {whom} is in the table and asks which values it "
        f"has: exchanging one {whom} for another costs epsilon {card.replace_one_epsilon:.4g}, "
        f"odds "
        f"of {odds_words(card.replace_one_epsilon)}."
        if math.isfinite(card.replace_one_epsilon)
        else f"Anything for exchanging one {whom} for another."
    )
    found.append(
        "Anything about other releases from the same table. What they cost adds up"
        + (
            ": the books below have all that was drawn from this ledger."
            if facts.books
            else "; without a ledger file this report cannot know of them."
        )
    )
    found.append(
        "Anything against somebody who watches the machine while it learns (time, memory, power), "
        "or who can read the table itself."
    )
    if card.protocol is not None:
        found.append(
            "The same if parties of the federation do not behave as assumed; the notes in the "
            "record "
            "say what the guarantee rests on."
        )
    if schema.discovered is None and not schema.drafted:
        found.append(
            "Anything if bounds or lists of the schema were in truth read off the table: that they "
            "are public knowledge is what its author says."
        )
    return found


def accountant_words(facts: Facts) -> str:
    """Say how costs were added up."""
    card = facts.model.privacy
    return {
        "pure": "pure epsilon: the epsilons of questions add up",
        "zCDP": "zero-concentrated differential privacy: rhos add up, and are turned into epsilon "
        "and delta at the end",
        EITHER: "pure epsilon or zCDP, as answers decided; the guarantee is epsilon with delta",
    }.get(card.accountant, "epsilons and deltas of the schema and of the fit were added")


def feature_words(feature: Feature) -> str:
    """Say what is public of a feature."""
    if isinstance(feature, Categorical):
        shown = ", ".join(word(value) for value in feature.values[:12])
        more = len(feature.values) - 12
        return f"one of {shown}" + (f" and {more} more" if more > 0 else "")
    assert isinstance(feature, Numeric)
    return f"{feature.kind}, {feature.shown(feature.low)} to {feature.shown(feature.high)}"


def public_words(facts: Facts) -> list[str]:
    """Say what was taken as public."""
    model = facts.model
    schema, card = model.schema, model.privacy
    found = [f"the names and kinds of {plural(len(schema.names), 'column')}"]
    if schema.discovered is not None:
        delta = f" and delta {schema.discovered.delta:g}" if schema.discovered.delta else ""
        found.append(
            "bounds and lists of categories were found in the table privately, for epsilon "
            f"{schema.discovered.epsilon:g}{delta}, which is part of the total"
        )
    else:
        found.append("bounds of numbers, lists of categories, and the target's classes or bounds")
    if card.rows_declared:
        rows = "" if card.declared_rows is None else f": {card.declared_rows:,} to learn from"
        found.append(f"the number of {facts.whom}s{rows}")
    else:
        found.append(f"not the number of {facts.whom}s: where it was needed, it was bought")
    if schema.drafted:
        found.append(
            "the schema is a DRAFT that was read off the table, which undoes the guarantee"
        )
    return found


def composition_words(facts: Facts) -> str:
    """Say how costs compose."""
    said = (
        "Questions to the same records add up (sequential composition); questions to disjoint "
        "cells "
        "of the table cost their largest (parallel composition): the total is that of the dearest "
        f"path. Accounting: {accountant_words(facts)}."
    )
    if facts.books is not None:
        said += (
            f" Over all releases, a ledger file adds up draws; its total is {facts.books.budget}."
        )
    return said


#: What is made of answers afterwards, at no cost.
POST_PROCESSING = (
    "Class shares and means are worked out from noisy counts (negative ones count as zero); "
    "branches "
    "that say the same are merged when a tree is shown; pruning, calibration and test intervals "
    "use "
    "released numbers only."
)
#: How values are prepared before anything is asked.
PREPROCESSING = (
    "Each record by itself: numbers beyond the schema's bounds count as the bound, missing numbers "
    "and "
    "unknown or missing categories have a bin of their own, records without a known target are "
    "left "
    "out. None of it depends on other records."
)
SIDE_CHANNELS = (
    (
        "floating point",
        "covered: sums are of whole numbers, and noise and selections are drawn exactly, by OpenDP "
        "and by exact samplers of Privet; no noise is a rounded real number",
    ),
    (
        "randomness",
        "covered: from the operating system's cryptographic generator; a seed marks a model as not "
        "private",
    ),
    (
        "errors and warnings",
        "covered: no message has a value of the table, and no record can make a fit fail",
    ),
    (
        "reading files",
        "covered: each record is read alone (privet audit --readers tries to break it)",
    ),
    (
        "time, memory, power, network traffic",
        "not covered: nobody may measure a fit while it runs; afterwards only the model is there",
    ),
    ("swap space and temporary files", "not covered: keep the disk like the table"),
)


def learner_words(facts: Facts) -> str:
    """Name the learner."""
    record = facts.model.record
    name = visible(facts.model.learner)
    return name if record is None else f"{name} ({visible(record.estimator)})"
