"""The first screen of the page: what to think of the run now, for somebody who looks for five seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import time
from typing import Any, NamedTuple

from venn.monitors.alarms import shares
from venn.monitors.kinds import kind_of
from venn.monitors.verdict import (
    BELOW,
    CHANGED,
    CLAIMED,
    DOUBTFUL,
    EARLY,
    OF_CLASSES,
    OF_OBJECTS,
    USELESS,
    Verdict,
)
from venn.show.page import memory, words
from venn.show.page.feed import Feed, FollowedRun
from venn.show.page.words import ago, clock, text
from venn.show.view import Recent, answers, counting, recent, ripening, unlabelled

SILENT, BROKEN, WAITING, ENDED = "silent", "broken", "waiting", "ended"
SHORT = {EARLY: "too early", USELESS: "guesses", BELOW: "below floor"}  # in a table
GRAVE = CHANGED, BELOW  # shown even where nothing arrives
OUTCOMES, SPELLED, ROWS = 40, 5, 6  # how many of each there are room for
LEAST_RANGE, MARGIN = 0.2, 1.25  # of the bar of an error rate
SENTENCE = 1000

#: What each state means, for somebody who has not read about it.
MEANINGS = {
    BELOW: "It does less than you ask of it: the floor that was set is not kept.",
    CHANGED: "Do not rely on it: what it claims no longer holds.",
    USELESS: "Do not decide by it: what it claims holds, but says no more than how frequent the classes are.",
    DOUBTFUL: "Watch it: what it claims may no longer hold.",
    EARLY: "There are not enough labels yet to judge it.",
    CLAIMED: "Fine so far: nothing speaks against what it claims.",
    SILENT: "Nothing arrives: the figures are old.",
    BROKEN: "The file of the run cannot be read: the figures are old.",
    WAITING: "There is nothing to show yet.",
    ENDED: "The run has come to its end: the figures are final.",
}

#: The same of "as claimed" in a run that has rung.
AGAIN = "Fine lately, after an alarm: nothing was found in the latest answers."
#: The same of "changed", where the predictor has begun anew since.
ANEW = "It began anew after the change: what it claims now rests on the examples since then."

#: A shape for each state, so that colour is not needed: on a square of 24.
SHAPES = {
    BELOW: '<path d="M1 2h22L12 22Z"/><path class="cut" d="M12 5v7M12 14.5v2"/>',
    CHANGED: '<path d="M12 2 23 22H1Z"/><path class="cut" d="M12 9v6M12 17.5v2"/>',
    DOUBTFUL: '<path d="M12 1 23 12 12 23 1 12Z"/>'
    '<path class="cut" d="M12 6v7M12 16v1"/>',  # in small, a question mark would look like a letter that is missing
    USELESS: '<circle cx="12" cy="12" r="11"/><path class="cut" d="M6 12h12"/>',
    EARLY: '<circle cx="12" cy="12" r="11"/><path class="cut" d="M12 6v6l4 3"/>',
    CLAIMED: '<circle cx="12" cy="12" r="11"/><path class="cut" d="m6.5 12.5 4 4 7-8"/>',
    SILENT: '<path d="M4 3h5v18H4zM15 3h5v18h-5z"/>',
    BROKEN: '<path d="m5 1 7 7 7-7 4 4-7 7 7 7-4 4-7-7-7 7-4-4 7-7-7-7Z"/>',
    ENDED: '<rect x="3" y="3" width="18" height="18" rx="2"/>',
    WAITING: '<circle cx="4" cy="12" r="3"/><circle cx="12" cy="12" r="3"/><circle cx="20" cy="12" r="3"/>',
}


class Status(NamedTuple):
    """What the first screen says of a run."""

    state: str  #: of the verdict, or `SILENT`, `BROKEN`, `WAITING`, `ENDED`
    since: str  #: since when, as plain text; empty where that is not known
    sentence: str  #: the verdict, or what is wrong with the file
    also: str  #: what must be known beside it
    rang: bool = False  #: whether the run has rung
    anew: bool = False  #: whether the predictor has begun anew since the change
    names: Mapping[str, str] = {}  #: moments within its texts, as HTML, with times that the script writes anew

    def html(self, told: str) -> str:
        """Return one of its texts as HTML."""
        return words.placed(told, self.names, SENTENCE)

    @property
    def meaning(self) -> str:
        """What the state means, for somebody who has not read about it."""
        if self.anew:
            return ANEW
        return AGAIN if self.rang and self.state == CLAIMED else MEANINGS[self.state]

    @property
    def title(self) -> str:
        """The state in one or two words."""
        return "cannot be read" if self.state == BROKEN else self.state


def status(feed: Feed, now: float | None = None) -> Status:
    """Return what to think of a run: its verdict, unless it has ended, nothing arrives, or it cannot be read.

    A change is shown even then. What held before a silence is said beside it, and not as if it
    held now.
    """
    now = time() if now is None else now
    run = feed.run
    if run is None:
        return Status(WAITING, "", feed.complaint or "", "")
    held = "" if run.verdict is None else _sentence(run, run.verdict)
    names = {} if run.verdict is None else memory.named(run, run.verdict)
    times = (run.created, run.since, run.ended, run.counts.time)
    names |= {clock(one): words.when(one, "zone") for one in times if one}
    return _status(feed, run, held, now)._replace(names=names)


def _status(feed: Feed, run: FollowedRun, held: str, now: float) -> Status:
    if feed.complaint is not None:
        return Status(BROKEN, "", feed.complaint, held and f"before that: {held}")
    if not run.counts.asked and run.ended is None:
        return Status(WAITING, "", "no question yet", "")
    quiet = f"no event for {ago(now - run.counts.time)}, since {clock(run.counts.time)}"
    if run.verdict is None:
        found = Status(EARLY, "", "no label has come yet", "")
    else:
        found = _judged_as(run, run.verdict, _since(run, run.verdict, now))
    if run.ended is not None:
        end = f"{clock(run.ended)}, {ago(now - run.ended)} ago"
        if found.state in GRAVE:
            return found._replace(also=f"{found.also} · {ENDED}: {end}".removeprefix(" · "))
        return Status(ENDED, end, "", f"at its end: {found.sentence}")
    if not run.silent(now):
        return found
    if found.state in GRAVE:
        return found._replace(also=f"{found.also} · {SILENT}: {quiet}".removeprefix(" · "))
    return Status(SILENT, quiet, "", f"before that: {found.sentence}")


def _judged_as(run: FollowedRun, verdict: Verdict, since: str) -> Status:
    """Return what a verdict says of a run."""
    rang = words.alarm_count(run) > 0
    said = _sentence(run, verdict)
    advice = "" if verdict.advice in said else verdict.advice
    return Status(verdict.state, since, said, advice, rang, words.began_anew(verdict))


def _sentence(run: FollowedRun, verdict: Verdict) -> str:
    """Return the verdict in one sentence, named where there are several predictors."""
    return str(verdict) if len(run.names) > 1 else verdict.sentence


def _since(run: FollowedRun, verdict: Verdict, now: float) -> str:
    if verdict.since is None:
        calm = verdict.state == CLAIMED and run.monitors and run.created and not words.alarm_count(run)
        return f"no alarm since it began, {clock(run.created)}, {ago(now - run.created)} ago" if calm else ""
    at = f", {clock(run.since)}, {ago(now - run.since)} ago" if run.since else ""
    if verdict.at is not None and verdict.at.time is not None and verdict.state != CLAIMED:
        return f"since about question {verdict.at.number:,}{at}"
    if verdict.evidence == OF_OBJECTS:
        return f"since about question {verdict.since:,}{at}"
    if verdict.state in (*GRAVE, USELESS) or verdict.evidence == OF_CLASSES:
        return f"since about answer {verdict.since:,}{at}"
    return f"again: the last alarm was at answer {verdict.since:,}{at}"


# ---------------------------------------------------------------------------- parts


def shape(state: str) -> str:
    """Return the shape of a state."""
    return f'<svg class="shape" viewBox="0 0 24 24" aria-hidden="true">{SHAPES[state]}</svg>'


def of_state(state: str) -> str:
    """Return the class of a state in the style sheet."""
    return state.replace(" ", "-")


def head(feed: Feed) -> str:
    """Return the first screen."""
    run, found = feed.run, status(feed)
    card = banner(found, feed.path.name)
    if run is None:
        return f'<div class="first">{card}</div>'
    old = " old" if found.state in (SILENT, BROKEN) else ""
    parts = (card, words.changes(run), lately(run), memory.card(run), outcomes(run))
    return f'<div class="first{old}">{"".join(parts)}</div>'


def banner(found: Status, name: str) -> str:
    """Return the status in colour, in a shape and in words."""
    said = [f'<p class="name">{text(name)}</p>'] if name else []
    said += [
        f'<p class="title" role="heading" aria-level="1">{found.title}</p>',
        f'<p class="means">{found.meaning}</p>',
    ]
    said += [f'<p class="since">{found.html(found.since)}</p>'] if found.since else []
    said += [f'<p class="sentence">{found.html(found.sentence)}</p>'] if found.sentence else []
    said += [f'<p class="also">{found.html(found.also)}</p>'] if found.also else []
    colour = DOUBTFUL if found.anew else found.state  # what it says now may be true; only the change is told
    return (
        f'<section class="status {of_state(colour)}" role="status">{shape(colour)}<div>{"".join(said)}</div></section>'
    )


def concluded(run: FollowedRun) -> str:
    """Return the verdict at the end of what was read, for a report; nothing before the first."""
    verdict = run.verdict
    if verdict is None:
        return ""
    found = _judged_as(run, verdict, "")
    return banner(found._replace(names=memory.named(run, verdict)), "") + lately(run)


def lately(run: FollowedRun) -> str:
    """Return what came true lately beside what was claimed: in large of the verdict's predictor, then of each."""
    name, verdict = run.worst, run.verdict
    found = recent(run.snapshot(name))
    if found is None or verdict is None:
        return ""
    share, claim = numbers(found)
    of = f"{text(name)}, " if len(run.names) > 1 else ""
    span = f"all {found.size:,}" if found.size == found.step else f"the last {found.size:,}"
    bad = verdict.state in (*GRAVE, DOUBTFUL, USELESS) and verdict.predictor == name
    return (
        f'<section class="card lately"><h2>{of}{span} answers</h2><div class="pair"><p><b>{share}</b> {found.what}</p>'
        f"<p><b>{claim}</b> claimed</p></div>{bar(found, bad)}{each(run)}{waiting(run, name)}</section>"
    )


