"""One object that watches a predictor: how it fares, whether what it claims holds, and an alarm when it stops."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from typing import Any

import numpy as np

from venn._compiled.outcomes import WIDTH, add_graded, add_set
from venn.monitors.alarms import Alarm
from venn.monitors.betting import Martingale
from venn.monitors.calibration import CalibrationBins
from venn.monitors.evidence import Evidence, Exchangeability, PointForecasts, State
from venn.monitors.martingales import CompositeJumper
from venn.monitors.outcomes import KINDS, SETS, Outcomes, Scorer, outcome
from venn.monitors.running import probability
from venn.monitors.sequences import StitchedBound
from venn.monitors.sources import Source, usual_sources
from venn.prediction import Label, Prediction, class_codes
from venn.smoothing import Smoothing

LEVELS = (0.01, 0.05, 0.1, 0.2)  # of significance, for prediction sets
LEVEL_ARRAY = np.array(LEVELS)
KEPT = 100  # alarms
GRADED = (
    "accuracy", "lower", "upper", "log_loss", "brier", "confidence", "realised_accuracy", "realised", "clipped",
)  # fmt: skip
SETS_GRADED = ("accuracy", "credibility", "confidence", *(f"{what}_{e}" for what in ("error", "size") for e in LEVELS))


class Monitor:
    """Watches one predictor: curves, calibration, evidence against its claims, alarms.

    What it bets on follows from what the predictions say is guaranteed. For "predicted label" and "realised row" (Venn
    predictors) it is the event that the predicted label, or the best class of the realised row, is right; for "each
    class" one event for every class; for "error rate" (conformal predictors) the p-values of the true labels. Point
    forecasts guarantee nothing: there a forward e-process bets against the claim that they are the true conditional
    probabilities. Where no statement would be a theorem, as for plain p-values, no evidence is gathered and there
    are curves and calibration only.

    Theorems. On exchangeable data, and for point forecasts that are the conditional probabilities, the chance that
    any of the detectors `Ville`, `DeviationBand` and `ForwardEProcess` ever rings is at most `level`. The detector
    `ShiryaevRoberts`, which finds changes after a long quiet time, rings falsely every `run_length` steps on average or
    less often, for each source of p-values. Calibration error and curves are description.

    Parameters
    ----------
    classes : sequence of c labels
        Those of the predictor.
    level : float in (0, 1), default 0.01
        Chance of a false alarm ever, by the detectors above together.
    run_length : float > 1, default 100000
        Least mean number of steps to a false alarm of `ShiryaevRoberts`.
    window : int >= 1, default 1000
        Latest steps over which the snapshot gives means beside those of all steps.
    clip : float in (0, 1), default 1e-15
        Probabilities of the true label below it count as this in the log loss; how many is said.
    seed : int >= 0, default 0
        Of the random numbers that break ties in p-values.
    martingale : Martingale, optional
        A pattern for the bets, by default `CompositeJumper()`.
    sources : sequence of Source, optional
        Instead of those that follow from the guarantee.

    Attributes
    ----------
    n : int
        Number of steps.
    alarms : tuple of Alarm
        The latest 100, oldest first.
    count : int
        Number of alarms so far.

    Raises
    ------
    ValueError, TypeError
        A parameter is not what it must be.

    Examples
    --------
    >>> import numpy as np
    >>> from venn.prediction import Multiprobability
    >>> monitor = Monitor(["no", "yes"])
    >>> rows = np.array([[0.9, 0.1], [0.8, 0.2]])
    >>> for step in range(30):  # it claims 0.8 to 0.9 for "no", and is always wrong
    ...     for alarm in monitor.update(Multiprobability(rows, ["no", "yes"]), "yes"):
    ...         print(alarm.detector, "rings against the", alarm.about)
    DeviationBand rings against the realised row
    Ville rings against the realised row
    """

    def __init__(
        self,
        classes: Sequence[Label],
        *,
        level: float = 0.01,
        run_length: float = 100_000,
        window: int = 1000,
        clip: float = 1e-15,
        seed: int = 0,
        martingale: Martingale | None = None,
        sources: Sequence[Source] | None = None,
    ) -> None:
        self._codes = class_codes(classes)
        self.level = probability("level", level)
        if isinstance(run_length, bool) or not isinstance(run_length, int | float) or not 1 < run_length < inf:
            raise ValueError(f"run_length must be a finite number above 1, got {run_length!r}")
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise ValueError(f"window must be an integer >= 1, got {window!r}")
        self.run_length = float(run_length)
        self.window = window
        self.clip = probability("clip", clip)
        self.martingale = CompositeJumper() if martingale is None else martingale
        if isinstance(martingale, type | str) or not callable(getattr(self.martingale, "update_many", None)):
            raise TypeError(f"martingale must be a martingale object, such as SimpleJumper(), got {martingale!r}")
        self.sources = None if sources is None else tuple(sources)
        for source in self.sources or ():
            if isinstance(source, type) or not callable(getattr(source, "read", None)):
                raise TypeError(f"sources must be source objects, such as RealisedRow(), got {source!r}")
        self._smoothing = Smoothing(seed)
        self._scorer = Scorer("the predictor", self.classes)
        self._numbers, self._row = np.empty(WIDTH), np.empty(len(self.classes))
        self.n = 0
        self.count = 0
        self._alarms: deque[Alarm] = deque(maxlen=KEPT)
        self._evidence: tuple[Evidence, ...] = ()
        self._accuracy = StitchedBound(0.05, empirical=True)
        self._calibration = CalibrationBins()
        self._start(None)

    def _start(self, kind: str | None) -> None:
        """Make room for the columns of a kind of prediction."""
        self._names = SETS_GRADED if kind == SETS else GRADED
        self._sums = np.zeros(len(self._names))
        self._ring = np.zeros((self.window, len(self._names)))

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return tuple(self._codes)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest alarms, oldest first."""
        return tuple(self._alarms)

    def __repr__(self) -> str:
        return (
            f"Monitor({list(self.classes)!r}, level={self.level!r}, run_length={self.run_length!r}, "
            f"window={self.window!r}, clip={self.clip!r}, seed={self._smoothing.seed}, "
            f"martingale={self.martingale!r}, sources={self.sources!r})"
        )

    # ------------------------------------------------------------------ updating

    def update(self, prediction: Prediction, y: Label) -> tuple[Alarm, ...]:
        """Take in a prediction and the label that was then revealed; return the alarms that ring now.

        Parameters
        ----------
        prediction : Forecast, Multiprobability, ClassIntervals or PredictionSet
            All of one kind, with the monitor's classes and one guarantee.
        y : one of the classes

        Raises
        ------
        TypeError
            Not a prediction, or one of another kind than the first.
        ValueError
            An unknown label, other classes, another guarantee, or numbers that are no probabilities. In all
            cases the monitor is as before.
        """
        try:
            truth = self._codes[y]
        except (KeyError, TypeError):
            raise ValueError(f"y must be one of the classes {list(self._codes)!r}, got {y!r}") from None
        scorer = self._scorer
        predicted = scorer.score(prediction, truth, self._numbers, self._row)
        if prediction.guaranteed != scorer.guaranteed:
            if scorer.guaranteed is not None:
                raise ValueError(
                    f"prediction must guarantee {scorer.guaranteed!r} as the first one did, got "
                    f"{prediction.guaranteed!r}: each predictor needs a monitor of its own"
                )
            self._begin(type(prediction).__name__, prediction.guaranteed)
        return self._take(outcome(truth, predicted, self._numbers, self._row))

    def follow(self, steps: Outcomes, kind: str, guaranteed: str) -> tuple[Alarm, ...]:
        """Take in n steps of a record, as `update` would have; return all alarms that rang.

        Parameters
        ----------
        steps : Outcomes
            Of n steps, as `Record.outcomes` gives them.
        kind, guaranteed : str
            Of the predictions, as `Record.kinds` and `Record.guaranteed` say.
        """
        if self._scorer.kind is None:
            self._begin(kind, guaranteed)
        elif (self._scorer.kind, self._scorer.guaranteed) != (kind, guaranteed):
            raise ValueError(
                f"steps must be of kind {self._scorer.kind!r} and guarantee {self._scorer.guaranteed!r}, "
                f"got {kind!r} and {guaranteed!r}"
            )
        rung: list[Alarm] = []
        numbers, rows = np.column_stack(steps[2:-1]), steps.row.T
        for place, (truth, predicted) in enumerate(zip(steps.truth.tolist(), steps.predicted.tolist(), strict=True)):
            self._numbers[:], self._row[:] = numbers[place], rows[place]
            rung += self._take(outcome(truth, predicted, self._numbers, self._row))
        return tuple(rung)

    def _begin(self, kind: str, guaranteed: str) -> None:
        """Choose the evidence that suits the first prediction."""
        sources = usual_sources(guaranteed, self.classes) if self.sources is None else self.sources
        for source in sources:
            if not source.suits(kind, guaranteed):
                raise ValueError(f"sources must suit predictions that guarantee {guaranteed!r}, got {source!r}")
        if sources:
            share = self.level / len(sources)
            self._evidence = tuple(
                Exchangeability(source, self.martingale, share, self.run_length) for source in sources
            )
        elif kind == "Forecast":
            self._evidence = (PointForecasts(self.level),)
        self._scorer.kind, self._scorer.guaranteed = kind, guaranteed
        self._start(kind)

    def _take(self, step: Outcomes) -> tuple[Alarm, ...]:
        hit = step.predicted == step.truth
        tau = self._smoothing.at(self.n)
        ring = self._ring[self.n % self.window]
        if self._scorer.kind == SETS:
            add_set(self._numbers, self._row, hit, LEVEL_ARRAY, self._sums, ring)
        else:
            realised_hit = step.realised_class == step.truth
            add_graded(self._numbers, hit, realised_hit, self.clip, self._sums, ring)
            self._calibration.update(min(step.confidence, 1.0), hit)
        self._accuracy.update(hit)
        self.n += 1
        rung: list[Alarm] = []
        for evidence in self._evidence:
            rung += evidence.update(step, tau)
        if rung:
            self._alarms.extend(rung)
            self.count += len(rung)
        return tuple(rung)

    # ------------------------------------------------------------------- reading

    def snapshot(self) -> State:
        """Return all there is to see now, as plain data: for a page, a log, a metrics endpoint.

        Returns
        -------
        dict
            ``step``; ``predictions`` and ``guaranteed``, what is watched; ``curves``, the means over all steps;
            ``window``, those over the latest steps, and their number ``size``; ``accuracy_interval``, a confidence
            sequence of level 0.05 for the mean conditional accuracy; ``calibration``, expected calibration error
            and bins; ``evidence``, one entry for each detector, with base 10 logarithms; ``alarms``, their
            ``count`` and the ``last`` ones.
        """
        shown: State = {
            "step": self.n,
            "predictions": self._scorer.kind,
            "guaranteed": self._scorer.guaranteed,
            "curves": {},
            "window": {"size": 0},
            "evidence": [entry for evidence in self._evidence for entry in evidence.snapshot()],
            "alarms": {"count": self.count, "last": [asdict(alarm) for alarm in self._alarms]},
        }
        if self.n:
            size = min(self.n, self.window)
            shown["curves"] = self._named(self._sums / self.n)
            shown["window"] = self._named(self._ring[:size].mean(axis=0)) | {"size": size}
            shown["accuracy_interval"] = [self._accuracy.lower, self._accuracy.upper]
            if self._scorer.kind != SETS:
                shown["calibration"] = {"ece": self._calibration.ece, "bins": self._calibration.bins}
        return shown

    def _named(self, means: Any) -> State:
        named: State = dict(zip(self._names, means.tolist(), strict=True))
        if "upper" in named:
            named["width"] = named["upper"] - named["lower"]
        return named

    @property
    def state(self) -> State:
        """All that later answers depend on, as plain data (JSON); see `restore`."""
        return {
            "parameters": repr(self),
            "n": self.n,
            "count": self.count,
            "kind": self._scorer.kind,
            "guaranteed": self._scorer.guaranteed,
            "alarms": [asdict(alarm) for alarm in self._alarms],
            "sums": self._sums.tolist(),
            "ring": self._ring[: min(self.n, self.window)].tolist(),
            "accuracy": self._accuracy.state,
            "calibration": self._calibration.state,
            "evidence": [evidence.state for evidence in self._evidence],
        }

    def restore(self, state: State) -> None:
        """Go on from a `state` of a monitor with the same parameters.

        Raises
        ------
        TypeError, ValueError
            It is no such state; the monitor is as before.
        """
        if not isinstance(state, dict) or state.keys() != self.state.keys():
            raise ValueError(f"state must be what the property `state` gave, got {type(state).__name__}")
        if state["parameters"] != repr(self):
            raise ValueError(f"state must be of {self!r}, got one of {state['parameters']}")
        twin = Monitor(
            self.classes, level=self.level, run_length=self.run_length, window=self.window, clip=self.clip,
            seed=self._smoothing.seed, martingale=self.martingale.fresh(), sources=self.sources,
        )  # fmt: skip
        try:
            if state["kind"] is not None:
                if state["kind"] not in KINDS:
                    raise ValueError(f"{state['kind']!r} is no kind of prediction")
                twin._begin(state["kind"], state["guaranteed"])
            twin.n, twin.count = int(state["n"]), int(state["count"])
            twin._alarms.extend(Alarm(**alarm) for alarm in state["alarms"])
            size = min(twin.n, twin.window)
            twin._sums = np.array(state["sums"], np.float64).reshape(twin._sums.shape)
            twin._ring[:size] = np.array(state["ring"], np.float64).reshape(size, -1)
            twin._accuracy.restore(state["accuracy"])
            twin._calibration.restore(state["calibration"])
            for evidence, one in zip(twin._evidence, state["evidence"], strict=True):
                evidence.restore(one)
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"state must be what the property `state` gave: {error}") from error
        self.__dict__.update(twin.__dict__)
