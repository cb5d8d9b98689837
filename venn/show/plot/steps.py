"""Figures against the number of examples: cumulative means, log-martingales, error counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn.show.plot.panels import BAND, CLAIM, GREY, INK, SERIES, Floats, blank, dress, finish, grid, handles_of, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Path = str | os.PathLike[str]

MOST_POINTS = 4000
RINGS = "an alarm rings here: falsely ever in at most one of so many runs"
DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.6), (1.2, 1.2))


class Curve(NamedTuple):
    """Cumulative means of one predictor, each (n,)."""

    accuracy: Floats
    lower: Floats
    upper: Floats
    #: False for a point forecaster, whose lower and upper curves are equal.
    interval: bool
    #: Ends of a band around the accuracy that holds at all steps together, such as a confidence sequence.
    band: tuple[Floats, Floats] | None = None


def curves(panels: Mapping[str, Curve], title: str, path: Path | None = None) -> Figure:
    """Draw accuracy against claimed probability, one panel per predictor, all on the same axes.

    Parameters
    ----------
    panels : mapping of name to Curve
        At least one; all with the same number n >= 1 of steps.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    The vertical range fits the last 90 % of the steps, and the first 1 % is not drawn: the first few means vary over
    all of [0, 1]. For a band it fits the end.
    """
    n = len(next(iter(panels.values())).accuracy)
    figure, axes, n_columns = grid(len(panels))
    shown = _shown(n)
    for axis, (name, curve) in zip(axes, panels.items(), strict=True):
        _draw(axis, name, curve, shown)
    label(axes, n_columns, "examples", "mean so far")
    _across(axes[0], n)
    axes[0].set_ylim(*_range(panels.values(), n))
    return finish(figure, handles_of(axes), title, path)


def _draw(axis: Axes, name: str, curve: Curve, shown: NDArray[np.int64]) -> None:
    x = shown + 1
    marker = "o" if len(x) == 1 else None  # a line through one point would be invisible
    accuracy, lower, upper = (values[shown] for values in (curve.accuracy, curve.lower, curve.upper))
    if curve.band is not None:
        low, high = (values[shown] for values in curve.band)
        axis.fill_between(x, low, high, color=GREY, alpha=0.12, linewidth=0, label="time-uniform band")
        for end in (low, high):
            axis.plot(x, end, color=GREY, linewidth=0.6, alpha=0.6, marker="_" if marker else None)
    if curve.interval:
        axis.fill_between(
            x, lower, upper, color=BAND, alpha=0.22, linewidth=0, label="between mean lower and mean upper probability"
        )
        for bound in (lower, upper):
            axis.plot(x, bound, color=BAND, linewidth=0.9, marker=marker)
        claim = f" in [{curve.lower[-1]:.3f}, {curve.upper[-1]:.3f}]"
    else:
        axis.plot(
            x, lower, color=CLAIM, linewidth=1.6, dashes=(4, 1.6), marker=marker, label="mean claimed probability"
        )
        claim = f", claimed {curve.lower[-1]:.3f}"
    axis.plot(x, accuracy, color=INK, linewidth=1.6, marker=marker, label="accuracy")
    dress(axis, name, f"accuracy {curve.accuracy[-1]:.3f}{claim}")


def _across(axis: Axes, n: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_xlim(0, max(n, 2))  # so that a single step is not on the edge
    axis.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))


def _shown(n: int) -> NDArray[np.int64]:
    """Return the steps to draw: all, or enough of them, dense where the means still move."""
    first = n // 100
    if n <= MOST_POINTS:
        return np.arange(first, n)
    half = MOST_POINTS // 2
    steps = np.concatenate([np.geomspace(first + 1, n, half), np.linspace(first + 1, n, half)])
    return np.unique(steps.round().astype(np.int64)) - 1


def _range(panels: Iterable[Curve], n: int) -> tuple[float, float]:
    panels = list(panels)
    late = slice(n // 10, None)
    values = [v[late] for curve in panels for v in (curve.accuracy, curve.lower, curve.upper)]
    values += [end[-1:].clip(0, 1) for curve in panels for end in curve.band or ()]
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    margin = 0.06 * max(high - low, 0.02)
    return float(low - margin), float(high + margin)


def martingales(
    paths: Mapping[str, Floats],
    thresholds: Mapping[str, float],
    alarms: Mapping[str, Sequence[int]],
    title: str,
    path: Path | None = None,
) -> Figure:
    """Draw the logarithms of test martingales, or of other evidence, with thresholds and alarms.

    Parameters
    ----------
    paths : mapping of name to (n,) float64
        log10 of the evidence after each step, n >= 1; infinite values are allowed, NaN is not.
    thresholds : mapping of label to float
        log10 of the evidence at which an alarm rings; may be empty.
    alarms : mapping of name to sequence of int in 1..n
        Steps at which the alarm of a path rang; names without alarms may be absent.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    A martingale that bets on exchangeable data loses without end, and its fall would flatten the other curves; so
    values far below the rest, and infinite ones, are drawn at the edge, and the figure says so.
    """
    n = len(next(iter(paths.values())))
    figure = blank(8.5, 4.2 + 0.2 * (len(paths) // 2))
    axis = figure.subplots()
    low, high = _window(paths.values(), thresholds.values())
    edges = []
    for i, (name, values) in enumerate(paths.items()):
        drawn = values.clip(low, high)
        at = _extremes(drawn)
        colour = SERIES[i % len(SERIES)]
        rung = np.asarray(alarms.get(name, ()), np.int64)
        rang = f", {len(rung)} alarm{'s' * (len(rung) > 1)} from step {rung.min()}" if len(rung) else ""
        axis.plot(
            np.append(0, at + 1),
            np.append(0.0, drawn[at]),  # before the first step the capital is 1
            color=colour,
            linewidth=1.4,
            dashes=DASHES[i // len(SERIES) % len(DASHES)] or (None, None),
            label=f"{name}: {values[-1]:.4g}{rang}",
        )
        if len(rung):  # nothing drawn beyond the clip would still take room in the layout
            (marks,) = axis.plot(rung, drawn[rung - 1], "v", color=colour, markersize=8, clip_on=False, zorder=4)
            marks.set_markeredgecolor("white")
        if values.min() < low:
            edges.append(f"{name} falls to {values.min():.4g}")
        if values.max() > high:
            edges.append(f"{name} is infinite from step {int((values > high).argmax()) + 1}")
    _levels(axis, thresholds, high - low)
    dress(axis, "log10 of the evidence", "")
    more = f" and {len(edges) - 2} more" if len(edges) > 2 else ""
    label([axis], 1, f"examples\n(drawn at the edge: {', '.join(edges[:2])}{more})" if edges else "examples", "")
    margin = 0.04 * (high - low)
    _across(axis, n)
    axis.set_ylim(low - margin, high + margin)
    handles = handles_of([axis])
    if thresholds:
        (line,) = axis.plot([], [], color=GREY, linewidth=0.9, dashes=(5, 3))
        handles = {**handles, RINGS: line}
    return finish(figure, handles, title, path)


def _window(paths: Iterable[Floats], thresholds: Iterable[float]) -> tuple[float, float]:
    """Return the vertical range: all finite values, except the far depths of paths that only fall."""
    paths = list(paths)
    finite = np.concatenate([values[np.isfinite(values)] for values in paths] + [[*thresholds], [0.0]])
    # Infinite values are drawn above all finite ones.
    high = max(float(finite.max()), 0.5) * (1.15 if any(np.isposinf(values).any() for values in paths) else 1.0)
    return max(float(finite.min()), -2 * high - 2), high


def _levels(axis: Axes, thresholds: Mapping[str, float], height: float) -> None:
    at = -np.inf
    for text, level in sorted(thresholds.items(), key=lambda item: item[1]):
        axis.axhline(level, color=GREY, linewidth=0.9, dashes=(5, 3), zorder=1)
        at = max(level, at + 0.065 * height)  # names of lines close together are moved apart
        axis.text(
            1.01, at, f"{level:.3g}  {text}", transform=axis.get_yaxis_transform(), va="center", fontsize=9, color=GREY
        )


def _extremes(values: Floats) -> NDArray[np.int64]:
    """Return positions to draw, with the lowest and highest of every stretch: no peak is lost."""
    n = len(values)
    if n <= MOST_POINTS:
        return np.arange(n)
    starts = np.linspace(0, n, MOST_POINTS // 4 + 1).astype(np.int64)
    stretches = list(pairwise(starts))
    lowest = [a + values[a:b].argmin() for a, b in stretches]
    highest = [a + values[a:b].argmax() for a, b in stretches]
    return np.unique(np.concatenate([starts[:-1], starts[1:] - 1, lowest, highest]))


def errors(panels: Mapping[str, Mapping[float, Floats]], title: str, path: Path | None = None) -> Figure:
    """Draw cumulative errors of prediction sets at several levels against the lines they should follow.

    Parameters
    ----------
    panels : mapping of name to (mapping of epsilon to (n,) array)
        Number of errors after each step, n >= 1, for significance levels epsilon in [0, 1]; at least one level
        in all.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    Errors of smoothed conformal predictors at level epsilon follow the dashed line epsilon n up to chance;
    errors of plain ones stay at or below it.
    """
    levels = sorted({epsilon for counts in panels.values() for epsilon in counts})
    n = len(next(values for counts in panels.values() for values in counts.values()))
    figure, axes, n_columns = grid(len(panels))
    at = np.arange(n) if n <= MOST_POINTS else np.unique(np.linspace(0, n - 1, MOST_POINTS).astype(np.int64))
    for axis, (name, counts) in zip(axes, panels.items(), strict=True):
        for epsilon in sorted(counts, reverse=True):
            values, i = np.asarray(counts[epsilon]), levels.index(epsilon)
            colour = SERIES[i % len(SERIES)]
            axis.plot([0, n], [0, epsilon * n], color=colour, linewidth=1.0, dashes=(5, 3))
            axis.plot(
                np.append(0, at + 1), np.append(0, values[at]), color=colour, linewidth=1.6, label=f"at {epsilon:g}"
            )
        rates = ", ".join(f"{counts[epsilon][-1] / n:.3f} at {epsilon:g}" for epsilon in sorted(counts))
        dress(axis, name, f"errors {rates}")
    label(axes, n_columns, "examples", "errors so far (dashed: epsilon n)")
    _across(axes[0], n)
    axes[0].set_ylim(0, None)
    return finish(figure, handles_of(axes), title, path)
