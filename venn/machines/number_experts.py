"""Two regressors that predict a whole distribution: a forest whose leaves hold labels, and a Gaussian process."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.linalg.lapack import dtrtri

from venn._compiled.distribution import leaf_quantiles, process_at
from venn.machines.machine import NotConverged
from venn.machines.scale import ColumnScale, middle, restored_scale
from venn.machines.shapes import PLAIN, STRETCHED, Shape, gaps_of, nearest
from venn.machines.stack import FARTHEST, dense
from venn.machines.threads import one_thread
from venn.machines.trees import AskedTrees, FlatTrees, trees_of
from venn.parameters import instance
from venn.prediction import Floats, Integers
from venn.saved import Saved, array, component, own, param, restored_float

# ------------------------------------------------------------------------------------------------------ quantile forest
# A forest of numbers that says a whole distribution: its leaves hold the labels of all examples.

TREES, LEAF = 100, 5  # trees, and examples at least in a leaf
WAYS = ("roots", "left", "right")  # fields of trees that say where a row goes next: to a leaf if negative


def _restored_trees(name: str, trees: Any) -> FlatTrees | AskedTrees:
    if isinstance(trees, AskedTrees):
        return trees
    if not isinstance(trees, FlatTrees) or not len(trees.start) == len(trees.roots):
        raise ValueError(f"{name} must be FlatTrees with a column for each tree, got {trees!r}")
    if not np.array_equal(trees.leaves[:, 0], np.arange(len(trees.leaves))):
        raise ValueError(f"{name} must say the numbers of leaves, got {trees.leaves!r}")
    return trees


def _members(forest: QuantileForest) -> int:
    trees = forest.trees
    return len(forest.labels) * (TREES if isinstance(trees, AskedTrees) else len(trees.roots))


def _numbered(trees: FlatTrees | AskedTrees) -> FlatTrees | AskedTrees:
    """Return trees that say the number of the leaf: each has a column, to which it adds that."""
    if isinstance(trees, AskedTrees):
        return trees
    parts = trees.parameters
    ways = np.concatenate([parts[name] for name in WAYS])  # leaves that say the same are numbered, too
    m = int((ways < 0).sum())
    ways[ways < 0] = -1 - np.arange(m)
    cuts = np.cumsum([len(parts[name]) for name in WAYS])[:-1]
    renumbered = {name: way.astype(parts[name].dtype) for name, way in zip(WAYS, np.split(ways, cuts), strict=True)}
    numbers = {"start": np.zeros(len(trees.roots)), "leaves": np.arange(m, dtype=np.float64)[:, None]}
    return FlatTrees(**{**parts, **renumbered, **numbers, "link": "softmax"})


def leaves_of(trees: FlatTrees | AskedTrees, placed: Floats) -> Integers:
    """Return, for (n, d) rows and each tree, the number of the leaf among those of all trees."""
    if isinstance(trees, AskedTrees):
        return trees.leaves_of(placed)
    found: Integers = trees.answer("decision_function", placed).astype(np.int64)
    return found


@component
class QuantileForest(Saved):
    """A forest of regression trees, each leaf of which holds its examples: `QuantileForest.fitted` makes one.

    The distribution for an object is that of the labels in the leaves that it comes to, each leaf with equal weight.

    Parameters
    ----------
    scale : (3, d) float64
        See `ColumnScale.state`.
    trees : FlatTrees or AskedTrees
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
    trees: FlatTrees | AskedTrees = param(_restored_trees)
    labels: Floats = param(array(None))
    members: Any = param(array(own(_members), of=np.int32, below="labels"))
    ends: Integers = param(array(None, of=np.int64, least=1, below=own(lambda m: len(m.members) + 1)))

    def derive(self) -> None:
        """Take the scale apart."""
        self._scale: ColumnScale = restored_scale(self.scale)
        if len(self._scale.spread) != self.features:
            raise ValueError(f"scale must be of {self.features} features, got {self.scale!r}")
        ends, wanted, m = self.ends, len(getattr(self.trees, "leaves", self.ends)), len(self.members)
        if len(ends) != wanted or not (np.diff(ends) > 0).all() or ends[-1:].tolist() != [m]:
            raise ValueError(f"ends must be those of {wanted} leaves and ascend to {m}, got {ends!r}")
        self._begins = np.append(0, self.ends[:-1])

    @classmethod
    def fitted(cls, X: Any, labels: Floats) -> Self:
        """Return a forest fitted to (n, d) objects and (n,) labels, n >= 1.

        Raises
        ------
        NotConverged
            It cannot be fitted.
        """
        return cls.fitted_unseen(X, labels, None, np.zeros(0))[0]

    @classmethod
    def fitted_unseen(cls, X: Any, labels: Floats, shape: Shape | None, levels: Floats) -> tuple[Self, Floats]:
        """Return a forest, and the (n, k) quantiles that trees say of each example that have not seen it.

        Parameters
        ----------
        X, labels
            As for `fitted`.
        shape : Shape or None
            In which trees take labels.
        levels : (k,) floats from 0 to 1
        """
        from sklearn.ensemble import RandomForestRegressor

        X = dense(X)
        try:
            scale, order = middle(X), np.argsort(labels, kind="stable")
            placed, n = scale.place(X[order], FARTHEST), len(labels)
            # Trees ask nothing where all differ by little beside 1, as labels far from 0 would in other units.
            apart = labels[order] - np.median(labels) if shape is None else shape.of(labels[order])
            unit = float(np.abs(apart).max()) or 1.0
            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                woods = RandomForestRegressor(TREES, min_samples_leaf=LEAF, max_features=0.5, random_state=0)
                woods.fit(placed, apart / unit)
        except ValueError as error:
            raise NotConverged(f"a forest must be fitted to {len(labels)} examples: {error}") from error
        trees = _numbered(trees_of(woods, placed, apart / unit))
        leaves, t = leaves_of(trees, placed).T.ravel(), len(woods.estimators_)
        members = np.tile(np.arange(n, dtype=np.int32), t)[np.argsort(leaves, kind="stable")]
        made = cls(scale.state, trees, labels[order], members, np.cumsum(np.bincount(leaves)))
        unseen = np.empty((n, len(levels)))
        if len(levels):
            out = np.ones((t, n), np.bool_)
            for own, seen in zip(out, woods.estimators_samples_, strict=True):
                own[seen] = False
            for i, at in enumerate(leaves.reshape(t, n).T):
                unseen[order[i]] = made._quantiles(at[None, out[:, i]], levels, i)[0]
        return made, unseen

    @property
    def features(self) -> int:
        """Number of features."""
        return self.trees.features

    def quantiles(self, rows: Any, levels: Floats) -> Floats:
        """Return the (n, k) quantiles of the labels of n objects at (k,) levels from 0 to 1."""
        return self._quantiles(leaves_of(self.trees, self._scale.place(dense(rows), FARTHEST)), levels)

    def _quantiles(self, leaves: Integers, levels: Floats, without: int = -1) -> Floats:
        """Return (n, k) quantiles of the labels in (n, t) leaves, each of equal weight, perhaps without one example."""
        found = np.empty((len(leaves), len(levels)))
        leaves = np.ascontiguousarray(leaves)
        leaf_quantiles(leaves, self._begins, self.ends, self.members, self.labels, levels, without, found)
        return found


