"""A watch of one's own among episodes: in a run, its journal and its page, failing, and however a run ends."""

# ruff: noqa: F811

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from test_episodes import CLASSES, begun, events, scorer, served  # noqa: F401

import venn
from venn import cli
from venn.monitors import Alarm, AmongAll, ClassDrift, Drift, Moment, Scenario, Watching, bench
from venn.monitors.change_point import ChangePoint
from venn.monitors.episodes import Episode, episodes_of
from venn.monitors.naming import Ties
from venn.monitors.watching import Case
from venn.online.watch import Watch
from venn.prediction import Forecast
from venn.saved import component, restored_int, state
from venn.show.metrics import exposition
from venn.show.notify import EpisodeNews
from venn.show.page.feed import FollowedRun
from venn.show.page.page import render

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
