"""The columns of somebody's own CSV file, on the command line: what may be said, and what is said of a bad file."""

import csv
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from conftest import well
from hypothesis import given, settings
from hypothesis import strategies as st

import streams
from venn import cli
from venn.cli.columns import Columns, live_advice
from venn.cli.config import configured

ORDERS = """id;name;age;size;colour;paid;outcome
k1;Ann;31;S;red;1;no
k2;Bob;NA;M;?;2.5;yes
k3;Cem;44;M;;;no
k4;Dil;28;S;green;3;yes
k5;Eve; ;S;red;nan;no
k6;Fay;61;M;red;4;no
k7;Gil;29;S;green;5;yes
k8;Hal;33;S;red;6;yes
"""
TOLD = ("--delimiter", ";", "--label", "outcome", "--skip", "id", "--skip", "name", "--fill", "age=median")
TOLD += ("--fill", "paid=-1", "--ordinal", "size=S, M", "--nominal", "colour")
WHOLE = {
    "id": streams.Skip(), "name": streams.Skip(), "age": streams.Numeric(fill="median"),
    "paid": streams.Numeric(fill=-1), "size": streams.Ordinal(("S", "M")), "colour": streams.Nominal(missing=("", "?")),
}  # fmt: skip
QUICK = ("--predictors", "venn", "--gamma", 1, "--C", 1, "--steps", 3, "--no-progress")


@pytest.fixture
def run(tmp_path, monkeypatch, undrawn):
    """Run a command line in a folder that holds orders.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(ORDERS)
    return lambda *arguments: CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


@configured("replay")
def options(config):
    return Columns(config)


def told(*words):
    """Return what the options say."""
    return options.main([*words], standalone_mode=False)


def pasted(error):
    """Return the options of an error's last line."""
    last = error.splitlines()[-1]
    assert last.startswith("try: ")
    return shlex.split(last.removeprefix("try: "))


def test_what_is_told_of_columns_is_what_python_declares(run):
    stream = told(*TOLD).open("orders.csv", 1)
    same = streams.from_csv("orders.csv", "outcome", schema=WHOLE, shuffle=1, delimiter=";")
    assert stream.features == same.features
    assert stream.features == ("age", "size", "colour=", "colour=?", "colour=green", "colour=red", "paid")
    assert stream.X.tolist() == same.X.tolist()
    assert list(stream.y) == list(same.y)


def test_the_delimiter_may_be_a_tab(tmp_path):
    (tmp_path / "rows.csv").write_text("a\ty\n1\tn\n2\tp\n")
    for name in ("tab", "\\t", "\t"):
        assert len(told("--label", "y", "--delimiter", name).open(str(tmp_path / "rows.csv"), None)) == 2


def test_a_stranger_is_led_to_a_table_that_can_be_read(run):
    """From the bare name of the file, each time by what the last error says."""
    words = ["replay", "orders.csv"]
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: orders.csv must have more columns than one, got the header 'id;name;age;size;colour;paid;outcome'\n"
        "try: --delimiter ';'\n"
    )
    words += pasted(result.stderr)
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "Error: orders.csv is a CSV file: name the column of its label with --label; it has 'id', 'name', 'age', "
        "'size', 'colour', 'paid', 'outcome'\n"
    )
    words += ["--label", "outcome"]
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "Error: orders.csv, row 2, column 'id' must be a number, got 'k1'",
        "orders.csv, row 2, column 'name' must be a number, got 'Ann'",
        "orders.csv, row 2, column 'size' must be a number, got 'S'",
        "orders.csv, row 2, column 'colour' must be a number, got 'red'",
        "orders.csv, row 3, column 'age' is missing, got 'NA'",
        "orders.csv, row 4, column 'paid' is missing, got ''",
        "skip 'id', 'name': it has another text in each row, as an identifier has",
        "try: --skip id --skip name --nominal size --nominal colour --fill age=median --fill paid=median",
    ]
    result = well(run(*words, *pasted(result.stderr), *QUICK))
    assert "orders: 3 examples, 2 classes" in result.stdout


