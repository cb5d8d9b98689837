"""Machines that keep the objects themselves: nearest neighbours, distances and class centroids, exact online."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from venn._compiled import distances
from venn._compiled.neighbours import (
    Levels,
    add_all_exactly,
    add_exactly,
    centroid_scores,
    join,
    leave_out,
    look_around,
    part_with,
    vote_table,
    welcome,
)
from venn._compiled.rows import squares_row
from venn.labels import checked_labels
from venn.machines.machine import grown
from venn.machines.object_machine import Fill, ObjectMachine
from venn.parameters import integer
from venn.prediction import Floats
from venn.saved import component, held_codes, param


@component
class NearestNeighbours(ObjectMachine):
    """Votes of the k nearest examples, by Euclidean distance.

    The score of a class is the number of its examples among the k nearest. All examples at the distance of the k-th
    vote too, so that no tie is cut and no vote depends on the order of arrival: the computed distance of two objects is
    the same whichever came first. Deleted scores are the votes of the *other* examples; in training scores each example
    is its own nearest one.

    `Deleted(Argmax())` on it is the nearest-neighbour taxonomy: the majority label of the k nearest others, ties to
    the first class. `Deleted(Dissent())` also distinguishes the number of dissenting neighbours. The votes on a new
    object do not depend on its label, so `CategoryClass()` applies.

    A step costs O(n d); memory is O(n (d + k c)).

    Parameters
    ----------
    k : int >= 1
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
        For a parameter, object or label out of range, or an object of norm above 1e150; nothing is learned from it.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", nearest-neighbour taxonomies.

    Examples
    --------
    >>> import venn
    >>> machine = NearestNeighbours(3, classes=["no", "yes"])
    >>> model = venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax()))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15])
    Multiprobability('no': [0.800, 1.000])
    >>> machine.scores([0.72])  # 1.0 and 1.1, and 0.3 nearer than 1.2
    array([1., 2.])
    """

    score_unit = "votes"
    _largest = 1e150  # squares stay finite

    k: int = param(integer, 1)
    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Make the levels: k others and itself, each at a different distance, and one more while it enters."""
        depth, c = self.k + 2, len(self.classes)
        self._distances = np.zeros(0)
        self._levels = Levels(
            np.zeros((0, depth)), np.zeros((0, depth, c), np.int64), np.zeros(0, np.int64), np.zeros((0, c), np.int64),
            np.zeros(0),
        )  # fmt: skip
        super().derive()

    def _new_room(self, room: int) -> None:
        self._distances = np.zeros(room)
        self._levels = Levels(*(grown(array, room, *array.shape[1:]) for array in self._levels))

    def _suppose(self) -> Floats:
        m = self._count
        squares_row(self._columns, m, self._columns[:, m].copy(), self._distances)
        look_around(self._levels, m, self._distances, self._labels, self._weights, self.k)
        return self._levels.sums[m].astype(np.float64)

    def _fill(self, new: bool) -> Fill:
        away = self._distances if new else np.full(self._count, np.inf)
        return partial(vote_table, self._levels, self._count, away, self._labels, self.k)

    def _commit(self, code: int, column: int) -> None:
        welcome(self._levels, self._count, self._distances, code, self.k)
        if column == self._count:
            join(self._levels, column, 0.0, code, 1, self.k + 1)

    def _part_with(self, code: int, column: int) -> None:
        x, further = self._columns[:, column].copy(), np.empty(self._count)
        part_with(
            self._levels, self._columns, self._count, self._labels, self._weights, x, code, self.k, self._distances,
            further,
        )  # fmt: skip

    def _move(self, column: int, to: int) -> None:
        for values in self._levels:
            values[to] = values[column]

    # -------------------------------------------------------------------- state

    def _arrays(self, m: int) -> dict[str, Any]:
        return {name: values[:m] for name, values in self._levels._asdict().items()}

    @property
    def state(self) -> dict[str, Any]:
        """What was learned; what stands beyond the levels in use means nothing."""
        held = super().state
        if self.n:
            arrays = held["arrays"]
            beyond = np.arange(self.k + 2) >= arrays["used"][:, None]
            arrays["distance"] = np.where(beyond, 0.0, arrays["distance"])
            arrays["votes"] = np.where(beyond[:, :, None], 0, arrays["votes"])
        return held

    def _check_arrays(self, m: int) -> None:
        # Loops go from level to level as long as these numbers say so.
        used, votes, sums = self._levels.used[:m], self._levels.votes[:m], self._levels.sums[:m]
        held_codes("used levels", used, (m,), 1, self.k + 2)
        beyond = votes[np.arange(self.k + 2) >= used[:, None]]
        if (votes < 0).any() or beyond.any() or not np.array_equal(sums, votes.sum(axis=1)):
            raise ValueError("levels must be those of the nearest examples of each column")


