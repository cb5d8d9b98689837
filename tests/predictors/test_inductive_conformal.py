"""Inductive conformal predictors against the definition after every step; blocks, state, order, refusals."""

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import labels, learned, objects, refused
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
from naive import inductive as naive_splits
from naive import inductive_conformal as naive
from naive.coins import coin, coins
from scipy import stats
from scipy.sparse import csr_array
from test_conformal import FromMedian

import venn
from venn._compiled.ranks import WIDTH, below_and_up_to, insert_many, no_values, with_room
from venn.nonconformity import Margin, ScoreMeasure
from venn.prediction import PredictionSet
from venn.predictors.blocks import ManyPredictionSets
from venn.predictors.inductive_conformal import InductiveConformal
from venn.schedules import FixedCalibration, NoTraining, PrefixRestart
from venn.shifts import PriorShift

# The multiset ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "ties", "one", "ascending", "descending", "infinite"])
def test_order_statistics_are_those_of_a_sorted_array(kind):
    rng = np.random.default_rng(len(kind))
    n = 9 * WIDTH
    values = {
        "random": np.rint(1e6 * rng.normal(size=n)), "ties": rng.integers(-3, 4, n).astype(float), "one": np.ones(n),
        "ascending": np.arange(n) / 2, "descending": -np.arange(n) / 2,
        "infinite": rng.choice([-np.inf, -1.0, 0.0, 2.0, np.inf], n),
    }[kind]  # fmt: skip
    buckets, known = no_values(), np.empty(0)
    for size in [1] * 5 + [3, 40, WIDTH - 1, WIDTH, WIDTH + 1] * 20:
        asked = np.concatenate([rng.choice(values, 12), [-np.inf, np.inf, -0.5, 0.5]])
        for value in asked:
            below, up_to = np.searchsorted(known, value), np.searchsorted(known, value, "right")
            assert below_and_up_to(buckets, value) == (below, up_to)
        new, values = values[:size], values[size:]
        if len(values) < 2:
            break
        buckets = with_room(buckets, len(new))
        insert_many(buckets, new)
        known = np.sort(np.concatenate([known, new]))
    assert buckets.totals[0] > 8
    assert sum(array.nbytes for array in buckets) < 8 * (5 * len(known) + 10 * WIDTH)


# Against the definition ----------------------------------------------------------------------------------------------


def assert_is_the_definition(model, X, y, split, c, score, measure, seed):
    for n in range(len(X)):
        ranks = naive.ranks(X, y, X[n], split(n), c, score, measure, model.label_conditional)
        expected = naive.p_values(ranks, coin(seed, n, X[n]) if model.smoothed else 1)
        prediction = model.predict_one(X[n])
        assert prediction.p_values.tolist() == pytest.approx(expected, abs=1e-12), f"step {n}"
        assert prediction.smoothed == model.smoothed
        model.learn_one(X[n], int(y[n]))
    assert model.n == len(X)


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("kind", "sequence"), [("grid", "signal"), ("repeats", "late"), ("normal", "noise")])
def test_every_step_is_the_definition(name, kind, sequence, label_conditional):
    rng = np.random.default_rng(len(name) + len(kind))
    schedule, split = SCHEDULES[name]
    X = objects(kind, rng, 40)
    y = labels(sequence, rng, X, 3)
    model = InductiveConformal(
        Centroids(range(3)), Margin(), schedule=schedule, label_conditional=label_conditional,
        smoothed=kind != "normal", seed=7,
    )  # fmt: skip
    assert_is_the_definition(model, X, y, split, 3, centroids, naive.margins, 7)


