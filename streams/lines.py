"""JSON lines and CSV rows as live sources: files that grow, and standard input."""

from __future__ import annotations

import csv
import os
from typing import Literal

from streams.checks import distinct_names
from streams.form import Decoder, Form, Parts, check_id, utf8
from streams.messages import ErrorHandler
from streams.schema import Skip, check_decimal
from streams.tables import check_delimiter, check_one_name
from streams.tailing import LineReader


class JSONLines(LineReader):
    """Lines of JSON, in a file that grows or on standard input: {"id": 7, "x": [1, 2.5], "y": "no"}.

    `x` may also be an object from feature to value, where the form names the features; `id` is text or an
    integer, `y` text, a number or a truth value. A message without `y` (absent or null) is a question, one
    without `x` an answer. Other keys and empty lines are ignored. A line is read once its end has been written.
    `to_json` writes such lines.

    A file may be renamed and another one begun under its name (logrotate with `create`): the old one
    (in.jsonl.1 beside in.jsonl) is first read to its end, also after a restart. A file that is cut short or
    written anew is noticed (see `lost`).

    Parameters
    ----------
    path : path or "-"
        "-" is standard input. It cannot be read twice: its position only counts lines, and after a restart its
        writer must continue after the last committed line.
    form : Form, optional
        Features, classes, schema and scaling.
    follow : bool, default True
        True: wait for more at the end of a file. False: end there; a last line without a line end is read too.
        Standard input ends when its writer does.
    bad : callable, optional
        ErrorHandler called for every line that is not a message (`BadMessage`), for instance `Tally()`; the line is
        then skipped. By default the error is raised.
    lost : callable, optional
        ErrorHandler called when lines may be lost before they were read (`MessagesLost`); the file is then read from
        its start. By default the error is raised.
    wait : float > 0, default 1
        Seconds without a line after which None is yielded.
    name : str, optional
        By default made of the absolute path.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.
    FileNotFoundError
        While iterating with follow=False. With follow=True a file that does not exist is waited for.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.jsonl"
    ...     _ = path.write_text('{"id": 1, "x": [0.5, 2]}\\n{"id": 1, "y": "no"}\\n')
    ...     source = JSONLines(path, follow=False)
    ...     question, answer = source.messages()
    ...     again = list(source.messages(question.position))
    >>> question.id, question.x, question.y
    (1, array([0.5, 2. ]), None)
    >>> again == [answer]
    True
    """

    def __repr__(self) -> str:
        return f"JSONLines({'-' if self.path is None else str(self.path)!r}, form={self.form!r}, follow={self.follow})"

    def parts(self, text: str) -> Parts:
        return self._decoder.json(text)


class CSVRows(LineReader):
    """Rows of a CSV file that grows or comes on standard input; the first row names the columns.

    A row without a label ("", "?", NA, nan, null and the like, unless that is a class) is a question; a row with only
    id and label is an answer. Every row is one line: a quoted field may hold delimiters but no line end, since a quote
    that is never closed would block the stream for ever. Everything else is as for `JSONLines`.

    Parameters
    ----------
    path : path or "-"
    label : str, optional
        Name of the label's column. None: questions only.
    id : str, optional
        Name of the id's column. Ids are text.
    delimiter : str of one character
    decimal : "." or ",", default "."
        What stands before the decimals of numbers.
    form, follow, bad, lost, wait, name
        As for `JSONLines`. By default the features are all other columns except those that the schema skips;
        columns that a form does not name are ignored.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; while iterating, when the row of names is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.csv"
    ...     _ = path.write_text("key,width,height,fruit\\nk1,0.5,2,\\nk1,,,lime\\n")
    ...     for message in CSVRows(path, label="fruit", id="key", follow=False).messages():
    ...         print(message.id, message.x, message.y)
    k1 [0.5 2. ] None
    k1 None lime
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        label: str | None,
        *,
        id: str | None = None,
        delimiter: str = ",",
        decimal: Literal[".", ","] = ".",
        form: Form | None = None,
        follow: bool = True,
        bad: ErrorHandler | None = None,
        lost: ErrorHandler | None = None,
        wait: float = 1.0,
        name: str | None = None,
    ) -> None:
        super().__init__(path, form=form, follow=follow, bad=bad, lost=lost, wait=wait, name=name)
        for parameter, column in (("label", label), ("id", id)):
            if column is not None and not isinstance(column, str):
                raise TypeError(f"{parameter} must be the name of a column, or None, got {column!r}")
        if label is not None and label == id:
            raise ValueError(f"id must be another column than label, got {id!r} for both")
        check_delimiter(delimiter)
        check_decimal(decimal)
        self._decoder = Decoder(self.form, textual=True, comma=decimal == ",")
        self.label, self.id, self.delimiter = label, id, delimiter
        self._columns: list[str] = []

    def __repr__(self) -> str:
        path = "-" if self.path is None else str(self.path)
        return f"CSVRows({path!r}, {self.label!r}, id={self.id!r}, form={self.form!r}, follow={self.follow})"

    def heading(self, raw: bytes | None, number: int) -> bool:
        where = self.where(number)
        try:
            names = list(distinct_names("column names", self._fields(utf8((raw or b"").removesuffix(b"\r")))))
            if len(names) == 1:
                check_one_name("a file of rows", names[0], self.delimiter)
            for parameter, column in (("label", self.label), ("id", self.id)):
                if column is not None and column not in names:
                    raise ValueError(f"{parameter} must be one of the columns {names!r}, got {column!r}")
            if self._decoder.features is None:
                self._decoder.name(tuple(name for name in names if name not in (self.label, self.id)))
            for feature in self._decoder.features or ():
                if feature not in names or feature in (self.label, self.id):
                    raise ValueError(f"features must be columns of {names!r} other than label and id, got {feature!r}")
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        self._columns = names
        return True

    def _fields(self, text: str) -> list[str]:
        try:
            return next(csv.reader([text], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            raise ValueError(f"must be a row of CSV on one line: {error}") from None

    def parts(self, text: str) -> Parts:
        fields = self._fields(text)
        if len(fields) != len(self._columns):
            raise ValueError(f"must have {len(self._columns)} fields, got {len(fields)}")
        row = dict(zip(self._columns, fields, strict=True))
        identity = check_id(row[self.id]) if self.id is not None and row[self.id] else None
        schema = self.form.schema or {}
        label = None if self.label is None else self._decoder.text_label(row[self.label])
        values = {name: row[name] for name in self._decoder.features or ()}
        known = any(value for name, value in values.items() if not isinstance(schema.get(name), Skip))
        return self._decoder.parts(identity, self._decoder.point(values) if known else None, label)
