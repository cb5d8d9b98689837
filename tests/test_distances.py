"""The machine of distances to nearest examples, against its definition after every step; ties, order, purity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import LABELS, OBJECTS, labels, learned, objects
from naive import distances as naive

import venn
from venn.machines.objects import NeighbourDistances
from venn.nonconformity import DistanceRatio, Margin
from venn.predictors.transductive import Conformal


def rows_of(bag):
    """Return (class, scores) of every example of a bag, sorted."""
    return sorted(
        (code, *bag.scores[:, entry])
        for entry, counts in enumerate(bag.counts)
        for code in np.repeat(np.arange(len(counts)), counts).tolist()
    )


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_scores_equal_the_definition_at_every_step(kind, k):
    rng = np.random.default_rng(k + len(kind))
    X = objects(kind, rng, 18)
    y = labels(LABELS[(len(kind) + k) % len(LABELS)], rng, X, 3)
    machine = NeighbourDistances(k, range(3))
    for i in range(18):
        answer = machine.hypotheses(X[i])
        for j in range(3):
            deleted = naive.mean_distances(X[: i + 1], [*y[:i], j], 3, k, True)
            training = naive.mean_distances(X[: i + 1], [*y[:i], j], 3, k, False)
            assert np.allclose(answer.deleted(j), deleted, rtol=1e-13, atol=1e-13)
            assert np.allclose(answer.scores(j), training, rtol=1e-13, atol=1e-13)
            assert np.allclose(answer.test_scores, deleted[-1], rtol=1e-13, atol=1e-13)
            assert np.array_equal(answer.test_scores, answer.deleted(j)[-1])  # whatever the label
        assert np.array_equal(answer.labels, y[:i])
        machine.learn_one(X[i], y[i])
        for bag, deleted in ((machine.bag, False), (machine.deleted_bag, True)):
            expected = naive.bag(X[: i + 1], y[: i + 1], 3, k, deleted)
            assert np.allclose(np.array(rows_of(bag)), np.array(expected), rtol=1e-12, atol=1e-12)
    assert (machine.n, machine.residual, machine.deletes_exactly) == (18, 0.0, True)


def test_by_hand():
    machine = learned(NeighbourDistances(2, list("ab")), [[0.0], [0.0], [3.0], [7.0]], ["a", "a", "a", "a"])
    assert machine.scores([1.0]).tolist() == [-1.0, -1e9]
    answer = machine.hypotheses([1.0])
    assert answer.deleted(1).tolist() == [[0 - 1.5, -1], [0 - 1.5, -1], [-3, -2], [-5.5, -6], [-1, -1e9]]
    assert answer.deleted(0)[2].tolist() == [-2.5, -1e9]  # 2 from the new one and 3 from 0
    assert answer.scores(0)[2].tolist() == [-1, -1e9]  # 0 from itself, 2 from the new one
    assert answer.scores(0)[0].tolist() == [0, -1e9]  # its equal and itself
    assert not np.signbit(answer.scores(0)[0, 0])


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ["normal", "repeats", "grid", "constant"])
def test_the_order_of_the_examples_does_not_reach_the_last_bit(kind, k):
    rng = np.random.default_rng(3)
    X = objects(kind, rng, 60)
    y = labels("noise", rng, X, 3)
    asked = np.vstack([X[:6], X[:6] + 0.3])
    answers = []
    for _ in range(5):
        order = rng.permutation(60)
        machine = learned(NeighbourDistances(k, range(3)), X[order], y[order])
        back = np.append(np.argsort(order), 60)
        answers.append(
            [
                table
                for x in asked
                for answer in [machine.hypotheses(x)]
                for j in range(3)
                for table in (answer.scores(j)[back], answer.deleted(j)[back])
            ]
        )
    assert all(np.array_equal(one, answers[0]) for one in answers)


def test_conformal_predictors_read_it():
    """The ratio of distances and the margin: p-values by ranking the definition's scores."""
    rng = np.random.default_rng(4)
    X = objects("normal", rng, 30)
    y = labels("signal", rng, X, 2)
    machine = NeighbourDistances(2, range(2))
    ratio, margin = (Conformal(machine, measure, smoothed=False) for measure in (DistanceRatio(), Margin()))
    for n in range(30):
        for model, value in ((ratio, lambda own, other: own / other), (margin, lambda own, other: own - other)):
            for j in range(2):
                codes = [*y[:n].tolist(), j]
                scores = -naive.mean_distances(X[: n + 1], codes, 2, 2, True)
                values = [value(row[k], row[1 - k]) for row, k in zip(scores, codes, strict=True)]
                p = sum(v >= values[-1] - 1e-7 for v in values) / (n + 1)
                assert model.predict_one(X[n]).p_values[j] == pytest.approx(p, abs=1e-12)
        machine.learn_one(X[n], int(y[n]))


