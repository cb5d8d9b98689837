"""Several kinds of regressors in one scorer, with a spread: what inductive predictors of numbers train."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from venn._compiled.rows import landmark_scores
from venn.labels import Real
from venn.machines.ahead import Fits
from venn.machines.frozen import clean_row
from venn.machines.kernels import MultiscaleLaplacian, rate_of
from venn.machines.machine import NotConverged
from venn.machines.scale import ColumnScale, held_scale, middle
from venn.machines.stack import FARTHEST, dense, kernel_rows
from venn.machines.trees import FlatTrees
from venn.parameters import integer
from venn.prediction import Floats
from venn.saved import Saved, held_finite, held_float, held_int, saved

KERNEL = MultiscaleLaplacian()
PENALTIES = (0.1, 1.0, 10.0, 100.0)  # of the kernel machine
USUAL, APART = 10.0, 1.5  # where the penalty is as long as little speaks against it, in logarithms so far around
POWERS = (0.0, 0.5, 1.0)  # of a column's share in the forest's splits, by which the kernel stretches the column
TRIED = 600  # landmarks by which penalty, powers and weights are chosen
TREES, ROUNDS = 100, 100  # of each forest, and of boosting
FOLDS = 3  # what boosted trees say of an example is by those fitted without its third
LEAF = 8  # examples at least in a leaf of the forest of spreads
BLENDS = np.array([0.1, 0.3, 0.5, 0.7, 1.0])  # shares of the mean in the spread


@saved
class NumberStack(Saved):
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

    def __init__(self, landmarks: int = 2000) -> None:
        self.landmarks = integer("landmarks", landmarks, 1)
        self.learned = 0
        self.features: int | None = None
        self.fit: NumberFit | None = None
        self.fits = Fits()

    @property
    def state(self) -> dict[str, Any]:
        """What is fitted."""
        return {"learned": self.learned, "features": self.features, "fit": self.fit}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it is not a possible one."""
        super().restore(state)
        self.learned, self.fit = held_int("learned", state["learned"]), state["fit"]
        self.features = None if state["features"] is None else held_int("features", state["features"], 1)
        if not isinstance(self.fit, NumberFit | None) or (self.fit is None) != (self.learned == 0):
            raise ValueError(f"fit must be what {self.learned} examples are fitted by, got {self.fit!r}")
        if self.fit is not None and self.fit.features != self.features:
            raise ValueError(f"fit must be of {self.features} features, got {self.fit.features}")

    def fresh(self) -> Self:
        """Return one that is fitted to nothing."""
        new = type(self)(self.landmarks)
        new.fits = self.fits
        return new

    def fit_rows(self, X: Any, labels: Floats) -> None:
        """Fit all parts to (n, d) objects and (n,) labels, n >= 1, and forget what was fitted before.

        Raises
        ------
        NotConverged
            A part cannot be fitted.
        """
        X = dense(X)
        found = self.fits.to(NumberFit.of, X, labels, self.landmarks)[0]
        self.fit, self.learned, self.features = found, len(X), X.shape[1]

    def expect_rows(self, X: Any, labels: Floats) -> None:
        """Let the fit to these examples begin, in another process: no answer depends on it."""
        self.fits.begin(NumberFit.of, dense(X), labels, self.landmarks)

    def scores(self, x: Any) -> Floats:
        """Return the (2,) forecast and spread for one object; 0 and 1 before anything is fitted."""
        return self.score_rows(clean_row(x, self.features, None, False))[0]

    def score_rows(self, rows: Any) -> Floats:
        """Return the (n, 2) forecasts and spreads for n objects."""
        if self.fit is None:
            return np.tile([0.0, 1.0], (len(rows), 1))
        return self.fit.scores(rows)


