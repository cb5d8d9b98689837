"""All of it at once: a Redis stream, `venn run`, its page in the browser, and each of them killed on the way."""

import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest
from browsing import LAST, Viewer, browser, chromium  # noqa: F401
from ports import RedisServer, free_port
from run_cases import CLASSES, OPTIONS, counts, events, until
from test_run import produce

MOST, CHANGE = 8000, 300  # questions; the labels of those after the change are the other ones
PAUSE = 0.01  # seconds from one message to the next
LOST = re.compile("ERR_CONNECTION|ERR_EMPTY_RESPONSE")


def changed(event):
    """Return the message, with the other label if it answers a later question."""
    late = hasattr(event, "y") and event.id > CHANGE
    return event._replace(y=CLASSES[1 - CLASSES.index(event.y)]) if late else event


class Program:
    """A command of `venn` in a process of its own, which can be killed and started again."""

    def __init__(self, folder, *arguments):
        self.folder, self.arguments = folder, [sys.executable, "-m", "venn", *map(str, arguments)]
        self.out = folder / f"{arguments[0]}.txt"
        self.start()

    def start(self):
        with self.out.open("a") as out:
            self.process = subprocess.Popen(
                self.arguments, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def kill(self):
        self.process.kill()
        return self.process.wait(30)

    @property
    def said(self):
        return self.out.read_text()


def listens(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.program
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_the_page_goes_on_whoever_is_killed(browser, tmp_path):  # noqa: F811
    pytest.importorskip("redis", reason="the package redis is not installed")
    port = free_port()
    journal, host = tmp_path / "run.db", f"127.0.0.1:{port}"
    sent, enough = [], threading.Event()

    def sending():
        for event in map(changed, events(MOST)):
            if enough.is_set():
                return
            sent.append(event)
            yield event

    with ExitStack() as at_last:
        server = RedisServer(tmp_path)
        at_last.callback(lambda: server.kill())
        source = ("--source", f"{server.url}?stream=s", "--journal", "run.db", "--out", "out.jsonl")
        several = ("--predictors", "inductive,inductive_conformal")
        hasty = ("--set", "run.batch=7", "--set", "run.linger=0.02", "--set", "journal.every=50")
        run = Program(tmp_path, "run", *source, *OPTIONS, *several, *hasty)
        at_last.callback(run.kill)
        page = Program(tmp_path, "monitor", "run.db", "--serve", "--port", port)
        at_last.callback(page.kill)
        producer = threading.Thread(target=produce, args=(server.url, sending(), PAUSE))
        producer.start()
        at_last.callback(producer.join, 30)
        at_last.callback(enough.set)
        until(lambda: listens(port))
        viewer = Viewer(browser, f"http://{host}")
        at_last.callback(viewer.page.close)

        def shown():
            return viewer.number("asked"), viewer.number("answered")

        def goes_on():
            """Wait until numbers and curves are beyond what the journal holds now."""
            answered = counts(journal)[1]
            viewer.reaches(answered + 10)
            viewer.comes_to(f"{LAST} > {answered}")

        viewer.waits_for("answered")
        goes_on()
        viewer.page.evaluate("window.opened_once = true")

        assert run.kill() == -signal.SIGKILL
        dead = counts(journal)
        until(lambda: shown() == dead)
        run.start()
        goes_on()

        server.kill()
        until(lambda: "is away" in run.said)
        server.start()
        goes_on()
        assert viewer.page.evaluate("window.opened_once")
        assert viewer.complaints == []

        page.kill()
        viewer.comes_to("'lost' in document.documentElement.dataset")
        page.start()
        goes_on()
        assert not viewer.page.evaluate("'lost' in document.documentElement.dataset")

        until(lambda: counts(journal)[1] > CHANGE + 100)
        enough.set()
        producer.join(30)
        asked = [f"k{event.id}" for event in sent if hasattr(event, "x")]
        answers = {f"k{event.id}": event.y for event in sent if hasattr(event, "y")}
        until(lambda: counts(journal) == (len(asked), len(answers)))
        until(lambda: shown() == (len(asked), len(answers)))
        viewer.page.locator("p.alarm").wait_for()
        run.process.terminate()
        assert run.process.wait(30) == 0, run.said

        assert [said for said in viewer.complaints if not LOST.search(said)] == []
        assert {urlsplit(to).netloc for to in viewer.asked if not to.startswith(("data:", "blob:"))} == {host}
    assert "Traceback" not in run.said + page.said
    with closing(sqlite3.connect(journal)) as db:
        assert [id for (id,) in db.execute("SELECT id FROM questions ORDER BY event")] == asked
        told = db.execute("SELECT id, truth FROM answers JOIN questions ON question = questions.event")
        assert {id: CLASSES[truth] for id, truth in told} == answers
