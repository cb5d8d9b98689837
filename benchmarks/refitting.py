"""How much faster are the exact transductive steps than refitting with scikit-learn and LAPACK?

    python benchmarks/refitting.py [--samples 12] [--steps 1728]

Ours are timed over the whole replay of Car, prediction and learning, compilation excluded, the fastest of three.
Against them what a user would write, for every step:

    hinge      c x c fits of `SVC` at its default tolerance, every class under every hypothesis, and the scores of the
               whole bag, which a category needs
    squares    the kernel matrix kept and grown by a row; one Cholesky factor and inverse of K + I / C from nothing
               (LAPACK's potrf and potri), leave-one-out scores under every hypothesis in numpy, argmax counts.
               `machine_seconds` is our machine alone, `abers_seconds` with Venn-Abers; the ratio is that of a replay
               with the same scores and counts

timed at `--samples` steps spread over the replay and integrated over the steps in between (trapezoid): every step would
take hours. Prints one JSON line.
"""

import time

import numpy as np
from scipy.integrate import trapezoid
from scipy.linalg.lapack import dpotrf, dpotri
from sklearn.svm import SVC
from workload import command, command_options, one_by_one, timed

import streams
import venn

HINGE, SQUARES, C = 0.1, 0.5, 10.0  # widths of the kernels


def hinge(classes):
    return venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF(HINGE), C, classes), venn.Argmax())


def squares(classes):
    return venn.LeastSquaresSVM(venn.RBF(SQUARES), C, classes)


OURS = {
    "hinge": hinge,
    "squares": lambda classes: venn.TransductiveVenn(squares(classes), venn.LeaveOneOut(venn.Argmax())),
    "abers": lambda classes: venn.TransductiveVennAbers(squares(classes)),
}


def replayed(make, stream):
    """Return the seconds of a replay, the least of three."""
    one_by_one(make(stream.classes), *zip(*stream.take(60), strict=True))  # compilation
    X, y = zip(*stream, strict=True)
    return min(timed(lambda: one_by_one(make(stream.classes), X, y), time.perf_counter) for _ in range(3))


def alone(stream):
    """Return the seconds of the least-squares machine with no predictor."""
    machine = squares(stream.classes)
    return timed(lambda: [machine.learn_one(x, y) for x, y in stream], time.perf_counter)


def svc_step(X, y, c):
    """Return the seconds of one step by `SVC`; the last example is the new one."""
    start = time.perf_counter()
    for k in range(c):
        for supposed in range(c):
            signs = np.where(np.append(y[:-1], supposed) == k, 1, -1)
            if abs(signs.sum()) < len(signs):  # one class needs no fit
                SVC(C=C, gamma=HINGE).fit(X, signs).decision_function(X)
    return time.perf_counter() - start


def lapack_step(X, y, c):
    """Return the seconds of one step by an inverse; the last example is the new one."""
    n, lengths = len(y), (X**2).sum(1)
    K = np.exp(-SQUARES * np.maximum(lengths[:, None] + lengths - 2 * X @ X.T, 0))
    start = time.perf_counter()
    K[-1] = K[:, -1] = np.exp(-SQUARES * ((X - X[-1]) ** 2).sum(1))  # the user keeps the rest
    M = K.copy()
    M[np.diag_indices(n)] += 1 / C
    inverse, _ = dpotri(dpotrf(M, lower=1, overwrite_a=1)[0], lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    sums = inverse.sum(axis=0)
    H = inverse - np.outer(sums, sums) / sums.sum()
    counts = np.zeros((c, c))
    for j in range(c):
        labels = np.append(y[:-1], j)
        T = np.where(labels[:, None] == np.arange(c), 1.0, -1.0)
        top = (T - (H @ T) / np.diag(H)[:, None]).argmax(axis=1)
        counts[j] = np.bincount(labels[top == top[-1]], minlength=c)
    counts /= counts.sum(axis=1, keepdims=True)
    return time.perf_counter() - start


@command()
def main():
    args = command_options(__doc__, samples=12, steps=1728)
    stream = streams.load("car", shuffle=0).take(args.steps)
    X, y, c = stream.X, stream.y, len(stream.classes)
    sizes = np.unique(np.linspace(10, len(y), args.samples).astype(int))

    def integrated(step):
        return float(trapezoid([min(step(X[:n], y[:n], c) for _ in range(2)) for n in sizes], sizes))

    ours = {name: replayed(make, stream) for name, make in OURS.items()}
    machine = min(alone(stream) for _ in range(3))
    svc, lapack = integrated(svc_step), integrated(lapack_step)
    hinge_line = {"seconds": round(ours["hinge"], 3), "ratio": round(svc / ours["hinge"], 1)}
    squares_line = {"machine_seconds": round(machine, 3), "abers_seconds": round(ours["abers"], 3)}
    squares_line |= {"seconds": round(ours["squares"], 3), "ratio": round(lapack / ours["squares"], 1)}
    return {"benchmark": "refitting", "n": len(y), "hinge": hinge_line, "squares": squares_line}
