"""Lower convex hulls of cumulative counts; their slopes are isotonic regression.

Distinct scores in increasing order give the points (examples, positives) counted up to each score.
Isotonic regression of the labels is the slope of the lower convex hull of these points. So inductive Venn-Abers needs
the slope of the *bridge*: the common tangent from below of the points before a new example and of those from it on,
moved by the new example.

A point is packed into one integer, examples in the upper half, positives in the lower. Sums of points, and differences
of a later and an earlier one, are then sums and differences of the integers; a difference represents its slope. All
comparisons are exact products of integers; only the answer is divided.

Points lie in leaves and nodes, see `hull_tree`. `nodes` (capacity, 8) int64, `leaves` (capacity, LEAF) int64;
scores lie in these arrays by their bits. A link is the row of a node, or ~row of a leaf.

- A leaf: up to `WIDTH` scores, their points, counted from the leaf's start, and the corners of their hull.
- A node: only the bridge between the hulls of its children, counted from the node's start (Overmars & van
  Leeuwen 1981). Edges of a hull before the bridge are those of the left child, edges behind it those of the
  right one, so a descent finds any tangent.
"""

import numpy as np

from venn._compiled.jit import compiled

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
