"""The page of a run: what it reads, and what it says of it in numbers and words; the command that shows it."""

import json
import math
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well
from page_cases import CLASSES, STATES, write, write_state

from venn import Conformal, LeastSquaresSVM, Monitor, Panel, TransductiveVennAbers, cli
from venn.labels import Classes
from venn.machines import RBF, KernelRidge
from venn.monitors import ClassDrift, FloorWatch
from venn.monitors.verdict import Verdict
from venn.online import Online, files
from venn.online.watch import Watch
from venn.predictors import ConformalIntervals
from venn.show.page import charts, feed, first, memory, words
from venn.show.page.feed import Feed, FollowedRun
from venn.show.repeats import grouped

# -------------------------------------------------------------------- what is read


class Scripted:
    """A run whose points of curves and counts are given."""

    space = Classes(("a", "b"))
    classes, names, predictors, monitors, created = ("a", "b"), ("one",), {"one": "One()"}, {}, 1.0
    objects = ()

    def __init__(self):
        self.steps, self.answered, self.time, self.closed = [], 0, 0.0, 0

    def counts(self):
        return feed_counts(self.answered, self.time)

    def ended(self):
        return None

    def series(self, points=1000, after=0):
        return [SimpleNamespace(step=s, time=0.0, figures=curves(s)) for s in self.steps if s > after]

    def snapshot(self, name):
        told = curves(self.answered)["one"] | {
            "step": self.answered, "guaranteed": "nothing", "predictions": "Forecast",
        }  # fmt: skip
        return {"told": told, "monitor": None} if self.answered else None

    def alarms(self, name, last=100):
        return []

    def episodes(self):
        return ()

    def latest(self, questions=20):
        return []

    def outcomes(self, answers=20):
        return []

    def answered_at(self, step):
        return 1000.0 + step

    def close(self):
        self.closed += 1


class feed_counts(tuple):
    """Counts with `answered` answers."""

    asked = answered = expired = pending = 0
    rate = time = 0.0

    def __new__(cls, answered, time):
        made = super().__new__(cls, (answered, time))
        made.asked = made.answered = answered
        made.time = time
        return made


def curves(step):
    return {"one": {"curves": {"accuracy": 1 / (step or 1)}, "window": {"size": 1, "accuracy": 0.5}, "evidence": {}}}


