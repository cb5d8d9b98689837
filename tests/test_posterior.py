"""The SVM of posterior probabilities: equal to its definition, and to the plain SVM where labels are hard."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_checks import parametrize_with_each
from scipy.optimize import minimize
from sklearn.svm import SVC

from venn.batch import posterior
from venn.batch.posterior import PosteriorSVC, balance_within


def examples(seed, n=30, d=2):
    """Overlapping classes on a grid of quarters: ties, duplicates, distances exactly equal to radii."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return rng.integers(0, 5, size=(n, d)) / 4 + 0.5 * y[:, None], y


def targets(X, y, weights, radius):
    """Return 2 P - 1 by the definition, example by example."""
    out = []
    for i in range(len(X)):
        near = [j for j in range(len(X)) if np.sqrt(((X[i] - X[j]) ** 2).sum()) <= radius + 1e-9]
        out.append(2 * sum(weights[j] * y[j] for j in near) / sum(weights[j] for j in near) - 1)
    return np.array(out)


def objective(X, t, weights, C, w, b):
    return 0.5 * w @ w + C * weights @ np.maximum(0, t**2 - t * (X @ w + b))


@pytest.mark.parametrize("radius", [0.25, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_targets_are_class_shares_by_weight(seed, radius):
    X, y = examples(seed)
    weights = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    got = balance_within(radius, X, 2.0 * y - 1, weights)
    np.testing.assert_allclose(got, targets(X, y, weights, radius), atol=1e-12)


def test_targets_are_the_same_in_blocks(monkeypatch):
    X, y = examples(4)
    whole = balance_within(0.5, X, 2.0 * y - 1, np.ones(30))
    monkeypatch.setattr(posterior, "BLOCK", 7 * 30)
    np.testing.assert_allclose(balance_within(0.5, X, 2.0 * y - 1, np.ones(30)), whole, rtol=1e-14)


@pytest.mark.parametrize("radius", [0.25, 0.5])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_equals_a_generic_solver_of_the_definition(C, radius):
    X, y = examples(5, n=14)
    t = targets(X, y, np.ones(14), radius)
    model = PosteriorSVC(C, radius).fit(X, y)
    ours = objective(X, t, np.ones(14), C, model.coef_[0], model.intercept_[0])
    # Unknowns (w, b, xi): t f >= t^2 - xi, xi >= 0.
    A = np.column_stack([t[:, None] * X, t, np.eye(14)])
    found = minimize(
        lambda u: 0.5 * u[:2] @ u[:2] + C * u[3:].sum(), np.append(np.zeros(3), t**2), method="SLSQP",
        jac=lambda u: np.concatenate([u[:2], [0.0], np.full(14, C)]),
        constraints=[{"type": "ineq", "fun": lambda u: A @ u - t**2, "jac": lambda u: A}],
        bounds=[(None, None)] * 3 + [(0, None)] * 14, options={"maxiter": 1000, "ftol": 1e-13},
    )  # fmt: skip
    assert ours == pytest.approx(found.fun, rel=1e-7)
    np.testing.assert_allclose(model.coef_[0], found.x[:2], atol=1e-4)


def test_with_radius_zero_it_is_the_plain_svm_also_of_equal_objects():
    X, y = examples(6)
    model = PosteriorSVC(0.7).fit(X, y)
    plain = SVC(kernel="linear", C=0.7, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    X, y = [[-1.0], [-1.0], [1.0], [1.0], [1.0]], [0, 0, 0, 1, 1]
    for radius, rate in ((0.0, 1.0), (1e-9, 2 / 3)):  # hard labels outvote each other, soft ones share a target
        p = PosteriorSVC(100.0, radius).fit(X, y).predict_proba([[1.0]])
        assert p[0, 1] == pytest.approx(rate, abs=1e-6)


def test_weights_are_copies():
    X, y = examples(7)
    weights = np.random.default_rng(0).integers(0, 3, 30)
    weights[:2] = 1
    copies = np.repeat(np.arange(30), weights)
    model = PosteriorSVC(2.0, 0.5).fit(X, y, weights)
    again = PosteriorSVC(2.0, 0.5).fit(X[copies], y[copies])
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-6)


def test_examples_without_a_target_drop_out():
    X, y = np.array([[-2.0], [0.0], [0.0], [2.0], [3.0]]), np.array([0, 0, 1, 1, 1])
    model = PosteriorSVC(1.0, radius=0.5).fit(X, y)
    without = PosteriorSVC(1.0, radius=0.5).fit(X[[0, 3, 4]], y[[0, 3, 4]])
    np.testing.assert_array_equal(model.coef_, without.coef_)
    even = PosteriorSVC(1.0, radius=9.0).fit(X[:4], y[:4])  # all targets are 0
    np.testing.assert_array_equal(even.predict_proba(X), np.full((5, 2), 0.5))
    assert (even.predict(X) == 1).all()
    assert (PosteriorSVC(1.0, radius=9.0, positive=0).fit(X[:4], y[:4]).predict(X) == 0).all()


def test_weights_that_are_even_up_to_rounding_are_even():
    X, y, weights = [[0.0], [0.0], [0.0], [5.0], [5.25]], [1, 1, 0, 1, 1], [0.1, 0.2, 0.3, 1.0, 1.0]
    for labels in y, [0, 0, 1, 1, 1]:
        model = PosteriorSVC(1.0, 0.5).fit(X, labels, weights)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1.0, atol=1e-9)


def test_a_window_over_all_gives_the_rate_everywhere():
    X, y = examples(8)
    rate = y.mean()
    assert rate != 0.5
    p = PosteriorSVC(10.0, radius=100.0).fit(X, y).predict_proba([[0.0, 0.0], [9.0, -9.0]])
    np.testing.assert_allclose(p, [[1 - rate, rate]] * 2, atol=1e-9)


def test_probabilities_are_a_clipped_line_of_the_score():
    X, y = examples(9)
    labels = np.array(["no", "yes"])[y]
    for positive in (None, "yes", "no"):
        model = PosteriorSVC(1.0, 0.25, positive=positive).fit(X, labels)
        far = np.concatenate([X, 50 * X - 30])
        f, p = model.decision_function(far), model.predict_proba(far)
        np.testing.assert_allclose(p[:, 1], np.clip((1 + f) / 2, 0, 1), atol=1e-15)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-15)
        assert {0.0, 1.0} <= set(p[:, 1])
        clear = np.abs(f) > 1e-9
        np.testing.assert_array_equal(model.predict(far)[clear], np.where(f > 0, "yes", "no")[clear])


