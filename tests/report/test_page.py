"""The page: what it says is computed, adds up, and cannot be changed by hostile names."""

import datetime
import json
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privet
from privet import Budget, Categorical, Date, Integer, LedgerStore, Numeric, Schema
from privet.datasets import PATIENTS, STAYS, make_patients, make_stays
from privet.errors import ReportError
from privet.export._merged import merged
from privet.export._words import word
from privet.model import Model, load
from privet.privacy import Guarantee
from privet.report import Attachment, Facts, State, to_html, to_model_card
from privet.report._facts import rounded
from privet.report._html import Html, tag, text
from privet.report._model import _folding
from privet.report._style import DARK, LIGHT, SHAPES, TEXTS
from privet.schema import Discovered
from privet.tree import Cut, Node, Tree

from .pages import read, rows_of, table_named

FOLDER = Path(__file__).parents[1] / "golden" / "seeded"
TABLE = pa.table(make_patients(4_000, seed=5))
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m'


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("books") / "patients"
    return LedgerStore.create(path, Budget(4.0), columns=PATIENTS.columns, table=PATIENTS.table)


@pytest.fixture(scope="module")
def tree(ledger):
    privet.PrivateTreeClassifier(0.5, PATIENTS, ledger=ledger).fit(TABLE)
    return privet.PrivateTreeClassifier(
        1.0, PATIENTS, ledger=ledger, test_share=0.25, test_by="sex", max_depth=4
    ).fit(TABLE)  # with more than 16 leaves it would have no picture


@pytest.fixture(scope="module")
def boosted():
    return privet.PrivateBoostingClassifier(1.0, PATIENTS, delta=1e-6, n_rounds=4).fit(TABLE)


@pytest.fixture(scope="module")
def additive():
    return privet.PrivateAdditiveClassifier(1.0, PATIENTS).fit(TABLE)


@pytest.fixture(scope="module")
def persons():
    rows = pa.table(make_stays(1_500, seed=1))
    return privet.PrivateTreeClassifier(1.0, STAYS).fit(rows)


@pytest.fixture(scope="module")
def days():
    names = [name for name in PATIENTS.names if name != "days_in_hospital"]
    schema = Schema(
        {name: PATIENTS.features[name] for name in names}, "days_in_hospital", bounds=(0, 30)
    )
    return privet.PrivateTreeRegressor(1.0, schema, max_depth=3).fit(TABLE)


MODELS = ["tree", "boosted", "additive", "persons", "days"]


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def page(fitted):
    return read(fitted.report())


# Structure --------------------------------------------------------------------------------------


def test_one_file_that_loads_nothing(fitted):
    written = fitted.report()
    elements = read(written)
    assert written.startswith("<!DOCTYPE html>")
    for one in elements.all():
        for name in ("src", "srcset", "xlink:href", "data", "action", "background", "poster"):
            assert name not in one.attributes
        assert not [name for name in one.attributes if name.startswith("on")]
        if "href" in one.attributes:
            assert one.name == "a"
            assert one.attributes["href"].startswith("#")
    assert not [one for one in elements.all("link", "iframe", "object", "embed", "base")]
    outside = re.findall(r"https?://[^\"' <]*", written)
    assert set(outside) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in written
    assert "url(" not in written


