"""Pool-adjacent-violators with real weights."""

import numpy as np

from venn._compiled.jit import compiled


@compiled
def pool(positives, totals):  # type: ignore[no-untyped-def]
    """Return the blocks of the nondecreasing weighted least-squares fit to the rates positives / totals.

    Parameters
    ----------
    positives, totals : (m,) float64
        Weight of the positives, and of all examples (> 0), at each score in increasing order.

    Returns
    -------
    first : (blocks,) int64
        Position of the first score of each block.
    rate : (blocks,) float64, increasing
    """
    m = positives.shape[0]
    first = np.empty(m, np.int64)
    of_class = np.empty(m)
    of_all = np.empty(m)
    b = 0
    for i in range(m):
        start = i
        p = positives[i]
        t = totals[i]
        # Rates are compared, not products of sums: products of small weights vanish.
        while b > 0 and of_class[b - 1] / of_all[b - 1] >= p / t:
            b -= 1
            p += of_class[b]
            t += of_all[b]
            start = first[b]
        first[b] = start
        of_class[b] = p
        of_all[b] = t
        b += 1
    return first[:b].copy(), of_class[:b] / of_all[:b]
