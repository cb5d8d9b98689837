"""Venn-Abers for any classifier: equal to isotonic refits, valid where it says, complete whatever is missing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimator_checks import parametrize_with_each
from naive import svc as naive
from naive.abers import refitted
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from test_svc import realised, refuted

import venn
from venn.adapters.calibrator import VennAbersCalibrator

ONE_SPLIT = ShuffleSplit(1, test_size=0.4, random_state=0)
NAMES = np.array(["ant", "bee", "cow", "dog"])
SCORERS = {
    "decision values": LogisticRegression(),
    "probabilities": GaussianNB(),
    "few values": DecisionTreeClassifier(max_depth=2, random_state=0),
}


def examples(n=60, c=2, seed=0):
    """Overlapping classes on a coarse grid: ties, duplicates, equal objects with different labels."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    X = np.round(rng.normal(size=(n, 2)) + np.column_stack([codes, codes % 2]), 0)
    return X, NAMES[codes]


def said(model, X):
    """Return all that a calibrator says of objects, as one array."""
    return np.concatenate([model.predict_proba(X)[..., None], model.predict_interval(X)], axis=2)


def scores(estimator, X):
    """Return (n, c) scores of the same order: decision values of two classes, probabilities of more, to 9 decimals."""
    two = len(estimator.classes_) == 2
    asked = getattr(estimator, "decision_function", estimator.predict_proba) if two else estimator.predict_proba
    f = asked(X).round(9)
    return np.column_stack([-f, f]) if f.ndim == 1 else f


def by_refits(f, labels, classes, new):
    """Return (n, c, 2): two isotonic regressions for each class and object."""
    return np.array([[refitted(f[:, k], labels == name, row[k]) for k, name in enumerate(classes)] for row in new])


@parametrize_with_each(
    [
        VennAbersCalibrator(LogisticRegression()),
        VennAbersCalibrator(DecisionTreeClassifier(max_depth=3, random_state=0), cv=2),
    ]
)
@pytest.mark.filterwarnings("ignore")  # the checks fit classes of few examples, of which the splitter warns
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------- equal to isotonic refits


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", SCORERS)
def test_a_fitted_classifier_and_two_isotonic_regressions(name, c):
    X, y = examples(n=90, c=c, seed=1)
    classes, new = NAMES[:c], np.concatenate([X[:12], [[0.5, 0.5], [9.0, -9.0]]])
    fitted = clone(SCORERS[name]).fit(X[:40], y[:40])
    model = VennAbersCalibrator(fitted, cv="prefit").fit(X[40:], y[40:])
    pairs = by_refits(scores(fitted, X[40:]), y[40:], classes, scores(fitted, new))
    np.testing.assert_allclose(model.predict_interval(new), pairs, atol=1e-12)
    merged = pairs[..., 1] / (1 - pairs[..., 0] + pairs[..., 1])
    np.testing.assert_allclose(model.predict_proba(new), merged / merged.sum(axis=1, keepdims=True), atol=1e-12)
    assert model.n_calibration_ == 50


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("merge", [None, venn.maps.BrierMerge()], ids=["log", "Brier"])
def test_folds_are_merged(c, merge):
    X, y = examples(n=130, c=c, seed=2)
    new = X[:12] + 0.25
    folds = []
    for training, calibration in StratifiedKFold(4).split(X, y):
        fitted = LogisticRegression().fit(X[training], y[training])
        f = scores(fitted, X[calibration])
        folds.append(by_refits(f, y[calibration], NAMES[:c], scores(fitted, new)))
    pairs = np.array(folds)
    if merge is None:
        merged = naive.log_merged(pairs)
    else:
        merged = (pairs[..., 1] + (pairs[..., 0] ** 2 - pairs[..., 1] ** 2) / 2).mean(axis=0)
    if c == 2 and merge is not None:
        merged[:, 0] = 1 - merged[:, 1]  # the first class is the complement of the second
    model = VennAbersCalibrator(LogisticRegression(), cv=4, merge=merge).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(new), merged / merged.sum(axis=1, keepdims=True), atol=1e-12)
    if merge is None:
        ends = np.stack([naive.log_merged(pairs[..., [k, k]]) for k in (0, 1)], axis=2)
        np.testing.assert_allclose(model.predict_interval(new), ends, atol=1e-12)


