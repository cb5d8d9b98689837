"""Taxonomies on the scores of one-against-all machines: the top class, alone or refined.

The top class is the same in all of them: the category of `Argmax`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from venn._compiled import counting as compiled
from venn._compiled.counting import GRID, OFFSET, count_argmax, count_beside
from venn.machines.machine import Hypotheses, Machine, ScoreTable, under_each
from venn.parameters import Parameters, fraction, instance, integer, number, real_array
from venn.prediction import Floats, Integers
from venn.saved import component, param
from venn.shifts import CovariateShift, table_weights

# ----------------------------------------------------------------------------------------------------------------- base
# The contract between a taxonomy and a Venn predictor, and the base classes of taxonomies on scores.


class Counts(NamedTuple):
    """The label counts of a Venn predictor, under every hypothesis."""

    labels: Integers  #: (c, c) row j: number of examples of each class in the new example's category, itself included
    categories: Integers  #: (c,) the new example's category


class Taxonomy(Protocol):
    """What a Venn predictor needs from a taxonomy."""

    @property
    def leave_one_out(self) -> bool:
        """Whether it reads leave-one-out scores: machines then expect that."""

    def count(self, hypotheses: Hypotheses) -> Counts:
        """Return the labels in the new example's category, under every hypothesis about its label."""

    def fixes_class(self, machine: Machine) -> bool:
        """Whether the new example's category stands for a class, the same one under every hypothesis."""

    def class_of(self, category: int, c: int) -> int:
        """Return the class, of c, that a category stands for; called only where `fixes_class`."""


class ByTable(Parameters):
    """Base of taxonomies that read a table of scores, training or leave-one-out ones."""

    leave_one_out = False

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the labels in the new example's category, under every hypothesis, from a table of scores."""
        raise NotImplementedError

    def class_of(self, category: int, c: int) -> int:
        """Return the class, of c, that a category stands for; a subclass without this method has none."""
        raise NotImplementedError

    @property
    def determines_class(self) -> bool:
        """Whether every category stands for a class."""
        return type(self).class_of is not ByTable.class_of

    def fixes_class(self, machine: Machine) -> bool:
        """Return False: scores of machines that have learned the example depend on its label."""
        return False

    def count(self, hypotheses: Hypotheses) -> Counts:
        """Return the labels in the new example's category, under every hypothesis about its label."""
        return under_each(hypotheses.tables(False), self.count_table)


class ByScores(ByTable):
    """Base of taxonomies that map scores to categories.

    A subclass gives `categories(scores)`, which must treat all rows alike: permuting the rows permutes
    the categories, and equal rows share one. That alone makes the Venn predictor valid. Where every
    category stands for a class, as in "the class of the largest score", `class_of` returns that class.

    Attributes
    ----------
    pointwise : bool, default False
        The category of an example depends on its own scores alone, not on those of others. A subclass
        for which this is true may say so: equal examples are then put into categories once.

    Examples
    --------
    >>> class Sign(ByScores):
    ...     pointwise = True
    ...     def categories(self, scores):
    ...         return (scores[:, 0] > 0).astype(int)
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> venn.TransductiveVenn(machine, Sign()).predict_one([0.0])
    Multiprobability('no': [0.000, 1.000])
    """

    pointwise = False

    def categories(self, scores: Floats) -> Integers:
        """Return the (n,) categories, integers, of the (n, c) scores."""
        raise NotImplementedError(f"{type(self).__name__} must have a method categories(scores)")

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the labels in the new example's category, under every hypothesis, from a table of scores."""
        c, m = len(table.negative), len(table.labels)
        counts = Counts(np.eye(c, dtype=np.int64), np.empty(c, np.int64))
        for j in range(c):
            if self.pointwise:
                rows = table.negative[:, :m].copy()
                rows[j] = table.positive[j, :m]
                categories = self._checked(rows.T)
                counts.categories[j] = categories[table.test]
                count_beside(categories, table.labels, table.weights, table.test, counts.labels[j])
            else:
                categories = self._checked(table.scores(j))
                counts.categories[j] = categories[-1]
                beside = table.codes(j)[categories == categories[-1]]
                counts.labels[j] = np.bincount(beside, minlength=c)
        return counts

    def _checked(self, scores: Floats) -> Integers:
        categories: Any = np.asarray(self.categories(scores))
        if categories.shape != (len(scores),) or categories.dtype.kind not in "iub":
            raise ValueError(
                f"categories must be ({len(scores)},) integers, one for each row of scores, got shape "
                f"{categories.shape} and type {categories.dtype} from {self!r}"
            )
        return categories.astype(np.int64, copy=False)

    def weigh_table(self, table: ScoreTable, shift: CovariateShift) -> tuple[Floats, Integers]:
        """Return (c, c) weights of the labels in the new example's category, and (c,) categories, from a table."""
        c, weights = len(table.negative), table_weights(table, shift)
        labels, categories = np.zeros((c, c)), np.empty(c, np.int64)
        for j in range(c):
            found = self.categories(table.scores(j))
            beside = found == found[-1]
            categories[j] = found[-1]
            labels[j] = np.bincount(table.codes(j)[beside], weights[beside], c)
            if labels[j].sum() == 0:  # an object that cannot come, among others that cannot
                labels[j, j] = 1.0
        return labels, categories


