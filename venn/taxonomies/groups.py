"""Taxonomies within groups of objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from venn.machines.machine import ScoreTable
from venn.prediction import Floats
from venn.saved import Saved, saved
from venn.taxonomies.base import ByTable, Counts


@saved
class Grouped(Saved, ByTable):
    """A taxonomy within groups: the new example shares categories only with examples of its group.

    The Venn predictor is then calibrated within each group (Mondrian). The more groups, the fewer
    examples in each. With deleted scores write `Deleted(Grouped(by, Argmax()))`.

    Parameters
    ----------
    by : int or callable
        A feature's position, for groups of equal values; or a function from an object, (d,) float64, to
        any hashable value. It must be fixed beforehand, give equal objects equal values, and not depend on
        the label: a group that reveals the label makes every prediction say nothing. Use a function of a
        module, not a lambda, so that predictors can be pickled.
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

    # Beside the parameters, which are in vars(): objects seen lately and their groups, which follow from the objects.
    __slots__ = ("_known",)

    def __init__(self, by: int | np.integer[Any] | Callable[[Floats], Hashable], taxonomy: ByTable) -> None:
        if isinstance(by, np.integer):
            by = int(by)
        if isinstance(by, bool | type) or not (callable(by) or isinstance(by, int)):
            raise TypeError(f"by must be a feature's position or a function of an object, got {by!r}")
        if isinstance(by, int) and by < 0:
            raise ValueError(f"by must be a feature's position >= 0, got {by}")
        if not isinstance(taxonomy, ByTable):
            raise TypeError(
                f"taxonomy must be a taxonomy on scores, such as Argmax(), got {taxonomy!r}; "
                "for deleted scores write Deleted(Grouped(by, ...))"
            )
        self.by = by
        self.taxonomy = taxonomy
        self._known: tuple[Floats, list[Hashable]] = (np.empty((0, 0)), [])

    @property
    def determines_class(self) -> bool:
        """Whether every category of the taxonomy within groups stands for a class."""
        return self.taxonomy.determines_class

    def class_of(self, category: int, c: int) -> int:
        """Return the class that a category stands for, the same in every group."""
        return self.taxonomy.class_of(category, c)

    def count_table(self, table: ScoreTable) -> Counts:
        """Return the labels in the new example's category within its group, under every hypothesis."""
        m = len(table.labels)
        if table.objects.shape[1] < m:
            raise TypeError(
                f"table must hold the objects of all {m} columns for {self!r}, got {table.objects.shape}: sparse ones "
                "are not read by feature"
            )
        beside = self._beside(table.objects[:, :m], table.test)
        return self.taxonomy.count_table(table._replace(weights=np.where(beside, table.weights, 0)))

    def _beside(self, objects: Floats, test: int) -> Any:
        """Return which of the (d, m) objects are in the same group as the one at `test`."""
        if isinstance(self.by, int):
            if self.by >= len(objects):
                raise ValueError(f"by must be a feature's position below {len(objects)}, got {self.by}")
            return objects[self.by] == objects[self.by, test]
        groups = self._groups(objects, self.by)
        wanted = groups[test]
        return np.fromiter((group == wanted for group in groups), np.bool_, len(groups))

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
