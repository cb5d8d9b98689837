"""The answers of each library where things go wrong; imports of peers stay inside functions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np

import streams
import venn

LIBRARIES = ("ours", "online-cp", "crepes", "mapie", "venn-abers", "river", "scikit-learn")
LONGEST = 150  # characters of a cell


def shown(value):
    """Return a value as short text."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {shown(one)}" for key, one in value.items())
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(value)
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
    text = text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"
    kinds = sorted({one.category.__name__ for one in caught})
    return text + (f" [{', '.join(kinds)}]" if kinds else "")


def blobs(labels=(0, 1), n=60, seed=0):
    """Return n objects in as many clouds as there are labels, their labels, and one object in the last cloud."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(labels)
    X = rng.normal(size=(n, 2)) * 0.7 + 2 * codes[:, None]
    return X, np.array([labels[k] for k in codes]), np.full(2, 2.0 * (len(labels) - 1))


# ------------------------------------------------------------- what each says after learning some examples


def ours_says(X, y, x, declared=None):
    classes = declared or sorted(set(y.tolist()))
    model = venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, classes))
    for one, label in zip(X, y.tolist(), strict=True):
        model.learn_one(one, label)
    prediction = model.predict_one(x)
    return dict(zip(prediction.classes, prediction.proba, strict=True))


def online_cp_says(X, y, x):
    from online_cp.venn import NearestNeighboursVennPredictor, VennAbersPredictor

    def one(model):
        model.learn_initial_training_set(X, y)
        raw = model.predict(x)
        return dict(zip(raw.label_space.tolist(), raw.point, strict=False))

    abers = outcome(lambda: one(VennAbersPredictor(scorer="ridge", a=1.0)))
    neighbours = outcome(lambda: one(NearestNeighboursVennPredictor(k=3)))
    return f"Abers {abers}; neighbours {neighbours}"


def logistic(X, y):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(X, y)


def halves(X, y):
    """Return a classifier fitted to the first half, and the second half, which calibrates it."""
    half = len(y) // 2
    return logistic(X[:half], y[:half]), (X[half:], y[half:])


def crepes_says(X, y, x, calibration=None, **options):
    from crepes import WrapClassifier

    fitted, rest = halves(X, y)
    model = WrapClassifier(fitted)
    model.calibrate(*(calibration or rest), seed=0, **options)
    return dict(zip(model.learner.classes_.tolist(), model.predict_p(x[None])[0], strict=True))


def mapie_says(X, y, x, calibration=None):
    from mapie.classification import SplitConformalClassifier

    fitted, rest = halves(X, y)
    model = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True)
    model.conformalize(*(calibration or rest))
    label, sets = model.predict_set(x[None])
    return {"label": label[0], "in the set": sets[0, :, 0].astype(int)}


def mapie_abers_says(X, y, x, calibration=None):
    from mapie.calibration import VennAbersCalibrator

    fitted, rest = halves(X, y)
    return VennAbersCalibrator(fitted, cv="prefit").fit(*(calibration or rest)).predict_proba(x[None])[0]


def venn_abers_says(X, y, x, calibration=None):
    from venn_abers import VennAbersCalibrator

    fitted, rest = halves(X, y)
    X_cal, y_cal = calibration or rest
    asked = {"p_cal": fitted.predict_proba(X_cal), "y_cal": y_cal, "p_test": fitted.predict_proba(x[None])}
    return VennAbersCalibrator().predict_proba(**asked)[0]


def river_says(X, y, x, model=None):
    from river import linear_model

    model = model or linear_model.LogisticRegression()
    for one, label in zip(X, y.tolist(), strict=True):
        model.learn_one(dict(enumerate(one.tolist())), label)
    return model.predict_proba_one(dict(enumerate(x.tolist())))


def river_softmax_says(X, y, x):
    from river import linear_model

    return river_says(X, y, x, linear_model.SoftmaxRegression())


def sklearn_says(X, y, x, calibration=None, method="sigmoid"):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    fitted, rest = halves(X, y)
    model = CalibratedClassifierCV(FrozenEstimator(fitted), method=method).fit(*(calibration or rest))
    return dict(zip(model.classes_.tolist(), model.predict_proba(x[None])[0], strict=True))


SAYS = {
    "ours": ours_says,
    "online-cp": online_cp_says,
    "crepes": crepes_says,
    "mapie": mapie_says,
    "venn-abers": venn_abers_says,
    "river": river_says,
    "scikit-learn": sklearn_says,
}


def for_all(make, *without):
    """Return, for each library, a function that answers on the data made by `make`."""
    return {name: (lambda says=says: says(*make())) for name, says in SAYS.items() if name not in without}


# ---------------------------------------------------------------------------------------------- tied scores


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


def undecided():
    """A classifier of scikit-learn that gives every object and class one half."""
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="uniform").fit(np.zeros((2, 1)), [0, 1])


def mapie_ties(y):
    from mapie.calibration import VennAbersCalibrator

    model = VennAbersCalibrator(undecided(), cv="prefit").fit(np.zeros((100, 1)), y)
    return model.predict_proba(np.zeros((1, 1)), p0_p1_output=True)[1][0]


def sklearn_ties(y):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    model = CalibratedClassifierCV(FrozenEstimator(undecided()), method="isotonic").fit(np.zeros((100, 1)), y)
    return model.predict_proba(np.zeros((1, 1)))[0, 1]


def ours_transductive_ties(y):
    model = venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, [0, 1]))
    for label in y.tolist():
        model.learn_one([0.0], label)
    return model.predict_one([0.0]).pairs[1]


# ------------------------------------------------------------------------------------------------- orders


def five_orders(answer):
    """Return the answers to five orders of one bag of 150 in two clouds that overlap, C = 1000."""
    rng = np.random.default_rng(3)
    y = np.arange(150) % 2
    X = rng.normal(size=(150, 2)) + 0.8 * y[:, None]
    orders = [rng.permutation(150) for _ in range(5)]
    return [answer(X[order], y[order], np.array([0.4, 0.4])) for order in orders]


def online_cp_svm(X, y, x):
    from online_cp.venn import VennAbersPredictor

    model = VennAbersPredictor(scorer="svm", C=1000.0, sigma=1.0)
    model.learn_initial_training_set(X, y)
    return model.predict(x).p0


def ours_svm(X, y, x):
    model = venn.TransductiveVennAbers(venn.OneVsAllSVM(venn.RBF(0.5), 1000.0, [0, 1]), leave_one_out=False)
    for one, label in zip(X, y.tolist(), strict=True):
        model.learn_one(one, label)
    return model.predict_one(x).pairs[1, 0]


def sklearn_svm(X, y, x):
    from sklearn.svm import SVC

    return SVC(C=1000.0, gamma=0.5).fit(X, y).decision_function(x[None])[0]


# -------------------------------------------------------------------------------------------- new classes


def online_cp_new_class():
    from online_cp.venn import NearestNeighboursVennPredictor

    X, y, x = blobs()
    model = NearestNeighboursVennPredictor(k=3)
    model.learn_initial_training_set(X, y)
    model.learn_one(x + 2, 2)
    raw = model.predict(x + 2)
    return dict(zip(raw.label_space.tolist(), raw.point, strict=True))


def ours_new_class():
    X, y, x = blobs()
    return ours_says(np.vstack([X, x + 2]), np.append(y, 2), x, declared=[0, 1])


def ours_late_class():
    X, y, x = blobs()
    return ours_says(np.vstack([X, x + 2]), np.append(y, 2), x + 2, declared=[0, 1, 2])


def river_new_class(make):
    X, y, x = blobs()
    return river_says(np.vstack([X, x + 2]), np.append(y, 2), x + 2, make())


# --------------------------------------------------------------------------------------------- data frames


def frame():
    """Return 80 objects as a data frame of two columns, and labels."""
    import pandas as pd

    X, y, _ = blobs(n=80)
    return pd.DataFrame(X, columns=["a", "b"]), y


def online_cp_frame():
    from online_cp.evaluate import progressive_val_venn
    from online_cp.venn import NearestNeighboursVennPredictor, VennAbersPredictor

    def steps(model):
        seen = []

        def learn(i, x, y):
            seen.append(i)
            return False

        progressive_val_venn(model, *frame(), learn=learn)
        return f"{len(seen)} steps"

    abers = outcome(lambda: steps(VennAbersPredictor(scorer="ridge", a=1.0)))
    return f"Abers {abers}; neighbours {outcome(lambda: steps(NearestNeighboursVennPredictor()))}"


def ours_frame():
    X, y = frame()
    stream = streams.from_arrays(X, y)
    model = venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, stream.classes))
    loop = outcome(lambda: [model.predict_one(x) for x, _ in zip(X, y, strict=False)])
    return f"{len(venn.replay(stream, model, progress=False))} steps; looped over itself {loop}"


def rows_of_frame(library):
    """Return how many answers a library gives for a data frame, having been fitted to one."""
    X, y = frame()
    if library == "river":
        import pandas as pd
        from river import stream

        return f"{sum(1 for _ in stream.iter_pandas(X, pd.Series(y)))} steps by iter_pandas"
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(X, y)
    if library == "crepes":
        from crepes import WrapClassifier

        model = WrapClassifier(fitted)
        model.calibrate(X, y)
        return f"{len(model.predict_p(X))} rows"
    if library == "mapie":
        from mapie.classification import SplitConformalClassifier

        return f"{len(SplitConformalClassifier(fitted, prefit=True).conformalize(X, y).predict_set(X)[1])} rows"
    if library == "venn-abers":
        from venn_abers import VennAbersCalibrator

        model = VennAbersCalibrator(LogisticRegression(), inductive=False, n_splits=3)
        model.fit(X, y)
        return f"{len(model.predict_proba(X))} rows"
    return f"{len(fitted.predict_proba(X))} rows"


# --------------------------------------------------------------------------------------------- martingales


def bet(library, ps):
    """Return a martingale of a library that has bet on some p-values, and its value."""
    if library == "online-cp":
        from online_cp.martingale import SimpleJumper

        one = SimpleJumper()
        for p in ps:
            one.update(p)
        return one, {"M": one.M, "log": one.logM}
    if library == "crepes":
        from crepes.martingales import SimpleJumper

        one = SimpleJumper()
        return one, {"M": one.apply(np.array(ps))[-1]}
    if library == "mapie":
        from mapie.exchangeability_testing import OnlineMartingaleTest

        one = OnlineMartingaleTest(warn=False, random_state=0)
        for p in ps:
            one.update_simple_jumper_martingale(p)
        return one, {"M": one.current_martingale_value}
    one = venn.monitors.SimpleJumper()
    for p in ps:
        one.update(p)
    return one, {"log": one.log}


BETTORS = ("ours", "online-cp", "crepes", "mapie")
PS = [0.3, 0.01, 0.2, 0.6, 0.02]


def pickled(library):
    one, _ = bet(library, PS)
    return f"{len(pickle.dumps(one))} bytes"


def numbers_kept(one):
    """Return how many numbers an object holds in its lists, arrays and dicts, one level down."""
    held = [value for value in vars(one).values() if isinstance(value, list | dict | np.ndarray)]
    return sum(value.size if isinstance(value, np.ndarray) else len(value) for value in held)


def grown(library):
    few, many = (numbers_kept(bet(library, np.random.default_rng(0).random(n).tolist())[0]) for n in (100, 5000))
    return f"{few} after 100, {many} after 5000"


def after(library, p):
    """Return the value of a martingale after some p-values, and after one more."""
    before = bet(library, PS)[1]
    return f"{shown(before)} before; after {shown(bet(library, [*PS, p])[1])}"


# ------------------------------------------------------------------------------------ calibration sets


def lacking():
    """Return three clouds, an object of the third, and calibration examples without the third."""
    X, y, x = blobs((0, 1, 2), 90)
    X_cal, y_cal, _ = blobs((0, 1, 2), 90, seed=1)
    return X, y, x, (X_cal[y_cal < 2], y_cal[y_cal < 2])


def ours_lacking():
    X, y, x, (X_cal, y_cal) = lacking()
    scorer = venn.FrozenScorer(logistic(X, y))
    model = venn.InductiveConformal(scorer, label_conditional=True)
    abers = venn.InductiveVennAbers(scorer)
    for one in (model, abers):
        one.learn_many(X_cal, y_cal)
    return {"p by class": model.predict_one(x).p_values, "pair of 2": abers.predict_one(x).pairs[2]}


def crepes_lacking():
    overall = outcome(lambda: crepes_says(*lacking()))
    return f"{overall}; by class {outcome(lambda: crepes_says(*lacking(), class_cond=True))}"


def mapie_lacking():
    return f"sets {outcome(lambda: mapie_says(*lacking()))}; Abers {outcome(lambda: mapie_abers_says(*lacking()))}"


# -------------------------------------------------------------------------------------------- small inputs


def online_cp_one_row():
    from online_cp.venn import NearestNeighboursVennPredictor, VennAbersPredictor

    def one(model):
        model.learn_one(np.array([0.5, 0.1]), 1)
        return model.predict(np.array([0.5, 0.1])).point

    abers = outcome(lambda: one(VennAbersPredictor(scorer="ridge", a=1.0)))
    return f"Abers {abers}; neighbours {outcome(lambda: one(NearestNeighboursVennPredictor()))}"


def mapie_test(X, y):
    """MAPIE's martingale test with a fitted classifier."""
    from mapie.classification import SplitConformalClassifier
    from mapie.exchangeability_testing import OnlineMartingaleTest

    estimator = SplitConformalClassifier(logistic(X, y), prefit=True)
    return OnlineMartingaleTest(estimator, task="classification", warn=False, random_state=0)


