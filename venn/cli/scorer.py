"""A fitted model of the user's own, which a command calibrates: how it is loaded, and what it is asked about."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite, nan
from pathlib import Path
from typing import Any

import click
import numpy as np

import streams
from streams.checks import MISSING, imported, is_finite
from streams.frames import BLOCK
from streams.header import read_header
from streams.schema import Numeric
from streams.troubles import some_of
from venn.cli.errors import in_shell
from venn.cli.modules import found_in_module, told
from venn.cli.option_types import CODE
from venn.cli.options import DECLARED, Config
from venn.cli.predictors import FORECASTER
from venn.machines.estimators import labels_of, method_of
from venn.machines.machine import as_known
from venn.machines.tables import codes_of, columns_of, has_classes, is_gap, is_number, known_categories, unwrapped
from venn.online.forecaster import Forecaster, of_numbers

#: Options that say what a given model has said already: how columns are read, and what learns.
ITS_OWN = (
    *(("source", key) for key in ("nominal", "ordinal", "fill", "unit", "skip", "scaling", "merge_alike")),
    *(("predictor", key) for key in ("adaptive", "groups")), *(("machine", key) for key in DECLARED["machine"]),
)  # fmt: skip
ASKED = ("predict", "predict_proba", "decision_function")
TOLD = 5  # categories that are named
NEW = "Online(..., new_scorer=True)"  # as errors for programs say it

Named = Callable[[str, Any], object]  # is told of a column and a category in it that the model does not know


def given_model(config: Config) -> GivenModel | None:
    """Return the model that a configuration names, loaded; None if it names none.

    Raises
    ------
    click.ClickException
        It cannot be loaded, or other options do not go with it.
    """
    if config.predictor.scorer is None:
        return None
    where = config.where("predictor", "scorer")
    for table, key in ITS_OWN:
        if (table, key) in config.origin and not config.without(table, key):
            raise click.UsageError(f"{config.where(table, key)} does not go with {where}: the model reads columns as "
                                   "they come, and is calibrated by a forecaster")  # fmt: skip
    names = config.predictor.names or (FORECASTER,)
    if tuple(names) != (FORECASTER,):
        raise click.UsageError(f"{config.where('predictor', 'names')} must be {FORECASTER} with {where}, which it "
                               f"calibrates, got {','.join(names)}")  # fmt: skip
    return GivenModel(config, _loaded(config, config.predictor.scorer, where))


class GivenModel:
    """A loaded model, its labels and columns, and how cells become the objects that it is asked about.

    Attributes
    ----------
    estimator : fitted classifier or regressor
    classes : tuple of labels
        Those declared, or the model's own; empty where labels are numbers.
    names : tuple of str or None
        Columns of the frame that it was fitted to; None where it goes by position.
    unknown : Counter
        Of column and value: how often a category came that the model does not know.
    """

    def __init__(self, config: Config, estimator: Any) -> None:
        given = config.source
        self.config, self.estimator = config, estimator
        self.names = columns_of(unwrapped(estimator))[1]
        if given.classes is not None and given.numbers:
            raise click.UsageError(f"{config.where('source', 'numbers')} does not go with "
                                   f"{config.where('source', 'classes')}")  # fmt: skip
        numbers = given.numbers
        if numbers is None:
            only = not method_of(estimator, None) and not has_classes(estimator)
            numbers = given.classes is None and (of_numbers(None, estimator) or only)
        found = given.classes or labels_of(unwrapped(estimator), None)
        if not numbers and not found:
            raise click.UsageError(f"{config.where('source', 'classes')} must say which labels may come, in the order "
                                   f"of the model's columns, as {self.told} has no classes_")  # fmt: skip
        if self.names is not None and given.features and as_known(given.features, self.names) != list(self.names):
            raise click.UsageError(f"{config.where('source', 'features')} does not go with a model that names its "
                                   f"columns: {some_of(list(self.names))}")  # fmt: skip
        self.classes = () if numbers else tuple(found)
        self.unknown: Counter[tuple[str, Any]] = Counter()
        self.tell: Named = lambda column, value: None

    @property
    def told(self) -> str:
        """What it is, briefly."""
        return f"{self.config.predictor.scorer}, a {type(unwrapped(self.estimator)).__name__}"

    @property
    def labels(self) -> Any:
        """What a `Forecaster` takes as its classes."""
        return self.classes or float

    def panel(self, say: Callable[[str], None]) -> Forecaster:
        """Return a forecaster that calibrates it."""
        columns = "by position" if self.names is None else f"by name: {some_of(list(self.names))}"
        say(f"{FORECASTER}: calibrates {self.told}, which stays as it is; columns as they come, {columns}")
        return Forecaster(self.labels, scorer=self.estimator, level=self.config.monitor.level)

    # ------------------------------------------------------------------------------------------------------- its rows

    def form(self, header: Path | None = None) -> streams.Form:
        """Return the form of messages whose objects are what it was fitted to; a file's `header` has its own blanks."""
        features: Sequence[str] | None = self.config.source.features or self.names
        if self.names is not None and header is not None and header.is_file():
            own = read_header(header, self.config.source.delimiter)
            written = dict(zip(as_known(own, self.names), own, strict=True))
            features = [written.get(name, name) for name in self.names]
        try:
            return streams.Form(features, self.classes or "numbers", make=self.object, key=self.config.source.key)
        except ValueError as error:
            raise click.ClickException(f"the source's form: {error}") from None

    @cached_property
    def _cells(self) -> dict[str, _Cells]:
        known = {} if self.names is None else known_categories(self.estimator, self.names)
        given, codes = self.config.source, codes_of(self.estimator)
        how, gaps = Numeric(decimal=given.decimal, thousands=given.thousands), given.missing_texts or ()
        names = (*(self.names or ()), "")
        return {name: _Cells(known.get(name), how, gaps, name in codes) for name in names}

    def object(self, cells: Mapping[str, Any] | Sequence[Any]) -> Any:
        """Return the object of cells in the model's order: a dict by its names, or an array of numbers.

        Raises
        ------
        ValueError
            A cell is none that a model takes.
        """
        if self.names is None:
            found = self._plain(list(cells.values() if isinstance(cells, Mapping) else cells))
            if found is not None:
                return found
            named = cells.items() if isinstance(cells, Mapping) else enumerate(cells)
            return np.array([self._number(name, cell) for name, cell in named])
        row = dict(zip(self.names, cells.values() if isinstance(cells, Mapping) else cells, strict=True))
        for name, cell in row.items():
            row[name], known = self._cells[name].read(name, cell)
            if not known:
                self.unknown[name, row[name]] += 1
                self.tell(name, row[name])
        return row

    def _plain(self, cells: list[Any]) -> Any:
        """Return cells as numbers in one call where all are written plainly, as most rows are; else None."""
        given = self.config.source
        if given.missing_texts or given.thousands is not None or given.decimal != ".":
            return None
        try:
            if {type(one) for one in cells} <= {float, int}:
                return np.array(cells) if np.isfinite(cells).all() else None
            text = "".join(cells)
            found = list(map(float, cells)) if text.isascii() and "_" not in text else [nan]
        except (TypeError, ValueError):  # one is no text, or shows no number
            return None
        return np.array(found) if all(map(isfinite, found)) else None

    def _number(self, name: Any, cell: Any) -> float:
        value, _ = self._cells[""].read(name, cell)
        if isinstance(value, str):
            raise ValueError(f"{_place(name)} must be a number, as the model was fitted to an array, got {value!r:.60}")
        return float(value)

    def said(self) -> list[str]:
        """Say which categories came that it does not know; nothing if there were none."""
        each = [f"{value!r} in column {name} ({n} times)" for (name, value), n in self.unknown.most_common(TOLD)]
        more = f", and {len(self.unknown) - TOLD} others" if len(self.unknown) > TOLD else ""
        return [f"categories that the model does not know: {', '.join(each)}{more}"] if each else []

    def stream(self, data: str, shuffle: int | None) -> streams.Stream:
        """Return the examples of a CSV or Parquet file, whose objects are what it was fitted to."""
        given, path = self.config.source, Path(data)
        columnar = path.suffix == ".parquet"
        names = parquet(path).schema_arrow.names if columnar else read_header(path, given.delimiter)
        if given.label is None or (columnar and given.label not in names):
            kind, wrong = "Parquet" if columnar else "CSV", "" if given.label is None else f", not {given.label!r}"
            raise click.UsageError(
                f"{data} is a {kind} file: name the column of its label with --label{wrong}; it has {some_of(names)}"
            )
        self.unknown.clear()
        X, y = [], []
        features = [name for name in given.features or self.names or names if name != given.label]
        for number, (x, label) in enumerate(self._of_parquet(path, features) if columnar else self._of_csv(path), 1):
            if label is None and given.drop_unlabelled:
                continue
            if label is None or x is None:
                what = "a label in each row; --drop-unlabelled leaves rows out" if label is None else "values"
                raise ValueError(f"{data} must have {what}, got none in row {number}")
            X.append(x)
            y.append(label)
        if not X:
            raise ValueError(f"{data} must hold an example, got none")
        objects: Any = np.empty(len(X), object)
        objects[:] = X
        codes = {label: code for code, label in enumerate(self.classes)}
        stream = streams.Stream(
            objects if self.names else np.stack(X), np.array([codes[one] for one in y] if codes else y),
            self.classes, self.names or features, path.stem,
        )  # fmt: skip
        return stream if shuffle is None else stream.shuffle(shuffle)

    def _of_csv(self, path: Path) -> Iterator[tuple[Any, Any]]:
        """Yield objects and labels of a CSV file, None where there is none."""
        given = self.config.source
        rows = streams.CSVRows(
            path, given.label, delimiter=given.delimiter, decimal=given.decimal, thousands=given.thousands,
            form=self.form(path), follow=False,
        )  # fmt: skip
        with rows:
            for message in rows.messages():
                if message is not None:
                    yield message.x, message.y

    def _of_parquet(self, path: Path, features: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        """Yield objects and labels of a Parquet file, some thousand rows in memory at a time."""
        known = {label: label for label in self.classes} | {str(label): label for label in self.classes}
        batches = parquet(path).iter_batches(BLOCK, columns=[*features, self.config.source.label])
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for number, (*cells, label) in enumerate(rows, 1):
            try:
                if label is not None and known and label not in known:
                    raise ValueError(f"y must be one of {some_of([*map(str, self.classes)])}, got {label!r:.60}")
                yield self.object(dict(zip(features, cells, strict=True))), known.get(label, label)
            except ValueError as error:
                raise ValueError(f"{path}, row {number}: {error}") from None


def parquet(path: Path) -> Any:
    """Return an open Parquet file, or say what is wrong with it."""
    module = imported("pyarrow.parquet", "a Parquet file needs pyarrow")
    try:
        return module.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} is no Parquet file: {error}") from None


