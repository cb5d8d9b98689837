"""A small web server in a thread: a few addresses behind a door, answered one by one, and nobody is awaited."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from venn.show.notify import Seldom, plain

# ----------------------------------------------------------------------------------------------------------------- door
# Who may read what a server shows: decided from the headers of a request, for the page and for the metrics alike.

SHORTEST = 16  # letters of a token
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HTTP = 80  # the port that browsers leave out
NAME = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
TOKEN = re.compile(r"[!-~]+")  # what a header and an address may hold, no spaces
BEARER = "bearer "

STRANGE = "403: this server does not go by that name; if it should, start it with --allow-host NAME[:PORT]"
FOREIGN = "403: this server answers no page of another origin"
LOCKED = "401: a token is needed: open the page once as /?token=TOKEN, or send the header Authorization: Bearer TOKEN"

#: Headers of every answer: nothing that is not ours is loaded, nobody frames it, embeds it or learns its address.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Refusal(NamedTuple):
    """The answer to a request that may not come in."""

    status: int
    line: str  #: plain text


class Door:
    """Lets requests in that come under one of the server's names, from no foreign page, and with the token if any.

    The name is what the header Host says. A page of another site whose name was pointed at this address ("DNS
    rebinding") asks under that site's name, and is refused. The names are localhost, 127.0.0.1 and [::1] with the
    server's port, the address listened at, and those allowed besides.

    Parameters
    ----------
    host : str
        Address that the server listens at.
    port : int
        Its port.
    allowed : iterable of str
        More names, NAME or NAME:PORT. Without a port a name holds with the server's port, and with none, as behind a
        proxy that serves the default port of the web.
    token : str, optional
        At least 16 printable letters without spaces, the same for all viewers; by default none is asked for.
    unguarded : bool
        Whether an address that is not a loopback may be listened at without a token.

    Raises
    ------
    ValueError
        A name or the token is not as described, or a token is missing.

    Examples
    --------
    >>> door = Door("127.0.0.1", 5006)
    >>> door.refusal({"Host": "localhost:5006"})
    >>> door.refusal({"Host": "evil.example:5006"}).status
    403
    >>> door = Door("10.0.0.5", 5006, token="correct-horse-battery")
    >>> door.refusal({"Host": "10.0.0.5:5006"}).status
    401
    >>> door.refusal({"Host": "10.0.0.5:5006", "Authorization": "Bearer correct-horse-battery"})
    """

    def __init__(
        self, host: str, port: int, allowed: Iterable[str] = (), token: str | None = None, unguarded: bool = False
    ) -> None:
        if token is not None and (len(token) < SHORTEST or not TOKEN.fullmatch(token)):
            raise ValueError(
                f"token must be at least {SHORTEST} printable letters without spaces, got {len(token)} letters: "
                'python -c "import secrets; print(secrets.token_urlsafe())" makes one'
            )
        if token is None and not unguarded and not is_loopback(host):
            raise ValueError(
                f"token must be given where other machines can connect, as at {host}: all of them could read ids, "
                "labels and predictions; give one with --token-file, or say --no-token if something else keeps watch"
            )
        names: set[str] = set()
        for name in (*LOOPBACK, *_own(host)):
            names |= _with_port(name, port, port == HTTP)
        for name in allowed:
            names |= _with_port(name, port, True)
        self.names = frozenset(names)
        self._origins = {f"{scheme}://{name}" for name in names for scheme in ("http", "https")}
        self._token = token
        self.cookie = None if token is None else (f"venn-{port}", _derived(token))

    def refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        """Return why a request is refused; None if it may come in.

        Parameters
        ----------
        headers : mapping
            With the keys Host, Origin, Authorization and Cookie, as far as the request has them.
        """
        host = headers.get("Host", "").lower()
        if host not in self.names:
            return Refusal(403, STRANGE)
        origin = headers.get("Origin")
        if origin is not None and origin.lower() not in self._origins:
            return Refusal(403, FOREIGN)
        if self.cookie is None or self._shown(headers.get("Authorization", ""), headers.get("Cookie", "")):
            return None
        return Refusal(401, LOCKED)

    def opens(self, token: str) -> bool:
        """Whether this is the token; the time taken says nothing about it."""
        return self._token is not None and _same(token, self._token)

    def _shown(self, authorization: str, cookies: str) -> bool:
        if authorization.lower().startswith(BEARER):
            return self.opens(authorization[len(BEARER) :].strip())
        name, value = self.cookie or ("", "")
        given = (one.strip().partition("=") for one in cookies.split(";"))
        return any(_same(shown, value) for key, _, shown in given if key == name)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address; a name must stand for no other.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        found = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False  # nobody can listen there: the attempt says why
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def _own(host: str) -> list[str]:
    """Return an address as the name of a server; one that stands for all addresses has no name."""
    try:
        found = ip_address(host)
    except ValueError:
        return [host] if NAME.fullmatch(host.lower()) else []
    if found.is_unspecified:
        return []
    return [f"[{host}]" if found.version == 6 else host]


def _with_port(name: str, port: int, bare: bool) -> set[str]:
    """Return how Host may spell a name."""
    found = NAME.fullmatch(name.lower())
    if found is None:
        raise ValueError(f"allowed hosts must be NAME or NAME:PORT, without http:// and *, got {name!r}")
    known, own = found.groups()
    if own is not None:
        return {f"{known}:{int(own)}"}
    return {f"{known}:{port}"} | ({known} if bare else set())


def _derived(token: str) -> str:
    """Return what the browser keeps instead of the token: the same after a restart of the server."""
    return hmac.new(token.encode(), b"venn: cookie of the page", hashlib.sha256).hexdigest()


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())


# --------------------------------------------------------------------------------------------------------------- server

HEAD = 2**14  # bytes of a request; its body is never read
CONNECTIONS = 128  # at most, at once
SECONDS = 20.0  # that a connection may last
LONGEST = 200  # letters of a line of the log
TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
ENTERED = b'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=./"><title>venn</title>\n'
NO_REQUEST = Refusal(400, "400: this is no request that can be read")
METHODS = "GET, HEAD, OPTIONS"
ONLY_GET = Refusal(405, "405: there is nothing to do here but to read, by GET")
HEALTH = "/healthz"  # whether the server answers, for whoever keeps it running: it says nothing else, to anybody
FAILED = Refusal(500, "500: this cannot be answered now")


class Reply(NamedTuple):
    """What is sent to whom the door lets in."""

    kind: str  #: media type
    body: bytes
    headers: Mapping[str, str] = {}


Routes = Mapping[str, Callable[[Mapping[str, list[str]]], Reply]]  # by path; of the parts of the query
Say = Callable[[str], Any]


class Web:
    """Answers at some addresses; whatever else is asked, or asked wrongly, gets one line.

    For one connection more than `CONNECTIONS` that which has lasted longest is ended; none lasts longer than `SECONDS`.

    Parameters
    ----------
    routes : mapping
        Functions by path. They are called in the server's thread, one at a time.
    door : Door
        At the path "/" the token may come in the address: the browser then keeps a cookie.
    say : callable, optional
        Takes lines for the log; by default there is none.
    """

    def __init__(self, routes: Routes, door: Door, say: Say | None) -> None:
        self._routes, self._door, self._say, self._seldom = routes, door, say, Seldom()
        self._open: dict[asyncio.Task[Any], None] = {}  # oldest first

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        if len(self._open) >= CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = None
        writer.transport.set_write_buffer_limits(0)  # it is sent when `drain` returns
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self.answer(head, str((writer.get_extra_info("peername") or "?")[0])))
                await writer.drain()
            writer.close()
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._open.pop(task, None)

    async def end(self) -> None:
        """End all connections."""
        left = list(self._open)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, asyncio.sleep(0), return_exceptions=True)

    def answer(self, head: bytes, peer: str) -> bytes:
        """Return what is sent to a request; to HEAD what GET gets, without its body."""
        said = self._answer(head, peer)
        return said.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if head.startswith(b"HEAD ") else said

    def _answer(self, head: bytes, peer: str) -> bytes:
        line, _, fields = head.partition(b"\r\n")
        try:
            method, target, _ = line.decode("latin1").split(" ")
            found = parse_headers(BytesIO(fields))
            path, _, query = target.partition("?")  # as written: what a path could mean besides is no address here
            asked = parse_qs(query, keep_blank_values=True)
        except (ValueError, HTTPException):
            return _written(NO_REQUEST)
        if path == HEALTH and method in ("GET", "HEAD"):
            return _written(Reply(TEXT, b"ok\n"))
        headers = {name: ",".join(found.get_all(name, [])) for name in ("Host", "Origin", "Authorization", "Cookie")
                   if name in found}  # fmt: skip
        tokens = asked.get("token", []) if path == "/" and path in self._routes else []
        refused = self._door.refusal(headers)
        if refused is not None and not (refused.status == 401 and len(tokens) == 1 and self._door.opens(tokens[0])):
            asker = f"{peer} asked as {headers.get('Host')!r}, origin {headers.get('Origin')!r}"
            self._complain(f"refused {refused.status}", asker)
            return _written(refused)
        if path not in self._routes:
            return _written(Refusal(404, f"404: there is nothing here; it is at {next(iter(self._routes))}"))
        if method == "OPTIONS":
            return _written(Reply(TEXT, b"", {"Allow": METHODS}))
        if method not in ("GET", "HEAD"):
            return _written(ONLY_GET)
        if tokens and self._door.cookie is not None:  # by a page: after a redirect a strict cookie may be kept back
            cookie = f"{'='.join(self._door.cookie)}; Max-Age=31536000; Path=/; HttpOnly; SameSite=Strict"
            return _written(Reply(HTML, ENTERED, {"Set-Cookie": cookie}))
        try:
            return _written(self._routes[path](asked))
        except Exception as error:  # whatever it is, the others are served
            self._complain("a request that cannot be answered", f"{type(error).__name__}: {error}")
            return _written(FAILED)

    def _complain(self, kind: str, text: str) -> None:
        """Say in a line of plain letters what went wrong, seldom enough to be read."""
        heading = self._seldom.heading(kind)
        if heading and self._say is not None:
            line = " ".join(f"page: {heading}: {plain(text)}".split())
            self._say(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")


def _written(answer: Reply | Refusal) -> bytes:
    status = 200
    if isinstance(answer, Refusal):
        status = answer.status
        also = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Allow": METHODS} if status == 405 else {}
        answer = Reply(TEXT, f"{answer.line}\n".encode(), also)
    headers = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body)), "Connection": "close",
               "Cache-Control": "no-store"} | HEADERS | dict(answer.headers)  # fmt: skip
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *map(": ".join, headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin1") + answer.body


@contextmanager
def serving(
    routes: Routes, host: str, port: int,
    *, allowed: Iterable[str] = (), token: str | None = None, unguarded: bool = False, say: Say | None = None,
) -> Iterator[int]:  # fmt: skip
    """Serve at ``http://host:port`` from a thread while the block lasts; give the port.

    Parameters
    ----------
    routes : mapping
        See `Web`.
    host : str
        Address to listen at.
    port : int
        0: any that is free.
    allowed, token, unguarded
        Who may read, see `venn.show.server.Door`.
    say : callable, optional
        Takes the lines of the log.

    Raises
    ------
    OSError
        The address cannot be listened at.
    ValueError
        `allowed` or `token` is not what it must be; nobody has listened then.
    """
    Door(host, port, allowed, token, unguarded)  # an error before anybody listens
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.create_server((str(address[0]), port), family=family, backlog=128)
    found = int(listening.getsockname()[1])
    web, loop = Web(routes, Door(host, found, allowed, token, unguarded), say), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="venn web", daemon=True)
    thread.start()
    starting = asyncio.start_server(web.serve, sock=listening, limit=HEAD)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(web.end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
