"""A balanced tree of hulls: insert and delete examples, read the fit at a new one.

The tree is balanced by number of leaves (Adams 1993): no side has more than three times the leaves of the
other. An insertion changes one leaf and the bridges of those nodes above it that the change of the hull below reaches.
The first leaf starts with a score of minus infinity whose point is
0, so the tree is never empty. Row 0 of `nodes` is the head: root, lists of free rows, total.
"""

import numpy as np

from venn._compiled.hulls import (
    ABOVE,
    BEFORE,
    CORNER,
    COUNT,
    EDGE,
    LEAVES,
    LEFT,
    LIMIT,
    ONE,
    PARENT,
    POINT,
    RIGHT,
    SCORE,
    SPLIT,
    START,
    WIDTH,
    bridge,
    examples,
    lowest,
    mend,
    positives,
    span,
    turn,
)  # fmt: skip
from venn._compiled.jit import compiled
from venn._compiled.ranks import mirror, on_grid_within, plainly

ROOT, FREE_NODE, FREE_LEAF, TOTAL = LEFT, RIGHT, PARENT, BEFORE
DONE, FULL, ABSENT = 0, 1, 2


@compiled
def number_of_leaves(nodes, link):  # type: ignore[no-untyped-def]
    """Return the number of leaves below a link."""
    return nodes[link, LEAVES] if link > 0 else 1


@compiled
def hang(nodes, leaves, v, side, child):  # type: ignore[no-untyped-def]
    """Make `child` the child of node `v` on a side, LEFT or RIGHT."""
    nodes[v, side] = child
    if child > 0:
        nodes[child, PARENT] = v
    else:
        leaves[~child, ABOVE] = v


@compiled
def replace(nodes, leaves, v, old, new):  # type: ignore[no-untyped-def]
    """Put `new` in the place of `old` below `v`; the child of the head is the root."""
    hang(nodes, leaves, v, LEFT if v == 0 or nodes[v, LEFT] == old else RIGHT, new)


@compiled
def rotate(nodes, leaves, v, side):  # type: ignore[no-untyped-def]
    """Lift the child of `v` on `side` above `v` and return it; the caller sets its bridge."""
    other = LEFT + RIGHT - side
    w = nodes[v, side]
    replace(nodes, leaves, nodes[v, PARENT], v, w)
    hang(nodes, leaves, v, side, nodes[w, other])
    hang(nodes, leaves, w, other, v)
    if side == RIGHT:
        nodes[w, BEFORE] += nodes[v, BEFORE]
    else:
        nodes[v, BEFORE] -= nodes[w, BEFORE]
    nodes[w, LEAVES] = nodes[v, LEAVES]
    nodes[v, LEAVES] = number_of_leaves(nodes, nodes[v, LEFT]) + number_of_leaves(nodes, nodes[v, RIGHT])
    bridge(nodes, leaves, v)
    return w


@compiled
def balance(nodes, leaves, v):  # type: ignore[no-untyped-def]
    """Count the leaves of `v`, rotate if one side is too heavy, and return the node now in its place."""
    left = number_of_leaves(nodes, nodes[v, LEFT])
    right = number_of_leaves(nodes, nodes[v, RIGHT])
    nodes[v, LEAVES] = left + right
    if left <= 3 * right and right <= 3 * left:
        return v
    side = LEFT if left > right else RIGHT
    w = nodes[v, side]
    inner = number_of_leaves(nodes, nodes[w, LEFT + RIGHT - side])
    if inner >= 2 * number_of_leaves(nodes, nodes[w, side]):
        rotate(nodes, leaves, w, LEFT + RIGHT - side)
    return rotate(nodes, leaves, v, side)


@compiled
def climb(nodes, leaves, child, v, step, low, high, resized):  # type: ignore[no-untyped-def]
    """Bring the nodes from `v` up to date after `child` has changed by `step`.

    Edges of the child's hull outside of examples low..high, which are both corners of it, have not changed. A bridge
    whose two neighbouring edges are among those, on one side of the change, has not changed either.
    """
    while v > 0:
        on_left = nodes[v, LEFT] == child
        if on_left:
            nodes[v, BEFORE] += step
            start, end = nodes[v, START] + step, nodes[v, START] + nodes[v, EDGE] + step
        else:
            low += examples(nodes[v, BEFORE])
            high += examples(nodes[v, BEFORE])
            start, end = nodes[v, START], nodes[v, START] + nodes[v, EDGE]
        top = balance(nodes, leaves, v) if resized else v
        if top != v:
            v = top
            bridge(nodes, leaves, v)
            low, high = 0, LIMIT
        elif on_left and high < examples(start):
            nodes[v, START] = start
        elif on_left or examples(end) >= low:
            bridge(nodes, leaves, v)
            new_start, new_end = nodes[v, START], nodes[v, START] + nodes[v, EDGE]
            # Where the old bridge ended: `before` as if left of the change, `behind` moved as if right of it.
            before = examples(start - step if on_left else start)
            behind = examples(end if on_left else end + step)
            same = start == new_start and end == new_end
            if same and on_left and before >= low:
                high = examples(start)  # changes beyond are hidden under the bridge
            elif same and not on_left and behind <= high:
                low = examples(end)
            else:
                low = min(low, examples(new_start), before)
                high = max(high, examples(new_end), behind)
        child = v
        v = nodes[v, PARENT]


