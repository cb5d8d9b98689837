"""Notification of alarms: to a real server and by real commands, failing, hanging, many; the run never waits."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from venn import cli
from venn.cli.config import merge
from venn.cli.options import DECLARED
from venn.monitors.episodes import Episode
from venn.monitors.verdict import Moment, Verdict
from venn.online.watch import Watch
from venn.show import notify
from venn.show.notify import AlarmCommand, Notifier, Receiver, Webhook, message

VERDICT = Verdict(
    "changed", 901, None, "p-values", "Ville", 'changed since about 901: "it errs" in .47; $(touch x) `x`'
)


def told(predictor="abers", step=950):
    episode = Episode(
        1, Moment(901, 60.0, "order-901"), Moment(step), Moment(step), (predictor,), "column 'heat' (middle 19 to 67)",
        ("heat",), (), "the odds are 992 to 1", 1, claims=True,
    )  # fmt: skip
    return message("run.db", "began", episode, VERDICT, 0.0)


def step_of(sent):
    return sent["episode"]["rang"]["number"]


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Kept(Receiver):
    """Keeps what it is sent; waits for `go` before each."""

    name = "kept"

    def __init__(self, go=None):
        self.found, self.go = [], go
        self.began = threading.Event()

    def send(self, message):
        self.began.set()
        if self.go is not None:
            self.go.wait(30)
        self.found.append(message)


@pytest.fixture
def server():
    """A server at this machine that keeps what is posted, and answers as it is told."""
    made = SimpleNamespace(status=200, found=[], wait=threading.Event(), types=[])
    made.wait.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            made.found.append((self.path, json.loads(content)))
            made.types.append(self.headers["Content-Type"])
            made.authorization = self.headers["Authorization"]
            made.wait.wait(30)
            self.send_response(made.status)
            if made.status == 302:
                self.send_header("Location", f"{made.url}/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        made.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.wait.set()
        http.shutdown()
        thread.join(30)


# ------------------------------------------------------------------------- receivers


KEEP = """
import json, os, sys
found = {key: value for key, value in os.environ.items() if key.startswith("VENN_")}
open(sys.argv[1], "a").write(json.dumps([json.load(sys.stdin), found, sys.argv[2:]]) + "\\n")
print("thrown away")
"""


def test_a_command_gets_the_alarm_as_json_and_as_variables(tmp_path, capfd):
    kept = tmp_path / "kept"
    AlarmCommand([sys.executable, "-c", KEEP, str(kept), "$HOME; `ls`"]).send(told())
    sent, environment, arguments = json.loads(kept.read_text())
    assert sent == told()
    assert arguments == ["$HOME; `ls`"], "no shell has touched it"
    assert environment == {
        "VENN_RUN": "run.db", "VENN_STAGE": "began", "VENN_PREDICTOR": "abers", "VENN_STATE": "changed",
        "VENN_SINCE": "901", "VENN_SINCE_ID": "order-901", "VENN_VERDICT": VERDICT.details, "VENN_EPISODE": "1",
        "VENN_TIME": "1970-01-01T00:00:00+00:00", "VENN_LEFT_OUT": "0", "VENN_COLUMNS": "heat",
        "VENN_KIND": "column 'heat' (middle 19 to 67)", "VENN_TEXT": f"run.db: {VERDICT.sentence}",
    }  # fmt: skip
    assert capfd.readouterr().out == "", "predictions go to stdout"


@pytest.mark.parametrize("name", ["nul\0nul", "\ud800", "x" * 1_000_000])
def test_names_that_an_environment_does_not_take(name, tmp_path):
    kept = tmp_path / "kept"
    AlarmCommand([sys.executable, "-c", KEEP, str(kept)]).send(told(name))
    assert json.loads(kept.read_text())[0]["predictor"] == name


def test_a_command_that_fails_is_missing_or_hangs(tmp_path):
    with pytest.raises(OSError, match="ended with code 3"):
        AlarmCommand([sys.executable, "-c", "raise SystemExit(3)"]).send(told())
    with pytest.raises(OSError, match="No such file"):
        AlarmCommand([str(tmp_path / "none")]).send(told())
    # It ignores what it is asked politely, and has a child of its own.
    pid = tmp_path / "pid"
    hangs = ["sh", "-c", 'trap "" TERM; sleep 600 & echo $! > "$0"; wait', str(pid)]
    with pytest.raises(TimeoutError, match="longer than 2 seconds"):
        AlarmCommand(hangs, patience=2.0).send(told())
    child = int(pid.read_text())
    until(lambda: _dead(child))


def _dead(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_webhook_gets_the_alarm_as_json(server):
    Webhook(f"{server.url}/hook?secret=1").send(told())
    assert server.found == [("/hook?secret=1", told())]
    assert server.types == ["application/json"]


def test_a_webhook_that_fails_is_away_or_hangs(server):
    server.status = 500
    with pytest.raises(OSError, match="it answered 500"):
        Webhook(server.url).send(told())
    server.status = 302
    with pytest.raises(OSError, match="it answered 302"):
        Webhook(server.url).send(told())
    assert len(server.found) == 2, "it is not sent elsewhere"
    server.wait.clear()
    with pytest.raises(OSError, match="timed out"):
        Webhook(server.url, timeout=0.2).send(told())
    with pytest.raises(OSError, match="refused"):
        Webhook("http://127.0.0.1:1/secret").send(told())
    assert Webhook("https://user:secret@example.com/secret").name == "example.com"


def test_a_user_and_a_password_before_the_host_are_sent_as_basic_authentication(server):
    url = server.url.replace("://", "://me:pass%20w%3Ard@")
    Webhook(f"{url}/hook").send(told())
    assert server.found == [("/hook", told())]
    assert b64decode(server.authorization.removeprefix("Basic ")) == b"me:pass w:rd"
    assert "pass" not in Webhook(url).name
    Webhook(server.url).send(told())
    assert server.authorization is None


@pytest.mark.parametrize("url", ["", "example.com", "ftp://example.com", "file:///etc/passwd", "http://"])
def test_addresses_that_are_none(url):
    with pytest.raises(ValueError, match="url must be http"):
        Webhook(url)


@pytest.mark.parametrize("arguments", ["mail", [], [1]])
def test_commands_that_are_none(arguments):
    with pytest.raises(TypeError, match="arguments must be a program"):
        AlarmCommand(arguments)


# -------------------------------------------------------------------------- notifier


def test_seldom_enough_and_what_was_left_out_stands_in_the_next():
    now, kept = [0.0], Kept()
    with Notifier([kept], pytest.fail, 60.0, lambda: now[0]) as notifier:
        for second in range(0, 200, 10):
            now[0] = float(second)
            notifier.tell(told("abers", second))
            if second >= 50:
                notifier.tell(told("venn", second))
    assert [(one["predictor"], step_of(one), one["left_out"]) for one in kept.found] == [
        ("abers", 0, 0), ("venn", 50, 0), ("abers", 60, 5), ("venn", 110, 5), ("abers", 120, 5), ("venn", 170, 5),
        ("abers", 180, 5),
    ]  # fmt: skip
    assert notifier.said() == "notifications: 7 sent, 28 left out"


def test_a_failure_is_one_line_and_others_are_told():
    class Broken(Kept):
        def send(self, message):
            raise RuntimeError("whatever it is")

    said, kept = [], Kept()
    with Notifier([Broken(), kept], said.append, 0.0) as notifier:
        for step in range(5):
            notifier.tell(told(step=step))
    assert [step_of(one) for one in kept.found] == list(range(5))
    assert len(said) == 1
    assert "kept: whatever it is" in said[0]
    assert notifier.said() == "notifications: 5 sent, 5 failed"


def test_a_slow_receiver_fills_a_bounded_queue_and_nobody_waits(monkeypatch):
    monkeypatch.setattr(notify, "MOST_WAITING", 3)
    go = threading.Event()
    kept = Kept(go)
    notifier = Notifier([kept], pytest.fail, 0.0)
    notifier.tell(told(step=0))
    assert kept.began.wait(30)
    for step in range(1, 11):
        notifier.tell(told(step=step))  # none of these may wait
    go.set()
    until(lambda: len(kept.found) == 4)
    notifier.tell(told(step=11))
    notifier.close(30.0)
    assert [(step_of(one), one["left_out"]) for one in kept.found] == [(0, 0), (1, 0), (2, 0), (3, 0), (11, 7)]


def test_the_end_gives_up_what_hangs(tmp_path):
    said, pid = [], tmp_path / "pid"
    notifier = Notifier([AlarmCommand(["sh", "-c", 'echo $$ > "$0"; exec sleep 600', str(pid)])], said.append, 0.0)
    notifier.tell(told())
    notifier.tell(told())
    until(lambda: pid.exists() and pid.read_text())
    notifier.close(0.3)
    notifier.close()
    until(lambda: notifier.said() == "notifications: 2 failed")
    assert _dead(int(pid.read_text()))


def test_without_receivers_there_is_nothing():
    notifier = Notifier([], pytest.fail)
    notifier.tell(told())
    assert (bool(notifier), notifier.said()) == (False, "")


# --------------------------------------------------------------------------- command line


def test_settings_are_checked():
    def merged(**table):
        return merge("run", {"monitor": table}, "run.toml", {}).monitor

    assert merged(on_alarm="mail -s 'an alarm' me").on_alarm == ("mail", "-s", "an alarm", "me")
    assert merged(on_alarm=["mail", "a b"]).on_alarm == ("mail", "a b")
    assert merged().alarm_every == 0
    assert DECLARED["monitor"]["on_alarm"].value("notify --to me", "--on-alarm", True) == ("notify", "--to", "me")
    for table, must in (
        ({"on_alarm": []}, "on_alarm must be a program and its arguments"),
        ({"on_alarm": "'open"}, "on_alarm must be a program"),
        ({"on_alarm": ["", "x"]}, "on_alarm must be a program"),
        ({"alarm_webhook": "mailto:me"}, "alarm_webhook must be http://HOST"),
        ({"alarm_every": -1}, "alarm_every must be a number >= 0"),
    ):
        with pytest.raises(Exception, match=must):
            merged(**table)


def test_a_pause_without_anybody_to_tell_is_refused(tmp_path):
    arguments = [
        "run", "--source", "car", "--journal", str(tmp_path / "run.db"), "--set", "monitor.alarm_every=5", "--check",
    ]  # fmt: skip
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2
    assert "--set monitor.alarm_every needs --on-alarm or --alarm-webhook" in " ".join(result.output.split())


def lines(first, last, turned):
    """Yield questions with their answers: the sign of x, or the opposite of it."""
    for i in range(first, last):
        x = (i * 37 % 21 - 10.5) / 10
        yield json.dumps({"id": i, "x": [x], "y": ["no", "yes"][(x > 0) != turned]}) + "\n"


@pytest.mark.program
def test_a_run_tells_of_an_alarm_once_over_kill_and_restart(tmp_path, server):
    kept, source = tmp_path / "kept", tmp_path / "in.jsonl"
    source.write_text("".join(lines(0, 120, False)) + "".join(lines(120, 260, True)))
    program = [
        sys.executable, "-m", "venn", "run", "--source", f"jsonl:{source}", "--classes", "no,yes",
        "--features", "x", "--predictors", "conformal", "--window", "200", "--journal", "run.db", "--out", "out.jsonl",
        "--alarm-webhook", f"{server.url}/secret", "--on-alarm", f"{sys.executable} -c '{KEEP}' {kept}",
        "--set", "monitor.alarm_every=0", "--set", "journal.every=100", "--no-drift",
    ]  # fmt: skip

    def count():
        with Watch(tmp_path / "run.db") as watch:
            return len(watch.alarms("conformal", 10_000)), watch.counts().answered

    with subprocess.Popen(program, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: (tmp_path / "run.db").exists() and kept.exists() and count()[1] == 260)
        rung = count()[0]
        until(lambda: len(server.found) == 1 == len(kept.read_text().splitlines()))
        process.send_signal(signal.SIGKILL)
    assert rung > 0
    with source.open("a") as file:
        file.writelines(lines(260, 270, True))
    done = subprocess.run([*program, "--end"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert count()[1] == 270
    ((path, first),) = server.found  # one alarm an episode, and not again after the kill
    assert path == "/secret"
    with Watch(tmp_path / "run.db") as watch:
        (episode,) = watch.episodes()
        assert step_of(first) == watch.alarms("conformal", 10_000)[0]["step"] == episode.rang.number
    assert first["run"] == "run.db"
    assert first["verdict"]["state"] == "changed"
    assert re.match(r"run.db: Do not rely on it since .*\(question 1\d\d\): wrong in .\d\d of the last ", first["text"])
    assert done.stderr.splitlines()[-1].startswith("verdict: ")


def test_a_run_goes_on_where_nobody_can_be_told(tmp_path, server, monkeypatch):
    monkeypatch.setattr(Notifier.close, "__defaults__", (0.5,))
    server.wait.clear()  # it hangs
    source = tmp_path / "in.jsonl"
    source.write_text("".join(lines(0, 120, False)) + "".join(lines(120, 260, True)))
    result = CliRunner().invoke(cli.main, [
        "run", "--source", f"jsonl:{source}", "--end", "--classes", "no,yes", "--features", "x", "--predictors",
        "conformal", "--window", "200", "--journal", str(tmp_path / "run.db"), "--out", str(tmp_path / "out.jsonl"),
        "--on-alarm", str(tmp_path / "none"), "--alarm-webhook", f"{server.url}/secret", "--quiet", "--no-drift",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    with Watch(tmp_path / "run.db") as watch:
        assert watch.counts().answered == 260
        assert watch.alarms("conformal")
    assert result.output.count("a notification failed") == 1, "that of the command; the other one hangs"
    assert "secret" not in result.output


def test_the_end_waits_for_room_in_a_full_queue(monkeypatch):
    monkeypatch.setattr(notify, "MOST_WAITING", 2)
    go = threading.Event()
    kept = Kept(go)
    notifier = Notifier([kept], pytest.fail, 0.0)
    notifier.tell(told(step=0))
    assert kept.began.wait(30)
    notifier.tell(told(step=1))
    notifier.tell(told(step=2))
    threading.Timer(0.1, go.set).start()
    notifier.close(3.0)
    assert [step_of(one) for one in kept.found] == [0, 1, 2]
    assert f"notify {kept.name}" not in [thread.name for thread in threading.enumerate()]


def test_the_first_alarm_of_a_predictor_is_left_out_once(monkeypatch):
    monkeypatch.setattr(notify, "MOST_WAITING", 1)
    go = threading.Event()
    kept = Kept(go)
    with Notifier([kept], pytest.fail, 0.0) as notifier:
        notifier.tell(told(step=0))
        assert kept.began.wait(30)
        notifier.tell(told(step=1))
        notifier.tell(told("venn", 2))  # the queue is full
        go.set()
        until(lambda: len(kept.found) == 2)
        notifier.tell(told("venn", 3))
    assert [(one["predictor"], one["left_out"]) for one in kept.found] == [("abers", 0), ("abers", 0), ("venn", 1)]


def test_an_end_without_grace_waits_for_nobody():
    go = threading.Event()
    both = [Kept(go), Kept(go)]
    notifier = Notifier(both, pytest.fail, 0.0)
    notifier.tell(told())
    assert all(kept.began.wait(30) for kept in both)
    notifier.close(0.0)
    go.set()
    until(lambda: [len(kept.found) for kept in both] == [1, 1])
