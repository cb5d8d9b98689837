"""What several benchmarks share: how a command runs, options, made rows, the clock, rates, a replay, memory in use."""

import argparse
import json
import os
import time
from inspect import isgenerator

from threadpoolctl import threadpool_limits


def command(threads=1):
    """Run what is decorated if its file is the command, on so many threads; print what it returns or yields as JSON."""

    def run(main):
        if main.__module__ == "__main__":
            with threadpool_limits(threads):
                made = main()
                for line in made if isgenerator(made) else () if made is None else (made,):
                    print(json.dumps(line), flush=True)
        return main

    return run


def command_options(doc, **defaults):
    """Return the options of a command: each has the kind of its default; a class stands for one without a default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, list | tuple | dict):
            parser.add_argument(f"--{name}", nargs="+", type=type((*default, "")[0]), default=default)
        else:
            kind, default = (default, None) if isinstance(default, type) else (type(default), default)
            parser.add_argument(f"--{name}", type=kind, default=default)
    return parser.parse_args()


def lines_of(path):
    """Return the JSON lines of a file; none if there is none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path, line):
    """Add a JSON line to a file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def noisy(rng, n, features=10):
    """Return (n, features) normal rows, and whether the first column with as much noise is positive."""
    X = rng.normal(size=(n, features))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int).tolist()


def timed(work, clock=time.process_time):
    """Return the seconds of one call, of the processor unless by another clock."""
    start = clock()
    work()
    return clock() - start


def rate(n, work, runs=3):
    """Return rows a second of work on n of them, the largest of some runs, by processor time."""
    return round(n / min(timed(work) for _ in range(runs)))


def one_by_one(model, X, y):
    """Predict each row, then learn it."""
    for x, label in zip(X, y, strict=True):
        model.predict_one(x)
        model.learn_one(x, label)


def resident():
    """Return the bytes of resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
