"""Sets of labels by default: what they are made of, the definition where most tie, validity in every period."""

import pickle

import numpy as np
import pytest
from conftest import objects
from inductive_cases import Centroids, blocks_are_the_loop
from naive import conformal as naive
from naive import inductive_conformal as naive_ranks
from naive.coins import coin
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

import venn
from venn.machines import Bank, FrozenScorer, Mixture, Stack
from venn.nonconformity import APS, LAC, Margin, OwnScore, Share
from venn.online import Forecaster
from venn.predictors import Switch
from venn.predictors.inductive_conformal import InductiveConformal
from venn.schedules import NoTraining, Prefix

LEVEL = 1e-3


class Tenths:
    """A fitted classifier of four classes whose probabilities are rounded to tenths, so that most examples tie."""

    classes_ = np.arange(4)

    def predict_proba(self, X):
        first = np.rint(abs(np.asarray(X)[:, 0]) * 2) % 8 / 10
        second = np.minimum(np.rint(abs(np.asarray(X)[:, 1]) * 2) % 4 / 10, 1 - first)
        return np.column_stack([first, second, np.zeros(len(first)), 1 - first - second])


class Odds(Centroids):
    """A machine that says its scores are logarithms of odds."""

    log_odds = True

    def fresh(self):
        return Odds(self.classes)


class ByHeart:
    """A machine that knows the labels of the examples it has learned, and nothing else."""

    log_odds = True

    def __init__(self, classes):
        self.classes, self.n, self.known = tuple(classes), 0, {}

    def fresh(self):
        return ByHeart(self.classes)

    def check(self, x, y):
        pass

    def learn_one(self, x, y):
        self.known[np.asarray(x).tobytes()] = self.classes.index(y)
        self.n += 1

    def scores(self, x):
        return np.where(np.arange(len(self.classes)) == self.known.get(np.asarray(x).tobytes(), -1), 2.0, -2.0)


def wide(n=300, c=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    return rng.normal(size=(n, 4)) + np.eye(c, 4)[y], y


# What they are made of -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label_conditional", [False, True])
def test_every_step_is_the_definition_where_most_examples_tie(label_conditional):
    rng = np.random.default_rng(0)
    X, y = objects("grid", rng, 60), rng.integers(0, 4, 60)
    model = InductiveConformal(FrozenScorer(Tenths()), label_conditional=label_conditional, seed=5)
    for n in range(60):
        ranks = naive_ranks.ranks(
            X, y, X[n], ([], list(range(n))), 4, lambda X, y, Q, c: Tenths().predict_proba(Q), naive.shares,
            label_conditional,
        )  # fmt: skip
        expected = naive_ranks.p_values(ranks, coin(5, n, X[n]))
        assert model.predict_one(X[n]).p_values.tolist() == pytest.approx(expected, abs=1e-12), f"step {n}"
        model.learn_one(X[n], int(y[n]))


def assert_same(block, i, prediction):
    assert np.array_equal(block.p_values[i], prediction.p_values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: InductiveConformal(FrozenScorer(Tenths(), (3, 0, 1, 2))),
        lambda: InductiveConformal(Odds(range(3)), schedule=Prefix(0.5, first=4, last=16)),
    ],
    ids=["probabilities", "log odds"],
)
def test_blocks_say_what_the_loop_says(make):
    blocks_are_the_loop(make, assert_same)


def test_they_are_read_from_probabilities_where_there_are_any():
    X, y = wide()
    both, two, decisions = LogisticRegression().fit(X, y), LogisticRegression().fit(X, y > 2), LinearSVC().fit(X, y)
    given = FrozenScorer(both, method="decision_function")
    for scorer, measure, usual, probabilities in (
        (FrozenScorer(both), None, Share, True), (FrozenScorer(both), LAC(), LAC, False),
        (FrozenScorer(both), Margin(), Margin, False), (given, None, Margin, False),
        (FrozenScorer(two), None, Margin, False), (FrozenScorer(decisions), None, Margin, False),
    ):  # fmt: skip
        model = InductiveConformal(scorer, measure)
        assert type(model.measure) is usual
        assert model.given.probabilities is probabilities
    for estimator, measure, probabilities in (
        (both, None, True), (both, APS(), True), (both, Share(), True), (both, LAC(temperature=2), False),
        (both, Margin(), False), (two, APS(), False), (RidgeClassifier().fit(X, y), APS(), False),
    ):  # fmt: skip
        assert Forecaster(scorer=estimator, measure=measure)["sets"].given.probabilities is probabilities
    for machine in (Odds(range(3)), Stack(range(3))):
        assert type(InductiveConformal(machine, schedule=Prefix()).measure) is OwnScore
    assert type(InductiveConformal(Odds(range(2)), schedule=Prefix()).measure) is Margin


def test_they_are_those_of_split_conformal_by_one_minus_the_probability():
    """Where no two values lie on one step of the grid: the same ranks, and so the same sets."""
    X, y = wide(400)
    fitted = LogisticRegression().fit(*wide(seed=1))
    model = InductiveConformal(FrozenScorer(fitted), smoothed=False)
    model.learn_many(X[:300], y[:300])
    strange = 1 - fitted.predict_proba(X)
    calibration = np.sort(strange[np.arange(300), y[:300]])
    for x, row in zip(X[300:], strange[300:], strict=True):
        counts = 301 - np.searchsorted(calibration, row - 1e-9)
        assert model.predict_one(x).p_values == pytest.approx(counts / 301, abs=1e-12)


