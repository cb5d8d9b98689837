"""``venn run``: whatever is wrong with its file and its options is one line, and nothing is made."""

# ruff: noqa: F811

from pathlib import Path

import pytest
from conftest import well
from run_cases import OPTIONS, counts, events, line, printed
from test_run import run  # noqa: F401


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (
            '[source]\nclasses = [true, "true"]',
            "c.toml, [source] classes must be at least two labels, text, integers or truth values, that differ as "
            'text, got [true, "true"]',
        ),
        ("[run]\nbacth = 3", "c.toml, [run] has no key 'bacth' (did you mean batch?)"),
        ("[sauce]\nurl = 'x'", "got 'sauce' (did you mean source?)"),
        ("gamma = 1", "got 'gamma'; the key gamma belongs in [machine]"),
        ("run = 3", "c.toml: run must be a table, [run], got 3"),
        ("[source]\nclasses = [1, '1']", 'that differ as text, got [1, "1"]'),
        ("[predictor]\nnames = ['venm']", "got 'venm' (did you mean venn"),
        ("[journal\n", "c.toml must be TOML: "),
        ("x = " + "[" * 5000, "c.toml must be TOML that is not nested this deeply"),
    ],
    ids=lambda value: None if len(value) > 99 else value.partition("\n")[2] or None,
)
def test_a_wrong_file_is_one_line(run, tmp_path, toml, said):
    (tmp_path / "c.toml").write_text(toml)
    result = run("--config", "c.toml", "--source", "car", "--journal", "run.db")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr
    assert not Path("run.db").exists()


LIVE = ("--journal", "run.db", "--classes", "a,b", "--predictors", "abers", "--gamma", "1")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--source", "car"), 2, "--journal must say where the journal is"),
        (("--journal", "run.db"), 2, "--source must say where messages come from"),
        (("--source", "reddis://h/0?stream=s", *LIVE), 2, "got the scheme 'reddis' (did you mean redis or rediss?)"),
        (("--source", "redis://:secret@h/0", *LIVE), 2, "--source must name the stream"),
        (("--source", "redis://:secret@h:x/0?stream=s", *LIVE), 1, "url must be like redis://"),
        (("--source", "kafka://topic", *LIVE), 2, "--source must be kafka://HOST:PORT[,HOST:PORT]/TOPIC"),
        (("--source", "jsonl:", *LIVE), 2, "--source must name a file after jsonl:"),
        (("--source", "jsonl:x", *LIVE[:2]), 2, "--classes must be declared for a live source"),
        (("--source", "x.jsonl", *LIVE[:4]), 2, "--classes does not go with x.jsonl: for messages from it write"),
        (("--source", "jsonl:x", *LIVE, "--delay", 3), 2, "--delay does not go with jsonl:x"),
        (("--source", "jsonl:x", *LIVE, "--shuffle", 0), 2, "--shuffle does not go with jsonl:x"),
        (("--source", "jsonl:x", *LIVE, "--features", "x,z", "--nominal", "c=A,B"), 2, "got 'c'; they are 'x', 'z'"),
        (("--source", "jsonl:x", *LIVE, "--nominal", "c"), 2, "--nominal must declare the values of 'c'"),
        (("--source", "jsonl:x", *LIVE, "--fill", "c=median"), 2, "--fill must declare a number for 'c', as"),
        (("--source", "jsonl:x", *LIVE, "--kernel", "linear"), 2, "--gamma belongs to the kernel rbf or poly"),
        (("--source", "jsonl:x", *LIVE, "--end"), 1, "there is no file x"),
        (("--source", "csv:x", *LIVE, "--label", "l", "--id", "l"), 1, "id must be another column than label"),
        (("--source", "car", "--end", "--journal", "run.db"), 2, "--end does not go with car"),
        (("--source", "cra", "--journal", "run.db"), 1, "no data set and no file has the name 'cra'"),
        (("--source", "car", "--journal", "run.db", "--config", "none.toml"), 1, "none.toml cannot be read: No such"),
        (("--source", "car", "--journal", "."), 1, ""),
        (("--source", "car", "--journal", "run.db", "--out", "."), 1, "Is a directory"),
        (("--source", "car", "--journal", "run.db", "--C", "2"), 2, "--C chooses nothing of a forecaster, the default"),
        (("--source", "car", *LIVE[:2], "--window", "9", "--predictors", "forecaster"), 2, "which forgets nothing"),
        (("--source", "car", *LIVE[:2], "--kernel", "rbf"), 2, "--kernel chooses nothing of a forecaster"),
        (("--source", "car", *LIVE[:2], "--set", "access.host=::1"), 2, "--set access.host needs --metrics-port"),
        (("--source", "car", *LIVE[:2], "--set", "access.no_token=true"), 2, "access.no_token needs --metrics-port"),
        (("--source", "jsonl:x", *LIVE, "--out", "./x"), 2, "--out must be another file than x, got ./x"),
        (("--source", "csv:x", *LIVE, "--label", "l", "--out", "run.db"), 2, "--out must be another file than run.db"),
    ],
    ids=range(29),
)  # fmt: skip
def test_what_is_wrong_is_one_line(run, arguments, code, said):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert said in last
    assert "secret" not in result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert counts("run.db") == (0, 0)


