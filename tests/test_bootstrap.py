"""Algorithm 1 and Ctrl1: against the loops of the paper, weights, thresholds, other bases, threads, bad input."""

import pickle
from collections import Counter

import numpy as np
import pytest
from estimator_checks import parametrize_with_each
from naive import bootstrap as naive
from sklearn.base import BaseEstimator, clone
from sklearn.svm import SVC

from venn.batch.bootstrap import BootstrapSVC, least_threshold, lower_medians

CS = [0.05, 0.5, 4.0]


def examples(seed=0, n=60, d=3, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[n // 2 :] = np.round(X[n // 2 :])
    return X, (X[:, 0] + noise * rng.normal(size=n) > 0).astype(int)


def exact(X, y, C):
    return SVC(C=C, kernel="linear", tol=1e-4).fit(X, y).decision_function


class Copies(BaseEstimator):
    """A base that takes no weights."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.machine_ = SVC(C=self.C, kernel="linear", tol=1e-4).fit(X, y)
        return self

    def decision_function(self, X):
        return self.machine_.decision_function(X)


class Moody(Copies):
    """A base that fails on some resamples, and always with a large C."""

    def __init__(self, C=1.0, often=True):
        super().__init__(C)
        self.often = often

    def fit(self, X, y):
        if self.C > 1 or (self.often and y.mean() > 0.5):
            raise ValueError("no such hyperplane")
        super().fit(X, y)
        self.status_ = "optimal" if len(X) % 2 else "time limit"
        return self


@parametrize_with_each([BootstrapSVC(resamples=5, Cs=[0.1, 1.0]), BootstrapSVC(resamples=5, Cs=[1.0], sensitivity=0.9)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------- equal to loops


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("base", [None, Copies()], ids=["own", "copies"])
def test_equals_the_paper_step_by_step(epsilon, base):
    X, y = examples()
    new = np.random.default_rng(1).normal(size=(40, 3))
    model = BootstrapSVC(CS, 12, epsilon, base=base, random_state=5).fit(X, y)
    accuracies, scores = naive.tables(X, y, new, CS, 12, 5, exact)
    w = naive.weights(accuracies, epsilon)
    np.testing.assert_allclose(model.accuracies_, np.nanmean(accuracies, axis=1), atol=1e-12)
    np.testing.assert_allclose(model.weights_, w, atol=1e-12)
    for a in 0.0, 0.3:
        clear = (abs(scores + a) > 2e-3).all(axis=(0, 1))  # our fits are those of a tolerance
        assert clear.mean() > 0.5
        found = model.probabilities(new, a)
        np.testing.assert_allclose(found[clear, 1], naive.positive(w, scores, a)[clear], atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_threshold_equals_trial():
    X, y = examples(noise=2.0)
    new, labels = examples(3, 41, noise=2.0)
    model = BootstrapSVC(CS, 7, 1.0, base=Copies(), random_state=5).fit(X, y)
    accuracies, scores = naive.tables(X, y, new[labels == 1], CS, 7, 5, exact)
    w = naive.weights(accuracies, 1.0)
    for wanted in 0.0, 0.3, 0.7, 0.9, 1.0:
        controlled = model.controlled(new, labels, wanted)
        assert controlled.threshold_ == pytest.approx(naive.threshold(w, scores, wanted), abs=1e-3)
        assert (controlled.predict(new[labels == 1]) == 1).mean() >= wanted
        if controlled.threshold_ > 0:
            less = model.probabilities(new[labels == 1], controlled.threshold_ - 1e-9)[:, 1]
            assert (less > 0.5 + 1e-9).mean() < wanted
    assert model.threshold_ == 0


@pytest.mark.parametrize("seed", [0, 10, 11])
def test_the_threshold_holds_however_objects_are_asked_for(seed):
    """Scores differ by rounding with the number of objects at a time, and one of them is the threshold."""
    X, y = examples(seed, 60, 5, noise=1.5)
    new, labels = examples(seed + 100, 203, 5, noise=1.5)
    model = BootstrapSVC([0.05, 0.5], 11, 1.0, random_state=seed).fit(X, y)
    for wanted in 0.7, 0.8, 0.9, 0.97:
        controlled = model.controlled(new, labels, wanted)
        for found in controlled.predict(new), np.concatenate([controlled.predict(x[None]) for x in new]):
            assert (found[labels == 1] == 1).mean() >= wanted


def test_training_threshold_uses_votes_of_machines_without_the_example():
    X, y = examples(noise=2.0)
    model = BootstrapSVC([1.0], 15, base=Copies(), sensitivity=0.9, random_state=2).fit(X, y)
    _, scores = naive.tables(X, y, X, [1.0], 15, 2, exact)
    needs = []
    for i in np.flatnonzero(y == 1):
        own = sorted(scores[0, b, i] for b, rows in enumerate(naive.draws(y, 15, 2)) if i not in rows)
        if own:
            # Positive above 1/2: fewer than half of the votes are below -a.
            needs.append(max(0.0, -own[(len(own) - 1) // 2]))
    needs.sort()
    assert model.threshold_ == pytest.approx(needs[int(np.ceil(0.9 * len(needs))) - 1], abs=1e-3)


def test_lower_medians_of_weighted_votes_and_none():
    scores, votes = np.array([[1.0, -2.0, 3.0], [5.0, 5.0, 5.0]]), np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 0.0]])
    medians = lower_medians(scores, votes)
    assert medians[0] == -2.0
    assert np.isnan(medians[1])
    assert least_threshold(np.array([-1.0, 2.0]), 0.5) == 0.0
    assert least_threshold(np.array([-1.0, 2.0]), 0.51) == pytest.approx(1.0, abs=1e-11)


# ------------------------------------------------------------------------------- properties


def test_weights_sum_to_one_and_epsilon_zero_keeps_the_best():
    X, y = examples(4, 80)
    every = BootstrapSVC(CS, 10, 1.0, random_state=0).fit(X, y)
    assert every.weights_.sum() == pytest.approx(1)
    assert (every.weights_ > 0).all()
    best = BootstrapSVC(CS, 10, 0.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(best.weights_ > 0, every.accuracies_ == every.accuracies_.max())
    assert every.outcomes_ == Counter(optimal=30)


def test_probability_of_the_positive_class_rises_with_the_threshold():
    X, y = examples(5)
    model = BootstrapSVC(CS, 20, 1.0, random_state=0).fit(X, y)
    p = np.array([model.probabilities(X, a)[:, 1] for a in (0.0, 0.1, 0.5, 2.0, 1e6)])
    assert (np.diff(p, axis=0) >= 0).all()
    np.testing.assert_allclose(p[-1], 1)
    np.testing.assert_array_equal(p[0], model.predict_proba(X)[:, 1])


def test_probabilities_need_no_room_for_all_scores(monkeypatch):
    X, y = examples(5)
    model = BootstrapSVC(CS, 20, 1.0, sensitivity=0.9, random_state=0)
    p, a = model.fit(X, y).predict_proba(X), model.threshold_
    monkeypatch.setattr("venn.batch.bootstrap.CHUNK", 200)
    np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-12)
    assert model.fit(X, y).threshold_ == a


@pytest.mark.parametrize("base", [None, Copies()], ids=["own", "copies"])
def test_threads_and_repeats_give_the_same_bits(base):
    X, y = examples(6)
    first, again, many = (
        BootstrapSVC(CS, 9, base=base, random_state=3, jobs=jobs).fit(X, y).probabilities(X, 0.1) for jobs in (1, 1, 3)
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, many)


def test_more_features_than_examples():
    X, y = examples(7, 30, 100)
    new = np.random.default_rng(0).normal(size=(50, 100))
    own, other = (
        BootstrapSVC([0.01, 1.0], 8, 1.0, base=base, random_state=3).fit(X, y).predict_proba(new)
        for base in (None, Copies())
    )
    assert np.mean(abs(own - other) > 1e-9) <= 0.04  # scores within the tolerance of 0


def test_weights_of_a_base_are_copies():
    X, y = examples(8)
    weighted, copies = (
        BootstrapSVC(CS, 8, base=base, random_state=3).fit(X, y).predict_proba(X)
        for base in (SVC(kernel="linear", tol=1e-4), Copies())
    )
    np.testing.assert_allclose(weighted, copies, atol=1e-12)


class Undecided(Copies):
    """A base of scores 0."""

    def decision_function(self, X):
        return np.zeros(len(X))


def test_a_score_of_zero_is_positive():
    X, y = examples(9)
    model = BootstrapSVC([1.0], 8, base=Undecided(), random_state=3).fit(X, y)
    assert (model.predict_proba(X)[:, 1] == 1).all()
    rates = [y[np.setdiff1d(np.arange(60), rows)].mean() for rows in naive.draws(y, 8, 3)]
    np.testing.assert_allclose(model.accuracies_, [np.mean(rates)])


def test_labels_of_any_kind():
    X, y = examples(9)
    model = BootstrapSVC(CS, 8, random_state=3).fit(X, np.array(["no", "yes"])[y])
    assert model.classes_.tolist() == ["no", "yes"]
    numbers = BootstrapSVC(CS, 8, random_state=3).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), numbers.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X) == "yes", numbers.predict(X) == 1)


def test_objects_are_not_kept():
    X, y = examples(9, 2000, 5)
    model = BootstrapSVC([0.1], 3, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert len(pickle.dumps(model)) < X.nbytes / 10


def test_progress():
    X, y = examples()
    told = []
    BootstrapSVC([1.0], 3, random_state=0, progress=lambda *numbers: told.append(numbers)).fit(X, y)
    assert told == [(1, 3), (2, 3), (3, 3)]


# ------------------------------------------------------------------------------- failures


def test_failed_fits_are_counted_and_have_no_vote():
    X, y = examples(10)
    model = BootstrapSVC([0.5, 8.0], 20, base=Moody(), random_state=0).fit(X, y)
    many = sum(y[rows].mean() <= 0.5 for rows in naive.draws(y, 20, 0))
    assert 0 < many < 20
    assert model.outcomes_ == Counter({"ValueError": 40 - many, "time limit": many})
    assert np.isnan(model.accuracies_[1])
    np.testing.assert_array_equal(model.weights_, [1, 0])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1] * many, np.rint(model.predict_proba(X)[:, 1] * many))


def test_all_fits_failed():
    X, y = examples()
    model = BootstrapSVC([8.0], 3, base=Moody(), random_state=0)
    with pytest.raises(RuntimeError, match=r"base must be fitted to some resample, got \{'ValueError': 3\}") as caught:
        model.fit(X, y)
    assert str(caught.value.__cause__) == "no such hyperplane"
    assert not hasattr(model, "classes_")


X2, Y2 = examples(0, 20)
BAD = [
    ({"Cs": []}, ValueError, r"Cs must hold at least one number, got \[\]"),
    ({"Cs": 1.0}, TypeError, r"Cs must be a sequence of finite numbers > 0, got 1\.0"),
    ({"Cs": [1.0, -1.0]}, ValueError, r"Cs must be a finite number > 0, got -1\.0"),
    ({"resamples": 0}, ValueError, "resamples must be an integer >= 1, got 0"),
    ({"resamples": 2.5}, TypeError, r"resamples must be an integer >= 1, got 2\.5"),
    ({"epsilon": -0.1}, ValueError, r"epsilon must be a finite number >= 0, got -0\.1"),
    ({"jobs": 0}, ValueError, "jobs must be an integer >= 1, got 0"),
    ({"sensitivity": 1.5}, ValueError, r"sensitivity must be a number in \[0, 1\], got 1\.5"),
    ({"sensitivity": "all"}, TypeError, r"sensitivity must be a number in \[0, 1\], got 'all'"),
    ({"base": SVC}, TypeError, "base must be an estimator with fit, decision_function and a parameter C"),
    ({"base": 3}, TypeError, "base must be an estimator .* got 3"),
    ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), BAD, ids=range(len(BAD)))
def test_bad_parameters_leave_what_was_fitted(parameters, error, message):
    model = BootstrapSVC([1.0], 3, random_state=0).fit(X2, Y2)
    before = model.predict_proba(X2)
    old = clone(model).get_params()
    model.set_params(**parameters)
    with pytest.raises(error, match=message):
        model.fit(X2[:, :2], Y2)
    model.set_params(**old)
    np.testing.assert_array_equal(model.predict_proba(X2), before)


def test_bad_examples():
    model = BootstrapSVC([1.0], 3, random_state=0)
    with pytest.raises(ValueError, match="y must hold 2 classes, got 1 class"):
        model.fit(X2, np.zeros(20))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        model.fit(X2, np.arange(20) % 3)
    with pytest.raises(ValueError, match="X must have examples that some resample leaves out, got 2 and none of them"):
        model.fit(X2[:2], [0, 1])
    model.fit(X2, Y2)
    for y, message in (
        (np.zeros(20), "y must hold at least one 1, got none"),
        (Y2[:3], r"y must have shape \(20,\)"),
        (np.full(20, 7), r"y must hold labels of \[0, 1\], got .*7.* at 0"),
    ):
        with pytest.raises(ValueError, match=message):
            model.controlled(X2, y, 0.5)
    with pytest.raises(ValueError, match=r"sensitivity must be a number in \[0, 1\], got 2"):
        model.controlled(X2, Y2, 2)
    with pytest.raises(ValueError, match="threshold must be a finite number >= 0, got -1"):
        model.probabilities(X2, -1)
