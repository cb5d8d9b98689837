"""How values are written in TOML and on the command line; the type of a field reads and checks them."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable, Iterable
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import click
from msgspec import Struct, convert
from msgspec.inspect import BoolType, FloatType, IntType, LiteralType, type_info
from msgspec.structs import fields

SHOWN = 60  # characters of a wrong value


class Option(NamedTuple):
    """Describes an option; it stands beside the type of its field."""

    help: str
    on: tuple[str, ...] = ()  #: commands that take it; none: those that take its table
    name: str = ""  #: name of its flag, if it is not the key
    rare: tuple[str, ...] = ()  #: commands that take it by --set alone
    needs: tuple[str, ...] = ()  #: TABLE.KEY of options: one of them must be given too
    of: str = ""  #: kinds of sources that take it; empty: all


class OptionForm(NamedTuple):
    """How a value is written, if its type does not say so; it stands beside the type."""

    must: str  #: after "must be"
    read: Callable[[Any], Any] | None = None  #: an option's text, or texts if it is repeated; None: as TOML
    clean: Callable[[Any], Any] | None = None  #: returns what is kept of a value, or raises ValueError
    metavar: str = "TEXT"
    takes: Any = None  #: type in which it is written, if it is kept in another
    typed: str = ""  #: the requirement on the command line, if it differs
    repeated: bool = False


class Declared(NamedTuple):
    """An option as its field declares it."""

    table: str
    key: str
    type: Any
    default: Any
    option: Option
    form: OptionForm

    def flag(self, command: str = "") -> str:
        """Return how a command line names it."""
        alone = command in self.option.rare or not self.form.metavar
        return f"--set {self.table}.{self.key}" if alone else f"--{self.option.name or self.key.replace('_', '-')}"

    @property
    def help(self) -> str:
        """What it is for, and its default."""
        default = "yes" if self.default is True else self.default
        return self.option.help if default is None or default is False else f"{self.option.help}  [default: {default}]"

    def value(self, given: Any, where: str, by_option: bool) -> Any:
        """Return the checked value from TOML or an option; `where` names it in errors."""
        form, value = self.form, given
        try:
            if by_option and not isinstance(given, bool):
                value = form.read(given) if form.read else tomllib.loads(f"value = {given}")["value"]
            value = convert(value, form.takes or self.type)
            return form.clean(value) if form.clean else value
        except ValueError as error:
            got = str(error) if type(error) is ValueError and error.args else short(given)
        must, refusal = (form.typed or form.must, click.UsageError) if by_option else (form.must, click.ClickException)
        raise refusal(f"{where} must be {must}, got {got}")


def declared(table: str, struct: type[Struct]) -> dict[str, Declared]:
    """Return the options that the fields of a struct declare, by key."""
    found = {}
    for one in fields(struct):
        plain, beside = one.type.__origin__, one.type.__metadata__
        if get_origin(plain) in (Union, UnionType) and NoneType in get_args(plain):
            (plain,) = (member for member in get_args(plain) if member is not NoneType)
        kind: Any = Annotated[(plain, *beside)]
        option = next(each for each in beside if isinstance(each, Option))
        form = next((each for each in kind.__metadata__ if isinstance(each, OptionForm)), None) or _plain(kind)
        found[one.name] = Declared(table, one.name, kind, one.default, option, form)
    return found


def _plain(kind: Any) -> OptionForm:
    """Return how a value of a plain type is written."""
    match type_info(kind):
        case BoolType():
            return OptionForm("true or false", lambda text: {"true": True, "false": False}.get(text, text))
        case LiteralType():
            values = get_args(kind.__origin__)
            return OptionForm(f"one of {', '.join(values)}", str, metavar="|".join(values))
        case IntType() as found:
            return OptionForm(f"an integer {_bounds(found)}", read_whole, metavar="INTEGER")
        case FloatType() as found:
            return OptionForm(f"a number {_bounds(found)}", read_number, finite, "NUMBER")
    return OptionForm("text that is not empty", str)


def _bounds(of: Any) -> str:
    if of.gt is not None and of.lt is not None:
        return f"between {of.gt} and {of.lt}, both excluded"
    if of.ge is not None and of.le is not None:
        return f"from {of.ge} to {of.le}"
    return f"> {of.gt}" if of.ge is None else f">= {of.ge}"


def short(value: Any) -> str:
    """Return a wrong value as an error shows it."""
    try:
        text = json.dumps(value, ensure_ascii=True) if not isinstance(value, str) else repr(value)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def require(condition: bool) -> None:
    """Raise a ValueError without a text; the caller words it."""
    if not condition:
        raise ValueError


def finite(value: float) -> float:
    """Return a number that is neither infinite nor nan."""
    require(isfinite(value))
    return value


def distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts; refuse none, and repeated ones."""
    require(0 < len(set(texts)) == len(texts))
    return texts


def split(text: str) -> list[str]:
    """Return the parts between commas; as in CSV, a part in quotes may hold commas."""
    if '"' not in text:
        return [part.strip() for part in text.split(",")]
    try:
        return [part.strip() for part in next(csv.reader([text], skipinitialspace=True, strict=True))]
    except csv.Error:  # a quote without its end
        raise ValueError(short(text)) from None


def read_whole(text: str) -> Any:
    """Return the integer that a text shows, or the text itself: 01 is a text."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return text
    return int(text) if str(int(text)) == text else text


def read_number(text: str) -> Any:
    """Return the number that a text shows, or the text itself."""
    try:
        return float(text)
    except ValueError:
        return text


def by_column(texts: Iterable[str], pair: Callable[[str], tuple[str, Any]]) -> dict[str, Any]:
    """Read the texts of a repeated option by column; `pair` turns one into column and value, or raises ValueError."""
    found: dict[str, Any] = {}
    for text in texts:
        try:
            column, value = pair(text)
        except ValueError:
            raise ValueError(short(text)) from None
        if column in found:
            raise ValueError(f"{short(column)} twice")
        found[column] = value
    return found
