"""Data frames of every kind, whole and in batches."""

import datetime
import weakref
from itertools import pairwise

import numpy as np
import pytest
from conftest import refused

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
narwhals = pytest.importorskip("narwhals")
sparse = pytest.importorskip("scipy.sparse")

from pyarrow import feather, parquet  # noqa: E402

import streams  # noqa: E402
from streams import Nominal, Numeric, Ordinal, Scaling, Skip  # noqa: E402
from streams.frames import BLOCK, from_frames, source  # noqa: E402
from streams.sources import from_river  # noqa: E402

KINDS = {
    "pandas": pandas.DataFrame,
    "pandas of Arrow": lambda columns: pyarrow.table(columns).to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": polars.DataFrame,
    "Arrow": pyarrow.table,
    "narwhals": lambda columns: narwhals.from_native(polars.DataFrame(columns)),
}


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


def table(n, seed=0):
    """Columns of several types of numbers, with ties, and a label."""
    rng = np.random.default_rng(seed)
    return {
        "a": rng.normal(size=n), "b": rng.integers(-3, 3, n), "c": rng.integers(0, 200, n).astype(np.uint8),
        "d": rng.normal(size=n).astype(np.float32), "y": rng.choice(["no", "yes"], n).tolist(),
    }  # fmt: skip


def naive(columns, features, label):
    """Row by row, value by value."""
    return [([float(columns[f][i]) for f in features], columns[label][i]) for i in range(len(columns[label]))]


def taken(stream):
    return [(x.tolist(), y) for x, y in stream]


# In memory ------------------------------------------------------------------------------------------


def test_a_frame_is_read_by_its_values_not_its_column_names(make):
    columns = table(80)
    frame = make({name: columns[name] for name in "abcd"})
    labels = make({"y": columns["y"]})["y"]
    stream = streams.from_arrays(frame, labels)
    assert len(stream) == sum(1 for _ in stream) == 80
    assert stream.features == ("a", "b", "c", "d")
    assert stream.classes == ("no", "yes")
    assert taken(stream) == naive(columns, "abcd", "y")
    assert stream.X.dtype == np.float64
    assert stream.X.flags.c_contiguous


def test_labels_of_every_kind_are_python_objects(make):
    moment = datetime.date(2020, 1, 2)
    for labels in ([1, 2, 1], [True, False, True], [0.5, 1.5, 0.5], ["a", "b", "a"]):
        column = make({"y": labels})["y"]
        stream = streams.from_arrays([[1.0], [2.0], [3.0]], column)
        assert [y for _, y in stream] == labels
        assert {type(y) for _, y in stream} == {type(labels[0])}
    coded = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    assert [y for _, y in streams.from_arrays([[1.0], [2.0], [3.0]], coded)] == ["a", "b", "a"]
    assert [y for _, y in streams.from_arrays([[1.0]], polars.Series([moment]))] == [moment]
    with pytest.raises(ValueError, match="y must be 1-D, got a data frame: pass one column, as in y\\['y'\\]"):
        streams.from_arrays([[1.0]], make({"y": [1]}))


def test_a_missing_label_is_refused(make):
    with pytest.raises(ValueError, match=r"y, row 1 is the label and is missing, got (None|nan|<NA>)"):
        streams.from_arrays([[1.0], [2.0]], make({"y": ["a", None]})["y"])


