"""Frozen scorers say what their estimators say."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import streams
import venn
from venn.machines.frozen import Answers, FrozenScorer
from venn.machines.frozen_numbers import FrozenRegressor
from venn.predictors import ExpertMixture
from venn.predictors.balanced import Balanced
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers


def multiclass(c, d=4, n=120, seed=16):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.array(["b", "a", "d", "c"])[np.argmax(X[:, :c] + rng.normal(size=(n, c)) / 2, axis=1)]
    return X, y


LINEAR = {
    "svc": lambda: LinearSVC(), "without intercept": lambda: LinearSVC(fit_intercept=False),
    "logistic": lambda: LogisticRegression(), "sgd": lambda: SGDClassifier(random_state=0),
    "ridge": lambda: RidgeClassifier(), "perceptron": lambda: Perceptron(),
}  # fmt: skip
OTHERS = {
    "rbf": lambda: SVC(), "linear kernel": lambda: SVC(kernel="linear"),
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearSVC()),
    "search": lambda: GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=2),
    "tree": lambda: DecisionTreeClassifier(max_depth=3, random_state=0), "bayes": lambda: GaussianNB(),
}  # fmt: skip


@pytest.mark.parametrize("c", [2, 3, 4])
@pytest.mark.parametrize("name", [*LINEAR, *OTHERS])
def test_scores_are_those_of_the_estimator(name, c):
    X, y = multiclass(c)
    estimator = {**LINEAR, **OTHERS}[name]().fit(X[:80], y[:80])
    if hasattr(estimator, "decision_function"):
        expected = estimator.decision_function(X)
        expected = np.column_stack([-expected, expected]) if c == 2 else expected
    else:
        expected = estimator.predict_proba(X)
    scorer = FrozenScorer(estimator)
    assert scorer.classes == tuple(estimator.classes_.tolist())
    assert all(type(label) is str for label in scorer.classes)
    scores = scorer.score_many(X)
    assert np.allclose(scores, expected, atol=1e-12)
    alone = np.array([scorer.scores(x) for x in X])
    assert np.array_equal(alone, scores) if name in LINEAR else np.allclose(alone, scores, atol=1e-12)
    assert (scorer._linear is not None) == (name in LINEAR)
    order = scorer.classes[::-1]
    assert np.array_equal(FrozenScorer(estimator, order).score_many(X), scores[:, ::-1])
    assert np.array_equal(pickle.loads(pickle.dumps(scorer)).score_many(X), scores)


@pytest.mark.parametrize("c", [2, 3])
def test_classes_that_the_estimator_has_not_seen(c):
    X, y = multiclass(c)
    known = sorted(set(y.tolist()))
    wider = ["z", *known, "x"]
    decided = FrozenScorer(LinearSVC().fit(X, y), wider).score_many(X)
    own = FrozenScorer(LinearSVC().fit(X, y)).score_many(X)
    assert np.allclose(decided[:, 1:-1], own, atol=1e-12)
    assert np.allclose(decided[:, [0, -1]], own.min(axis=1, keepdims=True), atol=1e-12)
    shares = FrozenScorer(GaussianNB().fit(X, y), wider).score_many(X)
    assert (shares[:, [0, -1]] == 0).all()
    assert np.array_equal(shares[:, 1:-1], GaussianNB().fit(X, y).predict_proba(X))
    model = InductiveVenn(FrozenScorer(LinearSVC().fit(X, y), wider))
    model.learn_many(X, ["z"] * len(X))
    assert model.predict_one(X[0]).probabilities[0, 0] > 0.9


def test_fitting_the_original_again_does_not_show():
    X, y = multiclass(3)
    for estimator in (LinearSVC(), GaussianNB()):
        scorer = FrozenScorer(estimator.fit(X, y))
        before = scorer.score_many(X)
        estimator.fit(-X, y)
        assert np.array_equal(scorer.score_many(X), before)


TABLE = {
    "bayes": lambda: GaussianNB(),
    "linear": lambda: LinearSVC(),
    "pipeline": lambda: make_pipeline(StandardScaler(), SVC()),
    "search": lambda: GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2),
    "search in a pipeline": lambda: make_pipeline(StandardScaler(), GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2)),
    "calibrated": lambda: CalibratedClassifierCV(LinearSVC(), cv=2),
}


@pytest.mark.parametrize("name", TABLE)
def test_an_estimator_fitted_to_a_table_does_not_warn(name):
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    table = pandas.DataFrame(X, columns=list("pqrs"))
    estimator = TABLE[name]().fit(table, y)
    scorer = FrozenScorer(estimator)
    expected = getattr(estimator, "decision_function" if hasattr(estimator, "decision_function") else "predict_proba")(
        table
    )
    assert scorer.feature_names == tuple("pqrs")
    assert np.allclose(scorer.scores(X[0]), expected[0], atol=1e-12)
    assert np.allclose(scorer.score_many(X), expected, atol=1e-12)
    assert np.array_equal(scorer.score_many(table), scorer.score_many(X))
    assert list(estimator.feature_names_in_) == list("pqrs")


def test_other_warnings_of_an_estimator_fitted_to_a_table_come_through():
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    scorer = FrozenScorer(Talkative().fit(pandas.DataFrame(X, columns=list("pqrs")), y))
    with pytest.warns(UserWarning, match="something else"):
        scorer.score_many(X)


class Talkative(GaussianNB):
    """Warns of something."""

    def predict_proba(self, X):
        warnings.warn("something else", UserWarning, stacklevel=2)
        return super().predict_proba(X)


@pytest.mark.parametrize("make", [lambda: LinearSVC(), lambda: GaussianNB()])
@pytest.mark.parametrize("predictor", [InductiveVenn, InductiveVennAbers])
def test_a_table_must_have_the_columns_that_the_estimator_was_fitted_to(make, predictor):
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    table = pandas.DataFrame(X, columns=list("pqrs"))
    scorer = FrozenScorer(make().fit(table, y))
    model, twin = predictor(scorer), predictor(scorer)
    twin.learn_many(X, y)
    wrong = [
        table[list("qprs")], table.rename(columns={"s": "t"}), table[list("pqr")], table.set_axis(range(4), axis=1),
    ]  # fmt: skip
    for other in wrong:
        for ask in (
            scorer.score_many, model.predict_many, lambda t: model.learn_many(t, y), lambda t: model.replay_many(t, y)
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"X must have the columns \['p', 'q', 'r', 's'\] in this order, got"):
                ask(other)
    assert model.n == 0
    for ask in (scorer.scores, model.predict_one, lambda x: model.learn_one(x, y[0]), lambda x: model.prepare(x, y[0])):
        with pytest.raises(ValueError, match=r"x must have the features \['p', 'q', 'r', 's'\] in this order, got"):
            ask(table[list("qprs")].iloc[0])
    assert model.n == 0
    model.learn_many(table, y)
    for asked in (table, X, X.tolist()):
        assert repr(model.predict_many(asked)[3]) == repr(twin.predict_many(X)[3])
    for asked in (table.iloc[3], X[3], X[3].tolist(), pandas.Series(X[3])):
        assert repr(model.predict_one(asked)) == repr(twin.predict_one(X[3]))


def test_a_table_is_refused_where_no_columns_are_known():
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    scorer = FrozenScorer(LinearSVC().fit(X, y))
    assert scorer.feature_names is None
    with pytest.raises(TypeError, match="X must be an array, for no column names are known"):
        scorer.score_many(pandas.DataFrame(X, columns=list("pqrs")))


def named(order="pqrs"):
    """A tree, examples it was not fitted to, and the same as a table with the columns in this order."""
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    table = pandas.DataFrame(X, columns=list("pqrs"))
    return DecisionTreeClassifier(random_state=0).fit(table[:60], y[:60]), X[60:], table[60:][list(order)], y[60:]


def test_named_tuples_must_have_the_names_that_the_estimator_was_fitted_to():
    tree, X, table, _ = named()
    scorer = FrozenScorer(tree)
    assert np.array_equal(scorer.scores(next(table.itertuples(index=False))), scorer.scores(X[0]))
    for other in (table[list("qprs")], table.rename(columns={"s": "t"}), table.rename(columns={"s": "a name"})):
        with pytest.raises(ValueError, match=r"x must have the features \['p', 'q', 'r', 's'\] in this order, got"):
            scorer.scores(next(other.itertuples(index=False)))
    nameless = table.set_axis(range(4), axis=1)  # its rows have places for names
    assert np.array_equal(scorer.scores(next(nameless.itertuples(index=False))), scorer.scores(X[0]))


def test_in_named_tuples_names_that_are_no_identifiers_have_given_way_to_places():
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    table = pandas.DataFrame(X, columns=["the p", "q", "class", "s"])
    scorer = FrozenScorer(GaussianNB().fit(table, y))
    assert np.array_equal(scorer.scores(next(table.itertuples(index=False))), scorer.scores(X[0]))
    with pytest.raises(ValueError, match=r"got \['q', '_1', '_2', 's'\]"):
        scorer.scores(next(table[["q", "the p", "class", "s"]].itertuples(index=False)))


@pytest.mark.parametrize("order", ["qprs", "pqr", "qrst"])
def test_streams_whose_features_stand_elsewhere_are_refused(order):
    tree, X, table, y = named()
    other = streams.from_arrays(table.assign(t=0.0)[list(order)], y)
    venns = InductiveVenn(FrozenScorer(tree))
    balanced = Balanced(InductiveVenn(FrozenScorer(tree)), (0.5, 0.5, 1.0))
    panel = venn.Panel(one=venns, two=ExpertMixture([InductiveVennAbers(FrozenScorer(tree))]), three=balanced)
    for learn in (
        lambda: venn.replay(other, venns),
        lambda: venn.replay(other, venn.Panel(two=panel["two"])),
        lambda: venn.replay(other, balanced),
        lambda: venn.replay(other, venn.Forecaster(scorer=tree)),
        lambda: venns.learn_many(other),
        lambda: venns.replay_many(other),
        lambda: balanced.learn_many(other),
    ):
        if order != "pqr":
            with pytest.raises(ValueError, match=r"stream must have the features \['p', 'q', 'r', 's'\] in this order"):
                learn()
        else:  # too few
            with pytest.raises(ValueError, match="features"):
                learn()
    assert venns.n == 0
    # Without names, and with others, features go by position.
    for stream in (streams.from_arrays(table, y), streams.from_arrays(X, y), list(zip(X, y.tolist(), strict=True))):
        assert len(venn.replay(stream, panel)) == len(y)


def by_name(last):
    """A pipeline that selects columns by name, fitted to a table, and the table."""
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3, d=3)
    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "k": np.arange(len(X)) % 3})
    columns = [(StandardScaler(), ["a", "b"]), (OneHotEncoder(sparse_output=False), ["k"])]
    return make_pipeline(make_column_transformer(*columns), last).fit(
        table, y if is_classifier(last) else X[:, 0]
    ), table


@pytest.mark.parametrize("last", [LogisticRegression(), DecisionTreeClassifier(random_state=0)])
def test_an_estimator_that_selects_columns_by_name_gets_a_table(last, recwarn):
    pipe, table = by_name(last)
    scorer = FrozenScorer(pipe)
    ask = pipe.decision_function if hasattr(pipe, "decision_function") else pipe.predict_proba
    rows = table.to_numpy(float)
    for asked in (table, rows):
        np.testing.assert_allclose(scorer.score_many(asked), ask(table), rtol=0, atol=1e-12)
    one_by_one = np.array([FrozenScorer(pipe).scores(x) for x in rows[:20]])
    np.testing.assert_allclose(one_by_one, scorer.score_many(table[:20]), rtol=0, atol=1e-12)
    if isinstance(last, DecisionTreeClassifier):
        assert np.array_equal(one_by_one, scorer.score_many(table[:20]))
        again = pickle.loads(pickle.dumps(scorer))
        assert np.array_equal(again.score_many(table), scorer.score_many(table))
    assert not recwarn
    with pytest.raises(ValueError, match="unknown categories"):  # what the array is refused for is no news
        FrozenScorer(pipe).scores([0.0, 0.0, 7.0])
    with pytest.raises(ValueError, match="x must be finite, got nan at feature 2; the estimator says: Found unknown"):
        FrozenScorer(pipe).scores([0.0, 0.0, np.nan])


def test_a_regressor_that_selects_columns_by_name_gets_a_table():
    pipe, table = by_name(LinearRegression())
    scorer = FrozenRegressor(pipe, LinearRegression().fit(table.to_numpy(), np.ones(len(table))))
    np.testing.assert_allclose(scorer.score_many(table)[:, 0], pipe.predict(table), rtol=0, atol=1e-12)
    np.testing.assert_allclose(scorer.scores(table.iloc[3])[0], pipe.predict(table[3:4])[0], rtol=0, atol=1e-12)


def test_an_estimator_that_takes_arrays_gets_no_table(monkeypatch):
    tree, X, table, _ = named()
    scorer = FrozenScorer(tree)
    monkeypatch.setattr(Answers, "_table", None)
    assert len(scorer.score_many(X)) == len(scorer.score_many(table)) == len(X)


def test_without_pandas_an_estimator_that_selects_columns_by_name_says_what_to_install(monkeypatch):
    pipe, table = by_name(LinearRegression())
    scorer, rows = FrozenRegressor(pipe), table.to_numpy(float)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match="columns") as refused:
        scorer.score_many(rows)
    assert "pip install pandas" in refused.value.__notes__[0]


def test_forecast_and_spread_must_be_fitted_to_the_same_columns():
    pipe, table = by_name(LinearRegression())
    spread = LinearRegression().fit(table[["b", "a", "k"]], np.ones(len(table)))
    with pytest.raises(
        ValueError, match=r"spread must have been fitted to the columns \['a', 'b', 'k'\] in this order"
    ):
        FrozenRegressor(pipe, spread)


def test_numeric_labels_become_python_ones():
    X, _ = multiclass(2)
    scorer = FrozenScorer(LinearSVC().fit(X, np.where(X[:, 0] > 0, 1, -1)))
    assert scorer.classes == (-1, 1)
    assert type(scorer.classes[0]) is int
    model = InductiveVenn(scorer)
    label = np.int64(1 if X[0, 0] > 0 else -1)
    model.learn_one(X[0], label)
    assert model.predict_one(X[0]).lower == 0.5


def test_what_cannot_be_frozen():
    X, y = multiclass(3)
    for wrong in (LinearSVC, None, "svc", StandardScaler().fit(X), object()):
        with pytest.raises((TypeError, ValueError), match="estimator must"):
            FrozenScorer(wrong)
    with pytest.raises(ValueError, match="estimator must be a fitted classifier"):
        FrozenScorer(LinearSVC())
    with pytest.raises(ValueError, match="estimator must be a fitted classifier"):
        FrozenScorer(make_pipeline(StandardScaler(), LinearSVC()))
    for votes in (SVC(decision_function_shape="ovo"), make_pipeline(SVC(decision_function_shape="ovo"))):
        with pytest.raises(ValueError, match="one-against-one"):
            FrozenScorer(votes.fit(X, y))
    for shape in ("ovo", "ovr"):
        search = GridSearchCV(SVC(), {"decision_function_shape": [shape]}, cv=2)
        step = GridSearchCV(make_pipeline(SVC()), {"svc__decision_function_shape": [shape]}, cv=2)
        for votes in (search, step, make_pipeline(StandardScaler(), search)):
            if shape == "ovr":
                assert FrozenScorer(votes.fit(X, y)).score_many(X).shape == (120, 3)
                continue
            with pytest.raises(ValueError, match="one-against-one"):
                FrozenScorer(votes.fit(X, y))
    # What a search was told at first does not matter, what it found does.
    other = GridSearchCV(SVC(decision_function_shape="ovo"), {"decision_function_shape": ["ovr"]}, cv=2)
    assert np.allclose(FrozenScorer(other.fit(X, y)).score_many(X), SVC().fit(X, y).decision_function(X))
    for columns in (2, 6):
        with pytest.raises(ValueError, match=rf"scores must be \(120, 3\).*got shape \(120, {columns}\)"):
            FrozenScorer(Columns(columns).fit(X, y)).score_many(X)
    fitted = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="classes must hold all classes of the estimator"):
        FrozenScorer(fitted, ["a", "b"])
    scorer = FrozenScorer(fitted)
    for bad, message in (([0.0], "4 features"), ([0.0, 1, 2, np.inf], "finite"), ([[0.0, 1, 2, 3]], "one dimension")):
        with pytest.raises(ValueError, match=message):
            scorer.scores(bad)
    with pytest.raises(ValueError, match="two-dimensional"):
        scorer.score_many(X[0])
    with pytest.raises(ValueError, match="scores must be finite, got nan for class 'a' at row 1"):
        FrozenScorer(Undefined().fit(X, y)).score_many(X[:3])


class Columns(GaussianNB):
    """Has so many decision values, whatever the number of classes."""

    def __init__(self, columns=2):
        super().__init__()
        self.columns = columns

    def decision_function(self, X):
        return np.zeros((len(X), self.columns))


class Undefined(GaussianNB):
    """Has no probability for the second row."""

    def predict_proba(self, X):
        shares = super().predict_proba(X)
        shares[1:2] = np.nan
        return shares


def test_missing_values_go_to_an_estimator_that_takes_them():
    X, y = multiclass(2)
    X[::3, 0] = np.nan
    tree = DecisionTreeClassifier(random_state=0).fit(X[:60], y[:60])
    model = InductiveVennAbers(FrozenScorer(tree))
    model.learn_many(X[60:], y[60:])
    copy = pickle.loads(pickle.dumps(model))
    for x in X[:6]:
        np.testing.assert_array_equal(model.predict_one(x).pairs, copy.predict_one(x).pairs)
    np.testing.assert_array_equal(FrozenScorer(tree).score_many(X), tree.predict_proba(X))
    with pytest.raises(ValueError, match="x must be finite, got inf at feature 1"):
        model.predict_one([np.nan, np.inf, 0.0, 0.0])
    n = model.n
    for kind in (LogisticRegression(), SVC()):  # one scored by its coefficients, one by itself
        fitted = FrozenScorer(kind.fit(X[1::3], y[1::3]))
        with pytest.raises(ValueError, match=r"finite|NaN"):
            fitted.scores(X[0])
    assert model.n == n


def test_probabilities_serve_predictors_that_read_one_class_at_a_time():
    X, y = multiclass(3)
    fitted = LogisticRegression().fit(X, y)
    scorer = FrozenScorer(fitted)
    other = scorer.by_probabilities()
    np.testing.assert_allclose(other.score_many(X), fitted.predict_proba(X), rtol=1e-12)
    assert repr(other).endswith("method='predict_proba')")
    assert other.by_probabilities() is other
    assert repr(pickle.loads(pickle.dumps(other))) == repr(other)
    two = FrozenScorer(LogisticRegression().fit(*multiclass(2)))
    without = FrozenScorer(LinearSVC().fit(X, y))
    assert two.by_probabilities() is two
    assert without.by_probabilities() is without
    with pytest.raises(ValueError, match=r"method must be one of .* got 'predict_proba'"):
        FrozenScorer(LinearSVC().fit(X, y), method="predict_proba")


class Softened(LogisticRegression):
    """Has probabilities of its own."""

    def predict_proba(self, X):
        return super().predict_proba(X) / 2 + 1 / (2 * len(self.classes_))


@pytest.mark.parametrize("form", ["rows", "sparse"])
def test_probabilities_of_logistic_regression_have_the_same_bits_in_a_block_as_alone(form):
    X, y = multiclass(3)
    fitted = LogisticRegression(C=100).fit(X, y)
    scorer = FrozenScorer(fitted, method="predict_proba")
    given = X if form == "rows" else scipy.sparse.csr_array(X)
    block = scorer.score_many(given)
    np.testing.assert_allclose(block, fitted.predict_proba(X), rtol=1e-12)
    for i, row in enumerate(block):
        np.testing.assert_array_equal(scorer.scores(given[[i]] if form == "sparse" else X[i]), row)
    largest = FrozenScorer(fitted, method="predict_proba").scores(X[0] * 1e6)  # without overflow
    assert largest.sum() == pytest.approx(1)


def test_probabilities_that_are_no_softmax_are_those_of_the_estimator():
    X, y = multiclass(3)
    each = [Softened().fit(X, y), OneVsRestClassifier(LogisticRegression()).fit(X, y), LogisticRegression().fit(X, y)]
    each[2].multi_class = "ovr"  # as before scikit-learn 1.8
    for fitted in (*each, LogisticRegression().fit(X, y == y[0])):
        scorer = FrozenScorer(fitted, method="predict_proba")
        np.testing.assert_array_equal(scorer.score_many(X), fitted.predict_proba(X))


def test_a_scorer_is_restored_with_the_same_coefficients_alone():
    X, y = multiclass(3)
    scorer, other = (FrozenScorer(LogisticRegression(C=C).fit(X, y), method="predict_proba") for C in (1, 2))
    assert type(scorer.state["checksum"]) is int
    scorer.restore(scorer.state)
    with pytest.raises(ValueError, match="other coefficients"):
        scorer.restore(other.state)
    with pytest.raises(ValueError, match="other coefficients"):
        FrozenScorer(LogisticRegression().fit(X, y)).restore({"checksum": None})


@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_a_chosen_method_of_several_classes_is_read_whoever_reads_it(method):
    X, y = multiclass(3)
    fitted = LogisticRegression().fit(X, y)
    scorer = FrozenScorer(fitted, [*fitted.classes_.tolist(), "new"], method=method)
    expected = getattr(fitted, method)(X)
    scores = scorer.score_many(X)
    np.testing.assert_allclose(scores[:, :-1], expected, rtol=1e-12)
    np.testing.assert_allclose(scores[:, -1], 0.0 if method == "predict_proba" else expected.min(axis=1), rtol=1e-12)
    assert scorer.probabilities == (method == "predict_proba")
    assert scorer.by_probabilities() is scorer


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ("width", "'width': a loop over a data frame gives names of columns"),
        ({"a": 1.0}, r"the mapping \{'a': 1.0\}: give the values alone"),
        ([1.0, "Oslo"], r"'Oslo' at feature 1: encode text first, or give a fitted pipeline that does"),
        ([1.0, None], "None at feature 1: put a fixed number in the place of each gap"),
        (np.array("Oslo"), r"array\('Oslo'"),
    ],
)
def test_what_is_no_row_of_numbers_says_what_to_give(x, said):
    scorer = FrozenScorer(LinearSVC().fit(*multiclass(2)))
    with pytest.raises(TypeError, match=f"x must be a sequence of numbers, got {said}"):
        scorer.scores(x)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.array([[1.0, "Oslo"], [2.0, "Rome"]], object), "'Oslo' at row 0, feature 1: encode text first"),
        ([[1.0, 2.0], [3.0, "Oslo"]], "'Oslo' at row 1, feature 1: encode text first"),
        (np.array([[1.0, 2.0], [3.0, None]]), "None at row 1, feature 1$"),
        (["Oslo"], r"\['Oslo'\]"),
    ],
)
def test_what_are_no_rows_of_numbers_says_where(X, said):
    scorer = FrozenScorer(LinearSVC().fit(*multiclass(2)))
    with pytest.raises(TypeError, match=rf"X must be rows of numbers \(n, d\), got {said}"):
        scorer.score_many(X)


def test_a_table_of_numbers_and_truth_values_is_one_of_numbers():
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(2)
    table = pandas.DataFrame({"width": X[:, 0], "city_Oslo": X[:, 1] > 0})
    scorer = FrozenScorer(LinearSVC().fit(table, y))
    expected = scorer.score_many(table.to_numpy(np.float64))
    assert table.to_numpy().dtype == object
    assert scorer.score_many(table).tolist() == expected.tolist()
    assert scorer.scores(table.iloc[3]).tolist() == expected[3].tolist()
    for huge in ([[10**400, 1]], np.array([[10**400, True]], object)):
        with pytest.raises(TypeError, match="X must be rows of numbers"):
            scorer.score_many(huge)
        with pytest.raises((TypeError, ValueError), match=r"x must be (a sequence of numbers|finite, got an integer)"):
            scorer.scores(huge[0])
    with pytest.raises(TypeError, match="None at row 0, feature 1"):
        scorer.score_many(np.array([[1.0, None], [True, 2]], object))


def test_a_regressor_in_place_of_a_classifier_says_where_it_belongs():
    fitted = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"got LinearRegression\(\): a regressor stands in InductiveDistribution"):
        FrozenScorer(fitted)
    with pytest.raises(TypeError, match=r"a regressor as FrozenRegressor\(regressor\)"):
        InductiveVenn(fitted)


def test_a_table_in_place_of_an_object_says_what_takes_tables():
    pandas = pytest.importorskip("pandas")
    scorer = FrozenScorer(LinearSVC().fit(*multiclass(2)))
    with pytest.raises(TypeError, match=r"got a DataFrame: a loop over .* gives its rows, and predict_many"):
        scorer.scores(pandas.DataFrame({"width": [1.0], "height": [2.0]}))


class Told:
    """A classifier whose answers are the objects themselves."""

    def predict_proba(self, X):
        return np.asarray(X)


def test_classes_may_be_a_list_or_given():
    X = np.array([[0.25, 0.75], [1.0, 0.0]])
    listed = Told()
    listed.classes_ = ["no", "yes"]
    for scorer in (FrozenScorer(listed), FrozenScorer(Told(), ["no", "yes"]), FrozenScorer(Told(), ("no", "yes"))):
        assert scorer.classes == ("no", "yes")
        assert scorer.score_many(X).tolist() == X.tolist()
    assert venn.Forecaster(["no", "yes"], scorer=Told()).classes == ("no", "yes")
    assert FrozenScorer(listed, ["maybe", "yes", "no"]).scores(X[0]).tolist() == [0.0, 0.75, 0.25]
    listed.classes_ = [np.array(["no", "yes"]), np.array([0, 1])]
    with pytest.raises(ValueError, match="estimator must predict one label"):
        FrozenScorer(listed)
    for estimator in (Told(), DecisionTreeClassifier()):
        with pytest.raises(ValueError, match="estimator must be a fitted classifier, with classes_"):
            FrozenScorer(estimator, None if isinstance(estimator, Told) else ["no", "yes"])
    with pytest.raises(ValueError, match=r"scores must be \(1, 3\)"):
        FrozenScorer(Told(), [0, 1, 2]).scores(X[0])


@pytest.mark.parametrize("x", [[0.5, 0.6], [0.2, 0.2], [-0.5, 1.5], [3.0, -3.0]])
def test_what_is_no_probability_is_refused(x):
    scorer = FrozenScorer(Told(), [0, 1])
    with pytest.raises(ValueError, match=r"predict_proba must give probabilities, which sum to 1, got \["):
        scorer.scores(x)
    with pytest.raises(ValueError, match="at row 1: other scores are those of a method decision_function"):
        scorer.score_many([[0.5, 0.5], x])
    single = np.array([[0.3, 0.7]], np.float32) / np.float32(1.0000005)
    assert scorer.score_many(single).shape == (1, 2)


def test_an_error_of_the_estimator_s_own_code_refuses_the_object():
    class Looking:
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.array([{0.0: [0.25, 0.75]}[row[0]] for row in X.tolist()])

    scorer = venn.FrozenScorer(Looking())
    assert scorer.scores([0.0]).tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match=r"x must be what the estimator takes, which says: KeyError: 1\.0"):
        scorer.scores([1.0])
