"""Venn-Abers over several calibration sets: folds, and classes one against one or one against all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np

from venn._compiled.hulls import ONE
from venn.maps.abers import Table, checked_blocks, venn_abers
from venn.maps.checks import class_scores, finite_array
from venn.maps.merges import Merge, checked_merge
from venn.parameters import class_codes, members
from venn.prediction import Floats, Integers, Label
from venn.saved import Saved, mergeable, saved


def cross_venn_abers(folds: Sequence[tuple[Any, Any]], scores: Any, merge: Merge | None = None) -> Floats:
    """Return the probability of label 1 at every score by cross Venn-Abers.

    Each fold is held out from the training of its own scorer and calibrates that scorer; the folds' pairs
    are merged into one probability.

    Each fold's pair is valid; the merge over folds is not proved to be.

    Parameters
    ----------
    folds : sequence of (scores, labels)
        Calibration scores (k_m,) of fold m by the scorer trained without it, and their binary labels.
    scores : (folds, n) finite numbers
        Scores of the n new objects by each of these scorers.
    merge : merge object, default LogMerge()

    Returns
    -------
    (n,) float64

    Raises
    ------
    TypeError, ValueError
        No fold, fewer or more rows of scores than folds, or input that `venn_abers` refuses.

    References
    ----------
    Vovk, Petej & Fedorova (2015), section 4.

    Examples
    --------
    >>> folds = [([0.1, 0.4, 0.9], [0, 1, 1]), ([0.2, 0.3, 0.8], [0, 0, 1])]
    >>> cross_venn_abers(folds, [[0.2, 0.7], [0.3, 0.8]]).round(3)
    array([0.414, 0.667])
    """
    merge = checked_merge(merge)
    folds = list(folds)
    rows = finite_array("scores", scores, dimensions=2)
    if not folds or len(rows) != len(folds):
        raise ValueError(f"scores must have one row for each of at least one fold, got {len(rows)} for {len(folds)}")
    pairs = np.array([venn_abers(s, y, row) for (s, y), row in zip(folds, rows, strict=True)])
    return merge.merge_folds(pairs[:, :, 0], pairs[:, :, 1])


class _ByClass(Saved):
    """Base of both ways to several classes: classes, merge, and the check of examples."""

    held_as = (("merge", "_merge"),)
    unnamed = 0

    tables: dict[tuple[int, ...], Table] | None = None  # by the codes of their classes

    def __init__(self, classes: Sequence[Label], merge: Merge | None = None) -> None:
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self._merge = checked_merge(merge)  # of p0 and p1; `merge` is of two calibrated objects

    @property
    def state(self) -> dict[str, Any]:
        """The distinct scores of each table and the examples at them, in order; None before calibration."""
        return {"tables": None if self.tables is None else [list(table.contents) for table in self.tables.values()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Be calibrated on the examples of a `state`; raise ValueError if it is not one."""
        super().restore(state)
        if state["tables"] is None:
            return
        keys = self._keys()
        made = [Table(*checked_blocks(*arrays)) for arrays in state["tables"]]
        if len(made) != len(keys):
            raise ValueError(f"tables must be {len(keys)}, of {len(self.classes)} classes, got {len(made)}")
        self.tables = dict(zip(keys, made, strict=True))

    def _keys(self) -> list[tuple[int, ...]]:
        """Return the codes of the classes of each table."""
        raise NotImplementedError

    def _examples(self, scores: Any, labels: Any) -> tuple[Floats, Integers]:
        matrix = class_scores(scores, len(self.classes))
        names = labels.tolist() if hasattr(labels, "tolist") else list(members("labels", labels, "labels"))
        if len(names) != len(matrix):
            raise ValueError(f"labels must be {len(matrix)}, one for each row of scores, got {len(names)}")
        codes = np.empty(len(names), np.int64)
        for i, name in enumerate(names):
            try:
                codes[i] = self._codes[name]
            except (KeyError, TypeError):
                raise ValueError(f"labels must be among {list(self.classes)!r}, got {name!r} at {i}") from None
        return matrix, codes

    def _made(self, scores: Floats, codes: Integers) -> dict[tuple[int, ...], Table]:
        """Return the tables of (k, c) scores and (k,) class codes."""
        raise NotImplementedError

    def calibrate(self, scores: Any, labels: Any) -> Self:
        """Calibrate on a new set and return the object.

        Parameters
        ----------
        scores : (k, c) finite numbers
            Column j ranks objects by how much they look like class j; from a scorer trained on other data.
        labels : (k,) of the classes
        """
        matrix, codes = self._examples(scores, labels)
        self.tables = self._made(matrix, codes)
        return self

    def merge(self, other: Self) -> Self:
        """Return a new object that is calibrated on the examples of both, which do not change.

        It answers like one calibrated on all the examples, to the last bit, whatever the order and grouping of merges;
        merging one that has not been calibrated changes nothing.

        Parameters
        ----------
        other : of the same class
            With the same classes and the same merge of p0 and p1; its scores are by the same scorer.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described.
        """
        mergeable(self, other)
        both = type(self)(self.classes, self._merge)
        mine, theirs = self.tables, other.tables
        if mine is None or theirs is None:
            both.tables = mine if theirs is None else theirs
        else:
            both.tables = {key: table.merge(theirs[key]) for key, table in mine.items()}
        return both

    def _calibrated(self) -> dict[tuple[int, ...], Table]:
        if self.tables is None:
            raise RuntimeError(f"{type(self).__name__} needs calibrate(scores, labels) before it is asked")
        return self.tables


