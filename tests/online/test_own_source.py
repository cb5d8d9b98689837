"""Sources of a user's own: in a program, and on the command line, through kills."""

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused, well
from run_cases import Life, counts, left, nobody_survives, until

import streams
from streams import Form, Message, Nominal, OwnSource
from venn import cli

assert nobody_survives

MODULE = """
from streams import Message


class Cities:
    name = "cities"

    def messages(self, position=None):
        for place in range(position or 0, 40):
            city = ("Oslo", "Rome")[place % 2]
            yield Message(f"k{place}", {"size": place % 5, "city": city}, ("no", "yes")[place % 2], place + 1)
            yield None


ready = Cities()


def made():
    return ready


nothing = 3
"""
LIVE = ("--classes", "no,yes", "--features", "size,city", "--nominal", "city=Oslo,Rome", "--quiet")


class Given:
    """Yields what it is given."""

    name = "given"

    def __init__(self, *messages):
        self.given, self.told, self.closed = messages, [], 0

    def messages(self, position=None):
        yield from self.given[position or 0 :]

    def acknowledge(self, position):
        self.told.append(position)

    def close(self):
        self.closed += 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the command adds
    (tmp_path / "cities_for_test.py").write_text(MODULE)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli.main, ["run", *map(str, arguments)])


def test_objects_and_labels_are_as_the_form_says():
    form = Form(["size", "city"], [1, 2], {"city": Nominal(["Oslo", "Rome"])})
    mine = Given(
        Message(np.int64(4), {"city": "Rome", "size": np.float64(3)}, None, 1), None,
        Message(4, None, np.int64(2), "b"), Message(None, (1, "Oslo"), 1, 3),
    )  # fmt: skip
    with OwnSource(mine, form=form) as source:
        assert isinstance(source, streams.MessageSource)
        one, nothing, two, three = source.messages()
        source.acknowledge("b")
    assert (one.id, one.x.tolist(), one.y, one.position) == (4, [3.0, 0.0, 1.0], None, 1)
    assert nothing is None
    assert (two.id, two.x, two.y, two.position) == (4, None, 2, "b")
    assert (three.id, three.x.tolist(), three.y) == (None, [1.0, 1.0, 0.0], 1)
    assert mine.told == ["b"]
    assert mine.closed >= 1
    assert source.features == ("size", "city=Oslo", "city=Rome")
    assert (source.once, source.holding) == (False, False)


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (Message(1, [1.0], "no", 1), "given at 1: x must have 2 values, got 1"),
        (Message(1, {"a": 1}, "no", 7), "given at 7: x must have a value for every feature, got none for 'b'"),
        (Message(1, {"a": 1, "b": "?"}, "no", 7), "given at 7: x, feature 'b' "),
        (Message(1, [1.0, 2.0], "maybe", 1), "given at 1: y must be "),
        (Message(None, None, "no", 1), "given at 1: must have an id"),
        (Message(1.5, [1.0, 2.0], "no", 1), "given at 1: id must be text or an integer"),
        (Message(1, 3, "no", 1), "given at 1: "),
        (Message(1, None, None, 1), "given at 1: must have x, y or both"),
    ],
)
def test_a_bad_message_is_refused_in_its_place_or_skipped(message, what):
    form, good = Form(["a", "b"], ["no", "yes"]), Message(9, [1.0, 2.0], "no", 9)
    with pytest.raises(streams.BadMessage) as error:
        list(OwnSource(Given(message, good), form=form).messages())
    assert str(error.value).startswith(what)
    assert error.value.position == message.position
    bad = streams.Tally()
    assert [one and one.id for one in OwnSource(Given(message, good), form=form, bad=bad).messages()] == [None, 9]


test_what_is_no_source = refused(OwnSource, [
    (Given, "must have a method messages"),
    ([1], "must have a method messages"),
    (type("Nameless", (), {"messages": lambda self, position: []})(), "must have a name"),
], kind=TypeError)  # fmt: skip


@pytest.mark.parametrize("message", ["text", (1, 2), Message(1, [1.0], None, None), Message(1, [1.0], None, 1.5)])
def test_what_is_no_message(message):
    with pytest.raises(TypeError, match=r"must yield Message|position of a message must be"):
        list(OwnSource(Given(message)).messages())


@pytest.mark.parametrize("name", ["Cities", "ready", "made"])
def test_it_runs_by_its_name(folder, name):
    well(run("--source", f"cities_for_test:{name}", *LIVE, "--journal", "run.db", "--out", "out"))
    assert counts("run.db") == (40, 40)
    assert [json.loads(one)["id"] for one in Path("out").read_text().splitlines()] == [f"k{i}" for i in range(40)]
    well(run("--source", f"cities_for_test:{name}", *LIVE, "--journal", "run.db", "--out", "out"))
    assert counts("run.db") == (40, 40)


def test_killed_and_resumed(folder):
    live = ("--source", "cities_for_test:Cities", *LIVE)
    assert Life(folder, *live, "--journal", "whole.db", "--out", "whole").end() == 0
    life = Life(folder, *live, "--journal", "run.db", "--out", "out")
    until(lambda: counts("run.db")[0] >= 5)
    life.send(signal.SIGKILL).end()
    assert Life(folder, *live, "--journal", "run.db", "--out", "out").end() == 0
    assert left("run.db") == left("whole.db")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("cities_for_test:nothing", "source must have a method messages(position), got 3"),
        ("cities_for_test:none", "--source cities_for_test:none cannot be loaded: AttributeError: "),
        ("no_such_module:none", "--source no_such_module:none cannot be loaded: ModuleNotFoundError: "),
    ],
)
def test_what_is_wrong_is_one_line(folder, source, what):
    result = run("--source", source, *LIVE, "--journal", "run.db")
    assert result.exit_code == 1
    assert what in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not Path("run.db").exists()
    assert "--classes must be declared for a live source" in run("--source", source, "--journal", "run.db").stderr