def test_every_command_that_takes_a_file_takes_its_columns(run):
    assert run("compare", "orders.csv", *TOLD, "--shuffles", 1, *QUICK).exit_code == 0
    assert run("monitor", "orders.csv", *TOLD, "--json", *QUICK).exit_code == 0
    result = well(run("run", "--source", "orders.csv", *TOLD, "--journal", "run.db", "--check"))
    assert "7 features, 2 classes" in result.stdout


def test_a_run_reads_the_columns_from_toml_too(run, tmp_path):
    (tmp_path / "run.toml").write_text(
        '[source]\nurl = "orders.csv"\ndelimiter = ";"\nlabel = "outcome"\nskip = ["id", "name"]\n'
        'fill = { age = "median", paid = -1 }\nordinal = { size = ["S", "M"] }\nnominal = ["colour"]\n'
        '[journal]\npath = "run.db"\n'
    )
    result = well(run("run", "--config", "run.toml", "--check"))
    result = run("run", "--config", "run.toml", "--check", "--nominal", "size")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: run.toml, [source] ordinal must not name 'size', which --nominal names\n" in result.stderr


def test_a_value_that_holds_commas_stands_in_quotes(run, tmp_path):
    (tmp_path / "towns.csv").write_text('town,y\n"Paris, TX",a\nOslo,b\n5" pipe,a\n')
    columns = told("--label", "y", "--nominal", 'town="Paris, TX", Oslo,5" pipe')
    assert columns.schema() == {"town": streams.Nominal(("Paris, TX", "Oslo", '5" pipe'))}
    given = ("--label", "y", "--classes", "a,b", "--nominal", 'town="Paris, TX",Oslo,5" pipe', "--no-scale", "--end")
    well(run("run", "--source", "csv:towns.csv", *given, "--journal", "run.db", "--out", "o", *QUICK[:6]))
    assert len((tmp_path / "o").read_text().splitlines()) == 3
    wrong = run("run", "--source", "csv:towns.csv", "--label", "y", "--classes", 'a,"b', "--journal", "run.db")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.endswith("that differ as text, got 'a,\"b'\n")


BASE = ("--delimiter", ";", "--label", "outcome")
NOMINAL = "--nominal must be COLUMN or COLUMN=A,B, each column and each of its values once, got "
FILL = (
    "--fill must be COLUMN=median or COLUMN=NUMBER, each column once (of words, --nominal COLUMN takes a gap as one "
    "more), got "
)


@pytest.mark.parametrize(
    "command", [("replay", "orders.csv"), ("run", "--journal", "run.db", "--source", "orders.csv")]
)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--nominal", "size", "--nominal", "size=S,M"), 2, NOMINAL + "'size' twice"),
        (("--nominal", "size="), 2, NOMINAL + "'size='"), (("--nominal", "=S"), 2, NOMINAL + "'=S'"),
        (("--nominal", "size=S,S"), 2, NOMINAL + "'size=S,S'"),
        (("--nominal", 'size="S,M'), 2, NOMINAL + "'size=\"S,M'"),
        (("--ordinal", "size"), 2, "--ordinal must declare the values of 'size' from low to high: --ordinal size=LOW,"),
        (("--skip", "id", "--skip", "id"), 2, "--skip must be a column, each once, got 'id' twice"),
        (("--skip", "size", "--ordinal", "size=S,M"), 2, "--skip must not name 'size', which --ordinal names"),
        (("--fill", "age=-", "--skip", "id"), 2, FILL + "'age=-'"), (("--fill", "age=nan"), 2, FILL + "'age=nan'"),
        (("--fill", "age"), 2, FILL + "'age'"), (("--fill", "age=1", "--fill", "age=2"), 2, FILL + "'age' twice"),
        (("--skip", "outcome"), 2, "--skip must not name 'outcome', which is the label"),
        (("--nominal", "sise"), 1, "--nominal must name a column of orders.csv, got 'sise' (did you mean size?)"),
        (("--fill", "x=1"), 1, "--fill must name a column of orders.csv, got 'x'; it has 'id', 'name'"),
        (("--label", "outcom"), 1, "--label must name a column of orders.csv, got 'outcom' (did you mean outcome?)"),
        (("--label", ""), 2, "--label must be text that is not empty, got ''"),
        (("--delimiter", ";;"), 2, "--delimiter must be one character, neither \" nor a line end, or tab, got ';;'"),
    ],
    ids=range(18),
)  # fmt: skip
def test_what_is_wrong_with_the_options_is_one_line(run, tmp_path, command, words, code, said):
    result = run(*command, *BASE, *words)
    assert (result.exit_code, result.stdout) == (code, "")
    error = result.stderr.partition("Error: ")[2]
    assert error.startswith(said)
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["orders.csv"]


