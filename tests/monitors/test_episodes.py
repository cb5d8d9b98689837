"""Episodes: one change is one object, dated right, told of once, and there again after a kill."""

import json
import logging
import pickle
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from naive import change as naive
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

import venn
from venn import cli
from venn.monitors import Alarm, AmongAll, ClassDrift, Drift, Moment, Scenario, Watching, bench
from venn.monitors.change_point import ChangePoint, change_of_counts
from venn.monitors.episodes import Episode, episodes_of
from venn.monitors.naming import Ties
from venn.monitors.watching import Case
from venn.online import checkpoint
from venn.online.watch import Watch
from venn.prediction import Forecast, PredictionSet
from venn.saved import component, restored_int, state
from venn.show.metrics import exposition
from venn.show.notify import EpisodeNews
from venn.show.page import words
from venn.show.page.feed import FollowedRun
from venn.show.page.page import render

CLASSES = ("no", "yes")
NEAR = 30


class Sets(venn.predictors.Predictor):
    """Ranks each label among all so far, as strange as its class is unlikely by the sign of x: valid online."""

    classes = CLASSES

    def __init__(self, rng):
        self.misses, self.seen, self.rng = 0, 0, rng

    def predict_one(self, x):
        usual, tau = int(x[0] > 0), self.rng.random()
        ps = np.empty(2)
        ps[1 - usual] = (self.misses + 1) * tau / (self.seen + 1)
        ps[usual] = (self.misses + (self.seen - self.misses + 1) * tau) / (self.seen + 1)
        return PredictionSet(ps, CLASSES)

    def commit(self, x, y, prepared=None):
        self.misses += CLASSES.index(y) != int(x[0] > 0)
        self.seen += 1


def forgetting(monitor, steps, rng):
    """Let a monitor watch a predictor that begins anew when the monitor rings, as a forecaster does."""
    model = Sets(rng)
    for x, y in steps:
        rung = monitor.update(model.predict_one(x), y)
        model.commit(x, y)
        if rung:
            model = Sets(rng)
            monitor.begin_anew()


def flipped(rng, rows, *at):
    """Yield examples of which a few are unusual; from each of these rows on the labels are the other ones."""
    turned = False
    for row in range(rows):
        turned ^= row in at
        x = rng.normal(size=2)
        yield x, CLASSES[int((x[0] > 0) ^ turned ^ (rng.random() < 0.03))]


# ------------------------------------------------------------------------------ dates


@pytest.mark.parametrize("at", [(300,), (300, 600), (300, 500, 700)])
def test_a_later_change_has_its_own_date(at):
    """Also of `cases/38`: after a predictor began anew, older cases cannot take a change up. Dates in 9 of 10 runs."""
    right = 0
    for seed in range(10):
        monitor, rng = venn.Monitor(CLASSES), np.random.default_rng(seed)
        forgetting(monitor, flipped(rng, at[-1] + 100, *at), rng)
        found = [one.first.number - 1 for one in episodes_of({"sets": monitor})]
        right += len(found) == len(at) and all(abs(a - b) <= NEAR for a, b in zip(found, at, strict=True))
    assert right >= 9


@pytest.mark.parametrize("seed", range(5))
def test_where_shares_have_changed_is_the_naive_estimate(seed):
    rng = np.random.default_rng(seed)
    codes = [*rng.integers(3, size=rng.integers(1, 12)).tolist(), *[seed % 3] * int(rng.integers(0, 9))]
    found, ratios = change_of_counts(codes, 3, 40 + len(codes)), naive.counted_ratios(codes, 3)
    best = max(range(len(ratios)), key=ratios.__getitem__)
    assert ratios[found.step - 41] == ratios[best]
    inside = sum(ratios[found.lower - 41 : found.upper - 40])
    assert inside / sum(ratios) >= 0.95 - 1e-9
    assert found.earlier == (found.lower == 41)


def test_objects_that_go_and_come_back_are_two_changes():
    """What watches them begins anew once the new state has lasted; of columns and classes alike."""
    right = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        watchers = {
            "objects": Drift(AmongAll(size=5000), first=30, columns=["a", "b"]),
            "classes": ClassDrift(CLASSES, AmongAll(size=5000), first=30),
        }
        for row in range(850):
            x = rng.normal(size=2)
            y = CLASSES[int(x[0] > 0)]
            x[1] += 20 * (300 <= row < 650)
            watchers["objects"].update(x)
            watchers["classes"].update(x, y)
        found = episodes_of(watchers)
        right += all(abs(one.first.number - 1 - at) <= NEAR for one, at in zip(found, (300, 650), strict=False))
        if seed == 0:
            assert [one.columns for one in found] == [("b",), ("b",)]
            assert {one.watchers for one in found} == {("objects", "classes")}
            assert not any(one.claims for one in found)
    assert right >= 5