def waiting(run: FollowedRun, name: str) -> str:
    """Return how promised answers and ripening labels stand, and what a predictor claims where no label has come."""
    account, silent = answers(run.snapshot(name))
    parts = (account, f"It answers nothing: {silent}" if silent else "", ripening(run.snapshot(name)))
    return "".join(f"<p class='fine'>{text(one, SENTENCE)}.</p>" for one in parts if one) + claimed(run, name)


def claimed(run: FollowedRun, name: str) -> str:
    """Return what a predictor claims where no label has come; nothing where it claims none."""
    found = unlabelled(run.snapshot(name))
    if found is None:
        return ""
    lower, upper = shares(found.lower, found.upper)
    claim = lower if lower == upper else f"{lower} to {upper}"
    return (
        f"<p class='fine'>{found.questions:,} questions without a label: {claim} claimed. "
        "Nothing is proved of that if the stream has changed.</p>"
    )


def numbers(found: Recent) -> tuple[str, str]:
    """Return the share that came true and the claim, with the digits of the verdict's sentence."""
    lower, upper, share = shares(found.lower, found.upper, found.share)
    if found.lower == found.upper:
        return share, lower
    return share, f"at most {upper}" if found.lower == 0 and found.what == "wrong" else f"{lower} to {upper}"


def bar(found: Recent, bad: bool) -> str:
    """Return the claim as a band, and what came true as a mark, on a bar."""
    end = 1.0 if found.what == "right" else min(1.0, max(LEAST_RANGE, MARGIN * found.share))
    low, high, at = (100 * min(value / end, 1.0) for value in (found.lower, found.upper, found.share))
    low, high = min(low, 99.0), max(high, min(low, 99.0) + 1)
    share, claim = numbers(found)
    promise = "claimed while nothing has changed" if found.guaranteed else "said, not guaranteed"
    return (
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{share} {found.what}, {claim} claimed"><rect class="track" y="3" width="100" height="4"/>'
        f'<rect class="claim" x="{low:.2f}" y="1" width="{high - low:.2f}" height="8"/>'
        f'<rect class="mark{" bad" if bad else ""}" x="{min(at, 99.2):.2f}" width=".8" height="10"/></svg>'
        f'<p class="ends"><span>0</span><span>band: {promise}</span>'
        f"<span>{shares(end)[0].removesuffix('.00')}</span></p>"
    )


