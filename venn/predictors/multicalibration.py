"""Venn multicalibration: probabilities that are right on average in overlapping groups, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from scipy.special import expit

from venn._compiled.multicalibration import add_many, fit_bag, replay_multicalibration
from venn.labels import LARGEST
from venn.machines.frozen import FrozenScorer, ObjectRows
from venn.machines.machine import Machine, NotConverged, only_table
from venn.machines.threads import one_thread
from venn.machines.window import inside
from venn.parameters import flag
from venn.prediction import Bools, Floats, GroupIntervals, Integers, Label
from venn.predictors.blocks import ManyGroupIntervals
from venn.predictors.inductive_base import GIVEN, Inductive, fitting_schedule, scorer_of_classes
from venn.predictors.learning import MergingReader, OnMachine, machine_of_classes
from venn.saved import checked_keys, component, held_finite, param
from venn.schedules import Schedule
from venn.taxonomies.groups import Clean, checked_by
from venn.turns import asks

Of: TypeAlias = int | Sequence[int] | Callable[[Floats], Any]  #: what names the functions g


PROBABILITIES, LOG_ODDS, MARGINS = "probabilities", "log-odds", "margins"  #: what scores mean


def meaning_of(machine: Any) -> str:
    """Return what the scores of a machine or scorer mean: no theorem depends on it, only how good the values are."""
    if getattr(machine, "probabilities", False):
        return PROBABILITIES
    return LOG_ODDS if isinstance(inside(machine), FrozenScorer) else MARGINS


def shares_of(scores: Floats, meaning: str) -> Floats:
    """Return scores as numbers in [0, 1]."""
    if meaning == PROBABILITIES:
        return scores
    return expit(scores) if meaning == LOG_ODDS else np.clip((scores + 1.0) / 2.0, 0.0, 1.0)


class Functions:
    """The functions g of an object, the constant 1 first.

    Parameters
    ----------
    groups : int, tuple of int, or callable
        As `checked_by` returns it.
    """

    def __init__(self, groups: Clean) -> None:
        self.groups: Any = (groups,) if isinstance(groups, int) else groups
        self.m: int | None = None if callable(self.groups) else 1 + len(self.groups)

    def of(self, rows: Floats) -> Floats:
        """Return (n, m) values of g at n objects (n, d).

        Raises
        ------
        ValueError, TypeError
            The objects have no such feature, or the function returned what is not a row of numbers of size at most
            1e100.
        """
        values = np.ones((len(rows), self.m or 1))
        if not callable(self.groups):
            if max(self.groups) >= rows.shape[1]:
                raise ValueError(f"groups must be features' positions below {rows.shape[1]}, got {self.groups}")
            values[:, 1:] = rows[:, list(self.groups)]
        elif len(rows):
            values = np.column_stack([np.ones(len(rows)), [self._asked(row) for row in rows]])
        if not abs(values).max(initial=0.0) <= LARGEST:  # NaN, too
            i, j = np.argwhere(~(abs(values) <= LARGEST))[0].tolist()
            raise ValueError(
                f"groups must be functions of size at most {LARGEST:g}, as squares are summed, got {values[i, j]:g} "
                f"for {rows[i]}"
            )
        return values

    def _asked(self, row: Floats) -> Floats:
        answer = self.groups(row.copy())
        try:
            g = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            g = np.empty(0)
        if g.ndim != 1 or not g.size or not np.isfinite(g).all():
            raise ValueError(f"groups must return a row of finite numbers, got {answer!r} for {row}")
        if self.m is not None and len(g) != self.m - 1:
            raise ValueError(f"groups must return {self.m - 1} numbers as before, got {len(g)} for {row}")
        return g


def not_solved(what: str) -> NoReturn:
    """Raise where functions depend on each other so nearly that the equations cannot be solved."""
    raise NotConverged(
        f"groups must be functions that depend on each other exactly or clearly not, got normal equations that are not "
        f"solved to 1e-9 for {what}"
    )


def origin_at(g: Floats) -> Floats:
    """Return (m,) what to subtract from g so that it is 1 and zeros.

    As the constant is among the functions, the values fitted stay the same. Without it the squares of functions far
    from 0 would swallow what differs between examples. An example of the bag is never too far from the others: then the
    bag is as wide.
    """
    origin = g.copy()
    origin[0] = 0.0
    return origin


def from_zero(coefficients: Floats, origin: Floats) -> Floats:
    """Return the coefficients (..., m) of g, from those of g less its origin."""
    moved = coefficients.copy()
    moved[..., 0] -= coefficients @ origin
    return moved


class GroupSums(MergingReader):
    """Reader of calibration scores with g beside them: it keeps the sums of the normal equations, no example.

    They are sums of g less that of the first calibration example, the origin.
    """

    def __init__(self, classes: tuple[Label, ...], m: int | None, meaning: str) -> None:
        self.classes = classes
        self._fixed = m
        self._meaning = meaning
        self.clear()

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._hold(0 if self._fixed is None else self._fixed)

    def _hold(self, m: int) -> None:
        self._origin: Floats | None = None
        self._R, self._b = np.zeros((m, m)), np.zeros((len(self.classes), m))

    def _begin(self, g: Floats) -> Floats:
        """Take the g of the first calibration example for the origin, and return that."""
        self._hold(len(g))
        self._origin = origin_at(g)
        return self._origin

    def _sums(self, m: int) -> tuple[Floats, Floats]:
        return (self._R, self._b) if self._R.size else (np.zeros((m, m)), np.zeros((len(self.classes), m)))

    def _split(self, read: Floats) -> tuple[Floats, Floats]:
        """Return (n, c) scores as numbers in [0, 1] and (n, m) values of g."""
        c = len(self.classes)
        scores, functions = read[:, :c], np.ascontiguousarray(read[:, c:])
        return np.ascontiguousarray(shares_of(scores, self._meaning)), functions

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c + m) scores and g, and (n,) class codes."""
        probabilities, functions = self._split(scores)
        if len(codes):
            origin = self._begin(functions[0]) if self._origin is None else self._origin
            add_many(self._R, self._b, probabilities, functions - origin, codes)

    @property
    def state(self) -> dict[str, Any]:
        """The sums, and their origin."""
        return {"origin": self._origin, "R": self._R, "b": self._b}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold the sums of a `state`, or raise a ValueError if they are not possible ones."""
        checked_keys("state of the reader", state, ("origin", "R", "b"))
        m = np.shape(state["R"])[0] if np.ndim(state["R"]) == 2 else -1
        if self._fixed not in (None, m):
            raise ValueError(f"R must be of {self._fixed} functions, got {m}")
        origin = state["origin"]
        self._R = held_finite("R", state["R"], (m, m)).copy()
        self._b = held_finite("b", state["b"], (len(self.classes), m)).copy()
        self._origin = None if origin is None else held_finite("origin", origin, (m,)).copy()

    def predict(self, scores: Floats) -> ManyGroupIntervals:
        """Return the predictions for n objects of (n, c + m) scores and g; leaves no trace."""
        return self.replay(scores, np.zeros(len(scores), np.int64), np.zeros(len(scores), np.bool_))

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> ManyGroupIntervals:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        probabilities, functions = self._split(scores)
        alone = 0
        if self._origin is None:  # as long as there is none, each object is its own
            first = np.flatnonzero(calibrates)[:1]
            alone = int(first[0]) + 1 if len(first) else len(codes)
            if len(first):
                self._begin(functions[first[0]])
        moved = functions.copy() if self._origin is None else functions - self._origin
        moved[:alone, 1:] = 0.0
        values = np.empty((len(codes), len(self.classes), 2))
        R, b = self._sums(functions.shape[1])
        failed = replay_multicalibration(R, b, probabilities, moved, codes, calibrates, values)
        if failed >= 0:
            not_solved(f"g = {functions[failed].tolist()}")
        return ManyGroupIntervals(values, self.classes)

    def coefficients(self, read: Floats) -> Floats:
        """Return (c, 2, m) of what is fitted to the errors of the bag with one object of (1, c + m) scores and g."""
        probabilities, functions = self._split(read)
        g = functions[0]
        origin = origin_at(g) if self._origin is None else self._origin
        out = np.empty((len(self.classes), 2, len(g)))
        if not fit_bag(*self._sums(len(g)), probabilities[0], g - origin, out):
            not_solved(f"g = {g.tolist()}")
        return from_zero(out, origin)

    def nothing(self, n: int) -> ManyGroupIntervals:
        """Return predictions that say nothing for n objects, while there is no scorer: 0 and 1 for every class."""
        return ManyGroupIntervals(np.tile([0.0, 1.0], (n, len(self.classes), 1)), self.classes)


@component
class InductiveMulticalibration(Inductive[ManyGroupIntervals]):
    """Venn multicalibration by a scorer that is not trained on the examples it calibrates on.

    For groups that overlap, such as regions, ages and their combinations, and for any functions of the object. For
    class k the label is "k or not". With s the score of k as a number in [0, 1], the errors y - s of the calibration
    examples and the new one, which is supposed first not k, then k, are fitted to the functions g by least squares; the
    values at the new one are s plus what is fitted there. So sum g (y - value) = 0 over the bag, and under
    exchangeability, for each class and each of the functions, E[g(X) (1{Y = k} - value)] = 0 for the value under the
    true hypothesis: in each group as many examples are of class k as the values say, on average. Single predictions are
    not calibrated by this, unless the functions say so: bins of the score among them make it hold within these bins.

    There is no ridge and nothing is clipped, as both break the identity: a value may lie outside [0, 1], see
    `GroupIntervals`. The two values of a class differ by the leverage of g(x), about m / n.

    GroupSums over a stream: the departures g (1{y = k} - value) are martingale differences in reversed time where the
    schedule is exact "online", as for `InductiveVenn`.

    With m functions, learning costs O(m^2 + m c) and predicting O(m^3 + m c), whatever the number of examples; memory
    is O(m^2 + m c).

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing, or a scorer fitted elsewhere, on other examples. Probabilities
        are taken as they are; decision values of a `FrozenScorer` as log-odds; all others are mapped from [-1, 1] to
        [0, 1] and clipped. The theorem holds whatever the scores are.
    groups : int, sequence of int, or callable
        What the functions are: positions of features, such as columns of 0 and 1 that say who is in a group; or a
        function from an object, (d,) float64, to a row of numbers, always as many. The constant 1 is always among them.
        It must not depend on the label.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenScorer`.

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Do not teach it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; on asking and learning, for what `groups` returns.
    NotConverged
        On asking, where functions depend on each other so nearly that the identity would not hold.

    References
    ----------
    van der Laan & Alaa (2025), "Generalized Venn and Venn-Abers calibration with applications in conformal prediction",
    ICML; Hébert-Johnson, Kim, Reingold & Rothblum (2018), "Multicalibration".

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from venn.machines.frozen import FrozenScorer
    >>> scorer = FrozenScorer(LogisticRegression().fit([[0, 0], [1, 0], [0, 1], [2, 1]], ["no", "yes", "no", "yes"]))
    >>> model = InductiveMulticalibration(scorer, groups=[1])
    >>> labels = ["no", "yes", "no", "yes", "no", "no", "yes", "yes"]
    >>> model.learn_many([[0, 0], [1, 0], [0, 1], [1, 1]] * 100, labels * 50)

    Three of four examples with 1 in the second column were "yes", and one of four of the others; the scorer knows
    nothing of it, the values do:

    >>> model.predict_many([[0, 1], [1, 1]]).values[:, 1].mean(axis=0).round(2)
    array([0.75, 0.75])
    """

    machine: Any = param(scorer_of_classes, kept_as="given")
    groups: Clean = param(checked_by)
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return what sums for the normal equations."""
        return GroupSums(tuple(self.given.classes), Functions(self.groups).m, meaning_of(self.given))

    def derive(self) -> None:
        """Know how many functions there are, if the first example has said so."""
        super().derive()
        self._functions = Functions(self.groups)
        self._functions.m = self._functions.m or len(self._reader.state["R"]) or None

    def _read(self, rows: ObjectRows) -> Floats:
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return np.column_stack([super()._read(rows), self._functions.of(dense)])

    def _advance(
        self, rows: ObjectRows, codes: Integers, predict: bool, scores: Floats | None = None
    ) -> list[ManyGroupIntervals]:
        blocks = super()._advance(rows, codes, predict, scores)
        self._learned_from(rows)
        return blocks

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example, and train if the schedule says so."""
        noted = noted or self.note(x, y)
        super().after_learning(x, y, noted)
        self._learned_from(noted[0])

    def _learned_from(self, rows: ObjectRows) -> None:
        """Fix the number of functions by the first example."""
        if self._functions.m is None and len(rows):
            first = rows[:1] if isinstance(rows, np.ndarray) else rows[:1].toarray()
            self._functions.m = self._functions.of(first).shape[1]

    @asks
    def coefficients(self, x: Any) -> Floats:
        """Return what is fitted to the errors of the bag with `x` in it, to audit the identity; leaves no trace.

        Returns
        -------
        (c, 2, m) float64
            For class k, if x is not of it and if it is: the value of any example of the bag is its score plus
            g . coefficients. The constant comes first.
        """
        return self._reader.coefficients(self.scores_of(self._row(x)))

    def merge(self, other: Any) -> NoReturn:
        """Raise: sums in floating point depend on the order of the parts in their last bits."""
        raise TypeError(f"{type(self).__name__} does not merge: teach one predictor the examples of all parts")


@component
class TransductiveMulticalibration(OnMachine):
    """Venn multicalibration over the whole augmented bag.

    For each class and each hypothesis "x is of class k or not" the machine scores all examples, the new one included,
    with k as supposed; the errors of these scores are fitted to the functions g by least squares, as in
    `InductiveMulticalibration`, which says what holds: E[g(X) (1{Y = k} - value)] = 0 under exchangeability, for the
    value under the true hypothesis, at each step; and departures are martingale differences in reversed time.

    A step costs O(n m (m + c)) besides the machine's.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`. Its scores become numbers in [0, 1] as in
        `InductiveMulticalibration`.
    groups : int, sequence of int, or callable
        What the functions are, as for `InductiveMulticalibration`.
    deleted : bool, default True
        Use the score of each example by the machines without it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; on asking, for what `groups` returns, and for sparse objects.
    NotConverged
        On asking, where functions depend on each other so nearly that the identity would not hold.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = TransductiveMulticalibration(machine, groups=[1])
    >>> for i in range(40):
    ...     model.learn_one([i % 2, i % 4 // 2], "yes" if i % 2 else "no")
    >>> model.predict_one([1, 0]).label, model.coefficients([1, 0]).shape
    ('yes', (2, 2, 2))
    """

    machine: Machine = param(machine_of_classes)
    groups: Clean = param(checked_by)
    deleted: bool = param(flag, default=True)

    def derive(self) -> None:
        """Say which scores are read."""
        self._functions = Functions(self.groups)
        if self.deleted:
            self.machine.expect_deleted()

    def _bag(self, x: Any) -> tuple[int, Floats, Floats, Floats, Floats, Floats]:
        """Return the column of x, g (n, m) less the origin (m,), scores (2, c, n), sums R (m, m) and b (2, c, m)."""
        table = only_table(self.machine.hypotheses(x).tables(self.deleted))
        columns = len(table.labels)
        if table.objects.shape[1] < columns:
            raise TypeError(f"x must be dense for {type(self).__name__}: sparse objects are not read by feature")
        functions = self._functions.of(np.ascontiguousarray(table.objects[:, :columns].T))
        origin = origin_at(functions[table.test])
        functions = functions - origin
        scores = np.array([table.negative[:, :columns], table.positive[:, :columns]])
        s = shares_of(scores, meaning_of(self.machine))
        counted = table.weights > 0
        counted[table.test] = True
        each, weights = functions[counted], table.weights[counted].astype(np.float64)
        is_class = table.labels[counted] == np.arange(len(self.classes))[:, None]
        with one_thread():
            R = (each * weights[:, None]).T @ each
            b = ((is_class - s[..., counted]) * weights) @ each
        return table.test, functions, origin, s, R, b

    @asks
    def coefficients(self, x: Any) -> Floats:
        """Return (c, 2, m) of what is fitted to the errors of the bag with `x` in it; leaves no trace.

        See `InductiveMulticalibration.coefficients`.
        """
        test, functions, origin, s, R, b = self._bag(x)
        c, g = len(self.classes), functions[test]
        out = np.empty((c, 2, len(g)))
        for v in range(2):  # scores differ between the suppositions
            both = np.empty((c, 2, len(g)))
            if not fit_bag(R, np.ascontiguousarray(b[v]), np.ascontiguousarray(s[v, :, test]), g, both):
                not_solved(f"g = {(g + origin).tolist()}")
            out[:, v] = both[:, v]
        return from_zero(out, origin)

    def predict_one(self, x: Any) -> GroupIntervals:
        """Return the values of every class for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        test, functions, origin, s, R, b = self._bag(x)
        g, c = functions[test][None], len(self.classes)
        values = np.empty((2, 1, c, 2))
        none, codes = np.zeros(1, np.bool_), np.zeros(1, np.int64)
        for v in range(2):
            here = np.ascontiguousarray(s[v, :, test])[None]
            if replay_multicalibration(R, np.ascontiguousarray(b[v]), here, g, codes, none, values[v]) >= 0:
                not_solved(f"g = {(g[0] + origin).tolist()}")
        return GroupIntervals(np.stack([values[0, 0, :, 0], values[1, 0, :, 1]], axis=1), self.classes)
