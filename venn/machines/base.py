"""What machines, and their answers, have in common: a base for each that derives the rest of its contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from venn.machines.machine import Bag, ScoreTable, Tables, Tuned, check_code, doubled, grown, only_table
from venn.parameters import has_methods
from venn.prediction import Floats, Integers, Label
from venn.saved import Saved, base, checked_keys, restored_codes, restored_finite, restored_rows, state
from venn.turns import TakesTurns, asks, changes


class ExampleTable:
    """The examples of a machine, in order of arrival; the object of example i is kept at place i.

    Parameters
    ----------
    store : ObjectStore
        Of their objects.
    below : int, optional
        Number of classes; None where labels are numbers.

    Attributes
    ----------
    n : int
        Number of examples.
    codes : (>= n,) int64 or float64
        Class of each example, or its label.
    weights : (>= n,) float64
        Weight of each example, without that of its class.
    """

    def __init__(self, store: Any, below: int | None = None) -> None:
        self.store = store
        self.below = below
        self.n = 0
        self.codes: Any = np.zeros(0, np.float64 if below is None else np.int64)
        self.weights = np.zeros(0)

    def make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        if n > len(self.codes):
            room = doubled(len(self.codes), n)
            self.codes, self.weights = grown(self.codes, room), grown(self.weights, room)

    def append(self, code: float, weight: float = 1.0) -> None:
        """Take in an example: the last one."""
        self.make_room(self.n + 1)
        self.codes[self.n], self.weights[self.n] = code, weight
        self.n += 1

    def remove(self, i: int) -> None:
        """Take out the i-th example; later ones move up."""
        n, self.n = self.n, self.n - 1
        for values in (self.codes, self.weights):
            values[i : n - 1] = values[i + 1 : n]

    @property
    def state(self) -> dict[str, Any]:
        """Codes and weights."""
        return {"codes": self.codes[: self.n], "weights": self.weights[: self.n]}

    def restore(self, state: Any) -> None:
        """Take over a `state` of the objects in the store, or raise a ValueError if it is none."""
        checked_keys("examples", state, self.state)
        n = self._held(state)
        if self.below is None:
            restored_finite("codes", state["codes"], (n,))
        else:
            restored_codes("codes", state["codes"], (n,), 0, self.below)
        if not (restored_finite("weights", state["weights"], (n,)) > 0).all():
            raise ValueError("weights must be > 0")
        self.make_room(n)
        self.codes[:n], self.weights[:n] = state["codes"], state["weights"]
        self.n = n

    def _held(self, state: dict[str, Any]) -> int:
        """Return the number of examples of a state."""
        return self.store.n


class PlacedTable(ExampleTable):
    """Table of the examples of a machine in which those of equal objects share a place.

    Places are numbered from 0 on, without a gap.

    Attributes
    ----------
    count : int
        Number of places.
    places : (>= n,) int64
        Place of each example.
    """

    def __init__(self, store: Any, below: int) -> None:
        super().__init__(store, below)
        self.places = np.zeros(0, np.int64)
        self._where: dict[bytes, int] = {}
        self._keys: list[bytes] = []  # by place

    @property
    def count(self) -> int:
        """Number of places."""
        return len(self._keys)

    def _content(self, place: int) -> bytes:
        return bytes(self.store.key(place))

    def find(self, content: bytes) -> int:
        """Return the place of examples of this object; where there are none, the one after the last."""
        return self._where.get(content, len(self._keys))

    def make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        super().make_room(n)
        if len(self.places) < len(self.codes):
            self.places = grown(self.places, len(self.codes))

    def put(self, content: bytes, code: int, weight: float = 1.0) -> int:
        """Take in an example of this object, the last one; return its place."""
        place = self._where.setdefault(content, len(self._keys))
        if place == len(self._keys):
            self._keys.append(content)
        self.append(code, weight)
        self.places[self.n - 1] = place
        return place

    @property
    def state(self) -> dict[str, Any]:
        """Codes, weights and places."""
        return super().state | {"places": self.places[: self.n]}

    def _held(self, state: dict[str, Any]) -> int:
        return restored_rows("codes", state["codes"])

    def restore(self, state: Any) -> None:
        """Take over a `state` of the objects in the store, or raise a ValueError if it is none."""
        super().restore(state)
        n, m = self.n, self.store.n
        places = self.places[:n] = restored_codes("places", state["places"], (n,), 0, m)
        if not np.bincount(places, minlength=m).all():
            raise ValueError(f"places must be all of {m}, got {np.unique(places).size} of them")
        self._keys = [self._content(place) for place in range(m)]
        self._where = {key: place for place, key in enumerate(self._keys)}
        if len(self._where) < m:
            raise ValueError("objects of different places must differ")


class BaseHypotheses(ABC):
    """Base of the answers of the machines here: a subclass gives `tables` and `order`, the rest follows.

    An answer holds arrays of its machine. It is valid until the machine learns or answers about another object. Where
    threads share the machine, who reads an answer holds its turn (`venn.turns.turn_of`); predictors do.

    Parameters
    ----------
    key : bytes
        The object's content.
    test_scores : (c,) float64
        Scores of the object by the machines that have not seen it.
    weight : float
        Of the new example, without that of its supposed class.

    Notes
    -----
    The page "To add a machine" has a whole machine with its answer, which runs.
    """

    def __init__(self, key: bytes, test_scores: Floats, weight: float = 1.0) -> None:
        self.key = key
        self.test_scores = test_scores
        self.weight = weight
        self.current = True

    @property
    @abstractmethod
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""

    @abstractmethod
    def tables(self, leave_one_out: bool) -> Tables:
        """Return the scores of all examples, each table with the class codes of the hypotheses that it is for."""

    def check_current(self) -> None:
        """Raise where the machine has changed since: its arrays hold something else now."""
        if not self.current:
            raise RuntimeError("these hypotheses are out of date: the machine has learned or was asked again")

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all, where one table serves all hypotheses."""
        return only_table(self.tables(False))

    @property
    def leave_one_out_table(self) -> ScoreTable:
        """Score of each example by the machines without it, where one table serves all hypotheses."""
        return only_table(self.tables(True))

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        return self.tables(False)[0][0].labels[self.order]

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        return self._in_order(False, j)

    def leave_one_out(self, j: int) -> Floats:
        """Return (n + 1, c) leave-one-out scores under hypothesis j, in the order of `scores`."""
        return self._in_order(True, j)

    def _in_order(self, leave_one_out: bool, j: int) -> Floats:
        check_code(j, self.test_scores.size)
        table = next(table for table, codes in self.tables(leave_one_out) if j in codes)
        columns = np.append(self.order, table.test)
        rows = table.negative[:, columns]
        rows[j] = table.positive[j, columns]
        return rows.T


