"""Objects with names and text go to a fitted estimator as rows of its table, whatever they come as."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import venn
from venn.machines import FrozenRegressor, FrozenScorer
from venn.machines.digests import digests_of
from venn.machines.objects import clean_rows
from venn.machines.tables import TableRows
from venn.online.chain import copy_object, decode_object, encode_object
from venn.predictors import InductiveDistribution

NAMES = ("age", "city", "kids")
N, USED = 72, 60  # examples to fit, and in all


def table():
    """Return a table of numbers and text with gaps in both, and labels."""
    rng = np.random.default_rng(0)
    ages, cities = rng.normal(45, 12, N), rng.choice(["Oslo", "Lyon", "Roma"], N)
    y = np.where(ages + 20 * (cities == "Oslo") + rng.normal(0, 9, N) > 55, "yes", "no")
    frame = pd.DataFrame({"age": ages, "city": cities, "kids": rng.integers(0, 4, N)})
    frame.loc[rng.random(N) < 0.1, "age"] = np.nan
    frame.loc[rng.random(N) < 0.1, "city"] = np.nan
    return frame, y


def encoded(last):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    text = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(make_column_transformer((text, ["city"]), (numbers, ["age", "kids"])), last)


MODELS = {
    "pipeline": lambda: encoded(LogisticRegression()),
    "calibrated": lambda: CalibratedClassifierCV(encoded(LogisticRegression()), cv=2),
    "trees with categories": lambda: HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
}


def fitted(name):
    """Return a fitted model, the rest of its table, and the labels of that."""
    frame, y = table()
    if name == "trees with categories":
        frame["city"] = frame["city"].astype("category")
    return MODELS[name]().fit(frame[:USED], y[:USED]), frame[USED:].reset_index(drop=True), y[USED:]


def forms(frame):
    """Return each row in every form that an object may come in."""
    records = [dict(zip(NAMES, row, strict=True)) for row in frame.astype(object).to_numpy()]
    return {
        "dict": [dict(reversed(one.items())) for one in records], "row": [frame.iloc[i] for i in range(len(frame))],
        "frame": [frame.iloc[[i]] for i in range(len(frame))], "tuple": list(frame.itertuples(index=False)),
        "values": [list(one.values()) for one in records],
    }  # fmt: skip


def said(estimator, X):
    ask = getattr(estimator, "decision_function", None) or getattr(estimator, "predict_proba", estimator.predict)
    f = np.asarray(ask(X))
    if hasattr(estimator, "classes_") and f.ndim == 1:
        return np.column_stack([-f, f])
    return f.reshape(len(X), -1)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_the_table_in_whatever_form_an_object_comes(name):
    estimator, frame, _ = fitted(name)
    scorer, expected = FrozenScorer(FrozenEstimator(estimator)), said(estimator, frame)
    np.testing.assert_allclose(scorer.score_many(frame), expected, rtol=0, atol=1e-12)
    for form, rows in forms(frame).items():
        np.testing.assert_allclose([scorer.scores(x) for x in rows], expected, rtol=0, atol=1e-12, err_msg=form)
        if form != "frame":
            np.testing.assert_allclose(scorer.score_many(rows), expected, rtol=0, atol=1e-12, err_msg=form)


@pytest.mark.parametrize("name", MODELS)
def test_predictors_take_rows_by_name(name):
    estimator, frame, y = fitted(name)
    scorer = FrozenScorer(estimator)
    rows = forms(frame)
    for make in (
        lambda: venn.Forecaster(scorer=estimator),
        lambda: venn.InductiveVennAbers(scorer),
        lambda: venn.InductiveConformal(scorer),
        lambda: venn.InductiveVenn(scorer),
    ):
        model, twin = make(), make()
        for i in range(8):
            model.learn_one(rows["dict"][i], y[i])
            twin.learn_one(rows["frame"][i], y[i])
        ask = [repr(model.predict_one(rows[form][10])) for form in rows]
        assert set(ask) == {repr(twin.predict_one(rows["row"][10]))}
        block = model.predict_many(frame)
        assert len(block.labels if isinstance(model, venn.Forecaster) else block) == N - USED


def test_a_regressor_takes_rows_by_name():
    frame, _ = table()
    pipe = encoded(LinearRegression()).fit(frame[:USED], frame["kids"][:USED])
    spread = encoded(HistGradientBoostingRegressor(max_iter=2)).fit(frame[:USED], np.ones(USED))
    scorer = FrozenRegressor(pipe, spread)
    rest = frame[USED:]
    np.testing.assert_allclose(scorer.score_many(rest)[:, 0], pipe.predict(rest), rtol=0, atol=1e-12)
    model = InductiveDistribution(scorer)
    for x in forms(rest)["dict"][:8]:
        model.learn_one(x, float(x["kids"]))
    assert {repr(model.predict_one(rows[10]).interval(0.2)) for rows in forms(rest).values()} == {
        repr(model.predict_many(rest)[10].interval(0.2))
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_calibrator_takes_lists_of_rows_with_names(name):
    estimator, frame, y = fitted(name)
    model = venn.VennAbersCalibrator(FrozenEstimator(estimator)).fit(frame, y)
    for form in ("dict", "row", "tuple"):
        rows = forms(frame)[form]
        again = venn.VennAbersCalibrator(FrozenEstimator(estimator)).fit(rows, y)
        np.testing.assert_allclose(again.predict_proba(rows), model.predict_proba(frame), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "kind", "said"),
    [
        ({"age": 1.0, "city": "Oslo"}, ValueError, r"x must have the features \['age', 'city', 'kids'\], got \['age'"),
        ({"age": 1.0, "city": "Oslo", "kids": 1, "n": 2}, ValueError, r"x must have the features .* 'kids', 'n'\]"),
        ({"age": pd.Timestamp(0), "city": "Oslo", "kids": 1}, TypeError, "text, got Timestamp.* 'age': make"),
        ({"age": np.inf, "city": "Oslo", "kids": 1}, ValueError, "x must be finite, got inf at feature 'age'"),
        ({"age": "old", "city": "Oslo", "kids": 1}, ValueError, "x must be what the estimator takes, which says: "),
        ([1.0, "Oslo"], ValueError, "x must have 3 features"),
        ("Oslo", TypeError, "x must be a sequence of numbers, got 'Oslo': a loop over a data frame gives names"),
        (pd.DataFrame({"age": [1.0], "kids": [2], "city": ["Oslo"]}), ValueError,
         r"in this order, got \['age', 'kids'"),
        (pd.DataFrame({name: [1, 2] for name in NAMES}), TypeError, "x must be one object"),
    ],
)  # fmt: skip
def test_what_is_no_row_of_the_table_is_named(x, kind, said):
    model = venn.Forecaster(scorer=fitted("pipeline")[0])
    for call in (model.predict_one, lambda x: model.learn_one(x, "yes")):
        with pytest.raises(kind, match=said):
            call(x)
    assert model.n == 0


def test_text_is_for_estimators_that_see_it():
    frame, y = table()
    named = LogisticRegression().fit(frame[["kids"]], y)  # its scores are computed from its coefficients
    for scorer in (FrozenScorer(named), FrozenScorer(named, method="decision_function")):
        with pytest.raises(TypeError, match="'two' at feature 0: encode text first"):
            scorer.scores({"kids": "two"})
    tree = FrozenScorer(DecisionTreeClassifier().fit(frame[["kids"]], y))
    assert tree.scores({"kids": 2}).tolist() == tree.scores([2]).tolist()
    unnamed = FrozenScorer(DecisionTreeClassifier().fit(frame[["kids"]].to_numpy(), y))
    with pytest.raises(TypeError, match=r"the mapping \{'kids': 2\}: give the values alone"):
        unnamed.scores({"kids": 2})


def test_rows_of_a_table_are_chosen_and_told_apart():
    frame, _ = table()
    rows = clean_rows(frame, 3, NAMES, missing=True)
    assert isinstance(rows, TableRows)
    assert rows.shape == (N, 3)
    assert len(rows[1:4]) == 3
    assert len(rows[2]) == 1
    assert len(rows[np.arange(N) % 2 == 0]) == N / 2
    digests = digests_of(rows).tolist()
    assert digests == [int(digests_of(rows[i])[0]) for i in range(N)]
    assert len(set(digests)) == len({rows[i].tobytes() for i in range(N)}) > N / 2
    assert "rows of age, city, kids" in repr(rows)


@pytest.mark.parametrize("other", [2.0, np.int64(2), np.float64(2)])
def test_a_number_beside_text_draws_the_same_however_it_is_written(other):
    """Asked with 2 and with 2.0 the same object had other p-values: the estimator's columns tell them apart."""
    one, same = ({"age": 0, "city": "Rome", "kids": kids} for kids in (2, other))
    rows = [
        clean_rows([x], 3, ("age", "city", "kids"), missing=True) for x in (one, same | {"age": -0.0}, one | {"age": 1})
    ]
    first, second, third = (int(digests_of(row)[0]) for row in rows)
    assert first == second != third
    assert rows[0].tobytes() != rows[1].tobytes()
    largest = [clean_rows([one | {"kids": 2**64 + i}], 3, ("age", "city", "kids"), missing=True) for i in (0, 1)]
    assert digests_of(largest[0]) != digests_of(largest[1])


