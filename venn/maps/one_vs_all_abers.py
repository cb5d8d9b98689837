"""Venn-Abers for several classes: each class against all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from venn._compiled.hulls import ONE
from venn.maps.abers import Table, checked_blocks
from venn.maps.contract import class_scores
from venn.maps.merges import Merge, checked_merge
from venn.parameters import class_codes, members
from venn.prediction import Floats, Integers, Label
from venn.saved import Saved, mergeable, saved


@saved
class OneVsAllAbers(Saved):
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

    held_as = (("merge", "_merge"),)
    unnamed = 0

    tables: list[Table] | None = None  # by class

    def __init__(self, classes: Sequence[Label], merge: Merge | None = None) -> None:
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self._merge = checked_merge(merge)  # of p0 and p1; the method `merge` joins two calibrated objects

    @property
    def state(self) -> dict[str, Any]:
        """The distinct scores of each table and the examples at them, in order; None before calibration."""
        return {"tables": None if self.tables is None else [list(table.contents) for table in self.tables]}

    def restore(self, state: dict[str, Any]) -> None:
        """Be calibrated on the examples of a `state`; raise ValueError if it is not one."""
        super().restore(state)
        if state["tables"] is None:
            return
        made = [Table(*checked_blocks(*arrays)) for arrays in state["tables"]]
        if len(made) != len(self.classes):
            raise ValueError(f"tables must be {len(self.classes)}, one for each class, got {len(made)}")
        self.tables = made

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

    def calibrate(self, scores: Any, labels: Any) -> Self:
        """Calibrate on a new set and return the object.

        Parameters
        ----------
        scores : (k, c) finite numbers
            Column j ranks objects by how much they look like class j; from a scorer trained on other data.
        labels : (k,) of the classes
        """
        matrix, codes = self._examples(scores, labels)
        self.tables = [Table(matrix[:, k], ONE + (codes == k)) for k in range(len(self.classes))]
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
            both.tables = [one.merge(other) for one, other in zip(mine, theirs, strict=True)]
        return both

    def pairs(self, scores: Any) -> Floats:
        """Return (n, c, 2): p0 and p1 of each class at (n, c) scores."""
        matrix = class_scores(scores, len(self.classes))
        if self.tables is None:
            raise RuntimeError(f"{type(self).__name__} needs calibrate(scores, labels) before it is asked")
        return np.stack([table.read(column) for table, column in zip(self.tables, matrix.T, strict=True)], axis=1)

    def predict_proba(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores; not valid."""
        pairs = self.pairs(scores)
        p = self._merge.merge(pairs[:, :, 0], pairs[:, :, 1])
        return p / p.sum(axis=1, keepdims=True)