def test_what_follows_a_change_soon_goes_with_it():
    """A column that drifts on rings again and again: it is one change."""
    rng, drift = np.random.default_rng(1), Drift(columns=["a"])
    for row in range(900):
        drift.update([rng.normal() + max(0, row - 300) / 60])
    assert len(drift.cases) == 1
    assert drift.cases[0].alarms > 3


def test_it_is_over_only_after_a_calm_window_and_then_stays_over():
    """No flicker: what departs a little later is a doubt, and no change again, unless an alarm rings."""
    monitor, rng, states = venn.Monitor(CLASSES, window=300), np.random.default_rng(0), []
    for step in range(2500):
        y = "yes" if rng.random() < (0.2 if 500 <= step < 560 else 0.8) else "no"
        monitor.update(Forecast([0.2, 0.8], CLASSES), y)
        states.append(monitor.verdict().state == "changed")
    (case,) = monitor.cases
    assert case.ended - case.last >= 300
    assert states[case.first - 1 : case.ended - 1] == [True] * (case.ended - case.first)
    assert not any(states[case.ended - 1 :])


def test_false_episodes_are_as_rare_as_proved():
    """P(one ever in n steps) <= level + n / run_length; exact binomial test at .001; beginning anew adds no alarm."""
    level, run_length, n, streams = 0.1, 20_000, 250, 80
    rang = 0
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        drift = Drift(level=level, run_length=run_length, columns=["a", "b"])
        for _ in range(n):
            drift.update(rng.normal(size=2))
        rang += bool(episodes_of({"objects": drift}))
    assert binom.sf(rang - 1, streams, level + n / run_length) > 1e-3


def test_a_broken_watcher_fails_that_test():
    rang = 0
    for seed in range(20):
        rng, drift = np.random.default_rng(seed), Drift(level=0.1, run_length=20_000, columns=["a", "b"])
        for row in range(250):
            drift.update(rng.normal(size=2) + 2 * (row > 150))
        rang += bool(episodes_of({"objects": drift}))
    assert binom.sf(rang - 1, 20, 0.1 + 250 / 20_000) < 1e-3


# ------------------------------------------------------------------------------ in service


def events(rows, at, seed=0):
    rng = np.random.default_rng(seed)
    X, turned = rng.normal(size=(rows, 2)), np.zeros(rows, bool)
    for one in at:
        turned[one:] ^= True
    y = (X[:, 0] + 0.5 * rng.normal(size=rows) > 0) ^ turned
    return X, [CLASSES[int(one)] for one in y]


@pytest.fixture(scope="module")
def scorer():
    X, y = events(300, (), 1)
    return LogisticRegression().fit(X, y)


def begun(scorer, path=None, **given):
    return venn.Online(venn.Forecaster(scorer=scorer), journal=path, **given)


def served(online, X, y, start=0, late=0):
    with online.transaction():
        for i in range(start, len(X)):
            online.ask(X[i], f"order-{i + 1}")
            if i >= late:
                online.answer(f"order-{i - late + 1}", y[i - late])


def test_five_episodes_make_five_calls_and_one_for_each_end(scorer):
    at = (250, 450, 650, 850, 1050)
    X, y = events(1250, at)
    calls = []
    online = begun(scorer, on_alarm=calls.append)
    served(online, X, y)
    found = online.episodes()
    assert [abs(one.first.number - 1 - true) <= NEAR for one, true in zip(found, at, strict=True)] == [True] * 5
    assert [(one.number, one.lasts) for one in calls if one.lasts and not one.kind] == [(n, True) for n in range(1, 6)]
    assert [one.number for one in calls if not one.lasts] == [1, 2, 3, 4]
    known = [one for one in calls if one.lasts and one.kind]  # its kind became known
    assert len(calls) - 9 == len(known) <= 5
    for one in calls:
        assert len(str(one).split()) <= 25
    assert found[0].first.id == f"order-{found[0].first.number}"
    assert abs(found[0].first.time - time.time()) < 3600
    assert found[0].done.startswith("it began anew after ")
    pytest.importorskip("pandas")
    assert list(found.frame()["number"]) == [1, 2, 3, 4, 5]