class Forecasts(ClassifierMixin, BaseEstimator):
    """Probabilities of two classes at the ends of the scale, to the last bit of both, and 0 and 1 in the end."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.turned_ = np.corrcoef(np.ravel(X), y == self.classes_[1])[0, 1] < 0
        return self

    def predict_proba(self, X):
        odds = np.exp2(np.ravel(X))
        with np.errstate(over="ignore", invalid="ignore"):
            p = np.column_stack([1 / (1 + odds), 1 / (1 + 1 / odds)])
        return p[:, ::-1] if self.turned_ else p


def test_it_does_not_matter_which_class_is_called_0_near_0_and_1():
    rng = np.random.default_rng(20)
    far = np.round(rng.normal(0, 40, 120)) + rng.choice([-60, 0, 60], 120)  # odds of 2^60: p is 1 in floating point
    far[:4] = -1040, 1020, -1040, 1020
    y = (far / 60 + rng.logistic(size=120) > 0).astype(int)
    X, turned = far[:, None], VennAbersCalibrator(Forecasts(), cv=ONE_SPLIT)
    assert (Forecasts().fit(X, y).predict_proba(X)[:, 1] == 1).sum() > 20
    model = clone(turned).fit(X, y)
    # The scores are equal to the last bit and of the other sign; but for the order of sums so are the answers.
    np.testing.assert_allclose(said(model, X)[:, :, 0], said(turned.fit(X, 1 - y), X)[:, ::-1, 0], atol=1e-12)
    np.testing.assert_allclose(model.predict_interval(X)[:, 1], 1 - turned.predict_interval(X)[:, 1, ::-1], atol=1e-12)
    np.testing.assert_allclose(model.scores(X)[:, 1], np.clip(far, -1022, 1022) * np.log(2), atol=1e-7)
    calibration = next(ONE_SPLIT.split(X, y))[1]
    pairs = by_refits(np.column_stack([-far, far])[calibration], y[calibration], [0, 1], np.column_stack([-far, far]))
    np.testing.assert_allclose(model.predict_interval(X), pairs, atol=1e-12)


@pytest.mark.parametrize("c", [2, 3])
def test_labels_in_another_order_are_columns_in_another_order(c):
    rng = np.random.default_rng(21)
    codes = rng.integers(0, c, 200)
    X = rng.normal(size=(200, 30)) + 1.2 * codes[:, None]
    X[:, 0] = np.round(X[:, 0] * 100)
    others = np.roll(np.arange(c), 1)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0, max_features=1)
    for scorer in (GaussianNB(), tree):
        model = VennAbersCalibrator(scorer, cv=4)
        p = said(clone(model).fit(X, codes), X)
        q = said(clone(model).fit(X, others[codes]), X)[:, others]
        # Scores differ by what is lost in sums of other orders, some 1e-13, and ties are rounded at 1e-8.
        np.testing.assert_allclose(p, q, atol=1e-9)


def test_svc_s_scores_and_those_of_the_other_adapter():
    X, y = examples(n=80, c=3, seed=3)
    split = list(ONE_SPLIT.split(X))
    exact = {"kernel": "linear", "tol": 1e-9}
    other = venn.ProbabilitySVC(cv=split, **exact).fit(X, y == "cow")
    model = VennAbersCalibrator(SVC(**exact), cv=split).fit(X, y == "cow")
    np.testing.assert_allclose(model.scores(X), other.svm_scores(X), atol=1e-6)
    np.testing.assert_allclose(said(model, X)[..., 1:], other.predict_interval(X), atol=1e-12)


@pytest.mark.parametrize("c", [2, 3])
def test_answers_agree_with_each_other(c):
    X, y = examples(n=80, c=c, seed=4)
    new = np.random.default_rng(4).normal(size=(60, 2)) * 3
    for model in (VennAbersCalibrator(GaussianNB(), cv=3), VennAbersCalibrator(GaussianNB(), cv=ONE_SPLIT)):
        p, d = model.fit(X, y).predict_proba(new), model.decision_function(new)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert ((p > 0) & (p < 1)).all()
        low, high = np.moveaxis(model.predict_interval(new), 2, 0)
        assert (low < high).all()
        if c == 2:
            assert ((low <= p + 1e-12) & (p <= high + 1e-12)).all()
        np.testing.assert_array_equal(model.predict(new), model.classes_[p.argmax(axis=1)])
        np.testing.assert_array_equal(
            d > 0 if c == 2 else d.argmax(axis=1), p[:, 1] > p[:, 0] if c == 2 else p.argmax(1)
        )
        np.testing.assert_allclose(1 / (1 + np.exp(-d)), p[:, 1] if c == 2 else p)


# ------------------------------------------------------------------------------- more calibration examples


@pytest.mark.parametrize("c", [2, 3])
def test_a_frozen_classifier_is_calibrated_bit_by_bit(c):
    X, y = examples(n=70, c=c, seed=5)
    fitted = GaussianNB().fit(X[:30], y[:30])
    whole = VennAbersCalibrator(fitted, cv="prefit").fit(X[30:], y[30:])
    for sizes in ([1] * 40, [1, 39], [25, 10, 5]):
        model, start = VennAbersCalibrator(fitted, cv="prefit"), 30
        for size in sizes:
            model.partial_fit(X[start : start + size], y[start : start + size])
            start += size
        np.testing.assert_array_equal(said(model, X), said(whole, X))
    assert model.n_calibration_ == 40


def test_later_examples_calibrate_in_every_fold():
    X, y = examples(n=130, c=3, seed=6)
    model = VennAbersCalibrator(GaussianNB(), cv=3).partial_fit(X[:100], y[:100])
    whole = VennAbersCalibrator(GaussianNB(), cv=3).fit(X[:100], y[:100])
    np.testing.assert_array_equal(said(model, X), said(whole, X))
    model.partial_fit(X[100:101], y[100:101]).partial_fit(X[101:], y[101:], classes=["bee"])
    later = np.arange(100, 130)
    splits = [(a, np.append(b, later)) for a, b in StratifiedKFold(3).split(X[:100], y[:100])]
    expected = VennAbersCalibrator(GaussianNB(), cv=splits).fit(X, y)
    np.testing.assert_array_equal(said(model, X), said(expected, X))


@pytest.mark.parametrize("c", [2, 3])
def test_small_folds_are_one_calibration_set(c):
    """A fold of one example says no more than 1/2; all of them say what a set of their held-out scores says."""
    X, y = examples(n=60, c=c, seed=8)
    model = VennAbersCalibrator(GaussianNB(), cv=LeaveOneOut()).fit(X[:50], y[:50])
    assert model.n_calibration_ == 50
    out = [GaussianNB().fit(np.delete(X[:50], i, 0), np.delete(y[:50], i)) for i in range(50)]

    def odds(one, objects):
        p = one.predict_proba(objects)
        return np.log(p / (1 - p))

    held = np.concatenate([odds(one, X[i : i + 1]) for i, one in enumerate(out)])
    new = np.median([odds(one, X) for one in out], axis=0)
    np.testing.assert_allclose(model.scores(X), new, atol=1e-6)
    pairs = by_refits(held.round(6), y[:50], NAMES[:c], new.round(6))
    np.testing.assert_allclose(model.predict_interval(X), pairs, atol=1e-12)
    model.partial_fit(X[50:], y[50:])  # counts once, by the median score
    pairs = by_refits(np.concatenate([held, new[50:]]).round(6), y, NAMES[:c], new.round(6))
    np.testing.assert_allclose(model.predict_interval(X), pairs, atol=1e-12)
    assert model.n_calibration_ == 60
    assert model.predict_proba(X).max() > 0.7


def test_a_frozen_estimator_is_not_trained():
    frozen = pytest.importorskip("sklearn.frozen")
    X, y = examples(n=70, c=3, seed=7)
    inner = GaussianNB().fit(X[:30], y[:30])
    expected = said(VennAbersCalibrator(inner, cv="prefit").fit(X[30:], y[30:]), X)
    model = clone(VennAbersCalibrator(frozen.FrozenEstimator(inner))).fit(X[30:], y[30:])
    np.testing.assert_array_equal(said(model, X), expected)
    inner.fit(X[:30], y[::-1][:30])  # nor does it matter what becomes of the original
    np.testing.assert_array_equal(said(model, X), expected)
    np.testing.assert_array_equal(said(pickle.loads(pickle.dumps(model)), X), expected)


# ------------------------------------------------------------------------------- classes


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize(
    "scorer", [LogisticRegression(), GaussianNB(), SVC()], ids=lambda scorer: type(scorer).__name__
)
def test_a_class_missing_from_folds_keeps_its_column(scorer, c):
    X, y = examples(c=c, seed=8)
    X, y = X[np.argsort(y)], np.sort(y)
    last = y == NAMES[c - 1]
    only_trains = [(np.flatnonzero(last | (np.arange(60) % 2 == 0)), np.flatnonzero(~last & (np.arange(60) % 2 == 1)))]
    only_calibrates = [(np.flatnonzero(~last), np.flatnonzero(last))]
    for cv in (KFold(2), KFold(3), only_trains, only_calibrates):
        model = VennAbersCalibrator(scorer, cv=cv).fit(X, y)
        p = said(model, X)
        assert p.shape == (60, c, 3)
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p[..., 0].sum(axis=1), 1)
        assert (p[..., 2] > p[..., 1]).all()
    seen = VennAbersCalibrator(scorer, cv=only_trains).fit(X, y).predict_interval(X)[:, c - 1]
    assert (seen[:, 0] == 0).all()  # no calibration example is of the class


def test_a_fitted_classifier_may_meet_one_class_only_or_declare_more():
    X, y = examples(c=3, seed=9)
    fitted = GaussianNB().fit(X[:30], y[:30])
    model = VennAbersCalibrator(fitted, cv="prefit").fit(X[y == "bee"], y[y == "bee"])
    assert said(model, X).shape == (60, 3, 3)
    assert model.predict_interval(X)[:, 0, 0].max() == 0
    more = VennAbersCalibrator(fitted, cv="prefit").partial_fit(X[30:], y[30:], classes=["dog"])
    assert more.classes_.tolist() == NAMES.tolist()
    more.partial_fit(X[:1], ["dog"])
    assert said(more, X).shape == (60, 4, 3)


def test_a_new_class_is_refused_and_nothing_is_lost():
    X, y = examples()
    model = VennAbersCalibrator(GaussianNB(), cv=3).fit(X[:40], y[:40])
    before = said(model, X)
    y = y.copy()
    y[55] = "dog"
    with pytest.raises(ValueError, match=r"y must be among the classes \['ant', 'bee'\], got 'dog' at 15: declare it"):
        model.partial_fit(X[40:], y[40:])
    with pytest.raises(ValueError, match="classes must be among those of the first call"):
        model.partial_fit(X[40:], y[40:], classes=["ant", "dog"])
    with pytest.raises(ValueError, match=r"y must hold at least 2 classes .* got 1 class, \['ant'\]"):
        model.fit(X, ["ant"] * 60)
    with pytest.raises(ValueError, match="y must be among the classes"):
        VennAbersCalibrator(GaussianNB().fit(X[:40], y[:40]), cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match=r"X must be objects, .* one object x is X = \[x\]"):
        model.partial_fit(X[40], y[40:41])
    np.testing.assert_array_equal(said(model, X), before)


# ------------------------------------------------------------------------------- whatever the classifier takes


def test_tables_with_strings_and_their_names():
    X, y = examples(n=80, seed=10)
    frame = pd.DataFrame({"colour": np.where(X[:, 0] > 0, "red", "blue"), "length": X[:, 1]})
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["length"]))
    model = VennAbersCalibrator(make_pipeline(encode, LogisticRegression()), cv=3).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["colour", "length"]
    assert model.n_features_in_ == 2
    numbers = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0, X[:, 1]]).astype(float)
    by_hand = make_pipeline(
        make_column_transformer((StandardScaler(), [2]), remainder="passthrough"), LogisticRegression()
    )
    np.testing.assert_allclose(said(model, frame), said(VennAbersCalibrator(by_hand, cv=3).fit(numbers, y), numbers))
    np.testing.assert_array_equal(said(model, frame[["length", "colour"]]), said(model, frame))  # goes by names
    model.partial_fit(frame[:5], y[:5])
    with pytest.raises(ValueError, match="columns are missing"):
        model.predict(frame[["length"]])


class NoTags:
    """A fitted classifier that follows scikit-learn's protocol, but has no tags."""

    classes_ = np.array(["no", "yes"])

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return np.column_stack([1 - p, p])


