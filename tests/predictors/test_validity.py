"""Validity as hypothesis tests: fixed seeds, stated levels, and a broken predictor that must fail them.

What is claimed (and only this): under exchangeability the row of the true label is calibrated,
E[1{y = k} - P[y, k]] = 0 for each class k, and E[1{y = y*} - P[y, y*]] = 0 for y* = argmax_k P[y, k].
"""

import math

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import KERNELS, LABELS, OBJECTS, halved, labels, learned, objects
from naive import venn as naive
from scipy import stats

import venn
from venn.taxonomies import ByScores

ARGMAX = venn.Argmax()
LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6


class OneCategory(ByScores):
    """All examples in one category."""

    def categories(self, scores):
        return np.zeros(len(scores), np.int64)


def model_of(kernel, C, c, taxonomy=ARGMAX):
    """Return a predictor of the engine that has learned nothing."""
    return venn.TransductiveVenn(venn.OneVsAllSVM(KERNELS[kernel][0], C, range(c)), taxonomy)


def engine(kernel, C, c):
    """Return the function (X, y, x) -> P of the engine."""
    return lambda X, y, x: learned(model_of(kernel, C, c), X, y).predict_one(x).probabilities


def broken(kernel, C, c):
    """Return the function (X, y, x) -> P of the predictor trained without the new example."""
    return lambda X, y, x: naive.without_the_new_example(X, y, x, c, KERNELS[kernel][1], C)


def departures(P, y):
    """Return 1{y = k} - P[y, k] for each class k, and the same for y* = argmax_k P[y, k] as the last."""
    row = P[y]
    best = int(row.argmax())
    return np.append(np.eye(len(row))[y] - row, float(y == best) - row[best])


def p_values(D):
    """Return two-sided p-values of the hypotheses that the columns of D (repetitions, .) have mean 0."""
    mean, error = D.mean(axis=0), D.std(axis=0, ddof=1) / math.sqrt(len(D))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(abs(mean) < 1e-12, 0.0, mean / error)
    return 2 * stats.norm.sf(abs(z))


def noise(rng, n, d, c=2):
    return rng.normal(size=(n, d)), rng.integers(0, c, n)


# Exactly: over one bag ------------------------------------------------------------------------------------------
# Given the bag, exchangeability says that each of its n examples is as likely to come last as any other.
# So the mean of the departures over the choice of the last example is not close to 0 but equal to it:
# within a category every example meets the same row, the category's own label frequencies.


def mean_departure_over_the_bag(predict, X, y):
    n = len(y)
    D = [departures(predict(np.delete(X, i, 0), np.delete(y, i), X[i]), y[i]) for i in range(n)]
    return np.mean(D, axis=0)


@pytest.mark.parametrize(("kind", "sequence"), halved(OBJECTS, LABELS))
def test_departures_cancel_over_the_choice_of_the_last_example(kind, sequence):
    rng = np.random.default_rng(len(kind) * 10 + len(sequence))
    X = objects(kind, rng, 9)
    y = labels(sequence, rng, X, 3)
    for kernel, C in (("rbf", 1.0), ("linear", 0.3), ("quadratic", 0.1)):
        assert abs(mean_departure_over_the_bag(engine(kernel, C, 3), X, y)).max() < 1e-12


def test_a_hundred_equal_objects():
    """T1: with nothing to tell examples apart the rows are the label frequencies."""
    X, y = np.ones((100, 2)), (np.arange(100) < 30).astype(int)
    P = engine("rbf", 1.0, 2)(X, y, np.ones(2))
    assert np.array_equal(P, np.array([[71, 30], [70, 31]]) / 101)


def test_departures_of_the_broken_predictor_do_not_cancel():
    rng = np.random.default_rng(2)
    X, y = noise(rng, 24, 40)
    assert abs(mean_departure_over_the_bag(broken("linear", 1.0, 2), X, y)).max() > 0.1
    assert abs(mean_departure_over_the_bag(engine("linear", 1.0, 2), X, y)).max() < 1e-12


# On noise, more features than examples --------------------------------------------------------------------------


