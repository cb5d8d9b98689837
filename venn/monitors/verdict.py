"""What to think of a predictor now, in one sentence: the verdict of its monitor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, log
from typing import Any

import msgspec

from venn.monitors.alarms import Alarm
from venn.monitors.change import ChangePoint
from venn.monitors.evidence import Evidence, against
from venn.monitors.kind import Kind
from venn.monitors.running import State, held_as
from venn.saved import saved

CLAIMED, EARLY, DOUBTFUL, CHANGED = "as claimed", "too early to say", "doubtful", "changed"
STATES = (CLAIMED, EARLY, DOUBTFUL, CHANGED)  #: from the best to the worst
VISIBLE = 0.1  # least departure from what is claimed that is looked for
ONE_DEVIATION = 0.5  # exponent of the chance bounds at one standard deviation, at most: more asks for a word
NO_EVIDENCE, LATEST = "none", "latest steps"


@saved
@dataclass(frozen=True)
class Verdict:
    """Whether a predictor does what it claims: a state, the numbers behind it, and one sentence.

    `Monitor.verdict` has the rules. `str` gives the sentence, after the predictor's name if that is known.

    Attributes
    ----------
    state : str
        "as claimed", "doubtful", "changed" or "too early to say".
    since : int or None
        If changed, the estimated first step after the change; if as claimed again, the step of the last alarm.
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

    def __str__(self) -> str:
        return f"{self.predictor}: {self.sentence}" if self.predictor else self.sentence

    def plain(self) -> State:
        """Return all of it as JSON; `of` makes the verdict again."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Verdict:
        """Return the verdict of which `plain` is the JSON."""
        return msgspec.convert(plain, cls)


def worst(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the worst of the verdicts on several predictors, with the name of the first predictor that has it.

    From the best to the worst: as claimed, too early to say, doubtful, changed. If each of k verdicts is falsely
    "changed" with probability at most p, the worst of them is so with probability at most k p.

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
    return replace(verdicts[name], predictor=name)


@dataclass(frozen=True)
class Case:
    """A change that rang: it lasts until nothing speaks for it any more."""

    last: int  #: step of its latest alarm
    change: ChangePoint
    evidence: str
    detector: str


class Judge:
    """Keeps what a verdict needs of the past, and judges.

    Parameters
    ----------
    level : float in (0, 1)
    window : int >= 1
    """

    def __init__(self, level: float, window: int) -> None:
        self._window = window
        self._slack = -log(level) / 2  # of the logarithm of evidence
        self._bound = log(2) - log(level)  # the same for the latest steps
        self._enough = ceil(self._bound / (2 * VISIBLE**2))
        self._case: Case | None = None

    def ring(self, n: int, alarm: Alarm, witness: Evidence, departure: float) -> None:
        """Take note of an alarm at step n, after which the latest steps depart by so much."""
        case = self._case
        if case is None or self._calm(case, n, departure):
            case = Case(n, witness.change(), witness.speaks, against(alarm.detector, alarm.about))
        self._case = replace(case, last=n)

    def _calm(self, case: Case, n: int, departure: float) -> bool:
        """Whether a change is over: no alarm within a window, and the latest steps keep what is claimed."""
        return n - case.last >= self._window and departure < self._bound

    def judge(
        self, n: int, kind: Kind, guaranteed: str, latest: Callable[[int], Mapping[str, float]],
        evidence: Sequence[Evidence], began: int = 0, given: Callable[[int], Mapping[str, float]] | None = None,
    ) -> Verdict:  # fmt: skip
        """Return the verdict after step n >= 1, where `latest` gives the means over so many latest steps.

        What is proved of means holds for the steps after `began`: only these are compared with it. `given` gives the
        means of the predictions that a user got, if these are others.
        """

        def told(steps: int, span: str) -> str:
            anew = kind.said(latest(steps), span, guaranteed)
            as_given = anew if given is None else kind.said(given(steps), span, guaranteed)
            return anew if as_given == anew else f"{as_given}; made anew when each label came, {anew}"

        size, case = min(n, self._window), self._case
        steps, span = size, f"of the last {size}" if n > size else f"of all {size}"
        period = min(size, n - began)
        departure = kind.departure(latest(period), period, guaranteed)
        bets = evidence[0].speaks if evidence else NO_EVIDENCE
        if case is not None and not self._calm(case, n, departure):
            change, since = case.change, n - case.change.step + 1
            if since < size:
                steps, span = since, f"of the {since} since then"
            begun = f" since {change}:" if change.lower > 1 else ": not as claimed from the start;"
            sentence = f"{CHANGED}{begun} {told(steps, span)}; last alarm at {case.last}"
            return Verdict(CHANGED, change.step, change, case.evidence, case.detector, sentence)
        said = told(steps, span)
        near = ((one.speaks, one.near(self._slack, case is not None)) for one in evidence)
        speaks, detector = next((found for found in near if found[1] is not None), (bets, None))
        if n < self._enough:
            sentence = f"{EARLY}: {n} of {self._enough} examples; {said}"
            return Verdict(EARLY, None, None, bets, "", sentence)
        if detector is not None:
            sentence = f"{DOUBTFUL}: {said}; {detector} is near its alarm"
            return Verdict(DOUBTFUL, None, None, speaks, detector, sentence)
        if departure >= self._bound:
            said = said if period == size else told(period, f"of the last {period}")
            sentence = f"{DOUBTFUL}: {said}, which chance hardly explains"
            return Verdict(DOUBTFUL, None, None, LATEST, "", sentence)
        if departure > ONE_DEVIATION:
            said += ", within chance"
        if case is not None:
            sentence = f"{CLAIMED} again: {said}; no alarm since {case.last}, after a change at {case.change}"
            return Verdict(CLAIMED, case.last, case.change, bets, "", sentence)
        return Verdict(
            CLAIMED, None, None, bets, "", f"{CLAIMED}: {said}{'' if evidence else '; nothing bets against it'}"
        )

    def nothing(self) -> Verdict:
        """Return the verdict before the first step."""
        return Verdict(EARLY, None, None, NO_EVIDENCE, "", f"{EARLY}: no example of {self._enough}")

    @property
    def state(self) -> State | None:
        """The change that rang, as plain data."""
        return None if self._case is None else asdict(self._case)

    def take_over(self, held: Any, n: int) -> None:
        """Continue from a `state` after n steps, or raise a ValueError."""
        if held is None:
            return
        case = held_as(Case, "case", held)
        if not 1 <= case.change.lower <= case.change.step <= case.change.upper <= case.last <= n:
            raise ValueError(f"state['case'] must be a change of the first {n} steps, got {held!r}")
        self._case = case
