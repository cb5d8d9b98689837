"""Weights of examples and of classes; machines of pairs: equal to their definitions under every hypothesis."""

import pickle

import numpy as np
import pytest
from conftest import labels, learned, objects, same_answer
from naive import svm
from naive import weights as naive

import venn

GAMMA = 0.5
CLASS_WEIGHTS = {
    "alike": (1.0, 1.0, 1.0), "one apart": (0.5, 1.0, 1.0), "all different": (0.5, 1.0, 2.0),
}  # fmt: skip
MACHINES = {
    "one vs all": (venn.OneVsAllSVM, naive.one_vs_all),
    "least squares": (venn.LeastSquaresSVM, naive.least_squares),
}
every_machine = pytest.mark.parametrize("name", MACHINES)


def stream(kind, seed, n, c=3):
    rng = np.random.default_rng([len(kind), seed])
    X = objects(kind, rng, n)
    y = labels("late" if seed % 2 else "noise", rng, X, c)
    return X, y, rng.choice([0.5, 1.0, 1.5], n)


@every_machine
@pytest.mark.parametrize("kind", ["normal", "grid", "few"])
@pytest.mark.parametrize("class_weights", CLASS_WEIGHTS)
def test_every_hypothesis_equals_the_definition(name, kind, class_weights):
    make, define = MACHINES[name]
    of_class = np.array(CLASS_WEIGHTS[class_weights])
    X, y, w = stream(kind, list(CLASS_WEIGHTS).index(class_weights), 9)
    K = svm.rbf(GAMMA)(X, X)
    machine = make(venn.RBF(GAMMA), 2.0, range(3), of_class)
    for n, x in enumerate(X):
        if n in (0, 1, 3, 6, 8):
            for weight in (1.0, 0.5) if n == 6 else (1.0,):
                answer = machine.hypotheses(x, weight)
                for j in range(3):
                    codes = np.append(y[:n], j)
                    effective = np.append(w[:n], weight) * of_class[codes]
                    expected = define(K[: n + 1, : n + 1], codes, effective, 3, 2.0)
                    if name == "one vs all" and n == 0:
                        continue  # one example: by convention, tested with the machine
                    np.testing.assert_allclose(answer.scores(j), expected, rtol=0, atol=1e-6)
        machine.learn_one(x, int(y[n]), w[n])
        assert machine.residual < 1e-9


@pytest.mark.parametrize("class_weights", CLASS_WEIGHTS)
def test_deleted_scores_of_least_squares_are_those_without_the_example(class_weights):
    of_class = np.array(CLASS_WEIGHTS[class_weights])
    X, y, w = stream("grid", 4, 12)
    K = svm.rbf(GAMMA)(X, X)
    machine = learned_with(venn.LeastSquaresSVM(venn.RBF(GAMMA), 2.0, range(3), of_class), X[:-1], y[:-1], w[:-1])
    answer = machine.hypotheses(X[-1])
    for j in range(3):
        codes = np.append(y[:-1], j)
        effective = np.append(w[:-1], 1.0) * of_class[codes]
        expected = [naive.least_squares(K, codes, effective, 3, 2.0, i)[i] for i in range(12)]
        np.testing.assert_allclose(answer.leave_one_out(j), expected, rtol=0, atol=1e-9)


def learned_with(machine, X, y, w):
    for x, label, weight in zip(X, y, w, strict=True):
        machine.learn_one(x, int(label), weight)
    return machine


@every_machine
@pytest.mark.parametrize("seed", range(3))
def test_replication_class_weight_and_sample_weight_agree(name, seed):
    make, _ = MACHINES[name]
    X, y, _ = stream("grid", seed, 40)
    of_class = np.array([1, 3, 2])
    weighed = learned_with(make(venn.RBF(GAMMA), 1.0, range(3)), X, y, of_class[y].astype(float))
    by_class = learned(make(venn.RBF(GAMMA), 1.0, range(3), of_class), X, y.tolist())
    copied = make(venn.RBF(GAMMA), 1.0, range(3))
    for x, label in zip(X, y.tolist(), strict=True):
        for _ in range(of_class[label]):
            copied.learn_one(x, label)
    for x in [*X[:5], *np.random.default_rng(seed).normal(size=(5, 2))]:
        np.testing.assert_allclose(weighed.scores(x), copied.scores(x), rtol=0, atol=1e-8)
        np.testing.assert_allclose(by_class.scores(x), copied.scores(x), rtol=0, atol=1e-8)


