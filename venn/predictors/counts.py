"""Counting labels in the categories of a fixed scorer, and what many predictions by counts are in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.tally import replay_counts
from venn.machines.machine import grown
from venn.prediction import REALISED_ROW, CategoryClass, Floats, Integers, Label, Multiprobability, Rule
from venn.predictors.merging import Mergeable
from venn.taxonomies import ByScores

Bools = NDArray[np.bool_]


def shares(labels: NDArray[Any], ratios: Floats) -> Floats:
    """Return the label distributions of categories whose examples weigh by class.

    Where a label cannot come, the hypothesis that it has come is false, and its row may be anything. It is made the
    mean of the others, which moves neither bounds nor the mean of all.

    Parameters
    ----------
    labels : (..., c, c) numbers >= 0
        Row j: examples of each class in the category of the new one, itself included as one of class j.
    ratios : (c,) float64 >= 0, some > 0
        What an example of each class weighs.
    """
    masses = labels * ratios
    possible = ratios > 0
    totals = masses.sum(axis=-1, keepdims=True)
    rows: Floats = masses / np.where(totals > 0, totals, 1.0)
    if not possible.all():
        true = rows[..., possible, :]
        mean = np.clip(true.mean(axis=-2), true.min(axis=-2), true.max(axis=-2))  # means of equals may differ from them
        rows[..., ~possible, :] = mean[..., None, :]
    return rows


class Multiprobabilities:
    """Predictions for n objects by counts: what `Multiprobability` says of one, in arrays.

    With m the number of calibration examples in an object's category, row j of its multiprobability is
    (counts + 1{k = j}) / (m + 1), hence the interval of a class is [counts, counts + 1] / (m + 1). With ratios an
    example of class k counts as ratios[k] of them, the new one too.

    Parameters
    ----------
    counts : (n, c) numbers >= 0
        Calibration examples of each class in the category of each object.
    classes : sequence of c labels
    rule : Rule
        Picks the predicted class.
    category_classes : (n,) int64, optional
        Class of the category of each object, where categories stand for one.
    guaranteed : str, optional
        What is a theorem about each prediction; by default what the rule says.
    ratios : (c,) float64 >= 0, some > 0, optional
        What an example of each class weighs; 1 by default.

    Examples
    --------
    >>> import venn
    >>> block = Multiprobabilities(np.array([[0, 0], [1, 3]]), ("no", "yes"), venn.RowMean())
    >>> block.labels, block.lower, block.upper
    (['no', 'yes'], array([0. , 0.6]), array([1. , 0.8]))
    >>> block[1]
    Multiprobability('yes': [0.600, 0.800])
    """

    def __init__(
        self,
        counts: NDArray[Any],
        classes: Sequence[Label],
        rule: Rule,
        category_classes: Integers | None = None,
        guaranteed: str | None = None,
        ratios: Floats | None = None,
    ) -> None:
        self.ratios = ratios
        self.counts = counts.view()
        self.counts.setflags(write=False)
        self.classes = tuple(classes)
        self.rule = rule
        self.category_classes = category_classes
        self.guaranteed: str = getattr(rule, "guaranteed", REALISED_ROW) if guaranteed is None else guaranteed

    @staticmethod
    def join(blocks: Sequence[Multiprobabilities]) -> Multiprobabilities:
        """Return one block of the rows of all, in order; at least one block, all by the same rule."""
        first = blocks[0]
        if len(blocks) == 1:
            return first
        known = [b.category_classes for b in blocks if b.category_classes is not None]
        return Multiprobabilities(
            np.concatenate([b.counts for b in blocks]),
            first.classes,
            first.rule,
            np.concatenate(known) if known else None,
            first.guaranteed,
            first.ratios,
        )

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, i: int) -> Multiprobability:
        """Return the prediction for object i."""
        counts = self.counts[i]
        known = None if self.category_classes is None else int(self.category_classes[i])
        labels = counts + np.eye(len(self.classes))
        rows = labels / (counts.sum() + 1) if self.ratios is None else shares(labels, self.ratios)
        return Multiprobability(rows, self.classes, self.rule, known, self.guaranteed)

    @cached_property
    def sizes(self) -> NDArray[Any]:
        """(n,) number of calibration examples in each category."""
        sizes: NDArray[Any] = self.counts.sum(axis=1)
        return sizes

    @cached_property
    def index(self) -> Integers:
        """(n,) positions of the predicted classes."""
        if isinstance(self.rule, CategoryClass) and self.category_classes is not None:
            return self.category_classes
        return np.array([self[i].index for i in range(len(self))], np.int64)

    @property
    def labels(self) -> list[Label]:
        """The predicted classes."""
        return [self.classes[k] for k in self.index.tolist()]

    @property
    def lower(self) -> Floats:
        """(n,) smallest probabilities of the predicted classes over the hypotheses."""
        if self.ratios is not None:
            return self._weighted_bounds[0]
        lower: Floats = self.counts[np.arange(len(self)), self.index] / (self.sizes + 1)
        return lower

    @property
    def upper(self) -> Floats:
        """(n,) largest ones."""
        if self.ratios is not None:
            return self._weighted_bounds[1]
        upper: Floats = (self.counts[np.arange(len(self)), self.index] + 1) / (self.sizes + 1)
        return upper

    @cached_property
    def _weighted_bounds(self) -> tuple[Floats, Floats]:
        """(n,) smallest and largest probabilities of the predicted classes."""
        ratios, index = np.asarray(self.ratios), self.index
        masses = self.counts * ratios
        own, total = masses[np.arange(len(self)), index], masses.sum(axis=1)
        # Least under the hypothesis of the other class that weighs most; 1 where no other class can come.
        others = np.array([np.delete(ratios, k).max() for k in range(len(ratios))])[index]
        lower: Floats = np.divide(own, total + others, out=np.ones(len(self)), where=others > 0)
        upper: Floats = np.divide(
            own + ratios[index], total + ratios[index], out=np.zeros(len(self)), where=ratios[index] > 0
        )
        return lower, upper

    @property
    def width(self) -> Floats:
        """(n,) upper minus lower."""
        return self.upper - self.lower

    @property
    def probabilities(self) -> Floats:
        """(n, c, c) multiprobabilities."""
        rows: Floats = self.counts[:, None, :] + np.eye(len(self.classes))
        if self.ratios is not None:
            return shares(rows, self.ratios)
        rows /= (self.sizes + 1)[:, None, None]
        return rows

    @property
    def proba(self) -> Floats:
        """(n, c) means of the rows: the point forecasts."""
        mean: Floats = self.probabilities.mean(axis=1)
        return mean

    def __repr__(self) -> str:
        return f"Multiprobabilities({len(self)} objects, classes {list(self.classes)!r})"


def distinct(categories: Integers) -> tuple[list[int], Integers]:
    """Return the v distinct categories, and (n,) which of them is each example's."""
    n = len(categories)
    if n == 1:
        return categories.tolist(), np.zeros(1, np.int64)
    if n > 0:
        low = int(categories.min())
        span = int(categories.max()) - low + 1
        if span <= 4 * n + 64:  # a table: categories stand close together, as most do
            met = np.zeros(span, np.int64)
            met[categories - low] = 1
            return (np.flatnonzero(met) + low).tolist(), (np.cumsum(met) - 1)[categories - low]
    values, which = np.unique(categories, return_inverse=True)
    return values.tolist(), which.astype(np.int64, copy=False)


