"""The file of a record: it comes back exactly, or says what is wrong."""

import math
import os
import pickle

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
            st.text(max_size=5), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
        ),
        min_size=1,
        max_size=5,
        unique_by=(lambda label: label, spelled),
    ),
    st.text(max_size=10),
)  # fmt: skip
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


def test_equal_records_make_equal_bytes(tmp_path):
    for name in ("a", "b"):
        recorded(random_run(20), data="toy").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("content", [b"", b"not a record", pickle.dumps([1, 2])])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "r.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"r\.npz is not a readable record"):
        Record.load(path)


def set_in(held, path, value):
    *way, last = path
    for key in way:
        held = held[key]
    held[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("record", "names"), ["venn"], r"zip\(\) argument 2 is longer"),
        (("record", "names"), ["venn", "venn"], "names must be different, at least one"),
        (("record", "clip"), math.nan, "clip must lie"),
        (("record", "before"), {"venn": -1}, "before, of venn, must be an integer >= 0, got -1"),
        (("record", "more"), 1, "unexpected keyword argument"),
        (("more",), 1, "its contents must be"),
        (("classes",), {"classes": ["no", "yes", None]}, "classes must be str"),
        (("classes",), {"classes": ["no"]}, r"truth must hold codes of the classes \('no',\)"),
        (("seconds",), "1", "seconds must be a finite number"),
        (("truth",), np.zeros(6, np.int64), "truth must be an array of int32"),
        (("truth",), np.full(6, 3, np.int32), "truth must hold codes"),
        (("predictors", 0, "kind"), None, "kind must be a kind of prediction, got None"),
        (("predictors", 0, "guaranteed"), 7, "guaranteed must be text"),
        (("predictors", 0, "predicted"), np.full(6, -1, np.int32), "predicted must hold codes"),
        (("predictors", 0, "numbers"), np.full((6, 9), 3.0), "numbers must hold codes"),
        (("predictors", 0, "rows"), np.zeros((6, 2)), "rows must be an array"),
    ],
)
def test_forged_files_are_refused(tmp_path, path, value, message):
    file = tmp_path / "r.npz"
    recorded(random_run(6)).save(file)
    held = venn.load(file)
    set_in(held, path, value)
    venn.save(file, held)
    with pytest.raises(ValueError, match=r"r\.npz is not a readable record: .*" + message):
        Record.load(file)


@pytest.mark.parametrize("path", [1, True, None])
def test_a_number_is_no_path(path):
    """Else the descriptor of that number would be read and closed."""
    with pytest.raises(TypeError, match=f"path must be a str or path, got {path}"):
        Record.load(path)
    os.fstat(1)


def test_files_that_are_no_records_are_refused(tmp_path):
    venn.save(tmp_path / "r.npz", venn.Monitor(("no", "yes")))
    with pytest.raises(ValueError, match=r"r\.npz is not a readable record: its contents must be"):
        Record.load(tmp_path / "r.npz")


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
