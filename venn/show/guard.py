"""Who gets past the door to an ASGI app, and what every answer says to keep others out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from venn.show.door import HEADERS, HTML, TEXT, Door, Refusal, Reply
from venn.show.seldom import Seldom, plain

LONGEST = 200  # letters of a line of the log
ENTERED = b'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=./"><title>venn</title>\n'
METHODS = "GET, HEAD, OPTIONS"
# Anybody may ask these, and hears nothing else: whoever keeps a server running knows no token.
HEALTH = "/healthz"  # whether the server answers
READY = "/readyz"  # whether the app may be asked, if it has that address
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


def guarded_too(headers: Sequence[tuple[bytes, bytes]], last: bool = False) -> list[tuple[bytes, bytes]]:
    """Return headers, and those that keep others out; of the `last` answer over a connection."""
    present = {name for name, _ in headers}
    more = [*GUARDED, CLOSE] if last else GUARDED
    return [*headers, *(one for one in more if one[0] not in present)]


def lines_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return headers as they are sent."""
    return b"".join([b"%b: %b\r\n" % one for one in headers])


GUARDED_LINES = lines_of(GUARDED)


def path_in(scope: Scope) -> str:
    """Return the path of a request below that at which the app is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


class Guard:
    """Middleware: lets in whom a door lets in, and gives every answer the headers that keep others out.

    Whoever asks for `HEALTH` hears that the server answers, and the app answers `READY` to anybody. An error of the app
    makes one line, and 500.

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
                message = {**message, "headers": guarded_too(message.get("headers", ()), unread)}
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
        probed = scope["method"] in ("GET", "HEAD")
        if found == HEALTH and probed:
            await answer(send, Reply(TEXT, b"ok\n"))
            return
        if self._door is not None and not (found == READY and probed):
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