def each(run: FollowedRun) -> str:
    """Return one line for each predictor and for the objects, if there are several."""
    if len(run.names) + len(run.objects) == 1:
        return ""
    found, rows = counting({**run.snapshots, **run.drifts}), []
    for name in run.names[:ROWS]:
        lately = recent(run.snapshot(name))
        share, claim = ("–", "–") if lately is None else numbers(lately)
        what = "" if lately is None else f"{lately.what} "
        rows.append((text(name, 24), f"{what}{share}", claim, _mini(found.get(name), name in run.snapshots)))
    rows += [(text(name, 24), "–", "–", _mini(found.get(name), False)) for name in run.drifts]
    more = f"<p class='fine'>and {len(run.names) - ROWS} more, below</p>" if len(run.names) > ROWS else ""
    return words.table(("predictor", "lately", "claimed", "now"), rows) + more


def _mini(verdict: Verdict | None, seen: bool) -> str:
    """Return the state of one predictor; of one that was `seen` and has no verdict that counts, that nobody watches."""
    if verdict is None and seen:
        return "not watched"
    state = EARLY if verdict is None else verdict.state
    return f'<span class="mini {of_state(state)}">{shape(state)}{SHORT.get(state, state)}</span>'


def outcomes(run: FollowedRun) -> str:
    """Return what came of the latest predictions whose labels have come, of the verdict's predictor."""
    name = run.worst
    judged = list(_judged(run.outcomes[:OUTCOMES], name))
    if not judged:
        return '<section class="card outcomes"><h2>Outcomes: no label has come yet</h2></section>'
    wrong = sum(not right for _, right in judged)
    late = [seen.delay for seen, _ in judged if seen.delay]
    waits = f"; labels {_range(min(late), max(late))} answers late" if late else ""
    told = kind_of(judged[0][0].predictions[name]).judged
    cells = "".join(f'<i class="{"right" if right else "wrong"}"></i>' for _, right in judged)
    rows = [
        (
            words.identity(seen.id, 24),
            words.judged(seen.predictions[name]),
            words.label(seen.y, 24),
            words.verdict_on(right, told),
        )
        for seen, right in judged[:SPELLED]
    ]
    of = f"{text(name, 24)}: " if len(run.names) > 1 else ""
    return (
        f'<section class="card outcomes"><h2>{of}{wrong} of the last {len(judged)} {told.failed}</h2>'
        f'<p class="fine">newest first; crossed: {told.failed.partition(" ")[2]}{waits}</p>'
        f'<p class="strip" role="img" aria-label="newest first: {wrong} of {len(judged)} {told.failed}">{cells}</p>'
        f"{words.table(('id', told.said, 'true', told.asked), rows)}</section>"
    )


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _judged(seen: Sequence[Any], name: str) -> Iterator[tuple[Any, bool]]:
    """Yield questions and whether what was claimed for them came true."""
    for one in seen:
        prediction = one.predictions[name]
        yield one, kind_of(prediction).right(prediction, one.y)
