"""The transductive Venn predictor: against its definition, against scikit-learn, and by its invariants."""

import numpy as np
import pytest
from conftest import KERNELS, LABELS, OBJECTS, car, halved, labels, learned, objects
from naive import svm
from naive import venn as naive
from sklearn.svm import SVC
from test_validity import OneCategory

import venn
from venn.taxonomies import ByScores


class BestTwo(ByScores):
    """The two largest classes, in order, on the grid of 1e-6."""

    def categories(self, scores):
        order = np.argsort(-np.rint(scores * 1e6 + 0.2718281828), axis=1, kind="stable")
        return order[:, 0] * scores.shape[1] + order[:, 1]


ARGMAX = venn.Argmax()


def model_of(kernel, C, c, taxonomy=ARGMAX):
    return venn.TransductiveVenn(venn.OneVsAllSVM(KERNELS[kernel][0], C, range(c)), taxonomy)


# Against the definition --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize(("kernel", "C"), [("rbf", 1.0), ("linear", 0.5), ("quadratic", 10.0)])
def test_probabilities_equal_the_definition_at_every_step(kind, kernel, C):
    """c machines fitted from nothing for each of the c hypotheses: c^2 fits a step."""
    rng = np.random.default_rng(sum(map(ord, kind + kernel)))
    n = 11
    X = objects(kind, rng, n)
    y = labels(LABELS[len(kind) % len(LABELS)], rng, X, 3)
    model = model_of(kernel, C, 3)
    for i in range(n):
        expected = naive.transductive(X[:i], y[:i], X[i], 3, KERNELS[kernel][1], C)
        assert np.array_equal(model.predict_one(X[i]).probabilities, expected), f"step {i}"
        model.learn_one(X[i], y[i])


def test_a_taxonomy_of_the_users_own():
    rng = np.random.default_rng(0)
    X = objects("grid", rng, 20)
    y = rng.integers(0, 3, 20)
    model = learned(model_of("rbf", 1.0, 3, BestTwo()), X[:-1], y[:-1])

    def best_two(scores):
        rows = naive.on_grid(scores)
        return np.array([sorted(range(3), key=lambda k: (-row[k], k))[:2] for row in rows]) @ [3, 1]

    expected = naive.transductive(X[:-1], y[:-1], X[-1], 3, KERNELS["rbf"][1], 1.0, best_two)
    assert np.array_equal(model.predict_one(X[-1]).probabilities, expected)
    assert repr(model.taxonomy) == "BestTwo()"


# Against scikit-learn --------------------------------------------------------------------------------------------
# Its SVC keeps the kernel in single precision, so its scores are off by 1e-7 to 2e-5 at any tolerance.
# Where the two largest scores of an example stand closer than 1e-4 the oracle in double precision settles
# the category; elsewhere scikit-learn alone does.

UNSURE = 1e-4


class BruteForce:
    """Categories under every hypothesis from fits made anew; counts how many scikit-learn could not settle."""

    def __init__(self, kernel, C, c):
        self.kernel, self.C, self.c = kernel, C, c
        self.settled = self.unsure = 0

    def theirs(self, K, t):
        if abs(t.sum()) == len(t):
            return np.full(len(t), t[0])
        return SVC(C=self.C, kernel="precomputed", tol=1e-8, cache_size=500).fit(K, t).decision_function(K)

    def categories(self, X, y):
        """Return (c, n + 1) categories; the last of X is the new object, `y` the labels of the others."""
        K = self.kernel(X, X)

        def signs(k, side):
            return np.append(np.where(y == k, 1.0, -1.0), side)

        fits = {(k, side): self.theirs(K, signs(k, side)) for k in range(self.c) for side in (-1.0, 1.0)}
        exact = {}
        answer = []
        for j in range(self.c):
            sides = [1.0 if k == j else -1.0 for k in range(self.c)]
            scores = np.column_stack([fits[k, sides[k]] for k in range(self.c)])
            order = np.sort(scores, axis=1)
            unsure = order[:, -1] - order[:, -2] < UNSURE
            categories = scores.argmax(axis=1)
            if unsure.any():
                for k in range(self.c):
                    if (k, sides[k]) not in exact:
                        exact[k, sides[k]] = svm.scores(K, signs(k, sides[k]), self.C)
                scores = np.column_stack([exact[k, sides[k]] for k in range(self.c)])
                categories[unsure] = naive.argmax(scores[unsure])
            self.unsure += int(unsure.sum())
            self.settled += int((~unsure).sum())
            answer.append(categories)
        return np.array(answer)


def compare_with_brute_force(X, y, kernel, C, steps):
    c = int(y.max()) + 1
    model = model_of(kernel, C, c)
    brute = BruteForce(KERNELS[kernel][1], C, c)
    for i in range(max(steps) + 1):
        if i in steps:
            expected = brute.categories(X[: i + 1], y[:i])
            answer = model.machine.hypotheses(X[i])
            ours = np.array([venn.Argmax().categories(answer.scores(j)) for j in range(c)])
            assert np.array_equal(ours, expected), f"step {i}"
            probabilities = naive.matrix(expected, y[:i].tolist(), c)
            assert np.array_equal(model.predict_one(X[i]).probabilities, probabilities), f"step {i}"
        model.learn_one(X[i], y[i])
    assert model.machine.residual <= 1e-8
    return brute


