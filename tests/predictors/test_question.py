"""A panel makes one question of an object: it is cleaned once for all of ours, and a user's own predictor gets it."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import venn
from venn.description import same_content
from venn.machines import objects
from venn.machines.store import Storing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).round(1)
Y = ["yes" if x[0] > 0 else "no" for x in X]
FITTED = LogisticRegression().fit(X[:20], Y[:20])
KINDS = {"array": lambda x: x, "whole numbers": lambda x: (10 * x).astype(int), "list": lambda x: x.tolist()}


class Own(venn.predictors.Predictor):
    """Keeps what it gets."""

    classes = ("no", "yes")

    def __init__(self):
        self.got = []

    def predict_one(self, x):
        self.got.append(x)
        return venn.Forecast(np.array([0.5, 0.5]), self.classes)

    def prepare(self, x, y):
        self.got.append(x)

    def commit(self, x, y, prepared=None):
        self.got.append(x)


class Shifted(venn.InductiveVennAbers):
    """One of ours, which takes objects in its own way."""

    def predict_one(self, x):
        return super().predict_one(np.asarray(x) + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_cleaned_once_in_a_step(kind, monkeypatch):
    model = venn.Forecaster(scorer=FITTED)
    cleaned, clean = [], objects.clean_object
    monkeypatch.setattr(objects, "clean_object", lambda *given: cleaned.append(1) or clean(*given))
    for x, y in zip(map(KINDS[kind], X[20:]), Y[20:], strict=True):
        model.predict_one(x)
        model.learn_one(x, y)
    assert len(cleaned) == len(X) - 20


def test_a_users_own_gets_the_object_and_one_of_ours_that_is_changed_too():
    own, scorer = Own(), venn.FrozenScorer(FITTED)
    panel = venn.Panel(own=own, shifted=Shifted(scorer), sets=venn.InductiveConformal(scorer))
    alone = Shifted(scorer)
    for x, y in zip(X.tolist(), Y, strict=True):
        assert same_content(panel.predict_one(x)["shifted"], alone.predict_one(x))
        panel.learn_one(x, y)
        alone.learn_one(x, y)
        assert all(got is x for got in own.got[-3:])
    assert len(own.got) == 3 * len(X)


def test_a_row_that_is_filled_anew_is_another_question():
    """Some loops have one array for all objects, and labels come late."""
    beside = Own()
    model, twin = venn.Forecaster(scorer=FITTED, beside={"own": beside}), venn.Forecaster(scorer=FITTED)
    row = np.empty(2)
    for k in range(20, 58, 2):
        for i in (k, k + 1, k):
            row[:] = X[i]
            said, wanted = model.predict_one(row), twin.predict_one(X[i])
            assert all(same_content(said[name], wanted[name]) for name in wanted)
        row[:] = X[k + 1]
        copied = X[k].copy()
        for one in (model, twin):
            one.learn_one(copied, Y[k])
        assert beside.got[-1] is copied
    assert same_content(model.monitors["sets"].state, twin.monitors["sets"].state)


class Unkept(list):
    """A row that no pickle takes."""

    def __reduce_ex__(self, protocol):
        raise TypeError("not to be copied")


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_keeps_no_question(how):
    model = venn.Forecaster(scorer=FITTED)
    model.predict_one(Unkept(X[20]))
    twin = how(model)
    for one in (model, twin):
        one.learn_one(Unkept(X[20]), Y[20])
    assert all(same_content(said, twin.predict_one(X[21])[name]) for name, said in model.predict_one(X[21]).items())


def test_each_refuses_what_it_cannot_take():
    """Missing numbers are for one of them only: the row that this one took is not the other's."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    takes = venn.FrozenScorer(HistGradientBoostingClassifier(max_iter=2).fit(X, Y))
    panel = venn.Panel(a=venn.InductiveVennAbers(takes), b=venn.InductiveVennAbers(venn.FrozenScorer(FITTED)))
    for call in (panel.predict_one, lambda x: panel.learn_one(x, "no")):
        with pytest.raises(ValueError, match="x must be finite, got nan at feature 1: put a fixed number"):
            call([0.5, np.nan])
        with pytest.raises(ValueError, match="2 features"):
            call([0.5])
        with pytest.raises(TypeError, match="x must be a sequence of numbers, got None"):
            call(None)
    assert [one.n for one in panel.values()] == [0, 0]


# A machine's own question -------------------------------------------------------------------------------------------


def panel():
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=("no", "yes"))
    return venn.Panel(abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine))


@pytest.mark.parametrize(
    ("make", "asking", "learning"), [(panel, 1, 1), (lambda: venn.Forecaster(("no", "yes")), 1, 0)]
)
def test_a_machine_cleans_the_object_of_a_question_once(make, asking, learning, monkeypatch):
    model, cleaned = make(), []
    for x, y in zip(X[:30], Y[:30], strict=True):
        model.learn_one(x, y)
    own = Storing._kept  # noqa: SLF001
    monkeypatch.setattr(Storing, "_kept", lambda self, x: cleaned.append(x) or own(self, x))
    for x, y in zip(X[30:40], Y[30:40], strict=True):
        cleaned.clear()
        model.predict_one(x)
        assert len(cleaned) == asking
        cleaned.clear()
        model.learn_one(x, y)
        assert len(cleaned) == learning


def test_what_was_noted_before_the_scale_was_fixed_is_cleaned_again():
    def on_scale():
        machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=("no", "yes"), scale=venn.machines.Scale(first=5))
        model = venn.Panel(abers=venn.TransductiveVennAbers(machine))
        for x, y in zip(X[:4], Y[:4], strict=True):
            model.learn_one(100 * x, y)
        return model

    early, late = on_scale(), on_scale()
    prepared = early.prepare(100 * X[5], Y[5])
    for model in (early, late):
        model.learn_one(100 * X[4], Y[4])
    early.learn_one(100 * X[5], Y[5], prepared)
    late.learn_one(100 * X[5], Y[5])
    for model in (early, late):
        for x, y in zip(X[6:12], Y[6:12], strict=True):
            model.learn_one(100 * x, y)
    one, other = (model["abers"].machine.scores(100 * X[5]).tolist() for model in (early, late))
    assert one == other


def test_what_a_user_wrote_in_a_machine_gets_the_object_and_says_the_same():
    class Solver(venn.LeastSquaresSVM):
        def hypotheses(self, x, weight=1.0):
            assert isinstance(x, np.ndarray)
            return super().hypotheses(x, weight)

    ours = panel()
    machine = Solver(venn.RBF(0.5), C=10, classes=("no", "yes"))
    theirs = venn.Panel(abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine))
    for x, y in zip(X[:40], Y[:40], strict=True):
        one, other = ours.predict_one(x), theirs.predict_one(x)
        assert one["abers"].intervals.tolist() == other["abers"].intervals.tolist()
        assert one["sets"].p_values.tolist() == other["sets"].p_values.tolist()
        ours.learn_one(x, y)
        theirs.learn_one(x, y)
