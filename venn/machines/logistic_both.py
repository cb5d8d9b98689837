"""Two problems of a logistic machine over the same objects, solved side by side from a start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from venn._compiled import logistic as compiled
from venn._compiled import packed
from venn.machines.logistic_batch import LogisticProblem, newton
from venn.machines.logistic_inverse import constant_score
from venn.machines.machine import NotConverged
from venn.prediction import Floats

TOLERANCE = 1e-9  # largest error of a probability
AGAIN = 1e-11  # above it another round starts from scores computed afresh
CLOSE = 1e-9  # below it, a step without gain ends the search


class Scratch(NamedTuple):
    """Room for intermediate values."""

    work: Floats  #: (26, >= m)
    columns: Floats  #: (2, FOLDED, >= m)


def error(beta: Floats, score: Floats, positive: Floats, total: Floats, C: float, worth: float) -> float:
    """Return the largest error of a probability, or of the coefficients' sum in units of C times `worth`.

    It is NaN where the search has ended in NaN: comparing alone would overlook that.
    """
    r, W = np.empty((2, beta.size))
    worst: float = compiled.errors(beta, score, positive, total, C, beta.size, r, W)
    of_sum = float(abs(beta.sum())) / (C * worth)
    return worst if of_sum <= worst else of_sum


def worths(positive: Floats, mass: Floats, n: int) -> Floats:
    """Return (2,) the mean mass of an example, or the total mass of one sign where that is less.

    `mass` (2,) is that of n examples, `positive` (2, m) that of the examples of the class, by object. An error of the
    coefficients' sum moves the bias; this matters more where the examples of a sign have little weight.
    """
    of_class = positive.sum(axis=1)
    return np.minimum(mass / n, np.minimum(of_class, mass - of_class))


@dataclass
class Both:
    """The problems, their starts, and, once solved, their solutions."""

    C: float
    n: int  #: examples
    positive: Floats  #: (2, m) masses of the examples of the class
    total: Floats  #: (2, m) masses
    todo: Any  #: (2,) bool, whether there is such a problem
    beta: Floats  #: (2, m)
    score: Floats  #: (2, m) each minus the kernel times beta is constant
    bias: Floats  #: (2,)

    @classmethod
    def starting(cls, C: float, n: int, masses: Floats, total: Floats, beta: Floats, score: Floats) -> Both:
        """Return two equal problems about n examples, with this start; none is marked as one to solve."""
        two = np.repeat(np.stack([masses, total, beta, score])[:, None], 2, axis=1)
        return cls(C, n, two[0], two[1], np.zeros(2, bool), two[2], two[3], np.zeros(2))

    def make_constant(self, s: int, scale: float) -> None:
        """Set the solution of a side with nothing to solve, because its examples all have one sign."""
        positive = self.positive[s].sum()
        self.beta[s] = 0.0
        self.score[s] = self.bias[s] = constant_score(positive, self.total[s].sum() - positive, self.C * scale)

    def solve(self, kernel: Floats, scale: float, bordered: compiled.Bordered, V: Floats, room: Scratch) -> None:
        """Solve the problems marked in `todo`.

        `kernel` is packed, `scale` its largest K(x, x), `bordered` the inverse for the rounded weights V.
        """
        count = self.total.shape[1]
        mass = self.total.sum(axis=1)
        mean = float(mass.max()) / self.n
        worth = worths(self.positive, mass, self.n)
        if not (worth[self.todo] > 0).all():
            raise NotConverged(
                "weights of examples of a class and of all others must be of comparable sums, got one that rounding "
                "loses in the other"
            )
        # The less the examples of a sign weigh, the more scores depend on probabilities: errors must be smaller.
        share = float((worth[self.todo] / mean).min())
        todo = self.todo.copy()
        for _ in range(4):
            finest = share * compiled.FINEST / max(1.0, 0.1 * self.C * mean * scale)  # a score moves by up to C K of it
            largest = min(float(np.abs(self.beta).sum(axis=1).max()), self.C * mean * self.n)
            finest = min(max(finest, 1e-16 * scale * largest), 0.01 * TOLERANCE)  # rounding of the sums K beta
            close = min(max(share * CLOSE, 1e3 * finest), CLOSE)
            compiled.descend_both(
                bordered, V, self.positive, self.total, worth, self.C, count, todo, finest, close, self.beta,
                self.score, *room,
            )  # fmt: skip
            worst = self._certify(kernel, todo, worth)
            todo &= ~(worst <= max(share * AGAIN, 4 * finest))
            if not todo.any():
                return
        for failed in np.flatnonzero(~(worst <= max(share * AGAIN, 20 * finest))).tolist():
            self._solve_afresh(kernel, failed)

    def _certify(self, kernel: Floats, todo: Any, worth: Floats) -> Floats:
        """Compute the scores afresh; return the largest errors."""
        count = self.total.shape[1]
        outputs = np.empty((2, count))
        packed.multiply(kernel, count, self.beta, outputs)
        worst = np.zeros(2)
        for s in np.flatnonzero(todo).tolist():
            self.bias[s] = float((self.score[s] - outputs[s]).mean())
            self.score[s] = outputs[s] + self.bias[s]
            worst[s] = error(self.beta[s], self.score[s], self.positive[s], self.total[s], self.C, float(worth[s]))
        return worst

    def _solve_afresh(self, kernel: Floats, s: int) -> None:
        """Solve one problem from scratch."""
        full = packed.unpack(kernel, self.total.shape[1])
        fit = newton(LogisticProblem(full, self.positive[s], self.total[s], self.C))
        self.beta[s], self.score[s], self.bias[s] = fit.beta, fit.score, fit.bias
