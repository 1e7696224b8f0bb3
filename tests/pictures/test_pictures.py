"""Pictures are made of released numbers, parse, say what they show, and survive hostile names."""

import math
import pickle
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from privet import (
    Categorical,
    Integer,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateBoostingClassifier,
    PrivateTreeClassifier,
    Schema,
    load,
)
from privet.ensemble import Ensemble
from privet.errors import PrivacyLeakWarning
from privet.pictures import (
    budget_svg,
    calibration_svg,
    curves_svg,
    effects,
    importances,
    importances_svg,
    spending,
    tree_svg,
)
from privet.tree import Cut, Grouping, Node, Tree

SEEDED = sorted((Path(__file__).parents[1] / "golden" / "seeded").glob("*.json"))
EACH_FORM = [path for path in SEEDED if path.stem in {
    "tree", "tree_tested", "boosting", "boosting_delta_tested", "additive_four_delta",
    "additive_two_bent", "diffpc45", "diprime_number_exp", "boosting_number_tested",
}]  # fmt: skip
SCHEMA = Schema(
    {"dose": Numeric(0, 100), "stays": Integer(0, 9), "sex": Categorical(["f", "m"])},
    "ill",
    classes=["no", "yes"],
)


def rows(n, seed=0):
    random = np.random.default_rng(seed)
    dose, stays = random.uniform(0, 100, n), random.integers(0, 10, n)
    sex = random.choice(["f", "m"], n)
    chance = 1 / (1 + np.exp(-(dose - 50) / 12 - 0.4 * (stays - 4)))
    X = {"dose": dose, "stays": stays, "sex": sex}
    return X, np.where(random.random(n) < chance, "yes", "no")


def fitted(kind, n=3000, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        import pyarrow as pa

        X, y = rows(n)
        return kind(schema=SCHEMA, random_state=0, **options).fit(pa.table(X), y)


def pictures_of(model):
    yield importances_svg(model.predictor)
    yield budget_svg(model.privacy)
    if isinstance(model.predictor, Ensemble):
        yield curves_svg(model.predictor)
        yield tree_svg(model.predictor.trees[0], title="tree 1")
    else:
        yield tree_svg(model.predictor, noise=model.noise)
    if model.evaluation is not None and model.evaluation.calibration:
        yield calibration_svg(model.evaluation)


@pytest.mark.parametrize("path", EACH_FORM, ids=lambda path: path.stem)
def test_pictures_are_whole_and_have_a_title(path):
    model = load(path)
    for text in pictures_of(model):
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img"
        assert root[0].tag.endswith("title")
        assert root[0].text
        assert "nan" not in text.lower().replace("nance", "")
        assert "<script" not in text
    assert model._repr_html_().count("<svg") >= 2
    assert len(repr(model)) < 200


def test_hostile_names_are_harmless():
    name = 'a"b<script>\u202e\x1b[31m$x$'
    schema = Schema({name: Categorical([name, "</title>"])}, name + "t", classes=[name, "b"])
    tree = Tree(
        schema,
        (Node(Grouping(name, (0, 1), 1), (1, 2)), Node(value=(0.5,)), Node(value=(-0.5,))),
        1,
    )
    ensemble = Ensemble(schema, (0.0,), (tree,))
    for text in (curves_svg(ensemble), tree_svg(tree), importances_svg(ensemble)):
        ElementTree.fromstring(text)
        assert "<script" not in text
        assert "\u202e" not in text
    assert "<script" not in schema._repr_html_()


# Importances ------------------------------------------------------------------------------------


def test_importances_are_those_of_impurity_where_leaves_have_shares():
    """By hand: weights 40, 30 and 30 of 100, as scikit-learn counts the decrease of Gini."""
    schema = Schema(
        {"a": Numeric(0, 1), "b": Numeric(0, 1), "c": Numeric(0, 1)}, "y", classes=[0, 1]
    )
    tree = Tree(
        schema,
        (
            Node(Cut("a", (0.5,), 0), (1, 2)),
            Node(value=(0.9, 0.1), released={"class_counts": (36, 4)}),
            Node(Cut("b", (0.5,), 0), (3, 4)),
            Node(value=(0.5, 0.5), released={"class_counts": (15, 15)}),
            Node(value=(0.1, 0.9), released={"class_counts": (3, 27)}),
        ),
    )

    def gini(no, yes):
        return 1 - (no**2 + yes**2) / (no + yes) ** 2

    first = gini(54, 46) - 0.4 * gini(36, 4) - 0.6 * gini(18, 42)
    second = 0.6 * gini(18, 42) - 0.3 * gini(15, 15) - 0.3 * gini(3, 27)
    found = importances(tree)
    assert found["a"] == pytest.approx(first / (first + second))
    assert found["b"] == pytest.approx(second / (first + second))
    assert found["c"] == 0


def test_importances_need_nothing_but_the_published_model(tmp_path):
    """They cost nothing: the file alone gives the same numbers, and no entry is added."""
    model = fitted(PrivateTreeClassifier, test_share=0.2)
    entries = model.privacy_.entries
    given = model.feature_importances_
    model.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json").importances()
    np.testing.assert_array_equal(given, [again[name] for name in model.feature_names_in_])
    assert given.sum() == pytest.approx(1)
    assert model.privacy_.entries == entries


def test_a_branch_for_missing_values_counts_nothing_without_counts():
    schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)}, "y", bounds=(0, 1))
    missing = Tree(
        schema,
        (
            Node(Cut("a", (0.5,), 2), (1, 2, 3)),
            Node(value=(0.4,)),
            Node(Cut("b", (0.5,), 0), (4, 5)),
            Node(value=(1.0,)),
            Node(value=(0.4,)),
            Node(value=(0.4,)),
        ),
    )
    assert importances(missing) == {"a": 0.0, "b": 0.0}


