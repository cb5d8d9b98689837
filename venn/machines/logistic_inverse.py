"""The inverse that a logistic machine keeps: how a changing bag updates it, and the deleted scores it gives.

It is G = (K + 1 / V)^-1 with rounded weights V, packed: see `venn._compiled.logistic` and `packed`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri
from scipy.special import expit

from venn._compiled.logistic import GRAIN, levels, move_last
from venn._compiled.packed import add_products, append, columns_of, multiply, pack, unpack
from venn.machines.machine import NotConverged
from venn.prediction import Floats, Integers


def rounded_weights(C: float, total: Floats | float, levels: Integers) -> Floats:
    """Return the rounded weights, C n p (1 - p), of objects of mass n and the given levels."""
    return 0.25 * C * total * 2.0 ** (levels / GRAIN)


def levels_of(score: Floats) -> Integers:
    """Return the levels of scores: see `venn._compiled.logistic.level`."""
    found = np.empty(score.size, np.int64)
    levels(score, score.size, found)
    return found


def constant_score(positive: Any, negative: Any, bend: float) -> Any:
    """Return the score for every object when all examples have one sign: the bias would be infinite.

    It is ln((positive + e) / (negative + e)) with e = 1/2 / (1 + bend), from the masses of the examples of both signs,
    one of which is 0; it is 0 without examples. `bend` is C times the largest K(x, x): how far the own coefficient of
    an example of mass 1 can move its score.

    Without the bend it is the add-half estimate of the class's share. For a bend near 0 that is low enough: after the
    first example of the class among n others, scores are about ln(1 / n), so the class looks likelier than before. But
    an example that its own coefficient explains needs no bias. Far away from it scores are then about ln(1 / (bend n)),
    and the add-half estimate would be above: a class would look likelier before it came once.

    References
    ----------
    Krichevsky & Trofimov (1981), "The performance of universal encoding", for the estimate.
    """
    some = 0.5 / (1.0 + min(bend, 1e300))
    return np.log(positive + some) - np.log(negative + some)


def dense_inverse(kernel: Floats, V: Floats) -> Floats:
    """Return (K + 1 / V)^-1 of the first objects of a packed kernel matrix."""
    m = V.size
    root = np.sqrt(V)
    B = unpack(kernel, m) * np.outer(root, root)
    B[np.diag_indices(m)] += 1.0
    try:
        lower, _ = dpotri(cholesky(B, lower=True, check_finite=False), lower=1)
    except np.linalg.LinAlgError as error:
        raise NotConverged(f"kernel must be positive semidefinite, got values that are not: {error}") from error
    return np.outer(root, root) * (np.tril(lower) + np.tril(lower, -1).T)


def without(values: Floats, p: int) -> Floats:
    """Return values (..., m) without the p-th, whose place the last one takes."""
    rest: Floats = values[..., :-1].copy()
    if p < rest.shape[-1]:
        rest[..., p] = values[..., -1]
    return rest


class Change(NamedTuple):
    """How an inverse changes: to G - left' right with a row for a new object, or made anew (`full`)."""

    levels: Integers  # of the weights
    weights: Floats
    sums: Floats  # of the new inverse's rows
    diagonal: Floats  # of the new inverse
    left: Floats = np.empty((0, 0))
    right: Floats = np.empty((0, 0))  # the last row belongs to the new object, if there is one
    pivot: float = 1.0
    full: Floats | None = None

    def apply(self, G: Floats, m: int) -> None:
        """Change the packed inverse of m objects."""
        count = len(self.sums)
        if self.full is not None:
            pack(self.full, count, G)
            return
        add_products(G, m, self.left, self.right, len(self.left))
        if count > m:
            append(G, m, self.right[-1], self.pivot)


def made_anew(kernel: Floats, levels: Integers, weights: Floats) -> Change:
    """Return the change to the inverse for these weights, whatever the inverse was before."""
    full = dense_inverse(kernel, weights)
    # Copied, since loops would be compiled once more for a view that nobody may write to.
    return Change(levels, weights, full.sum(axis=1), full.diagonal().copy(), full=full)


