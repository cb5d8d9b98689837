"""Predictors within groups of objects: whatever a predictor promises, it then promises in every group by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from venn.labels import space_of
from venn.machines.base import Reread
from venn.machines.machine import Tables, checked_machine
from venn.machines.objects import ObjectRows
from venn.machines.window import Around
from venn.prediction import Bools, Floats, Integers
from venn.predictors.inductive_base import Inductive
from venn.predictors.learning import OnMachine
from venn.predictors.merging import Mergeable, MergingReader, checked_parts
from venn.saved import component, param
from venn.schedules import Schedule
from venn.shifts import CovariateShift
from venn.taxonomies.groups import By, Clean, Groups, checked_by
from venn.turns import asks, turn_of


def by_group(predictor: Any, by: By) -> Any:
    """Return the same predictor within groups: each example is compared with those of its group only.

    All examples train the scorer, or stand in the machine's bag; only those of the new example's group are counted,
    ranked or fitted to (Mondrian). Under exchangeability what the predictor guarantees then holds in each group by
    itself, and so over all: sets at level epsilon miss the label with probability epsilon in every group. With
    `label_conditional=True` of `Conformal` and `InductiveConformal` it holds for each label in each group.

    The groups must be fixed beforehand and must not overlap; for sets in groups that do, see `Adaptive`. The
    more groups, the fewer examples in each, and the larger sets and intervals are; a step takes no more time.

    Parameters
    ----------
    predictor : predictor that has learned nothing
        `Conformal`, `TransductiveVenn` or `TransductiveVennAbers`; `ConformalDistribution` or `ConformalIntervals`,
        whose groups are not named by functions; or `InductiveConformal`, `InductiveVenn`, `InductiveVennAbers`
        or `InductiveDistribution`. A transductive one may stand on a
        machine that others read: in a `Panel` it is solved once.
    by : int, sequence of int, or callable
        What names the groups, as for `Grouped`: a feature's position, for groups of equal values; several positions,
        such as the columns that encode one attribute; or a function from an object, (d,) float64, to any hashable
        value.

    Returns
    -------
    predictor
        Of the same class on `Within(machine, by)`, or an `InductiveByGroup`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapter 4: Mondrian predictors.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = by_group(venn.Conformal(machine, smoothed=False), by=1)
    >>> for i in range(8):
    ...     model.learn_one([i % 2, 5.0], "yes" if i % 2 else "no")
    >>> model.predict_one([1.0, 5.0]).set(0.2), model.predict_one([1.0, 6.0]).set(0.2)  # the first of its group
    (('yes',), ('no', 'yes'))
    """
    if isinstance(predictor, Inductive):
        if isinstance(getattr(predictor, "shift", None), CovariateShift):
            raise TypeError(
                f"predictor must have no CovariateShift to stand within groups, got {predictor!r}: make one a group"
            )
        return InductiveByGroup(predictor, checked_by("by", by))
    if isinstance(predictor, OnMachine) and "group" in predictor.parameters:  # of numbers: it ranks no table
        return type(predictor).made_of(predictor.parameters | {"group": _beside(predictor.parameters["group"], by)})
    if isinstance(predictor, Mapping):  # a panel, such as a Forecaster
        raise TypeError(
            f"predictor must be a single one to stand within groups, got the {type(predictor).__name__} of "
            f"{', '.join(predictor)}: one within groups stands beside it, "
            'Forecaster(..., beside={"groups": by_group(Conformal(machine), by)})'
        )
    if not isinstance(predictor, OnMachine) or not space_of(predictor).labels:
        raise TypeError(
            "predictor must be a conformal, Venn or Venn-Abers predictor, such as Conformal(machine), to stand within "
            f"groups, got {predictor!r}"
        )
    return type(predictor).made_of(predictor.parameters | {"machine": Within(predictor.machine, checked_by("by", by))})


def _beside(group: int | tuple[int, ...] | None, by: By) -> int | tuple[int, ...]:
    """Return features that name groups, joined with earlier ones."""
    clean = checked_by("by", by)
    if callable(clean):
        raise TypeError(f"by must be positions of features, not a function, for a predictor of numbers, got {by!r}")
    if group is None:
        return clean
    before, named = (one if isinstance(one, tuple) else (one,) for one in (group, clean))
    return tuple(dict.fromkeys((*before, *named)))


# Transductive ----------------------------------------------------------------------------------------------------


@component
class Within(Around):
    """A view of a machine for predictors within groups: examples of other groups than the new one's do not count.

    The machine learns all examples. In the tables that predictors read, examples of other groups have weight 0. In a
    `Panel` the machine is solved and taught once, whoever else reads it. `by_group` puts it below a predictor.

    Parameters
    ----------
    machine : Machine
        Whose tables hold objects: all machines here, with dense objects.
    by : int, sequence of int, or callable
        What names the groups, as for `Grouped`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; by answers, for objects without such a feature, and for sparse ones.

    Examples
    --------
    >>> import venn
    >>> machine = Within(venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"]), by=0)
    >>> for x, y in [([0.0, 1], "no"), ([0.0, 2], "yes"), ([3.0, 1], "no")]:
    ...     machine.learn_one(x, y)
    >>> machine.hypotheses([0.0, 3]).table.weights  # of the new object, the last, there is no example
    array([1, 1, 0, 0])
    """

    machine: Any = param(checked_machine)
    by: Clean = param(checked_by)

    def derive(self) -> None:
        """Remember objects: their groups follow from them."""
        self._groups = Groups(self.by)

    @asks
    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine, which knows all groups."""
        return self.machine.scores(x)

    @asks
    def hypotheses(self, x: Any) -> WithinHypotheses:
        """Answer for every hypothesis about `x`, among the examples of its group."""
        return WithinHypotheses(self.machine.hypotheses(x), self._groups)


class WithinHypotheses(Reread):
    """A machine's answer in which only examples of the new one's group count."""

    def __init__(self, answer: Any, groups: Groups) -> None:
        super().__init__(answer)
        self._groups = groups
        self._beside: Bools | None = None

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the tables of the machine; the weight of examples of other groups is 0."""
        tables = self.answer.tables(leave_one_out)
        if self._beside is None:  # the columns are the same in all tables
            self._beside = self._groups.beside(tables[0][0])
        beside = self._beside
        return [(table._replace(weights=np.where(beside, table.weights, 0)), codes) for table, codes in tables]


# Inductive -------------------------------------------------------------------------------------------------------


class GroupReader(Mergeable):
    """Reader of calibration scores that hands each example to the reader of its group, the last column.

    Parameters
    ----------
    groups : Groups
        Knows which group has which number.
    reader : MergingReader
        A new one like it reads each group.
    """

    def __init__(self, groups: Groups, reader: Any) -> None:
        self.groups = groups
        self.reader = reader.fresh()  # for groups without calibration examples; it stays empty
        self.clear()

    def merge(self, other: Self) -> Self:
        """Return a new reader of the examples of both, whose groups are named by the same attribute."""
        both = self.fresh()
        both.take(self.state)
        both.take(other.state)
        return both

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._readers: dict[int, Any] = {}

    @property
    def state(self) -> dict[str, Any]:
        """The groups that have calibration examples, and these; the order of the examples does not matter."""
        held = sorted(((self.groups.keys[g], one) for g, one in self._readers.items()), key=lambda pair: repr(pair[0]))
        return {"groups": [key for key, _ in held], "readers": [one.state for _, one in held]}

    def _of(self, group: int) -> Any:
        if group not in self._readers:
            self._readers[group] = self.reader.fresh()
        return self._readers[group]

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        for key, held in zip(state["groups"], state["readers"], strict=True):
            self._of(self.groups.number(key)).take(held)

    def refuse(self, state: dict[str, Any]) -> None:
        """Raise a ValueError for what is no `state`."""
        super().refuse(state)
        for held in state["readers"]:
            self.reader.refuse(held)

    def _parts(self, read: Floats) -> list[tuple[int, Integers]]:
        """Return the groups of n examples, and the places of each group's examples."""
        numbers = read[:, -1].astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        return [(int(numbers[part[0]]), part) for part in np.split(order, starts[1:]) if len(part)]

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c + 1) scores and group, and (n,) class codes."""
        if len(scores) == 1:  # for speed
            self._of(int(scores[0, -1])).add(np.ascontiguousarray(scores[:, :-1]), codes)
            return
        for group, part in self._parts(scores):
            self._of(group).add(np.ascontiguousarray(scores[part, :-1]), codes[part])

    def predict(self, scores: Floats) -> Any:
        """Return the predictions for n objects of (n, c + 1) scores and group; leaves no trace."""
        if len(scores) == 1:
            return self._readers.get(int(scores[0, -1]), self.reader).predict(np.ascontiguousarray(scores[:, :-1]))
        parts = self._parts(scores)
        blocks = [
            self._readers.get(group, self.reader).predict(np.ascontiguousarray(scores[part, :-1]))
            for group, part in parts
        ]
        return self._in_order(blocks, parts)

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Any:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        parts = self._parts(scores)
        blocks = []
        for group, part in parts:
            reader = self._of(group) if calibrates[part].any() else self._readers.get(group, self.reader)
            blocks.append(reader.replay(np.ascontiguousarray(scores[part, :-1]), codes[part], calibrates[part]))
        return self._in_order(blocks, parts)

    def _in_order(self, blocks: list[Any], parts: list[tuple[int, Integers]]) -> Any:
        """Return one block of the blocks of all groups, in the order of the examples."""
        if not blocks:
            return self.nothing(0)
        joined = self.join(blocks)
        return joined if len(blocks) == 1 else joined.taken(np.argsort(np.concatenate([part for _, part in parts])))

    def nothing(self, n: int) -> Any:
        """Return the predictions for n objects before there is a scorer."""
        return self.reader.nothing(n)

    def join(self, blocks: list[Any]) -> Any:
        """Join the blocks into one, in order."""
        return self.reader.join(blocks)


def _to_group(name: str, predictor: Any) -> Any:
    """Return an inductive predictor that has learned nothing, or say what is wrong with it."""
    if not isinstance(predictor, Inductive) or isinstance(predictor, InductiveByGroup):
        raise TypeError(f"{name} must be an inductive one, such as InductiveConformal(...), got {predictor!r}")
    if predictor.n:
        raise ValueError(f"{name} must have learned nothing, got one of {predictor.n} examples")
    if not isinstance(predictor.calibration.reader, Mergeable):
        raise TypeError(f"{name} must calibrate on scores alone, to stand within groups, got {predictor!r}")
    return predictor


@component
class InductiveByGroup(Inductive[Any]):
    """An inductive predictor within groups: one scorer for all, and for each group its own calibration examples.

    `by_group(predictor, by)` makes it; see there for what holds. A group without calibration examples gets predictions
    that say nothing. Learning and predicting cost what they cost in the group alone.

    Parameters
    ----------
    predictor : inductive predictor
        One of those that `by_group` takes, which has learned nothing: its scorer, schedule and all it was made with.
    by : int, sequence of int, or callable
        What names the groups, as for `Grouped`. It must not depend on the label.

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Do not teach it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; on asking and learning, for what `by` returns.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> import venn
    >>> scorer = venn.FrozenScorer(LinearSVC().fit([[0, 1], [1, 1], [0, 2], [1, 2]], ["no", "yes", "no", "yes"]))
    >>> model = by_group(venn.InductiveVennAbers(scorer), by=1)
    >>> model.learn_many([[0, 1], [1, 1], [0, 2], [1, 2]], ["no", "yes", "yes", "no"])
    >>> model.predict_one([1, 1]), model.predict_one([1, 3])
    (ClassIntervals('yes': [0.500, 1.000]), ClassIntervals('no': [0.000, 1.000]))
    """

    predictor: Any = param(_to_group)
    by: Clean = param(checked_by)

    @property
    def given(self) -> Any:
        """The machine or scorer of the predictor."""
        return self.predictor.given

    @property
    def schedule(self) -> Schedule:  # type: ignore[override]
        """The schedule of the predictor."""
        return self.predictor.schedule

    def new_reader(self) -> MergingReader:
        """Return one with a reader for each group."""
        return GroupReader(Groups(self.by), self.predictor.calibration.reader)

    def read(self, rows: ObjectRows) -> Floats:
        scores = super().read(rows)
        read = np.empty((len(scores), scores.shape[1] + 1))
        read[:, :-1], read[:, -1] = scores, self._reader.groups.numbers_of(rows)
        return read

    def finished(self, block: Any, rows: ObjectRows, step: int, in_turn: bool) -> Any:
        """Return the predictor's predictions from its reader's output."""
        return self.predictor.finished(block, rows, step, in_turn)

    def merge(self, other: Self) -> Self:
        """Return a new predictor that has calibrated on the examples of both, which do not change.

        Raises
        ------
        TypeError, ValueError
            As for the predictor within groups; or groups are named by something else.
        """
        if not isinstance(other, InductiveByGroup) or repr(other.by) != repr(self.by):
            raise ValueError(f"other must be of groups by {self.by!r}, to be merged, got {other!r}")
        with turn_of(self, other):
            checked_parts(self.predictor, other.predictor)
            return self.calibrated(self.calibration.merge(other.calibration))
