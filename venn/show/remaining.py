"""The remaining time of a loop whose steps get dearer."""

from __future__ import annotations

import numpy as np

from venn.prediction import Floats

FEWEST = 5  # stretches of measured time before anything is said
CLEAR = 9.0  # a further power of the step must explain so many times the variance of what is left: three deviations


class Remaining:
    """Estimates the remaining time of a loop from what its steps have cost.

    The cost of step n is fitted as a + b n + c n^2, none of them negative: a step over one factor of n examples costs
    as n^2, over n scores as n, a frozen scorer always the same. b and c are 0 until the measurements show them clearly.
    Least squares over stretches of steps need a 3 by 3 matrix, whatever their number. The first stretch is left out, as
    loops may be compiled in it.

    Parameters
    ----------
    total : int >= 1
        Number of steps.

    Examples
    --------
    >>> remaining = Remaining(100)
    >>> for step in range(10, 80, 10):
    ...     remaining.saw(step, step**2 / 100)  # seconds
    >>> round(remaining.seconds(), 6)  # 100 - 49, where equal steps would take 21
    51.0
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._step, self._elapsed = 0, 0.0
        self._stretches = -1  # the first does not count
        self._squares, self._products, self._times = np.zeros((3, 3)), np.zeros(3), 0.0

    def _terms(self, start: int, stop: int) -> Floats:
        """Return what a stretch of steps costs for a, b and c of 1, with steps as parts of all."""
        low, high = start / self.total, stop / self.total
        return np.array([high**p - low**p for p in (1, 2, 3)]) / (1, 2, 3)

    def saw(self, step: int, elapsed: float) -> None:
        """Take in that `step` steps took `elapsed` seconds from the start."""
        if step <= self._step:
            return
        terms, seconds = self._terms(self._step, step), elapsed - self._elapsed
        self._step, self._elapsed = step, elapsed
        self._stretches += 1
        if self._stretches > 0:
            self._squares += np.outer(terms, terms)
            self._products += terms * seconds
            self._times += seconds**2

    def _fitted(self, powers: list[int]) -> tuple[Floats, float]:
        """Return the coefficients of these powers of the step, and the sum of squares of what is left."""
        squares, products = self._squares[np.ix_(powers, powers)], self._products[powers]
        scale = 1 / np.sqrt(squares.diagonal())
        found = scale * np.linalg.lstsq(squares * np.outer(scale, scale), products * scale, rcond=1e-12)[0]
        return found, max(self._times - float(products @ found), 0.0)

    def seconds(self) -> float | None:
        """Return the estimated seconds until the last step; None while too little is known."""
        if self._stretches < FEWEST:
            return None
        powers = [0]
        found, left = self._fitted(powers)
        while len(powers) < 3:
            best = None
            for more in {0, 1, 2}.difference(powers):
                wider = sorted([*powers, more])
                candidate, rest = self._fitted(wider)
                clear = (left - rest) * (self._stretches - len(wider)) > CLEAR * rest + 1e-12 * self._times
                possible = (candidate >= -1e-9 * np.abs(candidate).max()).all()  # 0 up to rounding
                if clear and possible and (best is None or rest < best[2]):
                    best = wider, candidate, rest
            if best is None:
                break
            powers, found, left = best
        return float(self._terms(self._step, self.total)[powers] @ found)


def clock(seconds: float | None) -> str:
    """Return a duration as hours, minutes and seconds.

    Examples
    --------
    >>> clock(3725.4), clock(None)
    ('1:02:05', '-:--:--')
    """
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
