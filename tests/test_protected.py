"""Protected forecasts: their definition at every step, never much worse than the base, better than a bad one."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from conftest import labels, objects, public
from inductive_cases import Failing
from naive import protected as naive

import venn
from venn.prediction import PredictionSet
from venn.predictors.protected import BrierLoss, LogLoss, Protected

LOSSES = {"log": (LogLoss, naive.log_loss), "brier": (BrierLoss, naive.brier_loss)}


class Given(venn.predictors.Predictor):
    """A base without a machine that says what the object says: the object is the forecast."""

    machine = None

    def __init__(self, c=2):
        self.classes = tuple(range(c))
        self.learned = []

    def __repr__(self):
        return f"Given({len(self.classes)})"

    def predict_one(self, x):
        return venn.Forecast(np.asarray(x), self.classes)

    def after_learning(self, x, y, noted=None):
        self.predict_one(x)  # refuses what is no forecast
        self.learned.append(y)


def softened(p, power):
    q = p**power
    return q / q.sum()


def stream(kind, seed, n, c):
    """Return n forecasts (n, c) and labels."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(c, 0.7), n)
    p = np.maximum(p, 1e-9) / np.maximum(p, 1e-9).sum(axis=1, keepdims=True)
    if kind == "ties":
        p = rng.integers(1, 4, (n, c)).astype(float)
        p /= p.sum(axis=1, keepdims=True)
    if kind == "zeros":
        p = rng.integers(0, 3, (n, c)).astype(float) + np.eye(c)[rng.integers(0, c, n)]
        p /= p.sum(axis=1, keepdims=True)
    if kind == "tiny":
        p = 10.0 ** -rng.integers(0, 290, (n, c)).astype(float)
        p /= p.sum(axis=1, keepdims=True)
    truth = {"bold": 0.4, "timid": 2.0}.get(kind, 1.0)
    y = [int(rng.choice(c, p=softened(row, truth))) for row in p]
    if kind in ("noise", "tiny"):
        y = rng.integers(0, c, n).tolist()
    if kind == "change":
        p[n // 2 :] = np.roll(p[n // 2 :], 1, axis=1)
    return p, y


KINDS = ("calibrated", "bold", "timid", "noise", "ties", "zeros", "change", "tiny")


# The definition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "tiny"])  # plain numbers underflow there
def test_every_forecast_is_the_one_by_definition(kind, loss, c):
    ours, by_name = LOSSES[loss]
    model = Protected(Given(c), ours(), rates=(0.05, 1e-3), passive=0.3)
    oracle = naive.Protected(c, by_name, rates=(0.05, 1e-3), passive=0.3)
    gain = 0.0
    for p, y in zip(*stream(kind, c, 50, c), strict=True):
        forecast = model.predict_one(p)
        assert forecast.proba == pytest.approx(oracle.forecast(p.tolist()), abs=1e-12)
        if by_name(p, y) < math.inf:
            gain += by_name(p, y) - by_name(forecast.proba, y)
        model.learn_one(p, y)
        oracle.see(p.tolist(), y)
        assert model.gain == pytest.approx(gain, abs=1e-9)


def test_for_two_classes_the_calibrators_are_the_nine_published_ones():
    """Of a forecast of odds r they have odds r^b e^a, b in 1, 1/2, 2 and a in 0, 1, -1."""
    assert len(naive.calibrators(2)) == 9
    found = {round(math.log(q / p), 9) for p, q in (naive.recalibrated([0.2, 0.8], *k) for k in naive.calibrators(2))}
    assert found == {round(b * math.log(4) + a, 9) for b in (1, 0.5, 2) for a in (0, 1, -1)}


@pytest.mark.parametrize("c", [2, 6, 10])
def test_the_brier_merge_loses_no_more_than_its_weights_allow(c):
    """Whatever the label; two other merges, one of them published, do lose more: they must fail this test."""
    rng = np.random.default_rng(c)
    worst = {"ours": -math.inf, "cut off": -math.inf, "mean": -math.inf}
    pair = np.zeros((2, c))
    pair[:, :2] = [0.8, 0.2], [0.2, 0.8]
    cases = [(pair, np.array([0.8, 0.2]))]
    cases += [(rng.dirichlet(np.full(c, 0.15), 4), rng.dirichlet(np.full(4, 0.5))) for _ in range(200)]
    for rows, weights in cases:
        losses = np.array([[naive.brier_loss(row, k) for k in range(c)] for row in rows])
        g = -np.log(weights @ np.exp(-losses))
        with np.errstate(divide="ignore"):
            merged = BrierLoss().forecast(np.log(weights), np.log(rows))
        assert merged == pytest.approx(naive.brier_merge(weights, rows.tolist()), abs=1e-9)
        answers = {
            "ours": merged,
            "cut off": naive.cut_merge(weights, rows.tolist()),
            "mean": naive.mean(weights, rows.tolist()),
        }
        for name, p in answers.items():
            worst[name] = max(worst[name], *(naive.brier_loss(p, k) - g[k] for k in range(c)))
    assert worst["ours"] < 1e-12
    assert worst["mean"] > 1e-3
    assert worst["cut off"] > 5e-3 or c == 2  # of two classes never is one cut off


# The bound (METHODS 10, row 26) ------------------------------------------------------------------------------------


def excess(model, loss, steps):
    """Return the largest cumulative loss beyond the base's, over all steps; labels may depend on the forecast."""
    own = base = 0.0
    worst = -math.inf
    for p, label in steps:
        forecast = model.predict_one(p).proba
        y = label(forecast, p) if callable(label) else label
        own += loss(forecast, y)
        base += loss(p, y)
        worst = max(worst, own - base)
        model.learn_one(p, y)
    assert model.gain == pytest.approx(base - own, abs=1e-6)
    return worst


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "zeros"])
def test_the_loss_exceeds_that_of_the_base_by_ln_2_at_most(kind, c, loss):
    ours, by_name = LOSSES[loss]
    for seed in range(2):
        steps = zip(*stream(kind, seed, 160, c), strict=True)
        assert excess(Protected(Given(c), ours()), by_name, steps) <= math.log(2) + 1e-9