@component
class NearestCentroid(ObjectMachine):
    """Distances to the centroids of the classes.

    The score of a class is minus the Euclidean distance to the mean of its examples, so the largest score is
    that of the nearest centroid; -1e9 for a class without examples. Deleted scores leave each example
    out of the mean of its own class.

    `Deleted(Argmax())` on it is the nearest-centroid taxonomy. `Deleted(TopScoreBins([-far]))` also distinguishes
    objects farther than `far` from every centroid. The deleted scores of a new object do not depend
    on its label, so `CategoryClass()` applies.

    A step costs O(n c d). Distances are compared on a grid of 1e-6: features should be of a scale of about 1.

    Parameters
    ----------
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

    Examples
    --------
    >>> import venn
    >>> machine = NearestCentroid(classes=["no", "yes"])
    >>> model = venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax()))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15])
    Multiprobability('no': [0.800, 1.000])
    >>> machine.scores([0.75]).round(3)  # from 0.15 and 1.15
    array([-0.6, -0.4])
    """

    unnamed = 0

    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Make the sums."""
        self._new_features(0)
        super().derive()

    def _new_features(self, features: int) -> None:
        c = len(self.classes)
        self._sums, self._errors = np.zeros((2, c, features))
        self._sizes = np.zeros(c, np.int64)

    def _suppose(self) -> Floats:
        scores = np.empty((len(self.classes), 1))
        here = np.ascontiguousarray(self._columns[:, self._count : self._count + 1])
        for k, row in enumerate(scores):
            centroid_scores(here, 1, self._sums[k], self._errors[k], self._sizes[k], self._absent, row)
        return scores[:, 0]

    def _fill(self, new: bool) -> Fill:
        columns, labels, m, absent = self._columns, self._labels, self._count, self._absent
        all_sums, all_errors, sizes = self._sums, self._errors, self._sizes

        def fill(deleted: bool, negative: Floats, positive: Floats) -> None:
            x = columns[:, m].copy()
            for k, size in enumerate(sizes):
                sums, errors = all_sums[k].copy(), all_errors[k].copy()
                centroid_scores(columns, m + 1, sums, errors, size, absent, negative[k])
                add_exactly(sums, errors, x)
                centroid_scores(columns, m + 1, sums, errors, size + 1, absent, positive[k])
                if deleted:
                    leave_out(labels, m, k, size, absent, negative[k])
                    leave_out(labels, m, k, size + 1, absent, positive[k])
                    positive[k, m] = negative[k, m]

        return fill

    def _commit(self, code: int, column: int) -> None:
        x = self._columns[:, self._count].copy()
        add_exactly(self._sums[code], self._errors[code], x)
        self._sizes[code] += 1

    def _part_with(self, code: int, column: int) -> None:
        # Summed anew: subtracting would leave rounding from the old sum.
        examples = self._examples
        chosen = examples.places[: self.n][examples.codes[: self.n] == code]
        add_all_exactly(self._columns, chosen, self._sums[code], self._errors[code])
        self._sizes[code] -= 1

    def _arrays(self, m: int) -> dict[str, Any]:
        return {"sums": self._sums, "errors": self._errors, "sizes": self._sizes}


@component
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

    k: int = param(integer, 1)
    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Make the lists of nearest examples."""
        c = len(self.classes)
        self._distances = np.zeros(0)
        self._nearest = np.zeros((c, 0, self.k))
        self._others = np.zeros((c, 0))
        self._own = np.zeros(0)
        super().derive()

    def _new_room(self, room: int) -> None:
        c = len(self.classes)
        self._distances = np.zeros(room)
        self._nearest = grown(self._nearest, c, room, self.k)
        self._others, self._own = grown(self._others, c, room), grown(self._own, room)

    def _suppose(self) -> Floats:
        m = self._count
        distances.distances_to(self._columns, m, self._columns[:, m].copy(), self._distances)
        distances.look_around(self._nearest, m, self._distances, self._labels, self._weights)
        return np.array([distances.score(row, np.inf, False, self._absent) for row in self._nearest[:, m]])

    def _fill(self, new: bool) -> Fill:
        away = self._distances if new else np.full(self._count, np.inf)
        kept = self._nearest, self._others, self._own
        return partial(distances.distance_table, *kept, self._count, away, self._labels, self._absent)

    def _commit(self, code: int, column: int) -> None:
        m = self._count
        distances.welcome(self._nearest, self._others, self._own, m, self._distances, self._labels, code, self._absent)
        if column == m:
            for j in range(len(self.classes)):
                distances.settle(self._nearest, self._others, self._own, m, j, code, self._absent)

    def _part_with(self, code: int, column: int) -> None:
        m, further = self._count, np.empty(self._count)
        distances.distances_to(self._columns, m, self._columns[:, column].copy(), self._distances)
        distances.part_with(
            self._nearest, self._others, self._own, self._columns, m, self._distances, self._labels, self._weights,
            code, self._absent, further,
        )  # fmt: skip

    def _move(self, column: int, to: int) -> None:
        for values in (self._nearest, self._others):
            values[:, to] = values[:, column]
        self._own[to] = self._own[column]

    def _arrays(self, m: int) -> dict[str, Any]:
        return {"nearest": self._nearest[:, :m], "others": self._others[:, :m], "own": self._own[:m]}
