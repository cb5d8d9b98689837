"""Intervals with a long-run error rate: against their definition, against adversaries, and late."""

import math

import numpy as np
import pytest
from conftest import refused
from naive.adaptive import Adaptive as Naive

import venn
from venn.distribution import NormalDistribution
from venn.labels import Real
from venn.machines import KernelRidge
from venn.predictors import (
    AdaptiveIntervals,
    ConformalDistribution,
    ConformalIntervals,
    ConstantSteps,
    DecayingSteps,
    InductiveDistribution,
    Predictor,
)  # fmt: skip

LEVELS = (0.05, 0.1, 0.3)


def ridge():
    return KernelRidge(venn.RBF(0.5), 2.0)


def drifting(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)) / 2
    noise = np.round(rng.normal(size=n) * (1 + 9 * (np.arange(n) > n // 2)), 1)
    return X, (X.sum(axis=1) + noise).tolist()


def by_definition(inner, thresholds):
    """Return the interval of each level, from the predictor's own at the largest threshold so far."""
    found, largest = [], -math.inf
    for threshold in thresholds:
        largest = max(largest, threshold)
        if largest <= 0:
            found.append((-math.inf, math.inf))
        else:
            found.append((inner.label, inner.label) if largest >= 1 else inner.interval(largest))
    return found


@pytest.mark.parametrize("steps", [ConstantSteps(0.3), DecayingSteps(0.5)])
@pytest.mark.parametrize("kind", [ConformalDistribution, ConformalIntervals, InductiveDistribution])
def test_intervals_are_those_of_the_definition(kind, steps):
    X, y = drifting(70)
    model, naive = AdaptiveIntervals(kind(ridge()), LEVELS, steps), Naive(LEVELS, steps.at)
    for x, label in zip(X, y, strict=True):
        inner, told = model.predictor.predict_one(x), model.predict_one(x)
        expected = by_definition(inner, naive.thresholds)
        assert [told.interval(level) for level in LEVELS] == expected
        assert told.guaranteed == "long-run error rate"
        naive.learn([[True] if a <= label <= b else [] for a, b in expected], True)
        model.learn_one(x, label)
        assert model.thresholds.tolist() == pytest.approx(naive.thresholds)
        assert [one.errors for one in model.certificates] == naive.errors
        assert [one.bound for one in model.certificates] == pytest.approx([naive.bound(k) for k in range(3)])
    finite = [b - a for a, b in [told.interval(0.3)] if math.isfinite(b - a)]
    assert not finite or model.certificates[-1].size > 0


class Fixed(Predictor):
    """It always says the same: the worst there can be."""

    classes, space = (), Real()

    def predict_one(self, x):
        return NormalDistribution(0.0, 1.0)


ADVERSARIES = {
    "always outside": lambda told: 1e9,
    "always inside": lambda told: told.label,
    "just outside the second": lambda told: told.interval(0.1)[1] + 1e-6 if told.interval(0.1)[1] < 1e5 else 0.5,
    "just inside the second": lambda told: min(told.interval(0.1)[1], 1e5),
}


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_adversaries_do_not_break_the_bound(adversary, delay):
    online = venn.Online(AdaptiveIntervals(Fixed(), LEVELS, ConstantSteps(0.05)))
    model, labels = online.panel["AdaptiveIntervals"], []
    for i in range(300):
        labels.append(ADVERSARIES[adversary](online.ask([0.0], i)))
        if i >= delay:
            online.answer(i - delay, labels[i - delay])
            for one in model.certificates:
                over = one.errors - one.level * one.n
                assert over <= one.bound + 1e-9
                assert "inside" in adversary or over >= -one.bound - 1e-9


def test_a_change_is_followed_where_fixed_levels_fail():
    X, y = drifting(500, 1)
    model, fixed = AdaptiveIntervals(ConformalIntervals(ridge()), [0.1], ConstantSteps(0.05)), 0
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        lower, upper = model.predictor.predict_one(x).interval(0.1)
        fixed += i > 250 and not lower <= label <= upper
        before = model.certificates[0].errors
        model.learn_one(x, label)
        if i == 250:
            start = before
    errors = model.certificates[0].errors - start
    assert fixed > 55  # of 249; 25 were claimed
    assert errors < 45


def test_a_record_says_what_is_promised():
    X, y = drifting(30, 2)
    model = AdaptiveIntervals(ConformalIntervals(ridge()), LEVELS)
    record = venn.replay(zip(X, y, strict=True), venn.Panel(adaptive=model), progress=False)
    said = record.kind("adaptive").conclusion("adaptive", record["adaptive"], record.guaranteed["adaptive"])
    assert "on any stream the rate tends to" in said


@pytest.mark.parametrize(
    ("make", "y"),
    [
        (lambda: AdaptiveIntervals(ConformalIntervals(venn.SlidingWindow(KernelRidge(venn.RBF(0.5), C=3), 10))),
         [3.0] * 480 + [2.0, 2.0, 5.0, 3.0] * 5),
        (lambda: AdaptiveIntervals(ConformalIntervals(ridge()), (0.8, 0.99), ConstantSteps(0.05)),
         np.random.default_rng(5).choice([0.0, 1.0, 2.0], 200).tolist()),
    ],
    ids=["a plateau", "thresholds about 1"],
)  # fmt: skip
def test_equal_labels_at_one_object_have_an_answer(make, y):
    """The forecast alone, and an interval that has shrunk to it, are equal but for rounding."""
    model = make()
    for label in y:
        lower, upper = model.predict_one([1.0]).interval(model.levels[-1])
        assert lower <= upper
        model.learn_one([1.0], label)
    for one in model.certificates:
        assert one.errors <= one.n * one.level + one.bound


test_what_does_not_suit_is_refused = refused(None, [
    (lambda: AdaptiveIntervals(venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["a", "b"]))),
     "predict numbers"),
    (lambda: AdaptiveIntervals(Fixed(), [0.2, 0.1]), "levels must be rising"),
    (lambda: AdaptiveIntervals(Fixed(), [0.1, 0.1 + 1e-9]), "levels must be rising"),
    (lambda: AdaptiveIntervals(Fixed(), []), "levels must be rising"),
    (lambda: AdaptiveIntervals(Fixed()).commit([0.0], 1.0, 3), "prepared must be what prepare"),
])  # fmt: skip
