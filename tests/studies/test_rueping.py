"""The study of Rueping (2004): its parts against definitions, its orderings, and that nothing is computed twice."""

import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import published as file_of
from naive import rueping as naive
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import rueping_2004  # noqa: E402
from rueping import machines, sets, study, tables  # noqa: E402
from rueping.logistic import fitted  # noqa: E402
from rueping.methods import ALL, PAPER, Fold, methods, svm_scores  # noqa: E402
from rueping.study import Study, losses, run  # noqa: E402
from studies.document import written  # noqa: E402
from studies.store import Store  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small matrices: threads that wait for each other take longer than one alone."""
    with threadpool_limits(1):
        yield


# Parts against definitions ---------------------------------------------------------------------------


def test_losses_are_those_of_the_definitions():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    p = rng.choice([0.0, 0.25, 0.5, 1.0], 40)
    right = np.where(y == 1, p, 1 - p) > 0
    for chosen in (np.arange(40), np.flatnonzero(right)):
        mse, entropy, clipped, error = losses(p[chosen], y[chosen])
        assert mse == pytest.approx(naive.mean_squared_error(p[chosen].tolist(), y[chosen].tolist()))
        assert entropy == pytest.approx(naive.cross_entropy(p[chosen].tolist(), y[chosen].tolist()))
        assert error == np.mean((p[chosen] > 0.5) != y[chosen])
        assert math.isfinite(clipped)
        assert clipped <= entropy + 1e-12
    assert clipped == pytest.approx(entropy, abs=1e-12)  # the second time nothing was infinite


def made_up(values):
    """Return losses of several methods, (methods, sets, folds) numbers, as mean squared error and cross-entropy."""
    data = tuple(f"set {s}" for s in range(values.shape[1]))
    table = {
        (name, "rbf", method): np.column_stack([of_set] * 5)
        for method, of_method in zip(PAPER, values, strict=True)
        for name, of_set in zip(data, of_method, strict=True)
    }
    return tables.Losses(Study(data, values.shape[2]), table)


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_the_definition_with_ties_and_infinities(seed):
    values = np.random.default_rng(seed).choice([0.1, 0.2, 0.3, np.inf], (len(PAPER), 6, 1))
    found = made_up(values).mean_ranks("rbf", tables.ENTROPY, PAPER)
    assert list(found.values()) == pytest.approx(naive.mean_ranks(values[:, :, 0].tolist()))


@pytest.mark.parametrize("name", [name for name in sets.PUBLISHED if name != "covtype"])  # that takes ten seconds
def test_a_set_has_the_papers_rows_standardised(name):
    file_of({"digits": "optdigits", "diabetes": "pima_diabetes", "liver": "liver_bupa"}.get(name, name))
    kept = sets.read(name)
    n, d = sets.PUBLISHED[name]
    assert kept["X"].shape[0] == len(kept["y"]) == n
    assert kept["X"].shape[1] <= d
    assert set(kept["y"].tolist()) == {0, 1}
    np.testing.assert_allclose(kept["X"].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(kept["X"].std(axis=0), 1, atol=1e-9)
    if name == "digits":
        assert np.bincount(kept["y"]).tolist() == [389, 387]


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("kernel", machines.KERNELS)
def test_kernel_logistic_regression_meets_its_optimality_conditions(kernel, C):
    """The coefficients are C (y - p), and sum to 0, the slope by the bias: the objective is convex."""
    rng = np.random.default_rng(3)
    X = rng.integers(-2, 3, (60, 3)) / 2  # with equal objects, some of different labels
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(np.int64)
    f = machines.klr(machines.Parameters(kernel, C, 0.3 if kernel == "rbf" else 0.0), X, y)(X)
    beta = C * (y - expit(f))
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.3)
    assert abs(beta.sum()) < 1e-6 * C * len(y)
    np.testing.assert_allclose(np.ptp(K @ beta - f), 0, atol=1e-6 * C)
    if kernel == "rbf":
        found, bias = fitted(K, y, C)
        np.testing.assert_allclose(found, beta, rtol=0, atol=1e-7 * C)
        np.testing.assert_allclose(f, K @ found + bias, rtol=0, atol=1e-9 * C)


def test_kernel_logistic_regression_refuses_a_kernel_that_is_none():
    with pytest.raises(np.linalg.LinAlgError):
        fitted(np.array([[1.0, 9.0], [9.0, 1.0]]), np.array([1, 0]), 50.0)


def test_scores_are_held_out_where_they_say_so():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(np.int64)
    parameters = machines.Parameters("rbf", 10.0, 1.0)
    scores = svm_scores(parameters, X, y, X[:7], seed=1)
    np.testing.assert_allclose(scores["new"], scores["train"][:7])
    for k in range(5):
        out = scores["fold"] == k
        again = machines.svm(parameters, X[~out], y[~out])
        np.testing.assert_allclose(scores["cross"][out], again(X[out]))
        np.testing.assert_allclose(scores["new_by_fold"][k], again(X[:7]))
    rest = np.setdiff1d(np.arange(90), scores["held"])
    assert len(scores["held"]) == 30
    again = machines.svm(parameters, X[rest], y[rest])  # in another order, which libsvm's tolerance lets matter
    np.testing.assert_allclose(scores["held_scores"], again(X[scores["held"]]), atol=5e-3)


# Orderings -------------------------------------------------------------------------------------------


# Where P(y = 1 | x) is known. On a plateau, labels are hardly more certain far from the border than near it, and
# scores of a machine that separates look surer than that. On a slope, P is a sigmoid, but scores of an SVM with an RBF
# kernel flatten.
WORLDS = {"plateau": lambda x: 0.5 + 0.3 * np.tanh(2 * x), "slope": expit}


def played(world, source="cross", C=1.0, gamma=0.1, runs=14, n=300):
    """Return each method's expected (squared errors from P, cross-entropies), (2, runs)."""
    new = np.linspace(-3, 3, 121)[:, None]
    truth, parameters = WORLDS[world](new[:, 0]), machines.Parameters("rbf", C, gamma)
    found = {method: [] for method in PAPER}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3, 3, (n, 1))
        y = (rng.random(n) < WORLDS[world](X[:, 0])).astype(np.int64)
        scores = svm_scores(parameters, X, y, new, seed)
        fold = Fold(X, y, new, dict.fromkeys(study.MACHINES, parameters), scores)
        known = methods(source)
        for method in PAPER:
            q = known[method].probabilities(fold)
            with np.errstate(divide="ignore"):
                entropy = -(truth * np.log(q) + (1 - truth) * np.log(1 - q)).mean()
            found[method].append((((truth - q) ** 2).mean(), entropy))
    return {method: np.array(values).T for method, values in found.items()}


