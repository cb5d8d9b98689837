"""The contract of machines and predictors, for those of numbers: asking is pure, copies agree, bad input is refused."""

import copy
import pickle
import tempfile

import numpy as np
import pytest
from conftest import learned
from scipy.stats import norm
from sklearn.linear_model import Ridge
from test_contract import BAD_OBJECTS

import venn
from venn.machines import FrozenDistribution, FrozenQuantiles, FrozenRegressor, KernelRidge
from venn.maps import Platt
from venn.predictors import (
    AdaptiveIntervals,
    ConformalDistribution,
    ConformalIntervals,
    CrossFittedScores,
    CrossVenn,
    GaussianProcess,
    HeldOutScores,
    InductiveDistribution,
    InductiveIntervals,
    LeaveOneOutScores,
    by_group,
)


def ridge(**scale):
    return KernelRidge(venn.RBF(0.5), 2.0, **scale)


def fitted():
    return Ridge().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])


def pair():
    """Two numbers for each object, the second one positive in the objects of `stream`."""
    return Ridge().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 4.0], [1.0, 4.1], [2.0, 4.2]])


SUBJECTS = {
    "ConformalDistribution": lambda: ConformalDistribution(ridge(), seed=1),
    "ConformalIntervals": lambda: ConformalIntervals(ridge(), seed=1),
    "GaussianProcess": lambda: GaussianProcess(ridge()),
    "scaled ridge": lambda: ConformalDistribution(ridge(scale=venn.Scale(6, teach=True))),
    "scaled ridge by ranges": lambda: ConformalIntervals(ridge(scale=venn.Scale(ranges=[(0, 1), (0, 9)], teach=True))),
    "adaptive": lambda: AdaptiveIntervals(ConformalDistribution(ridge())),
    "inductive, adaptive": lambda: AdaptiveIntervals(InductiveDistribution(ridge())),
    "inductive, grouped": lambda: by_group(InductiveDistribution(ridge()), by=0),
    "grouped": lambda: ConformalDistribution(ridge(), group=0),
    "scaled": lambda: ConformalDistribution(ridge(scale=5)),
    "InductiveDistribution": lambda: InductiveDistribution(ridge(), schedule=venn.schedules.PrefixRestart(first=6)),
    "inductive, scaled": lambda: InductiveDistribution(
        ridge(scale=4), schedule=venn.schedules.RandomAssignment(0.5, first=8)
    ),
    "inductive, frozen": lambda: InductiveDistribution(FrozenRegressor(fitted())),
    "given quantiles": lambda: InductiveDistribution(FrozenQuantiles([fitted(), fitted()], (0.1, 0.9), 0.1)),
    "given quantiles, two-sided": lambda: InductiveIntervals(FrozenQuantiles(pair(), (0.1, 0.9))),
    "given distribution": lambda: InductiveDistribution(FrozenDistribution(pair(), norm)),
    "two-sided": lambda: InductiveIntervals(ridge(), schedule=venn.schedules.PrefixRestart(first=6)),
    "window": lambda: ConformalDistribution(venn.SlidingWindow(ridge(), 10)),
}


MODELS = {  # which a file lacks
    "inductive, frozen": lambda: [fitted()], "given quantiles": lambda: [[fitted(), fitted()]],
    "given quantiles, two-sided": lambda: [pair()], "given distribution": lambda: [pair(), norm],
}  # fmt: skip


def stream(seed=0, n=30):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)) / 2
    return X, np.round(X.sum(axis=1) + rng.normal(size=n), 1)


def said(subject, x):
    return spoken(subject.predict_one(x))


def spoken(prediction):
    ends = [end for epsilon in (0.05, 0.1, 0.2, 0.5) for end in prediction.interval(epsilon)]
    return np.array([prediction.label, *ends, *(prediction.p_value(y) for y in (-1.0, 0.5, 1.0, 2.0))])


@pytest.mark.parametrize("name", SUBJECTS)
def test_asking_leaves_no_trace(name):
    X, y = stream()
    asked, quiet = SUBJECTS[name](), SUBJECTS[name]()
    for x, label in zip(X, y, strict=True):
        assert np.array_equal(said(asked, x), said(asked, x))
        asked.predict_one(X[0])
        asked.learn_one(x, label)
        quiet.learn_one(x, label)
    assert np.array_equal(said(asked, X[0]), said(quiet, X[0]))


