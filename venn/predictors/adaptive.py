"""Sets of labels and intervals for numbers with a long-run error rate on any stream: levels move with the errors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from venn._compiled.any_sequence import move, move_by_set, on_levels
from venn.distribution import HAIR, NestedIntervals, NumberPrediction
from venn.labels import HasLabels, Real, label_space, space_of
from venn.machines.machine import NotConverged
from venn.parameters import Parameters, fraction, integer, members, optional, positive, with_methods
from venn.prediction import LONG_RUN, Floats, Label, PredictionSet
from venn.predictors.learning import AroundPredictor, copied_predictor
from venn.predictors.restarting import SEEDS, Watcher, checked_monitor
from venn.saved import component, own, param, part, restored_finite, restored_float, restored_int, restored_like, state

# ------------------------------------------------------------------------------------------------------------- long run
# What predictors with a long-run error rate share: how far levels move, what is proved, how they learn.

LEVELS = (0.01, 0.05, 0.1, 0.2)  # those at which records and monitors count errors
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


# ------------------------------------------------------------------------------------------------------------- adaptive
# Sets of labels with a long-run error rate on any stream: the level moves with the errors.

Asked = tuple[PredictionSet, PredictionSet, Floats, int]  # its own set, the predictor's, groups, restarts so far

WATCHING = own(lambda model: None if model.monitor is None else model.monitor.fresh(seed=model.seed))


def checked_groups(name: str, groups: Any) -> Any:
    """Return a function as it is, and features' positions as a tuple; or say what is wrong with them."""
    if callable(groups):
        return groups
    return tuple(integer(name, place, 0) for place in members(name, groups, "features' positions"))


