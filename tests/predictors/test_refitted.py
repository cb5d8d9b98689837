"""Batch classifiers as online predictors: the loop they stand for, and what can fail."""

import copy
import pickle

import numpy as np
import pytest
from conftest import labels, learned, objects, refused
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import venn
from venn.predictors.refits import Refitted
from venn.schedules import FixedCalibration, FreshSplit, NoTraining, Prefix, PrefixRestart

CLASSES = ("a", "b", "c")


def stream(seed=0, n=30, c=3):
    rng = np.random.default_rng(seed)
    X = objects("grid", rng, n) + rng.integers(0, 2, size=(n, 1)) / 7
    return X, np.array(CLASSES)[labels("noise", rng, X, c)].tolist()


def made(schedule=None, classes=CLASSES):
    return Refitted(GaussianNB(), classes, schedule=schedule or PrefixRestart(first=6))


class Moody:
    """A classifier of no library: fails at some numbers of examples, and answers what it is told to."""

    def __init__(self, fails=(), answer=None):
        self.fails, self.answer = fails, answer

    def fit(self, X, y):
        if len(X) in self.fails:
            raise venn.machines.NotConverged(f"not with {len(X)}")
        self.classes_, counts = np.unique(y, return_counts=True)
        self.p = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1)) if self.answer is None else self.answer


# ---------------------------------------------------------------------------------------- equal to the loop


SCHEDULES = {
    "restart": PrefixRestart(first=5, growth=1.5), "ends": PrefixRestart(first=5, last=11), "every": FreshSplit(),
    "prefix": Prefix(first=4), "once": FixedCalibration(size=3, train=8),
}  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        *((GaussianNB(), name) for name in SCHEDULES),
        (RandomForestClassifier(3, random_state=0), "restart"),
        (make_pipeline(StandardScaler(), LogisticRegression(C=0.3)), "restart"),
    ],
    ids=[*SCHEDULES, "forest", "pipeline"],
)
def test_equals_the_loop_over_fits(estimator, name):
    X, y = stream(1, 25)
    schedule = SCHEDULES[name]
    model = Refitted(estimator, CLASSES, schedule=schedule)
    n_fit = 0
    for i in range(25):
        if schedule.next_training(i - 1 if i else 0) == i:
            n_fit = i
        wanted = np.full(3, 1 / 3)
        if n_fit:
            seen = sorted(set(y[:n_fit]))
            wanted = np.array([float(label in seen) for label in CLASSES])
            if len(seen) > 1:
                fitted = copy.deepcopy(estimator).fit(X[:n_fit], y[:n_fit])
                wanted[wanted > 0] = fitted.predict_proba(X[i][None])[0]
        np.testing.assert_allclose(model.predict_one(X[i]).proba, wanted, atol=1e-12)
        assert model.fitted_to == n_fit
        model.learn_one(X[i], y[i])
    assert not hasattr(estimator, "classes_")


def test_classes_to_come_have_probability_zero_and_one_class_alone_is_certain():
    model = Refitted(LogisticRegression(), ["z", "a", "m"], schedule=FreshSplit())
    assert model.predict_one([0.0]).proba.tolist() == [1 / 3, 1 / 3, 1 / 3]
    model.learn_one([0.0], "m")
    assert model.predict_one([5.0]).proba.tolist() == [0, 0, 1]
    assert model.fitted is None
    model.learn_one([1.0], "z")
    p = model.predict_one([1.0]).proba
    assert p[1] == 0
    assert p[0] > 0.5 > p[2] > 0  # the order of classes is ours, not the estimator's
    model.learn_one([2.0], "a")
    assert (model.predict_one([1.0]).proba > 0).all()


@pytest.mark.parametrize(
    "classes", [(0, 1), (1, 0), (True, False), (2.0, 1.0), ("no", "yes"), (np.int64(4), np.int64(3))], ids=str
)
def test_labels_of_any_sortable_type(classes):
    model = Refitted(LogisticRegression(), classes, schedule=FreshSplit())
    for i in range(6):
        model.learn_one([float(i % 2)], classes[i % 2])
    assert model.predict_one([1.0]).label == classes[1]
    assert model.predict_one([0.0]).label == classes[0]


def test_labels_that_cannot_be_sorted_are_the_estimators_to_refuse():
    model = Refitted(LogisticRegression(), ["no", 1], schedule=PrefixRestart(first=2))
    model.learn_one([0.0], "no")
    with pytest.raises((TypeError, ValueError)):
        model.learn_one([1.0], 1)
    assert model.n == 2
    assert model.fitted_to == 0


