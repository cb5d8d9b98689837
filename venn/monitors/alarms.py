"""Alarms: they ring when a test martingale's capital is enough evidence, with a bound on false alarms."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from venn._compiled.martingales import cusum_after, scan, shiryaev_roberts_after
from venn.monitors.betting import Martingale, checked_martingale
from venn.monitors.checks import numbers
from venn.monitors.running import Running, State, checked_state, held_count
from venn.parameters import above_one, fraction
from venn.prediction import Floats
from venn.saved import held_float, saved

CHUNK = 4096  # p-values bet on before looking for an alarm; bets after the alarm are then made again
PER_DECADE = math.log(10)
NARROW = 0.02  # shares nearer to 0 or 1 get a third digit
LOWEST = -1e6  # shown for a statistic of 0: plain data cannot hold its logarithm
ONLINE = "on exchangeable data, by a predictor that is exact online and forgets nothing,"
VALID = f"if the p-values are independent and uniform on [0, 1], as {ONLINE}"


@saved
@dataclass(frozen=True)
class Alarm:
    """One ring of a detector.

    Attributes
    ----------
    step : int
        Number of the p-value at which it rang, counted from 1 since the detector was made.
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


class Detector(Running):
    """Base of the alarms: each has its own martingale, a statistic in logs, a threshold, and the last alarm.

    The martingale given is a pattern: the detector bets with a fresh one of the same kind. Its memory is that of
    the martingale and a few numbers; past alarms are counted, but only the last is kept.

    Attributes
    ----------
    n : int
        Number of p-values seen.
    count : int
        Number of alarms.
    last : Alarm or None
    log : float
        Natural logarithm of the statistic. After an alarm it can be read once; if the detector starts anew, it does not
        enter the next step.
    threshold : float
        Natural logarithm of the value at which the alarm rings.
    """

    threshold: float
    unnamed = 1

    def __init__(self, martingale: Martingale, start: float) -> None:
        self.martingale = checked_martingale(martingale).fresh()
        self._start = start
        self.log = start
        self.n = 0
        self.count = 0
        self.last: Alarm | None = None

    @property
    @abstractmethod
    def statement(self) -> str:
        """One sentence: the theorem about false alarms."""

    @abstractmethod
    def update(self, p: float) -> Alarm | None:
        """Bet on one p-value; return the alarm if it rings.

        Raises
        ------
        TypeError, ValueError
            `p` is not a number in [0, 1]; nothing changes.
        ValueError
            The logarithm of the martingale is NaN or infinity.
        """

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

    @abstractmethod
    def _sentence(self, step: int, log: float) -> str:
        """Return the sentence of an alarm."""

    def shown(self, name: str, p_value: float | None) -> State:
        """Return the statistic against its threshold as plain data, under the name of what is bet against."""
        return {
            "name": name, "detector": type(self).__name__, "log10": max(self.log / PER_DECADE, LOWEST),
            "threshold": self.threshold / PER_DECADE, "alarms": self.count, "p_value": p_value,
        }  # fmt: skip

    def begin_anew(self) -> None:
        """Bet with a fresh martingale from the next step on, as if it were the first; steps and alarms count on."""
        self.martingale = self.martingale.fresh()
        self.log = self._start

    @property
    def began(self) -> int:
        """Number of steps before the present martingale began to bet."""
        return self.n - self.martingale.n

    def _alarm(self, step: int, log: float) -> Alarm:
        return Alarm(step, type(self).__name__, log, self._sentence(step, log))

    def _ring(self, step: int, log: float) -> Alarm:
        self.count += 1
        self.last = self._alarm(step, log)
        return self.last

    def _refuse(self, log: float) -> NoReturn:
        # Only for a user's own martingale: ours are always finite.
        raise ValueError(f"martingale must have a logarithm that is a number below infinity, got {log!r}: {self!r}")

    def _held(self) -> State:
        """Return the learned state; the martingale bets since the step `began`. The log of 0 is None."""
        return {
            "n": self.n,
            "began": self.began,
            "count": self.count,
            "log": None if self.log == -math.inf else self.log,
            "last": None if self.last is None else {"step": self.last.step, "log_evidence": self.last.log_evidence},
            "martingale": self.martingale.state,
        }

    def take_over(self, held: State) -> None:
        """Go on from a `state`, having seen nothing."""
        self.n, self.count = held_count("n", held["n"]), held_count("count", held["count"])
        self.log = -math.inf if held["log"] is None else held_float("state['log']", held["log"])
        self.last = None
        if held["last"] is not None:
            checked_state("state['last']", held["last"], {"step": 0, "log_evidence": 0.0})
            step, log = held["last"]["step"], held["last"]["log_evidence"]
            self.last = self._alarm(held_count("last", step), held_float("state['last']", log))
        self.martingale.restore(held["martingale"])


