"""The command line among others: standard input and output, an interrupt, a narrow terminal, a shell that completes."""

import io
import json
import sys
import warnings
from functools import partial
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from conftest import well
from page_cases import write

from venn import cli
from venn.cli import panels, words
from venn.cli.commands import COMMANDS
from venn.monitors.verdict import Verdict
from venn.online import Forecaster

TABLE = "a,b,y\n" + "".join(f"{n % 7},{n % 5},{'yes' if n % 3 else 'no'}\n" for n in range(60))


def run(*arguments, given=None, **options):
    return CliRunner().invoke(cli.main, [str(one) for one in arguments], input=given, **options)


@pytest.mark.parametrize("command", ["replay", "monitor"])
def test_a_table_comes_on_standard_input(command, tmp_path, undrawn):
    options = ("--label", "y", "--out", tmp_path / "out", "--json", "--no-progress")
    piped = well(run(command, "-", *options, given=TABLE))
    file = tmp_path / "stdin.csv"
    file.write_text(TABLE)
    told, expected = (json.loads(one.stdout) for one in (piped, run(command, file, *options)))
    for one in (told, expected):
        one.pop("seconds", None)
    assert told == expected


def test_an_empty_standard_input_is_refused_in_a_line():
    found = run("replay", "-", "--label", "y", given="")
    assert found.exit_code == 1
    assert "stdin.csv" in found.stderr


def test_a_comparison_reads_its_data_again_and_again():
    assert "each replay reads anew, got -" in run("compare", "-", "--label", "y", given=TABLE).stderr


def test_a_report_goes_to_standard_output(tmp_path):
    write(tmp_path / "run.db", 60, "abers")
    found = run("report", tmp_path / "run.db", "--out", "-")
    assert found.stdout.lstrip().startswith("<!DOCTYPE html>")
    assert found.stdout.rstrip().endswith("</html>")
    assert found.stderr.startswith("verdict: ")


@pytest.mark.parametrize(
    "command", [("monitor", "run.db", "--once"), ("datasets",), ("replay", "a.csv", "--label", "y")]
)
def test_a_pipe_that_nobody_reads_any_more_ends_in_silence(tmp_path, monkeypatch, capfd, command):
    class Unread(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.chdir(tmp_path)
    write("run.db", 60, "abers")
    Path("a.csv").write_text(TABLE)
    monkeypatch.setattr(sys, "stdout", Unread())
    with pytest.raises(SystemExit) as ended:
        cli.main([*command], prog_name="venn")
    assert ended.value.code == 141
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("command", [*COMMANDS, "datasets", None])
def test_help_fits_80_columns(command):
    words = ["--help"] if command is None else [command, "--help"]
    assert max(map(len, run(*words).output.splitlines())) <= 80


@pytest.mark.parametrize("command", ["replay", "compare", "monitor"])
def test_a_shell_completes_names_of_data_sets_and_files(command):
    found = ShellComplete(cli.main, {}, "venn", "_VENN_COMPLETE").get_completions([command], "brea")
    assert [(one.value, one.type) for one in found] == [("breast_cancer", "plain"), ("brea", "file")]


def test_a_replay_says_after_which_step_others_answer_and_nothing_where_none_do(undrawn, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(panels, "Forecaster", partial(Forecaster, transductive=20))
    said = run("replay", "-", "--label", "y", "--no-progress", given=TABLE).output
    assert "forecast, intervals, sets: trained after step 20, 28, 39, 54, and from there on calibrated on other" in said
    said = run("replay", "-", "--label", "y", "--no-progress", "--steps", 20, given=TABLE).output
    assert "trained after" not in said


def test_a_forecaster_that_began_anew_says_so_after_a_replay():
    model = Forecaster(["no", "yes"], first=0)
    assert words.began_anew(model) == []
    model.restore(model.state | {"before": 20})
    model.learn_one([1.0], "yes")
    assert words.began_anew(model) == ["the forecaster began anew after step 20: what it learned before counts no more"]


def test_the_last_line_of_a_replay_says_where_the_forecaster_began_anew():
    changed = Verdict("changed", 11, None, "p-values", "Ville", "changed since about 11")
    model = Forecaster(["no", "yes"], first=0)
    assert str(words.verdict_on(model, {"sets": changed})) == "sets: Do not rely on it since step 11."
    model.restore(model.state | {"before": 20})
    model.learn_one([1.0], "yes")
    found = words.verdict_on(model, {"sets": changed, "beside": changed})
    assert str(found) == "sets: Rely on it only after step 20, where it began anew. Changed since step 11."
    assert found.details == "changed since about 11; began anew after 20"
    early = Verdict("too early to say", None, None, "none", "", "too early to say: 3 of 265 examples")
    assert words.verdict_on(model, {"sets": early}).anew is None


def test_where_the_file_was_standardised_nobody_warns_that_nothing_scales(tmp_path, undrawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A column that hardly moves at first, and a lot later: small over the first rows, of size 1 over the whole file.
    rows = "".join(f"{n % 7},{n % 2 if n > 45 else n % 2 / 1e4},{'yes' if n % 3 else 'no'}\n" for n in range(90))
    options = ("--label", "y", "--no-progress", "--predictors", "abers", "--tune", 0)
    table = "a,b,y\n" + rows
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert "nothing scales" not in run("replay", "-", *options, given=table).output
        assert not heard
        said = run("replay", "-", *options, "--no-scale", given=table).output
    assert "column 0 has" in said + "".join(str(one.message) for one in heard)
