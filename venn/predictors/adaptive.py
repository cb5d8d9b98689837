"""Sets of labels with a long-run error rate on any stream: the level moves with the errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.any_sequence import move_by_set, on_levels
from venn.labels import label_space
from venn.parameters import integer, members, optional
from venn.prediction import LONG_RUN, Floats, PredictionSet
from venn.predictors.long_run import EVERYONE, Certificate, ConstantSteps, LongRun
from venn.predictors.restarting import SEEDS, Watcher, checked_monitor
from venn.saved import component, own, param, part, restored_like, state

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
