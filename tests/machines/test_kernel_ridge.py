"""Kernel ridge regression against dense solves: labels of any size, ties, weights, examples that come and go."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from naive import kernel_ridge as naive

import venn
from venn.labels import Real
from venn.machines import KernelRidge, MultiscaleRBF, NotConverged

GAMMA, C = 0.7, 4.0


def examples(seed, n, tied=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)) / 2 if tied else rng.normal(size=(n, 2))
    y = X.sum(axis=1) + (rng.integers(-2, 3, n) / 2 if tied else rng.normal(size=n))
    return X, y


def taught(X, y, weights=None, kernel=None):
    machine = KernelRidge(venn.RBF(GAMMA) if kernel is None else kernel, C)
    for i in range(len(y)):
        machine.learn_one(X[i], y[i], 1.0 if weights is None else weights[i])
    return machine


def check(machine, X, y, ridge, x, supposed, scale=1.0):
    """Compare a machine's answer about a label with dense solves."""
    Z, labels, ridge = np.vstack([X, x]), np.append(y, supposed), np.append(ridge, 1 / C)
    K, lines = naive.kernel(Z, Z, GAMMA), machine.hypotheses(x)
    n, near = len(y), {"rtol": 0, "atol": 1e-9 * scale}
    assert np.allclose(lines.residuals(supposed), naive.residuals(K, ridge, labels), **near)
    if n:
        assert np.allclose(lines.test_scores, naive.fitted(K[:n, :n], ridge[:n], y, K[n:, :n]), **near)
        assert np.allclose(lines.leave_one_out(supposed), naive.leave_one_out(K, ridge, labels), **near)
        assert np.allclose(lines.studentised(supposed) * lines.unit, naive.studentised(K, ridge, labels), **near)
    if n > 1:
        assert np.allclose(machine.bag.scores[0], y - naive.residuals(K[:n, :n], ridge[:n], y), **near)
        assert np.allclose(
            machine.leave_one_out_bag.scores[0], y - naive.leave_one_out(K[:n, :n], ridge[:n], y), **near
        )


@pytest.mark.parametrize("seed", range(4))
def test_every_answer_is_that_of_a_dense_solve(seed):
    X, y = examples(seed, 25, tied=seed % 2 == 0)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 3.0, 25)
    machine = KernelRidge(venn.RBF(GAMMA), C)
    for i in range(25):
        ridge = 1 / (C * weights[:i])
        for supposed in (y[i], 10.0):
            check(machine, X[:i], y[:i], ridge, X[i], supposed)
        machine.learn_one(X[i], y[i], weights[i])
    assert machine.residual < 1e-12


@pytest.mark.parametrize(("factor", "offset"), [(1e12, 0.0), (1e-12, 0.0), (1.0, 1e9), (1e90, 0.0), (3.0, -1e5)])
def test_labels_of_any_size_and_offset(factor, offset):
    X, y = examples(1, 20)
    labels = y * factor + offset
    machine = taught(X, labels)
    x = np.array([0.3, 0.4])
    kept = (labels - offset) / factor  # what is left of the digits
    assert np.allclose((machine.scores(x) - offset) / factor, taught(X, kept).scores(x), rtol=0, atol=1e-6)


def test_powers_of_two_change_no_bit():
    X, y = examples(2, 20)
    x = np.array([0.3, 0.4])
    one, other = taught(X, y), taught(X, y * 2.0**40)
    assert np.array_equal(one.scores(x) * 2.0**40, other.scores(x))
    a, b = one.hypotheses(x).critical_points(), other.hypotheses(x).critical_points()
    assert np.array_equal(a * 2.0**40, b)


def test_examples_come_and_go():
    X, y = examples(3, 60)
    machine, held = KernelRidge(venn.RBF(GAMMA), C), []
    rng = np.random.default_rng(0)
    for i in range(60):
        machine.learn_one(X[i], y[i])
        held.append(i)
        if i % 3 == 2:
            gone = int(rng.integers(len(held)))
            machine.unlearn_one(gone)
            held.pop(gone)
        if i == 30:
            machine = pickle.loads(pickle.dumps(machine))
        if i % 7 == 0:
            check(machine, X[held], y[held], np.full(len(held), 1 / C), np.array([0.5, 0.25]), 1.5)
    while held:
        machine.unlearn_one(0)
        held.pop(0)
    assert machine.n == 0
    machine.learn_one([1.0, 2.0, 3.0], 1e5)  # objects of another length may come
    assert machine.scores([0.0, 0.0, 0.0]) == 1e5


