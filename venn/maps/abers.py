"""Inductive Venn-Abers: from a score to a pair of probabilities, online and in a batch, of several classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import isfinite
from typing import Any, Protocol, Self

import numpy as np

from venn._compiled import hull_tree as tree
from venn._compiled.hulls import LEAF, LIMIT, ONE, WIDTH, precompute
from venn.maps.contract import binary_labels, class_scores, finite_array
from venn.parameters import Parameters, class_codes, members, number, real_array, with_methods
from venn.prediction import Bools, Floats, Integers, Label
from venn.saved import Saved, checked_keys, mergeable, restored_array, restored_finite, restored_rows, saved

# --------------------------------------------------------------------------------------------------------------- merges
# From the two probabilities of Venn-Abers to one.


class Merge(Protocol):
    """How p0 and p1 become one probability of label 1."""

    def merge(self, p0: Any, p1: Any) -> Floats:
        """Return the merged probabilities, elementwise, in the shape of both."""

    def merge_folds(self, p0: Any, p1: Any) -> Floats:
        """Return (n,) probabilities merged over folds, from (folds, n) ones."""


def _pair(p0: Any, p1: Any) -> tuple[Floats, Floats]:
    pair = real_array(p0, "p0 must be numbers in [0, 1]"), real_array(p1, "p1 must be numbers in [0, 1]")
    for name, p in zip(("p0", "p1"), pair, strict=True):
        inside = (p >= 0) & (p <= 1)
        if not inside.all():
            raise ValueError(f"{name} must lie in [0, 1], got {p[~inside].ravel()[0]}")
    try:
        np.broadcast_shapes(pair[0].shape, pair[1].shape)
    except ValueError:
        raise ValueError(f"p0 and p1 must have the same shape, got {pair[0].shape} and {pair[1].shape}") from None
    return pair


@saved
class LogMerge(Parameters):
    """Makes one probability of p0 and p1: its log loss exceeds the right one's by as much for label 0 as for 1.

    p = p1 / (1 - p0 + p1) is the minimax choice: the regret is log(1 - p0 + p1) whatever the label. Over folds
    it is GM(p1) / (GM(1 - p0) + GM(p1)) with geometric means.

    A merged probability is not valid: only the pair has the guarantee.

    References
    ----------
    Vovk, Petej & Fedorova (2015).

    Examples
    --------
    >>> round(float(LogMerge().merge(0.2, 0.5)), 6)  # 5 / 13
    0.384615
    """

    def merge(self, p0: Any, p1: Any) -> Floats:
        """Return the merged probabilities, elementwise, in the shape of both.

        They are 1/2 for the pair (1, 0), where both losses are infinite.

        Parameters
        ----------
        p0, p1 : numbers in [0, 1], or arrays of them whose shapes fit
            Probability of label 1 if the label is 0, and if it is 1.

        Raises
        ------
        TypeError, ValueError
            p0 or p1 is not as described.
        """
        p0, p1 = _pair(p0, p1)
        return _share(p1, 1 - p0)

    def regret(self, p0: Any, p1: Any) -> Floats:
        """Return, elementwise, the excess of the log loss over that of the right one of p0 and p1, in nats."""
        p0, p1 = _pair(p0, p1)
        with np.errstate(divide="ignore"):
            excess: Floats = np.log(1 - p0 + p1)
        return excess

    def merge_folds(self, p0: Any, p1: Any) -> Floats:
        """Return (n,) probabilities merged over folds, from (folds, n) ones."""
        p0, p1 = _pair(p0, p1)
        with np.errstate(divide="ignore"):
            return _share(np.exp(np.log(p1).mean(axis=0)), np.exp(np.log(1 - p0).mean(axis=0)))


def _share(one: Floats, other: Floats) -> Floats:
    """Return one / (one + other), 1/2 where both are 0."""
    total = one + other
    return np.divide(one, total, out=np.full(total.shape, 0.5), where=total > 0)


@saved
class BrierMerge(Parameters):
    """Makes one probability of p0 and p1: its squared error exceeds the right one's by as much for label 0 as for 1.

    p = p1 + (p0^2 - p1^2) / 2 is the minimax choice for the Brier loss (p - y)^2; the mean of p0 and p1 is
    not. Over folds it is the mean of the folds' merges.

    A merged probability is not valid: only the pair has the guarantee.

    References
    ----------
    Vovk, Petej & Fedorova (2015).

    Examples
    --------
    >>> round(float(BrierMerge().merge(0.2, 0.5)), 6)
    0.395
    """

    def merge(self, p0: Any, p1: Any) -> Floats:
        """Return the merged probabilities, elementwise, in the shape of both.

        Parameters
        ----------
        p0, p1 : numbers in [0, 1], or arrays of them whose shapes fit
            Probability of label 1 if the label is 0, and if it is 1.

        Raises
        ------
        TypeError, ValueError
            p0 or p1 is not as described.
        """
        p0, p1 = _pair(p0, p1)
        return np.asarray(p1 + (p0 * p0 - p1 * p1) / 2)

    def regret(self, p0: Any, p1: Any) -> Floats:
        """Return, elementwise, the excess of (p - y)^2 over that of the right one of p0 and p1."""
        p0, p1 = _pair(p0, p1)
        merged = self.merge(p0, p1)
        return np.asarray(merged * merged - p0 * p0)

    def merge_folds(self, p0: Any, p1: Any) -> Floats:
        """Return (n,) probabilities merged over folds, from (folds, n) ones."""
        return self.merge(p0, p1).mean(axis=0)


def checked_merge(merge: Any) -> Merge:
    """Return the merge, by default `LogMerge()`, or say what is wrong with it."""
    merge = LogMerge() if merge is None else merge
    return with_methods("merge", merge, "a merge object, such as LogMerge(), with a method 'merge'", "merge")


# ---------------------------------------------------------------------------------------------------------------- abers
# Inductive Venn-Abers: from a score to a pair of probabilities, online and in a batch.

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
    def _nodes(self) -> Integers:
        self._build(np.array([-np.inf]), np.array([0]))
        return vars(self)["_nodes"]

    @cached_property
    def _leaves(self) -> Integers:
        self._build(np.array([-np.inf]), np.array([0]))
        return vars(self)["_leaves"]

    def _build(self, scores: Floats, blocks: Integers) -> None:
        """Start from distinct scores in order and their blocks, minus infinity with 0 first."""
        used = -(-len(scores) // _FILL)
        room = used + used // 4 + 3
        self._nodes = np.zeros((room, 8), np.int64)
        self._leaves = np.zeros((room, LEAF), np.int64)
        tree.build(self._nodes, self._leaves, scores, blocks, used)

    def _grow(self) -> None:
        """Make more room; called when there is none left."""
        self.check_room(1)
        room = _more(len(self._nodes))
        self.move(np.zeros((room, 8), np.int64), np.zeros((room, LEAF), np.int64))

    @property
    def nodes(self) -> Integers:
        """(n, 8) nodes of the tree, see `venn._compiled.hulls`."""
        return self._nodes

    def move(self, nodes: Integers, leaves: Integers) -> None:
        """Keep the tree in these arrays from now on, which have room for it and hold zeros."""
        used = len(self._nodes)
        nodes[:used], leaves[:used] = self._nodes, self._leaves
        self._nodes, self._leaves = nodes, leaves
        tree.release_rest(nodes, leaves, used)

    def check_room(self, more: int) -> None:
        """Refuse more examples than a tree can hold."""
        if len(self) + more > LIMIT:
            raise OverflowError(f"a calibration set must have at most {LIMIT} examples, got {len(self) + more}")

    def __len__(self) -> int:
        """Number of examples in the calibration set."""
        return int(self._nodes[0, tree.TOTAL]) // ONE

    def __repr__(self) -> str:
        return f"<VennAbers of {len(self)} examples>"

    @property
    def state(self) -> dict[str, Any]:
        """The distinct scores and the packed examples at each: all answers follow from them."""
        scores, blocks = tree.contents(self._nodes, self._leaves)
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
        while tree.insert(self._nodes, self._leaves, score, y) == tree.FULL:
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
        if tree.delete(self._nodes, self._leaves, score, y) == tree.ABSENT:
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
            old, blocks = tree.contents(self._nodes, self._leaves)
            distinct, blocks = _pooled(np.append(old[1:], new), np.append(blocks[1:], ONE + codes))
            self._build(np.append(-np.inf, distinct), np.append(0, blocks))
            done = len(new)
        while done < len(new):
            done = tree.insert_all(self._nodes, self._leaves, new, codes, done)
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
        return tree.query(self._nodes, self._leaves, _score(score))

    def query_many(self, scores: Any) -> Floats:
        """Return (n, 2): p0 and p1 at each of n finite scores, leaving no trace."""
        return tree.query_all(self._nodes, self._leaves, finite_array("scores", scores))

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
        while (done := tree.replay_all(self._nodes, self._leaves, clean, codes, wanted, done, out)) < len(clean):
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
        if found is None or any([one.nodes.base is not found[0] for one in self]):
            found = self._joined(max(len(one.nodes) for one in self))
        return found

    def _joined(self, room: int) -> tuple[Integers, Integers]:
        """Move all trees into two arrays with room for so many nodes each."""
        nodes, leaves = np.zeros((len(self), room, 8), np.int64), np.zeros((len(self), room, LEAF), np.int64)
        for one, *its in zip(self, nodes, leaves, strict=True):
            one.move(*its)
        self._arrays = nodes, leaves
        return nodes, leaves

    def insert_one(self, steps: Floats, code: int) -> None:
        """Insert an example of this class: its (1, c) scores, finite."""
        nodes, leaves = self.arrays
        done = 0
        while (done := tree.insert_one(nodes, leaves, steps, code, done)) < len(self):
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


# ----------------------------------------------------------------------------------------------------- abers of classes
# Venn-Abers over several calibration sets: folds, and classes one against all.


def cross_venn_abers(folds: Sequence[tuple[Any, Any]], scores: Any, merge: Merge | None = None) -> Floats:
    """Return the probability of label 1 at every score by cross Venn-Abers.

    Each fold is held out from the training of its own scorer and calibrates that scorer; the folds' pairs
    are merged into one probability.

    Each fold's pair is valid; the merge over folds is not proved to be.

    Parameters
    ----------
    folds : sequence of (scores, labels)
        Calibration scores (k_m,) of fold m by the scorer trained without it, and their binary labels.
    scores : (folds, n) finite numbers
        Scores of the n new objects by each of these scorers.
    merge : merge object, default LogMerge()

    Returns
    -------
    (n,) float64

    Raises
    ------
    TypeError, ValueError
        No fold, fewer or more rows of scores than folds, or input that `venn_abers` refuses.

    References
    ----------
    Vovk, Petej & Fedorova (2015), section 4.

    Examples
    --------
    >>> folds = [([0.1, 0.4, 0.9], [0, 1, 1]), ([0.2, 0.3, 0.8], [0, 0, 1])]
    >>> cross_venn_abers(folds, [[0.2, 0.7], [0.3, 0.8]]).round(3)
    array([0.414, 0.667])
    """
    merge = checked_merge(merge)
    folds = list(folds)
    rows = finite_array("scores", scores, dimensions=2)
    if not folds or len(rows) != len(folds):
        raise ValueError(f"scores must have one row for each of at least one fold, got {len(rows)} for {len(folds)}")
    pairs = np.array([venn_abers(s, y, row) for (s, y), row in zip(folds, rows, strict=True)])
    return merge.merge_folds(pairs[:, :, 0], pairs[:, :, 1])


@saved
class OneVsAllAbers(Saved):
    """Venn-Abers for several classes: each class against all others, by its own column of scores.

    `pairs` gives p0 and p1 of the event "class k" for each class, valid class by class; `predict_proba`
    merges each pair and divides by the sum, which loses the validity.

    Parameters
    ----------
    classes : sequence of at least 2 distinct labels
        In the order of the columns of scores.
    merge : merge object, default LogMerge()

    Raises
    ------
    TypeError
        `merge` is no merge object.
    ValueError
        Fewer than two classes, or one class twice.

    References
    ----------
    Vovk, Petej & Fedorova (2015) for the pairs; Manokhin (2017) for several classes.

    Examples
    --------
    >>> scores = [[2.0, 0.1, 0.3], [0.2, 1.5, 0.4], [0.1, 0.9, 1.1], [1.2, 0.8, 0.5]]
    >>> model = OneVsAllAbers(["a", "b", "c"]).calibrate(scores, ["a", "b", "c", "a"])
    >>> model.predict_proba([[1.0, 0.2, 0.3]]).round(3)
    array([[0.526, 0.263, 0.211]])
    """

    held_as = (("merge", "_merge"),)
    unnamed = 0

    tables: list[Table] | None = None  # by class

    def __init__(self, classes: Sequence[Label], merge: Merge | None = None) -> None:
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self._merge = checked_merge(merge)  # of p0 and p1; the method `merge` joins two calibrated objects

    @property
    def state(self) -> dict[str, Any]:
        """The distinct scores of each table and the examples at them, in order; None before calibration."""
        return {"tables": None if self.tables is None else [list(table.contents) for table in self.tables]}

    def restore(self, state: dict[str, Any]) -> None:
        """Be calibrated on the examples of a `state`; raise ValueError if it is not one."""
        super().restore(state)
        if state["tables"] is None:
            return
        made = [Table(*checked_blocks(*arrays)) for arrays in state["tables"]]
        if len(made) != len(self.classes):
            raise ValueError(f"tables must be {len(self.classes)}, one for each class, got {len(made)}")
        self.tables = made

    def _examples(self, scores: Any, labels: Any) -> tuple[Floats, Integers]:
        matrix = class_scores(scores, len(self.classes))
        names = labels.tolist() if hasattr(labels, "tolist") else list(members("labels", labels, "labels"))
        if len(names) != len(matrix):
            raise ValueError(f"labels must be {len(matrix)}, one for each row of scores, got {len(names)}")
        codes = np.empty(len(names), np.int64)
        for i, name in enumerate(names):
            try:
                codes[i] = self._codes[name]
            except (KeyError, TypeError):
                raise ValueError(f"labels must be among {list(self.classes)!r}, got {name!r} at {i}") from None
        return matrix, codes

    def calibrate(self, scores: Any, labels: Any) -> Self:
        """Calibrate on a new set and return the object.

        Parameters
        ----------
        scores : (k, c) finite numbers
            Column j ranks objects by how much they look like class j; from a scorer trained on other data.
        labels : (k,) of the classes
        """
        matrix, codes = self._examples(scores, labels)
        self.tables = [Table(matrix[:, k], ONE + (codes == k)) for k in range(len(self.classes))]
        return self

    def merge(self, other: Self) -> Self:
        """Return a new object that is calibrated on the examples of both, which do not change.

        It answers like one calibrated on all the examples, to the last bit, whatever the order and grouping of merges;
        merging one that has not been calibrated changes nothing.

        Parameters
        ----------
        other : of the same class
            With the same classes and the same merge of p0 and p1; its scores are by the same scorer.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described.
        """
        mergeable(self, other)
        both = type(self)(self.classes, self._merge)
        mine, theirs = self.tables, other.tables
        if mine is None or theirs is None:
            both.tables = mine if theirs is None else theirs
        else:
            both.tables = [one.merge(other) for one, other in zip(mine, theirs, strict=True)]
        return both

    def pairs(self, scores: Any) -> Floats:
        """Return (n, c, 2): p0 and p1 of each class at (n, c) scores."""
        matrix = class_scores(scores, len(self.classes))
        if self.tables is None:
            raise RuntimeError(f"{type(self).__name__} needs calibrate(scores, labels) before it is asked")
        return np.stack([table.read(column) for table, column in zip(self.tables, matrix.T, strict=True)], axis=1)

    def predict_proba(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores; not valid."""
        pairs = self.pairs(scores)
        p = self._merge.merge(pairs[:, :, 0], pairs[:, :, 1])
        return p / p.sum(axis=1, keepdims=True)
