"""Measures of calibration against their definitions, their laws by chance, and the bins that fill as a stream goes."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from naive import calibration as naive
from scipy.stats import binom, binomtest
from sklearn import metrics

from venn.monitors.calibration import (
    brier,
    ece,
    log_loss,
    number_of_events,
    reliability,
    sharpness,
)
from venn.monitors.sums import CalibrationBins, WidthBins

BINS = {"width": (WidthBins, naive.in_width_bins)}


def events(kind, seed, n):
    """Return n probabilities and whether the events came."""
    rng = np.random.default_rng(seed)
    p = {
        "uniform": lambda: rng.random(n),
        "ties": lambda: rng.integers(0, 11, n) / 10,  # most on a cut
        "few": lambda: rng.choice([0.0, 0.3, 1.0], n),
        "sharp": lambda: rng.beta(0.2, 0.2, n),
        "one": lambda: np.full(n, 0.7),
    }[kind]()
    return p, (rng.random(n) < p).astype(int)


KINDS = ("uniform", "ties", "few", "sharp", "one")


def distributions(seed, n, c):
    """Return (n, c) distributions with ties and zeros, and class codes drawn from them."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 5, size=(n, c)).astype(float)
    rows[rows.sum(axis=1) == 0] = 1
    rows /= rows.sum(axis=1, keepdims=True)
    return rows, np.array([rng.choice(c, p=row) for row in rows])


# Scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_an_event(kind):
    p, y = events(kind, 0, 200)
    assert brier(p, y) == pytest.approx(naive.brier_event(p.tolist(), y.tolist()), abs=1e-14)
    assert brier(p, y) == pytest.approx(metrics.brier_score_loss(y, p, labels=[0, 1], pos_label=1), abs=1e-14)
    assert brier(p, y) == pytest.approx(brier(np.column_stack([1 - p, p]), y) / 2, abs=1e-14)
    of_truth = np.where(y == 1, p, 1 - p).tolist()
    for clip in (1e-15, 0.05, 0.0):
        loss = log_loss(p, y, clip)
        assert (loss.value, loss.clipped) == pytest.approx(naive.log_loss(of_truth, clip), abs=1e-12)
        assert loss.clip == clip


@pytest.mark.parametrize("c", [2, 3, 6])
def test_scores_of_distributions(c):
    rows, truth = distributions(1, 150, c)
    truth[:20] = np.roll(truth[:20], 1)  # some labels of probability 0
    assert brier(rows, truth) == pytest.approx(naive.brier_classes(rows.tolist(), truth.tolist()), abs=1e-13)
    of_truth = rows[np.arange(150), truth].tolist()
    for clip in (1e-15, 0.2, 0.0):
        loss = log_loss(rows, truth, clip)
        assert (loss.value, loss.clipped) == pytest.approx(naive.log_loss(of_truth, clip), abs=1e-12)


def test_the_clip_is_stated_and_what_it_changed_is_counted():
    assert log_loss([0.0, 1e-16, 1e-15, 0.5], [1, 1, 1, 1]).clipped == 2
    assert log_loss([0.0], [1]).value == pytest.approx(-math.log(1e-15))
    assert log_loss([0.0, 0.5], [1, 1], clip=0).value == math.inf
    assert log_loss([0.0, 0.5], [1, 1], clip=0).clipped == 0
    assert log_loss([0.0, 1.0], [0, 1], clip=0).value == 0.0


def test_a_prefix_and_a_window_are_slices():
    p, y = events("uniform", 2, 300)
    losses = (y - p) ** 2
    assert [brier(p[:n], y[:n]) for n in (1, 7, 300)] == pytest.approx([losses[:n].mean() for n in (1, 7, 300)])
    assert brier(p[100:150], y[100:150]) == pytest.approx(losses[100:150].mean())
    assert ece(p[::-1], y[::-1]) == pytest.approx(ece(p, y), abs=1e-14)
    assert ece(p.tolist(), y.astype(bool)) == ece(p, y)


