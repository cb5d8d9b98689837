"""Measures on probabilities: equal to their definitions, p-values exactly uniform, broken variants are not."""

import functools

import numpy as np
import pytest
from inductive_cases import ManyAsGiven
from naive import probabilities as naive
from scipy import stats

import venn
from venn.nonconformity import APS, LAC, RAPS
from venn.predictors import by_group
from venn.schedules import NoTraining

MEASURES = {
    "LAC": (LAC(temperature=0.7), naive.lac),
    "APS": (APS(temperature=0.7, seed=2), naive.aps),
    "APS, u = 0": (APS(temperature=0.7, randomised=False), naive.aps),
    "RAPS": (RAPS(0.2, 2, temperature=0.7), functools.partial(naive.raps, weight=0.2, free=2)),
}
SCORES = {
    "decisions with ties": lambda rng, n: rng.integers(-2, 3, size=(n, 4)) / 2,
    "probabilities": lambda rng, n: rng.dirichlet(np.ones(4), size=n),
    "probabilities with ties": lambda rng, n: rng.permuted(np.tile([0.5, 0.25, 0.25, 0.0], (n, 1)), axis=1),
}


def numbers(measure, rows):
    """Return u of each row, by what the seed and the row alone determine; 0 for measures without."""
    if not isinstance(measure, APS) or not getattr(measure, "randomised", True):
        return np.zeros(len(rows))
    # APS of the first class shows u itself: its value is 1 - u of the probability.
    plain, first = APS(temperature=measure.temperature, seed=measure.seed), rows.argmax(axis=1)
    most = np.array([max(naive.shares(row, measure.temperature)) for row in rows.tolist()])
    return 1 - plain.values(rows, first) / most


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("name", MEASURES)
def test_values_are_those_of_the_definition(name, kind):
    measure, slow = MEASURES[name]
    rows = SCORES[kind](np.random.default_rng(1), 60)
    u = numbers(measure, rows)
    for y in range(4):
        found = measure.values(rows, np.full(60, y))
        wanted = [slow(naive.shares(row, 0.7), y, number) for row, number in zip(rows.tolist(), u, strict=True)]
        assert found == pytest.approx(wanted, abs=1e-9)


def test_u_is_uniform_of_the_object_and_of_the_seed():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=2000)
    u = numbers(APS(), rows)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert np.array_equal(u, numbers(APS(), rows))
    assert abs(np.corrcoef(u, numbers(APS(seed=1), rows))[0, 1]) < 0.1
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.1
    assert np.array_equal(u[::-1], numbers(APS(), rows[::-1]))


def inductive(measure, **options):
    return venn.InductiveConformal(ManyAsGiven(3), measure, schedule=NoTraining(), **options)


def ranks_of_the_last(make, X, y):
    """Return greater and equal of the true label at the last step, by plain p-values and smoothed ones."""
    model = make()
    for x, label in zip(X[:-1], y[:-1], strict=True):
        model.learn_one(x, int(label))
    return model.predict_one(X[-1]).p_values[y[-1]]


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("name", MEASURES)
def test_p_values_are_exactly_uniform_over_the_choice_of_the_last_example(name, conditional):
    """Plain p-values k / n: a share t of the choices has one of at most t, for each t that occurs."""
    measure = MEASURES[name][0]
    rng = np.random.default_rng(5)
    X, y = rng.permuted(np.tile([0.5, 0.3, 0.2], (7, 1)), axis=1), rng.integers(0, 2, size=7)
    plain = np.array([
        ranks_of_the_last(lambda: inductive(measure, smoothed=False, label_conditional=conditional), X[o], y[o])
        for o in (np.append(np.delete(np.arange(7), i), i) for i in range(7))
    ])  # fmt: skip
    for k in range(2) if conditional else [None]:
        group = plain if k is None else plain[y == k]
        n = len(group)
        # Every value is taken by as many choices as tie: #{p <= value} = n value exactly.
        for value in group:
            assert (group <= value + 1e-12).sum() == pytest.approx(n * value)


@pytest.mark.parametrize("name", MEASURES)
def test_transductive_p_values_are_uniform_over_all_orders(name):
    measure = MEASURES[name][0]
    X, y = np.array([[0.0], [0.0], [1.0], [0.7], [0.2]]), np.array([0, 1, 1, 1, 0])
    plain = []
    for last in range(5):
        model = venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 2.0, (0, 1)), measure, smoothed=False)
        for i in range(5):
            if i != last:
                model.learn_one(X[i], int(y[i]))
        plain.append(model.predict_one(X[last]).p_values[y[last]])
    for value in plain:
        assert (np.array(plain) <= value + 1e-12).sum() == pytest.approx(5 * value)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("base", ["inductive", "transductive"])
