"""For scikit-learn: checks that all estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from venn._compiled.hulls import LIMIT
from venn.prediction import TIE, Floats, Label

try:
    from sklearn.utils.validation import validate_data as validate_data
except ImportError:  # scikit-learn < 1.6

    def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Do what the function of later versions does."""
        return estimator._validate_data(X, y, **checks)


def example_weights(sample_weight: Any, n: int) -> Floats:
    """Return (n,) weights, 1 each by default, or say what is wrong with them."""
    if sample_weight is None:
        return np.ones(n)
    w: Floats = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if w.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight for each example, got {w.shape}")
    if (w < 0).any():
        i = int((w < 0).argmax())
        raise ValueError(f"sample_weight must be >= 0, got {w[i]} at {i}")
    if not w.any():
        raise ValueError(f"sample_weight must be > 0 for some example, got zero for all {n}")
    return w


def refuse_fractions(w: Floats, advice: str) -> None:
    """Raise where weights are not whole numbers, or too many: examples are counted."""
    broken = w != np.floor(w)
    if broken.any():
        i = int(broken.argmax())
        raise ValueError(f"sample_weight must hold whole numbers {advice}, got {w[i]} at {i}")
    if w.sum() > LIMIT:
        raise ValueError(f"sample_weight must sum to at most {LIMIT} for Venn methods, got {w.sum():g}")


def label_codes(classes: Any, y: Any) -> Any:
    """Return (n,) positions of labels among the (c,) sorted classes, or say which is not one of them."""
    codes: dict[Label, int] = {label: k for k, label in enumerate(classes.tolist())}
    names = np.asarray(y).tolist()
    for i, label in enumerate(names):
        if label not in codes:
            raise ValueError(
                f"y must be among the classes {list(codes)!r}, got {label!r} at {i}: declare it beforehand, by classes "
                "in the first partial_fit, or fit anew; nothing was learned"
            )
    return np.array([codes[label] for label in names], np.int64)


def declared_classes(classes: Any, *others: Any) -> Any:
    """Return the labels of all these sequences, distinct and in sorted order, or say what is wrong with them."""
    parts = [np.asarray(part) for part in (classes, *others)]
    if any(part.ndim != 1 for part in parts):
        raise ValueError(f"classes must be a sequence of labels, got {classes!r}")
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:
        raise ValueError(
            f"classes must be labels of one kind, numbers or strings, got {[part.dtype for part in parts]}"
        )
    return np.unique(np.concatenate(parts))


def settled(p: Floats) -> Floats:
    """Return (n, c) probabilities of which those that tie for the largest are equal to the last bit."""
    most = p.max(axis=1, keepdims=True)
    return np.where(p >= most - TIE, most, p)


def log_odds(p: Floats) -> Floats:
    """Return what `decision_function` says of (n, c) probabilities in (0, 1): (n,) log(p1 / p0) for two classes.

    For more, (n, c) log(p_k / (1 - p_k)). The order is that of the probabilities: of two classes the sign is exact.
    """
    if p.shape[1] == 2:
        return np.log1p((p[:, 1] - p[:, 0]) / p[:, 0])
    odds: Floats = np.log(p) - np.log1p(-p)
    return odds


class FromProbabilities:
    """Base of classifiers of which all answers follow from `predict_proba`."""

    classes_: Any

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities, in (0, 1)."""
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> Floats:
        """Return (n, c) natural logarithms of `predict_proba`; all are finite.

        Parameters
        ----------
        X : as for `predict_proba`
        """
        log: Floats = np.log(self.predict_proba(X))
        return log

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of `predict_proba`: it is the same forecast on another scale.

        Parameters
        ----------
        X : as for `predict_proba`

        Returns
        -------
        (n,) or (n, c) float64
            For two classes log(p1 / p0), above 0 where the second is predicted; for more log(p_k / (1 - p_k)).
        """
        return log_odds(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """Return (n,) labels: of each object the class of largest `predict_proba`, the first of equal ones.

        Parameters
        ----------
        X : as for `predict_proba`
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
