"""Small requests, which are answered without ASGI, get to the byte what the app answers; all others get to the app."""

import json
import re
import socket

import pytest
from serve_cases import served
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from venn.show import server

TOKEN = "correct-horse-battery"
GOOD = {"id": "a", "x": [0.5, 1.0]}
MESSAGES = [
    ("/ask", GOOD),
    ("/ask", GOOD),
    ("/ask", {"id": "a", "x": [0.5, 2.0]}),  # 409
    ("/ask", {"id": 7, "x": [0.5, "a"]}),
    ("/ask", {"id": "late", "x": [1, 1.0]}),
    ("/ask", {"id": "a", "z": 1}),
    ("/answer", {"id": "a", "y": "yes"}),
    ("/answer", {"id": "a", "y": "yes"}),
    ("/answer", {"id": "a", "y": "no"}),  # 409
    ("/answer", {"id": "never", "y": "no"}),  # 404
    ("/answer", {"id": "late", "y": "perhaps"}),
    ("/ask", [GOOD]),
    ("/ask", 5),
    ("/ask?", GOOD),
]


def sent(path, message, *headers, port, method="POST"):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    given = dict((("Host", f"127.0.0.1:{port}"), ("Content-Type", "application/json"), *headers))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None)]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def received(link):
    """Return one answer, without its date."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += link.recv(1) or pytest.fail(f"the connection ended after {found!r}")
    length = int(re.search(rb"content-length: (\d+)", found)[1])
    while length:
        part = link.recv(length)
        found, length = found + part, length - len(part)
    return re.sub(rb"\r\ndate: [^\r]*", b"", found)


@pytest.fixture
def direct(monkeypatch):
    """Give the answers that were not made by the app."""
    found, give = [], server.DirectRequest.give

    def counted(self, said):
        if said.kind == "application/json":  # no try
            found.append(said)
        give(self, said)

    monkeypatch.setattr(server.DirectRequest, "give", counted)
    return found


def asked(link, one):
    link.sendall(one)
    return received(link)


def test_answers_are_those_of_the_app(tmp_path, direct):
    with served(tmp_path / "run.db", token=TOKEN) as (client, _), socket.create_connection(
        (client.base_url.host, client.base_url.port), timeout=60
    ) as link:  # fmt: skip
        port, key = client.base_url.port, ("Authorization", f"Bearer {TOKEN}")
        for path, message in MESSAGES:
            here = asked(link, sent(path, message, key, port=port))
            count = len(direct)
            there = asked(link, sent(path, message, key, ("X-Any", "1"), port=port))
            assert here == there, (path, message)
            assert len(direct) == count, "a strange header is the app's"
        assert [said.status for said in direct] == [200, 200, 409, 422, 200, 200, 200, 409, 404, 422]
    with served(tmp_path / "run.db", token=TOKEN) as (client, _):
        port, key = client.base_url.port, ("Authorization", f"Bearer {TOKEN}")
        for more, status in (
            ((), b"401"),
            ((("Authorization", "Bearer no"),), b"401"),
            ((key, ("Host", "evil.example")), b"403"),
            ((key, ("Origin", "http://a.example")), b"403"),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
                assert asked(link, sent("/ask", GOOD, key, port=port)).split()[1] == b"200"
                count = len(direct)
                assert asked(link, sent("/ask", GOOD, *more, port=port)).split()[1] == status, "it was let in before"
                assert len(direct) == count


@pytest.mark.parametrize("name", ["scope", "keep_alive"])
def test_where_uvicorn_has_other_inner_names_all_goes_to_the_app(name, tmp_path, direct, monkeypatch):
    """One version asks more of a request than is known here; another one has forgotten a name."""
    complete = HttpToolsProtocol.on_message_complete

    def other(self):
        if name == "scope":
            assert self.cycle.scope
        elif isinstance(self.cycle, server.DirectRequest):
            del self.cycle.keep_alive
        complete(self)

    monkeypatch.setattr(HttpToolsProtocol, "on_message_complete", other)
    with served(tmp_path / "run.db") as (client, _), socket.create_connection(
        (client.base_url.host, client.base_url.port), timeout=60
    ) as link:  # fmt: skip
        said = [asked(link, sent(path, message, port=client.base_url.port)) for path, message in MESSAGES[:3]]
        assert [one.split()[1] for one in said] == [b"200", b"200", b"409"]
        assert not direct


def test_what_is_not_plain_gets_to_the_app(tmp_path, direct):
    with served(tmp_path / "run.db") as (client, _):
        port = client.base_url.port
        for path, message, *more in (
            ("/ask", GOOD, ("Content-Type", "application/x-ndjson")),
            ("/ask", {"id": "long", "x": [0.5, 1.0], "z": "a" * 10_000}),
            ("/ask", GOOD, ("Connection", "close")),
            ("/ask", GOOD, ("Content-Encoding", "gzip")),
            ("/ask", b""),
            ("/docs", GOOD),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
                asked(link, sent(path, message, *more, port=port))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            assert b"405" in asked(link, sent("/ask", GOOD, port=port, method="PUT"))
        assert not direct


def test_requests_that_come_together_or_in_pieces_are_answered_in_turn(tmp_path, direct):
    with served(tmp_path / "run.db") as (client, _):
        port = client.base_url.port
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            link.sendall(b"".join(sent("/ask", {"id": str(i), "x": [0.5, i]}, port=port) for i in range(5)))
            events = [json.loads(received(link).partition(b"\r\n\r\n")[2])["event"] for _ in range(5)]
            assert events == [1, 2, 3, 4, 5]
            for byte in sent("/answer", {"id": "3", "y": "yes"}, port=port):
                link.sendall(bytes([byte]))
            assert b'"event":6' in received(link)
            # Answers that wait among questions go in a block of their own, and are replied to in their turn.
            turns = [("/ask", {"id": f"t{i}", "x": [0.5, i]}) for i in range(20)]
            turns[9:9] = [("/answer", {"id": str(i), "y": "no"}) for i in range(3)]
            link.sendall(b"".join(sent(*one, port=port) for one in turns))
            said = [json.loads(received(link).partition(b"\r\n\r\n")[2])["id"] for _ in turns]
            assert said == [message["id"] for _, message in turns]
        assert len(direct) > 1


def test_a_body_may_be_larger_than_all_that_is_no_body(tmp_path):
    body = b"[" + b" " * 2 * server.BESIDE + json.dumps({"id": "wide", "x": [0.5, 1.0]}).encode() + b"]"
    with served(tmp_path / "run.db") as (client, _), socket.create_connection(
        (client.base_url.host, client.base_url.port), timeout=60
    ) as link:  # fmt: skip
        assert asked(link, sent("/ask", body, port=client.base_url.port)).split()[1] == b"200"
