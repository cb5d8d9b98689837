"""Platt, binning and isotonic scaling: equal to their definitions after every step."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import scaling as naive
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

import venn
from venn._compiled.scaling import sort_again
from venn.machines.machine import Bag, NotConverged
from venn.maps.beta import Beta2, BetaScaling
from venn.maps.beta_calibration import BetaCalibration
from venn.maps.classes import OneVsAll, Temperature
from venn.maps.sigmoids import Platt, Sigma01, SigmaPP, Softmax
from venn.maps.steps import Binning, EqualFrequency, EqualWidth, Isotonic
from venn.online.panel import Panel
from venn.predictors.scaling import Scaler
from venn.predictors.score_sources import DeletedScores, TrainingScores


class Known:
    """The answer of the fake machine."""

    def __init__(self, test_scores):
        self.test_scores = test_scores


class FakeMachine:
    """Scores are a function of seed, step and object, and all change at every step.

    They lie on a coarse grid of `levels`, or drift smoothly if there are none. An object is one whole
    number; equal objects are one entry of the bag.
    """

    tuning = None

    def __init__(self, classes=("a", "b", "c"), seed=0, levels=4):
        self.classes = tuple(classes)
        self.seed = seed
        self.levels = levels
        self.objects = []
        self.counts = np.zeros((0, len(self.classes)), np.int64)
        self.history = []

    @property
    def n(self):
        return len(self.history)

    learned = n

    def score(self, obj):
        c = len(self.classes)
        if self.levels:
            rng = np.random.default_rng([self.seed, self.n, obj])
            return rng.integers(-self.levels, self.levels + 1, c) / 2
        drift = 0.01 * np.random.default_rng([self.seed, self.n, obj]).normal(size=c)
        return np.random.default_rng([self.seed, obj]).normal(size=c) + drift

    @property
    def bag(self):
        scores = np.array([self.score(obj) for obj in self.objects]).reshape(-1, len(self.classes))
        return Bag(np.ascontiguousarray(scores.T), self.counts.copy())

    def hypotheses(self, x):
        if not np.isfinite(x[0]):
            raise ValueError(f"x must be finite, got {x[0]}")
        return Known(self.score(int(x[0])))

    def check(self, x, y):
        self.hypotheses(x)
        if y not in self.classes:
            raise ValueError(f"y must be a class, got {y!r}")

    def learn_one(self, x, y):
        self.check(x, y)
        obj, k = int(x[0]), self.classes.index(y)
        if obj not in self.objects:
            self.objects.append(obj)
            self.counts = np.vstack([self.counts, np.zeros_like(self.counts[:0].sum(axis=0))])
        self.counts[self.objects.index(obj), k] += 1
        self.history.append((obj, k))

    def examples(self):
        """The (c, n) scores and n class codes of the examples one by one."""
        scores = np.array([self.score(obj) for obj, _ in self.history]).reshape(-1, len(self.classes)).T
        return scores, [k for _, k in self.history]


class FixedMachine:
    """A machine whose bag is given: binary, the second class's scores are those of the first negated."""

    classes, tuning = (0, 1), None

    def __init__(self, scores, positives, totals=None):
        self.set(scores, positives, totals)

    def set(self, scores, positives, totals=None):
        scores, positives = np.asarray(scores, float), np.asarray(positives, np.int64)
        totals = np.ones_like(positives) if totals is None else np.asarray(totals, np.int64)
        self.bag = Bag(np.array([-scores, scores]), np.column_stack([totals - positives, positives]))
        self.n = self.learned = int(totals.sum())

    def hypotheses(self, x):
        return Known(np.array([-x[0], x[0]], float))

    def learn_one(self, x, y):
        raise AssertionError("not taught in these tests")


def binary(predictor, scores):
    """The map of the second class alone, before normalising."""
    return np.array([predictor.fitted(np.array([-s, s], float))[1] for s in scores])


def platt(machine, **options):
    return Scaler(machine, Platt(), **options)


def isotonic(machine, interpolation="step", **options):
    return Scaler(machine, Isotonic(interpolation), **options)


def binning(machine, bins=10, edges=None, laplace=False, **options):
    return Scaler(machine, Binning(bins, edges, laplace), **options)


