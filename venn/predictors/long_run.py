"""What predictors with a long-run error rate share: how far levels move, what is proved, how they learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

from venn.labels import HasLabels
from venn.machines.machine import NotConverged
from venn.parameters import Parameters, fraction, integer, members, positive, with_methods
from venn.prediction import LONG_RUN, Label
from venn.predictors.learning import AroundPredictor
from venn.saved import component, param

LEVELS = (0.01, 0.05, 0.1, 0.2)  # those at which records and monitors count errors


class Steps(Protocol):
    """How far the levels move."""

    def at(self, t: int) -> float:
        """Return the size > 0 of step t >= 1, never larger than that of the step before."""


@component
class ConstantSteps(Parameters):
    """Every step has the same size: levels follow changes for ever, and never settle.

    After N labels the errors at the k-th level are within k + 1 / size of N times the level, whatever N is. A larger
    step keeps this promise sooner; its sets waver more, and so are larger.

    Parameters
    ----------
    size : float > 0, default 0.01

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Gibbs & Candès (2021), arXiv:2106.00170.

    Examples
    --------
    >>> ConstantSteps(0.02).at(1000)
    0.02
    """

    size: float = param(positive, default=0.01)

    def at(self, t: int) -> float:
        """Return the size."""
        return self.size


@component
class DecayingSteps(Parameters):
    """Step t has the size first * t^-power: on independent draws of one distribution the levels settle.

    After a change they follow slowly, unless the clock starts anew: see `Adaptive`.

    Parameters
    ----------
    first : float > 0, default 0.5
    power : float in (0, 1), default 0.6
        Settling is proved for more than 0.5.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Angelopoulos, Foygel Barber & Bates (2024), arXiv:2402.01139.

    Examples
    --------
    >>> DecayingSteps(0.5, 0.5).at(100)
    0.05
    """

    first: float = param(positive, default=0.5)
    power: float = param(fraction, default=0.6)

    def at(self, t: int) -> float:
        """Return the size of step t >= 1."""
        return self.first * t**-self.power


class Certificate(NamedTuple):
    """What happened to the sets of one level so far, and what must have happened, whatever the stream.

    Examples
    --------
    >>> Certificate(level=0.1, n=1000, errors=104, bound=12.0, size=1.3).errors - 0.1 * 1000
    4.0
    """

    level: float
    n: int  #: labels that came
    errors: int  #: sets that missed the label
    bound: float  #: the errors are within this of n times the level
    size: float  #: mean number of labels in a set; NaN before the first


#: What was said of an object, first of all the prediction that was told; the label, encoded; how many labels came
#: between question and answer; what the predictor noted. A plain tuple, since a step is a few microseconds.
Noted = tuple[tuple[Any, ...], Any, int, Any]


class LongRun(HasLabels, AroundPredictor):
    """Base of predictors whose thresholds, one for each level, move with the errors of another predictor's answers."""

    #: What they predict.
    tells: ClassVar[type[Any]]

    levels: Sequence[float]
    steps: Steps
    n: int
    _late: int

    def _within(self, k: int, one_over_sizes: float) -> float:
        """Return how far the errors at level k may be from their number; see `Adaptive`, "What is proved"."""
        return (1.0 + (k + 1) * self.steps.at(1) * (1 + self._late)) * one_over_sizes

    @abstractmethod
    def _ask(self, x: Any) -> tuple[Any, ...]:
        """Return what is said of an object, and after it what `_learn` needs besides."""

    @abstractmethod
    def _learn(self, said: tuple[Any, ...], truth: Any) -> None:
        """Move the thresholds, and count errors and sizes."""

    def note(self, x: Any, y: Label) -> Noted:
        """Return what is said of `x` before anything learns, and what the predictor notes; or refuse the example."""
        truth = self.space.encode(y)
        inner = self.predictor.note(x, y)
        return self._ask(x), truth, 0, inner

    def note_late(self, noted: Noted, told: Any, late: int) -> Noted:
        """Return the same with the prediction that was told: its errors are those that count.

        Raises
        ------
        TypeError, ValueError
            `noted` is not what `note` returned, or `told` is no prediction of this predictor.
        """
        said, truth, _, inner = _checked_noted(noted)
        late = integer("late", late, 1)
        own = isinstance(told, self.tells) and told.guaranteed == LONG_RUN
        if not own or getattr(told, "classes", None) != getattr(said[0], "classes", None):
            raise TypeError(f"told must be a prediction of this predictor, got {told!r}")
        return (told, *said[1:]), truth, late, inner

    def after_learning(self, x: Any, y: Label, noted: Noted | None = None) -> None:
        """Learn one example that the machine has already learned: the predictor learns, and thresholds move.

        Raises
        ------
        RuntimeError
            `noted` is missing, so what was said before the machine learned is unknown. The predictor has learned the
            example, the thresholds have not moved.
        NotConverged
            The predictor's own fit fails, or its window cannot restart; all have learned the example.
        """
        said, truth, late, inner = _checked_noted(self._noted(x, y, noted))
        refused = self.machine is None  # a predictor whose machine has learned can only fail to fit
        try:
            self.predictor.after_learning(x, y, inner)
            refused = False
        except NotConverged:
            refused = False
            raise
        finally:
            if not refused:
                self.n += 1
                if late > self._late:
                    self._late = late
                self._learn(said, truth)


def _checked_noted(noted: Any) -> Noted:
    if not isinstance(noted, tuple) or len(noted) != 4 or not isinstance(noted[0], tuple):
        raise TypeError(f"noted must be what note(x, y) returned, got {noted!r}")
    return noted


def rising(name: str, levels: Any) -> tuple[float, ...]:
    """Return rising levels, at least one, or say what is wrong with them."""
    given = tuple(fraction(name, level) for level in members(name, levels, "numbers in (0, 1)"))
    if not given or any(one >= other for one, other in pairwise(given)):
        raise ValueError(f"{name} must be rising numbers in (0, 1), at least one, got {levels!r}")
    return given


def checked_steps(name: str, steps: Any) -> Steps:
    """Return the steps, or say what is wrong with them."""
    return with_methods(name, steps, "ConstantSteps() or DecayingSteps()", "at")
