"""Objects with names and text: rows of a table that an estimator reads itself, and what it tells of its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn.machines.machine import (
    Underscored,
    check_names,
    check_row,
    fields_in,
    is_table,
    names_in,
    renamed,
    values_in,
)
from venn.machines.sparse import VALUE, is_sparse
from venn.parameters import REAL, TRUTH

LARGEST_FLOAT = np.finfo(np.float64).max
MARK = b"t"  # the last byte of an object with text; that of a sparse row is another


class TableRows:
    """Rows of cells that are numbers, text or missing, under the names of a fitted estimator's columns.

    Parameters
    ----------
    cells : (n, d) array of objects
        Checked: see `plain`.
    names : tuple of d str
    """

    __slots__ = ("cells", "names")
    ndim = 2

    def __init__(self, cells: NDArray[Any], names: tuple[str, ...]) -> None:
        self.cells = cells
        self.names = names

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.cells), len(self.names)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, which: Any) -> TableRows:
        """Return some of the rows; one of them for an integer."""
        return TableRows(self.cells[which].reshape(-1, len(self.names)), self.names)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {', '.join(self.names)}>"

    def toarray(self) -> NDArray[Any]:
        """Return the (n, d) cells."""
        return self.cells

    def tobytes(self) -> bytes:
        """Return the content: only equal rows have equal bytes."""
        return json.dumps(self.cells.tolist()).encode()

    def frame(self, categories: Mapping[str, Sequence[Any]] = MappingProxyType({})) -> Any:
        """Return a data frame; `categories` are those of columns that shall be categorical, by name.

        How a cell is handed on does not depend on other rows. Text is an object elsewhere, and so are gaps alone, of
        which nobody knows what they stand for, unless text is in categories.
        """
        from pandas import Categorical, DataFrame, Series

        columns = {}
        for name, column in zip(self.names, self.cells.T, strict=True):
            values = column.tolist()
            if name in categories:  # categories that it has not met: the estimator may refuse them
                new = dict.fromkeys(value for value in values if not is_gap(value) and value not in categories[name])
                columns[name] = Series(Categorical(values, categories=[*categories[name], *new]))
            else:
                unknown = all(map(is_gap, values)) and not categories
                text = unknown or any(isinstance(value, str) for value in values)
                columns[name] = Series(
                    values, dtype=object if text else np.float64 if any(map(is_gap, values)) else None
                )
        return DataFrame(columns, columns=list(self.names))


def is_gap(value: Any) -> bool:
    """Whether a cell is missing: None or NaN."""
    return value is None or value != value


def alike_cells(rows: Any) -> list[list[int]]:
    """Return the numbers of rows in groups: in each, the cells of a column are of one type, and gaps in one place.

    So a data frame of a group has columns of the types that it has of each row alone.
    """
    groups: dict[Any, list[int]] = {}
    for i, row in enumerate(rows.cells.tolist() if isinstance(rows, TableRows) else np.isnan(rows)):
        kinds = row.tobytes() if isinstance(row, np.ndarray) else tuple(map(_kind, row))
        groups.setdefault(kinds, []).append(i)
    return list(groups.values())


def _kind(cell: Any) -> Any:
    """Return the type of a cell; NaN is another than numbers, and an integer of more than 64 bits is its own."""
    if type(cell) is int and abs(cell) >= 1 << 63:
        return cell
    return type(cell) if cell == cell else None


def is_number(value: Any) -> bool:
    """Whether a cell is a number or a truth value."""
    return isinstance(value, (*REAL, *TRUTH))


def plain(value: Any, name: str, place: str) -> Any:
    """Return a cell as a Python number, text or None, or say what it must be; pandas' NA is NaN."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if type(value).__name__ == "NAType":
        return np.nan
    if not is_number(value):
        raise TypeError(
            f"{name} must hold numbers and text, got {value!r:.60} at {place}: make numbers or text of it first, by a "
            "rule that is fixed beforehand"
        )
    own = value.item() if isinstance(value, np.generic) else value
    if own == own and abs(own) > LARGEST_FLOAT:
        raise ValueError(f"{name} must be finite, got {own!r:.40} at {place}")
    return own if own == own else np.nan


