"""The file of a record: it comes back exactly, or says what is wrong."""

from __future__ import annotations

import io
import json
import math
import pickle
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_record import assert_same, random_run, recorded

import venn
from venn.online.record import Record
from venn.parameters import spelled
from venn.prediction import Forecast

# ------------------------------------------------------------------------------ file


@pytest.mark.parametrize("n", [0, 1, 255, 256, 300, 1000])
def test_round_trip_is_exact(tmp_path, n):
    record = recorded(random_run(n), data="toy", shuffle=4, parameters={"venn": "Venn()", "point": "Point()"})
    record.seconds = 1.25
    record.save(tmp_path / "new" / "record")
    assert_same(Record.load(tmp_path / "new" / "record"), record)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["record"]  # no temporary file, no suffix


@pytest.mark.parametrize("n", [0, 3, 300])
def test_a_loaded_record_goes_on(tmp_path, n):
    steps = random_run(700)
    recorded(steps[:n]).save(tmp_path / "r.npz")
    record = Record.load(tmp_path / "r.npz")
    for predictions, y in steps[n:]:
        record.update(predictions, y)
    assert_same(record, recorded(steps))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=5),
            st.integers(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
        unique_by=(lambda label: label, spelled),
    ),
    st.text(max_size=10),
)
def test_labels_and_names_survive(tmp_path_factory, classes, name):
    classes = tuple(classes)
    path = tmp_path_factory.mktemp("labels") / "r.npz"
    record = Record(classes, [name], data=name)
    for y in classes:
        record.update({name: Forecast(np.full(len(classes), 1 / len(classes)), classes)}, y)
    try:
        record.save(path)
    except UnicodeEncodeError:
        pytest.fail("a name could not be written")
    assert_same(Record.load(path), record)


def test_numpy_labels_come_back_as_python_values(tmp_path):
    classes = tuple(np.array([3, 4]))
    record = Record(classes, ["p"])
    record.update({"p": Forecast(np.array([0.5, 0.5]), classes)}, 3)
    record.save(tmp_path / "r.npz")
    assert Record.load(tmp_path / "r.npz").classes == (3, 4)


@pytest.mark.parametrize("classes", [(None, 1), (("a", 1), "b"), (b"a", b"b")])
def test_labels_that_json_cannot_hold_are_refused(tmp_path, classes):
    with pytest.raises(TypeError, match="classes must be str, int, float or bool to be saved"):
        Record(classes, ["p"]).save(tmp_path / "r.npz")
    assert not list(tmp_path.iterdir())


def test_infinite_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match="classes must be finite labels"):
        Record((math.inf, 1.0), ["p"]).save(tmp_path / "r.npz")


def test_numpy_reads_the_file_without_pickles_and_equal_records_make_equal_bytes(tmp_path):
    for name in ("a", "b"):
        recorded(random_run(20), data="toy").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with np.load(tmp_path / "a", allow_pickle=False) as members:
        assert sorted(members) == ["header", "predictor_0", "predictor_1", "row_0", "row_1", "truth"]
        assert json.loads(members["header"].tobytes())["data"] == "toy"
        assert members["predictor_0"]["lower"].shape == (20,)


def test_save_replaces_whole_files_only(tmp_path, monkeypatch):
    path = tmp_path / "r.npz"
    record = recorded(random_run(5))
    record.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        recorded(random_run(50)).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["r.npz"]


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        Record.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("content", [b"", b"not a record", pickle.dumps([1, 2])])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "r.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"r\.npz is not a readable record"):
        Record.load(path)


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "r.npz"
    recorded(random_run(20)).save(path)
    content = path.read_bytes()
    for size in range(0, len(content), 37):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"r\.npz is not a readable record"):
            Record.load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_flipped_bit_is_caught_or_harmless(tmp_path):
    """Bits outside the contents (dates, attributes) may flip; no other record may come back."""
    path = tmp_path / "r.npz"
    record = recorded(random_run(5), data="toy")
    record.save(path)
    content = path.read_bytes()
    caught = 0
    for position in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        try:
            loaded = Record.load(path)
        except ValueError:
            caught += 1
        else:
            assert_same(loaded, record)
    assert caught > len(content) / 3 / 2


def forged(path, *, header=(), members=(), remove=(), compress=False):
    """Write a record with some header fields or members replaced; checksums of the zip are right."""
    record = recorded(random_run(6))
    record.save(path)
    with np.load(path, allow_pickle=False) as old:
        arrays = {name: old[name] for name in old}
    fields = json.loads(arrays["header"].tobytes()) | dict(header)
    arrays = {name: array for name, array in (arrays | dict(members)).items() if name not in remove}
    contents = {}
    for name, array in arrays.items():
        content = io.BytesIO()
        if isinstance(array, bytes):
            content.write(array)
        else:
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=True)
        contents[name] = content.getvalue()
    if "header" in contents and "header" not in dict(members):
        if "crc32" not in dict(header):
            fields["crc32"] = {name: zlib.crc32(contents[name]) for name in contents if name != "header"}
        content = io.BytesIO()
        np.lib.format.write_array(content, np.frombuffer(json.dumps(fields).encode(), np.uint8), version=(1, 0))
        contents["header"] = content.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as file:
        for name, content in contents.items():
            file.writestr(f"{name}.npy", content)


