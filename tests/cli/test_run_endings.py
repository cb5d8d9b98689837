"""``venn run`` and an end at any moment: what was processed is written and acknowledged, all else is read again."""

import csv
import io
import os
import shutil
import signal
import sys

import pytest
from ports import RedisServer
from run_cases import CLASSES, OPTIONS, Life, counts, events, left, line, nobody_survives, parts, printed, until  # noqa: F401

import streams
from streams import lines
from venn import cli
from venn.cli import run as command
from venn.cli import service
from venn.cli.commands import Ending
from venn.cli.service import Service

MESSAGES = 6  # examples; with the answers that come alone some more messages


class Pressing(Ending):
    """An end that is asked for while the n-th message of a life is processed."""

    after = 0

    def __enter__(self):
        Pressing.now = self
        return super().__enter__()


@pytest.fixture
def ended(monkeypatch):
    return lives_in(monkeypatch)


def lives_in(monkeypatch):
    """Let each life of `venn run` in this process end at a message of choice, in one transaction or in many."""
    clock, seen, happen = [0.0, 0.0], [0], Service._happen

    def one(self, *given):
        happen(self, *given)
        clock[0] += clock[1]
        seen[0] += 1
        if seen[0] == Pressing.after:
            Pressing.now.pressed = Pressing.now.terminated = True

    def life(arguments, after, slow):
        clock[1], seen[0], Pressing.after = float(slow), 0, after
        assert not cli.main(["run", *map(str, arguments)], standalone_mode=False)
        return seen[0]

    monkeypatch.setattr(Service, "_happen", one)
    monkeypatch.setattr(service, "monotonic", lambda: clock[0])
    monkeypatch.setattr(command, "Ending", Pressing)
    return life


def as_csv(wanted):
    rows = io.StringIO()
    out = csv.writer(rows, lineterminator="\n")
    out.writerow(["id", "a", "b", "y"])
    for id, x, y in map(parts, wanted):
        out.writerow([id, *(("", "") if x is None else x), "" if y is None else y])
    return rows.getvalue()


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory):
    pytest.importorskip("redis", reason="the package redis is not installed")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server.url
    server.kill()


@pytest.fixture
def stdin(monkeypatch):
    """Give the process a pipe as its standard input; return where to write into it."""
    read, write = os.pipe()
    with os.fdopen(read) as file:
        monkeypatch.setattr(sys, "stdin", file)
        yield write
    os.close(write)


class Log:
    """A broker of messages for a reader whose positions are numbers: what Kafka's are for one partition."""

    def __init__(self, wanted):
        self.wanted, self.acknowledged = [parts(event) for event in wanted], []


class FromLog(streams.messages.Reader):
    def __init__(self, log, form, bad):
        super().__init__("log", form, bad, None, 1.0)
        self.log = log

    def _check(self, position):
        pass

    def _messages(self, position):
        start = 0 if position is None else position
        for number, found in enumerate(self.log.wanted[start:], start + 1):
            data = streams.to_json(*found)
            yield self._read(lambda data=data: self._decoder.json(data.encode()), f"message {number}", number)

    def acknowledge(self, position):
        self.log.acknowledged.append(position)


