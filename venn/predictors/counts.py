"""Readers of scores that count calibration labels by category, while the scorer stays the same."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from venn._compiled.counting import cube_root
from venn._compiled.scorecard import replay_counts
from venn.machines.machine import grown
from venn.prediction import REALISED_ROW, Bools, Floats, Integers, Label, Multiprobability, Rule
from venn.predictors.blocks import ManyMultiprobabilities
from venn.predictors.merging import Mergeable
from venn.saved import array
from venn.taxonomies import AdaptiveMarginBins, ByScores


def distinct(categories: Integers) -> tuple[list[int], Integers]:
    """Return the v distinct categories, and (n,) the position of each example's category among them."""
    n = len(categories)
    if n == 1:
        return categories.tolist(), np.zeros(1, np.int64)
    if n > 0:
        low = int(categories.min())
        span = int(categories.max()) - low + 1
        if span <= 4 * n + 64:  # a table: categories are close together, as in most cases
            met = np.zeros(span, np.int64)
            met[categories - low] = 1
            return (np.flatnonzero(met) + low).tolist(), (np.cumsum(met) - 1)[categories - low]
    values, which = np.unique(categories, return_inverse=True)
    return values.tolist(), which.astype(np.int64, copy=False)


class Counter(Mergeable):
    """Base of readers that count the calibration examples in a category.

    A reader receives the scores of calibration examples, all by one scorer, and then predicts from scores of new
    objects. `clear` makes it forget the examples when the scorer changes.
    """

    def __init__(
        self, taxonomy: ByScores, classes: tuple[Label, ...], rule: Rule, ratios: Floats | None = None
    ) -> None:
        self.taxonomy = taxonomy
        self.classes, self.c = classes, len(classes)
        self.rule = rule
        self.ratios = ratios
        self.clear()

    def nothing(self, n: int) -> ManyMultiprobabilities:
        """Return predictions for n objects while there is no scorer: each row is certain of its own class."""
        return self._block(np.zeros((n, len(self.classes)), np.int64), np.zeros(n, np.int64))

    def _block(self, counts: NDArray[Any], category_classes: Integers) -> ManyMultiprobabilities:
        stands = self.taxonomy.determines_class
        known = category_classes if stands else None
        return ManyMultiprobabilities(counts, self.classes, self.rule, known, ratios=self.ratios)

    def _categories(self, scores: Floats) -> Integers:
        return np.asarray(self.taxonomy.categories(scores), np.int64)

    def _classes_of(self, categories: list[int]) -> Integers:
        """Return the class that each category stands for; 0 if categories stand for none."""
        if not self.taxonomy.determines_class:
            return np.zeros(len(categories), np.int64)
        c = len(self.classes)
        known = {category: self.taxonomy.class_of(category, c) for category in set(categories)}
        return np.array([known[category] for category in categories], np.int64)


