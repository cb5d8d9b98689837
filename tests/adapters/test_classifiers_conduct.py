"""Transductive predictors for scikit-learn, good citizens: copies, threads, searches, frames, weights."""

import copy
import multiprocessing
import pickle
import threading
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from centroids import NearestCentroid
from scipy.sparse import coo_array, csc_matrix, csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_classifiers import BOTH, NAMES, SQUARES, examples, said

import venn
from venn.adapters import classifiers
from venn.adapters.classifiers import ConformalClassifier, VennClassifier

# ------------------------------------------------------------------------------- a good citizen


@pytest.mark.parametrize("kind", BOTH)
def test_a_copy_learns_for_itself_and_nothing_is_copied_for_one_example(kind, monkeypatch):
    X, y = examples(n=20)
    model = kind(**SQUARES).fit(X[:10], y[:10])
    before, other = said(model, X), copy.copy(model)
    other.partial_fit(X[10:11], y[10:11]).partial_fit(X[11:], y[11:])
    assert (model.predictor_.machine.n, other.predictor_.machine.n) == (10, 20)
    np.testing.assert_array_equal(said(model, X), before)
    np.testing.assert_array_equal(said(other, X), said(kind(**SQUARES).fit(X, y), X))
    copies = []

    def counted(value):
        copies.append(value)
        return copy.deepcopy(value)

    monkeypatch.setattr(classifiers, "deepcopy", counted)
    for i in range(10, 15):
        model.partial_fit(X[[i]], y[[i]])
    assert len(copies) == 0
    model.partial_fit(X[15:], y[15:])
    assert len(copies) == 1
    model.fit(X, y)
    assert len(copies) == 1


@pytest.mark.parametrize("kind", BOTH)
def test_clone_pickle_and_maps_of_a_file(kind, tmp_path):
    X, y = examples(n=20)
    for svm_ in (None, venn.LeastSquaresSVM):
        model = kind(venn.RBF(2.0), svm=svm_).fit(X, y)
        with pytest.raises(NotFittedError):
            clone(model).predict(X)
        assert clone(model).get_params() == model.get_params()
        joblib.dump(model, tmp_path / "model")
        for other in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model", mmap_mode="r")):
            np.testing.assert_array_equal(said(other, X), said(model, X))
            other.partial_fit(X[:5] + 0.5, y[:5])
            assert model.predictor_.machine.n == 20


class Slow(venn.Argmax):
    """Leaves others time to ask the machine before it reads the answer."""

    def count(self, hypotheses):
        time.sleep(0.001)
        return super().count(hypotheses)


def test_threads_take_turns():
    X, y = examples(n=20, c=3)
    model = VennClassifier(**SQUARES, taxonomy=Slow()).fit(X, y)
    expected, got = model.predict_proba(X), {}

    def ask(i):
        got[i] = model.predict_proba(X)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(3):
        np.testing.assert_array_equal(got[i], expected)


class Waits(venn.Argmax):
    """Lets nobody go on, in threads of this name, until it is told to."""

    def __init__(self):
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __deepcopy__(self, memo):
        return self

    def count(self, hypotheses):
        if threading.current_thread().name == "waits":
            self.entered.set()
            self.go_on.wait()
        return super().count(hypotheses)


def test_a_waiting_thread_holds_up_no_other_estimator_and_no_forked_child():
    X, y = examples(n=20)
    gate, got = Waits(), []
    model = VennClassifier(**SQUARES, taxonomy=gate).fit(X, y)
    other, copied = clone(model).fit(X, y), copy.copy(model)
    holder = threading.Thread(target=model.predict, args=(X,), name="waits", daemon=True)
    holder.start()
    try:
        assert gate.entered.wait(60)
        asks = [threading.Thread(target=lambda m=m: got.append(m.predict(X)), daemon=True) for m in (other, copied)]
        for thread in asks:
            thread.start()
        for thread in asks:
            thread.join(60)
        assert len(got) == 2
        if "fork" in multiprocessing.get_all_start_methods():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: that is the question
                child = multiprocessing.get_context("fork").Process(target=model.predict, args=(X,))
                child.start()
            child.join(60)
            done = child.exitcode
            if done is None:
                child.kill()
            assert done == 0
    finally:
        gate.go_on.set()
        holder.join(60)
    assert model.predict(X).tolist() == got[0].tolist()


