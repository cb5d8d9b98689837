"""Linear support vector machines of the hinge loss, in the primal: one fit of one set of examples.

Examples have a row x_i, a sign s_i, a cost c_i and a level l_i; the objective is
1/2 |w|^2 + sum_i c_i max(0, z_i) with z_i = l_i - s_i (w . x_i + b). The multiplier of example i is c_i a_i, and its
share a_i lies in [0, 1].

The solver is the proximal method on the dual (the method of multipliers on the primal): given shares A, it minimises
over (w, b) the smooth 1/2 |w|^2 + sum_i c_i d theta(A_i + z_i / d), theta' = clip(., 0, 1), by Newton's method; then
the shares are a_i = clip(A_i + z_i / d, 0, 1), w = sum_i c_i a_i s_i x_i and sum_i c_i a_i s_i = 0. These become
the next A, and d, the width of the zone in which the loss bends, shrinks. With the right examples in that zone a round
multiplies the error by about d, so d need not become small. Only the examples in the zone contribute to Newton's
matrix.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np

compiled = numba.njit(cache=True, error_model="numpy", fastmath={"contract"}, nogil=True)
# Sums over one row may use lanes, as they limit the speed; all others are in the order of examples.
in_lanes = numba.njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)

NEWTON = 200  # largest number of steps of one round
STAGES = 100
REACH = 4.0  # in widths: examples nearer to their kink are examined in each step, the others once per stage
SEARCH = 40  # most slopes computed along one step


class Rows(NamedTuple):
    """Objects, dense or compressed: row i has `values[starts[i]:starts[i + 1]]` in `columns` of the same positions."""

    dense: Any  # (n, d) float64; (0, d) if the rows are compressed
    starts: Any  # (n + 1,) int64; (1,) if dense
    columns: Any  # uint32: signed ones would be tested for a count from the end
    values: Any  # float64


class Room(NamedTuple):
    """Memory of a solver."""

    z: Any  # (n,) float64
    dz: Any  # (n,) float64
    kept: Any  # (n,) float64, shares A
    zone: Any  # (n,) int64
    near: Any  # (n,) int64
    H: Any  # (d + 1, d + 1) float64
    u: Any  # (d + 1,) float64, u at the start of a stage
    pull: Any  # (d + 1,) float64, sum_i c_i a_i s_i (x_i, 1)
    g: Any  # (d + 1,) float64
    v: Any  # (d + 1,) float64


@in_lanes
def dense_dot(a, b):
    """Return the inner product of the first len(a) entries."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@compiled
def sparse_dot(values, columns, first, last, b):
    """Return the inner product of a compressed row, from `first` to before `last`, with a vector."""
    total = 0.0
    for j in range(first, last):
        total += values[j] * b[columns[j]]
    return total


@compiled
def project(rows, chosen, v, out):
    """Set out[i] to v[:d] . x_i + v[d] for the chosen i."""
    d = rows.dense.shape[1]
    if rows.dense.shape[0] > 0:
        for i in chosen:
            out[i] = dense_dot(rows.dense[i], v) + v[d]
    else:
        for i in chosen:
            out[i] = sparse_dot(rows.values, rows.columns, rows.starts[i], rows.starts[i + 1], v) + v[d]


@compiled
def add_row(rows, i, coefficient, v):
    """Add coefficient (x_i, 1) to v."""
    d = rows.dense.shape[1]
    if rows.dense.shape[0] > 0:
        for j in range(d):
            v[j] += coefficient * rows.dense[i, j]
    else:
        for j in range(rows.starts[i], rows.starts[i + 1]):
            v[rows.columns[j]] += coefficient * rows.values[j]
    v[d] += coefficient


@compiled
def add_square(rows, i, coefficient, H):
    """Add coefficient (x_i, 1) (x_i, 1)' to the upper triangle of H. Columns of a compressed row ascend."""
    d = rows.dense.shape[1]
    if rows.dense.shape[0] > 0:
        for j in range(d):
            part = coefficient * rows.dense[i, j]
            for k in range(j, d):
                H[j, k] += part * rows.dense[i, k]
            H[j, d] += part
    else:
        a, e = rows.starts[i], rows.starts[i + 1]
        for j in range(a, e):
            part = coefficient * rows.values[j]
            at = rows.columns[j]
            for k in range(j, e):
                H[at, rows.columns[k]] += part * rows.values[k]
            H[at, d] += part
    H[d, d] += coefficient


