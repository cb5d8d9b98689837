"""The contract between a taxonomy and a Venn predictor, and the base classes of taxonomies on scores."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from venn._compiled.categories import count_beside
from venn.covariates import CovariateShift, table_weights
from venn.machines.machine import Hypotheses, Machine, ScoreTable, under_each
from venn.parameters import Parameters, instance
from venn.prediction import Floats, Integers
from venn.saved import component, param


class Counts(NamedTuple):
    """The label counts of a Venn predictor, under every hypothesis."""

    labels: Integers  #: (c, c) row j: number of examples of each class in the new example's category, itself included
    categories: Integers  #: (c,) the new example's category


class Taxonomy(Protocol):
    """What a Venn predictor needs from a taxonomy."""

    @property
    def deleted(self) -> bool:
        """Whether it reads deleted scores: machines then expect that."""

    def count(self, hypotheses: Hypotheses) -> Counts:
        """Return the labels in the new example's category, under every hypothesis about its label."""

    def fixes_class(self, machine: Machine) -> bool:
        """Whether the new example's category stands for a class, the same one under every hypothesis."""

    def class_of(self, category: int, c: int) -> int:
        """Return the class, of c, that a category stands for; called only where `fixes_class`."""


class ByTable(Parameters):
    """Base of taxonomies that read a table of scores, training or deleted ones."""

    deleted = False

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
        raise NotImplementedError

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
class Deleted(Parameters):
    """A taxonomy on deleted scores: each example is scored by machines that have not learned it.

    A flexible machine fits the supposed label, so training scores follow every hypothesis and a taxonomy
    on them says nothing; deleted scores do not. They are a function of the bag and the example that treats
    all examples alike, the new one included, so the Venn predictor stays valid.

    Where the machine deletes exactly, the new example's scores do not depend on its supposed label. If
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
    >>> model = venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax()))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15])
    Multiprobability('no': [0.800, 1.000])
    """

    deleted = True

    taxonomy: ByTable = param(instance, ByTable, "a taxonomy on scores, such as Argmax()")

    def fixes_class(self, machine: Machine) -> bool:
        """Whether the new example's category stands for a class, the same one under every hypothesis."""
        return machine.deletes_exactly and self.taxonomy.determines_class

    def class_of(self, category: int, c: int) -> int:
        """Return the class that a category stands for."""
        return self.taxonomy.class_of(category, c)

    def count(self, hypotheses: Hypotheses) -> Counts:
        """Return the labels in the new example's category, under every hypothesis about its label."""
        return under_each(hypotheses.tables(True), self.taxonomy.count_table)


def weighable(taxonomy: Any) -> ByScores:
    """Return the map from scores to categories inside a taxonomy, or say that it has none."""
    inside = taxonomy.taxonomy if isinstance(taxonomy, Deleted) else taxonomy
    if not isinstance(inside, ByScores):
        raise TypeError(
            f"taxonomy must map scores to categories, as Argmax() does, deleted ones or not, for a CovariateShift, got "
            f"{taxonomy!r}"
        )
    return inside
