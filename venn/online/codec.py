"""Objects and predictions as bytes, and back, bit for bit: what a journal keeps of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from venn.machines.sparse import SparseRows, clean_sparse, is_sparse, read_object
from venn.monitors.outcomes import KINDS
from venn.parameters import Parameters
from venn.prediction import (
    EACH_CLASS,
    ERROR_BOUND,
    ERROR_RATE,
    NOTHING,
    PREDICTED_LABEL,
    REALISED_ROW,
    CategoryClass,
    ClassIntervals,
    Floats,
    Forecast,
    Label,
    Maximin,
    Multiprobability,
    Prediction,
    PredictionSet,
    RowMean,
    Rule,
)

# Kind, guarantee, rule (of a multiprobability), position of the predicted class, class of the category or -1; then
# the numbers of the prediction, float64.
HEAD = struct.Struct("<BBBxii")
GUARANTEES = (PREDICTED_LABEL, REALISED_ROW, EACH_CLASS, ERROR_RATE, ERROR_BOUND, NOTHING)
RULES: tuple[type, ...] = (RowMean, Maximin, CategoryClass)
OWN_RULE = len(RULES)
PLACES = {kind: place for place, kind in enumerate(KINDS)}
NUMBER = np.dtype("<f8")


class Chosen(Parameters):
    """Stands for a rule of a user's own: what it has chosen is known."""

    def __init__(self, index: int) -> None:
        self.index = index

    def choose(self, probabilities: Floats, category_class: int | None) -> int:
        """Return what the rule chose."""
        return self.index


def copy_object(x: Any) -> Any:
    """Return a copy of an object as `decode_object` will give it back, an array or a sparse row (1, d).

    Raises
    ------
    TypeError, ValueError
        It is neither.
    """
    return clean_sparse("x", x, None).tocsr() if is_sparse(x) else np.array(x, NUMBER)


def encode_object(x: Any) -> bytes:
    """Return as bytes what `copy_object` has made."""
    return clean_sparse("x", x, None).tobytes() if is_sparse(x) else np.ascontiguousarray(x, NUMBER).tobytes()


def decode_object(content: bytes) -> Any:
    """Return the object that `encode_object` wrote: an array (d,), or a `scipy.sparse.csr_array` (1, d).

    Raises
    ------
    ValueError
        The bytes are not that.
    """
    x = read_object(content)
    return x.tocsr() if isinstance(x, SparseRows) else x


def encode(predictions: Mapping[str, Prediction]) -> bytes:
    """Return the predictions, in order, as bytes; equal predictions make equal bytes.

    Raises
    ------
    TypeError
        One is not a prediction.
    """
    parts: list[bytes] = []
    for name, prediction in predictions.items():
        kind = type(prediction).__name__
        place = PLACES.get(kind)
        if place is None:
            raise TypeError(f"{name} must predict one of {', '.join(KINDS)}, got {prediction!r}")
        rule = category = 0
        if isinstance(prediction, Multiprobability):
            known = type(prediction.rule)
            rule = RULES.index(known) if known in RULES else OWN_RULE
            category = -1 if prediction.category_class is None else prediction.category_class
        guaranteed = GUARANTEES.index(prediction.guaranteed)
        parts += (
            HEAD.pack(place, guaranteed, rule, prediction.index, category),
            np.ascontiguousarray(getattr(prediction, KINDS[kind].attribute), NUMBER).tobytes(),
        )
    return b"".join(parts)


def decode(content: bytes, names: Sequence[str], classes: tuple[Label, ...]) -> dict[str, Prediction]:
    """Return the predictions that `encode` wrote, by name.

    Raises
    ------
    ValueError
        The bytes are not that.
    """
    predictions: dict[str, Prediction] = {}
    start, c = 0, len(classes)
    try:
        for name in names:
            place, guaranteed, rule, index, category = HEAD.unpack_from(content, start)
            kind = tuple(KINDS)[place]
            shape = KINDS[kind].shape(c)
            size = int(np.prod(shape))
            start += HEAD.size
            numbers = np.frombuffer(content, NUMBER, size, start).reshape(shape)
            start += size * NUMBER.itemsize
            if not 0 <= index < c or not -1 <= category < c:
                raise ValueError(f"classes {index} and {category} of {c}")
            predictions[name] = _prediction(kind, numbers, classes, GUARANTEES[guaranteed], rule, index, category)
        if start != len(content):
            raise ValueError(f"{len(content)} bytes where {start} belong")
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise ValueError(f"predictions must be those of {', '.join(names)}, got damaged ones: {error}") from error
    return predictions


def _prediction(
    kind: str, numbers: Any, classes: tuple[Label, ...], guaranteed: str, rule: int, index: int, category: int
) -> Prediction:
    if kind == "Forecast":
        return Forecast(numbers, classes)
    if kind == "ClassIntervals":
        return ClassIntervals(numbers, classes)
    if kind == "PredictionSet":
        return PredictionSet(numbers, classes, guaranteed == ERROR_RATE)
    chosen: Rule = Chosen(index) if rule == OWN_RULE else RULES[rule]()
    return Multiprobability(numbers, classes, chosen, None if category < 0 else category, guaranteed)
