"""The configuration of a run: a TOML file and the command line's options, declared once and checked alike."""

from __future__ import annotations

import csv
import json
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

import click
from click.core import ParameterSource
from msgspec import Meta, Struct, convert
from msgspec.structs import asdict

from streams.checks import same_text
from venn.cli.errors import did_you_mean
from venn.cli.groups import GROUPS
from venn.cli.numbers import PREDICTORS as OF_NUMBERS
from venn.cli.predictors import ALSO_ADAPTIVE, KERNELS, PREDICTORS
from venn.show.notify import EVERY, Webhook

Command = TypeVar("Command", bound=Callable[..., Any])

KNOWN = (*PREDICTORS, *OF_NUMBERS)  # predictors of classes, and of numbers
SHOWN = 60  # characters of a wrong value
MOST = sys.float_info.max

Finite = Annotated[float, Meta(ge=-MOST, le=MOST)]
ABOVE_0 = Meta(gt=0, le=MOST)


class Kind(NamedTuple):
    """A kind of value: what it must be, how an option's text is read, and how the value is checked."""

    must: str  #: after "must be"
    check: Callable[[Any], Any]  #: returns the clean value, or raises ValueError
    read: Callable[[Any], Any] = str  #: may raise ValueError, too
    metavar: str = "TEXT"
    typed: str = ""  #: the requirement for an option, where it differs
    repeated: bool = False  #: an option that may be repeated; `read` takes all its texts


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _text(value: Any) -> str:
    _require(isinstance(value, str) and bool(value) and "\0" not in value)
    value.encode()  # a UnicodeEncodeError is a ValueError
    return str(value)


def _texts(value: Any, empty: bool = False) -> tuple[str, ...]:
    _require(isinstance(value, list | tuple) and bool(value))
    clean = tuple("" if empty and one == "" else _text(one) for one in value)
    _require(len(set(clean)) == len(clean))
    return clean


def _labels(value: Any) -> tuple[str | int | bool, ...]:
    labels = convert(value, Annotated[tuple[str | int | bool, ...], Meta(min_length=2)])
    _require(not same_text(labels))
    return tuple(_text(one) if isinstance(one, str) else one for one in labels)


def _names(value: Any) -> tuple[str, ...]:
    clean = _texts(value)
    for name in clean:
        if name not in KNOWN:
            raise ValueError(f"{name!r}{did_you_mean(name, KNOWN)}")
    return clean


def _values(value: Any) -> dict[str, tuple[str, ...] | None]:
    """Take a table of columns with their values, of which one may be the empty field, or a list of columns alone."""
    if isinstance(value, list):
        return dict.fromkeys(_texts(value))
    _require(isinstance(value, dict))
    return {_text(column): None if found is None else _texts(found, empty=True) for column, found in value.items()}


def _fills(value: Any) -> dict[str, float | str]:
    _require(isinstance(value, dict))
    return {_text(column): _fill(found) for column, found in value.items()}


def _fill(value: Any) -> float | str:
    return convert(value, Literal["median"] | Finite)


def _command(value: Any) -> tuple[str, ...]:
    """Take a program and its arguments: a list, or text that is split as a shell would, and not changed otherwise."""
    parts = shlex.split(_text(value)) if isinstance(value, str) else convert(value, list[str])
    _require(bool(parts) and bool(parts[0]) and not any("\0" in part for part in parts))
    return tuple(parts)


def _address(value: Any) -> str:
    url = _text(value)
    Webhook(url)
    return url


def _delimiter(value: Any) -> str:
    character = "\t" if value in ("tab", "\\t") else _text(value)
    _require(len(character) == 1 and character not in '"\r\n')
    return character


class _Affine(Struct, forbid_unknown_fields=True):
    mean: tuple[Finite, ...]
    deviation: tuple[Annotated[float, ABOVE_0], ...]


def _affine(value: Any) -> dict[str, tuple[float, ...]]:
    clean = asdict(convert(value, _Affine))
    _require(len(clean["mean"]) == len(clean["deviation"]) > 0)
    return clean


def _of(kind: Any) -> Callable[[Any], Any]:
    """Return the check of a type and its bounds."""
    return lambda value: convert(value, kind)


def _split(text: str) -> list[str]:
    """Return what stands between commas; as in CSV, a part in quotes may hold commas itself."""
    if '"' not in text:
        return [part.strip() for part in text.split(",")]
    try:
        return [part.strip() for part in next(csv.reader([text], skipinitialspace=True, strict=True))]
    except csv.Error:  # a quote without its end
        raise ValueError(_short(text)) from None


