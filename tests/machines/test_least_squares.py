"""The least-squares machine against fits from nothing, leave-one-out by leaving one out."""

import pickle

import numpy as np
import pytest
from conftest import KERNELS, OBJECTS, halved, labels, learned, objects, same_answer
from naive import least_squares as naive

import venn
from venn._compiled.ridge import one_pass


def machine_of(kernel, C, c):
    return venn.LeastSquaresSVM(KERNELS[kernel][0], C, range(c))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 30, 33])
def test_one_pass_is_the_two_products(n):
    rng = np.random.default_rng(n)
    W = np.tril(rng.normal(size=(n, n)))
    k = rng.normal(size=n + 3)
    u = np.full(n + 3, np.nan)
    norm = one_pass(W[np.tril_indices(n)], n, k, u)
    assert np.allclose(u[:n], W.T @ (W @ k[:n]), atol=1e-12)
    assert norm == pytest.approx(((W @ k[:n]) ** 2).sum(), rel=1e-12)


@pytest.mark.parametrize(("kind", "kernel"), halved(OBJECTS, ["rbf", "rbf flat", "rbf sharp", "linear", "quadratic"]))
def test_every_hypothesis_after_every_step(kind, kernel):
    rng = np.random.default_rng([OBJECTS.index(kind), len(kernel)])
    n, c, C = 10, 3, 4.0
    X = objects(kind, rng, n)
    y = labels("late" if kind == "grid" else "noise", rng, X, c)
    machine = machine_of(kernel, C, c)
    function = KERNELS[kernel][1]
    for i in range(n):
        K = function(X[: i + 1], X[: i + 1])
        answer = machine.hypotheses(X[i])
        assert np.allclose(answer.test_scores, naive.base(K[:i, :i], K[i, :i], y[:i], c, C), atol=1e-9)
        for j in range(c):
            bag = np.append(y[:i], j)
            assert np.allclose(answer.scores(j), naive.training(K, bag, c, C), atol=1e-9)
            assert np.allclose(answer.leave_one_out(j), naive.leave_one_out(K, bag, c, C), atol=1e-8)
            a, _ = naive.fit(K, naive.targets(bag, c)[0], C)
            assert np.allclose(answer.duals(j)[:, 0], a, atol=1e-8)
        assert np.array_equal(answer.labels, y[:i])
        machine.learn_one(X[i], y[i])
        assert machine.residual < 1e-11
        assert np.allclose(machine.bag.scores.T, naive.training(K, y[: i + 1], c, C), atol=1e-9)
        assert np.allclose(machine.leave_one_out_bag.scores.T, naive.leave_one_out(K, y[: i + 1], c, C), atol=1e-8)
        assert np.array_equal(machine.bag.counts.argmax(axis=1), y[: i + 1])
        assert (machine.leave_one_out_bag.counts.sum(axis=1) == 1).all()


def test_the_deleted_score_of_the_new_object_knows_no_hypothesis():
    rng = np.random.default_rng(3)
    X, y = objects("repeats", rng, 40), rng.integers(0, 4, 40)
    machine = machine_of("rbf", 10.0, 4)
    for x, label in zip(X, y, strict=True):
        answer = machine.hypotheses(x)
        rows = {answer.leave_one_out(j)[-1].tobytes() for j in range(4)}
        assert rows == {answer.test_scores.tobytes()}
        assert np.allclose(machine.scores(x), answer.test_scores, atol=1e-12)
        machine.learn_one(x, label)


def test_scores_of_another_object_are_not_those_asked_about():
    machine = learned(machine_of("rbf", 1.0, 2), [[0.0], [1.0], [2.0]], [0, 1, 1])
    expected = machine.scores([0.25])
    machine.hypotheses([1.5])
    assert np.array_equal(machine.scores([0.25]), expected)
    assert np.array_equal(machine.hypotheses([0.25]).test_scores, expected)
    assert np.array_equal(machine_of("rbf", 1.0, 2).scores([0.25]), [0, 0])


def test_a_long_run_does_not_drift():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(600, 3)), 1)
    y = rng.integers(0, 3, 600)
    machine = learned(venn.LeastSquaresSVM(venn.RBF(0.3), 1000.0, range(3)), X, y)
    assert machine.residual < 1e-9
    K = KERNELS["rbf"][1](X, X) ** 0.6  # exp(-.5 d)^.6 = exp(-.3 d)
    assert np.allclose(machine.bag.scores.T, naive.training(K, y, 3, 1000.0), atol=1e-8)


@pytest.mark.parametrize("what", ["factor", "sums", "diagonal", "solutions"])
def test_what_has_gone_wrong_is_found_and_built_again(what):
    """Drift may touch any of the numbers kept; the old examples are checked in turn."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    machine, twin = (learned(machine_of("rbf", 5.0, 2), X, y) for _ in range(2))
    numbers = getattr(machine._system.solution, what)
    numbers[..., 5] *= 1.001
    for _ in range(40):
        x, label = rng.normal(size=2), int(rng.integers(2))
        machine.learn_one(x, label)
        twin.learn_one(x, label)
    x = [0.1, 0.2]
    for j in range(2):
        assert np.allclose(machine.hypotheses(x).leave_one_out(j), twin.hypotheses(x).leave_one_out(j), atol=1e-9)
        assert np.allclose(machine.hypotheses(x).scores(j), twin.hypotheses(x).scores(j), atol=1e-9)
    assert machine.residual < 1e-10


@pytest.mark.parametrize(
    ("kernel", "scale", "C"),
    [
        (venn.Linear(), 300.0, 1.0), (venn.Linear(), 1.0, 1e4), (venn.machines.Polynomial(2), 3.0, 1.0),
        (venn.RBF(0.5), 1.0, 1e5),
    ],
)  # fmt: skip
def test_large_products_of_kernel_and_penalty(kernel, scale, C):
    rng = np.random.default_rng(0)
    X = scale * rng.integers(-4, 5, size=(130, 3))
    y = rng.integers(0, 3, 130)
    machine = learned(venn.LeastSquaresSVM(kernel, C, range(3)), X, y)
    assert machine.n == 130
    assert machine.residual <= 1e-7


def test_a_copy_carries_no_room_to_spare():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(140, 2)), rng.integers(0, 2, 140)
    machine = learned(machine_of("rbf", 5.0, 2), X, y)
    machine.hypotheses([0.0, 0.0])
    data = pickle.dumps(machine)
    assert (
        len(data) < 8 * (140 * 141 / 2 + 140 * (2 + 1 + 1 + 1 + 2 + 2) + 140 * (1 + 1 + 2)) + 4000
    )  # the last: a way back
    twin = pickle.loads(data)
    assert same_answer(twin.hypotheses([0.3, 0.1]), machine.hypotheses([0.3, 0.1]))


def test_what_cannot_be_solved_is_refused_and_not_learned():
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 1e18, ["a", "b"])
    machine.learn_one([0.0], "a")
    with pytest.raises(venn.machines.NotConverged, match="C times its weight = 1e"):
        machine.learn_one([0.0], "b")
    assert machine.n == 1

    class Negative:
        def row(self, columns, n, x, out):
            out[:n] = -10.0

    with pytest.raises(venn.machines.NotConverged, match="positive semidefinite"):
        venn.LeastSquaresSVM(Negative(), 1.0, ["a", "b"]).learn_one([0.0], "a")
