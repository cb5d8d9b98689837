"""Validity under a prior shift, as identities and as hypothesis tests; predictors without the weights must fail them.

What is claimed of single steps: given the examples that count and the new one in any order, each of these is the new
one with a chance proportional to its weight. So departures weighted by it cancel, and p-values so weighted are uniform.
"""

import itertools
import math

import numpy as np
import pytest
from conftest import halved, labels, learned, objects
from inductive_cases import SCHEDULES, TAXONOMIES, Centroids, OneCategory, frozen
from naive.coins import coin
from scipy import stats

import streams
import venn
from venn.nonconformity import Margin
from venn.predictors.balanced import Balanced
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.transductive import p_values
from venn.shifts import PriorShift

LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6
REFUSED = 1e-6
SHIFT = PriorShift((0.5, 0.3, 0.2), (0.1, 0.2, 0.7))
SCORER = frozen()


def squares(c=3):
    return venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, range(c))


# Exactly: over the choice of the last example -------------------------------------------------------------------------


def departures(P, y):
    """Return 1{y = k} less the realised probability, for each class, for the best of that row, for the label."""
    row = P.probabilities[y]
    best = int(row.argmax())
    D = np.eye(len(row))[y] - row
    return np.concatenate([D, [D[best], D[P.index] if P.guaranteed == "predicted label" else 0.0]])


def mean_over_the_last(predict, X, y, places, weights):
    """Return the mean departures over which of the examples at some places, the last among them, comes last."""
    n = len(y) - 1
    total = 0
    for i in places:
        order = np.arange(n + 1)
        order[[i, n]] = n, i
        P = predict(X[order][:n], y[order][:n].tolist(), X[order][n])
        total = total + weights[y[i]] * departures(P, y[i])
    return total / weights[y[places]].sum()


@pytest.mark.parametrize(
    "taxonomy", [venn.Argmax(), venn.LeaveOneOut(venn.Argmax()), None], ids=["training", "leave_one_out", "adaptive"]
)
@pytest.mark.parametrize("machine", ["plain", "weighted"])
def test_weighted_departures_of_transductive_predictors_cancel(taxonomy, machine):
    """Also where the machine weighs by class, as it likes: that is symmetric, and no weight of the count."""
    rng = np.random.default_rng(1)
    X = objects("grid", rng, 26)
    y = labels("noise", rng, X, 3)
    weights = {"plain": None, "weighted": SHIFT.weights}[machine]

    def predict(shift):
        def one(X, y, x):
            made = venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, range(3), weights)
            return learned(venn.TransductiveVenn(made, taxonomy, shift=shift), X, y).predict_one(x)

        return one

    assert abs(mean_over_the_last(predict(SHIFT), X, y, range(26), SHIFT.ratios)).max() < 1e-12
    assert abs(mean_over_the_last(predict(None), X, y, range(26), SHIFT.ratios)).max() > 0.02


@pytest.mark.parametrize(("name", "taxonomy"), halved(SCHEDULES, TAXONOMIES))
def test_weighted_departures_of_inductive_predictors_cancel(name, taxonomy):
    schedule, split = SCHEDULES[name]
    rng = np.random.default_rng(6)

    def predict(shift):
        def one(X, y, x):
            model = venn.InductiveVenn(Centroids(range(3)), TAXONOMIES[taxonomy][0], schedule=schedule, shift=shift)
            model.learn_many(X, y)
            return model.predict_one(x)

        return one

    worst = 0.0
    for n, kind in ((18, "grid"), (33, "repeats")):
        X = objects(kind, rng, n + 1)
        y = labels("noise", rng, X, 3)
        places = [*split(n)[1], n]
        assert abs(mean_over_the_last(predict(SHIFT), X, y, places, SHIFT.ratios)).max() < 1e-12
        worst = max(worst, abs(mean_over_the_last(predict(None), X, y, places, SHIFT.ratios)).max())
    assert worst > 0.02


