"""Named data sets: their rows and classes, and the way of their files: folder, cache, download."""

import csv
import gzip
import hashlib
import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import streams
from streams import Ordinal
from streams.files import DataFile, _verified, cache_folder
from streams.loaded import CAR, CAR_CLASSES, PUBLISHED, car_rows
from streams.tables import read_csv

DATA = os.environ.get("STREAMS_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="STREAMS_DATA names no folder with the published files")


# Named sets -----------------------------------------------------------------------------------------


def car_bytes():
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([(*CAR, "label"), *car_rows()])
    return text.getvalue().encode()


def test_car_has_the_checksum_of_the_published_file():
    published = "831154499329ed5f8c13d66ccca749d803f11a0f538565aa058aef9111742588"
    assert hashlib.sha256(car_bytes()).hexdigest() == published


@needs_data
def test_car_equals_the_published_file():
    assert car_bytes() == (Path(DATA) / "car_evaluation.csv").read_bytes()


def test_car_is_the_ordinal_coding_standardised(tmp_path):
    path = tmp_path / "car.csv"
    path.write_bytes(car_bytes())
    schema = {column: Ordinal(values) for column, values in CAR.items()}
    for scale in (False, True):
        read = streams.from_csv(path, "label", schema=schema, classes=CAR_CLASSES, scale=scale)
        stream = streams.load("car", scale=scale)
        assert np.array_equal(stream.X, read.X)
        assert np.array_equal(stream.y, read.y)
        assert (stream.features, stream.classes) == (read.features, read.classes)
    assert np.allclose(stream.X.mean(axis=0), 0)
    assert np.allclose(stream.X.std(axis=0), 1)


def test_shuffled_car_is_the_same_rows_in_the_stated_order():
    stream, order = streams.load("car"), np.random.default_rng(7).permutation(1728)
    assert np.array_equal(streams.load("car", shuffle=7).X, stream.X[order])


def test_packaged_sets():
    pytest.importorskip("sklearn")
    digits, cancer = streams.load("digits"), streams.load("breast_cancer")
    assert (digits.X.shape, digits.classes) == ((1797, 64), tuple(range(10)))
    assert (cancer.X.shape, cancer.classes) == ((569, 30), ("malignant", "benign"))
    assert np.bincount(cancer.y).tolist() == [212, 357]
    for stream in (digits, cancer):
        _, y = next(iter(stream))
        assert type(y) in (int, str)
        assert not any(isinstance(name, np.generic) for name in stream.features)


COUNTS = {
    "wine_red": ({"3": 10, "4": 53, "5": 681, "6": 638, "7": 199, "8": 18}, 11), "pima": ({"0": 500, "1": 268}, 8),
    "optdigits": (dict(zip("0123456789", (554, 571, 557, 572, 568, 558, 558, 566, 554, 562), strict=True)), 64),
    "ionosphere": ({"b": 126, "g": 225}, 34), "liver": ({"1": 145, "2": 200}, 6),
    "mushroom": ({"e": 4208, "p": 3916}, 117), "promoters": ({"+": 53, "-": 53}, 57 * 4),
    "wdbc": ({"B": 357, "M": 212}, 30), "german": ({"1": 700, "2": 300}, 61),
    "adult": ({"<=50K": 24720, ">50K": 7841}, 6 + 102), "heart": ({"absent": 150, "present": 120}, 10 + 4 + 3 + 3),
    "divorce": ({"0": 86, "1": 84}, 54), "cervical": ({"0": 803, "1": 55}, 32), "colon": ({"n": 22, "t": 40}, 2000),
    "leukemia": ({"ALL": 47, "AML": 25}, 7129), "srbct": ({"BL": 11, "EWS": 29, "NB": 18, "RMS": 25}, 2308),
    "banknote": ({"0": 762, "1": 610}, 4), "elec2": ({"DOWN": 26075, "UP": 19237}, 8),
    "covtype": ({"1": 211840, "2": 283301, "3": 35754, "4": 2747, "5": 9493, "6": 17367, "7": 20510}, 54),
}  # fmt: skip


def test_every_published_set_is_tested():
    assert set(COUNTS) == {published.name for published in PUBLISHED}


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
def test_published_info(published):
    counts, _ = COUNTS[published.name]
    assert published.known.rows == sum(counts.values())
    assert published.classes == tuple(counts)


LARGE = "covtype"  # to read all of it takes ten seconds


@needs_data
@pytest.mark.parametrize("name", [name for name in COUNTS if name != LARGE])
def test_published_set(name):
    counts, features = COUNTS[name]
    stream = streams.load(name)
    assert stream.classes == tuple(counts)
    assert np.bincount(stream.y).tolist() == list(counts.values())
    assert stream.X.shape == (sum(counts.values()), features) == (len(stream), len(stream.features))
    assert stream.X.flags.c_contiguous
    deviation = stream.X.std(axis=0)
    assert np.all(np.isclose(deviation, 1) | (deviation == 0))
    known = {info.name: info for info in streams.datasets()}[name]
    assert (known.rows, known.classes, known.where) == (len(stream), len(counts), "local")
    if name == "ionosphere":
        assert deviation[1] == 0
    if name == "mushroom":
        assert "stalk-root=?" in stream.features
    if name == "cervical":
        assert not {"Hinselmann", "Schiller", "Citology"} & set(stream.features)


@needs_data
def test_a_large_published_set_by_all_its_labels_and_its_first_rows(tmp_path):
    counts, features = COUNTS[LARGE]
    published = next(published for published in PUBLISHED if published.name == LARGE)
    with gzip.open(published.file.at_hand(), "rt") as file:
        lines = file.readlines()
    assert Counter(line.rpartition(",")[2].strip() for line in lines[1:]) == counts
    (tmp_path / "first.csv").write_text("".join(lines[:5001]))
    table = read_csv(tmp_path / "first.csv", "label", published.schema, published.classes, ",")
    assert table.X.shape == (5000, features) == (5000, len(table.features))
    assert [published.classes[code] for code in table.y] == [line.split(",")[-1].strip() for line in lines[1:5001]]


@needs_data
def test_first_rows_are_those_of_the_file():
    wine = streams.load("wine_red", scale=False)
    assert wine.X[0].tolist() == [7.4, 0.7, 0, 1.9, 0.076, 11, 34, 0.9978, 3.51, 0.56, 9.4]
    elec = streams.load("elec2", scale=False)
    assert elec.X[1].tolist() == [0, 2, 0.021277, 0.051699, 0.415055, 0.003467, 0.422915, 0.414912]


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"name must be one of car, .*elec2, got 'wine'; did you mean 'wine_red'\?"):
        streams.load("wine")
    with pytest.raises(ValueError, match=r"got 'wine\.csv': a file of your own is read by from_csv"):
        streams.load("wine.csv")