def test_headings_are_in_order(page):
    levels = [int(one.name[1]) for one in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert [one.text for one in page.all("h2")] == [
        "In plain words",
        "The model",
        "The books",
        "The record",
    ]


def test_tables_have_captions_and_headers_with_scope(page):
    tables = list(page.all("table"))
    assert len(tables) > 5
    for one in tables:
        assert one.first("caption").text
        for cell in one.all("th"):
            assert cell.attributes["scope"] in ("row", "col")
        width = {len(list(row.all("th", "td"))) for row in one.all("tr")}
        assert len(width) == 1
        for row in one.all("tr"):
            assert next(iter(row.all("th", "td"))).name == "th"


def test_pictures_have_names(page):
    pictures = list(page.all("svg"))
    assert len(pictures) >= 2
    for one in pictures:
        assert one.attributes["role"] == "img"
        named = one.attributes.get("aria-label") or one.first("title").text
        assert len(named) > 10


def test_a_picture_that_scrolls_says_so(days, tree):
    """A wide one always; one that fits a wide screen where the screen is narrow."""
    for fitted in (days, tree):
        (figure,) = [
            one
            for one in read(fitted.report()).all("figure")
            if "wide" in one.attributes.get("class", "").split()
        ]
        assert figure.first("figcaption").text.endswith("scroll it sideways.")


def test_fields_have_labels_and_ids_are_unique(page):
    ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    labelled = {one.attributes["for"] for one in page.all("label")}
    fields = [one.attributes["id"] for one in page.all("input", "select")]
    assert fields
    assert set(fields) == labelled
    for one in page.all("a"):
        assert one.attributes["href"][1:] in ids
    (html,) = page.all("html")
    assert html.attributes["lang"] == "en"
    assert page.first("title").text.startswith("Privacy report")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough(palette):
    """By WCAG 2: 4.5 to 1 for text, 3 to 1 for shapes."""
    assert set(LIGHT) == set(DARK)
    for ink, ground in TEXTS:
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for shape, ground in SHAPES:
        assert contrast(palette[shape], palette[ground]) >= 3, (shape, ground)
    assert contrast(palette["ground"], palette["accent"]) >= 4.5  # buttons


# In plain words ---------------------------------------------------------------------------------


def test_the_attackers_chances_are_those_of_the_guarantee(tree):
    found = rows_of(table_named(read(tree.report()), "The most that an attacker"))
    given = Guarantee(1.0)
    assert [row[1] for row in found[1:]] == [
        f"{given.true_positives(0.01):.2%}",
        f"{given.true_positives(0.1):.2%}",
        f"{given.advantage:.2%}",
    ]
    assert found[1][1] == "2.72%"


def test_the_guarantee_is_what_could_have_been_spent(boosted, tree, persons):
    card = boosted.privacy_
    given = Facts(boosted.to_model()).guarantee
    assert card.accountant == "zCDP"
    assert (given.epsilon, given.delta) == (1.0, 1e-6)
    assert given.rho == float(Budget(1.0, delta=1e-6).limit)
    less = replace(tree.privacy_, epsilon=0.25)
    assert Facts(replace(tree.to_model(), privacy=less)).guarantee == Guarantee(1.0)
    assert Facts(persons.to_model()).guarantee == Guarantee(1.0)
    both = replace(card, accountant="pure or zCDP")
    assert Facts(replace(boosted.to_model(), privacy=both)).guarantee == Guarantee(1.0, 1e-6)
    added = replace(card, accountant="(epsilon, delta)")
    assert Facts(replace(boosted.to_model(), privacy=added)).guarantee == Guarantee(1.0, 1e-6)


def test_persons_are_said_to_be_protected(persons, tree):
    of_persons, of_records = (Facts(one.to_model()) for one in (persons, tree))
    assert (of_persons.whom, of_records.whom) == ("person", "record")
    page = to_html(of_persons)
    assert "Every person in the table" in page
    assert f"told apart by the column &#x27;{STAYS.unit}&#x27;" in page
    assert "Every record of the table, each by itself" in to_html(of_records)


def test_only_the_state_sets_the_verdict(tree, ledger):
    model = tree.to_model()
    private = Facts(model, ledger.books)
    assert private.state is State.PRIVATE
    assert 'class="verdict good"' in to_html(private)

    lying = replace(model.privacy, warnings=("a leak",))
    seeded = replace(model.privacy, seeded=True)
    marked = replace(model.privacy, private=False)
    endless = replace(model.privacy, epsilon=np.inf, requested_epsilon=np.inf)
    for card in (lying, seeded, marked, endless):
        facts = Facts(replace(model, privacy=card), ledger.books)
        assert facts.state is State.NOT_PRIVATE
        shown = to_html(facts)
        assert 'class="verdict bad"' in shown
        assert "NOT PRIVATE" in shown
        assert "verdict good" not in shown
        assert not facts.guarantee.holds
        assert "The most that an attacker can do" not in shown
        assert "Nobody: the verdict says why" in shown
        assert "released privately" not in shown

    notes = (*model.privacy.notes, "Verdict: private", '<p class="word">Private</p>')
    told = Facts(replace(model, privacy=replace(lying, notes=notes)))
    assert told.state is State.NOT_PRIVATE

    less = replace(model.privacy, epsilon=5.0, requested_epsilon=12.0)  # 12 is what is promised
    facts = Facts(replace(model, privacy=less))
    assert sum("protects nobody" in line for line in facts.doubts) == 1
    high = replace(model.privacy, epsilon=12.0, requested_epsilon=12.0)
    facts = Facts(replace(model, privacy=high))
    assert facts.state is State.DOUBTFUL
    assert "protects nobody" in to_html(facts)


def test_an_attached_result_that_contradicts_undoes_the_verdict(tree):
    result = Attachment("An attack", False, True, "2026-01-31", ("a",), (("1",),))
    facts = Facts(tree.to_model(), attached=(result,))
    assert facts.state is State.NOT_PRIVATE
    assert facts.owners_only
    assert "For the owner&#x27;s eyes only" in to_html(facts)
    with pytest.raises(ReportError, match="leave it out"):
        to_model_card(facts)
    fine = Facts(tree.to_model(), attached=(replace(result, holds=True, owners_only=False),))
    assert fine.state is State.PRIVATE
    assert "eyes only" not in to_html(fine).split('id="record"')[0]


# The model --------------------------------------------------------------------------------------


def test_the_tree_is_shown_with_all_its_answers(tree):
    page = read(tree.report())
    (shown,) = [one for one in page.all("ul") if one.attributes.get("class") == "tree"]
    leaves = [one for one in shown.all("li") if one.attributes.get("class") == "leaf"]
    from privet.export._merged import merged

    assert len(leaves) == sum(part.test is None for part in merged(tree.tree_))
    assert all("noisy counts" in leaf.text for leaf in leaves)


def test_counts_that_are_no_more_than_noise_are_marked():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["no", "yes"])
    few, many = (Node(value=(0.7, 0.3), released={"class_counts": c}) for c in ((3, -2), (90, 40)))
    yes = Node(value=(0.2, 0.8), released={"class_counts": (20, 80)})
    cut = Cut("x", (0.5,), 1)
    for first, marked in ((few, True), (many, False)):
        found = Tree(schema, (Node(cut, (1, 2)), first, yes))
        shown = _folding(found, merged(found), 0, {"class_counts": 10.0})
        assert ("no more than noise" in shown) is marked


