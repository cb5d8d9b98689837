"""Intervals where noise grows: the forecaster's, and beside them those of one width, as most libraries give them.

    python benchmarks/growing_noise.py                              # prints misses and widths by quarter of the object
    python benchmarks/growing_noise.py --figure docs/growing_noise.png

One column x from 0 to 10; y = 2 sin(x) + noise of deviation .1 + .2 x. The last 400 of 1000 examples are counted.
One width: a forest of 100 trees on half of all examples so far, fitted anew every 100 examples, and the quantile of the
absolute errors of the other half.
"""

from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from workload import command_options

import venn

N, COUNTED, LEVEL, EVERY = 1000, 400, 0.1, 100


def stream():
    """Return (n, 1) objects and labels."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, N)
    return x[:, None], 2 * np.sin(x) + (0.1 + 0.2 * x) * rng.normal(size=N)


def followed(X, y):
    """Return the (COUNTED, 2) ends of the intervals of both ways."""
    model, ours, others = venn.Forecaster(float), [], []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i >= N - COUNTED:
            if i % EVERY == 0:
                forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X[:i:2], y[:i:2])
                off = np.sort(np.abs(y[1:i:2] - forest.predict(X[1:i:2])))
            ours.append(model.predict_one(x).interval(LEVEL))
            half = off[int(np.ceil((1 - LEVEL) * (len(off) + 1))) - 1]
            others.append(forest.predict(x[None])[0] + np.array([-half, half]))
        model.learn_one(x, label)
    return np.array(ours), np.array(others)


def drawn(x, y, ways, path):
    """Write the figure."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    order = np.argsort(x)
    for axis, (title, ends) in zip(axes, ways.items(), strict=True):
        missed = (y < ends[:, 0]) | (y > ends[:, 1])
        axis.fill_between(x[order], *ends[order].T, color="#9ecae1", linewidth=0)
        axis.plot(x[~missed], y[~missed], ".", color="#444444", markersize=3)
        axis.plot(x[missed], y[missed], "x", color="#d62728", markersize=5)
        share = [f"{one:.2f}" for one in by_quarter(x, missed)]
        axis.set(title=f"{title}: missed {missed.mean():.2f}\nby quarter of x {', '.join(share)}", xlabel="x")
    figure.savefig(path, dpi=100, metadata={"Software": None})


def by_quarter(x, values):
    """Return the means of values in the quarters of x."""
    return [float(values[part].mean()) for part in np.array_split(np.argsort(x), 4)]


def main():
    """Print what is missed, and draw."""
    args = command_options(__doc__, figure=Path)
    X, y = stream()
    ours, others = followed(X, y)
    x, y = X[-COUNTED:, 0], y[-COUNTED:]
    ways = {"Forecaster(float)": ours, "one width": others}
    for title, ends in ways.items():
        missed = (y < ends[:, 0]) | (y > ends[:, 1])
        print(title, "missed", by_quarter(x, missed), "mean width", by_quarter(x, np.ptp(ends, axis=1)))
    if args.figure:
        drawn(x, y, ways, args.figure)


if __name__ == "__main__":
    main()
