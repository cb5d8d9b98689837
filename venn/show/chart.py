"""Charts made of characters, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

Floats = NDArray[np.float64]
Numbers = Sequence[float] | Floats

# The eight dots of a braille character, in rows and columns, are the bits of its code.
BRAILLE = 0x2800
DOTS = np.array([[1, 8], [2, 16], [4, 32], [64, 128]])
LABEL = 7  # characters for the numbers on the left


class Layer(NamedTuple):
    """One layer of a chart: the area between two curves, or one curve if they are equal."""

    #: Increasing, at least one.
    x: Numbers
    low: Numbers
    high: Numbers
    style: str = ""
    #: One character beside the last point, on the right of the chart.
    mark: str = ""
    dotted: bool = False


def chart(
    layers: Sequence[Layer],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int,
    height: int,
    *,
    numbers: Sequence[float] = (),
    marks: Sequence[float] = (),
    unicode: bool = True,
) -> list[Text]:
    """Return a chart as `height` lines of `width` characters, the last one its axis.

    Parameters
    ----------
    layers : sequence of Layer
        Later ones cover earlier ones, a character at a time.
    x_range, y_range : (float, float)
        The visible part, low < high; the rest is cut off.
    width, height : int
        At least 16 and 2.
    numbers : sequence of float
        Heights to write on the left, besides the ends of the range.
    marks : sequence of float
        Places to mark on the axis.
    unicode : bool
        False: use ASCII characters only.

    Examples
    --------
    >>> wave = Layer([0, 1, 2, 3], [0, 3, 0, 3], [0, 3, 0, 3])
    >>> for line in chart([wave], (0, 3), (0, 3), 16, 4, unicode=False):
    ...     print(line.plain.rstrip())
       3.00  ***  *
            ** * **
       0.00 *  ***
          0 ----- 3
    """
    inner, rows = width - LABEL - 2, height - 1
    styles = np.full((rows, inner), -1)
    codes = np.zeros((rows, inner), np.int64)
    gutter: dict[int, tuple[str, str]] = {}
    for i, layer in enumerate(layers):
        bits = _bits(layer, x_range, y_range, inner, rows)
        touched = bits > 0
        styles[touched], codes[touched] = i, bits[touched]
        if layer.mark:
            at = float(np.clip(_scaled(layer.high[-1], y_range), 0, 1))
            row = min(rows - 1, int((1 - at) * rows))
            # If two lines end in the same row, the later one's mark moves to the next free row.
            free = sorted((r for r in range(rows) if r not in gutter), key=lambda r: (abs(r - row), r))
            if free:
                gutter[free[0]] = (layer.mark, layer.style)
    beside = _numbers(numbers, y_range, rows)
    if unicode:
        letters = np.where(styles < 0, ord(" "), BRAILLE + codes)
    else:
        areas = [layer.dotted or bool(np.any(np.asarray(layer.high) > np.asarray(layer.low))) for layer in layers]
        letters = np.array([*(ord(":" if area else "*") for area in areas), ord(" ")])[styles]
    lines = []
    for row in range(rows):
        text = "".join(map(chr, letters[row].tolist()))
        line = Text(f"{beside.get(row, ''):>{LABEL}} {text}", no_wrap=True)
        line.stylize("dim", 0, LABEL)
        starts = [0, *(np.flatnonzero(np.diff(styles[row])) + 1).tolist(), inner]
        for start, end in pairwise(starts):
            i = styles[row, start]
            if i >= 0:
                line.stylize(layers[i].style, LABEL + 1 + start, LABEL + 1 + end)
        mark, style = gutter.get(row, (" ", ""))
        line.append(mark, f"bold {style}")
        lines.append(line)
    return [*lines, _axis(x_range, marks, width, unicode)]


def _scaled(values: float | Floats, span: tuple[float, float]) -> Floats:
    return (np.asarray(values, np.float64) - span[0]) / (span[1] - span[0])


def _bits(
    layer: Layer, x_range: tuple[float, float], y_range: tuple[float, float], inner: int, rows: int
) -> NDArray[np.int64]:
    """Return the braille bits (rows, inner) that a layer sets."""
    n_columns, n_rows = 2 * inner, 4 * rows
    x = _scaled(np.asarray(layer.x, np.float64), x_range) * n_columns
    low, high = (_scaled(np.asarray(v, np.float64), y_range) * n_rows for v in (layer.low, layer.high))
    # Of every column of dots: the lowest and highest point on its edges and between them.
    edges = np.arange(n_columns + 1)
    at_low, at_high = np.interp(edges, x, low), np.interp(edges, x, high)
    bottom, top = np.minimum(at_low[:-1], at_low[1:]), np.maximum(at_high[:-1], at_high[1:])
    inside = (x >= 0) & (x <= n_columns)
    column = np.minimum(x[inside].astype(np.int64), n_columns - 1)
    np.minimum.at(bottom, column, low[inside])
    np.maximum.at(top, column, high[inside])
    seen = (edges[1:] > x[0]) & (edges[:-1] < x[-1])
    seen[column] = True
    if layer.dotted:
        seen &= edges[:-1] % 4 < 2
    # A value on the upper end of the range belongs to the highest dot.
    first, last = (
        np.floor(np.where(ends == n_rows, n_rows - 1, ends)).clip(-1, n_rows).astype(np.int64) for ends in (bottom, top)
    )
    dot = np.arange(n_rows)[::-1, None]
    dots = (dot >= first) & (dot <= last) & seen
    return (dots.reshape(rows, 4, inner, 2) * DOTS[None, :, None, :]).sum(axis=(1, 3))


def _numbers(numbers: Sequence[float], y_range: tuple[float, float], rows: int) -> dict[int, str]:
    """Return the numbers on the left by row; requested ones take precedence over the ends of the range."""
    digits = 3 if y_range[1] - y_range[0] < 0.5 else 2 if y_range[1] - y_range[0] < 10 else 1
    beside: dict[int, str] = {}
    for value in (*numbers, y_range[1], y_range[0]):
        row = min(rows - 1, int((1 - float(_scaled(value, y_range))) * rows))
        if 0 <= row < rows:
            text = f"{value:.{digits}f}"
            beside.setdefault(row, text if len(text) <= LABEL else f"{value:.1e}")
    return beside


def _axis(x_range: tuple[float, float], marks: Sequence[float], width: int, unicode: bool) -> Text:
    inner = width - LABEL - 2
    line = ["─" if unicode else "-"] * inner
    end = f" {x_range[1]:.0f}"
    columns = [int(float(_scaled(mark, x_range)) * inner) for mark in marks]
    columns = [min(column, inner - 1) for column in columns if 0 <= column <= inner]
    if len(end) < inner and max(columns, default=-1) < inner - len(end):
        line[inner - len(end) :] = end
    for column in columns:
        line[column] = "▲" if unicode else "^"
    return Text(f"{x_range[0]:>{LABEL}.0f} {''.join(line)} ", style="dim", no_wrap=True)
