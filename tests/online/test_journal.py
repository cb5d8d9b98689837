"""The journal: nothing lost, nothing twice, nothing half; and what viewers see of it."""

import json
import sqlite3
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import labels, objects
from test_late_labels import CLASSES, MAKERS, examples, shuffled_events, state

import venn
from venn.online import restart
from venn.online.restart import spacing


def events_of(n, seed=0):
    X, y = examples("grid", n, seed)
    return [(what, i, X[i] if what == "ask" else y[i]) for what, i in shuffled_events(n, seed)]


def happen(online, events):
    for what, i, value in events:
        online.ask(value, i) if what == "ask" else online.answer(i, value)


def opened(path, name="venn", every=1000, **more):
    return venn.Online(MAKERS[name](), venn.Monitor(CLASSES), venn.online.Journal(path, every=every, share=1), **more)


def abandon(online):
    """What a process leaves that dies: no checkpoint, no last word."""
    online.journal.close()


@pytest.mark.parametrize("every", [7, 1000], ids=["checkpoints", "none"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_run_goes_on_after_every_event(name, every, tmp_path):
    events = events_of(8)
    whole = opened(tmp_path / "whole.db", name)
    happen(whole, events)
    for event in events:
        part = opened(tmp_path / "part.db", name, every)
        happen(part, [event])
        abandon(part)
    part = opened(tmp_path / "part.db", name, every)
    assert state(part) == state(whole)
    whole.record().save(tmp_path / "whole.npz")
    part.record().save(tmp_path / "part.npz")
    assert (tmp_path / "whole.npz").read_bytes() == (tmp_path / "part.npz").read_bytes()
    part.close()
    whole.close()


def test_a_closed_run_goes_on_without_learning_again(tmp_path, monkeypatch):
    events = events_of(20)
    with opened(tmp_path / "run.db") as online:
        happen(online, events[:25])
        expected = state(online)
    monkeypatch.setattr(restart, "happen_again", None)
    with opened(tmp_path / "run.db") as online:
        assert state(online) == expected
        monkeypatch.undo()
        happen(online, events[25:])
    with pytest.raises(venn.online.JournalError, match="is closed"):
        online.ask([0.0, 0.0])
    online.close()


def test_the_record_is_that_of_the_predictions_as_they_were_made(tmp_path):
    X, y = examples("grid", 12)
    online = venn.Online(MAKERS["venn"](), None, tmp_path / "run.db")
    expected = venn.Record(CLASSES, ["TransductiveVenn"])
    said = [online.ask(x) for x in X]
    for i in (5, 2, 9, 0):
        online.answer(i + 1, y[i])
        expected.update({"TransductiveVenn": said[i]}, y[i])
    record = online.record()
    assert len(record) == 4
    for ours, theirs in zip(record.outcomes("TransductiveVenn"), expected.outcomes("TransductiveVenn"), strict=True):
        assert np.array_equal(ours, theirs)
    with venn.online.Watch(tmp_path / "run.db") as watch:
        assert watch.counts()[:4] == (12, 4, 0, 8)
        assert [(seen.id, seen.status, seen.y, seen.delay) for seen in watch.latest(4)] == [
            (12, "pending", None, None), (11, "pending", None, None), (10, "answered", y[9], 2),
            (9, "pending", None, None),
        ]  # fmt: skip
        assert repr(watch.latest(3)[2].predictions["TransductiveVenn"]) == repr(said[9])
    online.close()


def told_of(events):
    """Return events as what a stream gives."""
    return [
        SimpleNamespace(id=i, x=value) if what == "ask" else SimpleNamespace(id=i, y=value) for what, i, value in events
    ]


@pytest.mark.parametrize("patience", [None, 3])
def test_events_that_come_again_are_passed_over(tmp_path, patience):
    events = told_of(events_of(16))
    whole = opened(tmp_path / "whole.db", patience=patience)
    predictions = list(whole.follow(events, again=True))
    assert len(predictions) == 16
    assert (whole.expired > 0) == (patience is not None)
    said = []
    for cut in range(0, len(events) + 1, 3):  # each process comes a little further than the one before
        part = opened(tmp_path / "part.db", patience=patience)
        said += part.follow(events[:cut], again=True)
        abandon(part)
    part = opened(tmp_path / "part.db", patience=patience)
    said += part.follow(events, again=True)
    assert list(map(repr, said)) == list(map(repr, predictions))
    assert state(part) == state(whole)
    assert list(part.follow(events, again=True)) == []
    for mixed_up, message in (
        (SimpleNamespace(id=events[0].id, x=events[0].x + 1), "x must be the object that was asked about before"),
        (SimpleNamespace(id=unlike(part)[0], y=unlike(part)[1]), "y must be the label that came before"),
        (SimpleNamespace(id=unlike(part)[0], y=["a"]), "y must be the label that came before"),
        (SimpleNamespace(id="new", y="a"), "which was never asked"),
    ):
        with pytest.raises(ValueError, match=message):
            list(part.follow([mixed_up], again=True))
    with pytest.raises(ValueError, match="asked before"):
        list(part.follow(events))
    assert state(part) == state(whole)
    part.close()
    whole.close()


def unlike(online):
    """Return the id of a question that is answered, and a label that was not its answer."""
    id, truth = online.journal.connection.execute(
        "SELECT q.id, a.truth FROM questions q JOIN answers a ON a.question = q.event LIMIT 1"
    ).fetchone()
    return id, CLASSES[truth - 1]


def test_without_a_journal_nothing_is_passed_over():
    online = venn.Online(MAKERS["venn"]())
    assert len(list(online.follow(told_of(events_of(5)), again=True))) == 5
    with pytest.raises(TypeError, match="again must be True or False, got 'yes'"):
        list(online.follow([], again="yes"))


def test_ids_are_known_for_ever(tmp_path):
    online = opened(tmp_path / "run.db", patience=2)
    online.ask([0.0, 0.0], "one")
    online.answer("one", "a")
    online.ask([1.0, 0.0], 1)
    online.ask([1.0, 1.0], "1")  # another id
    online.ask([2.0, 1.0], "late")
    abandon(online)
    online = opened(tmp_path / "run.db", patience=2)
    for id, why in (("one", "is answered"), ("two", "was never asked"), (1, "was given up")):
        with pytest.raises(ValueError, match=f"got {id!r}, which {why}"):
            online.answer(id, "a")
    with pytest.raises(ValueError, match="id must be a new one, got 'one', which was asked before"):
        online.ask([0.0, 0.0], "one")
    before = state(online)
    with online.transaction():
        with pytest.raises(ValueError, match="asked before"):
            online.ask([0.0, 0.0], "one")
        online.answer("1", "b")
    assert state(online) != before
    assert online.pending == ("late",)
    abandon(online)
    assert opened(tmp_path / "run.db", patience=2).answered == 2


def test_a_transaction_counts_whole_or_not_at_all(tmp_path):
    events = events_of(12)
    online = opened(tmp_path / "run.db")
    assert online.position("queue") is None
    with online.transaction():
        happen(online, events[:8])
        online.reach("queue", {"offset": 8})
    before = state(online)
    online.journal.begin()  # a transaction that the process does not live to end
    happen(online, events[8:])
    online.reach("queue", {"offset": 99})
    abandon(online)
    online = opened(tmp_path / "run.db")
    assert state(online) == before
    assert online.position("queue") == {"offset": 8}
    happen(online, events[8:])
    online.close()


def test_what_is_refused_in_a_transaction_leaves_the_rest(tmp_path):
    online = opened(tmp_path / "run.db")
    with online.transaction():
        online.ask([0.0, 1.0], "good")
        with pytest.raises(ValueError, match="x must be finite"):
            online.ask([0.0, np.inf], "bad")
    assert online.pending == ("good",)
    abandon(online)
    assert opened(tmp_path / "run.db").pending == ("good",)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_that_leaves_a_transaction_undoes_it(error, tmp_path):
    online = opened(tmp_path / "run.db")
    happen(online, events_of(6))
    before = state(online)
    with pytest.raises(error), online.transaction():  # noqa: PT012
        online.ask([0.0, 1.0], "good")
        online.reach("queue", 7)
        raise error
    with pytest.raises(venn.online.JournalError, match="this run was interrupted: make it again"):
        online.ask([0.0, 1.0])
    online.close()
    online = opened(tmp_path / "run.db")
    assert (state(online), online.position("queue")) == (before, None)
    online.close()


# ------------------------------------------------------------------------ for viewers


def test_points_grow_rarer(tmp_path):
    kept = [step for step in range(1, 100_000) if step % spacing(step) == 0]
    assert 2000 < len(kept) < 4000
    assert kept[0] == 8
    gaps = np.diff(kept)
    assert (np.diff(gaps) >= 0).all()
    assert gaps[-1] <= 100_000 // 256


def test_what_viewers_see(tmp_path):
    rng = np.random.default_rng(0)
    X = objects("normal", rng, 200)
    y = [CLASSES[code] for code in labels("signal", rng, X, 3)]
    y[100:] = y[100:][::-1]  # what was learned is wrong now
    online = venn.Online(MAKERS["conformal"](), venn.Monitor(CLASSES, level=0.2), tmp_path / "run.db")
    rung = []
    for x, label in zip(X, y, strict=True):
        online.ask(x)
        rung += online.answer(online.asked, label)
    assert rung
    with venn.online.Watch(tmp_path / "run.db") as watch:
        points = watch.series()
        assert [point.step for point in points] == list(range(8, 201, 8))
        told = online.told["Conformal"].snapshot()
        assert points[-1].figures["Conformal"]["curves"] == told["curves"]
        assert len(watch.series(points=5)) <= 7
        assert [point.step for point in watch.series(after=180)] == [184, 192, 200]
        alarms = watch.alarms("Conformal")
        assert [alarm["sentence"] for alarm in alarms] == [alarm.sentence for alarm in rung]
        assert watch.names == ("Conformal",)
        assert watch.classes == CLASSES
        with pytest.raises(KeyError, match="no predictor 'x' in this run"):
            watch.snapshot("x")
        assert watch.counts().rate > 0
    online.close()
    with venn.online.Watch(tmp_path / "run.db") as watch:
        snapshot = watch.snapshot("Conformal")
        for name in ("at", "sentence"):  # the question of the change, which the monitor alone does not know
            snapshot["monitor"]["verdict"].pop(name, None)
        monitor = online.monitors["Conformal"].snapshot()
        del monitor["verdict"]["sentence"]
        assert snapshot == json.loads(json.dumps({"told": told, "monitor": monitor}))
    with pytest.raises(venn.online.JournalError, match="is closed"):
        watch.counts()


@pytest.mark.parametrize("what", ["deleted", "moved", "replaced"])
@pytest.mark.parametrize("together", [False, True])
def test_a_journal_that_is_gone_is_noticed_by_the_next_event(tmp_path, what, together):
    path = tmp_path / "run.db"
    online = opened(path)
    online.ask([0.0, 0.0], "first")
    if what == "deleted":
        path.unlink()
    else:
        path.rename(tmp_path / "elsewhere.db")
    if what == "replaced":
        path.write_bytes(b"")
    asked = online.asked
    acts = [
        lambda: online.ask([0.0, 0.0], "second"), lambda: online.answer("first", "a"), lambda: online.expire("first"),
    ]  # fmt: skip
    for act in acts[: 1 if together else 3]:  # after a transaction that failed a run is of no further use
        with (
            pytest.raises(venn.online.JournalError, match="deleted, moved or replaced"),
            online.transaction() if together else nullcontext(),
        ):
            act()
    assert (online.asked, online.answered, online.pending) == (asked, 0, ("first",))
    online.journal.close()


def overwritten(path, table, column, value):
    """Write a value that the table does not allow, as a damaged disk may."""
    db = sqlite3.connect(path, isolation_level=None)
    (strict,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    for sql, change in ((strict.replace(" NOT NULL", "").replace(" STRICT", ""), True), (strict, False)):
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, table))
        db.close()
        db = sqlite3.connect(path, isolation_level=None)
        if change:
            db.execute(f"UPDATE {table} SET {column} = {value}")
    db.close()
    for file in path.parent.glob("run.db-state-*"):
        file.unlink()


@pytest.mark.parametrize("value", ["NULL", "'x'", "x'00ff'"], ids=["null", "text", "bytes"])
@pytest.mark.parametrize(
    ("table", "column", "read"),
    [
        ("answers", "event", lambda watch: watch.counts()), ("answers", "time", lambda watch: watch.counts()),
        ("questions", "time", lambda watch: watch.counts()), ("answers", "truth", lambda watch: watch.record()),
        ("questions", "predictions", lambda watch: watch.latest()), ("series", "figures", lambda watch: watch.series()),
        ("latest", "snapshot", lambda watch: watch.snapshot("TransductiveVenn")),
        ("run", "value", lambda watch: watch.counts()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_values_that_nobody_has_written_are_the_named_error(table, column, read, value, tmp_path):
    path = tmp_path / "run.db"
    online = opened(path, every=5)
    happen(online, events_of(20))
    online.close()
    overwritten(path, table, column, value)
    with pytest.raises(venn.online.JournalError, match=r"run\.db"), venn.online.Watch(path) as watch:
        read(watch)
    with suppress(venn.online.JournalError):  # another exception would leave it
        opened(path).journal.close()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda watch: watch.alarms("TransductiveVenn", 2**63), f"last must be at most {2**63 - 1}, got {2**63}"),
        (lambda watch: watch.alarms("TransductiveVenn", -1), "last must be an integer >= 0, got -1"),
        (lambda watch: watch.latest([3]), r"questions must be an integer >= 0, got \[3\]"),
        (lambda watch: watch.outcomes("3"), "answers must be an integer >= 0, got '3'"),
        (lambda watch: watch.series(after=0.5), "after must be an integer >= 0, got 0.5"),
        (lambda watch: watch.series(0), "points must be an integer >= 1, got 0"),
        (lambda watch: watch.asked_at("1"), "number must be an integer >= 1, got '1'"),
        (lambda watch: watch.answered_at(None), "step must be an integer >= 1, got None"),
    ],
    ids=range(8),
)
def test_a_viewer_who_asks_with_a_bad_number_is_not_told_that_the_journal_is(tmp_path, ask, said):
    opened(tmp_path / "run.db").close()
    with venn.online.Watch(tmp_path / "run.db") as watch, pytest.raises((TypeError, ValueError), match=said) as caught:
        ask(watch)
    assert caught.type is not venn.online.JournalError


@pytest.mark.parametrize("number", [-1, 0, 3, 2**63])
def test_there_is_no_time_of_what_has_no_number(tmp_path, number):
    with opened(tmp_path / "run.db") as online:
        happen(online, events_of(2))
        with venn.online.Watch(tmp_path / "run.db") as watch:
            assert watch.asked_at(1) is not None
            assert watch.asked_at(number) is watch.answered_at(number) is None
