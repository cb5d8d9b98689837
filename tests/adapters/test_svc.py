"""The scikit-learn estimator: equal to loops over scikit-learn's own parts, valid where it says, a good citizen."""

import warnings

import numpy as np
import pytest
import sklearn
from estimator_checks import parametrize_with_each
from naive import svc as naive
from naive.abers import refitted
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from venn import taxonomies
from venn.adapters.svc import CrossVennAbers, ProbabilitySVC
from venn.maps.binning import Binning
from venn.maps.cross_abers import cross_venn_abers
from venn.maps.isotonic import Isotonic
from venn.maps.merges import BrierMerge, LogMerge
from venn.maps.one_vs_all import OneVsAll
from venn.maps.platt import Platt
from venn.maps.temperature import Temperature
from venn.taxonomies import AdaptiveMarginBins, Argmax, MarginBins, ScoreBins

ONE_SPLIT = ShuffleSplit(1, test_size=0.3, random_state=0)
EXACT = {"tol": 1e-9, "gamma": 0.5, "C": 3.0}
METHODS = {
    "Venn-Abers": None, "Brier": CrossVennAbers(BrierMerge()), "categories": MarginBins(),
    "adaptive": AdaptiveMarginBins(), "Platt": Platt(), "isotonic": Isotonic(), "bins": Binning(5, laplace=True),
    "temperature": Temperature(),
}  # fmt: skip
VENN = ("Venn-Abers", "Brier", "categories", "adaptive")


