"""Measures of calibration: do events forecast with probability p happen in a share p of the cases?

The functions take arrays; a prefix or a window is a slice of them. Forecasts come in one of two forms:

- proba (n,): probabilities of an event, and truth (n,): 1 or True if it happened, 0 or False if not;
- proba (n, c): distributions over classes, and truth (n,): class codes 0..c-1. Measures of a single event then mean
  "the label is the predicted class", the first of largest probability.

All describe the given forecasts only, except for the bars of `reliability`. Below them stand the losses of forecasts,
and `compare`, which says whose losses are smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from venn.monitors.bounds import StitchedBound
from venn.monitors.sums import (
    Bins,
    calibration_error,
    count_bins,
    cuts_of,
    forecasts,
    numbers,
    place,
    probabilities,
)
from venn.parameters import fraction, is_number
from venn.prediction import Floats, Integers

# ---------------------------------------------------------------------------------------------------------- calibration


def ece(proba: Any, truth: Any, bins: Bins | None = None) -> float:
    """Return the expected calibration error, in [0, 1].

    The mean over the forecasts of |share of events - mean probability| in the forecast's bin. It is biased
    upwards: even perfectly calibrated forecasts have a positive error, as bins hold few of them.

    Parameters
    ----------
    proba : (n,) or (n, c) float64 in [0, 1]
        For distributions the predicted class is used.
    truth : (n,) of 0 and 1, or class codes
    bins : Bins, default WidthBins(10)
        `WidthBins`, or an object with the same method.

    Raises
    ------
    ValueError, TypeError
        The arrays are not as described.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015); Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural
    networks". Their bins are closed above, ours below.

    Examples
    --------
    >>> ece([0.75, 0.75, 0.25, 0.25], [1, 1, 0, 1])
    0.25
    """
    p, y = _events(proba, truth)
    return calibration_error(*count_bins(place(p, cuts_of(bins, p)), p, y))


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram of b bins, without empty bins."""

    #: (b,) mean probability.
    confidence: Floats
    #: (b,) share of events.
    frequency: Floats
    #: (b,) number of forecasts.
    counts: Integers
    #: (b,) lower end of the consistency bar of `frequency`.
    low: Floats
    #: (b,) its upper end.
    high: Floats
    #: (b, 2) lower and upper end of the bin.
    edges: Floats
    #: Least probability that a bar covers its share.
    level: float
    #: Expected calibration error over these bins.
    ece: float