def opened(kind, folder, wanted, monkeypatch, request):
    """Return the options that name a source of these messages, and its log if it has one."""
    if kind == "jsonl":
        (folder / "in.jsonl").write_text("".join(map(line, wanted)))
        return ["--source", f"jsonl:{folder / 'in.jsonl'}", "--end", *OPTIONS], None
    if kind == "csv":
        (folder / "in.csv").write_text(as_csv(wanted))
        return ["--source", f"csv:{folder / 'in.csv'}", "--label", "y", "--id", "id", "--end", *OPTIONS], None
    if kind == "data":
        rows = [f"{x[0]},{x[1]},{CLASSES[y]}" for x, y in streams.gaussians(MESSAGES, classes=2, seed=3)]
        (folder / "t.csv").write_text("\n".join(["a,b,answer", *rows]) + "\n")
        given = [option for option in OPTIONS if option not in ("--classes", "no,yes", "--features", "a,b")]
        return ["--source", str(folder / "t.csv"), "--label", "answer", "--delay", "3", *given], None
    if kind == "redis":
        url = f"{request.getfixturevalue('redis_url')}?stream={folder.name}"
        with streams.RedisStream(url.partition("?")[0], folder.name) as stream:
            for event in wanted:
                stream.send(*parts(event))
        return ["--source", url, "--set", "run.linger=0.05", *OPTIONS], None
    if kind == "stdin":
        stdin = request.getfixturevalue("stdin")
        os.write(stdin, "".join(map(line, wanted)).encode())  # less than a pipe holds
        monkeypatch.setattr(lines, "CHUNK", 200)  # some lines, the last of them unfinished
        return ["--source", "-", *OPTIONS], None
    log = Log(wanted)
    real = command.open_place

    def place(config, *model):
        found = real(config, *model)
        reader = FromLog(log, found.source.form, lambda error: found.handlers.bad(error))
        return found._replace(source=reader)

    monkeypatch.setattr(command, "open_place", place)
    return ["--source", "jsonl:none", "--end", *OPTIONS], log


@pytest.mark.parametrize("slow", [False, True], ids=["a batch", "a message"])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "data", "redis", "broker", "stdin"])
def test_an_end_at_every_message_loses_none_and_doubles_none(kind, slow, tmp_path, ended, monkeypatch, request):
    """`slow`: a message is a transaction of its own, so that an end leaves the rest of its batch over."""
    wanted = events(MESSAGES)
    arguments, log = opened(kind, tmp_path, wanted, monkeypatch, request)
    whole, _ = (arguments, None) if kind == "data" else opened("jsonl", tmp_path, wanted, monkeypatch, request)
    total = ended([*whole, "--journal", tmp_path / "whole.db", "--out", tmp_path / "whole"], 0, slow)
    done = lives = 0
    while done < total:
        files = ["--journal", tmp_path / "cut.db", "--out", tmp_path / "cut", "--set", "run.batch=5"]
        done += ended([*arguments, *files], min(1 + lives % 3, total - done), slow)
        lives += 1
        assert lives <= total
        assert log is None or log.acknowledged[-1] == done
    assert done == total
    assert lives > (total // 4 if slow and kind != "stdin" else 1)
    assert left(tmp_path / "cut.db") == left(tmp_path / "whole.db")
    assert printed(tmp_path / "cut") == printed(tmp_path / "whole")


def test_a_line_of_standard_input_that_nobody_ends_is_not_waited_for(tmp_path, ended, stdin):
    os.write(stdin, "".join(map(line, events(2))).encode() + b'{"id":')
    arguments = [
        "--source", "-", "--journal", tmp_path / "run.db", "--out", tmp_path / "out", "--set", "run.linger=0.05",
    ]  # fmt: skip
    assert ended([*arguments, *OPTIONS], 1, True) == len(events(2))


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


def test_signals_to_processes_at_work_leave_what_an_undisturbed_run_leaves(tmp_path):
    """The production command of the README, ended again and again, on its first rows."""
    command = ["--source", "car", "--shuffle", "0", "--delay", "5", "--steps", "60", "--set", "run.linger=0.01"]
    assert Life(tmp_path, *command, "--journal", "whole.db", "--out", "whole").end() == 0
    for place, number in enumerate(SIGNALS, 1):
        life = Life(tmp_path, *command, "--journal", "run.db", "--out", "out")
        until(lambda: sum(counts(tmp_path / "run.db")) >= 12 * place)  # noqa: B023 - called before the next one
        life.send(number).end()
    assert Life(tmp_path, *command, "--journal", "run.db", "--out", "out").end() == 0
    assert left(tmp_path / "run.db") == left(tmp_path / "whole.db")
    assert printed(tmp_path / "out") == printed(tmp_path / "whole")