def test_groups_go_by_text():
    estimator, frame, y = fitted("pipeline")
    for by in (1, [1, 2], town):
        model = venn.predictors.by_group(venn.InductiveConformal(FrozenScorer(estimator), smoothed=False), by)
        one = venn.InductiveConformal(FrozenScorer(estimator), smoothed=False)  # of one town
        for x, label in zip(forms(frame)["dict"], y, strict=True):
            model.learn_one(x, label)
            if x["city"] == "Oslo" and (by != [1, 2] or x["kids"] == 2):
                one.learn_one(x, label)
        asked = {"kids": 2, "city": "Oslo", "age": 50}
        assert model.predict_one(asked).p_values.tolist() == one.predict_one(asked).p_values.tolist()
        assert 0 < one.n < N - USED


def town(x):
    return x[1]


# ------------------------------------------------------------------------------------------ journals


@pytest.mark.parametrize(
    "x",
    [
        {"city": "Århus", "age": 31, "kids": None}, {"age": 2.5, "kids": 1}, ["Oslo", None, 3, True],
        {"a" * k: "x" for k in range(1, 9)},
    ],
)  # fmt: skip
def test_a_journal_keeps_objects_with_names(x):
    kept = copy_object(x)
    assert kept == x
    content = encode_object(kept)
    assert decode_object(content) == x
    assert len(content) % 8
    if isinstance(x, dict):
        assert encode_object(copy_object(dict(reversed(x.items())))) == content