@compiled
def place(nodes, leaves, score):  # type: ignore[no-untyped-def]
    """Return the leaf where a score belongs, its origin, and the number of smaller scores in it."""
    splits = nodes.view(np.float64)
    scores = leaves.view(np.float64)
    link = nodes[0, ROOT]
    origin = 0
    while link > 0:
        right = 1 if score >= splits[link, SPLIT] else 0
        origin += nodes[link, BEFORE] * right
        link = nodes[link, LEFT + right]
    i = 0
    for k in range(leaves[~link, COUNT]):
        i += 1 if scores[~link, SCORE + k] < score else 0
    return ~link, origin, i


@compiled
def part(nodes, leaves, row):  # type: ignore[no-untyped-def]
    """Split a full leaf: its upper half moves to a new leaf beside it, under a new node. Return that leaf."""
    v, new = nodes[0, FREE_NODE], nodes[0, FREE_LEAF]
    nodes[0, FREE_NODE] = nodes[v, LEFT]
    nodes[0, FREE_LEAF] = leaves[new, ABOVE]
    low, high = leaves[row], leaves[new]
    half = WIDTH // 2
    before = low[POINT + half - 1]
    for k in range(half):
        high[SCORE + k] = low[SCORE + half + k]
        high[POINT + k] = low[POINT + half + k] - before
    low[COUNT] = high[COUNT] = half
    span(low)
    span(high)
    replace(nodes, leaves, low[ABOVE], ~row, v)
    nodes[v, SPLIT] = high[SCORE]
    nodes[v, LEAVES] = 2
    nodes[v, BEFORE] = before
    hang(nodes, leaves, v, LEFT, ~row)
    hang(nodes, leaves, v, RIGHT, ~new)
    bridge(nodes, leaves, v)
    return new


@compiled
def insert(nodes, leaves, score, label):  # type: ignore[no-untyped-def]
    """Insert one example. Return FULL, before any change, when the arrays must grow or at `LIMIT` examples."""
    if nodes[0, FREE_NODE] == 0 or examples(nodes[0, TOTAL]) >= LIMIT:
        return FULL
    score += 0.0  # -0.0 becomes 0.0
    step = ONE + label
    row, _, i = place(nodes, leaves, score)
    scores = leaves.view(np.float64)
    resized = False
    leaf = leaves[row]
    if i == leaf[COUNT] or scores[row, SCORE + i] != score:
        if leaf[COUNT] == WIDTH:
            new = part(nodes, leaves, row)
            resized = True
            if i > WIDTH // 2:
                i -= WIDTH // 2
                row = new
                leaf = leaves[row]
        for k in range(leaf[COUNT], i, -1):
            leaf[SCORE + k] = leaf[SCORE + k - 1]
            leaf[POINT + k] = leaf[POINT + k - 1]
        scores[row, SCORE + i] = score
        leaf[POINT + i] = leaf[POINT + i - 1] if i > 0 else 0
        leaf[COUNT] += 1
    for k in range(i, leaf[COUNT]):
        leaf[POINT + k] += step
    low, high = mend(leaf, i, step, 0)
    nodes[0, TOTAL] += step
    climb(nodes, leaves, ~row, leaf[ABOVE], step, low, high, resized)
    return DONE


@compiled
def release(nodes, leaves, v, row, heir):  # type: ignore[no-untyped-def]
    """Remove node `v` and leaf `row` from the tree; `heir` takes the place of `v`. Return the node above."""
    above = nodes[v, PARENT]
    replace(nodes, leaves, above, v, heir)
    nodes[v, LEFT] = nodes[0, FREE_NODE]
    nodes[0, FREE_NODE] = v
    leaves[row, ABOVE] = nodes[0, FREE_LEAF]
    nodes[0, FREE_LEAF] = row
    return above


