"""What to think of a predictor now, in one sentence: the verdict of its monitor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, log
from typing import Any, NamedTuple

import msgspec

from venn.monitors.alarms import Alarm, ChangePoint, odds, shares
from venn.monitors.evidence import Evidence, against
from venn.monitors.kind import Kind
from venn.parameters import fraction, integer, optional
from venn.prediction import Floats
from venn.saved import Saved, component, param, saved, state

CLAIMED, EARLY, DOUBTFUL, CHANGED = "as claimed", "too early to say", "doubtful", "changed"
USELESS = "no better than guessing"
BELOW = "below the floor"  # that the user has set, see `venn.monitors.floor`
STATES = (CLAIMED, EARLY, DOUBTFUL, USELESS, CHANGED, BELOW)  #: from the best to the worst
BRIEF = 150  # latest steps that are judged beside a window of more: what comes and goes cancels in the longer one
SKILL = 0.05  # least share of the loss of guessing that a predictor must save to be better than guessing
VISIBLE = 0.1  # least departure from what is claimed that is looked for
ONE_DEVIATION = 0.5  # exponent of the chance bounds at one standard deviation, at most: more asks for a word
NO_EVIDENCE, LATEST = "none", "latest steps"
OF_OBJECTS, OF_CLASSES = "objects", "classes"  # what verdicts rest on that are of no predictor
KEPT_PROMISE = "their labels keep the promise"
EITHER = "the latest labels do not tell whether the classes come in other shares or objects within them look different"


@saved
@dataclass(frozen=True)
class Verdict:
    """Whether a predictor does what it claims: a state, the numbers behind it, and one sentence.

    `Monitor.verdict` has the rules. `str` gives the sentence, after the predictor's name if that is known.

    Attributes
    ----------
    state : str
        "as claimed", "doubtful", "no better than guessing", "changed", "too early to say" or "below the floor".
    since : int or None
        If changed, or no better than guessing since then, the estimated first step after the change; if as claimed
        again, the step of the last alarm.
    change : ChangePoint or None
        The estimate of the latest change, with its uncertainty.
    evidence : str
        What the state rests on: "probabilities", "p-values" or "point forecasts", which were bet on; "latest steps" for
        a doubt that arises from these; "none" if nothing was bet on.
    detector : str
        If changed or doubtful: the detector that rang or nearly rings, and the claim it bets against.
    sentence : str
        The state and the numbers.
    predictor : str
        Its name, if several were watched.
    reason : str
        If changed or doubtful: what speaks against what it claims, in numbers; also part of the sentence. Of a change,
        what its first alarm rested on.
    kind : str
        Of what watches examples and not a predictor: what has changed, such as columns, or shares of classes.
    anew : int or None
        The step after which the predictor began anew the last time, because an alarm had rung; also part of the
        sentence.

    Examples
    --------
    >>> verdict = Verdict("too early to say", None, None, "none", "", "too early to say: 3 of 265 examples")
    >>> print(verdict)
    too early to say: 3 of 265 examples
    >>> print(worst({"abers": verdict}))
    abers: too early to say: 3 of 265 examples
    """

    state: str
    since: int | None
    change: ChangePoint | None
    evidence: str
    detector: str
    sentence: str
    predictor: str = ""
    reason: str = ""
    kind: str = ""
    anew: int | None = None

    def __str__(self) -> str:
        return f"{self.predictor}: {self.sentence}" if self.predictor else self.sentence

    def plain(self) -> dict[str, Any]:
        """Return all of it as JSON, without a kind or `anew` where there is none; `of` makes the verdict again."""
        return {name: value for name, value in asdict(self).items() if name not in ("kind", "anew") or value}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Verdict:
        """Return the verdict of which `plain` is the JSON."""
        return msgspec.convert(plain, cls)


def worst(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the worst of the verdicts on several predictors, with the name of the first predictor that has it.

    From the best to the worst: as claimed, too early to say, doubtful, no better than guessing, changed, below the
    floor. If each of k verdicts is falsely "changed" with probability at most p, the worst of them is so with
    probability at most k p. Which kind of change others see, of what watches examples, is added to its sentence.

    Raises
    ------
    TypeError, ValueError
        There is no verdict, or something else.

    Examples
    --------
    >>> from venn import Monitor
    >>> verdict = worst({"venn": Monitor(["no", "yes"]).verdict(), "other": Monitor(["no", "yes"]).verdict()})
    >>> verdict.state, verdict.predictor
    ('too early to say', 'venn')
    """
    if not isinstance(verdicts, Mapping) or not all(isinstance(one, Verdict) for one in verdicts.values()):
        raise TypeError(f"verdicts must be a mapping of names to verdicts, got {verdicts!r}")
    if not verdicts:
        raise ValueError("verdicts must hold at least one, got none")
    name = max(verdicts, key=lambda one: STATES.index(verdicts[one].state))
    found = replace(verdicts[name], predictor=name)
    more = _kinds(found, verdicts)
    return replace(found, sentence="; ".join([found.sentence, *more])) if more else found


