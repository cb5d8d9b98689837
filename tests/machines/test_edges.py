"""One step beyond what is allowed is refused; parts whose faults the whole corrects or seldom shows are right alone."""

import copy
import math
import pickle
import sys
from collections import deque

import numpy as np
import pytest
from conftest import public

import venn
from venn._compiled.mixture import loss_of
from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS
from venn._compiled.scaling import roots
from venn._compiled.solvers import descend, send_to_ends
from venn.distribution import PredictiveDistribution
from venn.machines import FrozenRegressor
from venn.machines.batch_solve import feasible
from venn.online.checkpoint import pack, unpack
from venn.predictors import InductiveDistribution
from venn.predictors.blocks import ManyForecasts
from venn.predictors.inductive import regret_bound
from venn.show.notify import AlarmCommand

SQUARES = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, [0, 1])


PUBLIC = public()


def test_the_loss_of_a_sigmoid_is_its_definition():
    rng = np.random.default_rng(1)
    for m in (1, 7, 8, 9, 100):
        f, positives = np.sort(rng.normal(size=m)), rng.uniform(size=m)
        slope, offset, centre = rng.normal(size=3)
        p = [1 / (1 + math.exp(slope * (score - centre) + offset)) for score in f.tolist()]
        loss = sum(-y * math.log(q) - (1 - y) * math.log(1 - q) for y, q in zip(positives.tolist(), p, strict=True))
        root = np.empty(m)
        roots(f, slope, offset, centre, root)
        assert loss_of(f, positives, np.array([slope, offset, centre]), root) == pytest.approx(loss, rel=1e-9)


def test_no_time_of_a_scorecard_is_below_0():
    card = venn.monitors.Scorecard([0, 1])
    with pytest.raises(ValueError, match="times must be"):
        card.update_many(ManyForecasts(np.full((1, 2), 0.5), [0, 1]), [0], times=[-1])


def test_no_regret_without_examples():
    for c in (2, 3, 9):
        assert regret_bound(0, c) == 0.0


def test_the_program_of_a_command_is_its_name():
    assert AlarmCommand(["program"]).name == AlarmCommand(["program", "argument"]).name == "program"


def test_quantiles_are_the_points_in_order():
    for n in range(5):
        points = np.sort(np.random.default_rng(n).integers(0, 3, n).astype(float))
        told = PredictiveDistribution(points, 0.5, origin=0.0)
        for q in np.arange(0, 41) / 40:
            rank = math.ceil(round(q * (n + 1), 9))
            expected = -math.inf if rank == 0 else math.inf if rank > n else points[rank - 1]
            assert told.quantile(q) == expected


class Line:
    """A fitted regressor: some number times the first feature, and one."""

    def __init__(self, slope):
        self.slope = slope

    def predict(self, X):
        return self.slope * np.asarray(X)[:, 0] + 1.0


def test_residuals_are_over_their_own_spread():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 4, (12, 1)).astype(float), rng.integers(-3, 9, 12).astype(float)
    model = InductiveDistribution(FrozenRegressor(Line(2.0), Line(0.5)))
    model.learn_many(X[:5], y[:5])
    for i in range(5, 12):
        told = model.predict_one(X[i])
        scores = (y[:i] - Line(2.0).predict(X[:i])) / Line(0.5).predict(X[:i])
        for label in np.arange(-4.0, 10.0):
            score = (label - Line(2.0).predict(X[i : i + 1])[0]) / Line(0.5).predict(X[i : i + 1])[0]
            less, ties = (scores < score - 1e-9).sum(), (np.abs(scores - score) <= 1e-9).sum()
            assert told.p_value(label) == pytest.approx((less + told.tau * (ties + 1)) / (i + 1))
        model.learn_one(X[i], y[i])


def test_a_copy_of_a_choice_counts_equal_examples_too():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (24, 2)).astype(float), rng.integers(0, 2, 24)
    found = venn.machines.tune(zip(X, y, strict=True), [0, 1], kernels=[venn.RBF(0.5)], penalties=[1.0])
    assert found.n == copy.deepcopy(found).n == pickle.loads(pickle.dumps(found)).n == 24


def test_a_merged_map_of_many_scores_has_them_all():
    rng = np.random.default_rng(5)
    scores, y = rng.normal(size=40_000), rng.integers(0, 2, 40_000)
    many, none = venn.maps.VennAbers(), venn.maps.VennAbers()
    many.insert_many(scores, y)
    assert np.array_equal(many.merge(none).query_many(scores[:50]), many.query_many(scores[:50]))


