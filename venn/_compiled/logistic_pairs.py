"""Kernel logistic regression by pairwise descent on the dual: sequential minimal optimisation."""

import math

import numpy as np

from venn._compiled.jit import compiled

LEAST = 2.0**-200  # multipliers stay so far from 0 and C, in units of C: scores of 138 have such ones


@compiled
def imbalance(taken, left, many, i_sign, j_sign, C, bend, gap, move):  # type: ignore[no-untyped-def]
    """Return how much two optimality values differ, and the derivative, after a transfer of `move`."""
    floor = LEAST * C
    a, not_a = max(taken[0] + i_sign * move / many[0], floor), max(left[0] - i_sign * move / many[0], floor)
    b, not_b = max(taken[1] - j_sign * move / many[1], floor), max(left[1] + j_sign * move / many[1], floor)
    found = gap + move * bend + i_sign * math.log(a / not_a) - j_sign * math.log(b / not_b)
    return found, bend + C / (a * not_a * many[0]) + C / (b * not_b * many[1])


@compiled
def promising(K, where, value, curve, level):  # type: ignore[no-untyped-def]
    """Return the pair of the largest decrease in sight, the first alone and the second beside it; lower value first."""
    most, i = -1.0, 0
    for v in range(value.size):
        gain = (value[v] - level) ** 2 / curve[v]
        if gain > most:
            most = gain
            i = v
    most, j = -1.0, i
    for v in range(value.size):
        if v != i:
            gain = (value[v] - value[i]) ** 2 / (curve[v] + curve[i] - 2.0 * K[where[v], where[i]])
            if gain > most:
                most = gain
                j = v
    return (i, j) if value[i] <= value[j] else (j, i)


@compiled
def descend_pairs(K, where, sign, multiplicity, C, gap, rounds, alpha, rest):  # type: ignore[no-untyped-def]
    """Minimise the dual by moves of pairs, in place; return how far the optimality values lie apart in the end.

    Variable v is the multiplier, strictly between 0 and C, of each of `multiplicity[v]` examples of label `sign[v]`
    (+1 or -1) at object `where[v]`; `rest` is C - alpha, kept beside it for its own relative precision. The optimality
    value is sum_j alpha_j y_j K_ij + y_i ln(alpha_i / (C - alpha_i)), at the optimum -b for all.

    In every second round the pair moves that lies farthest apart, of those that can. It alone might hardly get on: a
    tiny multiplier is called to and fro between others and carries next to nothing. So in the rounds between the
    pair is one that should lower the objective much, by a Newton step on either alone and then on both.
    """
    size = where.size
    floor = LEAST * C
    output, value, curve = np.zeros(size), np.empty(size), np.empty(size)
    for v in range(size):
        force = sign[v] * multiplicity[v] * alpha[v]
        for w in range(size):
            output[w] += force * K[where[v], where[w]]
    taken, left, many = np.empty(2), np.empty(2), np.empty(2)
    apart = np.inf
    for turn in range(rounds):
        i, j = 0, 0
        low, high = np.inf, -np.inf
        level, weight = 0.0, 0.0
        for v in range(size):
            value[v] = output[v] + sign[v] * math.log(alpha[v] / rest[v])
            curve[v] = K[where[v], where[v]] + C / (alpha[v] * rest[v] * multiplicity[v])
            level += value[v] / curve[v]
            weight += 1.0 / curve[v]
            # y alpha can rise where the one is above its floor, and fall where the other is.
            rising, falling = (rest[v], alpha[v]) if sign[v] > 0 else (alpha[v], rest[v])
            if value[v] < low and rising > floor:
                low = value[v]
                i = v
            if value[v] > high and falling > floor:
                high = value[v]
                j = v
        apart = high - low
        if apart <= gap:
            break
        if turn % 2 == 1:
            i, j = promising(K, where, value, curve, level / weight)
        taken[0], taken[1], left[0], left[1] = alpha[i], alpha[j], rest[i], rest[j]
        many[0], many[1] = multiplicity[i], multiplicity[j]
        a, b = where[i], where[j]
        # The move raises y_i alpha_i and lowers y_j alpha_j, each summed over its examples.
        room_i = many[0] * (rest[i] if sign[i] > 0 else alpha[i])
        room_j = many[1] * (alpha[j] if sign[j] > 0 else rest[j])
        least, most = 0.0, min(room_i, room_j)
        bend = K[a, a] + K[b, b] - 2.0 * K[a, b]
        move = 0.0
        for _ in range(100):
            found, steepness = imbalance(taken, left, many, sign[i], sign[j], C, bend, output[i] - output[j], move)
            if found > 0.0:
                most = move
            else:
                least = move
            step = move - found / steepness
            if not least < step < most:
                step = 0.5 * (least + most)
            if abs(step - move) <= 1e-13 * step:
                break
            move = step
        alpha[i] = max(alpha[i] + sign[i] * move / many[0], floor)
        rest[i] = max(rest[i] - sign[i] * move / many[0], floor)
        alpha[j] = max(alpha[j] - sign[j] * move / many[1], floor)
        rest[j] = max(rest[j] + sign[j] * move / many[1], floor)
        for v in range(size):
            output[v] += move * (K[a, where[v]] - K[b, where[v]])
    return apart
