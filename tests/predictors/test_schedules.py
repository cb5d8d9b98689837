"""Schedules as values, cross Venn, and what inductive predictors refuse."""

import pickle

import numpy as np
import pytest
from conftest import labels, learned, objects, public
from inductive_cases import Failing, frozen, lssvm
from naive import inductive as naive
from sklearn.svm import LinearSVC

import venn
from venn.predictors.inductive import CrossVenn, InductiveVenn
from venn.schedules import FixedCalibration, NoTraining, PrefixRestart, RandomAssignment
from venn.taxonomies import ByScores, Grouped, Threshold

# Cross Venn ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folds", [2, 5])
def test_cross_venn_is_the_definition(folds):
    rng = np.random.default_rng(15)
    N, c = 40, 3
    X = objects("grid", rng, N)
    y = labels("signal", rng, X, c).tolist()
    model = CrossVenn(lssvm(c), None, folds, seed=2, first=6)
    score = naive.least_squares(0.5, 2.0)
    for n in range(N):
        splits = [naive.fold(n, k, folds, 2, 6) for k in range(folds)]
        expected = naive.cross(X, np.array(y), X[n], splits, c, score)
        assert np.allclose(model.predict_one(X[n]).probabilities, expected, atol=1e-12)
        model.learn_one(X[n], y[n])
    assert model.n == N
    again = eval(repr(model), public())
    assert repr(again) == repr(model)


def test_cross_venn_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="schedule must be one without training"):
        CrossVenn(frozen())
    with pytest.raises(ValueError, match="classes must be two for ScoreBins"):
        CrossVenn(lssvm(3), venn.taxonomies.ScoreBins())
    with pytest.raises(TypeError, match="positional"):
        CrossVenn(lssvm(2), venn.Argmax(), 5, 0)
    model = CrossVenn(lssvm(2))
    with pytest.raises(ValueError, match="y must be"):
        model.learn_one([0.0], 2)
    assert model.n == 0


def test_a_fold_that_fails_does_not_keep_the_others_from_learning():
    model = CrossVenn(Failing([0, 1]), folds=2, first=20)
    with pytest.raises(venn.machines.NotConverged):
        learned(model, np.arange(20.0)[:, None], [0, 1] * 10)
    assert {part.n for part in model.parts} == {20}
    assert model.predict_one([1.0]).upper < 1  # the fold that holds 13 out has its scorer


# Bad input -----------------------------------------------------------------------------------------------------------


def state(model):
    """All of it but the scores remembered of the last object, which are the same whenever asked for."""
    return pickle.dumps({name: value for name, value in vars(model).items() if name != "_asked"})


def test_a_bad_block_leaves_no_trace():
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    model = InductiveVenn(lssvm(2), schedule=PrefixRestart(3))
    model.learn_many(X[:2], y[:2])
    before = state(model)
    bad = [
        ([[0.0, 1.0], [np.nan, 0.0]], y[:2], "X must be finite, got nan at row 1, feature 0"),
        ([[0.0], [1.0]], y[:2], "X must have 2 features"), (X[0], y[:2], "X must be two-dimensional"),
        (X[:2], [0, 2], "y must be one of the classes"), (X[:2], [0, [1]], "y must be one of the classes"),
        (X[:2], [0], "y must hold a label for each of 2 rows"), (X[:2], "01", "y must be a sequence of 2 labels"),
        (X[:2], {0: 1}, "y must be a sequence of 2 labels"), (X[:2], 1, "y must be a sequence of 2 labels"),
        ([["a", "b"]], [0], "X must be rows of numbers"), ([[0.0], [1.0, 2.0]], [0, 1], "X must be rows of numbers"),
        (np.ma.masked_array(X[:2]), y[:2], "X must have no masked values"),
        (X[:2, :0], y[:2], "X must be two-dimensional"),
    ]  # fmt: skip
    for objects_, labels_, message in bad:
        for method in (model.learn_many, model.replay_many):
            with pytest.raises((ValueError, TypeError), match=message):
                method(objects_, labels_)
    for x, label in (([0.0, np.nan], 0), ([0.0], 0), ([0.0, 1.0], 7), ("ab", 0), (None, 0)):
        for method in (model.learn_one, model.commit, model.prepare):
            with pytest.raises((ValueError, TypeError)):
                method(x, label)
    assert state(model) == before
    model.learn_many(X[2:], y[2:])
    assert model.scorer.n == 3