def test_the_example_of_the_documentation(run):
    docs = Path(__file__).parents[2] / "docs"
    well(run("--config", docs / "run.toml", "--check", "--journal", "run.db"))
    unit = (docs / "vennstream.service").read_text()
    assert "venn run --config" in unit


@pytest.mark.parametrize(("scale", "said"), [((), True), (("--no-scale",), False)])
def test_adaptive_sets_beside_the_default_see_the_columns_as_the_forecaster_does(run, scale, said):
    live = ("--source", "jsonl:x", "--classes", "a,b", "--journal", "run.db", "--check")
    Path("x").touch()
    result = well(run(*live, "--adaptive", *scale))
    assert ("kernel, C, scaled by the first 30 examples" in result.stdout) is said
    assert "MultiscaleLaplacian(gamma='auto'" in result.stdout  # nothing says how many features there are


def test_what_else_a_file_holds_is_not_appended_to(run, tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(4))))
    (tmp_path / "data.csv").write_text("age,y\n30,no\n")
    arguments = ("--source", "jsonl:in.jsonl", "--end", "--quiet", *OPTIONS)
    wrong = "Error: --out must be a new file, or one that holds predictions, got data.csv, which holds something else\n"
    for also in ((), ("--check",)):
        result = run(*arguments, "--journal", "a.db", "--out", "data.csv", *also)
        assert (result.exit_code, result.stderr.endswith(wrong)) == (2, True)
    assert (tmp_path / "data.csv").read_text() == "age,y\n30,no\n"
    assert not (tmp_path / "a.db").exists()
    for journal, begun in (("b.db", b'{"i'), ("c.db", b"")):  # cut off by a death, or nothing yet
        (tmp_path / "old").write_bytes(begun)
        assert run(*arguments, "--journal", journal, "--out", "old").exit_code == 0
    assert run(*arguments, "--journal", "d.db", "--out", "old").exit_code == 0, "predictions of another run"


def test_patience_ends_after_the_answer_comes(run):
    car = ("--source", "car", "--steps", "40", "--journal", "a.db", "--quiet", "--delay", "5", "--patience")
    for also in ((), ("--check",)):
        result = run(*car, "5", *also)
        assert result.exit_code == 2
        assert "--patience must be more than --delay, 5, got 5: each question would be given up" in result.stderr
    assert run(*car, "6").exit_code == 0
    assert counts("a.db") == (40, 40)


@pytest.mark.parametrize(
    ("classes", "message", "said"),
    [
        ("01,02", '{"id": 1, "x": [1, 2], "y": "01"}', ""),
        ("0,1", '{"id": 1, "x": [1, 2], "y": "1"}', "classes (0, 1), got '1': it is text, and the class 1 is a number"),
        ("true,false", '{"id": 1, "x": [1, 2], "y": true}',
         "got True: it is a truth value, and the class 'true' is text"),
        ("a,b", '{"id": 1, "x": [1, 2], "y": "c"}', "y must be one of the classes ('a', 'b'), got 'c'\n"),
        ("a,b", '{"id": 1, "x": [1, null], "y": "a"}',
         "null: name the features with --features, then --fill NAME=NUMBER"),
        ("a,b", '{"id": 1, "x": {"p": 1, "q q": 2}, "y": "a"}', "name them in order, as --features 'p,q q'\n"),
    ],
)  # fmt: skip
def test_a_message_that_does_not_fit_the_options_says_which_would(run, tmp_path, classes, message, said):
    """Labels are kept as they were typed: 01 is no 1."""
    (tmp_path / "in.jsonl").write_text(message + "\n")
    options = ("--classes", classes, "--end", "--journal", "run.db", "--predictors", "inductive")
    result = run("--source", "jsonl:in.jsonl", *options)
    assert result.exit_code == (1 if said else 0), result.output
    assert said in result.stderr


