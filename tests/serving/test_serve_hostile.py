"""Hostile requests to a served model: none ends it, and nothing of them is learned."""

import gzip
import json
import random
import socket

import pytest
from run_cases import left
from serve_cases import CLASSES, conformal, served

from streams import Nominal
from streams.form import Decoder, Form
from venn.serving.messages import read_event
from venn.serving.owner import ASK
from venn.show import server

NUMBERS = ("NaN", "Infinity", "-Infinity", "1e400", "-1e999", "1" * 5000, "0x10", "01", "1.", ".5", "--1", "1e",
           "true", '"1"', "[]", "{}", '"\\ud800"')  # fmt: skip
TARGETS = (
    "/../ask", "/ask/", "/%61sk", "//ask", "/ask%00", "/ask;", "/ask?x=" + "a" * 20_000,
    "/questions/..%2f..%2fetc%2fpasswd",
    "/questions/%ff%fe", "/questions/", "/questions/a%00b", "/v2/models/../ask", "/v2/models/model/infer/", "/ask#a",
    "http://evil.example/ask", "*", "ask", "/\\ask", "/answer ", "/static/../ask", "/" + "a/" * 4000, "/run.db",
    "/questions/" + "9" * 400, "/questions/-9223372036854775809", "/docs/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
)  # fmt: skip


def request(body=b"", headers=(), method="POST", target="/ask", length=None, version="HTTP/1.1"):
    """Return the bytes of a request; `{port}` in a header is the server's."""
    given = [("Host", "127.0.0.1:{port}"), ("Content-Type", "application/json"), ("Connection", "close")]
    given = [one for one in given if one[0] not in dict(headers)] + [one for one in headers if one[1] is not None]
    size = len(body) if length is None else length
    if size != "none":
        given.append(("Content-Length", str(size)))
    head = "\r\n".join([f"{method} {target} {version}", *(f"{name}: {value}" for name, value in given), "", ""])
    return head.encode("latin1") + body


def bodies(dice):
    """Yield bodies that are no question, in any form."""
    for number in NUMBERS:
        yield f'{{"id": "h", "x": [0.5, {number}]}}'.encode()
        yield f'{{"id": {number}, "x": [0.5, "a"]}}'.encode()
        yield f'{{"id": "h", "y": {number}}}'.encode()
    for deep in (50, 500, 5000, 200_000):
        yield b'{"id": "h", "x": ' + b"[" * deep + b"]" * deep + b"}"
        yield b'{"id": "h", "x": ' + b'{"a":' * deep + b"1" + b"}" * deep + b"}"
        yield b"[" * deep
    good = b'{"id": "h", "x": [0.5, 1.0]}'
    for encoding in ("utf-16", "utf-32", "utf-16-le", "cp037", "utf-8-sig"):
        yield good.decode().encode(encoding)
    yield from (
        b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf" + good, good + good, good[:-1], b"null", b"[]", b"7", b'"x"', b"{}",
    )  # fmt: skip
    yield b'{"id": "h", "x": [0.5, 1.0], "x": [1, 1]}'
    yield b'{"id": "h", "x": [0.5, 1.0], "__proto__": {}}'
    yield b'{"id": "' + b"i" * 2000 + b'", "x": [0.5, 1.0]}'
    yield b'{"id": "h", "x": [' + b"1," * 100_000 + b"1]}"
    yield b'{"id": "h", "x": {"a": 1, "b": ' + b"9" * 400 + b"}}"
    yield json.dumps([{"id": 1.5, "x": [1, 1]}] * 50).encode()
    for _ in range(80):  # bytes of a good one, changed here and there
        torn = bytearray(b'{"id": "h", "x": [0.5, 1.0]}')
        for _ in range(dice.randrange(1, 4)):
            torn[dice.randrange(len(torn))] = dice.randrange(256)
        torn[-1:] = b""  # never whole
        yield bytes(torn)
    for _ in range(40):
        yield dice.randbytes(dice.randrange(1, 3000))


