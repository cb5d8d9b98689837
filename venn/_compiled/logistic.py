"""Kernel logistic regression: one machine with one more example, both ways, by Newton's method.

A machine over m distinct objects, of which object i has examples of mass n_i, P_i of it in the class, has coefficients
beta = C (P - n p), with p = 1 / (1 + exp(-f)) and f = K beta + b; they sum to 0. The mass of an example is its weight
times that of its class; with weights of 1, masses are numbers of examples. Newton's matrix is
A = K + 1 / W with W = C n p (1 - p). What is kept is G = (K + 1 / V)^-1, packed (see `packed`), where V are the
weights W rounded to powers of sqrt 2. So G changes only where a weight crosses to the next power, by
few ranks a step; and it preconditions A so well that conjugate gradients need few passes over it.
H = G - g g' / (1' g), g = G 1, makes coefficients sum to 0.

No product with K is needed inside: (K + 1 / V) G r = r, so A G r = r + (1 / W - 1 / V) G r.

Threads run these loops in parallel, each on the arrays of a different machine.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.dense import add_rows, dot
from venn._compiled.jit import compiled
from venn._compiled.packed import columns_of, multiply, multiply_one

LOWEST = -30  # power of two; smaller weights are not distinguished. Its probability is 2^-32
NEWTON = 100  # steps
PASSES = 60  # most passes in one Newton step
MILD = 1.3  # weights that move A farther from the kept matrix than this ratio are corrected
FOLDED = 64  # most weights corrected
GRAIN = 2  # levels in a factor of two
FINEST = 1e-12  # target for the error of a probability


class Bordered(NamedTuple):
    """The kept inverse with a new object joined to it; without a new object, `u` is empty."""

    G: Any  # (m (m + 1) / 2,) packed
    diagonal: Any  # (m,) of G
    g: Any  # (m,) G 1
    total: float  # 1' g
    u: Any  # (m,) G k, k the kernel of the new object with the m others
    kappa: float  # K(x, x) - k' u


@compiled
def probability(score):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(-score))."""
    if score >= 0.0:
        return 1.0 / (1.0 + math.exp(-score))
    small = math.exp(score)
    return small / (1.0 + small)


@compiled
def level(score):  # type: ignore[no-untyped-def]
    """Return the level nearest to 4 p (1 - p): a number of steps of 2^(1 / GRAIN), at most 0."""
    size = abs(score)
    power = -size / math.log(2.0) - 2.0 * math.log2(0.5 * (1.0 + math.exp(-size)))
    return max(LOWEST * GRAIN, int(np.rint(power * GRAIN)))


@compiled
def levels(score, m, out):  # type: ignore[no-untyped-def]
    """Set out[:m] to the levels of the scores."""
    for i in range(m):
        out[i] = level(score[i])


