"""Options that describe the columns of a CSV file, and the advice when the file does not match them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from msgspec.structs import replace

import streams
from streams.checks import MANY, MISSING, means_missing
from streams.encoder import BadValue
from streams.messages import Unnamed
from streams.schema import DECIMAL_COMMA, WITH_COMMA, Refused, is_number
from streams.tables import BadColumns, OtherDelimiter, Trouble, read_header, some_of
from venn.cli.errors import did_you_mean, in_shell
from venn.cli.numbers import holds_numbers
from venn.cli.options import Config, SourceTable

DATE = re.compile(r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ]\s*\d{1,2}:\d{2}.*)?\s*", re.ASCII)
PERCENT = re.compile(r"\s*[+-]?[\d.,]+\s*%\s*", re.ASCII)

# 1,234 and 1,234,567: these are hardly decimals.
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*", re.ASCII)
ROUNDS = 6  # how often the file is read to find the options it needs
REPEATED = ("nominal", "ordinal", "skip", "fill")


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
        try:
            return self.read(data, shuffle, whole)
        except (OtherDelimiter, BadColumns) as error:
            raise click.ClickException(self._advice(data, error)) from None
        except Refused as error:
            raise click.ClickException(f"{error.what}: give a number with --fill, or use --skip") from None
        except ValueError as error:
            needed = None if self.config.source.decimal == "," else self._needed(data, ",")[0]
            if needed is None:
                raise
            raise click.ClickException(f"{error}\ntry: {' '.join(needed.written())}") from None

    def read(self, data: str, shuffle: int | None, whole: bool) -> streams.Stream:
        """Return the stream of a CSV file as `open` does, or raise the first error as it is."""
        source, path = self.config.source, Path(data)
        names = read_header(path, source.delimiter)
        if source.label is None:
            raise click.UsageError(
                f"{data} is a CSV file: name the column of its label with --label; it has {some_of(names)}"
            )
        for key in ("label", *REPEATED):
            named = (source.label,) if key == "label" else getattr(source, key) or ()
            for column in named:
                if column not in names:
                    near = did_you_mean(column, names) or f"; it has {some_of(names)}"
                    raise click.ClickException(f"{self.where(key)} must name a column of {data}, got {column!r}{near}")
        numbers, gaps = source.numbers, source.missing_texts or ()
        if numbers is None:
            numbers = holds_numbers(path, source.label, source.delimiter, source.decimal, gaps)
        return streams.from_csv(
            data, source.label, schema=self.schema(), shuffle=shuffle, delimiter=source.delimiter,
            decimal=source.decimal, scale=whole, classes="numbers" if numbers else None, missing=gaps,
            drop_unlabelled=source.drop_unlabelled, merge_alike=source.merge_alike,
        )  # fmt: skip

    def schema(self) -> dict[str, Any]:
        """Return the kinds of the columns that were described."""
        source, schema = self.config.source, dict[str, Any]()
        for column, values in (source.nominal or {}).items():
            schema[column] = streams.Nominal(missing=MISSING) if values is None else streams.Nominal(values)
        schema |= {column: streams.Ordinal(values or ()) for column, values in (source.ordinal or {}).items()}
        schema |= {column: streams.Skip() for column in source.skip or ()}
        filled: Mapping[str, Any] = source.fill or {}
        return schema | {column: streams.Numeric(fill=fill) for column, fill in filled.items()}

    def _advice(self, data: str, error: OtherDelimiter | BadColumns) -> str:
        """Return what is wrong with the file and, last, all options that would read it."""
        lines = [error.what] if isinstance(error, OtherDelimiter) else self._lines(error)
        needed = self._best(data)
        if needed is not None:
            if isinstance(error, OtherDelimiter):  # its columns, which the options name, were not seen until now
                lines += needed.lines
            lines.append(f"try: {' '.join(needed.written())}")
        return "\n".join(lines)

    def _lines(self, error: BadColumns) -> list[str]:
        """Return what is wrong with the columns, and what else might be done than what is tried."""
        return error.lines(lambda trouble: (said := self._by_hand(trouble, error.rows)) and f": {said}")

    def _by_hand(self, trouble: Trouble, rows: int) -> str:
        source, column = self.config.source, trouble.column
        commas = source.decimal == "." and _has_commas(trouble)
        if trouble.kind is None:
            if not trouble.unlabelled:
                classes = f"; where labels are classes, give --no-numbers instead of {self.where('numbers')}"
                return self._decimals("drop the row") if commas else f"drop the row{classes if source.numbers else ''}"
            return ""
        if column in (source.nominal or {}):
            return f"add it to {self.where('nominal')}, or name the column without values"
        if column in (source.ordinal or {}):
            return f"add it to {self.where('ordinal')} in its place, or give --nominal {in_shell(column)} instead"
        option = " ".join(Needed({}, {column: self._option(trouble, rows)}).written())
        if column in (source.fill or {}):
            return f"instead of {self.where('fill')} give {option}"
        if commas:
            return self._decimals(option)
        return f"mend the file, or {option}" if self._almost_numbers(trouble) else ""

    def _decimals(self, instead: str) -> str:
        return f"where the comma stands before decimals, give {self.where('decimal')} ,; else {instead}"

    def declared(self, path: str) -> list[str]:
        """Return options that declare what a file holds now, for a source that reads it as it grows.

        Nothing is settled later there: classes, nominal values and numbers that fill gaps must be known. None, if it
        needs more than options.
        """
        given = self.config.source
        if given.label is None or not Path(path).is_file():
            return []
        skip = (*(given.skip or ()), *(() if given.id is None else (given.id,)))
        one = Columns(replace(self.config, source=replace(given, skip=skip or None)))
        try:
            needed = one._best(path)
        except (click.ClickException, OSError):
            return []
        if needed is None:
            return []
        final = needed.source(one.config.source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stream = Columns(replace(self.config, source=final)).read(path, None, False)
        columns = dict(needed.columns)
        for column, values in (final.nominal or {}).items():
            if values is None:
                found = [name.removeprefix(f"{column}=") for name in stream.features if name.startswith(f"{column}=")]
                gaps = [""] if "" in found and len(found) > 1 else []  # a gap is a value, and the last: as in A,B,
                found = [text for text in found if text or not gaps] + gaps
                typed = all(map(_typeable, found[: len(found) - len(gaps)]))
                columns[column] = ("nominal", _listed(found)) if typed else ("skip", None)
        for column, fill in (final.fill or {}).items():
            if fill == "median":
                columns[column] = ("fill", f"{np.median(stream.X[:, stream.features.index(column)]):.6g}")
        labels: dict[str, Any] = {} if stream.classes else {"numbers": True}
        if stream.classes:
            if not all(map(_typeable, stream.classes)):
                return []
            labels = {"classes": _listed(stream.classes)}
        layout = {key: value for key, value in needed.added.items() if key != "drop_unlabelled"}
        return Needed({**layout, **labels}, columns).written()

    def _best(self, data: str) -> Needed | None:
        """Return the options with which the file is read and most columns are kept; None if it needs more."""
        needed, commas = self._needed(data, self.config.source.decimal)
        if commas and self.config.source.decimal == ".":
            other, _ = self._needed(data, ",")
            if other is not None and (needed is None or other.left_out < needed.left_out):
                return other
        return needed

    def _needed(self, data: str, decimal: str) -> tuple[Needed | None, bool]:
        """Return the options with which the file is read, beside those given, and whether numbers seem to have commas.

        They are found by reading it with them. None: it needs more than options.
        """
        given = self.config.source
        added: dict[str, Any] = {} if decimal == given.decimal else {"decimal": decimal}
        columns: dict[str, tuple[str, Any]] = {}
        named = {column for key in REPEATED for column in getattr(given, key) or ()}
        commas, lines = False, list[str]()
        for _ in range(ROUNDS):
            trial = Columns(replace(self.config, source=Needed(added, columns).source(given)))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    trial.read(data, None, False)
            except OtherDelimiter as error:
                added["delimiter"] = error.delimiter
                continue
            except BadColumns as error:
                commas = commas or any(map(_has_commas, error.troubles))
                lines += trial._lines(error)
                for trouble in error.troubles:
                    if trouble.kind is None:
                        if not trouble.unlabelled:
                            return None, commas
                        added["drop_unlabelled"] = True
                    elif trouble.column in named or not trouble.column:
                        return None, commas
                    else:
                        again = trouble.column in columns
                        if not again and (gap := trial._gap(trouble, error.rows)):
                            added["missing_texts"] = (*added.get("missing_texts", given.missing_texts or ()), gap)
                            columns[trouble.column] = "fill", "median"
                            continue
                        columns[trouble.column] = ("skip", None) if again else trial._option(trouble, error.rows)
                continue
            except click.UsageError:
                if given.label is not None:  # else more is asked once it is known
                    return None, commas
            except click.ClickException:
                return None, commas
            except ValueError:  # as of a label that is a number with a comma: each text would be a class
                return None, True
            return Needed(added, columns, tuple(lines)), commas
        return None, commas

    def _option(self, trouble: Trouble, rows: int) -> tuple[str, Any]:
        """Return the key that reads a column that does not hold only numbers, and its value for this column."""
        column, strange = trouble.column, trouble.strange
        if all(map(self._is_missing, strange)):
            return ("fill", "median") if trouble.values > len(strange) else ("skip", None)
        # A name with = would be taken for a column with values.
        words = trouble.values <= min(MANY, rows // 2) and not self._almost_numbers(trouble)
        said = [text for text in strange if not self._is_missing(text)]
        return ("nominal" if words and "=" not in column and not _no_words(said) else "skip", None)

    def _gap(self, trouble: Trouble, rows: int) -> str:
        """Return the one text in a column of numbers that is none, if it is a sign for a missing value, such as -."""
        said = [text.strip() for text in trouble.strange if not self._is_missing(text)]
        numbers = trouble.values > max(len(trouble.strange), min(MANY, rows // 2))
        return said[0] if numbers and len(said) == 1 and not any(map(str.isalnum, said[0])) else ""

    def _is_missing(self, text: str) -> bool:
        return means_missing(text) or text.strip() in (self.config.source.missing_texts or ())

    def _almost_numbers(self, trouble: Trouble) -> bool:
        """Whether a column would hold numbers without its commas, points and signs of percent."""
        numbers = [text for text in trouble.strange if not self._is_missing(text)]
        return bool(numbers) and all(map(_almost_number, numbers))


@dataclass(frozen=True)
class Needed:
    """Options that a file needs beside those given: keys with their values, and columns with a key and its value."""

    added: Mapping[str, Any]
    columns: Mapping[str, tuple[str, Any]]
    lines: tuple[str, ...] = ()  #: what is wrong with the columns

    @property
    def left_out(self) -> int:
        """Number of columns that are left out."""
        return sum(key == "skip" for key, _ in self.columns.values())

    def source(self, given: SourceTable) -> SourceTable:
        """Return the keys of the source with these beside them."""
        tables: dict[str, Any] = {}
        for column, (key, value) in self.columns.items():
            held = tables.get(key, getattr(given, key) or (() if key == "skip" else {}))
            tables[key] = (*held, column) if key == "skip" else {**held, column: value}
        return replace(given, **self.added, **tables)

    def written(self) -> list[str]:
        """Return the options as a shell takes them."""
        words = []
        for key, value in self.added.items():
            words.append(f"--{key.replace('_', '-')}")
            if value is not True:
                value = value if isinstance(value, str) else _listed(value)
                words.append("tab" if value == "\t" else in_shell(value))
        for column, (key, value) in self.columns.items():
            words += [f"--{key}", in_shell(column if value is None else f"{column}={value}")]
        return words


def _listed(texts: Sequence[Any]) -> str:
    """Return texts as an option takes several."""
    quoted = [text if not set(text) & set(',"') else '"' + text.replace('"', '""') + '"' for text in map(str, texts)]
    return ",".join(quoted)


def _typeable(text: Any) -> bool:
    return bool(text) and text == text.strip()


def _has_commas(trouble: Trouble) -> bool:
    """Whether the numbers of a column seem to have a comma before their decimals, and not one for thousands."""
    texts = [text for text in trouble.strange if not means_missing(text)]
    return bool(texts) and all(map(DECIMAL_COMMA.fullmatch, texts)) and not all(map(THOUSANDS.fullmatch, texts))


def _no_words(texts: Sequence[str]) -> bool:
    """Whether texts that are not numbers are no values of a nominal column: infinite, or dates, of which more come."""
    infinite = all(text.strip().lstrip("+-").lower() in ("inf", "infinity") for text in texts)
    return infinite or all(map(DATE.fullmatch, texts))


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
    text = "" if isinstance(bad, BadValue) and bad.cell is None else getattr(bad, "cell", None)
    if not isinstance(bad, BadValue) or not bad.remedy or not isinstance(text, str):
        return str(error)
    if bad.feature is None:
        fill = "--fill NAME=NUMBER" if means_missing(text) else "--nominal NAME=VALUE,VALUE"
        return f"{str(error).removesuffix(bad.remedy)}: name the features with --features, then {fill}, or --skip NAME"
    column, missing = in_shell(bad.feature), means_missing(text)
    options = [f"--skip {column}"]
    if not isinstance(bad.kind, streams.Numeric):
        options.insert(0, f'--config with a file in which "" is among the values of {bad.feature!r}')
    elif "=" not in bad.feature and not _almost_number(text) and not _no_words([text]):  # = would begin the values
        options.insert(0, f"--fill {column}=NUMBER" if missing else f"--nominal {column}=VALUE,VALUE")
    return f"{str(error).removesuffix(bad.remedy)}: {', or '.join(options)}"
