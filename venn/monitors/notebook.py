"""What a notebook shows in place of a `repr`: a table, or a figure as it is."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(caption: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return an HTML table of rows by name, whose columns are those of any of them.

    Examples
    --------
    >>> table("two < three", {"a": {"size": 0.25}})[:45]
    '<table><caption>two &lt; three</caption><thea'
    """
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))

    def line(cells: list[Any], kind: str) -> str:
        shown = (f"{one:.4f}" if isinstance(one, float) else str(one) for one in cells)
        return "<tr>" + "".join(f"<{kind}>{escape(one)}</{kind}>" for one in shown) + "</tr>"

    body = "".join(line([name, *(row.get(column, "") for column in columns)], "td") for name, row in rows.items())
    head = line(["", *columns], "th")
    return f"<table><caption>{escape(caption)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"


def png(figure: Figure) -> bytes:
    """Return a figure as the bytes of an image."""
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
