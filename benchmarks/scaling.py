"""How do the time of a step and the memory of an example grow with examples, classes and features?

    python benchmarks/scaling.py                                          # prints; some minutes, nothing beside it
    python benchmarks/scaling.py --markdown docs/scaling.md               # the page and its figure, docs/scaling.png

Each predictor goes once through Gaussian classes (or a sum of waves, for numbers) in a process of its own, compiled
before: predict, then learn. A point is the median of the steps around n. An exponent is the slope of the logarithms of
the times, by least squares, from `FROM` examples on: 1 means that ten times the examples make a step ten times as
long. Transductive predictors start with a term that does not grow, so their slope is below that of their largest n,
which stands beside it (of the last two points, so a noisy one). Bytes of an example: by what the process holds more,
from the middle of the stream to its end, so a buffer that doubles counts as it comes. Classes and features are varied
at n = `AT`, the least of `REPEAT` runs.

Prints one JSON line for each predictor.
"""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import perf_counter

import matplotlib
import numpy as np
from workload import command, command_options, resident

import streams
import venn
from venn import machines, predictors

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from studies.document import written

FROM, AT, AROUND, REPEAT = 1000, 500, 25, 4
CLASSES, FEATURES = (2, 4, 8, 16), (4, 16, 64, 256)


def scorer(classes, d):
    """Return a linear scorer that costs nothing to make."""
    from sklearn.linear_model import LogisticRegression

    stream = streams.synthetic.gaussians(400, classes=len(classes), features=d, seed=1)
    return machines.FrozenScorer(LogisticRegression().fit(stream.X, list(stream.y)), classes)


def squares(classes):
    return venn.LeastSquaresSVM(venn.RBF("auto"), 1.0, classes)


#: By name: how to make the predictor from classes and number of features, and how many examples it meets.
PATHS = {
    "Forecaster": (lambda classes, d: venn.Forecaster(classes), 20_000),
    "least squares, Venn-Abers": (lambda classes, d: venn.TransductiveVennAbers(squares(classes)), 6000),
    "least squares, conformal": (lambda classes, d: venn.Conformal(squares(classes)), 4000),
    "hinge loss, Venn": (
        lambda classes, d: venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF("auto"), 1.0, classes), venn.Argmax()),
        4000,
    ),
    "window of 500, Venn-Abers": (
        lambda classes, d: venn.TransductiveVennAbers(venn.SlidingWindow(squares(classes), 500)),
        20_000,
    ),
    "numbers: ridge, distribution": (
        lambda classes, d: predictors.ConformalDistribution(machines.KernelRidge(venn.RBF("auto"), 1.0)),
        4000,
    ),
    "given scorer, Venn": (lambda classes, d: venn.InductiveVenn(scorer(classes, d)), 20_000),
    "given scorer, Venn-Abers": (lambda classes, d: venn.InductiveVennAbers(scorer(classes, d)), 20_000),
    "given scorer, sets": (lambda classes, d: venn.InductiveConformal(scorer(classes, d)), 20_000),
}


def examples(name, n, c, d):
    """Return the examples of a path."""
    if name.startswith("numbers"):
        return streams.waves(n, features=d)
    return streams.synthetic.gaussians(n, classes=c, features=d, seed=0)


