"""Decisions: bounds of costs equal to linear programs, and promises as hypothesis tests."""

import numpy as np
import pytest
from conftest import refused
from naive import decisions as naive
from scipy import stats

import venn
from venn.decisions import (
    CostTable,
    Hurwicz,
    LeastRegret,
    MeanCost,
    WorstCase,
    answer,
    answer_threshold,
    decide,
    error_among_answered,
    expected_costs,
)
from venn.prediction import ClassIntervals

NEAR = 1e-9
LEVEL, REFUSED = 1e-3, 1e-6


def table(rng, actions, classes):
    """Return a table, and its costs in the order of the classes; the table has the labels in another order."""
    costs = rng.integers(-3, 4, (actions, len(classes))).astype(float)
    rows = {f"action {a}": {k: row[i] for i, k in reversed(list(enumerate(classes)))} for a, row in enumerate(costs)}
    return CostTable(rows), costs


@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_and_rules_over_intervals_equal_linear_programs(c, seed):
    rng = np.random.default_rng(seed)
    classes = tuple("abcde"[:c])
    costs, matrix = table(rng, 3, classes)
    pairs = rng.integers(0, 5, (c, 2)) / 8  # often contradictory
    prediction = ClassIntervals(pairs, classes)
    lower, upper = naive.widened(*prediction.bounds)
    high = [naive.largest(row, lower, upper) for row in matrix]
    low = [-naive.largest(-row, lower, upper) for row in matrix]
    found = expected_costs(costs, prediction)
    assert np.allclose(found, [low, high], atol=1e-8, rtol=0)
    regrets = [max(naive.largest(row - other, lower, upper) for other in matrix) for row in matrix]
    values = {
        WorstCase(): high, Hurwicz(0.25): 0.25 * np.array(low) + 0.75 * np.array(high), LeastRegret(): regrets,
        MeanCost(): matrix @ prediction.proba,
    }  # fmt: skip
    for rule, wanted in values.items():
        decision = decide(costs, prediction, rule)
        assert decision.value == pytest.approx(min(wanted), abs=1e-8)
        place = int(decision.action[-1])
        assert wanted[place] == pytest.approx(min(wanted), abs=1e-8)
        assert (decision.lower, decision.upper) == pytest.approx((low[place], high[place]), abs=1e-8)
        assert decision.guaranteed == "nothing"


@pytest.mark.parametrize("seed", range(4))
def test_bounds_over_rows_and_sets_and_forecasts(seed):
    rng = np.random.default_rng(seed)
    classes = ("a", "b", "c")
    costs, matrix = table(rng, 4, classes)
    rows = rng.dirichlet(np.ones(3), 3)
    prediction = venn.Multiprobability(rows, classes)
    expected = matrix @ rows.T
    assert np.allclose(expected_costs(costs, prediction), [expected.min(axis=1), expected.max(axis=1)], atol=NEAR)
    regret = [max((row @ (own - other)) for row in rows for other in matrix) for own in matrix]
    assert decide(costs, prediction, LeastRegret()).value == pytest.approx(min(regret))
    forecast = venn.Forecast(rows[0], classes)
    assert np.allclose(expected_costs(costs, forecast), [matrix @ rows[0]] * 2, atol=NEAR)
    for p_values, members in (([0.3, 0.01, 0.2], [0, 2]), ([0.01, 0.02, 0.03], [0, 1, 2])):
        sets = venn.PredictionSet(np.array(p_values), classes)
        found = expected_costs(costs, sets, 0.05)
        assert np.array_equal(found, [matrix[:, members].min(axis=1), matrix[:, members].max(axis=1)])
        decision = decide(costs, sets, epsilon=0.05)
        assert decision.upper == matrix[:, members].max(axis=1).min()
        assert decision.guaranteed == "cost bound"
    long_run = venn.PredictionSet(np.full(3, 0.3), classes, guaranteed="long-run error rate")
    assert decide(costs, long_run, epsilon=0.05).guaranteed == "nothing"


def test_an_outlook_is_read_by_its_intervals():
    model = venn.Forecaster(["no", "yes"])
    for i in range(30):
        model.learn_one([i / 30, 0.5], "yes" if i > 15 else "no")
    outlook = model.predict_one([0.2, 0.5])
    costs = CostTable({"act": {"no": 1.0, "yes": 0.0}, "wait": {"no": 0.0, "yes": 3.0}})
    assert np.array_equal(expected_costs(costs, outlook), expected_costs(costs, outlook["intervals"]))
    assert decide(costs, outlook, MeanCost()).value == pytest.approx(min(costs.of(outlook.classes) @ outlook.proba))


# Promises --------------------------------------------------------------------------------------------------------


def stream(rng, n, noise=0.2):
    y = rng.integers(0, 2, n)
    return np.where(rng.random(n) < noise, 1 - y, y) + rng.normal(size=n) / 2, y


class Linear:
    """Scores of two classes by the one feature."""

    classes = (0, 1)

    def scores(self, x):
        return np.array([0.5 - x[0], x[0] - 0.5])