def test_a_longer_stream_never_changes_earlier_forecasts_and_the_order_within_a_fit_is_the_estimators():
    X, y = stream(2)
    short, long = learned(made(), X[:12], y[:12]), learned(made(), X[:23], y[:23])
    for x in X:
        np.testing.assert_array_equal(short.predict_one(x).proba, learned(made(), X[:12], y[:12]).predict_one(x).proba)
        assert long.fitted_to == 12
        np.testing.assert_array_equal(short.predict_one(x).proba, long.predict_one(x).proba)


def test_memory_is_given_back_after_the_last_fit():
    X, y = stream(3)
    model = learned(made(PrefixRestart(first=6, last=12)), X, y)
    assert model.n == 30
    assert model.fitted_to == 12
    assert len(pickle.dumps(model)) < len(pickle.dumps(learned(made(), X, y)))


# ---------------------------------------------------------------------------------------------- what can fail


def test_a_failed_fit_keeps_the_example_and_the_forecasts_before_it():
    model = Refitted(Moody(fails=(4,)), ["no", "yes"], schedule=PrefixRestart(first=2))
    for i, y in enumerate(["no", "yes", "yes"]):
        model.learn_one([float(i)], y)
    before = model.predict_one([0.0]).proba
    with pytest.raises(venn.machines.NotConverged, match="not with 4"):
        model.learn_one([3.0], "yes")
    assert (model.n, model.fitted_to) == (4, 2)
    np.testing.assert_array_equal(model.predict_one([0.0]).proba, before)
    for i in range(4, 8):
        model.learn_one([float(i)], "yes")
    assert model.fitted_to == 8
    assert model.predict_one([0.0]).proba.tolist() == [1 / 8, 7 / 8]


def test_in_a_panel_a_failed_fit_keeps_the_news_from_nobody():
    panel = venn.Panel(moody=Refitted(Moody(fails=(2,)), CLASSES, schedule=FreshSplit()), bayes=made())
    panel.learn_one([0.0, 1.0], "a")
    with pytest.raises(venn.machines.NotConverged):
        panel.learn_one([1.0, 1.0], "b")
    assert (panel["moody"].n, panel["bayes"].n) == (2, 2)
    panel.learn_one([1.0, 1.0], "b")
    assert panel["moody"].fitted_to == 3


@pytest.mark.parametrize(
    "answer",
    [[[0.5, 0.6]], [[np.nan, 1.0]], [[-0.5, 1.5]], [[0.2, 0.3, 0.5]], [0.5, 0.5], [[0.0, 0.0]]],
    ids=["sum", "NaN", "negative", "three", "one dimension", "zeros"],
)
def test_no_distribution_is_refused(answer):
    model = Refitted(Moody(answer=answer), CLASSES, schedule=PrefixRestart(first=2))
    model.learn_one([0.0], "a")
    model.learn_one([1.0], "b")
    with pytest.raises(ValueError, match="estimator must give one probability for each of its 2 classes, with sum 1"):
        model.predict_one([0.0])


def test_sums_of_single_precision_are_made_whole():
    single = np.array([[0.1, 0.9000001]], np.float32)
    model = Refitted(Moody(answer=single), CLASSES, schedule=PrefixRestart(first=2))
    model.learn_one([0.0], "a")
    model.learn_one([1.0], "c")
    p = model.predict_one([0.0]).proba
    assert p.sum() == pytest.approx(1, abs=1e-15)
    assert p[1] == 0


test_bad_parameters = refused(lambda arguments: Refitted(*arguments[:2], **dict(*arguments[2:])), [
    ((GaussianNB(), ("a",)), "classes must hold at least 2 labels"),
    ((GaussianNB(), CLASSES, {"schedule": NoTraining()}), "schedule must be one that trains, got NoTraining"),
])  # fmt: skip


# ------------------------------------------------------------------------------------------ a good predictor


def test_repr_can_be_typed_and_the_estimator_given_is_nobody_elses():
    estimator = LogisticRegression(C=0.5)
    model = Refitted(estimator, CLASSES, schedule=PrefixRestart(first=6))
    shown = repr(model)
    assert shown.startswith("Refitted(LogisticRegression(C=0.5), classes=['a', 'b', 'c'], schedule=PrefixRestart(")
    assert repr(eval(shown)) == shown
    estimator.set_params(C=9.0)
    X, y = stream(8)
    learned(model, X, y)
    assert repr(model) == shown
    assert model.fitted.C == 0.5
