"""Inductive Venn-Abers: from a score to a pair of probabilities, online and in a batch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from venn._compiled import hull_tree as tree
from venn._compiled.hulls import LEAF, LIMIT, ONE, WIDTH, precompute
from venn.maps.contract import binary_labels, finite_array
from venn.parameters import number
from venn.prediction import Bools, Floats, Integers
from venn.saved import Saved, checked_keys, restored_array, restored_finite, restored_rows, saved

SMALL = 64  # leaves, up to which room is doubled
_FILL = 3 * WIDTH // 4  # scores in a leaf of a new tree: leaves room for insertions
_REBUILD = 16  # a batch larger than 1/16 of the distinct scores: building the tree anew is cheaper


def _score(score: Any) -> float:
    return score if type(score) is float and isfinite(score) else number("score", score)


def _label(y: Any) -> int:
    if type(y) is int and 0 <= y <= 1:
        return y
    if not (isinstance(y, int | float | np.bool_ | np.integer | np.floating) and (y == 0 or y == 1)):
        raise ValueError(f"y must be 0, 1, False or True, got {y!r}")
    return int(y)


def _pooled(scores: Floats, blocks: Integers) -> tuple[Floats, Integers]:
    """Return the distinct scores in order and the sums of their blocks: ties are one weighted point."""
    order = scores.argsort(kind="stable")
    scores, blocks = scores[order], blocks[order]
    first = np.flatnonzero(np.diff(scores, prepend=-np.inf) > 0)
    return scores[first], np.add.reduceat(blocks, first) if first.size else blocks


@saved
class VennAbers(Saved):
    """Inductive Venn-Abers calibrator, kept exact while examples come and go one at a time.

    For a score s, p0 and p1 are the isotonic regression of the calibration set and (s, 0), or (s, 1), read
    at s. Tied scores are one weighted point, ties with s too. If the calibration examples and the new one
    are exchangeable, and the scorer was trained on other data, the one of p0 and p1 that belongs to the true
    label is perfectly calibrated: E[y | p_y] = p_y. Always p1 - p0 >= 1 / (k + 1) for k examples; without
    examples the answer is (0, 1).

    The answer depends on the calibration set as a multiset, to the last bit: labels are counted in
    integers, and only the fit is divided. An insertion, deletion or query costs O(log^2 k), microseconds
    in compiled code; memory is O(k). At most 2^31 - 1 examples. One thread at a time may use it; a predictor
    sees to that for its own.

    Every method refuses a score that is not a finite number (`TypeError`, `ValueError`) and a label that is
    not 0, 1, False or True (`ValueError`), and a refused call changes nothing. -0.0 equals 0.0.

    References
    ----------
    Vovk, Petej & Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees of
    validity", arXiv:1511.00213; hulls as in Overmars & van Leeuwen (1981).

    Examples
    --------
    >>> calibrator = VennAbers()
    >>> calibrator.query(0.5)
    (0.0, 1.0)
    >>> for score, y in [(0.1, 0), (0.4, 1), (0.5, 0), (0.9, 1)]:
    ...     calibrator.insert(score, y)
    >>> calibrator.query(0.5)
    (0.3333333333333333, 0.6666666666666666)
    >>> calibrator.delete(0.4, 1)
    >>> calibrator.query(0.5)
    (0.0, 0.5)
    """

    # The empty tree is made when it is first read: many predictors hold one that they may never need, and its loops
    # take seconds to compile.

    @cached_property
    def nodes(self) -> Integers:
        """(n, 8) nodes of the tree, see `venn._compiled.hulls`."""
        self._build(np.array([-np.inf]), np.array([0]))
        return vars(self)["nodes"]

    @cached_property
    def _leaves(self) -> Integers:
        self._build(np.array([-np.inf]), np.array([0]))
        return vars(self)["_leaves"]

    def _build(self, scores: Floats, blocks: Integers) -> None:
        """Start from distinct scores in order and their blocks, minus infinity with 0 first."""
        used = -(-len(scores) // _FILL)
        room = used + used // 4 + 3
        self.nodes = np.zeros((room, 8), np.int64)
        self._leaves = np.zeros((room, LEAF), np.int64)
        tree.build(self.nodes, self._leaves, scores, blocks, used)

    def _grow(self) -> None:
        """Make more room; called when there is none left."""
        self.check_room(1)
        room = _more(len(self.nodes))
        self.move(np.zeros((room, 8), np.int64), np.zeros((room, LEAF), np.int64))

    def move(self, nodes: Integers, leaves: Integers) -> None:
        """Keep the tree in these arrays from now on, which have room for it and hold zeros."""
        used = len(self.nodes)
        nodes[:used], leaves[:used] = self.nodes, self._leaves
        self.nodes, self._leaves = nodes, leaves
        tree.release_rest(nodes, leaves, used)

    def check_room(self, more: int) -> None:
        """Refuse more examples than a tree can hold."""
        if len(self) + more > LIMIT:
            raise OverflowError(f"a calibration set must have at most {LIMIT} examples, got {len(self) + more}")

    def __len__(self) -> int:
        """Number of examples in the calibration set."""
        return int(self.nodes[0, tree.TOTAL]) // ONE

    def __repr__(self) -> str:
        return f"<VennAbers of {len(self)} examples>"

    @property
    def state(self) -> dict[str, Any]:
        """The distinct scores and the packed examples at each: all answers follow from them."""
        scores, blocks = tree.contents(self.nodes, self._leaves)
        return {"scores": scores[1:], "blocks": blocks[1:]}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold the examples of a `state`; raise ValueError if it is not one."""
        checked_keys("state", state, ("scores", "blocks"))
        scores, blocks = checked_blocks(state["scores"], state["blocks"])
        self._build(np.append(-np.inf, scores), np.append(0, blocks))

    def insert(self, score: float, y: int) -> None:
        """Insert one example.

        Parameters
        ----------
        score : float
            Finite.
        y : 0, 1, False or True
        """
        score, y = _score(score), _label(y)
        while tree.insert(self.nodes, self._leaves, score, y) == tree.FULL:
            self._grow()

    def delete(self, score: float, y: int) -> None:
        """Delete one example, as a sliding window does with its oldest.

        Parameters
        ----------
        score : float
            Finite.
        y : 0, 1, False or True

        Raises
        ------
        ValueError
            The calibration set holds no such example.
        """
        score, y = _score(score), _label(y)
        if tree.delete(self.nodes, self._leaves, score, y) == tree.ABSENT:
            raise ValueError(f"score and y must be those of a calibration example, got ({score}, {y})")

    def insert_many(self, scores: Any, labels: Any) -> None:
        """Insert examples: all, or none if one is refused.

        Parameters
        ----------
        scores : (n,) finite numbers
        labels : (n,) of 0, 1, False or True
        """
        new = finite_array("scores", scores)
        codes = binary_labels("labels", labels, len(new))
        self.check_room(len(new))
        done = 0
        if len(new) * _REBUILD > len(self):
            old, blocks = tree.contents(self.nodes, self._leaves)
            distinct, blocks = _pooled(np.append(old[1:], new), np.append(blocks[1:], ONE + codes))
            self._build(np.append(-np.inf, distinct), np.append(0, blocks))
            done = len(new)
        while done < len(new):
            done = tree.insert_all(self.nodes, self._leaves, new, codes, done)
            if done < len(new):
                self._grow()

    def merge(self, other: VennAbers) -> VennAbers:
        """Return a new calibrator with the examples of both, which do not change.

        The answers are those of a calibrator that received all the examples, to the last bit, whatever the order and
        grouping of merges. It costs as much as building both anew, O(k).

        Parameters
        ----------
        other : VennAbers

        Raises
        ------
        TypeError
            `other` is not a VennAbers.
        OverflowError
            There are more than 2^31 - 1 examples together.

        Examples
        --------
        >>> one, other = VennAbers(), VennAbers()
        >>> one.insert_many([0.1, 0.5], [0, 0])
        >>> other.insert_many([0.4, 0.9], [1, 1])
        >>> one.merge(other).query(0.5)
        (0.3333333333333333, 0.6666666666666666)
        """
        if not isinstance(other, VennAbers):
            raise TypeError(f"other must be a VennAbers, to be merged with one, got {other!r}")
        self.check_room(len(other))
        both = VennAbers()
        parts = self.state, other.state
        scores, blocks = _pooled(*(np.concatenate([part[name] for part in parts]) for name in ("scores", "blocks")))
        both.restore({"scores": scores, "blocks": blocks})
        return both

    def query(self, score: float) -> tuple[float, float]:
        """Return p0 and p1 at a score, leaving no trace.

        Parameters
        ----------
        score : float
            Finite.

        Returns
        -------
        (float, float)
            0 <= p0 < p1 <= 1.
        """
        return tree.query(self.nodes, self._leaves, _score(score))

    def query_many(self, scores: Any) -> Floats:
        """Return (n, 2): p0 and p1 at each of n finite scores, leaving no trace."""
        return tree.query_all(self.nodes, self._leaves, finite_array("scores", scores))

    def replay_many(self, scores: Any, labels: Any, taken: Bools | None = None) -> Floats:
        """Return (n, 2): p0 and p1 at each score in turn, after which the example is inserted.

        Parameters
        ----------
        scores : (n,) finite numbers
        labels : (n,) of 0, 1, False or True
        taken : (n,) bool, optional
            Which examples are inserted; by default all.

        Examples
        --------
        >>> VennAbers().replay_many([0.1, 0.9], [0, 1])
        array([[0., 1.],
               [0., 1.]])
        """
        clean = finite_array("scores", scores)
        codes, done = binary_labels("labels", labels, len(clean)), 0
        wanted = np.ones(len(clean), np.bool_) if taken is None else taken
        self.check_room(int(wanted.sum()))
        out = np.empty((len(clean), 2))
        while (done := tree.replay_all(self.nodes, self._leaves, clean, codes, wanted, done, out)) < len(clean):
            self._grow()
        return out


