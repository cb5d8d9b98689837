"""Walked trees answer as scikit-learn's estimators do, to the last bit, or leave the answer to these."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from venn.machines import trees as trees_module
from venn.machines.frozen import FrozenScorer
from venn.machines.frozen_numbers import FrozenRegressor
from venn.machines.trees import FlatTrees
from venn.online.checkpoint import pack, unpack

CLASSIFIERS = {
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "extra tree": lambda: ExtraTreeClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(21, random_state=0),
    "best first": lambda: RandomForestClassifier(9, max_leaf_nodes=12, class_weight="balanced", random_state=0),
    "extra": lambda: ExtraTreesClassifier(21, random_state=0),
    "gradient": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "gradient from zero": lambda: GradientBoostingClassifier(n_estimators=5, init="zero", random_state=0),
    "stumps": lambda: GradientBoostingClassifier(n_estimators=10, max_depth=1, subsample=0.5, random_state=0),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=12, random_state=0),
    "hist of stumps": lambda: HistGradientBoostingClassifier(max_iter=9, max_depth=1, l2_regularization=1.0),
    "one leaf": lambda: DecisionTreeClassifier(min_samples_leaf=10_000),
    "one leaf each": lambda: HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=10_000),
}
REGRESSORS = {
    "tree": lambda: DecisionTreeRegressor(random_state=0),
    "extra tree": lambda: ExtraTreeRegressor(random_state=0),
    "forest": lambda: RandomForestRegressor(11, random_state=0),
    "medians": lambda: RandomForestRegressor(3, criterion="absolute_error", max_depth=4, random_state=0),
    "extra": lambda: ExtraTreesRegressor(11, random_state=0),
    "gradient": lambda: GradientBoostingRegressor(n_estimators=12, random_state=0),
    "quantile": lambda: GradientBoostingRegressor(loss="quantile", alpha=0.9, n_estimators=8, random_state=0),
    "hist": lambda: HistGradientBoostingRegressor(max_iter=12, random_state=0),
    "hist quantile": lambda: HistGradientBoostingRegressor(max_iter=8, loss="quantile", quantile=0.1),
    "counts": lambda: HistGradientBoostingRegressor(max_iter=12, loss="poisson", random_state=0),
    "waiting times": lambda: HistGradientBoostingRegressor(max_iter=12, loss="gamma", random_state=0),
}


def table(c, n=500, seed=0, missing=False):
    """Rows with a constant column, a coarse one, and numbers of 64 bits; class codes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 3], X[:, 4] = 7.25, X[:, 4].round(1)
    y = np.argsort(np.argsort(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) / 2)) * c // n
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def fitted(make, c=2, missing=False, **options):
    X, y = table(c, missing=missing)
    estimator = make()
    return estimator.fit(X, y if is_classifier(estimator) else y + np.abs(np.nan_to_num(X[:, 0])) + 0.1, **options)


def asked(estimator):
    """Rows that were not fitted, and rows at the thresholds of its trees, one float of 32 or 64 bits beside them."""
    X, _ = table(2, 200, seed=1)
    thresholds = FlatTrees.of(estimator).parameters["thresholds"]
    if len(thresholds):
        at = np.random.default_rng(2).choice(thresholds[np.isfinite(thresholds)], (120, X.shape[1]))
        beside = [np.nextafter(at[:40].astype(np.float32), np.float32(way)) for way in (-np.inf, np.inf)]
        X = np.vstack([X, at, *beside, np.nextafter(at[40:80], np.inf), np.nextafter(at[40:80], -np.inf)])
    return X


