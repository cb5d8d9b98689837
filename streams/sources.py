"""Streams from arrays, sparse arrays, data frames, CSV files and rows by name. Every error says where."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, MappingView, Sequence, Set
from math import isinf
from pathlib import Path
from typing import Any, Literal

import numpy as np

from streams import sparse
from streams.checks import NUMBERS, Floats, Label, Objects, distinct_names, flag, python_label, whole_number
from streams.encoder import Encoder, Labels, described, encoded, in_order, places_in
from streams.example import Scaling, Stream
from streams.frames import columns_of, whole_frame
from streams.schema import ColumnKind, checked_schema, merging
from streams.tables import CsvTable, read_csv


def from_arrays(
    X: object,
    y: object,
    *,
    classes: Sequence[Label] | Literal["numbers"] | None = None,
    features: Sequence[str] | None = None,
    schema: Mapping[str, ColumnKind] | None = None,
    name: str = "arrays",
    shuffle: int | None = None,
    scale: bool | Scaling = False,
    drop_unlabelled: bool = False,
    merge_alike: bool = False,
) -> Stream:
    """Return a stream over rows of numbers and their labels.

    Parameters
    ----------
    X : (n, d) array, nested sequence, sparse array or data frame (pandas, polars, Arrow, all that narwhals knows)
        Finite numbers, n >= 1, d >= 1. A data frame also gives the feature names; its truth values and dates are
        refused, its text, categories and missing values unless the schema takes them. A sparse array or matrix of
        scipy stays sparse: the objects are then csr_array of shape (1, d).
    y : (n,) array, sequence or column of a data frame
        Hashable labels; numpy scalars become Python scalars.
    classes : sequence of distinct labels, or "numbers", optional
        The label set, in class order; may hold labels that never occur. By default the labels
        of the whole stream, sorted. "numbers": labels are finite numbers, for regression.
    features : sequence of d distinct str, optional
        By default the column names of a data frame, or x0, x1, ...
    schema : mapping from feature to Numeric, Nominal, Ordinal or Skip, optional
        ``Numeric(missing="?", fill="median")``: NaN, or a missing value of a data frame, becomes the median of the
        known values, or a number. ``Skip()``: the feature is left out. The others are for text; the values of a Nominal
        are those of its column, sorted, unless it has its own. Not for a sparse X.
    name : str
    shuffle : int, optional
        Seed of the order numpy.random.default_rng(seed).permutation(n); None keeps the given order.
    scale : bool or Scaling, default False
        True: mean 0 and deviation 1 over the whole stream, a constant feature becomes 0. Nothing is
        ever fitted on the past of the stream: see `Scaling` for why. A sparse X takes a `Scaling` of mean 0.
    drop_unlabelled : bool, default False
        Whether to leave out rows whose label is missing: None, NaN, or text such as "", "?", nan, null, None. False:
        they are an error. NA may be a class: a warning.
    merge_alike : bool, default False
        Whether labels that are the same written differently count as one class, as do values of each Nominal. They
        differ in blanks, capitals, a dot at the end, the form of a number or the Unicode form. False: a warning.

    Raises
    ------
    ImportError
        X is a data frame and narwhals is not installed.
    ValueError, TypeError
        For a wrong shape, NaN, infinity, text, an undeclared label or parameter out of range; the
        message gives the row and the column, counted from 0.

    Examples
    --------
    >>> stream = from_arrays([[1.0, 5.0], [2.0, 6.0]], ["no", "yes"])
    >>> stream
    <Stream 'arrays': 2 examples, 2 features, 2 classes>
    >>> next(iter(stream))
    (array([1., 5.]), 'no')
    """
    declared = merging(checked_schema(schema), flag("merge_alike", merge_alike))
    names = None if features is None else distinct_names("features", features)
    encoder: Encoder | None = None
    data: Any
    if columns_of(X) is not None:
        names = _named(names, [str(column) for column in columns_of(X) or ()])  # clearer than narwhals' own message
        data, encoder = whole_frame(X, names, declared)
    elif sparse.is_sparse(X):
        data = sparse.checked(X)
        names = _named(names, [f"x{j}" for j in range(data.shape[1])])
        if schema is not None:
            raise ValueError("schema must be left out for a sparse X, got one: fill and leave out columns of X itself")
        for i, j in sparse.not_finite(data)[:1].tolist():
            raise ValueError(f"X, row {i}, column {names[j]!r} must be a finite number, got {data[i, j]}")
    else:
        data = _matrix(X)
        names = _named(names, [f"x{j}" for j in range(data.shape[1])])
        if declared or data.dtype.kind == "O" or not np.isfinite(data).all():
            data, encoder = encoded(described(names, declared), list(data.T), places_in("X", names))
    drop = flag("drop_unlabelled", drop_unlabelled)
    names = names if encoder is None else encoder.names
    stream = labelled(data, y, classes, names, name, shuffle, scale, drop, merge_alike)
    stream.encoder = encoder
    return stream


def labelled(
    X: Objects,
    y: object,
    classes: Any,
    features: tuple[str, ...],
    name: str,
    shuffle: int | None,
    scale: bool | Scaling,
    drop_unlabelled: bool = False,
    merge_alike: bool = False,
) -> Stream:
    """Return the stream of checked objects (n, d), which are not copied, and labels, which are checked here."""
    labels = _labels(y)
    if len(labels) != X.shape[0]:
        raise ValueError(f"y must hold one label for each of the {X.shape[0]} rows of X, got {len(labels)}")
    kind, rows = Labels.of(classes, drop_unlabelled, merge_alike), np.arange(len(labels))
    codes = kind.encode(labels, "y, row {}".format, rows)
    known = ~np.isnan(codes)
    if not known.all():
        X, rows, codes, labels = X[known], rows[known], codes[known], [labels[i] for i in np.flatnonzero(known)]
        if not labels:
            raise ValueError(f"y must have a label, got none in {len(known)} rows")
    if kind.any:
        kind = kind.settled("y", Counter(labels))
        codes = kind.encode(labels, "y, row {}".format, rows)
    y = codes if kind.numbers else codes.astype(np.int64)
    return finish(CsvTable(X, y, kind.classes or (), features), name, shuffle, scale)


def from_csv(
    path: str | os.PathLike[str],
    label: str | int,
    *,
    name: str | None = None,
    schema: Mapping[str, ColumnKind] | None = None,
    classes: Sequence[str] | Literal["numbers"] | None = None,
    shuffle: int | None = None,
    scale: bool | Scaling = True,
    delimiter: str = ",",
    decimal: Literal[".", ","] = ".",
    missing: Sequence[str] = (),
    drop_unlabelled: bool = False,
    merge_alike: bool = False,
    thousands: str | None = None,
) -> Stream:
    """Return a stream over the rows of a CSV file, whose first row names the columns.

    Columns are numeric unless `schema` says otherwise; no kind is guessed. Labels are text. Fields may
    be quoted with "; empty lines are skipped; an empty field, "?", NA, nan, null and the like are a missing value and
    an error unless the schema of its column provides for it. A first column without a name is left out if it is
    another in each row; so is what follows a delimiter at the end of the rows.

    Parameters
    ----------
    path : path of the file
        UTF-8, or UTF-16 or UTF-32 as its first bytes show; plain, or packed by gzip, bzip2, xz or zip. A line has
        fewer than 16 million characters; a packed file over 64 MiB unpacks to at most 100 times its size.
    label : str or int
        Name of the label's column, or its position (-1 is the last).
    name : str, optional
        By default the file's name without .csv and the ending of what packed it.
    schema : mapping from column name to Numeric, Nominal, Ordinal or Skip, optional
    classes : sequence of distinct str, or "numbers", optional
        The label set, in class order. By default the labels of the whole stream, sorted (by value
        where all are numbers). "numbers": labels are finite numbers, for regression.
    shuffle : int, optional
        Seed of the order numpy.random.default_rng(seed).permutation(n); None keeps the file's order.
    scale : bool or Scaling, default True
        True: mean 0 and deviation 1 over the whole stream, a constant feature becomes 0. Nothing is
        ever fitted on the past of the stream: see `Scaling` for why.
    delimiter : str of one character
        A first line of the file such as ``sep=;`` has precedence.
    decimal : "." or ",", default "."
        What stands before the decimals of numbers, of the label, too.
    missing : sequence of distinct str, default ()
        Further texts that stand for a missing value in every column: they count as empty fields.
    drop_unlabelled : bool, default False
        Whether to leave out rows whose label is missing: None, NaN, or text such as "", "?", nan, null, None. False:
        they are an error. NA may be a class: a warning.
    merge_alike : bool, default False
        Whether labels that are the same written differently count as one class, as do values of each Nominal. They
        differ in blanks, capitals, a dot at the end, the form of a number or the Unicode form. False: a warning.
    thousands : str, optional
        What stands between the groups of digits of numbers, of the label, too: see `Numeric`, which also takes units.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError, TypeError
        For everything else. An error inside the file names file, row (its line, from 1) and column: the first
        trouble of every bad column, all at once.

    Warns
    -----
    UserWarning
        Labels, or values of a Nominal, are the same written differently; one of them is NA; a feature looks like an
        identifier of its row; a number is so far from the others that it hides them; a first column without a name is
        left out.

    Examples
    --------
    >>> import tempfile
    >>> from streams import Nominal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("weight,colour,fruit\\n150,green,apple\\n120,yellow,lemon\\n")
    ...     stream = from_csv(path, "fruit", schema={"colour": Nominal()}, scale=False)
    >>> stream.features
    ('weight', 'colour=green', 'colour=yellow')
    >>> list(stream)
    [(array([150.,   1.,   0.]), 'apple'), (array([120.,   0.,   1.]), 'lemon')]
    """
    path = Path(path)
    table = read_csv(
        path, label, schema, classes, delimiter, decimal, missing,
        flag("drop_unlabelled", drop_unlabelled), flag("merge_alike", merge_alike), thousands,
    )  # fmt: skip
    bare = path.with_suffix("") if path.suffix in (".gz", ".bz2", ".xz", ".zip") else path
    return finish(table, name or bare.name.removesuffix(".csv"), shuffle, scale)


def finish(table: CsvTable, name: str, shuffle: int | None, scale: bool | Scaling) -> Stream:
    """Return the stream of a table, scaled and in order; takes over the table's arrays."""
    scaling: Scaling | None
    if isinstance(scale, bool | np.bool_):
        if scale and sparse.is_sparse(table.X):
            raise ValueError(
                "scale must be False or a Scaling of mean 0 for a sparse X, which would not stay sparse, got True: "
                "Scaling(mean=np.zeros(d), deviation=...), or pass X.toarray()"
            )
        scaling = Scaling.whole(table.X, table.features) if scale else None
    elif isinstance(scale, Scaling):
        scaling = scale
    else:
        raise TypeError(f"scale must be True, False or a Scaling, got {scale!r}")
    X: Objects = table.X
    if scaling is not None:
        with np.errstate(over="ignore"):
            X = scaling(X)
        bad = sparse.not_finite(X)[:, 1] if sparse.is_sparse(X) else np.flatnonzero(~np.isfinite(X).all(axis=0))
        if bad.size:
            raise ValueError(f"scale must keep values finite, but feature {table.features[bad[0]]!r} overflows")
    stream = Stream(X, table.y, table.classes, table.features, name, scaling)
    stream.encoder = table.encoder
    return stream if shuffle is None else stream.shuffle(whole_number("shuffle", shuffle, 0))