@component
class LeaveOneOut(Parameters):
    """A taxonomy on leave-one-out scores: each example is scored by machines that have not learned it.

    A flexible machine fits the supposed label, so training scores follow every hypothesis and a taxonomy
    on them says nothing; leave-one-out scores do not. They are a function of the bag and the example that treats
    all examples alike, the new one included, so the Venn predictor stays valid.

    Where the machine's leave-one-out scores are exact, the new example's scores do not depend on its supposed label. If
    its category stands for a class, that class may be predicted with `CategoryClass()`, and the predicted
    label's own probability is then guaranteed. For this the category must be a function of the new
    example's own scores alone, or, as in `AdaptiveMarginBins`, depend on other scores only through a class that is.

    Parameters
    ----------
    taxonomy : taxonomy on scores
        Such as `Argmax()`, or `Grouped(by, Argmax())`.

    Raises
    ------
    TypeError
        `taxonomy` is not a taxonomy on scores.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax()))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15])
    Multiprobability('no': [0.800, 1.000])
    """

    leave_one_out = True

    taxonomy: ByTable = param(instance, ByTable, "a taxonomy on scores, such as Argmax()")

    def fixes_class(self, machine: Machine) -> bool:
        """Whether the new example's category stands for a class, the same one under every hypothesis."""
        return machine.exact_leave_one_out and self.taxonomy.determines_class

    def class_of(self, category: int, c: int) -> int:
        """Return the class that a category stands for."""
        return self.taxonomy.class_of(category, c)

    def count(self, hypotheses: Hypotheses) -> Counts:
        """Return the labels in the new example's category, under every hypothesis about its label."""
        return under_each(hypotheses.tables(True), self.taxonomy.count_table)


def weighable(taxonomy: Any) -> ByScores:
    """Return the map from scores to categories inside a taxonomy, or say that it has none."""
    inside = taxonomy.taxonomy if isinstance(taxonomy, LeaveOneOut) else taxonomy
    if not isinstance(inside, ByScores):
        raise TypeError(
            f"taxonomy must map scores to categories for a CovariateShift, as Argmax() and LeaveOneOut(...) do, got "
            f"{taxonomy!r}"
        )
    return inside


# --------------------------------------------------------------------------------------------------------------- scores


@np.errstate(over="ignore")
def on_grid(scores: Floats) -> Floats:
    """Return the scores in whole steps of the grid; those beyond 1.8e302 are infinite."""
    grid: Floats = scores * GRID
    grid += OFFSET
    return np.rint(grid, out=grid)


