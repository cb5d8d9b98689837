"""Validity of inductive Venn predictors as hypothesis tests, per step and online, and predictors that fail them."""

import itertools
import math

import numpy as np
import pytest
from conftest import halved, labels, objects
from inductive_cases import SCHEDULES, TAXONOMIES, Centroids, OneCategory, centroids, frozen
from naive import inductive as naive
from scipy import stats
from test_validity import departures, p_values

import venn
from venn.predictors.inductive import InductiveVenn
from venn.schedules import FixedCalibration, FreshSplit, PrefixRestart, RandomAssignment

LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6

# Validity, exactly: over the choice of the last example --------------------------------------------------------------
# Given the split, calibration examples and the new one are exchangeable: each of them is as likely to
# come last. So the mean of the departures over that choice is not close to 0 but equal to it.


def mean_over_the_last(predict, X, y, split):
    n = len(y) - 1
    D = []
    for i in [*split[1], n]:
        order = np.arange(n + 1)
        order[[i, n]] = n, i
        D.append(departures(predict(X[order][:n], y[order][:n], X[order][n]), y[order][n]))
    return np.mean(D, axis=0)


@pytest.mark.parametrize(("name", "taxonomy"), halved(SCHEDULES, TAXONOMIES))
def test_departures_cancel_over_the_choice_of_the_last_example(name, taxonomy):
    schedule, split = SCHEDULES[name]
    rng = np.random.default_rng(6)

    def predict(X, y, x):
        model = InductiveVenn(Centroids(range(3)), TAXONOMIES[taxonomy][0], schedule=schedule)
        model.learn_many(X, y)
        return model.predict_one(x).probabilities

    for n, kind in ((18, "grid"), (25, "normal"), (33, "repeats"), (40, "few")):
        X = objects(kind, rng, n + 1)
        y = labels("noise", rng, X, 3)
        assert abs(mean_over_the_last(predict, X, y, split(n))).max() < 1e-12


@pytest.mark.parametrize("broken", [naive.calibrated_on_training, naive.balanced, naive.edge_by_labels])
def test_departures_of_broken_predictors_do_not_cancel(broken):
    rng = np.random.default_rng(7)
    split = naive.prefix_restart(30, 8)
    X = rng.normal(size=(31, 6))
    y = (rng.random(31) < 0.3).astype(int)
    whole = mean_over_the_last(lambda X, y, x: broken(X, y, x, split, 2, centroids), X, y, split)
    right = mean_over_the_last(lambda X, y, x: naive.predict(X, y, x, split, 2, centroids), X, y, split)
    assert abs(whole).max() > 1e-3
    assert abs(right).max() < 1e-12


def test_restarting_after_errors_is_broken():
    """Over all orders of six labels: a period that goes on because nothing went wrong is a selected one."""
    y = [0, 0, 1, 1, 1, 0]
    orders = set(itertools.permutations(y))
    broken = np.mean([departures(naive.restarted_by_errors(o[:-1], 2), o[-1]) for o in orders], axis=0)
    model = [departures(one_category_after(o[:-1]), o[-1]) for o in orders]
    assert abs(np.mean(model, axis=0)).max() < 1e-12
    assert abs(broken).max() > 0.05


def one_category_after(y):
    model = InductiveVenn(Centroids([0, 1]), OneCategory(), schedule=PrefixRestart(2))
    model.learn_many(np.zeros((len(y), 1)), list(y))
    return model.predict_one([0.0]).probabilities


# Validity online: sums over a stream ---------------------------------------------------------------------------------


def sums(schedule, N, streams, p=0.3, taxonomy=None, sample=None, seed=10):
    """Return sums over N steps of the departures, (streams, c), and of P (1 - P) in the realised row."""
    rng = np.random.default_rng(seed)
    total, nominal = [], []
    for stream in range(streams):
        if hasattr(schedule, "probability"):
            schedule = RandomAssignment(schedule.probability, stream, schedule.first, last=schedule.last)
        X, y = sample(rng, N) if sample else (np.zeros((N, 1)), (rng.random(N) < p).astype(int))
        block = InductiveVenn(Centroids([0, 1]), taxonomy or OneCategory(), schedule=schedule).replay_many(X, y)
        P = block.probabilities[np.arange(N), y]
        total.append((np.eye(2)[y] - P).sum(axis=0))
        nominal.append((P * (1 - P)).sum(axis=0))
    return np.array(total), np.array(nominal)


