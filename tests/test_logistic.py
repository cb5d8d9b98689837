"""Kernel logistic regression: against a generic minimiser after every step, two solvers against each other."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from conftest import KERNELS, OBJECTS, labels, learned, objects, same_answer
from naive import abers_by_class, conformal
from naive import logistic as naive
from naive import venn as transductive
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import venn
from venn._compiled import packed as loops
from venn.machines.logistic import KernelLogisticRegression
from venn.machines.logistic_batch import LogisticProblem, newton
from venn.machines.logistic_both import Both
from venn.machines.threads import side_by_side


def machine_of(kernel, C, c):
    return KernelLogisticRegression(KERNELS[kernel][0], C, range(c))


def gram(kernel, X):
    return KERNELS[kernel][1](X, X)


# Loops and solvers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11, 30])
def test_packed_products(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A += A.T
    packed, v = A[np.tril_indices(n)], rng.normal(size=(2, n))
    out = np.full((3, n), np.nan)
    loops.multiply(packed, n, v, out[:2])
    loops.multiply_one(packed, n, v[0], out[2])
    assert np.allclose(out, np.vstack([v @ A, v[:1] @ A]), atol=1e-12)
    assert np.array_equal(loops.unpack(packed, n), A)
    for rank in (1, 3, 4, 5, 8, 13):
        left = rng.normal(size=(rank, n))
        shape = rng.normal(size=(rank, rank))
        right = (shape + shape.T) @ left
        changed = packed.copy()
        loops.add_products(changed, n, left, right, rank)
        assert np.allclose(changed, (A - left.T @ right)[np.tril_indices(n)], atol=1e-10)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "quadratic"])
def test_the_oracle_agrees_with_scikit_learn(kernel, C):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 3))
    t = np.where(X[:, 0] + rng.normal(size=30) > 0.3, 1.0, -1.0)
    K = gram(kernel, X)
    Z = naive.features(K)
    theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(Z, t)
    assert np.allclose(naive.fit(K, t, C), theirs.decision_function(Z), atol=1e-6)


LABELLED = ("noise", "separable", "unbalanced")


def two_labels(kind, rng, X):
    """Return +1 and -1, both there: thrown, by a line that no object is on, or +1 for one example only."""
    if kind == "noise":
        t = np.where(rng.random(len(X)) < 0.4, 1.0, -1.0)
    elif kind == "separable":
        t = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    else:
        t = np.full(len(X), -1.0)
    t[0] = 1.0 if kind == "unbalanced" else t[0]
    return t


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("labelled", LABELLED)
@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("kernel", ["rbf", "rbf flat", "linear"])
def test_the_batch_solver_is_optimal(kernel, kind, labelled, C):
    """The dual: alpha_i = C / (1 + exp(t_i f_i)), and the sum of alpha_i t_i is 0."""
    rng = np.random.default_rng(OBJECTS.index(kind))
    X = objects(kind, rng, 30)
    t = two_labels(labelled, rng, X)
    distinct, where = np.unique(X, axis=0, return_inverse=True)
    where = where.ravel()
    total = np.bincount(where)
    plus = np.bincount(where[t > 0], minlength=total.size)
    problem = LogisticProblem(gram(kernel, distinct), plus, total, C)
    fit = newton(problem)
    if C == 1.0:
        assert np.allclose(fit.score[where], naive.fit(gram(kernel, X), t, C), rtol=0, atol=1e-7)
    alpha = C * expit(-t * fit.score[where])
    assert abs((alpha * t).sum()) <= 1e-9 * max(C, 1)
    assert abs(fit.beta.sum()) <= 1e-10 * C
    assert np.allclose(np.bincount(where, alpha * t), fit.beta, rtol=0, atol=1e-9 * max(C, 1))
    assert fit.residual <= 1e-10
    assert np.allclose(problem.kernel @ fit.beta + fit.bias, fit.score, rtol=0, atol=1e-9 * max(C, 1))


# The machine --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("kernel", ["rbf", "rbf flat", "rbf sharp", "linear", "quadratic"])
def test_every_hypothesis_after_every_step(kind, kernel):
    rng = np.random.default_rng([OBJECTS.index(kind), len(kernel)])
    n, c, C = 10, 3, 4.0
    X = objects(kind, rng, n)
    y = labels("late" if kind == "grid" else "noise", rng, X, c)
    machine = machine_of(kernel, C, c)
    before = np.zeros(c)
    whole = gram(kernel, X)
    for i in range(n):
        K = whole[: i + 1, : i + 1]
        answer = machine.hypotheses(X[i])
        assert np.allclose(answer.test_scores, before, atol=1e-7)
        assert np.array_equal(answer.labels, y[:i])
        for j in range(c):
            bag = np.append(y[:i], j)
            scores, alpha = answer.scores(j), answer.duals(j)
            assert np.allclose(scores, naive.training(K, bag, c, C), atol=1e-7)
            assert np.allclose(answer.deleted(j), naive.deleted(K, bag, c, C, scores), atol=1e-7)
            assert abs(alpha.sum(axis=0)).max() <= 1e-9
            for k in set(bag.tolist()) if len(set(bag.tolist())) > 1 else ():
                t = naive.signs(bag, k)
                assert np.allclose(alpha[:, k], t * C * expit(-t * scores[:, k]), atol=1e-12)
                outputs = scores[:, k] - K @ alpha[:, k]
                assert np.ptp(outputs) <= 1e-8  # f = K alpha t + b
        machine.learn_one(X[i], y[i])
        assert machine.residual <= 1e-10  # the coefficients kept are those that the scores call for, and sum to 0
        scores, places = machine.bag.scores, machine._history[: i + 1]
        assert np.allclose(scores[:, places].T, naive.training(K, y[: i + 1], c, C), atol=1e-7)
        expected = naive.deleted(K, y[: i + 1], c, C, scores[:, places].T)
        assert np.allclose(machine.deleted_bag.scores[:, places].T, expected, atol=1e-7)
        for bag in (machine.bag, machine.deleted_bag):
            assert np.array_equal(bag.counts.sum(axis=0), np.bincount(y[: i + 1], minlength=c))
        if i + 1 < n:
            before = outside(whole[: i + 2, : i + 2], y[: i + 1], c, C)


def outside(K, y, c, C):
    """Return the scores of the last object by the machines fitted to the others."""
    found = []
    for k in range(c):
        t = naive.signs(y, k)
        score = naive.fit(K[:-1, :-1], t, C)
        if (t == t[0]).all():
            found.append(score[0])
            continue
        beta = t * C * expit(-t * score)
        found.append(K[-1, :-1] @ beta + (score - K[:-1, :-1] @ beta).mean())
    return np.array(found)


@pytest.mark.parametrize(
    ("kernel", "C"),
    [("rbf", 0.01), ("rbf", 1.0), ("rbf", 1000.0), ("rbf sharp", 100.0), ("rbf flat", 100.0), ("linear", 10.0),
     ("quadratic", 1.0)],
)  # fmt: skip
def test_a_longer_run_equals_a_batch_solve(kernel, C):
    rng = np.random.default_rng(1)
    n = 70  # past the refresh of the inverses
    X = np.round(rng.normal(size=(n, 2)), 1)
    y = np.where(rng.random(n) < 0.8, (X[:, 0] > 0) * 1, 2 * (rng.random(n) < 0.5))
    machine = machine_of(kernel, C, 4)  # the last class never comes
    for i in range(n):
        if i % 10 == 0:
            machine.hypotheses(X[i]).deleted(0)
        machine.learn_one(X[i], y[i])
        assert machine.residual <= 1e-9
    scale = np.diag(gram(kernel, X)).max()
    assert np.allclose(machine.scores([0.3, 0.1])[3], -np.log(1 + n * 2 * (1 + C * scale)), rtol=0, atol=1e-12)
    K = gram(kernel, X)
    scores = machine.bag.scores[:, machine._history[:n]]
    for k in range(3):
        fit = newton(LogisticProblem(K, (y == k).astype(int), np.ones(n, int), C))
        assert np.allclose(scores[k], fit.score, atol=1e-7)
    expected = naive.deleted(K, y, 4, C, scores.T)
    assert np.allclose(machine.deleted_bag.scores[:, machine._history[:n]].T, expected, atol=1e-6)


def test_a_large_penalty_is_solved():
    """C K is large: at first multipliers are called for below any number."""
    for x, positive, total in (
        ([0.0, 1.0, 2.0, 3.0], [0, 0, 0, 1], [6, 10, 8, 6]),
        ([-3.0, -2.9, 2.0, 3.1], [0, 0, 2, 3], [6, 1, 2, 3]),
    ):
        assert newton(LogisticProblem(np.outer(x, x), np.array(positive), np.array(total), 1000.0)).residual <= 1e-9


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_linear_kernel_equals_scikit_learn(C):
    rng = np.random.default_rng(6)
    X = np.round(rng.normal(size=(50, 3)), 1)
    y = (X[:, 0] + rng.normal(size=50) > 0.5).astype(int)
    machine = learned(machine_of("linear", C, 2), X, y.tolist())
    theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    for x, expected in zip((*X, *2 * X), theirs.decision_function(np.vstack([X, 2 * X])), strict=True):
        assert np.allclose(machine.scores(x), [-expected, expected], rtol=0, atol=1e-6)
        assert np.allclose(expit(machine.scores(x))[1], theirs.predict_proba([x])[0, 1], rtol=0, atol=1e-6)


def test_deleted_scores_come_near_those_of_machines_without_the_example():
    rng = np.random.default_rng(0)
    n = 40
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    machine = learned(machine_of("rbf", 1.0, 2), X, y)
    exact = np.empty(n)
    K = gram("rbf", X)
    for i in range(n):
        order = np.append(np.delete(np.arange(n), i), i)
        exact[i] = outside(K[np.ix_(order, order)], y[order[:-1]], 2, 1.0)[1]
    plain, deleted = machine.bag.scores[1], machine.deleted_bag.scores[1]
    assert abs(deleted - exact).mean() < 0.2 * abs(plain - exact).mean()


@pytest.mark.parametrize("kernel", ["rbf", "rbf sharp", "linear"])
def test_shuffling_leaves_all_answers(kernel):
    rng = np.random.default_rng(4)
    n = 40
    X = objects("repeats", rng, n)
    y = rng.integers(0, 3, n)
    x = np.array([0.2, -0.4])
    answers = []
    for _ in range(3):
        order = rng.permutation(n)
        machine = learned(machine_of(kernel, 10.0, 3), X[order], y[order])
        back = np.append(np.argsort(order), n)
        answer = machine.hypotheses(x)
        answers.append([[answer.scores(j)[back], answer.deleted(j)[back]] for j in range(3)])
    assert np.allclose(answers, answers[0], atol=1e-9, rtol=0)


def test_equal_examples_have_equal_scores():
    rng = np.random.default_rng(3)
    X, y = objects("few", rng, 40), rng.integers(0, 3, 40)
    machine = learned(machine_of("rbf", 5.0, 3), X, y)
    answer = machine.hypotheses(X[0])
    kinds = [(x.tobytes(), label) for x, label in zip(X, y, strict=True)]
    for j in range(3):
        for rows in (answer.scores(j), answer.deleted(j), answer.duals(j)):
            for kind in set(kinds):
                same = rows[:-1][[other == kind for other in kinds]]
                assert (same == same[0]).all()
            if (X[0].tobytes(), j) in kinds:  # the new example is one of them
                assert np.allclose(rows[-1], rows[kinds.index((X[0].tobytes(), j))], atol=1e-12)


def test_what_has_gone_wrong_is_found_and_built_again():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    machine, twin = (learned(machine_of("rbf", 5.0, 2), X, y) for _ in range(2))
    machine._inverse[:, ::7] *= 1.001
    for _ in range(10):
        x, label = rng.normal(size=2), int(rng.integers(2))
        machine.learn_one(x, label)
        twin.learn_one(x, label)
        assert machine.residual <= 1e-9  # solutions do not hang on it
    x = [0.1, 0.2]
    for j in range(2):
        assert np.allclose(machine.hypotheses(x).deleted(j), twin.hypotheses(x).deleted(j), atol=1e-9)
        assert np.allclose(machine.hypotheses(x).scores(j), twin.hypotheses(x).scores(j), atol=1e-9)


def test_asking_leaves_no_trace_and_a_copy_goes_on_alone():
    rng = np.random.default_rng(9)
    X, y = objects("normal", rng, 30), rng.integers(0, 2, 30)
    machine, silent = machine_of("rbf", 5.0, 2), machine_of("rbf", 5.0, 2)
    for i in range(30):
        machine.hypotheses(X[i] + 1).deleted(0)
        assert same_answer(machine.hypotheses(X[i]), silent.hypotheses(X[i]))
        machine.learn_one(X[i], int(y[i]))
        silent.learn_one(X[i], int(y[i]))
    twin = pickle.loads(pickle.dumps(machine))
    learned(twin, X[:3], y[:3].tolist())
    assert same_answer(machine.hypotheses(X[4]), silent.hypotheses(X[4]))
    learned(machine, X[:3], y[:3].tolist())
    assert same_answer(machine.hypotheses(X[5]), twin.hypotheses(X[5]))
    stale = machine.hypotheses(X[5])
    machine.learn_one(X[5], 1)
    for read in (stale.scores, stale.deleted, stale.duals):
        with pytest.raises(RuntimeError, match="out of date"):
            read(0)


def test_fresh_keeps_the_parameters_alone():
    machine = learned(machine_of("rbf", 2.0, 2), [[0.0], [1.0]], [0, 1])
    fresh = machine.fresh()
    assert repr(fresh) == repr(machine) == "KernelLogisticRegression(RBF(gamma=0.5), C=2.0, classes=[0, 1])"
    assert fresh.n == 0
    assert fresh.residual == 0
    assert np.array_equal(fresh.scores([0.0]), [0, 0])


# Threads -------------------------------------------------------------------------------------------------------------


def of_everything(machine, X):
    """Return the bytes of all that a machine has learned, and of its answers."""
    kept = pickle.loads(pickle.dumps(machine)).state
    arrays = [value.tobytes() for name, value in sorted(kept.items()) if isinstance(value, np.ndarray)]
    for x in X:
        answer = machine.hypotheses(x)
        for j in range(len(machine.classes)):
            arrays += [answer.scores(j).tobytes(), answer.deleted(j).tobytes(), answer.duals(j).tobytes()]
    return [*arrays, machine.bag.scores.tobytes(), machine.deleted_bag.scores.tobytes(), machine.residual]


@pytest.mark.parametrize(("kind", "class_weights", "several"), [("few", None, 3), ("repeats", (1.0, 2.0, 0.5, 1.0), 2)])
def test_any_number_of_threads_gives_the_same_last_bit(kind, class_weights, several):
    rng = np.random.default_rng(8)
    X = objects(kind, rng, 64)  # past the refresh of the inverses
    y, w = labels("late", rng, X, 3).tolist(), rng.choice([0.5, 1.0, 2.0], 64)  # the last class never comes
    machines = [
        KernelLogisticRegression(venn.RBF(0.5), 5.0, range(4), class_weights, threads=threads)
        for threads in (1, several)
    ]
    for i, x in enumerate(X):
        for machine in machines:
            machine.learn_one(x, y[i], w[i])
            if i % 7 == 6:
                machine.unlearn_one(i % 5)
        if i % 20 == 0:
            one, *others = (of_everything(machine, X[i : i + 3]) for machine in machines)
            assert all(other == one for other in others)
    for machine in machines:
        machine.reweigh((1.0, 3.0, 1.0, 0.1))
    one, *others = (of_everything(machine, X[:3]) for machine in machines)
    assert all(other == one for other in others)
    for machine in machines:
        while machine.n > 3:
            machine.unlearn_one(machine.n // 2)
    one, *others = (of_everything(machine, X[:3]) for machine in machines)
    assert all(other == one for other in others)


def test_threads_travel_with_the_machine_and_show_when_they_are_more_than_one(tmp_path):
    machine = KernelLogisticRegression(venn.RBF(0.5), 2.0, [0, 1], threads=3)
    learned(machine, [[0.0], [1.0], [0.3]], [0, 1, 1])
    venn.save(tmp_path / "machine", machine)
    for other in (pickle.loads(pickle.dumps(machine)), copy.deepcopy(machine), venn.load(tmp_path / "machine")):
        assert other.threads == 3
        assert repr(other) == "KernelLogisticRegression(RBF(gamma=0.5), C=2.0, classes=[0, 1], threads=3)"
        assert same_answer(other.hypotheses([0.4]), machine.hypotheses([0.4]))
    assert machine.fresh().threads == 3
    assert "threads" not in repr(machine_of("rbf", 2.0, 2))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, None, "2"])
def test_threads_out_of_range(threads):
    with pytest.raises((ValueError, TypeError), match=rf"threads must be an integer >= 1, got {threads!r}"):
        KernelLogisticRegression(venn.RBF(1.0), 1.0, [0, 1], threads=threads)


def test_what_one_of_several_threads_cannot_solve_leaves_no_trace(monkeypatch):
    """The first machine's error is raised, whichever fails first."""
    rng = np.random.default_rng(2)
    X, y = objects("normal", rng, 20), rng.integers(0, 3, 20).tolist()
    machine = KernelLogisticRegression(venn.RBF(0.5), 2.0, range(3), threads=3)
    learned(machine, X, y)
    before, solve = pickle.dumps(machine), Both.solve

    def fails(both, *rest):
        solve(both, *rest)
        mass = both.positive[0].sum() if both.todo[0] else 0.0
        raise venn.machines.NotConverged(f"of the machine with {mass:g} examples")

    with monkeypatch.context() as patch:
        patch.setattr(Both, "solve", fails)
        with pytest.raises(venn.machines.NotConverged, match=f"with {y[1:].count(0)} examples"):
            machine.unlearn_one(0)
        with pytest.raises(venn.machines.NotConverged, match=f"with {y.count(0)} examples at example 20"):
            machine.learn_one(X[0], 1)
    assert pickle.dumps(machine) == before
    twin = pickle.loads(before)
    assert same_answer(machine.hypotheses(X[3]), twin.hypotheses(X[3]))


