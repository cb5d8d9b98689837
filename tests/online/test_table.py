"""A journal and a record as tables."""

import csv
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import venn
from venn import cli
from venn.online import figures

ROWS = [([0.0, 1.0], "no"), ([1.0, 0.5], "yes"), ([0.1, 0.9], "no"), ([0.9, 0.4], None), ([0.5, 0.5], "yes")]


@pytest.fixture
def run(tmp_path):
    machine = venn.LeastSquaresSVM(venn.Linear(), 1.0, ["no", "yes"])
    panel = venn.Panel(venn=venn.TransductiveVenn(machine), sets=venn.Conformal(machine))
    said, path = [], tmp_path / "run.db"
    with venn.Online(panel, journal=path) as online:
        for number, (x, _) in enumerate(ROWS):
            said.append(online.ask(x, f"k{number}"))
        online.expire("k3")
        for number, (_, y) in reversed([*enumerate(ROWS)]):
            if y is not None:
                online.answer(f"k{number}", y)
        return path, said, online.record()


def export(*arguments):
    return CliRunner().invoke(cli.main, ["export", *map(str, arguments)])


def test_a_journal_as_csv_and_as_parquet(run, tmp_path):
    path, said, _ = run
    assert export(path, "--out", tmp_path / "t.csv").output == f"{tmp_path / 't.csv'} holds 5 questions\n"
    with open(tmp_path / "t.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["id"] for row in rows] == [f"k{i}" for i in range(5)]
    assert [row["y"] for row in rows] == [y or "" for _, y in ROWS]
    assert [row["expired"] for row in rows] == ["False", "False", "False", "True", "False"]
    for row, (x, _), each in zip(rows, ROWS, said, strict=True):
        assert [float(row["x.0"]), float(row["x.1"])] == x
        bounds = [[float(row[f"venn.intervals.{k}.{end}"]) for k in ("no", "yes")] for end in ("lower", "upper")]
        np.testing.assert_array_equal(bounds, each["venn"].bounds)
        assert [float(row[f"sets.p_values.{k}"]) for k in ("no", "yes")] == each["sets"].p_values.tolist()
    parquet = pytest.importorskip("pyarrow.parquet", reason="the package pyarrow is not installed")
    assert export(path, "--out", tmp_path / "t.parquet").exit_code == 0
    columns = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert columns == figures.of_journal(path)


def test_what_cannot_be_written(run, tmp_path, monkeypatch):
    path, _, record = run
    assert "out must end in .csv or .parquet, got" in export(path, "--out", tmp_path / "t.txt").output
    (tmp_path / "t.csv").write_text("")
    assert "must be a new file" in export(path, "--out", tmp_path / "t.csv").output
    assert "there is no such file" in export(tmp_path / "no.db", "--out", tmp_path / "u.csv").output
    with pytest.raises(ValueError, match="backend must be one of pandas, polars, pyarrow, got 'dask'"):
        record.to_frame("dask")
    for package in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, package, None)
    told = export(path, "--out", tmp_path / "t.parquet")
    assert (
        told.output
        == "Error: a .parquet file needs the package pyarrow: pip install pyarrow; a .csv file needs nothing\n"
    )
    with pytest.raises(ImportError, match="needs the package pandas: pip install pandas"):
        record.to_frame()


@pytest.mark.parametrize("backend", figures.BACKENDS)
def test_a_record_as_a_frame(backend, run):
    pytest.importorskip(backend, reason=f"the package {backend} is not installed")
    record = run[2]
    found = record.to_frame(backend)
    assert type(found).__module__.split(".")[0] == backend
    columns = {
        name: [*map(lambda one: getattr(one, "as_py", lambda: one)(), found[name])]
        for name in figures.of_record(record)
    }
    assert columns == figures.of_record(record)
    assert columns["y"] == ["yes", "no", "yes", "no"]
    np.testing.assert_array_equal(columns["venn.lower"], record.outcomes("venn").lower)
    np.testing.assert_array_equal(columns["sets.p_values.no"], record.outcomes("sets").row[0])


def test_objects_with_names_have_columns_of_these_names(tmp_path):
    class Any:
        classes_ = ("no", "yes")
        feature_names_in_, n_features_in_ = ("age", "city"), 2

        def predict_proba(self, X):
            return np.tile([0.4, 0.6], (len(X), 1))

    pytest.importorskip("pandas", reason="text is handed on in its tables")
    objects = [{"city": "Oslo", "age": 31}, {"age": 40, "city": None}, [50, "Rome"]]
    with venn.Online(venn.Forecaster(scorer=Any()), journal=tmp_path / "run.db") as online:
        for x in objects:
            online.ask(x)
    columns = figures.of_journal(tmp_path / "run.db")
    assert columns["x.age"] == [31, 40, 50]
    assert columns["x.city"] == ["Oslo", None, "Rome"]
    assert export(tmp_path / "run.db", "--out", tmp_path / "t.csv").exit_code == 0


@pytest.mark.parametrize("backend", figures.BACKENDS)
def test_labels_of_two_types_are_a_column_of_text_where_a_column_has_one(backend, tmp_path):
    pytest.importorskip(backend)
    classes = [1, "unknown", True]
    with venn.Online(venn.Forecaster([1, "unknown"]), journal=tmp_path / "run.db") as online:
        for i in range(4):
            online.ask([float(i)], id=str(i) if i else 0)
        for i in range(3):
            online.answer(str(i) if i else 0, classes[i % 2])
        record = online.record()
    y = record.to_frame(backend)["y"]
    assert (y.tolist() if backend == "pandas" else y.to_pylist() if backend == "pyarrow" else y.to_list()) == (
        [1, "unknown", 1] if backend == "pandas" else ["1", "unknown", "1"]
    )
    if backend == "pyarrow":
        from pyarrow import parquet

        assert export(tmp_path / "run.db", "--out", tmp_path / "t.parquet").exit_code == 0
        columns = parquet.read_table(tmp_path / "t.parquet").to_pydict()
        assert (columns["y"], columns["id"]) == (["1", "unknown", "1", None], ["0", "1", "2", "3"])
        assert columns["x.0"] == [0.0, 1.0, 2.0, 3.0]
