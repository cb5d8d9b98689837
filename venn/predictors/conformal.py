"""The transductive conformal predictor: it ranks the new example among all, under every hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.nonconformity import shares
from venn.covariates import CovariateShift
from venn.machines.digests import digest_of
from venn.machines.machine import Machine
from venn.nonconformity import Margin
from venn.nonconformity.scores import Measure, Ranks, ScoreMeasure, checked_measure
from venn.parameters import flag, integer, number
from venn.prediction import Floats, PredictionSet
from venn.predictors.learning import OnMachine, WeighsClasses, machine_of_classes
from venn.priors import PriorShift, checked_ratios
from venn.saved import component, param
from venn.smoothing import Smoothing


def p_values(ranks: Ranks, tau: float, label_conditional: bool = False, ratios: Floats | None = None) -> Floats:
    """Return the (c,) p-values of the classes.

    p_j = (#{A_i > A} + tau #{A_i = A}) / n under hypothesis j, the new example counted among all n and among the
    ties. Both counts matter: if the new example is left out of the ties, p-values are not uniform, and no martingale on
    them keeps its level.

    Parameters
    ----------
    ranks : Ranks
    tau : float in [0, 1]
        A uniform random number breaks ties; 1 gives plain p-values.
    label_conditional : bool, default False
        Count examples of class j only.
    ratios : (c,) float64 >= 0, some > 0, optional
        Weight of an example of each class; 1 by default. With 0 the class cannot come: its p-value is 0.

    Raises
    ------
    ValueError, TypeError
        `tau` is not a number in [0, 1].

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 2 and 4.

    Examples
    --------
    Under the first hypothesis two examples are stranger than the new one, and one other is equally strange:

    >>> import numpy as np
    >>> ranks = Ranks(np.array([[2, 0], [0, 0]]), np.array([[1, 1], [0, 1]]), np.array([[3, 2], [2, 3]]))
    >>> p_values(ranks, 0.5), p_values(ranks, 1.0, label_conditional=True)
    (array([0.6, 0.1]), array([1.        , 0.33333333]))
    """
    if not 0 <= number("tau", tau) <= 1:
        raise ValueError(f"tau must lie in [0, 1], got {tau!r}")
    if ratios is None or label_conditional:  # examples of one class weigh alike: weights cancel
        values: Floats = shares(ranks.greater, ranks.equal, ranks.total, float(tau), bool(label_conditional))
        return values if ratios is None else np.where(ratios > 0, values, 0.0)
    total = ranks.total @ ratios
    above = ranks.greater @ ratios + float(tau) * (ranks.equal @ ratios)
    weighted: Floats = np.divide(above, total, out=np.zeros(len(total)), where=ratios > 0)
    return np.minimum(weighted, 1.0)  # sums in floating point


def _measure(name: str, measure: Any) -> Measure:
    """Return the measure, by default the margin, or say what is wrong with it."""
    return Margin() if measure is None else checked_measure(measure)


@component
class Conformal(WeighsClasses, OnMachine):
    """Conformal predictor over the whole augmented bag.

    For each class j the new object joins the bag with label j, the machine is solved exactly, and the p-value of j is
    the share of examples at least as strange as the new one, ties broken at random. In one `Panel` the machine is
    solved once for this predictor and `TransductiveVenn`.

    Under exchangeability, and for a machine and measure that treat all examples alike, the smoothed p-values of the
    true labels are independent and uniform on [0, 1]. So the set at level epsilon misses the true label with
    probability exactly epsilon, at each step independently of the others: the number of errors in n steps is
    binomial. Plain p-values give larger sets, never smaller. With `label_conditional` the same holds among the examples
    of each class, and so over all. This is a theorem; how small the sets are is not. On a `SlidingWindow` that has
    forgotten an example each p-value is uniform, but successive ones depend on each other: see there.

    With a `shift` each single smoothed p-value is uniform for other class frequencies, and plain p-values are
    conservative, if no example of the operational stream is learned: see `PriorShift`. P-values of different steps are
    then dependent: errors in n steps are not binomial, and no martingale may bet on them. Label-conditional p-values
    need no such weights: all that is said of them above holds however the frequencies of the classes change, with a
    shift or without, as long as P(x | y) does not change. With a `CovariateShift` it is objects whose frequencies
    differ: see there.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    measure : Measure, default Margin()
        `Margin(deleted=False)` reads training scores; `Multiplier()` Lagrange multipliers; your own is a subclass
        of `venn.nonconformity.ScoreMeasure`.
    label_conditional : bool, default False
        Compare with examples of the supposed class only: errors are then rare in every class, not only overall.
    smoothed : bool, default True
        Break ties at random. Without it the p-value is the largest that any tie-breaking could give.
    seed : int >= 0, default 0
        Of the random numbers. Each depends on the step (the number of examples learned, forgotten ones included) and on
        the content of the object (its float64 numbers, in full or sparse), not on which questions are asked and how
        often. Objects that are not rows of numbers, for a machine of your own, share the number of the step.
    shift : PriorShift or CovariateShift, optional
        For examples learned that come with other class frequencies than the objects asked about, or whose objects are
        distributed differently. The latter needs a measure on scores, such as `Margin()`, and a machine that keeps
        dense objects.

    Raises
    ------
    TypeError, ValueError
        A part is not what it must be, or the machine does not provide what the measure needs.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 2 and 4; with weights
    Tibshirani, Foygel Barber, Candès & Ramdas (2019), "Conformal prediction under covariate shift", and for labels
    Podkopaev & Ramdas (2021), arXiv:2103.03323.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = Conformal(machine)
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> prediction = model.predict_one([0.15])
    >>> prediction.set(0.2), prediction.label
    (('no',), 'no')
    """

    unnamed = 2

    machine: Machine = param(machine_of_classes)
    measure: Any = param(_measure, default=None)
    label_conditional: bool = param(flag, default=False)
    smoothed: bool = param(flag, default=True)
    seed: int = param(integer, 0, default=0)
    shift: PriorShift | CovariateShift | None = param(default=None)

    def derive(self) -> None:
        """Say which scores are read, and how examples weigh."""
        self.measure.check_machine(self.machine)
        if self.measure.deleted:
            self.machine.expect_deleted()
        self._smoothing = Smoothing(self.seed)
        by_object = isinstance(self.shift, CovariateShift)
        if by_object and not isinstance(self.measure, ScoreMeasure):
            raise TypeError(
                f"measure must be one on scores, such as Margin(), for {self.shift!r}, got {self.measure!r}"
            )
        self._ratios = None if by_object else checked_ratios(self.shift, self.machine.classes)

    def predict_one(self, x: Any) -> PredictionSet:
        """Return the p-values of all classes for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        answer = self.machine.hypotheses(x)
        tau = self._smoothing.at(self.machine.learned, digest_of(x)) if self.smoothed else 1.0
        if isinstance(self.shift, CovariateShift) and isinstance(self.measure, ScoreMeasure):
            greater, equal, total = self.measure.weighed_ranks(answer, self.shift, self.label_conditional)
            above = greater + tau * equal
            values = np.minimum(np.divide(above, total, out=np.full(len(total), 1.0), where=total > 0), 1.0)
        else:
            values = p_values(self.measure.rank(answer), tau, self.label_conditional, self._ratios)
        return PredictionSet(values, self.classes, self.smoothed)
