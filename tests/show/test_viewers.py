"""Viewers never hurt a run, and never each other for long: however many, however slow, whatever they send."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest
from page_cases import write
from run_cases import until
from test_doors import asked, metrics, pages  # noqa: F401

from venn.show import server

# ruff: noqa: F811

MANY = 150


def half_open(port, stack, sent=b"GET /metrics HT", many=MANY):
    """Open many connections, and send the same on each, by default what is no whole request; return them."""
    opened = []
    for _ in range(many):
        one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        one.sendall(sent)
        opened.append(one)
    return opened


def is_ended(connection):
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


@pytest.fixture(params=["the page", "the metrics"])
def port(request, pages, metrics):
    """The port of a server, whichever it is."""
    if request.param == "the page":
        yield pages().port
        return
    with metrics() as found:
        yield found


def is_served(port):
    path = "/metrics" if asked(port, "/metrics", [("Host", f"localhost:{port}")]).status == 200 else "/run.json"
    return asked(port, path, [("Host", f"localhost:{port}")]).status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HT"])
def test_few_connections_are_held_in_one_thread_however_many_connect(port, monkeypatch, capfd, sent):
    monkeypatch.setattr(server, "CONNECTIONS", 10)
    before = threading.active_count()
    with ExitStack() as stack:
        opened = half_open(port, stack, sent)
        assert is_served(port)
        assert threading.active_count() == before
        assert all(map(is_ended, opened[: MANY - 10]))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_nobody_is_awaited_long(port, monkeypatch, capfd, sent):
    monkeypatch.setattr(server, "SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as slow:
        slow.sendall(sent.encode())
        assert is_ended(slow)
    assert capfd.readouterr() == ("", "")


def test_who_does_not_read_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 0.5)
    large = server.Reply("text/plain", b"x" * 50_000_000)
    with ExitStack() as stack:
        routes = {"/": lambda _: large, "/a": lambda _: server.Reply("text/plain", b"a")}
        port = stack.enter_context(server.serving(routes, "127.0.0.1", 0))
        slow = half_open(port, stack, f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode(), 4)[0]
        assert asked(port, "/a", [("Host", f"localhost:{port}")]).text == "a"
        time.sleep(0.6)
        got = 0
        with suppress(ConnectionResetError):
            while part := slow.recv(1_000_000):
                got += len(part)
        assert got < len(large.body)


def test_of_many_requests_in_a_row_few_are_read_before_they_are_answered(monkeypatch):
    """Else one client, who need not have the token, could fill the memory with what it asks."""
    waiting, complete = [], server.Limited.on_headers_complete

    def counted(self):
        complete(self)
        waiting.append(len(self.pipeline))

    monkeypatch.setattr(server.Limited, "on_headers_complete", counted)
    monkeypatch.setattr(server, "SECONDS", 1.5)
    routes = {"/": lambda asked: server.Reply("text/plain", asked["n"][0].encode() * 1000)}
    with ExitStack() as stack:
        port = stack.enter_context(server.serving(routes, "127.0.0.1", 0))
        lines = [f"GET /?n={n:06} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n" for n in range(800)]
        many = "".join(lines).encode()
        reader, got = connected(port, stack), b""
        threading.Thread(target=reader.sendall, args=(many,)).start()
        while not got.endswith(b"000799" * 1000):  # whoever reads is answered, though it takes long
            got += (part := reader.recv(60_000)) or pytest.fail("ended")
            time.sleep(len(part) / 1.5e6)
        assert [body[:6] for body in got.split(b"\r\n\r\n")[1:]] == [b"%06d" % n for n in range(800)]
        assert max(waiting) <= server.PIECE // len(lines[0]) + 1
        silent = [connected(port, stack) for _ in range(2)]
        for one in silent:
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.sendall(many * 10)
        assert asked(port, "/?n=1", [("Host", f"localhost:{port}")]).text == "1" * 1000
        for one in silent:
            until(lambda one=one: one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))  # it has been reset


def connected(port, stack):
    """Return a connection on which little waits to be read."""
    one = stack.enter_context(socket.socket())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 30_000)
    one.settimeout(30)
    one.connect(("127.0.0.1", port))
    return one


def test_who_sends_a_letter_now_and_then_is_not_awaited_longer(port, monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as slow, pytest.raises(OSError, match=r"reset|pipe"):
        send_slowly(slow, "GET / HTTP/1.1\r\nA: " + "b" * 200)


def send_slowly(connection, text):
    for letter in text:
        connection.sendall(letter.encode())
        time.sleep(0.05)


def test_who_was_answered_counts_as_well(port, monkeypatch):
    monkeypatch.setattr(server, "CONNECTIONS", 4)
    with ExitStack() as stack:
        opened = []
        for _ in range(6):
            opened += half_open(port, stack, f"GET /healthz HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode(), 1)
            assert opened[-1].recv(10_000).startswith(b"HTTP/1.1 200")
            opened[-1].settimeout(server.SECONDS / 2)  # before it would be idle for too long
        assert all(map(is_ended, opened[:2]))


def test_who_comes_again_stays_however_many_others_come_and_go(monkeypatch):
    monkeypatch.setattr(server, "CONNECTIONS", 4)
    monkeypatch.setattr(server, "SECONDS", 0.5)
    with (
        server.serving({"/": lambda _: server.Reply("text/plain", b"a")}, "127.0.0.1", 0) as port,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as stays,
    ):
        for _ in range(4):
            stays.request("GET", "/")
            assert stays.getresponse().read() == b"a"
            for _ in range(5):
                assert asked(port, "/", [("Host", f"localhost:{port}")]).status == 200
            time.sleep(0.2)


@pytest.mark.parametrize(("host", "status"), [("evil.example", 403), ("localhost", 405)])
def test_no_body_is_read(port, host, status):
    path = "/metrics" if asked(port, "/metrics", [("Host", f"localhost:{port}")]).status == 200 else "/"
    headers = [("Host", f"{host}:{port}"), ("Content-Length", "90000000")]
    assert asked(port, path, headers, method="POST").status == status, "answered although no body came"
    for length in ("Content-Length: 90000000", "Transfer-Encoding: chunked"):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{length}\r\n\r\n".encode())
            with pytest.raises(OSError, match=r"reset|pipe"):
                send_for_ever(connection)


def send_for_ever(connection):
    for _ in range(2000):  # 130 MB
        connection.sendall(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")


def test_fifty_viewers_share_one_reading_and_one_document(tmp_path):
    from venn.online.watch import Watch
    from venn.show.page import feed, page

    write(tmp_path / "run.db", 96)
    read, made = [], []

    class Counted(feed.FollowedRun):
        def read(self, watched):
            read.append(1)
            super().read(watched)

    def document(*of):
        made.append(of)
        return page_document(*of)

    page_document = page.document
    watched = feed.Feed(lambda: Watch(tmp_path / "run.db"), tmp_path / "run.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "FollowedRun", Counted)
        patch.setattr(feed, "OFTEN", 1000.0)
        patch.setattr(page, "document", document)
        with server.serving(page.Page(watched).routes(), "127.0.0.1", 0) as port:
            host, first = [("Host", f"localhost:{port}")], []
            threads = [
                threading.Thread(target=lambda: first.append(asked(port, "/run.json", host).text)) for _ in range(50)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            seen = {json.loads(text)["seen"] for text in first}
            assert len(first) == 50
            assert len(seen) == 1
            short = asked(port, f"/run.json?seen={seen.pop()}", host).text
    watched.close()
    assert (len(read), len(made)) == (1, 2)
    assert len(short) < len(first[0]) / 3


def test_a_page_that_is_told_to_end_ends_though_viewers_wait(tmp_path):
    write(tmp_path / "run.db", 16, "abers")
    program = [sys.executable, "-u", "-m", "venn", "monitor", "run.db", "--serve", "--port", "0"]
    with subprocess.Popen(
        program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        port = int(process.stdout.readline().partition("/ (Ctrl-C")[0].rpartition(":")[2])
        with ExitStack() as stack:
            half_open(port, stack, b"GET / HT", 12)
            assert asked(port, "/run.json", [("Host", f"localhost:{port}")]).status == 200
            process.send_signal(signal.SIGTERM)  # as Ctrl-C does, which test_page.py sends
            assert process.wait(30) == 0
        assert process.stdout.read() == ""
