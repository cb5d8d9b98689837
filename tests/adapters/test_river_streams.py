"""River's classifiers as our predictors, and its data sets as streams."""

import copy

import numpy as np
import pytest
from conftest import refused

river = pytest.importorskip("river")

from river import active, datasets, linear_model, naive_bayes, preprocessing  # noqa: E402
from test_river import Steps, car, counting  # noqa: E402, F401

import streams  # noqa: E402
import venn  # noqa: E402
from streams import Nominal, Numeric, Ordinal, Scaling  # noqa: E402
from streams.sources import from_river  # noqa: E402
from venn.adapters.river_models import FromRiver  # noqa: E402

# Its classifiers as our predictors ------------------------------------------------------------------


def test_a_model_of_river_says_here_what_it_says_there(car):  # noqa: F811
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


@pytest.mark.parametrize("scaled", [False, True])
def test_a_model_that_asks_for_labels_is_refused_by_name(scaled):
    asking = active.EntropySampler(linear_model.LogisticRegression())
    with pytest.raises(TypeError, match="got EntropySampler, which also asks for labels: give the classifier in it"):
        FromRiver(preprocessing.StandardScaler() | asking if scaled else asking, ["no", "yes"])


def test_it_stands_in_a_panel_watched_and_in_a_mixture():
    rows = [(np.array([float(i % 5), float(i % 2)]), i % 2) for i in range(40)]
    model = FromRiver(preprocessing.StandardScaler() | linear_model.LogisticRegression(), [0, 1])
    panel = venn.Panel(river=model, venn=counting([0, 1]),
                       mixed=venn.predictors.ExpertMixture([FromRiver(naive_bayes.GaussianNB(), [0, 1])]))  # fmt: skip
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
    for call in (lambda: model.learn_one(x, "a"), lambda: model.predict_one(x), lambda: model.prepare(x, "a")):
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
    for call in (model.prepare, model.learn_one):
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
    for said in ({"a": 0.5, "z": 0.5}, {"a": np.nan, "b": 1.0}, {"a": 0.5, "b": 0.0}, {"a": 1.5, "b": -0.5}):
        with pytest.raises(ValueError, match=r"model must give a distribution over|proba must be nonnegative"):
            FromRiver(Says(said), ["a", "b"]).predict_one([0.0])
    with pytest.raises(TypeError, match="which predicts labels only"):
        FromRiver(Says(None), ["a", "b"]).predict_one([0.0])
    for said in ({}, {"a": 0.0}, {"a": 0.0, "b": 0.0}):  # it knows nothing yet
        assert FromRiver(Says(said), ["a", "b"]).predict_one([0.0]).proba.tolist() == [0.5, 0.5]


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
        "size": Ordinal(("small", "big")), "hue": Nominal(missing="?"), "w": Numeric(missing="?", fill="median"),
        "id": streams.Skip(),
    }  # fmt: skip
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


test_from_river_names_what_is_wrong = refused(lambda rows, schema: from_river(rows, schema=schema), [
    ([({"a": np.nan}, 0)], {"a": Numeric(missing="?", fill="median")}, "feature 'a' has no value to take a median"),
    ([({"a": 1.0}, 0)], {"z": Numeric(missing="?", fill="median")}, "schema must name features of ('a',), got 'z'"),
    ([({"a": 1.0}, 0)], {"z": Nominal()}, "schema must name features of ('a',), got 'z'"),
    ([({"a": 1}, 0)], {"a": Nominal()}, "feature 'a' must be text, as its kind is Nominal"),
    ([({"a": 1}, 0)], {"a": Nominal(("u",))}, "row 0: x, feature 'a' must be text, got 1: make it text"),
    ([({"b": "t", "a": 1}, 0)], {"a": Ordinal(("u",))}, "feature 'b' must be a number, got 't': declare it"),
], kind=ValueError, plain=True)  # fmt: skip


def test_advice_is_for_the_feature_that_is_wrong():
    rows = [({"a": 1.0, "b": 1.0}, 0), ({"b": "t", "a": None}, 1)]
    with pytest.raises(ValueError, match="feature 'a' is missing, got null: drop the row"):
        from_river(rows)
    with pytest.raises(ValueError, match=r"features only, got one for 'z'$"):
        from_river([rows[0], ({"z": "t", "b": 1.0, "a": 2.0}, 1)])


test_from_river_refuses = refused(from_river, [
    ([({"a": 1.0, "b": 2}, 0), ({"a": 1.0}, 1)], ValueError, "row 1: x must have a value for every feature"),
    ([({"a": 1.0}, 0), ({"a": 1.0, "c": 0.0}, 1)], ValueError, "row 1: x must have values for the features only"),
    ([({"a": 1.0}, 0), ({"b": 1.0}, 1)], ValueError, "row 1: x must have a value for every feature"),
    ([({"a": "red"}, 0)], ValueError, "row 0: x, feature 'a' must be a number, got 'red': declare it in a schema"),
    ([({"a": True}, 0)], ValueError, "row 0: x, feature 'a' must be a number, got True: make it 0 and 1"),
    ([({"a": None}, 0)], ValueError, "row 0: x, feature 'a' is missing, got null: drop the row"),
    ([({"a": np.nan}, 0)], ValueError, "row 0: x, feature 'a' is missing, got nan: drop the row"),
    ([({"a": 1.0, 1: 2.0, "1": 3.0}, 0)], ValueError, "row 0: features must be distinct as text"),
    ([({"a": 1.0}, None)], ValueError, "y, row 0 is the label and is missing, got None"),
    ([({"a": 1.0}, {"b": True})], TypeError, "y must be 1-D and hold hashable labels"),
    ([], ValueError, "dataset must hold at least one row, got none"),
    ([([1.0], 0)], TypeError, "row 0 must be a pair of a dict and a label"),
    ("ab", TypeError, "dataset must be an iterable of (dict, label), got a str"),
    (7, TypeError, "dataset must be an iterable of (dict, label), got a int"),
    (np.zeros((2, 2)), TypeError, "tables are read by from_arrays"),
    (Endless(), ValueError, "dataset must end, got Endless, which does not: pass dataset.take(n)"),
], plain=True)  # fmt: skip


def test_a_data_set_for_regression_has_labels_that_are_numbers():
    stream = from_river(datasets.TrumpApproval())
    assert stream.classes == ()
    assert stream.y.tolist() == [y for _, y in datasets.TrumpApproval()]
    rows = [({"a": 1.0}, 2.5), ({"a": 2.0}, None), ({"a": 3.0}, 1.5)]
    assert from_river(rows, classes="numbers", drop_unlabelled=True).y.tolist() == [2.5, 1.5]
