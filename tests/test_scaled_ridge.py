"""Ridge regression on raw columns: against its definition after every step; validity; the estimator on top of it."""

import warnings

import numpy as np
import pytest
from naive import kernel_ridge as naive
from naive import scaled as by_hand
from scipy import stats
from sklearn.datasets import load_diabetes

import venn
from venn.adapters import ConformalRegressor
from venn.machines import KernelRidge, ScaledRidge, ScaleWarning
from venn.predictors import ConformalDistribution, ConformalIntervals

GAMMA, C, FIRST = 0.5, 3.0, 6
SCALES = np.array([1e6, 1e-3])


def ridge():
    return KernelRidge(venn.RBF(GAMMA), C)


def raw(seed, n, tied=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)) / 2 if tied else rng.normal(size=(n, 2))
    return X * SCALES + 5 * SCALES, np.round(X.sum(axis=1) + rng.integers(-2, 3, n) / 2, 1)


@pytest.mark.parametrize("seed", range(3))
def test_every_p_value_is_that_of_the_definition(seed):
    X, y = raw(seed, 22)
    model = ConformalDistribution(ScaledRidge(ridge(), FIRST), seed=seed)
    both = ConformalIntervals(model.machine, seed=seed)
    for i in range(22):
        fixing = X[:FIRST] if i >= FIRST else X[: i + 1]
        scale = by_hand.fixed_by(fixing)
        Z = np.clip([by_hand.on_scale(x, *scale) for x in X[: i + 1]], -10, 10)
        K, aside = naive.kernel(Z, Z, GAMMA), FIRST if i >= FIRST else 0
        prediction, nested = model.predict_one(X[i]), both.predict_one(X[i])
        assert (prediction.n, model.machine.n, model.machine.learned) == (i - aside, i - aside, i)
        for supposed in (y[i], -3.0, 2.25):
            alphas = naive.studentised(K, np.full(i + 1, 1 / C), np.append(y[:i], supposed))
            for said, strange in ((prediction, alphas), (nested, -np.abs(alphas))):
                if said is nested and i - aside == 1:
                    continue  # with one other example both are equally strange by definition, or none is
                below, equal = naive.rank(strange[aside:])
                expected = (below + said.tau * equal) / (i + 1 - aside)
                assert abs(said.p_value(supposed) - expected) < 1e-9
        model.learn_one(X[i], y[i])
    assert model.machine.residual < 1e-10
    assert model.machine.bag.scores.shape == model.machine.deleted_bag.scores.shape == (1, 22 - FIRST)


def test_p_values_are_uniform_and_independent():
    found = []
    for seed in range(60):
        X, y = raw(1000 + seed, 30, tied=seed % 2 == 0)
        model = ConformalDistribution(ScaledRidge(ridge(), FIRST), seed=seed)
        found.append([])
        for x, label in zip(X, y, strict=True):
            found[-1].append(model.predict_one(x).p_value(label))
            model.learn_one(x, label)
    p = np.array(found)
    assert stats.kstest(p.ravel(), "uniform").pvalue > 0.001
    table = np.zeros((3, 3))
    np.add.at(table, tuple(np.digitize(part, [1 / 3, 2 / 3]).ravel() for part in (p[:, :-1], p[:, 1:])), 1)
    assert stats.chisquare(table.ravel()).pvalue > 0.001


def test_a_scale_in_other_units_changes_nothing_that_is_said():
    X, y = raw(4, 30, tied=False)
    one, other = (ConformalDistribution(ScaledRidge(ridge(), FIRST)) for _ in range(2))
    for x, label in zip(X, y, strict=True):
        a, b = one.predict_one(x), other.predict_one(x * 1024)
        assert a.label == pytest.approx(b.label, rel=0, abs=1e-9)
        assert np.allclose(a.points, b.points, rtol=0, atol=1e-9)
        one.learn_one(x, label)
        other.learn_one(x * 1024, label)


def test_what_does_not_suit_is_refused():
    with pytest.raises(TypeError, match="machine must be a KernelRidge"):
        ScaledRidge(venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["a", "b"]))
    with pytest.raises(TypeError, match="machine must be one that can forget"):
        venn.SlidingWindow(ScaledRidge(ridge()), 10)
    machine = ScaledRidge(ridge(), 2)
    machine.learn_one([1.0, 2.0], 0.5)
    before = machine.hypotheses([0.0, 1.0])
    machine.learn_one([0.0, 1.0], 1.5)
    with pytest.raises(RuntimeError, match="out of date"):
        before.critical_points()


def test_the_estimator_needs_no_scaler():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    warnings.simplefilter("ignore", ScaleWarning)
    alike, odd = X / X.std(axis=0), X * 10.0 ** np.arange(-3, 7)
    kernel = venn.machines.MultiscaleRBF()
    scores = [
        ConformalRegressor(kernel, C=1.0, first=first).fit(Z[:150], y[:150]).score(Z[150:], y[150:])
        for Z, first in ((alike, 0), (odd, None), (odd, 0))
    ]
    assert scores[2] < scores[1] - 0.2
    assert scores[1] > scores[0] - 0.1
    for n in (1, 2, 9):
        assert np.isfinite(ConformalRegressor().fit(odd[:n], y[:n]).predict(odd[n : n + 1])).all()
    for bad in (1, -1, 2.5, "a"):
        with pytest.raises((TypeError, ValueError), match="first must be"):
            ConformalRegressor(first=bad).fit(odd[:5], y[:5])


def test_an_answer_of_the_beginning_is_refused_once_the_machine_has_gone_on():
    machine = ScaledRidge(KernelRidge(venn.RBF(0.5), C=10), first=10)
    for i in range(5):
        machine.learn_one([float(i)], float(i))
    answer = machine.hypotheses([2.5])
    machine.scores([7.0])  # made anew without the object asked about
    assert np.isfinite(answer.critical_points()).all()
    machine.learn_one([2.5], 2.0)
    with pytest.raises(RuntimeError, match="out of date"):
        answer.critical_points()
