"""How many rows a second come out of a data frame, by blocks and one by one?

    python benchmarks/rows.py

200 000 rows of 10 numbers and a label, yielded as (x, y) in a loop that only counts them: by `streams.from_frames`,
from frames of pandas and polars, an Arrow table (also one in chunks of a row each) and a Parquet file; by
`from_arrays`, the frame read whole; by the obvious ways, `iterrows`, and one `to_numpy` for each row (on 5 000 rows, as
they are slow). Also rows as dicts, by `streams.from_river`, against the dicts alone, and sparse rows of 20 000
features. Prints one JSON line of microseconds of the processor a row, and ratios to pandas by blocks.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import scipy.sparse
from pyarrow import parquet
from threadpoolctl import threadpool_limits

import streams
from streams.frames import from_frames
from streams.sources import from_river

ROWS, FEW, FEATURES, CLASSES = 200_000, 5_000, 10, ["no", "yes"]


def microseconds(rows, make, repeats=3):
    """Return the processor time of a row, of all threads, in the fastest of several loops over all rows."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        count = sum(1 for _ in make())
        best = min(best, time.process_time() - start)
        assert count == rows
    return 1e6 * best / rows


def by_iterrows(frame):
    for _, row in frame.iterrows():
        yield row.to_numpy()[:-1].astype(np.float64), row["y"]


def by_to_numpy(frame):
    numbers, labels = frame.drop(columns="y"), frame["y"]
    for i in range(len(frame)):
        yield numbers.iloc[i].to_numpy(), labels.iloc[i]


def main():
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=ROWS) for j in range(FEATURES)}
    columns["y"] = rng.choice(CLASSES, ROWS)
    frame = pandas.DataFrame(columns)
    few = frame[:FEW]
    names = [name for name in columns if name != "y"]
    dicts = few[names].to_dict("records")
    words = scipy.sparse.random_array((FEW, 20_000), density=0.005, rng=rng, format="csr")
    arrow = pyarrow.Table.from_pandas(frame)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        parquet.write_table(arrow, path)
        blocks = {
            "pandas": frame,
            "polars": polars.DataFrame(columns),
            "arrow": arrow,
            "parquet": path,
        }
        figures = {
            name: microseconds(ROWS, lambda source=source: from_frames(source, "y", classes=CLASSES))
            for name, source in blocks.items()
        }
        cut = pyarrow.concat_tables([arrow.slice(i, 1) for i in range(FEW)])
        figures["arrow_of_chunks_of_a_row"] = microseconds(FEW, lambda: from_frames(cut, "y", classes=CLASSES))
    figures["from_arrays"] = microseconds(ROWS, lambda: streams.from_arrays(frame[names], frame["y"]))
    figures["iterrows"] = microseconds(FEW, lambda: by_iterrows(few), 1)
    figures["to_numpy_each"] = microseconds(FEW, lambda: by_to_numpy(few), 1)
    figures["from_river"] = microseconds(FEW, lambda: from_river(zip(dicts, few["y"], strict=True)))
    figures["dicts_alone"] = microseconds(FEW, lambda: zip(dicts, few["y"], strict=True))
    sparse = streams.from_arrays(words, np.arange(FEW) % 2)
    figures["sparse_rows"] = microseconds(FEW, lambda: sparse)
    figures["sparse_slices"] = microseconds(FEW, lambda: (words[i : i + 1] for i in range(FEW)))
    ratios = {name: round(figures[name] / figures["pandas"], 1) for name in ("iterrows", "to_numpy_each")}
    shown = {name: round(figure, 3) for name, figure in figures.items()}
    print(json.dumps({"benchmark": "rows", "microseconds_a_row": shown, "ratio_to_pandas_by_blocks": ratios}))


if __name__ == "__main__":
    main()
