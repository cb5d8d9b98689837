"""Batch maps from scores to probabilities: equal to their definitions, and what they do at their edges."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from naive import maps as naive
from scipy.special import betainc, betaln, expit, log_expit, logit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from venn.maps.beta import Beta2, BetaScaling, BetaTransform, FittedBeta2, quantiles
from venn.maps.beta_calibration import BetaCalibration
from venn.maps.classes import OneVsAll, Temperature
from venn.maps.sigmoids import Platt, Sigma01, SigmaPP, Softmax
from venn.maps.steps import Binning, EqualFrequency, EqualWidth, Isotonic

BINARY = {
    "Platt": Platt(),
    "softmax": Softmax(),
    "linear": Sigma01(),
    "clipped": SigmaPP(),
    "Beta-2": Beta2(),
    "beta calibration": BetaCalibration(),
    "bins": Binning(),
    "frequency": Binning(50, EqualFrequency(), laplace=True),
    "step": Isotonic(),
    "interpolated": Isotonic("linear"),
}
SEVERAL = {
    "temperature": Temperature(),
    "Beta": BetaScaling(),
    "tuned Beta": BetaScaling(tuned=True),
    **{f"all {name}": OneVsAll(one) for name, one in BINARY.items()},
}
# Each with its definition, and how exactly it must be met.
ORACLES = {
    "Platt": (Platt(), naive.platt, 1e-9),
    "softmax": (Softmax(), lambda *_: lambda s: naive.sigmoid(2 * s), 1e-15),
    "linear": (Sigma01(), naive.linear, 1e-15),
    "clipped": (SigmaPP(), naive.clipped_linear, 1e-15),
    "Beta-2": (Beta2(), naive.beta2, 2e-6),
    "beta calibration": (BetaCalibration(), naive.beta_calibration, 1e-6),
    "width": (Binning(7), partial(naive.binning, bins=7, frequency=False, laplace=False), 1e-15),
    "width, laplace": (
        Binning(4, laplace=True),
        partial(naive.binning, bins=4, frequency=False, laplace=True),
        1e-15,
    ),
    "frequency": (
        Binning(6, EqualFrequency()),
        partial(naive.binning, bins=6, frequency=True, laplace=False),
        1e-15,
    ),
    "step": (Isotonic(), partial(naive.isotonic, interpolation="step"), 1e-14),
    "interpolated": (Isotonic("linear"), partial(naive.isotonic, interpolation="linear"), 1e-14),
}
SCORES = ("normal", "tied", "shifted", "wrong", "separable", "inverted", "middle")


def binary_data(kind, seed, n=60):
    """Return scores, labels and weights; both classes have some weight."""
    rng = np.random.default_rng([SCORES.index(kind), seed])
    y = rng.integers(0, 2, n)
    f = rng.normal(0.7 * (2 * y - 1), 1.0)
    if kind == "tied":
        f = np.round(2 * f) / 2
    if kind == "shifted":
        f = 0.3 * f + 1.5
    if kind == "wrong":
        f = -f
    if kind == "separable":
        f = np.abs(f) * (2 * y - 1)
    if kind == "inverted":  # separable but for one close pair
        f = np.abs(f) * (2 * y - 1)
        f[:2], y[:2] = (0.01, 0.0), (0, 1)
    if kind == "middle":  # negatives lie between positives
        y = (np.abs(f) > 0.7).astype(int)
    w = rng.integers(0, 4, n)
    w[:2] = 1
    return f, y, w / rng.choice([1, 1, 8])


def class_data(seed, n=60, c=3, sharpness=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    f = rng.normal(size=(n, c)) + sharpness * np.eye(c)[y]
    return np.round(f, 1), y, rng.integers(0, 4, n) / rng.choice([1, 4])


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_maps_equal_their_definitions(name, kind, weighted):
    method, oracle, tolerance = ORACLES[name]
    for seed in range(2 if tolerance < 1e-7 else 1):
        f, y, w = binary_data(kind, seed, 40)
        if not weighted:
            w = np.ones(len(f))
        present = w > 0
        expected = oracle(f[present].tolist(), y[present].tolist(), w[present].tolist())
        at = np.concatenate([f, np.linspace(-5, 5, 21), [-1.0, 1.0]])
        found = method.fit(f, y, w if weighted else None)(at)
        np.testing.assert_allclose(found, [expected(s) for s in at], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_equals_scikit_learn(kind, weighted):
    f, y, w = binary_data(kind, 7, 300)
    w = w if weighted else None
    theirs = _SigmoidCalibration().fit(f, y, w)
    mine = Platt().fit(f, y, w)
    at = np.linspace(-5, 5, 50)
    np.testing.assert_allclose(mine(at), theirs.predict(at), rtol=0, atol=1e-5)  # their gradient stops at 1e-6
    np.testing.assert_allclose(mine.coefficients, (theirs.a_, theirs.b_), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_equals_scikit_learn(kind, weighted):
    f, y, w = binary_data(kind, 8, 500)
    present = w > 0 if weighted else w >= 0
    theirs = IsotonicRegression(out_of_bounds="clip").fit(f[present], y[present], w[present] if weighted else None)
    at = np.concatenate([f, np.linspace(-6, 6, 100)])
    mine = Isotonic("linear").fit(f, y, w if weighted else None)
    np.testing.assert_allclose(mine(at), theirs.predict(at), rtol=0, atol=1e-12)
    steps = Isotonic().fit(f, y, w if weighted else None)
    np.testing.assert_allclose(steps(f[present]), theirs.predict(f[present]), rtol=0, atol=1e-12)


def test_pool_adjacent_violators_by_hand():
    assert Isotonic().fit([1, 2, 3], [1, 1, 0])([1, 2, 3]).tolist() == [2 / 3] * 3
    fitted = Isotonic().fit([1, 2, 3, 4], [0, 1, 0, 1], [1, 1, 3, 1])
    assert fitted.first.tolist() == [1, 2, 4]
    assert fitted.last.tolist() == [1, 3, 4]
    assert fitted.value.tolist() == [0, 0.25, 1]


@pytest.mark.parametrize("seed", range(4))
def test_temperature_equals_a_generic_minimiser(seed):
    f, y, w = class_data(seed)
    expected = naive.temperature(f.tolist(), y.tolist(), w.tolist())
    found = Temperature().fit(f, y, w)(f)
    np.testing.assert_allclose(found, [expected(row) for row in f.tolist()], rtol=0, atol=1e-6)
    np.testing.assert_allclose(Temperature().fit(1e6 * f, y, w)(1e6 * f), found, rtol=0, atol=1e-9)


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_beta_scaling_equals_its_definition(seed, tuned):
    f, y, w = class_data([seed, 9], sharpness=(0.5, 1.5)[seed % 2], c=(3, 2)[seed // 2])
    if seed == 0:
        w[:] = 1
    expected = naive.beta_scaling(f.tolist(), y.tolist(), w.tolist(), tuned)
    at = np.vstack([f, 3 * f])
    found = BetaScaling(tuned).fit(f, y, w)(at)
    np.testing.assert_allclose(found, [expected(row) for row in at.tolist()], rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_one_against_all_equals_its_definition(seed):
    f, y, w = class_data([seed, 10])
    for method, oracle in ((Platt(), naive.platt), (Sigma01(), naive.linear)):
        present = w > 0
        expected = naive.one_vs_all(oracle, f[present].tolist(), y[present].tolist(), w[present].tolist())
        found = OneVsAll(method).fit(f, y, w)(f)
        np.testing.assert_allclose(found, [expected(row) for row in f.tolist()], rtol=0, atol=1e-9)


def test_one_against_all_by_hand():
    scores = [[1.0, -2.0, -2.0], [-2.0, 0.0, -2.0], [-2.0, -2.0, -2.0]]
    fitted = OneVsAll(Sigma01()).fit(scores, [0, 1, 0])
    # Below -1: of class 0 one of two, of class 1 none, of class 2 none.
    assert [m.below for m in fitted.maps] == [0.5, 0, 0]
    assert fitted([[0.0, 0.5, -3.0]]).tolist() == [[0.4, 0.6, 0.0]]
    assert fitted([[-1.0, -1.0, -1.0]]).tolist() == [[1 / 3] * 3]


def test_linear_maps_by_hand():
    f = [-3, -2, -1.5, -1.1, -1, 0, 1, 1.1, 2, 3, 4, 5]
    y = [0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1]
    fitted, clipped = Sigma01().fit(f, y), SigmaPP().fit(f, y)
    assert (fitted.below, fitted.above) == (clipped.below, clipped.above) == (0.25, 0.8)
    assert fitted([-9, -1, -0.5, 0, 1, 9]).tolist() == [0.25, 0, 0.25, 0.5, 1, 0.8]
    assert clipped([-9, -1, -0.5, 0, 0.8, 1, 9]).tolist() == [0.25, 0.25, 0.25, 0.5, 0.8, 0.8, 0.8]
    for method in (Sigma01(), SigmaPP()):
        nothing = method.fit([-1.0, 0.5, 1.0], [1, 0, 0])
        assert (nothing.below, nothing.above) == (0, 1)
    wrong = SigmaPP().fit([-2.0, -2.0, 2.0, 2.0], [1, 1, 0, 1])
    assert wrong([-3, 0, 3]).tolist() == [0.5] * 3


@pytest.mark.parametrize("seed", range(10))
def test_scalings_at_zero_and_their_order(seed):
    f, y, w = binary_data("normal", seed)
    at = np.linspace(-4, 4, 400)
    for name in ("linear", "clipped", "softmax"):
        fitted = BINARY[name].fit(f, y, w)
        assert fitted([0.0]) == 0.5
    for name in ("Platt", "softmax", "clipped", "Beta-2", "beta calibration", "step", "interpolated"):
        assert (np.diff(BINARY[name].fit(f, y, w)(at)) >= 0).all(), name


def test_equal_beta_laws_are_the_identity():
    m = np.concatenate([np.linspace(0, 1, 101), [1e-12, 1e-300]])
    for shapes in ((1.0, 1.0), (0.3, 0.2), (2.5, 40.0), (80.0, 1.0)):
        scaled, rest = BetaTransform(shapes, shapes)(m, 1 - m)
        np.testing.assert_allclose(scaled, m, rtol=0, atol=1e-12)
        np.testing.assert_allclose(rest, 1 - m, rtol=0, atol=1e-12)


def test_beta_transform_by_hand():
    # F of shapes (2, 1) is m^2, of (1, 3) it is 1 - (1 - m)^3; Q of (1, 1) is the identity.
    m = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(BetaTransform((2.0, 1.0), (1.0, 1.0))(m, 1 - m)[0], m**2, rtol=1e-13)
    np.testing.assert_allclose(BetaTransform((1.0, 3.0), (1.0, 1.0))(m, 1 - m)[1], (1 - m) ** 3, rtol=1e-13)
    np.testing.assert_allclose(BetaTransform((1.0, 1.0), (1.0, 3.0))(m, 1 - m)[1], (1 - m) ** (1 / 3), rtol=1e-13)
    tiny = np.array([1e-20])  # far from a half both tails keep their digits
    np.testing.assert_allclose(BetaTransform((2.0, 1.0), (1.0, 1.0))(tiny, 1 - tiny)[0], 1e-40, rtol=1e-12)
    np.testing.assert_allclose(BetaTransform((1.0, 2.0), (1.0, 1.0))(1 - tiny, tiny)[1], 1e-40, rtol=1e-12)
    # F of shapes (a, 1) is m^a, so Q is its root; also far below the last bit of 1.
    for a in (0.5, 3.0, 12.0):
        for m in (1e-7, 1e-60, 1e-200):
            scaled, _ = BetaTransform((1.0, 1.0), (a, 1.0))(np.array([m]), np.array([1 - m]))
            np.testing.assert_allclose(scaled, m ** (1 / a), rtol=1e-10)


def test_beta_scaling_by_hand():
    """Class 0: mean 2/3 and variance 1/18 are the law with shapes 2 and 1; one of two right: N = 2, s = m^2."""
    high, low = 2 / 3 + 18**-0.5, 2 / 3 - 18**-0.5
    rows = [[high, (1 - high) / 2, (1 - high) / 2], [low, (1 - low) / 2, (1 - low) / 2]]
    rows += [[0.2, 0.5, 0.3], [0.3, 0.1, 0.6], [0.2, 0.1, 0.7]]
    # Class 1: one example, right, so CR = 1: m - 0.5 + 1. Class 2: none right: the rates of the labels.
    y = np.array([0, 1, 1, 0, 0])
    fitted = BetaScaling().fit(np.log(rows), y)
    new = np.log([[0.6, 0.3, 0.1], [0.3, 0.45, 0.25], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7]])
    expected = np.array([[0.36, 0.48, 0.16], [0.3 * 0.05 / 0.55, 0.95, 0.25 * 0.05 / 0.55], [0, 1, 0], [0.6, 0.4, 0]])
    np.testing.assert_allclose(fitted(new), expected, rtol=0, atol=1e-12)
    for order in itertools.permutations(range(3)):  # no class is before another
        permuted = BetaScaling().fit(np.log(rows)[:, order], np.argsort(order)[y])
        np.testing.assert_allclose(permuted(new[:, order]), expected[:, order], rtol=0, atol=1e-12)
    assert fitted.prior.tolist() == [0.6, 0.4, 0.0]
    # A membership of 1: others share equally what is left.
    assert fitted([[1e6, 0.0, -5.0]]).tolist() == [[1.0, 0.0, 0.0]]
    sure = BetaScaling().fit([[20.0, 0.0, 1.0]] * 4, [0, 0, 0, 1])
    np.testing.assert_allclose(sure([[20.0, 0.0, 1.0]]), [[0.75, 0.125, 0.125]], rtol=1e-12)


def test_beta_scaling_of_nearly_equal_and_of_extreme_memberships():
    m = np.array([0.7, 0.718, 0.7, 0.718])  # variance 8.1e-5: they count as one
    for spread, shifted in ((1.0, True), (1.3, False)):
        members = 0.709 + spread * (m - 0.709)
        scores = np.column_stack([np.log(members), np.log(1 - members)])
        expected = naive.beta_scaling(scores.tolist(), [0, 1, 0, 0], [1.0] * 4, False)
        found = BetaScaling().fit(scores, [0, 1, 0, 0])(scores)
        np.testing.assert_allclose(found, [expected(row) for row in scores.tolist()], rtol=0, atol=1e-9)
        np.testing.assert_equal(np.allclose(found[:, 0], members - 0.709 + 0.75), shifted)
    # Mean 0.62 and variance 0.36^2 make M = 0.8, and N = 0.
    m = np.array([0.26, 0.98])
    scores = np.log(np.column_stack([m, *[(1 - m) / 5] * 5]))
    assert BetaScaling().fit(scores, [0, 3])(scores).tolist() == [[0.5, 0, 0, 0.5, 0, 0]] * 2


def test_temperature_by_hand():
    # Two columns 2 apart, 3 of 4 right: 2 / T = ln 3. All right: the target 5/6 of 4 examples, so 2 / T = ln 5.
    rows = [[2, 0], [0, 2], [2, 0], [0, 2]]
    assert Temperature().fit(rows, [0, 1, 0, 0]).temperature == pytest.approx(2 / np.log(3), rel=1e-12)
    assert Temperature().fit(rows, [0, 1, 0, 1]).temperature == pytest.approx(2 / np.log(5), rel=1e-12)
    assert Temperature().fit(rows, [1, 0, 1, 0]).temperature == np.inf
    assert Temperature().fit(rows, [1, 0, 1, 0])(rows).tolist() == [[0.5, 0.5]] * 4
    assert Temperature().fit([[3, 3]] * 4, [1, 0, 1, 0]).temperature == 1


def test_beta_calibration_by_hand():
    """Three scores and three coefficients: the rates are met where slopes are positive; ln s = -ln 2 at 0."""
    f, rates = np.array([-0.5, 0.0, 1.0]), np.array([0.1, 0.4, 0.9])
    fitted = BetaCalibration().fit(np.repeat(f, 2), [0, 1] * 3, np.column_stack([1 - rates, rates]).ravel())
    np.testing.assert_allclose(fitted(f), rates, rtol=1e-8)
    assert fitted.a > 0
    assert fitted.b > 0
    # s at its own rates is calibrated already: a = b = 1, c = 0.
    s = expit(2 * f)
    fitted = BetaCalibration().fit(np.repeat(f, 2), [0, 1] * 3, np.column_stack([1 - s, s]).ravel())
    np.testing.assert_allclose([fitted.a, fitted.b, fitted.c], [1, 1, 0], rtol=0, atol=1e-8)


def test_beta_calibration_from_a_map_that_is_near():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    of_class = (scores + rng.normal(size=200) > 0).astype(np.float64)
    ones = np.ones(200)
    afresh = BetaCalibration().fit_counts(scores, of_class, ones)
    for near in (
        BetaCalibration().fit_counts(scores[:150], of_class[:150], ones[:150]),
        BetaCalibration().fit_counts(-scores, of_class, ones),  # flat
        BetaCalibration().fit_counts(scores[:3], ones[:3], ones[:3]),  # of one class
        BetaCalibration().fit_counts(1e3 * scores, of_class, ones),  # far
    ):
        again = BetaCalibration().fit_counts(scores, of_class, ones, near)
        assert again(scores) == pytest.approx(afresh(scores), abs=1e-12)


def test_beta_calibration_of_scores_that_differ_by_rounding():
    """A machine's equal scores seldom are so to the last digit; the loss is convex, and its slopes at the end are 0."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(6, 40))
        f = rng.normal(size=4)[rng.integers(0, 4, n)] * rng.choice([1, 3, 10])
        f = f + rng.choice([1e-16, 1e-15, 1e-12]) * rng.integers(-3, 4, n)
        y = (rng.random(n) < expit(rng.choice([0.3, 1.0, 3.0]) * f)).astype(int)
        if len(set(y)) == 1 or f[y == 0].max() <= f[y == 1].min():
            continue  # not the labels are fitted, but targets
        fitted = BetaCalibration().fit(f, y)
        wrong = fitted(f) - y
        features = np.array([log_expit(2 * f), -log_expit(-2 * f)])
        slopes = (features / np.abs(features).max(axis=1, keepdims=True)) @ wrong / n
        free = np.array([fitted.a, fitted.b]) > 0
        assert np.abs([wrong.mean(), *slopes[free]]).max() < 1e-11
        assert (slopes > -1e-11).all()