def rows_of(scores: Any) -> Floats:
    """Return (n, c) scores as float64, or say what is wrong with them."""
    rows = real_array(scores, "scores must be numbers of shape (n, c)")
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise ValueError(f"scores must have shape (n, c) for c >= 2 classes, got {rows.shape}")
    return rows


def increasing(name: str, edges: Any) -> tuple[float, ...]:
    """Return `edges` as a tuple of floats, or say what is wrong with them."""
    if isinstance(edges, str | bytes) or not hasattr(edges, "__iter__"):
        raise TypeError(f"{name} must be a sequence of numbers, got {edges!r}")
    clean = tuple(number(name, edge) for edge in edges)
    if not clean or any(low >= high for low, high in itertools.pairwise(clean)):
        raise ValueError(f"{name} must be at least one number, each above the one before, got {edges!r}")
    return clean


@component
class Argmax(ByScores):
    """The category of an example is the class of its largest score.

    As in all taxonomies here, scores are compared on a grid of 1e-6 and ties go to the first class, so that a category
    does not depend on the last bits of a solution: a free support vector has a score of exactly -1 in several machines
    at once.

    References
    ----------
    Lambrou, Papadopoulos & Gammerman (2012), "the simplest taxonomy".

    Examples
    --------
    >>> Argmax().categories(np.array([[0.2, 1.0, -1.0], [-1.0, -1.0, -1.0 + 1e-9]]))
    array([1, 0])
    """

    pointwise = True

    def categories(self, scores: Floats) -> Integers:
        """Return the (n,) positions of the largest of the (n, c) scores."""
        return on_grid(rows_of(scores)).argmax(axis=1)

    def class_of(self, category: int, c: int) -> int:
        """Return the category."""
        return category

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the counts by the compiled path: the scores of a hypothesis are never gathered."""
        m = len(table.labels)
        return Counts(*count_argmax(table.negative, table.positive, m, table.labels, table.weights, table.test))


class OnGrid(ByScores):
    """Base of taxonomies on scores in whole steps of the grid; a subclass gives `of_grid`."""

    pointwise = True

    def of_grid(self, grid: Floats) -> Integers:
        """Return the (n,) categories of the scores (c, n), whole numbers in steps of the grid."""
        raise NotImplementedError

    def categories(self, scores: Floats) -> Integers:
        """Return the (n,) categories of the (n, c) scores."""
        return self.of_grid(np.ascontiguousarray(on_grid(rows_of(scores).T)))

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the counts; distinct examples are put into categories once for each hypothesis."""
        c, m = len(table.negative), len(table.labels)
        grid, positive = on_grid(table.negative[:, :m]), on_grid(table.positive[:, :m])
        counts = Counts(np.eye(c, dtype=np.int64), np.empty(c, np.int64))
        for j in range(c):
            negative = grid[j].copy()
            grid[j] = positive[j]
            categories = self.of_grid(grid)
            grid[j] = negative
            counts.categories[j] = categories[table.test]
            compiled.count_beside(categories, table.labels, table.weights, table.test, counts.labels[j])
        return counts


class Refined(OnGrid):
    """Base of taxonomies that refine the top class: category = top class + c * refinement."""

    def class_of(self, category: int, c: int) -> int:
        """Return the top class."""
        return category % c


@component
class TopTwo(Refined):
    """The category of an example is its pair of classes with the largest and the second largest score.

    Examples
    --------
    Category top + c * second:

    >>> TopTwo().categories(np.array([[0.2, 1.0, -1.0], [-1.0, -1.0, 0.5]]))
    array([1, 2])
    """

    def of_grid(self, grid: Floats) -> Integers:
        """Return (n,) top class + c * second class, for a (c, n) grid of scores."""
        top, second, _, _ = compiled.best_two(grid)
        return top + len(grid) * second


class _Shares(Refined):
    """Base of taxonomies that refine the top class by whether a function of softmax shares exceeds a level."""

    level: float

    def _value(self, first: Floats, second: Floats) -> Floats:
        """Return the value that is compared with the level, from the largest and the second largest share."""
        raise NotImplementedError

    def of_grid(self, grid: Floats) -> Integers:
        """Return top class + c * (1 where the level is exceeded, else 0)."""
        top, first, second = compiled.best_shares(grid)
        # Shares too are compared on the grid: equal scores have equal shares, 1/c for one.
        above = on_grid(self._value(first, second)) > on_grid(np.array([self.level]))
        return top + len(grid) * above