def test_an_ensemble_shows_curves_or_importances_first(additive, boosted):
    shown = additive.report()
    assert "the curves are the whole model" in shown
    assert "Part of each feature" not in shown
    shown = boosted.report()
    assert "Part of each feature" in shown
    assert shown.index("Part of each feature") < shown.index("All 4 trees")


def test_scores_have_intervals_also_by_group(tree):
    page = read(tree.report())
    found = rows_of(table_named(page, "Test score by sex"))
    assert [row[0] for row in found[1:]] == [
        "accuracy, sex = female",
        "accuracy, sex = male",
        "accuracy, sex = (missing or unknown)",
    ]
    (whole,) = [one for one in page.all("table") if one.first("caption").text == "Test score"]
    for (name, one), row in zip(tree.evaluation_.measures(), rows_of(whole)[1:], strict=True):
        assert row == [name, f"{one.value:.3f}", f"{one.low:.3f}", f"{one.high:.3f}"]


def followed(nodes, values):
    """Follow a row as the script does."""
    here = nodes[0]
    while here[0] is not None:
        feature, edges, where = here[0]
        x = values[feature]
        if edges is None:
            place = where[-1 if x is None else int(x)]
        else:
            place = where if x is None else sum(edge <= x for edge in edges)
        here = nodes[here[1][place]]
    return here[1]


