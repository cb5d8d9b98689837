"""Batch maps from scores to probabilities: equal to their definitions, and what they do at their edges."""

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from naive import maps as naive
from scipy.special import expit, log_expit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from venn.maps.beta_calibration import BetaCalibration, FittedBetaCalibration
from venn.maps.binning import Binning, EqualFrequency, EqualWidth
from venn.maps.isotonic import Isotonic
from venn.maps.one_vs_all import OneVsAll
from venn.maps.platt import Platt
from venn.maps.temperature import Temperature

BINARY = {
    "Platt": Platt(), "beta calibration": BetaCalibration(), "bins": Binning(),
    "frequency": Binning(50, EqualFrequency(), laplace=True), "step": Isotonic(), "interpolated": Isotonic("linear"),
}  # fmt: skip
SEVERAL = {"temperature": Temperature(), **{f"all {name}": OneVsAll(one) for name, one in BINARY.items()}}
# Each with its definition, and how exactly it must be met.
ORACLES = {
    "Platt": (Platt(), naive.platt, 1e-9),
    "beta calibration": (BetaCalibration(), naive.beta_calibration, 1e-6),
    "width": (Binning(7), partial(naive.binning, bins=7, frequency=False, laplace=False), 1e-15),
    "width, laplace": (
        Binning(4, laplace=True), partial(naive.binning, bins=4, frequency=False, laplace=True), 1e-15,
    ),
    "frequency": (
        Binning(6, EqualFrequency()), partial(naive.binning, bins=6, frequency=True, laplace=False), 1e-15,
    ),
    "step": (Isotonic(), partial(naive.isotonic, interpolation="step"), 1e-14),
    "interpolated": (Isotonic("linear"), partial(naive.isotonic, interpolation="linear"), 1e-14),
}  # fmt: skip
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


@pytest.mark.parametrize("seed", range(3))
def test_one_against_all_equals_its_definition(seed):
    f, y, w = class_data([seed, 10])
    present = w > 0
    expected = naive.one_vs_all(naive.platt, f[present].tolist(), y[present].tolist(), w[present].tolist())
    found = OneVsAll(Platt()).fit(f, y, w)(f)
    np.testing.assert_allclose(found, [expected(row) for row in f.tolist()], rtol=0, atol=1e-9)


def test_one_against_all_by_hand():
    scores = [[1.0, -2.0, -2.0], [-2.0, 0.0, -2.0], [-2.0, -2.0, -2.0]]
    fitted = OneVsAll(Isotonic()).fit(scores, [0, 1, 0])
    # At the least score: of class 0 one of two, of class 1 none, of class 2 none.
    assert [m.value[0] for m in fitted.maps] == [0.5, 0, 0]
    assert fitted([[-1.0, 0.0, -3.0]]).tolist() == [[1 / 3, 2 / 3, 0.0]]
    assert OneVsAll(Isotonic()).fit([[0.0] * 3] * 2, [0, 1])([[1.0, 1.0, 1.0]]).tolist() == [[0.5, 0.5, 0.0]]
    nothing = OneVsAll(Isotonic()).fit([[1.0, -1.0], [-1.0, 1.0]], [0, 1])([[-1.0, -1.0]])
    assert nothing.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_scalings_is_that_of_the_scores(seed):
    f, y, w = binary_data("normal", seed)
    at = np.linspace(-4, 4, 400)
    for name in ("Platt", "beta calibration", "step", "interpolated"):
        assert (np.diff(BINARY[name].fit(f, y, w)(at)) >= 0).all(), name


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
        FittedBetaCalibration(1e8, 0.0, 0.0),  # so far that no search ends that begins there
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


CONSTANT = {"Platt": 5 / 6, "beta calibration": 5 / 6, "bins": 1, "frequency": 5 / 6, "step": 1}


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
    expected = {"Platt": mean, "beta calibration": 0.25, "bins": 0.25, "frequency": 1 / 3, "step": 0.25}
    for name, p in expected.items():
        np.testing.assert_allclose(BINARY[name].fit(f, y)([value, value - 1, value + 1]), p, rtol=1e-9, err_msg=name)
    rows = np.full((4, 2), value)
    assert Temperature().fit(rows, y)(rows).tolist() == [[0.5, 0.5]] * 4


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e6])
def test_separable_scores_and_far_ones_stay_probabilities(name, scale):
    f, y = scale * np.array([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0]), [0] * 4 + [1] * 4
    fitted = BINARY[name].fit(f, y)
    p = fitted(np.concatenate([f, [-1e6, 1e6, -1e300, 1e300, 0.0]]))
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p[:8]) >= -1e-15).all()
    assert (p[:4] <= 0.5).all()
    assert (p[4:8] >= 0.5).all()
    if name in ("Platt", "beta calibration"):
        assert ((p[:8] > 0) & (p[:8] < 1)).all()
        np.testing.assert_allclose(p[:8][::-1], 1 - p[:8], rtol=0, atol=1e-7)


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
    assert OneVsAll(Platt()) != OneVsAll(Isotonic())
    assert repr(OneVsAll(Binning(5))) == "OneVsAll(map=Binning(bins=5, edges=EqualWidth(), laplace=False))"
    assert Isotonic().fit([1, 2], [0, 1]) != Isotonic().fit([1, 3], [0, 1])


@pytest.mark.parametrize("name", BINARY)
def test_many_scores(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200_000)
    f = rng.normal(0.5 * (2 * y - 1), 1.0)
    p = BINARY[name].fit(f, y)(f)
    assert abs(p.mean() - y.mean()) < 3e-3
    # The true probability is 1 / (1 + e^-f).
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
