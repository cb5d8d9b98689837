"""How much faster is sliding a window than fitting it anew, and is the result the same?

    STREAMS_DATA=folder python benchmarks/window.py [--steps 4000]

A window of the latest 1000 examples of a least-squares machine goes over elec2 in order of time. Each step is whole:
scores of the new object under both hypotheses, then learning it and unlearning the oldest; compilation and filling the
window are excluded. Against it scikit-learn's `KernelRidge` with alpha = 1 / C, which has no bias, fitted to the window
at each step, then the score of the new object; timed at 20 steps spread over the stream. At those steps the scores of
the whole window and of the new object are compared with a dense solve of the bordered system. One thread; processor
time. Prints one JSON line.
"""

import time

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from workload import command, command_options, timed

import streams
import venn

SIZE, SAMPLES, GAMMA, C = 1000, 20, 1 / 8, 10.0


def batch(X, t, x):
    """Return scores of the window and of a new object by a dense solve."""
    n, everyone = len(t), np.vstack([X, x])
    M = np.ones((n + 1, n + 1))
    M[0, 0] = 0.0
    M[1:, 1:] = rbf_kernel(X, X, GAMMA) + np.eye(n) / C
    solution = np.linalg.solve(M, np.append(0.0, t))
    return rbf_kernel(everyone, X, GAMMA) @ solution[1:] + solution[0]


def refit(X, t, x):
    """Return the seconds of a fit by scikit-learn and a score."""
    return timed(lambda: KernelRidge(alpha=1 / C, kernel="rbf", gamma=GAMMA).fit(X, t).predict(x[None]))


def slide(stream, window, samples=(), look=None):
    """Return seconds a step with the window full; at the steps in `samples`, stop the clock and look."""
    seconds = 0.0
    for step, (x, y) in enumerate(stream):
        if step in samples:
            look(step, x)
        start = time.process_time()
        window.hypotheses(x)
        window.learn_one(x, y)
        seconds += (time.process_time() - start) * (step >= window.size)
    return seconds / (len(stream) - window.size)


@command()
def main():
    stream = streams.load("elec2").take(command_options(__doc__, steps=4000).steps)
    X, t = stream.X, np.where(stream.y == 1, 1.0, -1.0)
    warm, window = (
        venn.SlidingWindow(venn.LeastSquaresSVM(venn.RBF(GAMMA), C, stream.classes), size) for size in (40, SIZE)
    )
    apart, refits = [], []

    def look(step, x):
        bag = slice(step - SIZE, step)
        found = np.array([window.scores(one)[1] for one in (*X[bag], x)])
        apart.append(float(np.abs(found - batch(X[bag], t[bag], x)).max()))
        refits.append(min(refit(X[bag], t[bag], x) for _ in range(2)))

    slide(stream.take(120), warm)
    step = slide(stream, window, set(np.linspace(SIZE, len(stream) - 1, SAMPLES).astype(int).tolist()), look)
    line = {"steps_a_second": round(1 / step, 1), "ratio": round(float(np.mean(refits)) / step, 1)}
    return {"benchmark": "window", **line, "worst_difference_from_batch": max(apart)}
