"""What several benchmarks share: the options of a stream and a kernel, a replay by the clock, the memory in use."""

import argparse
import os
import time

import numpy as np

import streams


def options(document, gamma):
    """Return a parser with the options that name a stream, an RBF kernel and C.

    Parameters
    ----------
    document : str
        Of the benchmark's module.
    gamma : float
        The kernel's, by default.
    """
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="car", help="a named data set, or gaussians-N")
    parser.add_argument("--gamma", type=float, default=gamma)
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--shuffle", type=int, default=0)
    parser.add_argument("--steps", type=int, default=None, help="the first so many examples only")
    return parser


def stream_of(args):
    """Return the stream that parsed options name."""
    if args.data.startswith("gaussians-"):
        stream = gaussians(int(args.data.split("-")[1]))
    else:
        stream = streams.load(args.data, shuffle=args.shuffle)
    return stream if args.steps is None else stream.take(args.steps)


def gaussians(n, seed=0):
    """Return n examples of 4 overlapping Gaussian classes in 10 dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    centres = rng.normal(size=(4, 10)) * 1.5
    return streams.from_arrays(centres[y] + rng.normal(size=(n, 10)), y, name=f"gaussians-{n}")


def replay(stream, model, clock=time.perf_counter):
    """Return seconds of a whole replay, and its accuracy and mean bounds."""
    hits = lower = upper = 0.0
    start = clock()
    for x, y in stream:
        prediction = model.predict_one(x)
        hits += prediction.label == y
        lower += prediction.lower
        upper += prediction.upper
        model.learn_one(x, y)
    seconds = clock() - start
    n = len(stream)
    return seconds, (hits / n, lower / n, upper / n)


def rbf(X, gamma):
    """Return the (n, n) matrix of an RBF kernel, as a user would write it in numpy."""
    squares = (X**2).sum(1)
    return np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))


def resident_mb():
    """Return the resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
