"""What predictors with a long-run error rate share: how far levels move, what is proved, how they learn."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from venn.labels import HasLabels
from venn.machines.machine import NotConverged
from venn.parameters import Parameters, fraction, integer, members, positive, with_methods
from venn.prediction import LEVELS, LONG_RUN, Floats, Label
from venn.predictors.learning import AroundPredictor, copied_predictor
from venn.saved import component, own, param, restored_finite, restored_float, restored_int, state

EVERYONE = np.ones(1)  # without groups: every object is in the group of all


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


def rising(name: str, levels: Any) -> tuple[float, ...]:
    """Return rising levels, at least one, or say what is wrong with them."""
    given = tuple(fraction(name, level) for level in members(name, levels, "numbers in (0, 1)"))
    if not given or any(one >= other for one, other in pairwise(given)):
        raise ValueError(f"{name} must be rising numbers in (0, 1), at least one, got {levels!r}")
    return given


def checked_steps(name: str, steps: Any) -> Steps:
    """Return the steps, or say what is wrong with them."""
    return with_methods(name, steps, "ConstantSteps() or DecayingSteps()", "at")


def _restored_books(name: str, books: Any, model: LongRun) -> Floats:
    """Return books of a state, or say what they must be."""
    m = books.shape[-1] // 4 if isinstance(books, np.ndarray) and books.ndim else 1
    return restored_finite(name, books, model.new_books(max(m, 1)).shape)


#: The answer to a question, whose first part is the prediction; the encoded label; the number of labels that came
#: between question and answer; what the predictor prepared. A plain tuple, since a step is a few microseconds.
Prepared = tuple[tuple[Any, ...], Any, int, Any]


@component
class LongRun(HasLabels, AroundPredictor):
    """Base of predictors whose thresholds, one for each level, move with the errors of another predictor's answers."""

    tells: ClassVar[type[Any]]  # what they predict

    predictor: Any = param(copied_predictor)
    levels: Sequence[float] = param(rising, default=LEVELS)
    steps: Steps = param(checked_steps, default=ConstantSteps())

    n: int = state(restored_int, start=0)
    _late: int = state(restored_int, start=0)
    _clock: int = state(restored_int, start=0)
    _spent: float = state(
        restored_float, 0.0, start=0.0
    )  # sum of 1 / size of the last step before each start of the clock
    _books: Floats = state(_restored_books, own(lambda model: model), start=own(lambda model: model.new_books(1)))

    def derive(self) -> None:
        """Make views of the books. They are one table, so that a compiled step is cheap."""
        self._open(self._books)

    @property
    def groups_known(self) -> int | None:
        """Number of groups of objects, if known before the first object; by default one group of all."""
        return 1

    def new_books(self, m: int) -> Floats:
        """Return empty books for the known number of groups, or else for m groups."""
        m = self.groups_known or m
        books = np.zeros((len(self.levels) + 1, 4 * m + 1))
        books[:-1, 0] = books[:-1, -1] = self.levels
        return books

    def _open(self, books: Floats) -> None:
        m = books.shape[1] // 4
        self._books, self._counts = books, books[-1, :m]
        self._theta, self._errors, self._sizes, self._sized = (books[:-1, i * m : (i + 1) * m] for i in range(4))

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """For each level the number of labels and errors so far, the bound, and the mean size of the predictions.

        Of sets the size is the number of labels, of intervals the width; infinite widths are left out.
        """
        return tuple(self._certificate(k, 0) for k in range(len(self.levels)))

    @property
    def thresholds(self) -> Floats:
        """(l, m) threshold of each level, by group of objects; without groups there is one."""
        return self._theta.copy()

    def _certificate(self, k: int, i: int) -> Certificate:
        size = float(self._sizes[k, i] / self._sized[k, i]) if self._sized[k, i] else math.nan
        return Certificate(self.levels[k], int(self._counts[i]), int(self._errors[k, i]), self._bound(k), size)

    def _bound(self, k: int) -> float:
        """Return how far the errors at level k may be from their number; see `Adaptive`, "What is proved"."""
        if self.n == 0:
            return 0.0
        one_over_sizes = self._spent + (1.0 / self.steps.at(self._clock) if self._clock else 0.0)
        return (1.0 + (k + 1) * self.steps.at(1) * (1 + self._late)) * one_over_sizes

    @abstractmethod
    def _ask(self, x: Any) -> tuple[Any, ...]:
        """Return the prediction for an object, followed by what `_learn` needs."""

    @abstractmethod
    def _learn(self, said: tuple[Any, ...], truth: Any) -> None:
        """Move the thresholds by a step of size `steps.at(clock)`, and count errors and sizes."""

    def prepare(self, x: Any, y: Label) -> Prepared:
        """Return the prediction for `x` before anything learns, with what the predictor prepares; or refuse it."""
        truth = self.space.encode(y)
        inner = self.predictor.prepare(x, y)
        return self._ask(x), truth, 0, inner

    def prepare_late(self, prepared: Prepared, told: Any, late: int) -> Prepared:
        """Return the same with the earlier prediction in place of the present one: its errors count.

        Raises
        ------
        TypeError, ValueError
            `prepared` is not what `prepare` returned, or `told` is no prediction of this predictor.
        """
        said, truth, _, inner = _checked_prepared(prepared)
        late = integer("late", late, 1)
        own = isinstance(told, self.tells) and told.guaranteed == LONG_RUN
        if not own or getattr(told, "classes", None) != getattr(said[0], "classes", None):
            raise TypeError(f"told must be a prediction of this predictor, got {told!r}")
        return (told, *said[1:]), truth, late, inner

    def commit(self, x: Any, y: Label, prepared: Prepared | None = None) -> None:
        """Learn one example that the machine has already learned: the predictor learns, and thresholds move.

        Raises
        ------
        RuntimeError
            `prepared` is missing, so what was said before the machine learned is unknown. The predictor has learned the
            example, the thresholds have not moved.
        NotConverged
            The predictor's own fit fails, or its window cannot restart; all have learned the example.
        """
        said, truth, late, inner = _checked_prepared(self._prepared(x, y, prepared))
        refused = self.machine is None  # a predictor whose machine has learned can only fail to fit
        try:
            self.predictor.commit(x, y, inner)
            refused = False
        except NotConverged:
            refused = False
            raise
        finally:
            if not refused:
                self.n += 1
                self._clock += 1
                if late > self._late:
                    self._late = late
                self._learn(said, truth)


def _checked_prepared(prepared: Any) -> Prepared:
    if not isinstance(prepared, tuple) or len(prepared) != 4 or not isinstance(prepared[0], tuple):
        raise TypeError(f"prepared must be what prepare(x, y) returned, got {prepared!r}")
    return prepared