def greatest_excess(loss, c):
    """Return the adversary that picks the label by which the forecast loses most beyond the base."""
    return lambda own, base: max(range(c), key=lambda y: loss(own, y) - loss(base, y))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("c", [2, 4])
@pytest.mark.parametrize("passive", [0.5, 0.01])
@pytest.mark.parametrize("rates", [(1e-2, 1e-3, 1e-4), (0.5,)])
def test_an_adversary_gains_no_more(rates, passive, c, loss):
    """By log loss it gains just as much in the end, where the weights that jump are quick to vanish."""
    ours, by_name = LOSSES[loss]
    bound = math.log(1 / passive)
    forecasts = np.random.default_rng(c).dirichlet(np.full(c, 0.5), 800) + 1e-6
    forecasts /= forecasts.sum(axis=1, keepdims=True)
    model = Protected(Given(c), ours(), rates=rates, passive=passive)
    reached = excess(model, by_name, ((p, greatest_excess(by_name, c)) for p in forecasts))
    assert 0.1 * bound < reached <= bound + 1e-9
    if loss == "log" and rates == (0.5,):
        assert reached > 0.9 * bound


def test_without_a_passive_weight_the_bound_is_broken():
    """So the tests above would see it: all weight in the jumps costs more than ln 2 on well-calibrated forecasts."""
    steps = list(zip(*stream("calibrated", 5, 3000, 2), strict=True))
    assert excess(Protected(Given(), rates=(0.01,), passive=1e-12), naive.log_loss, steps) > 1.5 * math.log(2)
    assert excess(Protected(Given(), rates=(0.01,)), naive.log_loss, steps) <= math.log(2) + 1e-9


@pytest.mark.parametrize("c", [2, 3])
def test_the_gain_is_a_test_martingale_against_the_base(c):
    """Over all label sequences, exp(gain) has mean 1 if the base's forecasts are true: to be summed exactly."""
    n = 8 if c == 2 else 5
    p = stream("timid", 6, n, c)[0]
    total = 0.0
    for ys in itertools.product(range(c), repeat=n):
        model = Protected(Given(c), rates=(0.1,))
        for row, y in zip(p, ys, strict=True):
            model.learn_one(row, y)
        total += np.prod(p[np.arange(n), ys]) * math.exp(model.gain)
    assert total == pytest.approx(1, abs=1e-10)


# What it is for -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["bold", "timid", "change"])
def test_a_miscalibrated_base_is_made_better(kind, loss):
    ours, by_name = LOSSES[loss]
    p, y = stream(kind, 7, 1500, 3)
    model = Protected(Given(3), ours())
    base = 0.0
    for row, label in zip(p, y, strict=True):
        model.learn_one(row, label)
        base += by_name(row, label)
    assert model.gain > 0.02 * base


