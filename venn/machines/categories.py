"""What a fitted estimator tells of itself: its columns, and which of them are categories."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np


def unwrapped(estimator: Any) -> Any:
    """Return what is inside scikit-learn's `FrozenEstimator`, which hides whose methods it has."""
    kind = type(estimator)
    frozen = kind.__name__ == "FrozenEstimator" and kind.__module__.startswith("sklearn.")
    return unwrapped(estimator.estimator) if frozen else estimator


def innermost(estimator: Any) -> Any:
    """Return the estimator that gives the decision values: the best of a search, a pipeline's last step."""
    for name in ("best_estimator_", "final_estimator_", "estimator_"):
        inner = getattr(estimator, name, None)
        if inner is not None:
            return innermost(inner)
    steps = getattr(estimator, "steps", None)
    return innermost(steps[-1][1]) if steps else estimator


def columns_of(estimator: Any) -> tuple[int | None, tuple[str, ...] | None]:
    """Return the number of features that an estimator was fitted to, and their names, None for what it does not say."""
    names = getattr(estimator, "feature_names_in_", None)
    return getattr(estimator, "n_features_in_", None), None if names is None else tuple(np.asarray(names).tolist())


def categories_of(estimator: Any, names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return the categories of those columns of its table that were categorical, of boosted trees that keep them.

    An array of such columns would be read as codes of categories, whatever its numbers meant.

    Raises
    ------
    ValueError
        Columns are categories, and the estimator does not keep which.
    """
    calibrated = getattr(estimator, "calibrated_classifiers_", None)
    if calibrated:
        return categories_of(calibrated[0].estimator, names)
    inner = innermost(unwrapped(estimator))
    read = READERS.get(type(inner).__module__.partition(".")[0])
    return read(inner, names) if read is not None and columns_of(inner)[1] == names else {}


def _of_lightgbm(model: Any, names: tuple[str, ...]) -> dict[str, list[Any]]:
    booster = model.booster_
    # A copy, which was saved and loaded, has them under the other name.
    places = booster.params.get("categorical_column", booster.params.get("categorical_feature", ()))
    found = booster.pandas_categorical or []
    return dict(zip((names[i] for i in places), found, strict=True)) if found else {}


def _of_xgboost(model: Any, names: tuple[str, ...]) -> dict[str, list[Any]]:
    booster = model.get_booster()
    if "c" not in (booster.feature_types or ()):
        return {}
    kept = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"].get("cats", {}).get("enc")
    if not kept:
        raise ValueError(f"estimator must keep its categories, as xgboost does from 3.1 on, got {model!r:.60}")
    found: dict[str, list[Any]] = {}
    for name, kind, one in zip(names, booster.feature_types, kept, strict=True):
        if kind != "c":
            continue
        found[name] = one["values"]
        if "offsets" in one:  # of text, as one row of bytes
            text, ends = bytes(one["values"]), one["offsets"]
            found[name] = [text[start:stop].decode() for start, stop in pairwise(ends)]
    return found


READERS = {"lightgbm": _of_lightgbm, "xgboost": _of_xgboost}
