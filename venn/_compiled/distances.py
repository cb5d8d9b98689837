"""Mean distances to the nearest examples of each class over a bag, and what a new example would change.

For every column, a distinct example, the k smallest distances to *other* examples of each class are kept, ascending,
infinite where there are fewer. A mean adds such a list from its small end. So it depends on the distances alone, to the
last bit, and not on the order in which they came.
"""

import numpy as np

from venn._compiled.jit import compiled
from venn._compiled.rows import squares_row


@compiled
def distances_to(columns, m, x, out):  # type: ignore[no-untyped-def]
    """Set out[:m] to the Euclidean distances of the first m columns from x; symmetric in the two objects."""
    squares_row(columns, m, x, out)
    for i in range(m):
        out[i] = np.sqrt(out[i])


@compiled
def keep(row, distance):  # type: ignore[no-untyped-def]
    """Insert a distance, less than the last one, into an ascending list and drop the last one."""
    place = len(row) - 1
    while place > 0 and row[place - 1] > distance:
        row[place] = row[place - 1]
        place -= 1
    row[place] = distance


@compiled
def score(row, distance, itself, absent):  # type: ignore[no-untyped-def]
    """Return minus the mean of the k smallest of a list of k, one more distance and, if `itself`, 0.

    Infinite distances do not count; returns `absent` if no other is left.
    """
    count = 1 if itself else 0
    total = 0.0
    joined = distance == np.inf
    place = 0
    while count < len(row):
        if not joined and distance <= row[place]:
            joined = True
            total += distance
        elif row[place] == np.inf:
            break
        else:
            total += row[place]
            place += 1
        count += 1
    # 0 minus a mean: -0.0 would differ from 0.0 where bytes are compared.
    return absent if count == 0 else 0.0 - total / count


@compiled
def look_around(nearest, m, distances, labels, weights):  # type: ignore[no-untyped-def]
    """Set the lists of column m from its distances to the m columns before it."""
    k = nearest.shape[2]
    nearest[:, m] = np.inf
    for i in range(m):
        row = nearest[labels[i], m]
        for _ in range(min(weights[i], k)):
            if distances[i] < row[k - 1]:
                keep(row, distances[i])


@compiled
def settle(nearest, others, own, i, j, label, absent):  # type: ignore[no-untyped-def]
    """Set the scores of class j at column i, of a class `label`, by its list."""
    others[j, i] = score(nearest[j, i], np.inf, False, absent)
    if label == j:
        own[i] = score(nearest[j, i], np.inf, True, absent)


@compiled
def welcome(nearest, others, own, m, distances, labels, code, absent):  # type: ignore[no-untyped-def]
    """Add a new example of class `code` to the lists of the first m columns."""
    k = nearest.shape[2]
    for i in range(m):
        row = nearest[code, i]
        if distances[i] < row[k - 1]:
            keep(row, distances[i])
            settle(nearest, others, own, i, code, labels[i], absent)


@compiled
def part_with(nearest, others, own, columns, m, distances, labels, weights, code, absent, further):  # type: ignore[no-untyped-def]
    """Remove an example of class `code` from the lists of all m columns; its column's weight excludes it already.

    `further` (>= m,) is scratch.
    """
    k = nearest.shape[2]
    for i in range(m):
        row = nearest[code, i]
        # A column without examples will be removed; infinite distances do not count.
        if weights[i] == 0 or distances[i] > row[k - 1]:
            continue
        distances_to(columns, m, np.ascontiguousarray(columns[:, i]), further)
        row[:] = np.inf
        for j in range(m):
            if labels[j] == code:
                for _ in range(min(weights[j] - (i == j), k)):
                    if further[j] < row[k - 1]:
                        keep(row, further[j])
        settle(nearest, others, own, i, code, labels[i], absent)


@compiled
def distance_table(nearest, others, own, m, distances, labels, absent, deleted, negative, positive):  # type: ignore[no-untyped-def]
    """Set the scores at the first m columns and at the new object, column m: without and with its own distance.

    Parameters
    ----------
    nearest : (c, M, k) float64
        Distances of each column to the nearest others of each class.
    others : (c, M) float64
        Scores by these.
    own : (M,) float64
        Score of each column's own class, the example itself being among its nearest.
    distances : (m,) float64
        Distances to the new object; infinite if there is none.
    deleted : bool
        No example is among its own nearest.
    negative, positive : (c, m + 1) float64, written
    """
    c, k = nearest.shape[0], nearest.shape[2]
    for j in range(c):
        for i in range(m):
            itself = not deleted and labels[i] == j
            negative[j, i] = own[i] if itself else others[j, i]
            if distances[i] < nearest[j, i, k - 1]:
                positive[j, i] = score(nearest[j, i], distances[i], itself, absent)
            else:
                positive[j, i] = negative[j, i]
        negative[j, m] = score(nearest[j, m], np.inf, False, absent)
        positive[j, m] = negative[j, m] if deleted else score(nearest[j, m], np.inf, True, absent)