@compiled
def move_last(G, m, p):  # type: ignore[no-untyped-def]
    """Let the last of m objects take the place of object p in a packed matrix; the last row is then invalid."""
    last = m - 1
    row = G[last * (last + 1) // 2 :]
    if p < last:
        start = p * (p + 1) // 2
        for j in range(p):
            G[start + j] = row[j]
        G[start + p] = row[last]
        for i in range(p + 1, last):
            G[i * (i + 1) // 2 + p] = row[i]


@compiled
def errors(beta, score, positive, total, C, m, r, W):  # type: ignore[no-untyped-def]
    """Set r to C (P - n p) - beta and W to C n p (1 - p), floored; return the largest |r| / (C n).

    That is the largest error of a probability.
    """
    worst = 0.0
    floor = 0.25 * 2.0**LOWEST
    for i in range(m):
        small = math.exp(-abs(score[i]))
        large = 1.0 / (1.0 + small)
        small *= large
        negative = total[i] - positive[i]
        # All terms have full relative precision, however near p is to 0 or 1.
        pull = positive[i] * small - negative * large if score[i] >= 0.0 else positive[i] * large - negative * small
        r[i] = C * pull - beta[i]
        W[i] = C * total[i] * max(small * large, floor)
        worst = max(worst, abs(r[i]) / total[i])
    return worst / C


@compiled
def first_guess(score, pull, bound):  # type: ignore[no-untyped-def]
    """Return the coefficient, between 0 and `bound`, of a new object; its score moves by `pull` per unit of it.

    By bisection. The bound is C times the mass of its example, with a minus sign if the example is not of the class.
    """
    low, high = min(bound, 0.0), max(bound, 0.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        p = probability(score + pull * middle)
        wanted = bound * (1.0 - p) if bound > 0.0 else bound * p
        if wanted > middle:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@compiled
def slope(beta, score, delta, motion, share, positive, total, C, m):  # type: ignore[no-untyped-def]
    """Return the derivative of the objective, `share` of the way along a step."""
    found = 0.0
    for i in range(m):
        f = score[i] + share * motion[i]
        pull = C * (positive[i] * probability(-f) - (total[i] - positive[i]) * probability(f))
        found -= (pull - beta[i] - share * delta[i]) * motion[i]
    return found


@compiled
def strays(diagonal, m, V, W, effect, mild):  # type: ignore[no-untyped-def]
    """Set effect[:m] to how far each weight moves A from the matrix of weights V; return how many exceed `mild`.

    G A has 1 + G_ii (1 / W_i - 1 / V_i) on its diagonal: conjugate gradients need that near 1.
    """
    found = 0
    for i in range(m):
        ratio = 1.0 + diagonal[i] * (1.0 / W[i] - 1.0 / V[i])
        effect[i] = max(ratio, 1.0 / ratio)
        if effect[i] > mild:
            found += 1
    return found


@compiled
def fold(G, m, V, W, effect, found, columns, near):  # type: ignore[no-untyped-def]
    """Correct G, by low rank, for the weights that differ most; return the correction.

    `near` (>= m,) is set to the weights of the corrected matrix: W at the chosen objects, V elsewhere. Returns the
    chosen objects and a matrix M: the corrected inverse is G - columns' M columns.
    """
    mild = MILD
    while found > columns.shape[0]:
        mild *= 1.5
        found = 0
        for i in range(m):
            if effect[i] > mild:
                found += 1
    chosen = np.empty(found, np.int64)
    a = 0
    for i in range(m):
        near[i] = V[i]
        if effect[i] > mild:
            near[i] = W[i]
            chosen[a] = i
            a += 1
    columns_of(G, m, chosen, columns)
    core = np.empty((found, found))
    for a in range(found):
        for b in range(found):
            core[a, b] = columns[a, chosen[b]]
        core[a, a] += 1.0 / (1.0 / W[chosen[a]] - 1.0 / V[chosen[a]])
    return chosen, np.ascontiguousarray(np.linalg.inv(core))


@compiled
def correct(values, m, columns, M, at):  # type: ignore[no-untyped-def]
    """Subtract columns' M at from values[:m]; return at' M at."""
    shares = M @ at
    add_rows(values, m, columns, np.arange(at.size), -shares, at.size)
    return dot(at, shares, at.size)


@compiled
def descend_both(bordered, V, positive, total, worth, C, count, todo, finest, close, betas, scores, room, columns):  # type: ignore[no-untyped-def]
    """Solve the problems of two suppositions, side by side: they share passes over G.

    Parameters
    ----------
    bordered : Bordered
    V : (>= m,) float64, rounded weights of the m objects joined already
    positive, total : (2, >= count) float64, masses of the class and in all; the supposed example included
    worth : (2,) float64 > 0, mass that turns the sum of the coefficients / C into an error
    todo : (2,) bool, sides to solve
    finest : float, target for the error of a probability
    close : float, error below which a Newton step without gain is the last: the rest is rounding
    betas, scores : (2, >= count) float64, starts, and on return solutions; each scores - K beta constant
    room : (26, >= count) float64, for intermediate values
    columns : (2, FOLDED, >= count) float64, the same

    Returns
    -------
    int
        Passes over G.
    """
    G, diagonal, g, sum_g, u, kappa = bordered
    new = u.size > 0
    m = count - 1 if new else count
    rho, z, r, W, D, delta = room[0:2], room[2:4], room[4:6], room[6:8], room[8:10], room[10:12]
    along, image, motion, g_all, u_all, near = (
        room[12:14], room[14:16], room[16:18], room[18:20], room[20:22], room[22:24],
    )  # fmt: skip
    trial, effect = room[24], room[25]
    sums_g, pivots, kappas, sums_u = np.full(2, sum_g), np.ones(2), np.full(2, kappa), np.zeros(2)
    cores = [np.empty((0, 0)), np.empty((0, 0))]
    for s in range(2):
        for i in range(m):
            g_all[s, i] = g[i]
            near[s, i] = V[i]
        if new:
            for i in range(m):
                u_all[s, i] = u[i]
                sums_u[s] += u[i]
    active = todo.copy()
    afresh = todo.copy()  # a Newton step begins
    error, past = np.zeros(2), np.full(2, np.inf)
    eta, first, product = np.zeros(2), np.zeros(2), np.zeros(2)
    steps, inner = np.zeros(2, np.int64), np.zeros(2, np.int64)
    passes = 0
    while True:
        for s in range(2):
            if not (active[s] and afresh[s]):
                continue
            error[s] = errors(betas[s], scores[s], positive[s], total[s], C, count, r[s], W[s])
            excess = 0.0
            for i in range(count):
                excess += betas[s, i]
            error[s] = max(error[s], abs(excess) / (C * worth[s]))
            if error[s] <= finest or steps[s] >= NEWTON or (error[s] < close and error[s] > 0.5 * past[s]):
                active[s] = False
                continue
            past[s] = error[s]
            eta[s] = max(0.1 * finest / error[s], min(0.1, error[s]))
            if strays(diagonal, m, near[s], W[s], effect, MILD) > 0:
                found = strays(diagonal, m, V, W[s], effect, MILD)
                for i in range(m):
                    g_all[s, i] = g[i]
                    near[s, i] = V[i]
                    if new:
                        u_all[s, i] = u[i]
                cores[s] = np.empty((0, 0))
                sums_g[s], kappas[s] = sum_g, kappa
                if found > 0:
                    chosen, cores[s] = fold(G, m, V, W[s], effect, found, columns[s], near[s])
                    sums_g[s] -= correct(g_all[s], m, columns[s], cores[s], g[chosen])
                    if new:
                        kappas[s] += correct(u_all[s], m, columns[s], cores[s], u[chosen])
            elif new and steps[s] > 0:
                # Exclude the new object, which is joined again below.
                gain = g_all[s, m]
                for i in range(m):
                    g_all[s, i] += u_all[s, i] * gain
                sums_g[s] -= (1.0 - sums_u[s]) * gain
            for i in range(m):
                D[s, i] = 1.0 / W[s, i] - 1.0 / near[s, i]
            if new:
                D[s, m] = 0.0
                pivots[s] = kappas[s] + 1.0 / W[s, m]
                sums_u[s] = 0.0
                for i in range(m):
                    sums_u[s] += u_all[s, i]
                gain = (1.0 - sums_u[s]) / pivots[s]
                for i in range(m):
                    g_all[s, i] -= u_all[s, i] * gain
                g_all[s, m] = gain
                sums_g[s] += (1.0 - sums_u[s]) * gain
            # The step starts with the correction that restores the sum 0 of the coefficients.
            excess /= sums_g[s]
            for i in range(count):
                delta[s, i] = -excess * g_all[s, i]
                rho[s, i] = r[s, i] / W[s, i] - D[s, i] * delta[s, i]
                along[s, i] = 0.0
                image[s, i] = 0.0
            product[s] = 0.0
            inner[s] = 0
            afresh[s] = False
        if active[0] and active[1]:
            multiply(G, m, rho, z)
        elif active[0]:
            multiply_one(G, m, rho[0], z[0])
        elif active[1]:
            multiply_one(G, m, rho[1], z[1])
        else:
            return passes
        passes += 1
        for s in range(2):
            if not active[s]:
                continue
            rank = cores[s].shape[0]
            if rank > 0:
                at = np.empty(rank)
                for a in range(rank):
                    at[a] = dot(columns[s, a], rho[s], m)
                correct(z[s], m, columns[s], cores[s], at)
            if new:
                pull = (dot(u_all[s], rho[s], m) - rho[s, m]) / pivots[s]
                for i in range(m):
                    z[s, i] += u_all[s, i] * pull
                z[s, m] = -pull
            shift = 0.0
            for i in range(count):
                shift += z[s, i]
            shift /= sums_g[s]
            for i in range(count):
                z[s, i] -= g_all[s, i] * shift
            now = dot(rho[s], z[s], count)
            if inner[s] == 0:
                first[s] = now
            keep = now / product[s] if inner[s] > 0 else 0.0
            curve = 0.0
            for i in range(count):
                along[s, i] = z[s, i] + keep * along[s, i]
                image[s, i] = rho[s, i] - shift + D[s, i] * z[s, i] + keep * image[s, i]
                curve += along[s, i] * image[s, i]
            product[s] = now
            inner[s] += 1
            if now > 0.0 and curve > 0.0:
                length = now / curve
                for i in range(count):
                    delta[s, i] += length * along[s, i]
                    rho[s, i] -= length * image[s, i]
                if now > eta[s] * eta[s] * first[s] and inner[s] < PASSES:
                    continue
            # The Newton step is found. Its constant is the bias's move.
            shift = dot(g_all[s], rho[s], count) / sums_g[s]
            farthest = 0.0
            for i in range(count):
                motion[s, i] = (r[s, i] - delta[s, i]) / W[s, i] - (rho[s, i] - shift)
                farthest = max(farthest, abs(motion[s, i]))
            share = 1.0
            # A shorter step cannot be too long; coefficients that affect no score may still move.
            if error[s] > 1e-6 and farthest > 1e-6:
                start = -dot(r[s], motion[s], count)
                while share > 1e-10 and -0.5 * start < slope(
                    betas[s], scores[s], delta[s], motion[s], share, positive[s], total[s], C, count
                ):
                    share *= 0.5
            for i in range(count):
                trial[i] = betas[s, i]
                betas[s, i] += share * delta[s, i]
                scores[s, i] += share * motion[s, i]
            if error[s] < close:
                after = errors(betas[s], scores[s], positive[s], total[s], C, count, rho[s], z[s])
                if after > error[s]:
                    for i in range(count):
                        betas[s, i] = trial[i]
                        scores[s, i] -= share * motion[s, i]
            afresh[s] = True
            steps[s] += 1


@compiled
def start_both(bordered, V, base, bounds, todo, betas, scores):  # type: ignore[no-untyped-def]
    """Move both starts by the first guess of a new object's effect, at the machine's weights; its score is `base`.

    bounds (2,) are those of its coefficient, see `first_guess`; betas, scores (2, m + 1) hold the current machine;
    their last entries are set.
    """
    _, _, g, sum_g, u, kappa = bordered
    m = u.size
    sum_u = 0.0
    for i in range(m):
        sum_u += u[i]
    free = (1.0 - sum_u) / sum_g
    pull = kappa + (1.0 - sum_u) * free
    for s in range(2):
        if todo[s]:
            beta = first_guess(base, pull, bounds[s])
            for i in range(m):
                delta = -beta * (u[i] + g[i] * free)
                betas[s, i] += delta
                scores[s, i] -= delta / V[i]
            betas[s, m] = beta
            scores[s, m] = base + pull * beta
