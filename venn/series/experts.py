"""Experts of a series: each forecasts the values ahead; its past errors at each horizon give the spread."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from venn._compiled import series_distributions as loops
from venn._compiled import series_lags as lags
from venn._compiled import series_smoothing as smoothing
from venn.machines.trees import FlatTrees
from venn.parameters import integer, members
from venn.prediction import Floats
from venn.saved import Saved, component, own, param, restored_bool, restored_float, restored_int, state

# Levels of the quantiles that stand for a distribution, and the share of all levels that each stands for.
_HALF = (0.0025, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
LEVELS = np.array([*_HALF, 0.5, *(1 - u for u in reversed(_HALF))])
SHARES = np.diff(np.concatenate([[0.0], 0.5 * (LEVELS[1:] + LEVELS[:-1]), [1.0]]))

FORMS = loops.FORMS
WINDOW = 300  # scaled residuals of one expert at one horizon
DISCOUNT = 0.995  # by which older losses count less
POWERS = np.array([2.0, 10.0])  # of absolute errors, in the weights of the means
SHARP = np.array([30.0, 24.0, 30.0])  # powers of losses in the weights of the parts of a distribution
KEEN = 16.0  # power of errors in the weights of smoothings
FARTHEST = 1e100  # units: trees learn no value that is further off, whose square might overflow
FORGET = np.array([1.0, 0.998])  # ridges: one that forgets nothing, and one that follows
FIRST_FIT, GROWTH, ROWS = 120, 1.6, 15_000  # of trees: values at the first fit, ratio of two fits, most rows of one

# Shares of an error in level, trend and season, and the damping of the trend.
GRID = [
    (a, b, c, phi)
    for a, (b, phi), c in itertools.product(
        (0.03, 0.1, 0.25, 0.5, 0.8, 0.97), ((0.0, 0.0), (0.03, 0.98), (0.1, 0.98), (0.2, 0.9)), (0.02, 0.1, 0.3)
    )
]


class Names(NamedTuple):
    """The index of the first expert of each kind, and the number of experts."""

    naive: int
    smooth: int
    ridge: int
    logs: int
    trees: int
    mean: int
    everyone: int


def _seasons(name: str, value: Any) -> tuple[int, ...]:
    return tuple(integer(name, one, 1) for one in members(name, value, "integers >= 1"))


def _restored_arrays(name: str, value: Any, model: Experts) -> dict[str, Any]:
    shapes = model.shapes(model.room_of(value))
    if not isinstance(value, dict) or value.keys() != shapes.keys():
        raise ValueError(f"{name} must be the arrays {sorted(shapes)}, got {value!r}")
    for key, (shape, dtype) in shapes.items():
        one = value[key]
        if not isinstance(one, np.ndarray) or one.shape != shape or one.dtype != np.dtype(dtype):
            raise ValueError(f"{name} must have {key} of shape {shape} and type {np.dtype(dtype)}, got {one!r}")
    for key in ("counts",):
        if (value[key] < 0).any():
            raise ValueError(f"{name} must count from 0 on in {key}")
    return value


def _restored_trees(name: str, value: Any, features: int) -> FlatTrees | None:
    if value is not None and (not isinstance(value, FlatTrees) or value.features != features):
        raise ValueError(f"{name} must be trees of {features} features or None, got {value!r}")
    return value


@component
class Experts(Saved):
    """All experts of a series, which learn value after value, and the mixture of their forecasts.

    Parameters
    ----------
    seasons : tuple of int >= 1
        Periods; 1 is none. Differences count from the first one.
    horizon : int >= 1
    covariates : int >= 0
        Known numbers beside each value.
    last : int
        Values that are kept, at least.

    Attributes
    ----------
    n : int
        Number of values.
    """

    seasons: tuple[int, ...] = param(_seasons)
    horizon: int = param(integer, 1)
    covariates: int = param(integer, 0, default=0)
    last: int = param(integer, 1, default=20_000)

    n: int = state(restored_int, start=0)
    shift: int = state(restored_int, start=0)  # values that are no longer kept
    unit: float = state(restored_float, 0.0, start=0.0)  # size of a difference; 0 before the ridges begin
    smoothing: bool = state(restored_bool, start=False)
    positive: bool = state(restored_bool, start=True)
    zeros: bool = state(restored_bool, start=False)  # a 0 has come
    negative: bool = state(restored_bool, start=False)  # a number below 0 has come
    _in_logs: bool = state(restored_bool, start=False)
    _arrays: dict[str, Any] = state(_restored_arrays, own(lambda e: e), start=own(lambda e: e.new_arrays()))
    trees: FlatTrees | None = state(_restored_trees, own(lambda e: e.columns), start=None)

    # ------------------------------------------------------------------- sizes

    @property
    def names(self) -> Names:
        """Where experts stand: the last value, one naive for each season, and so on."""
        s = len([m for m in self.seasons if m > 1])
        smooth = 1 + s
        ridge = smooth + 2
        logs = ridge + len(FORGET)
        return Names(1, smooth, ridge, logs, logs + 1, logs + 2, logs + 2 + len(POWERS))

    @property
    def features(self) -> int:
        """Number of columns of the ridges."""
        return 1 + lags.LAGS + 6 + 2 * (len(self.seasons) - 1) + 4 + 3 * self.covariates

    @property
    def columns(self) -> int:
        """Number of columns of the trees."""
        return self.features + 1 + len(self.seasons)

    @property
    def start(self) -> int:
        """Number of values with which the ridges begin."""
        return self.seasons[0] + lags.LAGS

    def room_of(self, arrays: Any) -> int:
        """Return how many values arrays have room for."""
        values = arrays.get("values") if isinstance(arrays, dict) else None
        return len(values) if isinstance(values, np.ndarray) and values.ndim else 0

    def shapes(self, room: int) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Return shape and type of all arrays."""
        H, P, q = self.horizon, self.names.everyone, len(LEVELS)
        k, d, m, r = len(self.grid), self.features, self.seasons[0], len(FORGET)
        floats = {
            "values": (room,), "logs": (room,), "sums": (room,), "log_sums": (room,), "x": (room + H, self.covariates),
            "level": (k,), "trend": (k,), "season": (k, sum(self.seasons)),
            "pending": (H, k, len(self.knots)), "errors": (k, len(self.knots)),
            "factors": (r, H, d, d), "ridges": (r, H, d), "log_factors": (1, H, d, d), "log_ridges": (1, H, d),
            "points": (H, P, H), "scales": (H, P, FORMS, H),
            "windows": (P, FORMS, H, WINDOW), "orders": (P, FORMS, H, WINDOW),
            "spread": (P, H), "latest": (P, H), "phases": (P, H, m),
            "quantiles": (P, FORMS, H, q), "losses": (P, FORMS, H, loops.PARTS),
        }  # fmt: skip
        return {key: (shape, np.float64) for key, shape in floats.items()} | {
            "missing": ((room,), np.bool_), "counts": ((P, H), np.int64)
        }  # fmt: skip

    def new_arrays(self) -> dict[str, Any]:
        """Return the arrays before any value has come."""
        self.derive_sizes()
        unknown = {"pending", "errors", "points", "scales", "losses"}
        made = {}
        for key, (shape, dtype) in self.shapes(64).items():
            made[key] = np.full(shape, np.nan) if key in unknown else np.zeros(shape, dtype)
        return made

    def derive_sizes(self) -> None:
        """Compute the grid of smoothings and the horizons at which they are compared."""
        seasonal = any(m > 1 for m in self.seasons)
        steps = dict.fromkeys((a, b, c if seasonal else 0.0, phi) for a, b, c, phi in GRID)
        self.grid = np.array([(*step, log) for log in (0.0, 1.0) for step in steps])
        h = np.arange(1, self.horizon + 1)
        self.phis = np.cumsum(self.grid[:, 3][:, None] ** h, axis=1)
        knots = [1]
        while knots[-1] < self.horizon:
            knots.append(min(max(knots[-1] + 1, round(knots[-1] * 2)), self.horizon))
        self.knots = np.array(knots)
        self._nearest = np.abs(np.log(h[:, None] / self.knots)).argmin(axis=1)
        self._periods = np.array(self.seasons)

    def derive(self) -> None:
        """Compute what is not saved from parameters and state."""
        self.derive_sizes()
        if not min(self.n, 1) <= self.n - self.shift <= self.room_of(self._arrays):  # compiled loops do not check
            raise ValueError(f"n must be at most the values that are kept after {self.shift}, got {self.n}")
        self._fit_times = _fits(self.start, self.last)

    # ---------------------------------------------------------------- learning

    def learn(self, y: float, x: Floats, told: Told | None) -> None:
        """Learn a value, NaN if it is missing; `told` is the forecast of it and of those after it."""
        a, t, now = self._arrays, self.n, self.n - self.shift
        if told is not None:
            slot = (t - 1) % self.horizon
            a["points"][slot], a["scales"][slot] = told.points, told.scales
        seen = not math.isnan(y)
        if seen:
            if t:
                loops.answer(
                    y, t, t % self.seasons[0], LEVELS, SHARES, DISCOUNT, a["points"], a["scales"], a["windows"],
                    a["orders"], a["counts"], a["spread"], a["latest"], a["phases"], a["quantiles"], a["losses"],
                )  # fmt: skip
            if y <= 0 and self.positive:
                self._leave_logs()
            self.zeros, self.negative = self.zeros or y == 0, self.negative or y < 0
        else:  # a gap is filled by the forecast
            mean = math.nan if told is None else float(told.points[-1, 0])
            y = mean if math.isfinite(mean) else (float(a["values"][now - 1]) if now else 0.0)
        now = self._append(now, y, x, not seen)
        log = float(a["logs"][now])
        if self.smoothing:
            rate = np.maximum(1 / np.maximum(t - self.knots - max(self.seasons) + 2, 1), 1 - DISCOUNT)
            smoothing.smooth(
                y, log, seen, t, self.grid, self.phis, self._periods, a["level"], a["trend"], a["season"], self.knots,
                a["pending"], a["errors"], rate, self.unit or 1.0,
            )  # fmt: skip
        if self.unit and seen:
            first = max(self.start - 1 - self.shift, 0)
            more = (first, self.shift, self._periods)
            lags.learn_lags(a["values"], a["sums"], a["x"], now, *more, self.unit, FORGET, a["factors"], a["ridges"])
            if self.positive:
                lags.learn_lags(
                    a["logs"], a["log_sums"], a["x"], now, *more, self.log_unit, FORGET[:1],
                    a["log_factors"], a["log_ridges"],
                )  # fmt: skip
        self.n += 1
        self._begin()

    def _append(self, now: int, y: float, x: Floats, missing: bool) -> int:
        """Keep a value; return its place."""
        a = self._arrays
        room = len(a["values"])
        if now == room:
            if now >= 2 * self.last:  # the older half goes
                gone = self.last
                for key in ("values", "logs", "sums", "log_sums", "missing", "x"):
                    a[key][: room - gone] = a[key][gone:room].copy()
                now -= gone
                self.shift += gone
            else:
                room = min(2 * room, 2 * self.last)
                for key, (shape, dtype) in self.shapes(room).items():
                    if a[key].shape != shape:
                        larger = np.zeros(shape, dtype)
                        larger[: len(a[key])] = a[key]
                        a[key] = larger
        a["values"][now], a["missing"][now] = y, missing
        a["logs"][now] = math.log(y) if y > 0 else (a["logs"][now - 1] if now else 0.0)
        a["x"][now] = x
        for one, of in (("sums", "values"), ("log_sums", "logs")):
            a[one][now] = a[of][now] + (a[one][now - 1] if now else 0.0)
        return now

    def _leave_logs(self) -> None:
        """Stop taking logarithms: a value was not positive."""
        a, logs = self._arrays, self.grid[:, 4] > 0
        self.positive = False
        a["level"][logs] = np.nan
        a["errors"][logs] = np.nan
        if self._in_logs:
            self.trees, self._in_logs = None, False

    def _begin(self) -> None:
        """Start the parts that need this many values."""
        a, n = self._arrays, self.n - self.shift
        longest = max(self.seasons)
        if not self.smoothing and self.n >= max(longest, 2):
            for logs in range(2 if self.positive else 1):
                rest = a["logs" if logs else "values"][:n].copy()
                which = self.grid[:, 4] == logs
                a["level"][which] = rest.mean() if longest > 1 else rest[-1]
                rest -= rest.mean()
                base = 0
                for m in self.seasons:
                    if m > 1:
                        by_phase = np.array([rest[i::m].mean() for i in range(m)])
                        a["season"][which, base : base + m] = by_phase[(np.arange(m) - self.shift) % m]
                        rest -= by_phase[np.arange(n) % m]
                    base += m
            if not self.positive:
                a["level"][self.grid[:, 4] > 0] = np.nan
            self.smoothing = True
        if not self.unit and self.n > self.start + 2:
            self.unit = _unit(a["values"][:n], self.seasons[0])
            if self.unit:
                a["factors"][:] = a["log_factors"][:] = np.eye(self.features)
        if self.unit and n == self.n - self.shift and self.n in self._fit_times:
            self._fit_trees(n)

    @property
    def log_unit(self) -> float:
        """The unit of differences of logarithms."""
        size = abs(float(self._arrays["values"][: self.start + 2].mean()))
        return self.unit / size if size > 0 else 1.0

    def _fit_trees(self, n: int) -> None:
        a, first = self._arrays, max(self.start - 1 - self.shift, 0)
        rng = np.random.default_rng(self.n)
        pairs = max(n - first - 1, 0) * self.horizon
        drawn = np.sort(rng.choice(pairs, min(pairs, ROWS), replace=False))
        ts, hs = first + drawn // self.horizon, 1 + drawn % self.horizon
        fine = ts + hs < n
        ts, hs = ts[fine], hs[fine]
        spread = a["spread"][self.names.ridge : self.names.logs + 1]
        logs = self.positive and bool(spread[-1].sum() < spread[0].sum())
        rows, targets = np.empty((len(ts), self.columns)), np.empty(len(ts))
        count = lags.pooled_rows(
            a["logs" if logs else "values"], a["log_sums" if logs else "sums"], a["x"], a["missing"], ts, hs,
            self.shift, self._periods, self.log_unit if logs else self.unit, rows, targets,
        )  # fmt: skip
        rows, targets = rows[:count], targets[:count]
        near = (np.abs(targets) < FARTHEST) & ~(np.abs(rows) > FARTHEST).any(axis=1)
        if near.sum() >= 50:
            self.trees = fitted_trees(rows[near], targets[near])
            self._in_logs = logs

    # --------------------------------------------------------------- forecasting

    def say(self, future: Floats) -> Told:
        """Return all experts' forecasts of the next values; leaves no trace.

        Parameters
        ----------
        future : (H, k) float64
            Covariates of the next steps.
        """
        a, H, names, now = self._arrays, self.horizon, self.names, self.n - self.shift - 1
        points = np.full((names.everyone, H), np.nan)
        values, h = a["values"], np.arange(1, H + 1)
        points[0] = values[now]
        for place, m in enumerate(m for m in self.seasons if m > 1):
            there = now + h - m * ((h + m - 1) // m)
            points[names.naive + place] = np.where(there >= 0, values[np.maximum(there, 0)], np.nan)
        if self.smoothing:
            smoothing.smoothed(
                self.n - 1, self.grid, self.phis, self._periods, a["level"], a["trend"], a["season"], self._nearest,
                a["errors"], KEEN, points[names.smooth : names.ridge],
            )  # fmt: skip
        if self.unit:
            x = a["x"]
            if self.covariates:
                x = x.copy()
                x[now + 1 : now + 1 + H] = future
            rows, anchors = np.empty((H, self.columns)), np.empty(H)
            for logs in range(2 if self.positive else 1):
                of, sums, unit = ("logs", "log_sums", self.log_unit) if logs else ("values", "sums", self.unit)
                lags.lag_rows(a[of], a[sums], x, now, self.shift, self._periods, unit, rows, anchors)
                if logs:
                    lags.by_lags(rows, anchors, unit, a["log_ridges"], points[names.logs : names.logs + 1])
                    points[names.logs] = np.exp(np.minimum(points[names.logs], smoothing.LARGE))
                else:
                    lags.by_lags(rows, anchors, unit, a["ridges"], points[names.ridge : names.logs])
                if self.trees is not None and self._in_logs == bool(logs):
                    said = anchors + unit * self.trees.predict(rows)
                    points[names.trees] = np.exp(np.minimum(said, smoothing.LARGE)) if logs else said
        points[~np.isfinite(points)] = np.nan
        loops.combine(points, a["spread"], a["counts"], POWERS)
        scales = np.empty((names.everyone, FORMS, H))
        floor = 1e-12 * self.unit + 1e-300
        loops.scale(
            points, self.n - 1, self.seasons[0], self.positive, floor, a["counts"], a["spread"], a["latest"],
            a["phases"], scales,
        )  # fmt: skip
        quantiles, weights = np.empty((H, len(LEVELS))), np.empty((names.everyone, FORMS, H))
        lowest = 0.0 if self.zeros and not self.negative else -np.inf  # of counts
        loops.mix(
            points, scales, a["quantiles"], a["losses"], a["counts"], LEVELS, SHARP, lowest, quantiles,
            weights,
        )  # fmt: skip
        return Told(points, scales, quantiles, weights)

    @property
    def titles(self) -> tuple[str, ...]:
        """The names of the experts."""
        seasonal = [f"season of {m}" for m in self.seasons if m > 1]
        ridges = ["ridge", *(f"ridge, forgetting {1 - one:.3g}" for one in FORGET[1:])]
        means = [f"mean by power {power:g}" for power in POWERS]
        return (
            "last value", *seasonal, "smoothing", "smoothing of logarithms", *ridges, "ridge on logarithms", "trees",
            *means,
        )  # fmt: skip

    def kept(self) -> tuple[Floats, Any, Floats]:
        """Return the values that are kept, which of them are fillings of gaps, and their covariates."""
        a, now = self._arrays, self.n - self.shift
        return a["values"][:now].copy(), a["missing"][:now].copy(), a["x"][:now].copy()

    def ahead_of(self, rows: Floats, i: int) -> Floats:
        """Return the covariates of the steps after row i; past the last row, those of a season ago."""
        future = self.usual()
        known = rows[i + 1 : i + 1 + self.horizon]
        future[: len(known)] = known
        return future

    def usual(self) -> Floats:
        """Return (H, k) covariates of the next steps where none are given: those of a season ago."""
        if not self.covariates:
            return np.empty((self.horizon, 0))
        now, h, m = self.n - self.shift - 1, np.arange(1, self.horizon + 1), self.seasons[0]
        there = now + h - m * ((h + m - 1) // m)
        return self._arrays["x"][np.where(there >= 0, there, max(now, 0))]


class Told(NamedTuple):
    """The forecasts at one time: (p, H) points, their (p, f, H) scales and weights, the mixture's (H, q) quantiles."""

    points: Floats
    scales: Floats
    quantiles: Floats
    weights: Floats


def _unit(values: Floats, m: int) -> float:
    """Return the mean size of a difference from the anchor; 0 where all are 0."""
    away = np.abs(values[m:] - values[:-m]) if m > 1 else np.abs(np.diff(values))
    size = float(away.mean()) if len(away) else 0.0
    return size or float(np.abs(np.diff(values)).mean())


def _fits(start: int, last: int) -> frozenset[int]:
    """Return the numbers of values at which trees are fitted."""
    at, times = float(max(FIRST_FIT, 2 * start)), []
    while at <= 10 * last:
        times.append(int(at))
        at *= GROWTH
    return frozenset(times)


def fitted_trees(rows: Floats, targets: Floats) -> FlatTrees | None:
    """Return boosted trees fitted to rows and targets."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from venn.machines.threads import one_thread

    model = HistGradientBoostingRegressor(
        max_iter=60 if len(rows) < 5000 else 100, learning_rate=0.08, max_leaf_nodes=24, min_samples_leaf=20,
        l2_regularization=1.0, early_stopping=False, random_state=0,
    )  # fmt: skip
    with one_thread():
        model.fit(rows, targets)
    return FlatTrees.of(model)