def ahead(values, first, second, loss):
    """Return whether an exact sign test at level .001 says that the first method's loss is the smaller one."""
    wins = int((values[first][loss] < values[second][loss]).sum())
    return binomtest(wins, values[first].shape[1], alternative="greater").pvalue < 0.001


@pytest.fixture(scope="module")
def plateau():
    return played("plateau")


@pytest.mark.parametrize("behind", ["Softmax", "Bin-10", "Bin-50"])
@pytest.mark.parametrize("first", ["Platt", "Beta-2", "PP"])
def test_fitted_sigmoids_and_pp_are_ahead_of_softmax_and_bins(plateau, first, behind):
    assert ahead(plateau, first, behind, tables.MSE)
    assert ahead(plateau, first, behind, tables.ENTROPY)
    assert not ahead(plateau, behind, first, tables.MSE)


def test_the_orderings_are_lost_where_maps_are_fitted_to_training_scores():
    # A machine that learns its examples by heart: their scores say nothing of those of new objects.
    broken = played("plateau", "train", C=100.0, gamma=100.0)
    for method in ("Platt", "Beta-2", "PP"):
        for behind in ("Bin-10", "Bin-50"):
            assert not ahead(broken, method, behind, tables.MSE)


# Nothing twice ---------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A study that takes a second: 40 examples of a made-up set, two folds, one choice of parameters."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(np.int64)
    monkeypatch.setattr(sets, "read", lambda name: {"X": X, "y": y, "classes": np.array(["no", "yes"])})
    monkeypatch.setattr(machines, "PENALTIES", {"linear": (1.0,), "rbf": (1.0,)})
    monkeypatch.setattr(machines, "WIDTHS", (1.0,))
    return Study(("liver",), folds=2)


