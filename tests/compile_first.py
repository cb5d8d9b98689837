"""Compiles the loops that most test files meet, half of them in each of two processes.

Otherwise every worker of the suite would compile them all for itself: `python tests/compile_first.py hinge` and
`python tests/compile_first.py squares`, side by side, leave them in numba's cache.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import venn
from venn.maps import VennAbers

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
    for machine in (venn.OneVsAllSVM, venn.machines.OneVsOneSVM):
        svm = machine(venn.RBF(0.5), 1.0, CLASSES)
        replayed(
            argmax=venn.TransductiveVenn(svm, venn.Argmax()),
            deleted=venn.TransductiveVenn(svm, venn.Deleted(venn.Argmax())),
        )
        for _ in range(5):
            svm.unlearn_one()
    svm = venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES)
    replayed(
        ranks=venn.Conformal(svm, venn.nonconformity.Multiplier()),
        bins=venn.TransductiveVenn(svm, venn.taxonomies.AdaptiveMarginBins()),
    )


def squares():
    """Compile the machines of other losses, Venn-Abers, the maps and the rest of the readers."""
    svm = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    replayed(
        abers=venn.TransductiveVennAbers(svm), sets=venn.Conformal(svm), platt=venn.Scaler(svm, venn.maps.Platt()),
        isotonic=venn.Scaler(svm, venn.maps.Isotonic()), binning=venn.Scaler(svm, venn.maps.Binning()),
        protected=venn.predictors.Protected(venn.Scaler(svm, venn.maps.Platt())),
        held=venn.InductiveVennAbers(svm.fresh()),
    )  # fmt: skip
    for _ in range(5):
        svm.unlearn_one()
    rest()
    logistic = venn.KernelLogisticRegression(venn.RBF(0.5), 1.0, CLASSES)
    replayed(deleted=venn.TransductiveVenn(logistic, venn.Deleted(venn.Argmax())))
    near, distances = venn.machines.NearestNeighbours(3, CLASSES), venn.machines.NeighbourDistances(2, CLASSES)
    replayed(
        near=venn.TransductiveVenn(near, venn.Argmax()),
        distances=venn.Conformal(distances, venn.nonconformity.DistanceRatio()),
    )
    near.unlearn_one()
    distances.unlearn_one()


def rest():
    """Compile what monitors bet with, what blocks go through, and batch machines."""
    X, y = (np.array(column) for column in zip(*examples(), strict=True))
    scorer = venn.FrozenScorer(LogisticRegression().fit(X, y), CLASSES)
    bins = venn.InductiveVenn(scorer, venn.taxonomies.AdaptiveMarginBins())
    for model in (venn.InductiveVenn(scorer), bins, venn.InductiveConformal(scorer), venn.InductiveVennAbers(scorer)):
        model.replay_many(X, y.tolist())
    p = np.linspace(0.01, 0.99, 20).tolist()
    bets = (
        venn.monitors.Power,
        venn.monitors.SimpleMixture,
        venn.monitors.PlugIn,
        venn.monitors.BetaPlugIn,
        venn.monitors.SimpleJumper,
        venn.monitors.CompositeJumper,
    )
    for martingale in (
        *(make() for make in bets),
        venn.monitors.Sleeper(),
        venn.monitors.StitchedBound(),
        venn.monitors.BettingBound(),
    ):
        for value in p:
            martingale.update(value)
    calibrator = VennAbers()
    calibrator.insert_many(p, [0, 1] * 10)
    calibrator.delete(p[0], 0)
    venn.batch.BootstrapSVC(resamples=2, random_state=0).fit(X, y == "a")


if __name__ == "__main__":
    {"hinge": hinge, "squares": squares}[sys.argv[1]]()