def test_a_label_far_away_leaves_no_trace():
    X, y = examples(4, 30)
    machine = taught(X[:10], y[:10])
    for place, far in ((10, 1e90), (3, -1e30)):
        machine.learn_one([9.0, 9.0], far)
        if place == 3:
            machine.learn_one(X[10], y[10])
        machine.unlearn_one(10)
    assert np.array_equal(machine.labels, y[:11])
    check(machine, X[:11], y[:11], np.full(11, 1 / C), X[12], 2.0)
    first_far = taught(np.vstack([[[9.0, 9.0]], X]), np.append(1e60, y))
    first_far.unlearn_one(0)
    check(first_far, X, y, np.full(30, 1 / C), X[12] + 0.1, 2.0)


def test_the_last_example_is_forgotten_to_the_bit():
    X, y = examples(5, 20)
    machine = taught(X, y)
    before = machine.bag.scores.tobytes(), machine.leave_one_out_bag.scores.tobytes()
    for label in (2.0, 1e70):
        machine.learn_one([0.1, 0.2], label)
        machine.unlearn_one(20)
        assert (machine.bag.scores.tobytes(), machine.leave_one_out_bag.scores.tobytes()) == before


def test_windows_and_scales_stand_around():
    X, y = examples(6, 40)
    window = venn.SlidingWindow(KernelRidge(venn.RBF(GAMMA), C), 15)
    for i in range(40):
        window.learn_one(X[i], y[i])
    assert np.allclose(window.scores([0.2, 0.2]), taught(X[25:], y[25:]).scores([0.2, 0.2]), rtol=0, atol=1e-8)
    scaled = KernelRidge(MultiscaleRBF(), C, scale=10)
    for i in range(40):
        scaled.learn_one(X[i] * [1e6, 1e-6], y[i])
    assert scaled.n == 30
    assert abs(scaled.scores(X[0] * [1e6, 1e-6])[0] - y[30:].mean()) < 5


@pytest.mark.parametrize("kernel", [venn.RBF(GAMMA), MultiscaleRBF(linear=0.1), venn.Linear()])
def test_sparse_rows_are_objects(kernel):
    X, y = examples(7, 20)
    dense, sparse = taught(X, y, kernel=kernel), taught([scipy.sparse.csr_array(x[None]) for x in X], y, kernel=kernel)
    x = np.array([0.0, 0.5])
    assert np.allclose(dense.scores(x), sparse.scores(scipy.sparse.csr_array(x[None])), rtol=0, atol=1e-9)


def test_constant_labels_and_equal_examples():
    machine = taught(np.zeros((3, 2)), np.full(3, 7.5))
    assert machine.scores([0.0, 0.0]) == machine.scores([3.0, 1.0]) == 7.5
    assert np.array_equal(machine.leave_one_out_bag.scores, np.full((1, 3), 7.5))
    assert np.array_equal(machine.hypotheses([1.0, 1.0]).critical_points(), np.full(3, 7.5))


BAD = [np.nan, np.inf, -np.inf, 1e101, 10**400, "3", None, True, [1.0], 1j, np.array([1.0])]


@pytest.mark.parametrize("bad", BAD, ids=[str(bad)[:12] for bad in BAD])
def test_a_bad_label_is_refused(bad):
    X, y = examples(8, 5)
    machine = taught(X, y)
    before = pickle.dumps(machine)
    for learn in (machine.learn_one, machine.check):
        with pytest.raises(ValueError, match="y must be a finite number of size at most"):
            learn(X[0], bad)
    assert pickle.dumps(machine) == before
    for good in (3, np.float32(3), np.int8(3), np.array(3.0), 3.0):
        assert Real().encode(good) == 3.0


def test_what_cannot_be_solved_is_refused():
    machine = KernelRidge(venn.Linear(), 1e12)
    machine.learn_one([0.0, 1.0], 0.0)
    machine.learn_one([1e-3, 1.0], 1.0)
    with pytest.raises(NotConverged):  # not even its leave-one-out scores could be told
        machine.learn_one([2e8, 1.0], 2.0)
    assert machine.n == 2
    with pytest.raises(TypeError, match="machine must have classes for this predictor"):
        machine.hypotheses([0.0, 0.0]).tables(True)
