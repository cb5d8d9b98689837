"""Support vector machines by definition: one dual variable for each example, solved from nothing every time.

A primal-dual interior point finds which coefficients are at a bound, a linear solve makes the others
exact, and a certificate written straight from the optimality conditions is what counts: a solution
that misses it is an error. No example is grouped with its duplicates and nothing is carried over from
one fit to the next.
"""

import itertools
from functools import lru_cache

import numpy as np

CERTIFICATE = 1e-9  # widest accepted gap of the optimality conditions, in units of the scores


def rbf(gamma):
    """K(x, z) = exp(-gamma |x - z|^2)."""
    return lambda X, Z: np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def linear():
    """K(x, z) = <x, z>."""
    return lambda X, Z: X @ Z.T


def polynomial(degree, gamma=1.0, coef0=1.0):
    """K(x, z) = (gamma <x, z> + coef0)^degree."""
    return lambda X, Z: (gamma * (X @ Z.T) + coef0) ** degree


def bias_interval(K, t, alpha, C):
    """Return the least and greatest b that the optimality conditions allow; crossed by the gap if they do not.

    t f >= 1 wherever alpha is below C, t f <= 1 wherever it is above 0.
    """
    g = K @ (alpha * t)
    at_least = ((t > 0) & (alpha < C)) | ((t < 0) & (alpha > 0))
    at_most = ((t > 0) & (alpha > 0)) | ((t < 0) & (alpha < C))
    return (t - g)[at_least].max(initial=-np.inf), (t - g)[at_most].min(initial=np.inf)


def gap(K, t, alpha, C):
    """Return how far the coefficients are from optimal: bias interval crossed, box left, sum not 0."""
    least, most = bias_interval(K, t, alpha, C)
    outside = max((-alpha).max(), (alpha - C).max(), abs(alpha @ t)) / C
    return max(least - most, outside, 0.0)


@np.errstate(all="ignore")  # it may end in overflow: what it returns is a guess, certified by others
def interior(K, t, C):
    """Minimise 1/2 C a'Qa - sum a over 0 <= a <= 1, t'a = 0.

    Returns rows: a, its slack 1 - a, and the multipliers of the two bounds. Mehrotra's predictor and corrector.
    """
    n = len(t)
    Q = C * K * np.outer(t, t)
    few = min((t > 0).sum(), (t < 0).sum())
    a = np.where(t > 0, few / (t > 0).sum(), few / (t < 0).sum()) / 2
    v = np.array([a, 1 - a, np.ones(n), np.ones(n)])
    b = 0.0
    for _ in range(200):
        a, s, z, w = v
        dual = Q @ a - 1 + b * t - z + w
        mu = (a @ z + s @ w) / (2 * n)
        if mu < 1e-20 or (mu < 1e-15 and abs(dual).max() < 1e-12 * max(1, abs(Q).max())):
            break
        try:
            M = np.linalg.inv(Q + np.diag(z / a + w / s))
        except np.linalg.LinAlgError:
            break
        db, d = newton(M, t, v, dual, 0.0, 0.0, 0.0)
        ahead = v + longest(v, d) * d
        after = (ahead[0] @ ahead[2] + ahead[1] @ ahead[3]) / (2 * n)
        db, d = newton(M, t, v, dual, mu * (after / mu) ** 3, d[0] * d[2], d[1] * d[3])
        step = 0.995 * longest(v, d)
        ahead = v + step * d
        if step < 1e-13 or not (np.isfinite(ahead) & (ahead > 1e-300)).all():
            break
        v, b = ahead, b + step * db
    return v


def newton(M, t, v, dual, target, cross_a, cross_s):
    """Return the Newton step db and rows (da, ds, dz, dw) towards a z = s w = target, less the given cross terms."""
    a, s, z, w = v
    comp_a, comp_s = (target - cross_a) / a - z, (target - cross_s) / s - w
    Mr, Mt = M @ (comp_a - comp_s - dual), M @ t
    db = (t @ Mr + t @ a) / (t @ Mt)
    da = Mr - db * Mt
    return db, np.array([da, -da, comp_a - z / a * da, comp_s + w / s * da])


def longest(v, d):
    """Return the longest step up to 1 that keeps all variables positive."""
    return min(1.0, np.where(d < 0, -v / np.minimum(d, -1e-300), np.inf).min())