# Bins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [1, 2, 10, 15])
@pytest.mark.parametrize("edges", BINS)
@pytest.mark.parametrize("kind", KINDS)
def test_expected_calibration_error(kind, edges, bins):
    ours, oracle = BINS[edges]
    for n in (1, 2, 9, 100, 333):
        p, y = events(kind, n, n)
        groups = oracle(p.tolist(), y.tolist(), bins)
        assert ece(p, y, ours(bins)) == pytest.approx(naive.ece(groups), abs=1e-12)
        diagram = reliability(p, y, ours(bins))
        filled = [group for group in groups if group]
        assert diagram.counts.tolist() == [len(group) for group in filled]
        assert diagram.confidence == pytest.approx([np.mean([p for p, _ in group]) for group in filled], abs=1e-12)
        assert diagram.frequency == pytest.approx([np.mean([y for _, y in group]) for group in filled], abs=1e-12)
        assert diagram.ece == ece(p, y, ours(bins))
        assert (diagram.edges[:, 0] <= diagram.confidence + 1e-12).all()
        assert (diagram.confidence <= diagram.edges[:, 1] + 1e-12).all()


def test_distributions_are_measured_by_their_predicted_class():
    rows, truth = distributions(3, 200, 4)
    confidence, hit = naive.top_label(rows.tolist(), truth.tolist())
    assert ece(rows, truth) == pytest.approx(naive.ece(naive.in_width_bins(confidence, hit, 10)), abs=1e-12)
    assert reliability(rows, truth).ece == ece(rows, truth)


# Consistency bars -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 12))
def test_the_number_of_events_has_its_exact_law(n):
    rng = np.random.default_rng(n)
    for p in (rng.random(n), rng.integers(0, 3, n) / 2, np.full(n, 0.5), np.zeros(n), np.ones(n)):
        exact = np.array(naive.number_of_events(p), float)
        assert number_of_events(p) == pytest.approx(exact, abs=1e-15)
        assert naive.number_of_events_step_by_step(p) == pytest.approx(exact, abs=1e-15)


@pytest.mark.parametrize("n", [63, 64, 65, 500, 3001])
def test_the_number_of_many_events(n):
    p = np.random.default_rng(n).beta(0.3, 0.6, n)
    assert number_of_events(p) == pytest.approx(naive.number_of_events_step_by_step(p), abs=1e-13)
    assert number_of_events(np.full(n, 0.25)) == pytest.approx(binom.pmf(np.arange(n + 1), n, 0.25), abs=1e-13)
    assert len(number_of_events(p)) == n + 1


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bars_are_quantiles_of_the_law(level):
    p, y = events("uniform", 5, 300)
    diagram = reliability(p, y, level=level)
    assert diagram.level == level
    for i, group in enumerate(naive.in_width_bins(p.tolist(), y.tolist(), 10)):
        law = naive.number_of_events_step_by_step([one for one, _ in group])
        assert diagram.low[i] * len(group) == pytest.approx(naive.quantile(law, (1 - level) / 2))
        assert diagram.high[i] * len(group) == pytest.approx(naive.quantile(law, (1 + level) / 2))
        inside = sum(law[round(diagram.low[i] * len(group)) : round(diagram.high[i] * len(group)) + 1])
        assert inside >= level - 1e-12


