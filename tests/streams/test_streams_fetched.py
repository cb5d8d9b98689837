"""Sets that scikit-learn fetches: it is given what OpenML has, and the table that comes of it is ours."""

import csv
import gzip
import hashlib
import io
import os
import urllib.error
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from click.testing import CliRunner

import streams
from streams import files
from streams.files import DataFile, Decoded, Fetched
from streams.loaded import PUBLISHED
from streams.schema import Nominal

pytest.importorskip("sklearn")
DATA = os.environ.get("STREAMS_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="STREAMS_DATA names no folder with the published files")
OPENML = {published.name: published for published in PUBLISHED if published.fetched and published.fetched.openml}


class OpenML:
    """What scikit-learn's `fetch_openml` would find: tables by number, or an error."""

    def __init__(self):
        self.tables, self.asked, self.error = {}, [], None

    def fetch(self, number, label):
        self.asked.append((number, label))
        if self.error is not None:
            raise self.error
        return self.tables[number]

    def serve(self, number, columns, rows, target):
        """Serve a table: `columns` are pairs of name and None (numeric) or the words of the column."""
        place = [name for name, _ in columns].index(target)
        y = np.array([row[place] for row in rows], object)
        kept = [j for j in range(len(columns)) if j != place]
        words = {columns[j][0]: columns[j][1] for j in kept if columns[j][1] is not None}

        def coded(j, text):
            _, known = columns[j]
            return np.nan if text == "?" else float(text) if known is None else float(known.index(text))

        X = np.array([[coded(j, row[j]) for j in kept] for row in rows])
        self.tables[number] = Decoded([columns[j][0] for j in kept], X, words, y)


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """A fresh machine: no data, empty caches of ours and of scikit-learn."""
    for variable in ("STREAMS_DATA", "STREAMS_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))
    source = OpenML()
    monkeypatch.setattr(files, "from_openml", source.fetch)
    return source


def cached(tmp_path):
    folder = tmp_path / "cache" / "vennstream"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# Published tables -----------------------------------------------------------------------------------

OTHER_NAMES = {
    "mushroom": {"bruises": "bruises%3F"},
    "wdbc": {f"mean_{what}": f"V{j}" for j, what in enumerate(("radius", "texture", "perimeter"), 1)},
    "german": {"savings": "savings_status", "property": "property_magnitude"},
    "heart": {"cp": "chest", "trestbps": "resting_blood_pressure"},
    "adult": {"education_num": "education-num"},
}


def published_rows(published):
    content = (Path(DATA) / published.file.name).read_bytes()
    if published.file.name.endswith(".gz"):
        content = gzip.decompress(content)
    header, *rows = csv.reader(io.StringIO(content.decode()))
    return header, rows


def as_on_openml(openml, published):
    """Serve a published file as OpenML has it: other names, other words, other rows, columns that are no features."""
    fetched, (header, rows) = published.fetched, published_rows(published)
    theirs = {name: {our: word for word, our in words.items()} for name, words in fetched.values.items()}
    rows = [[theirs.get(name, {}).get(text, text) for name, text in zip(header, row, strict=True)] for row in rows]
    if fetched.rows is not None:
        rows = rows[:1] * fetched.rows[0] + rows
    label = "class" if fetched.label == "default-target" else fetched.label
    names = [OTHER_NAMES.get(published.name, {}).get(name, name) for name in header[:-1]] + [label]
    nominal = {*published.schema, "label"} - {"cp", "restecg", "thal"} | {"day"} & set(header)
    columns = [
        (name, sorted({row[j] for row in rows} - {"?"}) if ours in nominal else None)
        for j, (name, ours) in enumerate(zip(names, header, strict=True))
    ]
    if fetched.drop:  # these come first, and so does the class
        instances = [f"S{i}" for i in range(len(rows))]
        columns = [columns[-1], (fetched.drop[0], instances), *columns[:-1]]
        rows = [[row[-1], instance, *row[:-1]] for row, instance in zip(rows, instances, strict=True)]
    openml.serve(fetched.openml, columns, rows, label)


def same(one, other):
    return (
        np.array_equal(one.X, other.X)
        and np.array_equal(one.y, other.y)
        and (one.classes, one.features) == (other.classes, other.features)
    )


@needs_data
@pytest.mark.parametrize("name", OPENML)
def test_a_set_of_openml_is_the_published_one(name, openml, tmp_path, monkeypatch):
    published = OPENML[name]
    as_on_openml(openml, published)
    assert published.where() == "download"
    stream = streams.load(name, scale=False)
    assert openml.asked == [(published.fetched.openml, published.fetched.label)]
    assert cached(tmp_path) == [f"{name}.table.csv"]
    assert published.where() == "cached"
    if published.fetched.table.size < 300_000:  # the way back is that of all sets
        assert same(stream, streams.load(name, scale=False))
        assert len(openml.asked) == 1
    monkeypatch.setenv("STREAMS_DATA", DATA)
    assert published.where() == "local"
    assert same(stream, streams.load(name, scale=False))


@needs_data
def test_covtype_is_fetched_by_its_own_function(openml, tmp_path, monkeypatch):
    """By its first rows: the table of all of them is, to the last byte, what the published file holds."""
    covtype = pytest.importorskip("sklearn.datasets._covtype")
    published = next(published for published in PUBLISHED if published.name == "covtype")
    whole = gzip.decompress((Path(DATA) / published.file.name).read_bytes())
    assert hashlib.sha256(whole).hexdigest() == published.fetched.table.sha256
    text = b"".join(whole.splitlines(keepends=True)[:20_501])
    table = replace(published.fetched.table, size=len(text), sha256=hashlib.sha256(text).hexdigest())
    fetched, rows = replace(published.fetched, table=table), np.genfromtxt(io.BytesIO(text), delimiter=",")[1:]
    # Fetching takes scikit-learn two minutes: its cache holds what it would hold.
    folder = tmp_path / "sklearn" / "covertype"
    folder.mkdir(parents=True)
    joblib.dump(rows[:, :-1], covtype._pkl_filepath(folder, "samples"))
    joblib.dump(rows[:, -1].astype(np.int32), covtype._pkl_filepath(folder, "targets"))
    assert table.where() == "absent"
    assert fetched.find("covtype", "", published.schema).read_bytes() == text
    assert table.where() == "cached"


# A small table --------------------------------------------------------------------------------------

TABLE = b"size,colour,age,label\n1.5,red,?,yes\n2,?,30,no\n-0.1,dark blue,3,yes\n"
COLUMNS = [
    ("Id", ["a", "b", "c", "d"]), ("Size", None), ("Colour", ["r", "dark blue"]), ("Age", ["3", "30"]),
    ("c", ["0", "1"]),
]  # fmt: skip
ROWS = [
    ["a", "9", "r", "3", "0"], ["b", "1.50", "r", "?", "1"], ["c", "2.0", "?", "30", "0"],
    ["d", "-1e-1", "dark blue", "3", "1"],
]  # fmt: skip
SMALL = Fetched(
    table=DataFile("small.table.csv", len(TABLE), hashlib.sha256(TABLE).hexdigest()), names=("size", "colour", "age"),
    openml=7, drop=("Id",), rows=(1, 4), values={"colour": {"r": "red"}, "label": {"0": "no", "1": "yes"}},
)  # fmt: skip
SCHEMA = {"colour": Nominal(missing="?")}
REMEDY = "set what there is to set"


def find(fetched=SMALL, **more):
    return fetched.find("small", REMEDY, SCHEMA, **more)


def test_a_table_is_written_in_one_spelling(openml, tmp_path):
    openml.serve(7, COLUMNS, ROWS, "c")
    path = find()
    assert path.read_bytes() == TABLE
    assert cached(tmp_path) == ["small.table.csv"]
    assert find() == path
    assert len(openml.asked) == 1


@pytest.mark.parametrize("numbers", [[1e16, 1e15, 0.1 + 0.2, -0.0], [5e-324, 1.7e308, -3.0, 123456789.125]])
def test_numbers_are_written_as_short_as_they_are_exact(numbers):
    found, output = Decoded(["x"], np.array(numbers)[:, None], {}, np.array(["a"] * len(numbers), object)), io.BytesIO()
    checksum = replace(SMALL, names=("x",), drop=(), rows=None).write(found, {}, output)
    assert checksum == hashlib.sha256(output.getvalue()).hexdigest()
    texts = [line.split(",")[0] for line in output.getvalue().decode().splitlines()[1:]]
    assert [float(text) for text in texts] == numbers
    assert not any(text.endswith(".0") for text in texts)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (COLUMNS, [*ROWS[:3], ["d", "-1e-1", "dark blue", "30", "1"]]), (COLUMNS, [ROWS[0], ROWS[2], ROWS[1], ROWS[3]]),
        (COLUMNS, ROWS[:3]), (COLUMNS, [[row[0], "?", *row[2:]] for row in ROWS]),
        ([*COLUMNS[:2], ("Colour", ["r", "light blue"]), *COLUMNS[3:]], [[*row[:2], "r", *row[3:]] for row in ROWS]),
    ],
)  # fmt: skip
def test_another_table_is_refused_and_not_kept(columns, rows, openml, tmp_path):
    openml.serve(7, columns, rows, "c")
    with pytest.raises(ValueError, match=rf"table of small from OpenML \(data set 7\) must have sha256 .*; {REMEDY}$"):
        find()
    assert cached(tmp_path) == []


