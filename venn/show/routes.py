"""An ASGI app of routes: of addresses that are only read, and others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from venn.show.door import TEXT, Refusal, Reply, Routes
from venn.show.guard import METHODS, Direct, Receive, Scope, Send, answer, path_in

try:
    from starlette.routing import Route as Route
    from starlette.routing import Router
except ImportError as error:
    raise ImportError(
        f"a web server needs the packages of the extra 'serve' ({error}): pip install 'vennstream[serve]'"
    ) from error

ONLY_GET = Refusal(405, "405: there is nothing to do here but to read, by GET")


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
