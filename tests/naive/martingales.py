"""Test martingales and alarms by definition: from all p-values at once, with nothing but `math`."""

import math

TINY = 1e-12


def power_bet(kappa, p):
    """Return kappa p^(kappa - 1); below TINY its mean over [0, TINY]."""
    return kappa * p ** (kappa - 1) if p >= TINY else TINY**kappa / TINY


def power(ps, kappa):
    """Return the logarithm of the capital after all p-values."""
    return math.fsum(math.log(power_bet(kappa, p)) for p in ps)


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
