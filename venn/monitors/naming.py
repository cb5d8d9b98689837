"""Names the streams of p-values that are not uniform, with a bound on the chance of ever naming a wrong one."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from venn._compiled.martingales import WIDTH, bet_each, no_bets
from venn.parameters import fraction, integer
from venn.prediction import Floats, Integers
from venn.saved import Saved, array, component, own, param, restored_int, state
from venn.smoothing import Smoothing

MOST = 100  # streams: of more, none is worth a name
FAR = 2**62


def rarity(counts: Any, code: int, tau: float) -> float:
    """Return the p-value of the last example's value among all: rare values are strange.

    p = (#{a_i > a} + tau #{a_i = a}) / n, where a_i is minus the number of examples that have the value of example i.
    It treats all examples alike: while they are exchangeable, the p-values of successive examples are independent and
    uniform.

    Parameters
    ----------
    counts : (c,) integers
        How often each value came, the last time included.
    code : int
        The value of the last example.
    tau : float in [0, 1]

    Examples
    --------
    >>> rarity([3, 1, 1], 1, 0.5), rarity([3, 1, 1], 0, 0.5)
    (0.2, 0.7)
    """
    return rarity_of(np.asarray(counts).tolist(), code, tau)


def rarity_of(counts: list[int], code: int, tau: float) -> float:
    """Return `rarity` from counts in a list, which is faster for few classes."""
    count, rarer, alike, total = counts[code], 0, 0, 0
    for one in counts:
        total += one
        if one < count:
            rarer += one
        elif one == count:
            alike += one
    return (rarer + tau * alike) / total


@component
class Naming(Saved):
    """Bets on several streams of p-values, each by itself, and names those that win too much.

    The capital M of a stream is that of a jumper whose bettors also bet on where p-values lately fell. So it sees
    values that grow or shrink, and one value that comes again and again. P = min(1, 1 / the largest M so far);
    streams are named by Holm's procedure on these.

    Theorem (Ville for each stream, then Holm): the probability that a stream is ever named whose p-values are
    independent and uniform is at most `level`, however the streams depend on each other. Of current capitals, by e-BH,
    it would be no theorem: a capital is no martingale once others are seen.

    After `begin_anew` streams may be named again. Round r, counted from 1, has the level `level` / (r (r + 1)): all
    rounds together keep the level.

    Parameters
    ----------
    streams : int from 1 to 100
    level : float in (0, 1)

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure"; Vovk (2020), arXiv:2012.14246.
    """

    streams: int = param(integer, 1, MOST)
    level: float = param(fraction)

    round: int = state(restored_int, 1, start=1)
    #: The step at which each was named in this round; 0: it was not.
    named: Integers = state(
        array("streams", of=np.int64, below=FAR), start=own(lambda one: np.zeros(one.streams, np.int64))
    )
    #: The same in the round before.
    before: Integers = state(
        array("streams", of=np.int64, below=FAR), start=own(lambda one: np.zeros(one.streams, np.int64))
    )
    _memory: Floats = state(array("streams", WIDTH), start=own(lambda one: no_bets(one.streams)))

    @property
    def logs(self) -> Floats:
        """The logarithm of the largest capital of each stream in this round."""
        return self._memory[:, 2]

    @property
    def last(self) -> int:
        """The step of the latest name in this round; 0 if there is none."""
        return int(self.named.max())

    @property
    def known(self) -> Integers:
        """The streams that are named in this round; as long as there are none, those of the round before."""
        return np.flatnonzero(self.named if self.last else self.before)

    @property
    def bound(self) -> float:
        """The logarithm of the capital at which the next stream is named; infinite where all are."""
        unnamed = self.streams - np.count_nonzero(self.named)
        return log(unnamed / (self.level / (self.round * (self.round + 1)))) if unnamed else inf

    @property
    def memory(self) -> Floats:
        """The (streams, WIDTH) memories of the bets, which compiled loops change."""
        return self._memory

    def update(self, ps: Floats, step: int) -> list[int]:
        """Bet on a p-value of each stream, NaN where it has none; return the streams that are named at this step."""
        bet_each(self._memory, ps)
        return self.called(step)

    def called(self, step: int) -> list[int]:
        """Return the streams that are named at this step; a compiled loop has made the bets."""
        found: list[int] = []
        while True:
            best = int(np.where(self.named == 0, self._memory[:, 2], -inf).argmax())
            if self.named[best] or self._memory[best, 2] < self.bound:
                return found
            self.named[best] = step
            found.append(best)

    def begin_anew(self) -> None:
        """Begin another round."""
        self.round += 1
        self.before, self.named = self.named, np.zeros_like(self.named)
        self._memory = no_bets(self.streams)


class Ties:
    """Two independent random numbers for each step, to break ties of two p-values."""

    def __init__(self, seed: int) -> None:
        self._smoothing = Smoothing(seed)

    def at(self, n: int) -> tuple[float, float]:
        """Return the numbers of step n >= 0."""
        return self._smoothing.at(2 * n), self._smoothing.at(2 * n + 1)

    def block(self, n: int, count: int) -> Floats:
        """Return (count, 2) numbers from step n on."""
        return self._smoothing.block(2 * n, 2 * count).reshape(count, 2)
