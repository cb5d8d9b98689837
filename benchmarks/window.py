"""How much faster is sliding a window than fitting it anew, and is the result the same?

    python benchmarks/window.py --machine squares
    python benchmarks/window.py --machine hinge --steps 5000
    python benchmarks/window.py --alarms

A window of the latest `--size` examples goes over a stream in order of time. Each step is whole: scores of the new
object, then learning it and unlearning the oldest; compilation and filling the window are excluded. `machine` is
the window alone, which answers for both hypotheses; `venn` is `venn.TransductiveVenn` on it, by leave-one-out scores,
which also counts them. Against it

    refit    scikit-learn fitted to the window at each step, then the score of the new object, with its own defaults
             for the tolerance: `SVC` with the same kernel and C for the hinge loss, `KernelRidge` with alpha = 1 / C
             for the squared one, which has no bias. It answers for no hypothesis and leaves nobody out.

timed at `--samples` steps spread over the stream. At those steps the scores of the whole window and of the new object
are also compared with a batch solution: a dense solve of the bordered system, or `SVC` with tolerance 1e-9, which
keeps its kernel matrix in single precision; and with a machine that has learned nothing but the window.

`--alarms` asks instead how often martingales ring at the odds of 20 to 1 on p-values of windows that slide over
exchangeable scores, where only an unlimited window has a theorem (at most 0.05).

One thread; processor time, so that others on the machine matter little. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import bisect
import json
from time import process_time as clock

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.machines.window import SlidingWindow

MACHINES = {"squares": venn.LeastSquaresSVM, "hinge": venn.OneVsAllSVM}


def batch(kind, X, t, x, gamma, C):
    """Return scores of the window and of a new object by a batch solution, as exact as it can be."""
    everyone = np.vstack([X, x])
    if kind == "hinge":
        return SVC(C=C, gamma=gamma, tol=1e-9, cache_size=500).fit(X, t).decision_function(everyone)
    n = len(t)
    M = np.ones((n + 1, n + 1))
    M[0, 0] = 0.0
    M[1:, 1:] = rbf_kernel(X, X, gamma) + np.eye(n) / C
    solution = np.linalg.solve(M, np.append(0.0, t))
    return rbf_kernel(everyone, X, gamma) @ solution[1:] + solution[0]


def refit(kind, X, t, x, gamma, C):
    """Return seconds of a fit by scikit-learn and a score."""
    start = clock()
    if kind == "hinge":
        SVC(C=C, gamma=gamma, cache_size=500).fit(X, t).decision_function(x[None])
    else:
        KernelRidge(alpha=1 / C, kernel="rbf", gamma=gamma).fit(X, t).predict(x[None])
    return clock() - start


def slide(stream, window, predictor, samples=(), look=None):
    """Return seconds a step with the window full; at the steps in `samples`, stop the clock and look."""
    seconds, wanted = 0.0, frozenset(samples)
    for step, (x, y) in enumerate(stream):
        if step == window.size:
            start = clock()
        if step in wanted:
            seconds += clock() - start
            look(step, x)
            start = clock()
        if predictor is None:
            window.hypotheses(x)
            window.learn_one(x, y)
        else:
            predictor.predict_one(x)
            predictor.learn_one(x, y)
    return (seconds + clock() - start) / (len(stream) - window.size)


def compare(args):
    """Return the figures of one machine."""
    stream = streams.load(args.data)
    if args.steps:
        stream = stream.take(args.steps)
    X, t = stream.X, np.where(stream.y == 1, 1.0, -1.0)

    def made(size):
        return SlidingWindow(MACHINES[args.machine](venn.RBF(args.gamma), args.C, stream.classes), size)

    warm = made(40)
    slide(stream.take(120), warm, venn.TransductiveVenn(warm))
    window, apart, from_anew, refits = made(args.size), [], [], []
    samples = np.linspace(args.size, len(stream) - 1, args.samples).astype(int).tolist()

    def look(step, x):
        bag = slice(step - args.size, step)
        expected = batch(args.machine, X[bag], t[bag], x, args.gamma, args.C)
        found = np.array([window.scores(one)[1] for one in (*X[bag], x)])
        apart.append(float(np.abs(found - expected).max()))
        alone = window.machine.fresh()
        for one, code in zip(X[bag], stream.y[bag], strict=True):
            alone.learn_one(one, stream.classes[code])
        anew = np.array([alone.scores(one)[1] for one in (*X[bag], x)])
        from_anew.append(float(np.abs(found - anew).max()))
        refits.append(min(refit(args.machine, X[bag], t[bag], x, args.gamma, args.C) for _ in range(2)))

    step = slide(stream, window, None, samples, look)
    whole = made(args.size)
    venn_step = slide(stream, whole, venn.TransductiveVenn(whole))
    refitted = float(np.mean(refits))
    return {
        "data": args.data, "machine": args.machine, "size": args.size, "steps": len(stream), "gamma": args.gamma,
        "C": args.C, "machine_steps_a_second": round(1 / step, 1), "milliseconds_a_step": round(1e3 * step, 3),
        "venn_steps_a_second": round(1 / venn_step, 1),
        "refit_steps_a_second": round(1 / refitted, 1), "refit_milliseconds": round(1e3 * refitted, 2),
        "ratio": round(refitted / step, 1), "ratio_venn": round(refitted / venn_step, 1),
        "worst_difference_from_batch": max(apart), "worst_difference_from_learning_anew": max(from_anew),
        "residual": window.residual, "samples": len(apart),
    }  # fmt: skip


def p_values(size, n, rng):
    """Return smoothed p-values of n exchangeable scores, each among those of a window before it."""
    scores, ties = rng.random(n), rng.random(n)
    p, held = np.empty(n), []
    for step, score in enumerate(scores):
        above = len(held) - bisect.bisect_right(held, score)
        p[step] = (above + ties[step]) / (len(held) + 1)
        bisect.insort(held, score)
        if len(held) > size:
            held.pop(bisect.bisect_left(held, scores[step - size]))
    return p


def alarms(n=10_000, streams_=400):
    """Return how often each martingale ever reaches 20, and the variance of the errors at 0.1 over the binomial's."""
    figures = {"steps": n, "streams": streams_}
    for size in (20, 100, 1000, n):
        errors, rung = [], dict.fromkeys(("CompositeJumper", "SimpleJumper", "PlugIn"), 0)
        for seed in range(streams_):
            p = p_values(size, n, np.random.default_rng([seed, 5]))
            errors.append((p < 0.1).sum())
            for name in rung:
                rung[name] += int(getattr(venn.monitors, name)().update_many(p).max() >= np.log(20))
        figures["unlimited" if size == n else str(size)] = {
            "rung": {name: times / streams_ for name, times in rung.items()},
            "error_rate": round(float(np.mean(errors)) / n, 4),
            "variance_over_binomial": round(float(np.var(errors)) / (0.09 * n), 2),
        }
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="elec2")
    parser.add_argument("--machine", choices=MACHINES, default="squares")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=0, help="0: all")
    parser.add_argument("--gamma", type=float, default=1 / 8)
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--alarms", action="store_true")
    args = parser.parse_args()
    with threadpool_limits(1):
        print(json.dumps(alarms() if args.alarms else compare(args)))


if __name__ == "__main__":
    main()