def _split_labels(text: str) -> list[Any]:
    parts = _split(text)
    whole_ones = [_read_whole(part) for part in parts]
    return whole_ones if all(isinstance(one, int) for one in whole_ones) else parts


def _read_whole(text: str) -> Any:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return text
    return int(text) if str(int(text)) == text else text  # 01 is a text


def _read_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _by_column(texts: Iterable[str], pair: Callable[[str], tuple[str, Any]]) -> dict[str, Any]:
    """Read the texts of a repeated option by column; `pair` turns one into column and value, or raises ValueError."""
    found: dict[str, Any] = {}
    for text in texts:
        try:
            column, value = pair(text)
            _text(column)
        except ValueError:
            raise ValueError(_short(text)) from None
        if column in found:
            raise ValueError(f"{_short(column)} twice")
        found[column] = value
    return found


def _split_columns(texts: Iterable[str]) -> dict[str, tuple[str, ...] | None]:
    """Read COLUMN or COLUMN=VALUE,VALUE of a repeated option."""

    def pair(text: str) -> tuple[str, tuple[str, ...] | None]:
        column, equals, values = text.partition("=")
        return column, _texts(_split(values)) if equals else None

    return _by_column(texts, pair)


def _split_fills(texts: Iterable[str]) -> dict[str, float | str]:
    """Read COLUMN=median or COLUMN=NUMBER of a repeated option."""

    def pair(text: str) -> tuple[str, float | str]:
        column, _, value = text.rpartition("=")
        return column, _fill(_read_number(value))

    return _by_column(texts, pair)


def _read_columns(texts: Iterable[str]) -> list[str]:
    return list(_by_column(texts, lambda text: (text, None)))


def whole(least: int, most: int = 2**31) -> Kind:
    """Return the kind of the integers from `least` to `most`."""
    bounds = f">= {least}" if most == 2**31 else f"from {least} to {most}"
    return Kind(f"an integer {bounds}", _of(Annotated[int, Meta(ge=least, le=most)]), _read_whole, "INTEGER")


def number(must: str, bounds: Meta) -> Kind:
    """Return the kind of the numbers within bounds."""
    return Kind(f"a number {must}", _of(Annotated[float, bounds]), _read_number, "NUMBER")


def choice(*values: str) -> Kind:
    """Return the kind of some words."""
    return Kind(f"one of {', '.join(values)}", _of(Literal[values]), metavar="|".join(values))


TEXT = Kind("text that is not empty", _text)
FILE = Kind("text that is not empty", _text, metavar="FILE")
TEXTS = Kind("distinct texts that are not empty", _texts, _split, "NAMES")
LABELS = Kind("at least two labels, text, integers or truth values, that differ as text", _labels, _split_labels, "A,B")
NAMES = Kind(f"distinct names of {', '.join(KNOWN)}", _names, _split, "NAMES")
FLAG = Kind("true or false", _of(bool))
VALUES = Kind(
    "a table from column to a list of its values", _values, _split_columns, "COLUMN[=A,B]",
    "COLUMN or COLUMN=A,B, each column and each of its values once", True,
)  # fmt: skip
COLUMNS = Kind("distinct texts that are not empty", _texts, _read_columns, "COLUMN", "a column, each once", True)
FILLS = Kind(
    "a table from column to median or a finite number", _fills, _split_fills, "COLUMN=median|NUMBER",
    "COLUMN=median or COLUMN=NUMBER, each column once", True,
)  # fmt: skip
COMMAND = Kind("a program and its arguments, as text or as a list of texts", _command, metavar="COMMAND")
ADDRESS = Kind("http://HOST/... or https://HOST/...", _address, metavar="URL")
DELIMITER = Kind('one character, neither " nor a line end, or tab', _delimiter, metavar="CHARACTER")
AFFINE = Kind("a table of mean and deviation, lists of as many numbers, the latter > 0", _affine)
SETTINGS = Kind("a table of settings", _of(dict[str, str | int | float | bool]))
POSITIVE = number("> 0", ABOVE_0)
NOT_NEGATIVE = number(">= 0", Meta(ge=0, le=MOST))
SHARE = number("from 0 to 1", Meta(ge=0, le=1))
LEVEL = number("between 0 and 1, both excluded", Meta(gt=0, lt=1))


def declare(kind: Kind, help: str, default: Any = None, option: str | None = "") -> Any:
    """Declare a key; `option` names its option: by default the key itself, None if it has none."""
    return field(default=default, metadata={"kind": kind, "help": help, "option": option})