def test_machines_of_several_threads_may_themselves_stand_in_threads():
    rng = np.random.default_rng(3)
    X, y = objects("grid", rng, 40), rng.integers(0, 3, 40).tolist()

    def taught(i):
        return learned(KernelLogisticRegression(venn.RBF(0.5), 1.0 + i, range(3), threads=2), X, y).bag.scores

    for i, scores in enumerate(side_by_side(taught, range(4), 2)):
        assert np.array_equal(scores, taught(i))


# A class that has not come -------------------------------------------------------------------------------------------


def three_of_four(n, rare=()):
    """Return n examples of the first three of four classes, about as many of each; of the last one at some places."""
    rng = np.random.default_rng(11)
    y = rng.integers(0, 3, n)
    y[list(rare)] = 3
    return np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])[y] + 0.8 * rng.normal(size=(n, 2)), y


@pytest.mark.parametrize(("kernel", "C"), [("rbf", 1.0), ("rbf sharp", 100.0), ("linear", 1.0)])
def test_venn_abers_gives_next_to_nothing_to_a_class_that_has_not_come(kernel, C):
    """With -1 for its score, above all others, it had the pair [0, 1], and a third of the mean probability."""
    n = 100
    X, y = three_of_four(n + 10)
    model = venn.TransductiveVennAbers(learned(machine_of(kernel, C, 4), X[:n], y[:n].tolist()))
    said = [model.predict_one(x) for x in X[n:]]
    pairs = np.array([one.pairs[3] for one in said])
    assert (pairs[:, 0] == 0).all()
    assert pairs[:, 1].max() < 10 / n
    assert 0.4 / n < np.mean([one.proba[3] for one in said]) < 4 / n