def test_bars_are_what_resampling_tends_to():
    """Labels drawn anew from the forecasts leave each bar as often as its law says, exactly tested."""
    p, _ = events("sharp", 6, 400)
    rng = np.random.default_rng(7)
    runs = 4000
    diagram = reliability(p, np.zeros(400, int))
    places = [naive.width_bin(one, 10) for one in p.tolist()]
    drawn = rng.random((runs, 400)) < p
    levels = 0
    for b, i in enumerate(sorted(set(places))):
        group = p[np.array(places) == i]
        events_in = drawn[:, np.array(places) == i].sum(axis=1)
        law = np.cumsum(naive.number_of_events_step_by_step(group))
        low, high = round(diagram.low[b] * len(group)), round(diagram.high[b] * len(group))
        below = law[low - 1] if low else 0.0
        assert below < 0.05
        assert 1 - law[high] < 0.05 + 1e-12
        for count, chance in (((events_in < low).sum(), below), ((events_in > high).sum(), max(1 - law[high], 0.0))):
            assert binomtest(int(count), runs, float(chance)).pvalue > 1e-4
            levels += 1
    assert levels == 2 * len(diagram.counts)


def test_calibrated_forecasts_stay_inside_the_bars_and_bold_ones_do_not():
    """At least the stated share of bars hold their frequency; forecasts that exaggerate fail the same test."""
    inside = {"calibrated": 0, "bold": 0}
    total = 0
    for seed in range(60):
        p, y = events("uniform", 100 + seed, 500)
        odds = (p / (1 - p)) ** 2
        for name, forecasts in (("calibrated", p), ("bold", odds / (1 + odds))):
            diagram = reliability(forecasts, y)
            inside[name] += int(((diagram.low <= diagram.frequency) & (diagram.frequency <= diagram.high)).sum())
        total += 10
    assert binomtest(inside["calibrated"], total, 0.9, "less").pvalue > 1e-3
    assert binomtest(inside["bold"], total, 0.9, "less").pvalue < 1e-6


# Sharpness --------------------------------------------------------------------------------------------------------


def test_sharpness_by_definition():
    rows, _ = distributions(8, 100, 3)
    sharp = sharpness(rows)
    assert sharp.variance == pytest.approx(np.sum([np.var(rows[:, k]) for k in range(3)]))
    assert sharp.expected_brier == pytest.approx(np.mean([sum(p * (1 - p) for p in row) for row in rows]))
    assert sharp.expected_log_loss == pytest.approx(np.mean([naive.entropy(row) for row in rows]))
    p = rows[:, 0]
    both, one = sharpness(np.column_stack([1 - p, p])), sharpness(p)
    assert (both.variance, both.expected_brier) == pytest.approx((2 * one.variance, 2 * one.expected_brier))
    assert both.expected_log_loss == pytest.approx(one.expected_log_loss)


def test_calibrated_forecasts_lose_what_they_expect():
    rows = np.random.default_rng(9).dirichlet([1, 1, 1], 20_000)
    truth = (np.random.default_rng(10).random((20_000, 1)) > rows.cumsum(axis=1)).sum(axis=1)
    sharp = sharpness(rows)
    assert brier(rows, truth) == pytest.approx(sharp.expected_brier, abs=5 * 0.5 / math.sqrt(20_000))
    assert log_loss(rows, truth).value == pytest.approx(sharp.expected_log_loss, abs=5 / math.sqrt(20_000))
    assert abs(brier(rows, np.roll(truth, 1)) - sharp.expected_brier) > 0.1


# The bins of a stream ------------------------------------------------------------------------------------------------


def filled(p, y, bins=10):
    monitor = CalibrationBins(bins)
    for one, hit in zip(p.tolist(), y.tolist(), strict=True):
        monitor.update(one, hit == 1)
    return monitor