def test_grid_search_over_kernels_with_the_log_loss():
    X, y = examples(n=60, c=3, seed=9)
    widths = [venn.RBF(gamma) for gamma in (0.01, 0.3, 30.0)]
    pipe = make_pipeline(StandardScaler(), VennClassifier(**SQUARES))
    cv = StratifiedKFold(3)
    grid = {"vennclassifier__kernel": widths, "vennclassifier__C": [1.0, 10.0]}
    search = GridSearchCV(pipe, grid, scoring="neg_log_loss", cv=cv, error_score="raise").fit(X, y)
    by_hand = {}
    for kernel in widths:
        for C in (1.0, 10.0):
            losses = []
            for train, test in cv.split(X, y):
                scaler = StandardScaler().fit(X[train])
                machine = venn.LeastSquaresSVM(kernel, C, NAMES.tolist())
                loop = venn.TransductiveVenn(machine, rule=venn.prediction.RowMean())
                for x, label in zip(scaler.transform(X[train]), y[train].tolist(), strict=True):
                    loop.learn_one(x, label)
                p = [loop.predict_one(x).proba for x in scaler.transform(X[test])]
                losses.append(log_loss(y[test], p, labels=NAMES))
            by_hand[kernel, C] = -np.mean(losses)
    best = search.best_params_["vennclassifier__kernel"], search.best_params_["vennclassifier__C"]
    assert by_hand[best] == max(by_hand.values())
    np.testing.assert_allclose(search.best_score_, by_hand[best])
    assert len({round(value, 9) for value in by_hand.values()}) > 1


def test_cross_val_score_of_both():
    X, y = examples(n=60, seed=10)
    assert cross_val_score(VennClassifier(**SQUARES), X, y, scoring="neg_log_loss", cv=3).mean() > -0.8
    assert cross_val_score(ConformalClassifier(**SQUARES), X, y, cv=3).mean() > 0.5
    assert cross_val_score(ConformalClassifier(**SQUARES), X, y, scoring="roc_auc", cv=3).mean() > 0.5


@pytest.mark.parametrize("kind", BOTH)
def test_data_frames_and_their_names(kind):
    X, y = examples(n=20)
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = kind(**SQUARES).partial_fit(frame[:10], y[:10], classes=NAMES[:2]).partial_fit(frame[10:], y[10:])
    assert model.feature_names_in_.tolist() == ["length", "width"]
    np.testing.assert_allclose(said(model, frame), said(kind(**SQUARES).fit(X, y), X), atol=1e-12)
    for call in (lambda swapped: model.predict(swapped), lambda swapped: model.partial_fit(swapped, y)):
        with pytest.raises(ValueError, match="feature names"):
            call(frame[["width", "length"]])
    assert model.predictor_.machine.n == 20
    scaled = make_pipeline(StandardScaler(), kind(**SQUARES)).set_output(transform="pandas").fit(frame, y)
    assert scaled[-1].feature_names_in_.tolist() == ["length", "width"]


@pytest.mark.parametrize("kind", BOTH)
def test_weights_are_routed(kind):
    X, y = examples(n=30)
    w = np.random.default_rng(11).integers(1, 4, 30)
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(**SQUARES).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipe.fit(X, y, sample_weight=w)
        search = GridSearchCV(model, {"C": [10.0]}, cv=2, error_score="raise").fit(X, y, sample_weight=w)
        stream = kind(**SQUARES).set_partial_fit_request(sample_weight=True, classes=True)
        assert stream.get_metadata_routing().partial_fit.requests == {"classes": True, "sample_weight": True}
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(said(pipe[-1], scaled), said(kind(**SQUARES).fit(scaled, y, w), scaled))
    np.testing.assert_array_equal(said(search.best_estimator_, X), said(kind(**SQUARES).fit(X, y, w), X))


