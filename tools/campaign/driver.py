"""Runs attacks in turn, in processes that may crash or hang, and keeps the books."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from streams.checks import Doubtful
from venn.machines import ScaleWarning

from .tally import Tally

#: Module and function of each attack, and the seconds after which a trial hangs.
ATTACKS = {
    "kill": ("killing", "run", 600),
    "kill cli": ("killing", "command", 600),
    "ends": ("killing", "ends", 300),
    "kill save": ("killing", "save", 300),
    "fuzz": ("fuzzing", "trial", 300),
    "shuffle": ("shuffling", "trial", 300),
    "fleet": ("killing", "fleets", 600),
    "threads": ("threads", "threads", 300),
}
MEMORY = 8 << 30  # bytes of address space that a worker may have
KEPT = 5  # seeds that are remembered of failures of one kind


def load(name: str) -> Callable[[np.random.Generator, Tally], None]:
    """Return the trial function of an attack."""
    module, function, _ = ATTACKS[name]
    return getattr(importlib.import_module(f"{__package__}.{module}"), function)


def trial_seed(seed: int, attack: str, number: int) -> int:
    """Return the seed of one trial of a campaign."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {attack} {number}".encode(), digest_size=5).digest(), "big")


def attempt(attack: str, seed: int) -> Tally:
    """Make one trial of an attack here."""
    return made(load(attack), seed)


def made(trial: Callable[[np.random.Generator, Tally], None], seed: int) -> Tally:
    """Make one trial here; what leaves it is a failure."""
    tally = Tally()
    folder = os.getcwd()
    # An odd value that reaches an option of numpy or a warning filter must not reach the next trial.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ScaleWarning)  # tables of any scale, on purpose
        warnings.simplefilter("ignore", Doubtful)  # labels that differ in blanks, by what was damaged
        os.chdir(scratch)
        try:
            trial(np.random.default_rng(seed), tally)
        except Exception as error:
            tally.escaped(error)
        finally:
            os.chdir(folder)
    return tally


@dataclass
class Books:
    """Counts of one attack."""

    trials: int = 0
    compared: int = 0
    seconds: float = 0.0
    failed: int = 0
    notes: Counter[str] = field(default_factory=Counter)


