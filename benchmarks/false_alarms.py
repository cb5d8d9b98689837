"""How often does anything ring falsely, of all that a run watches by default, where nothing has changed?

    python benchmarks/false_alarms.py                  # 1000 streams of 3000 examples: 22 minutes of one core
    python benchmarks/false_alarms.py --streams 40 --length 500

Each stream is in random order: three classes with shares of its own, a column of numbers and two with many ties, and in
every second stream an object comes about twice. A classifier that was fitted to others is calibrated. Its monitors are
those of `venn run`, at level .01 for all together: Venn-Abers and conformal predictions, objects, columns, shares of
the classes, objects within classes. Beside them a floor, at a level of its own, gets losses whose mean is exactly what
it allows. In half of the streams labels come late, in random order.

One stream in 20 goes through a `Forecaster` in `Online`, three through a `Panel` in `Online`. The others are predicted
in one call, and monitors get what `Online` would give them: predictions in the order of the labels, objects in that of
the questions. Prints a JSON line after each 100 streams: in how many of all so far something rang, exact limits of the
chance of that by the binomial distribution (Clopper and Pearson, 99 %), what is proved of it, and what rang.
"""

import time
from collections import Counter

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from workload import command, command_options

import venn
from venn.cli.words import monitors_on
from venn.monitors import FloorWatch

LEVEL, RUN_LENGTH, FLOOR = 0.01, 100_000, 0.75
COLUMNS = ("numbers", "rounded", "counts")
WAITING = 200  # questions that wait for a label, where these come late
REPEATED = "ShiryaevRoberts"
EACH = 100  # streams


def drawn(rng, n, shares):
    """Return objects and labels, independent."""
    y = rng.choice(3, n, p=shares)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.5 * y
    X[:, 1] = np.round(X[:, 1] + (y == 2))
    X[:, 2] = rng.poisson(1, n)
    return X, y.tolist()


def stream(rng, n):
    """Return objects and labels in random order, in every second stream out of a bag in which they come repeatedly."""
    X, y = drawn(rng, n, rng.dirichlet((3, 3, 3)))
    order = rng.integers(0, n // 2, n) if rng.random() < 0.5 else range(n)
    return X[order], [y[i] for i in order]


def arrivals(rng, n, late):
    """Return the questions in the order of their answers, and how many were asked before each."""
    if not late:
        return list(range(n)), list(range(1, n + 1))
    order, asked, waiting = [], [], []
    for number in range(n):
        waiting.append(number)
        if len(waiting) > WAITING:
            order.append(waiting.pop(rng.integers(len(waiting))))
            asked.append(number + 1)
    rest = rng.permutation(waiting).tolist()
    return order + rest, asked + [n] * len(rest)


def online(model, X, y, order, asked):
    """Return the alarms of a run, with the names of what rang."""
    run = venn.Online(model, monitors_on(model, True, COLUMNS, level=LEVEL, run_length=RUN_LENGTH))
    found, said = [], 0
    for id, upto in zip(order, asked, strict=True):
        for number in range(said, upto):
            run.ask(X[number], number)
            found += run.rung
        said = upto
        run.answer(id, y[id])
        found += run.rung
    return found


def blocks(panel, X, y, order):
    """Return the same alarms, of predictions for the whole stream in one call each."""
    monitors = monitors_on(panel, True, COLUMNS, level=LEVEL, run_length=RUN_LENGTH)
    labels = [y[id] for id in order]
    found = []
    for name, one in panel.items():
        found += [(name, alarm) for alarm in monitors[name].update_many(one.replay_many(X[order], labels), labels)]
    for x in X:
        found += [("objects", alarm) for alarm in monitors["objects"].update(x)]
    for id in order:
        found += [("classes", alarm) for alarm in monitors["classes"].update(X[id], y[id])]
    return found


def panel_on(fit):
    scorer = venn.FrozenScorer(fit)
    return venn.Panel(intervals=venn.InductiveVennAbers(scorer), sets=venn.InductiveConformal(scorer))


def alarms(number, n, fit):
    """Return the alarms of one stream, with the names of what rang, and how it was read."""
    rng = np.random.default_rng([number, 19])
    X, y = stream(rng, n)
    order, asked = arrivals(rng, n, rng.random() < 0.5)
    if number % 20 == 0:
        how, found = "forecaster", online(venn.Forecaster(scorer=fit), X, y, order, asked)
    elif number % 20 < 4:
        how, found = "panel", online(panel_on(fit), X, y, order, asked)
    else:
        how, found = "blocks", blocks(panel_on(fit), X, y, order)
    watch = FloorWatch(FLOOR)
    for loss in (rng.random(n) < watch.floor.risk).astype(float).tolist():
        found += [("floor", alarm) for alarm in watch.update(loss)]
    return found, how


def told(streams, rang, bound):
    """Return in how many streams something rang, with limits of its chance, and what is proved."""
    test = binomtest(rang, streams, min(bound, 1.0), "greater")
    low, high = binomtest(rang, streams).proportion_ci(0.99)
    return {
        "rang": rang, "limits": [round(low, 5), round(high, 5)], "proved": bound, "p": round(float(test.pvalue), 4),
    }  # fmt: skip


def line(streams, length, read, rang, what, seconds):
    """Return what was found so far."""
    repeated = length / RUN_LENGTH  # as a mean number of alarms, and so as a chance of one
    return {
        "streams": streams, "length": length, "read": dict(read),
        "all together, by level": told(streams, rang["all", False], LEVEL),
        "all together, repeatedly": told(streams, rang["all", True], repeated),
        "floor, by level": told(streams, rang["floor", False], LEVEL),
        "floor, repeatedly": told(streams, rang["floor", True], repeated),
        "what": dict(what.most_common()), "seconds": round(seconds),
    }  # fmt: skip


@command(threads=None)
def main():
    options = command_options(__doc__, streams=1000, length=3000)
    streams, length = options.streams, options.length
    fit = LogisticRegression().fit(*drawn(np.random.default_rng(0), 300, (0.4, 0.3, 0.3)))
    rang: Counter[str] = Counter()
    what: Counter[str] = Counter()
    read: Counter[str] = Counter()
    start = time.process_time()
    for number in range(streams):
        found, how = alarms(number, length, fit)
        read[how] += 1
        what.update({f"{name}: {alarm.about}, {alarm.detector}" for name, alarm in found})
        rang.update({("floor" if name == "floor" else "all", alarm.detector == REPEATED) for name, alarm in found})
        if number % EACH == EACH - 1 or number == streams - 1:
            yield line(number + 1, length, read, rang, what, time.process_time() - start)
