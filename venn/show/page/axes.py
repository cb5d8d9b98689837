"""Empty figures, made once and then fed with columns that grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bokeh.models import BasicTickFormatter, ColumnDataSource, Div, HoverTool, InlineStyleSheet, Range1d, Span
from bokeh.plotting import figure

from venn.show.page import columns
from venn.show.page.columns import Columns

HEIGHT = 300
FONT = {
    "axis_label_text_font": "system-ui, sans-serif", "axis_label_text_font_size": "13px",
    "axis_label_text_font_style": "normal", "major_label_text_font": "system-ui, sans-serif",
    "major_label_text_font_size": "12px", "minor_tick_line_color": None,
}  # fmt: skip
STYLE = (Path(__file__).parent / "words.css").read_text("utf-8")


def phrase(text: str = "", **options: Any) -> Any:
    """Return an element that holds words."""
    style = InlineStyleSheet(css=STYLE)
    # Without `disable_math` dollars in an id would fetch MathJax from another host.
    return Div(text=text, disable_math=True, sizing_mode="stretch_width", stylesheets=[style], **options)


class Fitted:
    """A range that follows the data until the viewer chooses another, and again after a reset."""

    def __init__(self) -> None:
        self.range = Range1d(0, 1)
        self._last: tuple[float, float] = (0, 1)

    def fit(self, start: float, end: float) -> None:
        """Follow the data."""
        chosen = self.range
        if (start, end) == self._last:
            return
        if (chosen.start, chosen.end) == self._last:
            chosen.update(start=start, end=end)
        chosen.update(reset_start=start, reset_end=end)
        self._last = (start, end)


class Axes:
    """An empty figure, its ranges, and its columns.

    Parameters
    ----------
    below, beside : str
        Labels of the axes.
    keys : iterable of str
        The columns; if there are any, the first is `step`.
    height : int
        In pixels; the width is that of its place.
    x : Fitted, optional
        The range of another figure, to share.
    """

    def __init__(
        self, below: str, beside: str, keys: Iterable[str] = (), height: int = HEIGHT, x: Fitted | None = None
    ) -> None:
        self.x, self.y = Fitted() if x is None else x, Fitted()
        self.source = ColumnDataSource({key: [] for key in keys})
        self.figure = figure(
            height=height, sizing_mode="stretch_width", x_range=self.x.range, y_range=self.y.range,
            tools="xpan,xbox_zoom,xwheel_zoom,reset,save", active_drag=None, active_scroll=None,
            toolbar_location="above", toolbar_inner=True, x_axis_label=below, y_axis_label=beside, min_border_left=58,
            min_border_right=14, outline_line_color=None,
        )  # fmt: skip
        self.figure.toolbar.logo = None
        self.figure.toolbar.autohide = True
        for axis in self.figure.axis:
            axis.update(formatter=BasicTickFormatter(use_scientific=False), **FONT)
        self.figure.xaxis.ticker.desired_num_ticks = 5
        self._drawn, self._thinned = 0, -1

    def feed(self, data: Columns, thinned: int) -> None:
        """Show these columns: send the new part, or everything if earlier points have been dropped."""
        steps = data["step"]
        if thinned != self._thinned or len(steps) < self._drawn:
            self.source.data = columns.after(data, 0)  # a copy: streaming appends to it
        elif len(steps) > self._drawn:
            self.source.stream(columns.after(data, self._drawn))
        self._drawn, self._thinned = len(steps), thinned
        if steps:
            self.x.fit(0, max(steps[-1], 2))

    def line(self, y: str, colour: str, width: float = 2.0, dash: str = "solid", alpha: float = 1.0) -> Any:
        """Draw a column."""
        return self.figure.line(
            "step", y, source=self.source, line_color=colour, line_width=width, line_dash=dash, line_alpha=alpha
        )

    def tell(self, renderer: Any, tooltips: Sequence[tuple[str, str]], mode: str = "vline") -> None:
        """Show the numbers under the pointer."""
        self.figure.add_tools(HoverTool(renderers=[renderer], tooltips=list(tooltips), mode=mode))

    def mark(self, at: float, colour: str, dash: str = "dashed") -> None:
        """Draw a line across."""
        self.figure.add_layout(
            Span(location=at, dimension="width", line_color=colour, line_dash=dash, line_width=1.5, line_alpha=0.8)
        )
