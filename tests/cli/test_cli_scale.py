"""``--scale`` on the command line: raw columns as good as scaled ones, a run goes on as it began, a hint without."""

import json
import math
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well

import streams
import venn
from venn import cli

N, D, CLASSES = 600, 8, ("dry", "rain")
NAMES = [f"c{i}" for i in range(D)]
ALONE = ("--no-conformal", "--no-drift")  # what these say of a step costs more than the step
LIVE = ("--end", "--label", "label", "--classes", ",".join(CLASSES), "--features", ",".join(NAMES))


def table(seed):
    """Return columns of scales from 1e-3 to 1e6, one skew, one of few values, some far from 0, and labels."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, D))
    Z[:, 3], Z[:, 5] = np.exp(Z[:, 3] / 2), rng.integers(0, 5, N)
    score = 1.5 * Z[:, 0] - Z[:, 1] * Z[:, 2] + Z[:, 4] + 0.7 * Z[:, 6] + 0.7 * rng.logistic(size=N)
    raw = Z * 10.0 ** np.linspace(-3, 6, D) + [0, 0, 1016, 0, 0, 7, 1e5, 0]
    return raw, [CLASSES[one] for one in (score > 0).astype(int)]


def write(path, X, y):
    rows = [",".join([*map(repr, x.tolist()), label]) for x, label in zip(X, y, strict=True)]
    path.write_text("\n".join([",".join([*NAMES, "label"]), *rows]) + "\n")


@pytest.fixture
def typed(tmp_path, monkeypatch, undrawn):
    """Run a command in a folder with a raw table and the same table scaled, in this process."""
    monkeypatch.chdir(tmp_path)
    X, y = table(0)
    write(tmp_path / "raw.csv", X, y)
    return lambda *arguments: CliRunner().invoke(cli.main, [*map(str, arguments)])


def losses(typed, file, y, *arguments):
    """Return the log loss of every step of a run over a file, by predictor."""
    result = well(typed("run", "--source", f"csv:{file}", *LIVE, "--quiet", "--journal", f"{file}.db", *arguments))
    lines = [json.loads(line)["predictions"] for line in result.stdout.splitlines()]
    names = [name for name in lines[0] if "probabilities" in lines[0][name]]
    return {
        name: np.array([-math.log(said[name]["probabilities"][label]) for said, label in zip(lines, y, strict=True)])
        for name in names
    }


@pytest.mark.program
def test_a_raw_table_is_predicted_as_well_as_the_scaled_one(typed, tmp_path):
    """Over all steps by the usual predictors; by Venn-Abers, which the first 30 are lost to, from step 100 on."""
    found = []
    for seed in (1, 2):
        X, y = table(seed)
        write(tmp_path / f"raw{seed}.csv", X, y)
        write(tmp_path / f"scaled{seed}.csv", (X - X.mean(axis=0)) / X.std(axis=0), y)
        row = []
        for file, scale in ((f"raw{seed}.csv", ["--scale"]), (f"scaled{seed}.csv", [])):
            lost = losses(typed, file, y, "--predictors", "inductive,abers", *scale, *ALONE)
            row.append([lost["inductive"].mean(), lost["abers"][100:].mean()])
        found.append(row)
    raw, scaled = np.mean(found, axis=0)
    assert raw[0] <= 1.02 * scaled[0]
    assert raw[1] <= 1.02 * scaled[1]


def test_the_default_predictor_says_the_same_in_any_units_and_without_a_warning(typed, tmp_path):
    X, y = table(0)
    write(tmp_path / "few.csv", X[:50], y[:50])
    write(tmp_path / "same.csv", ((X - X.mean(axis=0)) / X.std(axis=0))[:50], y[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raw, scaled = (losses(typed, file, y[:50]) for file in ("few.csv", "same.csv"))
    assert list(raw) == ["forecast", "intervals"]
    for name, lost in raw.items():
        assert np.allclose(lost, scaled[name], atol=1e-5)
    again = typed("run", "--source", "csv:few.csv", *LIVE, "--journal", "few.csv.db", "--no-scale")
    assert again.exit_code == 1
    assert "few.csv.db holds a run whose predictor forecast is " in again.stderr
    assert "first=30" in again.stderr
    assert again.stderr.endswith(": see --scale\n")


def test_a_run_goes_on_on_the_scale_that_it_began_with(typed, tmp_path):
    X, y = table(0)
    write(tmp_path / "cut.csv", X[:40], y[:40])
    command = ("run", "--source", "csv:cut.csv", *LIVE, "--quiet", "--predictors", "leave_one_out,conformal")
    began = typed(*command, "--journal", "run.db", "--scale")
    write(tmp_path / "cut.csv", X[:80], y[:80])
    went_on = typed(*command, "--journal", "run.db", "--scale")
    whole = typed(*command, "--journal", "whole.db", "--scale")
    assert began.stdout + went_on.stdout == whole.stdout
    assert len(whole.stdout.splitlines()) == 80
    for other in (["--kernel", "rbf"], ["--no-scale"]):
        refused = typed(*command, "--journal", "run.db", *other)
        assert refused.exit_code == 1
        assert "run.db holds a run whose predictor leave_one_out is TransductiveVenn(" in refused.stderr
        assert refused.stderr.endswith(": see --scale\n")


def test_a_data_set_goes_on_as_it_was_loaded(typed):
    command = ("run", "--source", "car", "--steps", 40, "--shuffle", 0, "--quiet", "--predictors", "leave_one_out")
    assert typed(*command, "--journal", "run.db").exit_code == 0
    refused = typed(*command, "--journal", "run.db", "--no-scale")
    assert refused.exit_code == 1
    assert "scale=False" in refused.stderr
    assert refused.stderr.endswith(": see --scale\n")


def test_the_file_takes_the_key(typed, tmp_path):
    (tmp_path / "c.toml").write_text("[machine]\nscale = true\n")
    check = ("run", "--config", "c.toml", "--source", "csv:raw.csv", *LIVE, "--journal", "x.db", "--check")
    said = typed(*check, "--predictors", "forecaster,leave_one_out")
    assert "columns scaled by the first 30" in said.stdout
    assert "scaled by the first 30 examples" in said.stdout
    said = typed(*check, "--predictors", "forecaster,leave_one_out", "--no-scale")
    assert "columns taken as they are" in said.stdout
    assert "scaled by" not in said.stdout
    (tmp_path / "c.toml").write_text("[machine]\nscale = 'yes'\n")
    said = typed("run", "--config", "c.toml", "--source", "csv:raw.csv", *LIVE, "--journal", "x.db", "--check")
    assert "c.toml, [machine] scale must be true or false, got 'yes'" in said.stderr


@pytest.mark.parametrize("window", [(), ("--window", "50")])
def test_a_raw_table_without_scaling_is_one_line(typed, window):
    unscaled = ("--predictors", "leave_one_out", "--kernel", "rbf")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = typed("run", "--source", "csv:raw.csv", *LIVE, "--journal", "x.db", *unscaled, *window)
    assert said.exit_code == 0
    [line] = [line for line in said.stderr.splitlines() if line.startswith("warning: ")]
    for word in ("column 7", "column 0", "--scale"):
        assert word in line


def test_replay_scales_as_a_machine_would(typed):
    X, y = table(0)
    usual = ("replay", "raw.csv", "--label", "label", "--shuffle", "none", "--predictors", "abers", "--steps", 120,
             "--gamma", 0.1, "--C", 3, "--json", "--out")  # fmt: skip
    said = json.loads(typed(*usual, "a", "--scale").stdout)
    machine = venn.LeastSquaresSVM(venn.RBF(0.1), 3, CLASSES, scale=True)
    record = venn.replay(
        streams.from_arrays(X, y, classes=CLASSES), venn.Panel(abers=venn.TransductiveVennAbers(machine)),
        steps=120,
    )  # fmt: skip
    assert said["predictors"]["abers"]["log_loss"] == pytest.approx(record.means()["abers"]["log_loss"], rel=1e-12)
    standardised = json.loads(typed(*usual, "b").stdout)
    assert standardised["predictors"]["abers"]["log_loss"] != said["predictors"]["abers"]["log_loss"]
    tuned = typed("replay", "raw.csv", "--label", "label", "--predictors", "abers", "--steps", 60, "--tune", 40,
                  "--scale", "--out", "c")  # fmt: skip
    assert tuned.exit_code == 0, tuned.output
    assert "on the first 40 examples" in tuned.output
    assert "scaled by the first 30 examples" in tuned.output


@pytest.mark.parametrize(
    "command",
    [
        ("monitor", "raw.csv", "--label", "label", "--steps", 40, "--scale", "--predictors", "leave_one_out"),
        ("compare", "raw.csv", "--label", "label", "--steps", 40, "--scale", "--shuffles", 1, "--predictors",
         "leave_one_out"),
    ],
    ids=["monitor", "compare"],
)  # fmt: skip
def test_the_others_take_it_too(typed, command):
    said = well(typed(*command))
    assert "leave_one_out" in said.output