def mapie_one_row():
    test = mapie_test(*blobs()[:2])
    return {"martingale": test.update(np.array([[0.5, 0.1]]), np.array([1])).current_martingale_value}


def ours_one_row():
    model = venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, [0, 1]))
    model.learn_one([0.5, 0.1], 1)
    return model.predict_one([0.5, 0.1]).proba


def online_cp_flat():
    from online_cp.venn import NearestNeighboursVennPredictor

    model = NearestNeighboursVennPredictor(k=1)
    model.learn_initial_training_set(np.arange(6.0), np.array([0, 1, 0, 1, 0, 1]))
    return f"X of shape {model.X.shape}; {outcome(lambda: model.predict(np.arange(6.0)).point)}"


def mapie_flat():
    X, y, _ = blobs()
    test = mapie_test(X[:, :1], y)
    return f"{len(test.update(np.arange(6.0), np.array([0, 1] * 3)).pvalue_history)} steps"


def ours_flat():
    model = venn.InductiveConformal(venn.FrozenScorer(logistic(*blobs()[:2])))
    model.learn_many(np.arange(6.0), [0, 1, 0, 1, 0, 1])
    return len(model.predict_many([[0.0, 0.0]]))


# --------------------------------------------------------------------------------------- exact 0 and 1


def apart():
    """Return two clouds that do not touch, and an object in the midst of the second."""
    X, y, x = blobs()
    return X + 6 * y[:, None], y, x + 6