def test_objects_without_text_are_kept_as_numbers():
    frame, _ = table()
    numbers = frame[["age", "kids"]].fillna(0.0)
    for x in (numbers.iloc[0], next(numbers.itertuples(index=False)), numbers.iloc[[0]]):
        np.testing.assert_array_equal(np.ravel(copy_object(x)), numbers.to_numpy()[0])


@pytest.mark.parametrize("content", [b'{"a": [1]}t', b'"text"t', b"{t", b'{"a": {}}  t'])
def test_damaged_objects_are_refused(content):
    with pytest.raises(ValueError, match=r"an object with text must be|Expecting|Unterminated"):
        decode_object(content)


def test_a_run_on_rows_by_name_goes_on_after_its_process_died(tmp_path):
    estimator, frame, y = fitted("trees with categories")
    rows = forms(frame)["dict"]

    def run(first, last):
        with venn.Online(venn.Forecaster(scorer=estimator), journal=tmp_path / "run.db") as online:
            for i in range(first, last):
                online.ask(json.loads(json.dumps(rows[i])), id=i)
                online.answer(i, y[i])
            return online.ask(rows[11], id=f"last {last}")

    run(0, 5)
    told = run(5, 10)
    whole = venn.Forecaster(scorer=estimator)
    for i in range(10):
        whole.learn_one(frame.iloc[i], y[i])
    assert repr(told["sets"]) == repr(whole.predict_one(frame.iloc[11])["sets"])
    with venn.Online(venn.Forecaster(scorer=estimator), journal=tmp_path / "run.db") as online:
        assert online.answered == 10
        online.answer("last 10", "yes")
        with pytest.raises(TypeError, match=r"x must hold numbers and text, got \[1\] at feature 'kids'"):
            online.ask({"age": 1.0, "city": "Oslo", "kids": [1]})
    events = [SimpleNamespace(id=i, x=dict(reversed(rows[i].items()))) for i in range(10)]
    with venn.Online(venn.Forecaster(scorer=estimator), journal=tmp_path / "run.db") as online:
        assert list(online.follow(events, again=True)) == []