def check(estimator, X):
    """Compare all answers, alone and in blocks, to the last bit; return the trees."""
    trees = FlatTrees.of(estimator)
    assert trees is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without names
        for method in ("decision_function", "predict_proba", "predict"):
            if method not in trees.answers:
                continue
            ask = getattr(estimator, method)
            whole = trees.answer(method, X)
            assert np.array_equal(whole, ask(X))
            alone = np.concatenate([trees.answer(method, row[None]) for row in X])
            assert alone.tobytes() == whole.tobytes()
            for row in X[:: max(1, len(X) // 5)]:
                assert np.array_equal(trees.answer(method, row[None]), ask(row[None]))
    return trees


def test_not_compiled_the_loop_says_the_same(monkeypatch):
    """So what measures the tests, with the compiler off, sees all that fits trees."""
    X, y = table(2, 60)
    trees = FlatTrees.of(RandomForestClassifier(5, random_state=0).fit(X, y))
    expected, loop = trees.proba(X), trees_module.tree_sums
    monkeypatch.setattr(trees_module, "tree_sums", getattr(loop, "py_func", loop))
    assert np.array_equal(trees.proba(X), expected)


@pytest.mark.parametrize("c", [2, 5])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, c):
    estimator = fitted(CLASSIFIERS[name], c)
    X = asked(estimator)
    trees = check(estimator, X)
    assert np.array_equal(trees.proba_one(X[0]), estimator.predict_proba(X[:1])[0])
    assert np.array_equal(trees.proba(X[:3].tolist()), estimator.predict_proba(X[:3]))


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    estimator = fitted(REGRESSORS[name])
    X = asked(estimator)
    assert np.array_equal(check(estimator, X).predict(X), estimator.predict(X))


def test_the_exponential_loss():
    estimator = fitted(lambda: GradientBoostingClassifier(loss="exponential", n_estimators=8, random_state=0))
    check(estimator, asked(estimator))


@pytest.mark.parametrize("name", ["tree", "forest", "extra", "gradient", "hist"])
def test_weights_of_examples(name):
    estimator = fitted(CLASSIFIERS[name], 3, sample_weight=np.random.default_rng(0).random(500))
    check(estimator, asked(estimator))


def test_eight_classes_or_more_differ_at_most_by_rounding_in_blocks():
    estimator = fitted(CLASSIFIERS["hist"], 11)
    X = asked(estimator)
    trees = FlatTrees.of(estimator)
    assert np.array_equal(trees.answer("decision_function", X), estimator.decision_function(X))
    assert np.abs(trees.proba(X) - estimator.predict_proba(X)).max() < 1e-15
    assert all(np.array_equal(trees.proba_one(x), estimator.predict_proba(x[None])[0]) for x in X[:20])


def test_one_class():
    X, y = table(2)
    check(RandomForestClassifier(3).fit(X, np.zeros_like(y)), X[:20])


# ------------------------------------------------------------------------- missing and infinite

WITH_GAPS = ["tree", "forest", "hist"]


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("name", WITH_GAPS)
@pytest.mark.parametrize("numbers", [False, True])
def test_missing_values_where_the_estimator_takes_them(name, seen, numbers):
    estimator = fitted((REGRESSORS if numbers else CLASSIFIERS)[name], missing=seen)
    X = asked(estimator)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    X[:2] = np.nan
    assert check(estimator, X).missing


def test_missing_values_where_it_does_not():
    estimator = fitted(CLASSIFIERS["gradient"])
    trees = FlatTrees.of(estimator)
    X = table(2, 3)[0]
    X[1, 2] = np.nan
    assert not trees.missing
    with pytest.raises(ValueError, match="X must be numbers of 32 bits, got nan at row 1, feature 2"):
        trees.proba(X)
    scorer = FrozenScorer(estimator)
    with pytest.raises(ValueError, match=r"X must be finite, got nan at row 1, feature 2; the estimator says: "):
        scorer.score_many(X)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # by scikit-learn
@pytest.mark.parametrize("value", [np.inf, -np.inf, 3.5e38, -1e300])
def test_infinite_and_huge_numbers(value):
    x = table(2, 1)[0]
    x[0, 1] = value
    for name in ("forest", "gradient"):
        estimator = fitted(CLASSIFIERS[name])
        with pytest.raises(ValueError, match="infinity or a value too large"):
            estimator.predict_proba(x)
        with pytest.raises(ValueError, match=r"X must be .* of 32 bits, got .* at row 0, feature 1"):
            FlatTrees.of(estimator).proba_one(x[0])
    check(fitted(CLASSIFIERS["hist"]), x)
    check(fitted(CLASSIFIERS["hist"], missing=True), x)


def test_numbers_are_rounded_as_the_trees_round_them():
    """A number that lies on the other side of a threshold once it is rounded to 32 bits."""
    step = 2.0**-13  # of floats of 32 bits at 1024
    tree = DecisionTreeClassifier().fit(np.array([[1024.0], [1024 + 2 * step]] * 10), [0, 1] * 10)
    assert tree.tree_.threshold[0] == 1024 + step
    beside = 1024 + step * np.array([[1.0], [1.4], [1.5], [1.6]])
    assert tree.predict_proba(beside)[:, 1].tolist() == [0.0, 0.0, 1.0, 1.0]
    check(tree, beside)


# --------------------------------------------------------------------------------- categories


def with_categories(c=2, n=600, seed=0):
    """Rows whose first and last columns are categories: negative, apart, more than 32 of them, some missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 0], X[:, 3] = rng.integers(0, 40, n) * 3 - 20.5, rng.integers(10, 14, n)
    y = ((X[:, 0] * 7 % 5 + X[:, 3] % 2 * 2 + X[:, 1]) // 2).astype(int) % c
    X[rng.random(n) < 0.1, 0] = np.nan
    return X, y


def strange(X):
    """The rows, and rows with categories that were not seen."""
    more = X[:40].copy()
    more[:10, 0], more[10:20, 3], more[20:30, 0], more[30:, 3] = 0.25, 12.5, -1e9, np.nan
    return np.vstack([X[:200], more])


@pytest.mark.parametrize("c", [2, 5])
def test_categories(c):
    X, y = with_categories(c)
    estimator = HistGradientBoostingClassifier(max_iter=15, categorical_features=[0, 3]).fit(X, y)
    trees = check(estimator, strange(X))
    assert len(trees.sets)
    regressor = HistGradientBoostingRegressor(max_iter=10, categorical_features=[3]).fit(X, y)
    assert len(check(regressor, strange(X)).sets)
    x = X[:1].copy()
    x[0, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        estimator.predict_proba(x)
    with pytest.raises(ValueError, match="got inf at row 0, feature 3"):
        trees.proba(x)


def test_categories_of_tables():
    pandas = pytest.importorskip("pandas")
    X, y = with_categories()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    frame["a"], frame["d"] = frame["a"].astype("category"), frame["d"].astype(int).astype("category")
    estimator = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype").fit(frame, y)
    trees = check(estimator, strange(X))
    assert len(trees.sets)
    assert np.array_equal(trees.proba(X), estimator.predict_proba(frame))
    scorer = FrozenScorer(estimator)
    assert np.array_equal(scorer.score_many(frame)[:, 1], estimator.decision_function(frame))
    words = frame.assign(d=pandas.Categorical([f"kind {int(d)}" for d in X[:, 3]]))
    assert (
        FlatTrees.of(HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype").fit(words, y))
        is None
    )
    forest = RandomForestClassifier(5, random_state=0).fit(frame[["b", "c"]], y)  # names, and no categories
    check(forest, X[:50, 1:3])


# ---------------------------------------------------------------------- left to scikit-learn


class Halved(RandomForestClassifier):
    """A forest that answers otherwise."""

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def two_outputs():
    X, y = table(2)
    return RandomForestClassifier(3).fit(X, np.column_stack([y, y]))


LEFT = {
    "a class of one's own": lambda: fitted(lambda: Halved(3)),
    "a start of one's own": lambda: fitted(
        lambda: GradientBoostingClassifier(n_estimators=3, init=LogisticRegression())
    ),
    "two outputs": two_outputs, "a pipeline": lambda: fitted(lambda: make_pipeline(DecisionTreeClassifier())),
    "not fitted": lambda: RandomForestClassifier(), "no trees": lambda: fitted(LogisticRegression),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_others_are_left_to_scikit_learn(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = LEFT[name]()
    assert FlatTrees.of(estimator) is None


def test_a_class_of_ones_own_keeps_its_answers():
    scorer = FrozenScorer(fitted(lambda: Halved(3)))
    assert (scorer.score_many(table(2, 5)[0]) == 0.5).all()


def test_trees_of_another_version_are_left_to_it(monkeypatch):
    """What is read differs from what the estimator says: it is asked itself."""
    estimator = fitted(CLASSIFIERS["forest"])
    found = trees_module.parts(estimator)
    for name, value in (("thresholds", found["thresholds"] + 0.1), ("leaves", found["leaves"] + 1e-9), ("roots", None)):
        monkeypatch.setattr(trees_module, "parts", lambda _, name=name, value=value: {**found, name: value})
        assert FlatTrees.of(estimator) is None
    monkeypatch.undo()
    scorer = FrozenScorer(estimator)
    monkeypatch.setattr(trees_module, "parts", lambda _: None)
    X = table(2, 50)[0]
    assert np.array_equal(FrozenScorer(estimator).score_many(X), scorer.score_many(X))
    del estimator.estimators_[0].tree_
    monkeypatch.undo()
    assert FlatTrees.of(estimator) is None


def test_what_cannot_be_asked():
    trees = FlatTrees.of(fitted(CLASSIFIERS["forest"]))
    with pytest.raises(ValueError, match=r"method must be one of \('predict_proba',\), got 'predict'"):
        trees.predict([[0.0] * 5])
    with pytest.raises(ValueError, match=r"X must be rows \(n, 5\), got shape \(1, 4\)"):
        trees.proba_one([0.0] * 4)
    assert trees.proba(np.zeros((0, 5))).shape == (0, 2)
    assert repr(trees).startswith("<FlatTrees: 21 trees")


# ------------------------------------------------------------------------- saved and damaged


@pytest.mark.parametrize(
    "again", [lambda one: unpack(pack(one)), lambda one: pickle.loads(pickle.dumps(one)), copy.copy]
)
def test_saved_trees_need_no_estimator(again):
    X, y = with_categories(3)
    for estimator in (
        HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 3]).fit(X, y),
        RandomForestClassifier(5).fit(X, y),
        GradientBoostingRegressor(n_estimators=5).fit(np.nan_to_num(X), y),
    ):
        trees = FlatTrees.of(estimator)
        loaded = again(trees)
        (method, *_) = trees.answers
        rows = strange(X) if trees.missing else X[~np.isnan(X).any(axis=1)]
        assert loaded.answer(method, rows).tobytes() == trees.answer(method, rows).tobytes()
        assert pack(loaded) == pack(trees)


def spoiled(name, place, value):
    def change(parameters):
        parameters[name] = parameters[name].copy()
        parameters[name][place] = value

    return change


def replaced(name, value):
    return lambda parameters: parameters.update({name: value})


DAMAGE = {
    "a node that is its own child": spoiled("left", 3, 3), "a node that goes back": spoiled("right", 4, 0),
    "a child that is not there": spoiled("left", 0, 10**6), "a leaf that is not there": spoiled("right", 0, -(10**6)),
    "a root that is not there": spoiled("roots", 0, 10**6), "a column that is not there": spoiled("columns", 0, 4),
    "a column below 0": spoiled("columns", 0, -1), "a set that is not there": spoiled("how", 0, 10**6),
    "a set for a column of numbers": spoiled("columns", slice(None), 1),
    "categories that are not there": spoiled("places", -1, 10**6), "places out of order": spoiled("places", 1, 44),
    "another word": replaced("link", "probit"), "another type": replaced("left", np.zeros(3)),
    "too few leaves": replaced("leaves", np.zeros((1, 1))),
    "leaves of two columns": replaced("leaves", np.zeros((10**6, 2))),
    "too few classes": replaced("start", np.zeros(2)), "nothing": replaced("roots", np.zeros(0, np.int64)),
    "sets of other size": replaced("sets", np.zeros((100, 4), np.uint32)), "no array": replaced("thresholds", 3),
    "no flag": replaced("single", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_arrays_are_refused(name):
    X, y = with_categories()
    estimator = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0, 3]).fit(X, y)
    parameters = FlatTrees.of(estimator).parameters
    assert (parameters["how"] > 1).any()
    FlatTrees.made_of(dict(parameters))
    DAMAGE[name](parameters)
    with pytest.raises((ValueError, TypeError)):
        FlatTrees.made_of(parameters)


# --------------------------------------------------------------------- scorers and regressors


@pytest.mark.parametrize("name", ["forest", "extra", "gradient", "hist"])
def test_scorers_never_ask_the_estimator(name, monkeypatch):
    estimator = fitted(CLASSIFIERS[name], 3)
    scorer = FrozenScorer(estimator, ("x", 2, 0, 1))
    X = asked(estimator)
    scorer.scores(X[0])  # made at the first use
    method = "predict_proba" if name in ("forest", "extra") else "decision_function"
    expected = getattr(estimator, method)(X)

    monkeypatch.setattr(type(estimator), method, None)
    found = scorer.score_many(X)
    assert np.array_equal(found[:, [2, 3, 1]], expected)
    assert np.array_equal(scorer.scores(X[3]), found[3])


def test_regressors_never_ask_the_estimator(monkeypatch):
    estimator, spread = fitted(REGRESSORS["forest"]), fitted(REGRESSORS["counts"])
    scorer = FrozenRegressor(estimator, spread)
    X = asked(estimator)
    scorer.scores(X[0])
    expected = np.column_stack([estimator.predict(X), spread.predict(X)])
    for kind in (RandomForestRegressor, HistGradientBoostingRegressor):
        monkeypatch.setattr(kind, "predict", None)
    assert np.array_equal(scorer.score_many(X), expected)
    assert np.array_equal(scorer.scores(X[5]), expected[5])


def test_sparse_rows_go_to_the_estimator():
    estimator = fitted(CLASSIFIERS["forest"])
    X = table(2, 20)[0]
    assert np.array_equal(
        FrozenScorer(estimator).score_many(scipy.sparse.csr_array(X)), FrozenScorer(estimator).score_many(X)
    )