@dataclass(frozen=True)
class RunTable:
    """How the loop runs."""

    out: str = declare(FILE, "Where predictions go as JSON lines, appended; - is stdout.  [default: -]", "-")
    batch: int = declare(whole(1, 100_000), "Largest number of messages in a transaction.  [default: 512]", 512)
    linger: float = declare(
        number("from 0.01 to 60", Meta(ge=0.01, le=60)),
        "Seconds that a message waits for its transaction, about, at most.  [default: 0.2]", 0.2,
    )  # fmt: skip
    skip_bad: bool = declare(FLAG, "Count and skip messages that cannot be read.", False)
    skip_lost: bool = declare(FLAG, "Go on where messages were lost before they were read.", False)
    progress: bool = declare(FLAG, "Show progress on stderr.  [default: yes]", True)
    quiet: bool = declare(FLAG, "Say nothing on stderr but errors.", False)
    metrics_port: int | None = declare(whole(1, 65535), "Serve metrics to Prometheus at this port.")
    metrics_host: str = declare(TEXT, "Address of the metrics.  [default: 127.0.0.1]", "127.0.0.1")
    metrics_allow: tuple[str, ...] | None = declare(
        TEXTS, "Other names, NAME or NAME:PORT, under which the metrics may be asked, separated by commas."
    )
    metrics_token_file: str | None = declare(
        FILE, "The token for the metrics is the first line of this file.  [default: $VENN_TOKEN, or none]"
    )
    metrics_no_token: bool = declare(FLAG, "Ask for no token even where other machines can connect.", False)


@dataclass(frozen=True)
class SourceTable:
    """Where messages come from, and their form."""

    url: str | None = declare(TEXT, "Where messages come from, see above.", option="source")
    name: str | None = declare(TEXT, "Name of the source in the journal.  [default: made from its address]")
    new: bool = declare(FLAG, "Let a journal that has read other sources continue with this one.", False, "new-source")
    classes: tuple[str | int | bool, ...] | None = declare(
        LABELS,
        "The labels; integers where all look like integers. The configuration file also takes other kinds, as "
        'classes = ["0", "1"] or [true, false].',
    )
    numbers: bool | None = declare(
        FLAG, "Labels are numbers. A CSV file given by name is looked at: --no-numbers takes its labels as classes."
    )
    features: tuple[str, ...] | None = declare(TEXTS, "Names of an object's values, in order.")
    nominal: Mapping[str, tuple[str, ...] | None] | None = declare(VALUES, "A nominal feature, repeatable.")
    ordinal: Mapping[str, tuple[str, ...] | None] | None = declare(VALUES, "An ordinal feature, repeatable.")
    scaling: Mapping[str, tuple[float, ...]] | None = declare(AFFINE, "", option=None)
    label: str | None = declare(TEXT, "Column of the label in CSV.")
    id: str | None = declare(TEXT, "Column of the id in CSV.")
    skip: tuple[str, ...] | None = declare(COLUMNS, "A column to leave out, repeatable.")
    fill: Mapping[str, float | str] | None = declare(
        FILLS, "What replaces missing numbers of a column, repeatable; the median only in a file given by name."
    )
    missing_texts: tuple[str, ...] | None = declare(
        TEXTS, "Further texts that mean a missing value in a CSV file, as the empty field does, separated by commas."
    )
    drop_unlabelled: bool = declare(FLAG, "Leave out rows of a CSV file whose label is missing.", False)
    merge_alike: bool = declare(
        FLAG,
        "Take labels, and nominal values, that are the same written differently as one: they differ in blanks, "
        "capitals, a dot at the end, the form of a number or the Unicode form.",
        False,
    )
    delimiter: str = declare(DELIMITER, "Separator of CSV fields, or tab.  [default: ,]", ",")
    decimal: Literal[".", ","] = declare(choice(".", ","), "What stands before decimals in CSV.  [default: .]", ".")
    end: bool = declare(FLAG, "Stop at the end of the file.", False)
    group: str | None = declare(TEXT, "Group under which a Kafka broker receives the run's position.")
    kafka: Mapping[str, str | int | float | bool] | None = declare(SETTINGS, "", option=None)
    delay: int | None = declare(whole(0), "Questions between a data set's question and its answer.  [default: 0]")
    missing: float | None = declare(SHARE, "Share of a data set's answers that never come.  [default: 0]")
    shuffle: int | None = declare(whole(0), "Seed of a data set's order.  [default: its own order]")
    steps: int | None = declare(whole(1), "Largest number of examples of a data set.")


@dataclass(frozen=True)
class PredictorTable:
    """Who predicts."""

    names: tuple[str, ...] | None = declare(NAMES, "Separated by commas, see below.", option="predictors")
    adaptive: bool = declare(FLAG, ALSO_ADAPTIVE, False)
    groups: str | None = declare(TEXT, GROUPS)


