"""How far is each hot loop from the least time that its work could take on this processor?

    STREAMS_DATA=folder python benchmarks/floors.py

For each loop it measures the microseconds of one step, and of a floor: the work that the step cannot avoid, done
separately by numpy, by a bare compiled loop, or by the library below.

    squares    a step of `LeastSquaresSVM` on Car, label learned: one kernel row (squared distances and exponentials)
               and one reading of the packed factor
    classwise  what `TransductiveVennAbers` adds to that step: sorting the c columns of n leave-one-out scores, which
    all
               change at each step
    hinge      a step of `OneVsAllSVM` with argmax counts, on Car: one kernel row, and one pass of the n x m kernel
               values of the m support vectors that are free, for each of the 2c problems that are not solved already
    abers      an insertion and a query of online Venn-Abers at 10 000 examples: two calls of a compiled function that
               returns its argument
    counting   an example of `InductiveVenn.replay_many` by a linear scorer, 54 features, 7 classes: the product of the
               block and the weights by BLAS, and its argmax
    panel      a step of Venn, conformal, Platt, binning and isotonic on one hinge-loss machine: the same of Venn alone
    journal    what a journal in transactions of a question and an answer adds to a step: the same two transactions of
               as many bytes by sqlite3 alone, with the same settings

Every loop and its floor take turns, `--repeat` times; medians, of processor time of one thread, compilation excluded.
Prints one JSON line.
"""

import sqlite3
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numba
import numpy as np
from scipy.integrate import trapezoid
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from workload import command, command_options

import streams
import venn
from venn.maps import VennAbers


def timed(work, clock=process_time):
    """Return microseconds of one call."""
    start = clock()
    work()
    return 1e6 * (clock() - start)


def row(X, x, gamma):
    """One row of an RBF kernel matrix."""
    return np.exp(-gamma * ((X - x) ** 2).sum(axis=1))


def steps_of(predictor, stream):
    """Replay."""
    for x, y in stream:
        predictor.predict_one(x)
        predictor.learn_one(x, y)


def learning(machine, stream):
    """Let a machine answer and learn."""
    for x, y in stream:
        machine.hypotheses(x)
        machine.learn_one(x, y)


def over(sizes, n, work):
    """Return the mean microseconds of `work(m)` over a stream of n steps, from some sizes m."""
    found = [min(timed(lambda m=m: work(m)) for _ in range(5)) for m in sizes]
    return float(trapezoid(found, sizes)) / n


