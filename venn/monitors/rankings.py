"""How strange an object is among others, as a p-value: rankings by distances to the nearest, for `Drift` to bet on."""

from __future__ import annotations

from math import log, sqrt
from typing import Any, ClassVar, Protocol

import numpy as np

from venn._compiled import strangers
from venn.machines.machine import grown
from venn.machines.objects import clean_object
from venn.monitors.martingales import CompositeJumper, Martingale, Power
from venn.parameters import array_of, fraction, integer, optional
from venn.prediction import Bools, Floats
from venn.saved import (
    Saved,
    array,
    component,
    own,
    param,
    restored_array,
    restored_finite,
    restored_int,
    restored_like,
    state,
)

ROOM = 64  # objects
LARGEST_VALUE = 1e150  # its square is finite


class Ranking(Protocol):
    """What `Drift` needs: p-values of objects, in order of arrival."""

    @property
    def risk(self) -> float:
        """Probability that its p-values are not valid at all, which counts against the level."""

    @property
    def theorem(self) -> str:
        """For which objects its p-values are valid, in words that go before the theorem."""

    @property
    def martingale(self) -> Martingale:
        """A pattern of bets that are fair on its p-values."""

    @property
    def n(self) -> int:
        """Number of objects."""

    def check(self, x: Any) -> None:
        """Raise what `rank` would raise for a bad object."""

    def rank(self, x: Any, tau: float) -> float | None:
        """Return the p-value of a new object, then keep it; None while there is none. A bad object changes nothing."""

    def fresh(self) -> Ranking:
        """Return one with the same parameters that has seen nothing."""


def measured(x: Any, features: int | None) -> Any:
    """Return an object as numbers between which there are distances, or say what is wrong and, of a gap, what to do."""
    try:
        return clean_object(x, features)
    except ValueError as error:
        numbers = array_of(x)
        if numbers.dtype.kind != "f" or not np.isnan(numbers).any():
            raise
        raise ValueError(f"{error}; or watch without a Drift: it measures distances, which a gap has not") from None


def is_row(x: Any) -> bool:
    """Whether an object is an array of floats."""
    return type(x) is np.ndarray and x.ndim == 1 and x.dtype == np.float64


def plain(rows: Floats, gaps: bool) -> Bools:
    """Return which rows (m, d) have numbers only between which there are distances, on any scale; gaps if these may be.

    What watches objects refuses none of them, if it takes objects of so many columns.
    """
    size = np.abs(rows)
    fine = (size < LARGEST_VALUE) & ((size > 1 / LARGEST_VALUE) | (size == 0))
    return np.asarray((fine | np.isnan(rows) if gaps else fine).all(axis=1))


def _shape_of_near(crowd: Any) -> tuple[int, ...]:
    return len(vars(crowd)["_objects"]), crowd.neighbours