BAD = {
    "text": (["x", "y"], "String: declare it in a schema as Nominal"),
    "booleans": ([True, False], "Boolean: cast it to float, where 0 and 1 are meant"),
    "dates": ([datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)], "Datetime: turn it into a number that"),
    "durations": ([datetime.timedelta(1), datetime.timedelta(2)], "Duration: turn it into a number that"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_number_is_refused_with_advice(make, kind):
    values, advice = BAD[kind]
    frame = make({"a": [1.0, 2.0], "b": values})
    with pytest.raises(TypeError, match=f"X, column 'b' must hold numbers, got {advice}"):
        streams.from_arrays(frame, [0, 1])
    with pytest.raises(TypeError, match=f"frames, column 'b' must hold numbers, got {advice}"):
        list(from_frames(frame, "a", classes=[1.0, 2.0]))


def test_other_types_are_refused_with_advice():
    for frame in (pandas.DataFrame({"a": pandas.Categorical([1, 2])}), polars.DataFrame({"a": ["u", "v"]})):
        if isinstance(frame, polars.DataFrame):
            frame = frame.cast(polars.Enum(["u", "v"]))
        with pytest.raises(TypeError, match=r"got (Categorical: cast it to a type of numbers|Enum: declare it in a s)"):
            streams.from_arrays(frame, [0, 1])
    for frame in (pandas.DataFrame({"a": [None, None]}), polars.DataFrame({"a": [None, None]}, {"a": polars.String})):
        with pytest.raises(TypeError, match="got String: it holds missing values only"):
            streams.from_arrays(frame, [0, 1])
    with pytest.raises(TypeError, match="got Int128: cast it to float"):
        streams.from_arrays(polars.DataFrame({"a": polars.Series([1, 2], dtype=polars.Int128)}), [0, 1])
    objects = pandas.DataFrame({"a": np.array([1, 2.5], dtype=object)})
    with pytest.raises(TypeError, match="column 'a' must hold numbers, got Object: cast it to a type of numbers"):
        streams.from_arrays(objects, [0, 1])
    for values, advice in [
        (pyarrow.nulls(2), "it holds missing values only: drop it"),
        (pyarrow.array(["u", "v"]).dictionary_encode(), "got Categorical: declare it in a schema as Nominal"),
        (pyarrow.array([1, 2], pyarrow.decimal128(5, 2)), "cast it to float, where rounding does no harm"),
        (pyarrow.array([[1], [2]]), "cast it to a type of numbers, or drop it"),
    ]:
        with pytest.raises(TypeError, match=advice):
            streams.from_arrays(pyarrow.table({"a": values}), [0, 1])
    for array in (np.array([[True], [False]]), np.array([[1.0], [True]], dtype=object), sparse.eye(2, dtype=bool)):
        told = r"X must hold numbers, got bool|X, row [01], column 'x0' must be a number, got True"
        with pytest.raises((TypeError, ValueError), match=told):
            streams.from_arrays(array, [0, 1])


@pytest.mark.parametrize("value", [None, np.nan, np.inf, -np.inf], ids=str)
def test_what_is_missing_or_infinite_is_refused_by_row_and_column(make, value):
    frame = make({"a": [1.0, 2.0, 3.0], "b": [0.5, 1.0, value], "y": [0, 1, 0]})
    found = r", row {}, column 'b' (is missing, got nan: drop the row, or declare|must be a finite number, got -?inf)"
    with pytest.raises(ValueError, match="X" + found.format(2)):
        streams.from_arrays(make({"a": [1.0, 2.0, 3.0], "b": [0.5, 1.0, value]}), [0, 1, 0])
    with pytest.raises(ValueError, match="frames" + found.format(5)):
        list(from_frames([make({"a": [1.0] * 3, "b": [2.0] * 3, "y": [0, 1, 0]}), frame], "y", classes=[0, 1]))


def test_a_schema_fills_and_encodes_a_whole_frame(make):
    frame = make({"a": [1.0, None, 5.0], "c": ["u", "v", "u"], "d": ["w", "w", "w"]})
    schema = {"a": Numeric("?", fill="median"), "c": Nominal(("u", "v")), "d": Skip()}
    stream = streams.from_arrays(frame, [0, 1, 0], schema=schema)
    assert stream.features == ("a", "c=u", "c=v")
    assert stream.X.tolist() == [[1.0, 1.0, 0.0], [3.0, 0.0, 1.0], [5.0, 1.0, 0.0]]
    named = {"A": Numeric("?", fill=0), "C": Skip(), "D": Skip()}
    assert streams.from_arrays(frame, [0, 1, 0], features=["A", "C", "D"], schema=named).X.ravel().tolist() == [1, 0, 5]
    found = streams.from_arrays(frame, [0, 1, 0], schema={**schema, "c": Nominal()})
    assert found.features == stream.features
    assert found.X.tolist() == stream.X.tolist()
    gap = make({"c": ["v", None, "u"]})
    assert streams.from_arrays(gap, [0, 1, 0], schema={"c": Nominal(missing="?")}).features == ("c=u", "c=v", "c=?")
    with pytest.raises(ValueError, match=r"column 'c' is missing, got .*declare it in a schema as Nominal"):
        streams.from_arrays(gap, [0, 1, 0], schema={"c": Nominal()})
    with pytest.raises(ValueError, match="X, column 'a' must be text, as its kind is Nominal"):
        streams.from_arrays(frame, [0, 1, 0], schema={**schema, "a": Nominal()})
    with pytest.raises(ValueError, match="schema must name features of"):
        streams.from_arrays(frame, [0, 1, 0], schema={**schema, "b": Nominal()})
    with pytest.raises(ValueError, match=r"column 'a' is missing, got nan: .* Numeric\(missing='', fill=NUMBER\)"):
        streams.from_arrays(make({"a": [1.0, None]}), [0, 1])


def test_all_columns_that_hold_no_numbers_are_named_at_once(make):
    frame = make({"a": [1.0, 2.0], "b": ["u", "v"], "c": [True, False]})
    told = r"^X, column 'b' must hold numbers, got String: declare .*\nX, column 'c' must hold numbers, got Boolean: "
    with pytest.raises(TypeError, match=told):
        streams.from_arrays(frame, [0, 1])


def test_frames_of_no_rows_or_columns_and_frames_of_none_known(make):
    with pytest.raises(ValueError, match=r"at least one example and one feature, got shape \(0, 1\)"):
        streams.from_arrays(make({"a": np.zeros(0)}), [])
    with pytest.raises(TypeError, match="must be a data frame in memory, got a LazyFrame: collect it"):
        streams.from_arrays(polars.LazyFrame({"a": [1.0]}), [0])

    class Frame:
        columns = ("a",)

    with pytest.raises(TypeError, match="X must be a data frame known to narwhals"):
        streams.from_arrays(Frame(), [0])
    named_alike = pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    for features in (None, ["u", "v"]):
        with pytest.raises(ValueError, match="features must be distinct, got 'a' twice"):
            streams.from_arrays(named_alike, [0], features=features)


# In batches -----------------------------------------------------------------------------------------


def sources(columns, folder):
    """Every way to give the same rows."""
    arrow = pyarrow.table(columns)
    parquet.write_table(arrow, folder / "rows.parquet", row_group_size=700)
    feather.write_feather(arrow, folder / "rows.feather")
    cut = [0, 5, 5, 1500, len(columns["y"])]
    parts = [{name: column[i:j] for name, column in columns.items()} for i, j in pairwise(cut)]
    yield "pandas", pandas.DataFrame(columns), True
    yield "polars", polars.DataFrame(columns), True
    yield "Arrow", arrow, True
    yield "narwhals", narwhals.from_native(arrow), True
    yield "lazy", polars.LazyFrame(columns), True
    yield "reader", arrow.to_reader(max_chunksize=900), False
    yield "record batches", arrow.to_batches(max_chunksize=900), True
    yield "frames", [polars.DataFrame(part, schema_overrides=polars.DataFrame(columns).schema) for part in parts], True
    yield "iterator", (pandas.DataFrame(part) for part in parts), False
    yield "parquet", folder / "rows.parquet", True
    yield "feather", str(folder / "rows.feather"), True


def test_every_source_gives_the_same_rows(tmp_path):
    columns = table(BLOCK + 900)
    wanted = naive(columns, "abcd", "y")
    for name, frames, again in sources(columns, tmp_path):
        stream = from_frames(frames, "y", classes=["no", "yes"])
        assert stream.features == ("a", "b", "c", "d"), name
        assert taken(stream) == wanted, name
        if again:
            assert taken(stream) == wanted, name
        else:
            with pytest.raises(RuntimeError, match="frames could be read only once and was"):
                next(iter(stream))


def test_blocks_are_whole_and_read_only(tmp_path):
    columns = table(2 * BLOCK + 9)
    stream = from_frames(pandas.DataFrame(columns), "y", classes=["no", "yes"])
    blocks = list(stream.blocks())
    assert [len(X) for X, _ in blocks] == [BLOCK, BLOCK, 9]
    assert [stream.classes[code] for _, codes in blocks for code in codes] == columns["y"]
    with pytest.raises(ValueError, match="read-only"):
        blocks[0][0][0, 0] = 1.0
    assert repr(stream) == "<FrameStream 'frames': 4 features, 2 classes>"


def test_declared_features_are_taken_by_name(make, tmp_path):
    columns = table(20)
    swapped = {name: columns[name] for name in ("y", "d", "b", "a", "c")}
    stream = from_frames([make(columns), make(swapped)], "y", classes=["no", "yes"], features=["d", "a"])
    assert taken(stream) == naive(columns, "da", "y") * 2
    without = from_frames([make(columns), make(swapped)], "y", classes=["no", "yes"])
    rows = iter(without)
    assert taken(next(rows) for _ in range(20)) == naive(columns, "abcd", "y")
    with pytest.raises(ValueError, match=r"frames, batch 1 must have the columns of the first one, .* got \['y', 'd'"):
        next(rows)


@pytest.mark.parametrize("declared", [None, ["a"]])
def test_a_column_that_is_lost_or_new_is_refused(make, declared):
    first = make({"a": [1.0], "b": [2.0], "y": [0]})
    for names in (("a", "y"), ("b", "y"), ("a", "b"), ("a", "b", "c", "y")):
        second = make({name: [0] for name in names})
        stream = iter(from_frames([first, second], "y", classes=[0], features=declared))
        next(stream)
        if declared and {"a", "y"} <= set(names):
            assert next(stream)[0].tolist() == [0.0]
        else:
            with pytest.raises(ValueError, match=r"batch 1 must have (the columns of the first one|a column '(a|y)')"):
                next(stream)


def test_a_column_that_changes_its_type_is_refused(make):
    frames = [make({"a": [1.0], "y": [0]}), make({"a": ["1.0"], "y": [0]})]
    with pytest.raises(TypeError, match="frames, batch 1, column 'a' must hold numbers, got String"):
        list(from_frames(frames, "y", classes=[0]))


def test_labels_are_of_the_classes(make):
    for label, said in (("maybe", "must be one of the classes .*, got 'maybe'"), (None, "is the label and is missing")):
        frame = make({"a": [1.0] * (BLOCK + 5), "y": ["no"] * (BLOCK + 4) + [label]})
        with pytest.raises(ValueError, match=f"row {BLOCK + 4}, column 'y' {said}"):
            list(from_frames(frame, "y", classes=["no", "yes"]))


def test_schemas_are_those_of_a_form(make):
    frame = make({"hue": ["red", "blue"], "size": ["big", "small"], "w": [None, 2.0], "id": ["k", "l"], "y": [0, 1]})
    schema = {
        "hue": Nominal(("blue", "red")), "size": Ordinal(("small", "big")), "w": Numeric(missing="", fill=-1.0),
        "id": streams.Skip(),
    }  # fmt: skip
    stream = from_frames(frame, "y", classes=[0, 1], schema=schema)
    assert stream.features == ("hue=blue", "hue=red", "size", "w")
    assert taken(stream) == [([0.0, 1.0, 1.0, -1.0], 0), ([1.0, 0.0, 0.0, 2.0], 1)]
    with pytest.raises(ValueError, match=r"row 1, column 'hue' must be one of the declared values .*, got 'blue'"):
        list(from_frames(frame, "y", classes=[0, 1], schema=schema | {"hue": Nominal(("red",))}))
    by_text = from_frames(frame, "id", classes=["k", "l"], features=["y"], schema={"y": Ordinal(("a",))})
    with pytest.raises(ValueError, match="row 0, column 'y' must be text, got 0"):
        list(by_text)


def test_a_scaling_given_beforehand_is_applied(make):
    frame = make({"a": [10.0, 14.0], "y": [0, 1]})
    assert taken(from_frames(frame, "y", classes=[0, 1], scaling=Scaling([10.0], [2.0]))) == [([0.0], 0), ([2.0], 1)]
    with pytest.raises(ValueError, match=r"row 1, column 'a' must stay finite when scaled, got 14.0"):
        list(from_frames(frame, "y", classes=[0, 1], scaling=Scaling([10.0], [1e-308])))
    with pytest.raises(ValueError, match="scaling must have 1 features, as the objects have, got 2"):
        from_frames(frame, "y", classes=[0, 1], scaling=Scaling([0.0, 0.0], [1.0, 1.0]))


one = pandas.DataFrame({"a": [1.0], "y": [0]})


def twice_named():
    return pandas.DataFrame([[1.0, 2.0, 0]], columns=["a", "a", "y"])


test_from_frames_refuses = refused(None, [
    (lambda: from_frames(one, "z", classes=[0]), ValueError, "label must name columns of the frames, ['a', 'y']"),
    (lambda: from_frames(one, "y", classes=[0], features=["b"]), ValueError, "features must name columns of the"),
    (lambda: from_frames(one, "y", classes=[0], features=["y"]), ValueError, "features must not hold the label"),
    (lambda: from_frames(one, "y", classes=[0], features=[]), ValueError, "features must name at least one"),
    (lambda: from_frames(one[["y"]], "y", classes=[0]), ValueError, "features must leave at least one column"),
    (lambda: from_frames(one, "y", classes="ab"), TypeError, "classes must be a sequence of labels"),
    (lambda: from_frames(one, "y", classes=[0], schema={"b": Nominal(("u",))}), ValueError, "schema must name"),
    (lambda: from_frames(one, "y", classes=[0], schema={"a": Nominal()}), ValueError, "values declared"),
    (lambda: from_frames([], "y", classes=[0]), ValueError, "frames must hold at least one frame, got none"),
    (lambda: from_frames({"a": [1]}, "y", classes=[0]), TypeError, "got a dict"),
    (lambda: from_frames(np.zeros((2, 2)), "y", classes=[0]), TypeError, "got a ndarray"),
    (lambda: from_frames([{"a": 1.0}], "y", classes=[0]), TypeError, "got a batch {'a': 1.0}"),
    (lambda: from_frames(polars.Series([1.0]), "y", classes=[0]), TypeError, "got a Series of one column"),
    (lambda: from_frames(pyarrow.chunked_array([[1.0]]), "y", classes=[0]), TypeError, "got a ChunkedArray of one"),
    (lambda: from_frames(twice_named(), "y", classes=[0]), ValueError, "columns must be distinct, got 'a' twice"),
    (lambda: list(from_frames([one, twice_named()], "y", classes=[0])), ValueError, "batch 1, columns must be"),
    (lambda: list(from_frames([one, 3], "y", classes=[0])), TypeError, "batch 1 must be a data frame known"),
    (lambda: from_frames("rows.csv", "y", classes=[0]), ValueError, "got rows.csv: from_csv reads CSV files"),
    (lambda: from_frames("no/rows.parquet", "y", classes=[0]), FileNotFoundError, "there is no file no/rows"),
], plain=True)  # fmt: skip


def test_a_file_is_not_held_in_memory_whole(tmp_path):
    n = 5 * BLOCK
    parquet.write_table(
        pyarrow.table({"x": np.arange(float(n)), "y": [0] * n}), tmp_path / "x.parquet", row_group_size=500
    )
    held = [len(batch) for batch in source(tmp_path / "x.parquet")[0](["x", "y"])]
    assert max(held) < BLOCK + 500  # groups of rows up to a block
    assert sum(held) == n


def chunked(n, chunk=1):
    """An Arrow table of many chunks, and its rows."""
    cells = np.arange(float(n))
    parts = [cells[i : i + chunk] for i in range(0, n, chunk)]
    words = [["u" if x % 3 else None for x in part] for part in parts]
    labels = [[int(x) % 2 for x in part] for part in parts]
    columns = {"a": pyarrow.chunked_array(parts), "w": words, "y": pyarrow.chunked_array(labels)}
    columns["w"] = pyarrow.chunked_array([pyarrow.array(part, pyarrow.string()) for part in words])
    return pyarrow.table(columns), [([x, float(x % 3 > 0), float(x % 3 == 0)], int(x) % 2) for x in cells]


def test_small_batches_of_one_schema_are_gathered(tmp_path):
    table, rows = chunked(BLOCK + 70)
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=64)
    schema = {"w": Nominal(("u",), missing="?")}
    for frames in (table, table.to_reader(), tmp_path / "rows.parquet"):
        stream = from_frames(frames, "y", classes=[0, 1], schema=schema)
        blocks = list(stream.blocks())
        assert len(blocks) <= 3
        X, codes = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        assert list(zip(X.tolist(), codes.tolist(), strict=True)) == rows