def test_the_log_loss_beside_a_rare_class():
    """Two of 200 examples are of the last class, the first of them the 121st.

    Log loss was .803 with -1 and +1 for the scores of one sign alone; least squares has .615.
    """
    X, y = three_of_four(200, (120, 160))
    machine = machine_of("rbf", 1.0, 4)
    model, loss = venn.TransductiveVennAbers(machine), []
    for x, label in zip(X, y.tolist(), strict=True):
        loss.append(-np.log(model.predict_one(x).proba[label]))
        model.learn_one(x, label)
    assert np.mean(loss) == pytest.approx(0.595, abs=2e-3)
    assert np.mean(loss) < 0.803 - 0.15


@pytest.mark.parametrize(("kernel", "C"), [("rbf", 1.0), ("rbf", 100.0), ("linear", 10.0)])
def test_nobody_predicts_a_class_that_has_not_come(kernel, C):
    X, y = three_of_four(60)
    machine = machine_of(kernel, C, 4)
    panel = venn.Panel(
        venn=venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax())),
        abers=venn.TransductiveVennAbers(machine),
        platt=venn.Scaler(machine, venn.maps.Platt()),
        deleted=venn.Scaler(machine, venn.maps.Platt(), venn.predictors.DeletedScores()),
    )
    for i, x in enumerate(X):
        if i > 20:
            answer = machine.hypotheses(x)
            assert answer.test_scores.argmax() != 3
            assert answer.deleted(3)[-1].argmax() != 3
            for name, said in panel.predict_one(x).items():
                assert said.label != 3, name
                assert said.proba[3] < 0.15, name
        panel.learn_one(x, int(y[i]))


