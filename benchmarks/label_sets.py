"""How many labels do sets hold, beside those of the measures LAC and APS around models that are refitted?

    python benchmarks/label_sets.py [--rows 600] [--sets car digits ...] [--seeds 1]

Sets of 3 to 26 classes: files of `streams`, those that come with scikit-learn, and made ones, in a random order.

Ours are the sets of a `Forecaster`, which learns one example after the other. Its rivals are a random forest and
boosted trees, fitted anew after 100, 150, 200, 300, 450, 600 examples, then after every 300: to the first seven tenths
of the examples so far, while the others and all later ones calibrate. Counted from 100 (of a set of fewer than 300
examples from a third on, where the rivals are fitted first) to 2000.

All p-values are smoothed, so that the share of errors is the same for all. Each line: the share of errors and the mean
size at .05 and .1 by everybody, and our size over that of the best rival. Prints the means of these ratios.
"""

import warnings
from itertools import pairwise

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from workload import command, command_options

import streams
import venn
from venn.nonconformity import APS, LAC
from venn.online.forecaster import LAST
from venn.online.forecaster_parts import own_bank, own_parts
from venn.online.outlook import SETS

OURS = "ours"
BUNDLED = ("iris", "wine", "digits")
DATA = ("car", "wine_red", "optdigits", "covtype", "srbct", *BUNDLED, "made5", "made10", "made15", "made26")
LEVELS = (0.05, 0.1)
FIRST, MANY, FITTED = 100, 2000, 1000
REFITS = {
    "forest": lambda: RandomForestClassifier(random_state=0),
    "boosted": lambda: HistGradientBoostingClassifier(random_state=0),
}
MEASURES = {"LAC": LAC, "APS": APS}


class AsGiven:
    """A scorer whose objects are the probabilities."""

    def __init__(self, c):
        self.classes = tuple(range(c))

    def scores(self, x):
        return np.asarray(x, float)

    def score_rows(self, rows):
        return np.array(rows)


def examples(name, rows, seed):
    """Return (n, d) objects and (n,) codes in a random order."""
    if name in BUNDLED:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    elif name.startswith("made"):
        c = int(name.removeprefix("made"))
        X, y = datasets.make_classification(
            max(rows, 2 * FITTED) * 2, 12, n_informative=8, n_classes=c, n_clusters_per_class=1, class_sep=1.2,
            random_state=c,
        )  # fmt: skip
    else:
        stream = streams.load(name)
        X = np.array([np.asarray(x, float) for x, _ in stream])
        y = np.array([stream.classes.index(label) for _, label in stream])
    order = np.random.default_rng(seed).permutation(len(X))[:rows]
    return X[order], y[order]


def by_all_classes(model, X, c):
    """Return (n, c) probabilities by a model that may not know all classes."""
    said = np.zeros((len(X), c))
    said[:, model.classes_] = model.predict_proba(X)
    return said


def own(X, y, c):
    """Return the (n, c) p-values of a forecaster that learns the examples."""
    bank = own_bank(range(c), None, None)
    model = venn.Panel(sets=own_parts(bank, MANY, LAST)[SETS])  # the other parts do not change these
    values = np.ones((len(X), c))
    for i in range(len(X)):
        values[i] = model.predict_one(X[i])["sets"].p_values
        model.learn_one(X[i], int(y[i]))
    return values


def refitted(make, X, y, c):
    """Return (n, c) p-values by each measure around a model that is fitted anew again and again."""
    values = {name: np.ones((len(X), c)) for name in MEASURES}
    times = [min(FIRST, len(X) // 3), *(n for n in (150, 200, 300, 450, *range(600, len(X), 300)) if n < len(X))]
    for n, until in pairwise([*times, len(X)]):
        train = int(0.7 * n)
        said = by_all_classes(make().fit(X[:train], y[:train]), X[train:until], c)
        for name, measure in MEASURES.items():
            model = venn.InductiveConformal(AsGiven(c), measure())
            values[name][n:until] = model.replay_many(said, y[train:until].tolist()).p_values[n - train :]
    return values


def sizes(values, y):
    """Return the share of errors and the mean size at each level."""
    true = values[np.arange(len(y)), y]
    return [[round(float((true <= e).mean()), 4), round(float((values > e).sum(axis=1).mean()), 4)] for e in LEVELS]


def measured(name, rows, seed):
    """Return the line of one set."""
    X, y = examples(name, rows, seed)
    c = int(y.max()) + 1
    begin, values = min(FIRST, len(X) // 3), {OURS: own(X, y, c)}
    for model, make in REFITS.items():
        values |= {f"{model}, {measure}": p for measure, p in refitted(make, X, y, c).items()}
    found = {who: sizes(one[begin:MANY], y[begin:MANY]) for who, one in values.items()}
    ratios = [found[OURS][k][1] / min(found[who][k][1] for who in found if who != OURS) for k in range(len(LEVELS))]
    return {"data": name, "classes": c, "seed": seed, "ratio": [round(r, 4) for r in ratios], "found": found}


@command()
def main():
    warnings.simplefilter("ignore")
    args = command_options(__doc__, rows=600, seeds=1, sets=DATA)
    ratios = []
    for name in args.sets:
        for seed in range(args.seeds):
            one = measured(name, args.rows, seed)
            ratios.append(one["ratio"])
            yield one
    means = np.exp(np.log(ratios).mean(axis=0)).round(3).tolist()
    yield {"benchmark": "label sets", "rows": args.rows, "mean_ratio_at_.05_and_.1": means}
