"""The words and tables of the page, as HTML; texts that come from the run are escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from time import localtime, strftime, time
from typing import Any

from venn.monitors.alarms import shares
from venn.monitors.kind import ErrorKind, Judged
from venn.monitors.kinds import SetKind, kind_of
from venn.monitors.verdict import BELOW, CHANGED, Moment, Verdict
from venn.prediction import (
    CRPS,
    EACH_CLASS,
    ERROR_BOUND,
    ERROR_RATE,
    LOG_LOSS,
    LONG_RUN,
    NOTHING,
    PREDICTED_LABEL,
    REALISED_ROW,
)
from venn.show.page.feed import LATEST, FollowedRun
from venn.show.seldom import plain
from venn.show.view import Picture, SeenCounts, Snapshot, floors, pictures, standing

LONGEST = 60  # letters of an id or a label
PICTURES, NAMED = 6, 4  # pictures of what has changed; bars that all have their names below
EXCHANGEABLE = "<b>Guaranteed while nothing has changed</b> (on exchangeable data): "
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
    LONG_RUN: "<b>Guaranteed</b> on any stream, however it was made: in the long run the share of sets that miss the "
    "true label is the level. Not guaranteed: any single set, nor the size of the sets: read it beside the errors.",
    LOG_LOSS: "<b>Guaranteed</b> on any stream, however it was made: the total log loss is hardly larger than that of "
    "the best of the experts inside. Not guaranteed: any single probability.",
    CRPS: "<b>Guaranteed</b> on any stream, however it was made: the total CRPS, the score of distributions, is hardly "
    "larger than that of the best of the experts inside. Not guaranteed: any single interval or probability.",
    NOTHING: "<b>Nothing is guaranteed</b>: these are point forecasts, to be judged by their record.",
}
MIXED = "Its predictions do not all guarantee the same: no single statement holds for the curves."
OF_NUMBERS = {"absolute_error": "abs. error", "crps": "CRPS", "width_0.05": "width at 0.05"}
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
    "What is claimed is claimed for the label, and guaranteed for it while nothing has changed; best is the class of "
    "the largest probability in the point forecast, for which nothing is proved."
)


def text(value: Any, longest: int = LONGEST) -> str:
    """Return a text of the run as HTML that shows it.

    Examples
    --------
    >>> text("<b>")
    '&lt;b&gt;'
    """
    return escape(short(value, longest))


def short(value: Any, longest: int = LONGEST) -> str:
    """Return a text of the run on one line, cut where it is too long."""
    shown = plain(str(value))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def label(value: Any, longest: int = LONGEST) -> str:
    """Return a label as HTML, a number with six digits.

    Examples
    --------
    >>> label(127.5707935616374), label(83.0), label("<b>")
    ('127.571', '83', '&lt;b&gt;')
    """
    return text(f"{value:.6g}" if isinstance(value, float) else value, longest)


def share(value: Any) -> str:
    """Return a share or a loss with three decimals; a dash if it is unknown."""
    return "–" if value is None else f"{value:.3f}"


def clock(seconds: float, zone: bool = True) -> str:
    """Return a time of day, with its date if it is not today's."""
    then = localtime(seconds)
    day = "" if then[:3] == localtime()[:3] else "%Y-%m-%d "
    return strftime(f"{day}%H:%M:%S{' %Z' if zone else ''}", then)


def when(seconds: float, form: str = "second") -> str:
    """Return a time as HTML, which the script writes again in the viewer's zone; without one it is the server's.

    `form` says how far it is written: "minute", "second", or "zone" with the zone.

    Examples
    --------
    >>> when(0.0)
    '<time data-at="0.000" data-form="second" datetime="1970-01-01T00:00:00+00:00">1970-01-01 00:00:00</time>'
    """
    told = clock(seconds, form == "zone")
    told = told[:-3] if form == "minute" else told
    utc = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return f'<time data-at="{seconds:.3f}" data-form="{form}" datetime="{utc}">{told}</time>'


def identity(id: Any, longest: int = LONGEST) -> str:
    """Return an id as a button, which finds its question on the page; in a report it does nothing.

    Examples
    --------
    >>> identity("<b>")
    '<button type="button" class="id" data-id="&lt;b&gt;">&lt;b&gt;</button>'
    """
    return f'<button type="button" class="id" data-id="{escape(str(id))}">{text(id, longest)}</button>'


