"""Options that describe the columns of a CSV file, and the advice when the file does not match them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import streams
from streams.checks import MANY
from streams.form import BadValue, Unnamed
from streams.schema import DECIMAL_COMMA, MISSING, WITH_COMMA, Refused, is_number
from streams.tables import SHOWN, BadColumns, OtherDelimiter, Trouble, read_header, some_of
from venn.cli.config import Config, option, with_options
from venn.cli.errors import did_you_mean, in_shell
from venn.cli.numbers import MOST_CLASSES, holds_numbers

FILLED = (*MISSING, "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None")  #: texts that --fill takes as missing

PERCENT = re.compile(r"\s*[+-]?[\d.,]+\s*%\s*", re.ASCII)

KEYS = ("label", "nominal", "ordinal", "skip", "fill", "delimiter", "decimal")
OF_NUMBERS = (
    f"Whether labels of a CSV file are numbers.  [default: if all are, and some not whole, or more than {MOST_CLASSES} "
    "differ]"
)


of_columns = with_options(
    option("source", "numbers", flags="--numbers/--classes", help=OF_NUMBERS),
    option("source", "label", metavar="COLUMN", help="Column of the label, when DATA is a CSV file."),
    option(
        "source",
        "nominal",
        help="A column of words; only the given values may occur; without them empty fields and ? are values, too; "
        "repeatable.",
    ),
    option(
        "source", "ordinal", metavar="COLUMN=A,B",
        help="A column of words with an order, from low to high; repeatable.",
    ),
    option("source", "skip"),
    option(
        "source",
        "fill",
        help="A column of numbers, and what replaces missing ones: empty fields and "
        f"{', '.join(FILLED[1:])}; repeatable.",
    ),
    option("source", "delimiter"),
    option("source", "decimal"),
)  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """What a configuration says of the columns of a CSV file: nothing for a named data set."""

    config: Config

    def __post_init__(self) -> None:
        source, kinds = self.config.source, dict[str, str]()
        for key in ("nominal", "ordinal", "skip", "fill"):
            for column in getattr(source, key) or ():
                if column == source.label:
                    raise click.UsageError(f"{self.where(key)} must not name {column!r}, which is the label")
                if column in kinds:
                    raise click.UsageError(
                        f"{self.where(key)} must not name {column!r}, which {self.where(kinds[column])} names"
                    )
                kinds[column] = key
        for column, values in (source.ordinal or {}).items():
            if values is None:
                raise click.UsageError(
                    f"{self.where('ordinal')} must declare the values of {column!r} from low to high: "
                    f"--ordinal {in_shell(f'{column}=LOW,HIGH')}"
                )

    def where(self, key: str) -> str:
        """Return the name that a user knows a key by."""
        return self.config.where("source", key)

    def open(self, data: str, shuffle: int | None, whole: bool = True) -> streams.Stream:
        """Return the stream of a CSV file; `whole` standardises its columns over the whole file.

        Raises
        ------
        click.ClickException
            The file does not match the description. If options would help, the last line has them.
        """
        source = self.config.source
        delimiter, decimal = source.delimiter, source.decimal
        try:
            names = read_header(Path(data), delimiter)
            if source.label is None:
                raise click.UsageError(
                    f"{data} is a CSV file: name the column of its label with --label; it has {some_of(names)}"
                )
            for key in ("label", "nominal", "ordinal", "skip", "fill"):
                named = (source.label,) if key == "label" else getattr(source, key) or ()
                for column in named:
                    if column not in names:
                        near = did_you_mean(column, names) or f"; it has {some_of(names)}"
                        raise click.ClickException(
                            f"{self.where(key)} must name a column of {data}, got {column!r}{near}"
                        )
            numbers = source.numbers
            if numbers is None:
                numbers = holds_numbers(Path(data), source.label, delimiter, decimal)
            return streams.from_csv(
                data, source.label, schema=self.schema(), shuffle=shuffle, delimiter=delimiter, decimal=decimal,
                scale=whole, classes="numbers" if numbers else None,
            )  # fmt: skip
        except OtherDelimiter as error:
            other = "tab" if error.delimiter == "\t" else in_shell(error.delimiter)
            raise click.ClickException(f"{error.what}\ntry: --delimiter {other}") from None
        except BadColumns as error:
            raise click.ClickException(self._advice(data, error)) from None
        except Refused as error:
            raise click.ClickException(f"{error.what}: give a number with --fill, or use --skip") from None

    def schema(self) -> dict[str, Any]:
        """Return the kinds of the columns that were described."""
        source, schema = self.config.source, dict[str, Any]()
        for column, values in (source.nominal or {}).items():
            schema[column] = streams.Nominal(missing=MISSING) if values is None else streams.Nominal(values)
        schema |= {column: streams.Ordinal(values or ()) for column, values in (source.ordinal or {}).items()}
        schema |= {column: streams.Skip() for column in source.skip or ()}
        filled: Mapping[str, Any] = source.fill or {}
        return schema | {column: streams.Numeric(FILLED, fill) for column, fill in filled.items()}

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
        source, column = self.config.source, trouble.column
        commas = source.decimal == "." and bool(trouble.strange) and all(map(DECIMAL_COMMA.fullmatch, trouble.strange))
        if trouble.kind is None:
            option = "drop the row"
            if source.numbers and not commas and not all(map(_is_missing, trouble.strange)):
                option += f"; where labels are classes, give --classes instead of {self.where('numbers')}"
            return self._decimals(option) if commas and source.numbers else option
        if column in (source.nominal or {}):
            return f"add it to {self.where('nominal')}, or name the column without values"
        if column in (source.ordinal or {}):
            return f"add it to {self.where('ordinal')} in its place, or give --nominal {in_shell(column)} instead"
        option = _option(trouble, rows)
        if column in (source.fill or {}):
            return f"instead of {self.where('fill')} give {option}"
        if commas:
            return self._decimals(option)
        return f"mend the file, or {option}" if _almost_numbers(trouble) else ""

    def _decimals(self, instead: str) -> str:
        return f"where the comma stands before decimals, give {self.where('decimal')} ,; else {instead}"


def _option(trouble: Trouble, rows: int) -> str:
    """Return the option that reads a column that does not hold only numbers."""
    column, strange = trouble.column, trouble.strange
    if all(map(_is_missing, strange)):
        numbers = trouble.values > len(strange)
        return f"--fill {in_shell(f'{column}=median')}" if numbers else f"--skip {in_shell(column)}"
    # A name with = would be taken for a column with values.
    words = trouble.values <= min(MANY, rows // 2) and not _almost_numbers(trouble) and not _infinite(trouble)
    if words and "=" not in column:
        return f"--nominal {in_shell(column)}"
    return f"--skip {in_shell(column)}"


def _is_missing(text: str) -> bool:
    return text.strip() in FILLED


def _infinite(trouble: Trouble) -> bool:
    """Whether all that is wrong with a column is that numbers of it are infinite."""
    return all(text.strip().lstrip("+-").lower() in ("inf", "infinity") for text in trouble.strange)


def _almost_numbers(trouble: Trouble) -> bool:
    """Whether a column would hold numbers without its commas, points and signs of percent."""
    numbers = [text for text in trouble.strange if not _is_missing(text)]
    return bool(numbers) and all(map(_almost_number, numbers))


def _almost_number(text: str) -> bool:
    """Whether a text that was refused is a number to a reader; one with a point is refused among decimal commas."""
    return bool(WITH_COMMA.fullmatch(text) or PERCENT.fullmatch(text)) or is_number(text)


def live_advice(error: streams.BadMessage) -> str:
    """Return what is wrong with a message that came live, with options in place of the remedy in a program."""
    bad = error.error
    if isinstance(bad, Unnamed):
        return (
            f"{str(error).removesuffix(bad.remedy)}: name them in order, as --features {in_shell(','.join(bad.names))}"
        )
    if not isinstance(bad, BadValue) or not bad.remedy:
        return str(error)
    if bad.feature is None:
        fill = "--fill NAME=NUMBER" if _is_missing(bad.text) else "--nominal NAME=VALUE,VALUE"
        return f"{str(error).removesuffix(bad.remedy)}: name the features with --features, then {fill}, or --skip NAME"
    column, missing = in_shell(bad.feature), _is_missing(bad.text)
    options = [f"--skip {column}"]
    if not isinstance(bad.kind, streams.Numeric):
        options.insert(0, f'--config with a file in which "" is among the values of {bad.feature!r}')
    elif "=" not in bad.feature and not _almost_number(bad.text):  # = would begin the values
        options.insert(0, f"--fill {column}=NUMBER" if missing else f"--nominal {column}=VALUE,VALUE")
    return f"{str(error).removesuffix(bad.remedy)}: {', or '.join(options)}"