@pytest.mark.parametrize("name", SUBJECTS)
def test_copies_go_on_to_the_bit(name):
    X, y = stream(1)
    subject = learned(SUBJECTS[name](), X[:20], y[:20])
    with tempfile.TemporaryDirectory() as folder:
        venn.save(f"{folder}/model", subject)
        twins = [copy.deepcopy(subject), pickle.loads(pickle.dumps(subject))]
        twins.append(venn.load(f"{folder}/model", MODELS.get(name, list)()))
    assert all(repr(twin) == repr(subject) for twin in twins)
    for one in (subject, *twins):
        learned(one, X[20:], y[20:])
    for x in X[:5]:
        assert all(np.array_equal(said(twin, x), said(subject, x)) for twin in twins)


@pytest.mark.parametrize("name", ["ConformalDistribution", "ConformalIntervals", "grouped"])
def test_the_order_of_the_past_does_not_matter(name):
    X, y = stream(2)
    order = np.random.default_rng(0).permutation(len(y))
    one, other = learned(SUBJECTS[name](), X, y), learned(SUBJECTS[name](), X[order], y[order])
    for x in X[:10]:
        assert np.allclose(said(one, x), said(other, x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_is_learned_from_a_refused_example(name):
    X, y = stream(3, 12)
    subject, twin = SUBJECTS[name](), SUBJECTS[name]()
    for i in range(12):
        if i in (1, 7):
            for bad in BAD_OBJECTS.values():
                with pytest.raises((TypeError, ValueError), match="x must"):
                    subject.learn_one(bad, 1.0)
                with pytest.raises((TypeError, ValueError), match="x must"):
                    subject.predict_one(bad)
            for bad in (np.nan, np.inf, "a", None, [1.0], 1e200, True):
                with pytest.raises(ValueError, match="y must be a finite number"):
                    subject.learn_one(X[i], bad)
        assert np.array_equal(said(subject, X[i]), said(twin, X[i]))
        subject.learn_one(X[i], y[i])
        twin.learn_one(X[i], y[i])


@pytest.mark.parametrize("name", SUBJECTS)
def test_three_phases_make_a_step(name):
    X, y = stream(4)
    whole, parts = SUBJECTS[name](), SUBJECTS[name]()
    for x, label in zip(X, y, strict=True):
        whole.learn_one(x, label)
        prepared = parts.prepare(x, label)
        if parts.machine is not None:
            parts.machine.learn_one(x, label)
        parts.commit(x, label, prepared)
    assert np.array_equal(said(whole, X[0]), said(parts, X[0]))


@pytest.mark.parametrize("make", [venn.Conformal, venn.TransductiveVennAbers, lambda m: venn.TransductiveVenn(m)])
def test_predictors_of_classes_refuse_numbers(make):
    with pytest.raises((TypeError, ValueError), match=r"classes|machine must"):
        make(ridge()).predict_one([0.0, 1.0])


@pytest.mark.parametrize(
    "name",
    [
        "InductiveDistribution", "inductive, scaled", "inductive, frozen", "inductive, grouped", "given quantiles",
        "given quantiles, two-sided", "given distribution", "two-sided",
    ],
)  # fmt: skip
def test_blocks_are_the_predictions_one_by_one(name):
    X, y = stream(5)
    one_by_one, at_once = SUBJECTS[name](), SUBJECTS[name]()
    expected = []
    for x, label in zip(X, y, strict=True):
        expected.append(said(one_by_one, x))
        one_by_one.learn_one(x, label)
    block = at_once.replay_many(X, y)
    assert np.array_equal([spoken(block[i]) for i in range(len(X))], expected)
    many = at_once.predict_many(X[::-1])
    assert np.array_equal([spoken(many[i]) for i in range(len(X))], [said(one_by_one, x) for x in X[::-1]])


OF_CLASSES = {
    "transductive venn": venn.TransductiveVenn, "transductive abers": venn.TransductiveVennAbers,
    "transductive conformal": venn.Conformal, "training scores": lambda machine: venn.ScoreCalibrator(machine, Platt()),
    "leave-one-out scores": lambda machine: venn.ScoreCalibrator(machine, Platt(), LeaveOneOutScores()),
    "venn": venn.InductiveVenn, "abers": venn.InductiveVennAbers, "conformal": venn.InductiveConformal,
    "cross": CrossVenn, "held out": lambda machine: venn.ScoreCalibrator(machine, Platt(), HeldOutScores()),
    "cross-fitted": lambda machine: venn.ScoreCalibrator(machine, Platt(), CrossFittedScores()),
}  # fmt: skip


@pytest.mark.parametrize("make", OF_CLASSES.values(), ids=OF_CLASSES)
@pytest.mark.parametrize("machine", [ridge, lambda: ridge(scale=venn.Scale(teach=True))])
def test_predictors_of_classes_refuse_a_machine_of_numbers_at_once(make, machine):
    """Not at the first training, which may come a thousand examples later."""
    with pytest.raises(TypeError, match="machine must have classes for this predictor, got one of numbers"):
        make(machine())
