"""Nonconformity by the score of the own class, or by its share of all scores: the order of `LAC`, on other scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.counting import GRID, OFFSET
from venn._compiled.nonconformity import rank_own, rank_shares
from venn._compiled.ranks import share_steps
from venn.machines.machine import ScoreTable
from venn.nonconformity.scores import Margin, Ranks, ScoreMeasure
from venn.parameters import flag
from venn.prediction import Floats, Integers
from venn.saved import base, component, param
from venn.taxonomies.scores import on_grid

NEGATIVE = 1e-3  # how far below 0 a share may be that was rounded


@base
class ByOwn(ScoreMeasure):
    """Base of measures that are one function of the own score and of what all scores of the row add up to."""

    pointwise = True

    leave_one_out: bool = param(flag, default=True)

    def _of(self, own: Floats, totals: Floats) -> Floats:
        """Return the nonconformity, for own scores and the sums of their rows, of shapes that go together."""
        raise NotImplementedError

    def _totals(self, scores: Floats) -> Floats:
        """Return the (n,) sums of (n, c) scores."""
        return scores.sum(axis=1)

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) nonconformity."""
        return self._of(scores[np.arange(len(codes)), codes], self._totals(scores))

    def steps_with_each_label(self, scores: Floats) -> Floats:
        """Return (n, c): the steps of n objects of (n, c) scores with each label, all at once."""
        steps = on_grid(self._of(scores, self._totals(scores)[:, None]))
        return super().steps_with_each_label(scores) if np.isnan(steps).any() else steps  # which says what is wrong


@component
class OwnScore(ByOwn):
    """Minus the score of the own class: for scores that say something each alone, as logarithms of odds do.

    By log odds of probabilities it puts examples in the order of `LAC`, and so has its sets: the smallest on average.
    Of scores that mean something only beside each other, as decision values do, `Margin` makes smaller sets.

    Parameters
    ----------
    leave_one_out : bool, default True
        Use the score of each example by the machines without it. Inductive predictors ignore it.

    Raises
    ------
    TypeError
        `leave_one_out` is neither True nor False.

    References
    ----------
    As of `LAC`.

    Examples
    --------
    >>> OwnScore().values(np.array([[1.0, -1.0, 0.5], [1.0, -1.0, 0.5]]), np.array([0, 1]))
    array([-1.,  1.])
    """

    def _totals(self, scores: Floats) -> Floats:
        return np.zeros(len(scores))

    def _of(self, own: Floats, totals: Floats) -> Floats:
        return -own

    def rank_table(self, table: ScoreTable) -> Ranks:
        """Rank the new example by the compiled path."""
        if type(self).values is not ByOwn.values:  # of a subclass that has its own
            return super().rank_table(table)
        own = table.labels, np.arange(len(table.labels))
        of_new = -table.positive[:, table.test]
        return Ranks(*rank_own(-table.negative[own], -table.positive[own], of_new, table.labels, table.weights))


@component
class Share(ByOwn):
    """Minus the logarithm of the own class's share of all scores: for probabilities, whatever they add up to.

    Where they add up to 1 it puts examples in the order of `LAC`, and so has its sets: the smallest on average. It
    tells small probabilities apart, down to the smallest number, and takes probabilities that were rounded. The
    forecasts of classes one by one, as of a `Mixture`, need not add up to 1: then it reads what they say of the classes
    beside each other. If all are 0 each has the same share.

    Parameters
    ----------
    leave_one_out : bool, default True
        Use the score of each example by the machines without it. Inductive predictors ignore it.

    Raises
    ------
    TypeError
        `leave_one_out` is neither True nor False.
    ValueError
        By `predict_one`, for scores below 0.

    References
    ----------
    As of `LAC`.

    Examples
    --------
    >>> Share().values(np.array([[0.7, 0.2, 0.1], [0.7, 0.7, 0.0]]), np.array([0, 1])).round(3)
    array([0.357, 0.693])
    """

    of_probabilities = True

    def _check(self, least: float) -> None:
        if least < -NEGATIVE:
            raise ValueError(
                f"scores must be at least 0, as probabilities are, for {self!r}, got {least}: of a fitted classifier "
                'they are those of FrozenScorer(fitted, method="predict_proba")'
            )

    def _totals(self, scores: Floats) -> Floats:
        self._check(scores.min(initial=0.0))
        return np.maximum(scores, 0.0).sum(axis=1)

    def _of(self, own: Floats, totals: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.maximum(own, 0.0) / totals
            return -np.log(np.where(totals > 0, shares, 1.0))

    def steps(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) values in whole steps of the grid, compiled: the same as in `steps_with_each_label`."""
        found = self._compiled_steps(scores)
        return super().steps(scores, codes) if found is None else found[np.arange(len(codes)), codes]

    def steps_with_each_label(self, scores: Floats) -> Floats:
        """Return (n, c): the steps of n objects of (n, c) scores with each label, compiled."""
        found = self._compiled_steps(scores)
        return super().steps_with_each_label(scores) if found is None else found  # which says what is wrong

    def _compiled_steps(self, scores: Floats) -> Floats | None:
        if type(self).values is not ByOwn.values:
            return None
        self._check(scores.min(initial=0.0))
        out = np.empty(scores.shape)
        return out if share_steps(scores, GRID, OFFSET, out) else None

    def rank_table(self, table: ScoreTable) -> Ranks:
        """Rank the new example by the compiled path: a hypothesis changes one score of each row."""
        if type(self).values is not ByOwn.values:  # of a subclass that has its own
            return super().rank_table(table)
        m = len(table.labels)
        self._check(min(part[:, :m].min(initial=0.0) for part in (table.negative, table.positive)))
        return Ranks(*rank_shares(table.negative, table.positive, table.labels, table.weights, table.test))


def usual_measure(machine: Any) -> ScoreMeasure:
    """Return the measure that makes the smallest sets by the scores of a machine that does not learn the examples.

    Of two classes all have one order, and the margin is what was always used.
    """
    if len(machine.classes) > 2 and getattr(machine, "probabilities", False):
        return Share(leave_one_out=False)
    if len(machine.classes) > 2 and getattr(machine, "log_odds", False):
        return OwnScore(leave_one_out=False)
    return Margin(leave_one_out=False)
