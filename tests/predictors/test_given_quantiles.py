"""Given quantiles and distributions: their definitions, their validity, and what is refused."""

import numpy as np
import pytest
from naive import quantiles as naive
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from venn.machines import FrozenDistribution, FrozenQuantiles, FrozenRegressor
from venn.machines.rulers import LOCATION_SCALE
from venn.predictors import InductiveDistribution, InductiveIntervals, by_group

LEVELS = (0.1, 0.3, 0.5, 0.9)


def crossing(X):
    """Quantiles of integers, with ties, some of them in no order, some of no width."""
    return np.column_stack([X[:, 0], X[:, 0] + X[:, 1], 2 * X[:, 1], X[:, 0] * 0 + 2.0])


def tied(seed, n=60):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (n, 2)).astype(float), rng.integers(-2, 6, n).astype(float)


@pytest.mark.parametrize("least", [0.5, 4.0])
def test_distributions_are_ranks_of_levels(least):
    X, y = tied(0)
    model, old = InductiveDistribution(FrozenQuantiles(crossing, LEVELS, least), seed=3), []
    for x, label in zip(X, y, strict=True):
        own = crossing(x[None])[0]
        prediction = model.predict_one(x)
        for other in (label, 2.0, -7.5, 0.3):
            level = naive.distribution_function(own, LEVELS, other, least)
            assert prediction.p_value(other) == pytest.approx(naive.p_value(old, level, prediction.tau))
        for point, level in zip(prediction.points, sorted(old), strict=True):
            assert naive.distribution_function(own, LEVELS, point, least) == pytest.approx(level, abs=1e-9)
        model.learn_one(x, label)
        old.append(naive.distribution_function(own, LEVELS, label, least))


def test_intervals_are_conformalized_quantile_regression():
    X, y = tied(1, 90)
    model, old, empty = InductiveIntervals(FrozenQuantiles(crossing, LEVELS), seed=3), [], 0
    for x, label in zip(X, y, strict=True):
        own = crossing(x[None])[0]
        prediction, block = model.predict_one(x), model.predict_many([x])
        middle = (own.min() + own.max()) / 2
        for other in (label, middle, 2.0, 0.3, -7.5):
            strange = naive.strangeness(own, other)
            assert prediction.p_value(other) == pytest.approx(naive.p_value_of_strange(old, strange, prediction.tau))
        for epsilon in (0.0, 0.05, 0.2, 0.6, 0.95, 1.0):
            lower, upper = naive.interval(old, own, epsilon)
            if lower > upper:
                lower = upper = middle
                empty += 1
            assert prediction.interval(epsilon) == pytest.approx((lower, upper), abs=1e-9)
            assert prediction.abridged((epsilon,)).interval(epsilon) == prediction.interval(epsilon)
            assert tuple(block.interval(epsilon)[0]) == prediction.interval(epsilon)
        assert 0 <= prediction.abridged((0.1,)).p_value(label) <= 1
        model.learn_one(x, label)
        old.append(naive.strangeness(own, label))
    assert empty > 10


def test_given_a_normal_distribution_it_is_forecast_and_spread():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (160, 2))
    y = X[:, 0] + (0.2 + np.abs(X[:, 1])) * rng.standard_t(3, 160)
    forecast, spread = LinearRegression().fit(X[:100], y[:100]), DecisionTreeRegressor(max_depth=2, random_state=0)
    spread.fit(X[:100], np.abs(y[:100] - forecast.predict(X[:100])))

    def parameters(rows):
        return np.column_stack([forecast.predict(rows), spread.predict(rows)])

    def two_quantiles(rows):
        return parameters(rows) @ [[1.0, 1.0], [-1.0, 1.0]]

    given = FrozenRegressor(forecast, spread), FrozenDistribution(parameters, stats.norm)
    given += (FrozenQuantiles(two_quantiles, (0.16, 0.84)),)
    for kind in (InductiveDistribution, InductiveIntervals):
        blocks = [
            kind(scorer).replay_many(X[100:], y[100:]) for scorer in given[: 2 if kind is InductiveIntervals else 3]
        ]
        for epsilon in (0.05, 0.1, 0.2):
            for other in blocks[1:]:
                assert np.allclose(other.interval(epsilon), blocks[0].interval(epsilon), rtol=1e-9, atol=1e-9)
        assert [one.p_value(1.0) for one in blocks[1]] == pytest.approx([one.p_value(1.0) for one in blocks[0]])


