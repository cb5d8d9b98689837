"""Label spaces: the possible labels, and their form in arrays and files.

`Classes` are labels of a fixed set, `Real` are numbers. A `Panel`, `Record`, `Monitor` or `Watch` holds a label space,
lets it check, encode and decode labels, and takes the type of its arrays from `dtype`. To add another space, add a
subclass of `LabelSpace` here, and its key in `read_labels`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from venn.parameters import class_codes, is_number, python_value
from venn.prediction import Floats, Label
from venn.saved import Saved, saved

CLASSES, NUMBERS = "classes", "numbers"  # keys in the headers of files
LARGEST_LABEL = 1e100  # the size of a label: squares and sums of squares stay finite


class LabelSpace(ABC):
    """The possible labels; a label is kept as its code, a number."""

    dtype: ClassVar[np.dtype[Any]]  #: of codes in arrays and files
    kept: ClassVar[np.dtype[Any]] = np.dtype(np.int64)  #: of codes in memory
    labels: tuple[Label, ...] = ()  #: all of them in class order; none where they are numbers

    @abstractmethod
    def encode(self, y: Any) -> Any:
        """Return the code of a label, or raise ValueError if it is not a label."""

    @abstractmethod
    def encode_many(self, labels: Sequence[Any]) -> NDArray[Any]:
        """Return (n,) codes of labels, or raise ValueError if one is not a label."""

    @abstractmethod
    def decode(self, code: Any) -> Label:
        """Return the label of a code, or raise ValueError if there is no such code."""

    @abstractmethod
    def holds(self, codes: NDArray[Any]) -> bool:
        """Whether all codes of an array of `dtype` are codes of labels."""

    @property
    @abstractmethod
    def header(self) -> dict[str, Any]:
        """What a file says of the labels, as JSON; `read_labels` reads it."""

    @property
    def told(self) -> str:
        """What labels may be, in messages."""
        return f"the classes {self.labels!r}"

    @property
    def counted(self) -> str:
        """What labels may be, in titles."""
        return f"{len(self.labels)} classes"

    def check(self, y: Any) -> None:
        """Raise ValueError if `y` is not a label."""
        self.encode(y)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash((type(self), self.labels))


class Classes(LabelSpace):
    """Labels of a fixed set, each once; their codes are their positions.

    Parameters
    ----------
    labels : sequence of hashable, finite labels
    least : int, default 2
        Least number of labels.

    Raises
    ------
    TypeError, ValueError
        `labels` is not as described.

    Examples
    --------
    >>> space = Classes(["no", "yes"])
    >>> space.encode("yes"), space.decode(0)
    (1, 'no')
    """

    dtype = np.dtype("<i4")

    def __init__(self, labels: Sequence[Label], least: int = 2) -> None:
        self._codes = class_codes(labels, least)
        self.labels = tuple(self._codes)

    def __repr__(self) -> str:
        return f"Classes({list(self.labels)!r})"

    def encode(self, y: Any) -> int:
        """Return the position of a label, or raise ValueError if there is no such label."""
        try:
            return self._codes[y if type(y) is str else python_value(y)]
        except (KeyError, TypeError):
            raise ValueError(f"y must be one of the classes {list(self.labels)!r}, got {python_value(y)!r}") from None

    def encode_many(self, labels: Sequence[Any]) -> NDArray[np.int64]:
        """Return (n,) positions of labels, or say which one is unknown."""
        try:
            return np.array([self._codes[label] for label in labels], np.int64)
        except (KeyError, TypeError):
            return np.array([self.encode(label) for label in labels], np.int64)

    def decode(self, code: Any) -> Label:
        """Return the label at a position, or raise ValueError if there is no such position."""
        if not isinstance(code, int | np.integer) or not 0 <= code < len(self.labels):
            raise ValueError(f"codes of labels must be integers from 0 to {len(self.labels) - 1}, got {code!r}")
        return self.labels[code]

    def holds(self, codes: NDArray[Any]) -> bool:
        """Whether all are positions of labels."""
        return bool(((codes >= 0) & (codes < len(self.labels))).all())

    @property
    def header(self) -> dict[str, Any]:
        """The labels as JSON values that read back as the same labels."""
        return {CLASSES: [_written(label) for label in self.labels]}


@saved
class Real(LabelSpace, Saved):
    """Labels that are numbers: finite, of size up to 1e100. Their codes are the numbers themselves.

    Examples
    --------
    >>> Real().encode(3), Real().labels
    (3.0, ())
    >>> Real().encode(float("nan"))
    Traceback (most recent call last):
    ValueError: y must be a finite number of size at most 1e+100, got nan
    """

    dtype = kept = np.dtype("<f8")
    told = counted = "numbers"

    def __repr__(self) -> str:
        return "Real()"

    def encode(self, y: Any) -> float:
        """Return a number as a float, or raise ValueError if it is not a number, not finite, or too large."""
        if type(y) is float and abs(y) <= LARGEST_LABEL:  # for speed
            return y + 0.0
        number = y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else python_value(y)
        # Written so that NaN fails.
        if not is_number(number) or not abs(number) <= LARGEST_LABEL:
            raise ValueError(f"y must be a finite number of size at most {LARGEST_LABEL:g}, got {y!r}")
        return float(number) + 0.0  # -0.0 and 0.0 are one label

    def encode_many(self, labels: Sequence[Any]) -> Floats:
        """Return (n,) numbers, or say which of them is not one."""
        return np.array([self.encode(label) for label in labels], np.float64)

    def decode(self, code: Any) -> float:
        """Return the number."""
        return self.encode(code)

    def holds(self, codes: NDArray[Any]) -> bool:
        """Whether all are numbers of that size."""
        return bool((np.abs(codes) <= LARGEST_LABEL).all())

    @property
    def header(self) -> dict[str, Any]:
        """What says that labels are numbers."""
        return {NUMBERS: True}


class HasLabels:
    """Base of what holds a label space."""

    space: LabelSpace  #: what labels may be

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.space.labels


def label_space(labels: LabelSpace | Sequence[Label]) -> LabelSpace:
    """Return a label space unchanged, or make one from a sequence of at least one class."""
    return labels if isinstance(labels, LabelSpace) else Classes(labels, least=1)


def checked_labels(name: str, labels: Any, least: int = 1) -> tuple[Label, ...]:
    """Return labels of classes, each once, or say what is wrong with them."""
    return Classes(labels, least).labels


def space_of(thing: Any) -> LabelSpace:
    """Return the label space of a machine or predictor: its `space`, or the one that its `classes` make."""
    space = getattr(thing, "space", None)
    return space if isinstance(space, LabelSpace) else label_space(tuple(thing.classes))


def read_labels(header: Mapping[str, Any]) -> LabelSpace:
    """Return the label space that the header of a file describes, or raise ValueError or TypeError."""
    if header.get(NUMBERS) is True and CLASSES not in header:
        return Real()
    labels = header.get(CLASSES)
    if not isinstance(labels, list):
        raise ValueError(f"its header has {labels!r} as {CLASSES}")
    return Classes([_written(label) for label in labels], least=1)


def _written(label: Label) -> str | int | float | bool:
    if not isinstance(label, str | int | float | bool):
        raise TypeError(f"classes must be str, int, float or bool to be saved, got {label!r}")
    return label