def test_an_object_without_finite_kernel_values_is_refused_before_there_is_a_scorer():
    machine = venn.OneVsAllSVM(venn.machines.Polynomial(3), 1.0, [0, 1])
    model = InductiveVenn(machine, schedule=PrefixRestart(2))
    with pytest.raises(ValueError, match="finite kernel values"):
        model.learn_one([1e150], 0)
    model.learn_many([[0.0], [1.0]], [0, 1])
    assert model.scorer.n == 2


class OnlyFor(ByScores):
    """One category, for so many classes."""

    def __init__(self, c):
        self.c = c

    def categories(self, scores):
        if scores.shape[1] != self.c:
            raise ValueError(f"{self.c} classes only")
        return np.zeros(len(scores), np.int64)


def test_every_taxonomy_on_scores_is_taken_for_the_classes_it_is_for():
    for kind in (
        venn.Argmax,
        venn.taxonomies.TopTwo,
        Threshold,
        venn.taxonomies.RunnerUp,
        venn.taxonomies.Gap,
        venn.taxonomies.MarginBins,
    ):
        for c in (2, 3):
            assert InductiveVenn(lssvm(c), kind()).taxonomy == CrossVenn(lssvm(c), kind()).taxonomy == kind()
    for taxonomy in (venn.taxonomies.TopScoreBins([0.0]), venn.taxonomies.AdaptiveMarginBins(), OnlyFor(3)):
        assert InductiveVenn(frozen(3), taxonomy).taxonomy is taxonomy
    assert InductiveVenn(frozen(2), venn.taxonomies.ScoreBins()).taxonomy == venn.taxonomies.ScoreBins()


def test_a_table_is_refused_by_a_machine_that_learns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    model = InductiveVenn(lssvm(2))
    for ask in (model.predict_many, lambda t: model.learn_many(t, [0, 1]), lambda t: model.replay_many(t, [0, 1])):
        with pytest.raises(TypeError, match="X must be an array"):
            ask(table)
    assert model.n == 0
    model.learn_many(table.to_numpy(), [0, 1])
    assert model.n == 2


def test_a_growth_without_bounds_trains_once():
    for growth in (1e308, 1e307):
        for schedule in (PrefixRestart(32, growth), RandomAssignment(first=32, growth=growth)):
            assert [schedule.next_training(n) for n in (0, 31)] == [32, 32]
            assert schedule.next_training(32) is None
    assert PrefixRestart(32, 1e300).next_training(32) >= 10**300
    model = InductiveVenn(lssvm(2), schedule=PrefixRestart(4, growth=1e308))
    model.learn_many(np.arange(20.0).reshape(10, 2), [0, 1] * 5)
    assert model.scorer.n == 4


def test_parts_that_do_not_fit():
    taught = learned(lssvm(2), [[0.0]], [0])
    for machine, schedule, message in (
        (taught, None, "machine must have learned nothing"),
        (None, None, "machine must be a machine or a FrozenScorer"),
        (venn.LeastSquaresSVM, None, "machine must be a machine or a FrozenScorer"),
        (LinearSVC(), None, "FrozenScorer"),
        (lssvm(2), NoTraining(), "schedule must be one that trains the machine"),
        (lssvm(2), FixedCalibration(5), "schedule must be one that trains the machine"),
        (frozen(), PrefixRestart(), "schedule must be one without training"),
        (frozen(), FixedCalibration(5, train=3), "schedule must be one without training"),
        (frozen(), PrefixRestart, "schedule must be a schedule object"),
        (frozen(), "prefix", "schedule must be a schedule object"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            InductiveVenn(machine, schedule=schedule)
    for taxonomy in ("argmax", venn.Argmax, venn.LeaveOneOut(venn.Argmax()), Grouped(0, venn.Argmax())):
        with pytest.raises(TypeError, match="taxonomy must be a function of the scores alone"):
            InductiveVenn(frozen(), taxonomy)
    for taxonomy, classes, message in (
        (venn.taxonomies.ScoreBins(), 3, "classes must be two for ScoreBins"),
        (OnlyFor(4), 3, "4 classes only"),
    ):
        with pytest.raises(ValueError, match=message):
            InductiveVenn(lssvm(classes), taxonomy, schedule=PrefixRestart(first=5))
        with pytest.raises(ValueError, match=message):
            InductiveVenn(frozen(classes), taxonomy)
