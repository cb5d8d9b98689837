"""Values that nobody should give, each made anew."""

from __future__ import annotations

import datetime
import decimal
import fractions
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse


class Sub(np.ndarray):
    """A subclass of the array."""


class Unhashable:
    """Equal to nothing, and in no set."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Unhashable()"


def read_only(values: Any) -> np.ndarray:
    array = np.array(values, float)
    array.setflags(write=False)
    return array


def matrix() -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy advises against it, and people have it
        return np.asmatrix([[0.5, 1.0]])


def mapped(values: Any) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        array = np.memmap(file, float, "w+", shape=np.shape(values))
    array[:] = values
    return array


#: By name; the name is in reports.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "-infinity": lambda: float("-inf"),
    "-0.0": lambda: -0.0,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "0.5": lambda: 0.5,
    "1.5": lambda: 1.5,
    "1e308": lambda: 1e308,
    "5e-324": lambda: 5e-324,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "10**400": lambda: 10**400,
    "True": lambda: True,
    "False": lambda: False,
    "np.True_": lambda: np.True_,
    "complex": lambda: 1 + 2j,
    "np.float64 NaN": lambda: np.float64("nan"),
    "np.int8": lambda: np.int8(-3),
    "np.float16": lambda: np.float16(0.25),
    "longdouble": lambda: np.longdouble("0.3"),
    "Decimal": lambda: decimal.Decimal("0.25"),
    "Fraction": lambda: fractions.Fraction(1, 3),
    "date": lambda: datetime.date(2020, 1, 2),
    "datetime64": lambda: np.datetime64("2020-01-02"),
    "NaT": lambda: pd.NaT,
    "NA": lambda: pd.NA,
    "empty text": lambda: "",
    "text": lambda: "ab",
    "numeral": lambda: "1",
    "nan text": lambda: "nan",
    "NUL text": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "long text": lambda: "x" * 5000,
    "np.str_": lambda: np.str_("a"),
    "bytes": lambda: b"a",
    "bytearray": lambda: bytearray(b"ab"),
    "empty list": lambda: [],
    "empty tuple": lambda: (),
    "empty dict": dict,
    "empty set": set,
    "list": lambda: [0.5, 1.0],
    "list of NaN": lambda: [float("nan"), 1.0],
    "list of inf": lambda: [float("inf"), 1.0],
    "list of None": lambda: [None, None],
    "list of text": lambda: ["a", "b"],
    "list of numerals": lambda: ["1", "2"],
    "list of lists": lambda: [[0.5, 1.0], [1.0, 0.0]],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "list of huge": lambda: [10**400, 1],
    "list of bool": lambda: [True, False],
    "list of unhashable": lambda: [[], {}],
    "duplicates": lambda: ["a", "a"],
    "mixed": lambda: ["a", 1, None, 2.5],
    "three numbers": lambda: [0.0, 1.0, 2.0],
    "one number": lambda: [1.0],
    "negative numbers": lambda: [-1.0, -2.0],
    "huge numbers": lambda: [1e308, -1e308],
    "tiny numbers": lambda: [5e-324, 1e-300],
    "range": lambda: range(3),
    "dict": lambda: {"a": 1.0, "b": 2.0},
    "set": lambda: {0.5, 1.0},
    "generator": lambda: (v for v in (0.5, 1.0)),
    "generator of rows": lambda: (row for row in ([0.5, 1.0], [1.0, 0.0])),
    "map": lambda: map(float, "12"),
    "0-d array": lambda: np.array(0.5),
    "0-d text": lambda: np.array("a"),
    "empty array": lambda: np.array([]),
    "array (0, 2)": lambda: np.empty((0, 2)),
    "array (2, 0)": lambda: np.empty((2, 0)),
    "array (1, 2)": lambda: np.array([[0.5, 1.0]]),
    "array (2, 2)": lambda: np.array([[0.5, 0.5], [0.25, 0.75]]),
    "array (2, 2, 2)": lambda: np.zeros((2, 2, 2)),
    "array (20, 3)": lambda: np.zeros((20, 3)),
    "NaN array": lambda: np.full((20, 2), np.nan),
    "object array": lambda: np.array([0.5, 1.0], object),
    "object array of None": lambda: np.array([None, None], object),
    "object array of arrays": lambda: np.array([np.zeros(2), None], object),
    "int8 array": lambda: np.array([-100, 100], np.int8),
    "uint64 array": lambda: np.array([2**64 - 1, 0], np.uint64),
    "float32 array": lambda: np.array([0.5, 1.0], np.float32),
    "big-endian array": lambda: np.array([0.5, 1.0], ">f8"),
    "strided array": lambda: np.arange(8.0)[::4],
    "Fortran array": lambda: np.asfortranarray(np.ones((20, 2))),
    "bool array": lambda: np.array([True, False]),
    "complex array": lambda: np.array([1j, 0.0]),
    "date array": lambda: np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
    "delta array": lambda: np.array([1, 2], "timedelta64[s]"),
    "text array": lambda: np.array(["a", "b"]),
    "bytes array": lambda: np.array([b"a", b"b"]),
    "record array": lambda: np.zeros(2, [("p", float), ("q", int)]),
    "masked array": lambda: np.ma.masked_array([0.5, 1.0], [False, True]),
    "matrix": matrix,
    "subclass": lambda: np.array([0.5, 1.0]).view(Sub),
    "read-only array": lambda: read_only([0.5, 1.0]),
    "memory map": lambda: mapped([0.5, 1.0]),
    "read-only rows": lambda: read_only(np.ones((20, 2))),
    "memory map of rows": lambda: mapped(np.ones((20, 2))),
    "csr": lambda: sparse.csr_array(np.array([[0.5, 0.0]])),
    "csr rows": lambda: sparse.csr_array(np.eye(20, 2)),
    "coo": lambda: sparse.coo_array(np.array([[0.5, 0.0]])),
    "csr of NaN": lambda: sparse.csr_array(np.array([[np.nan, 0.0]])),
    "empty csr": lambda: sparse.csr_array((0, 2)),
    "csr matrix": lambda: sparse.csr_matrix(np.array([[0.5, 0.0]])),
    "Series": lambda: pd.Series([0.5, 1.0]),
    "Series of text": lambda: pd.Series(["a", "b"], dtype="category"),
    "Series with NA": lambda: pd.Series([1, None], dtype="Int64"),
    "DataFrame": lambda: pd.DataFrame({"p": [0.5, 1.0], "q": [1.0, 0.0]}),
    "DataFrame of text": lambda: pd.DataFrame({"p": ["x"] * 20, "q": ["y"] * 20}),
    "empty DataFrame": pd.DataFrame,
    "Index": lambda: pd.Index([0.5, 1.0]),
    "object": object,
    "class": lambda: int,
    "array class": lambda: np.ndarray,
    "function": lambda: len,
    "lambda": lambda: lambda *arguments: None,
    "module": lambda: np,
    "generator of random numbers": lambda: np.random.default_rng(0),
    "unhashable": Unhashable,
    "Path": lambda: Path("nowhere"),
    "slice": lambda: slice(0, 2),
    "Ellipsis": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
}
