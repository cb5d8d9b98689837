"""Is the forecaster, with nothing chosen, better than the scalings of one machine? Log loss on public sets.

    python benchmarks/forecaster.py [--shuffles 10] [--steps 500] [--first 0 30] [--sets car pima ...] [--out FILE]

Beside the forecaster stand Venn-Abers and the usual scalings, fitted to leave-one-out scores, on one least-squares
machine with RBF("auto") and C = 1. The first 100 steps do not count (on sets of fewer than 300 examples, the first
third). All sets are shuffled. One JSON line for each `--first`: for each set the ratio of the forecaster's log loss to
that of Venn-Abers, and to that of the scaling that is best on this set; then the means of these. Each finished set and
shuffle is a line of the file, and is not repeated.
"""

import time
from pathlib import Path

import numpy as np
from workload import append, command, command_options, lines_of

import streams
import venn
from venn import maps

SETS = (
    "car", "digits", "breast_cancer", "wine_red", "covtype", "pima", "ionosphere", "liver", "mushroom", "promoters",
    "german", "adult", "heart", "divorce", "cervical", "colon", "leukemia", "srbct", "banknote", "elec2",
)  # fmt: skip
SCALINGS = {
    "platt": maps.Platt, "isotonic": maps.Isotonic, "binning": maps.Binning, "beta_calibration": maps.BetaCalibration,
    "temperature": maps.Temperature,
}  # fmt: skip
LEAST = 1e-15
Losses = dict[str, dict[str, float]]  # mean log loss by set and predictor


def losses(data: str, seed: int, steps: int, first: int) -> dict[str, float]:
    """Return the mean log loss of each predictor on one shuffle of a set."""
    stream = streams.load(data, shuffle=seed)
    n = min(len(stream), steps)
    machine = venn.LeastSquaresSVM(venn.RBF("auto"), 1.0, stream.classes)
    leave_one_out = venn.predictors.LeaveOneOutScores()
    beside = {name: venn.ScoreCalibrator(machine, make(), leave_one_out) for name, make in SCALINGS.items()}
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


def best_of(row: dict[str, float]) -> str:
    """Return the scaling of the least loss on a set."""
    return min(SCALINGS, key=row.__getitem__)


def ratios(found: Losses, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses over those of Venn-Abers, and over those of the scaling that is best on the set."""
    abers = [row[name] / row["abers"] for row in found.values()]
    return np.array(abers), np.array([row[name] / row[best_of(row)] for row in found.values()])


def summary(found: Losses) -> dict[str, object]:
    """Return the ratios by set, and their means."""
    over_abers, over_best = ratios(found, "forecast")
    over = {"over_best": over_best, "over_abers": over_abers} | {
        f"{name}_over_abers": ratios(found, name)[0] for name in ("intervals", "beta_calibration")
    }
    ahead = sum(row["forecast"] < row["beta_calibration"] for row in found.values())
    rows = {
        data: {
            "forecast": round(row["forecast"], 4),
            "best": best_of(row),
            **{name: round(float(values[i]), 4) for name, values in over.items()},
        }
        for i, (data, row) in enumerate(found.items())
    }
    means = {name: round(float(values.mean()), 4) for name, values in over.items()}
    return {**means, "at_most_best": int((over_best <= 1).sum()), "ahead_of_beta_calibration": ahead, "sets": rows}


@command()
def main():
    options = command_options(
        __doc__, shuffles=10, steps=500, sets=SETS, first=[0, 30], out=Path("runs/forecaster.jsonl")
    )
    known = {(one["data"], one["seed"], one["steps"], one["first"]): one["losses"] for one in lines_of(options.out)}
    for first in options.first:
        begun = time.perf_counter()
        for seed in range(options.shuffles):
            for data in options.sets:
                key = (data, seed, options.steps, first)
                if key not in known:
                    known[key] = losses(*key)
                    one = {"data": data, "seed": seed, "steps": options.steps, "first": first, "losses": known[key]}
                    append(options.out, one)
        found = {}
        for data in options.sets:
            each = [known[data, seed, options.steps, first] for seed in range(options.shuffles)]
            found[data] = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        line = {"benchmark": "forecaster", "shuffles": options.shuffles, "steps": options.steps, "first": first}
        yield {**line, "seconds": round(time.perf_counter() - begun), **summary(found)}
