"""A live view of running monitors in the terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from time import perf_counter

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live as RichLive
from rich.text import Text

from venn.parameters import integer, several_names
from venn.show import layout
from venn.show.history import ERROR, LEVEL, SIZE, WIDTH, History
from venn.show.snapshots import Snapshot, verdicts
from venn.show.telling import Crier, Telling
from venn.show.terminal import FIRST_STEPS

MOST_ALARMS = 64  # kept for the view, for all predictors together
RATE_OVER = 20  # drawings
MOST_OF_TIME = 0.1


class Live:
    """Shows the state of monitors while they run; a context manager.

    In a terminal: a table of the predictors, charts of accuracy and evidence, the last alarms, redrawn in place on
    the alternate screen, so that resizing the window does no harm; the final state stays after the block. Other output
    inside the block is lost with that screen. Elsewhere, such as in a file or a pipe: one line for each new alarm and,
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

    Raises
    ------
    TypeError, ValueError
        A parameter is not what it must be.

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
        several_names("names", names)
        if total is not None:
            integer("total", total, 1)
        if not interval >= 0:
            raise ValueError(f"interval must be at least 0 seconds, got {interval!r}")
        self._console = Console() if console is None else console
        self._waiting = waiting
        self._title, self._total, self._names, self._interval = title, total, tuple(names), interval
        # A terminal without cursor movements is treated as a file.
        self._drawn = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live: RichLive | None = None
        self._next = 0.0
        self._snapshots: dict[str, Snapshot] = {}
        self._history = History(self._names)
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

        Raises
        ------
        ValueError
            A name that was not announced, or a step before the last call's.
        """
        for name in snapshots:
            if name not in self._counts:
                raise ValueError(f"snapshots must be of {list(self._names)}, got {name!r}")
        self._history.append(snapshots)
        self._snapshots.update(snapshots)
        self._times.append((perf_counter(), self._history.step))
        for name, alarm in self._new_alarms(snapshots):
            self._alarms.append((name, alarm))
            if not self._drawn:
                for line in self._crier.tell(name, alarm):
                    self._say(line)
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
        self._console.print(Text(layout.printable(line, self._console.encoding)), soft_wrap=True)

    def _progress(self) -> str:
        step = self._history.step
        return f"step {step}" if self._total is None else f"step {step} of {self._total}"

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
        view = layout.View(self._names, self._snapshots, self._history, self._alarms, console.encoding)
        yield from view.lines(self._title, note, width, height)


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
    return [f"{name}: {'; '.join(_words(snapshot, telling))}" for name, snapshot in snapshots.items()]


def _words(snapshot: Snapshot, telling: Telling) -> list[str]:
    curves = snapshot.get("curves", {})
    words = [verdict.sentence for verdict in verdicts({"": snapshot}).values()]
    if "accuracy" in curves and WIDTH not in curves:  # of numbers it would be 1 - the errors that follow
        lower, upper = curves.get("lower"), curves.get("upper")
        claim = "" if lower is None else f", claimed {lower:.3f}"
        if lower != upper:
            claim = f", claimed [{lower:.3f}, {upper:.3f}]"
        words.append(f"accuracy {curves['accuracy']:.3f}{claim}")
    if ERROR in curves:
        size, width = curves.get(SIZE), curves.get(WIDTH)
        spread = f"sets of {size:.2f} labels" if width is None else f"mean width {width:.4g}"
        words.append(f"errors at {LEVEL} {curves[ERROR]:.3f}, {spread}")
    if "log_loss" in curves:
        words.append(f"log loss {curves['log_loss']:.3f}")
    if "calibration" in snapshot:
        words.append(f"ECE {snapshot['calibration']['ece']:.3f}")
    closest = layout.closest(snapshot)
    if closest is not None:
        near = f"10^{closest['log10']:.2f} ({closest['detector']})"
        words.append(f"evidence {near}, alarm at 10^{closest['threshold']:.2f}")
    alarms = snapshot.get("alarms", {})
    count = alarms.get("count", 0)
    if count:
        rang = "1 alarm" if count == 1 else f"{count} alarms, the last"
        words.append(f"{rang}: {telling.tell(alarms['last'][-1])}")
    else:
        words.append("no alarm")
    return words
