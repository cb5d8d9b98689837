"""Digests of objects: 64 bits that depend only on the content of a row, dense or sparse, on every platform.

The generator SplitMix64 mixes each number that is not 0 with its place, and the results are added. So zeros of either
sign do not count, and a sparse row has the same digest as its dense form.
"""

import numpy as np

from venn._compiled.jit import compiled

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