def test_least_squares_machines():
    rng = np.random.default_rng(1)
    X = objects("grid", rng, 36)
    y = labels("signal", rng, X, 3)
    for name in ("prefix-restart", "assignment"):
        schedule, split = SCHEDULES[name]
        model = InductiveConformal(lssvm(3), schedule=schedule, seed=3)
        assert_is_the_definition(model, X, y, split, 3, naive_splits.least_squares(0.5, 2.0), naive.margins, 3)


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("schedule", [NoTraining(), FixedCalibration(15)])
def test_a_frozen_scorer(schedule, label_conditional):
    rng = np.random.default_rng(3)
    X = objects("grid", rng, 60)
    y = labels("noise", rng, X, 3)
    size = getattr(schedule, "size", 60)
    scorer = frozen(3)
    model = InductiveConformal(scorer, None, schedule=schedule, label_conditional=label_conditional, seed=5)
    assert_is_the_definition(
        model, X, y, lambda n: ([], list(range(min(n, size)))), 3, lambda X, y, Q, c: scorer.score_many(Q),
        naive.margins, 5,
    )  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_with_nothing_known_every_p_value_is_the_random_number(name):
    model = InductiveConformal(lssvm(3), schedule=SCHEDULES[name][0], seed=6)
    assert model.predict_one([0.0, 1.0]).p_values.tolist() == [coin(6, 0, [0.0, 1.0])] * 3
    assert model.predict_many(np.eye(2)).p_values.tolist() == [[coin(6, 0, x)] * 3 for x in np.eye(2)]
    plain = InductiveConformal(lssvm(3), schedule=SCHEDULES[name][0], smoothed=False)
    assert plain.predict_one([0.0, 1.0]).p_values.tolist() == [1.0] * 3
    block = InductiveConformal(lssvm(3), schedule=PrefixRestart(9), seed=6).replay_many(np.ones((9, 2)), [0] * 9)
    assert np.array_equal(block.p_values, np.tile(coins(6, 0, np.ones((9, 2)))[:, None], 3))


class Alike(AsGiven):
    """A scorer that finds all objects alike, so that all nonconformity ties."""

    def score_many(self, X):
        return np.zeros((len(X), 2))

    def scores(self, x):
        return np.zeros(2)


def test_the_ties_of_a_call_are_broken_for_each_object():
    """With one number for all, p-values of a call would all be equal, and its sets all err or none."""
    model = InductiveConformal(Alike(), seed=3)
    model.learn_many(np.zeros((50, 2)), [0, 1] * 25)
    X = np.column_stack([np.arange(2000.0), np.zeros(2000)])
    p = model.predict_many(X).p_values
    assert np.array_equal(p[:, 0], p[:, 1])  # one number for all labels
    assert len(np.unique(p[:, 0])) == 2000
    assert stats.kstest(p[:, 0], "uniform").pvalue > 1e-3
    errors = stats.binom(2000, 0.1)
    assert errors.ppf(5e-4) <= (p[:, 0] <= 0.1).sum() <= errors.ppf(1 - 5e-4)
    order = np.random.default_rng(0).permutation(2000)
    assert np.array_equal(model.predict_many(X[order]).p_values, p[order])  # nothing hangs on the place in a call
    assert all(np.array_equal(model.predict_one(X[i]).p_values, p[i]) for i in range(0, 2000, 40))
    assert np.array_equal(model.predict_many(X).p_values, p)
    model.learn_one([0.0, 0.0], 0)
    later = model.predict_many(X).p_values[:, 0]
    assert abs(stats.spearmanr(p[:, 0], later).statistic) < 4 / np.sqrt(2000)


def test_equal_objects_share_the_number_of_a_step_however_they_are_given():
    model = InductiveConformal(Alike(), seed=4)
    model.learn_many(np.zeros((9, 2)), [0] * 9)
    same = [[1, 0], [1.0, -0.0], (np.float32(1), False)]
    p = [model.predict_one(x).p_values.tolist() for x in same]
    p += model.predict_many(np.array([[1.0, -0.0], [1.0, 0.0]])).p_values.tolist()
    p += model.predict_many(csr_array([[1.0, 0.0]])).p_values.tolist()
    p += [model.predict_one(csr_array([[1.0, 0.0]])).p_values.tolist()]
    assert p == [p[0]] * 7
    assert p[0] == pytest.approx([coin(4, 9, [1.0, 0.0])] * 2, abs=1e-15)
    assert model.predict_one([0.0, 1.0]).p_values.tolist() != p[0]


def test_a_class_that_has_not_come_is_compared_with_nothing():
    """Label-conditionally its p-value is the random number, not an error or a dropped column."""
    model = InductiveConformal(frozen(3), label_conditional=True, seed=8)
    rng = np.random.default_rng(4)
    model.learn_many(rng.normal(size=(20, 2)), rng.integers(0, 2, 20))
    assert model.predict_one([0.0, 0.0]).p_values[2] == coin(8, 20, [0.0, 0.0])


