"""Kernels whose gamma has a name: "auto" is one over the number of features, "scale" needs a known variance."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import learned

import venn
from venn.adapters import VennClassifier
from venn.machines import MultiscaleRBF, Polynomial
from venn.machines.kernels import fitted_to

CLASSES = ("a", "b", "c")


@pytest.mark.parametrize("make", [venn.RBF, MultiscaleRBF, lambda gamma: Polynomial(2, gamma)])
def test_auto_is_one_over_the_number_of_features(make):
    X = np.random.default_rng(0).normal(size=(9, 4))
    rows, x = sp.csr_array(X), sp.csr_array(X[3:4])
    store = [venn.LeastSquaresSVM(make(gamma), 2.0, CLASSES) for gamma in ("auto", 0.25)]
    for machine in store:
        learned(machine, X[:8], "abcabcab")
    assert np.array_equal(store[0].scores(X[8]), store[1].scores(X[8]))
    sparse = [learned(venn.LeastSquaresSVM(make(gamma), 2.0, CLASSES), [rows[i : i + 1] for i in range(8)], "abcabcab")
              for gamma in ("auto", 0.25)]  # fmt: skip
    assert np.array_equal(sparse[0].scores(x), sparse[1].scores(x))


@pytest.mark.parametrize("machine", [venn.LeastSquaresSVM, venn.OneVsAllSVM])
def test_scale_is_refused_where_nothing_knows_the_variance(machine):
    one = machine(venn.RBF("scale"), 1.0, CLASSES)
    for act in (lambda: one.learn_one([1.0, 2.0], "a"), lambda: one.scores([1.0, 2.0]), lambda: one.hypotheses([1.0])):
        with pytest.raises(ValueError, match=r"give the machine scale=True, or take gamma='auto'"):
            act()
    assert one.n == 0


def test_scale_is_computed_as_in_scikit_learn():
    X = np.random.default_rng(1).normal(size=(30, 3)) * [1, 5, 0.1] + 2
    expected = 1 / (3 * X.var())
    assert fitted_to(venn.RBF("scale"), X).gamma == pytest.approx(expected, rel=1e-12)
    assert fitted_to(MultiscaleRBF("scale"), sp.csr_array(X)).gamma == pytest.approx(expected, rel=1e-9)
    assert fitted_to(venn.RBF("scale"), np.ones((4, 2))).gamma == 1.0
    assert fitted_to(venn.RBF("auto"), X) == venn.RBF("auto")
    assert venn.tune([(x, i % 2) for i, x in enumerate(X)], (0, 1), kernels=[venn.RBF("scale")]).kernel.gamma == (
        pytest.approx(expected, rel=1e-12)
    )


def test_classifiers_compute_scale_when_they_are_fitted():
    X = np.random.default_rng(2).normal(size=(40, 3)) * 4
    y = (X[:, 0] > 0).astype(int)
    fitted = VennClassifier(venn.RBF("scale")).fit(X, y)
    assert fitted.predictor_.machine.kernel.gamma == pytest.approx(1 / (3 * X.var()), rel=1e-12)
    assert fitted.kernel == venn.RBF("scale")
    around = VennClassifier(venn.RBF("scale"), svm=functools.partial(venn.LeastSquaresSVM, scale=True)).fit(X, y)
    assert around.predictor_.machine.kernel == venn.RBF("scale")
