"""What an example is: the schema of a table's columns, the scaling of its features, the stream of rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streams import sparse

Label = Hashable
Floats = NDArray[np.float64]
Objects = Any
"""(n, d) float64, or a `scipy.sparse.csr_array` of that: scipy is not imported for a type."""
Integers = NDArray[np.int64]
Encoded = tuple[list[str], Floats]

MISSING = ("", "?")
"""Texts that stand for a missing value; the schema of a column says what to do with them."""


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas.NA: what stands for a missing value where values are no text.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # nor has an array, which is there
        return False


def is_finite(number: Any) -> bool:
    """Whether a number is finite as float64.

    Examples
    --------
    >>> is_finite(1.5), is_finite(10**400)
    (True, False)
    """
    try:
        return isfinite(number)
    except OverflowError:  # an integer
        return False


def label_key(label: Label) -> tuple[bool, Label]:
    """Return what to look a label up by: by the label alone, Python takes True for 1.

    Examples
    --------
    >>> label_key(True) == label_key(1)
    False
    """
    return isinstance(label, bool | np.bool_), label


@dataclass(frozen=True)
class Numeric:
    """A column of finite numbers: one feature.

    Parameters
    ----------
    missing : str, optional
        Text that stands for a missing value, for instance "?". Without it a missing value is an error.
    fill : finite float or "median", optional
        What a missing value becomes, required with `missing`: a number given beforehand, or the
        median of the known values of the whole stream. Both treat all examples alike (see `Scaling`).

    Raises
    ------
    ValueError
        When only one of the two is given, or `fill` is not a finite number.

    Examples
    --------
    >>> Numeric(missing="?", fill="median")
    Numeric(missing='?', fill='median')
    """

    missing: str | None = None
    fill: float | Literal["median"] | None = None

    def __post_init__(self) -> None:
        if (self.missing is None) != (self.fill is None):
            raise ValueError(
                f"missing and fill must be given together, got missing={self.missing!r}, fill={self.fill!r}"
            )
        if self.fill not in (None, "median") and not _finite_number(self.fill):
            raise ValueError(f'fill must be a finite number or "median", got {self.fill!r}')

    def read(self, text: str, found: dict[str, int]) -> float:
        """Return the number that `text` shows; NaN for a declared missing value."""
        if text == self.missing:
            return float("nan")
        if text in MISSING:
            raise ValueError(
                f"is missing, got {text!r}: declare Numeric(missing={text!r}, fill='median' or a number), or Skip()"
            )
        try:
            # float() also takes 1_000 and digits of other scripts, which numpy's reader refuses.
            value = float(text) if text.isascii() and "_" not in text else None
        except ValueError:
            value = None
        if value is None:
            raise ValueError(
                f"must be a number, got {text!r}: declare the column as Nominal(), Ordinal(values), Skip() "
                f"or Numeric(missing={text!r}, fill=...)"
            )
        if not isfinite(value):
            raise ValueError(f"must be a finite number, got {text!r}")
        return value

    def encode(self, name: str, column: Floats, found: dict[str, int]) -> Encoded:
        """Return the feature's name and its values (n, 1), missing ones filled."""
        if self.missing is not None:
            unknown = np.isnan(column)
            if unknown.all() and self.fill == "median":
                raise ValueError("has no value to take a median of; give fill a number or declare Skip()")
            if unknown.any():
                fill = np.median(column[~unknown]) if self.fill == "median" else np.float64(self.fill)
                column = np.where(unknown, fill, column)
        return [name], column[:, None]


@dataclass(frozen=True)
class Nominal:
    """A column of names without order: one 0/1 feature for each value (one-hot).

    Parameters
    ----------
    values : sequence of distinct str, optional
        The values that may occur, in feature order. Without it they are the values of the whole
        stream, sorted: a symmetric function of the stream, so nothing leaks (see `Scaling`).
    missing : str, optional
        Text of a missing value that counts as a value of its own, for instance "?". Not needed
        where `values` already holds it. Otherwise a missing value is an error.

    Examples
    --------
    >>> Nominal(("red", "green"))
    Nominal(values=('red', 'green'), missing=None)
    """

    values: tuple[str, ...] | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        if self.values is not None:
            values = _distinct_texts(self.values)
            own = () if self.missing is None or self.missing in values else (self.missing,)
            object.__setattr__(self, "values", values + own)

    def read(self, text: str, found: dict[str, int]) -> float:
        """Return the code of `text` in `found`, which numbers the values as they appear."""
        code = found.get(text)
        if code is None:
            _check_value(text, self.values, self.missing)
            code = found[text] = len(found)
        return code

    def encode(self, name: str, column: Floats, found: dict[str, int]) -> Encoded:
        """Return the names "column=value" and the 0/1 features (n, values)."""
        values = self.values if self.values is not None else tuple(sorted(found))
        codes = np.array([found.get(value, -1) for value in values])
        return [f"{name}={value}" for value in values], (column[:, None] == codes).astype(np.float64)


