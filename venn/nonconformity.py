"""Measures of nonconformity: how strange each example is among all, and the new example's rank by that."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from venn._compiled.nonconformity import rank_beside_rivals, rank_own, start_counts, tally
from venn.machines.kernels import Linear, Polynomial
from venn.machines.least_squares import LeastSquaresHypotheses, LeastSquaresSVM
    here = new * (objects == p)  # the new example stands here, with the class or the others
    return OwnMultipliers(
        share(negative[codes, objects], of_class, others + here),
        share(positive[codes, objects], of_class + here, others),
        share(positive[:, p], mass[:, p] + new, total[p] - mass[:, p]),
        codes,
        weights,
    )


@own_multipliers.register
def _of_squared_loss(answer: LeastSquaresHypotheses) -> OwnMultipliers:
    return _of_own_scores(answer.table, lambda f: 1.0 - f)


@own_multipliers.register
def _of_logistic_loss(answer: LogisticHypotheses) -> OwnMultipliers:
    own = _of_own_scores(answer.table, lambda f: expit(-f))
    sizes = np.bincount(own.codes, own.weights, len(own.of_test))
    only = sizes == sizes.sum()  # nothing has to be pushed where the new example is of the only class, too
    own.of[only[own.codes]] = 0.0
    own.of_test[only] = 0.0
    return own


def _of_own_scores(table: ScoreTable, multiplier: Callable[[Floats], Floats]) -> OwnMultipliers:
    columns = np.arange(len(table.labels))
    return OwnMultipliers(
        multiplier(table.negative[table.labels, columns]),
        multiplier(table.positive[table.labels, columns]),
        multiplier(table.positive[:, table.test]),
        table.labels,
        table.weights,
    )