class Campaign:
    """Attacks in turn until the time is over; a failure is kept once with its first seeds, and counted.

    Parameters
    ----------
    attacks : sequence of str
    seed : int
    report : path, optional
        Rewritten after every turn.
    turn : float
        Seconds of one attack before the next has its turn.
    most : int, optional
        Trials of each attack at most.
    """

    def __init__(
        self, attacks: Sequence[str], seed: int, report: Path | None = None, turn: float = 60.0, most: int | None = None
    ) -> None:
        self.attacks, self.seed, self.report, self.turn, self.most = attacks, seed, report, turn, most
        self.books = {attack: Books() for attack in attacks}
        self.failures: dict[tuple[str, str], dict[str, Any]] = {}
        self.remarks: dict[tuple[str, str], dict[str, Any]] = {}
        self.started = time.time()
        self._worker: int | None = None

    def run(self, seconds: float, say: Callable[[str], None] = lambda text: None) -> None:
        """Attack for so many seconds; an interrupt ends it early."""
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until and not all(self._done(attack) for attack in self.attacks):
                for attack in self.attacks:
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    if not self._done(attack):
                        self._take_turn(attack, min(self.turn, left))
                        self.write()
                        say(self.line())
        except KeyboardInterrupt:
            say("interrupted")
        finally:
            self._kill()
            self.write()

    def _done(self, attack: str) -> bool:
        return self.most is not None and self.books[attack].trials >= self.most

    def _take_turn(self, attack: str, seconds: float) -> None:
        books, limit = self.books[attack], ATTACKS[attack][2]
        start = time.monotonic()
        reader, writer = os.pipe()
        seeds = [trial_seed(self.seed, attack, books.trials + i) for i in range(10_000)]
        if self.most is not None:
            seeds = seeds[: self.most - books.trials]
        self._worker = worker = _forked(lambda: _work(attack, seeds, seconds, writer))
        os.close(writer)
        at_work: int | None = None
        rest = b""
        since = time.monotonic()
        while True:
            ready, _, _ = select.select([reader], [], [], max(0.1, since + limit - time.monotonic()))
            if not ready:
                if time.monotonic() - since < limit:
                    continue
                self._kill()
                self._count(attack, at_work, {"failures": [[f"hangs for {limit} s", ""]]})
                break
            piece = os.read(reader, 1 << 16)
            if not piece:
                status = self._ended(worker)
                if status:
                    self._count(attack, at_work, {"failures": [[f"the process ends with status {status}", ""]]})
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                told = json.loads(line)
                since = time.monotonic()
                at_work = told["seed"]
                if "compared" in told:
                    self._count(attack, at_work, told)
        os.close(reader)
        books.seconds += time.monotonic() - start

    def _count(self, attack: str, seed: int | None, told: dict[str, Any]) -> None:
        books = self.books[attack]
        books.trials += 1
        books.compared += told.get("compared", 0)
        books.notes.update(told.get("notes", {}))
        books.failed += bool(told["failures"])
        for book, entries in ((self.failures, told["failures"]), (self.remarks, told.get("remarks", []))):
            for what, detail in entries:
                kept = book.setdefault((attack, what), {"count": 0, "seeds": [], "detail": detail})
                kept["count"] += 1
                if len(kept["seeds"]) < KEPT and seed not in kept["seeds"]:
                    kept["seeds"].append(seed)

    def _ended(self, worker: int) -> int:
        self._worker = None
        return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])

    def _kill(self) -> None:
        """End the worker, and whatever it has started, for these are of its group."""
        if self._worker is not None:
            os.killpg(self._worker, signal.SIGKILL)
            self._ended(self._worker)

    # ------------------------------------------------------------------ reports

    def line(self) -> str:
        """Return the state in a line."""
        counts = ", ".join(f"{attack} {books.trials}" for attack, books in self.books.items())
        minutes = (time.time() - self.started) / 60
        return f"{minutes:.1f} min: trials {counts}; {len(self.failures)} kinds of failure"

    def summary(self) -> dict[str, Any]:
        """Return all counts and failures."""
        return {
            "seed": self.seed,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 1),
            "attacks": {
                attack: {
                    "trials": books.trials, "comparisons": books.compared, "failed trials": books.failed,
                    "seconds": round(books.seconds, 1), "notes": dict(books.notes.most_common()),
                }
                for attack, books in self.books.items()
            },
            **{
                name: [{"attack": attack, "what": what, **kept} for (attack, what), kept in book.items()]
                for name, book in (("failures", self.failures), ("remarks", self.remarks))
            },
        }  # fmt: skip

    def write(self) -> None:
        """Write the report."""
        if self.report is not None:
            self.report.parent.mkdir(parents=True, exist_ok=True)
            beside = self.report.with_suffix(".tmp")
            beside.write_text(json.dumps(self.summary(), indent=1))
            os.replace(beside, self.report)

    def table(self) -> str:
        """Return counts and failures to be read."""
        rows = [f"{'attack':10} {'trials':>8} {'comparisons':>12} {'failed':>7} {'seconds':>8}"]
        for attack, books in self.books.items():
            rows.append(f"{attack:10} {books.trials:8} {books.compared:12} {books.failed:7} {books.seconds:8.0f}")
            rows += [f"{'':12}{number} x {what}" for what, number in books.notes.most_common(8)]
        rows += [
            f"FAILURE {attack}: {what}, {kept['count']} times: --attack '{attack}' --trial-seed {kept['seeds'][0]}"
            for (attack, what), kept in self.failures.items()
        ]
        if self.remarks:
            rows.append(f"{len(self.remarks)} kinds of refusal in words that do not help: see the report")
        return "\n".join(rows)


def _forked(work: Callable[[], None]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _work(attack: str, seeds: Sequence[int], seconds: float, writer: int) -> None:
    """Make trials until the time is over; tell of each before and after."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def tell(**told: Any) -> None:
        line = json.dumps(told).encode() + b"\n"
        while line:
            line = line[os.write(writer, line) :]

    until = time.monotonic() + seconds
    for seed in seeds:
        tell(seed=seed)
        tally = attempt(attack, seed)
        tell(seed=seed, compared=tally.compared, notes=tally.notes, failures=tally.failures, remarks=tally.remarks)
        if time.monotonic() >= until:
            break