@compiled
def solve_in_place(H, g):
    """Solve H x = g for a positive definite H, given by its upper triangle, which is overwritten, as is g.

    A pivot lost in rounding counts as infinite: x stays 0 in that direction.
    """
    p = g.size
    for k in range(p):
        scale = H[k, k]
        for i in range(k):
            scale += H[i, k] * H[i, k]
        if H[k, k] <= 1e-15 * scale:
            for j in range(k, p):
                H[k, j] = 0.0
            H[k, k] = math.inf
            continue
        root = math.sqrt(H[k, k])
        H[k, k] = root
        for j in range(k + 1, p):
            H[k, j] /= root
        for i in range(k + 1, p):
            factor = H[k, i]
            if factor != 0.0:
                for j in range(i, p):
                    H[i, j] -= factor * H[k, j]
    for k in range(p):
        g[k] /= H[k, k]
        for j in range(k + 1, p):
            g[j] -= H[k, j] * g[k]
    for k in range(p - 1, -1, -1):
        total = g[k]
        for j in range(k + 1, p):
            total -= H[k, j] * g[j]
        g[k] = total / H[k, k]


@compiled
def slope(near, costs, z, dz, kept, share, inverse, t):
    """Return the growth of the smoothed losses' derivative at the fraction t of a step."""
    total = 0.0
    for i in near:
        now = min(max(kept[i] + (z[i] + t * dz[i]) * inverse, 0.0), 1.0)
        total += costs[i] * (now - share[i]) * dz[i]
    return total


@compiled
def step_length(near, costs, z, dz, kept, share, inverse, square, start):
    """Return the fraction of a step at which the derivative of the objective has almost vanished.

    It is start < 0 at 0, and start + t square + the growth of the losses' slope at t; it never decreases.
    """
    low, at_low = 0.0, start
    high = 1.0
    at_high = start + square + slope(near, costs, z, dz, kept, share, inverse, 1.0)
    while at_high < 0.5 * start and high < 1e6:
        low, at_low = high, at_high
        high *= 4.0
        at_high = start + high * square + slope(near, costs, z, dz, kept, share, inverse, high)
    if at_high <= -0.1 * start:
        return high
    for _ in range(SEARCH):
        t = (low * at_high - high * at_low) / (at_high - at_low)
        # Kept away from the ends: otherwise one of them might never move.
        t = min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        now = start + t * square + slope(near, costs, z, dz, kept, share, inverse, t)
        if abs(now) <= -0.1 * start:
            return t
        if now > 0.0:
            high, at_high = t, now
        else:
            low, at_low = t, now
    return low if low > 0.0 else high


@compiled
def refresh(rows, near, signs, costs, inverse, room, share, pull):
    """Set shares from z, update `pull` = sum_i c_i a_i s_i (x_i, 1), list the zone; return its size."""
    inside = 0
    for i in near:
        new = room.kept[i] + room.z[i] * inverse
        if new <= 0.0:
            new = 0.0
        elif new >= 1.0:
            new = 1.0
        else:
            room.zone[inside] = i
            inside += 1
        if new != share[i]:
            add_row(rows, i, costs[i] * (new - share[i]) * signs[i], pull)
            share[i] = new
    return inside


@compiled
def excess_of(some, costs, z, share):
    """Return the excess of the losses at z over the multipliers' values; all terms are >= 0."""
    excess = 0.0
    for i in some:
        excess += costs[i] * (z[i] * (1.0 - share[i]) if z[i] > 0.0 else -z[i] * share[i])
    return excess


