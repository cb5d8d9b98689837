"""The forecaster of numbers: right as often as it says across trainings, everywhere in the range of its spreads; saved,
stopped, asked late; and refused labels."""

import math
import pickle

import numpy as np
import pytest
from conftest import goes_on, learned, refused
from naive import number_stack as naive
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

import streams
import venn
from venn.machines import FrozenRegressor, KernelRidge, MultiscaleLaplacian, number_stack
from venn.machines.number_experts import QuantileForest
from venn.machines.number_stack import NumberFit
from venn.machines.shapes import PLAIN, STRETCHED, Shape, gaps_of, within
from venn.machines.trees import FlatTrees
from venn.online import Forecaster, checkpoint
from venn.predictors import ConformalDistribution, StackedDistribution
from venn.schedules import Prefix


def stream(n, seed=0):
    """Columns on scales of 1e-3 to 1e6; labels whose noise grows with the last one, and which are full of ties."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, size=(n, 3))
    y = np.round(3 * Z[:, 0] + np.exp(1.2 * Z[:, 2]) * rng.normal(size=n), 1)
    return Z * [1e-3, 1e6, 1.0] + [5.0, 0.0, -2.0], y


def same_outlook(one, other):
    names = ("points", "places", "tau")
    return all(np.array_equal(getattr(one[name], a), getattr(other[name], a)) for name in one for a in names)


def test_an_outlook_says_all_in_one():
    X, y = stream(60)
    model = learned(Forecaster(float), X, y)
    assert isinstance(model, Forecaster)
    assert repr(model) == "Forecaster(float, transductive=2000, last=100000, first=30, level=0.01)"
    outlook = model.predict_one(X[0])
    lower, upper = outlook.interval(0.2)
    assert lower < outlook.median < upper
    assert outlook.quantile(0.5) == pytest.approx(outlook.median, abs=1)
    assert outlook.mean == outlook["forecast"].mean != outlook["distribution"].mean
    assert outlook.cdf(lower - 1) < 0.2 < 0.8 < outlook.cdf(upper + 1)
    assert outlook.guaranteed == {"distribution": "error rate", "forecast": "CRPS"}
    assert outlook.to_dict()["intervals"]["0.01"] == [None, None]
    many = model.predict_many(X[:3])
    assert many.median.tolist() == [model.predict_one(x).median for x in X[:3]]
    assert np.array_equal(many.interval(0.2), [model.predict_one(x).interval(0.2) for x in X[:3]])


def test_before_the_first_training_it_is_a_conformal_distribution():
    X, y = stream(70)
    by_hand = ConformalDistribution(KernelRidge(MultiscaleLaplacian(), 10.0, scale=venn.Scale(teach=True)))
    model = Forecaster(float)
    for x, label in zip(X, y, strict=True):
        one, other = model.predict_one(x)["distribution"], by_hand.predict_one(x)
        assert one.points == pytest.approx(other.points, abs=1e-6)  # no label lies so far out that its shape counts
        assert one.p_value(label) == other.p_value(label)
        model.learn_one(x, label)
        by_hand.learn_one(x, label)


def test_ranks_after_a_training_are_those_of_machines_taught_anew_with_each_label():
    """By definition: the ridge on what is left over the spread, with label y, and studentised residuals ranked."""
    X, y = stream(94, seed=3)
    model = learned(StackedDistribution(Prefix(0.5, first=80)), X[:93], y[:93])
    prediction = model.predict_one(X[93])
    fit, offsets, spreads = NumberFit.of_all(X[:40], y[:40], 2000)
    later = fit.around(fit.place(X[40:]))
    assert np.ptp(spreads) > 0
    offsets, spreads = np.append(offsets, later[0]), np.append(spreads, later[1])
    Z = fit.place(X) * fit.factors
    d = Z.shape[1]
    L1 = np.abs(Z[:, None] - Z).sum(axis=2) / d
    K = 0.94 * np.mean([np.exp(-w * L1) for w in (0.25, 1, 4)], axis=0) + 0.06 * Z @ Z.T / d
    M = np.linalg.inv(K + np.eye(94) / fit.C)
    s = M.sum(axis=1)
    Q = M - np.outer(s, s) / s.sum()
    for label in np.linspace(-9, 9, 61) + 0.0123:
        a = Q @ ((naive.shaped(np.append(y[:93], label), y[:40], fit.shape.reach) - offsets) / spreads)
        strange = a / np.sqrt(np.diag(Q))
        rank = (strange[40:93] < strange[93]).sum()
        assert prediction.cdf(label) == pytest.approx((rank + 0.5) / 54)


def test_what_is_asked_between_a_note_and_its_example_makes_no_difference():
    X, y = stream(20, seed=3)
    models = [learned(StackedDistribution(), X[:18], y[:18]) for _ in range(2)]
    prepared = models[0].prepare(X[18], y[18])
    models[0].predict_one(X[0])
    models[0].commit(X[18], y[18], prepared)
    models[1].learn_one(X[18], y[18])
    first, second = (one.predict_one(X[19]) for one in models)
    assert np.array_equal(first.points, second.points)


@pytest.mark.parametrize(("jump", "seed", "reach"), [(0, 0, STRETCHED), (8, 2, PLAIN)])
def test_a_stack_is_fitted_as_defined(jump, seed, reach):
    """Where trees have no weight, and where they have; with a spread that differs."""
    X, y = stream(60, seed)
    y += jump * (X[:, 0] > 5.0003) * (X[:, 1] > 0)
    (fit, offsets, spreads), _ = NumberFit.fitted(X[:45], y[:45], 2000, Shape.fitted(y[:45], reach))
    shaped = naive.shaped(y[:45], y[:45], fit.shape.reach)
    expected = naive.fitted(fit.place(X[:45]), shaped, number_stack.TREES, number_stack.ROUNDS)(fit.place(X))
    assert fit.answers(X)[:, :2] == pytest.approx(expected, abs=1e-8)
    assert fit.answers(X)[:, 2:] == pytest.approx(np.tile(fit.shape.row, (60, 1)))
    assert np.array_equal(np.concatenate([fit.answers(x[None]) for x in X]), fit.answers(X))
    assert len(offsets) == len(spreads) == 45
    assert fit.weights.any() == (jump > 0)
    assert fit.blend < 1


def test_a_damaged_fit_is_refused():
    X, y = stream(25)
    fit = NumberFit.of(X, y, 2000)
    for name, value in (
        ("factors", np.ones(2)), ("columns", np.full((3, 25), np.nan)), ("coefficients", np.ones(3)),
        ("weights", np.ones(3)), ("base", np.nan), ("center", np.inf), ("C", 0.0), ("unit", 0.0), ("spread", -1.0),
        ("blend", 0.0), ("forest", 3), ("shape", 3), ("gaps", np.zeros(2)), ("woods", 3),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=f"{name}.* must"):
            NumberFit.made_of(fit.parameters | {name: value})
    few = NumberFit.of(X[:9], y[:9], 2000)  # too few to tell spreads apart
    assert np.array_equal(NumberFit.made_of(few.parameters).answers(X), few.answers(X))
    assert np.ptp(few.answers(X)[:, 1]) == 0


def p_values(seed):
    X, y = stream(150, seed)
    model, found = Forecaster(float, transductive=90, last=90)["distribution"], []  # which the outlook speaks for
    model.early.schedule = Prefix(0.5, first=40, last=80)
    model.early.derive()
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i >= 60:
            outlook = model.predict_one(x)
            ends = [outlook.interval(level) for level in (0.05, 0.1, 0.2)]
            found.append([outlook.p_value(label), *(not lower <= label <= upper for lower, upper in ends)])
        model.learn_one(x, label)
    return np.array(found)


@pytest.fixture(scope="module")
def found(few_trees):
    """(streams, steps, 4): from one training to beyond the hand-over."""
    return np.array([p_values(seed) for seed in range(6)])


def test_p_values_are_uniform_across_trainings(found):
    assert stats.kstest(found[:, ::9, 0].ravel(), "uniform").pvalue > 1e-3  # far apart: they hardly depend
    late = found[:, 30:, 0].ravel()
    assert stats.kstest(late[::5], "uniform").pvalue > 1e-3


def test_intervals_miss_no_more_often_than_they_say_across_trainings(found):
    for place, level in enumerate((0.05, 0.1, 0.2)):
        missed = found[:, :, 1 + place]
        assert stats.binomtest(int(missed.sum()), missed.size, level, alternative="greater").pvalue > 1e-3


def worst_quarter(model, seed):
    """The share of misses at .2 in the worst quarter of the column on which the noise depends."""
    X, y = stream(400, seed)
    learned(model, X[:200], y[:200])
    missed = []
    for x, label in zip(X[200:], y[200:], strict=True):
        lower, upper = model.predict_one(x).interval(0.2)
        missed.append(not lower <= label <= upper)
        model.learn_one(x, label)
    return max(np.mean(part) for part in np.array_split(np.array(missed)[np.argsort(X[200:, 2])], 4))


def test_where_noise_is_large_they_miss_less_often_than_intervals_of_one_width():
    """No theorem: a spread learned from examples only goes some of the way. Means over streams are compared."""
    ours = [worst_quarter(StackedDistribution(Prefix(0.6, first=200)), seed) for seed in range(3)]
    ridge = [KernelRidge(MultiscaleLaplacian(), 10.0, scale=venn.Scale(teach=True)) for _ in range(3)]
    others = [worst_quarter(ConformalDistribution(machine), seed) for seed, machine in enumerate(ridge)]
    assert np.mean(ours) < np.mean(others)


@pytest.mark.parametrize("n", [20, 50, 70])
def test_saved_at_any_time_it_goes_on_to_the_last_bit(n, tmp_path):
    X, y = stream(85)
    model = learned(Forecaster(float, transductive=60), X[:n], y[:n])
    goes_on(model, X[n : n + 20], y[n : n + 20], same_outlook, tmp_path)


def test_a_run_with_a_journal_goes_on_over_trainings_with_labels_that_come_late(tmp_path):
    X, y = stream(80)

    def run(begin, end, journal):
        found = []
        with venn.Online(Forecaster(float, transductive=60), journal=journal) as online:
            for i in range(begin, end):
                found.append(online.ask(X[i], id=i))
                if i >= 2:
                    online.answer(i - 2, y[i - 2])
        return found

    whole = run(0, 80, tmp_path / "whole.db")
    parts = [one for ends in ((0, 35), (35, 52), (52, 80)) for one in run(*ends, tmp_path / "run.db")]
    assert all(same_outlook(one, other) for one, other in zip(whole, parts, strict=True))


def test_a_fitted_regressor_is_calibrated_and_known_by_what_it_is():
    X, y = stream(120)
    regressor = LinearRegression().fit(X[:40], y[:40])
    model = learned(Forecaster(scorer=regressor), X[40:], y[40:])
    by_hand = venn.predictors.InductiveDistribution(FrozenRegressor(regressor))
    learned(by_hand, X[40:], y[40:])
    assert model.predict_one(X[0]).interval(0.1) == by_hand.predict_one(X[0]).interval(0.1)
    assert model.merge(model).n == 160
    assert isinstance(Forecaster(float, scorer=regressor), type(model))


def test_it_begins_anew_after_a_change():
    X, y = stream(260)
    y[120:] = 20 - 5 * y[120:]
    model = learned(Forecaster(float, ranges=[(4.999, 5.001), (-1e6, 1e6), (-3, -1)]), X, y)
    assert model.verdict().state == "changed"
    assert model.n == 260
    assert model["distribution"].n < 170


def test_its_forecast_loses_little_beside_the_best_of_its_experts_on_any_sequence():
    """Here: labels that rise, and objects that tell half of them."""
    X, y = stream(150)
    y = np.where(X[:, 0] > 5, 1.0, np.sort(y))
    model = learned(Forecaster(float, transductive=100, on_change="keep"), X, y)
    forecast = model["forecast"]
    assert (forecast.loss <= forecast.losses + forecast.allowance).all()
    assert model.predict_many(X[:2]).cdf(0.5).tolist() == [model.predict_one(x).cdf(0.5) for x in X[:2]]


def test_a_floor_is_about_the_intervals_of_its_forecast():
    X, y = stream(60)
    model = learned(Forecaster(float, floor=0.5, on_change="keep"), X, y)
    assert model.floors["floor"].verdict().state != "below the floor"
    learned(model, X[:40], 10.0 * 3.0 ** np.arange(40))
    assert "below the floor, accuracy of at least .50" in model.floors["floor"].verdict().details


def test_it_stands_by_default_on_streams_of_numbers():
    record = venn.replay(streams.waves(12, seed=0), progress=False)
    assert record.names == ("distribution", "forecast")
    beside = {"ridge": ConformalDistribution(KernelRidge(MultiscaleLaplacian(), 10.0))}
    record = venn.replay(streams.waves(12, seed=0), Forecaster(float, beside=beside), progress=False)
    assert record.names == ("distribution", "forecast", "ridge")


@pytest.mark.parametrize("y", [float("nan"), float("inf"), 1e101, "3", None, True])
def test_a_bad_label_is_named_and_leaves_no_trace(y):
    X, labels = stream(50)
    model = learned(Forecaster(float), X, labels)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="y must be a finite number"):
        model.learn_one(X[0], y)
    with pytest.raises(ValueError, match=r"x must"):
        model.learn_one([np.nan, 0.0, 0.0], 1.0)
    assert pickle.dumps(model) == before


def test_equal_labels_and_constant_columns_are_taken():
    model = StackedDistribution(Prefix(0.5, first=20))
    for i in range(45):
        model.learn_one([1.0, i % 3], 7.0)
    assert model.predict_one([1.0, 1.0]).interval(0.2) == pytest.approx((7.0, 7.0))


test_what_cannot_be_is_refused = refused(lambda given: Forecaster(**given), [
    ({"classes": int}, "classes must be labels, or float where labels are numbers"),
    ({"classes": float, "scorer": LogisticRegression().fit([[0.0], [1.0]], [0, 1])}, "scorer must be a regr"),
    ({"classes": float, "floor": 1.9}, r"at must be such that a loss in \(0, 1\) is left"),
    ({"classes": float, "scorer": LinearRegression(), "first": 3}, "first and ranges must not be given"),
])  # fmt: skip


@pytest.mark.parametrize("unit", [1e-323, 1e-312, 1e-300])
def test_labels_so_small_that_their_reciprocals_overflow_are_survived(unit):
    rng, model = np.random.default_rng(0), venn.Forecaster(float, first=0)
    for i in range(60):
        x, y = rng.normal(size=2), rng.integers(-3, 4) * (unit if i < 30 else 1.0)
        assert math.isfinite(model.predict_one(x).mean)
        model.learn_one(x, y)
    weights = model["forecast"].weights
    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("classes", [float, (-1, 1)])
@pytest.mark.parametrize("at", [0, 1, 5, 29, 30, 45])
def test_an_object_as_large_as_numbers_go_refuses_no_later_one(classes, at):
    rng, model = np.random.default_rng(at), venn.Forecaster(classes)
    for i in range(60):
        x = rng.normal(size=2)
        x[0] = (-1) ** at * 1.797e308 if i == at else x[0]
        model.predict_one(x)
        model.learn_one(x, int(np.sign(x[1])))
    assert model.n == 60


# ---------------------------------------------------------------------------------------------------- shapes of labels


@pytest.mark.parametrize("reach", [PLAIN, STRETCHED])
def test_a_shape_is_as_defined_and_grows_and_comes_back(reach):
    rng = np.random.default_rng(0)
    labels = np.append(np.exp(2 * rng.normal(size=99)), 1e6)
    shape = Shape.fitted(labels, reach)
    assert shape.of(labels) == pytest.approx(naive.shaped(labels, labels, reach))
    far = np.array([-1e100, -1e9, -3.0, 0.0, 2.0, 1e9, 1e100])
    assert (np.diff(shape.of(far)) > 0).all()
    assert shape.back(shape.of(far)) == pytest.approx(far, rel=1e-9)
    assert np.isfinite(shape.back(np.array([-1e9, 1e9]))).all()
    without = Shape.fitted(labels[:-1], reach)
    assert shape.unit == pytest.approx(without.unit, rel=0.2)  # one wild label hardly moves it
    assert Shape.fitted(np.full(5, 3.0), reach).row.tolist() == [3.0, 1.0, reach]


@pytest.mark.parametrize("seed", range(4))
def test_gaps_are_as_defined(seed):
    rng = np.random.default_rng(seed)
    labels = rng.poisson(1 + seed, 80) * 1.0
    labels[:seed] += 0.5
    assert list(map(tuple, gaps_of(labels).tolist())) == naive.gaps(labels.tolist())
    assert len(gaps_of(rng.normal(size=80))) == 0


def test_the_shape_is_chosen_by_the_training_examples():
    X = np.random.default_rng(0).normal(size=(90, 2))
    noise = np.random.default_rng(1).normal(size=90)
    assert NumberFit.of(X, np.exp(2 * X[:, 0] + noise), 2000).shape.reach == STRETCHED
    assert NumberFit.of(X, X[:, 0] + noise, 2000).shape.reach == PLAIN


@pytest.mark.parametrize("at", [5, 20, 55])
def test_one_wild_label_leaves_intervals_narrow(at):
    """Among the first, among those that train, and among those that are ranked; before and after a training."""
    rng = np.random.default_rng(at)
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=90)
    wild = np.where(np.arange(90) == at, 1e6, y)
    for first in (50, 80):
        widths = []
        for labels in (y, wild):
            model = learned(
                StackedDistribution(Prefix(0.5, first=first), venn.Scale(10, teach=True)), X[:70], labels[:70]
            )
            widths.append(np.median([np.subtract(*model.predict_one(x).interval(0.2)[::-1]) for x in X[70:]]))
        assert widths[1] < 4 * widths[0]  # without the shape 1e5 times


def ranked(strays=True):
    """Misses at .2 where a third of the later labels are numbers that the fit has never seen, between two it has."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(float)
    y[60:] += 0.5 * ((rng.uniform(size=240) < 0.6) & (y[60:] == 0))
    model, missed = learned(StackedDistribution(Prefix(0.99, first=60, last=60)), X[:60], y[:60]), []
    assert within(model.fit.gaps, np.array([0.5, -1.0, 2.0]))[0].all()
    model.fit.woods = None
    for x, label in zip(X[60:], y[60:], strict=True):
        if not strays:
            model.strays = 0
        lower, upper = model.predict_one(x).interval(0.2)
        missed.append(not lower <= label <= upper)
        model.learn_one(x, label)
    return missed