def test_labels_that_come_late_are_dated_by_their_question(scorer):
    X, y = events(560, (300,))
    online = begun(scorer, watch=False)
    served(online, X, y, late=100)
    (one,) = online.episodes()
    assert abs(one.first.number - 301) <= NEAR
    assert one.rang.number - one.first.number < 100
    assert online.verdict().at == one.first
    assert f"(question {one.first.id})" in str(online.verdict())


def test_episodes_are_there_again_after_a_kill_and_are_told_once(scorer, tmp_path):
    X, y = events(760, (250, 500))
    calls, whole = [], begun(scorer)
    served(whole, X, y)
    for stop in (300, 520, 760):
        online = begun(scorer, tmp_path / "run.db", on_alarm=calls.append)
        served(online, X[:stop], y, online.asked)
        online.journal.close()  # as if it were killed: nothing is written at its end
    wanted = [(one.first.number, one.rang.number, one.watchers, one.kind) for one in whole.episodes()]
    online = begun(scorer, tmp_path / "run.db", on_alarm=calls.append)
    assert [(one.first.number, one.rang.number, one.watchers, one.kind) for one in online.episodes()] == wanted
    assert [one.number for one in calls if not one.lasts] == [1]
    assert len([one for one in calls if one.lasts]) <= 4
    online.close()
    with Watch(tmp_path / "run.db") as watch:
        assert watch.episodes() == online.episodes()
        read = FollowedRun(watch)
        page = render(read, "title", "data")
        assert all(words.moment(one.first) in page for one in read.episodes)
    shown = json.loads(CliRunner().invoke(cli.main, ["monitor", str(tmp_path / "run.db"), "--json"]).output)
    assert [Episode.of(one) for one in shown["episodes"]] == list(online.episodes())
    figures = exposition(lambda: Watch(tmp_path / "run.db")).decode()
    assert "venn_episodes_total 2.0" in figures
    assert "venn_episode_lasting 1.0" in figures


@pytest.mark.parametrize("kind", ["given", "own", "numbers", "beside"])
def test_a_checkpoint_of_a_model_that_began_anew_is_read(kind, scorer, tmp_path, caplog):
    X, y = events(60, ())

    def run():
        other = venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=CLASSES))
        model = {
            "given": lambda: venn.Forecaster(scorer=scorer),
            "own": lambda: venn.Forecaster(CLASSES),
            "numbers": lambda: venn.Forecaster(float),
            "beside": lambda: venn.Forecaster(scorer=scorer, beside={"other": other}),
        }[kind]()
        return venn.Online(model, journal=tmp_path / "run.db")

    with run() as online:
        served(online, X[:40], X[:, 0] if kind == "numbers" else y)
        online.panel._begin_anew()
        served(online, X, X[:, 0] if kind == "numbers" else y, 40)
    state = checkpoint.pack(online._run.state())
    with caplog.at_level(logging.WARNING, "venn"):
        again = run()
    assert "no checkpoint" not in caplog.text
    assert checkpoint.pack(again._run.state()) == state
    again.close()


def test_a_journal_of_an_older_version_goes_on_and_is_watched(scorer, tmp_path, monkeypatch):
    X, y = events(300, ())
    X[200:, 1] = 32 + 50 * X[200:, 1]
    with monkeypatch.context() as older:
        older.setattr(checkpoint, "VERSION", 2)
        with begun(scorer, tmp_path / "run.db", watch=False) as online:
            served(online, X[:250], y)
    online.journal.checkpoints.forget()  # none of that version can be read
    online = begun(scorer, tmp_path / "run.db")
    assert online.answered == 250
    assert [one.columns for one in online.episodes()] == [("column 2",)]
    online.close()


def test_labels_that_come_late_say_from_which_question_on_to_rely_on_it(scorer):
    X, y = events(560, (300,))
    online = begun(scorer, watch=False)
    served(online, X, y, late=100)
    (one,) = online.episodes()
    assert one.rang.asked == one.rang.number + 100
    assert str(one).startswith(f"Rely on it only after question number {one.rang.asked}, where it began anew. Changed ")


