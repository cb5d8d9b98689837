"""The rank of the new example among examples that are weighed by their objects."""

from __future__ import annotations

import numpy as np

from venn.covariates import CovariateShift
from venn.machines.machine import Hypotheses, ScoreTable, under_each, weights_of
from venn.nonconformity.scores import ScoreMeasure
from venn.prediction import Floats


def weighed_ranks(
    measure: ScoreMeasure, hypotheses: Hypotheses, shift: CovariateShift, label_conditional: bool
) -> tuple[Floats, ...]:
    """Return (c,) weights of examples of greater nonconformity, of equal, and of all; the new one among the last two.

    Raises
    ------
    TypeError
        The machine's tables hold no dense objects.
    """

    def read(table: ScoreTable) -> tuple[Floats, ...]:
        return of_table(measure, table, shift, label_conditional)

    return under_each(hypotheses.tables(measure.deleted), read)


def of_table(
    measure: ScoreMeasure, table: ScoreTable, shift: CovariateShift, label_conditional: bool
) -> tuple[Floats, Floats, Floats]:
    """Return the same by one table of scores."""
    c = len(table.negative)
    weights = weights_of(table, shift)
    greater, equal, total = np.zeros((3, c))
    for j in range(c):
        codes = table.codes(j)
        steps = measure.steps(table.scores(j), codes)
        beside = weights[:-1] * (codes[:-1] == j) if label_conditional else weights[:-1]
        greater[j] = beside[steps[:-1] > steps[-1]].sum()
        equal[j] = beside[steps[:-1] == steps[-1]].sum() + weights[-1]
        total[j] = beside.sum() + weights[-1]
    return greater, equal, total