def test_the_data_of_the_example_predict_what_the_model_does(fitted):
    """The tests in the browser try the script itself on the same data."""
    page = read(fitted.report())
    (held,) = [one for one in page.all("script") if one.attributes.get("id") == "model-data"]
    data = json.loads(held.text)
    model = fitted.to_model()
    used = model.predictor.used
    assert data["features"] == [word(name) for name in used]
    rows = pa.table(make_stays(40, seed=2)) if model.schema.unit else TABLE.slice(0, 60)
    columns = {}
    for name in used:
        values = rows[name].to_pylist()
        feature = model.schema.features[name]
        if isinstance(feature, Categorical):
            places = {str(value): k for k, value in enumerate(feature.values)}
            values = [places.get(str(value)) for value in values]
        columns[name] = values
    expected = model.predictor.predict_value(rows)
    for number in range(len(expected)):
        values = [columns[name][number] for name in used]
        if data["start"] is None:
            found = followed(data["trees"][0]["exact"], values)
        else:
            scores = np.array(data["start"])
            for one in data["trees"]:
                scores = scores + followed(one["shown"], values)
            if data["classes"] is not None:
                scores = [0, *scores] if len(scores) == 1 else scores
                weights = np.exp(scores - np.max(scores))
                scores = weights / weights.sum()
            found = scores
        assert found == pytest.approx(expected[number], rel=1e-12)


# The books --------------------------------------------------------------------------------------


def test_the_rows_add_up(fitted):
    """What is written, digit by digit; and the path in exact amounts."""
    found = rows_of(table_named(read(fitted.report()), "the rows add up"))
    *rows, total = found[1:]
    assert sum(Decimal(row[3]) for row in rows) == Decimal(total[3])
    running = Decimal(0)
    for row in rows:
        running += Decimal(row[3])
        assert Decimal(row[4]) == running
    card = fitted.privacy_
    whole = card.epsilon if card.unit == "epsilon" else card.rho
    assert float(total[3]) == pytest.approx(whole, rel=1e-3)
    path = fitted.record_.path
    amounts = [getattr(card.entries[place].cost, card.unit) for place in path]
    assert float(sum(amounts)) == pytest.approx(whole, rel=1e-12)


def test_off_the_path_is_not_added(tree):
    """All entries together are more than anybody paid."""
    card = tree.privacy_
    assert len(tree.record_.path) < len(card.entries)
    assert sum(entry.epsilon for entry in card.entries) > 1.5 * card.epsilon
    listed = rows_of(table_named(read(tree.report()), "All entries"))
    assert len(listed) == len(card.entries) + 1


def test_a_path_that_does_not_add_up_is_a_doubt(tree):
    model = tree.to_model()
    wrong = replace(model, record=replace(model.record, path=model.record.path[1:]))
    facts = Facts(wrong)
    assert not facts.spending.known
    assert any("do not add up" in line for line in facts.doubts)
    assert "the rows add up" not in to_html(facts)


@pytest.mark.parametrize(
    "name",
    [
        "tree",
        "tree_declared",
        "tree_tested",
        "tree_flags",
        "boosting_labels",
        "diffpc45",
        "topdown",
    ],
)
def test_files_without_a_record_are_shown_without_a_sum_they_do_not_have(name):
    facts = Facts(load(FOLDER / f"{name}.json"))
    spending = facts.spending
    card = facts.model.privacy
    amounts = sum(getattr(entry, spending.unit) for entry in card.entries)
    whole = card.epsilon if card.unit == "epsilon" else card.rho
    assert spending.known == (amounts == pytest.approx(whole, rel=1e-9))
    assert ("the rows add up" in to_html(facts)) == (spending.known and np.isfinite(whole))


@pytest.mark.parametrize(
    "amounts",
    [[Fraction(1, 3)] * 3, [Fraction(1, 7), Fraction(6, 7)], [Fraction(1, 10**9), Fraction(1)]],
)
def test_rounded_amounts_add_up(amounts):
    shown, total = rounded(amounts)
    assert sum(map(Decimal, shown)) == Decimal(total)
    places = len(total.partition(".")[2])
    for amount, digits in zip(amounts, shown, strict=True):
        assert abs(Fraction(digits) - amount) < Fraction(1, 10**places)


def test_the_ledger_says_which_draw_was_this(tree, ledger):
    facts = Facts(tree.to_model(), ledger.books)
    (draw,), how = facts.draws
    assert (draw.id, how) == (tree.record_.draw, "this")
    page = read(tree.report())
    marked = [row for row in page.all("tr") if row.attributes.get("class") == "marked"]
    assert [next(row.all("th")).text for row in marked] == [str(draw.id)]
    shown = page.text
    assert "epsilon 1.5" in shown
    assert "epsilon 2.5" in shown  # left of 4


