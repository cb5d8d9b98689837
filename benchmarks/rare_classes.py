"""Whether a class with hardly an example spoils what the forecaster says of all others.

    python benchmarks/rare_classes.py [--classes 2 5 12] [--counts 1 2 3 5] [--rows 3000] [--seed 0]

A table of 27 columns of zeros and ones, from eight questions with two to five answers each; the label follows from the
answers, but for one row in fifty. One class more is declared, and comes once, twice, three or five times at random
rows. The same table with these rows relabelled by the rule is the other stream. For each number of classes and of
rows the log loss of the forecast on all other rows from 200 on is printed, over that of the other stream, and the
worst of the experts' total losses over that of the frequencies so far, both streams from 200 on. One JSON line.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from threadpoolctl import threadpool_limits

import venn

ANSWERS = (3, 5, 4, 4, 3, 2, 3, 3)
FIRST, NOISE = 200, 0.02


def table(n: int, c: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n objects and class codes from 0 to c - 1."""
    rng = np.random.default_rng(seed)
    said = np.column_stack([rng.integers(0, many, n) for many in ANSWERS])
    weights = rng.permutation(np.arange(1, len(ANSWERS) + 1))
    total = (said * weights).sum(axis=1)
    y = np.searchsorted(np.quantile(total, np.arange(1, c) / c), total)
    y = np.where(rng.random(n) < NOISE, rng.integers(0, c, n), y)
    return np.concatenate([np.eye(many)[said[:, j]] for j, many in enumerate(ANSWERS)], axis=1), y


def losses(X: np.ndarray, y: np.ndarray, c: int) -> tuple[np.ndarray, float]:
    """Return (n,) log losses of the forecast, and the worst expert's total over that of frequencies, both after 200."""
    model, said, counts = venn.Forecaster(range(c)), np.empty(len(y)), np.zeros(c)
    frequencies, before = 0.0, np.zeros(0)
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        said[i] = -np.log(model.predict_one(x).proba[label])
        if i == FIRST:
            before = model["forecast"].losses
        frequencies -= np.log((counts[label] + 1 / c) / (i + 1)) * (i >= FIRST)
        counts[label] += 1
        model.learn_one(x, label)
    return said, float((model["forecast"].losses - before).max() / frequencies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 5, 12])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 3, 5])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| classes | rare rows | forecast | worst expert |\n|---|---|---|---|")
    over, worst = [], []
    for c in options.classes:
        X, y = table(options.rows, c, options.seed)
        plain, _ = losses(X, y, c + 1)
        for count in options.counts:
            rare = np.random.default_rng(count).choice(options.rows, count, replace=False)
            others = np.setdiff1d(np.arange(FIRST, options.rows), rare)
            mixed = y.copy()
            mixed[rare] = c
            said, expert = losses(X, mixed, c + 1)
            over.append(said[others].mean() / plain[others].mean())
            worst.append(expert)
            print(f"| {c} | {count} | {over[-1]:.4f} | {expert:.2f} |", flush=True)
    print(json.dumps({"benchmark": "rare_classes", "forecast": max(over), "worst_expert": max(worst)}))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
