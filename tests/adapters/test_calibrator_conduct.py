"""Venn-Abers for any classifier, a good citizen of scikit-learn: copies, searches, threads, and what it refuses."""

import copy
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from test_calibrator import Remembers, examples, said
from test_classifiers import SQUARES

import venn
from venn.adapters.calibrator import VennAbersCalibrator
from venn.maps.abers import VennAbers

# ------------------------------------------------------------------------------- a good citizen


@pytest.mark.parametrize("cv", ["prefit", 3])
def test_a_copy_learns_for_itself(cv):
    X, y = examples(seed=18)
    model = VennAbersCalibrator(GaussianNB().fit(X, y), cv=cv).fit(X[:30], y[:30])
    before, n, other = said(model, X), model.n_calibration_, copy.copy(model)
    np.testing.assert_array_equal(said(other.partial_fit(X[30:], y[30:]), X), said(copy.deepcopy(other), X))
    assert (model.n_calibration_, other.n_calibration_) == (n, n + 30)
    np.testing.assert_array_equal(said(model, X), before)
    assert not hasattr(copy.copy(clone(model)), "classes_")


def test_a_fitted_classifier_is_cross_validated_in_a_frozen_estimator():
    frozen = pytest.importorskip("sklearn.frozen")
    X, y = examples(n=90, seed=19)
    inner = GaussianNB().fit(X[:30], y[:30])
    with pytest.raises(
        ValueError, match='clones, which are not fitted, give a FrozenEstimator in place of cv="prefit"'
    ):
        cross_val_score(VennAbersCalibrator(inner, cv="prefit"), X[30:], y[30:], cv=2, error_score="raise")
    model = VennAbersCalibrator(frozen.FrozenEstimator(inner))
    scores = cross_val_score(model, X[30:], y[30:], cv=2, scoring="neg_log_loss", error_score="raise")
    assert scores.mean() > -0.8


def test_grid_search_and_cross_val_score_by_log_loss():
    X, y = examples(n=90, c=3, seed=16)
    model = VennAbersCalibrator(make_pipeline(StandardScaler(), SVC()), cv=3)
    grid = {"estimator__svc__gamma": [0.01, 1.0], "merge": [venn.maps.LogMerge(), venn.maps.BrierMerge()]}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=2, error_score="raise").fit(X, y)
    best = clone(model).set_params(**search.best_params_)
    losses = cross_val_score(best, X, y, scoring="neg_log_loss", cv=2)
    np.testing.assert_allclose(losses.mean(), search.best_score_)
    assert losses.mean() > -1.1


@pytest.mark.parametrize("model", [VennAbersCalibrator(GaussianNB()), venn.VennClassifier(**SQUARES)], ids=repr)
def test_calibration_display(model):
    import matplotlib

    matplotlib.use("Agg")
    X, y = examples()
    bins = {"n_bins": 5, "strategy": "uniform"}
    display = CalibrationDisplay.from_estimator(model.fit(X, y), X, y, pos_label="bee", **bins)
    assert len(display.prob_true) > 0
    matplotlib.pyplot.close("all")


# ------------------------------------------------------------------------------- refusals


class Infinite(Remembers):
    def decision_function(self, X):
        return np.full((len(X), 3), np.inf)


