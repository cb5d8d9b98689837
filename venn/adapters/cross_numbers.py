"""Trains regressors on folds and calibrates by their held-out answers: predictions of numbers for any objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_is_fitted

from venn.distribution import NestedIntervals, PredictiveDistribution
from venn.machines.rulers import LOCATION_SCALE, QuantileScale, Ruler
from venn.machines.tables import unwrapped
from venn.prediction import ERROR_RATE, NOTHING, Floats
from venn.predictors.distribution_inductive import Residuals, Strangeness
from venn.turns import TakesTurns, turn_of

CELLS = 2_000_000  # critical points in memory at a time
LEAST = 0.1  # spreads and widths are at least this share of the usual one
# Parameters that make a regressor one of a quantile, by the name of its class.
AT_LEVEL: dict[str, tuple[dict[str, Any], str]] = {
    "HistGradientBoostingRegressor": ({"loss": "quantile"}, "quantile"),
    "GradientBoostingRegressor": ({"loss": "quantile"}, "alpha"),
    "QuantileRegressor": ({}, "quantile"),
    "LGBMRegressor": ({"objective": "quantile"}, "alpha"),
    "XGBRegressor": ({"objective": "reg:quantileerror"}, "quantile_alpha"),
}
FORESTS = frozenset({
    "RandomForestRegressor", "ExtraTreesRegressor", "DecisionTreeRegressor", "ExtraTreeRegressor",
})  # fmt: skip


@dataclass(eq=False, repr=False)
class LeafQuantiles(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Quantiles of the labels in the leaves that an object falls into: a quantile regression forest.

    Each tree gives the labels of the object's leaf the weight 1 over their number; the quantile at a level is the
    smallest label with that share of the weight.

    Parameters
    ----------
    forest : forest or tree of scikit-learn
        It is not trained itself; a copy is.
    levels : sequence of m floats

    References
    ----------
    Meinshausen (2006), "Quantile regression forests".

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> model = LeafQuantiles(DecisionTreeRegressor(max_depth=1), (0.2, 0.8))
    >>> model.fit([[0.0], [0.1], [0.2], [1.0], [1.1]], [0.0, 1.0, 2.0, 9.0, 11.0]).predict([[0.1], [1.2]])
    array([[ 0.,  2.],
           [ 9., 11.]])
    """

    forest: Any
    levels: Sequence[float]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a copy of the forest, and keep which labels are in which leaf."""
        self.forest_ = clone(self.forest).fit(X, y, sample_weight)
        self._labels = np.asarray(y, np.float64)
        self._counts = np.ones(len(self._labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        self._inside = []
        for leaves in self._leaves(X).T:
            order = np.argsort(leaves, kind="stable")
            names, starts = np.unique(leaves[order], return_index=True)
            parts = np.split(order, starts[1:])
            self._inside.append(dict(zip(names.tolist(), parts, strict=True)))
        for name in "n_features_in_", "feature_names_in_":
            if hasattr(self.forest_, name):
                setattr(self, name, getattr(self.forest_, name))
        return self

    def _leaves(self, X: Any) -> Any:
        leaves = self.forest_.apply(X)
        return leaves.reshape(len(leaves), -1)

    def predict(self, X: Any) -> Floats:
        """Return the (n, m) quantiles."""
        check_is_fitted(self, "forest_")
        found = np.empty((X.shape[0] if hasattr(X, "shape") else len(X), len(self.levels)))
        for quantiles, leaves in zip(found, self._leaves(X).tolist(), strict=True):
            parts = [inside[leaf] for inside, leaf in zip(self._inside, leaves, strict=True)]
            counts = [self._counts[part] for part in parts]
            labels = self._labels[np.concatenate(parts)]
            weights = np.concatenate([count / count.sum() for count in counts]) / len(parts)
            order = np.argsort(labels, kind="stable")
            shares = np.cumsum(weights[order])
            places = np.searchsorted(shares, np.array(self.levels) - 1e-9)
            quantiles[:] = labels[order][np.minimum(places, len(labels) - 1)]
        return found


def at_levels(estimator: Any, levels: Sequence[float]) -> list[Any]:
    """Return unfitted copies of a regressor that answer its quantiles: one for each level, or one for all.

    Raises
    ------
    TypeError
        Nobody knows how to make it one of quantiles.
    """
    last, path = estimator, ""
    while isinstance(getattr(last, "steps", None), list):
        path, last = f"{path}{last.steps[-1][0]}__", last.steps[-1][1]
    name = type(last).__name__
    if name in AT_LEVEL:
        fixed, of_level = AT_LEVEL[name]
        parameters = [{path + key: value for key, value in (fixed | {of_level: q}).items()} for q in levels]
        return [clone(estimator).set_params(**one) for one in parameters]
    if name in FORESTS:
        leaves = LeafQuantiles(clone(last), tuple(levels))
        return [clone(estimator).set_params(**{path[:-2]: leaves}) if path else leaves]
    raise TypeError(
        f"estimator must be one of quantiles with method='cqr' ({', '.join(AT_LEVEL)}, a forest, or a pipeline that "
        f"ends in one; for others fit a model of each quantile and take cv='prefit'), got {estimator!r}"
    )


class Answered:
    """Makes one scorer of fitted models: a column of answers for each, and the ruler that reads them."""

    def __init__(self, models: Sequence[Any], ruler: Ruler, least: float | None) -> None:
        self.models, self.ruler, self._least = [unwrapped(one) for one in models], ruler, least

    @property
    def first(self) -> Any:
        """The first model, which knows the columns."""
        return self.models[0]

    def __call__(self, X: Any) -> Floats:
        """Return (n, c) scores, or say what is wrong with the answers."""
        answers = [np.asarray(model.predict(X), np.float64) for model in self.models]
        flat = [one[:, 0] if one.ndim == 2 and one.shape[1] == 1 else one for one in answers]
        scores: Floats = np.column_stack(flat)
        if not np.isfinite(scores).all():
            i = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(f"forecasts must be finite, got {scores[i].tolist()} at row {i}")
        if isinstance(self.ruler, QuantileScale):
            m = len(self.ruler.levels)
            if scores.shape[1] != m:
                raise ValueError(f"quantiles must be ({len(scores)}, {m}), got shape {scores.shape}")
            return np.sort(scores, axis=1)
        if scores.shape[1] != len(self.models):
            raise ValueError(f"forecasts must be one number for each row, got shape {answers[0].shape}")
        if self._least is not None:
            scores[:, 1] = np.maximum(scores[:, 1], self._least)
        return scores


def with_spread(estimator: Any, spread: Any, X: Any, y: Floats, fit_params: dict[str, Any]) -> Answered:
    """Train a forecast, and a model of how far labels lie from forecasts that did not see them."""
    forecast = clone(estimator).fit(X, y, **fit_params)
    folds = min(3, len(y))
    if folds < 2:
        return Answered([forecast], LOCATION_SCALE, None)
    away = np.abs(y - np.reshape(cross_val_predict(clone(estimator), X, y, cv=folds), -1))
    usual = float(np.median(away)) or float(away.mean())
    if not usual:
        return Answered([forecast], LOCATION_SCALE, None)
    model = clone(estimator if spread is None else spread).fit(X, away, **fit_params)
    return Answered([forecast, model], LOCATION_SCALE, LEAST * usual)


def with_quantiles(
    estimator: Any, levels: tuple[float, ...], X: Any, y: Floats, fit_params: dict[str, Any]
) -> Answered:
    """Train models of the quantiles at these levels."""
    models = [model.fit(X, y, **fit_params) for model in at_levels(estimator, levels)]
    scores = Answered(models, QuantileScale(levels, 0.0), None)(X)
    least = LEAST * float(np.median(scores[:, -1] - scores[:, 0]))
    return Answered(models, QuantileScale(levels, least), None)


class NumbersFold:
    """A scorer, and the labels of examples that it was not trained on, measured by it."""

    def __init__(self, scorer: Answered) -> None:
        self.scorer = scorer
        self.levels, self.strange = Residuals(scorer.ruler), Strangeness(scorer.ruler)

    def add(self, scores: Floats, y: Floats) -> None:
        """Take in calibration examples."""
        self.levels.add(scores, y)
        self.strange.add(scores, y)


class CrossNumbers(TakesTurns):
    """Predictions by all folds together: they pool the folds' critical points at the new object (cross-conformal, CV+).

    With a single fold it is an inductive predictor, with its theorem.
    """

    def __init__(self, folds: Sequence[NumbersFold]) -> None:
        self.folds = list(folds)
        self.guaranteed = ERROR_RATE if len(self.folds) == 1 else NOTHING

    def __len__(self) -> int:
        """Number of calibration examples of all folds."""
        return sum(len(fold.levels.state["residuals"]) for fold in self.folds)

    def add(self, X: Any, y: Floats) -> None:
        """Add examples that trained no model: they calibrate in every fold."""
        scores = [fold.scorer(X) for fold in self.folds]
        with turn_of(self):
            for fold, own in zip(self.folds, scores, strict=True):
                fold.add(own, y)

    def _chunks(self, X: Any, reader: str) -> Iterator[list[Any]]:
        """Yield the folds' blocks of predictions for some objects after the other."""
        scores = [fold.scorer(X) for fold in self.folds]
        with turn_of(self):
            size = max(CELLS // max(len(self), 1), 1)
            for start in range(0, len(scores[0]), size):
                part = slice(start, start + size)
                yield [getattr(fold, reader).predict(own[part]) for fold, own in zip(self.folds, scores, strict=True)]

    def distributions(self, X: Any) -> Iterator[PredictiveDistribution]:
        """Yield the predictive distribution of each object."""
        for blocks in self._chunks(X, "levels"):
            if len(blocks) == 1:
                yield from (blocks[0][i] for i in range(len(blocks[0])))
                continue
            points, grids = zip(*(block.points() for block in blocks), strict=True)
            together, grid = np.sort(np.hstack(points), axis=1), np.max(grids, axis=0).tolist()
            middles = np.mean([block.ruler.middle(block.scores) for block in blocks], axis=0).tolist()
            for own, step, middle in zip(together, grid, middles, strict=True):
                yield (
                    PredictiveDistribution(own, origin=middle, grid=step, guaranteed=NOTHING)
                    if step == 0
                    else (PredictiveDistribution(own, grid=step, guaranteed=NOTHING))
                )

    def intervals(self, X: Any) -> Iterator[NestedIntervals]:
        """Yield the nested intervals of each object."""
        for blocks in self._chunks(X, "strange"):
            if len(blocks) == 1:
                yield from (blocks[0][i] for i in range(len(blocks[0])))
                continue
            lower, upper, middles, grids = zip(*(block.ends() for block in blocks), strict=True)
            middle, grid = np.median(middles, axis=0), np.max(grids, axis=0)
            low, high = np.hstack(lower), np.hstack(upper)
            for i in range(len(low)):
                holds = low[i] <= high[i]
                own = np.concatenate([
                    np.sort(np.minimum(low[i, holds], middle[i])), np.sort(np.maximum(high[i, holds], middle[i]))
                ])  # fmt: skip
                n, k = 2 * len(holds), int(holds.sum())
                places = np.concatenate([np.arange(1, k + 1), np.arange(n - k + 1, n + 1)])
                yield NestedIntervals(own, float(middle[i]), 0.5, places, n, grid=float(grid[i]), guaranteed=NOTHING)
