"""A mixture of experts by its definition: the sum over all sequences of experts, one expert at each step."""

import itertools
import math


def probability(said, codes, prior, share):
    """Return the probability of the labels: of each sequence of experts the product of all it says, weighed.

    A sequence begins with an expert drawn by the prior. After each step it stays with probability 1 - share, else
    another draw by the prior follows, which may be the same expert.
    """
    total = 0.0
    for path in itertools.product(range(len(prior)), repeat=len(codes)):
        total += math.exp(-cost(path, prior, share)) * math.prod(
            said[t][i][code] for t, (i, code) in enumerate(zip(path, codes, strict=True))
        )
    return total


def cost(path, prior, share):
    """Return minus the logarithm of a sequence's weight."""
    found = -math.log(prior[path[0]])
    for i, j in itertools.pairwise(path):
        found -= math.log(share * prior[j] + (1 - share) * (i == j))
    return found


def pool(logs, powers, factors):
    """Return the normalised product of powers of forecasts, given their logarithms."""
    c = len(factors)
    values = [factors[k] + sum(b * one[k] for b, one in zip(powers, logs, strict=True)) for k in range(c)]
    most = max(values)
    raised = [math.exp(v - most) for v in values]
    return [one / sum(raised) for one in raised]


def pool_loss(logs, codes, powers, factors, first, ridge):
    """Return the log loss of the pool, and what it costs to be far from the first powers."""
    far = sum((b - a) ** 2 for b, a in zip(powers, first, strict=True)) + sum(a**2 for a in factors)
    return ridge * far - sum(math.log(pool(one, powers, factors)[k]) for one, k in zip(logs, codes, strict=True))