@pytest.mark.parametrize(
    "words",
    [
        ("--label", "y"), ("--nominal", "a"), ("--ordinal", "a=1,2"), ("--skip", "a"), ("--fill", "a=0"),
        ("--delimiter", "tab"),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("command", [("replay", "car"), ("run", "--journal", "run.db", "--source", "car")])
def test_a_named_data_set_needs_no_columns(run, command, words):
    result = run(*command, *words)
    assert result.exit_code == 2
    assert f"Error: {words[0]} does not go with car, a named data set: it goes with " in result.stderr


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("a,y\n1,n\n,p\n3,n\n", (), ["row 3, column 'a' is missing, got ''", "try: --fill a=median"]),
        ("a,b,y\n,4,n\n,3,p\n?,2,n\n", (), ["row 2, column 'a' is missing, got ''", "try: --skip a"]),
        ("a,y\n1,n\nred,p\n1,n\n1,n\n", (), ["row 3, column 'a' must be a number, got 'red'", "try: --nominal a"]),
        ("a,b,y\n1,3,n\nred,1,p\n1,2,n\n", (), ["row 3, column 'a' must be a number, got 'red'", "try: --skip a"]),
        ("a=b,b,y\n1,1,n\nred,1,p\n1,1,n\n1,1,n\n", (),
         ["row 3, column 'a=b' must be a number, got 'red'", "try: --skip a=b"]),
        ("a=b,y\n1,n\n,p\n3,n\n", (), ["row 3, column 'a=b' is missing, got ''", "try: --fill a=b=median"]),
        ("a b,y\n1,n\n,p\n3,n\n", (), ["row 3, column 'a b' is missing, got ''", "try: --fill 'a b=median'"]),
        ("a,b,y\n1,1,n\ninf,1,p\n3,1,n\n", (),
         ["row 3, column 'a' must be a finite number, got 'inf'", "try: --skip a"]),
        ("a,b,y\n1,1,n\ninf,1,p\n3,1,n\n4,1,n\n5,1,n\n", (), ["must be a finite number, got 'inf'", "try: --skip a"]),
        ("a,b,y\n" + "inf,1,n\n,2,p\n-inf,3,n\n" * 3, (), ["must be a finite number, got 'inf'", "try: --skip a"]),
        ("a,b,y\n" + "2024-01-30,1,n\n2024-01-31,2,p\n" * 3, (),
         ["must be a number, got '2024-01-30'", "try: --skip a"]),
        ("a,y\n1 %,n\n3 %,p\n3 %,n\n4 %,n\n", (), ["must be a number, got '1 %'\n", "try: --unit a=%"]),
        ('a,y\n1,n\n"3,5",p\n"3,5",n\n?,n\n', (),
         ["got '3,5': where the comma stands before decimals, give", "try: --decimal , --fill a=median"]),
        ("a,y\n1,n\n2,\n", (), ["row 3, column 'y' is the label and is missing, got ''", "try: --drop-unlabelled"]),
        ("a,y\n,n\n,p\n", ("--fill", "a=median"), ["has no value to take a median of: give a number with --fill"]),
        ("a,y\nS,n\nL,p\n", ("--ordinal", "a=S,M"),
         ["got 'L': add it to --ordinal in its place, or give --nominal a instead"]),
        ("a,y\nS,n\nL,p\n", ("--nominal", "a=S,M"),
         ["got 'L': add it to --nominal, or name the column without values"]),
        ("a,y\nS,n\nL,p\nS,n\nL,p\n", ("--fill", "a=median"),
         ["row 2, column 'a' must be a number, got 'S'", ": instead of --fill give --nominal a"]),
        ("a,y\n1,n\n2,p\n", ("--numbers",),
         ["got 'n': drop the row; where labels are classes, give --no-numbers instead of --numbers"]),
    ],
    ids=range(19),
)  # fmt: skip
def test_what_is_wrong_with_the_file(run, tmp_path, text, words, said):
    (tmp_path / "rows.csv").write_text(text)
    result = run("replay", "rows.csv", "--label", "y", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: rows.csv, ")
    for part in said:
        assert part in result.stderr
    if said[-1].startswith("try: "):
        assert result.stderr.endswith(f"\n{said[-1]}\n")
        # A column that is left out has a line that says why.
        left_out = result.stderr.splitlines()[1:-1]
        assert len(left_out) == ("--skip" in said[-1])
        assert all(line.startswith("skip 'a") for line in left_out)
    else:
        assert len(result.stderr.splitlines()) == 1


def test_of_many_bad_columns_some_are_told_and_all_are_tried(run, tmp_path):
    names = [f"c{j}" for j in range(12)]
    rows = [",".join(["x"] * 12 + [y]) for y in "npnp"]
    (tmp_path / "wide.csv").write_text("\n".join([",".join([*names, "y"]), *rows]) + "\n")
    result = run("replay", "wide.csv", "--label", "y")
    *_, more, tried = result.stderr.splitlines()
    assert len(result.stderr.splitlines()) == 10
    assert more == "and 4 more columns: 'c8', 'c9', 'c10', 'c11'"
    assert tried == "try: " + " ".join(f"--nominal {name}" for name in names)


COMMAS = "row;width;height;kind\n" + "".join(
    f"{n};{n % 7},{n % 10};{n % 5},5;{'yes' if n % 3 else 'no'}\n" for n in range(12)
)
GOOD = "".join(f"{n},{n % 4}.5,{'no' if n % 3 else 'yes'}\n" for n in (3, 1, 2, 5, 4, 8, 7, 6, 9, 11, 10, 12))
MESSY = {
    "a delimiter, a comma, gaps, text and no label": COMMAS.replace("yes", "nan", 1)
    .replace("1,1", "#N/A", 1)
    .replace("2,5;", "low;", 1),
    "a comma in quotes": "a,b,y\n" + "".join(f'{n % 5},"{n}8,0",{"uv"[n % 2]}\n' for n in (3, 1, 2, 0, 5, 4)),
    "a label with a comma": "a;b;y\n" + "".join(f"{n * 7 % 5};{n % 3};{n},5\n" for n in range(200)),
    "thousands": "a,b,y\n" + "".join(f'{n % 5},"{n},000",{"uv"[n % 2]}\n' for n in (3, 1, 2, 5, 4)),
    "percents": "a,b,y\n" + "".join(f"{n % 5},{n} %,{'uv'[n % 2]}\n" for n in (3, 1, 2, 5, 4)),
    "sep": "sep=;\n" + COMMAS,
    "a delimiter at the ends, and a gap": "a,b,y,\n" + GOOD.replace("\n", ",\n").replace("3,", "-,", 1),
    "tabs": GOOD.replace(",", "\t").join(["a\tb\ty\n", ""]).replace("yes", " ", 1),
    "blanks": 'a "b c" y\n' + "".join(f'"r{n}" {n % 5} x{n % 2} {"uv"[n % 3 == 0]}\n' for n in range(12)),
    "a text for a gap among numbers": "a,b,y\n"
    + "".join(f"{n * 7 % 5},{n / 2 if n % 9 else '-'},{'uv'[n % 2]}\n" for n in range(120)),
    "a number as label, with gaps": "a,y\n"
    + "".join(f"{n * 7 % 5},{n / 2 if n % 9 else 'null'}\n" for n in range(120)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MESSY)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_last_line_of_an_error_has_all_options_that_are_needed(name, encoding, tmp_path):
    """Followed once, it ends in success."""
    path = tmp_path / "messy.csv"
    path.write_text(MESSY[name], encoding=encoding)
    label = "kind" if MESSY[name].endswith((";yes\n", ";no\n")) else "y"
    with pytest.raises(click.ClickException) as caught:
        told("--label", label).open(str(path), None)
    words = pasted(caught.value.message)
    stream = told("--label", label, *words).open(str(path), None)
    assert len(stream) == MESSY[name].count("\n") - 1 - MESSY[name].startswith("sep=") - sum(
        MESSY[name].count(gap) for gap in ("nan", "null") if "--drop-unlabelled" in words
    ) - (name == "tabs")
    assert ("--decimal" in words) == ("comma" in name or name == "sep")


def test_unlabelled_rows_further_missing_texts_and_merged_names_on_the_command_line(run):
    Path("rows.csv").write_text("a,c,y\n" + "1,red,no\n-,Red,yes\n3,blue,-\n4,blue,No\n" * 5)
    words = ["replay", "rows.csv", "--label", "y", "--nominal", "c", "--missing-texts", "-"]
    result = run(*words)
    assert result.exit_code == 1
    assert "row 4, column 'y' is the label and is missing, got '-', as in rows 8, 12, 16, 20\n" in result.stderr
    assert pasted(result.stderr) == ["--drop-unlabelled", "--fill", "a=median"]
    stream = told(*words[2:], *pasted(result.stderr), "--merge-alike").open("rows.csv", None)
    assert (stream.classes, stream.features, len(stream)) == (("No", "yes"), ("a", "c=Red", "c=blue"), 15)


@pytest.mark.parametrize(
    ("cell", "said"), [("2024-01-30", "--skip a"), ("inf", ""), ("red", "--nominal a=VALUE,VALUE, or --skip a")]
)
def test_what_comes_live_and_is_no_word_is_no_value_of_a_column(run, cell, said):
    Path("rows.csv").write_text(f"a,y\n{cell},u\n")
    result = run("run", "--source", "csv:rows.csv", "--label", "y", "--classes", "u,v", "--end", "--journal", "run.db")
    assert result.exit_code == 1
    assert result.stderr.rstrip().endswith(f"got '{cell}'" + (f": {said}" if said else ""))


def test_a_field_longer_than_a_reader_of_csv_takes_is_one_line(run):
    Path("rows.csv").write_text("a,y\n1,1\n2," + "x" * 200_000 + "\n")
    result = run("replay", "rows.csv", "--label", "y")
    assert result.exit_code == 1
    assert result.stderr == "Error: rows.csv, row 3: field larger than field limit (131072)\n"


cells = st.sampled_from(["1", "2.5", " 3 ", "", "?", "NA", " ", "nan", "inf", "red", "green", "-", "1_0", "a=b", "o'k"])
names = st.sampled_from(["a", "b c", "d=e", "-f", "--skip", "y'z", "$h", "é"])


@pytest.mark.filterwarnings("ignore:.* as an identifier has")
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_what_an_error_says_can_be_pasted(tmp_path_factory, data):
    """Whatever stands in the columns: with the options of the error the file is read, at once."""
    header = data.draw(st.lists(names, min_size=1, max_size=5, unique=True))
    count = data.draw(st.integers(2, 12))
    rows = [[data.draw(cells) for _ in header] for _ in range(count)]
    path = tmp_path_factory.getbasetemp() / "pasted.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(
            [["n", *header, "label"], *([i, *row, "np"[i % 2]] for i, row in enumerate(rows))]
        )
    words = ["--label", "label"]
    with pytest.raises(click.ClickException) as caught:
        told(*words).open(str(path), None)
    words += pasted(caught.value.message)
    try:
        stream = told(*words).open(str(path), None)
    except click.ClickException as error:
        stream = told(*words, *pasted(error.message)).open(str(path), None)
    assert len(stream) == count


@pytest.mark.parametrize("text", ["1_000", "\u0661"])
def test_a_label_is_a_number_as_a_feature_is(tmp_path, text):
    """Python reads underlines and digits of other scripts in numbers; a column of a file with them is no such one."""
    path = tmp_path / "odd.csv"
    path.write_text(f"a;y\n1.5;{text}\n2.5;3\n")
    with pytest.raises(ValueError, match="row 2, column 'y' must be a finite number, as labels are"):
        streams.from_csv(path, "y", delimiter=";", classes="numbers")
    rows = streams.CSVRows(path, "y", delimiter=";", form=streams.Form(classes="numbers"), follow=False)
    with pytest.raises(streams.BadMessage, match="line 2: y must be a finite number"):
        next(rows.messages())


def test_a_point_among_decimal_commas_of_a_growing_file_is_named(tmp_path):
    path = tmp_path / "live.csv"
    path.write_text("size;y\n1.5;u\n")
    rows = streams.CSVRows(path, "y", delimiter=";", decimal=",", follow=False)
    with pytest.raises(streams.BadMessage, match="x, feature 'size' must be a number with a decimal comma") as caught:
        next(rows.messages())
    assert live_advice(caught.value).endswith("got '1.5': --skip size")


def rows_of(columns):
    """Return CSV text of columns, each a list under its name."""
    return "\n".join(",".join(map(str, row)) for row in [[*columns], *zip(*columns.values(), strict=True)]) + "\n"


@pytest.mark.filterwarnings("default::UserWarning")
def test_labels_that_differ_in_blanks_or_capitals_are_named_with_their_counts(run):
    labels = ["yes"] * 6 + ["yes "] * 2 + ["no"] * 5 + ["No"]
    Path("orders.csv").write_text(rows_of({"a": [n % 4 for n in range(14)], "y": labels}))
    result = well(run("replay", "orders.csv", "--label", "y"))
    assert (
        "warning: orders.csv, column 'y': the labels 'No' (1 of 14 rows) and 'no' (5 of 14 rows); 'yes' (6 of 14 rows) "
        "and 'yes ' (2 of 14 rows) are the same written differently, and count as several classes; --merge-alike makes "
        "them one\n" in result.stderr
    )
    result = run("replay", "orders.csv", "--label", "y", "--merge-alike")
    assert "warning" not in result.stderr
    assert "2 classes" in result.stdout


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize(
    ("values", "words", "what"),
    [(range(100, 114), (), "a larger integer"), ([f"k{n}" for n in range(14)], ("--nominal", "key"), "another text")],
    ids=["counting up", "all distinct"],
)
def test_a_column_that_looks_like_an_identifier_is_named_with_the_option(run, values, words, what):
    y = ["yes", "no"] * 7
    Path("orders.csv").write_text(rows_of({"key": values, "a": [n % 4 for n in range(14)], "y": y}))
    result = well(run("replay", "orders.csv", "--label", "y", *words))
    assert (
        f"warning: orders.csv, column 'key' has {what} in each row, as an identifier has: it is used as a feature; "
        "--skip key leaves it out\n" in result.stderr
    )
    assert "warning" not in run("replay", "orders.csv", "--label", "y", "--skip", "key").stderr


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("code", ["-9999.0", "1e308", "20"])
def test_a_number_that_hides_all_others_of_its_column_is_named(run, code):
    Path("heat.csv").write_text(rows_of({"heat": [*range(9), code] * 5, "b": range(50), "y": ["yes", "no"] * 25}))
    words = ["replay", "heat.csv", "--label", "y", "--skip", "b", "--steps", "3"]
    said = f"column 'heat': {code} is so far from the other values that these are as good as equal where the"
    assert (said in (told := run(*words).stderr)) == (f"--missing-texts {code} takes" in told) == (code != "20")
    assert "so far" not in run(*words, "--missing-texts", code, "--fill", "heat=median").stderr


@pytest.mark.parametrize("values", [[n / 2 for n in range(14)], [3, 1, *range(4, 16)], [1, *range(13)]])
def test_other_columns_are_no_identifiers(tmp_path, values):
    path = tmp_path / "plain.csv"
    path.write_text(rows_of({"a": values, "y": ["yes", "no"] * 7}))
    assert len(told("--label", "y").open(str(path), None)) == 14
