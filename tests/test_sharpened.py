"""Forecasts made bolder by their own past: equal to the definition, the bound on any stream, taught once in a panel."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import sharpened as naive
from scipy import sparse

import venn
from venn.predictors import Averaged, DeletedScores, Predictor, Sharpened

CLASSES = ("a", "b", "c")


class Told(Predictor):
    """Says what its object says: probabilities."""

    classes = CLASSES
    n = 0

    def predict_one(self, x):
        return venn.Forecast(np.asarray(x) / np.sum(x), CLASSES)

    def after_learning(self, x, y, noted=None):
        self.n += 1


FORECASTS = st.lists(
    st.tuples(st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any), st.integers(0, 2)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(FORECASTS)
def test_it_is_the_mixture_of_the_definition_at_every_step(stream):
    stream = [(x, k) for x, k in stream if x[k]]  # a label of probability 0 leaves the definition without weights
    model = Sharpened(Told())
    told = naive.mixed([[v / sum(x) for v in x] for x, _ in stream], [k for _, k in stream])
    for (x, k), expected in zip(stream, told, strict=True):
        np.testing.assert_allclose(model.predict_one(x).proba, expected, rtol=0, atol=1e-12)
        model.learn_one(x, CLASSES[k])
    assert model.n == model.predictor.n == len(stream)  # taught once


@settings(max_examples=40, deadline=None)
@given(FORECASTS)
def test_on_any_stream_it_loses_at_most_ln_3_more_than_the_best_power(stream):
    model, lost, each = Sharpened(Told()), 0.0, np.zeros(3)
    for x, k in stream:
        x = np.add(x, 0.01)  # logarithms are finite
        lost -= math.log(model.predict_one(x).proba[k])
        each -= [math.log(naive.power((x / x.sum()).tolist(), a)[k]) for a in (1.0, 1.5, 2.0)]
        model.learn_one(x, CLASSES[k])
        assert lost <= each.min() + math.log(3) + 1e-9


def test_a_label_of_probability_0_leaves_it_able_to_go_on():
    model = Sharpened(Told())
    model.learn_one([1, 0, 0], "b")
    np.testing.assert_allclose(model.weights, 1 / 3)
    model.learn_one([6, 1, 1], "a")
    assert (np.diff(model.weights) > 0).all()  # the boldest was right


def test_in_a_panel_its_parts_are_taught_once_and_it_learns_as_alone():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (40, 2)).astype(float)
    y = [CLASSES[k] for k in rng.integers(0, 3, 40)]

    def parts():
        machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
        return venn.TransductiveVennAbers(machine), venn.Scaler(machine, venn.maps.Platt(), DeletedScores())

    abers, platt = parts()
    panel = venn.Panel(abers=abers, sharp=Sharpened(Averaged([abers, platt])))
    alone, mean = Sharpened(Averaged(parts())), Averaged(parts())
    forecasts, codes = [], []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        said = panel.predict_one(x)
        assert np.array_equal(said["sharp"].proba, alone.predict_one(x).proba)
        forecasts.append(mean.predict_one(x).proba.tolist())
        codes.append(CLASSES.index(label))
        if i == 20:
            panel = pickle.loads(pickle.dumps(panel))
        for model in (panel, alone, mean):
            model.learn_one(x, label)
    np.testing.assert_allclose(alone.predict_one(X[0]).proba, panel.predict_many(X[:1])["sharp"].proba[0])
    told = naive.mixed([*forecasts, mean.predict_one(X[0]).proba.tolist()], [*codes, 0])[-1]
    np.testing.assert_allclose(alone.predict_one(X[0]).proba, told, rtol=0, atol=1e-12)


def test_where_there_is_no_forecast_nothing_is_counted():
    class Failing(Told):
        def predict_one(self, x):
            raise RuntimeError("a failed fit")

    model = Sharpened(Failing())
    model.learn_one([1, 1, 1], "a")
    assert model.predictor.n == 1
    np.testing.assert_array_equal(model.weights, [1 / 3] * 3)
    with pytest.raises(TypeError, match="predictor must be a predictor"):
        Sharpened(3)
    with pytest.raises(TypeError, match="must give probabilities"):
        Sharpened(venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES))).predict_one([0.0])


@pytest.mark.parametrize(
    "losses", [10**400, [0.1, 0.2], [[0.1, 0.2, 0.3]], [0.1, 0.2, np.nan], "abc", sparse.eye(3).tocsr()]
)
def test_losses_that_are_none_are_refused(losses):
    model = Sharpened(Told())
    before = pickle.dumps(model)
    with pytest.raises((TypeError, ValueError), match="losses must be 3 finite numbers, got"):
        model.learn_losses(losses)
    assert pickle.dumps(model) == before
