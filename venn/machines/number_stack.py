"""Several kinds of regressors in one scorer, with a spread: what inductive predictors of numbers train."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from venn._compiled.rows import landmark_scores
from venn.labels import Real
from venn.machines.kernels import MultiscaleLaplacian, rate_of
from venn.machines.machine import NotConverged
from venn.machines.number_experts import QuantileForest
from venn.machines.rulers import SHAPED, Ruler
from venn.machines.scale import ColumnScale, middle, restored_scale
from venn.machines.shapes import PLAIN, STRETCHED, Shape, ends_between, gaps_of
from venn.machines.stack import FARTHEST, BaseStack, dense, kernel_rows
from venn.machines.threads import one_thread
from venn.machines.trees import AskedTrees, FlatTrees, trees_of
from venn.parameters import instance, integer
from venn.prediction import Floats
from venn.saved import Saved, array, component, own, param, part, restored_float, restored_positive

KERNEL = MultiscaleLaplacian()
PENALTIES = (0.1, 1.0, 10.0, 100.0)  # of the kernel machine
USUAL, APART = 10.0, 1.5  # the penalty that is preferred, and the deviation around it in logarithms
POWERS = (0.0, 0.5, 1.0)  # of a column's share in the forest's splits, by which the kernel stretches the column
TRIED = 600  # landmarks by which penalty, powers and weights are chosen
TREES, ROUNDS = 100, 100  # of each forest, and of boosting
FOLDS = 3  # an example is predicted by boosted trees that were fitted without its third
LEAF = 8  # examples at least in a leaf of the forest of spreads
BLENDS = np.array([0.1, 0.3, 0.5, 0.7, 1.0])  # shares of the mean in the spread
LEVEL = 0.1  # of the intervals by which a shape of labels is chosen
CENTRAL = np.array([LEVEL / 2, 1 - LEVEL / 2])


D = own(attrgetter("features"))


@component
class NumberFit(Saved):
    """What a stack of numbers has fitted: `NumberFit.of_all` makes one.

    Parameters
    ----------
    scale : (3, d) float64
        See `ColumnScale.state`.
    forest, boosted, errors : FlatTrees or AskedTrees, or None
        The last one says how far off the forecast is. None if there is nothing to tell apart.
    factors : (d,) float64
        By which the kernel stretches the scaled columns.
    columns : (d, m) float64
        Landmarks as the kernel takes them.
    coefficients : (m,) float64
    base : float
        Both in units, as trees speak.
    weights : (2,) float64 >= 0
        Of forest and boosted trees.
    C : float > 0
    center, unit : float
        A label, as it is shaped, is center + unit times what the parts say.
    spread, blend : float
        Mean spread in units, and its share in each.
    shape : Shape
        How labels are taken.
    gaps : (k, 2) float64
        Open intervals where no labels are: see `gaps_of`.
    woods : QuantileForest or None
        Intervals reach to its quantiles at least.
    """

    c = 0  #: number of classes

    scale: Floats = param()
    forest: FlatTrees | AskedTrees | None = param(part(FlatTrees, AskedTrees, features="features"))
    boosted: FlatTrees | AskedTrees | None = param(part(FlatTrees, AskedTrees, features="features"))
    errors: FlatTrees | AskedTrees | None = param(part(FlatTrees, AskedTrees, features="features"))
    factors: Floats = param(array("features"))
    columns: Floats = param(array("features", None))
    coefficients: Floats = param(array(own(lambda fit: fit.columns.shape[1])))
    base: float = param(restored_float)
    weights: Floats = param(array(2))
    C: float = param(restored_positive)
    center: float = param(restored_float)
    unit: float = param(restored_positive)
    spread: float = param(restored_positive)
    blend: float = param(restored_positive)
    shape: Shape = param(instance, Shape, "a Shape")
    gaps: Floats = param(array(None, 2))
    woods: QuantileForest | None = param(part(QuantileForest, features="features"))

    def derive(self) -> None:
        """Take the scale apart."""
        self._scale: ColumnScale = restored_scale(self.scale)

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.scale.shape[-1])

    @classmethod
    def of(cls, X: Floats, labels: Floats, landmarks: int) -> Self:
        """Return what is fitted to n examples, without a forest of quantiles: it answers about one forecast alone."""
        return cls._best(X, labels, landmarks, False)[0]

    @classmethod
    def of_all(cls, X: Floats, labels: Floats, landmarks: int) -> tuple[Self, Floats, Floats]:
        """Return what is fitted to n examples, and what such trees and spreads say of each that they have not seen.

        Labels are taken in two shapes, and intervals end with or without regard to a forest of quantiles. The fit is
        that whose intervals at .1 are the better ones of these examples, each by parts that have not seen it; if it is
        less plain, by the share 1 / sqrt(n) at least. So it is a function of them alone.

        Returns
        -------
        NumberFit, (n,) offsets, (n,) spreads
            As of the method `around`.
        """
        return cls._best(X, labels, landmarks, True)

    @classmethod
    def _best(cls, X: Floats, labels: Floats, landmarks: int, forest: bool) -> tuple[Self, Floats, Floats]:
        import sklearn.ensemble  # noqa: F401  # before its threads are told: they are its trees'

        with one_thread():
            return cls._of_shapes(X, labels, landmarks, forest)

    @classmethod
    def _of_shapes(cls, X: Floats, labels: Floats, landmarks: int, forest: bool) -> tuple[Self, Floats, Floats]:
        try:
            found = [cls.fitted(X, labels, landmarks, Shape.fitted(labels, reach)) for reach in (PLAIN, STRETCHED)]
            # What is less plain must be better by so much: few examples say little.
            gaps, enough = gaps_of(labels), 1 - 1 / np.sqrt(len(labels))
            alone = [_score(gaps, ends[:, 0], ends[:, 1], labels) for _, ends in found]
            best = int(alone[1] < enough * alone[0])
            (made, offsets, spreads), ends = found[best]
            made.gaps = gaps
            if forest and len(X) >= 4 * LEAF and np.ptp(labels) > 0:
                woods, unseen = QuantileForest.fitted_unseen(X, labels, Shape.fitted(labels, STRETCHED), CENTRAL)
                both = _score(gaps, *_further(ends, unseen), labels)
                made.woods = woods if both < enough * alone[best] else None
            return made, offsets, spreads
        except (ValueError, np.linalg.LinAlgError) as error:
            raise NotConverged(f"the stack must be fitted to {len(X)} examples: {error}") from error

    @classmethod
    def fitted(
        cls, X: Floats, given: Floats, landmarks: int, shape: Shape
    ) -> tuple[tuple[Self, Floats, Floats], Floats]:
        """Return a fit to labels in a shape, without gaps, as `of_all` does, and the (n, 2) ends of intervals at .1.

        They are those of the examples, each by parts that have not seen it.
        """
        scale, labels = middle(X), shape.of(given)
        center = float(np.median(labels))
        unit = float(np.sqrt(np.mean((labels - center) ** 2))) or 1.0
        targets, placed = (labels - center) / unit, scale.place(X, FARTHEST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few examples: some in no tree's rest
            forest, boosted, unseen, shares = _trees(placed, targets)
        few, first = slice(0, min(landmarks, TRIED)), slice(0, landmarks)
        C, weights, factors = _chosen(placed[few], targets[few], unseen[few], shares)
        columns = np.ascontiguousarray((placed[first] * factors).T)
        left = targets - unseen @ weights
        coefficients, base, off = _ridge(_inverse(kernel_rows(columns, columns.T), C), left[first])
        made = cls(
            scale.state, forest, boosted, None, factors, columns, coefficients, base, weights, C, center, unit, 1.0,
            1.0, shape, np.zeros((0, 2)), None,
        )  # fmt: skip
        if len(X) > landmarks:
            off = np.append(off, left[landmarks:] - made._kernel(placed[landmarks:]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spreads = made._spread_by(placed, np.abs(off))
        ends = (labels - unit * off)[:, None] + unit * np.outer(spreads, np.quantile(off / spreads, CENTRAL))
        return (made, center + unit * (unseen @ weights), unit * spreads), shape.back(ends)

    def _spread_by(self, placed: Floats, sizes: Floats) -> Floats:
        """Fit the spread to the sizes of errors; return what it says of each example that it has not seen."""
        from sklearn.ensemble import RandomForestRegressor

        self.spread = float(max(sizes.mean(), 1e-9))
        if len(sizes) < 4 * LEAF or not np.ptp(sizes) > 0:
            return np.full(len(sizes), self.spread)
        capped = np.minimum(sizes, 6 * self.spread)
        woods = RandomForestRegressor(
            TREES, min_samples_leaf=LEAF, max_features=0.5, oob_score=True, random_state=0
        ).fit(placed, capped)
        each = BLENDS[:, None] * self.spread + (1 - BLENDS[:, None]) * woods.oob_prediction_
        self.blend = float(BLENDS[(np.log(each) + sizes / each).mean(axis=1).argmin()])
        self.errors = trees_of(woods, placed, capped) if self.blend < 1 else None
        return each[int(np.flatnonzero(self.blend == BLENDS)[0])]

    def place(self, rows: Any) -> Floats:
        """Return (n, d) objects on the scale of the examples."""
        placed: Floats = self._scale.place(dense(rows), FARTHEST)
        return placed

    def around(self, placed: Floats) -> tuple[Floats, Floats]:
        """Return for (n, d) scaled objects what the trees say of labels in their shape, and the spread."""
        said, spreads = np.zeros(len(placed)), np.full(len(placed), self.spread)
        for weight, trees in zip(self.weights.tolist(), (self.forest, self.boosted), strict=True):
            if trees is not None and weight:
                said += weight * trees.predict(placed)
        if self.errors is not None:
            spreads = self.blend * self.spread + (1 - self.blend) * self.errors.predict(placed)
        return self.center + self.unit * said, self.unit * spreads

    def ends(self, row: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats] | tuple[None, None]:
        """Return where intervals for one object (1, d) end at n points, given (n,) ends at these; None: there.

        They reach to the quantiles of the forest, if there is one: at rank k to that at k / (n + 1). No end is in a
        gap.
        """
        if self.woods is not None:
            n = len(lows)
            levels = np.arange(1, n + 1) / (n + 1)
            quantiles = self.woods.quantiles(row, levels)[0]
            lows = np.where(levels <= 0.5, np.minimum(lows, quantiles), lows)
            highs = np.where(levels >= 0.5, np.maximum(highs, quantiles), highs)
        elif not len(self.gaps):
            return None, None
        return ends_between(self.gaps, lows, highs)

    def stretched(self, placed: Floats) -> Floats:
        """Return (n, d) scaled objects as the kernel takes them."""
        return np.ascontiguousarray(placed * self.factors)

    def _kernel(self, placed: Floats) -> Floats:
        """Return the (n,) part of the kernel machine, in units."""
        out, rate = np.zeros((len(placed), 1)), rate_of(KERNEL.gamma, placed.shape[1])
        landmark_scores(
            self.columns, self.stretched(placed), np.array(KERNEL.widths) * rate, KERNEL.linear, rate,
            np.ones(1), self.coefficients[None, None], np.array([[self.base]]), out,
        )  # fmt: skip
        return out[:, 0]

    def answers(self, rows: Floats) -> Floats:
        """Return (n, 5) scores of n objects: forecasts and spreads in the shape of labels, and that shape."""
        placed = self.place(rows)
        said, spreads = self.around(placed)
        scores = np.empty((len(placed), 5))
        scores[:, 0], scores[:, 1], scores[:, 2:] = said + self.unit * self._kernel(placed), spreads, self.shape.row
        return scores


@component
class NumberStack(BaseStack):
    """A forest, boosted trees and a kernel machine in one scorer of numbers, which also says how far off it may be.

    It is fitted to many examples at once, by an inductive predictor: see `InductiveDistribution`. The forecast is a sum
    of what the trees say, each times a weight >= 0, and a kernel ridge regression on what they leave. The weights and
    the penalty are those of the smallest error on examples that each part has not seen, all of them among those that
    train. The spread is what another forest says of the absolute errors on such examples, drawn to their mean as far as
    that fits them better.

    Copies that `fresh` makes of one stack share what is fitted to the same examples: the second costs nothing.

    Parameters
    ----------
    landmarks : int >= 1, default 2000
        Most examples that the kernel machine learns: time for an object and memory grow with it.

    Attributes
    ----------
    learned : int
        Number of examples that it is fitted to.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> from venn.schedules import Prefix
    >>> model = venn.predictors.InductiveDistribution(NumberStack(), schedule=Prefix(0.7, first=60))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> model.learn_many(X, 3 * X[:, 0])
    >>> bool(4 < model.predict_one([2.0, 0.0]).label < 8)
    True
    """

    classes = ()
    space = Real()
    _fits_by = NumberFit

    landmarks: int = param(integer, 1, default=2000)

    @property
    def ruler(self) -> Ruler:
        """It measures labels by the scores."""
        return SHAPED

    def derive(self) -> None:
        """Forget what copies share."""
        super().derive()
        self.before = (0.0, 1.0, 0.0, 1.0, 1.0)

    def _given(self, X: Floats, labels: Any) -> tuple[Any, ...]:
        return X, labels, self.landmarks


def _further(ends: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper ends of the intervals that hold two others, (n, 2) each."""
    return np.minimum(ends[:, 0], others[:, 0]), np.maximum(ends[:, 1], others[:, 1])


