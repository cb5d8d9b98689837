"""
Do conformal sets miss the true label as often as they claim, and how small are they?
=====================================================================================

Shuffled data are exchangeable, so the number of errors at level epsilon is binomial whatever the data and the
machine: each count must lie within the exact limits for its stream, and so must the sum over independent shuffles.
How small the sets are is not a theorem; it depends on the machine and the measure::

    python examples/conformal.py            # car, wine_red and optdigits, ten shuffles each
    python examples/conformal.py --quick    # 500 examples of car, three shuffles

Wine and optdigits are read from the folder in ``$STREAMS_DATA``, or downloaded.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy import stats

import streams
import venn

SETTINGS = {"car": (venn.RBF(0.5), 10.0), "wine_red": (venn.RBF(0.1), 1.0), "optdigits": (venn.RBF(1 / 64), 10.0)}
EPSILONS = np.array([0.01, 0.05, 0.1, 0.2])
LEVEL = 0.999  # of the limits of one count, both sides together


def limits(n, epsilon):
    """Return the least and the largest count that a binomial number of errors keeps to with probability LEVEL."""
    tail = (1 - LEVEL) / 2
    return int(stats.binom.ppf(tail, n, epsilon)), int(stats.binom.isf(tail, n, epsilon))


def one_shuffle(name, shuffle, examples):
    """Return p-values (n, c) and the codes of the true labels (n,) of one replay."""
    stream = streams.load(name, shuffle=shuffle)
    if examples:
        stream = stream.take(examples)
    kernel, C = SETTINGS[name]
    model = venn.Conformal(venn.LeastSquaresSVM(kernel, C, stream.classes), seed=shuffle)
    codes = {label: code for code, label in enumerate(stream.classes)}
    p_values, truth = [], []
    for x, y in track(stream, f"{name}, shuffle {shuffle}", total=len(stream), console=Console(stderr=True)):
        p_values.append(model.predict_one(x).p_values)
        truth.append(codes[y])
        model.learn_one(x, y)
    return np.array(p_values), np.array(truth)


def study(name, shuffles, examples):
    """Replay the shuffles of a data set and print the results; return how many counts are outside the limits."""
    started, errors, sizes, singletons, empty = time.perf_counter(), [], [], [], []
    for shuffle in range(shuffles):
        p, truth = one_shuffle(name, shuffle, examples)
        size = (p[:, :, None] > EPSILONS).sum(axis=1)  # (n, levels)
        errors.append((p[np.arange(len(p)), truth][:, None] <= EPSILONS).sum(axis=0))
        sizes.append(size.mean(axis=0))
        singletons.append((size == 1).mean(axis=0))
        empty.append((size == 0).mean(axis=0))
    n = len(p)
    counts = np.array(errors)
    print(f"\n{name}: {n} examples, {p.shape[1]} classes, {shuffles} shuffles, {time.perf_counter() - started:.0f} s")
    outside = 0
    for e, epsilon in enumerate(EPSILONS.tolist()):
        (low, high), (least, most) = limits(n, epsilon), limits(n * shuffles, epsilon)
        pooled = int(counts[:, e].sum())
        beyond = int(((counts[:, e] < low) | (counts[:, e] > high)).sum()) + (not least <= pooled <= most)
        outside += beyond
        print(
            f"  epsilon {epsilon:4}: errors {' '.join(map(str, counts[:, e].tolist()))}, limits [{low}, {high}]; "
            f"together {pooled}, limits [{least}, {most}]: {'inside' if not beyond else f'{beyond} OUTSIDE'}\n"
            f"      labels in a set {np.mean(sizes, axis=0)[e]:.3f}, sets of one label "
            f"{np.mean(singletons, axis=0)[e]:.3f}, empty sets {np.mean(empty, axis=0)[e]:.3f}"
        )
    return outside


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--quick", action="store_true", help="500 examples of car, three shuffles")
parser.add_argument("--sets", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="data sets of the full study")
arguments = parser.parse_args()
names, shuffles, examples = (["car"], 3, 500) if arguments.quick else (arguments.sets, 10, None)
outside = sum(study(name, shuffles, examples) for name in names)
total = len(names) * len(EPSILONS) * (shuffles + 1)
answer = f"Yes: all {total} counts are" if not outside else f"Not everywhere: {total - outside} of {total} counts are"
print(
    f"\n{answer} inside limits that each keeps with probability {LEVEL}; "
    f"by chance alone {total * (1 - LEVEL):.2f} would be outside."
)
