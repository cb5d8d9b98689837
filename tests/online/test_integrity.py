"""Journals that are damaged: each row, each column is noticed, is named, and what is whole is saved to the last bit."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from click.testing import CliRunner
from conftest import well
from naive import rows as naive
from test_journal import abandon, events_of, happen, opened
from test_late_labels import state

import venn
from venn import cli
from venn.monitors.alarms import Alarm
from venn.online import chain, files

JournalError = venn.online.JournalError
EVENTS = events_of(24)
PATIENCE = 6
KEYS = {"questions": "event", "answers": "step", "expired": "number"}
TABLES = ("run", *KEYS, "alarms", "series", "latest", "positions")
COLUMNS = [
    (table, column)
    for table, columns in (
        ("run", "key value checksum"), ("questions", "event id time step x predictions checksum"),
        ("answers", "step event question time truth checksum"), ("expired", "number event question time checksum"),
        ("alarms", "predictor number step time alarm checksum"), ("series", "step time figures checksum"),
        ("latest", "predictor step time snapshot checksum"), ("positions", "source position checksum"),
    )
    for column in columns.split()
]  # fmt: skip


def live(online, events):
    """Let events happen; answers that come too late are refused."""
    for event in events:
        try:
            happen(online, [event])
        except ValueError as error:
            if not any(why in str(error) for why in ("given up", "asked before", "is answered", "waits for")):
                raise


def begun(path, every=10**6):
    return opened(path, every=every, patience=PATIENCE)


def rows_of(path):
    with closing(sqlite3.connect(path)) as db:
        return {table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A journal with rows in all tables, whose process died; its last checkpoint is of the middle."""
    folder = tmp_path_factory.mktemp("kept")
    online = begun(folder / "living" / "run.db")
    live(online, EVENTS[:20])
    online.close()
    online = begun(folder / "living" / "run.db")
    live(online, EVENTS[20:])
    alarm = Alarm(7, "Ville", 9.5, "a sentence", "a source")
    online.journal.ring("TransductiveVenn", 1, 7, 1.5, alarm)
    online.reach("a source", {"offset": 7})
    online.journal.checkpoints.wait()
    assert online.expired > 2
    shutil.copytree(folder / "living", folder / "dead")
    abandon(online)
    return folder / "dead"


