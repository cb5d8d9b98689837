"""Evidence against a claim of a predictor: martingales with their detectors, and a band for sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import inf, log, nan
from typing import Any, NamedTuple

import numpy as np

from venn._compiled import evidence as compiled
from venn.monitors.alarms import PER_DECADE, Alarm, ShiryaevRoberts, Ville, odds
from venn.monitors.bounds import BETS, DeviationBand, ForwardEProcess
from venn.monitors.change_point import MEMORY, ChangePoint, Trace
from venn.monitors.curves import Outcomes, outcome
from venn.monitors.martingales import CompositeJumper, Martingale, pattern
from venn.monitors.sources import Source
from venn.monitors.sums import number
from venn.parameters import above_one, fraction, integer, optional, with_methods
from venn.prediction import Floats
from venn.saved import Saved, component, own, param, restored_bool, restored_float, restored_like, state

WAITING = 1024  # steps that wait until a trace is asked for
AT_ONCE = WAITING - 1  # steps that a loop makes in one call, at most
JUMPERS = compiled.jumpers_step, compiled.jumpers_steps
FORECASTS = compiled.forecasts_step, compiled.forecasts_steps


class Packed(NamedTuple):
    """The inputs of a compiled loop for one piece of evidence."""

    loop: Any  #: of one step, and of several: see `venn._compiled.evidence`
    shared: tuple[float, ...]  #: further inputs, the same for all pieces
    row: list[float]  #: the beginning of the piece's row
    bets: tuple[Any, ...]  #: whose memories follow


class Scored(NamedTuple):
    """Predictions and outcomes of n steps in numbers, as a compiled loop reads them."""

    truths: Floats  #: (n,) codes of the true labels
    predicted: Floats  #: (n,) codes of the predicted labels
    numbers: Floats  #: (n, 9), see `venn._compiled.outcomes`
    rows: Floats  #: (n, c)

    def part(self, which: slice) -> Scored:
        """Return some of the steps; views."""
        return Scored(*(column[which] for column in self))

    @classmethod
    def of(cls, steps: Outcomes) -> Scored:
        """Return the steps of a record."""
        truths, predicted = (np.array(codes, np.float64) for codes in steps[:2])
        numbers = np.column_stack(steps[2:-1]).astype(np.float64)
        return cls(truths, predicted, numbers, np.ascontiguousarray(steps.row.T))


class Evidence(Saved, ABC):
    """Base of what gathers evidence against one claim, step by step."""

    memory: int  #: number of latest steps among which the beginning of a change is looked for
    name: str
    speaks: str  #: what it bets on, in plain words
    words: str  #: what its numbers count, for sentences
    trace: Trace

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of steps."""

    @abstractmethod
    def update(self, step: Outcomes, tau: float) -> list[Alarm]:
        """Process one step; return the alarms that it rings."""

    def packed(self) -> Packed | None:
        """Return what a compiled loop needs to do the same; None if no loop does, as with a source of a user's own."""
        return None

    def went_on(self, row: Floats, latest: Floats) -> None:
        """Update after steps of a compiled loop: its row after them, and the number of each step for the trace."""

    @abstractmethod
    def alarms(self) -> list[Alarm]:
        """Return the alarms that ring after the latest step."""

    @abstractmethod
    def begin_anew(self) -> None:
        """Bet from the next step on as if it were the first, if the proof needs a fresh start."""

    @abstractmethod
    def near(self, slack: float, again: bool) -> str | None:
        """Return a detector whose statistic is within `slack` of its threshold, in logarithms; None if none is.

        `again`: after an alarm only detectors that start anew count; others may still hold their capital.
        """

    def change(self, began: Sequence[int] = (), anew: int = 0) -> ChangePoint:
        """Return when a change began, if there was one, later than step `anew`; bets began anew after those `began`."""
        return self.trace.change(self.n, began, anew)

    def departure(self, size: int) -> float:
        """Return ln(2 / chance), where chance bounds the probability that so many latest steps depart as much."""
        return self.trace.departure(size)

    def told(self, size: int) -> str | None:
        """Return what speaks against the claim in so many latest steps, or in all remembered; None if nothing does."""
        return self.trace.told(size, self.words) or self.trace.told(self.memory, self.words)

    @abstractmethod
    def snapshot(self) -> list[dict[str, Any]]:
        """Return one plain mapping for each detector."""


