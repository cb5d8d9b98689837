"""``venn monitor``: in a terminal, into a pipe, on records and files; what it prints, writes and refuses."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well
from test_cli import interrupted, run  # noqa: F401

import streams
from venn import cli
from venn.cli.commands import COMMANDS
from venn.online.record import Record
from venn.prediction import Forecast

# ruff: noqa: F811


@pytest.fixture
def flipped(tmp_path):
    """A CSV file whose labels flip after 300 of 500 examples."""
    stream = streams.flip_labels(streams.gaussians(500, classes=2, spread=0.4, seed=1), 300)
    path = tmp_path / "flipped.csv"
    lines = [f"{x[0]:.6f},{x[1]:.6f},{'no' if y else 'yes'}" for x, y in stream]
    path.write_text("\n".join(["p,q,answer", *lines]) + "\n")
    return path


FIXED = ("--label", "answer", "--gamma", "0.5", "--C", "1", "--predictors", "abers,leave_one_out,conformal")


def test_into_a_pipe_each_alarm_is_a_line_and_a_summary_comes_last(run, flipped):
    result = well(run("monitor", flipped, *FIXED))
    lines = result.stdout.splitlines()
    assert lines[0] == "abers, leave_one_out, conformal: least-squares SVM with RBF(gamma=0.5), C=1"
    steps = [int(step) for step in re.findall(r"^alarm \(now changed\): \w+: At step (\d+)", result.stdout, flags=re.M)]
    assert steps
    assert all(300 < step <= 500 for step in steps)
    assert "flipped: step 500 of 500" in lines
    assert [line.split(":")[0] for line in lines[-6:]] == [
        "abers", "leave_one_out", "conformal", "objects", "classes", "verdict",
    ]  # fmt: skip
    assert "Theorem: on exchangeable data" in result.stdout


def test_json_is_the_snapshots(run, flipped):
    result = well(run("monitor", flipped, *FIXED, "--json", "--steps", 200, "--predictors", "leave_one_out,platt"))
    found = json.loads(result.stdout)
    names = ["leave_one_out", "platt", "conformal"]  # what rings sooner is beside it
    assert list(found) == [*names, "objects", "classes", "episodes"]
    assert found["leave_one_out"]["step"] == 200
    assert found["leave_one_out"]["alarms"]["count"] == 0
    assert found["platt"]["evidence"][0]["detector"] == "ForwardEProcess"


def test_what_is_written_and_a_record_watched_again(run, tmp_path):
    options = ("--level", "0.05", "--set", "monitor.run_length=5000", "--window", "50", "--json")
    options += ("--predictors", "leave_one_out,conformal")
    result = well(run("monitor", "car", "--shuffle", 0, "--steps", 300, "--out", "here", *options))
    files = ["curves.png", "errors.png", "martingales.png", "p_values.png", "record.npz", "reliability.png"]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [*files, "snapshots.json"]
    snapshots = json.loads(result.stdout)
    assert json.loads((tmp_path / "here/snapshots.json").read_text()) | {"episodes": []} == snapshots
    assert snapshots["leave_one_out"]["window"]["size"] == 50
    again = run("monitor", "here/record.npz", *options)
    del snapshots["objects"], snapshots["classes"]  # which a record does not hold; they have their share there as well
    assert json.loads(again.stdout) == snapshots
    part = json.loads(run("monitor", "here/record.npz", *options[:-1], "leave_one_out", "--steps", 100).stdout)
    assert list(part) == ["leave_one_out", "episodes"]
    assert part["leave_one_out"]["step"] == 100
    record = Record.load(tmp_path / "here/record.npz")
    assert record.shuffle == 0
    assert len(record) == 300


@pytest.mark.parametrize("command", ["monitor", "replay"])
@pytest.mark.parametrize("n", [80, 7000])
def test_the_forecaster_stands_on_streams_of_any_length(run, tmp_path, command, n):
    X, y = np.random.default_rng(0).integers(0, 9, (2, n))
    lines = [f"{value},{label % 2}" for value, label in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "long.csv").write_text("\n".join(["value,answer", *lines]) + "\n")
    result = well(run(command, "long.csv", "--label", "answer", "--steps", 60, "--json"))
    found = json.loads(result.stdout)
    watched = ["intervals", "sets"]  # nothing is claimed of the forecast
    assert (
        list(found) == [*watched, "objects", "classes", "episodes"]
        if command == "monitor"
        else list(found["predictors"]) == ["forecast", *watched]
    )
    assert "verdict: intervals: Wait, too early to say: 60 of 320 examples." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nowhere",), 1, "no data set and no file has the name 'nowhere'"),
        (("car", "--set", "machine.degree=2"), 2, "--set machine.degree belongs to the kernel poly"),
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
    for piece in ("flipped", "500", "leave_one_out", "conformal", "evidence", "accuracy", "At step"):
        assert piece in last
    assert np.any([line.strip() for line in last.splitlines()])


def test_ctrl_c_ends_the_watch_and_loses_nothing(run, tmp_path, monkeypatch):
    """The signal itself, sent in the middle of a step; the step is finished and all is as if it had been the last."""
    options = ("--predictors", "leave_one_out,conformal", "--json")
    expected = json.loads(run("monitor", "car", *options, "--steps", 31).stdout)
    before = signal.getsignal(signal.SIGINT)
    interrupted(monkeypatch)
    result = run("monitor", "car", *options, "--out", "here")
    assert result.exit_code == 130
    assert "interrupted at step 31 of 1728" in result.stderr
    assert json.loads(result.stdout) == expected
    assert json.loads((tmp_path / "here/snapshots.json").read_text()) | {"episodes": []} == expected
    assert len(Record.load(tmp_path / "here/record.npz")) == 31
    assert signal.getsignal(signal.SIGINT) is before


def test_options_that_a_record_cannot_heed(run, tmp_path):
    Record(("a", "b"), ["venn"]).save(tmp_path / "empty.npz")
    result = run("monitor", "empty.npz")
    assert (result.exit_code, result.output) == (1, "Error: empty.npz holds no step: there is nothing to watch\n")
    for option, value in (("--gamma", "1"), ("--shuffle", "0"), ("--label", "y"), ("--C", "2"), ("--tune", "5")):
        result = run("monitor", "empty.npz", option, value)
        assert result.exit_code == 2
        assert f"{option} does not go with a record, whose predictions are made" in result.output
    (tmp_path / "cut.npz").write_bytes((tmp_path / "empty.npz").read_bytes()[:200])
    result = run("monitor", "cut.npz")
    assert result.exit_code == 1
    assert "cut.npz is not a readable record" in result.output


def test_a_record_is_read_once_however_long_it_is(run, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    record = Record(("a", "b"), ["point"])
    for p in rng.random(300):
        record.update({"point": Forecast(np.array([p, 1 - p]), ("a", "b"))}, "ab"[rng.integers(2)])
    record.save(tmp_path / "long.npz")
    calls, outcomes = [], Record.outcomes
    monkeypatch.setattr(Record, "outcomes", lambda self, name: calls.append(name) or outcomes(self, name))
    result = run("monitor", "long.npz", "--json")
    assert json.loads(result.stdout)["point"]["step"] == 300
    assert calls == ["point"]


@pytest.mark.parametrize(
    ("imported", "slow"),
    [
        ("venn.cli", ("numpy", "numba", "scipy", "streams", "rich")),  # what `venn --version` needs
        ("venn.cli; venn.cli.main(['--help'], standalone_mode=False)", ("numpy", "numba", "scipy", "streams", "rich")),
        (
            "venn.cli.run, venn.cli.monitor, venn.cli.journals",
            ("rich", "matplotlib", "sklearn", "scipy.stats", "scipy.optimize"),
        ),
    ],
)
def test_commands_import_what_they_need(imported, slow):
    code = f"import sys, {imported}; print(*(m for m in {slow} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-1] == ""


def test_the_list_of_commands_has_each_of_them_on_a_line():
    listed = CliRunner().invoke(cli.main, ["--help"], terminal_width=80).output.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == sorted([*COMMANDS, "datasets"])
    for name in COMMANDS:
        assert CliRunner().invoke(cli.main, [name, "--help"]).exit_code == 0
    again = CliRunner().invoke(cli.main, ["--help"], terminal_width=80).output  # now that all are imported
    assert again.partition("Commands:\n")[2].splitlines() == listed


@pytest.mark.parametrize(("scale", "name"), [((), "'hot, standardised' (middle -"), (("--scale",), "'hot' (middle ")])
def test_a_column_that_changes_is_named_in_the_units_it_is_watched_in(run, tmp_path, scale, name):
    """From row 200 on degrees are Fahrenheit."""
    rng = np.random.default_rng(0)
    hot, y = rng.normal(15, 5, 300), rng.integers(0, 2, 300)
    hot[200:] = hot[200:] * 1.8 + 32
    rows = [f"{a:.3f},{b:.3f},{label}" for a, b, label in zip(hot, rng.normal(size=300) + y, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["hot,other,y", *rows]) + "\n")
    result = run("monitor", "t.csv", "--label", "y", "--predictors", "inductive", "--json", *scale)
    verdict = json.loads(result.stdout)["objects"]["verdict"]
    assert f"Column {name}" in verdict["sentence"]
    assert f"column {name}" in verdict["details"]
    assert "'other'" not in verdict["details"]