def test_a_model_without_tests_goes_by_nothing():
    schema = Schema({"a": Numeric(0, 1)}, "y", bounds=(0, 1))
    assert importances(Tree(schema, (Node(value=(0.4,)),))) == {"a": 0.0}
    assert importances(Ensemble(schema, (0.5,), ())) == {"a": 0.0}


# Budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SEEDED, ids=lambda path: path.stem)
def test_the_rows_of_a_budget_add_up(path):
    card = load(path).privacy
    parts = spending(card)
    total = card.epsilon if card.unit == "epsilon" else card.rho
    for part in parts:
        assert part.exact, part
        if part.portion != "test":
            assert math.isinf(total) or part.total == pytest.approx(total, rel=1e-8)
        else:
            assert part.total <= total * (1 + 1e-8)


def test_a_record_says_which_path_it_was():
    model = fitted(PrivateTreeClassifier, test_share=0.2).to_model()
    assert model.record is not None
    found = [dict(part.rows) for part in spending(model.privacy, model.record)]
    assert all(part.exact for part in spending(model.privacy, model.record))
    assert found == [dict(part.rows) for part in spending(model.privacy)]


# Curves -----------------------------------------------------------------------------------------


def test_effects_of_an_additive_ensemble_are_its_shapes():
    model = load(next(p for p in SEEDED if p.stem == "additive_two_pure")).predictor
    for one, other in zip(effects(model), model.shapes(), strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)


def test_effects_are_means_over_the_intervals_of_the_others():
    """Against all combinations of intervals, one by one."""
    model = load(next(p for p in SEEDED if p.stem == "boosting")).predictor
    assert not model.additive
    schema, used = model.schema, [n for n in model.schema.names if n in model.used]
    points = {}
    for name in used:
        feature = schema.features[name]
        if isinstance(feature, Numeric):
            edges = sorted({
                e for t in model.trees for n in t.nodes
                if isinstance(n.test, Cut) and n.test.feature == name for e in n.test.edges
            })  # fmt: skip
            points[name] = [feature.low, *edges]
        else:
            points[name] = list(feature.values)
    filler = {
        name: f.low if isinstance(f, Numeric) else f.values[0]
        for name, f in schema.features.items()
    }
    grid = np.meshgrid(*(np.arange(len(points[name])) for name in used), indexing="ij")
    table = {name: np.array([filler[name]] * grid[0].size, dtype=object) for name in schema.names}
    for name, places in zip(used, grid, strict=True):
        table[name] = np.array([points[name][k] for k in places.ravel()], dtype=object)
    columns = np.column_stack([table[name] for name in schema.names])
    scores = model.predict_score(columns)[:, 0].reshape(grid[0].shape)
    for axis, shape in enumerate(effects(model)):
        others = tuple(k for k in range(len(used)) if k != axis)
        mean = scores.mean(axis=others)
        np.testing.assert_allclose(shape.scores[:, 0], mean - mean.mean(), atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (PrivateAdditiveClassifier, {"epsilon": 3.0}),
        (PrivateAdditiveClassifier, {"epsilon": 1.0, "delta": 1e-5}),
    ],
    ids=["curves", "slopes"],
)
def test_bands_cover_what_other_noise_would_have_made(kind, options):
    """Twelve fits of one table with other noise: most of their curves lie in the bands of each.

    Two deviations cover 95 % of Gaussian noise and 94 % of Laplace noise; that later steps take
    noise back makes bands too wide, and the noise of moments, which they leave out, too narrow.
    """
    import pyarrow as pa

    X, y = rows(2000)
    points, fits = np.array([10.0, 40.0, 60.0, 90.0]), []
    for seed in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            model = kind(schema=SCHEMA, random_state=seed, **options).fit(pa.table(X), y)
        (dose, *_) = model.predictor_.shapes()
        places = np.searchsorted(np.array(dose.edges), points, side="right")
        fits.append((dose.scores[places, 0], dose.deviations[places, 0]))
    centre = np.mean([scores for scores, _ in fits], axis=0)
    inside = [np.abs(scores - centre) <= 2 * noise for scores, noise in fits]
    assert np.mean(inside) >= 0.85
    narrow = [np.abs(scores - centre) <= 0.3 * noise for scores, noise in fits]
    assert np.mean(narrow) < 0.85  # bands of a tenth would not do: it can fail