@parametrize_with_each([PosteriorSVC(), PosteriorSVC(radius=1.0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


BAD = {
    "C": ({"C": -1}, "C must .* got -1"),
    "radius": ({"radius": -0.5}, "radius must be a finite number >= 0, got -0.5"),
    "endless": ({"radius": np.inf}, "radius must be a finite number >= 0, got inf"),
    "text": ({"radius": "1"}, "radius must be a finite number >= 0, got '1'"),
    "positive": ({"positive": "x"}, r"positive must be one of the classes \[0, 1\], got 'x'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_parameter_is_named_and_leaves_no_trace(name):
    parameters, message = BAD[name]
    X, y = examples(1)
    model = PosteriorSVC().fit(X[:, :1], y)
    before = model.coef_
    with pytest.raises((ValueError, TypeError), match=message):
        model.set_params(**parameters).fit(X, y)
    assert model.coef_ is before
    assert model.n_features_in_ == 1


def test_classes_and_weights_are_checked():
    X, y = examples(1)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        PosteriorSVC().fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match=r"y must hold 2 classes .* got 1 class"):
        PosteriorSVC().fit(X, y, y)
    with pytest.raises(ValueError, match=r"sample_weight must be >= 0, got -1\.0 at 0"):
        PosteriorSVC().fit(X, y, -np.ones(30))
