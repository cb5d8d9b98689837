"""The transductive predictors, Venn, conformal and Venn-Abers: they read the answer under every hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.hulls import classwise_pairs
from venn._compiled.nonconformity import shares as shares_of_ranks
from venn.machines.digests import digest_of
from venn.machines.machine import Machine, ScoreTable, only_table, under_each
from venn.machines.objects import object_of
from venn.machines.window import inside
from venn.nonconformity import Margin
from venn.nonconformity.scores import Measure, Ranks, ScoreMeasure, checked_measure
from venn.parameters import flag, integer, number, with_methods
from venn.prediction import ClassIntervals, Floats, Integers, Multiprobability, PredictionSet, Rule, fitting_rule
from venn.predictors.blocks import shares
from venn.predictors.inductive_abers import steps, weighed_pair
from venn.predictors.learning import OnMachine, WeighsClasses, machine_of_classes
from venn.predictors.merging import sorted_rows
from venn.saved import component, own, param
from venn.shifts import CovariateShift, PriorShift, checked_covariates, checked_ratios, table_weights
from venn.smoothing import Smoothing
from venn.taxonomies import AdaptiveMarginBins, LeaveOneOut
from venn.taxonomies.scores import Taxonomy, weighable

# --------------------------------------------------------------------------------------------------------- transductive
# The transductive Venn predictor counts labels in the new object's category, under every hypothesis.


def _counting(name: str, taxonomy: Any) -> Taxonomy:
    """Return the taxonomy, by default the one of least log loss, or say what is wrong with it."""
    taxonomy = LeaveOneOut(AdaptiveMarginBins()) if taxonomy is None else taxonomy
    wanted = "a taxonomy object, with methods 'count' and 'fixes_class' and an attribute 'leave_one_out'"
    return with_methods(name, taxonomy, wanted, "count", "fixes_class", has=["leave_one_out"])


@component
class TransductiveVenn(WeighsClasses, OnMachine):
    """Venn predictor over the whole augmented bag.

    For each class j the new object joins the bag with label j, the machine is solved exactly, and all
    examples, the new one included, are put into categories; row j of the answer is the label
    distribution in the new object's category. Under exchangeability, and for a machine and taxonomy that
    treat all examples alike, the row of the true label is perfectly calibrated:
    E[1{y = k} | row of y] = row of y at k. For the *predicted* label the same holds if the rule is
    `CategoryClass()`; see there. Each prediction says in `guaranteed` which of the two holds.

    With a `shift` the same holds of each single prediction for other class frequencies, if examples of the operational
    stream are not learned: see `PriorShift`; with a `CovariateShift`, for objects that are distributed differently.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    taxonomy : Taxonomy, optional
        By default `LeaveOneOut(AdaptiveMarginBins())`: among the taxonomies that guarantee the predicted label it has
        the least log loss over the data sets of docs/quality.md. `Argmax()` is the published one.
    rule : Rule, optional
        Picks the predicted class. By default `CategoryClass()` where the category stands for a class, the
        same under every hypothesis (exact leave-one-out scores), and `RowMean()` elsewhere.
    shift : PriorShift or CovariateShift, optional
        For examples learned that come with other class frequencies than the objects asked about, or whose objects are
        distributed differently; the latter needs a taxonomy on scores, leave-one-out or not, and a machine that keeps
        dense objects. The machine's own `class_weights` are something else: they change no guarantee.

    Raises
    ------
    TypeError
        A part is not what it must be.
    ValueError
        The rule is `CategoryClass()` and the class of the category may depend on the hypothesis; the shift is of
        another number of classes.

    References
    ----------
    Vovk, Shafer & Nouretdinov (2003); Lambrou, Papadopoulos & Gammerman (2012); for label shift Podkopaev & Ramdas
    (2021), arXiv:2103.03323.

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = TransductiveVenn(machine, venn.Argmax())
    >>> model.predict_one([0.0]).probabilities
    array([[1., 0.],
           [0., 1.]])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Multiprobability('no': [0.667, 1.000])
    """

    unnamed = 2

    machine: Machine = param(machine_of_classes)
    taxonomy: Any = param(_counting, default=None)
    rule: Rule = param(
        fitting_rule, own(lambda m: m.taxonomy), own(lambda m: m.taxonomy.fixes_class(m.machine)), default=None
    )
    shift: PriorShift | CovariateShift | None = param(default=None)

    def derive(self) -> None:
        """Tell the machine which scores are read, and set the weights of examples."""
        self._fixed = self.taxonomy.fixes_class(self.machine)
        if self.taxonomy.leave_one_out:
            self.machine.expect_leave_one_out()
        self._ratios = None
        if isinstance(self.shift, CovariateShift):
            self._inside = weighable(self.taxonomy)
        else:
            self._ratios = checked_ratios(self.shift, self.machine.classes)

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        answer = self.of_machine(x)
        labels: Any
        if isinstance(self.shift, CovariateShift):
            shift, tables = self.shift, answer.tables(self.taxonomy.leave_one_out)
            labels, categories = under_each(tables, lambda table: self._inside.weigh_table(table, shift))
        else:
            labels, categories = self.taxonomy.count(answer)
        category_class = self._class_of(categories) if self._fixed else None
        # Every category holds at least the new example, so no row is empty.
        rows = labels / labels.sum(axis=1, keepdims=True) if self._ratios is None else shares(labels, self._ratios)
        return Multiprobability(rows, self.classes, self.rule, category_class)

    def _class_of(self, categories: Integers) -> int:
        """Return the class of the new example's category; every hypothesis must give the same."""
        c = len(categories)
        classes = {self.taxonomy.class_of(category, c) for category in set(categories.tolist())}
        if len(classes) > 1:
            raise RuntimeError(
                f"taxonomy must give the new example a category of one class under every hypothesis, got "
                f"classes {sorted(classes)} by {self.taxonomy!r}"
            )
        return classes.pop()