def test_nonconformity_is_compared_on_the_grid():
    model = InductiveConformal(AsGiven(), smoothed=False)
    model.learn_many([[0.0, 0.0], [1e-9, 0.0], [2e-6, 0.0], [-2e-6, 0.0]], [0] * 4)
    assert model.predict_one([0.0, 5e-10]).p_values[0] == 4 / 5  # two equal, one stranger, itself
    assert model.predict_one([2e-6, 0.0]).p_values[0] == 1
    assert model.predict_one([-4e-6, 0.0]).p_values[0] == 1 / 5


def test_scores_too_large_for_the_grid_are_infinite():
    model = InductiveConformal(AsGiven(), smoothed=False)
    model.replay_many([[1e305, 0.0], [-1.7e308, 1.7e308], [0.0, 0.0]], [0, 0, 0])
    assert model.predict_one([-1e305, 0.0]).p_values.tolist() == [1 / 2, 1]
    assert model.predict_one([1.0, 0.0]).p_values.tolist() == [3 / 4, 1 / 2]


# Order ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("c", [2, 3])
def test_mirror_images_are_ties_whatever_the_order(c, label_conditional):
    X, y, seen, labels_, asked = mirrored(c)
    rng = np.random.default_rng(6)
    answers = []
    for _ in range(8):
        first, then = rng.permutation(32), rng.permutation(40)
        machine = venn.LeastSquaresSVM(venn.RBF(0.3), 10, range(c))
        model = InductiveConformal(
            machine, None, schedule=PrefixRestart(32, last=32), label_conditional=label_conditional
        )
        model.learn_many(np.concatenate([X[first], seen[then]]), [*y[first], *labels_[then]])
        answers.append(model.predict_many(asked).p_values)
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    assert len(np.unique(answers[0], axis=0)) > 1


@pytest.mark.parametrize("name", SCHEDULES)
def test_shuffling_within_what_trains_and_what_calibrates(name):
    schedule, split = SCHEDULES[name]
    places_do_not_count(
        lambda: InductiveConformal(lssvm(3), schedule=schedule, smoothed=False), split, lambda many: many.p_values
    )


# Blocks and state -----------------------------------------------------------------------------------------------------


def makers():
    for name, (schedule, _) in SCHEDULES.items():
        yield name, lambda s=schedule: InductiveConformal(lssvm(3), schedule=s, seed=2)
    yield (
        "label-conditional",
        lambda: InductiveConformal(lssvm(3), None, schedule=PrefixRestart(6), label_conditional=True, seed=2),
    )
    yield "plain", lambda: InductiveConformal(lssvm(3), None, schedule=PrefixRestart(6), smoothed=False)
    yield ("centroids", lambda: InductiveConformal(NearestCentroid(range(3)), schedule=PrefixRestart(6)))
    yield "frozen", lambda: InductiveConformal(frozen(3))
    yield (
        "frozen, fixed",
        lambda: InductiveConformal(frozen(3), None, schedule=FixedCalibration(7), label_conditional=True),
    )


MAKERS = dict(makers())


@pytest.mark.parametrize("name", MAKERS)
def test_blocks_say_what_the_loop_says(name):
    blocks_are_the_loop(MAKERS[name], assert_same)


def assert_same(block, i, prediction):
    assert np.array_equal(block.p_values[i], prediction.p_values)
    assert (block.labels[i], block.index[i]) == (prediction.label, prediction.index)
    assert block.credibility[i] == prediction.credibility
    assert block.confidence[i] == prediction.confidence
    for epsilon in (0, 0.05, 0.5, 1):
        assert block.sets(epsilon)[i] == prediction.set(epsilon)
    assert block[i].guaranteed == block.guaranteed == prediction.guaranteed
    assert block[i].smoothed == block.smoothed == prediction.smoothed


def test_blocks_larger_than_a_chunk_and_many_buckets():
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(3000, 2)), rng.integers(0, 3, 3000)
    whole, parts = (InductiveConformal(frozen(3), label_conditional=True) for _ in range(2))
    together = whole.replay_many(X, y).p_values
    assert np.array_equal(together, np.vstack([parts.replay_many(X[i : i + 37], y[i : i + 37]).p_values
                                               for i in range(0, 3000, 37)]))  # fmt: skip


