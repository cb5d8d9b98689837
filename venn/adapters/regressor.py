"""For scikit-learn: a regressor with predictive distributions, over exact kernel ridge regression or any regressor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from venn.adapters import checks, cross_numbers
from venn.adapters.checks import HoldsPredictor, example_weights, refuse_fractions, seed_of, whole
from venn.adapters.cross_fitting import disjoint_splits
from venn.adapters.cross_numbers import Answered, CrossNumbers, NumbersFold
from venn.distribution import PredictiveDistribution
from venn.labels import Real
from venn.machines.kernel_ridge import KernelRidge
from venn.machines.kernels import Kernel, MultiscaleLaplacian, fitted_to
from venn.machines.rulers import LOCATION_SCALE, QuantileScale
from venn.machines.scale import FIRST, Scale
from venn.parameters import has_methods, integer, one_of, share
from venn.prediction import Floats, significance
from venn.predictors.distribution import ConformalDistribution
from venn.turns import turn_of

SHARE = 5  # of the examples that are fitted one in so many fixes the scale


@dataclass(eq=False, repr=False)
class ConformalRegressor(HoldsPredictor, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrated predictive distributions of any regressor, or of exact kernel ridge regression, for scikit-learn.

    `predict` gives medians, `predict_interval` intervals, `predict_quantile` quantiles, `predict_cdf` probabilities.

    Without an `estimator` it is kernel ridge regression, and all examples train and calibrate: each new object joins
    them; the rank of its studentised residual, as a function of its label, is a distribution function. What is proved,
    for exchangeable examples and objects, and a kernel chosen without looking at them: an interval at alpha misses its
    label with probability at most alpha. Objects predicted between two updates share one bag: their errors are not
    independent.

    With an `estimator` examples calibrate that did not train it. For one split drawn without looking at the examples,
    or a fitted estimator, the same is proved. Over several folds, the default, the points of all folds are put together
    (cross-conformal, CV+): a heuristic whose intervals miss about as often as they say.

    Parameters
    ----------
    estimator : regressor, optional
        Any of scikit-learn's kind, pipelines and searches too. It is not trained itself; its copies are.
    method : "spread" or "cqr", default "spread"
        "spread": a second model predicts how far labels lie from forecasts that did not see them; intervals are wide
        where it is large. "cqr": models of the quantiles at alpha / 2, 1/2 and 1 - alpha / 2, and intervals by
        conformalized quantile regression. For that the estimator is one that scikit-learn, LightGBM or XGBoost can fit
        to a quantile, or a forest, whose leaves answer; alone or last in a pipeline. Intervals at other levels than
        alpha are as valid, but not as narrow.
    spread : regressor, optional
        What predicts the spread, by default one like the estimator; with cv="prefit" it is fitted, and by default there
        is none.
    cv : int, splitter, iterable of (training, calibration) indices, or "prefit", default 5
        As in `sklearn.model_selection.cross_val_score`. "prefit": the estimator is fitted, and all examples calibrate;
        for "cqr" it is a list of three fitted regressors, one for each quantile, or answers (n, 3) of them. So it is
        with a `FrozenEstimator`.
    n_jobs : int, optional
        How many folds are trained at a time.
    kernel : Kernel, optional
        Of kernel ridge regression; so are C, first, seed and random_state, which do nothing with an estimator.
        By default `MultiscaleLaplacian()`, of three widths around 1 / d for d features.
    C : float > 0, default 10
        Weight of the squared errors; 1 / C is the ridge.
    alpha : float in [0, 1], default 0.1
        Significance level of `predict_interval`.
    first : int >= 2, or 0, optional
        Number of training examples whose objects fix the scale of the columns. They are learned like all others, but
        no interval ranks them. By default a fifth of those that are fitted, at most 30; 30 where `partial_fit` comes
        first, or fewer than 10 are fitted: until then all count, on the scale of all. 0: features are taken as they
        are.
    seed : int >= 0, default 0
        Of the random numbers that break ties.
    random_state : int, RandomState or None, optional
        scikit-learn's name for the seed: used in place of `seed` where it is given.

    Attributes
    ----------
    predictor_ : ConformalDistribution
        Without an estimator. May be taken from here into a `Panel` or a `Monitor`'s loop.
    n_calibration_ : int
        Number of examples that calibrate, in all folds.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Raises
    ------
    ValueError
        By `fit`: C that is not a finite number above 0, alpha outside [0, 1], objects or labels that are not finite.
    NotFittedError
        By `predict` and the like, before `fit`.

    Notes
    -----
    Without an estimator all examples are kept, in memory that grows with the square of their number; predicting one
    object costs about as
    much as learning one example. Beyond some thousands use `InductiveDistribution`. Weights other than 1, and a scaler
    before it that was fitted to the training examples, void the theorem; it needs none, as it scales by itself.

    The order of the rows matters a little: the first of them fix the scale. So scikit-learn's check that a weight is as
    good as so many rows (`check_sample_weight_equivalence`), which compares two orders, does not hold, except with
    `first=0`.

    References
    ----------
    Vovk, Petej, Nouretdinov, Manokhin & Gammerman (2020); Burnaev & Nazarov (2016).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConformalRegressor(C=1.0).fit(X[:200], y[:200])
    >>> intervals = model.predict_interval(X[200:300])
    >>> inside = (intervals[:, 0] <= y[200:300]) & (y[200:300] <= intervals[:, 1])
    >>> intervals.shape, bool(inside.mean() > 0.8)
    ((100, 2), True)

    Around a regressor of your own, at two levels:

    >>> from sklearn.ensemble import RandomForestRegressor
    >>> forest = RandomForestRegressor(20, min_samples_leaf=5, random_state=0)
    >>> model = ConformalRegressor(forest, method="cqr", cv=3).fit(X[:200], y[:200])
    >>> model.predict_interval(X[200:300], [0.1, 0.2]).shape
    (100, 2, 2)
    """

    estimator: Any = None
    _: KW_ONLY
    method: str = "spread"
    spread: Any = None
    cv: Any = 5
    n_jobs: int | None = None
    kernel: Kernel | None = None
    C: float = 10.0
    alpha: float = 0.1
    first: int | None = None
    seed: int = 0
    random_state: Any = None

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {} if self.estimator is None else {"allow_nan": checks.takes(self.estimator, "allow_nan")}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            for what in ("sparse", "allow_nan", "string"):
                setattr(tags.input_tags, what, checks.takes(self.estimator, what))
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "predictor_") or hasattr(self, "_cross")

    @property
    def n_calibration_(self) -> int:
        """Number of examples that calibrate, in all folds."""
        check_is_fitted(self)
        return len(self._cross) if hasattr(self, "_cross") else self.predictor_.machine.n

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, and learn these examples: train and calibrate; with a fitted estimator only calibrate.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
            With an estimator, objects that it takes; here and below.
        y : (n,) finite numbers
        sample_weight : (n,) whole numbers >= 0, optional
            An example of weight w is learned w times. With any weight other than 1 nothing is proved.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            A parameter, X, y or weights are not as described. What was fitted before stays; the same below.
        NotConverged
            The machine misses its tolerance: see `KernelRidge`.
        """
        return self._learn(X, y, sample_weight, True, True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more examples; with `first` given, the bag is the same as if all had been fitted at once.

        With an estimator they calibrate in every fold, and no model is trained again, except by the first call.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return self._learn(X, y, sample_weight, not self.__sklearn_is_fitted__(), False)

    def _learn(self, X: Any, y: Any, sample_weight: Any, anew: bool, complete: bool) -> Self:
        with turn_of(self):
            if self.estimator is not None:
                return self._calibrate(X, y, sample_weight, anew)
            return self._take_in(X, y, sample_weight, anew, complete)

    @whole
    def _take_in(self, X: Any, y: Any, sample_weight: Any, anew: bool, complete: bool) -> Self:
        X, y = self._validated(X, y, reset=anew, y_numeric=True)
        weights = example_weights(sample_weight, len(y))
        refuse_fractions(weights, "for conformal predictors, which count examples")
        share("alpha", self.alpha)
        if anew:
            machine = self._machine(X, int(weights.sum()) if complete else 0)
            predictor = ConformalDistribution(machine, seed=seed_of(self.seed, self.random_state))
        else:
            predictor = deepcopy(self.predictor_)
        for i in np.repeat(np.arange(len(y)), weights.astype(np.int64)).tolist():
            predictor.learn_one(X[i : i + 1] if issparse(X) else X[i], float(y[i]))
        self.predictor_ = predictor
        self.__dict__.pop("_cross", None)
        return self

    @whole
    def _calibrate(self, X: Any, y: Any, sample_weight: Any, anew: bool) -> Self:
        if y is None:
            raise ValueError("ConformalRegressor requires y to be passed, but the target y is None")
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        y = np.asarray(Real().encode_many(y.tolist()), np.float64)
        weights = example_weights(sample_weight, len(y))
        refuse_fractions(weights, "for conformal predictors, which count examples")
        one_of("method", self.method, ("spread", "cqr"))
        if not anew:
            cross = deepcopy(self._cross)
            cross.add(*_repeated(X, y, weights, np.arange(len(y))))
        else:
            cross = CrossNumbers(self._folds(X, y, weights))
            self.__dict__.pop("predictor_", None)
            for name in "n_features_in_", "feature_names_in_":
                self.__dict__.pop(name, None)
                found = getattr(cross.folds[0].scorer.first, name, None)
                if found is not None:
                    setattr(self, name, found)
        self._cross: CrossNumbers = cross
        return self

    @property
    def _levels(self) -> tuple[float, ...]:
        """The levels of the quantiles of "cqr"."""
        alpha = share("alpha", self.alpha)
        if self.method == "cqr" and not 0 < alpha < 1:
            raise ValueError(f"alpha must be in (0, 1) with method='cqr', got {self.alpha!r}")
        return (alpha / 2, 0.5, 1 - alpha / 2)

    def _folds(self, X: Any, y: Floats, weights: Floats) -> list[NumbersFold]:
        cqr, levels = self.method == "cqr", self._levels
        ready = type(self.estimator).__name__ == "FrozenEstimator" or (isinstance(self.cv, str) and self.cv == "prefit")
        if not (ready and cqr and isinstance(self.estimator, Sequence)) and not has_methods(self.estimator, "predict"):
            raise TypeError(f"estimator must be a regressor, with methods 'fit' and 'predict', got {self.estimator!r}")
        if ready:
            models = list(self.estimator) if isinstance(self.estimator, Sequence) else [self.estimator]
            if not cqr and self.spread is not None:
                models.append(self.spread)
            least = np.finfo(np.float64).tiny if len(models) == 2 else None
            fold = NumbersFold(
                Answered(models, QuantileScale(levels, 0.0) if cqr else LOCATION_SCALE, None if cqr else least)
            )
            own_X, own_y = _repeated(X, y, weights, np.arange(len(y)))
            fold.add(fold.scorer(own_X), own_y)
            return [fold]

        def trained(training: Any, calibration: Any) -> NumbersFold:
            own_X, own_y = _safe_indexing(X, training), y[training]
            options = {}
            if (weights[training] != 1).any():
                if has_fit_parameter(self.estimator, "sample_weight"):
                    options = {"sample_weight": weights[training]}
                else:
                    own_X, own_y = _repeated(X, y, weights, training)
            if cqr:
                scorer = cross_numbers.with_quantiles(self.estimator, levels, own_X, own_y, options)
            else:
                scorer = cross_numbers.with_spread(self.estimator, self.spread, own_X, own_y, options)
            fold = NumbersFold(scorer)
            held_X, held_y = _repeated(X, y, weights, calibration)
            fold.add(fold.scorer(held_X), held_y)
            return fold

        splits = list(disjoint_splits(self.cv, X, y, weights > 0, classes=False))
        return Parallel(n_jobs=self.n_jobs)(delayed(trained)(*split) for split in splits)

    def _ask(self, X: Any, read: Callable[[Any], Any], intervals: bool = False) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "_cross"):
            return super()._ask(X, read)
        nested = intervals and isinstance(self._cross.folds[0].scorer.ruler, QuantileScale)
        said = self._cross.intervals(X) if nested else self._cross.distributions(X)
        return np.array([read(prediction) for prediction in said])

    def _machine(self, X: Any, n: int) -> KernelRidge:
        """Return a machine for such objects, n of them; 0 if nobody knows how many."""
        usual = n // SHARE if 2 <= n // SHARE < FIRST else FIRST
        first = usual if self.first is None else self.first
        kernel = MultiscaleLaplacian() if self.kernel is None else self.kernel
        if integer("first", first, 0) == 0:
            return KernelRidge(fitted_to(kernel, X), self.C)
        of_variance_1 = np.repeat([[-1.0], [1.0]], X.shape[1], axis=1)
        return KernelRidge(fitted_to(kernel, of_variance_1), self.C, scale=Scale(first, teach=True))

    def predict(self, X: Any) -> Floats:
        """Return (n,) medians of the predictive distributions.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        return self._ask(X, lambda prediction: prediction.label)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination of the medians: 1 at best, 0 for a constant forecast.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        y : (n,) finite numbers
        sample_weight : (n,) finite numbers, optional
        """
        return float(super().score(X, y, sample_weight))

    def predict_interval(self, X: Any, alpha: Any = None) -> Floats:
        """Return (n, 2) ends of the intervals; infinite where there are fewer than 2 / alpha - 1 examples.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        alpha : float in [0, 1] or sequence of k of them, optional
            Used instead of the regressor's own. Of several, the intervals are (n, k, 2).
        """
        given = self.alpha if alpha is None else alpha
        many = np.ndim(given) > 0
        levels = [significance(one) for one in (np.asarray(given).tolist() if many else [given])]
        found = self._ask(X, lambda prediction: [prediction.interval(level) for level in levels], intervals=True)
        return found if many else found[:, 0]

    def predict_distribution(self, X: Any) -> list[PredictiveDistribution]:
        """Return the predictive distributions of n objects, to ask each what you like.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        found: list[PredictiveDistribution] = []
        self._ask(X, lambda prediction: found.append(prediction) or 0.0)  # type: ignore[func-returns-value]
        return found

    def predict_quantile(self, X: Any, q: Any) -> Floats:
        """Return quantiles: (n,) for one number q in [0, 1], (n, k) for k of them.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        q : float or sequence of k floats
        """
        many = np.ndim(q) > 0
        levels = [share("q", one) for one in (np.asarray(q).tolist() if many else [q])]
        found = self._ask(X, lambda prediction: [prediction.quantile(one) for one in levels])
        return found if many else found[:, 0]

    def predict_cdf(self, X: Any, y: Any) -> Floats:
        """Return probabilities of labels up to y: (n,) for one number for all or (n,) numbers, one for each object.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        y : number, or (n,) numbers

        Raises
        ------
        ValueError
            There are not as many labels as objects, or an object is not as described.
        """
        labels = iter([y] * math.prod(np.shape(X)[:1]) if np.ndim(y) == 0 else np.asarray(y).tolist())
        if np.ndim(y) > 0 and np.shape(y) != np.shape(X)[:1]:
            raise ValueError(f"y must be one number, or one for each of {np.shape(X)[0]} objects, got {y!r}")
        return self._ask(X, lambda prediction: prediction.cdf(next(labels)))


def _repeated(X: Any, y: Floats, weights: Floats, rows: Any) -> tuple[Any, Floats]:
    """Return some of the examples, each as often as its weight says."""
    places = np.repeat(rows, weights[rows].astype(np.int64))
    return _safe_indexing(X, places), y[places]
