"""Predictors within groups: equal to the definition, valid in every group, and as exact as those without groups."""

import copy
from itertools import product

import numpy as np
import pytest
from conftest import labels, objects, refused
from inductive_cases import AsGiven
from naive import conformal as naive_conformal
from naive import groups as naive
from scipy import stats
from sklearn.linear_model import LogisticRegression
from test_conformal import FromMedian
from test_decisions import Linear

import venn
from venn.nonconformity import Margin
from venn.predictors import InductiveByGroup, Within, by_group
from venn.schedules import NoTraining, PrefixRestart
from venn.taxonomies.groups import Groups

LEVEL, REFUSED = 1e-3, 1e-6


def parity(x):
    return "even" if int(x[0] * 2) % 2 == 0 else "odd"


def squares(c=3):
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(c))


def group_by(by):
    if callable(by):
        return by
    return lambda x: x[by] if isinstance(by, int) else tuple(x[list(by)])


@pytest.mark.parametrize("kind", ["grid", "few", "repeats"])
@pytest.mark.parametrize("by", [0, (0, 1), parity], ids=["feature", "features", "function"])
def test_transductive_predictors_equal_the_definition_at_every_step(kind, by):
    rng = np.random.default_rng(len(kind))
    X = objects(kind, rng, 22)
    y = labels("noise", rng, X, 3)
    X = np.column_stack([X, rng.integers(0, 2, 22)])
    machine, group = squares(), group_by(by)
    plain, of_label = (
        by_group(venn.Conformal(machine, label_conditional=k, smoothed=False), by) for k in (False, True)
    )
    abers = by_group(venn.TransductiveVennAbers(machine), by)
    panel = venn.Panel(plain=plain, of_label=of_label, abers=abers, all=venn.Conformal(machine))
    assert len(panel.machines) == 1  # taught once
    for i in range(22):
        answer, groups = machine.hypotheses(X[i]), [group(x) for x in X[: i + 1]]
        scores = [answer.leave_one_out(j) for j in range(3)]
        bags = [(naive_conformal.margins(s.tolist(), [*y[:i], j]), [*y[:i], j]) for j, s in enumerate(scores)]
        said = panel.predict_one(X[i])
        assert np.allclose(said["plain"].p_values, naive.p_values(bags, groups, 1.0), atol=1e-12, rtol=0)
        assert np.allclose(said["of_label"].p_values, naive.p_values(bags, groups, 1.0, True), atol=1e-12, rtol=0)
        assert np.allclose(said["abers"].pairs, naive.pairs(scores, y[:i], groups, 3), atol=1e-12, rtol=0)
        panel.learn_one(X[i], int(y[i]))
    assert machine.n == 22


@pytest.mark.parametrize("measure", [Margin(leave_one_out=False), FromMedian()], ids=["training", "whole group"])
def test_other_measures_see_the_group_alone(measure):
    rng = np.random.default_rng(4)
    X = objects("grid", rng, 20)
    y = labels("signal", rng, X, 2)
    machine = squares(2)
    model = by_group(venn.Conformal(machine, measure, smoothed=False), 0)
    for i in range(20):
        answer = machine.hypotheses(X[i])
        beside = naive.within([x[0] for x in X[: i + 1]])
        expected = []
        for j in range(2):
            codes = np.append(y[:i], j)[beside]
            scores = (answer.leave_one_out(j) if measure.leave_one_out else answer.scores(j))[beside]
            expected.append(naive_conformal.p_value(measure.values(scores, codes).tolist(), codes, 1.0))
        assert np.allclose(model.predict_one(X[i]).p_values, expected, atol=1e-12, rtol=0), i
        model.learn_one(X[i], int(y[i]))


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("by", [3, (2, 3), parity], ids=["feature", "features", "function"])
def test_inductive_conformal_equals_the_definition_at_every_step(label_conditional, by):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 3, (60, 3)) / 2, rng.integers(0, 3, 60)])
    y = rng.integers(0, 2, 60)
    model = by_group(venn.InductiveConformal(AsGiven(2), label_conditional=label_conditional, smoothed=False), by)
    group = group_by(by)
    block = copy.deepcopy(model).replay_many(X, y.tolist()) if not callable(by) else None
    for i in range(60):
        groups = [group(x) for x in X[: i + 1]]
        expected = naive.inductive_p_values(X[: i + 1, :2], y[:i], groups, 1.0, 2, label_conditional)
        p_values = model.predict_one(X[i]).p_values
        assert np.allclose(p_values, expected, atol=1e-12, rtol=0), i
        assert block is None or np.array_equal(block.p_values[i], p_values)
        model.learn_one(X[i], int(y[i]))
    many = model.predict_many(X)
    assert all(np.array_equal(many.p_values[i], model.predict_one(X[i]).p_values) for i in range(60))