def test_a_model_knows_its_episodes_and_keeps_them_in_a_file(scorer):
    X, y = events(400, (250,))
    model = venn.Forecaster(scorer=scorer)
    for x, label in zip(X, y, strict=True):
        model.predict_one(x)
        model.learn_one(x, label)
    (one,) = model.episodes()
    assert abs(one.first.number - 251) <= NEAR
    assert model.verdict().advice == "Retrain or invert the model."
    assert pickle.loads(pickle.dumps(model)).episodes() == model.episodes()


@pytest.mark.parametrize("watch", [True, False])
def test_objects_columns_and_classes_are_watched_unless_somebody_says_no(watch, scorer):
    online = begun(scorer, watch=watch)
    assert ({"objects", "classes"} <= online.monitors.keys()) == watch
    X, y = events(300, ())
    X[200:, 1] = 32 + 50 * X[200:, 1]
    served(online, X, y)
    named = [one.columns for one in online.episodes()]
    assert named == ([("column 2",)] if watch else [])
    if watch:
        assert "Column 2 (middle " in str(online.episodes()[0])


def test_what_cannot_be_watched_is_left_out_with_a_warning(caplog):
    pytest.importorskip("scipy")
    from scipy.sparse import csr_array

    X, y = events(60, ())
    scorer = LogisticRegression().fit(csr_array(X), y)
    online = begun(scorer)
    with caplog.at_level(logging.WARNING, "venn"):
        for i in range(20):
            online.ask(csr_array(X[i : i + 1]))
            online.answer(i + 1, y[i])
    assert online.asked == 20
    assert ("objects" in online.monitors) != ("objects and classes are not watched" in caplog.text)


@pytest.mark.parametrize("on_alarm", [5, [], [1], {"a": 1}])
def test_nobody_to_tell_is_named(on_alarm, scorer):
    with pytest.raises(TypeError, match="on_alarm must be a callable, a command"):
        begun(scorer, on_alarm=on_alarm)


def test_a_command_is_told_and_a_function_that_fails_stops_nothing(scorer, tmp_path, caplog):
    kept, (X, y) = tmp_path / "kept", events(330, (250,))
    program = "import json, sys; open(sys.argv[1], 'a').write(json.load(sys.stdin)['stage'] + ' ')"
    online = begun(scorer, tmp_path / "run.db", on_alarm=[sys.executable, "-c", program, str(kept)])
    served(online, X, y)
    online.close()
    assert kept.read_text().startswith("began ")
    with caplog.at_level(logging.WARNING, "venn"):
        online = begun(scorer, on_alarm=lambda one: 1 / 0)
        served(online, X, y)
    assert online.answered == 330
    assert "on_alarm failed with ZeroDivisionError" in caplog.text


# ------------------------------------------------------------------------------ one's own


@component
class Gaps(Watching):
    """Rings at the third object in a row that is empty."""

    about = "gaps"
    steps: int = state(restored_int, start=0)
    empty: int = state(restored_int, start=0)

    @property
    def n(self):
        return self.steps

    def update(self, x):
        self.pass_by()
        self.steps, self.empty = self.steps + 1, 0 if np.any(x) else self.empty + 1
        return self.rang(Alarm(self.n, "Gaps", 7.0, "Three empty objects.", "gaps")) if self.empty == 3 else ()


def test_a_watch_of_ones_own_works_in_a_run_its_journal_and_its_page(scorer, tmp_path):
    X, y = events(60, ())
    X[40:] = 0.0
    for stop in (45, 60):
        online = begun(scorer, tmp_path / "run.db", monitor=Gaps())
        served(online, X[:stop], y, online.asked)
        online.journal.close()
    online = begun(scorer, tmp_path / "run.db", monitor=Gaps())
    (one,) = online.episodes()
    assert (one.watchers, one.first.id, one.rang.number) == (("gaps",), "order-43", 43)
    assert online.verdict().predictor == "gaps"
    online.close()
    with Watch(tmp_path / "run.db") as watch:
        assert watch.episodes() == online.episodes()
        assert "gaps" in render(FollowedRun(watch), "title", "data")
    assert 'venn_alarms_total{predictor="gaps"} 1.0' in exposition(lambda: Watch(tmp_path / "run.db")).decode()
    report = ["report", str(tmp_path / "run.db"), "--out", str(tmp_path / "report.html")]
    assert CliRunner().invoke(cli.main, report).exit_code == 0
    assert "gaps" in (tmp_path / "report.html").read_text(encoding="utf-8")


