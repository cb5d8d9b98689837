"""The page of a run: what it reads and draws, in headless Chromium, while its run goes on, dies and comes back."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from itertools import pairwise
from math import isnan, nan
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from page_cases import CLASSES, HOSTILE, write, write_state

from venn import cli
from venn.labels import Classes
from venn.machines import RBF, KernelRidge
from venn.online import Online, lock
from venn.online.watch import Watch
from venn.predictors import ConformalIntervals
from venn.show.page import columns, feed, first, words
from venn.show.page.feed import Feed, Run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000  # milliseconds, for a machine with much else to do

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

    def series(self, points=1000, after=0):
        return [SimpleNamespace(step=s, time=0.0, figures=curves(s)) for s in self.steps if s > after]

    def snapshot(self, name):
        told = curves(self.answered)["one"] | {
            "step": self.answered,
            "guaranteed": "nothing",
            "predictions": "Forecast",
        }
        return {"told": told, "monitor": None} if self.answered else None

    def alarms(self, name, last=100):
        return []

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
    run = Run(made)
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
    run = Run(made)
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
    run = Run(made)
    assert run.once(columns.accuracy, "one") is run.once(columns.accuracy, "one")
    made.steps, made.answered = [1, 2, 3], 3
    run.read(made)
    assert run.once(columns.accuracy, "one")["step"] == [1, 2, 3]


def test_silence_is_measured_by_the_usual_gap():
    made = Scripted()
    made.answered, made.time = 5, 1000.0
    run = Run(made)
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
        run = Run(watch)
    hits = [one["venn"].label == y for one, y in zip(made.said, made.truths, strict=True)]
    found = columns.accuracy(run, "venn")
    assert found["step"] == [8, 16, 24, 32, 40]
    assert found["accuracy"] == pytest.approx([sum(hits[:n]) / n for n in found["step"]])
    sets = columns.accuracy(run, "conformal")
    assert all(isnan(value) for value in sets["lower"] + sets["upper"])
    assert columns.levels(run.snapshots["conformal"]) == ["0.01", "0.05", "0.1", "0.2"]
    assert columns.levels(run.snapshots["venn"]) == []
    sizes = columns.sets(run, "conformal")["size_0.2"]
    assert sizes[-1] == pytest.approx(sum(len(one["conformal"].set(0.2)) for one in made.said) / 40)
    bins = columns.reliability(run.snapshots["platt"])
    assert sum(bins["count"]) == 40
    assert columns.compared(run)["0"] == found["accuracy"]
    keys = [one.key for one in columns.detectors(run.snapshots["abers"])]
    assert len(keys) == 2 * len(CLASSES)
    assert set(columns.evidence(run, "abers")) == {"step", *keys}


def test_ranges_leave_out_the_start_and_what_is_not_known():
    assert columns.span([1, 10, 100], [[1.0, 0.5, 0.7], [nan, nan, nan]], (0.0, 1.0)) == pytest.approx((0.484, 0.716))
    assert columns.span([1], [[nan]], (0.0, 1.0)) == (0.0, 1.0)
    assert columns.span([], [], (0.0, 1.0)) == (0.0, 1.0)
    assert columns.span([5], [[1.0]], (0.0, 1.0)) == pytest.approx((0.995, 1.0))


def test_a_run_of_numbers_is_told_in_words_of_numbers(tmp_path):
    rng = np.random.default_rng(0)
    online = Online(ConformalIntervals(KernelRidge(RBF(0.5), 2.0)), journal=tmp_path / "run.db")
    with online:
        for number in range(30):
            online.ask(rng.normal(size=2), id=number)
            online.answer(number, 83.0)
    with Watch(tmp_path / "run.db") as watch:
        run = Run(watch)
    (name,) = run.names
    assert columns.right(run) == "inside at 0.05"
    assert "abs. error" in words.numbers(run, name)
    assert "accuracy" not in words.numbers(run, name) + words.summary(run)
    assert "<th>lower</th>" not in words.summary(run)
    assert "<td>83</td>" in words.outcomes(run, name)
    assert "<td>83</td>" in words.latest(run, name)
    assert "<td>83</td>" in first.outcomes(run)


def test_words_escape_what_a_run_says(tmp_path):
    write(tmp_path / "run.db", 60, flip=20)
    with Watch(tmp_path / "run.db") as watch:
        run = Run(watch)
    for name in run.names:
        said = words.latest(run, name) + words.alarms(run) + words.promise(run, name) + words.parameters(run)
        said += words.outcomes(run, name) + first.outcomes(run) + first.lately(run) + first.alarms(run)
        assert "<img" not in said
        assert "&lt;img" in said
    assert "(&lt;b&gt;)" in words.parameters(run)


def test_words_say_what_is_guaranteed_and_what_came_of_it(tmp_path):
    made = write(tmp_path / "run.db", 120, flip=60)
    with Watch(tmp_path / "run.db") as watch:
        run = Run(watch)
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
    assert f">{count} alarm" in words.alarms(run)
    assert words.alarms(run).count("<li>") == min(count, 20)
    theorems = [one.partition("</li>")[0] for one in words.alarms(run).split("Theorem")[1:]]
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


STATES = ("as claimed", "too early to say", "changed", "doubtful", "silent")


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
        said, sentence = first.lately(run), run.verdict.sentence
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
    said = first.alarms(run)
    assert said.count("<li>") == first.ALARMS
    newest = max(alarm["step"] for rung in run.alarms.values() for alarm in rung)
    assert f"at {newest:,}, evidence 10<sup>" in said
    write_state(tmp_path / "calm.db", "as claimed")
    assert "Alarms: none" in first.alarms(fed(tmp_path / "calm.db").run)


def test_a_rate_of_few_answers_is_that_of_the_latest():
    made = Scripted()
    made.answered, made.time = 5, time.time()
    run = Run(made)
    run.counts.rate = 0.2
    for answers, rate in ((1, 0.2), (16, 2.0)):  # of the last eight seconds
        now = time.monotonic()
        run._times.clear()
        run._times.extend([(now - 8, 0), (now, answers)])
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
        (("car", "--port", "1234"), "--port belongs to --serve"),
        ((tmp_path / "run.db", "--serve", "--port", "70000"), "70000"),
    ):
        result = command(*arguments)
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.output.split())


def test_the_figures_of_a_journal_as_json(command, tmp_path):
    made = write(tmp_path / "run.db", 30)
    result = command(tmp_path / "run.db", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == {name: monitor.snapshot() for name, monitor in made.told.items()}


def test_damaged_journals_and_taken_ports_are_one_line(command, tmp_path):
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0 and damage" * 40)
    result = command(tmp_path / "bad.db")
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = command(tmp_path / "bad.db", "--serve", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 is taken by another program: give another" in result.output


def test_without_bokeh_one_line_says_what_to_install(command, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "venn.show.page.server", raising=False)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    monkeypatch.setitem(sys.modules, "bokeh.application", None)
    result = command(tmp_path / "run.db", "--serve")
    assert result.exit_code == 1
    assert result.output.strip() == "Error: the page needs bokeh: pip install bokeh"


@pytest.mark.parametrize("how", ["until its run has ended", "once", "until ctrl-c"])
def test_in_a_pipe_a_journal_is_followed(how, tmp_path):
    made = write(tmp_path / "run.db", 60, "venn", flip=20)
    assert made.told["venn"].count > 0
    program = [sys.executable, "-u", "-m", "venn", "monitor", "run.db", *(["--once"] if how == "once" else [])]
    owner = None if how == "until its run has ended" else lock.take(tmp_path / "run.db-lock")
    try:
        with subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            if how == "until ctrl-c":
                process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
    finally:
        if owner is not None:
            lock.release(owner)
    assert process.returncode == 0
    assert first.startswith("venn: At step ")
    *_, summary, last = rest.splitlines()
    assert summary.startswith("venn: changed since about 21")
    assert last.startswith("verdict: venn: changed since about 21")


# ------------------------------------------------------------------- in the browser


def test_until_the_page_is_drawn_its_head_says_that_it_loads(browser, served):
    viewer = Viewer(browser, served.url)
    viewer.waits_for("is not there yet")
    said = """of => getComputedStyle(document.querySelector(`header > div [data-root-id]${of}`), "::before").content"""
    assert viewer.page.evaluate(said, "") == "none"
    viewer.page.evaluate("document.querySelector('header [data-root-id]').after("
                         "document.querySelector('header [data-root-id]').cloneNode(false))")  # fmt: skip
    assert viewer.page.evaluate(said, ":empty") == '"loading …"'
    viewer.page.close()


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield started
        started.close()


@pytest.fixture
def served(tmp_path):
    """The address of a page of a journal that is not there yet, and the journal."""
    from venn.show.page.server import serve

    path, ready, stop = tmp_path / "run.db", threading.Event(), threading.Event()
    address = []

    def started(host, port):
        address.append(f"http://{host}:{port}")
        ready.set()

    watched = Feed(lambda: Watch(path), path)
    thread = threading.Thread(target=serve, args=(watched, "127.0.0.1", 0, started, stop))
    thread.start()
    assert ready.wait(30)
    yield SimpleNamespace(url=address[0], path=path)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


LAST = (
    "Math.max(0, ...Bokeh.documents.flatMap(d => [...d._all_models.values()])"
    ".filter(m => m.data && m.data.step && m.data.accuracy).map(m => Number(m.data.step.at(-1) ?? 0)))"
)


CORNER = """
const figure = [...Bokeh.index.query(view => view.model.type === "Figure")][0];
const corner = [...figure.canvas_view.primary.canvas.getContext("2d").getImageData(3, 3, 1, 1).data];
"""


class Viewer:
    """A page in the browser, what it complained of and whom it asked."""

    def __init__(self, browser, url, **options):
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(PATIENCE)
        self.complaints, self.asked = [], []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url))
        self.page.goto(url)

    def waits_for(self, text):
        self.page.get_by_text(text).first.wait_for()

    def number(self, of):
        return int(self.page.locator(f"dt:text-is('{of}') + dd").first.inner_text().replace(",", ""))

    def reaches(self, answered):
        deadline = time.monotonic() + PATIENCE / 1000
        while self.number("answered") < answered:
            assert time.monotonic() < deadline, f"{self.number('answered')} answers, {answered} wanted"
            self.page.wait_for_timeout(50)

    def drawn(self):
        """Return the last step of the curves that the browser holds."""
        return self.page.evaluate(LAST)

    def is_clean(self, url):
        __tracebackhide__ = True
        assert self.complaints == []
        strange = [to for to in self.asked if not to.startswith((url, url.replace("http", "ws"), "data:", "blob:"))]
        assert strange == []


def test_it_waits_comes_changes_with_the_journal_and_fits(browser, served):
    viewer = Viewer(browser, served.url, viewport={"width": 1400, "height": 900}, color_scheme="dark")
    viewer.waits_for("not there yet")
    write(served.path, 96, flip=48)
    viewer.waits_for("silent: no event for")  # beside the change
    assert [viewer.number(of) for of in ("asked", "answered", "pending", "expired")] == [100, 96, 3, 1]
    viewer.page.locator("canvas").first.wait_for()
    viewer.waits_for("the probabilities in the row of the true label")
    viewer.page.locator("select").select_option("conformal")
    viewer.waits_for("misses the true label with exactly that probability")
    viewer.waits_for("errors at 0.05")
    viewer.waits_for(f"{HOSTILE}96")  # as text
    assert viewer.page.evaluate("window.hacked") is None
    assert viewer.drawn() == 96

    served.path.unlink()
    write(served.path, 16, "platt", created=1_800_000_000.0)
    viewer.waits_for("Nothing is guaranteed")
    viewer.reaches(16)
    assert not viewer.page.locator("select").is_visible()

    # It fits, and has the theme of the system until it is told otherwise.
    for width in (1400, 420):
        viewer.page.set_viewport_size({"width": width, "height": 900})
        viewer.page.wait_for_function(f"document.documentElement.scrollWidth <= {width}")

    def paper():
        return viewer.page.evaluate("getComputedStyle(document.body).backgroundColor")

    def canvas(colour):
        viewer.page.wait_for_function(f"() => {{ {CORNER} return corner.join() === '{colour}'; }}")

    light, dark = "rgb(244, 245, 247)", "rgb(15, 18, 22)"
    assert paper() == dark
    canvas("24,28,34,255")
    viewer.page.emulate_media(color_scheme="light")
    assert paper() == light
    canvas("255,255,255,255")
    viewer.page.locator("#theme").click()
    assert paper() == dark
    canvas("24,28,34,255")
    viewer.page.reload()
    assert paper() == dark, "remembered"
    viewer.is_clean(served.url)


FILLS = {
    "as claimed": (12, 107, 77), "too early to say": (76, 92, 112), "changed": (179, 38, 30),
    "doubtful": (240, 176, 63), "silent": (43, 48, 56),
}  # fmt: skip


def seen(viewer, selector):
    """Return the colour of the ground of an element, and its box; it may just be replaced by a newer one."""
    of = viewer.page.locator(selector).first
    for _ in range(20):
        colour, box = of.evaluate("of => getComputedStyle(of).backgroundColor"), of.bounding_box()
        if colour and box is not None:
            return tuple(map(float, colour[colour.index("(") + 1 : -1].split(","))), box
    raise AssertionError(f"no {selector} to be seen")


@pytest.mark.parametrize("state", STATES)
def test_the_first_screen_says_which_state_it_is(state, browser, served):
    write_state(served.path, state)
    viewer = Viewer(browser, served.url, viewport={"width": 400, "height": 800})
    for width, height, theme in ((1400, 900, "dark"), (400, 800, "light")):
        viewer.page.set_viewport_size({"width": width, "height": height})
        viewer.page.emulate_media(color_scheme=theme)
        card = viewer.page.locator(f".status.{state.replace(' ', '-')}")
        card.wait_for()
        assert viewer.page.locator(".status").count() == 1
        colour, _ = seen(viewer, ".status")
        assert colour == FILLS[state]
        assert (colour[1] > max(colour[0], colour[2]) + 20) == (state == "as claimed"), "nothing else is green"
        # Verdict, shape, recent accuracy, alarms and outcomes: all on the first screen.
        assert card.locator(".title").inner_text().lower() == state
        for part in (".title", ".means", "p:last-child", "svg.shape"):
            inside(seen(viewer, f".status {part}")[1], width, height)
        for part in (".lately .pair", ".lately svg.bar", ".rung", ".outcomes .strip"):
            inside(seen(viewer, part)[1], width, height)
        assert viewer.page.evaluate("document.documentElement.scrollWidth") <= width
    assert viewer.page.title() == f"{state} · run.db"
    if state == "silent":
        assert "no event for 20 min" in viewer.page.locator(".status .since").inner_text()
        green = viewer.page.locator(".mini.as-claimed").first.evaluate("of => getComputedStyle(of).color")
        assert green == "rgb(93, 101, 112)", "not green in the table either"
    if state == "as claimed":  # the server goes: nothing stays green
        viewer.page.evaluate("document.documentElement.dataset.lost = ''")
        assert seen(viewer, ".status")[0] == (93, 101, 112)
    viewer.is_clean(served.url)
    viewer.page.close()


def inside(box, width, height):
    __tracebackhide__ = True
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["width"] > 0 < box["height"]
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= height


RUN = """
import sys, time, streams, venn
stream = streams.load("car", shuffle=0)
machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=stream.classes)
panel = venn.Panel(conformal=venn.Conformal(machine))
from venn.online.loop import Online
with Online(panel, {"conformal": venn.Monitor(stream.classes)}, sys.argv[1]) as online:
    for step, (x, y) in enumerate(stream, 1):
        if step > online.asked:
            online.ask(x)
        if step in online.pending:
            online.answer(step, y)
        time.sleep(0.02)