def test_a_fitted_classifier_without_tags_is_calibrated():
    X = np.linspace(-2, 2, 40)[:, None]
    model = VennAbersCalibrator(NoTags(), cv="prefit").fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    assert model.predict_proba([[-2.0], [2.0]]).argmax(axis=1).tolist() == [0, 1]
    assert model.predict([[2.0]]).tolist() == ["yes"]


def test_texts_and_sparse_matrices():
    rng = np.random.default_rng(11)
    y = NAMES[rng.integers(0, 2, 60)]
    texts = [" ".join(rng.choice(["sugar", "pollen", "leaf", name], 4)) for name in y]
    model = VennAbersCalibrator(make_pipeline(CountVectorizer(binary=True), BernoulliNB()), cv=3).fit(texts, y)
    counts = CountVectorizer(binary=True).fit_transform(texts)
    sparse = VennAbersCalibrator(BernoulliNB(), cv=3).fit(csr_array(counts), y)
    np.testing.assert_allclose(said(model, texts), said(sparse, csr_array(counts)))
    assert model.score(texts, y) > 0.8
    model.partial_fit(texts[:1], y[:1])


def test_a_score_is_the_same_alone_and_in_a_block():
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(200, 50)), rng.integers(0, 2, 200)
    model = VennAbersCalibrator(LogisticRegression(), cv=ONE_SPLIT).fit(X, y)
    alone = np.concatenate([model.predict_interval(X[[i]]) for i in range(200)])
    np.testing.assert_array_equal(model.predict_interval(X), alone)


