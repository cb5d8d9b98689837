"""Nearest neighbours and class centroids over a bag, and what a new example would change.

Objects are stored by feature, (d, capacity), one column for each distinct example: object and class. The
new object is in the column after the last.

The neighbours of a column are kept by levels, in ascending order of distance. A level holds all examples at one
distance, and there are as many levels as are needed for the wanted number of examples. So ties are never cut.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.jit import compiled
from venn._compiled.rows import squares_row


class Levels(NamedTuple):
    """Nearest examples of each column; room for M columns and L levels."""

    distance: NDArray[np.float64]  #: (M, L) squared, ascending
    votes: NDArray[np.int64]  #: (M, L, c) examples of each class at that distance
    used: NDArray[np.int64]  #: (M,) levels
    sums: NDArray[np.int64]  #: (M, c) examples of each class in them
    reach: NDArray[np.float64]  #: (M,) largest distance among the wanted number, infinite while there are fewer


@compiled
def join(levels, i, distance, label, weight, wanted):  # type: ignore[no-untyped-def]
    """Add `weight` examples of a class within its reach to column i; keep levels up to `wanted` examples."""
    used = levels.used[i]
    distances, votes, sums = levels.distance[i], levels.votes[i], levels.sums[i]
    place = 0
    while place < used and distances[place] < distance:
        place += 1
    if place == used or distances[place] > distance:
        for later in range(used, place, -1):
            distances[later] = distances[later - 1]
            votes[later] = votes[later - 1]
        distances[place] = distance
        votes[place] = 0
        used += 1
    votes[place, label] += weight
    sums[label] += weight
    total = sums.sum()
    while total - votes[used - 1].sum() >= wanted:
        used -= 1
        total -= votes[used].sum()
        sums -= votes[used]
    levels.used[i] = used
    levels.reach[i] = distances[used - 1] if total >= wanted else np.inf


@compiled
def look_around(levels, m, distances, labels, weights, k):  # type: ignore[no-untyped-def]
    """Set the levels of column m from its distances to the m columns before it."""
    levels.used[m] = 0
    levels.sums[m] = 0
    levels.reach[m] = np.inf
    for i in range(m):
        if distances[i] <= levels.reach[m]:
            join(levels, m, distances[i], labels[i], weights[i], k)


@compiled
def welcome(levels, m, distances, label, k):  # type: ignore[no-untyped-def]
    """Add a new example to the levels of the first m columns; each counts itself among its k + 1."""
    for i in range(m):
        if distances[i] <= levels.reach[i]:
            join(levels, i, distances[i], label, 1, k + 1)


@compiled
def part(levels, i, distance, label, wanted):  # type: ignore[no-untyped-def]
    """Remove an example of a class within its reach from column i; return whether it needs a farther one instead."""
    distances, votes, sums = levels.distance[i], levels.votes[i], levels.sums[i]
    full = levels.reach[i] < np.inf
    used = levels.used[i]
    place = 0
    while place < used and distances[place] < distance:
        place += 1
    if place == used or distances[place] > distance:  # only possible with a forged checkpoint
        return False
    votes[place, label] -= 1
    sums[label] -= 1
    if votes[place].sum() == 0:
        used -= 1
        for later in range(place, used):
            distances[later] = distances[later + 1]
            votes[later] = votes[later + 1]
    levels.used[i] = used
    return full and sums.sum() < wanted


@compiled
def look_further(levels, i, columns, m, labels, weights, wanted, distances):  # type: ignore[no-untyped-def]
    """Add all examples at the next distance to column i, which has one too few; `distances` is scratch."""
    squares_row(columns, m, np.ascontiguousarray(columns[:, i]), distances)
    passed = levels.reach[i]
    levels.reach[i] = np.inf
    following = np.inf
    for j in range(m):
        if weights[j] > 0 and passed < distances[j] < following:
            following = distances[j]
    for j in range(m):
        if weights[j] > 0 and distances[j] == following:
            join(levels, i, following, labels[j], weights[j], wanted)


@compiled
def part_with(levels, columns, m, labels, weights, x, label, k, distances, others):  # type: ignore[no-untyped-def]
    """Remove an example of a class at x from all m columns; its column's weight excludes it already.

    `distances`, `others` (>= m,) are scratch.
    """
    squares_row(columns, m, x, distances)
    for i in range(m):
        # A column without examples will be removed.
        if weights[i] > 0 and distances[i] <= levels.reach[i] and part(levels, i, distances[i], label, k + 1):
            look_further(levels, i, columns, m, labels, weights, k + 1, others)


@compiled
def vote(levels, i, distance, wanted, out):  # type: ignore[no-untyped-def]
    """Set out (c,) to the votes at column i given a new example at a distance, without the new example's vote.

    Returns 1 if the new example is among the nearest `wanted`, ties included, else 0.
    """
    out[:] = 0.0
    total = 0
    joined = 0
    for level in range(levels.used[i]):
        if joined == 0 and distance <= levels.distance[i, level]:
            joined = 1
            total += 1
            if distance < levels.distance[i, level] and total >= wanted:
                return joined
        for k in range(out.shape[0]):
            out[k] += levels.votes[i, level, k]
            total += levels.votes[i, level, k]
        if total >= wanted:
            return joined
    return 1


@compiled
def vote_table(levels, m, distances, labels, k, deleted, negative, positive):  # type: ignore[no-untyped-def]
    """Set the votes at the first m columns and at the new object, column m: without and with its own vote.

    Parameters
    ----------
    distances : (m,) float64, squared; infinity if there is no new object
    deleted : bool
        No example votes for itself: the k nearest others vote. Otherwise it is one of its own k nearest.
    negative, positive : (c, m + 1) float64, written
    """
    votes = np.empty(negative.shape[0])
    for i in range(m):
        if not deleted:
            joined = vote(levels, i, distances[i], k, votes)
        elif distances[i] > levels.reach[i]:
            # Beyond the reach of its k nearest others and itself, which the levels hold.
            joined = 0
            votes[:] = levels.sums[i]
        else:
            joined = vote(levels, i, distances[i], k + 1, votes)
        if deleted:
            votes[labels[i]] -= 1
        negative[:, i] = votes
        positive[:, i] = votes + joined
    # The levels of column m are of the others only.
    if deleted:
        negative[:, m] = levels.sums[m]
        positive[:, m] = levels.sums[m]
    else:
        vote(levels, m, 0.0, k, votes)
        negative[:, m] = votes
        positive[:, m] = votes + 1


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