def _named(features: tuple[str, ...] | None, columns: list[str]) -> tuple[str, ...]:
    """Return the names of the columns of X: those given, if they are as many, or their own."""
    own = distinct_names("features", columns)
    if features is not None and len(features) != len(own):
        raise ValueError(f"features must name the {len(own)} columns of X, got {len(features)} names")
    return own if features is None else features


def _matrix(X: Any) -> Floats:
    """Return X as a new (n, d) float64 array."""
    if np.ma.is_masked(X):
        raise ValueError("X must have no masked values; drop those rows or fill them by a fixed rule")
    try:
        values = np.asarray(X)
    except ValueError:
        raise ValueError("X must be a 2-D array (examples, features): its rows differ in length") from None
    if values.ndim == 1 and len(values) and isinstance(values[0], Mapping):
        raise TypeError("X must be a 2-D array (examples, features), got mappings: give pandas.DataFrame(X)")
    if values.ndim == 1:
        raise ValueError(
            f"X must be 2-D (examples, features), got shape {values.shape}: one feature is X.reshape(-1, 1), "
            "one example is X.reshape(1, -1)"
        )
    if values.ndim != 2:
        raise ValueError(f"X must be 2-D (examples, features), got shape {values.shape} from {type(X).__name__}")
    if 0 in values.shape:
        raise ValueError(f"X must hold at least one example and one feature, got shape {values.shape}")
    if values.dtype.kind not in "iuf" or (isinstance(X, list | tuple) and any(map(_holds_truth, X))):
        return np.asarray(X, dtype=object)  # the cells as they were: numpy turns what stands beside others into theirs
    with np.errstate(over="ignore"):
        return np.array(values, dtype=np.float64, order="C")


