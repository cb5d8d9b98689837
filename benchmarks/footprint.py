"""What do importing, the first call and each kept example cost?

    python benchmarks/footprint.py

`import_ms` and `command_ms`: a process that imports venn, less one that does nothing, and `venn --version`: the
fastest of five, wall time. `first_replay_s`: a process that makes the README's first model and replays 20 examples of
Car, with an empty cache of compiled loops, and again with the cache filled; `first_hinge_s` the same for `OneVsAllSVM`,
which has the longest loops. `bytes_an_example`: what a predictor holds after n examples of 10 features and 2 classes,
by what its process holds more than after the first 10 % (resident memory, so that what numpy and compiled loops hold
counts), divided by the examples in between. Machines that keep a kernel matrix or its factor take memory proportional
to n: `floor` is 8 n bytes for a whole matrix. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

CLASSES = (0, 1)
FEATURES = 10
REPLAY = """
import streams, venn
stream = streams.load("car", shuffle=0).take(20)
machine = venn.{machine}(venn.RBF(0.5), C=10, classes=stream.classes)
model = venn.TransductiveVenn(machine{taxonomy})
for x, y in stream:
    model.predict_one(x)
    model.learn_one(x, y)
"""
MACHINES = {
    "LeastSquaresSVM": ", venn.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins())",
    "OneVsAllSVM": ", venn.Argmax()",
}


def seconds(command, **environment):
    """Return wall seconds of a process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def resident():
    """Return the bytes of resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kept(name):
    """Return the predictor whose memory per example is measured."""
    import venn

    if name == "InductiveVenn":
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(1)
        X = rng.normal(size=(500, FEATURES))
        return venn.InductiveVenn(venn.FrozenScorer(LogisticRegression().fit(X, X[:, 0] > 0), CLASSES))
    if name == "VennAbers":
        return venn.maps.VennAbers()
    return getattr(venn.machines, name)(venn.RBF(0.1), 1.0, CLASSES)


def grown(name, n):
    """Return bytes per example of a predictor that learns n of them, from the first tenth to the last."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int).tolist()
    model, early = kept(name), 0
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i == n // 10:
            early = resident()
        if name == "VennAbers":
            model.insert(float(x[0]), label)
        else:
            model.learn_one(x, label)
    return (resident() - early) / (n - n // 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grown", nargs=2, metavar=("NAME", "N"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.grown:
        print(grown(args.grown[0], int(args.grown[1])))
        return
    empty = min(seconds([sys.executable, "-c", ""]) for _ in range(5))
    imported = min(seconds([sys.executable, "-c", "import venn"]) for _ in range(5))
    command = min(seconds([sys.executable, "-c", "from venn.cli import main; main()", "--version"]) for _ in range(5))
    line = {"benchmark": "footprint", "import_ms": round(1e3 * (imported - empty)), "command_ms": round(1e3 * command)}
    for key, (machine, taxonomy) in zip(("first_replay_s", "first_hinge_s"), MACHINES.items(), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, "-c", REPLAY.format(machine=machine, taxonomy=taxonomy)]
            line[key] = {when: round(seconds(program, NUMBA_CACHE_DIR=folder), 2) for when in ("cold", "cached")}
    sizes = {
        "OneVsAllSVM": (1000, 4000), "LeastSquaresSVM": (1000, 4000),
        "InductiveVenn": (100_000,), "VennAbers": (100_000,),
    }  # fmt: skip
    line["bytes_an_example"] = {}
    for name, ns in sizes.items():
        found = {}
        for n in ns:
            done = subprocess.run(
                [sys.executable, __file__, "--grown", name, str(n)], check=True, capture_output=True, text=True
            )
            found[str(n)] = round(float(done.stdout))
        line["bytes_an_example"][name] = found
    line["floor"] = {"1000": 8000, "4000": 32000}
    print(json.dumps(line))


if __name__ == "__main__":
    main()
