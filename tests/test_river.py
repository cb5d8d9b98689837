"""River both ways: its own checks, its evaluation beside our replay, classes and features that come and go."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import re

import numpy as np
import pytest

river = pytest.importorskip("river")

from river import checks, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing  # noqa: E402

import streams  # noqa: E402
import venn  # noqa: E402
from streams import Nominal, Numeric, Ordinal, Scaling  # noqa: E402
from streams.river import from_river  # noqa: E402
from venn.adapters.river import CHANGING_FEATURES, RiverClassifier  # noqa: E402
from venn.adapters.river_model import FromRiver  # noqa: E402


def machine(classes):
    return venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=classes)


def counting(classes):
    return venn.TransductiveVenn(machine(classes), venn.Deleted(venn.Argmax()))


def taught(given, rows):
    """Return a model that has learned these rows and no others."""
    model = RiverClassifier(given)
    for x, y in rows:
        model.learn_one(x, y)
    return model


def windowed(classes):
    """What the checks of thousands of steps are made with."""
    return venn.TransductiveVenn(venn.SlidingWindow(machine(classes), 20), venn.Deleted(venn.Argmax()))


# River's own checks ---------------------------------------------------------------------------------


def all_checks(name, model):
    each = {check.__name__: check for check in checks.yield_checks(model)}  # on one set of each kind is enough
    for number, check in enumerate(each.values()):
        yield pytest.param(model, check, id=f"{name}-{check.__name__}-{number}")


DECLARED = RiverClassifier(windowed([False, True]), missing=0.0, ignore_unknown=True)
AS_THEY_COME = RiverClassifier(windowed, missing=0.0, ignore_unknown=True)
STRICT = RiverClassifier(windowed([False, True]))


@pytest.mark.parametrize(
    ("model", "check"), [*all_checks("declared", DECLARED), *all_checks("as_they_come", AS_THEY_COME)]
)
def test_river_check(model, check):
    assert not model._unit_test_skips()
    check(model.clone())


def test_without_a_filling_value_the_checks_of_changing_features_are_refused_and_no_others():
    skipped = STRICT._unit_test_skips()
    assert skipped == CHANGING_FEATURES
    refused = set()
    for check in checks.yield_checks(STRICT):
        if check.__name__ in skipped:
            with pytest.raises(ValueError, match=r"x must have (the|no) features"):
                check(STRICT.clone())
            refused.add(check.__name__)
    assert refused == skipped


def test_without_a_filling_value_river_finds_nothing_else():
    checks.check_estimator(
        RiverClassifier(venn.TransductiveVenn(venn.machines.NearestCentroid([False, True]), venn.Argmax()))
    )


# Beside our own loop --------------------------------------------------------------------------------


class Steps:
    """The rows of a stream, as dicts."""

    def __init__(self, stream):
        self.stream = stream

    def __iter__(self):
        for x, y in self.stream:
            yield dict(zip(self.stream.features, x.tolist(), strict=True)), y


@pytest.fixture(scope="module")
def car():
    return streams.load("car", shuffle=0).take(120)


def test_progressive_validation_gives_the_figures_of_replay(car):
    record = venn.replay(car, counting(car.classes))
    metric = metrics.LogLoss() if len(car.classes) == 2 else metrics.CrossEntropy()
    model = RiverClassifier(counting(car.classes), features=car.features)
    accuracy = metrics.Accuracy()
    evaluate.progressive_val_score(Steps(car), model.clone(), accuracy)
    evaluate.progressive_val_score(Steps(car), model, metric)
    ours = record["TransductiveVenn"]
    assert accuracy.get() == ours.accuracy[-1]
    assert math.isclose(metric.get(), ours.log_loss[-1], rel_tol=1e-9)


def test_a_delay_is_that_of_a_teacher(car):
    rows = [(x | {"time": float(i)}, y) for i, (x, y) in enumerate(Steps(car))]
    model = RiverClassifier(counting(car.classes), features=car.features, ignore_unknown=True)
    found = metrics.Accuracy()
    evaluate.progressive_val_score(rows, model, found, moment="time", delay=7)

    slow, right, asked = counting(car.classes), 0, {}
    for event in streams.teach(car, streams.Delayed(6)):  # river reveals just before the seventh later question
        if hasattr(event, "x"):
            asked[event.id] = event.x, slow.predict_one(event.x).label
        else:
            x, label = asked.pop(event.id)
            right += label == event.y
            slow.learn_one(x, event.y)
    assert found.get() == right / len(car)


def test_in_a_pipeline_it_learns_what_the_scaler_gives():
    rows = list(datasets.Phishing().take(60))
    pipeline = preprocessing.StandardScaler() | RiverClassifier(counting([False, True]))
    scaler, alone = preprocessing.StandardScaler(), RiverClassifier(counting([False, True]))
    for x, y in rows:
        said = pipeline.predict_proba_one(x)
        assert said == alone.predict_proba_one(scaler.transform_one(x))
        pipeline.learn_one(x, y)
        scaler.learn_one(x)
        alone.learn_one(scaler.transform_one(x), y)


def test_log_loss_of_river_takes_it():
    model = RiverClassifier(counting([False, True]))
    score = evaluate.progressive_val_score(datasets.Phishing().take(80), model, metrics.LogLoss() + metrics.Accuracy())
    assert all(math.isfinite(one) for one in score.get())


# Classes that come undeclared -----------------------------------------------------------------------


def three(seed, n=40):
    """Rows of few values, ties and duplicates; the third class comes late, the fourth at the end."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        y = "north" if i == n - 3 else "west" if i > 20 and rng.random() < 0.4 else ["south", "east"][rng.integers(2)]
        yield {"a": float(rng.integers(4)), "b": float(rng.integers(3)) + len(y)}, y


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("declared", [None, ["south"]])
def test_a_new_class_makes_the_predictor_that_had_known_it(seed, declared):
    model = RiverClassifier(counting, classes=declared)
    past = []
    for x, y in three(seed):
        before = set(declared or ()) | {label for _, label in past}
        known = [*(declared or []), *sorted(before - set(declared or ()))]
        if len(known) < 2:
            assert model.predict_proba_one(x) == dict.fromkeys(known, 1.0)
            assert model.predict_interval_one(x) == dict.fromkeys(known, (0.0, 1.0))
            assert model.predict_one(x) == (known[0] if known else None)
        else:
            fresh = counting(known)
            for point, label in past:
                fresh.learn_one(point, label)
            prediction = fresh.predict_one([x["a"], x["b"]])
            assert model.predict_proba_one(x) == dict(zip(known, prediction.proba.tolist(), strict=True))
            assert model.predict_one(x) == prediction.label
            rows = prediction.probabilities
            for k, label in enumerate(known):
                assert model.predict_interval_one(x)[label] == (min(rows[:, k]), max(rows[:, k]))
        model.learn_one(x, y)
        past.append(([x["a"], x["b"]], y))
    assert len(known) == 4


