"""Numbers in blocks: what they say one by one, around a regressor, across changes; and twins that are broken."""

# ruff: noqa: F811

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from test_blocks import CHANGE, EARLY, N, fits_once, fitted, in_blocks_of, one_by_one, own, refused, rows, same  # noqa: F401

import venn
from venn.online import checkpoint
from venn.online.in_blocks import InBlocks
from venn.predictors.distribution_inductive import Residuals
from venn.predictors.expert_mixture import ExpertMixture
from venn.predictors.inductive_abers import InductiveVennAbers

# ------------------------------------------------------------------------------------------------------------ numbers


def numbers(n, seed, change=10**6, d=3):
    """Rows of d columns and numbers with ties, which are others from some row on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    y = 3 * X[:, 0] + rng.normal(size=n) + np.where(np.arange(n) >= change, 4.0, 0.0)
    return X, y.round(1).tolist()


def read(outlook):
    """What an outlook of a number says, to the last bit."""
    own, forecast = outlook["distribution"], outlook["forecast"]
    arrays = own.points, own.lows, own.highs, forecast.points, forecast.places
    return own.tau, own.grid, *(None if one is None else one.tobytes() for one in arrays), outlook.interval(0.1)


def numbers_alike(make, X, y, sizes):
    """As `assert_alike`, of numbers."""
    alone, said = make(), []
    for x, label in zip(X, y, strict=True):
        said.append(read(alone.predict_one(x)))
        alone.learn_one(x, label)
    states = checkpoint.pack(alone)
    for size in sizes:
        model, learned, found = make(), make(), []
        for i in range(0, len(y), size):
            outlooks = model.replay_many(X[i : i + size], y[i : i + size])
            found += [read(outlooks.one(k)) for k in range(len(y[i : i + size]))]
            assert np.array_equal(outlooks.interval(0.1), [one[-1] for one in found[i:]])
            learned.learn_many(X[i : i + size], y[i : i + size])
        assert found == said, size
        assert checkpoint.pack(model) == checkpoint.pack(learned) == states
        assert str(model.verdict()) == str(alone.verdict())
    return alone


@pytest.mark.parametrize(
    ("estimator", "given"),
    [(LinearRegression(), {}), (RandomForestRegressor(8, random_state=0), {"floor": 0.5, "on_change": "keep"})],
    ids=["linear", "forest"],
)
def test_numbers_come_in_blocks_around_a_regressor_and_across_a_change(estimator, given):
    scorer = estimator.fit(*numbers(200, 1))
    alone = numbers_alike(lambda: venn.Forecaster(scorer=scorer, **given), *numbers(N, 2, CHANGE), (1, 64, 1000))
    assert bool(given) != (alone.monitors["distribution"].verdict().anew is not None)


def with_an_expert():
    """A forecaster of numbers around a regressor, with an expert around another one."""
    one, other = (LinearRegression().fit(*numbers(200, seed)) for seed in (1, 3))
    expert = venn.predictors.InductiveDistribution(venn.machines.FrozenRegressor(other))
    return venn.Forecaster(scorer=one, experts=[expert])


def test_an_expert_of_numbers_goes_on_in_blocks_after_a_change():
    """What it has learned behind the alarm is taken back, and then learned."""
    alone = numbers_alike(with_an_expert, *numbers(N, 2, CHANGE), (64,))
    assert alone.given_experts[0].n == N
    assert alone.monitors["distribution"].verdict().anew is not None


def test_own_machines_of_numbers_come_in_blocks_across_trainings(fits_once):
    alone = numbers_alike(lambda: venn.Forecaster(float, **EARLY), *numbers(115, 2), (30, 1000))
    assert alone["distribution"].over


def test_numbers_before_a_row_that_is_refused_are_learned():
    X, y = numbers(60, 2)
    scorer = LinearRegression().fit(X, y)
    X[40, 0] = np.nan
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    alone.learn_many(X[:40], y[:40])
    refused(lambda: model.replay_many(X, y), ValueError)
    assert checkpoint.pack(model) == checkpoint.pack(alone)
    refused(lambda: model.replay_many(X[:9], [*y[:8], "many"]), ValueError)
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def test_many_rows_of_a_process_and_of_leaves_say_what_each_says_alone(fits_once):
    X, y = numbers(120, 4)
    model = venn.predictors.refits.NumberRefits(first=100)
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    many = model.predict_many(X[:50])
    assert np.array_equal(many, [model.predict_one(x) for x in X[:50]])
    assert not np.isnan(many).any()


# ------------------------------------------------------------------------------------------------------- broken twins


def broken(monkeypatch, owner, name, twin):
    """Whether blocks still say what rows say one by one if a method is another one."""
    scorer, (X, y) = fitted(LogisticRegression()), rows(2, N, 2, CHANGE)
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    said = one_by_one(alone, X, y)
    monkeypatch.setattr(owner, name, twin)
    return same(in_blocks_of(N, model, X, y), said)


def test_a_monitor_that_sees_the_end_of_the_block_is_found_out(monkeypatch):
    def watched(self, said, codes, along=None):
        rung = []
        for name in self.claiming:
            monitor = self.monitors[name]
            rung += [alarm for each in monitor.in_turn(monitor.scored(said[name], codes)) for alarm in each]
        return -len(codes) if rung and self._changed else len(codes)

    assert not broken(monkeypatch, InBlocks, "_watched", watched)


def test_a_calibration_that_keeps_rows_behind_the_alarm_is_found_out(monkeypatch):
    assert not broken(monkeypatch, InductiveVennAbers, "take_back", lambda self, codes, scores: None)


def test_a_mixture_that_learns_a_block_at_once_is_found_out(monkeypatch):
    weigh = ExpertMixture.weigh_many

    def at_once(self, codes, each):
        out = self._mixed(each, np.full(len(codes), -1))[0]
        weigh(self, codes, each)
        return out

    assert not broken(monkeypatch, ExpertMixture, "weigh_many", at_once)


def test_residuals_that_stay_behind_an_alarm_are_found_out(monkeypatch):
    alone, model, (X, y) = with_an_expert(), with_an_expert(), numbers(N, 2, CHANGE)
    for x, label in zip(X, y, strict=True):
        alone.learn_one(x, label)
    monkeypatch.setattr(Residuals, "take_back", lambda self, scores, codes: None)
    model.learn_many(X, y)
    assert model.n == alone.n
    assert checkpoint.pack(model) != checkpoint.pack(alone)