def by_name(x: Any, names: tuple[str, ...]) -> Any:
    """Return the values of one object in the order of these names, or say that it has others.

    A mapping and an object of a dataclass go by their names, in whatever order. A named tuple, a row of a table and a
    table of one row must have the names in this order, as the table of a fitted estimator must. What has no names goes
    by position.

    Examples
    --------
    >>> by_name({"city": "Oslo", "age": 31}, ("age", "city"))
    [31, 'Oslo']
    """
    if type(x) is np.ndarray:
        return x
    x = as_mapping(x)
    if isinstance(x, Mapping):
        known = renamed(x, names)
        if known.keys() != set(names):
            raise ValueError(f"x must have the features {list(names)!r}, got {list(x)!r}")
        return [known[name] for name in names]
    if is_table(x) and len(x) == 1:
        check_names("x must have the features", x.columns, names)
        return np.asarray(x)[0]
    check_row(x, names)
    if isinstance(x, tuple):
        return list(x)
    return x.to_numpy() if hasattr(type(x), "to_numpy") and not is_table(x) else x


def as_mapping(x: Any) -> Any:
    """Return an object of a dataclass as a dict of its fields; others as they are."""
    fields = None if isinstance(x, tuple) else fields_in(x)
    return x if fields is None else dict(zip(fields, values_in(x), strict=True))


def one_row(x: Any) -> Any:
    """Return the row of a table of one row as its values, with text by name; any other object as it is."""
    if not is_table(x) or len(x) != 1:
        return x
    named = named_object(x)
    return np.asarray(x)[0] if named is None else named


def rows_by_name(X: Any, names: tuple[str, ...]) -> Any:
    """Return the values of many objects in the order of these names; a sequence of objects with names is one, too."""
    if isinstance(X, Sequence) and not isinstance(X, str) and len(X) and has_names(X[0]):
        return [list(by_name(x, names)) for x in X]
    return X


def has_names(x: Any) -> bool:
    """Whether an object tells the names of its features."""
    return names_in(x) is not None


def with_text(name: str, rows: Any, names: tuple[str, ...]) -> TableRows | None:
    """Return rows of which some cells are text or missing; None where `rows` are something else.

    Raises
    ------
    TypeError, ValueError
        A cell is neither a finite number nor text nor missing, or a row has too many or too few of them.
    """
    if isinstance(rows, str) or any(
        isinstance(row, str) or is_table(row) or not isinstance(row, Iterable) for row in rows
    ):
        return None
    given = [list(row) for row in rows]
    if all(is_number(value) for row in given for value in row):
        return None
    cells = np.empty((len(given), len(names)), object)
    for i, row in enumerate(given):
        if len(row) != len(names):
            raise ValueError(f"{name} must have {len(names)} features, {list(names)!r}, got {len(row)}")
        at = "" if name == "x" else f"row {i}, "
        cells[i] = [plain(value, name, f"{at}feature {of!r}") for of, value in zip(names, row, strict=True)]
    return TableRows(cells, names)


# ----------------------------------------------------------------------------- as bytes


def named_object(x: Any) -> Any:
    """Return an object with names or text as a dict of plain cells, without names as a list; None for other objects.

    Raises
    ------
    TypeError, ValueError
        A cell is neither a finite number nor text nor missing.
    """
    if is_sparse(x) or (type(x) is np.ndarray and x.dtype != object):
        return None
    names: list[Any] | None = None
    x = as_mapping(x)
    if isinstance(x, Mapping):
        names, values = list(x), list(x.values())
    elif is_table(x) and len(x) == 1:
        names, values = list(x.columns), list(np.asarray(x)[0])
    elif isinstance(x, Iterable) and not isinstance(x, str) and not is_table(x):
        values = list(x)
        if not isinstance(x, tuple):  # a field of a named tuple may stand for another name
            names = names_in(x)
    else:
        return None
    text = any(value is None or isinstance(value, str) for value in values)
    if not isinstance(x, Mapping) and not text:
        return None  # numbers go by position
    cells = [plain(value, "x", f"feature {i}") for i, value in enumerate(values)]
    if names is None or not all(isinstance(name, str) for name in names):
        return cells
    return dict(zip(names, cells, strict=True))


def object_bytes(x: Any) -> bytes:
    """Return the bytes of what `named_object` has made; their number is not that of a dense object."""
    content = json.dumps(x, sort_keys=True, ensure_ascii=False).encode()
    return content + b" " * ((len(content) + len(MARK)) % VALUE.itemsize == 0) + MARK