@pytest.mark.parametrize("measure", [DistanceRatio(), DistanceRatio(deleted=False), Margin()], ids=repr)
@pytest.mark.parametrize("kind", OBJECTS)
def test_p_values_are_exactly_uniform_over_the_choice_of_the_last_example(kind, measure):
    """The mean density of the p-value, tau included, over which of the n examples comes last: n cells of n."""
    rng = np.random.default_rng(len(kind))
    X, n = objects(kind, rng, 15), 15
    y = labels("noise", rng, X, 3)
    density = np.zeros(n)
    for i in range(n):
        machine = learned(NeighbourDistances(2, range(3)), np.delete(X, i, 0), np.delete(y, i).tolist())
        ranks = measure.rank(machine.hypotheses(X[i]))
        greater, equal = ranks.greater[y[i]].sum(), ranks.equal[y[i]].sum()
        density[greater : greater + equal] += 1 / equal
    assert density == pytest.approx(np.ones(n), abs=1e-12)


def test_nearest_class_of_its_scores_predicts_well():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    machine = NeighbourDistances(3, range(2))
    panel = venn.Panel(
        venn=venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax())),
        abers=venn.TransductiveVennAbers(machine),
        platt=venn.Scaler(machine, venn.maps.Platt()),
    )
    right = np.zeros(3)
    for x, label in zip(X, y.tolist(), strict=True):
        right += [prediction.label == label for prediction in panel.predict_one(x).values()]
        panel.learn_one(x, label)
    assert machine.n == 80
    assert (right > 60).all()


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        ([np.nan], "a", "x must"), ([0.0, 1.0], "a", "x must"), ("0", "a", "x must"), (None, "a", "x must"),
        ([2e8], "a", "norm of at most"), ([1e200], "a", "norm of at most"), ([0.0], "d", "y must"),
        ([0.0], ["a"], "y must"), ([0.0], None, "y must"), ([0.0], 0, "y must"),
    ],
)  # fmt: skip
def test_a_refused_example_leaves_no_trace(x, y, match):
    machine = learned(NeighbourDistances(2, list("abc")), [[0.0], [1.0]], ["a", "b"])
    before = machine.hypotheses([0.2]).deleted(0)
    for ask in (machine.check, machine.learn_one):
        with pytest.raises((ValueError, TypeError), match=match):
            ask(x, y)
    assert machine.n == 2
    assert np.array_equal(machine.hypotheses([0.2]).deleted(0), before)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2", None])
def test_k_out_of_range(k):
    with pytest.raises((TypeError, ValueError), match="k must be an integer >= 1, got"):
        NeighbourDistances(k, [0, 1])


@pytest.mark.parametrize(("classes", "error"), [("ab", TypeError), ([1], ValueError), ([1, 1], ValueError)])
def test_classes_that_are_none(classes, error):
    with pytest.raises(error, match="classes must"):
        NeighbourDistances(1, classes)


def test_objects_at_the_edge_of_the_range_keep_their_order():
    machine = learned(NeighbourDistances(1, [0, 1]), [[1e8, 0.0], [-1e8, 0.0]], [0, 0])
    scores = machine.scores([-1e8, 0.0])
    assert scores.tolist() == [0.0, -1e9]
    assert math.isclose(machine.deleted_bag.scores[0, 0], -2e8)
