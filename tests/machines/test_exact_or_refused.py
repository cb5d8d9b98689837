"""Least squares and its kin are right or refuse, however hostile the objects are: compared with rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import venn
from venn.machines import Bank, KernelRidge, NotConverged, Polynomial

CLOSE = 1e-6  # scores are compared on a grid of this width; the tolerance is a tenth of it


def sizes(rng, least, most):
    return 10.0 ** rng.integers(least, most)


def near_twins(rng, Z):
    return Z[rng.integers(0, 3, len(Z))] + sizes(rng, -15, -8) * Z


def lattice(rng, Z):
    return np.round(Z) * sizes(rng, -3, 5)


def collinear(rng, Z):
    return np.outer(Z[:, 0], Z[0]) * sizes(rng, -2, 4)


def constant(rng, Z):
    return np.column_stack([Z, np.full(len(Z), sizes(rng, 2, 10))])


def outliers(rng, Z):
    Z[rng.random(len(Z)) < 0.2] *= sizes(rng, 2, 12)
    Z[0] *= sizes(rng, 0, 12)
    return Z


def clusters(rng, Z):
    return Z + rng.integers(0, 2, size=(len(Z), 1)) * sizes(rng, 2, 10)


def jumps(rng, Z):
    return Z + np.where(np.arange(len(Z)) < len(Z) // 2, 0, sizes(rng, 2, 10))[:, None]


def large(rng, Z):
    return Z * sizes(rng, 5, 101)


def tiny(rng, Z):
    return Z * sizes(rng, -308, -100)


MADE = {
    "LeastSquaresSVM": lambda kernel, C: venn.LeastSquaresSVM(kernel, C, [0, 1]),
    "KernelRidge": KernelRidge,
    "Bank": lambda kernel, C: Bank(kernel, [0, 1], (C,)),
}
HOSTILE = (near_twins, lattice, collinear, constant, outliers, clusters, jumps, large, tiny)


def solved(M, columns):
    """Return the exact solutions of M x = column, one for each."""
    n = len(M)
    A = [row + [column[i] for column in columns] for i, row in enumerate(M)]
    for i in range(n):
        p = next(r for r in range(i, n) if A[r][i] != 0)
        A[i], A[p] = A[p], A[i]
        A[i] = [value / A[i][i] for value in A[i]]
        for r in range(n):
            if r != i and A[r][i] != 0:
                A[r] = [a - A[r][i] * b for a, b in zip(A[r], A[i], strict=True)]
    return [[row[n + k] for row in A] for k in range(len(columns))]


def truth(degree, X, targets, ridge, x):
    """Return training scores, leave-one-out scores and the score of x."""

    def kernel(a, b):
        product = sum(Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True))
        return product if degree == 1 else (product + 1) ** degree

    n = len(X)
    M = [[kernel(a, b) + ridge * (i == j) for j, b in enumerate(X)] + [Fraction(1)] for i, a in enumerate(X)]
    M.append([Fraction(1)] * n + [Fraction(0)])
    H = solved(M, [[Fraction(int(i == j)) for i in range(n + 1)] for j in range(n)])
    a = [sum(H[j][i] * targets[j] for j in range(n)) for i in range(n + 1)]
    training = [target - ridge * a[i] for i, target in enumerate(targets)]
    leave_one_out = [target - a[i] / H[i][i] if n > 1 else target for i, target in enumerate(targets)]
    return training, leave_one_out, sum(a[i] * kernel(X[i], x) for i in range(n)) + a[n]


def furthest(found, wanted):
    """Return the largest difference, relative where scores are large; NaN counts as infinite."""
    differences = [
        abs(float(Fraction(float(one)) - other)) / max(1.0, abs(float(other))) if np.isfinite(one) else np.inf
        for one, other in zip(found, wanted, strict=True)
    ]
    return max(differences, default=0.0)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("kind", MADE)
def test_what_is_learned_or_unlearned_is_right_or_refused(kind, hostile):
    learned = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        degree, C = (1, 1, 3)[seed % 3], sizes(rng, -2, 4) if hostile is not tiny else sizes(rng, 0, 300)
        kernel = venn.Linear() if degree == 1 else Polynomial(degree)
        number = kind == "KernelRidge"
        machine = MADE[kind](kernel, C)
        X, y = hostile(rng, rng.normal(size=(7, 1 + seed % 2))), rng.integers(0, 2, 7)
        held = []
        for i in range(len(X)):
            try:
                if machine.n > 2 and rng.random() < 0.3:
                    j = int(rng.integers(machine.n))
                    machine.unlearn_one(j)
                    held.pop(j)
                else:
                    machine.learn_one(X[i], float(y[i]) if number else int(y[i]))
                    held.append(i)
            except (NotConverged, ValueError):
                continue
            learned += 1
            targets = [Fraction(int(y[j]) if number else int(2 * y[j] - 1)) for j in held]
            training, leave_one_out, score = truth(degree, X[held], targets, 1 / Fraction(C), X[held[-1]])
            row = 0 if number else 1
            assert furthest(machine.bag.scores[row], training) <= CLOSE
            if machine.n > 1:
                assert furthest(machine.leave_one_out_bag.scores[row], leave_one_out) <= CLOSE
            assert furthest([np.asarray(machine.scores(X[held[-1]]))[row]], [score]) <= CLOSE
            assert machine.residual <= CLOSE
    assert learned


def test_a_column_that_is_large_and_constant_changes_no_score():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 2))
    y = (Z[:, 0] > 0).astype(int)
    for size in (1e3, 1e8, 1e15):
        X = np.column_stack([Z, np.full(30, size)])
        for make in (lambda: Bank(venn.Linear(), [0, 1]), lambda: venn.LeastSquaresSVM(venn.Linear(), 1.0, [0, 1])):
            one, other = make(), make()
            for i in range(30):
                one.hypotheses(X[i])
                one.learn_one(X[i], int(y[i]))
                other.learn_one(Z[i], int(y[i]))
                if i % 7 == 6:
                    one.unlearn_one(2)
                    other.unlearn_one(2)
            assert one.scores(X[3]) == pytest.approx(other.scores(Z[3]), abs=1e-9)
            assert one.leave_one_out_bag.scores == pytest.approx(other.leave_one_out_bag.scores, abs=1e-9)
            again = make()
            again.restore(one.state)  # with its reference
            assert np.array_equal(again.scores(X[3]), one.scores(X[3]))
            assert np.array_equal(
                again.hypotheses(X[4] + 1).leave_one_out(0), one.hypotheses(X[4] + 1).leave_one_out(0)
            )
