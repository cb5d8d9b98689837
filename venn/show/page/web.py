"""The web server of the page: five addresses behind a door, and one line in the log for what went wrong."""

from __future__ import annotations

import gc
import logging
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from bokeh.application import Application
from bokeh.document import document
from bokeh.resources import Resources
from bokeh.server.tornado import BokehTornado
from bokeh.server.views.static_handler import StaticHandler
from bokeh.settings import settings
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.iostream import IOStream
from tornado.web import OutputTransform, RequestHandler

from venn.show.complaints import Seldom, hearing, plain
from venn.show.door import HEADERS, Door, Refusal

HERE = Path(__file__).parent
COMPONENTS = ["bokeh", "bokeh-widgets"]  # of BokehJS, all that the page needs
ROOT, SOCKET, SCRIPT = "/", "/ws", "/page.js"
STATIC = re.compile(r"/static/js/[a-z-]+\.min\.js")
LARGEST = 2**20  # bytes of a message from a browser; those of the page have some hundreds
BODY = 2**10  # bytes of the body of a request: none of the page has one
CONNECTIONS, VIEWERS = 128, 64  # at most, at once: requests, and pages that are looked at
SECONDS = 10.0  # in which a request must have come whole, and the next one on the same connection
NONE = Refusal(404, "404: there is nothing here; the page is at /")
CROWDED = Refusal(503, "503: as many look at this page as it can serve: come again in a minute")
ENDING = Refusal(503, "503: this server ends")
SHARED = Refusal(403, "403: every viewer has a page of its own: open /")
#: What they say from a level on; of bokeh, a viewer who leaves is no news.
LIBRARIES = {"bokeh": logging.ERROR, "tornado": logging.WARNING, "asyncio": logging.WARNING}
SOCKETS = "bokeh.server.views.ws"
LONGEST = 200  # letters of a line

Say = Callable[[str], Any]


