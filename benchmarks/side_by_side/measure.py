"""The figures of a row, from a contender's answers at each step."""

import math
import resource
import time
from pathlib import Path

import numpy as np
from scipy.stats import betabinom, binom

LEVELS = (0.05, 0.1, 0.2)
LONG_ENOUGH = 0.2  # seconds; some clocks of the processor tick every 4 ms
DELTA, CLIP, BEYOND = 0.01, 1e-15, 0.01  # of the deviation's bound; of the log loss; outside the limits by chance


def resident(field):
    """Return megabytes of this process by the system's account: VmRSS now, VmHWM at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak():
    """Start the peak of memory anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


class Loop:
    """Contenders that take one example at a time: a subclass predicts, learns, and reads its answers.

    `read` returns a dict with some of: proba (c,); rows (c, c), a distribution for each supposed label; pairs (c, 2),
    two probabilities for each class; p (c,), p-values. It does not count in the contender's time, nor does `prepare`.
    """

    def prepare(self, x):
        """Return an object in the shape that the library takes."""
        return x

    def run(self, task):
        """Return the seconds of the whole prequential run, and the answers at each step, stacked."""
        objects = [self.prepare(x) for x in task.X]
        said, seconds = [], 0.0
        for x, y in zip(objects, task.y.tolist(), strict=True):
            start = time.process_time()
            raw = self.predict(x)
            then = time.process_time()
            said.append(self.read(raw))
            again = time.process_time()
            self.learn(x, y)
            seconds += time.process_time() - again + then - start
        return seconds, {name: np.array([one[name] for one in said]) for name in said[0]}


class Block:
    """Contenders that take all objects in one call: a subclass gives `answer(task)`, which starts anew each time."""

    def run(self, task):
        """Return the seconds of a call, averaged over enough calls to be timed, and the answers."""
        seconds = []
        while sum(seconds) < LONG_ENOUGH and len(seconds) < 50:
            start = time.process_time()
            said = self.answer(task)
            seconds.append(time.process_time() - start)
        return sum(seconds) / len(seconds), said


def classes_said(said):
    """Return point forecasts (n, c) and bounds (n, 2) of the predicted class, from rows or pairs, if there are any."""
    proba, bounds = said.get("proba"), None
    if proba is None:
        return None, None
    best = proba.argmax(axis=1)
    at = np.arange(len(best))
    if "rows" in said:
        mine = said["rows"][at, :, best]
        bounds = np.column_stack([mine.min(axis=1), mine.max(axis=1)])
    elif "pairs" in said:
        mine = said["pairs"][at, best]
        bounds = np.column_stack([mine.min(axis=1), mine.max(axis=1)])
    return proba, bounds


def deviation(said, y):
    """Return the largest |sum of 1{y = k} - P_k| over classes k by its bound; P is the row of the true label.

    The bound, sqrt(N ln(2 c / delta) / 2), is exceeded in at most one of a hundred runs if the claims are true.
    """
    at = np.arange(len(y))
    if "rows" in said:
        P = said["rows"][at, y]
    elif "pairs" in said:
        hit = (y[:, None] == np.arange(said["pairs"].shape[1])).astype(int)
        P = np.take_along_axis(said["pairs"], hit[:, :, None], axis=2)[:, :, 0]
    else:
        return None
    n, c = P.shape
    off = np.abs(((y[:, None] == np.arange(c)) - P).sum(axis=0)).max()
    # Two classes are one event: the deviations of both are equal in size.
    events = 1 if c == 2 and "rows" in said else c
    return float(off / math.sqrt(n * math.log(2 * events / DELTA) / 2))


def limits(n, level, calibrated):
    """Return the least and the largest number of errors that chance allows, each passed with probability .005.

    Binomial if the calibration set grows with the stream; if one set of m calibrates all n, the errors share
    its luck, and their number is beta-binomial.
    """
    if calibrated:
        a = level * (calibrated + 1)
        law = betabinom(n, a, calibrated + 1 - a)
    else:
        law = binom(n, level)
    return int(law.ppf(BEYOND / 2)), int(law.ppf(1 - BEYOND / 2))


def figures(said, task, fixed):
    """Return the figures of a row."""
    y, n = task.y, len(task.y)
    at = np.arange(n)
    row = {}
    proba, bounds = classes_said(said)
    if proba is not None:
        own = proba[at, y]
        row["zeros"] = int((own <= 0).sum())
        row["log_loss"] = float(-np.log(np.clip(own, CLIP, 1)).mean())
        row["brier"] = float(((proba - (y[:, None] == np.arange(proba.shape[1]))) ** 2).sum(axis=1).mean())
        row["accuracy"] = float((proba.argmax(axis=1) == y).mean())
        if task.probabilities is not None:
            row["off"] = float(np.abs(proba - task.probabilities).sum(axis=1).mean() / 2)
    if bounds is not None:
        row["width"] = float((bounds[:, 1] - bounds[:, 0]).mean())
        row["deviation"] = deviation(said, y)
    if "p" in said or "sets" in said:
        for i, level in enumerate(LEVELS):
            inside = said["p"] > level if "p" in said else said["sets"][:, :, i]
            errors = int((~inside[at, y]).sum())
            least, most = limits(n, level, task.size.calibrate if fixed else 0)
            row[f"errors_{level:g}"] = errors
            row[f"limits_{level:g}"] = [least, most]
            row[f"size_{level:g}"] = float(inside.sum(axis=1).mean())
    return row
