"""Episodes: one change is one object, dated right, told of once, and there again after a kill."""

import json
import logging
import pickle
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from naive import change as naive
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

import venn
from venn import cli
from venn.monitors import AmongAll, ClassDrift, Drift
from venn.monitors.change_point import change_of_counts
from venn.monitors.episodes import Episode, episodes_of
from venn.online import checkpoint
from venn.online.watch import Watch
from venn.prediction import Forecast, PredictionSet
from venn.show.metrics import exposition
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
    for seed in range(3):
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
    assert right >= 2


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
    level, run_length, n, streams = 0.1, 20_000, 250, 50
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