def test_beta_calibration_of_labels_that_only_touch():
    """A tie between the classes separates them still: soft targets 1/4 and 3/4, and their mean at the tie."""
    fitted = BetaCalibration().fit([-1, 0, 0, 1], [0, 0, 1, 1])
    np.testing.assert_allclose(fitted([-1, 0, 1]), [0.25, 0.5, 0.75], rtol=0, atol=1e-9)
    # One pair in the wrong order, and labels are taken as they are.
    crossed = BetaCalibration().fit([-1, 0, 0.5, 1], [0, 1, 0, 1])
    assert crossed([-1])[0] < 0.2


def test_bins_by_hand():
    """Of bins [0, 1), [1, 2), [2, 3) and [3, 4] the two in the middle are empty, then one of three."""
    fitted = Binning(4).fit([0, 0, 4, 4, 4], [0, 1, 1, 1, 0])
    assert fitted.cuts.tolist() == [1, 2, 3]
    assert fitted.rates.tolist() == [0.5, 0.5, 2 / 3, 2 / 3]
    assert Binning(3, laplace=True).fit([0, 3, 3], [1, 0, 1]).rates.tolist() == [2 / 3, 2 / 3, 0.5]
    assert Binning(2, EqualFrequency()).fit([0, 1, 2, 3], [0, 0, 1, 1], [3, 1, 1, 1]).cuts.tolist() == [1]


