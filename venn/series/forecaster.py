"""Forecasts of the next values of a series, with intervals whose error rate is right in the long run on any series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from venn.labels import LARGEST_LABEL
from venn.monitors.verdict import CLAIMED, EARLY, Verdict
from venn.parameters import integer, is_number, optional
from venn.prediction import LEVELS as USUAL
from venn.prediction import LONG_RUN, Floats
from venn.predictors.long_run import ConstantSteps, Steps, checked_steps, rising
from venn.saved import Saved, component, own, param, restored_bool, restored_int, restored_text, state
from venn.series.experts import Experts, Told
from venn.series.levels import HorizonAccount, MovingLevels
from venn.series.path import Path, Step
from venn.series.seasons import seasons_of
from venn.series.watches import AccountWatch, SeriesWatch
from venn.turns import TakesTurns, asks, changes

SEARCH = tuple(round(24 * 1.35**k) for k in range(18))  # numbers of values at which seasons are looked for
FEW = 30  # answers before a verdict
MOST = 1000  # steps ahead


def _season(name: str, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    given = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    found = tuple(integer(name, one, 1) for one in given)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{name} must be a period, or different ones, got {value!r}")
    if len(found) > 1 and 1 in found:
        raise ValueError(f"{name} must be periods of 2 or more where there are several, got {value!r}")
    return found


def _restored_found(name: str, value: Any) -> tuple[int, ...]:
    found = _season(name, value)
    if found is None:
        raise ValueError(f"{name} must be periods, got None")
    return found


def _restored_like_experts(name: str, value: Any) -> Experts:
    if not isinstance(value, Experts):
        raise ValueError(f"{name} must be Experts, got {value!r}")
    return value


def _restored_future(name: str, value: Any) -> Floats | None:
    if value is not None and (not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype != np.float64):
        raise ValueError(f"{name} must be rows of covariates or None, got {value!r}")
    return value


def _restored_columns(name: str, value: Any) -> tuple[str, ...]:
    return tuple(restored_text(name, one) for one in value)


@component
class SeriesForecaster(TakesTurns, Saved):
    """Forecasts of the next values of a series, many steps ahead, with intervals that are right in the long run.

    Values come one at a time. Many experts say distributions of the values ahead: the last value, the value a season
    ago, some hundred smoothings, ridge regressions on lags, and boosted trees that are fitted anew at growing lengths.
    Each is weighed at each horizon by how good it was there lately. The intervals come from a threshold for each
    horizon and level, which moves with the errors.

    What is promised, on any series, with no probability in it: for each horizon h, the number of intervals at a level e
    that missed their value is at most n e + 1 / s + h + 1, and at least n e - 1 / s - k (h + 1), for n answers and
    constant steps of size s, .005 by default, with k the place of the level from the largest on; `accounts` has the
    numbers, and the bound for levels that are not from .01 to .35. So of the intervals at .1, nine in ten hold their
    value in the long run. The same is promised of bands for the whole path.

    What is not promised: anything about a single interval, about a time of the day or of the year by itself, or about
    widths. The distributions and medians are forecasts, and nothing is promised of them.

    Parameters
    ----------
    season : int >= 1, sequence of these, or None
        How many values a period has, such as 48 for half hours, or (48, 336) for half hours and weeks: the first one is
        that from which differences count. 1: there is none. None: found from the values, at growing lengths.
    horizon : int from 1 to 1000, default 24
        Steps ahead.
    levels : sequence of numbers in (0, 1), default (0.01, 0.05, 0.1, 0.2)
        Rising: at these the promise holds.
    steps : optional
        `venn.predictors.ConstantSteps(0.005)`, the default, or `DecayingSteps()`: how far thresholds move. Larger steps
        keep the promise sooner, and intervals waver more.
    last : int >= 100, default 20000
        Values that are kept at least, at most twice as many: memory does not grow beyond that.

    Attributes
    ----------
    n : int
        Number of values that came, missing ones included.
    seasons : tuple of int
        Those given, or found so far; (1,) for none.
    watch : SeriesWatch
        It watches the p-values of the next value.
    account_watch : AccountWatch
        It watches how much of its bound the account of each horizon has used up.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Notes
    -----
    Covariates `x` are numbers that are known beforehand, such as the calendar or a price: `learn_one` takes those of
    its value, `forecast` those of the steps ahead. Where `forecast` is not given them, those of a season ago stand in.
    The path that counts in the accounts is the last one that was asked with covariates since the latest value, or else
    one without. Apart from that, asking leaves no trace.

    References
    ----------
    Gibbs & Candès (2021), arXiv:2106.00170, for one step. Gneiting & Raftery (2007) for the score by which experts are
    weighed.

    Examples
    --------
    >>> model = SeriesForecaster(season=12, horizon=6)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(240):
    ...     model.learn_one(100 + t / 4 + 20 * np.sin(np.pi * t / 6) + rng.normal())
    >>> path = model.forecast()
    >>> lower, upper = path[3].interval(0.1)
    >>> bool(lower < 100 + 242 / 4 + 20 * np.sin(np.pi * 242 / 6) < upper < lower + 12)
    True
    >>> print(model.verdict())
    Go on: as claimed.
    """

    season: Any = param(_season, default=None)
    horizon: int = param(integer, 1, MOST, default=24)
    levels: Sequence[float] = param(rising, default=USUAL, kw_only=True)
    steps: Steps = param(checked_steps, default=ConstantSteps(0.005), kw_only=True)
    last: int = param(integer, 100, default=20_000, kw_only=True)

    n: int = state(restored_int, start=0)
    seasons: tuple[int, ...] = state(_restored_found, start=own(lambda m: m.season or (1,)))
    names: tuple[str, ...] = state(_restored_columns, start=())
    _named: bool = state(restored_bool, start=False)
    _experts: Experts = state(
        _restored_like_experts, start=own(lambda m: Experts(m.season or (1,), m.horizon, 0, m.last))
    )
    _levels: MovingLevels = state(None, start=own(lambda m: MovingLevels(m.horizon, m.levels, m.steps)))
    watch: SeriesWatch = state(None, start=own(lambda _: SeriesWatch()))
    account_watch: AccountWatch = state(None, start=own(lambda _: AccountWatch()))
    _future: Floats | None = state(_restored_future, start=None)  # covariates with which the path was asked

    def derive(self) -> None:
        """Start without a forecast; refuse parts that do not fit together, since compiled loops do not check."""
        experts, levels, future = self._experts, self._levels, self._future
        wanted = Experts(self.seasons, self.horizon, len(self.names), self.last).parameters
        if experts.parameters != wanted or experts.n != self.n:
            raise ValueError(f"experts must be those of {self.n} values of {wanted}, got {experts!r}")
        if not isinstance(levels, MovingLevels) or (levels.horizon, levels.n) != (self.horizon, self.n):
            raise ValueError(f"levels must be those of {self.n} values {self.horizon} steps ahead, got {levels!r}")
        watches = self.watch, self.account_watch
        if tuple(levels.levels) != tuple(self.levels) or tuple(map(type, watches)) != (SeriesWatch, AccountWatch):
            raise ValueError(f"levels must be {self.levels}, with two watches, got {levels!r} and {watches!r}")
        if future is not None and future.shape != (self.horizon, len(self.names)):
            raise ValueError(f"future must be {self.horizon} rows of {len(self.names)} covariates, got {future.shape}")
        self._forecast_now: tuple[bytes | None, Told, Floats, Floats] | None = None

    # --------------------------------------------------------------- learning

    @changes
    def learn_one(self, y: float | None, x: Any = None) -> None:
        """Learn the next value.

        Parameters
        ----------
        y : number
            NaN or None: it is missing. Nothing is answered then, and time goes on.
        x : mapping of str to numbers, or sequence of numbers, optional
            Covariates of this value, the same ones at each.

        Raises
        ------
        TypeError, ValueError
            The value is no number or infinite, or x has other covariates than before. Nothing is learned.
        """
        value = _value(y)
        if self.n == 0:
            self._begin(x)
        row = self._row(x)
        said = None if self.n == 0 else self._say(self._future)
        told = None if said is None else (said[1].quantiles, said[2], said[3])
        p_values = self._levels.learn(value, told)
        self._experts.learn(value, row, None if said is None else said[1])
        self.n += 1
        self._future, self._forecast_now = None, None
        if not math.isnan(p_values[0]) and self.watch.update(float(p_values[0])):
            self._levels.start_clock()
        self.account_watch.update(self._levels.used(), tuple(self.levels))
        if self.season is None and self.n in SEARCH:
            self._search()

    def _begin(self, x: Any) -> None:
        """See which covariates there are."""
        self._named = isinstance(x, Mapping)
        names = tuple(map(str, x)) if isinstance(x, Mapping) else ()
        width = 0 if x is None else len(names) if self._named else len(_numbers(x))
        self.names = names or tuple(f"x{i}" for i in range(width))
        if width != self._experts.covariates:
            self._experts = Experts(self.seasons, self.horizon, width, self.last)

    def _row(self, x: Any) -> Floats:
        if self._named and isinstance(x, Mapping):
            if tuple(map(str, x)) != self.names and set(map(str, x)) != set(self.names):
                raise ValueError(f"x must have the covariates {', '.join(self.names)}, got {x!r}")
            x = [x[name] for name in self.names]
        row = np.zeros(0) if x is None else _numbers(x)
        if len(row) != len(self.names):
            raise ValueError(f"x must have {len(self.names)} covariates, as before, got {x!r}")
        return row

    def _search(self) -> None:
        """Look for seasons; if they are others than before, begin the experts anew with the values so far."""
        values, missing, rows = self._experts.kept()
        found = seasons_of(values)
        if found == self.seasons:
            return
        experts = Experts(found, self.horizon, len(self.names), self.last)
        told = None
        for i, (value, gap) in enumerate(zip(values.tolist(), missing.tolist(), strict=True)):
            experts.learn(math.nan if gap else value, rows[i], told)
            told = experts.say(experts.ahead_of(rows, i))
        self.seasons, self._experts = found, experts

    # --------------------------------------------------------------- forecasting

    @changes
    def forecast(self, horizon: int | None = None, xs: Any = None) -> Path:
        """Return the forecast of the next values.

        Parameters
        ----------
        horizon : int, optional
            Steps ahead, at most those of the model; by default all of them.
        xs : sequence of covariates, optional
            Those of each of the next steps, as for `learn_one`. After them come those of a season ago.

        Raises
        ------
        TypeError, ValueError
            A parameter is not as described.
        """
        asked = optional("horizon", horizon, integer, 1, self.horizon) or self.horizon
        if xs is None:
            future = self._future
        else:
            rows = [self._row(x) for x in xs]
            if len(rows) < asked:
                raise ValueError(f"xs must have covariates of {asked} steps, got {len(rows)}")
            future = self._experts.usual()
            for i, row in enumerate(rows[: self.horizon]):
                future[i] = row
        if not self.n:
            return self._path(np.full((self.horizon, _q()), np.nan), *self._nothing(), asked)
        said = self._say(future)
        if xs is not None:
            self._future = future
        return self._path(said[1].quantiles, said[2], said[3], asked)

    @asks
    def fan(self) -> dict[str, Any]:
        """Return the present path, and the one of `horizon` values ago with the values that came, for a picture.

        Returns
        -------
        dict
            ``levels``, two of them or one; ``columns``, by name, as JSON: ``step``, the numbers of values, ``came``,
            ``median`` and the ends of intervals such as ``lower0.2``; of the earlier path, these with ``before_``. What
            is not known, or not finite, is None.

        Examples
        --------
        >>> model = SeriesForecaster(season=1, horizon=2)
        >>> for value in (3.0, 4.0, 3.5, 3.8):
        ...     model.learn_one(value)
        >>> found = model.fan()["columns"]
        >>> found["step"], found["came"], [one is None for one in found["median"]]
        ([1, 2, 3, 4, 5, 6], [3.0, 4.0, 3.5, 3.8, None, None], [True, True, True, True, False, False])
        """
        values, missing, _ = self._experts.kept()
        values[missing] = math.nan
        values = values[-2 * self.horizon :]
        known, size = len(values), len(values) + self.horizon
        paths = {"": (known, self.forecast())}
        if self.n > self.horizon:
            paths["before_"] = known - self.horizon, Path(*self._levels.earlier(), tuple(self.levels))
        columns: dict[str, list[Any]] = {
            "step": list(range(self.n - known + 1, self.n - known + size + 1)), "came": _placed(0, values, size)
        }  # fmt: skip
        levels = sorted({self.levels[(len(self.levels) - 1) // 2], self.levels[-1]})
        for prefix, (at, path) in paths.items():
            columns[f"{prefix}median"] = _placed(at, path.medians, size)
            for level in levels:
                lower, upper = path.intervals(level).T
                columns[f"{prefix}lower{level:g}"] = _placed(at, lower, size)
                columns[f"{prefix}upper{level:g}"] = _placed(at, upper, size)
        return {"levels": levels, "columns": columns}

    @asks
    def intervals_with(self, x: Floats) -> Step:
        """Return the intervals of the next value, given covariates `x` of the next steps; leaves no trace."""
        return self.path_with(x)[1]

    @asks
    def path_with(self, x: Floats) -> Path:
        """Return the path, given covariates `x` (j, k) of the next steps, if any; leaves no trace."""
        if not self.n:
            return self.forecast()
        future = self._future
        if x.size:
            future = self._experts.usual()
            future[: len(x)] = x[: self.horizon]
        said = self._say(future)
        return self._path(said[1].quantiles, said[2], said[3], self.horizon)

    def _path(self, quantiles: Floats, ends: Floats, bands: Floats, asked: int) -> Path:
        return Path(quantiles[:asked], ends[:asked], bands[:, :asked], tuple(self.levels))

    def _nothing(self) -> tuple[Floats, Floats]:
        return self._levels.tell(np.full((self.horizon, _q()), np.nan))

    def _say(self, future: Floats | None) -> tuple[bytes | None, Told, Floats, Floats]:
        key = None if future is None else future.tobytes()
        if self._forecast_now is None or self._forecast_now[0] != key:
            told = self._experts.say(self._experts.usual() if future is None else future)
            self._forecast_now = key, told, *self._levels.tell(told.quantiles)
        return self._forecast_now

    # --------------------------------------------------------------- reading

    @property
    def guaranteed(self) -> str:
        """What is promised of intervals and bands: "long-run error rate"."""
        return LONG_RUN

    @asks
    def accounts(self) -> tuple[HorizonAccount, ...]:
        """Return for each horizon and level the answers, the errors, and the bound that holds on any series.

        Those of bands, with horizon None, are the last ones.
        """
        return self._levels.accounts()

    @asks
    def weights(self, h: int = 1) -> dict[str, float]:
        """Return the weights of the experts in the distribution h steps ahead, largest first."""
        h = integer("h", h, 1, self.horizon)
        if not self.n:
            return {}
        each = self._say(self._future)[1].weights[:, :, h - 1].sum(axis=1).tolist()
        found = dict(zip(self._experts.titles, each, strict=True))
        return {name: found[name] for name in sorted(found, key=lambda name: -found[name]) if found[name] > 0}

    @asks
    def verdict(self) -> Verdict:
        """Return whether values still come as they did, and the worst of the accounts in the details."""
        answered = self.watch.n
        if answered < FEW:
            details = f"{EARLY}: {answered} of {FEW} answers"
            return Verdict(EARLY, None, None, "none", "", details)
        found = self.watch.verdict()
        if found.state == CLAIMED:
            found = self.account_watch.verdict() if self.account_watch.verdict().state != CLAIMED else found
        accounts = [one for one in self.accounts() if one.n]
        worst = max(accounts, key=lambda one: abs(one.errors - one.level * one.n) / one.bound)
        where = "bands" if worst.horizon is None else f"horizon {worst.horizon}"
        told = (
            f"{found.details}; the account of {where} at {worst.level:g} is furthest: {worst.errors} errors in "
            f"{worst.n} answers, which are within {worst.bound:.4g} of {worst.level * worst.n:.4g} on any series"
        )
        return Verdict(
            found.state, found.since, found.change, found.evidence, found.detector, told, reason=found.reason
        )


def _q() -> int:
    from venn.series.experts import LEVELS

    return len(LEVELS)


def _value(y: Any) -> float:
    """Return a value as a float, NaN where it is missing; or say what it must be."""
    if y is None:
        return math.nan
    if not is_number(y):
        raise TypeError(f"y must be a number, NaN or None for a missing one, got {y!r}")
    value = float(y)
    if abs(value) > LARGEST_LABEL:
        raise ValueError(f"y must be of size at most {LARGEST_LABEL:g}, NaN or None for a missing one, got {y!r}")
    return value


def _placed(at: int, numbers: Floats, size: int) -> list[float | None]:
    """Return a column of this size with numbers from `at` on, for a picture; None where there is no finite number."""
    found: list[float | None] = [None] * size
    for i, number in enumerate(numbers.tolist(), at):
        found[i] = float(f"{number:.6g}") if math.isfinite(number) else None
    return found


def _numbers(x: Any) -> Floats:
    """Return covariates as an array, or say what they must be."""
    wanted = "x must be finite numbers, or a mapping of names to these"
    if isinstance(x, str | bytes | Mapping):
        raise TypeError(f"{wanted}, got {x!r}")
    try:
        row = np.array([float(one) for one in x], np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{wanted}, got {x!r}") from error
    if not np.isfinite(row).all():
        raise ValueError(f"{wanted}, got {x!r}")
    return row
