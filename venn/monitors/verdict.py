"""What to think of a predictor now, in one sentence: the verdict of its monitor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, inf, log
from time import localtime, strftime
from typing import Any, NamedTuple

import msgspec

from venn.monitors.alarms import Alarm, odds, shares
from venn.monitors.change_point import ChangePoint
from venn.monitors.evidence import Evidence, against
from venn.monitors.kind import LEVEL, Kind
from venn.monitors.notebook import table
from venn.prediction import ERROR_BOUND, REALISED_ROW, Floats
from venn.saved import saved

CLAIMED, EARLY, DOUBTFUL, CHANGED = "as claimed", "too early to say", "doubtful", "changed"
USELESS = "no better than guessing"
BELOW = "below the floor"  # a floor set by the user: see `venn.monitors.floor`
STATES = (CLAIMED, EARLY, DOUBTFUL, USELESS, CHANGED, BELOW)  #: from the best to the worst
LONGEST = 25  # words of a sentence
LIKELY = 0.65  # share from which on a verdict says that labels may be exchanged
BRIEF = 150  # latest steps that are judged besides the window: passing departures cancel in the longer one
SKILL = 0.05  # least share of the loss of guessing that a predictor must save to be better than guessing
VISIBLE = 0.1  # least departure from a claim that must be found
CLOSE = 0.005  # shares that are written alike
ONE_DEVIATION = 0.5  # exponent of the chance bounds at one standard deviation, at most: more asks for a word
NO_EVIDENCE, LATEST = "none", "latest steps"
OF_OBJECTS, OF_CLASSES = "objects", "classes"  # what verdicts of watchers without a predictor rest on
OF_WHAT = {OF_OBJECTS: "objects", OF_CLASSES: "classes, or objects within them,"}
KEPT = ", as claimed"
KEPT_PROMISE = "their labels keep the promise"
EITHER = "the latest labels do not tell whether the classes come in other shares or objects within them look different"


class Came(NamedTuple):
    """Outcomes over some steps, beside the claims for them."""

    what: str  #: "right" or "wrong": what the shares count
    share: float
    lower: float
    upper: float
    size: int  #: number of latest steps

    def __str__(self) -> str:
        return f"{self.what} in {shares(self.share)[0]} of the last {self.size:,}{self.beside}"

    @property
    def exchanged(self) -> bool:
        """Whether likely events fail as often as they should come, as if two labels were exchanged."""
        return self.what == "right" and self.lower >= LIKELY and self.share <= 1 - self.lower + VISIBLE

    @property
    def better(self) -> bool:
        """Whether more came true than was claimed: then the numbers are wrong, but the answers are good."""
        return self.what == "right" and self.share - self.upper >= CLOSE

    @property
    def beside(self) -> str:
        """The claim in words: the end of it that is nearer to the outcome."""
        share, lower, upper = (float(one) for one in (self.share, self.lower, self.upper))
        claimed = min(max(share, lower), upper)
        close = abs(share - claimed) < CLOSE or (self.what == "wrong" and share < lower)
        return KEPT if close else f", claimed {shares(claimed)[0]}"


def came(means: Mapping[str, float], guaranteed: str | None, size: int) -> Came | None:
    """Return outcomes and claims from means over some steps; None where nothing is claimed.

    Examples
    --------
    >>> print(came({"accuracy": 0.1, "lower": 0.79, "upper": 0.81}, "predicted label", 600))
    right in .10 of the last 600, claimed .79
    """
    if f"error_{LEVEL}" in means:
        lower = 0.0 if guaranteed == ERROR_BOUND else LEVEL
        return Came("wrong", means[f"error_{LEVEL}"], lower, LEVEL, size)
    if guaranteed == REALISED_ROW and "realised" in means:
        return Came("right", means["realised_accuracy"], means["realised"], means["realised"], size)
    if "lower" in means:
        return Came("right", means["accuracy"], means["lower"], means["upper"], size)
    return None


@saved
@dataclass(frozen=True)
class Moment:
    """A question by its number from 1 on, the time when it was asked, and the id that its owner gave it.

    Examples
    --------
    >>> print(Moment(11500, None, "order-11500"))
    question order-11500
    """

    number: int
    time: float | None = None  #: seconds since 1970; None where that is not known
    id: int | str | None = None
    asked: int | None = None  #: of an answer: how many questions had been asked when it came; None: no later ones

    @property
    def when(self) -> int:
        """How many questions had been asked by then."""
        return self.number if self.asked is None else self.asked

    @property
    def heard(self) -> str:
        """The last question that was asked before its label came, in words."""
        return str(self) if self.when == self.number else f"question number {self.when}"

    def __str__(self) -> str:
        which = f"question {self.number if self.id is None else self.id}"
        if self.time is None:
            return which
        day = "" if localtime(self.time)[:3] == localtime()[:3] else "%Y-%m-%d "
        return f"{strftime(f'{day}%H:%M', localtime(self.time))} ({which})"


@saved
@dataclass(frozen=True)
class Verdict:
    """Whether a predictor does what it claims: a state, one short sentence that says what to do, and the numbers.

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
    details : str
        The state and all numbers.
    predictor : str
        Its name, if several were watched.
    reason : str
        If changed or doubtful: what speaks against what it claims, in numbers; also part of the details. Of a change,
        what its first alarm rested on.
    kind : str
        What has changed, such as columns, or shares of classes, where what watches examples has found it.
    anew : int or None
        The step after which the predictor began anew the last time, because an alarm had rung; also part of the
        details.
    lately : tuple or None
        What came true lately: "right" or "wrong", in which share, the lower and the upper end of what was claimed, of
        how many steps.
    at : Moment or None
        The question of `since`, where a run knows it: its number, time and id.
    advice : str
        What may be done, if there is something.
    rang : int or None
        Of a change, the step of its first alarm: of several predictors the first that rang speaks.
    heard : str
        The last question before `anew`, in words, where a run knows it.

    Examples
    --------
    >>> verdict = Verdict("too early to say", None, None, "none", "", "too early to say: 3 of 265 examples")
    >>> print(verdict)
    Wait, too early to say: 3 of 265 examples.
    >>> print(worst({"abers": verdict}))
    abers: Wait, too early to say: 3 of 265 examples.
    >>> lately = "right", 0.1, 0.79, 0.81, 600
    >>> print(Verdict("changed", 901, None, "p-values", "Ville", "changed since about 901: ...", lately=lately))
    Do not rely on it since step 901: right in .10 of the last 600, claimed .79. Labels exchanged?
    """

    state: str
    since: int | None
    change: ChangePoint | None
    evidence: str
    detector: str
    details: str
    predictor: str = ""
    reason: str = ""
    kind: str = ""
    anew: int | None = None
    lately: tuple[str, float, float, float, int] | None = None
    at: Moment | None = None
    advice: str = ""
    rang: int | None = None
    heard: str = ""

    def __str__(self) -> str:
        return f"{self.predictor}: {self.sentence}" if self.predictor else self.sentence

    @property
    def after(self) -> str:
        """The question after which the predictor began anew, or the step where no run knows that."""
        return self.heard or f"step {self.anew}"

    @property
    def sentence(self) -> str:
        """What to do first, since when, and the numbers: 25 words at most; `details` has the rest."""
        lately = None if self.lately is None else Came(*self.lately)
        doubted = self.state == CHANGED and lately is not None and lately.beside == KEPT  # the ranks alone told it
        numbers = "" if lately is None else f"{', although' if doubted else ':'} {lately}"
        counted = "question" if self.evidence == OF_OBJECTS else "step"
        since = "" if self.since is None else f" since {f'{counted} {self.since}' if self.at is None else self.at}"
        floor = self.detector.partition("against the ")[2]
        told = {
            BELOW: f"Below the {floor}{since and f',{since}'}. Look at what changed.",
            CHANGED: f"Do not rely on it{since}{numbers}.",
            USELESS: f"Do not decide by it: no better than guessing{since}.",
            EARLY: f"Wait, too early to say: {self.details.partition(';')[0].removeprefix(f'{EARLY}: ')}.",
            CLAIMED: f"Go on{', as claimed again' if self.change is not None else ''}{numbers or ': as claimed'}.",
            DOUBTFUL: f"Look again soon{numbers or since or ': an alarm is near'}.",
        }[self.state]
        if self.state == DOUBTFUL and self.evidence in (OF_OBJECTS, OF_CLASSES):
            told = f"Look at the source{since}: {OF_WHAT[self.evidence]} are not like before."
        if self.state == CHANGED and (self.anew or 0) >= (self.since or 1):
            told = f"Rely on it only after {self.after}, where it began anew. Changed{since}{numbers}."
            told = told.replace("the last ", "")
        advice = self.advice
        if self.state == CHANGED and not self.anew and lately is not None and lately.better:
            told, advice = f"It claims too little{since}{numbers}.", ""
        if self.state == CHANGED and lately is not None and lately.exchanged:
            advice = f"Labels exchanged? {advice}".strip()
        for more in [*(f"{one[:1].upper()}{one[1:]}." for one in self.kind.split("; ") if one), advice]:
            if more and len(f"{told} {more}".split()) <= LONGEST - (1 if self.predictor else 0):
                told = f"{told} {more}"
        return told

    def _repr_html_(self) -> str:
        """Return its sentence and its numbers for notebooks."""
        rows = {"state": self.state, "since": self.since if self.at is None else self.at, "details": self.details}
        return table(str(self), {of: {"": value} for of, value in rows.items() if value is not None})

    def plain(self) -> dict[str, Any]:
        """Return all present fields and the sentence as JSON; `of` makes the verdict again."""
        optional = ("kind", "anew", "lately", "at", "advice", "rang", "heard")
        found = {name: value for name, value in asdict(self).items() if name not in optional or value}
        found |= {} if self.lately is None else {"lately": list(self.lately)}
        return found | {"sentence": self.sentence}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `plain` wrote."""
        return msgspec.convert({"details": plain.get("sentence"), **plain}, cls)  # venn 0.3 had these as the sentence


