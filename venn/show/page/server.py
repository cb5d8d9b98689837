"""The page as a server: every viewer has a separate page, all share one reader of the journal."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.layouts import column
from bokeh.models import InlineStyleSheet, Select
from bokeh.server.server import BaseServer
from jinja2 import Template
from tornado.ioloop import IOLoop

from venn.show.door import Door
from venn.show.page import first, words
from venn.show.page.axes import phrase
from venn.show.page.drawing import Comparison, Predictor
from venn.show.page.feed import Feed, Run
from venn.show.page.web import Bounded, Say, Web, collected_together, one_line, scripts

EVERY = 500  # milliseconds between two updates
HERE = Path(__file__).parent
CHOOSER = """
:host { color: var(--ink); max-width: 26em; }
.bk-input { color: var(--ink); background-color: var(--card); border-color: var(--line);
  font-size: 15px; appearance: auto; background-image: none; }
.bk-input option { color: var(--ink); background: var(--card); }
"""


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Page:
    """One viewer's page.

    Parameters
    ----------
    doc : Document
    feed : Feed
    """

    def __init__(self, doc: Document, feed: Feed) -> None:
        self._feed = feed
        self._run: Run | None = None
        self._version = -1
        self._compared: Comparison | None = None
        self._predictor: Predictor | None = None
        self._words = {name: phrase(name=name) for name in ("alarms", "promise", "outcomes", "latest")}
        self._words |= {name: phrase(name=name, margin=0) for name in ("head", "facts")}  # as wide as the cards below
        self._places = {
            name: column(phrase(), name=name, sizing_mode="stretch_width")
            for name in ("compared", "numbers", "accuracy", "evidence", "calibration")
        }
        self._chooser = Select(
            name="chooser", title="Predictor", visible=False, stylesheets=[InlineStyleSheet(css=CHOOSER)],
            sizing_mode="stretch_width",
        )  # fmt: skip
        self._chooser.on_change("value", lambda attr, old, new: self._choose())
        self._doc = doc
        with doc.models.freeze():  # the models are collected once, not for every change
            for root in (*self._words.values(), *self._places.values(), self._chooser):
                doc.add_root(root)
        doc.config.notify_connection_status = False  # page.js reports it, and the return of the page
        doc.template = Template((HERE / "page.html").read_text("utf-8"))
        doc.template_variables.update(style=style(), scripts=scripts())
        with doc.models.freeze():
            self.update()
        doc.add_periodic_callback(self.update, EVERY)

    def update(self) -> None:
        """Show the news."""
        run = self._feed.look()
        self._say("head", first.head(self._feed))
        title = f"{first.status(self._feed).title} · {self._feed.path.name}"
        if self._doc.title != title:
            self._doc.title = title
        if run is None:
            return
        self._say("facts", words.facts(run.counts, run.rate if run.ended is None else None))
        if run is self._run and run.version == self._version:
            return
        if run is not self._run:
            self._begin(run)
        self._version = run.version
        if self._predictor is not None and self._predictor.known:
            self._predictor.feed(run)
        else:
            self._choose()  # the kind of its predictions may be known now
        if self._compared is not None:
            self._compared.feed(run)
        self._say("alarms", words.alarms(run))
        self._tell(run)

    def _begin(self, run: Run) -> None:
        """Lay the page out for a run."""
        self._run = run
        several = len(run.names) > 1
        self._compared = Comparison(run) if several else None
        self._places["compared"].children = [self._compared.model] if self._compared is not None else [
            phrase("<p class='fine'>One predictor: see below.</p>")
        ]  # fmt: skip
        chosen = self._chooser.value if self._chooser.value in run.names else run.worst
        self._predictor = None
        self._chooser.update(options=list(run.names), visible=several, value=chosen)
        if self._predictor is None:  # the same value as before: no change event came
            self._choose()

    def _choose(self) -> None:
        run, name = self._run, self._chooser.value
        if run is None or name not in run.names:
            return
        predictor = self._predictor = Predictor(run, name)
        with self._doc.models.freeze():
            for place, model in predictor.models.items():
                self._places[place].children = [model]
        self._tell(run)

    def _tell(self, run: Run) -> None:
        if self._predictor is not None:
            self._say("promise", words.promise(run, self._predictor.name))
            self._say("outcomes", words.outcomes(run, self._predictor.name))
            self._say("latest", words.latest(run, self._predictor.name))

    def _say(self, place: str, text: str) -> None:
        if self._words[place].text != text:
            self._words[place].text = text


def style() -> str:
    """Return the style sheet of the page and of the words in it."""
    return "".join((HERE / file).read_text("utf-8") for file in ("page.css", "words.css"))


def serve(
    feed: Feed, host: str, port: int, started: Callable[[str, int], Any], stop: threading.Event | None = None,
    *, allowed: Iterable[str] = (), token: str | None = None, unguarded: bool = False, say: Say = _print,
) -> None:  # fmt: skip
    """Serve the page until Ctrl-C, SIGTERM, or until `stop` is set.

    Parameters
    ----------
    feed : Feed
    host : str
        Address to listen at.
    port : int
        0: any that is free.
    started : callable
        Called with address and port.
    stop : threading.Event, optional
        For tests; signals reach the main thread only.
    allowed, token, unguarded
        Who may read, see `venn.show.door.Door`.
    say : callable
        Takes the lines of the log; by default they go to stderr.

    Raises
    ------
    OSError
        The address cannot be listened at.
    ValueError
        `allowed` or `token` is not what it must be; nobody has listened then.
    """
    Door(host, port, allowed, token, unguarded)  # an error before anybody listens
    asyncio.set_event_loop(asyncio.new_event_loop())
    loop = IOLoop.current()
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    tornado: Web
    pages = Application(FunctionHandler(lambda doc: None if tornado.ending else Page(doc, feed)))
    tornado = Web(pages, Door(host, port, allowed, token, unguarded), say)
    http = Bounded(tornado)
    http.add_sockets([listening])
    server = BaseServer(loop, tornado, http)

    def end(*_: Any) -> None:
        tornado.ending = True  # what waits to be answered no longer takes its time
        loop.asyncio_loop.call_soon_threadsafe(loop.stop)  # type: ignore[attr-defined]

    with one_line(say), collected_together():
        server.start()
        main = threading.current_thread() is threading.main_thread()
        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM) if main}
        try:
            started(host, port)
            if stop is not None:
                loop.add_callback(_until, stop, loop)
            loop.start()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            server.stop()
            feed.close()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket at this address; unlike tornado's, it is closed if that fails."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.create_server((str(address[0]), port), family=family, backlog=128)
    listening.setblocking(False)
    return listening


async def _until(stop: threading.Event, loop: IOLoop) -> None:
    while not stop.is_set():
        await asyncio.sleep(0.02)
    loop.stop()