def test_labels_of_every_kind_and_in_any_order_of_arrival():
    for labels in ([1, 2], [-1, 1], [np.int64(5), np.int64(7)], ["a", "b"], [True, False], [np.bool_(True), False]):
        forth, back = RiverClassifier(counting), RiverClassifier(counting)
        rows = [({"a": float(i)}, labels[i % 2]) for i in range(8)]
        for row in rows:
            forth.learn_one(*row)
        for row in reversed(rows):
            back.learn_one(*row)
        for model in (forth, back):
            assert set(model.predict_proba_one({"a": 3.0})) == set(labels)
            assert not any(isinstance(label, np.generic) for label in model.predict_proba_one({"a": 3.0}))
        assert list(forth.predict_proba_one({"a": 1.0})) == list(back.predict_proba_one({"a": 1.0}))


def test_a_class_that_cannot_be_learned_changes_nothing():
    def refusing(classes):
        if len(classes) > 2:
            raise ValueError("two classes only")
        return counting(classes)

    rows = [({"a": float(i)}, i % 2) for i in range(6)]
    model = taught(refusing, rows)
    before = model.predict_proba_one({"a": 2.0})
    with pytest.raises(ValueError, match="two classes only"):
        model.learn_one({"a": 2.0}, 2)
    assert model.predict_proba_one({"a": 2.0}) == before
    model.learn_one({"a": 2.0}, 0)
    other = taught(refusing, [*rows, ({"a": 2.0}, 0)])
    assert model.predict_proba_one({"a": 2.0}) == other.predict_proba_one({"a": 2.0})