def densities(p0, p1, chances):
    """Return the density, between all the steps in it, of p-values uniform on [p0, p1] that come with given chances."""
    edges = np.unique(np.round(np.concatenate([[0.0, 1.0], p0, p1]), 9))
    middles = (edges[1:] + edges[:-1])[:, None] / 2
    return (((p0 <= middles) & (middles < p1)) * (chances / (p1 - p0))).sum(axis=1)


def test_weighted_p_values_are_exactly_uniform_over_the_choice_of_the_last_example():
    rng = np.random.default_rng(2)
    for kind in ("grid", "repeats", "normal", "few"):
        X = objects(kind, rng, 20)
        y = labels("noise", rng, X, 3)
        chances = SHIFT.ratios[y] / SHIFT.ratios[y].sum()
        ends = np.zeros((2, 2, 20))  # with and without weights, at tau = 0 and 1
        for i in range(20):
            machine = learned(squares(), np.delete(X, i, 0), np.delete(y, i).tolist())
            ranks = Margin().rank(machine.hypotheses(X[i]))
            for m, ratios in enumerate((SHIFT.ratios, None)):
                for tau in (0, 1):
                    ends[m, tau, i] = p_values(ranks, tau, ratios=ratios)[y[i]]
        assert densities(*ends[0], chances) == pytest.approx(1, abs=1e-9)
        assert abs(densities(*ends[1], chances) - 1).max() > 0.2


def test_weighted_inductive_p_values_are_exactly_uniform_over_the_choice_of_the_last_example():
    rng = np.random.default_rng(3)
    X = objects("repeats", rng, 30)
    y = labels("noise", rng, X, 3)
    chances = SHIFT.ratios[y] / SHIFT.ratios[y].sum()
    tau, scorer = np.array([coin(0, 29, x) for x in X]), frozen(3)
    for shift in (SHIFT, None):
        p = np.zeros((2, 30))
        for i in range(30):
            for m, smoothed in enumerate((True, False)):
                model = InductiveConformal(scorer, smoothed=smoothed, shift=shift)
                model.learn_many(np.delete(X, i, 0), np.delete(y, i))
                p[m, i] = model.predict_one(X[i]).p_values[y[i]]
        found = densities((p[0] - tau * p[1]) / (1 - tau), p[1], chances)
        assert (abs(found - 1).max() < 1e-6) == (shift is SHIFT)


def test_balanced_departures_have_mean_zero_over_all_labels_and_coins():
    """Exactly, for one category; not without the weights, nor if dropped examples come back."""
    p, keep = 0.2, (0.3, 0.8)
    shift = PriorShift.of_keeping(keep)
    means = {"balanced": 0.0, "no weights": 0.0, "dropped come back": 0.0}
    for y in itertools.product((0, 1), repeat=4):
        for coins in itertools.product((0, 1), repeat=3):
            chance = math.prod(p if label else 1 - p for label in y)
            chance *= math.prod(keep[k] if coin else 1 - keep[k] for k, coin in zip(y, coins, strict=False))
            kept = [k for k, coin in zip(y, coins, strict=False) if coin]
            for name, past, weights in (
                ("balanced", kept, shift),
                ("no weights", kept, None),
                ("dropped come back", list(y[:3]), shift),
            ):
                model = venn.InductiveVenn(SCORER, OneCategory(), shift=weights)
                model.learn_many(np.zeros((len(past), 2)), past)
                P = model.predict_one([0.0, 0.0]).probabilities
                means[name] = means[name] + chance * (np.eye(2)[y[3]] - P[y[3]])
    assert abs(means["balanced"]).max() < 1e-12
    assert abs(means["no weights"]).max() > 0.05
    assert abs(means["dropped come back"]).max() > 0.05


def test_examples_of_the_operational_stream_void_the_theorem_where_they_calibrate():
    """Exactly, for one category: two examples by the training priors, two by the operational ones, and a new one.

    With the calibration set fixed to the first two it is valid, whatever is learned.
    """
    shift = PriorShift((0.5, 0.5), PRIOR)
    ways = {
        "fixed": (venn.schedules.FixedCalibration(2), shift),
        "all, weighted": (None, shift),
        "all, not weighted": (None, None),
    }
    means = dict.fromkeys(ways, 0.0)
    for y in itertools.product((0, 1), repeat=5):
        chance = 0.25 * math.prod(PRIOR[k] for k in y[2:])
        for name, (schedule, one) in ways.items():
            model = venn.InductiveVenn(SCORER, OneCategory(), schedule=schedule, shift=one)
            model.learn_many(np.zeros((4, 2)), y[:4])
            means[name] += chance * (y[4] - model.predict_one([0.0, 0.0]).probabilities[y[4], 1])
    assert abs(means["fixed"]) < 1e-12
    assert abs(means["all, weighted"]) > 0.01
    assert abs(means["all, not weighted"]) > 0.05


