"""The forecast of the next values of a series: a distribution and intervals for each step, and bands for all."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np

from venn._compiled import series_distributions as loops
from venn.distribution import REAL, NestedIntervals, NumberPrediction
from venn.parameters import integer, share
from venn.prediction import LONG_RUN, Floats, significance
from venn.series.experts import LEVELS, SHARES

PARTS = 1_000_000  # levels are told apart down to one over this
LINE = (-math.inf, math.inf)


class Step(NumberPrediction):
    """The forecast of one value ahead: `path[h]` gives it.

    Nothing is promised about its distribution. Its intervals at the declared levels keep a long-run
    error rate: see `SeriesForecaster`.

    Attributes
    ----------
    guaranteed : str
        "long-run error rate".
    quantiles : (q,) float64
        Of the distribution, at the levels `venn.series.experts.LEVELS`; NaN before anything is known.

    Examples
    --------
    >>> import venn
    >>> model = venn.SeriesForecaster(season=4, horizon=2)
    >>> for t in range(40):
    ...     model.learn_one([10.0, 20.0, 30.0, 25.0][t % 4] + t % 3)
    >>> step = model.forecast()[1]
    >>> step.interval(0.1)[0] <= step.median <= step.interval(0.1)[1], step.cdf(0.0) < 0.1
    (True, True)
    """

    guaranteed = LONG_RUN

    def __init__(self, quantiles: Floats, ends: Floats, levels: tuple[float, ...]) -> None:
        self.quantiles, self._ends, self._levels = quantiles, ends, levels

    @property
    def label(self) -> float:
        """The median; NaN before anything is known."""
        return float(self.quantiles[len(LEVELS) // 2])

    @property
    def median(self) -> float:
        """The median; NaN before anything is known."""
        return self.label

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the ends of the interval that misses the value in a share `epsilon` of all times in the long run.

        Where too few intervals have missed, the account needs an error: the interval is empty, (nan, nan).

        Parameters
        ----------
        epsilon : float in [0, 1]
            One of the declared levels. At another one it is the interval of the next lower one, or the line.

        Raises
        ------
        ValueError, TypeError
            `epsilon` is not as described.
        """
        k = bisect_right(self._levels, significance(epsilon) * (1 + 1e-12)) - 1
        return LINE if k < 0 else (float(self._ends[k, 0]), float(self._ends[k, 1]))

    def quantile(self, q: float) -> float:
        """Return the quantile of the distribution at q in [0, 1]: nothing is promised of it."""
        at = share("q", q)
        return math.nan if math.isnan(self.label) else float(loops.quantile_at(self.quantiles, LEVELS, at))

    def cdf(self, y: float) -> float:
        """Return the probability of values up to `y` by the distribution: nothing is promised of it."""
        value = REAL.encode(y)
        return math.nan if math.isnan(self.label) else float(loops.probability_at(self.quantiles, LEVELS, value, True))

    def p_value(self, y: float) -> float:
        """Return the probability of values up to `y`."""
        return self.cdf(y)

    def crps(self, y: float) -> float:
        """Return the continuous ranked probability score at `y`, over the levels of the quantiles: small is good."""
        return float(loops.pinball(self.quantiles, LEVELS, SHARES, REAL.encode(y)))

    def nested(self) -> NestedIntervals:
        """Return the intervals alone, as journals keep them; an empty one as the median."""
        label = self.label if math.isfinite(self.label) else 0.0
        ends = [self.interval(level) for level in self._levels]
        low, high = (np.array([label if math.isnan(end) else end for end in side]) for side in zip(*ends, strict=True))
        ranks = [math.floor(level * PARTS + 1e-9) for level in self._levels]
        high = np.minimum.accumulate(high)
        low = np.minimum(np.maximum.accumulate(low), high[-1])
        lower = [(end, rank) for end, rank in zip(low.tolist(), ranks, strict=True) if math.isfinite(end)]
        upper = [(e, 2 * PARTS - 1 - rank) for e, rank in zip(high.tolist(), ranks, strict=True) if math.isfinite(e)]
        points = [*lower, *reversed(upper)]
        values, places = zip(*points, strict=True) if points else ((), None)
        return NestedIntervals(values, label, 0.5, places, 2 * (PARTS - 1) if points else None, guaranteed=LONG_RUN)


