"""The machine of nearest-neighbour nonconformity: distances to the nearest examples of each class, exact online."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from venn._compiled.distances import distance_table, distances_to, look_around, part_with, score, settle, welcome
from venn.machines.machine import grown
from venn.machines.object_machine import Fill, ObjectMachine
from venn.machines.scale import ScaleLike
from venn.parameters import integer
from venn.prediction import Floats, Label
from venn.saved import saved


@saved
class NeighbourDistances(ObjectMachine):
    """Mean distances to the nearest examples of each class.

    The score of a class is minus the mean Euclidean distance to its k nearest examples, or to all of them where there
    are fewer than k; it is -1e9 where there is none. So the largest score is that of the nearest class. Deleted scores
    use the *other* examples; in training scores each example is its own nearest one, at distance 0, so that with k = 1
    the own class always scores 0.

    With the measures `DistanceRatio()` and `Margin()`, on deleted scores, this is the nearest-neighbour
    nonconformity of the literature: far from its own class, near to another. The deleted scores of a new
    object do not depend on its label, so `CategoryClass()` applies to taxonomies on them.

    Scores are a function of the distances alone: the same to the last bit in whatever order examples came.
    A step costs O(n (d + c)), and O(k) more for each list of nearest examples that the new one enters; memory is
    O(n (d + c k)). Distances are compared on a grid of 1e-6: features should be of a scale of about 1.

    Parameters
    ----------
    k : int >= 1
        Number of nearest examples of each class.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Always 0: nothing is solved.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range, or an object of norm above 1e8; nothing is learned from it.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapter 3: conformal prediction by
    nearest neighbours; Proedrou, Nouretdinov, Vovk & Gammerman (2002), "Transductive confidence machines for
    pattern recognition", for more than one neighbour.

    Examples
    --------
    >>> machine = NeighbourDistances(2, classes=["no", "yes"])
    >>> for x in (0.0, 0.25, 1.0):
    ...     machine.learn_one([x], "no")
    >>> machine.learn_one([2.0], "yes")
    >>> machine.scores([0.5])  # 0.25 and 0.5 from "no", 1.5 from "yes"
    array([-0.375, -1.5  ])
    """

    def __init__(self, k: int, classes: Sequence[Label], *, scale: ScaleLike = None) -> None:
        self.k = integer("k", k, 1)
        super().__init__(classes, scale=scale)
        c = len(self.classes)
        self._distances = np.zeros(0)
        self._nearest = np.zeros((c, 0, self.k))
        self._others = np.zeros((c, 0))
        self._own = np.zeros(0)

    def _new_room(self, room: int) -> None:
        c = len(self.classes)
        self._distances = np.zeros(room)
        self._nearest = grown(self._nearest, c, room, self.k)
        self._others, self._own = grown(self._others, c, room), grown(self._own, room)

    def _suppose(self) -> Floats:
        m = self._count
        distances_to(self._columns, m, self._columns[:, m].copy(), self._distances)
        look_around(self._nearest, m, self._distances, self._labels, self._weights)
        return np.array([score(row, np.inf, False, self._absent) for row in self._nearest[:, m]])

    def _fill(self, new: bool) -> Fill:
        distances = self._distances if new else np.full(self._count, np.inf)
        return partial(
            distance_table, self._nearest, self._others, self._own, self._count, distances, self._labels, self._absent
        )

    def _commit(self, code: int, column: int) -> None:
        m = self._count
        welcome(self._nearest, self._others, self._own, m, self._distances, self._labels, code, self._absent)
        if column == m:
            for j in range(len(self.classes)):
                settle(self._nearest, self._others, self._own, m, j, code, self._absent)

    def _part_with(self, code: int, column: int) -> None:
        m, further = self._count, np.empty(self._count)
        distances_to(self._columns, m, self._columns[:, column].copy(), self._distances)
        part_with(
            self._nearest, self._others, self._own, self._columns, m, self._distances, self._labels, self._weights,
            code, self._absent, further,
        )  # fmt: skip

    def _move(self, column: int, to: int) -> None:
        for values in (self._nearest, self._others):
            values[:, to] = values[:, column]
        self._own[to] = self._own[column]

    def _arrays(self, m: int) -> dict[str, Any]:
        return {"nearest": self._nearest[:, :m], "others": self._others[:, :m], "own": self._own[:m]}