# On streams whose law is known ----------------------------------------------------------------------------------------


def of_last_class(P, y, tau):
    """Return the p-values of the event that the label is the last class: uniform where the realised rows are valid."""
    missed = 1 - P[np.arange(len(y)), y, -1]
    return np.where(y == P.shape[2] - 1, missed + tau * (1 - missed), tau * missed)


def of_rows(P, y):
    """Return p-values of tests that the realised rows of independent steps are valid."""
    D = (y == P.shape[2] - 1) - P[np.arange(len(y)), y, -1]
    z = D.mean() / (D.std(ddof=1) / math.sqrt(len(y)))
    tau = np.random.default_rng(len(y)).random(len(y))
    return {**uniform(of_last_class(P, y, tau)), "departures": 2 * stats.norm.sf(abs(z))}


def uniform(p):
    """Return p-values of exact tests that independent p-values are uniform."""
    counts = {e: stats.binomtest(int((p <= e).sum()), len(p), e).pvalue for e in (0.05, 0.2, 0.5)}
    return {"uniform": stats.kstest(p, "uniform").pvalue, **counts}


PRIOR = (0.85, 0.15)
M, RUNS = 30, 600


def drawn(classes, train, operational, m=M, runs=RUNS):
    """Return calibration sets of m examples by the training priors, for each a new example by the operational ones."""
    past = streams.gaussians(runs * m, classes, spread=0.8, proportions=train, seed=1)
    source = streams.gaussians(40 * runs, classes, spread=0.8, seed=2)
    new = streams.label_shift(source, 0, operational, seed=3).take(runs)
    return past.X.reshape(runs, m, -1), past.y.reshape(runs, m), new.X, new.y


def test_single_steps_under_label_shift():
    """Calibrated on one law, asked about another: rows and p-values are valid with the weights, and not without."""
    shift, c = PriorShift((0.2, 0.2, 0.6), (0.7, 0.2, 0.1)), 3
    X, y, new, truth = drawn(c, shift.train, shift.operational)
    P = np.zeros((2, RUNS, c, c))
    p = np.zeros((3, RUNS))
    scorer = frozen(c)
    for r in range(RUNS):
        for m, one in enumerate((shift, None)):
            model = venn.InductiveVenn(scorer, shift=one)
            model.learn_many(X[r], y[r])
            P[m, r] = model.predict_one(new[r]).probabilities
        for m, (one, conditional) in enumerate(((shift, False), (None, False), (None, True))):
            model = InductiveConformal(scorer, label_conditional=conditional, seed=r, shift=one)
            model.learn_many(X[r], y[r])
            p[m, r] = model.predict_one(new[r]).p_values[truth[r]]
    assert min(of_rows(P[0], truth).values()) > LEVEL
    assert min(of_rows(P[1], truth).values()) < REFUSED
    assert min(uniform(p[0]).values()) > LEVEL
    assert min(uniform(p[1]).values()) < REFUSED
    assert min(uniform(p[2]).values()) > LEVEL  # label-conditional ones need no weights


