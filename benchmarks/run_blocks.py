"""How many rows a second does `venn run` take from a CSV file, in blocks and one by one?

    python benchmarks/run_blocks.py

Made rows of 10 columns and two classes, each with its label, in a CSV file; a linear classifier fitted to 2000 other
rows, with a journal, and predictions into a file: as `venn run --source csv:FILE --end` does it, in transactions of 512
messages. In turn with `Online.take`, which lets events that arrived together go in blocks, and with each event alone,
as before there were blocks; with everything watched, as by default, and with predictions alone (`--no-drift`). Seconds
of processor time of the loop (other programs may run), the fastest of some runs, compilation excluded. Prints one JSON
line. That both leave the same is tested.
"""

import csv
import tempfile
import time
from pathlib import Path

import joblib
from blocks import FITTED, rows
from sklearn.linear_model import LogisticRegression
from workload import command, command_options

from venn import cli
from venn.cli.service import Service
from venn.online.stretch import Stretch

WATCHED = {"all watched": (), "predictions alone": ("--no-drift",)}


def write(path, n):
    X, y = rows(n, 2, n // 2)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"x{k}" for k in range(X.shape[1])), "y"])
        for i, (x, label) in enumerate(zip(X.tolist(), y, strict=True)):
            writer.writerow([f"r{i}", *map(repr, x), label])


def seconds_of(folder, source, options, seconds):
    """Let `venn run` go through a file; add the processor time of its loop."""
    loop = Service.run

    def timed(self, ending):
        start = time.process_time()
        loop(self, ending)
        seconds.append(time.process_time() - start)

    Service.run = timed
    try:
        cli.main([
            "run", "--source", f"csv:{source}", "--id", "id", "--label", "y", "--end", "--quiet", "--no-progress",
            "--scorer", str(source.with_name("model.joblib")), "--scorer-runs-code",
            "--journal", str(folder / "run.db"), "--out", str(folder / "said.jsonl"), *options,
        ], standalone_mode=False)  # fmt: skip
    finally:
        Service.run = loop


@command(threads=None)
def main():
    options = command_options(__doc__, rows=10_000, runs=3)
    found, suits = {}, Stretch.suits
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "rows.csv")
        warm = Path(scratch, "warm.csv")
        write(source, options.rows)
        write(warm, 700)
        joblib.dump(LogisticRegression().fit(*rows(FITTED, 1)), source.with_name("model.joblib"))
        for name, given in WATCHED.items():
            seconds = {"blocks": [], "one by one": []}
            for run in range(-1, options.runs):  # the first one compiles
                for way, each in seconds.items():
                    Stretch.suits = staticmethod(suits if way == "blocks" else lambda run: False)
                    folder = Path(scratch, f"{name} {way} {run}")
                    folder.mkdir()
                    seconds_of(folder, warm if run < 0 else source, given, [] if run < 0 else each)
            rates = {way: round(options.rows / min(each)) for way, each in seconds.items()}
            found[name] = rates | {"times": round(rates["blocks"] / rates["one by one"], 2)}
    return {"venn run": found}
