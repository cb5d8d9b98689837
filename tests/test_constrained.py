"""The constrained SVM: equal to a search of all choices on small sets, honest about what it could not do."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pytest
from naive import constrained as naive
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from venn.batch.constrained import ClassWeightScan, ConstrainedSVC, Infeasible, Scip
from venn.machines.machine import NotConverged

SHARES = [
    {"sensitivity": 0.8},
    {"specificity": 0.7},
    {"sensitivity": 0.6, "specificity": 0.6},
    {"accuracy": 0.7},
    {"sensitivity": 0.9, "accuracy": 0.6},
]


@pytest.fixture
def scip():
    pytest.importorskip("pyscipopt")


def examples(seed, n=10, d=2, grid=True):
    """Overlapping classes, on a coarse grid with ties, duplicates and equal objects of both classes, or off it."""
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(n) < 0.5, 1, -1)
    signs[:2] = 1, -1
    X = rng.integers(0, 4, size=(n, d)).astype(float) if grid else rng.normal(size=(n, d))
    return X + 0.5 * signs[:, None] * (not grid), signs


def objective(model, X, y, weights=1.0):
    """Return the objective on the examples as they were given."""
    f = model.decision_function(X)
    w = model.coef_[0]
    return 0.5 * w @ w + model.C * (weights * np.maximum(0, 1 - y * f)).sum()


# ----------------------------------------------------------------------------------- equal to the definition


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_best_of_all_choices(scip, seed, C):
    rng = np.random.default_rng(seed)
    n = 6
    X, y = examples(seed, n, d=1 + seed % 3, grid=seed % 2 == 0)
    weights = rng.integers(1, 4, n).astype(float) if C == 10 else np.ones(n)
    shares = SHARES[seed]
    best = naive.constrained_svm(X, y, weights, C, shares)
    if best is None:
        with pytest.raises(Infeasible):
            ConstrainedSVC(C, **shares, solver=Scip()).fit(X, y, weights)
        return
    model = ConstrainedSVC(C, **shares, solver=Scip()).fit(X, y, weights)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(best[0], rel=1e-6)
    assert objective(model, X, y, weights) == pytest.approx(model.objective_, rel=1e-9)
    assert model.gap_ <= 1e-5
    assert not model.bound_active_
    try:
        heuristic = ConstrainedSVC(C, **shares, solver=ClassWeightScan()).fit(X, y, weights)
    except NotConverged:
        return
    assert heuristic.objective_ >= model.objective_ * (1 - 1e-9)


def test_the_optimum_is_below_the_heuristic_where_class_weights_are_not_enough(scip):
    rng = np.random.default_rng(2)
    y = np.where(np.arange(30) % 5 < 2, 1, -1)
    X = rng.normal(size=(30, 3)) + 0.3 * y[:, None] * (np.arange(3) == 0)
    scan = ConstrainedSVC(sensitivity=0.7, specificity=0.7, solver=ClassWeightScan()).fit(X, y)
    best = ConstrainedSVC(sensitivity=0.7, specificity=0.7, solver=Scip()).fit(X, y)
    assert (scan.status_, best.status_) == ("heuristic", "optimal")
    assert best.objective_ < 0.9 * scan.objective_
    assert 0 < best.bound_ <= best.objective_


@pytest.mark.parametrize("solver", [Scip(), ClassWeightScan()], ids=["SCIP", "scan"])
@pytest.mark.parametrize("shares", [{}, {"sensitivity": 0.0}, {"sensitivity": 0, "specificity": 0, "accuracy": 0}])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_without_a_demand_it_is_the_plain_svm(scip, C, shares, solver):
    X, y = examples(3, n=40, d=3, grid=False)
    model = ConstrainedSVC(C, **shares, solver=solver).fit(X, y)
    plain = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-5)
    assert model.status_ == "optimal"
    assert model.gap_ == 0
    assert objective(model, X, y) == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("solver", [Scip(), ClassWeightScan()], ids=["SCIP", "scan"])
@pytest.mark.parametrize("shares", SHARES, ids=str)
def test_the_hyperplane_itself_meets_the_constraints(scip, shares, solver):
    X, y = examples(4, n=16)
    weights = np.random.default_rng(0).integers(0, 3, 16)
    model = ConstrainedSVC(**shares, solver=solver).fit(X, y, weights)
    margins = y * model.decision_function(X)
    predicted = model.predict(X) == y
    about = {"sensitivity": y == 1, "specificity": y == -1, "accuracy": y != 0}
    for name, those in about.items():
        attained = getattr(model, f"{name}_")
        total = weights[those].sum()
        assert attained.outside == pytest.approx(weights[those & (margins >= 1 - 1e-6)].sum() / total)
        assert attained.right == pytest.approx(weights[those & predicted].sum() / total)
        assert attained.outside <= attained.right
        assert attained.outside >= shares.get(name, 0) - 1e-12


def test_more_sensitivity_costs_more_and_is_paid_by_specificity(scip):
    X, y = examples(5, n=40, grid=False)
    models = [ConstrainedSVC(sensitivity=share, solver=Scip()).fit(X, y) for share in (0, 0.8, 0.9, 1)]
    costs = [model.objective_ for model in models]
    assert costs == sorted(costs)
    assert models[-1].sensitivity_.outside == 1
    assert models[-1].specificity_.right < models[0].specificity_.right


# ----------------------------------------------------------------------------------------------- invariances


def test_weights_are_copies_and_order_is_nothing(scip):
    X, y = examples(6, n=12)
    weights = np.random.default_rng(1).integers(0, 4, 12)
    weights[:2] = 1
    model = ConstrainedSVC(2.0, sensitivity=0.75, solver=Scip()).fit(X, y, weights)
    copies = np.repeat(np.arange(12), weights)
    shuffled = np.random.default_rng(2).permutation(copies)
    for rows in copies, shuffled:
        again = ConstrainedSVC(2.0, sensitivity=0.75, solver=Scip()).fit(X[rows], y[rows])
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.intercept_, model.intercept_)


@pytest.mark.parametrize("solver", [Scip(), ClassWeightScan()], ids=["SCIP", "scan"])
def test_more_features_than_examples_and_features_that_say_nothing(scip, solver):
    X, y = examples(7, n=12, d=3, grid=False)
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(40, 3)))[0]
    narrow = ConstrainedSVC(sensitivity=0.8, solver=solver).fit(X, y)
    wide = ConstrainedSVC(sensitivity=0.8, solver=solver).fit(X @ turn.T + 5.0, y)
    assert wide.objective_ == pytest.approx(narrow.objective_, rel=1e-6)
    new = rng.normal(size=(5, 3))
    np.testing.assert_allclose(wide.decision_function(new @ turn.T + 5.0), narrow.decision_function(new), atol=1e-4)


def test_either_class_may_be_positive(scip):
    X, y = examples(8, n=12)
    labels = np.where(y > 0, "spam", "ham")  # sorted: ham, spam
    model = ConstrainedSVC(sensitivity=0.8, solver=Scip()).fit(X, labels)
    assert model.positive_ == "spam"
    other = ConstrainedSVC(specificity=0.8, positive="ham", solver=Scip()).fit(X, labels)
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-6)
    assert other.specificity_ == model.sensitivity_
    assert (ConstrainedSVC(sensitivity=1, positive="ham").fit(X, labels).predict(X)[labels == "ham"] == "ham").all()


# --------------------------------------------------------------------------------------- what could not be done


def test_infeasible_constraints_are_named_and_leave_no_trace(scip):
    X, y = np.array([[0.0], [0.0], [1.0]]), np.array([1, -1, 1])
    model = ConstrainedSVC(solver=Scip()).fit(X, y)
    before = dict(vars(model))
    model.set_params(sensitivity=0.9, specificity=1.0)
    with pytest.raises(Infeasible, match=r"sensitivity >= 0.9 and specificity >= 1 .* losses of at most M = 1000"):
        model.fit(X, y)
    assert model.coef_ is before["coef_"]
    assert model.status_ == "optimal"
    assert issubclass(Infeasible, ValueError)
    assert str(pickle.loads(pickle.dumps(Infeasible("why")))) == "why"


def test_a_time_limit_is_a_status_with_a_gap_or_an_error():
    pytest.importorskip("pyscipopt")
    X, y = examples(2, n=60, d=5, grid=False)
    model = ConstrainedSVC(sensitivity=0.8, specificity=0.8, solver=Scip(time_limit=1e-6)).fit(X, y)
    assert model.status_ == "time limit"
    assert 0 < model.gap_ <= 1
    assert model.gap_ == pytest.approx(1 - model.bound_ / model.objective_)
    assert min(model.sensitivity_.outside, model.specificity_.outside) >= 0.8
    with pytest.raises(
        NotConverged, match=r"with accuracy >= 0.99 must be found, got none .* 'timelimit' .* 1e-06 seconds"
    ):
        ConstrainedSVC(accuracy=0.99, solver=Scip(time_limit=1e-6)).fit(X, y)


def test_a_bound_on_losses_that_matters_is_reported(scip):
    X, y = np.array([[-1.0], [0.0], [0.2], [3.0]]), np.array([-1, -1, 1, 1])
    free = ConstrainedSVC(sensitivity=1, solver=Scip()).fit(X, y)
    assert not free.bound_active_
    losses = np.maximum(0, 1 - y * free.decision_function(X))
    with pytest.warns(RuntimeWarning, match="M of Scip.M=1.5.* raise M"):
        tight = ConstrainedSVC(sensitivity=1, solver=Scip(M=1.5)).fit(X, y)
    assert losses.max() > 1.5
    assert tight.bound_active_
    assert tight.objective_ > 1.01 * free.objective_
    best = naive.constrained_svm(X, y, np.ones(4), 1.0, {"sensitivity": 1}, M=1.5)
    assert tight.objective_ == pytest.approx(best[0], rel=1e-4)
    with pytest.raises(Infeasible, match=r"losses of at most M = 0.5"):
        ConstrainedSVC(sensitivity=1, solver=Scip(M=0.5)).fit([[0.0], [0.0], [1.0]], [0, 1, 1])


def test_the_scan_says_that_it_found_nothing():
    X, y = examples(2, n=60, d=5, grid=False)
    with pytest.raises(NotConverged, match=r"accuracy >= 0.99 .* from 1.0 to 4.0, got none .* proves nothing: Scip"):
        ConstrainedSVC(accuracy=0.99, solver=ClassWeightScan((1, 4))).fit(X, y)


def test_without_pyscipopt(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    X, y = examples(4, n=16)
    with pytest.raises(ImportError, match=r"Scip\(\) needs the package pyscipopt: pip install"):
        ConstrainedSVC(solver=Scip()).fit(X, y)
    with pytest.warns(RuntimeWarning, match="pyscipopt is not installed, so this is the heuristic"):
        model = ConstrainedSVC(sensitivity=1).fit(X, y)
    assert model.status_ == "heuristic"
    assert (model.bound_, model.gap_) == (0, 1)
    assert model.sensitivity_.outside == 1
    with warnings.catch_warnings():  # an optimum needs no excuse, nor does a heuristic that was asked for
        warnings.simplefilter("error")
        assert ConstrainedSVC().fit(X, y).status_ == "optimal"
        assert ConstrainedSVC(sensitivity=1, solver=ClassWeightScan()).fit(X, y).status_ == "heuristic"


# ------------------------------------------------------------------------------------------- a good citizen


@parametrize_with_checks(
    [ConstrainedSVC(solver=ClassWeightScan()), ConstrainedSVC(sensitivity=0.9, solver=ClassWeightScan((1, 8, 64)))]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


BAD = {
    "C": ({"C": 0}, "C must .* got 0"),
    "C as text": ({"C": "1"}, "C must .* got '1'"),
    "sensitivity": ({"sensitivity": 1.1}, r"sensitivity must be a number in \[0, 1\], got 1.1"),
    "specificity": ({"specificity": float("nan")}, r"specificity must be a number in \[0, 1\], got nan"),
    "accuracy": ({"accuracy": True}, r"accuracy must be a number in \[0, 1\], got True"),
    "positive": ({"positive": 7}, r"positive must be one of the classes \[-1, 1\], got 7"),
    "solver": ({"solver": "scip"}, "solver must be an object with a method 'solve', .* got 'scip'"),
    "solver class": ({"solver": ClassWeightScan}, "solver must be an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_parameter_is_named_and_leaves_no_trace(name):
    parameters, message = BAD[name]
    X, y = examples(4, n=16)
    model = ConstrainedSVC(solver=ClassWeightScan()).fit(X[:, :1], y)
    before = model.coef_
    with pytest.raises((ValueError, TypeError), match=message):
        model.set_params(**parameters).fit(X, y)
    assert model.coef_ is before
    assert model.n_features_in_ == 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(16, -1.0), "sample_weight must be >= 0, got -1.0 at 0"),
        (np.zeros(16), "sample_weight must be > 0 for some example, got zero for all 16"),
        (np.ones(15), r"sample_weight must have shape \(16,\), .* got \(15,\)"),
        (np.arange(16) < 1, "y must hold 2 classes of examples with weight > 0, got 1 class"),
    ],
    ids=["negative", "zero", "short", "one class"],
)
def test_bad_weights(weights, message):
    X, y = examples(4, n=16)
    with pytest.raises(ValueError, match=message):
        ConstrainedSVC(solver=ClassWeightScan()).fit(X, y, weights)


def test_solvers_are_values():
    for thing in (Scip(), Scip(10.0, 5.0, 1), ClassWeightScan(), ClassWeightScan((1, 3))):
        assert eval(repr(thing)) == thing == pickle.loads(pickle.dumps(thing))
        assert hash(thing) == hash(eval(repr(thing)))
    model = ConstrainedSVC(sensitivity=0.5, solver=Scip(time_limit=1.0))
    assert clone(model).solver == Scip(time_limit=1.0)
    for wrong, message in (
        (lambda: Scip(M=0), "M must .* got 0"),
        (lambda: Scip(time_limit=-1), "time_limit must .* got -1"),
        (lambda: Scip(seed=0.5), "seed must be an integer >= 0, got 0.5"),
        (lambda: ClassWeightScan(()), "weights must hold at least one number > 0, got ()"),
        (lambda: ClassWeightScan((1, 0)), "weights must .* got 0"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            wrong()
