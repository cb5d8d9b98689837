"""Bounds by definition: the whole history every time, one candidate mean at a time."""

import math

import numpy as np
from scipy.special import zeta


def deviation(ds, delta):
    """Return the sum of the deviations and the radius of the band over all n at once."""
    n = len(ds)
    return sum(ds), math.sqrt(n * math.log(2 * n * (n + 1) / delta) / 2)


def forward(hits, lowers, uppers, bets):
    """Return ln of the e-process: capital multiplied out, bet by bet, side by side."""
    total = 0.0
    for bet in bets:
        above = below = 1.0
        for hit, lower, upper in zip(hits, lowers, uppers, strict=True):
            above *= 1 + bet * (hit - upper)
            below *= 1 + bet * (lower - hit)
        total += above / 2 + below / 2
    return math.log(total / len(bets))


def stitched_boundary(v, v_min, scale, alpha, s=1.4, eta=2.0):
    """Return the polynomial stitched boundary of Howard et al. (2021), equation (10), one-sided at alpha."""
    v = max(v, v_min)
    k1 = (eta**0.25 + eta**-0.25) / math.sqrt(2)
    k2 = (math.sqrt(eta) + 1) / 2
    ell = s * math.log(math.log(eta * v / v_min)) + math.log(zeta(s) / (alpha * math.log(eta) ** s))
    return math.sqrt(k1**2 * v * ell + (k2 * scale * ell) ** 2) + k2 * scale * ell


def stitched(xs, level, empirical):
    """Return the bounds of the average conditional mean."""
    n = len(xs)
    if empirical:
        guesses = [(0.5 + sum(xs[:i])) / (i + 1) for i in range(n)]
        variance, scale = sum((x - guess) ** 2 for x, guess in zip(xs, guesses, strict=True)), 1.0
    else:
        variance, scale = n / 4, 0.0
    radius = stitched_boundary(variance, 1.0, scale, level / 2) / n
    return max(0.0, sum(xs) / n - radius), min(1.0, sum(xs) / n + radius)


def bets(xs, level):
    """Return the predictable plug-in bets of Waudby-Smith & Ramdas (2024), equation (15), before any cap."""
    means = [(0.5 + sum(xs[: i + 1])) / (i + 2) for i in range(len(xs))]  # with x_i
    answer = []
    for t in range(1, len(xs) + 1):
        variance = (0.25 + sum((xs[i] - means[i]) ** 2 for i in range(t - 1))) / t
        answer.append(math.sqrt(2 * math.log(2 / level) / (variance * t * math.log(1 + t))))
    return answer


def hedged(xs, lambdas, mean):
    """Return ln of the capital of the two gamblers, half each, against one candidate in (0, 1)."""
    up = down = math.log(0.5)
    for x, bet in zip(xs, lambdas, strict=True):
        up += math.log(1 + min(bet, 0.5 / mean) * (x - mean))
        down += math.log(1 - min(bet, 0.5 / (1 - mean)) * (x - mean))
    return up, down


def betting_exact(xs, level):
    """Return the bounds with every real candidate: bisection over the two monotone capitals."""

    def last(refused, a, b):
        """Return where `refused`, true at a and false at b, changes."""
        for _ in range(50):
            middle = (a + b) / 2
            a, b = (middle, b) if refused(middle) else (a, middle)
        return (a + b) / 2

    tiny, threshold, lambdas = 1e-9, math.log(1 / level), bets(xs, level)
    lower = last(lambda m: hedged(xs, lambdas, m)[0] >= threshold, tiny, 1 - tiny)
    upper = last(lambda m: hedged(xs, lambdas, m)[1] >= threshold, 1 - tiny, tiny)
    return lower, upper


def betting_on_grid(xs, level, cells):
    """Return the bounds from the candidates on the grid alone, each tried on its own."""
    grid = [math.sin(math.pi * k / (2 * cells)) ** 2 for k in range(1, cells)]
    lambdas = bets(xs, level)
    capital = [hedged(xs, lambdas, m) for m in grid]
    threshold = math.log(1 / level)
    lower = max([m for m, (up, _) in zip(grid, capital, strict=True) if up >= threshold], default=0.0)
    upper = min([m for m, (_, down) in zip(grid, capital, strict=True) if down >= threshold], default=1.0)
    return lower, upper


def hoeffding_at_each_n(xs, level):
    """Return (n, 2): the interval that is right for one n fixed beforehand, and used at every n: broken."""
    n = np.arange(1, len(xs) + 1)
    mean, radius = np.cumsum(xs) / n, np.sqrt(math.log(2 / level) / (2 * n))
    return np.column_stack([mean - radius, mean + radius])


def fair_coin_venn(rng, n):
    """Return hits, lower and upper for the event "class 1" of the one-category Venn predictor on fair coins."""
    hits = rng.integers(0, 2, n)
    steps = np.arange(1, n + 1)
    before = np.cumsum(hits) - hits
    return hits, before / steps, (before + 1) / steps


def bettor_who_knows_the_coin(lower, upper):
    """Return for each step which side to bet on and how much: the bet of largest growth, at most 1/2."""
    up = np.clip(0.5 - upper, 0, None) / np.clip(upper * (1 - upper), 1e-300, None)
    down = np.clip(lower - 0.5, 0, None) / np.clip(lower * (1 - lower), 1e-300, None)
    return np.minimum(0.5, up), np.minimum(0.5, down)


def capital_of_the_bettor(hits, lower, upper):
    """Return the capital after each step of one who knows that the coin is fair; a predictable e-process under H0."""
    up, down = bettor_who_knows_the_coin(lower, upper)
    return np.cumprod(1 + up * (hits - upper) + down * (lower - hits))
