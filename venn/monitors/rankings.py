"""How strange an object is among others, as a p-value: rankings by distances to the nearest, for `Drift` to bet on."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from venn.machines.checks import clean_object
from venn.machines.machine import grown
from venn.monitors.betting import Martingale
from venn.monitors.martingales import CompositeJumper, Power
from venn.parameters import array_of, fraction, integer
from venn.prediction import Floats
from venn.saved import Saved, checked_keys, held_array, held_finite, held_int, saved

ROOM = 64  # objects
LARGEST = 1e150  # its square is finite


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
        raise ValueError(
            f"{error}: a Drift measures distances, which a gap has not: fill gaps by a fixed rule before they are "
            "asked about, or watch without a Drift"
        ) from None


class Crowd:
    """Objects, and for each the distances to its nearest others: an object with far neighbours is strange."""

    def __init__(self, neighbours: int) -> None:
        self.k = neighbours
        self.n = 0
        self.features: int | None = None
        self._objects = np.zeros((0, 0))
        self._near = np.zeros((0, neighbours))  # ascending; infinite where there are fewer others
        self._strange = np.zeros(0)

    def clean(self, x: Any) -> Floats:
        """Return an object as numbers, or say what is wrong with it."""
        clean = measured(x, self.features)
        if not abs(clean).max() < LARGEST:
            raise ValueError(f"x must lie within {LARGEST:g}, got {abs(clean).max():g}")
        return clean

    def distances(self, x: Floats) -> Floats:
        """Return the (n,) distances of a clean object to all."""
        apart = self._objects[: self.n] - x if self.n else np.zeros((0, x.size))
        return np.sqrt(np.einsum("ij,ij->i", apart, apart))

    def sums(self, near: Floats, others: int) -> Floats:
        """Return the sums of the distances to the k nearest of so many others, or to all if these are fewer."""
        return near[..., : min(self.k, others)].sum(axis=-1)

    def nearest(self, distances: Floats) -> Floats:
        """Return the (k,) smallest distances, ascending; infinite where there are fewer."""
        found = np.full(self.k, inf)
        m = min(self.k, len(distances))
        found[:m] = np.sort(np.partition(distances, m - 1)[:m]) if m else found[:m]
        return found

    def join(self, x: Floats) -> tuple[Floats, float]:
        """Take an object in; return how strange the others are then, and how strange it is, all by one definition."""
        n, distances = self.n, self.distances(x)
        own = self.nearest(distances)
        if n == len(self._strange):
            room = max(ROOM, 2 * n)
            self._objects = grown(self._objects, room, x.size) if n else np.zeros((room, x.size))
            self._near, self._strange = grown(self._near, room, self.k), grown(self._strange, room)
        near, strange = self._near[:n], self._strange[:n]
        # Only those change that have the new one among their nearest; all, while they have fewer than k others.
        moved = np.flatnonzero(distances < near[:, -1]) if n >= self.k + 1 else np.arange(n)
        near[moved] = np.sort(np.column_stack([near[moved], distances[moved]]), axis=1)[:, : self.k]
        strange[moved] = self.sums(near[moved], n)
        self._objects[n], self._near[n], self._strange[n] = x, own, self.sums(own, n)
        self.n, self.features = n + 1, x.size
        return strange, float(self._strange[n])

    @property
    def state(self) -> dict[str, Any]:
        """Objects and distances."""
        return {"objects": self._objects[: self.n].copy(), "near": self._near[: self.n].copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold the content of a `state`."""
        checked_keys("state", state, ("objects", "near"))
        n, *features = getattr(state["objects"], "shape", (0, 0))
        objects = held_finite("objects", state["objects"], (n, *features[:1]))
        near = held_array("near", state["near"], (n, self.k))
        self.n, self.features = n, objects.shape[1] if n else None
        self._objects, self._near = objects.copy(), near.copy()
        self._strange = self.sums(near, n - 1) if n else np.zeros(0)


class ByDistance(Saved):
    """Base of rankings of objects by their distances to the nearest others."""

    unnamed = 0

    _crowd: Crowd

    def fresh(self) -> Self:
        """Return one with the same parameters that has seen nothing."""
        return self.made_of(self.parameters)

    def check(self, x: Any) -> None:
        """Raise what `rank` would raise for a bad object."""
        self._crowd.clean(x)


@saved
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

    def __init__(self, neighbours: int = 10, size: int | None = None) -> None:
        self.neighbours = integer("neighbours", neighbours, 1)
        self.size = None if size is None else integer("size", size, self.neighbours + 1)
        self._crowd = Crowd(self.neighbours)
        self._before = 0  # objects in earlier bags

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
        if self._crowd.n == self.size:
            self._before, self._crowd = self.n, Crowd(self.neighbours)
        others, own = self._crowd.join(clean)
        greater, equal = int((others > own).sum()), int((others == own).sum()) + 1
        return (greater + tau * equal) / (len(others) + 1)

    @property
    def state(self) -> dict[str, Any]:
        """The objects of the bag, the distances to their nearest, and how many objects earlier bags held."""
        return {"before": self._before, **self._crowd.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state`, or raise a ValueError."""
        checked_keys("state", state, ("before", "objects", "near"))
        self._before = held_int("before", state["before"])
        self._crowd.restore({name: state[name] for name in ("objects", "near")})


@saved
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

    def __init__(self, size: int = 2000, neighbours: int = 10, risk: float = 0.001) -> None:
        self.size = integer("size", size, 20)
        self.neighbours = integer("neighbours", neighbours, 1)
        if self.neighbours > self.size // 2:
            raise ValueError(f"neighbours must be at most half the size, {self.size // 2}, got {neighbours!r}")
        self.risk = fraction("risk", risk)
        self.n = 0
        self._crowd = Crowd(self.neighbours)
        self._values = np.zeros(self.size - self.size // 2)  # of the second half
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
            crowd.join(clean)
            return None
        own = float(crowd.sums(crowd.nearest(crowd.distances(clean)), half))
        if n < self.size:
            self._values[n - half] = own
            return None
        m = len(self._values)
        return min(1.0, int((self._values >= own).sum()) / m + self._room)

    @property
    def state(self) -> dict[str, Any]:
        """The first sample."""
        held = min(max(self.n - self.size // 2, 0), len(self._values))
        return {"n": self.n, "values": self._values[:held].copy(), **self._crowd.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state`, or raise a ValueError."""
        checked_keys("state", state, ("n", "values", "objects", "near"))
        n, half = held_int("n", state["n"]), self.size // 2
        held = min(max(n - half, 0), len(self._values))
        self._values[:held] = held_finite("values", state["values"], (held,))
        self._crowd.restore({name: state[name] for name in ("objects", "near")})
        self.n = n
