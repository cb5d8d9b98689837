"""Tables and progress in the terminal, with the remaining time of a loop whose steps get dearer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from venn.monitors.kinds import ALL
from venn.prediction import Floats

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

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
        """Return what a stretch of steps costs by each term, with a coefficient of 1; steps are parts of all."""
        low, high = start / self.total, stop / self.total
        return np.array([high**p - low**p for p in (1, 2, 3)]) / (1, 2, 3)

    def saw(self, step: int, elapsed: float) -> None:
        """Learn that the first `step` steps took `elapsed` seconds."""
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


FIRST_STEPS = "first steps: loops may need compiling"  # which takes the time until they are done
DRAWING = "drawing figures ..."

Means = Mapping[str, Mapping[str, float]]


def _blocks(means: Means) -> list[tuple[Mapping[str, str], Means]]:
    """Return field and heading of columns, and the rows that have them; columns without rows are left out."""
    blocks: list[tuple[Mapping[str, str], Means]] = []
    for columns in {kind.means: kind.table for kind in ALL}.values():  # of several that fit, the first
        placed = {name for _, rows in blocks for name in rows}
        rows = {name: row for name, row in means.items() if row.keys() >= columns.keys() and name not in placed}
        if rows:
            blocks.append((columns, rows))
    return blocks


def aligned(rows: Sequence[Sequence[str]], least: Sequence[int], sides: str) -> list[str]:
    """Return rows of cells as lines; of each column the least width, and its side: "<" for left, ">" for right."""
    widths = [max(width, *map(len, column)) for width, column in zip(least, zip(*rows, strict=True), strict=True)]
    return ["  ".join(map("{:{}{}}".format, row, sides, widths)).rstrip() for row in rows]


def table(means: Means, title: str, footnote: str) -> str:
    """Return a plain text table with one line per predictor; predictors of sets are below those of probabilities.

    Parameters
    ----------
    means : mapping of name to mapping
        With accuracy, lower, upper, width, log_loss and brier, or the fields of `Record.means` for prediction sets.
    title, footnote : str
        Lines above and below.

    Examples
    --------
    >>> row = {"accuracy": 0.9, "lower": 0.88, "upper": 0.93, "width": 0.05, "log_loss": 0.3, "brier": 0.15}
    >>> print(table({"venn": row}, "car: 1728 examples", "Means over all steps."))
    car: 1728 examples
    predictor  accuracy   lower   upper   width  log loss   Brier
    venn         0.9000  0.8800  0.9300  0.0500    0.3000  0.1500
    Means over all steps.
    """
    lines = [title]
    first = max(9, *map(len, means))
    for columns, rows in _blocks(means):
        head = ["predictor", *columns.values()]
        body = [[name, *(f"{row[column]:.4f}" for column in columns)] for name, row in rows.items()]
        lines += aligned([head, *body], [first, *[7] * len(columns)], "<" + ">" * len(columns))
    return "\n".join([*lines, footnote])


def shows_progress(show: bool | None) -> bool:
    """Whether to show progress on stderr; None: if it is a terminal."""
    return show is not False and (show is True or (sys.stderr is not None and sys.stderr.isatty()))


class Progress:
    """A progress bar on stderr with running accuracy and bounds; a context manager.

    Parameters
    ----------
    total : int or None
        Number of steps; None if the stream has no length.
    show : bool or None
        None: show the bar if stderr is a terminal.
    interval : float
        Least number of seconds between two drawings.
    """

    def __init__(self, total: int | None, show: bool | None, interval: float = 0.1) -> None:
        self._bar: RichProgress | None = None
        self._interval = interval
        self._remaining = None if total is None else Remaining(total)
        if not shows_progress(show):  # importing rich takes a while: not for a silent run
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,  # no second thread beside the compiled loops
        )
        self._task = self._bar.add_task(FIRST_STEPS, total=total, left=clock(None))

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        self._start = perf_counter()
        self._next = self._start + self._interval
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def due(self) -> bool:
        """Whether enough time has passed for another drawing."""
        return self._bar is not None and perf_counter() >= self._next

    def count(self, done: int, total: int, what: str) -> None:
        """Draw that `done` of `total` parts are done."""
        if self._bar is not None:
            if self._remaining is None or self._remaining.total != total:
                self._remaining, self._start = Remaining(total), perf_counter()
            self._draw(done, what, total)

    def update(self, step: int, state: str) -> None:
        """Draw the state after `step` steps, in words."""
        if self._bar is not None:
            self._draw(step, state)
            self._next = perf_counter() + self._interval

    def _draw(self, done: int, state: str, total: int | None = None) -> None:
        if self._bar is None:
            return
        left = None
        if self._remaining is not None:
            self._remaining.saw(done, perf_counter() - self._start)
            left = self._remaining.seconds()
        self._bar.update(self._task, completed=done, total=total, description=state, left=clock(left), refresh=True)
