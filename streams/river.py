"""River's data sets, and any other pairs of a dict and a label, as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from typing import Any, Literal

import numpy as np

from streams.checks import NUMBERS, Label, distinct_names, flag, python_label
from streams.encoder import described, encoded
from streams.example import Scaling, Stream
from streams.form import in_order
from streams.schema import Kind, checked_schema, merging
from streams.sources import labelled

Row = dict[str, Any]


def from_river(
    dataset: Iterable[tuple[Mapping[Any, Any], Label]],
    *,
    classes: Sequence[Label] | Literal["numbers"] | None = None,
    features: Sequence[str] | None = None,
    schema: Mapping[str, Kind] | None = None,
    name: str | None = None,
    shuffle: int | None = None,
    scale: bool | Scaling = False,
    drop_unlabelled: bool = False,
    merge_alike: bool = False,
) -> Stream:
    """Return a stream over a data set of river, or any iterable of (dict, label).

    The order of the features is fixed once; every row must have exactly these features. Values are numbers unless the
    schema says otherwise. river itself is not needed.

    Parameters
    ----------
    dataset : iterable of (dict, label)
        Read once, whole. Cut an endless one by `dataset.take(n)`.
    classes : sequence of distinct labels, or "numbers", optional
        The label set, in class order; or labels are finite numbers, as they are by default in a data set of river for
        regression. By default otherwise the labels of the whole stream, sorted.
    features : sequence of distinct str, optional
        Their order; by default that of the first row. Names that are not text become text.
    schema : mapping from feature to Numeric, Nominal, Ordinal or Skip, optional
        As in `from_csv`: text is a Nominal or an Ordinal. None, NaN, NaT and pandas.NA count as the kind's `missing`
        text: a Numeric fills them, a Nominal takes them as a value. Kinds without `missing` refuse them.
    name : str, optional
        By default the name of river's class, or "rows".
    shuffle : int, optional
        Seed of the order numpy.random.default_rng(seed).permutation(n); None keeps the given order.
    scale : bool or Scaling, default False
        True: mean 0 and deviation 1 over the whole stream: see `Scaling`.
    drop_unlabelled, merge_alike : bool, default False
        As in `from_arrays`.

    Returns
    -------
    Stream

    Raises
    ------
    TypeError
        The data set gives no pairs of a dict and a label.
    ValueError
        It does not end, or is empty; a row has other features than the first, or a value that is
        not as declared: the message names row, counted from 0, and feature.

    Examples
    --------
    >>> rows = [({"width": 0.5, "colour": "red"}, True), ({"colour": "blue", "width": 1.5}, False)]
    >>> stream = from_river(rows, schema={"colour": Nominal()})
    >>> stream.features
    ('width', 'colour=blue', 'colour=red')
    >>> [(x.tolist(), y) for x, y in stream]
    [([0.5, 0.0, 1.0], True), ([1.5, 1.0, 0.0], False)]
    >>> from_river(rows)
    Traceback (most recent call last):
    ValueError: row 0: x, feature 'colour' must be a number, got 'red': declare it in a schema as Nominal(values),
    Ordinal(values) or Skip()
    """
    _check(dataset)
    if classes is None and "regression" in str(getattr(dataset, "task", "")).lower():
        classes = NUMBERS
    declared = merging(checked_schema(schema), flag("merge_alike", merge_alike))
    rows, labels = _read(dataset)
    if features is None:
        features = list(rows[0])
    names = distinct_names("features", features)
    ordered = []
    for i, row in enumerate(rows):
        try:
            ordered.append(in_order(row, names))
        except ValueError as error:
            raise ValueError(f"row {i}: {error}") from None
    X, features = encoded(
        described(names, declared),
        list(zip(*ordered, strict=True)),
        lambda j, i: f"{'' if i is None else f'row {i}: x, '}feature {names[j]!r}",
    )
    own = type(dataset).__module__.partition(".")[0] == "river"
    title = name if name is not None else type(dataset).__name__ if own else "rows"
    drop = flag("drop_unlabelled", drop_unlabelled)
    return labelled(X, labels, classes, features, title, shuffle, scale, drop, merge_alike)


def _check(dataset: Any) -> None:
    requirement = f"dataset must be an iterable of (dict, label), got a {type(dataset).__name__}"
    if hasattr(type(dataset), "columns") or isinstance(dataset, str | bytes | Mapping | np.ndarray):
        raise TypeError(f"{requirement}: tables are read by from_arrays and from_frames")
    if not isinstance(dataset, Iterable):
        raise TypeError(requirement)
    size = getattr(dataset, "n_samples", None)
    if isinstance(size, float) and isinf(size):
        raise ValueError(f"dataset must end, got {type(dataset).__name__}, which does not: pass dataset.take(n)")


def _read(dataset: Iterable[Any]) -> tuple[list[Row], list[Any]]:
    rows: list[Row] = []
    labels: list[Any] = []
    for i, pair in enumerate(dataset):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], Mapping):
            raise TypeError(f"row {i} must be a pair of a dict and a label, got {pair!r}")
        row = {str(feature): python_label(value) for feature, value in pair[0].items()}
        if len(row) < len(pair[0]):
            raise ValueError(f"row {i}: features must be distinct as text, got {list(pair[0])!r}")
        rows.append(row)
        labels.append(pair[1])
    if not rows:
        raise ValueError("dataset must hold at least one row, got none")
    return rows, labels