@compiled
def delete(nodes, leaves, score, label):  # type: ignore[no-untyped-def]
    """Delete one example. Return ABSENT, before any change, when there is none."""
    row, _, i = place(nodes, leaves, score)
    scores = leaves.view(np.float64)
    leaf = leaves[row]
    if i == leaf[COUNT] or scores[row, SCORE + i] != score:
        return ABSENT
    block = leaf[POINT + i] - (leaf[POINT + i - 1] if i > 0 else 0)
    if (positives(block) if label else examples(block) - positives(block)) == 0:
        return ABSENT
    step = -(ONE + label)
    nodes[0, TOTAL] += step
    child, v, resized = ~row, leaf[ABOVE], False
    removed = leaf[POINT + i] if examples(block) == 1 else 0
    for k in range(i, leaf[COUNT]):
        leaf[POINT + k] += step
    low, high = 0, LIMIT
    if removed == 0:
        low, high = mend(leaf, i, step, 0)
    else:
        leaf[COUNT] -= 1
        for k in range(i, leaf[COUNT]):
            leaf[SCORE + k] = leaf[SCORE + k + 1]
            leaf[POINT + k] = leaf[POINT + k + 1]
        # Leaves that have become small are freed, so memory follows the number of scores.
        first, second = nodes[v, LEFT], nodes[v, RIGHT]
        if leaf[COUNT] > 0:
            low, high = mend(leaf, i, step, removed)
        if leaf[COUNT] == 0:
            resized = True
            child = first + second - child
            v = release(nodes, leaves, v, row, child)
        elif v > 0 and first < 0 and second < 0:
            left, right = leaves[~first], leaves[~second]
            count = left[COUNT]
            if count + right[COUNT] <= WIDTH // 2:
                resized = True
                for k in range(right[COUNT]):
                    left[SCORE + count + k] = right[SCORE + k]
                    left[POINT + count + k] = right[POINT + k] + left[POINT + count - 1]
                left[COUNT] += right[COUNT]
                span(left)
                low, high = 0, LIMIT
                child = first
                v = release(nodes, leaves, v, ~second, child)
    climb(nodes, leaves, child, v, step, low, high, resized)
    return DONE


@compiled
def insert_all(nodes, leaves, scores, labels, first):  # type: ignore[no-untyped-def]
    """Insert examples from number `first` on; return the number of the first one that did not fit."""
    for i in range(first, scores.shape[0]):
        if insert(nodes, leaves, scores[i], labels[i]) != DONE:
            return i
    return scores.shape[0]


@compiled
def build(nodes, leaves, scores, blocks, used):  # type: ignore[no-untyped-def]
    """Fill empty arrays with `used` leaves of increasing scores; the first score is minus infinity, its block 0."""
    m = scores.shape[0]
    bits = scores.view(np.int64)
    starts = np.zeros(used + 1, np.int64)
    for row in range(used):
        leaf = leaves[row]
        first, last = row * m // used, (row + 1) * m // used
        point = 0
        for i in range(first, last):
            point += blocks[i]
            leaf[SCORE + i - first] = bits[i]
            leaf[POINT + i - first] = point
        leaf[COUNT] = last - first
        span(leaf)
        starts[row + 1] = starts[row] + point
    nodes[0, TOTAL] = starts[used]
    # Ranges of leaves, halved from the whole down; the node of a range has the row of the first leaf in its
    # second half. No recursion: numba's cache cannot hold it.
    ranges = np.empty((used, 2), np.int64)
    ranges[0, 0], ranges[0, 1] = 0, used
    hang(nodes, leaves, 0, ROOT, used >> 1 if used > 1 else ~0)
    made = 1
    for done in range(used - 1):
        first, last = ranges[done]
        v = (first + last) >> 1
        nodes[v, SPLIT] = leaves[v, SCORE]
        nodes[v, LEAVES] = last - first
        nodes[v, BEFORE] = starts[v] - starts[first]
        for side, low, high in ((LEFT, first, v), (RIGHT, v, last)):
            if high - low == 1:
                hang(nodes, leaves, v, side, ~low)
            else:
                hang(nodes, leaves, v, side, (low + high) >> 1)
                ranges[made, 0], ranges[made, 1] = low, high
                made += 1
    for done in range(used - 2, -1, -1):
        bridge(nodes, leaves, (ranges[done, 0] + ranges[done, 1]) >> 1)
    release_rest(nodes, leaves, used)


@compiled
def release_rest(nodes, leaves, used):  # type: ignore[no-untyped-def]
    """Chain the rows from `used` on into the lists of free ones, before those that are there."""
    for row in range(nodes.shape[0] - 1, used - 1, -1):
        leaves[row, ABOVE] = nodes[0, FREE_LEAF]
        nodes[0, FREE_LEAF] = row
        if row > 0:
            nodes[row, LEFT] = nodes[0, FREE_NODE]
            nodes[0, FREE_NODE] = row


