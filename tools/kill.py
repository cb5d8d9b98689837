"""Kill a journaled run again and again at random moments, and compare what it leaves with an undisturbed one.

    python -m tools.kill --examples 60 --kills 24      # a quarter of a minute: what the tests run
    python -m tools.kill --examples 1728 --kills 200   # a quarter of an hour

Every machine and predictor in turn asks about Car with late labels. Processes are forked from one that has imported and
compiled everything, so that most of a life is spent at work; each is killed by SIGKILL after a random time. What must
be the same to the last byte: the record, the state, and the journal but for its times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import streams
import venn
from venn.labels import Real
from venn.monitors.shared_level import beside
from venn.online import checkpoint
from venn.online.journal import Journal

CAR = streams.load("car", shuffle=0)
TEACHER = streams.Lazy(0.1, seed=2, teacher=streams.RandomDelay(8, seed=1))
PATIENCE = 40
BATCH = 7  # events in a transaction, for those that use one

Made = tuple[object, dict[str, object]]

TIMED = "run", "last", "mark", "latest", "moments"  # parts of a state that hold times, or name the run


def squares() -> venn.LeastSquaresSVM:
    return venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, CAR.classes)


def hinge() -> venn.OneVsAllSVM:
    return venn.OneVsAllSVM(venn.RBF(0.1), 10.0, CAR.classes)


def inductive(kind: Callable[..., object], **parameters: object) -> Callable[[], Made]:
    return lambda: one(kind(squares(), schedule=venn.schedules.PrefixRestart(first=20, last=150), **parameters))


def one(predictor: object) -> Made:
    return several(one=predictor)


def several(**predictors: object) -> Made:
    return watched(venn.Panel(**predictors))


def watched(panel: venn.Panel) -> Made:
    objects = venn.monitors.Drift(venn.monitors.AmongAll(size=60), first=15)
    return panel, venn.monitors.together(panel, CAR.classes, objects=objects)


def on_hinge() -> Made:
    machine = hinge()
    return several(
        venn=venn.TransductiveVenn(machine, venn.Argmax()),
        span=venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())),
        platt=venn.ScoreCalibrator(machine, venn.maps.Platt()),
        isotonic=venn.ScoreCalibrator(machine, venn.maps.Isotonic(), venn.predictors.LeaveOneOutScores()),
        mixed=venn.predictors.ExpertMixture([venn.ScoreCalibrator(machine, venn.maps.Binning())]),
    )


def on_squares() -> Made:
    machine = squares()
    return several(
        abers=venn.TransductiveVennAbers(machine),
        leave_one_out=venn.TransductiveVenn(machine),
        conformal=venn.Conformal(machine, label_conditional=True),
        held_out=venn.ScoreCalibrator(machine, venn.maps.Platt(), venn.predictors.HeldOutScores()),
        crossed=venn.ScoreCalibrator(machine, venn.maps.Temperature(), venn.predictors.CrossFittedScores(3)),
    )


def windowed() -> Made:
    machine = venn.SlidingWindow(squares(), 60)
    return several(leave_one_out=venn.TransductiveVenn(machine), conformal=venn.Conformal(machine))


def of_numbers(**predictors: object) -> Made:
    return venn.Panel(**predictors), {name: venn.Monitor(Real()) for name in predictors}


def ridges() -> Made:
    machine = ridge(venn.Scale(10, teach=True))
    return of_numbers(
        distribution=venn.predictors.ConformalDistribution(machine),
        within=venn.predictors.ConformalDistribution(machine, group=0),
        intervals=venn.predictors.ConformalIntervals(machine),
        adaptive=venn.predictors.AdaptiveIntervals(venn.predictors.ConformalIntervals(machine)),
    )


def ridge(scale: Any = None) -> venn.machines.KernelRidge:
    return venn.machines.KernelRidge(venn.machines.MultiscaleRBF(), 3.0, scale=scale)


def restarting_ridge() -> Made:
    base = venn.predictors.ConformalDistribution(venn.SlidingWindow(ridge(10), 60))
    return of_numbers(restarting=venn.predictors.Restarting(base, venn.Monitor(Real(), level=0.2)))


def all_watched() -> Made:
    bank = venn.machines.Bank(venn.RBF(0.1), CAR.classes, (1.0, 10.0))
    panel = venn.Panel(mixture=venn.TransductiveVennAbers(venn.machines.Mixture(bank)))
    objects = venn.monitors.Drift(venn.monitors.AmongAll(size=60), first=15, columns=True)
    examples = venn.monitors.ClassDrift(CAR.classes, venn.monitors.AmongAll(size=40), first=15)
    monitors = venn.monitors.together(panel, CAR.classes, objects=objects, examples=examples)
    return panel, monitors | {"floor": venn.monitors.FloorWatch(0.7)}


def on_trees() -> Made:
    stream = streams.load("car", shuffle=1).take(300)
    forest = RandomForestClassifier(20, random_state=0).fit([x for x, _ in stream], [y for _, y in stream])
    return watched(venn.Forecaster(CAR.classes, scorer=forest, floor=0.7))


def of_blocks() -> Made:
    """What goes in blocks: events come to it as `together` arranges them."""
    stream = streams.load("car", shuffle=1).take(300)
    scorer = LogisticRegression(max_iter=1000).fit([x for x, _ in stream], [y for _, y in stream])
    panel = venn.Forecaster(CAR.classes, scorer=scorer)
    return panel, beside(panel)


SETUPS: dict[str, Callable[[], Made]] = {
    "hinge": on_hinge,
    "squares": on_squares,
    "window": windowed,
    "inductive": inductive(venn.InductiveVenn),
    "inductive bins": inductive(venn.InductiveVenn, taxonomy=venn.taxonomies.AdaptiveMarginBins()),
    "inductive abers": inductive(venn.InductiveVennAbers),
    "inductive conformal": inductive(venn.InductiveConformal),
    "cross": lambda: one(venn.predictors.CrossVenn(squares(), folds=3, first=20)),
    "balanced": lambda: one(
        venn.predictors.Balanced(
            venn.InductiveVenn(squares(), schedule=venn.schedules.PrefixRestart(first=20, last=150)), (1, 1, 0.4, 1)
        )
    ),
    "forecaster": lambda: watched(venn.Forecaster(CAR.classes, transductive=80, first=20)),
    "numbers": ridges,
    "numbers forecaster": lambda: (
        made := venn.Forecaster(float, transductive=80, first=20),
        {name: venn.Monitor(Real()) for name in made},
    ),
    "numbers window": restarting_ridge,
    "numbers inductive": lambda: of_numbers(
        one=venn.predictors.InductiveDistribution(ridge(), schedule=venn.schedules.PrefixRestart(first=20, last=150))
    ),
    "all watched": all_watched,
    "lot": all_watched,
    "trees": on_trees,
    "blocks": of_blocks,
    "random": lambda: one(venn.InductiveVenn(squares(), schedule=venn.schedules.RandomAssignment(0.5, first=20))),
}


def live(setup: str, path: Path, events: list[object], every: int, hasten: float = 0.0) -> venn.Online:
    """Go on with a run where its journal stands, to the end of the events."""
    predictor, monitors = SETUPS[setup]()
    if setup.startswith("numbers"):
        events = list(map(as_number, events))
    events = together(events) if setup == "blocks" else events
    lot = venn.online.Lot(0.5) if setup == "lot" else None
    online = venn.Online(predictor, monitors, Journal(path, every=every, share=1.0), patience=PATIENCE, labels=lot)
    batched = sum(map(ord, setup)) % 2 == 1
    while (place := online.asked + online.answered + refused(online)) < len(events):
        if setup == "blocks":
            take(online, events[place : place + 12 * BATCH])
            continue
        if not batched:
            happen(online, events[place])
            continue
        with online.transaction():
            for event in events[place : place + BATCH]:
                happen(online, event)
            online.reach("car", place + BATCH)
    return online


def together(events: list[Any]) -> list[Any]:
    """Return events in another order: questions each with its answer, then some questions, then their answers."""
    answers = {event.id: event for event in events if not hasattr(event, "x")}
    asked = [event for event in events if hasattr(event, "x")]
    found: list[Any] = []
    for start in range(0, len(asked), 40):
        at_once, later = asked[start : start + 30], asked[start + 30 : start + 40]
        found += [one for event in at_once for one in (event, answers.get(event.id)) if one is not None]
        found += later + [answers[event.id] for event in later if event.id in answers]
    return found


def take(online: venn.Online, events: list[Any]) -> None:
    """Let events that arrived together happen in one transaction; nothing of them may be refused."""
    with online.transaction():
        while events:
            found = online.take(events)
            if any(one.failure is not None for one in found):
                raise SystemExit(f"refused: {found}")
            events = events[len(found) :]


def as_number(event: Any) -> Any:
    """Return an event with a number in place of the label: that of the class, and a little more."""
    if hasattr(event, "x"):
        return event
    return event._replace(y=10.0 * CAR.classes.index(event.y) + event.id * 7919 % 11 / 4)


def refused(online: venn.Online) -> int:
    """Return how many answers of the past came too late: as many as are expired, but for those that never came."""
    return online.position("late") or 0


def happen(online: venn.Online, event: object) -> None:
    if hasattr(event, "x"):
        online.ask(event.x, event.id)
        return
    try:
        online.answer(event.id, event.y)
    except ValueError as error:
        if "given up" not in str(error):
            raise
        online.reach("late", refused(online) + 1)


def left(online: venn.Online, path: Path) -> dict[str, object]:
    """Return all that a run leaves, but for times."""
    record = path.with_suffix(".npz")
    online.record().save(record)
    state = checkpoint.pack({name: part for name, part in online._state().items() if name not in TIMED})
    with closing(sqlite3.connect(path)) as db:
        tables = {
            table: list(db.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2"))
            for table, columns in (
                ("questions", "event, id, step, x, predictions"),
                ("answers", "step, event, question, truth"),
                ("expired", "number, event, question"),
                ("alarms", "predictor, number, step, alarm"),
                ("positions", "source, position"),
            )
        }
        tables["series"] = [(s, json.loads(f)) for s, f in db.execute("SELECT step, figures FROM series ORDER BY step")]
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return {"record": record.read_bytes(), "state": bytes(state), **tables}


def in_child(work: Callable[[], None]) -> int:
    """Do something in a process of its own; return its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def disturbed(setup: str, folder: Path, events: list[object], kills: int, lifetime: float, dice: random.Random) -> int:
    """Let a run die `kills` times if it lives that long, then end; return how often it was killed."""
    path = folder / f"{setup} killed.db"
    killed = 0
    while True:
        child = in_child(lambda: live(setup, path, events, every=20).journal.close())
        if killed < kills:
            time.sleep(dice.uniform(0, lifetime))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.WEXITSTATUS(status):
            raise SystemExit(f"{setup}: a life ended with status {status}")
        else:
            return killed


