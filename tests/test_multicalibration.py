"""Venn multicalibration: equal to the exact definition, the identity on the bag, and broken variants that depart."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from naive import multicalibration as naive
from scipy import stats

import venn
from venn.machines import NotConverged
from venn.monitors.kinds import kind_of
from venn.prediction import GroupIntervals
from venn.predictors import InductiveMulticalibration, TransductiveMulticalibration

EXACT = 1e-12
CLASSES = ("a", "b", "c")


class Given:
    """A scorer that is fixed: the first features are probabilities."""

    probabilities = True

    def __init__(self, classes):
        self.classes = tuple(classes)

    def scores(self, x):
        return np.array(x[: len(self.classes)], float)


def overlapping(x):
    """Three overlapping groups, two of which make up a fourth: the equations have many solutions."""
    return [x[-1] >= 1, x[-1] <= 1, x[-1] == 1, x[-1] >= 1, 0.0]


def functions(x):
    """Return functions that are no groups, in binary fractions."""
    return [x[-1] / 2, x[0] * x[-1], 1 - x[0]]


def examples(rng, n, c=2):
    """Return objects: c probabilities in eighths, full of ties, and an attribute; and their classes."""
    s = rng.integers(0, 9, (n, c)) / 8
    return np.column_stack([s, rng.integers(0, 3, n)]), rng.integers(0, c, n)


GROUPS = {"columns": [0, 2], "overlapping": overlapping, "functions": functions}


def rows_of(groups, X):
    if callable(groups):
        return [[float(value) for value in groups(x)] for x in X]
    return [[float(x[i]) for i in groups] for x in X]


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("c", [2, 3])
def test_it_equals_the_exact_definition_at_every_step(name, c):
    rng = np.random.default_rng(c)
    X, y = examples(rng, 17, c)
    groups = GROUPS[name]
    model = InductiveMulticalibration(Given(range(c)), groups)
    rows = rows_of(groups, X)
    block = copy.deepcopy(model).replay_many(X, y.tolist())
    for i in range(17):
        said = model.predict_one(X[i])
        for k in range(c):
            expected = naive.pair(X[:i, k], y[:i] == k, rows[:i], X[i, k], rows[i])
            assert np.allclose(said.values[k], [float(p) for p in expected], atol=EXACT, rtol=0), (i, k)
        assert np.array_equal(block.values[i], said.values)
        model.learn_one(X[i], int(y[i]))
    assert np.array_equal(model.predict_many(X)[5].values, model.predict_one(X[5]).values)
    untrained = InductiveMulticalibration(venn.machines.Stack(range(c)), groups)
    assert (untrained.predict_many(X).values == [0, 1]).all()


FAR = {
    "offset": lambda x: [1e7 + x[-1], x[0]],
    "larger": lambda x: [1e12 - x[-1] / 2, x[0] * x[-1]],
    "scales": lambda x: [1e8 * x[-1], x[0], 2**-27 * x[1], 3e7 * (x[0] - x[1])],  # one depends on two others
    "both": lambda x: [1e8 * (x[-1] + 4), 1 - x[0], 1e5 + x[1]],
}


@pytest.mark.parametrize("name", FAR)
def test_it_equals_the_exact_definition_far_from_zero_and_on_any_scale(name):
    rng = np.random.default_rng(7)
    X, y = examples(rng, 40)
    groups = FAR[name]
    model = InductiveMulticalibration(Given(range(2)), groups)
    rows = rows_of(groups, X)
    for i in range(40):
        if i in (0, 1, 3, 8, 20, 39):
            expected = naive.pair(X[:i, 1], y[:i] == 1, rows[:i], X[i, 1], rows[i])
            assert np.allclose(model.predict_one(X[i]).values[1], [float(p) for p in expected], atol=EXACT, rtol=0), i
        model.learn_one(X[i], int(y[i]))
    fitted = model.coefficients(X[0])[1] @ [1.0, *rows[0]]
    assert np.allclose(X[0, 1] + fitted, model.predict_one(X[0]).values[1], atol=1e-3, rtol=0)  # g is far from zero


@pytest.mark.parametrize("name", GROUPS)
def test_over_the_choice_of_the_last_example_the_departures_sum_to_nothing(name):
    """The theorem itself: given the bag, each of its examples is as probably the last one."""
    rng = np.random.default_rng(3)
    X, y = examples(rng, 40)
    groups = GROUPS[name]
    pairs = []
    for i in range(40):
        model = InductiveMulticalibration(Given(range(2)), groups)
        model.learn_many(np.delete(X, i, 0), np.delete(y, i).tolist())
        pairs.append(model.predict_one(X[i]).values[1])
    assert max(naive.imbalance(X[:, 1], y, rows_of(groups, X), pairs)) < EXACT


@pytest.mark.parametrize("broken", [{"ridge": 1}, {"ridge": 2**-20}, {"clip": True}], ids=str)
def test_a_ridge_or_clipping_breaks_the_identity(broken):
    rng = np.random.default_rng(4)
    X, y = examples(rng, 14)
    y = np.where(X[:, 2] == 2, 1, y)  # so that values leave [0, 1]
    rows = rows_of(overlapping, X)
    pairs = []
    for i in range(14):
        others = [k for k in range(14) if k != i]
        pair = naive.pair(X[others, 1], y[others], [rows[k] for k in others], X[i, 1], rows[i], **broken)
        pairs.append([float(p) for p in pair])
    assert max(naive.imbalance(X[:, 1], y, rows, pairs)) > 1000 * EXACT


def test_on_a_long_bag_with_many_groups_the_identity_holds():
    rng = np.random.default_rng(5)
    n, m = 700, 20
    G = (rng.random((n, m - 1)) < 0.3).astype(float)
    G[:, -1] = G[:, 0] + G[:, 1]  # depends on two others
    X = np.column_stack([rng.random((n, 2)), G])
    y = (rng.random(n) < 0.2 + 0.5 * G[:, 0]).astype(int)
    model = InductiveMulticalibration(Given(range(2)), list(range(2, m + 1)))
    model.learn_many(X[:-1], y[:-1].tolist())
    g = np.column_stack([np.ones(n), G])
    fitted = model.coefficients(X[-1])
    for k in range(2):
        for v in range(2):
            targets = np.append(y[:-1] == k, v)
            left = g.T @ (targets - X[:, k] - g @ fitted[k, v])
            assert abs(left).max() / n < EXACT
    assert np.allclose(model.predict_one(X[-1]).values[1], X[-1, 1] + fitted[1] @ g[-1], atol=EXACT, rtol=0)


@pytest.mark.parametrize("name", ["columns", "overlapping"])
@pytest.mark.parametrize("deleted", [True, False])
def test_transductive_values_are_those_of_the_machine_and_the_equations(name, deleted):
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 3, (17, 3)) / 2, rng.integers(0, 3, 17)
    groups = [1, 2] if name == "columns" else overlapping
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(3))
    model = TransductiveMulticalibration(machine, groups, deleted)
    for i in range(17):
        answer = machine.hypotheses(X[i])
        rows = rows_of(groups, X[: i + 1])
        said = model.predict_one(X[i])
        fitted = model.coefficients(X[i])
        g = np.array([[1.0, *row] for row in rows])
        for k in range(3):
            other = next(j for j in range(3) if j != k)
            for v, j in ((0, other), (1, k)):
                s = np.clip((1 + (answer.deleted(j) if deleted else answer.scores(j))[:, k]) / 2, 0, 1)
                expected = float(naive.values(s, [*(y[:i] == k), v], rows)[-1])
                assert abs(said.values[k, v] - expected) < 1e-11, (i, k, v)
                left = g.T @ ([*(y[:i] == k), v] - s - g @ fitted[k, v])
                assert abs(left).max() < EXACT
        model.learn_one(X[i], int(y[i]))


def test_forecasts_of_a_mixture_are_taken_as_they_are():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(30, 2))
    mixture = venn.machines.Mixture(venn.machines.Bank(venn.RBF(0.5), range(2)))
    model = TransductiveMulticalibration(mixture, [1])
    for x in X[:-1]:
        model.learn_one(x, int(x[0] > 0))
    answer, y = mixture.hypotheses(X[-1]), [int(x[0] > 0) for x in X[:-1]]
    for v in (0, 1):
        expected = naive.values(answer.deleted(v)[:, 1], [*y, v], X[:, 1:])[-1]
        assert abs(model.predict_one(X[-1]).values[1, v] - float(expected)) < 1e-11


def departures(model, streams, n, group):
    """Return the departures of the true class 1 in a group, at all steps of exchangeable streams."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(streams):
        one = model()
        X = np.column_stack([np.full((n, 2), 0.5), rng.integers(0, 2, (n, 2))])
        y = (rng.random(n) < 0.15 + 0.35 * X[:, 2] + 0.35 * X[:, 3]).astype(int)
        for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            if i >= 10 and group(x):
                found.append(label - one.predict_one(x).values[1, label])
            one.learn_one(x, label)
    return np.array(found)


