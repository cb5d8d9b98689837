"""Inductive conformal prediction: ranks among calibration examples, with the schedules of inductive predictors."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.ranks import contents, insert_many, no_values, of_sorted, replay_ranks, shares_of_one, with_room
from venn.machines.digests import digests_of
from venn.machines.objects import ObjectRows
from venn.nonconformity import ScoreMeasure
from venn.nonconformity.own import usual_measure
from venn.nonconformity.scores import checked_measure
from venn.parameters import flag, has_methods, integer
from venn.prediction import OF_SETS, Bools, Floats, Integers, PredictionSet
from venn.predictors.blocks import ManyPredictionSets
from venn.predictors.inductive_base import GIVEN, Inductive, fitting_schedule, scorer_of_classes
from venn.predictors.learning import WeighsClasses
from venn.predictors.merging import Mergeable, sorted_rows
from venn.saved import array, component, each, own, param
from venn.schedules import Schedule
from venn.shifts import CovariateShift, PriorShift, checked_ratios
from venn.smoothing import Smoothing

REBUILD = 4  # if new values exceed this part of the old ones, sorting them all is cheaper
NOWHERE = np.array([-1])  # an object that is not learned


class Ranked(NamedTuple):
    """Ranks of n objects, with each label, among calibration examples."""

    greater: NDArray[Any]  #: (n, c) number, or weight, of examples of greater nonconformity
    equal: NDArray[Any]  #: (n, c) of equal nonconformity, itself included
    total: NDArray[Any]  #: (n, c) of all

    def taken(self, order: Integers) -> Ranked:
        """Return the ranks in another order."""
        return Ranked(*(part[order] for part in self))


class SortedValues(Mergeable):
    """Reader of calibration scores: nonconformity on the grid, kept in ascending order.

    A new example with label j is compared with all calibration examples, or with those of class j.
    """

    holds: ClassVar = {"values": each(array(None, finite=False), "_seen")}

    def __init__(self, measure: ScoreMeasure, c: int, label_conditional: bool) -> None:
        self.measure = measure
        self.c = c
        self.label_conditional = label_conditional
        # Classes compared with the same examples are neighbours: from, up to.
        self._groups = [(k, k + 1) for k in range(c)] if label_conditional else [(0, c)]
        self._latest: tuple[Floats, Floats] | None = None  # scores of an object, and its values
        self.clear()

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._seen = [no_values() for _ in self._groups]

    def _steps(self, scores: Floats, codes: Integers) -> Floats:
        """Return (n,) nonconformity in whole steps of the grid; values too large for it are infinite."""
        with np.errstate(over="ignore"):
            return self.measure.steps(scores, codes)

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        if len(scores) == 1:
            self._add_one(self._values_of_one(scores), codes.item(0))
            return
        values = self._steps(scores, codes)
        for g, (first, last) in enumerate(self._groups):
            own = values[(codes >= first) & (codes < last)]
            if len(own) * REBUILD > self._seen[g].totals[1]:
                self._seen[g] = of_sorted(np.sort(np.concatenate([contents(self._seen[g]), own])))
            else:
                self._seen[g] = with_room(self._seen[g], len(own))
                insert_many(self._seen[g], own)

    def _add_one(self, values: Floats, code: int) -> None:
        """Take in an example of this class; it has `values` with each label."""
        g = code if self.label_conditional else 0
        self._seen[g] = with_room(self._seen[g], 1)
        insert_many(self._seen[g], values[code : code + 1])

    @property
    def state(self) -> dict[str, Any]:
        """Nonconformity of the calibration examples, in ascending order, by group."""
        return {"values": [contents(buckets) + 0.0 for buckets in self._seen]}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        for g, values in enumerate(state["values"]):
            self._seen[g] = of_sorted(np.sort(np.concatenate([contents(self._seen[g]), values])))

    def predict(self, scores: Floats) -> Ranked:
        """Return the ranks of n objects of (n, c) scores, each as if it were alone; leaves no trace."""
        values = self.measure.steps_with_each_label(scores)
        ranks = Ranked(*np.empty((3, *values.shape), np.int64))
        nowhere = NOWHERE if len(values) == 1 else np.full(len(values), -1)
        for buckets, (first, last) in zip(self._seen, self._groups, strict=True):
            replay_ranks(buckets, values, first, last, nowhere, *ranks)
        return ranks

    def _values_of_one(self, scores: Floats) -> Floats:
        """Return (c,) steps with each label of an object of (1, c) scores, an array that nobody changes."""
        latest = self._latest
        if latest is None or latest[0] is not scores:
            latest = self._latest = scores, self.measure.steps_with_each_label(scores)[0]
        return latest[1]

    def p_values_of_one(self, scores: Floats, row: Floats, drawn: int | None) -> tuple[Floats, int]:
        """Return (c,) p-values of an object, (1, c) scores and (1, d) numbers, and the place of the largest.

        All labels are ranked among all examples. Ties are broken by the random bits `drawn`, and the object; None:
        p-values are plain.
        """
        out, values = np.empty(self.c), self._values_of_one(scores)
        bits, drawn_bits = row.view(np.uint64)[0], np.uint64(drawn or 0)
        return out, shares_of_one(self._seen[0], values, bits, drawn_bits, drawn is not None, out)

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Ranked:
        """Rank each example in turn, then add it if it calibrates; return the ranks."""
        values = self.measure.steps_with_each_label(scores)
        ranks = Ranked(*np.empty((3, *values.shape), np.int64))
        for g, (first, last) in enumerate(self._groups):
            own = np.where(calibrates & (codes >= first) & (codes < last), codes, -1)
            self._seen[g] = with_room(self._seen[g], int((own >= 0).sum()))
            replay_ranks(self._seen[g], values, first, last, own, *ranks)
        return ranks

    def nothing(self, n: int) -> Ranked:
        """Return the ranks of n objects that are alone, while there is no scorer."""
        shape = (n, self.c)
        return Ranked(np.zeros(shape, np.int64), np.ones(shape, np.int64), np.ones(shape, np.int64))

    def join(self, blocks: list[Ranked]) -> Ranked:
        """Return one block of all, in order."""
        return Ranked(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))


class WeighedValues(SortedValues):
    """Reader of calibration scores where examples have weights, by their class or by their object.

    A prediction costs O(m) after an example was added, O(log m) otherwise.

    Parameters
    ----------
    measure, c, label_conditional
        As of `SortedValues`.
    ratios : (c,) float64, optional
        Weight of an example of each class. Without it the last column of what is read is the weight.
    """

    holds: ClassVar = {"values": each(array(None, 2, finite=False), "_groups")}

    replay = Mergeable.replay  # one by one: a weight changes all ranks

    def __init__(self, measure: ScoreMeasure, c: int, label_conditional: bool, ratios: Floats | None = None) -> None:
        self.ratios = ratios
        super().__init__(measure, c, label_conditional)

    def clear(self) -> None:
        """Forget all calibration examples."""
        super().clear()
        self._held = [np.zeros((0, 2)) for _ in self._groups]  # values and weights, in ascending order
        self._above: list[Floats | None] = [None] * len(self._groups)  # weight of each example and those after it

    def _taken_apart(self, scores: Floats, codes: Integers | None = None) -> tuple[Floats, Floats]:
        """Return scores without weights, and the weights: of n examples, or (n, 1) or (c,) of objects asked about."""
        if self.ratios is not None:
            return scores, self.ratios if codes is None else self.ratios[codes]
        return scores[:, :-1], scores[:, -1:] if codes is None else scores[:, -1]

    def _insert(self, g: int, rows: Floats) -> None:
        self._held[g], self._above[g] = sorted_rows(self._held[g], rows), None

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores, and a weight where these differ by object, and class codes."""
        scores, weights = self._taken_apart(scores, codes)
        rows = np.column_stack([self._steps(scores, codes) + 0.0, weights])
        for g, (first, last) in enumerate(self._groups):
            own = (codes >= first) & (codes < last)
            if own.any():
                self._insert(g, rows[own])

    @property
    def state(self) -> dict[str, Any]:
        """Nonconformity and weights of the calibration examples, in ascending order, by group."""
        return {"values": [held.copy() for held in self._held]}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        for g, rows in enumerate(state["values"]):
            self._insert(g, rows)

    def predict(self, scores: Floats) -> Ranked:
        """Return the ranks of n objects of scores and weights, each as if it were alone; leaves no trace."""
        scores, weights = self._taken_apart(scores)
        values = self.measure.steps_with_each_label(scores)
        greater, equal, total = np.empty((3, *values.shape))
        for g, (first, last) in enumerate(self._groups):
            held, above = self._held[g], self._above[g]
            if above is None:
                above = np.append(np.cumsum(held[::-1, 1])[::-1], 0.0)
                self._above[g] = above
            part, itself = values[:, first:last], np.broadcast_to(weights, values.shape)[:, first:last]
            after = above[np.searchsorted(held[:, 0], part, "right")]
            greater[:, first:last] = after
            equal[:, first:last] = above[np.searchsorted(held[:, 0], part, "left")] - after + itself
            total[:, first:last] = above[0] + itself
        return Ranked(greater, equal, total)


