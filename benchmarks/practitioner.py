"""Against what a practitioner refits every 150 examples: forests, boosted trees, logistic regression, SVC, calibrated.

    python benchmarks/practitioner.py [--shuffles 1] [--steps 1500] [--every 150] [--sets car pima ...] [--out FILE]
    python benchmarks/practitioner.py --steps 1000 --rivals trees --shuffles 3
    python benchmarks/practitioner.py --steps 6000 --first 2000 --every 1000 --rivals trees --sets adult magic.csv ...

Each rival is fitted anew after every 50 examples up to 300, then after every so many (where more than 300 do not count,
from so many before these on), to all examples so far, as it is and inside scikit-learn's `CalibratedClassifierCV`, by
sigmoid, by temperature (scikit-learn 1.8 or newer) and by isotonic regression, with five folds, or as many as the
rarest class has examples; classes with a single example are left out of that fit, and of boosted trees those with fewer
than five, which would spoil the others. They get the probability that is their share of the examples. A fit that fails
leaves the one before it at work. Logistic regression and SVC scale their columns. Boosted trees of LightGBM, XGBoost
and CatBoost stand beside scikit-learn's where they are installed. One more rival is the mean of all that have a
temperature; another one weighs them: at each refit by the greedy choice of 50 among them, with repeats, that would have
lost least on all examples from the first fit on. The forecaster learns each example. Everybody predicts each example
before its label comes; the first 100, or `--first`, do not count (on sets of fewer than three times as many examples,
the first third, but for a `--first` above 300). `--rivals trees`: forests, boosted trees and logistic regression only,
with a temperature; CatBoost, which takes hours, has 300 rounds instead of 1000, and no part where there are more than
three classes. A set may also be a CSV file of numbers, the label last. Probabilities below 1e-15 count as 1e-15.
Seconds are processor time for all steps, fits included, one thread. Each finished set and shuffle is a line of the
file, with log losses of everybody in blocks of 500 steps and of each expert of the forecast, and is not repeated.
Prints tables and one JSON line.
"""

import importlib
import importlib.util
import time
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from workload import append, command, command_options, lines_of

import streams
import venn

SETS = (
    "car", "wine_red", "pima", "german", "breast_cancer", "ionosphere", "heart", "banknote", "adult", "elec2",
    "covtype", "mushroom", "optdigits", "liver", "cervical", "digits", "promoters", "divorce", "colon", "srbct",
    "leukemia",
)  # fmt: skip
LEAST, FOLDS, OUT = 1e-15, 5, Path("runs/practitioner.jsonl")
OFTEN = 5  # classes with fewer examples are not boosted
SOON, LATER = 50, 300  # refits after every so many examples, up to so many
RIVALS = {
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "SVC": lambda: make_pipeline(StandardScaler(), SVC()),
}
BOOSTED = ["boosted trees"]
for package, kind, quiet in (
    ("lightgbm", "LGBMClassifier", {"verbose": -1, "n_jobs": 1}),
    ("xgboost", "XGBClassifier", {"n_jobs": 1}),
    ("catboost", "CatBoostClassifier", {"silent": True, "thread_count": 1, "allow_writing_files": False}),
):
    if importlib.util.find_spec(package):
        RIVALS[package] = partial(lambda package, kind, **how: getattr(importlib.import_module(package), kind)(
            random_state=0, **how), package, kind, **quiet)  # fmt: skip
        BOOSTED.append(package)
AS_IT_IS, WAYS = "as it is", ("as it is", "sigmoid", "temperature", "isotonic")
OURS, MEAN, WEIGHTED = "Forecaster", "mean, temperature", "weighted, temperature"
NAMES = (OURS, *(f"{name}, {way}" for name in RIVALS for way in WAYS if (name, way) != ("SVC", AS_IT_IS)))
TREES = (
    OURS,
    *(f"{name}, temperature" for name in ("random forest", "extra trees", *BOOSTED, "logistic regression")),
)
SLOW, ROUNDS, CLASSES = "catboost", 300, 3
BLOCK, CHOICES = 500, 50


