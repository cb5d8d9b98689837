"""Proper losses of forecasts, and measures of their sharpness.

Forecasts are (n,) probabilities of an event or (n, c) distributions over classes, as in `venn.monitors.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from venn.monitors.checks import forecasts, probabilities
from venn.parameters import is_number

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
