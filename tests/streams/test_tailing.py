"""Files that grow: whole lines once, whoever stops and starts when; bad lines named; rotation and truncation said."""

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import lines
from streams.form import Form, to_json
from streams.lines import CSVRows, JSONLines
from streams.messages import BadMessage, MessagesLost, MessageSource, Tally

QUICK = 1e-3


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.jsonl"


def append(path, text):
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def line(i, end="\n"):
    return to_json(i, [i % 3], i % 2) + end


def until_none(messages):
    """Return the ids and the last position of what there is right now."""
    found = []
    for message in messages:
        if message is None:
            break
        found.append(message)
    return [message.id for message in found], found[-1].position if found else None


def ids(source, position=None):
    return [message.id for message in source.messages(position)]


# Growing -------------------------------------------------------------------------------------------------------------


def test_a_file_that_ends_needs_no_last_line_end(path):
    append(path, line(1) + line(2, end=""))
    source = JSONLines(path, follow=False)
    first, second = source.messages()
    assert (first.id, second.id) == (1, 2)
    assert ids(source, second.position) == []
    append(path, "\r\n" + line(3))
    assert ids(source, second.position) == [3]


def test_a_last_line_without_an_end_that_grew_is_said(path):
    append(path, line(1) + line(2, end=""))
    source = JSONLines(path, follow=False)
    _, position = until_none(source.messages())
    append(path, "x\n" + line(3))
    with pytest.raises(MessagesLost, match="had a last line without an end, which has grown since it was read"):
        ids(source, position)
    lost = Tally()
    assert ids(JSONLines(path, follow=False, lost=lost), position) == [3]
    assert lost.count == 1


def test_a_byte_order_mark_is_no_part_of_the_first_line(path):
    append(path, b"\xef\xbb\xbf" + line(1).encode() + line(2).encode())
    source = JSONLines(path, follow=False)
    first, _ = source.messages()
    assert ids(source, first.position) == [2]


def test_a_file_that_does_not_exist_is_waited_for(path, caplog):
    with JSONLines(path, wait=QUICK) as source:
        messages = source.messages()
        assert [next(messages) for _ in range(3)] == [None] * 3
        append(path, line(1))
        assert until_none(messages)[0] == [1]
    assert [r.getMessage() for r in caplog.records] == [f"there is no file {path} yet: waiting for it"]
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere"):
        next(JSONLines(path.with_name("nowhere"), follow=False).messages())


def test_none_comes_while_nothing_does(path):
    append(path, line(1))
    with JSONLines(path, wait=0.2) as source:
        messages = source.messages()
        assert next(messages).id == 1
        timer = threading.Timer(0.02, append, (path, line(2)))
        timer.start()
        assert next(messages).id == 2
        timer.join()
        assert next(messages) is None


def test_closing_gives_the_file_back_and_a_second_reader_ends_the_first(path):
    append(path, line(1) + line(2))
    source = JSONLines(path, wait=QUICK)
    first = source.messages()
    assert next(first).id == 1
    second = source.messages()
    assert list(first) == []
    assert next(second).id == 1
    source.close()
    source.close()
    assert list(second) == []
    assert next(source.messages()).id == 1
    source.close()


# Exactly once --------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.just("write"), st.integers(1, 60))
    | st.tuples(st.just("read"), st.integers(0, 4))
    | st.tuples(st.just("restart"), st.just(0))
    | st.tuples(st.just("rotate"), st.just(0)),
    max_size=40,
)


