"""Tables and progress in the terminal, with the remaining time of a loop whose steps get dearer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from venn.monitors.kinds import ALL

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


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
        self._total = total
        if not shows_progress(show):  # importing rich takes a while: not for a silent run
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,  # no second thread beside the compiled loops
        )
        self._task = self._bar.add_task(FIRST_STEPS, total=total)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        self._next = perf_counter() + self._interval
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
            if self._total != total:
                self._total = total
                self._bar.reset(self._task, total=total)
            self._draw(done, what)

    def update(self, step: int, state: str) -> None:
        """Draw the state after `step` steps, in words."""
        if self._bar is not None:
            self._draw(step, state)
            self._next = perf_counter() + self._interval

    def _draw(self, done: int, state: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=state, refresh=True)
