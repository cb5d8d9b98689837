"""Isotonic fits: convex hulls of cumulative sums, and Venn-Abers by class read off them."""

from __future__ import annotations

import numpy as np

from venn._compiled.counting import rank
from venn._compiled.jit import compiled
from venn._compiled.scaling import sort_again

# ---------------------------------------------------------------------------------------------------------------- hulls
# Lower convex hulls of cumulative counts; their slopes are isotonic regression.
#
# Distinct scores in increasing order give the points (examples, positives) counted up to each score.
# Isotonic regression of the labels is the slope of the lower convex hull of these points. So inductive Venn-Abers needs
# the slope of the *bridge*: the common tangent from below of the points before a new example and of those from it on,
# moved by the new example.
#
# A point is packed into one integer, examples in the upper half, positives in the lower. Sums of points, and
# differences of a later and an earlier one, are then sums and differences of the integers; a difference represents its
# slope. All comparisons are exact products of integers; only the answer is divided.
#
# Points lie in leaves and nodes, see `hull_tree`. `nodes` (capacity, 8) int64, `leaves` (capacity, LEAF) int64;
# scores lie in these arrays by their bits. A link is the row of a node, or ~row of a leaf.
#
# - A leaf: up to `WIDTH` scores, their points, counted from the leaf's start, and the corners of their hull.
# - A node: only the bridge between the hulls of its children, counted from the node's start (Overmars & van
#   Leeuwen 1981). Edges of a hull before the bridge are those of the left child, edges behind it those of the
#   right one, so a descent finds any tangent.

WIDTH = 96  # scores in a leaf; 32 is slower with a million scores, 64 hardly differs
SPLIT, LEFT, RIGHT, PARENT, LEAVES, BEFORE, START, EDGE = range(8)  # a node
COUNT, CORNERS, ABOVE, SCORE = range(4)  # a leaf: three numbers, then three tables
POINT = SCORE + WIDTH
CORNER = POINT + WIDTH
LEAF = CORNER + WIDTH
ONE = 1 << 32
LIMIT = (1 << 31) - 1  # examples; products of two counts stay below 2^62


@compiled
def examples(point):  # type: ignore[no-untyped-def]
    """Return the examples of a packed point."""
    return point >> 32


@compiled
def positives(point):  # type: ignore[no-untyped-def]
    """Return the positives of a packed point."""
    return point & 0xFFFFFFFF


@compiled
def turn(d, e):  # type: ignore[no-untyped-def]
    """Return a number with the sign of slope(d) - slope(e)."""
    return positives(d) * examples(e) - positives(e) * examples(d)


# Tangents -------------------------------------------------------------------------------------------------


@compiled
def lowest(nodes, leaves, link, origin, d):  # type: ignore[no-untyped-def]
    """Return the point of a subtree, which starts at `origin`, where a line of slope `d` touches it from below."""
    while link > 0:
        right = 1 if turn(nodes[link, EDGE], d) <= 0 else 0
        origin += nodes[link, BEFORE] * right
        link = nodes[link, LEFT + right]
    leaf = leaves[~link]
    k = CORNER
    last = CORNER + leaf[CORNERS] - 1
    while k < last and turn(leaf[k + 1] - leaf[k], d) <= 0:
        k += 1
    return origin + leaf[k]


