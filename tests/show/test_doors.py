"""Who may read page, report and metrics: names, origins, tokens, paths, and messages that are none."""

import http.client
import json
import socket
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest
from page_cases import HOSTILE, write

from venn.online.watch import Watch
from venn.show.metrics import of_metrics
from venn.show.page.feed import Feed
from venn.show.page.page import Page
from venn.show.server import SECONDS, Door, is_loopback, serving

TOKEN = "a-token_of.more~than-16"
PORT = 5006


# ------------------------------------------------------------------------ the door


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:5006", None), ("LOCALHOST:5006", None), ("127.0.0.1:5006", None), ("[::1]:5006", None),
        ("watch.example", None), ("watch.example:5006", None), ("other.example:8443", None),
        ("evil.example:5006", 403), ("localhost", 403), ("localhost:5007", 403), ("127.0.0.1", 403), ("", 403),
        ("other.example", 403), ("localhost.evil.example:5006", 403), ("evil.example,localhost:5006", 403),
        ("localhost:5006@evil.example", 403), ("localhost:5006 ", 403), ("127.1:5006", 403), ("2130706433:5006", 403),
        ("localhost.:5006", 403), ("::1:5006", 403), ("0.0.0.0:5006", 403), ("localhost:05006", 403),
    ],
)  # fmt: skip
def test_a_server_answers_to_its_names_only(host, status):
    door = Door("127.0.0.1", PORT, ["watch.example", "other.example:8443"])
    refused = door.refusal({"Host": host})
    assert (refused.status if refused else None) == status
    assert refused is None or ("\n" not in refused.line and refused.line.startswith("403: "))


def test_without_a_host_nobody_comes_in():
    assert Door("127.0.0.1", PORT).refusal({}).status == 403


@pytest.mark.parametrize("listens", ["0.0.0.0", "::"])
def test_an_address_that_stands_for_all_is_no_name(listens):
    door = Door(listens, PORT, token=TOKEN)
    assert door.names == Door("127.0.0.1", PORT).names
    assert Door("10.0.0.5", PORT, token=TOKEN).names == door.names | {"10.0.0.5:5006"}


def test_at_the_port_of_the_web_names_come_without_it():
    assert Door("127.0.0.1", 80).refusal({"Host": "localhost"}) is None


@pytest.mark.parametrize("name", ["", "*", "http://a", "a/b", "a:b", "a:123456", "a b", "a\r\nX: y", "*.a"])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(ValueError, match="allowed hosts must be NAME or NAME:PORT"):
        Door("127.0.0.1", PORT, [name])


@pytest.mark.parametrize(
    "token", ["", "short", "fifteen-letters", "with a space in it", "a tab\tand more letters", "ä" * 20]
)
def test_tokens_that_are_none_are_refused(token):
    with pytest.raises(ValueError, match="token must be at least 16 printable letters") as caught:
        Door("127.0.0.1", PORT, token=token)
    assert not token or token not in str(caught.value), "an error goes to a log"


def test_beyond_this_machine_a_token_is_needed_or_a_word():
    for host in ("0.0.0.0", "::", "192.0.2.7"):
        with pytest.raises(ValueError, match="token must be given"):
            Door(host, PORT)
        assert Door(host, PORT, unguarded=True).refusal({"Host": "localhost:5006"}) is None
    assert is_loopback("localhost")
    assert is_loopback("127.0.0.9")
    assert not is_loopback("")