def moment(one: Moment, longest: int = LONGEST) -> str:
    """Return a question as HTML: when it came, its number, and its id if that is another."""
    which = f"question {one.number:,}"
    if one.id is not None:
        which += " " + identity(one.id, longest) if str(one.id) != str(one.number) else ""
    return which if one.time is None else f"{when(one.time, 'minute')} ({which})"


def placed(told: str, names: Mapping[str, str], longest: int = 1000) -> str:
    """Return a sentence as HTML, with `names` within it, of moments, by what they are as HTML: see `named`."""
    shown = text(told, longest)
    for name, html in names.items():
        shown = shown.replace(text(name, longest), html)
    return shown


def named(*moments: Moment | None) -> dict[str, str]:
    """Return moments by what a sentence calls them, as HTML."""
    return {str(one): moment(one) for one in moments if one is not None}


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


def ago(seconds: float) -> str:
    """Return a duration that a reader need not see grow by seconds.

    Examples
    --------
    >>> ago(43.2), ago(3725), ago(-1)
    ('43 s', '1 h 2 min', '0 s')
    """
    left = max(int(seconds), 0)
    return duration(left if left < 60 else left - left % 60)


def rate(value: float) -> tuple[str, str]:
    """Return a number of answers and the time in which they come, from how many come in a second.

    Examples
    --------
    >>> rate(1234.5), rate(0.25), rate(0.01), rate(0.0)
    (('1,234', 'answers a second'), ('15', 'answers a minute'), ('36', 'answers an hour'), ('0', 'answers an hour'))
    """
    times, unit = next((one for one in ((1, "a second"), (60, "a minute")) if value * one[0] >= 1), (3600, "an hour"))
    often = value * times
    return f"{often:,.0f}" if often >= 10 or often == 0 else f"{often:.1f}", f"answers {unit}"


# ----------------------------------------------------------------------- progress


def facts(counts: SeenCounts, throughput: float | None) -> str:
    """Return the progress of a run."""
    shown = {"asked": f"{counts.asked:,}", "answered": f"{counts.answered:,}", "pending": f"{counts.pending:,}"}
    if counts.expired:
        shown["expired"] = f"{counts.expired:,}"
    if throughput is not None:
        often, unit = rate(throughput)
        shown[unit] = often
        if counts.time:
            shown["last event"] = f"{ago(time() - counts.time)} ago"
    return tiles(shown, "facts")


def tiles(shown: Mapping[str, str], of: str = "tiles") -> str:
    """Return numbers with their names; `of` is a class of the style sheet."""
    return (
        f"<dl class='{of}'>{''.join(f'<div><dt>{key}</dt><dd>{value}</dd></div>' for key, value in shown.items())}</dl>"
    )


# --------------------------------------------------------------------- predictors


def numbers(run: FollowedRun, name: str) -> str:
    """Return the figures of one predictor."""
    one = run.standing(name)
    if not one.means:
        return f"<p>{UNSEEN}</p>"
    shown = {run.right: share(one.means["accuracy"]), f"last {one.lately['size']:,}": share(one.lately["accuracy"])}
    if one.claim is not None:
        lower, upper = map(share, one.claim)
        shown["claimed"] = lower if lower == upper else f"{lower} to {upper}"
        shown |= {"log loss": share(one.means["log_loss"]), "Brier": share(one.means["brier"])}
        if one.ece is not None:
            shown["ECE"] = share(one.ece)
    shown |= {f"errors at {level}": share(value) for level, value in one.errors.items()}
    shown |= {title: f"{one.means[key]:.4g}" for key, title in OF_NUMBERS.items() if key in one.means}
    return tiles(shown)


