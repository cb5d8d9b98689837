"""Damaged files: refused by the named error, or what comes out is what went in; never another exception."""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from test_checkpoint import said
from test_journal import events_of
from test_late_labels import CLASSES, MAKERS

import venn
from tools import hostile_checkpoints
from venn.online import checkpoint

from .tally import Tally


@cache
def saved() -> dict[str, bytes]:
    return hostile_checkpoints.checkpoints()


@cache
def answers(name: str) -> bytes:
    """Return what a subject says that was loaded from the undamaged bytes."""
    return spoken(checkpoint.unpack(saved()[name]))


def spoken(thing: Any) -> bytes:
    """Return what a subject says: of objects, or of the stream so far, as bytes."""
    X = hostile_checkpoints.examples(3, 5)[0]
    if hasattr(thing, "snapshot") and not hasattr(thing, "predict_one"):
        return repr(thing.snapshot()).encode()
    if len(getattr(thing, "classes", ".")):
        return b"".join(said(thing, x) for x in X)
    each = [prediction for x in X for prediction in parts(thing.predict_one(x))]
    return np.array([one.cdf(y) for one in each for y in (-1.0, 0.0, 0.5, 2.0)]).tobytes()


def parts(prediction: Any) -> list[Any]:
    return list(prediction.values()) if isinstance(prediction, dict) else [prediction]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with bits flipped, a piece cut out, doubled, zeroed or exchanged, or cut short."""
    raw = bytearray(data)
    how = rng.integers(7)
    place = int(rng.integers(len(raw)))
    length = int(rng.choice([1, 2, 16, 300]))
    if how <= 2:
        for _ in range(int(rng.choice([1, 1, 1, 3, 20]))):
            raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    elif how == 3:
        del raw[place:]
    elif how == 4:
        del raw[place : place + length]
    elif how == 5:
        raw[place:place] = rng.bytes(length)
    else:
        raw[place : place + length] = bytes(len(raw[place : place + length]))
    return bytes(raw)


def checkpoints(rng: np.random.Generator, tally: Tally) -> None:
    """Checkpoints with right checksums and wrong content, and with wrong bytes."""
    name = str(rng.choice(list(saved())))
    if rng.random() < 0.5:
        try:
            data = hostile_checkpoints.damaged(saved()[name], random.Random(int(rng.integers(1 << 40))))
        except (ValueError, KeyError, IndexError, TypeError, OverflowError):
            tally.note("not written")
            return
        with np.errstate(all="ignore"):
            tally.note(hostile_checkpoints.outcome(data))
        tally.compared += 1
        return
    data = damaged(saved()[name], rng)
    path = Path("damaged.npz")
    path.write_bytes(data)
    try:
        thing = venn.load(path)
    except ValueError as error:
        tally.same("damaged.npz is not a readable checkpoint: " in str(error), "a message without the file", error)
        tally.note("refused")
        return
    tally.note("loaded")
    tally.same(spoken(thing) == answers(name), f"{name}: loaded, and says something else", name)


# Journals --------------------------------------------------------------------------------------------------------

EVENTS = {seed: events_of(24, seed) for seed in range(3)}
TABLES = ("run", "questions", "answers", "expired", "alarms", "series", "latest", "positions")
EVENTFUL = {"questions": 0, "answers": 1, "expired": 1}  # tables of events, and the column of the event
LONG = 150  # questions of a journal with more than a page for a table
PAGE = 4096
GOES_ON, SAVED = 0.15, 0.3  # share of trials in which a run goes on, and of those refused in which it is saved
PAGEWISE = ("page zeroed", "pages swapped", "page doubled")


class Base(NamedTuple):
    """An undamaged journal, what it says, and how its run goes on."""

    name: str
    events: list[Any]
    cut: int
    files: dict[str, bytes]
    rows: dict[str, list[Any]]
    record: bytes
    learned: bytes  #: after the events of the journal
    whole: bytes  #: after all
    whole_record: bytes


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a new predictor and its classes."""
    if name != "given":
        return MAKERS[name](), CLASSES
    scorer = LogisticRegression().fit([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], list(CLASSES))
    return venn.InductiveVenn(venn.FrozenScorer(scorer)), CLASSES