@compiled
def bridge(nodes, leaves, v):  # type: ignore[no-untyped-def]
    """Set the bridge of node `v` from the hulls of its children.

    Both hulls are searched at once. One edge of each is compared, and at least one of the two searches then continues
    in a smaller part of its hull.
    """
    left, right = nodes[v, LEFT], nodes[v, RIGHT]
    l_origin, r_origin = 0, nodes[v, BEFORE]
    cut = examples(r_origin)
    l_low = l_high = r_low = r_high = CORNER
    if left < 0:
        l_high += leaves[~left, CORNERS] - 1
    if right < 0:
        r_high += leaves[~right, CORNERS] - 1
    while True:
        # The edge (a, a + e) of the left hull, (b, b + f) of the right one; one point left: e, f = 0.
        l_middle = (l_low + l_high) >> 1
        r_middle = (r_low + r_high) >> 1
        if left > 0:
            a = l_origin + nodes[left, START]
            e = nodes[left, EDGE]
        else:
            a = l_origin + leaves[~left, l_middle]
            e = leaves[~left, l_middle + 1] - leaves[~left, l_middle] if l_low < l_high else 0
        if right > 0:
            b = r_origin + nodes[right, START]
            f = nodes[right, EDGE]
        else:
            b = r_origin + leaves[~right, r_middle]
            f = leaves[~right, r_middle + 1] - leaves[~right, r_middle] if r_low < r_high else 0
        # The part of its hull that each search keeps: -1 the one before its edge, 1 the one behind, 0 both.
        l_goes = r_goes = 0
        if e == 0 and f == 0:
            break
        if e == 0:
            r_goes = 1 if turn(b - a, f) >= 0 else -1
        elif f == 0:
            l_goes = 1 if turn(b - a, e) > 0 else -1
        else:
            steep = turn(e, f) >= 0
            # A point of the right hull on or below the left edge's line: the bridge is no steeper than e.
            flat = turn(b + (f if steep else 0) - a, e) <= 0
            # A point of the left hull on or below the right edge's line: the bridge is no flatter than f.
            rises = turn(b - (a + (0 if steep else e)), f) >= 0
            if not (flat or rises):
                # The lines cross between the hulls, on one side of the cut. Left of it the right hull is
                # above both lines, so the bridge is steeper than e; right of it, flatter than f.
                from_left = positives(e) / examples(e) * (cut - examples(a))
                from_right = positives(f) / examples(f) * (examples(b) - cut)
                height = positives(b) - positives(a) - from_right - from_left
                if abs(height) > 1e-14 * (positives(b) + from_left + from_right):
                    if height > 0:
                        l_goes = 1
                    else:
                        r_goes = -1
                else:  # too near for floating point: use the right hull itself
                    touch = lowest(nodes, leaves, nodes[v, RIGHT], nodes[v, BEFORE], e)
                    flat = turn(touch - a, e) <= 0
                    if not flat:
                        l_goes = 1
            if flat:
                l_goes = -1
                if not steep:
                    r_goes = -1
            if rises:
                r_goes = 1
                if not steep:
                    l_goes = 1
        if l_goes:
            if left > 0:
                behind = 1 if l_goes > 0 else 0
                l_origin += nodes[left, BEFORE] * behind
                left = nodes[left, LEFT + behind]
                if left < 0:
                    l_high += leaves[~left, CORNERS] - 1
            elif l_goes > 0:
                l_low = l_middle + 1
            else:
                l_high = l_middle
        if r_goes:
            if right > 0:
                behind = 1 if r_goes > 0 else 0
                r_origin += nodes[right, BEFORE] * behind
                right = nodes[right, LEFT + behind]
                if right < 0:
                    r_high += leaves[~right, CORNERS] - 1
            elif r_goes > 0:
                r_low = r_middle + 1
            else:
                r_high = r_middle
    nodes[v, START] = a
    nodes[v, EDGE] = b - a


@compiled
def span(leaf):  # type: ignore[no-untyped-def]
    """Set the corners of a leaf's hull."""
    top = CORNER - 1
    for i in range(POINT, POINT + leaf[COUNT]):
        point = leaf[i]
        while top > CORNER and turn(leaf[top] - leaf[top - 1], point - leaf[top]) >= 0:
            top -= 1
        top += 1
        leaf[top] = point
    leaf[CORNERS] = top - CORNER + 1