def test_frames_of_an_iterable_come_as_they_are():
    """A program may make the next only when it has the rows of this one."""
    drawn = []

    def batches():
        for i in range(3):
            drawn.append(i)
            yield pyarrow.record_batch({"a": [float(i)], "y": [0]})

    for i, (x, _) in enumerate(from_frames(batches(), "y", classes=[0])):
        assert x.tolist() == [i]
        assert drawn == list(range(i + 1))


class Opening:
    """Frames that say how often they are asked for, and whether the first is still held."""

    def __init__(self):
        self.opened = 0

    def __iter__(self):
        self.opened += 1
        for i in range(3):
            frame = pandas.DataFrame({"a": [float(i)], "y": [0]})
            self.first = weakref.ref(frame) if i == 0 else self.first
            yield frame
            del frame


def test_an_iterable_is_opened_once_a_loop_and_its_first_frame_is_let_go():
    for frames, again in ((opening := Opening(), True), (iter(opening), False)):
        stream = from_frames(frames, "y", classes=[0])
        before = opening.opened
        rows = iter(stream)
        assert [next(rows)[0].tolist() for _ in range(3)] == [[0.0], [1.0], [2.0]]
        assert opening.opened == before
        assert opening.first() is None
        if again:
            assert len(taken(stream)) == 3
            assert opening.opened == before + 1