def reliability(proba: Any, truth: Any, bins: Bins | None = None, level: float = 0.9) -> Reliability:
    """Return the reliability diagram with consistency bars.

    A bar shows how far the share of events in its bin may be from the diagonal by chance. If every event happens with
    its forecast probability, independently given the forecasts, the number of events in a bin has a
    Poisson-binomial law; the bar reaches from its (1 - level) / 2 to its (1 + level) / 2 quantile. The law is computed,
    not sampled, so the bars are those of infinitely many resamplings of the labels from the forecasts.

    Theorem: under that hypothesis, each bar contains its share with probability at least `level`, given the
    forecasts. This is about one bar, not about all at once. It is a heuristic for forecasts made online, which depend
    on earlier labels, and for forecasts of Venn type, which only claim to be right on average in their category.

    Parameters
    ----------
    proba : (n,) or (n, c) float64 in [0, 1]
        For distributions the predicted class is used.
    truth : (n,) of 0 and 1, or class codes
    bins : Bins, default WidthBins(10)
    level : float in (0, 1), default 0.9

    Raises
    ------
    ValueError, TypeError
        The arrays are not as described, or the level is out of range.

    Notes
    -----
    Time is O(n log^2 n).

    References
    ----------
    Bröcker & Smith (2007), "Increasing the reliability of reliability diagrams"; they resample forecasts as well as
    labels.

    Examples
    --------
    >>> diagram = reliability([0.5, 0.5, 0.5, 0.5, 0.95], [1, 1, 1, 1, 1], level=0.8)
    >>> diagram.confidence, diagram.frequency, diagram.counts
    (array([0.5 , 0.95]), array([1., 1.]), array([4, 1]))
    >>> diagram.low, diagram.high
    (array([0.25, 1.  ]), array([0.75, 1.  ]))
    """
    level = fraction("level", level)
    p, y = _events(proba, truth)
    cuts = cuts_of(bins, p)
    places = place(p, cuts)
    counted = count_bins(places, p, y)
    filled = counted[0] > 0
    counts, sums, events = counted[0][filled], counted[1][filled], counted[2][filled]
    low, high = [], []
    order = places.argsort(kind="stable")
    for in_bin in np.split(p[order], counts.cumsum()[:-1]):
        below = np.cumsum(number_of_events(in_bin))
        ends = np.searchsorted(below, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        # The last sum may fall short of 1 by rounding, never by half of a tail.
        low.append(ends[0] / len(in_bin))
        high.append(min(ends[1], len(in_bin)) / len(in_bin))
    edges = np.column_stack([np.append(0.0, cuts), np.append(cuts, 1.0)])[: len(filled)][filled]
    return Reliability(
        confidence=sums / counts,
        frequency=events / counts,
        counts=counts,
        low=np.array(low),
        high=np.array(high),
        edges=edges,
        level=level,
        ece=calibration_error(*counted),
    )


def number_of_events(proba: Any) -> Floats:
    """Return (n + 1,) the Poisson-binomial law: the probability of each number of independent events.

    Parameters
    ----------
    proba : (n,) float64 in [0, 1]
        Probability of each event.

    Raises
    ------
    ValueError, TypeError
        `proba` is not as described.

    Notes
    -----
    Laws of halves are convolved by Fourier transforms: exact up to about 1e-15 absolutely, so small tails are not
    exact relatively.

    Examples
    --------
    >>> number_of_events([0.5, 0.5]).round(3)
    array([0.25, 0.5 , 0.25])
    """
    p = probabilities(proba)
    if p.ndim != 1:
        raise ValueError(f"proba must have shape (n,), got {p.shape}")
    laws = np.column_stack([1.0 - p, p])
    while len(laws) > 1:
        if len(laws) % 2:
            laws = np.vstack([laws, np.eye(1, laws.shape[1])])  # no event
        size = 2 * laws.shape[1] - 1
        length = fft.next_fast_len(size, real=True)
        transform = fft.rfft(laws, length, axis=1)
        laws = fft.irfft(transform[0::2] * transform[1::2], length, axis=1)[:, :size]
    return np.clip(laws[0, : len(p) + 1], 0.0, 1.0)


def _events(proba: Any, truth: Any) -> tuple[Floats, Integers]:
    """Return (n,) probabilities of an event and whether it happened; for distributions: the top label is right."""
    p, y = forecasts(proba, truth)
    return (p, y) if p.ndim == 1 else (p.max(axis=1), (p.argmax(axis=1) == y).astype(np.int64))


# --------------------------------------------------------------------------------------------------------------- losses
# Proper losses of forecasts, and measures of their sharpness.
#
# Forecasts are (n,) probabilities of an event or (n, c) distributions over classes, as above.

CLIP = 1e-15


def brier(proba: Any, truth: Any) -> float:
    """Return the mean Brier score.

    For one event the mean of (y - p)^2, in [0, 1]; for distributions the mean of sum_k (1{y = k} - p_k)^2, in
    [0, 2]. So the second of two classes as one event scores half of the two-class distribution.

    Parameters
    ----------
    proba : (n,) or (n, c) float64 in [0, 1]
    truth : (n,) of 0 and 1, or class codes

    Raises
    ------
    ValueError, TypeError
        The arrays are not as described.

    References
    ----------
    Brier (1950), "Verification of forecasts expressed in terms of probability".

    Examples
    --------
    >>> brier([0.75, 0.5], [1, 0]), brier([[0.25, 0.75], [0.5, 0.5]], [1, 0])
    (0.15625, 0.3125)
    """
    p, y = forecasts(proba, truth)
    if p.ndim == 1:
        return float(np.mean((y - p) ** 2))
    of_truth = p[np.arange(len(p)), y]
    return float(np.mean((p * p).sum(axis=1) - 2.0 * of_truth + 1.0))


@dataclass(frozen=True)
class MeanLogLoss:
    """A mean log loss, and how many probabilities were clipped."""

    #: Mean of -ln p, in nats.
    value: float
    #: Number of forecasts that gave the outcome a probability below `clip`.
    clipped: int
    #: Smaller probabilities count as this.
    clip: float


def log_loss(proba: Any, truth: Any, clip: float = CLIP) -> MeanLogLoss:
    """Return the mean of -ln of the outcome's probability, and the number of probabilities clipped.

    Parameters
    ----------
    proba : (n,) or (n, c) float64 in [0, 1]
    truth : (n,) of 0 and 1, or class codes
    clip : float in [0, 1), default 1e-15
        Smaller probabilities of the outcome count as `clip`. With 0 nothing is clipped, and the mean is infinite
        once an outcome had probability 0.

    Raises
    ------
    ValueError, TypeError
        The arrays are not as described, or the clip is out of range.

    Examples
    --------
    >>> log_loss([0.5, 0.0], [1, 1])
    MeanLogLoss(value=17.615961787735316, clipped=1, clip=1e-15)
    >>> log_loss([0.5, 0.0], [1, 1], clip=0).value
    inf
    """
    if not is_number(clip) or not 0 <= clip < 1:
        raise ValueError(f"clip must lie in [0, 1), got {clip!r}")
    p, y = forecasts(proba, truth)
    of_truth = np.where(y == 1, p, 1.0 - p) if p.ndim == 1 else p[np.arange(len(p)), y]
    with np.errstate(divide="ignore"):
        value = float(np.mean(-np.log(np.maximum(of_truth, clip))))
    return MeanLogLoss(value, int((of_truth < clip).sum()), float(clip))


@dataclass(frozen=True)
class Sharpness:
    """How much forecasts commit themselves, whatever the outcome."""

    #: Variance of the forecasts: for distributions the sum over the classes. Larger is sharper.
    variance: float
    #: Brier score that the forecasts expect of themselves. Smaller is sharper.
    expected_brier: float
    #: Log loss that they expect of themselves: their mean entropy in nats. Smaller is sharper.
    expected_log_loss: float


def sharpness(proba: Any) -> Sharpness:
    """Return measures of sharpness, a property of the forecasts alone.

    Among calibrated forecasts the sharper ones are better. The variance is the older measure, for one event. The
    other two are the entropies that belong to the two losses: on average a calibrated forecaster's loss equals its
    entropy, and any excess is miscalibration.

    Parameters
    ----------
    proba : (n,) or (n, c) float64 in [0, 1]
        As for `brier`: for one event (y - p)^2, for distributions the sum over the classes.

    Raises
    ------
    ValueError
        No row, another shape, or a number outside [0, 1].

    References
    ----------
    Murphy & Winkler (1992), "Diagnostic verification of probability forecasts"; Gneiting, Balabdaoui & Raftery
    (2007), "Probabilistic forecasts, calibration and sharpness"; Bröcker (2009), "Reliability, sufficiency, and the
    decomposition of proper scores".

    Examples
    --------
    >>> sharpness([0.0, 1.0])
    Sharpness(variance=0.25, expected_brier=0.0, expected_log_loss=0.0)
    >>> sharpness([[0.5, 0.5], [0.5, 0.5]])
    Sharpness(variance=0.0, expected_brier=0.5, expected_log_loss=0.6931471805599453)
    """
    p = probabilities(proba)
    rows = np.column_stack([1.0 - p, p]) if p.ndim == 1 else p
    logs = np.log(np.where(rows > 0.0, rows, 1.0))
    return Sharpness(
        variance=float(p.var(axis=0).sum()),
        expected_brier=float(np.mean(p * (1.0 - p) if p.ndim == 1 else 1.0 - (p * p).sum(axis=1))),
        expected_log_loss=float(np.mean(-(rows * logs).sum(axis=1))) + 0.0,
    )


# ------------------------------------------------------------------------------------------------------------- compared
# Two models on the same examples: how much better one is, with bounds that hold whenever one looks.


class Compared(NamedTuple):
    """The difference of the mean log losses of two models, that of the first minus that of the second, in nats.

    `str` says in one sentence which is better.
    """

    difference: float  #: below 0: the first model is better
    lower: float
    upper: float
    n: int  #: number of examples
    level: float

    @property
    def better(self) -> str:
        """The better model, "a" or "b"; empty while the bounds hold 0."""
        return "a" if self.upper < 0 else "b" if self.lower > 0 else ""

    def __str__(self) -> str:
        found = f"{self.better} is better" if self.better else "neither is known to be better"
        bounds = f"{self.difference:+.3f} ({self.lower:+.3f} to {self.upper:+.3f})"
        return f"{found}: log loss of a minus that of b {bounds} nats over {self.n} examples"


def compare(a: Any, b: Any, *, level: float = 0.05, least: float = 0.001) -> Compared:
    """Compare the log losses of two models on the same examples, in pairs, at any time and again at any later time.

    Theorem. Let d_i be the difference of the two losses of example i, given the past. With probability at least
    1 - `level`, the mean of the expected d_1, ..., d_n lies between the bounds for all n at once. Nothing is assumed of
    the examples, and models may go on learning: one may look after every example, and stop when the bounds say enough.
    Pairs make the bounds narrow, as what is hard for both models cancels.

    Parameters
    ----------
    a, b : (n,) probabilities
        What each model gave to the true label of each example before it came, n >= 1. Of a `Record` that is
        `record.outcomes(name).probability`.
    level : float in (0, 1), default 0.05
        Probability that the bounds are ever wrong.
    least : float in (0, 1), default 0.001
        Smaller probabilities count as this, so that a loss is at most ln(1 / least): bounds need losses that have a
        bound themselves. A larger one makes the bounds narrower, and forgives larger mistakes.

    Returns
    -------
    Compared
        `difference`, `lower`, `upper`, `n`, and `better`: "a", "b" or nothing. `str` gives a sentence.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from venn.monitors import compare
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 4000)  # the true probability of a "yes"
    >>> yes = rng.random(4000) < p
    >>> knows, guesses = np.where(yes, p, 1 - p), np.full(4000, 0.5)
    >>> print(compare(knows, guesses))
    a is better: log loss of a minus that of b ...
    >>> compare(knows[:50], guesses[:50]).better
    ''
    """
    level, smallest = fraction("level", level), fraction("least", least)
    first, second = numbers("a", a, 0.0, True), numbers("b", b, 0.0, True)
    if len(first) != len(second) or not len(first):
        raise ValueError(f"a and b must be of the same examples, at least one, got {len(first)} and {len(second)}")
    most = -log(smallest)
    losses = [-np.log(np.maximum(p, smallest)) for p in (first, second)]
    bound = StitchedBound(level, empirical=True)
    bound.update_many(np.clip((losses[0] - losses[1] + most) / (2 * most), 0.0, 1.0))  # by rounding, just outside
    lower, upper = (2 * most * end - most for end in (bound.lower, bound.upper))
    return Compared(float((losses[0] - losses[1]).mean()), lower, upper, len(first), level)