@component
class Threshold(_Shares):
    """Top class, and whether its softmax share exceeds a level.

    Parameters
    ----------
    level : float in (0, 1), default 0.75
        Set for network outputs by its authors; scores of machines with a margin of 1 seldom reach it for
        many classes.

    Raises
    ------
    TypeError
        The level is no number.
    ValueError
        It is outside (0, 1).

    References
    ----------
    Papadopoulos (2013), "Reliable probabilistic classification with neural networks": taxonomy V2.

    Examples
    --------
    >>> Threshold(0.75).categories(np.array([[2.0, -2.0], [0.1, -0.1]]))
    array([2, 0])
    """

    level: float = param(fraction, default=0.75)

    def _value(self, first: Floats, second: Floats) -> Floats:
        return first


@component
class RunnerUp(_Shares):
    """Top class, and whether the second largest softmax share exceeds a level.

    Parameters
    ----------
    level : float in (0, 1), default 0.25
        From 0.5 on no share exceeds it.

    Raises
    ------
    TypeError
        The level is no number.
    ValueError
        It is outside (0, 1).

    References
    ----------
    Papadopoulos (2013), "Reliable probabilistic classification with neural networks": taxonomy V3.

    Examples
    --------
    >>> RunnerUp(0.25).categories(np.array([[2.0, -2.0], [0.1, -0.1]]))
    array([0, 2])
    """

    level: float = param(fraction, default=0.25)

    def _value(self, first: Floats, second: Floats) -> Floats:
        return second


@component
class Gap(_Shares):
    """Top class, and whether its softmax share exceeds the second largest by more than a level.

    Parameters
    ----------
    level : float in (0, 1), default 0.5

    Raises
    ------
    TypeError
        The level is no number.
    ValueError
        It is outside (0, 1).

    References
    ----------
    Papadopoulos (2013), "Reliable probabilistic classification with neural networks": taxonomy V4.

    Examples
    --------
    >>> Gap(0.5).categories(np.array([[2.0, -2.0], [0.1, -0.1]]))
    array([2, 0])
    """

    level: float = param(fraction, default=0.5)

    def _value(self, first: Floats, second: Floats) -> Floats:
        return first - second


@component
class MarginBins(Refined):
    """Top class, and the bin of its margin: the largest score less the second largest.

    Parameters
    ----------
    edges : increasing numbers, default (0.5, 1.0, 1.5)
        Between the bins; a margin equal to an edge is in the upper one. They are fixed beforehand: edges
        chosen on the stream are `AdaptiveMarginBins()`.

    Raises
    ------
    ValueError
        No edge, or edges that do not increase.

    Examples
    --------
    Category top + c * bin:

    >>> MarginBins((0.5, 1.0)).categories(np.array([[0.2, -0.2], [0.6, -0.6], [-0.25, 0.25]]))
    array([0, 4, 3])
    """

    edges: Sequence[float] = param(increasing, default=(0.5, 1.0, 1.5))

    def of_grid(self, grid: Floats) -> Integers:
        """Return (n,) top class + c * bin of the margin, for a (c, n) grid of scores."""
        top, _, best, runner = compiled.best_two(grid)
        # A margin is a difference of scores on the grid: it carries no offset.
        return top + len(grid) * compiled.bins_of(best - runner, np.rint(np.array(self.edges) * GRID))