def test_a_run_goes_on_with_the_settings_that_it_began_with(run):
    options = ("--source", "car", "--steps", 20, "--predictors", "inductive", "--journal", "run.db", "--out", "o.jsonl")
    assert run(*options).exit_code == 0
    other = run(*options, "--level", "0.05")
    assert other.exit_code == 1
    (line,) = other.stderr.splitlines()[-1:]
    assert "run.db holds a run whose monitor of inductive has level=" in line
    assert line.endswith(": the monitors share --level")
    assert len(line) < 160
    longer = run(*options, "--steps", 30)
    assert longer.exit_code == 1
    assert "if it is the same source, give --steps, --shuffle, --delay and --missing as then" in longer.stderr


def test_a_run_goes_on_only_with_columns_read_as_then(run, tmp_path):
    """Else what was learned would be of other columns, without a word."""
    rows = [f"{i}.5,{'SM'[i % 2]},{'no' if i % 3 else 'yes'}" for i in range(20)]
    file = tmp_path / "w.csv"
    file.write_text("\n".join(["a,s,y", *rows]) + "\n")
    live = (
        "--source", "csv:w.csv", "--end", "--label", "y", "--classes", "no,yes", "--journal", "live.db", "--out", "o",
    )  # fmt: skip
    assert run(*live, "--nominal", "s=S,M", "--fill", "a=0").exit_code == 0
    for other in (("--nominal", "s=M,S", "--fill", "a=0"), ("--nominal", "s=S,M", "--fill", "a=9")):
        found = run(*live, *other)
        assert found.exit_code == 1
        assert "live.db holds a run whose columns were read by nominal={'s': ('S', 'M')}, fill={'a': " in found.stderr
    assert run(*live, "--nominal", "s=S,M", "--fill", "a=0").exit_code == 0
    whole = ("--source", "w.csv", "--label", "y", "--nominal", "s", "--journal", "whole.db", "--out", "p")
    assert run(*whole).exit_code == 0
    assert run(*whole).exit_code == 0
    file.write_text("\n".join(["a,s,y", *rows[::-1]]) + "\n")
    assert "has read other rows from" in run(*whole).stderr


@pytest.mark.parametrize(
    "given",
    [
        ("--floor", 0.6), ("--floor", 0.6, "--no-drift"), ("--floor", 0.6, "--ripe", 2, "--answer-error", 0.3),
        ("--labels-by-lot", 0.5, "--answer-error", 0.3, "--floor", 0.6),
        ("--window", 6, "--predictors", "conformal", "--restart-on-alarm", "--floor", 0.6),
    ],
)  # fmt: skip
def test_the_same_command_goes_on_as_if_it_had_not_ended(run, given):
    wanted = events(16)
    for journal, ends in (("whole.db", [32]), ("cut.db", [9, 20, 32])):
        for end in ends:
            Path("in.jsonl").write_text("".join(map(line, wanted[:end])))
            source = ("--source", "jsonl:in.jsonl", "--classes", "no,yes", "--features", "a,b", "--end")
            well(run(*source, *given, "--journal", journal, "--out", f"{journal}.out"))
    assert printed(Path("cut.db.out")) == printed(Path("whole.db.out"))
    assert counts(Path("cut.db")) == counts(Path("whole.db"))


def test_answers_with_numbers_need_a_width(run):
    result = run("--source", "jsonl:x", "--numbers", "--answer-error", 0.1, "--journal", "run.db", "--check")
    assert result.exit_code == 2
    assert "--answer-error of numbers needs a width: " in result.stderr
    assert "narrower than --set predictor.answer_width=NUMBER" in result.stderr