def promise(run: FollowedRun, name: str) -> str:
    """Return the theorem about the predictions of a predictor, and what is not guaranteed."""
    guaranteed, found = run.standing(name).guaranteed, run.standing(name).verdict
    said = UNSEEN if guaranteed is None else GUARANTEES.get(guaranteed, MIXED)
    if found is not None and found.state == CHANGED:
        broke = "It did not hold until it began anew" if began_anew(found) else "It does not hold now"
        said = f"<b class='alarm'>{broke}: {text(found.details, 1000)}.</b></p><p>{said}"
    late = "" if guaranteed in (None, NOTHING) else f"<p class='fine'>{LATE}</p>"
    watched = EVIDENCE if name in run.monitors else "Nothing bets against these claims: it has no monitor."
    made = f"<p class='fine'><b>{text(name)}</b> is <code>{text(run.predictors.get(name, '?'), 400)}</code></p>"
    return f"<p>{said}</p>{late}<p class='fine'>{watched}</p>{made}"


def began_anew(verdict: Verdict) -> bool:
    """Whether a predictor has begun anew since the change of its verdict."""
    change = verdict.change
    return verdict.state == CHANGED and change is not None and (verdict.anew or 0) >= change.step


def alarm_count(run: FollowedRun) -> int:
    """Return the number of alarms of all predictors so far."""
    told = sum(standing(one).alarms for one in (*run.snapshots.values(), *run.drifts.values()))
    return max(told, sum(map(len, run.alarms.values())))


def _of_predictor(floor: Snapshot, run: FollowedRun) -> str:
    """Return whose floor it is, of several predictors."""
    return f"{floor['predictor']}: " if floor["predictor"] and len(run.names) > 1 else ""


def changes(run: FollowedRun) -> str:
    """Return a card of what has changed: the floor, the kinds, and the columns, with small pictures; or nothing."""
    set_floors, found = floors(run.drifts), pictures(run.drifts)
    said = "".join(
        f"<p{' class=alarm' if one['below'] else ''}>{text(_of_predictor(one, run) + one['sentence'], 600)}</p>"
        for name, one in set_floors.items()
        if not one["below"] or run.verdict is None or (run.verdict.state, run.verdict.predictor) != (BELOW, name)
    )
    # What watches a series has no evidence, and no objects.
    objects = found or any(standing(one).evidence for name, one in run.drifts.items() if name not in set_floors)
    if not objects and not said:
        return ""
    head = "Objects and classes: like before in the latest examples" if objects and not found else "What has changed"
    items = "".join(
        f"<div><p><b>{text(one.words, 300)}</b>, since {text(one.since)}</p>{picture(one)}</div>"
        for one in found[:PICTURES]
    )
    items = f'<div class="parts">{items}</div>' if items else ""
    notes = ["Grey: shares of the values before; red: after."] if any(one.bars for one in found) else []
    if len(found) > PICTURES:
        notes.insert(0, f"And {len(found) - PICTURES} more: {'; '.join(one.words for one in found[PICTURES:])}.")
    fine = f'<p class="fine">{text(" ".join(notes), 1000)}</p>' if notes else ""
    return f'<section class="card wide changes"><h2>{head}</h2>{said}{items}{fine}</section>'


def picture(one: Picture) -> str:
    """Return bars of the shares before a change beside those after it; nothing where there are none."""
    if not one.bars:
        return ""
    top = max(max(bar.before, bar.after) for bar in one.bars) or 1.0
    width, bars = 100 / len(one.bars), ""
    for place, bar in enumerate(one.bars):
        for half, (value, colour) in enumerate(((bar.before, "grey"), (bar.after, "alarm"))):
            height = 30 * value / top
            bars += (
                f'<rect class="fill {colour}" x="{width * (place + half * 0.45 + 0.05):.2f}" '
                f'width="{width * 0.42:.2f}" y="{30 - height:.2f}" height="{height:.2f}"/>'
            )
    said = ", ".join(f"{bar.to}: {' to '.join(shares(bar.before, bar.after))}" for bar in one.bars)
    few = len(one.bars) <= NAMED
    ends = "".join(f"<span>{text(bar.to, 24)}</span>" for bar in (one.bars if few else (one.bars[0], one.bars[-1])))
    return (
        f'<svg class="bar" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label="{text(said, 600)}">'
        f'{bars}</svg><p class="ends{" each" if few else ""}">{ends}</p>'
    )