# -------------------------------------------------------------------------------------------------------------- process
# A Gaussian process with a width for each column, fitted to examples at once.

TRIED, MOST = 250, 1000  # latest examples by which widths are chosen, and that count in forecasts
STEPS = 50  # at most, of the search for widths, which begins at the last fit's; 25 were too few
USUAL = 1.6  # usual width, times the root of the number of columns; usual noise is .5
APART = 1.5, 1.0  # deviations around the usual, in logarithms: of widths; of the two heights
JITTER = 1e-6  # least noise, as a share of the height
DIGITS = 3  # kept of the logarithms found: later digits differ from machine to machine


@component
class Process(Saved):
    """A Gaussian process with a width for each column and noise, chosen by likelihood: `Process.fitted` makes one.

    Nothing is proved of what it says. Where a few columns matter, smoothly, it is far sharper than trees.

    Parameters
    ----------
    scale : (3, d) float64
        See `ColumnScale.state`.
    widths : (d,) float64
        Of the kernel, in scaled columns.
    height, noise : float > 0
        Standard deviations, in units.
    rows : (n, d) float64
        Scaled objects, divided by the widths.
    targets : (n,) float64
        Their labels less the center, in units.
    center, unit : float
    shape : Shape
        How labels are taken.
    gaps : (k, 2) float64
        Open intervals where no labels are: see `gaps_of`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100, 3))
    >>> process = Process.fitted(X, np.sin(3 * X[:, 0]))
    >>> (median,) = process.quantiles(np.array([[0.5, 0.0, 0.0]]), np.zeros(1))[0]
    >>> bool(abs(median - np.sin(1.5)) < 0.05), bool(process.widths[0] < process.widths[1])
    (True, True)
    """

    scale: Floats = param()
    widths: Floats = param(array(None))
    height: float = param(restored_float)
    noise: float = param(restored_float)
    rows: Floats = param(array(None, "widths"))
    targets: Floats = param(array("rows"))
    center: float = param(restored_float)
    unit: float = param(restored_float)
    shape: Shape = param(instance, Shape, "a Shape")
    gaps: Floats = param(array(None, 2))

    def derive(self) -> None:
        """Solve for the targets."""
        self._scale: ColumnScale = restored_scale(self.scale)
        if len(self._scale.spread) != self.features:
            raise ValueError(f"widths must be of {len(self._scale.spread)} features, got {self.widths!r}")
        for name in ("height", "noise", "unit"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)!r}")
        if not (self.widths > 0).all():
            raise ValueError(f"widths must be > 0, got {self.widths!r}")
        with one_thread():
            try:
                factor = cholesky(_covered(_kernel(self.rows, self.height), self.height, self.noise), lower=True)
            except np.linalg.LinAlgError as error:
                raise ValueError(f"rows must have a kernel that can be solved for: {error}") from error
            # Of the factor: with an inverse of the kernel variances near 0 lose half of their digits.
            inverse = np.ascontiguousarray(dtrtri(factor, lower=1)[0])
        self._inverse = inverse[np.tri(len(inverse), dtype=np.bool_)]  # packed by rows
        self._solution = np.einsum("ij,i->j", inverse, np.einsum("ij,j->i", inverse, self.targets))

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.widths)

    @classmethod
    def fitted(cls, X: Any, labels: Floats, last: Process | None = None) -> Self:
        """Return a process fitted to (n, d) objects and (n,) labels, n >= 1; `last` is one fitted before, if any.

        Labels are taken in the more likely one of two shapes.

        Raises
        ------
        NotConverged
            It cannot be fitted.
        """
        X = dense(X)
        try:
            found = [cls._fitted(X, labels, last, Shape.fitted(labels, reach)) for reach in (PLAIN, STRETCHED)]
        except ValueError as error:
            raise NotConverged(f"a process must be fitted to {len(labels)} examples: {error}") from error
        return min(found, key=lambda one: one[0])[1]

    @classmethod
    def _fitted(cls, X: Floats, given: Floats, last: Process | None, shape: Shape) -> tuple[float, Self]:
        """Return a process of labels in a shape, and minus the logarithm of its likelihood, up to a constant."""
        from scipy.optimize import minimize  # commands that fit nothing need not wait for it

        labels = shape.of(given)
        d, scale = X.shape[1], middle(X)
        rows, center = scale.place(X, FARTHEST), float(labels.mean())
        unit = float(labels.std()) or 1.0
        targets = (labels - center) / unit
        usual = np.append(np.full(d, np.log(USUAL * np.sqrt(d))), np.log([1.0, 0.5]))
        apart = np.append(np.full(d, APART[0]), np.full(2, APART[1]))
        start = usual if last is None else np.log(np.append(last.widths, [last.height, last.noise]))
        with one_thread():
            found = minimize(
                cost, start, (rows[-TRIED:], targets[-TRIED:], usual, apart), "L-BFGS-B", jac=True,
                options={"maxiter": STEPS}
            )  # fmt: skip
        *widths, height, noise = np.exp(np.round(found.x, DIGITS))
        widths = np.array(widths)
        kept = slice(-MOST, None)
        made = cls(
            scale.state, widths, float(height), float(noise), rows[kept] / widths, targets[kept], center, unit, shape,
            gaps_of(given),
        )  # fmt: skip
        latest = given[-TRIED:]
        return float(found.fun) + len(latest) * np.log(unit) - shape.steepness(latest), made

    def quantiles(self, rows: Any, normal: Floats) -> Floats:
        """Return the (n, k) quantiles of the labels of n objects, those of a standard normal distribution given."""
        found = self.normal(rows)
        return nearest(self.gaps, self.shape.back(found[:, :1] + found[:, 1:] * normal))

    def normal(self, rows: Any) -> Floats:
        """Return the (n, 2) means and standard deviations of n labels in their shape."""
        found = np.empty((len(rows), 2))
        objects = self._scale.place(dense(rows), FARTHEST) / self.widths
        process_at(self.rows, objects, self._inverse, self._solution, self.height, self.noise, found)
        return np.array([self.center, 0.0]) + self.unit * found


