"""Order statistics of a growing multiset: how many of its values are below or equal to a given one.

Values are kept in buckets of at most `WIDTH`, ascending within each and from one to the next; a full bucket is split
into halves. A query searches the largest values of the buckets, then one bucket; cumulative sizes are kept in a Fenwick
tree. So with m values a query costs O(log m), an insertion O(WIDTH + log m) plus its share of the splits, m / WIDTH^2.
Memory is O(m).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.jit import compiled, loops

# -------------------------------------------------------------------------------------------------------------- digests
# Digests of objects: 64 bits that depend only on the content of a row, dense or sparse, on every platform.
#
# The generator SplitMix64 mixes each number that is not 0 with its place, and the results are added. So zeros of either
# sign do not count, and a sparse row has the same digest as its dense form.

# All unsigned: combined with a signed integer they would become floats.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BY_11, BY_27, BY_30, BY_31, ONE = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(1)


@compiled
def mixed(z):  # type: ignore[no-untyped-def]
    """Return 64 bits that look random, one to one: Stafford's mixer, variant 13."""
    z = (z ^ (z >> BY_30)) * FIRST
    z = (z ^ (z >> BY_27)) * SECOND
    return z ^ (z >> BY_31)


@compiled
def dense_digests(bits, out):  # type: ignore[no-untyped-def]
    """Set out[i] to the digest of row i.

    Parameters
    ----------
    bits : (n, d) uint64
        Of float64 numbers.
    out : (n,) uint64
    """
    for i in range(bits.shape[0]):
        out[i] = digest(bits[i])


@compiled
def digest(bits):  # type: ignore[no-untyped-def]
    """Return the digest of one object, of (d,) uint64."""
    total = key = np.uint64(0)
    for f in range(bits.shape[0]):
        key += GOLDEN
        if bits[f] << ONE:  # all but the sign
            total += mixed(bits[f] + key)
    return total


@compiled
def sparse_digests(starts, stops, indices, bits, out):  # type: ignore[no-untyped-def]
    """Set out[i] to the digest of row i, whose entries are from starts[i] to stops[i]; `bits` (entries,) uint64."""
    for i in range(len(out)):
        total = np.uint64(0)
        for j in range(starts[i], stops[i]):
            if bits[j] << ONE:
                total += mixed(bits[j] + (np.uint64(indices[j]) + ONE) * GOLDEN)
        out[i] = total


# ---------------------------------------------------------------------------------------------------------------- ranks

# ----------------------------------------------------------------------------------------------------------------- grid
# Scores in whole steps of a grid, to the bit as numpy computes them; whether numbers are finite.

# Not `compiled`: a fused multiply and add would round otherwise than numpy does, and move scores to other steps.
plainly = loops(error_model="numpy", nogil=True)


@plainly
def on_grid_within(scores, largest, grid, offset, out):  # type: ignore[no-untyped-def]
    """Set out[i] to scores[i], at most `largest` in size, times `grid` plus `offset`, rounded.

    Parameters
    ----------
    scores : (n,) float64, no NaN
    largest, grid, offset : float
    out : (n,) float64
    """
    for i in range(len(scores)):
        out[i] = np.rint(min(max(scores[i], -largest), largest) * grid + offset)


@plainly
def mirror(scores, grid, out):  # type: ignore[no-untyped-def]
    """Set out[i, 0] to what mirrors out[i, 1] where the two scores of row i add up to 0 or to 1, but for one step.

    Parameters
    ----------
    scores : (n, 2) float64
    grid : float
    out : (n, 2) float64
        The scores in whole steps.
    """
    for i in range(len(scores)):
        both = scores[i, 0] + scores[i, 1]
        sum_ = 0.0 if abs(both) < 0.5 else 1.0
        if abs(both - sum_) * grid <= 1.0:
            out[i, 0] = sum_ * grid - out[i, 1]


@plainly
def all_finite(values):  # type: ignore[no-untyped-def]
    """Return whether (n,) float64 values are all finite: for a few of them faster than numpy."""
    for value in values:  # noqa: SIM110 - compiled
        if not np.isfinite(value):
            return False
    return True


@plainly
def share_steps(scores, grid, offset, out):  # type: ignore[no-untyped-def]
    """Set out[i, j] to minus the logarithm of score j's share of row i, times `grid` plus `offset`, rounded.

    Scores below 0 count as 0. If all are 0 each has the share 1.

    Returns
    -------
    bool
        Whether no number is NaN.

    Parameters
    ----------
    scores, out : (n, c) float64
    grid, offset : float
    """
    fine = True
    for i in range(len(scores)):
        total = 0.0
        for k in range(scores.shape[1]):
            value = scores[i, k]
            total += value if value > 0.0 else 0.0
            fine &= value == value
        for j in range(scores.shape[1]):
            value = scores[i, j]
            if total == 0.0:
                out[i, j] = np.rint(offset)
            else:
                out[i, j] = np.rint(offset - np.log(value / total) * grid) if value > 0.0 else np.inf
    return fine


