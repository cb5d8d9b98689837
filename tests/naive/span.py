"""Leave-one-out scores by definition: every machine from nothing, every span a least-squares problem of its own.

For one machine, beta_i is the sum of the signed coefficients of all examples at object i: equal objects
share theirs in a way that means nothing. The examples of the sign whose level the score has not reached are
all at their bound C. An example that goes takes with it what the others at its object cannot carry, and the
score moves by that times the squared distance of the object from the affine span of the others on the margin:
those whose score is a level at which their coefficient may move. beta_i is unique where that distance is not 0.
"""

import numpy as np

from naive import svm

NEAR = 1e-7  # a coefficient this near an end, in units of C, is at the end
LEVEL = 1e-8  # a score this near a level is at it
TIED = 1e-9  # distances this near are equal; under a flat kernel those of different objects may differ by 1e-7


def squared_span(K, i, others):
    """Return the squared distance of object i from the affine combinations of the others, 0 where there are none."""
    if not others:
        return 0.0
    m = len(others)
    system = np.zeros((m + 1, m + 1))
    system[0, 1:] = system[1:, 0] = 1.0
    system[1:, 1:] = K[np.ix_(others, others)]
    weights = np.linalg.lstsq(system, np.append(1.0, K[others, i]), rcond=1e-14)[0][1:]
    return max(0.0, K[i, i] - 2 * weights @ K[others, i] + weights @ K[np.ix_(others, others)] @ weights)


def has_to_go(sign, beta, P, N, C):
    """Return the size of the part of beta that goes with one example of the sign, at an object of P and N examples."""
    if sign < 0:
        return has_to_go(1, -beta, N, P, C)
    middle = C * (P - N)
    if beta < middle - NEAR * C:
        # The negative examples are at their bound; the positive ones carry the rest.
        part = beta + C * N - C * (P - 1)
    elif beta > middle + NEAR * C:
        # The positive examples are at their bound; what the negative ones carry against them is set free first.
        part = C - (C * P - beta)
    else:
        part = C
    return part if part > NEAR * C else 0.0


def leave_one_out(K, where, t, C):
    """Return the (n,) leave-one-out scores of examples with signs t at the objects `where` of the kernel matrix K."""
    return scores_and_leave_one_out(K, where, t, C)[1]


def scores_and_leave_one_out(K, where, t, C):
    """Return the (m,) scores of all objects of the kernel matrix K, and the leave-one-out scores of its examples."""
    where, t = np.asarray(where), np.asarray(t, float)
    n, m = len(t), len(K)
    if (t > 0).all() or (t < 0).all():
        return np.full(m, t[0] if n else 0.0), t.copy()
    Kn = K[np.ix_(where, where)]
    alpha = svm.coefficients(Kn, t, C)
    least, most = svm.bias_interval(Kn, t, alpha, C)
    if least > most - 1e-9 * max(1.0, abs(K).max()):
        least = most = (least + most) / 2
    f = np.array([K[i, where] @ (alpha * t) for i in range(m)]) + (least + most) / 2
    beta = np.bincount(where, alpha * t, m)
    P, N = np.bincount(where[t > 0], minlength=m), np.bincount(where[t < 0], minlength=m)
    free = [i for i in range(m) if (P[i] and abs(f[i] - 1) <= LEVEL) or (N[i] and abs(f[i] + 1) <= LEVEL)]
    out = np.empty(n)
    for e in range(n):
        i, sign = where[e], t[e]
        if (t == sign).sum() == 1:
            out[e] = -sign
            continue
        part = has_to_go(sign, beta[i], P[i], N[i], C)
        if part == 0:
            out[e] = f[i]
        elif free:
            out[e] = f[i] - sign * part * squared_span(K, i, [j for j in free if j != i])
        else:
            distance, square = first_met(sign, i, K, f, beta, P, N, C)
            out[e] = f[i] - sign * (distance + part * square)
    return f, out


def first_met(sign, i, K, f, beta, P, N, C):
    """Return how far the bias moves until an object can replace the example, and its squared distance from i.

    All coefficients stand at ends. Against the sign +1 scores fall: bounded negative examples meet -1, idle
    positive ones +1. Of several objects met at once the nearest counts.
    """
    met = []
    for j in range(len(K)):
        b, p, q = (beta[j], P[j], N[j]) if sign > 0 else (-beta[j], N[j], P[j])
        score = sign * f[j]
        if p and abs(b + C * q) <= NEAR * C:
            met.append((score - 1, j))
        elif q and b < C * p - NEAR * C:
            met.append((score + 1, j))
    distance = min(d for d, _ in met)
    return distance, min(K[i, i] + K[j, j] - 2 * K[i, j] for d, j in met if d <= distance + TIED)


def one_vs_all(K, where, labels, c, C):
    """Return the (n, c) leave-one-out scores by c machines."""
    labels = np.asarray(labels)
    return np.column_stack([leave_one_out(K, where, np.where(labels == k, 1.0, -1.0), C) for k in range(c)])
