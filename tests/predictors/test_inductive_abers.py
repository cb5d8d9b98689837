"""Inductive Venn-Abers predictors against two refits of isotonic regression a class, and their validity."""

import numpy as np
import pytest
from conftest import labels, objects
from inductive_cases import (
    SCHEDULES,
    AsGiven,
    Centroids,
    blocks_are_the_loop,
    centroids,
    frozen,
    lssvm,
    mirrored,
    places_do_not_count,
)
from naive import abers as naive_abers
from naive import inductive as naive
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import venn
from venn.machines.frozen import FrozenScorer
from venn.predictors.blocks import ManyClassIntervals
from venn.predictors.inductive_abers import InductiveVennAbers, WeighedAbers
from venn.schedules import NoTraining, PrefixRestart


def pairs_by_definition(X, y, x, split, c, score):
    """Return the (c, 2) pairs: for each class two isotonic regressions of the calibration scores with that of x."""
    if split is None:
        return np.tile([0.0, 1.0], (c, 1))
    train, calibration = split
    bag = np.rint(score(X[train], y[train], np.vstack([X[calibration], x]), c) * 1e6 + 0.2718281828)
    return np.array([
        naive_abers.refitted(bag[:-1, k], (y[calibration] == k).astype(float), bag[-1, k]) for k in range(c)
    ])  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["centroids", "least squares"])
def test_every_step_is_the_definition(name, kind):
    rng = np.random.default_rng(len(name))
    schedule, split = SCHEDULES[name]
    N, c = 22, 3
    X = objects("grid", rng, N)
    y = labels("signal", rng, X, c)
    machine = Centroids(range(c)) if kind == "centroids" else lssvm(c)
    score = centroids if kind == "centroids" else naive.least_squares(0.5, 2.0)
    model = InductiveVennAbers(machine, schedule=schedule)
    for n in range(N):
        expected = pairs_by_definition(X, y, X[n], split(n), c, score)
        assert np.allclose(model.predict_one(X[n]).pairs, expected, atol=1e-9, rtol=0)
        model.learn_one(X[n], int(y[n]))


@pytest.mark.parametrize("method", [None, "predict_proba", "decision_function"])
def test_of_several_classes_probabilities_are_read_unless_a_method_is_chosen(method):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=150) / 2, [-0.5, 0.5])
    fitted = LogisticRegression().fit(X[:50], y[:50])
    model = InductiveVennAbers(FrozenScorer(fitted, method=method))
    model.learn_many(X[50:100], y[50:100])
    read = getattr(fitted, method or "predict_proba")
    for x in X[100:]:
        expected = pairs_by_definition(
            X, y, x, (range(50), range(50, 100)), 3, lambda train, codes, rows, c: read(rows)
        )
        assert np.allclose(model.predict_one(x).pairs, expected, atol=1e-9, rtol=0)


def test_a_scorer_of_two_classes_or_without_probabilities_is_read_as_given():
    X = np.random.default_rng(0).normal(size=(60, 2))
    two = FrozenScorer(LogisticRegression().fit(X, X[:, 0] > 0))
    several = FrozenScorer(LinearSVC().fit(X, np.arange(60) % 3))
    for scorer in (two, several):
        assert InductiveVennAbers(scorer).given is scorer