def test_files_hold_no_bands_and_pickles_do(tmp_path):
    model = fitted(PrivateBoostingClassifier, n_rounds=3, delta=1e-5)
    assert "standard deviations of the noise" in curves_svg(model.predictor_)
    assert "standard deviations of the noise" in curves_svg(
        pickle.loads(pickle.dumps(model)).predictor_
    )
    model.save(tmp_path / "m.json")
    assert "standard deviations" not in curves_svg(load(tmp_path / "m.json").predictor)


# Notebooks --------------------------------------------------------------------------------------


def test_no_warnings_in_a_notebook(recwarn):
    for kind in (PrivateTreeClassifier, PrivateAdditiveClassifier, PrivateBoostingClassifier):
        html = kind(schema=SCHEMA)._repr_html_()
        assert kind.__name__ in html
    model = fitted(PrivateTreeClassifier)
    assert "NOT PRIVATE" in model._repr_html_()
    assert "<svg" in model._repr_mimebundle_()["text/html"]
    assert not [w for w in recwarn if "section" in str(w.message)]


def test_ledgers_and_schemas_in_a_notebook(tmp_path):
    from privet import Budget, LedgerStore
    from privet.privacy import Ledger

    store = LedgerStore.create(tmp_path / "a.ledger", Budget(2.0), columns=["dose", "ill"])
    store.reserve(Budget(0.5), "<b>a fit</b>", columns=["dose", "ill"])
    assert "1.5 of 2 left" in store._repr_html_()
    assert "<b>a fit" not in store._repr_html_()
    assert "0 to 9" in SCHEMA._repr_html_()
    assert repr(SCHEMA) == "<Schema for ill: 3 features, 2 classes>"
    assert repr(Ledger(Budget(1.0))) == "<Ledger: epsilon 1 of epsilon 1 left, 0 entries>"
    assert "epsilon 1" in Ledger(Budget(1.0))._repr_html_()


# matplotlib -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # of matplotlib's own
def test_plots(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tree = fitted(PrivateTreeClassifier)
    ensemble = fitted(PrivateBoostingClassifier, n_rounds=2, delta=1e-5, test_share=0.3)
    drawn = [tree.plot(), ensemble.plot(), ensemble.plot("calibration"), tree.plot("budget")]
    drawn.append(ensemble.plot("curves", features=["dose"], ax=plt.figure().subplots()))
    drawn.append(ensemble.to_model().plot("importances"))
    plt.savefig(tmp_path / "a.png")
    assert all(axes is not None for axes in drawn)
    plt.close("all")
    for wrong in ({"kind": "pie"}, {"kind": "tree"}, {"kind": "budget", "features": ["dose"]}):
        with pytest.raises(ValueError, match=r"kind must|many trees|for curves"):
            ensemble.plot(**wrong)
    with pytest.raises(ValueError, match="no test score"):
        tree.plot("calibration")


def test_without_matplotlib_the_error_says_what_to_do(monkeypatch):
    import sys

    from privet.errors import ExportError

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ExportError, match=r"privet\[plot\]"):
        fitted(PrivateTreeClassifier).plot("importances")
