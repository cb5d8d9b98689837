"""A server in a process of its own answers as one in the same process; neither process outlives the other."""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import httpx
import msgspec
import pytest
from run_cases import counts, left, until
from serve_cases import begun_by, forecaster, process
from test_serve_direct import MESSAGES
from test_serve_hostile import hostile, request

import venn
from venn.show import apart, server
from venn.show.apart import SIZE, FarApp, NearApp, WebProcess
from venn.show.server import serving

TOKEN = "a-token_of.more~than-16"
CAR = {"buying": "vhigh", "maint": "low", "doors": "2", "persons": "4", "lug_boot": "big", "safety": "high"}
COMMAND = ("--like", "car", "--journal", "run.db")


def received(port, content, size=1e9):
    """Return what is answered to a request, up to a size, without date and port."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        whole = found = b""
        with contextlib.suppress(OSError):
            link.sendall(content.replace(b"127.0.0.1:{port}", b"a.example"))
            while len(found) < size and (part := link.recv(65_536)):
                whole += part
                found = re.sub(rb"\r\ndate: [^\r]*|venn-\d+", b"", whole)
                head, _, body = found.partition(b"\r\n\r\n")
                if b"Connection" not in content and b"length: %d\r" % len(body) in head:
                    break
    return found


def requests():
    """Return requests of all kinds, each of which may be repeated."""
    more = [("Authorization", f"Bearer {TOKEN}")]
    for headers in ([], more):
        for path, message in MESSAGES:
            for extra in ([], [("X-Any", "1")], [("Connection", None)] if headers else []):
                yield request(json.dumps(message).encode(), [*headers, *extra], target=path)
    for path in (
        "/", "/docs", "/openapi.json", "/v2", "/v2/models/model", "/readyz", "/healthz", "/page.css", "/questions/a",
        "/questions/no%2Fne", "/nowhere", "/%61sk", "/ask", f"/?token={TOKEN}", "/?token=no",
    ):  # fmt: skip
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT"):
            yield request(b"", more, method, path)
    many = [{"id": f"m{i}", "x": [i, 1.0]} for i in range(700)]
    tensor = {"name": "x", "shape": [3, 2], "datatype": "FP64", "data": [[0, 1], [1, 1], [0, 0]]}
    yield request(json.dumps(many).encode(), more)
    yield request(json.dumps([*many[:3], 7, {"id": 1, "x": []}]).encode(), more)
    lines = "\n".join(map(json.dumps, many[:3])).encode()
    yield request(lines, [*more, ("Content-Type", "application/x-ndjson")])
    infer = json.dumps({"inputs": [tensor], "parameters": {"ids": ["i", "j", "k"]}}).encode()
    yield request(infer, more, target="/v2/models/model/infer")
    yield request(b"[" + b" " * 3_000_000 + b"5]", more)
    yield request(b" " * 200_000, more, target="/docs")  # a body that nobody reads
    yield request(b'{"id": "big", "x": [1, %d]}' % 2**70, more)
    yield from (
        one.replace(b"Host: 127", b"Authorization: Bearer %b\r\nHost: 127" % TOKEN.encode())
        for one in hostile(random.Random(0))
    )


@contextlib.contextmanager
def both(path, **options):
    """Give a model, the port of a server in this process, and that of one in another."""
    guard = {"allowed": ["a.example"], **options}
    with (
        WebProcess() as web,
        venn.serve(forecaster(), path) as app,
        serving(app.routes, "127.0.0.1", 0, **guard) as near,
        web.serving(app.routes, "127.0.0.1", 0, **guard) as far,
    ):
        yield app, near, far


def test_answers_are_those_of_one_process_to_the_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 0.3)
    said = []
    with both(tmp_path / "run.db", token=TOKEN, say=said.append) as (app, near, far):
        statuses = set()
        for content in requests():
            here = received(near, content)
            if here:  # else it was not whole
                assert received(far, content, len(here)) == here, content[:300]
            statuses.add(here[9:12])
        assert {b"200", b"207", b"401", b"403", b"404", b"405", b"409", b"413", b"415", b"422", b"400"} <= statuses
        assert app.owner.failure is None
    assert {one.count("refused 401") for one in said[:2]} == {1}, "the lines of the log cross, too"


def test_under_a_path_and_with_a_reply_that_breaks(tmp_path):
    said = []
    with both(tmp_path / "run.db", root="/models/churn", say=said.append) as (app, near, far):
        for path in ("/models/churn", "/models/churn/", "/models/churn/openapi.json", "/openapi.json"):
            assert received(near, content := request(target=path, method="GET")) == received(far, content)
        app.owner.start = None  # an error within the app
        here, there = (received(port, request(target="/readyz", method="GET")) for port in (near, far))
        assert here == there
        assert here.startswith(b"HTTP/1.1 500")
    assert said == ["page: a request that cannot be answered: TypeError: 'NoneType' object is not callable"] * 2


def test_a_line_of_the_log_that_cannot_be_said_ends_nothing(tmp_path, caplog):
    def say(line):
        raise BrokenPipeError(line)

    with both(tmp_path / "run.db", token=TOKEN, say=say) as (_, _, far):
        for _ in range(2):
            assert received(far, request(target="/metrics", method="GET"))[9:12] == b"401"
        until(lambda: "BrokenPipeError" in caplog.text)
        assert received(far, request(target="/healthz", method="GET"))[9:12] == b"200"


def test_a_request_whose_client_has_gone_happens_whole_or_not_at_all(tmp_path):
    with both(tmp_path / "run.db") as (app, _, far):
        for number in range(20):
            whole = request(
                json.dumps({"id": number, "x": [0.5, 1.0]}).encode(), [("Connection", None), ("Host", "a.example")]
            )
            with socket.create_connection(("127.0.0.1", far)) as link:
                link.sendall(whole[: len(whole) - number % 2])
        until(lambda: counts(tmp_path / "run.db")[0] >= 10)
        assert app.owner.failure is None
    asked = [row[1] for row in left(tmp_path / "run.db")["questions"]]
    assert sorted(asked) == list(range(0, 20, 2))


def test_no_more_requests_cross_than_may_be_at_work(monkeypatch):
    monkeypatch.setattr(apart, "MOST", 3)

    async def use():
        crossed, said = [], []
        far = FarApp(None, [b"/ask"])
        far.link = SimpleNamespace(send=lambda *message: crossed.append(message))

        async def send(message):
            said.append(message)

        assert [far.direct[b"/ask"](b"{}", print) for _ in range(5)] == [True, True, True, False, False]
        await far({"type": "http"}, None, send)
        assert len(crossed) == 3
        assert said[0]["status"] == 429
        assert (b"retry-after", b"1") in said[0]["headers"]

    asyncio.run(use())


def test_who_is_refused_before_the_port_is_known_here_keeps_nobody_from_serving():
    said = []
    near = NearApp(SimpleNamespace(direct={}), said.append)
    here, there = socket.socketpair()
    living = threading.Thread(target=lambda: asyncio.run(near.live(here, {})))
    living.start()
    with there:
        frame = msgspec.msgpack.encode([(0, "page: refused 403"), (0, 8000), (0, "page: refused 401")])
        there.sendall(SIZE.pack(len(frame)) + frame)
        assert near.begun.result(30) == 8000
    living.join()
    assert said == ["page: refused 403", "page: refused 401"]


def test_the_process_of_the_server_knows_nothing_of_models():
    program = "import sys, venn.show.apart, venn.show.server; print(*sys.modules)"
    known = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout.split()
    assert "uvicorn" in known
    assert not {"numpy", "numba", "scipy", "sklearn", "starlette", "sqlite3"} & set(known)


@pytest.mark.parametrize(
    ("program", "why"), [("/no/python", "No such file"), ("/bin/false", "it has ended"), (None, "")]
)
def test_where_no_process_can_begin_a_thread_serves_and_says_so(program, why, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", program)
    said = []
    app = venn.serve(forecaster(), tmp_path / "run.db")
    with WebProcess() as web, app, web.serving(app.routes, "127.0.0.1", 0, say=said.append) as port:
        got = httpx.post(f"http://127.0.0.1:{port}/ask", json={"id": 1, "x": [1, 1]})
        assert (got.status_code, web.failure) == (200, "")
    assert len(said) == 1
    assert "serves without a process for the web server, which cannot begin: " in said[0]
    assert why in said[0]


def test_a_port_that_is_taken_is_an_error_here(tmp_path, capfd):
    with both(tmp_path / "run.db") as (app, near, _), WebProcess() as web:
        said = []
        with (
            pytest.raises(OSError, match="in use") as caught,
            web.serving(app.routes, "127.0.0.1", near, say=said.append),
        ):
            pass
        assert (caught.value.errno, said) == (98, [])
        with WebProcess() as web, pytest.raises(ValueError, match="token must be given"):  # noqa: SIM117
            with web.serving(app.routes, "0.0.0.0", 0):
                pass
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------------------- both processes


def closed(port):
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) != 0


def ended(pid):
    """Whether a process is no more, or has only not been waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@contextlib.contextmanager