def against(detector: str, about: str) -> str:
    """Return a detector and the claim that it bets against, in words."""
    return f"{detector} against the {about}" if about else detector


def words_of(source: Source) -> str:
    """Return what the numbers of a source count, in words; a user's own need not say it."""
    return getattr(source, "words", f"the event of the {source.name} came" if source.of_event else source.name)


def _event(source: Source) -> tuple[float, float] | None:
    """Return the inputs of a compiled loop for a source; None for an unknown class, subclasses included."""
    event = vars(type(source)).get("loop")
    return None if event is None else (event, getattr(source, "code", 0))


def _ville(one: Exchangeability) -> Ville:
    return Ville(one.martingale, one.level / 2 if one.source.of_event else one.level)


def _band(one: Exchangeability) -> DeviationBand | None:
    return DeviationBand(one.level / 2) if one.source.of_event else None


@component
class Exchangeability(Evidence):
    """Bets martingales on the p-values of a source, and compares the sum of its deviations with a band.

    There are three detectors. `Ville`: one martingale from the first step on; it ever rings falsely with probability
    at most half the level, or the level if there is no band. `ShiryaevRoberts`: forgets evidence in favour of the
    claim, so a change after a long calm is found as soon as one at the start; it rings falsely every `run_length` steps
    on average, or less often. `DeviationBand`, if the source looks at an event: the sum of 1{event} minus its
    probability; also with half the level.

    Parameters
    ----------
    source : Source
    martingale : Martingale
        A pattern, from which fresh ones are made.
    level : float in (0, 1)
        Probability that `Ville` or the band ever rings falsely.
    run_length : float > 1
    memory : int >= 1, default 1000
        Number of latest steps among which the beginning of a change is looked for.
    """

    source: Source = param(with_methods, "a source object, such as RealisedRow()", "read")
    martingale: Martingale = param(pattern)
    level: float = param(fraction)
    run_length: float = param(above_one)
    memory: int = param(integer, 1, default=MEMORY)

    p_value: float | None = state(optional, restored_float, start=None)  # the last one
    ville: Ville = state(restored_like, start=own(_ville))
    repeated: ShiryaevRoberts = state(
        restored_like, start=own(lambda one: ShiryaevRoberts(one.martingale, one.run_length))
    )
    band: DeviationBand | None = state(restored_like, start=own(_band))
    _left: bool = state(restored_bool, start=False)  # the band, ever
    trace: Trace = state(restored_like, start=own(lambda one: Trace(one.source.of_event, one.memory)))

    def derive(self) -> None:
        """Find the words."""
        self.name, self.words = self.source.name, words_of(self.source)
        self.speaks = "probabilities" if self.source.of_event else "p-values"

    @property
    def n(self) -> int:
        """Number of steps."""
        return self.ville.n

    def update(self, step: Outcomes, tau: float) -> list[Alarm]:
        """Process one step; return the alarms that it rings."""
        p, deviation = self.source.read(step, tau)
        # Sources may be a user's own: both numbers are checked before anything changes.
        if type(p) is not float or not 0.0 <= p <= 1.0:
            p = float(number(f"p-value of {self.source!r}", p))
        band = self.band
        if band is not None:
            if type(deviation) is not float or not -1.0 <= deviation <= 1.0:
                deviation = number(f"deviation of {self.source!r}", deviation, -1.0)
            band.update(deviation)
        self.p_value = p
        self.trace.add(p if deviation is None or band is None else deviation)
        return self._rung(self.ville.update(p), self.repeated.update(p))

    def packed(self) -> Packed | None:
        """Return what a compiled loop needs, where it knows source and martingale."""
        event, band, repeated = _event(self.source), self.band, self.repeated
        if event is None or type(self.martingale) is not CompositeJumper:
            return None
        first = inf if self.ville.rung else self.ville.log_threshold
        start = repeated.beginning if repeated.log >= repeated.log_threshold else repeated.log
        row = [*event, nan, nan, first, repeated.log_threshold, start]
        row += [nan] * (compiled.BETS - compiled.LEVEL) if band is None else [*band.constants, self._left, nan, nan]
        bands = () if band is None else (band,)
        return Packed(JUMPERS, tuple(self.martingale.jumps), row, (*bands, self.ville.bets, repeated.bets))

    def went_on(self, row: Floats, latest: Floats) -> None:
        """Update after steps of a compiled loop."""
        self.p_value = row.item(compiled.P)
        self.ville.went_on(len(latest), self.ville.bets.log)
        self.repeated.went_on(len(latest), row.item(compiled.SUM))
        self.trace.extend(latest)

    def bet(self, ps: Floats, log: float) -> None:
        """Update after p-values, NaN for none, on which a compiled loop has bet; `log` is of the second one's sum."""
        self.trace.extend(ps)
        there = ps[~np.isnan(ps)]
        if len(there):
            self.p_value = float(there[-1])
            self.ville.went_on(len(there), self.ville.bets.log)
            self.repeated.went_on(len(there), log)

    def alarms(self) -> list[Alarm]:
        """Return the alarms that ring after the latest step."""
        return self._rung(self.ville.alarm(), self.repeated.alarm())

    def _rung(self, first: Alarm | None, again: Alarm | None) -> list[Alarm]:
        """Return the alarms of both martingales that ring now, and that of the band."""
        band = self.band
        left = band is not None and not self._left and band.outside
        if first is None and again is None and not left:
            return []
        rung = [alarm for alarm in (first, again) if alarm is not None]
        if band is not None and left:
            self._left = True
            rung.append(self._outside(band))
        return [replace(alarm, about=self.name) for alarm in rung]

    def begin_anew(self) -> None:
        """Bet from the next step on as if it were the first; the latest steps stay known."""
        self.ville.begin_anew()
        self.repeated.begin_anew()
        self.band, self._left = None if self.band is None else self.band.fresh(), False

    def near(self, slack: float, again: bool) -> str | None:
        """Return the detector nearest to its threshold, if within `slack`; `again`: only `ShiryaevRoberts` counts."""
        nearest = [(self.repeated.log - self.repeated.log_threshold, "ShiryaevRoberts")]
        if not again and not self.ville.rung:
            nearest.append((self.ville.log - self.ville.log_threshold, "Ville"))
        if not again and self.band is not None and self.band.n and not self._left:
            nearest.append((_excess(self.band) + log(self.band.delta), "DeviationBand"))
        gap, detector = max(nearest)
        return against(detector, self.name) if gap >= -slack else None

    def _outside(self, band: DeviationBand) -> Alarm:
        excess = _excess(band)
        side = "more" if band.total > 0 else "fewer"
        sentence = (
            f"At step {self.n} the event has come {abs(band.total):.1f} times {side} than its probabilities add up to, "
            f"beyond the {band.radius:.1f} that chance allows at any step with probability {1 - band.delta:g}. "
            f"{band.statement}"
        )
        return Alarm(self.n, "DeviationBand", excess, sentence)

    def snapshot(self) -> list[dict[str, Any]]:
        """Return one plain mapping for each detector."""
        shown = [detector.shown(self.name, self.p_value) for detector in (self.ville, self.repeated)]
        if self.band is not None and self.band.n:
            numbers = {"sum": self.band.total, "radius": self.band.radius}
            shown.append(_shown(self.name, "DeviationBand", numbers, self._left))
        return shown


