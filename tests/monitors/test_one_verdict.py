"""A run has one verdict: whoever is asked, the object, the journal, the page, a command or a metric, says the same."""

import json
from contextlib import suppress
from dataclasses import replace
from math import log

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import venn
from venn import cli
from venn.monitors.verdict import LONGEST, STATES, Verdict
from venn.online.watch import Watch
from venn.show import metrics
from venn.show.page import first, memory, words
from venn.show.page.feed import Feed, FollowedRun
from venn.show.page.page import render
from venn.show.view import counting

CLASSES = ("no", "yes")
RANKED = venn.monitors.AmongAll(size=100)
FLIP, N = 250, 420


@pytest.fixture(scope="module")
def scorer():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 1))
    return LogisticRegression().fit(X, np.where(X[:, 0] + 0.8 * rng.standard_normal(300) > 0, "yes", "no"))


@pytest.fixture(scope="module", params=["its own monitors", "given ones", "objects beside"])
def run(request, tmp_path_factory, scorer):
    """Return a forecaster in service whose labels are the other ones after a while, and its journal."""
    path = tmp_path_factory.mktemp("run") / "run.db"

    def begun():
        watching = None if request.param == "its own monitors" else {"objects": venn.monitors.Drift(RANKED, first=0)}
        if request.param == "given ones":
            watching = venn.monitors.together(["intervals", "sets"], CLASSES, level=0.02)
        return venn.Online(venn.Forecaster(scorer=scorer), watching, path, watch=False)

    online, rng, alarms = begun(), np.random.default_rng(1), []
    for n in range(N):
        if n == 333:  # the run goes on in another process
            online.close()
            online = begun()
        x = rng.standard_normal(1)
        y = x[0] + 0.8 * rng.standard_normal() > 0
        online.ask(x)
        alarms += online.answer(online.asked, CLASSES[int(y ^ (n >= FLIP))])
    online.close()
    return online, path, alarms


def test_all_doors_say_the_same_of_a_forecaster(run):
    online, path, _ = run
    verdict = online.verdict()
    assert verdict.state == "changed"
    assert abs(verdict.since - FLIP) < 20
    assert replace(online.panel.verdict(), at=verdict.at, heard=verdict.heard) == verdict, (
        "but the model knows no times and ids"
    )
    said = [verdict]
    with Watch(path) as watch:
        said.append(watch.verdict())
        read = FollowedRun(watch)
        said.append(read.verdict)
        assert words.placed(str(verdict), memory.named(read, verdict)) in render(read, "title", "data")
        unheard = replace(verdict, heard="")  # as where the run no longer knows that question
        assert "after step" not in words.placed(str(unheard), memory.named(read, unheard))
        assert memory.named(read, unheard).keys() - memory.named(read, verdict).keys() == {f"after step {verdict.anew}"}
        told = {labels for metric, labels, value in metrics.samples(watch) if metric is metrics.VERDICT and value}
    assert said == [verdict] * len(said)
    states = {name: one.state for name, one in online.verdicts().items()}
    assert told == set(states.items())
    assert max(states.values(), key=STATES.index) == verdict.state
    assert {name: one.state for name, one in counting(read.snapshots | read.drifts).items()} == states
    feed = Feed(lambda: Watch(path), path)
    feed.look()
    found = first.status(feed)
    assert (found.state, found.sentence) == (verdict.state, str(verdict))
    head = first.head(feed)
    assert words.placed(str(verdict), memory.named(feed.run, verdict)) in head
    assert "after step" not in head, "by the clock: when the label came after which it began anew"
    assert f"(question {feed.run.answers[verdict.anew].asked:,})" in head
    assert verdict.advice
    assert verdict.advice in head, "also where the sentence had no room for it"
    assert "no predictor has a monitor" not in first.head(feed)
    feed.close()
    runner = CliRunner()
    for command in (["monitor", str(path), "--once"], ["report", str(path), "--out", str(path.parent / "r.html")]):
        assert runner.invoke(cli.main, command).output.splitlines()[-1] == f"verdict: {verdict}"
    shown = json.loads(runner.invoke(cli.main, ["monitor", str(path), "--json"]).output)
    assert shown[verdict.predictor]["verdict"] == {**verdict.plain(), "predictor": ""}