@compiled
def descend(rows, near, signs, costs, u, share, width, finest, room):
    """Minimise the smoothed objective over the near examples; the shares of all others stay.

    `room.pull` is that of all examples. It stops when the error is at most the excess or `finest`.

    Returns
    -------
    error : float
        Half the squared distance between w and the multipliers' w, plus the same for the bias.
    excess : float
        Of the near examples.
    steps : int
    """
    d = u.size - 1
    z, dz, kept, H, pull, g, v = room.z, room.dz, room.kept, room.H, room.pull, room.g, room.v
    inverse = 1.0 / width
    error, excess = math.inf, math.inf
    for step in range(NEWTON):
        inside = refresh(rows, near, signs, costs, inverse, room, share, pull)
        error = 0.0
        for j in range(d):
            g[j] = pull[j] - u[j]
            error += g[j] * g[j]
        g[d] = pull[d]
        error = 0.5 * error + abs(g[d]) * (abs(u[d]) + 1.0)
        excess = excess_of(near, costs, z, share)
        if error <= max(excess, finest):
            return error, excess, step
        for j in range(d):
            H[j, :] = 0.0
            H[j, j] = 1.0
        H[d, d] = 0.0
        for k in range(inside):
            i = room.zone[k]
            add_square(rows, i, costs[i] * inverse, H)
        if inside == 0:
            # The bias then has no curvature: use about that of one example.
            H[d, d] = inverse * costs.max()
        v[:] = g
        solve_in_place(H, v)
        square, start = 0.0, -g[d] * v[d]
        for j in range(d):
            square += v[j] * v[j]
            start -= g[j] * v[j]
        if start >= 0.0:
            break
        project(rows, near, v, dz)
        for i in near:
            dz[i] *= -signs[i]
        t = step_length(near, costs, z, dz, kept, share, inverse, square, start)
        for j in range(d + 1):
            u[j] += t * v[j]
        for i in near:
            z[i] += t * dz[i]
    return error, excess, NEWTON


@compiled
def measure(rows, chosen, signs, levels, u, z):
    """Set z[i] to l_i - s_i (w . x_i + b) for the chosen examples."""
    project(rows, chosen, u, z)
    for i in chosen:
        z[i] = levels[i] - signs[i] * z[i]


@compiled
def best_bias(chosen, signs, costs, z, reach):
    """Return the midpoint of the moves of the bias that minimise the losses.

    Losses fall by c_i per unit of a move up if s_i = 1 and z_i > move, and rise by it if s_i = -1 and -z_i < move.
    Both signs must be there.
    """
    total = 0.0
    for i in chosen:
        total += costs[i]
    while True:
        slope_low, near = 0.0, 0
        slope_high = 0.0
        for i in chosen:
            at = signs[i] * z[i]
            if signs[i] > 0.0:
                if at >= -reach:
                    slope_low -= costs[i]
                if at > reach:
                    slope_high -= costs[i]
            else:
                if at < -reach:
                    slope_low += costs[i]
                if at <= reach:
                    slope_high += costs[i]
            if -reach <= at <= reach:
                near += 1
        # Costs need not be whole numbers: their sums are equal up to rounding.
        tiny = 1e-13 * total
        if slope_low < -tiny and slope_high > tiny:
            break
        reach *= 8.0
        if not reach < math.inf:
            return math.nan
    places, steps = np.empty(near), np.empty(near)
    k = 0
    for i in chosen:
        at = signs[i] * z[i]
        if -reach <= at <= reach:
            places[k] = at
            steps[k] = costs[i]
            k += 1
    order = np.argsort(places)
    low = 0.0
    found = False
    now = slope_low
    for k in order:
        now += steps[k]
        if not found and now >= -tiny:
            low = places[k]
            found = True
        if now > tiny:
            return 0.5 * (low + places[k])
    return low