def test_declared_classes_are_all_there_are():
    model = RiverClassifier(counting(["no", "yes"]))
    with pytest.raises(ValueError, match="y must be one of the classes"):
        model.learn_one({"a": 1.0}, "maybe")
    assert model.predict_proba_one({"a": 1.0}) == {"no": 0.5, "yes": 0.5}
    model.learn_one({"b": 1.0}, "yes")  # a refused example names no features


def test_errors_of_sets_exceed_a_conformal_predictors_by_one_for_each_new_class():
    rows = list(three(3, 60))
    known = sorted({y for _, y in rows})
    model, whole, new = RiverClassifier(venn_conformal), venn_conformal(known), 0
    seen, errors, least = set(), 0, 0
    for x, y in rows:
        errors += y not in model.predict_set_one(x, 0.2)
        least += y not in whole.predict_one([x["a"], x["b"]]).set(0.2)
        new += y not in seen
        seen.add(y)
        model.learn_one(x, y)
        whole.learn_one([x["a"], x["b"]], y)
    assert new == 4
    assert errors <= least + new
    with pytest.raises(NotImplementedError, match="p-values"):
        model.predict_proba_one(x)
    with pytest.raises(NotImplementedError, match="no intervals"):
        model.predict_interval_one(x)
    assert model.predict_one(x) in seen


def venn_conformal(classes):
    return venn.Conformal(machine(classes), label_conditional=True)


# What stands before and behind ----------------------------------------------------------------------


def test_the_predictor_given_is_not_taught_and_a_clone_starts_from_it():
    given = counting(["no", "yes"])
    given.learn_one([0.0], "no")
    model = RiverClassifier(given)
    model.learn_one({"a": 1.0}, "yes")
    assert given.machine.n == 1
    model.learn_one({"a": 2.0}, "no")
    rows = [({"a": 0.0}, "no"), ({"a": 1.0}, "yes"), ({"a": 2.0}, "no")]
    asked = {"a": 0.5}
    assert model.predict_proba_one(asked) == taught(counting(["no", "yes"]), rows).predict_proba_one(asked)
    assert model.clone().predict_proba_one(asked) == taught(counting(["no", "yes"]), rows[:1]).predict_proba_one(asked)


def test_pickle_and_copy_go_on_as_the_original():
    model = RiverClassifier(functools.partial(counting))
    rows = list(three(0))
    for row in rows[:25]:
        model.learn_one(*row)
    x = rows[30][0]
    before = model.predict_proba_one(x)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for row in rows[25:]:
            twin.learn_one(*row)
        assert twin.predict_proba_one(x) == taught(functools.partial(counting), rows).predict_proba_one(x)
    assert model.predict_proba_one(x) == before


def test_class_intervals_are_by_class():
    model = RiverClassifier(venn.TransductiveVennAbers(machine([0, 1, 2])))
    for i in range(12):
        model.learn_one({"a": float(i % 4)}, i % 3)
    prediction = model.prediction_one({"a": 1.0})
    pairs = {label: (min(pair), max(pair)) for label, pair in zip([0, 1, 2], prediction.pairs, strict=True)}
    assert model.predict_interval_one({"a": 1.0}) == pairs


two = [False, True]


