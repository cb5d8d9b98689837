"""The contract between a machine and its readers, and checks of what a machine is given."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from venn.parameters import positive, python_value, with_methods
from venn.prediction import Floats, Integers, Label


def code_of(y: Any, codes: dict[Label, int]) -> int:
    """Return the class code of label `y`, or say what it must be."""
    try:
        return codes[y if type(y) is str else python_value(y)]
    except (KeyError, TypeError):
        raise ValueError(f"y must be one of the classes {list(codes)!r}, got {python_value(y)!r}") from None


def check_code(j: Any, c: int) -> None:
    """Raise when `j` is not a class code."""
    if isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < c:
        raise ValueError(f"j must be a class code from 0 to {c - 1}, got {j!r}")


def checked_place(i: Any, n: int) -> int:
    """Return the place of one of `n` examples in order of arrival, or say what is wrong with it."""
    requirement = f"i must be an integer from 0 to n - 1, of n = {n} examples, got {i!r}"
    if isinstance(i, bool | np.bool_) or not isinstance(i, int | np.integer):
        raise TypeError(requirement)
    if not 0 <= i < n:
        raise ValueError(requirement)
    return int(i)


def checked_weight(weight: Any) -> float:
    """Return the weight of an example, or say what is wrong with it."""
    return positive("weight", weight, zero=True)


def checked_class_weights(name: str, weights: Any, classes: Sequence[Label]) -> Floats:
    """Return (c,) weights of the classes, 1 each by default, or say what is wrong with them."""
    c = len(classes)
    if weights is None:
        return np.ones(c)
    wanted = f"{name} must be {c} finite numbers > 0, one for each class in order"
    try:
        clean = np.array([checked_weight(weight) for weight in weights])
    except (TypeError, ValueError):
        raise TypeError(f"{wanted}, got {weights!r}") from None
    if clean.shape != (c,) or not (clean > 0).all():
        raise ValueError(f"{wanted}, got {weights!r}: leave out the examples of a class that shall weigh nothing")
    clean.setflags(write=False)
    return clean


class Underscored(tuple[str, ...]):
    """Names whose blanks have become underscores, as LightGBM writes them: with their blanks they are the same."""

    __slots__ = ()


def as_known(own: Iterable[Any], names: tuple[str, ...]) -> list[Any]:
    """Return names of columns or features as they are compared with `names`.

    Examples
    --------
    >>> as_known(["mean radius"], Underscored(["mean_radius"])), as_known(["mean radius"], ("mean_radius",))
    (['mean_radius'], ['mean radius'])
    """
    if not isinstance(names, Underscored):
        return list(own)
    return [one.replace(" ", "_") if isinstance(one, str) else one for one in own]


def renamed(x: Mapping[Any, Any], names: tuple[Any, ...]) -> Mapping[Any, Any]:
    """Return an object by its names as they are compared with `names`; as it is where two would become one."""
    if not isinstance(names, Underscored):
        return x
    known = dict(zip(as_known(x, names), x.values(), strict=True))
    return known if len(known) == len(x) else x


def check_names(required: str, own: Iterable[Any], names: tuple[str, ...]) -> None:
    """Raise unless columns or features have these names, in this order; `required` begins the error.

    Examples
    --------
    >>> check_names("X must have the columns", ["age", "weight"], ("weight", "age"))
    Traceback (most recent call last):
    ValueError: X must have the columns ['weight', 'age'] in this order, got ['age', 'weight']
    """
    found = list(own)
    if tuple(as_known(found, names)) != names:
        raise ValueError(f"{required} {list(names)!r} in this order, got {found!r}")


def check_columns(X: Any, names: tuple[str, ...]) -> None:
    """Raise if X is a table with other columns than `names`, in their order; arrays go by position."""
    if is_table(X):
        check_names("X must have the columns", X.columns, names)


# Whether an object is a table, or has an index, is asked of its class: a row may have a field of any name.


def is_table(X: Any) -> bool:
    """Whether X has columns with names, as a data frame does."""
    return not isinstance(X, np.ndarray) and hasattr(type(X), "columns") and fields_in(X) is None


def fields_in(x: Any) -> tuple[str, ...] | None:
    """Return the names of the values of a named tuple or of an object of a dataclass, None for anything else.

    Examples
    --------
    >>> from collections import namedtuple
    >>> fields_in(namedtuple("Row", "index count")(1, 2)), fields_in((1, 2))
    (('index', 'count'), None)
    """
    if isinstance(x, tuple):
        fields = getattr(type(x), "_fields", None)
        return fields if isinstance(fields, tuple) else None
    if is_dataclass(x) and not isinstance(x, type):
        return tuple(field.name for field in dataclass_fields(x))
    return None


def names_in(x: Any) -> list[Any] | None:
    """Return the names that an object carries in order, as a mapping, a row of a table or a named tuple does."""
    if type(x) is np.ndarray:
        return None
    if isinstance(x, Mapping):
        return list(x)
    fields = fields_in(x)
    if fields is not None:
        return list(fields)
    index = getattr(type(x), "index", None)  # a method of lists
    named = index is not None and not callable(index) and not is_table(x)
    return list(x.index) if named and any(isinstance(name, str) for name in x.index) else None


def values_in(x: Any) -> Any:
    """Return the values of an object of a dataclass, in the order of its fields; others as they are."""
    fields = None if isinstance(x, tuple) else fields_in(x)
    return x if fields is None else [getattr(x, name) for name in fields]


def check_index(x: Any) -> None:
    """Refuse a row of pandas' `itertuples` that begins with its place in the table, where no names are known."""
    if type(x).__name__ == "Pandas" and (fields_in(x) or ("",))[0] == "Index":
        raise TypeError(
            f"x must hold features alone, got the number of the row as well, Index={x[0]!r}: itertuples(index=False) "
            "leaves it out"
        )


