"""Nonconformity by Lagrange multipliers, which a machine has besides its scores."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.nonconformity import rank_own
from venn.machines.hinge_hypotheses import OneVsAllHypotheses
from venn.machines.least_squares import LeastSquaresHypotheses
from venn.machines.machine import Hypotheses, Machine, only_table
from venn.machines.window import inside
from venn.nonconformity.scores import Ranks
from venn.parameters import Parameters
from venn.prediction import Floats, Integers
from venn.saved import component


@component
class Multiplier(Parameters):
    """The Lagrange multiplier of the example in the machine of its own class: how hard the machine is pushed to fit it.

    For `OneVsAllSVM` it is 0 beyond the margin, C where the margin is violated, and between them on it. So most
    examples tie: use smoothed p-values. With f the score by the own machine, the multiplier is C (t - f) t = C (1 - f)
    for `LeastSquaresSVM`, which may be negative. It is 0 where all examples are of one class. Multipliers are
    compared in units of C, on the grid of 1e-6.

    There is no leave-one-out form: an example that joins the bag without it gets the same multiplier that it has in the
    whole bag.

    Raises
    ------
    TypeError
        By predictors, for a machine without multipliers.
    ValueError
        By predictors, for `OneVsAllSVM` with a `Linear` or `Polynomial` kernel: once the objects on the margin are
        linearly dependent, the scores no longer determine the multipliers, and which solution is found depends on the
        order of the examples. A kernel of your own must be strictly positive definite. Also for classes of unequal
        weights.

    Notes
    -----
    `OneVsAllSVM` keeps one coefficient b, the sum of the signed multipliers, for all examples at one object: P of
    the class and N of others. For a strictly positive definite kernel b is unique. The optimality conditions
    then determine the sum of the P multipliers, in units of C, as the nearest number to b / C + N in [0, P]:

    - where f > -1 the N others violate their margin, all are at C, and the sum is b / C + N, which is in [0, P];
    - where f <= -1 the P violate theirs, all are at C, and the sum is P; b / C >= P - N where f = -1, for the
      others carry at most N, and b / C = P where f < -1, for the others carry nothing; so b / C + N >= P.

    How equal examples, of one object and class, share the sum is not determined; here each has 1 / P of it. That
    is a function of bag and example that treats all examples alike.

    On the margin multipliers are only as exact as the kernel matrix there is well-conditioned. A very flat RBF on few
    features is not, and near ties may then depend on rounding; `Margin` has no such trouble.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapter 3; Gammerman, Vovk &
    Vapnik (1998), "Learning by transduction".

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = venn.Conformal(machine, Multiplier())
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05]).label
    'no'
    """

    leave_one_out = False

    def check_machine(self, machine: Machine) -> None:
        """Raise unless the machine has unique multipliers."""
        alone = inside(machine)
        unique = getattr(alone, "unique_multipliers", None)
        if unique is None:
            raise TypeError(
                f"machine must have Lagrange multipliers, as OneVsAllSVM and LeastSquaresSVM have, for {self!r}, got "
                f"{machine!r}: Margin() works with every machine"
            )
        if not unique:
            raise ValueError(
                f"kernel must be strictly positive definite, as RBF is, for {self!r} on {type(alone).__name__}, got "
                f"{alone.kernel!r}: its multipliers are not unique"
            )
        if len(set(alone.class_weights)) > 1:
            raise ValueError(f"class_weights must be equal for {self!r}, got {alone.class_weights.tolist()!r}")

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""
        return Ranks(*rank_own(*own_multipliers(hypotheses)))


class OwnMultipliers(NamedTuple):
    """Multipliers in units of C times the weight, by distinct example."""

    of_not: Floats  #: (m,) if the new example is supposed to be of another class
    of: Floats  #: (m,) if it is supposed to be of the example's class
    of_test: Floats  #: (c,) of the new example as each class
    codes: Integers  #: (m,)
    weights: Integers  #: (m,)


@singledispatch
def own_multipliers(answer: Any) -> OwnMultipliers:
    """Return the multiplier of every example in the machine of its own class, in units of C times its weight."""
    raise TypeError(f"hypotheses must be those of a machine with multipliers, got {answer!r}")


@own_multipliers.register
def _of_hinge_loss(answer: OneVsAllHypotheses) -> OwnMultipliers:
    # `answer.duals(j)` would do, but not by distinct object: it costs O(n c) for each of c hypotheses.
    negative, positive, mass, total = answer.sums()
    C, p, distinct = answer.asked.C, answer.asked.test, answer.asked.distinct
    objects, codes, weights = distinct.examples()
    new = answer.weight * float(distinct.class_weights[0])

    def share(sums: Floats, of_class: Floats, others: Floats) -> Floats:
        return np.clip(sums / C + others, 0.0, of_class) / np.where(of_class > 0, of_class, 1.0)

    of_class = mass[codes, objects]
    others = total[objects] - of_class
    here = new * (objects == p)  # the new example is here, in the class or among the others
    return OwnMultipliers(
        share(negative[codes, objects], of_class, others + here),
        share(positive[codes, objects], of_class + here, others),
        share(positive[:, p], mass[:, p] + new, total[p] - mass[:, p]),
        codes,
        weights,
    )


@own_multipliers.register
def _of_squared_loss(answer: LeastSquaresHypotheses) -> OwnMultipliers:
    table = only_table(answer.tables(False))
    columns = np.arange(len(table.labels))
    return OwnMultipliers(
        1.0 - table.negative[table.labels, columns],
        1.0 - table.positive[table.labels, columns],
        1.0 - table.positive[:, table.test],
        table.labels,
        table.weights,
    )
