"""Test martingales: equal to their definitions, fair to the last bet, true to their states, and not to be broken."""

import copy
import math
import pickle

import numpy as np
import pytest
from naive import kinds as kinds_of_change
from naive import martingales as naive
from scipy import stats

from venn.monitors.martingales import (
    CellJumper,
    CompositeJumper,
    Power,
    SimpleJumper,
)
from venn.online.checkpoint import pack

ALL = {
    "power": Power, "power .9": lambda: Power(0.9),
    "jumper": SimpleJumper, "composite": CompositeJumper,
    "cells": CellJumper,
}  # fmt: skip
every = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())


def streams(n=60):
    """Return p-values of many kinds: uniform, too small, too large, changing, tied, at the ends."""
    rng = np.random.default_rng(1)
    change = np.concatenate([rng.random(n // 2), rng.beta(0.2, 1, n - n // 2)])
    return {
        "uniform": rng.random(n), "small": rng.beta(0.3, 1, n), "large": rng.beta(1, 0.3, n),
        "middle": rng.beta(30, 30, n), "change": change, "tied": rng.integers(0, 5, n) / 4, "equal": np.full(n, 0.5),
        "decimals": rng.integers(0, 11, n) / 10, "ends": rng.choice([0.0, 1.0, 1e-300, 1e-13, 1 - 1e-13, 1e-12], n),
    }  # fmt: skip


STREAMS = streams()


def steps(martingale, ps):
    """Return ln S after each p-value, one update at a time."""
    path = []
    for p in ps:
        martingale.update(float(p))
        path.append(martingale.log)
    return np.array(path)


def bits(martingale):
    return pack(martingale)


# Definitions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("martingale", "log_capital", "length"),
    [
        (Power(0.3), lambda ps: naive.power(ps, 0.3), 30), (Power(), lambda ps: naive.power(ps, 0.5), 30),
        (SimpleJumper(), lambda ps: naive.jumper(ps, 0.01), 60),
        (SimpleJumper(1.0), lambda ps: naive.jumper(ps, 1.0), 20),
        (CompositeJumper(), lambda ps: naive.composite(ps, (1e-4, 1e-3, 1e-2, 0.1, 1)), 60),
        (CompositeJumper([0.2, 0.3]), lambda ps: naive.composite(ps, (0.2, 0.3)), 60),
        (CellJumper(), lambda ps: math.log(kinds_of_change.capitals(ps)[-1]), 40),
    ],
    ids=lambda value: "definition" if callable(value) else repr(value),  # no address: workers must agree
)  # fmt: skip
def test_capital_is_that_of_the_definition_after_every_step(martingale, log_capital, length):
    for kind, stream in STREAMS.items():
        ps = stream[:length].tolist()
        expected = [log_capital(ps[: n + 1]) for n in range(length)]
        np.testing.assert_allclose(steps(martingale.fresh(), ps), expected, 1e-11, 1e-11, err_msg=kind)


def test_composite_never_falls_below_its_share_that_does_not_bet():
    rng = np.random.default_rng(2)
    assert CompositeJumper().update_many(rng.random(50_000)).min() >= math.log(0.2)


# Fairness --------------------------------------------------------------------------------------------------------

NEAR = np.append(1e-12, 2.0 ** np.arange(-39, -7))
EDGES = np.unique(np.concatenate([[0, 1], NEAR, 1 - NEAR, np.arange(1, 256) / 256, np.arange(1, 30) / 30]))


def mean_bet(martingale):
    """Return the integral over p of the factor by which the capital will change: piecewise Gauss-Legendre."""
    low, high = EDGES[:-1], EDGES[1:]
    inner = (low > 0.06) & (high < 0.94)  # short beside how far they are from the ends
    ps, ws = [], []
    for pieces, degree in ((inner, 3), (~inner, 6)):
        nodes, weights = np.polynomial.legendre.leggauss(degree)
        middle, half = ((low + high) / 2)[pieces, None], ((high - low) / 2)[pieces, None]
        ps.append((middle + half * nodes).ravel())
        ws.append((half * weights).ravel())
    p, w = np.concatenate(ps), np.concatenate(ws)
    start, before = martingale.state, bits(martingale)
    bets = np.empty(p.size)
    twin = copy.deepcopy(martingale)
    for i, q in enumerate(p):
        twin.restore(start)
        twin.update(float(q))
        bets[i] = math.exp(twin.log - martingale.log)
    assert bits(martingale) == before
    return float((bets * w).sum())


@every
@pytest.mark.parametrize("kind", ["change", "tied"])
def test_every_bet_is_fair(make, kind):
    """The mean over uniform p of S_{n+1} / S_n is 1, whatever the p-values before: stronger than E S_n = 1."""
    martingale = make()
    done = 0
    for n in (0, 60) if kind == "change" else (7,):
        martingale.update_many(STREAMS[kind][done:n])
        done = n
        assert mean_bet(martingale) == pytest.approx(1, abs=1e-9)


@every
def test_bets_after_p_values_at_the_ends_are_not_better_than_fair(make):
    martingale = make()
    martingale.update_many(STREAMS["ends"])
    assert mean_bet(martingale) <= 1 + 1e-9


class Broken:
    """Bets p^(-1/10), whose mean is 10/9: no martingale."""

    def update_many(self, ps):
        return np.cumsum(-0.1 * np.log(np.maximum(ps, 1e-12)))


class Unnormalised:
    """Bets the jumper's 1 + (1/2 - p) and a little."""

    def update_many(self, ps):
        return np.cumsum(np.log(1.5 - ps + 0.05))


# The mean of these after 20 steps rests on events too rare for a sample; that their bets are fair is shown above.
MILD = {name: make for name, make in ALL.items() if name != "power"}


def capital_after_20(make, seed, repetitions=4000):
    ps = np.random.default_rng(seed).random((repetitions, 20))
    return np.exp([make().update_many(row)[-1] for row in ps])


def errors_from_one(S):
    return (S.mean() - 1) / (S.std(ddof=1) / math.sqrt(len(S)))


@pytest.mark.parametrize("make", MILD.values(), ids=MILD.keys())
def test_mean_capital_after_20_steps_is_1(make):
    assert abs(errors_from_one(capital_after_20(make, 3))) < 4


@pytest.mark.parametrize("make", [Broken, Unnormalised])
def test_the_same_test_refuses_broken_bets(make):
    assert errors_from_one(capital_after_20(make, 3)) > 4


def p_value_of_crossings(make, seed, streams=500, steps=500):
    """Return the exact binomial p-value of "P(sup S >= 20) <= .05"."""
    ps = np.random.default_rng(seed).random((streams, steps))
    crossings = sum(bool(make().update_many(row).max() >= math.log(20)) for row in ps)
    return stats.binomtest(crossings, streams, 0.05, alternative="greater").pvalue


@every
def test_capital_seldom_reaches_20(make):
    assert p_value_of_crossings(make, 4) > 1e-3


@pytest.mark.parametrize("make", [Broken, Unnormalised])
def test_the_same_test_refuses_broken_bets_that_reach_20(make):
    assert p_value_of_crossings(make, 4) < 1e-6


@every
def test_power_against_p_values_that_are_too_small(make):
    rng = np.random.default_rng(5)
    assert make().update_many(rng.beta(0.5, 1, 1000))[-1] > math.log(1e4)


@pytest.mark.parametrize("make", [SimpleJumper, CompositeJumper, CellJumper])
def test_power_against_p_values_that_are_too_large(make):
    rng = np.random.default_rng(6)
    assert make().update_many(rng.beta(1, 0.5, 1000))[-1] > math.log(1e4)


def test_power_against_p_values_that_crowd_in_the_middle():
    rng = np.random.default_rng(7)
    assert CellJumper().update_many(rng.beta(4, 4, 1000))[-1] > math.log(1e4)


# Streams in blocks, copies, states --------------------------------------------------------------------------------


@every
def test_a_block_is_the_loop_to_the_last_bit(make):
    for kind, ps in STREAMS.items():
        loop, block, cut = make(), make(), make()
        path = steps(loop, ps)
        assert np.array_equal(block.update_many(ps), path), kind
        assert np.array_equal(np.concatenate([cut.update_many(ps[:17]), cut.update_many(ps[17:])]), path), kind
        assert bits(loop) == bits(block) == bits(cut), kind
        assert (block.n, block.log) == (60, path[-1])


@every
def test_long_extreme_streams_leave_finite_logs_and_constant_memory(make):
    """T6: no overflow, nothing that grows, still to be pickled."""
    martingale = make()
    martingale.update_many(STREAMS["tied"])
    size = len(pickle.dumps(martingale))
    for ps in ([0.0], [1.0], [1e-300], [0.5], [1.0, 0.0], [5e-324, 1 - 2**-53]):
        path = martingale.update_many(np.tile(ps, 20_000))
        assert np.isfinite(path).all()
    assert martingale.log == path[-1]
    assert abs(len(pickle.dumps(martingale)) - size) <= 16  # an integer takes as many bytes as it needs
    restored = make()
    restored.restore(martingale.state)
    assert bits(restored) == bits(martingale)


@every
def test_capital_that_no_float_holds(make):
    """The logarithm goes on where the capital itself would overflow, and comes back."""
    martingale = make()
    up = martingale.update_many(np.zeros(20_000))
    assert up[-1] > 1000
    assert (np.diff(up)[100:] > 0).all()


# Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ps",
    [[0.5, math.nan], [0.5, 1.2], [[0.5]], 0.5, "x", ["x"], None, [None], [True], [0.1, [0.2]], np.array([0.5j])],
    ids=repr,
)
def test_bad_p_values_are_refused_together(ps):
    martingale = SimpleJumper()
    with pytest.raises((TypeError, ValueError), match=r"^ps must .*got"):
        martingale.update_many(ps)
    assert martingale.n == 0


@pytest.mark.parametrize("p", [0, 1, np.float32(0.25), np.float64(0.25), np.int64(1)])
def test_numbers_of_other_types_are_numbers(p):
    martingale, same = Power(), Power()
    martingale.update(p)
    same.update(float(p))
    assert bits(martingale) == bits(same)
