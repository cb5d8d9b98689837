"""What the tests of inductive predictors share: schedules beside their definitions, cheap machines, taxonomies."""

import pickle

import numpy as np
from conftest import labels, objects
from naive import inductive as naive
from naive import venn as naive_venn
from sklearn.svm import LinearSVC

import venn
from venn.machines.frozen import FrozenScorer
from venn.schedules import FixedCalibration, FreshSplit, Prefix, PrefixRestart, RandomAssignment
from venn.taxonomies import ByScores


class OneCategory(ByScores):
    """All examples in one category."""

    pointwise = True

    def categories(self, scores):
        return np.zeros(len(scores), np.int64)


class AboveMedian(ByScores):
    """Whether the first score is above the median of all."""

    def categories(self, scores):
        return (scores[:, 0] > np.median(scores[:, 0]) + 1e-7).astype(np.int64)


class Centroids:
    """A cheap machine: the score of a class is minus the squared distance to the mean of its examples."""

    def __init__(self, classes):
        self.classes = tuple(classes)
        self.n = 0
        self.sums, self.sizes = {}, np.zeros(len(self.classes))

    def fresh(self):
        return Centroids(self.classes)

    def check(self, x, y):
        pass

    def learn_one(self, x, y):
        k = self.classes.index(y)
        self.sums[k] = self.sums.get(k, 0) + x
        self.sizes[k] += 1
        self.n += 1

    def score_many(self, X):
        scores = np.full((len(X), len(self.classes)), -1e3)
        for k, total in self.sums.items():
            scores[:, k] = -((X - total / self.sizes[k]) ** 2).sum(axis=1)
        return scores

    def scores(self, x):
        return self.score_many(np.asarray(x)[None])[0]


class Failing(Centroids):
    """Cannot learn the example at 13."""

    def fresh(self):
        return Failing(self.classes)

    def learn_one(self, x, y):
        if x[0] == 13:
            raise venn.machines.NotConverged("13")
        super().learn_one(x, y)


class AsGiven:
    """A scorer that is fixed: its scores are the first numbers of an object, of which the others may be groups."""

    def __init__(self, c=2):
        self.classes = tuple(range(c))

    def scores(self, x):
        return np.array(x[: len(self.classes)], float)


class ManyAsGiven(AsGiven):
    """The same, of many objects at once as well."""

    def score_many(self, X):
        return np.asarray(X, float)[:, : len(self.classes)]


def centroids(X, y, Q, c):
    """What `Centroids` scores, by definition."""
    scores = np.full((len(Q), c), -1e3)
    for k in set(y):
        scores[:, k] = -((Q - X[np.array(y) == k].mean(axis=0)) ** 2).sum(axis=1)
    return scores


# Schedules beside their definitions, with parameters that make several trainings in some 50 examples.
SCHEDULES = {
    "prefix-restart": (PrefixRestart(first=5), lambda n: naive.prefix_restart(n, 5)),
    "slow growth": (PrefixRestart(3, growth=1.3, last=30), lambda n: naive.prefix_restart(n, 3, 1.3, 30)),
    "prefix": (Prefix(0.7, first=4), lambda n: naive.prefix(n, 0.7, 4)),
    "prefix to 16": (Prefix(0.2, first=4, last=16), lambda n: naive.prefix(n, 0.2, 4, 16)),
    "fresh split": (FreshSplit(0.3, seed=3), lambda n: naive.fresh_split(n, 0.3, 3)),
    "assignment": (RandomAssignment(0.4, seed=5, first=6), lambda n: naive.random_assignment(n, 0.4, 5, 6)),
    "every step": (RandomAssignment(0.3, 1, 1, 1.01), lambda n: naive.random_assignment(n, 0.3, 1, 1, 1.01)),
    "fixed": (FixedCalibration(size=12, train=9), lambda n: naive.fixed_calibration(n, 12, 9)),
}
TAXONOMIES = {
    "argmax": (None, naive_venn.argmax),
    "one category": (OneCategory(), naive.one_category),
    "median": (AboveMedian(), naive.above_median),
}


def mirrored(c, seed=0):
    """Return 32 training examples alike on both sides of both axes, 40 for calibration, 16 objects on the same grid.

    Mirror images have equal scores; what a solver leaves in their last bits depends on the order of training.
    """
    rng = np.random.default_rng(seed)
    X = np.array([[x, z] for x in (-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5) for z in (-1.5, -0.5, 0.5, 1.5)])
    corner = rng.permutation(np.arange(8) % c).reshape(4, 2)
    y = corner[(abs(X[:, 0]) - 0.5).astype(int), (abs(X[:, 1]) - 0.5).astype(int)]
    chosen, asked = rng.integers(0, 32, 40), rng.permutation(32)[:16]
    noisy = np.where(rng.random(40) < 0.3, rng.integers(0, c, 40), y[chosen])
    return X, y, X[chosen], noisy, X[asked]


def shuffled_within(split, rng):
    """Return an order of the examples that permutes those that train, and those that calibrate."""
    train, calibration = split
    order = np.arange(max([*train, *calibration]) + 1)
    for part in (train, calibration):
        order[part] = rng.permutation(part)
    return order


def lssvm(c):
    return venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, range(c))


def frozen(c=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    return FrozenScorer(LinearSVC(dual="auto").fit(X, np.digitize(X[:, 0], np.linspace(-1, 1, c - 1))), range(c))


def places_do_not_count(make, split, said):
    """Assert that examples may change places within what trains and within what calibrates."""
    rng = np.random.default_rng(7)
    X = objects("grid", rng, 45) - 1.0
    y = labels("signal", rng, X, 3)
    answers = []
    for i in range(5):
        order = shuffled_within(split(45), rng) if i else np.arange(45)
        model = make()
        model.learn_many(X[order], y[order])
        answers.append(said(model.predict_many(X)))
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


def blocks_are_the_loop(make, assert_same):
    """Assert it to the last bit, trainings inside blocks included, going on from a pickle in the middle."""
    rng = np.random.default_rng(12)
    X = objects("grid", rng, 50) + rng.integers(0, 2, size=(50, 1)) / 7
    y = labels("noise", rng, X, 3).tolist()
    one, many, learner = (make() for _ in range(3))
    start = 0
    for size in (0, 1, 3, 13, 1, 32):
        rows = slice(start, start + size)
        block = many.replay_many(X[rows], y[rows])
        learner.learn_many(X[rows], np.array(y[rows]))
        assert len(block) == size
        for i in range(size):
            assert_same(block, i, one.predict_one(X[start + i]))
            one.learn_one(X[start + i], y[start + i])
        start += size
        many = pickle.loads(pickle.dumps(many))
        new = X[start % 3 :: 3]
        asked, again = many.predict_many(new), learner.predict_many(new.tolist())
        for i, x in enumerate(new):
            prediction = one.predict_one(x)
            assert_same(asked, i, prediction)
            assert_same(again, i, prediction)
    assert many.n == one.n == learner.n == 50
