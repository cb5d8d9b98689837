"""What does watching cost? Microseconds an update of a whole Monitor and of each part, and a long soak.

    python benchmarks/monitor.py [--steps 10000000]

Prints one JSON line: microseconds an update (median over rounds, one thread, compilation excluded) of the default
Monitor for each kind of prediction, of its parts alone, and for comparison of a user's own code: numpy means over the
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
from venn.labels import Classes
from venn.monitors import RealisedRow
from venn.monitors.curves import outcome
from venn.monitors.kinds import Scorer
from venn.monitors.sums import CalibrationBins
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
    rng = np.random.default_rng(0)
    examples = made(rng)
    p = [(float(value),) for value in rng.random(UPDATES)]
    hits = [(bool(value),) for value in rng.random(UPDATES) < 0.8]
    whole = {kind: timed(venn.Monitor(CLASSES).update, arguments) for kind, arguments in examples.items()}
    numbers, row, scorer = np.empty(9), np.empty(4), Scorer("it", Classes(CLASSES))
    scorer.score(examples["Multiprobability"][0][0], 2, numbers, row)
    step = outcome(2, 1, numbers, row)
    parts = {
        "score": timed(
            lambda prediction, y: outcome(2, scorer.score(prediction, 2, numbers, row), numbers, row),
            examples["Multiprobability"],
        ),
        "p-value": timed(lambda tau: RealisedRow().read(step, tau), p),
        "calibration bins": timed(CalibrationBins().update, [(u, h) for (u,), (h,) in zip(p, hits, strict=True)]),
        "accuracy interval": timed(venn.monitors.StitchedBound(empirical=True).update, hits),
        "deviation band": timed(venn.monitors.DeviationBand().update, p),
        "forward e-process": timed(
            venn.monitors.ForwardEProcess().update, [(h, u, u) for (u,), (h,) in zip(p, hits, strict=True)]
        ),
    }
    pattern = venn.monitors.CompositeJumper()
    for detector in (
        venn.monitors.Ville(pattern),
        venn.monitors.CUSUM(pattern),
        venn.monitors.ShiryaevRoberts(pattern),
    ):
        parts[type(detector).__name__] = timed(detector.update, p)
    others = (
        venn.monitors.Power,
        venn.monitors.SimpleMixture,
        venn.monitors.PlugIn,
        venn.monitors.BetaPlugIn,
        venn.monitors.SimpleJumper,
        venn.monitors.Sleeper,
    )
    for martingale in (pattern, *(make() for make in others)):
        parts[type(martingale).__name__] = timed(martingale.update, p)
    monitor = venn.Monitor(CLASSES)
    for _ in range(5):
        monitor.update(*examples["Multiprobability"][0])
    parts["snapshot"] = timed(monitor.snapshot, [()] * 200)
    result = {
        "benchmark": "monitor",
        "us_an_update": whole,
        "us_by_hand": timed(by_hand(), examples["Multiprobability"][:1000]),
        "us_parts": parts,
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
