"""A live view of running monitors in the terminal: a verdict, a table, the last alarms."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from time import perf_counter

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live as RichLive
from rich.text import Text

from venn.monitors.alarms import shares
from venn.monitors.verdict import BELOW, CHANGED, CLAIMED, DOUBTFUL, EARLY, USELESS
from venn.show.repeats import AlarmReporter, grouped
from venn.show.seldom import plain
from venn.show.terminal import FIRST_STEPS, aligned
from venn.show.view import Snapshot, Standing, overall, standing

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
    """A console that raises the error of a closed pipe: whoever prints decides what to do."""

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
    venn: accuracy .90, claimed .85 to .95; no alarm
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
        self._reporter = AlarmReporter()
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
            for line in lines(self._snapshots, self._reporter):
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
                about = "alarm" if verdict is None else f"alarm (now {verdict.state})"
                for line in self._reporter.tell(name, alarm):
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
        reporter = AlarmReporter()
        for one in reversed(grouped(self._alarms)):
            more = f" {one.more}." if one.more else ""
            text = self._plain(f"{one.name}: {reporter.sentence(one.first)}{more}")
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


def lines(snapshots: Mapping[str, Snapshot], reporter: AlarmReporter | None = None) -> list[str]:
    """Return one line of plain words for each predictor.

    Parameters
    ----------
    snapshots : mapping of name to dict
        Results of `Monitor.snapshot`.
    reporter : AlarmReporter, optional
        Knows which theorems were stated before.

    Examples
    --------
    >>> curves = {"accuracy": 0.9, "lower": 0.9, "upper": 0.9, "log_loss": 0.25}
    >>> evidence = [{"name": "forecasts", "detector": "ForwardEProcess", "log10": 0.3, "threshold": 2.0}]
    >>> print(*lines({"platt": {"step": 40, "curves": curves, "evidence": evidence}}))
    platt: accuracy .90, claimed .90; log loss 0.250; evidence 10^0.30 (ForwardEProcess), alarm at 10^2.00; no alarm
    """
    reporter = reporter or AlarmReporter()
    return [f"{name}: {'; '.join(_words(standing(snapshot), reporter))}" for name, snapshot in snapshots.items()]


def _words(one: Standing, reporter: AlarmReporter) -> list[str]:
    means, width = one.means, one.by_level("width_").get(LEVEL)
    words = [] if one.verdict is None else [one.verdict.sentence.rstrip(".")]
    if "accuracy" in means and width is None:  # of numbers it would be 1 - the errors that follow
        claim = ""
        if one.claim is not None:
            claim = f", claimed {' to '.join(dict.fromkeys(shares(*one.claim)))}"
        words.append(f"accuracy {shares(means['accuracy'])[0]}{claim}")
    if LEVEL in one.errors:
        spread = f"sets of {one.by_level('size_')[LEVEL]:.2f} labels" if width is None else f"mean width {width:.4g}"
        words.append(f"errors at {shares(float(LEVEL))[0]} {shares(one.errors[LEVEL])[0]}, {spread}")
    if "log_loss" in means:
        words.append(f"log loss {means['log_loss']:.3f}")
    if one.ece is not None:
        words.append(f"ECE {shares(one.ece)[0]}")
    if one.closest is not None:
        near = one.closest
        words.append(f"evidence 10^{near.log10:.2f} ({near.detector}), alarm at 10^{near.threshold:.2f}")
    if one.alarms:
        rang = "1 alarm" if one.alarms == 1 else f"{one.alarms} alarms, the last"
        return [*words, f"{rang}: {reporter.sentence(one.rang[-1])}"]
    return [*words, "no alarm"]
