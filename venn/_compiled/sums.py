"""Sums of floating-point numbers without rounding: mantissas added up in 32-bit limbs of one long integer.

A number is a whole multiple of the smallest one, 2^-1074. Limb k counts multiples of 2^(32 k - 1074); its 64
bits leave room for 2^30 numbers before a carry must be taken out.
"""

import numpy as np
from numpy.typing import NDArray

from venn._compiled.jit import compiled

LIMB = 32
LIMBS = 66  # the largest number ends in limb 65
ROOM = 1 << 30  # most numbers that may be added to zero limbs
SMALLEST = 1074  # binary exponent of the unit, negated

FRACTION = (1 << 52) - 1
MASK = (1 << LIMB) - 1


@compiled
def add_to_limbs(bits, places, limbs):  # type: ignore[no-untyped-def]
    """Add finite numbers to their sums.

    Parameters
    ----------
    bits : (n,) int64
        The numbers as bits.
    places : (n,) int64
        The row of `limbs` that each is added to.
    limbs : (g, LIMBS) int64, changed in place
    """
    for i in range(len(bits)):
        word = bits[i]
        exponent = (word >> 52) & 2047
        mantissa = word & FRACTION
        if exponent > 0:
            mantissa |= FRACTION + 1
            exponent -= 1
        limb, offset = exponent >> 5, exponent & 31
        low = (mantissa & MASK) << offset
        high = ((mantissa >> LIMB) << offset) + (low >> LIMB)
        row = limbs[places[i]]
        if word >= 0:
            row[limb] += low & MASK
            row[limb + 1] += high & MASK
            row[limb + 2] += high >> LIMB
        else:
            row[limb] -= low & MASK
            row[limb + 1] -= high & MASK
            row[limb + 2] -= high >> LIMB


def no_limbs(groups: int) -> NDArray[np.int64]:
    """Return empty sums."""
    return np.zeros((groups, LIMBS), np.int64)
