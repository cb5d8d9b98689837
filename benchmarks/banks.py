"""What does a bank of machines cost, against one machine, and how much faster is a second thread?

    python benchmarks/banks.py

*Banks*: a step asks and learns one example after `--n` others: `TransductiveVennAbers` on one `LeastSquaresSVM`, on
the `Mixture` of the bank of three penalties, both with the kernel `MultiscaleRBF()`, and on that of twelve members,
four widths of `RBF` by three penalties, on one thread and on two. Two classes, eight features. Each of three rounds
makes the machines anew; the median of its 60 last steps counts, and the least of the rounds. *Threads*: `OneVsAllSVM`
learns `--learned` Gaussian examples of 4 and of 10 classes; then steps are taken by one thread and by two in turn, ten
each, and their scores are equal to the last bit. Seconds by the clock, so nobody else should use the machine;
compilation excluded. Prints one JSON line.
"""

import copy
import time
from statistics import median

import numpy as np
from workload import command, command_options, timed

import streams
import venn
from venn.machines import Bank, Mixture, MultiscaleRBF

FEATURES, STEPS, ROUNDS = 8, 60, 3


def three():
    return venn.TransductiveVennAbers(Mixture(Bank(MultiscaleRBF(), [0, 1])))


def twelve(threads=1):
    kernels = [venn.RBF(width / FEATURES) for width in (1 / 16, 1 / 4, 1.0, 4.0)]
    return venn.TransductiveVennAbers(Mixture(Bank(kernels, [0, 1], threads=threads), rate=0.25))


BANKS = {
    "one": lambda: venn.TransductiveVennAbers(venn.LeastSquaresSVM(MultiscaleRBF(), 3.0, [0, 1])),
    "bank of 3": three, "bank of 12": twelve, "bank of 12, 2 threads": lambda: twelve(2),
}  # fmt: skip


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


def banks(n):
    """Return how many times a step of one machine each takes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + STEPS, FEATURES))
    y = (X[:, 0] + X[:, 1] ** 2 / 2 + rng.normal(size=len(X)) > 0.3).astype(int)
    for make in BANKS.values():
        step_seconds(make, X[:80], y[:80], 10)  # compilation
    rounds = [{name: step_seconds(make, X, y, STEPS) for name, make in BANKS.items()} for _ in range(ROUNDS)]
    least = {name: min(each[name] for each in rounds) for name in BANKS}
    return {name: round(value / least["one"], 2) for name, value in least.items() if name != "one"}


def step(machine, x, y):
    """Ask for the scores of all hypotheses, and learn."""
    answer = machine.hypotheses(x)
    scores = np.array([answer.scores(j) for j in range(len(machine.classes))])
    machine.learn_one(x, y)
    return scores


def two_threads(n, classes, steps=40):
    """Return how many times as fast two threads are."""
    stream = streams.gaussians(n + 2 * steps + 4, classes=classes, features=10, spread=0.7, seed=classes)
    examples, machine = list(stream), venn.OneVsAllSVM(venn.RBF(0.05), 10.0, stream.classes)
    for x, y in examples[:n]:
        machine.learn_one(x, y)
    twin = copy.deepcopy(machine)
    machine.threads, twin.threads = 2, 1
    assert all(np.array_equal(step(machine, *one), step(twin, *one)) for one in examples[n : n + 4])
    seconds = {1: [], 2: []}
    for i, one in enumerate(examples[n + 4 :]):
        machine.threads = (1, 2)[i // 10 % 2]
        seconds[machine.threads].append(timed(lambda one=one: step(machine, *one), time.perf_counter))
    return round(median(seconds[1]) / median(seconds[2]), 2)


@command()
def main():
    args = command_options(__doc__, n=1000, learned=2000)
    two_threads(60, 4, 10)  # compilation
    found = {str(classes): two_threads(args.learned, classes) for classes in (4, 10)}
    return {"benchmark": "banks", **banks(args.n), "two threads, classes": found}
