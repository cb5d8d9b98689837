"""Damages checkpoints so that their checksums are right again, loads them and uses what comes out.

A forged number may make a wrong answer, or an error when the object is used. What must hold: a file is read or refused
by a ValueError, no loop is given an index beyond its array, and the process lives.

As a program: `python -m tools.hostile_checkpoints SECONDS SEED`, in a process that may die. With NUMBA_DISABLE_JIT=1
loops run in Python, which says so when an index is too large.
"""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

import venn
from venn.machines.window import SlidingWindow
from venn.online import checkpoint, files
from venn.predictors.restarting import Restarting

FOLDER = Path(tempfile.gettempdir())
CLASSES = ("a", "b", "c")
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 65, 2**31, 2**62, -(2**63), 2**63, 10**30, 0.5, -0.0, 1e300, -1e-300)
OTHERS = (None, True, False, "", "a", [], {}, [1], {"tuple": []}, {"float": "nan"}, {"float": "inf"}, {"object": 0})


def examples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)) / 2 + rng.integers(0, 2, (n, 1)) / 7
    return X, [CLASSES[k] for k in rng.integers(0, 3, n)]


def hinge():
    return venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES)


def squares():
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)


SUBJECTS = {
    "hinge": hinge,
    "squares": squares,
    "scaled": lambda: venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES, scale=6),
    "first": lambda: venn.machines.Bank(venn.RBF(0.5), CLASSES, (1.0,), scale=venn.Scale(30, teach=True)),
    "window": lambda: SlidingWindow(squares(), 10),
    "venn": lambda: venn.TransductiveVenn(hinge(), venn.LeaveOneOut(venn.Argmax())),
    "abers": lambda: venn.TransductiveVennAbers(squares()),
    "scaler": lambda: venn.ScoreCalibrator(
        squares(), venn.maps.Isotonic(), venn.predictors.HeldOutScores(venn.schedules.PrefixRestart(first=4))
    ),
    "bins": lambda: venn.ScoreCalibrator(squares(), venn.maps.Binning(), venn.predictors.CrossFittedScores(first=4)),
    "sigmoid": lambda: venn.ScoreCalibrator(hinge(), venn.maps.BetaCalibration()),
    "inductive": lambda: venn.InductiveVenn(
        squares(), venn.taxonomies.TopTwo(), schedule=venn.schedules.PrefixRestart(first=6)
    ),
    "bag": lambda: venn.InductiveVenn(
        squares(), venn.taxonomies.AdaptiveMarginBins(), schedule=venn.schedules.RandomAssignment(first=6)
    ),
    "inductive abers": lambda: venn.InductiveVennAbers(
        squares(), schedule=venn.schedules.RandomAssignment(0.5, first=6)
    ),
    "ranks": lambda: venn.InductiveConformal(squares(), schedule=venn.schedules.PrefixRestart(first=6)),
    "weighed ranks": lambda: venn.InductiveConformal(
        squares(),
        schedule=venn.schedules.PrefixRestart(first=6),
        shift=venn.shifts.PriorShift((0.25, 0.25, 0.5), (0.5, 0.5, 0.0)),
    ),
    "cross": lambda: venn.predictors.CrossVenn(squares(), folds=3, first=6),
    "balanced": lambda: venn.predictors.Balanced(venn.InductiveVenn(squares()), (1, 0.5, 1)),
    "mixture of one": lambda: venn.predictors.ExpertMixture([venn.ScoreCalibrator(hinge(), venn.maps.Platt())]),
    "mixture of numbers": lambda: venn.predictors.DistributionMixture(
        [venn.predictors.StackedDistribution(venn.schedules.Prefix(0.5, first=12)), venn.predictors.NumberRefits(8)]
    ),
    "restarting": lambda: Restarting(venn.Conformal(SlidingWindow(squares(), 20)), venn.Monitor(CLASSES, window=5), 3),
    "mixture": lambda: venn.TransductiveVennAbers(
        venn.machines.Mixture(venn.machines.Bank(venn.RBF(0.5), CLASSES, (0.5, 5.0)))
    ),
    "handed over": lambda: venn.Forecaster(CLASSES, first=2, transductive=12, floor=venn.monitors.Floor(0.6)),
    "numbers": lambda: venn.Forecaster(float, first=2),
    "numbers handed over": lambda: venn.Forecaster(float, first=2, transductive=12),
    "numbers stacked": lambda: venn.predictors.StackedDistribution(venn.schedules.Prefix(0.6, first=10)),
    "columns": lambda: venn.monitors.Drift(first=3, columns=["p", "q"]),
    "class drift": lambda: venn.monitors.ClassDrift(CLASSES, venn.monitors.AmongAll(2, size=9), first=3),
    "floor": lambda: venn.monitors.FloorWatch(venn.monitors.Floor(0.6, chance=0.25), memory=5),
    "panel": lambda: venn.Panel(venn=venn.TransductiveVenn(m := squares()), conformal=venn.Conformal(m)),
}


def checkpoints():
    """Return the bytes of each subject after some examples."""
    X, y = examples(18)
    made = {}
    for name, make in SUBJECTS.items():
        subject = make()
        for x, label in zip(X, y, strict=True):
            learn(subject, x, label)
        ask(subject, X[0])
        made[name] = checkpoint.pack(subject)
    return made