KINDS = {
    "platt": (platt, naive.platt),
    "step": (isotonic, partial(naive.isotonic, interpolation="step")),
    "linear": (partial(isotonic, interpolation="linear"), partial(naive.isotonic, interpolation="linear")),
    "width": (partial(binning, bins=5), partial(naive.binning, bins=5, frequency=False, laplace=False)),
    "fine": (
        partial(binning, bins=130, laplace=True),
        partial(naive.binning, bins=130, frequency=False, laplace=True),
    ),
    "frequency": (
        partial(binning, bins=4, edges=EqualFrequency()),
        partial(naive.binning, bins=4, frequency=True, laplace=False),
    ),
    "laplace": (
        partial(binning, laplace=True),
        partial(naive.binning, bins=10, frequency=False, laplace=True),
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def stream(seed, n, objects, classes):
    """A stream full of duplicates; the first examples are of one class."""
    rng = np.random.default_rng([7, seed])
    for i in range(n):
        yield [float(rng.integers(objects))], classes[0 if i < 4 else rng.integers(len(classes))]


def assert_forecast(forecast, expected, tolerance):
    np.testing.assert_allclose(forecast.proba, expected, rtol=0, atol=tolerance)
    assert forecast.proba.sum() == pytest.approx(1, abs=1e-12)
    assert forecast.index == forecast.proba.argmax()


@every_kind
@pytest.mark.parametrize("seed", [1, 2, 3])  # of 3, 4 and 2 classes, the last without ties
def test_every_step_matches_the_definition(kind, seed):
    make, fit = KINDS[kind]
    machine = FakeMachine("abcd"[: 2 + seed % 3], seed, levels=3 if seed < 3 else 0)
    predictor = make(machine)
    for x, y in stream(seed, 22, 10, machine.classes):
        forecast = predictor.predict_one(x)
        expected = naive.forecast(fit, *machine.examples(), machine.hypotheses(x).test_scores)
        assert_forecast(forecast, expected, 1e-7 if kind == "platt" else 1e-14)
        predictor.learn_one(x, y)


@every_kind
def test_real_machine(kind):
    make, fit = KINDS[kind]
    machine = venn.OneVsAllSVM(venn.RBF(0.5), C=2, classes=["a", "b", "c"])
    predictor = make(machine)
    rng = np.random.default_rng(3)
    for _ in range(25):
        x = rng.integers(0, 4, 2).astype(float)
        bag = machine.bag
        scores, labels = [], []
        for i, row in enumerate(bag.counts):
            for k, times in enumerate(row):
                scores += [bag.scores[:, i]] * times
                labels += [k] * times
        scores = np.array(scores).reshape(-1, 3).T
        expected = naive.forecast(fit, scores, labels, machine.scores(x))
        assert_forecast(predictor.predict_one(x), expected, 1e-7)
        predictor.learn_one(x, ["a", "b", "c"][int(x.sum()) % 3 if rng.random() < 0.8 else 0])


def test_panel_shares_the_machine_and_answers_as_alone():
    together = FakeMachine(seed=5)
    panel = Panel(**{kind: make(together) for kind, (make, _) in KINDS.items()})
    alone = {kind: make(FakeMachine(seed=5)) for kind, (make, _) in KINDS.items()}
    for x, y in stream(5, 25, 9, together.classes):
        for kind, forecast in panel.predict_one(x).items():
            assert (forecast.proba == alone[kind].predict_one(x).proba).all()
        panel.learn_one(x, y)
        for predictor in alone.values():
            predictor.learn_one(x, y)


# Platt


def platt_cases():
    rng = np.random.default_rng(11)
    f = rng.normal(size=60)
    y = (rng.random(60) < 1 / (1 + np.exp(-2 * f))).astype(int)
    yield "plain", f, y
    yield "large", 1e6 * f, y
    yield "small", 1e-9 * f, y
    yield "far from 0", 1e6 + f, y
    yield "ties", np.round(f), y
    yield "separable", f, (f > 0).astype(int)
    yield "separable, +-1e6", np.where(f > 0, 1e6, -1e6), (f > 0).astype(int)
    yield "wrong way round", f, (f < 0).astype(int)
    yield "one outlier", np.append(f, 1e6), np.append(y, 0)
    yield "one consistent outlier", np.append(f, 1e6), np.append(y, 1)
    yield "one positive", f, (np.arange(60) == 17).astype(int)
    yield "two scores", np.repeat([-1.0, 1.0], 30), y
    yield "no relation", f, np.arange(60) % 2


@pytest.mark.parametrize(("f", "y"), [case[1:] for case in platt_cases()], ids=[case[0] for case in platt_cases()])
def test_platt_minimises_its_objective(f, y):
    predictor = platt(FixedMachine(f, y))
    p = binary(predictor, f)
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all() or f.max() > 10
    # Stationary: p's residuals are orthogonal to 1 and to the scores, far below what 1e-6 in p needs.
    residual = naive.soft_targets(y) - p
    z = (f - f.mean()) / abs(f - f.mean()).max()
    assert abs(residual.sum()) < 1e-9
    assert abs((residual * z).sum()) < 1e-9
    # A generic minimiser that sees the objective's values and slopes only.
    scale = abs(f - f.mean()).max()
    found = minimize(lambda ab: naive.platt_objective(z, y, *ab), np.zeros(2), jac=True, options={"gtol": 1e-8})
    outlying = scale > 100 * np.median(abs(f - np.median(f)))  # too badly conditioned for the generic one
    if not outlying:
        np.testing.assert_allclose(p, 1 / (1 + np.exp(found.x[0] * z + found.x[1])), atol=1e-6, rtol=0)
        A, B = predictor.fitted.coefficients[1]
        np.testing.assert_allclose([A * scale, B + A * f.mean()], found.x, rtol=2e-6, atol=1e-5)
    slope, offset, centre = predictor.fitted._maps[1]
    ours = naive.platt_objective(z, y, slope * scale, slope * (f.mean() - centre) + offset)[0]
    assert ours <= found.fun + 1e-9


@pytest.mark.parametrize("name", ["plain", "ties", "separable", "one positive", "no relation"])
def test_platt_is_scikit_learns_sigmoid(name):
    f, y = next(case[1:] for case in platt_cases() if case[0] == name)
    reference = _SigmoidCalibration().fit(f, y)
    grid = np.linspace(-3, 3, 50)
    # Theirs stops at a gradient of 1e-6 on half the objective, or earlier.
    np.testing.assert_allclose(binary(platt(FixedMachine(f, y)), grid), reference.predict(grid), atol=2e-4, rtol=0)


@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_platt_of_one_class_is_its_target(n, y):
    predictor = platt(FixedMachine(np.arange(n), np.full(n, y)))
    assert binary(predictor, [-1e6, 0, 3, 1e6]) == pytest.approx((n + 1) / (n + 2) if y else 1 / (n + 2), rel=1e-14)


def test_platt_of_equal_scores_is_the_mean_target():
    predictor = platt(FixedMachine(np.full(5, 0.3), [1, 1, 0, 0, 0]))
    assert binary(predictor, [-9, 0.3, 9]) == pytest.approx((2 * 3 / 4 + 3 * 1 / 5) / 5, rel=1e-14)


def test_platt_does_not_remember_where_it_started():
    rng = np.random.default_rng(2)
    machine = FixedMachine([0.0], [1])
    followed = platt(machine)
    for step in range(120):
        n = int(rng.integers(1, 40))
        f = rng.normal(size=n) * 10.0 ** rng.integers(-8, 7) + rng.choice([0, 3, 1e6])
        y = (f > np.median(f)) if step % 3 == 0 else rng.random(n) < 0.4
        machine.set(f, y)
        followed.after_learning(None, None)
        np.testing.assert_allclose(binary(followed, f), binary(platt(machine), f), atol=1e-10, rtol=0)


def test_platt_says_when_it_does_not_converge():
    machine = FixedMachine([-1.0, 0.5, 1.0], [0, 1, 1])
    predictor = platt(machine)
    for size in (1e200, 1e-200):  # squares overflow, squares vanish
        machine.set([-size, -size, size, size], [0, 0, 1, 0])
        with pytest.raises(NotConverged, match="class 0 must converge"):
            predictor.after_learning(None, None)
        with pytest.raises(RuntimeError, match="all 4 examples of its machine, got a failed fit"):
            predictor.predict_one([0.0])
    machine.set([-1.0, 0.5, 1.0], [0, 1, 1])
    predictor.after_learning(None, None)
    expected = platt(machine).predict_one([0.2]).proba
    assert predictor.predict_one([0.2]).proba == pytest.approx(expected, abs=1e-12)


def test_platt_coefficients_before_the_first_example():
    assert np.isnan(platt(FakeMachine()).fitted.coefficients).all()


# Isotonic


def test_pool_adjacent_violators_averages_by_weight():
    predictor = isotonic(FixedMachine([1, 2, 3], [1, 1, 0]))
    assert (binary(predictor, [1, 2, 3]) == 2 / 3).all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_isotonic_is_the_weighted_reference(seed, interpolation):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 400))
    f = rng.normal(size=m) if seed % 2 else rng.integers(0, 30, m) / 8
    totals = rng.integers(1, 6, m)
    positives = rng.binomial(totals, 1 / (1 + np.exp(-f)))
    reference = IsotonicRegression(out_of_bounds="clip").fit(f, positives / totals, sample_weight=totals)
    predictor = isotonic(FixedMachine(f, positives, totals), interpolation)
    np.testing.assert_allclose(binary(predictor, f), reference.predict(f), atol=1e-12, rtol=0)
    grid = np.concatenate([rng.uniform(f.min() - 1, f.max() + 1, 50), [-1e6, 1e6]])
    if interpolation == "linear":
        np.testing.assert_allclose(binary(predictor, grid), reference.predict(grid), atol=1e-9, rtol=0)
    else:
        below = [f[f <= s].max() if (f <= s).any() else f.min() for s in grid]
        np.testing.assert_allclose(binary(predictor, grid), reference.predict(below), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("ends", "at"),
    [
        ([-1.6e308, 1.6e308], [-0.8e308, 0.0, 0.8e308]),  # the difference overflows
        ([3 * 5e-324, 7 * 5e-324], [4 * 5e-324, 5 * 5e-324, 6 * 5e-324]),  # halves of neighbours are equal
        ([3 * 5e-324, 5 * 5e-324], [3 * 5e-324, 4 * 5e-324, 5 * 5e-324]),
    ],
)
def test_straight_lines_at_the_ends_of_the_numbers(ends, at):
    expected = [0, 0.5, 1] if at[0] == ends[0] else [0.25, 0.5, 0.75]
    assert list(binary(isotonic(FixedMachine(ends, [0, 1]), "linear"), at)) == expected
    assert list(Isotonic("linear").fit(ends, [0, 1])(at)) == expected


