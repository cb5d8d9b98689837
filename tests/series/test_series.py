"""Series many steps ahead: what is promised holds on any series, the parts are what their oracles say."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from conftest import refused
from naive import series as naive
from scipy.special import ndtri

import venn
from venn._compiled import series_distributions as loops
from venn._compiled import series_lags as lags
from venn._compiled import series_levels as moving
from venn.predictors import DecayingSteps
from venn.saved import made_again, same
from venn.series import Path
from venn.series.experts import FORGET, LEVELS, SHARES, Experts
from venn.series.levels import REMEMBERED, MovingLevels
from venn.series.seasons import seasons_of

Z = ndtri(LEVELS)
EPSILONS = (0.01, 0.05, 0.1, 0.2)


# ------------------------------------------------------------------------------------------------------------ promises


def values_of(kind, rng):
    """Yield values; those of an adversary are sent what was told last."""
    told, v, plan = None, 0.0, []
    for t in itertools.count():
        if kind == "walk":
            v += rng.normal()
        elif kind == "regimes":
            v = rng.normal() * (1 if t // 200 % 2 else 30)
        elif kind == "adversary" and told is not None:
            lower, upper = told[0][0, 2]
            v = upper + 1 if np.isfinite(upper) and rng.random() < 0.5 else (lower if np.isfinite(lower) else v)
        elif kind == "late adversary":
            v = 1e6 if t // 24 % 2 else 0.0
        elif kind == "bursts":  # as long as the last horizon's interval is not the line, its value will lie outside
            H = 1 if told is None else len(told[0])
            plan.append(told is not None and math.isfinite(told[0][-1, 2, 1]))
            v = 1e6 if len(plan) >= H and plan[-H] else 0.0
        elif kind == "constant":
            v = 5.0
        elif kind == "gaps":
            v = math.nan if rng.random() < 0.4 else rng.normal()
        told = yield v


def run_levels(levels, kind, n):
    """Yield step, value, intervals, bands and p-values, of distributions around the last value."""
    source = values_of(kind, np.random.default_rng(1))
    y, told, last = next(source), None, 0.0
    roots = np.sqrt(np.arange(1, levels.horizon + 1))[:, None]
    for t in range(n):
        p_values = levels.learn(y, told)
        yield t, y, told, p_values
        last = y if abs(y) < 1e5 else last
        distributions = np.full((levels.horizon, len(LEVELS)), 5.0) if kind == "constant" else last + roots * Z
        told = (distributions, *levels.tell(distributions))
        y = source.send(told[1:])


KINDS = ("walk", "regimes", "adversary", "late adversary", "bursts", "constant", "gaps")


@pytest.mark.parametrize(("kind", "H"), [*itertools.product(KINDS, (1, 24)), ("late adversary", 168), ("gaps", 168)])
def test_errors_stay_within_their_bound_on_any_series(kind, H):
    levels = MovingLevels(H)
    n = 700 if H < 100 else 500
    told_of, values = [], []
    ledgers, band = [naive.Ledger(EPSILONS, 0.01) for _ in range(H)], naive.Ledger(EPSILONS, 0.01)
    rows = range(H) if H < 100 else range(0, H, 20)
    for t, y, told, _ in run_levels(levels, kind, n):
        told_of.append(told)  # before value t
        values.append(y)
        for h in (row + 1 for row in rows):
            if t >= h and not math.isnan(y):
                ledgers[h - 1].answer(told_of[t - h + 1][1][h - 1].tolist(), y)
                assert (np.array(ledgers[h - 1].furthest) <= 1 / 0.01 + h + 1).all()
        if t >= H:
            path, bands = values[t - H + 1 :], told_of[t - H + 1][2]
            came = ~np.isnan(path)
            if came.any():
                inside = ((bands[:, :, 0] <= path) & (path <= bands[:, :, 1]))[:, came].all(axis=1)
                band.answer([(0, 0) if one else (1, 1) for one in inside], 0)
                assert (np.array(band.furthest) <= 1 / 0.01 + H + 1).all()
    for h in (row + 1 for row in rows):
        np.testing.assert_allclose(levels.thresholds[h - 1], ledgers[h - 1].thresholds, atol=1e-9)
    np.testing.assert_allclose(levels.thresholds[H], band.thresholds, atol=1e-9)
    found = {(one.horizon, one.level): one for one in levels.accounts()}
    for k, level in enumerate(EPSILONS):
        assert (found[1, level].errors, found[1, level].n) == (ledgers[0].errors[k], ledgers[0].n)
        assert (found[None, level].errors, found[None, level].n) == (band.errors[k], band.n)
        assert all(abs(one.errors - level * one.n) <= one.bound for one in levels.accounts() if one.level == level)


class Clipped(MovingLevels):
    """A broken twin: its thresholds are clipped."""

    def learn(self, y, told):
        found = super().learn(y, told)
        np.clip(self.thresholds, 0.0, 1.0, out=self.thresholds)
        return found


def test_clipped_levels_break_the_bound():
    levels = Clipped(24)
    for _ in run_levels(levels, "bursts", 3500):
        pass
    account = next(one for one in levels.accounts() if (one.horizon, one.level) == (24, 0.1))
    assert abs(account.errors - 0.1 * account.n) > account.bound


@pytest.mark.parametrize("future", [False, True], ids=["past", "future"])
def test_p_values_are_ranks_among_the_last_answers(future):
    """A twin that ranks a value among those that come later, too, has other p-values."""
    levels, H = MovingLevels(3), 3
    told_of, before, same_ones = [], [[] for _ in range(H)], []
    for t, y, told, p_values in run_levels(levels, "gaps", 700):
        told_of.append(told)
        for h in range(1, H + 1):
            if t < h or math.isnan(y):
                assert math.isnan(p_values[h - 1])
                continue
            quantiles = told_of[t - h + 1][0][h - 1]
            p = float(moving.strangeness(quantiles, LEVELS, y))
            past = before[h - 1][-REMEMBERED:]
            same_ones.append(naive.ranked([*past, p] if future else past, p, 1.0) == pytest.approx(p_values[h - 1]))
            before[h - 1].append(p)
    assert all(same_ones) != future


def test_p_values_of_the_right_distribution_are_uniform():
    levels, found = MovingLevels(1), []
    rng = np.random.default_rng(0)
    told = None
    for _ in range(3000):
        p = levels.learn(rng.normal(), told)[0]
        found.append(p)
        quantiles = 3 * Z[None]  # three times too wide: ranks mend it
        told = (quantiles, *levels.tell(quantiles))
    p = np.array(found[500:])
    assert abs((p <= 0.1).mean() - 0.1) < 0.02
    assert abs(p.mean() - 0.5) < 0.02


def test_smaller_steps_keep_a_bound_of_their_own():
    levels = MovingLevels(2, steps=DecayingSteps(0.5, 0.6))
    for t, *_ in run_levels(levels, "regimes", 1000):
        if t == 500:
            levels.start_clock()
    for one in levels.accounts():
        assert abs(one.errors - one.level * one.n) <= one.bound
    assert levels.accounts()[0].bound > 2 / 0.5


def test_the_promise_holds_for_a_model_against_who_looks_at_its_path():
    model = venn.SeriesForecaster(season=4, horizon=3)
    told_of, ledgers = [], [naive.Ledger(EPSILONS, 0.01) for _ in range(3)]
    rng = np.random.default_rng(0)
    for t in range(140):
        y = float(t % 4)
        if t:
            upper = told_of[-1][1].interval(0.1)[1]
            y = upper + 0.5 if math.isfinite(upper) and rng.random() < 0.4 else y
        for h in range(1, min(t, 3) + 1):
            step = told_of[t - h][h]
            ledgers[h - 1].answer([step.interval(level) for level in EPSILONS], y)
        if t == 70:
            model = pickle.loads(pickle.dumps(model))
        model.learn_one(y)
        told_of.append(model.forecast())
    for one in model.accounts():
        if one.horizon is not None:
            ledger = ledgers[one.horizon - 1]
            k = EPSILONS.index(one.level)
            assert (one.errors, one.n) == (ledger.errors[k], ledger.n)
            assert ledger.furthest[k] <= 100 + one.horizon + 1


# --------------------------------------------------------------------------------------------------------------- parts


def test_scores_and_quantiles_are_those_of_their_definitions():
    rng = np.random.default_rng(0)
    window, order = np.zeros(20), np.zeros(20)
    numbers = rng.integers(0, 6, 70) / 4
    for n, z in enumerate(numbers):
        loops.insert(window, order, n, z)
        held = numbers[max(n - 19, 0) : n + 1]
        np.testing.assert_array_equal(window[: len(held)], np.sort(held))
        out = np.empty(len(LEVELS))
        loops.read_quantiles(window, len(held), LEVELS, out)
        np.testing.assert_allclose(out, naive.window_quantiles(held.tolist(), LEVELS.tolist()), atol=1e-12)
        assert (np.diff(out) >= -1e-12).all()
        y = float(rng.normal())
        assert loops.pinball(out, LEVELS, SHARES, y) == pytest.approx(naive.crps_of_quantiles(out, LEVELS, SHARES, y))
    assert SHARES.sum() == pytest.approx(1)


def test_quantiles_and_probabilities_are_inverse():
    rng = np.random.default_rng(0)
    quantiles = np.sort(rng.normal(size=len(LEVELS)))
    for u in np.linspace(0.0005, 0.9995, 60):
        at = loops.quantile_at(quantiles, LEVELS, u)
        assert loops.probability_at(quantiles, LEVELS, at, True) == pytest.approx(u)
        assert loops.probability_at(quantiles, LEVELS, at, False) == pytest.approx(u)
    flat = np.full(len(LEVELS), 2.0)
    assert moving.strangeness(flat, LEVELS, 2.0) == 1
    assert moving.strangeness(flat, LEVELS, 2.1) == 0


@pytest.mark.parametrize("levels", [EPSILONS, (1e-6, 0.3), (0.2, 0.9), (0.99,)])
def test_intervals_leave_out_what_the_threshold_says(levels):
    model = MovingLevels(1, levels)
    bends = np.linspace(model.line - 0.01, model.empty + 0.01, 60)
    for n in (0, 3, 700):
        model._counts[:] = n
        before = 1.0
        for threshold in [*bends[::-1], *naive_begins(levels)[::-1]]:
            model.thresholds[:] = 10.0
            model.thresholds[:, 0] = threshold
            ends, _ = model.tell(Z[None])
            share = naive.left_out(threshold, levels, n)
            lower, upper = ends[0, 0]
            if share == 0:
                assert (lower, upper) == (-math.inf, math.inf)
            elif share == 1:
                assert math.isnan(lower)
            else:
                assert loops.probability_at(Z, LEVELS, lower, True) == pytest.approx(share / 2, rel=1e-6)
                assert upper == pytest.approx(-lower, rel=1e-6)
            if threshold in bends:
                assert share <= before
                before = share
    assert all(one.bound == 0 for one in model.accounts())


def naive_begins(levels):
    return [naive.begin(level) for level in levels]


def test_cut_inverts_the_ranks():
    rng = np.random.default_rng(0)
    for prior in (1.0, 8.0):
        window = np.sort(rng.integers(0, 9, 40) / 8)
        for a in rng.random(50):
            c = moving.cut(window, len(window), a, prior)
            assert naive.ranked(window.tolist(), c + 1e-9, prior) > a or c == 1
            assert naive.ranked(window.tolist(), c - 1e-9, prior) <= a + 1e-6


@pytest.mark.parametrize("m", [1, 4])
def test_ridges_are_those_of_all_rows_at_once(m):
    rng = np.random.default_rng(m)
    values = rng.normal(size=70).cumsum() + 3 * np.sin(np.arange(70) * 2 * np.pi / max(m, 2))
    model, h = Experts((m,), 3), 2
    rows, targets = [], []
    for t, y in enumerate(values):
        begun = model.unit > 0
        model.learn(y, np.zeros(0), None)
        if begun and t - h >= model.start - 1:
            row = np.empty(model.features)
            sums = values.cumsum()
            anchor = lags.lag_row(values, sums, np.zeros((99, 0)), t - h, h, 0, np.array([m]), model.unit, row)
            rows.append(row)
            targets.append((y - anchor) / model.unit)
    for r, forget in enumerate(FORGET):
        # The second one does not forget while its trace stands at the limit, as in the first steps.
        found = model._arrays["ridges"][r, h - 1]
        expected = naive.least_squares(rows, targets, 1.0, forget)
        if forget == 1:
            np.testing.assert_allclose(found, expected, atol=1e-7)
        else:
            np.testing.assert_allclose(found, expected, atol=0.1)


def test_smoothings_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    values = 10 + rng.normal(size=50) + np.arange(50) / 10
    model = Experts((4,), 5)
    for y in values:
        model.learn(y, np.zeros(0), None)
    begin = values[:4]
    for i in (0, 17, 50):
        alpha, beta, gamma, phi, logs = model.grid[i]
        assert not logs
        for q, h in enumerate(model.knots):
            season = (begin - begin.mean()).tolist()
            expected = naive.smoothed(values[4:], alpha, beta, phi, gamma, 4, begin.mean(), season, int(h))
            assert model._arrays["pending"][(len(values) - 1) % 5, i, q] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "seasons"),
    [
        (np.sin(np.arange(200) * 2 * np.pi / 12), (12,)), (np.random.default_rng(0).normal(size=300).cumsum(), (1,)),
        (np.ones(60), (1,)), (np.arange(60.0), (1,)), (np.tile([0, 0, 0, 5, 0, 0, 1.0], 20), (7,)),
    ],
)  # fmt: skip
def test_seasons_are_found(values, seasons):
    assert seasons_of(np.asarray(values, float)) == seasons


# --------------------------------------------------------------------------------------------------------- whole models


def demand(n, seed=0):
    t = np.arange(n)
    rng = np.random.default_rng(seed)
    return 100 + 10 * np.sin(2 * np.pi * t / 8) + rng.normal(size=n)


def taught(values, **given):
    model = venn.SeriesForecaster(**{"season": 8, "horizon": 4} | given)
    for y in values:
        model.learn_one(y)
    return model


def told(path):
    return path.quantiles, path.ends, path.bands


def assert_equal_paths(one, other):
    for a, b in zip(told(one), told(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), "state"])
def test_a_copy_goes_on_to_the_last_bit(again):
    values = demand(260)
    values[50] = np.nan
    model = taught(values[:180], season=None)
    other = made_again(type(model), model.parameters, model.state) if again == "state" else again(model)
    for y in values[180:]:
        assert_equal_paths(model.forecast(), other.forecast())
        model.learn_one(y)
        other.learn_one(y)
    assert same(model.accounts(), other.accounts())


def test_files_keep_it(tmp_path):
    model = taught(demand(150))
    venn.save(tmp_path / "demand.npz", model)
    other = venn.load(tmp_path / "demand.npz")
    assert_equal_paths(model.forecast(), other.forecast())
    with pytest.raises(ValueError, match="arrays"):
        model._experts.restore(model._experts.state | {"arrays": {"values": np.zeros(3)}})
    with pytest.raises(ValueError, match="n must be at most"):
        model._experts.restore(model._experts.state | {"n": 10**6})
    for name, wrong in (("experts", Experts((8,), 3)), ("levels", MovingLevels(3)), ("n", 3), ("watch", None)):
        with pytest.raises(ValueError, match="must be"):
            model.restore(model.state | {name: wrong})
    with pytest.raises(ValueError, match="future must be"):
        model.restore(model.state | {"future": np.zeros((1, 1))})
    assert_equal_paths(model.forecast(), other.forecast())


def test_asking_leaves_no_trace_and_the_future_changes_nothing():
    values = demand(150)
    quiet, model = taught(values[:120]), venn.SeriesForecaster(season=8, horizon=4)
    for y in values[:120]:
        model.forecast(2)
        model.learn_one(y)
        model.forecast()
    assert_equal_paths(quiet.forecast(), model.forecast())
    before = model.forecast()
    kept = [one.copy() for one in told(before)]
    for y in values[120:]:
        model.learn_one(y)
    for a, b in zip(told(before), kept, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="read-only"):
        before.quantiles[0, 0] = 1.0


def test_paths_are_nested_and_say_what_they_keep():
    path = taught(demand(200)).forecast()
    assert isinstance(path, Path)
    assert path.guaranteed == "long-run error rate"
    for step in path:
        ends = [step.interval(level) for level in EPSILONS]
        assert all(a[0] <= b[0] <= step.median <= b[1] <= a[1] for a, b in itertools.pairwise(ends))
        assert step.interval(0.07) == step.interval(0.05)
        assert step.interval(0.001) == (-math.inf, math.inf)
        assert step.cdf(step.quantile(0.3)) == pytest.approx(0.3)
        assert step.quantile(0.5) == pytest.approx(step.median)
        assert step.crps(step.median) < step.crps(step.median + 5)
        assert step.nested().interval(0.1) == pytest.approx(step.interval(0.1))
    assert path.intervals(0.1).shape == path.band(0.1).shape == (4, 2)
    band, each = path.band(0.1), path.intervals(0.1)
    assert (band[:, 0] <= each[:, 0]).all()
    assert (band[:, 1] >= each[:, 1]).all()
    assert len(taught(demand(200)).forecast(2)) == 2
    assert set(path.plain()) == {"median", "intervals", "bands", "guaranteed"}


def test_nothing_is_known_at_first():
    path = venn.SeriesForecaster().forecast()
    assert len(path) == 24
    assert math.isnan(path[1].median)
    assert path[1].interval(0.1) == (-math.inf, math.inf)
    assert venn.SeriesForecaster().verdict().state == "too early to say"


def test_a_season_is_learned_and_its_intervals_are_narrow():
    values = demand(500)
    model, widths, hits = venn.SeriesForecaster(season=8, horizon=4), [], []
    for t, y in enumerate(values):
        if t > 300:
            lower, upper = model.forecast()[1].interval(0.1)
            widths.append(upper - lower)
            hits.append(lower <= y <= upper)
        model.learn_one(y)
    assert np.mean(widths) < 4.2  # 3.29 if all but the noise were known
    assert abs(np.mean(hits) - 0.9) < 0.06
    assert sum(model.weights(2).values()) == pytest.approx(1)


EDGES = {
    "constant": np.full(160, 7.0), "zeros": np.zeros(160), "jump": np.where(np.arange(160) < 90, 1.0, 1e6),
    "factors": 1.1 ** np.arange(160) * (1 + np.arange(160) % 8),
    "counts": np.random.default_rng(0).poisson(0.2, 160).astype(float),
    "gaps": np.where(np.random.default_rng(0).random(160) < 0.5, np.nan, demand(160)),
    "nothing but gaps": np.full(40, np.nan), "tiny": 1e-300 * demand(160), "huge": 1e97 * demand(160),
    "signs": np.where(np.arange(160) % 2, 1e-9, -1e9),
}  # fmt: skip


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.filterwarnings("error")
def test_odd_series_are_taken(kind):
    model = taught(EDGES[kind], season=None if kind == "counts" else 8)
    path = model.forecast()
    for step in path:
        if kind != "nothing but gaps":
            assert math.isfinite(step.median)
            assert (np.diff(step.quantiles) >= 0).all()
            lower, upper = step.interval(0.05)
            assert lower <= upper or math.isnan(lower)
    if kind in ("counts", "constant"):
        assert np.nanmin(path.intervals(0.1)) >= 0
    if kind == "constant":
        assert path[1].median == pytest.approx(7)
    if kind == "factors":
        assert path[1].median == pytest.approx(1.1**160, rel=0.2)
    for one in model.accounts():
        assert abs(one.errors - one.level * one.n) <= one.bound


def test_known_covariates_are_used():
    rng = np.random.default_rng(0)
    price = rng.normal(size=304)
    values = 10 + 3 * price + 0.1 * rng.normal(size=304)
    models = [venn.SeriesForecaster(season=1, horizon=4) for _ in range(2)]
    for t in range(300):
        models[0].learn_one(values[t], {"price": price[t]})
        models[0].forecast(xs=[{"price": p} for p in price[t + 1 : t + 5]])
        models[1].learn_one(values[t])
    with_price = models[0].forecast(xs=[[p] for p in price[300:304]])
    assert np.abs(with_price.medians - values[300:304]).max() < 0.5
    widths = [np.diff(one.intervals(0.1), axis=1).mean() for one in (with_price, models[1].forecast())]
    assert widths[0] < 0.4 * widths[1]
    other = models[0].forecast(xs=[{"price": 0.0}] * 4)
    assert np.abs(other.medians - 10).max() < 0.5
    assert_equal_paths(models[0].forecast(), other)  # the path that was asked last counts


def test_seasons_are_found_while_values_come_and_accounts_go_on():
    model = taught(demand(240), season=None)
    assert model.seasons == (8,)
    account = next(one for one in model.accounts() if one.horizon == 2)
    assert account.n == 238
    two = np.tile(np.r_[np.tile([0, 5, 9, 5], 6), np.tile([0, 1, 1, 0], 2)], 12).astype(float)
    assert taught(two, season=(4, 32)).seasons == (4, 32)


def test_memory_is_bounded():
    model = taught(demand(700), last=100, horizon=2)
    kept = model._experts._arrays["values"]
    assert len(kept) <= 200
    np.testing.assert_array_equal(model._experts.kept()[0], demand(700)[-len(model._experts.kept()[0]) :])
    assert model.forecast()[1].interval(0.1)[1] < 120


def test_a_change_is_told():
    rng = np.random.default_rng(0)
    model = venn.SeriesForecaster(season=1, horizon=2)
    for _ in range(300):
        model.learn_one(rng.normal())
    assert model.verdict().state == "as claimed"
    assert "within" in model.verdict().details
    for step in range(25):  # what changes once is followed within some steps, and rings only if it is large
        model.learn_one(rng.choice([-1, 1]) * 4.0**step)
    assert model.watch.count >= 1
    assert model.verdict().state == "doubtful"


BAD = [
    (lambda m: m.learn_one("3"), TypeError, "y must be a number"),
    (lambda m: m.learn_one(math.inf), ValueError, "y must be of size at most"),
    (lambda m: m.learn_one(True), TypeError, "y must be a number"),
    (lambda m: m.learn_one(1.0, [2.0]), ValueError, "x must have 0 covariates"),
    (lambda m: m.learn_one(1.0, [math.nan]), TypeError, "x must be finite"),
    (lambda m: m.forecast(0), ValueError, "horizon must be an integer >= 1"),
    (lambda m: m.forecast(5), ValueError, "horizon must be at most 4"),
    (lambda m: m.forecast(2, xs=[[]]), ValueError, "xs must have covariates of 2 steps"),
    (lambda m: m.forecast()[5], IndexError, "h must be"),
    (lambda m: m.forecast()[0], ValueError, "h must be"),
    (lambda m: m.forecast()[1].interval(2), ValueError, "epsilon"),
    (lambda m: m.weights(9), ValueError, "h must be at most 4"),
]


@pytest.mark.parametrize(("call", "kind", "words"), BAD)
def test_what_cannot_be_is_refused_and_nothing_is_lost(call, kind, words):
    model = taught(demand(30))
    before = model.forecast()
    with pytest.raises((kind, ValueError), match=words):
        call(model)
    assert model.n == 30
    assert_equal_paths(model.forecast(), before)


test_parameters_are_checked = refused(lambda given: venn.SeriesForecaster(**given), [
    ({"season": 0}, ValueError, "season must be an integer >= 1"), ({"season": (4, 4)}, ValueError, "different"),
    ({"season": (1, 4)}, ValueError, "2 or more"), ({"last": 5}, ValueError, "last"),
    ({"season": ()}, ValueError, "season must be a period"), ({"horizon": 0}, ValueError, "horizon"),
    ({"horizon": 2.5}, TypeError, "horizon"), ({"levels": (0.2, 0.1)}, ValueError, "levels"),
])  # fmt: skip


def test_one_scale_follows_the_errors_of_the_next_value_as_soon_as_there_are_any():
    P, H, m = 2, 3, 4
    rng = np.random.default_rng(0)
    points, spread, latest = (rng.uniform(1, 2, size=(P, H)) for _ in range(3))
    counts, phases = rng.integers(1, 9, size=(P, H)), rng.uniform(1, 2, size=(P, H, m))
    counts[1, 0] = 0  # all values at horizon 1 were missing
    scales = np.empty((P, loops.FORMS, H))
    loops.scale(points, 7, m, True, 1e-9, counts, spread, latest, phases, scales)
    np.testing.assert_array_equal(scales[0, 2], [latest[0, 0]] * H)
    np.testing.assert_array_equal(scales[1, 2, 1:], latest[1, 1:])
    assert np.isnan(scales[1, 2, 0])


def test_a_mixture_is_as_if_all_weights_were_computed():
    P, H, q = 4, 2, len(LEVELS)
    rng = np.random.default_rng(1)
    points, quantiles = rng.normal(size=(P, H)), np.sort(rng.normal(size=(P, loops.FORMS, H, q)), axis=-1)
    scales, counts = rng.uniform(1, 2, size=(P, loops.FORMS, H)), rng.integers(1, 90, size=(P, H))
    losses = rng.uniform(1, 3, size=(P, loops.FORMS, H, loops.PARTS))
    powers, found, weights = np.array([30.0, 24.0, 30.0]), np.empty((H, q)), np.empty((P, loops.FORMS, H))
    loops.mix(points, scales, quantiles, losses, counts, LEVELS, powers, -np.inf, found, weights)
    for h in range(H):
        expected = np.zeros(q)
        for k, level in enumerate(LEVELS):
            part = 0 if level < 0.11 else 2 if level > 0.89 else 1
            of = losses[:, :, h, part]
            each = (of.min() / of) ** (powers[part] * np.minimum(1, counts[:, h] / 40))[:, None]
            each[each < 1e-5] = 0
            said = points[:, None, h] + scales[:, :, h] * quantiles[:, :, h, k]
            expected[k] = (each * said).sum() / each.sum()
        np.testing.assert_allclose(found[h], np.maximum.accumulate(expected), rtol=1e-12)


@pytest.mark.parametrize("far", ["one value", "other units", "all"])
def test_values_whose_differences_overflow_in_their_unit_stop_no_series(far):
    values = {
        "one value": np.where(np.arange(200) == 150, 1e100, np.sin(np.arange(200.0))),
        "other units": np.repeat([0.0, 1e-300, 1e100, 5.0], 50),
        "all": np.where(np.arange(200) % 2, 1e100, -1e100),
    }[far]
    model = venn.SeriesForecaster(season=6, horizon=3)
    for y in values:
        model.learn_one(y)  # trees are fitted after 120 values and after 192
    assert np.isfinite(model.forecast().quantiles).all()
    counted = [one for one in model.accounts() if one.n]
    assert counted
    assert all(abs(one.errors - one.level * one.n) <= one.bound for one in counted)


@pytest.mark.parametrize("y", [1.1e100, np.finfo(float).max, -math.inf])
def test_a_value_larger_than_any_label_is_refused_and_nothing_is_learned(y):
    model = venn.SeriesForecaster(season=2, horizon=3)
    model.learn_one(1e100)
    with pytest.raises(ValueError, match=r"y must be of size at most 1e\+100, NaN or None for a missing one, got "):
        model.learn_one(y)
    assert model.n == 1
