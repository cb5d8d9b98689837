"""Predictive distributions of numbers against refits for every label; what is uniform is tested as such."""

import math
import pickle

import numpy as np
import pytest
from conftest import halved, refused
from naive import kernel_ridge as naive
from scipy import integrate, stats
from sklearn.linear_model import LinearRegression

import venn
from venn.distribution import NestedIntervals, NormalDistribution, PredictiveDistribution, interval_score
from venn.machines import FrozenRegressor, KernelRidge, MultiscaleRBF
from venn.predictors import (
    AdaptiveIntervals,
    ConformalDistribution,
    ConformalIntervals,
    GaussianProcess,
    InductiveDistribution,
    by_group,
)
from venn.predictors.distribution import checked_numbers

GAMMA, C = 0.7, 4.0


def examples(seed, n, tied=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)) / 2 if tied else rng.normal(size=(n, 2))
    y = X.sum(axis=1) + (rng.integers(-2, 3, n) / 2 if tied else rng.normal(size=n))
    return X, y


def system(X, x):
    Z = np.vstack([X, x])
    return naive.kernel(Z, Z, GAMMA), np.full(len(Z), 1 / C)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [ConformalDistribution, ConformalIntervals])
def test_every_probability_is_that_of_a_refit(seed, kind):
    tied = seed % 2 == 0
    X, y = examples(seed, 14, tied)
    model = kind(KernelRidge(venn.RBF(GAMMA), C), seed=seed)
    measure = naive.probability if kind is ConformalDistribution else naive.two_sided
    labels = np.arange(-3, 6, 0.5) if tied else np.linspace(-4, 5, 19)
    for i in range(14):
        prediction = model.predict_one(X[i])
        K, ridge = system(X[:i], X[i])
        for label in [*labels, y[i]]:
            expected = measure(K, ridge, np.append(y[:i], label), prediction.tau)
            if i != 1 or kind is ConformalDistribution:
                assert abs(prediction.p_value(label) - expected) < 1e-12, (i, label)
        model.learn_one(X[i], y[i])


@pytest.mark.parametrize("seed", range(3))
def test_critical_points_are_where_ranks_change(seed):
    X, y = examples(seed, 12, tied=False)
    model = ConformalDistribution(KernelRidge(venn.RBF(GAMMA), C))
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    x = np.array([0.2, 0.1])
    K, ridge = system(X, x)
    lines = model.machine.hypotheses(x)
    for i, point in enumerate(lines.critical_points()):
        alphas = naive.studentised(K, ridge, np.append(y, point))
        assert abs(alphas[i] - alphas[-1]) < 1e-9
    for lower, upper, i in zip(*lines.both_ends(), range(12), strict=True):
        for end in (lower, upper):
            alphas = np.abs(naive.studentised(K, ridge, np.append(y, end)))
            assert abs(alphas[i] - alphas[-1]) < 1e-9
        assert lower <= lines.test_scores[0] <= upper


def test_intervals_are_the_labels_of_large_p_values():
    X, y = examples(5, 39, tied=False)
    one, two = (kind(KernelRidge(venn.RBF(GAMMA), C)) for kind in (ConformalDistribution, ConformalIntervals))
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
        two.learn_one(x, label)
    left, both = one.predict_one([0.1, 0.3]), two.predict_one([0.1, 0.3])
    grid = np.linspace(-8, 8, 1601)
    for epsilon in (0.05, 0.1, 0.2, 0.5):
        lower, upper = left.interval(epsilon)
        inside = [epsilon / 2 < left.cdf_bounds(y)[1] and left.cdf_bounds(y)[0] < 1 - epsilon / 2 for y in grid]
        assert np.array_equal(inside, (lower <= grid) & (grid <= upper))
        lower, upper = both.interval(epsilon)
        plain = NestedIntervals(both.points, both.label, 1.0, origin=both.origin, grid=both.grid)
        assert np.array_equal([plain.p_value(y) > epsilon + 1e-12 for y in grid], (lower <= grid) & (grid <= upper))
        assert left.quantile(1 - epsilon / 2) == left.interval(epsilon)[1]
    assert left.interval(0.01) == both.interval(0.01) == (-math.inf, math.inf)