@pytest.mark.parametrize("last", [1, 7, 2000, 2001, 4096, 20_001])
def test_points_are_bounded_and_even(last):
    made = Scripted()
    made.steps, made.answered = list(range(1, last + 1)), last
    run = FollowedRun(made)
    run.finish()
    steps = [point.step for point in run.points]
    assert len(steps) <= feed.MOST_POINTS + 2
    assert len(steps) >= min(last, feed.MOST_POINTS // 2)
    assert steps == sorted(set(steps))
    assert steps[-1] == last
    gaps = [b - a for a, b in pairwise(steps)]
    assert max(gaps, default=1) <= 2 * max(1, 2 * last / feed.MOST_POINTS)
    assert all(point.figures == curves(point.step) for point in run.points), "a point is one of the run's"


def test_while_nothing_is_dropped_points_only_grow():
    made = Scripted()
    run = FollowedRun(made)
    before, thinned, version = [], run.thinned, run.version
    for last in range(500, 12_000, 500):
        made.steps, made.answered = list(range(5, last + 1, 5)), last
        run.read(made)
        now = [point.step for point in run.points]
        if run.thinned == thinned:
            assert now[: len(before)] == before
        assert len(now) <= feed.MOST_POINTS + 1
        assert run.version > version
        before, thinned, version = now, run.thinned, run.version
    assert thinned > 0
    run.read(made)
    assert run.version == version, "nothing new"


def test_what_is_made_once_is_made_again_when_the_run_changes():
    made = Scripted()
    made.steps, made.answered = [1, 2], 2
    run = FollowedRun(made)
    assert run.standing("one") is run.standing("one")
    made.steps, made.answered = [1, 2, 3], 3
    run.read(made)
    assert run.standing("one").step == 3
    assert charts.table(run, "one", 1)["step"] == [2, 3]


def test_silence_is_measured_by_the_usual_gap():
    made = Scripted()
    made.answered, made.time = 5, 1000.0
    run = FollowedRun(made)
    assert not run.silent(1004.0)
    assert run.silent(1006.0)
    run.counts.rate = 0.1
    assert not run.silent(1099.0)
    assert run.silent(1101.0)


def look(watched):
    watched._next = 0.0
    return watched.look()


def test_a_journal_that_comes_goes_and_is_replaced(tmp_path):
    path = tmp_path / "run.db"
    watched = Feed(lambda: Watch(path), path)
    assert watched.look() is None
    assert "not there yet" in watched.complaint
    assert '<section class="status waiting"' in first.head(watched)
    assert "not there yet" in first.head(watched)
    path.write_bytes(b"")
    assert look(watched) is None
    write(path, 20)
    before = look(watched)
    assert (before.counts.answered, watched.complaint) == (20, None)
    assert look(watched) is before
    path.unlink()
    assert look(watched) is before, "what was seen stays"
    assert '<section class="status broken"' in first.head(watched)
    assert "before that: " in first.head(watched)
    write(path, 10, "conformal", created=1_800_000_000.0)
    second = look(watched)
    assert second is not before
    assert (second.names, second.counts.answered) == (("conformal",), 10)
    path.write_bytes(b"damage" * 5000)
    look(watched)
    assert watched.complaint
    watched.close()


def test_an_earlier_state_of_the_same_run_is_another_run(tmp_path):
    path = tmp_path / "run.db"
    write(path, 20)
    watched = Feed(lambda: Watch(path), path)
    first = watched.look()
    path.unlink()
    write(path, 20)
    assert look(watched) is first
    path.unlink()
    write(path, 12)
    assert look(watched) is not first
    assert watched.run.counts.answered == 12
    watched.close()


def test_looks_are_shared_by_viewers():
    made = Scripted()
    opened = []
    watched = Feed(lambda: opened.append(1) or made, __file__)
    run = watched.look()
    made.answered = 3
    assert watched.look() is run
    assert run.counts.answered == 0, "a moment ago"
    assert look(watched).counts.answered == 3
    assert opened == [1]
    watched.close()
    assert made.closed == 1


# ------------------------------------------------------------------- what is drawn


def test_columns_of_a_run(tmp_path):
    made = write(tmp_path / "run.db", 40)
    with Watch(tmp_path / "run.db") as watch:
        run = FollowedRun(watch)
    hits = [one["venn"].label == y for one, y in zip(made.said, made.truths, strict=True)]
    found = charts.table(run, "venn")
    assert found["step"] == [8, 16, 24, 32, 40]
    assert found["accuracy"] == pytest.approx([sum(hits[:n]) / n for n in found["step"]], abs=1e-6)
    sets = charts.table(run, "conformal")
    assert sets["lower"] == sets["upper"] == [None] * 5
    assert list(run.standing("conformal").errors) == ["0.01", "0.05", "0.1", "0.2"]
    assert run.standing("venn").errors == {}
    assert sets["size_0.2"][-1] == pytest.approx(
        sum(len(one["conformal"].set(0.2)) for one in made.said) / 40, abs=1e-6
    )
    assert sum(one["count"] for one in run.standing("platt").bins) == 40
    assert charts.compared(run)["0"] == found["accuracy"]
    keys = [one.key for one in run.standing("abers").evidence]
    assert len(keys) == 2 * 2 * len(CLASSES)  # of each how sure it is, and its share
    assert set(keys) < set(charts.table(run, "abers"))
    assert charts.table(run, "venn", 3)["accuracy"] == found["accuracy"][3:]


def test_a_run_of_numbers_is_told_in_words_of_numbers(tmp_path):
    rng = np.random.default_rng(0)
    online = Online(ConformalIntervals(KernelRidge(RBF(0.5), 2.0)), journal=tmp_path / "run.db")
    with online:
        for number in range(30):
            online.ask(rng.normal(size=2), id=number)
            online.answer(number, 83.0)
    with Watch(tmp_path / "run.db") as watch:
        run = FollowedRun(watch)
    (name,) = run.names
    assert run.right == "inside at 0.05"
    assert "abs. error" in words.numbers(run, name)
    assert "accuracy" not in words.numbers(run, name) + words.summary(run)
    assert "<th>lower</th>" not in words.summary(run)
    assert "answers an hour" in words.facts(run.counts, 0.0)
    assert "answers a" not in words.facts(run.counts, None)
    own = run.standing(name)
    assert f"<td>{own.means['absolute_error']:.4g}</td>" in words.summary(run)
    assert words.summary(run).endswith(f"<td>{own.alarms if own.watched else '–'}</td></tr></tbody></table></div>")
    assert "<td>83</td>" in words.outcomes(run, name)
    assert "<td>83</td>" in words.latest(run, name)
    assert "<td>83</td>" in first.outcomes(run)


def test_words_escape_what_a_run_says(tmp_path):
    write(tmp_path / "run.db", 60, flip=20)
    with Watch(tmp_path / "run.db") as watch:
        run = FollowedRun(watch)
    assert first.each(run).count('<span class="mini ') == len(run.names)
    for name in run.names:
        said = words.latest(run, name) + memory.changes(run) + words.promise(run, name) + words.parameters(run)
        said += words.outcomes(run, name) + first.outcomes(run) + first.lately(run) + memory.card(run)
        assert "<img" not in said
        assert "&lt;img" in said
    assert "(&lt;b&gt;)" in words.parameters(run)


def test_words_say_what_is_guaranteed_and_what_came_of_it(tmp_path):
    made = write(tmp_path / "run.db", 120, flip=60)
    with Watch(tmp_path / "run.db") as watch:
        run = FollowedRun(watch)
    for name in run.names:
        for place in ("Guaranteed", "guaranteed"):
            for after in words.promise(run, name).split(place)[1:]:
                before = words.promise(run, name).partition(f"{place}{after}")[0]
                assert after.startswith(" while nothing has changed") or before.lower().endswith(
                    ("not ", "nothing is ")
                )
        changed = run.snapshots[name]["monitor"]["verdict"]["state"] == "changed"
        assert ("It does not hold now: changed since about " in words.promise(run, name)) == changed
    assert run.verdict.state == "changed"
    assert "misses the true label with exactly that probability" in words.promise(run, "conformal")
    assert "Nothing is guaranteed" in words.promise(run, "platt")
    count = sum(monitor.count for monitor in made.told.values())
    assert f">{count} alarm" in memory.changes(run)
    assert memory.changes(run).count("<li>") == min(len(grouped(run.by_episode[0])), 20)
    theorems = [one.partition("</li>")[0] for one in memory.changes(run).split("Theorem")[1:]]
    assert 0 < len(theorems) == len(set(theorems)), "each is told once"
    rows = words.latest(run, "venn")
    assert rows.count("<tr>") == 21, "a head and the latest 20"
    assert rows.count('class="pending"') == 3
    assert rows.count('class="expired"') == 1
    right = [one["venn"].label == y for one, y in zip(made.said[-16:], made.truths[-16:], strict=True)]
    assert rows.count('class="right"') == sum(right)
    right = [y in one["conformal"].set(0.05) for one, y in zip(made.said[-16:], made.truths[-16:], strict=True)]
    assert words.latest(run, "conformal").count('class="right"') == sum(right)


# ----------------------------------------------------------------- the first screen


def fed(path):
    watched = Feed(lambda: Watch(path), path)
    watched.look()
    watched.close()
    return watched


@pytest.mark.parametrize("state", STATES)
def test_the_state_of_a_run(state, tmp_path):
    write_state(tmp_path / "run.db", state)
    watched = fed(tmp_path / "run.db")
    run, found = watched.run, first.status(watched)
    assert found.state == state
    if state == "silent":
        assert run.verdict.state == "as claimed"
        assert found.since.startswith("no event for 20 min, since ")
        assert found.also == f"before that: {run.verdict}"
    else:
        assert (run.verdict.state, found.sentence, found.also) == (state, str(run.verdict), "")
    if state == "as claimed":
        assert found.since.startswith("no alarm since it began, ")
        assert found.since.endswith(" 1 d 1 h ago")
    if state == "changed":
        at = run.points[0].step  # a point of the curves, and each minute an answer
        assert run.since == pytest.approx(run.counts.time - 60 * (1500 - run.verdict.since), abs=1), at
        assert found.since.startswith(f"since about answer {run.verdict.since}, ")
        assert found.since.endswith(" h 59 min ago")


def test_nothing_speaks_against_it_is_never_said_of_a_run_that_has_rung(tmp_path):
    calm, rung = tmp_path / "calm.db", tmp_path / "rung.db"
    write_state(calm, "as claimed")
    write_state(rung, "changed")
    assert "nothing speaks against" in first.head(fed(calm))
    watched = fed(rung)
    change = watched.run.verdict.change
    for state in ("as claimed", "no better than guessing"):
        watched.run.verdict = Verdict(state, 1000, change, "probabilities", "", f"valid, {state}", "abers")
        for said in (first.head(watched), first.concluded(watched.run)):
            assert "nothing speaks against" not in said
            assert ("after an alarm" if state == "as claimed" else "no more than how frequent the classes are") in said
            assert f'class="status {state.replace(" ", "-")}"' in said
        since = first.status(watched).since
        assert since.startswith("again: the last alarm" if state == "as claimed" else "since about answer 1,000")
    for anew, said in ((None, "Do not rely"), (change.step - 1, "Do not rely"), (change.step, "began anew")):
        watched.run.verdict = Verdict("changed", 1000, change, "probabilities", "", "changed", "abers", anew=anew)
        for shown in (first.head(watched), first.concluded(watched.run)):
            assert f'class="status {"doubtful" if said == "began anew" else "changed"}"' in shown
            assert said in shown
        watched.run._standings["abers"] = watched.run.standing("abers")._replace(verdict=watched.run.verdict)
        promised = "It did not hold until it began anew: " if said == "began anew" else "It does not hold now: "
        assert promised in words.promise(watched.run, "abers")


@pytest.mark.parametrize("state", ["as claimed", "too early to say", "changed"])
def test_a_run_that_has_ended_is_not_called_silent(state, tmp_path):
    path = tmp_path / "run.db"
    write_state(path, state, after=0)
    watched = fed(path)
    assert watched.run.ended == watched.run.counts.time + 1
    found = first.status(watched, watched.run.counts.time + 7201)
    when = f"{words.clock(watched.run.ended)}, 2 h ago"
    if state == "changed":
        assert (found.state, found.also) == ("changed", f"ended: {when}")
    else:
        assert (found.state, found.since) == ("ended", when)
        assert watched.run.verdict.sentence in found.also
    assert "silent" not in first.banner(found, "run.db")
    assert '<div class="first old">' not in first.head(watched)


def test_an_event_after_the_end_or_a_process_that_goes_on_is_no_end(tmp_path):
    path = tmp_path / "run.db"
    write_state(tmp_path / "other.db", "as claimed", after=-1)
    assert fed(tmp_path / "other.db").run.ended is None
    write_state(path, "as claimed", after=0)
    assert fed(path).run.ended is not None
    locked = files.take(f"{path}-lock")
    try:
        assert fed(path).run.ended is None
    finally:
        files.release(locked)


def test_a_change_is_shown_in_a_silence_too_and_nothing_else_as_if_it_held(tmp_path):
    for state in STATES[:4]:
        path = tmp_path / f"{state}.db"
        write_state(path, state, "conformal")
        watched = fed(path)
        later = first.status(watched, watched.run.counts.time + 7200)
        assert later.state == ("changed" if state == "changed" else "silent")
        assert "no event for 2 h, since" in later.since + later.also
        if state != "changed":
            assert watched.run.verdict.sentence in later.also


def test_what_came_true_lately_is_that_of_the_verdict(tmp_path):
    for state, kinds in (("changed", "abers"), ("changed", "conformal"), ("as claimed", "platt"), ("changed", "venn")):
        path = tmp_path / f"{state}-{kinds}.db"
        write_state(path, state, kinds)
        run = fed(path).run
        said, sentence = first.lately(run), run.verdict.details
        share, claim = first.numbers(first.recent(run.snapshots[kinds]))
        assert f"<b>{share}</b>" in said
        assert f" {share} " in sentence.partition(": ")[2]
        assert claim in sentence
        size = run.snapshots[kinds]["monitor"]["recent"]["size"]
        assert f"the last {size:,} answers" in said
        assert f"of the {'last ' if state == 'as claimed' else ''}{size}" in sentence
        assert ("while nothing has changed" in said) == (kinds != "platt")


def test_outcomes_of_labels_that_come_late(tmp_path):
    write_state(tmp_path / "run.db", "changed", "abers", late=40)
    run = fed(tmp_path / "run.db").run
    assert {seen.status for seen in run.latest} == {"pending"}
    assert [seen.delay for seen in run.outcomes] == [39 if seen.id == "x" else 40 for seen in run.outcomes]
    with Watch(tmp_path / "run.db") as watch:
        record = watch.record()
        truth = record.truth[-40:][::-1]
        outcomes = record.outcomes("abers")
    assert [watch.space.encode(seen.y) for seen in run.outcomes] == truth.tolist()
    wrong = outcomes.predicted[-40:] != outcomes.truth[-40:]
    said = first.outcomes(run)
    assert f"{wrong.sum()} of the last 40 outcomes wrong" in said
    assert said.count('<i class="wrong">') == wrong.sum()
    assert "labels 40 answers late" in said
    rows = words.outcomes(run, "abers")
    assert rows.count("<tr>") == 21
    assert rows.count('class="wrong"') == wrong[-20:].sum()


def test_alarms_in_one_line_each(tmp_path):
    write_state(tmp_path / "run.db", "changed")
    run = fed(tmp_path / "run.db").run
    said = memory.card(run)
    assert said.count("<li>") == 1, "one change, one line"
    (one,) = run.episodes
    assert one.alarms >= sum(map(len, run.alarms.values()))
    assert f"Changes: 1, {one.alarms:,} alarms" in said
    assert f"since {words.moment(one.first, 16)}: it lasts" in said
    newest = max(alarm["step"] for rung in run.alarms.values() for alarm in rung)
    assert f"more until step {newest:,}" in memory.changes(run)
    told = memory.changes(run)
    assert run.by_episode[0] == []
    found = grouped(run.by_episode[1])
    assert told.count("<li>") == len(found) < 20
    assert sum(one.count for one in found) == sum(map(len, run.alarms.values())) > 30
    write_state(tmp_path / "calm.db", "as claimed")
    assert "Changes: none" in memory.card(fed(tmp_path / "calm.db").run)


def test_the_first_screen_says_each_thing_once(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "run.db"
    machine = LeastSquaresSVM(RBF(0.5), C=10, classes=CLASSES[:2])
    watched = {"conformal": Monitor(CLASSES[:2]), "floor": FloorWatch(0.8), "classes": ClassDrift(CLASSES[:2])}
    with Online(Panel(conformal=Conformal(machine), abers=TransductiveVennAbers(machine)), watched, path) as online:
        for step in range(330):
            x = rng.normal(size=2)
            online.ask(x, id=step)
            online.answer(step, CLASSES[int((x[0] > 0) ^ (step >= 150))])
    run = fed(path).run
    assert run.verdict.state == "below the floor"
    assert "; objects of class" in run.verdict.details
    for once in ("below the floor, accuracy of at least", "objects of class"):
        assert len(re.findall(once, first.head(fed(path)), flags=re.IGNORECASE)) == 1, once


def test_a_rate_of_few_answers_is_that_of_the_latest():
    made = Scripted()
    made.answered, made.time = 5, math.inf  # an event of just now, whenever that is
    run = FollowedRun(made)
    run.counts.rate = 0.2
    for answers, rate in ((1, 0.2), (16, 2.0)):  # of the last eight seconds
        run._times.clear()
        run._times.extend([(100.0, 0), (108.0, answers)])
        assert run.rate == pytest.approx(rate)


# --------------------------------------------------------------------- the command


@pytest.fixture
def command(tmp_path):
    return lambda *arguments: CliRunner().invoke(cli.main, ["monitor", *map(str, arguments)])


def test_options_that_do_not_go_together(command, tmp_path):
    write(tmp_path / "run.db", 5)
    for arguments, said in (
        ((tmp_path / "run.db", "--serve", "--C", "1"), "--C does not go with a journal"),
        ((tmp_path / "run.db", "--shuffle", "1"), "--shuffle does not go with a journal"),
        (("car", "--port", "1234"), "--port needs --serve"),
        (("car", "--serve", "--C", "1"), "--C does not go with --serve, which shows a journal"),
        ((tmp_path / "run.db", "--port", "1234"), "--port needs --serve"),
        ((tmp_path / "run.db", "--serve", "--once"), "--once does not go with --serve"),
        ((tmp_path / "run.db", "--serve", "--json"), "--json does not go with --serve"),
        ((tmp_path / "run.db", "--serve", "--port", "70000"), "70000"),
    ):
        result = command(*arguments)
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.output.split())


def test_what_is_there_is_said_before_which_option_it_lacks(command, tmp_path):
    (tmp_path / "empty.db").touch()
    (tmp_path / "table.csv").write_text("x,y\n1,a\n")
    for name, said in (
        ("none.db", "none.db must be a journal, and there is no such file"),
        ("empty.db", "empty.db must be a journal, and is empty: no run has begun in it"),
        ("table.csv", "--once belongs to a journal"),
    ):
        assert said in " ".join(command(tmp_path / name, "--once").output.split())


def test_a_journal_without_figures_says_what_it_holds(command, tmp_path):
    """As a salvaged one, until its run goes on."""
    write(tmp_path / "run.db", 30)
    with closing(sqlite3.connect(tmp_path / "run.db")) as db, db:
        db.execute("DELETE FROM latest")
    result = well(command(tmp_path / "run.db", "--once"))
    assert "34 questions and 30 answers; no figures yet: venn run writes them as it goes on" in result.output


def test_the_figures_of_a_journal_as_json(command, tmp_path):
    made = write(tmp_path / "run.db", 30)
    result = well(command(tmp_path / "run.db", "--json"))
    assert json.loads(result.output) == {name: one.snapshot() for name, one in made.told.items()} | {"episodes": []}


def test_damaged_journals_and_taken_ports_are_one_line(command, tmp_path):
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0 and damage" * 40)
    result = command(tmp_path / "bad.db")
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = command(tmp_path / "bad.db", "--serve", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 is taken by another program: give another" in result.output


@pytest.mark.parametrize("how", ["until its run has ended", "until ctrl-c"])
def test_in_a_pipe_a_journal_is_followed(how, tmp_path):
    made = write(tmp_path / "run.db", 60, "venn", flip=20)
    assert made.told["venn"].count > 0
    program = [sys.executable, "-u", "-m", "venn", "monitor", "run.db"]
    owner = None if how == "until its run has ended" else files.take(tmp_path / "run.db-lock")
    try:
        with subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            if how == "until ctrl-c":
                process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
    finally:
        if owner is not None:
            files.release(owner)
    assert process.returncode == 0
    assert first.startswith("alarm (now changed): venn: At step ")
    *_, summary, last = rest.splitlines()
    assert summary.startswith("venn: Do not rely on it since step 21: ")
    assert last.startswith("verdict: venn: Do not rely on it since step 21: ")


def test_of_sets_an_outcome_shows_the_set_and_no_label_alone(tmp_path):
    write(tmp_path / "run.db", 60, "conformal")
    run = fed(tmp_path / "run.db").run
    judged = [(one, one.predictions["conformal"].set(0.05)) for one in run.outcomes[: first.OUTCOMES]]
    missed = sum(one.y not in members for one, members in judged)
    assert any(one.predictions["conformal"].label != one.y and one.y in members for one, members in judged), "not wrong"
    said = first.outcomes(run)
    assert f"{missed} of the last {len(judged)} sets missed the label" in said
    for told in (said, words.outcomes(run, "conformal"), words.latest(run, "conformal")):
        assert "<th>set at 0.05</th>" in told
        assert "<th>in it?</th>" in told
        assert not {"<th>label</th>", "<th>predicted</th>", ">right<", ">wrong<"} & set(
            re.findall(r"<th>\w+</th>|>\w+<", told)
        )
    _, members = judged[0]
    shown = ", ".join(words.label(label, 24) for label in members)
    assert f"<td>{{{shown}}}</td>" in said


@pytest.mark.parametrize(
    ("given", "claim", "x", "width"),
    [
        (("right", 0.9, 0.5, 0.75, 50, 100, True), ".50 to .75", "50.00", "25.00"),
        (("right", 0.9, 0.0, 0.75, 50, 100, True), ".00 to .75", "0.00", "75.00"),
        (("right", 0.9, 1.0, 1.0, 50, 100, True), "1.00", "99.00", "1.00"),
        (("wrong", 0.5, 0.0, 0.25, 50, 100, True), "at most .25", "0.00", "40.00"),
        (("wrong", 0.5, 0.25, 0.5, 50, 100, True), ".25 to .50", "40.00", "40.00"),
    ],
)
def test_the_claim_is_a_band_where_it_stands(given, claim, x, width):
    found = first.Recent(*given)
    assert first.numbers(found)[1] == claim
    assert f'class="claim" x="{x}" y="1" width="{width}"' in first.bar(found, False)