def test_isotonic_keeps_up_with_moving_scores():
    rng = np.random.default_rng(9)
    f, y = rng.normal(size=80), rng.integers(0, 2, 80)
    machine = FixedMachine(f, y)
    predictor = isotonic(machine)
    for step in range(150):
        f = f + rng.normal(size=len(f)) * (3.0 if step % 25 == 0 else 0.01)
        if step % 3:
            f, y = np.append(f, rng.normal()), np.append(y, rng.integers(0, 2))
        if step == 100:  # fewer objects than before
            f, y = f[:50], y[:50]
        machine.set(f, y)
        predictor.after_learning(None, None)
        assert (f[predictor.fitted._order[1]] == np.sort(f)).all()
        reference = IsotonicRegression().fit(f, y).predict(f)
        np.testing.assert_allclose(binary(predictor, f), reference, atol=1e-12, rtol=0)


@given(st.lists(st.integers(-3, 3), max_size=150), st.sampled_from(["as is", "sorted", "reversed", "last moved"]))
@settings(deadline=None)
def test_sorting_again_is_a_stable_sort(values, shape):
    keys = np.array(values, float)
    if shape == "reversed":
        keys = np.sort(keys)[::-1].copy()
    elif shape != "as is":
        keys = np.sort(keys)
        if shape == "last moved" and len(keys):
            keys[-1] = -1.0
    order = keys.argsort(kind="stable")
    expected = keys[order]
    items = np.arange(len(keys))
    sort_again(keys, items, np.empty(len(keys)), np.empty(len(keys), np.int64))
    assert (keys == expected).all()
    assert (items == order).all()


