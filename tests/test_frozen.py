"""Frozen scorers say what their estimators say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from venn.machines.frozen import FrozenScorer
from venn.predictors.inductive import InductiveVenn


def multiclass(c, d=4, n=120, seed=16):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.array(["b", "a", "d", "c"])[np.argmax(X[:, :c] + rng.normal(size=(n, c)) / 2, axis=1)]
    return X, y


LINEAR = {
    "svc": lambda: LinearSVC(),
    "without intercept": lambda: LinearSVC(fit_intercept=False),
    "logistic": lambda: LogisticRegression(),
    "sgd": lambda: SGDClassifier(random_state=0),
    "ridge": lambda: RidgeClassifier(),
    "perceptron": lambda: Perceptron(),
}
OTHERS = {
    "rbf": lambda: SVC(),
    "linear kernel": lambda: SVC(kernel="linear"),
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearSVC()),
    "search": lambda: GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=2),
    "tree": lambda: DecisionTreeClassifier(max_depth=3, random_state=0),
    "bayes": lambda: GaussianNB(),
}


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


def test_an_estimator_fitted_to_a_table_does_not_warn():
    pandas = pytest.importorskip("pandas")
    X, y = multiclass(3)
    table = pandas.DataFrame(X, columns=list("pqrs"))
    estimator = GaussianNB().fit(table, y)
    scorer = FrozenScorer(estimator)
    assert np.array_equal(scorer.scores(X[0]), estimator.predict_proba(table)[0])
    assert np.array_equal(scorer.score_many(table), scorer.score_many(X))
    assert list(estimator.feature_names_in_) == list("pqrs")


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


class Undefined(GaussianNB):
    """Has no probability for the second row."""

    def predict_proba(self, X):
        shares = super().predict_proba(X)
        shares[1:2] = np.nan
        return shares