@dataclass(frozen=True)
class MachineTable:
    """What the predictors read."""

    kernel: str = declare(choice(*KERNELS), "[default: rbf; of several widths for numbers]", "rbf")
    gamma: float | None = declare(POSITIVE, "For the rbf and poly kernels.  [default: 1 / encoded features]")
    degree: int | None = declare(whole(1, 100), "For the poly kernel.  [default: 3]")
    coef0: float | None = declare(NOT_NEGATIVE, "For the poly kernel.  [default: 1]")
    C: float | None = declare(POSITIVE, "Penalty of the machines.  [default: 10]")
    scale: bool | None = declare(
        FLAG,
        "Scale each column by the first 30 examples. The forecaster does so by itself; other predictors only if told "
        "so, and these examples are then in no bag. --no-scale takes columns as they come, the forecaster too. A data "
        "set or CSV file given by name is by default standardised as a whole when it is loaded.",
    )
    window: int | None = declare(whole(1, 1_000_000), "Number of latest examples that a machine holds.  [default: all]")


@dataclass(frozen=True)
class MonitorTable:
    """When an alarm rings, and what it does."""

    level: float = declare(
        LEVEL, "Chance that any predictor ever has a false alarm: each has its share.  [default: 0.01]", 0.01
    )
    run_length: float = declare(
        number("> 1", Meta(gt=1, le=MOST)),
        "Mean number of examples to a false alarm of the detectors for repeated changes.  [default: 100000]", 100_000.0,
    )  # fmt: skip
    conformal: bool = declare(
        FLAG, "Beside Venn and Venn-Abers predictors, conformal ones on the same machine: their p-values ring sooner.  "
        "[default: --conformal]", True,
    )  # fmt: skip
    drift: bool = declare(
        FLAG, "Also watch the objects by themselves, with a share of the level: it rings before labels come.  "
        "[default: --drift]", True,
    )  # fmt: skip
    restart_on_alarm: bool = declare(FLAG, "Forget the window when an alarm rings.", False)
    on_alarm: tuple[str, ...] | None = declare(
        COMMAND,
        "Run this on an alarm, without a shell; it gets the alarm as JSON on its standard input, and in variables.",
    )
    alarm_webhook: str | None = declare(ADDRESS, "Post an alarm to this address as JSON.")
    alarm_every: float = declare(
        NOT_NEGATIVE, "Least seconds from one notification about a predictor to the next.  [default: 60]", EVERY
    )
    keep: int | None = declare(whole(0), "Number of latest examples that --restart-on-alarm keeps.  [default: 0]")


@dataclass(frozen=True)
class JournalTable:
    """What is kept."""

    path: str | None = declare(FILE, "The journal; a run that it holds is continued.", option="journal")
    durable: bool = declare(FLAG, "Write each transaction to disk at once: safe from power loss, slower.", False)
    every: int = declare(whole(1), "Events from one checkpoint to the next.  [default: 1000]", 1000)
    patience: int | None = declare(whole(1), "Give up a question when so many later ones have been asked.")
    patience_seconds: float | None = declare(POSITIVE, "Give up a question after so many seconds.")


@dataclass(frozen=True)
class Config:
    """The whole configuration of a run; `origin` says where each value comes from, for errors."""

    run: RunTable
    source: SourceTable
    predictor: PredictorTable
    machine: MachineTable
    monitor: MonitorTable
    journal: JournalTable
    origin: Mapping[tuple[str, str], str]

    def where(self, table: str, key: str) -> str:
        """Return the name that a user knows a key by: its option, or its place in the file."""
        return self.origin.get((table, key)) or f"--{option_of(key_field(table, key))}"

    def given(self, table: str) -> list[str]:
        """Return the keys of a table that were given."""
        return [key for place, key in self.origin if place == table]


TABLES: dict[str, type] = {name: one for name, one in get_type_hints(Config).items() if isinstance(one, type)}


def key_field(table: str, key: str) -> Field[Any]:
    """Return the declaration of a key."""
    return next(one for one in fields(TABLES[table]) if one.name == key)


def option_of(one: Field[Any]) -> str:
    """Return the name of a key's option, without dashes; empty if it has none."""
    option = one.metadata["option"]
    return "" if option is None else option or one.name.replace("_", "-")


def options() -> list[tuple[str, Field[Any]]]:
    """Return tables and keys that have an option, in order."""
    return [(table, one) for table, kind in TABLES.items() for one in fields(kind) if option_of(one)]


