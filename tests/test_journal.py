"""The journal: nothing lost, nothing twice, nothing half; what is wrong with a file is said."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import labels, objects
from test_late_labels import CLASSES, MAKERS, examples, shuffled_events, state

import venn
from venn.online import chain, restart
from venn.online.bulletin import spacing
from venn.online.codec import encode


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
    events = events_of(11)
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
            (12, "pending", None, None),
            (11, "pending", None, None),
            (10, "answered", y[9], 2),
            (9, "pending", None, None),
        ]
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


# -------------------------------------------------------------------- what goes wrong


def full(online):
    """Let the next page be one too many."""
    db = online.journal.connection
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")


def test_a_full_disk_refuses_and_spoils_nothing(tmp_path):
    online = opened(tmp_path / "run.db")
    happen(online, events_of(10))
    full(online)
    count = 0
    with pytest.raises(venn.online.JournalError, match=r"run\.db cannot be written: database or disk is full"):  # noqa: PT012
        for count in range(10_000):
            before = state(online)
            online.ask([float(count), 0.0], f"more {count}")
    assert count > 0
    assert state(online) == before
    with pytest.raises(venn.online.JournalError, match="full"):
        online.ask([0.5, 0.5], "x" * 5000)
    assert state(online) == before
    online.journal.connection.execute("PRAGMA max_page_count = 1000000")
    online.ask([0.5, 0.5], "again")  # there is room again
    online.answer("again", "a")
    after = state(online)
    abandon(online)
    assert state(opened(tmp_path / "run.db")) == after


def test_a_full_disk_within_a_transaction_ends_the_object_not_the_run(tmp_path):
    online = opened(tmp_path / "run.db")
    happen(online, events_of(10))
    before = state(online)
    full(online)
    with pytest.raises(venn.online.JournalError, match="full"), online.transaction():  # noqa: PT012
        for i in range(10_000):
            online.ask([float(i), 0.0], f"more {i}")
    with pytest.raises(venn.online.JournalError, match="this run could not write its journal: make it again"):
        online.ask([0.0, 0.0])
    online.close()
    assert state(opened(tmp_path / "run.db")) == before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a Unix")
def test_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], capture_output=True).returncode:
        pytest.skip("this machine allows no mount")
    try:
        online = opened(disk / "run.db", every=20)
        with pytest.raises(venn.online.JournalError, match="disk"):  # noqa: PT012
            for i in range(10_000):
                before = state(online)
                online.ask([float(i % 7), 0.0], i)
                before = state(online)
                online.answer(i, CLASSES[i % 3])
        assert online.answered > 20
        assert state(online) == before
        abandon(online)
        for file in disk.glob("run.db*"):
            shutil.copy(file, tmp_path)
    finally:
        subprocess.run(["umount", disk], check=True)
    again = opened(tmp_path / "run.db", every=20)
    assert state(again) == before
    again.close()


def test_an_interrupt_while_it_learns(tmp_path, monkeypatch):
    online = opened(tmp_path / "run.db")
    happen(online, events_of(6))
    online.ask([1.0, 2.0], "last")

    def interrupted(x, y, noted=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(online.panel, "learn_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        online.answer("last", "a")
    with pytest.raises(venn.online.JournalError, match="this run was interrupted"):
        online.ask([0.0, 0.0])
    online.close()
    with opened(tmp_path / "run.db") as again:  # what was committed is learned
        assert "last" not in again.pending
        assert again.panel["TransductiveVenn"].machine.n == again.answered


def test_a_run_has_one_owner(tmp_path):
    online = opened(tmp_path / "run.db")
    code = (
        "import sys, venn\n"
        "machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ['a', 'b', 'c'])\n"
        "try:\n    venn.Online(venn.TransductiveVenn(machine), None, sys.argv[1])\n"
        "except venn.online.JournalError as error:\n    print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run.db")], capture_output=True, text=True, check=True
    )
    assert "must belong to one process" in told.stdout
    online.ask([0.0, 0.0])
    online.close()


def sealed(db):
    """Compute the whole chain again: what is spoilt is then not damage, but a lie."""
    root = chain.root_of(db)
    seals, last, events = {"run": root}, root.checksum, []
    for table, key in chain.KEYS.items():
        kind = chain.Question if table == "questions" else chain.Answer
        rows = db.execute(f"SELECT {chain.COLUMNS[table]} FROM {table}").fetchall()
        events += [(kind.read(table, row), table, key, row[0]) for row in rows]
    for event, table, key, number in sorted(events, key=lambda one: one[0].event):
        last = event.checksum(last)
        db.execute(f"UPDATE {table} SET checksum = ? WHERE {key} = ?", (last, number))
    seals["events"] = (len(events), last)
    for name, seal in seals.items():
        db.execute("UPDATE seals SET rows = ?, checksum = ? WHERE name = ?", (*seal, name))


def spoil_version(path):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE run SET value = '0' WHERE key = 'version'")
        sealed(db)
    db.close()


def spoil_prediction(path):
    with sqlite3.connect(path) as db:
        (content,) = db.execute("SELECT predictions FROM questions WHERE event = 1").fetchone()
        db.execute("UPDATE questions SET predictions = ? WHERE event = 1", (content[:-1] + b"\x01",))
        sealed(db)
    db.close()
    for file in path.parent.glob("run.db-state-*"):
        file.unlink()


def spoil_hole(path):
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM answers WHERE step = 2")
    db.close()
    for file in path.parent.glob("run.db-state-*"):
        file.unlink()


def spoil(path, statement, seal=True):
    with sqlite3.connect(path) as db:
        db.execute(statement)
        if seal:
            sealed(db)
    db.close()
    for file in path.parent.glob("run.db-state-*"):
        file.unlink()


def spoil_label(path):
    spoil(path, "UPDATE answers SET truth = -1 WHERE step = 2")


def change_label(path):
    spoil(path, "UPDATE answers SET truth = (truth + 1) % 3 WHERE step = 2", seal=False)


def change_object(path):
    spoil(
        path, "UPDATE questions SET x = CAST(substr(x, 1, length(x) - 1) || x'01' AS BLOB) WHERE event = 1", seal=False
    )


def spoil_trigger(path):
    spoil(path, "CREATE TRIGGER hostile AFTER INSERT ON questions BEGIN DELETE FROM answers; END")


def spoil_object(path):
    spoil(path, "UPDATE questions SET x = x'00' WHERE event = 1")


def another_database(path):
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE run (key TEXT, value TEXT)")
    db.close()


SPOILT = {
    "text": (lambda path: path.write_text("hello, " * 1000), "cannot be opened as a journal: file is not a database"),
    "another database": (another_database, "must be a journal, got another SQLite file"),
    "version": (spoil_version, "must be a journal of version 4, which this program writes, got 0"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be opened as a journal"),
    "prediction": (spoil_prediction, "at event 1 holds another one|must be those of"),
    "hole": (spoil_hole, r"is damaged: event \d+ is missing from questions, answers and expired"),
    "label": (spoil_label, "codes of labels must be integers from 0 to 2, got -1"),
    "trigger": (spoil_trigger, "must have the tables of a journal and nothing else"),
    "object": (spoil_object, "cannot be gone on with"),
    "label changed": (change_label, r"is damaged: answers, step 2 \(event \d+\), is not as written"),
    "object changed": (change_object, r"is damaged: questions, event 1 \(event 1\), is not as written"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_journal_is_refused_and_left_alone(what, tmp_path):
    path = tmp_path / "run.db"
    online = opened(path)
    happen(online, events_of(10))
    abandon(online)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    damage, message = SPOILT[what]
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises((venn.online.JournalError, ValueError), match=message):
        opened(path)
    assert before == (path.read_bytes() if path.is_file() else None)
    if what in ("text", "another database", "version", "folder"):
        with pytest.raises(venn.online.JournalError, match="journal"):
            venn.online.Watch(path)


def test_no_file_to_watch(tmp_path):
    with pytest.raises(venn.online.JournalError, match="must be a journal, and there is no such file"):
        venn.online.Watch(tmp_path / "none.db")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a Unix")
def test_a_read_only_journal(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    abandon(opened(path))
    path.chmod(0o444)
    if os.geteuid() == 0:  # root may write all the same: what others are told
        real = os.access
        monkeypatch.setattr(os, "access", lambda file, mode: mode != os.W_OK and real(file, mode))
    with pytest.raises(venn.online.JournalError, match=r"run\.db must be writable, and is read-only"):
        opened(path)


DIFFERENT = {
    "classes": lambda path: venn.Online(
        venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ("a", "b"))), None, path
    ),
    "names": lambda path: venn.Online(venn.Panel(other=MAKERS["venn"]()), venn.Monitor(CLASSES), path),
    "predictors": lambda path: venn.Online(
        venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.25), 1.0, CLASSES)), venn.Monitor(CLASSES), path
    ),
    "monitors": lambda path: venn.Online(MAKERS["venn"](), venn.Monitor(CLASSES, level=0.05), path),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_run_with_other_parameters_is_refused(what, tmp_path):
    abandon(opened(tmp_path / "run.db"))
    with pytest.raises(venn.online.JournalError, match=f"must hold a run with the same {what}"):
        DIFFERENT[what](tmp_path / "run.db")


def test_a_predictor_that_has_learned_something_else_is_refused(tmp_path):
    abandon(opened(tmp_path / "run.db"))
    model = MAKERS["venn"]()
    model.learn_one([0.0, 0.0], "a")
    with pytest.raises(venn.online.JournalError, match="must hold a run that started from the same state"):
        venn.Online(model, venn.Monitor(CLASSES), tmp_path / "run.db")


def test_damaged_checkpoints_cost_time_and_nothing_else(tmp_path, caplog):
    online = opened(tmp_path / "run.db", every=5)
    happen(online, events_of(20))
    expected = state(online)
    abandon(online)
    newest, older = sorted(tmp_path.glob("run.db-state-*"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:-100])
    online = opened(tmp_path / "run.db", every=10**6)
    assert state(online) == expected
    abandon(online)
    older.write_bytes(b"nothing")
    online = opened(tmp_path / "run.db", every=10**6)
    assert "can be read, and all is learned again" in caplog.text
    assert state(online) == expected


def test_a_schema_that_is_no_text_any_more(tmp_path):
    """SQLite's message quotes the damaged bytes, which its reader in Python cannot decode."""
    path = tmp_path / "run.db"
    opened(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE ", b"CREATE \xe1ABLE "))
    for use in (opened, venn.online.Watch, venn.online.verify):
        with pytest.raises(venn.online.JournalError, match=r"run\.db cannot be (opened|read) as a journal"):
            use(path)


def test_a_checkpoint_from_the_future_is_passed_over(tmp_path):
    """As after a loss of power that took the journal's last transactions with it."""
    online = opened(tmp_path / "run.db", every=10**6)
    happen(online, events_of(10)[:8])
    expected = state(online)
    abandon(online)
    shutil.copytree(tmp_path, tmp_path / "old")
    online = opened(tmp_path / "run.db", every=10**6)
    happen(online, events_of(10)[8:])
    online.close()
    for file in tmp_path.glob("run.db-state-*"):
        shutil.copy(file, tmp_path / "old")
    assert state(opened(tmp_path / "old" / "run.db")) == expected


def test_checkpoints_of_a_run_that_is_no_more_are_not_those_of_the_next(tmp_path):
    online = opened(tmp_path / "run.db", every=7)
    happen(online, events_of(30))
    online.close()
    (tmp_path / "run.db").unlink()
    shutil.copytree(tmp_path, tmp_path / "old")
    online = opened(tmp_path / "run.db", every=7)
    happen(online, events_of(30, seed=5))
    expected = state(online)
    abandon(online)
    for file in (tmp_path / "old").glob("run.db-state-*"):
        shutil.copy(file, tmp_path)
    online = opened(tmp_path / "run.db", every=7)
    assert state(online) == expected
    online.close()


def test_a_look_at_the_machines_between_question_and_answer_leaves_no_trace(tmp_path):
    def panel():
        machine = venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES)
        return venn.Panel(span=venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax())))

    X, y = examples("normal", 40)
    online = venn.Online(panel(), None, tmp_path / "run.db")
    for i, x in enumerate(X):
        online.ask(x, i)
        if i % 3 == 0:
            online.panel.predict_one(X[(7 * i) % 40])
        if i % 5 == 0:
            with pytest.raises(ValueError, match="x must be finite"):
                online.ask([np.nan, 1.0])
        if i >= 2:
            online.answer(i - 2, y[i - 2])
            if i % 4 == 0:
                online.panel.predict_one(X[i - 1])  # that which is learned next
    before = state(online)
    abandon(online)
    again = venn.Online(panel(), None, tmp_path / "run.db")
    assert state(again)[1] == before[1]
    assert encode(again.ask([0.3, 0.3])) == encode(online_like(online).ask([0.3, 0.3]))


