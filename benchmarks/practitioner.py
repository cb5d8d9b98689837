"""Against what a practitioner refits every 50 examples: random forest, boosted trees, logistic regression, calibrated.

    python benchmarks/practitioner.py [--shuffles 2] [--steps 500] [--sets car pima ...] [--out FILE]

Each rival is fitted anew after every 50 examples, to all examples so far, as it is and inside scikit-learn's
`CalibratedClassifierCV`, by sigmoid and by isotonic regression, with five folds, or as many as the rarest class has
examples; classes with a single example are left out of that fit. Logistic regression scales its columns. The forecaster
learns each example. Everybody predicts each example before its label comes; the first 100 do not count (on sets of
fewer than 300 examples, the first third). Probabilities below 1e-15 count as 1e-15. Seconds are processor time for all
steps, fits included, one thread. Each finished set and shuffle is a line of the file, and is not repeated. Prints
the tables of docs/which_predictor.md, and one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import streams
import venn

SETS = (
    "pima", "heart", "german", "ionosphere", "breast_cancer", "banknote", "adult", "elec2", "car", "wine_red",
)  # fmt: skip
EVERY, LEAST, FOLDS = 50, 1e-15, 5
RIVALS = {
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
WAYS = ("as it is", "sigmoid", "isotonic")
OURS = "Forecaster"
NAMES = (OURS, *(f"{name}, {way}" for name in RIVALS for way in WAYS))


class Refit:
    """A classifier that is fitted anew after every so many examples, to all of them."""

    def __init__(self, make, way: str, c: int) -> None:
        self.make, self.way, self.c = make, way, c
        self.X, self.y, self.fitted = [], [], None

    def proba(self, x) -> np.ndarray:
        """(c,) probabilities; before the first fit all alike."""
        p = np.full(self.c, 1 / self.c)
        if self.fitted is not None:
            p = np.zeros(self.c)
            p[self.fitted.classes_] = self.fitted.predict_proba(x[None])[0]
        return p

    def learn(self, x, k: int) -> None:
        """Keep the example; fit when it is time."""
        self.X.append(x)
        self.y.append(k)
        if len(self.y) % EVERY:
            return
        X, y = np.array(self.X), np.array(self.y)
        counts = np.bincount(y, minlength=self.c)
        keep = (counts >= 2)[y] if self.way != "as it is" else np.ones(len(y), bool)
        if len(np.unique(y[keep])) < 2:
            return
        model = self.make()
        if self.way != "as it is":
            model = CalibratedClassifierCV(model, method=self.way, cv=min(FOLDS, counts[counts >= 2].min()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fitted = model.fit(X[keep], y[keep])


def measured(data: str, seed: int, steps: int) -> dict[str, list[float]]:
    """Return log loss, accuracy and seconds of everybody on one shuffle of a set."""
    stream = streams.load(data, shuffle=seed)
    n = min(len(stream), steps)
    examples = [(np.asarray(x, float), stream.classes.index(y)) for x, y in stream.take(n)]
    first, found = min(100, n // 3), {}
    for name in NAMES:
        if name == OURS:
            model = venn.Forecaster(stream.classes)
        else:
            rival, _, way = name.rpartition(", ")
            model = Refit(RIVALS[rival], way, len(stream.classes))
        lost, right, begun = [], [], time.process_time()
        for i, (x, k) in enumerate(examples):
            p = model.predict_one(x).proba if name == OURS else model.proba(x)
            if i >= first:
                lost.append(-np.log(max(p[k], LEAST)))
                right.append(p.argmax() == k)
            if name == OURS:
                model.learn_one(x, stream.classes[k])
            else:
                model.learn(x, k)
        found[name] = [float(np.mean(lost)), float(np.mean(right)), time.process_time() - begun]
    return found


def table(lines: list[dict]) -> str:
    """Return the table: means over shuffles, then over sets, and on how many sets the forecaster loses less."""
    sets = sorted({line["data"] for line in lines}, key=SETS.index)
    mean = {d: {name: np.mean([line["found"][name] for line in lines if line["data"] == d], axis=0) for name in NAMES}
            for d in sets}  # fmt: skip
    rows = [
        "| | log loss | over the forecaster's | forecaster ahead | accuracy | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in NAMES:
        loss, right, seconds = np.mean([mean[d][name] for d in sets], axis=0)
        ratios = [mean[d][name][0] / mean[d][OURS][0] for d in sets]
        ahead = "" if name == OURS else f"{sum(ratio > 1 for ratio in ratios)} of {len(sets)}"
        shown = f"`{name}`" if name == OURS else name
        rows.append(f"| {shown} | {loss:.3f} | {np.mean(ratios):.2f} | {ahead} | {right:.3f} | {seconds:.1f} |")
    rows += [
        "",
        "| log loss | " + " | ".join(("forecaster", "best rival", "which one", "ratio")) + " |",
        "|---|---|---|---|---|",
    ]
    for d in sets:
        best = min(NAMES[1:], key=lambda name: mean[d][name][0])
        ours, theirs = mean[d][OURS][0], mean[d][best][0]
        rows.append(f"| {d} | {ours:.3f} | {theirs:.3f} | {best} | {ours / theirs:.2f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shuffles", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--out", type=Path, default=Path("runs/practitioner.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    asked = [(seed, data) for seed in range(options.shuffles) for data in options.sets]
    for seed, data in asked:
        if any((line["seed"], line["data"], line["steps"]) == (seed, data, options.steps) for line in lines):
            continue
        line = {"seed": seed, "data": data, "steps": options.steps, "found": measured(data, seed, options.steps)}
        lines.append(line)
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
    lines = [line for line in lines if (line["seed"], line["data"]) in asked and line["steps"] == options.steps]
    print(table(lines))
    print(json.dumps({"benchmark": "practitioner", "shuffles": options.shuffles, "steps": options.steps,
                      "sets": len({line["data"] for line in lines})}))  # fmt: skip


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
