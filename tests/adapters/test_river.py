"""River's checks of our predictors, its evaluation beside our replay, classes and features that come and go."""

import copy
import functools
import math
import pickle

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import refused

river = pytest.importorskip("river")

from river import checks, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing  # noqa: E402

import streams  # noqa: E402
import venn  # noqa: E402
from venn.adapters.river import CHANGING_FEATURES, RiverClassifier  # noqa: E402
from venn.adapters.river_models import FromRiver  # noqa: E402


def machine(classes):
    return venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=classes)


def counting(classes):
    return venn.TransductiveVenn(machine(classes), venn.LeaveOneOut(venn.Argmax()))


def taught(given, rows):
    """Return a model that has learned these rows and no others."""
    model = RiverClassifier(given)
    for x, y in rows:
        model.learn_one(x, y)
    return model


def windowed(classes):
    """What the checks of thousands of steps are made with."""
    return venn.TransductiveVenn(venn.SlidingWindow(machine(classes), 20), venn.LeaveOneOut(venn.Argmax()))


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
    assert refused >= skipped - {"check_learn_many_matches_learn_one"}  # which needs pandas


def test_without_a_filling_value_river_finds_nothing_else():
    checks.check_estimator(RiverClassifier(venn.TransductiveVenn(NearestCentroid([False, True]), venn.Argmax())))


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


@pytest.mark.parametrize(
    "make", [venn.Forecaster, venn.Forecaster([False, True]), counting([False, True])], ids=range(3)
)
def test_behind_a_scaler_that_gives_nan_before_it_has_learned(make):
    model = preprocessing.MinMaxScaler() | RiverClassifier(make)
    rows = list(datasets.Phishing().take(30))
    evaluate.progressive_val_score(rows, model, metrics.Accuracy())
    assert set(model.predict_proba_one(rows[0][0])) == {False, True}
    bad = dict.fromkeys(rows[0][0], math.nan)
    with pytest.raises(ValueError, match=r"x must be finite, got nan for feature .*: missing=0.0, say, fills it in"):
        model["RiverClassifier"].predict_one(bad)
    with pytest.raises(ValueError, match="x must be finite, got nan"):
        RiverClassifier(make).learn_one(bad, True)


def test_none_and_nan_are_filled_where_a_value_is_declared():
    filled, told = RiverClassifier(counting, missing=0.5), RiverClassifier(counting)
    for i in range(20):
        y = i % 3 == 0
        gap = (None, math.nan, np.float64("nan"))[i % 3]
        filled.learn_one({"a": gap if i % 4 == 1 else i / 7, "b": 1.0}, y)
        told.learn_one({"a": 0.5 if i % 4 == 1 else i / 7, "b": 1.0}, y)
    x = {"a": 0.5, "b": 1.0}
    assert filled.predict_proba_one({"a": None, "b": 1.0}) == told.predict_proba_one(x)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_many_rows_are_as_one_after_the_other(kind):
    frames = pytest.importorskip(kind)
    rows = [({"a": i % 5 / 2, "b": i % 3 - 1.0}, ("no", "yes")[i % 2]) for i in range(30)]
    one, many = RiverClassifier(counting), RiverClassifier(counting)
    for x, y in rows:
        one.learn_one(x, y)
    table = frames.DataFrame([x for x, _ in rows])
    labels = frames.Series([y for _, y in rows])
    many.learn_many(table[:10], labels[:10])
    many.learn_many(table[10:], labels[10:])
    assert list(many.predict_many(table[20:])) == [one.predict_one(x) for x, _ in rows[20:]]
    proba = many.predict_proba_many(table[20:])
    assert isinstance(proba, frames.DataFrame)
    assert list(proba.columns) == ["no", "yes"]
    assert list(proba["no"]) == [one.predict_proba_one(x)["no"] for x, _ in rows[20:]]
    if kind == "pandas":
        assert list(proba.index) == list(range(20, 30))
    before = many.predict_proba_one(rows[0][0])
    broken = table.to_dict(**({"orient": "list"} if kind == "pandas" else {"as_series": False}))
    broken["a"][29] = math.inf
    for X, y, message in (
        (frames.DataFrame(broken), labels, "x must be finite"),
        (table, labels[:3], "y must hold a label for each of the 30 rows"),
        ([1.0], ["no"], "X must be a data frame"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            many.learn_many(X, y)
    assert many.predict_proba_one(rows[0][0]) == before


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


test_refuses_parameters = refused(None, [
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
], plain=True)  # fmt: skip


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
        ({"a": 1.0, "b": 10**400}, 0, ValueError,
         "x must be finite as float64, got a number too large for feature 'b'"),
    ],
)  # fmt: skip
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
