"""The machines of the study of Benitez-Pena et al. (2020): each against its definition."""

import sys
from pathlib import Path

import numpy as np
import pytest
from naive import bootstrap as naive_bootstrap
from naive import constrained as naive_constrained
from naive import linear_svm as naive
from scipy.optimize import minimize
from sklearn.svm import SVC

from venn.machines import NotConverged

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from benitez_pena import constrained as scip
from benitez_pena.bootstrap import Bootstrap, Plain, least_threshold, lower_medians
from benitez_pena.constrained import constrained
from benitez_pena.linear_svm import Design, svm
from benitez_pena.loops import Rows, certify
from benitez_pena.methods import Posterior, soft_labels
from benitez_pena.sets import Fold


def examples(seed, n=14, d=2, grid=True):
    """Return objects full of ties, signs, weights with zeros, and levels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)) / 2 if grid else rng.normal(size=(n, d))
    signs = np.where(X.sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)
    signs[:2] = 1, -1
    weights = rng.integers(0, 4, n) / 2
    weights[:2] = 1
    return X, signs, weights, rng.integers(-1, 4, n) / 2


# The plain machine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_equals_a_general_solver(seed, C):
    X, signs, weights, levels = examples(seed, d=1 + seed % 3)
    fit = svm(Design(X), signs, C, weights=weights, levels=levels)
    w, b = naive.solution(X, signs, C, weights, levels)
    assert fit.objective == pytest.approx(naive.objective(fit.coef, fit.bias, X, signs, C, weights, levels), abs=1e-9)
    assert fit.objective <= naive.objective(w, b, X, signs, C, weights, levels) + 1e-9
    np.testing.assert_allclose(fit.scores(X), X @ w + b, atol=2e-5)


@pytest.mark.parametrize(("n", "d"), [(80, 3), (40, 90)])
def test_equals_scikit_learn_from_any_start(n, d):
    X, signs, weights, _ = examples(1, n, d, grid=False)
    own, design = weights > 0, Design(X)
    peer = SVC(C=2.0, kernel="linear", tol=1e-9).fit(X[own], signs[own], weights[own])
    far = svm(design, signs, 1e-3)
    for start in None, far, far._replace(u=1e12 * far.u):
        fit = svm(design, signs, 2.0, weights=weights, start=start)
        np.testing.assert_allclose(fit.scores(X), peer.decision_function(X), atol=5e-4)  # its kernel is in float32


@pytest.mark.parametrize("seed", range(2))
def test_certified_gap_is_that_of_multipliers_made_feasible(seed):
    """Weak duality from its definition, at any coefficients and multipliers: either sign may hold the larger sum."""
    rng = np.random.default_rng(seed)
    n, d = 30, 3
    X, costs, levels, shares = rng.normal(size=(n, d)), rng.random(n) + 0.1, rng.normal(size=n), rng.random(n)
    signs = np.where(np.arange(n) < (8, 22)[seed], 1.0, -1.0)
    shares[::7] = 0.0
    u, room = rng.normal(size=d + 1), Design(X).room
    room.z[:] = levels - signs * (X @ u[:d] + u[d])
    rows = Rows(X, np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0))
    objective, gap = certify(rows, np.arange(n), signs, costs, u, shares, 1.0, room)
    assert objective == pytest.approx(naive.objective(u[:d], u[d], X, signs, 1.0, costs, levels), rel=1e-12)
    alpha = costs * shares
    sums = {sign: alpha[signs == sign].sum() for sign in (1.0, -1.0)}
    for sign, total in sums.items():
        alpha[signs == sign] *= min(sums.values()) / total
    dual = alpha @ levels - ((alpha * signs) @ X) @ ((alpha * signs) @ X) / 2
    assert gap == pytest.approx(objective - dual, rel=1e-10)


def test_compressed_rows_are_the_same_objects():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 12, 300)
    X = np.column_stack([rng.normal(size=300), np.eye(12)[codes], np.full(300, 3.0)])
    signs = np.where(rng.normal(size=300) + codes / 4 > 1.5, 1.0, -1.0)
    turned = X @ np.linalg.qr(rng.normal(size=(14, 14)))[0]
    assert Design(X).rows.dense.shape == (0, 14)
    assert Design(turned).rows.dense.shape == (300, 14)
    fits = [svm(Design(objects), signs, 0.5).scores(objects) for objects in (X, turned)]
    np.testing.assert_allclose(*fits, atol=1e-6)


def test_bias_is_the_middle_of_its_interval():
    X, signs = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    fit = svm(Design(X), signs, 1e-3)  # all multipliers at their bounds: no example has to lie on its kink
    assert fit.coef == pytest.approx([1e-3 * (5 + 7 - 1)], abs=1e-9)
    # From -1, where the example at 0 has its kink, to 1 - 7 w, where that at 7 has.
    assert fit.bias == pytest.approx((1 - 7 * fit.coef[0] - 1) / 2, abs=1e-8)
    one = svm(Design(X), np.ones(4), weights=np.array([1.0, 2, 1, 0]), levels=np.array([1.0, 2.5, 1, 9]))
    assert (one.coef == 0).all()
    assert (one.bias, one.objective) == (2.5, 0.0)


def test_what_rounding_does_not_allow_is_an_error():
    X, signs, _, _ = examples(9, 60, 4, grid=False)
    with pytest.raises(NotConverged, match="gap must be at most 1e-12 of the objective with C = 1000"):
        svm(Design(X * 1e12), signs, 1000.0)


# Resamples -------------------------------------------------------------------------------------------


class Copies:
    """Trains scikit-learn's machine on the resample itself; with a large C some fits fail."""

    def __init__(self, X, y, Cs, most=np.inf):
        self.X, self.y, self.Cs, self.most = X, y, Cs, most

    def moved(self, X):
        return X

    def trained(self, counts, r):
        rows = np.repeat(np.arange(len(counts)), counts)
        if self.Cs[r] > self.most:
            raise NotConverged("too large")
        fit = SVC(C=self.Cs[r], kernel="linear", tol=1e-4).fit(self.X[rows], self.y[rows])
        return np.append(fit.coef_[0], fit.intercept_), "fitted"