# Binning


def test_bins_hold_their_lower_edge():
    predictor = binning(FixedMachine([0, 1, 2, 3, 4], [0, 0, 1, 0, 1]), bins=4)
    # [0, 1) [1, 2) [2, 3) [3, 4]; outside: the end bins.
    assert list(binary(predictor, [-5, 0, 0.999, 1, 2, 2.5, 3, 4, 7])) == [0, 0, 0, 0, 1, 1, 0.5, 0.5, 0.5]


def test_an_empty_bin_takes_the_nearest_the_lower_of_two():
    f, y = [0, 0, 0.5, 3.5, 8], [0, 1, 1, 0, 1]
    predictor = binning(FixedMachine(f, y), bins=8)
    rates = [2 / 3, 2 / 3, 0, 0, 0, 0, 1, 1]
    assert list(binary(predictor, np.arange(8) + 0.25)) == rates
    laplace = binning(FixedMachine(f, y), bins=8, laplace=True)
    assert list(binary(laplace, np.arange(8) + 0.25)) == [3 / 5, 3 / 5, *[1 / 3] * 4, 2 / 3, 2 / 3]
    # Bins 0 and 2 are equally near to bin 1.
    tie = binning(FixedMachine([0, 3], [0, 1]), bins=3)
    assert list(binary(tie, [0.5, 1.5, 2.5])) == [0, 0, 1]