class Bomb:
    """Shows that it was unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickled object was opened",))


def npy(shape, body=b"", dtype="<i4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + body


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"header": {"version": 1}}, "version 1, this program reads 3"),
        ({"header": {"format": "other"}}, "header does not say"),
        ({"header": {"steps": 10**15}}, "6 rows where the header says"),
        ({"header": {"steps": -6}}, "6 rows where the header says"),
        ({"header": {"steps": "6"}}, "'6' as steps"),
        ({"header": {"steps": True}}, "True as steps"),
        ({"header": {"names": ["venn"]}}, "not those its header names"),
        ({"header": {"names": ["venn", 3]}}, "3 where text belongs"),
        ({"header": {"names": ["venn", "venn"]}}, "names must be different, at least one"),
        ({"header": {"parameters": {"venn": 3}}}, "3 where text belongs"),
        ({"header": {"classes": ["no", "yes", None]}}, "classes must be str"),
        ({"header": {"classes": ["no"]}}, "18 rows where the header says 6"),
        ({"header": {"kinds": ["Multiprobability", 7]}}, "7 where a kind of prediction belongs"),
        ({"header": {"guaranteed": ["everything", None]}}, "'everything' where a guarantee belongs"),
        ({"header": {"kinds": ["Forecast", None]}}, "None where a kind of prediction belongs"),
        ({"header": {"crc32": {}}}, "not those its header names"),
        ({"header": {"crc32": {"truth": 1, "predictor_0": 2, "predictor_1": 3, "row_0": 4, "row_1": 5}}}, "checksum"),
        ({"header": {"clip": math.nan}}, "clip must lie"),
        ({"header": {"shuffle": 1.5}}, "1.5 as shuffle"),
        ({"header": {"before": 3}}, "3 as before"),
        ({"header": {"before": {"venn": -1}}}, "before, of venn, must be an integer >= 0, got -1"),
        ({"header": {"before": {"other": 1}}}, "before must have names of predictors, venn, point, got 'other'"),
        ({"members": {"header": np.frombuffer(b"[1]", np.uint8)}}, "no JSON object"),
        ({"members": {"header": np.frombuffer(b"[" * 100_000, np.uint8)}}, "recursion"),
        ({"members": {"header": np.array([Bomb()], dtype=object)}}, "dtype object"),
        ({"members": {"truth": np.array([Bomb()] * 6, dtype=object)}}, "dtype object"),
        ({"members": {"truth": np.zeros(6, np.int64)}}, "dtype int64"),
        ({"members": {"truth": np.zeros((6, 1), np.int32)}}, "shape"),
        ({"members": {"truth": npy((10**15,), b"\0" * 24)}}, "over 24 bytes"),
        ({"members": {"truth": npy((-1,), b"\0" * 24)}}, "over 24 bytes"),
        ({"members": {"truth": b"\x93NUMPY\x03\x00" + bytes(100)}}, "another npy version"),
        ({"members": {"more": np.zeros(3)}}, "not those its header names"),
        ({"remove": ["truth"]}, "not those its header names"),
        ({"remove": ["header"]}, "not those of an archive"),
        ({"compress": True}, "compressed"),
    ],
)
def test_forged_files_are_refused(tmp_path, changes, message):
    path = tmp_path / "r.npz"
    forged(path, **changes)
    if message is None:
        assert len(Record.load(path)) == 6
        return
    with pytest.raises(ValueError, match=r"r\.npz is not a readable record: .*" + message):
        Record.load(path)


def test_forged_labels_are_refused(tmp_path):
    path = tmp_path / "r.npz"
    record = recorded(random_run(6))
    record.save(path)
    with np.load(path) as members:
        rows = members["predictor_0"]
    for field, value in (("predicted", 3), ("realised_class", -1)):
        changed = rows.copy()
        changed[field][0] = value
        forged(path, members={"predictor_0": changed})
        with pytest.raises(ValueError, match="labels outside"):
            Record.load(path)


@pytest.mark.parametrize("bad", [None, "model", [1.0], np.zeros((1, 2))], ids=["none", "text", "list", "array"])
def test_predictions_that_are_no_mapping_are_refused(bad):
    record = venn.Record(("a", "b"), ["model"])
    with pytest.raises(TypeError, match="predictions must be a mapping of names to predictions, got"):
        record.update(bad, "a")
    with pytest.raises(ValueError, match="y must be one of the classes"):
        record.update({"model": venn.Forecast([0.5, 0.5], ("a", "b"))}, ["a"])
    assert len(record) == 0
    with pytest.raises(TypeError, match="clip must be a number in"):
        venn.Record(("a", "b"), ["model"], clip=bad)
