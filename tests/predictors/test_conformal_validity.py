"""Validity of conformal predictors as hypothesis tests, and broken predictors that must fail the same tests.

What is claimed: on exchangeable streams the smoothed p-values of the true labels are independent and uniform on
[0, 1], so that errors at level epsilon are binomial; plain p-values err on the safe side; label-conditionally all
that holds for each label. Streams are short and many: a wrong tie term shows in the first steps most.
"""

import functools
from typing import NamedTuple

import numpy as np
import pytest
from conftest import OBJECTS, halved, labels, learned, objects
from naive.coins import coins
from scipy import stats
from test_conformal import FromMedian, centroids, hinge, mixture, squares

import venn
from venn.nonconformity import Margin, OwnScore, Share
from venn.predictors.transductive import Conformal, p_values
from venn.smoothing import Smoothing

LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6
REFUSED = 1e-6
EPSILONS = (0.01, 0.05, 0.1, 0.2)


CASES = {  # machine, measure, objects, labels, classes, streams, steps
    "shares of a mixture, heavy ties": (mixture, Share(), "few", "noise", 3, 180, 20),
    "training margins, four objects": (hinge, Margin(leave_one_out=False), "few", "signal", 2, 24, 16),
    "span leave-one-out margins": (hinge, Margin(), "binary", "signal", 2, 24, 16),
    "leave-one-out margins": (squares, Margin(), "normal", "signal", 3, 12, 32),
    "leave-one-out margins, repeats": (squares, Margin(), "repeats", "noise", 3, 24, 16),
    "margins of centroids": (centroids, Margin(), "grid", "signal", 3, 24, 16),
    "own scores": (squares, OwnScore(), "repeats", "signal", 3, 24, 16),
    "shares of a mixture": (mixture, Share(), "grid", "signal", 3, 24, 16),
    "from the median": (squares, FromMedian(), "normal", "noise", 2, 24, 16),
}
TIED = "shares of a mixture, heavy ties"


class Steps(NamedTuple):
    """What the true labels met, (streams, steps) each, or (2, streams, steps) without and with label conditions."""

    y: np.ndarray
    smoothed: np.ndarray
    plain: np.ndarray
    greater: np.ndarray
    equal: np.ndarray
    total: np.ndarray
    tau: np.ndarray


@functools.cache
def replayed(name):
    """Replay exchangeable streams: the order of each is drawn at random."""
    make, measure, kind, sequence, c, streams, n = CASES[name]
    rng = np.random.default_rng(len(name))
    steps = Steps(np.zeros((streams, n), int), *np.zeros((5, 2, streams, n)), np.zeros((streams, n)))
    for s in range(streams):
        X = objects(kind, rng, n)
        y = labels(sequence, rng, X, c)
        order = rng.permutation(n)
        X, y = X[order], y[order]
        machine = make(c)
        models = [Conformal(machine, measure, conditional, seed=s) for conditional in (False, True)]
        steps.y[s] = y
        steps.tau[s] = coins(s, 0, X)
        for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            ranks = measure.rank(machine.hypotheses(x))
            for m in (0, 1):
                steps.smoothed[m, s, i] = models[m].predict_one(x).p_values[label]
                steps.plain[m, s, i] = p_values(ranks, 1.0, bool(m))[label]
                for counts, of in zip((steps.greater, steps.equal, steps.total), ranks, strict=True):
                    counts[m, s, i] = of[label, label] if m else of[label].sum()
            machine.learn_one(x, label)
    return steps


def exact_counts(p):
    """Return two-sided p-values of the error counts at each epsilon, exact binomial."""
    return {f"errors at {e}": stats.binomtest(int((p <= e).sum()), p.size, e).pvalue for e in EPSILONS}