def _more(room: int) -> int:
    """Return the next larger room: of a long stream's tree a fifth is empty at most, and few trees are large."""
    return room + max(room // 4, min(room, SMALL))


class ClassTrees(list[VennAbers]):
    """The calibrators of all classes, whose trees are read and changed together where one object is all there is."""

    def __init__(self, calibrators: Iterable[VennAbers]) -> None:
        super().__init__(calibrators)
        self._arrays: tuple[Integers, Integers] | None = None

    @property
    def arrays(self) -> tuple[Integers, Integers]:
        """The nodes (c, n, 8) and leaves (c, n, LEAF) of all trees."""
        found = self._arrays
        if found is not None:
            for one in self:
                if one.nodes.base is not found[0]:
                    break
            else:
                return found
        return self._joined(max(len(one.nodes) for one in self))

    def _joined(self, room: int) -> tuple[Integers, Integers]:
        """Move all trees into two arrays with room for so many nodes each."""
        nodes, leaves = np.zeros((len(self), room, 8), np.int64), np.zeros((len(self), room, LEAF), np.int64)
        for one, *its in zip(self, nodes, leaves, strict=True):
            one.move(*its)
        self._arrays = nodes, leaves
        return nodes, leaves

    def insert_one(self, scores: Floats, grid: tuple[float, float, float], code: int) -> None:
        """Insert an example of this class: its (1, c) scores, finite, and the grid: see `on_grid_within`."""
        nodes, leaves = self.arrays
        done = 0
        while (done := tree.insert_one(nodes, leaves, scores, *grid, code, done)) < len(self):
            self[done].check_room(1)
            nodes, leaves = self._joined(_more(nodes.shape[1]))


class Table:
    """All answers of one calibration set, computed at once: O(k log k), then O(log k) for a score."""

    def __init__(self, scores: Floats, blocks: Integers) -> None:
        """Pool equal scores. A block counts the examples at a score: the sum of `ONE + label` over them."""
        self._scores, self._blocks = _pooled(scores, blocks)

        above = precompute(self._blocks)
        # A new label 0 is a new label 1 once labels are exchanged and the order of scores is reversed.
        mirrored = (self._blocks // ONE) * ONE + self._blocks // ONE - self._blocks % ONE
        below = precompute(mirrored[::-1].copy())[::-1]
        # A score outside belongs to no block: p0 = 0 below all, p1 = 1 above all.
        self._p0 = np.append(0.0, (below // ONE - below % ONE) / (below // ONE))
        self._p1 = np.append((above % ONE) / (above // ONE), 1.0)

    @property
    def contents(self) -> tuple[Floats, Integers]:
        """(m,) distinct scores in order, and the examples at each, packed."""
        return self._scores, self._blocks

    def merge(self, other: Table) -> Table:
        """Return the table of the calibration sets of both."""
        return Table(np.append(self._scores, other._scores), np.append(self._blocks, other._blocks))

    def read(self, scores: Floats) -> Floats:
        """Return (n, 2): p0 and p1 at each score."""
        p0 = self._p0[self._scores.searchsorted(scores, side="right")]
        p1 = self._p1[self._scores.searchsorted(scores, side="left")]
        return np.column_stack([p0, p1])


def checked_blocks(scores: Any, blocks: Any) -> tuple[Floats, Integers]:
    """Return distinct scores and the packed examples at each, as saved; or say what is wrong with them."""
    m = restored_rows("scores", scores)
    scores, blocks = restored_finite("scores", scores, (m,)), restored_array("blocks", blocks, (m,), np.int64)
    count, positive = blocks >> 32, blocks & 0xFFFFFFFF
    if not ((np.diff(scores) > 0).all() and (count >= 1).all() and (positive <= count).all()):
        raise ValueError("scores must be distinct and in order, with a number of examples each")
    if m and sum(count.tolist()) > LIMIT:
        raise ValueError(f"blocks must be at most {LIMIT} examples")
    return scores, blocks


def venn_abers(calibration_scores: Any, calibration_labels: Any, scores: Any) -> Floats:
    """Return p0 and p1 of inductive Venn-Abers at every score, from one calibration set.

    The same numbers as from `VennAbers`, by computing all fits first: O(k log k) for k calibration
    examples, then O(log k) for a score.

    Parameters
    ----------
    calibration_scores : (k,) finite numbers
        From a scorer that was trained on other data.
    calibration_labels : (k,) of 0, 1, False or True
    scores : (n,) finite numbers

    Returns
    -------
    (n, 2) float64
        p0 and p1 of each score.

    Raises
    ------
    TypeError, ValueError
        A score is not a finite number, a label not binary, or lengths differ.

    References
    ----------
    Vovk, Petej & Fedorova (2015), arXiv:1511.00213, algorithms 1 to 4.

    Examples
    --------
    >>> venn_abers([0.1, 0.4, 0.5, 0.9], [0, 1, 0, 1], [0.0, 0.5])
    array([[0.        , 0.5       ],
           [0.33333333, 0.66666667]])
    """
    clean = finite_array("calibration_scores", calibration_scores)
    labels = binary_labels("calibration_labels", calibration_labels, len(clean))
    return Table(clean, ONE + labels).read(finite_array("scores", scores))
