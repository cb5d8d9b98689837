"""Venn-Abers prediction of numbers against its definition; probabilities of thresholds are calibrated."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from venn.machines import FrozenRegressor
from venn.predictors import VennAbersRegressor, by_group


def least_squares_isotonic(scores, labels, at):
    """The isotonic fit at a score, by the formula of largest means of smallest means."""
    order = np.unique(scores)
    place = int(np.searchsorted(order, at))
    best = -np.inf
    for first in range(place + 1):
        ends = []
        for last in range(place, len(order)):
            inside = (scores >= order[first]) & (scores <= order[last])
            ends.append(labels[inside].mean())
        best = max(best, min(ends))
    return best


def model():
    return VennAbersRegressor(FrozenRegressor(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])))


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(9, 30))
    x = rng.integers(0, 6, k) / 3 if seed % 2 else rng.normal(size=k)
    y = x + rng.integers(-2, 3, k) / 2
    one = model()
    one.learn_many(x[:, None], y.tolist())
    ordered = np.sort(y)
    for at in (x[0], 0.77):
        for epsilon in (0.2, 0.4):
            m = int(epsilon * (k + 1) / 2 + 1e-9)
            low, high = one.predict_one([at]).interval(epsilon)
            if m < 1:
                assert (low, high) == (-np.inf, np.inf)
                continue
            a, b = ordered[m - 1], ordered[k - m]  # y_(m), y_(k-m+1)
            lower = np.append(np.clip(y, a, max(a, ordered[k - m - 1])), a)
            upper = np.append(np.clip(y, min(ordered[m], b), b), b)
            scores = np.append(x, at)
            expected = [least_squares_isotonic(scores, labels, at) for labels in (lower, upper)]
            assert np.allclose(sorted(expected), (low, high), rtol=0, atol=1e-9)
        pair = one.predict_one([at]).above(0.5).pairs[1]
        for new, p in zip((0.0, 1.0), pair, strict=True):
            expected = least_squares_isotonic(np.append(x, at), np.append((y > 0.5).astype(float), new), at)
            assert abs(p - expected) < 1e-9


def test_probabilities_of_thresholds_are_calibrated():
    sums = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=41)
        y = x**3 + rng.standard_t(2, 41)
        one = model()
        one.learn_many(x[:40, None], y[:40].tolist())
        happened = y[40] > 0.3
        sums.append(happened - one.predict_one(x[40:]).above(0.3).pairs[1, int(happened)])
    assert stats.ttest_1samp(sums, 0).pvalue > 0.001


def test_few_examples_say_nothing():
    one = model()
    prediction = one.predict_one([0.5])
    assert prediction.interval(0.1) == (-np.inf, np.inf)
    assert prediction.above(0.0).pairs.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    for bad in (0.0, 1.0, "a", np.nan):
        with pytest.raises((TypeError, ValueError), match="epsilon must be"):
            prediction.interval(bad)
    with pytest.raises(ValueError, match="threshold must be a finite number"):
        prediction.above(np.inf)
    merged = model()
    merged.learn_one([0.1], 1.0)
    other = model()
    other.learn_one([0.2], 2.0)
    both = merged.merge(other)
    assert both.n == 2


def test_within_groups_blocks_say_what_single_questions_say():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 8, 60) / 4, rng.integers(0, 3, 60)])
    y = (X[:, 0] + rng.integers(-2, 3, 60) / 2).tolist()

    def said(one):
        return one.score, one.interval(0.4), one.above(0.5).pairs.tolist()

    def grouped():
        return by_group(VennAbersRegressor(FrozenRegressor(LinearRegression().fit([[0, 0], [1, 1]], [0, 1]))), by=1)

    many, single = grouped(), grouped()
    in_turn = many.replay_many(X[:45], y[:45])
    for i in range(45):
        assert said(in_turn[i]) == said(single.predict_one(X[i]))
        single.learn_one(X[i], y[i])
    block = many.predict_many(X[45:])
    assert [said(one) for one in block] == [said(single.predict_one(x)) for x in X[45:]]
    assert len(many.predict_many(X[:0])) == 0


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_the_package_of_that_name_says_the_same(epsilon):
    """On its example, `make_regression`, where one model scores calibration examples and new ones alike."""
    package = pytest.importorskip("venn_abers")
    X, y = make_regression(n_samples=300, n_features=5, noise=20.0, random_state=1)
    model = LinearRegression().fit(X[:100], y[:100])
    # It splits what it gets into rows that train, here one that its frozen model does not learn, and that calibrate.
    theirs = package.VennAbersRegressor(FrozenEstimator(model), inductive=True, cal_size=100, shuffle=False)
    theirs.fit(X[99:200], y[99:200], epsilon=epsilon)
    ours = VennAbersRegressor(FrozenRegressor(model))
    ours.learn_many(X[100:200], y[100:200].tolist())
    said = [ours.predict_one(x).interval(epsilon) for x in X[200:]]
    assert np.allclose(theirs.predict(X[200:])[1], said, rtol=0, atol=1e-9)
