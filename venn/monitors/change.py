"""When a change began: an estimate from the latest steps, with its uncertainty."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from venn.monitors.running import held_numbers
from venn.prediction import Floats
from venn.saved import saved

MEMORY = 1000  # steps
MASS = 0.95
TINY = 1e-12
TILTS = np.array([-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0])  # of log odds
BENDS = np.array([-1.0, 0.0, 0.5, 2.0])  # of log odds: exchanged labels, no knowledge, too bold, too timid
CERTAIN = 1e-6  # least probability, and least probability of the contrary, whose log odds are bent
POWERS = np.array([0.1, 0.25, 0.5, 0.75, 1.5, 3.0])


@saved
@dataclass(frozen=True)
class ChangePoint:
    """An estimate of the first step after a change. It is an estimate: nothing is guaranteed about it.

    Attributes
    ----------
    step : int
        The likeliest one, counted from 1.
    lower, upper : int
        From the first to the last of the likeliest steps that together have probability 0.95, if a change has
        happened and each remembered step was equally probable before.
    earlier : bool
        Whether `lower` is the first remembered step, and not the first of all: the change may be older.

    Examples
    --------
    >>> str(ChangePoint(900, 870, 930)), str(ChangePoint(900, 501, 930, True))
    ('about 900 (870 to 930)', 'about 900 (before 501 to 930)')
    >>> str(ChangePoint(900, 900, 900))
    'about 900'
    """

    step: int
    lower: int
    upper: int
    earlier: bool = False

    def __str__(self) -> str:
        if self.lower == self.upper and not self.earlier:
            return f"about {self.step}"
        return f"about {self.step} ({'before ' if self.earlier else ''}{self.lower} to {self.upper})"


def of_events(departures: Floats) -> Floats:
    """Return the log likelihood ratios (n, g) of departures (n,): 1{event} minus its claimed probability.

    Column by column, after the change the odds of an event are exp(t) times the claimed ones, t in `TILTS`, or the
    claimed ones to the power b, b in `BENDS`: where labels are exchanged, likely events fail to come as often as
    unlikely ones come, and no factor of the odds is right for both.
    """
    happened = departures > 0
    claimed = np.where(happened, 1 - departures, -departures)
    tilted = happened[:, None] * TILTS - np.log1p(claimed[:, None] * np.expm1(TILTS))
    inside = np.clip(claimed, CERTAIN, 1 - CERTAIN)
    odds = np.where(happened, 1.0, -1.0) * (np.log(inside) - np.log1p(-inside))  # of what was the case, logarithms
    bent = np.logaddexp(0, -odds)[:, None] - np.logaddexp(0, -odds[:, None] * BENDS)
    return np.hstack([tilted, bent])


def of_p_values(ps: Floats) -> Floats:
    """Return the log likelihood ratios (n, g) of p-values (n,), which are uniform before the change.

    Column by column, after it p or 1 - p has the density (1 + k p^(k - 1)) / 2, k in `POWERS`.
    """
    both = np.maximum(np.column_stack([ps, 1 - ps]), TINY)[:, :, None]
    return np.log((1 + POWERS * both ** (POWERS - 1)) / 2).reshape(len(ps), -1)


def change_point(ratios: Floats, last: int) -> ChangePoint:
    """Return the estimate from the log likelihood ratios (n, g) of the n steps that end with step `last`.

    The likelihood of a change at a step is the mean over the g alternatives of the product of the ratios from
    that step on: the sum behind the Shiryaev-Roberts statistic, step by step.
    """
    after = np.cumsum(ratios[::-1], axis=0)[::-1]
    likelihood = np.exp(after - after.max()).sum(axis=1)
    order = np.argsort(-likelihood, kind="stable")
    mass = np.cumsum(likelihood[order])
    likely = order[: int((mass < MASS * mass[-1]).sum()) + 1]
    first = last - len(ratios) + 1
    lower = first + int(likely.min())
    return ChangePoint(first + int(order[0]), lower, first + int(likely.max()), lower == first > 1)


class Trace:
    """The latest numbers of one source, as many as a change point is looked for among.

    Parameters
    ----------
    of_event : bool
        Whether they are departures of events in [-1, 1], or p-values.
    memory : int >= 1
    """

    def __init__(self, of_event: bool, memory: int) -> None:
        self._of_event = of_event
        self._latest: deque[float] = deque(maxlen=memory)
        self.add = self._latest.append

    def change(self, n: int) -> ChangePoint:
        """Return the estimate after step n."""
        ratios = of_events if self._of_event else of_p_values
        return change_point(ratios(np.array(self._latest)), n)

    @property
    def state(self) -> list[float]:
        """The numbers, oldest first."""
        return list(self._latest)

    def take_over(self, values: object, n: int) -> None:
        """Continue from a `state` after n steps, or raise a ValueError."""
        size = min(n, self._latest.maxlen or n)
        numbers = held_numbers("trace", values, size)
        if not all((-1 if self._of_event else 0) <= value <= 1 for value in numbers):
            raise ValueError(f"state['trace'] must hold departures or p-values, got {values!r}")
        self._latest.extend(numbers)
