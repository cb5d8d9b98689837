"""Options that describe the columns of a CSV file, and the advice when the file does not match them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

import streams
from streams.checks import MISSING, means_missing
from streams.encoder import BadValue
from streams.form import Unnamed
from streams.header import OtherDelimiter, read_header
from streams.schema import Refused, is_number, missing_texts, way_to_write
from streams.troubles import DATE, INFINITE, BadColumns, Trouble, some_of, to_know
from venn.cli.errors import did_you_mean, in_shell
from venn.cli.numbers import holds_numbers
from venn.cli.options import Config, SourceTable

ROUNDS = 6  # how often the file is read to find the options it needs
REPEATED = ("nominal", "ordinal", "skip", "fill", "unit")


@dataclass(frozen=True)
class Columns:
    """The options about columns of a CSV file; a named data set has none."""

    config: Config

    def __post_init__(self) -> None:
        source, kinds = self.config.source, dict[str, str]()
        for key in REPEATED:
            for column in getattr(source, key) or ():
                if column == source.label:
                    raise click.UsageError(f"{self.where(key)} must not name {column!r}, which is the label")
                if column in kinds and {key, kinds[column]} != {"fill", "unit"}:
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
            needed = self._best(data, True)
            if needed is None:
                raise
            raise click.ClickException(f"{error}\ntry: {' '.join(needed.written())}") from None

    def read(self, data: str, shuffle: int | None, whole: bool) -> streams.Stream:
        """Return the stream of a CSV file as `open` does, or raise the first error as it is."""
        source, path = self.config.source, Path(data)
        names = read_header(path, source.delimiter)
        if source.label is None:
            lost = "; if these are no names, give the file a header" if any(map(is_number, names)) else ""
            raise click.UsageError(
                f"{data} is a CSV file: name the column of its label with --label; it has {some_of(names)}{lost}"
            )
        for key in ("label", *REPEATED):
            named = (source.label,) if key == "label" else getattr(source, key) or ()
            for column in named:
                if column not in names:
                    near = did_you_mean(column, names) or f"; it has {some_of(names)}"
                    raise click.ClickException(f"{self.where(key)} must name a column of {data}, got {column!r}{near}")
        numbers, gaps = source.numbers, source.missing_texts or ()
        if numbers is None:
            how = streams.Numeric(decimal=source.decimal, thousands=source.thousands)
            numbers = holds_numbers(path, source.label, source.delimiter, how, gaps)
        return streams.from_csv(
            data, source.label, schema=self.schema(), shuffle=shuffle, delimiter=source.delimiter,
            decimal=source.decimal, scale=whole, classes="numbers" if numbers else None, missing=gaps,
            drop_unlabelled=source.drop_unlabelled, merge_alike=source.merge_alike, thousands=source.thousands,
        )  # fmt: skip

    def schema(self) -> dict[str, Any]:
        """Return the kinds of the columns that were described."""
        source, schema = self.config.source, dict[str, Any]()
        for column, values in (source.nominal or {}).items():
            schema[column] = streams.Nominal(missing=MISSING) if values is None else streams.Nominal(values)
        schema |= {column: streams.Ordinal(values or ()) for column, values in (source.ordinal or {}).items()}
        schema |= {column: streams.Skip() for column in source.skip or ()}
        filled, units = dict[str, Any](source.fill or {}), source.unit or {}
        for column in (*filled, *units):
            schema[column] = streams.Numeric(fill=filled.get(column), unit=units.get(column))
        return schema

    def _advice(self, data: str, error: OtherDelimiter | BadColumns) -> str:
        """Return what is wrong with the file, and at the end all options that would read it."""
        lines = [error.what] if isinstance(error, OtherDelimiter) else self._lines(error)
        needed = self._best(data)
        if needed is not None:
            # Its columns, which the options name, were not seen until now.
            lines += needed.lines if isinstance(error, OtherDelimiter) else needed.known
            lines.append(f"try: {' '.join(needed.written())}")
        return "\n".join(lines)

    def _lines(self, error: BadColumns) -> list[str]:
        """Return what is wrong with the columns, and alternatives to the options that are tried."""
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
        kind, _ = trouble.reading(rows, source.decimal)
        if column in (source.fill or {}):
            return f"instead of {self.where('fill')} give {' '.join(Needed({}, {column: _options(kind)}).written())}"
        return self._decimals(f"--skip {in_shell(column)}") if commas else ""

    def _decimals(self, instead: str) -> str:
        return f"where the comma stands before decimals, give {self.where('decimal')} ,; else {instead}"

    def _best(self, data: str, commas: bool = False) -> Needed | None:
        """Return the options that read the file and keep most columns; None if options are not enough."""
        needed, found = self._needed(data, self.config.source.decimal)
        if (found or commas) and self.config.source.decimal == ".":
            other, _ = self._needed(data, ",")
            if other is not None and (needed is None or other.left_out < needed.left_out):
                return other
        return needed

    def _needed(self, data: str, decimal: str) -> tuple[Needed | None, bool]:
        """Return further options that read the file, and whether numbers seem to have commas.

        They are found by trial. None if options are not enough.
        """
        given = self.config.source
        added: dict[str, Any] = {} if decimal == given.decimal else {"decimal": decimal}
        columns: dict[str, dict[str, Any]] = {}
        advised: dict[str, tuple[Any, str]] = {}
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
                lines += trial._lines(error)
                for trouble in error.troubles:
                    column = trouble.column
                    if trouble.kind is None:
                        how = None if trouble.unlabelled else way_to_write(trouble.strange, decimal)
                        commas = commas or _has_commas(trouble)
                        if trouble.unlabelled:
                            added["drop_unlabelled"] = True
                        elif how is None or how.unit is not None or not self._thousands(how, decimal, added):
                            return None, commas
                        continue
                    if column in named or not column:
                        return None, commas
                    kind, known = trouble.reading(error.rows, decimal)
                    if isinstance(kind, streams.Numeric):
                        commas = commas or kind.decimal == ","
                        if column in columns or not self._thousands(kind, decimal, added):
                            kind, known = streams.Skip(), "its numbers are written in several ways: mend the file"
                        for text in missing_texts(kind):
                            if not means_missing(text):
                                texts = added.get("missing_texts", given.missing_texts or ())
                                added["missing_texts"] = tuple(dict.fromkeys((*texts, text)))
                    if "=" in column and isinstance(kind, streams.Nominal):
                        # It would be taken for a column with values.
                        kind, known = streams.Skip(), "an option cannot take words of a column with = in its name"
                    columns[column], advised[column] = _options(kind), (kind, known)
                columns = {column: options for column, options in columns.items() if options}
                continue
            except click.UsageError:
                if given.label is not None:  # otherwise further questions follow once it is known
                    return None, commas
            except click.ClickException:
                return None, commas
            except ValueError:  # as of a label that is a number with a comma: each text would be a class
                return None, True
            return Needed(added, columns, tuple(lines), tuple(to_know(advised))), commas
        return None, commas

    def _thousands(self, how: streams.Numeric, decimal: str, added: dict[str, Any]) -> bool:
        """Whether numbers are written as those of the other columns; takes over their sign between thousands."""
        ours = added.get("thousands", self.config.source.thousands)
        if how.decimal != decimal or (ours is not None and how.thousands not in (None, ours)):
            return False
        if how.thousands is not None:
            added["thousands"] = how.thousands
        return True


def _of_source(kind: Any) -> dict[str, Any]:
    """Return the keys of a source that say how numbers of a kind are written."""
    keys = ("decimal", "thousands") if isinstance(kind, streams.Numeric) else ()
    return {key: getattr(kind, key) for key in keys if getattr(kind, key) != getattr(streams.Numeric, key)}


def _options(kind: Any) -> dict[str, Any]:
    """Return the keys that describe a column of a kind, with their values for it."""
    if isinstance(kind, streams.Numeric):
        return {key: getattr(kind, key) for key in ("unit", "fill") if getattr(kind, key) is not None}
    return {"skip" if isinstance(kind, streams.Skip) else "nominal": None}


@dataclass(frozen=True)
class Needed:
    """Further options that a file needs: keys with their values, and columns with a key and its value."""

    added: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]]
    lines: tuple[str, ...] = ()  #: what is wrong with the columns
    known: tuple[str, ...] = ()  #: notes on what these options do to the columns

    @property
    def left_out(self) -> int:
        """Number of columns that are left out."""
        return sum("skip" in options for options in self.columns.values())

    def source(self, given: SourceTable) -> SourceTable:
        """Return the keys of the source with these beside them."""
        tables: dict[str, Any] = {}
        for column, options in self.columns.items():
            for key, value in options.items():
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
        for column, options in self.columns.items():
            for key, value in options.items():
                words += [f"--{key}", in_shell(column if value is None else f"{column}={value}")]
        return words


def _listed(texts: Sequence[Any]) -> str:
    """Return texts as an option takes several."""
    quoted = [text if not set(text) & set(',"') else '"' + text.replace('"', '""') + '"' for text in map(str, texts)]
    return ",".join(quoted)


def _has_commas(trouble: Trouble) -> bool:
    """Whether the numbers of a column have a comma before their decimals, and not one for thousands."""
    how = way_to_write([text for text in trouble.strange if not means_missing(text)])
    return how is not None and how.decimal == ","


def live_advice(error: streams.BadMessage) -> str:
    """Return what is wrong with a live message, and the options that help."""
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
    elif (how := way_to_write([text])) is not None:
        words = Needed(_of_source(how), {bad.feature: _options(how)}).written()
        options = [" ".join(words), *options] if words else options
    elif "=" not in bad.feature and not DATE.fullmatch(text) and not INFINITE.fullmatch(text):  # = begins the values
        options.insert(0, f"--fill {column}=NUMBER" if missing else f"--nominal {column}=VALUE,VALUE")
    return f"{str(error).removesuffix(bad.remedy)}: {', or '.join(options)}"
