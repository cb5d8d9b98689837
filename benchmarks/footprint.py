"""What do importing, the first call and each kept example cost?

    python benchmarks/footprint.py

`import_ms` and `command_ms`: a process that imports venn, less one that does nothing, and `venn --version`: the fastest
of five, wall time. `first_replay_s`: a process that makes the README's first model and replays 20 examples of Car, with
an empty cache of compiled loops, and again with the cache filled. `bytes_an_example`: what a predictor holds after n
examples of 10 features and 2 classes, by what its process holds more than after the first 10 % (resident memory, so
that what numpy and compiled loops hold counts), divided by the examples in between. Prints one JSON line.
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from workload import command, command_options, noisy, resident

CLASSES = (0, 1)
REPLAY = """
import streams, venn
stream = streams.load("car", shuffle=0).take(20)
machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=stream.classes)
model = venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins()))
for x, y in stream:
    model.predict_one(x)
    model.learn_one(x, y)
"""
SIZES = {"OneVsAllSVM": 1000, "LeastSquaresSVM": 1000, "VennAbers": 100_000}


def seconds(command, **environment):
    """Return wall seconds of a process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def kept(name):
    """Return the predictor whose memory per example is measured."""
    import venn

    if name == "VennAbers":
        return venn.maps.VennAbers()
    return getattr(venn.machines, name)(venn.RBF(0.1), 1.0, CLASSES)


def grown(name, n):
    """Return bytes per example of a predictor that learns n of them, from the first tenth to the last."""
    X, y = noisy(np.random.default_rng(0), n)
    model, early = kept(name), 0
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i == n // 10:
            early = resident()
        if name == "VennAbers":
            model.insert(float(x[0]), label)
        else:
            model.learn_one(x, label)
    return (resident() - early) / (n - n // 10)


@command(threads=None)
def main():
    args = command_options(__doc__, grown=[])
    if args.grown:
        print(grown(args.grown[0], int(args.grown[1])))
        return
    empty = min(seconds([sys.executable, "-c", ""]) for _ in range(5))
    imported = min(seconds([sys.executable, "-c", "import venn"]) for _ in range(5))
    command = min(seconds([sys.executable, "-c", "from venn.cli import main; main()", "--version"]) for _ in range(5))
    line = {"benchmark": "footprint", "import_ms": round(1e3 * (imported - empty)), "command_ms": round(1e3 * command)}
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-c", REPLAY]
        line["first_replay_s"] = {
            when: round(seconds(program, NUMBA_CACHE_DIR=folder), 2) for when in ("cold", "cached")
        }
    line["bytes_an_example"] = {}
    for name, n in SIZES.items():
        program = [sys.executable, __file__, "--grown", name, str(n)]
        line["bytes_an_example"][name] = round(float(subprocess.run(program, check=True, capture_output=True).stdout))
    return line
