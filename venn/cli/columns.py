"""Options that describe the columns of a CSV file, and the advice when the file does not match them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click

import streams
from streams.checks import MANY
from streams.form import BadValue
from streams.schema import MISSING, WITH_COMMA, Refused
from streams.tables import SHOWN, BadColumns, OtherDelimiter, Trouble, read_header, some_of
from venn.cli.config import COLUMNS, DELIMITER, FILLS, TEXT, VALUES, Kind, of_option
from venn.cli.errors import did_you_mean
from venn.cli.numbers import MOST_CLASSES, holds_numbers

Command = TypeVar("Command", bound=Callable[..., Any])

FILLED = (*MISSING, "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None")  #: texts that --fill takes as missing

PERCENT = re.compile(r"\s*[+-]?[\d.,]+\s*%\s*", re.ASCII)

KINDS: dict[str, tuple[Kind, str]] = {
    "label": (TEXT, "Column of the label, when DATA is a CSV file."),
    "nominal": (
        VALUES,
        "A column of words; only the given values may occur; without them empty fields and ? are values, too.",
    ),
    "ordinal": (VALUES, "A column of words with an order, from low to high."),
    "skip": (COLUMNS, "A column to leave out."),
    "fill": (
        FILLS,
        f"A column of numbers, and what replaces missing ones: empty fields and {', '.join(FILLED[1:])}.",
    ),
    "delimiter": (DELIMITER, "Separator of fields, or tab.  [default: ,]"),
}
KEYS = tuple(KINDS)
OF_NUMBERS = (
    f"Whether labels of a CSV file are numbers.  [default: if all are, and some not whole, or more than {MOST_CLASSES} "
    "differ]"
)


def of_columns(command: Command) -> Command:
    """Add the options that describe the columns of a CSV file to a command; `Columns.typed` reads them."""
    for key, (kind, text) in reversed(KINDS.items()):
        metavar = {"label": "COLUMN", "ordinal": "COLUMN=A,B"}.get(key, kind.metavar)
        if kind.repeated:
            text = text.removesuffix(".") + "; repeatable."
        command = click.option(f"--{key}", metavar=metavar, multiple=kind.repeated, help=text)(command)
    return click.option("--numbers/--classes", default=None, help=OF_NUMBERS)(command)


@dataclass(frozen=True)
class Columns:
    """The description of a CSV file's columns: empty for a named data set.

    `places` says how the reader knows a key whose name is not its option's.
    """

    label: str | None = None
    nominal: Mapping[str, tuple[str, ...] | None] | None = None
    ordinal: Mapping[str, tuple[str, ...] | None] | None = None
    skip: tuple[str, ...] | None = None
    fill: Mapping[str, Any] | None = None
    delimiter: str | None = None
    numbers: bool | None = None
    places: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds: dict[str, str] = {}
        for key in ("nominal", "ordinal", "skip", "fill"):
            for column in getattr(self, key) or ():
                if column == self.label:
                    raise click.UsageError(f"{self.where(key)} must not name {column!r}, which is the label")
                if column in kinds:
                    raise click.UsageError(
                        f"{self.where(key)} must not name {column!r}, which {self.where(kinds[column])} names"
                    )
                kinds[column] = key
        for column, values in (self.ordinal or {}).items():
            if values is None:
                raise click.UsageError(
                    f"{self.where('ordinal')} must declare the values of {column!r} from low to high: "
                    f"--ordinal {quote(f'{column}=LOW,HIGH')}"
                )

    @classmethod
    def typed(cls, options: Mapping[str, Any]) -> Columns:
        """Return the description given on a command line."""
        given = {key: options[key] for key in KEYS if options[key] not in (None, ())}
        read = {key: of_option(KINDS[key][0], f"--{key}", texts) for key, texts in given.items()}
        return cls(**read, numbers=options["numbers"])

    def where(self, key: str) -> str:
        """Return the name that a user knows a key by."""
        return self.places.get(key, f"--{key}")

    def given(self) -> list[str]:
        """Return the keys that were given."""
        return [key for key in KEYS if getattr(self, key) is not None]

    def open(self, data: str, shuffle: int | None, whole: bool = True) -> streams.Stream:
        """Return the stream of a CSV file; `whole` standardises its columns over the whole file.

        Raises
        ------
        click.ClickException
            The file does not match the description. If options would help, the last line has them.
        """
        delimiter = self.delimiter or ","
        try:
            names = read_header(Path(data), delimiter)
            if self.label is None:
                raise click.UsageError(
                    f"{data} is a CSV file: name the column of its label with --label; it has {some_of(names)}"
                )
            for key in ("label", "nominal", "ordinal", "skip", "fill"):
                named = (self.label,) if key == "label" else getattr(self, key) or ()
                for column in named:
                    if column not in names:
                        near = did_you_mean(column, names) or f"; it has {some_of(names)}"
                        raise click.ClickException(
                            f"{self.where(key)} must name a column of {data}, got {column!r}{near}"
                        )
            numbers = self.numbers
            if numbers is None:
                numbers = holds_numbers(Path(data), self.label, delimiter)
            return streams.from_csv(
                data, self.label, schema=self.schema(), shuffle=shuffle, delimiter=delimiter, scale=whole,
                classes="numbers" if numbers else None,
            )  # fmt: skip
        except OtherDelimiter as error:
            other = "tab" if error.delimiter == "\t" else quote(error.delimiter)
            raise click.ClickException(f"{error.what}\ntry: --delimiter {other}") from None
        except BadColumns as error:
            raise click.ClickException(self._advice(data, error)) from None
        except Refused as error:
            raise click.ClickException(f"{error.what}: give a number with --fill, or use --skip") from None

    def schema(self) -> dict[str, Any]:
        """Return the kinds of the columns that were described."""
        schema: dict[str, Any] = {}
        for column, values in (self.nominal or {}).items():
            schema[column] = streams.Nominal(missing=MISSING) if values is None else streams.Nominal(values)
        for column, values in (self.ordinal or {}).items():
            schema[column] = streams.Ordinal(values or ())
        schema |= {column: streams.Skip() for column in self.skip or ()}
        schema |= {column: streams.Numeric(FILLED, fill) for column, fill in (self.fill or {}).items()}
        return schema

    def _advice(self, data: str, error: BadColumns) -> str:
        """Return a line for each bad column and, last, the options that would read the others."""
        lines, options = [], []
        for trouble in error.troubles:
            line = f"{data}, row {trouble.row}, column {trouble.column!r} {trouble.what}"
            instead = self._by_hand(trouble, error.rows)
            if instead:
                line += f": {instead}"
            else:
                options.append(_option(trouble, error.rows))
            lines.append(line)
        if len(lines) > SHOWN:
            more = [trouble.column for trouble in error.troubles[SHOWN:]]
            lines[SHOWN:] = [f"and {len(more)} more columns: {some_of(more)}"]
        return "\n".join(lines + ([f"try: {' '.join(options)}"] if options else []))

    def _by_hand(self, trouble: Trouble, rows: int) -> str:
        """Return what to do if more options do not help: empty if they do."""
        column = trouble.column
        if trouble.kind is None:
            return "drop the row"
        if column in (self.nominal or {}):
            return f"add it to {self.where('nominal')}, or name the column without values"
        if column in (self.ordinal or {}):
            return f"add it to {self.where('ordinal')} in its place, or give --nominal {quote(column)} instead"
        option = _option(trouble, rows)
        if column in (self.fill or {}):
            return f"instead of {self.where('fill')} give {option}"
        return f"mend the file, or {option}" if _almost_numbers(trouble) else ""


def _option(trouble: Trouble, rows: int) -> str:
    """Return the option that reads a column that does not hold only numbers."""
    column, strange = trouble.column, trouble.strange
    if all(map(_is_missing, strange)):
        numbers = trouble.values > len(strange)
        return f"--fill {quote(f'{column}=median')}" if numbers else f"--skip {quote(column)}"
    # A name with = would be taken for a column with values.
    words = trouble.values <= min(MANY, rows // 2) and not _almost_numbers(trouble) and not _infinite(trouble)
    if words and "=" not in column:
        return f"--nominal {quote(column)}"
    return f"--skip {quote(column)}"


def _is_missing(text: str) -> bool:
    return text.strip() in FILLED


def _infinite(trouble: Trouble) -> bool:
    """Whether all that is wrong with a column is that numbers of it are infinite."""
    return all(text.strip().lstrip("+-").lower() in ("inf", "infinity") for text in trouble.strange)


def _almost_numbers(trouble: Trouble) -> bool:
    """Whether a column would hold numbers without its commas and signs of percent."""
    numbers = [text for text in trouble.strange if not _is_missing(text)]
    return bool(numbers) and all(WITH_COMMA.fullmatch(text) or PERCENT.fullmatch(text) for text in numbers)


def live_advice(error: streams.BadMessage) -> str:
    """Return what is wrong with a message that came live, with options in place of the remedy in a program."""
    bad = error.error
    if not isinstance(bad, BadValue) or not bad.remedy or bad.feature is None:
        return str(error)
    column = quote(bad.feature)
    options = [f"--skip {column}"]
    # A name with = would be taken for a column with values.
    if isinstance(bad.kind, streams.Numeric) and "=" not in bad.feature and not WITH_COMMA.fullmatch(bad.text):
        options.insert(0, f"--fill {column}=NUMBER" if _is_missing(bad.text) else f"--nominal {column}=VALUE,VALUE")
    return f"{str(error).removesuffix(bad.remedy)}: {', or '.join(options)}"
