"""Nonconformity measures on probabilities: what a scorer gives to other labels, or to those ranked before this one."""

from __future__ import annotations

import functools

import numpy as np

from venn.machines.digests import digests_of
from venn.nonconformity.scores import ScoreMeasure
from venn.parameters import flag, integer, not_negative, positive
from venn.prediction import Bools, Floats, Integers
from venn.saved import component, param
from venn.smoothing import Smoothing
from venn.taxonomies.scores import on_grid

SUM = 1e-3  # how far from 1 the sum of probabilities may be that were rounded, as a `FrozenScorer` takes them
PLACE = 1 << 60  # of the random numbers of measures: no stream is so long that it uses them for its steps


def probabilities_of(scores: Floats, temperature: float) -> Floats:
    """Return (n, c) probabilities: a row of scores that is a distribution unchanged, any other by softmax.

    Each row by itself, so that all examples are treated alike.

    Examples
    --------
    >>> probabilities_of(np.array([[0.2, 0.8], [1.0, 1.0]]), 1.0)
    array([[0.2, 0.8],
           [0.5, 0.5]])
    """
    given = (scores >= 0).all(axis=1) & (np.abs(scores.sum(axis=1) - 1) <= SUM)
    with np.errstate(over="ignore", invalid="ignore"):
        soft = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    soft /= soft.sum(axis=1, keepdims=True)
    return np.where(given[:, None], scores, soft)


@functools.lru_cache(maxsize=64)
def _numbers(seed: int) -> Smoothing:
    return Smoothing(seed)


@component
class OnProbabilities(ScoreMeasure):
    """Base of the measures here: probabilities of own and other classes, and a random number for each object."""

    pointwise = True

    leave_one_out: bool = param(flag, default=True, kw_only=True)
    temperature: float = param(positive, default=1.0, kw_only=True)

    @property
    def of_probabilities(self) -> bool:  # type: ignore[override]
        """Whether probabilities are read where there are any: a temperature is one of decision values."""
        return self.temperature == 1

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) nonconformity."""
        p = probabilities_of(scores, self.temperature)
        steps = on_grid(p)  # probabilities that differ by rounding only are equal
        own = np.take_along_axis(steps, codes[:, None], axis=1)
        return self._of_shares(p, p[np.arange(len(codes)), codes], steps > own, steps)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) nonconformity.

        Parameters
        ----------
        p : (n, c) float64
            Probabilities.
        own : (n,) float64
            Of the own class.
        above : (n, c) bool
            Classes of larger probability than the own.
        steps : (n, c) float64
            Probabilities in steps of 1e-6, for `_number`.
        """
        raise NotImplementedError

    def _number(self, seed: int, steps: Floats) -> Floats:
        """Return (n,) random numbers in [0, 1), which follow from the seed and the row of probabilities alone."""
        return _numbers(seed).of(PLACE, digests_of(steps))


@component
class LAC(OnProbabilities):
    """One minus the probability of the own class: the smallest sets on average, empty ones where nothing is probable.

    Parameters
    ----------
    leave_one_out : bool, default True
        Read scores of machines without the example. Inductive predictors ignore it.
    temperature : float > 0, default 1
        A row of scores that is a distribution (as of a `FrozenScorer` with `predict_proba`) is taken as it is; any
        other goes through softmax, divided by the temperature. The same holds of all measures on probabilities.

    Raises
    ------
    TypeError
        `leave_one_out` is neither True nor False.
    ValueError
        The temperature is not a finite number above 0.

    References
    ----------
    Sadinle, Lei & Wasserman (2019), "Least ambiguous set-valued classifiers with bounded error levels".

    Examples
    --------
    >>> LAC().values(np.array([[0.7, 0.2, 0.1]] * 2), np.array([0, 2])).round(2)
    array([0.3, 0.9])
    """

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) probabilities of the other classes."""
        return 1.0 - own


@component
class APS(OnProbabilities):
    """The probability of all classes down to the own one: sets whose size adapts to how hard an object is.

    A = sum of the probabilities above the own, plus (1 - u) of the own. u in [0, 1) is a random number of the object:
    it follows from the seed and the object's probabilities, so that the measure is a fixed function of an example, as
    validity requires, and an object asked about again has the same. Classes of equal probability are not above each
    other.

    Parameters
    ----------
    leave_one_out : bool, default True
    temperature : float > 0, default 1
        As for `LAC`.
    randomised : bool, default True
        False: u = 0; sets are then larger.
    seed : int >= 0, default 0
        Of u.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Romano, Sesia & Candès (2020), "Classification with valid and adaptive coverage".

    Examples
    --------
    >>> APS(randomised=False).values(np.array([[0.7, 0.2, 0.1]] * 3), np.array([0, 1, 2])).round(2)
    array([0.7, 0.9, 1. ])
    """

    randomised: bool = param(flag, default=True, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) masses down to the own class."""
        mass: Floats = (p * above).sum(axis=1) + own
        if self.randomised:
            mass -= self._number(self.seed, steps) * own
        return mass


@component
class RAPS(APS):
    """`APS` with a penalty for ranks: sets that are large for the sake of many improbable classes become smaller.

    A = APS + weight * max(0, rank - free), where rank is 1 for the most probable class.

    Parameters
    ----------
    weight : float >= 0, default 0.1
    free : int >= 0, default 1
        Number of first ranks without a penalty.
    leave_one_out : bool, default True
    temperature : float > 0, default 1
    randomised : bool, default True
    seed : int >= 0, default 0
        As for `APS`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Angelopoulos, Bates, Malik & Jordan (2021), "Uncertainty sets for image classifiers using conformal prediction".

    Examples
    --------
    >>> RAPS(0.5, randomised=False).values(np.array([[0.7, 0.2, 0.1]] * 3), np.array([0, 1, 2])).round(2)
    array([0.7, 1.4, 2. ])
    """

    weight: float = param(not_negative, default=0.1)
    free: int = param(integer, 0, default=1)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) masses with their penalties."""
        rank = 1 + above.sum(axis=1)
        penalty: Floats = self.weight * np.maximum(0, rank - self.free)
        return super()._of_shares(p, own, above, steps) + penalty
