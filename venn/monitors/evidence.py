"""Evidence against a claim, one claim at a time: its martingale, its detectors, its band."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any, Protocol

from venn.monitors.alarms import Alarm, ShiryaevRoberts, Ville, odds
from venn.monitors.betting import Martingale
from venn.monitors.bounds import DeviationBand, ForwardEProcess
from venn.monitors.outcomes import Outcomes
from venn.monitors.sources import Source

PER_DECADE = log(10)
LOWEST = -1e6  # shown for a statistic of 0, whose logarithm plain data cannot hold
State = dict[str, Any]


class Evidence(Protocol):
    """What a monitor asks of evidence against one claim."""

    name: str

    def update(self, step: Outcomes, tau: float) -> list[Alarm]:
        """Take in one step; return the alarms that it rings."""

    def snapshot(self) -> list[State]:
        """Return one plain mapping for each detector."""

    @property
    def state(self) -> State:
        """All that later answers depend on, as plain data."""

    def restore(self, state: State) -> None:
        """Go on from a `state`."""


class Exchangeability:
    """p-values of a source, bet on by martingales; and the sum of its deviations within a band.

    Three detectors. `Ville`: one martingale from the first step on; it rings falsely, ever, with probability at
    most half the level, or the level where there is no band. `ShiryaevRoberts`: forgets what spoke for the claim, so
    that a change after a long quiet stretch is found as soon as one at the start; it rings falsely every
    `run_length` steps on average, or less often. `DeviationBand`: the sum of 1{event} minus its probability; half
    the level too, where the source looks at an event.

    Parameters
    ----------
    source : Source
    martingale : Martingale
        A pattern, from which fresh ones are made.
    level : float in (0, 1)
        Chance of a false alarm by `Ville` or the band, ever, both together.
    run_length : float > 1
    """

    def __init__(self, source: Source, martingale: Martingale, level: float, run_length: float) -> None:
        self.source = source
        self.name = source.name
        self.p_value: float | None = None  # the last one
        self.ville = Ville(martingale.fresh(), level / 2 if source.of_event else level)
        self.repeated = ShiryaevRoberts(martingale.fresh(), run_length)
        self.band = DeviationBand(level / 2)
        self._left = False  # the band, ever

    def update(self, step: Outcomes, tau: float) -> list[Alarm]:
        """Take in one step; return the alarms that it rings."""
        p, deviation = self.source.read(step, tau)
        self.p_value = p
        first, again = self.ville.update(p), self.repeated.update(p)
        rung = [] if first is None and again is None else [alarm for alarm in (first, again) if alarm is not None]
        if deviation is not None:
            self.band.update(deviation)
            if not self._left and self.band.outside:
                self._left = True
                rung.append(self._outside())
        return [replace(alarm, about=self.name) for alarm in rung] if rung else rung

    def _outside(self) -> Alarm:
        band = self.band
        # The bound turned round: the level at which the sum would just touch the band.
        excess = 2 * band.total**2 / band.n - log(2 * band.n * (band.n + 1))
        side = "more" if band.total > 0 else "less"
        return Alarm(
            band.n,
            "DeviationBand",
            excess,
            f"At step {band.n} the event has come {abs(band.total):.1f} times {side} often than its probabilities add "
            f"up to, beyond the {band.radius:.1f} that chance allows at any step with probability {1 - band.delta:g}. "
            f"{band.statement}",
        )

    def snapshot(self) -> list[State]:
        """Return one plain mapping for each detector."""
        shown: list[State] = [
            {
                "name": self.name,
                "detector": type(detector).__name__,
                "log10": max(detector.log / PER_DECADE, LOWEST),
                "threshold": detector.threshold / PER_DECADE,
                "alarms": detector.count,
                "p_value": self.p_value,
            }
            for detector in (self.ville, self.repeated)
        ]
        if self.band.n:
            shown.append(
                {
                    "name": self.name,
                    "detector": "DeviationBand",
                    "sum": self.band.total,
                    "radius": self.band.radius,
                    "alarms": int(self._left),
                }
            )
        return shown

    @property
    def state(self) -> State:
        """All that later answers depend on, as plain data."""
        return {
            "p_value": self.p_value,
            "left": self._left,
            "ville": self.ville.state,
            "repeated": self.repeated.state,
            "band": self.band.state,
        }

    def restore(self, state: State) -> None:
        """Go on from a `state`."""
        self.ville.restore(state["ville"])
        self.repeated.restore(state["repeated"])
        self.band.restore(state["band"])
        self.p_value, self._left = state["p_value"], bool(state["left"])


class PointForecasts:
    """A forward e-process against the probabilities that a point forecaster gives to its own predictions.

    Parameters
    ----------
    level : float in (0, 1)
        Chance of a false alarm, ever, when the forecasts are the true conditional probabilities.
    """

    name = "forecast"

    def __init__(self, level: float) -> None:
        self.process = ForwardEProcess()
        self.level = level
        self.threshold = -log(level)
        self._rung = False

    def update(self, step: Outcomes, tau: float) -> list[Alarm]:
        """Take in one step; return the alarm, if it rings now."""
        process = self.process
        process.update(step.predicted == step.truth, min(step.lower, 1.0), min(step.upper, 1.0))
        if self._rung or process.log < self.threshold:
            return []
        self._rung = True
        n = process.n
        return [
            Alarm(
                n,
                "ForwardEProcess",
                process.log,
                f"At step {n} the odds are {odds(process.log)} against the claim that the predicted labels are right "
                f"as often as the forecasts say. {process.statement}",
                self.name,
            )
        ]

    def snapshot(self) -> list[State]:
        """Return one plain mapping."""
        return [
            {
                "name": self.name,
                "detector": "ForwardEProcess",
                "log10": self.process.log / PER_DECADE,
                "threshold": self.threshold / PER_DECADE,
                "alarms": int(self._rung),
            }
        ]

    @property
    def state(self) -> State:
        """All that later answers depend on, as plain data."""
        return {"rung": self._rung, "process": self.process.state}

    def restore(self, state: State) -> None:
        """Go on from a `state`."""
        self.process.restore(state["process"])
        self._rung = bool(state["rung"])
