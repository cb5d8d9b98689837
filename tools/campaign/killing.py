"""Runs killed at random moments: what they leave at last is what an undisturbed one leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import run_cases
import test_fleet
import test_run_endings
from click.testing import CliRunner
from test_checkpoint import SUBJECTS
from test_contract import learned, small_stream

import streams
import venn
from tools import kill
from venn import cli
from venn.cli.predictors import PREDICTORS
from venn.online import checkpoint

from .tally import Tally

DEATHS = 6
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


def run(rng: np.random.Generator, tally: Tally) -> None:
    """`venn.Online` with a journal, by every machine and predictor of tools/kill.py: late, missing, expired labels."""
    setup = str(rng.choice(list(kill.SETUPS)))
    seed = int(rng.integers(1 << 30))
    delay = int(rng.integers(1, 30))
    teacher = streams.Lazy(float(rng.uniform(0, 0.4)), seed=seed, teacher=streams.RandomDelay(delay, seed=seed))
    stream = streams.load("car", shuffle=seed % 1000).take(int(rng.integers(30, 110)))
    events = list(streams.teach(stream, teacher))
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        kill.live(setup, folder / "warm.db", events, every=10**9).journal.close()  # compiles
        start = time.perf_counter()
        undisturbed = kill.live(setup, folder / f"{setup}.db", events, every=10**9)
        seconds = time.perf_counter() - start
        expected = kill.left(undisturbed, folder / f"{setup}.db")
        undisturbed.journal.close()
        try:
            killed = kill.disturbed(setup, folder, events, DEATHS, 0.02 + 1.6 * seconds / DEATHS, dice)
        except SystemExit as error:
            tally.fail(f"{setup}: a life ends by an error", error)
            return
        after = kill.live(setup, folder / f"{setup} killed.db", events, every=10**9)
        found = kill.left(after, folder / f"{setup} killed.db")
        after.journal.close()
    tally.notes["deaths"] += killed
    for part, value in expected.items():
        tally.same(found[part] == value, f"{setup}: {part} differs", f"after {killed} deaths")
        tally.compared += len(value) if isinstance(value, list) else 0


#: Predictors of the command line; some learn nothing of few examples, and are not slow.
NAMED = list(PREDICTORS)


def command(rng: np.random.Generator, tally: Tally) -> None:
    """`venn run` over a file, ended by all kinds of signals: its journal and what it prints."""
    events = run_cases.events(int(rng.integers(20, 120)), seed=int(rng.integers(1 << 20)))
    name = str(rng.choice(NAMED))
    place = run_cases.OPTIONS.index("inductive")
    own = name == "forecaster"  # it has a kernel of its own
    options = [*run_cases.OPTIONS[:place], name, *(() if own else run_cases.OPTIONS[place + 1 :])]
    folder = Path.cwd()
    (folder / "in.jsonl").write_text("".join(map(run_cases.line, events)))

    def arguments(which: str) -> list[str]:
        files = ["--source", "jsonl:in.jsonl", "--journal", f"{which}.db", "--out", f"{which}.jsonl", "--end"]
        return [*files, "--quiet", *options, *(["--window", str(window)] if window else [])]

    window = int(rng.integers(5, 40)) if rng.random() < 0.3 and not own and not name.startswith("inductive") else 0
    start = time.perf_counter()
    result = CliRunner().invoke(cli.main, ["run", *arguments("whole")])
    seconds = time.perf_counter() - start
    if result.exit_code:
        tally.fail(f"venn run --predictors {name}: exit {result.exit_code}", result.output + repr(result.exc_info))
        return
    killed = 0
    while True:
        life = run_cases.Life(folder, *arguments("part"))
        if killed < DEATHS:
            time.sleep(float(rng.uniform(0, 0.05 + 1.2 * seconds)))
            life.send(int(rng.choice(ENDS)))
            killed += 1
            life.end()
            continue
        code = life.end()
        tally.same(code == 0, f"venn run --predictors {name}: a life ends with {code}", life.said[-2000:])
        break
    tally.notes["deaths"] += killed
    if code:
        return
    whole, part = run_cases.left(folder / "whole.db"), run_cases.left(folder / "part.db")
    for table, rows in whole.items():
        tally.same(part[table] == rows, f"venn run --predictors {name}: {table} differ", f"after {killed} deaths")
        tally.compared += len(rows)
    lines = [(folder / f"{which}.jsonl").read_text().splitlines() for which in ("whole", "part")]
    tally.same(
        list(map(json.loads, lines[0])) == list(map(json.loads, lines[1])), f"venn run {name}: what it prints differs",
        (killed, lines),
    )  # fmt: skip


def ends(rng: np.random.Generator, tally: Tally) -> None:
    """`venn run` in this process, asked to end at messages of chance: no message is lost, and none counts twice."""
    kind, slow = str(rng.choice(["jsonl", "csv", "broker"])), bool(rng.random() < 0.8)
    events = run_cases.events(int(rng.integers(5, 60)), seed=int(rng.integers(1 << 20)))
    folder = Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        life = test_run_endings.lives_in(patch)
        whole, _ = test_run_endings.opened("jsonl", folder, events, patch, None)
        total = life([*whole, "--quiet", "--journal", "whole.db", "--out", "whole"], 0, slow)
        source, log = test_run_endings.opened(kind, folder, events, patch, None)
        done = lives = 0
        while done < total and lives < total:
            more = ["--quiet", "--set", f"run.batch={rng.integers(1, 40)}", "--journal", "part.db", "--out", "part"]
            done += life([*source, *more], int(rng.integers(1, 6)), slow)
            lives += 1
            tally.same(log is None or log.acknowledged[-1] == done, f"{kind}: acknowledged is not what was processed")
    tally.notes["ends"] += lives
    tally.same(done == total, f"{kind}: {done} of {total} messages after all ends")
    tally.same(run_cases.left(folder / "whole.db") == run_cases.left(folder / "part.db"), f"{kind}: journals differ")
    tally.same((folder / "whole").read_bytes() == (folder / "part").read_bytes(), f"{kind}: what is printed differs")
    tally.compared += total


def save(rng: np.random.Generator, tally: Tally) -> None:
    """`venn.save` over an older file: it is the one or the other."""
    name = str(rng.choice(list(SUBJECTS)))
    X, y = small_stream(int(rng.integers(1000)), 40)
    first, second = learned(SUBJECTS[name](), X[:20], y[:20]), learned(SUBJECTS[name](), X, y)
    path = Path.cwd() / "model.npz"
    venn.save(path, first)
    either = (checkpoint.pack(first), checkpoint.pack(second))
    for _ in range(10):

        def work() -> None:
            while True:
                venn.save(path, second)
                venn.save(path, first)

        child = kill.in_child(work)
        time.sleep(float(rng.uniform(0, 0.05)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tally.notes["deaths"] += 1
        tally.same(checkpoint.pack(venn.load(path)) in either, f"{name}: neither the old nor the new file")


def fleets(rng: np.random.Generator, tally: Tally) -> None:
    """A fleet that is closed, killed and opened at random places, with few or many keys in memory."""
    n, seed, done = int(rng.integers(5, 80)), int(rng.integers(1 << 20)), 0
    calls, whole = test_fleet.happenings(n, seed), venn.Fleet(test_fleet.make)
    test_fleet.happen(whole, calls)
    while done < n:
        more, every = int(rng.integers(1, 40)), int(rng.integers(1, 30))
        with venn.Fleet(test_fleet.make, Path.cwd() / "fleet", open=int(rng.integers(1, 6)), every=every) as fleet:
            test_fleet.happen(fleet, calls[done : done + more])
            if rng.random() < 0.5:
                test_fleet.die(fleet)
        done += more
    with venn.Fleet(test_fleet.make, Path.cwd() / "fleet") as fleet:
        first, second = test_fleet.state_of(whole), test_fleet.state_of(fleet)
    for key, value in first.items():
        tally.same(second.get(key) == value, "the state of a key of a fleet", (key, seed, n))
    tally.same(first.keys() == second.keys(), "keys", (first.keys(), second.keys()))