# ------------------------------------------------------------------------------- weights and other metadata


class Remembers(ClassifierMixin, BaseEstimator):
    """Scores by the first feature, and remembers what else its `fit` was given."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, colour=None):
        self.classes_ = np.unique(y)
        self.seen.append((len(X), sample_weight, colour))
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


@pytest.mark.parametrize(
    "scorer", [LogisticRegression(tol=1e-10), KNeighborsClassifier(3)], ids=["takes weights", "takes none"]
)
@pytest.mark.parametrize("c", [2, 3])
def test_a_weight_is_so_many_examples(scorer, c):
    X, y = examples(n=60, c=c, seed=13)
    rng = np.random.default_rng(13)
    w, folds = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    weighed = VennAbersCalibrator(scorer, cv=PredefinedSplit(folds)).fit(X, y, w)
    several = VennAbersCalibrator(scorer, cv=PredefinedSplit(folds.repeat(w))).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(said(weighed, X), said(several, X), atol=1e-7)
    assert weighed.n_calibration_ == several.n_calibration_ == w[folds == 0].sum()
    plain = clone(weighed).fit(X, y)
    assert np.abs(said(weighed, X) - said(plain, X)).max() > 0.01
    weighed.partial_fit(X[:3], y[:3], sample_weight=[0, 1, 2])
    several.partial_fit(X[[1, 2, 2]], y[[1, 2, 2]])
    np.testing.assert_allclose(said(weighed, X), said(several, X), atol=1e-7)


def test_examples_of_weight_zero_might_as_well_be_missing():
    X, y = examples(n=60, c=3, seed=14)
    w = np.where(y == "cow", 0, 1)
    model = VennAbersCalibrator(GaussianNB(), cv=3).fit(X, y, w)
    assert model.classes_.tolist() == ["ant", "bee"]
    np.testing.assert_allclose(said(model, X), said(clone(model).fit(X[w > 0], y[w > 0]), X), atol=1e-9)


def test_other_parameters_of_fit_reach_the_classifier_row_by_row():
    X, y = examples()
    colour, Remembers.seen = np.arange(60), []
    VennAbersCalibrator(Remembers(), cv=KFold(2)).fit(X, y, colour=colour)
    assert [(n, w, c.tolist()) for n, w, c in Remembers.seen] == [
        (30, None, list(range(30, 60))),
        (30, None, list(range(30))),
    ]
    Remembers.seen = []
    VennAbersCalibrator(Remembers(), cv=KFold(2)).fit(X, y, np.arange(60), colour="red")
    assert [(n, w.tolist(), c) for n, w, c in Remembers.seen] == [
        (30, list(range(30, 60)), "red"),
        (29, list(range(1, 30)), "red"),
    ]


def test_metadata_is_routed():
    X, y = examples(n=60, seed=15)
    rng = np.random.default_rng(15)
    w, groups, half = rng.integers(1, 4, 60), rng.integers(0, 4, 60), rng.random(60)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            VennAbersCalibrator(LogisticRegression(), cv=3).fit(X, y, sample_weight=w)
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = VennAbersCalibrator(inner, cv=GroupKFold(3)).fit(X, y, sample_weight=w, groups=groups)
        Remembers.seen = []
        own = Remembers().set_fit_request(sample_weight="training_weight", colour=False)
        VennAbersCalibrator(own, cv=KFold(2)).fit(X, y, training_weight=half)
        searched = VennAbersCalibrator(inner, cv=LeaveOneGroupOut()).set_fit_request(sample_weight=True)
        searched.set_score_request(sample_weight=False)
        search = GridSearchCV(searched, {"estimator__C": [0.1, 1.0]}, cv=2, error_score="raise")
        search.fit(X, y, sample_weight=w, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    expected = VennAbersCalibrator(LogisticRegression(), cv=splits).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(said(model, X), said(expected, X))
    assert [weights.tolist() for _, weights, _ in Remembers.seen] == [half[30:].tolist(), half[:30].tolist()]
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    best = VennAbersCalibrator(LogisticRegression(**search.best_estimator_.estimator.get_params()), cv=splits)
    np.testing.assert_array_equal(said(search.best_estimator_, X), said(best.fit(X, y, w), X))


# ------------------------------------------------------------------------------- validity


def in_sample(cv, X, y):
    return VennAbersCalibrator(RidgeClassifier().fit(X, y), cv="prefit")


def test_one_split_is_valid_and_calibration_in_sample_is_not():
    """Six exact tests, by Bonferroni at level 0.001 together."""
    assert not refuted(*realised(lambda cv, X, y: VennAbersCalibrator(RidgeClassifier(), cv=cv), 120))
    assert refuted(*realised(in_sample, 120))