class NotAvailable:
    """Like pandas.NA: what is asked of it has no truth value."""

    def __eq__(self, other):
        return self

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError

    def __repr__(self):
        return "NA"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: RiverClassifier("venn"), TypeError, "predictor must be a predictor or a Forecaster, or a function"),
        (lambda: RiverClassifier(counting(two), classes=two), ValueError, "classes must be None for a predictor"),
        (lambda: RiverClassifier(lambda classes: 7, classes=two), TypeError, "function that makes a predictor of"),
        (lambda: RiverClassifier(lambda classes: counting([0, 2]), classes=two), TypeError, "of classes (False, True)"),
        (lambda: RiverClassifier(counting, classes="ab"), TypeError, "classes must be a sequence of labels"),
        (lambda: RiverClassifier(counting, classes=["a", "a"]), ValueError, "classes must be distinct"),
        (lambda: RiverClassifier(counting, missing=np.nan), ValueError, "missing must be a finite number, got nan"),
        (lambda: RiverClassifier(counting, missing=True), TypeError, "missing must be a finite number, got True"),
        (lambda: RiverClassifier(counting, features="ab"), TypeError, "features must be a sequence of names"),
        (lambda: RiverClassifier(counting, features=[]), ValueError, "features must be distinct and at least one"),
        (lambda: RiverClassifier(counting, ignore_unknown=1), TypeError, "ignore_unknown must be True or False"),
        (lambda: FromRiver(naive_bayes.GaussianNB, two), TypeError, "model must be a classifier of river"),
        (lambda: FromRiver(linear_model.LinearRegression(), two), TypeError, "model must be a classifier of river"),
        (lambda: FromRiver(linear_model.LogisticRegression(), "abc"), TypeError, "classes must be a sequence"),
        (lambda: FromRiver(linear_model.LogisticRegression(), [0, 1, 2]), ValueError, "OneVsRestClassifier(model)"),
        (lambda: FromRiver(naive_bayes.GaussianNB(), two, features="ab"), TypeError, "features must be a sequence"),
    ],
)
def test_refuses_parameters(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y", "kind", "message"),
    [
        ([1.0, 2.0], 0, TypeError, "x must be a dict from feature to number, got a list"),
        (np.zeros(2), 0, TypeError, "got a ndarray"),
        ("ab", 0, TypeError, "got a str"),
        ({"a": 1.0}, 0, ValueError, "got no 'b': missing=0.0"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, 0, ValueError, "got 'c': ignore_unknown=True"),
        ({"a": 1.0, "b": "red"}, 0, TypeError, "x must hold numbers, got 'red' for feature 'b': encode it"),
        ({"a": 1.0, "b": True}, 0, TypeError, "got True for feature 'b': make it 0 and 1"),
        ({"a": 1.0, "b": None}, 0, TypeError, "got None for feature 'b'"),
        ({"a": np.nan, "b": 1}, 0, ValueError, "x must be finite, got nan for feature 'a'"),
        ({"a": 1.0, "b": 1}, None, ValueError, "y must be a label, got None"),
        ({"a": 1.0, "b": 1}, np.nan, ValueError, "y must be a label, got nan"),
        ({"a": 1.0, "b": 1}, [0], TypeError, "y must be a hashable label, got [0]"),
        ({"a": 1.0, "b": 1}, NotAvailable(), ValueError, "y must be a label, got NA"),
        ({"a": 1.0, "b": 1}, True, ValueError, "y must not be equal in Python to the class 1, got True"),
        (
            {"a": 1.0, "b": 10**400},
            0,
            ValueError,
            "x must be finite as float64, got a number too large for feature 'b'",
        ),
    ],
)
@pytest.mark.parametrize("make", [counting, counting([0, 1])], ids=["as_they_come", "declared"])
def test_refuses_examples_and_loses_nothing(make, x, y, kind, message):
    model = RiverClassifier(make)
    for i in range(4):
        model.learn_one({"a": float(i), "b": i}, i % 2)
    before = pickle.dumps(model)
    with pytest.raises(kind) as caught:
        model.learn_one(x, y)
    assert message in str(caught.value)
    good = [({"a": float(i), "b": i}, i % 2) for i in range(4)]
    assert model.predict_proba_one(good[0][0]) == taught(make, good).predict_proba_one(good[0][0])
    if not message.startswith("y"):
        with pytest.raises(kind):
            model.predict_proba_one(x)
    assert len(pickle.dumps(model)) == len(before)


def test_an_object_without_features_is_refused():
    with pytest.raises(ValueError, match="at least one feature, got none"):
        RiverClassifier(counting, missing=0.0).predict_one({})