@pytest.mark.parametrize("edges", [EqualWidth(), EqualFrequency()])
def test_equal_scores_are_one_bin(edges):
    predictor = binning(FixedMachine([0.1] * 4, [1, 0, 0, 0]), edges=edges)
    assert list(binary(predictor, [-1, 0.1, 1])) == [0.25] * 3


def test_equal_frequency_shares_the_examples_out():
    rng = np.random.default_rng(1)
    f = rng.normal(size=103)
    cuts = EqualFrequency().cuts(f[None], np.ones(103, np.int64), 10)[0]
    sizes = np.bincount(cuts.searchsorted(f, side="right"), minlength=10)
    assert set(sizes) == {10, 11}


def test_one_bin_is_the_rate_of_the_class():
    machine = FakeMachine(seed=1)
    predictor = binning(machine, bins=1)
    for x, y in stream(1, 30, 8, machine.classes):
        predictor.learn_one(x, y)
    rates = machine.counts.sum(axis=0) / 30
    assert predictor.predict_one([0.0]).proba == pytest.approx(rates, abs=1e-15)


def test_own_edges():
    class AtZero:
        def cuts(self, scores, totals, bins):
            return np.zeros((len(scores), bins - 1))

    predictor = binning(FixedMachine([-1, -2, 3, 5], [0, 1, 1, 1]), bins=2, edges=AtZero())
    assert list(binary(predictor, [-1, 0])) == [0.5, 1]
    for cuts in ([1.0, 0.0], [np.nan], [np.inf], [0.0, np.inf], [0.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match=rf"edges must give 2 rows of {len(cuts)} finite nondecreasing cuts, got"):
            binning(FixedMachine([0, 1], [0, 1]), bins=len(cuts) + 1, edges=Same(cuts))
    with pytest.raises(ValueError, match="edges must give 2 rows of 9 finite"):  # a range that overflows
        binning(FixedMachine([-1.7e308, 1.7e308], [0, 1]))


class Same:
    def __init__(self, cuts):
        self.row = cuts

    def cuts(self, scores, totals, bins):
        return np.tile(self.row, (len(scores), 1))


# What all have in common


@every_kind
def test_before_the_first_example_the_forecast_is_uniform(kind):
    predictor = KINDS[kind][0](FakeMachine("abcd"))
    forecast = predictor.predict_one([1.0])
    assert (forecast.proba == 0.25).all()
    assert forecast.label == "a"
    with pytest.raises(ValueError, match="x must be finite"):
        predictor.predict_one([np.nan])


def test_all_zero_is_uniform_and_ties_go_to_the_first_class():
    # Between the scores of the two classes both step functions are 0.
    forecast = isotonic(FixedMachine([-1, 1], [0, 1])).predict_one([0.0])
    assert list(forecast.proba) == [0.5, 0.5]
    assert forecast.label == 0


@pytest.mark.parametrize("kind", ["step", "linear", "width", "frequency"])
def test_a_class_without_examples_has_probability_0(kind):
    machine = FakeMachine("abc", seed=4)
    predictor = KINDS[kind][0](machine)
    for x, _ in stream(4, 20, 9, machine.classes):
        predictor.learn_one(x, "b")
        assert list(predictor.predict_one(x).proba) == [0, 1, 0]


count = st.integers(0, 3)  # negatives, positives at a score
counts = st.lists(st.tuples(st.integers(-6, 6), count, count), min_size=1, max_size=25).filter(
    lambda rows: any(p + q for _, p, q in rows)
)
GRID = np.linspace(-4, 4, 33)


def grouped_machine(rows):
    """A machine with one object for each (score, positives, negatives)."""
    return FixedMachine([s for s, _, _ in rows], [p for _, p, _ in rows], [p + q for _, p, q in rows])


@every_kind
@given(counts)
@settings(deadline=None, max_examples=30)
def test_a_count_is_a_weight_and_order_does_not_matter(kind, rows):
    make = KINDS[kind][0]
    rows = [(s / 2, p, q) for s, p, q in rows if p + q]
    grouped = make(grouped_machine(rows))
    examples = [(s, y) for s, p, q in rows for y in [1] * p + [0] * q]
    single = make(FixedMachine(*map(list, zip(*examples, strict=True))))
    np.random.default_rng(len(rows)).shuffle(examples)
    shuffled = make(FixedMachine(*map(list, zip(*examples, strict=True))))
    for other in (single, shuffled):
        difference = binary(grouped, GRID) - binary(other, GRID)
        assert abs(difference).max() <= (1e-11 if kind == "platt" else 0)


@pytest.mark.parametrize("kind", ["platt", "step", "linear"])
@given(counts)
@settings(deadline=None, max_examples=50)
def test_maps_are_monotone_probabilities(kind, rows):
    predictor = KINDS[kind][0](grouped_machine([row for row in rows if row[1] + row[2]]))
    p = binary(predictor, np.linspace(-8, 8, 161))
    assert ((p >= 0) & (p <= 1)).all()
    steps = np.diff(p)
    assert (steps >= 0).all() or (kind == "platt" and (steps <= 0).all())


@every_kind
def test_predicting_leaves_no_trace(kind):
    make = KINDS[kind][0]
    asked, quiet = make(FakeMachine(seed=6)), make(FakeMachine(seed=6))
    for x, y in stream(6, 25, 10, asked.classes):
        before = pickle.dumps(asked)
        first = asked.predict_one(x).proba
        asked.predict_one([99.0])
        assert pickle.dumps(asked) == before
        assert (asked.predict_one(x).proba == first).all()
        assert (quiet.predict_one(x).proba == first).all()
        asked.learn_one(x, y)
        quiet.learn_one(x, y)


@every_kind
@pytest.mark.parametrize("kept", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))], ids=["copy", "pickle"])
def test_saved_and_continued_equals_never_stopped(kind, kept):
    predictor = KINDS[kind][0](FakeMachine(seed=8))
    examples = list(stream(8, 30, 12, predictor.classes))
    for x, y in examples[:15]:
        predictor.learn_one(x, y)
    other = kept(predictor)
    assert other.machine is not predictor.machine
    for x, y in examples[15:]:
        assert (other.predict_one(x).proba == predictor.predict_one(x).proba).all()
        predictor.learn_one(x, y)
        other.learn_one(x, y)