@pytest.mark.parametrize("kind", ["json", "csv"])
@settings(max_examples=60, deadline=None)
@given(steps=STEPS, ends=st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_each_message_exactly_once(kind, steps, ends):
    """Written in pieces, read with restarts, renamed under the reader: each message once and in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in"
        header = "key,a,y" + ends if kind == "csv" else ""

        def start():
            if kind == "csv":
                return CSVRows(path, "y", id="key", form=Form(classes=[0, 1]), wait=QUICK)
            return JSONLines(path, wait=QUICK)

        def text(i):
            return f'"{i}",{i % 3},{i % 2}{ends}' if kind == "csv" else line(i, ends)

        sent, read, position, files = 0, [], None, 0
        pending = header
        path.touch()
        source = start()
        messages = source.messages()

        def take(most):
            nonlocal position
            while most and (message := next(messages)) is not None:
                read.append(int(message.id))
                position, most = message.position, most - 1

        for step, number in steps:
            if step == "write":
                while len(pending) < number:
                    sent += 1
                    pending += text(sent)
                append(path, pending[:number])
                pending = pending[number:]
            elif step == "read":
                take(number)
            elif step == "restart":
                source.close()
                source = start()
                messages = source.messages(position)
            elif position is not None and lines.LinePlace.parse(position).inode == path.stat().st_ino:
                # A file that nobody has begun to read when another takes its place cannot be found again.
                append(path, pending)
                files += 1
                path.rename(path.with_name(f"in.{files}"))
                append(path, header)
                pending = ""
        append(path, pending)
        for _ in range(4):
            take(sent)
        source.close()
        assert read == list(range(1, sent + 1))


# Rotation and truncation ---------------------------------------------------------------------------------------------


def test_a_renamed_file_is_read_to_its_end(path, caplog):
    append(path, line(1))
    with JSONLines(path, wait=QUICK) as source, caplog.at_level(logging.INFO, "streams"):
        messages = source.messages()
        assert until_none(messages)[0] == [1]
        path.rename(path.with_suffix(".1"))
        assert next(messages) is None  # nothing has taken its place yet
        append(path.with_suffix(".1"), line(2))
        append(path, line(3))
        append(path.with_suffix(".1"), line(4))
        assert until_none(messages)[0] == [2, 4, 3]
    assert [r.getMessage() for r in caplog.records] == [f"another file has taken the place of {path}: reading it"]


def test_the_writer_of_a_renamed_file_may_end_its_line(path):
    append(path, line(1) + line(2)[:7])
    with JSONLines(path, wait=0.3) as source:
        messages = source.messages()
        assert next(messages).id == 1
        path.rename(path.with_suffix(".1"))
        append(path, line(3))
        timer = threading.Timer(0.02, append, (path.with_suffix(".1"), line(2)[7:]))
        timer.start()
        assert [next(messages).id, next(messages).id] == [2, 3]
        timer.join()


@pytest.mark.parametrize("follow", [True, False])
def test_renamed_while_nobody_looked(path, follow, caplog):
    append(path, line(1) + line(2))
    source = JSONLines(path, wait=QUICK, follow=follow)
    position = next(source.messages()).position
    source.close()
    path.rename(path.with_name("in.jsonl.1"))
    append(path, line(3))
    messages = source.messages(position)
    assert [next(messages).id for _ in range(2)] == [2, 3]
    source.close()
    assert "in.jsonl.1: reading that to its end first" in caplog.text


def test_two_renamed_while_nobody_looked_is_said(path):
    append(path, line(1))
    source = JSONLines(path, follow=False)
    position = next(source.messages()).position
    for i in (1, 2):
        path.rename(path.with_name(f"in.jsonl.{i}"))
        append(path, line(i + 1))
        os.utime(path, ns=(10**18 * (i + 1), 10**18 * (i + 1)))
    with pytest.raises(
        MessagesLost, match=r"in.jsonl is another file than the one that was read; what came after line 1"
    ):
        ids(source, position)
    lost = Tally()
    assert ids(JSONLines(path, follow=False, lost=lost), position) == [3]
    assert lost.count == 1


REPLACED = {
    "is another file": lambda path: (path.rename(path.with_name("kept")), append(path, line(8) + line(9))),
    "cut short": lambda path: path.write_text(line(8)),
    "does not begin as it did": lambda path: path.write_text("".join(line(i) for i in range(8, 13))),
}


@pytest.mark.parametrize("reason", REPLACED)
def test_a_file_replaced_between_two_runs(path, reason):
    append(path, line(1) + line(2) + line(3))
    _, position = until_none(JSONLines(path, follow=False).messages())
    REPLACED[reason](path)
    with pytest.raises(MessagesLost, match=reason):
        ids(JSONLines(path, follow=False), position)
    lost = Tally()
    source = JSONLines(path, follow=False, lost=lost)
    assert ids(source, position) == ids(source)
    assert (lost.count, ids(source)[0]) == (1, 8)


@pytest.mark.parametrize("reason", ["cut short", "does not begin as it did"])
def test_a_file_replaced_under_the_reader(path, reason):
    for lost in (None, Tally()):
        path.write_text(line(1) + line(2) + line(3))
        with JSONLines(path, wait=QUICK, lost=lost) as source:
            messages = source.messages()
            assert until_none(messages)[0] == [1, 2, 3]
            REPLACED[reason](path)
            if lost is None:
                with pytest.raises(MessagesLost, match=reason):
                    next(messages)
            else:
                assert until_none(messages)[0][0] == 8


# Bad lines -----------------------------------------------------------------------------------------------------------


def test_a_bad_line_is_raised_and_left_behind(path):
    append(path, line(1) + "\n{oops}\n" + line(2))
    source = JSONLines(path, follow=False)
    messages = source.messages()
    assert next(messages).id == 1
    with pytest.raises(BadMessage, match=r"in\.jsonl, line 3: must be JSON") as caught:
        next(messages)
    assert ids(source, caught.value.position) == [2]


def test_bad_lines_are_counted_and_the_loop_gets_its_turn(path):
    append(path, line(1) + "[]\n{}\n" + line(2))
    bad = Tally(limit=2)
    found = [message and message.id for message in JSONLines(path, follow=False, bad=bad).messages()]
    assert found == [1, None, None, 2]
    assert str(bad.last) == f"{path}, line 3: must have x, y or both, got neither"
    append(path, "[]\n" + line(3))
    with pytest.raises(BadMessage, match="line 5") as caught:
        list(JSONLines(path, follow=False, bad=Tally(limit=2)).messages())
    assert ids(JSONLines(path, follow=False), caught.value.position) == [3]


def test_a_line_without_an_end_takes_no_memory(path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 100)
    monkeypatch.setattr(lines, "CHUNK", 30)
    append(path, line(1) + "x" * 1000 + "\n" + line(2) + "x" * 101 + "\n" + line(3) + "x" * 500)
    bad = []
    found = list(JSONLines(path, follow=False, bad=bad.append).messages())
    assert [message.id for message in found if message] == [1, 2, 3]
    assert [str(error).split(", ")[1] for error in bad] == [f"line {i}: must have at most 100 bytes" for i in (2, 4, 6)]
    assert next(JSONLines(path, follow=False).messages(bad[1].position)).id == 3


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "x", "y", "a"]), inner),
    max_leaves=6,
)
RAW = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    JSONISH.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries({}, optional={"id": JSONISH, "x": JSONISH, "y": JSONISH}).map(
        lambda v: json.dumps(v).encode()
    ),
    st.lists(st.sampled_from([b'"', b",", b"1", b"a", b"?", b"-2.5", b"nan", b"\r", b"\0"]), max_size=8).map(b"".join),
).map(lambda raw: raw.replace(b"\n", b" "))


@settings(max_examples=100, deadline=None)
@given(st.lists(RAW, max_size=8))
def test_fuzzed_lines_are_messages_or_bad(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in"
        for header, make in (
            (b"", lambda bad: JSONLines(path, follow=False, bad=bad)),
            (b"", lambda bad: JSONLines(path, follow=False, bad=bad, form=Form(["a"], classes=["1", 2]))),
            (b"id,a,y\n", lambda bad: CSVRows(path, "y", id="id", follow=False, bad=bad)),
            (b"a,y\n", lambda bad: CSVRows(path, "y", follow=False, bad=bad, form=Form(classes=["1", "a"]))),
        ):
            path.write_bytes(header + b"\n".join(lines))
            bad = []
            found = [m for m in make(bad.append).messages() if m is not None]
            held = path.read_bytes().removeprefix(b"\xef\xbb\xbf")[len(header) :].split(b"\n")
            assert len(found) + len(bad) == sum(bool(raw.strip()) for raw in held)
            assert all(isinstance(error, BadMessage) for error in bad)
            for message in found:
                assert message.x is not None or (message.id is not None and message.y is not None)
                json.dumps([message.id, message.y, message.position]).encode()


# Standard input ------------------------------------------------------------------------------------------------------


def test_standard_input(monkeypatch):
    reader, writer = os.pipe()
    with os.fdopen(reader) as file, os.fdopen(writer, "wb", buffering=0) as out:
        monkeypatch.setattr(sys, "stdin", file)
        source = JSONLines("-", wait=QUICK)
        messages = source.messages(10)
        assert next(messages) is None
        out.write(line(1).encode() + line(2).encode()[:4])
        assert next(messages).position == 11
        assert next(messages) is None
        out.write(line(2, end="").encode()[4:])
        out.close()
        assert [(m.id, m.position) for m in messages] == [(2, 12)]
    assert source.name == "standard input"


# Parameters ----------------------------------------------------------------------------------------------------------


def test_a_standard_input_that_was_closed_before_the_start_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="- must be an open standard input, got one that was closed"):
        next(JSONLines("-").messages())


test_bad_parameters = refused(None, [
    (lambda: JSONLines("a", wait=10**400), ValueError, "wait must be a number of seconds > 0, got 1000"),
    (lambda: JSONLines("a", wait=0), ValueError, "wait must be a number of seconds > 0, got 0"),
    (lambda: JSONLines("a", wait=float("nan")), ValueError, "wait must be a number of seconds > 0, got nan"),
    (lambda: JSONLines("a", name=""), ValueError, "name must not be empty, got ''"),
    (lambda: JSONLines("a").messages("3"), ValueError, "position must be text that this source gave, got '3'"),
    (lambda: JSONLines("-").messages("3"), TypeError, "position must be an integer >= 0, got '3'"),
    (lambda: JSONLines("-").messages(-1), ValueError, "position must be an integer >= 0, got -1"),
    (lambda: CSVRows("a", 1), TypeError, "label must be the name of a column, or None, got 1"),
    (lambda: CSVRows("a", "y", id="y"), ValueError, "id must be another column than label, got 'y' for both"),
    (lambda: CSVRows("a", "y", delimiter=",,"), ValueError, "delimiter must be one character"),
], plain=True)  # fmt: skip


def test_names_tell_sources_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert JSONLines("in").name == JSONLines(tmp_path / "in").name != JSONLines("on").name
    assert JSONLines("in", name="mine").name == "mine"
    assert isinstance(JSONLines("in"), MessageSource)
    assert repr(CSVRows("-", "y")).startswith("CSVRows('-', 'y', id=None")


def test_a_writer_in_another_process(path):
    """Pieces that end anywhere, flushed one by one while the reader runs."""
    program = "import sys, time\nfile = open(sys.argv[1], 'ab', buffering=0)\ntext = sys.stdin.buffer.read()\n"
    program += "for i in range(0, len(text), 37): file.write(text[i:i + 37]); time.sleep(0.0005)"
    text = "".join(line(i) for i in range(200))
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE) as writer:
        writer.stdin.write(text.encode())
        writer.stdin.close()
        found, deadline = [], time.monotonic() + 30
        with JSONLines(path, wait=QUICK) as source:
            for message in source.messages():
                if message is not None:
                    found.append(message.id)
                if len(found) == 200 or time.monotonic() > deadline:
                    break
    assert found == list(range(200))
