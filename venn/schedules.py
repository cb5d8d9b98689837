"""Schedules: when an inductive predictor trains, and which examples train it, which calibrate it.

"Per step" below means: the prediction at any one step is valid, E[1{y = k} | row of y] = row of y at k,
under exchangeability. "Online" means: the same holds for their sum over a stream. With D_n = 1{y_n = k} - P_n[y_n, k],
the departures D_1, D_2, ... of one period, from one training to the next, are martingale differences in reversed
time. Hence their sum has variance sum E[P_n (1 - P_n)], and |sum over N steps| >= sqrt(N ln(2 / delta) / 2) has
probability at most delta, for a number N that is fixed beforehand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from venn.parameters import Parameters, above_one, fraction, instance, integer, optional
from venn.prediction import Bools
from venn.saved import component, own, param

WITHIN = "exact within a period"
MOST = 10**9  # examples; trainings after so many are not counted
FIRST = own(lambda schedule: schedule.first)

__all__ = ["FixedCalibration", "FreshSplit", "NoTraining", "Prefix", "PrefixRestart", "RandomAssignment"]


class Schedule(Parameters):
    """Decides when to train, and which examples train the scorer or calibrate it.

    No decision may depend on the examples themselves, only on their number and on the schedule's own
    random draws: this makes predictions valid. A subclass gives the methods.

    Attributes
    ----------
    online : str
        The theorem about sums of departures over a stream of exchangeable examples. "exact": the variance and
        the bound at the head of this module hold for the whole stream. "exact within a period": they hold for
        the steps between two trainings, not for the sum over several such periods. "not proved": no theorem,
        and no counterexample known. "broken": the variance is larger than that, and the bound fails.
    alike : bool
        Whether every example calibrates, whatever its place in the stream: calibrated parts can then be merged.
    seed : int
        Of the generator that the two methods below draw from.
    """

    online = "not proved"
    alike = False
    seed = 0

    @property
    def trains(self) -> bool:
        """Whether there is a machine to train; a `FrozenScorer` needs a schedule without training."""
        return True

    def next_training(self, n: int) -> int | None:
        """Return the first number of examples above `n` at which to train; None if there is none."""
        raise NotImplementedError

    def settled(self, time: int) -> int:
        """Return after how many examples those are known that will train at `time`: the first so many, if fewer."""
        return time

    def calibrates(self, n: int, count: int, rng: np.random.Generator) -> Bools:
        """Return, for the `count` examples after the first `n`, which calibrate the scorer at once."""
        return np.array([True]) if count == 1 else np.ones(count, np.bool_)  # the first is faster

    def split(self, calibrates: Bools, rng: np.random.Generator) -> Bools:
        """Return, at a training, which of the examples so far calibrate the new scorer; all others train it.

        Parameters
        ----------
        calibrates : (n,) bool
            What the method `calibrates` returned for them; by default it is returned here.
        rng : Generator
        """
        return calibrates


def periods(schedule: Schedule, n: int) -> tuple[int, ...]:
    """Return the trainings after n examples across which nothing is proved of sums over a stream: perhaps none.

    Examples
    --------
    >>> schedule = Prefix(first=1000, last=3000)
    >>> periods(schedule, 0), periods(schedule, 1500), periods(PrefixRestart(), 0)
    ((1000, 2000), (2000,), ())
    """
    found: list[int] = []
    time = schedule.next_training(n) if schedule.online == WITHIN else None
    while time is not None and time <= MOST:
        found.append(time)
        time = schedule.next_training(time)
    return tuple(found)


def checked_schedule(name: str, schedule: Any) -> Schedule:
    """Return the schedule, or say what is wrong with it."""
    return instance(name, schedule, Schedule, "a schedule object, such as PrefixRestart()")


class Periods(Schedule):
    """Base of schedules that train at growing numbers of examples: first, first * growth, and so on."""

    first: int
    last: int | None
    growth: float = 2.0

    def next_training(self, n: int) -> int | None:
        """Return the first number of examples above `n` at which to train; None if there is none."""
        time = self.first
        while time <= n:
            grown = time * self.growth
            if math.isinf(grown):
                return None
            # At least one more, in case the growth of a small number rounds to nothing.
            time = max(time + 1, math.floor(grown))
        return None if self.last is not None and time > self.last else time


@component
class PrefixRestart(Periods):
    """Trains on everything so far, at times fixed beforehand, and calibrates on the examples after that.

    Per step: a theorem. Online: a theorem. Between two trainings this is a Venn predictor over the period's own
    examples, with a scorer fixed by the past; the calibration set starts empty at each training, so no example is ever
    used in two ways. Given the examples up to a training, in their order, the later ones are still exchangeable, so
    periods add up like a fair game: the variance and the bound hold over all of them, for any deterministic machine.
    That the departures of *all* periods together are martingale differences in reversed time needs one more condition:
    training must not depend on the order of the prefix. This is so for the machines of this package, whose scores are
    compared on a grid coarser than the effect of the order on their last bits; not for learners by stochastic gradient
    or others that take examples in turn or draw by position.

    The price: right after a training it says nothing (intervals [0, 1]), and again after the next. `growth` and
    `last` determine how often.

    Parameters
    ----------
    first : int >= 1, default 32
        Examples at the first training; before it, predictions say nothing.
    growth : float > 1, default 2
        Ratio of the numbers of examples at two trainings.
    last : int >= first, optional
        No training beyond that many examples; memory does not grow after that. By default there is always a next
        training, on all examples so far: set `last` for machines with O(n^2) memory, such as kernel machines.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    After the online inductive conformal predictors of Papadopoulos, Proedrou, Vovk & Gammerman (2002).

    Examples
    --------
    >>> schedule = PrefixRestart(first=100, last=500)
    >>> [schedule.next_training(n) for n in (0, 100, 200, 400)]
    [100, 200, 400, None]
    """

    online = "exact"

    first: int = param(integer, 1, default=32)
    growth: float = param(above_one, default=2.0)
    last: int | None = param(optional, integer, FIRST, default=None)

    def split(self, calibrates: Bools, rng: np.random.Generator) -> Bools:
        """Return (n,) False: no example so far calibrates."""
        return np.zeros(len(calibrates), np.bool_)


@component
class Prefix(Periods):
    """Trains on the first share of the examples, at times fixed beforehand; calibrates on the rest and the later ones.

    Per step: a theorem. Online: a theorem within each period, from one training to the next. Across periods there is
    none, as the same examples calibrate in two of them or train in the later one: bound each period by itself and add
    up. In one category departures of neighbouring periods partly cancel, and the deviation of the whole sum is 0.6 of
    its value under the theorem.

    Parameters
    ----------
    share : float in (0, 1), default 0.7
        Of the first r examples, floor(share * r) train.
    first : int >= 1, default 32
        Examples at the first training; before it, predictions say nothing.
    growth : float > 1, default 2
        Ratio of the numbers of examples at two trainings.
    last : int >= first, optional
        No training beyond that many examples.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> Prefix(0.7).split(np.ones(4, bool), np.random.default_rng())
    array([False, False,  True,  True])
    """

    online = WITHIN

    share: float = param(fraction, default=0.7)
    first: int = param(integer, 1, default=32)
    growth: float = param(above_one, default=2.0)
    last: int | None = param(optional, integer, FIRST, default=None)

    def settled(self, time: int) -> int:
        """Return the number of examples that train at `time`: they are the first."""
        return math.floor(self.share * time)

    def split(self, calibrates: Bools, rng: np.random.Generator) -> Bools:
        """Return (n,) True for all of the n examples learned but the first share."""
        n = len(calibrates)
        return np.arange(n) >= self.settled(n)


@component
class FreshSplit(Schedule):
    """After every example, splits all examples at random, trains on one part and calibrates on the other.

    Per step: a theorem. Online: not proved, because calibration sets overlap without being nested. It is known that,
    for a scorer that training does not change, departures at different steps are uncorrelated, so the sum has the same
    variance as under the theorem. Measured with trained scorers, it also has that variance
    (examples/inductive_validity.py).

    Costly: a training from nothing at every step.

    Parameters
    ----------
    share : float in (0, 1), default 0.3
        Of n examples, floor(share * n) calibrate.
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    A reading of Lambrou, Papadopoulos & Gammerman (2012), "inductive Venn prediction with a split of 30%".

    Examples
    --------
    >>> schedule = FreshSplit(share=0.5, seed=1)
    >>> schedule.next_training(7)
    8
    >>> int(schedule.split(np.zeros(8, bool), np.random.default_rng(1)).sum())  # that calibrate
    4
    """

    online = "not proved"

    share: float = param(fraction, default=0.3)
    seed: int = param(integer, 0, default=0)

    def next_training(self, n: int) -> int | None:
        """Return n + 1."""
        return n + 1

    def split(self, calibrates: Bools, rng: np.random.Generator) -> Bools:
        """Return (n,) True for a random share of the n examples learned."""
        n = len(calibrates)
        chosen = np.zeros(n, np.bool_)
        chosen[rng.permutation(n)[: math.floor(self.share * n)]] = True
        return chosen


@component
class RandomAssignment(Periods):
    """Assigns every example at random, for good, to the calibration set or to the training set.

    All calibration scores are by one scorer: at a training they are computed again. Examples assigned to training
    wait for the next training.

    Per step: a theorem. Online: broken. Calibration examples influence all later steps and training examples none, so
    the sum of departures has 2 / q - 1 times the right variance (5.67 for q = 0.3). Frequencies still converge to the
    claims, only more slowly.

    Parameters
    ----------
    probability : float in (0, 1), default 0.3
        Of assignment to the calibration set, q above.
    seed : int >= 0, default 0
    first : int >= 1, default 32
        Examples at the first training; before it, predictions say nothing.
    growth : float > 1, default 2
        Ratio of the numbers of examples at two trainings.
    last : int >= first, optional
        No training beyond that many examples.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> schedule = RandomAssignment(0.3)
    >>> round(float(schedule.calibrates(0, 100_000, np.random.default_rng(0)).mean()), 2)
    0.3
    """

    online = "broken"

    probability: float = param(fraction, default=0.3)
    seed: int = param(integer, 0, default=0)
    first: int = param(integer, 1, default=32)
    growth: float = param(above_one, default=2.0)
    last: int | None = param(optional, integer, FIRST, default=None)

    def calibrates(self, n: int, count: int, rng: np.random.Generator) -> Bools:
        """Return (count,) drawn for each example: True where it calibrates."""
        return rng.random(count) < self.probability


@component
class FixedCalibration(Schedule):
    """Trains once, calibrates on the next examples, and never changes again.

    Per step: a theorem, as the calibration set is drawn like the new example. But there is one calibration set for
    ever. Online: broken; the sum over N steps keeps the error of that one set, and has 1 + (N - 1) / (size + 1) times
    the right variance. Frequencies do not converge to the claims. This is what "calibrate, then deploy" does.

    Parameters
    ----------
    size : int >= 1
        Examples in the calibration set.
    train : int >= 0, default 0
        Examples that train the machine, before those; 0 for a `FrozenScorer`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> schedule = FixedCalibration(size=2, train=3)
    >>> schedule.calibrates(0, 7, np.random.default_rng())
    array([False, False, False,  True,  True, False, False])
    """

    online = "broken"

    size: int = param(integer, 1)
    train: int = param(integer, 0, default=0)

    @property
    def trains(self) -> bool:
        """Whether there is a machine to train."""
        return self.train > 0

    def next_training(self, n: int) -> int | None:
        """Return the number of examples that train, while there are fewer."""
        return self.train if n < self.train else None

    def calibrates(self, n: int, count: int, rng: np.random.Generator) -> Bools:
        """Return (count,) True for the examples of the calibration set, those from `train` to `train + size`."""
        position = np.arange(n, n + count)
        return (position >= self.train) & (position < self.train + self.size)


@component
class NoTraining(Schedule):
    """For a scorer fitted elsewhere: every example calibrates.

    Per step: a theorem. Online: a theorem; it is `PrefixRestart` with a single period.

    Examples
    --------
    >>> NoTraining().next_training(1000) is None
    True
    """

    online = "exact"
    alike = True

    @property
    def trains(self) -> bool:
        """False."""
        return False

    def next_training(self, n: int) -> int | None:
        """Return None."""
        return None
