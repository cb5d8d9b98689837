"""For scikit-learn: checks that all estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from venn.prediction import Floats

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