def exact(X, y, C):
    return SVC(C=C, kernel="linear", tol=1e-4).fit(X, y).decision_function


CS = [0.05, 0.5, 4.0]


def two_classes(seed=0, n=60, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[n // 2 :] = np.round(X[n // 2 :])
    return X, (X[:, 0] + noise * rng.normal(size=n) > 0).astype(np.int64)


@pytest.mark.parametrize("trainer", [Plain, Copies])
@pytest.mark.parametrize("epsilon", [0.0, 0.02, 1.0])
def test_equals_the_paper_step_by_step(epsilon, trainer):
    X, y = two_classes()
    new = np.random.default_rng(1).normal(size=(40, 3))
    model = Bootstrap(trainer(X, y, CS), X, y, 12, epsilon, 5)
    accuracies, scores = naive_bootstrap.tables(X, y, new, CS, 12, 5, exact)
    w = naive_bootstrap.weights(accuracies, epsilon)
    np.testing.assert_allclose(model.accuracies, np.nanmean(accuracies, axis=1), atol=1e-12)
    np.testing.assert_allclose(model.weights, w, atol=1e-12)
    for a in 0.0, 0.3:
        clear = (abs(scores + a) > 2e-3).all(axis=(0, 1))  # our fits are those of a tolerance
        assert clear.mean() > 0.5
        want = naive_bootstrap.positive(w, scores, a)
        np.testing.assert_allclose(model.probabilities(new, a)[clear], want[clear], atol=1e-12)


def test_thresholds_equal_trial(monkeypatch):
    monkeypatch.setattr("benitez_pena.bootstrap.CHUNK", 200)  # ten objects at a time
    X, y = two_classes(noise=2.0)
    new, labels = two_classes(3, 41, noise=2.0)
    positive = new[labels == 1]
    model = Bootstrap(Copies(X, y, CS), X, y, 7, 1.0, 5)
    accuracies, scores = naive_bootstrap.tables(X, y, positive, CS, 7, 5, exact)
    w = naive_bootstrap.weights(accuracies, 1.0)
    for wanted in 0.3, 0.7, 1.0:
        a = least_threshold(model.medians_of(positive), wanted)
        assert a == pytest.approx(naive_bootstrap.threshold(w, scores, wanted), abs=1e-3)
        assert (model.probabilities(positive, a) > 0.5).mean() >= wanted


def test_training_threshold_uses_votes_of_machines_without_the_example():
    X, y = two_classes(noise=2.0)
    model = Bootstrap(Copies(X, y, [1.0]), X, y, 15, 0.02, 2)
    _, scores = naive_bootstrap.tables(X, y, X, [1.0], 15, 2, exact)
    needs = []
    for i in np.flatnonzero(y == 1):
        own = sorted(scores[0, b, i] for b, rows in enumerate(naive_bootstrap.draws(y, 15, 2)) if i not in rows)
        if own:  # positive above 1/2: fewer than half of the votes are below -a
            needs.append(max(0.0, -own[(len(own) - 1) // 2]))
    needs.sort()
    want = needs[int(np.ceil(0.9 * len(needs))) - 1]
    assert least_threshold(model.medians(), 0.9) == pytest.approx(want, abs=1e-3)


def test_failed_fits_are_counted_and_have_no_vote():
    X, y = two_classes(10)
    model = Bootstrap(Copies(X, y, [0.5, 8.0], most=1.0), X, y, 20, 1.0, 0)
    assert model.outcomes == {"fitted": 20, "NotConverged": 20}
    np.testing.assert_array_equal(model.weights, [1, 0])
    assert np.isnan(lower_medians(np.ones((1, 2)), np.zeros((1, 2))))


# The constrained machine -----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_best_of_all_choices(seed, C, monkeypatch):
    pytest.importorskip("pyscipopt")
    rng = np.random.default_rng(seed)
    X, signs, _, _ = examples(seed, 7, d=1 + seed % 3, grid=seed % 2 == 0)
    weights = rng.integers(1, 4, 7).astype(float)
    least, *_ = naive_constrained.constrained_svm(X, signs, weights, C, {"sensitivity": 0.8})

    def objective(u):
        return naive_constrained.objective(X, signs, weights, C, u[:-1], u[-1])

    u, outcome = constrained(X, signs, weights, C, 0.8, 60.0)
    assert outcome == "optimal"
    assert objective(u) == pytest.approx(least, rel=1e-6)
    monkeypatch.setattr(scip, "pyscipopt", None)
    other, outcome = constrained(X, signs, weights, C, 0.8, 60.0)
    assert outcome in ("optimal", "heuristic")
    assert objective(other) >= least * (1 - 1e-6)
    for one in u, other:
        outside = (X @ one[:-1] + one[-1] >= 1 - 1e-6) & (signs > 0)
        assert weights[outside].sum() >= 0.8 * weights[signs > 0].sum() - 1e-9


def test_without_a_demand_it_is_the_plain_machine():
    X, signs, _, _ = examples(3, 40, 3, grid=False)
    u, outcome = constrained(X, signs, np.ones(40), 0.5, 0.0, 60.0)
    plain = svm(Design(X), signs, 0.5, 1e-9)
    assert outcome == "optimal"
    np.testing.assert_allclose(u, [*plain.coef, plain.bias], atol=1e-6)


def test_more_features_than_examples_change_nothing_and_time_may_run_out():
    pytest.importorskip("pyscipopt")
    X, signs, _, _ = examples(7, 20, 3, grid=False)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(40, 3)))[0]
    for seconds in 60.0, 1e-6:
        narrow, outcome = constrained(X, signs, np.ones(20), 1.0, 1.0, seconds)
        wide, again = constrained(X @ turn.T + 5.0, signs, np.ones(20), 1.0, 1.0, seconds)
        assert outcome == again == ("optimal" if seconds > 1 else "time limit")
        np.testing.assert_allclose((X @ turn.T + 5.0) @ wide[:-1] + wide[-1], X @ narrow[:-1] + narrow[-1], atol=1e-4)


# Soft labels -----------------------------------------------------------------------------------------


def soft(X, y, radius):
    """Return 2 P - 1 by the definition, example by example."""
    near = [[j for j in range(len(X)) if np.sqrt(((X[i] - X[j]) ** 2).sum()) <= radius + 1e-9] for i in range(len(X))]
    return np.array([2 * np.mean(y[own]) - 1 for own in near])


@pytest.mark.parametrize("radius", [0.5, 1.0, 30.0])
def test_soft_labels_are_class_shares(radius, monkeypatch):
    X, signs, _, _ = examples(2, 30)
    want = soft(X, (signs + 1) / 2, radius)
    np.testing.assert_allclose(soft_labels(X, signs, radius), want, atol=1e-12)
    monkeypatch.setattr("benitez_pena.methods.BLOCK", 7 * 30)
    np.testing.assert_allclose(soft_labels(X, signs, radius), want, atol=1e-12)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_posterior_equals_a_generic_solver_of_the_definition(C):
    X, signs, _, _ = examples(5)
    y, n = ((signs + 1) / 2).astype(np.int64), len(signs)
    t = soft(X, y, 0.5)
    # Unknowns (w, b, xi): t f >= t^2 - xi, xi >= 0.
    A = np.column_stack([t[:, None] * X, t, np.eye(n)])
    found = minimize(
        lambda u: 0.5 * u[:2] @ u[:2] + C * u[3:].sum(), np.append(np.zeros(3), t**2), method="SLSQP",
        jac=lambda u: np.concatenate([u[:2], [0.0], np.full(n, C)]),
        constraints=[{"type": "ineq", "fun": lambda u: A @ u - t**2, "jac": lambda u: A}],
        bounds=[(None, None)] * 3 + [(0, None)] * n, options={"maxiter": 1000, "ftol": 1e-13},
    ).x  # fmt: skip
    p = Posterior(0.5).probabilities(Fold(X, y, X, 2), {"C": C})["p"]
    np.testing.assert_allclose(p, np.clip((1 + X @ found[:2] + found[2]) / 2, 0, 1), atol=1e-4)
