"""Compiles the loops that most test files meet, half of them in each of two processes.

Otherwise every worker of the suite would compile them all for itself: `python tests/compile_first.py hinge` and
`python tests/compile_first.py others`, side by side, leave them in numba's cache. What is made and taught are the
public classes, as test_contract.py and test_monitor_contract.py make each of them: a new class is among them.

Both halves need the loops of maps, taxonomies and measures, and what one has compiled the other reads. So one compiles
these first; the other begins with the machine of the hinge loss, whose own loops take as long.
"""

import contextlib
import sys

import conftest  # noqa: F401  it lets the rooms of the tests import one another
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from test_contract import CLASSES, INDUCTIVE, MACHINES, PARAMETERS, PREDICTORS, machine_in, small_stream
from test_monitor_contract import RUNNING, stepped

import venn

READ_BY_ALL = ("OneVsAllSVM", "LeastSquaresSVM")
X, Y = small_stream(n=16)


def readers():
    """Yield a function that makes a predictor: every predictor, and every machine with every kind of reader.

    What the parameters of a reader compile depends on whether a machine has one table for all hypotheses, or several:
    all of them read one machine of either kind, and one of the hinge loss.
    """
    rooms = {
        venn.TransductiveVenn: venn.taxonomies, venn.Conformal: venn.nonconformity, venn.ScoreCalibrator: venn.maps,
    }  # fmt: skip
    for machine, make in sorted(MACHINES.items(), key=lambda item: item[0] not in READ_BY_ALL):
        yield lambda make=make: venn.TransductiveVenn(make(), venn.LeaveOneOut(venn.Argmax()))
        for reader, room in rooms.items():
            for name in PARAMETERS.keys() & set(room.__all__):
                for parameter in PARAMETERS[name]()[: None if machine in READ_BY_ALL else 1]:
                    yield lambda make=make, reader=reader, parameter=parameter: reader(make(), parameter)
    yield from PREDICTORS.values()


def compile_readers(hinge: bool) -> None:
    """Teach and ask the predictors whose machine is one of the hinge loss, or all others."""
    for make in readers():
        # Not every machine has what a reader asks for, and not every map fits few scores full of ties.
        with contextlib.suppress(TypeError, ValueError, AttributeError, RuntimeError):
            model = make()
            if isinstance(machine_in(model), venn.OneVsAllSVM) == hinge:
                venn.replay(zip(X, Y, strict=True), model, progress=False)
                for _ in range(0 if hinge else 5):
                    machine_in(model).unlearn_one()


def compile_blocks() -> None:
    """Compile what blocks of examples go through, fitted trees, and a calibrator."""
    scorer = venn.FrozenScorer(LogisticRegression().fit(X, Y), CLASSES)
    for make in INDUCTIVE.values():
        with contextlib.suppress(TypeError, ValueError):  # some need a machine that learns, one has more parameters
            type(make())(scorer).replay_many(X, Y)
    venn.InductiveVenn(scorer, venn.taxonomies.AdaptiveMarginBins()).replay_many(X, Y)
    venn.FrozenScorer(DecisionTreeClassifier().fit(X, Y)).scores(X[0])
    calibrator = venn.maps.VennAbers()
    calibrator.insert_many(np.linspace(0.01, 0.99, 20), [0, 1] * 10)
    calibrator.delete(0.01, 0)


def compile_rest() -> None:
    """Compile what monitors bet with, and a machine of numbers."""
    for name in RUNNING:
        stepped(name, 20)
    ridge = venn.machines.KernelRidge(venn.RBF(0.5), 1.0)
    venn.replay(zip(X, X[:, 0], strict=True), venn.predictors.ConformalDistribution(ridge), progress=False)


if __name__ == "__main__":
    hinge = sys.argv[1] == "hinge"
    compile_readers(hinge)
    # The hinge loss has fewer readers, so it has the rest. Blocks need what inductive predictors need, which the others
    # have just compiled.
    (compile_rest if hinge else compile_blocks)()
