"""What does watching cost? Microseconds an update of a Monitor, and a long soak.

    python benchmarks/monitor.py [--steps 10000000]

Prints one JSON line: microseconds an update (median over rounds, one thread, compilation excluded) of the default
Monitor for each kind of prediction, and for comparison of a user's own code: numpy means over the
last 1000 steps, every step. Then the soak: this many updates of the default Monitor, with its memory and state
before and after. The soak takes some minutes; --steps 0 leaves it out.
"""

import json
import math
import resource
import statistics
import sys
from collections import deque
from time import process_time

import numpy as np

import venn
from venn.prediction import ClassIntervals, Forecast, Multiprobability, PredictionSet

CLASSES = ("a", "b", "c", "d")
ROUNDS, UPDATES = 7, 5000


def timed(call, arguments) -> float:
    """Return the median over rounds of microseconds a call; the first round warms up."""
    rounds = []
    for _ in range(ROUNDS + 1):
        start = process_time()
        for argument in arguments:
            call(*argument)
        rounds.append((process_time() - start) / len(arguments) * 1e6)
    return round(statistics.median(rounds[1:]), 2)


def made(rng) -> dict[str, list]:
    """Return predictions of each kind whose realised rows are calibrated, and labels."""
    rows = rng.dirichlet(np.ones(4), size=UPDATES)
    truth = [int(rng.choice(4, p=row)) for row in rows]
    kinds = {
        "Multiprobability": lambda p: Multiprobability(np.tile(p, (4, 1)), CLASSES),
        "ClassIntervals": lambda p: ClassIntervals(np.column_stack([p, p]), CLASSES),
        "Forecast": lambda p: Forecast(p, CLASSES),
        "PredictionSet": lambda p: PredictionSet(rng.random(4), CLASSES),
    }
    return {kind: [(make(row), CLASSES[y]) for row, y in zip(rows, truth, strict=True)] for kind, make in kinds.items()}


def by_hand():
    """Return a user's own code without a monitor: windowed means of the hits and the probabilities."""
    hits, claims = deque(maxlen=1000), deque(maxlen=1000)

    def update(prediction, y):
        hits.append(prediction.label == y)
        claims.append(prediction.lower)
        return np.mean(hits) - np.mean(claims)

    return update


def main() -> None:
    steps = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else 10_000_000
    examples = made(np.random.default_rng(0))
    result = {
        "benchmark": "monitor",
        "us_an_update": {kind: timed(venn.Monitor(CLASSES).update, each) for kind, each in examples.items()},
        "us_by_hand": timed(by_hand(), examples["Multiprobability"][:1000]),
        "soak": soak(steps, examples["Multiprobability"]) if steps else None,
    }
    print(json.dumps(result))


def soak(steps: int, examples: list) -> dict:
    """Update a monitor this many times; return its memory and whether all its numbers are finite."""
    monitor = venn.Monitor(CLASSES)
    done = 0

    def run(until: int) -> int:
        nonlocal done
        while done < until:
            monitor.update(*examples[done % len(examples)])
            done += 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    start = process_time()
    early = run(steps // 100)
    late = run(steps)
    seconds = process_time() - start
    shown = json.dumps(monitor.snapshot())  # refuses nothing: infinities are looked for below
    finite = "NaN" not in shown and "Infinity" not in shown
    return {
        "updates": steps,
        "us_an_update": round(seconds / steps * 1e6, 2),
        "peak_mb_after_1_percent": early,
        "peak_mb_at_the_end": late,
        "state_finite": finite and math.isfinite(monitor.snapshot()["curves"]["log_loss"]),
        "alarms": monitor.count,
    }


if __name__ == "__main__":
    main()