@pytest.mark.parametrize(("gamma", "C"), [(0.1, 10.0), (0.2, 100.0)])
def test_car_equals_scikit_learn(gamma, C, monkeypatch):
    monkeypatch.setitem(KERNELS, "data", (venn.RBF(gamma), svm.rbf(gamma)))
    X, y = car(0)
    brute = compare_with_brute_force(X, y, "data", C, {*range(0, 60, 9), 90, 150, 230})
    assert brute.settled > 1000  # measured: scikit-learn settles every example here


@pytest.mark.parametrize(("kind", "sequence"), halved(["grid", "few", "repeats", "binary"], LABELS))
def test_streams_of_ties_equal_scikit_learn(kind, sequence):
    rng = np.random.default_rng(len(kind) + len(sequence))
    X = objects(kind, rng, 40)
    compare_with_brute_force(X, labels(sequence, rng, X, 3), "rbf", 1.0, set(range(0, 40, 5)))


# Invariants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [2, 3, 5])
def test_one_category_counts_labels(c):
    rng = np.random.default_rng(c)
    X = objects("grid", rng, 40)
    y = rng.integers(0, c, 40)
    model = model_of("rbf", 1.0, c, OneCategory())
    for i in range(40):
        counts = np.bincount(y[:i], minlength=c)
        assert np.array_equal(model.predict_one(X[i]).probabilities, (counts + np.eye(c)) / (i + 1))
        model.learn_one(X[i], y[i])


def test_permuting_the_classes_permutes_the_answer():
    """Without ties between classes the order in which they are declared does not matter."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = rng.integers(0, 3, 40)
    names = np.array(["a", "b", "c"])
    one = venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF(0.5), 0.1, ["a", "b", "c"]), OneCategory())
    two = venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF(0.5), 0.1, ["c", "a", "b"]), OneCategory())
    for x, label in zip(X, names[y], strict=True):
        P, Q = one.predict_one(x).probabilities, two.predict_one(x).probabilities
        assert np.array_equal(P[np.ix_([2, 0, 1], [2, 0, 1])], Q)
        one.learn_one(x, str(label))
        two.learn_one(x, str(label))


@pytest.mark.parametrize("kind", ["grid", "normal"])
def test_a_longer_stream_never_changes_earlier_predictions(kind):
    rng = np.random.default_rng(4)
    X = objects(kind, rng, 70)
    y = labels("signal", rng, X, 3)
    long = model_of("rbf", 1.0, 3)
    kept = []
    for i in range(70):
        prediction = long.predict_one(X[i])
        kept.append((prediction, prediction.probabilities.tobytes(), prediction.label))
        long.learn_one(X[i], y[i])
    for prediction, content, label in kept:  # what was said is not touched by what came later
        assert prediction.probabilities.tobytes() == content
        assert prediction.label == label
    for stop in (1, 10, 40):
        short = learned(model_of("rbf", 1.0, 3), X[:stop], y[:stop])
        assert short.predict_one(X[stop]).probabilities.tobytes() == kept[stop][1]


def test_rule_chooses_the_label():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2))
    y = labels("signal", rng, X, 3)
    machine = venn.OneVsAllSVM(venn.RBF(0.5), 1.0, range(3))
    mean = venn.TransductiveVenn(machine, venn.Argmax())
    least = venn.TransductiveVenn(machine, venn.Argmax(), venn.prediction.Maximin())
    assert mean.rule == venn.prediction.RowMean()
    assert mean.taxonomy == venn.Argmax()
    for x, label in zip(X, y, strict=True):
        a, b = mean.predict_one(x), least.predict_one(x)
        assert np.array_equal(a.probabilities, b.probabilities)
        assert a.label == a.probabilities.mean(axis=0).argmax()
        assert b.label == b.probabilities.min(axis=0).argmax()
        best = a.probabilities.argmax(axis=1)
        assert a.unanimous is bool((best == best[0]).all())
        machine.learn_one(x, label)


# What goes wrong in other packages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [[1, 2], [-1, 1], ["b", "a"], ["x", 3], [(0, "x"), None], [True, False], [0.5, 1.5], [5, 1], [b"n", b"y"]],
    ids=repr,
)
def test_labels_are_any_hashable_values(names):
    """T4: the matrix does not depend on how the labels are called, and every answer is a probability."""
    rng = np.random.default_rng(8)
    X = objects("grid", rng, 30)
    y = rng.integers(0, 2, 30)
    plain = model_of("rbf", 1.0, 2)
    named = venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF(0.5), 1.0, names), venn.Argmax())
    assert named.classes == tuple(names)
    for x, code in zip(X, y, strict=True):
        a, b = plain.predict_one(x), named.predict_one(x)
        assert np.array_equal(a.probabilities, b.probabilities)
        assert 0 <= b.lower <= b.upper <= 1
        assert b.label == names[a.label]
        plain.learn_one(x, code)
        named.learn_one(x, names[code])


def test_the_callers_array_may_be_reused():
    buffer = np.empty(2)
    reused, fresh = model_of("rbf", 1.0, 2), model_of("rbf", 1.0, 2)
    rng = np.random.default_rng(10)
    for _ in range(20):
        x, y = rng.normal(size=2), int(rng.integers(2))
        buffer[:] = x
        reused.predict_one(buffer)
        reused.learn_one(buffer, y)
        buffer[:] = np.nan
        fresh.learn_one(x, y)
    x = np.zeros(2)
    assert np.array_equal(reused.predict_one(x).probabilities, fresh.predict_one(x).probabilities)
    assert np.array_equal(x, np.zeros(2))
