"""How many rows a second does `venn run` take from a CSV file, in blocks and one by one?

    python benchmarks/run_blocks.py

Made rows of 10 columns and two classes, each with its label, in a CSV file; a linear classifier fitted to 2000 other
rows, with a journal, and predictions into a file: as `venn run --source csv:FILE --end` does it, in transactions of 512
messages. In turn with `Online.take`, which lets events that arrived together go in blocks, and with each event alone,
as before there were blocks; with everything watched, as by default, and with predictions alone (`--no-drift`). Seconds
of processor time of the loop (other programs may run), the fastest of some runs, compilation excluded. What both leave
in their journals but for times, and the predictions, must be the same. Beside it the floor: reading the messages, and
writing as many rows of the journal with their checksums, alone. Prints one JSON line; exits with 1 if anything differs.
"""

import csv
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import joblib
from blocks import FITTED, rows
from sklearn.linear_model import LogisticRegression
from workload import command_options

import streams
from venn import cli
from venn.cli.service import Service
from venn.online.chain import AnswerRow, QuestionRow
from venn.online.stretch import Stretch

TABLES = (
    ("questions", "event, id, step, x, predictions"), ("answers", "step, event, question, truth"),
    ("alarms", "predictor, number, step, alarm"), ("series", "step, figures"),
)  # fmt: skip
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


def left(folder):
    """What a run leaves in its journal but for times, and its predictions."""
    with closing(sqlite3.connect(folder / "run.db")) as db:
        found = [list(db.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2")) for table, columns in TABLES]
    return found, (folder / "said.jsonl").read_bytes()


def floor_of(folder, source):
    """Seconds of the parts that nothing can avoid, alone: messages, and rows of a journal with checksums."""
    start = time.process_time()
    with streams.CSVRows(source, "y", id="id", follow=False) as reader:
        count = sum(message is not None for message in reader.messages())
    read = time.process_time() - start
    with closing(sqlite3.connect(folder / "run.db")) as db:
        asked = [QuestionRow(*row) for row in db.execute("SELECT event, id, step, x, predictions, time FROM questions")]
        came = [AnswerRow(*row) for row in db.execute("SELECT event, step, question, truth, time FROM answers")]
        start = time.process_time()
        db.execute("CREATE TABLE a (e INTEGER PRIMARY KEY, i ANY UNIQUE, s, x, p, t, c)")
        db.execute("CREATE TABLE b (n INTEGER PRIMARY KEY, e, q UNIQUE, y, t, c)")
        db.executemany("INSERT INTO a VALUES (?, ?, ?, ?, ?, ?, ?)", [(*one, one.checksum("token")) for one in asked])
        rows_of = [(one.number, one.event, *one[2:], one.checksum("token")) for one in came]
        db.executemany("INSERT INTO b VALUES (?, ?, ?, ?, ?, ?)", rows_of)
        db.commit()
    return {"messages": read / count, "journal": (time.process_time() - start) / count}


def main():
    options = command_options(__doc__, rows=10_000, runs=3)
    found, same = {}, True
    suits = Stretch.suits
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "rows.csv")
        warm = Path(scratch, "warm.csv")
        write(source, options.rows)
        write(warm, 700)
        joblib.dump(LogisticRegression().fit(*rows(FITTED, 1)), source.with_name("model.joblib"))
        for name, given in WATCHED.items():
            seconds, results = {"blocks": [], "one by one": []}, {}
            for run in range(-1, options.runs):  # the first one compiles
                for way, each in seconds.items():
                    Stretch.suits = staticmethod(suits if way == "blocks" else lambda run: False)
                    folder = Path(scratch, f"{name} {way} {run}")
                    folder.mkdir()
                    seconds_of(folder, warm if run < 0 else source, given, [] if run < 0 else each)
                    results[way] = left(folder)
                same &= results["blocks"] == results["one by one"]
            rates = {way: round(options.rows / min(each)) for way, each in seconds.items()}
            found[name] = rates | {"times": round(rates["blocks"] / rates["one by one"], 2)}
        floor = floor_of(folder, source)
    found["floor us a row"] = {part: round(1e6 * one, 1) for part, one in floor.items()}
    print(json.dumps({"venn run": found, "same": same}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