def policy(host: str) -> str:
    """Return the Content-Security-Policy of the page, for a host that has passed the door.

    Scripts are files of this server: none stands in the page, and no text becomes one. BokehJS makes `style` elements
    when it draws, with texts that are not known before: these need 'unsafe-inline', styles only. The socket is named,
    since 'self' does not cover it in all browsers.
    """
    return (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src 'self' ws://{host} wss://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def scripts() -> list[str]:
    """Return the addresses of the page's scripts; Bokeh itself would write one more into the page."""
    files = Resources(mode="server", root_url=ROOT, path_versioner=StaticHandler.append_version, components=COMPONENTS)
    return [*files.js_files, SCRIPT]


class Web(BokehTornado):  # type: ignore[misc]
    """Answers at /, /ws, /page.js and the scripts of BokehJS; whatever else is asked, or asked wrongly, gets one line.

    Bokeh's other addresses are left out: autoload.js, which lets any page read, among them. Sessions are signed, so
    that a socket opens only with the token of a page that was given out, and hold no headers and no cookies.

    Parameters
    ----------
    pages : Application
        Makes a document for each viewer.
    door : Door
    say : callable
        Takes a line for the log.
    """

    def __init__(self, pages: Application, door: Door, say: Say) -> None:
        self._door, self._complain = door, Complaints(say)
        # Bokeh would ask the environment for both.
        settings.resources = "server"
        settings.allowed_ws_origin = sorted(name if ":" in name else f"{name}:80" for name in door.names)
        super().__init__(
            {ROOT: pages}, use_index=False, redirect_root=False, extra_patterns=[(SCRIPT, Script)],
            secret_key=secrets.token_bytes(32), sign_sessions=True, include_headers=[], include_cookies=[],
            websocket_max_message_size_bytes=LARGEST, log_function=self._told,
        )  # fmt: skip
        self.add_transform(Guarded)
        self.ending = False

    async def _cleanup_sessions(self) -> None:
        """Forget the pages of viewers who have left, and collect what was of them, at once."""
        before = len(self.get_sessions(ROOT))
        await super()._cleanup_sessions()
        if len(self.get_sessions(ROOT)) < before:
            gc.collect()

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Return who answers a request: every one passes here, the socket's and that of a script as well."""
        refused = self._refusal(request)
        if refused is not None:
            return self.get_handler_delegate(request, Refused, {"refusal": refused})
        if request.path == ROOT and "token" in request.query_arguments:
            return self.get_handler_delegate(request, Entrance, {"cookie": self._door.cookie})
        return super().find_handler(request, **kwargs)

    def _refusal(self, request: HTTPServerRequest) -> Refusal | None:
        tokens = request.query_arguments.get("token", []) if request.path == ROOT else []
        entering = len(tokens) == 1 and self._door.opens(tokens[0].decode("utf-8", "replace"))
        refused = self._door.refusal(request.headers)
        if refused is not None and not (refused.status == 401 and entering):
            return refused
        # As it was written: what a path could mean besides is not our page.
        if request.path not in (ROOT, SOCKET, SCRIPT) and not STATIC.fullmatch(request.path):
            return NONE
        if any(name.startswith("bokeh-") for name in request.arguments) or "Bokeh-Session-Id" in request.headers:
            return SHARED
        if self.ending:
            return ENDING
        pages = self.get_sessions(ROOT)
        viewers = {ROOT: len(pages), SOCKET: sum(one.connection_count for one in pages)}
        return CROWDED if viewers.get(request.path, 0) >= VIEWERS else None

    def _told(self, handler: RequestHandler) -> None:
        """Say who was refused: an operator may look for a name that is missing."""
        status, request = handler.get_status(), handler.request
        if status in (401, 403, 503):
            asked = f"{request.headers.get('Host')!r}, origin {request.headers.get('Origin')!r}"
            self._complain(f"refused {status}", f"{request.remote_ip} asked as {asked}")


class Bounded(HTTPServer):
    """Holds so many connections at most, and waits so long for a request: whoever opens them without end harms nobody.

    For one connection more, the one that has lasted longest is closed. Sockets of pages are counted by `Web`.
    """

    def initialize(self, request_callback: Any, *of: Any, **settings: Any) -> None:
        """Begin without a connection."""
        settings |= {"idle_connection_timeout": SECONDS, "body_timeout": SECONDS}
        settings |= {"max_body_size": BODY, "max_buffer_size": 2 * LARGEST}
        super().initialize(request_callback, *of, **settings)
        self._streams: dict[IOStream, None] = {}  # oldest first

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Serve a new connection."""
        if len(self._streams) >= CONNECTIONS:
            oldest = next(iter(self._streams))
            del self._streams[oldest]
            oldest.close()
        self._streams[stream] = None
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        """Count a connection no longer: it has ended, or has become the socket of a page."""
        self._streams.pop(server_conn.stream, None)
        super().on_close(server_conn)


class Collects:
    """Stands for `gc` where bokeh ends a viewer's document: to pass over all memory for each of many takes minutes."""

    def collect(self) -> int:
        """Do nothing: `Web` collects for all viewers together."""
        return 0


@contextmanager
def collected_together() -> Iterator[None]:
    """Let bokeh collect no garbage by itself while the block lasts, and pass over nothing that is there now."""
    found, frozen = vars(document)["gc"], gc.get_freeze_count() == 0
    document.gc = Collects()
    if frozen:
        gc.collect()
        gc.freeze()
    try:
        yield
    finally:
        document.gc = found
        if frozen:
            gc.unfreeze()


class Guarded(OutputTransform):
    """Puts the headers of the door on every answer."""

    def __init__(self, request: HTTPServerRequest) -> None:
        super().__init__(request)
        self._page = policy(request.headers.get("Host", "")) if request.path == ROOT else None

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Set the headers; only a whole page has its scripts."""
        for name, value in HEADERS.items():
            headers[name] = value
        if self._page is not None and status_code == 200:
            headers["Content-Security-Policy"] = self._page
            headers["Cache-Control"] = "no-store"
        return status_code, headers, chunk


class Refused(RequestHandler):
    """Says no, in one line."""

    def initialize(self, refusal: Refusal) -> None:
        """Take what is answered."""
        self._refusal = refusal

    def prepare(self) -> None:
        """Answer at once, whatever the method."""
        self.set_status(self._refusal.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if self._refusal.status == 401:
            self.set_header("WWW-Authenticate", "Bearer")
        self.finish(f"{self._refusal.line}\n")

    def check_xsrf_cookie(self) -> None:
        """Nothing is changed by what is refused."""


class Entrance(RequestHandler):
    """Takes the token out of the address and gives the browser a cookie for it."""

    def initialize(self, cookie: tuple[str, str] | None) -> None:
        """Take name and value of the cookie; None if there is no token to keep."""
        self._cookie = cookie

    def get(self) -> None:
        """Lead to the page, by a page: after a redirect a strict cookie may be kept back."""
        if self._cookie is not None:
            name, value = self._cookie
            self.set_cookie(name, value, httponly=True, samesite="Strict", path="/", expires_days=365)
        self.write(
            '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>venn</title>'
        )


class Script(RequestHandler):
    """The script of the page."""

    def get(self) -> None:
        """Write it."""
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "no-cache")
        for file in ("page.js", "start.js"):
            self.write((HERE / file).read_text("utf-8"))


class Complaints:
    """Says in a line of plain letters what went wrong, seldom enough to be read."""

    def __init__(self, say: Say) -> None:
        self._say, self._seldom = say, Seldom()

    def __call__(self, kind: str, text: str) -> None:
        """Count a complaint, and say it unless it was said lately."""
        heading = self._seldom.heading(kind)
        if heading:
            line = " ".join(f"page: {heading}: {plain(text)}".split())
            self._say(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")


def one_line(say: Say) -> AbstractContextManager[None]:
    """Show what the server's libraries log as lines without a trace, while the block lasts."""
    complain = Complaints(say)

    def hear(record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if record.name == SOCKETS and error is not None:
            return  # a second record follows, that the connection is closed
        text = record.getMessage() if error is None else f"{type(error).__name__}: {error} ({record.getMessage()})"
        complain("a message or request that cannot be handled", text)

    return hearing(LIBRARIES, hear)
