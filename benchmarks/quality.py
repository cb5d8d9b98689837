"""Which machine, taxonomy and decision rule are sharp as well as valid?

    python benchmarks/quality.py run       # every set, three shuffles; continues where it stopped
    python benchmarks/quality.py table     # from the existing results

Every data set is replayed, up to `--steps` examples of each shuffle, through every predictor on shared machines.
Kernel width and C are chosen by closed-form leave-one-out on 500 of the examples to be replayed, drawn
independently of their order: a symmetric function of the bag, so that validity holds, though accuracies are not
prequential. For the forecaster and the kernel of several widths nothing is chosen; the sets come scaled, and are taken
so. Per set and shuffle one JSON line is appended to the file of results: for every predictor accuracy,
mean bounds, width, log loss and Brier loss, and

    deviation   the guaranteed quantity divided by its bound at the end of the run: |sum of (hit - probability)| over
                the realised row, or over the row of each class for class intervals (the worst class), divided by
                sqrt(N ln(2 / delta) / 2), delta = 0.01 (over the number of classes for class intervals). Above 1 is
                evidence against validity;
    outside     the largest distance of the predicted label's cumulative accuracy from its band at any step, divided
                by the bound for all steps at once, sqrt(ln(2 N (N + 1) / delta) / (2 N)). A theorem for predictions
                that guarantee the predicted label, a description for others.
"""

from __future__ import annotations

import argparse
import json
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.predictors import LeaveOneOutScores

SETS = (
    "car", "wine_red", "pima", "ionosphere", "german", "optdigits", "liver", "wdbc", "heart", "divorce", "cervical",
    "colon", "leukemia", "srbct", "promoters", "banknote", "mushroom", "adult", "covtype", "elec2",
)  # fmt: skip
STEPS, PREFIX, DELTA = 600, 500, 0.01
RESULTS = Path("runs/quality.jsonl")
FIELDS = ("accuracy", "lower", "upper", "width", "log_loss", "brier")

# The machine and predictor behind each name in the table.
LOO, BINS, ABERS = venn.LeaveOneOut, venn.taxonomies.AdaptiveMarginBins, venn.TransductiveVennAbers
PREDICTORS = {
    "published: hinge, training, argmax": ("hinge", lambda m: venn.TransductiveVenn(m, venn.Argmax())),
    "hinge, span leave-one-out, argmax": ("hinge", lambda m: venn.TransductiveVenn(m, LOO(venn.Argmax()))),
    "hinge, span leave-one-out, Venn-Abers": ("hinge", ABERS),
    "hinge, training, Platt": ("hinge", lambda m: venn.ScoreCalibrator(m, venn.maps.Platt())),
    "squares, training, argmax": ("squares", lambda m: venn.TransductiveVenn(m, venn.Argmax())),
    "squares, leave-one-out, argmax": ("squares", lambda m: venn.TransductiveVenn(m, LOO(venn.Argmax()))),
    "squares, leave-one-out, argmax, row mean": (
        "squares", lambda m: venn.TransductiveVenn(m, LOO(venn.Argmax()), venn.prediction.RowMean())),
    "squares, leave-one-out, margin bins": (
        "squares", lambda m: venn.TransductiveVenn(m, LOO(venn.taxonomies.MarginBins()))),
    "squares, leave-one-out, adaptive bins": ("squares", lambda m: venn.TransductiveVenn(m, LOO(BINS()))),
    "squares, training, Venn-Abers": ("squares", lambda m: ABERS(m, leave_one_out=False)),
    "squares, leave-one-out, Venn-Abers": ("squares", ABERS),
    "squares, training, Platt": ("squares", lambda m: venn.ScoreCalibrator(m, venn.maps.Platt())),
    **{
        f"squares, leave-one-out, {name}": (
            "squares", lambda m, made=made: venn.ScoreCalibrator(m, made, LeaveOneOutScores()))
        for name, made in {
            "Platt": venn.maps.Platt(), "beta calibration": venn.maps.BetaCalibration(),
            "isotonic": venn.maps.Isotonic("linear"), "binning": venn.maps.Binning(laplace=True),
        }.items()
    },
    "squares, cross, argmax": ("squares", lambda m: venn.predictors.CrossVenn(m.fresh(), taxonomy=venn.Argmax())),
    "squares, inductive, argmax": ("squares", lambda m: venn.InductiveVenn(m.fresh(), venn.Argmax())),
    "squares, inductive, adaptive bins": ("squares", lambda m: venn.InductiveVenn(m.fresh(), BINS())),
    "squares, inductive, Venn-Abers": ("squares", lambda m: venn.InductiveVennAbers(m.fresh())),
    "several widths, leave-one-out, Venn-Abers": ("several widths", ABERS),
}  # fmt: skip
FORECASTER = {"forecaster: intervals (V-mix)": "intervals", "forecaster: forecast": "forecast"}
TITLES = (*PREDICTORS, *FORECASTER)


def examples(name, shuffle, steps):
    """Return the stream to replay, and kernel and C chosen on a part of it that is drawn independently of its order."""
    stream = streams.load(name, shuffle=shuffle)
    if len(stream) > steps:
        stream = stream.take(steps)
    canonical = np.lexsort(np.column_stack([stream.y, stream.X]).T)
    part = np.random.default_rng(0).permutation(canonical)[:PREFIX]
    tuning = venn.tune([(stream.X[i], stream.classes[stream.y[i]]) for i in part], stream.classes)
    return stream, tuning