class Standing(NamedTuple):
    """The current inverse."""

    kernel: Floats  # packed
    G: Floats  # packed
    diagonal: Floats  # (m,)
    sums: Floats  # (m,)
    weights: Floats  # (m,)

    def drift(self, probe: int) -> float:
        """Return the largest error of the kept sums and of column `probe` as solutions of their equations."""
        m = len(self.sums)
        checked, out = np.empty((2, m)), np.empty((2, m))
        checked[0] = self.sums
        columns_of(self.G, m, np.array([probe]), checked[1:])
        multiply(self.kernel, m, checked, out)
        out += checked / self.weights
        out[0] -= 1.0
        out[1, probe] -= 1.0
        return float(np.abs(out).max())

    def without(self, p: int, kernel: Floats) -> Standing:
        """Return the inverse without object p, whose place the last one takes; `kernel` is that of the others."""
        m = len(self.sums)
        column, G = np.empty((1, m)), self.G[: m * (m + 1) // 2].copy()
        columns_of(G, m, np.array([p]), column)
        share = column / column[0, p]
        add_products(G, m, share, column, 1)
        move_last(G, m, p)
        diagonal, sums = self.diagonal - share[0] * column[0], self.sums - share[0] * self.sums[p]
        return Standing(kernel, G[: (m - 1) * m // 2], without(diagonal, p), without(sums, p), without(self.weights, p))

    def changed(self, levels: Integers, weights: Floats, joined: Floats, row: Floats | None) -> Change:
        """Return the change of the inverse for other weights, one more if an object joins; few ranks, or made anew.

        `row` is the kernel of that object with all and itself, or None if no object joins; `joined` is G times `row`
        without its last entry.
        """
        m = len(self.sums)
        chosen = np.flatnonzero(weights[:m] != self.weights)
        r, more = chosen.size, int(row is not None)
        if m < 8 or 2 * r > m:
            return made_anew(self.kernel, levels, weights)
        diagonal, sums = np.append(self.diagonal, np.zeros(more)), np.append(self.sums, np.zeros(more))
        left, right = np.empty((2, r + more, m))
        pivot = 1.0
        if r:
            columns_of(self.G, m, chosen, left)
            core = left[:r, chosen].copy()
            core[np.diag_indices(r)] += 1.0 / (1.0 / weights[chosen] - 1.0 / self.weights[chosen])
            right[:r] = np.linalg.solve(core, left[:r])
            diagonal[:m] -= np.einsum("ai,ai->i", left[:r], right[:r])
            sums[:m] -= self.sums[chosen] @ right[:r]
        if row is not None:
            joined = joined - joined[chosen] @ right[:r]
            pivot = float(row[m] + 1.0 / weights[m] - row[:m] @ joined)
            gain = (1.0 - joined.sum()) / pivot
            left[r], right[r] = -joined / pivot, joined
            diagonal[:m] += joined**2 / pivot
            diagonal[m] = 1.0 / pivot
            sums[:m] -= joined * gain
            sums[m] = gain
        return Change(levels, weights, sums, diagonal, left, right, pivot)


class Deletion(NamedTuple):
    """One machine over distinct objects, from which examples are removed."""

    score: Floats  # (m,)
    total: Floats  # (m,) masses of the examples
    size: int  # examples of the class
    n: int
    weight: Floats  # (m,) rounded, of mass 1
    diagonal: Floats  # (m,) of the inverse
    sums: Floats  # (m,)
    scale: float  # largest K(x, x)

    def deleted(self, C: float, objects: Integers, positive: Any, mass: Floats) -> Floats:
        """Return scores of examples, given by object, whether of the class, and mass, by the machine without each."""
        score = self.score[objects]
        if self.size in (0, self.n):
            return score
        # Where the others hardly determine the bias the difference is rounding: the floor bounds the move.
        H = np.maximum(self.diagonal - self.sums**2 / self.sums.sum(), 1e-6 * self.diagonal)
        V = self.total * self.weight
        # Precision of f_i from other objects, one over its variance; a mass lost in rounding adds none.
        hold = np.divide(H * V, np.maximum(V - H, 1e-15 * V), out=np.zeros_like(V), where=V > 0)
        others = np.maximum(self.total[objects] - mass, 0.0) * self.weight[objects]  # examples at the same one
        pull = C * mass * np.where(positive, expit(-score), -expit(score))
        held = hold[objects] + others
        found: Floats = score - np.divide(pull, held, out=np.zeros_like(pull), where=held > 0)
        # Without the only example of its sign the others all have one sign.
        rest = np.maximum(self.total.sum() - mass, 0.0)
        if self.size == 1:
            found[positive] = constant_score(0.0, rest[positive], C * self.scale)
        if self.size == self.n - 1:
            found[~positive] = constant_score(rest[~positive], 0.0, C * self.scale)
        return found