def _read_for(name: str, machine: Any, measure: Any) -> Any:
    """Return the machine or scorer; without a measure a scorer with probabilities is read by them."""
    scorer_of_classes(name, machine)
    return machine.by_probabilities() if measure is None and has_methods(machine, "by_probabilities") else machine


def pointwise_measure(name: str, measure: Any, machine: Any) -> ScoreMeasure:
    """Return the measure, by default the one of the smallest sets, or say what is wrong with it for a scorer."""
    measure = usual_measure(machine) if measure is None else measure
    checked_measure(measure)
    if not (isinstance(measure, ScoreMeasure) and measure.pointwise):
        raise ValueError(
            f"{name} must be a pointwise function of the scores, such as Margin(), for calibration examples are "
            f"measured once, each by itself; got {measure!r}"
        )
    # Raises now if the measure is not for c classes. Its value does not matter: these scores need not occur.
    with np.errstate(all="ignore"):
        measure.checked_values(np.zeros((1, len(machine.classes))), np.zeros(1, np.int64))
    measure.check_machine(machine)
    return measure


@component
class InductiveConformal(WeighsClasses, Inductive[Any]):
    """Conformal predictor by a scorer that is not trained on the examples it calibrates on.

    The p-value of label j is (#greater + tau #equal) / #all: the numbers of calibration examples with greater
    nonconformity than the new one with label j, and with equal nonconformity, itself included; tau is uniform on
    [0, 1], one draw for each step and object, whatever the label. So objects asked about at one step, as in
    `predict_many`, do not share it unless they are equal, and an object asked about again has the same. Plain p-values
    have tau = 1. Values are compared on a grid of 1e-6. Before the first training there is nothing to compare with:
    every p-value is tau.

    Theorems about the smoothed p-value of the true label, when examples are exchangeable:

    - at each single step, with every schedule: it is uniform on [0, 1], so the set at level epsilon misses
      the label with probability epsilon. Sets of plain p-values err at most so often. With `label_conditional` the
      same holds among the examples of each class.
    - over a stream, with `PrefixRestart`, and with `NoTraining` and a scorer fitted on other data: p-values are also
      independent, those before the first training included. So the number of errors in N steps is binomial
      (N, epsilon), and test martingales may bet on them. Any machine may be trained, symmetric or not.
    - with `Prefix`, the same within each period from one training to the next; not across periods, which share
      calibration examples.
    - with `FreshSplit`, single steps only: nothing is proved about several p-values together.
    - with `RandomAssignment` and `FixedCalibration`, single steps only: p-values of different steps are dependent, as
      they are compared with the same calibration examples. With a fixed set of these the error rate over a long
      stream is not epsilon but a random number, of a Beta distribution for plain p-values without ties;
      a martingale will detect that, and rightly so.

    With a `shift` single steps are valid for other class frequencies, if all examples that calibrate come with the
    frequencies of training: see `PriorShift`. P-values of different steps are then dependent, whatever the schedule:
    errors are not binomial, and no martingale may bet on them. With `label_conditional` weights cancel, and what is
    said above of p-values holds however the frequencies of the classes change, as long as P(x | y) does not change.

    The same holds with a `CovariateShift`, within classes, too: see there.

    With m calibration examples a label's p-value costs O(log m) and learning about as much; memory is O(m). With a
    `shift` learning one example costs O(m log m), many at once about as much.

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing, or a scorer fitted elsewhere, on other examples.
    measure : nonconformity measure on scores, optional
        One that is `pointwise`: it depends on an example's own scores and label alone. Its `leave_one_out` does not
        matter here, as no score is by a machine that has learned the example. By default the one of the smallest sets:
        of more than two classes `Share()` of probabilities, `OwnScore()` of log odds, as of a `Stack`; else `Margin()`.
        By default the probabilities of a `FrozenScorer` are read, where it has `predict_proba` and was given no
        `method`: `given` is then the scorer by probabilities. A measure of yours gets the scores as the scorer gives
        them.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenScorer`. The former trains on all
        examples each time: set its `last` where the machine's memory grows as the square of their number.
    label_conditional : bool, default False
        Compare an example with label j with those of class j only. The error rate then holds for each class,
        at the price of larger sets.
    smoothed : bool, default True
        Break ties at random; otherwise p-values are plain.
    seed : int >= 0, default 0
        Of the random numbers. Each depends on the step (the number of examples learned) and on the content of the
        object (its float64 numbers, in full or sparse). It must be unrelated to how the examples were made.
    shift : PriorShift or CovariateShift, optional
        For calibration examples that come with other class frequencies than the objects asked about, or whose objects
        are distributed differently.

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Do not teach it.

    Raises
    ------
    TypeError
        A part is not what it must be.
    ValueError
        The machine has learned, the schedule does not suit it, the measure is not pointwise, or the shift is of another
        number of classes.

    References
    ----------
    Papadopoulos, Proedrou, Vovk & Gammerman (2002), "Inductive confidence machines for regression"; Vovk,
    Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 2 and 4; for fixed
    calibration sets Vovk (2012), "Conditional validity of inductive conformal predictors"; for label shift Podkopaev &
    Ramdas (2021), arXiv:2103.03323.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from venn.machines.frozen import FrozenScorer
    >>> scorer = FrozenScorer(LinearSVC().fit([[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]))
    >>> model = InductiveConformal(scorer, smoothed=False)
    >>> model.learn_many([[0.2], [0.3], [1.1], [0.9]], ["no", "no", "yes", "yes"])
    >>> prediction = model.predict_one([1.0])
    >>> prediction.p_values, prediction.set(0.2)
    (array([0.2, 0.8]), ('yes',))
    """

    questioned = True

    unnamed = 2

    machine: Any = param(_read_for, own(lambda m: m.measure), kept_as="given")
    measure: ScoreMeasure = param(pointwise_measure, GIVEN, default=None)
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)
    label_conditional: bool = param(flag, default=False, kw_only=True)
    smoothed: bool = param(flag, default=True, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)
    shift: PriorShift | CovariateShift | None = param(default=None, kw_only=True)

    def new_reader(self) -> SortedValues:
        """Return a reader that ranks an object among the calibration examples, weighted by the shift."""
        by_object = isinstance(self.shift, CovariateShift)
        ratios = None if by_object else checked_ratios(self.shift, self.given.classes)
        given = self.measure, len(self.given.classes), self.label_conditional
        if by_object or (ratios is not None and not self.label_conditional):
            return WeighedValues(*given, ratios)
        return SortedValues(*given)  # examples of one class weigh alike: weights cancel

    def derive(self) -> None:
        """Set how ranks become p-values."""
        super().derive()
        self._smoothing = Smoothing(self.seed)
        self._by_object = isinstance(self.shift, CovariateShift)
        ratios = None if self._by_object else checked_ratios(self.shift, self.classes)
        self._possible = None if ratios is None else ratios > 0
        plain = type(self._reader) is SortedValues and not self.label_conditional
        self._ranking: SortedValues | None = self._reader if plain else None

    def finished(self, block: Ranked, rows: ObjectRows, step: int, in_turn: bool) -> ManyPredictionSets:
        """Return p-values from ranks. Ranks do not depend on the step; here each object gets its random number."""
        tau = self._tau(rows, step, in_turn) if self.smoothed else 1.0
        return ManyPredictionSets(self._p_values(block, tau), self.classes, self.smoothed)

    def _tau(self, rows: ObjectRows, step: int, in_turn: bool) -> Floats | float:
        """Return the numbers that break ties for objects: one, or (n, 1)."""
        digests = digests_of(rows)
        if in_turn:
            return self._smoothing.of_each(step, digests)[:, None]
        if len(digests) == 1:  # for speed
            return self._smoothing.at(step, int(digests[0]))
        return self._smoothing.of(step, digests)[:, None]

    def _p_values(self, ranks: Ranked, tau: Floats | float) -> Floats:
        """Return (n, c) p-values from ranks and the numbers that break ties: one, or (n, 1)."""
        above: Floats = ranks.greater + tau * ranks.equal
        shares: Floats
        if self._by_object:  # an object of weight 0 before any example: it is alone
            shares = np.divide(above, ranks.total, out=np.full(above.shape, 1.0), where=ranks.total > 0)
            np.clip(shares, 0.0, 1.0, out=shares)
        elif self._possible is None:
            shares = above / ranks.total
        else:  # a class that cannot come has p-value 0; sums of weights in floating point may be above their total
            shares = np.divide(above, ranks.total, out=np.zeros(above.shape), where=self._possible)
            np.minimum(shares, 1.0, out=shares)
        return shares

    def predict_one(self, x: Any) -> PredictionSet:
        """Return the p-values of every class for `x`; leaves no trace, and the same question gets the same answer.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.said_of(*self.scored(x))

    def said_of(self, rows: ObjectRows, scores: Floats) -> PredictionSet:
        """Return the p-values of a checked object, from its scores."""
        if self._ranking is not None and self.scorer is not None and isinstance(rows, np.ndarray):  # for speed
            drawn = self._smoothing.bits_at(self.n) if self.smoothed else None
            values, index = self._ranking.p_values_of_one(scores, rows, drawn)
        else:
            tau = self._tau(rows, self.n, False) if self.smoothed else 1.0
            ranks = self._reader.nothing(1) if self.scorer is None else self._reader.predict(scores)
            values = self._p_values(ranks, tau)[0]
            index = int(values.argmax())
        smoothed = self.smoothed
        return PredictionSet.unchecked(
            values, self.space.labels, smoothed=smoothed, guaranteed=OF_SETS[smoothed], index=index
        )
