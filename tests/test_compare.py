"""`venn compare`: one table of several data sets and shuffles, kept, gone on with, here or on a cluster."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import streams
from venn import cli
from venn.cli.config import merge
from venn.cli.setting import Learning


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


def kept(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*")}


def test_the_table_says_what_single_replays_say(run, tmp_path):
    """The means over the shuffles of what `venn replay` says of each."""
    done = run("car", "--steps", 25, "--shuffles", 2, "--predictors", "deleted,conformal", "--no-progress")
    assert done.exit_code == 0, done.output
    told = []
    for seed in range(2):
        one = ["replay", "car", "--steps", 25, "--shuffle", seed, "--predictors", "deleted,conformal", "--json"]
        alone = CliRunner().invoke(cli.main, [str(word) for word in [*one, "--out", tmp_path / "alone"]])
        told.append(json.loads(alone.stdout.splitlines()[-1])["predictors"])
    lines = done.stdout.splitlines()
    assert lines[0] == "means over 2 shuffles"
    (deleted,) = (line.split() for line in lines if line.startswith("car deleted "))
    (conformal,) = (line.split() for line in lines if line.startswith("car conformal "))
    for column, field in enumerate(["accuracy", "lower", "upper", "width", "log_loss", "brier"], 2):
        assert deleted[column] == f"{np.mean([one['deleted'][field] for one in told]):.4f}"
    for column, field in enumerate(["accuracy", "error_0.01", "error_0.05"], 2):
        assert conformal[column] == f"{np.mean([one['conformal'][field] for one in told]):.4f}"
    assert told[0] != told[1]


def test_a_file_gets_the_table_alone(run, fruit):
    words = ("--label", "fruit", "--predictors", "deleted", "--tune", 0, "--out", "here", "--shuffles", 2)
    done = run("fruit.csv", *words)
    assert done.stdout.startswith("means over 2 shuffles\npredictor ")
    assert done.stdout.endswith("Log loss in nats.\n")
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr == "results: here/\n"


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_doubtful_column_is_named_once_and_not_in_each_replay(run, tmp_path):
    (tmp_path / "rows.csv").write_text("n,a,y\n" + "".join(f"{i},{i % 3},{'np'[i % 2]}\n" for i in range(20)))
    done = run("rows.csv", "--label", "y", "--predictors", "deleted", "--tune", 0, "--out", "here", "--shuffles", 2)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("warning:") == done.stderr.count("--skip n leaves it out") == 1


def test_the_same_command_goes_on_and_another_file_is_another_result(run, fruit, tmp_path):
    words = ["fruit.csv", "--label", "fruit", "--predictors", "deleted", "--tune", 0, "--out", "here", "--shuffles"]
    assert run(*words, 1).exit_code == 0
    before = kept(tmp_path / "here")
    assert len(before) == 2
    done = run(*words, 2)
    after = kept(tmp_path / "here")
    assert {name: after[name] for name in before} == before
    assert len(after) == 4
    again = run(*words, 2)
    assert again.stdout == done.stdout
    assert kept(tmp_path / "here") == after
    fruit(1)
    assert run(*words, 1).stdout != done.stdout
    assert len(kept(tmp_path / "here")) == 6


def test_json_has_a_row_for_each_replay_and_predictor(run, fruit):
    done = run("fruit.csv", "--label", "fruit", "--predictors", "deleted,abers", "--tune", 0, "--json", "--shuffles", 2)
    rows = json.loads(done.stdout)["rows"]
    assert [(row["data"], row["shuffle"], row["predictor"]) for row in rows] == [
        ("fruit", seed, name) for seed in range(2) for name in ("deleted", "abers")
    ]
    assert all(row["examples"] == 24 and row["error"] is None for row in rows)


def test_files_of_the_same_name_have_a_line_each(run, fruit, tmp_path):
    titles = []
    for seed, name in enumerate(["x", "y"]):
        fruit(seed)
        (tmp_path / name).mkdir()
        (tmp_path / "fruit.csv").rename(tmp_path / name / "fruit.csv")
        titles.append(f"{name}/fruit.csv")
    done = run(*titles, "--label", "fruit", "--predictors", "deleted", "--tune", 0, "--shuffles", 1)
    assert done.exit_code == 0, done.output
    lines = [line.split()[:2] for line in done.stdout.splitlines() if "deleted" in line]
    assert lines == [[title, "deleted"] for title in titles]


def test_a_scheduler_gets_the_replays_and_the_table_is_the_same(run, fruit):
    distributed = pytest.importorskip("distributed", reason="the package distributed is not installed")
    words = ["fruit.csv", "--label", "fruit", "--predictors", "deleted", "--tune", 0, "--shuffles", 2]
    alone = run(*words).stdout
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,  # of one process, quick to start; others are tried in test_scale_replays.py
        host="tcp://127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        done = run(*words, "--cluster", cluster.scheduler_address, "--out", "cluster")
    assert done.exit_code == 0, done.output
    assert done.stdout == alone


def test_a_replay_that_fails_is_told_and_the_others_are_printed(run, fruit, monkeypatch):
    opened = Learning.open

    def open_but(self, data, shuffle):
        if shuffle == 1:
            raise ValueError("this order is not to my liking")
        return opened(self, data, shuffle)

    monkeypatch.setattr(Learning, "open", open_but)
    done = run("fruit.csv", "--label", "fruit", "--predictors", "deleted", "--tune", 0, "--shuffles", 2)
    assert done.exit_code == 1
    assert "fruit deleted" in done.stdout
    assert "failed: fruit, shuffle 1: ValueError: this order is not to my liking" in done.stderr
    assert "1 of 2 replays failed; the same command tries them again" in done.stderr
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["cra"], "did you mean car"),
        (["car", "car"], "DATA must name each data set once, got car car"),
        (["car", "--workers", 2, "--cluster", "tcp://127.0.0.1:1"], "--workers belongs to the cluster of this machine"),
        (["car", "--shuffles", 0], "0 is not in the range"),
        (["car", "--predictors", "ven"], "must be distinct names of"),
        ([], "Missing argument 'DATA...'"),
        (["car", "--predictors", "forecaster", "--kernel", "linear"], "--kernel chooses nothing of a forecaster"),
    ],
    ids=[f"{i}" for i in range(7)],
)
def test_what_is_refused(run, words, reason):
    done = run(*words)
    assert done.exit_code != 0
    assert reason in done.output
    assert "replays failed" not in done.output  # it is refused once, before any of them


def test_other_versions_and_files_of_a_worker_are_refused(fruit, tmp_path, monkeypatch):
    from venn.cli import compare

    monkeypatch.chdir(tmp_path)
    chosen = Learning(merge({"source": {"label": "fruit"}}, "", {}), tuned_on=0, no_progress=True)
    with pytest.raises(ValueError, match=r"vennstream must have the same version everywhere, 0\.0, and is"):
        compare.opened("car", 0, chosen=chosen, content=None, version="0.0")
    with pytest.raises(ValueError, match=r"fruit\.csv must be the same file everywhere"):
        compare.opened("fruit.csv", 0, chosen=chosen, content="0", version="0.0")
    assert "car" in {info.name for info in streams.datasets()}


def test_without_dask_one_line_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)  # its import then fails
    done = run("car", "--steps", 25, "--shuffles", 1, "--workers", 1, "--no-progress")
    assert done.exit_code == 1
    assert (
        done.output.splitlines()[-1] == "Error: venn.scale needs Dask: pip install 'dask[array,dataframe]' distributed"
    )