class Path:
    """The forecast of the next values of a series, frozen: `path[1]` is the next one, `path[len(path)]` the last.

    Parameters
    ----------
    quantiles : (H, q) float64
    ends : (H, l, 2) float64
        Of the intervals.
    bands : (l, H, 2) float64
    levels : tuple of float
        The l levels that were declared, rising.

    Attributes
    ----------
    guaranteed : str
        "long-run error rate": of the intervals, and of the bands, at the declared levels.

    Examples
    --------
    >>> import venn
    >>> model = venn.SeriesForecaster(season=4, horizon=2)
    >>> for t in range(40):
    ...     model.learn_one([10.0, 20.0, 30.0, 25.0][t % 4] + t % 3)
    >>> path = model.forecast()
    >>> len(path), path.guaranteed, path.intervals(0.1).shape, path.band(0.1).shape
    (2, 'long-run error rate', (2, 2), (2, 2))
    >>> [5 < step.median < 15 for step in path]
    [True, False]
    """

    guaranteed = LONG_RUN

    def __init__(self, quantiles: Floats, ends: Floats, bands: Floats, levels: tuple[float, ...]) -> None:
        for one in (quantiles, ends, bands):
            one.setflags(write=False)
        self.quantiles, self.ends, self.bands, self.levels = quantiles, ends, bands, levels

    def __len__(self) -> int:
        return len(self.quantiles)

    def __getitem__(self, h: int) -> Step:
        h = integer("h", h, 1)
        if h > len(self):
            raise IndexError(f"h must be a number of steps from 1 to {len(self)}, got {h}")
        return Step(self.quantiles[h - 1], self.ends[h - 1], self.levels)

    def __iter__(self) -> Iterator[Step]:
        return (self[h] for h in range(1, len(self) + 1))

    @property
    def medians(self) -> Floats:
        """(H,) medians."""
        return self.quantiles[:, len(LEVELS) // 2].copy()

    def intervals(self, epsilon: float) -> Floats:
        """Return the (H, 2) ends of the intervals of each step: see `Step.interval`."""
        return np.array([step.interval(epsilon) for step in self]).reshape(-1, 2)

    def band(self, epsilon: float) -> Floats:
        """Return the (H, 2) ends of the band that some value of the path leaves in a share `epsilon` of all times.

        It is about all steps of the model's horizon, even if fewer were asked for.

        Parameters
        ----------
        epsilon : float in [0, 1]
            As for `Step.interval`.
        """
        k = bisect_right(self.levels, significance(epsilon) * (1 + 1e-12)) - 1
        return np.tile(LINE, (len(self), 1)) if k < 0 else self.bands[k].copy()

    def __repr__(self) -> str:
        first, last = self[1], self[len(self)]
        said = [f"{one.median:.4g} [{one.interval(0.1)[0]:.4g}, {one.interval(0.1)[1]:.4g}]" for one in (first, last)]
        return f"Path({len(self)} steps: {' to '.join(said)} at 0.1)"

    def plain(self) -> dict[str, Any]:
        """Return medians, intervals and bands as JSON: None for ends that are not finite."""

        def told(ends: Floats) -> Any:
            return [[float(end) if math.isfinite(end) else None for end in pair] for pair in ends]

        return {
            "median": [float(one) if math.isfinite(one) else None for one in self.medians],
            "intervals": {str(level): told(self.ends[:, k]) for k, level in enumerate(self.levels)},
            "bands": {str(level): told(self.bands[k]) for k, level in enumerate(self.levels)},
            "guaranteed": self.guaranteed,
        }  # fmt: skip