@pytest.mark.parametrize(
    "make", [venn.InductiveVenn, venn.InductiveVennAbers, venn.InductiveConformal], ids=lambda make: make.__name__,
)  # fmt: skip
def test_with_a_fixed_scorer_each_group_is_a_predictor_of_its_own(make):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(0, 4, (80, 3)) / 3, rng.integers(0, 4, 80)])
    y = rng.integers(0, 3, 80)
    scorer = AsGiven(3)
    options = {"smoothed": False} if make is venn.InductiveConformal else {}
    model, alone = by_group(make(scorer, **options), 3), {g: make(scorer, **options) for g in range(4)}
    block = by_group(make(scorer, **options), 3).replay_many(X, y.tolist())
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        said, expected = model.predict_one(x), alone[int(x[3])].predict_one(x)
        number = "p_values" if hasattr(said, "p_values") else "proba"
        assert np.array_equal(getattr(said, number), getattr(expected, number))
        assert np.array_equal(getattr(block[i], number), getattr(expected, number))
        assert said.guaranteed == expected.guaranteed
        model.learn_one(x, label)
        alone[int(x[3])].learn_one(x, label)


def test_one_scorer_is_trained_on_all_groups():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(60, 2)), rng.integers(0, 3, 60)])
    y = (X[:, 0] > 0).astype(int).tolist()
    schedule = PrefixRestart(first=20, last=20)
    model = by_group(venn.InductiveVenn(squares(2), schedule=schedule), 2)
    beside = venn.InductiveVenn(squares(2), schedule=schedule)
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
        beside.learn_one(x, label)
    assert model.scorer.n == beside.scorer.n == 20
    assert np.array_equal(model.scorer.scores(X[0]), beside.scorer.scores(X[0]))


# Validity --------------------------------------------------------------------------------------------------------


def replayed(make, streams, n):
    """Return the p-values of true labels, and the groups, of exchangeable streams with a clean and a noisy group."""
    p_values, groups = [], []
    rng = np.random.default_rng(5)
    for stream in range(streams):
        group = rng.integers(0, 2, n)
        truth = rng.integers(0, 2, n)
        shown = np.where(rng.random(n) < np.where(group == 1, 0.45, 0.02), 1 - truth, truth)
        X = np.column_stack([shown + rng.normal(size=n) / 3, group])
        model = make(stream)
        for x, y in zip(X, truth.tolist(), strict=True):
            p_values.append(model.predict_one(x).p_values[y])
            model.learn_one(x, y)
        groups.append(group)
    return np.array(p_values), np.concatenate(groups)


def uniform(p_values, groups):
    """Return the smallest chance of departures so large, over the two groups and both together."""
    of = [p_values[groups == 0], p_values[groups == 1], p_values]
    return min(stats.kstest(values, "uniform").pvalue for values in of)


MAKE = {
    "transductive": (lambda seed: venn.Conformal(squares(2), seed=seed), 30, 60),
    "inductive": (lambda seed: venn.InductiveConformal(Linear(), schedule=NoTraining(), seed=seed), 20, 120),
    "by label too": (lambda seed: venn.InductiveConformal(Linear(), label_conditional=True, seed=seed), 20, 120),
}


@pytest.mark.parametrize("name", MAKE)
def test_p_values_are_uniform_within_each_group(name):
    make, streams, n = MAKE[name]
    p_values, groups = replayed(lambda seed: by_group(make(seed), 1), streams, n)
    assert uniform(p_values, groups) > LEVEL / 3
    lag = stats.spearmanr(p_values[:-1], p_values[1:]).pvalue
    assert lag > LEVEL  # independent of the one before


