"""Transductive Venn-Abers by class against two isotonic refits per class, after every step."""

from fractions import Fraction

import numpy as np
import pytest
from conftest import KERNELS, OBJECTS, labels, learned, objects
from naive import abers_by_class, svm
from naive import least_squares as naive

import venn
from venn._compiled.hulls import classwise_pairs


def machines(c):
    kernel = KERNELS["rbf"][0]
    return {"squares": venn.LeastSquaresSVM(kernel, 4.0, range(c)), "hinge": venn.OneVsAllSVM(kernel, 4.0, range(c))}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("leave_one_out", [True, False])
def test_least_squares_after_every_step(kind, leave_one_out):
    rng = np.random.default_rng(OBJECTS.index(kind))
    n, c, C = 12, 3, 4.0
    X = objects(kind, rng, n)
    y = labels("signal" if kind == "normal" else "noise", rng, X, c)
    model = venn.TransductiveVennAbers(machines(c)["squares"], leave_one_out=leave_one_out)
    by_definition = naive.leave_one_out if leave_one_out else naive.training
    for i in range(n):
        K = KERNELS["rbf"][1](X[: i + 1], X[: i + 1])
        scores = [by_definition(K, np.append(y[:i], j), c, C) for j in range(c)]
        prediction = model.predict_one(X[i])
        assert np.allclose(prediction.pairs, abers_by_class.pairs(scores, y[:i], c), atol=1e-12), f"step {i}"
        model.learn_one(X[i], y[i])


@pytest.mark.parametrize("kind", ["grid", "normal", "repeats"])
def test_hinge_after_every_step(kind):
    rng = np.random.default_rng(len(kind))
    n, c = 10, 3
    X = objects(kind, rng, n)
    y = rng.integers(0, c, n)
    model = venn.TransductiveVennAbers(machines(c)["hinge"], leave_one_out=False)
    for i in range(n):
        K = KERNELS["rbf"][1](X[: i + 1], X[: i + 1])
        scores = [svm.one_vs_all(K, np.append(y[:i], j), c, 4.0) for j in range(c)]
        assert np.allclose(model.predict_one(X[i]).pairs, abers_by_class.pairs(scores, y[:i], c), atol=1e-12)
        model.learn_one(X[i], y[i])


def test_the_first_step_says_nothing():
    for machine in machines(4).values():
        prediction = venn.TransductiveVennAbers(machine).predict_one([1.0, 2.0])
        assert prediction.pairs.tolist() == [[0.0, 1.0]] * 4
        assert np.allclose(prediction.proba, 0.25)


def isotonic(keys, labels, weights, at):
    """Return the isotonic regression of labels on keys at one of the keys: the largest least mean of a stretch."""
    steps, which = np.unique(keys, return_inverse=True)
    positive, total = np.bincount(which, weights * labels), np.bincount(which, weights)
    t = int(steps.searchsorted(at))
    means = [
        [Fraction(int(positive[i : j + 1].sum()), int(total[i : j + 1].sum())) for j in range(t, len(steps))]
        for i in range(t + 1)
    ]
    return float(max(min(each) for each in means))


@pytest.mark.parametrize("kind", ["spread", "few", "equal", "far", "often"])
def test_the_fewer_may_have_the_label_or_not_and_scores_may_be_equal_or_far_apart(kind):
    rng = np.random.default_rng(5)
    for m in (1, 2, 3, 8, 15, 30):
        c, test = 3, int(rng.integers(m))
        negative = rng.normal(size=(c, m + 2))
        if kind in ("few", "equal"):
            negative = np.round(negative) if kind == "few" else np.zeros_like(negative)
        if kind == "far":
            negative[:, : m // 2] *= 1e6
        positive = negative + (0.1 * rng.normal(size=negative.shape) if kind in ("spread", "often") else 0.0)
        labels = rng.choice(c, m, p=[0.8, 0.1, 0.1] if kind == "often" else None)
        weights = rng.integers(1, 3, m)
        weights[test] = 0
        pairs = classwise_pairs(negative, positive, labels, weights, test)
        for k in range(c):
            for side, table in enumerate((negative, positive)):
                keys = np.round(table[k, :m] * 1e6 + 0.2718281828)
                supposed, counted = (labels == k).astype(int), weights.copy()
                supposed[test], counted[test] = side, 1
                assert pairs[k, side] == isotonic(keys, supposed, counted, keys[test])


def test_two_classes_mirror_each_other():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    model = learned(venn.TransductiveVennAbers(machines(2)["squares"]), X, y)
    for x in rng.normal(size=(20, 2)):
        (not_a, a), (not_b, b) = model.predict_one(x).pairs
        assert not_a == pytest.approx(1 - b)
        assert a == pytest.approx(1 - not_b)


def test_machines_with_a_table_for_every_label_are_refused_at_once():
    weighted = venn.OneVsAllSVM(venn.RBF(1.0), 1.0, range(3), class_weights=(1, 2, 1))
    with pytest.raises(ValueError, match=r"class_weights must be equal for one against all, got \[1\.0, 2\.0"):
        venn.TransductiveVennAbers(weighted)
