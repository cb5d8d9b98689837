"""A fleet behind HTTP: questions and answers of many streams, each message with the key of its own."""

from __future__ import annotations

import json
import secrets
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from venn.labels import space_of
from venn.online.chain import copy_object, encode_object
from venn.online.journal import JournalError
from venn.online.run import REFUSALS
from venn.prediction import plain
from venn.scale.fleet import GIVEN_UP, Fleet, checked_key
from venn.scale.key_changes import KeyChange
from venn.serving.addresses import Address
from venn.serving.app import MOUNTED, ServedModel, replied, storable
from venn.serving.describe import openapi
from venn.serving.messages import WRONG, Readers, Wrong, read_event, refused, shortened
from venn.serving.owner import ANSWER, ASK, LOOK, EventReply, RunOwner, refusal
from venn.show.door import Reply, Routes
from venn.show.guard import Receive, Scope
from venn.show.metrics import fleet_metrics
from venn.show.page.feed import NUMBER
from venn.show.page.fleet import Events, FleetPage, ShownFleet
from venn.show.routes import Route

DIGEST = 16  # bytes of a digest that identifies an object
TABLE = """CREATE TABLE IF NOT EXISTS replies (
    key TEXT NOT NULL, id NOT NULL, object BLOB NOT NULL, asked BLOB NOT NULL, time REAL NOT NULL, label TEXT,
    answered BLOB, UNIQUE (key, id)
)"""


class KeyedRequest(NamedTuple):
    """A question of a stream, its answer, or a look at both."""

    what: str  #: `ASK`, `ANSWER` or `LOOK`
    id: int | str | None
    x: Any = None
    y: Any = None
    key: str = ""


def read_keyed(field: str, what: str, message: Any, readers: Readers) -> KeyedRequest | Wrong:
    """Return the event of a message that has its key under a name, or what is wrong with it."""
    if not isinstance(message, dict):
        return Wrong(422, f"must be an object with {field}, id and {'x' if what == ASK else 'y'}, got no object")
    try:
        key = checked_key(message.get(field))
    except WRONG as error:
        said = str(error).removeprefix("key ")
        return Wrong(422, f"{field} {shortened(said)}", field)
    event = read_event(what, {name: value for name, value in message.items() if name != field}, readers)
    return event if isinstance(event, Wrong) else KeyedRequest(*event, key=key)


class FleetOwner(RunOwner):
    """Owns a fleet in a thread of its own, and remembers its replies, so that a repeated message gets the same reply.

    Parameters
    ----------
    make : callable
        Returns the `Fleet`, in its folder; called in the thread.
    field : str
        What messages call a key.
    **options
        Those of `RunOwner`.

    Attributes
    ----------
    named : deque of KeyChange
        Keys that were named since somebody has last looked.
    """

    def __init__(self, make: Callable[[], Fleet], field: str, **options: Any) -> None:
        starting: Any = make
        super().__init__(starting, **options)
        self.field, self.named = field, deque[KeyChange]()

    def _begin(self, online: Any) -> None:
        if online.connection is None:
            raise ValueError("a served fleet must have a folder")
        online.connection.execute(TABLE)

    def _abandon(self, online: Any) -> None:
        """Do nothing: a transaction of a fleet rolls back by itself."""

    def _rest(self, online: Any) -> None:
        """Do nothing: each transaction of a fleet writes what its page shows."""

    @staticmethod
    def _events(online: Any) -> int:
        return 0  # there is no verdict for each event

    def _happen(self, online: Any, events: Sequence[Any]) -> list[tuple[EventReply, int | None]]:
        """Let the first event happen."""
        does = {ASK: self._asks, ANSWER: self._answers, LOOK: self._looks}[events[0].what]
        return [(does(online, events[0]), None)]

    @staticmethod
    def _known(fleet: Any, event: KeyedRequest) -> Any:
        """Return the object, reply and time of a question, and its label and reply, None before the answer."""
        statement = "SELECT object, asked, time, label, answered FROM replies WHERE key = ? AND id = ?"
        return fleet.connection.execute(statement, (event.key, event.id)).fetchone()

    def _asks(self, fleet: Any, event: KeyedRequest) -> EventReply:
        if event.id is None:
            event = event._replace(id=f"q-{secrets.token_hex(8)}")
        try:
            content = encode_object(copy_object(event.x))
            known, digest = self._known(fleet, event), blake2b(content, digest_size=DIGEST).digest()
            if known is not None and known[0] != digest:
                text = f"x must be the object that was asked about before, got another for id {event.id!r}"
                return EventReply(409, {"error": text})
            if known is not None:
                return EventReply(200, _unpacked(known[1]))
            said = fleet.ask(event.key, event.x, event.id)
        except JournalError:
            raise
        except REFUSALS as error:
            return refusal(error)
        each = said if isinstance(said, Mapping) else {type(said).__name__: said}
        reply = {"id": event.id, self.field: event.key, "predictions": {name: plain(one) for name, one in each.items()}}
        fleet.connection.execute(
            "INSERT INTO replies VALUES (?, ?, ?, ?, ?, NULL, NULL)",
            (event.key, event.id, digest, _packed(reply), time.time()),
        )
        return EventReply(200, reply)

    def _answers(self, fleet: Any, event: KeyedRequest) -> EventReply:
        known = self._known(fleet, event)
        if known is None and event.id not in fleet.pending(event.key):  # nor was it asked elsewhere
            ended = fleet.ended(event.key, event.id)
            if ended is None:
                return self._none(event)
            text = f"id must be that of a question that waits, got {event.id!r}, which is {ended}"
            return EventReply(410 if ended == GIVEN_UP else 409, {"error": text})
        if known is not None and known[3] is not None:
            came = json.loads(known[3])
            space = space_of(fleet.model(event.key))
            try:
                same = space.encode(event.y) == space.encode(came)
            except (TypeError, ValueError) as error:
                return refusal(error)
            if same:
                return EventReply(200, _unpacked(known[4]))
            text = f"y must be the label that came before, {came!r}, got {event.y!r} for id {event.id!r}"
            return EventReply(409, {"error": text})
        named: tuple[KeyChange, ...] = ()
        try:
            named = fleet.answer(event.key, event.id, event.y)
        except JournalError:
            raise
        except REFUSALS as error:
            ended = fleet.ended(event.key, event.id)
            if ended is None:
                return refusal(error)
            if ended == GIVEN_UP:
                return EventReply(410, {"error": str(error)})
            if self._warn is not None:  # it is learned, and counts
                self._warn(f"learned an answer with an error: {event.id!r} of {event.key!r}: {error}")
        self.named += named
        reply = {"id": event.id, self.field: event.key, "named": [one._asdict() for one in named]}
        fleet.connection.execute(
            "UPDATE replies SET label = ?, answered = ? WHERE key = ? AND id = ?",
            (json.dumps(event.y), _packed(reply), event.key, event.id),
        )
        return EventReply(200, reply)

    def _looks(self, fleet: Any, event: KeyedRequest) -> EventReply:
        known = self._known(fleet, event)
        if known is None:
            return self._none(event)
        content = {**_unpacked(known[1]), "time": known[2]}
        if known[3] is not None:
            told = {"named": _unpacked(known[4])["named"]}
            return EventReply(200, content | {"status": "answered", "y": json.loads(known[3]), "answer": told})
        return EventReply(200, content | {"status": fleet.ended(event.key, event.id) or "waits"})

    def _none(self, event: KeyedRequest) -> EventReply:
        text = f"id must be that of a question that was asked with this {self.field}, got {event.id!r} of {event.key!r}"
        return EventReply(404, {"error": text})