@pytest.mark.parametrize("name", MAKE)
def test_without_groups_they_are_not(name):
    make, streams, n = MAKE[name]
    assert uniform(*replayed(make, streams, n)) < REFUSED


def test_a_group_that_follows_the_label_breaks_it():
    """The attribute must be known before the label: here it is the label."""
    make, streams, n = MAKE["inductive"]

    class Leaking:
        def __init__(self, seed):
            self.model = by_group(make(seed), 1)

        def predict_one(self, x):
            return self.model.predict_one([x[0], 7.0])

        def learn_one(self, x, y):
            self.model.learn_one([x[0], 7.0 if y == 0 else 8.0], y)

    assert uniform(*replayed(Leaking, streams, n)) < REFUSED


# State -----------------------------------------------------------------------------------------------------------


def test_parts_merge_into_the_whole():
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.integers(0, 4, (60, 2)) / 3, rng.integers(0, 3, 60)])
    y = rng.integers(0, 2, 60).tolist()
    scorer = venn.FrozenScorer(LogisticRegression().fit(X, y))
    whole, first, second = (by_group(venn.InductiveConformal(scorer), 2) for _ in range(3))
    whole.learn_many(X, y)
    first.learn_many(X[:25], y[:25])
    second.learn_many(X[25:], y[25:])
    merged = second.merge(first)
    assert merged.n == 60
    assert np.array_equal(merged.predict_many(X).p_values, whole.predict_many(X).p_values)
    with pytest.raises(ValueError, match="groups by 1"):
        by_group(venn.InductiveConformal(scorer), 1).merge(first)


def test_sparse_rows_have_groups_too():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rows = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    for by in (0, (1, 2)):
        groups = Groups(by)
        machine = venn.InductiveVenn(squares(2), schedule=PrefixRestart(first=3))
        model = by_group(machine, by)
        for i, row in enumerate(rows):
            model.learn_one(scipy_sparse.csr_array(row[None]), i % 2)
        assert model.n == 3
        assert len(set(groups.numbers_of(rows).tolist())) == len(
            {tuple(np.atleast_1d(row[[by] if by == 0 else list(by)])) for row in rows}
        )


test_it_refuses_what_has_no_groups = refused(by_group, [
    (venn.ScoreCalibrator(squares(), venn.maps.Platt()), 0, TypeError, "predictor must be"),
    (squares(), 0, TypeError, "predictor must be"),
    (venn.Conformal(squares()), "region", TypeError, "by must be"),
    (venn.Conformal(squares()), [], TypeError, "by must be"),
    (venn.Conformal(squares()), (0, -1), ValueError, "by must be"),
    (venn.Forecaster([0, 1]), 0, TypeError, "got the Forecaster of .*: one within groups stands"),
    (venn.predictors.CrossVenn(squares()), 0, TypeError, "predictor must"),
])  # fmt: skip


def test_bad_groups_are_refused_before_anything_is_learned():
    for make, by in product((venn.Conformal, venn.InductiveConformal), (5, (0, 5), (5, 0))):
        model = by_group(make(squares()), by)
        with pytest.raises(ValueError, match="by must be a feature's position below 2"):
            model.predict_one([0.0, 1.0])
    assert isinstance(by_group(venn.InductiveVenn(squares()), 0), InductiveByGroup)
    assert isinstance(by_group(venn.Conformal(squares()), 0).machine, Within)


def test_a_machine_within_groups_says_of_itself_what_the_machine_says():
    machine = squares()
    within = Within(machine, 0)
    for i in range(6):
        within.learn_one([float(i % 2), float(i)], i % 3)
    assert (within.n, within.learned, within.classes) == (machine.n, 6, machine.classes)
    assert (within.residual, within.tuning, within.exact_leave_one_out) == (machine.residual, None, True)
    assert within.fresh().n == 0
    np.testing.assert_array_equal(within.leave_one_out_bag.scores, machine.leave_one_out_bag.scores)
