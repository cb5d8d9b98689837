"""``venn replay DATA --series COLUMN``: a table by horizon, a figure of fans, JSON, refusals."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well

from venn import cli
from venn.series import SeriesForecaster
from venn.series.scores import PathScores


@pytest.fixture
def demand(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "demand.csv"
    rows = [f"{t},{10 + 3 * np.sin(t * np.pi / 3) + rng.normal():.3f},{t % 2}" for t in range(110)]
    rows[40] = "40,,0"
    path.write_text("time,load,weekend\n" + "\n".join(rows) + "\n")
    return path


def run(*given):
    return CliRunner().invoke(cli.main, ["replay", *map(str, given)])


def test_a_series_is_forecast(demand, tmp_path):
    found = well(run(demand, "--series", "load", "--season", "6", "--horizon", "4", "--out", tmp_path / "out"))
    lines = found.stdout.splitlines()
    assert lines[0] == "demand: 110 values, 4 steps ahead, season 6"
    assert [line.split()[0] for line in lines[1:6]] == ["horizon", "1", "2", "3", "4"]
    assert (tmp_path / "out" / "fans.png").stat().st_size > 10_000
    assert lines[-1].startswith("verdict: ")


def test_the_table_is_there_though_the_figure_cannot_be_written(demand, tmp_path):
    (tmp_path / "out").write_text("in the way")
    found = run(demand, "--series", "load", "--season", "6", "--horizon", "4", "--out", tmp_path / "out" / "there")
    assert found.exit_code == 1
    assert "inside .1" in found.stdout
    assert "--out must be a place that can be written" in found.stderr


def test_json_has_every_horizon_and_every_account(demand, tmp_path):
    given = ("--series", "load", "--season", "6,12", "--horizon", "3", "--covariates", "weekend", "--json")
    found = well(run(demand, *given, "--out", tmp_path))
    told = json.loads(found.stdout)
    assert [row["horizon"] for row in told["horizons"]] == [1, 2, 3]
    assert told["horizons"][0]["n"] == 108  # the first value and the gap are no answers
    assert len(told["accounts"]) == 4 * 4
    assert told["seasons"] == [6, 12]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--season", "6"), "--series"),
        (("--series", "lood"), "did you mean 'load'"),
        (("--series", "load", "--season", "0"), "--season must be periods"),
        (("--series", "load", "--season", "6,6"), "--season must be periods"),
        (("--series", "load", "--horizon", "0"), "--horizon must be an integer from 1 to 1000"),
        (("--series", "time", "--covariates", "load"), "must be a number"),
    ],
)
def test_what_cannot_be_is_refused(demand, given, words):
    found = run(demand, *given)
    assert found.exit_code != 0
    assert words in found.output


def test_scores_are_means_of_what_was_told():
    values = np.random.default_rng(0).normal(size=40).cumsum()
    values[20] = np.nan
    model, scores, told = SeriesForecaster(1, 2), PathScores(2, 1), []
    for y in values.tolist():
        scores.came(y)
        model.learn_one(y)
        told.append(model.forecast())
        scores.told(told[-1])
    for h in (1, 2):
        pairs = [(told[t][h], y) for t, y in enumerate(values[h:]) if not np.isnan(y)]
        ends = np.array([step.interval(0.1) for step, _ in pairs])
        y = np.array([y for _, y in pairs])
        row = scores.rows[h - 1]
        assert row.n == len(pairs)
        assert row.inside == pytest.approx(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean())
        width = ends[:, 1] - ends[:, 0]
        assert row.width == pytest.approx(width[np.isfinite(width)].mean())
        known = [step.crps(y) for step, y in pairs if not np.isnan(step.median)]
        assert row.crps == pytest.approx(sum(known) / row.n)
