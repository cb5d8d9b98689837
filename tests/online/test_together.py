"""`Online.take`: events that arrived together go in blocks, and leave to the last bit what one by one they leave."""

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from test_blocks import fitted, rows

import venn
from streams.messages import Message, TimedMessage
from venn.online import checkpoint
from venn.online.in_blocks import ScoresAhead
from venn.online.run import OFTEN, Run
from venn.online.stretch import Stretch
from venn.prediction import plain
from venn.predictors.blocks import ManyClassIntervals, ManyForecasts, ManyPredictionSets
from venn.serving.owner import ModelEvent, RunOwner

TABLES = (
    ("questions", "event, id, time, step, x, predictions"), ("answers", "step, event, question, time, truth"),
    ("expired", "number, event, question, time"), ("alarms", "predictor, number, step, time, alarm"),
    ("series", "step, time, figures"), ("latest", "predictor, step, snapshot"),
)  # fmt: skip


class Asks(NamedTuple):
    id: object
    x: object
    at: float


class Tells(NamedTuple):
    id: object
    y: object
    at: float


@pytest.fixture(scope="module")
def scorer():
    return fitted(LogisticRegression())


def message(at, id, x=None, y=None):
    """A message at a time of its own, so that times can be compared as well."""
    return TimedMessage.of(Message(id, x, y, at), float(at))


def examples(n, seed=2, change=10**6):
    """Questions, each with its answer: in one message, or in the next one."""
    found = []
    for i, (x, y) in enumerate(zip(*rows(2, n, seed, change), strict=True)):
        if i % 3:
            found.append(message(len(found), f"e{i}", x, y))
        else:
            found += [message(len(found), i, x), message(len(found) + 1, i, None, y)]
    return found


def questions_first(n, seed=3):
    """Many questions, then many answers, in another order and not to all."""
    X, y = rows(2, n, seed)
    asked = [message(i, f"q{i}", x) for i, x in enumerate(X)]
    order = np.random.default_rng(seed).permutation(n)[: n - 3]
    return asked + [message(n + k, f"q{i}", None, y[i]) for k, i in enumerate(order)]