class Counter(Mergeable):
    """Base of readers that count the calibration examples in a category.

    A reader is told the scores of calibration examples, all by one scorer, and asked about those of others.
    `clear` makes it forget them, when the scorer changes.
    """

    def __init__(
        self, taxonomy: ByScores, classes: tuple[Label, ...], rule: Rule, ratios: Floats | None = None
    ) -> None:
        self.taxonomy = taxonomy
        self.classes = classes
        self.rule = rule
        self.ratios = ratios
        self.clear()

    def _parameters(self) -> dict[str, Any]:
        return {"taxonomy": self.taxonomy, "classes": self.classes, "rule": self.rule, "ratios": self.ratios}

    def clear(self) -> None:
        """Forget all calibration examples."""
        raise NotImplementedError

    def nothing(self, n: int) -> Multiprobabilities:
        """Return predictions for n objects that say nothing, for want of a scorer: all rows certain of their own."""
        return self._block(np.zeros((n, len(self.classes)), np.int64), np.zeros(n, np.int64))

    def join(self, blocks: list[Multiprobabilities]) -> Multiprobabilities:
        """Return one block of all, in order."""
        return Multiprobabilities.join(blocks)

    def _block(self, counts: NDArray[Any], category_classes: Integers) -> Multiprobabilities:
        stands = self.taxonomy.determines_class
        known = category_classes if stands else None
        return Multiprobabilities(counts, self.classes, self.rule, known, ratios=self.ratios)

    def _categories(self, scores: Floats) -> Integers:
        return np.asarray(self.taxonomy.categories(scores), np.int64)

    def _classes_of(self, categories: list[int]) -> Integers:
        """Return the class that each category stands for; 0 where they stand for none."""
        if not self.taxonomy.determines_class:
            return np.zeros(len(categories), np.int64)
        c = len(self.classes)
        known = {category: self.taxonomy.class_of(category, c) for category in set(categories)}
        return np.array([known[category] for category in categories], np.int64)


