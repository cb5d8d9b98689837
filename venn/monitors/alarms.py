"""Alarms: they ring when a test martingale's capital is enough evidence, with a bound on false alarms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from venn._compiled.martingales import scan
from venn.monitors.martingales import Martingale, pattern
from venn.monitors.sums import numbers
from venn.parameters import above_one, fraction, share
from venn.prediction import Floats
from venn.saved import Saved, component, own, param, part, restored_float, restored_int, restored_like, saved, state

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