def learn(subject, x, label):
    code = CLASSES.index(label)
    if isinstance(subject, venn.monitors.ClassDrift):
        subject.update(x, label)
    elif isinstance(subject, venn.monitors.Drift):
        subject.update([float(x[0]), label])
    elif isinstance(subject, venn.monitors.FloorWatch):
        subject.update(code / 2, 0.25, 0.5)
    else:
        subject.learn_one(x, label if subject.classes else x[0] + code)


def ask(subject, x):
    if hasattr(subject, "snapshot"):
        subject.snapshot(), subject.state
    elif hasattr(subject, "predict_one"):
        subject.predict_one(x)
    else:
        answer = subject.hypotheses(x)
        answer.scores(0), answer.leave_one_out(1), subject.leave_one_out_bag


def packed(header, arrays):
    header = {key: value for key, value in header.items() if key != "crc32"}
    return files.packed(header, arrays)


def spots(value, path=()):
    """Return the paths of all values within JSON."""
    found = [path]
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += spots(one, (*path, key))
    return found


def changed_header(header, rng):
    """Return a header with a value replaced by another, taken out, or doubled."""
    header = json.loads(json.dumps(header))
    path = rng.choice(spots({key: header[key] for key in ("models", "objects", "root")})[1:])
    *above, last = path
    place = header
    for key in above:
        place = place[key]
    old = place[last]
    how = rng.random()
    if how < 0.6:
        place[last] = rng.choice(NUMBERS if isinstance(old, int | float) and rng.random() < 0.8 else OTHERS + NUMBERS)
    elif how < 0.7:
        del place[last]
    elif how < 0.8 and isinstance(place, list):
        place.append(old)
    else:
        place[last] = json.loads(json.dumps(value_at(header, rng.choice(spots(header["objects"])), "objects")))
    return header


def value_at(header, path, start):
    value = header[start]
    for key in path:
        value = value[key]
    return value


def changed_arrays(arrays, rng):
    """Return arrays of which one has a number changed, or another shape, type or order."""
    name = rng.choice(list(arrays))
    array = arrays[name].copy()
    how = rng.random()
    if array.size and how < 0.7:
        place = rng.randrange(array.size)
        flat = array.reshape(-1)
        if array.dtype.kind == "f":
            flat[place] = rng.choice((0.0, -0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, np.nan, np.inf, flat[place] + 1))
        elif array.dtype.kind == "b":
            flat[place] = not flat[place]
        else:
            most = np.iinfo(array.dtype)
            flat[place] = rng.choice((0, 1, -1 if most.min else 1, 2, 63, most.max, most.min, flat[place] ^ 1))
    elif how < 0.8:
        array = array[: len(array) // 2] if array.ndim else array
    elif how < 0.9:
        array = np.concatenate([array, array]) if array.ndim else array
    elif how < 0.95:
        array = (array.real if np.iscomplexobj(array) else array).astype(
            rng.choice((np.float32, np.int32, np.uint8, np.complex128))
        )
    else:
        array = array[::-1] if array.ndim else array
    return {**arrays, name: array}


def damaged(data, rng):
    """Return a checkpoint with something changed and the right checksums."""
    header, arrays = files.read(io.BytesIO(data))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if arrays and rng.random() < 0.5:
            with np.errstate(all="ignore"):
                arrays = changed_arrays(arrays, rng)
        else:
            header = changed_header(header, rng)
    return packed(header, arrays)


def within_a_loop(error):
    """Whether an error comes from a loop that was given an index beyond its array."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, IndexError) and any("_compiled" in frame.filename for frame in frames)


def outcome(data):
    """Load, use and save again what comes out; return what happened. What must not happen is raised."""
    try:
        thing = checkpoint.unpack(data)
    except ValueError:
        return "refused"
    if not (hasattr(thing, "learn_one") or hasattr(thing, "snapshot")):
        return "other"
    X, y = examples(6, 1)
    done = "used"
    for x, label in zip(X, y, strict=True):
        try:
            ask(thing, x)
            learn(thing, x, label)
        except MemoryError:
            raise
        except Exception as error:
            if within_a_loop(error):
                raise
            done = "failed in use"
    return done


def main(seconds, seed):
    np.seterr(all="ignore")
    rng = random.Random(seed)
    subjects = checkpoints()
    counts, end, slowest = Counter(), time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        name = rng.choice(list(subjects))
        try:
            data = damaged(subjects[name], rng)
        except (ValueError, KeyError, IndexError, TypeError, OverflowError):
            counts["not written"] += 1
            continue
        (FOLDER / f"hostile_{seed}.npz").write_bytes(data)  # what is being read, should the process die
        start = time.monotonic()
        try:
            counts[outcome(data)] += 1
        except Exception as error:
            counts[f"ESCAPED {type(error).__name__}: {str(error)[:60]} of {name}"] += 1
            (FOLDER / f"hostile_{seed}_{sum(counts.values())}.npz").write_bytes(data)
        slowest = max(slowest, time.monotonic() - start)
    print(json.dumps({"seed": seed, "slowest": round(slowest, 3), **counts}, indent=1))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
