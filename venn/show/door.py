"""Who may read what a server shows, decided from the headers of a request, and the form of what is shown."""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import NamedTuple

SHORTEST = 16  # letters of a token
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
WEB = (80, 443)  # ports that browsers leave out
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


class Reply(NamedTuple):
    """The answer to a request that the door lets in."""

    kind: str  #: media type
    body: bytes
    headers: Mapping[str, str] = {}
    status: int = 200


TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
Routes = Mapping[str, Callable[[Mapping[str, list[str]]], Reply]]  # by path; of the parts of the query


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
            names |= _with_port(name, port, port in WEB)
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