# ------------------------------------------------------------------------------------------------------------ conformal
# The transductive conformal predictor: it ranks the new example among all, under every hypothesis.


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
        values: Floats = shares_of_ranks(ranks.greater, ranks.equal, ranks.total, float(tau), bool(label_conditional))
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
        `Margin(leave_one_out=False)` reads training scores; your own is a subclass of
        `venn.nonconformity.ScoreMeasure`.
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
        """Tell the machine which scores are read, and set the weights of examples."""
        self.measure.check_machine(self.machine)
        if self.measure.leave_one_out:
            self.machine.expect_leave_one_out()
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
        answer = self.of_machine(x)
        tau = self._smoothing.at(self.machine.learned, digest_of(object_of(x))) if self.smoothed else 1.0
        if isinstance(self.shift, CovariateShift) and isinstance(self.measure, ScoreMeasure):
            greater, equal, total = self.measure.weighed_ranks(answer, self.shift, self.label_conditional)
            above = greater + tau * equal
            values = np.minimum(np.divide(above, total, out=np.full(len(total), 1.0), where=total > 0), 1.0)
        else:
            values = p_values(self.measure.rank(answer), tau, self.label_conditional, self._ratios)
        return PredictionSet(values, self.classes, self.smoothed)


# --------------------------------------------------------------------------------------------------- transductive abers
# Venn-Abers over the whole augmented bag, one binary problem for each class.


def weighed_pairs(table: ScoreTable, shift: CovariateShift) -> Floats:
    """Return the (c, 2) Venn-Abers pairs of a table whose examples are weighed by their objects."""
    c, weights = len(table.negative), table_weights(table, shift)
    pairs = np.empty((c, 2))
    for k in range(c):
        for label, j in ((0, (k + 1) % c), (1, k)):  # supposed another class, or this one
            keys = steps(table.scores(j)[:, k])
            rows = np.column_stack([keys[:-1] + 0.0, table.codes(k)[:-1] == k, weights[:-1]])
            pairs[k, label] = weighed_pair(sorted_rows(rows), keys[-1], weights[-1])[label]
    return pairs


def one_against_all(name: str, machine: Any) -> Any:
    """Return a machine that scores each class against all others; refuse any other."""
    alone = inside(machine_of_classes(name, machine))
    if len(set(getattr(alone, "class_weights", ()))) > 1:
        raise ValueError(
            f"class_weights must be equal for one against all, got {alone.class_weights.tolist()!r}: scores if the "
            "label is not k depend on which other label it is"
        )
    return machine


@component
class TransductiveVennAbers(OnMachine):
    """Venn-Abers predictor of every class, over the whole augmented bag.

    For class k the label is "k or not". Under each of the two hypotheses about the new example, isotonic regression
    maps the scores by machine k of all examples, the new one included, to rates of k; its values at the new example
    are (p0, p1). The category of an example is its block of equal rates, so each pair is a Venn prediction of the
    event y = k: under exchangeability the value under the true hypothesis is perfectly calibrated.

    With leave-one-out scores (the default) it is sharp; with training scores of a flexible machine the
    supposed label shows in its own score, and the pair says little.

    Scores are compared on a grid of 1e-6, as in `Argmax`. p0 <= p1 is not certain, as each hypothesis has its own
    scores. A step costs O(n c) besides the machine, where scores are spread.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    leave_one_out : bool, default True
        Use the score of each example by the machines without it.
    shift : CovariateShift, optional
        For objects that are distributed differently in use; the machine must keep dense objects. A step then costs
        O(c n log n) besides the machine.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. With unequal class weights scores differ for
        every supposed label, so "not k" has no scores of its own.

    References
    ----------
    Vovk & Petej (2014), "Venn-Abers predictors".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = TransductiveVennAbers(machine)
    >>> model.predict_one([0.0]).pairs
    array([[0., 1.],
           [0., 1.]])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    ClassIntervals('no': [0.667, 1.000])
    """

    machine: Machine = param(one_against_all)
    leave_one_out: bool = param(flag, default=True)
    shift: CovariateShift | None = param(checked_covariates, default=None)

    def derive(self) -> None:
        """Ask the machine for leave-one-out scores."""
        if self.leave_one_out:
            self.machine.expect_leave_one_out()

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return a pair of probabilities for each class; it changes no later answer.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        table = only_table(self.of_machine(x).tables(self.leave_one_out))
        if self.shift is not None:
            return ClassIntervals(weighed_pairs(table, self.shift), self.classes)
        pairs = classwise_pairs(table.negative, table.positive, table.labels, table.weights, table.test)
        return ClassIntervals(pairs, self.classes)
