"""Alarms: they ring when a test martingale's capital is enough evidence, with a bound on false alarms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy.special import gammaln

from venn._compiled.martingales import scan
from venn.monitors.martingales import Martingale, pattern
from venn.monitors.sums import numbers
from venn.parameters import above_one, flag, fraction, integer, share
from venn.prediction import Floats
from venn.saved import (
    Saved,
    array,
    component,
    own,
    param,
    part,
    restored_float,
    restored_int,
    restored_like,
    saved,
    state,
)

# --------------------------------------------------------------------------------------------------------------- alarms

CHUNK = 4096  # p-values bet on before looking for an alarm; bets after the alarm are then made again
PER_DECADE = math.log(10)
NARROW = 0.02  # shares nearer to 0 or 1 get a third digit
LOWEST = -1e6  # shown in place of the logarithm of 0, which JSON cannot hold
ONLINE = "on exchangeable data, by a predictor that is exact online and forgets nothing,"
VALID = f"if the p-values are independent and uniform on [0, 1], as {ONLINE}"


@saved
@dataclass(frozen=True)
class Alarm:
    """One ring of a detector.

    Attributes
    ----------
    step : int
        At which it rang, counted from 1 since the detector was made.
    detector : str
        Class of the detector.
    log_evidence : float
        Natural logarithm of its statistic at that step.
    sentence : str
        For people: what happened, what it means, and which part is a theorem.
    about : str
        The source of p-values, if several are watched.

    Examples
    --------
    >>> alarm = Alarm(120, "Mixture", 6.9, "The labels no longer come as before.", about="conformal")
    >>> alarm.step, odds(alarm.log_evidence)
    (120, '992 to 1')
    """

    step: int
    detector: str
    log_evidence: float
    sentence: str
    about: str = ""


def odds(log: float) -> str:
    """Return e^log in words, such as "120 to 1".

    Examples
    --------
    >>> odds(math.log(1.25)), odds(math.log(120)), odds(math.log(12345)), odds(math.log(1e6)), odds(1e6)
    ('1.25 to 1', '120 to 1', '12,345 to 1', '10^6 to 1', '10^434294 to 1')
    """
    if log >= math.log(1e6):
        return f"10^{math.floor(log / math.log(10) + 1e-9)} to 1"
    value = math.exp(log) * (1 + 1e-12)  # round down, but keep whole numbers
    return f"{math.floor(value):,} to 1" if value >= 10 else f"{math.floor(value * 100) / 100:g} to 1"


def shares(*values: float) -> list[str]:
    """Return shares as text, such as .79; all with a third digit if one is near 0 or 1, but not equal.

    Examples
    --------
    >>> shares(0.79, 0.8), shares(0.05, 0.011), shares(0.0, 1.0)
    (['.79', '.80'], ['.050', '.011'], ['.00', '1.00'])
    """
    digits = 3 if any(0 < min(value, 1 - value) < NARROW for value in values) else 2
    return [f"{value:.{digits}f}".removeprefix("0") for value in values]


def _restored_log(name: str, value: Any) -> float:
    """Check the logarithm of a statistic in a state; minus infinity is allowed."""
    return -math.inf if value == -math.inf else restored_float(name, value)


@component
class Detector(Saved, ABC):
    """Base of the alarms: each has its own martingale, a statistic in logs, a threshold, and the last alarm.

    The martingale given is a pattern: the detector bets with a fresh one of the same kind. Its memory is that of
    the martingale and a few numbers; past alarms are counted, but only the last is kept.

    Attributes
    ----------
    bets : Martingale
        Which it bets with now.
    n : int
        Number of p-values seen.
    count : int
        Number of alarms.
    last : Alarm or None
    log : float
        Natural logarithm of the statistic. After an alarm it can be read once; if the detector starts anew, it does not
        enter the next step.
    log_threshold : float
        Natural logarithm of the value at which the alarm rings.
    """

    beginning = 0.0  # the logarithm of the statistic at the start

    martingale: Martingale = param(pattern)

    n: int = state(restored_int, start=0)
    count: int = state(restored_int, start=0)
    log: float = state(_restored_log, start=own(lambda one: one.beginning))
    last: Alarm | None = state(part(Alarm), start=None)
    bets: Martingale = state(restored_like, start=own(lambda one: one.martingale.fresh()))

    @abstractmethod
    def derive(self) -> None:
        """Compute the logarithm of the threshold."""
        self.log_threshold: float

    @property
    @abstractmethod
    def statement(self) -> str:
        """One sentence: the theorem about false alarms."""

    def update(self, p: float) -> Alarm | None:
        """Bet on one p-value; return the alarm if it rings.

        Raises
        ------
        TypeError, ValueError
            `p` is not a number in [0, 1]; nothing changes.
        ValueError
            The logarithm of the martingale is NaN or infinity.
        """
        return next(iter(self.update_many([share("p", p)])[1]), None)

    @abstractmethod
    def update_many(self, ps: Any) -> tuple[Floats, list[Alarm]]:
        """Bet on (m,) p-values in order; return the (m,) logs of the statistic after each, and the alarms.

        The same as one by one, to the last bit.

        Raises
        ------
        TypeError, ValueError
            `ps` is not one-dimensional or not all are numbers in [0, 1]; nothing changes.
        ValueError
            The logarithm of the martingale is NaN or infinity.
        """

    def went_on(self, steps: int, log: float) -> None:
        """Count steps on which a compiled loop has bet."""
        self.n += steps
        self.log = log

    @abstractmethod
    def alarm(self) -> Alarm | None:
        """Return the alarm that rings after the latest step."""

    @abstractmethod
    def _sentence(self, step: int, log: float) -> str:
        """Return the sentence of an alarm."""

    def shown(self, name: str, p_value: float | None) -> dict[str, Any]:
        """Return the statistic and its threshold as plain data, with the claim that is bet against."""
        return {
            "name": name, "detector": type(self).__name__, "log10": max(self.log / PER_DECADE, LOWEST),
            "threshold": self.log_threshold / PER_DECADE, "alarms": self.count, "p_value": p_value,
        }  # fmt: skip

    def begin_anew(self) -> None:
        """Bet with a fresh martingale from the next step on, as if it were the first; steps and alarms count on."""
        self.bets = self.martingale.fresh()
        self.log = self.beginning

    @property
    def began(self) -> int:
        """Number of steps before the present martingale began to bet."""
        return self.n - self.bets.n

    def _ring(self, step: int, log: float) -> Alarm:
        self.count += 1
        self.last = Alarm(step, type(self).__name__, log, self._sentence(step, log))
        return self.last

    def _refuse(self, log: float) -> NoReturn:
        # Only for a user's own martingale: ours are always finite.
        raise ValueError(f"martingale must have a logarithm that is a number below infinity, got {log!r}: {self!r}")


@component
class Ville(Detector):
    """Rings once, when the martingale first reaches 1 / level; the alarm stays on record.

    After `begin_anew` it may ring once more.

    Theorem (Ville's inequality): if the p-values are independent and uniform on [0, 1], the probability that it
    ever rings, however long one waits, is at most `level`. How soon it rings after a change is not a theorem: a
    martingale that has lost its capital during a long calm must first win it back.

    Parameters
    ----------
    martingale : Martingale
        A pattern, such as `SimpleJumper()`; a fresh one is used.
    level : float in (0, 1), default 0.01

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Ville (1939); Vovk, Gammerman & Shafer (2022), chapter 8.

    Examples
    --------
    >>> from venn.monitors.martingales import Power
    >>> alarm = Ville(Power(), level=0.05)
    >>> path, alarms = alarm.update_many([0.01, 0.02, 0.015, 0.01])
    >>> print(alarms[0].sentence)
    At step 3 the odds against exchangeable data are 72 to 1: ...
    """

    level: float = param(fraction, default=0.01)

    def derive(self) -> None:
        """Compute the threshold."""
        self.log_threshold = -math.log(self.level)

    @property
    def statement(self) -> str:
        """One sentence: the theorem about false alarms."""
        return f"Theorem (Ville): {VALID} the chance that this alarm ever rings is at most {self.level:g}."

    @property
    def rung(self) -> bool:
        """Whether the present martingale has rung."""
        return self.last is not None and self.last.step > self.began

    def alarm(self) -> Alarm | None:
        """Return the alarm if it rings after the latest step, for the first time."""
        return self._ring(self.n, self.log) if self.log >= self.log_threshold and not self.rung else None

    def update_many(self, ps: Any) -> tuple[Floats, list[Alarm]]:
        """Bet on (m,) p-values in order; return the (m,) ln S after each, and the alarm if it rings."""
        path = self.bets.update_many(ps)
        if not (path < math.inf).all():
            self._refuse(float(path[~(path < math.inf)][0]))
        alarms = []
        rings = path >= self.log_threshold
        if rings.any() and not (self.last is not None and self.last.step > self.n + len(path) - self.bets.n):
            first = int(rings.argmax())
            alarms = [self._ring(self.n + first + 1, float(path[first]))]
        self.n += len(path)
        self.log = float(self.bets.log)
        return path, alarms

    def _sentence(self, step: int, log: float) -> str:
        return (
            f"At step {step} the odds against exchangeable data are {odds(log)}: the examples no longer look as if "
            f"they came in random order, so what the predictions promise may no longer hold. Theorem: {ONLINE} "
            f"this alarm ever rings with probability at most {self.level:g}."
        )


@component
class ChangeDetector(Detector):
    """Base of `CUSUM` and `ShiryaevRoberts`: after an alarm they start anew, with a fresh martingale.

    They also do so when the martingale has lost everything, as a user's own may: the next ratio of its capitals
    would be 0 / 0, and the bets of a fresh one are equally fair.
    """

    _by_sum: ClassVar[bool]

    threshold: float = param(above_one, default=1e4)

    def derive(self) -> None:
        """Compute the logarithm of the threshold."""
        self.log_threshold = math.log(self.threshold)

    @property
    def statement(self) -> str:
        """One sentence: the theorem about false alarms."""
        return (
            f"Theorem: {VALID} the mean number of steps to an alarm, from the start or from the alarm before, is "
            f"at least {self.threshold:,.12g}; so false alarms will come, but seldom."
        )

    def alarm(self) -> Alarm | None:
        """Return the alarm if it rings after the latest step, and start anew."""
        return self._restart() if self.log >= self.log_threshold else None

    def update_many(self, ps: Any) -> tuple[Floats, list[Alarm]]:
        """Bet on (m,) p-values in order; return the (m,) logs of the statistic after each, and the alarms."""
        clean = numbers("ps", ps)
        out = np.empty(len(clean))
        alarms = []
        done = 0
        chunk = CHUNK
        while done < len(clean):
            before = self.bets.log
            path = self.bets.update_many(clean[done : done + chunk])
            log = self.beginning if self.log >= self.log_threshold else self.log
            steps = scan(self._by_sum, log, before, path, self.log_threshold, out[done : done + len(path)])
            if not out[done + steps - 1] < math.inf:
                self._refuse(float(path[steps - 1]))
            # With frequent alarms few bets are made in vain.
            chunk = min(2 * chunk, CHUNK) if steps == len(path) else 2 * steps
            done += steps
            self.n += steps
            self.log = float(out[done - 1])
            if self.log >= self.log_threshold:
                alarms.append(self._restart())
            elif self.log == -math.inf:
                self.bets = self.martingale.fresh()
        return out, alarms

    def _restart(self) -> Alarm:
        self.bets = self.martingale.fresh()
        return self._ring(self.n, self.log)


def pair_of(first: Ville, again: ShiryaevRoberts) -> tuple[Floats, ...]:
    """Return the constants and the memories of two detectors that bet on the same, as compiled loops take them."""
    one: Any = first.bets
    other: Any = again.bets
    return *one.arrays, other.arrays[1]


def logs_of(first: Ville, again: ShiryaevRoberts) -> list[float]:
    """Return what a compiled loop needs of two detectors that bet on the same: see `venn._compiled.strangers`."""
    return [math.inf if first.rung else first.log_threshold, again.log_threshold, again.log, again.beginning]


@component
class CUSUM(ChangeDetector):
    """Page's CUSUM on a martingale: gamma_n = max over i < n of S_n / S_i; it rings at the threshold and starts anew.

    gamma_n = max(gamma_{n-1}, 1) S_n / S_{n-1}: what has been lost before a change does not count.

    Theorem: if the p-values are independent and uniform on [0, 1], the mean number of steps to an alarm is at least
    `threshold`, from the start and from each alarm to the next. The reason: gamma_n is at most the Shiryaev-Roberts
    statistic R_n, for which this is known. How soon it rings after a change is not a theorem.

    Parameters
    ----------
    martingale : Martingale
        A pattern, such as `SimpleJumper()`; a fresh one is used, and another one after each alarm.
    threshold : float > 1, default 10000
        The value of gamma_n, not its logarithm.

    Raises
    ------
    TypeError
        `martingale` is no martingale.
    ValueError
        The threshold is not a finite number above 1.

    References
    ----------
    Page (1954); Vovk, Gammerman & Shafer (2022), chapter 8.

    Examples
    --------
    >>> from venn.monitors.martingales import Power
    >>> alarm = CUSUM(Power(), threshold=50)
    >>> path, alarms = alarm.update_many([0.9] * 5 + [0.01] * 6)
    >>> [one.step for one in alarms]
    [8, 11]
    """

    _by_sum = False

    def _sentence(self, step: int, log: float) -> str:
        return (
            f"At step {step}, counted from the best moment to begin, the odds against exchangeable data are "
            f"{odds(log)}: the examples seem to have changed, so what the predictions promise may no longer hold. "
            f"Theorem: {ONLINE} such alarms come at least {self.threshold:,.12g} steps apart on average."
        )


@component
class ShiryaevRoberts(ChangeDetector):
    """The Shiryaev-Roberts statistic of a martingale, R_n = sum over i < n of S_n / S_i; it rings and starts anew.

    R_n = (R_{n-1} + 1) S_n / S_{n-1}, R_0 = 0: a new bet of 1 is made at every step.

    Theorem: if the p-values are independent and uniform on [0, 1], R_n - n is a martingale, so the mean number of
    steps to an alarm is at least `threshold`, from the start and from each alarm to the next. How soon it rings
    after a change is not a theorem.

    Parameters
    ----------
    martingale : Martingale
        A pattern, such as `SimpleJumper()`; a fresh one is used, and another one after each alarm.
    threshold : float > 1, default 10000
        The value of R_n, not its logarithm.

    Raises
    ------
    TypeError
        `martingale` is no martingale.
    ValueError
        The threshold is not a finite number above 1.

    References
    ----------
    Shiryaev (1963); Roberts (1966); Vovk, Gammerman & Shafer (2022), chapter 8.

    Examples
    --------
    >>> from venn.monitors.martingales import Power
    >>> alarm = ShiryaevRoberts(Power(), threshold=50)
    >>> path, alarms = alarm.update_many([0.9] * 5 + [0.01] * 6)
    >>> [one.step for one in alarms]
    [7, 10]
    """

    beginning = -math.inf
    _by_sum = True

    def _sentence(self, step: int, log: float) -> str:
        return (
            f"At step {step} the odds against exchangeable data, summed over all moments at which a change may "
            f"have begun, are {odds(log)}: the examples seem to have changed, so what the predictions promise may "
            f"no longer hold. Theorem: {ONLINE} such alarms come at least {self.threshold:,.12g} steps apart on "
            f"average."
        )


# --------------------------------------------------------------------------------------------------------------- change
# When a change began: an estimate from the latest steps, with its uncertainty.

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

    _numbers: Floats = state(array(None, finite=None), start=own(lambda _: np.empty(0)))

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
