"""What the page remembers: the changes on a strip of time, each with its alarms, and a question found by its id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from venn.monitors.episodes import NOTHING_DONE, Episode
from venn.monitors.kinds import SetKind, kind_of
from venn.monitors.verdict import Moment, Verdict
from venn.show.page import words
from venn.show.page.feed import FollowedRun
from venn.show.page.words import moment, placed, text, tiles, when
from venn.show.repeats import AlarmGroup, AlarmReporter, grouped
from venn.show.view import Snapshot, floors

CHANGES, MOST = 100, 20  # latest changes, and lines of alarms of each
BROKEN, SEEN = "broken", "seen"  # classes of the style sheet: claims are broken, or only objects or classes changed


def strip(run: FollowedRun) -> dict[str, Any]:
    """Return the changes as spans of a line, for the script: over time, or over questions where no time is known.

    Returns
    -------
    dict
        ``timed``, whether numbers are seconds since 1970; ``from`` and ``to``, its ends; ``spans``, each with its
        ``number``, ``from`` and ``to``, its class ``c``, whether it ``lasts``, and what it is to ``say``.
    """
    ends = [at for one in run.episodes for at in (one.first, one.ended) if at is not None]
    timed = bool(run.created) and all(at.time is not None or at.number < 1 for at in ends)

    def at(one: Moment) -> float:
        known = run.created if one.time is None else one.time  # what is older than the run has no time
        return known if timed else float(one.number)

    first, last = (run.created, run.ended or run.counts.time) if timed else (1.0, float(run.counts.asked))
    first = min([first, *(at(one.first) for one in run.episodes)])
    spans = [
        {
            "number": one.number, "from": at(one.first), "to": last if one.ended is None else at(one.ended),
            "c": BROKEN if one.claims else SEEN, "lasts": one.lasts, "say": _sentence(one),
        }
        for one in run.episodes[-CHANGES:]
    ]  # fmt: skip
    return {"timed": timed, "from": first, "to": max(last, first), "spans": spans}


def _sentence(one: Episode) -> str:
    """Return a change in words without times, which would be those of the server's zone."""
    to = "" if one.ended is None else f" to {one.ended.number:,}"
    return f"change {one.number}, from question {one.first.number:,}{to}: {one.kind or one.reason}"


def card(run: FollowedRun, most: int = 2) -> str:
    """Return the first screen's card of changes: how many, the strip, and the latest ones in a line each."""
    count, found = words.alarm_count(run), list(reversed(run.episodes))
    rang = f", {count:,} alarm{'s' * (count > 1)}" if count else ""
    if not found:
        none = f"none{rang}" if run.monitors else "none: no predictor has a monitor"
        return f'<section class="card rung"><h2>Changes: {none}</h2></section>'
    lines = "".join(f"<li>{_line(one)}{_again(run, one)}</li>" for one in found[:most])
    return (
        f'<section class="card rung"><h2>Changes: {len(found):,}{rang}</h2>'
        f'<div class="span" data-strip></div><ul class="short">{lines}</ul></section>'
    )


def _line(one: Episode) -> str:
    """Return a change in a line: since when, whether it lasts; what had changed, or who rang.

    What changes now, a card of its own says.
    """
    now = "it lasts" if one.ended is None else f"over at {moment(one.ended, 16)}"
    what = text(one.kind if one.kind and not one.lasts else f"{', '.join(one.watchers)} rang", 160)
    chosen = f'<button type="button" class="to {_class(one)}" data-episode="{one.number}">{one.number}</button>'
    return f"{chosen} since {moment(one.first, 16)}: {now}. {what[:1].upper()}{what[1:]}"


def _again(run: FollowedRun, one: Episode) -> str:
    """Return which questions are to be looked at again because of a change that broke what is claimed."""
    return "".join(f". {of[:1].upper()}{of[1:]}: {what}" for of, what in again(run, one).items() if one.claims)


def _class(one: Episode) -> str:
    return f"{BROKEN if one.claims else SEEN}{' lasts' if one.lasts else ''}"


def changes(run: FollowedRun, most: int = MOST) -> str:
    """Return the verdict in full, and the latest changes, each with its alarms: the newest first."""
    full = "" if run.verdict is None else f"<p>{placed(run.verdict.details, named(run, run.verdict))}</p>"
    reporter = AlarmReporter()
    loose = alarms(run.by_episode[0], reporter, most, 0 if run.episodes else words.alarm_count(run))
    found = list(zip(run.episodes, run.by_episode[1:], strict=True))[::-1]
    if not found and not loose:
        return f"{full}<p>No alarm.{'' if run.monitors else ' No predictor has a monitor.'}</p>"
    told = "".join(episode(run, one, rung, reporter, most) for one, rung in found[:CHANGES])
    more = f"<p class='fine'>and {len(found) - CHANGES:,} before</p>" if len(found) > CHANGES else ""
    return f"{full}{told}{more}{loose}"


def episode(run: FollowedRun, one: Episode, rung: Sequence[Any], reporter: AlarmReporter, most: int) -> str:
    """Return a change as a part that opens: what was seen of it, what was done, and its alarms."""
    begun = [alarm for _, alarm in rung if alarm["time"]]
    shown = {
        "first question, about": moment(one.first),
        "first alarm": f"{text(', '.join(one.watchers), 120)}, at {moment(one.rang)}",
    }
    if begun:
        shown["it rang"] = when(min(alarm["time"] for alarm in begun), "zone")
    if one.kind:
        shown["what changed"] = text(one.kind, 400)
    shown |= {"it rests on": text(one.reason, 400), "done": done(run, one)}
    shown["ended"] = "it lasts" if one.ended is None else f"{moment(one.ended)}: {text(one.how, 160)}"
    shown |= again(run, one)
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in shown.items())
    moments = one.first, one.ended, one.anew
    return (
        f'<details class="episode {_class(one)}" id="episode-{one.number}"{" open" if one is run.episodes[-1] else ""}>'
        f"<summary><b>{one.number}</b> {placed(str(one), words.named(*moments), 600)}</summary>"
        f'<dl class="rows">{facts}</dl>{alarms(rung, reporter, most, one.alarms)}</details>'
    )


