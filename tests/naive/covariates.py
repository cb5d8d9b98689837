"""Conformal p-values under a covariate shift, by definition: every example counts as many times as its weight."""


def p_value(values, weights, new, own, tau):
    """Return the p-value of a new example of this nonconformity and weight among others."""
    above = sum(w for a, w in zip(values, weights, strict=True) if a > new)
    equal = sum(w for a, w in zip(values, weights, strict=True) if a == new) + own
    return (above + tau * equal) / (sum(weights) + own)
