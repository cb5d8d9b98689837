"""A learning model as an ASGI app: it takes questions and answers, and serves the page of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import msgspec

from venn.online.watch import Watch
from venn.serving import inference
from venn.serving.addresses import JSON, LINES, OF_LINES, Address, RequestRefused, body_of, kind_of
from venn.serving.describe import docs, openapi
from venn.serving.messages import Readers, Wrong, has_values, read_event, read_json, refused, within
from venn.serving.owner import ANSWER, ASK, LOOK, MOST, PATH, Busy, EventReply, Job, ModelEvent, RunOwner
from venn.show.door import HTML, Reply, Routes
from venn.show.guard import ASGI, READY, Give, Guard, Receive, Scope, Send
from venn.show.metrics import of_metrics
from venn.show.page.feed import NUMBER, Feed
from venn.show.page.page import POLICY, Page
from venn.show.routes import Route, Routed, readable

MOUNTED = "/questions/{id:path}"


class ServedModel:
    """A run as an ASGI app, made by `venn.serve`: for uvicorn, or to mount in your own program.

    It begins with the first request, or when it is entered, or by the lifespan of its server; a mounted app does not
    get that. As a context manager it ends what waits, and writes the last checkpoint.

    Parameters
    ----------
    owner : RunOwner
    path : Path, optional
        Of the journal.
    readers : Readers
        How JSON becomes objects and labels.
    name : str
        For the Open Inference Protocol.
    example : mapping, optional
        An object and a label for the examples of `/docs`.
    """

    def __init__(
        self,
        owner: RunOwner,
        path: Path | None,
        readers: Readers,
        name: str = "model",
        example: Mapping[str, Any] | None = None,
    ) -> None:
        self.owner, self.path, self.readers, self.name = owner, path, readers, name
        self.series = has_values(readers)
        self.example = dict(example or {"x": [1.0, 2.0], "y": 5.2 if self.series else "yes"})
        self._pool = ThreadPoolExecutor(1, "venn page")  # pages and questions do not wait for each other
        self._feed: Feed | None = None
        self.routes: ASGI = Routed(
            [
                Route("/ask", Address({"POST": partial(self._many, ASK)})),
                Route("/answer", Address({"POST": partial(self._many, ANSWER)})),
                *([Route("/path", Address({"GET": self._path}))] if self.series else ()),
                Route(READY, Address({"GET": self._ready})),
                Route("/openapi.json", Address({"GET": self._openapi})),
                Route("/docs", Address({"GET": self._docs})),
                *self._beside(),
                *readable(self._shown(), self._pool),
            ],
            "/docs",
            {b"/ask": partial(self._one, ASK), b"/answer": partial(self._one, ANSWER)},
        )
        self._guarded = Guard(self.routes, None)

    def _beside(self) -> list[Any]:
        """Return further routes of a subclass."""
        protocol = inference.addresses(self.name, self.owner, self.readers, self.happen)
        looked = Route(MOUNTED, Address({"GET": self._question}))
        return [looked, *(Route(at, Address(methods)) for at, methods in protocol.items())]

    def _shown(self) -> Routes:
        """Return the addresses that are only read."""
        path = self.path
        assert path is not None
        self._feed = Feed(lambda: Watch(path), path)
        return {**Page(self._feed).routes(), **of_metrics(lambda: Watch(path))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        in_pool = partial(asyncio.get_running_loop().run_in_executor, None)
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await in_pool(self.owner.wait)
                if self.owner.failure is not None:
                    await send({"type": "lifespan.startup.failed", "message": self.owner.trouble})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await in_pool(self.close)
                await send({"type": "lifespan.shutdown.complete"})
                return

    def __enter__(self) -> Self:
        self.owner.wait()
        if self.owner.failure is not None:
            raise self.owner.failure
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no more, finish what waits, and write the last checkpoint."""
        self.owner.close()
        self._pool.shutdown()
        if self._feed is not None:
            self._feed.close()

    # ------------------------------------------------------------------ asking and answering

    async def _many(self, what: str, scope: Scope, receive: Receive) -> Reply:
        """Let the message of a request happen, or all of many."""
        kind = kind_of(scope)
        body = await body_of(scope, receive)
        if kind in OF_LINES:
            lines = [line for line in body.split(b"\n") if line.strip()]
            messages: list[Any] = []
            for line in lines:
                try:
                    messages.append(read_json(line, "the line"))
                except ValueError as error:
                    messages.append(Wrong(422, str(error)))
        else:
            try:
                value = read_json(body)
            except ValueError as error:
                raise RequestRefused(Wrong(422, str(error))) from None
            if not isinstance(value, list):
                event = self._event(what, value)
                return replied(event) if isinstance(event, Wrong) else replied(*await self.happen([event]))
            messages = value
        if not messages or len(messages) > MOST:
            text = f"the body must have from 1 to {MOST} messages, got {len(messages)}"
            raise RequestRefused(Wrong(413 if messages else 422, text))
        events = [one if isinstance(one, Wrong) else self._event(what, one) for one in messages]
        replies = iter(await self.happen([one for one in events if not isinstance(one, Wrong)]))
        found = [one if isinstance(one, Wrong) else next(replies) for one in events]
        contents = [_content(one, place) for place, one in enumerate(found)]
        statuses = {one.status for one in found}
        status = statuses.pop() if len(statuses) == 1 else 207
        if kind in OF_LINES:
            return Reply(LINES, b"".join(msgspec.json.encode(one) + b"\n" for one in contents), {}, status)
        return Reply(JSON, msgspec.json.encode(contents), {}, status)

    def _one(self, what: str, body: bytes, give: Give) -> bool:
        """Let the message of a body happen; return False, and do nothing, where `_many` has more to say of it."""
        try:
            value = read_json(body)
            event = self._event(what, value) if isinstance(value, dict) else None
            if event is None or isinstance(event, Wrong):
                return False
            self.owner.put(Job([event], ReplyTaker(give)))
        except (ValueError, Busy):
            return False
        return True

    def _event(self, what: str, message: Any) -> Any:
        """Return the event of a message, or what is wrong with it."""
        return read_event(what, message, self.readers)

    async def happen(self, events: Sequence[Any]) -> list[EventReply]:
        """Let events happen, or say when to try again."""
        if not events:
            return []
        try:
            return await self.owner.happen(events)
        except Busy as busy:
            raise later(busy) from None

    async def _question(self, scope: Scope, receive: Receive) -> Reply:
        """Return what was said of a question, and what came."""
        raw = scope.get("raw_path")
        said: str = scope["path_params"]["id"]
        if raw is not None and b"%2" in raw:  # a slash in an id
            said = unquote(raw.decode("latin1").rpartition("/questions/")[2], errors="replace")
        replies = await self.happen([ModelEvent(LOOK, storable(said))])
        if replies[0].status == 404 and NUMBER.fullmatch(said):
            replies = await self.happen([ModelEvent(LOOK, int(said))])
        return replied(replies[0])

    async def _path(self, scope: Scope, receive: Receive) -> Reply:
        """Return what is said of the next values of a series."""
        return replied((await self.happen([ModelEvent(PATH, None)]))[0])

    async def _ready(self, scope: Scope, receive: Receive) -> Reply:
        """Return whether the journal is read."""
        self.owner.start()
        ready = not self.owner.trouble
        return Reply(JSON, msgspec.json.encode({"ready": ready}), {}, 200 if ready else 503)

    # ------------------------------------------------------------------ what there is

    def _described(self, root: str) -> dict[str, Any]:
        return openapi(self.name, self.example, root, self.series)

    async def _openapi(self, scope: Scope, receive: Receive) -> Reply:
        return Reply(JSON, msgspec.json.encode(self._described(_root(scope))))

    async def _docs(self, scope: Scope, receive: Receive) -> Reply:
        page = docs(self._described(_root(scope)))
        return Reply(HTML, page.encode(), {"Content-Security-Policy": POLICY})


