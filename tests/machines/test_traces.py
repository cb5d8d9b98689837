"""Asking a machine leaves no trace in its later answers, not in their last bits."""

import copy

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import objects, same_answer

import venn
from venn.machines import NotConverged, SlidingWindow
from venn.maps import Platt
from venn.nonconformity import Margin
from venn.predictors import Conformal, LeaveOneOutScores, ScoreCalibrator, TransductiveVennAbers
from venn.taxonomies import Argmax, LeaveOneOut

KERNEL = venn.RBF(0.5)
MACHINES = {
    "one against all": lambda c: venn.OneVsAllSVM(KERNEL, 2.0, range(c)),
    "two classes": lambda c: venn.OneVsAllSVM(KERNEL, 2.0, range(2)),
    "weights": lambda c: venn.OneVsAllSVM(KERNEL, 2.0, range(c), class_weights=[1.0, 2.0, 0.5]),
    "least squares": lambda c: venn.LeastSquaresSVM(KERNEL, 5.0, range(c)),
    "centroids": lambda c: NearestCentroid(range(c)),
    "window": lambda c: SlidingWindow(venn.LeastSquaresSVM(KERNEL, 5.0, range(c)), 25),
}


def everything_read(machine, x):
    """Ask all that can be asked about an object."""
    machine.scores(x)
    answer = machine.hypotheses(x)
    answer.tables(True), answer.tables(False)
    _ = machine.bag, machine.leave_one_out_bag, machine.residual


@pytest.mark.parametrize(("expected", "kind"), [(False, "repeats"), (True, "normal")])
@pytest.mark.parametrize("name", MACHINES)
def test_asked_or_never_asked_the_bits_are_the_same(name, expected, kind):
    """Asked about the object that is learned, about others, or restored half-way: nothing shows later."""
    rng = np.random.default_rng(1)
    steps = 80
    silent = MACHINES[name](3)
    if expected:
        silent.expect_leave_one_out()
    c = len(silent.classes)
    X, y = objects(kind, rng, steps), rng.integers(0, c, steps)
    asked, curious = (copy.deepcopy(silent) for _ in range(2))
    for step in range(steps):
        x, label = X[step], int(y[step])
        if step > 60:
            first = silent.hypotheses(x)
            assert same_answer(first, asked.hypotheses(x))
            assert same_answer(first, curious.hypotheses(x))
        else:
            asked.hypotheses(x).tables(True)
            everything_read(curious, X[-1 - step])
            if step % 3 == 0:
                everything_read(curious, X[step // 2])
        if step == 30:
            curious = copy.deepcopy(curious)
        for machine in (silent, asked, curious):
            machine.learn_one(x, label)
            if step % 7 == 6 and hasattr(machine, "unlearn_one"):
                machine.unlearn_one(step // 9)
        if step > 60:
            assert np.array_equal(silent.leave_one_out_bag.scores, curious.leave_one_out_bag.scores)


def test_a_refused_example_leaves_no_trace_in_deleted_scores(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    machine = MACHINES["one against all"](3)
    machine.expect_leave_one_out()
    for x, label in zip(X[:30], y[:30].tolist(), strict=True):
        machine.learn_one(x, label)
    twin = copy.deepcopy(machine)
    with monkeypatch.context() as patch:
        # Every branch is doubtful, and none can be certified.
        patch.setattr("venn.machines.hinge.PART", -1.0)
        patch.setattr("venn.machines.hinge.certify", lambda *_: np.inf)
        with pytest.raises(NotConverged):
            machine.learn_one(X[30], int(y[30]))
    for x, label in zip(X[31:], y[31:].tolist(), strict=True):
        assert same_answer(machine.hypotheses(x), twin.hypotheses(x))
        machine.learn_one(x, label)
        twin.learn_one(x, label)


def test_what_was_computed_afresh_for_a_question_is_dropped_again():
    """A factor that has drifted fails some questions; what mends them is kept with the example that needs it."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    machine = venn.LeastSquaresSVM(KERNEL, 5.0, range(2))
    for x, label in zip(X, y.tolist(), strict=True):
        machine.learn_one(x, label)
    twin = copy.deepcopy(machine)
    for one in (machine, twin):
        one._system.solution.solutions[:, 7] += 1e-3
    assert machine.residual > 1e-4
    everything_read(machine, X[7])  # fails its check, and is answered all the same
    assert machine.hypotheses(X[7]).scores(0).shape == (31, 2)
    for x, label in zip(rng.normal(size=(40, 2)), rng.integers(0, 2, 40).tolist(), strict=True):
        machine.learn_one(x, label)
        twin.learn_one(x, label)
        assert same_answer(machine.hypotheses(x), twin.hypotheses(x))
    assert machine.residual < 1e-9


def test_predictors_that_read_deleted_scores_say_so():
    machine = MACHINES["one against all"](3)
    venn.TransductiveVenn(machine, Argmax())
    Conformal(machine, Margin(leave_one_out=False))
    TransductiveVennAbers(machine, leave_one_out=False)
    assert not machine._spans.kept
    for make in (
        lambda one: venn.TransductiveVenn(one, LeaveOneOut(Argmax())),
        lambda one: Conformal(one, Margin()),
        TransductiveVennAbers,
        lambda one: ScoreCalibrator(one, Platt(), LeaveOneOutScores()),
    ):
        machine = MACHINES["one against all"](3)
        make(machine)
        assert machine._spans.kept
        machine.learn_one([0.0], 0)
        assert machine.fresh()._spans.kept