@every_kind
def test_a_predictor_may_join_late(kind):
    make = KINDS[kind][0]
    machine = FakeMachine(seed=3)
    early = make(machine)
    for x, y in stream(3, 20, 12, machine.classes):
        early.learn_one(x, y)
    expected = early.predict_one([2.0]).proba
    assert make(machine).predict_one([2.0]).proba == pytest.approx(expected, abs=1e-10)


@every_kind
def test_a_map_that_missed_an_example_is_not_used(kind):
    machine = FakeMachine()
    predictor = KINDS[kind][0](machine)
    predictor.learn_one([1.0], "a")
    machine.learn_one([2.0], "b")
    with pytest.raises(RuntimeError, match="all 2 examples of its machine, got a fit to 1: share a machine"):
        predictor.predict_one([1.0])


@every_kind
def test_a_refused_example_changes_nothing(kind):
    predictor = KINDS[kind][0](FakeMachine())
    predictor.learn_one([1.0], "a")
    before = pickle.dumps(predictor)
    for x, y in [([np.nan], "a"), ([1.0], "z")]:
        with pytest.raises(ValueError, match="must be"):
            predictor.learn_one(x, y)
    assert pickle.dumps(predictor) == before


@every_kind
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_must_be_finite(kind, bad):
    with pytest.raises(ValueError, match=f"scores must be finite, got -?{bad}"):
        KINDS[kind][0](FixedMachine([0.0, bad], [0, 1]))