def begun(path: Path, name: str, every: int = 10**6) -> venn.Online:
    predictor, classes = made(name)
    return venn.Online(predictor, venn.Monitor(classes), venn.online.Journal(path, every=every, share=1), patience=9)


def happen(online: venn.Online, events: list[Any]) -> None:
    for what, i, value in events:
        try:
            online.ask(value, i) if what == "ask" else online.answer(i, value)
        except ValueError as error:
            if "given up" not in str(error):
                raise


def learned(online: venn.Online) -> bytes:
    return checkpoint.pack([online.panel, online.monitors, online.told, online.pending, online.asked])


def recorded(record: venn.Record, folder: Path) -> bytes:
    record.save(folder / "record.npz")
    return (folder / "record.npz").read_bytes()


def rows_of(path: Path) -> dict[str, list[Any]]:
    """Return all rows of all tables."""
    with closing(sqlite3.connect(path)) as db:
        return {table: sorted(db.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


@cache
def base(name: str, seed: int, every: int, end: str) -> Base:
    """Return a journal that was closed, or whose process died: with its log, or with half of that in the file."""
    events = EVENTS[seed] if name != "given" else events_of(LONG, seed)
    cut = len(events) * (2 + seed) // 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "run")
        online = begun(folder / "run.db", name, every)
        happen(online, events[: cut // 2])
        if end == "half":
            online.journal.sync()
        with online.transaction():
            online.reach("source", {"offset": cut // 2})
        happen(online, events[cut // 2 : cut])
        online.journal.checkpoints.wait()
        if end == "closed":
            online.close()
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.stat().st_size}
        record, state = recorded(online.record(), Path(scratch)) if end != "closed" else b"", learned(online)
        rows = rows_of(folder / "run.db")
        if end == "closed":
            with venn.online.Watch(folder / "run.db") as watch:
                record = recorded(watch.record(), Path(scratch))
        else:
            online.journal.close()
        predictor, classes = made(name)
        whole = venn.Online(predictor, venn.Monitor(classes), Path(scratch, "whole.db"), patience=9)
        happen(whole, events)
        everything, last = learned(whole), recorded(whole.record(), Path(scratch))
        whole.journal.close()
    return Base(name, events, cut, files, rows, record, state, everything, last)


def damage_rows(path: Path, rng: np.random.Generator) -> str:
    """Change, delete, double or exchange rows of a table by SQL; return what was done."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        tables = [table for table in TABLES if db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]]
        table = str(rng.choice(tables, p=_weights(tables)))
        described = db.execute(f"PRAGMA table_info({table})").fetchall()
        names, keys = [one[1] for one in described], [one[1] for one in described if one[5]]
        rows = db.execute(f"SELECT * FROM {table}").fetchall()
        row = rows[int(rng.integers(len(rows)))]
        how = str(rng.choice(["update", "update", "delete", "double", "swap", "tail", "step <= k"]))
        place = " AND ".join(f"{key} = ?" for key in keys)
        at = [row[names.index(key)] for key in keys]
        column = str(rng.choice(names))
        old = row[names.index(column)]
        with suppress(sqlite3.IntegrityError):
            if how == "update":
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {place}", (_other(old, rng), *at))
            elif how == "delete":
                db.execute(f"DELETE FROM {table} WHERE {place}", at)
            elif how == "tail":
                db.execute(f"DELETE FROM {table} WHERE {keys[-1]} >= ?", (at[-1],))
            elif how == "double":
                copy = [_other(value, rng) if name in (*keys, "id", "question") else value
                        for name, value in zip(names, row, strict=True)]  # fmt: skip
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(copy))})", copy)
            elif how == "swap":
                second = rows[int(rng.integers(len(rows)))]
                for values, there in ((row, second), (second, row)):
                    where = [there[names.index(key)] for key in keys]
                    free = [name for name in names if name not in (*keys, "id", "question")]
                    sets = ", ".join(f"{name} = ?" for name in free)
                    new = [values[names.index(name)] for name in free]
                    db.execute(f"UPDATE {table} SET {sets} WHERE {place}", (*new, *where))
            elif table == "answers":
                db.execute("UPDATE answers SET truth = 2 - truth WHERE step <= ?", (at[0],))
            elif isinstance(old, int | float):
                db.execute(f"UPDATE {table} SET {column} = {column} + 1 WHERE {place}", at)
    return f"rows, {how}"


def _weights(tables: list[str]) -> list[float]:
    weights = [4.0 if table in ("questions", "answers", "expired") else 1.0 for table in tables]
    return [weight / sum(weights) for weight in weights]


def _other(value: Any, rng: np.random.Generator) -> Any:
    """Return a value that looks alike."""
    if isinstance(value, int):
        return value + int(rng.choice([-1, 1, 1000, 2**40]))
    if isinstance(value, float):
        return value + float(rng.choice([1e-6, 1.0, -3600.0]))
    raw = bytearray(value if isinstance(value, bytes) else value.encode())
    if raw:
        raw[int(rng.integers(len(raw)))] ^= 1
    else:
        raw = bytearray(b"0")
    return bytes(raw) if isinstance(value, bytes) else raw.decode("utf-8", "replace")


def damage_bytes(folder: Path, rng: np.random.Generator) -> str:
    """Damage one file; return what was done to which."""
    files = sorted(path for path in folder.iterdir() if path.stat().st_size)
    weights = np.array([6.0 if path.suffix == ".db" else 4.0 if path.name.endswith("-wal") else 1.0 for path in files])
    victim = files[int(rng.choice(len(files), p=weights / weights.sum()))]
    kind = victim.name.removeprefix("run.db").strip("-")[:5] or "database"
    raw = bytearray(victim.read_bytes())
    how = str(
        rng.choice(["byte", "byte", "byte", "bits", "page zeroed", "pages swapped", "page doubled", "cut", "gone"])
    )
    place = int(rng.integers(len(raw)))
    first, second = (PAGE * int(rng.integers(-(-len(raw) // PAGE))) for _ in range(2))
    if how == "byte":
        raw[place] = (raw[place] + int(rng.integers(1, 256))) % 256
    elif how == "bits":
        raw = bytearray(damaged(bytes(raw), rng))
    elif how == "page zeroed":
        raw[first : first + PAGE] = bytes(len(raw[first : first + PAGE]))
    elif how == "pages swapped":
        raw[first : first + PAGE], raw[second : second + PAGE] = raw[second : second + PAGE], raw[first : first + PAGE]
    elif how == "page doubled":
        raw[first : first + PAGE] = raw[second : second + PAGE]
    elif how == "cut":
        del raw[place if rng.random() < 0.5 else first :]
    if how == "gone" and kind != "database":
        victim.unlink()
    else:
        victim.write_bytes(raw)
    return f"{kind}, {how}"


def journals(rng: np.random.Generator, tally: Tally) -> None:
    """A damaged journal: whoever reads it gets the named error, or what was there before; and the rest is saved."""
    name = str(rng.choice(["venn", "inductive", "conformal", "given"], p=[0.3, 0.35, 0.2, 0.15]))
    end = str(rng.choice(["closed", "died", "half"]))
    one = base(name, int(rng.integers(2)), int(rng.choice([5, 10**6])), end)
    folder, second = Path("run"), Path("again")
    folder.mkdir()
    for file, content in one.files.items():
        (folder / file).write_bytes(content)
    what = damage_rows(folder / "run.db", rng) if rng.random() < 0.5 else damage_bytes(folder, rng)
    goes_on = rng.random() < (0.6 if what.startswith("state") else GOES_ON)
    if goes_on:
        shutil.copytree(folder, second)
    verified = read(folder / "run.db", one, what, tally)
    if goes_on:
        go_on(second / "run.db", one, what, tally)
    if not verified and rng.random() < SAVED:
        save(folder / "run.db", one, what, tally, goes_on)


def read(path: Path, one: Base, what: str, tally: Tally) -> bool:
    """Whether `verify` finds a journal whole; then all its rows are as before, and so is a record that is given."""
    verified = True
    try:
        venn.online.verify(path)
    except venn.online.JournalError as error:
        verified = False
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
    try:
        with venn.online.Watch(path) as watch:
            record = recorded(watch.record(), path.parent)
            watch.counts(), watch.latest(5), watch.series()
        tally.same(record == one.record or loses(what), f"{what}: the record is another one", one.name)
        outcome = "read, the same" if record == one.record else "read, a beginning"
    except venn.online.JournalError as error:
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
        tally.same(not verified, f"{what}: verified, and has no record", error)
        outcome = "refused"
    with suppress(venn.online.JournalError), venn.online.Watch(path) as watch:
        watch.counts(), watch.latest(5), watch.series()
    if verified:
        # A log ends where its checksums do: cut there, between two transactions, is what a loss of power leaves, and
        # so is the end of the events that somebody has deleted.
        rows = rows_of(path)
        if loses(what):
            events = sum(len(rows[table]) for table in EVENTFUL)
            same = all(
                rows[table] == sorted((row for row in one.rows[table] if row[place] <= events), key=repr)
                for table, place in EVENTFUL.items()
            )
            same = same and (
                what.startswith("wal, ") or all(set(rows[table]) <= set(one.rows[table]) for table in TABLES)
            )
        else:
            same = rows == one.rows
        tally.same(same, f"{what}: verified, and has other rows", one.name)
    tally.note(f"{what.split(', ')[0]}: {'whole' if verified else 'refused'}; record {outcome}")
    return verified


def loses(what: str) -> bool:
    """Whether damage may take away the last events, or rows beside the events, without a trace."""
    return what.startswith("wal, ") or what in ("rows, delete", "rows, tail")


def go_on(path: Path, one: Base, what: str, tally: Tally) -> None:
    """A run goes on as if nothing had been, or not at all; its record at last is the whole one, or refused."""
    try:
        found = begun(path, one.name)
    except venn.online.JournalError as error:
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
        tally.note(f"{what.split(', ')[0]}: not gone on with")
        return
    if loses(what) and learned(found) != one.learned:
        tally.note(f"{what.split(', ')[0]}: goes on from a beginning")
        found.journal.close()
        return
    try:
        tally.same(learned(found) == one.learned, f"{what}: another state goes on", one.name)
        happen(found, one.events[one.cut :])
        tally.same(learned(found) == one.whole, f"{what}: something else is learned", one.name)
        try:
            record = recorded(found.record(), path.parent)
            tally.same(record == one.whole_record, f"{what}: the record at last is another one", one.name)
            tally.note(f"{what.split(', ')[0]}: goes on, the same record")
        except venn.online.JournalError:
            tally.note(f"{what.split(', ')[0]}: goes on from the checkpoint, record refused")
    except venn.online.JournalError as error:
        tally.note(f"{what.split(', ')[0]}: goes on, refused later")
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
    finally:
        found.journal.close()


def save(path: Path, one: Base, what: str, tally: Tally, goes_on: bool) -> None:
    """What is saved is the beginning of what was there, and whole."""
    kind = what.split(", ")[0]
    target = path.with_name("rescued.db")
    try:
        saved = venn.online.salvage(path, target)
    except venn.online.JournalError as error:
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
        tally.note(f"{kind}: nothing saved")
        return
    number = saved.asked + saved.answered + saved.expired
    tally.note(f"{kind}: {'all events' if not saved.damage else 'a beginning'} saved")
    venn.online.verify(target)
    rows = rows_of(target)
    for table, event in EVENTFUL.items():
        wanted = sorted((row for row in one.rows[table] if row[event] <= number), key=repr)
        tally.same(rows[table] == wanted, f"{what}: other {table} are saved", one.name)
    for table in ("run", "alarms", "series", "positions"):
        tally.same(set(rows[table]) <= set(one.rows[table]), f"{what}: other {table} are saved", one.name)
    if goes_on:
        online = begun(target, one.name)
        tally.same(online.journal.events == number, f"{what}: saved, and goes on elsewhere", one.name)
        online.journal.close()
