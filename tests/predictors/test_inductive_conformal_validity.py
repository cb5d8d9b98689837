"""Validity of inductive conformal predictors: exactly over all orders, as hypothesis tests, and what must fail them."""

import itertools
from collections import Counter

import numpy as np
import pytest
from conftest import labels, objects
from inductive_cases import SCHEDULES, Centroids, ManyAsGiven, centroids, frozen
from naive import inductive_conformal as naive
from naive.coins import coins
from scipy import stats

from venn.predictors.inductive_conformal import InductiveConformal
from venn.schedules import FixedCalibration, NoTraining, Prefix, PrefixRestart, RandomAssignment
from venn.smoothing import Smoothing

LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6


def law(make, X, y):
    """Return (N,) bounds between which the p-value of the true label at each step is uniform, over tau.

    p = (greater + tau equal) / total: at tau = 1 from plain p-values, at 0 by what smoothed ones add.
    """
    rows = np.arange(len(y))
    plain = make(smoothed=False).replay_many(X, y).p_values[rows, y]
    smoothed = make(smoothed=True, seed=11).replay_many(X, y).p_values[rows, y]
    tau = coins(11, 0, X)
    return (smoothed - tau * plain) / (1 - tau), plain


def chances(bounds, u):
    """Return the probabilities, over tau, that p-values within bounds are at most u."""
    low, high = bounds
    return np.clip((u - low) / (high - low), 0, 1)


# Exactly, over all orders -------------------------------------------------------------------------------------------
# Exchangeable examples come in any order alike. So p-values are independent and uniform if and only if the mean over
# all orders of the product of P(p_n <= u_n) is the product of the u_n, whatever these are.


def excess(make, X, y, start, steps, seed=0):
    """Return the largest difference of that mean and that product, orders being those of the examples from `start`."""
    rng = np.random.default_rng(seed)
    u = rng.random((20, len(y)))
    u[:, ~np.isin(np.arange(len(y)), steps)] = 1.0
    means, count = np.zeros(len(u)), 0
    for tail in itertools.permutations(range(start, len(y))):
        order = [*range(start), *tail]
        bounds = law(make, X[order], y[order])
        means += [chances(bounds, levels).prod() for levels in u]
        count += 1
    return abs(means / count - u.prod(axis=1)).max()


def conformal(machine, schedule, label_conditional=False):
    return lambda **options: InductiveConformal(
        machine, None, schedule=schedule, label_conditional=label_conditional, **options
    )


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("values", [(0.1, 0.2, 0.3, 0.4, 0.5), (0.0, 0.0, 1.0, 1.0, 1.0), (1.0,) * 5])
def test_p_values_are_independent_and_uniform_with_a_frozen_scorer(values, label_conditional):
    X = np.array([[-v, v] for v in values])
    y = np.array([0, 1, 0, 1, 1])
    make = conformal(ManyAsGiven(), NoTraining(), label_conditional)
    assert excess(make, X, y, 0, range(5)) < 1e-12


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("kind", ["normal", "few"])
def test_p_values_are_independent_and_uniform_over_periods(kind, label_conditional):
    """Of all periods together, given the first two examples, in whatever way the machine learns them."""
    rng = np.random.default_rng(1)
    X, y = objects(kind, rng, 7), np.array([0, 1, 0, 1, 1, 0, 0])
    make = conformal(Centroids([0, 1]), PrefixRestart(2, growth=2), label_conditional)
    assert excess(make, X, y, 2, range(7)) < 1e-12


def test_ranks_take_every_combination_equally_often():
    """Distinct values: the rank at step n is one of n, and over all orders every sequence of ranks comes once."""
    X = np.array([[-v, v] for v in (0.3, -1.0, 2.0, 0.7, 1.1, -0.2)])
    seen = Counter()
    for order in itertools.permutations(range(6)):
        model = InductiveConformal(ManyAsGiven(), smoothed=False)
        p = model.replay_many(X[list(order)], [0] * 6).p_values[:, 0]
        seen[tuple(np.rint(p * np.arange(1, 7)).astype(int).tolist())] += 1
    assert seen == Counter(itertools.product(*(range(1, n + 1) for n in range(1, 7))))