def test_the_token_comes_as_bearer_or_as_the_cookie_made_of_it():
    door = Door("127.0.0.1", PORT, token=TOKEN)
    name, value = door.cookie
    assert name == "venn-5006"
    assert TOKEN not in value
    at = {"Host": "localhost:5006"}
    for good in (
        {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer  {TOKEN}"}, {"Cookie": f"a=b; {name}={value}"},
    ):  # fmt: skip
        assert door.refusal(at | good) is None
    for bad in (
        {}, {"Authorization": "Bearer "}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"}, {"Authorization": "Bearer ä"}, {"Cookie": f"{name}={TOKEN}"},
        {"Cookie": f"{name}="}, {"Cookie": f"other={value}"}, {"Cookie": name}, {"Cookie": f"{name}={value[:-1]}"},
    ):  # fmt: skip
        assert door.refusal(at | bad).status == 401, bad
    assert door.cookie == Door("127.0.0.1", PORT, token=TOKEN).cookie, "a viewer survives a restart of the server"
    assert door.cookie[1] != Door("127.0.0.1", PORT, token=TOKEN + "x").cookie[1]
    assert door.refusal({"Host": "evil.example:5006", "Authorization": f"Bearer {TOKEN}"}).status == 403


EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>{{7*7}}@{x}$\\frac{'\"`"


# --------------------------------------------------------------------- raw sockets


@pytest.fixture
def pages(tmp_path):
    """Starts servers of the page of a run whose classes, ids and names are hostile; gives port and lines of the log."""
    write(tmp_path / "run.db", 32, flip=16, evil=EVIL)
    with ExitStack() as stack:

        def start(**guard):
            lines, feed = [], Feed(lambda: Watch(tmp_path / "run.db"), tmp_path / "run.db")
            stack.callback(feed.close)
            guard = {"say": lines.append, **guard}
            port = stack.enter_context(serving(Page(feed).routes(), "127.0.0.1", 0, **guard))
            return SimpleNamespace(port=port, lines=lines, url=f"http://127.0.0.1:{port}")

        yield start


@pytest.fixture
def metrics(tmp_path):
    """Starts a server of metrics."""
    write(tmp_path / "scraped.db", 8)
    return lambda **guard: serving(of_metrics(lambda: Watch(tmp_path / "scraped.db")), "127.0.0.1", 0, **guard)


def asked(port, path="/", headers=(), method="GET", version="HTTP/1.1"):
    """Return status, headers and text of the answer to a request written by hand."""
    lines = [f"{method} {path} {version}", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin1"))
        answer = http.client.HTTPResponse(connection, method=method)
        answer.begin()
        text = answer.read().decode()
    return SimpleNamespace(status=answer.status, headers=answer.headers, text=text)


def is_closed(answer):
    """Whether an answer tells nothing of the run, and has the headers that keep others out."""
    assert HOSTILE not in answer.text
    assert "venn_" not in answer.text
    assert "application/json" not in answer.text
    assert answer.text.count("\n") <= 1
    return is_guarded(answer)


def is_guarded(answer):
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    [policy] = answer.headers.get_all("Content-Security-Policy")
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    assert "*" not in policy
    return True


def test_other_names_read_nothing_at_any_address(pages):
    made = pages()
    for host in ("evil.example", f"evil.example:{made.port}", f"localhost:{made.port + 1}", "", "localhost"):
        for path in ("/", "/page.js", "/page.css", "/run.json", "/question.json", "/question.json?id=1", "/x"):
            answer = asked(made.port, path, [("Host", host)])
            assert answer.status == 403, (host, path)
            assert answer.text == "403: this server does not go by that name; if it should, start it with " \
                                  "--allow-host NAME[:PORT]\n"  # fmt: skip
            assert is_closed(answer)
    assert asked(made.port, "/", version="HTTP/1.0").status in (400, 403), "no Host at all"
    twice = asked(made.port, "/", [("Host", f"localhost:{made.port}"), ("Host", "evil.example")])
    assert twice.status in (400, 403)
    assert asked(made.port, "http://evil.example/", [("Host", f"localhost:{made.port}")]).status == 400
    known = asked(made.port, "/", [("Host", f"localhost:{made.port}")])
    assert known.status == 200
    assert is_guarded(known)
    refused = [line for line in made.lines if line.startswith("page: refused 403")]
    assert len(refused) == 2, "the 1st and the 10th"
    assert "'evil.example'" in refused[0]


def test_other_origins_read_nothing(pages):
    made = pages()
    host = f"localhost:{made.port}"
    for origin in (
        "http://evil.example",
        f"http://evil.example:{made.port}",
        "null",
        f"http://localhost:{made.port + 1}",
    ):
        for path in ("/", "/page.js", "/run.json"):
            answer = asked(made.port, path, [("Host", host), ("Origin", origin)])
            assert answer.status == 403
            assert is_closed(answer)
    assert asked(made.port, "/run.json", [("Host", host), ("Origin", f"http://{host}")]).status == 200


PATHS = (
    "//", "/.", "/..", "/../", "/./", "/%2e", "/%2e%2e/", "/%2f", "//evil.example/", "/\\evil.example", "/;", "/a",
    "/static/", "/../server.py", "/%2e%2e/server.py", "//etc/passwd", "/page.js/../server.py", "/page.js/../../door.py",
    "/page.js/..%2f..%2fdoor.py", "/%2fetc%2fpasswd", "/page.js/", "/page.js%00", "/page%2ejs", "/PAGE.JS", "/page.py",
    "//page.js", "/./page.js", "/run.json/", "/run.json%00", "//run.json", "/run.db", "/metrics", "/favicon.ico",
    "/page.css/", "*", "page.js", "",
)  # fmt: skip


def test_no_path_but_those_of_the_page_leads_anywhere(pages):
    made = pages()
    host = [("Host", f"localhost:{made.port}")]
    for path in PATHS:
        answer = asked(made.port, path, host)
        assert answer.status == (404 if path.startswith("/") else 400), path
        assert is_closed(answer)
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        for path in ("/", "/run.json"):
            answer = asked(made.port, path, host, method=method)
            assert answer.status == 405, (method, path)
            assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
            assert is_guarded(answer)


def test_whoever_keeps_it_running_may_ask_whether_it_answers(pages):
    made = pages(token=TOKEN)
    for method, text in (("GET", "ok\n"), ("HEAD", "")):
        answer = asked(made.port, "/healthz", [("Host", "10.0.0.7:8080")], method=method)
        assert (answer.status, answer.text) == (200, text)
        assert is_guarded(answer)
    assert asked(made.port, "/healthz", [("Host", "10.0.0.7:8080")], method="POST").status == 403


def test_head_is_answered_as_get_without_a_body_and_options_with_what_there_is(pages):
    made = pages(token=TOKEN)
    host = ("Host", f"localhost:{made.port}")
    known = ("Authorization", f"Bearer {TOKEN}")
    for path in ("/", "/run.json", "/page.js"):
        got, head = (asked(made.port, path, [host, known], method=method) for method in ("GET", "HEAD"))
        assert (head.status, head.text) == (200, "")
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
        assert int(head.headers["Content-Length"]) > 0
        options = asked(made.port, path, [host, known], method="OPTIONS")
        assert (options.status, options.headers["Allow"]) == (200, "GET, HEAD, OPTIONS")
    for method in ("HEAD", "OPTIONS"):
        assert asked(made.port, "/", [host], method=method).status == 401
        assert asked(made.port, "/", [("Host", "evil.example"), known], method=method).status == 403


def test_metrics_are_behind_the_same_door(metrics):
    with metrics() as port:
        host = ("Host", f"localhost:{port}")
        good = asked(port, "/metrics", [host])
        assert good.status == 200
        assert "venn_up 1.0" in good.text
        assert is_guarded(good)
        for headers in (
            [("Host", f"evil.example:{port}")], [("Host", "evil.example")], [], [host, ("Origin", "http://evil.example")],
            [host, ("Origin", "null")], [host, ("Host", "evil.example")],
        ):  # fmt: skip
            answer = asked(port, "/metrics", headers)
            assert answer.status == 403, headers
            assert is_closed(answer)
        for path in ("/", "/metrics/", "/../metrics", "/metrics/../x", "/favicon.ico", "/none", "/metrics%00"):
            answer = asked(port, path, [host])
            assert answer.status == 404, path
            assert is_closed(answer)
    with metrics(token=TOKEN) as port:
        host = ("Host", f"localhost:{port}")
        for headers in ([host], [host, ("Authorization", "Bearer wrong")]):
            answer = asked(port, "/metrics", headers)
            assert answer.status == 401
            assert is_closed(answer)
        assert asked(port, f"/metrics?token={TOKEN}", [host]).status == 401, "tokens in addresses end in logs"
        assert "venn_up 1.0" in asked(port, "/metrics", [host, ("Authorization", f"Bearer {TOKEN}")]).text


def test_without_the_token_nothing_is_read_with_it_the_address_forgets_it(pages):
    made = pages(token=TOKEN)
    host = [("Host", f"localhost:{made.port}")]
    for path in ("/", "/page.js", "/run.json", "/question.json?id=1", "/?token=", "/?token=wrong", f"/?token={TOKEN}x",
                 f"/run.json?token={TOKEN}", f"/?token={TOKEN}&token={TOKEN}", f"/x?token={TOKEN}"):  # fmt: skip
        answer = asked(made.port, path, host)
        assert answer.status == 401, path
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert is_closed(answer)
    assert asked(made.port, f"/?token={TOKEN}", [("Host", "evil.example")]).status == 403
    assert asked(made.port, f"/?token={TOKEN}", host, method="POST").status == 401, "only a page brings it so"
    entered = asked(made.port, f"/?token={TOKEN}", host)
    assert entered.status == 200
    assert is_closed(entered)
    assert 'content="0; url=./"' in entered.text, "a proxy may serve the page below a path"
    cookie = entered.headers["Set-Cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert TOKEN not in cookie
    kept = ("Cookie", cookie.partition(";")[0])
    page = asked(made.port, "/", [*host, kept])
    assert page.status == 200
    assert cookie.partition("=")[2].partition(";")[0] not in page.text, "scripts cannot read it"
    assert asked(made.port, "/run.json", [*host, kept]).status == 200
    assert asked(made.port, "/", [*host, ("Authorization", f"Bearer {TOKEN}")]).status == 200
    assert all(TOKEN not in line for line in made.lines)


NONSENSE = (
    b"GET\r\n\r\n", b"GET /\r\n\r\n", b"\xff\x00\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
)  # fmt: skip


@pytest.mark.parametrize(
    "query", ["of=none&seen=1.2.3", "seen=.99999999999999999999.", "seen=%00&of=%ff", "of", "seen=a.-1.b&x"]
)
def test_what_was_never_seen_gets_the_whole_document(pages, query):
    made = pages()
    host = [("Host", f"localhost:{made.port}")]
    found, whole = (json.loads(asked(made.port, path, host).text) for path in (f"/run.json?{query}", "/run.json"))
    assert found["tables"] == whole["tables"]
    assert found["tables"]["chosen"]["after"] == 0
    assert "tables" not in json.loads(asked(made.port, f"/run.json?seen={whole['seen']}", host).text), "nothing new"


@pytest.mark.parametrize("query", ["", "id", "id=%00", "id=%ff", "id=%ed%a0%80", f"id={'9' * 400}", "id=<script>&id=1"])
def test_who_looks_for_no_id_is_told_that_there_is_none(pages, capfd, query):
    made = pages()
    answer = asked(made.port, f"/question.json?{query}", [("Host", f"localhost:{made.port}")])
    assert answer.status == 200
    assert "No question has the id" in json.loads(answer.text)["words"]["found"]
    assert "<script" not in answer.text
    assert capfd.readouterr().err == ""


def test_what_is_no_request_gets_one_line_and_the_page_goes_on(pages, capfd):
    made = pages()
    for sent in NONSENSE:
        with socket.create_connection(("127.0.0.1", made.port), timeout=60) as connection:
            connection.sendall(sent)
            assert connection.recv(100).startswith(b"HTTP/1.1 40"), sent
    for end in (b" HTTP/1.1\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", made.port), timeout=SECONDS / 2) as connection:
            connection.sendall(b"GET /" + b"x" * 100_000 + end)
            with suppress(ConnectionResetError):
                assert connection.recv(100)[:12] in (b"", b"HTTP/1.1 400")
    assert asked(made.port, "/run.json", [("Host", f"localhost:{made.port}")]).status == 200
    assert capfd.readouterr() == ("", "")


def test_an_error_of_the_page_makes_one_line_and_it_goes_on(capfd):
    lines = []
    with serving({"/": lambda _: 1 / 0}, "127.0.0.1", 0, say=lines.append) as port:
        for _ in range(3):
            assert asked(port, "/", [("Host", f"localhost:{port}")]).status == 500
    assert lines == ["page: a request that cannot be answered: ZeroDivisionError: division by zero"]
    assert capfd.readouterr().err == ""
