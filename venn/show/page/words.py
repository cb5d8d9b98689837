"""The words and tables of the page, as HTML; texts that come from the run are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from time import localtime, strftime, time
from typing import Any

from venn.monitors.kind import LEVEL
from venn.monitors.kinds import kind_of
from venn.prediction import (
    EACH_CLASS,
    ERROR_BOUND,
    ERROR_RATE,
    NOTHING,
    PREDICTED_LABEL,
    REALISED_ROW,
)
from venn.show.page import columns
from venn.show.page.feed import Counts, Feed, Run
from venn.show.snapshots import overall
from venn.show.telling import Telling

LONGEST = 60  # letters of an id or a label
SERIES = ("#2f86c5", "#d9660a", "#1a9e77", "#c05fa0", "#a88700", "#7b74d6", "#8a8a8a", "#a0522d")
EXCHANGEABLE = "<b>Guaranteed</b> on exchangeable data: "
GUARANTEES = {
    PREDICTED_LABEL: EXCHANGEABLE
    + "the chance that the predicted label is right lies between its lower and its upper probability, on average over "
    "the predictions of a category. So the accuracy stays within the band, up to chance.",
    REALISED_ROW: EXCHANGEABLE
    + "the probabilities in the row of the true label are calibrated; which row that is shows only with the label. "
    "Not guaranteed: that the accuracy of the predicted label lies between lower and upper.",
    EACH_CLASS: EXCHANGEABLE
    + "for each class, the one of its two probabilities that belongs to the truth is calibrated. Not guaranteed: the "
    "point forecast, nor the interval of the class that happens to be predicted.",
    ERROR_RATE: EXCHANGEABLE + "at every level the set misses the true label with exactly that probability.",
    ERROR_BOUND: EXCHANGEABLE + "at every level the set misses the true label with at most that probability.",
    NOTHING: "<b>Nothing is guaranteed</b>: these are point forecasts, to be judged by their record.",
}
MIXED = "Its predictions do not all guarantee the same: no single statement holds for the curves."
UNSEEN = "No prediction has met its label yet."
LATE = (
    "Where labels come late this holds for each prediction as it was made; statements about sums over many steps hold "
    "if each label comes before the next question, and labels must not come late because of what they are."
)
EVIDENCE = (
    "Evidence is gathered from predictions made anew when the label comes, from the labels before it: alarms ring "
    "falsely as seldom as they say, however late labels come."
)

BEST = (
    "The label is the one that is guaranteed, and what is claimed is claimed for it; best is the class of the largest "
    "probability in the point forecast, for which nothing is proved."
)


def text(value: Any, longest: int = LONGEST) -> str:
    """Return a text of the run as HTML that shows it.

    Examples
    --------
    >>> text("<b>")
    '&lt;b&gt;'
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in str(value))
    return escape(plain if len(plain) <= longest else plain[: longest - 1] + "…")


def share(value: Any) -> str:
    """Return a share or a loss with three decimals; a dash if it is unknown."""
    return "–" if value is None else f"{value:.3f}"


def clock(seconds: float, zone: bool = True) -> str:
    """Return a time of day, with its date if it is not today's."""
    then = localtime(seconds)
    day = "" if then[:3] == localtime()[:3] else "%Y-%m-%d "
    return strftime(f"{day}%H:%M:%S{' %Z' if zone else ''}", then)


def duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    Examples
    --------
    >>> duration(5.2), duration(3725), duration(90000)
    ('5 s', '1 h 2 min', '1 d 1 h')
    """
    left = int(seconds)
    said: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size or (unit == "s" and not said):
            said.append(f"{left // size} {unit}")
        left %= size
    return " ".join(said[:2])


def rate(value: float) -> str:
    """Return a throughput."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


# ------------------------------------------------------------------------ the head