def _score(gaps: Floats, lows: Floats, highs: Floats, labels: Floats) -> float:
    """Return the mean score of (n,) ends of intervals, moved out of gaps, at (n,) labels."""
    lower, upper = ends_between(gaps, lows, highs)
    lower, upper = np.minimum(lower, np.maximum(upper, lows)), np.maximum(upper, np.minimum(lower, highs))
    out = np.maximum(np.maximum(lower - labels, labels - upper), 0.0)
    return float(np.mean(upper - lower + 2 / LEVEL * out))


def _trees(placed: Floats, targets: Floats) -> tuple[Any, Any, Floats, Floats]:
    """Return a forest, boosted trees, their (n, 2) forecasts for examples not seen, and each column's (d,) share."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    n, d = placed.shape
    if n < 2 * FOLDS or not np.ptp(targets) > 0:
        return None, None, np.zeros((n, 2)), np.zeros(d)
    woods = RandomForestRegressor(TREES, max_features=0.5, oob_score=True, random_state=0).fit(placed, targets)

    def boosting() -> Any:
        return HistGradientBoostingRegressor(max_iter=ROUNDS, min_samples_leaf=min(20, 1 + n // 10), random_state=0)

    boosted, unseen = boosting().fit(placed, targets), np.empty(n)
    for k in range(FOLDS):
        away = np.arange(n) % FOLDS == k
        unseen[away] = boosting().fit(placed[~away], targets[~away]).predict(placed[away])
    both = np.column_stack([woods.oob_prediction_, unseen])
    read = (trees_of(one, placed, targets) for one in (woods, boosted))
    return *read, both, woods.feature_importances_


def _chosen(placed: Floats, targets: Floats, unseen: Floats, shares: Floats) -> tuple[float, Floats, Floats]:
    """Return penalty, trees' weights and factors of columns for the smallest errors on examples that are left out."""
    from scipy.optimize import nnls  # commands that fit nothing need not wait for it

    n, best, found = len(targets), np.inf, (USUAL, np.zeros(2), np.ones(placed.shape[1]))
    for power in POWERS if shares.any() else (0.0,):
        factors = np.maximum(shares, 0.01 * shares.mean()) ** power
        factors /= factors.mean()
        columns = np.ascontiguousarray((placed * factors).T)
        values, vectors = np.linalg.eigh(kernel_rows(columns, columns.T))
        for C in PENALTIES:
            inverse = (vectors / (np.maximum(values, 0.0) + 1 / C)) @ vectors.T
            off = np.column_stack([_ridge(inverse, one)[2] for one in (targets, *unseen.T)])
            weights = nnls(off[:, 1:], off[:, 0])[0]
            lost = float(np.mean((off[:, 0] - off[:, 1:] @ weights) ** 2))
            cost = 0.5 * n * np.log(max(lost, 1e-30)) + 0.5 * (np.log(C / USUAL) / APART) ** 2
            if cost < best:
                best, found = cost, (C, weights, factors)
    return found


def _inverse(gram: Floats, C: float) -> Floats:
    """Return the inverse of the kernel of m landmarks with a ridge."""
    return cho_solve(cho_factor(gram + np.eye(len(gram)) / C, lower=True), np.eye(len(gram)))


def _ridge(inverse: Floats, targets: Floats) -> tuple[Floats, float, Floats]:
    """Return coefficients (m,), the constant, and (m,) errors for each example by the machine without it."""
    sums = inverse.sum(axis=0)
    total = sums.sum()
    base = float(sums @ targets / total)
    coefficients = inverse @ targets - sums * base
    left = np.diag(inverse) - sums**2 / total
    with np.errstate(divide="ignore", invalid="ignore"):
        off = coefficients / left
    return coefficients, base, np.where(np.isfinite(off), off, 0.0)