class Reread(BaseHypotheses):
    """Base of an answer that is made of another one; a subclass gives its `tables`.

    Parameters
    ----------
    answer : BaseHypotheses
        It says whether both are out of date.
    """

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.key, self.weight = answer.key, answer.weight

    def check_current(self) -> None:
        """Raise where the machine has changed since."""
        self.answer.check_current()

    @property
    def test_scores(self) -> Floats:  # type: ignore[override]
        """(c,) scores of the object by the machines that have not seen it."""
        return self.answer.test_scores

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        return self.answer.order


class InBag(Reread):
    """An answer in which the first examples, which have taught the machine, do not count.

    Parameters
    ----------
    answer : BaseHypotheses
    aside : int >= 1
        Number of examples left out.
    """

    def __init__(self, answer: BaseHypotheses, aside: int) -> None:
        super().__init__(answer)
        self._aside = aside

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        return super().order[self._aside :]

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the tables of the machine; the examples left out weigh nothing."""
        tables = self.answer.tables(leave_one_out)
        out = np.bincount(super().order[: self._aside], minlength=len(tables[0][0].labels))
        return [(table._replace(weights=table.weights - out), codes) for table, codes in tables]


def in_bag(answer: BaseHypotheses, aside: int) -> BaseHypotheses:
    """Return the answer without its first `aside` examples, which only teach."""
    return InBag(answer, aside) if aside else answer


class BaseMachine(TakesTurns, ABC):
    """Base of machines: the parts of the contract other than learning, answering and the current scores.

    A subclass may give `_solved_for`, and answer by `_answered`, which remembers. It calls `forget` before it changes
    an array that answers hold.

    Notes
    -----
    The page "To add a machine" has a whole machine, which runs.
    """

    classes: tuple[Label, ...]
    n: int
    tuning: Tuned | None = None  #: what chose the parameters, if `tune` did
    _asked: Any = None  # the hypotheses about the last object asked about, `BaseHypotheses`; None if out of date
    _codes: dict[Label, int]
    _examples: Any
    _made: Any = None  # the last question and the machine made to answer it, while each question has a scale of its own

    @property
    def learned(self) -> int:
        """Number of examples ever learned, as far as the machine knows: a window counts what it forgets."""
        return self.n

    @property
    @asks
    @abstractmethod
    def bag(self) -> Bag:
        """Training scores now."""

    @property
    @asks
    @abstractmethod
    def leave_one_out_bag(self) -> Bag:
        """Leave-one-out scores now, by distinct example."""

    @asks
    @abstractmethod
    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""

    @changes
    @abstractmethod
    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; a refused one leaves no trace."""

    def forget(self) -> None:
        """Drop the answer that is remembered; those who hold it can no longer read it."""
        if self._asked is not None:
            self._asked.current = False
            self._asked = None

    def expect_leave_one_out(self) -> None:
        """Do nothing: here leave-one-out scores need no preparation."""

    def _answered(self, x: Any, weight: float = 1.0) -> Any:
        """Return the answer about a clean object: the last one if it was to the same question, else a new one."""
        key, asked = x.tobytes(), self._asked
        if asked is None or asked.key != key or asked.weight != weight:
            asked = self._asked = self._solved_for(x, key, weight)
        return asked

    def _solved_for(self, x: Any, key: bytes, weight: float) -> Any:
        """Return a new answer about a clean object, of this content, after `forget`."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: all but the remembered answer."""
        return (super().__getstate__() or {}) | {"_asked": None}


def restored_tuning(name: str, tuning: Any) -> Any:
    """Return what chose the parameters of a machine, None if nothing did, or say what it must be."""
    if tuning is not None and not has_methods(tuning, "met"):
        raise ValueError(f"{name} must be what tune found, got {tuning!r}")
    return tuning


@base
class KeptMachine(BaseMachine, Saved):
    """Base of machines that can be saved."""

    tuning: Any = state(restored_tuning, start=None)

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`; no earlier answer holds then."""
        super().restore(state)
        self.forget()

    def fresh(self) -> Self:
        """Return a machine with the same parameters, chosen by the same examples, that has learned nothing."""
        made = self.made_of(self.parameters)
        made.tuning = self.tuning
        return made