def polished(K, t, C, a, low, high, rank=1e-13):
    """Put the coefficients of `low` at 0 and of `high` at C; solve t f = 1 on the others, to the given rank."""
    alpha = np.where(low, 0.0, np.where(high, C, C * np.clip(a, 0, 1)))
    free = ~(low | high)
    if not free.any():
        return alpha
    for _ in range(3):
        system = np.zeros((free.sum() + 1, free.sum() + 1))
        system[0, 1:] = system[1:, 0] = 1.0
        system[1:, 1:] = K[np.ix_(free, free)]
        g = K @ (alpha * t)
        level = (t - g)[free].mean()
        rhs = np.concatenate([[-(alpha @ t)], (t - g)[free] - level])
        change = np.linalg.lstsq(system, rhs, rcond=rank)[0]
        alpha[free] += change[1:] * t[free]
    # Only what rounding put outside its box is put back.
    return np.where(
        (alpha < 0) & (alpha > -1e-12 * C), 0.0, np.where((alpha > C) & (alpha < C * (1 + 1e-12)), C, alpha)
    )


def descend(K, t, alpha, C, tolerance, limit=20_000):
    """Move the pair that violates optimality most, again and again, until the gap is closed."""
    alpha = np.clip(alpha, 0, C)
    if alpha @ t != 0:
        alpha = np.zeros(len(t))
    g = K @ (alpha * t)
    for _ in range(limit):
        v = t - g
        up = ((t > 0) & (alpha < C)) | ((t < 0) & (alpha > 0))
        down = ((t > 0) & (alpha > 0)) | ((t < 0) & (alpha < C))
        i, j = np.where(up, v, -np.inf).argmax(), np.where(down, v, np.inf).argmin()
        if v[i] - v[j] <= tolerance:
            break
        step = (v[i] - v[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        room_i = C - alpha[i] if t[i] > 0 else alpha[i]
        room_j = alpha[j] if t[j] > 0 else C - alpha[j]
        step = min(step, room_i, room_j)
        alpha[i] = (C if t[i] > 0 else 0.0) if step == room_i else alpha[i] + t[i] * step
        alpha[j] = (0.0 if t[j] > 0 else C) if step == room_j else alpha[j] - t[j] * step
        g = g + step * (K[:, i] - K[:, j])
    return alpha


def coefficients(K, t, C):
    """Return the (n,) dual coefficients of one machine with both signs present, certified."""
    t = np.asarray(t, float)  # with all signs turned they are the same
    return _coefficients(np.ascontiguousarray(K, float).tobytes(), (t * t[0]).tobytes(), C).copy()


@lru_cache(maxsize=500)  # the same problem stands behind several hypotheses, machines and cases
def _coefficients(gram, signs, C):
    t = np.frombuffer(signs)
    K = np.frombuffer(gram).reshape(len(t), len(t))
    a, s, z, w = interior(K, t, C)
    best, best_gap = None, np.inf
    guesses = [((z > a) & ~(w > s), w > s)]
    guesses += [(a < cut, s < cut) for cut in (1e-6, 1e-8, 1e-4, 1e-10, 1e-12, 1e-3)]
    for rank, (low, high) in itertools.product((1e-13, 1e-15), guesses):
        for _ in range(5):  # coefficients that leave their box are put at its end, and the others solved again
            alpha = polished(K, t, C, a, low, high, rank)
            here = gap(K, t, alpha, C)
            if here < best_gap:
                best, best_gap = alpha, here
            if here <= 1e-12:
                return alpha
            if not ((alpha < 0) | (alpha > C)).any():
                break
            low, high = low | (alpha < 0), high | (alpha > C)
    if best_gap > CERTIFICATE:
        for tolerance in (1e-6, 1e-9, 1e-11):
            alpha = descend(K, t, best, C, tolerance)
            a = alpha / C
            for candidate in (alpha, polished(K, t, C, a, a <= 0, a >= 1)):
                here = gap(K, t, candidate, C)
                if here < best_gap:
                    best, best_gap = candidate, here
            if best_gap <= CERTIFICATE:
                break
    if not best_gap <= CERTIFICATE * max(1.0, abs(K).max() * 1e-3):
        raise ArithmeticError(f"the oracle's gap must be at most {CERTIFICATE}, got {best_gap}")
    return best


def scores(K, t, C):
    """Return the (n,) scores of the training examples by the machine with signs `t`.

    One sign only: that sign. Otherwise the bias is the midpoint of its interval, which is a point as
    soon as one coefficient is free.
    """
    t = np.asarray(t, dtype=float)
    if (t > 0).all():
        return np.ones(len(t))
    if (t < 0).all():
        return -np.ones(len(t))
    alpha = coefficients(K, t, C)
    least, most = bias_interval(K, t, alpha, C)
    return K @ (alpha * t) + (least + most) / 2


def one_vs_all(K, labels, c, C):
    """Return the (n, c) one-against-all scores of the training examples."""
    labels = np.asarray(labels)
    return np.column_stack([scores(K, np.where(labels == k, 1.0, -1.0), C) for k in range(c)])
