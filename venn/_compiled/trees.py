"""Rows through fitted trees: from the root of each to a leaf, and the sums of what stands in the leaves."""

import numpy as np

from venn._compiled.ranks import plainly

#: A node that asks a question. Children are numbers of nodes, or -1 - i for row i of the leaves. `how` is 1 where
#: missing values go left, otherwise 0, and 2 (s + 1) more where the node asks for membership in set s. All of it in 24
#: bytes beside each other: five arrays take a fifth longer where trees are larger than the processor's cache.
NODE = np.dtype([("threshold", "f8"), ("left", "i4"), ("right", "i4"), ("column", "i4"), ("how", "i4")])
# Trees walked in turns, a step in each: the processor fetches the nodes of all of them at once, in half the time.
LANES = 8


@plainly
def tree_sums(X, single, missing, places, categories, nodes, roots, leaves, sets, out):  # type: ignore[no-untyped-def]
    """Add to out[i] what stands in the leaves that row i comes to, tree by tree in their order.

    A row's sums do not depend on the other rows, not even in their last bit.

    Returns
    -------
    int
        -1, or the place in X of the first number that is refused; nothing is added then.

    Parameters
    ----------
    X : (n, d) float64
    single : bool
        Whether numbers are rounded to 32 bits first; those too large for this are refused.
    missing : bool
        Whether NaN is taken.
    places : (d + 1,) int64
        Categories of column f are categories[places[f]:places[f + 1]], in order; none where it is no categorical one.
    categories : (q,) float64
    nodes : (N,) NODE
        Children come after their parents.
    roots : (T,) int64
        As children are.
    leaves : (m, w) float64
        Added to all columns of `out` if these are w; if w = 1, tree t is added to column t modulo their number.
    sets : (s, 8) uint32
        Bits of the categories that go left.
    out : (n, k) float64, changed in place
    """
    n, d = X.shape
    Z = np.empty((n, d))
    for i in range(n):
        for f in range(d):
            value = X[i, f]
            if single:
                value = np.float64(np.float32(value))
            first, end = places[f], places[f + 1]
            if value != value:
                if not missing:
                    return i * d + f
            elif (single or end > first) and not np.isfinite(value):
                return i * d + f
            elif end > first:
                at = first + np.searchsorted(categories[first:end], value)
                value = np.float64(at - first) if at < end and categories[at] == value else np.nan
            Z[i, f] = value
    k, w = out.shape[1], leaves.shape[1]
    at = np.empty(LANES, np.int64)
    for t in range(0, len(roots), LANES):
        m = min(LANES, len(roots) - t)
        for i in range(n):
            z, sums = Z[i], out[i]
            for j in range(m):
                at[j] = roots[t + j]
            going = True
            while going:
                going = False
                for j in range(m):
                    if at[j] >= 0:
                        node = nodes[at[j]]
                        value, how, next_ = z[node.column], node.how, node.right
                        if value != value:
                            if how & 1:
                                next_ = node.left
                        elif how > 1:
                            code = np.int64(value)
                            if (sets[(how >> 1) - 1, code >> 5] >> (code & 31)) & 1:
                                next_ = node.left
                        else:
                            # Without a branch, which the processor would guess wrong half the time.
                            next_ ^= (next_ ^ node.left) & -np.int32(value <= node.threshold)
                        at[j] = next_
                        going |= next_ >= 0
            for j in range(m):
                leaf, first = -1 - at[j], (t + j) * w % k
                for c in range(w):
                    sums[first + c] += leaves[leaf, c]
    return -1
