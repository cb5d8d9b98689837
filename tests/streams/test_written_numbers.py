"""Numbers that are text, as people write them: read as they are declared, and the advice of an error declares them."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused, well

import streams
from streams.checks import MISSING, means_missing
from streams.form import Decoder
from streams.schema import Refused, is_number, way_to_write
from venn import cli
from venn.cli.numbers import holds_numbers

READ = [
    ({"unit": "$", "thousands": ","}, "$1,969.50", 1969.5), ({"unit": "$", "thousands": ","}, " -$ 3 ", -3.0),
    ({"unit": "$", "thousands": ","}, "$-1,234,567", -1234567.0),
    ({"unit": "$", "thousands": ","}, "($1,234.50)", -1234.5), ({"unit": "$"}, "7", 7.0), ({"unit": "%"}, "96%", 96.0),
    ({"unit": "%"}, "\u22120.5 %", -0.5), ({"unit": "€", "thousands": ".", "decimal": ","}, "1.241,50 €", 1241.5),
    ({"unit": "€", "thousands": ".", "decimal": ","}, "1.241.000\u00a0€", 1241000.0),
    ({"unit": "kg"}, "1.5e3kg", 1500.0), ({"unit": "Rs.", "thousands": ","}, "Rs. 12,34,567.5", 1234567.5),
    ({"thousands": " "}, "1\u202f234\u00a0567.5", 1234567.5), ({"thousands": "'"}, "1\u2019234.5", 1234.5),
    ({"decimal": ","}, ",5", 0.5), ({"decimal": ",", "thousands": "."}, "1.234", 1234.0),
]  # fmt: skip
REFUSED = [
    ({"unit": "%"}, "0.96"),  # 96 %, or 1 %?
    ({"unit": "$"}, "€5"),
    ({"unit": "$"}, "$5$"),
    ({"unit": "$"}, "-$-5"),
    ({"unit": "$"}, "(-$5)"),
    ({"unit": "$"}, "($5"),
    ({"unit": "$"}, "$"),
    ({"thousands": ","}, "3,5"),
    ({"thousands": ","}, "0,123"),
    ({"thousands": ","}, "1,2345"),
    ({"thousands": ","}, "12,34"),
    ({"decimal": ","}, "3.5"),
    ({"unit": "$", "thousands": " "}, " " * 10_000 + "x"),  # it takes no longer than others
    ({"unit": "$", "thousands": " "}, "1 " * 10_000 + "x"),
    ({"decimal": ",", "thousands": "."}, "3.5"),
    ({}, "1,234"),
    ({}, "$5"),
    ({}, "1_000"),
]


@pytest.mark.parametrize(("how", "text", "number"), READ)
def test_a_number_is_read_as_it_is_declared(how, text, number):
    kind = streams.Numeric(**how)
    assert kind.read(text) == kind.value(text) == number
    assert eval(repr(kind), {"Numeric": streams.Numeric}) == kind


@pytest.mark.parametrize(("how", "text"), REFUSED)
def test_what_is_no_such_number_is_refused(how, text):
    with pytest.raises(Refused, match="must be a number"):
        streams.Numeric(**how).read(text)


test_ways_to_write_that_are_none = refused(lambda how: streams.Numeric(**how), [
    ({"unit": " "}, "unit must be text without"), ({"unit": "k2"}, "unit must be text without"),
    ({"thousands": ",", "decimal": ","}, "another sign than decimal"),
])  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "how"),
    [
        (["$1,969.50", "$3"], {"unit": "$", "thousands": ","}),
        (["1.241,50 €", "3 €"], {"unit": "€", "thousands": ".", "decimal": ","}), (["96%", "4.5 %"], {"unit": "%"}),
        (["12 kg", "5.5 kg"], {"unit": "kg"}), (["1 234,5", "1"], {"thousands": " ", "decimal": ","}),
        (["1,234", "12,345,678"], {"thousands": ","}), (["3,5", "1,234"], {"decimal": ","}),
        (["CHF 1'200.50"], {"unit": "CHF", "thousands": "'"}), (["12 kg", "5 g"], None), (["$5", "€5"], None),
        (["96%", "0.5"], None), (["shop 1", "shop 2"], None), (["A12", "A13"], None), (["#1", "#2"], {"unit": "#"}),
        (["2024-01-30"], None), (["12:30"], None), (["1,5", "1.5"], None), (["red"], None), ([], None),
    ],
)  # fmt: skip
def test_the_way_to_write_is_found_or_none(texts, how):
    found = way_to_write(texts)
    assert found == (None if how is None else streams.Numeric(**how))
    assert found is None or all(is_number(text, found) for text in texts)


def test_missing_numbers_as_others_write_them():
    parsers = pytest.importorskip("pandas._libs.parsers")
    assert set(parsers.STR_NA_VALUES) <= set(MISSING)
    for text in ("-nan", "+NaN", "1.#QNAN", "-1.#IND", "#NUM!", "#DIV/0!", "NULL", "\\N", "-nan(ind)", " #N/A "):
        assert means_missing(text)
        assert np.isnan(streams.Numeric(fill="median").read(text))
    for text in ("none", "unknown", "0", "missing", "na", "inf"):
        assert not means_missing(text)


def test_numbers_as_text_in_json():
    form = streams.Form(["a", "price"], "numbers", {"price": streams.Numeric(unit="$", thousands=",")})
    message = Decoder(form).json(json.dumps({"id": 1, "x": {"a": "1.5", "price": "$1,200"}, "y": "7e1"}))
    assert (message[1].tolist(), message[2]) == ([1.5, 1200.0], 70.0)
    with pytest.raises(ValueError, match="feature 'a' must be a number, got '1,5'"):
        Decoder(form).json('{"id": 1, "x": {"a": "1,5", "price": 2}}')


ROWS = 60
COLUMNS = {
    "amount": [f"${1000 * i + 969.5:,.2f}" for i in range(ROWS)], "share": [f"{i / 2}%" for i in range(ROWS)],
    "weight": [f"{i} kg" if i % 7 else "" for i in range(ROWS)],
    "sold": [f"{i * 7919 % 9973 + 1000:,}" for i in range(ROWS)],
    "level": [f"{i / 4}" if i % 9 else "-" for i in range(ROWS)],
    "odd": [f"{i / 4}" if i % 9 else "unknown" for i in range(ROWS)], "shop": [f"shop {i % 25}" for i in range(ROWS)],
    "plain": [f"{i}.5" for i in range(ROWS)], "ref": [f"k{i:03}" for i in range(ROWS)],
    "day": [f"2024-01-{1 + i % 28:02}" for i in range(ROWS)],
    "mixed": [("$%d" if i % 2 else "€%d") % i for i in range(ROWS)],
}  # fmt: skip


def table(names, comma=False):
    import csv
    import io

    def spelled(text):
        return text.translate(str.maketrans(",.", ".,")) if comma and "-" not in text else text

    file = io.StringIO()
    out = csv.writer(file, delimiter=";" if comma else ",")
    out.writerow([*names, "y"])
    out.writerows([*(spelled(COLUMNS[name][i]) for name in names), "up" if i % 3 else "down"] for i in range(ROWS))
    return file.getvalue()


@pytest.fixture
def replay(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)

    def invoke(*words):
        return CliRunner().invoke(cli.main, ["replay", "t.csv", "--label", "y", "--steps", "8", "--out", "o", *words])

    return invoke


@pytest.mark.parametrize("comma", [False, True])
def test_the_line_to_paste_reads_what_can_be_read_and_says_what_is_left_out(replay, comma):
    Path("t.csv").write_text(table(COLUMNS, comma), encoding="utf-8")
    result = replay(*(["--delimiter", ";"] if comma else []))
    assert result.exit_code == 1
    *lines, last = result.stderr.splitlines()
    words = shlex.split(last.removeprefix("try: "))
    pairs = set(pairwise(words))
    assert {
        ("--unit", "amount=$"), ("--unit", "share=%"), ("--unit", "weight=kg"), ("--fill", "weight=median"),
        ("--fill", "level=median"), ("--fill", "odd=median"), ("--nominal", "shop"), ("--skip", "ref"),
        ("--skip", "day"), ("--skip", "mixed"), ("--thousands", "." if comma else ","),
    } <= pairs  # fmt: skip
    assert (("--decimal", ",") in pairs) == comma
    assert sum(word == "--skip" for word in words) == 3
    said = "\n".join(lines)
    assert "skip 'ref': it has another text in each row, as an identifier has" in said
    assert "skip 'day': it holds dates" in said
    assert "skip 'mixed': its numbers are written in several ways" in said
    assert "'odd': it holds numbers but for 'unknown', taken as missing values there" in said
    well(replay(*words, *(["--delimiter", ";"] if comma else [])))


@pytest.mark.parametrize("names", [["amount"], ["share"], ["sold"], ["weight"], ["level"], ["odd"], ["shop"]])
def test_the_schema_to_paste_reads_the_column(tmp_path, names):
    path = tmp_path / "t.csv"
    path.write_text(table(["plain", *names]), encoding="utf-8")
    with pytest.raises(ValueError, match="add to schema") as caught:
        streams.from_csv(path, "y")
    last = str(caught.value).splitlines()[-1]
    schema = eval(last.removeprefix("add to schema: "), {"streams": streams})
    stream = streams.from_csv(path, "y", schema=schema, scale=False)
    expected = {"amount": 1969.5, "share": 0.5, "sold": 8919.0, "weight": 1.0, "level": 0.25, "odd": 0.25}
    assert stream.X[1, 1] == expected.get(names[0], 0.0)
    assert len(stream.features) == (1 + 25 if names == ["shop"] else 2)


@pytest.mark.parametrize("levels", [5, 30, 40, 990])
def test_a_column_of_words_is_kept_at_every_number_of_levels(replay, levels):
    lines = [f"shop {i % levels},{i / 8},{'yes' if i % 3 else 'no'}" for i in range(2 * levels + 10)]
    Path("t.csv").write_text("\n".join(["shop,amount,y", *lines]))
    result = replay()
    assert result.stderr.splitlines()[-1] == "try: --nominal shop"
    assert ("one feature for each of its" in result.stderr) == (levels > 30)


def test_a_word_behind_one_number_is_no_unit(replay):
    Path("t.csv").write_text("doors,y\n" + "".join(f"{('2', '3', '5more')[i % 3]},{'ab'[i % 2]}\n" for i in range(30)))
    assert replay().stderr.splitlines()[-1] == "try: --nominal doors"


@pytest.mark.parametrize(("text", "numbers"), [("{:03d}", False), ("{}", True), ("0.{}", True), ("00{}.5", False)])
def test_labels_with_leading_zeros_are_names(tmp_path, text, numbers):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i},{text.format(i % 75 + 1)}\n" for i in range(200)))
    assert holds_numbers(path, "y", ",") == numbers


FRAME = {
    "amount": [f"${1000 * i + 969.5:,.2f}" for i in range(12)],
    "share": [f"{i}%" if i % 5 else None for i in range(12)], "shop": ["north", "south", None] * 4,
    "ref": [f"k{i}" for i in range(12)], "text": [f"{i}.5" for i in range(12)], "paid": [True, False] * 6,
    "plain": [*range(12)], "y": ["up", "down"] * 6,
}  # fmt: skip


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_frame_is_refused_with_a_schema_to_paste(backend, whole):
    package = pytest.importorskip(backend)
    frame = (package.table if backend == "pyarrow" else package.DataFrame)(FRAME)
    names = [name for name in FRAME if name != "y"]

    def read(schema=None):
        if whole:
            X = frame.select(names) if backend != "pandas" else frame[names]
            return streams.from_arrays(X, FRAME["y"], schema=schema, scale=False)
        return streams.from_frames(frame, "y", classes=["up", "down"], features=names, schema=schema)

    with pytest.raises(TypeError, match="add to schema") as caught:
        list(read())
    *lines, last = str(caught.value).splitlines()
    schema = eval(last.removeprefix("add to schema: "), {"streams": streams})
    assert schema["share"].fill == ("median" if whole else 6.0)  # that of what is still to come is not known
    X = np.array([x for x, _ in read(schema)])
    assert X[1].tolist() == [1969.5, 1.0, 0.0, 1.0, 0.0, 1.0]
    assert any(line.startswith("skip 'ref': it has another text in each row") for line in lines)
    assert any(line.startswith("skip 'text': it holds numbers as text: cast") for line in lines)
    assert any(line.startswith("skip 'paid': cast it to float") for line in lines)


def test_a_row_of_units_takes_no_column_away(replay):
    rows = [f'"${i * 7919 % 9973 + 1000:,}",{i % 9}%,{"yn"[i % 2]}' for i in range(80)]
    Path("t.csv").write_text("\n".join(["amount,share,y", "USD,%,", *rows, "Sum,,"]))
    result = replay()
    words = shlex.split(result.stderr.splitlines()[-1].removeprefix("try: "))
    assert {("--unit", "amount=$"), ("--unit", "share=%"), ("--thousands", ",")} <= set(pairwise(words))
    assert "--skip" not in words
    assert "row 2 may be no example" in result.stderr
    assert "row 83 may be no example: it begins with 'Sum'" in result.stderr
    assert "'amount': it holds numbers but for 'Sum', 'USD', taken as missing values there" in result.stderr
