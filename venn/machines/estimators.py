"""What is known of a fitted estimator: its method, its classes, how it treats rows; and a copy that nobody changes."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from venn.parameters import class_codes

METHODS = ("decision_function", "predict_proba")
# Estimators that treat each row by itself, in an order of operations that does not depend on the others: a row has the
# same scores, to the last bit, in a block as alone (tests/machines/test_given_scorers.py). By package and name.
ROW_BY_ROW = {
    "sklearn": {
        "HistGradientBoostingClassifier", "GradientBoostingClassifier", "RandomForestClassifier",
        "ExtraTreesClassifier", "DecisionTreeClassifier", "ExtraTreeClassifier", "StandardScaler", "MinMaxScaler",
        "MaxAbsScaler", "RobustScaler", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder", "SimpleImputer",
        "FunctionTransformer",
    },
    "lightgbm": {"LGBMClassifier"},
    "xgboost": {"XGBClassifier"},
}  # fmt: skip
LOG_ODDS = frozenset({
    "LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis", "SGDClassifier",
    "GradientBoostingClassifier", "HistGradientBoostingClassifier",
})  # fmt: skip

EIGHT = 8  # classes, from which on numpy adds a row's numbers in another order where rows are many


class KeptEstimator(NamedTuple):
    """Wraps an estimator that nobody will change, so that it is not copied."""

    estimator: Any


def copied(estimator: Any) -> Any:
    """Return a copy of an estimator, unless it is owned."""
    if isinstance(estimator, KeptEstimator):
        return estimator.estimator
    try:
        return copy.deepcopy(estimator)
    except Exception as error:
        held = [name for name, part in getattr(estimator, "__dict__", {}).items() if not _copies(part)]
        where = f"its {', '.join(held)} cannot" if held else "it cannot"
        raise TypeError(
            f"estimator must be one that can be copied, so that nobody changes it, got {type(estimator).__name__}: "
            f"{where} be copied, {error}. If nobody will, give its class a method __deepcopy__(self, memo) that "
            "returns self"
        ) from error


def _copies(part: Any) -> bool:
    try:
        copy.deepcopy(part)
    except Exception:
        return False
    return True


def method_of(estimator: Any, wanted: str | None) -> str:
    """Return the method that gives scores, the wanted one or the first that there is; none is empty."""
    return next((method for method in METHODS if wanted in (None, method) and has_method(estimator, method)), "")


def labels_of(estimator: Any, classes: Any) -> list[Any]:
    """Return the labels of the columns of scores, in their order; none where the estimator is not fitted."""
    found = getattr(estimator, "classes_", None)
    if found is None and classes is not None and not hasattr(estimator, "get_params"):  # not one of scikit-learn's
        found = list(class_codes(classes))
    return found.tolist() if isinstance(found, np.ndarray) else list(found) if isinstance(found, list | tuple) else []


def read_alone(estimator: Any, c: int) -> str | None:
    """Return the method to read where the score of each of c classes stands alone; None if that is the usual one.

    Of more than two classes it is `predict_proba`, where there is one. Their decision values mean something together:
    a class is as probable as its value is larger than the others. So a predictor that reads one class at a time, such
    as Venn-Abers, is sharper by probabilities.
    """
    return METHODS[1] if c > 2 and has_method(estimator, METHODS[1]) else None


def has_method(estimator: Any, method: str) -> bool:
    return callable(getattr(estimator, method, None))


def scikit_learns(estimator: Any, method: str, name: str) -> bool:
    """Whether a method is scikit-learn's own, of the class with this name."""
    owner = next((kind for kind in type(estimator).__mro__ if method in vars(kind)), object)
    return owner.__name__ == name and owner.__module__.startswith("sklearn.")


def by_softmax(estimator: Any) -> bool:
    """Whether the probabilities of more than two classes are the softmax of the decision values."""
    one_against_all = getattr(estimator, "multi_class", "") == "ovr" or getattr(estimator, "solver", "") == "liblinear"
    return scikit_learns(estimator, "predict_proba", "LogisticRegression") and not one_against_all


def of_log_odds(estimator: Any) -> bool:
    """Whether the decision values of two classes are known to be the log odds of the probabilities."""
    while True:
        if type(estimator).__module__.startswith("sklearn.") and isinstance(getattr(estimator, "steps", None), list):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    known = type(estimator).__module__.startswith("sklearn.") and type(estimator).__name__ in LOG_ODDS
    return known and getattr(estimator, "loss", "log_loss") == "log_loss"


def stages(estimator: Any) -> tuple[list[Any], Any]:
    """Return the transformers of a fitted pipeline, in a search as well, and its last step; of others, none and it."""
    kind, steps = type(estimator), []
    if kind.__module__.startswith("sklearn.") and hasattr(estimator, "best_estimator_"):
        return stages(estimator.best_estimator_)
    if kind.__name__ == "Pipeline" and kind.__module__.startswith("sklearn."):
        given = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        for step in given[:-1]:
            steps += [*stages(step)[0], stages(step)[1]]
        inner, estimator = stages(given[-1])
        steps += inner
    return steps, estimator


def scores_row_by_row(estimator: Any) -> bool:
    """Whether a row is known to have the same scores in a block as alone, to the last bit."""
    package = type(estimator).__module__.partition(".")[0]
    name = type(estimator).__name__
    if isinstance(estimator, str):  # "passthrough" or "drop"
        return True
    if package == "sklearn" and name == "ColumnTransformer":
        return all(scores_row_by_row(step) for _, step, _ in estimator.transformers_)
    steps, last = stages(estimator)
    if last is not estimator:
        return all(map(scores_row_by_row, [*steps, last]))
    if name not in ROW_BY_ROW.get(package, ()):
        return False
    if name == "FunctionTransformer":
        return estimator.func is None
    if name in ("RandomForestClassifier", "ExtraTreesClassifier"):
        # On several threads trees are added up in the order in which these end.
        return estimator.n_jobs in (None, 1)
    if name == "HistGradientBoostingClassifier":  # in a block it adds up many classes in another order
        return len(estimator.classes_) < EIGHT
    return name != "GradientBoostingClassifier" or estimator.init in (None, "zero")