def test_import_needs_numpy_only():
    code = (
        "import sys, streams; streams.load('car');"
        "print(sorted({'sklearn', 'scipy', 'pandas', 'numba', 'venn', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# Finding, checking, downloading ---------------------------------------------------------------------

CONTENT = b"a,label\n1,0\n2,1\n" * 9000
FILE = DataFile("tiny set.csv", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """An empty cache and no variable of ours; returns the cache folder."""
    monkeypatch.delenv("STREAMS_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vennstream"


def test_without_a_file_the_error_says_what_to_do(bare):
    with pytest.raises(FileNotFoundError) as caught:
        streams.load("colon")
    message = str(caught.value)
    assert message.startswith(
        "colon_alon.csv is not on this machine: set the environment variable STREAMS_DATA to a folder "
        "with colon_alon.csv. Origin: Colon tumour microarray; "
    )
    assert "sha256 1c9ca02f1948a0fc5969519886477c7bb22a312078ace5d4753d8a1d29c05aa2" in message


def test_the_local_folder_comes_first_and_is_checked(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMS_DATA", str(tmp_path))
    local = tmp_path / FILE.name
    local.write_bytes(CONTENT)
    assert FILE.where() == "local"
    assert FILE.at_hand() == local
    local.write_bytes(CONTENT + b"3,0\n")
    found = hashlib.sha256(CONTENT + b"3,0\n").hexdigest()
    with pytest.raises(ValueError, match=f"tiny set.csv must have sha256 {FILE.sha256}, got {found}: .*replace it"):
        FILE.at_hand()


def test_a_folder_that_is_none_is_refused(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMS_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"STREAMS_DATA must be a folder, got '.*absent'"):
        FILE.at_hand()


def test_a_damaged_cache_is_refused(bare):
    bare.mkdir(parents=True)
    (bare / FILE.name).write_bytes(b"other")
    with pytest.raises(ValueError, match="delete it, so that it is fetched anew"):
        FILE.at_hand()


def test_a_file_is_checked_once_while_it_stays_as_it_is(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMS_DATA", str(tmp_path))
    (tmp_path / FILE.name).write_bytes(CONTENT)
    FILE.at_hand()
    known = dict(_verified)
    FILE.at_hand()
    assert _verified == known
    assert [digest for (path, _, _), digest in known.items() if path.endswith(FILE.name)][-1] == FILE.sha256


@pytest.mark.skipif(os.name == "nt", reason="the folder of other systems")
def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "vennstream"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "vennstream"


def test_datasets_lists_every_set(bare):
    infos = streams.datasets()
    assert len(infos) == 24
    assert {info.where for info in infos} == {"generated", "packaged", "absent"}
    for info in infos:
        assert info.origin
        assert info.licence
        assert info.notes