class _Cells:
    """Reads the cells of a column as the model knows them: text of a file, or values of JSON."""

    def __init__(self, categories: list[Any] | None, how: Numeric, gaps: Sequence[str], text: bool) -> None:
        self._known, self._how, self._gaps = categories, how, {*MISSING, *gaps}
        self._by_text = {str(one): one for one in categories or ()}
        self._text = text or (bool(categories) and all(isinstance(one, str) for one in categories or ()))

    def read(self, name: Any, cell: Any) -> tuple[Any, bool]:
        """Return what the model gets of a cell, and whether it knows this category, if it knows any."""
        if isinstance(cell, str):
            if cell in self._by_text:
                return self._by_text[cell], True
            if cell.strip() in self._gaps:
                return nan, True
            number = None if self._text else self._number(cell)
            return self._category(cell if number is None else number)
        if cell is None or (is_number(cell) and is_gap(cell)):
            return nan, True
        if not is_number(cell) or not is_finite(cell):
            raise ValueError(f"{_place(name)} must be a finite number, text or null, got {cell!r:.60}")
        return self._category(cell)

    def _category(self, value: Any) -> tuple[Any, bool]:
        if self._known is None or value in self._known:
            return (value, True) if self._known is None else (self._known[self._known.index(value)], True)
        return value, False

    def _number(self, text: str) -> float | None:
        try:
            return self._how.read(text)
        except ValueError:
            return None


