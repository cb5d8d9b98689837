"""How much faster are many replays by two processes than by a loop, and what does a run cost that skips them all?

    python benchmarks/replays.py
    python benchmarks/replays.py --replays 100 --workers 4

Data sets x shuffles, each through a Venn predictor and a conformal one that share a machine, `steps` examples each: one
after the other in this process, then on a local Dask cluster. Compilation and the start of the processes are excluded,
and the start is reported separately; so is the cost of the results on disk, since the loop writes them too. Efficiency
is the ratio divided by the number of workers, or of cores if there are fewer. Nobody else should use the machine:
`load` shows how many processes wanted to run when it began. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import streams
import venn
from venn.scale import client_of, grid, replays

SETS = ("car", "wine_red", "pima", "ionosphere", "german")


def both(classes):
    """Return the predictors of one replay."""
    machine = venn.LeastSquaresSVM(venn.RBF(0.1), 1.0, classes)
    return venn.Panel(venn=venn.TransductiveVenn(machine, venn.Argmax()), conformal=venn.Conformal(machine))


def seconds(call):
    """Return how long a call takes, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=int, default=500)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    here = [info.name for info in streams.datasets() if info.name in SETS and info.where != "download"]
    made = {name: partial(streams.load, name) for name in here}
    tasks = grid(
        stream=made,
        predictor={"both": both},
        shuffle=range(-(-options.replays // len(here))),
        steps=options.steps,
    )[: options.replays]
    warm = grid(
        stream={n: partial(streams.load, n) for n in here}, predictor={"both": both}, shuffle=range(8), steps=20
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        replays(warm, place / "warm", workers=0)
        alone, rows = seconds(lambda: replays(tasks, place / "alone", workers=0))
        begin = time.perf_counter()
        with client_of(workers=options.workers) as client:
            replays(warm, place / "warm too", cluster=client)
            start = time.perf_counter() - begin
            together, same = seconds(lambda: replays(tasks, place / "together", cluster=client))
        skipping, again = seconds(lambda: replays(tasks, place / "together", workers=options.workers))
        assert not any(row["error"] for row in rows)
        unequal = [one for one, other in zip(rows, same, strict=True) if one["accuracy"] != other["accuracy"]]
        assert not unequal
        assert same == again
    ratio = alone / together
    print(
        json.dumps(
            {
                "benchmark": "replays", "replays": len(tasks), "steps": options.steps, "sets": here,
                "loop_seconds": round(alone, 2), "cluster_seconds": round(together, 2), "ratio": round(ratio, 3),
                "workers": options.workers,
                "efficiency": round(ratio / min(options.workers, len(os.sched_getaffinity(0))), 3),
                "start_seconds": round(start, 2), "skipping_seconds": round(skipping, 3), "load": load,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
