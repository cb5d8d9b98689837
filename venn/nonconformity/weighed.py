"""The rank of the new example among examples that are weighed by their objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.covariates import CovariateShift
from venn.machines.machine import Hypotheses, ScoreTable, under_each
from venn.nonconformity.scores import ByScores
from venn.prediction import Floats


def weighed_ranks(
    measure: ByScores, hypotheses: Hypotheses, shift: CovariateShift, label_conditional: bool
) -> tuple[Floats, ...]:
    """Return (c,) weights of examples of greater nonconformity, of equal, and of all; the new one among the last two.

    Raises
    ------
    TypeError
        The machine's tables hold no dense objects.
    """

    def read(table: ScoreTable) -> tuple[Floats, ...]:
        return of_table(measure, table, shift, label_conditional)

    found: tuple[Floats, ...] = under_each(hypotheses.tables(measure.deleted), read)
    return found


def of_table(
    measure: ByScores, table: ScoreTable, shift: CovariateShift, label_conditional: bool
) -> tuple[Floats, Floats, Floats]:
    """Return the same by one table of scores."""
    c, m = len(table.negative), len(table.labels)
    if table.objects.shape[1] <= max(m - 1, table.test):
        raise TypeError(
            f"table must hold the objects of all {m} columns, to weigh them, got {table.objects.shape}: sparse ones "
            "are not weighed"
        )
    columns = np.append(np.repeat(np.arange(m), table.weights), table.test)
    distinct = np.append(np.arange(m), table.test)
    weights: Any = shift.weights(np.ascontiguousarray(table.objects[:, distinct].T))
    own = weights[-1]
    greater, equal, total = np.zeros((3, c))
    for j in range(c):
        if measure.pointwise:
            rows, codes = table.negative[:, distinct], table.labels[distinct]
            rows[j], codes[-1] = table.positive[j, distinct], j
            steps, beside = measure.steps(rows.T, codes), weights[:-1] * table.weights
        else:
            codes = table.codes(j)
            steps, beside = measure.steps(table.scores(j), codes), weights[columns[:-1]]
        if label_conditional:
            beside = beside * (codes[:-1] == j)
        greater[j] = beside[steps[:-1] > steps[-1]].sum()
        equal[j] = beside[steps[:-1] == steps[-1]].sum() + own
        total[j] = beside.sum() + own
    return greater, equal, total