def worst(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the worst of the verdicts on several predictors, with the name of the predictor whose alarm came first.

    From the best to the worst: as claimed, too early to say, doubtful, no better than guessing, changed, below the
    floor. If each of k verdicts is falsely "changed" with probability at most p, the worst of them is so with
    probability at most k p. The kind of change that watchers of examples see is added to its sentence.

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
    name = max(verdicts, key=lambda one: (STATES.index(verdicts[one].state), -(verdicts[one].rang or inf)))
    found = replace(verdicts[name], predictor=name)
    more = _kinds(found, verdicts)
    if not more:
        return found
    kinds = [one.kind for one in verdicts.values() if one.kind]
    return replace(found, details="; ".join([found.details, *more]), kind="; ".join(kinds))


def _kinds(found: Verdict, verdicts: Mapping[str, Verdict]) -> list[str]:
    """Return in words the kinds of change that other watchers see; empty if none watches classes.

    Where the labels do not separate the kinds, that is said.
    """
    of_predictors = [one for one in verdicts.values() if one.evidence not in (OF_OBJECTS, OF_CLASSES)]
    of_classes = [one for one in verdicts.values() if one.evidence == OF_CLASSES]
    others = [one for one in verdicts.values() if one.kind and one.details != found.details]
    more = [f"not like before: {one.kind}" if one.evidence == OF_OBJECTS else one.kind for one in others]
    if not of_classes or found.state not in (CHANGED, DOUBTFUL):
        return more
    if found.state == CHANGED or found.evidence == OF_OBJECTS:
        more += [] if any(one.kind for one in of_classes) else [EITHER]
    promised = bool(of_predictors) and all(one.state == CLAIMED for one in of_predictors)
    return [*more, KEPT_PROMISE] if promised and found.state == DOUBTFUL else more


class Latest(NamedTuple):
    """The latest steps of a monitor, as its judge needs them."""

    n: int  #: number of steps
    kind: Kind
    guaranteed: str
    means: Callable[[int], Mapping[str, float]]  #: over so many latest steps
    frequencies: Callable[[int], Floats]  #: (c,) of the classes over so many latest steps; none where there are none
    evidence: Sequence[Evidence]
    restarts: Sequence[int]  #: steps after which bets began anew, so far

    @property
    def period(self) -> int:
        """Number of steps since bets last began anew: theorems hold within this period."""
        return self.n - max(self.restarts, default=0)


class Judge:
    """Finds the verdict from the latest steps of a monitor.

    Parameters
    ----------
    level : float in (0, 1)
    window : int >= 1
    """

    def __init__(self, level: float, window: int) -> None:
        self.level, self.window = level, window
        self._spans = sorted({min(BRIEF, self.window), self.window})
        self._slack = -log(self.level) / 2  # of the logarithm of evidence
        self._bound = log(2) - log(self.level)  # the same for the latest steps
        self._enough = ceil(self._bound / (2 * VISIBLE**2))

    def rang(self, latest: Latest, alarm: Alarm, witness: Evidence, anew: int) -> dict[str, Any]:
        """Return the estimated change of an alarm that has just rung; it is later than step `anew`."""
        change = witness.change(latest.restarts, anew)
        return {
            "first": latest.n, "last": latest.n, "change": change, "evidence": witness.speaks,
            "detector": against(alarm.detector, alarm.about),
            "reason": witness.told(latest.n - change.step + 1) or f"the odds are {odds(alarm.log_evidence)}",
            "was": _before(latest, change.step - 1, self.window),
        }  # fmt: skip

    def departs(self, latest: Latest) -> str | None:
        """Return in words what departs from its claim by more than chance in the latest steps; None if nothing does.

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

    def judge(self, latest: Latest, case: Any, given: Callable[[int], Mapping[str, float]] | None = None) -> Verdict:
        """Return the verdict after step n >= 1; `case` is the latest change that rang, if one did.

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

        size = min(n, self.window)
        span = f"of the last {size}" if n > size else f"of all {size}"

        def lately(steps: int) -> Any:
            means = kind.finished((latest.means if given is None else given)(steps))
            found = came(means, guaranteed, steps)
            return None if found is None else tuple(found)

        bets = evidence[0].speaks if evidence else NO_EVIDENCE
        departs = self.departs(latest)
        if case is not None and not case.ended:
            change, since = case.change, n - case.change.step + 1
            steps, span = (since, f"of the {since} since then") if since < size else (size, span)
            begun = f" since {change}:" if change.lower > 1 else ": not as claimed from the start:"
            details = f"{CHANGED}{begun} {case.reason}; {told(steps, span, -1.0)}; last alarm at {case.last}"
            return Verdict(
                CHANGED, change.step, change, case.evidence, case.detector, details, reason=case.reason,
                lately=lately(steps), rang=case.first,
            )  # fmt: skip
        said = told(size, span, ONE_DEVIATION)
        if n < self._enough:
            details = f"{EARLY}: {n} of {self._enough} examples; {said}"
            return Verdict(EARLY, None, None, bets, "", details, lately=lately(size))
        for one in evidence:
            detector = one.near(self._slack, case is not None)
            if detector is not None:
                near = f"{detector} is near its alarm"
                found = one.told(n - one.change(latest.restarts).step + 1)
                reason = f"{found}; {near}" if found else near
                details = f"{DOUBTFUL}: {reason}; {told(size, span, -1.0)}"
                return Verdict(DOUBTFUL, None, None, one.speaks, detector, details, reason=reason, lately=lately(size))
        if departs is not None:
            details = f"{DOUBTFUL}: {departs}"
            return Verdict(DOUBTFUL, None, None, LATEST, "", details, reason=departs, lately=lately(size))
        if case is None:
            details = f"{CLAIMED}: {said}{'' if evidence else '; nothing bets against it'}"
            return Verdict(CLAIMED, None, None, bets, "", details, lately=lately(size))
        ended = f"no alarm since {case.last}, after a change at {case.change}"
        if _guesses(latest, size):
            was = "" if case.was is None else f"; was right in {shares(case.was)[0]} before"
            details = f"valid, but {USELESS} by the frequencies of the classes: {said}{was}; {ended}"
            return Verdict(USELESS, case.change.step, case.change, bets, "", details, lately=lately(size))
        details = f"{CLAIMED} again: {said}; {ended}"
        return Verdict(CLAIMED, case.last, case.change, bets, "", details, lately=lately(size))

    def nothing(self) -> Verdict:
        """Return the verdict before the first step."""
        return Verdict(EARLY, None, None, NO_EVIDENCE, "", f"{EARLY}: no example of {self._enough}")


def _before(latest: Latest, step: int, window: int) -> float | None:
    """Return the accuracy over the steps up to this one, within the latest `window`."""
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