@component
class Wrong(Gaps):
    """Rings where a predicted label is wrong."""

    sees, about = "predictions", "wrong"

    def update(self, prediction, y):
        self.steps += 1
        return self.rang(Alarm(self.n, "Wrong", 7.0, "Wrong.", "wrong")) if prediction.label != y else ()


def test_a_watch_of_ones_own_of_predictions_works_in_a_journal_and_on_its_page(scorer, tmp_path):
    X, y = events(60, ())
    model = venn.InductiveVennAbers(venn.FrozenScorer(scorer))
    with venn.Online(model, {"InductiveVennAbers": Wrong()}, tmp_path / "run.db") as online:
        served(online, X, y, 0)
        alarms = online.monitors["InductiveVennAbers"].count
    assert alarms > 0
    with Watch(tmp_path / "run.db") as watch:
        assert watch.verdict().predictor == "InductiveVennAbers"
        assert "wrong" in render(FollowedRun(watch), "title", "data")
    said = exposition(lambda: Watch(tmp_path / "run.db")).decode()
    assert f'venn_alarms_total{{predictor="InductiveVennAbers"}} {alarms:.1f}' in said


def test_whatever_watches_works_in_a_replay_and_on_the_bench(scorer):
    X, y = events(60, ())
    X[40:] = 0.0
    watchers = {"gaps": Gaps(), "classes": ClassDrift(CLASSES), "intervals": venn.Monitor(CLASSES)}
    watchers["low"] = venn.monitors.FloorWatch(0.5)
    model = venn.InductiveVennAbers(venn.FrozenScorer(scorer))
    venn.replay(zip(X, y, strict=True), venn.Panel(intervals=model), monitors=watchers)
    assert [one.n for one in watchers.values()] == [60] * 4
    assert [one.first for one in watchers["gaps"].cases] == [43]
    with pytest.raises(ValueError, match="monitors must have names of predictors, intervals, got 'other'"):
        venn.replay(zip(X, y, strict=True), venn.Panel(intervals=model), monitors={"other": venn.Monitor(CLASSES)})
    said = Forecast([0.1, 0.9], CLASSES)
    steps = [(x, said, label) for x, label in zip(X, y, strict=True)]
    assert bench(Gaps, [Scenario("empty", steps, change=40)])[0].delays == (3,)


@component
class Short(Gaps):
    """Its changes end when eight objects have not rung."""

    def pass_by(self):
        lasting = self.lasting()
        if lasting is not None and self.n - lasting.last >= 8:
            self._put(replace(lasting, ended=self.n, how="calm"))


@pytest.mark.parametrize("ends", ["close", "kill"])
def test_however_a_run_ends_nobody_is_told_twice_or_never(ends, scorer, tmp_path):
    X, y = events(80, ())
    X[40:43] = X[55:58] = 0.0
    told, whole = [], []
    served(begun(scorer, monitor=Short(), on_alarm=whole.append), X, y)
    for stop in (43, 52, 58, 67, 80):  # where a change has just begun, or has just ended
        online = begun(scorer, tmp_path / "run.db", monitor=Short(), on_alarm=told.append)
        for i in range(online.asked, stop):
            served(online, X[: i + 1], y, i)  # a transaction each
        online.close() if ends == "close" else online.journal.close()
    assert [(one.number, one.lasts) for one in told] == [(1, True), (1, False), (2, True), (2, False)]
    assert [(one.number, one.lasts) for one in told] == [(one.number, one.lasts) for one in whole]


def test_what_was_not_told_before_the_end_of_a_process_is_told_by_the_next_one(scorer, tmp_path):
    def killed(one):
        raise KeyboardInterrupt

    X, y = events(50, ())
    X[40:] = 0.0
    online = begun(scorer, tmp_path / "run.db", monitor=Gaps(), on_alarm=killed)
    with pytest.raises(KeyboardInterrupt):
        served(online, X, y)
    online.journal.close()
    told = []
    for _ in range(2):
        begun(scorer, tmp_path / "run.db", monitor=Gaps(), on_alarm=told.append).journal.close()
    assert [one.rang.number for one in told] == [43]