@dataclass(frozen=True)
class Ordinal:
    """A column of names in order: one feature, 0 for the first value, 1 for the second, ...

    Parameters
    ----------
    values : sequence of distinct str
        The values in their natural order.

    Examples
    --------
    >>> Ordinal(("low", "med", "high"))
    Ordinal(values=('low', 'med', 'high'))
    """

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _distinct_texts(self.values))

    def read(self, text: str, found: dict[str, int]) -> float:
        """Return the rank of `text`; `found` remembers the ranks already looked up."""
        rank = found.get(text)
        if rank is None:
            _check_value(text, self.values, None)
            rank = found[text] = self.values.index(text)
        return rank

    def encode(self, name: str, column: Floats, found: dict[str, int]) -> Encoded:
        """Return the feature's name and the ranks (n, 1)."""
        return [name], column[:, None]


@dataclass(frozen=True)
class Skip:
    """A column that is no feature; whatever stands in it is ignored.

    Examples
    --------
    >>> Skip()
    Skip()
    """

    def read(self, text: str, found: dict[str, int]) -> float:
        """Return 0 for any text."""
        return 0.0

    def encode(self, name: str, column: Floats, found: dict[str, int]) -> Encoded:
        """Return no feature."""
        return [], np.empty((len(column), 0))


Kind = Numeric | Nominal | Ordinal | Skip


