"""When a change began: an estimate from the latest steps, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from venn.monitors.alarms import shares
from venn.parameters import flag, integer
from venn.prediction import Floats
from venn.saved import Saved, array, component, own, param, saved, state

MEMORY = 1000  # steps
FEWEST = 64  # room of a trace at first; it grows as numbers come, so a forged file reserves no memory
MASS = 0.95
SHOWN = np.log(20.0)  # evidence from which on a change has shown in a period
TINY = 1e-12
TILTS = np.array([-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0])  # of log odds
BENDS = np.array([-1.0, 0.0, 0.5, 2.0])  # of log odds: exchanged labels, no knowledge, too bold, too timid
CERTAIN = 1e-6  # least probability, and least probability of the contrary, whose log odds are bent
CUTS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)  # of p-values, to count those below
VISIBLE = 4.0  # square of the standard deviations from which on a departure is mentioned
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
        Whether the change may be older: `lower` is the first remembered step, and not the first of all, or the first
        one of a predictor that has trained anew, perhaps on what had changed already.

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


def change_point(ratios: Floats, last: int, began: Sequence[int] = ()) -> ChangePoint:
    """Return the estimate from the log likelihood ratios (n, g) of the n steps that end with step `last`.

    The likelihood of a change at a step is the mean over the g alternatives of the product of the ratios from that step
    on: the sum behind the Shiryaev-Roberts statistic, step by step.

    A predictor that trained anew, after the steps `began`, has learned some of the change, which then looks different.
    So each period between trainings is examined by itself, the latest first. The period before is examined too if the
    change had shown at its end: if for one of its steps the mean of products up to the end of that period is 20 or
    more. By chance this has probability at most .05 (Ville, back in time). A change may begin without showing: then the
    estimate says that it may be older.
    """
    first = last - len(ratios) + 1
    begins = sorted({0, *(step - first + 1 for step in began if first <= step < last)})
    start, log = len(ratios), np.empty(0)
    for begin in reversed(begins):
        after = np.cumsum(ratios[begin:start][::-1], axis=0)[::-1]
        of_period = np.logaddexp.reduce(after, axis=1) - np.log(ratios.shape[1])
        if log.size and of_period.max() < SHOWN:
            break
        start, log = begin, of_period
    return _likeliest(log, first + start)


def change_of_counts(codes: Any, kinds: int, last: int) -> ChangePoint:
    """Return the estimate for a change in the shares of kinds, from the codes (n,) that end with step `last`.

    The likelihood of a change at a step is that of the codes before it times that of the codes from it on, each by
    shares that are drawn by Jeffreys' prior.
    """
    each = np.eye(kinds)[np.asarray(codes, np.intp)]
    after = np.cumsum(each[::-1], axis=0)[::-1]
    log = _of_counts(after) + _of_counts(after[0] - after)
    return _likeliest(log, last - len(each) + 1)


def _of_counts(counts: Floats) -> Floats:
    """Return the logarithm of the probability of codes with these counts (n, k), up to a constant."""
    found: Floats = gammaln(counts + 0.5).sum(axis=1) - gammaln(counts.sum(axis=1) + counts.shape[1] / 2)
    return found


def _likeliest(log: Floats, first: int) -> ChangePoint:
    """Return the estimate by the logarithms of the likelihoods of a change at each step from `first` on."""
    likelihood = np.exp(log - log.max())
    order = np.argsort(-likelihood, kind="stable")
    mass = np.cumsum(likelihood[order])
    likely = order[: int((mass < MASS * mass[-1]).sum()) + 1]
    lower = first + int(likely.min())
    return ChangePoint(first + int(order[0]), lower, first + int(likely.max()), lower == first > 1)


def _restored_numbers(name: str, value: Any, trace: Any) -> Floats:
    """Check the numbers in a state: NaN at steps without one."""
    found: Floats = array(None, finite=None)(name, value, trace)
    if np.isinf(found).any():
        raise ValueError(f"{name} must be finite, or NaN at steps without a number, got {found[np.isinf(found)][0]}")
    return found


@component
class Trace(Saved):
    """The latest numbers of one source, among which a change point is looked for.

    Parameters
    ----------
    of_event : bool
        Whether they are departures of events in [-1, 1], or p-values; NaN at a step that has none.
    memory : int >= 1
    """

    of_event: bool = param(flag)
    memory: int = param(integer, 1)

    _numbers: Floats = state(_restored_numbers, own(lambda one: one), start=own(lambda _: np.empty(0)))

    def derive(self) -> None:
        """Make the buffer. The latest numbers stay in one piece; they move to the start when it is full."""
        self._end = len(self._numbers)

    @property
    def state(self) -> dict[str, Any]:
        """The numbers, oldest first."""
        return {"numbers": self.latest(self.memory).copy()}

    def add(self, value: float) -> None:
        """Add the number of one step."""
        if self._end == len(self._numbers):
            if self._end < 2 * self.memory:
                more = min(max(FEWEST, self._end), 2 * self.memory - self._end)
                self._numbers = np.concatenate([self._numbers, np.empty(more)])
            else:
                self._numbers[: self.memory] = self._numbers[self.memory :]
                self._end = self.memory
        self._numbers[self._end] = value
        self._end += 1

    def extend(self, values: Floats) -> None:
        """Add the numbers of several steps."""
        if len(values) < 2:
            for value in values:
                self.add(value)
            return
        self._numbers = np.concatenate([self.latest(self.memory), values])[-self.memory :]
        self._end = len(self._numbers)

    def latest(self, size: int) -> Floats:
        """Return the numbers of the latest steps, oldest first: as many as are remembered at most."""
        return self._numbers[max(0, self._end - min(size, self.memory)) : self._end]

    def _there(self, size: int) -> Floats:
        """Return the numbers of those of the latest steps that have one."""
        found = self.latest(size)
        return found[~np.isnan(found)]

    def change(self, n: int, began: Sequence[int] = (), anew: int = 0) -> ChangePoint:
        """Return the estimate after step n, of a change later than step `anew`; bets began anew after those `began`."""
        ratios, latest = of_events if self.of_event else of_p_values, self.latest(min(self.memory, max(n - anew, 1)))
        least = int(np.isnan(latest).argmin())  # a change shows at the first number, not before
        anew = anew + least if len(latest) == n - anew else anew
        found = change_point(np.nan_to_num(ratios(latest[least:])), n, began)  # a step without a number says nothing
        return replace(found, earlier=found.earlier and found.lower > anew + 1)

    def departure(self, size: int) -> float:
        """Return 2 S^2 / N: S is the sum of departures of N latest steps, or of p-values less 1/2.

        Under the claim it is at least ln(2 / a) with probability at most a: by Azuma and Hoeffding, for the
        departures of valid predictors are martingale differences of range 1, in reversed time, and so are p-values.
        """
        numbers = self._there(size)
        total = float(numbers.sum()) - (0.0 if self.of_event else len(numbers) / 2)
        return 2 * total**2 / len(numbers)

    def told(self, size: int, words: str) -> str | None:
        """Return claim and outcome of the latest steps in numbers that differ by more than chance.

        None where they do not.
        """
        numbers = self._there(size)
        n = len(numbers)
        if not n:
            return None
        if self.of_event:
            came = numbers > 0
            pairs = [(float(came.mean()), float(np.where(came, 1 - numbers, -numbers).mean()))]
        else:
            pairs = [(float((numbers <= cut).mean()), cut) for cut in CUTS]
        found, right = max(pairs, key=lambda pair: abs(pair[0] - pair[1]) / (pair[1] * (1 - pair[1]) + 1 / n) ** 0.5)
        if n * (found - right) ** 2 < VISIBLE * (right * (1 - right) + 1 / n):
            return None
        shown, claimed = shares(found, right)
        if self.of_event:
            return f"{words} in {shown} of {n} steps, where {claimed} was claimed"
        kind = "too strange" if found > right else "too regular"
        return f"{words} are {kind}: at most {claimed} in {shown} of {n} steps"