RESULTS = 1 + 2 * 3 + 4 * (1 + len(ALL))  # the set; choices; scores and methods of each kernel and fold


def test_an_interrupted_study_goes_on_where_it_stopped(small, tmp_path, monkeypatch):
    whole, computed = run(small, tmp_path / "whole")
    assert computed == RESULTS
    write, left = Store._write, [37]

    def interrupted(self, path, value):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        write(self, path, value)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(small, tmp_path / "parts")
    assert len(list((tmp_path / "parts").iterdir())) == 37
    table, computed = run(small, tmp_path / "parts")
    assert computed == RESULTS - 37
    assert tables.document(tables.Losses(small, table)) == tables.document(tables.Losses(small, whole))
    again, computed = run(small, tmp_path / "parts")
    assert computed == 0
    assert tables.document(tables.Losses(small, again)) == tables.document(tables.Losses(small, table))


def test_a_result_half_written_is_no_result(tmp_path, monkeypatch):
    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.of("one", {"a": 1}, lambda: {"p": np.ones(3)})
    assert list(tmp_path.iterdir()) == []
    assert store.of("one", {"a": 1}, lambda: {"p": np.zeros(3)})["p"].tolist() == [0, 0, 0]
    assert store.computed == 1


def test_a_changed_setting_reuses_no_stale_result(small, tmp_path, monkeypatch):
    table, _ = run(small, tmp_path)
    maps = [name for name, method in methods("train").items() if hasattr(method, "map")]
    biased, computed = run(Study(small.data, small.folds, "train"), tmp_path)
    assert computed == 4 * len(maps)  # scores and all that is not scaled stay
    assert (biased["liver", "rbf", "Platt"][:, 0] != table["liver", "rbf", "Platt"][:, 0]).all()
    np.testing.assert_array_equal(biased["liver", "rbf", "KLR"], table["liver", "rbf", "KLR"])
    monkeypatch.setattr(machines, "PENALTIES", {"linear": (1.0,), "rbf": (2.0,)})
    _, computed = run(small, tmp_path)
    assert computed == (RESULTS - 1) // 2  # everything of one kernel
    _, computed = run(Study(small.data, 3), tmp_path)
    assert computed == 3 * 2 * (1 + len(ALL))


# The command -----------------------------------------------------------------------------------------


@pytest.mark.program
def test_the_command_writes_tables_and_figure_between_the_markers(tmp_path, capsys):
    file_of("promoters")
    options = ["--quick", "--data", "promoters", "--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "out")]
    rueping_2004.main([*options, "--jobs", "1"])
    assert re.search(r"RBF kernel: place of KLR(.|\n)*\n[1-9]\d* results computed", capsys.readouterr().out)
    page = tmp_path / "out" / "rueping.md"
    assert (tmp_path / "out" / "rueping.png").stat().st_size > 10_000
    text = page.read_text()
    # The unit of the paper: cross-entropy by squared error must come out near its .317 to .352, once divided by 10.
    low, high = map(float, re.search(r"lies between ([\d.]+) and ([\d.]+)", text).groups())
    assert 2.5 < low < 3.52
    assert 3.17 < high < 4.5
    page.write_text("What people wrote.\n" + text + "More of it.\n")
    rueping_2004.main(options)
    assert "\n0 results computed" in capsys.readouterr().out
    assert page.read_text() == "What people wrote.\n" + text + "More of it.\n"


def test_a_page_without_markers_is_left_as_it_is(tmp_path):
    page = tmp_path / "rueping.md"
    page.write_text("What people wrote.\n")
    with pytest.raises(ValueError, match=r"must have the lines '<!-- tables"):
        written(page, ["a table"], rueping_2004.SCRIPT, rueping_2004.TITLE)
    assert page.read_text() == "What people wrote.\n"