def test_of_one_class_only_everybody_says_that_class():
    machine = learned(machine_of("rbf", 1.0, 3), objects("normal", np.random.default_rng(1), 30), [1] * 30)
    x = [0.3, 0.3]
    assert np.allclose(machine.scores(x), np.array([-1, 1, -1]) * np.log(1 + 30 * 4), rtol=0, atol=1e-12)
    for model in (
        venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax())),
        venn.TransductiveVennAbers(machine),
        venn.Scaler(machine, venn.maps.Platt(), venn.predictors.DeletedScores()),
    ):
        said = model.predict_one(x)
        assert said.label == 1
        assert said.proba[1] > 0.85


@pytest.mark.parametrize("kernel", ["rbf", "linear", "quadratic"])
def test_one_sign_alone_has_the_constant_score_of_its_definition(kernel, tmp_path):
    """Learned, weighed anew, saved, slid out of a window and unlearned."""
    rng = np.random.default_rng(4)
    X, w = objects("grid", rng, 12), rng.choice([0.5, 1.0, 3.0], 12)
    weights = np.array([2.0, 1.0, 0.5])
    machine = KernelLogisticRegression(KERNELS[kernel][0], 3.0, range(3), weights)

    def check(machine, X, w, of_class, codes):
        for k in range(3):
            t = naive.signs(codes, k)
            if len(set(t.tolist())) == 1:
                expected = naive.constant(gram(kernel, X), t, 3.0, w * of_class[codes])
                assert np.allclose(machine.bag.scores[k], expected, rtol=0, atol=1e-12)
                assert machine.scores([0.3, 0.4])[k] == machine.bag.scores[k, 0]

    codes = np.array([0] * 6 + [1] * 6)  # the last class never comes
    for i, x in enumerate(X):
        machine.learn_one(x, int(codes[i]), w[i])
        check(machine, X[: i + 1], w[: i + 1], weights, codes[: i + 1])
    machine.reweigh([1.0, 4.0, 1.0])
    check(machine, X, w, np.array([1.0, 4.0, 1.0]), codes)
    venn.save(tmp_path / "machine", machine)
    assert np.array_equal(venn.load(tmp_path / "machine").bag.scores, machine.bag.scores)
    window = venn.SlidingWindow(machine, 12)
    for i in range(4):
        window.learn_one(X[i], 1, w[i])
    check(
        machine,
        X[[*range(4, 12), *range(4)]],
        w[[*range(4, 12), *range(4)]],
        np.array([1.0, 4.0, 1.0]),
        np.append(codes[4:], [1] * 4),
    )
    machine.unlearn_one(0)
    machine.unlearn_one(0)  # now the second class alone is left
    rest = [*range(6, 12), *range(4)]
    check(machine, X[rest], w[rest], np.array([1.0, 4.0, 1.0]), np.ones(10, int))
    assert machine.scores([0.0, 0.0])[1] > 0
    while machine.n:
        machine.unlearn_one(0)
    assert np.array_equal(machine.scores([0.0, 0.0]), [0.0, 0.0, 0.0])