def _shown(name: str, detector: str, numbers: dict[str, float], rung: bool) -> dict[str, Any]:
    return {"name": name, "detector": detector, **numbers, "alarms": int(rung)}


def _excess(band: DeviationBand) -> float:
    """Return the bound inverted: minus the logarithm of the level at which the sum would just touch the band."""
    return 2 * band.total**2 / band.n - log(2 * band.n * (band.n + 1))


@component
class PointForecasts(Evidence):
    """A forward e-process against the probabilities that a point forecaster gives to one event, such as its hits.

    Parameters
    ----------
    source : Source
        Of an event.
    level : float in (0, 1)
        Probability of ever a false alarm, if the forecasts are the true conditional probabilities.
    memory : int >= 1, default 1000
        Number of latest steps among which the beginning of a change is looked for.
    """

    speaks = "point forecasts"

    source: Source = param(with_methods, "a source object, such as RealisedRow()", "read")
    level: float = param(fraction)
    memory: int = param(integer, 1, default=MEMORY)

    process: ForwardEProcess = state(restored_like, start=own(lambda _: ForwardEProcess()))
    _rung: bool = state(restored_bool, start=False)
    trace: Trace = state(restored_like, start=own(lambda one: Trace(True, one.memory)))

    def derive(self) -> None:
        """Find the words, and the logarithm of the threshold."""
        self.name, self.words = self.source.name, words_of(self.source)
        self.log_threshold = -log(self.level)

    @property
    def n(self) -> int:
        """Number of steps."""
        return self.process.n

    def update(self, step: Outcomes, tau: float) -> list[Alarm]:
        """Process one step; return the alarm, if it rings now."""
        process, deviation = self.process, self.source.read(step, tau)[1]
        happened = deviation > 0
        claimed = 1.0 - deviation if happened else -deviation
        process.update(happened, claimed, claimed)
        self.trace.add(deviation)
        return self.alarms()

    def packed(self) -> Packed | None:
        """Return what a compiled loop needs, where it knows the source."""
        event = _event(self.source)
        if event is None:
            return None
        row = [*event, nan, nan, inf if self._rung else self.log_threshold, nan, nan, nan]
        return Packed(FORECASTS, BETS, row, (self.process,))

    def went_on(self, row: Floats, latest: Floats) -> None:
        """Update after steps of a compiled loop."""
        self.trace.extend(latest)

    def alarms(self) -> list[Alarm]:
        """Return the alarm that rings after the latest step."""
        process = self.process
        if self._rung or process.log < self.log_threshold:
            return []
        self._rung = True
        n = process.n
        sentence = (
            f"At step {n} the odds are {odds(process.log)} against the claim that {self.words} as often as the "
            f"forecasts say. {process.statement}"
        )
        return [Alarm(n, "ForwardEProcess", process.log, sentence, self.name)]

    def begin_anew(self) -> None:
        """Do nothing: the claim that probabilities are the true ones stays the same when the predictor begins anew."""

    def near(self, slack: float, again: bool) -> str | None:
        """Return the process if it has not rung but is within `slack` of its threshold; else None."""
        near = not again and not self._rung and self.process.log >= self.log_threshold - slack
        return against("ForwardEProcess", self.name) if near else None

    def snapshot(self) -> list[dict[str, Any]]:
        """Return one plain mapping."""
        numbers = {"log10": self.process.log / PER_DECADE, "threshold": self.log_threshold / PER_DECADE}
        return [_shown(self.name, "ForwardEProcess", numbers, self._rung)]


