"""How long does the page take over a journal of a million steps?

    python benchmarks/page.py [--steps 1000000] [--journal FILE]

Writes the journal in SQL, with points of the curves as the loop spaces them, then reads it and makes the page's
document. Prints one JSON line, in milliseconds of processor time and in bytes.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import click
import numpy as np

from venn.monitors.monitor import Monitor
from venn.online.chain import encode
from venn.online.journal import Journal
from venn.online.restart import spacing
from venn.online.watch import Watch
from venn.prediction import Forecast, Multiprobability, PredictionSet
from venn.show.page.feed import Feed, Point
from venn.show.page.page import document

CLASSES = ("no", "yes", "perhaps")
NAMES = ("venn", "leave_one_out", "conformal", "platt")


def predictions(rng):
    p = 0.5 + 0.5 * rng.random()
    row = np.array([p, (1 - p) / 2, (1 - p) / 2])
    venn = Multiprobability(np.array([row, 0.95 * row + 0.05 / 3, 0.9 * row + 0.1 / 3]), CLASSES)
    made = (venn, venn, PredictionSet(rng.random(3), CLASSES), Forecast(row, CLASSES))
    return dict(zip(NAMES, made, strict=True)), CLASSES[int(rng.choice(3, p=row))]


def write(path, n, rng):
    """Write a journal of n answers; return the number of points of its curves."""
    monitors = {name: Monitor(CLASSES) for name in NAMES}
    for _ in range(2000):
        made, y = predictions(rng)
        for name, monitor in monitors.items():
            monitor.update(made[name], y)
    seen = {name: monitor.snapshot() for name, monitor in monitors.items()}
    evidence = {
        name: {f"{one['detector']}: {one['name']}": one.get("log10") for one in shown["evidence"]}
        for name, shown in seen.items()
    }
    words = dict.fromkeys(NAMES, "made")
    start = time.time() - n / 1000
    content = [encode(predictions(rng)[0]) for _ in range(50)]
    journal = Journal(path)
    journal.open({"classes": CLASSES, "names": NAMES, "alone": False, "predictors": words, "monitors": words,
                  "start": 0, "created": start})  # fmt: skip
    points = 0
    with journal:
        db = journal.connection
        db.executemany(
            "INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, 0)",  # who looks on reads no checksums
            ((2 * i + 1, i + 1, start + i / 1000, i, b"\0" * 32, content[i % 50]) for i in range(n)),
        )
        db.executemany(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, 0)",
            ((i + 1, 2 * i + 2, 2 * i + 1, start + i / 1000, i % 3) for i in range(n)),
        )
        for step in (step for step in range(1, n + 1) if step % spacing(step) == 0):
            for name in NAMES:
                seen[name]["curves"]["accuracy"] = 0.75 + 0.2 * rng.random() / (1 + step / 1000)
                for key, value in evidence[name].items():
                    evidence[name][key] = None if value is None else value + 0.05 * rng.normal()
            figures = {
                name: {"curves": seen[name]["curves"], "window": seen[name]["window"], "evidence": evidence[name]}
                for name in NAMES
            }
            journal.draw(step, start + step / 1000, figures)
            points += 1
        for name in NAMES:
            last = seen[name] | {"step": n}
            journal.show(name, n, time.time(), {"told": last, "monitor": last})
    journal.close()
    return points


def milliseconds(do, times=1):
    start = time.process_time()
    for _ in range(times):
        do()
    return round(1000 * (time.process_time() - start) / times, 1)


@click.command()
@click.option("--steps", default=1_000_000)
@click.option("--journal", type=click.Path(path_type=Path), help="Where to leave it.  [default: nowhere]")
def main(steps, journal):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.db") if journal is None else journal
        points = write(path, steps, np.random.default_rng(0))
        feed = Feed(lambda: Watch(path), path)
        found = {"steps": steps, "points": points, "MiB": path.stat().st_size >> 20}
        found["first look"] = milliseconds(feed.look)
        run = feed.run
        found["in a figure"] = len(run.points)
        made = {}
        found["page"] = milliseconds(lambda: made.update(document(feed)))
        found["bytes"] = len(json.dumps(made))

        def look():
            feed._next = 0.0
            feed.look()

        found["look"] = milliseconds(look, 20)
        feed._next = float("inf")  # what comes now is made up
        took = []
        for _ in range(20):
            run.points.append(Point(run.points[-1].step + 1, run.points[-1].figures))
            run.version += 1
            run._standings.clear()
            took.append(milliseconds(lambda: made.update(document(feed, made["of"], made["seen"]))))
        found["update"] = float(np.median(took))
        found["bytes of an update"] = len(json.dumps(made))
        feed.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
