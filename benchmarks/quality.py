"""Which machine, taxonomy and decision rule are sharp as well as valid?

    python benchmarks/quality.py run       # every set, three shuffles; continues where it stopped
    python benchmarks/quality.py table     # from the existing results

Every data set is replayed, up to `--steps` examples of each shuffle, through every predictor on shared machines.
Kernel width and C are chosen by closed-form leave-one-out on 500 of the examples to be replayed, drawn
independently of their order: a symmetric function of the bag, so that validity holds, though accuracies are not
prequential. For the forecaster and the kernel of several widths nothing is chosen; the sets come scaled, and are taken
so. Per set and shuffle one JSON line is appended to the file of results: for every predictor accuracy,
mean bounds, log loss, and

    deviation   the guaranteed quantity divided by its bound at the end of the run: |sum of (hit - probability)| over
                the realised row, or over the row of each class for class intervals (the worst class), divided by
                sqrt(N ln(2 / delta) / 2), delta = 0.01 (over the number of classes for class intervals). Above 1 is
                evidence against validity;
"""

import argparse
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from workload import append, lines_of

import streams
import venn
from venn.predictors import LeaveOneOutScores

SETS = (
    "car", "wine_red", "pima", "ionosphere", "german", "optdigits", "liver", "wdbc", "heart", "divorce", "cervical",
    "colon", "leukemia", "srbct", "promoters", "banknote", "mushroom", "adult", "covtype", "elec2",
)  # fmt: skip
STEPS, PREFIX, DELTA = 600, 500, 0.01
RESULTS = Path("runs/quality.jsonl")
FIELDS = ("accuracy", "lower", "upper", "log_loss")

# The machine and predictor behind each name in the table.
LOO, BINS, ABERS = venn.LeaveOneOut, venn.taxonomies.AdaptiveMarginBins, venn.TransductiveVennAbers
PREDICTORS = {
    "published: hinge, training, argmax": ("hinge", lambda m: venn.TransductiveVenn(m, venn.Argmax())),
    "squares, leave-one-out, adaptive bins": ("squares", lambda m: venn.TransductiveVenn(m, LOO(BINS()))),
    "squares, leave-one-out, Venn-Abers": ("squares", ABERS),
    **{
        f"squares, leave-one-out, {name}": (
            "squares", lambda m, made=made: venn.ScoreCalibrator(m, made, LeaveOneOutScores()))
        for name, made in {
            "Platt": venn.maps.Platt(), "beta calibration": venn.maps.BetaCalibration(),
        }.items()
    },
    "squares, inductive, Venn-Abers": ("squares", lambda m: venn.InductiveVennAbers(m.fresh())),
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
        | {"deviation": deviation(record[title], by_class.get(title))}
        for title in record
    }
    row["seconds"] = round(time.perf_counter() - start, 1)
    return row


def deviation(curves, by_class):
    """Return the deviation defined at the head of this file."""
    n = len(curves)
    if by_class is None:
        steps = curves.per_step
        return abs(float((steps.realised_hit - steps.realised).sum())) / float(np.sqrt(n * np.log(2 / DELTA) / 2))
    return float(np.abs(by_class).max() / np.sqrt(n * np.log(2 * len(by_class) / DELTA) / 2))


def work(task):
    """Run one replay in a worker."""
    with threadpool_limits(1):
        return replay(*task)


def run(args):
    """Append the missing rows."""
    done = {(row["data"], row["shuffle"]) for row in lines_of(args.results)}
    tasks = [
        (name, s, args.steps)
        for s in range(args.first, args.first + args.shuffles)
        for name in args.sets
        if (name, s) not in done
    ]
    start = time.perf_counter()
    with Pool(args.jobs) as pool:
        for count, row in enumerate(pool.imap_unordered(work, tasks), 1):
            append(args.results, row)
            spent = time.perf_counter() - start
            left = spent / count * (len(tasks) - count)
            print(
                f"{count} of {len(tasks)}: {row['data']}, shuffle {row['shuffle']}, {row['seconds']} s; "
                f"about {left / 60:.0f} min left",
                flush=True,
            )


def table(args):
    """Print the means over shuffles, then over sets."""
    found = lines_of(args.results)
    of = {name: [row["predictors"] for row in found if row["data"] == name] for name in args.sets}
    print("| predictor | guaranteed |", " | ".join((*FIELDS, "deviation")), "|\n" + "|---" * (len(FIELDS) + 3) + "|")
    for title in TITLES:
        means = [
            np.mean([np.mean([row[title][field] for row in each]) for each in of.values() if each]) for field in FIELDS
        ]
        worst = max(row["predictors"][title]["deviation"] for row in found)
        cells = " | ".join(f"{one:.3f}" for one in (*means, worst))
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