def _holds_truth(row: Any) -> bool:
    """Whether a row has truth values, which numpy turns into numbers if numbers stand beside them."""
    kinds = {row.dtype.type} if isinstance(row, np.ndarray) and row.dtype.kind in "iufb" else set(map(type, row))
    return bool(kinds & {bool, np.bool_})


def _labels(y: Any) -> list[Label]:
    """Return the labels as Python objects."""
    if columns := columns_of(y):
        raise ValueError(f"y must be 1-D, got a data frame: pass one column, as in y[{str(columns[0])!r}]")
    if isinstance(y, str | bytes | Mapping | Set | MappingView) or not isinstance(y, Iterable):
        raise TypeError(f"y must be a 1-D sequence of labels, got {y!r}")
    values: Any = y
    for as_list in ("to_pylist", "to_list"):  # Arrow, then pandas, polars and narwhals: Python objects of every type
        if hasattr(y, as_list):
            values = getattr(y, as_list)()
            break
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(f"y must be 1-D, one label for each example, got shape {values.shape}")
    labels = [python_label(label) for label in values]
    for i, label in enumerate(labels):
        if not isinstance(label, Hashable):
            raise TypeError(f"y must be 1-D and hold hashable labels, got {label!r} at row {i}")
    return labels


Row = dict[str, Any]