class CategoryCounts(Counter):
    """For taxonomies that look at one example at a time: one row of counts for each category seen.

    An example costs O(c) besides its category; memory is O(c) for each category.
    """

    holds: ClassVar = {
        "categories": array(None, of=np.int64),
        "counts": array(None, "classes", of=np.int64, below=1 << 53),
    }

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._last: tuple[Floats, int] | None = None  # the scores of one object, and its category
        self._eye = np.eye(len(self.classes))
        self._places: dict[int, int] = {}
        self._counts = np.zeros((1, len(self.classes)), np.int64)  # one extra row of zeros

    def _rows(self, categories: list[int]) -> Integers:
        """Return the row of counts of each distinct category; rows of new categories are made."""
        places = self._places
        for category in categories:
            places.setdefault(category, len(places))
        if len(places) >= len(self._counts):
            self._counts = grown(self._counts, 2 * len(places), len(self.classes))
        return np.array([places[category] for category in categories], np.int64)

    def _known(self, categories: list[int]) -> NDArray[np.int64]:
        """Return the (v, c) counts of distinct categories; zeros for unseen ones."""
        nowhere = len(self._counts) - 1
        return self._counts[[self._places.get(category, nowhere) for category in categories]]

    def _table(self, scores: Floats, codes: Integers) -> tuple[list[int], NDArray[np.int64]]:
        """Return the v distinct categories of examples, and (v, c) how many of each class are in them."""
        values, which = distinct(self._categories(scores))
        c = len(self.classes)
        return values, np.bincount(which * c + codes, minlength=len(values) * c).reshape(-1, c)

    @property
    def state(self) -> dict[str, Any]:
        """The categories and their counts, in an order that does not depend on the order of the examples."""
        categories = sorted(self._places)
        return {"categories": np.array(categories, np.int64), "counts": self._known(categories)}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        rows = self._rows(state["categories"].tolist())
        self._counts[rows] += state["counts"]

    def refuse(self, state: dict[str, Any]) -> None:
        """Raise a ValueError if this is not a `state`."""
        super().refuse(state)
        self._classes_of(state["categories"].tolist())  # refuses categories that stand for no class

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        if len(scores) == 1:
            category = self._category(scores)
            if category not in self._places:
                self._rows([category])  # first, as this may move the counts
            self._counts[self._places[category], codes[0]] += 1
            return
        values, table = self._table(scores, codes)
        rows = self._rows(values)  # first, as this may move the counts
        self._counts[rows] += table

    def _category(self, scores: Floats) -> int:
        """Return the category of one object of (1, c) scores; that of the last one is kept."""
        if self._last is None or self._last[0] is not scores:
            self._last = scores, int(self._categories(scores)[0])
        return self._last[1]

    def predict_one(self, scores: Floats) -> Multiprobability:
        """Return the prediction for one object of (1, c) scores."""
        if self.ratios is not None:
            return self.predict(scores)[0]
        category = self._category(scores)
        counts = self._counts[self._places.get(category, len(self._counts) - 1)]
        known = self.taxonomy.class_of(category, len(self.classes)) if self.taxonomy.determines_class else None
        rows = (counts + self._eye) / (int(counts.sum()) + 1)
        guaranteed = getattr(self.rule, "guaranteed", REALISED_ROW)
        return Multiprobability.unchecked(
            rows, self.classes, rule=self.rule, category_class=known, guaranteed=guaranteed
        )

    def predict(self, scores: Floats) -> ManyMultiprobabilities:
        """Return the predictions for n objects of (n, c) scores."""
        values, which = distinct(self._categories(scores))
        return self._block(self._known(values)[which], self._classes_of(values)[which])

    def predict_table(self, scores: Floats, codes: Integers) -> tuple[ManyMultiprobabilities, NDArray[np.int64]]:
        """Return the distinct predictions for n objects, and (v, c) how often each occurs with each label.

        Objects of one category have one prediction, so a collection costs little more than its scores.
        """
        values, table = self._table(scores, codes)
        return self._block(self._known(values), self._classes_of(values)), table

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> ManyMultiprobabilities:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        values, which = distinct(self._categories(scores))
        before = np.empty(scores.shape, np.int64)
        places = self._rows(values)[which]
        replay_counts(self._counts, places, codes, calibrates, before)
        return self._block(before, self._classes_of(values)[which])


class ScoredExamples(Mergeable):
    """Base of readers that keep calibration examples as they came: scores of `c` classes, and class codes."""

    c: int

    holds: ClassVar = {"scores": array(None, "c"), "codes": array(None, of=np.int64, below="c")}

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._n = 0
        self._scores, self._codes = np.zeros((0, self.c)), np.zeros(0, np.int64)

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        start, self._n = self._n, self._n + len(scores)
        if self._n > len(self._scores):
            self._scores, self._codes = grown(self._scores, 2 * self._n, self.c), grown(self._codes, 2 * self._n)
        self._scores[start : self._n], self._codes[start : self._n] = scores, codes

    @property
    def examples(self) -> tuple[Floats, Integers]:
        """(n, c) scores and (n,) class codes of the calibration examples."""
        return self._scores[: self._n], self._codes[: self._n]

    @property
    def state(self) -> dict[str, Any]:
        """Scores and class codes."""
        return dict(zip(("scores", "codes"), self.examples, strict=True))

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        self.add(state["scores"], state["codes"])