def test_a_base_that_turns_bad_is_left_and_one_that_recovers_is_taken_back():
    good, y = stream("calibrated", 8, 3000, 2)
    bad = good**3 / (good**3).sum(axis=1, keepdims=True)
    model = Protected(Given())
    gains = []
    for part, forecasts in ((slice(0, 1000), good), (slice(1000, 2000), bad), (slice(2000, 3000), good)):
        before = model.gain
        for row, label in zip(forecasts[part], y[part], strict=True):
            model.learn_one(row, label)
        gains.append(model.gain - before)
    assert gains[0] > -math.log(2)
    assert gains[1] > 100
    assert abs(gains[2]) < 0.1 * gains[1]


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_stay_finite(loss):
    """Forecasts so wrong that weights would underflow thousands of times over, then the contrary."""
    ours, _ = LOSSES[loss]
    model = Protected(Given(3), ours())
    sure = [1 - 2e-300, 1e-300, 1e-300]
    for y in [1] * 3000 + [0] * 3000 + [2] * 500:
        model.learn_one(sure, y)
        forecast = model.predict_one(sure).proba
        assert np.isfinite(forecast).all()
        assert forecast.sum() == pytest.approx(1, abs=1e-12)
    assert math.isfinite(model.gain)
    assert math.isfinite(model.state["passive"])
    assert np.isfinite(model.state["weights"]).all()


def test_memory_is_constant():
    model = Protected(Given(3))
    model.predictor.learn_one = lambda x, y: None
    sizes = []
    for p, y in zip(*stream("noise", 9, 400, 3), strict=True):
        model.learn_one(p, y)
        sizes.append(len(pickle.dumps(model.state["weights"])) + len(model.__dict__))
    assert len(set(sizes)) == 1


# Probability 0 ------------------------------------------------------------------------------------------------------


def test_a_class_of_probability_0_keeps_it_by_log_loss():
    model = Protected(Given(3))
    for p, y in zip(*stream("bold", 10, 50, 3), strict=True):
        model.learn_one(p, y)
    assert model.predict_one([0.0, 0.25, 0.75]).proba[0] == 0.0
    assert model.predict_one([0.0, 1.0, 0.0]).proba.tolist() == [0.0, 1.0, 0.0]


def test_an_impossible_label_moves_no_weights_by_log_loss():
    """All lose infinitely; the bound holds for the other steps, and later forecasts are as if it had only jumped."""
    model, oracle = Protected(Given(2)), naive.Protected(2, naive.log_loss)
    for p, y in [([0.9, 0.1], 1), ([1.0, 0.0], 1), ([0.8, 0.2], 0), ([0.0, 1.0], 0), ([0.3, 0.7], 1)]:
        assert model.predict_one(p).proba == pytest.approx(oracle.forecast(p), abs=1e-14)
        gain = model.gain
        model.learn_one(p, y)
        assert (model.gain == gain) == (p[y] == 0)
        oracle.see(p, y)
    assert model.predict_one([0.5, 0.5]).proba == pytest.approx(oracle.forecast([0.5, 0.5]), abs=1e-14)


# Around real predictors, alone and in a panel ----------------------------------------------------------------------


CLASSES = ("a", "b", "c")


def squares():
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)


def examples(seed, n=40):
    rng = np.random.default_rng(seed)
    X = objects("grid", rng, n) + rng.integers(0, 2, size=(n, 1)) / 7
    return X, np.array(CLASSES)[labels("signal", rng, X, 3)].tolist()


BASES = {
    "forecasts": lambda m: venn.Scaler(m, venn.maps.Platt()),
    "multiprobabilities": lambda m: venn.TransductiveVenn(m, venn.Argmax()),
    "class intervals": lambda m: venn.TransductiveVennAbers(m),
    "own scorer": lambda m: venn.InductiveVenn(
        squares(), venn.taxonomies.TopTwo(), schedule=venn.schedules.PrefixRestart(first=6)
    ),
    "protected": lambda m: Protected(venn.Scaler(m, venn.maps.Platt()), BrierLoss()),
}


