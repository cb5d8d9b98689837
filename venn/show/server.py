"""One web server for page, metrics and models: an ASGI app behind a door, served by uvicorn from a thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import parse_qs

from venn.show.door import HEADERS, HTML, TEXT, Door, Refusal, Reply, Routes
from venn.show.door import is_loopback as is_loopback
from venn.show.seldom import Seldom, plain

try:
    import httptools
    from starlette.routing import Route as Route
    from starlette.routing import Router
    from uvicorn import Config, Server
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState
except ImportError as error:
    raise ImportError(
        f"a web server needs the packages of the extra 'serve' ({error}): pip install 'vennstream[serve]'"
    ) from error

HEAD, BESIDE = 2**14, 2**20  # bytes of a request: before its body; of all that is not body, such as sizes of chunks
CONNECTIONS = 128  # at most, at once
SECONDS = 20.0  # a request may take to come, its answer to be read; a connection may be idle
ENDING, LAST = 30, 0.5  # seconds left when the server ends: to make an answer; to read it
LONGEST = 200  # letters of a line of the log
SMALL = 10_000  # bytes of a body that may go to the app directly: fewer
OF_JSON = b"application/json"
STATUS_LINES = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus}
#: Headers that a direct request may have: nothing but the name and the token depends on them.
PLAIN = {
    b"host", b"authorization", b"content-type", b"content-length", b"connection", b"user-agent", b"accept",
    b"accept-encoding", b"accept-language",
}  # fmt: skip
ENTERED = b'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=./"><title>venn</title>\n'
NO_REQUEST = Refusal(400, "400: this is no request that can be read")
METHODS = "GET, HEAD, OPTIONS"
ONLY_GET = Refusal(405, "405: there is nothing to do here but to read, by GET")
HEALTH = "/healthz"  # whether the server answers, for whoever keeps it running: it says nothing else, to anybody
FAILED = Refusal(500, "500: this cannot be answered now")
GUARDED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
GUARDED.append((b"cache-control", b"no-store"))
CLOSE = (b"connection", b"close")
OF_DOOR = {b"host": "Host", b"origin": "Origin", b"authorization": "Authorization", b"cookie": "Cookie"}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]
Say = Callable[[str], Any]
Give = Callable[[Reply], None]
Direct = Callable[[bytes, Give], bool]


async def answer(send: Send, said: Reply | Refusal) -> None:
    """Send an answer."""
    if isinstance(said, Refusal):
        also = {"WWW-Authenticate": "Bearer"} if said.status == 401 else {}
        also |= {"Allow": METHODS} if said.status == 405 else {}
        said = Reply(TEXT, f"{said.line}\n".encode(), also, said.status)
    await send({"type": "http.response.start", "status": said.status, "headers": headers_of(said)})
    await send({"type": "http.response.body", "body": said.body})


def headers_of(said: Reply) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer."""
    headers = [(b"content-type", said.kind.encode()), (b"content-length", str(len(said.body)).encode())]
    return headers + [(name.lower().encode(), value.encode("latin1")) for name, value in said.headers.items()]