def online_like(online):
    """Ask what is left in memory of a run whose journal is gone."""
    online.journal, online._sound.broken = None, None
    return online


def test_one_file_has_one_owner_by_whatever_name(tmp_path, monkeypatch):
    online = opened(tmp_path / "run.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "run.db")
    with pytest.raises(venn.online.JournalError, match="must belong to one process"):
        opened(tmp_path / "link.db")
    with pytest.raises(venn.online.JournalError, match="must be opened once"):
        venn.Online(MAKERS["venn"](), venn.Monitor(CLASSES), online.journal)
    monkeypatch.chdir(tmp_path)
    relative = opened("other.db", every=5)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    happen(relative, events_of(20))
    relative.close()
    assert not list((tmp_path / "elsewhere").iterdir())
    online.ask([0.0, 0.0])  # and the first one goes on
    online.close()


def test_an_interrupt_while_it_predicts(tmp_path, monkeypatch):
    online = opened(tmp_path / "run.db")
    happen(online, events_of(6))
    before = state(online)

    def interrupted(x):
        raise KeyboardInterrupt

    monkeypatch.setattr(online.panel, "predict_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        online.ask([0.0, 0.0])
    monkeypatch.undo()
    with pytest.raises(venn.online.JournalError, match="this run was interrupted"):
        online.ask([0.0, 0.0])
    online.close()
    assert state(opened(tmp_path / "run.db")) == before


def test_a_checkpoint_that_cannot_be_written_is_missed(tmp_path, monkeypatch, caplog):
    online = opened(tmp_path / "run.db", every=5)

    def no_room(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("venn.online.archive.written", no_room)
    happen(online, events_of(20))
    online.journal.checkpoints.wait()
    assert "can be written: [Errno 28] No space left" in caplog.text
    expected = state(online)
    abandon(online)
    monkeypatch.undo()
    assert state(opened(tmp_path / "run.db")) == expected


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"every": 0}, ValueError),
        ({"every": 1.5}, TypeError),
        ({"durable": "no"}, TypeError),
        ({"share": 0}, ValueError),
    ],
    ids=["zero", "fraction", "text", "share"],
)
def test_bad_parameters_of_a_journal(parameters, error, tmp_path):
    with pytest.raises(error, match=next(iter(parameters))):
        venn.online.Journal(tmp_path / "run.db", **parameters)


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
        assert snapshot == json.loads(json.dumps({"told": told, "monitor": online.monitors["Conformal"].snapshot()}))
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
        lambda: online.ask([0.0, 0.0], "second"),
        lambda: online.answer("first", "a"),
        lambda: online.expire("first"),
    ]
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
        ("answers", "event", lambda watch: watch.counts()),
        ("answers", "time", lambda watch: watch.counts()),
        ("questions", "time", lambda watch: watch.counts()),
        ("answers", "truth", lambda watch: watch.record()),
        ("questions", "predictions", lambda watch: watch.latest()),
        ("series", "figures", lambda watch: watch.series()),
        ("latest", "snapshot", lambda watch: watch.snapshot("TransductiveVenn")),
        ("run", "value", lambda watch: watch.counts()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
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


def test_a_viewer_who_asks_with_what_sqlite_does_not_hold(tmp_path):
    opened(tmp_path / "run.db").close()
    with (
        venn.online.Watch(tmp_path / "run.db") as watch,
        pytest.raises(venn.online.JournalError, match=r"run\.db cannot be read"),
    ):
        watch.alarms("TransductiveVenn", 2**63)
