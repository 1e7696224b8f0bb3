"""Methods that scikit-learn's trees and classifiers have, and what is refused."""

import itertools
import math
import sys
import warnings

import numpy as np
import pytest

import privet
from privet import (
    PrivateAdditiveClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
)
from privet.errors import BudgetError, DataError, PrivacyLeakWarning, SchemaError
from privet.estimators import _progress

from .tables import SCHEMAS, make_table


def fitted(kind, of="two", rows=1500, **options):
    table, target = make_table(of, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return kind(epsilon=4.0, schema=SCHEMAS[of], random_state=0, **options).fit(table, target)


ROWS, _ = make_table("two", 200, seed=1)


class TestPaths:
    @pytest.mark.parametrize("kind", [PrivateTreeClassifier, PrivateTreeRegressor])
    def test_of_one_tree(self, kind):
        model = fitted(kind, "two" if kind is PrivateTreeClassifier else "number")
        leaves, paths = model.apply(ROWS), model.decision_path(ROWS)
        assert leaves.shape == (200,)
        assert paths.shape == (200, len(model.tree_.nodes))
        assert model.get_depth() == model.tree_.depth >= 1
        assert model.get_n_leaves() == model.tree_.n_leaves
        for row, leaf in enumerate(leaves):
            nodes = paths[row].indices
            assert nodes[0] == 0
            assert nodes[-1] == leaf
            for above, below in itertools.pairwise(nodes):
                assert below in model.tree_.nodes[above].children
        np.testing.assert_array_equal(model.tree_.values[leaves], model.tree_.predict_value(ROWS))

    def test_of_an_ensemble(self):
        model = fitted(PrivateBoostingClassifier, n_rounds=3, delta=1e-5)
        trees = model.predictor_.trees
        leaves = model.apply(ROWS)
        paths, ends = model.decision_path(ROWS)
        assert leaves.shape == (200, len(trees))
        assert ends.tolist() == np.cumsum([0, *(len(tree.nodes) for tree in trees)]).tolist()
        assert paths.shape == (200, ends[-1])
        scores = np.full(200, model.predictor_.start[0])
        for j, tree in enumerate(trees):
            assert (paths[np.arange(200), ends[j] + leaves[:, j]] == 1).all()
            scores += tree.values[leaves[:, j], 0]
        np.testing.assert_allclose(scores, model.decision_function(ROWS))


class TestDecisionFunction:
    def test_two_classes(self):
        model = fitted(PrivateAdditiveClassifier)
        scores = model.decision_function(ROWS)
        assert scores.shape == (200,)
        np.testing.assert_allclose(1 / (1 + np.exp(-scores)), model.predict_proba(ROWS)[:, 1])
        np.testing.assert_array_equal(scores > 0, model.predict(ROWS) == model.classes_[1])

    def test_classes_out_of_order(self):
        """The schema lists yes before no; scikit-learn's first class is no."""
        table, target = make_table("two", 1500)
        schema = privet.Schema(dict(SCHEMAS["two"].features), "y", classes=["yes", "no"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            model = PrivateAdditiveClassifier(4.0, schema, random_state=0)
            model.fit(table, np.where(target == 1, "yes", "no"))
        assert model.classes_.tolist() == ["no", "yes"]
        scores = model.decision_function(ROWS)
        np.testing.assert_allclose(1 / (1 + np.exp(-scores)), model.predict_proba(ROWS)[:, 1])

    def test_several_classes(self):
        model = fitted(PrivateAdditiveClassifier, "four")
        scores = model.decision_function(ROWS)
        assert scores.shape == (200, 4)
        np.testing.assert_array_equal(scores.argmax(axis=1), model.predict(ROWS))

    def test_a_tree_has_none(self):
        assert not hasattr(PrivateTreeClassifier(), "decision_function")
        assert not hasattr(fitted(PrivateTreeClassifier), "decision_function")
        assert not hasattr(PrivateBoostingRegressor(), "decision_function")


class TestWeights:
    def test_records_have_none(self):
        table, target = make_table("two", 50)
        model = PrivateTreeClassifier(1.0, SCHEMAS["two"])
        with pytest.raises(DataError, match="noise of all would have to be w times as large"):
            model.fit(table, target, sample_weight=np.ones(50))
        with pytest.raises(TypeError, match="shoes"):
            model.fit(table, target, shoes=1)
        assert not hasattr(model, "privacy_")

    @pytest.mark.parametrize(
        ("kind", "of", "options"),
        [
            (PrivateTreeClassifier, "two", {}),
            (PrivateTreeClassifier, "four", {}),
            (PrivateAdditiveClassifier, "two", {}),
            (PrivateAdditiveClassifier, "four", {}),
            (PrivateBoostingClassifier, "two", {"n_rounds": 2, "delta": 1e-5}),
        ],
    )
    def test_classes_are_weighed_by_bayes_rule(self, kind, of, options):
        plain = fitted(kind, of, **options)
        heavy = fitted(kind, of, class_weight={1: 5.0}, **options)
        weights = np.where(plain.classes_ == 1, 5.0, 1.0)
        expected = plain.predict_proba(ROWS) * weights
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(heavy.predict_proba(ROWS), expected, atol=1e-9)
        assert heavy.privacy_.entries == plain.privacy_.entries  # nothing more was asked
        assert "weights of classes" in heavy.privacy_.notes[-1]
        assert heavy.get_params()["class_weight"] == {1: 5.0}

    def test_a_file_keeps_them(self, tmp_path):
        heavy = fitted(PrivateTreeClassifier, class_weight={0: 0.01})
        heavy.save(tmp_path / "m.json")
        again = privet.load(tmp_path / "m.json")
        np.testing.assert_array_equal(again.predict_proba(ROWS), heavy.predict_proba(ROWS))

    @pytest.mark.parametrize(
        "wrong", ["balanced", {0: 0.0}, {0: -1}, {0: math.nan}, {0: True}, [1, 2], {0: "1"}]
    )
    def test_other_weights_are_refused(self, wrong):
        table, target = make_table("two", 50)
        with pytest.raises(BudgetError, match="declared and not counted"):
            PrivateTreeClassifier(1.0, SCHEMAS["two"], class_weight=wrong).fit(table, target)

    def test_unknown_classes_are_refused(self):
        table, target = make_table("two", 50)
        with pytest.raises(SchemaError, match="does not have"):
            PrivateTreeClassifier(1.0, SCHEMAS["two"], class_weight={7: 2}).fit(table, target)

    def test_texts_of_the_command_line(self):
        read = PrivateTreeClassifier._parameters["class_weight"].check_text
        assert read("no:1,yes:5", "w") == {"no": 1.0, "yes": 5.0}
        assert read("none", "w") is None
        with pytest.raises(BudgetError, match="no:1,yes:5"):
            read("5", "w")


def test_verbose_says_what_is_asked(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "_BETWEEN", 0.0)
    fitted(PrivateTreeClassifier, verbose=True)
    told = capsys.readouterr().err
    assert "PrivateTreeClassifier, 0 s: how many records: the whole table\n" in told
    assert " 0 cells" not in told
    assert " 1 cells" not in told
    fitted(PrivateTreeClassifier)
    assert capsys.readouterr().err == ""
    assert sys.stderr is not None
