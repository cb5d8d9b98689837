"""The command line: labels by lot, labels that ripen by the times of messages, and answers with a promise."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well

import venn
from streams.form import Decoder, Form, seconds
from venn import cli
from venn.cli.output import Output
from venn.online.watch import Watch
from venn.show.page.feed import Feed
from venn.show.page.first import waiting

OPTIONS = "--end", "--classes", "fraud,honest", "--predictors", "inductive", "--kernel", "linear", "--out", "out"
DAY = 86400


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, lines = np.random.default_rng(1), []
    for number in range(120):
        x = rng.normal(size=2).round(2).tolist()
        lines.append({"id": number, "x": x, "at": number * DAY})
        if x[0] > 0.7:
            lines.append({"id": number, "y": "fraud", "at": "1970-01-01T00:00:00Z"})
        if number % 25 == 24:
            lines.append({"id": number - 24, "y": "fraud", "at": number * DAY})
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))

    def told(*given, stop=None):
        file = "in.jsonl"
        if stop is not None:
            file = "grows.jsonl"
            (tmp_path / file).write_text("".join((tmp_path / "in.jsonl").read_text().splitlines(True)[:stop]))
        source = "--source", f"jsonl:{file}", "--name", "it"
        return CliRunner().invoke(cli.main, ["run", *source, *OPTIONS, *map(str, given)])

    return told


def outcome(path):
    """Return what a run has answered and said, without the times of its own."""
    with Watch(path) as watch:
        rows = [(one.id, one.y, one.status) for one in watch.latest(1000)]
        return rows, watch.snapshot("inductive")["told"]["ripening"]


def test_labels_ripen_by_the_times_of_messages_and_a_restart_changes_nothing(run, tmp_path):
    given = "--ripe", "20d", "--silent", "honest"
    assert run(*given, "--journal", "one.db").exit_code == 0
    for stop in (50, 90, 1000):
        assert run(*given, "--journal", "two.db", stop=stop).exit_code == 0
    rows, ripening = outcome("one.db")
    assert outcome("two.db") == (rows, ripening)
    assert [truth for id, truth, _ in rows if id < 100].count(None) == 0
    assert [truth for id, truth, _ in rows if id >= 100] == [None] * 20
    assert ripening["late"] > 0
    with Watch("one.db") as watch:
        feed = Feed(lambda: Watch("one.db"), tmp_path / "one.db")
        feed.look()
        shown = waiting(feed.run, "inductive")
        assert "20 questions wait until they are ripe, after 20 days" in shown
        assert watch.counts().pending == 20
    assert "same ripe" in run("--ripe", "21d", "--silent", "honest", "--journal", "one.db").stderr


def test_labels_that_come_with_their_questions_ripen_too_and_a_run_goes_on_after_its_death(run, tmp_path, monkeypatch):
    both = [{"id": i, "x": [i % 7, i % 3], "y": "fraud" if i % 7 > 4 else "honest"} for i in range(60)]
    both.insert(30, {"id": "nobody", "y": "fraud"})  # while another one gets ripe
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in both))
    given = "--ripe", "5", "--set", "run.batch=20"
    assert run(*given, "--journal", "one.db").exit_code == 0
    whole = (tmp_path / "out").read_text()
    assert '"y"' not in whole  # it counts later
    (tmp_path / "out").unlink()
    with monkeypatch.context() as patched:  # it dies between a transaction and its lines
        patched.setattr(Output, "write", lambda *_: 1 / 0)
        assert run(*given, "--journal", "two.db").exit_code == 1
    told = well(run(*given, "--journal", "two.db"))
    assert "refused an answer: " in told.stderr
    assert "learned an answer with an error" not in told.stderr
    assert (tmp_path / "out").read_text() == whole
    assert outcome("two.db") == outcome("one.db")


def test_answers_stand_beside_predictions_and_are_written_again_to_the_byte(run, tmp_path):
    given = "--answer-error", 0.2, "--set", "predictor.answer_allowance=3", "--labels-by-lot", 0.9
    assert run(*given, "--journal", "one.db").exit_code == 0
    whole = (tmp_path / "out").read_bytes()
    lines = [json.loads(line) for line in whole.splitlines()]
    assert len(lines) == 120
    assert {one["wanted"] for one in lines} == {True, False}
    assert {one["answer"] is None for one in lines} <= {True, False}
    assert all(one.get("why") for one in lines if one["answer"] is None)
    (tmp_path / "out").unlink()
    assert run(*given, "--journal", "two.db", stop=70).exit_code == 0
    assert run(*given, "--journal", "two.db", stop=1000).exit_code == 0
    assert (tmp_path / "out").read_bytes() == whole
    found = run("--answer-error", 0.3, "--labels-by-lot", 0.9, "--journal", "one.db")
    assert "same answers" in found.stderr


def test_what_does_not_go_together_is_refused(run):
    for given, words in (
        (("--ripe", "0d"), "--ripe must be"),
        (("--ripe", "20d", "--patience", 5), "--ripe does not go with --patience"),
        (("--ripe", "20d", "--labels-by-lot", 0.5), "--ripe does not go with --labels-by-lot"),
        (("--silent", "honest"), "--silent needs --ripe"),
        (("--ripe", "20d", "--silent", "theft"), "silent must be one of the labels"),
        (("--answer-error", 1.5), "--answer-error must be"),
        (("--answer-error", 0.1, "--set", "predictor.answer_width=2"), "leave it out"),
    ):
        assert words in run(*given, "--journal", "no.db").stderr


def test_a_message_says_when_it_happened():
    decoder = Decoder(Form())
    assert decoder.json('{"id": 1, "y": "no", "at": 3}') == (1, None, "no", 3.0)
    assert decoder.json('{"id": 1, "y": "no", "at": null}') == (1, None, "no")
    assert seconds("1970-01-02T01:00:00+01:00") == DAY
    for bad in ("noon", "2026-01-01T00:00:00", True, [1]):
        with pytest.raises(ValueError, match="at must be seconds since 1970"):
            seconds(bad)


def test_the_page_says_how_a_promise_stands_and_why_it_is_silent(tmp_path):
    model = venn.Selective(venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.Linear(), 1.0, ("a", "b"))), 0.3, 1)
    with venn.Online(model, journal=tmp_path / "run.db") as online:
        for number in range(40):
            online.ask([number % 2], number)
            if number > 30:
                continue
            online.answer(number, "ab"[number % 2])
    feed = Feed(lambda: Watch(tmp_path / "run.db"), tmp_path / "run.db")
    feed.look()
    shown = waiting(feed.run, "TransductiveVennAbers")
    assert "promised .30 and 1 more, 1 wait for their label" in shown or "promised .30 and 1 more." in shown
    assert "It answers nothing: 1 of 1 answers are wrong" in shown
    assert "it answers again with an allowance of 1.4, and with no less" in shown