def tell(progress: str) -> None:
    """Say what is being done: each setup takes a while."""
    print(progress, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=1728)
    parser.add_argument("--kills", type=int, default=200, help="at least so many in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--setups", default=",".join(SETUPS))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("error")
    events = list(streams.teach(CAR.take(options.examples), TEACHER))
    dice = random.Random(options.seed)
    setups = options.setups.split(",")
    total = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        for number, setup in enumerate(setups):
            tell(f"{number + 1} of {len(setups)}, {setup}: {len(events)} events undisturbed")
            some = events[: len(events) // 2]
            live(setup, folder / f"{setup} warm.db", some, every=10**9).journal.close()  # compiles
            start = time.perf_counter()
            undisturbed = live(setup, folder / f"{setup}.db", events, every=10**9)
            seconds = time.perf_counter() - start
            expected = left(undisturbed, folder / f"{setup}.db")
            undisturbed.journal.close()
            wanted = -(-(options.kills - total) // (len(setups) - number))
            tell(f"{seconds:.1f} s; the same, killed {wanted} times")
            # A life does some of the work and costs the restart: half a life's share of the run.
            killed = disturbed(setup, folder, events, wanted, 0.02 + 1.6 * seconds / max(1, wanted), dice)
            after = live(setup, folder / f"{setup} killed.db", events, every=10**9)
            found = left(after, folder / f"{setup} killed.db")
            after.journal.close()
            for part, value in expected.items():
                if found[part] != value:
                    raise SystemExit(f"{setup}: {part} differs after {killed} deaths")
            total += killed
            print(f"{setup}: {killed} killed, {undisturbed}, {seconds:.2f} s undisturbed", flush=True)
    print(json.dumps({"kills": total, "setups": len(setups), "examples": options.examples, "differences": 0}))


if __name__ == "__main__":
    main()