@compiled
def fit(rows, chosen, signs, costs, levels, u, share, width, shrink, tolerance, room):
    """Minimise 1/2 |w|^2 + sum_i c_i max(0, l_i - s_i (w . x_i + b)) over the chosen examples.

    Parameters
    ----------
    rows : Rows
    chosen : (m,) int64, of costs > 0; both signs must be there
    signs, costs, levels : (n,) float64
    u : (d + 1,) float64, start, and on return the solution, the bias last
    share : (n,) float64 in [0, 1], the same
    width : float, of the zone in the first round
    shrink : float < 1
    tolerance : float, of the gap as a share of the objective
    room : Room

    Returns
    -------
    objective, gap : float
        The gap is proved: it comes from multipliers that satisfy the dual's constraints.
    steps : int, of Newton's method
    stages : int, passes over all chosen examples
    """
    z, kept, pull = room.z, room.kept, room.pull
    pull[:] = 0.0
    floor = 0.0
    for i in chosen:
        kept[i] = share[i]
        add_row(rows, i, costs[i] * share[i] * signs[i], pull)
        floor += costs[i] * abs(levels[i])
    floor *= 1e-14
    measure(rows, chosen, signs, levels, u, z)
    reach, steps = REACH * width, 0
    objective, gap = math.inf, math.inf
    finest = 0.0
    value = objective_of(chosen, costs, u, z)
    for stage in range(STAGES):
        refresh(rows, chosen, signs, costs, 1.0 / width, room, share, pull)
        near = room.near[: nearby(chosen, z, reach, room.near)]
        room.u[:] = u
        before = width
        for _ in range(2):
            error, excess, more = descend(rows, near, signs, costs, u, share, width, finest, room)
            steps += more
            if error + excess <= finest:
                break
            for i in near:
                kept[i] = share[i]
            width *= shrink
        measure(rows, chosen, signs, levels, u, z)
        everything = excess_of(chosen, costs, z, share)
        now = objective_of(chosen, costs, u, z)
        if (everything > 10.0 * (excess + error) + finest or now > 10.0 * value) and near.size < chosen.size:
            # Examples set aside crossed their kink, too far to go on with so few. Or these alone do not determine the
            # bias, which diverges.
            u[:] = room.u
            width = before
            reach *= 4.0
            measure(rows, chosen, signs, levels, u, z)
            continue
        reach = 2.0 * reach if everything > 2.0 * excess + finest else REACH * width
        for i in chosen:
            kept[i] = share[i]
        value = now
        finest = 0.3 * tolerance * value + floor
        if error + everything <= tolerance * value + floor:
            objective, gap = certify(rows, chosen, signs, costs, u, share, width, room)
            if gap <= tolerance * objective + floor:
                return objective, gap, steps, stage + 1
    return objective, math.inf, steps, STAGES


@compiled
def nearby(chosen, z, reach, near):
    """List the chosen examples with |z| at most `reach`; return how many."""
    count = 0
    for i in chosen:
        if abs(z[i]) <= reach:
            near[count] = i
            count += 1
    return count


@compiled
def objective_of(chosen, costs, u, z):
    """Return 1/2 |w|^2 + sum_i c_i max(0, z_i)."""
    value = 0.0
    for j in range(u.size - 1):
        value += 0.5 * u[j] * u[j]
    for i in chosen:
        value += costs[i] * max(z[i], 0.0)
    return value


@compiled
def certify(rows, chosen, signs, costs, u, share, width, room):
    """Set the best bias; return the objective and its gap to that of multipliers made feasible.

    z must be that of u; `room.pull` is computed afresh.
    """
    d = u.size - 1
    z, positive, negative = room.z, room.pull, room.g
    move = best_bias(chosen, signs, costs, z, width)
    u[d] += move
    positive[:] = 0.0
    negative[:] = 0.0
    for i in chosen:
        z[i] -= signs[i] * move
        if share[i] > 0.0:
            add_row(rows, i, signs[i] * costs[i] * share[i], positive if signs[i] > 0.0 else negative)
    # The sums of both signs must be equal: the larger one is scaled down.
    a, e = 1.0, 1.0
    if positive[d] > -negative[d]:
        a = -negative[d] / positive[d]
    elif positive[d] < -negative[d]:
        e = -positive[d] / negative[d]
    # All terms of the gap are >= 0: nothing cancels.
    gap = 0.0
    for j in range(d):
        gap += 0.5 * (a * positive[j] + e * negative[j] - u[j]) ** 2
    for i in chosen:
        feasible = share[i] * (a if signs[i] > 0.0 else e)
        gap += costs[i] * (z[i] * (1.0 - feasible) if z[i] > 0.0 else -z[i] * feasible)
    for j in range(d + 1):
        positive[j] += negative[j]
    return objective_of(chosen, costs, u, z), gap