def from_river(
    dataset: Iterable[tuple[Mapping[Any, Any], Label]],
    *,
    classes: Sequence[Label] | Literal["numbers"] | None = None,
    features: Sequence[str] | None = None,
    schema: Mapping[str, ColumnKind] | None = None,
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
    >>> from streams import Nominal
    >>> rows = [({"width": 0.5, "colour": "red"}, True), ({"colour": "blue", "width": 1.5}, False)]
    >>> stream = from_river(rows, schema={"colour": Nominal()})
    >>> stream.features
    ('width', 'colour=blue', 'colour=red')
    >>> [(x.tolist(), y) for x, y in stream]
    [([0.5, 0.0, 1.0], True), ([1.5, 1.0, 0.0], False)]
    >>> from_river(rows)
    Traceback (most recent call last):
    streams.encoder.BadValue: row 0: x, feature 'colour' must be a number, got 'red': declare it in a schema as
    Nominal(values), Ordinal(values) or Skip()
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
    X, encoder = encoded(
        described(names, declared),
        list(zip(*ordered, strict=True)),
        lambda j, i: f"{'' if i is None else f'row {i}: x, '}feature {names[j]!r}",
    )
    own = type(dataset).__module__.partition(".")[0] == "river"
    title = name if name is not None else type(dataset).__name__ if own else "rows"
    drop = flag("drop_unlabelled", drop_unlabelled)
    stream = labelled(X, labels, classes, encoder.names, title, shuffle, scale, drop, merge_alike)
    stream.encoder = encoder
    return stream


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
