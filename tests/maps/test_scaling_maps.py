"""The maps of scaling one by one: Platt, isotonic and binning at their edges, by hand and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import scaling as naive
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from test_scaling import FakeMachine, FixedMachine, binary, binning, isotonic, platt, stream

from venn._compiled.scaling import ROUGH, TINY, objective, rough_objectives, sort_again
from venn.machines.machine import NotConverged
from venn.maps.binning import EqualFrequency, EqualWidth
from venn.maps.isotonic import Isotonic

# Platt


def platt_cases():
    rng = np.random.default_rng(11)
    f = rng.normal(size=60)
    y = (rng.random(60) < 1 / (1 + np.exp(-2 * f))).astype(int)
    yield "plain", f, y
    yield "large", 1e6 * f, y
    yield "small", 1e-9 * f, y
    yield "far from 0", 1e6 + f, y
    yield "ties", np.round(f), y
    yield "separable", f, (f > 0).astype(int)
    yield "separable, +-1e6", np.where(f > 0, 1e6, -1e6), (f > 0).astype(int)
    yield "wrong way round", f, (f < 0).astype(int)
    yield "one outlier", np.append(f, 1e6), np.append(y, 0)
    yield "one consistent outlier", np.append(f, 1e6), np.append(y, 1)
    yield "one positive", f, (np.arange(60) == 17).astype(int)
    yield "two scores", np.repeat([-1.0, 1.0], 30), y
    yield "no relation", f, np.arange(60) % 2


@pytest.mark.parametrize(("f", "y"), [case[1:] for case in platt_cases()], ids=[case[0] for case in platt_cases()])
def test_platt_minimises_its_objective(f, y):
    predictor = platt(FixedMachine(f, y))
    p = binary(predictor, f)
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all() or f.max() > 10
    # Stationary: p's residuals are orthogonal to 1 and to the scores, far below what 1e-6 in p needs.
    residual = naive.soft_targets(y) - p
    z = (f - f.mean()) / abs(f - f.mean()).max()
    assert abs(residual.sum()) < 1e-9
    assert abs((residual * z).sum()) < 1e-9
    # A generic minimiser that sees the objective's values and slopes only.
    scale = abs(f - f.mean()).max()
    found = minimize(lambda ab: naive.platt_objective(z, y, *ab), np.zeros(2), jac=True, options={"gtol": 1e-8})
    outlying = scale > 100 * np.median(abs(f - np.median(f)))  # too badly conditioned for the generic one
    if not outlying:
        np.testing.assert_allclose(p, 1 / (1 + np.exp(found.x[0] * z + found.x[1])), atol=1e-6, rtol=0)
        A, B = predictor.fitted.coefficients[1]
        np.testing.assert_allclose([A * scale, B + A * f.mean()], found.x, rtol=2e-6, atol=1e-5)
    slope, offset, centre = predictor.fitted._maps[1]
    ours = naive.platt_objective(z, y, slope * scale, slope * (f.mean() - centre) + offset)[0]
    assert ours <= found.fun + 1e-9


@pytest.mark.parametrize("name", ["plain", "ties", "separable", "one positive", "no relation"])
def test_platt_is_scikit_learns_sigmoid(name):
    f, y = next(case[1:] for case in platt_cases() if case[0] == name)
    reference = _SigmoidCalibration().fit(f, y)
    grid = np.linspace(-3, 3, 50)
    # Theirs stops at a gradient of 1e-6 on half the objective, or earlier.
    np.testing.assert_allclose(binary(platt(FixedMachine(f, y)), grid), reference.predict(grid), atol=2e-4, rtol=0)


@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_platt_of_one_class_is_its_target(n, y):
    predictor = platt(FixedMachine(np.arange(n), np.full(n, y)))
    assert binary(predictor, [-1e6, 0, 3, 1e6]) == pytest.approx((n + 1) / (n + 2) if y else 1 / (n + 2), rel=1e-14)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1.0, 30.0, 1000.0])
def test_the_objective_is_the_cross_entropy_at_any_logits(size):
    f, target, weight = np.random.default_rng(0).random((3, 50))
    u = size * (f - 0.4) + 0.2
    expected = (target * np.logaddexp(0, u) + (weight - target) * np.logaddexp(0, -u)).sum()
    assert objective(f, target, weight, size, 0.2, 0.4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1.0, 30.0, 1000.0])
def test_rough_objectives_are_as_near_as_they_say(size):
    rng = np.random.default_rng(1)
    for _ in range(50):
        (f, share), weight = rng.random((2, 50)), rng.integers(1, 9, 50).astype(float)
        target, slope, ds, offset, do = share * weight, *(rng.normal(size=4) * (size, size, 3, 3))
        before, after, total = rough_objectives(f, target, weight, slope, offset, ds, do, 0.4)
        for said, step in ((before, 0), (after, 1)):
            exact = objective(f, target, weight, slope + step * ds, offset + step * do, 0.4)
            assert abs(said - exact) <= (ROUGH * exact + TINY * total) / 5
        assert total == weight.sum()


def test_platt_of_equal_scores_is_the_mean_target():
    predictor = platt(FixedMachine(np.full(5, 0.3), [1, 1, 0, 0, 0]))
    assert binary(predictor, [-9, 0.3, 9]) == pytest.approx((2 * 3 / 4 + 3 * 1 / 5) / 5, rel=1e-14)


def test_platt_does_not_remember_where_it_started():
    rng = np.random.default_rng(2)
    machine = FixedMachine([0.0], [1])
    followed = platt(machine)
    for step in range(120):
        n = int(rng.integers(1, 40))
        f = rng.normal(size=n) * 10.0 ** rng.integers(-8, 7) + rng.choice([0, 3, 1e6])
        y = (f > np.median(f)) if step % 3 == 0 else rng.random(n) < 0.4
        machine.set(f, y)
        followed.commit(None, None)
        np.testing.assert_allclose(binary(followed, f), binary(platt(machine), f), atol=1e-10, rtol=0)


def test_platt_says_when_it_does_not_converge():
    machine = FixedMachine([-1.0, 0.5, 1.0], [0, 1, 1])
    predictor = platt(machine)
    for size in (1e200, 1e-200):  # squares overflow, squares vanish
        machine.set([-size, -size, size, size], [0, 0, 1, 0])
        with pytest.raises(NotConverged, match="class 0 must converge"):
            predictor.commit(None, None)
        with pytest.raises(RuntimeError, match=r"all 4 .*, got a failed fit: the sigmoid of class 0 must"):
            predictor.predict_one([0.0])
    machine.set([-1.0, 0.5, 1.0], [0, 1, 1])
    predictor.commit(None, None)
    expected = platt(machine).predict_one([0.2]).proba
    assert predictor.predict_one([0.2]).proba == pytest.approx(expected, abs=1e-12)


def test_platt_coefficients_before_the_first_example():
    assert np.isnan(platt(FakeMachine()).fitted.coefficients).all()


# Isotonic


def test_pool_adjacent_violators_averages_by_weight():
    predictor = isotonic(FixedMachine([1, 2, 3], [1, 1, 0]))
    assert (binary(predictor, [1, 2, 3]) == 2 / 3).all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_isotonic_is_the_weighted_reference(seed, interpolation):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 400))
    f = rng.normal(size=m) if seed % 2 else rng.integers(0, 30, m) / 8
    totals = rng.integers(1, 6, m)
    positives = rng.binomial(totals, 1 / (1 + np.exp(-f)))
    reference = IsotonicRegression(out_of_bounds="clip").fit(f, positives / totals, sample_weight=totals)
    predictor = isotonic(FixedMachine(f, positives, totals), interpolation)
    np.testing.assert_allclose(binary(predictor, f), reference.predict(f), atol=1e-12, rtol=0)
    grid = np.concatenate([rng.uniform(f.min() - 1, f.max() + 1, 50), [-1e6, 1e6]])
    if interpolation == "linear":
        np.testing.assert_allclose(binary(predictor, grid), reference.predict(grid), atol=1e-9, rtol=0)
    else:
        below = [f[f <= s].max() if (f <= s).any() else f.min() for s in grid]
        np.testing.assert_allclose(binary(predictor, grid), reference.predict(below), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("ends", "at"),
    [
        ([-1.6e308, 1.6e308], [-0.8e308, 0.0, 0.8e308]),  # the difference overflows
        ([3 * 5e-324, 7 * 5e-324], [4 * 5e-324, 5 * 5e-324, 6 * 5e-324]),  # halves of neighbours are equal
        ([3 * 5e-324, 5 * 5e-324], [3 * 5e-324, 4 * 5e-324, 5 * 5e-324]),
    ],
)
def test_straight_lines_at_the_ends_of_the_numbers(ends, at):
    expected = [0, 0.5, 1] if at[0] == ends[0] else [0.25, 0.5, 0.75]
    assert list(binary(isotonic(FixedMachine(ends, [0, 1]), "linear"), at)) == expected
    assert list(Isotonic("linear").fit(ends, [0, 1])(at)) == expected


def test_isotonic_keeps_up_with_moving_scores():
    rng = np.random.default_rng(9)
    f, y = rng.normal(size=80), rng.integers(0, 2, 80)
    machine = FixedMachine(f, y)
    predictor = isotonic(machine)
    for step in range(150):
        f = f + rng.normal(size=len(f)) * (3.0 if step % 25 == 0 else 0.01)
        if step % 3:
            f, y = np.append(f, rng.normal()), np.append(y, rng.integers(0, 2))
        if step == 100:  # fewer objects than before
            f, y = f[:50], y[:50]
        machine.set(f, y)
        predictor.commit(None, None)
        assert (f[predictor.fitted._order[1]] == np.sort(f)).all()
        reference = IsotonicRegression().fit(f, y).predict(f)
        np.testing.assert_allclose(binary(predictor, f), reference, atol=1e-12, rtol=0)


@given(st.lists(st.integers(-3, 3), max_size=150), st.sampled_from(["as is", "sorted", "reversed", "last moved"]))
@settings(deadline=None)
def test_sorting_again_is_a_stable_sort(values, shape):
    keys = np.array(values, float)
    if shape == "reversed":
        keys = np.sort(keys)[::-1].copy()
    elif shape != "as is":
        keys = np.sort(keys)
        if shape == "last moved" and len(keys):
            keys[-1] = -1.0
    order = keys.argsort(kind="stable")
    expected = keys[order]
    items = np.arange(len(keys))
    sort_again(keys, items, np.empty(len(keys)), np.empty(len(keys), np.int64))
    assert (keys == expected).all()
    assert (items == order).all()


# Binning


def test_bins_hold_their_lower_edge():
    predictor = binning(FixedMachine([0, 1, 2, 3, 4], [0, 0, 1, 0, 1]), bins=4)
    # [0, 1) [1, 2) [2, 3) [3, 4]; outside: the end bins.
    assert list(binary(predictor, [-5, 0, 0.999, 1, 2, 2.5, 3, 4, 7])) == [0, 0, 0, 0, 1, 1, 0.5, 0.5, 0.5]


def test_an_empty_bin_takes_the_nearest_the_lower_of_two():
    f, y = [0, 0, 0.5, 3.5, 8], [0, 1, 1, 0, 1]
    predictor = binning(FixedMachine(f, y), bins=8)
    rates = [2 / 3, 2 / 3, 0, 0, 0, 0, 1, 1]
    assert list(binary(predictor, np.arange(8) + 0.25)) == rates
    laplace = binning(FixedMachine(f, y), bins=8, laplace=True)
    assert list(binary(laplace, np.arange(8) + 0.25)) == [3 / 5, 3 / 5, *[1 / 3] * 4, 2 / 3, 2 / 3]
    # Bins 0 and 2 are equally near to bin 1.
    tie = binning(FixedMachine([0, 3], [0, 1]), bins=3)
    assert list(binary(tie, [0.5, 1.5, 2.5])) == [0, 0, 1]


@pytest.mark.parametrize("edges", [EqualWidth(), EqualFrequency()])
def test_equal_scores_are_one_bin(edges):
    predictor = binning(FixedMachine([0.1] * 4, [1, 0, 0, 0]), edges=edges)
    assert list(binary(predictor, [-1, 0.1, 1])) == [0.25] * 3


def test_equal_frequency_shares_the_examples_out():
    rng = np.random.default_rng(1)
    f = rng.normal(size=103)
    cuts = EqualFrequency().cuts(f[None], np.ones(103, np.int64), 10)[0]
    sizes = np.bincount(cuts.searchsorted(f, side="right"), minlength=10)
    assert set(sizes) == {10, 11}


def test_one_bin_is_the_rate_of_the_class():
    machine = FakeMachine(seed=1)
    predictor = binning(machine, bins=1)
    for x, y in stream(1, 30, 8, machine.classes):
        predictor.learn_one(x, y)
    rates = machine.counts.sum(axis=0) / 30
    assert predictor.predict_one([0.0]).proba == pytest.approx(rates, abs=1e-15)


def test_own_edges():
    class AtZero:
        def cuts(self, scores, totals, bins):
            return np.zeros((len(scores), bins - 1))

    predictor = binning(FixedMachine([-1, -2, 3, 5], [0, 1, 1, 1]), bins=2, edges=AtZero())
    assert list(binary(predictor, [-1, 0])) == [0.5, 1]
    for cuts in ([1.0, 0.0], [np.nan], [np.inf], [0.0, np.inf], [0.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match=rf"edges must give 2 rows of {len(cuts)} finite nondecreasing cuts, got"):
            binning(FixedMachine([0, 1], [0, 1]), bins=len(cuts) + 1, edges=Same(cuts))
    with pytest.raises(ValueError, match="edges must give 2 rows of 9 finite"):  # a range that overflows
        binning(FixedMachine([-1.7e308, 1.7e308], [0, 1]))


class Same:
    def __init__(self, cuts):
        self.row = cuts

    def cuts(self, scores, totals, bins):
        return np.tile(self.row, (len(scores), 1))


# What all have in common