class AllEvidence:
    """Updates several pieces of evidence together: in one compiled loop if it knows all of them, else one by one.

    The loop updates the memories of bets in place. `settle` brings the rest up to date: call it before reading or
    changing a piece.

    Parameters
    ----------
    pieces : sequence of Evidence
    """

    def __init__(self, pieces: Sequence[Evidence]) -> None:
        self._pieces = pieces
        self._waiting = 0  # steps that the pieces do not know yet
        self._tried: tuple[int, int, Floats] | None = None  # steps that were tried, where, and memories after them
        self._gather()

    def __reduce__(self) -> Any:
        return AllEvidence, (self._pieces,)  # the memories of copies are arrays of their own

    def _gather(self) -> None:
        """Put what the loop needs of all pieces into one array."""
        packed = [one for one in (piece.packed() for piece in self._pieces) if one is not None]
        self._loop = None
        if not packed or len(packed) < len(self._pieces) or len({one[:2] for one in packed}) > 1:
            return
        (self._loop, self._steps), self._shared = packed[0].loop, np.array(packed[0].shared)
        self._latest = np.empty((WAITING, len(packed)))
        self._rows = np.zeros((len(packed), max(len(one.row) + sum(bets.size for bets in one.bets) for one in packed)))
        for row, one in zip(self._rows, packed, strict=True):
            row[: len(one.row)], place = one.row, len(one.row)
            for bets in one.bets:
                bets.move(row[place : place + bets.size])
                place += bets.size

    def settle(self) -> None:
        """Bring all pieces up to date with the steps of the loop."""
        if self._waiting:
            for row, latest, piece in zip(self._rows, self._latest[: self._waiting].T, self._pieces, strict=True):
                piece.went_on(row, latest)
            self._waiting = 0

    @property
    def singly(self) -> bool:
        """Whether pieces are updated one by one, since no loop knows all of them."""
        return self._loop is None and len(self._pieces) > 0

    def calm(self, scored: Scored, taus: Floats) -> int:
        """Return the number of steps before one at which a piece may ring; no step is made."""
        if not self._pieces:
            return len(taus)
        self._tried = None
        if self._loop is None:
            return 0
        if self._waiting + len(taus) >= WAITING:
            self.settle()
        rows = self._rows.copy()
        found = int(self._steps(self._shared, rows, self._latest, self._waiting, *scored, taus))
        if found == len(taus):
            self._tried = found, self._waiting, rows
        return found

    def go_on(self, scored: Scored, taus: Floats) -> None:
        """Make at most as many steps as `calm` has just returned; `settle` may have been called in between."""
        if not self._pieces:
            return
        if self._tried is not None and self._tried[:2] == (len(taus), self._waiting):
            self._rows[:] = self._tried[2]
        else:
            self._steps(self._shared, self._rows, self._latest, self._waiting, *scored, taus)
        self._tried = None
        self._waiting += len(taus)

    def begin_anew(self) -> None:
        """Let all bets begin anew."""
        self.settle()
        for piece in self._pieces:
            piece.begin_anew()
        self._gather()

    def update(
        self, truth: Any, predicted: Any, numbers: Floats, row: Floats, tau: float
    ) -> list[tuple[Evidence, list[Alarm]]]:
        """Process one step of these codes and scores; return the pieces that ring, and their alarms."""
        found = compiled.REFUSED
        if self._loop is not None:
            codes = float(truth), float(predicted)
            found = self._loop(self._shared, self._rows, self._latest, self._waiting, *codes, numbers, row, tau)
            self._waiting += found != compiled.REFUSED
            if found == compiled.CALM and self._waiting < WAITING:
                return []
            self.settle()
        try:
            if found == compiled.REFUSED:  # without a loop; or else a number that the piece refuses in words
                step = outcome(truth, predicted, numbers, row)
                rung = [(piece, piece.update(step, tau)) for piece in self._pieces]
            else:
                rung = [(piece, piece.alarms()) for piece in self._pieces]
        finally:
            if self._loop is not None and found != compiled.CALM:
                self._gather()
        return [one for one in rung if one[1]]
