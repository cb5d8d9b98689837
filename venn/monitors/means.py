"""Means of columns over all steps of a stream, and over its latest steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.machines.machine import grown
from venn.parameters import integer, several_names
from venn.prediction import Floats
from venn.saved import Saved, component, held_finite, held_int, own, param, state

ROOM = 1024  # steps


def _columns(means: Means) -> tuple[int, ...]:
    return (len(means.names),)


def _latest(means: Means) -> tuple[int, ...]:
    return min(means.n, means.window), len(means.names)


@component
class Means(Saved):
    """Sums of columns over all steps, and the rows of the latest ones, as many as a window holds.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    window : int >= 1

    Examples
    --------
    >>> means = Means(("hit",), window=2)
    >>> for hit in [1.0, 1.0, 0.0]:
    ...     means.row()[:] = hit
    ...     means.sums += hit
    >>> means.of_all(), means.of_latest(2)
    ({'hit': 0.6666666666666666}, {'hit': 0.5})
    """

    names: tuple[str, ...] = param(several_names)
    window: int = param(integer, 1)

    n: int = state(held_int, start=0)
    sums: Floats = state(held_finite, own(_columns), start=own(lambda means: np.zeros(_columns(means))))
    _ring: Floats = state(held_finite, own(_latest), start=own(lambda means: np.zeros(_latest(means))))

    @property
    def state(self) -> dict[str, Any]:
        """Number of steps, sums and latest rows."""
        return super().state | {"ring": self._ring[: min(self.n, self.window)].copy()}

    def row(self) -> Floats:
        """Return the row of a new step, to be filled: of a full window that of the oldest step."""
        place = self.n % self.window
        if place == len(self._ring):  # it grows up to the window
            self._ring = grown(self._ring, min(max(2 * place, ROOM), self.window), len(self.names))
        self.n += 1
        return self._ring[place]

    def of_all(self) -> dict[str, float]:
        """Return the means over all steps, at least one."""
        return self._named(self.sums / self.n)

    def of_latest(self, size: int) -> dict[str, float]:
        """Return the means over the latest steps, as many as the window has at most."""
        n, held = self.n, min(self.n, self.window)
        rows = self._ring[:held] if size == held else self._ring[np.arange(n - size, n) % self.window]
        return self._named(rows.mean(axis=0))

    def _named(self, means: Floats) -> dict[str, float]:
        return dict(zip(self.names, means.tolist(), strict=True))
