"""Bounds: equal to their definition after every step, right at all times at once, and loud where they must be.

Statistical tests count streams with fixed seeds and compare with the exact binomial distribution. A true claim
is refused at LEVEL; a broken variant of each bound must be refused far beyond it.
"""

import numpy as np
import pytest
from centroids import NearestCentroid
from naive import bounds as naive
from scipy import stats
from test_validity import OneCategory

import venn
from venn.monitors.bounds import (
    BETS,
    BettingBound,
    DeviationBand,
    ForwardEProcess,
    StitchedBound,
    binomial_limits,
    deviation_radius,
)
from venn.online.checkpoint import pack

LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6
SEQUENCES = {
    "stitched": StitchedBound(),
    "stitched, empirical": StitchedBound(0.01, empirical=True),
    "betting": BettingBound(0.05, cells=40),
}
DEFINITIONS = {
    "stitched": lambda xs: naive.stitched(xs, 0.05, False),
    "stitched, empirical": lambda xs: naive.stitched(xs, 0.01, True),
    "betting": lambda xs: naive.betting_on_grid(xs, 0.05, 40),
}
DATA = {
    "coins": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "rare": lambda rng, n: (rng.random(n) < 0.05).astype(float), "ties": lambda rng, n: rng.integers(0, 5, n) / 4,
    "uniform": lambda rng, n: rng.random(n), "narrow": lambda rng, n: rng.beta(60, 20, n),
    "zeros": lambda rng, n: np.zeros(n), "ones": lambda rng, n: np.ones(n),
    "change": lambda rng, n: np.where(np.arange(n) < n // 2, 1.0, 0.0),
}  # fmt: skip


def too_many(count, trials, level):
    """Return the p-value of "an event of probability at most `level` happened `count` times"."""
    return stats.binom.sf(count - 1, trials, level)


# Each is its definition --------------------------------------------------------------------------------------------


def test_stitched_boundary_has_the_value_that_its_authors_publish():
    assert naive.stitched_boundary(100, v_min=10, scale=3, alpha=0.05) == pytest.approx(64.48755, abs=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("kind", DATA)
def test_confidence_sequence_equals_its_definition_after_every_step(name, kind):
    xs = DATA[kind](np.random.default_rng(1), 50)
    bound = SEQUENCES[name].fresh()
    assert (bound.lower, bound.upper, bound.n) == (0.0, 1.0, 0)
    for i, x in enumerate(xs):
        bound.update(x)
        assert (bound.lower, bound.upper) == pytest.approx(DEFINITIONS[name](xs[: i + 1].tolist()), abs=1e-11)
        assert bound.n == i + 1


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("cells", [2, 7, 1000])
def test_grid_of_the_betting_bound_encloses_all_real_candidates_and_by_one_cell_only(kind, cells):
    xs = DATA[kind](np.random.default_rng(2), 400)
    bound = BettingBound(0.05, cells)
    bound.update_many(xs)
    lower, upper = naive.betting_exact(xs.tolist(), 0.05)
    edges = np.sin(np.pi * np.arange(cells + 1) / (2 * cells)) ** 2
    assert bound.lower <= lower + 1e-9 <= edges[edges > bound.lower + 1e-12][0] + 2e-9
    assert edges[edges < bound.upper - 1e-12][-1] - 2e-9 <= upper - 1e-9 <= bound.upper


def test_betting_capital_survives_long_streams():
    xs = np.concatenate([np.ones(30000), np.random.default_rng(3).random(30000) < 0.1]).astype(float)
    bound = BettingBound(cells=30)
    bound.update_many(xs)
    n = np.arange(1, len(xs) + 1)
    departures = xs - (0.5 + np.cumsum(xs)) / (n + 1)
    variance = (0.25 + np.cumsum(departures**2) - departures**2) / n
    bets = np.sqrt(2 * np.log(2 / 0.05) / (variance * n * np.log(1 + n)))
    means = np.sin(np.pi * np.arange(1, 30) / 60)[:, None] ** 2
    up = np.log1p(np.minimum(bets, 0.5 / means) * (xs - means)).sum(axis=1)
    down = np.log1p(-np.minimum(bets, 0.5 / (1 - means)) * (xs - means)).sum(axis=1)
    assert max(abs(up).max(), abs(down).max()) > 5000  # far beyond what a float could hold without logarithms
    wealth = bound.state["memory"][5:].reshape(4, -1)
    assert np.log(wealth[0]) + wealth[2] == pytest.approx(up, rel=1e-9)
    assert np.log(wealth[1]) + wealth[3] == pytest.approx(down, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_deviation_band_equals_its_definition(seed):
    ds = np.random.default_rng(seed).integers(-4, 5, 60) / 4
    band = DeviationBand(0.1)
    assert (band.total, band.radius, band.outside) == (0.0, 0.0, False)
    for i, d in enumerate(ds):
        band.update(d)
        total, radius = naive.deviation(ds[: i + 1].tolist(), 0.1)
        assert band.total == pytest.approx(total, abs=1e-12)
        assert band.radius == pytest.approx(radius, rel=1e-12)
        assert band.outside == (abs(total) >= radius)


def test_radius_at_a_fixed_number_is_the_classical_one():
    assert deviation_radius(1, 2 / np.e**2) == pytest.approx(1.0)
    assert deviation_radius(400, 2 / np.e**2) == pytest.approx(20.0)


@pytest.mark.parametrize("seed", range(3))
def test_forward_process_equals_its_definition(seed):
    rng = np.random.default_rng(seed)
    hits = rng.integers(0, 2, 80).astype(bool)
    bounds = np.sort(rng.integers(0, 5, (80, 2)) / 4, axis=1)
    process = ForwardEProcess()
    assert process.log == 0.0
    for i in range(80):
        process.update(hits[i], bounds[i, 0], bounds[i, 1])
        past = slice(i + 1)
        assert process.log == pytest.approx(naive.forward(hits[past], *bounds[past].T, BETS), abs=1e-10)


def test_forward_process_stays_finite_in_logs():
    process = ForwardEProcess()
    path = process.update_many(np.ones(100_000), np.zeros(100_000), np.zeros(100_000))
    assert np.isfinite(path).all()
    assert process.log == pytest.approx(100_000 * np.log1p(0.5), rel=1e-4)


# What all of them share ----------------------------------------------------------------------------------------------


ALL = [*SEQUENCES.values(), BettingBound(), DeviationBand(0.2), ForwardEProcess()]


@pytest.mark.parametrize("name", SEQUENCES)
def test_what_is_no_number_in_the_unit_interval_is_refused(name):
    bound = SEQUENCES[name].fresh()
    bound.update_many([0.5, True, 0])
    before, steps = pack(bound), bound.n
    for bad in (float("nan"), 1.2, -0.1, float("inf"), 2, np.float64("nan"), np.float32(1.5)):
        with pytest.raises(ValueError, match=r"x must lie in \[0, 1\], got"):
            bound.update(bad)
        with pytest.raises(ValueError, match=r"x must lie in \[0, 1\], got .* at position 1"):
            bound.update_many([0.5, bad])
    for bad in ("x", None, 1j, [0.5], np.array([0.5, 0.5])):
        with pytest.raises(TypeError, match=r"x must be a number in \[0, 1\], got"):
            bound.update(bad)
    for bad in (["x"], [None], [1j]):
        with pytest.raises(TypeError, match="x must be a 1-D array of numbers, got dtype"):
            bound.update_many(bad)
    for bad in (0.5, [[0.5]], [[0.5], [0.5, 0.5]]):
        with pytest.raises(ValueError, match="x must be a 1-D array of numbers, got"):
            bound.update_many(bad)
    assert pack(bound) == before
    assert bound.update_many([]).shape == (0, 2)
    bound.update(np.True_)
    bound.update(np.int64(1))
    assert bound.n == steps + 2


def test_what_is_no_bet_is_refused():
    process = ForwardEProcess()
    process.update(True, 0.2, 0.4)
    before = pack(process)
    for bad, error, message in (
        ((0.5, 0.2, 0.4), ValueError, "hit must be 0 or 1, got 0.5"),
        ((None, 0.2, 0.4), TypeError, "hit must be a number"),
        ((1, float("nan"), 0.4), ValueError, "lower must lie in"),
        ((1, False, 0.4), TypeError, "lower must be a"),
        ((1, 0.2, 1.4), ValueError, "upper must lie in"),
        ((1, 0.5, 0.4), ValueError, "lower must be at most upper, got 0.5 > 0.4"),
    ):
        with pytest.raises(error, match=message):
            process.update(*bad)
        with pytest.raises((TypeError, ValueError), match=message.split()[0]):
            process.update_many(*([value] for value in bad))
    with pytest.raises(ValueError, match=r"lower must be at most upper, got 0\.5 > 0\.4 at position 1"):
        process.update_many([0, 1], [0.1, 0.5], [0.4, 0.4])
    with pytest.raises(ValueError, match="equal length, got 2, 1 and 1"):
        process.update_many([0, 1], [0.1], [0.4])
    assert pack(process) == before


def test_a_radius_is_of_a_number_of_steps():
    with pytest.raises(ValueError, match="n must be an integer >= 1, got 0"):
        deviation_radius(0)
    with pytest.raises(TypeError, match="n must be an integer >= 1, got True"):
        deviation_radius(True)


@pytest.mark.parametrize("monitor", ALL, ids=repr)
def test_statement_says_what_is_a_theorem(monitor):
    assert monitor.statement.startswith("Theorem")
    assert monitor.statement.count(".") - monitor.statement.count("0.") == 1


# Right at all times at once ------------------------------------------------------------------------------------------

STREAMS, STEPS = 300, 2000
MEANS = {  # data of a known mean
    "fair coins": (lambda rng: rng.integers(0, 2, STEPS).astype(float), 0.5),
    "rare hits": (lambda rng: (rng.random(STEPS) < 0.03).astype(float), 0.03),
    "uniform": (lambda rng: rng.random(STEPS), 0.5),
    "skewed": (lambda rng: rng.beta(0.3, 2.7, STEPS), 0.1),
    "three values": (lambda rng: rng.choice([0.0, 0.5, 1.0], STEPS, p=[0.1, 0.1, 0.8]), 0.85),
}


def misses(path_of, kind):
    """Return the number of streams in which the mean is ever outside."""
    draw, mean = MEANS[kind]
    paths = (path_of(draw(np.random.default_rng(seed))) for seed in range(STREAMS))
    return sum(bool(((path[:, 0] > mean) | (path[:, 1] < mean)).any()) for path in paths)


@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize("bound", [StitchedBound(), StitchedBound(empirical=True), BettingBound(cells=300)], ids=repr)
def test_mean_is_inside_at_all_times_at_once(bound, kind):
    count = misses(lambda xs: bound.fresh().update_many(xs), kind)
    assert too_many(count, STREAMS, bound.level) > LEVEL


def test_interval_for_a_fixed_number_is_not_right_at_all_times():
    count = misses(lambda xs: naive.hoeffding_at_each_n(xs, 0.05), "fair coins")
    assert too_many(count, STREAMS, 0.05) < 1e-6


@pytest.mark.parametrize("empirical", [False, True])
def test_stitched_bound_follows_conditional_means_that_change(empirical):
    means = 0.5 + 0.45 * np.sin(np.arange(STEPS) / 300)
    average = np.cumsum(means) / np.arange(1, STEPS + 1)
    count = 0
    for seed in range(STREAMS):
        xs = np.random.default_rng(seed).random(STEPS) < means
        path = StitchedBound(empirical=empirical).update_many(xs)
        count += bool(((path[:, 0] > average) | (path[:, 1] < average)).any())
    assert too_many(count, STREAMS, 0.05) > LEVEL


def test_variance_that_is_learned_pays_where_it_is_small():
    xs = (np.random.default_rng(9).random(20000) < 0.97).astype(float)
    widths = {}
    for bound in (StitchedBound(), StitchedBound(empirical=True), BettingBound()):
        bound.update_many(xs)
        widths[repr(bound)] = bound.upper - bound.lower
    plain, *adaptive = widths.values()
    assert max(adaptive) < plain / 1.5


# Deviations of realised rows ------------------------------------------------------------------------------------------


def one_category(y, c):
    """Return the realised rows (n, c) of the one-category Venn predictor, by the engine."""
    machine = NearestCentroid(range(c))
    model = venn.TransductiveVenn(machine, OneCategory())
    rows = []
    for i, label in enumerate(y.tolist()):
        rows.append(model.predict_one(np.array([float(i % 5)])).probabilities[label])
        model.learn_one(np.array([float(i % 5)]), label)
    return np.array(rows)


def test_band_holds_on_a_stream_of_the_engine_and_breaks_where_labels_are_sorted():
    y = np.random.default_rng(10).choice(3, 400, p=[0.5, 0.3, 0.2])
    for labels, breaks in ((y, False), (np.sort(y), True)):
        rows = one_category(labels, 3)
        best = rows.argmax(axis=1)
        events = [((labels == k).astype(float), rows[:, k]) for k in range(3)]
        events.append(((labels == best).astype(float), rows.max(axis=1)))
        outside = []
        for hits, probabilities in events:
            path = DeviationBand(0.05 / 4).update_many(hits - probabilities)
            outside.append(bool((abs(path[:, 0]) >= path[:, 1]).any()))
        assert any(outside) == breaks


def coin_deviations(seed, n=3000):
    """Return the realised-row deviations of "class 1" for the one-category predictor on fair coins."""
    hits, lower, upper = naive.fair_coin_venn(np.random.default_rng(seed), n)
    return hits - np.where(hits == 1, upper, lower)


def test_simulated_deviations_are_those_of_the_engine():
    hits = np.random.default_rng(11).integers(0, 2, 60)
    expected = hits - one_category(hits, 2)[:, 1]
    assert coin_deviations(11, 60) == pytest.approx(expected, abs=1e-15)


def test_band_is_left_ever_no_more_often_than_stated_and_that_of_a_fixed_number_is():
    ever = fixed = last = 0
    radii = np.array([deviation_radius(n, 0.2) for n in range(1, 3001)])
    for seed in range(400):
        path = DeviationBand(0.2).update_many(coin_deviations(seed))
        ever += bool((abs(path[:, 0]) >= path[:, 1]).any())
        fixed += bool((abs(path[:, 0]) >= radii).any())
        last += bool(abs(path[-1, 0]) >= radii[-1])
    assert too_many(ever, 400, 0.2) > LEVEL
    assert too_many(last, 400, 0.2) > LEVEL
    assert too_many(fixed, 400, 0.2) < 1e-6


# Evidence against point forecasts -------------------------------------------------------------------------------------


def crossings(shift, streams=1000, steps=1000, alpha=0.05):
    """Return how many streams of point forecasts, each off by `shift`, reach 1 / alpha."""
    count = 0
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(0.05, 0.85, steps)
        hits = rng.random(steps) < truth
        path = ForwardEProcess().update_many(hits, truth + shift, truth + shift)
        count += path.max() >= np.log(1 / alpha)
    return count


def test_true_point_forecasts_alarm_no_more_often_than_stated():
    assert too_many(crossings(0.0), 1000, 0.05) > LEVEL


@pytest.mark.parametrize("shift", [0.1, -0.05])
def test_shifted_point_forecasts_alarm(shift):
    streams = 200
    assert crossings(shift, streams, 3000) >= 0.99 * streams


def test_a_forecaster_who_changes_his_mind_by_the_past_is_safe_as_well():
    count = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        hits, truth = np.empty(500), np.empty(500)
        state = 0.5
        for n in range(500):
            truth[n] = state
            hits[n] = rng.random() < state
            state = 0.9 * state + 0.1 * hits[n] * rng.random()
        count += ForwardEProcess().update_many(hits, truth, truth).max() >= np.log(20)
    assert too_many(count, 300, 0.05) > LEVEL


def test_for_venn_intervals_the_hypothesis_is_false_though_the_predictor_is_valid():
    """One category, fair coins: betting on the coin refutes "the chance lies in the interval" far too often."""
    knowing = fixed = 0
    for seed in range(200):
        hits, lower, upper = naive.fair_coin_venn(np.random.default_rng(seed), 10_000)
        knowing += naive.capital_of_the_bettor(hits, lower, upper).max() >= 20
        fixed += ForwardEProcess().update_many(hits, lower, upper).max() >= np.log(20)
    assert too_many(knowing, 200, 0.05) < 1e-6
    assert fixed <= 10  # an observation of the fixed bets, no theorem


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.05, 1 / 7, 0.5, 0.98])
def test_limits_of_a_binomial_number_are_its_quantiles(p):
    for n in (1, 2, 7, 40, 999, 20_000, 1_000_000):
        for share in (0.5, 0.95, 0.99, 1 - 1e-9):
            assert binomial_limits(share, n, p) == stats.binom.interval(share, n, p)
