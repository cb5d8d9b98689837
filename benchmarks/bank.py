"""What does a bank of machines cost, against one machine, and what does its mixture gain?

    python benchmarks/bank.py
    STREAMS_DATA=folder python benchmarks/bank.py --loss car pima ionosphere german wine_red --shuffles 1

A step asks and learns one example after n others: `TransductiveVennAbers` on one `LeastSquaresSVM`, on the `Mixture` of
the bank of three penalties, both with the kernel `MultiscaleRBF()`, and on that of twelve members, four widths of `RBF`
by three penalties, on one thread and on two. Two classes, eight features. Each round makes the machines anew and takes
`--steps` steps; the median of a round counts, and the least of the rounds. Seconds by the clock, so nobody else should
use the machine; compilation excluded. A bank's
factors take M n^2 / 2 numbers; a processor whose last cache does not hold them all reads them from memory at every
step: 48 MB of twelve members at n = 1000, beside 4 MB of one.

With `--loss`: the ratio of log losses over steps 100 to 500 of each set to those of `TransductiveVennAbers` on
`LeastSquaresSVM(RBF(1 / d), C=1)`, of V-mix on the bank of three and of its mixture with beta calibration on
leave-one-out scores of the member of C = 3. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import mean, median

import numpy as np
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.machines import Bank, Mixture, MultiscaleRBF
from venn.predictors import ExpertMixture, LeaveOneOutScores

WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0)
FEATURES = 8


def one():
    return venn.TransductiveVennAbers(venn.LeastSquaresSVM(MultiscaleRBF(), 3.0, [0, 1]))


def three():
    return venn.TransductiveVennAbers(Mixture(Bank(MultiscaleRBF(), [0, 1])))


def twelve(threads=1):
    kernels = [venn.RBF(width / FEATURES) for width in WIDTHS]
    return venn.TransductiveVennAbers(Mixture(Bank(kernels, [0, 1], threads=threads), rate=0.25))


def twelve_on_two():
    return twelve(2)


def step_seconds(make, X, y, steps):
    """Return the median seconds of the last `steps` steps."""
    model, spent = make(), []
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        start = time.perf_counter()
        if i >= len(y) - steps:
            model.predict_one(x)
        model.learn_one(x, label)
        spent.append(time.perf_counter() - start)
    return median(spent[-steps:])


def costs(n, steps, rounds):
    """Return microseconds of a step of each, and the ratios to one machine."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + steps, FEATURES))
    y = (X[:, 0] + X[:, 1] ** 2 / 2 + rng.normal(size=len(X)) > 0.3).astype(int)
    contenders = {"one": one, "bank of 3": three, "bank of 12": twelve, "bank of 12, 2 threads": twelve_on_two}
    for make in contenders.values():
        step_seconds(make, X[:80], y[:80], 10)  # compilation
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, make in contenders.items():
            times[name].append(step_seconds(make, X, y, steps))
    least = {name: min(found) for name, found in times.items()}
    return {
        name: {"microseconds": round(1e6 * value), "ratio": round(value / least["one"], 2)}
        for name, value in least.items()
    }


def losses(name, seed):
    """Return the mean log losses, steps 100 to 500, of each predictor."""
    stream = streams.load(name, shuffle=seed)
    d = len(np.asarray(stream.X[0]))
    bank = Bank(MultiscaleRBF(), stream.classes)
    beta = venn.ScoreCalibrator(bank.members[1], venn.maps.BetaCalibration(), LeaveOneOutScores())
    vmix = venn.TransductiveVennAbers(Mixture(bank))
    panel = venn.Panel(
        base=venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(1 / d), 1.0, stream.classes)),
        vmix=vmix,
        both=ExpertMixture([vmix, beta]),
    )
    total = dict.fromkeys(panel, 0.0)
    count = 0
    for i, (x, y) in enumerate(stream):
        if i == 500:
            break
        if i >= 100:
            code, count = stream.classes.index(y), count + 1
            for label, said in panel.predict_one(x).items():
                total[label] -= np.log(max(said.proba[code], 1e-12))
        panel.learn_one(x, y)
    return {label: value / count for label, value in total.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="examples learned")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loss", nargs="+", default=[], help="sets to compare log losses on, instead of times")
    parser.add_argument("--shuffles", type=int, default=1)
    args = parser.parse_args()
    with threadpool_limits(1):
        if not args.loss:
            line = {"n": args.n, **costs(args.n, args.steps, args.rounds)}
        else:
            line = {"shuffles": args.shuffles}
            for name in args.loss:
                found = [losses(name, seed) for seed in range(args.shuffles)]
                base = mean(one["base"] for one in found)
                ratios = {kind: round(mean(one[kind] for one in found) / base, 3) for kind in ("vmix", "both")}
                line[name] = {"base": round(base, 3), **ratios}
            sets = [line[name] for name in args.loss]
            line["mean"] = {kind: round(mean(one[kind] for one in sets), 3) for kind in ("vmix", "both")}
    print(json.dumps(line))


if __name__ == "__main__":
    main()
