"""Intervals for numbers with a long-run error rate on any stream: the level moves with the errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from venn.distribution import HAIR, NestedIntervals, NumberPrediction
from venn.labels import HasLabels, Real, space_of
from venn.machines.machine import NotConverged
from venn.parameters import fraction, integer, members
from venn.prediction import LONG_RUN, Floats
from venn.predictors.adaptive import LEVELS, Certificate, ConstantSteps, Steps, checked_steps
from venn.predictors.learning import AroundPredictor
from venn.saved import held_array, held_int, saved

PARTS = 1_000_000  # levels are told apart down to one over this


class Noted(NamedTuple):
    """What must be known of a step before anything learns."""

    told: NestedIntervals  #: what was said when it was asked
    late: int
    inner: Any


@saved
class AdaptiveIntervals(HasLabels, AroundPredictor):
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

    def __init__(self, predictor: Any, levels: Sequence[float] = LEVELS, steps: Steps | None = None) -> None:
        self._hold(predictor)
        self.space = space_of(predictor)
        if not isinstance(self.space, Real):
            raise TypeError(f"predictor must predict numbers, as ConformalIntervals does, got {predictor!r}")
        self.levels = _checked_levels(levels)
        self.steps: Steps = ConstantSteps() if steps is None else checked_steps(steps)
        self.n = self._late = 0
        self._theta = np.array(self.levels)
        self._errors, self._widths, self._finite = np.zeros((3, len(self.levels)))

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """Thresholds, and what the certificates count."""
        return {
            "n": self.n, "late": self._late, "theta": self._theta, "errors": self._errors, "widths": self._widths,
            "finite": self._finite,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it is not a possible one."""
        super().restore(state)
        n, late = held_int("n", state["n"]), held_int("late", state["late"])
        shape = (len(self.levels),)
        theta, errors, widths, finite = (
            held_array(name, state[name], shape) for name in ("theta", "errors", "widths", "finite")
        )
        if not (np.isfinite(theta).all() and (widths >= 0).all()):
            raise ValueError("theta must be finite, and widths must be 0 or more")
        if not all(((counts >= 0) & (counts <= n)).all() for counts in (errors, finite)):
            raise ValueError(f"errors must be at most the labels that came, {n}, got {errors.tolist()}")
        self.n, self._late = n, late
        self._theta, self._errors, self._widths, self._finite = (
            array.copy() for array in (theta, errors, widths, finite)
        )

    # ------------------------------------------------------------- certificates

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """For each level the number of labels and errors so far, the bound, and the mean width of finite intervals."""
        found = []
        first, last = self.steps.at(1), self.steps.at(max(self.n, 1))
        for k, level in enumerate(self.levels):
            bound = (1.0 + (k + 1) * first * (1 + self._late)) / last if self.n else 0.0
            width = float(self._widths[k] / self._finite[k]) if self._finite[k] else math.nan
            found.append(Certificate(level, self.n, int(self._errors[k]), bound, width))
        return tuple(found)

    @property
    def thresholds(self) -> Floats:
        """(l,) threshold of each level."""
        return self._theta.copy()

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
        ends = np.array([_at(now, cut) for cut in np.maximum.accumulate(self._theta).tolist()])
        ranks = [_rank(level) for level in self.levels]
        # Nested up to rounding; here to the last bit.
        low, high = np.maximum.accumulate(ends[:, 0]).tolist(), np.minimum.accumulate(ends[:, 1]).tolist()
        lower = [(end, rank) for end, rank in zip(low, ranks, strict=True) if math.isfinite(end)]
        upper = [(end, 2 * PARTS - 1 - rank) for end, rank in zip(high, ranks, strict=True) if math.isfinite(end)]
        points = [*lower, *reversed(upper)]
        tau = getattr(now, "tau", 0.5)
        if not points:
            return NestedIntervals([], now.label, tau, guaranteed=LONG_RUN)
        values, places = zip(*points, strict=True)
        return NestedIntervals(values, now.label, tau, places, 2 * (PARTS - 1), guaranteed=LONG_RUN)

    # ----------------------------------------------------------------- learning

    def note(self, x: Any, y: Any) -> Noted:
        """Return what is said of `x` before anything learns, and what the predictor notes; or refuse the example."""
        self.space.check(y)
        inner = self.predictor.note(x, y)
        return Noted(self.predict_one(x), 0, inner)

    def note_late(self, noted: Noted, told: NestedIntervals, late: int) -> Noted:
        """Return the same with the intervals that were told: their errors are those that count.

        Raises
        ------
        TypeError, ValueError
            `noted` is not what `note` returned, or `told` is no prediction of this predictor.
        """
        _check_noted(noted)
        late = integer("late", late, 1)
        if not isinstance(told, NestedIntervals) or told.guaranteed != LONG_RUN:
            raise TypeError(f"told must be a prediction of this predictor, got {told!r}")
        return noted._replace(told=told, late=late)

    def after_learning(self, x: Any, y: Any, noted: Noted | None = None) -> None:
        """Learn one example that the machine has already learned: the predictor learns, and thresholds move.

        Raises
        ------
        RuntimeError
            `noted` is missing, so the intervals from before the machine learned are unknown. The predictor has learned
            the example, the thresholds have not moved.
        NotConverged
            The predictor's own fit fails; all have learned the example.
        """
        noted = self._noted(x, y, noted)
        _check_noted(noted)
        try:
            self.predictor.after_learning(x, y, noted.inner)
        except NotConverged:
            self._move(noted, y)
            raise
        self._move(noted, y)

    def _move(self, noted: Noted, y: Any) -> None:
        label = self.space.encode(y)
        self.n += 1
        self._late = max(self._late, noted.late)
        size = self.steps.at(self.n)
        for k, level in enumerate(self.levels):
            lower, upper = noted.told.interval(level)
            missed = not lower <= label <= upper
            self._theta[k] += size * (level - missed)
            self._errors[k] += missed
            if math.isfinite(upper - lower):
                self._widths[k] += upper - lower
                self._finite[k] += 1


def _at(prediction: Any, cut: float) -> tuple[float, float]:
    """Return a prediction's interval at a threshold: the line at 0 or below, the forecast alone at 1 or above."""
    if cut <= 0:
        return -math.inf, math.inf
    if cut >= 1:
        return prediction.label, prediction.label
    return prediction.interval(cut)


def _rank(level: float) -> int:
    """Return the rank at which nested intervals have the one of this level."""
    return math.floor(level * PARTS + HAIR)


def _check_noted(noted: Any) -> None:
    if not isinstance(noted, Noted):
        raise TypeError(f"noted must be what note(x, y) returned, got {noted!r}")


def _checked_levels(levels: Any) -> tuple[float, ...]:
    """Return the levels, or say what is wrong with them."""
    given = tuple(fraction("levels", level) for level in members("levels", levels, "numbers in (0, 1)"))
    ranks = [0, *map(_rank, given), PARTS]
    if not given or not (np.diff(ranks) > 0).all():
        raise ValueError(f"levels must be rising numbers in (0, 1), at least one, 1e-6 apart, got {levels!r}")
    return given