def test_other_columns_are_refused(openml, tmp_path):
    openml.serve(7, COLUMNS[1:3] + COLUMNS[4:], [row[1:3] + row[4:] for row in ROWS], "c")
    with pytest.raises(ValueError, match=r"OpenML \(data set 7\) must have the 3 features of the table, got 2"):
        find()
    assert cached(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("Dataset with data_id 7 not found."), "7 not found"),
        (KeyError("data_set_description"), "data_set"),
        (urllib.error.HTTPError("https://x", 503, "busy", {}, None), "busy"),
        (urllib.error.URLError(ConnectionRefusedError(111, "refused")), "refused"),
    ],
    ids=["unknown", "no answer of OpenML", "a server in trouble", "no network"],
)  # fmt: skip
def test_what_cannot_be_fetched_is_told_in_a_line(error, reason, openml, tmp_path):
    openml.error = error
    with pytest.raises(FileNotFoundError) as caught:
        find()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("small is not on this machine and cannot be fetched from OpenML (data set 7): ")
    assert message.endswith(f"; try again with a network, or {REMEDY}")
    assert reason in message
    assert cached(tmp_path) == []


def test_scikit_learn_is_asked_for_the_table_as_it_is(monkeypatch):
    """By its number and label, numbers to the last bit, words by their codes."""
    datasets = pytest.importorskip("sklearn.datasets")
    iris, asked = datasets.load_iris(), []
    iris["categories"] = None

    def fetch_openml(**how):
        asked.append(how)
        return iris

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    found = files.from_openml(61, "class")
    assert asked == [{"data_id": 61, "target_column": "class", "as_frame": False, "parser": "liac-arff"}]
    assert (found.X.shape, found.words, len(found.y)) == ((150, 4), {}, 150)


