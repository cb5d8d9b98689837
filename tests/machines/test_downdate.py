"""Unlearning in the least-squares machine: what is left is what was never learned with the others."""

import numpy as np
import pytest
from conftest import KERNELS, OBJECTS, halved, labels, learned, objects, same_answer
from naive import least_squares as naive

import venn
from venn._compiled.ridge import remove, rotate_in, rotate_out
from venn.online import checkpoint

LOWER = np.tril_indices


def positive_definite(rng, n):
    A = rng.normal(size=(n, n + 2))
    return A @ A.T + 0.1 * np.eye(n)


def unpacked(W, n):
    full = np.zeros((n, n))
    full[LOWER(n)] = W[: n * (n + 1) // 2]
    return full


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_rotating_a_row_out_and_in_again(n):
    rng = np.random.default_rng(n)
    M = positive_definite(rng, n)
    T = np.where(rng.integers(0, 2, (2, n)) == 1, 1.0, -1.0)
    for i in range(n):
        W = np.linalg.inv(np.linalg.cholesky(M))[LOWER(n)]
        before = W.copy()
        inverse, rest = np.linalg.inv(M), np.arange(n) != i
        carry, cosines, sines = np.full((3, n), np.nan)
        rotate_out(W, n, i, carry, cosines, sines)
        factor, expected = unpacked(W, n - 1), np.linalg.inv(M[np.ix_(rest, rest)])
        assert np.allclose(factor.T @ factor, expected, atol=1e-9)
        assert (np.diag(factor) > 0).all()
        sums, diagonal, solutions = inverse.sum(axis=0), np.diag(inverse).copy(), T @ inverse
        bases = np.full(2, np.nan)
        total, _ = remove(n, i, carry, sums, diagonal, solutions, bases)
        assert np.allclose(sums[: n - 1], expected.sum(axis=0), atol=1e-8)
        assert np.allclose(diagonal[: n - 1], np.diag(expected), atol=1e-8)
        assert np.allclose(solutions[:, : n - 1], T[:, rest] @ expected, atol=1e-8)
        assert np.allclose(bases, (T[:, rest] @ expected).sum(axis=1), atol=1e-8)
        assert total == pytest.approx(expected.sum(), abs=1e-8)
        rotate_in(W, n, i, carry, cosines, sines)
        assert np.allclose(W, before, atol=1e-12)


@pytest.mark.parametrize(("kind", "kernel"), halved(OBJECTS, ["rbf", "rbf sharp", "linear", "quadratic"]))
def test_any_sequence_of_learning_and_unlearning(kind, kernel):
    rng = np.random.default_rng([OBJECTS.index(kind), len(kernel), 5])
    c, C = 3, 4.0
    X = objects(kind, rng, 30)
    y = labels("noise", rng, X, c)
    machine = venn.LeastSquaresSVM(KERNELS[kernel][0], C, range(c))
    function = KERNELS[kernel][1]
    held: list[int] = []
    for step in range(30):
        if held and rng.random() < (0.2 if step < 15 else 0.7):
            place = int(rng.integers(len(held)))
            machine.unlearn_one(place)
            held.pop(place)
        else:
            machine.learn_one(X[step], y[step])
            held.append(step)
        K, own = function(X[held], X[held]), y[held]
        assert machine.n == len(held)
        assert machine.residual < 1e-10
        if held:
            assert np.allclose(machine.bag.scores.T, naive.training(K, own, c, C), atol=1e-9)
            assert np.allclose(machine.leave_one_out_bag.scores.T, naive.leave_one_out(K, own, c, C), atol=1e-8)
        answer = machine.hypotheses(X[step])
        assert np.array_equal(answer.labels, own)
        cross = function(X[step : step + 1], X[held])[0] if held else np.zeros(0)
        assert np.allclose(answer.test_scores, naive.base(K, cross, own, c, C), atol=1e-9)
        supposed = step % c
        bag, more = np.append(own, supposed), [*held, step]
        expected = naive.leave_one_out(function(X[more], X[more]), bag, c, C)
        assert np.allclose(answer.leave_one_out(supposed), expected, atol=1e-8)


@pytest.mark.parametrize(("C", "decimals"), [(1.0, 0), (100.0, 1)])
def test_a_window_that_slides_for_long_does_not_drift(C, decimals):
    """Rounded to few decimals there are many equal objects, some of them of different classes."""
    rng = np.random.default_rng(decimals)
    size, steps, c = 30, 4000, 3
    X = np.round(rng.normal(size=(steps, 2)), decimals)
    y = labels("signal", rng, X, c)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C, range(c))
    function = KERNELS["rbf"][1]
    worst = 0.0
    for step in range(steps):
        machine.learn_one(X[step], y[step])
        if step < size:
            continue
        machine.unlearn_one()
        if step % 40 == 0:
            bag = slice(step + 1 - size, step + 1)
            K = function(X[bag], X[bag])
            worst = max(worst, np.abs(machine.bag.scores.T - naive.training(K, y[bag], c, C)).max(), machine.residual)
    assert worst < 1e-8
    bag = slice(steps - size, steps)
    K = function(X[bag], X[bag])
    assert np.abs(machine.leave_one_out_bag.scores.T - naive.leave_one_out(K, y[bag], c, C)).max() < 1e-8