@pytest.mark.parametrize("name", MEASURES)
def test_within_groups_and_classes_they_are_exactly_uniform_in_each(name, base, conditional):
    """Over the choice of the last example among those of its group, or of its group and class."""
    options = {"measure": MEASURES[name][0], "smoothed": False, "label_conditional": conditional}
    rng = np.random.default_rng(9)
    X = np.column_stack([rng.permuted(np.tile([0.5, 0.3, 0.2], (9, 1)), axis=1), np.arange(9) % 2])
    y = rng.integers(0, 2, size=9)
    plain = []
    for last in range(9):
        if base == "inductive":
            model = by_group(venn.InductiveConformal(ManyAsGiven(3), schedule=NoTraining(), **options), 3)
        else:
            model = by_group(venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 2.0, (0, 1)), **options), 3)
        order = np.append(np.delete(np.arange(9), last), last)
        plain.append(ranks_of_the_last(lambda model=model: model, X[order], y[order]))
    for group in {(x[3], label if conditional else 0) for x, label in zip(X, y, strict=True)}:
        inside = [p for p, x, label in zip(plain, X, y, strict=True) if (x[3], label if conditional else 0) == group]
        for value in inside:
            assert (np.array(inside) <= value + 1e-12).sum() == pytest.approx(len(inside) * value)


class NewU(APS):
    """Broken: the number of the new object, which comes with its three labels, is not that of an example."""

    def _number(self, seed, steps):
        return np.full(len(steps), 0.9 if len(steps) == 3 else 0.0)


def test_a_number_that_treats_the_new_example_differently_is_not_uniform():
    """The new object's u is always .9, calibration's 0: it always looks less strange than it should."""
    rng = np.random.default_rng(0)
    found = {}
    for name, measure in (("right", APS()), ("broken", NewU())):
        p = []
        for _ in range(60):
            X, y = rng.dirichlet(np.ones(3), size=20), rng.integers(0, 3, size=20)
            model = inductive(measure)
            model.learn_many(X[:-1], y[:-1].tolist())
            p.append(model.predict_one(X[-1]).p_values[y[-1]])
        found[name] = stats.kstest(p, "uniform").pvalue
    assert found["right"] > 1e-3
    assert found["broken"] < 1e-6


@pytest.mark.parametrize("name", MEASURES)
def test_errors_are_binomial_over_a_stream(name):
    measure, n = MEASURES[name][0], 2000
    rng = np.random.default_rng(7)
    X = rng.dirichlet(np.ones(3), size=n)
    y = np.array([rng.choice(3, p=p) for p in X])
    block = inductive(measure).replay_many(X, y)
    p = block.p_values[np.arange(n), y]
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    for level in (0.05, 0.2):
        low, high = stats.binom.interval(0.999, n, level)
        assert low <= (p <= level).sum() <= high


def test_each_measure_makes_the_sets_it_is_known_for():
    """LAC has the smallest sets; RAPS at most as many large ones as APS."""
    n = 3000
    rng = np.random.default_rng(3)
    X = rng.dirichlet(np.full(6, 0.5), size=n)
    y = np.array([rng.choice(6, p=p) for p in X])

    sizes = {}
    for name, measure in (("LAC", LAC()), ("APS", APS()), ("RAPS", RAPS(0.5, 2))):
        model = venn.InductiveConformal(ManyAsGiven(6), measure, schedule=NoTraining())
        model.learn_many(X[:2000], y[:2000])
        sizes[name] = (model.predict_many(X[2000:]).p_values > 0.1).sum(axis=1)
    assert min(sizes, key=lambda name: sizes[name].mean()) == "LAC"
    assert (sizes["RAPS"] > 4).sum() < (sizes["APS"] > 4).sum()
    assert (sizes["APS"] == 0).sum() <= (sizes["LAC"] == 0).sum() + 50


def test_scores_without_numbers_are_refused():
    with pytest.raises(ValueError, match="must not be NaN"):
        LAC().steps(np.array([[np.nan, 0.5]]), np.array([0]))
