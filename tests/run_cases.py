"""Lives of `venn run`: processes forked from one that has imported and compiled everything, and what they leave."""

import gc
import io
import json
import os
import signal
import sqlite3
import sys
import time
import traceback
from contextlib import closing

import pytest

import streams
from venn import cli

CLASSES = ("no", "yes")
OPTIONS = ("--no-conformal", "--no-drift", "--classes", "no,yes", "--features", "a,b", "--predictors", "inductive",
           "--gamma", "0.5", "--C", "1")  # fmt: skip
TEACHER = streams.Lazy(0.1, seed=2, teacher=streams.RandomDelay(4, seed=1))
TABLES = (
    ("questions", "event, id, step, x, predictions"), ("answers", "step, event, question, truth"),
    ("expired", "number, event, question"), ("alarms", "predictor, number, step, alarm"),
)  # fmt: skip
LIVING = []  # what a test that fails leaves behind


@pytest.fixture(autouse=True)
def nobody_survives():
    yield
    while LIVING:
        LIVING[-1].send(signal.SIGKILL).end()


def events(n, seed=0):
    """Return the messages about n examples, whose objects are often the same, with late and missing labels."""
    rounded = [(x.round(), CLASSES[y]) for x, y in streams.gaussians(n, classes=2, spread=1.0, seed=seed)]
    return list(streams.teach(rounded, TEACHER))


def parts(event):
    """Return id, x and y of a question or an answer."""
    return f"k{event.id}", getattr(event, "x", None), getattr(event, "y", None)


def line(event):
    return streams.to_json(*parts(event)) + "\n"


def left(path):
    """Return all that a run leaves in its journal, but for times and positions."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {table: list(db.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2")) for table, columns in TABLES}


def counts(path):
    """Return how many questions and answers a journal holds, 0 where there is none yet."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return tuple(
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("questions", "answers")
            )
    except sqlite3.OperationalError:
        return 0, 0


def shown(path):
    """Return the number of answers that viewers see."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("SELECT min(step) FROM latest").fetchone()[0]


def until(happened, seconds=60):
    """Wait until something has happened."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def printed(path):
    return [json.loads(text) for text in path.read_text().splitlines()]


class Life:
    """A process that runs `venn run` in a folder; its stdout and stderr are appended to files there."""

    def __init__(self, folder, *arguments, stdin=None, stdout=None):
        LIVING.append(self)
        self.out, self.err = folder / "stdout", folder / "stderr"
        gc.freeze()  # the run need not look for garbage among what this process has
        # A Ctrl-C sent at once must not find the child still on its way out of the test that forked it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid = os.fork()
        if self.pid == 0:
            self._live(folder, arguments, stdin, stdout)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _live(self, folder, arguments, stdin, stdout):
        code = 70
        try:
            os.chdir(folder)
            for number, path in ((1, self.out), (2, self.err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
            if stdout is not None:
                os.dup2(stdout, 1)
            os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
            sys.stdin, sys.stdout, sys.stderr = (
                io.TextIOWrapper(os.fdopen(number, mode, closefd=False), write_through=True)
                for number, mode in ((0, "rb"), (1, "wb"), (2, "wb"))
            )
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            cli.main(["run", *map(str, arguments)], prog_name="venn")
        except SystemExit as error:
            code = 0 if error.code is None else error.code
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def send(self, number):
        os.kill(self.pid, number)
        return self

    def end(self):
        """Return the exit code once it has ended, negative the signal that killed it."""
        deadline = time.monotonic() + 60
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                LIVING.remove(self)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.005)

    @property
    def said(self):
        return self.err.read_text() if self.err.exists() else ""