def single_steps(predict, repetitions, n, d, seed, c=2):
    """Return departures, intervals of the predicted class, and hits, of single predictions on pure noise."""
    rng = np.random.default_rng(seed)
    D, intervals, hits = [], [], []
    for _ in range(repetitions):
        X, y = noise(rng, n, d, c)
        P = predict(X[:-1], y[:-1], X[-1])
        best = int(P.mean(axis=0).argmax())
        D.append(departures(P, y[-1]))
        intervals.append((P[:, best].min(), P[:, best].max()))
        hits.append(best == y[-1])
    return np.array(D), np.array(intervals), np.array(hits)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_in_sample_argmax_says_nothing_on_noise(kernel):
    """The augmented machine fits every hypothesis: width about 1, valid and useless."""
    D, intervals, _ = single_steps(engine(kernel, 10.0, 2), 120, 25, 60, seed=3)
    assert (intervals[:, 1] - intervals[:, 0]).mean() >= 0.99
    assert (p_values(D) > LEVEL).all()


def test_trained_without_the_new_example_fails_on_noise():
    """It claims at least .95 at an accuracy of chance, and the test of the realised row refuses it."""
    D, intervals, hits = single_steps(broken("linear", 10.0, 2), 80, 40, 100, seed=3)
    assert intervals[:, 0].mean() >= 0.95
    assert stats.binomtest(int(hits.sum()), len(hits), 0.5).pvalue > LEVEL
    assert stats.binomtest(int(hits.sum()), len(hits), 0.95, alternative="less").pvalue < 1e-6
    assert p_values(D)[-1] < 1e-6


# Online: sums over a stream --------------------------------------------------------------------------------------


def sums_of_departures(make, streams, N, sample):
    """Return (streams, c + 1) sums over N steps of a predictor; `sample(rng)` gives one stream (X, y)."""
    rng = np.random.default_rng(6)
    sums = []
    for _ in range(streams):
        X, y = sample(rng)
        model = make()
        total = np.zeros(len(model.classes) + 1)
        for x, label in zip(X[:N], y[:N], strict=True):
            total += departures(model.predict_one(x).probabilities, label)
            model.learn_one(x, label)
        sums.append(total)
    return np.array(sums)


def tied_signal(rng, N=40):
    X = rng.integers(0, 3, size=(N, 2)).astype(float)
    return X, np.clip(X[:, 0] + rng.integers(-1, 2, N), 0, 2).astype(int)


def test_sums_over_streams_have_mean_zero_and_keep_the_bound():
    """|sum over N steps| >= sqrt(N ln(2/delta)/2) has probability at most delta (Azuma and Hoeffding)."""
    N, streams, delta = 20, 100, 0.05
    sums = sums_of_departures(lambda: model_of("rbf", 0.5, 3), streams, N, tied_signal)
    assert (p_values(sums) > LEVEL).all()
    crossings = (abs(sums) >= math.sqrt(N * math.log(2 / delta) / 2)).sum(axis=0)
    for count in crossings:
        assert stats.binomtest(int(count), streams, delta, alternative="greater").pvalue > LEVEL


def test_one_category_sums_have_the_stated_mean_and_variance():
    """With one category D_n = 1{y_n = k} - share of k among the first n: variance p(1 - p)(1 - 1/n) a step.

    Over N steps that is p(1 - p)(N - H_N), N p(1 - p) up to a logarithm. The sample variance of 200
    nearly normal sums is within a chi-squared interval of it.
    """
    N, streams, p = 30, 200, 0.3

    def sample(rng):
        return rng.integers(0, 2, size=(N, 1)).astype(float), (rng.random(N) < p).astype(int)

    make = lambda: venn.TransductiveVenn(NearestCentroid(range(2)), OneCategory())  # noqa: E731
    sums = sums_of_departures(make, streams, N, sample)  # scores count for nothing, so the machine is a cheap one
    assert (p_values(sums[:, :2]) > LEVEL).all()
    variance = p * (1 - p) * (N - (1 / np.arange(1, N + 1)).sum())
    ratio = (sums[:, :2] ** 2).mean(axis=0) / variance * streams
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], streams)
    assert (low < ratio).all()
    assert (ratio < high).all()
    assert abs(ratio / streams - 1).max() < 0.25


@pytest.mark.program
def test_the_predicted_label_carries_no_such_guarantee():
    """The accuracy of the *predicted* label may leave the mean interval: the reason for reporting the realised row.

    With in-sample scores on noise and a category that says something, it lies below the lower bound.
    """
    D, intervals, hits = single_steps(engine("rbf", 0.05, 2), 700, 16, 2, seed=8)
    assert (p_values(D) > LEVEL).all()
    assert stats.binomtest(int(hits.sum()), len(hits), intervals[:, 0].mean(), alternative="less").pvalue < LEVEL