def object_of(content: bytes) -> Any:
    """Return the object that `object_bytes` wrote, or raise ValueError."""
    x = json.loads(content.removesuffix(MARK))
    values = list(x.values()) if isinstance(x, dict) else x
    if not isinstance(values, list) or not all(v is None or isinstance(v, str | float | int) for v in values):
        raise ValueError(f"an object with text must be names and values, got {x!r:.60}")
    return x


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
    found = getattr(estimator, "feature_names_in_", None)
    number: Any = getattr(estimator, "n_features_in_", None) or None  # a copy of one of CatBoost's says 0
    package = type(innermost(unwrapped(estimator))).__module__.partition(".")[0]
    if package == "catboost" and hasattr(estimator, "get_cat_feature_indices"):
        found = getattr(estimator, "feature_names_", None) or None
        number = None if found is None else len(found)
        text = [*estimator.get_cat_feature_indices(), *estimator.get_text_feature_indices()] if found else ()
        if found is not None and not text and list(found) == [str(i) for i in range(len(found))]:
            found = None  # of an array
    if found is None:
        return number, None
    names = tuple(np.asarray(found).tolist())
    blank = package != "lightgbm" or any(isinstance(name, str) and " " in name for name in names)
    return number, names if blank else Underscored(names)


def codes_of(estimator: Any) -> list[str]:
    """Return the names of columns in which CatBoost takes text or whole numbers, and no others."""
    inner = innermost(unwrapped(estimator))
    if type(inner).__module__.partition(".")[0] != "catboost" or not inner.is_fitted():
        return []
    return [inner.feature_names_[i] for i in inner.get_cat_feature_indices()]


def has_classes(estimator: Any) -> bool:
    """Whether an estimator says which classes it knows; a regressor of CatBoost's has an empty list of them."""
    found = getattr(estimator, "classes_", None)
    return hasattr(estimator, "classes_") and not (isinstance(found, list | np.ndarray) and not len(found))


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


def known_categories(estimator: Any, names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return the categories that an estimator knows of its columns by name: of its encoders, of its boosted trees.

    Columns of which it does not say which categories it knows, and columns of numbers, are not among them.

    Examples
    --------
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> rows = np.array([["Oslo", 31], ["Rome", 40]], object)
    >>> pipeline = make_column_transformer((OneHotEncoder(), [0]), remainder="passthrough").fit(rows)
    >>> known_categories(pipeline, ("city", "age"))
    {'city': ['Oslo', 'Rome']}
    """
    one = unwrapped(estimator)
    calibrated = getattr(one, "calibrated_classifiers_", None)
    inner = calibrated[0].estimator if calibrated else getattr(one, "best_estimator_", None)
    if inner is not None:
        return known_categories(inner, names)
    if hasattr(one, "steps"):  # up to the first that knows some: later ones may have other columns
        width = len(names)
        for _, step in one.steps:
            if (of := getattr(step, "n_features_in_", width)) == width and (found := known_categories(step, names)):
                return found
            if of != width:
                break
        return {}
    if hasattr(one, "transformers_"):
        found = {}
        for _, step, columns in one.transformers_:
            chosen = _chosen(columns, names)
            if chosen and not isinstance(step, str):
                found |= known_categories(step, chosen)
        return {name: found[name] for name in names if name in found}
    categories = getattr(one, "categories_", None)
    if categories is not None and len(categories) == len(names):
        each = (np.asarray(values, object).tolist() for values in categories)
        return {name: [value for value in values if not is_gap(value)]
                for name, values in zip(names, each, strict=True)}  # fmt: skip
    try:
        return categories_of(one, names)
    except (ValueError, AttributeError):  # whoever scores with it says what is wrong
        return {}


def _chosen(columns: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of columns that a transformer of columns was given, in whatever form; none if that is another.

    One column by its name alone is a list of texts to the transformer, not a table.
    """
    if isinstance(columns, slice):
        ends = [names.index(end) if isinstance(end, str) else end for end in (columns.start, columns.stop)]
        return names[slice(ends[0], ends[1] if isinstance(columns.stop, int | None) else ends[1] + 1, columns.step)]
    listed = np.asarray([] if isinstance(columns, str) or callable(columns) else columns, object).reshape(-1).tolist()
    if listed and all(isinstance(one, bool) for one in listed):
        return tuple(name for name, taken in zip(names, listed, strict=True) if taken)
    return tuple(one if isinstance(one, str) else names[one] for one in listed)


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