def _kernel(rows: Floats, height: float) -> Floats:
    """Return the (n, n) kernel of rows that are divided by the widths."""
    squares = (rows**2).sum(axis=1)
    found: Floats = height**2 * np.exp(-0.5 * np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0.0))
    return found


def _covered(kernel: Floats, height: float, noise: float) -> Floats:
    """Return the covariance of labels with their noise."""
    return kernel + (noise**2 + JITTER * height**2) * np.eye(len(kernel))


def cost(logs: Floats, rows: Floats, targets: Floats, usual: Floats, apart: Floats) -> tuple[float, Floats]:
    """Return minus the log likelihood of (n,) targets, up to a constant, and its gradient; unusual logs cost more.

    Parameters
    ----------
    logs : (d + 2,) float64
        Logarithms of widths, height and noise.
    rows : (n, d) float64
    targets : (n,) float64
    usual, apart : (d + 2,) float64
        The logs are as if drawn from a normal distribution with these means and deviations.
    """
    d, (height, noise) = rows.shape[1], np.exp(logs[-2:])
    placed = rows / np.exp(logs[:-2])
    kernel = _kernel(placed, height)
    try:
        factor = cho_factor(_covered(kernel, height, noise), lower=True)
    except (np.linalg.LinAlgError, ValueError):
        return np.inf, np.zeros(d + 2)
    inverse = cho_solve(factor, np.eye(len(targets)))
    solution = inverse @ targets
    slopes = np.outer(solution, solution) - inverse
    moved, off = slopes * kernel, (logs - usual) / apart
    value = 0.5 * targets @ solution + np.log(np.diag(factor[0])).sum() + 0.5 * off @ off
    gradient = np.empty(d + 2)
    gradient[:d] = ((moved @ placed) * placed).sum(axis=0) - (placed**2 * moved.sum(axis=1)[:, None]).sum(axis=0)
    trace = np.trace(slopes)
    gradient[d] = -moved.sum() - JITTER * height**2 * trace
    gradient[d + 1] = -(noise**2) * trace
    return float(value), gradient + off / apart
