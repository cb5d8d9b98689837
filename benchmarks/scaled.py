"""How many examples should fix the scale of raw columns?

    python benchmarks/scaled.py

Columns of each set are multiplied by numbers from 1e-3 to 1e6, drawn once. Venn-Abers over least squares with
RBF("auto") and C = 10 predicts and learns the first 500 examples of each of ten shuffles; the table has the mean log
loss of the steps from 100 on: with no scaling, with `scale=m`, and with the columns standardised over
the whole file beforehand, which no stream could do.
"""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.machines import ScaleWarning

SETS = ("wdbc", "pima", "german", "wine_red", "heart", "ionosphere", "liver", "banknote")
SIZES = (10, 20, 30, 50, 100)
FROM, STEPS, SHUFFLES = 100, 500, 10


def loss(X, y, classes, scale) -> float:
    """Return the mean log loss of the steps from FROM on."""
    machine = venn.LeastSquaresSVM(venn.RBF("auto"), 10.0, classes, scale=scale)
    model = venn.TransductiveVennAbers(machine)
    lost = []
    for x, label in zip(X[:STEPS], y[:STEPS], strict=True):
        if machine.learned >= FROM:
            lost.append(-np.log(model.predict_one(x).proba[classes.index(label)]))
        model.learn_one(x, label)
    return float(np.mean(lost))


def main() -> None:
    warnings.simplefilter("ignore", ScaleWarning)
    rows = []
    for data in SETS:
        stream = streams.load(data, scale=False)
        X, classes = stream.X, stream.classes
        y = [classes[code] for code in stream.y]
        raw = X * 10 ** np.random.default_rng(0).uniform(-3, 6, X.shape[1])
        whole = streams.Scaling.whole(X)(X)

        cases = [(raw, False), *((raw, m) for m in SIZES), (whole, False)]
        losses = []
        for seed in range(SHUFFLES):
            order = np.random.default_rng(seed).permutation(len(y))
            labels = [y[i] for i in order]
            losses.append([loss(objects[order], labels, list(classes), scale) for objects, scale in cases])
        rows.append(np.mean(losses, axis=0))
        print(f"{data:12}", *(f"{value:7.4f}" for value in rows[-1]), flush=True)
    print(f"{'mean':12}", *(f"{value:7.4f}" for value in np.mean(rows, axis=0)))
    print("columns: raw,", ", ".join(f"m = {m}" for m in SIZES) + ", whole file")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
