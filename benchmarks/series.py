"""How sharp the forecaster of series is many steps ahead, and are its intervals right, beside what others would use?

    STREAMS_DATA=folder OMP_NUM_THREADS=1 nice python benchmarks/series.py             # eight series, about an hour
    STREAMS_DATA=folder OMP_NUM_THREADS=1 nice python benchmarks/series.py gas gold    # some
    STREAMS_DATA=folder OMP_NUM_THREADS=1 nice python benchmarks/series.py taylor --ways "vennstream;MSTL"  # these anew

It needs the extra `peers`. Each way runs in a process of its own, which is ended after so many processor seconds, 240
unless --seconds says otherwise. What a way scored on a series is a line of --out, series.jsonl by default: the same
command goes on where it was, and runs nothing again that has a line. At the end it prints a table, and one JSON line
for each series: of each way the interval score at .1 and the CRPS over the mean difference of a value from that a
season before, and the share of values inside. Smaller scores are better.

Each series has five origins in its second half, and from each six paths of H steps begin, half a path apart. At an
origin a rival is fitted to what came, 2000 values at most; between its paths it takes the new values with the
parameters that it has. The forecaster and the adapted naive have learned value after value from the first one. Ways:

- AutoETS, AutoARIMA, MSTL, AutoTheta of statsforecast with their own intervals, and "conformal": with the quantiles of
  their errors at the same horizon from earlier beginnings, as ConformalIntervals, but without a new fit for each. The
  first two take no season above 24 that is of use: AutoETS leaves it out by itself, AutoARIMA would take hours (and
  fails with a mean or a drift on new values under pandas 3, so it gets values less their mean);
- trees: mlforecast with LightGBM on seasonal differences, lags and phases, conformal by horizon in the same manner;
- skater: laplace of skaters, which learns value after value, on the last 300 before each origin; its own distributions.
"""

import argparse
import csv
import gzip
import os
import resource
import signal
import sys
import warnings
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np
from scipy.special import ndtri
from workload import append, command, lines_of

import venn
from venn.series.experts import LEVELS
from venn.series.levels import MovingLevels

QUANTILES = np.arange(1, 20) / 20  # at which CRPS is taken, of everyone
LEVEL = 0.1
OURS, OTHERS = "vennstream", ("trees", "skater")
ORIGINS, PATHS, MOST, EARLIER, SKATED = 5, 6, 2000, 40, 300
#: Seasons, steps ahead, values.
SERIES = {
    "taylor": ((48, 336), 24, 4032), "elecdemand": ((48, 336), 24, 6000), "calls": ((169, 845), 24, 6000),
    "melbourne": ((365,), 7, 3650), "sunspots": ((132,), 12, 3177), "co2": ((52,), 12, 2284), "gas": ((12,), 12, 476),
    "gold": ((1,), 5, 1074),
}  # fmt: skip


def values_of(name):
    """Return the values of a series."""
    path = Path(os.environ["STREAMS_DATA"]) / "series" / f"{name}.csv.gz"
    with gzip.open(path, "rt") as lines:
        return np.array([float(row["value"]) for row in csv.DictReader(lines)])[: SERIES[name][2]]


