"""Groups of objects by a known attribute, and taxonomies within them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from venn.machines.machine import ScoreTable
from venn.machines.objects import ObjectRows
from venn.machines.sparse import SparseRows
from venn.parameters import instance
from venn.prediction import Bools, Floats, Integers
from venn.saved import component, param
from venn.taxonomies.scores import ByTable, Counts

By: TypeAlias = int | Sequence[int] | Callable[[Floats], Hashable]  #: what names the groups
Clean: TypeAlias = int | tuple[int, ...] | Callable[[Floats], Hashable]


def checked_by(name: str, by: Any) -> Clean:
    """Return what names the groups: a position, a tuple of positions or a function; or say what is wrong with it."""
    wanted = f"{name} must be a feature's position, a sequence of positions, or a function of an object"
    if isinstance(by, bool | type | str):
        raise TypeError(f"{wanted}, got {by!r}")
    if callable(by):
        return by
    single = isinstance(by, int | np.integer)
    positions = (by,) if single else tuple(by) if isinstance(by, Sequence | np.ndarray) else ()
    if not positions or any(isinstance(one, bool) or not isinstance(one, int | np.integer) for one in positions):
        raise TypeError(f"{wanted}, got {by!r}")
    if min(positions) < 0:
        raise ValueError(f"{name} must be a feature's position >= 0, got {by!r}")
    return int(by) if single else tuple(int(one) for one in positions)


class Groups:
    """Which group an object belongs to; objects seen lately, and the groups met, are remembered.

    Parameters
    ----------
    by : int, tuple of int, or callable
        As `checked_by` returns it.
    """

    def __init__(self, by: Clean) -> None:
        self.by = by
        self._known: tuple[Floats, list[Hashable]] = (np.empty((0, 0)), [])
        self._numbers: dict[Hashable, int] = {}
        self.keys: list[Hashable] = []  #: the group of each number

    def beside(self, table: ScoreTable) -> Bools:
        """Return which of the m columns of a table hold examples of the group of the new one.

        Raises
        ------
        TypeError, ValueError
            The table holds no objects, or they have no such feature.
        """
        m, test = len(table.labels), table.test
        if table.objects.shape[1] < m:
            raise TypeError(
                f"table must hold the objects of all {m} columns, got {table.objects.shape}: sparse ones are not read "
                "by feature"
            )
        objects = table.objects[:, :m]
        if callable(self.by):
            groups = self._groups(objects, self.by)
            wanted = groups[test]
            return np.fromiter((group == wanted for group in groups), np.bool_, len(groups))
        self._check_features(len(objects))
        same: Bools = np.ones(m, np.bool_)
        for feature in (self.by,) if isinstance(self.by, int) else self.by:
            same &= objects[feature] == objects[feature, test]
        return same

    def _check_features(self, d: int) -> None:
        largest = self.by if isinstance(self.by, int) else max(self.by)  # type: ignore[arg-type]
        if largest >= d:
            raise ValueError(f"by must be a feature's position below {d}, got {largest}")

    def _groups(self, objects: Floats, by: Callable[[Floats], Hashable]) -> list[Hashable]:
        """Return the group of each of the (d, m) objects; those seen in the same column lately are remembered."""
        seen, groups = self._known
        d, m = objects.shape
        if len(seen) != d:
            seen, groups = np.empty((d, 0)), []
        shared = min(m, seen.shape[1])
        groups = groups[:shared]
        changed = np.flatnonzero((seen[:, :shared] != objects[:, :shared]).any(axis=0))
        for i in changed:
            groups[i] = group_of(objects[:, i], by)
        groups.extend(group_of(objects[:, i], by) for i in range(shared, m))
        if len(changed) or shared < m:
            self._known = objects.copy(), groups
        return groups

    def numbers_of(self, rows: ObjectRows) -> Integers:
        """Return the (n,) numbers of the groups of rows; equal groups have equal numbers, as long as this object lives.

        Raises
        ------
        TypeError, ValueError
            The objects have no such feature, or a function returned what is no group.
        """
        by = self.by
        if callable(by):
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
            groups: list[Hashable] = [group_of(row, by) for row in dense]
        else:
            self._check_features(rows.shape[1])
            if isinstance(by, int) and len(rows) == 1 and isinstance(rows, np.ndarray):  # for speed
                return np.array([self.number(float(rows[0, by]))], np.int64)
            wanted = [by] if isinstance(by, int) else list(by)
            if isinstance(rows, SparseRows):
                columns = rows.tocsr()[:, wanted].toarray()
            else:
                columns = (rows if isinstance(rows, np.ndarray) else rows.toarray())[:, wanted]
            if columns.dtype != object:
                columns = columns + 0.0  # not -0.0
            groups = [row[0] if isinstance(by, int) else tuple(row) for row in columns.tolist()]
        return np.array([self.number(group) for group in groups], np.int64)

    def number(self, group: Hashable) -> int:
        """Return the number of a group, a new one for a new group."""
        number = self._numbers.setdefault(group, len(self.keys))
        if number == len(self.keys):
            self.keys.append(group)
        return number


@component
class Grouped(ByTable):
    """A taxonomy within groups: the new example shares categories only with examples of its group.

    The Venn predictor is then calibrated within each group (Mondrian). The more groups, the fewer
    examples in each. With leave-one-out scores write `LeaveOneOut(Grouped(by, Argmax()))`.

    Parameters
    ----------
    by : int, sequence of int, or callable
        A feature's position, for groups of equal values; several positions, for groups equal in all of them; or a
        function from an object, (d,) float64, to any hashable value. It must be fixed beforehand, give equal objects
        equal values, and not depend on the label: a group that reveals the label makes every prediction say nothing.
        Use a function of a module, not a lambda, so that predictors can be pickled.
    taxonomy : taxonomy on scores
        Such as `Argmax()`. One that looks at other examples, such as `AdaptiveMarginBins()`, sees those of the
        group.

    Raises
    ------
    TypeError, ValueError
        For a parameter; by `count`, for a machine whose tables hold no objects, and for what `by` returns.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", Mondrian predictors.

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = venn.TransductiveVenn(machine, Grouped(1, venn.Argmax()))
    >>> for x, y in [([0.0, 1], "no"), ([1.0, 1], "yes"), ([0.1, 2], "no"), ([1.2, 2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05, 3])  # the first of its group
    Multiprobability('no': [0.000, 1.000])
    """

    by: By = param(checked_by)
    taxonomy: ByTable = param(
        instance,
        ByTable,
        "a taxonomy on scores, such as Argmax(); for leave-one-out scores write LeaveOneOut(Grouped(by, ...))",
    )

    def derive(self) -> None:
        """Remember objects: their groups follow from them."""
        self._groups = Groups(checked_by("by", self.by))

    @property
    def determines_class(self) -> bool:
        """Whether every category of the taxonomy within groups stands for a class."""
        return self.taxonomy.determines_class

    def class_of(self, category: int, c: int) -> int:
        """Return the class that a category stands for, the same in every group."""
        return self.taxonomy.class_of(category, c)

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the labels in the new example's category within its group, under every hypothesis."""
        beside = self._groups.beside(table)
        return self.taxonomy.count_table(table._replace(weights=np.where(beside, table.weights, 0)))


def group_of(x: Floats, by: Callable[[Floats], Hashable]) -> Hashable:
    """Return the group of an object, or say what is wrong with it."""
    group = by(x.copy())
    try:
        hash(group)
    except TypeError:
        raise TypeError(f"by must return a hashable value, got {group!r} for {x}") from None
    if group != group:
        raise ValueError(f"by must return a value equal to itself, got {group!r} for {x}")
    return group
