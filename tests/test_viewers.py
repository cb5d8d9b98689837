"""Viewers never hurt a run, and never each other for long: however many, however slow, whatever they send."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import threading
from contextlib import ExitStack

import pytest
from page_cases import write
from test_doors import asked, metrics, pages, upgrade  # noqa: F401

from venn.online.watch import Watch
from venn.show.page.feed import Feed

# ruff: noqa: F811, SLF001

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


def test_the_metrics_have_few_threads_however_many_connect(metrics, monkeypatch, capfd):
    from venn.show.metrics import Threads

    monkeypatch.setattr(Threads, "most", 8)
    before = threading.active_count()
    with metrics() as port, ExitStack() as stack:
        opened = half_open(port, stack)
        assert asked(port, "/metrics", [("Host", f"localhost:{port}")]).status == 200
        assert threading.active_count() <= before + 1 + 8
        assert all(map(is_ended, opened[: MANY - 8]))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"])
def test_the_metrics_wait_for_nobody_long(metrics, monkeypatch, capfd, sent):
    from venn.show.metrics import Threads

    monkeypatch.setattr(Threads, "seconds", 0.2)
    with metrics() as port, socket.create_connection(("127.0.0.1", port), timeout=30) as slow:
        slow.sendall(sent)
        assert is_ended(slow)
    assert capfd.readouterr() == ("", "")


def test_the_metrics_read_no_body(metrics):
    with metrics() as port:
        length = ("Content-Length", "90000000")
        for host, status in (("localhost", 200), ("evil.example", 403)):
            answer = asked(port, "/metrics", [("Host", f"{host}:{port}"), length])
            assert answer.status == status, "answered although no body came"


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_the_page_holds_few_connections_however_many_connect(pages, monkeypatch, sent):
    from venn.show.page import web

    monkeypatch.setattr(web, "CONNECTIONS", 10)
    server = pages()
    with ExitStack() as stack:
        opened = half_open(server.port, stack, sent)
        assert asked(server.port, "/page.js", [("Host", f"localhost:{server.port}")]).status == 200
        assert all(map(is_ended, opened[: MANY - 10]))
    assert server.lines == []


def test_the_page_waits_for_no_request_long(pages, monkeypatch):
    from venn.show.page import web

    monkeypatch.setattr(web, "SECONDS", 0.2)
    server = pages()
    host = f"Host: localhost:{server.port}\r\n"
    for sent in ("", "GET / HT", f"GET / HTTP/1.1\r\n{host}", f"POST / HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as slow:
            slow.sendall(sent.encode())
            assert is_ended(slow), sent


def send_for_ever(connection):
    for _ in range(2000):  # 130 MB
        connection.sendall(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")


@pytest.mark.parametrize("host", ["evil.example", "localhost"])
def test_the_page_takes_no_large_body(pages, host):
    server = pages()
    lengths = ["Content-Length: 90000000", "Transfer-Encoding: chunked"]
    for length in lengths:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            head = f"POST / HTTP/1.1\r\nHost: {host}:{server.port}\r\n{length}\r\n\r\n"
            connection.sendall(head.encode())
            with pytest.raises(OSError, match=r"reset|pipe"):
                send_for_ever(connection)


def test_viewers_are_counted_and_a_page_too_many_is_refused(pages, monkeypatch):
    from venn.show.page import web

    monkeypatch.setattr(web, "VIEWERS", 2)
    server = pages()
    host = [("Host", f"localhost:{server.port}")]
    assert [asked(server.port, "/", host).status for _ in range(3)] == [200, 200, 503]
    assert asked(server.port, "/page.js", host).status == 200
    assert "refused 503" in server.lines[0]
    monkeypatch.setattr(web, "VIEWERS", 0)
    assert upgrade(server.port) == 503


@pytest.fixture
def web_of_pages(tmp_path):
    """Return the web server of a page, without a socket."""
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    from bokeh.application import Application
    from bokeh.application.handlers.function import FunctionHandler

    from venn.show.door import Door
    from venn.show.page.server import Page
    from venn.show.page.web import Web

    write(tmp_path / "run.db", 16, "abers")
    feed = Feed(lambda: Watch(tmp_path / "run.db"), tmp_path / "run.db")
    yield lambda: Web(Application(FunctionHandler(lambda doc: Page(doc, feed))), Door("127.0.0.1", 5006), print)
    feed.close()


def test_of_all_viewers_who_have_left_garbage_is_collected_once(web_of_pages):
    from tornado.ioloop import IOLoop

    from venn.show.page.web import ROOT, collected_together

    collections = []

    def count(phase, info):
        if phase == "start" and info["generation"] == 2:
            collections.append(info)

    async def come_and_go():
        web = web_of_pages()
        web.initialize(IOLoop.current())
        with collected_together():
            web._unused_session_lifetime_milliseconds = -1
            context = web.applications[ROOT]
            for number in range(4):
                await context.create_session_if_needed(f"s{number}", None)
            assert len(web.get_sessions(ROOT)) == 4
            gc.disable()
            gc.callbacks.append(count)
            try:
                await web._cleanup_sessions()
                assert web.get_sessions(ROOT) == []
                assert len(collections) == 1
                await web._cleanup_sessions()
                assert len(collections) == 1
            finally:
                gc.callbacks.remove(count)
                gc.enable()

    asyncio.run(come_and_go())
    import bokeh.document.document

    assert bokeh.document.document.gc is gc


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_page_that_is_told_to_end_makes_no_more_pages_for_those_who_wait(tmp_path, number, monkeypatch):
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    from venn.show.page import server

    made, before = [], signal.getsignal(number)

    class Counted(server.Page):
        def __init__(self, doc, feed):
            super().__init__(doc, feed)
            made.append(doc)
            if len(made) == 3:
                signal.raise_signal(number)

    monkeypatch.setattr(server, "Page", Counted)
    write(tmp_path / "run.db", 16, "abers")
    with ExitStack() as stack:

        def started(host, port):
            half_open(port, stack, f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode(), 12)

        server.serve(Feed(lambda: Watch(tmp_path / "run.db"), tmp_path / "run.db"), "127.0.0.1", 0, started)
    assert len(made) == 3
    assert signal.getsignal(number) is before