def replayed(name, n, c=2, d=10):
    """Return the seconds of each step and the resident bytes at its end and its middle."""
    make, _ = PATHS[name]
    classes = tuple(range(c))
    for warm in (make(classes, d), make(classes, d)):  # compiled, and what is made at first use
        for x, y in examples(name, 60, c, d):
            warm.predict_one(x)
            warm.learn_one(x, y)
    model, stream = make(classes, d), examples(name, n, c, d)
    taken, held = np.zeros(n), {}
    for i, (x, y) in enumerate(stream):
        start = perf_counter()
        model.predict_one(x)
        model.learn_one(x, y)
        taken[i] = perf_counter() - start
        if i + 1 in (n // 2, n):
            held[i + 1] = resident()
    return taken, (held[n] - held[n // 2]) / (n - n // 2)


def around(taken, n):
    """Return the median microseconds of the steps around n."""
    return 1e6 * float(np.median(taken[max(0, n - AROUND) : n + AROUND]))


def slope(xs, ys):
    """Return the exponent b of y = a x^b, by least squares of the logarithms."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def path(name):
    """Return what one predictor costs, as it is printed."""
    most = PATHS[name][1]
    taken, bytes_ = replayed(name, most)
    ns = [n for n in (100, 200, 500, 1000, 2000, 3000, 4000, 6000, 10_000, 20_000) if n <= most]
    us = [around(taken, min(n, most - AROUND)) for n in ns]
    late = [i for i, n in enumerate(ns) if n >= FROM]
    found = {
        "benchmark": "scaling", "path": name, "n": ns, "us": [round(u, 1) for u in us],
        "exponent": round(slope([ns[i] for i in late], [us[i] for i in late]), 2),
        "last exponent": round(slope(ns[-2:], us[-2:]), 2), "bytes_an_example": round(bytes_),
    }  # fmt: skip
    numbers = name.startswith("numbers")
    for key, values in (("c", () if numbers else CLASSES), ("d", FEATURES)):
        times = [min(around(replayed(name, AT, **{key: v})[0], AT - AROUND) for _ in range(REPEAT)) for v in values]
        if times:
            found[f"us by {key}"] = dict(zip(map(str, values), (round(u, 1) for u in times), strict=True))
            found[f"exponent in {key}"] = round(slope(values, times), 2)
    return found


def drawn(rows, file):
    """Draw microseconds of a step by examples, both in logarithms."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 6.4), layout="constrained")
    for row, marker in zip(rows, "osv^D<>pX*", strict=False):
        axis.loglog(
            row["n"], row["us"], marker=marker, label=f"{row['path']}  (n^{row['last exponent']:.1f} at the end)"
        )
    axis.set(xlabel="examples learned", ylabel="microseconds of a step (predict and learn)")
    axis.grid(alpha=0.3, which="both")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    figure.savefig(file, dpi=110)


def page(rows, image):
    """Return the lines of the page."""
    lines = [
        f"`python benchmarks/scaling.py`, on {date.today()}: one step (predict, then learn) by the number of examples "
        "learned so far, "
        "2 classes and 10 features; then by classes and by features at 500 examples. An exponent of 1 means ten "
        "times the examples, ten times the time; 0 means that it does not matter how many there were. Where all "
        "examples count, a step reads a factor of n^2 / 2 numbers, which leaves the processor's cache between 1000 "
        "and 2000. A forecaster of its own machines is inductive from 2000 examples on.", "",
        f"![Microseconds of a step by examples learned]({image})", "",
        "| predictor | n = 100 | n = 1000 | largest n | there | exponent from 1000 | at the end | bytes an example |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        us = dict(zip(row["n"], row["us"], strict=True))
        lines.append(
            f"| {row['path']} | {us[100]:.0f} us | {us[1000]:.0f} us | {row['n'][-1]} | {row['us'][-1]:.0f} us "
            f"| {row['exponent']:.2f} | {row['last exponent']:.2f} | {row['bytes_an_example']} |"
        )
    head = [*(f"c = {c}" for c in CLASSES), "exponent", *(f"d = {d}" for d in FEATURES), "exponent"]
    lines += ["", "| predictor | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for row in rows:
        cells = [row["path"]]
        for key, values in (("c", CLASSES), ("d", FEATURES)):
            by = row.get(f"us by {key}", {})
            cells += [f"{by[str(v)]:.0f}" if by else "" for v in values]
            cells.append(f"{row[f'exponent in {key}']:.2f}" if by else "")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


@command(threads=None)
def main():
    args = command_options(__doc__, markdown=Path, only=str, path=str)
    if args.path:
        yield path(args.path)
        return
    rows = []
    for name in PATHS:
        if args.only and not any(part in name for part in args.only.split(",")):
            continue
        done = subprocess.run([sys.executable, __file__, "--path", name], check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        yield rows[-1]
    if args.markdown:
        image = args.markdown.with_suffix(".png")
        drawn(rows, image)
        written(args.markdown, page(rows, image.name), "benchmarks/scaling.py", "How cost grows")