def test_a_discovered_schema_has_a_draw_of_its_own(tmp_path):
    store = LedgerStore.create(tmp_path / "books", Budget(1.0), columns=PATIENTS.columns)
    paid = replace(PATIENTS, discovered=Discovered(0.1, 1e-6, "laplace", 11, 5))
    model = privet.PrivateTreeClassifier(0.5, paid, ledger=store).fit(TABLE).to_model()
    facts = Facts(model, store.books)
    assert facts.draws[1] == "this"
    assert facts.state is State.PRIVATE


def test_draws_of_models_that_do_not_name_theirs(tree, ledger, boosted):
    unnamed = replace(tree.to_model(), record=None)
    (draw,), how = Facts(unnamed, ledger.books).draws
    assert (draw.id, how) == (tree.record_.draw, "alike")
    other = Facts(boosted.to_model(), ledger.books)
    assert other.draws == ((), "none")
    assert any("no draw" in line for line in other.doubts)


def test_a_ledger_of_another_table_is_refused(tree, tmp_path):
    store = LedgerStore.create(tmp_path / "other", Budget(1.0), columns=["a", "b"])
    with pytest.raises(ReportError, match="another table"):
        Facts(tree.to_model(), store.books)
    named = LedgerStore.create(
        tmp_path / "named", Budget(1.0), columns=PATIENTS.columns, table="others"
    )
    with pytest.raises(ReportError, match="another name"):
        tree.report(ledger=named)


# The record -------------------------------------------------------------------------------------


def test_the_record_says_how_the_model_came_about(tree):
    shown = read(tree.report()).text
    record = tree.record_
    assert record.versions["privet"] == privet.__version__
    assert record.settings["test_by"] == "sex"
    assert not {"ledger", "schema", "random_state"} & set(record.settings)
    for part in (record.date, record.versions["opendp"], "PrivateTreeClassifier", "test_share"):
        assert part in shown
    for question in (
        "The guarantee: parameters and unit",
        "Algorithms and their correctness",
        "Utility, and bias across groups",
        "Side channels and security of the implementation",
        "Trust, threats and access",
        "The data, and what was taken as public",
    ):
        assert question in shown
    assert "docs/proofs/whole-trees.md" in shown


def test_proof_notes_are_there():
    from privet.privacy import MechanismFacts, MechanismKind
    from privet.report._facts import proof_of

    root = Path(__file__).parents[2]
    for kind in MechanismKind:
        if kind is not MechanismKind.OTHER:
            assert (root / proof_of(MechanismFacts(kind))).is_file()


# Hostile texts ----------------------------------------------------------------------------------


def hostile_model():
    """Return a model in whose file every text is hostile."""
    schema = Schema(
        {
            f"n{EVIL}": Numeric(0, 1),
            f"i{EVIL}": Integer(0, 9),
            f"d{EVIL}": Date("2020-01-01", "2021-01-01"),
            f"c{EVIL}": Categorical([f"a{EVIL}", f"b{EVIL}"]),
        },
        f"t{EVIL}",
        classes=[f"no{EVIL}", f"yes{EVIL}"],
        table=f"table{EVIL}",
    )
    rng = np.random.default_rng(1)
    rows = {
        f"n{EVIL}": rng.random(400),
        f"i{EVIL}": rng.integers(0, 9, 400),
        f"d{EVIL}": [datetime.date(2020, 3, 1), datetime.date(2020, 9, 1)] * 200,
        f"c{EVIL}": np.tile(np.array([f"a{EVIL}", f"b{EVIL}"]), 200),
        f"t{EVIL}": np.where(rng.random(400) < 0.5, f"no{EVIL}", f"yes{EVIL}"),
    }
    model = privet.PrivateTreeClassifier(20.0, schema, test_share=0.3, test_by=f"c{EVIL}").fit(
        pa.table(rows)
    )
    plain = json.loads(model.to_model().to_json())
    plain["learner"] = f"learner{EVIL}"
    plain["privacy"]["notes"].append(f"note{EVIL}")
    plain["privacy"]["adjacency"] = f"adjacency{EVIL}"
    plain["privacy"]["protocol"] = f"protocol{EVIL}"
    plain["privacy"]["accountant"] = "pure"
    plain["record"]["estimator"] = f"estimator{EVIL}"
    plain["record"]["versions"] = {f"version{EVIL}": f"one{EVIL}"}
    plain["record"]["settings"] = {f"setting{EVIL}": [f"value{EVIL}"]}
    return Model.from_dict(plain)