def test_groups_are_compared_among_themselves():
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.integers(0, 2, 20), rng.normal(size=20)]).astype(float), rng.normal(size=20)
    model = ConformalDistribution(KernelRidge(venn.RBF(GAMMA), C), group=0)
    for i in range(20):
        prediction = model.predict_one(X[i])
        K, ridge = system(X[:i], X[i])
        alphas = naive.studentised(K, ridge, np.append(y[:i], y[i]))
        of_group = np.append(X[:i, 0] == X[i, 0], True)
        below, equal = naive.rank(alphas[of_group])
        assert abs(prediction.p_value(y[i]) - (below + prediction.tau * equal) / of_group.sum()) < 1e-12
        model.learn_one(X[i], y[i])
    with pytest.raises(ValueError, match="group must hold positions of 2 features"):
        ConformalDistribution(model.machine, group=2).predict_one(X[0])


@pytest.mark.parametrize("kind", [ConformalDistribution, ConformalIntervals])
def test_groups_within_groups_are_those_of_both(kind):
    """As for predictors of classes; the outer ones must not take the place of the inner ones without a word."""
    X, y = examples(6, 40)
    both, twice = kind(KernelRidge(venn.RBF(GAMMA), C), group=(0, 1)), kind(KernelRidge(venn.RBF(GAMMA), C), group=0)
    twice = by_group(twice, [1])
    for x, value in zip(X, y, strict=True):
        assert twice.predict_one(x).p_value(value) == both.predict_one(x).p_value(value)
        both.learn_one(x, value)
        twice.learn_one(x, value)
    with pytest.raises(TypeError, match="by must be positions of features, not a function"):
        by_group(kind(KernelRidge(venn.RBF(GAMMA), C)), lambda x: x[0])
    with pytest.raises(TypeError, match="by must be a feature's position"):
        by_group(kind(KernelRidge(venn.RBF(GAMMA), C)), "kind")


# Values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_their_definitions(seed):
    rng = np.random.default_rng(seed)
    points = np.sort(rng.integers(0, 6, 1 + seed * 4) / 2)
    prediction = PredictiveDistribution(points, tau=0.3)
    for y in (-1.0, 0.0, 1.25, 1.5, 7.0):
        assert prediction.crps(y) == pytest.approx(naive.crps(points, y), abs=1e-12)
        below, equal = (points < y).sum(), (points == y).sum()
        assert prediction.p_value(y) == pytest.approx((below + 0.3 * (equal + 1)) / (len(points) + 1))
        lower, upper = prediction.interval(0.5)
        score = (upper - lower) + 4 * max(lower - y, y - upper, 0)
        assert prediction.interval_score(y, 0.5) == score
        if np.isfinite(score):
            both = prediction.pinball(y, 0.75) if prediction.quantile(0.75) == upper else None
            assert both is None or both >= 0


@pytest.mark.parametrize("level", [0, 1, -0.1, 2.0, math.nan, "0.1", True])
def test_a_level_that_no_interval_can_claim_has_no_score(level):
    """At 0 the score of a missed label would be infinite, and beyond 1 or below 0 a miss would count too little."""
    with pytest.raises((TypeError, ValueError), match=r"epsilon must be a number in \(0, 1\), got "):
        interval_score(1.0, 3.0, 3.5, level)


