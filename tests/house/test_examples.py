"""The examples run as they stand, and what the README and the first steps print is what they say."""

import importlib.util
import pathlib
import re
import runpy
import sys

import pytest
import stand_ins
from click.testing import CliRunner

import streams
from tools import outputs
from venn import cli

ALL_TREES = True  # pages show what the product says
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, undrawn):
    """Run a program in an empty folder and return what it prints: here, where most of what it needs is imported.

    Their figures are drawn where the gallery of the documentation is built, and what they do on several processes is
    done in this one.

    A made-up table stands in for a published set that is not at hand. What an example says of its own data is not
    tested then: only that it runs, and answers.
    """
    monkeypatch.setattr(streams, "load", stand_ins.load)
    if importlib.util.find_spec("dask"):
        from dask.base import compute

        monkeypatch.setattr("dask.compute", lambda *tasks, scheduler: compute(*tasks, scheduler="synchronous"))
    for name, value in (("PYTHONPATH", str(ROOT)), ("COLUMNS", "120"), ("MPLBACKEND", "agg")):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run(program, *options):
        monkeypatch.setattr(sys, "argv", [program, *options])
        monkeypatch.syspath_prepend(str(pathlib.Path(program).parent))
        runpy.run_path(program, run_name="__main__")
        return capsys.readouterr().out

    yield run
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # as the end of a program would


@pytest.mark.program
@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "predicted_label.py",
            r"(class of the category +accuracy 0\.\d+ (.|\n)*best row mean +accuracy 0\.\d+ outside (.|\n)*){2}",
        ),
        ("inductive_validity.py", r"one category +A .* errors away(.|\n)*figure: runs/inductive_validity"),
        (
            "electricity.py --quick",
            r"in order of time:(.|\n)*100 to 1 at step \d+\n(.|\n)*shuffled:(.|\n)*never 100 to 1\n.* rang 0 times",
        ),
        ("conformal.py --quick", r"car: (.|\n)*Yes: all 16 counts are inside limits that each keeps with probability"),
        (
            "scalers_online.py --quick",
            r"means over 2 streams(.|\n)*figure: runs/scalers_online(.|\n)*Leave-one-out scores: nearest to what they ",
        ),
        (
            "electricity_window.py --quick",
            r"in order of time: [1-9]\d* restarts(.|\n)*shuffled: 0 restarts(.|\n)*runs/electricity_window\.png",
        ),
        (
            "any_stream.py --quick",
            r"(adaptive: \d+\.\d errors from 25\.0, \d+ at most; bound 10[0-9](.|\n)*){3}runs/any_stream",
        ),
        ("label_shift.py --quick", r"no weights .*off by 0\.\d+(.|\n)*Off what was claimed by"),
        ("river_progressive.py", r"labels 50 steps late(.|\n)*the same figures"),
        ("frames.py", r"(log loss (\d\.\d+)\n)(.*\1){5}(.|\n)*got Boolean"),
        ("grid_search.py", r"log loss 0\.\d+(.|\n)*accuracy 0\.\d+, claimed .*: kept"),
        ("calibration_display.py", r"Venn-Abers +log loss 0\.\d+(.|\n)*figure: runs/calibration_display\.png"),
        ("sparse_text.py", r"400 texts(.|\n)*accuracy 0\.\d+, claimed between(.|\n)*the same predictions"),
        ("own_csv.py", r"300 examples(.|\n)*TransductiveVenn"),
    ],
)
def test_an_example_prints_its_answer(name, says, run):
    name, *options = name.split()
    assert re.search(says, run(str(ROOT / "examples" / name), *options))


@pytest.mark.program
def test_the_example_of_alarms_finds_each_change_with_some_predictor(run):
    text = run(str(ROOT / "examples" / "alarms.py"), "--quick")
    rows = [re.match(r"(.{14})(\w+) +(\w+) +(\d) of 1 +(\S+) +(\d+)", line) for line in text.splitlines()]
    found = {}
    for row in filter(None, rows):
        found.setdefault(row[1].strip(), {})[row[2], row[3]] = (int(row[4]), row[5], int(row[6]))
    assert list(found) == ["change point", "label flip", "label shift", "harmless"]
    assert all(false == 0 for one in found.values() for _, _, false in one.values())
    assert not any(rings for rings, _, _ in found["harmless"].values())
    assert found["label flip"]["venn", "Ville"][0] == 1
    assert found["change point"]["conformal", "Ville"][0] == 1
    assert found["label shift"]["labels", "Ville"][0] == 1


@pytest.mark.program
@pytest.mark.parametrize("page", ["README.md", "docs/first_steps.md"])
def test_a_page_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    blocks = outputs.shown((ROOT / page).read_text())
    said = outputs.printed([code for code, _ in blocks], tmp_path)
    assert [output or "" for _, output in blocks] == said


def test_the_readme_can_be_read_in_ten_minutes():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 180


def test_the_loop_that_is_shown_goes_on_when_its_lines_run_again(run, tmp_path):
    page = (ROOT / "docs" / "running.md").read_text()
    (block,) = re.findall(r"```python\n((?:(?!```)[\s\S])*venn\.Online\([\s\S]*?)```", page)
    (tmp_path / "whole.py").write_text(block)
    killed = block.replace("(events,", "(list(events)[:50],")
    assert killed != block
    (tmp_path / "part.py").write_text(killed)
    first, went_on = run("part.py").splitlines(), run("whole.py").splitlines()
    (tmp_path / "run.db").unlink()
    for state in tmp_path.glob("run.db-*"):
        state.unlink()
    whole = run("whole.py").splitlines()
    asked = 60 - (len(whole) - len(first))  # by the first process; after the predictions comes a table
    assert 0 < asked < 60
    assert first[:asked] + went_on == whole


@pytest.mark.program
def test_the_main_job_ends_as_the_readme_says(tmp_path, monkeypatch, undrawn):
    page = (ROOT / "README.md").read_text()
    (said,) = re.findall(r"```text\n(predictor .*?)```", page, flags=re.S)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    lines = CliRunner().invoke(cli.main, ["replay", "car", "--out", "here"]).stdout.splitlines()
    assert [line for line in lines if line in said.splitlines()] == said.splitlines()
    assert len(lines) <= 24  # a screen
