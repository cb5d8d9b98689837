"""
Can a data frame go through the loop without being read wrong, or slowly?
=========================================================================

The same rows as a frame of pandas, of polars, an Arrow table, a Parquet file read in batches, and dicts: one answer.
And the error messages for columns that are not numbers::

    python examples/frames.py
"""

import tempfile
from pathlib import Path

import pandas
import polars
import pyarrow
from pyarrow import parquet

import streams
import venn

car = streams.load("car", shuffle=0).take(200)
frame = pandas.DataFrame(car.X, columns=car.features).assign(label=[y for _, y in car])
names = list(car.features)


def log_loss(stream):
    """Return the log loss of a fresh predictor on the stream."""
    machine = venn.LeastSquaresSVM(venn.RBF(0.1), C=10, classes=car.classes)
    return venn.replay(stream, venn.TransductiveVenn(machine), progress=False)["TransductiveVenn"].log_loss[-1]


arrow = pyarrow.Table.from_pandas(frame)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "car.parquet"
    parquet.write_table(arrow, path, row_group_size=64)
    for name, stream in {
        "pandas, whole": streams.from_arrays(frame[names], frame["label"]),
        "pandas, by blocks": streams.from_frames(frame, "label", classes=car.classes),
        "polars, lazy": streams.from_frames(polars.LazyFrame(frame), "label", classes=car.classes),
        "Arrow batches": streams.from_frames(arrow.to_batches(max_chunksize=50), "label", classes=car.classes),
        "Parquet file": streams.from_frames(path, "label", classes=car.classes),
        "dicts": streams.from_river(zip(frame[names].to_dict("records"), frame["label"], strict=True)),
    }.items():
        print(f"{name:18} log loss {log_loss(stream):.6f}")

print("\nValues that are not numbers are refused, with advice:")
for column in (["red", "blue"], [True, False], pandas.to_datetime(["2024-01-01", "2024-01-02"]), [1.0, None]):
    try:
        streams.from_arrays(pandas.DataFrame({"width": [0.5, 1.5], "other": column}), ["no", "yes"])
    except (TypeError, ValueError) as error:
        print(f"- {error}")
try:
    venn.replay(frame, venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.1), C=10, classes=car.classes)))
except TypeError as error:
    print(f"and a frame in the place of a stream:\n- {error}")