def test_normal_scores_are_their_integrals():
    prediction = NormalDistribution(1.0, 2.0)
    for y in (-2.0, 1.0, 6.0):
        below = integrate.quad(lambda u: prediction.cdf(u) ** 2, -30, y)[0]
        above = integrate.quad(lambda u: (1 - prediction.cdf(u)) ** 2, y, 30)[0]
        assert prediction.crps(y) == pytest.approx(below + above, abs=1e-7)
        assert prediction.cdf(y) == pytest.approx(stats.norm.cdf(y, 1, 2))
    assert prediction.interval(0.1) == pytest.approx(stats.norm.interval(0.9, 1, 2))
    assert NormalDistribution(1.0, 0.0).crps(3.0) == 2.0


@pytest.mark.parametrize("seed", range(5))
def test_the_distribution_function_counts_the_whole_mass_of_a_tied_label(seed):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.poisson(1.5, 99)).astype(float)
    prediction = PredictiveDistribution(labels, rng.uniform())
    for y in np.arange(-1, 8) + np.array([[0.0], [0.5]]):
        for one in y:
            assert prediction.cdf(one) == pytest.approx(((labels <= one).sum() + 0.5) / 100)
            low, high = prediction.cdf_bounds(one)
            assert low <= prediction.p_value(one) <= high
            assert low <= prediction.cdf(one) <= high
    lower, upper = prediction.interval(0.2)
    assert prediction.cdf(upper) - prediction.cdf(lower - 0.5) >= 0.8  # both ends belong to it, with all their mass


@pytest.mark.parametrize("n", [0, 1, 2, 7, 39, 200, 1000])
@pytest.mark.parametrize("tied", [False, True])
def test_abridged_predictions_say_the_same_at_the_levels_kept(n, tied):
    rng = np.random.default_rng(n)
    levels = (0.01, 0.05, 0.1, 0.2)
    values = np.sort(rng.integers(0, 9, 2 * n) if tied else rng.normal(size=2 * n)).astype(float)
    whole = [PredictiveDistribution(values[:n], 0.4)]
    if n > 2:  # with ties by their ends, intervals that end elsewhere, and labels that lie where none should
        ends = {
            "lows": values[:n] - 0.01, "highs": values[:n] + 0.01, "lower": np.floor(values[:n]), "upper": values[:n],
        }  # fmt: skip
        shaped = PredictiveDistribution(values[:n], 0.4, **ends, strays=2)
        short = shaped.abridged(levels)
        assert [short.interval(e) for e in levels] == [shaped.interval(e) for e in levels]
        assert [short.quantile(k / 20) for k in range(1, 20)] == [shaped.quantile(k / 20) for k in range(1, 20)]
    if n:
        whole.append(NestedIntervals(values, float(values[n - 1 : n + 1].mean()), 0.4))
    for prediction in whole:
        short = prediction.abridged(levels)
        assert len(short.points) <= min(2 * n, 120)
        assert short.label == prediction.label
        assert [short.interval(e) for e in levels] == [prediction.interval(e) for e in levels]
        if prediction is whole[0]:
            assert [short.quantile(k / 20) for k in range(1, 20)] == [prediction.quantile(k / 20) for k in range(1, 20)]
        again = short.abridged(levels)
        assert np.array_equal(again.points, short.points)
        assert np.array_equal(again.places, short.places)
        for y in (*rng.normal(size=20), 3.0):
            assert abs(short.p_value(y) - prediction.p_value(y)) <= 0.06
        if n <= 20:
            assert [short.p_value(y) for y in values] == [prediction.p_value(y) for y in values]


