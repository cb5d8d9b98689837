"""One-against-all support vector machines, kept exact online."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn.machines.hinge import HingeMachine
from venn.machines.hinge_hypotheses import HingeHypotheses, Question
from venn.prediction import Floats, Integers
from venn.saved import saved


def mirrored(values: Floats) -> Floats:
    """Return (2, m) values by class from those (1, m) of the first class's machine."""
    return np.concatenate([values, -values])


@saved
class OneVsAllSVM(HingeMachine):
    """Exact incremental one-against-all support vector machines.

    Machine k minimises 1/2 |w|^2 + C sum_i max(0, 1 - t_i f_k(x_i)), t_i = +1 for class k and -1 for
    the others, with f_k(x) = <w, phi(x)> + b. Each step solves, for every machine, the two problems
    with the new object as positive and as negative; the branch of the revealed label is kept.

    With two classes the second machine is the first with all signs reversed: it is not solved again.

    Where the optimum leaves a choice, it is fixed by content, never by order: one class present gives
    f = +1 or -1 everywhere, an absent class f = -1, and without a free support vector the bias is the
    midpoint of its interval. Free support vectors have a score of exactly +1 or -1.

    Memory: M and S are powers of two, the next above the number of objects and above the largest margin plus 260. With
    room for M distinct objects and S margin slots a machine reserves
    8 M^2 + c (16 S^2 + 4096 S + 59 M) + 8 S (M + 264) bytes and little more (c is 1 for two classes); memory never
    touched is never resident. When room doubles, the old buffers stand beside the new ones for a moment.
    Deleted scores, once read or expected, take 24 c M bytes more.

    Objects may be sparse, rows of `scipy.sparse` of shape (1, d) or (d,): the first one decides, and the others are
    converted. A dense object takes 8 d bytes, a sparse one 12 for each number that is not 0 and 16.

    Parameters
    ----------
    kernel : Kernel
        `RBF(gamma)`, `Linear()`, `Polynomial(degree, gamma, coef0)`, or an object with the same method.
    C : float > 0
        Bound on the coefficient of one example of weight 1.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    class_weights : sequence of c numbers > 0, optional
        Weight of an example of each class; 1 by default. An example of weight w counts as w equal ones: the bound
        on its coefficient is C w. With more than two classes of different weights, "not of class k" has several
        weights, and a step solves a problem for each.
    threads : int >= 1, default 1
        Number of machines solved in parallel. It changes no bit of any result; yet a run with a journal goes on with
        the number that it began with.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Worst violation of the optimality conditions over all machines, scores recomputed from the kernel.
    tolerance : float
        The largest residual that is accepted after any step: 1e-8, or 1e-14 C R^2 where that is more and at most 1e-4,
        where R^2 is the largest squared distance of an object's features from the first one's (and K(x, x), for kernels
        other than `RBF` and `Linear`). A score is a sum of such terms, and a number has 16 digits.
    duals : (n, machines) float64
        Signed coefficients of the examples.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        When a solution misses the tolerance even after a batch solve; nothing is learned from the example.

    References
    ----------
    Cauwenberghs & Poggio (2000), "Incremental and decremental support vector machine learning".

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([ 1.121, -1.121])
    >>> machine.hypotheses([0.6]).scores(1).shape
    (5, 2)
    """

    def _signs_of(self, c: int) -> NDArray[np.int8]:
        signs = (2 * np.eye(c) - 1).astype(np.int8)
        return signs[:1] if c == 2 else signs

    def _answer(self, key: bytes, test_scores: Floats, asked: Question) -> OneVsAllHypotheses:
        return OneVsAllHypotheses(key, test_scores, asked)

    def _by_class(self, scores: Floats) -> Floats:
        if len(self.classes) > 2:
            return scores.copy()
        # Before the first example both classes are absent.
        return mirrored(scores) if self.n else np.full((2, scores.shape[1]), -1.0)

    @property
    def duals(self) -> Floats:
        """(n, c) signed coefficients in order of arrival; equal objects share theirs in proportion to weight."""
        duals = super().duals
        return duals if len(self.classes) > 2 else mirrored(duals.T).T


class Sums(NamedTuple):
    """Sums of coefficients and of weights at each object, for classes of equal weights."""

    negative: Floats  #: (c, objects) coefficients of each class's machine, if the new object is of another class
    positive: Floats  #: (c, objects) and if it is of this class
    mass: Floats  #: (c, objects) weights of the examples of each class
    total: Floats  #: (objects,) weights of all examples


class OneVsAllHypotheses(HingeHypotheses):
    """What the machines would look like if the new object had each of the labels.

    There is one table of scores for all hypotheses unless classes differ in weight: then one for each weight.
    """

    def _branches(self) -> Floats:
        return self.asked.branches.score

    def _pairs(self, scores: Floats) -> list[tuple[Floats, Floats, Integers]]:
        side = self.asked.side
        if self.test_scores.size == 2:
            first, second = (scores[side, 0] for side in side[0])  # scores of the first class
            return [(np.array([second, -first]), np.array([first, -second]), np.arange(2))]
        last = len(self.asked.supposed) - 1
        if last == 1:
            return [(scores[0], scores[1], np.arange(len(side)))]
        # The hypotheses under which a machine that is not of their class supposes weight g.
        others = np.where(side == last, -1, side).max(axis=0)
        return [(scores[g], scores[last], np.flatnonzero(others == g)) for g in range(last)]

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients under hypothesis j; equal objects share by weight."""
        duals = super().duals(j)
        return duals if self.test_scores.size > 2 else mirrored(duals.T).T

    def sums(self) -> Sums:
        """Return the sums of coefficients and of weights at each object.

        Raises
        ------
        ValueError
            Classes differ in weight: then there is no one sum for all hypotheses.
        """
        self.check_current()
        weights, betas, objects = self.asked.distinct.class_weights, self.asked.branches.beta, self.asked.objects
        if len(betas) > 2:
            raise ValueError(f"class_weights must be equal for one sum of coefficients, got {weights.tolist()!r}")
        (negative, positive), mass, total = betas, objects.positive, objects.total[0]
        if self.test_scores.size == 2:
            first, second = positive[0], negative[0]  # of the first class's machine, as the first and the second class
            mass = np.array([mass[0], total - mass[0]])
            negative, positive = np.array([second, -first]), np.array([first, -second])
        return Sums(negative, positive, mass, total)
