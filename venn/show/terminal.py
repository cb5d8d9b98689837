"""In the terminal: tables, progress with the remaining time, and a live view of running monitors."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live as RichLive
from rich.text import Text

from venn.monitors.kinds import ALL
from venn.monitors.verdict import BELOW, CHANGED, CLAIMED, DOUBTFUL, EARLY, USELESS
from venn.prediction import Floats
from venn.show.notify import Crier, Telling, bursts, plain
from venn.show.view import Snapshot, Standing, overall, standing

# ------------------------------------------------------------------------------------------------------------- terminal
# Tables and progress in the terminal, with the remaining time of a loop whose steps get dearer.

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


# ----------------------------------------------------------------------------------------------------------------- live
# A live view of running monitors in the terminal: a verdict, a table, the last alarms.

LEVEL = "0.05"
MOST_ALARMS = 64  # kept for the view, for all predictors together
BESIDE = 8  # lines for the verdict and the alarms
RATE_OVER = 20  # drawings
MOST_OF_TIME = 0.1
# Okabe and Ito's colours that stand out on black and on white.
ALARM = "bold #D55E00"
WATCH = "bold #E69F00"
STYLES = {BELOW: ALARM, CHANGED: ALARM, DOUBTFUL: WATCH, USELESS: WATCH, CLAIMED: "#009E73", EARLY: "dim"}
WIDEST_NAME = 16
# If the terminal is narrow, columns are dropped in this order.
EXPENDABLE = ("ECE", "detector", "last", "log loss", "set", "claimed", "error", "evidence")


class Piped(Console):
    """A console that raises what ends it: whoever prints knows best what then."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError: nobody reads any more."""
        raise