def test_intervals_end_where_labels_are_and_give_way_to_labels_that_lie_elsewhere():
    points = np.array([-0.4, 0.3, 0.6, 1.7, 2.2])
    lower, upper = np.array([0.0, 1.0, 1.0, 2.0, 3.0]), np.array([-1e300, 0.0, 0.0, 1.0, 2.0])
    ends = {"lows": points, "highs": points, "lower": lower, "upper": upper}
    plain, shaped = PredictiveDistribution(points), PredictiveDistribution(points, **ends)
    for y in (0.0, 1.0, 2.0, 0.45, -3.0):
        assert shaped.p_value(y) == plain.p_value(y)
        assert shaped.cdf(y) == plain.cdf(y)
        for epsilon in (0.34, 0.67, 0.99):  # none of 0, 1, 2, 3 is lost
            (low, high), (a, b) = shaped.interval(epsilon), plain.interval(epsilon)
            assert y != round(y) or (a <= y <= b) <= (low <= y <= high)
    assert shaped.interval(0.34) == (0.0, 2.0)
    assert shaped.interval(0.99) == (0.0, 0.0) or shaped.interval(0.99) == (1.0, 1.0)
    assert shaped.settled.tolist() == [0.0, 0.0, 1.0, 2.0, 2.0]
    assert PredictiveDistribution(points, **ends, strays=1).interval(0.67) == (0.0, 2.0)
    assert PredictiveDistribution(points, **ends, strays=1).interval(0.34) == (-math.inf, math.inf)


test_ends_that_are_none_are_refused = refused(lambda given: PredictiveDistribution([0.0, 1.0], **given), [
    ({"lows": [0.0, 1.0]}, "lows must be given with highs"),
    ({"lower": [0.0]}, "lower must be 2 finite numbers in ascending order"),
    ({"lows": [1.0, 0.0], "highs": [1.0, 2.0]}, "lows must be 2 finite numbers in ascending order"),
    ({"strays": 3}, "strays must be"),
], kind=ValueError)  # fmt: skip


def test_values_are_frozen_and_equal_to_their_copies():
    prediction = PredictiveDistribution([1.0, 2.0], 0.5)
    with pytest.raises(AttributeError, match="frozen"):
        prediction.tau = 0.7
    with pytest.raises(ValueError, match="read-only"):
        prediction.points[0] = 9.0
    assert pickle.loads(pickle.dumps(prediction)).p_value(1.5) == prediction.p_value(1.5)


BAD = [
    (dict(points=[2.0, 1.0]), "points must be finite and in ascending order"),
    (dict(points=[np.nan]), "points must be finite"), (dict(points="ab"), "points must be a sequence of numbers"),
    (dict(points=[1.0], tau=2.0), "tau must be"), (dict(points=[1.0], n=3), "places must be given"),
    (dict(points=[1.0, 2.0], n=3, places=[2, 2]), "places must be 2 ascending"),
    (dict(points=[1.0], guaranteed="much"), "guaranteed must be one of"),
]  # fmt: skip


test_bad_values_are_refused = refused(lambda given: PredictiveDistribution(**given), BAD)