def test_prefix_is_independent_within_a_period_and_not_across():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(7, 1)), np.array([0, 1, 0, 1, 1, 0, 0])
    # Trained on two examples at step 4, calibrated on the others: steps 4 to 6 are one period.
    assert excess(conformal(Centroids([0, 1]), Prefix(0.5, first=4)), X, y, 2, range(4, 7)) < 1e-12
    # Trained at step 2 and step 4: steps 2 to 5 are of two.
    assert excess(conformal(Centroids([0, 1]), Prefix(0.5, first=2)), X[:6], y[:6], 1, range(2, 6)) > 1e-3


@pytest.mark.parametrize("schedule", [FixedCalibration(2), FixedCalibration(1)])
def test_a_fixed_calibration_set_gives_uniform_p_values_that_depend(schedule):
    X, y = np.array([[-v, v] for v in (0.1, 0.2, 0.3, 0.4, 0.5)]), np.zeros(5, int)
    make = conformal(ManyAsGiven(), schedule)
    for step in range(5):
        assert excess(make, X, y, 0, [step]) < 1e-12
    assert excess(make, X, y, 0, range(5)) > 1e-2


def test_label_conditional_p_values_are_uniform_in_each_class():
    """Others are not: the rare class is stranger."""
    X = np.array([[-v, v] for v in (0.1, 0.2, 0.3, 0.5, 0.25)])
    y = np.array([0, 0, 0, 1, 1])
    worst = {}
    for label_conditional in (True, False):
        make = conformal(ManyAsGiven(), NoTraining(), label_conditional)
        total, count = np.zeros((2, 5)), np.zeros((2, 5))
        for order in itertools.permutations(range(5)):
            codes = y[list(order)]
            chance = chances(law(make, X[list(order)], codes), 0.3)
            for k in (0, 1):
                total[k, codes == k] += chance[codes == k]
                count[k] += codes == k
        worst[label_conditional] = abs(total / count - 0.3).max()
    assert worst[True] < 1e-12
    assert worst[False] > 0.05


# Exactly, over the choice of the last example: single steps under every schedule -----------------------------------


def mean_over_the_last(chance, X, y, split, among=None):
    """Return the mean chance at the last step, over which of the exchangeable examples is the last."""
    n = len(y) - 1
    found = []
    for i in [*split[1], n]:
        if among is None or y[i] == among:
            order = np.arange(n + 1)
            order[[i, n]] = n, i
            found.append(chance(X[order], y[order]))
    return np.mean(found, axis=0)


LEVELS = np.array([0.01, 0.05, 0.1, 0.2, 0.37, 0.5, 0.8, 0.95])


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_single_p_values_are_uniform_over_the_choice_of_the_last_example(name, label_conditional):
    schedule, split = SCHEDULES[name]
    rng = np.random.default_rng(3)
    make = conformal(Centroids(range(2)), schedule, label_conditional)

    def chance(X, y):
        low, high = law(make, X, y)
        return chances((low[-1], high[-1]), LEVELS)

    for n, kind in ((18, "grid"), (25, "normal"), (33, "repeats")):
        X = objects(kind, rng, n + 1)
        y = labels("noise", rng, X, 2)
        among = y[n] if label_conditional else None
        mean = mean_over_the_last(chance, X, y, split(n), among)
        assert abs(mean - LEVELS).max() < 1e-12


def test_calibrating_on_what_was_trained_is_refused():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(31, 6)), rng.integers(0, 2, 31)
    split = SCHEDULES["prefix-restart"][1](30)

    def chance(split):
        def at_last(X, y):
            ranks = naive.ranks(X[:-1], y[:-1], X[-1], split, 2, centroids)[y[-1]]
            return np.array([naive.chance(ranks, u) for u in LEVELS])

        return at_last

    right = mean_over_the_last(chance(split), X, y, split)
    wrong = mean_over_the_last(chance((split[0] + split[1], split[1])), X, y, split)
    assert abs(right - LEVELS).max() < 1e-12
    assert abs(wrong - LEVELS).max() > 1e-3


# As hypothesis tests: streams ----------------------------------------------------------------------------------------


