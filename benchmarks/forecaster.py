"""Is the forecaster, with nothing chosen, better than the scalings of one machine? Log loss on public sets.

    python benchmarks/forecaster.py [--shuffles 10] [--steps 500] [--first 0] [--sets car pima ...] [--out FILE]

Beside the forecaster stand Venn-Abers and the usual scalings, fitted to deleted scores, on one least-squares machine
with RBF("auto") and C = 1. The first 100 steps do not count (on sets of fewer than 300 examples, the first third). One
JSON line: for each set the ratio of the forecaster's log loss to that of Venn-Abers, and to that of the scaling that is
best on this set; then the means of these. All sets are shuffled. Each finished set and shuffle is a line of the file,
and is not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import streams
import venn
from venn import maps

SETS = (
    "car", "digits", "breast_cancer", "wine_red", "covtype", "pima", "ionosphere", "liver", "mushroom", "promoters",
    "german", "adult", "heart", "divorce", "cervical", "colon", "leukemia", "srbct", "banknote", "elec2",
)  # fmt: skip
SCALINGS = {
    "platt": maps.Platt, "isotonic": maps.Isotonic, "binning": maps.Binning, "beta_calibration": maps.BetaCalibration,
    "temperature": maps.Temperature, "softmax": maps.Softmax,
}  # fmt: skip
LEAST = 1e-15


def losses(data: str, seed: int, steps: int, first: int | None) -> dict[str, float]:
    """Return the mean log loss of each predictor on one shuffle of a set."""
    stream = streams.load(data, shuffle=seed)
    n = min(len(stream), steps)
    machine = venn.LeastSquaresSVM(venn.RBF("auto"), 1.0, stream.classes)
    deleted = venn.predictors.DeletedScores()
    beside = {name: venn.Scaler(machine, make(), deleted) for name, make in SCALINGS.items()}
    model = venn.Forecaster(
        stream.classes, first=first, beside={"abers": venn.TransductiveVennAbers(machine), **beside}
    )
    lost: dict[str, list[float]] = {name: [] for name in model if name != "sets"}
    for i, (x, y) in enumerate(stream.take(n)):
        if i >= min(100, n // 3):
            outlook, k = model.predict_one(x), stream.classes.index(y)
            for name, each in lost.items():
                each.append(-np.log(max(outlook[name].proba[k], LEAST)))
        model.learn_one(x, y)
    return {name: float(np.mean(each)) for name, each in lost.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shuffles", type=int, default=10)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--first", type=int, help="examples that fix the scale; 0 takes these sets as they are, scaled")
    parser.add_argument("--out", type=Path, default=Path("runs/forecaster.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {
        (one["data"], one["seed"]): one
        for one in done
        if (one["steps"], one["first"]) == (options.steps, options.first)
    }
    begun, rows = time.perf_counter(), {}
    for seed in range(options.shuffles):
        for data in options.sets:
            if (data, seed) not in known:
                found = losses(data, seed, options.steps, options.first)
                one = {"data": data, "seed": seed, "steps": options.steps, "first": options.first, "losses": found}
                known[data, seed] = one
                with options.out.open("a") as file:
                    file.write(json.dumps(one) + "\n")
    for data in options.sets:
        each = [known[data, seed]["losses"] for seed in range(options.shuffles)]
        mean = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        best = min(SCALINGS, key=mean.__getitem__)
        row = {
            "forecast": mean["forecast"],
            "best": best,
            "over_best": mean["forecast"] / mean[best],
            "over_abers": mean["forecast"] / mean["abers"],
            "intervals_over_abers": mean["intervals"] / mean["abers"],
        }
        rows[data] = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        print(f"# {data}: {rows[data]}", flush=True)
    names = ("over_best", "over_abers", "intervals_over_abers")
    means = {name: round(float(np.mean([row[name] for row in rows.values()])), 4) for name in names}
    kept = sum(row["over_best"] <= 1 for row in rows.values())
    print(
        json.dumps(
            {"benchmark": "forecaster", "shuffles": options.shuffles, "steps": options.steps, **means,
             "at_most_best": f"{kept} of {len(rows)}", "seconds": round(time.perf_counter() - begun), "sets": rows}
        )
    )  # fmt: skip


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
