"""Scores of many forecasts: computed row by row, so that a row has the same scores in every block."""

import math

from venn._compiled.jit import compiled

LOG_LOSS, BRIER, CONFIDENCE, VARIANCE, LOWER, UPPER = range(6)
WIDTH = 6


@compiled
def score_rows(proba, lower, upper, predicted, codes, clip, out):  # type: ignore[no-untyped-def]
    """Write the scores of n forecasts.

    Parameters
    ----------
    proba : (n, c) float64
        Point forecasts.
    lower, upper : (n, c) float64
        Bounds of each class.
    predicted, codes : (n,) int64
        Predicted and true classes.
    clip : float > 0
        Smaller probabilities count as this in the log loss.
    out : (WIDTH, n) float64, filled
    """
    for i in range(len(codes)):
        p, y, own = proba[i], codes[i], predicted[i]
        brier = 0.0
        for k in range(len(p)):
            gap = (1.0 if k == y else 0.0) - p[k]
            brier += gap * gap
        out[LOG_LOSS, i] = -math.log(max(p[y], clip))
        out[BRIER, i] = brier
        # Class intervals give sums that may exceed 1 by rounding.
        confidence = min(p[own], 1.0)
        out[CONFIDENCE, i] = confidence
        out[VARIANCE, i] = confidence * (1.0 - confidence)
        out[LOWER, i] = lower[i, own]
        out[UPPER, i] = upper[i, own]
