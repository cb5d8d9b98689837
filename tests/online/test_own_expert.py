"""Experts of a user's own in the forecaster: the bound, what else stays, beginning anew, files and merging."""

import copy

import numpy as np
import pytest
from conftest import refused
from sklearn.linear_model import LinearRegression, LogisticRegression

import venn
from venn.distribution import PredictiveDistribution
from venn.predictors import DistributionMixture, Predictor
from venn.saved import component, param, restored_float, restored_int, state

CLASSES = ("no", "yes")


@component
class LikeTheLast(Predictor):
    """The last label again; nothing before the first."""

    classes: tuple = param()
    n: int = state(restored_int, start=0)
    last: int = state(restored_int, 0, start=0)

    def predict_one(self, x):
        proba = np.full((1, len(self.classes)), 0.2 / (len(self.classes) - 1))
        proba[0, self.last] = 0.8
        return proba if self.n else np.full_like(proba, np.nan)

    def commit(self, x, y, prepared=None):
        self.n, self.last = self.n + 1, self.classes.index(y)

    def merge(self, other):
        made = LikeTheLast(self.classes)
        made.n, made.last = self.n + other.n, other.last
        return made


@component
class Near(Predictor):
    """A number near the last one."""

    classes: tuple = param(default=())
    last: float = state(restored_float, start=0.0)

    def predict_one(self, x):
        return PredictiveDistribution(self.last + np.linspace(-0.1, 0.1, 21))

    def commit(self, x, y, prepared=None):
        self.last = float(y)


class Wrong(LikeTheLast):
    """Sure of another label than the last one."""

    def predict_one(self, x):
        return venn.Forecast(1 - super().predict_one(x)[0], self.classes) if self.n else super().predict_one(x)


