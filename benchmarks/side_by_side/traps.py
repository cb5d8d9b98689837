"""Awkward input: questions, and what each library says; imports of peers stay inside functions."""

import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import streams
import venn

LIBRARIES = ("ours", "online-cp", "crepes", "mapie", "venn-abers", "river", "scikit-learn")
LONGEST = 150  # characters of a cell


def shown(value):
    """Return a value as short text."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {shown(one)}" for key, one in value.items())
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return shown(value.item())
    if isinstance(value, list | tuple | np.ndarray):
        return "(" + ", ".join(shown(one) for one in value) + ")"
    return str(value)


def outcome(function):
    """Return the result of a function, or the exception and its first words, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = shown(function())
        except Exception as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    kinds = sorted({one.category.__name__ for one in caught})
    return text[:LONGEST] + (f" [{', '.join(kinds)}]" if kinds else "")


def blobs(labels=(0, 1), n=60, seed=0):
    """Return n objects in as many clouds as there are labels, their labels, and one object in the last cloud."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(labels)
    X = rng.normal(size=(n, 2)) * 0.7 + 2 * codes[:, None]
    return X, np.array([labels[k] for k in codes]), np.full(2, 2.0 * (len(labels) - 1))


# What each says after some examples ------------------------------------------------------------------------------


def taught(model, X, y):
    for one, label in zip(X, y.tolist(), strict=True):
        model.learn_one(one, label)
    return model


def ours_says(X, y, x, calibration=None):
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, sorted(set(y.tolist())))
    prediction = taught(venn.TransductiveVennAbers(machine), X, y).predict_one(x)
    return dict(zip(prediction.classes, prediction.proba, strict=True))


def online_cp_says(X, y, x):
    from online_cp.venn import VennAbersPredictor

    model = VennAbersPredictor(scorer="ridge", a=1.0)
    model.learn_initial_training_set(X, y)
    raw = model.predict(x)
    return dict(zip(raw.label_space.tolist(), raw.point, strict=False))


def halves(X, y):
    """Return a classifier fitted to the first half, and the second half, which calibrates it."""
    half = len(y) // 2
    return LogisticRegression().fit(X[:half], y[:half]), (X[half:], y[half:])


def crepes_says(X, y, x, calibration=None):
    from crepes import WrapClassifier

    fitted, rest = halves(X, y)
    model = WrapClassifier(fitted)
    model.calibrate(*(calibration or rest), seed=0)
    return dict(zip(model.learner.classes_.tolist(), model.predict_p(x[None])[0], strict=True))


def mapie_says(X, y, x, calibration=None):
    from mapie.classification import SplitConformalClassifier

    fitted, rest = halves(X, y)
    model = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True).conformalize(*(calibration or rest))
    label, sets = model.predict_set(x[None])
    return {"label": label[0], "in the set": sets[0, :, 0].astype(int)}


def venn_abers_says(X, y, x, calibration=None):
    from venn_abers import VennAbersCalibrator

    fitted, rest = halves(X, y)
    X_cal, y_cal = calibration or rest
    asked = {"p_cal": fitted.predict_proba(X_cal), "y_cal": y_cal, "p_test": fitted.predict_proba(x[None])}
    return VennAbersCalibrator().predict_proba(**asked)[0]


def river_says(X, y, x):
    from river import linear_model

    model = linear_model.LogisticRegression()
    for one, label in zip(X, y.tolist(), strict=True):
        model.learn_one(dict(enumerate(one.tolist())), label)
    return model.predict_proba_one(dict(enumerate(x.tolist())))


def sklearn_says(X, y, x, calibration=None):
    fitted, rest = halves(X, y)
    model = CalibratedClassifierCV(FrozenEstimator(fitted), method="sigmoid").fit(*(calibration or rest))
    return dict(zip(model.classes_.tolist(), model.predict_proba(x[None])[0], strict=True))


SAYS = dict(
    zip(
        LIBRARIES,
        (ours_says, online_cp_says, crepes_says, mapie_says, venn_abers_says, river_says, sklearn_says),
        strict=True,
    )
)


def for_all(make, *without):
    """Return, for each library, a function that answers on the data made by `make`."""
    return {name: (lambda says=says: says(*make())) for name, says in SAYS.items() if name not in without}


def with_nan():
    X, y, x = blobs()
    return X, y, np.array([np.nan, x[1]])


def lacking():
    """Return three clouds, an object of the third, and calibration examples without the third."""
    X, y, x = blobs((0, 1, 2), 90)
    X_cal, y_cal, _ = blobs((0, 1, 2), 90, seed=1)
    return X, y, x, (X_cal[y_cal < 2], y_cal[y_cal < 2])


def ours_lacking():
    X, y, x, given = lacking()
    model = venn.InductiveVennAbers(venn.FrozenScorer(LogisticRegression().fit(X, y)))
    model.learn_many(*given)
    return {"pair of 2": model.predict_one(x).pairs[2]}


# Equal scores, orders --------------------------------------------------------------------------------------------


def both_orders(pair):
    """Return the pairs with 25 ones of 100 first, and last."""
    ones = np.repeat([1, 0], [25, 75])
    return f"{shown(pair(ones))}, sorted the other way {shown(pair(ones[::-1].copy()))}"


def online_cp_ties(y):
    from online_cp.venn import VennAbersPredictor

    model = VennAbersPredictor(scorer="kernel_ridge", a=1.0)
    model.learn_initial_training_set(np.zeros((100, 1)), y)
    raw = model.predict(np.zeros(1))
    return raw.p0, raw.p1


def package_ties(y):
    from venn_abers import VennAbers

    return VennAbers().fit(np.full((100, 2), 0.5), y).predict_proba(np.full((1, 2), 0.5))[1][0]


def mapie_ties(y):
    from mapie.calibration import VennAbersCalibrator

    undecided = DummyClassifier(strategy="uniform").fit(np.zeros((2, 1)), [0, 1])
    model = VennAbersCalibrator(undecided, cv="prefit").fit(np.zeros((100, 1)), y)
    return model.predict_proba(np.zeros((1, 1)), p0_p1_output=True)[1][0]


def five_orders(answer):
    """Return the answers to five orders of one bag of 150 in two clouds that overlap, C = 1000."""
    rng = np.random.default_rng(3)
    y = np.arange(150) % 2
    X = rng.normal(size=(150, 2)) + 0.8 * y[:, None]
    orders = [rng.permutation(150) for _ in range(5)]
    return [answer(X[order], y[order], np.array([0.4, 0.4])) for order in orders]


def ours_svm(X, y, x):
    model = venn.TransductiveVennAbers(venn.OneVsAllSVM(venn.RBF(0.5), 1000.0, [0, 1]), leave_one_out=False)
    return taught(model, X, y).predict_one(x).pairs[1, 0]


def online_cp_svm(X, y, x):
    from online_cp.venn import VennAbersPredictor

    model = VennAbersPredictor(scorer="svm", C=1000.0, sigma=1.0)
    model.learn_initial_training_set(X, y)
    return model.predict(x).p0


# Data frames ------------------------------------------------------------------------------------------


def frame():
    """Return 80 objects as a data frame of two columns, and labels."""
    import pandas as pd

    X, y, _ = blobs(n=80)
    return pd.DataFrame(X, columns=["a", "b"]), y


def ours_frame():
    stream = streams.from_arrays(*frame())
    model = venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, stream.classes))
    return f"{len(venn.replay(stream, model, progress=False))} steps"


def online_cp_frame():
    from online_cp.evaluate import progressive_val_venn
    from online_cp.venn import VennAbersPredictor

    seen = []
    model = VennAbersPredictor(scorer="ridge", a=1.0)
    outcome(lambda: progressive_val_venn(model, *frame(), learn=lambda i, x, y: seen.append(i)))
    return f"{len(seen)} steps"


TRAPS = {
    "100 equal scores, 25 ones: p0, p1. By definition .2475, .2574": {
        "ours": lambda: both_orders(lambda y: venn.maps.venn_abers(np.zeros(100), y, [0.0])[0]),
        "online-cp": lambda: both_orders(online_cp_ties),
        "venn-abers": lambda: both_orders(package_ties),
        "mapie": lambda: both_orders(mapie_ties),
    },
    "Five orders of one bag, SVM, C = 1000: p0 (scikit-learn: the decision value)": {
        "ours": lambda: five_orders(ours_svm),
        "online-cp": lambda: five_orders(online_cp_svm),
        "scikit-learn": lambda: five_orders(
            lambda X, y, x: SVC(C=1000.0, gamma=0.5).fit(X, y).decision_function(x[None])[0]
        ),
    },
    "Labels 1 and 2, an object of class 2": for_all(lambda: blobs((1, 2))),
    "An object with NaN": for_all(with_nan),
    "80 rows as a data frame, as a stream": {"ours": ours_frame, "online-cp": online_cp_frame},
    "Three classes, none of the third calibrates, an object of the third": {
        **for_all(lacking, "online-cp", "river"),
        "ours": ours_lacking,
    },
}


def cells(library):
    """Return a library's answers to all traps that it can be asked."""
    return {question: outcome(answers[library]) for question, answers in TRAPS.items() if library in answers}
