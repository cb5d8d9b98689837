"""The inverse that a logistic machine keeps, as a bag changes it; and what it says of a bag without an example.

It is G = (K + 1 / V)^-1 with rounded weights V, packed: see `venn._compiled.logistic` and `packed`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri
from scipy.special import expit

from venn._compiled.packed import columns_of, unpack
from venn.prediction import Floats, Integers


def dense_inverse(kernel: Floats, V: Floats, m: int) -> Floats:
    """Return (K + 1 / V)^-1 of the first m objects of a packed kernel matrix; raises LinAlgError."""
    root = np.sqrt(V)
    B = unpack(kernel, m) * np.outer(root, root)
    B[np.diag_indices(m)] += 1.0
    lower, _ = dpotri(cholesky(B, lower=True, check_finite=False), lower=1)
    full: Floats = np.outer(root, root) * (np.tril(lower) + np.tril(lower, -1).T)
    return full


class Change(NamedTuple):
    """How an inverse changes: to G - left' right, and the row of a new object; or it is made anew, `full`."""

    levels: Integers  # of the weights
    weights: Floats
    sums: Floats  # of the new inverse's rows
    diagonal: Floats  # of the new inverse
    left: Floats = np.empty((0, 0))
    right: Floats = np.empty((0, 0))  # the last row belongs to the new object, if there is one
    pivot: float = 1.0
    full: Floats | None = None


class Standing(NamedTuple):
    """The inverse as it stands."""

    G: Floats  # packed
    diagonal: Floats  # (m,)
    sums: Floats  # (m,)
    weights: Floats  # (m,)

    def changed(
        self, levels: Integers, weights: Floats, chosen: Integers, joined: Floats, row: Floats | None
    ) -> Change:
        """Return how it changes when the weights of the `chosen` do and an object joins.

        `row` is the kernel of that object with all and itself, `joined` G times it, without the last entry; a row
        of None says that no object joins.
        """
        m, r = len(self.sums), chosen.size
        more = int(row is not None)
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
            joined = joined - joined[chosen] @ right[:r]
        if row is not None:
            pivot = float(row[m] + 1.0 / weights[m] - row[:m] @ joined)
            gain = (1.0 - joined.sum()) / pivot
            left[r], right[r] = -joined / pivot, joined
            diagonal[:m] += joined**2 / pivot
            diagonal[m] = 1.0 / pivot
            sums[:m] -= joined * gain
            sums[m] = gain
        return Change(levels, weights, sums, diagonal, left, right, pivot)


class Deletion(NamedTuple):
    """One machine over distinct objects, from which examples are taken away."""

    score: Floats  # (m,)
    total: Integers  # (m,) examples
    size: int  # examples of the class
    n: int
    weight: Floats  # (m,) rounded, of one example
    diagonal: Floats  # (m,) of the inverse
    sums: Floats  # (m,)

    def deleted(self, C: float, objects: Integers, positive: Any) -> Floats:
        """Return the scores of examples, given by object and whether of the class, by the machine without them."""
        score = self.score[objects]
        if self.size in (0, self.n):
            return score
        # Where the others hold the bias by next to nothing the difference is rounding: the floor bounds the move.
        H = np.maximum(self.diagonal - self.sums**2 / self.sums.sum(), 1e-6 * self.diagonal)
        V = self.total * self.weight
        hold = H * V / np.maximum(V - H, 1e-15 * V)  # what the others hold f_i with: one over its variance
        hold += (self.total - 1) * self.weight
        pull = C * np.where(positive, expit(-score), -expit(score))
        found: Floats = score - pull / hold[objects]
        if self.size == 1:
            found[positive] = -1.0
        if self.size == self.n - 1:
            found[~positive] = 1.0
        return found