def _packed(reply: Mapping[str, Any]) -> bytes:
    return zlib.compress(msgspec.json.encode(reply), 1)


def _unpacked(content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(zlib.decompress(content))
    return found


class ServedFleet(ServedModel):
    """A fleet as an ASGI app, as `ServedModel` is one run as an app.

    Parameters
    ----------
    owner : FleetOwner
    readers : Readers
    read : callable
        Returns what the page shows, see `FleetPage`; called beside the owner.
    events : callable
        Returns what has happened to a key lately.
    example : mapping, optional
        An object and a label for the examples of `/docs`.
    """

    def __init__(
        self, owner: FleetOwner, readers: Readers, read: Callable[[], ShownFleet], events: Events,
        example: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._page, self._read, self.field = FleetPage(read, events), read, owner.field
        super().__init__(owner, None, readers, "fleet", example)

    def _shown(self) -> Routes:
        return {**self._page.routes(), **fleet_metrics(self._read)}

    def _beside(self) -> list[Any]:
        return [Route(MOUNTED, Address({"GET": self._question}))]

    def _event(self, what: str, message: Any) -> KeyedRequest | Wrong:
        return read_keyed(self.field, what, message, self.readers)

    async def _question(self, scope: Scope, receive: Receive) -> Reply:
        """Return what was said of a question, and what came: the path is the key, a slash, and the id."""
        raw = scope.get("raw_path")
        path = scope["path_params"]["id"] if raw is None else raw.decode("latin1").rpartition("/questions/")[2]
        key, slash, id = path.partition("/")
        if raw is not None:
            key, id = unquote(key, errors="replace"), unquote(id, errors="replace")
        try:
            checked_key(storable(key))
        except ValueError:
            slash = ""
        if not slash:
            return replied(refused(f"id must be {self.field} and id of a question, with a slash between", 404))
        found = EventReply(404, {})
        for one in (storable(id), int(id) if NUMBER.fullmatch(id) else None):
            if one is not None and found.status == 404:
                (found,) = await self.happen([KeyedRequest(LOOK, one, key=storable(key))])
        return replied(found)

    def _described(self, root: str) -> dict[str, Any]:
        """Return the description of the addresses of one run, with a key in each message."""
        found = openapi(self.name, self.example, root)
        found["info"] |= {
            "title": "A fleet of models that learn",
            "description": f"Each {self.field} has a model of its own. Ask about an object; when its label comes, "
            "answer, and the model learns it.",
        }
        paths = {path: one for path, one in found["paths"].items() if not path.startswith("/v2/")}
        for path in ("/ask", "/answer"):
            content = paths[path]["post"]["requestBody"]["content"]["application/json"]
            schema = content["schema"]
            schema["properties"][self.field] = {"type": "string", "minLength": 1}
            schema["required"] = [self.field, *schema["required"]]
            content["example"] = {self.field: "Oslo", **content["example"]}
        said = paths["/ask"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
        learned = paths["/answer"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
        for one in (said, learned):
            for absent in ("event", "verdict", "alarms"):
                one.pop(absent, None)
            one[self.field] = {"type": "string"}
        learned["named"] = {"type": "array", "items": {"type": "object"}}
        paths["/answer"]["post"]["description"] = (
            "Also a list, or lines. `named` has the keys that this label names as changed, not always its own."
        )
        looked = paths.pop("/questions/{id}")
        key = {"name": self.field, "in": "path", "required": True, "schema": {"type": "string"}}
        looked["get"]["parameters"] = [key, *looked["get"]["parameters"]]
        paths[f"/questions/{{{self.field}}}/{{id}}"] = looked
        paths["/"]["get"]["summary"] = "The page of the fleet, for a browser"
        paths["/metrics"]["get"]["summary"] = "Its counts, for Prometheus"
        return found | {"paths": paths}
