"""Loops of what watches objects and examples: how strange each is among those before, and what is bet on it.

A crowd is three arrays with room for more objects, which stand in columns: `objects` (d, room), `near` (k, room), the
distances of each to its nearest others, ascending and infinite where there are fewer, and `strange` (room,), their
sums. A pair of martingales is two memories, and `logs` of four numbers: at which logarithm the first one rings, at
which the sum of the second does, that sum, and where it starts after an alarm.
"""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled
from venn._compiled.martingales import bet, join_late, jump, rank_late, shiryaev_roberts_after

TILE = 512  # objects whose distances are made at a time: they stay in the processor's cache
FEW = 32  # objects of which most often none has the new one among its nearest, which the processor sees in one go


@compiled
def insert(near, i, distance):  # type: ignore[no-untyped-def]
    """Put a distance among the nearest of an object, in the place of the largest; return their sum."""
    q = len(near) - 1
    while q > 0 and near[q - 1, i] > distance:
        near[q, i] = near[q - 1, i]
        q -= 1
    near[q, i] = distance
    total = 0.0
    for q in range(len(near)):
        if near[q, i] < np.inf:
            total += near[q, i]
    return total


@compiled
def join(objects, near, strange, n, x, tau):  # type: ignore[no-untyped-def]
    """Take an object in as number n, from 0; return its p-value: how strange it is among all, by one definition."""
    k = len(near)
    apart = np.empty(TILE)
    for q in range(k):
        near[q, n] = np.inf
    strange[n] = 0.0
    for start in range(0, n, TILE):
        size = min(TILE, n - start)
        for i in range(size):
            apart[i] = 0.0
        for j in range(len(x)):
            column, value = objects[j, start : start + size], x[j]
            for i in range(size):
                apart[i] += (column[i] - value) * (column[i] - value)
        for i in range(size):
            apart[i] = np.sqrt(apart[i])
        farthest = near[k - 1, start : start + size]
        for few in range(0, size, FEW):
            end, own, some = min(few + FEW, size), near[k - 1, n], False
            for i in range(few, end):
                some |= (apart[i] < farthest[i]) | (apart[i] < own)
            # Only those change that have the new one among their nearest.
            for i in range(few, end if some else few):
                if apart[i] < farthest[i]:
                    strange[start + i] = insert(near, start + i, apart[i])
                if apart[i] < near[k - 1, n]:
                    strange[n] = insert(near, n, apart[i])
    for j in range(len(x)):
        objects[j, n] = x[j]
    greater, equal = 0, 1
    for i in range(n):
        greater += strange[i] > strange[n]
        equal += strange[i] == strange[n]
    return (greater + tau * equal) / (n + 1)


@compiled
def sums_of(near, strange):  # type: ignore[no-untyped-def]
    """Set `strange` to the sums of the distances that are known, added up as `insert` does."""
    for i in range(len(strange)):
        strange[i] = 0.0
        for q in range(len(near)):
            if near[q, i] < np.inf:
                strange[i] += near[q, i]


@compiled
def rings(memories, log_before, logs):  # type: ignore[no-untyped-def]
    """Follow the sum of the second of two martingales, which have just bet; return whether one of them rings."""
    start = logs[3] if logs[2] >= logs[1] else logs[2]
    logs[2] = shiryaev_roberts_after(start, memories[1][1] - log_before)
    return memories[0][1] >= logs[0] or logs[2] >= logs[1]


@compiled
def jump_both(jumps, first, second, logs, p):  # type: ignore[no-untyped-def]
    """Let two jumpers bet on a p-value; return whether one of them rings."""
    before = second[1]
    jump(jumps, first, p)
    jump(jumps, second, p)
    return rings((first, second), before, logs)