def test_bad_questions_are_refused():
    prediction = PredictiveDistribution([1.0, 2.0])
    for ask, message in (
        (lambda: prediction.interval(1.5), "epsilon must lie"),
        (lambda: prediction.quantile("a"), "q must be"),
        (lambda: prediction.p_value(np.nan), "y must be a finite number"),
        (lambda: prediction.crps(np.inf), "y must be a finite number"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ask()
    with pytest.raises(TypeError, match="machine must be one of numbers"):
        checked_numbers("machine", venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["a", "b"]))


def test_few_and_equal_examples():
    for kind in (ConformalDistribution, ConformalIntervals):
        model = kind(KernelRidge(venn.RBF(GAMMA), C))
        prediction = model.predict_one([0.0, 0.0])
        assert (prediction.label, prediction.interval(0.5)) == (0.0, (-math.inf, math.inf))
        assert prediction.p_value(3.0) == prediction.tau
        model.learn_one([0.0, 0.0], 5.0)
        assert model.predict_one([1.0, 0.0]).label == 5.0
        model.learn_one([0.0, 0.0], 5.0)
        prediction = model.predict_one([0.0, 0.0])
        assert prediction.label == 5.0
        assert prediction.p_value(5.0) == prediction.tau


# Validity -----------------------------------------------------------------------------------------------------------


def p_values(model, X, y):
    found = []
    for x, label in zip(X, y, strict=True):
        found.append(model.predict_one(x).p_value(label))
        model.learn_one(x, label)
    return np.array(found)


def many(make, tied, runs=60, n=40):
    """P-values of several streams, whose noise is far from normal and depends on the object."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(1000 + seed)
        X = rng.integers(0, 3, (n, 2)) / 2 if tied else rng.normal(size=(n, 2))
        noise = rng.integers(-2, 3, n) / 2 if tied else rng.standard_cauchy(n) * (0.1 + np.abs(X[:, 0]))
        found.append(p_values(make(seed), X, np.round(np.sin(X[:, 0]), 1) + noise))
    return np.array(found)


@pytest.mark.parametrize("kind", [ConformalDistribution, ConformalIntervals])
@pytest.mark.parametrize("tied", [False, True])
def test_p_values_are_uniform_and_independent(kind, tied):
    p = many(lambda seed: kind(KernelRidge(venn.RBF(GAMMA), C), seed=seed), tied)
    assert stats.kstest(p.ravel(), "uniform").pvalue > 0.001
    first, second = np.digitize(p[:, :-1], [0.25, 0.5, 0.75]).ravel(), np.digitize(p[:, 1:], [0.25, 0.5, 0.75]).ravel()
    table = np.zeros((4, 4))
    np.add.at(table, (first, second), 1)
    assert stats.chisquare(table.ravel()).pvalue > 0.001
    for epsilon in (0.05, 0.1, 0.2):
        assert stats.binomtest(int((p <= epsilon).sum()), p.size, epsilon).pvalue > 0.001


class Itself:
    """A fitted regressor: the forecast is the object."""

    def predict(self, X):
        return X[:, 0]


@pytest.mark.parametrize("many", [False, True])
def test_points_that_differ_by_rounding_alone_are_ties(many):
    x, y = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 2.0]), np.array([0.2, 0.3, 0.5, 0.7, 0.9, 2.2])
    assert len(set(y - x)) > 1  # all are 0.2 but for rounding
    model = InductiveDistribution(FrozenRegressor(Itself()))
    model.learn_many(x[:, None], y)
    for new in (0.0, 0.1, 1.0, 10.0, 1000.0):
        prediction = model.predict_many([[new]])[0] if many else model.predict_one([new])
        assert len(set(prediction.points)) == 1
        point, grid = prediction.points[0], prediction.grid
        assert prediction.interval(0.5) == (point - grid, point + grid)
        assert prediction.p_value(new + 0.2) == pytest.approx(prediction.tau)


STREAMS = {
    "two decimals": lambda rng: rng.choice([0.1, 0.7], 300),
    "prices": lambda rng: np.append(36.6, rng.choice([36.5, 36.6, 36.7, 36.8], 299)),
    "far tenths": lambda rng: 1e6 + rng.integers(0, 10, 300) / 10,
    "tiny": lambda rng: 1e-9 * rng.integers(0, 3, 300),
    "one huge": lambda rng: np.where(np.arange(300) == 20, 1e12, rng.choice([0.1, 0.2, 0.3, 0.4], 300)),
    "no ties": lambda rng: rng.normal(size=300),
}


@pytest.mark.parametrize(
    ("labels", "kind"), halved(STREAMS, [ConformalDistribution, ConformalIntervals, InductiveDistribution])
)
def test_an_interval_misses_no_label_that_its_p_value_holds(kind, labels):
    """Labels tie, and no float64 is a tenth: comparing a label with the ends is as safe as asking for its p-value."""
    y = STREAMS[labels](np.random.default_rng(3)).tolist()
    frozen = FrozenRegressor(LinearRegression().fit([[0.0], [1.0]], [0.3, 0.3]))
    machine = frozen if kind is InductiveDistribution else KernelRidge(venn.RBF(0.5), 3.0)
    model, missed = kind(machine), dict.fromkeys((0.05, 0.1, 0.2), 0)
    for label in y:
        prediction = model.predict_one([1.0])
        p = prediction.p_value(label)
        outside = min(p, 1 - p) * 2 if kind is not ConformalIntervals else p
        for level in missed:
            lower, upper = prediction.interval(level)
            if not lower <= label <= upper:
                missed[level] += 1
                assert outside <= level + 1e-12
            if kind is InductiveDistribution:
                block = model.predict_many([[1.0]])
                assert tuple(block.interval(level)[0]) == (lower, upper)
                assert block.quantile(1 - level)[0] == prediction.quantile(1 - level)
        model.learn_one([1.0], label)
    for level, count in missed.items():
        assert stats.binom.sf(count - 1, len(y), level) > 0.001, f"{count} of {len(y)} missed at {level}"
    if labels == "no ties":
        assert min(missed.values()) > 0


def test_a_block_tells_how_many_examples_it_is_calibrated_on():
    model = InductiveDistribution(FrozenRegressor(Itself()))
    model.learn_many([[0.0], [1.0], [2.0]], [0.5, 1.0, 2.5])
    assert repr(model.predict_many([[1.0], [4.0]])) == "ManyDistributions(2 objects, 3 calibration examples)"


class Flat(InductiveDistribution):
    """Broken: ties are not broken at random."""

    def finished(self, block, rows, step, in_turn):
        return block.with_taus(np.full(len(rows), 0.5))


@pytest.mark.parametrize(("kind", "valid"), [(InductiveDistribution, True), (Flat, False)])
@pytest.mark.parametrize("grouped", [False, True])
def test_p_values_of_inductive_distributions_are_uniform(kind, valid, grouped):
    def make(seed):
        schedule = venn.schedules.PrefixRestart(first=8)
        model = kind(KernelRidge(venn.RBF(GAMMA), C), schedule=schedule, seed=seed)
        return by_group(model, 0) if grouped else model

    p = many(make, tied=True, runs=30)
    pvalue = stats.kstest(p.ravel(), "uniform").pvalue
    assert pvalue > 0.001 if valid else pvalue < 1e-4
    if valid:
        table = np.zeros((2, 2))
        np.add.at(table, ((p[:, :-1] > 0.5).astype(int).ravel(), (p[:, 1:] > 0.5).astype(int).ravel()), 1)
        assert stats.chisquare(table.ravel()).pvalue > 0.001


class WithoutTau(ConformalDistribution):
    """Broken: ties are not broken at random."""

    def predict_one(self, x):
        prediction = super().predict_one(x)
        return PredictiveDistribution(prediction.points, 1.0, origin=prediction.origin, grid=prediction.grid)


class Late(ConformalDistribution):
    """Broken: residuals of examples by the machine that has learned them, without the new one."""

    def predict_one(self, x):
        prediction = super().predict_one(x)
        machine = self.machine
        if machine.n < 2:
            return prediction
        forecast = machine.scores(x)[0]
        return PredictiveDistribution(np.sort(forecast + machine.labels - machine.bag.scores[0]), prediction.tau)


@pytest.mark.parametrize(("broken", "tied"), [(WithoutTau, True), (Late, False)])
def test_broken_distributions_are_not_uniform(broken, tied):
    p = many(lambda seed: broken(KernelRidge(venn.RBF(GAMMA), C), seed=seed), tied, runs=30)
    assert stats.kstest(p.ravel(), "uniform").pvalue < 1e-4


def test_leave_one_out_residuals_without_the_root_are_not_monotone():
    """A line through two points, drawn on: a larger third label moves what the first one is missed by even more."""
    Z = np.array([[-1.0], [1.0], [2.0]])
    K, ridge, y = Z @ Z.T, np.full(3, 1e-3), np.array([-3.0, 1.0])
    labels = np.linspace(-60, 60, 121)
    by = {
        measure: np.array([naive.probability(K, ridge, np.append(y, label), 0.5, measure) for label in labels])
        for measure in (naive.studentised, naive.leave_one_out)
    }
    assert (np.diff(by[naive.studentised]) >= 0).all()
    assert not (np.diff(by[naive.leave_one_out]) >= 0).all()


def test_coverage_is_that_of_the_theorem():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] ** 2 + rng.standard_t(3, 600) * (0.5 + np.abs(X[:, 1]))
    for kind in (ConformalDistribution, ConformalIntervals):
        model = kind(KernelRidge(venn.RBF(0.3), 2.0), seed=3)
        misses = {epsilon: 0 for epsilon in (0.05, 0.1, 0.2)}
        for x, label in zip(X, y, strict=True):
            prediction = model.predict_one(x)
            for epsilon in misses:
                lower, upper = prediction.interval(epsilon)
                misses[epsilon] += not lower <= label <= upper
            model.learn_one(x, label)
        for epsilon, count in misses.items():
            assert stats.binom.cdf(count, 600, epsilon) > 0.001  # a little too rare: ends are examples
            assert stats.binom.sf(count - 1, 600, epsilon) > 0.001


MADE = {
    "distribution": lambda: ConformalDistribution(KernelRidge(MultiscaleRBF(), 10.0)),
    "intervals": lambda: ConformalIntervals(KernelRidge(MultiscaleRBF(), 10.0)),
    "scaled": lambda: ConformalDistribution(KernelRidge(MultiscaleRBF(), 10.0, scale=venn.Scale(5, teach=True))),
    "adaptive": lambda: AdaptiveIntervals(ConformalIntervals(KernelRidge(MultiscaleRBF(), 10.0))),
    "inductive": lambda: InductiveDistribution(KernelRidge(MultiscaleRBF(), 10.0)),
    "process": lambda: GaussianProcess(KernelRidge(MultiscaleRBF(), 10.0)),
}
LABELS = {
    "constant": [7.5] * 24, "of size 1e100": [1e100, -1e100] * 12, "tiny": [i % 5 * 1e-300 for i in range(24)],
    "of all sizes": [1e90 if i % 7 == 0 else i * 1e-3 for i in range(24)],
    "two values": [float(i % 2) for i in range(24)], "one": [5.0], "two equal": [3.0, 3.0],
}  # fmt: skip


@pytest.mark.parametrize(("labels", "name"), halved(LABELS, MADE))
def test_odd_labels_have_an_answer(name, labels):
    X = np.random.default_rng(0).integers(0, 3, (24, 2)) / 2
    for objects in (X, np.zeros((24, 2))):
        model = MADE[name]()
        for x, y in zip(objects, LABELS[labels], strict=False):
            prediction = model.predict_one(x)
            lower, upper = prediction.interval(0.2)
            assert lower <= upper
            assert 0 <= prediction.p_value(y) <= 1
            assert math.isfinite(prediction.label)
            model.learn_one(x, y)
        if len(set(LABELS[labels])) == 1 and name not in ("inductive",):
            assert model.predict_one([0.3, 0.1]).label == LABELS[labels][0]


@pytest.mark.parametrize("spread", [False, True])
def test_a_block_says_what_each_of_its_predictions_says(spread):
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 3, (60, 2)) / 2, rng.integers(-2, 3, 60) * 0.7
    fitted = LinearRegression().fit(X[:20], y[:20])
    forecast = FrozenRegressor(fitted, LinearRegression().fit(X[:3], [0.5, 1.0, 2.0]) if spread else None)
    for model in (InductiveDistribution(forecast), by_group(InductiveDistribution(forecast), 1)):
        for block in (model.predict_many(X), model.replay_many(X[20:], y[20:]), model.predict_many(X)):
            for level in (0.02, 0.3, 0.999):
                assert block.interval(level).tolist() == [list(block[i].interval(level)) for i in range(len(block))]
            for q in (0.0, 0.01, 0.5, 0.9, 1.0):
                assert block.quantile(q).tolist() == [block[i].quantile(q) for i in range(len(block))]