# --------------------------------------------------------------------------- tables


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls by itself on a narrow screen."""
    body = "".join(map(_row, rows))
    return f'<div class="table"><table><thead>{_row(header, "th")}</thead><tbody>{body}</tbody></table></div>'


def summary(run: FollowedRun) -> str:
    """Return one line for each predictor."""
    found = {name: run.standing(name) for name in run.snapshots}
    numbers = [key for key in OF_NUMBERS if any(key in one.means for one in found.values())]
    keys = ("accuracy",) if numbers else ("accuracy", "lower", "upper", "log_loss", "brier")
    levels = sorted({level for one in found.values() for level in one.errors}, key=float)
    headings = [run.right, *(key.replace("_", " ") for key in keys[1:]), *(() if numbers else ("ECE",))]
    headings += [*(OF_NUMBERS[key] for key in numbers), *(f"errors at {level}" for level in levels)]
    rows = []
    for name, one in found.items():
        own = [f"{one.means[key]:.4g}" if key in one.means else "–" for key in numbers] or [share(one.ece)]
        rows.append([
            text(name), *(share(one.means.get(key)) for key in keys), *own,
            *(share(one.errors.get(level)) for level in levels), f"{one.alarms:,}" if one.watched else "–",
        ])  # fmt: skip
    return table(("predictor", *headings, "alarms"), rows)


def verdict_on(right: bool, told: Judged) -> str:
    """Return whether a prediction came true."""
    return f'<b class="{"right" if right else "wrong"}">{told.yes if right else told.no}</b>'


def judged(prediction: Any) -> str:
    """Return what an outcome is compared with: the label, or all that a set or an interval holds."""
    return kind_of(prediction).judged_by(prediction, lambda of: label(of, 24))


def said(prediction: Any) -> tuple[str, str, bool]:
    """Return the label of a prediction, its claim, and whether its best class is another."""
    kind = kind_of(prediction)
    best = kind.best(prediction, lambda of: label(of, 24))
    beside = f' <span class="fine">best: {best}</span>' if best else ""
    return label(prediction.label) + beside, kind.claim(prediction, lambda of: label(of, 24)), bool(best)


def _when(seconds: float) -> str:
    return when(seconds) if seconds else "–"


def outcomes(run: FollowedRun, name: str) -> str:
    """Return the latest questions whose labels have come: what was said, and what came true."""
    more = ("true label", "{}", "answers late")
    found = run.outcomes[:LATEST]
    said = _asked(found, name, "label came", more, lambda one, right: (label(one.y), right, f"{one.delay:,}"))
    return said or "<p>No label has come yet.</p>"


def latest(run: FollowedRun, name: str) -> str:
    """Return the latest questions, whether or not their labels have come."""

    def state(one: Any, right: str) -> tuple[str, ...]:
        return f'<span class="{one.status}">{one.status}</span>', label(one.y) if right else "", right

    return _asked(run.latest, name, "time", ("status", "true label", "{}"), state) or "<p>No question yet.</p>"


def _asked(
    found: Sequence[Any], name: str, time: str, more: Sequence[str], cells: Callable[[Any, str], Sequence[str]]
) -> str:
    """Return a table of questions and what was said of them, with more columns; nothing if there are none.

    `{}` among the columns stands for what is asked of an outcome. Of sets only the set is shown: no label of it alone
    is compared with the true one.
    """
    if not found:
        return ""
    kind, rows, others = kind_of(found[0].predictions[name]), [], False
    told, sets = kind.judged, isinstance(kind, SetKind)
    for one in found:
        prediction = one.predictions[name]
        label_of, claim, best = said(prediction)
        others = others or best
        right = verdict_on(kind.right(prediction, one.y), told) if one.status == "answered" else ""
        rows.append((_when(one.time), identity(one.id), *(() if sets else (label_of,)), claim, *cells(one, right)))
    note = f"<p class='fine'>{BEST}</p>" if others else ""
    claimed = told.said if isinstance(kind, ErrorKind) else "claimed"
    header = (time, "id", *(() if sets else ("label",)), claimed, *(one.format(told.asked) for one in more))
    return table(header, rows) + note


def parameters(run: FollowedRun) -> str:
    """Return the parameters of the predictors and their monitors."""
    rows = [
        (text(name), f"<code>{text(run.predictors.get(name, '–'), 2000)}</code>",
         f"<code>{text(run.monitors.get(name, '–'), 2000)}</code>")
        for name in (*run.names, *run.objects)
    ]  # fmt: skip
    return f'<div class="parameters">{table(("predictor", "is", "watched by"), rows)}</div>'