def test_groups_are_right_on_average_and_without_them_not():
    """The scorer says one half of everybody; the two groups overlap and differ."""
    scorer = Given(range(2))
    both = departures(lambda: InductiveMulticalibration(scorer, [2, 3]), 20, 60, lambda x: x[2] == 1)
    assert stats.ttest_1samp(both, 0.0).pvalue > 1e-3
    other = departures(lambda: InductiveMulticalibration(scorer, [3]), 20, 60, lambda x: x[2] == 1)
    assert stats.ttest_1samp(other, 0.0).pvalue < 1e-6


# The prediction, and state ---------------------------------------------------------------------------------------


def test_values_are_clipped_for_display_only():
    prediction = GroupIntervals(np.array([[0.8, 1.25], [-0.25, 0.5]]), ("no", "yes"))
    assert prediction.values.tolist() == [[0.8, 1.25], [-0.25, 0.5]]
    assert prediction.bounds.tolist() == [[0.8, 0.0], [1.0, 0.5]]
    assert (prediction.label, prediction.lower, prediction.upper) == ("no", 0.8, 1.0)
    assert prediction.guaranteed == "each group"
    kind = kind_of(prediction)
    again, end = kind.decode(kind.encode(prediction), 0, venn.labels.Classes(("no", "yes")))
    assert end == len(kind.encode(prediction))
    assert np.array_equal(again.values, prediction.values)
    for bad in ([[0.0, np.inf], [0.0, 1.0]], [[0.0, 1.0]]):
        with pytest.raises(ValueError, match="values must"):
            GroupIntervals(np.array(bad), ("no", "yes"))


