"""A run in the browser: a page that asks for one document again and again, and a report that holds it."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from time import time
from typing import Any

from venn.show.door import HTML, Reply, Routes
from venn.show.page import charts, first, memory, words
from venn.show.page.feed import Feed, FollowedRun

HERE = Path(__file__).parent
SCRIPT, STYLE = ((HERE / file).read_text("utf-8") for file in ("page.js", "page.css"))
JSON = "application/json"
VERSION = sha256(f"{SCRIPT}{STYLE}".encode()).hexdigest()[:16]  # an open page of another version is loaded anew
CHOSEN, COMPARED, AHEAD = "chosen", "compared", "ahead"  # tables of columns
#: All that the page needs comes from its own server; no text becomes a script or a style.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Page:
    """The page of a run, for `venn.show.server.serving`.

    Parameters
    ----------
    feed : Feed
        Read when somebody asks.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed, self._made, self._looks = feed, dict[tuple[str, str], bytes](), -1

    def routes(self) -> Routes:
        """Return the addresses of the page."""
        return {
            "/": lambda _: Reply(HTML, PAGE.encode(), {"Content-Security-Policy": POLICY}),
            "/page.js": lambda _: Reply("text/javascript; charset=utf-8", SCRIPT.encode()),
            "/page.css": lambda _: Reply("text/css; charset=utf-8", STYLE.encode()),
            "/run.json": self._document,
            "/question.json": self._question,
        }

    def _question(self, asked: Mapping[str, list[str]]) -> Reply:
        """Return what was said of a question, and what came, for whoever looks for its id."""
        said = asked.get("id", [""])[0]
        questions = self._feed.find(said)
        found = {"words": {"found": memory.found(self._feed.run, said, questions)},
                 "waits": any(one.seen.status == "pending" for one in questions)}  # fmt: skip
        return Reply(JSON, json.dumps(found, separators=(",", ":")).encode())

    def _document(self, asked: Mapping[str, list[str]]) -> Reply:
        """Return the run; viewers who have seen the same share what is made."""
        key = asked.get("of", [""])[0], asked.get("seen", [""])[0]
        self._feed.look()
        if self._feed.looks != self._looks:
            self._looks, self._made = self._feed.looks, {}
        if key not in self._made:
            self._made[key] = json.dumps(document(self._feed, *key), allow_nan=False, separators=(",", ":")).encode()
        return Reply(JSON, self._made[key])


def document(feed: Feed, of: str = "", seen: str = "") -> dict[str, Any]:
    """Return what the page shows of a run.

    Parameters
    ----------
    feed : Feed
    of : str
        The predictor chosen; by default that of the verdict.
    seen : str
        What the document said that the viewer has: only what is new is given.

    Returns
    -------
    dict
        ``page``, the version of the script; ``title``; ``seen``; ``words``, HTML by place; and if there is news
        ``names`` and ``of``, the predictors and the chosen one, ``charts`` by place, ``strip``, the changes, and
        ``tables``, columns by name, from the row ``after`` on.
    """
    run, said = feed.run, {"head": first.head(feed)}
    title = f"{first.status(feed).title} · {feed.path.name}"
    found: dict[str, Any] = {"page": VERSION, "title": title, "seen": "", "words": said}
    if run is None:
        return found
    said["facts"] = words.facts(run.counts, run.rate if run.ended is None else None)
    name = of if of in run.names else run.worst
    # Rows are added to those of a viewer who has this run, this predictor, these columns, and lost no point since.
    same = _mark(run.key, run.thinned, name, list(charts.table(run, name, len(run.points))))
    now = [same, str(len(run.points)), str(run.version), _mark(said)]
    before = [*seen.split("."), "", "", "", ""]
    found |= {"seen": ".".join(now), "words": {} if before[3] == now[3] else said}
    if before[:3] == now[:3]:
        return found
    after = int(before[1]) if before[0] == same and before[1].isdecimal() and len(before[1]) < 10 else 0
    said |= {
        "numbers": words.numbers(run, name), "promise": words.promise(run, name), "alarms": memory.changes(run),
        "outcomes": words.outcomes(run, name), "latest": words.latest(run, name),
    }  # fmt: skip
    return found | {
        "names": run.names, "of": name, "words": said, "strip": memory.strip(run),
        "charts": {"compared": charts.of_all(run, COMPARED), **charts.of_predictor(run, name, CHOSEN, AHEAD)},
        "tables": {
            CHOSEN: {"after": after, "columns": charts.table(run, name, after)},
            COMPARED: {"after": after, "columns": charts.compared(run, after)},
            AHEAD: {"after": 0, "columns": charts.path(run, name)},
        },
    }  # fmt: skip


def _mark(*parts: Any) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


# --------------------------------------------------------------------------- HTML


def _card(title: str, inner: str, *more: str) -> str:
    return f'<section class="{" ".join(["card wide", *more])}"><h2>{title}</h2>{inner}</section>\n'


def _words(place: str) -> str:
    return f'<div data-words="{place}"></div>'