def variance_ratio(schedule, N, streams, **options):
    """Return the variance of the sums, mean known to be 0, over the nominal one."""
    total, nominal = sums(schedule, N, streams, **options)
    return (total[:, 1] ** 2).mean() / nominal[:, 1].mean()


def signal(rng, N):
    X = rng.normal(size=(N, 2))
    return X, (X[:, 0] + rng.normal(size=N) > 0.7).astype(int)


@pytest.mark.parametrize("sample", [None, signal])
def test_sums_have_the_stated_variance_where_it_is_a_theorem(sample):
    """Within a chi-squared interval of the nominal variance; and the bound of Azuma and Hoeffding is kept."""
    N, streams, delta = 60, 600, 0.05
    total, nominal = sums(PrefixRestart(10), N, streams, sample=sample, taxonomy=venn.Argmax() if sample else None)
    assert (p_values(total) > LEVEL).all()
    ratio = (total**2).mean(axis=0) / nominal.mean(axis=0) * streams
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], streams)
    assert ((low < ratio) & (ratio < high)).all()
    crossings = int((abs(total[:, 1]) >= math.sqrt(N * math.log(2 / delta) / 2)).sum())
    assert stats.binomtest(crossings, streams, delta, alternative="greater").pvalue > LEVEL


@pytest.mark.program
def test_random_assignment_inflates_the_variance():
    """By 2 / q - 1 = 5.67 for q = 0.3, one category, long streams."""
    schedule = RandomAssignment(0.3, first=10, last=10)  # the scorer does not matter: trained once
    assert variance_ratio(schedule, 2000, 800) == pytest.approx(2 / 0.3 - 1, rel=0.15)


def test_fixed_calibration_inflates_the_variance():
    """By 1 + (N - 1) / (size + 1) over N steps after the calibration set is full."""
    rng = np.random.default_rng(11)
    size, N, streams = 20, 100, 300
    total, nominal = [], []
    for _ in range(streams):
        y = (rng.random(size + N) < 0.3).astype(int)
        model = InductiveVenn(frozen(), OneCategory(), schedule=FixedCalibration(size))
        model.learn_many(np.zeros((size, 2)), y[:size])
        P = model.replay_many(np.zeros((N, 2)), y[size:]).probabilities[np.arange(N), y[size:], 1]
        total.append((y[size:] - P).sum())
        nominal.append((P * (1 - P)).sum())
    ratio = np.mean(np.square(total)) / np.mean(nominal)
    assert ratio == pytest.approx(1 + (N - 1) / (size + 1), rel=0.25)


def exact_moments(split_of, N, p):
    """Return the (N, N) exact E[D_m D_n] over all labels, for one category; `split_of(n)` gives all sets B."""
    moments = np.zeros((N, N))
    for y in itertools.product((0, 1), repeat=N):
        weight = math.prod(p if label else 1 - p for label in y)
        # Splits at different steps are drawn independently: so the expectations over them multiply.
        mean = np.zeros(N)
        square = np.zeros(N)
        for n in range(N):
            D = []
            for B in split_of(n):
                ones = sum(y[i] for i in B)
                D.append(y[n] - (ones + y[n]) / (len(B) + 1))
            mean[n], square[n] = np.mean(D), np.mean(np.square(D))
        product = np.outer(mean, mean)
        np.fill_diagonal(product, square)
        moments += weight * product
    return moments


def test_fresh_splits_leave_departures_uncorrelated():
    """Exactly, over all labels and splits: so the sum has the nominal variance. Frozen sets do not have this."""
    fresh = exact_moments(lambda n: list(itertools.combinations(range(n), math.floor(0.5 * n))), 7, 0.3)
    assert abs(fresh - np.diag(np.diag(fresh))).max() < 1e-15
    assert np.diag(fresh)[2:].min() > 0.01
    fixed = exact_moments(lambda n: [range(min(n, 2))], 7, 0.3)
    assert abs(fixed - np.diag(np.diag(fixed))).max() > 0.01


def test_fresh_splits_keep_the_nominal_variance_with_a_trained_scorer():
    streams = 150
    ratio = variance_ratio(FreshSplit(0.4), 30, streams, sample=signal, taxonomy=venn.Argmax())
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], streams) / streams
    assert low < ratio < high