def test_it_stands_in_replays_records_and_monitors():
    rng = np.random.default_rng(9)
    X, y = examples(rng, 60)
    squares = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(2))
    panel = venn.Panel(
        inductive=InductiveMulticalibration(Given(range(2)), [2]),
        transductive=TransductiveMulticalibration(squares, [2]),
    )
    record = venn.replay(list(zip(X, y.tolist(), strict=True)), panel, progress=False)
    assert record.guaranteed == {"inductive": "each group", "transductive": "each group"}
    assert set(record.kinds.values()) == {"GroupIntervals"}
    monitor = venn.Monitor(range(2))
    monitor.update(panel.predict_one(X[0])["inductive"], 1)
    assert monitor.snapshot()["guaranteed"] == "each group"


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (lambda x: ["a"], "row of finite numbers"), (lambda x: 1.0, "row of finite numbers"),
        (lambda x: [np.nan], "row of finite numbers"), ([9], "positions below 3"),
    ],
)  # fmt: skip
def test_bad_functions_are_refused(groups, match):
    model = InductiveMulticalibration(Given(range(2)), groups)
    with pytest.raises(ValueError, match=match):
        model.learn_one([0.5, 0.5, 1.0], 1)
    assert model.n == 0


def test_a_function_of_changing_length_is_refused():
    model = InductiveMulticalibration(Given(range(2)), lambda x: [1.0] * int(x[2]))
    model.learn_one([0.5, 0.5, 2.0], 1)
    with pytest.raises(ValueError, match="must return 2 numbers"):
        model.learn_one([0.5, 0.5, 3.0], 1)
    assert model.n == 1


def test_functions_that_nearly_depend_on_each_other_raise_or_hold():
    """Never a quiet repair: either the identity holds, or nothing is said."""
    rng = np.random.default_rng(10)
    X, y = examples(rng, 60)
    g = np.column_stack([np.ones(60), X[:, 2], X[:, 2] + 1e-7 * X[:, 0]])
    known = {x.tobytes(): row for x, row in zip(X, g, strict=True)}
    model = InductiveMulticalibration(Given(range(2)), lambda x: known[x.tobytes()][1:])
    model.learn_many(X[:-1], y[:-1].tolist())
    try:
        fitted = model.coefficients(X[-1])
    except NotConverged:
        return
    left = g.T @ (np.append(y[:-1], 1) - X[:, 1] - g @ fitted[1, 1])
    assert abs(left).max() < 1e-9


def attribute(x):
    return [x[2], 1.0]


@pytest.mark.parametrize("groups", [[2], attribute], ids=["feature", "function"])
@pytest.mark.parametrize("far", [1e155, -1e308])
def test_a_function_whose_squares_overflow_is_refused_and_leaves_no_trace(groups, far):
    """Learned, it would make the sums infinite for ever: no later prediction, and a file that nobody can read."""
    X, y = examples(np.random.default_rng(5), 30)
    model = InductiveMulticalibration(Given("ab"), groups=groups)
    for x, code in zip(X, y, strict=True):
        model.learn_one(x, "ab"[code])
    before = model.predict_one(X[0])
    odd = [*X[0][:2], far]
    for call in (model.predict_one, lambda x: model.learn_one(x, "a"), lambda x: model.learn_many([x], ["a"])):
        with pytest.raises(ValueError, match=r"groups must be functions of size at most 1e\+100"):
            call(odd)
    assert np.array_equal(model.predict_one(X[0]).values, before.values)
    assert pickle.loads(pickle.dumps(model)).n == 30
