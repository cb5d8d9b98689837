"""A forest of numbers that says a whole distribution: its leaves hold the labels of all examples."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from venn.machines.machine import NotConverged
from venn.machines.scale import ColumnScale, held_scale, middle
from venn.machines.stack import FARTHEST, dense
from venn.machines.trees import FlatTrees
from venn.prediction import Floats, Integers
from venn.saved import Saved, component, held_codes, held_finite, held_rows, own, param

TREES, LEAF = 100, 5  # trees, and examples at least in a leaf
WAYS = ("roots", "left", "right")  # of trees: where a row goes, to a leaf if negative


def _held_trees(name: str, trees: Any) -> FlatTrees:
    if not isinstance(trees, FlatTrees) or not len(trees.start) == len(trees.roots):
        raise ValueError(f"{name} must be FlatTrees with a column for each tree, got {trees!r}")
    if not np.array_equal(trees.leaves[:, 0], np.arange(len(trees.leaves))):
        raise ValueError(f"{name} must say the numbers of leaves, got {trees.leaves!r}")
    return trees


def _held_members(name: str, members: Any, trees: FlatTrees, n: int) -> Any:
    return held_codes(name, members, (len(trees.roots) * n,), 0, n, np.int32)


def _held_ends(name: str, ends: Any, trees: FlatTrees, members: int) -> Any:
    held_codes(name, ends, (len(trees.leaves),), 1, members + 1)
    if not (np.diff(ends) > 0).all() or ends[-1] != members:
        raise ValueError(f"{name} must ascend to {members}, got {ends!r}")
    return ends


@component
class QuantileForest(Saved):
    """A forest of regression trees, each leaf of which holds its examples: `QuantileForest.fitted` makes one.

    The distribution for an object is that of the labels in the leaves that it comes to, each leaf with equal weight.

    Parameters
    ----------
    scale : (3, d) float64
        See `ColumnScale.state`.
    trees : FlatTrees
        They say, for each tree, the number of the leaf.
    labels : (n,) float64, ascending
    members : (T n,) int32
        Places of labels, leaf by leaf.
    ends : (m,) int64
        Where those of a leaf end.

    References
    ----------
    Meinshausen (2006), "Quantile regression forests".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> forest = QuantileForest.fitted(X, X[:, 0] * rng.normal(size=200))
    >>> narrow, wide = (np.ptp(forest.quantiles([[x]], np.array([0.1, 0.9]))) for x in (0.1, 0.9))
    >>> bool(2 * narrow < wide)
    True
    """

    scale: Floats = param()
    trees: FlatTrees = param(_held_trees)
    labels: Floats = param(held_finite, own(lambda m: (held_rows("labels", m.labels),)))
    members: Any = param(_held_members, own(attrgetter("trees")), own(lambda m: len(m.labels)))
    ends: Integers = param(_held_ends, own(attrgetter("trees")), own(lambda m: len(m.members)))

    def derive(self) -> None:
        """Take the scale apart."""
        self._scale: ColumnScale = held_scale(self.scale)
        if len(self._scale.spread) != self.features:
            raise ValueError(f"scale must be of {self.features} features, got {self.scale!r}")
        self._begins = np.append(0, self.ends[:-1])

    @classmethod
    def fitted(cls, X: Any, labels: Floats) -> Self:
        """Return a forest fitted to (n, d) objects and (n,) labels, n >= 1.

        Raises
        ------
        NotConverged
            It cannot be fitted.
        """
        from sklearn.ensemble import RandomForestRegressor

        X = dense(X)
        try:
            scale, order = middle(X), np.argsort(labels, kind="stable")
            placed, n = np.ascontiguousarray(scale.place(X[order], FARTHEST)), len(labels)
            center, unit = float(np.median(labels)), float(np.abs(labels).max()) or 1.0
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                woods = RandomForestRegressor(TREES, min_samples_leaf=LEAF, max_features=0.5, random_state=0)
                woods.fit(placed, (labels[order] - center) / unit)
        except ValueError as error:
            raise NotConverged(f"a forest must be fitted to {len(labels)} examples: {error}") from error
        found = FlatTrees.of(woods)
        if found is None:
            raise NotConverged("a forest must be read, which this version of scikit-learn does not allow")
        parts, t = found.parameters, len(found.roots)
        # Each tree has a column, to which it adds the number of its leaf; leaves that say the same are numbered, too.
        ways = np.concatenate([parts[name] for name in WAYS])
        m = int((ways < 0).sum())
        ways[ways < 0] = -1 - np.arange(m)
        cuts = np.cumsum([len(parts[name]) for name in WAYS])[:-1]
        apart = {name: way.astype(parts[name].dtype) for name, way in zip(WAYS, np.split(ways, cuts), strict=True)}
        numbered = {"link": "softmax", "start": np.zeros(t), "leaves": np.arange(m, dtype=np.float64)[:, None]}
        trees = FlatTrees(**{**parts, **apart, **numbered})
        leaves = trees.answer("decision_function", placed).astype(np.int64).T.ravel()
        members = np.tile(np.arange(n, dtype=np.int32), t)[np.argsort(leaves, kind="stable")]
        return cls(scale.state, trees, labels[order], members, np.cumsum(np.bincount(leaves, minlength=m)))

    @property
    def features(self) -> int:
        """Number of features."""
        return self.trees.features

    def quantiles(self, rows: Any, levels: Floats) -> Floats:
        """Return the (n, k) quantiles of the labels of n objects at (k,) levels from 0 to 1."""
        found = np.empty((len(rows), len(levels)))
        at = self.trees.answer("decision_function", self._scale.place(dense(rows), FARTHEST)).astype(np.int64)
        for i, leaves in enumerate(at):
            begins, ends = self._begins[leaves], self.ends[leaves]
            inside = [self.members[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
            weights = np.bincount(
                np.concatenate(inside), np.repeat(1 / (ends - begins), ends - begins), len(self.labels)
            ).cumsum()
            found[i] = self.labels[np.minimum(weights.searchsorted(levels * weights[-1]), len(self.labels) - 1)]
        return found