def test_costs_exceed_their_bound_and_answers_are_wrong_as_seldom_as_promised():
    rng = np.random.default_rng(1)
    costs = CostTable({"zero": {0: 0.0, 1: 5.0}, "one": {0: 1.0, 1: 0.0}, "neither": {0: 0.5, 1: 2.0}})
    exceeded = wrong = answered = errors_of_best = 0
    n, epsilon = 1500, 0.1
    X, y = stream(rng, n)
    model = venn.InductiveConformal(Linear(), seed=1)
    for x, label in zip(X, y.tolist(), strict=True):
        prediction = model.predict_one([x])
        decision = decide(costs, prediction, LeastRegret(), epsilon=epsilon)
        row = costs.of((0, 1))[costs.actions.index(decision.action)]
        exceeded += row[label] > decision.upper
        found = answer(prediction, epsilon)
        answered += len(found)
        wrong += found not in ((), (label,))
        errors_of_best += prediction.label != label  # whoever always answers
        model.learn_one([x], label)
    for count in (exceeded, wrong):
        assert stats.binomtest(count, n, epsilon, "greater").pvalue > LEVEL
    assert stats.binomtest(errors_of_best, n, epsilon, "greater").pvalue < REFUSED
    assert wrong / answered <= error_among_answered(n, answered, epsilon, LEVEL)


@pytest.mark.parametrize("seed", range(3))
def test_the_threshold_equals_its_definition(seed):
    rng = np.random.default_rng(seed)
    levels = (0.5, 0.7, 0.9, 1.1)
    for n in (0, 5, 40, 400):
        confidence = rng.integers(0, 11, n) / 10
        right = rng.random(n) < confidence
        for error in (0.05, 0.2):
            found = answer_threshold(confidence, right, error, delta=0.1, levels=levels)
            assert found == naive.threshold(confidence, right, error, 0.1, levels)


def failures(rule):
    """Return in how many of 300 repetitions the true error among what is answered is above what was promised.

    The error at level t is exactly the one wanted at the lowest level, a little more below.
    """
    rng, levels, failed = np.random.default_rng(3), (0.5, 0.7, 0.9), 0
    for _ in range(300):
        confidence = rng.choice([0.6, 0.8, 0.95], 150)
        rates = {0.6: 0.25, 0.8: 0.12, 0.95: 0.101}
        right = rng.random(150) >= np.vectorize(rates.get)(confidence)
        level = rule(confidence, right, 0.1, 0.1, levels)
        failed += level < np.inf  # the error rate is above 0.1 at every level
    return failed


def test_the_promised_error_is_kept_and_a_share_so_far_promises_nothing():
    kept = failures(lambda *given: answer_threshold(*given[:3], delta=given[3], levels=given[4]))
    assert stats.binomtest(kept, 300, 0.1, "greater").pvalue > LEVEL
    assert stats.binomtest(failures(naive.naive_threshold), 300, 0.1, "greater").pvalue < REFUSED


def test_answering_by_the_lower_probability_promises_nothing():
    """One category, labels as good as coins: it answers just where the row that is judged has been kind."""
    rng, answered, wrong = np.random.default_rng(4), 0, 0
    for _ in range(4000):
        n = 4  # examples before: all of the label, or else there is no answer
        labels = rng.random(n) < 0.6
        if labels.sum() / (n + 1) >= 0.8:
            answered += 1
            wrong += rng.random() >= 0.6
    assert stats.binomtest(wrong, answered, 0.2, "greater").pvalue < REFUSED


# Refusals --------------------------------------------------------------------------------------------------------

COSTS = CostTable({"a": {0: 1.0, 1: 0.0}, "b": {0: 0.0, 1: 1.0}})
FORECAST = venn.Forecast(np.array([0.5, 0.5]), (0, 1))
SETS = venn.PredictionSet(np.array([0.5, 0.5]), (0, 1))


test_bad_input_is_refused = refused(None, [
    (lambda: CostTable({}), ValueError, "costs must hold"),
    (lambda: CostTable([1.0]), TypeError, "costs must be a mapping"),
    (lambda: CostTable({"a": {0: 1.0}, "b": {1: 1.0}}), ValueError, "costs must be of the labels"),
    (lambda: CostTable({"a": {0: "1"}}), TypeError, "costs must be numbers"),
    (lambda: CostTable({"a": {0: np.inf}}), ValueError, "costs must be finite"),
    (lambda: COSTS.of((0, 2)), ValueError, "costs must be of the classes"),
    (lambda: decide({}, FORECAST), TypeError, "costs must be a CostTable"),
    (lambda: decide(COSTS, FORECAST, "worst"), TypeError, "rule must be"),
    (lambda: decide(COSTS, 0.5), TypeError, "prediction must be"),
    (lambda: decide(COSTS, SETS), TypeError, "epsilon must be given"),
    (lambda: decide(COSTS, SETS, epsilon=2), ValueError, "epsilon must lie"),
    (lambda: decide(COSTS, SETS, MeanCost(), epsilon=0.1), TypeError, "point forecast"),
    (lambda: decide(COSTS, FORECAST, epsilon=0.1), TypeError, "epsilon must be left out"),
    (lambda: answer(FORECAST, 0.1), TypeError, "prediction must be a PredictionSet"),
    (lambda: error_among_answered(10, 11, 0.1), ValueError, "answered must be at most"),
    (lambda: answer_threshold([0.5], [1], 0.1), ValueError, "right must be"),
    (lambda: answer_threshold([np.nan], [True], 0.1), ValueError, "confidence must be"),
    (lambda: answer_threshold([0.5], [True], 0.1, levels=()), ValueError, "levels must be"),
])  # fmt: skip


def test_nothing_answered_says_nothing():
    assert error_among_answered(100, 0, 0.1) == 1.0
    assert answer_threshold([], np.zeros(0, bool), 0.1) == np.inf
    assert repr(eval(repr(COSTS), {"CostTable": CostTable})) == repr(COSTS)


def test_where_there_is_one_action_it_is_chosen():
    costs = CostTable({"only": {"no": 1.0, "yes": 3.0}})
    decision = decide(costs, ClassIntervals(np.array([[0.25, 0.5], [0.5, 0.75]]), ("no", "yes")))
    assert decision.action == "only"
    assert (decision.lower, decision.upper) == (2.0, 2.5)