@component
class Adaptive(LongRun):
    """Sets of labels whose long-run error rate is the level on any stream, made from another predictor's sets.

    It compares the p-values of a predictor of sets with a threshold of its own for each level. After a set that missed
    the label the threshold falls, so that the next sets are larger; after a hit it rises a little. On exchangeable
    streams it stays near the level, where the predictor's sets are already right. On streams that drift it moves to
    where the error rate is right.

    Predictions are `PredictionSet`s: their p-values are those of the predictor, moved along the scale so that
    `set(level)` is the set above, for each of the `levels`. At other levels sets are in between, and nothing is proved.
    They say "long-run error rate" in `guaranteed`.

    What is proved, for any stream, made by an adversary who knows all but the random numbers, or even those; there is
    no probability in it. After N labels the number of errors at the k-th level e_k (from 1, in rising order) is within
    `bound` of N e_k: (1 + k s (1 + d)) / s_N, where s is the first step's size, s_N the last one's, and d the largest
    number of labels that came between a question and its answer (`Online` says so; elsewhere 0). Where the clock of the
    steps started anew, it is the sum of such terms, one for each start.

    What is not proved: anything about a single set, or about the size of sets. Sets that are empty and full in turn
    keep the promise, too. So read sizes beside errors: `certificates` has both.

    Parameters
    ----------
    predictor : predictor of sets
        Such as `Conformal`, `InductiveConformal`, on a window or not, or `Restarting` around one. It is copied; a
        machine that it shares with others is not.
    levels : sequence of numbers in (0, 1), default (0.01, 0.05, 0.1, 0.2)
        Rising. The sets are nested.
    steps : optional
        `ConstantSteps()`, the default, or `DecayingSteps()`.
    monitor : Watcher, optional
        A pattern, such as `Monitor(classes)`, of which fresh copies are used. It watches the predictor's own
        p-values; when it rings, the clock of the steps starts anew, so that steps that have become small are large
        again. A restart of a `Restarting` predictor does the same.
    groups : sequence of features' positions, or function from an object to m truth values, optional
        Groups of objects, which may overlap: an object belongs to the groups whose features are not 0. The promise
        then holds in each group, and among all objects, which are the first group. It needs a single level and
        constant steps. With a function `save` cannot keep the predictor.
    seed : int >= 0, default 0
        Of the monitors.

    Attributes
    ----------
    predictor : predictor
        The copy. Do not teach it.
    n : int
        Number of labels that came.
    alarms : tuple of (int, tuple)
        Pairs of `n` and the alarms that a monitor rang there.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. By `predict_one`: the predictor does not predict sets, or groups are not
        truth values, of the same number for every object.

    Notes
    -----
    Why it holds. Thresholds are never clipped. One that is 1 or more makes its set empty, which is an error, so it
    falls; the lowest level's, below 0, makes the set full, so it rises. The k-th level's set is compared with the
    largest threshold up to k, so that sets are nested; while that is another one, both levels err together, and the
    k-th threshold gains on the one below. So the k-th stays between -k s (1 + d) + e_k s (1 + d) and
    1 + e_k s (1 + d). Its moves add up, divided by the sizes of steps, to N e_k less the errors; by summation in parts
    that is at most the width of this interval divided by the last step's size.

    With groups the threshold is theta . g, where g holds the m truth values, and each theta moves with the errors of
    its group: after N labels the errors of a group differ from level times its size by exactly the change of its theta,
    divided by the step's size s. With |g|^2 <= m and a level e the square of |theta| grows by at most 2 s e + s^2 m (1
    + 2 d) in a step: a step moves it away from 0 only from a threshold in [0, 1). So `bound` is (e + sqrt(e^2 + N (2 s
    e + s^2 m (1 + 2 d)))) / s, which grows as the square root of N.

    References
    ----------
    Gibbs & Candès (2021), arXiv:2106.00170; Angelopoulos, Foygel Barber & Bates (2024), arXiv:2402.01139. The bounds
    for nested sets, late labels and clocks that start anew are derived from their arguments, as above.

    Examples
    --------
    The labels change places in the middle of the stream:

    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = Adaptive(venn.Conformal(machine), levels=[0.1])
    >>> rng = np.random.default_rng(0)
    >>> fixed = 0
    >>> for step in range(600):
    ...     x = rng.normal(size=1)
    ...     y = "yes" if (x[0] > 0) == (step < 300) else "no"
    ...     fixed += y not in model.predictor.predict_one(x).set(0.1)
    ...     model.learn_one(x, y)
    >>> (certificate,) = model.certificates
    >>> fixed > 120, abs(certificate.errors - 60) < 20 < certificate.bound
    (True, True)
    """

    tells = PredictionSet

    monitor: Watcher | None = param(optional, checked_monitor, default=None)
    groups: Any = param(optional, checked_groups, default=None)
    seed: int = param(integer, 0, default=0)

    _watching: Watcher | None = state(restored_like, start=WATCHING)
    _rung: list[tuple[int, tuple[Any, ...]]] = state(part(list, none=False), start=own(lambda _: []))

    def derive(self) -> None:
        """Find the kind of the predictor's predictions."""
        if self.groups is not None and len(self.levels) > 1:
            raise ValueError(f"levels must hold a single level where there are groups, got {self.levels!r}")
        if self.groups is not None and not isinstance(self.steps, ConstantSteps):
            raise ValueError(f"steps must be ConstantSteps() where there are groups, got {self.steps!r}")
        self.space = label_space(tuple(self.predictor.classes))
        self._may_restart = hasattr(self.predictor, "restarts")
        super().derive()

    @property
    def groups_known(self) -> int | None:
        """Number of groups of objects; groups given by a function are not known before the first object."""
        return 1 if self.groups is None else None if callable(self.groups) else 1 + len(self.groups)

    # ------------------------------------------------------------- certificates

    @property
    def group_certificates(self) -> tuple[Certificate, ...]:
        """What happened in each group: first among all objects, then in the groups in order."""
        return tuple(self._certificate(0, i) for i in range(len(self._counts)))

    @property
    def errors(self) -> dict[float, int]:
        """Number of sets of each level that missed the label."""
        return {one.level: one.errors for one in self.certificates}

    @property
    def bound(self) -> dict[float, float]:
        """How far the errors of each level may be from the level times `n`, whatever the stream."""
        return {one.level: one.bound for one in self.certificates}

    @property
    def sizes(self) -> dict[float, float]:
        """Mean number of labels in the sets of each level."""
        return {one.level: one.size for one in self.certificates}

    @property
    def alarms(self) -> tuple[tuple[int, tuple[Any, ...]], ...]:
        """Pairs of `n` and the alarms that a monitor rang there."""
        return tuple(self._rung)

    def _bound(self, k: int) -> float:
        if self.n == 0 or self.groups is None:
            return super()._bound(k)
        e, m, s = self.levels[k], len(self._counts), self.steps.at(1)
        grown = self.n * (2 * s * e + s * s * m * (1 + 2 * self._late))
        return float((e + np.sqrt(e * e + grown)) / s)

    # --------------------------------------------------------------- predicting

    def predict_one(self, x: Any) -> PredictionSet:
        """Return the p-values of all classes for `x`, moved so that the levels are right; leaves no trace.

        Parameters
        ----------
        x : object
            Any object that the predictor takes.

        Raises
        ------
        TypeError
            The predictor does not predict sets.
        """
        return self._ask(x)[0]

    def _ask(self, x: Any) -> Asked:
        """Return the answer about `x`."""
        now = self.predictor.predict_one(x)
        if not isinstance(now, PredictionSet):
            raise TypeError(
                f"predictor must predict sets of labels, as Conformal does, got {type(now).__name__} by "
                f"{self.predictor!r}"
            )
        g = EVERYONE if self.groups is None else self._groups_of(x)
        values = np.empty(len(now.p_values))
        on_levels(self._books, g, now.p_values, values)
        told = PredictionSet.unchecked(values, self.space.labels, smoothed=now.smoothed, guaranteed=LONG_RUN)
        return told, now, g, len(self.predictor.restarts) if self._may_restart else 0

    def _groups_of(self, x: Any) -> Floats:
        """Return (m,) 1 for the groups of an object, everyone first, and 0 for others."""
        given: Any
        if callable(self.groups):
            given = np.asarray(self.groups(x))
        else:
            row = np.asarray(x)
            if row.ndim != 1 or row.dtype.kind not in "fiub" or len(row) <= max(self.groups, default=-1):
                raise ValueError(f"x must be a row of numbers with the features {list(self.groups)}, got {x!r}")
            given = row[list(self.groups)] != 0
        if given.ndim != 1 or not np.isin(given, (0, 1)).all():
            raise ValueError(f"groups must return a sequence of truth values, got {given!r} for {x!r}")
        g = np.append(1.0, given.astype(np.float64))
        if self.n and len(g) != len(self._counts):
            raise ValueError(f"groups must return {len(self._counts) - 1} truth values as before, got {len(given)}")
        return g

    # ----------------------------------------------------------------- learning

    def _learn(self, said: Any, truth: int) -> None:
        told, now, g, restarts = said
        if len(g) != len(self._counts):  # the first object of a function of groups
            self._open(self.new_books(len(g)))
        move_by_set(self._books, g, self.steps.at(self._clock), told.p_values, truth)
        if self._watching is not None or self._may_restart:
            self._hear(now, truth, restarts)

    def _hear(self, now: PredictionSet, truth: int, restarts: int) -> None:
        """Restart the clock if a monitor rings, here or in the predictor."""
        rung = () if self._watching is None else tuple(self._watching.update(now, self.space.labels[truth]))
        if rung and self.monitor is not None:
            self._rung.append((self.n, rung))
            self._watching = self.monitor.fresh(seed=self.seed + SEEDS * len(self._rung))
        if rung or (self._may_restart and len(self.predictor.restarts) > restarts):
            self._start_clock()

    def _start_clock(self) -> None:
        """Make steps large again. Constant steps do not change."""
        last = self.steps.at(self._clock)
        if last < self.steps.at(1):
            self._spent += 1.0 / last
            self._clock = 0


