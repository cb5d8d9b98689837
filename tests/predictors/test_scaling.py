"""Platt, binning and isotonic scaling: equal to their definitions after every step."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import scaling as naive

import venn
from venn.machines.machine import Bag
from venn.maps.beta_calibration import BetaCalibration
from venn.maps.binning import Binning, EqualFrequency, EqualWidth
from venn.maps.isotonic import Isotonic
from venn.maps.one_vs_all import OneVsAll
from venn.maps.platt import Platt
from venn.maps.temperature import Temperature
from venn.predictors.scaling import LeaveOneOutScores, ScoreCalibrator


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
    return ScoreCalibrator(machine, Platt(), **options)


def isotonic(machine, interpolation="step", **options):
    return ScoreCalibrator(machine, Isotonic(interpolation), **options)


def binning(machine, bins=10, edges=None, laplace=False, **options):
    return ScoreCalibrator(machine, Binning(bins, edges or EqualWidth(), laplace), **options)


KINDS = {
    "platt": (platt, naive.platt),
    "step": (isotonic, partial(naive.isotonic, interpolation="step")),
    "linear": (partial(isotonic, interpolation="linear"), partial(naive.isotonic, interpolation="linear")),
    "width": (partial(binning, bins=5), partial(naive.binning, bins=5, frequency=False, laplace=False)),
    "fine": (partial(binning, bins=130, laplace=True), partial(naive.binning, bins=130, frequency=False, laplace=True)),
    "frequency": (
        partial(binning, bins=4, edges=EqualFrequency()),
        partial(naive.binning, bins=4, frequency=True, laplace=False),
    ),
    "laplace": (partial(binning, laplace=True), partial(naive.binning, bins=10, frequency=False, laplace=True)),
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
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_must_be_finite(kind, bad):
    with pytest.raises(ValueError, match=f"scores must be finite, got -?{bad}"):
        KINDS[kind][0](FixedMachine([0.0, bad], [0, 1]))


def test_maps_may_be_fitted_to_deleted_scores():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    machine = venn.LeastSquaresSVM(venn.RBF(5.0), C=100, classes=range(3))
    for x, label in zip(X, y, strict=True):
        machine.learn_one(x, label)

    class TrainedOnThem:
        """A machine whose training scores are the other one's leave-one-out scores."""

        classes, n, learned, bag = machine.classes, machine.n, machine.n, machine.leave_one_out_bag
        hypotheses = machine.hypotheses

    for make in (platt, binning, isotonic):
        predictor = make(machine, source=LeaveOneOutScores())
        for x in rng.normal(size=(10, 2)):
            assert np.array_equal(predictor.predict_one(x).proba, make(TrainedOnThem()).predict_one(x).proba)
        assert not np.allclose(predictor.predict_one(X[0]).proba, make(machine).predict_one(X[0]).proba)


# Maps that are fitted from nothing each time

OTHERS = {
    "beta calibration": BetaCalibration(), "temperature": Temperature(), "of all": OneVsAll(Platt()),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_any_map_is_fitted_after_every_example(name):
    score_map, machine = OTHERS[name], FakeMachine("abc", seed=2, levels=0)
    predictor = ScoreCalibrator(machine, score_map)
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
    predictor = ScoreCalibrator(FixedMachine([-1, 1], [0, 1]), score_map)
    assert score_map.steps == 1
    assert list(predictor.predict_one([0.5]).proba) == [0.25, 0.75]


def test_a_map_that_cannot_be_fitted_leaves_the_example_learned():
    class Moody:
        def fit(self, scores, labels, weights=None):
            if weights.sum() == 2:
                raise ArithmeticError("not today")
            return Platt().fit(scores, labels, weights)

    predictor = ScoreCalibrator(FakeMachine("ab"), Moody())
    predictor.learn_one([1.0], "a")
    with pytest.raises(ArithmeticError, match="not today"):
        predictor.learn_one([2.0], "b")
    assert predictor.n == 2
    with pytest.raises(RuntimeError, match="all 2 examples of its machine, got a failed fit: not today"):
        predictor.predict_one([1.0])
    with pytest.raises(ValueError, match="x must be finite"):
        predictor.learn_one([np.nan], "a")
    predictor.learn_one([3.0], "b")
    assert predictor.predict_one([1.0]).proba.sum() == pytest.approx(1)


def test_what_is_loaded_after_a_failed_fit_says_why_it_failed(tmp_path, monkeypatch):
    predictor = ScoreCalibrator(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ("a", "b")), Platt())
    for x, y in [([0.0], "a"), ([1.0], "b"), ([0.2], "b")]:
        predictor.learn_one(x, y)

    def fails(*_):
        raise ArithmeticError("not today")

    with monkeypatch.context() as patch:
        patch.setattr(type(predictor.fitted), "fit", fails)
        with pytest.raises(ArithmeticError, match="not today"):
            predictor.learn_one([0.8], "a")
    venn.save(tmp_path / "scaler.venn", predictor)
    loaded = venn.load(tmp_path / "scaler.venn")
    for one in (predictor, loaded):
        with pytest.raises(RuntimeError, match="all 4 examples of its machine, got a failed fit: not today"):
            one.predict_one([0.5])
        one.learn_one([0.9], "b")
    assert loaded.predict_one([0.5]).proba.tolist() == predictor.predict_one([0.5]).proba.tolist()
