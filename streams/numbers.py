"""A synthetic stream of numbers whose conditional distributions are known, to test predictions against."""

from __future__ import annotations

import math

import numpy as np

from streams.checks import Floats, real_number, size, whole_number
from streams.example import Stream
from streams.synthetic import DRAW


class Waves(Stream):
    """A stream of numbers whose labels are normal, with known means and deviations; made by `waves`.

    Parameters
    ----------
    X, y, classes, features, name, scaling
        As for `Stream`; there are no classes.
    means, deviations : (n,) float64
        Of the label of each example, given its object. Taken over unchecked and made read-only.

    Examples
    --------
    >>> stream = waves(100)
    >>> round(stream.cdf(3, stream.means[3]), 3), stream.take(5).means.shape
    (0.5, (5,))
    """

    facts = ("means", "deviations")
    means: Floats
    deviations: Floats

    def cdf(self, i: int, y: float) -> float:
        """Return the probability that the label of example i is at most y, given its object."""
        return 0.5 * math.erfc((self.means[i] - y) / self.deviations[i] / math.sqrt(2))


def waves(n: int, *, features: int = 2, noise: float = 0.3, seed: int = 0) -> Waves:
    """Return independent examples: objects uniform on [-2, 2], a sine of the first feature, noise that grows with it.

    The label is normal with mean sin(2 x_0) + x_1 / 2 and deviation noise (1 + |x_0|). Other features are noise.

    Parameters
    ----------
    n : int >= 1
    features : int >= 2, default 2
    noise : float > 0, default 0.3
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> waves(200, seed=1)
    <Stream 'waves': 200 examples, 2 features, numbers>
    """
    n, features, seed = size("n", n, 1), size("features", features, 2), whole_number("seed", seed, 0)
    noise = real_number("noise", noise)
    if noise <= 0:
        raise ValueError(f"noise must be positive, got {noise!r}")
    rng = np.random.default_rng([seed, DRAW])
    X = rng.uniform(-2, 2, (n, features))
    means, deviations = np.sin(2 * X[:, 0]) + X[:, 1] / 2, noise * (1 + np.abs(X[:, 0]))
    y = means + deviations * rng.normal(size=n)
    names = [f"x{j}" for j in range(features)]
    return Waves(X, y, (), names, "waves", means=means, deviations=deviations)
