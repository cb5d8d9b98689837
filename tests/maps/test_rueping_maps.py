"""Maps of the studies: equal to their definitions, what they do at their edges, and at home in a scaler."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from naive import maps as naive
from scipy.special import betainc, betaln, logit
from test_maps import SCORES, binary_data, class_data

import venn

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from rueping.beta import Beta2, BetaScaling, BetaTransform, FittedBeta2, quantiles
from rueping.maps import Sigma01, SigmaPP, Softmax, Sollich

# Each with its definition, and how exactly it must be met.
ORACLES = {
    "softmax": (Softmax(), lambda *_: lambda s: naive.sigmoid(2 * s), 1e-15),
    "linear": (Sigma01(), naive.linear, 1e-15),
    "clipped": (SigmaPP(), naive.clipped_linear, 1e-15),
    "Beta-2": (Beta2(), naive.beta2, 2e-6),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("kind", SCORES)
def test_binary_maps_equal_their_definitions(name, kind):
    method, oracle, tolerance = ORACLES[name]
    f, y, w = binary_data(kind, 0, 40)
    present = w > 0
    expected = oracle(f[present].tolist(), y[present].tolist(), w[present].tolist())
    at = np.concatenate([f, np.linspace(-5, 5, 21), [-1.0, 1.0]])
    np.testing.assert_allclose(method.fit(f, y, w)(at), [expected(s) for s in at], rtol=0, atol=tolerance)


@pytest.mark.parametrize("C", [1 / 64, 1.0, 32.0])
def test_sollichs_map_is_the_normalised_likelihood(C):
    scores = np.linspace(-4, 4, 161)
    likelihood = [np.exp(-C * np.maximum(0.0, 1 - y * scores)) for y in (1, -1)]
    p = Sollich(C).fit([-1.0, 0.5], [0, 1])(scores)
    np.testing.assert_allclose(p, likelihood[0] / sum(likelihood), rtol=1e-12)
    assert repr(Sollich(0.5)) == "Sollich(C=0.5)"


@pytest.mark.parametrize("score_map", [Softmax(), SigmaPP(), Sollich(2.0), Beta2(), BetaScaling(tuned=True)], ids=repr)
def test_a_scaler_takes_them_as_its_own(score_map):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 3, 20)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(3))
    model = venn.ScoreCalibrator(machine, score_map)
    for x, label in zip(X, y.tolist(), strict=True):
        model.learn_one(x, label)
    scores = machine.bag.scores.T[np.repeat(np.arange(60), machine.bag.counts.ravel()) // 3]
    codes = np.repeat(np.arange(60), machine.bag.counts.ravel()) % 3
    whole = score_map if hasattr(score_map, "of_all_classes") else venn.maps.OneVsAll(score_map)
    expected = whole.fit(scores, codes)(machine.scores(X[0])[None])[0]
    np.testing.assert_allclose(model.predict_one(X[0]).proba, expected, rtol=0, atol=1e-6)


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


def test_linear_maps_by_hand():
    f = [-3, -2, -1.5, -1.1, -1, 0, 1, 1.1, 2, 3, 4, 5]
    y = [0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1]
    fitted, clipped = Sigma01().fit(f, y), SigmaPP().fit(f, y)
    at = np.array([-9, -1, -0.5, 0, 1, 9])
    assert fitted(at).tolist() == [0.25, 0, 0.25, 0.5, 1, 0.8]
    assert clipped(at).tolist() == [0.25, 0.25, 0.25, 0.5, 0.8, 0.8]
    for method in (Sigma01(), SigmaPP()):
        nothing = method.fit([-1.0, 0.5, 1.0], [1, 0, 0])
        assert nothing(np.array([-9.0, 9.0])).tolist() == [0, 1]
    wrong = SigmaPP().fit([-2.0, -2.0, 2.0, 2.0], [1, 1, 0, 1])
    assert wrong(np.array([-3, 0, 3])).tolist() == [0.5] * 3


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
    if isinstance(method, Beta2):
        f, y = f[:, 0], np.minimum(y, 1)
    fitted = method.fit(f, y, w)
    for order in (np.argsort(y), np.random.default_rng(1).permutation(400)):
        assert np.array_equal(method.fit(f[order], y[order], w[order])(f), fitted(f))
    assert np.array_equal(method.fit(np.repeat(f, w, axis=0), np.repeat(y, w))(f), fitted(f))


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
    np.testing.assert_allclose(Beta2().fit(f, y, weights)(np.array([-3.0, 3.0])), 1)
    np.testing.assert_allclose(Beta2().fit(f, 1 - y, weights)(np.array([-3.0, 3.0])), 0, atol=1e-12)
    for labels in (y, 1 - y):
        for method in (BetaScaling(), BetaScaling(tuned=True)):
            p = method.fit(np.column_stack([-f, f]), labels, weights)(np.column_stack([[-3, 0.2, 3], [3, -0.2, -3]]))
            assert ((p >= 0) & (p <= 1)).all()
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