def state(feed: Feed) -> str:
    """Return whether the run is going on, silent, or missing."""
    run, name = feed.run, text(feed.path.name)
    said: str
    if run is None:
        return f'<p class="state"><i class="dot waiting"></i>waiting for <b>{name}</b>: {text(feed.complaint, 300)}</p>'
    if feed.complaint is not None:
        said = f'<i class="dot broken"></i><b>{name}</b> cannot be read now: {text(feed.complaint, 300)}'
    elif not run.counts.asked:
        said = f'<i class="dot waiting"></i><b>{name}</b> has no question yet'
    elif run.silent():
        ago = duration(max(time() - run.counts.time, 0))
        said = f'<i class="dot silent"></i><b>{name}</b> silent since {clock(run.counts.time)} ({ago})'
    else:
        said = f'<i class="dot running"></i><b>{name}</b> running'
    return f'<p class="state">{said}</p>'


def facts(counts: Counts, throughput: float | None) -> str:
    """Return the progress of a run."""
    shown = {
        "asked": f"{counts.asked:,}", "answered": f"{counts.answered:,}", "pending": f"{counts.pending:,}",
        "expired": f"{counts.expired:,}",
    }  # fmt: skip
    if throughput is not None:
        shown["answers a second"] = rate(throughput)
    return tiles(shown)


def tiles(shown: Mapping[str, str]) -> str:
    """Return numbers as large tiles."""
    return f"<dl>{''.join(f'<div><dt>{key}</dt><dd>{value}</dd></div>' for key, value in shown.items())}</dl>"


def head(feed: Feed) -> str:
    """Return the verdict, the state of the run and its progress."""
    run = feed.run
    return state(feed) if run is None else verdict(run) + state(feed) + facts(run.counts, run.rate)


def verdict(run: Run) -> str:
    """Return the worst verdict on the run's predictors, in the colour of its state; nothing before the first."""
    found = overall(run.snapshots)
    if found is None:
        return ""
    of = f"{text(found.predictor)}: " if len(run.names) > 1 else ""
    return f'<p class="verdict {found.state.replace(" ", "-")}" role="status">{of}{text(found.sentence, 1000)}</p>'


# --------------------------------------------------------------------- predictors


def numbers(run: Run, name: str) -> str:
    """Return the figures of one predictor."""
    snapshot = run.snapshots.get(name)
    curves = {} if snapshot is None else snapshot["told"]["curves"]
    if snapshot is None or not curves:
        return f"<p>{UNSEEN}</p>"
    window, told = snapshot["told"]["window"], snapshot["told"]
    shown = {"accuracy": share(curves["accuracy"]), f"last {window['size']:,}": share(window["accuracy"])}
    if "lower" in curves:
        lower, upper = share(curves["lower"]), share(curves["upper"])
        shown["claimed"] = lower if lower == upper else f"{lower} to {upper}"
        shown |= {"log loss": share(curves["log_loss"]), "Brier": share(curves["brier"])}
        if "calibration" in told:
            shown["ECE"] = share(told["calibration"]["ece"])
    for level in columns.levels(snapshot):
        shown[f"errors at {level}"] = share(curves[columns.ERROR + level])
    return tiles(shown)


def promise(run: Run, name: str) -> str:
    """Return the theorem about the predictions of a predictor, and what is not guaranteed."""
    snapshot = run.snapshots.get(name)
    guaranteed = None if snapshot is None else snapshot["told"]["guaranteed"]
    said = UNSEEN if guaranteed is None else GUARANTEES.get(guaranteed, MIXED)
    late = "" if guaranteed in (None, NOTHING) else f"<p class='fine'>{LATE}</p>"
    watched = EVIDENCE if name in run.monitors else "Nothing bets against these claims: it has no monitor."
    made = f"<p class='fine'><b>{text(name)}</b> is <code>{text(run.predictors.get(name, '?'), 400)}</code></p>"
    return f"<p>{said}</p>{late}<p class='fine'>{watched}</p>{made}"


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """Return a legend that wraps on a narrow screen: (colour, "line", "dash", "band" or "mark", words)."""
    items = "".join(f'<span><i class="{kind}" style="--c:{colour}"></i>{said}</span>' for colour, kind, said in entries)
    return f'<p class="legend">{items}</p>'