@pytest.fixture(scope="module")
def all_rows(kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    shutil.copytree(kept, folder / "run")
    return rows_of(folder / "run" / "run.db")


@pytest.fixture
def path(kept, tmp_path):
    shutil.copytree(kept, tmp_path / "run")
    return tmp_path / "run" / "run.db"


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(*statement) if isinstance(statement, tuple) else db.execute(statement)


def other(value):
    if isinstance(value, int | float):
        return value + 1000
    return value[:-1] + (b"\1" if isinstance(value, bytes) else "?")


def readers(path):
    """Those who must see all that is in a journal."""

    def record():
        with venn.online.Watch(path) as watch:
            watch.record()

    return (lambda: venn.online.verify(path)), record


# ------------------------------------------------------------------------- what is noticed


def test_checksums_are_those_of_their_definition(path):
    rows = rows_of(path)
    token = json.loads(dict(row[:2] for row in rows["run"])["token"])
    expected = naive.checksums(token, {table: [row[:-1] for row in held] for table, held in rows.items()})
    for table, held in rows.items():
        assert held, table
        assert [row[-1] for row in held] == expected[table], table
    assert venn.online.verify(path)[:3] == tuple(len(rows[table]) for table in KEYS)


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=lambda value: value)
def test_every_column_of_a_row_is_noticed(table, column, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        key = db.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE pk > 0").fetchone()[0]
        rows = db.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
        at, value = rows[len(rows) // 3] if column != key else rows[-1]
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (other(value), at))
    for read in readers(path):
        with pytest.raises(JournalError, match=r"run\.db (is damaged|must be|cannot be)") as caught:
            read()
        if table in KEYS and column not in (key, "event"):
            assert f"{table}, {KEYS[table]} {at} (event " in str(caught.value)


DAMAGE = {
    "a row less": "DELETE FROM answers WHERE step = 4",
    "an expiry less": "DELETE FROM expired WHERE number = 1",
    "a question less": "DELETE FROM questions WHERE event = 3",
    "a row twice": "INSERT INTO answers SELECT step + 100, event, question + 1000, time, truth, checksum FROM answers",
    "a question that nobody asked": "INSERT INTO questions SELECT 5000, 'k', time, step, x, predictions, checksum"
    " FROM questions WHERE event = 1",
    "all truths": "UPDATE answers SET truth = 2 - truth WHERE step <= 6",
    "steps in another order": "UPDATE answers SET step = CASE step WHEN 2 THEN -3 ELSE 2 END WHERE step IN (2, 3)",
    "another position": "UPDATE positions SET position = '{\"offset\": 8}'",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_rows_that_are_missing_or_new_are_noticed(what, path):
    change(path, DAMAGE[what])
    for read in readers(path):
        with pytest.raises(JournalError, match=r"run\.db is damaged: .*`venn salvage .*RESCUED`"):
            read()


def test_two_answers_exchanged(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        rows = dict(db.execute("SELECT step, truth FROM answers"))
        first, second = next((i, j) for i in rows for j in rows if rows[i] != rows[j])
        for step, truth in ((first, rows[second]), (second, rows[first])):
            db.execute("UPDATE answers SET truth = ? WHERE step = ?", (truth, step))
    with pytest.raises(JournalError, match=rf"answers, step {min(first, second)} \(event \d+\), is not as written"):
        venn.online.verify(path)


def test_an_index_that_has_lost_an_entry_is_noticed(path):
    raw = path.read_bytes()
    abandon(begun(path))  # the log goes into the file
    change(path, ("PRAGMA wal_checkpoint(TRUNCATE)",))
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_answers_1'").fetchone()
    raw = bytearray(path.read_bytes())
    raw[4096 * page - 3] ^= 1  # the last bytes of a page are of its first entry
    path.write_bytes(raw)
    with pytest.raises(JournalError, match="is damaged: its structure is not whole"):
        venn.online.verify(path)


def test_an_id_that_only_a_damaged_index_has(path):
    """Its page is that of another index: new ids are not blamed for it."""
    abandon(begun(path))  # the log goes into the file
    change(path, ("PRAGMA wal_checkpoint(TRUNCATE)",))
    raw = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        there = dict(db.execute("SELECT tbl_name, rootpage FROM sqlite_master WHERE name LIKE 'sqlite_autoindex%'"))
        asked = {id for (id,) in db.execute("SELECT id FROM questions")}
        fresh = next(event for (event,) in db.execute("SELECT question FROM answers") if event not in asked)
    to, source = (4096 * (there[table] - 1) for table in ("questions", "answers"))
    raw[to : to + 4096] = raw[source : source + 4096]
    path.write_bytes(raw)
    online = begun(path)
    with pytest.raises(JournalError, match=f"the index of ids has {fresh}, which no question has"):
        online.ask([0.0, 0.0], fresh)
    abandon(online)


def test_an_id_that_only_a_damaged_question_has(path):
    """It is of a row before the checkpoint, which a start does not read: a new id is not blamed for it."""
    change(path, "UPDATE questions SET id = 1000 WHERE event = 1")
    online = begun(path)
    with pytest.raises(JournalError, match="questions, event 1, is not as written"):
        online.ask([0.0, 0.0], 1000)
    abandon(online)


def test_a_start_reads_what_comes_after_the_checkpoint(path):
    """Rows before are those of `verify`, of records, and of events that come again."""
    change(path, "UPDATE answers SET truth = 2 - truth WHERE step <= 2 AND truth <> 1")
    online = begun(path)
    with pytest.raises(JournalError, match=r"answers, step [12] \(event"):
        online.record()
    with pytest.raises(JournalError, match=r"answers, step [12] \(event"):
        list(online.follow([], again=True))
    abandon(online)
    change(path, "UPDATE answers SET time = time + 1 WHERE step = (SELECT max(step) FROM answers)")
    with pytest.raises(JournalError, match=r"answers, step \d+ \(event \d+\), is not as written"):
        begun(path)


def test_a_question_that_waits_is_read_with_its_checksum(path):
    waiting = begun(path)
    oldest = next(one.event for one in waiting.journal.questions(0) if one.id == waiting.pending[0])
    waiting.close()
    change(path, f"UPDATE questions SET time = time + 1 WHERE event = {oldest}")
    with pytest.raises(JournalError, match=f"questions, event {oldest}, is not as written"):
        begun(path)


def test_questions_are_read_in_the_order_asked_for_and_one_that_is_missing_is_named(path, monkeypatch):
    monkeypatch.setattr("venn.online.journal.SOME", 3)
    online = begun(path)
    events = [one.event for one in online.journal.questions(0)][::-1]
    assert [one.event for one in online.journal.some(events)] == events
    assert online.journal.some([]) == []
    with pytest.raises(JournalError, match=f"questions, event {events[0] + 1000}, is missing"):
        online.journal.some([*events, events[0] + 1000])
    abandon(online)


def test_a_journal_is_verified_while_its_run_goes_on(tmp_path):
    online = begun(tmp_path / "run.db")
    live(online, EVENTS[:15])
    before = online.journal.events
    with closing(sqlite3.connect(tmp_path / "run.db", isolation_level=None)) as db:
        reading = chain.whole(db, tmp_path / "run.db", pages=True)
        first = [next(reading) for _ in range(4)]
        live(online, EVENTS[15:])
        assert len(first) + len(list(reading)) == before < online.journal.events
    assert venn.online.verify(tmp_path / "run.db")[:3] == (online.asked, online.answered, online.expired)
    with online.transaction():
        online.ask([0.0, 0.0], "within")
        online.record()
    assert online.asked == 25
    abandon(online)
    assert venn.online.verify(tmp_path / "run.db").asked == 25


# ------------------------------------------------------------------------------ what is lost


def test_a_log_that_is_gone_costs_its_transactions_and_is_told_where_a_checkpoint_is_of_a_later_event(path, caplog):
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    older = path.read_bytes()
    online = begun(path)
    online.ask([0.0, 0.0], "one more")
    events = online.journal.events
    online.close()
    path.write_bytes(older)
    online = begun(path)
    assert online.journal.events == events - 1
    assert f"it ends after event {events - 1}, and a checkpoint is of event {events}" in caplog.text
    abandon(online)
    assert venn.online.verify(path)


def test_a_journal_that_has_become_empty_is_not_begun_anew(path):
    path.write_bytes(b"")
    with pytest.raises(JournalError, match=r"must be the journal of the checkpoints beside it, and is empty"):
        begun(path)
    path.unlink()  # one that is gone, is
    online = begun(path)
    assert online.asked == 0
    abandon(online)


# ------------------------------------------------------------------------------ what is saved


@pytest.mark.parametrize("step", [1, 5, 9])
def test_the_whole_part_is_saved_to_the_last_bit_and_goes_on(step, path):
    before = rows_of(path)
    change(path, f"UPDATE answers SET truth = (truth + 1) % 3 WHERE step = {step}")
    (event,) = (row[1] for row in before["answers"] if row[0] == step)
    target = path.with_name("rescued.db")
    saved = venn.online.salvage(path, target)
    assert saved.damage == f"answers, step {step} (event {event}), is not as written"
    assert sum(saved[:3]) == event - 1
    assert saved.answered == step - 1
    assert not saved.positions
    rows = rows_of(target)
    for table, place in (("questions", 0), ("answers", 1), ("expired", 1)):
        assert rows[table] == [row for row in before[table] if row[place] < event]
    assert rows["run"] == before["run"]
    assert rows["series"] == [row for row in before["series"] if row[0] < step]
    assert rows["positions"] == rows["latest"] == []
    venn.online.verify(target)
    online = begun(target)
    expected = begun(path.with_name("expected.db"))
    happened = 0
    while expected.journal.events < event - 1:
        live(expected, [EVENTS[happened]])
        happened += 1
    assert state(online) == state(expected)
    live(online, EVENTS)  # what is known is refused
    abandon(expected)
    abandon(online)


def test_nothing_is_lost_where_the_damage_is_beside_the_events(path):
    before = rows_of(path)
    change(path, "UPDATE series SET figures = '{}' WHERE step = 8", "UPDATE alarms SET step = 1")
    with pytest.raises(JournalError, match="alarms, row 'TransductiveVenn', is not as written"):
        venn.online.verify(path)
    saved = venn.online.salvage(path, path.with_name("rescued.db"))
    assert (saved.damage, saved.positions) == ("alarms, row 'TransductiveVenn', is not as written", True)
    rows = rows_of(path.with_name("rescued.db"))
    for table in ("run", "questions", "answers", "expired", "latest", "positions"):
        assert rows[table] == before[table]
    assert [row[0] for row in rows["series"]] == [row[0] for row in before["series"] if row[0] != 8]
    assert rows["alarms"] == []
    found = venn.online.verify(path.with_name("rescued.db"))
    assert found.checkpoints == 2
    online = begun(path.with_name("rescued.db"))
    assert online.position("a source") == {"offset": 7}
    abandon(online)


def test_a_description_that_is_no_json_is_said_in_words_of_the_file(path):
    change(path, "UPDATE run SET value = '[' WHERE key = 'names'")
    for command in ("verify", "report", "monitor"):
        said = CliRunner().invoke(cli.main, [command, str(path)])
        assert said.exit_code == 1
        assert "run.db cannot be opened as a journal: the description of its run is damaged" in said.output


@pytest.mark.parametrize("seed", range(24))
def test_salvage_names_damage_where_verify_does(seed, path, all_rows):
    """One bit or a stretch of the file or of its log, or the end of either cut off; a log may lose its end unseen."""
    dice = random.Random(seed)
    file = path if seed % 2 else path.with_name("run.db-wal")
    raw = bytearray(file.read_bytes())
    place = dice.randrange(len(raw))
    if seed % 4 < 2:
        raw[place] ^= 1 << dice.randrange(8)
    elif seed % 8 < 5:
        raw[place : place + 500] = bytes(len(raw[place : place + 500]))
    else:
        del raw[place:]
    file.write_bytes(raw)
    shutil.copytree(path.parent, path.parent.with_name("again"))
    try:
        venn.online.verify(path)
        said = ""
    except JournalError as error:
        said = str(error)
    rescued = path.with_name("rescued.db")
    try:
        saved = venn.online.salvage(path.parent.with_name("again") / "run.db", rescued)
    except JournalError:
        assert said
        return
    assert bool(saved.damage) == bool(said)
    venn.online.verify(rescued)
    events = sum(len(all_rows[table]) for table in KEYS)
    if saved.positions:  # where reading goes on: nothing of the source is passed over
        end = saved.asked + saved.answered + saved.expired
        online = begun(rescued)
        assert online.position("a source") in (None, {"offset": 7})
        assert end == events or online.position("a source") is None
        abandon(online)


def test_what_cannot_be_saved(path):
    change(path, "UPDATE run SET value = '[]' WHERE key = 'names'")
    with pytest.raises(
        JournalError, match=r"run\.db is damaged: the description of the run .* nothing of it can be saved"
    ):
        venn.online.salvage(path, path.with_name("rescued.db"))
    with pytest.raises(JournalError, match="must be a new file, and exists"):
        venn.online.salvage(path, path)
    with pytest.raises(JournalError, match="there is no such file"):
        venn.online.salvage(path.with_name("none.db"), path.with_name("rescued.db"))
    assert not list(path.parent.glob("rescued*"))


def test_the_commands(path, monkeypatch):
    monkeypatch.chdir(path.parent)

    def run(*arguments):
        return CliRunner().invoke(cli.main, list(arguments))

    said = well(run("verify", "run.db"))
    assert said.output.startswith("run.db is whole: 24 questions, ")
    newest = max(path.parent.glob("run.db-state-*"))
    newest.write_bytes(newest.read_bytes()[:-9])
    said = well(run("verify", "run.db"))
    assert f"{newest.name} cannot be read" in said.output
    change(path, "UPDATE questions SET id = 'x' WHERE event = 5")
    for command in ("verify", "report"):
        said = run(command, "run.db")
        assert said.exit_code == 1
        assert "Error: run.db is damaged: questions, event 5 (event 5), is not as written. `venn salvage" in said.output
        assert said.output.count("\n") == 1
    assert not os.path.exists("report.html")
    said = well(run("salvage", "run.db", "rescued.db"))
    assert "rescued.db holds the first " in said.output
    assert "questions, event 5 (event 5), is not as written" in said.output
    assert "positions in the sources" in said.output
    assert run("verify", "rescued.db").exit_code == 0
    assert run("salvage", "run.db", "rescued.db").exit_code == 1


# ------------------------------------------------------------------------------------ locks


def test_a_journal_with_two_names_is_refused(path):
    os.link(path, path.with_name("second.db"))
    for name in ("run.db", "second.db"):
        with pytest.raises(JournalError, match=r"must have one name, and has 2 \(hard links\)"):
            begun(path.with_name(name))
    path.with_name("second.db").unlink()
    begun(path).close()


IN = """
import sys, venn
for name in sys.argv[1:]:
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ['a', 'b', 'c'])
    try:
        venn.Online(venn.TransductiveVenn(machine), None, name)
        print("in")
    except venn.online.JournalError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the lock is that of the name")
def test_another_name_lets_no_second_process_in(tmp_path):
    runs = {}
    for how in ("linked", "moved", "symlink"):
        path, second = tmp_path / f"{how}.db", tmp_path / f"second_{how}.db"
        runs[second] = begun(path)
        if how == "linked":  # and the first name removed: the file has one name
            os.link(path, second)
            path.unlink()
        elif how == "moved":
            path.rename(second)
        else:
            second.symlink_to(path)
    told = subprocess.run([sys.executable, "-c", IN, *map(str, runs)], capture_output=True, text=True, check=True)
    assert told.stdout.count("must belong to one process") == len(told.stdout.splitlines()) == 3
    for second, online in runs.items():
        with pytest.raises(JournalError, match="must belong to one process"):
            begun(second)  # nor a second object of this one
        abandon(online)


# -------------------------------------------------------------------------------- checkpoints


def test_a_checkpoint_is_of_its_moment_however_long_it_takes(tmp_path, monkeypatch):
    online = begun(tmp_path / "run.db", every=10)
    write, go_on = files.write, threading.Event()
    monkeypatch.setattr(files, "write", lambda *arguments: go_on.wait(60) and write(*arguments))
    live(online, EVENTS)  # while the first checkpoint is being written
    expected = state(online)
    assert len(list(tmp_path.glob("run.db-state-*"))) == 1  # of the beginning
    threading.Timer(0.2, go_on.set).start()  # closing waits for it
    abandon(online)
    assert len(list(tmp_path.glob("run.db-state-*"))) == 2
    monkeypatch.undo()
    again = begun(tmp_path / "run.db")
    assert state(again) == expected
    abandon(again)


def test_a_large_state_is_written_at_the_end_only(tmp_path):
    journal = venn.online.Journal(tmp_path / "run.db", every=5, share=1, largest=0)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ("a", "b", "c"))
    with venn.Online(venn.TransductiveVenn(machine), None, journal) as online:
        happen(online, EVENTS)
        journal.checkpoints.wait()
        assert [file.name[-3:] for file in tmp_path.glob("run.db-state-*")] == ["000"]
    assert len(list(tmp_path.glob("run.db-state-*"))) == 2
    with pytest.raises(ValueError, match="largest must be an integer >= 0, got -1"):
        venn.online.Journal(tmp_path / "run.db", largest=-1)