def test_a_block_is_a_frozen_value():
    model = InductiveConformal(frozen())
    block = model.replay_many([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    before = block.p_values.copy()
    model.learn_many([[0.0, 1.0]] * 5, [1] * 5)
    assert np.array_equal(block.p_values, before)
    with pytest.raises(ValueError, match="read-only"):
        block.p_values[0] = 1
    with pytest.raises(IndexError):
        block[2]
    with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\], got nan"):
        block.sets(float("nan"))
    assert isinstance(block[0], PredictionSet)
    assert repr(block) == "ManyPredictionSets(2 objects, classes [0, 1])"
    assert block.guaranteed == "error rate"
    assert InductiveConformal(frozen(), smoothed=False).predict_many([[0.0, 1.0]]).guaranteed == "error bound"
    assert ManyPredictionSets(np.empty((0, 2)), "ab").sets(0.1) == []


# Refusals ---------------------------------------------------------------------------------------------------------


class Odd(ScoreMeasure):
    """Gives what it is told to."""

    pointwise = True

    def __init__(self, answer):
        self.answer = answer

    def values(self, scores, codes):
        return np.repeat(self.answer, len(codes), axis=0) if np.any(scores) else np.zeros(len(codes))


test_parts_that_will_not_do = refused(None, [
    (lambda: InductiveConformal(frozen(), FromMedian()), ValueError, "measure must be a pointwise function"),
    (lambda: InductiveConformal(lssvm(2), schedule=NoTraining()), ValueError, "schedule must be one that trains"),
    (lambda: InductiveConformal(learned(lssvm(2), [[0.0]], [0])), ValueError, "machine must have learned nothing"),
])  # fmt: skip


@pytest.mark.parametrize("answer", [[np.nan], [[1.0]]])
def test_a_measure_that_gives_no_numbers_says_so(answer):
    model = InductiveConformal(AsGiven(), Odd(answer))
    for ask in (lambda: model.predict_one([1.0, 0.0]), lambda: model.learn_one([1.0, 0.0], 0)):
        with pytest.raises(ValueError, match="values must"):
            ask()
    assert model.n == 0
    model.learn_one([0.0, 0.0], 0)
    assert model.predict_one([0.0, 0.0]).p_values[0] == coin(0, 1, [0.0, 0.0])


def test_a_measure_that_scores_of_zero_do_not_suit_is_none_the_worse():
    """Such as a ratio of logarithms of probabilities: no warning, no refusal, before such scores come."""

    class Surprise(ScoreMeasure):
        pointwise = True

        def values(self, scores, codes):
            return np.log(scores[np.arange(len(codes)), codes]) / np.log(scores).max(axis=1)

    model = InductiveConformal(AsGiven(), Surprise())
    model.learn_many([[0.25, 0.75], [0.5, 0.5]], [0, 1])
    assert model.predict_one([0.9, 0.1]).label == 0


def test_before_the_first_training_p_values_by_the_priors_are_the_coin():
    """There is nothing to compare with; a class that cannot come has 0."""
    X = np.random.default_rng(18).normal(size=(4, 2))
    shift = PriorShift((0.5, 0.3, 0.2), (0.25, 0.0, 0.75))
    model = InductiveConformal(Centroids((0, 1, 2)), schedule=FixedCalibration(20, 5), shift=shift, seed=3)
    expected = [[coin(3, 0, x), 0.0, coin(3, 0, x)] for x in X]
    assert model.predict_many(X).p_values.tolist() == expected
    assert [model.predict_one(x).p_values.tolist() for x in X] == expected


def test_a_large_block_by_the_priors_is_as_one_by_one():
    """Each class has a multiset of its own, which must have room for its examples of the whole block."""
    rng = np.random.default_rng(6)
    n = 8 * WIDTH
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 10, n) // 9  # one of ten is of class 1
    shift = PriorShift((0.5, 0.5), (0.9, 0.1))
    whole, one_by_one = (InductiveConformal(AsGiven(), schedule=NoTraining(), shift=shift) for _ in range(2))
    block = whole.replay_many(X, y.tolist())
    for i in range(n):
        if i % 16 == 0:
            assert np.array_equal(one_by_one.predict_one(X[i]).p_values, block[i].p_values)
        one_by_one.learn_one(X[i], int(y[i]))
    assert np.array_equal(one_by_one.predict_one(X[0]).p_values, whole.predict_one(X[0]).p_values)
