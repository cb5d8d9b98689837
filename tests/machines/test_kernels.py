"""The kernel of several widths: its definition, sparse rows, flat kernels, machines on it."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import learned, objects

import venn
from venn.machines import MultiscaleRBF
from venn.machines.sparse import clean_sparse


def definition(x, z, gamma, widths):
    """Return the mean of Gaussians, by its formula."""
    square = sum((float(a) - float(b)) ** 2 for a, b in zip(x, z, strict=True))
    return sum(math.exp(-w * gamma * square) for w in widths) / len(widths)


class ByDefinition:
    """The same kernel, slowly, and without proximities."""

    def __init__(self, gamma, widths, linear=0.0):
        self.gamma, self.widths, self.linear = gamma, widths, linear

    def row(self, columns, n, x, out):
        gaussians = np.array([definition(z, x, self.gamma, self.widths) for z in columns[:, :n].T])
        out[:n] = (1 - self.linear) * gaussians + self.linear * self.gamma * (columns[:, :n].T @ x)


@pytest.mark.parametrize("kind", ["normal", "grid", "few"])
@pytest.mark.parametrize(("gamma", "widths"), [("auto", (1 / 16, 1 / 4, 1, 4)), (0.5, (1.0,)), (2.0, (0.1, 3.0, 7.0))])
def test_a_row_is_the_mean_of_gaussians(kind, gamma, widths):
    X = objects(kind, np.random.default_rng(0), 20)
    columns, out = np.ascontiguousarray(X.T), np.empty(20)
    rate = 1 / X.shape[1] if gamma == "auto" else gamma
    expected = [definition(X[3], z, rate, widths) for z in X]
    kernel = MultiscaleRBF(gamma, widths)
    kernel.row(columns, 20, X[3], out)
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=0)
    assert out[3] == 1.0
    kernel.proximity_row(columns, 20, X[3], out)
    np.testing.assert_allclose(out, np.array(expected) - 1, rtol=0, atol=1e-15)
    assert out[3] == 0.0


def test_a_flat_kernel_keeps_its_digits():
    kernel, out = MultiscaleRBF(1e-12), np.empty(1)
    kernel.proximity_row(np.zeros((1, 1)), 1, np.array([1.0]), out)
    assert out[0] == pytest.approx(-1e-12 * np.mean(kernel.widths), rel=1e-9)


def test_a_linear_part_is_mixed_in():
    X = objects("grid", np.random.default_rng(3), 20)
    columns, out = np.ascontiguousarray(X.T), np.empty(20)
    kernel = MultiscaleRBF(0.5, (1.0, 3.0), linear=0.25)
    kernel.row(columns, 20, X[3], out)
    expected = [0.75 * definition(X[3], z, 0.5, (1.0, 3.0)) + 0.25 * 0.5 * (X[3] @ z) for z in X]
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-15)
    itself = np.array([0.75 + 0.125 * (z @ z) for z in X])
    kernel.proximity_row(columns, 20, X[3], out)
    halves = (itself + itself[3]) / 2
    np.testing.assert_allclose(out, np.array(expected) - halves, rtol=0, atol=1e-13)
    assert out[3] == 0.0


@pytest.mark.parametrize("linear", [0.0, 0.06])
def test_sparse_rows_have_the_same_bits(linear):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (12, 7)).astype(float)
    rows, x = clean_sparse("X", sp.csr_array(X), None), clean_sparse("x", sp.csr_array(X[5:6]), None)
    kernel, columns = MultiscaleRBF(linear=linear), np.ascontiguousarray(X.T)
    for dense, sparse in ((kernel.row, kernel.sparse_row), (kernel.proximity_row, kernel.sparse_proximity_row)):
        one, other = np.empty(12), np.empty(12)
        dense(columns, 12, X[5], one)
        sparse(rows, 12, x, np.zeros(7), other)
        assert one.tobytes() == other.tobytes()


MAKES = (venn.LeastSquaresSVM, venn.OneVsAllSVM)


@pytest.mark.parametrize("linear", [0.0, 0.06])
@pytest.mark.parametrize("make", MAKES)
def test_machines_on_it_are_those_of_its_definition(make, linear):
    rng = np.random.default_rng(2)
    X = objects("grid", rng, 40)
    y = rng.integers(0, 3, 40)
    d = X.shape[1]
    machine = learned(make(MultiscaleRBF(linear=linear), 3.0, (0, 1, 2)), X, y)
    slow = learned(make(ByDefinition(1 / d, MultiscaleRBF().widths, linear), 3.0, (0, 1, 2)), X, y)
    assert machine.residual <= 1e-8
    for x in objects("normal", rng, 5)[:, :d]:
        np.testing.assert_allclose(machine.scores(x), slow.scores(x), rtol=0, atol=1e-6)
        for j in range(3):
            answers = machine.hypotheses(x).leave_one_out(j), slow.hypotheses(x).leave_one_out(j)
            np.testing.assert_allclose(*answers, rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", MAKES)
def test_machines_on_it_say_the_same_of_sparse_objects(make):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (40, 6)) * 1.0
    y = rng.integers(0, 3, 40)
    dense = learned(make(MultiscaleRBF(), 3.0, (0, 1, 2)), X[:35], y[:35])
    sparse = learned(make(MultiscaleRBF(), 3.0, (0, 1, 2)), [sp.csr_array(x[None]) for x in X[:35]], y[:35])
    slow = learned(make(ByDefinition(1 / 6, MultiscaleRBF().widths), 3.0, (0, 1, 2)), X[:35], y[:35])
    for x in X[35:]:
        row = sp.csr_array(x[None])
        assert np.array_equal(sparse.scores(row), dense.scores(x))
        np.testing.assert_allclose(sparse.scores(row), slow.scores(x), rtol=0, atol=1e-6)
        for j in range(3):
            answers = sparse.hypotheses(row).leave_one_out(j), slow.hypotheses(x).leave_one_out(j)
            np.testing.assert_allclose(*answers, rtol=0, atol=1e-5)


def test_the_linear_share_is_below_1():
    with pytest.raises(ValueError, match="linear must be below 1, got 1"):
        MultiscaleRBF(1.0, (1.0,), 1)