# ------------------------------------------------------------------------- boosted trees of other packages


@pytest.mark.parametrize("numbers", [False, True], ids=["text", "numbers"])
@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_boosted_trees_get_their_categories(package, numbers):
    """An array would be read as codes: of categories that are numbers, silently wrong."""
    foreign = pytest.importorskip(package)
    frame, y = table()
    if numbers:
        frame["city"] = frame["city"].map({"Oslo": 10, "Lyon": 20, "Roma": 30}).fillna(20).astype(int)
    frame["city"] = frame["city"].astype("category")
    if package == "lightgbm":
        model = foreign.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1)
    else:
        model = foreign.XGBClassifier(n_estimators=5, enable_categorical=True)
    model.fit(frame[:USED], (y == "yes")[:USED].astype(int))
    rest = frame[USED:]
    scorer, expected = FrozenScorer(model), said(model, rest)
    np.testing.assert_allclose(scorer.score_many(rest), expected, rtol=0, atol=1e-6)
    for rows in forms(rest).values():
        np.testing.assert_allclose([scorer.scores(x) for x in rows], expected, rtol=0, atol=1e-6)


def test_a_row_with_names_is_refused_where_no_names_are_known():
    """By position it would be wrong, without a word, once its columns come in another order."""
    model = venn.Forecaster(["no", "yes"])
    for x in (pd.Series({"age": 31.0, "weight": 70.0}), pd.Series([31.0, 70.0], index=["weight", "age"])):
        with pytest.raises(TypeError, match=r"no names are known .* got a Series with the names .*: x.to_numpy\(\)"):
            model.learn_one(x, "no")
    model.learn_one(pd.Series([31.0, 70.0]), "no")
    assert model.n == 1


def test_a_row_of_the_table_that_a_scorer_was_fitted_to_is_an_object():
    frame = pd.DataFrame({"age": [31.0, 40.0, 52.0, 60.0], "weight": [70.0, 60.0, 80.0, 90.0]})
    model = venn.Forecaster(scorer=LogisticRegression().fit(frame, ["no", "no", "yes", "yes"]))
    row = frame.iloc[0]
    assert str(model.predict_one(row)) == str(model.predict_one(row.to_numpy()))
    model.learn_one(row, "no")
    with pytest.raises(ValueError, match="x must have the features"):
        model.learn_one(row[["weight", "age"]], "no")


def test_a_column_with_a_gap_stays_one_of_numbers_and_gaps_alone_are_nothing_known():
    cells = np.array([[1.0, None, "x", 1.0], [None, None, None, 2.0]], object)
    assert TableRows(cells, ("a", "b", "c", "d")).frame().dtypes.tolist() == [np.float64, object, object, np.float64]
