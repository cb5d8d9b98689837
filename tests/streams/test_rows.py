"""CSV rows as messages: the row of names, questions and answers, kinds of columns, what is wrong and where."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from streams.form import Form
from streams.lines import CSVRows
from streams.messages import BadMessage
from streams.schema import Nominal, Skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.csv"


def append(path, text):
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_rows_without_label_and_id_and_with_kinds(path):
    append(path, "a;b;c\nred;x;1\ngreen;;2\n")
    form = Form(schema={"a": Nominal(("red", "green")), "b": Skip()})
    found = list(CSVRows(path, None, delimiter=";", follow=False, form=form).messages())
    assert [(m.id, m.x.tolist(), m.y) for m in found] == [(None, [1, 0, 1], None), (None, [0, 1, 2], None)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("k,1", "must have 4 fields, got 2"), ("k,1,2,a,b", "must have 4 fields, got 5"),
        ('k,1,2,"a', "must be a row of CSV on one line"), ('k,"1"2,2,a', "must be a row of CSV on one line"),
        ("k,1,,a", "x, feature 'b' is missing, got ''"), ("k,1,nan,a", "x, feature 'b' is missing, got 'nan'"),
        ("k,1,1_0,a", "x, feature 'b' must be a number, got '1_0'"),
        ("k,1,2,c", "y must be one of the classes ('a', 'b'), got 'c'"),
        (",,,a", "must have an id, as it has y and no x, got none"), ("k,,,", "must have x, y or both, got neither"),
        (b"k,1,2,\xe4", "must be UTF-8"),
    ],
)  # fmt: skip
def test_bad_rows(path, row, reason):
    append(path, "key,a,b,y\n")
    append(path, row)
    with pytest.raises(BadMessage) as caught:
        list(CSVRows(path, "y", id="key", form=Form(classes=["a", "b"]), follow=False).messages())
    assert str(caught.value).startswith(f"{path}, line 2: {reason}")


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("a,b", "label must be one of the columns ['a', 'b'], got 'y'"),
        ("a,y", "id must be one of the columns ['a', 'y'], got 'key'"),
        ("key,a,a,y", "column names must be distinct, got 'a' twice"),
        ("key,y", "features must be columns of ['key', 'y'] other than label and id, got 'a'"),
        ('key,"y', "must be a row of CSV on one line"),
        (b"\xff", "must be UTF-8"),
    ],
)
def test_bad_headers(path, header, reason):
    append(path, header)
    with pytest.raises(ValueError, match="line 1") as caught:
        list(CSVRows(path, "y", id="key", form=Form(features=["a"]), follow=False).messages())
    assert reason in str(caught.value)


def test_rows_on_standard_input():
    program = "from streams.lines import CSVRows\n"
    program += "for m in CSVRows('-', 'y').messages(): print(m.x.tolist(), m.y, m.position)"
    text = "a,y\n1,u\n2,v"
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0] u 2\n[2.0] v 3\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_rows_are_those_of_the_standard_reader(path, delimiter):
    """Rows with quotes and without, empty cells and delimiters inside cells: ids and labels by their places."""
    rng = np.random.default_rng(0)
    words = ["a", "", " b ", "c d", 'e"f', "g,h", "i;j", "k\tl", "'m'", "\\n", "ü", "\u2028"]
    rows = [[words[k] for k in rng.integers(0, len(words), 3)] for _ in range(300)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(
            [["key", "x", "fruit"], *([f"{i}{one}", 1.5, f"{other}!"] for i, (one, other, _) in enumerate(rows))]
        )
    found = list(CSVRows(path, "fruit", id="key", delimiter=delimiter, follow=False).messages())
    with path.open(encoding="utf-8", newline="") as file:
        expected = [(row[0], row[2]) for row in list(csv.reader(file, delimiter=delimiter))[1:]]
    assert [(message.id, message.y) for message in found] == expected
