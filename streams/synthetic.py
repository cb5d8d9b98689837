"""Synthetic streams, to try alarms on: label probabilities are known, and streams can break at a known step.

Two streams do not change: `gaussians` and, with nominal features, `categorical`. A stream breaks where labels change
their meaning (`flip_labels`), where another source takes over at once (`change_point`) or little by little (`gradual`),
where the classes become more or less frequent (`label_shift`), or come and go (`seasonal`), where other objects come
(`covariate_shift`), where a sensor no longer moves (`stuck_sensor`) or counts in another unit (`unit_change`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from streams.checks import Floats, Label, real_number, size, whole_number
from streams.example import Stream
from streams.sparse import stacked

# Others draw from numpy.random.default_rng(seed) too, often with the same seed. A stream made of the
# very numbers that later shuffle it, or break ties between its p-values, would not be independent of them.
DRAW, SELECT = 0x9A055, 0x5E1EC7


class Synthetic(Stream):
    """A stream whose label probabilities are known.

    Made by `gaussians` and `categorical`; the functions that break a stream keep what is known, and so do `shuffle`,
    `take` and `drop`.

    Parameters
    ----------
    X, y, classes, features, name, scaling
        As for `Stream`.
    probabilities : (n, c) float64
        Row i: P(y | x) of example i, in class order. Taken over unchecked and made read-only.

    Examples
    --------
    >>> stream = gaussians(100, classes=2)
    >>> stream.take(3).probabilities.shape
    (3, 2)
    """

    facts = ("probabilities",)
    probabilities: Floats


def gaussians(
    n: int,
    classes: int = 3,
    *,
    features: int = 2,
    spread: float = 0.5,
    proportions: Sequence[float] | None = None,
    turn: float = 0.0,
    seed: int = 0,
) -> Synthetic:
    """Return independent Gaussian examples: a class drawn by its proportion, an object around its class centre.

    The centres lie on the unit circle of the first two features, at equal angles. Objects are normal about
    them with the same deviation in every feature, so P(y | x) is known by Bayes' rule.

    Parameters
    ----------
    n : int >= 1
        Number of examples.
    classes : int >= 2, default 3
        Number of classes; the labels are 0, 1, ...
    features : int >= 2, default 2
        All but the first two are noise.
    spread : float > 0, default 0.5
        Standard deviation of each feature about the centre. The smaller, the easier.
    proportions : sequence of positive floats, one for each class, optional
        Their sum may be any; equal by default.
    turn : float, default 0
        Degrees by which the centres are turned: another concept on much the same objects, for `change_point`.
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> stream = gaussians(200, seed=1)
    >>> stream
    <Stream 'gaussians': 200 examples, 2 features, 3 classes>
    >>> bool(np.allclose(stream.probabilities.sum(axis=1), 1))
    True
    """
    n, classes, features = size("n", n, 1), size("classes", classes, 2), size("features", features, 2)
    seed = whole_number("seed", seed, 0)
    spread, turn = real_number("spread", spread), real_number("turn", turn)
    if spread <= 0:
        raise ValueError(f"spread must be positive, got {spread!r}")
    share = _shares(proportions if proportions is not None else [1.0] * classes, tuple(range(classes)))
    if (share == 0).any():
        raise ValueError(f"proportions must be positive, got {proportions!r}")
    rng = np.random.default_rng([seed, DRAW])
    angles = 2 * np.pi * np.arange(classes) / classes + np.deg2rad(turn)
    centres = np.zeros((classes, features))
    centres[:, 0], centres[:, 1] = np.cos(angles), np.sin(angles)
    y = rng.choice(classes, n, p=share)
    with np.errstate(over="ignore"):
        X = centres[y] + spread * rng.normal(size=(n, features))
    if not np.isfinite(X).all():
        raise ValueError(f"spread must be so small that all features are finite, got {spread!r}")
    # The other features carry no information. Divide first: the square of a spread may overflow or vanish.
    with np.errstate(over="ignore"):
        squares = (((X[:, None, :2] - centres[:, :2]) / spread) ** 2).sum(axis=2)
    logs = np.log(share) - squares / 2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    names = [f"x{j}" for j in range(features)]
    return Synthetic(X, y.astype(np.int64), range(classes), names, "gaussians", probabilities=probabilities)


def flip_labels(stream: Stream, after: int) -> Stream:
    """Return the stream with every label after the first `after` examples replaced by the next class.

    The last class becomes the first; of two classes each becomes the other. Objects stay as they are.

    Parameters
    ----------
    stream : Stream
    after : int from 0 to len(stream)

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> stream = gaussians(5, classes=2)
    >>> flip_labels(stream, after=3).y == stream.y
    array([ True,  True,  True, False, False])
    """
    after = _step(stream, after)
    y = stream.y.copy()
    y[after:] = (y[after:] + 1) % len(stream.classes)
    probabilities = _known(stream)
    if probabilities is not None:
        probabilities[after:] = np.roll(probabilities[after:], 1, axis=1)
    return _with(stream, stream.X, y, probabilities, f".flip_labels({after})")


def change_point(before: Stream, then: Stream, after: int) -> Stream:
    """Return the first `after` examples of one stream, followed by all of another.

    Parameters
    ----------
    before, then : Stream
        Of the same classes, in the same order, and the same features.
    after : int from 0 to len(before)

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> stream = change_point(gaussians(1000), gaussians(500, turn=60, seed=1), after=600)
    >>> stream
    <Stream 'gaussians'.change_point(600): 1100 examples, 2 features, 3 classes>
    """
    after = _step(before, after, "before")
    if not isinstance(then, Stream):
        raise TypeError(f"then must be a Stream, got {then!r}")
    for name in ("classes", "features"):
        if getattr(before, name) != getattr(then, name):
            raise ValueError(
                f"then must have the {name} of before, {getattr(before, name)!r}, got {getattr(then, name)!r}"
            )
    X, y = stacked(before.X[:after], then.X), np.concatenate([before.y[:after], then.y])
    first, second = _known(before), _known(then)
    known = None if first is None or second is None else np.concatenate([first[:after], second])
    return _with(before, X, y, known, f".change_point({after})")


def label_shift(
    stream: Stream, after: int, proportions: Sequence[float] | Mapping[Label, float], *, seed: int = 0
) -> Stream:
    """Return the stream with other class proportions after the first `after` examples.

    Examples after that are kept or left out at random, by their label alone: P(x | y) stays the same, and the
    stream gets shorter. An example of class k is kept with a probability proportional to the wanted proportion
    of k divided by its frequency in the whole stream, as large as possible. The proportions are met on average.
    For a `Synthetic` stream the new P(y | x) is known by Bayes' rule.

    Parameters
    ----------
    stream : Stream
    after : int from 0 to len(stream)
    proportions : sequence of c floats >= 0 in class order, or mapping from label to float
        Their sum may be any but 0; a label that the mapping leaves out gets 0.
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or a class is asked for that never occurs.

    Examples
    --------
    >>> shifted = label_shift(gaussians(3000), after=1000, proportions=(8, 1, 1))
    >>> bool(0.75 < (shifted.drop(1000).y == 0).mean() < 0.85)
    True
    """
    after, seed = _step(stream, after), whole_number("seed", seed, 0)
    share = _shares(proportions, stream.classes)
    count = np.bincount(stream.y, minlength=len(stream.classes))
    for label, wanted, number in zip(stream.classes, share.tolist(), count.tolist(), strict=True):
        if wanted > 0 and number == 0:
            raise ValueError(f"proportions must be 0 for a class that never occurs, got {wanted!r} for {label!r}")
    keep = np.divide(share, count, out=np.zeros(len(share)), where=count > 0)
    keep /= keep.max()
    kept = np.random.default_rng([seed, SELECT]).random(len(stream)) < keep[stream.y]
    kept[:after] = True
    if not kept.any():
        raise ValueError(f"proportions must leave one of the {len(stream)} examples, got {proportions!r}")
    probabilities = _known(stream)
    if probabilities is not None:
        probabilities = probabilities[kept]
        probabilities[after:] *= keep
        probabilities[after:] /= probabilities[after:].sum(axis=1, keepdims=True)
    return _with(stream, stream.X[kept], stream.y[kept], probabilities, f".label_shift({after})")


def gradual(before: Stream, then: Stream, after: int, over: int, *, seed: int = 0) -> Stream:
    """Return one stream that becomes another: step by step more of its examples are those of `then` at their place.

    Parameters
    ----------
    before, then : Stream
        Of the same length, classes, in the same order, and features.
    after : int from 0 to len(before)
        Number of examples before the change begins.
    over : int >= 1
        Number of further ones after which all come from `then`.
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> before, then = gaussians(300), gaussians(300, turn=60, seed=1)
    >>> stream = gradual(before, then, after=100, over=100)
    >>> bool((stream.X[:100] == before.X[:100]).all()), bool((stream.X[200:] == then.X[200:]).all())
    (True, True)
    """
    after, both = _step(before, after, "before"), change_point(before, then, len(before))
    if len(then) != len(before):
        raise ValueError(f"then must have the {len(before)} examples of before, got {len(then)}")
    draws = np.random.default_rng([whole_number("seed", seed, 0), SELECT]).random(len(before))
    late = draws < (np.arange(len(before)) - after) / size("over", over, 1)
    rows = np.where(late, len(before) + np.arange(len(before)), np.arange(len(before)))
    known = _known(both)
    known = None if known is None else known[rows]
    return _with(before, both.X[rows], both.y[rows], known, f".gradual({after})")


def covariate_shift(stream: Stream, after: int, column: int = 0, strength: float = 2.0, *, seed: int = 0) -> Stream:
    """Return the stream with other objects after the first `after`: P(y | x) stays, and the stream gets shorter.

    Examples after that are kept with the probability 1 / (1 + exp(-strength x_column)).

    Parameters
    ----------
    stream : Stream
    after : int from 0 to len(stream)
    column : int >= 0, default 0
    strength : float, default 2
        Of a negative one, small values become frequent.
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> shifted = covariate_shift(gaussians(3000), after=1000)
    >>> bool(shifted.drop(1000).X[:, 0].mean() > 0.2)
    True
    """
    after, column, strength = _step(stream, after), _column(stream, column), real_number("strength", strength)
    with np.errstate(over="ignore"):
        keep = 1 / (1 + np.exp(-np.clip(strength * stream.X[:, column], -500, 500)))
    kept = np.random.default_rng([whole_number("seed", seed, 0), SELECT]).random(len(stream)) < keep
    kept[:after] = True
    known = _known(stream)
    return _with(
        stream, stream.X[kept], stream.y[kept], None if known is None else known[kept], f".covariate_shift({after})"
    )


def stuck_sensor(stream: Stream, after: int, column: int = 0) -> Stream:
    """Return the stream with the value of a column after the first `after` examples as it was in the last of them.

    What it was is lost, so no P(y | x) is known of the stream.

    Parameters
    ----------
    stream : Stream
    after : int from 1 to len(stream)
    column : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> float(stuck_sensor(gaussians(5), after=3).X[2:, 0].std())
    0.0
    """
    after, column, X = _step(stream, after), _column(stream, column), np.array(stream.X)
    X[after:, column] = X[max(after - 1, 0), column]
    return _with(stream, X, stream.y, None, f".stuck_sensor({after})")


def unit_change(stream: Stream, after: int, column: int = 0, factor: float = 2.54) -> Stream:
    """Return the stream with a column multiplied by a factor after the first `after` examples.

    Parameters
    ----------
    stream : Stream
    after : int from 0 to len(stream)
    column : int >= 0, default 0
    factor : float, default 2.54
        Centimetres in an inch.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> stream = gaussians(5)
    >>> (unit_change(stream, after=3, factor=2.0).X[:, 0] / stream.X[:, 0]).tolist()
    [1.0, 1.0, 1.0, 2.0, 2.0]
    """
    after, column, X = _step(stream, after), _column(stream, column), np.array(stream.X)
    if real_number("factor", factor) == 0:
        raise ValueError("factor must not be 0: the column would be lost")
    X[after:, column] *= factor
    return _with(stream, X, stream.y, _known(stream), f".unit_change({after})")


def seasonal(stream: Stream, after: int, period: int = 500, strength: float = 0.8, *, seed: int = 0) -> Stream:
    """Return the stream where, after the first `after` examples, the first class comes and goes; it gets shorter.

    Examples are kept or left out by their label alone: of the first class with a probability that goes up and down as a
    sine over `period` examples, of the others with one that goes down and up.

    Parameters
    ----------
    stream : Stream
    after : int from 0 to len(stream)
    period : int >= 2, default 500
    strength : float from 0 to 1, default 0.8
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> seasonal(gaussians(3000), after=1000)
    <Stream 'gaussians'.seasonal(1000): 2016 examples, 2 features, 3 classes>
    """
    after, strength = _step(stream, after), real_number("strength", strength, 0, 1)
    wave = strength * np.sin(2 * np.pi * (np.arange(len(stream)) - after) / size("period", period, 2))
    keep = (1 + np.where(np.arange(len(stream.classes)) == 0, wave[:, None], -wave[:, None])) / 2  # by step and class
    keep[:after] = 0.5
    known = _known(stream)
    if known is not None:
        known *= keep
        known /= known.sum(axis=1, keepdims=True)
        known[:after] = stream.probabilities[:after]  # type: ignore[attr-defined]
    kept = np.random.default_rng([whole_number("seed", seed, 0), SELECT]).random(len(stream))
    kept = kept < keep[np.arange(len(stream)), stream.y]
    kept[:after] = True
    known = None if known is None else known[kept]
    return _with(stream, stream.X[kept], stream.y[kept], known, f".seasonal({after})")


def _column(stream: Stream, column: Any) -> int:
    """Return the position of a column, or say what is wrong."""
    found = whole_number("column", column, 0)
    if found >= len(stream.features):
        raise ValueError(f"column must be one of the {len(stream.features)} of the stream, got {column!r}")
    return found


def _known(stream: Stream) -> Floats | None:
    """Return a copy of the probabilities of a synthetic stream, None for any other stream."""
    return stream.probabilities.copy() if isinstance(stream, Synthetic) else None


def _with(stream: Stream, X: Any, y: Any, probabilities: Floats | None, step: str) -> Stream:
    """Return the stream with other examples and one step more in its name."""
    if probabilities is None:
        return stream.altered(X, y, step)
    return stream.altered(X, y, step, Synthetic, probabilities=probabilities)


def _step(stream: Stream, after: int, name: str = "stream") -> int:
    """Return `after` as a step of the stream, or say what is wrong."""
    if not isinstance(stream, Stream):
        raise TypeError(f"{name} must be a Stream, got {stream!r}")
    after = whole_number("after", after, 0)
    if after > len(stream):
        raise ValueError(f"after must be at most the {len(stream)} examples of {name}, got {after}")
    return after


def _shares(proportions: Any, classes: tuple[Label, ...]) -> Floats:
    """Return (c,) proportions with sum 1, or say what is wrong with them."""
    if isinstance(proportions, Mapping):
        strange = [label for label in proportions if label not in classes]
        if strange:
            raise ValueError(f"proportions must be of the classes {classes!r}, got {strange[0]!r}")
        values = [proportions.get(label, 0.0) for label in classes]
    elif isinstance(proportions, str) or not isinstance(proportions, Sequence | np.ndarray):
        raise TypeError(f"proportions must be a sequence of {len(classes)} numbers or a mapping, got {proportions!r}")
    else:
        values = list(proportions)
    if len(values) != len(classes):
        raise ValueError(f"proportions must hold one number for each of {len(classes)} classes, got {len(values)}")
    share = np.array([real_number("proportions", value) for value in values])
    if (share < 0).any() or not share.sum() > 0 or not isfinite(share.sum()):
        raise ValueError(f"proportions must be nonnegative with a positive sum, got {proportions!r}")
    return share / share.sum()


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