class ReplyTaker:
    """Takes the reply of the owner to one event in the place of a future, and gives it on.

    Parameters
    ----------
    give : callable
    """

    def __init__(self, give: Give) -> None:
        self._give = give

    def done(self) -> bool:
        """Whether nobody waits any more: who is given the reply knows that."""
        return False

    def set_result(self, replies: Sequence[EventReply]) -> None:
        """Take the reply."""
        self._give(replied(replies[0]))

    def set_exception(self, error: Busy) -> None:
        """Take what the owner cannot do now."""
        self._give(later(error).reply)


def later(busy: Busy) -> RequestRefused:
    """Return the refusal of a request that may come again."""
    return RequestRefused(Wrong(busy.status, str(busy)), {"Retry-After": str(busy.seconds)})


def _content(one: EventReply | Wrong, place: int) -> dict[str, Any]:
    """Return the reply to one of many messages, with the status of a refused one."""
    if one.status == 200:
        return one.content
    wrong = one if isinstance(one, Wrong) else refused(one.content["error"], one.status)
    return {"status": wrong.status, **within(f"[{place}]", wrong).content}


def replied(one: EventReply | Wrong) -> Reply:
    """Return the reply to a request of one message."""
    if one.status == 200:
        return Reply(JSON, msgspec.json.encode(one.content))
    wrong = one if isinstance(one, Wrong) else refused(one.content["error"], one.status)
    return Reply(JSON, msgspec.json.encode(wrong.content), {}, wrong.status)


def storable(text: str) -> str:
    """Return a text that SQLite can hold."""
    return text.encode("utf-8", "replace").decode()


def _root(scope: Scope) -> str:
    """Return the path at which the app is shown."""
    return str(scope.get("venn.root") or scope.get("root_path", ""))
