"""The form of messages: features, their kinds, classes; and the decoder from text to objects and labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite, nan
from typing import Any, Literal

import numpy as np

from streams.checks import (
    NUMBERS,
    VALUES,
    Floats,
    Label,
    are_numbers,
    distinct_names,
    filled_text,
    is_finite,
    label_set,
    python_label,
    same_text,
    shown,
)
from streams.encoder import Column, Encoder, Labels, described, in_order
from streams.example import Scaling
from streams.json_text import from_json, utf8, whole_unicode
from streams.schema import PLAIN, ColumnKind, Nominal, Numeric, Refused, checked_schema, kinds_of

Identity = int | str
#: Id, object and label of a message, and its time where it has one; see `Message`.
Parts = tuple[Identity | None, Floats | None, Label | None] | tuple[Identity | None, Floats | None, Label | None, float]


class Unnamed(Refused):
    """An object with names where no features are declared: the names."""

    def __init__(self, what: str, remedy: str, names: Sequence[str]) -> None:
        super().__init__(what, remedy)
        self.names = tuple(names)


@dataclass(frozen=True)
class Form:
    """Declares the features, classes and scaling of a live source's messages.

    Everything is declared beforehand: a stream that is still to come has no median, set of values or mean that
    could be computed first (see `Scaling`).

    Parameters
    ----------
    features : sequence of distinct str, optional
        Names of the object's values, in order. Required where objects are mappings from name to value. For a CSV
        file the default is all columns except label and id. Without names an object may have any number of values:
        who learns from them refuses another one.
    classes : sequence of labels, or "numbers", optional
        The label set, distinct as text. A label outside it is refused. Where a source holds text only, a label is
        the class with the same text. "numbers": labels are finite numbers. "values": they are the values of a series.
        The object, its covariates, may then be left out, or be a list of those of several steps; a value that is null,
        or an empty cell, is NaN: it is missing, and time goes on. Without classes any text, number or truth value is a
        label.
    schema : mapping from feature to Numeric, Nominal, Ordinal or Skip, optional
        As in `from_csv`. A Nominal needs its values and a Numeric a number to fill. Features are Numeric
        otherwise. `null` in JSON is a missing value.
    scaling : Scaling, optional
        Applied to the encoded object.
    make : callable, optional
        Makes the object in place of the encoder, for a model that reads columns by itself: of a dict from feature to
        cell, or of a list of cells where no features are known. Cells of a file of rows are text. A ValueError that it
        raises says what is wrong with the message. Not with a schema or scaling.
    key : str, optional
        Of messages in JSON, the name of the value beside id, x and y that says to which of many streams a message
        belongs: a text without a slash. Each message must have it and an id; what is read as its id is "key/id".

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> Form(features=["width", "height"], classes=["no", "yes"])
    Form(features=('width', 'height'), classes=('no', 'yes'), schema=None, scaling=None, make=None, key=None)
    >>> Decoder(Form(key="shop")).json('{"shop": "Oslo", "id": 7, "x": [1.5]}')
    ('Oslo/7', array([1.5]), None)
    >>> Decoder(Form(features=["city"], make=dict)).point({"city": "Oslo"})
    {'city': 'Oslo'}
    """

    features: Sequence[str] | None = None
    classes: Sequence[Label] | Literal["numbers", "values"] | None = None
    schema: Mapping[str, ColumnKind] | None = None
    scaling: Scaling | None = None
    make: Callable[[Any], Any] | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.key is not None and filled_text("key", self.key) in ("id", "x", "y"):
            raise ValueError(f"key must be another name than id, x and y, got {self.key!r}")
        if self.make is not None and not callable(self.make):
            raise TypeError(f"make must be a function of an object's cells, or None, got {self.make!r}")
        if self.make is not None and (self.schema is not None or self.scaling is not None):
            raise ValueError("make must be None where there is a schema or scaling, which make the object")
        if self.features is not None:
            names = distinct_names("features", self.features)
            if not names:
                raise ValueError("features must name at least one value, got none")
            object.__setattr__(self, "features", names)
        if self.classes is not None and not are_numbers(self.classes) and not self.of_series:
            classes = label_set(self.classes)
            if same_text(classes):
                raise ValueError(f"classes must be distinct as text, got {classes!r}")
            object.__setattr__(self, "classes", classes)
        if self.schema is not None:
            object.__setattr__(self, "schema", checked_schema(self.schema))
            if self.features is not None:
                kinds_of(self.features, self.schema)
            for name, kind in self.schema.items():
                _check_declared(name, kind)
        if self.scaling is not None and not isinstance(self.scaling, Scaling):
            raise TypeError(f"scaling must be a Scaling, got {self.scaling!r}")

    @property
    def of_series(self) -> bool:
        """Whether labels are the values of a series."""
        return isinstance(self.classes, str) and self.classes == VALUES


def _check_declared(name: str, kind: ColumnKind) -> None:
    """Refuse a kind that only a whole stream would settle."""
    if isinstance(kind, Nominal) and kind.values is None:
        raise ValueError(
            f"schema[{name!r}] must have its values declared, as the stream has not come yet, got {kind!r}"
        )
    if isinstance(kind, Numeric) and kind.fill == "median":
        raise ValueError(f"schema[{name!r}] must fill with a number, as the stream has not come yet, got {kind!r}")


class Decoder:
    """Turns the parts of a message into id, object and label, or raises ValueError or TypeError saying why not.

    Parameters
    ----------
    form : Form
    textual : bool, default False
        Whether values of objects are text, "1.5" as well as "red"; without it numbers are numbers.
    written : Numeric, optional
        How numbers that are text are written, where the schema does not say.

    Examples
    --------
    >>> Decoder(Form(features=["a", "b"])).json('{"id": 7, "x": {"b": 2, "a": 1}, "y": "no"}')
    (7, array([1., 2.]), 'no')
    """

    def __init__(self, form: Form, textual: bool = False, written: Numeric = PLAIN) -> None:
        self.features: tuple[str, ...] | None = None
        self._form = form
        self._textual, self._written = textual, written
        self.of_series = form.of_series
        self._labels = Labels.of(NUMBERS if self.of_series else form.classes, written=written)
        self._encoder: Encoder | None = None
        if self.of_series:
            self.features = ()  # no covariates, unless they are declared
        if form.features is not None:
            self.name(tuple(form.features))

    def name(self, features: tuple[str, ...]) -> None:
        """Fix the names of the object's values."""
        self._encoder = Encoder(self._described(features, self._form.schema))
        self.features = features

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded values of an object; empty while none are known."""
        return () if self.features is None or self._encoder is None else self._encoder.names

    def _described(self, features: Sequence[str], schema: Mapping[str, ColumnKind] | None) -> list[Column]:
        return described(features, schema, self._textual, self._written.decimal, self._written.thousands)

    def json(self, text: str | bytes) -> Parts:
        """Return id, x and y of a JSON object, each None where absent or null, and `at` if it is there.

        Other keys are ignored.
        """
        if isinstance(text, bytes):
            text = utf8(text)  # json.loads would guess at UTF-16 and UTF-32
        value = from_json(text)
        if not isinstance(value, dict):
            raise ValueError(f"must be a JSON object with id, x, y, got {shown(text)}")
        identity, x, y, at = value.get("id"), value.get("x"), value.get("y"), value.get("at")
        if self.of_series and y is None:
            x, y = (x, nan) if "y" in value else (() if x is None else x, None)
        identity = None if identity is None else check_id(identity)
        parts = self.parts(
            identity if self._form.key is None else _with_key(self._form.key, value.get(self._form.key), identity),
            None if x is None else self.point(x),
            None if y is None else self.label(y),
        )
        return parts if at is None else (parts[0], parts[1], parts[2], seconds(at))

    def parts(self, identity: Identity | None, x: Floats | None, y: Label | None) -> Parts:
        """Return the three parts, or raise unless they make a question, an answer or an example."""
        if x is None and y is None:
            raise ValueError("must have x, y or both, got neither")
        if x is None and identity is None and not self.of_series:
            raise ValueError("must have an id, as it has y and no x, got none")
        return identity, x, y

    def point(self, x: Any) -> Any:
        """Return the object of a list of values, or of a mapping from feature to value: (d',) numbers, or as made."""
        if self.of_series and isinstance(x, list) and x and isinstance(x[0], list | Mapping):
            return np.concatenate([self.point(one) for one in x])
        if self.of_series and isinstance(x, tuple) and not x:
            return np.empty(0)
        if isinstance(x, Mapping):
            if self.features is None:
                what = f"x has names, and no features are declared, got {shown(dict(x))}"
                raise Unnamed(what, f": declare them in the form, as features={list(x)!r}", list(x))
            values = in_order(x, self.features)
        elif isinstance(x, list):
            values = x
        else:
            raise ValueError(f"x must be a list of numbers or an object from feature to value, got {shown(x)}")
        return self.row(values, x)

    def row(self, values: list[Any], x: Any = None) -> Any:
        """Return the object of values in the order of the features; errors show the `x` that had them."""
        if not values:
            raise ValueError("x must have at least one value, got none")
        if self._form.make is not None:
            if self.features is None:
                return self._form.make(values)
            if len(values) != len(self.features):
                raise ValueError(f"x must have {len(self.features)} values, got {len(values)}")
            return self._form.make(dict(zip(self.features, values, strict=True)))
        encoder = self._encoder
        if encoder is None or (self.features is None and len(values) != len(encoder.columns)):
            # What no names declare is up to who learns from it: one bad object must not shut out all later ones.
            if self._form.schema:
                raise ValueError("features must be named, as the schema names them, got a list of values")
            encoder = Encoder(self._described([""], None) * len(values))
        if len(values) != len(encoder.columns):
            raise ValueError(f"x must have {len(encoder.columns)} values, got {len(values)}")
        encoded = encoder.row(values, self._where)
        if self._form.scaling is not None:
            with np.errstate(over="ignore"):
                encoded = self._form.scaling(encoded)
            if not np.isfinite(encoded).all():
                given = dict(zip(self.features or (), values, strict=True)) if x is None else x
                raise ValueError(f"x must stay finite when scaled, got {shown(given)}")
        encoded.setflags(write=False)
        self._encoder = encoder
        return encoded

    def label(self, y: Any) -> Label:
        """Return the label for a value read from JSON; of a series NaN for a missing one."""
        if self.of_series and (y is None or y != y):
            return nan
        if self._labels.any:
            if not isinstance(y, str | int | float):
                raise ValueError(f"y must be text, a number or a truth value, got {shown(y)}")
            if isinstance(y, float) and not isfinite(y):
                raise ValueError(f"y must be finite, got {y!r}")
            return whole_unicode("y", y) if isinstance(y, str) else y
        return self._decoded(self._labels.value, y)

    def text_label(self, text: str) -> Label | None:
        """Return the class whose text is `text`, or the number; None for a missing label."""
        if self._labels.lacks_text(text):
            return nan if self.of_series else None
        return self._decoded(self._labels.read, text)

    def _decoded(self, read: Callable[[Any], float], label: Any) -> Label:
        try:
            code = read(label)
        except Refused as error:
            raise Refused(f"y {error.what}", error.remedy) from None
        return label if self._labels.any else code if self._labels.classes is None else self._labels.classes[int(code)]

    def _where(self, j: int, i: int | None) -> str:
        return f"x[{j}]" if not self.features else f"x, feature {self.features[j]!r}"


def seconds(at: Any) -> float:
    """Return a time in seconds since 1970, or say what is wrong with it.

    Examples
    --------
    >>> seconds("1970-01-02T00:00:00Z"), seconds(3)
    (86400.0, 3.0)
    """
    wanted = "at must be seconds since 1970, or text such as 2026-01-31T12:00:00Z with a time zone"
    try:
        found = datetime.fromisoformat(at) if isinstance(at, str) else None
    except ValueError:
        raise ValueError(f"{wanted}, got {shown(at)}") from None
    if found is not None and found.tzinfo is not None:
        return found.timestamp()
    if found is not None or isinstance(at, bool) or not isinstance(at, int | float) or not is_finite(at):
        raise ValueError(f"{wanted}, got {shown(at)}")
    return float(at)


def _with_key(name: str, key: object, identity: Identity | None) -> str:
    """Return the key and the id of a message as one id."""
    if not isinstance(key, str) or not key or "/" in key:
        raise ValueError(f"{name} must be text without a slash, got {shown(key)}")
    if identity is None:
        raise ValueError(f"must have an id beside {name}, got none")
    return f"{whole_unicode(name, key)}/{identity}"


def check_id(value: object) -> Identity:
    """Return the id, or raise unless it is text or an integer of 64 bits: what every journal can hold."""
    if isinstance(value, str):
        if not value:
            raise ValueError("id must not be empty, got ''")
        return whole_unicode("id", value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError(f"id must be text or an integer of 64 bits, got {shown(value)}")
    return value


def to_json(id: Identity | None = None, x: object = None, y: Label | None = None) -> str:
    """Return the JSON of a message, on one line: what `JSONLines` and the brokers read.

    Parameters
    ----------
    id : int or str, optional
        Required for an answer.
    x : sequence of finite numbers, or mapping from feature to number or text, optional
    y : str, finite number or bool, optional

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or both x and y are missing.

    Examples
    --------
    >>> to_json(7, [1, 2.5])
    '{"id": 7, "x": [1.0, 2.5]}'
    >>> to_json(7, y="no")
    '{"id": 7, "y": "no"}'
    """
    message: dict[str, Any] = {}
    if id is not None:
        message["id"] = check_id(python_label(id))
    if x is not None:
        message["x"] = _plain(x)
    if y is not None:
        message["y"] = Decoder(Form()).label(python_label(y))
    Decoder(Form()).parts(message.get("id"), None if x is None else np.empty(0), message.get("y"))
    return json.dumps(message, allow_nan=False)


def _plain(x: Any) -> dict[str, Any] | list[float]:
    """Return the values of an object as JSON holds them."""
    if isinstance(x, Mapping):
        values = {name: python_label(value) for name, value in x.items()}
        numbers = [name for name in distinct_names("x", values) if not isinstance(values[name], str)]
        if numbers:
            Decoder(Form(features=numbers)).point({name: values[name] for name in numbers})
        return values
    row = np.asarray(x)
    if row.ndim != 1 or not len(row) or row.dtype.kind not in "iuf" or not np.isfinite(row).all():
        raise ValueError(f"x must be a sequence of finite numbers, or a mapping from feature to value, got {shown(x)}")
    return row.astype(np.float64).tolist()