def _place(name: Any) -> str:
    return f"x, feature {name!r}" if isinstance(name, str) else f"x[{name}]"


# ---------------------------------------------------------------------------------------------------------- loading it


def _loaded(config: Config, given: str, where: str) -> Any:
    suffix = Path(given).suffix
    if suffix in (".skops", *CODE) and not Path(given).exists():
        raise click.UsageError(f"{where} must be a file that is there, got {given}")
    if suffix in CODE and not config.predictor.scorer_runs_code:
        raise click.UsageError(
            f"{where} must be a file that runs no code, such as one of skops, got {given}: to load it runs whatever "
            "code it holds; if it is from somebody whom you would let run programs here, give --scorer-runs-code"
        )
    if suffix in (".skops", *CODE):
        try:
            found = _of_file(config, given, suffix)
        except click.ClickException:
            raise
        except Exception as error:  # whatever a file holds
            raise click.ClickException(f"{where} {given} cannot be loaded: {told(error)}") from error
    else:
        found = found_in_module(where, given, ASKED)
    if isinstance(found, type) or not any(hasattr(found, method) for method in ASKED):
        raise click.ClickException(f"{where} must be a fitted model, or a function that returns one, got {found!r:.60}")
    return found


def _of_file(config: Config, given: str, suffix: str) -> Any:
    if suffix == ".skops":
        return _of_skops(given, config.predictor.scorer_trusts or ())
    if suffix == ".joblib":
        import joblib

        return joblib.load(given)
    with open(given, "rb") as file:
        return pickle.load(file)


def _of_skops(given: str, trusted: Sequence[str]) -> Any:
    try:
        from skops import io
    except ImportError:
        raise click.ClickException(f"{given} needs the package skops: pip install skops") from None
    strange = [kind for kind in io.get_untrusted_types(file=given) if kind not in trusted]
    if strange:
        types = in_shell(",".join((*trusted, *strange)))
        raise click.ClickException(
            f"{given} holds types that might run code: {', '.join(strange)}. If you know all of them and trust them, "
            f"add --scorer-trusts {types}"
        )
    return io.load(given, trusted=list(trusted))