def test_filled_in_features_are_what_was_said():
    filled = RiverClassifier(counting([0, 1]), features=["a", "b"], missing=-1.0, ignore_unknown=True)
    plain = RiverClassifier(counting([0, 1]))
    for i in range(8):
        filled.learn_one({"a": float(i % 3), "zzz": 7.0} | ({"b": 2.0} if i % 2 else {}), i % 2)
        plain.learn_one({"b": 2.0 if i % 2 else -1.0, "a": float(i % 3)}, i % 2)
    assert filled.predict_interval_one({"a": 1.0}) == plain.predict_interval_one({"a": 1.0, "b": -1.0})


# Its classifiers as our predictors ------------------------------------------------------------------


def test_a_model_of_river_says_here_what_it_says_there(car):
    theirs, ours = naive_bayes.GaussianNB(), FromRiver(naive_bayes.GaussianNB(), car.classes, car.features)
    for (x, y), (row, _) in zip(car, Steps(car), strict=True):
        said = theirs.predict_proba_one(row)
        forecast = ours.predict_one(x)
        assert forecast.guaranteed == "nothing"
        wanted = [said.get(label, 0.0) for label in car.classes] if said else [1 / len(car.classes)] * len(car.classes)
        assert np.allclose(forecast.proba, wanted, rtol=1e-12, atol=0)
        theirs.learn_one(row, y)
        ours.learn_one(x, y)


def test_a_binary_model_is_told_false_and_true():
    """Any other label counts as true there: of "no" and "yes" it would learn that all are alike."""
    ours = FromRiver(linear_model.LogisticRegression(), ["no", "yes"])
    theirs = linear_model.LogisticRegression()
    for i in range(30):
        ours.learn_one([i % 3 - 1.0], "yes" if i % 3 == 2 else "no")
        theirs.learn_one({"x0": i % 3 - 1.0}, i % 3 == 2)
    proba = ours.predict_one([1.0]).proba
    assert proba[1] == theirs.predict_proba_one({"x0": 1.0})[True]
    assert proba[1] > 0.5 > ours.predict_one([-1.0]).proba[1]


def test_it_stands_in_a_panel_watched_and_protected():
    rows = [(np.array([float(i % 5), float(i % 2)]), i % 2) for i in range(40)]
    model = FromRiver(preprocessing.StandardScaler() | linear_model.LogisticRegression(), [0, 1])
    panel = venn.Panel(river=model, protected=venn.predictors.Protected(FromRiver(naive_bayes.GaussianNB(), [0, 1])),
                       venn=counting([0, 1]))  # fmt: skip
    record = venn.replay(rows, panel, monitors={"river": venn.Monitor([0, 1])})
    assert len(record) == 40
    assert record["river"].accuracy[-1] > 0.8
    with pytest.raises(ValueError, match="y must be one of the classes"):
        panel.learn_one(rows[0][0], 2)
    assert panel["venn"].machine.n == 40


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0], "x must have 2 features, got 1"),
        ([[1.0, 2.0]], "x must be a sequence of finite numbers"),
        ([np.nan, 2.0], "x must be a sequence of finite numbers"),
        (["a", "b"], "x must be a sequence of finite numbers"),
        ([True, False], "x must be a sequence of finite numbers"),
    ],
)
def test_a_model_of_river_is_not_shown_bad_objects(x, message):
    model = FromRiver(naive_bayes.GaussianNB(), ["a", "b"])
    model.learn_one([0.0, 1.0], "a")
    for call in (lambda: model.learn_one(x, "a"), lambda: model.predict_one(x), lambda: model.note(x, "a")):
        with pytest.raises(ValueError, match=message):
            call()
    assert model.model.class_counts == {"a": 1}
    with pytest.raises(ValueError, match="y must be one of the classes"):
        model.learn_one([0.0, 1.0], "z")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"a": "u", "b": 1.0}, "x must be such as the model can learn"),
        ({"b": 1.0, "a": None}, "x must be such as the model can learn"),
        ({"b": 1.0, "a": np.nan}, "x must be finite, got nan for feature 'a'"),
        ({"b": 1.0, "a": np.float32("inf")}, "for feature 'a'"),
        ({"a": 10**400}, "x must be finite, got 1000"),
    ],
    ids=["text", "None", "nan", "inf", "huge"],
)
@pytest.mark.parametrize("rows", [0, 4])
def test_a_dict_that_is_refused_leaves_no_trace_in_the_model(x, message, rows):
    model = FromRiver(preprocessing.StandardScaler() | linear_model.LogisticRegression(), ["p", "q"])
    for i in range(rows):
        model.learn_one({"a": float(i)}, "pq"[i % 2])
    scaler, regression = model.model.steps.values()
    before = copy.deepcopy((scaler.counts, scaler.means, scaler.vars, regression.weights, regression.intercept))
    for call in (model.note, model.learn_one):
        with pytest.raises(ValueError, match=message):
            call(x, "p")
    assert (scaler.counts, scaler.means, scaler.vars, regression.weights, regression.intercept) == before