@saved
class NumberFit(Saved):
    """What a stack of numbers has fitted: `NumberFit.of` makes one.

    Parameters
    ----------
    scale : (3, d) float64
        See `ColumnScale.state`.
    forest, boosted, errors : FlatTrees or None
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
        A label is center + unit times what the parts say.
    spread, blend : float
        Mean spread in units, and its share in each.
    """

    def __init__(
        self, scale: Floats, forest: Any, boosted: Any, errors: Any, factors: Floats, columns: Floats,
        coefficients: Floats, base: float, weights: Floats, C: float, center: float, unit: float, spread: float,
        blend: float,
    ) -> None:  # fmt: skip
        self.scale, self.factors, self.columns = scale, factors, columns
        self.coefficients, self.base = coefficients, base
        self.forest: FlatTrees | None = forest
        self.boosted: FlatTrees | None = boosted
        self.errors: FlatTrees | None = errors
        self.weights, self.C, self.center, self.unit = weights, C, center, unit
        self.spread, self.blend = spread, blend
        self._scale: ColumnScale = held_scale(scale)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a fit of these parts, or raise a ValueError if they do not fit together."""
        made = super().made_of(parameters)
        d, m = made.features, np.shape(made.columns)[-1]
        held_finite("factors", made.factors, (d,))
        held_finite("columns", made.columns, (d, m))
        held_finite("coefficients", made.coefficients, (m,))
        held_finite("weights", made.weights, (2,))
        for name in ("base", "center"):
            held_float(name, getattr(made, name))
        for name in ("C", "unit", "spread", "blend"):
            if not held_float(name, getattr(made, name)) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(made, name)!r}")
        for trees in (made.forest, made.boosted, made.errors):
            if not isinstance(trees, FlatTrees | None) or (trees is not None and trees.features != d):
                raise ValueError(f"forest, boosted and errors must be trees of {d} features, or None, got {trees!r}")
        return made

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.scale.shape[-1])

    @classmethod
    def of(cls, X: Floats, labels: Floats, landmarks: int) -> tuple[Self, Floats, Floats]:
        """Return what is fitted to n examples, and what such trees and spreads say of each that they have not seen.

        Returns
        -------
        NumberFit, (n,) offsets, (n,) spreads
            As of the method `around`.
        """
        try:
            return cls._fitted(X, labels, landmarks)
        except (ValueError, np.linalg.LinAlgError) as error:
            raise NotConverged(f"the stack must be fitted to {len(X)} examples: {error}") from error

    @classmethod
    def _fitted(cls, X: Floats, labels: Floats, landmarks: int) -> tuple[Self, Floats, Floats]:
        scale, center = middle(X), float(np.median(labels))
        peak = float(np.abs(labels - center).max()) or 1.0  # squares of shares neither overflow nor vanish
        unit = float(np.sqrt(np.mean(((labels - center) / peak) ** 2)) * peak) or 1.0
        targets, placed = (labels - center) / unit, scale.place(X, FARTHEST)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few examples: some in no tree's rest
            forest, boosted, unseen, shares = _trees(placed, targets)
        few, first = slice(0, min(landmarks, TRIED)), slice(0, landmarks)
        C, weights, factors = _chosen(placed[few], targets[few], unseen[few], shares)
        columns = np.ascontiguousarray((placed[first] * factors).T)
        left = targets - unseen @ weights
        coefficients, base, off = _ridge(_inverse(kernel_rows(columns, columns.T), C), left[first])
        made = cls(
            scale.state, forest, boosted, None, factors, columns, coefficients, base, weights, C, center, unit, 1.0, 1.0
        )
        if len(X) > landmarks:
            off = np.append(off, left[landmarks:] - made._kernel(placed[landmarks:]))
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spreads = made._spread_by(placed, np.abs(off))
        return made, center + unit * (unseen @ weights), unit * spreads

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
        self.errors = FlatTrees.of(woods) if self.blend < 1 else None
        return each[int(np.flatnonzero(self.blend == BLENDS)[0])]

    def place(self, rows: Any) -> Floats:
        """Return (n, d) objects on the scale of the examples."""
        return np.ascontiguousarray(self._scale.place(dense(rows), FARTHEST))

    def around(self, placed: Floats) -> tuple[Floats, Floats]:
        """Return for (n, d) scaled objects what the trees say in labels, and the spread."""
        said, spreads = np.zeros(len(placed)), np.full(len(placed), self.spread)
        for weight, trees in zip(self.weights.tolist(), (self.forest, self.boosted), strict=True):
            if trees is not None and weight:
                said += weight * trees.predict(placed)
        if self.errors is not None:
            spreads = self.blend * self.spread + (1 - self.blend) * self.errors.predict(placed)
        return self.center + self.unit * said, self.unit * spreads

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

    def scores(self, rows: Any) -> Floats:
        """Return the (n, 2) forecasts and spreads for n objects."""
        placed = self.place(rows)
        said, spreads = self.around(placed)
        return np.column_stack([said + self.unit * self._kernel(placed), spreads])


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
    return FlatTrees.of(woods), FlatTrees.of(boosted), both, woods.feature_importances_


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
    found: Floats = cho_solve(cho_factor(gram + np.eye(len(gram)) / C, lower=True), np.eye(len(gram)))
    return found


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