def _kinds(found: Verdict, verdicts: Mapping[str, Verdict]) -> list[str]:
    """Return which kinds of change others see beside the worst verdict, in words; none if nobody watches classes.

    Where the labels do not separate the kinds, that is said.
    """
    of_predictors = [one for one in verdicts.values() if one.evidence not in (OF_OBJECTS, OF_CLASSES)]
    of_classes = [one for one in verdicts.values() if one.evidence == OF_CLASSES]
    others = [one for one in verdicts.values() if one.kind and one.sentence != found.sentence]
    more = [f"not like before: {one.kind}" if one.evidence == OF_OBJECTS else one.kind for one in others]
    if not of_classes or found.state not in (CHANGED, DOUBTFUL):
        return more
    if found.state == CHANGED or found.evidence == OF_OBJECTS:
        more += [] if any(one.kind for one in of_classes) else [EITHER]
    promised = bool(of_predictors) and all(one.state == CLAIMED for one in of_predictors)
    return [*more, KEPT_PROMISE] if promised and found.state == DOUBTFUL else more


@saved
@dataclass(frozen=True)
class Case:
    """A change that rang: it lasts until nothing speaks for it any more."""

    last: int  #: step of its latest alarm
    change: ChangePoint
    evidence: str
    detector: str
    reason: str  #: what its first alarm rested on, in numbers
    was: float | None  #: accuracy before it; None where labels are not classes


class Latest(NamedTuple):
    """What a monitor shows of its latest steps to the judge."""

    n: int  #: number of steps
    kind: Kind
    guaranteed: str
    means: Callable[[int], Mapping[str, float]]  #: over so many latest steps
    frequencies: Callable[[int], Floats]  #: (c,) of the classes over so many latest steps; none where there are none
    evidence: Sequence[Evidence]
    restarts: Sequence[int]  #: steps after which bets began anew, so far

    @property
    def period(self) -> int:
        """Number of steps of the present period, where all that is proved holds together."""
        return self.n - max(self.restarts, default=0)


def _held_case(name: str, value: Any) -> Case:
    """Return the change that rang of a state, or say that it is none."""
    if type(value) is not Case or type(value.change) is not ChangePoint or type(value.was) not in (float, type(None)):
        raise ValueError(f"{name} must be a change that rang, got {value!r}")
    return value


