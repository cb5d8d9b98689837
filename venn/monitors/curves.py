"""Scores of a prediction and its outcome, and their cumulative curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from venn.prediction import Floats, Integers, significance

# ------------------------------------------------------------------------------------------------------------- outcomes
# A prediction and its outcome in numbers: the same for a monitor and for a record.


class Outcomes(NamedTuple):
    """One step in Python numbers, or n steps: then each field is an array of n, and the row is (c, n).

    For a prediction set `probability` is the p-value of the true label, `own` the p-value of the predicted label,
    `confidence` one minus the second largest, and the other numbers are 0.
    """

    truth: Any  #: code of the true label
    predicted: Any  #: code of the predicted label
    lower: Any  #: smallest probability of the predicted label over the hypotheses
    upper: Any  #: largest one
    confidence: Any  #: probability of the predicted label by the point forecast
    probability: Any  #: probability of the true label by the point forecast
    brier: Any  #: sum over the classes of (1{y = k} - p_k)^2, by the point forecast
    own: Any  #: probability of the predicted label under the true hypothesis
    realised: Any  #: largest probability in the row of the true label; `own` for class intervals
    realised_class: Any  #: its class
    unanimous: Any  #: all hypotheses have the same most probable class
    row: Any  #: (c,) probabilities under the true hypothesis: the row of the true label, one of each pair, p-values

    def part(self, which: slice) -> Self:
        """Return some of n steps; views."""
        return type(self)(*(column[..., which] for column in self))


def outcome(truth: int, predicted: int, numbers: Floats, row: Floats) -> Outcomes:
    """Return one step from what a scorer wrote."""
    # Written out because a monitor does this at every step.
    lower, upper, confidence, probability, brier, own, realised, realised_class, unanimous = numbers.tolist()
    return Outcomes(
        truth, predicted, lower, upper, confidence, probability, brier, own, realised, int(realised_class),
        unanimous == 1.0, row.tolist(),
    )  # fmt: skip


def outcomes(truth: NDArray[Any], predicted: NDArray[Any], numbers: Floats, rows: Floats) -> Outcomes:
    """Return n steps from what a scorer wrote: numbers (n, 9), rows (n, c)."""
    *scores, realised_class, unanimous = numbers.T
    return Outcomes._make([truth, predicted, *scores, realised_class.astype(np.int64), unanimous == 1.0, rows.T])


# --------------------------------------------------------------------------------------------------------------- curves
# How one predictor fared: step by step, and in the cumulative curves of the field.

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class PerStep:
    """What one predictor said at each of n steps, and how it fared; arrays of length n."""

    #: The predicted label was the true one.
    hit: Bools
    #: Smallest probability of the predicted label over the hypotheses.
    lower: Floats
    #: Largest one; equal to `lower` for a point forecast.
    upper: Floats
    #: Upper minus lower.
    width: Floats
    #: Probability of the predicted label by the point forecast.
    confidence: Floats
    #: Probability of the true label by the point forecast.
    probability: Floats
    #: Minus its natural logarithm, clipped below at `Record.clip`.
    log_loss: Floats
    #: Sum over the classes of (1{y = k} - p_k)^2, in [0, 2].
    brier: Floats
    #: The most probable class in the row of the true label was the true one; for class intervals, `hit`.
    realised_hit: Bools
    #: The probability of that class in that row; calibrated under exchangeability.
    #:
    #: For class intervals the probability of the predicted class under the true hypothesis: each fixed class is
    #: calibrated, the one that happens to be predicted need not be.
    realised: Floats
    #: All rows had the same most probable class; for class intervals, both hypotheses.
    unanimous: Bools


@dataclass(frozen=True, eq=False, repr=False)
class StepCurves:
    """Base of curves: columns with a number of each of n steps, and for each curve the means of its column so far."""

    means: ClassVar[tuple[str, ...]] = ()  # the curves that are attributes

    #: Of each step what the curves are means of, by the name of the curve: the columns that a monitor averages.
    columns: dict[str, Floats]

    def __getattr__(self, name: str) -> Floats:
        if name not in self.means:
            raise AttributeError(f"no attribute {name!r} in {type(self).__name__}")
        return _means_so_far(self.columns[name])


def _means_so_far(values: NDArray[Any]) -> Floats:
    return np.cumsum(values, dtype=np.float64) / np.arange(1, len(values) + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Curves(StepCurves):
    """Cumulative curves of one predictor over n steps; arrays of length n.

    Entry N - 1 of a mean is the mean of the first N steps. The error form counts instead:
    ``lower = 1 - uep / N`` and ``upper = 1 - lep / N``.

    Attributes
    ----------
    accuracy, lower, upper, width : (n,) float64
        Means of the hits, of the bounds and of their widths.
    log_loss, brier : (n,) float64
        Mean losses, the first in nats.
    realised_accuracy, realised : (n,) float64
        Means of the realised-row hits and probabilities; the first must approach the second on exchangeable data.
    """

    means = ("accuracy", "lower", "upper", "width", "log_loss", "brier", "realised_accuracy", "realised")

    #: The steps behind the curves.
    per_step: PerStep
    #: Whether the predictor gave intervals; False for point forecasts.
    interval: bool
    #: Steps whose true label had a probability below `Record.clip`.
    clipped: int

    @property
    def errors(self) -> Integers:
        """(n,) number of errors so far."""
        return np.cumsum(~self.per_step.hit, dtype=np.int64)

    @property
    def lep(self) -> Floats:
        """(n,) lower error probability: sum of (1 - upper)."""
        return np.cumsum(1.0 - self.per_step.upper)

    @property
    def uep(self) -> Floats:
        """(n,) upper error probability: sum of (1 - lower)."""
        return np.cumsum(1.0 - self.per_step.lower)

    @property
    def inside(self) -> Bools:
        """Where the accuracy lies between the lower and the upper curve, rounding of the sums aside."""
        return (self.lower <= self.accuracy + 1e-12) & (self.accuracy <= self.upper + 1e-12)

    def __len__(self) -> int:
        return len(self.per_step.hit)

    def __repr__(self) -> str:
        if not len(self):
            return "Curves(0 steps)"
        return (
            f"Curves({len(self)} steps: accuracy {self.accuracy[-1]:.3f} "
            f"in [{self.lower[-1]:.3f}, {self.upper[-1]:.3f}])"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SetCurves(StepCurves):
    """How the prediction sets of one predictor fared over n steps.

    At significance level epsilon the set holds the labels of p-value above epsilon; an error is a true
    label that is not in it.

    Attributes
    ----------
    accuracy, credibility, confidence : (n,) float64
        Means so far of the hits of the label of largest p-value, of that p-value, of one minus the second largest.
    """

    means = ("accuracy", "credibility", "confidence")

    #: (n, c) p-values.
    p_values: Floats
    #: (n,) codes of the true labels.
    truth: Integers

    @property
    def p_true(self) -> Floats:
        """(n,) p-values of the true labels: uniform and independent on exchangeable data, where they are smoothed."""
        return self.p_values[np.arange(len(self)), self.truth]

    def errors(self, epsilon: float) -> Integers:
        """Return (n,) number of errors so far at a significance level in [0, 1]."""
        return np.cumsum(self.p_true <= significance(epsilon), dtype=np.int64)

    def set_size(self, epsilon: float) -> Floats:
        """Return (n,) mean number of labels in the sets so far at a significance level in [0, 1]."""
        return _means_so_far((self.p_values > significance(epsilon)).sum(axis=1))

    def __len__(self) -> int:
        return len(self.truth)

    def __repr__(self) -> str:
        if not len(self):
            return "SetCurves(0 steps)"
        rate, size = self.errors(0.05)[-1] / len(self), self.set_size(0.05)[-1]
        return f"SetCurves({len(self)} steps: at 0.05 error rate {rate:.3f}, {size:.2f} labels a set)"