def test_text_and_none_go_to_models_that_read_them():
    told = preprocessing.StatImputer() | preprocessing.OneHotEncoder() | linear_model.LogisticRegression()
    same = told.clone()
    model = FromRiver(told, [False, True])
    for i, x in enumerate([{"a": "u", "b": None}, {"a": "v", "b": None}, {"a": "u", "b": "w"}]):
        model.learn_one(x, bool(i % 2))
        same.learn_one(x, bool(i % 2))
    assert model.predict_one({"a": "u", "b": "w"}).proba[1] == same.predict_proba_one({"a": "u", "b": "w"})[True]


class Says(river.base.Classifier):
    """A classifier that says one thing."""

    _multiclass = True

    def __init__(self, said):
        self.said = said

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, x):
        if self.said is None:
            raise NotImplementedError
        return self.said


def test_what_is_no_distribution_over_the_classes_is_refused():
    for said in ({"a": 0.5, "z": 0.5}, {"a": np.nan, "b": 1.0}, {"a": 0.0, "b": 0.0}, {"a": 1.5, "b": -0.5}):
        with pytest.raises(ValueError, match=r"model must give a distribution over|proba must be nonnegative"):
            FromRiver(Says(said), ["a", "b"]).predict_one([0.0])
    with pytest.raises(TypeError, match="which predicts labels only"):
        FromRiver(Says(None), ["a", "b"]).predict_one([0.0])
    assert FromRiver(Says({}), ["a", "b"]).predict_one([0.0]).proba.tolist() == [0.5, 0.5]


# Its data sets as streams ---------------------------------------------------------------------------


def test_a_data_set_of_river_is_a_stream():
    stream = from_river(datasets.ImageSegments())
    assert len(stream) == datasets.ImageSegments().n_samples
    assert stream.name == "ImageSegments"
    for (x, y), (row, label) in zip(stream, datasets.ImageSegments(), strict=True):
        assert dict(zip(stream.features, x.tolist(), strict=True)) == row
        assert y == label
    assert from_river(datasets.Phishing().take(10)).classes == (False, True)


@pytest.mark.filterwarnings("default")
def test_kinds_of_a_schema():
    rows = [
        ({"size": "small", "hue": "red", "w": 1.0, "id": "k1"}, 0),
        ({"id": "k2", "w": None, "hue": "blue", "size": "big"}, 1),
        ({"size": "big", "hue": None, "w": 4, "id": None}, 1),
        ({"size": "big", "hue": "red", "w": np.int64(2), "id": 3}, 1),
    ]
    schema = {
        "size": Ordinal(("small", "big")),
        "hue": Nominal(missing="?"),
        "w": Numeric(missing="?", fill="median"),
        "id": streams.Skip(),
    }
    stream = from_river(rows, schema=schema)
    assert stream.features == ("size", "hue=blue", "hue=red", "hue=?", "w")
    assert stream.X.tolist() == [[0, 0, 1, 0, 1], [1, 1, 0, 0, 2], [1, 0, 0, 1, 4], [1, 0, 1, 0, 2]]
    scaled = from_river([({"a": 3.0}, 0), ({"a": 5.0}, 1)], scale=Scaling([3.0], [2.0]))
    assert scaled.X.tolist() == [[0.0], [1.0]]


class Endless:
    n_samples = float("inf")

    def __iter__(self):
        while True:
            yield {"a": 1.0}, 0