def guarded_too(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers, and those that keep others out."""
    present = {name for name, _ in headers}
    return [*headers, *(one for one in GUARDED if one[0] not in present)]


def lines_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return headers as they are sent."""
    return b"".join([b"%b: %b\r\n" % one for one in headers])


GUARDED_LINES = lines_of(GUARDED)


def path_in(scope: Scope) -> str:
    """Return the path of a request below that at which the app is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


# ---------------------------------------------------------------------------------------------------------------- guard


class Guard:
    """Middleware: lets in whom a door lets in, and gives every answer the headers that keep others out.

    Whoever asks for `HEALTH` hears that the server answers. An error of the app makes one line, and 500.

    Parameters
    ----------
    app : ASGI app
    door : Door, optional
        At the path "/" the token may come in the address: the browser then keeps a cookie. None: whoever mounts the
        app sees to it.
    say : callable, optional
        Takes lines for the log; by default there is none.
    root : str
        Path under which a proxy shows the app; it may leave it in the requests that it passes on, or not.
    """

    def __init__(self, app: ASGI, door: Door | None, say: Say | None = None, root: str = "") -> None:
        self._app, self._door, self._say, self._seldom, self._root = app, door, say, Seldom(), root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Whoever sends a body that nobody has read is not listened to any more.
        unread = any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
                     for name, value in scope["headers"])  # fmt: skip
        started = False

        async def guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = guarded_too(message.get("headers", ()))
                message = {**message, "headers": [*headers, CLOSE] if unread else headers}
            await send(message)

        async def read() -> MutableMapping[str, Any]:
            nonlocal unread
            message = await receive()
            if not message.get("more_body", False):
                unread = False
            return message

        try:
            await self._answer(scope, read, guarded)
        except Exception as error:  # whatever it is, the others are served
            self._complain("a request that cannot be answered", f"{type(error).__name__}: {error}")
            if started:
                raise
            await answer(guarded, FAILED)

    def lets_in(self, host: bytes, authorization: bytes) -> bool:
        """Whether a request with these headers, and none of an origin or a cookie, may come in."""
        headers = {"Host": host.decode("latin1"), "Authorization": authorization.decode("latin1")}
        return self._door is None or self._door.refusal(headers) is None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        root, path = self._root, scope["path"]
        if root and (path == root or path.startswith(f"{root}/")):
            raw = scope.get("raw_path") or b""
            path = path[len(root) :] or "."
            scope = {**scope, "path": path, "raw_path": raw[len(root) :]}
        if root:
            scope = {**scope, "venn.root": root}
        found = path_in(scope)
        if found == HEALTH and scope["method"] in ("GET", "HEAD"):
            await answer(send, Reply(TEXT, b"ok\n"))
            return
        if self._door is not None:
            said = self._refusal(self._door, scope, found)
            if said is not None:
                await answer(send, said)
                return
        if found in ("", "."):  # the names in the page are of files beside it
            await answer(send, Reply(TEXT, b"", {"Location": f"{root or scope.get('root_path', '')}/"}, 307))
            return
        await self._app(scope, receive, send)

    def _refusal(self, door: Door, scope: Scope, path: str) -> Reply | Refusal | None:
        """Return the reply to a request that the door refuses, or that brings the token by its address; else None."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            if name in OF_DOOR:
                key, text = OF_DOOR[name], value.decode("latin1")
                headers[key] = f"{headers[key]},{text}" if key in headers else text
        refused = door.refusal(headers)
        query = scope.get("query_string", b"")
        asked = parse_qs(query.decode("latin1"), keep_blank_values=True) if path == "/" and b"token" in query else {}
        tokens = asked.get("token", [])
        if refused is not None and not (refused.status == 401 and len(tokens) == 1 and door.opens(tokens[0])):
            peer = (scope.get("client") or "?")[0]
            asker = f"{peer} asked as {headers.get('Host')!r}, origin {headers.get('Origin')!r}"
            self._complain(f"refused {refused.status}", asker)
            return refused
        if not tokens or door.cookie is None or scope["method"] not in ("GET", "HEAD"):
            return refused
        # By a page: after a redirect a strict cookie may be kept back.
        cookie = f"{'='.join(door.cookie)}; Max-Age=31536000; Path=/; HttpOnly; SameSite=Strict"
        return Reply(HTML, ENTERED, {"Set-Cookie": cookie})

    def _complain(self, kind: str, text: str) -> None:
        """Say in a line of plain letters what went wrong, seldom enough to be read."""
        heading = self._seldom.heading(kind)
        if heading and self._say is not None:
            line = " ".join(f"page: {heading}: {plain(text)}".split())
            self._say(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")


# -------------------------------------------------------------------------------------------------------------- reading


class Readable:
    """An address that is only read: what a function of the query says.

    Parameters
    ----------
    function : callable
        Of the parts of the query.
    pool : executor, optional
        Where it is called; by default in the server's thread, one call at a time.
    """

    def __init__(self, function: Callable[[Mapping[str, list[str]]], Reply], pool: Any = None) -> None:
        self._function, self._pool = function, pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] == "OPTIONS":
            await answer(send, Reply(TEXT, b"", {"Allow": METHODS}))
        elif scope["method"] not in ("GET", "HEAD"):
            await answer(send, ONLY_GET)
        else:
            asked = parse_qs(scope.get("query_string", b"").decode("latin1"), keep_blank_values=True)
            if self._pool is None:
                said = self._function(asked)
            else:
                said = await asyncio.get_running_loop().run_in_executor(self._pool, self._function, asked)
            await answer(send, said)


class NotFound:
    """What answers at all other addresses."""

    def __init__(self, first: str) -> None:
        self._refusal = Refusal(404, f"404: there is nothing here; it is at {first}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await answer(send, self._refusal)


def readable(routes: Routes, pool: Any = None) -> list[Any]:
    """Return the routes of addresses that are only read."""
    return [Route(path, Readable(function, pool)) for path, function in routes.items()]


class Routed:
    """The app of some routes; whatever else is asked for is not there: `first` is.

    Paths are compared letter by letter: what is encoded, but for an id, leads nowhere.

    Parameters
    ----------
    routes : sequence of Route
    first : str
    direct : mapping of bytes to callable
        By target, what a POST may be given to as it is: a small body, and who takes the `Reply`, in the same thread.
        It returns False where it has done nothing with it: the route answers then.
    """

    def __init__(self, routes: Sequence[Any], first: str, direct: Mapping[bytes, Direct] = {}) -> None:
        self._not_found, self.direct = NotFound(first), dict(direct)
        self._router = Router(routes, redirect_slashes=False, default=self._not_found)
        self._fixed = {one.path: one.app for one in routes if isinstance(one, Route) and not one.param_convertors}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        path = path_in(scope)
        encoded = b"%" in (scope.get("raw_path") or b"") and not path.startswith("/questions/")
        await (self._not_found if encoded else self._fixed.get(path, self._router))(scope, receive, send)


# --------------------------------------------------------------------------------------------------------------- server

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
            headers = lines_of([*usual, *guarded_too(headers_of(said)), *(() if self.keep_alive else (CLOSE,))])
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
        self._beside, self._in_head = 0, True  # bytes of this request that are no body
        self._let_in: Any = None  # headers with which the latest direct request was let in

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
        """Whether a whole request has come that is not answered yet."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self._deadline is None:
            self._await()
        self._beside += len(data)
        super().data_received(data)
        if self._beside > (HEAD if self._in_head else BESIDE) and not self.transport.is_closing():
            self.send_400_response("")

    def on_headers_complete(self) -> None:
        """Refuse a request whose target is no path, as a whole address is none here, and one that is too long."""
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEAD or not self.url.startswith(b"/") or b"#" in self.url:
            raise httptools.HttpParserError("no path, or too long")
        if self.url in self.direct and self._is_plain():
            self.cycle = DirectRequest(self, self.direct[self.url])
        else:
            super().on_headers_complete()

    def _is_plain(self) -> bool:
        """Whether a request is small, is at work alone, may come in, and has nothing that the app must look at."""
        headers, parser = dict(self.headers), self.parser
        length, asker = (
            headers.get(b"content-length", b""),
            (headers.get(b"host", b""), headers.get(b"authorization", b"")),
        )
        if not (
            len(headers) == len(self.headers)
            and headers.keys() <= PLAIN
            and length.isdigit()
            and len(length) < len(str(SMALL))
            and headers.get(b"content-type", OF_JSON) == OF_JSON
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
        ):
            return False
        if asker != self._let_in:
            self._let_in = asker if self.guard.lets_in(*asker) else None
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
            if self.opened.pop(self, True) is None:
                self.opened[self] = None

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
        app = Routed(readable(app), next(iter(app)))
    guard = Guard(app, Door(host, found, allowed, token, unguarded), say, root)
    direct = app.direct if isinstance(app, Routed) else {}
    limited: Any = type("Limited", (Limited,), {"opened": {}, "most": most, "guard": guard, "direct": direct})
    files = {} if tls is None else {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]}
    config = Config(
        guard, http=limited, ws="none", lifespan="off", log_config=None, log_level=logging.CRITICAL, access_log=False,
        proxy_headers=False, server_header=False, timeout_keep_alive=max(1, int(SECONDS)),
        timeout_graceful_shutdown=ENDING, **files,
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
