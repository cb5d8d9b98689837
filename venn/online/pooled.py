"""Cumulative curves of several runs together: sums over the runs, kept without rounding."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from venn.monitors.curves import Curves, SetCurves
from venn.monitors.sums import Table, added, rounded, units
from venn.prediction import Floats, Integers

COUNTS = ""  # first column of the table


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
        self.table: Table = {COUNTS: []}  # of each step the number of runs, and the sums over them
        for run in runs:
            if not isinstance(run, Curves | SetCurves):
                raise TypeError(f"runs must be Curves or SetCurves, as a record gives them, got {run!r}")
            steps: Table = {COUNTS: [1] * len(run)}
            for name, column in run.columns.items():
                if not np.isfinite(column).all():
                    raise ValueError(f"runs must have finite steps, got {name} infinite: clip the loss above 0")
                steps[name] = [units(float(value)) for value in column.tolist()]
            self._add(1, steps)

    def _add(self, runs: int, table: Table) -> None:
        names = tuple(table)[1:]
        if self.runs and runs and self.names != names:
            raise ValueError(f"other must be curves of {self.names}, to be merged with them, got {names}")
        self.runs, self.table = self.runs + runs, added(self.table, table)

    @property
    def counts(self) -> Integers:
        """(n,) number of runs that have each step."""
        return np.array(self.table[COUNTS], np.int64)

    def merge(self, other: PooledCurves) -> PooledCurves:
        """Return the curves of the runs of both; neither changes.

        Raises
        ------
        TypeError, ValueError
            `other` is not pooled curves, or only one of the two is of prediction sets.
        """
        if not isinstance(other, PooledCurves):
            raise TypeError(f"other must be PooledCurves, to be merged with them, got {other!r}")
        both = PooledCurves()
        for part in (self, other):
            both._add(part.runs, part.table)
        return both

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the curves; none before the first run."""
        return tuple(self.table)[1:]

    def __getitem__(self, name: str) -> Floats:
        """Return (n,) one of the curves.

        Raises
        ------
        KeyError
            There is none of that name.
        """
        if name not in self.names:
            raise KeyError(f"no curve {name!r}; there are {', '.join(self.names) or 'none, for want of a run'}")
        so_far = zip(*(accumulate(self.table[one]) for one in (name, COUNTS)), strict=True)
        return np.array([rounded(sum_, count) for sum_, count in so_far], np.float64)

    def __len__(self) -> int:
        return len(self.table[COUNTS])

    def __repr__(self) -> str:
        return f"PooledCurves({self.runs} run{'s'[: self.runs != 1]} of up to {len(self)} steps)"