@pytest.mark.parametrize("bins", [1, 3, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_bins_of_a_stream_are_those_of_the_prefix(kind, bins):
    p, y = events(kind, 11, 120)
    monitor = CalibrationBins(bins)
    assert (monitor.ece, monitor.reliability, monitor.n) == (0.0, [], 0)
    for n, (one, hit) in enumerate(zip(p, y, strict=True), 1):
        monitor.update(one, hit)
        assert monitor.ece == ece(p[:n], y[:n], WidthBins(bins))
        assert monitor.n == n
    diagram = reliability(p, y, WidthBins(bins))
    assert [one["count"] for one in monitor.reliability] == diagram.counts.tolist()
    assert [one["confidence"] for one in monitor.reliability] == diagram.confidence.tolist()
    assert [one["accuracy"] for one in monitor.reliability] == diagram.frequency.tolist()
    assert [[one["lower"], one["upper"]] for one in monitor.reliability] == diagram.edges.tolist()
    assert json.loads(json.dumps(monitor.reliability)) == monitor.reliability


def test_saved_and_restored_bins_go_on_as_if_nothing_had_been():
    p, y = events("sharp", 13, 200)
    whole, first = filled(p, y), filled(p[:90], y[:90])
    restored = first.fresh()
    assert (repr(restored), restored.n) == ("CalibrationBins(bins=10)", 0)
    restored.restore(first.state)
    for monitor in (restored, pickle.loads(pickle.dumps(first))):
        monitor.update_many(p[90:], y[90:])
        assert monitor == whole
    assert first.n == 90
    assert eval(repr(whole)).n == 0


# Bad input --------------------------------------------------------------------------------------------------------

GOOD = ([0.25, 0.5], [0, 1])
BAD = {
    "NaN": ([0.5, math.nan], [0, 1], "proba must lie in .0, 1., got nan in row 1"),
    "above 1": ([0.5, 1.5], [0, 1], "proba must lie in .0, 1., got 1.5 in row 1"),
    "below 0": ([-0.5, 0.5], [0, 1], "proba must lie in .0, 1., got -0.5 in row 0"),
    "sum": ([[0.5, 0.4], [0.5, 0.5]], [0, 1], "proba must have rows of sum 1, got 0.9 in row 0"),
    "strings": (["a", "b"], [0, 1], "proba must be numbers"), "none": (None, [0, 1], "proba must be numbers"),
    "truth as proba": ([True, False], [0, 1], "proba must be numbers"),
    "masked": (np.ma.masked_array([0.5, 0.5], [False, True]), [0, 1], "proba must lie in"),
    "empty": ([], [], "proba must have shape"), "one class": ([[1.0], [1.0]], [0, 0], "proba must have shape"),
    "three axes": (np.full((2, 2, 2), 0.5), [0, 1], "proba must have shape"),
    "lengths": ([0.5, 0.5], [1], r"truth must have shape \(2,\)"),
    "not binary": ([0.5, 0.5], [0, 2], "truth must be 0 or 1, False or True, got 2 in row 1"),
    "unknown class": ([[0.5, 0.5]] * 2, [0, 2], "truth must be class codes from 0 to 1, got 2 in row 1"),
    "floats": ([0.5, 0.5], [0.0, 1.0], "truth must be 0 or 1"),
    "labels": ([[0.5, 0.5]] * 2, ["a", "b"], "truth must be class codes"),
    "nothing came": ([0.5, 0.5], None, "truth must be 0 or 1"),
}  # fmt: skip


@pytest.mark.parametrize("measure", [brier, log_loss, ece, reliability])
@pytest.mark.parametrize("what", BAD)
def test_bad_arrays_are_refused(what, measure):
    proba, truth, says = BAD[what]
    with pytest.raises((ValueError, TypeError), match=says):
        measure(proba, truth)


@pytest.mark.parametrize("measure", [brier, log_loss, ece, reliability])
def test_rows_in_short_numbers_are_divided_by_their_sums(measure):
    rng = np.random.default_rng(0)
    weights = rng.random((300, 3)).astype(np.float32)
    short = weights / weights.sum(axis=1, keepdims=True)
    rows, truth = short.astype(np.float64), rng.integers(0, 3, 300)
    assert abs(rows.sum(axis=1) - 1).max() > 1e-9
    assert repr(measure(short, truth)) == repr(measure(rows / rows.sum(axis=1, keepdims=True), truth))
    with pytest.raises(ValueError, match=r"proba must have rows of sum 1, got .* in row 5"):
        measure(short * np.where(np.arange(300) == 5, np.float32(0.999), np.float32(1))[:, None], truth)


def test_bad_parameters_are_refused():
    for values in ([[0.5, 0.5]], [], [1.5], None):
        with pytest.raises((ValueError, TypeError), match="proba must"):
            number_of_events(values)
    for clip in (1.0, -1e-9, math.nan, "x", None, True):
        with pytest.raises(ValueError, match="clip must lie in"):
            log_loss(*GOOD, clip=clip)
    for level in (0.0, 1.0, math.nan, "x", None, True):
        with pytest.raises((ValueError, TypeError), match=r"level must be a number in \(0, 1\), got"):
            reliability(*GOOD, level=level)
    for bins in (0, -1, 2.0, "ten", None, True):
        for kind in (WidthBins, CalibrationBins):
            with pytest.raises((ValueError, TypeError), match="bins must be an integer >= 1, got"):
                kind(bins)
    for bins in (10, "width", WidthBins):
        for measure in (ece, reliability):
            with pytest.raises(TypeError, match="bins must be an object with a method 'cuts'"):
                measure(*GOOD, bins)
    for cuts in ([0.5, 0.2], [-0.1], [1.2], [math.nan], [[0.5]]):
        own = type("Own", (), {"cuts": lambda self, p, cuts=cuts: np.array(cuts)})()
        with pytest.raises(ValueError, match="bins must give nondecreasing cuts"):
            ece(*GOOD, own)
    with pytest.raises(ValueError, match="proba must lie in"):
        sharpness([0.5, 1.5])


@pytest.mark.parametrize(
    ("confidence", "hit", "says"),
    [
        (math.nan, True, "confidence must"), (1.2, True, "confidence must"), (-0.1, True, "confidence must"),
        ("x", True, "confidence must"), (None, True, "confidence must"), (True, True, "confidence must"),
        (np.array([0.5]), True, "confidence must"), (np.bool_(True), True, "confidence must"),
        (0.5, 2, "hit must"), (0.5, None, "hit must"), (0.5, "yes", "hit must"), (0.5, 0.5, "hit must"),
        (0.5, math.nan, "hit must"), (0.5, np.array([1]), "hit must"),
    ],
)  # fmt: skip
def test_a_refused_forecast_leaves_no_trace(confidence, hit, says):
    monitor = filled(*events("uniform", 16, 20))
    before = copy.deepcopy(monitor)
    with pytest.raises((ValueError, TypeError), match=says):
        monitor.update(confidence, hit)
    assert monitor == before
    with pytest.raises((ValueError, TypeError), match=says):
        monitor.update_many([confidence], [hit])
    assert monitor == before


def test_forms_of_a_forecast():
    monitors = [CalibrationBins() for _ in range(4)]
    for monitor, confidence, hit in zip(
        monitors, (1.0, 1, np.float64(1), np.int64(1)), (True, 1, np.bool_(True), np.int64(1)), strict=True
    ):
        monitor.update(confidence, hit)
        assert monitor == monitors[0]


@pytest.mark.parametrize(
    "state",
    [
        {"counts": np.zeros(9)}, {"counts": [0.0] * 10}, {"counts": np.zeros(10, bool)}, {"counts": "x"},
        {"sums": None}, {"hits": np.zeros((10, 1))}, {"sums": np.full(10, math.nan)}, {"sums": np.full(10, math.inf)},
    ],
)  # fmt: skip
def test_a_state_of_something_else_is_refused(state):
    monitor = filled(*events("uniform", 17, 20))
    before = copy.deepcopy(monitor)
    with pytest.raises(ValueError, match="must"):
        monitor.restore({"table": before.table | state})
    assert monitor == before
    kept = monitor.state
    monitor.update(0.5, True)
    monitor.restore(kept)
    assert monitor == before
