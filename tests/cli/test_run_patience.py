"""What ``venn run`` teaches and gives up: data sets, windows, patience, a full place."""

# ruff: noqa: F811

import json
import time
from pathlib import Path

import pytest
from conftest import well
from run_cases import CLASSES, OPTIONS, left
from test_run import run  # noqa: F401

import streams
import venn
from venn.cli import patience
from venn.cli.predictors import PREDICTORS
from venn.online.loop import Online
from venn.online.watch import Watch

# Data sets, windows, patience ----------------------------------------------------------------------------------------


def test_a_data_set_is_taught(run, tmp_path):
    rows = [f"{x[0]},{x[1]},{CLASSES[y]}" for x, y in streams.gaussians(60, classes=2, seed=3)]
    (tmp_path / "in.csv").write_text("\n".join(["a,b,answer", *rows]) + "\n")
    given = ("--predictors", "inductive", "--gamma", "0.5", "--C", "1", "--no-conformal", "--no-drift")
    arguments = ("--source", "in.csv", "--label", "answer", "--delay", 3, "--missing", 0.2, "--shuffle", 1, *given)
    before = time.time()
    assert run(*arguments, "--journal", "run.db", "--steps", 50).exit_code == 0
    with Watch("run.db") as watch:
        assert before <= watch.ended() <= time.time()
    stream = streams.from_csv(tmp_path / "in.csv", "answer", shuffle=1).take(50)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, stream.classes)
    panel = venn.Panel(inductive=PREDICTORS["inductive"][1](machine))
    with Online(panel, {"inductive": venn.Monitor(stream.classes)}, tmp_path / "by_hand.db") as by_hand:
        for _ in by_hand.follow(streams.teach(stream, streams.Lazy(0.2, teacher=streams.Delayed(3)))):
            pass
    assert left("run.db") == left("by_hand.db")


def test_a_window_restarts_when_the_labels_change_places(run, tmp_path):
    stream = streams.flip_labels(streams.gaussians(240, classes=2, spread=0.3, seed=1), 120)
    rows = "".join(json.dumps({"x": list(x), "y": CLASSES[y]}) + "\n" for x, y in stream)
    (tmp_path / "in.jsonl").write_text(rows)
    given = ("--source", "jsonl:in.jsonl", "--end", "--classes", "no,yes", "--features", "a,b", "--C", 1)
    window = (
        "--predictors", "conformal", "--window", 100, "--restart-on-alarm", "--keep", 5, "--out", "o", "--no-drift",
    )  # fmt: skip
    result = well(run(*given, *window, "--journal", "run.db"))
    restarts = [text for text in result.stderr.splitlines() if text.startswith("restart: conformal: ")]
    assert restarts
    assert 120 < int(restarts[0].rpartition("step ")[2]) <= 240
    told = [text for text in result.stderr.splitlines() if text.startswith(("alarm: ", "episode "))]
    assert told[0].startswith("episode 1 begins: ")
    assert not any(text.startswith("alarm: ") for text in told)  # a line for each stage of an episode is enough
    for extra, said in (
        (("--predictors", "inductive", "--window", 9), "--window does not go with inductive"),
        (("--predictors", "platt", "--window", 9), "--window does not go with platt, whose machine cannot forget"),
        (("--predictors", "conformal", "--restart-on-alarm"), "--restart-on-alarm needs --window"),
        (("--predictors", "conformal", "--window", 9, "--keep", 2), "--keep needs --restart-on-alarm"),
        (
            ("--predictors", "conformal", "--window", 9, "--restart-on-alarm", "--keep", 20),
            "--keep must be at most the window, 9 examples, got 20",
        ),
    ):
        result = run(*given, *extra, "--journal", "other.db")
        assert result.exit_code == 2
        assert said in result.stderr


def test_questions_are_given_up_after_some_seconds(run, tmp_path, monkeypatch):
    now = [1e9]

    def clock():
        now[0] += 1
        return now[0]

    monkeypatch.setattr(patience, "monotonic", clock)
    wanted = ['{"id": 1, "x": [0, 0]}', '{"id": 2, "x": [0, 1]}', '{"id": 1, "y": "no"}', '{"id": 2, "y": "no"}']
    (tmp_path / "in.jsonl").write_text("\n".join(wanted) + "\n")
    # A transaction a message; the clock is read once for each and once more for each question.
    given = ("--source", "jsonl:in.jsonl", "--end", "--journal", "run.db", "--set", "run.batch=1", *OPTIONS)
    result = well(run(*given, "--set", "journal.patience_seconds=2.5"))
    assert "refused an answer: file" in result.stderr
    assert left("run.db")["expired"] == [(1, 3, 1)]
    assert left("run.db")["answers"] == [(1, 4, 2, 0)]


@pytest.mark.parametrize("step", [1.7e9, -1.7e9])
def test_a_clock_that_is_set_gives_up_no_question(step, run, tmp_path, monkeypatch):
    now, ask = [100.0], Online.ask

    def set_between(self, x, id):
        now[0] = 100.0 + step * (id == "2" or id == 2)
        return ask(self, x, id)

    monkeypatch.setattr(Online, "ask", set_between)
    monkeypatch.setattr(time, "time", lambda: now[0])  # of the journal
    monkeypatch.setattr(patience, "time", time.time)
    (tmp_path / "in.jsonl").write_text('{"id": 1, "x": [0, 0]}\n{"id": 2, "x": [0, 1]}\n{"id": 1, "y": "no"}\n')
    given = ("--source", "jsonl:in.jsonl", "--end", "--journal", "run.db", "--set", "run.batch=1", *OPTIONS)
    well(run(*given, "--set", "journal.patience_seconds=3600"))
    assert (left("run.db")["expired"], len(left("run.db")["answers"])) == ([], 1)


def test_across_restarts_the_clock_counts_and_never_less_than_nothing(monkeypatch):
    now = [5.0]
    monkeypatch.setattr(patience, "monotonic", lambda: now[0])
    monkeypatch.setattr(patience, "time", lambda: 1000.0)
    waits = patience.Patience(60.0)
    waits.remember([("old", 930.0), ("new", 970.0), ("ahead", 2000.0), ("odd", 0.0)])
    waits.begin("now")
    assert waits.overdue() == ["old"]
    now[0] += 31
    assert waits.overdue() == ["old", "new"]
    now[0] += 29
    assert waits.overdue() == ["old", "new", "ahead", "odd", "now"]
    waits.end("old")
    assert waits.overdue() == ["new", "ahead", "odd", "now"]
    assert patience.Patience(None).overdue() == []


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no such device")
def test_a_full_place_for_predictions_is_named(run, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": 1, "x": [0, 0]}\n')
    result = run("--source", "jsonl:in.jsonl", "--end", "--journal", "run.db", "--out", "/dev/full", *OPTIONS)
    assert result.exit_code == 1
    assert "--out must be a place that can be written, got /dev/full: No space left on device" in result.stderr
    assert Path("/dev/full").is_char_device()