@saved
class OneVsAllAbers(_ByClass):
    """Venn-Abers for several classes: each class against all others, by its own column of scores.

    `pairs` gives p0 and p1 of the event "class k" for each class, valid class by class; `predict_proba`
    merges each pair and divides by the sum, which loses the validity.

    Parameters
    ----------
    classes : sequence of at least 2 distinct labels
        In the order of the columns of scores.
    merge : merge object, default LogMerge()

    Raises
    ------
    TypeError
        `merge` is no merge object.
    ValueError
        Fewer than two classes, or one class twice.

    References
    ----------
    Vovk, Petej & Fedorova (2015) for the pairs; Manokhin (2017) for several classes.

    Examples
    --------
    >>> scores = [[2.0, 0.1, 0.3], [0.2, 1.5, 0.4], [0.1, 0.9, 1.1], [1.2, 0.8, 0.5]]
    >>> model = OneVsAllAbers(["a", "b", "c"]).calibrate(scores, ["a", "b", "c", "a"])
    >>> model.predict_proba([[1.0, 0.2, 0.3]]).round(3)
    array([[0.526, 0.263, 0.211]])
    """

    def _keys(self) -> list[tuple[int, ...]]:
        return [(j,) for j in range(len(self.classes))]

    def _made(self, scores: Floats, codes: Integers) -> dict[tuple[int, ...], Table]:
        return {(j,): Table(scores[:, j], ONE + (codes == j)) for (j,) in self._keys()}

    def pairs(self, scores: Any) -> Floats:
        """Return (n, c, 2): p0 and p1 of each class at (n, c) scores."""
        matrix = class_scores(scores, len(self.classes))
        tables = self._calibrated()
        return np.stack([table.read(matrix[:, j]) for (j,), table in tables.items()], axis=1)

    def predict_proba(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores; not valid."""
        pairs = self.pairs(scores)
        return _normalised(self._merge.merge(pairs[:, :, 0], pairs[:, :, 1]))


@saved
class OneVsOneAbers(_ByClass):
    """Venn-Abers for several classes: each pair of classes on its own examples, coupled.

    The pair (i, j) is calibrated on the examples of these two classes by the difference of their scores. (If scores
    are logarithms of probabilities, this is the same as the ratio.) The merged probabilities r_ij of i against j are
    coupled by p_i = 1 / (sum over j of 1 / r_ij - (c - 2)) and divided by their sum. Coupling loses the
    validity that each pair has among objects of its two classes.

    Parameters
    ----------
    classes : sequence of at least 2 distinct labels
        In the order of the columns of scores.
    merge : merge object, default LogMerge()

    Raises
    ------
    TypeError
        `merge` is no merge object.
    ValueError
        Fewer than two classes, or one class twice.

    References
    ----------
    Manokhin (2017), "Multi-class probabilistic classification using inductive and cross Venn-Abers predictors";
    the coupling is that of Price et al. (1995).

    Examples
    --------
    >>> scores = [[2.0, 0.1, 0.3], [0.2, 1.5, 0.4], [0.1, 0.9, 1.1], [1.2, 0.8, 0.5]]
    >>> model = OneVsOneAbers(["a", "b", "c"]).calibrate(scores, ["a", "b", "c", "a"])
    >>> model.predict_proba([[1.0, 0.2, 0.3]]).round(3)
    array([[0.5 , 0.25, 0.25]])
    """

    def _keys(self) -> list[tuple[int, ...]]:
        return list(combinations(range(len(self.classes)), 2))

    def _made(self, scores: Floats, codes: Integers) -> dict[tuple[int, ...], Table]:
        tables: dict[tuple[int, ...], Table] = {}
        for i, j in self._keys():
            here = (codes == i) | (codes == j)
            tables[i, j] = Table(_difference(scores[here], i, j), ONE + (codes[here] == i))
        return tables

    def predict_proba(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores; not valid."""
        matrix = class_scores(scores, len(self.classes))
        tables = self._calibrated()
        c = len(self.classes)
        ratios = np.empty((len(matrix), len(tables)))
        for column, ((i, j), table) in zip(ratios.T, tables.items(), strict=True):
            pair = table.read(_difference(matrix, i, j))
            column[:] = self._merge.merge(pair[:, 0], pair[:, 1])
        return coupled(ratios, c)


def coupled(ratios: Floats, c: int) -> Floats:
    """Return (n, c) probabilities of sum 1 from those of class i against j > i, (n, c (c - 1) / 2) by i, then j.

    p_i = 1 / (sum over j of 1 / r_ij - (c - 2)), divided by their sum: Price et al. (1995).
    """
    inverse = np.zeros((len(ratios), c))
    first, second = np.triu_indices(c, 1)
    with np.errstate(divide="ignore"):
        for i, j, r in zip(first.tolist(), second.tolist(), ratios.T, strict=True):
            inverse[:, i] += 1 / r
            inverse[:, j] += 1 / (1 - r)
        return _normalised(1 / (inverse - (c - 2)))


def _difference(matrix: Floats, i: int, j: int) -> Floats:
    with np.errstate(over="ignore"):
        return finite_array("differences of scores", matrix[:, i] - matrix[:, j])


def _normalised(p: Floats) -> Floats:
    return p / p.sum(axis=1, keepdims=True)