def skewed(rng, n):
    X = rng.uniform(0, 2, (n, 1))
    return X, X[:, 0] + (0.1 + X[:, 0]) * rng.gamma(1.0, 1.0, n)


def misses(kind, scorer_of, runs=200, n=39):
    """How often an interval misses, over calibration sets with one new example each; by level."""
    rng, found = np.random.default_rng(8), dict.fromkeys((0.05, 0.1, 0.2), 0)
    for _ in range(runs):
        X, y = skewed(rng, n + 1)
        model = kind(scorer_of(X[:n], y[:n]))
        model.learn_many(X[:n], y[:n])
        prediction = model.predict_one(X[n])
        for level in found:
            lower, upper = prediction.interval(level)
            found[level] += not lower <= y[n] <= upper
    return found, runs


def quantiles_of_trees(X, y):
    tree = DecisionTreeRegressor(min_samples_leaf=2, random_state=0).fit(X, y)
    return FrozenQuantiles(lambda rows: tree.predict(rows)[:, None] + [[-0.1, 0.0, 0.1]], (0.1, 0.5, 0.9))


GIVEN = {
    "bad quantiles": lambda: FrozenQuantiles(lambda rows: rows[:, :1] * [[1.0, 3.0, 2.0]], (0.1, 0.5, 0.9)),
    "narrow ones": lambda: FrozenQuantiles(lambda rows: rows[:, :1] * [[2.0, 2.0, 2.1]], (0.1, 0.5, 0.9)),
    "a gamma distribution": lambda: FrozenDistribution(
        lambda rows: np.column_stack([rows * 0 + 1, rows, rows + 0.1]), stats.gamma
    ),
}


@pytest.mark.parametrize("kind", [InductiveDistribution, InductiveIntervals])
@pytest.mark.parametrize("given", GIVEN)
def test_intervals_miss_as_often_as_they_say(kind, given):
    """With 39 calibration examples an interval without ties misses with exactly that probability."""
    found, runs = misses(kind, lambda X, y: GIVEN[given]())
    for level, count in found.items():
        assert stats.binomtest(count, runs, level).pvalue > 0.001, f"{count} of {runs} missed at {level}"


def test_quantiles_that_saw_the_calibration_examples_fail_the_test():
    for kind in (InductiveDistribution, InductiveIntervals):
        found, runs = misses(kind, quantiles_of_trees)
        assert all(stats.binomtest(count, runs, level).pvalue < 0.001 for level, count in found.items())


def test_fitted_quantile_models_of_scikit_learn():
    pandas = pytest.importorskip("pandas")
    X, y = skewed(np.random.default_rng(2), 400)
    table = pandas.DataFrame(X, columns=["size"])
    fitted = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=10).fit(table[:200], y[:200])
        for q in (0.05, 0.95)
    ]
    scorer = FrozenQuantiles(fitted, (0.05, 0.95))
    assert np.array_equal(
        scorer.score_many(table), np.sort(np.column_stack([m.predict(table) for m in fitted]), axis=1)
    )
    assert scorer.feature_names == ("size",)
    for kind in (InductiveDistribution, InductiveIntervals):
        model = by_group(kind(scorer), 0) if kind is InductiveIntervals else kind(scorer)
        one_by_one = [model.predict_one(x).interval(0.2) for x in table[200:203].to_dict("records")]
        assert model.predict_many(table[200:203]).interval(0.2).tolist() == [list(ends) for ends in one_by_one]
    block = InductiveDistribution(scorer).replay_many(table[200:], y[200:])
    assert block[199].interval(0.1) == tuple(block.interval(0.1)[199])