def check_row(x: Any, names: tuple[str, ...]) -> None:
    """Raise if x carries other names than these, as a row of a table or a named tuple does; others go by position."""
    own = names_in(x)
    if own is None or (isinstance(x, tuple) and (tuple(own) == fields_of(names) or _by_place(own))):
        return
    if own[1:] == list(names):
        check_index(x)
    check_names("x must have the features", own, names)


def _by_place(fields: Sequence[str]) -> bool:
    """Whether the names in a named tuple are places: a name that is no identifier has given way to its own."""
    return all(field == f"_{j}" for j, field in enumerate(fields))


@cache
def fields_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of a named tuple, as a loop over the rows of a table gives, whose columns have these names."""
    row: Any = namedtuple("row", names, rename=True)  # type: ignore[misc]
    return row._fields


class NotConverged(RuntimeError):
    """A solver did not reach its tolerance; the message names the solver and the example.

    Nothing is learned by the step that raises it: the machine is as before, and may be asked about other objects.

    Examples
    --------
    A stream goes on without the one example that could not be solved:

    >>> import venn
    >>> model = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> try:
    ...     model.learn_one([0.5], "no")
    ... except NotConverged as error:
    ...     print("left out:", error)
    >>> model.n
    1
    """


@dataclass(frozen=True)
class Bag:
    """Scores of the examples a machine has learned; equal ones may be one entry.

    Attributes
    ----------
    scores : (c, m) float64
        Score of each entry by each one-against-all machine.
    counts : (m, c) int64
        Number of examples of each class at each entry.

    Examples
    --------
    >>> from venn.machines import LeastSquaresSVM, Linear
    >>> machine = LeastSquaresSVM(Linear(), 1.0, ("no", "yes"))
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([1.0], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.bag.counts.sum(axis=0).tolist()  # examples of each class
    [1, 2]
    >>> machine.bag.scores.shape[0]  # a row for each class
    2
    """

    scores: Floats
    counts: Integers


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


class ScoreTable(NamedTuple):
    """Scores of all examples under every hypothesis about a new one, by distinct example.

    One-against-all machines need two solutions each, not one for each hypothesis: machine k sees the
    new object as positive under hypothesis k and as negative under every other. So the scores under
    hypothesis j are those of `negative`, but for row j, which is that of `positive`.

    Examples
    --------
    >>> from venn.machines import LeastSquaresSVM, Linear
    >>> machine = LeastSquaresSVM(Linear(), 1.0, ("no", "yes"))
    >>> for x, y in [([0.0], "no"), ([1.0], "yes")]:
    ...     machine.learn_one(x, y)
    >>> table = machine.hypotheses([0.5]).table
    >>> [table.scores(j).shape for j in range(2)]  # two examples and the new one, by two machines
    [(3, 2), (3, 2)]
    """

    negative: Floats  #: (c, >= m) scores by machine k when the new object is supposed not of class k
    positive: Floats  #: (c, >= m) scores by machine k when the new object is supposed of class k
    labels: Integers  #: (m,) class codes; the one at `test` means nothing where its weight is 0
    weights: Integers  #: (m,) number of learned examples; without the new one
    test: int  #: column of the new example
    objects: Floats = np.empty((0, 0))  #: (d, >= m) features by column; empty where a machine keeps none

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the n examples by distinct example, the new one last."""
        columns = self._columns()
        rows: Floats = self.negative[:, columns]
        rows[j] = self.positive[j, columns]
        return rows.T

    def codes(self, j: int) -> Integers:
        """Return (n + 1,) class codes in the order of `scores`; the new example has code j."""
        codes: Integers = self.labels[self._columns()]
        codes[-1] = j
        return codes

    def _columns(self) -> Integers:
        return np.append(np.repeat(np.arange(len(self.labels)), self.weights), self.test)


Tables: TypeAlias = list[tuple[ScoreTable, Integers]]  #: tables of scores, each with its hypotheses' class codes


class Hypotheses(Protocol):
    """A machine's answer about one object, for every hypothesis on its label."""

    @property
    def test_scores(self) -> Floats:
        """(c,) scores of the object by the machines that have not seen it."""

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the scores of all examples under every hypothesis.

        Training scores, or leave-one-out ones: those of each example by the machines without it. One table serves all
        hypotheses unless these do not share their scores, as with classes of different weights. Each comes with the
        class codes of the hypotheses that it is for.
        """


class Tuned(Protocol):
    """What chose a machine's parameters; it remembers the examples used."""

    @property
    def n(self) -> int:
        """Number of those examples."""

    def met(self, x: Any, y: Label) -> bool:
        """Whether the example is one of them."""


class Machine(Protocol):
    """An underlying algorithm kept exact online; `BaseMachine` provides what most machines have in common.

    One that can forget also has `unlearn_one(i=0)`, which forgets the i-th learned example in order of arrival, 0 the
    oldest; later ones move up. The machine is then the one that has learned all others. A refused `i` leaves no trace.

    Some machines have more, which is read where it is there: `probabilities = True` if scores are probabilities;
    `space` if labels are not classes (`venn.labels.Real`); and `expect_training()`, which an inductive predictor calls,
    whose training examples are in no bag.
    """

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""

    @property
    def n(self) -> int:
        """Number of examples held."""

    @property
    def learned(self) -> int:
        """Number of examples ever learned, including those that a window has forgotten: it numbers the steps."""

    @property
    def tuning(self) -> Tuned | None:
        """The result of `tune`, if it chose the parameters."""

    @property
    def exact_leave_one_out(self) -> bool:
        """Whether leave-one-out scores are those of machines solved without the example.

        The leave-one-out score of a new object is then the same under every hypothesis about its label.
        """

    @property
    def bag(self) -> Bag:
        """Training scores now."""

    @property
    def leave_one_out_bag(self) -> Bag:
        """Leave-one-out scores now, by distinct example."""

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions."""

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""

    def hypotheses(self, x: Any) -> Hypotheses:
        """Answer for every hypothesis about `x`; solved once, remembered until a label is learned.

        A question changes no bit of any later answer.
        """

    def forget(self) -> None:
        """Drop the answer that is remembered; those who hold it can no longer read it."""

    def expect_leave_one_out(self) -> None:
        """Prepare for reading leave-one-out scores at every step; a predictor that does so calls this when it is made.

        A machine may then keep, as it learns, what makes them cheap. That may change their last bits.
        """

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise, and learn nothing."""

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; a refused one leaves no trace."""

    def fresh(self) -> Machine:
        """Return a machine with the same parameters that has learned nothing."""


def checked_machine(name: str, machine: Any) -> Machine:
    """Return a machine, or say what is wrong with it."""
    return with_methods(name, machine, "a machine object, with a method 'hypotheses'", "hypotheses")


def only_table(tables: Tables) -> ScoreTable:
    """Return the one table for all hypotheses, or say that there are several."""
    if len(tables) > 1:
        raise ValueError(f"class_weights must be equal for one table of scores, got {len(tables)} different weights")
    return tables[0][0]


def under_each(tables: Tables, read: Callable[[ScoreTable], Arrays]) -> Arrays:
    """Return arrays by hypothesis: what `read` computes from each hypothesis's table of scores."""
    (table, _), *others = tables
    rows = read(table)
    for table, codes in others:
        for into, values in zip(rows, read(table), strict=True):
            into[codes] = values[codes]
    return rows


def grown(array: Any, *shape: int) -> Any:
    """Return a copy of the array in the corner of a larger one, zero elsewhere."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger


def doubled(room: int, least: int) -> int:
    """Return the room, doubled until it is enough."""
    room = max(64, room)
    while room < least:
        room *= 2
    return room
