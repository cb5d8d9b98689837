"""The contract between a machine and its readers: what it would look like under each hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from venn.prediction import Floats, Integers, Label


class NotConverged(RuntimeError):
    """A solver did not reach its tolerance; the message says which, and at which example."""


@dataclass(frozen=True)
class Bag:
    """Training scores of a machine; equal objects are one entry.

    Attributes
    ----------
    scores : (c, m) float64
        Score of each distinct object by each one-against-all machine.
    counts : (m, c) int64
        Number of examples of each class at each object.
    """

    scores: Floats
    counts: Integers


class Hypotheses(Protocol):
    """A machine's answer about one object, for every hypothesis on its label.

    One-against-all machines need two solutions each, not one for each hypothesis: machine k sees the
    new object as positive under hypothesis k and as negative under every other.
    """

    test_scores: Floats  #: (c,) scores of the object by the machines that have not seen it
    test: int  #: column of the object in `negative` and `positive`
    count: int  #: m, distinct objects with the object itself

    @property
    def negative(self) -> Floats:
        """(c, >= m) scores of all distinct objects when the object is supposed not of class k."""

    @property
    def positive(self) -> Floats:
        """(c, >= m) scores of all distinct objects when the object is supposed of class k."""

    @property
    def first_labels(self) -> Integers:
        """(m,) the class first seen at each distinct object."""

    @property
    def multiplicities(self) -> Integers:
        """(m,) number of examples at each distinct object."""

    @property
    def extras(self) -> Mapping[tuple[int, int], int]:
        """Number of examples by (object, class), for the classes beyond the first at an object."""

    @property
    def bag(self) -> Bag:
        """Training scores before the object came."""

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the n examples in order of arrival, the object last."""


class Machine(Protocol):
    """An underlying algorithm kept exact online."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""

    @property
    def n(self) -> int:
        """Number of examples learned."""

    @property
    def bag(self) -> Bag:
        """Training scores now."""

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions."""

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""

    def hypotheses(self, x: Any) -> Hypotheses:
        """Answer for every hypothesis about `x`; solved once, remembered until a label is learned."""

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise, and learn nothing."""

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; a refused one leaves no trace."""


def class_codes(classes: Any) -> dict[Label, int]:
    """Return the code of each label; refuse what cannot be a set of classes."""
    if isinstance(classes, str | bytes):
        raise TypeError(f"classes must be a sequence of labels, got the string {classes!r}")
    if isinstance(classes, set | frozenset):
        raise TypeError(f"classes must have an order, for ties go to the first; got the set {classes!r}")
    if isinstance(classes, np.ndarray):
        classes = classes.tolist()
    codes: dict[Label, int] = {}
    try:
        labels = list(classes)
        hash(tuple(labels))
    except TypeError as error:
        raise TypeError(f"classes must be a sequence of hashable labels, got {classes!r}") from error
    for label in labels:
        if isinstance(label, float | np.floating) and not np.isfinite(label):
            raise ValueError(f"classes must be finite labels, got {label!r}")
        if label in codes:
            raise ValueError(f"classes must be distinct, got {label!r} twice")
        codes[label] = len(codes)
    if len(codes) < 2:
        raise ValueError(f"classes must hold at least 2 labels, got {list(classes)!r}")
    return codes


def clean_object(x: Any, features: int | None) -> Floats:
    """Return `x` as a finite (d,) float64 array, or say what is wrong with it."""
    if not isinstance(x, np.ndarray) and hasattr(x, "columns"):
        raise TypeError(
            f"x must be one object, a sequence of numbers, got a {type(x).__name__}: "
            "iterate over its rows with streams.from_arrays"
        )
    if np.ma.isMaskedArray(x):
        raise TypeError(f"x must have no masked values, got {x!r}")
    try:
        clean = np.asarray(x)
        if clean.dtype.kind not in "fiub":
            raise TypeError
        # A copy; -0.0 and 0.0 become one value, for equal objects must have equal bytes.
        clean = clean.astype(np.float64) + 0.0
    except (TypeError, ValueError):
        raise TypeError(f"x must be a sequence of numbers, got {x!r}") from None
    if clean.ndim != 1 or clean.size == 0:
        raise ValueError(f"x must have one dimension and at least one feature, got shape {clean.shape}")
    if features is not None and clean.size != features:
        raise ValueError(f"x must have {features} features as the first object had, got {clean.size}")
    if not np.isfinite(clean).all():
        where = int(np.flatnonzero(~np.isfinite(clean))[0])
        raise ValueError(f"x must be finite, got {clean[where]} at feature {where}")
    return clean