@pytest.mark.parametrize(
    ("rows", "schema", "message"),
    [
        ([({"a": np.nan}, 0)], {"a": Numeric(missing="?", fill="median")}, "feature 'a' has no value to take a median"),
        ([({"a": 1.0}, 0)], {"z": Numeric(missing="?", fill="median")}, "schema must name features of ('a',), got 'z'"),
        ([({"a": 1.0}, 0)], {"z": Nominal()}, "schema must name features of ('a',), got 'z'"),
        ([({"a": 1}, 0)], {"a": Nominal()}, "feature 'a' must be text, as its kind is Nominal"),
        ([({"a": 1}, 0)], {"a": Nominal(("u",))}, "row 0: x, feature 'a' must be text, got 1: make it text"),
        ([({"b": "t", "a": 1}, 0)], {"a": Ordinal(("u",))}, "feature 'b' must be a number, got 't': declare it"),
    ],
    ids=str,
)
def test_from_river_names_what_is_wrong(rows, schema, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_river(rows, schema=schema)


def test_advice_is_for_the_feature_that_is_wrong():
    rows = [({"a": 1.0, "b": 1.0}, 0), ({"b": "t", "a": None}, 1)]
    with pytest.raises(ValueError, match="feature 'a' is missing, got null: drop the row"):
        from_river(rows)
    with pytest.raises(ValueError, match=r"features only, got one for 'z'$"):
        from_river([rows[0], ({"z": "t", "b": 1.0, "a": 2.0}, 1)])


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([({"a": 1.0, "b": 2}, 0), ({"a": 1.0}, 1)], ValueError, "row 1: x must have a value for every feature"),
        ([({"a": 1.0}, 0), ({"a": 1.0, "c": 0.0}, 1)], ValueError, "row 1: x must have values for the features only"),
        ([({"a": 1.0}, 0), ({"b": 1.0}, 1)], ValueError, "row 1: x must have a value for every feature"),
        ([({"a": "red"}, 0)], ValueError, "row 0: x, feature 'a' must be a number, got 'red': declare it in"),
        ([({"a": True}, 0)], ValueError, "row 0: x, feature 'a' must be a number, got True: make it 0 and 1"),
        ([({"a": None}, 0)], ValueError, "row 0: x, feature 'a' is missing, got null: drop the row"),
        ([({"a": np.nan}, 0)], ValueError, "row 0: x, feature 'a' must be a finite number, got nan"),
        ([({"a": 1.0, 1: 2.0, "1": 3.0}, 0)], ValueError, "row 0: features must be distinct as text"),
        ([({"a": 1.0}, None)], ValueError, "y must have no missing label, got None at row 0"),
        ([({"a": 1.0}, {"b": True})], TypeError, "y must be 1-D and hold hashable labels"),
        ([], ValueError, "dataset must hold at least one row, got none"),
        ([([1.0], 0)], TypeError, "row 0 must be a pair of a dict and a label"),
        (["ab", "cd"], TypeError, "row 0 must be a pair of a dict and a label, got 'ab'"),
        ("ab", TypeError, "dataset must be an iterable of (dict, label), got a str"),
        (7, TypeError, "dataset must be an iterable of (dict, label), got a int"),
        (np.zeros((2, 2)), TypeError, "tables are read by from_arrays"),
        (Endless(), ValueError, "dataset must end, got Endless, which does not: pass dataset.take(n)"),
        (datasets.TrumpApproval(), ValueError, "dataset must be one of classification, got TrumpApproval"),
    ],
    ids=lambda value: None if isinstance(value, str | type) else "rows",
)  # fmt: skip
def test_from_river_refuses(rows, kind, message):
    with pytest.raises(kind) as caught:
        from_river(rows)
    assert message in str(caught.value)


@pytest.mark.parametrize("schema", [["a"], 3.0, "a"], ids=repr)
def test_a_schema_that_is_no_mapping_is_refused(schema):
    with pytest.raises(TypeError, match="schema must be a mapping from name to kind, got"):
        streams.from_river([({"a": 1.0}, 0), ({"a": 2.0}, 1)], schema=schema)
