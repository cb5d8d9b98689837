"""Predictors merge if their scorers are of the same content, wherever copies of them have been."""

import copy
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import venn
from venn.predictors.inductive import InductiveVenn


def fitted(make, n=60, table=False):
    """An estimator fitted to the first n of 80 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))[:n]
    y = np.where(X[:, 0] > rng.normal(size=80)[:n], "a", "b")
    return make().fit(pd.DataFrame(X, columns=list("pqr")) if table else X, y)


ESTIMATORS = {
    "logistic": LogisticRegression,
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearSVC()),
    "SVC": SVC,
    "forest": lambda: RandomForestClassifier(4, random_state=np.random.RandomState(0)),  # whose repr has an address
    "neighbours": KNeighborsClassifier,  # whose tree counts how often it was asked
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=3, early_stopping=False),
    "boosting by trees": lambda: GradientBoostingClassifier(n_estimators=3, random_state=0),
    "search": lambda: GridSearchCV(SVC(), {"C": [1.0, 2.0]}),  # which holds masked arrays
}


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_scorer_is_the_same_by_its_content(name, table):
    estimator = fitted(ESTIMATORS[name], table=table)
    X = np.random.default_rng(1).normal(size=(6, 3))
    X, y = pd.DataFrame(X, columns=list("pqr")) if table else X, list("ababab")
    first = InductiveVenn(venn.FrozenScorer(estimator))
    first.learn_many(X, y)
    sent = pickle.loads(pickle.dumps(first))
    others = [sent, pickle.loads(pickle.dumps(sent)), copy.deepcopy(first), InductiveVenn(venn.FrozenScorer(estimator))]
    for other in others:
        for one in (first, sent):
            assert one.merge(other).n == one.n + other.n
            assert other.merge(one).n == one.n + other.n
    different = InductiveVenn(venn.FrozenScorer(fitted(ESTIMATORS[name], 50, table)))
    for one in (first, sent):
        with pytest.raises(ValueError, match="other must have the scorer"):
            one.merge(different)


def test_the_last_bit_of_a_coefficient_is_another_scorer():
    estimator = fitted(LogisticRegression)
    other = copy.deepcopy(estimator)
    other.coef_[0, 1] = np.nextafter(other.coef_[0, 1], np.inf)
    one, other = (InductiveVenn(venn.FrozenScorer(each)) for each in (estimator, other))
    with pytest.raises(ValueError, match="got one that prints the same, of another content"):
        one.merge(other)


class Holding:
    """A scorer that holds something, and itself; its repr does not say so."""

    classes = ("a", "b")

    def __init__(self, held):
        self.held, self.own = held, [self]

    def __repr__(self):
        return "Holding()"

    def scores(self, x):
        return np.asarray(x)


@pytest.mark.parametrize(
    ("held", "other"),
    [
        ([1, 2], [1, 2, 3]), ([1.0], [1]), ({"a": 1}, {"b": 1}), ({"a": np.nan}, {"a": 0.0}),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])), (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.zeros(2, np.float32)), (np.array([(1, 2.0)], "i1,f8"), np.array([(1, 3.0)], "i1,f8")),
        (np.array([(np.nan, 1.0)], "f8,f8"), np.array([(np.nan, 2.0)], "f8,f8")),
        (np.array([[1], "a"], object), np.array([[2], "a"], object)),
        (np.ma.masked_array([1, 2], [True, False]), np.ma.masked_array([1, 2], [False, True])),
        (Fraction(1, 2), Fraction(1, 3)), (np.random.RandomState(0), np.random.RandomState(1)),
        (sparse.csr_array(np.eye(2)), sparse.csr_array(np.diag([1.0, 2.0]))), (math.fsum, math.exp), ({1, 2}, {1, 3}),
        (np.float64("nan"), np.float64(1.0)),
    ],
)  # fmt: skip
def test_whatever_a_scorer_holds_is_compared(held, other):
    one = InductiveVenn(Holding(held))
    assert one.merge(InductiveVenn(pickle.loads(pickle.dumps(Holding(held))))).n == 0
    with pytest.raises(ValueError, match="of another content"):
        one.merge(InductiveVenn(Holding(other)))


def test_a_scorer_that_cannot_be_compared_is_refused_unless_it_is_the_same():
    lock = threading.Lock()
    one = InductiveVenn(Holding(lock))
    assert one.merge(InductiveVenn(one.scorer)).n == 0
    with pytest.raises(ValueError, match="one that cannot be compared with it: cannot pickle"):
        one.merge(InductiveVenn(Holding(threading.Lock())))
