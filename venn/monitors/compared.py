"""Two models on the same examples: how much better one is, with bounds that hold whenever one looks."""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from venn.monitors.checks import numbers
from venn.monitors.sequences import StitchedBound
from venn.parameters import fraction


class Compared(NamedTuple):
    """The difference of the mean log losses of two models, that of the first minus that of the second, in nats.

    `str` says in one sentence which is better.
    """

    difference: float  #: below 0: the first model is better
    lower: float
    upper: float
    n: int  #: number of examples
    level: float

    @property
    def better(self) -> str:
        """The better model, "a" or "b"; empty while the bounds hold 0."""
        return "a" if self.upper < 0 else "b" if self.lower > 0 else ""

    def __str__(self) -> str:
        found = f"{self.better} is better" if self.better else "neither is known to be better"
        bounds = f"{self.difference:+.3f} ({self.lower:+.3f} to {self.upper:+.3f})"
        return f"{found}: log loss of a minus that of b {bounds} nats over {self.n} examples"


def compare(a: Any, b: Any, *, level: float = 0.05, least: float = 0.001) -> Compared:
    """Compare the log losses of two models on the same examples, in pairs, at any time and again at any later time.

    Theorem. Let d_i be the difference of the two losses of example i, given the past. With probability at least
    1 - `level`, the mean of the expected d_1, ..., d_n lies between the bounds for all n at once. Nothing is assumed of
    the examples, and models may go on learning: one may look after every example, and stop when the bounds say enough.
    Pairs make the bounds narrow, as what is hard for both models cancels.

    Parameters
    ----------
    a, b : (n,) probabilities
        What each model gave to the true label of each example before it came, n >= 1. Of a `Record` that is
        `record.outcomes(name).probability`.
    level : float in (0, 1), default 0.05
        Probability that the bounds are ever wrong.
    least : float in (0, 1), default 0.001
        Smaller probabilities count as this, so that a loss is at most ln(1 / least): bounds need losses that have a
        bound themselves. A larger one makes the bounds narrower, and forgives larger mistakes.

    Returns
    -------
    Compared
        `difference`, `lower`, `upper`, `n`, and `better`: "a", "b" or nothing. `str` gives a sentence.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from venn.monitors import compare
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 4000)  # the true probability of a "yes"
    >>> yes = rng.random(4000) < p
    >>> knows, guesses = np.where(yes, p, 1 - p), np.full(4000, 0.5)
    >>> print(compare(knows, guesses))
    a is better: log loss of a minus that of b ...
    >>> compare(knows[:50], guesses[:50]).better
    ''
    """
    level, smallest = fraction("level", level), fraction("least", least)
    first, second = numbers("a", a, 0.0, True), numbers("b", b, 0.0, True)
    if len(first) != len(second) or not len(first):
        raise ValueError(f"a and b must be of the same examples, at least one, got {len(first)} and {len(second)}")
    most = -log(smallest)
    losses = [-np.log(np.maximum(p, smallest)) for p in (first, second)]
    bound = StitchedBound(level, empirical=True)
    bound.update_many(np.clip((losses[0] - losses[1] + most) / (2 * most), 0.0, 1.0))  # by rounding, just outside
    lower, upper = (2 * most * end - most for end in (bound.lower, bound.upper))
    return Compared(float((losses[0] - losses[1]).mean()), lower, upper, len(first), level)