def test_examples_and_classes_of_different_weight():
    rng = np.random.default_rng(8)
    c, C, by_class = 3, 2.0, np.array([1.0, 0.25, 4.0])
    X = objects("few", rng, 60)
    y = labels("noise", rng, X, c)
    weights = rng.choice([0.5, 1.0, 3.0], 60)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C, range(c), by_class)
    held: list[int] = []
    for step in range(60):
        machine.learn_one(X[step], y[step], weights[step])
        held.append(step)
        if len(held) > 12:
            place = (0, 12, 5)[step % 3]
            machine.unlearn_one(place)
            held.pop(place)
        K, own = KERNELS["rbf"][1](X[held], X[held]), y[held]
        each = C * weights[held] * by_class[own]
        assert np.allclose(machine.bag.scores.T, naive.training(K, own, c, each), atol=1e-9)
        assert machine.residual < 1e-10


def everything(machine):
    n, system = machine.n, machine._system
    return (
        n, machine._columns[:, :n].tobytes(), machine._examples.codes[:n].tobytes(), system.ridge[:n].tobytes(),
        system.targets[:, :n].tobytes(), system.solution.factor[: n * (n + 1) // 2].tobytes(),
        *(np.asarray(values).tobytes() for values in system.solution.kept(n)), machine._features, system.probe,
        machine.bag.scores.tobytes(), machine.leave_one_out_bag.scores.tobytes(),
    )  # fmt: skip


def test_learning_and_unlearning_at_once_changes_no_bit():
    rng = np.random.default_rng(1)
    X, y = objects("repeats", rng, 30), rng.integers(0, 2, 30)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, range(2))
    for step in range(30):
        before = everything(machine)
        machine.learn_one(X[step], y[step], 2.0)
        machine.hypotheses(X[0])  # asking leaves no trace
        machine.unlearn_one(machine.n - 1)
        assert everything(machine) == before
        machine.learn_one(X[step], y[step])
        if step % 5 == 4:
            machine.unlearn_one(step % machine.n)


def test_the_last_of_several_can_be_dropped_after_another():
    rng = np.random.default_rng(2)
    X, y = objects("normal", rng, 20), rng.integers(0, 2, 20)
    machine = learned(venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, range(2)), X, y)
    for left in range(19, -1, -1):
        machine.unlearn_one(left)
        other = learned(machine.fresh(), X[:left], y[:left])
        own, others = (one._system.solution.factor[: left * (left + 1) // 2] for one in (machine, other))
        assert np.array_equal(own, others)
        assert np.allclose(machine.bag.scores, other.bag.scores, atol=1e-12)
        assert machine.residual < 1e-12


def test_unlearned_to_nothing_it_starts_again():
    rng = np.random.default_rng(3)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, range(3))
    for features in (2, 5, 1):
        X, y = rng.normal(size=(70, features)), rng.integers(0, 3, 70)
        learned(machine, X, y)
        twin = learned(machine.fresh(), X, y)
        assert same_answer(machine.hypotheses(X[0]), twin.hypotheses(X[0]))
        while machine.n:
            machine.unlearn_one(int(rng.integers(machine.n)))
        assert np.array_equal(machine.scores(np.zeros(9)), np.zeros(3))
        assert machine.residual == 0
        assert machine.bag.scores.shape == machine.leave_one_out_bag.scores.shape == (3, 0)
        assert machine.hypotheses(np.zeros(4)).leave_one_out(0).shape == (1, 3)


@pytest.mark.parametrize(
    ("i", "error", "found"),
    [
        (-1, ValueError, "got -1"), (3, ValueError, "got 3"), (np.int64(7), ValueError, "got "),
        (1.0, TypeError, "got 1.0"), (True, TypeError, "got True"), ("0", TypeError, "got '0'"),
        (None, TypeError, "got None"),
    ],
)  # fmt: skip
def test_a_place_where_nothing_is(i, error, found):
    machine = learned(venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, ["a", "b"]), [[0.0], [1.0], [2.0]], "aba")
    answer = machine.hypotheses([0.5])
    before = everything(machine)
    with pytest.raises(error, match=f"i must be an integer from 0 to n - 1, of n = 3 examples, {found}"):
        machine.unlearn_one(i)
    assert everything(machine) == before
    assert answer.leave_one_out(0).shape == (4, 2)  # still of use
    with pytest.raises(ValueError, match="of n = 0 examples, got 0"):
        machine.fresh().unlearn_one()


