"""What scikit-learn's fitted trees hold, read as plain arrays.

Much of it is private, so it may stand elsewhere in another version: what is not found as expected is not read, and
`FlatTrees.of` compares the answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venn.prediction import Floats, Integers

Parts: TypeAlias = dict[str, Any]  #: arguments of `FlatTrees`


class _Tree(NamedTuple):
    """A tree as scikit-learn numbers its nodes."""

    leaf: NDArray[np.bool_]
    left: Any
    right: Any
    columns: Any
    thresholds: Any
    how: Any
    values: Any
    "(nodes, w): what is added up."


def parts(estimator: Any) -> Parts | None:
    """Return the arguments of a `FlatTrees`; None where it is of another class, or holds something unexpected."""
    name = type(estimator).__name__
    for module, names, read in READERS:
        # Exactly these classes: one derived from them may answer otherwise.
        if name in names and getattr(sys.modules.get(module), name, None) is type(estimator):
            try:
                return read(estimator, name.endswith("Classifier"))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                return None
    return None


def _one_tree(estimator: Any, classifies: bool) -> Parts | None:
    return _averaged(estimator, [estimator], classifies)


def _forest(estimator: Any, classifies: bool) -> Parts | None:
    return _averaged(estimator, estimator.estimators_, classifies)


def _averaged(estimator: Any, members: Sequence[Any], classifies: bool) -> Parts | None:
    """Return the parts of what answers with the mean of its trees' answers."""
    if estimator.n_outputs_ != 1 or (classifies and len(estimator.classes_) != estimator.n_classes_):
        return None
    c = estimator.n_classes_ if classifies else 1
    trees = [_plain(member.tree_, member.tree_.value[:, 0, :c]) for member in members]
    return _joined(trees, estimator.n_features_in_, single=True, link="shares" if classifies else "mean",
                   start=np.zeros(c))  # fmt: skip


def _gradient(estimator: Any, classifies: bool) -> Parts | None:
    """Return the parts of gradient boosting on exact thresholds."""
    start = estimator.init_
    # Scikit-learn's own start says the same for every row.
    if start != "zero" and type(start).__module__ != "sklearn.dummy":
        return None
    link = "identity"
    if classifies:
        of_two = {"log_loss": "logistic", "exponential": "half logistic"}
        link = of_two[estimator.loss] if estimator.n_classes_ == 2 else "softmax"
    rate = float(estimator.learning_rate)
    members = [member.tree_ for member in estimator.estimators_.ravel()]
    trees = [_plain(tree, rate * tree.value[:, 0, :1]) for tree in members]
    first = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), np.float32))[0]
    return _joined(trees, estimator.n_features_in_, single=True, link=link, start=first)


def _histogram(estimator: Any, classifies: bool) -> Parts | None:
    """Return the parts of gradient boosting on histograms."""
    if classifies:
        c = len(estimator.classes_)
        link = "softmax" if c > 2 else "logistic"
        if c < 2 or estimator.loss != "log_loss":
            return None
    else:
        link = "exponential" if estimator.loss in ("poisson", "gamma") else "identity"
        if not isinstance(estimator.loss, str):
            return None
    d = estimator.n_features_in_
    categories: list[Floats] = [np.zeros(0)] * d
    column: Integers = np.arange(d)
    if estimator._preprocessor is not None:
        # It encodes categories by their places, and puts these columns first.
        chosen = estimator.is_categorical_
        column = np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
        known, place = estimator._bin_mapper.make_known_categories_bitsets()
        for f, found in enumerate(estimator._preprocessor.named_transformers_["encoder"].categories_):
            if found.dtype.kind not in "fiub":
                return None  # words
            numbers = found.astype(np.float64)
            numbers = numbers[~np.isnan(numbers)]
            bits = np.unpackbits(known[place[f]].astype("<u4").view(np.uint8), bitorder="little")
            if not (np.diff(numbers) > 0).all() or not bits[: len(numbers)].all():
                return None
            categories[column[f]] = numbers
    trees, sets, s = [], [np.zeros((0, 8), np.uint32)], 0
    for one in (one for several in estimator._predictors for one in several):
        nodes = one.nodes
        of_set = np.where(nodes["is_categorical"] != 0, 2 * (1 + s + nodes["bitset_idx"].astype(np.int64)), 0)
        trees.append(
            _Tree(
                nodes["is_leaf"] != 0, nodes["left"], nodes["right"], column[nodes["feature_idx"]],
                nodes["num_threshold"], of_set + (nodes["missing_go_to_left"] != 0), nodes["value"][:, None],
            )
        )  # fmt: skip
        sets.append(one.raw_left_cat_bitsets)
        s += len(sets[-1])
    first = np.asarray(estimator._baseline_prediction, np.float64).reshape(-1)
    return _joined(
        trees, d, single=False, link=link, start=first, sets=np.concatenate(sets), categories=categories
    )  # fmt: skip


#: Where the classes are, their names, and who reads them.
READERS: tuple[tuple[str, tuple[str, ...], Callable[[Any, bool], Parts | None]], ...] = (
    (
        "sklearn.tree",
        ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
        _one_tree,
    ),
    (
        "sklearn.ensemble",
        ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
        _forest,
    ),
    ("sklearn.ensemble", ("GradientBoostingClassifier", "GradientBoostingRegressor"), _gradient),
    ("sklearn.ensemble", ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), _histogram),
)


def _plain(tree: Any, values: Floats) -> _Tree:
    """Return one of scikit-learn's exact trees."""
    left = tree.children_left
    return _Tree(
        left < 0, left, tree.children_right, tree.feature, tree.threshold, tree.missing_go_to_left != 0, values
    )  # fmt: skip


def _joined(
    trees: Sequence[_Tree],
    d: int,
    *,
    sets: NDArray[np.uint32] | None = None,
    categories: Sequence[Floats] | None = None,
    **more: Any,
) -> Parts:
    """Return the parts of all trees one after the other: nodes without leaves, and leaves."""
    n = m = 0
    roots, each = [], []
    for tree in trees:
        leaf, asks = tree.leaf, ~tree.leaf
        number = np.where(leaf, -m - np.cumsum(leaf), n - 1 + np.cumsum(asks))
        roots.append(number[0])
        each.append(
            (
                number[tree.left[asks]], number[tree.right[asks]], tree.columns[asks], tree.thresholds[asks],
                tree.how[asks], tree.values[leaf],
            )
        )  # fmt: skip
        n, m = n + int(asks.sum()), m + int(leaf.sum())
    left, right, columns, thresholds, how, leaves = (np.concatenate(arrays) for arrays in zip(*each, strict=True))
    counts = [0] * d if categories is None else [len(one) for one in categories]
    return {
        "missing": True,
        "roots": np.array(roots, np.int64),
        "thresholds": thresholds.astype(np.float64),
        "left": left.astype(np.int32),
        "right": right.astype(np.int32),
        "columns": columns.astype(np.int32),
        "how": how.astype(np.int32),
        "leaves": np.ascontiguousarray(leaves, np.float64),
        "sets": np.zeros((0, 8), np.uint32) if sets is None else sets,
        "places": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "categories": np.zeros(0) if categories is None else np.concatenate(categories),
        **more,
    }
