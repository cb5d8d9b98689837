"""The base of linear classifiers of two classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from venn.adapters.checks import example_weights, validate_data, whole
from venn.prediction import Floats, Label


class Signed(NamedTuple):
    """Examples of two classes with weight > 0.

    `objects` (n, d), `signs` (n,) +1 for the positive class and -1, `weights` (n,) > 0.
    """

    objects: Floats
    signs: Floats
    weights: Floats


class TwoClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers of two classes: it says so to scikit-learn."""

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {"binary_only": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def two_classes(y: Any, weights: Floats | None = None) -> Any:
    """Return the (2,) sorted labels of the examples, of those with weight > 0 if there are weights, or refuse them."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    classes = np.unique(y if weights is None else y[weights > 0])
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}, "
            f"and y must hold 2 classes, got {len(classes)}"
        )
    if len(classes) < 2:
        counted = "" if weights is None else " of examples with weight > 0"
        raise ValueError(f"y must hold 2 classes{counted}, got {len(classes)} class")
    return classes


class TwoClassLinear(TwoClasses):
    """Base of linear classifiers of two classes.

    A subclass has `_train`, and may have a parameter `positive`.

    Attributes
    ----------
    classes_ : (2,) array
        Labels in sorted order.
    positive_ : label
    coef_ : (1, d) array
        Of `decision_function`: coef_ . x + intercept_.
    intercept_ : (1,) array
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.
    """

    positive: Label | None = None

    def _train(self, examples: Signed) -> tuple[Floats, float]:
        """Return coefficients and bias, and set further attributes of the fit."""
        raise NotImplementedError

    @whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TwoClassLinear:
        """Train.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        y : (n,) labels of two classes
        sample_weight : (n,) numbers >= 0, optional
            An example of weight w counts as w equal ones, one of weight 0 does not count.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            A parameter, X, y or weights are not as described. What was fitted before stays; the same below.
        NotConverged
            The solver does not reach its tolerance.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        weights = example_weights(sample_weight, len(X))
        present = weights > 0
        classes = two_classes(y, weights)
        names = classes.tolist()
        if self.positive is not None and self.positive not in names:
            raise ValueError(f"positive must be one of the classes {names!r}, got {self.positive!r}")
        self.classes_ = classes
        self.positive_ = names[1] if self.positive is None else self.positive
        signs = np.where(y[present] == classes[names.index(self.positive_)], 1.0, -1.0)
        coef, bias = self._train(Signed(X[present], signs, weights[present]))
        side = 1.0 if names.index(self.positive_) == 1 else -1.0  # scikit-learn's scores are for classes_[1]
        self.coef_, self.intercept_ = side * coef[None], np.array([side * bias])
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return (n,) scores of n objects, larger for `classes_[1]`.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict(self, X: Any) -> Any:
        """Return (n,) labels: `classes_[1]` for scores above 0, `classes_[0]` below, the positive class at 0.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        f = self.decision_function(X)
        second = f >= 0 if self.positive_ == self.classes_[1] else f > 0
        return self.classes_[second.astype(np.int64)]
