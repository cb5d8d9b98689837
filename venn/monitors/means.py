"""Means of columns over all steps of a stream, and over its latest steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venn.machines.machine import grown
from venn.monitors.running import State, held_numbers
from venn.prediction import Floats

ROOM = 1024  # steps


class Means:
    """Sums of columns over all steps, and the rows of the latest ones, as many as a window holds.

    Parameters
    ----------
    names : sequence of str
        Of the columns.
    window : int >= 1

    Examples
    --------
    >>> means = Means(["hit"], window=2)
    >>> for n, hit in enumerate([1.0, 1.0, 0.0]):
    ...     means.row(n)[:] = hit
    ...     means.sums += hit
    >>> means.of_all(3), means.of_latest(3, 2)
    ({'hit': 0.6666666666666666}, {'hit': 0.5})
    """

    def __init__(self, names: Sequence[str], window: int) -> None:
        self._names, self._window = names, window
        self.sums = np.zeros(len(names))
        self._rows = np.zeros((min(window, ROOM), len(names)))  # a ring; it grows up to the window

    def row(self, n: int) -> Floats:
        """Return the row of the step after n steps, to be filled: of a full window that of the oldest step."""
        place = n % self._window
        if place == len(self._rows):
            self._rows = grown(self._rows, min(2 * place, self._window), len(self._names))
        return self._rows[place]

    def of_all(self, n: int) -> dict[str, float]:
        """Return the means over all of n >= 1 steps."""
        return self._named(self.sums / n)

    def of_latest(self, n: int, size: int) -> dict[str, float]:
        """Return the means over the latest of n steps, as many as the window has at most."""
        held = min(n, self._window)
        rows = self._rows[:held] if size == held else self._rows[np.arange(n - size, n) % self._window]
        return self._named(rows.mean(axis=0))

    def _named(self, means: Floats) -> dict[str, float]:
        return dict(zip(self._names, means.tolist(), strict=True))

    def held(self, n: int) -> State:
        """Return sums and latest rows after n steps, as plain data."""
        return {"sums": self.sums.tolist(), "ring": self._rows[: min(n, self._window)].tolist()}

    def take_over(self, sums: Any, ring: Any, n: int) -> None:
        """Go on from what was `held` after n steps, having seen nothing; or raise a ValueError."""
        columns, size = len(self._names), min(n, self._window)
        self.sums[:] = held_numbers("sums", sums, columns)
        if not isinstance(ring, list) or len(ring) != size:
            raise ValueError(f"state['ring'] must be a list of the latest {size} steps, got {ring!r}")
        self._rows = np.zeros((max(size, min(self._window, ROOM)), columns))
        for place, row in enumerate(ring):
            self._rows[place] = held_numbers("ring", row, columns)