def test_label_conditional_p_values_stay_independent_and_uniform_on_a_stream_that_shifts():
    """With its own examples learned, and without any weights."""
    n, runs = 60, 40
    p = np.zeros((runs, n))
    for r in range(runs):
        stream = streams.label_shift(streams.gaussians(800, 2, spread=0.8, seed=r), n // 2, (0.1, 0.9), seed=r).take(n)
        model = InductiveConformal(SCORER, label_conditional=True, seed=r)
        p[r] = model.replay_many(stream.X, stream.y).p_values[np.arange(n), stream.y]
    centred = math.sqrt(12) * (p - 0.5)
    lagged = centred[:, :-1] * centred[:, 1:]
    z = lagged.sum() / math.sqrt(lagged.size)
    assert min(2 * stats.norm.sf(abs(z)), *uniform(p.ravel()).values()) > LEVEL


# Balancing ------------------------------------------------------------------------------------------------------------

KEEP = (0.15, 1.0)


def last_steps(make, runs=500, n=30):
    """Return the multiprobability and p-value of the last step of many streams, by `make(run)`, and the labels."""
    stream = streams.gaussians(runs * n, 2, spread=0.8, proportions=PRIOR, seed=7)
    X, y = stream.X.reshape(runs, n, -1), stream.y.reshape(runs, n)
    P, p = np.zeros((runs, 2, 2)), np.zeros(runs)
    for r in range(runs):
        models = make(r)
        blocks = len(X[r]) - 1 if all(hasattr(model, "learn_many") for model in models) else 0
        for model in models if blocks else ():
            model.learn_many(X[r, :blocks], y[r, :blocks])
        for x, label in zip(X[r, blocks:-1], y[r, blocks:-1].tolist(), strict=True):
            for model in models:
                model.learn_one(x, label)
        P[r] = models[0].predict_one(X[r, -1]).probabilities
        p[r] = models[1].predict_one(X[r, -1]).p_values[y[r, -1]]
    return P, p, y[:, -1]


def restarting(c=2):
    return venn.InductiveVenn(Centroids(range(c)), None, schedule=venn.schedules.PrefixRestart(6, last=6))


class Dropping:
    """Balancing done wrong: `learn_one` keeps what `keeps` says, and the predictor weighs as it was told."""

    def __init__(self, predictor, keeps):
        self.predictor, self.keeps = predictor, keeps
        self.predict_one = predictor.predict_one

    def learn_one(self, x, y):
        if self.keeps(self.predictor, x, y):
            self.predictor.learn_one(x, y)


def without_weights(r):
    rng = np.random.default_rng(r)
    coins = iter(np.repeat(rng.random(30), 2))  # the same for both
    return [
        Dropping(model, lambda model, x, y: next(coins) < KEEP[y])
        for model in (restarting(), InductiveConformal(SCORER, seed=r))
    ]


def coming_back(r):
    """Learn all after all, with the weights of what is kept."""
    shift = PriorShift.of_keeping(KEEP)
    return [restarting().under(shift), InductiveConformal(SCORER, seed=r, shift=shift)]


def test_single_steps_of_balanced_predictors_are_valid():
    P, p, y = last_steps(
        lambda r: [Balanced(restarting(), KEEP, seed=r), Balanced(InductiveConformal(SCORER, seed=r), KEEP, seed=r)]
    )
    assert min(of_rows(P, y).values()) > LEVEL
    assert min(uniform(p).values()) > LEVEL


@pytest.mark.parametrize("broken", [without_weights, coming_back], ids=lambda f: f.__name__)
def test_the_same_tests_refuse_balancing_done_wrong(broken):
    P, p, y = last_steps(broken)
    assert min(of_rows(P, y).values()) < REFUSED
    assert min(uniform(p).values()) < (REFUSED if broken is without_weights else 0.05)


@pytest.mark.program
def test_sums_over_balanced_streams_vary_more_than_exact_predictors_allow():
    """Why nothing is said of them: steps between two kept examples share what they are compared with."""
    n, runs = 120, 60
    total, nominal = [], []
    for r in range(runs):
        model = Balanced(venn.InductiveVenn(SCORER, OneCategory()), KEEP, seed=r)
        D = 0.0
        for label in (np.random.default_rng(r).random(n) < 0.15).astype(int).tolist():
            P = model.predict_one([0.0, 0.0]).probabilities[label, 1]
            D += label - P
            nominal.append(P * (1 - P))
            model.learn_one([0.0, 0.0], label)
        total.append(D)
    ratio = np.square(total).sum() / (np.sum(nominal) / runs)
    assert stats.chi2.sf(ratio, runs) < REFUSED
