"""The lines of the live view: header, table, charts, alarms, for a terminal of any size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf, isnan
from textwrap import wrap
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from venn.monitors.verdict import CHANGED, CLAIMED, DOUBTFUL, EARLY, USELESS
from venn.show.chart import Layer, chart
from venn.show.complaints import plain
from venn.show.history import ERROR, LEVEL, SIZE, WIDTH, History, number
from venn.show.snapshots import Snapshot, overall
from venn.show.telling import Telling, bursts

# Okabe and Ito's colours that stand out on black and on white; lines also carry a letter.
PALETTE = ("", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00")
BAND, CLAIM, ALARM = "#3A8FC8", "#D55E00", "bold #D55E00"
STYLES = {CHANGED: ALARM, DOUBTFUL: "bold #E69F00", USELESS: "bold #E69F00", CLAIMED: "#009E73", EARLY: "dim"}
LETTERS = "abcdef"
WIDEST_NAME = 16
# If the terminal is narrow, columns are dropped in this order.
EXPENDABLE = ("ECE", "detector", "last", "log loss", "set", "claimed", "error", "evidence")
GAP = 2
LEAST_CHART = (30, 6)  # width and height, title included
MOST_CHARTS_HEIGHT = 26
SIDE_BY_SIDE = 72


def printable(text: str, encoding: str) -> str:
    """Return `text` as one line that a terminal of this encoding can show."""
    return plain(text).encode(encoding, "replace").decode(encoding)


def closest(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the evidence that is closest to its threshold, with its logarithms as numbers."""
    entries = [
        {**entry, "log10": number(entry["log10"])}
        for entry in snapshot.get("evidence", ())
        if "log10" in entry and "threshold" in entry
    ]
    return max(entries, key=lambda entry: entry["log10"] - entry["threshold"], default=None)