def test_intervals_that_end_at_masses_miss_no_more_often_even_if_labels_lie_between_them():
    missed = ranked()
    assert stats.binomtest(sum(missed), len(missed), 0.2, alternative="greater").pvalue > 1e-3
    assert stats.binomtest(sum(ranked(strays=False)), 240, 0.2, alternative="greater").pvalue < 1e-3


def test_intervals_of_skewed_labels_miss_no_more_often_than_they_say():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = np.exp(4 * X[:, 0] + rng.normal(size=300))
    model, missed, p_values = learned(StackedDistribution(Prefix(0.4, first=100, last=100)), X[:100], y[:100]), [], []
    assert model.fit.shape.reach == STRETCHED
    for x, label in zip(X[100:], y[100:], strict=True):
        prediction = model.predict_one(x)
        lower, upper = prediction.interval(0.2)
        missed.append(not lower <= label <= upper)
        p_values.append(prediction.p_value(label))
        model.learn_one(x, label)
    assert stats.binomtest(sum(missed), 200, 0.2, alternative="greater").pvalue > 1e-3
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_points_at_numbers_that_are_labels_again_and_again_are_these_numbers():
    y = np.random.default_rng(0).integers(0, 2, 60).astype(float)
    model = learned(StackedDistribution(Prefix(0.6, first=50)), np.ones((60, 1)), y)
    prediction = model.predict_one([1.0])
    assert set(prediction.points) == {0.0, 1.0}
    assert prediction.cdf(0.0) == pytest.approx((np.sum(y[30:] == 0) + 0.5) / 31)


@pytest.mark.filterwarnings("ignore:this version of scikit-learn")
def test_where_trees_cannot_be_read_numbers_lose_none_of_them(monkeypatch):
    """Forest, boosted trees and spread were dropped without a word, and a forest of quantiles could not be fitted."""
    X, y = stream(90)
    fits = [lambda: NumberFit.of(X, y, 40), lambda: QuantileForest.fitted(X, y)]
    asks = [lambda fit: fit.around(fit.place(X)), lambda fit: fit.quantiles(X, np.array([0.1, 0.5, 0.9]))]
    read = [ask(fit()) for fit, ask in zip(fits, asks, strict=True)]
    monkeypatch.setattr(FlatTrees, "of", lambda estimator: None)
    for fit, ask, expected in zip(fits, asks, read, strict=True):
        made = fit()
        for one in (made, checkpoint.unpack(checkpoint.pack(made))):
            np.testing.assert_allclose(ask(one), expected, rtol=1e-9)
