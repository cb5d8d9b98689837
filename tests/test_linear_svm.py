"""Batch linear support vector machines: against a general solver and scikit-learn, gap, ties, shifts, bad input."""

import numpy as np
import pytest
from naive import linear_svm as naive
from sklearn.svm import SVC

from venn._compiled.linear_svm import Rows, certify
from venn.batch.linear_svm import Design, LinearFit, LinearSVM
from venn.machines.machine import NotConverged


def examples(seed, n=14, d=2, grid=True):
    """Return objects full of ties, signs, weights with zeros, and levels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)) / 2 if grid else rng.normal(size=(n, d))
    signs = np.where(X.sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)
    signs[:2] = 1, -1
    weights = rng.integers(0, 4, n) / 2
    weights[:2] = 1
    return X, signs, weights, rng.integers(-1, 4, n) / 2


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_equals_a_general_solver(seed, C):
    X, signs, weights, levels = examples(seed, d=1 + seed % 3)
    fit = LinearSVM(C).fit(X, signs, weights, levels)
    w, b = naive.solution(X, signs, C, weights, levels)
    assert fit.objective == pytest.approx(naive.objective(fit.coef, fit.bias, X, signs, C, weights, levels), abs=1e-9)
    assert fit.objective <= naive.objective(w, b, X, signs, C, weights, levels) + 1e-9
    np.testing.assert_allclose(fit(X), X @ w + b, atol=2e-5)


@pytest.mark.parametrize(("n", "d"), [(80, 3), (40, 90), (300, 12)])
@pytest.mark.parametrize("C", [0.05, 2.0])
def test_equals_scikit_learn(n, d, C):
    X, signs, weights, _ = examples(1, n, d, grid=False)
    fit = LinearSVM(C).fit(X, signs, weights)
    own = weights > 0
    peer = SVC(C=C, kernel="linear", tol=1e-9).fit(X[own], signs[own], weights[own])
    np.testing.assert_allclose(fit.scores(X), peer.decision_function(X), atol=5e-4)  # its kernel is in float32


def test_gap_bounds_the_distance_to_the_solution():
    X, signs, weights, levels = examples(3, 200, 8, grid=False)
    exact = LinearSVM(3.0).fit(X, signs, weights, levels)
    for tolerance in 0.1, 1e-2, 1e-4, 1e-8:
        fit = LinearSVM(3.0, tolerance).fit(X, signs, weights, levels)
        assert fit.gap <= tolerance * fit.objective
        assert exact.objective - 1e-9 <= fit.objective <= exact.objective + fit.gap + 1e-9
        assert ((fit.coef - exact.coef) ** 2).sum() / 2 <= fit.gap + exact.gap + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_certified_gap_is_that_of_multipliers_made_feasible(seed):
    """Weak duality from its definition, at any coefficients and multipliers: either sign may hold the larger sum."""
    rng = np.random.default_rng(seed)
    n, d = 30, 3
    X, costs, levels, shares = rng.normal(size=(n, d)), rng.random(n) + 0.1, rng.normal(size=n), rng.random(n)
    signs = np.where(np.arange(n) < (8, 22)[seed % 2], 1.0, -1.0)
    shares[::7] = 0.0
    u, room = rng.normal(size=d + 1), Design(X).room()
    room.z[:] = levels - signs * (X @ u[:d] + u[d])
    rows = Rows(X, np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0))
    objective, gap = certify(rows, np.arange(n), signs, costs, u, shares, 1.0, room)
    w, b = u[:d], u[d]
    assert objective == pytest.approx(naive.objective(w, b, X, signs, 1.0, costs, levels), rel=1e-12)
    alpha = costs * shares
    sums = {sign: alpha[signs == sign].sum() for sign in (1.0, -1.0)}
    for sign, total in sums.items():
        alpha[signs == sign] *= min(sums.values()) / total
    dual = alpha @ levels - ((alpha * signs) @ X) @ ((alpha * signs) @ X) / 2
    assert gap == pytest.approx(objective - dual, rel=1e-10)


def test_multipliers_are_the_solution():
    X, signs, weights, levels = examples(4, 60, 5)
    fit = LinearSVM(2.0).fit(X, signs, weights, levels)
    alpha = 2.0 * weights * fit.shares
    assert ((fit.shares >= 0) & (fit.shares <= 1)).all()
    assert (fit.shares[weights == 0] == 0).all()
    np.testing.assert_allclose((alpha * signs) @ X, fit.coef, atol=1e-6)
    assert (alpha * signs).sum() == pytest.approx(0, abs=1e-9)
    slack = levels - signs * fit(X)
    assert (slack[(weights > 0) & (fit.shares == 0)] <= 1e-6).all()
    assert (slack[fit.shares == 1] >= -1e-6).all()


def test_weights_are_copies():
    X, signs, _, levels = examples(5, 40, 3)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    weights[:2] = 1
    rows = np.repeat(np.arange(40), weights)
    fit = LinearSVM(0.7).fit(X, signs, weights, levels)
    copies = LinearSVM(0.7).fit(X[rows], signs[rows], None, levels[rows])
    np.testing.assert_allclose(fit(X), copies(X), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_order_and_start_change_nothing(seed):
    X, signs, weights, levels = examples(seed, 50, 3)
    machine = LinearSVM(1.5)
    fit = machine.fit(X, signs, weights, levels)
    order = np.random.default_rng(seed).permutation(50)
    shuffled = machine.fit(X[order], signs[order], weights[order], levels[order])
    np.testing.assert_allclose(shuffled(X), fit(X), atol=1e-6)
    for start in fit, LinearSVM(100.0).fit(X, signs), LinearSVM(1e-3).fit(X[:7], signs[:7]):
        np.testing.assert_allclose(machine.fit(X, signs, weights, levels, start)(X), fit(X), atol=1e-6)


def test_a_start_too_far_away_is_none():
    X, signs, weights, levels = examples(2, 50, 3)
    fit = LinearSVM(1.5).fit(X, signs, weights, levels)
    for start in fit._replace(bias=1e15), fit._replace(coef=1e12 * fit.coef):
        again = LinearSVM(1.5).fit(X, signs, weights, levels, start)
        np.testing.assert_allclose(again(X), fit(X), atol=1e-6)


def test_compressed_rows_are_the_same_objects():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 12, 300)
    X = np.column_stack([rng.normal(size=300), np.eye(12)[codes], np.full(300, 3.0)])
    X[:, :-1] = (X[:, :-1] - X[:, :-1].mean(axis=0)) / X[:, :-1].std(axis=0)
    signs = np.where(rng.normal(size=300) + codes / 4 > 1.5, 1.0, -1.0)
    assert Design(X).rows.dense.shape == (0, 14)
    turned = X @ np.linalg.qr(rng.normal(size=(14, 14)))[0]
    assert Design(turned).rows.dense.shape == (300, 14)
    np.testing.assert_allclose(LinearSVM(0.5).fit(X, signs)(X), LinearSVM(0.5).fit(turned, signs)(turned), atol=1e-6)


def test_shift_changes_the_bias_alone():
    X, signs, weights, _ = examples(7, 60, 4, grid=False)
    fit, moved = (LinearSVM(1.0).fit(objects, signs, weights) for objects in (X, X + 1000.0))
    np.testing.assert_allclose(moved.coef, fit.coef, atol=1e-6)
    assert moved.bias == pytest.approx(fit.bias - 1000 * fit.coef.sum(), abs=1e-3)


def test_rare_values_in_standardised_columns():
    """A dummy of one example is worth as much as all others: steps over it are long."""
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.normal(size=(400, 3)), np.eye(400)[:, :6]])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    signs = np.where(X[:, 0] + rng.normal(size=400) > 0, 1.0, -1.0)
    for C in 0.01, 100.0:
        fit = LinearSVM(C).fit(X, signs)
        assert fit.gap <= 1e-12 * fit.objective


def test_bias_is_the_middle_of_its_interval():
    # One example of each sign, at the same place: every bias from -1 to 1 has losses 2.
    fit = LinearSVM(1.0).fit([[1.0], [1.0]], [1, -1])
    assert fit.coef == pytest.approx([0.0], abs=1e-9)
    assert fit.bias == pytest.approx(0.0, abs=1e-9)
    # All multipliers at their bounds: no example has to lie on its kink.
    X, signs = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    fit = LinearSVM(1e-3).fit(X, signs)
    assert fit.coef == pytest.approx([1e-3 * (5 + 7 - 1)], abs=1e-9)
    # From -1, where the example at 0 has its kink, to 1 - 7 w, where that at 7 has.
    assert fit.bias == pytest.approx((1 - 7 * fit.coef[0] - 1) / 2, abs=1e-8)


def test_one_sign():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    fit = LinearSVM(1.0).fit(X, [1, 1, -1], [1, 2, 0], [1.0, 2.5, 9.0])
    assert (fit.coef == 0).all()
    assert (fit.bias, fit.objective, fit.gap) == (2.5, 0.0, 0.0)
    assert LinearSVM(1.0).fit(X, [-1, -1, -1]).bias == -1.0


def test_levels_of_many_sizes():
    """Examples near their kinks alone may leave the bias without a minimum: then it must not run away."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        signs, levels, C = (
            np.where(rng.random(20) < 0.2, 1.0, -1.0),
            1e3 * rng.normal(size=20),
            10 ** rng.uniform(-3, 3),
        )
        signs[:2] = 1, -1
        fit = LinearSVM(C).fit(np.zeros((20, 0)), signs, None, levels)
        costs = [C * np.maximum(levels - signs * kink, 0).sum() for kink in signs * levels]
        assert fit.objective == pytest.approx(min(costs), abs=1e-9 * C * abs(levels).sum())