def tied_stream(rng, N):
    """Four distinct objects, labels that depend on them: most nonconformity ties."""
    X = rng.integers(0, 2, (N, 2)).astype(float)
    return X, np.where(rng.normal(size=N) < 0.5, X[:, 0], 1 - X[:, 1]).astype(int)


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("kind", ["frozen", "restarted"])
def test_p_values_pass_for_uniform_and_error_counts_for_binomial(kind, label_conditional):
    N = 4000
    X, y = tied_stream(np.random.default_rng(5), N)
    machine, schedule = (frozen(), None) if kind == "frozen" else (Centroids([0, 1]), PrefixRestart(20))
    model = InductiveConformal(machine, None, schedule=schedule, label_conditional=label_conditional, seed=21)
    p = model.replay_many(X, y).p_values[np.arange(N), y]
    assert stats.kstest(p, "uniform").pvalue > LEVEL
    for epsilon in (0.01, 0.05, 0.1, 0.2):
        errors = p <= epsilon
        assert stats.binomtest(int(errors.sum()), N, epsilon).pvalue > LEVEL
        if label_conditional:
            for k in (0, 1):
                own = errors[y == k]
                assert stats.binomtest(int(own.sum()), len(own), epsilon).pvalue > LEVEL
    for lag in (1, 2):  # disjoint pairs
        first, second = (p <= 0.5).reshape(-1, 2 * lag).T[[0, lag]]
        assert stats.binomtest(int((first & second).sum()), len(first), 0.25).pvalue > LEVEL


def test_plain_p_values_are_conservative():
    N = 2000
    X, y = tied_stream(np.random.default_rng(6), N)
    rows = np.arange(N)
    plain, smoothed = (
        InductiveConformal(frozen(), smoothed=s).replay_many(X, y).p_values[rows, y] for s in (False, True)
    )
    assert (plain >= smoothed).all()
    for epsilon in (0.05, 0.2, 0.5):
        assert stats.binomtest(int((plain <= epsilon).sum()), N, epsilon, alternative="greater").pvalue > LEVEL
    assert stats.kstest(plain, "uniform").pvalue < 1e-6


def test_wrong_ties_are_refused():
    """250 streams of 8 steps: where few are compared, the place of the new one in the tie term shows."""
    rng = np.random.default_rng(7)
    total = np.arange(1, 9)
    variants = (naive.p_values, naive.ties_without_the_new_one, naive.ties_of_the_others, naive.one_draw_for_all)
    p = {variant: [] for variant in variants}
    for stream in range(250):
        X, y = tied_stream(rng, 8)
        low, high = law(conformal(frozen(), NoTraining()), X, y)
        counts = np.rint(np.stack([low * total, (high - low) * total, total], axis=1)).astype(int).tolist()
        for row, tau in zip(counts, Smoothing(stream).block(100, 8), strict=True):
            for variant in variants:
                p[variant] += variant([row], tau)
    right, *wrong = (stats.kstest(p[variant], "uniform").pvalue for variant in variants)
    assert right > LEVEL
    assert max(wrong) < 1e-6


@pytest.mark.parametrize(
    ("machine", "schedule", "independent"),
    [
        (ManyAsGiven(), NoTraining(), True), (Centroids([0, 1]), PrefixRestart(3), True),
        (ManyAsGiven(), FixedCalibration(2), False), (Centroids([0, 1]), RandomAssignment(0.15, first=2), False),
    ],
)  # fmt: skip
def test_runs_of_small_p_values_are_as_frequent_as_independence_says(machine, schedule, independent):
    """Four steps in a row below one half: one stream in sixteen."""
    rng = np.random.default_rng(8)
    streams, runs = 600, 0
    for stream in range(streams):
        if isinstance(schedule, RandomAssignment):
            schedule = RandomAssignment(schedule.probability, 10_000 + stream, first=2)
        X = rng.normal(size=(12, 2))
        y = np.arange(12) % 2 if independent else np.zeros(12, int)
        p = (
            InductiveConformal(machine, None, schedule=schedule, seed=stream)
            .replay_many(X, y)
            .p_values[np.arange(12), y]
        )
        runs += bool((p[8:] <= 0.5).all())
    p_value = stats.binomtest(runs, streams, 1 / 16).pvalue
    assert p_value > LEVEL if independent else p_value < 1e-6