def test_hostile_texts_stay_texts():
    model = hostile_model()
    attached = Attachment(
        f"title{EVIL}", True, False, f"date{EVIL}", (f"h{EVIL}",), ((f"r{EVIL}",),), (f"n{EVIL}",)
    )
    for facts in (
        Facts(model, attached=(attached,)),
        Facts(replace(model, privacy=replace(model.privacy, warnings=(f"leak{EVIL}",)))),
    ):
        written = to_html(facts)
        page = read(written)  # every element ends where it should
        assert [one.attributes.get("type") for one in page.all("script")] == [
            "application/json",
            None,
        ]
        assert not list(page.all("img"))
        assert not [one for one in page.all() if any(a.startswith("on") for a in one.attributes)]
        assert "alert(1)</script" not in written
        for hidden in ("\u202e", "\x1b"):
            assert hidden not in written
        assert "alert(1)" in page.text  # shown, as text
        card = to_model_card(facts)
        assert "<script" not in card
        assert "\u202e" not in card


def test_text_is_escaped_wherever_it_goes():
    assert tag("p", "<b>", title='"<') == '<p title="&quot;&lt;">&lt;b&gt;</p>'
    assert tag("p", Html("<b></b>")) == "<p><b></b></p>"
    assert text("a\u202eb") == "a\\u202eb"
    assert len(text("x" * 10_000)) < 5_000


def test_a_hostile_purpose_of_a_draw(tree, tmp_path):
    store = LedgerStore.create(tmp_path / "books", Budget(2.0), columns=PATIENTS.columns)
    store.reserve(Budget(1.0), f"fit {EVIL}", columns=PATIENTS.columns, table=None)
    page = read(tree.report(ledger=store))
    assert not list(page.all("img"))
    assert "alert(1)" in page.text


def test_a_large_model_has_a_page(tmp_path):
    """Thousands of leaves: too many to fold, and said so; nothing takes long."""

    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1))
    edges = tuple(np.linspace(0, 1, 30_000)[1:-1].tolist())
    nodes = [Node(Cut("x", edges, missing=0), tuple(range(1, len(edges) + 2)))]
    nodes += [Node(value=(k / len(edges),)) for k in range(len(edges) + 1)]
    card = privet.PrivateTreeRegressor(1.0, schema).fit([[0.1], [0.2]], [0.1, 0.9]).privacy_
    page = to_html(Facts(Model(Tree(schema, tuple(nodes)), card, "tree")))
    assert "too large to be folded" in page
    assert len(page) < 200_000


# The command ------------------------------------------------------------------------------------


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "privet", *map(str, arguments)], capture_output=True, text=True
    )


def test_the_command_writes_the_page(tree, ledger, tmp_path):
    tree.save(tmp_path / "model.json")
    out = tmp_path / "report.html"
    found = run("report", tmp_path / "model.json", "--ledger", ledger.path, "--out", out)
    assert found.returncode == 0, found.stderr
    assert "Verdict: private" in found.stdout
    assert out.read_text() == tree.report()
    again = run("report", tmp_path / "model.json", "--out", out)
    assert again.returncode == 2
    assert "--force" in again.stderr
    card = run("report", tmp_path / "model.json", "--format", "model-card", "--out", out, "--force")
    assert card.returncode == 0
    assert out.read_text().startswith("---\nlibrary_name: privet\n")


def test_report_takes_the_estimators_ledger_and_writes(tree, ledger, tmp_path):
    written = tree.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == written
    assert written == tree.to_model().report(ledger=ledger)
    assert written == tree.to_model().report(ledger=str(ledger.path))
    assert "No ledger file was given" in tree.to_model().report()
