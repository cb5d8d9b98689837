"""How soon does a change ring in one predictor's monitor, and in those of two that share one level?

    python benchmarks/together.py [--seeds 10] [--at 1000]

The streams of examples/alarms.py: three classes on the plane; after `--at` examples the concept turns by 60 degrees,
each label becomes the next one, one class comes ten times as often, or nothing happens. One machine, three
predictors; each row watches one of them at level .01, or two by `venn.monitors.together`. Prints the median number of
examples from the change to the first alarm, how many streams rang at all, and how many alarms came before the change
or without one.
"""

from __future__ import annotations

import json
from math import inf
from statistics import median_low

import click

import streams
import venn
from venn.monitors import together

LEVEL = 0.01
CHANGES = ("turned concept", "flipped labels", "label shift", "harmless")
ROWS = (("abers",), ("leave_one_out",), ("conformal",), ("abers", "conformal"), ("leave_one_out", "conformal"))


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


def rings(stream: streams.Stream) -> dict[tuple[str, ...], list[int]]:
    """Return the steps of the alarms of each row."""
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=stream.classes)
    panel = venn.Panel(
        abers=venn.TransductiveVennAbers(machine),
        leave_one_out=venn.TransductiveVenn(machine, venn.taxonomies.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins())),
        conformal=venn.Conformal(machine),
    )
    record = venn.replay(stream, panel, progress=False)
    found = {}
    for row in ROWS:
        steps: list[int] = []
        for name, monitor in together(row, stream.classes, level=LEVEL).items():
            rung = monitor.follow(record.outcomes(name), record.kind(name).name, record.guaranteed[name])
            steps += [alarm.step for alarm in rung]
        found[row] = sorted(steps)
    return found


@click.command()
@click.option("--seeds", default=10)
@click.option("--at", default=1000)
def main(seeds: int, at: int) -> None:
    """Print one JSON line for each change."""
    for change in CHANGES:
        found = [rings(changing(change, at, seed)) for seed in range(seeds)]
        rows = {}
        for row in ROWS:
            late = [[step - at for step in one[row] if change != "harmless" and step > at] for one in found]
            false = sum(len(one[row]) - len(after) for one, after in zip(found, late, strict=True))
            first = [after[0] if after else inf for after in late]
            rang = [one for one in first if one < inf]
            rows[" and ".join(row)] = {
                "median": median_low(rang) if rang else None, "rang": len(rang), "false alarms": false
            }  # fmt: skip
        print(json.dumps({"change": change, "streams": seeds, **rows}), flush=True)


if __name__ == "__main__":
    main()
