"""One-against-one support vector machines, kept exact online."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from venn.machines.hinge import HingeMachine
from venn.machines.hinge_hypotheses import HingeHypotheses, Question
from venn.prediction import Floats, Integers
from venn.saved import saved

LEAST = 5e-7  # smallest score that counts as a vote


def pair_signs(c: int) -> NDArray[np.int8]:
    """Return (pairs, c): for each pair of classes, in order, +1 at the first, -1 at the second, 0 elsewhere."""
    signs = np.zeros((c * (c - 1) // 2, c), np.int8)
    for row, (a, b) in zip(signs, combinations(range(c), 2), strict=True):
        row[a], row[b] = 1, -1
    return signs


def votes_and_margins(signs: NDArray[np.int8], scores: Floats) -> Floats:
    """Return (c, m) votes, and parts of summed margins for ties, from (pairs, m) scores; 0 is no vote.

    The part is s / (3 (|s| + 1)) of a sum s, which is less than 1/3.
    """
    to = signs.T.astype(np.float64)
    votes = (to > 0).astype(np.float64) @ (scores > LEAST) + (to < 0).astype(np.float64) @ (scores < -LEAST)
    margins = to @ scores
    return votes + margins / (3 * (np.abs(margins) + 1))


def decided(signs: NDArray[np.int8], scores: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return (c, m) votes and parts of margins from (pairs, m) scores of the machines that are known."""
    return votes_and_margins(signs, np.where(known[:, None], scores, 0.0))


@saved
class OneVsOneSVM(HingeMachine):
    """Exact incremental support vector machines, one for each pair of classes.

    The machine of classes a and b, a before b, learns only their examples: it minimises 1/2 |w|^2 + C sum_i w_i max(0,
    1 - t_i f(x_i)), t_i = +1 for a and -1 for b. It votes for a where f > 0 and for b where f < 0. It does not vote
    where f is nearer to 0 than half the grid of 1e-6 on which taxonomies compare scores: there rounding would decide.
    If only one of the two classes has examples it votes for that one; if neither has, it does not vote.

    The score of a class is the number of its votes plus, for ties, s / (3 (|s| + 1)), which is less than 1/3; s is the
    sum of +f or -f over the machines of its pairs. So the largest score is that of the class with most votes, with ties
    decided by margins, then in favour of the first class.

    When the object's label is supposed, the machines of the pairs with that class have the object as an example; the
    others stay as they are. So scores, and the tables that taxonomies read, differ by hypothesis. That makes c (c - 1)
    problems a step, two for each machine, and c tables of c (c - 1) / 2 rows.

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
        Weight of an example of each class; 1 by default. An example of weight w counts as w equal ones.
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
    Kressel (1999), "Pairwise classification and support vector machines"; Cauwenberghs & Poggio (2000).

    Examples
    --------
    >>> import venn
    >>> machine = OneVsOneSVM(venn.RBF(1.0), C=10, classes=["a", "b", "c"])
    >>> for x, y in [([0.0], "a"), ([1.0], "b"), ([2.0], "c"), ([0.1], "a"), ([1.2], "b"), ([2.1], "c")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.9]).round()  # votes: b wins both its pairs, a that against c
    array([ 1.,  2., -0.])
    >>> venn.TransductiveVenn(machine, venn.Argmax()).predict_one([0.9]).label
    'b'
    """

    def _signs_of(self, c: int) -> NDArray[np.int8]:
        return pair_signs(c)

    def _answer(self, key: bytes, test_scores: Floats, asked: Question) -> OneVsOneHypotheses:
        return OneVsOneHypotheses(key, test_scores, asked)

    def _by_class(self, scores: Floats) -> Floats:
        return decided(self.signs, scores, self._objects.sizes[:, 1] > 0)


class OneVsOneHypotheses(HingeHypotheses):
    """What the machines would look like if the new object had each of the labels; one table for each label."""

    def _pairs(self, scores: Floats) -> list[tuple[Floats, Floats, Integers]]:
        asked, pairs = self.asked, []
        for j in range(self.test_scores.size):
            known = (asked.objects.sizes[:, 1] > 0) | (asked.signs[:, j] != 0)
            by_class = decided(asked.signs, self._supposed(j, scores), known)
            pairs.append((by_class, by_class, np.array([j])))
        return pairs