class CategoryCounts(Counter):
    """For taxonomies that look at one example at a time: one row of counts for each category met.

    An example costs O(c) beside its category, memory is O(c) for each category.
    """

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._places: dict[int, int] = {}
        self._counts = np.zeros((1, len(self.classes)), np.int64)  # one row more than categories, of zeros

    def _rows(self, categories: list[int]) -> Integers:
        """Return the row of counts of each of distinct categories, new ones made."""
        places = self._places
        for category in categories:
            places.setdefault(category, len(places))
        if len(places) >= len(self._counts):
            self._counts = grown(self._counts, 2 * len(places), len(self.classes))
        return np.array([places[category] for category in categories], np.int64)

    def _known(self, categories: list[int]) -> NDArray[np.int64]:
        """Return the (v, c) counts of distinct categories; zeros where one has not been met."""
        nowhere = len(self._counts) - 1
        return self._counts[[self._places.get(category, nowhere) for category in categories]]

    def _table(self, scores: Floats, codes: Integers) -> tuple[list[int], NDArray[np.int64]]:
        """Return the v distinct categories of examples, and (v, c) how many of each class are in them."""
        values, which = distinct(self._categories(scores))
        c = len(self.classes)
        return values, np.bincount(which * c + codes, minlength=len(values) * c).reshape(-1, c)

    def _hold(self, one: CategoryCounts, other: CategoryCounts) -> None:
        values = sorted({*one._places, *other._places})
        rows = self._rows(values)
        self._counts[rows] = one._known(values) + other._known(values)

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        values, table = self._table(scores, codes)
        rows = self._rows(values)  # before the counts are looked at: they may move
        self._counts[rows] += table

    def predict(self, scores: Floats) -> Multiprobabilities:
        """Return the predictions for n objects of (n, c) scores."""
        values, which = distinct(self._categories(scores))
        return self._block(self._known(values)[which], self._classes_of(values)[which])

    def predict_table(self, scores: Floats, codes: Integers) -> tuple[Multiprobabilities, NDArray[np.int64]]:
        """Return the predictions that occur among n objects, each once, and (v, c) how often with each label.

        Objects of one category have one prediction: so a collection costs little more than its scores.
        """
        values, table = self._table(scores, codes)
        return self._block(self._known(values), self._classes_of(values)), table

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Multiprobabilities:
        """Predict, then take in where it calibrates, each example in turn; return the predictions."""
        values, which = distinct(self._categories(scores))
        before = np.empty(scores.shape, np.int64)
        places = self._rows(values)[which]
        replay_counts(self._counts, places, codes, calibrates, before)
        return self._block(before, self._classes_of(values)[which])


class ScoreBag(Counter):
    """For taxonomies that look at all examples: their scores, put into categories anew for every object.

    Memory is O(c) for each of m calibration examples, and so is time for an object, beside what the taxonomy
    takes for m + 1 rows: O(m log m) where it sorts, as `AdaptiveMarginBins` does.
    """

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._n = 0
        self._scores = np.zeros((0, len(self.classes)))
        self._codes = np.zeros(0, np.int64)

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        n = self._n + len(scores)
        if n >= len(self._scores):  # one row more than examples, for the new object
            self._scores = grown(self._scores, 2 * n + 1, len(self.classes))
            self._codes = grown(self._codes, 2 * n + 1)
        self._scores[self._n : n] = scores
        self._codes[self._n : n] = codes
        self._n = n

    def _hold(self, one: ScoreBag, other: ScoreBag) -> None:
        for part in (one, other):
            self.add(part._scores[: part._n], part._codes[: part._n])

    def predict(self, scores: Floats) -> Multiprobabilities:
        """Return the predictions for n objects of (n, c) scores, each as if it came alone."""
        m, c = self._n, len(self.classes)
        counts = np.zeros((len(scores), c), np.int64)
        own = []
        bag = np.concatenate([self._scores[:m], np.empty((1, c))])
        for row, beside in zip(scores, counts, strict=True):
            bag[m] = row
            categories = self._categories(bag)
            beside[:] = np.bincount(self._codes[:m][categories[:m] == categories[m]], minlength=c)
            own.append(int(categories[m]))
        return self._block(counts, self._classes_of(own))

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Multiprobabilities:
        """Predict, then take in where it calibrates, each example in turn; return the predictions."""
        blocks = [self.nothing(0)]
        for i in range(len(scores)):
            blocks.append(self.predict(scores[i : i + 1]))
            if calibrates[i]:
                self.add(scores[i : i + 1], codes[i : i + 1])
        return Multiprobabilities.join(blocks)


def counter(
    taxonomy: ByScores, classes: tuple[Label, ...], rule: Rule, ratios: Floats | None = None
) -> CategoryCounts | ScoreBag:
    """Return the reader that the taxonomy needs; an example of each class weighs by the (c,) ratios, if given."""
    kind = CategoryCounts if taxonomy.pointwise else ScoreBag
    return kind(taxonomy, classes, rule, ratios)