@plainly
def margin_steps(scores, grid, offset, out):  # type: ignore[no-untyped-def]
    """Set out[i, j] to the largest other score of row i less score j, times `grid` plus `offset`, rounded.

    Returns
    -------
    bool
        Whether no number is NaN.

    Parameters
    ----------
    scores, out : (n, c) float64
    grid, offset : float
    """
    fine = True
    for i in range(len(scores)):
        first = second = -np.inf  # the two largest
        place = -1
        for k in range(scores.shape[1]):
            value = scores[i, k]
            if value > first:
                first, second, place = value, first, k
            elif value > second:
                second = value
            fine &= value == value
        for j in range(scores.shape[1]):
            rival = second if j == place else first
            out[i, j] = np.rint((rival - scores[i, j]) * grid + offset)
            fine &= out[i, j] == out[i, j]
    return fine


# ---------------------------------------------------------------------------------------------------------------- ranks

WIDTH = 256  # of a bucket: narrower ones make splits expensive, wider ones insertions


class Buckets(NamedTuple):
    """A multiset of numbers, with room for K buckets."""

    values: NDArray[np.float64]  #: (K, WIDTH), in the order in which buckets were made
    place: NDArray[np.int64]  #: (K,) row of `values`, here and below in ascending order of the values
    sizes: NDArray[np.int64]  #: (K,) number of values
    largest: NDArray[np.float64]  #: (K,) largest value
    tree: NDArray[np.int64]  #: (K + 1,) Fenwick tree of the sizes
    totals: NDArray[np.int64]  #: (2,) number of buckets, at least 1, and of values


def no_values() -> Buckets:
    """Return an empty multiset."""
    return Buckets(
        np.empty((1, WIDTH)), np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, -np.inf),
        np.zeros(2, np.int64), np.array([1, 0]),
    )  # fmt: skip


def with_room(buckets: Buckets, more: int) -> Buckets:
    """Return the multiset with room for `more` values: itself, or a copy with at least twice the room."""
    # Both halves of a split bucket always hold at least WIDTH / 2 values.
    most = 2 * (int(buckets.totals[1]) + more) // WIDTH + 1
    room = len(buckets.sizes)
    if most <= room:
        return buckets
    room = max(most, 2 * room)
    return Buckets(
        _longer(buckets.values, room), _longer(buckets.place, room), _longer(buckets.sizes, room),
        _longer(buckets.largest, room), _longer(buckets.tree, room + 1), buckets.totals,
    )  # fmt: skip


def contents(buckets: Buckets) -> NDArray[np.float64]:
    """Return the (m,) values, ascending."""
    used = int(buckets.totals[0])
    rows = zip(buckets.place[:used].tolist(), buckets.sizes[:used].tolist(), strict=True)
    return np.concatenate([buckets.values[row, :size] for row, size in rows])


def of_sorted(values: NDArray[np.float64]) -> Buckets:
    """Return the multiset of (m,) ascending values, made at once."""
    buckets = with_room(no_values(), len(values))
    fill_buckets(buckets, values)
    return buckets


