"""When a change began, by its definition: products of likelihood ratios, one candidate after the other."""

from fractions import Fraction
from math import exp

TILTS = (-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0)
BENDS = (-1.0, 0.0, 0.5, 2.0)
POWERS = (0.1, 0.25, 0.5, 0.75, 1.5, 3.0)


def event_ratios(happened, claimed):
    """Return for each tilt and bend the probability of what happened after the change over that before it."""
    found = []
    for tilt in TILTS:
        after = claimed * exp(tilt) / (claimed * exp(tilt) + 1 - claimed)
        found.append(after / claimed if happened else (1 - after) / (1 - claimed))
    p = min(max(claimed, 1e-6), 1 - 1e-6)
    for bend in BENDS:
        after = p**bend / (p**bend + (1 - p) ** bend)
        found.append(after / p if happened else (1 - after) / (1 - p))
    return found


def p_value_ratios(p):
    """Return for each alternative the density of p after the change; before it the density is 1."""
    return [(1 + k * max(q, 1e-12) ** (k - 1)) / 2 for q in (p, 1 - p) for k in POWERS]


def change_point(ratios, first, mass=0.95, began=()):
    """Return the likeliest first step after the change, and the first and last of the likeliest `mass` of steps.

    `ratios[i][a]`: of step first + i by alternative a. The steps `began` end periods: the change is in the last one, or
    in the one before if a likelihood there is at least 20, and so on.
    """
    steps = range(first, first + len(ratios))
    periods = [[s for s in steps if sum(s > b for b in began) == k] for k in range(len(began) + 1)]
    found = None
    for period in reversed([period for period in periods if period]):
        likelihoods = {}
        for start in period:
            total = 0.0
            for a in range(len(ratios[0])):
                product = 1.0
                for step in period:
                    product *= ratios[step - first][a] if step >= start else 1.0
                total += product
            likelihoods[start] = total / len(ratios[0])
        if found and max(likelihoods.values()) < 20:
            break
        found = likelihoods
    held, chosen = 0.0, []
    for step in sorted(found, key=lambda step: (-found[step], step)):
        if held >= mass * sum(found.values()):
            break
        held += found[step]
        chosen.append(step)
    return chosen[0], min(chosen), max(chosen)


def counted_ratios(codes, kinds):
    """Return for each step the probability of the codes before it times that of those from it on, as a fraction.

    Shares are drawn by Jeffreys' prior, so the next code is k with probability (n_k + 1/2) / (n + kinds / 2).
    """

    def chance(part):
        found, counts = Fraction(1), [Fraction(1, 2)] * kinds
        for code in part:
            found *= counts[code] / sum(counts)
            counts[code] += 1
        return found

    return [chance(codes[:start]) * chance(codes[start:]) for start in range(len(codes))]