def _anew(run: FollowedRun, one: Episode) -> Any:
    """Return the label after which a predictor began anew because of a change, as `Watch.answer` does; None if none."""
    came = (each for each in run.answers.values() if each is not None)
    return None if one.anew is None else next((each for each in came if each.number == one.anew.number), None)


def done(run: FollowedRun, one: Episode) -> str:
    """Return what was done about a change. Where labels come late, a question that is older began nothing anew."""
    came = _anew(run, one)
    if came is not None and one.anew is not None:
        at = f" at {when(came.time)}" if came.time else ""
        of = Moment(one.anew.number, None, one.anew.id)
        return f"it began anew{at}, when the label of {moment(of)} came"
    return "nothing: it goes on as before" if one.done == NOTHING_DONE else placed(one.done, words.named(one.anew), 160)


def named(run: FollowedRun, verdict: Verdict) -> dict[str, str]:
    """Return what a verdict's sentence names, as HTML: a question, and the step after which it is to be relied on."""
    found = words.named(verdict.at)
    before = run.before(verdict.predictor)
    came = None if verdict.anew is None else run.answers.get(verdict.anew - before)
    if came is not None and came.time:
        found[f"after {verdict.after}"] = f"after {when(came.time, 'minute')} (question {came.asked:,})"
    return found


def doubted(run: FollowedRun, one: Episode) -> range:
    """Return which questions came between a change and its end, or until it began anew because of it."""
    came = _anew(run, one)
    low = any(floor["below"] for floor in floors(run.drifts).values())  # what began anew is no better for that
    last = run.counts.asked if one.ended is None else one.ended.number - 1
    if came is not None and not (low and one.lasts):
        last = min(last, came.asked)
    return range(max(one.first.number, 1), last + 1)


def again(run: FollowedRun, one: Episode) -> dict[str, str]:
    """Return these questions in words; nothing where there are none."""
    of = doubted(run, one)
    if not of:
        return {}
    name = "to look at again" if one.claims else "asked meanwhile"
    return {name: f"questions {of[0]:,} to {of[-1]:,}: {len(of):,}"}


def alarms(rung: Iterable[tuple[str, Snapshot]], reporter: AlarmReporter, most: int, count: int = 0) -> str:
    """Return alarms as a list, those together that follow one another, the newest first; nothing if there are none."""
    found = sorted(grouped(rung), key=lambda one: (one.last["time"], one.last["step"], one.name), reverse=True)[:most]
    if not found:
        return ""
    items = "".join(f"<li>{_group(one, reporter)}</li>" for one in found)
    shown = sum(one.count for one in found)
    count = max(count, shown)
    more = f", the latest {shown:,} of them:" if count > shown else ":"
    return f'<p class="alarm">{count:,} alarm{"s" * (count > 1)}{more}</p><ul>{items}</ul>'


def _group(one: AlarmGroup, reporter: AlarmReporter) -> str:
    at = f" · {when(one.first['time'])}" if one.first["time"] else ""
    more = f" <b>{one.more}.</b>" if one.more else ""
    return f"<b>{text(one.name)}</b>{at}: {text(reporter.sentence(one.first), 1000)}{more}"


def found(run: FollowedRun | None, said: str, questions: Sequence[Any]) -> str:
    """Return what was said of the questions that somebody looked for by what he `said`, and what came."""
    if run is None or not questions:
        return f"<p>No question has the id {text(said)}, nor this number.</p>"
    return "".join(_question(run, one) for one in questions)


def _question(run: FollowedRun, one: Any) -> str:
    """Return a question, of a `venn.online.watch.SeenQuestion`."""
    seen = one.seen
    shown = {"asked": when(seen.time, "zone"), "question": f"{one.number:,}"}
    if seen.status == "answered":
        shown |= {"its label": words.label(seen.y), "came": when(one.came, "zone"), "answers late": f"{seen.delay:,}"}
    else:
        shown["its label"] = "given up" if seen.status == "expired" else "has not come"
        shown |= {"given up": when(one.came, "zone")} if one.came else {}
        shown["answers since then"] = f"{one.since:,}"
    rows = []
    for name in run.names:
        prediction = seen.predictions[name]
        kind = kind_of(prediction)
        label, claim, _ = words.said(prediction)
        right = "–"
        if seen.status == "answered":
            right = words.verdict_on(kind.right(prediction, seen.y), kind.judged)
        rows.append((text(name), "" if isinstance(kind, SetKind) else label, claim, right))
    heads = ("predictor", "said", "claimed", "came true?")
    return f"<h3>{text(seen.id)}</h3>{tiles(shown, 'facts')}{words.table(heads, rows)}{_within(run, one.number)}"


def _within(run: FollowedRun, number: int) -> str:
    """Return during which change a question came, as far as that is known."""
    of = [
        one for one in run.episodes if one.first.number <= number and (one.ended is None or number < one.ended.number)
    ]
    if not of:
        return "<p class='fine'>It came during no change that was found.</p>"
    bad = any(one.claims and number in doubted(run, one) for one in of)
    look = "<p class='alarm'>Look at it again: what was claimed of it did not hold.</p>" if bad else ""
    return look + "".join(f"<p>It came during change {_line(one)}</p>" for one in of)
