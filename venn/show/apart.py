"""Serves an app from a process of its own: what is asked there crosses to the app in frames, and its answers back.

The process of the server knows connections, HTTP and the door, and nothing of models. It ends when the app's does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, ClassVar, Self

import msgspec

from venn.show.door import Door, Reply
from venn.show.guard import Give, Guard, Receive, Say, Scope, Send, answer

SIZE = struct.Struct(">Q")  # before each frame: its bytes
#: What crosses of a request that is answered by ASGI.
SCOPE = ("type", "http_version", "method", "path", "raw_path", "query_string", "root_path", "headers", "venn.root")
MOST = 10_000  # requests at work
ENDINGS = {signal.SIGINT, signal.SIGTERM}
LATEST, LAST = 40.0, 5.0  # seconds that a server may take to begin or end; that its process may take then
PROGRAM = "import sys; sys.path[:] = {}; from venn.show.apart import work_apart; work_apart({})"


class Link(asyncio.Protocol):
    """One end of the channel between the processes: what is sent in one turn of the loop crosses in one frame.

    Parameters
    ----------
    take : callable
        Takes the parts of each message: the number of a request, and more; or 0, for what is of no request.
    lost : callable
        Called when the other process has gone.
    """

    def __init__(self, take: Callable[..., None], lost: Callable[[], object]) -> None:
        self._take, self._lost = take, lost
        self._came, self._leaving = bytearray(), list[Any]()

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport, self.loop = transport, asyncio.get_running_loop()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._lost()

    def data_received(self, data: bytes) -> None:
        """Take what is whole."""
        came = self._came
        came += data
        while len(came) >= SIZE.size and len(came) >= (end := SIZE.size + SIZE.unpack_from(came)[0]):
            messages = msgspec.msgpack.decode(came[SIZE.size : end])
            del came[:end]
            for one in messages:
                try:
                    self._take(*one)
                except Exception as error:  # whatever it is, the others cross
                    self.loop.call_exception_handler({"message": "cannot be taken", "exception": error})

    def send(self, *message: Any) -> None:
        """Let a message cross."""
        if not self._leaving:
            self.loop.call_soon(self._leave)
        self._leaving.append(message)

    def _leave(self) -> None:
        frame = msgspec.msgpack.encode(self._leaving)
        self._transport.write(SIZE.pack(len(frame)) + frame)
        self._leaving.clear()


# ---------------------------------------------------------------------------------------------- the process of the app


class NearApp:
    """The end of the channel where the app is: gives it what is asked at the other end, as a server would.

    Parameters
    ----------
    app : Routed
    say : callable
        Takes the lines of the log.
    """

    def __init__(self, app: Any, say: Say) -> None:
        self._app, self._direct, self._say = Guard(app, None, say), app.direct, say
        self._calls: dict[int, asyncio.Queue[Any]] = {}  # by ASGI: what comes of each
        self._tasks = set[asyncio.Task[None]]()
        self.begun: Future[int] = Future()  #: the port

    async def live(self, channel: socket.socket, setup: Any) -> None:
        """Answer until the other process has gone."""
        gone = asyncio.Event()
        self.link = Link(self._take, gone.set)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self.link, channel)
            self.link.send(setup)
            await gone.wait()
        finally:
            if not self.begun.done():
                self.begun.set_exception(EOFError("it has ended"))

    def _take(self, number: int, *said: Any) -> None:
        if not number:
            self._news(*said)
        elif number in self._calls:
            self._calls[number].put_nowait(*said)
        elif len(said) == 1:
            self._begin(self._call(number, *said))
        else:
            self._one(number, *said)

    def _news(self, what: int | str) -> None:
        """Take the port, or a line of the log."""
        if isinstance(what, int):
            self.begun.set_result(what)
        else:
            self._say(what)

    def _one(self, number: int, target: bytes, body: bytes) -> None:
        """Answer without ASGI, or else by it: what has come is all that the app then asks for."""
        try:
            taken = self._direct[target](body, partial(self._give, number))
        except Exception:  # the app says what is wrong
            taken = False
        if not taken:
            self._begin(self._whole(number, target, body))

    def _give(self, number: int, said: Reply) -> None:
        self.link.send(number, *said)

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _whole(self, number: int, target: bytes, body: bytes) -> None:
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            said.append(message)

        scope = {"type": "http", "method": "POST", "path": target.decode(), "headers": [], "query_string": b""}
        await self._app(scope, receive, send)
        start, rest = said
        headers = {name.decode("latin1"): value.decode("latin1") for name, value in start["headers"]}
        del headers["content-length"]
        self._give(number, Reply(headers.pop("content-type"), rest["body"], headers, start["status"]))

    async def _call(self, number: int, scope: Scope) -> None:
        """Answer by ASGI; None asks for more of the request, False says that this is all."""
        came = self._calls[number] = asyncio.Queue()

        async def receive() -> Any:
            self.link.send(number, None)
            return await came.get()

        async def send(message: Any) -> None:
            self.link.send(number, message)

        with suppress(Exception):  # the guard has said it
            await self._app(scope, receive, send)
        del self._calls[number]
        self.link.send(number, False)


class WebProcess:
    """A process for the server of an app: begins when it is entered, and loads while the app is made.

    Examples
    --------
    >>> import tempfile, venn
    >>> with tempfile.TemporaryDirectory() as folder, WebProcess() as web:
    ...     app = venn.serve(venn.Forecaster(["no", "yes"]), f"{folder}/run.db")
    ...     with app, web.serving(app.routes, "127.0.0.1", 0) as port:
    ...         web.failure
    ''
    """

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._trouble = ""

    def __enter__(self) -> Self:
        try:
            self._channel, other = socket.socketpair()
            with other:
                self._process = process_of(other)
        except (OSError, TypeError) as error:  # or there is no program of Python
            self._trouble = str(error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._channel is not None:
            self._channel.close()
        self._end()

    def _end(self) -> None:
        """Wait for the end of the process, though not for long."""
        made, self._process = self._process, None
        if made is not None:
            try:
                made.wait(LAST)
            except subprocess.TimeoutExpired:
                made.kill()
                made.wait()

    @property
    def failure(self) -> str:
        """How the process has ended; empty while all is well."""
        code = None if self._process is None else self._process.poll()
        return "" if code is None else f"the process of the web server has ended, with the code {code}"

    @contextmanager
    def serving(
        self, app: Any, host: str, port: int, *, allowed: Iterable[str] = (), token: str | None = None,
        unguarded: bool = False, say: Say | None = None, **options: Any,
    ) -> Iterator[int]:  # fmt: skip
        """Serve an app while the block lasts, as `venn.show.server.serving` does, and with its options; give the port.

        Where no other process serves, a thread of this one does, and says so; or it says why nobody can.
        """
        guard: dict[str, Any] = {"allowed": list(allowed), "token": token, "unguarded": unguarded}
        Door(host, port, **guard)  # an error before anybody listens
        say = say or (lambda _: None)
        if self._process is not None and self._channel is not None:
            near, channel, self._channel = NearApp(app, say), self._channel, None
            setup = {"host": host, "port": port, "direct": list(app.direct), **guard, **options}
            thread = threading.Thread(
                target=lambda: asyncio.run(near.live(channel, setup)), name="venn web", daemon=True
            )
            thread.start()
            try:
                found = near.begun.result(LATEST)
            except (EOFError, TimeoutError) as error:
                self._trouble = str(error) or "it does not answer"
                self._end()
            else:
                try:
                    yield found
                finally:
                    with suppress(RuntimeError):  # it has ended
                        near.link.loop.call_soon_threadsafe(near.link.send, 0)
                    thread.join(LATEST)
                return
        from venn.show.server import serving

        with serving(app, host, port, say=say, **guard, **options) as found:
            say(f"serves without a process for the web server, which cannot begin: {self._trouble}")
            yield found


def process_of(channel: socket.socket) -> subprocess.Popen[bytes]:
    """Begin the process of a server, which holds the other end of a channel."""
    program = [sys.executable, "-I", "-c"]
    if sys.platform == "win32":
        made = subprocess.Popen([*program, PROGRAM.format(sys.path, None)], stdin=subprocess.PIPE)
        assert made.stdin is not None
        with made.stdin:
            made.stdin.write(channel.share(made.pid))
        return made
    handle, nothing = channel.fileno(), subprocess.DEVNULL
    program.append(PROGRAM.format(sys.path, handle))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # that process has them blocked: it is told when to end
    try:
        return subprocess.Popen(program, pass_fds=[handle], stdin=nothing, stdout=nothing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ------------------------------------------------------------------------------------------- the process of the server


class FarApp:
    """The end of the channel where the server is: an app that passes on what it is asked.

    Parameters
    ----------
    channel : socket
    targets : iterable of bytes
        What is answered without ASGI, see `Routed`.
    """

    lifespan: ClassVar[str] = "on"  #: The channel is one of the server's loop.

    def __init__(self, channel: socket.socket, targets: Iterable[bytes]) -> None:
        self._channel, self._numbers = channel, count(1)
        self._at_work: dict[int, Callable[[Any], None]] = {}
        self.direct = {one: partial(self._one, one) for one in targets}
        self.over = threading.Event()
        self.link = Link(self._take, lambda: os._exit(1))  # nobody is left who could answer

    def _take(self, number: int, *said: Any) -> None:
        if not number:
            self.over.set()
        elif len(said) > 1:
            self._at_work.pop(number)(Reply(*said))
        elif number in self._at_work:
            self._at_work[number](*said)

    def _one(self, target: bytes, body: bytes, give: Give) -> bool:
        if len(self._at_work) >= MOST:
            return False
        number = next(self._numbers)
        self._at_work[number] = give
        self.link.send(number, target, body)
        return True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end with the server."""
        if scope["type"] == "lifespan":
            await receive()
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self.link, self._channel)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        if len(self._at_work) >= MOST:
            error = b'{"error":"%d requests wait already"}' % len(self._at_work)
            await answer(send, Reply("application/json", error, {"Retry-After": "1"}, 429))
            return
        number, came = next(self._numbers), asyncio.Queue[Any]()
        self._at_work[number] = came.put_nowait
        self.link.send(number, {name: scope[name] for name in SCOPE if name in scope})
        try:
            while (said := await came.get()) is not False:
                if said is None:
                    self.link.send(number, await receive())
                else:
                    await send(said)
        finally:
            del self._at_work[number]


def work_apart(handle: int | None) -> None:
    """Serve what the process at the other end of a channel says, until it wants an end, or is gone."""
    try:
        from venn.show.server import serving
    except ImportError:
        return  # the other process says it
    if sys.platform == "win32":
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)
        channel = socket.fromshare(sys.stdin.buffer.read())
    else:
        channel = socket.socket(fileno=handle)
    size = channel.recv(SIZE.size, socket.MSG_WAITALL)
    if not size:  # there was no app
        return
    ((setup,),) = msgspec.msgpack.decode(channel.recv(SIZE.unpack(size)[0], socket.MSG_WAITALL))
    app = FarApp(channel, setup.pop("direct"))
    with (
        suppress(OSError),  # the other process meets it as well, and says it
        serving(app, say=lambda line: app.link.send(0, line), **setup) as port,
    ):
        app.link.loop.call_soon_threadsafe(app.link.send, 0, port)
        app.over.wait()
