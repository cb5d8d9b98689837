"""Fitted models of other packages as scorers, in the forms in which their users have objects."""

import copy
import pickle
import threading

import numpy as np
import pytest

import venn
from venn.machines.frozen_numbers import FrozenRegressor


def data(n=80):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


def same(model, forms, expected):
    """Assert that a scorer says the same of an object in all forms, alone and copied."""
    for scorer in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for x in forms:
            assert np.allclose(scorer.scores(x), expected)


# CatBoost ------------------------------------------------------------------------------------------------------------


def catboost(kind, *fitted, **given):
    module = pytest.importorskip("catboost")
    given = {"iterations": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False, **given}
    return getattr(module, kind)(**given).fit(*fitted)


def test_catboost_takes_arrays():
    X, y = data()
    model = catboost("CatBoostClassifier", X, y)
    scorer = venn.FrozenScorer(model)
    assert scorer.classes == ("no", "yes")
    same(scorer, [X[3], X[3].tolist(), tuple(X[3])], model.predict_proba(X[3:4])[0])
    with pytest.raises(ValueError, match="x must have 3 features"):
        scorer.scores([1.0, 2.0])
    assert venn.Forecaster(scorer=model).predict_one(X[0])


def test_catboost_forecasts_numbers():
    X, _ = data()
    model = catboost("CatBoostRegressor", X, X[:, 0])
    same(FrozenRegressor(model), [X[3], X[3].tolist()], model.predict(X[3:4]))
    assert venn.Forecaster(float, scorer=model).predict_one(X[0])
    with pytest.raises(TypeError, match="must have decision_function or predict_proba"):
        venn.FrozenScorer(model)
    with pytest.raises(TypeError, match="must be a regressor"):
        FrozenRegressor(catboost("CatBoostClassifier", *data()))
    with pytest.raises(ValueError, match="must be a fitted classifier"):
        venn.FrozenScorer(pytest.importorskip("catboost").CatBoostClassifier())


def test_catboost_takes_tables_with_text_and_codes_of_categories():
    pd = pytest.importorskip("pandas")
    X, y = data()
    table = pd.DataFrame(
        {"mean size": X[:, 0], "city": np.where(X[:, 1] > 0, "Oslo", "Lyon"), "code": 1 + (X[:, 2] > 0)}
    )
    model = catboost("CatBoostClassifier", table, y, cat_features=["city", "code"])
    scorer = venn.FrozenScorer(model)
    assert scorer.feature_names == ("mean size", "city", "code")
    row = table.iloc[[3]]
    same(scorer, [row, row.iloc[0], row.iloc[0].to_dict(), row.iloc[0].tolist()], model.predict_proba(row)[0])
    assert np.allclose(scorer.score_many(table), model.predict_proba(table))
    with pytest.raises(ValueError, match="must have the features"):
        scorer.scores({"size": 1.0, "city": "Oslo", "code": 1})
    codes = table[["mean size", "code"]]
    model = catboost("CatBoostClassifier", codes, y, cat_features=["code"])  # no text: an array of numbers
    same(venn.FrozenScorer(model), [codes.iloc[[3]], codes.iloc[3].tolist()], model.predict_proba(codes.iloc[[3]])[0])


# LightGBM ------------------------------------------------------------------------------------------------------------


def test_lightgbm_takes_the_names_that_its_table_had():
    lightgbm, pd = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    X, y = data()
    table = pd.DataFrame(X, columns=["mean radius", "mean_area", "x"])
    model = lightgbm.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1).fit(table, y)
    scorer = venn.FrozenScorer(model, method="predict_proba")
    row = table.iloc[[3]]
    forms = [row, row.iloc[0], row.iloc[0].to_dict(), X[3], row.rename(columns={"mean radius": "mean_radius"})]
    same(scorer, forms, model.predict_proba(row)[0])
    assert np.array_equal(scorer.score_many(table), model.predict_proba(table))
    for wrong in (table[["mean_area", "mean radius", "x"]], table.rename(columns={"x": "z"})):
        with pytest.raises(ValueError, match="must have the columns"):
            scorer.score_many(wrong)
    with pytest.raises(ValueError, match="must have the features"):
        scorer.scores({"mean radius": 1.0, "mean_radius": 2.0, "mean_area": 1.0, "x": 0.0})


def test_lightgbm_takes_them_from_river():
    lightgbm, pd = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    RiverClassifier = pytest.importorskip("venn.adapters.river", exc_type=ImportError).RiverClassifier
    X, y = data()
    table = pd.DataFrame(X, columns=["mean radius", "mean_area", "x"])
    fitted = lightgbm.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1).fit(table, y)
    model = RiverClassifier(venn.Forecaster(scorer=fitted))
    for x, label in zip(table.to_dict("records")[:5], y[:5], strict=True):
        model.learn_one(x, str(label))
    assert model.predict_proba_one({"x": 0.0, "mean_area": 1.0, "mean radius": 2.0})
    with pytest.raises(ValueError, match=r"must have no features but|must have the features"):
        model.predict_proba_one({"x": 0.0, "mean_area": 1.0, "mean radius": 2.0, "mean_radius": 2.0})


def test_other_models_know_blanks_from_underscores():
    pd = pytest.importorskip("pandas")
    from sklearn.tree import DecisionTreeClassifier

    X, y = data()
    scorer = venn.FrozenScorer(DecisionTreeClassifier().fit(pd.DataFrame(X, columns=["a_b", "c", "d"]), y))
    with pytest.raises(ValueError, match="must have the features"):
        scorer.scores({"a b": 1.0, "c": 0.0, "d": 0.0})


# What cannot be copied -----------------------------------------------------------------------------------------------


class Lines:
    """A user's own model of numbers behind a lock."""

    def __init__(self):
        self.lock = threading.Lock()

    def predict(self, X):
        return np.zeros((len(X), 2))


class Served(Lines):
    """One of classes."""

    classes_ = ("no", "yes")

    def predict_proba(self, X):
        return np.tile([0.4, 0.6], (len(X), 1))


class Shared(Served):
    def __deepcopy__(self, memo):
        return self


def test_what_cannot_be_copied_is_named_with_what_to_do(tmp_path):
    for make in (
        lambda: venn.Forecaster(scorer=Served()),
        lambda: FrozenRegressor(Lines()),
        lambda: venn.machines.FrozenQuantiles(Lines(), (0.1, 0.9)),
    ):
        with pytest.raises(TypeError, match=r"its lock cannot be copied.*__deepcopy__"):
            make()
    model = Shared()
    for _ in range(2):
        with venn.Online(venn.Forecaster(scorer=model), journal=tmp_path / "run.db") as online:
            for _ in range(3):
                online.ask([0.0])
                online.answer(online.asked, "yes")
    assert online.answered == 6