def parameter(table: str, one: Field[Any]) -> str:
    """Return the name under which click passes the value of a key's option."""
    return f"{table}_{one.name}"


def option(table: str, key: str, **changes: Any) -> Callable[[Command], Command]:
    """Return a key's option for a command; `changes` are of its texts, `flags` among them. `typed` reads it."""
    one = key_field(table, key)
    kind, flags = one.metadata["kind"], f"--{option_of(one)}"
    given: dict[str, Any] = {"help": one.metadata["help"], "default": None}
    if kind is FLAG:
        flags = f"{flags}/--no-{option_of(one)}"
    else:
        given |= {"type": str, "metavar": kind.metavar, "multiple": kind.repeated}
    return click.option(changes.pop("flags", flags), parameter(table, one), **given | changes)


def with_options(*added: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options to a command, in this order."""
    return lambda command: reduce(lambda made, add: add(made), reversed(added), command)


def on_command_line(context: click.Context) -> list[click.Parameter]:
    """Return the options and arguments that a command line holds."""
    return [
        one
        for one in context.command.params
        if context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
    ]


def typed(path: str | None = None) -> Config:
    """Return the configuration that the present command line gives, with that of a file."""
    context = click.get_current_context()
    given = {one.name or "": context.params[one.name or ""] for one in on_command_line(context)}
    return merge({} if path is None else read_toml(path), path or "", given)


def read_toml(path: str) -> dict[str, Any]:
    """Return the tables of a file; any error in it is one line."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path} must be UTF-8: {error}") from None
    except ValueError as error:
        raise click.ClickException(f"{path} must be TOML: {error}") from None
    except RecursionError:
        raise click.ClickException(f"{path} must be TOML that is not nested this deeply") from None


def merge(file: Mapping[str, Any], path: str, given: Mapping[str, Any]) -> Config:
    """Merge and check a file's tables and the command line's options, which take precedence.

    Parameters
    ----------
    file : mapping
        Tables, as `read_toml` returns them.
    path : str
        The file's path, for errors.
    given : mapping
        Values of the options on the command line, by `parameter`; text, or bool for a flag.

    Raises
    ------
    click.ClickException
        An unknown table or key, or a wrong value: the message names it, the requirement and the value.
    """
    for table, value in file.items():
        if table not in TABLES:
            raise click.ClickException(
                f"{path} must have tables of {', '.join(TABLES)}, got {_short(table)}{_near(table)}"
            )
        if not isinstance(value, dict):
            raise click.ClickException(f"{path}: {table} must be a table, [{table}], got {_short(value)}")
        known = [one.name for one in fields(TABLES[table])]
        for key in value:
            if key not in known:
                hint = did_you_mean(key, known) or f"; there is {', '.join(known)}"
                raise click.ClickException(f"{path}, [{table}] has no key {_short(key)}{hint}")
    origin: dict[tuple[str, str], str] = {}
    found: dict[str, Any] = {}
    for table, declared in TABLES.items():
        values = {}
        for one in fields(declared):
            kind: Kind = one.metadata["kind"]
            option = parameter(table, one)
            if option in given:
                where = f"--{option_of(one)}"
                values[one.name] = of_option(kind, where, given[option])
            elif one.name in file.get(table, {}):
                where, value = f"{path}, [{table}] {one.name}", file[table][one.name]
                values[one.name] = _checked(kind.check, kind.must, where, value, click.ClickException)
            else:
                assert one.default is not MISSING
                values[one.name] = one.default
                continue
            origin[table, one.name] = where
        found[table] = declared(**values)
    return Config(**found, origin=origin)


def of_option(kind: Kind, where: str, given: Any) -> Any:
    """Return the value written in an option's text or texts; `where` names the option.

    Raises
    ------
    click.UsageError
        The texts do not show such a value.
    """

    def read(texts: Any) -> Any:
        return kind.check(texts if kind is FLAG else kind.read(texts))

    return _checked(read, kind.typed or kind.must, where, given, click.UsageError)


def _checked(
    check: Callable[[Any], Any], must: str, where: str, given: Any, refusal: type[click.ClickException]
) -> Any:
    try:
        return check(given)
    except ValueError as error:
        got = str(error) if type(error) is ValueError and error.args else _short(given)
    raise refusal(f"{where} must be {must}, got {got}")


def _near(table: str) -> str:
    """Return a hint at what an unknown table may mean: another table, or a key of one."""
    homes = [name for name, declared in TABLES.items() if table in {one.name for one in fields(declared)}]
    return f"; the key {table} belongs in [{' or ['.join(homes)}]" if homes else did_you_mean(table, TABLES)


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True) if not isinstance(value, str) else repr(value)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
