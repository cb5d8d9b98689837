"""What do detectors say of real tables in file order, and of sensors that fail: ours, river's, tests of windows?

    python benchmarks/real_drift.py                  # the second table of docs/detectors.md; ten minutes
    python benchmarks/real_drift.py --rows 1500 --seeds 1

Electricity prices and forest cover in file order are never in random order; each also runs in random order, where
every alarm is false. The third stream is made: six sensors, independent rows; at a third of it one begins to count in
degrees Fahrenheit, at two thirds another sticks. It also runs without these faults. A logistic regression is fitted to
the first 500 rows, and detectors watch the others, `--rows` of them.

Ours is all that `venn run` watches by default, on Venn-Abers and conformal predictions that calibrate the classifier.
River's have their default settings; on columns there is one for each column. Windows of 500 rows are compared with the
first 500, column by column, by the test of Kolmogorov and Smirnov: an alarm is a column with p < .05 divided by
the number of columns (Bonferroni). Prints a JSON line for each detector and stream, then the table.
"""

import json
from statistics import median_low

import numpy as np
from scipy.stats import ks_2samp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from workload import command, command_options

import streams
import venn
from venn.cli.words import monitors_on

FITTED, WINDOW, LEVEL = 500, 500, 0.05
SENSORS = ("temperature", "pressure", "humidity", "flow", "speed", "load")


def sensors(n, seed, faults):
    """Return rows and labels of six sensors; with `faults` two fail."""
    rng = np.random.default_rng([seed, 43])
    X = rng.normal(size=(n, 6))
    y = (X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=n) > 0).astype(int)
    X = X * (5, 0.2, 10, 2, 50, 1) + (20, 1, 50, 7, 900, 3)
    X[:, 5] = np.round(X[:, 5])
    if faults:
        first, second = FITTED + (n - FITTED) // 3, FITTED + 2 * (n - FITTED) // 3
        X[first:, 0] = X[first:, 0] * 1.8 + 32
        X[second:, 3] = X[second - 1, 3]
    return X, y


def table(name, n, shuffled):
    """Return the first rows of a table, or some rows of it in random order, and the names of its columns."""
    stream = streams.load(name, **({"shuffle": 0} if shuffled else {})).take(n)
    return np.asarray(stream.X, float), np.asarray(stream.y), [str(one) for one in stream.features]


class Ours:
    """All that a run watches by default."""

    def __init__(self, names, fit):
        scorer = venn.FrozenScorer(fit)
        self.panel = venn.Panel(intervals=venn.InductiveVennAbers(scorer), sets=venn.InductiveConformal(scorer))
        self.run = venn.Online(self.panel, monitors_on(self.panel, True, names))
        self.columns = set()

    def ring(self, x, y):
        self.run.ask(x)
        rung = self.run.rung
        self.run.answer(self.run.asked, y)
        rung = [one for _, one in (*rung, *self.run.rung)]
        if rung:
            self.columns |= {one["name"] for one in self.run.monitors["objects"].snapshot()["columns"]}
        return bool(rung)


class OnColumns:
    """One of river's detectors for each column."""

    def __init__(self, make, names):
        self.each, self.columns = {name: make() for name in names}, set()

    def ring(self, x, y):
        rung = False
        for (name, one), value in zip(self.each.items(), x.tolist(), strict=True):
            one.update(value)
            if one.drift_detected:
                self.columns.add(name)
                rung = True
        return rung


class Windows:
    """The test of Kolmogorov and Smirnov of each column, window by window against the first rows."""

    def __init__(self, names, first):
        self.names, self.first, self.rows, self.columns = names, first, [], set()

    def ring(self, x, y):
        self.rows.append(x)
        if len(self.rows) < WINDOW:
            return False
        now, self.rows = np.array(self.rows), []
        ps = np.array([ks_2samp(self.first[:, j], now[:, j]).pvalue for j in range(now.shape[1])])
        low = np.flatnonzero(ps < LEVEL / len(ps))
        self.columns |= {self.names[j] for j in low}
        return bool(len(low))


def detectors(names, fit, X):
    """Return what makes each detector, by name."""
    from river import drift

    return {
        "venn": lambda: Ours(names, fit),
        "Kolmogorov-Smirnov, Bonferroni": lambda: Windows(names, X),
        "ADWIN on columns": lambda: OnColumns(drift.ADWIN, names),
        "PageHinkley on columns": lambda: OnColumns(drift.PageHinkley, names),
    }


def watched(title, X, y, names):
    """Yield for each detector the rows at which it rang, counted from the first that it saw, and what it said."""
    fit = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[:FITTED], y[:FITTED])
    keep = np.isin(y, fit.classes_) | (np.arange(len(y)) < FITTED)  # a class that comes first later on is left out
    X, y = X[keep], y[keep]
    for name, make in detectors(names, fit, X[:FITTED]).items():
        one, rows, first = make(), [], {}
        for i in range(FITTED, len(X)):
            if one.ring(X[i], y[i].item()):
                rows.append(i - FITTED + 1)
                for column in one.columns:
                    first.setdefault(column, i - FITTED + 1)
        said = {"stream": title, "detector": name, "alarms": len(rows), "first": min(rows, default=None)}
        print(json.dumps(said | {"columns": first}), flush=True)
        yield name, rows, first


def after(rows, change):
    """Return how long after a change the first of these rows is; None where there is none."""
    return next((row - change for row in rows if row > change), None)


def shown(each):
    """Return the median of what was found, and in how many of all."""
    some = [one for one in each if one is not None]
    if not some:
        return "missed"
    return f"{median_low(some)}{'' if len(some) == len(each) else f' ({len(some)} of {len(each)})'}"


@command(threads=None)
def main():
    options = command_options(__doc__, rows=3000, seeds=3)
    rows, seeds = options.rows, options.seeds
    cells: dict[str, list[str]] = {}
    for data in ("elec2", "covtype"):
        for shuffled in (False, True):
            X, y, names = table(data, rows + FITTED, shuffled)
            for name, rang, _ in watched(f"{data}{', shuffled' * shuffled}", X, y, names):
                told = f"{len(rang)}" if shuffled else f"{rang[0]}" if rang else "missed"
                cells.setdefault(name, []).append(told)
    faults = rows // 3, 2 * rows // 3
    found: dict[str, list[list[int | None]]] = {}
    false: dict[str, int] = {}
    for seed in range(seeds):
        for faulty in (True, False):
            X, y = sensors(rows + FITTED, seed, faulty)
            for name, rang, first in watched(f"sensors {seed}{'' if faulty else ', no fault'}", X, y, SENSORS):
                calm = [row for row in rang if not faulty or row <= faults[0]]
                false[name] = false.get(name, 0) + len(calm)
                if faulty:
                    found.setdefault(name, []).append([
                        after([first.get("temperature", 0)], faults[0]),
                        after([first.get("flow", 0)], faults[1]),
                    ])  # fmt: skip
    heads = ("elec2", "elec2 shuffled: alarms", "covtype", "covtype shuffled: alarms", "the column",
             "stuck: the column", "false alarms")  # fmt: skip
    print(f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|", sep="\n")
    for name, told in cells.items():
        each = [shown(one) for one in zip(*found[name], strict=True)]
        print(f"| {name} | {' | '.join([*told, *each, str(false[name])])} |")
