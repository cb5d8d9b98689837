"""Streams: what a stream is, its scaling, and making one from arrays; every error with its place."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from conftest import refused

import streams
from streams import Scaling

# The stream -----------------------------------------------------------------------------------------


@pytest.fixture
def toy():
    return streams.from_arrays(np.arange(20.0).reshape(10, 2), list("abcabcabca"), name="toy")


def test_stream_is_re_iterable_and_agrees_with_its_arrays(toy):
    first, second = list(toy), list(toy)
    assert len(first) == len(toy) == 10
    for (x, y), (again, same), row, code in zip(first, second, toy.X, toy.y, strict=True):
        assert np.array_equal(x, row)
        assert np.array_equal(x, again)
        assert y == same == toy.classes[code]
    assert x.dtype == np.float64
    assert x.shape == (2,)
    assert toy.y.dtype == np.int64
    assert toy.X.flags.c_contiguous


def test_rows_and_arrays_are_read_only(toy):
    x, _ = next(iter(toy))
    for array in (x, toy.X, toy.y, toy.shuffle(1).X, toy.take(3).X, pickle.loads(pickle.dumps(toy)).X):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_shuffle_is_the_stated_permutation(toy):
    order = np.random.default_rng(3).permutation(10)
    shuffled = toy.shuffle(3)
    assert np.array_equal(shuffled.X, toy.X[order])
    assert np.array_equal(shuffled.y, toy.y[order])
    assert np.array_equal(streams.from_arrays(toy.X, [y for _, y in toy], shuffle=3).X, shuffled.X)
    assert np.array_equal(toy.X, np.arange(20.0).reshape(10, 2))


def test_drop_leaves_what_take_took(toy):
    rest = toy.drop(4)
    assert [(x.tolist(), y) for x, y in (*toy.take(4), *rest)] == [(x.tolist(), y) for x, y in toy]
    assert rest.classes == toy.classes
    assert ".drop(4)" in repr(rest)
    assert len(toy.drop(0)) == len(toy)
    for bad in (len(toy), -1, 1.5, True):
        with pytest.raises((ValueError, TypeError), match="n must"):
            toy.drop(bad)


def test_repr_says_what_and_how_much(toy):
    assert repr(toy) == "<Stream 'toy': 10 examples, 2 features, 3 classes>"
    assert repr(toy.take(1).shuffle(4)) == "<Stream 'toy'.take(1).shuffle(4): 1 example, 2 features, 3 classes>"


def test_pickle_keeps_everything(toy):
    again = pickle.loads(pickle.dumps(toy.shuffle(2)))
    assert repr(again) == repr(toy.shuffle(2))
    assert np.array_equal(again.X, toy.shuffle(2).X)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda s: s.take(0), ValueError, "n must be an integer >= 1, got 0"),
        (lambda s: s.take(11), ValueError, "n must be at most the 10 examples of the stream, got 11"),
        (lambda s: s.take(2.0), TypeError, "n must be an integer >= 1, got 2.0"),
        (lambda s: s.take(True), TypeError, "n must be an integer >= 1, got True"),
        (lambda s: s.shuffle(-1), ValueError, "seed must be an integer >= 0, got -1"),
        (lambda s: s.shuffle(None), TypeError, "seed must be an integer >= 0, got None"),
        (lambda s: s.shuffle("0"), TypeError, "seed must be an integer >= 0, got '0'"),
    ],
)
def test_stream_refuses(toy, call, kind, message):
    with pytest.raises(kind) as caught:
        call(toy)
    assert str(caught.value) == message


# Scaling --------------------------------------------------------------------------------------------


def test_whole_scaling_standardises_and_zeroes_constants():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(5, 3, 200), np.full(200, 0.1), rng.normal(0, 1e-200, 200), rng.normal(0, 1e200, 200)]
    )
    stream = streams.from_arrays(X, [0] * 200, scale=True)
    assert np.allclose(stream.X.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(stream.X.std(axis=0), [1, 0, 1, 1])
    assert not stream.X[:, 1].any()
    assert np.array_equal(stream.scaling(X), stream.X)


@pytest.mark.parametrize("seed", range(5))
def test_whole_scaling_is_symmetric_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(97, 3)) * 10.0 ** rng.integers(-8, 8, size=(97, 3))
    assert Scaling.whole(X) == Scaling.whole(X[rng.permutation(97)])


def test_blocks_of_columns_do_not_matter():
    X = np.random.default_rng(1).normal(size=(3, 40))
    whole = Scaling.whole(np.repeat(X, 50_000, axis=0))
    assert np.allclose(whole.mean, X.mean(axis=0))
    assert np.allclose(whole.deviation, X.std(axis=0))


test_scaling_refuses = refused(None, [
    (lambda: Scaling([0.0], [0.0]), "deviation must be positive, got 0.0"),
    (lambda: Scaling([0.0], [np.nan]), r"deviation must be a 1-D array of finite numbers, got \[nan\]"),
    (lambda: Scaling([[0.0]], [1.0]), "mean must be a 1-D array of finite numbers"),
    (lambda: Scaling([0.0, 1.0], [1.0]), "mean and deviation must have equal length, got 2 and 1"),
    (lambda: Scaling([0.0], [1.0])(np.ones((2, 3))), "X must have 1 features, as the scaling has, got 3"),
    (lambda: streams.from_arrays([[1.0, 2.0]], [0], scale=Scaling([0.0], [1.0])), "X must have 1 features"),
    (lambda: streams.from_arrays([[1.7e308], [1.7e308], [-1e308]], [0, 1, 1], features=["load"], scale=True),
     "feature 'load' cannot be standardised: its values are too far apart"),
    (lambda: streams.from_arrays([[1e300]], [0], features=["load"], scale=Scaling([0.0], [1e-300])),
     "scale must keep values finite, but feature 'load' overflows"),
], kind=ValueError)  # fmt: skip


# Arrays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([2, 1, 2], (1, 2)), ([-1, 1, 1], (-1, 1)), ([5, 5, 5], (5,)),
        (np.array([1.5, 0.5, 1.5], dtype=np.float32), (0.5, 1.5)), (np.array(["b", "a", "b"]), ("a", "b")),
        (["10", "9", "9"], ("9", "10")), ([True, False, True], (False, True)),
        ([np.int64(3), np.str_("x"), 3], ("x", 3)), ([("a", 1), ("a", 0), ("a", 1)], (("a", 0), ("a", 1))),
    ],
)  # fmt: skip
def test_labels_are_any_python_objects(labels, classes):
    declared = classes if len({type(k) for k in classes}) > 1 else None
    stream = streams.from_arrays(np.zeros((3, 1)), labels, classes=declared)
    assert stream.classes == classes
    assert [y for _, y in stream] == list(labels)
    assert not any(isinstance(y, np.generic) for _, y in stream)


def test_declared_classes_keep_their_order_and_may_be_wider():
    stream = streams.from_arrays(np.zeros((2, 1)), ["yes", "no"], classes=np.array(["yes", "no", "maybe"]))
    assert stream.classes == ("yes", "no", "maybe")
    assert stream.y.tolist() == [0, 1]
    assert type(stream.classes[0]) is str


def test_the_stream_does_not_share_memory_with_the_caller():
    X = np.zeros((2, 2))
    stream = streams.from_arrays(X, [0, 1])
    X[0, 0] = 9.0
    assert stream.X[0, 0] == 0.0


def test_names_and_modules_are_imported_when_they_are_first_asked_for():
    steps = (
        "import sys, streams", "assert 'numpy' not in sys.modules", "streams.synthetic.gaussians", "streams.load",
        "assert type(streams) is type(sys)",  # no name is that of its module: a function that reads it can be sent
        "assert not hasattr(streams, 'gausians')", "assert not hasattr(streams, 'no.module')",
        "assert not hasattr(streams, 'tables.CsvTable')",
    )  # fmt: skip
    subprocess.run([sys.executable, "-c", "\n".join(steps)], check=True)


def test_a_name_that_streams_lacks_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="module 'streams' has no attribute 'gausians'") as caught:
        streams.gausians  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("gausians", streams)


def test_a_schema_fills_gaps_of_an_array_and_leaves_columns_out():
    X = [[1.0, np.nan, 7.0], [3.0, 4.0, np.nan], [5.0, 8.0, 7.0]]
    schema = {"b": streams.Numeric("?", fill="median"), "c": streams.Skip()}
    stream = streams.from_arrays(X, [0, 1, 0], features=["a", "b", "c"], schema=schema)
    assert stream.features == ("a", "b")
    assert stream.X.tolist() == [[1.0, 6.0], [3.0, 4.0], [5.0, 8.0]]
    filled = streams.from_arrays(X, [0, 1, 0], schema={f"x{j}": streams.Numeric("?", fill=-1) for j in (1, 2)})
    assert filled.X.tolist() == [[1.0, -1.0, 7.0], [3.0, 4.0, -1.0], [5.0, 8.0, 7.0]]
    text = streams.from_arrays(
        [["mon", 1], ["sun", None]], [0, 1], schema={"x0": streams.Nominal(), "x1": streams.Numeric(fill="median")}
    )
    assert text.X.tolist() == [[1, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    ("X", "schema", "message"),
    [
        ([[1.0, np.nan]], None, "drop the row, or declare it in a schema as Numeric(missing='', fill=NUMBER)"),
        ([[1.0, np.nan]], {"x0": streams.Numeric("?", fill=0)}, "X, row 0, column 'x1' is missing, got nan"),
        ([[1.0, np.inf]], {"x1": streams.Numeric("?", fill=0)},
         "X, row 0, column 'x1' must be a finite number, got inf"),
        ([[np.nan]], {"x0": streams.Numeric("?", fill="median")}, "X, column 'x0' has no value to take a median of"),
        ([[1.0]], {"x1": streams.Skip()}, "schema must name features of ('x0',), got 'x1'"),
        ([[1.0]], {"x0": streams.Skip()}, "schema must leave a feature, but skips every one"),
        ([[1.0]], {"x0": streams.Nominal()}, "X, column 'x0' must be text, as its kind is Nominal"),
        ([[1.0]], [], "schema must be a mapping from name to kind, got []"),
        (scipy.sparse.eye_array(1), {}, "schema must be left out for a sparse X"),
    ],
)  # fmt: skip
def test_gaps_of_an_array_and_wrong_schemas_are_refused(X, schema, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        streams.from_arrays(X, [0], schema=schema)


two = [[1.0, 2.0], [3.0, 4.0]]


test_from_arrays_refuses = refused(None, [
    (lambda: streams.from_arrays([[1.0, np.nan]], [0]), ValueError, "X, row 0, column 'x1' is missing, got nan"),
    (
        lambda: streams.from_arrays([1.0, 2.0], [0, 1]),
        ValueError,
        "X must be 2-D (examples, features), got shape (2,): one feature is X.reshape(-1, 1), "
        "one example is X.reshape(1, -1)",
    ),
    (lambda: streams.from_arrays(np.zeros((2, 2, 2)), [0, 1]), ValueError, "got shape (2, 2, 2) from ndarray"),
    (lambda: streams.from_arrays(object(), [0]), ValueError, "got shape () from object"),
    (lambda: streams.from_arrays([[1.0], [1.0, 2.0]], [0, 1]), ValueError, "its rows differ in length"),
    (lambda: streams.from_arrays(np.zeros((0, 3)), []), ValueError,
     "at least one example and one feature, got shape (0, 3)"),
    (lambda: streams.from_arrays(np.zeros((3, 0)), [0] * 3), ValueError, "got shape (3, 0)"),
    (lambda: streams.from_arrays([[1, "two"]], [0]), ValueError,
     "X, row 0, column 'x1' must be a number, got 'two': declare it in a schema as Nominal(values)"),
    (lambda: streams.from_arrays([[1j]], [0]), ValueError, "X, row 0, column 'x0' must be a number, got 1j"),
    (lambda: streams.from_arrays([[None]], [0]), ValueError,
     "X, row 0, column 'x0' is missing, got null: drop the row"),
    (lambda: streams.from_arrays(np.ma.masked_equal(two, 4.0), [0, 1]), ValueError, "X must have no masked values"),
    (lambda: streams.from_arrays(two, [0]), ValueError, "y must hold one label for each of the 2 rows of X, got 1"),
    (lambda: streams.from_arrays(two, np.zeros((2, 1))), ValueError,
     "y must be 1-D, one label for each example, got shape (2, 1)"),
    (lambda: streams.from_arrays(two, [[0], [1]]), TypeError,
     "y must be 1-D and hold hashable labels, got [0] at row 0"),
    (lambda: streams.from_arrays(two, ["a", None]), ValueError, "y, row 1 is the label and is missing, got None"),
    (lambda: streams.from_arrays(two, [0.0, np.nan]), ValueError, "y, row 1 is the label and is missing, got nan"),
    (lambda: streams.from_arrays(two, [0, "a"]), TypeError,
     "classes must be declared, since these labels have no order: 'a', 0"),
    (lambda: streams.from_arrays(two, ["a", "z"], classes=["a", "b"]), ValueError,
     "y, row 1 must be one of the classes ('a', 'b'), got 'z'"),
    (lambda: streams.from_arrays(two, ["a", "b"], classes="ab"), TypeError,
     "classes must be a sequence of labels, in class order, got 'ab'"),
    (lambda: streams.from_arrays(two, ["a", "b"], classes={"a", "b"}), TypeError,
     "classes must be a sequence of labels"),
    (lambda: streams.from_arrays(two, [0, 1], classes=[0, 1, 1]), ValueError,
     "classes must be distinct and at least one, got (0, 1, 1)"),
    (lambda: streams.from_arrays(two, [0, 1], classes=[]), ValueError,
     "classes must be distinct and at least one, got ()"),
    (lambda: streams.from_arrays(two, [0, 1], classes=[[0], [1]]), TypeError,
     "classes must be hashable labels, got [0]"),
    (lambda: streams.from_arrays(two, [0, 1], features=["a"]), ValueError,
     "features must name the 2 columns of X, got 1 names"),
    (lambda: streams.from_arrays(two, [0, 1], features=["a", "a"]), ValueError,
     "features must be distinct, got 'a' twice"),
    (lambda: streams.from_arrays(two, [0, 1], features=[1, 2]), TypeError, "features must be str, got 1"),
    (lambda: streams.from_arrays(two, [1, True]), ValueError,
     "got True: it is a truth value, and the class 1 is a number"),
    (lambda: streams.from_arrays(two, [0, True], classes=[0, 1]), ValueError,
     "y, row 1 must be one of the classes (0, 1), got True"),
    (lambda: streams.from_arrays(two, {"a", "b"}), TypeError, "y must be a 1-D sequence of labels, got {"),
    (lambda: streams.from_arrays(two, {"a": 1, "b": 2}.keys()), TypeError, "got dict_keys(['a', 'b'])"),
    (lambda: streams.from_arrays(two, {"a": 1, "b": 2}.values()), TypeError, "got dict_values([1, 2])"),
    (lambda: streams.from_arrays({1.0, 2.0}, [0, 1]), ValueError, "got shape () from set"),
    (lambda: streams.from_arrays([[True, 2], [1, 3]], [0, 1]), ValueError,
     "X, row 0, column 'x0' must be a number, got True"),
    (lambda: streams.from_arrays([[0, 2], (1, np.bool_(False))], [0, 1]), ValueError,
     "X, row 1, column 'x1' must be a number, got False"),
    (lambda: streams.from_arrays([np.ones(2), np.ones(2) > 0], [0, 1]), ValueError,
     "X, row 1, column 'x0' must be a number, got True"),
    (lambda: streams.from_arrays([[1], [10**400]], [0, 1]), ValueError,
     "X, row 1, column 'x0' must be a finite number, got "),
    (lambda: streams.from_arrays([[1], [-(10**400)]], [0, 1]), ValueError,
     "X, row 1, column 'x0' must be a finite number, got "),
    (lambda: streams.from_arrays(two, [0, 1], shuffle=-2), ValueError, "shuffle must be an integer >= 0, got -2"),
], plain=True)  # fmt: skip


def test_labels_that_are_rather_numbers_are_refused_and_may_be_declared():
    X, y = np.zeros((200, 1)), np.arange(200) / 7
    found = "y must hold classes, got 200 distinct labels in 200 rows; if each is a class, declare classes"
    with pytest.raises(ValueError, match=f"{found}; if they are numbers to predict, classes='numbers'"):
        streams.from_arrays(X, y)
    with pytest.raises(ValueError, match=f"{found}$"):
        streams.from_arrays(X, [f"row {i}" for i in range(200)])
    assert len(streams.from_arrays(X, y, classes=y.tolist()).classes) == 200
    assert len(streams.from_arrays(X[:30], y[:30]).classes) == 30


def test_a_list_of_mappings_is_told_of_frames():
    with pytest.raises(TypeError, match=r"got mappings: give pandas\.DataFrame\(X\)"):
        streams.from_arrays([{"a": 1.0}, {"a": 2.0}], ["no", "yes"])
