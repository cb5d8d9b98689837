"""Predictors within groups of objects, and predictors that drop examples of frequent classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from venn.labels import Classes, HasLabels, space_of
from venn.machines.base import Reread
from venn.machines.machine import Tables, checked_machine
from venn.machines.objects import ObjectRows
from venn.machines.sparse import is_sparse
from venn.machines.window import Around
from venn.parameters import integer, with_methods
from venn.prediction import Bools, Floats, Integers, Label, Prediction
from venn.predictors.inductive_base import Inductive, check_stream, with_labels
from venn.predictors.learning import Mergeable, MergingReader, OnMachine, Predictor, checked_parts
from venn.saved import component, own, param, restored_int, restored_like, state
from venn.schedules import Schedule
from venn.shifts import CovariateShift, PriorShift
from venn.smoothing import Smoothing
from venn.taxonomies.groups import By, Clean, Groups, checked_by
from venn.turns import asks, changes, turn_of

# --------------------------------------------------------------------------------------------------------------- groups
# Predictors within groups of objects: whatever a predictor promises, it then promises in every group by itself.


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
        whose groups are not named by functions; or `InductiveConformal`, `InductiveVenn`, `InductiveVennAbers`,
        `InductiveDistribution` or `VennAbersRegressor`. A transductive one may stand on a
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


# ------------------------------------------------------------------------------------------------------------- balanced
# Online balancing: learn few examples of frequent classes, and still predict for the stream as it is.

# Unlike those of an inner predictor with the same seed: coins must be independent of the draws that break ties.
# Users' seeds are never this large.
OFFSET = 1 << 64


def _weighing(name: str, predictor: Any) -> Any:
    """Return a predictor like this one that has learned nothing, or say what is wrong with it."""
    with_methods(name, predictor, "one that weighs by class, with a method 'under', such as InductiveVenn", "under")
    if predictor.shift is not None:
        raise ValueError(f"{name} must be without a shift, since 1 / keep is the shift here, got {predictor!r}")
    if _learned(predictor):
        raise ValueError(
            f"{name} must have learned nothing, got one of {_learned(predictor)} examples: they were not kept with "
            "these probabilities"
        )
    return predictor.under(None)


def _shares(name: str, keep: Any, classes: Any) -> tuple[float, ...]:
    """Return probabilities of keeping an example of each class, or say what is wrong with them."""
    PriorShift.of_keeping(keep)
    if len(keep) != len(classes):
        raise ValueError(f"{name} must hold a probability for each of {list(classes)!r}, got {keep!r}")
    return tuple(float(share) for share in keep)


@component
class Balanced(HasLabels, Predictor):
    """Learns each example with a probability given by its class, and weights kept examples to make up for it.

    An example of class k is kept with probability keep[k], by its own coin toss; otherwise it is dropped for ever: it
    never trains or calibrates. Kept examples weigh 1 / keep[k], and so does the new one under the hypothesis of
    class k. So a frequent class costs little memory and time, while predictions are for the stream as it comes.

    Theorem: on exchangeable examples each single prediction is valid, as the predictor's own would be. The reason:
    given which examples were dropped, and the kept ones and the new one in any order, each of these is the new one with
    a probability proportional to 1 / keep of its class. The theorem requires that dropped examples never come back, and
    that coins depend on nothing but the class. Statements of a predictor or its schedule about many steps together do
    not hold: all steps between two kept examples are compared with the same examples, and equal objects among them
    share the random number that breaks ties. Nothing is proved of sums of departures or of errors, and monitors that
    bet on independent p-values may raise alarms on valid predictions.

    The theorem does not say how good a machine becomes on balanced examples. The machine keeps its own
    `class_weights`.

    Parameters
    ----------
    predictor : TransductiveVenn, InductiveVenn, CrossVenn, Conformal or InductiveConformal
        It has no `shift` and has learned nothing; or an object with the same method `under`. One like it learns here,
        with a machine of its own.
    keep : sequence of c probabilities in (0, 1], in class order
        Each may be 1 for the rarest class.
    seed : int >= 0, default 0
        Seed of the coins, one for each example. It must be unrelated to how the examples were made.

    Attributes
    ----------
    machine : None
        There is no machine that a panel may teach or share: it would learn dropped examples.
    learner : predictor
        The predictor that learns the kept examples. Do not teach it.
    n : int
        Number of examples offered; `learner` has learned `kept` of them.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> from venn.predictors.groups import Balanced
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = Balanced(venn.TransductiveVenn(machine), keep=(0.1, 1.0))
    >>> for i in range(200):
    ...     model.learn_one([i % 20 / 20], "no")
    ...     if i % 10 == 0:
    ...         model.learn_one([1 + i / 200], "yes")
    >>> model.n, model.kept
    (220, 43)
    >>> model.predict_one([0.15]).label
    'no'
    """

    predictor: Any = param(_weighing)
    keep: Sequence[float] = param(_shares, own(lambda m: m.predictor.classes))
    seed: int = param(integer, 0, default=0)

    n: int = state(restored_int, start=0)
    learner: Any = state(
        restored_like, start=own(lambda model: model.predictor.under(PriorShift.of_keeping(model.keep)))
    )

    def derive(self) -> None:
        """Set up the coin tosses."""
        self.space = Classes(self.predictor.classes)
        self._coins = Smoothing(OFFSET + self.seed)

    @property
    def kept(self) -> int:
        """Number of examples learned."""
        return _learned(self.learner)

    @property
    def tuning(self) -> Any:
        """The result of `tune`, if it chose the machine's kernel and C."""
        return getattr(self.learner if self.learner.machine is None else self.learner.machine, "tuning", None)

    def predict_one(self, x: Any) -> Prediction:
        """Return the prediction for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.learner.predict_one(x)

    def prepare(self, x: Any, y: Label) -> Any:
        """Return what the predictor prepares for an example, kept or not, or raise what learning it would raise."""
        if self.learner.machine is not None:
            self.learner.machine.check(x, y)
        prepared = self.learner.prepare(x, y)
        self.space.check(y)
        return prepared

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example, or drop it for ever.

        Raises
        ------
        NotConverged
            As raised by the predictor.
        """
        if self._coins.at(self.n) >= self.keep[self.space.encode(y)]:
            self.n += 1
            return
        before = self.kept
        try:
            if self.learner.machine is not None:
                self.learner.machine.learn_one(x, y)
            self.learner.commit(x, y, prepared)
        finally:
            self.n += self.kept - before  # count what was learned, also when a training failed

    # ------------------------------------------------------------------ many examples

    @asks
    def predict_many(self, X: Any) -> Any:
        """Return predictions for many objects, all from the present state; leaves no trace.

        Parameters
        ----------
        X : (n, d) finite numbers

        Raises
        ------
        TypeError
            The predictor is not inductive, as `InductiveVenn` and `InductiveConformal` are. The same holds below.
        ValueError, TypeError
            X is not as described.
        """
        return self._inductive().predict_many(X)

    @changes
    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn or drop many examples; the same as `learn_one` for each in turn, and faster.

        Parameters
        ----------
        X : (n, d) finite numbers
            Or a stream of `streams`, which has the labels: then leave out y.
        y : sequence of n labels

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them, also one that would have been dropped; nothing is learned.
        NotConverged
            As raised by the predictor; examples up to that training are learned or dropped.
        """
        predictor, rows, labels, kept = self._examples(X, y)
        before, n = self.kept, self.n
        try:
            predictor.learn_many(rows[kept], [labels[i] for i in kept])
            self.n = n + len(labels)
        except BaseException:
            learned = self.kept - before
            self.n = n + (int(kept[learned - 1]) + 1 if learned else 0)
            raise

    @changes
    def replay_many(self, X: Any, y: Any = None) -> Any:
        """Predict, then learn or drop, each example in turn; the same as the loop over `predict_one` and `learn_one`.

        Parameters
        ----------
        X : (n, d) finite numbers
            Or a stream of `streams`, which has the labels: then leave out y.
        y : sequence of n labels

        Returns
        -------
        block of predictions
            Row i is the prediction for X[i] after the examples before it have been learned or dropped.

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them, also one that would have been dropped; nothing is learned.
        NotConverged
            As raised by the predictor; examples up to that training are learned or dropped, their predictions are lost.
        """
        predictor, rows, labels, kept = self._examples(X, y)
        blocks, start = [], 0
        for i in kept.tolist():
            # Nothing is learned between two kept examples, so all objects between them may be predicted at once.
            blocks.append(predictor.predict_many(rows[start : i + 1]))
            before = self.kept
            try:
                predictor.learn_many(rows[i : i + 1], labels[i : i + 1])
            finally:
                self.n += (i + 1 - start) * (self.kept - before)
            start = i + 1
        blocks.append(predictor.predict_many(rows[start:]))
        self.n += len(labels) - start
        return type(blocks[0]).join(blocks)

    def _inductive(self) -> Inductive[Any]:
        if not isinstance(self.learner, Inductive):
            raise TypeError(
                "predictor must be inductive, as InductiveVenn and InductiveConformal are, to take many objects at "
                f"once, got {self.predictor!r}"
            )
        return self.learner

    def _examples(self, X: Any, y: Any) -> tuple[Inductive[Any], Any, list[Label], Integers]:
        """Return the learner, rows, labels, and positions of the examples to keep; or refuse the examples."""
        predictor = self._inductive()
        check_stream(X, predictor.feature_names)
        X, y = with_labels(X, y)
        predictor.check_many(X, y)
        labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
        keep = np.array(self.keep)[self.space.encode_many(labels)]
        kept = np.flatnonzero(self._coins.block(self.n, len(labels)) < keep)
        return predictor, X.tocsr() if is_sparse(X) else np.asarray(X), labels, kept


def _learned(predictor: Any) -> int:
    """Return how many examples a predictor has learned."""
    return predictor.n if predictor.machine is None else predictor.machine.learned