def hostile(dice):
    """Yield the bytes of hostile requests."""
    for body in bodies(dice):
        yield request(body)
        if dice.random() < 0.25:
            yield request(body, target=dice.choice(("/answer", "/v2/models/model/infer")))
    good = b'{"id": "h", "x": [0.5, 1.0]}'
    yield from (request(good, target=target) for target in TARGETS)
    yield from (request(target=target, method="GET") for target in TARGETS if "questions" in target)
    for method in ("GET", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "", "post", "POST\0", "A" * 300):
        yield request(good, method=method)
    for headers in (
        [("Host", "evil.example")], [("Host", "")], [("Host", None)], [("Host", "127.0.0.1:{port}@evil.example")],
        [("Origin", "http://evil.example")], [("Origin", "null")],
        [("X-Forwarded-Host", "evil.example"), ("Host", "evil")],
        [("Content-Type", "text/plain"), ("Origin", "http://127.0.0.1:{port}")],
        [("Content-Type", "multipart/form-data; boundary=x"), ("Origin", "http://127.0.0.1:{port}")],
        [("Transfer-Encoding", "chunked")], [("Transfer-Encoding", "chunked, identity")],
        [("Transfer-Encoding", "xchunked")],
        [("Content-Length", "5")], [("Content-Length ", "5")], [("A", "b" * 20_000)], [("A" * 20_000, "b")],
        [("Bad Name", "b")], [("A\0", "b")], [("A", "b\0")], [("A", "b\r\n c: d")],
    ):  # fmt: skip
        yield request(good, headers)
    yield from (request(good, length=length) for length in ("-1", "9" * 30, "1e3", " 28 28", "+28", "0x1c"))
    yield request(b"0" * 100, length=2**24 + 1)
    yield request(b"0" * 100, length=2**62)
    chunked = [("Transfer-Encoding", "chunked")]
    for chunks in (
        b"zz\r\n",
        b"ffffffffffffffffffff\r\n",
        b"-1\r\n",
        b"1\r\naa\r\n",
        b"5\r\nhello\r\n0\r\nA: " + b"b" * 50_000,
    ):
        yield request(b"", chunked, length="none") + chunks
    smuggled = request(good, target="/ask")
    yield request(b"0\r\n\r\n" + smuggled, chunked, length=5)
    yield request(b"", [("Expect", "100-continue")], length=10)
    for version in ("HTTP/0.9", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "HTTPS/1.1", ""):
        yield request(b"", [("Host", "evil.example")], version=version)
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + dice.randbytes(60)  # TLS
    yield b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n"
    yield b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nHost: evil\r\n\r\n"


def sent(port, content):
    """Send a request in pieces, and return the status of the reply; 0 where there is none."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.settimeout(30)
        try:
            connection.sendall(content.replace(b"{port}", str(port).encode()))
            reply = b""
            while part := connection.recv(65_536):
                reply += part
        except OSError:
            return 0
    reply = reply.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    return int(reply[9:12]) if reply.startswith(b"HTTP/1.1 ") else 0


@pytest.mark.parametrize("seed", [0])
def test_three_hundred_hostile_requests_end_nothing_and_teach_nothing(seed, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(server, "SECONDS", 0.5)
    monkeypatch.setattr("venn.serving.addresses.LARGEST_BODY", 2**20)
    said, statuses = [], []
    with served(tmp_path / "run.db", say=said.append) as (client, app):
        for number in range(3):
            client.post("/ask", json={"id": number, "x": [0.5, 1.0]})
        client.post("/answer", json={"id": 0, "y": "yes"})
        before = left(tmp_path / "run.db")
        for content in hostile(random.Random(seed)):
            status = sent(client.base_url.port, content)
            statuses.append(status)
            assert status == 0 or 400 <= status < 500, (status, content[:300])
        assert len(statuses) >= 300
        assert left(tmp_path / "run.db") == before
        assert app.owner.failure is None
        assert client.post("/answer", json={"id": 1, "y": "no"}).status_code == 200
        assert client.get("/readyz").status_code == 200
    assert sum(map(bool, statuses)) > 250, "nearly all are told so"
    assert {400, 403, 404, 405, 413, 415, 422} <= set(statuses)
    assert capfd.readouterr() == ("", "")
    assert all(line.isprintable() and len(line) <= 200 for line in said)


def test_after_a_restart_one_object_of_another_length_shuts_out_nobody(tmp_path):
    for process, lengths in enumerate([(2, 2), (5, 2, 3, 2)]):
        with served(tmp_path / "run.db", conformal()) as (client, app):
            app.readers = Decoder(Form(classes=CLASSES))
            asked = [client.post("/ask", json={"id": f"{process} {i}", "x": [1] * n}) for i, n in enumerate(lengths)]
            assert [one.status_code for one in asked] == [200 if n == 2 else 422 for n in lengths]
            client.post("/answer", json={"id": f"{process} 1", "y": "yes"})


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ({"a": None, "c": "u"}, "x, feature 'a' is missing, got null"),
        ({"a": "old", "c": "u"}, "x, feature 'a' must be a number, got 'old'"),
        ({"a": 1, "c": None}, "x, feature 'c' is missing, got null"),
    ],
)
def test_a_client_is_not_told_what_whoever_declares_the_columns_can_do(x, said):
    readers = Decoder(Form(features=["a", "c"], schema={"c": Nominal(["u", "v"])}))
    assert read_event(ASK, {"id": 1, "x": x}, readers).error == said


def test_a_body_that_is_packed_is_refused_by_what_is_wrong(tmp_path):
    with served(tmp_path / "run.db") as (client, _):
        packed = gzip.compress(b'{"id": 1, "x": [0.5, 1.0]}')
        said = client.post("/ask", content=packed, headers={"Content-Encoding": "gzip"})
    assert (said.status_code, said.json()) == (415, {"error": "the body must be sent as it is, not packed as gzip"})
