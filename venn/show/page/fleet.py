"""The page of a fleet: a line for each key that is named, the others as counts and small pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import isnan
from time import localtime, strftime
from typing import NamedTuple
from urllib.parse import quote

from venn.show.door import HTML, Reply, Routes
from venn.show.page.page import STYLE, whole_page

#: As of the page of a run, but that its search asks this server.
POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
BARS = 12
FOUND = 50  # keys of a search
HEIGHT, WIDTH, APART = 60, 14, 2  # of the bars of a picture
REFRESH = 5  # seconds
ERRORS = (OSError, RuntimeError, ValueError)
Events = Callable[[str], Sequence[tuple[str, str, float]]]


class ShownKey(NamedTuple):
    """What is shown of a key.

    Examples
    --------
    >>> ShownKey("shop-7", 12, 10, 2, 0.8, -0.2, 0, "", 0, 0.0).pending
    2
    """

    key: str
    asked: int
    answered: int
    pending: int
    accuracy: float  #: NaN of numbers, and before the first answer
    evidence: float  #: base 10 logarithm of its e-value
    since: int  #: if it is named: the answer from which on a change shows
    kind: str
    named: int  #: the answer after which it was named first; 0: it was not
    time: float  #: of its last event


class ShownFleet(NamedTuple):
    """What is shown of a fleet.

    Examples
    --------
    >>> ShownFleet("shops", "No key of 0 is known to have changed.", "...", (), (), 0.0).answered
    0
    """

    title: str
    verdict: str
    promise: str
    names: tuple[str, ...]  #: of the keys that are named, the clearest first
    keys: tuple[ShownKey, ...]
    time: float

    @property
    def answered(self) -> int:
        """Answers of all keys."""
        return sum(one.answered for one in self.keys)


# ----------------------------------------------------------------------------------------------------------------- HTML


def _picture(title: str, values: Sequence[float], form: str = "{:.3g}") -> str:
    """Return how many values lie where, as bars."""
    known = [one for one in values if not isnan(one)]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    counts = [0] * BARS
    for one in known:
        counts[min(int((one - low) / span * BARS), BARS - 1)] += 1
    top, step = max(counts), WIDTH + APART
    bars = "".join(
        f'<rect x="{i * step}" y="{HEIGHT - round(HEIGHT * count / top)}" width="{WIDTH}" '
        f'height="{round(HEIGHT * count / top)}" fill="#2f86c5"><title>{count:,}</title></rect>'
        for i, count in enumerate(counts)
    )
    ends = f"<p class='fine'>{form.format(low)} to {form.format(high)}</p>"
    return (
        f'<div><h2>{escape(title)}</h2><svg viewBox="0 0 {BARS * step} {HEIGHT}" width="{BARS * step}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title)}">{bars}</svg>{ends}</div>'
    )


def _when(time: float) -> str:
    return strftime("%Y-%m-%d %H:%M", localtime(time)) if time else ""


def _share(value: float) -> str:
    return "" if isnan(value) else f"{value:.2f}"


def _link(key: str, linked: bool) -> str:
    return f'<a href="key?of={quote(key, safe="")}">{escape(key)}</a>' if linked else escape(key)


def _lines(keys: Sequence[ShownKey], linked: bool) -> str:
    """Return a line for each of some keys."""
    heads = ("key", "since about", "of", "what speaks against it", "log10 of its e-value", "right", "last event")
    rows = "".join(
        f"<tr><td>{_link(one.key, linked)}</td><td>{one.since or ''}</td><td>{one.answered:,}</td>"
        f"<td>{escape(one.kind)}</td><td>{one.evidence:.1f}</td><td>{_share(one.accuracy)}</td>"
        f"<td>{_when(one.time)}</td></tr>"
        for one in keys
    )
    return f"<table><thead><tr>{''.join(f'<th>{one}</th>' for one in heads)}</tr></thead><tbody>{rows}</tbody></table>"


def _card(title: str, inner: str) -> str:
    return f'<section class="card wide"><h2>{escape(title)}</h2>{inner}</section>\n'


def _body(fleet: ShownFleet, linked: bool) -> list[str]:
    """Return the cards of a fleet."""
    by_key = {one.key: one for one in fleet.keys}
    named = [by_key[name] for name in fleet.names]
    rest = [one for one in fleet.keys if one.key not in set(fleet.names)]
    cards = [_card(f"{len(named):,} {_keys(named)} that changed", _lines(named, linked))] if named else []
    pictures = [
        _picture("answers a key", [float(one.answered) for one in rest], "{:,.0f}"),
        _picture("right", [one.accuracy for one in rest], "{:.2f}"),
        _picture("log10 of e-values", [one.evidence for one in rest], "{:.2f}"),
    ]
    told = f"<p>{sum(one.answered for one in rest):,} answers, {sum(one.pending for one in rest):,} questions wait</p>"
    title = f"{'The other' if named else 'All'} {len(rest):,} {_keys(rest)}"
    return [*cards, _card(title, f'{told}<div class="parts">{"".join(pictures)}</div>')]


def _keys(some: Sequence[ShownKey]) -> str:
    return "key" if len(some) == 1 else "keys"


def _header(fleet: ShownFleet) -> str:
    return (
        f"<h1>{escape(fleet.title)}</h1><p>{escape(fleet.verdict)}</p>"
        f"<p class='fine'>{len(fleet.keys):,} keys · {fleet.answered:,} answers · {escape(fleet.promise)} · "
        f"{_when(fleet.time)}</p>"
    )


def render_fleet(fleet: ShownFleet) -> str:
    """Return the report of a fleet: one HTML file that needs no other.

    Examples
    --------
    >>> fleet = ShownFleet("shops", "No key of 0 is known to have changed.", "...", (), (), 0.0)
    >>> "All 0 keys" in render_fleet(fleet)
    True
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{STYLE}</style>'
    return whole_page(fleet.title, head, _header(fleet), _body(fleet, linked=False))