class Changing:
    """A radial basis that can be turned upside down."""

    sign = 1.0

    def row(self, columns, n, x, out):
        out[:n] = self.sign * np.exp(-0.5 * ((columns[:, :n] - x[:, None]) ** 2).sum(axis=0))


@pytest.mark.parametrize("place", [0, 4, 9])
def test_what_cannot_be_certified_changes_nothing(place):
    rng = np.random.default_rng(6)
    X, y = objects("repeats", rng, 10), rng.integers(0, 2, 10)
    kernel = Changing()
    machine = learned(venn.LeastSquaresSVM(kernel, 10.0, range(2)), X, y)
    machine._system.before = None  # else the last would be dropped without a check
    factor, scores, leave_one_out = (
        machine._system.solution.factor.copy(), machine.bag.scores, machine.leave_one_out_bag.scores,
    )  # fmt: skip
    kernel.sign = -1.0
    with pytest.raises(venn.machines.NotConverged, match="kernel must be positive semidefinite"):
        machine.unlearn_one(place)
    kernel.sign = 1.0
    assert machine.n == 10
    assert np.array_equal(machine.hypotheses(X[0]).labels, y)
    assert np.allclose(machine._system.solution.factor[:55], factor[:55], atol=1e-12)
    assert np.array_equal(machine.bag.scores, scores)
    assert np.array_equal(machine.leave_one_out_bag.scores, leave_one_out)
    assert machine.residual < 1e-12
    machine.unlearn_one(place)
    rest = np.arange(10) != place
    assert np.allclose(machine.bag.scores, learned(machine.fresh(), X[rest], y[rest]).bag.scores, atol=1e-10)


def test_what_has_drifted_is_computed_afresh():
    rng = np.random.default_rng(7)
    X, y = objects("normal", rng, 12), rng.integers(0, 2, 12)
    machine = learned(venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, range(2)), X, y)
    machine._system.solution.solutions[:, :12] += 1e-3 * rng.normal(size=(2, 12))
    assert machine.residual > 1e-5
    machine.unlearn_one()
    assert machine.residual < 1e-12
    assert np.allclose(machine.bag.scores, learned(machine.fresh(), X[1:], y[1:]).bag.scores, atol=1e-12)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_factor_that_comes_again_to_the_bit_is_in_no_file(scaled):
    """It is left out as long as examples were only learned; what has forgotten one keeps it, and all goes on."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(4, size=(60, 3)).astype(float), ["no", "yes"] * 30
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 10, ("no", "yes"), scale=venn.Scale(10) if scaled else False)
    for x, label in zip(X[:50], y, strict=False):
        machine.learn_one(x, label)
    n = machine._system.n
    whole = machine._system.solution.factor[: n * (n + 1) // 2].copy()
    assert machine._system.state["factor"].size < whole.size / 5
    again = checkpoint.unpack(checkpoint.pack(machine))
    assert again._system.solution.factor[: whole.size].tobytes() == whole.tobytes()
    window = venn.SlidingWindow(machine, 50)
    for x, label in zip(X[50:], y, strict=False):
        window.learn_one(x, label)
    again = checkpoint.unpack(checkpoint.pack(window))
    assert checkpoint.pack(again) == checkpoint.pack(window)