@component
class Crowd(Saved):
    """Objects, and for each the distances to its nearest others: an object with far neighbours is strange."""

    neighbours: int = param(integer, 1)

    _objects: Floats = state(array(None, None), start=own(lambda _: np.zeros((0, 0))))
    #: Ascending; infinite where there are fewer others.
    _near: Floats = state(restored_array, own(_shape_of_near), start=own(lambda crowd: np.zeros((0, crowd.neighbours))))

    def derive(self) -> None:
        """Count, stand the objects in columns, and find how strange each is."""
        self.n = len(self._objects)
        self.features = self._objects.shape[1] if self.n else None
        objects, near = (np.ascontiguousarray(one.T, np.float64) for one in (self._objects, self._near))
        self.arrays = objects, near, np.zeros(self.n)
        del self._objects, self._near
        strangers.sums_of(*self.arrays[1:])

    @property
    def state(self) -> dict[str, Any]:
        """Objects and distances, without spare room."""
        objects, near, _ = self.arrays
        return {"objects": objects[:, : self.n].T.copy(), "near": near[:, : self.n].T.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Bring it into this state; if that cannot be, nothing changes."""
        self._objects, self._near = self.state.values()
        super().restore(state)

    def clean(self, x: Any) -> Floats:
        """Return an object as numbers, or say what is wrong with it."""
        clean = measured(x, self.features)
        if not abs(clean).max() < LARGEST_VALUE:
            raise ValueError(f"x must lie within {LARGEST_VALUE:g}, got {abs(clean).max():g}")
        return clean

    def room(self, features: int) -> tuple[tuple[Floats, Floats, Floats], int]:
        """Return the arrays for compiled loops, and for how many more objects they have room, at least one."""
        objects, near, strange = self.arrays
        if self.n == len(strange):
            room, self.features = max(ROOM, 2 * self.n), features
            self.arrays = grown(objects, features, room), grown(near, self.neighbours, room), grown(strange, room)
        return self.arrays, len(self.arrays[2]) - self.n

    def join(self, x: Floats, tau: float) -> float:
        """Take an object in; return its p-value, by which `tau` breaks ties."""
        arrays, _ = self.room(x.size)
        self.n += 1
        return float(strangers.join(*arrays, self.n - 1, x, tau))

    def strangeness(self, x: Floats) -> float:
        """Return the sum of the distances of an object to its nearest, or to all if these are fewer."""
        apart = self.arrays[0][:, : self.n] - x[:, None]
        return float(np.sort(np.sqrt((apart * apart).sum(axis=0)))[: self.neighbours].sum())


def _crowd_of(ranking: Any) -> Crowd:
    return Crowd(ranking.neighbours)


class ByDistance(Saved):
    """Base of rankings of objects by their distances to the nearest others."""

    unnamed = 0

    _crowd: Crowd

    def check(self, x: Any) -> None:
        """Raise what `rank` would raise for a bad object."""
        self._crowd.clean(x)


@component
class AmongAll(ByDistance):
    """Ranks each object among all so far, itself included, by its distances to its nearest others.

    p = (#{A_i > A} + tau #{A_i = A}) / n, where A_i is the sum of the Euclidean distances of object i to the
    `neighbours` nearest of the other n - 1, the new object among them. That treats all objects alike. So while objects
    are exchangeable their p-values are independent and uniform, each known before its label, or if there never is one.
    Columns should be of one scale.

    A change is seen as long as those after it are few: the bag of all holds them, too. Time and memory of a step grow,
    n d multiplications for n objects of d numbers; a least-squares machine needs n^2.

    With `size` they do not: the bag begins anew, empty, after so many objects. Given all objects before, those of the
    next bag are exchangeable, so that p-values stay independent and uniform. A change among the first dozens of a bag
    may be missed.

    Parameters
    ----------
    neighbours : int >= 1, default 10
    size : int > neighbours, optional
        Largest number of objects in the bag. None: all.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 2 and 8; Laxhammar & Falkman
    (2010), "Conformal prediction for distribution-independent anomaly detection in streaming vessel data".

    Examples
    --------
    >>> ranking = AmongAll(neighbours=1)
    >>> [ranking.rank([x], tau=1.0) for x in (0.0, 1.0, 0.5, 9.0)]
    [1.0, 1.0, 1.0, 0.25]
    """

    risk = 0.0
    theorem: ClassVar[str] = "if objects come in random order,"

    neighbours: int = param(integer, 1, default=10)
    size: int | None = param(optional, integer, own(lambda one: one.neighbours + 1), default=None)

    _before: int = state(restored_int, start=0)  # objects in earlier bags
    _crowd: Crowd = state(restored_like, start=own(_crowd_of))

    @property
    def martingale(self) -> Martingale:
        """Bets on small p-values, and on large ones, as where objects come closer together."""
        return CompositeJumper()

    @property
    def n(self) -> int:
        """Number of objects."""
        return self._before + self._crowd.n

    def rank(self, x: Any, tau: float) -> float:
        """Return the p-value of a new object, then keep it; `tau` in [0, 1] breaks ties."""
        clean = self._crowd.clean(x)
        return self.room(clean.size)[0].join(clean, tau)

    @property
    def features(self) -> int | None:
        """Number of columns; None before the first object of a bag."""
        return self._crowd.features

    def room(self, features: int) -> tuple[Crowd, int]:
        """Return the crowd for compiled loops, a new one in the place of a full one, and its room for more objects."""
        if self._crowd.n == self.size:
            self._before, self._crowd = self.n, Crowd(self.neighbours)
        room = self._crowd.room(features)[1]
        return self._crowd, room if self.size is None else min(room, self.size - self._crowd.n)


def _at_most_half(name: str, value: Any, half: int) -> int:
    """Return a number of neighbours, or say what it must be."""
    found = integer(name, value, 1)
    if found > half:
        raise ValueError(f"{name} must be at most half the size, {half}, got {value!r}")
    return found


def _of_second_half(ranking: AgainstFirst) -> tuple[int, ...]:
    return (ranking.size - ranking.size // 2,)


@component
class AgainstFirst(ByDistance):
    """Compares each object with a first sample of fixed size: a change after a long calm is seen as one at the start.

    The first half of the sample are the neighbours; in the second half, of m objects, a new object is ranked, by the
    sum of its distances to its nearest neighbours. Until the sample is whole there are no p-values. Then
    p = min(1, #{A_i >= A} / m + sqrt(ln(1 / risk) / (2 m))).

    Theorem, conditional on the sample. If objects are independent and of one distribution then, except with
    probability `risk` over the sample, P(p <= u) <= u for every u and every later object, independently of each other
    given the sample (Dvoretzky, Kiefer & Wolfowitz, with Massart's constant). So martingales whose bets decrease in p
    are fair or worse: only these may bet here. The uncorrected p-values would depend on each other through the sample,
    and a long calm would end in a false alarm.

    Parameters
    ----------
    size : int >= 20, default 2000
        Number of objects in the first sample. Memory and time of a step do not grow after it.
    neighbours : int >= 1, default 10
        At most half the sample.
    risk : float in (0, 1), default 0.001
        Probability that the sample misleads. It is part of a `Drift`'s level.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Massart (1990), "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality".

    Examples
    --------
    >>> import numpy as np
    >>> ranking, rng = AgainstFirst(size=200), np.random.default_rng(0)
    >>> first = [ranking.rank(x, 0.5) for x in rng.normal(size=(200, 2))]
    >>> first.count(None), round(ranking.rank([9.0, 9.0], 0.5), 3)
    (200, 0.186)
    """

    theorem: ClassVar[str] = "if objects are independent and of one distribution,"

    size: int = param(integer, 20, default=2000, sized=True)
    neighbours: int = param(_at_most_half, own(lambda one: one.size // 2), default=10)
    risk: float = param(fraction, default=0.001)

    n: int = state(restored_int, start=0)
    _values: Floats = state(
        restored_finite, own(_of_second_half), start=own(lambda one: np.zeros(_of_second_half(one)))
    )
    _crowd: Crowd = state(restored_like, start=own(_crowd_of))

    def derive(self) -> None:
        """Compute what the sample may err by."""
        self._room = sqrt(log(1 / self.risk) / (2 * len(self._values)))

    @property
    def martingale(self) -> Martingale:
        """Bets on small p-values only, always in the same way: a long calm teaches it nothing."""
        return Power(0.5)

    def rank(self, x: Any, tau: float) -> float | None:
        """Return the p-value of a new object, None within the first sample; ties count in full, whatever `tau` is."""
        crowd, n, half = self._crowd, self.n, self.size // 2
        clean = crowd.clean(x)
        self.n = n + 1
        if n < half:
            crowd.join(clean, tau)
            return None
        own = crowd.strangeness(clean)
        if n < self.size:
            self._values[n - half] = own
            return None
        m = len(self._values)
        return min(1.0, int((self._values >= own).sum()) / m + self._room)