@component
class Judge(Saved):
    """Keeps what a verdict needs of the past, and judges.

    Parameters
    ----------
    level : float in (0, 1)
    window : int >= 1
    """

    level: float = param(fraction)
    window: int = param(integer, 1)

    case: Case | None = state(optional, _held_case, start=None)

    def derive(self) -> None:
        """Compute the bounds."""
        self._spans = sorted({min(BRIEF, self.window), self.window})
        self._slack = -log(self.level) / 2  # of the logarithm of evidence
        self._bound = log(2) - log(self.level)  # the same for the latest steps
        self._enough = ceil(self._bound / (2 * VISIBLE**2))

    def ring(self, latest: Latest, alarm: Alarm, witness: Evidence) -> None:
        """Take note of an alarm that has just rung."""
        case, n = self.case, latest.n
        if case is None or (n - case.last >= self.window and self._departs(latest) is None):
            change, detector = witness.change(latest.restarts), against(alarm.detector, alarm.about)
            reason = witness.told(n - change.step + 1) or f"the odds are {odds(alarm.log_evidence)}"
            case = Case(n, change, witness.speaks, detector, reason, _before(latest, change.step - 1, self.window))
        self.case = replace(case, last=n)

    def _departs(self, latest: Latest) -> str | None:
        """Return what departs more than chance does in the latest steps, in words; None if nothing does.

        The level is divided among the spans of steps, and in each among the means of what is said and the sums of each
        piece of evidence.
        """
        bound = self._bound + log(len(self._spans) * (1 + len(latest.evidence)))
        kind, guaranteed, found = latest.kind, latest.guaranteed, (0.0, "")
        for span in self._spans:
            size = min(span, latest.period)
            if size:
                means, words = latest.means(size), f"of the last {size}" if latest.n > size else f"of all {size}"
                said = kind.departure(means, size, guaranteed) - bound
                if said >= found[0]:
                    found = said, kind.doubt(means, words, guaranteed)
                for one in latest.evidence:
                    excess = one.departure(size) - bound
                    if excess > found[0] and (told := one.told(size)) is not None:
                        found = excess, f"{told}, which chance hardly explains"
        return found[1] or None

    def judge(self, latest: Latest, given: Callable[[int], Mapping[str, float]] | None = None) -> Verdict:
        """Return the verdict after step n >= 1.

        What is proved of means holds for the steps of the present period: only these are compared with it. `given`
        gives the means of the predictions that a user got, if these are others.
        """
        n, kind, guaranteed, evidence = latest.n, latest.kind, latest.guaranteed, latest.evidence

        def told(steps: int, span: str, least: float) -> str:
            anew = kind.said(latest.means(steps), span, guaranteed)
            said = anew if given is None else kind.said(given(steps), span, guaranteed)
            said = anew if said == anew else f"{said}; made anew when each label came, {anew}"
            departure = kind.departure(latest.means(steps), steps, guaranteed)
            return f"{said}, within chance" if least < departure < self._bound else said

        size, case = min(n, self.window), self.case
        span = f"of the last {size}" if n > size else f"of all {size}"
        bets = evidence[0].speaks if evidence else NO_EVIDENCE
        departs = self._departs(latest)
        if case is not None and (n - case.last < self.window or departs is not None):
            change, since = case.change, n - case.change.step + 1
            steps, span = (since, f"of the {since} since then") if since < size else (size, span)
            begun = f" since {change}:" if change.lower > 1 else ": not as claimed from the start:"
            sentence = f"{CHANGED}{begun} {case.reason}; {told(steps, span, -1.0)}; last alarm at {case.last}"
            return Verdict(CHANGED, change.step, change, case.evidence, case.detector, sentence, reason=case.reason)
        said = told(size, span, ONE_DEVIATION)
        if n < self._enough:
            return Verdict(EARLY, None, None, bets, "", f"{EARLY}: {n} of {self._enough} examples; {said}")
        for one in evidence:
            detector = one.near(self._slack, case is not None)
            if detector is not None:
                near = f"{detector} is near its alarm"
                found = one.told(n - one.change(latest.restarts).step + 1)
                reason = f"{found}; {near}" if found else near
                sentence = f"{DOUBTFUL}: {reason}; {told(size, span, -1.0)}"
                return Verdict(DOUBTFUL, None, None, one.speaks, detector, sentence, reason=reason)
        if departs is not None:
            return Verdict(DOUBTFUL, None, None, LATEST, "", f"{DOUBTFUL}: {departs}", reason=departs)
        if case is None:
            sentence = f"{CLAIMED}: {said}{'' if evidence else '; nothing bets against it'}"
            return Verdict(CLAIMED, None, None, bets, "", sentence)
        ended = f"no alarm since {case.last}, after a change at {case.change}"
        if _guesses(latest, size):
            was = "" if case.was is None else f"; was right in {shares(case.was)[0]} before"
            sentence = f"valid, but {USELESS} by the frequencies of the classes: {said}{was}; {ended}"
            return Verdict(USELESS, case.change.step, case.change, bets, "", sentence)
        return Verdict(CLAIMED, case.last, case.change, bets, "", f"{CLAIMED} again: {said}; {ended}")

    def nothing(self) -> Verdict:
        """Return the verdict before the first step."""
        return Verdict(EARLY, None, None, NO_EVIDENCE, "", f"{EARLY}: no example of {self._enough}")

    @property
    def change(self) -> ChangePoint | None:
        """When the latest change began that rang, if one did."""
        return None if self.case is None else self.case.change


def _before(latest: Latest, step: int, window: int) -> float | None:
    """Return the accuracy over the steps up to this one, as many as are among the latest `window`."""
    size = min(latest.n, window)
    since = latest.n - step
    if not 0 < since < size or "accuracy" not in latest.means(size):
        return None
    both, after = latest.means(size)["accuracy"], latest.means(since)["accuracy"]
    return min(max((size * both - since * after) / (size - since), 0.0), 1.0)


def _guesses(latest: Latest, size: int) -> bool:
    """Whether a predictor is no better over the latest steps than guessing by the frequencies of their classes."""
    frequencies = latest.frequencies(size)
    losses = latest.kind.losses(latest.means(size), frequencies) if frequencies.size else None
    return losses is not None and losses[0] > (1 - SKILL) * losses[1]