def uniform_and_independent(p):
    """Return p-values of tests that p, (streams, steps), are independent and uniform.

    Marginally; the counts of errors; disjoint pairs of consecutive steps on a grid of 5 x 5, which must be
    jointly uniform; the correlation of consecutive steps; that of each with the mean of all before it.
    """
    pairs = p[:, : p.shape[1] // 2 * 2].reshape(-1, 2)
    cells = np.histogram2d(*pairs.T, bins=5, range=[[0, 1], [0, 1]])[0]
    centred = np.sqrt(12) * (p - 0.5)  # of variance 1
    before = np.cumsum(centred, axis=1)[:, :-1] / np.sqrt(np.arange(1, p.shape[1]))
    lagged = {"lag 1": centred[:, :-1] * centred[:, 1:], "past": before * centred[:, 1:]}
    z = {name: products.sum() / np.sqrt(products.size) for name, products in lagged.items()}
    return {
        "uniform": stats.kstest(p.ravel(), "uniform").pvalue, "pairs": stats.chisquare(cells.ravel()).pvalue,
        **{name: 2 * stats.norm.sf(abs(value)) for name, value in z.items()}, **exact_counts(p),
    }  # fmt: skip


# Exactly: over one bag ------------------------------------------------------------------------------------------------
# Given the bag, each of its n examples is as likely to come last as any other. The p-value of the one that does is
# uniform on [greater, greater + equal] / n, so the mean of these n densities must not be close to 1 but equal to it.


def mean_density(greater, equal, n):
    """Return n times the mean density of the p-values on each of n cells of equal length."""
    cells = np.arange(n)[:, None]
    return (((greater <= cells) & (cells < greater + equal)) / equal).sum(axis=1)


@pytest.mark.parametrize(("kind", "name"), halved(OBJECTS, CASES))
def test_p_values_are_exactly_uniform_over_the_choice_of_the_last_example(name, kind):
    make, measure, n, c = *CASES[name][:2], 10, 3
    rng = np.random.default_rng(len(name) + len(kind))
    X = objects(kind, rng, n)
    y = labels("noise", rng, X, c)
    greater, equal = np.zeros((2, c, n))
    for i in range(n):
        machine = learned(make(c), np.delete(X, i, 0), np.delete(y, i).tolist())
        ranks = measure.rank(machine.hypotheses(X[i]))
        greater[:, i], equal[:, i] = ranks.greater[y[i]], ranks.equal[y[i]]
        assert np.array_equal(ranks.total[y[i]], np.bincount(y, minlength=c))
    assert mean_density(greater.sum(axis=0), equal.sum(axis=0), n) == pytest.approx(np.ones(n), abs=1e-12)
    for label in np.unique(y):
        mine, size = y == label, int((y == label).sum())
        density = mean_density(greater[label][mine], equal[label][mine], size)
        assert density == pytest.approx(np.ones(size), abs=1e-12)


@pytest.mark.parametrize(("make", "measure"), [(squares, Margin()), (mixture, Share())], ids=["margin", "share"])
def test_without_the_new_example_they_are_not(make, measure):
    rng = np.random.default_rng(3)
    X, y, n = rng.normal(size=(14, 20)), rng.integers(0, 2, 14), 14
    greater, equal = np.zeros((2, n))
    for i in range(n):
        machine = learned(make(2), np.delete(X, i, 0), np.delete(y, i).tolist())
        bag, codes = machine.bag.scores.T, np.append(np.delete(y, i), y[i])
        values = measure.values(np.vstack([bag, machine.scores(X[i])]), codes)
        greater[i], equal[i] = (values > values[-1]).sum(), (values == values[-1]).sum()
    assert abs(mean_density(greater, equal, n) - 1).max() > 1


# On streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditional", [False, True], ids=["all labels", "label-conditional"])
@pytest.mark.parametrize("name", CASES)
def test_smoothed_p_values_are_uniform_and_independent(name, conditional):
    results = uniform_and_independent(replayed(name).smoothed[int(conditional)])
    assert min(results.values()) > LEVEL, results


@pytest.mark.parametrize("name", CASES)
def test_label_conditional_errors_are_binomial_for_each_label(name):
    steps = replayed(name)
    for label in np.unique(steps.y):
        p = steps.smoothed[1][steps.y == label]
        results = exact_counts(p) | {"uniform": stats.kstest(p, "uniform").pvalue}
        assert min(results.values()) > LEVEL, (label, results)


@pytest.mark.parametrize("name", CASES)
def test_plain_p_values_are_conservative(name):
    steps = replayed(name)
    for m in (0, 1):
        assert (steps.plain[m] >= steps.smoothed[m]).all()
        for epsilon in EPSILONS:
            errors = int((steps.plain[m] <= epsilon).sum())
            assert errors <= stats.binom.ppf(1 - LEVEL, steps.plain[m].size, epsilon)


def test_without_label_conditions_a_rare_label_has_more_errors():
    """What the condition is for: errors of all labels are binomial, those of the rare one are too many."""
    rng = np.random.default_rng(1)
    n, streams = 100, 20
    p, y = np.zeros((2, streams, n)), np.zeros((streams, n), int)
    for s in range(streams):
        y[s] = rng.random(n) < 0.1
        X = rng.normal(size=(n, 2)) + y[s][:, None]
        machine = squares(2)
        models = [Conformal(machine, label_conditional=conditional, seed=s) for conditional in (False, True)]
        for i, x in enumerate(X):
            for m in (0, 1):
                p[m, s, i] = models[m].predict_one(x).p_values[y[s, i]]
            machine.learn_one(x, int(y[s, i]))
    rare = int((y == 1).sum())
    assert min(exact_counts(p[0]).values()) > LEVEL
    assert stats.binomtest(int((p[0][y == 1] <= 0.1).sum()), rare, 0.1, alternative="greater").pvalue < REFUSED
    assert stats.binomtest(int((p[1][y == 1] <= 0.1).sum()), rare, 0.1).pvalue > LEVEL


# Broken predictors ----------------------------------------------------------------------------------------------------


def ties_outside(greater, equal, total, tau):
    """Return the formula of MAPIE's issue 984: the new example counted whole, tau on the other ties only."""
    return (1 + greater + tau * (equal - 1)) / total


def ties_without_the_new_example(greater, equal, total, tau):
    return (greater + tau * (equal - 1)) / total


def new_example_left_out(greater, equal, total, tau):
    """Return the share among the past alone; 1 where there is none."""
    return np.where(total > 1, (greater + tau * (equal - 1)) / np.maximum(total - 1, 1), 1.0)


def a_number_for_each_tie(greater, equal, total, tau):
    """Return what comes of breaking every tie by its own coin rather than all by one number."""
    rng = np.random.default_rng(9)
    sums = np.array([rng.random(int(k)).sum() for k in equal.ravel()]).reshape(equal.shape)
    return (greater + sums) / total


def one_number_for_the_stream(greater, equal, total, tau):
    return (greater + tau[:, :1] * equal) / total


def no_number(greater, equal, total, tau):
    return (greater + equal) / total


def strictly_greater(greater, equal, total, tau):
    return greater / total


BROKEN = [
    ties_outside, ties_without_the_new_example, new_example_left_out, a_number_for_each_tie, one_number_for_the_stream,
    no_number, strictly_greater,
]  # fmt: skip


def test_the_ties_are_heavy_and_the_formula_is_the_predictors():
    steps = replayed(TIED)
    for m in (0, 1):
        assert np.median(steps.equal[m] / steps.total[m]) > 0.3
        p = (steps.greater[m] + steps.tau * steps.equal[m]) / steps.total[m]
        assert abs(p - steps.smoothed[m]).max() < 1e-15


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
@pytest.mark.parametrize("conditional", [False, True], ids=["all labels", "label-conditional"])
def test_a_wrong_tie_term_is_refused(variant, conditional):
    steps, m = replayed(TIED), int(conditional)
    p = variant(steps.greater[m], steps.equal[m], steps.total[m], steps.tau)
    assert min(uniform_and_independent(p).values()) < REFUSED


def test_one_number_for_a_stream_is_uniform_at_each_step_and_yet_refused():
    """Uniformity alone would let it pass at every single step: independence must be tested too."""
    steps = replayed(TIED)
    p = one_number_for_the_stream(steps.greater[0], steps.equal[0], steps.total[0], steps.tau)
    by_step = [stats.kstest(p[:, i], "uniform").pvalue for i in range(p.shape[1])]
    assert min(by_step) > LEVEL / len(by_step)
    results = uniform_and_independent(p)
    assert max(results["pairs"], results["lag 1"], results["past"]) < REFUSED


def test_a_machine_trained_without_the_new_example_is_refused():
    """The past fits its own labels, the new example does not take part: it looks strange with its true label."""
    rng = np.random.default_rng(4)
    streams, n = 60, 40
    valid, broken = np.zeros((2, streams, n))
    for s in range(streams):
        X, y = rng.normal(size=(n, 20)), rng.integers(0, 2, n)
        machine = venn.LeastSquaresSVM(venn.RBF(0.05), 10.0, range(2))
        model = Conformal(machine, Margin(leave_one_out=False), seed=s)
        tau = Smoothing(s).block(0, n)
        for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            valid[s, i] = model.predict_one(x).p_values[label]
            bag, codes = machine.bag.scores.T, np.append(y[:i], label)
            values = Margin().values(np.vstack([bag, machine.scores(x)]), codes)
            broken[s, i] = ((values > values[-1]).sum() + tau[i] * (values == values[-1]).sum()) / (i + 1)
            machine.learn_one(x, label)
    assert min(uniform_and_independent(valid).values()) > LEVEL
    assert min(uniform_and_independent(broken).values()) < REFUSED
    assert stats.binomtest(int((broken <= 0.1).sum()), broken.size, 0.1, alternative="greater").pvalue < REFUSED
