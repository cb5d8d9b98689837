"""Streams from CSV files: schema, dialects, the two readers, and errors with file, row and column."""

import csv
import gzip
import os
import pickle
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streams
from streams import Nominal, Numeric, Ordinal, Skip, tables, troubles
from streams.checks import means_missing
from streams.header import OtherDelimiter


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        raw = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
        return path

    return write


FRUIT = "weight,colour,size,id,fruit\n150,green,big,k1,apple\n120,yellow,small,k2,lemon\n90,green,small,k3,lime\n"
FRUIT_SCHEMA = {"colour": Nominal(), "size": Ordinal(("small", "big")), "id": Skip()}


@pytest.mark.parametrize("name", ["fruit.csv", "fruit.csv.gz"])
@pytest.mark.parametrize("label", ["fruit", 4, -1])
def test_schema(write, name, label):
    stream = streams.from_csv(write(FRUIT, name), label, schema=FRUIT_SCHEMA, scale=False)
    assert stream.name == "fruit"
    assert stream.features == ("weight", "colour=green", "colour=yellow", "size")
    assert stream.classes == ("apple", "lemon", "lime")
    assert stream.X.tolist() == [[150, 1, 0, 1], [120, 0, 1, 0], [90, 1, 0, 0]]
    assert [y for _, y in stream] == ["apple", "lemon", "lime"]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;y\n1;n\n2;p\n", ";"), ("a\ty\n1\tn\n2\tp\n", "\t"), ("\ufeffa,y\r\n1,n\r\n2,p", ","),
        ('"a","y"\n"1","n"\n\n2,"p"\n\n', ","), ("\na,y\n 1 ,n\n2e0,p\n", ","),
    ],
)  # fmt: skip
def test_dialects(write, text, delimiter):
    stream = streams.from_csv(write(text), "y", delimiter=delimiter, scale=False)
    assert stream.features == ("a",)
    assert [(x.tolist(), y) for x, y in stream] == [([1.0], "n"), ([2.0], "p")]


def test_quoted_fields_hold_anything(write):
    text = 'a,y\n1,"yes, ""really"""\n2,"two\nlines"\n3,"yes, ""really"""\n'
    stream = streams.from_csv(write(text), "y", scale=False)
    assert stream.classes == ("two\nlines", 'yes, "really"')
    assert stream.y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,y\n1,n\n2,"p\n3,n\n4,p\n', "row 3: unexpected end of data"),
        ('a,y\n1,n\n2,"p', "row 3: unexpected end of data"),
        ('a,y\n1,"n"n\n2,p\n', "row 2: ',' expected after"),
        ('"a,y\n1,n\n2,p\n', "unexpected end of data"),
    ],
)
def test_a_quote_without_its_end_swallows_no_rows(write, text, message):
    with pytest.raises(ValueError, match=message):
        streams.from_csv(write(text), "y")
    assert streams.from_csv(write('a,y\n1,5" pipe\n2,p\n'), "y").classes == ('5" pipe', "p")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a Unix")
def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe must be a file, for it is read more than once"):
        streams.from_csv(tmp_path / "pipe", "y")


MEDIAN, ZERO = Numeric(missing="?", fill="median"), Numeric(missing="?", fill=0)
RED = "must be a number, got 'red': declare the column as Nominal(), Ordinal(values), Skip() "
RED += "or Numeric(missing='red', fill=...)"
COMMA = "must be a number with a decimal point and no comma, "
UNKNOWN = "is missing, got '?': declare Numeric(fill='median' or a number), or Skip()"
OWN = "is missing, got '?': to count it as a value of its own, declare Nominal(missing='?')"