def test_a_deque_keeps_its_length():
    for most in (None, 0, 3):
        again = unpack(pack(deque([1, 2, 3], most)))
        assert list(again) == list(deque([1, 2, 3], most))
        assert again.maxlen == most


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"every": 0}, "every must be an integer >= 1, got 0"), ({"share": 0}, "share must be a number in"),
        ({"share": 1.01}, "share must be a number in"), ({"largest": -1}, "largest must be an integer >= 0, got -1"),
    ],
)  # fmt: skip
def test_a_journal_one_step_beyond(tmp_path, given, says):
    with pytest.raises(ValueError, match=says):
        venn.online.Journal(tmp_path / "run.db", **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if hasattr(thing, "made_of")])
def test_parameters_that_are_none_are_refused(name):
    with pytest.raises((TypeError, ValueError)):
        PUBLIC[name].made_of({"nonsense": 1})


def test_alarms_of_a_state_are_a_list():
    model = venn.predictors.Adaptive(venn.Conformal(SQUARES), monitor=venn.Monitor([0, 1]))
    for i in range(4):
        model.learn_one([float(i)], i % 2)
    before = model.state
    for bad in (None, "ab"):
        with pytest.raises(ValueError, match="rung must"):
            model.restore(before | {"rung": bad})


def test_a_command_that_was_stopped_starts_no_more(tmp_path):
    command = AlarmCommand([sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"])
    command.stop()
    with pytest.raises(OSError, match="the run has ended"):
        command.send({})
    assert not list(tmp_path.iterdir())


def test_pairwise_descent_ends_where_no_pair_gains():
    rng = np.random.default_rng(6)
    x, y, C, gap = rng.integers(0, 5, 30) / 2, rng.choice([-1.0, 1.0], 30), 2.0, 1e-4
    K = np.exp(-((x[:, None] - x) ** 2))
    beta, score = np.zeros(30), np.zeros(30)
    descend(K, 30, (y > 0).astype(float), np.ones(30), C, beta, score, gap, 100_000)
    low, high = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    assert ((low <= beta) & (beta <= high)).all()
    assert beta.sum() == pytest.approx(0.0, abs=1e-9)
    assert score == pytest.approx(K @ beta, abs=1e-9)
    assert (y - score)[beta < high].max() - (y - score)[beta > low].min() <= gap + 1e-9


def test_coefficients_for_other_masses_start_within_them():
    rng = np.random.default_rng(8)
    for C in (0.5, 3.0):
        old, new = rng.integers(1, 4, (2, 2, 12)).astype(float)
        shares = rng.uniform(size=(2, 12)) * C * old
        shares *= shares.sum(axis=1).min() / shares.sum(axis=1, keepdims=True)
        beta = feasible(C, shares[0] - shares[1], old, new)
        assert beta.sum() == pytest.approx(0.0, abs=1e-9)
        assert ((-C * new[1] - 1e-12 <= beta) & (beta <= C * new[0] + 1e-12)).all()


def test_coefficients_go_to_the_ends_of_their_states():
    rng = np.random.default_rng(9)
    C, n = 1.5, 40
    x, state = rng.normal(size=n), rng.integers(-2, 3, n).astype(np.int8)
    K = np.exp(-((x[:, None] - x) ** 2))
    positive, negative = rng.integers(0, 4, (2, n)).astype(float)
    beta = rng.normal(size=n)
    score = K @ beta
    ends = {ABOVE: -C * negative, MIDDLE: C * (positive - negative), BELOW: C * positive}
    expected = np.choose(state + 2, [ends.get(one, beta) for one in range(-2, 3)])
    assert set(ends) | {PLUS, MINUS} == set(range(-2, 3))
    send_to_ends(K, n, positive, positive + negative, C, state, beta, score)
    assert beta == pytest.approx(expected, abs=1e-12)
    assert score == pytest.approx(K @ expected, abs=1e-9)


def test_one_bin_holds_all_forecasts():
    card = venn.monitors.Scorecard([0, 1], bins=1)
    card.update_many(ManyForecasts(np.array([[0.9, 0.1], [0.2, 0.8]]), [0, 1]), [0, 0])
    assert card.ece == pytest.approx(0.85 - 0.5)  # mean probability of the predicted label, and share of hits
