"""Trains scorers on folds and calibrates by their held-out scores, with a class of answers for each method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from venn._compiled.hulls import LIMIT
from venn.maps.abers import VennAbers
from venn.maps.contract import ScoreMap
from venn.maps.merges import Merge, checked_merge
from venn.maps.one_vs_all import OneVsAll
from venn.parameters import Parameters
from venn.prediction import NOTHING, Bools, Floats, Integers, RowMean
from venn.predictors.blocks import ManyMultiprobabilities
from venn.predictors.counts import counter
from venn.predictors.inductive import checked_taxonomy
from venn.taxonomies import ByScores
from venn.turns import TakesTurns, asks, turn_of

FINEST = 1e6  # largest number of steps in a unit of scores, the same as for taxonomies
FEW = 30  # examples of a fold that calibrate: with fewer, one map of all folds is as sharp or sharper on all we tried


class CrossVennAbers(Parameters):
    """Venn-Abers in every fold, merged over the folds: the method that `ProbabilitySVC` uses by default.

    Each fold's SVM scores the new object, and that fold's calibration set gives p0 and p1 for every class
    against all others. `merge` makes one probability from all folds' pairs. Where folds calibrate with fewer than 30
    examples on average, the scores of all folds make one calibration set, and the new object's score is the median over
    the SVMs.

    Parameters
    ----------
    merge : merge object, default LogMerge()

    Raises
    ------
    TypeError
        `merge` is not a merge object, or has no method 'merge_folds'.

    References
    ----------
    Vovk, Petej & Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees of
    validity", arXiv:1511.00213, section 4; Manokhin (2017) for several classes.

    Examples
    --------
    >>> CrossVennAbers()
    CrossVennAbers(merge=LogMerge())
    """

    def __init__(self, merge: Merge | None = None) -> None:
        self.merge = checked_merge(merge)
        if not callable(getattr(self.merge, "merge_folds", None)):
            raise TypeError(f"merge must have a method 'merge_folds', as LogMerge() has, got {merge!r}")


def rows_of(options: dict[str, Any], n: int, rows: Integers) -> dict[str, Any]:
    """Return the options, with only these rows of options that have one row for each of n examples."""

    def has_rows(value: Any) -> bool:
        return value is not None and not isinstance(value, str | dict) and np.ndim(value) > 0 and len(value) == n

    return {name: _safe_indexing(value, rows) if has_rows(value) else value for name, value in options.items()}


def disjoint_splits(
    cv: Any, X: Any, y: Any, present: Any, options: dict[str, Any] | None = None, classes: bool = True
) -> Iterator[tuple[Integers, Integers]]:
    """Yield training and calibration indices of each fold, among examples with weight > 0.

    Errors of `cv` are raised where they appear. `options` are passed to the splitter's `split`. Whether labels are
    `classes` decides what an integer `cv` means.
    """
    every = np.arange(len(y))
    if cv is None or isinstance(cv, Integral):
        every = every[present]
    m = -1
    splitter = check_cv(cv, y[every], classifier=classes)
    own = rows_of(options or {}, len(y), every)
    for m, parts in enumerate(splitter.split(_safe_indexing(X, every), y[every], **own)):
        training, calibration = (every[part] for part in parts)
        training, calibration = training[present[training]], calibration[present[calibration]]
        for name, part in ("train", training), ("calibrate", calibration):
            if len(part) == 0:
                raise ValueError(f"cv must leave examples that {name} in each fold, got none in fold {m}")
        both = np.intersect1d(training, calibration)
        if len(both) > 0:
            raise ValueError(
                f"cv must keep examples that calibrate out of training, got {len(both)} that do both in fold {m}"
            )
        yield training, calibration
    if m < 0:
        raise ValueError(f"cv must give at least one fold, got none from {cv!r}")


def _scale(X: Any, weights: Floats) -> float:
    """Return gamma="scale" with rows counted by weight; `SVC` counts each once."""
    share = weights / weights.sum()
    if issparse(X):
        # A sparse matrix, unlike a sparse array, has np.matrix as means.
        square, mean = (float(share @ np.ravel(of.mean(axis=1))) for of in (X.multiply(X), X))
        variance = square - mean**2
    else:
        mean = share @ X.mean(axis=1)
        variance = float(share @ ((X - mean) ** 2).mean(axis=1))
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


class FoldScorer:
    """SVMs of each class against all others, trained on some rows; for two classes one SVM.

    If none or all of these rows belong to a class, its score is -1 or 1 everywhere: the SVM of a single class.
    """

    def __init__(self, svc: Any, X: Any, codes: Integers, c: int, weights: Floats | None, rows: Integers) -> None:
        self._pairwise = svc.kernel == "precomputed"
        self._rows = rows
        own = self._columns(X[rows])
        w = None if weights is None else weights[rows]
        if w is not None and svc.gamma == "scale" and not self._pairwise:
            svc.gamma = _scale(own, w)
        self._classes = c
        self._steps = min(max(np.rint(0.1 / svc.tol), 1.0), FINEST)
        self._machines: list[Any] = []
        for k in _events(c):
            y = codes[rows] == k
            lone = y.all() or not y.any()
            self._machines.append((1.0 if y[0] else -1.0) if lone else copy(svc).fit(own, y, w))

    def _columns(self, X: Any) -> Any:
        return X[:, self._rows] if self._pairwise else X

    @property
    def iterations(self) -> Integers:
        """Number of steps of the solver of each SVM, 0 where there was nothing to solve."""
        return np.array([0 if isinstance(m, float) else m.n_iter_.max() for m in self._machines], np.int32)

    def __call__(self, X: Any) -> Floats:
        """Return (n, c) scores on the grid."""
        own = self._columns(X)
        f = np.empty((len(self._machines), X.shape[0]))
        for row, machine in zip(f, self._machines, strict=True):
            row[:] = machine if isinstance(machine, float) else machine.decision_function(own)
        # Free support vectors of one SVM score 1 or -1 up to its tolerance; in another fold these must be ties.
        f = np.rint(f * self._steps) / self._steps + 0.0
        scores: Floats = np.concatenate([-f, f]).T if self._classes == 2 else f.T
        return np.ascontiguousarray(scores)


class CrossFold(NamedTuple):
    """A scorer, X to (n, c) scores, and the examples that calibrate it: (k, c) scores, (k,) codes and weights."""

    scorer: Callable[[Any], Floats]
    scores: Floats
    codes: Integers
    weights: Floats


class Median:
    """The median of several scorers' scores; if they agree it equals their score to the last bit."""

    def __init__(self, scorers: Sequence[Any]) -> None:
        self._scorers = scorers

    def __call__(self, X: Any) -> Floats:
        """Return (n, c) scores."""
        each = np.sort([scorer(X) for scorer in self._scorers], axis=0)
        low, high = each[(len(each) - 1) // 2], each[len(each) // 2]
        middle: Floats = low / 2 + high / 2  # the sum may overflow
        return np.where(low == high, low, middle)


def large_enough(folds: Sequence[CrossFold]) -> Sequence[CrossFold]:
    """Return the folds, or one joint fold if they have fewer than `FEW` examples on average.

    A Venn predictor with m examples gives no probability nearer to 0 or 1 than 1 / (m + 1). So folds of one example say
    next to nothing, however many there are.
    """
    scorers, scores, codes, weights = (list(part) for part in zip(*folds, strict=True))
    if len(folds) == 1 or sum(w.sum() for w in weights) >= FEW * len(folds):
        return folds
    return [CrossFold(Median(scorers), np.concatenate(scores), np.concatenate(codes), np.concatenate(weights))]


def _events(c: int) -> Sequence[int]:
    """Return the classes that are separated from all others; for two classes the second, which settles the first."""
    return (1,) if c == 2 else range(c)


def _of_classes(p: Floats) -> Floats:
    """Return (n, c) probabilities from those (n, events) of each event: the complement, or shares of the sum."""
    if p.shape[1] == 1:
        return np.column_stack([1 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.full(p.shape, 1 / p.shape[1]), where=total > 0)


class Mapped:
    """One map, fitted to the held-out scores of all folds, applied to the scores of an SVM trained on everything."""

    def __init__(self, score_map: ScoreMap, folds: Sequence[CrossFold], scorer: FoldScorer, c: int) -> None:
        self._scorer = scorer
        of_all = bool(getattr(score_map, "of_all_classes", False))
        self._binary = c == 2 and not of_all
        f = np.concatenate([fold.scores for fold in folds])
        y = np.concatenate([fold.codes for fold in folds])
        w = np.concatenate([fold.weights for fold in folds])
        several = score_map if of_all else OneVsAll(score_map)
        self._fitted = score_map.fit(f[:, 1], y, w) if self._binary else several.fit(f, y, w)

    def scores(self, X: Any) -> Floats:
        """Return (n, c) scores."""
        return self._scorer(X)

    def proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities."""
        f = self._scorer(X)
        return _of_classes(self._fitted(f[:, 1])[:, None]) if self._binary else self._fitted(f)

    def interval(self, X: Any) -> Floats:
        """Raise: a map gives no bounds. Called if a Venn method was set after the fit."""
        raise AttributeError("method was a map when fit was called, which gives no interval: call fit again")


class _EveryFold(TakesTurns):
    """Base of answers to which each fold contributes by its own scorer."""

    def __init__(self, folds: Sequence[CrossFold]) -> None:
        self._scorers = [fold.scorer for fold in folds]

    @asks
    def scores(self, X: Any) -> Floats:
        """Return (n, c) scores, means over the folds."""
        return np.mean([scorer(X) for scorer in self._scorers], axis=0)

    @staticmethod
    def _counted(fold: CrossFold) -> tuple[Floats, Integers]:
        """Return scores and codes, each example repeated by its weight, a whole number."""
        times = fold.weights.astype(np.int64)
        return fold.scores.repeat(times, axis=0), fold.codes.repeat(times)


class Abers(_EveryFold):
    """Venn-Abers of each fold, class against all others; threads may read while another one adds."""

    def __init__(self, merge: Merge | None, folds: Sequence[CrossFold], c: int) -> None:
        folds = large_enough(folds)
        super().__init__(folds)
        self._merge = checked_merge(merge)
        self._events = _events(c)
        self._calibrators: list[list[VennAbers]] = [[] for _ in folds]
        for fold, calibrators in zip(folds, self._calibrators, strict=True):
            known = self._known(fold)
            calibrators += [VennAbers() for _ in known]
            self._insert(calibrators, known)

    def __len__(self) -> int:
        """Number of examples that calibrate the first fold."""
        return len(self._calibrators[0][0])

    def _known(self, fold: CrossFold) -> list[tuple[Floats, Bools]]:
        """Return scores and truth for each calibrator from the examples of a fold."""
        f, y = self._counted(fold)
        return [(f[:, k], y == k) for k in self._events]

    @staticmethod
    def _insert(calibrators: Sequence[VennAbers], known: Sequence[tuple[Floats, Bools]]) -> None:
        for calibrator, examples in zip(calibrators, known, strict=True):
            calibrator.insert_many(*examples)

    def add(self, X: Any, codes: Integers, weights: Floats) -> None:
        """Add examples that trained no scorer: they calibrate in every fold; all of them or, if refused, none."""
        folds = [CrossFold(scorer, scorer(X), codes, weights) for scorer in self._scorers]
        with turn_of(self):
            largest = max(len(calibrators[0]) for calibrators in self._calibrators)
            if largest + weights.sum() > LIMIT:
                raise OverflowError(
                    f"a calibration set must have at most {LIMIT} examples, got {largest} and {weights.sum():g} more"
                )
            every = [self._known(fold) for fold in folds]
            for known, calibrators in zip(every, self._calibrators, strict=True):
                self._insert(calibrators, known)

    def _pairs(self, X: Any) -> tuple[Floats, Floats]:
        """Return p0 and p1, both (folds, n, calibrators), by the calibrators of each fold."""
        asked = [scorer(X) for scorer in self._scorers]
        pairs = []
        with turn_of(self):
            for f, calibrators in zip(asked, self._calibrators, strict=True):
                answers = [one.query_many(f[:, k]) for k, one in zip(self._events, calibrators, strict=True)]
                pairs.append(np.stack(answers, axis=1))
        p0, p1 = np.moveaxis(np.array(pairs), 3, 0)
        return p0, p1

    def _merged(self, p0: Floats, p1: Floats) -> Floats:
        """Return (n, calibrators) merged probabilities."""
        return np.column_stack([self._merge.merge_folds(p0[..., k], p1[..., k]) for k in range(p0.shape[2])])

    def proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities: each fold's pair made one probability."""
        p0, p1 = self._pairs(X)
        return _of_classes(self._merge.merge(p0[0], p1[0]) if len(p0) == 1 else self._merged(p0, p1))

    def interval(self, X: Any) -> Floats:
        """Return (n, c, 2): p0 and p1, or both merged over the folds."""
        p0, p1 = self._pairs(X)
        low, high = (p0[0], p1[0]) if len(p0) == 1 else (self._merged(p0, p0), self._merged(p1, p1))
        if len(self._events) == 1:
            low, high = np.column_stack([1 - high, low]), np.column_stack([1 - low, high])
        return np.stack([low, high], axis=2)


class Categories(_EveryFold):
    """Counts of each fold in the object's category, averaged."""

    def __init__(self, taxonomy: ByScores, folds: Sequence[CrossFold], c: int) -> None:
        folds = large_enough(folds)
        super().__init__(folds)
        checked_taxonomy("taxonomy", taxonomy, c)
        self._counters = []
        for fold in folds:
            self._counters.append(counter(taxonomy, tuple(range(c)), RowMean()))
            self._counters[-1].add(*self._counted(fold))

    def _block(self, X: Any) -> ManyMultiprobabilities:
        blocks = [c.predict(scorer(X)) for c, scorer in zip(self._counters, self._scorers, strict=True)]
        counts = np.mean([block.counts for block in blocks], axis=0)
        return ManyMultiprobabilities(counts, blocks[0].classes, RowMean(), None, NOTHING)

    def proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities: means of the rows of the multiprobabilities."""
        block = self._block(X)
        # Not the mean of the rows: equal counts may differ there in the last bit.
        return (block.counts + 1 / len(block.classes)) / (block.sizes + 1)[:, None]

    def interval(self, X: Any) -> Floats:
        """Return (n, c, 2): [m_k, m_k + 1] / (m + 1) of mean counts m_k and their sum m."""
        block = self._block(X)
        return np.stack([block.counts, block.counts + 1], axis=2) / (block.sizes + 1)[:, None, None]
