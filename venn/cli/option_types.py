"""The types of options: what a value may be, and what is kept of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict

from streams.checks import same_text
from streams.schema import THOUSANDS, Numeric
from venn.cli.errors import did_you_mean
from venn.cli.modules import is_in_module
from venn.cli.numbers import PREDICTORS as OF_NUMBERS
from venn.cli.option_forms import OptionForm, by_column, distinct, read_number, read_whole, require, split
from venn.cli.predictors import PREDICTORS
from venn.show.notify import Webhook

KNOWN = (*PREDICTORS, *OF_NUMBERS)  # predictors of classes, and of numbers
MOST = sys.float_info.max
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}  # of times, in seconds
CODE = (".joblib", ".pkl", ".pickle")  # files of models that run code as they are loaded
SCORER_FILES = (".skops", *CODE)


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in KNOWN:
            raise ValueError(f"{name!r}{did_you_mean(name, KNOWN)}")
    return distinct(names)


def _split_labels(text: str) -> list[Any]:
    parts = split(text)
    whole_ones = [read_whole(part) for part in parts]
    return whole_ones if all(isinstance(one, int) for one in whole_ones) else parts


def _labels(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    require(not same_text(labels))
    return labels


def _different(seasons: tuple[int, ...]) -> tuple[int, ...]:
    require(len(set(seasons)) == len(seasons) and (len(seasons) == 1 or 1 not in seasons))
    return seasons


def _read_column(text: str) -> tuple[str, None]:
    return convert(text, Text), None


def _read_values(text: str) -> tuple[str, tuple[str, ...] | None]:
    column, equals, values = text.partition("=")
    # One of several values may be the empty field.
    one = tuple[_Empty, ...] if "," in values else tuple[Text, ...]
    return convert(column, Text), distinct(convert(split(values), one)) if equals else None


def _read_fill(text: str) -> tuple[str, float | str]:
    column, _, value = text.rpartition("=")
    return convert(column, Text), convert(read_number(value), Fill)


def _read_unit(text: str) -> tuple[str, str]:
    column, _, unit = text.rpartition("=")
    Numeric(unit=convert(unit, Text))
    return convert(column, Text), unit


def _values(found: Any) -> dict[str, tuple[str, ...] | None]:
    """Take a table of columns with their values, of which one may be the empty field, or a list of columns alone."""
    if isinstance(found, tuple):
        return dict.fromkeys(distinct(found))
    return {column: None if values is None else distinct(values) for column, values in found.items()}


def _command(found: str | tuple[str, ...]) -> tuple[str, ...]:
    """Take a program and its arguments: a list, or text that is split as a shell would, and not changed otherwise."""
    parts = tuple(shlex.split(found)) if isinstance(found, str) else found
    require(bool(parts) and bool(parts[0]) and not any("\0" in part for part in parts))
    return parts


def _scorer(text: str) -> str:
    require(is_in_module(text) or text.endswith(SCORER_FILES))
    return text


def _address(url: str) -> str:
    Webhook(url)
    return url


def _thousands(sign: str) -> str:
    require(sign in THOUSANDS)
    return sign


def _ripe(found: str | int) -> str | int:
    if isinstance(found, str):
        require(found[-1:] in UNITS and found[:-1].isascii() and found[:-1].isdigit() and 0 < int(found[:-1]) < 10**6)
    else:
        require(1 <= found < 2**31)
    return found


def _delimiter(text: str) -> str:
    character = "\t" if text in ("tab", "\\t") else text
    require(len(character) == 1 and character not in '"\r\n')
    return character


class Affine(Struct, forbid_unknown_fields=True):
    """A scale of columns: a number for each."""

    mean: tuple[Finite, ...]
    deviation: tuple[Annotated[float, Meta(gt=0, le=MOST)], ...]


def _affine(found: Affine) -> dict[str, tuple[float, ...]]:
    require(len(found.mean) == len(found.deviation) > 0)
    return asdict(found)


# fmt: off

Finite = Annotated[float, Meta(ge=-MOST, le=MOST)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
AtLeast1 = Annotated[int, Meta(ge=1)]
Window = Annotated[int, Meta(ge=1, le=1_000_000)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Seed = Annotated[Count | Literal["none"], OptionForm("an integer >= 0 or none", read_whole, metavar="SEED")]

_TEXT, _TEXTS = "text that is not empty", "distinct texts that are not empty"
Text = Annotated[str, Meta(pattern="^[^\0\ud800-\udfff]+$")]
File = Annotated[Text, OptionForm(_TEXT, str, metavar="FILE")]
Scorer = Annotated[Text, OptionForm(
    f"MODULE:NAME, or a file {', '.join(SCORER_FILES)}", str, _scorer, "SCORER")]
Folder = Annotated[Text, OptionForm(_TEXT, str, metavar="FOLDER")]
Column = Annotated[Text, OptionForm(_TEXT, str, metavar="COLUMN")]
Address = Annotated[Text, OptionForm("http://HOST/... or https://HOST/...", str, _address, "URL")]
Delimiter = Annotated[Text, OptionForm('one character, neither " nor a line end, or tab', str, _delimiter, "CHARACTER")]
Texts = Annotated[tuple[Text, ...], OptionForm(_TEXTS, split, distinct, "NAMES")]
Names = Annotated[tuple[Text, ...], OptionForm(f"distinct names of {', '.join(KNOWN)}", split, _known, "NAMES")]
Labels = Annotated[tuple[Text | int | bool, ...], Meta(min_length=2), OptionForm(
    "at least two labels, text, integers or truth values, that differ as text", _split_labels, _labels, "A,B")]
Words = Annotated[tuple[str, ...], OptionForm(
    "a program and its arguments, as text or as a list of texts", str, _command, "COMMAND", str | tuple[str, ...])]

Ahead = Annotated[int, Meta(ge=1, le=1000)]
Seasons = Annotated[tuple[AtLeast1, ...], Meta(min_length=1), OptionForm(
    "periods, integers >= 1 and all different, separated by commas", lambda text: [read_whole(one) for one in
    text.split(",")], _different, "N,N")]
_Empty = Annotated[str, Meta(pattern="^[^\0\ud800-\udfff]*$")]  # a text that may be empty
Columns = Annotated[tuple[Text, ...], OptionForm(
    _TEXTS, lambda texts: list(by_column(texts, _read_column)), distinct, "COLUMN", typed="a column, each once",
    repeated=True)]
Values = Annotated[Mapping[str, tuple[str, ...] | None], OptionForm(
    "a table from column to a list of its values", lambda texts: by_column(texts, _read_values), _values,
    "COLUMN[=A,B]", dict[Text, tuple[_Empty, ...] | None] | tuple[Text, ...],
    "COLUMN or COLUMN=A,B, each column and each of its values once", True)]
Fill = Literal["median"] | Finite
Fills = Annotated[Mapping[str, float | str], OptionForm(
    "a table from column to median or a finite number", lambda texts: by_column(texts, _read_fill), None,
    "COLUMN=median|NUMBER", dict[Text, Fill],
    "COLUMN=median or COLUMN=NUMBER, each column once (of words, --nominal COLUMN takes a gap as one more)", True)]
Units = Annotated[Mapping[str, str], OptionForm(
    "a table from column to its unit", lambda texts: by_column(texts, _read_unit), None, "COLUMN=UNIT",
    dict[Text, Text], "COLUMN=UNIT, each column once", True)]
Thousands = Annotated[Text, OptionForm(f"one of {' '.join(THOUSANDS)} or a blank", str, _thousands, "SIGN")]
Settings = Annotated[Mapping[str, str | int | float | bool], OptionForm("a table of settings", metavar="")]
Ripe = Annotated[str | int, Meta(), OptionForm(
    "a whole number of questions, or a time such as 90d, 12h, 30m or 10s", read_whole, _ripe, "QUESTIONS|TIME")]
Scale = Annotated[Mapping[str, tuple[float, ...]], OptionForm(
    "a table of mean and deviation, lists of as many numbers, the latter > 0", None, _affine, "", Affine)]
