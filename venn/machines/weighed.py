"""Weights of the examples in a machine's table of scores, by their objects."""

from __future__ import annotations

import numpy as np

from venn.covariates import CovariateShift
from venn.machines.machine import ScoreTable
from venn.prediction import Floats


def weights_of(table: ScoreTable, shift: CovariateShift) -> Floats:
    """Return (n + 1,) weights of the examples in a table, in the order of its `scores`: the new one is last.

    Raises
    ------
    TypeError
        The table holds no dense objects.
    """
    m = len(table.labels)
    if table.objects.shape[1] <= max(m - 1, table.test):
        raise TypeError(
            f"table must hold the objects of all {m} columns, to weigh them, got {table.objects.shape}: sparse ones "
            "are not weighed"
        )
    columns = np.append(np.arange(m), table.test)
    distinct = shift.weights(np.ascontiguousarray(table.objects[:, columns].T))
    return np.append(np.repeat(distinct[:-1], table.weights), distinct[-1])