def starts_of(n, H):
    """Return for each origin the places of the values before each path."""
    stride = max(H // 2, 1)
    room = H + stride * (PATHS - 1)
    return [[int(o) + stride * i for i in range(PATHS)] for o in np.linspace(n // 2, n - 1 - room, ORIGINS, dtype=int)]


class Scores:
    """Sums of what is scored of paths."""

    def __init__(self):
        self.interval = self.crps = self.inside = self.n = 0.0

    def add(self, quantiles, ends, values):
        """Add a path: (H, 19) quantiles, (H, 2) ends of intervals."""
        middle = quantiles[:, len(QUANTILES) // 2]
        lower, upper = np.where(np.isnan(ends), middle[:, None], ends).T  # an empty interval is a point
        away = np.maximum(np.maximum(lower - values, values - upper), 0)
        self.interval += float((upper - lower + 2 / LEVEL * away).sum())
        d = values[:, None] - quantiles
        self.crps += float(2 * np.where(d > 0, QUANTILES * d, (QUANTILES - 1) * d).mean(axis=1).sum())
        self.inside += float(((lower <= values) & (values <= upper)).sum())
        self.n += len(values)


def ours(values, seasons, H, starts):
    """Yield start and path of the forecaster, and then the share inside by horizon and its seconds a value, late."""
    model = venn.SeriesForecaster(season=seasons, horizon=H)
    wanted = {one for origin in starts for one in origin}
    began = process_time()
    for t, y in enumerate(values.tolist()):
        model.learn_one(y)
        path = model.forecast()
        if t in wanted:
            quantiles = np.array([[step.quantile(q) for q in QUANTILES] for step in path])
            yield t, quantiles, path.intervals(LEVEL)
        if t == len(values) // 2:
            half = process_time()
    ours.late = (process_time() - half) / (len(values) - len(values) // 2 - 1)
    ours.whole = process_time() - began
    ours.accounts = [one for one in model.accounts() if one.level == LEVEL]
    ours.model = model


def adapted_naive(values, seasons, H, starts):
    """Yield start and path of seasonal naive with quantiles of its errors, and thresholds that move."""
    m = seasons[-1] if len(seasons) > 1 else seasons[0]
    levels, wanted, told = MovingLevels(H), {one for origin in starts for one in origin}, None
    h = np.arange(1, H + 1)
    back = m * ((h + m - 1) // m) - h  # of a place before the forecast
    errors = [[] for _ in range(H)]
    for t, y in enumerate(values):
        for k in range(H):
            place = t - h[k] - back[k]
            if place >= 0:
                errors[k].append(y - values[place])
        levels.learn(y, told)
        points = values[np.maximum(t - back, 0)]
        quantiles = np.array([
            p + np.quantile(e[-300:], LEVELS) if len(e) > 5 else np.full(len(LEVELS), np.nan)
            for p, e in zip(points, errors, strict=True)
        ])  # fmt: skip
        ends, bands = levels.tell(quantiles)
        told = quantiles, ends, bands
        if t in wanted:
            asked = np.array([np.interp(QUANTILES, LEVELS, row) for row in quantiles])
            yield t, asked, ends[:, 2]


def normal(mean, lower, upper):
    """Return quantiles of normal distributions by their intervals at .1."""
    deviation = (upper - lower) / (2 * ndtri(0.95))
    return mean[:, None] + deviation[:, None] * ndtri(QUANTILES)


def by_errors(mean, errors):
    """Return quantiles and intervals by (k, H) earlier errors: those of their absolute values, on both sides."""
    k = len(errors)
    size = np.sort(np.abs(errors), axis=0)
    u = np.abs(2 * QUANTILES - 1)
    ranks = np.clip(np.ceil(u * (k + 1)).astype(int) - 1, 0, k - 1)
    quantiles = mean[:, None] + (np.sign(QUANTILES - 0.5)[:, None] * size[ranks]).T
    half = size[min(int(np.ceil((1 - LEVEL) * (k + 1))) - 1, k - 1)]
    return quantiles, np.column_stack([mean - half, mean + half])


def statistical(make, values, H, starts):
    """Yield start, own and conformal path of a model of statsforecast."""
    for origin in starts:
        first = max(origin[0] + 1 - MOST, 0)
        model = make().fit(values[first : origin[0] + 1])
        before = [origin[0] - H - i * max(H // 2, 1) for i in range(EARLIER)]
        errors = []
        for t in before:
            if t - first > max(3 * H, 40):
                said = model.forward(values[first : t + 1], h=H)["mean"]
                errors.append(values[t + 1 : t + 1 + H] - said)
        for t in origin:
            said = model.forward(values[first : t + 1], h=H, level=[90])
            mean, lower, upper = (np.asarray(said[key]) for key in ("mean", "lo-90", "hi-90"))  # ARIMA's are of pandas
            own = normal(mean, lower, upper), np.column_stack([lower, upper])
            yield t, own, by_errors(mean, np.array(errors))


def phase_of(m):
    """Return a function of times, named after the season, as mlforecast wants it."""

    def phase(ds):
        return ds % m

    phase.__name__ = f"phase_{m}"
    return phase


def boosted(values, seasons, H, starts):
    """Yield start and conformal path of trees of mlforecast."""
    import lightgbm
    import pandas as pd
    from mlforecast import MLForecast
    from mlforecast.target_transforms import Differences

    def table(upto, first):
        n = upto + 1 - first
        return pd.DataFrame({"unique_id": "a", "ds": np.arange(n), "y": values[first : upto + 1]})

    main = [m for m in seasons if m > 1]
    lags = sorted({1, 2, 3, 4, 5, 6, *(k for m in main for k in (m, m + 1))})
    for origin in starts:
        first = max(origin[0] + 1 - MOST, 0)
        features = [phase_of(m) for m in main]
        model = MLForecast(
            models=[lightgbm.LGBMRegressor(verbosity=-1, n_jobs=1, random_state=0)],
            freq=1, lags=lags, target_transforms=[Differences([main[0] if main else 1])], date_features=features,
        )  # fmt: skip
        model.fit(table(origin[0], first))
        # Its errors on what it was fitted to are too small: another fit, to what came before them.
        calibrated = MLForecast(
            models=[lightgbm.LGBMRegressor(verbosity=-1, n_jobs=1, random_state=0)],
            freq=1, lags=lags, target_transforms=[Differences([main[0] if main else 1])], date_features=features,
        )  # fmt: skip
        cut = origin[0] - H - max(min(EARLIER, (origin[0] - first) // (2 * H)), 5) * max(H // 2, 1)
        calibrated.fit(table(cut, first))
        errors = []
        for t in range(cut, origin[0] - H + 1, max(H // 2, 1)):
            said = calibrated.predict(H, new_df=table(t, first))["LGBMRegressor"].to_numpy()
            errors.append(values[t + 1 : t + 1 + H] - said)
        for t in origin:
            mean = model.predict(H, new_df=table(t, first))["LGBMRegressor"].to_numpy()
            yield t, *by_errors(mean, np.array(errors))


def skater(values, H, starts):
    """Yield start and path of a skater, from its own distributions."""
    from skaters import laplace

    for origin in starts:
        forecast, state = laplace(k=H), None
        for t in range(max(origin[0] - SKATED, 0), origin[-1] + 1):
            said, state = forecast(float(values[t]), state)
            if t in origin:
                quantiles = np.array([[one.quantile(float(q)) for q in QUANTILES] for one in said])
                yield t, quantiles, np.column_stack([quantiles[:, 0], quantiles[:, -1]])


class Centred:
    """A model of statsforecast, fitted to values less their mean."""

    def __init__(self, model):
        self.model = model

    def fit(self, values):
        """Fit, and keep the mean."""
        self.mean = values.mean()
        self.model.fit(values - self.mean)
        return self

    def forward(self, values, **given):
        """Return what is said after other values."""
        return {name: one + self.mean for name, one in self.model.forward(values - self.mean, **given).items()}


def ways_of(seasons):
    """Return makers of models of statsforecast, by name."""
    from statsforecast.models import MSTL, AutoARIMA, AutoETS, AutoTheta

    m = seasons[0]
    ways = {
        "AutoETS": lambda: AutoETS(season_length=m),
        "AutoARIMA": lambda: Centred(
            AutoARIMA(season_length=m if m <= 24 else 1, approximation=True, allowdrift=False, allowmean=False)
        ),
        "AutoTheta": lambda: AutoTheta(season_length=m),
    }
    if m > 1:
        ways["MSTL"] = lambda: MSTL(season_length=list(seasons))
    return ways


def paths_of(way, values, seasons, H, starts):
    """Yield name, start and path of a way; one of statsforecast has two names."""
    if way in ways_of(seasons):
        for t, own, conformal in statistical(ways_of(seasons)[way], values, H, starts):
            yield way, t, *own
            yield f"{way}, conformal", t, *conformal
        return
    given = (values, H, starts) if way == "skater" else (values, seasons, H, starts)
    makers = {OURS: ours, "naive, adapted": adapted_naive, "trees": boosted, "skater": skater}
    for one in makers[way](*given):
        yield way, *one


def measure(name, way, out):
    """Write a line for each name under which a way has scores on a series."""
    seasons, H, _ = SERIES[name]
    values = values_of(name)
    starts, scores = starts_of(len(values), H), {}
    for called, t, quantiles, ends in paths_of(way, values, seasons, H, starts):
        scores.setdefault(called, Scores()).add(quantiles, ends, values[t + 1 : t + 1 + H])
    m = seasons[-1] if len(values) > 2 * seasons[-1] else seasons[0]
    unit = float(np.abs(values[m:] - values[:-m]).mean())
    for called, one in scores.items():
        line = {
            "series": name, "way": called, "of": way, "interval": round(one.interval / one.n / unit, 4),
            "crps": round(one.crps / one.n / unit, 4), "inside": round(one.inside / one.n, 3),
            "seconds": round(process_time(), 1),
        }  # fmt: skip
        if way == OURS:
            covered = [1 - account.errors / account.n for account in ours.accounts if account.horizon]
            line |= {"covered": [round(min(covered), 4), round(max(covered), 4)], "ms": round(1000 * ours.late, 3)}
        append(out, line)


def limited(name, way, out, seconds):
    """Let a process measure a way, and end it after so many processor seconds: a line says so."""

    def work():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        sys.stdout = sys.stderr
        warnings.simplefilter("ignore")
        measure(name, way, out)

    process = get_context("fork").Process(target=work)
    process.start()
    process.join()
    if process.exitcode:
        why = f"not ended after {seconds} s" if process.exitcode == -signal.SIGXCPU else "failed"
        append(out, {"series": name, "way": way, "of": way, "why": why})


def found_in(out):
    """Return the last line of each way, by series and way."""
    return {(one["series"], one["way"]): one for one in lines_of(out)}


def told(name, found):
    """Print how a series went; return what a JSON line has of it, None where ours or all rivals are missing."""
    row = {way: one for (series, way), one in found.items() if series == name}
    scored = {way: one for way, one in row.items() if "why" not in one}
    own = scored.get(OURS)
    if own is None or len(scored) < 2:
        return None
    best = {of: min(one[of] for way, one in scored.items() if way != OURS) for of in ("interval", "crps")}
    over = {of: round(own[of] / best[of], 3) for of in best}
    print(f"{name}: {over} of the best rival; inside {own['covered']}; {own['ms']} ms")
    for way, one in sorted(scored.items(), key=lambda pair: pair[1]["interval"]):
        print(f"    {way:<24} {one['interval']:7.3f} {one['crps']:7.3f} {one['inside']:6.2f} {one['seconds']:6.0f} s")
    for way, one in row.items():
        if "why" in one:
            print(f"    {way:<24} {one['why']}", flush=True)
    kept = {way: {key: one[key] for key in one if key not in ("series", "way", "of")} for way, one in row.items()}
    return {"series": name, "over_best": over, "covered": own["covered"], "ms": own["ms"], "ways": kept}


@command(threads=None)
def main():
    """Measure what has no line yet, print the table, and a JSON line for each series."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", type=lambda text: text.split(";"), help="these alone, and anew; ; stands between two")
    parser.add_argument("--out", type=Path, default=Path("series.jsonl"))
    parser.add_argument("--seconds", type=int, default=240)
    given = parser.parse_args()
    names = given.names or sorted(SERIES, key=lambda name: (SERIES[name][2], name))
    for name in names:
        known = {one["of"] for (series, _), one in found_in(given.out).items() if series == name}
        usual = [way for way in (OURS, "naive, adapted", *ways_of(SERIES[name][0]), *OTHERS) if way not in known]
        for way in given.ways or usual:
            limited(name, way, given.out, given.seconds)
    rows = [row for row in (told(name, found_in(given.out)) for name in names) if row is not None]
    yield from rows
    mean = {of: np.exp(np.mean([np.log(row["over_best"][of]) for row in rows])) for of in ("interval", "crps")}
    yield {"mean_over_best": {of: round(float(one), 3) for of, one in mean.items()}}