def test_nothing_is_fetched_offline(openml, monkeypatch):
    openml.serve(7, COLUMNS, ROWS, "c")
    monkeypatch.setenv("STREAMS_OFFLINE", "1")
    with pytest.raises(
        FileNotFoundError, match=f"small is not on .*, and STREAMS_OFFLINE forbids to fetch it: {REMEDY}"
    ):
        find()
    assert openml.asked == []
    assert {info.where for info in streams.datasets()} == {"generated", "packaged", "absent"}


def test_the_command_line_says_all_in_a_line(openml):
    from venn.cli import main

    openml.error = OSError("no network")
    done = CliRunner().invoke(main, ["replay", "banknote"])
    assert done.exit_code == 1
    said, *rest = done.output.splitlines()
    assert said == "downloading banknote"
    assert len(rest) == 1
    assert "banknote is not on this machine and cannot be fetched from OpenML (data set 1462)" in rest[0]
    assert "set the environment variable STREAMS_DATA to a folder with banknote.csv" in rest[0]


def test_what_can_be_fetched_is_told(openml):
    def where():
        return {info.name: info.where for info in streams.datasets()}

    fetched = {published.name for published in PUBLISHED if published.fetched}
    assert {name for name, place in where().items() if place == "download"} == fetched
    assert {name for name, place in where().items() if place == "absent"} == {
        published.name for published in PUBLISHED
    } - fetched
