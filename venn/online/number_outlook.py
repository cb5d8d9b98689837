"""What a forecaster says of numbers: a distribution, and all that is read off it, of one object or of many."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from venn.online.outlook import FORECAST, Parts
from venn.prediction import LEVELS, Floats

DISTRIBUTION = "distribution"


class NumberOutlook(Parts):
    """What a `Forecaster` of numbers says of one object: each of its predictors' predictions by name.

    Mean, median, quantiles and probabilities are those of "forecast", another predictor than "distribution": it mixes
    several methods by their past losses. So its median may lie outside a narrow interval: it is often the sharper of
    the two, while only intervals and p-values are guaranteed. `outlook["distribution"].quantile(q)` is guaranteed, too.

    Attributes
    ----------
    mean, median : float
        Of the forecast; 0 before the first example.
    label : float
        The median.
    guaranteed : dict of str to str
        What is proved of each part: see docs/guarantees.md for the words.

    Examples
    --------
    >>> import streams, venn
    >>> model = venn.Forecaster(float)
    >>> for x, y in streams.waves(60, seed=0):
    ...     model.learn_one(x, y)
    >>> outlook = model.predict_one([0.3, 0.5])
    >>> lower, upper = outlook.interval(0.2)
    >>> lower < outlook.median < upper, outlook.guaranteed
    (True, {'distribution': 'error rate', 'forecast': 'CRPS'})
    """

    @property
    def mean(self) -> float:
        """The mean of the forecast."""
        return self[FORECAST].mean

    @property
    def median(self) -> float:
        """The median of the forecast."""
        return self[FORECAST].label

    @property
    def label(self) -> float:
        """The median."""
        return self.median

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the interval that misses the label with probability at most `epsilon`; its ends may be infinite.

        Both ends belong to it: where labels are tied it may miss less often.
        """
        return self[DISTRIBUTION].interval(epsilon)

    def quantile(self, q: float) -> float:
        """Return the number that the label exceeds with probability 1 - q by the forecast."""
        return self[FORECAST].quantile(q)

    def cdf(self, y: float) -> float:
        """Return the probability of labels up to `y`, that of `y` itself included."""
        return self[FORECAST].cdf(y)

    def p_value(self, y: float) -> float:
        """Return a number that is uniform on [0, 1] at the true label; small where that is below what was expected."""
        return self[DISTRIBUTION].p_value(y)

    def crps(self, y: float) -> float:
        """Return the continuous ranked probability score of the forecast at the true label: smaller is better."""
        return self[FORECAST].crps(y)

    def to_dict(self) -> dict[str, Any]:
        """Return all that is said as plain numbers, for JSON: None for an infinite end of an interval."""
        ends = {str(level): [end if np.isfinite(end) else None for end in self.interval(level)] for level in LEVELS}
        return {"mean": self.mean, "median": self.median, "intervals": ends, "guaranteed": self.guaranteed}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = [("mean", f"{self.mean:.6g}"), ("median", f"{self.median:.6g}")]
        for level in LEVELS:
            lower, upper = self.interval(level)
            rows.append((f"interval at {level:g}", f"{lower:.6g} to {upper:.6g}"))
        told = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
        return f"<table><tbody>{told}</tbody></table>"

    def __repr__(self) -> str:
        lower, upper = self.interval(0.1)
        return f"NumberOutlook(median {self.median:.4g}, mean {self.mean:.4g}, {lower:.4g} to {upper:.4g} at 0.1)"


class NumberOutlooks(Parts):
    """What a `Forecaster` of numbers says of many objects, in arrays.

    Attributes
    ----------
    mean, median, labels : (n,) float64
        The labels are the medians.
    guaranteed : dict of str to str
        What is proved of each part.

    Examples
    --------
    >>> import streams, venn
    >>> model = venn.Forecaster(float)
    >>> for x, y in streams.waves(60, seed=0):
    ...     model.learn_one(x, y)
    >>> outlooks = model.predict_many([[0.3, 0.5], [0.9, 0.1]])
    >>> outlooks.median.shape, outlooks.interval(0.2).shape, outlooks.one(1).median in outlooks.labels
    ((2,), (2, 2), True)
    """

    @property
    def guaranteed(self) -> dict[str, str]:
        """What is proved of each part."""
        return self.one(0).guaranteed if len(self[DISTRIBUTION]) else {}

    def one(self, i: int) -> NumberOutlook:
        """Return the outlook for object i."""
        return NumberOutlook({name: block[i] for name, block in self.items()})

    @property
    def mean(self) -> Floats:
        """(n,) means of the forecasts."""
        return np.array([one.mean for one in self[FORECAST]])

    @property
    def median(self) -> Floats:
        """(n,) medians of the forecasts."""
        return np.array([one.label for one in self[FORECAST]])

    @property
    def labels(self) -> list[float]:
        """The medians."""
        return self.median.tolist()

    def interval(self, epsilon: float) -> Floats:
        """Return the (n, 2) ends of the intervals that miss with probability at most `epsilon`."""
        block: Any = self[DISTRIBUTION]
        if hasattr(block, "interval"):  # of all at once
            found: Floats = block.interval(epsilon)
            return found.reshape(-1, 2)
        return np.array([one.interval(epsilon) for one in block]).reshape(-1, 2)

    def quantile(self, q: float) -> Floats:
        """Return the (n,) quantiles at q."""
        return np.array([one.quantile(q) for one in self[FORECAST]])

    def cdf(self, y: float) -> Floats:
        """Return the (n,) probabilities of labels up to `y`."""
        return np.array([one.cdf(y) for one in self[FORECAST]])

    def __repr__(self) -> str:
        return f"NumberOutlooks({len(self[DISTRIBUTION])} objects)"
