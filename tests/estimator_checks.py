"""scikit-learn's checks of estimators, each once: without those that another of them contains."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

CONTAINED = {"check_estimator_sparse_matrix"}  # what is done to the other kind, check_estimator_sparse_array


def parametrize_with_each(estimators: list[Any]) -> pytest.MarkDecorator:
    """Do as `parametrize_with_checks` does, with checks on arrays that may be written to only if on no others."""
    mark = parametrize_with_checks(estimators).mark
    pairs = [
        (estimator, check) for estimator, check in mark.args[1]
        if check.func.__name__ not in CONTAINED and "X_dtype" not in check.keywords  # float32: see test_contract.py
    ]  # fmt: skip
    strict = {(id(type(estimator)), check.func) for estimator, check in pairs if readonly(check)}
    kept = [pair for pair in pairs if (id(type(pair[0])), pair[1].func) not in strict or readonly(pair[1])]
    return pytest.mark.parametrize(mark.args[0], kept, **mark.kwargs)


def readonly(check: Any) -> bool:
    """True when the check is done on arrays that nobody can write to."""
    return bool(check.keywords.get("readonly_memmap"))
