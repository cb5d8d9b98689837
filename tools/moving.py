"""Kill a journaled run, and let it go on where numbers are rounded otherwise: it must, and say the same to nine digits.

    python -m tools.moving --places 2 --kinds classes --changes threads    # what the tests run
    python -m tools.moving                                                 # all kinds, 20 places each

A process asks about Car with late labels, and is killed by SIGKILL at the end; at each place before, what a kill would
leave is copied. Another process, with another number of BLAS threads, another BLAS kernel or another target of the
compiler, goes on with each copy to the end. Compared are predictions and alarms, on other threads to the last bit.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sklearn.neural_network import MLPClassifier

import streams
import venn
from tools.kill import CAR, SETUPS, as_number
from venn.labels import Real
from venn.monitors.kinds import kind_of
from venn.online.chain import decode
from venn.online.journal import Journal
from venn.online.restart import NEAR

#: How the first and the second process are started, by the name of the change.
CHANGES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "threads": ({"OPENBLAS_NUM_THREADS": "2"}, {"OPENBLAS_NUM_THREADS": "1"}),
    "kernel": ({"OPENBLAS_CORETYPE": "Haswell"}, {"OPENBLAS_CORETYPE": "Prescott"}),
    "target": ({"NUMBA_CPU_NAME": "generic"}, {}),
}
SET_HERE = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_CORETYPE", "NUMBA_CPU_NAME"
DELAY = 3  # questions, until a label comes


def network(folder: Path) -> Any:
    """Return a scorer that multiplies matrices; the first process fits it, and both are given it."""
    file = folder / "scorer"
    if not file.exists():
        stream = streams.load("car", shuffle=1).take(300)
        fitted = MLPClassifier((50,), max_iter=20, random_state=0).fit([x for x, _ in stream], [y for _, y in stream])
        file.write_bytes(pickle.dumps(fitted))
    return pickle.loads(file.read_bytes())


def forecaster(key: str = "") -> venn.Forecaster:
    """Return a predictor whose stack is fitted within few examples."""
    return venn.Forecaster(CAR.classes, transductive=30, first=15)


def given(folder: Path) -> tuple[Any, Any]:
    """Return a forecaster with a given scorer."""
    return venn.Forecaster(CAR.classes, scorer=network(folder)), None


KINDS: dict[str, Callable[[Path], Any]] = {
    "classes": lambda folder: (forecaster(), None),
    "numbers": lambda folder: (venn.Forecaster(float, transductive=30, first=15), None),
    "scorers": given,
    "windows": lambda folder: SETUPS["window"](),
}


def follow(kind: str, scratch: Path, folder: Path, events: list[Any]) -> Iterator[Any]:
    """Go on with the run in a folder; yield what was asked about each event that was still to come."""
    predictor, monitors = KINDS[kind](scratch)
    # No checkpoint after the first: whatever was learned is learned again.
    runs = [venn.Online(predictor, monitors, Journal(folder / "run.db", every=10**9))]
    for event in events[sum(one.asked + one.answered for one in runs) :]:
        online = runs[event.id % len(runs)]
        if hasattr(event, "x"):
            online.ask(event.x, event.id)
        else:
            online.answer(event.id, as_number(event).y if kind == "numbers" else event.y)
        yield runs
    yield runs


def first(kind: str, scratch: Path, events: list[Any], places: list[int]) -> None:
    """Let a run come to the end, leave copies at places, and die."""
    folder = scratch / "run"
    folder.mkdir()
    for done, _ in enumerate(follow(kind, scratch, folder, events), 1):
        if done in places:
            shutil.copytree(folder, scratch / f"at {done}")
    os.kill(os.getpid(), signal.SIGKILL)


def left(folder: Path) -> dict[str, Any]:
    """Return the predictions and the alarms of all journals in a folder."""
    found = {}
    for file in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(file)) as db:
            found[f"{file.name} questions"] = list(db.execute("SELECT event, predictions FROM questions ORDER BY 1"))
            rows = db.execute("SELECT predictor, number, step FROM alarms ORDER BY 1, 2")
            found[f"{file.name} alarms"] = list(rows)
    return found


def second(kind: str, scratch: Path, events: list[Any], places: list[int], alike: bool) -> None:
    """Go on at each of the places to the end, and compare what is left; print how many predictions were others."""
    wanted, farthest, rounded, refused = left(scratch / "run"), 0.0, 0, 0
    for place in places:
        folder = scratch / f"at {place}"
        try:
            *_, runs = follow(kind, scratch, folder, events)
        except venn.online.JournalError as error:
            print(f"{kind}, at {place}: {error}", file=sys.stderr)
            refused += 1
            continue
        rounded += sum(one.rounded for one in runs)
        names, space = tuple(runs[0].panel), Real() if kind == "numbers" else runs[0].panel.space
        found = left(folder)
        for part, rows in wanted.items():
            if part.endswith("alarms") or alike or len(rows) != len(found[part]):
                if rows != found[part]:
                    raise SystemExit(f"{kind}, at {place}: {part} differ")
                continue
            for (_, one), (_, other) in zip(rows, found[part], strict=True):
                said, said_too = decode(one, names, space), decode(other, names, space)
                farthest = max(farthest, *(kind_of(said[n]).apart(said[n], said_too[n]) for n in names))
    if farthest > NEAR:
        raise SystemExit(f"{kind}: predictions are {farthest:.1g} apart")
    print(json.dumps({"places": len(places), "refused": refused, "rounded": rounded, "farthest": farthest}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, default=20)
    parser.add_argument("--examples", type=int, default=75)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--changes", default=",".join(CHANGES))
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)  # which process, of what change, where
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    events = list(streams.teach(CAR.take(options.examples), streams.Delayed(DELAY)))
    places = sorted({1 + len(events) * (k + 1) // (options.places + 1) for k in range(options.places)})
    if options.part is not None:
        which, change, scratch = options.part
        if which == "first":
            first(options.kinds, Path(scratch), events, places)
        second(options.kinds, Path(scratch), events, places, change == "threads")
        return
    refused = total = 0
    for change in options.changes.split(","):
        for kind in options.kinds.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                for which, settings in zip(("first", "second"), CHANGES[change], strict=True):
                    told = subprocess.run(
                        [sys.executable, "-m", "tools.moving", "--places", str(options.places), "--examples",
                         str(options.examples), "--kinds", kind, "--part", which, change, scratch],
                        env={name: one for name, one in os.environ.items() if name not in SET_HERE} | settings,
                        stdout=subprocess.PIPE, text=True,
                    )  # fmt: skip
                    if told.returncode != (-signal.SIGKILL if which == "first" else 0):
                        raise SystemExit(f"{kind}, {change}: the {which} process ended with {told.returncode}")
            found = json.loads(told.stdout.splitlines()[-1])
            print(f"{change}, {kind}: {found}", flush=True)
            refused, total = refused + found["refused"], total + found["places"]
    print(json.dumps({"places": total, "refused": refused}))


if __name__ == "__main__":
    main()