def command(folder):
    """Give the command that serves, once it is ready, its port, and the process of its server."""
    with process(folder, *COMMAND, "--port", 0) as made:
        until(lambda: httpx.get(f"{made.address}/readyz").status_code == 200)
        (web,) = begun_by(made.pid)
        try:
            yield made, int(made.address.rpartition(":")[2]), web
        finally:
            if not ended(web):
                os.kill(web, signal.SIGKILL)


def told(address, ids):
    """Ask and answer; return what is said."""
    said = {}
    for id in ids:
        for path, message in (("/ask", {"id": id, "x": CAR}), ("/answer", {"id": id, "y": "acc"})):
            said[path, id] = httpx.post(f"{address}{path}", json=message, timeout=60).content
    return said


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_server_that_hangs_is_not_awaited_for_long(tmp_path, monkeypatch):
    with both(tmp_path / "run.db") as (_, _, port):
        (web,) = begun_by(os.getpid())
        os.kill(web, signal.SIGSTOP)
        for name in ("LATEST", "LAST"):
            monkeypatch.setattr(apart, name, 0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(web, 0)
    assert closed(port)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_when_either_process_is_killed_the_other_ends_and_what_was_said_is_said_again(tmp_path):
    """And an end that is told to both answers what is at work."""
    with command(tmp_path) as (made, port, web):
        said = told(made.address, range(8))
        made.kill()
        until(lambda: closed(port) and ended(web), seconds=5)
    with command(tmp_path) as (made, port, web):
        said |= told(made.address, range(8, 12))
        os.kill(web, signal.SIGKILL)
        assert made.wait(20) == 1
        assert "Error: the process of the web server has ended, with the code -9\n" in made.stderr.read()
        assert closed(port)
    assert list(tmp_path.glob("run.db-state-*24")), "the last checkpoint"
    with command(tmp_path) as (made, port, web):
        assert told(made.address, range(12)) == said
        many = [{"id": f"m{i}", "x": CAR} for i in range(2000)]
        got = []
        asking = threading.Thread(target=lambda: got.append(httpx.post(f"{made.address}/ask", json=many, timeout=60)))
        asking.start()
        until(lambda: counts(tmp_path / "run.db")[0] > 12)
        for pid in (web, made.pid):
            os.kill(pid, signal.SIGTERM)
        asking.join()
        assert got[0].status_code == 200
        assert len(got[0].json()) == 2000
        assert made.wait(30) == 0
        assert ended(web)
        assert closed(port)
        assert "Traceback" not in made.stderr.read()
