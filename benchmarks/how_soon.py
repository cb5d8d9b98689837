"""How soon does a changed stream ring: each predictor alone, all that share a level, and the objects before the labels?

    python benchmarks/how_soon.py                # the last table of docs/detectors.md; two minutes
    python benchmarks/how_soon.py --data elec2   # one of the two: alarms or elec2

The streams of examples/alarms.py, three of each, 1000 examples before the change and 1000 after it; and electricity
prices in the order of time, 1200 examples from the first and from the 20 001st. "together" is what `venn run` watches
by `--predictors abers,leave_one_out,conformal`: three monitors and one `Drift` that share the level .01. Prints a JSON
line for each stream: the first alarm after the change (None: none), and how many came before it.
"""

from __future__ import annotations

import json

import click

import streams
import venn
from venn.monitors import AmongAll, Drift, together
from venn.monitors.shared_level import BAG

AT, STEPS, SEEDS = 1000, 1200, 3
LEVEL = 0.01
CHANGES = ("turned concept", "flipped labels", "label shift", "harmless")


def changing(name: str, at: int, seed: int) -> streams.Stream:
    """Return a stream of 2 `at` examples."""
    stream = streams.gaussians(2 * at, spread=0.6, seed=seed)
    if name == "turned concept":
        return streams.change_point(stream, streams.gaussians(at, spread=0.6, turn=60, seed=1000 + seed), at)
    if name == "flipped labels":
        return streams.flip_labels(stream, at)
    if name == "label shift":
        return streams.label_shift(streams.gaussians(5 * at, spread=0.6, seed=seed), at, (10, 1, 1), seed=seed)
    return stream


def rings(stream, kernel, C):
    """Return the steps of the alarms of each that watches a stream."""
    machine = venn.LeastSquaresSVM(kernel, C, stream.classes)
    panel = venn.Panel(
        abers=venn.TransductiveVennAbers(machine),
        leave_one_out=venn.TransductiveVenn(machine, venn.taxonomies.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins())),
        conformal=venn.Conformal(machine),
    )
    record = venn.replay(stream, panel, progress=False)
    shared = together(panel, stream.classes, level=LEVEL, objects=Drift(AmongAll(size=BAG), first=30))
    found, all_together = {}, []
    for name in panel:
        alone = venn.Monitor(stream.classes, level=LEVEL)
        for monitor, steps in ((alone, found.setdefault(name, [])), (shared[name], all_together)):
            rung = monitor.follow(record.outcomes(name), record.kind(name).name, record.guaranteed[name])
            steps += [alarm.step for alarm in rung]
    drift = shared.pop("objects")
    for x, _ in stream:
        drift.update(x)
    found["objects"] = [alarm.step for alarm in drift.alarms]
    found["together, labels only"] = sorted(all_together)
    found["together"] = sorted(all_together + found["objects"])
    return found


def told(found, at):
    """Return for each the number of examples from the change to the first alarm, and how many came before it."""
    first = {name: min((step - at for step in steps if step > at), default=None) for name, steps in found.items()}
    return {"first": first, "before": {name: sum(step <= at for step in steps) for name, steps in found.items()}}


@click.command()
@click.option("--data", type=click.Choice(["alarms", "elec2"]))
@click.option("--seeds", default=SEEDS)
def main(data, seeds):
    """Print one JSON line for each stream."""
    for change in CHANGES if data != "elec2" else ():
        for seed in range(seeds):
            found = told(rings(changing(change, AT, seed), venn.RBF(0.5), 1.0), AT)
            print(json.dumps({"stream": change, "seed": seed, **found}), flush=True)
    for start in (0, 20_000) if data != "alarms" else ():
        stream = streams.load("elec2").drop(start).take(STEPS) if start else streams.load("elec2").take(STEPS)
        found = told(rings(stream, venn.RBF(1 / 8), 10.0), 0)
        print(json.dumps({"stream": "elec2", "from": start + 1, **found}), flush=True)


if __name__ == "__main__":
    main()
