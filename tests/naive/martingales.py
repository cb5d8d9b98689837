"""Test martingales and alarms by definition: from all p-values at once, with nothing but `math`."""

import math

TINY = 1e-12


def power_bet(kappa, p):
    """Return kappa p^(kappa - 1); below TINY its mean over [0, TINY]."""
    return kappa * p ** (kappa - 1) if p >= TINY else TINY**kappa / TINY


def power(ps, kappa):
    """Return the logarithm of the capital after all p-values."""
    return math.fsum(math.log(power_bet(kappa, p)) for p in ps)


def simpson(values, width):
    """Return the integral over an interval of which `values` are an odd number of equidistant ordinates."""
    n = len(values) - 1
    return math.fsum(v * (1 if i in (0, n) else 4 if i % 2 else 2) for i, v in enumerate(values)) * width / n / 3


def mixture(ps):
    """Return the logarithm of the mean capital of power martingales over kappa in (0, 1)."""
    points = 2000
    return math.log(simpson([math.exp(power(ps, max(i, 1e-9) / points)) for i in range(points + 1)], 1.0))


def log_mixture(kept, L):
    """Return ln of the integral of k^kept e^((1 - k) L) over [0, 1]: Simpson where the integrand is not negligible."""

    def log(k):
        return (kept * math.log(k) if kept else 0.0) + (1 - k) * L

    peak = min(1.0, kept / L) if L > 0 else 1.0
    peak = max(peak, 1e-300)
    bounds = []
    for end in (1e-300, 1.0):
        near, far = peak, end
        if log(far) < log(peak) - 45:
            for _ in range(200):
                middle = (near + far) / 2
                near, far = (middle, far) if log(middle) > log(peak) - 45 else (near, middle)
        bounds.append(far)
    low, high = bounds
    values = [math.exp(log(low + (high - low) * i / 3000) - log(peak)) for i in range(3001)]
    return log(peak) + math.log(simpson(values, high - low))


def jumper(ps, jump):
    """Return the logarithm of the capital of the simple jumper."""
    epsilons = (-1, -0.5, 0, 0.5, 1)
    capital = {e: 1 / 5 for e in epsilons}
    for p in ps:
        total = sum(capital.values())
        capital = {e: (1 - jump) * c + jump / 5 * total for e, c in capital.items()}
        capital = {e: c * (1 + e * (p - 0.5)) for e, c in capital.items()}
    return math.log(sum(capital.values()))


def composite(ps, jumps):
    """Return the logarithm of the mean capital of simple jumpers."""
    return math.log(sum(math.exp(jumper(ps, jump)) for jump in jumps) / len(jumps))


def sleeper(ps, rate, grid):
    """Return the logarithm of the capital, by moments of waking: what wakes after step m + 1 bets from m + 2 on."""
    n = len(ps)
    levels = [i / grid for i in range(1, grid)]
    total = (1 - rate) ** n
    for m in range(n):
        won = [math.prod(b / a if p <= a else (1 - b) / (1 - a) for p in ps[m + 1 :]) for a in levels for b in levels]
        total += rate * (1 - rate) ** m * sum(won) / len(won)
    return math.log(total)


def plug_in(ps, uniform, window, cells=256):
    """Return the logarithms of the capital after each p-value, by the density at each p-value from all kernels."""
    log, path, bandwidth, chosen = 0.0, [], None, None
    for n, p in enumerate(ps):
        past = [min(int(q * cells), cells - 1) for q in (ps[:n] if window is None else ps[max(0, n - window) : n])]
        m = len(past)
        if m:
            # Chosen anew when a sixteenth of what is in memory has come since.
            if chosen is None or 16 * (n - chosen) >= m:
                mean = sum(past) / m
                deviation = math.sqrt(sum((cell - mean) ** 2 for cell in past) / m) / cells
                bandwidth, chosen = max(1.06 * deviation * m**-0.2, 1 / cells), n
            width = bandwidth * cells
            reach = min(cells, math.ceil(6 * width - 1e-9))
            weight = {d: math.exp(-((d / width) ** 2) / 2) for d in range(-reach, reach + 1)}
            whole = sum(weight.values())
            here = min(int(p * cells), cells - 1)
            images = [d for c in past for d in (here - c, here + c + 1, here + c + 1 - 2 * cells)]
            density = cells * sum(weight.get(d, 0.0) for d in images) / whole / m
            share = max(uniform, 10 / (10 + m))
            log += math.log(share + (1 - share) * density)
        path.append(log)
    return path


def beta_plug_in(ps, uniform):
    """Return the logarithms of the capital after each p-value."""
    log, path = 0.0, []
    for n, p in enumerate(ps):
        mean = (sum(ps[:n]) + 5) / (n + 10)
        second = (sum(q * q for q in ps[:n]) + 10 / 3) / (n + 10)
        common = mean * (1 - mean) / (second - mean**2) - 1
        a, b = (min(max(share * common, 0.01), 1000) for share in (mean, 1 - mean))
        scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        if p < TINY:
            density = math.exp(scale) * TINY ** (a - 1) / a
        elif 1 - p < TINY:
            density = math.exp(scale) * TINY ** (b - 1) / b
        else:
            density = math.exp(scale) * p ** (a - 1) * (1 - p) ** (b - 1)
        log += math.log(uniform + (1 - uniform) * density)
        path.append(log)
    return path


def cusum(logs):
    """Return max over i < n of S_n / S_i; `logs` are ln S_0, ..., ln S_n."""
    return max(math.exp(logs[-1] - earlier) for earlier in logs[:-1])


def shiryaev_roberts(logs):
    """Return the sum over i < n of S_n / S_i; `logs` are ln S_0, ..., ln S_n."""
    return math.fsum(math.exp(logs[-1] - earlier) for earlier in logs[:-1])


def restarting(statistic, log_capital, ps, threshold):
    """Return the statistic after each p-value and the steps of alarms; after one all begins anew.

    `log_capital(ps)` is the logarithm of the capital of a martingale that has seen these p-values.
    """
    path, alarms, start = [], [], 0
    for n in range(1, len(ps) + 1):
        path.append(statistic([log_capital(ps[start:i]) for i in range(start, n + 1)]))
        if path[-1] >= threshold:
            alarms.append(n)
            start = n
    return path, alarms