# --------------------------------------------------------------------------------------------------- adaptive intervals
# Intervals for numbers with a long-run error rate on any stream: the level moves with the errors.

PARTS = 1_000_000  # levels are told apart down to one over this


@component
class AdaptiveIntervals(LongRun):
    """Intervals for a number whose long-run error rate is the level on any stream, made from another predictor's.

    Each level has a threshold: the interval told at the level is the predictor's interval at the threshold. After an
    interval that missed the label the threshold falls, so that the next ones are wider; after a hit it rises a little.
    On exchangeable streams it stays near the level, where the predictor's intervals are already right; on streams that
    drift it moves to where the error rate is right.

    Predictions are `NestedIntervals`: `interval(level)` is the interval above for each of the `levels`; at other levels
    it is that of the next lower one, and nothing is proved. They say "long-run error rate" in `guaranteed`.

    What is proved, for any stream, made by an adversary who knows all but the future of his own choices; there is no
    probability in it. After N labels the number of errors at the k-th level e_k (from 1, in rising order) is at most
    N e_k + `bound`, with bound (1 + k s (1 + d)) / s_N: s is the first step's size, s_N the last one's, and d the
    largest number of labels that came between a question and its answer (`Online` says so; elsewhere 0). It is also at
    least N e_k - `bound` if no label equals an interval that has shrunk to its forecast, to the last bit.

    What is not proved: anything about a single interval, or about widths. Intervals that are a point and the whole line
    in turn keep the promise, too. So read widths beside errors: `certificates` has both.

    Parameters
    ----------
    predictor : predictor of numbers
        Such as `ConformalIntervals`, `ConformalDistribution` or `InductiveDistribution`, on a window or not. It is
        copied; a machine that it shares with others is not.
    levels : sequence of numbers in (0, 1), default (0.01, 0.05, 0.1, 0.2)
        Rising, by steps of 1e-6 or more.
    steps : optional
        `ConstantSteps()`, the default, or `DecayingSteps()`.

    Attributes
    ----------
    predictor : predictor
        The copy. Do not teach it.
    n : int
        Number of labels that came.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. By `predict_one`: the predictor does not predict numbers.

    Notes
    -----
    Why it holds: as for `Adaptive`. Thresholds are never clipped. At a threshold of 0 or less the interval is the whole
    line, which is no error, so the threshold rises; at 1 or more it is the forecast alone, which is an error unless
    the label equals it, so the threshold falls. The interval of the k-th level is by the largest threshold up to k, so
    that intervals are nested.

    References
    ----------
    Gibbs & Candès (2021), arXiv:2106.00170; Angelopoulos, Foygel Barber & Bates (2024), arXiv:2402.01139.

    Examples
    --------
    The noise becomes ten times as large in the middle of the stream:

    >>> import venn
    >>> from venn.predictors import ConformalIntervals
    >>> model = AdaptiveIntervals(ConformalIntervals(venn.machines.KernelRidge(venn.RBF(0.1), C=1)), levels=[0.1])
    >>> rng = np.random.default_rng(0)
    >>> fixed = 0
    >>> for step in range(400):
    ...     x = rng.normal(size=1)
    ...     y = x[0] + rng.normal() * (1 if step < 200 else 10)
    ...     lower, upper = model.predictor.predict_one(x).interval(0.1)
    ...     fixed += not lower <= y <= upper
    ...     model.learn_one(x, y)
    >>> (certificate,) = model.certificates
    >>> fixed > 70, abs(certificate.errors - 40) < 20 < certificate.bound
    (True, True)
    """

    tells = NestedIntervals

    def derive(self) -> None:
        """Find the kind of the predictor's predictions."""
        if not (np.diff([0, *map(_rank, self.levels), PARTS]) > 0).all():
            raise ValueError(f"levels must be rising numbers in (0, 1), 1e-6 apart, got {self.levels!r}")
        self.space = space_of(self.predictor)
        if not isinstance(self.space, Real):
            raise TypeError(f"predictor must predict numbers, as ConformalIntervals does, got {self.predictor!r}")
        super().derive()

    @property
    def thresholds(self) -> Floats:
        """(l,) threshold of each level."""
        return self._theta[:, 0].copy()

    # --------------------------------------------------------------- predicting

    def predict_one(self, x: Any) -> NestedIntervals:
        """Return the intervals for `x`; leaves no trace.

        Parameters
        ----------
        x : object
            Any object that the predictor takes.

        Raises
        ------
        TypeError
            The predictor does not predict numbers by intervals.
        """
        now = self.predictor.predict_one(x)
        if not isinstance(now, NumberPrediction):
            raise TypeError(
                f"predictor must predict intervals for numbers, as ConformalIntervals does, got {type(now).__name__} "
                f"by {self.predictor!r}"
            )
        ends = np.array([_at(now, cut) for cut in np.maximum.accumulate(self.thresholds).tolist()])
        ranks = [_rank(level) for level in self.levels]
        # Nested up to rounding; here to the last bit, and no lower end is above an upper one.
        highest = np.minimum.accumulate(ends[:, 1])
        low = np.minimum(np.maximum.accumulate(ends[:, 0]), highest[-1]).tolist()
        lower = [(end, rank) for end, rank in zip(low, ranks, strict=True) if math.isfinite(end)]
        high = zip(highest.tolist(), ranks, strict=True)
        upper = [(end, 2 * PARTS - 1 - rank) for end, rank in high if math.isfinite(end)]
        points = [*lower, *reversed(upper)]
        tau = getattr(now, "tau", 0.5)
        if not points:
            return NestedIntervals([], now.label, tau, guaranteed=LONG_RUN)
        values, places = zip(*points, strict=True)
        return NestedIntervals(values, now.label, tau, places, 2 * (PARTS - 1), guaranteed=LONG_RUN)

    # ----------------------------------------------------------------- learning

    def _ask(self, x: Any) -> tuple[NestedIntervals]:
        return (self.predict_one(x),)

    def _learn(self, said: tuple[Any, ...], truth: float) -> None:
        lower, upper = np.array([said[0].interval(level) for level in self.levels]).T
        missed = ~((lower <= truth) & (truth <= upper))
        with np.errstate(invalid="ignore"):  # a line from minus infinity to minus infinity has no width
            widths = upper - lower
        move(self._books, EVERYONE, self.steps.at(self._clock), missed.astype(np.float64), widths)


def _at(prediction: Any, cut: float) -> tuple[float, float]:
    """Return a prediction's interval at a threshold: the line at 0 or below, the forecast alone at 1 or above."""
    if cut <= 0:
        return -math.inf, math.inf
    if cut >= 1:
        return prediction.label, prediction.label
    return prediction.interval(cut)


def _rank(level: float) -> int:
    """Return the rank of the nested interval for this level."""
    return math.floor(level * PARTS + HAIR)
