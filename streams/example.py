"""Examples in a fixed order (`Stream`), and the fixed scaling of their features (`Scaling`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from streams import sparse
from streams.checks import NUMBERS, Floats, Integers, Label, Objects, whole_number
from streams.encoder import Encoder, described


@dataclass(frozen=True, init=False)
class Scaling:
    """A fixed affine map of each feature: (x - mean) / deviation.

    Predictions are valid only if every step before them is fixed beforehand or treats all examples
    alike. A scaler fitted on the past of a stream does neither: it scales the newest example by
    numbers computed from the older ones only. So the package offers only a scaling given beforehand
    (this class) and the standardisation of the whole stream (`Scaling.whole`), whose numbers do not
    depend on the order of the examples.

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
            try:
                if np.asarray(given).dtype.kind == "c":  # numpy would leave out the imaginary part, with a warning
                    raise TypeError
                values = np.asarray(given, dtype=np.float64)
            except (TypeError, ValueError, OverflowError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"{name} must be a 1-D array of finite numbers, got {given!r}") from None
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
        """Return a scaled copy of X, (n, d) or (d,). A sparse X stays sparse and so needs a mean of 0."""
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
        One row for each example. Rows of a sparse X come as csr_array of shape (1, d).
    y : (n,) int64
        Positions of the labels in `classes`; the labels themselves, float64, where these are numbers.
    classes : sequence of labels
        The label set, in class order; empty where labels are numbers.
    features : sequence of d str
    name : str
    scaling : Scaling, optional
        The scaling applied to X; apply it to later objects too.

    Attributes
    ----------
    arrived : bool
        True: all examples are at hand, and reading them ahead waits for nothing.

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

    arrived = True

    #: What makes objects of raw rows; None where columns are the features.
    encoder: Encoder | None = None

    #: Arrays with a row for each example, which a subclass holds and its constructor takes by name.
    facts: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        X: Objects,
        y: Integers | Floats,
        classes: Sequence[Label],
        features: Sequence[str],
        name: str = "stream",
        scaling: Scaling | None = None,
        *,
        _steps: str = "",
        **facts: Floats,
    ) -> None:
        if facts.keys() != set(self.facts):
            raise TypeError(f"facts must be {', '.join(self.facts) or 'none'}, got {', '.join(facts) or 'none'}")
        if sparse.is_sparse(X):
            sparse.freeze(X)
        else:
            X.setflags(write=False)
        for array in (y, *facts.values()):
            array.setflags(write=False)
        vars(self).update(facts)
        self.X = X
        self.y = y
        self.classes = tuple(classes)
        self.features = tuple(features)
        self.name = name
        self.scaling = scaling
        self._steps = _steps

    def __iter__(self) -> Iterator[tuple[Objects, Label]]:
        rows = sparse.rows(self.X) if sparse.is_sparse(self.X) else self.X
        classes = self.classes
        for x, code in zip(rows, self.y.tolist(), strict=True):
            yield x, classes[code] if classes else code

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        sizes = (len(self), "example"), (len(self.features), "feature"), (len(self.classes), "class")
        counted = [_count(number, noun) for number, noun in sizes]
        if not self.classes:
            counted[-1] = NUMBERS
        return f"<Stream {self.name!r}{self._steps}: {', '.join(counted)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back from a pickle writable; the constructor makes them read-only again.
        state = (self.X, self.y, self.classes, self.features, self.name, self.scaling, self._steps)
        facts = {name: getattr(self, name) for name in self.facts}
        return _rebuild, (type(self), *state, facts), {"encoder": self.encoder}

    def encode(self, row: Any) -> Floats:
        """Return a new row, as it stands in the file or frame that this stream was read from, as an object x.

        Parameters
        ----------
        row : mapping from column to value, or sequence of values in the order of the columns, without the label

        Raises
        ------
        ValueError, TypeError
            The row has other columns, or a value that its column cannot hold.

        Examples
        --------
        >>> from streams import Nominal, from_river
        >>> rows = [({"width": 0.5, "colour": "red"}, True), ({"width": 1.5, "colour": "blue"}, False)]
        >>> stream = from_river(rows, schema={"colour": Nominal()})
        >>> stream.encode({"colour": "red", "width": 0.75})
        array([0.75, 0.  , 1.  ])
        """
        return (self.encoder or Encoder(described(self.features, None, textual=True))).object(row, self.scaling)

    def shuffle(self, seed: int) -> Stream:
        """Return the same examples in the order numpy.random.default_rng(seed).permutation(n).

        Raises ValueError or TypeError when `seed` is not an integer >= 0.
        """
        seed = whole_number("seed", seed, 0)
        order = np.random.default_rng(seed).permutation(len(self))
        return self._select(order, f".shuffle({seed})")

    def take(self, n: int) -> Stream:
        """Return the first n examples; all classes stay, even those that do not occur among them.

        Raises ValueError or TypeError when n is not an integer from 1 to len(stream).
        """
        n = whole_number("n", n, 1)
        if n > len(self):
            raise ValueError(f"n must be at most the {len(self)} examples of the stream, got {n}")
        return self._select(slice(n), f".take({n})")

    def drop(self, n: int) -> Stream:
        """Return the examples after the first n, for instance when the first n were used for tuning.

        Raises ValueError or TypeError when n is not an integer from 0 to len(stream) - 1.
        """
        n = whole_number("n", n, 0)
        if n >= len(self):
            raise ValueError(f"n must leave one of the {len(self)} examples of the stream, got {n}")
        return self._select(slice(n, None), f".drop({n})")

    def _select(self, rows: slice | Integers, step: str) -> Stream:
        facts = {name: getattr(self, name)[rows] for name in self.facts}
        return self.altered(self.X[rows], self.y[rows], step, type(self), **facts)

    def altered(self, X: Any, y: Any, step: str, kind: Any = None, **facts: Floats) -> Stream:
        """Return a stream of other examples, with one step more in its repr: a `Stream`, or one with facts."""
        other: Stream = (Stream if kind is None else kind)(
            X, y, self.classes, self.features, self.name, self.scaling, _steps=self._steps + step, **facts
        )
        other.encoder = self.encoder
        return other


def _rebuild(kind: Any, *state: Any) -> Any:
    *arguments, steps, facts = state
    return kind(*arguments, _steps=steps, **facts)


def _count(number: int, noun: str) -> str:
    plural = {"class": "classes"}.get(noun, noun + "s")
    return f"{number} {noun if number == 1 else plural}"