class ScoreBag(ScoredExamples, Counter):
    """For taxonomies that look at all examples: keeps the scores and computes all categories anew for every object.

    Memory is O(c) for each of m calibration examples, and so is the time for an object, besides the taxonomy's own
    for m + 1 rows.
    """

    def predict(self, scores: Floats) -> ManyMultiprobabilities:
        """Return the predictions for n objects of (n, c) scores, each as if it were alone."""
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


class MarginBag(ScoreBag):
    """For `AdaptiveMarginBins`: also keeps the margins of each top class in ascending order, so nothing is sorted anew.

    Of M margins with an object's top class, those in its bin are neighbours, some M^(2/3) of them: an object costs
    O(log M + M^(2/3)) besides its scores, and an example that joins moves O(M) numbers at once.
    """

    taxonomy: AdaptiveMarginBins

    def clear(self) -> None:
        """Forget all calibration examples."""
        super().clear()
        self._ordered = 0  # number of first examples whose margins are in order
        self._margins = [np.zeros(0) for _ in self.classes]  # by top class
        self._labels = [np.zeros(0, np.int64) for _ in self.classes]  # class codes of the same examples

    def _put_in_order(self) -> None:
        new = slice(self._ordered, self._n)
        top, margins = self.taxonomy.margins(self._scores[new])
        codes = self._codes[new]
        for t in np.unique(top).tolist():
            here = np.flatnonzero(top == t)
            here = here[margins[here].argsort(kind="stable")]
            places = self._margins[t].searchsorted(margins[here])
            self._margins[t] = np.insert(self._margins[t], places, margins[here])
            self._labels[t] = np.insert(self._labels[t], places, codes[here])
        self._ordered = self._n

    def predict(self, scores: Floats) -> ManyMultiprobabilities:
        """Return the predictions for n objects of (n, c) scores, each as if it were alone."""
        if self._ordered < self._n:
            self._put_in_order()
        c = len(self.classes)
        counts, own = np.zeros((len(scores), c), np.int64), []
        tops, margins = self.taxonomy.margins(scores)
        for beside, t, margin in zip(counts, tops.tolist(), margins.tolist(), strict=True):
            bin_, stretch = quantile_bin(self._margins[t], margin)
            beside[:] = np.bincount(self._labels[t][stretch], minlength=c)
            own.append(t + c * bin_)
        return self._block(counts, self._classes_of(own))


def quantile_bin(ordered: Floats, value: float) -> tuple[int, slice]:
    """Return the quantile bin of a value that joins (M,) ascending ones, and the slice of those in it.

    Of the m = M + 1 values, one with r smaller values is in bin floor(r b / m), b = floor(m^(1/3)), as in
    `AdaptiveMarginBins`: equal values share the bin of the first of them.
    """
    m = len(ordered) + 1
    bins = int(cube_root(m))
    below = int(ordered.searchsorted(value))
    bin_ = below * bins // m
    # Ranks from `first` up to `last`, excluded, are in the bin: -(-a // b) is a / b rounded up.
    first, last = -(-bin_ * m // bins), -(-(bin_ + 1) * m // bins)
    start = int(ordered.searchsorted(ordered[first - 1], "right")) if first > 0 else 0
    stop = int(ordered.searchsorted(value, "right"))
    if last >= 2 and m > 1:  # after the new value, ranks are positions plus one
        stop = max(stop, int(ordered.searchsorted(ordered[min(last, m) - 2], "right")))
    return bin_, slice(start, stop)


def counter(
    taxonomy: ByScores, classes: tuple[Label, ...], rule: Rule, ratios: Floats | None = None
) -> CategoryCounts | ScoreBag:
    """Return the reader for the taxonomy; with (c,) ratios, an example of each class has that weight."""
    if taxonomy.pointwise:
        return CategoryCounts(taxonomy, classes, rule, ratios)
    kind = MarginBag if type(taxonomy) is AdaptiveMarginBins else ScoreBag
    return kind(taxonomy, classes, rule, ratios)
