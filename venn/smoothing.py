"""The random numbers that break ties: one for each step and object, the same at every question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venn.parameters import integer
from venn.prediction import Floats
from venn.saved import Saved, component, param

BLOCK = 256  # drawn at a time: making a generator costs more than a number
# numpy's own generator must not give the same numbers for a seed: labels drawn with seed 0 would be a function of the
# numbers that must be independent of them.
SALT = 0x76656E6E
UNIT = 2.0**-53  # a number has 53 bits, the first of the 64 drawn
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MASK = (1 << 64) - 1


@component
class Smoothing(Saved):
    """Independent uniform random numbers, addressed by their position, and by an object if there is one.

    Number n depends only on the seed and n. So reading leaves no trace, one step is like many at once, and only the
    seed and the step need saving.

    With the 64-bit digest of an object, number n differs from object to object. The 64 random bits of step n and the
    digest are added modulo 2 and mixed, one to one. So for any objects that do not depend on the seed, the numbers of
    different steps are as uniform and independent as without objects; the numbers of different objects at one step are
    as independent as the mixer is good.

    Parameters
    ----------
    seed : int >= 0

    Raises
    ------
    ValueError, TypeError
        The seed is not as described.

    Examples
    --------
    >>> smoothing = Smoothing(0)
    >>> bool(smoothing.at(3) == smoothing.block(2, 5)[1])
    True
    >>> digests = np.array([7, 8, 7], np.uint64)
    >>> numbers = smoothing.of(3, digests)
    >>> bool(numbers[0] == smoothing.at(3, 7) == numbers[2]), bool(numbers[0] == numbers[1])
    (True, False)
    """

    seed: int = param(integer, 0, default=0)

    def derive(self) -> None:
        """Start before the first draw."""
        self._drawn: tuple[int | None, list[int], Floats] = (None, [], np.empty(0))

    def at(self, n: int, digest: int | None = None) -> float:
        """Return number n >= 0, in [0, 1), or its variant for an object with a digest from 0 to 2^64 - 1.

        Raises
        ------
        ValueError
            For a negative n.
        """
        (number, place), (drawn, bits, _) = divmod(n, BLOCK), self._drawn
        z = bits[place] if drawn == number else self.bits_at(n)
        if digest is not None:
            z = z ^ digest
            z = (z ^ (z >> 30)) * FIRST & MASK
            z = (z ^ (z >> 27)) * SECOND & MASK
            z = z ^ (z >> 31)
        return (z >> 11) * UNIT

    def of(self, n: int, digests: NDArray[np.uint64]) -> Floats:
        """Return number n >= 0 of each object, by (m,) digests.

        Raises
        ------
        ValueError
            For a negative n.
        """
        return _mixed(np.uint64(self.bits_at(n)) ^ digests)

    def of_each(self, start: int, digests: NDArray[np.uint64]) -> Floats:
        """Return (m,) numbers from position `start` >= 0 on, each for the object of its step, by (m,) digests.

        Raises
        ------
        ValueError
            For a negative start.
        """
        return _mixed(self._bits(start, len(digests)) ^ digests)

    def block(self, start: int, count: int) -> Floats:
        """Return (count,) numbers in [0, 1), from position `start` >= 0 on.

        Raises
        ------
        ValueError
            For a negative argument.
        """
        number, place = divmod(start, BLOCK)
        if 0 < count <= BLOCK - place and start >= 0:
            return self._near(number)[2][place : place + count].copy()
        return _numbers(self._bits(start, count))

    def bits_at(self, n: int) -> int:
        """Return the 64 random bits of number n >= 0; those nearby are drawn with them."""
        number, place = divmod(n, BLOCK)
        return self._near(number)[1][place]

    def _near(self, number: int) -> tuple[int | None, list[int], Floats]:
        """Return a block, which is drawn if it is not the latest: its number, its bits, and its numbers."""
        drawn = self._drawn
        if drawn[0] != number:
            bits = self._bits(number * BLOCK, BLOCK)
            drawn = self._drawn = number, bits.tolist(), _numbers(bits)
        return drawn

    def _bits(self, start: int, count: int) -> NDArray[np.uint64]:
        """Return (count,) times 64 random bits."""
        if start < 0 or count < 0:
            raise ValueError(f"start and count must be integers >= 0, got {start!r} and {count!r}")
        return np.random.PCG64([self.seed, SALT]).advance(start).random_raw(count)


def _mixed(bits: NDArray[np.uint64]) -> Floats:
    """Return numbers in [0, 1) of 64 bits each, mixed one to one: Stafford's mixer, variant 13."""
    z = (bits ^ (bits >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return _numbers(z ^ (z >> np.uint64(31)))


def _numbers(bits: NDArray[np.uint64]) -> Floats:
    """Return numbers in [0, 1) of the first 53 of 64 bits each."""
    return (bits >> np.uint64(11)).astype(np.float64) * UNIT