@compiled
def contents(nodes, leaves):  # type: ignore[no-untyped-def]
    """Return the distinct scores in order, minus infinity first, and their blocks, packed like points."""
    values = leaves.view(np.float64)
    scores = np.empty(leaves.shape[0] * WIDTH)
    blocks = np.empty(leaves.shape[0] * WIDTH, np.int64)
    m = 0
    link = nodes[0, ROOT]
    while True:
        while link > 0:
            link = nodes[link, LEFT]
        point = 0
        for k in range(leaves[~link, COUNT]):
            scores[m] = values[~link, SCORE + k]
            blocks[m] = leaves[~link, POINT + k] - point
            point = leaves[~link, POINT + k]
            m += 1
        v = leaves[~link, ABOVE]
        while v > 0 and nodes[v, RIGHT] == link:
            link = v
            v = nodes[v, PARENT]
        if v == 0:
            return scores[:m].copy(), blocks[:m].copy()
        link = nodes[v, RIGHT]


# Reading --------------------------------------------------------------------------------------------------


@compiled
def edge_at(nodes, leaves, rank):  # type: ignore[no-untyped-def]
    """Return the hull's edge above example number `rank`: its subtree, the subtree's origin, start, edge."""
    link = nodes[0, ROOT]
    origin = 0
    while link > 0:
        start = origin + nodes[link, START]
        if examples(start) <= rank < examples(start + nodes[link, EDGE]):
            return link, origin, start, nodes[link, EDGE]
        right = 1 if rank >= examples(origin + nodes[link, BEFORE]) else 0
        origin += nodes[link, BEFORE] * right
        link = nodes[link, LEFT + right]
    k = CORNER + 1
    while examples(origin + leaves[~link, k]) <= rank:
        k += 1
    return link, origin, origin + leaves[~link, k - 1], leaves[~link, k] - leaves[~link, k - 1]


@compiled
def lowest_near(nodes, leaves, link, origin, start, end, rank, d, label):  # type: ignore[no-untyped-def]
    """Return the point between `start` and `end` where a line of slope `d` touches those on one side of `rank`.

    Label 1: the points up to the example number `rank`; label 0: those beyond it.
    """
    best = start if label else end
    while link > 0:
        v = link
        cut = origin + nodes[v, BEFORE]
        right = 1 if rank >= examples(cut) else 0
        link = nodes[v, LEFT + right]
        if right == label and examples(start) < examples(cut) <= examples(end):
            beside = lowest(nodes, leaves, nodes[v, RIGHT - right], cut if right == 0 else origin, d)
            if lower(beside, best, d):
                best = beside
        origin += nodes[v, BEFORE] * right
    # The points of the leaf up to `rank`, then those beyond it; each lies lower the less `depth` is.
    leaf = leaves[~link]
    below = POINT
    for k in range(POINT, POINT + leaf[COUNT]):
        below += 1 if examples(origin + leaf[k]) <= rank else 0
    first, last = (POINT, below) if label else (below, POINT + leaf[COUNT])
    slope, run = positives(d), examples(d)
    depth = positives(best) * run - examples(best) * slope
    for k in range(first, last):
        point = origin + leaf[k]
        height = positives(point) * run - examples(point) * slope
        if height < depth:
            best, depth = point, height
    return best


@compiled
def lower(point, other, d):  # type: ignore[no-untyped-def]
    """True when the line of slope `d` through `point` lies below the one through `other`."""
    slope, run = positives(d), examples(d)
    return positives(point) * run - examples(point) * slope < positives(other) * run - examples(other) * slope


@compiled
def fitted(nodes, leaves, rank, label):  # type: ignore[no-untyped-def]
    """Return the fit at a new example in the block of example number `rank`: a packed slope.

    The bridge's end on the new example's far side is a corner of the hull beyond the edge above `rank`;
    its near end lies under that edge. Both are found by Newton's method: the far end for a given near one,
    by which the slope falls (label 1) or rises (label 0), then a better near end, by which it turns. Every
    round improves the slope strictly, so the search ends, exactly.
    """
    link, origin, start, edge = edge_at(nodes, leaves, rank)
    if positives(edge) == label * examples(edge):
        return edge  # all examples have this label
    sign = 1 if label else -1
    new = ONE + label
    left, right = start, start + edge
    d = edge + new
    while True:
        while True:
            touch = lowest(nodes, leaves, nodes[0, ROOT], 0, d)
            other = touch + new - left if label else right + new - touch
            if sign * turn(other, d) >= 0:
                break
            d = other
            if label:
                right = touch
            else:
                left = touch
        touch = lowest_near(nodes, leaves, link, origin, start, start + edge, rank, d, label)
        other = right + new - touch if label else touch + new - left
        if sign * turn(other, d) <= 0:
            return d
        d = other
        if label:
            left = touch
        else:
            right = touch


