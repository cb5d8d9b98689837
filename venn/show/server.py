"""One web server for page, metrics and models: an ASGI app behind a door, served by uvicorn from a thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, ClassVar

from venn.show.door import TEXT, Door, Refusal, Reply, Routes
from venn.show.door import is_loopback as is_loopback
from venn.show.guard import ASGI, CLOSE, GUARDED, Direct, Guard, Say, guarded_too, headers_of, lines_of

try:
    import httptools
    from uvicorn import Config, Server
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState
except ImportError as error:
    raise ImportError(
        f"a web server needs the packages of the extra 'serve' ({error}): pip install 'vennstream[serve]'"
    ) from error

HEAD, BESIDE = 2**14, 2**20  # bytes of a request: before its body; of all that is not body, such as sizes of chunks
PIECE = 2**12  # bytes that are read at once: no more are while a request waits for another one's answer
CONNECTIONS = 128  # at most, at once
SECONDS = 20.0  # a request may take to come, its answer to be read; a connection may be idle
ENDING, LAST = 30, 0.5  # seconds left when the server ends: to make an answer; to read it
SMALL = 10_000  # bytes of a body that may go to the app directly: fewer
OF_JSON = b"application/json"
STATUS_LINES = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus}
#: Headers that a direct request may have: nothing but the name and the token depends on them.
PLAIN = {
    b"host", b"authorization", b"content-type", b"content-length", b"connection", b"user-agent", b"accept",
    b"accept-encoding", b"accept-language",
}  # fmt: skip
NO_REQUEST = Refusal(400, "400: this is no request that can be read")
GUARDED_LINES = lines_of(GUARDED)


SILENT = logging.Logger("venn web")  # what uvicorn would log; what matters is said by `Guard`
SILENT.addHandler(logging.NullHandler())


class DirectRequest:
    """A request that is answered without a task, and without ASGI: it takes the place of uvicorn's cycle.

    It knows inner names of uvicorn; `answers_directly` says whether they are as they were.

    Parameters
    ----------
    protocol : Limited
    take : callable
        See `Routed`.
    """

    def __init__(self, protocol: Limited, take: Direct) -> None:
        self._protocol, self._take = protocol, take
        self.body, self.message_event = bytearray(), self
        self.more_body = self.keep_alive = True
        self.response_complete = self.disconnected = False

    def set(self) -> None:
        """Do nothing: no task waits for the message."""

    def begin(self) -> bool:
        """Give the body on; return False where nothing was done with it."""
        try:
            return self._take(bytes(self.body), self.give)
        except Exception:  # the app says what is wrong
            return False

    def give(self, said: Reply) -> None:
        """Send the answer."""
        protocol = self._protocol
        if protocol.transport.is_closing():
            return
        self.response_complete = True
        usual = protocol.server_state.default_headers
        if said.headers or not self.keep_alive:
            headers = lines_of([*usual, *guarded_too(headers_of(said), not self.keep_alive)])
        else:  # most
            headers = b"%bcontent-type: %b\r\ncontent-length: %d\r\n%b" % (
                lines_of(usual), said.kind.encode(), len(said.body), GUARDED_LINES
            )  # fmt: skip
        protocol.transport.write(b"%b%b\r\n%b" % (STATUS_LINES[said.status], headers, said.body))
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()


class Limited(HttpToolsProtocol):  # type: ignore[misc]
    """A connection whose client must not be slow.

    A request must have come, and its answer been read, after `SECONDS`. What is before its body may have `HEAD` bytes.
    For one connection more than `most` that which has been of no use for longest is ended.
    """

    opened: ClassVar[dict[Any, None]]  #: connections of the server, that of the oldest use first
    most: ClassVar[int | None]  #: None: `CONNECTIONS`
    guard: ClassVar[Guard]
    direct: ClassVar[Mapping[bytes, Direct]]  #: see `Routed`
    cycle: Any  #: the request at work, or the latest one

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = SILENT
        self.access_log = False
        self._deadline: asyncio.TimerHandle | None = None
        self._later = b""  # what has come, and is not read yet
        self._beside, self._in_head = 0, True  # bytes of this request that are no body
        self._let_in: Any = None  # headers of the latest direct request, but for its length

    def connection_made(self, transport: Any) -> None:
        """Begin; end another connection if there are too many."""
        super().connection_made(transport)
        if len(self.opened) >= (self.most or CONNECTIONS):
            oldest = next((one for one in self.opened if not one.at_work), None)
            (oldest or self).transport.abort()
            if oldest is None:
                return
            self.opened.pop(oldest, None)
        self.opened[self] = None
        self._await()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.opened.pop(self, None)
        self._awaited()
        super().connection_lost(exc)

    @property
    def at_work(self) -> bool:
        """Whether a whole request has come that is not answered yet, though its client reads."""
        given = self.cycle
        return not (given is None or given.more_body or given.response_complete or self.flow.write_paused)

    def data_received(self, data: bytes) -> None:
        """Take parts of requests."""
        if self._deadline is None:
            self._await()
        self._later += data
        self._read()

    def _read(self) -> None:
        """Read what has come, unless so much waits that the client must wait, too."""
        while self._later and not self.transport.is_closing():
            if self.pipeline:
                self.flow.pause_reading()
                return
            data, self._later = self._later[:PIECE], self._later[PIECE:]
            self._beside += len(data)
            super().data_received(data)
            if self._beside > (HEAD if self._in_head else BESIDE) and not self.transport.is_closing():
                self.send_400_response("")

    def on_headers_complete(self) -> None:
        """Refuse a request whose target is no path, as a whole address is none here, and one that is too long."""
        self._in_head = False
        if self.url in self.direct and self._is_plain():
            self.cycle = DirectRequest(self, self.direct[self.url])
            return
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEAD or not self.url.startswith(b"/") or b"#" in self.url:
            raise httptools.HttpParserError("no path, or too long")
        super().on_headers_complete()

    def _is_plain(self) -> bool:
        """Whether a request is small, is at work alone, may come in, and has nothing that the app must look at."""
        parser, lengths = self.parser, [value for name, value in self.headers if name == b"content-length"]
        if not (
            len(lengths) == 1
            and lengths[0].isdigit()
            and len(lengths[0]) < len(str(SMALL))
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
        ):
            return False
        others = [one for one in self.headers if one[0] != b"content-length"]
        if others != self._let_in:
            found = dict(others)
            plain = (
                len(found) == len(others)
                and found.keys() <= PLAIN
                and sum(map(len, found.values())) < SMALL
                and found.get(b"content-type", OF_JSON) == OF_JSON
                and self.guard.lets_in(found.get(b"host", b""), found.get(b"authorization", b""))
            )
            self._let_in = others if plain else None
        return self._let_in is not None

    def on_body(self, body: bytes) -> None:
        """Take a part of its body."""
        self._beside -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take note that all of it is there."""
        self._beside, self._in_head = 0, True
        super().on_message_complete()
        given = self.cycle
        if type(given) is DirectRequest and not given.response_complete and not given.begin():
            self.cycle = None
            super().on_headers_complete()
            self.cycle.keep_alive = self.cycle.keep_alive and given.keep_alive
            super().on_body(given.body)
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Await the next request, once the answer is on its way."""
        super().on_response_complete()
        if not self.transport.is_closing() and not self.transport.get_write_buffer_size():
            self._awaited()
            if self._later or not self.cycle.response_complete:
                self._await()  # others wait
            if self.opened.pop(self, True) is None:
                self.opened[self] = None
        if self._later:
            self.loop.call_soon(self._read)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request with one line."""
        headers = [*GUARDED, (b"content-type", TEXT.encode()), CLOSE]
        lines = lines_of(headers)
        body = f"{NO_REQUEST.line}\n".encode()
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%bcontent-length: %d\r\n\r\n%b" % (lines, len(body), body))
        self.transport.close()

    def shutdown(self) -> None:
        """End, once the server ends: after the answer, if one is at work; whoever is slow is not awaited."""
        super().shutdown()
        if not self.at_work:
            self.loop.call_later(LAST, self.transport.abort)

    def _await(self) -> None:
        self._awaited()
        self._deadline = self.loop.call_later(SECONDS, self._over)

    def _over(self) -> None:
        if self.at_work:  # it is we who take long
            self._await()
        else:
            self.transport.abort()

    def _awaited(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Nobody:
    """Stands for a loop and a connection in which nothing happens; it keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        """Keep what is written."""
        self.written += data

    def create_task(self, work: Any, **_: Any) -> Nobody:
        """Close the work undone."""
        work.close()
        return self

    def call_later(self, *_: Any) -> Nobody:
        """Never call it."""
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def answers_directly(limited: type[Limited], config: Config) -> bool:
    """Whether this version of uvicorn lets a request be answered directly: two are tried, in pieces."""
    open_to_all = SimpleNamespace(lets_in=lambda *_: True)
    echo = {b"/": lambda body, give: give(Reply("text/plain", body)) is None}
    tried, nobody = type("Tried", (limited,), {"opened": {}, "guard": open_to_all, "direct": echo}), Nobody()
    try:
        link = tried(config=config, server_state=ServerState(), app_state={}, _loop=nobody)
        link.connection_made(nobody)
        for part in (b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n1", b"2") * 2:
            link.data_received(part)
    except Exception:  # whatever it lacks
        return False
    first, *others = nobody.written.split(b"\r\n\r\n12")
    return len(others) == 2 and others == [first, b""] and first.startswith(STATUS_LINES[200])


@contextmanager
def serving(
    app: ASGI | Routes, host: str, port: int, *, allowed: Iterable[str] = (), token: str | None = None,
    unguarded: bool = False, say: Say | None = None, root: str = "", most: int | None = None,
    tls: tuple[str, str | None] | None = None,
) -> Iterator[int]:  # fmt: skip
    """Serve at ``http://host:port`` from a thread while the block lasts; give the port.

    Parameters
    ----------
    app : ASGI app, or mapping
        A mapping has functions by path, of the parts of the query: these addresses are only read, and the functions are
        called in the server's thread, one at a time.
    host : str
        Address to listen at.
    port : int
        0: any that is free.
    allowed, token, unguarded
        Who may read, see `venn.show.door.Door`.
    say : callable, optional
        Takes the lines of the log.
    root : str
        Path under which a proxy shows it.
    most : int, optional
        Number of connections at once, by default `CONNECTIONS`.
    tls : tuple of str and str, optional
        Files of a certificate and its key.

    Raises
    ------
    OSError
        The address cannot be listened at, or a file of `tls` cannot be read.
    ValueError
        `allowed` or `token` is not what it must be; nobody has listened then.
    """
    Door(host, port, allowed, token, unguarded)  # an error before anybody listens
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.create_server((str(address[0]), port), family=family, backlog=512)
    found = int(listening.getsockname()[1])
    if isinstance(app, Mapping):
        from venn.show.routes import Routed, readable

        app = Routed(readable(app), next(iter(app)))
    guard = Guard(app, Door(host, found, allowed, token, unguarded), say, root)
    direct = getattr(app, "direct", {})
    limited: Any = type("Limited", (Limited,), {"opened": {}, "most": most, "guard": guard, "direct": direct})
    files = {} if tls is None else {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]}
    config = Config(
        guard, http=limited, ws="none", lifespan=getattr(app, "lifespan", "off"), log_config=None,
        log_level=logging.CRITICAL, proxy_headers=False, server_header=False,
        timeout_keep_alive=max(1, int(SECONDS)), timeout_graceful_shutdown=ENDING, **files,
    )  # fmt: skip
    try:
        config.load()
    except OSError:
        listening.close()
        raise
    if direct and not answers_directly(limited, config):
        limited.direct = {}  # all goes through the app
    server, done = Server(config), threading.Event()

    def work() -> None:
        try:
            server.run([listening])
        finally:
            done.set()

    thread = threading.Thread(target=work, name="venn web", daemon=True)
    thread.start()
    while not (server.started or done.wait(0.01)):
        pass
    try:
        yield found
    finally:
        server.should_exit = True
        thread.join()
