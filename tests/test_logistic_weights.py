"""Kernel logistic regression whose examples get other weights: the machine that had them from the start."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import KERNELS, labels, learned, objects, same_answer
from test_logistic import gram, machine_of

import venn
from venn._compiled import packed as loops
from venn.machines.logistic import KernelLogisticRegression
from venn.machines.logistic_batch import LogisticProblem, newton
from venn.machines.logistic_both import Both

# Other weights ------------------------------------------------------------------------------------------------------

REWEIGHED = [(1.0, 4.0, 0.25), (3.0, 3.0, 3.0), (1e-3, 1.0, 1e3), None]


def weighed_pair(kernel, weights, seed, kind="grid", n=30):
    """Return a machine given other weights on its way, and one that had the last from the start."""
    rng = np.random.default_rng(seed)
    X, y, w = objects(kind, rng, n), labels("late", rng, np.zeros((n, 1)), 3), rng.choice([0.5, 1.0, 2.0], n)
    moved = KernelLogisticRegression(KERNELS[kernel][0], 5.0, range(3), (2.0, 1.0, 1.0))
    fresh = KernelLogisticRegression(KERNELS[kernel][0], 5.0, range(3), weights)
    for i, x in enumerate(X):
        if i in (0, 1, 5, 20):
            moved.reweigh((1.0, 1.0 + i, 0.3))
            assert moved.residual <= 1e-9
        for machine in (moved, fresh):
            machine.learn_one(x, int(y[i]), w[i])
    return moved, fresh, X


@pytest.mark.parametrize("weights", REWEIGHED)
@pytest.mark.parametrize("kernel", ["rbf", "rbf sharp", "linear"])
def test_other_weights_make_the_machine_that_had_them_from_the_start(kernel, weights):
    moved, fresh, X = weighed_pair(kernel, weights, 3)
    stale = moved.hypotheses(X[0])
    moved.reweigh(weights)
    with pytest.raises(RuntimeError, match="out of date"):
        stale.scores(0)
    assert repr(moved) == repr(fresh)
    assert moved.residual <= 1e-9
    for machine in (moved, fresh):  # what was learned after is learned the same
        learned(machine, X[:5] + 0.5, [0, 1, 2, 1, 1])
    for bag in ("bag", "deleted_bag"):
        ours, theirs = getattr(moved, bag), getattr(fresh, bag)
        assert np.array_equal(ours.counts, theirs.counts)
        assert np.allclose(ours.scores, theirs.scores, rtol=0, atol=1e-7)
    again = pickle.loads(pickle.dumps(moved))
    assert same_answer(again.hypotheses(X[1]), moved.hypotheses(X[1]))
    for x in (X[3], [0.3, 0.7]):
        ours, theirs = moved.hypotheses(x), fresh.hypotheses(x)
        for j in range(3):
            for read in ("scores", "deleted"):
                assert np.allclose(getattr(ours, read)(j), getattr(theirs, read)(j), rtol=0, atol=1e-7)


def test_the_inverses_after_other_weights_are_right():
    moved, fresh, _ = weighed_pair("rbf", (1.0, 4.0, 0.25), 5, "normal", 40)
    moved.reweigh((1.0, 4.0, 0.25))
    for k in range(3):
        G = [loops.unpack(machine._inverse[k], 40) for machine in (moved, fresh)]
        assert np.allclose(*G, rtol=0, atol=1e-8 * abs(G[1]).max())


@pytest.mark.parametrize("more", [1.05, 1.3])
def test_other_weights_that_move_few_scores_far_leave_the_inverses_right(more):
    """Levels of some objects change, not of most: then the inverse changes by few ranks."""
    moved, _, _ = weighed_pair("rbf", None, 5, "normal", 40)
    few = 0
    for weights in ((1.0, more, 1.0), (more, 1.0, 1.0), (1.0, 1.0, 1.0)):
        before = moved._levels[:, :40].copy()
        moved.reweigh(weights)
        few += ((moved._levels[:, :40] != before).sum(axis=1) > 0).sum()
        assert moved.residual <= 1e-9
        assert max(moved._standing(k).drift(i) for k in range(3) for i in range(40)) < 1e-10
    assert few > 0


@pytest.mark.parametrize("bad", [(1.0,), (1.0, 0.0, 1.0), (1.0, -1.0, 1.0), "abc", (1.0, 1.0, np.nan), 2.0])
def test_bad_other_weights_leave_no_trace(bad):
    moved, _, X = weighed_pair("rbf", None, 7)
    answer, before = moved.hypotheses(X[0]), pickle.dumps(moved)
    with pytest.raises((ValueError, TypeError), match="class_weights must be 3 finite numbers > 0"):
        moved.reweigh(bad)
    assert pickle.dumps(moved) == before
    assert moved.hypotheses(X[0]) is answer


def test_weights_that_rounding_loses_are_refused_and_leave_no_trace():
    moved, _, X = weighed_pair("rbf", None, 7)
    before = pickle.dumps(moved)
    for call in (lambda: moved.reweigh((1.0, 1e300, 1.0)), lambda: moved.learn_one(X[0], 1, 1e300)):
        with pytest.raises(venn.machines.NotConverged, match="comparable sums, got one that rounding loses"):
            call()
        assert pickle.dumps(moved) == before


def test_other_weights_that_cannot_be_solved_leave_no_trace(monkeypatch):
    moved, _, X = weighed_pair("rbf", None, 7)
    answer, before = moved.hypotheses(X[0]), pickle.dumps(moved)

    def fails(both, *_):
        raise venn.machines.NotConverged("residual must be at most 1e-09, got 1")

    monkeypatch.setattr(Both, "solve", fails)
    with pytest.raises(venn.machines.NotConverged, match="at example 30"):
        moved.reweigh((1.0, 2.0, 1.0))
    assert pickle.dumps(moved) == before
    assert moved.hypotheses(X[0]) is answer


@pytest.mark.parametrize("seed", [0, 5])
def test_weights_of_all_magnitudes(seed):
    """Where light examples lie among heavy ones the scores still are those of the weighted problem."""
    rng = np.random.default_rng(seed)
    X, y, w = objects("grid", rng, 30), rng.integers(0, 2, 30), 10.0 ** rng.integers(-3, 4, 30)
    w[y == 1] *= 1e-3
    machine = machine_of("rbf", 1.0, 2)
    for i, x in enumerate(X):
        machine.learn_one(x, int(y[i]), w[i])
        assert machine.residual <= 1e-9
        if i % 5 == 4:
            distinct, where = np.unique(X[: i + 1], axis=0, return_inverse=True)
            of, whole = (np.bincount(where.ravel(), v[: i + 1], len(distinct)) for v in (w * (y == 1), w))
            fit = newton(LogisticProblem(gram("rbf", distinct), of, whole, 1.0))
            scores = machine.bag.scores[1, machine._history[: i + 1]]
            assert np.allclose(scores, fit.score[where.ravel()], rtol=0, atol=1e-6)


def test_the_inverses_without_an_example_are_right():
    moved, _, _ = weighed_pair("rbf", None, 5, "normal")
    for i in (7, 0, 20):
        moved.unlearn_one(i)
        m = moved.n
        assert max(moved._standing(k).drift(i) for k in range(3) for i in range(m)) < 1e-10
