"""The forecaster for users of scikit-learn and of river: its own answers, the checks of both, and their tools."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from estimator_checks import parametrize_with_each
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_classifiers import NAMES
from test_classifiers import examples as on_grid

import venn
from venn.adapters import ForecasterClassifier

frozen = pytest.importorskip("sklearn.frozen")


def examples(n=60, c=3, seed=0):
    return on_grid(n, c, seed)


def taught(model, X, y):
    for x, label in zip(X, y.tolist(), strict=True):
        model.learn_one(x, label)
    return model


@parametrize_with_each(
    [ForecasterClassifier(transductive=20, last=40, first=5)]
)  # on few examples it goes all its ways
@pytest.mark.filterwarnings("ignore")  # the checks warn of what they do on purpose
def test_scikit_learn_checks(estimator, check):
    if "sample_weight_equivalence" in str(check):
        pytest.skip("it compares two orders: the first examples fix the scale, and the past sharpens the forecast")
    if "sparse_array" in str(check):
        pytest.skip("each of ten formats is fitted: test_sparse_objects_frames_and_copies fits one")
    check(estimator)


@pytest.mark.parametrize("transductive", [1000, 40])
def test_it_says_what_the_forecaster_says_row_by_row(transductive):
    X, y = examples()
    model = ForecasterClassifier(transductive=transductive).fit(X[:50], y[:50])
    made = venn.Forecaster(NAMES.tolist(), transductive=transductive, on_change="keep")
    loop = taught(made, X[:50], y[:50])
    said = [loop.predict_one(x) for x in X[50:]]
    np.testing.assert_allclose(model.predict_proba(X[50:]), [one.proba for one in said], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict_interval(X[50:]), [one.intervals for one in said])
    np.testing.assert_array_equal(model.predict_p(X[50:]), [one["sets"].p_values for one in said])
    assert model.predict(X[50:]).tolist() == [one.label for one in said]
    for alpha in (0.05, 0.5):
        sets = [tuple(NAMES[inside].tolist()) for inside in model.predict_set(X[50:], alpha)]
        assert sets == [one.set(alpha) for one in said]
    assert (model.predict_set(X[50:]) == (model.predict_p(X[50:]) > 0.1)).all()
    assert model.verdict() == loop.verdict()


def test_batches_of_any_size_are_one_fit():
    X, y = examples(24)
    whole = ForecasterClassifier(transductive=12, last=24).fit(X, y)
    for sizes in ([1] * 24, [11, 1, 12], [5, 17, 2]):
        model, start = ForecasterClassifier(transductive=12, last=24), 0
        for size in sizes:
            part = slice(start, start + size)
            model.partial_fit(X[part], y[part], classes=NAMES if start == 0 else None)
            model.predict(X[:3])  # leaves no trace
            start += size
        np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    again = model.fit(X[:10], y[:10])  # forgets
    np.testing.assert_array_equal(
        again.predict_proba(X), ForecasterClassifier(transductive=12, last=24).fit(X[:10], y[:10]).predict_proba(X)
    )


def test_a_given_scorer_is_calibrated_and_survives_clones():
    X, y = examples(150, seed=1)
    fitted = LogisticRegression().fit(X[:50], y[:50])
    loop = taught(venn.Forecaster(scorer=fitted), X[50:100], y[50:100])
    for scorer in (fitted, frozen.FrozenEstimator(fitted)):
        model = ForecasterClassifier(scorer).fit(X[50:100], y[50:100])
        np.testing.assert_array_equal(model.predict_interval(X[100:]), [loop.predict_one(x).intervals for x in X[100:]])
    assert len(cross_val_score(clone(model), X[50:], y[50:], cv=3, scoring="neg_log_loss")) == 3
    with pytest.raises(ValueError, match="must be a fitted classifier"):
        clone(ForecasterClassifier(fitted)).fit(X, y)
    only = ForecasterClassifier(fitted).fit(X[50:60], np.full(10, "bee"))  # the scorer knows the others
    assert only.classes_.tolist() == NAMES.tolist()


def named_scorer(kind=LogisticRegression):
    """A classifier fitted to a table, and another table with its columns."""
    X, y = examples(100, 2)
    table = pd.DataFrame(X, columns=["wide", "long"])
    return kind().fit(table[:50], y[:50]), table[50:], y[50:]


@pytest.mark.parametrize("wrap", [lambda fitted: fitted, frozen.FrozenEstimator])
def test_a_table_must_have_the_columns_of_the_given_scorer(wrap):
    fitted, table, y = named_scorer()
    scorer = wrap(fitted)
    model = ForecasterClassifier(scorer).fit(table, y)
    of_arrays = ForecasterClassifier(scorer).fit(table.to_numpy(), y)  # has met no names itself
    np.testing.assert_array_equal(model.predict_proba(table), of_arrays.predict_proba(table.to_numpy()))
    for other in (table[["long", "wide"]], table.rename(columns={"long": "length"})):
        for call in (
            lambda other: ForecasterClassifier(scorer).fit(other, y),
            lambda other: ForecasterClassifier(scorer).partial_fit(other, y, classes=NAMES[:2]),
            lambda other: of_arrays.partial_fit(other, y),
            of_arrays.predict_proba,
            model.predict,
        ):
            with pytest.raises(ValueError, match=r"X must have the columns \['wide', 'long'\] in this order, got"):
                call(other)


def test_missing_numbers_are_taken_if_the_given_scorer_takes_them():
    fitted, table, y = named_scorer(HistGradientBoostingClassifier)
    table.iloc[[3, 40], 1] = np.nan
    loop = taught(venn.Forecaster(scorer=fitted), table.to_numpy(), y)
    for scorer in (fitted, frozen.FrozenEstimator(fitted)):
        model = ForecasterClassifier(scorer).fit(table, y)
        np.testing.assert_array_equal(model.predict_interval(table)[3], loop.predict_one(table.iloc[3]).intervals)
        assert model.__sklearn_tags__().input_tags.allow_nan
    model = ForecasterClassifier(named_scorer()[0])
    with pytest.raises(ValueError, match="x must be finite, got nan at feature 1"):
        model.fit(table, y)
    assert not hasattr(model, "classes_")
    assert not model.__sklearn_tags__().input_tags.allow_nan


def test_a_pipeline_takes_or_refuses_missing_numbers_itself():
    X, y = examples(100, 2)
    gaps = X.copy()
    gaps[[60, 80], 1] = np.nan
    imputing = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X[:50], y[:50])
    model = ForecasterClassifier(imputing).fit(gaps[50:], y[50:])
    loop = taught(venn.Forecaster(scorer=imputing), gaps[50:], y[50:])
    np.testing.assert_array_equal(model.predict_interval(gaps[[60]])[0], loop.predict_one(gaps[60]).intervals)
    model = ForecasterClassifier(make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:50], y[:50]))
    with pytest.raises(ValueError, match="x must be finite, got nan at feature 1; the estimator says: Input"):
        model.fit(gaps[50:], y[50:])
    assert not hasattr(model, "classes_")


def test_text_goes_to_the_given_scorer_in_a_table():
    X, y = examples(100, 2)
    table = pd.DataFrame({"town": np.where(X[:, 0] > 0, "Oslo", "Rome"), "long": X[:, 1]})
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    pipe = make_pipeline(encode, LogisticRegression()).fit(table[:50], y[:50])
    model = ForecasterClassifier(pipe).fit(table[50:80], y[50:80]).partial_fit(table[80:], y[80:])
    rows = pipe[:-1].transform(table)
    encoded = ForecasterClassifier(pipe[-1]).fit(rows[50:], y[50:])
    np.testing.assert_allclose(model.predict_interval(table), encoded.predict_interval(rows), atol=1e-12)
    assert model.feature_names_in_.tolist() == ["town", "long"]
    with pytest.raises(ValueError, match=r"X must have the columns \['town', 'long'\] in this order"):
        model.predict(table[["long", "town"]])
    before = model.predictor_
    with pytest.raises(ValueError, match="x must be what the estimator takes, which says: Found unknown categories"):
        model.partial_fit(table[:2].assign(town="Bonn"), y[:2])
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        model.predict(table.assign(long=pd.Timestamp("2020-01-01")))
    assert model.predictor_ is before
    with pytest.raises(TypeError, match=r"'Oslo' at feature 1: encode text first"):  # no estimator is asked here
        ForecasterClassifier(LogisticRegression().fit(table[["long"]].assign(town=1.0), y)).fit(
            table[["long"]].assign(town="Oslo"), y
        )


def test_sparse_objects_frames_and_copies():
    X, y = examples()
    model = ForecasterClassifier(first=0).fit(X[:40], y[:40])  # sparse columns are not centred
    sparse = ForecasterClassifier(first=0).fit(csr_array(X[:40]), y[:40])
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X[40:])), model.predict_proba(X[40:]), rtol=0, atol=1e-9)
    table = pd.DataFrame(X, columns=["long", "wide"])
    framed = ForecasterClassifier(first=0).fit(table[:40], y[:40])
    assert framed.feature_names_in_.tolist() == ["long", "wide"]
    np.testing.assert_array_equal(framed.predict_proba(table[40:]), model.predict_proba(X[40:]))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.partial_fit(X[40:45], y[40:45])
        assert (twin.predict_p(X[45:]) != model.predict_p(X[45:])).any()


def test_what_cannot_be_is_refused_and_nothing_is_learned():
    X, y = examples()
    with pytest.raises(NotFittedError):
        ForecasterClassifier().verdict()
    for parameters, says in (
        ({"transductive": 1}, "transductive must be"),
        ({"alpha": 2.0}, "alpha must"),
        ({"level": 0.0}, "level must"),
    ):
        with pytest.raises(ValueError, match=says):
            ForecasterClassifier(**parameters).fit(X, y)
    model = ForecasterClassifier().fit(X[:40], y[:40])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="y must be among the classes"):
        model.partial_fit(X[40:], np.where(y[40:] == "cow", "dog", y[40:]))
    np.testing.assert_array_equal(model.predict_proba(X), before)


# River ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def river():
    pytest.importorskip("river")
    from venn.adapters import RiverClassifier

    return RiverClassifier


def rows(n=60):
    X, y = examples(n, 2)
    return [({"p": x[0], "q": x[1]}, label) for x, label in zip(X.tolist(), y.tolist(), strict=True)]


@pytest.mark.parametrize("declared", [True, False])
def test_in_river_it_says_what_the_forecaster_says(river, declared):
    model = river(venn.Forecaster(["ant", "bee"]) if declared else venn.Forecaster)
    loop = venn.Forecaster(["ant", "bee"])
    for number, (x, y) in enumerate(rows()):
        if number >= 2:  # both classes have come
            said = loop.predict_one([x["p"], x["q"]])
            assert model.predict_one(x) == said.label
            assert model.predict_proba_one(x) == dict(zip(said.classes, said.proba.tolist(), strict=True))
            intervals = dict(zip(said.classes, map(tuple, said.intervals.tolist()), strict=True))
            assert model.predict_interval_one(x) == intervals
            assert model.predict_set_one(x, 0.1) == said.set(0.1)
            assert model.prediction_one(x).keys() == said.keys()
            assert model.verdict() == loop.verdict()
        model.learn_one(x, y)
        loop.learn_one([x["p"], x["q"]], y)


def test_in_river_nothing_is_said_before_two_classes_are_known(river):
    model = river(venn.Forecaster)
    x, _ = rows()[0]
    assert (model.predict_one(x), model.predict_proba_one(x), model.verdict()) == (None, {}, None)
    model.learn_one(x, "ant")
    assert (model.predict_one(x), model.predict_interval_one(x)) == ("ant", {"ant": (0.0, 1.0)})


def test_in_river_features_go_in_the_order_of_the_given_scorer(river):
    fitted, table, y = named_scorer()
    loop = taught(venn.Forecaster(scorer=fitted), table.to_numpy(), y)
    for predictor in (venn.Forecaster(scorer=fitted), venn.InductiveVennAbers(venn.FrozenScorer(fitted))):
        for features in (None, ["wide", "long"]):
            model = river(predictor, features=features)
            for x, label in zip(table[["long", "wide"]].to_dict("records"), y.tolist(), strict=True):
                model.learn_one(x, label)
            found = model.predict_interval_one({"long": 1.0, "wide": 0.0})
            assert list(found.values()) == [tuple(ends) for ends in loop.predict_one([0.0, 1.0]).intervals.tolist()]
            with pytest.raises(ValueError, match=r"x must have the features \['wide', 'long'\], got no 'wide', 'long'"):
                model.predict_one({"deep": 1.0})
        with pytest.raises(ValueError, match=r"features must be .* \['wide', 'long'\] in this order, got \['long', 'w"):
            river(predictor, features=["long", "wide"])


def test_in_river_a_scorer_that_comes_with_the_classes_refuses_features_in_another_order(river):
    fitted, table, _ = named_scorer()
    x = table.iloc[0].to_dict()

    def make(classes):
        return venn.Forecaster(classes, scorer=fitted)

    late = river(make)
    late.learn_one(x, "ant")
    with pytest.raises(
        ValueError, match=r"features must be .* \['wide', 'long'\] in this order, got \['long', 'wide'\]"
    ):
        late.learn_one(x, "bee")
    assert late.predict_one(x) == "ant"  # nothing was learned
    for model in (river(make, classes=["ant", "bee"]), river(make, features=["wide", "long"])):
        for label in ("ant", "bee"):
            model.learn_one(x, label)
        said = taught(venn.Forecaster(scorer=fitted), table.to_numpy()[[0, 0]], np.array(["ant", "bee"]))
        assert model.predict_one(x) == said.predict_one(table.to_numpy()[0]).label


def test_river_checks_and_tools(river):
    from river import checks, evaluate, metrics

    model = river(venn.Forecaster([False, True], transductive=30, first=5), missing=0.0, ignore_unknown=True)
    # What the adapter does with features and classes is checked with predictors that cost less, in test_river.py.
    wanted = ("pickling", "clone_is_independent", "predict_one_pure", "many_matches", "proba_one_binary")
    each = {getattr(check, "__name__", check): check for check in checks.yield_checks(model)}  # each on one set
    chosen = [check for name, check in each.items() if any(part in name for part in wanted)]
    assert len(chosen) >= 5
    for check in chosen:
        check(model.clone())
    fitted = river(venn.Forecaster)
    assert evaluate.progressive_val_score(rows(), fitted, metrics.Accuracy()).get() > 0.6
    again = pickle.loads(pickle.dumps(fitted))
    x, y = rows(61)[60]
    again.learn_one(x, y)
    assert again.predict_proba_one(x) != fitted.predict_proba_one(x)


def test_a_predictor_in_river_watches_nothing_and_a_panel_is_refused(river):
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ["ant", "bee"])
    predictor = venn.TransductiveVenn(machine)
    with pytest.raises(NotImplementedError, match="does not watch itself"):
        river(predictor).verdict()
    with pytest.raises(TypeError, match="predictor must be a predictor or a Forecaster"):
        river(venn.Panel(one=predictor))


def test_rows_sorted_by_class_are_all_learned():
    X, y = load_iris(return_X_y=True)
    model = ForecasterClassifier(first=0).fit(X, y)
    assert model.verdict().state == "changed"
    assert model.score(X, y) > 0.9
    stream = ForecasterClassifier(first=0, on_change="restart").partial_fit(X, y, classes=[0, 1, 2])
    assert "began anew" in str(stream.verdict())
