"""Hinge machines on streams that no shuffle has touched: one class for long and then another, and labels at random.

Where one class stands alone, or labels follow no line, a margin's members nearly depend on one another: paths fail, and
batch solves answer. None may be refused, and their work has a bound.
"""

import numpy as np
import pytest
from naive import svm
from test_certified import violation

import venn
from venn.machines import batch_solve, block_pivoting

KERNELS = {
    "smooth": (venn.RBF(0.1), svm.rbf(0.1)), "sharp": (venn.RBF(1.0), svm.rbf(1.0)),
    "flat": (venn.RBF(1e-3), svm.rbf(1e-3)), "linear": (venn.Linear(), svm.linear()),
    "cubic": (venn.machines.Polynomial(3, 0.5, 1.0), svm.polynomial(3, 0.5, 1.0)),
}  # fmt: skip
ORDERS = ("one class, then the other", "sorted", "blocks", "random")
CASES = [
    *((kernel, C, order) for kernel in ("smooth", "linear") for C in (1.0, 1000.0) for order in ORDERS),
    ("smooth", 10.0, ORDERS[0]), ("sharp", 10.0, ORDERS[0]), ("flat", 10.0, "sorted"), ("cubic", 1.0, ORDERS[0]),
]  # fmt: skip


def labels(order, n, classes, rng):
    y = rng.integers(0, classes, n)
    if order == "sorted":
        return np.sort(y)
    if order == "blocks":
        return np.arange(n) // 12 % classes
    return np.where(np.arange(n) < n - 15, 0, 1 + y % (classes - 1)) if order == ORDERS[0] else y


@pytest.fixture
def counted(monkeypatch):
    """Counts of the interior points in one step, and of solves that took all objects."""
    calls = {"points": 0, "all": 0}
    point, solve = batch_solve.interior, batch_solve.batch_solve

    def counting(*given):
        calls["points"] += 1
        return point(*given)

    def solving(*given):
        calls["all"] += 1
        return solve(*given)

    monkeypatch.setattr(batch_solve, "interior", counting)
    monkeypatch.setattr(batch_solve, "batch_solve", solving)
    return calls


@pytest.mark.parametrize(("kernel", "C", "order"), CASES)
def test_no_order_of_labels_is_refused(kernel, C, order):
    rng = np.random.default_rng(len(kernel) + int(C) + len(order))
    classes, n = 3 if order != "random" else 2, 60
    ours, definition = KERNELS[kernel]
    X, y = rng.normal(size=(n, 2)), labels(order, n, classes, rng)
    machine = venn.OneVsAllSVM(ours, C=C, classes=range(classes), scale=False)
    for x, label in zip(X, y.tolist(), strict=True):
        machine.learn_one(x, label)
    assert machine.residual <= machine.tolerance
    if kernel != "cubic":
        assert violation(machine, X, y) <= machine.tolerance
    try:
        expected = svm.one_vs_all(definition(X, X), y, classes, C)
    except ArithmeticError:
        return  # the certificate above stands alone
    mine = np.array([machine.scores(x) for x in X])
    free = np.array([(np.abs(machine.duals[:, k]) % C > 1e-6 * C).any() for k in range(mine.shape[1])])
    assert np.abs(mine - expected)[:, free].max(initial=0.0) <= 1e-5


def test_members_that_a_kernel_hardly_tells_apart_are_learned():
    """One was refused: interior points went astray in rounding."""
    rng = np.random.default_rng(24)
    X, y = rng.normal(size=(132, 1)), [0] * 112 + [1, 2] * 10
    machine = venn.OneVsAllSVM(venn.RBF(1.0), C=10.0, classes=range(3), scale=False)
    for x, label in zip(X, y, strict=True):
        machine.learn_one(x, label)
    assert violation(machine, X, np.array(y)) <= machine.tolerance


@pytest.mark.parametrize(("kernel", "C"), [("smooth", 10.0), ("linear", 1000.0)])
def test_a_batch_solve_takes_few_objects_and_has_a_bound(kernel, C, counted):
    """Each such step solved for all objects: with 700 of one class and then the other, .3 to 2.8 s."""
    rng = np.random.default_rng(0)
    n = {"smooth": 414, "linear": 300}[kernel]
    X = rng.normal(size=(n, 2))
    y = [0] * 400 + [1] * 14 if kernel == "smooth" else rng.integers(0, 2, n).tolist()
    machine = venn.OneVsAllSVM(KERNELS[kernel][0], C=C, classes=[0, 1], scale=False)
    most, steps = 0, 0
    for x, label in zip(X, y, strict=True):
        counted["points"] = 0
        machine.learn_one(x, label)
        most, steps = max(most, counted["points"]), steps + (counted["points"] > 0)
    assert steps > 0
    assert most <= 24  # of two branches, each at most some rounds of growth by a quarter
    assert counted["all"] <= 1
    assert machine.residual <= machine.tolerance


def test_some_objects_solve_for_all():
    """A machine is solved by those near its levels, and the first guess is a bad one: the answer is that of all."""
    rng = np.random.default_rng(4)
    n = 180
    X, positive = rng.normal(size=(n, 2)), (rng.random(n) < 0.4).astype(float)
    kernel = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    problem = block_pivoting.Problem(kernel, positive, np.ones(n), 2.0, 1.0, 1e-8)
    start = block_pivoting.Solution(np.zeros(n), rng.normal(size=n), np.zeros(n, np.int8), np.inf)
    found = batch_solve.solved_near(problem, start)
    assert found.violation <= 1e-9
    expected = svm.scores(kernel, 2 * positive - 1, 2.0)
    assert np.abs(found.score - expected).max() <= 1e-8