def test_every_alarm_of_a_forecaster_is_handed_out_and_kept(run):
    online, path, alarms = run
    assert {one.detector for one in alarms} >= {"Ville"}
    assert all(alarm.log_evidence > log(100) for alarm in alarms)
    with Watch(path) as watch:
        kept = {name: watch.alarms(name, 1000) for name in watch.monitors}
        counted = {name: watch.snapshot(name)["monitor"]["alarms"]["count"] for name in watch.monitors}
    assert {name: len(of) for name, of in kept.items()} == counted
    assert sum(counted.values()) == len(alarms) == sum(one.count for one in online.monitors.values())


def test_alarms_are_numbered_on_where_a_model_puts_new_monitors_in_the_place_of_old_ones(tmp_path, scorer, monkeypatch):
    learn = venn.Forecaster.learn_one

    def learn_and_begin_anew(self, x, y, prepared=None):
        before = sum(one.count for one in self.monitors.values())
        learn(self, x, y, prepared)
        if sum(one.count for one in self.monitors.values()) > before:
            self.watch()

    monkeypatch.setattr(venn.Forecaster, "learn_one", learn_and_begin_anew)
    path, alarms = tmp_path / "run.db", []
    with venn.Online(venn.Forecaster(scorer=scorer, on_change="keep"), journal=path) as online:
        for n in range(300):
            online.ask([2.0])
            rung = online.answer(online.asked, "no" if n > 30 else "yes")
            assert tuple(alarm for _, alarm in online.rung) == rung
            alarms += rung
    assert len(alarms) > 2
    with Watch(path) as watch:
        assert sum(len(watch.alarms(name, 1000)) for name in watch.monitors) == len(alarms)


def test_what_a_forecaster_learned_before_shifts_no_time_of_the_run(tmp_path, scorer):
    rng, path = np.random.default_rng(1), tmp_path / "run.db"
    X = rng.standard_normal((500, 1))
    y = np.where(X[:, 0] + 0.8 * rng.standard_normal(500) > 0, "yes", "no")
    model = venn.Forecaster(scorer=scorer)
    for x, label in zip(X[:300], y[:300], strict=True):
        model.learn_one(x, label)
    with venn.Online(model, journal=path) as online:
        for x, label in zip(X[300:], y[300:], strict=True):
            online.ask(x)
            online.answer(online.asked, "no" if label == "yes" else "yes")
    with Watch(path) as watch:
        read = FollowedRun(watch)
        assert read.verdict.state == "changed"
        assert read.since == watch.asked_at(read.verdict.since - 300) is not None


@pytest.mark.parametrize("how", ["closed", "left", "an error"])
def test_a_run_that_is_closed_has_ended_and_one_stopped_by_an_error_has_not(how, tmp_path, scorer):
    path = tmp_path / "run.db"
    online = venn.Online(venn.Forecaster(scorer=scorer), journal=path)
    online.ask([0.0], id="a")
    with Watch(path) as watch:
        assert watch.ended() is None
        if how == "closed":
            online.close()
        else:
            with suppress(ZeroDivisionError), online:
                assert how == "left" or 1 / 0
        assert (watch.ended() is None) == (how == "an error")
        feed = Feed(lambda: Watch(path), path)
        feed.look()
        assert (first.status(feed).state == first.ENDED) == (how != "an error")
        feed.close()
        with venn.Online(venn.Forecaster(scorer=scorer), journal=path) as again:
            assert again.pending == ("a",)
            assert watch.ended() is None, "it goes on"


def test_a_change_that_the_kept_promise_does_not_show_is_told_as_such():
    kept, broken = ("wrong", 0.05, 0.0, 0.05, 601), ("wrong", 0.3, 0.05, 0.05, 601)
    told = {
        (0, kept): "Do not rely on it since step 700, although wrong in .05 of the last 601, as claimed.",
        (777, kept): "Rely on it only after step 777, where it began anew. "
        "Changed since step 700, although wrong in .05 of 601, as claimed.",
        (0, broken): "Do not rely on it since step 700: wrong in .30 of the last 601, claimed .05.",
    }
    for (anew, lately), sentence in told.items():
        verdict = Verdict("changed", 700, None, "p-values", "Ville", "changed", anew=anew or None, lately=lately)
        assert str(verdict) == sentence
        assert len(sentence.split()) < LONGEST