def _longer(array: Any, length: int) -> Any:
    longer = np.empty((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


@compiled
def reaching(ascending, first, last, value):  # type: ignore[no-untyped-def]
    """Return the first position from `first` to `last` of a number >= value; `last` if there is none."""
    while first < last:
        middle = (first + last) // 2
        if ascending[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def beyond(ascending, first, last, value):  # type: ignore[no-untyped-def]
    """Return the same for a number > value."""
    while first < last:
        middle = (first + last) // 2
        if ascending[middle] <= value:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def in_first(tree, buckets):  # type: ignore[no-untyped-def]
    """Return how many values the first `buckets` buckets hold."""
    total = 0
    while buckets > 0:
        total += tree[buckets]
        buckets -= buckets & -buckets
    return total


@compiled
def below_and_up_to(buckets, value):  # type: ignore[no-untyped-def]
    """Return how many values are < value, and how many are <= value."""
    used, size = buckets.totals
    here = reaching(buckets.largest, 0, used, value)
    if here == used:
        return size, size
    before = in_first(buckets.tree, here)
    row = buckets.values[buckets.place[here]]
    start = reaching(row, 0, buckets.sizes[here], value)
    if buckets.largest[here] > value:
        return before + start, before + beyond(row, start, buckets.sizes[here], value)
    last = beyond(buckets.largest, here + 1, used, value)
    if last == used:
        return before + start, size
    row = buckets.values[buckets.place[last]]
    return before + start, in_first(buckets.tree, last) + beyond(row, 0, buckets.sizes[last], value)


@compiled
def split(buckets, here):  # type: ignore[no-untyped-def]
    """Move the upper half of a full bucket to a new one."""
    values, place, sizes, largest, tree, totals = buckets
    used = totals[0]
    for later in range(used, here + 1, -1):
        place[later], sizes[later], largest[later] = place[later - 1], sizes[later - 1], largest[later - 1]
    totals[0] = used + 1
    half = values.shape[1] // 2
    row = values[place[here]]
    place[here + 1] = used
    sizes[here + 1] = values.shape[1] - half
    largest[here + 1] = largest[here]
    sizes[here] = half
    largest[here] = row[half - 1]
    for i in range(half, values.shape[1]):
        values[used, i - half] = row[i]
    tree[: used + 2] = 0
    for bucket in range(1, used + 2):
        tree[bucket] += sizes[bucket - 1]
        parent = bucket + (bucket & -bucket)
        if parent <= used + 1:
            tree[parent] += tree[bucket]


@compiled
def insert(buckets, value):  # type: ignore[no-untyped-def]
    """Add a value; there must be room."""
    values, place, sizes, largest, tree, totals = buckets
    here = min(reaching(largest, 0, totals[0], value), totals[0] - 1)
    if sizes[here] == values.shape[1]:
        split(buckets, here)
        if largest[here] < value:
            here += 1
    row, size = values[place[here]], sizes[here]
    start = reaching(row, 0, size, value)
    for later in range(size, start, -1):
        row[later] = row[later - 1]
    row[start] = value
    sizes[here] = size + 1
    largest[here] = row[size]
    totals[1] += 1
    node = here + 1
    while node <= totals[0]:
        tree[node] += 1
        node += node & -node


@compiled
def fill_buckets(buckets, ascending):  # type: ignore[no-untyped-def]
    """Put ascending values into an empty multiset with room for them, all but the last bucket three quarters full."""
    values, place, sizes, largest, tree, totals = buckets
    m, fill = len(ascending), 3 * values.shape[1] // 4
    if m == 0:
        return
    used = (m + fill - 1) // fill
    for bucket in range(used):
        first, last = bucket * fill, min(m, (bucket + 1) * fill)
        place[bucket] = bucket
        sizes[bucket] = last - first
        for i in range(first, last):
            values[bucket, i - first] = ascending[i]
        largest[bucket] = ascending[last - 1]
    tree[: used + 1] = 0
    for bucket in range(1, used + 1):
        tree[bucket] += sizes[bucket - 1]
        parent = bucket + (bucket & -bucket)
        if parent <= used:
            tree[parent] += tree[bucket]
    totals[0], totals[1] = used, m


@compiled
def insert_many(buckets, values):  # type: ignore[no-untyped-def]
    """Add (n,) values; there must be room."""
    for value in values:
        insert(buckets, value)


@compiled
def replay_ranks(buckets, values, first, last, own, greater, equal, total):  # type: ignore[no-untyped-def]
    """Rank the values of every example among those added before it, then add one of them.

    Parameters
    ----------
    buckets : Buckets, changed in place; there must be room
    values : (n, c) float64
        Values of each example with each label.
    first, last : int
        Columns of `values` from `first` up to `last`, excluded, are ranked.
    own : (n,) int64
        Column to add; -1 for none.
    greater, equal, total : (n, c) int64, those columns written
        How many are greater, equal, and how many there are; the example itself is counted in the last two.
    """
    for i in range(len(values)):
        size = buckets.totals[1]
        for j in range(first, last):
            below, up_to = below_and_up_to(buckets, values[i, j])
            greater[i, j] = size - up_to
            equal[i, j] = up_to - below + 1
            total[i, j] = size + 1
        if own[i] >= 0:
            insert(buckets, values[i, own[i]])


@plainly
def shares_of_one(buckets, values, bits, drawn, smoothed, out):  # type: ignore[no-untyped-def]
    """Set `out` to the p-values of one object: as from `replay_ranks`, in one call, to the bit as numpy computes them.

    Parameters
    ----------
    buckets : Buckets
    values : (c,) float64
        Its values with each label.
    bits : (d,) uint64
        Of its float64 numbers.
    drawn : uint64
        Random bits of the step, which the object's digest is mixed with to break ties.
    smoothed : bool
    out : (c,) float64

    Returns
    -------
    int
        The place of the largest p-value, the first of several.
    """
    best = 0
    tau = np.float64(mixed(drawn ^ digest(bits)) >> BY_11) * 2.0**-53 if smoothed else 1.0
    size = buckets.totals[1]
    for j in range(values.shape[0]):
        below, up_to = below_and_up_to(buckets, values[j])
        out[j] = (size - up_to + tau * (up_to - below + 1)) / (size + 1)
        best = j if out[j] > out[best] else best
    return best