def test_an_object_that_cannot_be_watched_stops_no_restart(scorer, tmp_path):
    pytest.importorskip("scipy")
    from scipy.sparse import csr_array

    X, y = events(60, ())
    sparse = LogisticRegression().fit(csr_array(X), y)
    for stop in (10, 20):
        online = begun(sparse, tmp_path / "run.db")
        for i in range(online.asked, stop):
            online.ask(csr_array(X[i : i + 1]))
            online.answer(i + 1, y[i])
        online.journal.checkpoints.forget()  # all is learned again
        online.journal.close()
    assert online.answered == 20
    assert "objects" not in online.monitors


class Answers(Gaps):
    sees = "examples"


def test_a_change_that_late_labels_show_is_not_that_of_objects_which_came_after_it():
    objects, labels = Gaps(), Answers()
    objects.steps = labels.steps = 1000
    objects.rang(Alarm(517, "Ville", 7.0, "...", "objects"))
    labels.rang(Alarm(430, "Ville", 7.0, "...", "labels"))  # of question 430, whose label came after question 630

    def place(name, counts, step):
        return Moment(step, asked=step + 200 if counts == "answers" else None)

    one, other = episodes_of({"labels": labels, "objects": objects}, place)
    assert [(one.watchers, one.rang.when), (other.watchers, other.rang.when)] == [
        (("objects",), 517),
        (("labels",), 630),
    ]
    assert one.lasts  # what came to light later came before
    assert other.lasts
    labels.cases[0] = replace(labels.cases[0], first=520, change=replace(labels.cases[0].change, lower=490))
    (both,) = episodes_of({"labels": labels, "objects": objects}, place)  # of a question after it: it may be the same
    assert both.watchers == ("objects", "labels")


