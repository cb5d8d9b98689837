"""Other weights of the classes in mid-stream: the machine is the one that learned everything with them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import KERNELS, labels, objects, same_answer
from naive import svm
from naive import weights as naive

import venn
from venn._compiled.masses import follow_masses
from venn._compiled.path import SOLVED
from venn.machines import hinge

MACHINES = {
    "one vs all": (venn.OneVsAllSVM, naive.one_vs_all),
    "one vs one": (venn.machines.OneVsOneSVM, naive.one_vs_one),
    "least squares": (venn.LeastSquaresSVM, naive.least_squares),
}
every_machine = pytest.mark.parametrize("name", MACHINES)
every_hinge = pytest.mark.parametrize("name", ["one vs all", "one vs one"])


def examples(kind, seed, n, c=3, late=False):
    rng = np.random.default_rng([len(kind), seed])
    X = objects(kind, rng, n)
    return X, labels("late" if late else "noise", rng, X, c), rng.choice([0.5, 1.0, 1.5], n)


def taught(machine, X, y, w):
    for x, label, weight in zip(X, y, w, strict=True):
        machine.learn_one(x, int(label), weight)
    return machine


def assert_equal_answers(first, second, tolerance=1e-7):
    """Answers of machines that learned the same examples, and may have asked for them in another order."""
    np.testing.assert_allclose(first.test_scores, second.test_scores, rtol=0, atol=tolerance)
    for j in range(first.test_scores.size):
        for read in ("scores", "deleted", "duals"):
            np.testing.assert_allclose(getattr(first, read)(j), getattr(second, read)(j), rtol=0, atol=tolerance)


@every_machine
@pytest.mark.parametrize("kind", ["normal", "grid", "few"])
@pytest.mark.parametrize("seed", range(2))
def test_equals_the_definition_with_the_new_weights(name, kind, seed):
    """The number of different weights goes from 1 to 3, 2 and 1."""
    make, define = MACHINES[name]
    X, y, w = examples(kind, seed, 11, late=seed == 1)
    K = svm.rbf(0.5)(X, X)
    machine = taught(make(venn.RBF(0.5), 2.0, range(3)), X[:-1], y[:-1], w[:-1])
    for class_weights in [(0.5, 1, 2), (4, 0.5, 0.5), (2, 2, 2)]:
        machine.reweigh(class_weights)
        assert machine.residual < 1e-9
        assert machine.class_weights.tolist() == list(class_weights)
        answer = machine.hypotheses(X[-1])
        for j in range(3):
            codes = np.append(y[:-1], j)
            effective = np.append(w[:-1], 1.0) * np.array(class_weights)[codes]
            expected = define(K, codes, effective, 3, 2.0)
            np.testing.assert_allclose(answer.scores(j), expected, rtol=0, atol=1e-6)


@every_machine
@pytest.mark.parametrize("kind", ["normal", "grid", "few", "repeats"])
def test_goes_on_as_the_machine_that_learned_with_the_new_weights(name, kind):
    make, _ = MACHINES[name]
    n = 30
    X, y, w = examples(kind, 5, n + 15)
    machine = taught(make(venn.RBF(0.5), 3.0, range(3), (1, 2, 3)), X[:n], y[:n], w[:n])
    machine.hypotheses(X[n + 1]).deleted(0)  # what is known about deleted scores must go
    machine.reweigh((5, 0.2, 1))
    fresh = taught(make(venn.RBF(0.5), 3.0, range(3), (5, 0.2, 1)), X[:n], y[:n], w[:n])
    assert repr(machine) == repr(fresh)
    for i in range(n, n + 15):
        assert_equal_answers(machine.hypotheses(X[i], w[i]), fresh.hypotheses(X[i], w[i]))
        for bag in ("bag", "deleted_bag"):
            np.testing.assert_allclose(getattr(machine, bag).scores, getattr(fresh, bag).scores, rtol=0, atol=1e-7)
        for each in (machine, fresh):
            each.learn_one(X[i], int(y[i]), w[i])
    assert machine.residual < 1e-9


@every_hinge
@pytest.mark.parametrize("kernel", ["rbf", "rbf sharp", "linear", "quadratic"])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_paths_are_exact_and_seldom_fail(name, kernel, C, monkeypatch):
    """Weights that differ by a factor up to 100, over data full of ties; a batch solve stands in where a path fails."""
    make, _ = MACHINES[name]
    paths = []

    def watched(*arguments):
        moved = hinge_move(*arguments)
        paths.extend(moved.events)
        return moved

    hinge_move = hinge.move_masses
    monkeypatch.setattr(hinge, "move_masses", watched)
    rng = np.random.default_rng(0)
    for kind in ("normal", "grid", "binary"):
        X, y, w = examples(kind, 3, 22)
        machine = taught(make(KERNELS[kernel][0], C, range(3)), X, y, w)
        for _ in range(3):
            class_weights = 10.0 ** rng.uniform(-1, 1, 3)
            machine.reweigh(class_weights)
            assert machine.residual < 1e-8
            fresh = taught(make(KERNELS[kernel][0], C, range(3), class_weights), X, y, w)
            np.testing.assert_allclose(machine.bag.scores, fresh.bag.scores, rtol=0, atol=1e-7)
    assert sum(events < 0 for events in paths) <= 0.1 * len(paths)
    assert max(paths) > 3


@every_hinge
def test_a_failed_path_is_replaced_by_a_batch_solve(name, monkeypatch):
    make, _ = MACHINES[name]
    X, y, w = examples("grid", 7, 40)
    machine = taught(make(venn.RBF(0.5), 3.0, range(3)), X, y, w)
    fresh = taught(make(venn.RBF(0.5), 3.0, range(3), (5, 0.2, 1)), X, y, w)

    def failing(*arguments):
        _, *rest = follow_masses(*arguments)
        return SOLVED + 1, *rest

    monkeypatch.setattr("venn.machines.masses.follow_masses", failing)
    machine.reweigh((5, 0.2, 1))
    assert machine.residual < 1e-9
    assert_equal_answers(machine.hypotheses([0.3, 0.6]), fresh.hypotheses([0.3, 0.6]))


@every_hinge
def test_margins_of_other_sizes_get_their_room(name):
    """From a margin of some to one of nearly all examples, more than there was room for."""
    make, _ = MACHINES[name]
    X, y, w = examples("normal", 9, 400, c=2)
    machine = taught(make(venn.RBF(50.0), 0.001, range(2)), X, y, w)
    before = machine._margin_room
    machine.reweigh((1e5, 1e5))
    assert machine._solved.size.max() > 255
    assert machine._margin_room > before
    assert machine.residual < 1e-8
    taught(machine, *examples("normal", 10, 5, c=2))
    assert machine.residual < 1e-8


@every_machine
@pytest.mark.parametrize("n", [0, 1, 3])
def test_few_examples_or_one_class(name, n):
    """Nothing to solve yet; the classes that come next are learned with the new weights."""
    make, _ = MACHINES[name]
    X, y, w = examples("normal", 1, 12)
    y[:3] = 1
    machine = taught(make(venn.RBF(0.5), 2.0, range(3)), X[:n], y[:n], w[:n])
    machine.reweigh((1, 2, 4))
    fresh = taught(make(venn.RBF(0.5), 2.0, range(3), (1, 2, 4)), X[:n], y[:n], w[:n])
    for i in range(n, 12):
        assert_equal_answers(machine.hypotheses(X[i]), fresh.hypotheses(X[i]))
        for each in (machine, fresh):
            each.learn_one(X[i], int(y[i]), w[i])


@every_machine
def test_one_factor_for_all_is_a_factor_of_C(name):
    make, _ = MACHINES[name]
    for kind in ("normal", "grid"):
        X, y, w = examples(kind, 2, 40)
        machine = taught(make(venn.RBF(0.5), 1.0, range(3)), X, y, w)
        machine.reweigh((8, 8, 8))
        plain = taught(make(venn.RBF(0.5), 8.0, range(3)), X, y, w)
        np.testing.assert_allclose(machine.bag.scores, plain.bag.scores, rtol=0, atol=1e-8)


@every_machine
def test_the_remembered_answer_is_forgotten(name):
    make, _ = MACHINES[name]
    X, y, w = examples("grid", 4, 20)
    machine = taught(make(venn.RBF(0.5), 2.0, range(3)), X, y, w)
    answer = machine.hypotheses([0.5, 0.5])
    machine.reweigh((1, 2, 3))
    assert not answer.current
    with pytest.raises(RuntimeError, match="out of date"):
        answer.scores(0)
    fresh = taught(make(venn.RBF(0.5), 2.0, range(3), (1, 2, 3)), X, y, w)
    assert_equal_answers(machine.hypotheses([0.5, 0.5]), fresh.hypotheses([0.5, 0.5]))
    again = pickle.loads(pickle.dumps(machine))
    assert same_answer(again.hypotheses([0.1, 0.2]), machine.hypotheses([0.1, 0.2]))
    assert machine.fresh().class_weights.tolist() == [1, 2, 3]


@every_machine
@pytest.mark.parametrize("bad", [(1.0, 1.0), (1, 2, 0), (1, 2, -1), (1, 2, np.nan), (1, 2, "3"), 3, (1, 2, True)])
def test_bad_weights_change_nothing(name, bad):
    make, _ = MACHINES[name]
    X, y, w = examples("grid", 4, 20)
    machine = taught(make(venn.RBF(0.5), 2.0, range(3)), X, y, w)
    answer, before = machine.hypotheses([0.5, 0.5]), pickle.dumps(machine)
    with pytest.raises((ValueError, TypeError), match="class_weights must be 3 finite numbers > 0"):
        machine.reweigh(bad)
    assert answer.current
    assert pickle.dumps(machine) == before


@every_machine
def test_what_does_not_converge_changes_nothing(name, monkeypatch):
    make, _ = MACHINES[name]
    X, y, w = examples("grid", 4, 20)
    machine = taught(make(venn.RBF(0.5), 2.0, range(3)), X, y, w)
    answer, before = machine.hypotheses([0.5, 0.5]), pickle.dumps(machine)
    monkeypatch.setattr("venn.machines.hinge.tolerance_of", lambda C, scale: -1.0)
    monkeypatch.setattr("venn.machines.ridge.TOLERANCE", -1.0)
    with pytest.raises(venn.machines.NotConverged, match="with the new"):
        machine.reweigh((1, 2, 3))
    monkeypatch.undo()
    assert answer.current
    assert pickle.dumps(machine) == before
    machine.reweigh((1, 2, 3))
    assert machine.class_weights.tolist() == [1, 2, 3]


@every_hinge
@pytest.mark.parametrize("tiny", [1e-300, 1e-100, 1e-15])
def test_weights_next_to_nothing_are_learned_or_refused(name, tiny):
    """Never a machine whose scores are not numbers."""
    make, _ = MACHINES[name]
    X, y, w = examples("normal", 3, 50, c=2)
    machine = taught(make(venn.RBF(0.5), 1.0, range(2)), X, y, w)
    before = pickle.dumps(machine)
    try:
        machine.reweigh((tiny, 1))
    except venn.machines.NotConverged:
        assert pickle.dumps(machine) == before
    assert np.isfinite(machine.bag.scores).all()
    assert machine.residual < 1e-8


@every_hinge
def test_classes_of_weights_next_to_nothing_are_learned_or_refused(name):
    make, _ = MACHINES[name]
    X, y, _ = examples("normal", 3, 20, c=2)
    machine = make(venn.RBF(0.5), 1.0, range(2), (1e-10, 1))
    for x, label in zip(X, y, strict=True):
        before = machine.n, machine.bag.scores.tolist()
        try:
            machine.learn_one(x, int(label))
        except venn.machines.NotConverged:
            assert (machine.n, machine.bag.scores.tolist()) == before
        assert np.isfinite(machine.bag.scores).all()


@every_machine
def test_predictors_over_the_machine_go_on(name):
    """Several in a panel share it: they then predict as those over the machine that learned with the new weights."""
    make, _ = MACHINES[name]
    X, y, _ = examples("grid", 8, 50)

    def panel(class_weights):
        machine = make(venn.RBF(0.5), 2.0, range(3), class_weights)
        return machine, venn.Panel(
            training=venn.TransductiveVenn(machine, venn.Argmax()),
            deleted=venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax())),
            ranks=venn.Conformal(machine, venn.nonconformity.Margin(True)),
        )

    (machine, ours), (_, theirs) = panel((1, 1, 1)), panel((0.5, 4, 1))
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        if i == 30:
            machine.reweigh((0.5, 4, 1))
        if i >= 30:
            found, expected = ours.predict_one(x), theirs.predict_one(x)
            for part in ("training", "deleted"):
                np.testing.assert_allclose(found[part].probabilities, expected[part].probabilities)
            np.testing.assert_allclose(found["ranks"].p_values, expected["ranks"].p_values)
        ours.learn_one(x, label)
        theirs.learn_one(x, label)


@pytest.mark.parametrize("kind", ["normal", "grid", "few"])
@pytest.mark.parametrize("seed", range(4))
def test_masses_of_one_object_may_go_to_0(kind, seed):
    """As if the examples at an object had never been there: its step has no height left."""
    X, y, w = examples(kind, seed, 30, c=2)
    machine = taught(venn.OneVsAllSVM(venn.RBF(0.5), 2.0, range(2)), X, y, w)
    count, p = machine._count, seed % machine._count
    kernel, positive, total, _ = machine._objects
    solved = machine._solved
    old = np.array([positive[0, :count], total[0, :count] - positive[0, :count]])
    for gone in (0, 1):
        new = old.copy()
        new[gone, p] = 0.0
        beta, score, state = solved.beta[0].copy(), solved.score[0].copy(), solved.state[0].copy()
        outcome, _, bias, members, _ = follow_masses(
            kernel, count, 1.0, 1e-8, 2.0, old, new, solved.bias[0], solved.members[0, : solved.size[0]],
            solved.inverse[0], beta, score, state,
        )  # fmt: skip
        assert outcome == SOLVED
        rows = np.concatenate([np.repeat(np.arange(count), np.rint(mass / 0.5).astype(int)) for mass in new])
        signs = np.repeat([1, -1], [round(mass.sum() / 0.5) for mass in new])
        K = kernel[np.ix_(rows, rows)]
        np.testing.assert_allclose(score[rows], svm.scores(K, signs, 2.0 * 0.5), rtol=0, atol=1e-7)
        np.testing.assert_allclose(kernel[:count, :count] @ beta[:count] + bias, score[:count], rtol=0, atol=1e-8)
        assert sorted(members) == np.flatnonzero(abs(state[:count]) == 1).tolist()
        assert p not in members or new[:, p].any()
