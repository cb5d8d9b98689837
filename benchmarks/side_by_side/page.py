"""The page: rows of figures as tables in Markdown."""

from __future__ import annotations

from .capital import LEVEL
from .jobs import JOBS
from .measure import LEVELS
from .traps import LIBRARIES, TRAPS

NAMES = {"mapie": "MAPIE", "ours": "**ours**"}
KERNEL_JOBS = ("venn_svm", "abers_full", "conformal_full", "stream", "long_stream")


def name(library):
    return NAMES.get(library, library)


def number(value, digits=3):
    """Return a figure without the zero before its point, or a dash."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def seconds(value):
    """Return seconds with two significant digits."""
    if value >= 9.95:
        return f"{value:.0f}"
    return number(float(f"{value:.2g}"), 1 if value >= 0.995 else 2 if value >= 0.0995 else 4 if value < 0.00995 else 3)


def stream_of(row):
    """Return the stream as it is named in a table."""
    kernel = f"; γ {row['gamma']:.2g}, C {row['C']:g}" if row["job"] in KERNEL_JOBS and "gamma" in row else ""
    size = f": {row['steps']} steps, {row['classes']} classes" if "steps" in row else ""
    return f"{row['data'].split(',')[0]}{size}{kernel}"


def differs(row):
    if "differs_max" not in row:
        return "-"
    return f"{row['differs_max']:.2g} ({100 * row['differs_share']:.1f} %)"


FORECAST = {
    "s": lambda row: seconds(row["seconds"]),
    "MB": lambda row: number(row["grown_mb"], 0),
    "log loss": lambda row: number(row["log_loss"]) + (f" ({row['zeros']})" if row["zeros"] else ""),
    "Brier": lambda row: number(row["brier"]),
    "accuracy": lambda row: number(row["accuracy"]),
    "off P": lambda row: number(row.get("off")),
    "width": lambda row: number(row.get("width")),
    "deviation": lambda row: deviation(row),
    "differs": differs,
}


def deviation(row):
    if row.get("deviation") is None:
        return "-"
    fixed = row["job"] == "abers_batch"
    return f"({number(row['deviation'], 2)})" if fixed else number(row["deviation"], 2)


def errors(level):
    def cell(row):
        least, most = row[f"limits_{level:g}"]
        count = row[f"errors_{level:g}"]
        text = f"{count} in [{least}, {most}]"
        return text if least <= count <= most else f"**{count}** not in [{least}, {most}]"

    return cell


SETS = {"s": FORECAST["s"], "MB": FORECAST["MB"]}
SETS |= {f"errors at {number(level, 2).rstrip('0')}": errors(level) for level in LEVELS}
SETS |= {
    f"labels a set at {number(level, 2).rstrip('0')}": lambda row, level=level: number(row[f"size_{level:g}"], 2)
    for level in LEVELS[:2]
}


def table(columns, rows):
    """Return the lines of a table: library and title, then the columns; a heading row for each stream."""
    used = [title for title, cell in columns.items() if any("seconds" in row and cell(row) != "-" for row in rows)]
    lines = ["| | predictor | " + " | ".join(used) + " |", "|---|---|" + "---|" * len(used)]
    for data in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == data]
        if data:
            whole = next((row for row in mine if "steps" in row), mine[0])
            lines.append(f"| *{stream_of(whole)}* | |" + " |" * len(used))
        for row in mine:
            cells = (
                [columns[title](row) for title in used]
                if "seconds" in row
                else [row.get("reason", ""), *[""] * (len(used) - 1)]
            )
            lines.append(
                f"| {name(row['library'])} | {row['title']} | " + " | ".join(clean(cell) for cell in cells) + " |"
            )
    return lines


def clean(text):
    """Return text that is safe in a cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


LEGEND = """\
*s*: seconds of the processor for all steps, predicting and learning. *MB*: memory at its peak above what was held
before the run. *log loss*: in nats, probabilities of 0 as 1e-15, in brackets how many true labels had 0. *off P*:
mean distance (total variation) of the forecast from P(y | x), where that is known. *width*: of the bounds of the
predicted class. *deviation*: the largest over classes of |sum of 1{y = k} - P_k|, P the row of the true label, by
its bound at level .01: above 1 is evidence against validity. *differs*: from the first row of ours that is the same
by definition, largest difference and, in brackets, how many steps differ by more than 1e-6. Errors of sets stand
beside the limits of chance, passed with probability .005 on either side. Losing rows of ours stay in."""


def head(line):
    versions = ", ".join(f"{title} {version or 'not installed'}" for title, version in line["versions"].items())
    out = [f"{line['date']}, {line['processor']}, Python {line['python']}, one thread. {versions}.", ""]
    out += [*LEGEND.splitlines(), ""]
    if line["quick"]:
        out += ["**A quick trial: 30 steps a stream; the figures say nothing.**", ""]
    return out


def page(lines):
    """Return the lines of the page from the script's output."""
    first, rows = lines[0], lines[1:]
    out = head(first)
    for job in JOBS:
        mine = [row for row in rows if row["job"] == job.name]
        if not mine:
            continue
        sets = any("errors_0.05" in row for row in mine)
        out += [f"## {job.title}", "", job.settings, "", *table(SETS if sets else FORECAST, mine), ""]
    capital = [row for row in rows if row["job"] == "martingales"]
    if capital:
        out += ["## Martingales", "", *martingales(capital), ""]
    trapped = {row["library"]: row for row in rows if row["job"] == "traps"}
    if trapped:
        out += ["## Traps", "", *traps(trapped), ""]
    return out


def martingales(rows):
    known = next((row for row in rows if "replays" in row), {"replays": 0, "steps": 0, "false_limit": 0})
    n = known["replays"]
    steps = known["steps"] // max(n, 1)
    columns = {
        "µs a p-value": lambda row: number(row["microseconds"], 1),
        "false alarms": lambda row: str(row["false_alarms"]),
        "changes seen": lambda row: str(row["seen"]),
        "rang before": lambda row: str(row["early"]),
        "median delay": lambda row: "-" if row["delay"] is None else f"{row['delay']:g}",
    }
    return [
        f"{n} sequences of {steps} uniform p-values, and as many whose second half is squares of uniform ones; the "
        f"same for all. An alarm: the capital reaches {1 / LEVEL:g}; chance allows {known['false_limit']} false ones "
        f"of {n}, passed with probability .01. One p-value at a time where not said; each library's default "
        "parameters.",
        "",
        *table(columns, rows),
    ]


def traps(rows):
    """Return the table of the traps, a column for each library."""
    here = [library for library in LIBRARIES if library in rows]
    out = [
        "What came back, run by the script: a value, or the exception and its first words; in square brackets what it"
        " warned of; - where a library has no such thing. Calibrators stand on scikit-learn's logistic regression, "
        "whose own refusals show too. Two clouds of 30 points where nothing is said.",
        "",
        "| | | " + " | ".join(name(library) for library in here) + " |",
        "|---|---|" + "---|" * len(here),
    ]
    for trap in TRAPS:
        cells = [rows[library].get("cells", {}).get(trap.question, rows[library].get("reason", "")) for library in here]
        out.append(f"| {trap.number} | {trap.question} | " + " | ".join(clean(cell) for cell in cells) + " |")
    return out
