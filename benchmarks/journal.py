"""What does a journal of a million steps cost: memory, bytes a step, the slowest step, reading it all, going on?

    python benchmarks/journal.py [--steps 1000000] [--together 64] [--folder /var/tmp]

An inductive Venn predictor on a given linear scorer, the cheapest step and so the hardest case for a journal, with its
monitor, on Gaussian data of ten features. Each question is answered at once; as many steps as `--together` are one
transaction, whose end belongs to its last step. Examples are drawn outside the clock. Prints one JSON line.

What is there at the start is kept from the collector of garbage (`gc.freeze`), as `venn run` does: otherwise it passes
over all of it now and then. Single steps are timed by the clock, and in processor time of their
thread; everything else is processor time, which others on the machine change less:
`cpu_us_a_step` of asking and answering, journal included; `verify_us_an_event` of the whole check of `venn verify`;
`record_us_an_event` of `record()`, check included; `checksum_us_an_event` of the checksum of one event.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from array import array
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from workload import resident_mb

import venn

CLASSES = (0, 1)
FEATURES = 10
PIECE = 20_000  # examples drawn at a time


def draw(rng, n):
    X = rng.normal(size=(n, FEATURES))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int).tolist()


def opened(path):
    scorer = venn.FrozenScorer(LogisticRegression().fit(*draw(np.random.default_rng(0), 1000)))
    return venn.Online(venn.InductiveVenn(scorer), venn.Monitor(CLASSES), path)


def drive(online, X, y, together, took):
    """Ask and answer each example; record how long each step took, by the clock and in processor time."""

    def clock():
        return time.perf_counter(), time.thread_time()

    before = clock()
    for start in range(0, len(X), together):
        last = min(start + together, len(X)) - 1
        with online.transaction():
            for i in range(start, last + 1):
                online.ask(X[i])
                online.answer(online.asked, y[i])
                if i < last:
                    before, since = clock(), before
                    took.extend((before[0] - since[0], before[1] - since[1]))
        before, since = clock(), before
        took.extend((before[0] - since[0], before[1] - since[1]))


def quantiles(took, column):
    """Return the median, the 999th of a thousand and the largest of the times of steps, in milliseconds."""
    return [round(1e3 * float(one), 3) for one in np.quantile(np.array(took)[column::2], (0.5, 0.999, 1))]


def seconds(do):
    """Return seconds of processor time."""
    start = time.process_time()
    do()
    return time.process_time() - start


def checksum_us():
    """Return microseconds for the checksums of a question and an answer, divided by two."""
    from venn.online.chain import AnswerRow, QuestionRow

    question = QuestionRow(12345, 6789, 5555, b"\1" * 80, b"\2" * 50, 1.7e9)
    answer = AnswerRow(12346, 5556, 12345, 1, 1.7e9)
    n = 100_000

    def both():
        for _ in range(n):
            question.checksum("token")
            answer.checksum("token")

    return round(seconds(both) / n / 2 * 1e6, 2)


def measure(steps, together, path):
    rng = np.random.default_rng(1)
    with opened(path.with_name("warm.db")) as warm:
        drive(warm, *draw(rng, 500), together, array("d"))  # compiles
    online = opened(path)
    gc.collect()
    gc.freeze()
    took, memory = array("d"), {}  # plain numbers: a list of pairs would be most of the memory that is measured
    spent = 0.0
    while online.answered < steps:
        X, y = draw(rng, min(PIECE, steps - online.answered))
        spent += seconds(partial(drive, online, X, y, together, took))
        for mark in (0.1, 0.5, 1.0):
            if mark not in memory and online.answered >= mark * steps:
                memory[mark] = round(resident_mb(), 1)
    closing = seconds(online.close)
    size = path.stat().st_size
    events = 2 * steps
    found = {
        "benchmark": "journal", "steps": steps, "together": together, "cpu_us_a_step": round(1e6 * spent / steps, 1),
        "bytes_a_step": round(size / steps, 1), "memory_mb": list(memory.values()),
        "step_ms_p50_p999_slowest": quantiles(took, 0), "step_cpu_ms_p50_p999_slowest": quantiles(took, 1),
        "close_seconds": round(closing, 2), "checksum_us_an_event": checksum_us(),
    }  # fmt: skip
    made = []
    found["open_seconds"] = round(seconds(lambda: made.append(opened(path))), 2)
    assert made[0].answered == steps
    made[0].close()
    with venn.online.Watch(path) as watch:
        found["record_us_an_event"] = round(seconds(watch.record) / events * 1e6, 2)
    if hasattr(venn.online, "verify"):
        found["verify_us_an_event"] = round(seconds(lambda: venn.online.verify(path)) / events * 1e6, 2)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--together", type=int, default=64, help="steps of a transaction")
    parser.add_argument("--folder", type=Path, help="where the journal is written; by default a temporary one")
    options = parser.parse_args()
    with threadpool_limits(1), tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        print(json.dumps(measure(options.steps, options.together, Path(scratch) / "run.db")))


if __name__ == "__main__":
    main()