@pytest.mark.parametrize("size", [1e5, 1e8, 1e49])
def test_scores_that_rounding_would_decide_are_refused_without_a_trace(size):
    """A large constant column: the scores, which it cannot change, would lose their digits."""
    machine = KernelLogisticRegression(venn.Linear(), 1.0, range(3))
    machine.learn_one([0.5, 1.0], 0)
    before = machine.scores([0.0, 0.0])
    for _ in range(2):
        with pytest.raises(venn.machines.NotConverged, match=r"C K\(x, x\) must be at most 4.5e\+08"):
            machine.learn_one([0.5, size], 1)
        assert machine.n == 1
        assert np.array_equal(machine.scores([0.0, 0.0]), before)


class Indefinite:
    """A kernel that is none."""

    def row(self, columns, n, x, out):
        out[:n] = -abs(columns[:, :n] - x[:, None]).sum(axis=0) * 3 - 1


def test_what_is_no_mercer_kernel_is_refused_without_a_trace():
    machine = KernelLogisticRegression(Indefinite(), 50.0, [0, 1])
    for _ in range(2):
        with pytest.raises(venn.machines.NotConverged, match="positive semidefinite"):
            machine.learn_one([1.0, 2.0], 1)
        assert machine.n == 0
        assert np.array_equal(machine.scores([1.0, 2.0]), [0, 0])
        assert np.array_equal(machine.scores([1.0]), [0, 0])  # nor is the number of features fixed


