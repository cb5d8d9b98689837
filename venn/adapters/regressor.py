"""For scikit-learn: a regressor with predictive distributions over exact kernel ridge regression."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin

from venn.adapters.checks import HoldsPredictor, example_weights, refuse_fractions, seed_of, whole
from venn.machines.kernel_ridge import KernelRidge
from venn.machines.kernels import Kernel, MultiscaleLaplacian, fitted_to
from venn.machines.scale import FIRST, Scale
from venn.parameters import integer, share
from venn.prediction import Floats, significance
from venn.predictors.distribution import ConformalDistribution
from venn.turns import turn_of

SHARE = 5  # of the examples that are fitted one in so many fixes the scale


class ConformalRegressor(HoldsPredictor, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression with calibrated predictive distributions, for scikit-learn.

    Each new object joins the training examples; the rank of its studentised residual, as a function of its label, is a
    distribution function. `predict` gives medians, `predict_interval` intervals, `predict_quantile` quantiles,
    `predict_cdf` probabilities.

    What is proved, for exchangeable examples and objects, and a kernel chosen without looking at them: an interval at
    alpha misses its label with probability at most alpha. Objects predicted between two updates share one bag: their
    errors are not independent.

    Parameters
    ----------
    kernel : Kernel, optional
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
        May be taken from here into a `Panel` or a `Monitor`'s loop.
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
    All examples are kept, in memory that grows with the square of their number; predicting one object costs about as
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
    """

    predictor_: ConformalDistribution

    def __init__(
        self, kernel: Kernel | None = None, C: float = 10.0, *, alpha: float = 0.1, first: int | None = None,
        seed: int = 0, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.C = C
        self.alpha = alpha
        self.first = first
        self.seed = seed
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, and learn these examples one after the other.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
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

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return self._learn(X, y, sample_weight, not hasattr(self, "predictor_"), False)

    def _learn(self, X: Any, y: Any, sample_weight: Any, anew: bool, complete: bool) -> Self:
        with turn_of(self):
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
        return self

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

    def predict_interval(self, X: Any, alpha: float | None = None) -> Floats:
        """Return (n, 2) ends of the intervals; infinite where there are fewer than 2 / alpha - 1 examples.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        alpha : float in [0, 1], optional
            Used instead of the regressor's own.
        """
        level = significance(self.alpha if alpha is None else alpha)
        return self._ask(X, lambda prediction: prediction.interval(level))

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