def runs(n, seed=0):
    """Objects that say nothing, labels in runs of ten."""
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=2), CLASSES[i // 10 % 2]) for i in range(n)]


def fitted():
    X = np.random.default_rng(7).normal(size=(40, 2))
    return LogisticRegression().fit(X, np.where(X[:, 0] > 0, "yes", "no"))


GIVEN = {"none": {}, "scorer": {"scorer": fitted()}}


def taught(examples, **more):
    model = venn.Forecaster(CLASSES, **more)
    for x, y in examples:
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("scorer", GIVEN)
def test_the_bound_holds_for_it_and_nothing_else_changes(scorer):
    model = taught(runs(60), experts=[LikeTheLast(CLASSES), Wrong(CLASSES)], **GIVEN[scorer])
    plain = taught(runs(60), **GIVEN[scorer])
    forecast, (first, last) = model["forecast"], model.own
    assert last - first == 2
    assert model.given_experts == forecast.experts[first:last]
    places = forecast.m - 2
    assert (forecast.loss <= forecast.losses + forecast.allowance).all()
    by_hand = [np.log(2), *(-np.log(0.8 if y == before else 0.2) for (_, before), (_, y) in zip(
        runs(60), runs(60)[1:], strict=False))]  # fmt: skip
    assert forecast.losses[places] == pytest.approx(
        sum(by_hand), abs=0.5
    )  # before it knew anything it said what all do
    assert forecast.loss < plain["forecast"].loss - 5
    assert forecast.weights[places] > forecast.weights[places + 1]
    one, other = model.predict_one([0.1, 0.2]), plain.predict_one([0.1, 0.2])
    assert one.intervals.tolist() == other.intervals.tolist()
    assert one.p_values.tolist() == other.p_values.tolist()


def test_probabilities_in_another_order_are_refused():
    class Backwards(LikeTheLast):
        said = CLASSES

        def predict_one(self, x):
            return venn.Forecast([0.2, 0.8], self.said)

    model = taught(runs(3), experts=[Backwards(CLASSES)])
    model.given_experts[0].said = CLASSES[::-1]
    for ask in (lambda: model.predict_one([0.0, 0.0]).proba, lambda: model.predict_many(np.zeros((2, 2))).proba):
        with pytest.raises(ValueError, match=r"classes \('no', 'yes'\), in this order, got \('yes', 'no'\)"):
            ask()


def test_it_has_no_part_in_the_pool_at_first():
    assert venn.Forecaster(CLASSES, experts=[LikeTheLast(CLASSES)])["forecast"].exponents[-1] == 0
    assert venn.Forecaster(scorer=fitted(), experts=[LikeTheLast(CLASSES)])["forecast"].exponents[-1] == 0
    with_it = venn.Forecaster(CLASSES, experts=[Wrong(CLASSES)])["forecast"]
    assert with_it.exponents[:-1] == venn.Forecaster(CLASSES)["forecast"].exponents


def test_without_experts_all_is_as_before():
    assert venn.Forecaster(CLASSES).own == (0, 0)
    assert repr(venn.Forecaster(CLASSES, experts=[])) == repr(venn.Forecaster(CLASSES))
    assert "experts=[LikeTheLast(" in repr(venn.Forecaster(CLASSES, experts=[LikeTheLast(CLASSES)]))


@pytest.mark.parametrize(("scorer", "times"), [("none", 1), ("scorer", 2)])
def test_it_goes_on_when_the_forecaster_begins_anew(scorer, times):
    rng, mine, known, turned, anew = np.random.default_rng(0), LikeTheLast(CLASSES), 0, False, 0
    model = venn.Forecaster(CLASSES, experts=[mine], transductive=100, last=100, **GIVEN[scorer])
    for _ in range(1500):
        turned ^= known == 200  # labels are turned round, and back
        x = rng.normal(size=2)
        model.learn_one(x, CLASSES[int((x[0] > 0) != turned)])
        before, known = known, model[model.main].n
        if known < before:
            anew += 1
            assert model.given_experts == (mine,)
            assert mine.n == model.n
            assert model["forecast"].loss == 0
            ids = [id(one) for one in model["forecast"].experts]
            assert len(set(ids)) == len(ids) == model.own[1] + 1, "one more goes on with all examples"
            if anew == times:
                break
    assert anew == times


def test_files_and_copies_hold_what_it_learned(tmp_path):
    model = taught(runs(40), experts=[LikeTheLast(CLASSES)])
    venn.save(tmp_path / "model", model)
    for again in (venn.load(tmp_path / "model"), copy.deepcopy(model)):
        assert again.own == model.own
        assert again.given_experts[0].n == 40
        assert again.given_experts[0] is not model.given_experts[0]
        x, y = runs(41)[40]
        assert again.predict_one(x).proba.tolist() == model.predict_one(x).proba.tolist()
        again.learn_one(x, y)
        assert again.given_experts[0].n == 41
        assert model.given_experts[0].n == 40


def test_a_journal_goes_on_with_it(tmp_path):
    said = []
    for end in (15, 30):
        with venn.Online(venn.Forecaster(CLASSES, experts=[LikeTheLast(CLASSES)]), journal=tmp_path / "run.db") as one:
            for x, y in runs(30)[one.asked : end]:
                said.append(one.ask(x).proba.tolist())
                one.answer(one.asked, y)
    model = venn.Forecaster(CLASSES, experts=[LikeTheLast(CLASSES)])
    for (x, y), proba in zip(runs(30), said, strict=True):
        assert model.predict_one(x).proba.tolist() == proba
        model.learn_one(x, y)


def test_it_is_merged():
    here, there = (taught(runs(30, seed), scorer=fitted(), experts=[LikeTheLast(CLASSES)]) for seed in (0, 1))
    both = here.merge(there)
    assert both.given_experts[0].n == both.n == 60
    assert both.own == here.own
    both.learn_one(*runs(1)[0])
    plain = taught(runs(30), scorer=fitted())
    with pytest.raises(ValueError, match=r"other must have the experts \[LikeTheLast.*got \[\]"):
        here.merge(plain)


def test_of_numbers():
    rng = np.random.default_rng(0)
    for more in ({}, {"scorer": LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])}):
        model = venn.Forecaster(float, experts=[Near()], **more)
        y = 0.0
        for _ in range(60):
            y += rng.uniform(-0.05, 0.05)
            model.learn_one(rng.normal(size=1), y)
        forecast = model["forecast"]
        assert isinstance(forecast, DistributionMixture)
        assert (forecast.loss <= forecast.losses + forecast.allowance + 1e-9).all()
        assert forecast.weights.argmax() == forecast.m - 1
        assert model.given_experts[0].last == y


def test_of_numbers_it_goes_on_as_well():
    rng, mine = np.random.default_rng(0), Near()
    fit = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    model = venn.Forecaster(float, scorer=fit, experts=[mine])
    for i in range(1000):
        x = rng.normal(size=1)
        model.learn_one(x, float(x[0] + rng.normal() / 10 + 100 * (i >= 200)))
        if model["distribution"].n < i:
            break
    assert 200 < i < 999, "it begins anew"
    assert model.given_experts == (mine,)
    assert len(model["forecast"].experts) == 2
    assert model["forecast"].loss == 0
    assert mine.last > 50


test_what_is_no_expert = refused(lambda experts: venn.Forecaster(CLASSES, experts=experts), [
    ([LikeTheLast(("no", "maybe"))], "must have the same classes"), ([3], "must be a predictor"),
    (3, "experts must be a sequence of predictors, got 3"), ([LikeTheLast(CLASSES)] * 2, "must be different objects"),
])  # fmt: skip
