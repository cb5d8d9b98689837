"""Labels in the new example's category, where examples are weighed by their objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.covariates import CovariateShift
from venn.machines.machine import Hypotheses, ScoreTable, under_each, weights_of
from venn.prediction import Floats, Integers
from venn.taxonomies.base import ByScores, Deleted


def weighable(taxonomy: Any) -> ByScores:
    """Return the map from scores to categories inside a taxonomy, or say that it has none."""
    inside = taxonomy.taxonomy if isinstance(taxonomy, Deleted) else taxonomy
    if not isinstance(inside, ByScores):
        raise TypeError(
            f"taxonomy must map scores to categories, as Argmax() does, deleted ones or not, for a CovariateShift, got "
            f"{taxonomy!r}"
        )
    return inside


def weighed_labels(taxonomy: Any, hypotheses: Hypotheses, shift: CovariateShift) -> tuple[Floats, Integers]:
    """Return (c, c) weights of the labels in the new example's category under each hypothesis, and (c,) categories.

    Raises
    ------
    TypeError
        The machine's tables hold no dense objects.
    """
    inside = weighable(taxonomy)

    def read(table: ScoreTable) -> tuple[Floats, Integers]:
        return of_table(inside, table, shift)

    return under_each(hypotheses.tables(taxonomy.deleted), read)


def of_table(taxonomy: ByScores, table: ScoreTable, shift: CovariateShift) -> tuple[Floats, Integers]:
    """Return the weights and categories by one table of scores."""
    c = len(table.negative)
    weights = weights_of(table, shift)
    labels, categories = np.zeros((c, c)), np.empty(c, np.int64)
    for j in range(c):
        found = taxonomy.categories(table.scores(j))
        beside = found == found[-1]
        categories[j] = found[-1]
        labels[j] = np.bincount(table.codes(j)[beside], weights[beside], c)
        if labels[j].sum() == 0:  # an object that cannot come, among others that cannot
            labels[j, j] = 1.0
    return labels, categories
