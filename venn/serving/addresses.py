"""Addresses of a model: what each method does there, how a request is read, and how it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from venn.serving.messages import Wrong
from venn.show.door import Refusal, Reply
from venn.show.guard import Receive, Scope, Send, answer

LARGEST_BODY = 2**24  # bytes of a body
JSON, LINES = "application/json", "application/x-ndjson"
OF_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines")


class Gone(Exception):
    """Raised where a client has gone before its request was whole: nothing happens."""


class RequestRefused(Exception):
    """Raised where a request is refused as a whole.

    Parameters
    ----------
    wrong : Wrong
    headers : mapping
    """

    def __init__(self, wrong: Wrong, headers: Mapping[str, str] = {}) -> None:
        super().__init__(wrong.error)
        self.wrong, self.headers = wrong, headers

    @property
    def reply(self) -> Reply:
        """What is answered."""
        return Reply(JSON, msgspec.json.encode(self.wrong.content), self.headers, self.wrong.status)


Endpoint = Callable[[Scope, Receive], Any]  # returns a Reply


class Address:
    """An address of the model: what each method does there.

    Parameters
    ----------
    methods : mapping of str to coroutine function
        Of the request and its body; returns a `Reply`, or raises `RequestRefused`.
    """

    def __init__(self, methods: Mapping[str, Endpoint]) -> None:
        self._methods = dict(methods)
        if "GET" in self._methods:
            self._methods["HEAD"] = self._methods["GET"]
        self._allowed = ", ".join([*self._methods, "OPTIONS"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        method = scope["method"]
        try:
            if method in self._methods:
                said: Reply | Refusal = await self._methods[method](scope, receive)
            elif method == "OPTIONS":
                said = Reply(JSON, b"", {"Allow": self._allowed})
            else:
                wrong = Wrong(405, f"the method must be one of {self._allowed}, got {method}")
                raise RequestRefused(wrong, {"Allow": self._allowed})
        except RequestRefused as refusal:
            said = refusal.reply
        except Gone:
            return
        await answer(send, said)


def kind_of(scope: Scope) -> str:
    """Return the media type of a request; only a program may leave it out.

    A page of another site may send text and forms to any server, and says its origin; JSON only to one that allows it.
    """
    kind, origin = "", False
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind = value.decode("latin1").partition(";")[0].strip().lower()
        if name == b"content-encoding" and value.lower() not in (b"", b"identity"):
            raise RequestRefused(Wrong(415, f"the body must be sent as it is, not packed as {value.decode('latin1')}"))
        origin = origin or name == b"origin"
    if origin and kind not in (JSON, *OF_LINES):
        raise RequestRefused(Wrong(415, f"the content type must be {JSON} or {LINES}, got {kind!r}"))
    return kind


async def body_of(scope: Scope, receive: Receive) -> bytes:
    """Return the body of a request, unless it is too long."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if length.isdigit() and int(length[:20]) > LARGEST_BODY:
        raise RequestRefused(Wrong(413, f"the body must have at most {LARGEST_BODY} bytes, got {length.decode()[:20]}"))
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise RequestRefused(Wrong(413, f"the body must have at most {LARGEST_BODY} bytes, got more"))
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