@every_machine
@pytest.mark.parametrize("kind", ["normal", "grid", "few"])
def test_one_weight_for_all_is_a_factor_of_C(name, kind):
    """Also for leave-one-out scores and coefficients, whose definition by copies would be another one."""
    make, _ = MACHINES[name]
    X, y, _ = stream(kind, 2, 30)
    weighed = learned_with(make(venn.RBF(GAMMA), 1.0, range(3)), X, y, np.full(30, 2.5))
    by_class = learned(make(venn.RBF(GAMMA), 1.0, range(3), (2.5, 2.5, 2.5)), X, y.tolist())
    plain = learned(make(venn.RBF(GAMMA), 2.5, range(3)), X, y.tolist())
    for x in [*X[:4], np.full(X.shape[1], 0.3)]:
        expected = plain.hypotheses(x)
        for found in (weighed.hypotheses(x, 2.5), by_class.hypotheses(x)):
            for j in range(3):
                for read in ("scores", "leave_one_out", "duals"):
                    np.testing.assert_allclose(getattr(found, read)(j), getattr(expected, read)(j), rtol=0, atol=1e-8)


@every_machine
@pytest.mark.parametrize("kind", ["grid", "few"])
def test_order_of_the_examples_does_not_matter(name, kind):
    make, _ = MACHINES[name]
    X, y, w = stream(kind, 2, 40)
    order = np.random.default_rng(0).permutation(40)
    machines = [
        learned_with(make(venn.RBF(GAMMA), 3.0, range(3), (1, 2, 0.5)), X[rows], y[rows], w[rows])
        for rows in (np.arange(40), order)
    ]
    for x in X[:10]:
        for j in range(3):
            ours, theirs = (np.sort(machine.hypotheses(x).scores(j), axis=0) for machine in machines)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def nothing_but_nan(monkeypatch):
    """Arrays that nobody has filled hold NaN from here on, as memory used before may."""
    empty = np.empty

    def unfilled(*args, **how):
        array = empty(*args, **how)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", unfilled)


@every_machine
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_readers_take_each_hypothesis_from_its_own_table(name, leave_one_out, monkeypatch):
    """Counts and ranks by tables are those by rows of all examples."""
    check_readers(name, leave_one_out)  # loops are compiled with the true `empty`
    nothing_but_nan(monkeypatch)
    check_readers(name, leave_one_out)


def check_readers(name, leave_one_out):
    make, _ = MACHINES[name]
    X, y, w = stream("grid", 6, 30)
    machine = learned_with(make(venn.RBF(GAMMA), 2.0, range(3), (0.5, 1, 2)), X, y, w)
    taxonomy = venn.LeaveOneOut(venn.Argmax()) if leave_one_out else venn.Argmax()
    model, conformal = (
        venn.TransductiveVenn(machine, taxonomy),
        venn.Conformal(machine, venn.nonconformity.Margin(leave_one_out)),
    )
    for x in [*X[:4], [0.3, 0.7]]:
        answer = machine.hypotheses(x)
        rows, greater = np.zeros((3, 3)), np.zeros(3)
        for j in range(3):
            scores = answer.leave_one_out(j) if leave_one_out else answer.scores(j)
            grid, codes = np.rint((scores - 0.27e-6) / 1e-6), np.append(y, j)
            category = grid.argmax(axis=1)
            rows[j] = np.bincount(codes[category == category[-1]], minlength=3)
            own = grid[np.arange(31), codes]
            rival = np.where(np.eye(3, dtype=bool)[codes], -np.inf, grid).max(axis=1)
            strange = rival - own
            greater[j] = ((strange > strange[-1] + 2).sum(), (strange >= strange[-1] - 2).sum())[0]
        np.testing.assert_allclose(model.predict_one(x).probabilities, rows / rows.sum(axis=1, keepdims=True))
        p = conformal.predict_one(x).p_values
        assert (p >= greater / 31 - 1e-12).all()


@every_machine
def test_weight_0_is_no_example(name):
    X, y, w = stream("grid", 8, 20)
    make, _ = MACHINES[name]
    with_zeros, without = make(venn.RBF(GAMMA), 2.0, range(3)), make(venn.RBF(GAMMA), 2.0, range(3))
    for i, x in enumerate(X):
        with_zeros.learn_one(x, int(y[i]), 0.0 if i % 3 == 0 else w[i])
        if i % 3:
            without.learn_one(x, int(y[i]), w[i])
    assert with_zeros.n == without.n == 13
    assert same_answer(with_zeros.hypotheses([0.5, 0.5]), without.hypotheses([0.5, 0.5]))


@every_machine
def test_asking_with_another_weight_leaves_no_trace(name):
    make, _ = MACHINES[name]
    X, y, w = stream("grid", 10, 25)
    quiet, curious = (make(venn.RBF(GAMMA), 2.0, range(3), (1, 2, 2)) for _ in range(2))
    for i, x in enumerate(X):
        for weight in (0.25, 3.0, 1.0):
            curious.hypotheses(x, weight)
        for machine in (quiet, curious):
            machine.learn_one(x, int(y[i]), w[i])
    assert same_answer(quiet.hypotheses([0.5, 0.5]), curious.hypotheses([0.5, 0.5]))
    again = pickle.loads(pickle.dumps(quiet))
    assert same_answer(again.hypotheses([0.5, 0.5]), quiet.hypotheses([0.5, 0.5]))
    assert again.class_weights.tolist() == [1, 2, 2]
    assert quiet.fresh().class_weights.tolist() == [1, 2, 2]