def test_sparse_rows_say_what_dense_ones_say():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(40, 6)) * (rng.random((40, 6)) < 0.3)  # ties, duplicates, empty rows
    y = rng.choice(["a", "b", "c"], 40)
    dense = VennClassifier(venn.Linear(), svm=venn.LeastSquaresSVM).fit(X[:20], y[:20]).partial_fit(X[20:30], y[20:30])
    thin = csr_array(X.astype(float))
    for form in (csr_array, csc_matrix, coo_array):
        sparse = clone(dense).fit(form(thin[:20]), y[:20]).partial_fit(form(thin[20:30]), y[20:30])
        assert (sparse.predict_interval(form(thin[30:])) == dense.predict_interval(X[30:])).all()
        assert (sparse.predict_interval(X[30:]) == dense.predict_interval(X[30:])).all()
    sets = [ConformalClassifier(venn.Linear(), seed=3).fit(of[:30], y[:30]).predict_p(of[30:]) for of in (X, thin)]
    assert (sets[0] == sets[1]).all()
    kept = NearestCentroid
    with pytest.raises(TypeError, match="sparse"):
        VennClassifier(svm=lambda kernel, C, classes: kept(classes), taxonomy=venn.Argmax()).fit(thin[:20], y[:20])


# ------------------------------------------------------------------------------- files of skops


HOLDING = {
    "Venn": lambda: VennClassifier(),
    "conformal": lambda: ConformalClassifier(svm=venn.LeastSquaresSVM, adaptive=True),
    "forecaster": lambda: venn.ForecasterClassifier(first=5),
    "scorer": lambda: venn.ForecasterClassifier(GaussianNB().fit(*examples(20, seed=9))),
    "numbers": lambda: venn.ConformalRegressor(first=5),
}


def held(name):
    X, y = examples(20)
    model = HOLDING[name]()
    return model.fit(X, X[:, 0] if name == "numbers" else y), X


@pytest.mark.parametrize("name", HOLDING)
def test_what_skops_keeps_is_bytes_and_models(name):
    """It asks for `__getstate__`, and takes neither keys of bytes nor objects that refer to each other."""
    model, X = held(name)
    state = model.__getstate__()
    packed, models = state["_packed"]
    assert isinstance(packed, bytes)
    assert [type(one) for one in models] == [GaussianNB] * (name == "scorer")
    assert "predictor_" not in state
    again = object.__new__(type(model))
    again.__setstate__(state)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert "_packed" not in vars(again)
    assert "_packed" in state
    clone(model).__getstate__()


@pytest.mark.parametrize("name", HOLDING)
def test_skops_saves_and_loads(name):
    skops = pytest.importorskip("skops.io")
    model, X = held(name)
    file = skops.dumps(model)
    again = skops.loads(file, trusted=skops.get_untrusted_types(data=file))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_scikit_learns_word_for_the_seed():
    X, y = examples(20)
    for kind, labels in ((ConformalClassifier, y), (venn.ConformalRegressor, X[:, 0])):

        def said(kind=kind, labels=labels, **seeds):
            model = kind(**seeds).fit(X, labels)
            return model.predict_p(X) if hasattr(model, "predict_p") else [model.predictor_.seed]

        np.testing.assert_array_equal(said(seed=3), said(random_state=3))
        np.testing.assert_array_equal(said(seed=1, random_state=np.int64(3)), said(seed=3))
        drawn = [np.array(said(random_state=np.random.RandomState(seed))) for seed in (5, 5, 6)]
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert (drawn[0] != drawn[2]).any()