def test_a_reader_that_was_drained_elsewhere_is_no_empty_stream():
    reader = pyarrow.table({"a": [1.0], "y": [0]}).to_reader()
    stream = from_frames(reader, "y", classes=[0])
    reader.read_all()
    with pytest.raises(ValueError, match="frames must hold at least one batch, got none: was it read elsewhere"):
        list(stream)


def test_missing_values_are_read_alike_in_frames_and_dicts(make):
    schema = {"w": Nominal(("u",), missing="?"), "n": Numeric(missing="", fill=-1.0)}
    wanted = [([1.0, 0.0, 2.0], 0), ([0.0, 1.0, -1.0], 1)]
    frame = make({"w": ["u", None], "n": [2.0, None], "y": [0, 1]})
    assert taken(from_frames(frame, "y", classes=[0, 1], schema=schema)) == wanted
    for nothing in (None, np.nan, pandas.NA, pandas.NaT, np.float32("nan")):
        rows = [({"w": "u", "n": 2.0}, 0), ({"w": nothing, "n": nothing}, 1)]
        assert taken(from_river(rows, schema=schema)) == wanted
        objects = pandas.DataFrame({"w": np.array(["u", nothing], object), "n": [2.0, np.nan], "y": [0, 1]})
        assert taken(from_frames(objects, "y", classes=[0, 1], schema=schema)) == wanted
    median = {"n": Numeric(missing="", fill="median")}
    rows = [({"n": value}, 0) for value in (1.0, np.nan, 5.0, None, 3.0)]
    assert from_river(rows, schema=median).X[:, 0].tolist() == [1.0, 3.0, 5.0, 3.0, 3.0]


