"""Conformal p-values under a covariate shift, by definition: every example counts as many times as its weight."""

import numpy as np


def p_value(values, weights, new, own, tau):
    """Return the p-value of a new example of this nonconformity and weight among others."""
    above = sum(w for a, w in zip(values, weights, strict=True) if a > new)
    equal = sum(w for a, w in zip(values, weights, strict=True) if a == new) + own
    return (above + tau * equal) / (sum(weights) + own)


def isotonic_pair(scores, is_class, weights, score, own):
    """Return (p0, p1) of weighed Venn-Abers: isotonic rates at the new example, supposed 0 and 1.

    Isotonic regression by its formula: max over a <= score of min over b >= score of the weighed mean in [a, b].
    """
    if own == 0:
        return 0.0, 1.0
    found = []
    for label in (0, 1):
        f, y, w = np.append(scores, score), np.append(is_class, label), np.append(weights, own)
        points = sorted({value for value, weight in zip(f, w, strict=True) if weight > 0})

        def mean(a, b, f=f, y=y, w=w):
            inside = (f >= a) & (f <= b)
            return (w * y)[inside].sum() / w[inside].sum()

        found.append(max(min(mean(a, b) for b in points if b >= score) for a in points if a <= score))
    return tuple(found)
