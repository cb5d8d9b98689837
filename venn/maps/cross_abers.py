"""Venn-Abers over folds, each held out from the training of its own scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venn.maps.abers import venn_abers
from venn.maps.contract import finite_array
from venn.maps.merges import Merge, checked_merge
from venn.prediction import Floats


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