def test_no_loss_at_all():
    fit = LinearSVM(1.0).fit([[0.0], [1.0]], [1, -1], None, [-1.0, -2.0])
    assert fit.objective == pytest.approx(0.0, abs=1e-12)
    assert fit.coef == pytest.approx([0.0], abs=1e-6)


def test_constant_objects_and_no_features():
    for X in (np.ones((3, 2)), np.zeros((3, 0))):
        fit = LinearSVM(1.0).fit(X, [1, 1, -1])
        assert (abs(fit.coef) < 1e-12).all()
        assert fit.bias == pytest.approx(1.0)


def test_call_and_repr():
    fit = LinearSVM(1.0).fit([[0.0], [2.0]], [-1, 1])
    assert isinstance(fit, LinearFit)
    assert (fit([[3.0]]) == fit.scores([[3.0]])).all()


X2, S2 = np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])
BAD = [
    (lambda: LinearSVM(0.0), ValueError, r"C must be a finite number > 0, got 0\.0"),
    (lambda: LinearSVM("1"), TypeError, r"C must be a finite number > 0, got '1'"),
    (lambda: LinearSVM(1.0, 1.0), ValueError, r"tolerance must be a number in \(0, 1\), got 1\.0"),
    (lambda: LinearSVM(1.0, 0.0), ValueError, r"tolerance must be a number in \(0, 1\), got 0\.0"),
    (lambda: LinearSVM().fit([1.0], [1]), ValueError, r"X must have shape \(n, d\) with n >= 1, got \(1,\)"),
    (lambda: LinearSVM().fit(np.zeros((0, 2)), []), ValueError, r"X must have shape .* got \(0, 2\)"),
    (lambda: LinearSVM().fit([[np.nan], [1.0]], S2), ValueError, "X must hold finite numbers"),
    (lambda: LinearSVM().fit([[1e200], [1.0]], S2), ValueError, "X must hold finite numbers"),
    (lambda: LinearSVM().fit(X2, [1, 0]), ValueError, r"signs must be \+1 or -1, got 0\.0 at 1"),
    (lambda: LinearSVM().fit(X2, None), ValueError, r"signs must have shape \(2,\).* got \(\)"),
    (lambda: LinearSVM().fit(X2, [1, -1, 1]), ValueError, r"signs must have shape \(2,\).* got \(3,\)"),
    (lambda: LinearSVM().fit(X2, S2, [1, -1]), ValueError, r"weights must be >= 0, got -1\.0 at 1"),
    (lambda: LinearSVM().fit(X2, S2, [0, 0]), ValueError, "weights must be > 0 for some example, got zero for all 2"),
    (lambda: LinearSVM().fit(X2, S2, [1]), ValueError, r"weights must have shape \(2,\)"),
    (lambda: LinearSVM().fit(X2, S2, None, [1, np.inf]), ValueError, "levels must be finite, got inf at 1"),
    (
        lambda: LinearSVM().fit(X2, S2, start=LinearSVM().fit([[1.0, 2.0], [0.0, 1.0]], S2)),
        ValueError,
        r"start must have 1 coefficients, got \(2,\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=range(len(BAD)))
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_rounding_does_not_allow_is_an_error():
    X, signs, _, _ = examples(9, 60, 4, grid=False)
    with pytest.raises(NotConverged, match="gap must be at most 1e-12 of the objective with C = 1000"):
        LinearSVM(1000.0).fit(X * 1e12, signs)
