"""`encode`: a new raw row becomes the object that it would have been in the stream."""

import csv
import pickle

import numpy as np
import pytest

import streams
from streams import Nominal, Numeric, Ordinal, Skip

HEADER = "id,weight,colour,size,price,fruit"
ROWS = ["a,150,green,S,$5.00,apple", "b,,yellow,M,$7.50,lemon", "c,90,green,M,$1,lime", "d,95.5,-,S,$2,lemon"]
SCHEMA = {
    "id": Skip(), "weight": Numeric(fill="median"), "colour": Nominal(missing=""), "size": Ordinal(("S", "M")),
    "price": Numeric(unit="$"),
}  # fmt: skip


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "fruit.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def from_file(table, **options):
    return streams.from_csv(table, "fruit", schema=SCHEMA, missing=["-"], **options)


def raw_rows(table):
    with table.open() as file:
        return [{name: cell for name, cell in row.items() if name != "fruit"} for row in csv.DictReader(file)]


@pytest.mark.parametrize("scale", [True, False])
def test_a_row_of_the_file_is_encoded_as_the_stream_has_it(table, scale):
    stream = from_file(table, scale=scale)
    for one in (stream, stream.shuffle(1).take(2), pickle.loads(pickle.dumps(stream))):
        for row, x in zip(raw_rows(table), stream.X, strict=True):
            assert one.encode(row).tolist() == x.tolist()
            assert one.encode(list(row.values())).tolist() == x.tolist()
            del row["id"]  # it is skipped
            assert one.encode(row).tolist() == x.tolist()


def test_numbers_need_not_be_text(table):
    stream = from_file(table)
    row = {"weight": 150, "colour": "green", "size": "S", "price": 5.0}
    assert stream.encode(row).tolist() == stream.X[0].tolist()


def test_frames_and_rows_of_other_sources():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"w": [1.0, np.nan, 4.0], "kind": ["a", "b", "a"], "y": [0, 1, 1]})
    schema = {"w": Numeric(fill="median"), "kind": Nominal(("a", "b"))}
    X = frame.drop(columns="y")
    rows = X.to_dict("records")
    batches = {"w": Numeric(fill=2.5), "kind": Nominal(("a", "b"))}
    for stream in (
        streams.from_arrays(X, frame.y, schema=schema),
        streams.from_arrays(X, frame.y, schema=schema, scale=False),
        streams.from_river(list(zip(rows, frame.y.tolist(), strict=True)), schema=schema),
        streams.from_frames(frame, "y", classes=[0, 1], schema=batches, scaling=streams.Scaling([1, 0, 0], [2, 1, 1])),
        streams.from_arrays([[1.0, 5.0], [2.0, 6.0]], ["no", "yes"]),
    ):
        given = rows if len(stream.features) == 3 else [[1.0, 5.0], {"x0": 2, "x1": "6"}]
        assert [stream.encode(row).tolist() for row in given] == [x.tolist() for x, _ in stream]


@pytest.mark.parametrize(
    ("row", "error", "match"),
    [
        ({"weight": 1, "colour": "green", "size": "S"}, ValueError, "x must have a value for every feature.*'price'"),
        ({**dict.fromkeys(SCHEMA, "1"), "fruit": "a"}, ValueError, "features only, got one for 'fruit'"),
        ([1, 2], ValueError, "x must have 5 values, got 2"),
        ("a,1", TypeError, "x must be a mapping from column to value"),
        (7, TypeError, "x must be a mapping from column to value"),
        (["a", "1", "blue", "S", "1"], ValueError, "x, feature 'colour' must be one of.*'blue'"),
        (["a", "x", "green", "S", "1"], ValueError, "x, feature 'weight' must be a number, got 'x'"),
    ],
)
def test_what_a_row_must_be(table, row, error, match):
    with pytest.raises(error, match=match):
        from_file(table).encode(row)