def ours_sure():
    X, y, x = apart()
    model = venn.ScoreCalibrator(
        venn.LeastSquaresSVM(venn.RBF(0.05), 1.0, [0, 1]), venn.maps.Isotonic(), venn.predictors.LeaveOneOutScores()
    )
    for one, label in zip(X, y.tolist(), strict=True):
        model.learn_one(one, label)
    record = venn.Record((0, 1), ("isotonic",))
    record.update({"isotonic": model.predict_one(x)}, 0)
    proba = model.predict_one(x).proba
    means = record.means()["isotonic"]
    zeros = {key: value for key, value in means.items() if "zero" in key or "clip" in key}
    return {"isotonic": proba, "log loss": means["log_loss"], **zeros, "Abers": ours_says(X, y, x)[0]}


def sklearn_sure():
    from sklearn.metrics import log_loss

    proba = sklearn_says(*apart(), method="isotonic")
    loss = log_loss([0], [[proba[0], proba[1]]], labels=[0, 1])
    return {"isotonic": list(proba.values()), "log_loss": loss}


def river_sure():
    from river import metrics

    metric = metrics.LogLoss()
    metric.update(False, {False: 0.0, True: 1.0})
    return {"LogLoss of probability 0": metric.get()}


def with_nan():
    X, y, x = blobs()
    return X, y, np.array([np.nan, x[1]])


def with_infinity():
    X, y, x = blobs()
    return X, y, np.array([np.inf, x[1]])


def learned_nan():
    X, y, x = blobs()
    X[7, 0] = np.nan
    return X, y, x


def only(*labels):
    return lambda: blobs(labels)


def betting(function):
    return {name: (lambda name=name: function(name)) for name in BETTORS}


def with_new_class():
    X, y, x = blobs()
    return np.vstack([X, x + 2]), np.append(y, 2), x + 2