def test_small_probabilities_are_told_apart_and_rounded_ones_are_taken_as_they_are():
    rows = np.array([[1 - 3e-9, 1e-9, 2e-9], [1 - 3e-9, 2e-9, 1e-9]])
    assert np.diff(Share().steps(rows, np.array([1, 1]))) < 0
    assert np.diff(LAC().steps(rows, np.array([1, 1]))) == 0
    off = np.array([[0.7004, 0.2, 0.1], [0.7, 0.2, 0.1]])  # one row adds up to more than 1
    for measure in (Share(), LAC(), APS(randomised=False)):  # none of them reads one of the rows as decision values
        assert np.ptp(measure.values(off, np.array([0, 0]))) < 1e-3


def test_scores_below_zero_are_no_shares():
    with pytest.raises(ValueError, match=r"scores must be at least 0, as probabilities are, for Share\(.*\), got -1"):
        Share().values(np.array([[1.0, -1.0]]), np.array([0]))


def test_a_measure_of_your_own_derived_from_a_share_is_used():
    class Opposite(Share):
        def values(self, scores, codes):
            return -super().values(scores, codes)

    X, y = wide(60, 3)
    answers = []
    for measure in (Share(), Opposite()):
        machine = Mixture(Bank(venn.RBF(0.5), range(3)))
        model = venn.Conformal(machine, measure, smoothed=False)
        for x, label in zip(X, y.tolist(), strict=True):
            model.learn_one(x, label)
        answers.append(model.predict_one(X[0] + 0.1).p_values)
    assert answers[0].argmax() != answers[1].argmax()


# In a forecaster -----------------------------------------------------------------------------------------------------


def test_a_forecaster_takes_a_measure_and_keeps_it():
    X, y = wide()
    fitted = LogisticRegression().fit(X, y)
    model = Forecaster(scorer=fitted, measure=APS(seed=3))
    model.learn_many(X[:40], y[:40].tolist())
    assert "measure=APS(" in repr(model)
    assert "measure" not in repr(Forecaster(scorer=fitted))
    back = pickle.loads(pickle.dumps(model))
    assert np.array_equal(back.predict_one(X[50]).p_values, model.predict_one(X[50]).p_values)
    back._begin_anew()  # noqa: SLF001
    assert repr(back["sets"].measure) == repr(model["sets"].measure)
    assert back["sets"].n == 0
    decisions = Forecaster(scorer=fitted, measure=Margin())
    decisions._begin_anew()  # noqa: SLF001
    assert not decisions["sets"].given.probabilities  # though the intervals read these
    for arguments in ({"classes": range(3)}, {"classes": float}):
        with pytest.raises(TypeError, match=r"measure must be given with a scorer only, .*, got APS"):
            Forecaster(**arguments, measure=APS())
    with pytest.raises(TypeError, match=r"measure must be given for a classifier only, .*, got APS"):
        Forecaster(scorer=venn.FrozenRegressor(LinearRegression().fit(X, y)), measure=APS())


# Validity ------------------------------------------------------------------------------------------------------------

N, FIRST, SECOND = 60, 20, 40


def handing_over(c, seed):
    """Sets as of a forecaster: by a mixture, then by a machine that is trained twice."""
    bank = Bank(venn.RBF(0.5), range(c))
    late = InductiveConformal(ByHeart(range(c)), schedule=Prefix(0.5, first=FIRST, last=SECOND), seed=seed)
    return Switch(venn.Conformal(Mixture(bank), Share(), seed=seed), late)


class Seen(InductiveConformal):
    """Broken: what calibrates has been learned by heart, too."""

    def _fit(self, X, codes, calibrated):
        super()._fit(X, codes, calibrated)
        for x, code in zip(X, codes.tolist(), strict=True):
            self.scorer.learn_one(x, code)
        calibrates = np.setdiff1d(np.arange(len(X)), self._trained_on)
        self._reader.clear()
        self._reader.add(self.read(X[calibrates]), codes[calibrates])


def errors(make, streams=40, c=3):
    """Return p-values of the numbers of errors in each period between trainings: binomial, if all is as claimed."""
    found, rng = [], np.random.default_rng(1)
    p = np.empty((streams, N))
    for seed in range(streams):
        X = objects(("normal", "grid")[seed % 2], rng, N)
        y = np.where(rng.random(N) < 0.5, (X[:, 0] > 0).astype(int), rng.integers(0, c, N))
        model = make(c, seed)
        for i in range(N):
            p[seed, i] = model.predict_one(X[i]).p_values[y[i]]
            model.learn_one(X[i], int(y[i]))
    for period in (slice(0, FIRST), slice(FIRST, SECOND), slice(SECOND, N)):
        part = p[:, period]
        found += [stats.binomtest(int((part <= e).sum()), part.size, e).pvalue for e in (0.05, 0.1, 0.2)]
    return np.array(found)


def test_errors_are_binomial_in_each_period_through_the_hand_over_and_every_training():
    assert errors(handing_over).min() > LEVEL


def test_they_are_not_if_the_machine_has_seen_what_calibrates():
    def broken(c, seed):
        return Seen(ByHeart(range(c)), schedule=Prefix(0.5, first=FIRST, last=SECOND), seed=seed)

    assert errors(broken).reshape(3, 3)[1:, 1:].max() < 1e-6  # after a training, at .1 and .2


@pytest.mark.parametrize("label_conditional", [False, True])
def test_errors_around_given_probabilities_that_tie_are_binomial(label_conditional):
    rng = np.random.default_rng(2)
    X, y = objects("grid", rng, 3000), rng.integers(0, 4, 3000)
    model = InductiveConformal(
        FrozenScorer(Tenths()), schedule=NoTraining(), label_conditional=label_conditional, seed=9
    )
    p = model.replay_many(X, y).p_values[np.arange(3000), y]
    assert stats.kstest(p, "uniform").pvalue > LEVEL
    for e in (0.05, 0.1, 0.2):
        assert stats.binomtest(int((p <= e).sum()), 3000, e).pvalue > LEVEL
