"""Powers of a forecast mixed by how well each has done, in plain Python."""

from __future__ import annotations

import math


def power(proba, exponent):
    """Return the normalised powers of the probabilities of one object."""
    raised = [p**exponent for p in proba]
    return [p / sum(raised) for p in raised]


def mixed(forecasts, labels, exponents=(1.0, 1.5, 2.0)):
    """Return the mixture at every step of a stream of forecasts (lists of probabilities) and class codes."""
    told = []
    for t in range(len(forecasts)):
        past = [math.prod(power(forecasts[i], a)[labels[i]] for i in range(t)) for a in exponents]
        now = [power(forecasts[t], a) for a in exponents]
        told.append(
            [sum(w * p[k] for w, p in zip(past, now, strict=True)) / sum(past) for k in range(len(forecasts[t]))]
        )
    return told