def test_missing_text_without_a_rule_is_refused_with_one():
    frame = polars.DataFrame({"w": ["u", None], "y": [0, 1]})
    for kind, advice in (
        (Nominal(("u",)), r"drop the row, or declare it in a schema as Nominal\(values, missing='\?'\)"),
        (Ordinal(("u",)), "drop"),
    ):
        with pytest.raises(ValueError, match=f"frames, row 1, column 'w' is missing, got null: {advice}"):
            list(from_frames(frame, "y", classes=[0, 1], schema={"w": kind}))
        with pytest.raises(ValueError, match="row 1: x, feature 'w' is missing, got null: drop the row"):
            from_river([({"w": "u"}, 0), ({"w": None}, 1)], schema={"w": kind})


def test_names_that_are_no_text_are_taken_as_text():
    frame = pandas.DataFrame([[1.0, 2.0, 0], [3.0, 4.0, 1]])
    for stream in (from_frames([frame, frame], "2", classes=[0, 1]), streams.from_arrays(frame[[0, 1]], frame[2])):
        assert stream.features == ("0", "1")
        assert taken(stream)[:2] == [([1.0, 2.0], 0), ([3.0, 4.0], 1)]


def test_the_place_of_a_bad_value_is_that_in_its_frame():
    frame = pandas.DataFrame({"id": ["k"], "y": [0], "a": [np.nan]})
    with pytest.raises(ValueError, match="row 0, column 'a' is missing"):
        list(from_frames(frame, "y", classes=[0], schema={"id": streams.Skip()}))


def test_a_truth_value_is_no_number_in_labels():
    objects = pandas.DataFrame({"a": [1.0, 2.0], "y": np.array([1, True], object)})
    for labels, row in (([True, False], 0), (objects["y"], 1), (np.array([1, np.True_], object), 1)):
        with pytest.raises(ValueError, match=rf"row {row}, column 'y' must be one of the classes \(0, 1\), got .*True"):
            list(from_frames(objects.assign(y=labels), "y", classes=[0, 1]))
    with pytest.raises(ValueError, match=r"row 0, .* got 1"):
        list(from_frames(objects, "y", classes=[False, True]))
    truths = objects.assign(y=[True, False])
    assert [y for _, y in from_frames(truths, "y", classes=[False, True])] == [True, False]
