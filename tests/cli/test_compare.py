"""`venn compare`: one table of several data sets and shuffles, and a record of each replay."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well

import venn
from venn import cli
from venn.cli.replay import Learning


@pytest.fixture
def run(tmp_path, monkeypatch, undrawn):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, ["compare", *map(str, arguments)])


@pytest.fixture
def fruit(tmp_path):
    """A small CSV file, and a function that writes it with other numbers."""

    def write(seed):
        rng = np.random.default_rng(seed)
        rows = [f"{rng.normal():.3f},{rng.choice(['apple', 'lemon'])}" for _ in range(24)]
        (tmp_path / "fruit.csv").write_text("\n".join(["weight,fruit", *rows]) + "\n")

    write(0)
    return write


def test_the_table_says_what_single_replays_say(run, tmp_path):
    """The means over the shuffles of what `venn replay` says of each."""
    done = well(run("car", "--steps", 25, "--shuffles", 2, "--predictors", "leave_one_out,conformal", "--no-progress"))
    told = []
    for seed in range(2):
        one = ["replay", "car", "--steps", 25, "--shuffle", seed, "--predictors", "leave_one_out,conformal", "--json"]
        alone = CliRunner().invoke(cli.main, [str(word) for word in [*one, "--out", tmp_path / "alone"]])
        told.append(json.loads(alone.stdout.splitlines()[-1])["predictors"])
    lines = done.stdout.splitlines()
    assert lines[0] == "means over 2 shuffles"
    (leave_one_out,) = (line.split() for line in lines if line.startswith("car leave_one_out "))
    (conformal,) = (line.split() for line in lines if line.startswith("car conformal "))
    for column, field in enumerate(["accuracy", "lower", "upper", "width", "log_loss", "brier"], 2):
        assert leave_one_out[column] == f"{np.mean([one['leave_one_out'][field] for one in told]):.4f}"
    for column, field in enumerate(["accuracy", "error_0.01", "error_0.05"], 2):
        assert conformal[column] == f"{np.mean([one['conformal'][field] for one in told]):.4f}"
    assert told[0] != told[1]


def test_a_file_gets_the_table_alone(run, fruit):
    words = ("--label", "fruit", "--predictors", "leave_one_out", "--tune", 0, "--out", "here", "--shuffles", 2)
    done = run("fruit.csv", *words)
    assert done.stdout.startswith("means over 2 shuffles\npredictor ")
    assert done.stdout.endswith("Log loss in nats.\n")
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr == "records: here/\n"


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_doubtful_column_is_named_once_and_not_in_each_replay(run, tmp_path):
    (tmp_path / "rows.csv").write_text("n,a,y\n" + "".join(f"{i},{i % 3},{'np'[i % 2]}\n" for i in range(20)))
    done = run(
        "rows.csv", "--label", "y", "--predictors", "leave_one_out", "--tune", 0, "--out", "here", "--shuffles", 2
    )
    assert done.exit_code == 0, done.output
    assert done.stderr.count("warning:") == done.stderr.count("--skip n leaves it out") == 1


def test_json_has_a_row_for_each_replay_and_predictor(run, fruit):
    done = run(
        "fruit.csv", "--label", "fruit", "--predictors", "leave_one_out,abers", "--tune", 0, "--json", "--shuffles", 2
    )
    rows = json.loads(done.stdout)["rows"]
    assert [(row["data"], row["shuffle"], row["predictor"]) for row in rows] == [
        ("fruit", seed, name) for seed in range(2) for name in ("leave_one_out", "abers")
    ]
    for row in rows:
        assert row["examples"] == 24
        record = venn.Record.load(row["record"])
        assert record.shuffle == row["shuffle"]
        assert record.means()[row["predictor"]]["log_loss"] == row["log_loss"]


def test_files_of_the_same_name_have_a_line_each(run, fruit, tmp_path):
    titles = []
    for seed, name in enumerate(["x", "y"]):
        fruit(seed)
        (tmp_path / name).mkdir()
        (tmp_path / "fruit.csv").rename(tmp_path / name / "fruit.csv")
        titles.append(f"{name}/fruit.csv")
    done = well(run(*titles, "--label", "fruit", "--predictors", "leave_one_out", "--tune", 0, "--shuffles", 1))
    lines = [line.split()[:2] for line in done.stdout.splitlines() if "leave_one_out" in line]
    assert lines == [[title, "leave_one_out"] for title in titles]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("this order is not to my liking"), 1,
         ["failed: fruit, shuffle 1: this order is not to my liking", "1 of 2 replays failed"]),
        (KeyboardInterrupt(), 130, ["interrupted: the table is that of the replays until then"]),
    ],
)  # fmt: skip
def test_what_was_done_before_a_failure_or_an_interrupt_is_printed(run, fruit, monkeypatch, error, code, said):
    def open_but(self, data, shuffle, opened=Learning.open):
        if shuffle == 1:
            raise error
        return opened(self, data, shuffle)

    monkeypatch.setattr(Learning, "open", open_but)
    done = run("fruit.csv", "--label", "fruit", "--predictors", "leave_one_out", "--tune", 0, "--shuffles", 2)
    assert done.exit_code == code
    assert "fruit leave_one_out" in done.stdout
    assert [text for text in said if text not in done.stderr] == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["cra"], "did you mean car"),
        (["car", "car"], "DATA must name each data set once, got car car"),
        ([], "Missing argument 'DATA...'"),
        (["car", "--predictors", "forecaster", "--kernel", "linear"], "--kernel chooses nothing of a forecaster"),
    ],
    ids=[f"{i}" for i in range(4)],
)
def test_what_is_refused(run, words, reason):
    done = run(*words)
    assert done.exit_code != 0
    assert reason in done.output
    assert "replays failed" not in done.output  # it is refused once, before any of them