"""


def test_two_viewers_follow_a_run_over_its_death(browser, served):
    program = [sys.executable, "-c", RUN, str(served.path)]
    process = subprocess.Popen(program)  # slower to come than the viewers
    try:
        first, second = (Viewer(browser, served.url, viewport={"width": 420, "height": 600}) for _ in range(2))
        for viewer in (first, second):
            viewer.reaches(20)
        first.waits_for("last event")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        with Watch(served.path) as watch:
            dead = watch.counts().answered
        first.reaches(dead)
        assert first.number("answered") == dead
        process = subprocess.Popen(program)
        for viewer in (first, second):
            viewer.reaches(dead + 20)
            viewer.page.wait_for_function(f"() => {LAST} > {dead}")
    finally:
        process.kill()
        process.wait(30)
    for viewer in (first, second):
        viewer.is_clean(served.url)


def handshake(url, origin):
    """Return the status of the answer to a browser that would open the page's socket from another origin."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.status == 200
    port = int(url.rsplit(":", 1)[1])
    lines = [
        "GET /ws HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", f"Origin: {origin}",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(1000).split()[1])


def test_pages_of_other_origins_are_refused(served):
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    port = served.url.rsplit(":", 1)[1]
    for origin in (
        "http://example.com", f"http://example.com:{port}", "http://localhost", f"http://localhost:{int(port) + 1}",
        "http://127.0.0.1:80", "null", f"http://127.0.0.1.example.com:{port}",
    ):  # fmt: skip
        assert handshake(served.url, origin) == 403, origin
    for host in ("localhost", "127.0.0.1"):
        assert handshake(served.url, f"http://{host}:{port}") != 403


def test_it_listens_at_the_loopback_only(served):
    port = int(served.url.rsplit(":", 1)[1])
    others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                socket.create_connection((address, port), timeout=2).close()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{served.url}/none", timeout=10)