@compiled
def mend(leaf, i, step, removed):  # type: ignore[no-untyped-def]
    """Set the corners of a leaf after its score number `i` has changed by `step`; its points are up to date.

    `removed` is the point of a score that is gone, else 0. Return two corners, as numbers of examples, on both sides of
    the change: edges outside have not changed.
    """
    rank = examples(leaf[POINT + i - 1]) if i > 0 else 0
    count = leaf[COUNT]
    # Corners up to `top` stay; those behind the edge over the change move, and are kept at the table's end.
    top = CORNER + leaf[CORNERS] - 1
    move = WIDTH - leaf[CORNERS]
    while top >= CORNER and examples(leaf[top]) > rank:
        leaf[top + move] = leaf[top] + step
        top -= 1
    waiting = top + 1 + move
    if removed != 0 and waiting < LEAF and leaf[waiting] == removed + step:
        waiting += 1
    k = POINT + i
    if top < CORNER:
        k = POINT
    else:
        while leaf[k - 1] != leaf[top]:
            k -= 1
    stop = leaf[waiting] if waiting < LEAF else LIMIT * ONE
    kept = top
    while k < POINT + count and leaf[k] < stop:
        while top > CORNER and turn(leaf[top] - leaf[top - 1], leaf[k] - leaf[top]) >= 0:
            top -= 1
        kept = min(kept, top)
        top += 1
        leaf[top] = leaf[k]
        k += 1
    high = examples(leaf[POINT + count - 1])
    first = True
    while waiting < LEAF:
        point = leaf[waiting]
        last = top
        while top > CORNER and turn(leaf[top] - leaf[top - 1], point - leaf[top]) >= 0:
            top -= 1
        kept = min(kept, top)
        if top == last and not first:
            high = examples(leaf[top])
            break
        first = False
        top += 1
        leaf[top] = point
        waiting += 1
    while waiting < LEAF:
        top += 1
        leaf[top] = leaf[waiting]
        waiting += 1
    leaf[CORNERS] = top - CORNER + 1
    return examples(leaf[kept]) if kept >= CORNER else 0, high


# All fits at once -----------------------------------------------------------------------------------------


@compiled
def precompute(blocks):  # type: ignore[no-untyped-def]
    """Return the fits at a new example of label 1 in each block, as packed slopes.

    Points before the new example are P_0..P_{i-1}, those from it on P_{i-1} + (1, 1)..P_m + (1, 1); a stack holds the
    corners from the edge over the new example on. When the example moves on by a block, P_i joins the points before it.
    The edge stays unless P_i lies below its line; then it starts at P_i (Vovk, Petej & Fedorova 2015, algorithms 1 and
    2).
    """
    m = blocks.shape[0]
    fits = np.empty(m, np.int64)
    stack = np.empty(m + 2, np.int64)
    point = ONE + 1
    for block in blocks:
        point += block
    top = 0
    stack[0] = point
    for i in range(m, -1, -1):
        # From the last point to the first, and to P_0 = 0 at the end.
        point = point - blocks[i - 1] if i > 0 else 0
        while top > 0 and turn(stack[top] - point, stack[top - 1] - stack[top]) >= 0:
            top -= 1
        top += 1
        stack[top] = point
    for i in range(m):
        edge = stack[top - 1] - stack[top]
        fits[i] = edge
        point += blocks[i]
        if turn(point - stack[top], edge) < 0:
            top -= 1
            while top > 0 and turn(stack[top] - point, stack[top - 1] - stack[top]) >= 0:
                top -= 1
            top += 1
            stack[top] = point
    return fits


# ------------------------------------------------------------------------------------------------------------ classwise
# Venn-Abers by class: two isotonic fits for each one-against-all machine, read at the new example.


@compiled
def weighed_rate(keys, positive, weights, at, own, label):  # type: ignore[no-untyped-def]
    """Return the isotonic regression of 0 and 1 on keys, by weighed examples, read at a new one that joins.

    Parameters
    ----------
    keys, positive, weights : (m,) float64
        In ascending order of `keys`; 1 or 0; >= 0.
    at, own, label : float
        The new example's key, weight > 0, and 1 or 0.
    """
    m = keys.shape[0]
    start, positives, totals = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    b = -1
    i = 0
    waits = True
    while i < m or waits:
        key = at if waits and (i == m or at <= keys[i]) else keys[i]
        share = 0.0
        total = 0.0
        if waits and key == at:
            waits = False
            share, total = label * own, own
        while i < m and keys[i] == key:
            share += weights[i] * positive[i]
            total += weights[i]
            i += 1
        if total == 0.0:
            continue
        first = key
        while b >= 0 and positives[b] * total >= share * totals[b]:
            share += positives[b]
            total += totals[b]
            first = start[b]
            b -= 1
        b += 1
        start[b] = first
        positives[b] = share
        totals[b] = total
    while start[b] > at:
        b -= 1
    return min(positives[b] / totals[b], 1.0)


@compiled
def place_in_buckets(keys, m, low, scale, buckets, where):  # type: ignore[no-untyped-def]
    """Set `where` to the bucket of each key: from 1 on, 0 and `buckets` + 1 for keys far below and above the others."""
    last = buckets + 1.0
    for i in range(m):
        place = (keys[i] - low) * scale + 1.0
        place = place if place > 0.0 else 0.0
        where[i] = np.int32(place if place < last else last)