@pytest.mark.parametrize(
    ("text", "schema", "place", "reason"),
    [
        ("a,y\n1,n\nred,p\n", {}, "row 3, column 'a'", RED),
        ("a,y\n1_0,p\n", {}, "row 2, column 'a'", "must be a number, got '1_0'"),
        ("a,y\n1,n\n\n\n٣,p\n", {}, "row 5, column 'a'", "must be a number, got '٣'"),
        ('c,a,y\n"two\nlines",1,n\nx,red,n\n', {"c": Skip()}, "row 4, column 'a'", RED),
        ("a,y\n1,n\n?,p\n", {}, "row 3, column 'a'", UNKNOWN),
        ("a,b,y\n1,,n\n", {}, "row 2, column 'b'", "is missing, got ''"),
        ("a,y\n1,n\n2,\n", {}, "row 3, column 'y'", "is the label and is missing, got ''"),
        ("a,y\nred,n\n?,n\n", {"a": Nominal()}, "row 3, column 'a'", OWN),
        ("a,y\n?,n\n", {"a": MEDIAN}, "column 'a'", "has no value to take a median of"),
        ("a,y\n1,n\nnan,p\n", {}, "row 3, column 'a'", "is missing, got 'nan'"),
        ("a,y\n1,n\nnan,p\n", {"a": ZERO}, "row 3, column 'a'", "is missing, got 'nan'"),
        ("a,y\n-inf,n\n", {}, "row 2, column 'a'", "must be a finite number, got '-inf'"),
        ("a,y\n1e999,n\n", {}, "row 2, column 'a'", "must be a finite number, got '1e999'"),
        ('a,y\n"3,5",n\n', {}, "row 2, column 'a'", COMMA + "got '3,5': mend the file, give decimal=','"),
        ('a,y\n"-1.234,5",n\n', {}, "row 2, column 'a'", COMMA + "got '-1.234,5'"),
        ('a,y\n"1,234.5",n\n', {}, "row 2, column 'a'", COMMA + "got '1,234.5'"),
        ('a,y\n"1,2,3",n\n', {}, "row 2, column 'a'", "must be a number, got '1,2,3': declare"),
        ("a,y\nred,n\nblue,n\n", {"a": Nominal(("red",))}, "row 3, column 'a'",
         "must be one of the declared values ('red',), got 'blue'"),
        ("a,y\nlow,n\nmid,n\n", {"a": Ordinal(("low", "high"))}, "row 3, column 'a'",
         "must be one of the declared values ('low', 'high'), got 'mid'"),
        ("a,b,y\n1,2,n\n1,n\n", {}, "row 3", "must have 3 fields, got 2"),
        ("a" * 200_000 + ",y\n1,n\n", {}, "row 1:", "field larger than field limit (131072)"),
        ("a,b,y\n1,2,n\n1,2,3,n\n", {}, "row 3", "must have 3 fields, got 4"),
        ("a,b,y\n1,2\n1,2\n", {}, "row 2", "must have 3 fields, got 2"),
        ("a,b,y\n1,2,n\n1,n\n", {"a": Skip()}, "row 3", "must have 3 fields, got 2"),
        ("a,y\n1,n\n   \n", {}, "row 3", "must have 2 fields, got 1"),
        ("a,a,y\n1,2,n\n", {}, "row 1:", "column names must be distinct, got 'a' twice"),
        ("a,,y\n0,1,n\n", {}, "row 1:", "column 2 has no name; name it, or drop it"),
        ("5.1,y\n4.9,n\n", {}, "row 1", "must hold column names, got the number '5.1': add a header"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_place(write, text, schema, place, reason):
    path = write(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the whole message is compared below
        streams.from_csv(path, "y", schema=schema)
    assert str(caught.value).startswith(f"{path}, {place} {reason}")


def test_the_first_trouble_of_every_bad_column_is_told(write):
    path = write("a,b,c,d,y\n1,red,2,0,n\n?,blue,2,0,p\n\n?,2,2,low,\nx,2,2,high,\n")
    with pytest.raises(troubles.BadColumns) as caught:
        streams.from_csv(path, "y", schema={"d": Ordinal(("0", "high"))})
    assert str(caught.value).splitlines() == [
        f"{path}, row 2, column 'b' {RED}",
        f"{path}, row 3, column 'a' {UNKNOWN}",
        f"{path}, row 5, column 'd' must be one of the declared values ('0', 'high'), got 'low'",
        f"{path}, row 5, column 'y' is the label and is missing, got '', as in row 6; drop_unlabelled=True drops such "
        "rows; or declare classes",
    ]
    assert caught.value.rows == 4
    b, a, d, y = caught.value.troubles
    assert (b.values, b.strange) == (3, ("blue", "red"))
    assert (a.values, a.strange) == (3, ("?", "x"))
    assert (d.kind, d.values, y.kind) == (Ordinal(("0", "high")), 3, None)
    again = pickle.loads(pickle.dumps(caught.value))  # as a cluster sends it
    assert (str(again), again.troubles) == (str(caught.value), caught.value.troubles)


def test_the_last_line_has_the_schema_that_reads_the_file(write):
    path = write(
        "a,b,c,y\nred,1,2024-01-01,n\n,,2024-01-02,p\nred,3,2024-01-03,n\nblue,4,2024-01-04,p\nred,5,2024-01-05,n\nred,6,2024-01-06,n\n"
    )
    with pytest.raises(troubles.BadColumns) as caught:
        streams.from_csv(path, "y")
    last = str(caught.value).splitlines()[-1]
    assert last == (
        "add to schema: {'a': streams.Nominal(missing=('',)), 'c': streams.Skip(), 'b': streams.Numeric(fill='median')}"
    )
    schema = eval(last.removeprefix("add to schema: "), {"streams": streams})
    assert streams.from_csv(path, "y", schema=schema).features == ("a=", "a=blue", "a=red", "b")


@pytest.mark.parametrize(
    ("header", "delimiter", "other"),
    [("a;b;y", ",", ";"), ("a\tb\ty", ",", "\t"), ("a,b,y", ";", ","), ("a|y", ",", "|")],
)
def test_a_header_of_one_column_names_another_delimiter(write, header, delimiter, other):
    path = write(f"{header}\n1\n")
    with pytest.raises(OtherDelimiter) as caught:
        streams.from_csv(path, "y", delimiter=delimiter)
    said = f"{path} must have more columns than one, got the header {header!r}: try delimiter={other!r}"
    assert (str(caught.value), caught.value.delimiter) == (said, other)
    assert str(pickle.loads(pickle.dumps(caught.value))) == said


def test_several_texts_may_stand_for_a_missing_value(write):
    path = write("a,b,y\n1,,n\n NA,u,p\n,?,n\n5,v,p\nnan,?,n\n 9 ,u,n\n")
    schema = {"a": Numeric(["", "NA", "nan"], "median"), "b": Nominal(missing=("", "?"))}
    stream = streams.from_csv(path, "y", schema=schema, scale=False)
    assert stream.X[:, 0].tolist() == [1, 5, 5, 5, 5, 9]
    assert stream.features == ("a", "b=", "b=?", "b=u", "b=v")
    assert Nominal(("u",), ("", "u", "?", "?")).values == ("u", "", "?")
    assert hash(schema["a"]) == hash(Numeric(("", "NA", "nan"), "median"))


TWO = "a,y\n1,n\n2,p\n"
KINDS = "schema['a'] must be Numeric, Nominal, Ordinal or Skip, "


@pytest.mark.parametrize(
    ("text", "options", "kind", "message"),
    [
        ("", {}, ValueError, "{path} is empty: it must start with a row of column names"),
        ("\n\n", {}, ValueError, "{path} is empty"),
        ("a,y\n", {}, ValueError, "{path} holds a header and no examples"),
        ("y\nn\n", {}, ValueError, "{path} has no feature: every column but the label is skipped"),
        (b"a,y\n1,\xff\n", {}, ValueError, "{path} must be UTF-8 text"),
        (b"\x1f\x8b\x08broken", {}, ValueError, "{path} is a damaged gzip file"),
        ("a,b\n1,n\n", {}, ValueError, "label must be a column of {path}, got 'y'; it has 'a', 'b'"),
        (TWO, {"label": 2}, ValueError, "label must be a position among the 2 columns of {path}, got 2"),
        (TWO, {"label": 1.0}, TypeError, "label must be a column name or position, got 1.0"),
        (TWO, {"classes": [0, 1]}, TypeError, "classes must be str, as a CSV file holds text, got 0"),
        (TWO, {"classes": ["n", "z"]}, ValueError,
         "{path}, row 3, column 'y' must be one of the classes ('n', 'z'), got 'p'"),
        (TWO, {"schema": {"b": Nominal()}}, ValueError, "schema names a column 'b' that {path} lacks; it has 'a', 'y'"),
        (TWO, {"schema": {"y": Nominal()}}, ValueError,
         "schema must not name the label's column 'y'; declare classes instead"),
        (TWO, {"schema": {"a": "nominal"}}, TypeError, KINDS + "got 'nominal'"),
        (TWO, {"schema": {"a": Nominal}}, TypeError, KINDS + "got <class"),
        (TWO, {"delimiter": ", "}, ValueError, "delimiter must be one character, neither"),
        (TWO, {"scale": "whole"}, TypeError, "scale must be True, False or a Scaling, got 'whole'"),
        (TWO, {"shuffle": 0.5}, TypeError, "shuffle must be an integer >= 0, got 0.5"),
    ],
)  # fmt: skip
def test_from_csv_refuses(write, text, options, kind, message):
    path = write(text)
    with pytest.raises(kind) as caught:
        streams.from_csv(path, **{"label": "y", **options})
    assert str(caught.value).startswith(message.format(path=path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.csv"):
        streams.from_csv(tmp_path / "absent.csv", "y")


def test_a_cut_gzip_file_is_named(write, tmp_path):
    whole = gzip.compress(("a,y\n" + "1,n\n" * 5000).encode())
    path = write(whole[:-20])
    with pytest.raises(ValueError, match=r"data.csv is a damaged gzip file"):
        streams.from_csv(path, "y")


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Numeric(missing="?"), ValueError, "fill must say what becomes of missing='?', got None"),
        (lambda: Numeric("?", np.nan), ValueError, 'fill must be a finite number or "median", got nan'),
        (lambda: Numeric(3, 0), TypeError, "missing must be text, a sequence of texts or None, got 3"),
        (lambda: Nominal(missing=()), TypeError, "missing must be text, a sequence of texts or None, got ()"),
        (lambda: Nominal((1, 2)), TypeError, "values must be str, as a CSV file holds text, got 1"),
        (lambda: Nominal(("a", "a")), ValueError, "values must be distinct and at least one, got ('a', 'a')"),
        (lambda: Ordinal(()), ValueError, "values must be distinct and at least one, got ()"),
    ],
)
def test_schema_refuses(make, kind, message):
    with pytest.raises(kind) as caught:
        make()
    assert str(caught.value) == message


def test_the_two_readers_agree(write, monkeypatch):
    rng = np.random.default_rng(0)
    rows = zip(
        rng.normal(size=50), rng.choice(list("rgb?"), 50), rng.choice(["1e-3", " 7", "?"], 50), "np" * 25, strict=True
    )
    text = "a,b,c,y\n" + "\n".join(",".join(map(str, row)) for row in rows)
    schema = {"b": Nominal(missing="?"), "c": MEDIAN}
    fast = streams.from_csv(write(text), "y", schema=schema)

    monkeypatch.setattr(tables, "_parse", lambda *arguments: None)
    slow = streams.from_csv(write(text), "y", schema=schema)
    assert np.array_equal(fast.X, slow.X)
    assert np.array_equal(fast.y, slow.y)
    assert (fast.features, fast.classes, fast.scaling) == (slow.features, slow.classes, slow.scaling)


def test_schema_objects_are_frozen_values():
    assert Nominal(["a", "b"]) == Nominal(("a", "b"))
    assert hash(Ordinal(["a"])) == hash(Ordinal(("a",)))
    with pytest.raises(AttributeError):
        Skip().anything = 1


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1).filter(
    lambda t: not means_missing(t)
)


@pytest.mark.filterwarnings("ignore:.*are the same written differently")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=st.lists(st.tuples(numbers, texts, numbers, texts), min_size=1, max_size=8))
def test_csv_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("round") / "trip.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([("a", "b", "c", "y"), *rows])
    stream = streams.from_csv(path, "y", schema={"b": Nominal()}, scale=False)
    assert [y for _, y in stream] == [row[3] for row in rows]
    for x, row in zip(stream.X, rows, strict=True):
        assert (x[0], x[-1]) == (row[0], row[2])
        assert stream.features[1 + int(x[1:-1].argmax())] == f"b={row[1]}"
        assert x[1:-1].sum() == 1


@pytest.mark.parametrize("schema", [["a"], 3, "a"], ids=repr)
def test_a_schema_that_is_no_mapping_is_refused(write, schema):
    with pytest.raises(TypeError, match="schema must be a mapping from name to kind, got"):
        streams.from_csv(write("a,y\n1,b\n2,c\n"), "y", schema=schema)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,y\n1,\xf6\n", "iconv -f cp1252 -t utf-8"), (b"\xff\xfea\0\xff\xdf", "must be UTF-16 text"),
        (b"PAR1\xff", "must be a CSV file, got a Parquet file: write it as CSV"),
        (b"ARROW1\0\0", "must be a CSV file, got an Arrow or Feather file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "got an old Excel workbook .* save its sheet as CSV"),
        (b"%PDF-1.7\n%\xe2\xe3", "got a PDF: ask for the table"),
        (b"\n<!DOCTYPE html>\n<html>", "got a web page .* open it in a browser"),
        (b"\xef\xbb\xbf<HTML lang='en'>", "got a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS .*: git lfs pull fetches it"),
        (b"/annex/objects/SHA256E-s3--0.csv\n", "git annex get fetches it"),
        (b'{"id": 1, "x": [1]}\n', "got JSON: write it as CSV"), (b'[{"a": 1}]', "got JSON"),
        (b"\x28\xb5\x2f\xfd\x24", "packed by zstd: unpack it first"),
        (gzip.compress(b"%PDF-1.7\n", mtime=0), "got a PDF"), (b"PK\x03\x04broken", "is a damaged zip file"),
        (b"BZh9broken", "is a damaged bzip2 file"), (b"\xfd7zXZ\0broken", "is a damaged xz file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_text_says_what_to_do_with_it(content, said, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        streams.from_csv(path, label="y")


@pytest.mark.parametrize("name", ["<a>", "{a}", "[a]", "version", "<tables>"])
def test_a_table_whose_first_name_looks_like_another_file(write, name):
    assert len(streams.from_csv(write(f"{name},y\n1,b\n2,c\n"), "y")) == 2


def test_advice_to_paste_quotes_a_path_with_blanks(tmp_path):
    path = tmp_path / "my data (1).csv"
    path.write_bytes(b"a,y\n1,\xf6\n")
    with pytest.raises(ValueError, match="iconv") as caught:
        streams.from_csv(path, label="y")
    pasted = str(caught.value).partition("perhaps it becomes so by ")[2]
    assert str(path) in shlex.split(pasted)


@pytest.mark.parametrize(
    ("gap", "how"), [("-", {"missing": ["-"], "schema": {"a": Numeric(fill=0)}}), ("0,5", {"decimal": ","})]
)
def test_a_number_that_hides_the_others_is_found_however_cells_are_written(write, gap, how):
    cells = [gap, *range(20), "-9999"]
    path = write("a;y\n" + "".join(f"{cell};{'pq'[i % 2]}\n" for i, cell in enumerate(cells)))
    with pytest.warns(UserWarning, match="column 'a': -9999 is so far from the other values"):
        assert len(streams.from_csv(path, "y", delimiter=";", **how)) == 22