def examples(n=60, c=2, seed=0):
    """Overlapping classes on a coarse grid: ties, duplicates, equal objects with different labels."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, c, n)
    X = np.round(rng.normal(size=(n, 2)) + np.column_stack([codes, codes % 2]), 0)
    return X, np.array(["ant", "bee", "cow", "dog"])[codes]


def fold_indices(y, cv):
    return list(cv.split(np.zeros(len(y)), y))


@parametrize_with_each([ProbabilitySVC(), ProbabilitySVC(cv=2, method=Argmax())])
@pytest.mark.filterwarnings("ignore")  # the checks fit classes of few examples, of which the splitter warns
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------- equal to loops


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("cv", [StratifiedKFold(4), ONE_SPLIT], ids=["folds", "one split"])
def test_venn_abers_equals_two_isotonic_fits_in_each_fold(c, cv):
    X, y = examples(120, c=c)
    classes = np.unique(y)
    new = np.concatenate([X[:5], [[0.5, 0.5], [9.0, -9.0]]])
    model = ProbabilitySVC(cv=cv, **EXACT).fit(X, y)
    pairs = naive.pairs(X, y, classes, fold_indices(y, cv), new, **EXACT)
    merged = naive.log_merged(pairs)
    p = model.predict_proba(new)
    np.testing.assert_allclose(p, merged / merged.sum(axis=1, keepdims=True), atol=1e-12)
    ends = np.stack([naive.log_merged(pairs[..., [k, k]]) for k in (0, 1)], axis=2)
    np.testing.assert_allclose(model.predict_interval(new), ends, atol=1e-12)
    if len(pairs) == 1:
        np.testing.assert_allclose(model.predict_interval(new), pairs[0], atol=1e-12)


def test_cross_venn_abers_equals_the_function_of_that_name():
    X, y = examples(150, seed=1)
    new, splits = X[:20] + 0.25, fold_indices(y, StratifiedKFold(5))
    for merge in (LogMerge(), BrierMerge()):
        folds, rows = [], []
        for training, calibration in splits:
            machine = SVC(**EXACT).fit(X[training], y[training])
            folds.append((machine.decision_function(X[calibration]).round(6), y[calibration] == "bee"))
            rows.append(machine.decision_function(new).round(6))
        p = ProbabilitySVC(method=CrossVennAbers(merge), **EXACT).fit(X, y).predict_proba(new)
        np.testing.assert_allclose(p[:, 1], cross_venn_abers(folds, rows, merge), atol=1e-14)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("cv", [StratifiedKFold(4), ONE_SPLIT], ids=["folds", "one split"])
def test_categories_are_counted(c, cv):
    X, y = examples(120, c=c, seed=2)
    model = ProbabilitySVC(cv=cv, method=Argmax(), **EXACT).fit(X, y)
    counts = naive.category_counts(X, y, np.unique(y), fold_indices(y, cv), X, **EXACT)
    m = counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), (counts + 1 / c) / (m + 1), atol=1e-12)
    ends = np.stack([counts / (m + 1), (counts + 1) / (m + 1)], axis=2)
    np.testing.assert_allclose(model.predict_interval(X), ends, atol=1e-12)


@pytest.mark.parametrize("method", [None, Argmax()], ids=["Venn-Abers", "categories"])
@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(5)], ids=["leave one out", "5 folds of 12"])
def test_small_folds_are_one_calibration_set(cv, method):
    """A fold of one example says no more than 1/2, however many there are."""
    X, y = examples(seed=4)
    new = np.concatenate([X[:9] + 0.25, [[4.0, 4.0], [-4.0, -4.0]]])
    model = ProbabilitySVC(cv=cv, method=method, **EXACT).fit(X, y)
    splits, classes = fold_indices(y, cv), np.unique(y)
    f, labels, _ = naive.held_out(X, y, classes, splits, **EXACT)
    asked = np.median([naive.scores(X[rows], y[rows], classes, new, **EXACT) for rows, _ in splits], axis=0)
    np.testing.assert_allclose(model.svm_scores(new), asked, atol=1e-12)
    if method is None:
        ends = [[refitted(f[:, k], labels == name, row[k]) for k, name in enumerate(classes)] for row in asked]
        np.testing.assert_allclose(model.predict_interval(new), ends, atol=1e-12)
    else:
        same = f.argmax(axis=1) == asked.argmax(axis=1)[:, None]
        counts = np.array([[(labels[row] == name).sum() for name in classes] for row in same])
        m = counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(new), (counts + 0.5) / (m + 1), atol=1e-12)
    assert model.predict_proba(new).max() > 0.6


def test_platt_equals_cross_val_predict_and_scikit_learn_s_sigmoid():
    X, y = examples(seed=3)
    f = cross_val_predict(SVC(**EXACT), X, y, cv=5, method="decision_function")
    new = SVC(**EXACT).fit(X, y).decision_function(X)
    for weights in (None, np.random.default_rng(3).integers(1, 4, len(y)) / 2):
        if weights is not None:
            f, _, _ = naive.held_out(X, y, np.unique(y), fold_indices(y, StratifiedKFold(5)), weights, **EXACT)
            order = np.argsort(np.concatenate([t for _, t in fold_indices(y, StratifiedKFold(5))]))
            f, new = f[order, 1], SVC(**EXACT).fit(X, y, weights).decision_function(X)
        expected = _SigmoidCalibration().fit(f, y == "bee", weights).predict(new)
        model = ProbabilitySVC(method=Platt(), **EXACT).fit(X, y, weights)
        # scikit-learn's optimiser stops at a gradient of 1e-5 or so
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-4)
        np.testing.assert_allclose(model.svm_scores(X)[:, 1], new, atol=1e-6)


def test_isotonic_equals_scikit_learn_s_class_by_class():
    X, y = examples(n=90, c=3, seed=4)
    classes = np.unique(y)
    f, labels, _ = naive.held_out(X, y, classes, fold_indices(y, StratifiedKFold(5)), **EXACT)
    new = naive.scores(X, y, classes, X, **EXACT)
    one = [IsotonicRegression(out_of_bounds="clip").fit(f[:, j], labels == k) for j, k in enumerate(classes)]
    p = np.column_stack([fit.predict(new[:, j]) for j, fit in enumerate(one)])
    model = ProbabilitySVC(method=Isotonic("linear"), **EXACT).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), p / p.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(model.svm_scores(X), new, atol=1e-12)
    by_hand = ProbabilitySVC(method=OneVsAll(Isotonic("linear")), **EXACT).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))


def test_maps_for_all_classes_see_both_columns_of_two():
    X, y = examples(seed=5)
    f, labels, _ = naive.held_out(X, y, np.unique(y), fold_indices(y, StratifiedKFold(5)), **EXACT)
    fitted = Temperature().fit(f, (labels == "bee").astype(int))
    model = ProbabilitySVC(method=Temperature(), **EXACT).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), fitted(model.svm_scores(X)), atol=1e-12)


def test_a_precomputed_kernel_and_a_sparse_matrix_change_nothing():
    X, y = examples(c=3, seed=6)
    for method in (None, Platt(), Argmax()):
        p = ProbabilitySVC(method=method, **EXACT).fit(X, y).predict_proba(X[:9])
        sparse = ProbabilitySVC(method=method, **EXACT).fit(csr_array(X), y)
        np.testing.assert_allclose(sparse.predict_proba(csr_array(X[:9])), p, atol=1e-6)
        given = ProbabilitySVC(kernel="precomputed", method=method, C=3.0, tol=1e-9)
        given.fit(rbf_kernel(X, X, gamma=0.5), y)
        np.testing.assert_allclose(given.predict_proba(rbf_kernel(X[:9], X, gamma=0.5)), p, atol=1e-6)


@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
def test_weights_of_sparse_examples_count_in_gamma(sparse):
    """Also where all are equal: gamma="scale" then has no variance to divide by."""
    X, y = examples(c=3, seed=15)
    w = np.random.default_rng(15).integers(0, 4, len(y))
    for rows in (X, np.full(X.shape, 2.0)):
        for method in (None, Platt()):
            model = ProbabilitySVC(cv=KFold(3), method=method, tol=1e-9)
            p = clone(model).fit(rows, y, w).predict_proba(rows)
            assert np.isfinite(p).all()
            np.testing.assert_allclose(model.fit(sparse(rows), y, w).predict_proba(sparse(rows)), p, atol=1e-6)


# ------------------------------------------------------------------------------- what all methods keep


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", METHODS)
def test_probabilities_labels_and_intervals(name, c):
    X, y = examples(n=80, c=c, seed=7)
    model = ProbabilitySVC(method=METHODS[name], cv=4).fit(X, y)
    new = np.random.default_rng(7).normal(size=(50, 2)) * 3
    p = model.predict_proba(new)
    assert p.shape == model.svm_scores(new).shape == (50, c)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(new), model.classes_[p.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), p)
    assert model.n_iter_.shape == SVC().fit(X, y).n_iter_.shape
    assert (model.n_iter_ > 0).all()
    if name in VENN:
        low, high = np.moveaxis(model.predict_interval(new), 2, 0)
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (low < high).all()
        if c == 2 or name in ("categories", "adaptive"):
            assert (low <= p + 1e-12).all()
            assert (p <= high + 1e-12).all()


@pytest.mark.parametrize("name", METHODS)
def test_a_weight_is_so_many_examples(name):
    """Also in gamma="scale" and in the training of the SVM."""
    X, y = examples(n=60, c=3, seed=8)
    rng = np.random.default_rng(8)
    w, folds = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    weighed = ProbabilitySVC(cv=PredefinedSplit(folds), method=METHODS[name], C=3.0, tol=1e-9).fit(X, y, w)
    several = clone(weighed).set_params(cv=PredefinedSplit(folds.repeat(w))).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(weighed.predict_proba(X), several.predict_proba(X), atol=1e-5)
    plain = clone(weighed).fit(X, y)
    assert np.abs(weighed.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


@pytest.mark.parametrize("cv", [3, "folds"])
def test_examples_of_weight_zero_might_as_well_be_missing(cv):
    X, y = examples(n=90, c=4, seed=16)
    rng = np.random.default_rng(1016)
    w = np.where(y == "dog", 0, rng.integers(0, 2, 90))
    there, folds = w > 0, rng.integers(0, 3, 90)
    for method in (None, Argmax(), Platt()):
        weighed = ProbabilitySVC(method=method, cv=cv if cv == 3 else PredefinedSplit(folds)).fit(X, y, w)
        without = ProbabilitySVC(method=method, cv=cv if cv == 3 else PredefinedSplit(folds[there]))
        p = without.fit(X[there], y[there]).predict_proba(X)
        np.testing.assert_allclose(weighed.predict_proba(X), p, atol=1e-9)


def test_a_coarse_tolerance_rounds_scores_to_whole_numbers():
    X, y = examples()
    scores = ProbabilitySVC(tol=10.0).fit(X, y).svm_scores(X)
    np.testing.assert_allclose(scores * 5, np.rint(scores * 5), atol=1e-12)  # means of five folds


def test_a_splitter_may_look_at_the_examples():
    class ByFirstFeature:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            low = X[:, 0] <= 0
            yield np.flatnonzero(low), np.flatnonzero(~low)
            yield np.flatnonzero(~low), np.flatnonzero(low)

    X, y = examples(seed=17)
    p = ProbabilitySVC(cv=ByFirstFeature()).fit(X, y).predict_proba(X)
    given = ProbabilitySVC(cv=list(ByFirstFeature().split(X))).fit(X, y)
    np.testing.assert_array_equal(given.predict_proba(X), p)


def test_a_merge_that_leaves_nothing_to_divide_gives_equal_shares():
    class Lowest:
        def merge(self, p0, p1):
            return p0

        def merge_folds(self, p0, p1):
            return p0.min(axis=0)

    X, y = np.zeros((6, 1)), np.array(["a", "b", "c"]).repeat(2)
    folds = [([0, 2, 4], [1]), ([0, 2, 4], [3]), ([0, 2, 4], [5])]
    p = ProbabilitySVC(method=CrossVennAbers(Lowest()), cv=folds).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(p, np.full((6, 3), 1 / 3))


def test_a_class_missing_from_training_scores_minus_one():
    X, y = examples(c=3, seed=10)
    X, y = X[np.argsort(y)], np.sort(y)  # each fold lacks a class or two
    for method in (None, Argmax(), Platt(), Isotonic(), Temperature()):
        model = ProbabilitySVC(cv=KFold(2), method=method).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    split = [(np.flatnonzero(y != "cow"), np.flatnonzero(y == "cow"))]
    assert (ProbabilitySVC(cv=split).fit(X, y).svm_scores(X)[:, 2] == -1).all()
    lone = [(np.flatnonzero(y == "cow"), np.flatnonzero(y != "cow"))]
    assert (ProbabilitySVC(cv=lone).fit(X, y).svm_scores(X) == [-1, -1, 1]).all()


def test_two_examples():
    model = ProbabilitySVC(cv=[([0], [1]), ([1], [0])]).fit([[0.0], [1.0]], [0, 1])
    assert (model.svm_scores([[0.3]]) == 0).all()
    np.testing.assert_allclose(model.predict_proba([[0.3]]), 0.5)


# ------------------------------------------------------------------------------- validity


REPEATS = 120


class InSample(ProbabilitySVC):
    """Broken: what calibrates trains too."""

    def _splits(self, X, y, present):
        return [(np.arange(len(y)), calibration) for _, calibration in super()._splits(X, y, present)]


def realised(made, repeats=REPEATS):
    """Return the end of the interval of class 1 that is the true label's, and the label, of independent objects.

    `made` makes a model of a split, and of the examples that it will be fitted to.
    """
    p, labels = np.empty(repeats), np.empty(repeats, int)
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 61)
        X = np.round(rng.normal(size=(61, 60)) + 0.05 * y[:, None], 1)  # so many features that training labels fit
        cv = ShuffleSplit(1, test_size=0.5, random_state=seed)
        model = made(cv, X[:60], y[:60]).fit(X[:60], y[:60])
        p[seed], labels[seed] = model.predict_interval(X[60:])[0, 1, y[60]], y[60]
    return p, labels


def refuted(p, labels, level=0.001):
    """Whether E[y | p_y] = p_y is refuted: it gives P(y = 1 | p_y >= t) >= t, and the same of 1 - y and 1 - p_y."""
    for t in (0.5, 0.8, 0.9):
        for q, y in ((p, labels), (1 - p, 1 - labels)):
            there = q >= t
            if there.any() and binomtest(int(y[there].sum()), int(there.sum()), t, "less").pvalue < level / 6:
                return True
    return False


@pytest.mark.parametrize("method", [None, AdaptiveMarginBins()], ids=["Venn-Abers", "categories"])
def test_one_split_is_valid_and_in_sample_scores_are_not(method):
    """Six exact tests, by Bonferroni at level 0.001 together."""
    ours, broken = (
        realised(lambda cv, X, y, kind=kind: kind(kernel="linear", method=method, cv=cv))
        for kind in (ProbabilitySVC, InSample)
    )
    assert not refuted(*ours)
    assert refuted(*broken)


# ------------------------------------------------------------------------------- a good citizen


def test_grid_search_over_methods_in_a_pipeline():
    X, y = examples(n=90, c=3, seed=11)
    pipe = make_pipeline(StandardScaler(), ProbabilitySVC(cv=3))
    grid = {"probabilitysvc__method": [None, Platt(), Argmax(), Temperature()], "probabilitysvc__C": [0.1, 10.0]}
    search = GridSearchCV(pipe, grid, scoring="neg_log_loss", cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    p = search.predict_proba(X)
    np.testing.assert_array_equal(search.predict(X), search.classes_[p.argmax(axis=1)])


def test_grid_search_with_a_precomputed_kernel_and_weights_routed():
    X, y = examples(n=90, seed=18)
    K, w = rbf_kernel(X, gamma=0.5), np.random.default_rng(18).integers(1, 4, 90)
    with sklearn.config_context(enable_metadata_routing=True):
        model = ProbabilitySVC(kernel="precomputed", cv=3, tol=1e-9).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"C": [3.0]}, cv=2, error_score="raise").fit(K, y, sample_weight=w)
    expected = ProbabilitySVC(cv=3, **EXACT).fit(X, y, w)
    np.testing.assert_allclose(search.predict_proba(K), expected.predict_proba(X), atol=1e-6)


# ------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "method", ["sigmoid", Platt, Argmax, 3, taxonomies.LeaveOneOut(Argmax()), LogMerge()], ids=repr
)
def test_a_method_is_an_object(method):
    X, y = examples()
    model = ProbabilitySVC(method=method)
    with pytest.raises(TypeError, match="method must be CrossVennAbers") as error:
        model.fit(X, y)
    assert repr(method) in str(error.value)
    assert not hasattr(model, "predict_interval")


def test_a_merge_must_merge_folds():
    class Pairs:
        def merge(self, p0, p1):
            return (p0 + p1) / 2

    with pytest.raises(TypeError, match="merge must have a method 'merge_folds', as LogMerge"):
        CrossVennAbers(Pairs())


BAD = {
    "C": ({"C": -1}, "'C' parameter .* -1"), "kernel": ({"kernel": "rbb"}, "'kernel' parameter .* 'rbb'"),
    "degree": ({"degree": -1}, "'degree' parameter .* -1"), "gamma": ({"gamma": -0.5}, "'gamma' parameter .* -0.5"),
    "coef0": ({"coef0": "0"}, "'coef0' parameter .* '0'"),
    "shrinking": ({"shrinking": "yes"}, "'shrinking' parameter .* 'yes'"), "tol": ({"tol": 0}, "'tol' parameter .* 0"),
    "cache_size": ({"cache_size": 0}, "'cache_size' parameter .* 0"),
    "max_iter": ({"max_iter": -2}, "'max_iter' parameter .* -2"), "cv": ({"cv": "five"}, "cv.* five"),
    "one fold": ({"cv": 1}, "n_splits=1"), "many folds": ({"cv": 200}, "n_splits=200"),
    "no fold": ({"cv": []}, r"cv must give at least one fold, got none from \[\]"),
    "nothing calibrates": ({"cv": [([0, 1], [])]}, "cv must leave examples that calibrate in each fold, .* fold 0"),
    "nothing trains": ({"cv": [([], [1])]}, "cv must leave examples that train in each fold"),
    "in-sample": ({"cv": [([0, 1, 2], [2, 3])]}, "cv must keep examples that calibrate out of training, got 1 "),
    "taxonomy": ({"method": ScoreBins(), "cv": 3}, "classes must be two"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_parameter_is_named_and_leaves_no_trace(name):
    parameters, message = BAD[name]
    X, y = examples(c=3)
    model = ProbabilitySVC(cv=2).fit(X[:, :1], y)
    before = model.predict_proba(X[:, :1])
    good = model.get_params()
    with pytest.raises(ValueError, match=message):
        model.set_params(**parameters).fit(X, y)
    model.set_params(**good)
    np.testing.assert_array_equal(model.predict_proba(X[:, :1]), before)


@pytest.mark.parametrize(
    ("method", "weights", "message"),
    [
        (Platt(), np.full(60, -1.0), "sample_weight must be >= 0, got -1.0 at 0"),
        (Platt(), np.zeros(60), "sample_weight must be > 0 for some example, got zero for all 60"),
        (Platt(), np.ones(59), r"sample_weight must have shape \(60,\), .* got \(59,\)"),
        (Platt(), np.full(60, np.nan), "sample_weight contains NaN"),
        (None, np.full(60, 0.5), "sample_weight must hold whole numbers for Venn methods, .* got 0.5 at 0"),
        (None, np.full(60, 1e18), "sample_weight must sum to at most 2147483647 for Venn methods, got 6e.19"),
        (Argmax(), np.full(60, 1.5), "sample_weight must hold whole numbers for Venn methods"),
    ],
    ids=str,
)
def test_bad_weights(method, weights, message):
    X, y = examples()
    with pytest.raises(ValueError, match=message):
        ProbabilitySVC(method=method).fit(X, y, weights)


def test_one_class_and_a_kernel_that_is_not_square():
    X, y = examples()
    with pytest.raises(ValueError, match=r"y must hold at least 2 classes .* got 1 class"):
        ProbabilitySVC().fit(X, ["a"] * 60)
    with pytest.raises(ValueError, match=r"X must be a square matrix .* got shape \(60, 2\)"):
        ProbabilitySVC(kernel="precomputed").fit(X, y)


def test_maps_have_no_interval():
    X, y = examples()
    model = ProbabilitySVC(method=Platt()).fit(X, y)
    with pytest.raises(AttributeError) as error:
        model.predict_interval(X)
    assert "CrossVennAbers() and taxonomies, such as Argmax(), give intervals" in str(error.value.__cause__)
    with pytest.raises(AttributeError, match="call fit again"):
        model.set_params(method=None).predict_interval(X)


def test_a_solver_out_of_steps_warns():
    X, y = examples()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ProbabilitySVC(max_iter=1).fit(X, y)
    assert any("Solver terminated early" in str(one.message) for one in caught)


def test_a_script_with_svc_s_words_for_probabilities_goes_on():
    X, y = examples()
    p = ProbabilitySVC(probability=True, random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(p, ProbabilitySVC().fit(X, y).predict_proba(X))
    np.testing.assert_array_equal(p, ProbabilitySVC(probability=False).fit(X, y).predict_proba(X))