class FleetPage:
    """The page of a fleet, for `venn.show.server.serving`.

    Parameters
    ----------
    read : callable
        Returns what the fleet shows now, or raises OSError, RuntimeError or ValueError.
    events : callable
        Returns what has happened to a key lately: what, the id, and when.
    """

    def __init__(self, read: Callable[[], ShownFleet], events: Events) -> None:
        self._read, self._events = read, events

    def routes(self) -> Routes:
        """Return the addresses of the page."""
        return {
            "/": self._first,
            "/key": self._key,
            "/page.css": lambda _: Reply("text/css; charset=utf-8", STYLE.encode()),
        }

    def _page(self, title: str, header: str, main: Sequence[str], again: bool) -> Reply:
        head = '<link rel="stylesheet" href="page.css">'
        head += f'<meta http-equiv="refresh" content="{REFRESH}">' if again else ""
        return Reply(HTML, whole_page(title, head, header, main).encode(), {"Content-Security-Policy": POLICY})

    def _first(self, asked: Mapping[str, list[str]]) -> Reply:
        """Return all keys, or those that somebody looks for."""
        said = asked.get("find", [""])[0]
        try:
            fleet = self._read()
        except ERRORS as error:
            return self._page("fleet", f"<h1>fleet</h1><p>{escape(str(error))}</p>", [], again=True)
        search = (
            f'<form method="get" action="./"><input type="search" name="find" value="{escape(said)}" '
            'aria-label="a key" placeholder="a key"> <button>find</button></form>'
        )
        found = ""
        if said:
            keys = [one for one in fleet.keys if said.casefold() in one.key.casefold()]
            keys.sort(key=lambda one: (one.key != said, one.key))
            more = f"<p>{len(keys):,} keys, {FOUND} are shown</p>" if len(keys) > FOUND else ""
            found = _lines(keys[:FOUND], linked=True) + more if keys else f"<p>no key holds {escape(said)!r}</p>"
        cards = [_card("Find a key", search + found), *_body(fleet, linked=True)]
        return self._page(fleet.title, _header(fleet), cards, again=not said)

    def _key(self, asked: Mapping[str, list[str]]) -> Reply:
        """Return the page of one key."""
        name = asked.get("of", [""])[0]
        try:
            fleet, happened = self._read(), list(self._events(name))
        except ERRORS as error:
            return self._page("fleet", f"<h1>fleet</h1><p>{escape(str(error))}</p>", [], again=True)
        back = f'<p><a href="./">all keys of {escape(fleet.title)}</a></p>'
        one = next((one for one in fleet.keys if one.key == name), None)
        if one is None:
            return self._page(fleet.title, f"<h1>{escape(name)}</h1>{back}<p>there is no such key</p>", [], again=False)
        told = (
            f"It changed, since about its answer {one.since:,}: {one.kind}."
            if name in fleet.names
            else "Nothing is known to have changed."
        )
        facts = (
            f"<p>{one.asked:,} asked, {one.answered:,} answered, {one.pending:,} wait; right in "
            f"{_share(one.accuracy) or 'none'}; log10 of its e-value {one.evidence:.1f}</p>"
        )
        rows = "".join(
            f"<tr><td>{escape(what)}</td><td>{escape(id)}</td><td>{_when(time)}</td></tr>"
            for what, id, time in happened
        )
        table = f"<table><thead><tr><th>what</th><th>id</th><th>when</th></tr></thead><tbody>{rows}</tbody></table>"
        cards = [_card("What it did", facts), _card("Since its state was kept", table if rows else "<p>nothing</p>")]
        return self._page(name, f"<h1>{escape(name)}</h1>{back}<p>{escape(told)}</p>", cards, again=True)