def odd(n):
    """All kinds of events, with what is refused among them."""
    found = [*examples(n, 4), *questions_first(n, 5), *examples(n, 6, n // 2)]
    rng = np.random.default_rng(0)
    found = [one for one in found if not (isinstance(one.id, int) and one.x is None and rng.random() < 0.2)]
    waits = n // 6 * 3  # an example is no answer to the question before it, though it has its id
    found.insert([one.id for one in found].index(waits) + 1, message(0, waits, np.zeros(4), "c0"))
    for place, bad in (
        (3, message(0, "short", np.zeros(3))),
        (n // 3, message(0, "e1", np.zeros(4), "c0")),  # asked before
        (n // 2, message(0, "nobody", None, "c0")),
        (n // 2 + 1, message(0, "label", np.zeros(4), "other")),
        (n, message(0, "gap", np.array([0.0, np.nan, 0, 0]), "c1")),
        (2 * n, message(0, 7.5, np.zeros(4), "c1")),
        (2 * n + 1, message(0, None, [1, 2.5, 0, 0], "c1")),
    ):
        found.insert(place, bad)
    return [message(i, one.id, one.x, one.y) for i, one in enumerate(found)]


def brief(failure):
    return None if failure is None else (type(failure), str(failure))


def one_by_one(online, events):
    """What comes of each event if it is alone."""
    return [taken for event in events for taken in online.take([event])]


def in_blocks_of(size, online, events):
    found = []
    for start in range(0, len(events), size):
        part = events[start : start + size]
        while part:
            came = online.take(part)
            assert came
            found += came
            part = part[len(came) :]
    return found


def told(taken):
    """What came of events, as values that compare."""
    return [
        (one.id, one.asked, one.answered, None if one.said is None else one.said.to_dict(), one.rung,
         brief(one.failure)) for one in taken
    ]  # fmt: skip


def left(path):
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {table: list(db.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2")) for table, columns in TABLES}


def state(online):
    """All that a checkpoint holds, but for the token of its journal."""
    packed = checkpoint.pack(online._run.state())  # noqa: SLF001
    return packed, [str(one) for one in online.verdicts().values()], online.episodes()


def assert_alike(make, events, tmp_path, sizes=(7, 64, 1000)):
    """Blocks of any size leave what one by one is left: what came of each, journal, state, alarms, verdicts."""
    alone = make(tmp_path / "alone.db")
    expected, states = told(one_by_one(alone, events)), state(alone)
    alone.close()
    for size in sizes:
        online = make(tmp_path / f"{size}.db")
        assert told(in_blocks_of(size, online, events)) == expected, size
        assert state(online) == states, size
        online.close()
        assert left(tmp_path / f"{size}.db") == left(tmp_path / "alone.db"), size
    return alone


def online_of(scorer, **given):
    return lambda path: venn.Online(venn.Forecaster(scorer=scorer), journal=path, **given)


def test_examples_in_blocks_leave_what_they_leave_one_by_one(scorer, tmp_path):
    """Across fits of the pool, and alarms in the middle of a block at which the model begins anew."""
    alone = assert_alike(online_of(scorer), examples(420, change=200), tmp_path)
    assert alone.panel._before > 0  # noqa: SLF001
    assert alone.episodes()


def test_events_are_taken_by_the_loops_and_not_one_by_one(scorer, monkeypatch):
    """Otherwise the other tests would compare nothing."""
    online = venn.Online(venn.Forecaster(scorer=scorer))
    online.take(examples(1))
    monkeypatch.delattr(venn.Online, "_alone")
    for events in (examples(60)[2:], questions_first(40)):
        in_blocks_of(1000, online, events)
    assert (online.asked, online.answered, len(online.pending)) == (100, 96, 4)


def test_questions_first_and_answers_later_in_blocks(scorer, tmp_path):
    assert_alike(online_of(scorer), [*examples(30), *questions_first(150)], tmp_path, (7, 1000))


@pytest.mark.parametrize("given", [{}, {"patience": 20}], ids=["all", "patience"])
def test_what_is_refused_late_or_twice_goes_one_by_one_among_blocks(scorer, tmp_path, given):
    alone = assert_alike(online_of(scorer, **given), odd(60), tmp_path, (7, 64, 1000))
    assert (alone.expired > 0) == bool(given)


@pytest.mark.parametrize(
    "given",
    [
        {"watch": False}, {"ripe": 15}, {"labels": venn.online.Lot(0.5)},
        {"monitor": {"forecast": venn.Monitor(["c0", "c1"])}},
    ],
    ids=["unwatched", "ripe", "lot", "given"],
)  # fmt: skip
def test_what_no_block_knows_goes_one_by_one(scorer, tmp_path, given):
    def make(path):
        again = {"monitor": {"forecast": venn.Monitor(["c0", "c1"])}} if "monitor" in given else given
        return venn.Online(venn.Forecaster(scorer=scorer), journal=path, **again)

    alone, online = make(tmp_path / "alone.db"), make(tmp_path / "blocks.db")
    events = odd(25)
    expected = one_by_one(alone, events)
    found = in_blocks_of(1000, online, events)
    assert [(one.id, one.answered, brief(one.failure)) for one in found] == [
        (one.id, one.answered, brief(one.failure)) for one in expected
    ]
    assert state(online) == state(alone)
    alone.close()
    online.close()
    assert left(tmp_path / "blocks.db") == left(tmp_path / "alone.db")


def test_a_forecaster_with_a_floor_goes_one_by_one(scorer, tmp_path):
    def make(path):
        return venn.Online(venn.Forecaster(scorer=scorer, floor=0.6), journal=path)

    assert_alike(make, examples(60), tmp_path, (1000,))


def changes(n):
    """Return events of which objects, classes and claims change, and are as before again later."""
    events = []
    for i, one in enumerate(examples(n, 8)):
        away = 150 < i % 420 < 300
        x = None if one.x is None else one.x + 3 * away
        events.append(message(i, one.id, x, None if one.y is None else "c1" if away and i % 4 else one.y))
    return events


def test_changes_that_come_and_go_are_the_same_episodes(scorer, tmp_path):
    """Alarms, moments and what is told."""
    alone = assert_alike(online_of(scorer), changes(700), tmp_path, (7, 64, 1000))
    assert len({name for name, one in alone.monitors.items() if one.count}) > 2


def in_turns(events, size):
    """The same examples as clients bring them who ask together: so many questions, then their answers."""
    found, examples = [], [(one.id, one.x, one.y) for one in events if one.x is not None]
    labels = {one.id: one.y for one in events if one.y is not None}
    for start in range(0, len(examples), size):
        part = examples[start : start + size]
        found += [(id, x, None) for id, x, _ in part] + [(id, None, labels[id]) for id, *_ in part]
    return [message(i, *one) for i, one in enumerate(found)]


def test_changes_that_come_and_go_while_many_ask_are_the_same_episodes(scorer, tmp_path, monkeypatch):
    """The run looks for changes that have ended after each 20 events, within blocks of questions and of answers."""
    place, looks = Run.place, list[list[int]]()

    def seen(run):
        if run.eventful and run.events % OFTEN == 0:
            looks[-1].append(run.events)
        place(run)

    def make(path):
        looks.append([])
        return online_of(scorer)(path)

    monkeypatch.setattr(Run, "place", seen)
    alone = assert_alike(make, in_turns(changes(600), 33), tmp_path, (66,))
    assert any(one.ended for one in alone.episodes())
    assert looks[0] == looks[1]
    assert len(looks[0]) > 20


def test_a_scorer_is_asked_once_for_a_question_and_its_answer():
    asked = []

    class Asked(GaussianNB):
        def predict_proba(self, X):
            asked.append(len(X))
            return super().predict_proba(X)

    online = venn.Online(venn.Forecaster(scorer=fitted(Asked())))
    events = in_turns(examples(200), 20)
    in_blocks_of(20, online, events[:40])
    before = sum(asked)
    in_blocks_of(20, online, events[40:])
    assert sum(asked) - before == 180
    again = in_turns([one._replace(id=f"again {one.id}") for one in examples(200) if one.x is not None and one.y], 50)
    online.take(again[:50])
    before = sum(asked)
    online.panel.learn_many([one.x for one in again[:50]], [one.y for one in again[50:100]])
    assert sum(asked) - before == 0
    online.panel.learn_many([one.x for one in again[:50]], [one.y for one in again[50:100]])
    assert sum(asked) - before == 50  # they are kept for one answer


def test_the_scores_of_the_latest_questions_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr("venn.online.in_blocks.SCORED", 5)
    kept, X, scorer = ScoresAhead(), np.arange(24.0).reshape(8, 3), object()
    kept.keep(scorer, X[:4], X[:4, :2])
    kept.keep(scorer, X[4:], X[4:, :2])
    assert len(kept) == 5
    assert kept.take(object(), X[4:5]) is None
    assert kept.take(scorer, X[3:5]).tolist() == X[3:5, :2].tolist()
    assert kept.take(scorer, X[4:6]) is None
    kept.keep(object(), X[:1], X[:1])
    assert (len(kept), kept.take(scorer, X[7:])) == (1, None)
    monkeypatch.setattr("venn.online.in_blocks.HELD", 2 * X[0].nbytes)
    kept.keep(scorer, X, X)
    assert len(kept) == 2


def test_a_run_goes_on_from_its_journal_between_blocks(scorer, tmp_path):
    events = [*examples(140, change=60), *questions_first(60)]
    make = online_of(scorer)
    alone = make(tmp_path / "alone.db")
    one_by_one(alone, events)
    for start in range(0, len(events), 77):
        online = make(tmp_path / "blocks.db")
        in_blocks_of(1000, online, events[start : start + 77])
        if start % 2:  # as if it had been killed: no last checkpoint
            online._guard.broken = "was killed"  # noqa: SLF001
        online.close()
    again = make(tmp_path / "blocks.db")
    assert state(again)[1:] == state(alone)[1:]
    alone.close()
    again.close()
    assert left(tmp_path / "blocks.db") == left(tmp_path / "alone.db")


def test_without_a_journal_blocks_do_the_same(scorer):
    alone, online = (venn.Online(venn.Forecaster(scorer=scorer)) for _ in range(2))
    events = odd(40)
    assert told(in_blocks_of(1000, online, events)) == told(one_by_one(alone, events))
    assert state(online) == state(alone)


def test_an_error_in_the_middle_of_a_block_leaves_nothing_of_it(scorer, tmp_path, monkeypatch):
    events, make = examples(90), online_of(scorer)
    online = make(tmp_path / "run.db")
    in_blocks_of(40, online, events[:40])
    before = online.asked, online.answered
    with monkeypatch.context() as patched:
        patched.setattr(Stretch, "_write", lambda self, said: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            in_blocks_of(50, online, events[40:])
    with pytest.raises(venn.online.JournalError, match="make it again"):
        online.take(events[40:])
    online.close()
    again = make(tmp_path / "run.db")
    assert (again.asked, again.answered) == before
    in_blocks_of(50, again, events[40:])
    again.close()
    alone = make(tmp_path / "alone.db")
    one_by_one(alone, events)
    alone.close()
    assert left(tmp_path / "run.db") == left(tmp_path / "alone.db")


@pytest.mark.parametrize("twin", ["monitors", "watchers"])
def test_a_run_of_which_one_sees_the_end_of_the_block_is_found_out(twin, scorer, tmp_path, monkeypatch):
    """The broken twins: the curves have their figures from the end; what watches does not stop where it rings."""
    if twin == "monitors":
        monkeypatch.setattr(Stretch, "looked", lambda self, count: [count])
    else:
        watch = Stretch._watch  # noqa: SLF001
        monkeypatch.setattr(Stretch, "_watch", lambda self, i, end: max(watch(self, i, end), end))
    with pytest.raises(AssertionError):
        assert_alike(online_of(scorer), changes(250), tmp_path, (64,))


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_blocks_as_plain_data_are_what_each_prediction_is(classes):
    model = venn.Forecaster(scorer=fitted(GaussianNB(), classes))
    for name, block in dict(model.replay_many(*rows(classes, 60, 2))).items():
        assert block.plain() == [plain(block[i]) for i in range(60)], name
        assert block.json() == [json.dumps(one) for one in block.plain()], name


@pytest.mark.parametrize("classes", [("no", "yes"), (0, 1), (False, True), ('50%\n"', "%s é"), ("1", 1)])
def test_blocks_as_json_are_what_python_writes_whatever_the_labels_and_numbers(classes):
    small = np.array([0.0, 5e-324, 1e-300, 3.1e-7, 9.999999999999999e-05, 1e-4, 0.1, 1 / 3, 0.5])
    proba = np.column_stack([small, 1.0 - small])
    pairs = np.stack([proba, np.minimum(proba * 1.5, 1.0)], axis=-1)
    blocks = ManyForecasts(proba, classes), ManyClassIntervals(pairs, classes), ManyPredictionSets(proba, classes)
    for block in blocks:
        assert block.json() == [json.dumps(one) for one in block.plain()]
    with pytest.raises(ValueError, match="not JSON compliant"):
        ManyForecasts(np.array([[np.nan, 1.0]]), classes).json()
    assert ManyForecasts(np.empty((0, 2)), classes).json() == []


def test_events_at_hand_are_followed_in_blocks_and_yield_the_same(scorer, tmp_path):
    lessons = []
    for one in [*examples(30), *questions_first(40)]:
        lessons += [] if one.x is None else [Asks(one.id, one.x, one.at)]
        lessons += [] if one.y is None else [Tells(one.id, one.y, one.at)]
    alone, online = (online_of(scorer)(tmp_path / f"{name}.db") for name in ("alone", "blocks"))
    said = [one.to_dict() for one in alone.follow(iter(lessons))]
    assert [one.to_dict() for one in online.follow(lessons)] == said
    assert list(online.follow(lessons, again=True)) == []
    assert state(online) == state(alone)
    with pytest.raises(TypeError, match="events must be questions"):
        list(online.follow([Asks(f"n{i}", np.zeros(4), 0.0) for i in range(8)] + ["neither"]))
    assert online.asked == alone.asked + 8
    alone.close()
    online.close()


def untimed(content):
    """A reply without what depends on where transactions end, and when."""
    inside = {key: untimed(value) for key, value in content.items() if isinstance(value, dict)}
    return {key: value for key, value in content.items() if key not in ("verdict", "time")} | inside


def test_a_served_run_replies_to_a_block_as_to_each_event(scorer, tmp_path):
    """The same again gets the same reply; looks at what was said stand among the events."""
    asked, told_of = rows(2, 40, 2)
    events = []
    for i, (x, y) in enumerate(zip(asked, told_of, strict=True)):
        events += [ModelEvent("ask", f"q{i}", x=x), ModelEvent("answer", f"q{i}", y=y)]
    events += [ModelEvent("look", "q3"), ModelEvent("ask", "q4", x=asked[4]), ModelEvent("ask", None, x=asked[4])]
    events += [ModelEvent("answer", "q5", y=told_of[5]), ModelEvent("answer", "no", y="c0"), ModelEvent("look", "q7")]
    replies = {}
    for batch in (1, 512):
        owner = RunOwner(lambda batch=batch: online_of(scorer)(tmp_path / f"{batch}.db"), batch=batch)
        owner.wait()
        replies[batch] = [untimed(one.content) | {"status": one.status} for one in asyncio.run(owner.happen(events))]
        owner.close()
        assert owner.failure is None
    assert replies[512] == replies[1]
    assert [one["status"] for one in replies[1]][-6:] == [200, 200, 200, 200, 404, 200]
