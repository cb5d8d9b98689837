"""The figures of a record, and the curves of several records together; `venn.show.plot` draws them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from venn.monitors.bounds import DeviationBand
from venn.monitors.calibration import reliability
from venn.monitors.curves import LEVELS, Curves, SetCurves
from venn.monitors.kind import Kind
from venn.monitors.martingales import CompositeJumper
from venn.monitors.sources import level_shares, usual_sources
from venn.monitors.sums import Table, added, rounded, units
from venn.online.forecaster import watched
from venn.parameters import fraction
from venn.prediction import ERROR_RATE, LOG_LOSS, NOTHING, PREDICTED_LABEL, Floats, Integers, Label
from venn.show import plot

# -------------------------------------------------------------------------------------------------------------- figures
# The figures of a record: which numbers of which predictors are drawn; `venn.show.plot` draws them.

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Target = str | os.PathLike[str] | None
LEVEL = 0.01  # chance that any path of evidence ever rings falsely
BAND = 0.05  # chance that an accuracy ever leaves the band drawn about its bounds


class Drawable(Protocol):
    """What the figures need from a record."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[Label, ...]: ...
    @property
    def title(self) -> str: ...
    def kind(self, name: str) -> Kind: ...
    @property
    def restarts(self) -> Mapping[str, tuple[int, ...]]: ...
    @property
    def guaranteed(self) -> Mapping[str, str]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def outcomes(self, name: str) -> Any: ...
    def p_values(self, name: str, seed: int = 0) -> Mapping[str, Floats]: ...


def draw_curves(record: Drawable, path: Target = None) -> Figure:
    """Draw accuracy, claimed bounds and, where the predicted label is guaranteed, a band about them."""
    curves: dict[str, Any] = {name: record[name] for name in _showing(record, "curves")}
    _drawable(record, curves, "probabilities")
    steps = np.arange(1, len(record) + 1)
    allowed = DeviationBand(BAND).update_many(np.zeros(len(record)))[:, 1] / steps
    panels = {}
    for name, c in curves.items():
        known = record.guaranteed[name] == PREDICTED_LABEL
        band = (c.lower - allowed, c.upper + allowed) if known else None
        panels[name] = plot.Curve(c.accuracy, c.lower, c.upper, c.interval, band)
    return plot.curves(panels, title=record.title, path=path)


def draw_errors(record: Drawable, path: Target = None) -> Figure:
    """Draw how many prediction sets missed the true label."""
    sets: dict[str, Any] = {name: record[name] for name in _showing(record, "errors")}
    _drawable(record, sets, "prediction sets")
    errors = {name: {level: c.errors(level).astype(float) for level in LEVELS} for name, c in sets.items()}
    return plot.errors(errors, title=record.title, path=path)


def draw_martingales(record: Drawable, path: Target = None, level: float = LEVEL, seed: int = 0) -> Figure:
    """Draw test martingales of all p-values and, for point forecasts, e-processes.

    The thresholds and alarms are those of `Ville` and `ForwardEProcess` in a `Monitor` of this level and seed.
    """
    level = fraction("level", level)
    logs: dict[str, Floats] = {}
    levels: dict[str, float] = {}
    for name in record:
        of = _by_source(record, name, seed)
        # A monitor divides its level among the sources, and for an event between this martingale and a band.
        restarts = record.restarts.get(name, ())
        guaranteed = str(record.guaranteed.get(name))
        each = level / (1 if guaranteed == ERROR_RATE else 2) / (len(restarts) + 1)
        shares = level_shares(usual_sources(guaranteed, record.classes))
        for (full, p), share in zip(of.items(), shares, strict=True):
            periods = np.split(p, [step for step in restarts if step < len(p)])
            logs[full] = np.concatenate([CompositeJumper().update_many(one) for one in periods])
            levels[full] = share * each
    of_label = level * level_shares(usual_sources(PREDICTED_LABEL, record.classes))[0]
    for name in _showing(record, "martingales"):
        logs[name], levels[name] = record.kind(name).evidence_path(record.outcomes(name)), of_label
    _drawable(record, logs, "something to bet against")
    paths = {name: values / np.log(10) for name, values in logs.items()}
    first = {name: (values >= -np.log(levels[name])).argmax() for name, values in logs.items()}
    rung = {name: [int(step) + 1] for name, step in first.items() if logs[name][step] >= -np.log(levels[name])}
    thresholds = {f"{1 / one:,.0f} to 1": -float(np.log10(one)) for one in sorted(set(levels.values()), reverse=True)}
    return plot.martingales(paths, thresholds, rung, title=record.title, path=path)


def draw_p_values(record: Drawable, path: Target = None, seed: int = 0) -> Figure:
    """Draw histograms of the p-values that a monitor would bet on."""
    panels = _all_p_values(record, seed)
    _drawable(record, panels, "p-values")
    return plot.p_values(panels, title=record.title, path=path)


def draw_reliability(record: Drawable, path: Target = None) -> Figure:
    """Draw the share of correct predicted labels against their probability by the point forecasts."""
    diagrams = {}
    for name in _showing(record, "reliability"):
        o = record.outcomes(name)
        d = reliability(np.clip(o.confidence, 0.0, 1.0), o.predicted == o.truth)
        claimed = record.guaranteed[name] in (NOTHING, LOG_LOSS)
        diagrams[name] = plot.Diagram(d.confidence, d.frequency, d.counts, d.low, d.high, d.ece, claimed)
    _drawable(record, diagrams, "probabilities")
    return plot.reliability(diagrams, title=record.title, path=path)


#: By the names that kinds of prediction use for their figures.
FIGURES: dict[str, Callable[[Drawable, Target], Figure]] = {
    "curves": draw_curves, "errors": draw_errors, "martingales": draw_martingales, "p_values": draw_p_values,
    "reliability": draw_reliability,
}  # fmt: skip


def draw_all(record: Drawable, folder: str | os.PathLike[str]) -> list[Path]:
    """Draw all figures that apply into a folder; return the files. Predictors, and objects, share one level."""
    _drawable(record, True, "")
    wanted = {figure for name in record for figure in record.kind(name).figures}
    if _all_p_values(record, 0):
        wanted |= {"martingales", "p_values"}
    written = []
    for figure, draw in FIGURES.items():
        if figure in wanted:
            written.append(Path(folder, f"{figure}.png"))
            if figure == "martingales":
                draw_martingales(record, written[-1], LEVEL / (len(watched(record.names)) + 1))
            else:
                draw(record, written[-1])
    return written


def _showing(record: Drawable, figure: str) -> list[str]:
    """Return the predictors that a figure shows, which their kind of prediction decides."""
    return [name for name in record if len(record) and figure in record.kind(name).figures]


def _all_p_values(record: Drawable, seed: int) -> dict[str, Floats]:
    """Return the p-values of all predictors, by name; where one has several sources, by name and source."""
    return {full: p for name in record for full, p in _by_source(record, name, seed).items()}


def _by_source(record: Drawable, name: str, seed: int) -> dict[str, Floats]:
    """Return the p-values of one predictor, by its name; where it has several sources, by name and source."""
    found = record.p_values(name, seed)
    return {f"{name}: {source}" if len(found) > 1 else name: p for source, p in found.items()}


def _drawable(record: Drawable, found: Any, wanted: str) -> None:
    if not len(record):
        raise ValueError("a record without steps has nothing to draw")
    if not found:
        raise ValueError(f"the figure needs a predictor that gives {wanted}, got {', '.join(record.names)}")


# --------------------------------------------------------------------------------------------------------------- pooled
# Cumulative curves of several runs together: sums over the runs, kept without rounding.

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
