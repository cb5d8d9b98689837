"""Intervals for numbers with a long-run error rate on any stream: the level moves with the errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from venn._compiled.any_sequence import move
from venn.distribution import HAIR, NestedIntervals, NumberPrediction
from venn.labels import Real, space_of
from venn.prediction import LONG_RUN, Floats
from venn.predictors.long_run import EVERYONE, LongRun
from venn.saved import component

PARTS = 1_000_000  # levels are told apart down to one over this


@component
class AdaptiveIntervals(LongRun):
    """Intervals for a number whose long-run error rate is the level on any stream, made from another predictor's.

    Each level has a threshold: the interval told at the level is the predictor's interval at the threshold. After an
    interval that missed the label the threshold falls, so that the next ones are wider; after a hit it rises a little.
    On exchangeable streams it stays near the level, where the predictor's intervals are already right; on streams that
    drift it moves to where the error rate is right.

    Predictions are `NestedIntervals`: `interval(level)` is the interval above for each of the `levels`; at other levels
    it is that of the next lower one, and nothing is proved. They say "long-run error rate" in `guaranteed`.

    What is proved, for any stream, made by an adversary who knows all but the future of his own choices; there is no
    probability in it. After N labels the number of errors at the k-th level e_k (from 1, in rising order) is at most
    N e_k + `bound`, with bound (1 + k s (1 + d)) / s_N: s is the first step's size, s_N the last one's, and d the
    largest number of labels that came between a question and its answer (`Online` says so; elsewhere 0). It is also at
    least N e_k - `bound` if no label equals an interval that has shrunk to its forecast, to the last bit.

    What is not proved: anything about a single interval, or about widths. Intervals that are a point and the whole line
    in turn keep the promise, too. So read widths beside errors: `certificates` has both.

    Parameters
    ----------
    predictor : predictor of numbers
        Such as `ConformalIntervals`, `ConformalDistribution` or `InductiveDistribution`, on a window or not. It is
        copied; a machine that it shares with others is not.
    levels : sequence of numbers in (0, 1), default (0.01, 0.05, 0.1, 0.2)
        Rising, by steps of 1e-6 or more.
    steps : optional
        `ConstantSteps()`, the default, or `DecayingSteps()`.

    Attributes
    ----------
    predictor : predictor
        The copy. Do not teach it.
    n : int
        Number of labels that came.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. By `predict_one`: the predictor does not predict numbers.

    Notes
    -----
    Why it holds: as for `Adaptive`. Thresholds are never clipped. At a threshold of 0 or less the interval is the whole
    line, which is no error, so the threshold rises; at 1 or more it is the forecast alone, which is an error unless
    the label equals it, so the threshold falls. The interval of the k-th level is by the largest threshold up to k, so
    that intervals are nested.

    References
    ----------
    Gibbs & Candès (2021), arXiv:2106.00170; Angelopoulos, Foygel Barber & Bates (2024), arXiv:2402.01139.

    Examples
    --------
    The noise becomes ten times as large in the middle of the stream:

    >>> import venn
    >>> from venn.predictors import ConformalIntervals
    >>> model = AdaptiveIntervals(ConformalIntervals(venn.machines.KernelRidge(venn.RBF(0.1), C=1)), levels=[0.1])
    >>> rng = np.random.default_rng(0)
    >>> fixed = 0
    >>> for step in range(400):
    ...     x = rng.normal(size=1)
    ...     y = x[0] + rng.normal() * (1 if step < 200 else 10)
    ...     lower, upper = model.predictor.predict_one(x).interval(0.1)
    ...     fixed += not lower <= y <= upper
    ...     model.learn_one(x, y)
    >>> (certificate,) = model.certificates
    >>> fixed > 70, abs(certificate.errors - 40) < 20 < certificate.bound
    (True, True)
    """

    tells = NestedIntervals

    def derive(self) -> None:
        """Find the kind of the predictor's predictions."""
        if not (np.diff([0, *map(_rank, self.levels), PARTS]) > 0).all():
            raise ValueError(f"levels must be rising numbers in (0, 1), 1e-6 apart, got {self.levels!r}")
        self.space = space_of(self.predictor)
        if not isinstance(self.space, Real):
            raise TypeError(f"predictor must predict numbers, as ConformalIntervals does, got {self.predictor!r}")
        super().derive()

    @property
    def thresholds(self) -> Floats:
        """(l,) threshold of each level."""
        return self._theta[:, 0].copy()

    # --------------------------------------------------------------- predicting

    def predict_one(self, x: Any) -> NestedIntervals:
        """Return the intervals for `x`; leaves no trace.

        Parameters
        ----------
        x : object
            Any object that the predictor takes.

        Raises
        ------
        TypeError
            The predictor does not predict numbers by intervals.
        """
        now = self.predictor.predict_one(x)
        if not isinstance(now, NumberPrediction):
            raise TypeError(
                f"predictor must predict intervals for numbers, as ConformalIntervals does, got {type(now).__name__} "
                f"by {self.predictor!r}"
            )
        ends = np.array([_at(now, cut) for cut in np.maximum.accumulate(self.thresholds).tolist()])
        ranks = [_rank(level) for level in self.levels]
        # Nested up to rounding; here to the last bit, and no lower end is above an upper one.
        highest = np.minimum.accumulate(ends[:, 1])
        low = np.minimum(np.maximum.accumulate(ends[:, 0]), highest[-1]).tolist()
        lower = [(end, rank) for end, rank in zip(low, ranks, strict=True) if math.isfinite(end)]
        high = zip(highest.tolist(), ranks, strict=True)
        upper = [(end, 2 * PARTS - 1 - rank) for end, rank in high if math.isfinite(end)]
        points = [*lower, *reversed(upper)]
        tau = getattr(now, "tau", 0.5)
        if not points:
            return NestedIntervals([], now.label, tau, guaranteed=LONG_RUN)
        values, places = zip(*points, strict=True)
        return NestedIntervals(values, now.label, tau, places, 2 * (PARTS - 1), guaranteed=LONG_RUN)

    # ----------------------------------------------------------------- learning

    def _ask(self, x: Any) -> tuple[NestedIntervals]:
        return (self.predict_one(x),)

    def _learn(self, said: tuple[Any, ...], truth: float) -> None:
        lower, upper = np.array([said[0].interval(level) for level in self.levels]).T
        missed = ~((lower <= truth) & (truth <= upper))
        with np.errstate(invalid="ignore"):  # a line from minus infinity to minus infinity has no width
            widths = upper - lower
        move(self._books, EVERYONE, self.steps.at(self._clock), missed.astype(np.float64), widths)


def _at(prediction: Any, cut: float) -> tuple[float, float]:
    """Return a prediction's interval at a threshold: the line at 0 or below, the forecast alone at 1 or above."""
    if cut <= 0:
        return -math.inf, math.inf
    if cut >= 1:
        return prediction.label, prediction.label
    return prediction.interval(cut)


def _rank(level: float) -> int:
    """Return the rank of the nested interval for this level."""
    return math.floor(level * PARTS + HAIR)