BAD = {
    "merge": ({"merge": "log"}, TypeError, "merge must be a merge object"),
    "not fitted": ({"cv": "prefit"}, ValueError, "estimator must be a fitted classifier, with classes_"),
    "no scores": ({"estimator": StandardScaler()}, TypeError, "estimator must have decision_function or predict_proba"),
    "no estimator": ({"estimator": "svc", "cv": "prefit"}, TypeError, "estimator must have .* got 'svc'"),
    "one against one": (
        {"estimator": SVC(decision_function_shape="ovo")},
        ValueError,
        "estimator must have one decision value for each class",
    ),
    "infinite": ({"estimator": Infinite(), "cv": KFold(2)}, ValueError, "scores must be finite, got inf for class"),
    "cv": ({"cv": "five"}, ValueError, "cv.* five"),
    "many folds": ({"cv": 200}, ValueError, "n_splits=200"),
    "no fold": ({"cv": []}, ValueError, r"cv must give at least one fold, got none from \[\]"),
    "in-sample": ({"cv": [([0, 1, 2], [2, 3])]}, ValueError, "cv must keep examples that calibrate out of training"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_parameter_is_named_and_leaves_no_trace(name):
    parameters, error, message = BAD[name]
    X, y = examples(c=3)
    model = VennAbersCalibrator(GaussianNB(), cv=3).fit(X[:, :1], y)
    before, good = said(model, X[:, :1]), model.get_params(deep=False)
    with pytest.raises(error, match=message):
        model.set_params(**parameters).fit(X, y)
    model.set_params(**good)
    np.testing.assert_array_equal(said(model, X[:, :1]), before)


@pytest.mark.parametrize(
    "labels",
    [["a", 1], [0, None], np.array(["a", None], object), pd.Series([1.5, "a"], dtype=object)],
    ids=["list", "None", "array", "series"],
)
@pytest.mark.parametrize(
    "model",
    [VennAbersCalibrator(Remembers(), cv=KFold(2)), venn.VennClassifier(**SQUARES), venn.ProbabilitySVC()],
    ids=lambda model: type(model).__name__,
)
def test_labels_of_several_kinds_are_refused(model, labels):
    X, y = examples(n=20)
    model = clone(model).fit(X, y)
    before = model.predict(X).tolist()
    with pytest.raises(TypeError, match="y must hold labels of one kind, numbers or strings, got"):
        model.fit(X[:2], labels)
    if hasattr(model, "partial_fit"):
        with pytest.raises(TypeError, match="classes must hold labels of one kind, numbers or strings, got"):
            clone(model).partial_fit(X[:2], y[:2], classes=labels)
    assert model.predict(X).tolist() == before


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(60, 0.5), "sample_weight must hold whole numbers for Venn-Abers, .* got 0.5 at 0"),
        (np.full(60, -1), "sample_weight must be >= 0, got -1.0 at 0"),
        (np.zeros(60), "sample_weight must be > 0 for some example"),
        (np.ones(59), r"sample_weight must have shape \(60,\)"),
        (np.full(60, 1e18), "sample_weight must sum to at most 2147483647"),
    ],
    ids=["fraction", "negative", "zero", "length", "sum"],
)
def test_bad_weights_leave_no_trace(weights, message):
    X, y = examples()
    model = VennAbersCalibrator(GaussianNB(), cv=3).fit(X, y)
    before = said(model, X)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            call(X, y, sample_weight=weights)
    np.testing.assert_array_equal(said(model, X), before)
    with pytest.raises(OverflowError, match="at most 2147483647 examples, got 60 and "):
        model.partial_fit(X[:1], y[:1], sample_weight=[2**31 - 1])
    np.testing.assert_array_equal(said(model, X), before)


def test_threads_that_ask_while_one_adds_see_all_of_an_example_or_nothing(monkeypatch):
    X, y = examples(n=80, c=3)
    model = VennAbersCalibrator(GaussianNB().fit(X[:40], y[:40]), cv="prefit").partial_fit(X[40:60], y[40:60])
    expected, later = [model.predict_interval(X[:5])], copy.copy(model)
    for i in range(60, 70):
        later.partial_fit(X[[i]], y[[i]])
        expected.append(later.predict_interval(X[:5]))
    insert = VennAbers.insert_many

    def slowly(calibrator, scores, labels):
        insert(calibrator, scores, labels)
        time.sleep(0.002)  # between the classes of one example

    monkeypatch.setattr(VennAbers, "insert_many", slowly)
    seen, over = [], threading.Event()

    def ask():
        while not over.is_set():
            seen.append(model.predict_interval(X[:5]))

    asking = threading.Thread(target=ask)
    asking.start()
    for i in range(60, 70):
        model.partial_fit(X[[i]], y[[i]])
    over.set()
    asking.join()
    assert seen
    assert all(any(np.array_equal(one, whole) for whole in expected) for one in seen)


@pytest.mark.parametrize("model", [VennAbersCalibrator(GaussianNB(), cv=3), venn.ProbabilitySVC(cv=3)])
def test_several_threads_say_what_one_says(model):
    X, y = examples(n=60)
    alone = said(clone(model).fit(X, y), X)
    with joblib.parallel_config("threading"):
        np.testing.assert_array_equal(said(clone(model).set_params(n_jobs=2).fit(X, y), X), alone)
    with pytest.raises(ValueError, match="n_jobs == 0"):
        clone(model).set_params(n_jobs=0).fit(X, y)


def test_without_an_estimator_it_calibrates_a_linear_one():
    X, y = examples(n=60)
    model = VennAbersCalibrator().fit(X, y)
    np.testing.assert_array_equal(said(model, X), said(VennAbersCalibrator(LinearSVC(random_state=0)).fit(X, y), X))
    assert clone(model).estimator is None
    assert model.__sklearn_tags__().input_tags.sparse
