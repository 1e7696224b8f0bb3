"""The model on a page: trees to fold, curves, an example to follow, and test scores."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from privet.ensemble import Ensemble
from privet.evaluation import Estimate, Evaluation
from privet.export import to_svg
from privet.export._merged import Part, merged
from privet.export._outline import Noise, answer_words, counts_words
from privet.export._words import branch_words, number, plural, score_words, word
from privet.pictures._importances import importances
from privet.report._charts import bars, intervals
from privet.report._facts import Facts
from privet.report._html import Html, folded, joined, table, tag
from privet.schema import Categorical, Date, Schema
from privet.tree import Cut, Grouping, Node, Tree

#: Trees with more leaves, as they are shown, have no picture: it would be wider than any screen.
_MOST_PICTURED = 16
#: Trees are unfolded at first if they have at most this many leaves.
_MOST_UNFOLDED = 48
#: More nodes are not written into a page, nor deeper trees: the model file has them.
_MOST_NODES, _MOST_LEVELS = 40_000, 64
#: Wider drawings are not made smaller to fit.
_WIDEST_SHRUNK = 1_300
#: Importances of more features are not drawn.
_MOST_BARS = 25


def model_section(facts: Facts) -> Html:
    """Return what there is to see of the model."""
    model = facts.model
    predictor = model.predictor
    trees = [predictor] if isinstance(predictor, Tree) else list(predictor.trees)
    shown = [merged(tree) for tree in trees]
    fits = (
        sum(map(len, shown)) + sum(len(tree.nodes) for tree in trees) <= _MOST_NODES
        and max((tree.depth for tree in trees), default=0) <= _MOST_LEVELS
    )
    if isinstance(predictor, Tree):
        first = _one_tree(facts, predictor, shown[0], fits=fits)
    else:
        first = _ensemble(facts, predictor, shown, fits=fits)
    example = _example(model.schema, predictor, shown) if fits else None
    return tag(
        "section",
        tag("h2", "The model", id="model"),
        first,
        example,
        _support(facts),
        tag("h3", "How well it predicts"),
        *_scores(model.evaluation, facts.whom),
        aria_labelledby="model",
    )


def _too_large() -> Html:
    return tag(
        "p",
        "It is too large to be folded here; privet show prints all of it, and the model file is "
        "plain JSON.",
    )


def _picture(predictor: Tree | Ensemble, label: str, noise: Noise) -> Html:
    """Return a drawing, which scrolls if it is much wider than a page."""
    drawn = to_svg(predictor, noise=noise)
    width = re.search(r'width="([0-9.]+)"', drawn)
    fits = width is not None and float(width[1]) <= _WIDEST_SHRUNK
    kind = "wide fits" if fits else "wide"
    hint = "The picture is wider than the page: scroll it sideways."
    caption = tag("figcaption", hint, class_="screen")  # style hides it where there is room
    picture = Html(drawn)  # export escapes all texts of its own
    return tag(
        "figure", caption, picture, class_=kind, tabindex="0", role="group", aria_label=label
    )


def _one_tree(facts: Facts, tree: Tree, parts: Sequence[Part], *, fits: bool) -> Html:
    schema, noise = tree.schema, facts.model.noise
    leaves = sum(part.test is None for part in parts)
    said = tag(
        "p",
        f"One decision tree with {plural(tree.n_leaves, 'leaf').replace('leafs', 'leaves')} and up "
        f"to {plural(tree.depth, 'test')} on the way to one. Leaves that say the same are shown as "
        "one, and tests that tell nothing apart are left out."
        + (
            " Nothing in it is an exact count: all of it was released privately."
            if facts.guarantee.holds
            else ""
        ),
    )
    picture = None
    if leaves <= _MOST_PICTURED and fits:
        picture = _picture(tree, "Picture of the tree; the same follows as text", noise)
    if not fits:
        return joined((said, _too_large()))
    unfolded = leaves <= _MOST_UNFOLDED
    drawn = _folding(tree, parts, 0, noise, levels=64 if unfolded else 2)
    kind = "block printed" if leaves <= 200 else "block"
    text = tag(
        "details",
        tag("summary", f"The tree for {word(schema.target)}, to fold and unfold"),
        drawn,
        class_=kind,
        open=True,
    )
    return joined((said, picture, text))


def _ensemble(
    facts: Facts, ensemble: Ensemble, shown: Sequence[Sequence[Part]], *, fits: bool
) -> Html:
    schema, noise = ensemble.schema, facts.model.noise
    meaning = (
        "the predicted number"
        if schema.classes is None
        else f"the log odds of {answer_words(schema)} (0 is one chance in two, +1 is 73 %, "
        "-1 is 27 %)"
        if len(schema.classes) == 2
        else "one score for each class, of which the highest wins"
    )
    said = [
        tag(
            "p",
            f"{plural(len(ensemble.trees), 'tree')} with {ensemble.n_leaves:,} leaves in all, "
            f"whose "
            f"scores add up to {meaning}; they start from "
            f"{score_words(ensemble.start, schema)}.",
        )
    ]
    if ensemble.additive and ensemble.trees:
        said.append(
            tag(
                "p",
                "No tree looks at more than one feature. So the trees of a feature add up to one "
                "curve, and the curves are the whole model:",
            )
        )
        said.append(_picture(ensemble, "Curves: what each feature adds to the scores", noise))
    elif ensemble.trees:
        found = sorted(importances(ensemble).items(), key=lambda pair: -pair[1])[:_MOST_BARS]
        used = [(word(name), share) for name, share in found if share > 0]
        if used:
            said.append(
                tag(
                    "figure",
                    bars(
                        [n for n, _ in used],
                        [s for _, s in used],
                        "Part of each feature in the scores",
                    ),
                    tag(
                        "figcaption",
                        "Each feature's part in how much the scores differ, from the published "
                        "trees alone, noise included. Of two features that say the same, one may "
                        "have all.",
                    ),
                )
            )
    if not fits:
        return joined((*said, _too_large()))
    each = [
        folded(
            f"Tree {place + 1}: "
            + (", ".join(word(name) for name in tree.used[:4]) or "the same for all")
            + ("…" if len(tree.used) > 4 else "")
            + f" ({plural(tree.n_leaves, 'leaf').replace('leafs', 'leaves')})",
            _folding(tree, parts, place, noise),
        )
        for place, (tree, parts) in enumerate(zip(ensemble.trees, shown, strict=True))
    ]
    trees = tag(
        "details", tag("summary", f"All {plural(len(each), 'tree')}"), *each, class_="block"
    )
    return joined((*said, trees))


def _folding(
    tree: Tree, parts: Sequence[Part], number_: int, noise: Noise, *, levels: int | None = None
) -> Html:
    """Return a tree as nested lists, which can be folded if ``levels`` says how many are open.

    Thousands of places to fold would take a browser seconds, so an ensemble's trees have none.
    """
    words = [("", "")] * len(parts)
    depth = [0] * len(parts)
    for place, part in enumerate(parts):
        if part.test is not None:
            branches = branch_words(part.test, tree.schema)
            for child, branch in zip(part.children, branches, strict=True):
                words[child], depth[child] = branch, depth[place] + 1
    built: list[Html] = [Html("")] * len(parts)
    for place in reversed(range(len(parts))):  # children come after their parents
        part = parts[place]
        condition = words[place][0] or "every row"
        name = f"t{number_}n{place}"
        if part.test is None:
            built[place] = tag(
                "li", condition, ": ", _leaf(tree, part, noise), id=name, class_="leaf"
            )
            continue
        by = tag("span", f" — look at {word(part.test.feature)}", class_="by")
        below = tag("ul", *(built[child] for child in part.children))
        said = joined((condition if place else "Start", by))
        inner = (
            (tag("span", said, class_="at"), below)
            if levels is None
            else (folded(said, below, opened=depth[place] < levels),)
        )
        built[place] = tag("li", *inner, id=name)
    return tag("ul", built[0], class_="tree")


def _leaf(tree: Tree, part: Part, noise: Noise) -> Html:
    """Return what leaves with one answer say, with the support that was released."""
    schema, leaves = tree.schema, _leaves(tree, part.places)
    counts = _counts(leaves, schema, noise)
    if tree.scores:
        assert isinstance(part.answer, tuple)
        return joined((tag("b", score_words(part.answer, schema)), counts))
    if schema.classes is None:
        assert isinstance(part.answer, float)
        return joined((tag("b", number(part.answer)), counts))
    assert isinstance(part.answer, int)
    shares = [leaf.value[part.answer] for leaf in leaves]
    low, high = min(shares), max(shares)
    label = tag("b", word(schema.classes[part.answer]))
    if low == high == 1:
        return joined((label, counts))  # a drawn label, not an estimate
    said = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    mean = sum(shares) / len(shares)
    bar = Html(f'<span class="share" style="--p:{100 * mean:.1f}%" aria-hidden="true"></span>')
    return joined((label, " ", bar, said, counts))


def _leaves(tree: Tree, places: Sequence[int]) -> list[Node]:
    found, waiting = [], list(places)
    while waiting:
        node = tree.nodes[waiting.pop()]
        waiting += node.children
        if node.test is None:
            found.append(node)
    return found


def _counts(leaves: Sequence[Node], schema: Schema, noise: Noise) -> Html | None:
    """Return released counts, added up over leaves that all have them."""
    end = "; no more than noise" if counts_words(leaves, schema, noise)[1] else ""
    classes = schema.classes or ()
    rows = [leaf.released.get("class_counts") for leaf in leaves]
    if classes and all(isinstance(row, tuple) and len(row) == len(classes) for row in rows):
        sums = [sum(column) for column in zip(*rows, strict=True)]
        said = ", ".join(f"{word(c)} {n:,}" for c, n in zip(classes, sums, strict=True))
        return tag("small", f" noisy counts: {said}{end}", class_="by")
    sizes = [leaf.released.get("count") for leaf in leaves]
    if all(isinstance(size, int) for size in sizes):
        return tag("small", f" noisy count: {sum(sizes):,}{end}", class_="by")  # type: ignore[arg-type]
    return None


def _support(facts: Facts) -> Html:
    card, schema = facts.model.privacy, facts.model.schema
    said = [f"{line[0].upper()}{line[1:]}." for line in card.count_words(schema.classes)]
    if card.declared_rows is not None:
        said.append(f"{card.declared_rows:,} rows were declared as public.")
    noise = facts.noise_of_counts
    if noise is not None:
        low, high = noise
        width = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
        said.append(
            f"The noise in a bought count has a standard deviation of about {width}: a count "
            "within three times that of zero may be of nobody at all."
            if card.protocol is None
            else f"The noise in one party's count has a standard deviation of about {width}. A "
            "released count is a sum over all parties: its noise is larger, by the square root of "
            "how many they are, and within three times that of zero it may be of nobody at all."
        )
    return joined((tag("h3", "Support and uncertainty"), *(tag("p", line) for line in said)))


# An example -------------------------------------------------------------------------------------


def _example(
    schema: Schema, predictor: Tree | Ensemble, shown: Sequence[Sequence[Part]]
) -> Html | None:
    """Return a form for one example, and the model as the script reads it."""
    used = predictor.used
    if not used:
        return None
    places = {name: place for place, name in enumerate(used)}
    fields = [_field(place, name, schema) for place, name in enumerate(used)]
    form = tag(
        "form",
        tag(
            "p",
            "Values stay in this page: nothing is sent or kept. Leave a field empty if the "
            "value is missing.",
            class_="quiet",
        ),
        tag("div", *fields, class_="fields"),
        tag("button", "Follow it", type="submit"),
        tag("output", id="example-answer", aria_live="polite"),
        id="example",
        class_="example",
        hidden=True,
        autocomplete="off",
    )
    return joined(
        (
            tag("h3", "Follow one example", class_="screen"),
            tag(
                "p",
                "Type in values by hand: the page shows the way through the model, and what it "
                "says at the end.",
                class_="screen",
            ),
            tag("noscript", tag("p", "This needs JavaScript. All else on this page does not.")),
            form,
            Html(
                f'<script type="application/json" id="model-data">{_data(predictor, shown, places)}'
                "</script>"
            ),
        )
    )


def _field(place: int, name: str, schema: Schema) -> Html:
    feature, label = schema.features[name], f"f{place}"
    if isinstance(feature, Categorical):
        options = [tag("option", "other or missing", value="", selected=True)]
        options += [tag("option", word(v), value=k) for k, v in enumerate(feature.values)]
        control, hint = tag("select", *options, id=label, name=label), None
    elif isinstance(feature, Date):
        low, high = feature.written(feature.low), feature.written(feature.high)
        control = tag("input", type="date", id=label, name=label, min=low, max=high)
        hint = f"{low} to {high}"
    else:
        control = tag("input", type="number", step="any", id=label, name=label)
        hint = f"{number(feature.low)} to {number(feature.high)}; beyond counts as the bound"
    return tag(
        "div",
        tag("label", word(name), for_=label),
        control,
        None if hint is None else tag("small", hint),
    )


def _data(
    predictor: Tree | Ensemble, shown: Sequence[Sequence[Part]], places: dict[str, int]
) -> str:
    """Return the model as the script reads it: JSON in which no markup can begin or end."""
    schema = predictor.schema
    trees: list[dict[str, Any]] = []
    of = [predictor] if isinstance(predictor, Tree) else predictor.trees
    for tree, parts in zip(of, shown, strict=True):
        plain: dict[str, Any] = {
            "shown": [
                [None, list(part.answer) if isinstance(part.answer, tuple) else 0]
                if part.test is None
                else [_test(part.test, places), list(part.children)]
                for part in parts
            ]
        }
        if isinstance(predictor, Tree):
            words = [""] * len(parts)
            for part in parts:
                if part.test is not None:
                    for child, branch in zip(
                        part.children, branch_words(part.test, schema), strict=True
                    ):
                        words[child] = branch[0]
            plain["words"] = words
            plain["exact"] = [
                [None, list(node.value)]
                if node.test is None
                else [_test(node.test, places), list(node.children)]
                for node in tree.nodes
            ]
        trees.append(plain)
    whole = {
        "target": word(schema.target),
        "classes": None if schema.classes is None else [word(value) for value in schema.classes],
        "bounds": None if schema.bounds is None else list(schema.bounds),
        "features": [word(name) for name in places],
        "start": None if isinstance(predictor, Tree) else list(predictor.start),
        "trees": trees,
    }
    text = json.dumps(whole, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _test(test: Cut | Grouping, places: dict[str, int]) -> list[Any]:
    if isinstance(test, Cut):
        return [places[test.feature], list(test.edges), test.missing]
    return [places[test.feature], None, [*test.children, test.other]]


# Scores -----------------------------------------------------------------------------------------


def _scores(found: Evaluation | None, whom: str) -> list[Html | None]:
    if found is None:
        return [
            tag(
                "p",
                "Not known: no records were set aside to test it on. A fit with test_share, or "
                "privet evaluate on other rows, tells it privately.",
            )
        ]
    measures = list(found.measures())
    groups: list[tuple[str, Estimate]] = []
    if found.by is not None:
        for group, part in found.of_groups().items():
            name, one = next(part.measures())
            groups.append((f"{name}, {word(found.by)} = {word(group)}", one))
    share = "" if found.share is None else f" ({found.share:.0%} of the table)"
    said: list[Html | None] = [
        tag(
            "p",
            f"Measured on other {whom}s than it was learnt from{share}, about "
            f"{found.n_records:,.0f} of them by a noisy count. Intervals are of 95 %: they cover "
            "both chance in who was asked and the noise that protects them.",
        ),
        _score_table("Test score", measures),
        _figure(
            intervals(
                [(n, e) for n, e in measures if "loss" not in n and "error" not in n],
                "Test score with intervals",
            )
        ),
    ]
    if groups:
        said += [
            tag("h4", f"By {word(found.by or '')}"),
            _score_table(f"Test score by {word(found.by or '')}", groups),
            _figure(intervals(groups, "Test score of each group with intervals")),
            tag(
                "p",
                "Where the intervals of two groups do not meet, the model is better for one of "
                "them. Groups with few "
                f"{whom}s have wide intervals, or none: that is a price of protecting them.",
                class_="quiet",
            ),
        ]
    return said


def _figure(chart: Html | None) -> Html | None:
    return None if chart is None else tag("figure", chart)


def _digits(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"


def _score_table(title: str, rows: Sequence[tuple[str, Estimate]]) -> Html:
    return table(
        title,
        ("measure", "estimate", "from", "to"),
        [
            (name, *(_digits(value) for value in (one.value, one.low, one.high)))
            if one.enough
            else (name, "too few records", "", "")
            for name, one in rows
        ],
        numbers=(1, 2, 3),
    )