def alarms(run: Run, most: int = 20) -> str:
    """Return the latest alarms of all predictors in words, newest first."""
    count = sum(
        snapshot["monitor"]["alarms"]["count"] for snapshot in run.snapshots.values() if snapshot["monitor"] is not None
    )
    found = sorted(
        ((alarm["time"], name, alarm) for name, rung in run.alarms.items() for alarm in rung),
        key=lambda one: (one[2]["step"], one[1]), reverse=True,
    )[:most]  # fmt: skip
    count = max(count, len(found))
    if not found:
        return "<p>No alarm." + ("" if run.monitors else " No predictor has a monitor.") + "</p>"
    telling = Telling()
    items = "".join(
        f"<li><b>{text(name)}</b>{f' · {clock(when)}' if when else ''}: {text(telling.tell(alarm), 1000)}</li>"
        for when, name, alarm in found
    )
    more = f", the latest {len(found)} of them:" if count > len(found) else ":"
    return f'<p class="alarm">{count:,} alarm{"s" * (count > 1)}{more}</p><ul>{items}</ul>'


# --------------------------------------------------------------------------- tables


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls by itself on a narrow screen."""
    body = "".join(map(_row, rows))
    return f'<div class="table"><table><thead>{_row(header, "th")}</thead><tbody>{body}</tbody></table></div>'


def summary(run: Run) -> str:
    """Return one line for each predictor."""
    keys = ("accuracy", "lower", "upper", "log_loss", "brier")
    of = sorted({level for one in run.snapshots.values() for level in columns.levels(one)}, key=float)
    header = ["predictor", *(key.replace("_", " ") for key in keys), "ECE", *(f"errors at {e}" for e in of), "alarms"]
    rows = []
    for name in run.names:
        snapshot = run.snapshots.get(name)
        if snapshot is None:
            continue
        told = snapshot["told"]
        ece = told.get("calibration", {}).get("ece")
        rung = "–" if snapshot["monitor"] is None else f"{snapshot['monitor']['alarms']['count']:,}"
        rows.append([
            text(name), *(share(told["curves"].get(key)) for key in keys), share(ece),
            *(share(told["curves"].get(columns.ERROR + e)) for e in of), rung,
        ])  # fmt: skip
    return table(header, rows)


def latest(run: Run, name: str) -> str:
    """Return the latest questions: the prediction for each, and its outcome."""
    header = ("time", "id", "label", f"claimed, or set at {LEVEL}", "status", "true label", "right?")
    rows, others = [], False
    for seen in run.latest:
        prediction = seen.predictions[name]
        kind, answered = kind_of(prediction), seen.status == "answered"
        best = kind.best(prediction, lambda label: text(label, 24))
        others = others or bool(best)
        right = answered and kind.right(prediction, seen.y)
        rows.append((
            clock(seen.time, zone=False) if seen.time else "–", text(seen.id),
            text(prediction.label) + (f' <span class="fine">best: {best}</span>' if best else ""),
            kind.claim(prediction, lambda label: text(label, 24)),
            f'<span class="{seen.status}">{seen.status}</span>', text(seen.y) if answered else "",
            f'<b class="{"right" if right else "wrong"}">{"yes" if right else "no"}</b>' if answered else "",
        ))  # fmt: skip
    note = f"<p class='fine'>{BEST}</p>" if others else ""
    return table(header, rows) + note if rows else "<p>No question yet.</p>"


def parameters(run: Run) -> str:
    """Return the parameters of the predictors and their monitors."""
    rows = [
        (text(name), f"<code>{text(run.predictors.get(name, '–'), 2000)}</code>",
         f"<code>{text(run.monitors.get(name, '–'), 2000)}</code>")
        for name in run.names
    ]  # fmt: skip
    return f'<div class="parameters">{table(("predictor", "is", "watched by"), rows)}</div>'
