"""Compiles the loops that most test files meet, half of them in each of two processes.

Otherwise every worker of the suite would compile them all for itself: `python tests/compile_first.py hinge` and
`python tests/compile_first.py squares`, side by side, leave them in numba's cache.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import venn
from venn.calibrators import VennAbers

CLASSES = ("a", "b", "c")


def examples():
    """Return 40 examples of three classes, full of ties."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    return [(x, CLASSES[k]) for x, k in zip(X, rng.integers(0, 3, 40), strict=True)]


def replayed(**predictors):
    """Replay the examples through predictors that may share machines."""
    venn.replay(examples(), venn.Panel(**predictors), progress=False)


def hinge():
    """Compile the path of the hinge loss, its deleted scores, counting and what ranks its multipliers."""
    for machine in (venn.OneVsAllSVM, venn.OneVsOneSVM):
        svm = machine(venn.RBF(0.5), 1.0, CLASSES)
        replayed(
            argmax=venn.TransductiveVenn(svm, venn.Argmax()),
            deleted=venn.TransductiveVenn(svm, venn.Deleted(venn.Argmax())),
        )
        for _ in range(5):
            svm.unlearn_one()
    svm = venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES)
    replayed(ranks=venn.Conformal(svm, venn.Multiplier()), bins=venn.TransductiveVenn(svm, venn.AdaptiveMarginBins()))


def squares():
    """Compile the machines of other losses, Venn-Abers, the maps and the rest of the readers."""
    svm = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    replayed(
        abers=venn.TransductiveVennAbers(svm), sets=venn.Conformal(svm), platt=venn.Scaler(svm, venn.Platt()),
        isotonic=venn.Scaler(svm, venn.Isotonic()), binning=venn.Scaler(svm, venn.Binning()),
        protected=venn.Protected(venn.Scaler(svm, venn.Platt())), held=venn.InductiveVennAbers(svm.fresh()),
    )  # fmt: skip
    for _ in range(5):
        svm.unlearn_one()
    rest()
    logistic = venn.KernelLogisticRegression(venn.RBF(0.5), 1.0, CLASSES)
    replayed(deleted=venn.TransductiveVenn(logistic, venn.Deleted(venn.Argmax())))
    near, distances = venn.NearestNeighbours(3, CLASSES), venn.NeighbourDistances(2, CLASSES)
    replayed(near=venn.TransductiveVenn(near, venn.Argmax()), distances=venn.Conformal(distances, venn.DistanceRatio()))
    near.unlearn_one()
    distances.unlearn_one()


def rest():
    """Compile what monitors bet with, what blocks go through, and batch machines."""
    X, y = (np.array(column) for column in zip(*examples(), strict=True))
    scorer = venn.FrozenScorer(LogisticRegression().fit(X, y), CLASSES)
    bins = venn.InductiveVenn(scorer, venn.AdaptiveMarginBins())
    for model in (venn.InductiveVenn(scorer), bins, venn.InductiveConformal(scorer), venn.InductiveVennAbers(scorer)):
        model.replay_many(X, y.tolist())
    p = np.linspace(0.01, 0.99, 20).tolist()
    bets = (venn.Power, venn.SimpleMixture, venn.PlugIn, venn.BetaPlugIn, venn.SimpleJumper, venn.CompositeJumper)
    for martingale in (*(make() for make in bets), venn.Sleeper(), venn.StitchedBound(), venn.BettingBound()):
        for value in p:
            martingale.update(value)
    calibrator = VennAbers()
    calibrator.insert_many(p, [0, 1] * 10)
    calibrator.delete(p[0], 0)
    venn.BootstrapSVC(resamples=2, random_state=0).fit(X, y == "a")


if __name__ == "__main__":
    {"hinge": hinge, "squares": squares}[sys.argv[1]]()
