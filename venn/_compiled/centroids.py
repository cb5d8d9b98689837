"""Distances to the means of the classes.

Objects are stored by feature, (d, capacity), one column for each distinct example: object and class.
"""

import numpy as np

from venn._compiled.jit import compiled


@compiled
def add_exactly(sums, errors, x):  # type: ignore[no-untyped-def]
    """Add x to sums, and the rounding error to errors: the sum then hardly depends on the order."""
    for f in range(x.shape[0]):
        total = sums[f] + x[f]
        back = total - sums[f]
        errors[f] += (sums[f] - (total - back)) + (x[f] - back)
        sums[f] = total


@compiled
def add_all_exactly(columns, chosen, sums, errors):  # type: ignore[no-untyped-def]
    """Set sums and errors to those of the chosen columns, added in their order."""
    sums[:] = 0.0
    errors[:] = 0.0
    for i in chosen:
        add_exactly(sums, errors, columns[:, i])


@compiled
def centroid_scores(columns, m, sums, errors, count, absent, out):  # type: ignore[no-untyped-def]
    """Set out[:m] to minus the distances to the mean of `count` objects, or to `absent` if there are none."""
    if count == 0:
        out[:m] = absent
        return
    out[:m] = 0.0
    for f in range(columns.shape[0]):
        column, centre = columns[f], (sums[f] + errors[f]) / count
        for i in range(m):
            difference = column[i] - centre
            out[i] += difference * difference
    for i in range(m):
        out[i] = -np.sqrt(out[i])


@compiled
def leave_out(labels, m, k, count, absent, out):  # type: ignore[no-untyped-def]
    """Change scores for class k so that none of its `count` examples is in the centroid it is compared with.

    From one of them the mean of the others is count / (count - 1) times as far as the mean of all.
    """
    for i in range(m):
        if labels[i] == k:
            out[i] = out[i] * count / (count - 1) if count > 1 else absent