@dataclass(frozen=True, init=False)
class Scaling:
    """A fixed affine map of each feature: (x - mean) / deviation.

    A valid prediction needs every step before it to be fixed beforehand or to treat all examples
    alike. A scaler fitted on the past of a stream does neither: the newest example is scaled by
    numbers that the older ones helped to make and it did not. So the package offers only a scaling
    given beforehand (this class) and the standardisation of the whole stream (`Scaling.whole`),
    whose numbers do not depend on the order of the examples.

    Parameters
    ----------
    mean : (d,) finite floats
        What becomes 0.
    deviation : (d,) finite positive floats
        What becomes 1.

    Raises
    ------
    ValueError
        When the two differ in length, or a value is not finite, or a deviation is not positive.

    Examples
    --------
    >>> Scaling(mean=[10.0], deviation=[2.0])(np.array([[14.0]]))
    array([[2.]])
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __init__(self, mean: ArrayLike, deviation: ArrayLike) -> None:
        for name, given in (("mean", mean), ("deviation", deviation)):
            values = np.asarray(given, dtype=np.float64)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise ValueError(f"{name} must be a 1-D array of finite numbers, got {given!r}")
            object.__setattr__(self, name, tuple(values.tolist()))
        if len(self.mean) != len(self.deviation):
            raise ValueError(
                f"mean and deviation must have equal length, got {len(self.mean)} and {len(self.deviation)}"
            )
        if self.deviation and min(self.deviation) <= 0:
            raise ValueError(f"deviation must be positive, got {min(self.deviation)!r}")

    @classmethod
    def whole(cls, X: Floats, features: Sequence[str] | None = None) -> Scaling:
        """Return the scaling that gives each column of X mean 0 and standard deviation 1.

        A constant column gets deviation 1 and so becomes exactly 0.

        Parameters
        ----------
        X : (n, d) finite float64, n >= 1
        features : sequence of d str, optional
            Names for the error message.

        Raises
        ------
        ValueError
            When a column is too large in magnitude for its deviation to be a float64.

        Examples
        --------
        >>> Scaling.whole(np.array([[1.0, 7.0], [3.0, 7.0]]))
        Scaling(mean=(2.0, 7.0), deviation=(1.0, 1.0))
        """
        n, d = X.shape
        mean, deviation = np.empty(d), np.empty(d)
        # Columns in blocks, so that the sorted copy stays near 32 MB however long the stream is.
        width = max(1, 4_000_000 // n)
        for start in range(0, d, width):
            block = slice(start, start + width)
            # A sum depends on the order of its terms in the last bits. Sorted first, the result is
            # the same for every order of the examples, to the last bit.
            column = np.sort(X[:, block], axis=0)
            constant = column[0] == column[-1]
            with np.errstate(over="ignore", invalid="ignore"):
                centre = np.where(constant, column[0], column.mean(axis=0))
                column -= centre
                # Divided by its peak first, so that the squares neither overflow nor vanish.
                peak = np.where(constant, 1.0, np.abs(column).max(axis=0))
                spread = peak * np.sqrt(np.mean((column / peak) ** 2, axis=0))
            mean[block] = centre
            deviation[block] = np.where(constant, 1.0, spread)
        bad = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(deviation) & (deviation > 0)))
        if bad.size:
            name = features[bad[0]] if features is not None else int(bad[0])
            raise ValueError(f"feature {name!r} cannot be standardised: its values are too far apart for float64")
        return cls(mean, deviation)

    def __call__(self, X: Objects) -> Objects:
        """Return the scaled copy of X, (n, d) or (d,); one that is sparse stays so, for it needs a mean of 0."""
        if X.shape[-1] != len(self.mean):
            raise ValueError(f"X must have {len(self.mean)} features, as the scaling has, got {X.shape[-1]}")
        if sparse.is_sparse(X):
            return sparse.scaled(X, np.array(self.mean), np.array(self.deviation))
        scaled: Floats = X - np.array(self.mean)
        scaled /= np.array(self.deviation)
        return scaled


class Stream:
    """Labelled examples in a fixed order; every `for x, y in stream` starts from the first.

    Made by `load`, `from_csv` and `from_arrays`, which check the data; this constructor takes over
    the arrays it is given, unchecked, and makes them read-only.

    Parameters
    ----------
    X : (n, d) float64, or scipy.sparse.csr_array of that
        One row for each example. Rows of a sparse one come as csr_array of shape (1, d).
    y : (n,) int64
        Positions of the labels in `classes`.
    classes : sequence of labels
        The label set, in class order.
    features : sequence of d str
    name : str
    scaling : Scaling, optional
        What was applied to X; apply it to objects that come later.

    Examples
    --------
    >>> stream = Stream(np.array([[0.5], [1.5]]), np.array([1, 0]), ("no", "yes"), ("width",), "toy")
    >>> for x, y in stream:
    ...     print(x, y)
    [0.5] yes
    [1.5] no
    >>> stream.shuffle(seed=0).take(1)
    <Stream 'toy'.shuffle(0).take(1): 1 example, 1 feature, 2 classes>
    """

    def __init__(
        self,
        X: Objects,
        y: Integers,
        classes: Sequence[Label],
        features: Sequence[str],
        name: str = "stream",
        scaling: Scaling | None = None,
        *,
        _steps: str = "",
    ) -> None:
        if sparse.is_sparse(X):
            sparse.freeze(X)
        else:
            X.setflags(write=False)
        y.setflags(write=False)
        self.X = X
        self.y = y
        self.classes = tuple(classes)
        self.features = tuple(features)
        self.name = name
        self.scaling = scaling
        self._steps = _steps

    def __iter__(self) -> Iterator[tuple[Objects, Label]]:
        rows = sparse.rows(self.X) if sparse.is_sparse(self.X) else self.X
        for x, code in zip(rows, self.y.tolist(), strict=True):
            yield x, self.classes[code]

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        sizes = (len(self), "example"), (len(self.features), "feature"), (len(self.classes), "class")
        counted = ", ".join(_count(number, noun) for number, noun in sizes)
        return f"<Stream {self.name!r}{self._steps}: {counted}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back from a pickle writable; the constructor makes them read-only again.
        state = (self.X, self.y, self.classes, self.features, self.name, self.scaling, self._steps)
        return _rebuild, state

    def shuffle(self, seed: int) -> Stream:
        """Return the same examples in the order numpy.random.default_rng(seed).permutation(n).

        Raises ValueError or TypeError when `seed` is not an integer >= 0.
        """
        seed = whole_number("shuffle", seed, 0)
        order = np.random.default_rng(seed).permutation(len(self))
        return self._select(order, f".shuffle({seed})")

    def take(self, n: int) -> Stream:
        """Return the first n examples; the classes stay, seen or not.

        Raises ValueError or TypeError when n is not an integer from 1 to len(stream).
        """
        n = whole_number("n", n, 1)
        if n > len(self):
            raise ValueError(f"n must be at most the {len(self)} examples of the stream, got {n}")
        return self._select(slice(n), f".take({n})")

    def drop(self, n: int) -> Stream:
        """Return the examples after the first n: what is left when those went to tuning.

        Raises ValueError or TypeError when n is not an integer from 0 to len(stream) - 1.
        """
        n = whole_number("n", n, 0)
        if n >= len(self):
            raise ValueError(f"n must leave one of the {len(self)} examples of the stream, got {n}")
        return self._select(slice(n, None), f".drop({n})")

    def _select(self, rows: slice | Integers, step: str) -> Stream:
        return Stream(
            self.X[rows],
            self.y[rows],
            self.classes,
            self.features,
            self.name,
            self.scaling,
            _steps=self._steps + step,
        )


def whole_number(name: str, value: object, least: int) -> int:
    """Return `value` as int, or raise unless it is an integer >= least."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def _rebuild(*state: Any) -> Stream:
    *arguments, steps = state
    return Stream(*arguments, _steps=steps)


def _count(number: int, noun: str) -> str:
    plural = {"class": "classes"}.get(noun, noun + "s")
    return f"{number} {noun if number == 1 else plural}"


def _finite_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)


def _distinct_texts(values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"values must be a sequence of str, got {values!r}")
    strange = [value for value in values if not isinstance(value, str)]
    if strange:
        raise TypeError(f"values must be str, as a CSV file holds text, got {strange[0]!r}")
    if not values or len(set(values)) < len(values):
        raise ValueError(f"values must be distinct and at least one, got {tuple(values)!r}")
    return tuple(values)


def _check_value(text: str, values: tuple[str, ...] | None, missing: str | None) -> None:
    if text == missing or (values is not None and text in values):
        return
    if text in MISSING:
        raise ValueError(f"is missing, got {text!r}: to count it as a value of its own, declare it in the schema")
    if values is not None:
        raise ValueError(f"must be one of the declared values {values!r}, got {text!r}")
