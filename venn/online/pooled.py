"""Cumulative curves of several runs together: sums over the runs, kept without rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn.monitors.curves import Curves, SetCurves
from venn.monitors.sums import rounded, units
from venn.prediction import Floats, Integers


class PooledCurves:
    """Cumulative curves over the steps of several runs: the mean learning curve of many shuffles of a data set.

    Entry N - 1 of a mean is the mean over the first N steps of all runs; shorter runs count as far as they go. Sums are
    kept without rounding: pooled curves merge to the same result whatever the order and grouping of the runs. Merging
    with `PooledCurves()`, of no run, changes nothing.

    Only curves are pooled. Martingales, alarms and bounds that hold at every step have no sum over runs: they are
    statements about one order of one stream.

    Parameters
    ----------
    *runs : Curves or SetCurves
        All of one kind; the caller sees to it that log losses are clipped alike.

    Attributes
    ----------
    runs : int
        Number of runs.
    counts : (n,) int64
        For each step, the number of runs that have it.
    names : tuple of str
        Names of the curves: accuracy, lower, upper, width, log_loss, brier, realised_accuracy and realised; of
        prediction sets accuracy, credibility, confidence and, for the levels 0.01, 0.05, 0.1 and 0.2, ``error_0.05``
        and ``size_0.05``.

    Raises
    ------
    TypeError
        A run is neither, or the runs are of two kinds.
    ValueError
        A loss is infinite, which no sum can hold: give `Record` a clip above 0.

    Examples
    --------
    >>> import streams, venn
    >>> pooled = PooledCurves()
    >>> for shuffle in range(3):
    ...     stream = streams.gaussians(20, seed=shuffle)
    ...     model = venn.TransductiveVenn(venn.machines.NearestCentroid(stream.classes), venn.Argmax())
    ...     record = venn.replay(stream, venn.Panel(model=model), progress=False)
    ...     pooled = pooled.merge(PooledCurves(record["model"]))
    >>> pooled
    PooledCurves(3 runs of up to 20 steps)
    >>> bool((pooled["lower"] <= pooled["upper"]).all())
    True
    """

    def __init__(self, *runs: Curves | SetCurves) -> None:
        self.runs = 0
        self.counts: Integers = np.zeros(0, np.int64)
        self.sums: dict[str, NDArray[Any]] = {}  # of each step over the runs, (n,) Python integers, in units
        for run in runs:
            self._take_in(run)

    def _take_in(self, run: Curves | SetCurves) -> None:
        if not isinstance(run, Curves | SetCurves):
            raise TypeError(f"runs must be Curves or SetCurves, as a record gives them, got {run!r}")
        one = PooledCurves()
        one.runs, one.counts = 1, np.ones(len(run), np.int64)
        for name, column in run.columns.items():
            if not np.isfinite(column).all():
                raise ValueError(f"runs must have finite steps, got {name} infinite: clip the loss above 0")
            one.sums[name] = _exact(column)
        both = self.merge(one)
        self.runs, self.counts, self.sums = both.runs, both.counts, both.sums

    def merge(self, other: PooledCurves) -> PooledCurves:
        """Return the curves of the runs of both; neither changes.

        Raises
        ------
        TypeError, ValueError
            `other` is not pooled curves, or only one of the two is of prediction sets.
        """
        if not isinstance(other, PooledCurves):
            raise TypeError(f"other must be PooledCurves, to be merged with them, got {other!r}")
        if self.runs and other.runs and self.names != other.names:
            raise ValueError(f"other must be curves of {self.names}, to be merged with them, got {other.names}")
        both = PooledCurves()
        both.runs = self.runs + other.runs
        both.counts = _added(self.counts, other.counts)
        for name in self.names or other.names:
            both.sums[name] = _added(self.sums.get(name, _NONE), other.sums.get(name, _NONE))
        return both

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the curves; none before the first run."""
        return tuple(self.sums)

    def __getitem__(self, name: str) -> Floats:
        """Return (n,) one of the curves.

        Raises
        ------
        KeyError
            There is none of that name.
        """
        if name not in self.sums:
            raise KeyError(f"no curve {name!r}; there are {', '.join(self.names) or 'none, for want of a run'}")
        so_far = zip(np.cumsum(self.sums[name]).tolist(), np.cumsum(self.counts).tolist(), strict=True)
        return np.array([rounded(sum_, count) for sum_, count in so_far], np.float64)

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"PooledCurves({self.runs} run{'s'[: self.runs != 1]} of up to {len(self)} steps)"


_NONE: NDArray[Any] = np.zeros(0, object)


def _exact(column: NDArray[Any]) -> NDArray[Any]:
    exact = np.empty(len(column), object)
    exact[:] = [units(float(value)) for value in column.tolist()]
    return exact


def _added(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of two arrays, the shorter one padded with zeros."""
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    both = long.copy()
    both[: len(short)] += short
    return both