def squares(stream):
    """Return (ours, floor) of the least-squares step, and of what Venn-Abers adds."""
    n, X = len(stream), np.ascontiguousarray(stream.X)
    sizes = np.linspace(10, n, 8).astype(int)
    factor, scores = np.zeros(n * (n + 1) // 2), np.random.default_rng(0).normal(size=(len(stream.classes), n))

    def made():
        return venn.LeastSquaresSVM(venn.RBF(0.5), 10, stream.classes)

    machine = made()
    alone = timed(lambda: learning(machine, stream)) / n
    whole = timed(lambda: steps_of(venn.TransductiveVennAbers(made()), stream)) / n
    floor = over(sizes, n, lambda m: (row(X[:m], X[0], 0.5), factor[: m * (m + 1) // 2].sum()))
    sorting = over(sizes, n, lambda m: np.sort(scores[:, :m], axis=1))
    return {"squares": (alone, floor), "classwise": (whole - alone, sorting)}


def hinge(stream):
    """Return (ours, floor) of the hinge-loss step and of a panel on its machine."""
    n, c, X = len(stream), len(stream.classes), np.ascontiguousarray(stream.X)

    def made():
        return venn.OneVsAllSVM(venn.RBF(0.1), 10, stream.classes)

    machine = made()
    ours = timed(lambda: steps_of(venn.TransductiveVenn(machine, venn.Argmax()), stream)) / n
    duals = np.abs(machine.hypotheses(X[0] + 0.01).duals(0)[:-1])  # of the whole stream: more than of earlier steps
    free = float(((duals > 1e-9) & (duals < 10 - 1e-9)).sum(axis=0).mean())
    moved = float(np.mean([2 * c - _solved(machine, x) for x in X[:200]]))
    kernel = np.zeros((n, max(1, round(free))))
    weights = np.ones(kernel.shape[1])

    def least(m):
        row(X[:m], X[0], 0.1)
        for _ in range(round(moved)):
            kernel[:m] @ weights

    floor = over(np.linspace(10, n, 8).astype(int), n, least)
    five = made()
    panel = venn.Panel(
        venn=venn.TransductiveVenn(five, venn.Argmax()),
        conformal=venn.Conformal(five, venn.nonconformity.Margin(leave_one_out=False)),
        platt=venn.ScoreCalibrator(five, venn.maps.Platt()), binning=venn.ScoreCalibrator(five, venn.maps.Binning()),
        isotonic=venn.ScoreCalibrator(five, venn.maps.Isotonic()),
    )  # fmt: skip
    together = timed(lambda: steps_of(panel, stream)) / n
    return {"hinge": (ours, floor), "panel": (together, ours)}


def _solved(machine, x):
    """Return how many of the 2c problems for x are solved already, as its score is beyond the margin."""
    scores = machine.scores(x)
    return int((scores >= 1).sum() + (scores <= -1).sum())


@numba.njit
def nothing(value):
    """Return the argument."""
    return value


def abers():
    """Return (ours, floor) of an insertion and a query at 10 000 examples."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=10_000)
    calibrator = VennAbers()
    calibrator.insert_many(scores, (rng.random(10_000) < 1 / (1 + np.exp(-scores))).astype(int))
    new = rng.normal(size=2000).tolist()
    calibrator.query(0.1), calibrator.insert(0.1, 1), nothing(0.1)

    def ours():
        for score in new:
            calibrator.query(score)
            calibrator.insert(score, 1)

    def floor():
        for score in new:
            nothing(score)
            nothing(score)

    return {"abers": (timed(ours) / len(new), timed(floor) / len(new))}


def counting():
    """Return (ours, floor) of an example through a linear scorer and counts."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(200_000, 54)), rng.integers(0, 7, 200_000)
    estimator = LinearSVC(max_iter=20, tol=1.0).fit(X[:2000], labels[:2000])
    scorer = venn.FrozenScorer(estimator, range(7))
    venn.InductiveVenn(scorer, venn.Argmax()).replay_many(X[:9], labels[:9])
    model, blocks = venn.InductiveVenn(scorer, venn.Argmax()), [slice(i, i + 4096) for i in range(0, len(X), 4096)]

    def ours():
        for block in blocks:
            model.replay_many(X[block], labels[block])

    def floor():
        for block in blocks:
            (X[block] @ estimator.coef_.T + estimator.intercept_).argmax(axis=1)

    return {"counting": (timed(ours) / len(X), timed(floor) / len(X))}


def journal(folder, steps=1500):
    """Return (ours, floor) of what a journal adds to a step: wall time, as part of it is the disk's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000 + 2 * steps, 10))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int).tolist()
    scorer = venn.FrozenScorer(LogisticRegression().fit(X[:1000], y[:1000]), (0, 1))

    def drive(online):
        for x, label in zip(X[1000 : 1000 + steps], y[1000 : 1000 + steps], strict=True):
            online.ask(x)
            online.answer(online.asked, label)

    seconds = {}
    for way, path in (("memory", None), ("file", folder / "ours.db")):
        online = venn.Online(venn.InductiveVenn(scorer), venn.Monitor((0, 1)), path)
        seconds[way] = timed(lambda online=online: drive(online), perf_counter) / steps
        online.close()
    size = (folder / "ours.db").stat().st_size // (2 * steps)
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute("PRAGMA synchronous=NORMAL")
    bare.execute("CREATE TABLE events (number INTEGER PRIMARY KEY, kind INTEGER, content BLOB)")
    content = b"x" * max(1, size - 20)

    def floor():
        for _ in range(2 * steps):
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO events (kind, content) VALUES (?, ?)", (1, content))
            bare.execute("COMMIT")

    alone = timed(floor, perf_counter) / steps
    bare.close()
    for name in ("ours.db", "bare.db"):
        for path in folder.glob(f"{name}*"):
            path.unlink()
    return {"journal": (seconds["file"] - seconds["memory"], alone)}


@command()
def main():
    args = command_options(__doc__, repeat=3)
    stream = streams.load("car", shuffle=0)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        squares(stream.take(60)), hinge(stream.take(60)), journal(Path(folder), 20)  # compilation
        for _ in range(args.repeat):
            for loop in (squares(stream) | hinge(stream) | abers() | counting() | journal(Path(folder))).items():
                found.setdefault(loop[0], []).append(loop[1])
    line = {"benchmark": "floors"}
    for name, pairs in found.items():
        ours, floor = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        line[name] = {"us": round(ours, 2), "floor_us": round(floor, 2), "times_floor": round(ours / floor, 2)}
    return line
