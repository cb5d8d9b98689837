"""Damaged files: refused by the named error, or what comes out is what went in; never another exception."""

from __future__ import annotations

import random
import shutil
from functools import cache
from pathlib import Path

import numpy as np
from test_checkpoint import said
from test_journal import MAKERS, events_of, happen, opened
from test_late_labels import state

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


def spoken(thing: object) -> bytes:
    return b"".join(said(thing, x) for x in hostile_checkpoints.examples(3, 5)[0])


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


def journals(rng: np.random.Generator, tally: Tally) -> None:
    """A journal of which one file is damaged: refused by name, or the run goes on as if nothing had been."""
    name = str(rng.choice(list(MAKERS)))
    events = EVENTS[int(rng.integers(len(EVENTS)))]
    cut = int(rng.integers(4, len(events)))
    folder = Path("run")
    folder.mkdir()
    online = opened(folder / "run.db", name, every=int(rng.choice([5, 10**6])))
    happen(online, events[:cut])
    if rng.random() < 0.5:
        online.close()
    else:  # what a death leaves: copied as it is
        shutil.copytree(folder, "dead")
        online.journal.close()
        shutil.rmtree(folder)
        Path("dead").rename(folder)
    files = sorted(path for path in folder.iterdir() if path.stat().st_size)
    victim = files[int(rng.integers(len(files)))]
    before = victim.read_bytes()
    data = damaged(before, rng)
    victim.write_bytes(data)
    kind = victim.name.removeprefix("run.db")[:6] or "database"
    what = f"damaged {kind}"
    watched(folder / "run.db", what, tally)
    try:
        found = opened(folder / "run.db", name)
    except (venn.online.JournalError, ValueError) as error:
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
        tally.note(f"{what}: refused")
        return
    try:
        if found.asked + found.answered < cut:  # transactions at the end of a damaged log do not count
            tally.note(f"{what}: the end is lost")
            tally.same(kind == "-wal", f"{what}: the end is lost", (found, cut))
        else:
            tally.note(f"{what}: goes on")
        rest = events[found.asked + found.answered :]
        happen(found, rest)
        whole = venn.Online(MAKERS[name](), venn.Monitor(found.classes))
        happen(whole, events)
        alike = state(found)[1] == state(whole)[1] and learned(found) == learned(whole)
        tally.same(alike, f"{what}: something else is learned", (name, cut, victim))
    except venn.online.JournalError as error:
        tally.note(f"{what}: refused later")
        tally.same("run.db" in str(error), f"{what}: a message without the file", error)
    finally:
        found.journal.close()


def learned(online: venn.Online) -> bytes:
    return checkpoint.pack([online.panel, online.monitors, online.told])


def watched(path: Path, what: str, tally: Tally) -> None:
    """Who looks at it from outside gets an answer or the named error."""
    try:
        with venn.online.Watch(path) as watch:
            watch.counts(), watch.latest(5), watch.series(), watch.record()
    except venn.online.JournalError as error:
        tally.same("run.db" in str(error), f"{what}: watched, a message without the file", error)