@pytest.mark.parametrize(("bent", "dropped"), [(0.5, "b"), (2.0, "a")])
def test_beta_calibration_drops_a_negative_coefficient(bent, dropped):
    """logit p = ln s - or + something: rates that the unconstrained fit would meet with a negative slope."""
    f = np.linspace(-2, 2, 21)
    s = expit(2 * f)
    a, b = (1.5, -0.2) if dropped == "b" else (-0.2, 1.5)
    rates = expit(a * np.log(s) - b * np.log1p(-s) + bent)
    scores, y, w = np.repeat(f, 2), [0, 1] * 21, np.column_stack([1 - rates, rates]).ravel()
    fitted = BetaCalibration().fit(scores, y, w)
    assert getattr(fitted, dropped) == 0
    assert getattr(fitted, "ab".replace(dropped, "")) > 0
    expected = naive.beta_calibration(scores.tolist(), y, w.tolist())
    np.testing.assert_allclose(fitted(f), [expected(v) for v in f], rtol=0, atol=2e-6)


def test_beta_2_meets_the_rate_of_positives():
    """F of the right law is uniform, and so the mean of p is the rate."""
    rng = np.random.default_rng(0)
    m = rng.beta(0.8, 0.5, 20_000)
    y = (rng.random(len(m)) < 0.2 + 0.3 * m).astype(int)
    fitted = Beta2().fit(logit(np.clip(m, 1e-12, 1 - 1e-12)) / 2, y)
    assert fitted(logit(np.clip(m, 1e-12, 1 - 1e-12)) / 2).mean() == pytest.approx(y.mean(), abs=0.005)
    assert sum(fitted.outer) == pytest.approx(fitted.outer[0] / y.mean(), rel=1e-12)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "far out", "tie", "wrong"])