class View:
    """One drawing of the state.

    Parameters
    ----------
    names : sequence of str
    snapshots : mapping of name to dict
        The last one of each predictor that has one.
    history : History
    alarms : sequence of (name, alarm)
        Oldest first.
    encoding : str
        The terminal's encoding; without Unicode, charts use ASCII characters.
    """

    def __init__(
        self,
        names: Sequence[str],
        snapshots: Mapping[str, Snapshot],
        history: History,
        alarms: Iterable[tuple[str, Snapshot]],
        encoding: str,
    ) -> None:
        self._names, self._snapshots, self._history = names, snapshots, history
        self._alarms = list(alarms)
        self._encoding = encoding
        self._unicode = encoding.lower().startswith("utf")

    def lines(self, title: str, note: str, width: int, height: int) -> list[Text]:
        """Return at most `height` lines of at most `width` characters."""
        head = Text.assemble((self._plain(title), "bold"), "   ", note, no_wrap=True)
        verdict = self._verdict()
        height -= len(verdict)
        table = self._table(width, max(2, height // 3))
        # Space for alarms is reserved, so that the charts do not jump at the first alarm.
        alarms = self._alarm_lines(width, max(2, height // 6))
        room = min(height - 1 - len(table) - len(alarms), MOST_CHARTS_HEIGHT)
        drawn = [head, *verdict, *table, *self._charts(width, room), *alarms][: height + len(verdict)]
        for line in drawn:
            line.truncate(width, overflow="crop")
        return drawn

    def _plain(self, text: str) -> str:
        return printable(text, self._encoding)

    def _verdict(self) -> list[Text]:
        """Return the worst verdict as a line, if there is any."""
        verdict = overall(self._snapshots)
        return [] if verdict is None else [Text(self._plain(str(verdict)), style=STYLES[verdict.state], no_wrap=True)]

    # ------------------------------------------------------------------- table

    def _table(self, width: int, most: int) -> list[Text]:
        shown = self._names if len(self._names) < most else self._names[: max(1, most - 2)]
        rows = [self._cells(name) for name in shown]
        size = max((s.get("window", {}).get("size", 0) for s in self._snapshots.values()), default=0)
        heads = {
            "name": "predictor", "accuracy": "accuracy", "claimed": "claimed", "last": f"last {size}",
            "log loss": "log loss", "ECE": "ECE", "error": f"err {LEVEL[1:]}", "set": "set", "evidence": "evidence",
            "detector": "by", "alarms": "alarms",
        }  # fmt: skip
        kept = {key: head for key, head in heads.items() if key in ("name", "alarms") or any(row[key] for row in rows)}
        widths = {key: max(cell_len(head), *(cell_len(row[key]) for row in rows)) for key, head in kept.items()}
        gap = GAP
        for key in (None, *EXPENDABLE):
            if sum(widths[key] + gap for key in kept) - gap > width:
                gap = 1
                kept.pop(key or "", None)
        widths = {key: size if key == "name" else size + gap for key, size in widths.items()}
        lines = [self._row(kept, widths, {key: "dim" for key in kept})]
        for row in rows:
            lines.append(self._row({key: row[key] for key in kept}, widths, {"accuracy": "bold", "alarms": ALARM}))
        if len(shown) < len(self._names):
            lines.append(Text(f"and {len(self._names) - len(shown)} more", style="dim", no_wrap=True))
        return lines

    @staticmethod
    def _row(cells: Mapping[str, str], widths: Mapping[str, int], styles: Mapping[str, str]) -> Text:
        line = Text(no_wrap=True)
        for key, cell in cells.items():
            pad = " " * (widths[key] - cell_len(cell))
            line.append(cell + pad if key == "name" else pad + cell, styles.get(key, ""))
        return line

    def _cells(self, name: str) -> dict[str, str]:
        snapshot = self._snapshots.get(name, {})
        curves, window = snapshot.get("curves", {}), snapshot.get("window", {})
        lower, upper = curves.get("lower"), curves.get("upper")
        near = closest(snapshot)
        count = snapshot.get("alarms", {}).get("count", 0)
        plain = self._plain(name)
        return {
            "name": plain if cell_len(plain) <= WIDEST_NAME else set_cell_size(plain, WIDEST_NAME - 1) + "~",
            "accuracy": _short(curves.get("accuracy")),
            "claimed": _claimed(lower, upper),
            "last": _short(window.get("accuracy")),
            "log loss": _short(curves.get("log_loss")),
            "ECE": _short(snapshot.get("calibration", {}).get("ece")),
            "error": _short(curves.get(ERROR)),
            "set": f"{curves[SIZE]:.2f}" if SIZE in curves else f"{curves[WIDTH]:.3g}" if WIDTH in curves else "",
            "evidence": "" if near is None else f"{near['log10']:.1f}/{near['threshold']:.1f}",
            "detector": "" if near is None else self._plain(str(near["detector"])),
            "alarms": str(count) if count else "",
        }

    # ------------------------------------------------------------------ charts

    def _charts(self, width: int, height: int) -> list[Text]:
        least_width, least_height = LEAST_CHART
        if width < least_width or height < least_height:
            return []
        series = self._series()
        if not series:
            return self._accuracies(width, height)
        if width >= SIDE_BY_SIDE:
            right = min(max(width * 45 // 100, least_width), 90)
            left = width - right - GAP
            return _beside([(left, self._accuracies(left, height)), (right, self._evidence(series, right, height))])
        if height >= 2 * least_height:
            lower = height // 2
            return self._accuracies(width, height - lower) + self._evidence(series, width, lower)
        return self._evidence(series, width, height)

    def _accuracies(self, width: int, height: int) -> list[Text]:
        """Return charts of the first predictors that fit, and blank lines up to `height`."""
        known = [name for name in self._names if self._history.knows(name)]
        most_columns, most_rows = max(1, width // 38), max(1, height // LEAST_CHART[1])
        known = known[: most_columns * most_rows]
        lines: list[Text] = []
        if known:
            n_columns = min(most_columns, ceil(len(known) / min(most_rows, len(known))))
            n_rows = ceil(len(known) / n_columns)
            wide, high = (width - GAP * (n_columns - 1)) // n_columns, height // n_rows
            for i in range(0, len(known), n_columns):
                lines += _beside([(wide, self._accuracy(name, wide, high)) for name in known[i : i + n_columns]])
        return lines + [Text() for _ in range(height - len(lines))]

    def _accuracy(self, name: str, width: int, height: int) -> list[Text]:
        x, accuracy, lower, upper = self._history.curve(name)
        layers = []
        claims = [value for value in (*lower, *upper) if not isnan(value)]
        if claims:
            point = lower == upper
            layers.append(Layer(x, lower, upper, CLAIM if point else BAND, dotted=point))
        layers.append(Layer(x, accuracy, accuracy, "bold"))
        sets = ERROR in self._snapshots[name].get("curves", {})
        text = ("covered " if sets else "") + _short(accuracy[-1])
        if claims:
            text += f", claimed {_claimed(lower[-1], upper[-1])}"
        title = Text.assemble((self._plain(name), "bold"), "  ", (text, "dim"), no_wrap=True)
        # The first means vary over all of [0, 1]: the range fits the rest.
        late = [i for i, step in enumerate(x) if step >= x[-1] / 10]
        seen = [values[i] for i in late for values in (accuracy, lower, upper) if not isnan(values[i])]
        low, high = min(seen), max(seen)
        margin = max(0.06 * (high - low), 0.005)
        marks = [alarm["step"] for of, alarm in self._alarms if of == name]
        span = (max(low - margin, 0.0), min(high + margin, 1.0))
        return [
            title,
            *chart(layers, (0, max(x[-1], 1)), span, width, height - 1, marks=marks, unicode=self._unicode),
        ]

    def _series(self) -> list[tuple[str, tuple[str, str], float | None]]:
        """Return the evidence to draw: the first of each predictor, then the second while there are few."""
        entries = {
            name: [entry for entry in self._snapshots.get(name, {}).get("evidence", ()) if "log10" in entry]
            for name in self._names
        }
        series: list[tuple[str, tuple[str, str], float | None]] = []
        for turn in range(max(len(of) for of in entries.values())):
            for name, of in entries.items():
                if turn < len(of) and len(series) < (len(LETTERS) if turn == 0 else 4):
                    entry = of[turn]
                    series.append((name, (str(entry["name"]), str(entry["detector"])), entry.get("threshold")))
        return series

    def _evidence(
        self, series: Sequence[tuple[str, tuple[str, str], float | None]], width: int, height: int
    ) -> list[Text]:
        paths = [self._history.evidence(name, key) for name, key, _ in series]
        thresholds = sorted({level for *_, level in series if level is not None})
        finite = [v for _, values in paths for v in values if abs(v) < inf] + [*thresholds, 0.0]
        high = max(*finite, 0.5) * 1.1
        # A martingale that only loses would flatten the other curves; it is drawn at the edge.
        low = max(min(finite), -2 * high - 2)
        step = max(self._history.step, 1)
        layers = [Layer([0, step], [level] * 2, [level] * 2, "dim", dotted=True) for level in thresholds]
        legend = []
        several = len({name for name, *_ in series}) > 1
        for i, ((name, (about, detector), _), (x, values)) in enumerate(zip(series, paths, strict=True)):
            if x:
                seen = np.clip(values, low, high)
                layers.append(Layer(x, seen, seen, PALETTE[i], LETTERS[i]))
            legend.append((f"{LETTERS[i]} ", f"{name} {detector}" if several else f"{detector}, {about}", PALETTE[i]))
        lines = [Text.assemble(("evidence", "bold"), ("  log10, alarm: dotted", "dim"), no_wrap=True)]
        line, rows = Text(no_wrap=True), max(1, height // 5)
        for letter, text, style in legend:
            plain = self._plain(text)
            if line.cell_len and line.cell_len + cell_len(plain) + 4 > width:
                lines.append(line)
                line = Text(no_wrap=True)
            line.append("  " if line.cell_len else "").append(letter, f"bold {style}").append(plain, "dim")
        lines = [*lines, line][: 1 + rows]
        marks = [alarm["step"] for _, alarm in self._alarms]
        drawn = chart(
            layers,
            (0, step),
            (low, high),
            width,
            height - len(lines),
            numbers=thresholds,
            marks=marks,
            unicode=self._unicode,
        )
        return lines + drawn

    # ------------------------------------------------------------------ alarms

    def _alarm_lines(self, width: int, height: int) -> list[Text]:
        """Return exactly `height` lines, the newest alarm first."""
        count = sum(snapshot.get("alarms", {}).get("count", 0) for snapshot in self._snapshots.values())
        if not count:
            return [Text("no alarm", style="dim")] + [Text() for _ in range(height - 1)]
        lines = [Text(f"{count} alarm{'s' * (count > 1)}", style=ALARM, no_wrap=True)]
        telling = Telling()
        for one in reversed(bursts(self._alarms)):
            more = f" {one.more}." if one.more else ""
            text = self._plain(f"{one.name}: {telling.tell(one.first)}{more}")
            for row in wrap(text, max(width - 2, 10), subsequent_indent="  "):
                lines.append(Text(f"  {row}", no_wrap=True))
        return (lines + [Text() for _ in range(height)])[:height]


def _short(value: float | None) -> str:
    """Return three decimals without the zero before the point; empty for an unknown value."""
    if value is None:
        return ""
    return f"{value:.3f}".replace("0.", ".", 1) if 0 <= value < 0.9995 else f"{value:.2f}"


def _claimed(lower: float | None, upper: float | None) -> str:
    return f"[{_short(lower)}, {_short(upper)}]" if lower != upper else _short(lower)


def _beside(blocks: Sequence[tuple[int, list[Text]]]) -> list[Text]:
    """Join blocks of lines, each of a known width."""
    lines = []
    for row in range(max(len(block) for _, block in blocks)):
        line = Text(no_wrap=True)
        for i, (width, block) in enumerate(blocks):
            part = block[row].copy() if row < len(block) else Text()
            part.truncate(width, overflow="crop", pad=True)
            line.append(" " * GAP if i else "").append_text(part)
        lines.append(line)
    return lines