@every_machine
def test_very_different_weights_stay_exact(name):
    make, _ = MACHINES[name]
    X, y, _ = stream("normal", 12, 60)
    w = 10.0 ** np.random.default_rng(0).integers(-3, 3, 60)
    machine = learned_with(make(venn.RBF(GAMMA), 1.0, range(3)), X, y, w)
    assert machine.residual < 1e-7


@every_machine
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, True, "1", None, [1.0]])
def test_bad_weights_are_refused(name, bad):
    make, _ = MACHINES[name]
    machine = make(venn.RBF(GAMMA), 2.0, ["a", "b"])
    machine.learn_one([0.0], "a", 2.0)
    before = pickle.dumps(machine)
    with pytest.raises((ValueError, TypeError), match="weight must be a finite number >= 0, got"):
        machine.learn_one([1.0], "b", bad)
    assert pickle.dumps(machine) == before
    machine.hypotheses([1.0])  # remembered, and True == 1
    for asked in (bad, 0.0):
        with pytest.raises((ValueError, TypeError), match="weight must be"):
            machine.hypotheses([1.0], asked)


@pytest.mark.parametrize("name", ["one vs all", "least squares"])
def test_readers_of_one_table_refuse_several(name):
    machine = MACHINES[name][0](venn.RBF(GAMMA), 2.0, ["a", "b", "c"], (1, 2, 3))
    with pytest.raises(ValueError, match="class_weights must be equal"):
        venn.TransductiveVennAbers(machine).predict_one([0.0])


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-300, 1e-160])
def test_least_squares_of_weights_near_nothing(weight):
    """Their inverse stands in the equations: refused where it is no number, else as if they were not there."""
    machine = venn.LeastSquaresSVM(venn.RBF(GAMMA), 2.0, range(3))
    X, y, _ = stream("grid", 2, 20)
    learned(machine, X, y.tolist())
    without = learned(machine.fresh(), X, y.tolist())
    if weight < 1e-300:
        with pytest.raises(ValueError, match="weight must be 0, or C weight at least 1e-300"):
            machine.learn_one([0.3, 0.4], 1, weight)
        with pytest.raises(ValueError, match="weight must be 0, or C weight at least 1e-300"):
            machine.hypotheses([0.3, 0.4], weight)
        assert same_answer(machine.hypotheses(X[0]), without.hypotheses(X[0]))
        return
    machine.learn_one([0.3, 0.4], 1, weight)
    for x in ([0.3, 0.4], X[0]):
        np.testing.assert_allclose(machine.scores(x), without.scores(x), rtol=0, atol=1e-12)
    assert all(np.isfinite(machine.hypotheses([0.3, 0.4], weight).leave_one_out(j)).all() for j in range(3))


def test_a_weight_that_no_float_holds_is_refused():
    machine = venn.LeastSquaresSVM(venn.RBF(GAMMA), 2.0, range(3))
    with pytest.raises(ValueError, match="weight must be a finite number"):
        machine.learn_one([0.0], 0, 10**400)


@pytest.mark.parametrize("weight", [1e-8, 1e-9, 1e-12, 1e-300])
def test_examples_that_weigh_next_to_nothing_change_no_deleted_score(weight):
    """Coefficients do not resolve such a weight, so no part could go: the leave-one-out score is the score."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (24, 2)) + rng.integers(0, 2, (24, 1)) / 7
    y = np.append([0, 1, 2] * 3, rng.integers(0, 3, 15))
    light = (np.arange(24) >= 9) & (np.arange(24) % 3 == 0)
    machine, without = (venn.OneVsAllSVM(venn.RBF(0.5), 1.0, range(3)) for _ in range(2))
    for x, label, nothing in zip(X, y, light, strict=True):
        answer, other = machine.hypotheses(x), without.hypotheses(x)
        seen = light[: machine.n]
        for j in range(3):
            leave_one_out = answer.leave_one_out(j)
            np.testing.assert_allclose(leave_one_out[:-1][seen], answer.scores(j)[:-1][seen], rtol=0, atol=1e-6)
            np.testing.assert_allclose(leave_one_out[np.append(~seen, True)], other.leave_one_out(j), rtol=0, atol=1e-6)
        machine.learn_one(x, label, weight if nothing else 1.0)
        if not nothing:
            without.learn_one(x, label)


@every_machine
def test_a_weight_of_another_type_is_its_number(name):
    """numpy's long double reached a compiled loop, which refused it after the example had been counted."""
    X, y, _ = stream("grid", 2, 12)
    plain, long = (learned(MACHINES[name][0](venn.RBF(GAMMA), 2.0, range(3)), X, y.tolist()) for _ in range(2))
    plain.learn_one([0.3, 0.4], 1, 0.5)
    long.learn_one([0.3, 0.4], 1, np.longdouble(0.5))
    assert same_answer(plain.hypotheses(X[0]), long.hypotheses(X[0]))
