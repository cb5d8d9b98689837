"""A classifier is given: how sharp is a forecaster on it, against what people fit to its probabilities?

    STREAMS_DATA=folder python benchmarks/given_sharpness.py [--sets car adult ...]

Four classifiers are fitted to 500 examples of a shuffled set; the next 1900, or all there are, calibrate, predicted
before their labels come. The forecaster learns each; rivals are fitted anew after every 50 to all so far, and say what
the classifier says until then: a temperature; vector scaling (a factor and a shift for each class, held to 1 and 0 as
if by one example); of each class against the others a sigmoid of the logit with Platt's targets, isotonic regression,
beta calibration. They are fitted to probabilities from 1e-6 to 1 - 1e-6; what anyone says below 1e-15 counts as 1e-15.
Classes that the first lack are left out. Prints log losses over that of the best rival on the same set and classifier,
known afterwards, from one number of calibration examples to the next: geometric means.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from workload import command, command_options

import streams
import venn

SETS = ("car", "wine_red", "banknote", "adult", "elec2", "covtype", "mushroom", "optdigits")
CLASSIFIERS = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "naive Bayes": GaussianNB,
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
}
FITTED, COUNTS, LAST, EVERY = 500, (100, 300, 1000, 1900), 2400, 50
ONE_BY_ONE = {"sigmoid": venn.maps.Platt, "isotonic": venn.maps.Isotonic, "beta": venn.maps.BetaCalibration}
NAMES = ("Forecaster", "as it is", "temperature", "vector scaling", *ONE_BY_ONE)


def vector_scaling(z, y):
    """Return the map softmax(a z + b) of least log loss, a and b of each class."""
    c, n, start = z.shape[1], len(y), np.repeat([1.0, 0.0], z.shape[1])

    def loss(ab):
        scaled, truth = ab[:c] * z + ab[c:], np.eye(c)[y]
        off, held = softmax(scaled, axis=1) - truth, ab - start
        slope = np.append((off * z).sum(axis=0), off.sum(axis=0)) + held
        return (held @ held / 2 - (log_softmax(scaled, axis=1) * truth).sum()) / n, slope / n

    ab = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return lambda z: softmax(ab[:c] * z + ab[c:], axis=1)


def calibrated(name, p, y, asked):
    """Return what a rival says where the classifier says `asked`, fitted to what it said and the labels."""
    if name in ONE_BY_ONE:  # beta calibration wants half the logit
        return venn.maps.OneVsAll(ONE_BY_ONE[name]()).fit(logit(p) / 2, y)(logit(asked) / 2)
    return (venn.maps.Temperature().fit if name == "temperature" else vector_scaling)(np.log(p), y)(np.log(asked))


def losses(data, make):
    """Return the (n,) log losses of everybody on the examples after the first."""
    stream = streams.load(data, shuffle=0)
    X, labels = np.asarray(stream.X[:LAST], float), np.array(stream.y[:LAST])
    model = make().fit(X[:FITTED], labels[:FITTED])
    known = np.isin(labels[FITTED:], model.classes_)
    Z, y = X[FITTED:][known], np.searchsorted(model.classes_, labels[FITTED:][known])
    said, ours = {name: model.predict_proba(Z) for name in NAMES}, venn.Forecaster(scorer=model)
    inside = np.clip(said["as it is"], 1e-6, 1 - 1e-6)
    for i, x in enumerate(Z):
        said["Forecaster"][i] = ours.predict_one(x).proba
        ours.learn_one(x, model.classes_[y[i]].item())
    for name in NAMES[2:]:
        for n in range(EVERY, len(y), EVERY):
            said[name][n : n + EVERY] = calibrated(name, inside[:n], y[:n], inside[n : n + EVERY])
    return {name: -np.log(np.maximum(one[np.arange(len(y)), y], 1e-15)) for name, one in said.items()}


@command(threads=None)
def main():
    ratios = {(title, n): [] for title in CLASSIFIERS for n in COUNTS}
    for data in command_options(__doc__, sets=SETS).sets:
        for title, make in CLASSIFIERS.items():
            lost = losses(data, make)
            for start, n in zip((0, *COUNTS), COUNTS, strict=False):
                if len(lost["Forecaster"]) > start:
                    mean = {name: float(one[start:n].mean()) for name, one in lost.items()}
                    yield {"data": data, "classifier": title, "until": n} | mean
                    ratios[title, n].append(np.array([*mean.values()]) / min([*mean.values()][1:]))  # of rivals
    print("| given | until | " + " | ".join((*NAMES, "sets")) + " |\n" + "|---" * (3 + len(NAMES)) + "|")
    pooled = {("all", n): [row for title in CLASSIFIERS for row in ratios[title, n]] for n in COUNTS}
    for (title, n), rows in (ratios | pooled).items():
        over = [f"{ratio:.2f}" for ratio in np.exp(np.log(rows).mean(axis=0))] if rows else []
        print("| " + " | ".join((title, str(n), *over, str(len(rows)))) + " |")