def test_objects_that_the_kernel_knows_nothing_of():
    """Their coefficients must move though no score does."""
    machine = KernelLogisticRegression(venn.Linear(), 100.0, [0, 1])
    for x, label in [(0.0, 0), (0.0, 1), (1.0, 1), (-1.0, 1), (0.0, 0), (1.0, 0)]:
        machine.learn_one([x, 0.0], label)
        assert machine.residual <= 1e-10


@pytest.mark.parametrize("C", [0, -1.0, np.inf, np.nan, "1", None, True])
def test_C_out_of_range(C):
    with pytest.raises((ValueError, TypeError), match="C must be"):
        KernelLogisticRegression(venn.RBF(1.0), C, [0, 1])


@pytest.mark.parametrize("x", [[np.nan, 0.0], ["a", "b"], None, [1.0], [[1.0, 2.0]]])
def test_bad_objects_leave_no_trace(x):
    machine = learned(machine_of("rbf", 2.0, 2), [[0.0, 0.0], [1.0, 1.0]], [0, 1])
    twin = pickle.loads(pickle.dumps(machine))
    with pytest.raises((ValueError, TypeError), match="x must"):
        machine.learn_one(x, 0)
    assert same_answer(machine.hypotheses([0.5, 0.5]), twin.hypotheses([0.5, 0.5]))