def _chart(place: str) -> str:
    return f'<div class="chart" data-chart="{place}"></div>'


def _predictor(of: str, promise: str) -> str:
    """Return the places of what is said and drawn of one predictor."""
    parts = {
        "What came true, and what is claimed": _chart(f"{of}accuracy"),
        "Evidence against its claims": _chart(f"{of}evidence"), "Calibration": _chart(f"{of}calibration"),
        "What is guaranteed while nothing has changed": promise,
    }  # fmt: skip
    inner = "".join(f"<div><h2>{title}</h2>{part}</div>" for title, part in parts.items())
    return f'<div class="parts">{inner}</div>'


def whole_page(title: str, head: str, header: str, main: Iterable[str], last: str = "") -> str:
    """Return a page as HTML, of its parts."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
{head}
</head>
<body>
<header>{header}</header>
<main>
{"".join(main)}</main>
<footer><button id="theme" type="button">light / dark</button></footer>
{last}</body>
</html>
"""


PAGE = whole_page(
    "venn", '<link rel="stylesheet" href="page.css"><script src="page.js"></script>',
    _words("head") + _words("facts"),
    [
        _card(
            "What was said of a question",
            '<form id="search"><input type="search" aria-label="id of a question" placeholder="its id" '
            'autocomplete="off" autocapitalize="off" spellcheck="false"> <button>find</button></form>'
            f"{_words('found')}", "find",
        ),
        _card("All predictors so far", _chart("compared")),
        '<section class="card wide"><label hidden>Predictor <select id="chooser"></select></label>'
        f"{_words('numbers')}{_predictor('', _words('promise'))}</section>\n",
        _card("Changes and alarms", _words("alarms")),
        _card("Latest outcomes: questions whose labels have come", _words("outcomes")),
        _card("Latest questions", _words("latest")),
    ],
)  # fmt: skip


# ------------------------------------------------------------------------- report


def write_report(run: FollowedRun, path: str | os.PathLike[str], title: str, data: str) -> None:
    """Write the figures, tables and words of a run to one file, which appears whole or not at all.

    Parameters
    ----------
    run : FollowedRun
    path : str or path
        Missing folders are made.
    title : str
    data : str
        The source of the run, such as the name of its file.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    file = Path(path)
    content = render(run, title, data)
    if file.exists() and not file.is_file():  # a device or a pipe: nothing may take its place
        file.write_text(content, "utf-8")
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content, "utf-8")
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def render(run: FollowedRun, title: str, data: str) -> str:
    """Return the report as HTML: the page of every predictor, whose document stands in it."""
    run.finish()
    drawn, tables = {COMPARED: charts.of_all(run, COMPARED)}, {COMPARED: charts.compared(run)}
    main = [words.changes(run), memory.card(run), _card("Means over all steps", words.summary(run))]
    main += [_card("All predictors so far", _chart(COMPARED))] if len(run.names) > 1 else []
    tails = []
    for place, name in enumerate(run.names):
        tables[str(place)], ahead = charts.table(run, name), f"{place}.{AHEAD}"
        tables[ahead] = charts.path(run, name)
        drawn |= {f"{place}.{key}": one for key, one in charts.of_predictor(run, name, str(place), ahead).items()}
        inner = words.numbers(run, name) + _predictor(f"{place}.", words.promise(run, name))
        main.append(_card(words.text(name), inner, "predictor"))
        for what, told, found in (
            ("outcomes of", words.outcomes, run.outcomes),
            ("questions to", words.latest, run.latest),
        ):
            tails += [_card(f"Latest {what} {words.text(name)}", told(run, name))] if found else []
    main += [_card("Changes and alarms", memory.changes(run, 100)), *tails, _card("Parameters", words.parameters(run))]
    counts = run.counts
    shown = [f"<b>{words.text(data)}</b>", run.space.counted, f"report of {words.when(time(), 'zone')}"]
    if run.created:
        shown.insert(1, f"begun {words.when(run.created, 'zone')}")
    if counts.time:
        shown.insert(2, f"last event {words.when(counts.time, 'zone')}")
    header = f"<h1>{escape(title)}</h1>{first.concluded(run)}<p class='fine'>{' · '.join(shown)}</p>"
    header += words.facts(counts, None)
    held = {
        "charts": drawn,
        "strip": memory.strip(run),
        "tables": {of: {"after": 0, "columns": table} for of, table in tables.items()},
    }
    content = json.dumps(held, allow_nan=False, separators=(",", ":")).replace("<", r"\u003c")
    # A file has no headers: its policy names its script and its style by their digests, and lets nothing be fetched.
    policy = (f"default-src 'none'; script-src {_digest(SCRIPT)}; style-src {_digest(STYLE)}; img-src data:; "
              "base-uri 'none'; form-action 'none'")  # fmt: skip
    head = (f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<style>{STYLE}</style>\n<script>{SCRIPT}</script>")  # fmt: skip
    return whole_page(title, head, header, main, f'<script type="application/json" id="document">{content}</script>\n')


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