@compiled
def classwise_pairs(negative, positive, labels, weights, test):  # type: ignore[no-untyped-def]
    """Return the (c, 2) Venn-Abers pairs of all classes, from scores under both suppositions.

    Of each class the isotonic regression of 1{label = k} on the scores, read at the new example, which joins as one
    more example with a supposed label. Equal scores are one point. Rates are compared as whole numbers, so the result
    is exact and does not depend on the order of ties. Only the fewer are sorted, those with the label or those without:
    between two neighbouring ones all others are one point, too, as blocks of equal rates merge.

    Parameters
    ----------
    negative, positive : (c, >= m) float64
    labels, weights : (m,) int64, class and number of examples of each column
    test : column of the new example, which `weights` leaves out
    """
    c, m = negative.shape[0], labels.shape[0]
    pairs = np.empty((c, 2))
    keys, few, spare = np.empty(m), np.empty(m), np.empty(m)
    chosen, near, spare_items = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    where = np.empty(m, np.int32)
    first, held = np.empty(2 * m + 12, np.int64), np.empty(2 * m + 12, np.int64)  # by bucket
    shares, sums, begins = np.empty(m + 5, np.int64), np.empty(m + 5, np.int64), np.empty(m + 5, np.int64)
    for k in range(c):
        count = 0
        for i in range(m):
            count += 1 if labels[i] == k else 0
        fewer = 2 * count <= m  # those with the label
        n = 0
        for i in range(m):
            chosen[n] = i
            n += 1 if (labels[i] == k) == fewer or i == test else 0
        buckets = 4 * n
        for side in range(2):
            row = positive[k] if side == 1 else negative[k]
            for i in range(m):
                keys[i] = rank(row[i], 0.0)
            # Sort the fewer, by narrow buckets first: in the end `first` says where each bucket begins.
            low, high = keys[test], keys[test]
            for j in range(n):
                low = min(low, keys[chosen[j]])
                high = max(high, keys[chosen[j]])
            scale = (buckets - 1) / (high - low) if high > low else 0.0
            if not scale < np.inf:
                scale = 0.0
            place_in_buckets(keys, m, low, scale, buckets, where)
            for b in range(buckets + 4):
                first[b] = 0
                held[b] = 0
            for j in range(n):
                first[where[chosen[j]] + 2] += 1
            for b in range(buckets + 3):
                first[b + 1] += first[b]
            for j in range(n):
                b = where[chosen[j]] + 1
                few[first[b]] = keys[chosen[j]]
                first[b] += 1
            sort_again(few[:n], near, spare, spare_items)
            # Point 2 j + 1 is key j, the first of equal ones; what lies beside it, below and above, is 2 j, 2 j + 2.
            for point in range(2 * n + 1):
                shares[point] = 0
                sums[point] = 0
            close = 0
            for i in range(m):
                b = where[i]
                held[b] += weights[i]
                near[close] = i
                close += 1 if first[b + 1] > first[b] else 0
            for b in range(buckets + 2):
                if first[b + 1] == first[b]:
                    sums[2 * first[b]] += held[b]
            if not fewer:
                for point in range(0, 2 * n + 1, 2):
                    shares[point] = sums[point]
            at = 0
            for item in near[:close]:
                key = keys[item]
                j, end = first[where[item]], first[where[item] + 1]
                while j < end:
                    middle = (j + end) >> 1
                    if few[middle] < key:
                        j = middle + 1
                    else:
                        end = middle
                point = 2 * j + (1 if j < n and few[j] == key else 0)
                sums[point] += weights[item]
                shares[point] += weights[item] if labels[item] == k else 0
                if item == test:
                    at = point
            sums[at] += 1
            shares[at] += side
            b = -1
            for point in range(2 * n + 1):  # blocks overwrite the points before them
                share, total = shares[point], sums[point]
                if total == 0:
                    continue
                begin = point
                while b >= 0 and shares[b] * total >= share * sums[b]:
                    share += shares[b]
                    total += sums[b]
                    begin = begins[b]
                    b -= 1
                b += 1
                begins[b] = begin
                shares[b] = share
                sums[b] = total
            while begins[b] > at:
                b -= 1
            pairs[k, side] = shares[b] / sums[b]
    return pairs