class Told:
    """A classifier whose probabilities are the objects themselves."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        return np.asarray(X)


class Scores:
    """A classifier whose decision values are the objects themselves."""

    classes_ = ("no", "yes")

    def decision_function(self, X):
        return np.asarray(X)


NEARLY_SURE = 10.0 ** np.random.default_rng(8).uniform(-8, 0, 400)


@pytest.mark.parametrize("shift", [None, venn.shifts.CovariateShift(lambda X: 1 + X[:, 0])])
@pytest.mark.parametrize(
    "objects_",
    [
        np.column_stack([1 - NEARLY_SURE, NEARLY_SURE]),
        np.column_stack([1 - NEARLY_SURE, NEARLY_SURE])[:, ::-1],
        np.column_stack([-NEARLY_SURE, NEARLY_SURE]) * 1e-3,  # as decision values are
    ],
    ids=["sure of no", "sure of yes", "decision values"],
)
def test_of_two_classes_the_intervals_say_the_same(objects_, shift):
    """Near 0 and 1 the steps of p and of 1 - p have other ties."""
    X = objects_[: 400 if shift is None else 80]
    y = np.where(np.random.default_rng(9).random(len(X)) < X[:, 1].clip(0.2, 0.8), "yes", "no").tolist()
    told = Told() if np.allclose(X.sum(axis=1), 1) else Scores()
    one_by_one, at_once = (InductiveVennAbers(FrozenScorer(told), shift=shift) for _ in range(2))
    block = at_once.replay_many(X, y)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        no, yes = one_by_one.predict_one(x).pairs
        assert np.array_equal([no, yes], block[i].pairs)
        np.testing.assert_allclose(no, 1 - yes[::-1], atol=1e-12)
        one_by_one.learn_one(x, label)


def test_two_scores_that_do_not_mirror_each_other_are_read_each_for_itself():
    rng = np.random.default_rng(3)
    X, y = rng.integers(2, 7, (40, 2)) / 3, rng.integers(0, 2, 40)
    model = InductiveVennAbers(FrozenScorer(Scores()))
    for i in range(40):
        expected = pairs_by_definition(X, y, X[i], (range(0), range(i)), 2, lambda train, codes, rows, c: rows)
        assert np.allclose(model.predict_one(X[i]).pairs, expected, atol=1e-9, rtol=0)
        model.learn_one(X[i], ("no", "yes")[y[i]])


@pytest.mark.parametrize("c", [2, 3])
def test_mirror_images_are_ties_whatever_the_order(c):
    X, y, seen, labels_, asked = mirrored(c)
    rng = np.random.default_rng(6)
    looped, blocks = [], []
    for _ in range(8):
        first, then = rng.permutation(32), rng.permutation(40)
        machine = venn.LeastSquaresSVM(venn.RBF(0.3), 10, range(c))
        model = InductiveVennAbers(machine, schedule=PrefixRestart(32, last=32))
        model.learn_many(X[first], y[first])
        replayed = model.replay_many(seen[then], labels_[then])
        assert len(replayed) == 40
        blocks.append(model.predict_many(asked).pairs)
        looped.append([model.predict_one(x).pairs for x in asked])
    assert all(np.array_equal(pairs, blocks[0]) for pairs in [*blocks, *looped])
    images = model.predict_many(np.vstack([X, X * [-1, 1], X * [1, -1], -X])).pairs.reshape(4, 32, c, 2)
    assert all(np.array_equal(image, images[0]) for image in images)


@pytest.mark.parametrize("name", SCHEDULES)
def test_shuffling_within_what_trains_and_what_calibrates(name):
    schedule, split = SCHEDULES[name]
    places_do_not_count(lambda: InductiveVennAbers(lssvm(3), schedule=schedule), split, lambda many: many.pairs)


def test_scores_are_compared_on_the_grid():
    model = InductiveVennAbers(AsGiven())
    model.learn_many([[0.0, 0.0], [0.0, 1e-9], [0.0, 2e-6], [0.0, -2e-6]], [0, 1, 1, 0])
    tied, above, below = (model.predict_one([0.0, s]).pairs[1] for s in (5e-10, 2e-6, -2e-6))
    assert np.allclose(tied, [1 / 3, 2 / 3])
    assert np.allclose(above, [1 / 2, 1])
    assert np.allclose(below, [0, 1 / 2])


def test_scores_too_large_for_the_grid_keep_their_order():
    model = InductiveVennAbers(AsGiven())
    model.replay_many([[1e305, -1e305], [-1.7e308, 1.7e308], [0.0, 0.0]], [0, 1, 0])
    assert np.array_equal(model.predict_one([0.0, 1e305]).pairs[1], [1 / 2, 1])
    assert np.array_equal(model.predict_one([0.0, 1.0]).pairs[1], [0, 1])


MAKERS = {
    **{name: lambda s=schedule: InductiveVennAbers(lssvm(3), schedule=s) for name, (schedule, _) in SCHEDULES.items()},
    "frozen": lambda: InductiveVennAbers(frozen(3)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_blocks_say_what_the_loop_says(name):
    blocks_are_the_loop(MAKERS[name], assert_same)
    many = MAKERS[name]()
    many.replay_many(np.eye(3)[[0, 1, 2] * 5, :2], [0, 1, 2] * 5)
    block = many.predict_many(np.eye(2))
    assert repr(block) == "ManyClassIntervals(2 objects, classes [0, 1, 2])"


def assert_same(block, i, prediction):
    assert np.array_equal(block.pairs[i], prediction.pairs)
    assert np.allclose(block.proba[i], prediction.proba, atol=1e-15)
    assert (block.labels[i], block.index[i]) == (prediction.label, prediction.index)
    assert (block.lower[i], block.upper[i]) == (prediction.lower, prediction.upper)
    assert block.width[i] == prediction.width
    assert block.guaranteed == prediction.guaranteed == "each class"


@pytest.mark.parametrize("name", SCHEDULES)
def test_departures_of_every_class_cancel_over_the_choice_of_the_last_example(name):
    """The pair of the true hypothesis: the mean of 1{y = k} minus it, over which example comes last, is 0."""
    rng = np.random.default_rng(2)
    schedule, split = SCHEDULES[name]
    n = 31
    X = objects("grid", rng, n + 1)
    y = labels("noise", rng, X, 3)
    D = []
    for i in [*split(n)[1], n]:
        order = np.arange(n + 1)
        order[[i, n]] = n, i
        model = InductiveVennAbers(Centroids(range(3)), schedule=schedule)
        model.learn_many(X[order][:n], y[order][:n])
        truth = np.arange(3) == y[i]
        pairs = model.predict_one(X[i]).pairs
        D.append(truth - np.where(truth, pairs[:, 1], pairs[:, 0]))
    assert abs(np.mean(D, axis=0)).max() < 1e-12


def test_before_the_first_training_it_says_nothing():
    prediction = InductiveVennAbers(lssvm(2)).predict_one([0.0])
    assert np.array_equal(prediction.pairs, [[0, 1], [0, 1]])
    assert (prediction.label, prediction.lower, prediction.upper) == (0, 0.0, 1.0)
    assert np.array_equal(ManyClassIntervals(np.zeros((1, 2, 2)), "ab").proba, [[0.5, 0.5]])


def test_what_it_refuses():
    with pytest.raises(ValueError, match="schedule must be one that trains the machine"):
        InductiveVennAbers(lssvm(2), schedule=NoTraining())
    model = InductiveVennAbers(frozen())
    with pytest.raises(ValueError, match="X must be finite"):
        model.replay_many([[0.0, 1.0], [np.nan, 0.0]], [0, 1])
    assert model.n == 0
    assert repr(model).startswith("InductiveVennAbers(FrozenScorer(LinearSVC(), classes=[0, 1]), schedule=NoTraining(")


def test_a_state_with_weights_below_0_is_refused():
    """The loop that pools by weights would leave its array."""
    reader = WeighedAbers((0, 1))
    reader.add(np.array([[-1.0, 1.0, 2.0]]), np.array([1]))
    state = reader.state
    state["examples"][0][:, 2] = -1.0
    with pytest.raises(ValueError, match="weights >= 0"):
        reader.restore(state)