@pytest.mark.parametrize("base", BASES)
def test_the_base_speaks_before_its_machine_learns(base):
    """Alone, in a panel, in a panel with the base itself, whether asked before or asked about others: all the same."""
    X, y = examples(11)
    plain = BASES[base](squares())
    oracle = naive.Protected(3, naive.log_loss)
    silent, curious = Protected(BASES[base](squares())), Protected(BASES[base](squares()))
    inside = Protected(BASES[base](shared := squares()))
    both = BASES[base](other := squares())
    panels = [
        venn.Panel(protected=inside, venn=venn.TransductiveVenn(shared, venn.Argmax())),
        venn.Panel(protected=Protected(both), base=both, platt=venn.Scaler(other, venn.maps.Platt())),
    ]
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        said = plain.predict_one(x).proba
        expected = oracle.forecast(said.tolist())
        assert curious.predict_one(x).proba == pytest.approx(expected, abs=1e-9)
        for z in (X[0], x + 1, x)[: i % 4]:
            curious.predict_one(z)
        if i % 2:
            assert [p.predict_one(x)["protected"].proba.tolist() for p in panels] == [
                pytest.approx(expected, abs=1e-9)
            ] * 2
        if i % 3 == 0:
            panels[1].predict_one(X[0])
        for learner in (plain, silent, curious, *panels):
            learner.learn_one(x, label)
        oracle.see(said.tolist(), CLASSES.index(label))
        answers = [m.predict_one(X[0]).proba.tolist() for m in (silent, curious)]
        answers += [p.predict_one(X[0])["protected"].proba.tolist() for p in panels]
        assert all(answer == answers[0] for answer in answers)
        assert panels[1].predict_one(X[0])["base"].proba.tolist() == plain.predict_one(X[0]).proba.tolist()


def test_the_base_is_copied_and_its_machine_shared():
    X, y = examples(12)
    machine = squares()
    base = venn.Scaler(machine, venn.maps.Platt())
    model = Protected(base)
    assert model.machine is machine is model.predictor.machine
    assert model.predictor is not base
    for x, label in zip(X[:10], y, strict=False):
        model.learn_one(x, label)
    assert machine.n == 10
    with pytest.raises(RuntimeError, match="share a machine in a Panel"):  # the one passed in has not been taught
        base.predict_one(X[0])
    counted = Given()
    model = Protected(counted)
    panel = venn.Panel(model=model, base=counted)
    for label in (0, 1, 1):
        panel.learn_one([0.5, 0.5], label)
    assert counted.learned == model.predictor.learned == [0, 1, 1]


def test_a_base_may_have_learned_before():
    X, y = examples(13)
    base = venn.Scaler(squares(), venn.maps.Platt())
    for x, label in zip(X[:20], y, strict=False):
        base.learn_one(x, label)
    said = base.predict_one(X[20]).proba
    model = Protected(base)
    assert model.predictor.predict_one(X[20]).proba.tolist() == said.tolist()
    assert model.predict_one(X[20]).proba == pytest.approx(naive.Protected(3, naive.log_loss).forecast(said), abs=1e-12)


def test_a_machine_taught_by_hand_needs_the_forecast_first():
    X, y = examples(14)
    whole, parts = (
        Protected(venn.Scaler(squares(), venn.maps.Platt())),
        Protected(venn.Scaler(squares(), venn.maps.Platt())),
    )
    for x, label in zip(X, y, strict=True):
        whole.learn_one(x, label)
        noted = parts.note(x, label)
        parts.predict_one(X[1])  # asking in between changes nothing
        parts.machine.learn_one(x, label)
        parts.after_learning(x, label, noted)
        assert parts.predict_one(X[0]).proba.tolist() == whole.predict_one(X[0]).proba.tolist()
    before = parts.gain
    parts.machine.learn_one(X[2], "a")
    with pytest.raises(RuntimeError, match=r"after_learning needs what note\(x, y\) returned .* got none"):
        parts.after_learning(X[2], "a")
    assert parts.gain == before
    assert parts.predict_one(X[0]).proba.shape == (3,)  # the base has learned: it goes on


def test_a_training_that_fails_still_counts_the_step():
    """The base has learned the example and its forecast has been made: its loss is part of the bound."""
    X = np.arange(30.0)[:, None]
    schedule = venn.schedules.FreshSplit(0.5, seed=1)
    model, base = Protected(venn.InductiveVenn(Failing([0, 1]), schedule=schedule)), 0.0
    own, failures = 0.0, 0
    for i, x in enumerate(X):
        own += naive.log_loss(model.predict_one(x).proba, i % 2)
        base += naive.log_loss(model.predictor.predict_one(x).proba, i % 2)
        try:
            model.learn_one(x, i % 2)
        except venn.machines.NotConverged:
            failures += 1
        assert model.predictor.n == i + 1
        assert model.gain == pytest.approx(base - own, abs=1e-9)
    assert failures > 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
@pytest.mark.parametrize("loss", [LogLoss(), BrierLoss()])
def test_a_copy_goes_on_as_if_nothing_had_been(loss, copied):
    X, y = examples(15)
    whole = Protected(venn.Scaler(squares(), venn.maps.Platt()), loss)
    twin = copied(whole)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i % 7 == 3:
            twin = copied(twin)
            assert twin.predictor.machine is twin.machine
        assert twin.predict_one(x).proba.tolist() == whole.predict_one(x).proba.tolist()
        whole.learn_one(x, label)
        twin.learn_one(x, label)
    assert twin.gain == whole.gain