@every_kind
@pytest.mark.parametrize("machine", [None, FakeMachine, 3, "svm"])
def test_machine_must_be_one(kind, machine):
    with pytest.raises(TypeError, match="machine must be a machine object, with a method 'hypotheses', got"):
        KINDS[kind][0](machine)


def test_repr_shows_the_parameters():
    machine = venn.OneVsAllSVM(venn.RBF(0.5), C=2, classes=["a", "b"])
    shown = f"Scaler({machine!r}, map=Isotonic(interpolation='linear'), source=DeletedScores())"
    assert repr(isotonic(machine, "linear", source=DeletedScores())) == shown


def test_maps_may_be_fitted_to_deleted_scores():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    machine = venn.LeastSquaresSVM(venn.RBF(5.0), C=100, classes=range(3))
    for x, label in zip(X, y, strict=True):
        machine.learn_one(x, label)

    class TrainedOnThem:
        """A machine whose training scores are the other one's deleted scores."""

        classes, n, learned, bag = machine.classes, machine.n, machine.n, machine.deleted_bag
        hypotheses = machine.hypotheses

    for make in (platt, binning, isotonic):
        predictor = make(machine, source=DeletedScores())
        for x in rng.normal(size=(10, 2)):
            assert np.array_equal(predictor.predict_one(x).proba, make(TrainedOnThem()).predict_one(x).proba)
        assert not np.allclose(predictor.predict_one(X[0]).proba, make(machine).predict_one(X[0]).proba)


# Maps that are fitted from nothing each time

OTHERS = {
    "softmax": Softmax(),
    "sigma-01": Sigma01(),
    "sigma-PP": SigmaPP(),
    "Beta": BetaScaling(),
    "Beta-2": Beta2(),
    "beta calibration": BetaCalibration(),
    "temperature": Temperature(),
    "of all": OneVsAll(Platt()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_any_map_is_fitted_after_every_example(name):
    score_map, machine = OTHERS[name], FakeMachine("abc", seed=2, levels=0)
    predictor = Scaler(machine, score_map)
    for i, (x, y) in enumerate(stream(2, 25, 10, machine.classes)):
        if i:
            scores, codes = machine.examples()
            test = machine.hypotheses(x).test_scores
            whole = score_map if getattr(score_map, "of_all_classes", False) else OneVsAll(score_map)
            expected = whole.fit(scores.T, codes)(test[None])[0]
            np.testing.assert_allclose(predictor.predict_one(x).proba, expected, rtol=0, atol=1e-6)
        predictor.learn_one(x, y)


def test_a_new_map_needs_one_method():
    class Clip:
        def fit(self, scores, labels, weights=None):
            self.steps = weights[labels == 1].sum()
            return lambda s: np.clip((1 + s) / 2, 0, 1)

    score_map = Clip()
    predictor = Scaler(FixedMachine([-1, 1], [0, 1]), score_map)
    assert score_map.steps == 1
    assert list(predictor.predict_one([0.5]).proba) == [0.25, 0.75]


def test_a_map_that_cannot_be_fitted_leaves_the_example_learned():
    class Moody:
        def fit(self, scores, labels, weights=None):
            if weights.sum() == 2:
                raise ArithmeticError("not today")
            return Softmax().fit(scores, labels, weights)

    predictor = Scaler(FakeMachine("ab"), Moody())
    predictor.learn_one([1.0], "a")
    with pytest.raises(ArithmeticError, match="not today"):
        predictor.learn_one([2.0], "b")
    assert predictor.n == 2
    with pytest.raises(RuntimeError, match="all 2 examples of its machine, got a failed fit"):
        predictor.predict_one([1.0])
    with pytest.raises(ValueError, match="x must be finite"):
        predictor.learn_one([np.nan], "a")
    predictor.learn_one([3.0], "b")
    assert predictor.predict_one([1.0]).proba.sum() == pytest.approx(1)


@pytest.mark.parametrize("bad", [None, Platt, "platt", 3])
def test_map_must_be_one(bad):
    with pytest.raises(TypeError, match="map must be an object with a method 'fit', such as Platt"):
        Scaler(FakeMachine(), bad)


@pytest.mark.parametrize("bad", [TrainingScores, "train", True, 3])
def test_source_must_be_one(bad):
    with pytest.raises(TypeError, match="source must be an object with a method 'feed', such as TrainingScores"):
        Scaler(FakeMachine(), Platt(), bad)