@saved
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

    def __init__(self, martingale: Martingale, level: float = 0.01) -> None:
        self.level = fraction("level", level)
        self.threshold = -math.log(self.level)
        super().__init__(martingale, 0.0)

    @property
    def statement(self) -> str:
        """One sentence: the theorem about false alarms."""
        return f"Theorem (Ville): {VALID} the chance that this alarm ever rings is at most {self.level:g}."

    @property
    def rung(self) -> bool:
        """Whether the present martingale has rung."""
        return self.last is not None and self.last.step > self.began

    def update(self, p: float) -> Alarm | None:
        """Bet on one p-value; return the alarm if it rings now, for the first time."""
        self.martingale.update(p)
        log = float(self.martingale.log)
        if not log < math.inf:
            self._refuse(log)
        self.n += 1
        self.log = log
        if log >= self.threshold and not self.rung:
            return self._ring(self.n, log)
        return None

    def update_many(self, ps: Any) -> tuple[Floats, list[Alarm]]:
        """Bet on (m,) p-values in order; return the (m,) ln S after each, and the alarm if it rings."""
        path = self.martingale.update_many(ps)
        if not (path < math.inf).all():
            self._refuse(float(path[~(path < math.inf)][0]))
        alarms = []
        rings = path >= self.threshold
        if rings.any() and not (self.last is not None and self.last.step > self.n + len(path) - self.martingale.n):
            first = int(rings.argmax())
            alarms = [self._ring(self.n + first + 1, float(path[first]))]
        self.n += len(path)
        self.log = float(self.martingale.log)
        return path, alarms

    def _sentence(self, step: int, log: float) -> str:
        return (
            f"At step {step} the odds against exchangeable data are {odds(log)}: the examples no longer look as if "
            f"they came in random order, so what the predictions promise may no longer hold. Theorem: {ONLINE} "
            f"this alarm ever rings with probability at most {self.level:g}."
        )


class ChangeDetector(Detector):
    """Base of `CUSUM` and `ShiryaevRoberts`: after an alarm they start anew, with a fresh martingale.

    They also do so when the martingale has lost everything, as a user's own may: the next ratio of its capitals
    would be 0 / 0, and the bets of a fresh one are equally fair.
    """

    held_as = (("threshold", "run_length"),)

    _by_sum: ClassVar[bool]
    _after: ClassVar[Any]  # compiled: one step of the statistic

    def __init__(self, martingale: Martingale, threshold: float, start: float) -> None:
        self.run_length = above_one("threshold", threshold)
        self.threshold = math.log(threshold)
        super().__init__(martingale, start)

    @property
    def statement(self) -> str:
        """One sentence: the theorem about false alarms."""
        return (
            f"Theorem: {VALID} the mean number of steps to an alarm, from the start or from the alarm before, is "
            f"at least {self.run_length:,.12g}; so false alarms will come, but seldom."
        )

    def update(self, p: float) -> Alarm | None:
        """Bet on one p-value; return the alarm if it rings, after which the next step starts anew."""
        martingale = self.martingale
        before = martingale.log
        martingale.update(p)
        start = self._start if self.log >= self.threshold else self.log
        log = float(self._after(start, martingale.log - before))
        if not log < math.inf:
            self._refuse(martingale.log)
        self.log = log
        self.n += 1
        if log >= self.threshold:
            return self._restart()
        if log == -math.inf:
            self.martingale = martingale.fresh()
        return None

    def update_many(self, ps: Any) -> tuple[Floats, list[Alarm]]:
        """Bet on (m,) p-values in order; return the (m,) logs of the statistic after each, and the alarms."""
        clean = numbers("ps", ps)
        out = np.empty(len(clean))
        alarms = []
        done = 0
        chunk = CHUNK
        while done < len(clean):
            before = self.martingale.log
            path = self.martingale.update_many(clean[done : done + chunk])
            log = self._start if self.log >= self.threshold else self.log
            steps = scan(self._by_sum, log, before, path, self.threshold, out[done : done + len(path)])
            if not out[done + steps - 1] < math.inf:
                self._refuse(float(path[steps - 1]))
            # With frequent alarms few bets are made in vain.
            chunk = min(2 * chunk, CHUNK) if steps == len(path) else 2 * steps
            done += steps
            self.n += steps
            self.log = float(out[done - 1])
            if self.log >= self.threshold:
                alarms.append(self._restart())
            elif self.log == -math.inf:
                self.martingale = self.martingale.fresh()
        return out, alarms

    def _restart(self) -> Alarm:
        self.martingale = self.martingale.fresh()
        return self._ring(self.n, self.log)


@saved
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
        The value of gamma_n, not its logarithm; the attribute `threshold` is the logarithm.

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
    _after = staticmethod(cusum_after)

    def __init__(self, martingale: Martingale, threshold: float = 1e4) -> None:
        super().__init__(martingale, threshold, 0.0)

    def _sentence(self, step: int, log: float) -> str:
        return (
            f"At step {step}, counted from the best moment to begin, the odds against exchangeable data are "
            f"{odds(log)}: the examples seem to have changed, so what the predictions promise may no longer hold. "
            f"Theorem: {ONLINE} such alarms come at least {self.run_length:,.12g} steps apart on average."
        )


@saved
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
        The value of R_n, not its logarithm; the attribute `threshold` is the logarithm.

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

    _by_sum = True
    _after = staticmethod(shiryaev_roberts_after)

    def __init__(self, martingale: Martingale, threshold: float = 1e4) -> None:
        super().__init__(martingale, threshold, -math.inf)

    def _sentence(self, step: int, log: float) -> str:
        return (
            f"At step {step} the odds against exchangeable data, summed over all moments at which a change may "
            f"have begun, are {odds(log)}: the examples seem to have changed, so what the predictions promise may "
            f"no longer hold. Theorem: {ONLINE} such alarms come at least {self.run_length:,.12g} steps apart on "
            f"average."
        )