def test_repr_can_be_typed():
    model = Protected(
        venn.Scaler(squares(), venn.maps.Platt()), BrierLoss(), rates=[0.1, np.float64(0.01)], passive=0.25
    )
    again = eval(repr(model), public())
    assert repr(again) == repr(model)
    assert "rates=(0.1, 0.01), passive=0.25" in repr(model)
    assert again.classes == CLASSES
    assert LogLoss() == LogLoss() != BrierLoss()


def test_a_loss_of_ones_own():
    class Half(LogLoss):
        def losses(self, log_rows, code):
            return super().losses(log_rows, code) / 2

    p, y = stream("bold", 16, 200, 2)
    slow, fast = Protected(Given(), Half()), Protected(Given())
    for row, label in zip(p, y, strict=True):
        slow.learn_one(row, label)
        fast.learn_one(row, label)
    assert 0 < slow.gain < fast.gain


# Bad input ----------------------------------------------------------------------------------------------------------


def everything(model):
    return pickle.dumps([model.state, model.machine])


@pytest.mark.parametrize("base", ["machine", "no machine"])
def test_a_refused_example_leaves_no_trace(base):
    model = Protected(venn.Scaler(squares(), venn.maps.Platt()) if base == "machine" else Given(3))
    good = [0.25, 0.25] if base == "machine" else [0.25, 0.25, 0.5]
    known = "a" if base == "machine" else 0
    model.learn_one(good, known)
    before, said = everything(model), model.predict_one(good).proba.tolist()
    for x, y, says in (
        (good, "d", "y must be one of the classes"), (good, None, "y must"), (good, ["a"], "y must"),
        (good, math.nan, "y must"), ([math.nan] * len(good), known, "must"), ("ab", known, None), (None, known, None),
        ([0.5], known, "must"), ({}, known, None),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=says):
            model.learn_one(x, y)
        with pytest.raises((ValueError, TypeError)):
            model.note(x, y)
        assert everything(model) == before
        assert model.predict_one(good).proba.tolist() == said


def test_a_base_that_is_no_forecaster_is_refused():
    for bad in (None, "platt", Protected, squares(), venn.Panel(a=Given()), 3):
        with pytest.raises(TypeError, match="predictor must be a predictor"):
            Protected(bad)

    class Sets(Given):
        def predict_one(self, x):
            return PredictionSet(np.array([0.5, 0.5]), self.classes)

    class Wrong(Given):
        def predict_one(self, x):
            return type("Own", (), {"proba": x})()

    with pytest.raises(
        TypeError, match=r"predictor must give predictions with .proba, got PredictionSet by Given\(2\)"
    ):
        Protected(Sets()).predict_one([0.0])
    for proba in ([0.5, math.nan], [0.5, 0.6], [1.5, -0.5], [1.0], [0.2, 0.3, 0.5]):
        for ask in (Protected(Wrong()).predict_one, lambda x: Protected(Wrong()).learn_one(x, 0)):
            with pytest.raises(ValueError, match="proba of the predictor must"):
                ask(proba)


def test_bad_parameters_are_refused():
    for loss in ("log", LogLoss, 1, object()):
        with pytest.raises(TypeError, match="loss must be a loss object"):
            Protected(Given(), loss)
    for rates in (0.1, "0.1", (), None, {0.1}):
        with pytest.raises(TypeError, match="rates must be a sequence of numbers"):
            Protected(Given(), rates=rates)
    for value in (0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, "x", None, True):
        with pytest.raises((ValueError, TypeError), match=r"passive must be a number in \(0, 1\), got"):
            Protected(Given(), passive=value)
        with pytest.raises((ValueError, TypeError), match=r"rates must be a number in \(0, 1\), got"):
            Protected(Given(), rates=[0.1, value])


@pytest.mark.parametrize(
    "x", [[10**400, 0.0], [1j, 0.0], np.array([1j, 0.0])], ids=["huge", "complex", "complex array"]
)
def test_objects_that_are_no_numbers_are_refused_by_the_base(x):
    model = Protected(venn.Scaler(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ("no", "yes")), venn.maps.Platt()))
    model.learn_one([0.0, 1.0], "no")
    for call in (model.predict_one, lambda x: model.learn_one(x, "yes"), lambda x: model.note(x, "yes")):
        with pytest.raises((TypeError, ValueError), match="x must"):
            call(x)
    assert model.predict_one([0.0, 1.0]).classes == ("no", "yes")
