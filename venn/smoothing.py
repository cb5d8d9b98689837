"""The random numbers that break ties: one for each step, the same however often one asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.parameters import whole
from venn.prediction import Floats

BLOCK = 256  # drawn at a time: making a generator costs more than a number
# numpy's own generator of a seed must not give the same numbers: labels drawn with seed 0 would be a function of the
# numbers that are to be independent of them.
SALT = 0x76656E6E


class Smoothing:
    """Independent uniform random numbers, addressed by their position.

    Number n depends on the seed and n alone. So reading leaves no trace, one step is like many at once, and
    all there is to save is the seed and the step.

    Parameters
    ----------
    seed : int >= 0

    Raises
    ------
    ValueError, TypeError
        The seed is not that.

    Examples
    --------
    >>> smoothing = Smoothing(0)
    >>> bool(smoothing.at(3) == smoothing.block(2, 5)[1])
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = whole("seed", seed, 0)
        self._drawn: tuple[int | None, list[float]] = (None, [])  # number of a block and what is in it

    def at(self, n: int) -> float:
        """Return number n >= 0, in [0, 1).

        Raises
        ------
        ValueError
            For a negative n.
        """
        number, place = divmod(n, BLOCK)
        if self._drawn[0] != number:
            self._drawn = number, self.block(number * BLOCK, BLOCK).tolist()
        return self._drawn[1][place]

    def block(self, start: int, count: int) -> Floats:
        """Return (count,) numbers in [0, 1), from position `start` >= 0 on.

        Raises
        ------
        ValueError
            For a negative argument.
        """
        if start < 0 or count < 0:
            raise ValueError(f"start and count must be integers >= 0, got {start!r} and {count!r}")
        source = np.random.PCG64([self.seed, SALT]).advance(start)
        return np.random.Generator(source).random(count)

    def __repr__(self) -> str:
        return f"Smoothing({self.seed})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Smoothing) and self.seed == other.seed

    def __hash__(self) -> int:
        return hash((Smoothing, self.seed))

    def __getstate__(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