@component
class TopScoreBins(Refined):
    """Top class, and the bin of its score.

    On a machine whose scores are distances with a minus sign, `TopScoreBins([-far])` separates objects farther than
    `far` from every class from the others.

    Parameters
    ----------
    edges : increasing numbers
        Between the bins; a score equal to an edge is in the upper one.

    Raises
    ------
    ValueError
        No edge, or edges that do not increase.

    Examples
    --------
    Category top + c * bin:

    >>> TopScoreBins([0.0]).categories(np.array([[0.2, -0.2], [-0.6, -0.7], [-0.25, 0.25]]))
    array([2, 0, 3])
    """

    edges: Sequence[float] = param(increasing)

    def of_grid(self, grid: Floats) -> Integers:
        """Return (n,) top class + c * bin of its score, for a (c, n) grid of scores."""
        top, _, best, _ = compiled.best_two(grid)
        return top + len(grid) * compiled.bins_of(best, on_grid(np.array(self.edges)))


@component
class AdaptiveMarginBins(Refined):
    """Top class, and the quantile bin of the margin among the examples of equal top class.

    Among the m examples with one top class, the new one included, an example with r smaller margins is in bin
    floor(r b / m), b = floor(m^(1/3)). Equal margins share a bin. The resolution grows with the data, and the
    edges are computed from all examples alike, so the Venn predictor stays valid.

    Examples
    --------
    Eight examples, two bins; category top + c * bin:

    >>> margins = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.7])
    >>> AdaptiveMarginBins().categories(np.column_stack([margins, 0 * margins]))
    array([0, 0, 0, 0, 2, 2, 2, 2])
    """

    pointwise = False

    def margins(self, scores: Floats) -> tuple[Integers, Floats]:
        """Return the (n,) top classes of (n, c) scores, and the margins in whole steps of the grid."""
        top, _, best, runner = compiled.best_two(np.ascontiguousarray(on_grid(rows_of(scores).T)))
        return top, best - runner

    def of_grid(self, grid: Floats) -> Integers:
        """Return (n,) top class + c * quantile bin of the margin, for a (c, n) grid of scores."""
        return compiled.adaptive_bins(grid)

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the counts by the compiled path, which sorts nothing."""
        m = len(table.labels)
        negative, positive = on_grid(table.negative[:, :m]), on_grid(table.positive[:, :m])
        return Counts(*compiled.count_adaptive(negative, positive, table.labels, table.weights, table.test))


@component
class ScoreBins(OnGrid):
    """For two classes: the bin of half the difference of the scores, second class minus first.

    For machines that are exact opposites of each other, as one-against-all machines for two classes are, that is
    the score of the second class. A category stands for the class on whose side of 0 the centre of its
    bin lies; for the first class if the centre is 0.

    Parameters
    ----------
    bins : int >= 2, default 4
        Of equal width; the first and the last reach beyond the range.
    low, high : float, default -2, 2
        Range of the bins. A value on an edge is in the lower bin, so that a tie belongs to the first class.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; by `categories` and `count`, if there are not two classes.

    Examples
    --------
    >>> ScoreBins().categories(np.array([[3.0, -3.0], [0.5, -0.5], [0.0, 0.0], [-1.5, 1.5]]))
    array([0, 1, 1, 3])
    """

    bins: int = param(integer, 2, default=4)
    low: float = param(number, default=-2.0)
    high: float = param(number, default=2.0)

    def derive(self) -> None:
        """Refuse a range of no width."""
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low {self.low!r} and high {self.high!r}")

    def of_grid(self, grid: Floats) -> Integers:
        """Return (n,) the bins, for a (2, n) grid of scores.

        Raises
        ------
        ValueError
            There are more than two classes.
        """
        if len(grid) != 2:
            raise ValueError(f"classes must be two for {self!r}, got {len(grid)}")
        inner = np.linspace(self.low, self.high, self.bins + 1)[1:-1]
        # Counted from above, as an edge belongs to the bin below it.
        above: Integers = compiled.bins_of(grid[0] - grid[1], np.rint(-2 * GRID * inner))
        return self.bins - 1 - above

    def class_of(self, category: int, c: int) -> int:
        """Return the class on whose side of 0 the centre of the bin lies."""
        twice = 2 * self.low + (2 * category + 1) * (self.high - self.low) / self.bins
        return int(twice > 0)