def test_predictors_on_it_equal_their_definitions():
    """Side by side on one machine, after every step; the oracle's machines are fitted from nothing."""
    rng = np.random.default_rng(2)
    X = objects("grid", rng, 14) + rng.integers(0, 2, size=(14, 1)) / 7
    y = labels("signal", rng, X, 3)
    machine = machine_of("rbf", 1.0, 3)
    panel = venn.Panel(
        venn=venn.TransductiveVenn(machine, venn.Argmax()),
        abers=venn.TransductiveVennAbers(machine),
        conformal=venn.Conformal(machine, venn.nonconformity.Margin(deleted=False), smoothed=False),
        multiplier=venn.Conformal(machine, venn.nonconformity.Multiplier(), smoothed=False),
        platt=venn.Scaler(machine, venn.maps.Platt()),
        isotonic=venn.Scaler(machine, venn.maps.Isotonic()),
    )
    for i in range(14):
        K = gram("rbf", X[: i + 1])
        bags = [np.append(y[:i], j) for j in range(3)]
        scores = [naive.training(K, bag, 3, 1.0) for bag in bags]
        deleted = [naive.deleted(K, bag, 3, 1.0, s) for bag, s in zip(bags, scores, strict=True)]
        margins = [conformal.margins(s.tolist(), bag) for s, bag in zip(scores, bags, strict=True)]
        pushes = [naive.multipliers(K, bag, 3, 1.0) for bag in bags]
        said = panel.predict_one(X[i])
        matrix = transductive.matrix([transductive.argmax(s) for s in scores], y[:i].tolist(), 3)
        assert np.allclose(said["venn"].probabilities, matrix, rtol=0, atol=1e-12)
        assert np.allclose(said["abers"].pairs, abers_by_class.pairs(deleted, y[:i], 3), rtol=0, atol=1e-9)
        for name, values in (("conformal", margins), ("multiplier", pushes)):
            expected = [conformal.p_value(v, bag, 1.0) for v, bag in zip(values, bags, strict=True)]
            assert np.allclose(said[name].p_values, expected, rtol=0, atol=1e-12)
        for name in ("platt", "isotonic"):
            assert abs(said[name].proba.sum() - 1) < 1e-12
        panel.learn_one(X[i], int(y[i]))
    assert machine.n == 14


def test_a_search_that_ends_in_nan_is_noticed_and_solved_afresh(monkeypatch):
    """Comparing numbers with NaN says no to everything: it was taken for a solution."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 3, (12, 2)) / 2, rng.integers(0, 3, 12).tolist()
    exact, lost = (venn.machines.KernelLogisticRegression(venn.RBF(1.0), 5.0, (0, 1, 2)) for _ in range(2))

    def ends_in_nan(bordered, V, positive, total, worth, C, count, todo, finest, close, beta, score, *room):
        beta[todo] = score[todo] = np.nan

    for x, label in zip(X, y, strict=True):
        exact.learn_one(x, label)
    expected = exact.hypotheses([0.5, 1.0])
    monkeypatch.setattr("venn.machines.logistic_both.compiled.descend_both", ends_in_nan)
    for x, label in zip(X, y, strict=True):
        lost.learn_one(x, label)
    found = lost.hypotheses([0.5, 1.0])
    np.testing.assert_allclose(found.test_scores, expected.test_scores, rtol=0, atol=1e-7)
    for j in range(3):
        np.testing.assert_allclose(found.scores(j), expected.scores(j), rtol=0, atol=1e-7)