@compiled
def query(nodes, leaves, score):  # type: ignore[no-untyped-def]
    """Return p0 and p1 at a score."""
    row, origin, i = place(nodes, leaves, score)
    leaf = leaves[row]
    scores = leaves.view(np.float64)
    before = examples(origin + (leaf[POINT + i - 1] if i > 0 else 0))
    tied = i < leaf[COUNT] and scores[row, SCORE + i] == score
    through = examples(origin + leaf[POINT + i]) if tied else before
    # An untied score joins the block behind it under label 1 and the one before it under label 0: the fit
    # could not rise, or fall, between them.
    p0, p1 = 0.0, 1.0
    if through > 0:
        d = fitted(nodes, leaves, through - 1, 0)
        p0 = positives(d) / examples(d)
    if before < examples(nodes[0, TOTAL]):
        d = fitted(nodes, leaves, before, 1)
        p1 = positives(d) / examples(d)
    return p0, p1


@compiled
def query_all(nodes, leaves, scores):  # type: ignore[no-untyped-def]
    """Return (n, 2): p0 and p1 at each score."""
    out = np.empty((scores.shape[0], 2))
    for i in range(scores.shape[0]):
        out[i, 0], out[i, 1] = query(nodes, leaves, scores[i])
    return out


@compiled
def replay_all(nodes, leaves, scores, labels, taken, first, out):  # type: ignore[no-untyped-def]
    """Read the fit at each score in turn, then insert the example if it is taken, from number `first` on.

    Parameters
    ----------
    labels : (n,) int64
    taken : (n,) bool
    out : (n, 2) float64
        Set to p0 and p1 at each score.

    Returns
    -------
    int
        The number of the first example that did not fit, or n.
    """
    for i in range(first, scores.shape[0]):
        out[i, 0], out[i, 1] = query(nodes, leaves, scores[i])
        if taken[i] and insert(nodes, leaves, scores[i], labels[i]) != DONE:
            return i
    return scores.shape[0]


# ------------------------------------------------------------------------------------------------------ several classes
# One object and the trees of all classes, which are rows of one array, in one call.


@plainly
def steps_of_one(scores, largest, grid, offset):  # type: ignore[no-untyped-def]
    """Return the (1, c) scores of one object in whole steps; of two classes they mirror each other, if the scores do.

    `largest`, `grid`, `offset` : see `on_grid_within`.
    """
    steps = np.empty(scores.shape)
    on_grid_within(scores[0], largest, grid, offset, steps[0])
    if scores.shape[1] == 2:
        mirror(scores, grid, steps)
    return steps


@plainly
def pairs_of_one(nodes, leaves, scores, largest, grid, offset, pairs, proba):  # type: ignore[no-untyped-def]
    """Read the fits of all classes at one object; return the class of the largest probability.

    Parameters
    ----------
    nodes, leaves : (c, n, 8) and (c, n, LEAF) int64
        The tree of each class.
    scores : (1, c) float64
    largest, grid, offset : float
        See `on_grid_within`.
    pairs : (c, 2) float64
        Set to p0 and p1 of each class.
    proba : (c,) float64
        Set to the means of the pairs over their sum, to the bit as numpy computes them for fewer than 8 classes.
    """
    c, total, best = scores.shape[1], 0.0, 0
    steps = steps_of_one(scores, largest, grid, offset)
    for k in range(c):
        pairs[k, 0], pairs[k, 1] = query(nodes[k], leaves[k], steps[0, k])
        proba[k] = (pairs[k, 0] + pairs[k, 1]) / 2
        total += proba[k]
    for k in range(c):
        proba[k] = proba[k] / total if total > 0 else 1 / c
        if proba[k] > proba[best]:
            best = k
    return best


@plainly
def insert_one(nodes, leaves, scores, largest, grid, offset, code, first):  # type: ignore[no-untyped-def]
    """Insert an example of a class into the trees of all classes from `first` on; return the first without room, or c.

    Parameters
    ----------
    nodes, leaves, scores, largest, grid, offset
        As above.
    code : int
    """
    steps = steps_of_one(scores, largest, grid, offset)
    for k in range(first, steps.shape[1]):
        if insert(nodes[k], leaves[k], steps[0, k], np.int64(k == code)) != DONE:
            return k
    return steps.shape[1]
