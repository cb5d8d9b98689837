"""``venn monitor``: in a terminal, into a pipe, on records and files; what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import streams
from venn import cli
from venn.online.record import Record


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


@pytest.fixture
def flipped(tmp_path):
    """A CSV file whose labels flip after 300 of 500 examples."""
    stream = streams.flip_labels(streams.gaussians(500, classes=2, spread=0.4, seed=1), 300)
    path = tmp_path / "flipped.csv"
    lines = [f"{x[0]:.6f},{x[1]:.6f},{'no' if y else 'yes'}" for x, y in stream]
    path.write_text("\n".join(["p,q,answer", *lines]) + "\n")
    return path


FIXED = ("--label", "answer", "--gamma", "0.5", "--C", "1")


def test_into_a_pipe_each_alarm_is_a_line_and_a_summary_comes_last(run, flipped):
    result = run("monitor", flipped, *FIXED)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "deleted, conformal: least-squares SVM with RBF(gamma=0.5), C=1"
    steps = [int(step) for step in re.findall(r"^(?:deleted|conformal): At step (\d+)", result.stdout, flags=re.M)]
    assert steps
    assert all(300 < step <= 500 for step in steps)
    assert "flipped: step 500 of 500" in lines
    assert [line.split(":")[0] for line in lines[-2:]] == ["deleted", "conformal"]
    assert "Theorem: on exchangeable data" in result.stdout


def test_json_is_the_snapshots(run, flipped):
    result = run("monitor", flipped, *FIXED, "--json", "--steps", 200, "--predictors", "deleted,platt")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found) == ["deleted", "platt"]
    assert found["deleted"]["step"] == 200
    assert found["deleted"]["alarms"]["count"] == 0
    assert found["platt"]["evidence"][0]["detector"] == "ForwardEProcess"


def test_what_is_written_and_a_record_watched_again(run, tmp_path):
    options = ("--level", "0.05", "--run-length", "5000", "--window", "50", "--json")
    result = run("monitor", "car", "--shuffle", 0, "--steps", 300, "--out", "here", *options)
    assert result.exit_code == 0, result.output
    files = ["curves.png", "errors.png", "martingales.png", "p_values.png", "record.npz", "reliability.png"]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [*files, "snapshots.json"]
    snapshots = json.loads(result.stdout)
    assert json.loads((tmp_path / "here/snapshots.json").read_text()) == snapshots
    assert snapshots["deleted"]["window"]["size"] == 50
    again = run("monitor", "here/record.npz", *options)
    assert json.loads(again.stdout) == snapshots
    part = json.loads(run("monitor", "here/record.npz", *options, "--steps", 100, "--predictors", "deleted").stdout)
    assert list(part) == ["deleted"]
    assert part["deleted"]["step"] == 100
    record = Record.load(tmp_path / "here/record.npz")
    assert record.shuffle == 0
    assert len(record) == 300


def test_a_long_stream_gets_inductive_predictors(run):
    result = run("monitor", "covtype", "--steps", 500, "--gamma", "0.01", "--C", "1", "--json")
    if "covtype" not in [info.name for info in streams.datasets() if info.where]:
        pytest.skip("covtype is not at hand")
    assert result.exit_code == 0, result.output
    assert list(json.loads(result.stdout)) == ["inductive", "inductive_conformal"]


def test_the_speed_is_kept(run):
    start = time.monotonic()
    assert run("monitor", "car", "--steps", 20, "--speed", 40, "--predictors", "venn").exit_code == 0
    # No test of speed: a lower limit only, 19 waits of 1 / 40 s.
    assert time.monotonic() - start >= 19 / 40


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nowhere",), 1, "no data set and no file has the name 'nowhere'"),
        (("car", "--level", "1"), 2, "must lie between 0 and 1, both excluded, got 1"),
        (("car", "--level", "nan"), 2, "must lie between 0 and 1, both excluded, got nan"),
        (("car", "--run-length", "1"), 2, "1.0 is not in the range x>1"),
        (("car", "--window", "0"), 2, "0 is not in the range x>=1"),
        (("car", "--speed", "0"), 2, "must be a finite number > 0, got '0'"),
        (("car", "--predictors", "oracle"), 2, "must be of abers"),
        (("car", "--degree", "2"), 2, "--degree belongs to the kernel poly"),
        (("broken.npz",), 1, "broken.npz is not a readable record"),
        (("table.csv",), 2, "name the column of its label with --label"),
    ],
)
def test_errors_are_short_and_say_what_is_wrong(run, tmp_path, arguments, code, message):
    import zipfile

    with zipfile.ZipFile(tmp_path / "broken.npz", "w") as file:
        file.writestr("header.npy", b"")
    (tmp_path / "table.csv").write_text("a,y\n1,u\n2,v\n")
    result = run("monitor", *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_predictors_that_a_record_does_not_have(run):
    assert run("replay", "car", "--steps", 5, "--predictors", "venn", "--out", "here").exit_code == 0
    result = run("monitor", "here/record.npz", "--predictors", "venn,platt")
    assert result.exit_code == 2
    assert "here/record.npz has the predictors venn, not platt" in result.output


def test_in_a_real_terminal_the_view_is_drawn_and_stays(flipped):
    """The program itself, behind a pseudo-terminal of 100 by 30."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        [sys.executable, "-m", "venn", "monitor", str(flipped), *FIXED],
        stdin=child, stdout=child, stderr=child, env=environment, cwd=flipped.parent,
    ) as process:  # fmt: skip
        os.close(child)
        shown = b""
        while True:
            if not select.select([parent], [], [], 120)[0]:
                process.kill()
                pytest.fail("the terminal view fell silent")
            try:
                part = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(parent)
    assert process.returncode == 0
    text = shown.decode()
    assert "\x1b[?1049h" in text  # the alternate screen, and back
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.split("\x1b[?1049l")[-1])
    for piece in ("flipped", "500", "deleted", "conformal", "evidence", "accuracy", "At step"):
        assert piece in last
    assert np.any([line.strip() for line in last.splitlines()])