def test_beta_2_of_many_scores_has_the_least_error(kind):
    """Log-odds are interpolated in the search, not in the error here."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 300)
    f = rng.standard_cauchy(300) + y if kind == "heavy tails" else rng.normal(1.4 * y - 0.7, 1.0)
    if kind == "far out":
        f[:6] = [1e6, -1e6, 300.0, -50.0, 100.0, 30.0]
    if kind == "tie":  # a third of the weight on one score, with one below it and many above
        f[:100] = -0.5
        f = np.append(np.maximum(f, -1.0 - f)[:-1], -3.0)
    if kind == "wrong":
        f = -f
    fitted = Beta2().fit(f, y)
    rate, size = y.mean(), y.sum()
    target = np.where(y == 1, (size + 1) / (size + 2), 1 / (302 - size))

    def error(n):
        return ((FittedBeta2(fitted.inner, (rate * n, (1 - rate) * n))(f) - target) ** 2).sum()

    around = sum(fitted.outer) * np.geomspace(0.9, 1.1, 61)
    everywhere = np.geomspace(2.0**-6, 2.0**20, 79)
    assert error(sum(fitted.outer)) <= min(error(n) for n in (*around[around <= 2.0**20], *everywhere)) + 1e-6


@pytest.mark.parametrize("method", [Beta2(), BetaScaling(), BetaScaling(tuned=True)], ids=["two", "several", "tuned"])
def test_the_choice_of_a_beta_law_depends_on_the_examples_alone(method):
    """To the last bit, where sums of the weights are exact: many ties, more scores than are inverted."""
    f, y, _ = class_data(14, n=400)
    w = np.random.default_rng(14).integers(1, 4, 400)
    if method == Beta2():
        f, y = f[:, 0], np.minimum(y, 1)
    fitted = method.fit(f, y, w)
    for order in (np.argsort(y), np.random.default_rng(1).permutation(400)):
        assert method.fit(f[order], y[order], w[order]) == fitted
    assert method.fit(np.repeat(f, w, axis=0), np.repeat(y, w)) == fitted


def test_log_odds_far_beyond_the_last_bit_of_1():
    """The general inverse gives NaN or nothing there."""
    below = np.array([1e-138, 1e-60, 0.25])
    for a, b in ((0.9, 1.1), (0.02, 0.7), (3.0, 0.4)):
        log_q, log_rest = quantiles((a, b), below, 1 - below)
        np.testing.assert_allclose(a * log_q[:2], np.log(below[:2]) + np.log(a) + betaln(a, b), rtol=1e-12)
        mirrored = quantiles((b, a), 1 - below, below)
        np.testing.assert_array_equal([log_q, log_rest], mirrored[::-1])
    # Nearly all of this law is at 0 and 1, and a quarter below 0.7: 1 - q from (1 - q)^b = b B(a, b) 3/4.
    _, log_rest = quantiles((0.7, 0.001), below, 1 - below)
    np.testing.assert_allclose(log_rest[2], (np.log(0.75 * 0.001) + betaln(0.7, 0.001)) / 0.001, rtol=1e-9)


def test_quantiles_of_laws_with_nearly_all_weight_at_one_end():
    for a, b, below in ((0.72, 1e-8, 1e-10), (0.7, 1e-7, 4e-11)):
        log_q, log_rest = quantiles((a, b), np.array([below]), np.array([1 - below]))
        np.testing.assert_allclose(betainc(a, b, np.exp(log_q)), below, rtol=1e-7)
        np.testing.assert_allclose(np.exp(log_q) + np.exp(log_rest), 1, rtol=1e-12)
    for log_p in np.ravel(quantiles((29.0, 1e-19), np.array([0.6, 0.4]), np.array([0.4, 0.6]))):
        assert log_p <= 0


@pytest.mark.parametrize(
    ("rows", "labels", "weights"),
    [  # the errors of 2 and 6 differ by 3e-7; those of 3 .. 5 are larger
        ([[-2, -3, -3], [4, -3, -4], [-1, -2, -2]], [0, 0, 2], [3, 1, 1]),
        # the least at 5, of all from 2 to 92; 2 is a local one
        ([[1, 0], [-0.5, -2], [0, -1.5], [1.5, 0.5], [1.5, 0]], [1, 1, 1, 1, 0], [2, 3, 1, 2, 1]),
    ],
)
def test_tuned_beta_scaling_tries_small_dispersions_one_by_one(rows, labels, weights):
    weights = np.array(weights) / 4
    expected = naive.beta_scaling(rows, labels, weights.tolist(), tuned=True)
    found = BetaScaling(tuned=True).fit(rows, labels, weights)(rows)
    np.testing.assert_allclose(found, [expected(row) for row in rows], rtol=0, atol=1e-9)


def test_a_class_that_weighs_nothing_beside_the_other():
    """A rate of 1 - 1e-20 is 1, and no Beta law has a shape of 0."""
    f, y = np.array([-1.0, 0.0, 0.5, 1.0]), np.array([0, 1, 0, 1])
    weights = np.where(y == 1, 1e20, 1.0)
    np.testing.assert_allclose(Beta2().fit(f, y, weights)([-3.0, 3.0]), 1)
    np.testing.assert_allclose(Beta2().fit(f, 1 - y, weights)([-3.0, 3.0]), 0, atol=1e-12)
    for labels in (y, 1 - y):
        for method in (BetaScaling(), BetaScaling(tuned=True)):
            p = method.fit(np.column_stack([-f, f]), labels, weights)(np.column_stack([[-3, 0.2, 3], [3, -0.2, -3]]))
            assert ((p >= 0) & (p <= 1)).all()
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


CONSTANT = {"Platt": 5 / 6, "Beta-2": 5 / 6, "beta calibration": 5 / 6, "bins": 1, "frequency": 5 / 6, "step": 1}


@pytest.mark.parametrize("name", CONSTANT)
def test_one_class_only(name):
    """Four positives: Platt's target, Laplace's rate, or 1; four negatives the mirror of it."""
    f = np.array([-2.0, 0.5, 0.5, 3.0])
    at = [-5.0, 0.5, 7.0]
    if name == "frequency":
        f[:] = 0.5
    np.testing.assert_allclose(BINARY[name].fit(f, [1] * 4)(at), CONSTANT[name], rtol=1e-14)
    np.testing.assert_allclose(BINARY[name].fit(f, [0] * 4)(at), 1 - CONSTANT[name], rtol=1e-14, atol=1e-16)
    # Examples of the other class that weigh nothing are none.
    np.testing.assert_allclose(BINARY[name].fit([*f, 0.0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0])(at), CONSTANT[name])


@pytest.mark.parametrize("value", [0.0, 0.25, 30.0, -1e6, 1e6])
def test_all_scores_equal(value):
    f, y = [value] * 4, [1, 0, 0, 0]
    mean = (2 / 3 + 3 * 0.2) / 4
    expected = {"Platt": mean, "Beta-2": 0.25, "beta calibration": 0.25, "bins": 0.25, "frequency": 1 / 3, "step": 0.25}
    for name, p in expected.items():
        np.testing.assert_allclose(BINARY[name].fit(f, y)([value, value - 1, value + 1]), p, rtol=1e-9, err_msg=name)
    rows = np.full((4, 2), value)
    assert Temperature().fit(rows, y)(rows).tolist() == [[0.5, 0.5]] * 4
    np.testing.assert_allclose(BetaScaling().fit(rows, y)(rows), [[0.75, 0.25]] * 4, rtol=1e-15)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e6])
def test_separable_scores_and_far_ones_stay_probabilities(name, scale):
    f, y = scale * np.array([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0]), [0] * 4 + [1] * 4
    fitted = BINARY[name].fit(f, y)
    p = fitted(np.concatenate([f, [-1e6, 1e6, -1e300, 1e300, 0.0]]))
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p[:8]) >= -1e-15).all() or name == "linear"
    assert (p[:4] <= 0.5).all()
    assert (p[4:8] >= 0.5).all()
    if name in ("Platt", "beta calibration"):
        assert ((p[:8] > 0) & (p[:8] < 1)).all()
        np.testing.assert_allclose(p[:8][::-1], 1 - p[:8], rtol=0, atol=1e-7)
    if name in ("Beta-2",) and scale <= 30:
        assert ((p[:8] > 0) & (p[:8] < 1)).all()


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e6])
def test_rows_are_distributions_at_every_scale(name, scale):
    f, y, w = class_data(5, c=4)
    f = scale * f
    for labels in (y, np.zeros_like(y), f.argmax(axis=1), (f.argmax(axis=1) + 1) % 4):
        fitted = SEVERAL[name].fit(f, labels, w)
        p = fitted(np.vstack([f, np.zeros((1, 4)), np.full((1, 4), 1e6), -np.eye(4) * 1e6, np.eye(4) * 1e300]))
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", BINARY)
def test_weights_count_examples(name):
    for kind in SCORES:
        f, y, _ = binary_data(kind, 4)
        w = np.random.default_rng(4).integers(0, 4, len(f))
        at = np.linspace(-5, 5, 50)
        repeated = BINARY[name].fit(np.repeat(f, w), np.repeat(y, w))(at)
        np.testing.assert_allclose(BINARY[name].fit(f, y, w)(at), repeated, rtol=0, atol=1e-9)
        np.testing.assert_allclose(BINARY[name].fit(f, y, np.ones(len(f)))(at), BINARY[name].fit(f, y)(at), rtol=0)


@pytest.mark.parametrize("name", SEVERAL)
def test_weights_count_examples_of_several_classes(name):
    f, y, _ = class_data(6)
    w = np.random.default_rng(6).integers(0, 4, len(f))
    repeated = SEVERAL[name].fit(np.repeat(f, w, axis=0), np.repeat(y, w))(f)
    np.testing.assert_allclose(SEVERAL[name].fit(f, y, w)(f), repeated, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [*BINARY, *SEVERAL])
def test_order_of_the_examples_does_not_matter(name):
    method = {**BINARY, **SEVERAL}[name]
    f, y, w = class_data(11) if name in SEVERAL else binary_data("tied", 11)
    w = np.ones(len(w)) if name in SEVERAL else w
    order = np.random.default_rng(0).permutation(len(f))
    shuffled = method.fit(f[order], y[order], w[order])(f)
    np.testing.assert_allclose(shuffled, method.fit(f, y, w)(f), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [*BINARY, *SEVERAL])
def test_maps_are_parameters_and_fitted_maps_frozen(name):
    method = {**BINARY, **SEVERAL}[name]
    f, y, w = class_data(12) if name in SEVERAL else binary_data("normal", 12)
    before = repr(method)
    for same in (copy.deepcopy(method), pickle.loads(pickle.dumps(method))):
        assert same == method
        assert repr(same) == before
    fitted = method.fit(f, y, w)
    assert repr(method) == before
    for same in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted)), method.fit(f, y, w)):
        assert same == fitted
        assert (same(f) == fitted(f)).all()
        for value in vars(same).values():
            assert not isinstance(value, np.ndarray) or not value.flags.writeable
    field = next(iter(vars(fitted)))
    with pytest.raises(AttributeError):
        setattr(fitted, field, 0)
    inputs = f.copy(), y.copy(), w.copy()
    method.fit(*inputs)(inputs[0])
    assert all((a == b).all() for a, b in zip(inputs, (f, y, w), strict=True))
    assert fitted(f[:0]).shape == f[:0].shape


def test_two_parameters_two_objects():
    assert Binning(10) != Binning(11)
    assert Binning(10, EqualWidth()) == Binning(10)
    assert Binning(10, EqualFrequency()) != Binning(10)
    assert Isotonic("linear") != Isotonic()
    assert OneVsAll(Platt()) != OneVsAll(Softmax())
    assert repr(OneVsAll(Binning(5))) == "OneVsAll(map=Binning(bins=5, edges=EqualWidth(), laplace=False))"
    assert Isotonic().fit([1, 2], [0, 1]) != Isotonic().fit([1, 3], [0, 1])


@pytest.mark.parametrize("name", BINARY)
def test_many_scores(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200_000)
    f = rng.normal(0.5 * (2 * y - 1), 1.0)
    p = BINARY[name].fit(f, y)(f)
    # The true probability is 1 / (1 + e^-f): what each map is able to express shows in its mean.
    calibrated = name not in ("softmax", "linear", "clipped")
    assert abs(p.mean() - y.mean()) < (3e-3 if calibrated else 0.05)
    if name in ("Platt", "beta calibration", "step", "interpolated"):
        assert np.abs(p - expit(f)).mean() < 1e-2


def test_no_warning_at_the_ends_of_the_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, method in BINARY.items():
            fitted = method.fit(
                [-1.0, 0.0, 0.5, 1.0], [0, 1, 0, 1], [5e-324, 1e300, 1.0, 1e300][:4] if name == "step" else None
            )
            p = fitted([-1.7e308, 1.7e308, 5e-324, -5e-324])
            assert ((p >= 0) & (p <= 1)).all(), name
