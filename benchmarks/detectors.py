"""Which detector finds which change how soon, and how often does it ring falsely: ours and river's on one bench?

    python benchmarks/detectors.py               # the table of docs/detectors.md; five minutes
    python benchmarks/detectors.py --seeds 2 --at 300

Three classes on the plane, `--at` examples before the change and as many after it (where
examples are left out, about as many). One predictor for all: Venn-Abers and conformal on a least-squares SVM, learning
all labels. River's detectors have their default settings. On errors they see whether the predicted label was wrong; on
columns there is one for each column, and an alarm of any counts. Prints a JSON line for each detector and change, then
the table.
"""

from workload import command, command_options

import streams
import venn
from venn.monitors import AmongAll, ClassDrift, Drift, FloorWatch, Scenario, bench, together

LEVEL, FLOOR, SPREAD = 0.01, 0.75, 0.6


def gaussians(n, seed, turn=0.0):
    return streams.gaussians(n, spread=SPREAD, seed=seed, turn=turn)


CHANGES = {
    "none": lambda at, seed: gaussians(2 * at, seed),
    "sudden": lambda at, seed: streams.change_point(gaussians(at, seed), gaussians(at, 1000 + seed, 60), at),
    "gradual": lambda at, seed: streams.gradual(gaussians(2 * at, seed), gaussians(2 * at, 1000 + seed, 60), at, at),
    "prior": lambda at, seed: streams.label_shift(gaussians(4 * at, seed), at, (10, 1, 1)),
    "covariate": lambda at, seed: streams.covariate_shift(gaussians(3 * at, seed), at),
    "stuck sensor": lambda at, seed: streams.stuck_sensor(gaussians(2 * at, seed), at),
    "unit change": lambda at, seed: streams.unit_change(gaussians(2 * at, seed), at),
    "seasonal": lambda at, seed: streams.seasonal(gaussians(3 * at, seed), at),
}


class OnColumns:
    """One of river's detectors for each column of the objects."""

    def __init__(self, make):
        self.each = [make(), make()]

    def ring(self, x, said, y):
        """Give each its column; return whether any rings."""
        for one, value in zip(self.each, x, strict=True):
            one.update(float(value))
        return any(one.drift_detected for one in self.each)


def detectors(classes):
    """Return what makes each detector, by name."""
    both = ("abers", "conformal")
    found = {
        "venn: labels": lambda: together(both, classes, level=LEVEL),
        "venn: labels and objects": lambda: together(
            both, classes, level=LEVEL, objects=Drift(AmongAll(size=5000), first=30)
        ),
        "venn: labels, columns and classes": lambda: together(
            both, classes, level=LEVEL, objects=Drift(AmongAll(size=5000), first=30, columns=True),
            examples=ClassDrift(classes, AmongAll(size=5000), first=30),
        ),
        f"venn: floor {FLOOR:g}": lambda: FloorWatch(FLOOR),
    }  # fmt: skip
    from river import drift
    from river.drift import binary

    found |= {"ADWIN on errors": drift.ADWIN, "DDM on errors": binary.DDM}
    columns = {"ADWIN": drift.ADWIN, "KSWIN": lambda: drift.KSWIN(seed=0), "PageHinkley": drift.PageHinkley}
    return found | {f"{name} on columns": lambda make=make: OnColumns(make) for name, make in columns.items()}


def scenario(name, at, seed):
    """Return the stream of a change with what the predictors said of it."""
    stream = CHANGES[name](at, seed)
    stream = stream.take(min(len(stream), 2 * at))
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=stream.classes)
    panel = venn.Panel(abers=venn.TransductiveVennAbers(machine), conformal=venn.Conformal(machine))
    steps = []
    for x, y in stream:
        steps.append((x, panel.predict_one(x), y))
        panel.learn_one(x, y)
    return Scenario(name, steps, None if name == "none" else at)


@command(threads=None)
def main():
    options = command_options(__doc__, seeds=5, at=1000)
    seeds, at = options.seeds, options.at
    table: dict[str, list[str]] = {}
    false: dict[str, int] = {}
    for name in CHANGES:
        scenarios = [scenario(name, at, seed) for seed in range(seeds)]
        for detector, make in detectors((0, 1, 2)).items():
            (row,) = bench(make, scenarios)
            shown = {"change": name, "detector": detector, **row._asdict(), "delay": row.delay}
            yield shown | {"delays": list(row.delays)}
            found = len(row.delays)
            some = "" if found == seeds else f" ({found} of {seeds})"
            table.setdefault(detector, []).append("missed" if row.delay is None else f"{row.delay}{some}")
            false[detector] = false.get(detector, 0) + row.false
    changes = list(CHANGES)[1:]
    print(f"| | {' | '.join(changes)} | false alarms |", "|---" * (len(changes) + 2) + "|", sep="\n")
    for detector, cells in table.items():
        print(f"| {detector} | {' | '.join(cells[1:])} | {false[detector]} |")