def replay(name, shuffle, steps):
    """Replay one set in one order; return the row of results."""
    start = time.perf_counter()
    stream, tuning = examples(name, shuffle, steps)
    machines = {
        "squares": venn.LeastSquaresSVM(tuning.kernel, tuning.C, stream.classes),
        "hinge": venn.OneVsAllSVM(tuning.kernel, tuning.C, stream.classes),
        "several widths": venn.LeastSquaresSVM(venn.machines.MultiscaleRBF(), 3.0, stream.classes),
    }
    beside = {title: make(machines[machine]) for title, (machine, make) in PREDICTORS.items()}
    model = venn.Forecaster(stream.classes, first=0, beside=beside)
    record = venn.Record(stream.classes, TITLES)
    c, n = len(stream.classes), len(stream)
    by_class = {}  # sums of 1{y = k} - realised probability of k
    for x, y in stream:
        outlook = model.predict_one(x)
        predictions = {title: outlook[FORECASTER.get(title, title)] for title in TITLES}
        record.update(predictions, y)
        code = stream.classes.index(y)
        of_class = np.arange(c) == code
        for title, prediction in predictions.items():
            if isinstance(prediction, venn.prediction.ClassIntervals):
                realised = prediction.pairs[np.arange(c), of_class.astype(int)]
                by_class[title] = by_class.get(title, 0.0) + of_class - realised
        model.learn_one(x, y)
    guaranteed = {title: getattr(p, "guaranteed", "nothing") for title, p in predictions.items()}
    means = record.means()
    row = {"data": name, "shuffle": shuffle, "n": n, "classes": c, "gamma": tuning.kernel.gamma, "C": tuning.C}
    row["predictors"] = {
        title: {field: means[title][field] for field in FIELDS}
        | {"guaranteed": guaranteed[title]}
        | against_bounds(record[title], by_class.get(title))
        for title in record
    }
    row["seconds"] = round(time.perf_counter() - start, 1)
    return row


def against_bounds(curves, by_class):
    """Return the two deviations defined at the head of this file."""
    n = np.arange(1, len(curves) + 1)
    if by_class is None:
        steps = curves.per_step
        deviation = abs(float((steps.realised_hit - steps.realised).sum()))
        bound = np.sqrt(n[-1] * np.log(2 / DELTA) / 2)
    else:
        deviation = float(np.abs(by_class).max())
        bound = np.sqrt(n[-1] * np.log(2 * len(by_class) / DELTA) / 2)
    beyond = np.maximum(curves.lower - curves.accuracy, curves.accuracy - curves.upper)
    widening = np.sqrt(np.log(2 * n * (n + 1) / DELTA) / (2 * n))
    return {"deviation": deviation / float(bound), "outside": float((beyond / widening).max())}


def work(task):
    """Run one replay in a worker."""
    with threadpool_limits(1):
        return replay(*task)


def run(args):
    """Append the missing rows."""
    args.results.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["data"], row["shuffle"]) for row in rows(args.results)}
    tasks = [
        (name, s, args.steps)
        for s in range(args.first, args.first + args.shuffles)
        for name in args.sets
        if (name, s) not in done
    ]
    start = time.perf_counter()
    with Pool(args.jobs) as pool:
        for count, row in enumerate(pool.imap_unordered(work, tasks), 1):
            with args.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            spent = time.perf_counter() - start
            left = spent / count * (len(tasks) - count)
            print(
                f"{count} of {len(tasks)}: {row['data']}, shuffle {row['shuffle']}, {row['seconds']} s; "
                f"about {left / 60:.0f} min left",
                flush=True,
            )


def rows(path):
    """Return the rows of the file of results, none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(args):
    """Print the means over shuffles, then over sets, and the log loss over that of the best scaling on each set."""
    found = rows(args.results)
    names = [name for name in args.sets if any(row["data"] == name for row in found)]
    of = {name: [row["predictors"] for row in found if row["data"] == name] for name in names}

    def mean(name, title, field):
        return float(np.mean([row[title][field] for row in of[name]]))

    scalings = [
        title for title in TITLES if title.split(", ")[-1] in ("Platt", "beta calibration", "isotonic", "binning")
    ]
    best = {name: min(mean(name, title, "log_loss") for title in scalings) for name in names}
    print("| predictor | guaranteed |", " | ".join((*FIELDS, "ratio", "deviation", "outside")), "|")
    print("|---" * (len(FIELDS) + 5) + "|")
    for title in TITLES:
        over = [np.mean([mean(name, title, field) for name in names]) for field in FIELDS]
        ratio = np.mean([mean(name, title, "log_loss") / best[name] for name in names])
        worst = [max(row["predictors"][title][field] for row in found) for field in ("deviation", "outside")]
        cells = " | ".join(f"{one:.3f}" for one in (*over, ratio, *worst))
        print(f"| {title} | {found[0]['predictors'][title]['guaranteed']} | {cells} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="NAME")
    parser.add_argument("--shuffles", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS, help="examples of each set, at most")
    parser.add_argument(
        "--first", type=int, default=0, help="first shuffle; with two files of results, two runs share the work"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.what](args)


if __name__ == "__main__":
    main()
