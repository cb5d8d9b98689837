"""The command line: predictors within the groups of a column."""

import json

import pytest
from click.testing import CliRunner
from conftest import well

from venn.cli.commands import main
from venn.cli.panels import positions_of

ROWS = "\n".join(f"{i % 7},{'xyz'[i % 3]},{'yes' if (i % 7) + (i % 3) > 4 else 'no'}" for i in range(60))


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"size,kind,label\n{ROWS}\n")
    return path


def replay(table, *options):
    return CliRunner().invoke(
        main,
        [
            *("replay", str(table), "--label", "label", "--nominal", "kind", "--no-progress"),
            *("--out", str(table.parent / "out"), *options),
        ],
    )


def test_groups_are_those_of_the_column_however_it_is_encoded():
    features = ["size", "kind=x", "kind=y", "kinder"]
    assert positions_of("kind", features) == (1, 2)
    assert positions_of("size", features) == (0,)


def test_predictors_stand_within_groups(table):
    done = well(replay(table, "--predictors", "conformal,abers,inductive_conformal", "--groups", "kind", "--json"))
    assert "within groups by kind" in done.stderr
    assert set(json.loads(done.stdout)["predictors"]) == {"conformal", "abers", "inductive_conformal"}


def test_adaptive_sets_within_groups(table):
    done = well(replay(table, "--predictors", "conformal", "--adaptive", "--groups", "kind", "--json"))
    assert set(json.loads(done.stdout)["predictors"]) == {"conformal", "adaptive"}


def test_monitor_and_run_take_the_same_options(table):
    options = ["--label", "label", "--nominal", "kind", "--predictors", "conformal", "--adaptive", "--groups", "kind"]
    done = well(CliRunner().invoke(main, ["monitor", str(table), *options, "--json", "--no-progress"]))
    assert set(json.loads(done.stdout)) == {"conformal", "adaptive", "objects", "classes", "episodes"}
    run = ["run", "--source", str(table), "--journal", str(table.parent / "run.db"), "--check"]
    done = well(CliRunner().invoke(main, [*run, *options]))
    assert "within groups by kind" in done.output


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (["--features", "size,kind", "--nominal", "kind=x,y"], "within groups by kind"),
        (["--features", "size,kind"], "within groups by kind"),
        ([], "--groups needs the columns' names: --features"),
    ],
)
def test_groups_of_a_live_source(declared, says, tmp_path):
    source = ["run", "--source", "-", "--classes", "no,yes", "--journal", str(tmp_path / "run.db"), "--check"]
    done = CliRunner().invoke(main, [*source, "--predictors", "conformal,adaptive", "--groups", "kind", *declared])
    assert says in done.output


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--predictors", "abers", "--groups", "kid"], "did you mean kind?"),
        (["--predictors", "platt", "--groups", "kind"], "--groups does not go with platt: name predictors"),
        (["--predictors", "forecaster", "--groups", "kind"], "--groups does not go with forecaster: name predictors"),
        (["--groups", "kind"], "--predictors conformal,abers"),
    ],
)
def test_what_has_no_groups_is_refused(table, options, match):
    done = replay(table, *options)
    assert done.exit_code == 2
    assert match in done.stderr


def test_predictors_of_numbers_stand_within_groups(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("size,kind,price\n" + "\n".join(f"{i % 7},{i % 2},{i * 0.37 % 1 + 0.5}" for i in range(40)) + "\n")
    asked = ["replay", str(path), "--label", "price", "--groups", "kind", "--out", str(tmp_path), "--predictors"]
    done = well(CliRunner().invoke(main, [*asked, "distribution,intervals,inductive_distribution"]))
    assert "within groups by kind" in done.stdout
    for options in (["adaptive_intervals"], ["distribution", "--adaptive"], ["inductive_distribution", "--adaptive"]):
        done = CliRunner().invoke(main, [*asked, *options])
        assert done.exit_code == 2
        assert "adaptive_intervals: name predictors of numbers that have groups" in done.stderr
        assert "--predictors distribution,intervals, without --adaptive" in done.stderr
    done = CliRunner().invoke(main, [*asked, "distribution,intervals"])  # what is advised works
    assert done.exit_code == 0, done.output
