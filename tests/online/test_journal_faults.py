"""What goes wrong with a journal: a full disk, an interrupt, two owners, a file that was spoilt."""

import json
import os
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest
from test_journal import abandon, events_of, happen, opened
from test_late_labels import CLASSES, MAKERS, examples, state

import venn
from venn.online import chain
from venn.online.chain import encode


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


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a Unix")
def test_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=420k", "none", disk], capture_output=True).returncode:
        pytest.skip("this machine allows no mount")
    try:
        online = opened(disk / "run.db", every=4)
        with pytest.raises(venn.online.JournalError, match="disk"):  # noqa: PT012
            for i in range(10_000):
                before = state(online)
                online.ask([float(i % 7), 0.0], i)
                before = state(online)
                online.answer(i, CLASSES[i % 3])
                if i == 8:  # a checkpoint is there too, however long its thread takes
                    online.journal.checkpoints.wait()
        assert online.answered > 8
        assert state(online) == before
        abandon(online)
        for file in disk.glob("run.db*"):
            shutil.copy(file, tmp_path)
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # a thread may still write a checkpoint there
    again = opened(tmp_path / "run.db", every=4)
    assert state(again) == before
    again.close()


def test_an_interrupt_while_it_learns(tmp_path, monkeypatch):
    online = opened(tmp_path / "run.db")
    happen(online, events_of(6))
    online.ask([1.0, 2.0], "last")

    def interrupted(x, y, prepared=None):
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


def sealed(db):
    """Compute all checksums again: what is spoilt is then not damage, but a lie."""
    rows = db.execute("SELECT key, value FROM run").fetchall()
    token = json.loads(dict(rows)["token"])
    for row in rows:
        db.execute("UPDATE run SET checksum = ? WHERE key = ?", (chain.row_checksum(token, ("run", *row)), row[0]))
    for table, key in chain.KEYS.items():
        kind = chain.QuestionRow if table == "questions" else chain.AnswerRow
        for row in db.execute(f"SELECT {chain.COLUMNS[table]} FROM {table}").fetchall():
            checksum = kind.read(table, row).checksum(token)
            db.execute(f"UPDATE {table} SET checksum = ? WHERE {key} = ?", (checksum, row[0]))


def spoil(statement, seal=True):
    """Return what lets a statement spoil a journal, without its checkpoints: all is learned again."""

    def spoilt(path):
        with sqlite3.connect(path) as db:
            db.execute(statement)
            if seal:
                sealed(db)
        db.close()
        for file in path.parent.glob("run.db-state-*"):
            file.unlink()

    return spoilt


def last_byte(column):
    return f"UPDATE questions SET {column} = CAST(substr({column}, 1, length({column}) - 1) || x'01' AS BLOB)"


def another_database(path):
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE run (key TEXT, value TEXT)")
    db.close()


SPOILT = {
    "text": (lambda path: path.write_text("hello, " * 1000), "cannot be opened as a journal: file is not a database"),
    "another database": (another_database, "must be a journal, got another SQLite file"),
    "version": (
        spoil("UPDATE run SET value = '0' WHERE key = 'version'"),
        "must be a journal of version 5, which this program writes, got 0: go on with the program that wrote it",
    ),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be opened as a journal"),
    "prediction": (
        spoil(last_byte("predictions") + " WHERE event = 1"), "at event 1 holds another one|must be those of",
    ),
    "hole": (
        spoil("DELETE FROM answers WHERE step = 2", False),
        r"is damaged: event \d+ is missing from questions, answers and expired",
    ),
    "label": (
        spoil("UPDATE answers SET truth = -1 WHERE step = 2"),
        "codes of labels must be integers from 0 to 2, got -1",
    ),
    "trigger": (
        spoil("CREATE TRIGGER hostile AFTER INSERT ON questions BEGIN DELETE FROM answers; END"),
        "must have the tables of a journal and nothing else",
    ),
    "object": (spoil("UPDATE questions SET x = x'00' WHERE event = 1"), "cannot be gone on with"),
    "label changed": (
        spoil("UPDATE answers SET truth = (truth + 1) % 3 WHERE step = 2", False),
        r"is damaged: answers, step 2 \(event \d+\), is not as written",
    ),
    "object changed": (
        spoil(last_byte("x") + " WHERE event = 1", False),
        r"is damaged: questions, event 1 \(event 1\), is not as written",
    ),
}  # fmt: skip


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
    with pytest.raises(venn.online.JournalError, match="must be a journal, a file, got a folder"):
        venn.online.Watch(tmp_path)


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
        return venn.Panel(span=venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())))

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
    online.journal, online._guard.broken = None, None
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

    monkeypatch.setattr("venn.online.files.written", no_room)
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
        ({"every": 0}, ValueError), ({"every": 1.5}, TypeError), ({"durable": "no"}, TypeError),
        ({"share": 0}, ValueError),
    ],
    ids=["zero", "fraction", "text", "share"],
)  # fmt: skip
def test_bad_parameters_of_a_journal(parameters, error, tmp_path):
    with pytest.raises(error, match=next(iter(parameters))):
        venn.online.Journal(tmp_path / "run.db", **parameters)