def refits(n: int, every: int, first: int) -> list[int]:
    """Return the numbers of examples after which rivals are fitted anew."""
    if first > LATER:
        return [*range(max(first - every, SOON), n, every)]
    return [*range(SOON, min(LATER, n - 1) + 1, SOON), *range(LATER + every, n, every)]


def weighted(said: np.ndarray, y: np.ndarray, times: list[int]) -> np.ndarray:
    """Return (n, c) means of k rivals' (k, n, c) probabilities, by weights that have lost least so far."""
    right = said[:, np.arange(len(y)), y]
    found, begun = said.mean(axis=0), times[0]
    for n, until in pairwise([*times[1:], len(y)]):
        counts, total = np.zeros(len(said)), np.zeros(n - begun)
        for chosen in range(1, CHOICES + 1):
            lost = np.log(np.maximum((total + right[:, begun:n]) / chosen, LEAST)).sum(axis=1)
            counts[lost.argmax()] += 1
            total += right[lost.argmax(), begun:n]
        found[n:until] = np.einsum("k,knc->nc", counts / CHOICES, said[:, n:until])
    return found


def refitted(name: str, way: str, X: np.ndarray, y: np.ndarray, c: int, times: list[int]) -> np.ndarray:
    """Return (n, c) probabilities by a classifier that is fitted anew again and again, to all examples so far."""
    said = np.full((len(y), c), 1 / c)
    before, present = None, np.arange(c)
    for n, until in pairwise([*times, len(y)]):
        counts = np.bincount(y[:n], minlength=c)
        least = OFTEN if name in BOOSTED else 1 if way == AS_IT_IS else 2
        keep = (counts >= least)[y[:n]]
        if len(np.unique(y[:n][keep])) < 2:
            continue
        model = RIVALS[name]()
        if way != AS_IT_IS:
            model = CalibratedClassifierCV(model, method=way, cv=min(FOLDS, counts[counts >= least].min()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels, codes = np.unique(y[:n][keep], return_inverse=True)  # XGBoost takes no gaps
            try:
                before, present = model.fit(X[:n][keep], codes), labels
            except RuntimeError:  # temperature scaling of probabilities that are 0 may come to NaN
                if before is None:
                    continue
            block = np.tile((counts + 1 / c) / (n + 1), (until - n, 1))
            block[:, present] = 0
            rest = 1 - block.sum(axis=1, keepdims=True)
            block[:, present] = rest * before.predict_proba(X[n:until])
        said[n:until] = block
    return said


def measured(
    data: str, seed: int, steps: int, every: int, first: int, rivals: str
) -> dict[str, dict[str, list[float]]]:
    """Return log loss, accuracy and seconds of everybody on one shuffle of a set, and log losses in blocks."""
    stream = streams.load(data, shuffle=seed) if data in SETS else streams.from_csv(data, -1, shuffle=seed)
    n = min(len(stream), steps)
    X, y = zip(*[(np.asarray(x, float), stream.classes.index(label)) for x, label in stream.take(n)], strict=True)
    X, y, c = np.array(X), np.array(y), len(stream.classes)
    first, names = first if first > LATER else min(first, n // 3), TREES if rivals == "trees" else NAMES
    times, tempered, found, blocks = refits(n, every, first), [], {}, {}
    if rivals == "trees":
        names = [name for name in names if c <= CLASSES or not name.startswith(SLOW)]
    for name in [*names, MEAN, WEIGHTED]:
        begun = time.process_time()
        if name == OURS:
            model, said = venn.Forecaster(stream.classes), np.empty((n, c))
            for i in range(n):
                said[i] = model.predict_one(X[i]).proba
                if i == first:
                    before = model["forecast"].losses
                model.learn_one(X[i], stream.classes[y[i]])
            experts = ((model["forecast"].losses - before) / (n - first)).round(5).tolist()
        elif name == MEAN:
            said = np.mean(tempered, axis=0)
        elif name == WEIGHTED:
            said = weighted(np.array(tempered), y, times)
        else:
            rival, _, way = name.rpartition(", ")
            said = refitted(rival, way, X, y, c, times)
            if way == "temperature":
                tempered.append(said)
        seconds = time.process_time() - begun
        lost, right = -np.log(np.maximum(said[np.arange(n), y], LEAST)), said.argmax(axis=1) == y
        found[name] = [float(lost[first:].mean()), float(right[first:].mean()), seconds]
        blocks[name] = [round(float(lost[at : at + BLOCK].mean()), 5) for at in range(0, n, BLOCK)]
    return {"found": found, "blocks": blocks, "experts": experts}


def table(lines: list[dict]) -> tuple[str, dict[str, float]]:
    """Return the tables, and our loss over the best rival's on each set.

    Means over shuffles, then over sets, and on how many sets the forecaster loses less.
    """
    sets, names = (
        list(dict.fromkeys(line["data"] for line in lines)),
        max((list(line["found"]) for line in lines), key=len),
    )
    mean = {d: {name: np.mean([line["found"][name] for line in lines if line["data"] == d], axis=0) for name in names
                if all(name in line["found"] for line in lines if line["data"] == d)} for d in sets}  # fmt: skip
    rows = [
        "| | log loss | over the forecaster's | forecaster ahead | accuracy | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        own = [d for d in sets if name in mean[d]]
        loss, right, seconds = np.mean([mean[d][name] for d in own], axis=0)
        ratios = [mean[d][name][0] / mean[d][OURS][0] for d in own]
        ahead = "" if name == OURS else f"{sum(ratio > 1 for ratio in ratios)} of {len(own)}"
        shown = f"`{name}`" if name == OURS else name
        rows.append(
            f"| {shown} | {loss:.3f} | {np.exp(np.mean(np.log(ratios))):.2f} | {ahead} | {right:.3f} | {seconds:.1f} |"
        )
    rows += [
        "",
        "| log loss | " + " | ".join(("forecaster", "best rival", "which one", "ratio")) + " |",
        "|---|---|---|---|---|",
    ]
    over = {}
    for d in sets:
        best = min([name for name in mean[d] if name != OURS], key=lambda name, of=mean[d]: of[name][0])
        ours, theirs = mean[d][OURS][0], mean[d][best][0]
        over[d] = ours / theirs
        rows.append(f"| {Path(d).stem} | {ours:.4f} | {theirs:.4f} | {best} | {ours / theirs:.3f} |")
    return "\n".join(rows), over


@command()
def main():
    options = command_options(__doc__, shuffles=1, steps=1500, every=150, first=100, rivals="all", sets=SETS, out=OUT)
    lines = lines_of(options.out)
    if options.rivals == "trees" and SLOW in RIVALS:
        RIVALS[SLOW] = partial(RIVALS[SLOW], iterations=ROUNDS)
    kind = {name: getattr(options, name) for name in ("steps", "every", "first", "rivals")}
    asked = [(seed, data) for seed in range(options.shuffles) for data in options.sets]
    for seed, data in asked:
        how = {"seed": seed, "data": data} | kind
        if any(how.items() <= line.items() for line in lines):
            continue
        line = how | measured(data, seed, options.steps, options.every, options.first, options.rivals)
        lines.append(line)
        append(options.out, line)
    lines = [line for line in lines if (line["seed"], line["data"]) in asked and kind.items() <= line.items()]
    tables, over = table(lines)
    print(tables)
    ratios = [*over.values()]
    return {
        "benchmark": "practitioner", "shuffles": options.shuffles, **kind, "sets": len(over),
        "mean_ratio_to_the_best_rival": float(np.exp(np.mean(np.log(ratios)))), "worst": max(ratios),
    }  # fmt: skip
