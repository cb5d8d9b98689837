"""Panels and forecasters asked about many objects: equal to the bit to one at a time; merged: equal to the whole."""

import numpy as np
import pandas as pd
import pytest
from centroids import NearestCentroid
from conftest import learned
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import venn
from venn.machines import Bank, MultiscaleRBF
from venn.online import Forecaster, Outlooks
from venn.predictors import ExpertMixture, LeaveOneOutScores
from venn.schedules import Prefix

CLASSES = ("a", "b", "c")
NAMES = ["p", "q"]


def stream(n, seed=0, c=3):
    """Overlapping classes on a grid: ties, duplicates, equal objects with different labels."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    X = np.round(2 * rng.normal(size=(n, 2)) + 2 * np.column_stack([codes, codes % 2])) / 2
    return X, [CLASSES[k] for k in codes]


def fitted(kind=LogisticRegression, table=False):
    X, y = stream(80, 9)
    return kind().fit(pd.DataFrame(X, columns=NAMES) if table else X, y)


def numbers(prediction):
    for name in ("probabilities", "pairs", "p_values", "proba"):
        if hasattr(prediction, name):
            return getattr(prediction, name)
    raise AssertionError(prediction)


def same_row_by_row(many, singly):
    """Whether what is said of many objects is what is said of each, to the last bit."""
    for i, said in enumerate(singly):
        assert said.keys() == many.keys()
        for name, one in said.items():
            of_many = many[name][i]
            assert type(of_many) is type(one)
            assert numbers(of_many).tobytes() == numbers(one).tobytes()
            assert (of_many.label, of_many.guaranteed) == (one.label, one.guaranteed)
    assert all(len(block) == len(singly) for block in many.values())


def own(n):
    return lambda: learned(Forecaster(CLASSES, transductive=40), *stream(n))


def on_a_scorer(kind, table=False):
    def make():
        model = Forecaster(scorer=fitted(kind, table))
        return learned(model, *stream(60))

    return make


def panel():
    machine, bank = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES), Bank(MultiscaleRBF(), CLASSES)
    abers = venn.TransductiveVennAbers(machine)
    platt = venn.ScoreCalibrator(machine, venn.maps.Platt(), LeaveOneOutScores())
    late = venn.InductiveVenn(machine.fresh(), schedule=Prefix(0.5, first=10))
    later = venn.InductiveVennAbers(machine.fresh(), schedule=Prefix(0.5, first=10))
    return learned(
        venn.Panel(
            counts=venn.TransductiveVenn(machine), abers=abers, mean=ExpertMixture([abers, platt]),
            sets=venn.Conformal(machine), member=venn.TransductiveVennAbers(bank.members[0]), late=late, later=later,
            mixed=ExpertMixture([late, later]), counted=ExpertMixture([venn.TransductiveVenn(machine), platt]),
        ),
        *stream(50),
    )  # fmt: skip


MODELS = {
    "nothing learned": lambda: Forecaster(CLASSES), "all examples count": own(30), "after the hand-over": own(60),
    "after the second training": own(90), "a linear scorer": on_a_scorer(LogisticRegression),
    "trees": on_a_scorer(lambda: HistGradientBoostingClassifier(max_iter=5)), "panel": panel,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_many_are_each_of_them_and_nothing_is_learned(name):
    model = MODELS[name]()
    X = np.vstack([stream(25, 1)[0], [[-0.0, 0.0], [50.0, -50.0]]])
    same_row_by_row(model.predict_many(X), [model.predict_one(x) for x in X])
    same_row_by_row(model.predict_many(X[::-1]), [model.predict_one(x) for x in X[::-1]])
    same_row_by_row(model.predict_many(X[:1]), [model.predict_one(X[0])])
    same_row_by_row(model.predict_many(X.tolist()), [model.predict_one(x) for x in X])
    assert all(len(block) == 0 for block in model.predict_many(np.empty((0, 2))).values())


@pytest.mark.parametrize("n", [30, 60])
def test_sparse_objects_too(n):
    X, y = stream(n)
    model = Forecaster(CLASSES, transductive=40)
    rows = csr_array(X)
    for i, label in enumerate(y):
        model.learn_one(rows[i : i + 1], label)
    same_row_by_row(model.predict_many(rows[:8]), [model.predict_one(rows[i : i + 1]) for i in range(8)])


def test_a_whole_table_where_the_scorer_was_fitted_to_one():
    X, _ = stream(20, 1)
    model = on_a_scorer(LogisticRegression, table=True)()
    same_row_by_row(model.predict_many(pd.DataFrame(X, columns=NAMES)), [model.predict_one(x) for x in X])
    with pytest.raises(ValueError, match="X must have the columns"):
        model.predict_many(pd.DataFrame(X, columns=["q", "p"]))
    with pytest.raises(TypeError, match="X must be an array"):
        own(30)().predict_many(pd.DataFrame(X, columns=NAMES))


def test_outlooks_say_all_in_arrays():
    X, _ = stream(12, 1)
    model = own(60)()
    outlooks, each = model.predict_many(X), [model.predict_one(x) for x in X]
    assert isinstance(outlooks, Outlooks)
    for name in ("proba", "intervals"):
        assert np.array_equal(getattr(outlooks, name), [getattr(one, name) for one in each])
    assert np.array_equal(outlooks.p_values, [one["sets"].p_values for one in each])
    assert outlooks.labels == outlooks.best == [one.label for one in each]
    assert outlooks.sets(0.2) == [one.set(0.2) for one in each]
    assert outlooks.classes == CLASSES
    assert outlooks.guaranteed == each[0].guaranteed
    assert repr(outlooks.one(3)) == repr(each[3])
    assert repr(outlooks) == "Outlooks(12 objects, classes ['a', 'b', 'c'])"


@pytest.mark.parametrize("name", ["all examples count", "a linear scorer"])
def test_bad_objects_are_refused(name):
    model = MODELS[name]()
    for X, says in (([1.0, 2.0], "two-dimensional"), ([[1.0]], "features"), ([[np.nan, 0.0]], "finite")):
        with pytest.raises(ValueError, match=says):
            model.predict_many(X)


def test_a_predictor_without_probabilities_is_named():
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    with pytest.raises(TypeError, match="must give probabilities, got PredictionSet"):
        venn.Panel(mean=ExpertMixture([venn.Conformal(machine)])).predict_many([[0.0, 1.0]])


@pytest.mark.parametrize("scorer", [None, fitted()])
def test_many_are_learned_as_each_in_turn(scorer):
    X, y = stream(60, 4)
    make = lambda: Forecaster(CLASSES, transductive=40, scorer=scorer)  # noqa: E731
    alone, many, replayed = make(), make(), make()
    said = []
    for x, label in zip(X, y, strict=True):
        said.append(alone.predict_one(x))
        alone.learn_one(x, label)
    same_row_by_row(replayed.replay_many(X, y), said)
    many.learn_many(X, y)
    assert many.n == replayed.n == 60
    for one in (many, replayed):
        same_row_by_row(one.predict_many(X[:5]), [alone.predict_one(x) for x in X[:5]])
        assert one.verdict() == alone.verdict()
    for wrong, message in ((["a"], "y must hold a label for each of 60 rows"), ([*y[:-1], "z"], "y must be one of")):
        with pytest.raises(ValueError, match=message):
            many.learn_many(X, wrong)
    assert many.n == 60


# Merging --------------------------------------------------------------------------------------------------------------


def test_parts_of_a_stream_merge_to_the_whole_to_the_last_bit():
    scorer = fitted()
    X, y = stream(120, 2)
    whole = learned(Forecaster(scorer=scorer), X, y)
    parts = [learned(Forecaster(scorer=scorer), X[i::3], y[i::3]) for i in range(3)]
    for order in ((0, 1, 2), (2, 0, 1)):
        first, second, third = (parts[i] for i in order)
        merged = first.merge(second).merge(third)
        assert (merged.n, merged.classes) == (120, whole.classes)
        for name in ("intervals", "sets"):  # the forecast's weights come from the order in each part
            same_row_by_row({name: merged.predict_many(X)[name]}, [{name: whole.predict_one(x)[name]} for x in X])
        assert abs(merged.predict_many(X).proba - whole.predict_many(X).proba).max() < 0.05
        assert merged["forecast"].predictors[0] is merged["intervals"]
    assert [part.n for part in parts] == [40] * 3
    assert merged.verdict().state == "too early to say"  # it watches anew
    merged.learn_one(X[0], y[0])  # goes on, and the parts do not
    assert merged.n == 121
    assert parts[0].n == 40


def test_panels_merge_by_name_and_share_what_they_shared():
    scorer = venn.FrozenScorer(fitted())

    def made(n, seed):
        abers = venn.InductiveVennAbers(scorer)
        mean = ExpertMixture([abers, venn.InductiveVenn(scorer)])
        return learned(venn.Panel(abers=abers, mean=mean), *stream(n, seed))

    one, other = made(20, 1), made(30, 2)
    merged = one.merge(other)
    assert merged["mean"].predictors[0] is merged["abers"]
    both = learned(made(20, 1), *stream(30, 2))
    X, _ = stream(10, 3)
    abers = {"abers": merged.predict_many(X)["abers"]}
    same_row_by_row(abers, [{"abers": both.predict_one(x)["abers"]} for x in X])


def scored(**chosen):
    return Forecaster(scorer=fitted(), **chosen)


REFUSED = {
    "no scorer": (own(5), own(5), ValueError, "must calibrate a given scorer, to be merged"),
    "another scorer": (
        scored, lambda: Forecaster(scorer=fitted(lambda: LogisticRegression(C=0.1))), ValueError,
        "other must have the scorer",
    ),
    "another level": (scored, lambda: scored(level=0.1), ValueError, "other must have the level 0.01"),
    "more predictors": (
        scored, lambda: scored(beside={"counts": venn.InductiveVenn(venn.FrozenScorer(fitted()))}), ValueError,
        "other must have the predictors forecast, intervals, sets, to be merged, got .* counts",
    ),
    "a bag beside": (
        *[lambda: scored(beside={"bag": venn.TransductiveVennAbers(NearestCentroid(CLASSES))})] * 2,
        ValueError, "bag must calibrate a given scorer",
    ),
    "no forecaster": (scored, lambda: venn.Panel(**dict(scored())), TypeError, "other must be a Forecaster"),
    "a number": (scored, lambda: 3, TypeError, "other must be a Forecaster"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_belong_together_is_not_merged(name):
    one, other, kind, says = REFUSED[name]
    with pytest.raises(kind, match=says):
        one().merge(other())