class Live:
    """Shows the state of monitors while they run; a context manager.

    In a terminal: the worst verdict, a table of the predictors, the last alarms, redrawn in place on the alternate
    screen, so that resizing the window does no harm; the final state stays after the block. Other output inside the
    block is lost with that screen. Elsewhere, such as in a file or a pipe: one line for each new alarm and,
    at the end, one for each predictor.

    Parameters
    ----------
    title : str
        The subject, such as the name of the data.
    total : int or None
        Number of steps; None if the stream has no length.
    names : sequence of str
        The predictors, at least one, in the order in which they are shown.
    console : rich.console.Console, optional
        By default standard output.
    interval : float >= 0
        Least number of seconds between two drawings (see `due`).
    waiting : str
        Shown in a terminal until the first `show`.

    Examples
    --------
    >>> snapshot = {"step": 40, "curves": {"accuracy": 0.9, "lower": 0.85, "upper": 0.95}}
    >>> with Live("car", 1728, ["venn"], Console(force_terminal=False, width=80)) as live:
    ...     live.show({"venn": snapshot})
    car: step 40 of 1728
    venn: accuracy 0.900, claimed [0.850, 0.950]; no alarm
    """

    def __init__(
        self,
        title: str,
        total: int | None,
        names: Sequence[str],
        console: Console | None = None,
        interval: float = 0.1,
        waiting: str = FIRST_STEPS,
    ) -> None:
        self._console = Piped() if console is None else console
        self._waiting = waiting
        self._title, self._total, self._names, self._interval = title, total, tuple(names), interval
        # A terminal without cursor movements is treated as a file.
        self._drawn = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live: RichLive | None = None
        self._next = 0.0
        self._snapshots: dict[str, Snapshot] = {}
        self._step = 0
        self._alarms: deque[tuple[str, Snapshot]] = deque(maxlen=MOST_ALARMS)
        self._counts = dict.fromkeys(self._names, 0)
        self._crier = Crier()
        self._times: deque[tuple[float, int]] = deque(maxlen=RATE_OVER)

    def __enter__(self) -> Live:
        if self._drawn:
            # No second thread besides the compiled loops: it draws only on request.
            self._live = RichLive(self, console=self._console, screen=True, auto_refresh=False)
            self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
            if self._snapshots:
                self._console.print(self)
        elif self._snapshots:
            self._say(f"{self._title}: {self._progress()}")
            for line in lines(self._snapshots, self._crier.telling):
                self._say(line)

    def due(self) -> bool:
        """Whether enough time has passed for another drawing."""
        return perf_counter() >= self._next

    def show(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Draw the present state of the monitors.

        Parameters
        ----------
        snapshots : mapping of name to dict
            Results of `Monitor.snapshot`, for some or all of the predictors.
        """
        step = max((int(snapshot["step"]) for snapshot in snapshots.values()), default=self._step)
        self._step = step
        self._snapshots.update(snapshots)
        self._times.append((perf_counter(), step))
        for name, alarm in self._new_alarms(snapshots):
            self._alarms.append((name, alarm))
            if not self._drawn:
                verdict = standing(snapshots[name]).verdict
                about = "alarm" if verdict is None else f"alarm, verdict now: {verdict.state}"
                for line in self._crier.tell(name, alarm):
                    self._say(f"{about}: {line}")
        start = perf_counter()
        if self._live is not None:
            self._live.refresh()
        now = perf_counter()
        # A large window on a slow machine is drawn less often, so that drawing takes little of the time.
        self._next = now + max(self._interval, (now - start) / MOST_OF_TIME)

    def _new_alarms(self, snapshots: Mapping[str, Snapshot]) -> list[tuple[str, Snapshot]]:
        new: list[tuple[str, Snapshot]] = []
        for name, snapshot in snapshots.items():
            alarms = snapshot.get("alarms", {})
            count = alarms.get("count", 0) - self._counts[name]
            self._counts[name] += count
            if count > 0:
                new += [(name, alarm) for alarm in alarms.get("last", ())[-count:]]
        return sorted(new, key=lambda item: int(item[1]["step"]))

    def _say(self, line: str) -> None:
        # Not through rich's layout: a line of a log stays one line, however long.
        self._console.print(Text(printable(line, self._console.encoding)), soft_wrap=True)

    def _progress(self) -> str:
        return f"step {self._step}" if self._total is None else f"step {self._step} of {self._total}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the view, as lines that fit."""
        width = options.max_width
        height = options.height or max(console.height - 1, 1)  # the prompt is below it
        note = self._waiting
        if self._snapshots:
            (start, first), (now, last) = self._times[0], self._times[-1]
            note = self._progress()
            if self._total is not None:
                note += f" ({100 * last // self._total} %)"
            if now > start:
                note += f"   {(last - first) / (now - start):,.0f} steps/s"
        lines = [Text.assemble((self._plain(self._title), "bold"), "   ", note)]
        verdict = overall(self._snapshots)
        if verdict is not None:
            lines.append(Text(self._plain(str(verdict)), style=STYLES[verdict.state]))
        lines += self._table(width, max(2, height - BESIDE))
        lines += self._last_alarms(width)
        for line in lines[:height]:
            line.no_wrap = True
            line.truncate(width, overflow="crop")
            yield line

    def _plain(self, text: str) -> str:
        return printable(text, self._console.encoding)

    def _table(self, width: int, most: int) -> Iterator[Text]:
        """Yield a line for each predictor, `most` lines with the head, without the columns that do not fit."""
        shown = self._names if len(self._names) < most else self._names[: max(1, most - 2)]
        rows = [self._cells(name) for name in shown]
        size = max((s.get("window", {}).get("size", 0) for s in self._snapshots.values()), default=0)
        heads = {
            "name": "predictor", "accuracy": "accuracy", "claimed": "claimed", "last": f"last {size}",
            "log loss": "log loss", "ECE": "ECE", "error": f"err {LEVEL[1:]}", "set": "set", "evidence": "evidence",
            "detector": "by", "alarms": "alarms",
        }  # fmt: skip
        kept = [key for key in heads if key in ("name", "alarms") or any(row[key] for row in rows)]
        drawn: list[str] = []
        for expendable in ("", *EXPENDABLE):
            kept = [key for key in kept if key != expendable]
            cells = [[row[key] for key in kept] for row in (heads, *rows)]
            drawn = aligned(cells, [0] * len(kept), "<" + ">" * (len(kept) - 1))
            if max(map(cell_len, drawn)) <= width:
                break
        yield Text(drawn[0], "dim")
        for line, row in zip(map(Text, drawn[1:]), rows, strict=True):
            if row["alarms"]:
                line.stylize(ALARM, -len(row["alarms"]))
            yield line
        if len(shown) < len(self._names):
            yield Text(f"and {len(self._names) - len(shown)} more", "dim")

    def _cells(self, name: str) -> dict[str, str]:
        one = standing(self._snapshots.get(name, {}))
        near, spread, (size, width) = one.closest, "", (one.by_level(what) for what in ("size_", "width_"))
        if LEVEL in size:
            spread = f"{size[LEVEL]:.2f}"
        elif LEVEL in width:
            spread = f"{width[LEVEL]:.3g}"
        plain = self._plain(name)
        return {
            "name": plain if cell_len(plain) <= WIDEST_NAME else set_cell_size(plain, WIDEST_NAME - 1) + "~",
            "accuracy": _short(one.means.get("accuracy")),
            "claimed": _claimed(one.claim),
            "last": _short(one.lately.get("accuracy")),
            "log loss": _short(one.means.get("log_loss")),
            "ECE": _short(one.ece),
            "error": _short(one.errors.get(LEVEL)),
            "set": spread,
            "evidence": "" if near is None else f"{near.log10:.1f}/{near.threshold:.1f}",
            "detector": "" if near is None else self._plain(near.detector),
            "alarms": str(one.alarms or ""),
        }

    def _last_alarms(self, width: int) -> Iterator[Text]:
        """Yield the number of alarms, then the newest first."""
        count = sum(self._counts.values())
        if not count:
            yield Text("no alarm", "dim")
            return
        yield Text(f"{count} alarm{'s' * (count > 1)}", ALARM)
        telling = Telling()
        for one in reversed(bursts(self._alarms)):
            more = f" {one.more}." if one.more else ""
            text = self._plain(f"{one.name}: {telling.tell(one.first)}{more}")
            for row in wrap(text, max(width - 2, 10), subsequent_indent="  "):
                yield Text(f"  {row}")


def printable(text: str, encoding: str) -> str:
    """Return `text` as one line that a terminal of this encoding can show."""
    return plain(text).encode(encoding, "replace").decode(encoding)


def _short(value: float | None) -> str:
    """Return three decimals without the zero before the point; empty for an unknown value."""
    if value is None:
        return ""
    return f"{value:.3f}".replace("0.", ".", 1) if 0 <= value < 0.9995 else f"{value:.2f}"


def _claimed(claim: tuple[float, float] | None) -> str:
    if claim is None:
        return ""
    lower, upper = map(_short, claim)
    return f"[{lower}, {upper}]" if claim[0] != claim[1] else lower


def lines(snapshots: Mapping[str, Snapshot], telling: Telling | None = None) -> list[str]:
    """Return one line of plain words for each predictor.

    Parameters
    ----------
    snapshots : mapping of name to dict
        Results of `Monitor.snapshot`.
    telling : Telling, optional
        Knows which alarms were told before.

    Examples
    --------
    >>> curves = {"accuracy": 0.9, "lower": 0.9, "upper": 0.9, "log_loss": 0.25}
    >>> evidence = [{"name": "forecasts", "detector": "ForwardEProcess", "log10": 0.3, "threshold": 2.0}]
    >>> print(*lines({"platt": {"step": 40, "curves": curves, "evidence": evidence}}))
    platt: accuracy 0.900, claimed 0.900; log loss 0.250; evidence 10^0.30 (ForwardEProcess), alarm at 10^2.00; no alarm
    """
    telling = telling or Telling()
    return [f"{name}: {'; '.join(_words(standing(snapshot), telling))}" for name, snapshot in snapshots.items()]


def _words(one: Standing, telling: Telling) -> list[str]:
    means, width = one.means, one.by_level("width_").get(LEVEL)
    words = [] if one.verdict is None else [one.verdict.sentence]
    if "accuracy" in means and width is None:  # of numbers it would be 1 - the errors that follow
        claim = ""
        if one.claim is not None:
            lower, upper = one.claim
            claim = f", claimed {lower:.3f}" if lower == upper else f", claimed [{lower:.3f}, {upper:.3f}]"
        words.append(f"accuracy {means['accuracy']:.3f}{claim}")
    if LEVEL in one.errors:
        spread = f"sets of {one.by_level('size_')[LEVEL]:.2f} labels" if width is None else f"mean width {width:.4g}"
        words.append(f"errors at {LEVEL} {one.errors[LEVEL]:.3f}, {spread}")
    if "log_loss" in means:
        words.append(f"log loss {means['log_loss']:.3f}")
    if one.ece is not None:
        words.append(f"ECE {one.ece:.3f}")
    if one.closest is not None:
        near = one.closest
        words.append(f"evidence 10^{near.log10:.2f} ({near.detector}), alarm at 10^{near.threshold:.2f}")
    if one.alarms:
        rang = "1 alarm" if one.alarms == 1 else f"{one.alarms} alarms, the last"
        return [*words, f"{rang}: {telling.tell(one.rang[-1])}"]
    return [*words, "no alarm"]