def test_labels_that_change_again_and_again_leave_what_is_said_within_classes_as_it_was():
    rng = np.random.default_rng(0)
    drift, ties, rankings = ClassDrift(CLASSES, level=0.3), Ties(0), [AmongAll(), AmongAll()]
    for n in range(1500):
        code = int(rng.random() < (0.1 if n // 300 % 2 else 0.9))
        x = rng.normal(2 * code, size=1)
        drift.update(x, CLASSES[code])
        assert drift.p_values[1] == rankings[code].rank(x, ties.at(n)[1])  # among all of its class so far
    of_labels = [one for one in drift.cases if one.part == "labels"]
    assert len(of_labels) >= 2
    assert any(one.anew for one in of_labels)


def test_a_watch_that_would_never_be_asked_is_refused(scorer):
    class Mine(Gaps):
        sees = "predictions"

    with pytest.raises(TypeError, match="monitors must hold a Monitor of sets"):
        venn.Forecaster(scorer=scorer).watch_by({"sets": Mine()})
    with pytest.raises(ValueError, match="monitor must have names of predictors"):
        begun(scorer, monitor={"other": Mine()})


@pytest.mark.parametrize("blocks", [False, True])
def test_a_watch_of_ones_own_sees_what_is_said_in_a_run_with_a_journal(blocks, scorer, tmp_path):
    X, y = events(60, ())
    for stop in (25, 60):
        online = begun(scorer, tmp_path / "run.db", monitor={"forecast": Unlikely()})
        if blocks:
            served(online, X[:stop], y, online.asked)
        else:
            for i in range(online.asked, stop):
                online.ask(X[i], f"order-{i + 1}")
                online.answer(f"order-{i + 1}", y[i])
        online.close()
    online = begun(scorer, tmp_path / "run.db", monitor={"forecast": Unlikely()})
    assert online.monitors["forecast"].n == 60
    online.close()
    with Watch(tmp_path / "run.db") as watch:
        assert "forecast" in render(FollowedRun(watch), "title", "data")


@component
class Unlikely(Watching):
    """Rings at a label that was hardly probable."""

    sees = "predictions"
    steps: int = state(restored_int, start=0)

    @property
    def n(self):
        return self.steps

    def update(self, prediction, y):
        self.steps += 1
        said = prediction.proba[prediction.classes.index(y)]
        return self.rang(Alarm(self.n, "Unlikely", 5.0, "It was improbable.", "labels")) if said < 0.1 else ()


def test_a_watch_that_says_nothing_useful_is_told_so(scorer):
    class Blind(Gaps):
        sees = "everything"

    with pytest.raises(TypeError, match=r"whose sees must be one of 'objects', .*, got 'everything'"):
        begun(scorer, monitor=Blind())

    class Silent(Gaps):
        def update(self, x):
            return None

    with pytest.raises(TypeError, match=r"update of the monitor 'gaps' must return .* or \(\), got None"):
        begun(scorer, monitor=Silent()).ask([1.0, 1.0])


def test_what_was_told_is_not_told_again():
    news = EpisodeNews()
    one = Episode.of(json.loads(json.dumps(Episode(
        1, Moment(9), Moment(14), Moment(14), ("sets",), "", (), (), "", 1,
    ).plain())))  # fmt: skip
    assert [stage for stage, _ in news.news([one])] == ["began"]
    again = EpisodeNews()
    again.restore(news.state)
    assert news.news([one]) == again.news([one]) == []
    known = replace(one, kind="objects of classes 'no' and 'yes' look different, or their labels mean something else")
    ((stage, told),) = news.news([known])
    assert (stage, told.known) == ("known", f"Known of the change since question 9: {known.kind}.")
    assert news.news([known]) == []
    assert [stage for stage, _ in news.news([replace(known, ended=one.last, how="calm")])] == ["ended"]


def test_an_episode_begins_once_though_labels_that_come_late_ring_in_any_order_of_questions():
    """Two labels come between the same two questions, that of the later question first."""
    asked = {1: Moment(20), 2: Moment(40, asked=60), 3: Moment(30, asked=60)}
    watchers, news, stages = {"z": RingsAt(2), "a": RingsAt(3)}, EpisodeNews(), []
    for _ in range(3):
        for one in watchers.values():
            one.update()
        found = episodes_of(watchers, lambda watcher, counts, step: asked[step])
        stages += [(stage, one.rang.number) for stage, one in news.news(found)]
    assert [one.watchers for one in found] == [("z", "a")]
    assert stages == [("began", 40)]


class RingsAt(Watching):
    """Rings at one step, about a change at the first."""

    sees, n = "predictions", 0

    def __init__(self, at):
        super().__init__()
        self.at = at

    def update(self):
        self.n += 1
        if self.n == self.at:
            self._note(Case(self.n, self.n, ChangePoint(1, 1, 1), "a", "b", "c"))


class Fails(Watching):
    """Fails at each fifth step, once it has begun to."""

    about, n, fails = "all", 0, True

    def update(self, *seen):
        self.n += 1
        if self.fails and self.n % 5 == 0:
            raise ValueError("this watch fails")
        return ()


class FailsAtExamples(Fails):
    sees = "examples"


def test_where_a_watch_of_your_own_fails_all_others_see_what_they_do():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60).tolist()

    def service(fails):
        own = {"x": Fails(), "xy": FailsAtExamples()}
        for one in own.values():
            one.fails = fails
        watches = own | {"objects": Drift(), "classes": ClassDrift([0, 1]), "floor": venn.monitors.FloorWatch(0.6)}
        return venn.Online(venn.Forecaster([0, 1], transductive=30), watches, labels=venn.online.Lot(0.5, seed=1))

    found = []
    for fails in (False, True):
        failed = 0
        with service(fails) as online:
            for i in range(60):
                try:
                    online.ask(X[i], i, at=i)
                except ValueError as error:
                    failed += "this watch fails" in str(error)
                if i in online.pending:
                    try:
                        online.answer(i, y[i], at=i)
                    except ValueError as error:
                        failed += "this watch fails" in str(error)
            assert (failed > 12) == fails
            shown = {name: repr(online.monitors[name].snapshot()) for name in ("objects", "classes", "floor")}
            found.append((online.asked, online.answered, online.expired, online.pending, shown))
    assert found[0] == found[1]
    assert found[0][0] == sum(found[0][1:3]) == 60


class Parts(Watching):
    """Rings in the parts that it is told."""

    about, n = "parts", 0

    def update(self, *parts):
        self.n += 1
        for part in parts:
            change = ChangePoint(self.n, self.n, self.n)
            self._note(Case(self.n, self.n, change, self.about, "", "", part=part), another=True)
        self.pass_by()


def test_a_change_ends_in_time_whatever_other_parts_ring_since_and_lasts_among_more_than_a_hundred():
    watcher = Parts()
    watcher.update("within")
    for _ in range(999):
        watcher.update(*["labels"] * (watcher.n in (200, 400, 600, 800)))
    assert watcher.lasting("within").first == 1
    watcher.update()
    assert watcher.case("within").ended == 1001
    assert watcher.lasting("labels").first == 801
    watcher.update(*[str(place) for place in range(150)])
    assert sum(not one.ended for one in watcher.cases) == 151
