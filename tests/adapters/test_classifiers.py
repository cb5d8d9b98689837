"""Transductive predictors for scikit-learn: equal to the definition at every step, lossless; what they refuse."""

import datetime

import numpy as np
import pandas as pd
import pytest
from estimator_checks import parametrize_with_each
from naive import conformal, least_squares, svm
from naive import venn as naive
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import venn
from venn.adapters.classifiers import ConformalClassifier, VennClassifier

SQUARES = {"kernel": venn.RBF(0.5), "C": 10.0, "svm": venn.LeastSquaresSVM}
BOTH = (VennClassifier, ConformalClassifier)
NAMES = np.array(["ant", "bee", "cow"])


def examples(n=40, c=2, seed=0):
    """Overlapping classes on a coarse grid: ties, duplicates, equal objects with different labels."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    X = np.round(rng.normal(size=(n, 2)) + np.column_stack([codes, codes % 2]), 0)
    return X, NAMES[codes]


def said(model, X):
    """Return all that a classifier says of objects, as one array."""
    if isinstance(model, VennClassifier):
        return np.concatenate([model.predict_proba(X)[..., None], model.predict_interval(X)], axis=2)
    return model.predict_p(X)


@parametrize_with_each([VennClassifier(), ConformalClassifier()])
@pytest.mark.filterwarnings("ignore")  # the checks warn of what they do on purpose
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------- equal to the definition


def squares_leave_one_out(X, y, x, c, kernel, C):
    """Return the (c, c) multiprobability by leave-one-out scores of least-squares machines, one by one."""
    bag = np.vstack([X, x])
    K = kernel(bag, bag)
    rows = [least_squares.leave_one_out(K, np.append(y, j), c, C) for j in range(c)]
    return naive.matrix([naive.argmax(scores) for scores in rows], y, c)


DEFINITIONS = {
    "published": ({"taxonomy": venn.Argmax()}, naive.transductive),
    "least squares, leave-one-out": (
        {"taxonomy": venn.LeaveOneOut(venn.Argmax()), "svm": venn.LeastSquaresSVM},
        squares_leave_one_out,
    ),
}


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_intervals_are_those_of_the_definition_at_every_step(name, c):
    parameters, definition = DEFINITIONS[name]
    X, y = examples(n=18, c=c, seed=1)
    codes = NAMES.searchsorted(y)
    model = VennClassifier(venn.RBF(0.5), C=2.0, **parameters)
    model.partial_fit(X[:1], y[:1], classes=NAMES[:c])
    for n in range(1, 18):
        P = definition(X[:n], codes[:n], X[n], c, svm.rbf(0.5), 2.0)
        ends = np.stack([P.min(axis=0), P.max(axis=0)], axis=1)
        np.testing.assert_allclose(model.predict_interval(X[[n]])[0], ends, atol=1e-12)
        np.testing.assert_allclose(model.predict_proba(X[[n]])[0], P.mean(axis=0), atol=1e-9)
        model.partial_fit(X[[n]], y[[n]])


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("c", [2, 3])
def test_p_values_are_those_of_the_definition(c, label_conditional):
    X, y = examples(n=24, c=c, seed=2)
    codes = NAMES.searchsorted(y)
    model = ConformalClassifier(**SQUARES, label_conditional=label_conditional, smoothed=False).fit(X[:18], y[:18])
    p = np.empty((6, c))
    for i, x in enumerate(X[18:]):
        bags = conformal.bags(conformal.squares_leave_one_out_margin, X[:18], codes[:18], x, c, svm.rbf(0.5), 10.0)
        p[i] = [conformal.p_value(values, labels, 1.0, label_conditional) for values, labels in bags]
    np.testing.assert_allclose(model.predict_p(X[18:]), p, atol=1e-12)


def test_smoothed_p_values_are_those_of_the_predictor():
    X, y = examples(n=30, seed=3)
    loop = venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, NAMES[:2].tolist()), seed=7)
    for x, label in zip(X[:20], y[:20].tolist(), strict=True):
        loop.learn_one(x, label)
    model = ConformalClassifier(**SQUARES, seed=7).fit(X[:20], y[:20])
    expected = [loop.predict_one(x).p_values for x in X[20:]]
    np.testing.assert_array_equal(model.predict_p(X[20:]), expected)
    plain = clone(model).set_params(smoothed=False).fit(X[:20], y[:20]).predict_p(X[20:])
    assert (model.predict_p(X[20:]) < plain).any()


# ------------------------------------------------------------------------------- learning and asking


@pytest.mark.parametrize("kind", BOTH)
def test_batches_of_any_size_are_one_fit(kind):
    X, y = examples(n=30, c=3, seed=4)
    whole = kind(**SQUARES).fit(X, y)
    for sizes in ([1] * 30, [1, 29], [10, 1, 4, 15]):
        model, start = kind(**SQUARES), 0
        for size in sizes:
            part = slice(start, start + size)
            model.partial_fit(X[part], y[part], classes=NAMES if start == 0 else None)
            model.predict(X[:3])  # leaves no trace
            start += size
        np.testing.assert_allclose(said(model, X), said(whole, X), atol=1e-12)
    more = kind(**SQUARES).fit(X[:12], y[:12]).partial_fit(X[12:], y[12:])  # `fit` declares the classes as well
    np.testing.assert_allclose(said(more, X), said(whole, X), atol=1e-12)
    again = more.fit(X[:12], y[:12])  # and forgets
    np.testing.assert_array_equal(said(again, X), said(kind(**SQUARES).fit(X[:12], y[:12]), X))


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("svm", [None, venn.LeastSquaresSVM], ids=["hinge", "squares"])
def test_answers_agree_with_each_other(svm, c):
    X, y = examples(n=40, c=c, seed=6)
    new = np.random.default_rng(6).normal(size=(40, 2)) * 2
    model = VennClassifier(svm=svm).fit(X, y)
    p, d = model.predict_proba(new), model.decision_function(new)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert ((p > 0) & (p < 1)).all()
    low, high = np.moveaxis(model.predict_interval(new), 2, 0)
    assert ((low <= p + 1e-12) & (p <= high + 1e-12)).all()
    np.testing.assert_array_equal(model.predict(new), model.classes_[p.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), p)
    if c == 2:
        np.testing.assert_array_equal(d > 0, p[:, 1] > p[:, 0])
        np.testing.assert_allclose(1 / (1 + np.exp(-d)), p[:, 1])
    else:
        np.testing.assert_allclose(1 / (1 + np.exp(-d)), p)
        np.testing.assert_array_equal(d.argmax(axis=1), p.argmax(axis=1))
    sets = ConformalClassifier(svm=svm, alpha=0.3).fit(X, y)
    values, scores = sets.predict_p(new), sets.decision_function(new)
    np.testing.assert_array_equal(sets.predict_set(new), values > 0.3)
    np.testing.assert_array_equal(sets.predict_set(new, alpha=0.05), values > 0.05)
    np.testing.assert_array_equal(sets.predict(new), sets.classes_[values.argmax(axis=1)])
    np.testing.assert_array_equal(scores, values[:, 1] - values[:, 0] if c == 2 else values)
    assert not hasattr(sets, "predict_proba")


def test_a_rule_picks_the_label():
    X, y = examples(n=60, c=3, seed=7)
    new = np.random.default_rng(7).normal(size=(60, 2)) * 2
    model = VennClassifier(**SQUARES, rule=venn.prediction.CategoryClass()).fit(X, y)
    predictions = [model.predictor_.predict_one(x) for x in new]
    assert {prediction.guaranteed for prediction in predictions} == {"predicted label"}
    assert model.predict(new).tolist() == [prediction.label for prediction in predictions]
    plain = VennClassifier(**SQUARES).fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(new), model.predict_proba(new))
    assert plain.predictor_.predict_one(new[0]).guaranteed == "realised row"


def test_any_function_makes_the_machine():
    X, y = examples(n=20)

    def heavier(kernel, C, classes):
        return venn.LeastSquaresSVM(kernel, C, classes, class_weights=[1, 5])

    model = VennClassifier(venn.Linear(), 2.0, svm=heavier).fit(X, y)
    assert repr(model.predictor_.machine) == repr(heavier(venn.Linear(), 2.0, ["ant", "bee"]))
    assert VennClassifier().fit(X, y).predictor_.machine.kernel == venn.RBF(1 / 2)


@pytest.mark.parametrize("kind", BOTH)
def test_a_weight_is_so_many_examples(kind):
    X, y = examples(n=20, c=3, seed=8)
    w = np.random.default_rng(8).integers(0, 4, 20)
    w[:3] = 1
    weighed, several = kind(**SQUARES).fit(X, y, w), kind(**SQUARES).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_array_equal(said(weighed, X), said(several, X))
    assert weighed.predictor_.machine.n == w.sum()
    weighed.partial_fit(X[:2], y[:2], sample_weight=[0, 2])
    several.partial_fit(X[[1, 1]], y[[1, 1]])
    np.testing.assert_array_equal(said(weighed, X), said(several, X))


# ------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("labels", [[1, 2], [-1, 1], ["no", "yes"], [False, True], [2.0, 5.0]], ids=str)
@pytest.mark.parametrize("kind", BOTH)
def test_labels_of_any_sort(kind, labels):
    X, y = examples(n=20)
    y = np.array(labels)[(y == "bee").astype(int)]
    model = kind(**SQUARES).fit(X, y)
    assert model.classes_.dtype == model.predict(X).dtype == y.dtype
    assert model.classes_.tolist() == sorted(labels)
    assert ((said(model, X) >= 0) & (said(model, X) <= 1)).all()
    codes = kind(**SQUARES).fit(X, (y == labels[1]).astype(int))
    np.testing.assert_array_equal(said(model, X), said(codes, X))


@pytest.mark.parametrize("kind", BOTH)
def test_one_class_alone_is_refused_with_advice_and_two_may_be_declared(kind):
    X, _ = examples(n=20)
    with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class, \[5\].* partial_fit\(X, y, classes="):
        kind().fit(X, [5] * 20)
    model = kind(**SQUARES).partial_fit(X, [5] * 20, classes=[5, 4])
    assert model.classes_.tolist() == [4, 5]
    values = said(model, X)
    assert values.shape[:2] == (20, 2)
    assert (values[:, 1] > values[:, 0]).any()


@pytest.mark.parametrize("kind", BOTH)
def test_a_new_class_in_mid_stream_is_refused_and_nothing_is_lost(kind):
    X, y = examples(n=20)
    model = kind(**SQUARES).fit(X[:10], y[:10])
    before = said(model, X)
    y[14] = "dog"
    with pytest.raises(ValueError, match=r"y must be among the classes \['ant', 'bee'\], got 'dog' at 4: declare it"):
        model.partial_fit(X[10:], y[10:])
    with pytest.raises(ValueError, match=r"classes must be the same as in the first call, \['ant', 'bee'\]"):
        model.partial_fit(X[10:], y[10:], classes=["ant", "bee", "dog"])
    with pytest.raises(ValueError, match="y must be among the classes"):
        model.partial_fit(X[:1], [1.0])
    assert model.predictor_.machine.n == 10
    np.testing.assert_array_equal(said(model, X), before)
    assert model.partial_fit(X[15:], y[15:], classes=["bee", "ant"]).predictor_.machine.n == 15


@pytest.mark.parametrize("kind", BOTH)
def test_a_class_that_never_came_keeps_its_column(kind):
    X, y = examples(n=20)
    model = kind(**SQUARES).partial_fit(X, y, classes=NAMES)
    assert said(model, X).shape[:2] == (20, 3)
    assert (model.predict(X) != "cow").all()
    if kind is VennClassifier:
        assert (model.predict_interval(X)[:, 2, 0] == 0).all()
        assert (model.predict_interval(X)[:, 2, 1] > 0).all()


@pytest.mark.parametrize("kind", BOTH)
def test_a_first_update_of_one_row_and_flat_objects(kind):
    X, y = examples(n=20)
    model = kind(**SQUARES).partial_fit(X[:1], y[:1], classes=["ant", "bee"])
    assert model.predictor_.machine.n == 1
    loop = model._predictor(venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, ["ant", "bee"]))
    loop.learn_one(X[0], "ant")
    np.testing.assert_array_equal(model.predict(X[:4]), [loop.predict_one(x).label for x in X[:4]])
    for call in (lambda: model.predict(X[0]), lambda: model.partial_fit(X[0], y[:1]), lambda: kind().fit(X[:, 0], y)):
        with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array(.|\n)*array.reshape\(1, -1\)"):
            call()
    assert model.predictor_.machine.n == 1


# ------------------------------------------------------------------------------- refusals

BAD = {
    "kernel": ({"kernel": 0.5}, TypeError, r"kernel must be a kernel object such as RBF\(0.1\), got 0.5"),
    "C": ({"C": -1.0}, ValueError, "C must be a finite number > 0, got -1.0"),
    "svm name": ({"svm": "hinge"}, TypeError, "svm must make a machine .* got 'hinge'"),
    "svm": ({"svm": dict}, TypeError, "dict"),
}
BAD_VENN = {
    "taxonomy": ({"taxonomy": "argmax"}, TypeError, "taxonomy must be a taxonomy object"),
    "rule": ({"rule": "mean"}, TypeError, "rule must be a rule object"),
    "rule of the machine": (
        {"rule": venn.prediction.CategoryClass(), "svm": None}, ValueError, r"rule must be RowMean\(\) or",
    ),
}  # fmt: skip
BAD_CONFORMAL = {
    "measure": ({"measure": "margin"}, TypeError, "measure must be a nonconformity measure"),
    "alpha": ({"alpha": 1.5}, ValueError, r"alpha must be a number in \[0, 1\], got 1.5"),
    "alpha's type": ({"alpha": "0.1"}, TypeError, r"alpha must be a number in \[0, 1\], got '0.1'"),
    "seed": ({"seed": -1}, ValueError, "seed"),
    "smoothed": ({"smoothed": "yes"}, TypeError, "smoothed"),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, own in zip(BOTH, (BAD_VENN, BAD_CONFORMAL), strict=True) for name in (*BAD, *own)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_bad_parameter_is_named_and_leaves_no_trace(kind, name):
    parameters, error, message = (BAD | BAD_VENN | BAD_CONFORMAL)[name]
    X, y = examples(n=20)
    model = kind(**SQUARES).fit(X, y)
    before, good = said(model, X), model.get_params()
    with pytest.raises(error, match=message):
        model.set_params(**parameters).fit(X[:, :1], y)
    model.set_params(**good)
    np.testing.assert_array_equal(said(model, X), before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.fit(X, y, [0.5] * 20), "sample_weight must hold whole numbers .* got 0.5 at 0"),
        (lambda m, X, y: m.fit(X, y, [-1] * 20), "sample_weight must be >= 0, got -1.0 at 0"),
        (lambda m, X, y: m.fit(X, y, [10**400] * 20), "sample_weight must hold numbers that a float64 can hold"),
        (lambda m, X, y: m.partial_fit([[10**400, 0]], y[:1]), "X must hold numbers that a float64 can hold"),
        (lambda m, X, y: m.fit(X, y[:9]), "inconsistent numbers of samples"),
        (lambda m, X, y: m.fit(np.where(X > 0, np.nan, X), y), "contains NaN"),
        (lambda m, X, y: m.partial_fit(X[:, :1], y), "1 features, but .* expecting 2 features"),
        (lambda m, X, y: m.partial_fit(np.where(X > 0, 1e200, X), y), "x must have finite kernel values"),
        (lambda m, X, y: clone(m).partial_fit(X, y), "classes must be given in the first partial_fit"),
        (lambda m, X, y: clone(m).partial_fit(X, y, classes=["bee"]), "classes must be at least 2 classes"),
        (lambda m, X, y: clone(m).partial_fit(X, y, classes="bee"), "classes must be a sequence of labels, got 'bee'"),
    ],
    ids=[
        "fraction", "negative", "huge weight", "huge", "lengths", "NaN", "features", "in mid-batch", "no classes",
        "one class", "a string",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", BOTH)
def test_bad_examples_leave_no_trace(kind, call, message):
    X, y = examples(n=20)
    model = kind(venn.machines.Polynomial(2), svm=venn.LeastSquaresSVM).fit(X, y)
    before = said(model, X)
    with pytest.raises(ValueError, match=message):
        call(model, X, y)
    assert model.predictor_.machine.n == 20
    np.testing.assert_array_equal(said(model, X), before)


DAYS = np.array(["2020-01-01", "NaT"], "M8[ns]")
DATES = {
    "dates": (np.column_stack([DAYS, DAYS]), r"datetime64\[ns\]"),
    "durations": (np.column_stack([DAYS, DAYS]) - DAYS[0], r"timedelta64\[ns\]"),
    "objects": (np.array([[1.0, pd.NaT], [2.0, 1.0]], object), "NaTType"),
    "lists": ([[1.0, datetime.date(2020, 1, 1)], [2.0, 1.0]], "date"),
    "a table": (pd.DataFrame({"a": [1.0, 2.0], "b": DAYS}), r"datetime64\[ns\]"),
    "objects in a table": (pd.DataFrame({"a": [1.0, 2.0], "b": np.array([1.0, pd.NaT], object)}), "NaTType"),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_are_refused_and_truth_values_are_numbers(name):
    dates, found = DATES[name]
    X, y = examples(n=20)
    model = VennClassifier(**SQUARES).fit(X, y)
    for call, more in (model.predict, ()), (model.partial_fit, (y[:2],)), (model.fit, (y[:2],)):
        with pytest.raises(TypeError, match=f"X must hold numbers, got dates or durations, {found}: make numbers"):
            call(dates, *more)
    assert model.predictor_.machine.n == 20
    np.testing.assert_array_equal(said(model, X > 0), said(model, (X > 0).astype(float)))


@pytest.mark.parametrize("kind", BOTH)
def test_a_search_reaches_into_the_kernel_and_leaves_others_theirs(kind):
    X, y = examples()
    shared = venn.RBF(0.5)
    model, other = kind(shared, C=10.0), kind(shared, C=10.0)
    assert model.set_params(kernel__gamma=2.0, C=1.0) is model
    assert (model.kernel, model.C, other.kernel, shared) == (venn.RBF(2.0), 1.0, venn.RBF(0.5), venn.RBF(0.5))
    assert model.set_params(kernel=venn.machines.Polynomial(2), kernel__degree=3).kernel == venn.machines.Polynomial(3)
    found = GridSearchCV(kind(shared), {"kernel__gamma": [0.1, 1.0]}, cv=2, error_score="raise").fit(X, y)
    one = GridSearchCV(kind(shared), {"kernel": [venn.RBF(0.1), venn.RBF(1.0)]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"])
    pipe = make_pipeline(StandardScaler(), kind(shared)).set_params(**{f"{kind.__name__.lower()}__kernel__gamma": 3.0})
    assert pipe[-1].kernel == venn.RBF(3.0)
    for wrong in ({"kernel__width": 1.0}, {"kernel__gamma": -1.0}, {"nothing__gamma": 1.0}):
        with pytest.raises(ValueError, match=r"kernel must have the parameters|gamma must be|Invalid parameter"):
            kind(shared).set_params(**wrong)
