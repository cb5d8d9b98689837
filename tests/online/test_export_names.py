"""An export keeps names: those of columns where a source, a scorer or a file has them, ids, and of classes."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well

import venn
from venn import cli
from venn.online.figures import export


class Fitted:
    """A classifier that was fitted to a table."""

    classes_ = np.array(["down", "up"])
    feature_names_in_ = np.array(["age", "net income"], object)

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-np.asarray(X, float)[:, 0]))
        return np.column_stack([1 - p, p])


def header(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return list(rows[0]), rows


def test_the_names_of_a_scorer_s_table_are_columns(tmp_path):
    model = venn.InductiveVennAbers(venn.FrozenScorer(Fitted()))
    with venn.Online(model, journal=tmp_path / "run.db") as online:
        online.ask([0.5, 2.0], id="order 7")
        online.answer("order 7", "up")
    with venn.Online(venn.InductiveVennAbers(venn.FrozenScorer(Fitted())), journal=tmp_path / "run.db") as online:
        online.ask([1.5, 3.0], id="order 8")
    export(tmp_path / "run.db", tmp_path / "run.csv")
    names, rows = header(tmp_path / "run.csv")
    assert [name for name in names if name.startswith("x.")] == ["x.age", "x.net income"]
    assert [row["id"] for row in rows] == ["order 7", "order 8"]
    assert [row["x.net income"] for row in rows] == ["2.0", "3.0"]
    probabilities = [float(rows[0][f"InductiveVennAbers.probabilities.{label}"]) for label in ("down", "up")]
    assert sum(probabilities) == pytest.approx(1)


@pytest.mark.parametrize("live", [True, False])
def test_the_names_of_a_file_s_columns_are_columns(tmp_path, monkeypatch, live):
    monkeypatch.chdir(tmp_path)
    lines = [f"k{i},{i % 5},{('red', 'blue')[i % 2]},{('u', 'v')[i % 2]}" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["key,size,colour,y", *lines, ""]))
    words = ["run", "--journal", "run.db", "--label", "y", "--predictors", "conformal", "--quiet", "--out", "o"]
    words += (
        ["--source", "csv:t.csv", "--end", "--id", "key", "--classes", "u,v", "--nominal", "colour=red,blue"]
        if live
        else ["--source", "t.csv", "--skip", "key", "--nominal", "colour"]
    )
    well(CliRunner().invoke(cli.main, words))
    export("run.db", "run.csv")
    names, rows = header(tmp_path / "run.csv")
    assert {"x.size", "x.colour=red", "x.colour=blue"} <= {*names}
    assert "x.0" not in names
    assert len(rows) == 12
    assert (rows[3]["id"] == "k3") == live
    again = CliRunner().invoke(cli.main, words)  # the names are no other source
    assert again.exit_code == 0, again.output


def test_without_names_values_are_numbered(tmp_path):
    model = venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, ["down", "up"]))
    with venn.Online(model, journal=tmp_path / "run.db") as online:
        online.ask([0.5, 2.0], id=1)
    export(tmp_path / "run.db", tmp_path / "run.csv")
    assert [name for name in header(tmp_path / "run.csv")[0] if name.startswith("x.")] == ["x.0", "x.1"]