def answers(*values):
    return lambda rows: np.tile(np.array(values), (len(rows), 1))


BAD = {
    "levels that fall": (lambda: FrozenQuantiles(answers(0.0, 1.0), (0.9, 0.1)), "levels must be at least 2 numbers"),
    "a level twice": (lambda: FrozenQuantiles(answers(0.0, 1.0), (0.5, 0.5)), "in ascending order"),
    "one level": (lambda: FrozenQuantiles(answers(0.0), (0.5,)), "levels must be at least 2"),
    "levels outside": (lambda: FrozenQuantiles(answers(0.0, 1.0), (0.0, 0.5)), r"numbers in \(0, 1\)"),
    "NaN": (lambda: FrozenQuantiles(answers(0.0, np.nan), (0.1, 0.9)), r"quantiles must be finite .* at row 0"),
    "wrong shape": (
        lambda: FrozenQuantiles(answers(0.0, 1.0, 2.0), (0.1, 0.9)),
        r"quantiles must be \(1, 2\), a row for each object, got shape \(1, 3\)",
    ),
    "no columns": (lambda: FrozenQuantiles(lambda rows: rows[:, 0], (0.1, 0.9)), r"got shape \(1,\)"),
    "too few": (
        lambda: FrozenQuantiles([LinearRegression().fit([[0.0]], [1.0])], (0.1, 0.9)),
        "estimator must be a regressor for each of 2 levels, got 1",
    ),
    "no model": (lambda: FrozenQuantiles("hgb", (0.1, 0.9)), "estimator must be a fitted regressor"),
    "least": (lambda: FrozenQuantiles(answers(0.0, 1.0), (0.1, 0.9), -1), "least must be a finite number >= 0"),
    "no family": (lambda: FrozenDistribution(answers(0.0, 1.0), "normal"), "family must have methods 'cdf'"),
    "bad parameters": (
        lambda: FrozenDistribution(answers(0.0, -1.0), stats.norm),
        r"family must have finite and ascending quantiles .* with \[0.0, -1.0\]",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_models_are_refused(what):
    make, message = BAD[what]
    with pytest.raises((TypeError, ValueError), match=message):
        InductiveDistribution(make()).learn_one([1.0], 2.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_the_package_of_that_method_says_the_same(epsilon):
    regression = pytest.importorskip("mapie.regression")
    X, y = skewed(np.random.default_rng(3), 500)
    levels = (epsilon / 2, 1 - epsilon / 2, 0.5)  # in their order
    fitted = [DecisionTreeRegressor(max_depth=2, random_state=0).fit(X[:100], y[:100] + 2 * q) for q in levels]
    theirs = regression.ConformalizedQuantileRegressor(fitted, confidence_level=1 - epsilon, prefit=True)
    ends = theirs.conformalize(X[100:300], y[100:300]).predict_interval(X[300:], symmetric_correction=True)[1][:, :, 0]
    model = InductiveIntervals(FrozenQuantiles(fitted[:2], levels[:2]))
    model.learn_many(X[100:300], y[100:300])
    assert np.allclose(model.predict_many(X[300:]).interval(epsilon), ends, rtol=1e-9, atol=1e-9)


def test_a_label_is_measured_by_its_distance_in_spreads():
    for scores, measures in (([[3.0, 2.0], [1.0, 0.5]], [1.5, -8.0]), ([[3.0], [1.0]], [3.0, -4.0])):
        scores, labels = np.array(scores), np.array([6.0, -3.0])
        assert LOCATION_SCALE.measured(scores, labels).tolist() == measures
        assert LOCATION_SCALE.labels(scores, np.array(measures)[:, None])[:, 0].tolist() == labels.tolist()
        assert LOCATION_SCALE.middle(scores).tolist() == [3.0, 1.0]