@compiled
def watch_objects(rows, placed, taus, crowd, n, bets, logs, columns, held, named, bound, ps):  # type: ignore[no-untyped-def]
    """Watch objects in turn, up to one at which something rings; return how many, and whether the last one rings.

    Parameters
    ----------
    rows, placed : (m, d) float64
        As they are, NaN for gaps, and on the scale. One with a gap is left out of the crowd.
    taus : (m,) float64
    crowd : tuple of three arrays
    n : int
        Objects in it; there is room for m more.
    bets : tuple of three arrays
        The rates, and the memories of a pair of jumpers.
    logs : (4,) float64
    columns : tuple of three arrays
        Where columns are ranked (d, room) and their p-values (d,); memories of their bets (c, WIDTH), c = 0: none.
    held : int
        Objects in these.
    named : (c,) int64
        0 where a column is not named yet.
    bound : float
        The logarithm of the capital at which the next one is.
    ps : (m,) float64
        Gets p-values, NaN where there is none.
    """
    late, count, rang = np.empty((len(named), len(rows))), 0, False
    while count < len(rows) and not rang:
        i, count = count, count + 1
        x = rows[i]
        if len(named):
            rank_late(columns[0], held, late, i, x, taus[i], columns[1])
            for j in range(len(named)):
                bet(columns[2][j], columns[1][j])
                rang |= named[j] == 0 and columns[2][j, 2] >= bound
        ps[i] = np.nan
        whole = True
        for j in range(len(x)):
            whole &= x[j] == x[j]
        if whole:
            ps[i] = join(crowd[0], crowd[1], crowd[2], n, placed[i], taus[i])
            n += 1
            rang |= jump_both(bets[0], bets[1], bets[2], logs, ps[i])
    join_late(columns[0], held, late, count)
    return count, rang


@compiled
def watch_examples(rows, taus, codes, counts, earlier, crowd, n, labels, bets, logs, naming, named, bound, ps):  # type: ignore[no-untyped-def]
    """Watch examples of one class in turn, up to one at which something rings; return how many, and whether it does.

    Parameters
    ----------
    rows : (m, d) float64
        On the scale; one with a gap has no p-value within its class.
    taus : (m, 2) float64
    codes : (m,) int64
        Of the labels; the first one of another class ends it.
    counts, earlier : (c,) int64
        Of the classes so far, and when it began anew.
    crowd : tuple of three arrays
        Of the class.
    n : int
        Objects in it; there is room for m more.
    labels : tuple of two arrays
        The memories of a pair of `CellJumper` that bets on the labels.
    bets : tuple of three arrays
        The rates, and the memories of a pair of jumpers that bets on objects within classes.
    logs : (2, 4) float64
        Of both pairs.
    naming : (c, WIDTH) float64
        Memories of the bets on each class.
    named : (c,) int64
        0 where a class is not named yet.
    bound : float
        The logarithm of the capital at which the next one is.
    ps : (m, 2) float64
        Gets the p-values of the label, and within the class, NaN where there is none.
    """
    code = codes[0]
    for i in range(len(rows)):
        if codes[i] != code:
            return i, False
        counts[code] += 1
        here = counts[code] - earlier[code]
        rarer, alike, total = 0, 0, 0
        for k in range(len(counts)):
            count = counts[k] - earlier[k]
            total += count
            if count < here:
                rarer += count
            elif count == here:
                alike += count
        ps[i, 0] = (rarer + taus[i, 0] * alike) / total
        before = labels[1][1]
        bet(labels[0], ps[i, 0])
        bet(labels[1], ps[i, 0])
        rang = rings(labels, before, logs[0])
        ps[i, 1] = np.nan
        whole = True
        for j in range(rows.shape[1]):
            whole &= rows[i, j] == rows[i, j]
        if whole:
            ps[i, 1] = join(crowd[0], crowd[1], crowd[2], n, rows[i], taus[i, 1])
            n += 1
            rang |= jump_both(bets[0], bets[1], bets[2], logs[1], ps[i, 1])
            bet(naming[code], ps[i, 1])
        # Any class may be the next to be named: the bound falls as others are.
        for k in range(len(named)):
            rang |= whole and named[k] == 0 and naming[k, 2] >= bound
        if rang:
            return i + 1, True
    return len(rows), False
