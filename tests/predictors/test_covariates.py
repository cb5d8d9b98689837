"""Covariate shift: p-values by definition, exactly uniform under weighted sampling, not so without the weights."""

import copy

import numpy as np
import pytest
from naive import covariates as naive
from scipy import stats
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from test_conformal import FromMedian

import venn
from venn.nonconformity import Margin
from venn.schedules import FixedCalibration, NoTraining
from venn.shifts import CovariateShift, LogLinear, estimated_shift

TILT = CovariateShift(LogLinear([1.0, -0.5]))
CLASSES = (0, 1, 2)


class AsGiven:
    """A scorer whose scores are those of the first feature; no object is refused."""

    classes = CLASSES

    def scores(self, x):
        return np.array([x[0], x[1], 0.5])

    def score_many(self, X):
        return np.column_stack([X[:, 0], X[:, 1], np.full(len(X), 0.5)])


def squares():
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)


MAKE = {
    "frozen": lambda **o: venn.InductiveConformal(AsGiven(), schedule=NoTraining(), **o),
    "trained": lambda **o: venn.InductiveConformal(squares(), schedule=FixedCalibration(20, 5), **o),
    "transductive": lambda **o: venn.Conformal(squares(), **o),
    "transductive, training scores": lambda **o: venn.Conformal(squares(), Margin(leave_one_out=False), **o),
    "transductive, all examples": lambda **o: venn.Conformal(squares(), FromMedian(), **o),
}

ABERS = {
    "frozen": lambda **o: venn.InductiveVennAbers(AsGiven(), schedule=NoTraining(), **o),
    "transductive": lambda **o: venn.TransductiveVennAbers(squares(), **o),
    "transductive, training scores": lambda **o: venn.TransductiveVennAbers(squares(), leave_one_out=False, **o),
}
EVERY = MAKE | {f"abers, {name}": make for name, make in ABERS.items()}


def numbers(said):
    """What a prediction says, or a block of them."""
    return next(getattr(said, name) for name in ("p_values", "pairs", "probabilities") if hasattr(said, name))


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, size=(n, 2)) / 3, rng.integers(0, 3, size=n)


def taught(model, X, y):
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, int(label))
    return model


@pytest.mark.parametrize("conditional", [False, True])
def test_p_values_are_those_of_the_definition_at_every_step(conditional):
    X, y = data(40)
    model = MAKE["frozen"](shift=TILT, label_conditional=conditional, seed=3)
    plain = MAKE["frozen"](shift=TILT, label_conditional=conditional, smoothed=False)
    w = TILT.weights(X)
    rows = AsGiven().score_many(X)

    def value(i, j):
        return np.rint((max(s for k, s in enumerate(rows[i]) if k != j) - rows[i, j]) * 1e6 + 0.2718281828)

    for n in range(40):
        found, most = model.predict_one(X[n]).p_values, plain.predict_one(X[n]).p_values
        for j in CLASSES:
            beside = [i for i in range(n) if y[i] == j or not conditional]

            def of(tau, j=j, beside=beside, n=n):
                values = [value(i, y[i]) for i in beside]
                return naive.p_value(values, [w[i] for i in beside], value(n, j), w[n], tau)

            assert most[j] == pytest.approx(of(1.0))
            # Linear in tau, which is one number for all labels.
            assert of(0.0) - 1e-12 <= found[j] <= of(1.0) + 1e-12
        model.learn_one(X[n], int(y[n]))
        plain.learn_one(X[n], int(y[n]))


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("name", [name for name in MAKE if name != "trained"])
def test_p_values_are_exactly_uniform_over_a_weighted_choice_of_the_last_example(name, conditional):
    """Each example is the new one with a chance as its weight: P(p <= value) is the value, for each that occurs."""
    X, y = data(8, seed=4)
    w = TILT.weights(X)
    for shift, exact in ((TILT, True), (None, False)):
        plain = np.empty(8)
        for last in range(8):
            rest = np.delete(np.arange(8), last)
            model = taught(MAKE[name](shift=shift, smoothed=False, label_conditional=conditional), X[rest], y[rest])
            plain[last] = model.predict_one(X[last]).p_values[y[last]]
        off = 0.0
        for k in CLASSES if conditional else [None]:
            group = np.full(8, True) if k is None else y == k
            share = w * group / max(w[group].sum(), 1e-300)
            for value in plain[group]:
                off = max(off, abs(share[plain <= value + 1e-9].sum() - value))
        assert off < 1e-9 if exact else off > 0.01


@pytest.mark.parametrize("taxonomy", [venn.Argmax(), venn.LeaveOneOut(venn.Argmax()), None], ids=repr)
def test_weighted_departures_of_venn_predictors_cancel(taxonomy):
    """Over a weighted choice of the last example the realised row is calibrated, and the guaranteed label."""
    X, y = data(14, seed=6)
    w = TILT.weights(X)
    for shift, exact in ((TILT, True), (None, False)):
        total = 0.0
        for last in range(14):
            rest = np.delete(np.arange(14), last)
            P = taught(venn.TransductiveVenn(squares(), taxonomy, shift=shift), X[rest], y[rest]).predict_one(X[last])
            row = P.probabilities[y[last]]
            departure = np.eye(3)[y[last]] - row
            ours = departure[P.index] if P.guaranteed == "predicted label" else 0.0
            total = total + w[last] * np.append(departure, ours)
        off = abs(total / w.sum()).max()
        assert off < 1e-12 if exact else off > 0.01


def simulated(shift, repeats=400, seed=0):
    """Return smoothed p-values of true labels of new objects, each beside 30 old examples of its own."""
    rng = np.random.default_rng(seed)
    p = []
    for repeat in range(repeats):
        old, new = rng.normal(size=(30, 2)), rng.normal([1.0, -0.5], size=2)
        labels = (rng.random(31) < 1 / (1 + np.exp(-3 * np.append(old[:, 0], new[0])))).astype(int)
        model = venn.InductiveConformal(AsGiven(), schedule=NoTraining(), shift=shift, seed=repeat)
        model.learn_many(old, labels[:30])
        p.append(model.predict_one(new).p_values[labels[30]])
    return np.array(p)


def test_known_weights_make_p_values_uniform_in_use_and_none_do_not():
    """The old objects are standard normal, the new ones around (1, -.5): the logarithm of w is linear."""
    assert stats.kstest(simulated(TILT, 700), "uniform").pvalue > 1e-3
    assert stats.kstest(simulated(None, 700), "uniform").pvalue < 1e-6


def test_estimated_weights_come_near_known_ones():
    rng = np.random.default_rng(1)
    old, new = rng.normal(size=(4000, 2)), rng.normal([1.0, -0.5], size=(3000, 2))
    shift = estimated_shift(old, new)
    assert shift.weight.coefficients == pytest.approx((1.0, -0.5), abs=0.1)
    assert shift.weights(old).mean() == pytest.approx(1.0, abs=0.1)  # a density of the new in the old
    assert stats.kstest(simulated(shift, 600), "uniform").pvalue > 1e-3
    constant = estimated_shift(np.ones((5, 1)), np.ones((9, 1)))
    assert constant.weights(np.ones((2, 1))) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("value", [0.1, -0.3, 1234.567, 1e-7])
def test_a_constant_feature_has_no_weight(value):
    """Its mean and deviation, as they are computed, are not exactly its value and 0."""
    rng = np.random.default_rng(3)
    old, new = rng.normal(size=(70, 1)), rng.normal(1.0, size=(41, 1))
    shift = estimated_shift(*(np.column_stack([rows, np.full(len(rows), value)]) for rows in (old, new)))
    alone = estimated_shift(old, new)
    assert shift.weight.coefficients == pytest.approx((*alone.weight.coefficients, 0.0), abs=1e-12)
    assert shift.weight.intercept == pytest.approx(alone.weight.intercept, abs=1e-9)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("apart", [0.0, 1.0, 50.0])
def test_estimated_weights_are_those_of_logistic_regression(penalty, apart):
    """Also where a line separates old from new, and where these are fewer."""
    rng = np.random.default_rng(4)
    old, new = rng.normal(size=(80, 2)), rng.normal([apart, 0.0], size=(30, 2))
    assert_logistic_regression(old, new, penalty)


@pytest.mark.parametrize("where", ["old", "new"])
@pytest.mark.parametrize("penalty", [1e-3, 1e-2])
def test_estimated_weights_beside_an_object_far_from_all_others(penalty, where):
    """Some steps to the minimum make the coefficient smaller."""
    old, new = np.linspace(0.0, 1.0, 30)[:, None], np.linspace(0.3, 2.0, 15)[:, None]
    if where == "old":
        old = np.append(old, [[-1000.0]], axis=0)
    else:
        new = np.append(new, [[1000.0]], axis=0)
    assert_logistic_regression(old, new, penalty)


def assert_logistic_regression(old, new, penalty):
    together, sizes = np.vstack([old, new]), [len(old), len(new)]
    scale = StandardScaler().fit(together)
    model = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=10000)
    model.fit(scale.transform(together), np.repeat([0, 1], sizes))
    found = estimated_shift(old, new, penalty=penalty).weight
    assert found.coefficients == pytest.approx(model.coef_[0] / scale.scale_, rel=1e-4, abs=1e-6)
    odds = model.decision_function(scale.transform(np.zeros((1, old.shape[1]))))[0]
    assert found.intercept == pytest.approx(odds + np.log(sizes[0] / sizes[1]), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        *EVERY.values(),
        lambda **o: venn.TransductiveVenn(squares(), **o),
        lambda **o: venn.TransductiveVenn(squares(), venn.Argmax(), **o),
    ],
)
def test_equal_weights_change_nothing(make):
    X, y = data(30, seed=2)
    even, none = (taught(make(shift=one), X, y) for one in (CovariateShift(LogLinear([0.0, 0.0], 2.0)), None))
    for x in data(6, seed=9)[0]:
        first, second = even.predict_one(x), none.predict_one(x)
        assert numbers(first) == pytest.approx(numbers(second), abs=1e-12)
        assert first.label == second.label


@pytest.mark.parametrize("name", EVERY)
def test_saved_copied_and_in_blocks(name, tmp_path):
    X, y = data(40, seed=3)
    model = taught(EVERY[name](shift=TILT), X[:25], y[:25])
    others = [copy.deepcopy(model)]
    if "frozen" not in name and "all examples" not in name:  # with classes of these tests
        venn.save(tmp_path / "model", model)
        others.append(venn.load(tmp_path / "model"))
    block = copy.deepcopy(model).replay_many(X[25:], y[25:]) if hasattr(model, "replay_many") else None
    said = []
    for x, label in zip(X[25:], y[25:], strict=True):
        said.append(numbers(model.predict_one(x)))
        for other in others:
            assert np.array_equal(numbers(other.predict_one(x)), said[-1])
        for one in (model, *others):
            one.learn_one(x, int(label))
    assert block is None or np.array_equal(numbers(block), said)


@pytest.mark.parametrize("make", [MAKE["frozen"], ABERS["frozen"]])
def test_parts_merge_to_the_last_bit(make):
    X, y = data(60, seed=5)
    whole, *parts = (make(shift=TILT) for _ in range(3))
    whole.learn_many(X, y)
    parts[0].learn_many(X[:20], y[:20])
    parts[1].learn_many(X[20:], y[20:])
    block = numbers(whole.predict_many(X))
    assert np.array_equal(numbers(parts[1].merge(parts[0]).predict_many(X)), block)
    assert np.array_equal([numbers(whole.predict_one(x)) for x in X], block)


def test_what_cannot_be_weighed_is_refused():
    X, _ = data(10)
    with pytest.raises(TypeError, match="taxonomy must map scores to categories"):
        venn.TransductiveVenn(squares(), venn.taxonomies.Grouped(0, venn.Argmax()), shift=TILT)
    with pytest.raises(TypeError, match="predictor must have no CovariateShift"):
        venn.predictors.by_group(ABERS["frozen"](shift=TILT), 0)
    for weight, says in (
        (lambda rows: np.ones(3), r"must return \(1,\) numbers"),
        (lambda rows: -np.ones(len(rows)), "finite numbers >= 0"),
        (lambda rows: np.full(len(rows), np.nan), "finite numbers >= 0"),
    ):
        model = MAKE["frozen"](shift=CovariateShift(weight))
        with pytest.raises(ValueError, match=says):
            model.learn_one(X[0], 0)
        assert model.n == 0
    with pytest.raises(ValueError, match="coefficients must be of 2 features"):
        CovariateShift(LogLinear([1.0])).weights(X)
    with pytest.raises(TypeError, match="array of dense objects"):
        TILT.weights([[1.0, 2.0]])
    with pytest.raises(ValueError, match="new must have 2 features"):
        estimated_shift(X, X[:, :1])
    with pytest.raises(ValueError, match="old must be finite"):
        estimated_shift(np.full((3, 1), np.inf), X)
    with pytest.raises(TypeError, match="shift must be a PriorShift"):
        venn.InductiveVenn(AsGiven(), schedule=NoTraining(), shift=TILT)


def test_sparse_objects_are_not_weighed_from_the_first_one_on():
    model = venn.Conformal(squares(), shift=TILT)
    for _ in range(2):
        with pytest.raises(TypeError, match="sparse ones are not weighed"):
            model.predict_one(csr_array([[1.0, 2.0]]))
        model.learn_one(csr_array([[1.0, 2.0]]), 0)


def test_an_object_that_cannot_come_has_full_sets():
    model = venn.InductiveConformal(
        AsGiven(), schedule=NoTraining(), shift=CovariateShift(LogLinear([0.0, 0.0], -2000.0)), smoothed=False
    )
    assert model.predict_one([0.1, 0.2]).p_values.tolist() == [1.0, 1.0, 1.0]


# Venn-Abers ------------------------------------------------------------------------------------------------------


def test_venn_abers_pairs_are_those_of_the_definition_at_every_step():
    X, y = data(50, seed=11)
    shift = CovariateShift(lambda rows: np.rint(rows[:, 0] * 3))  # one weight in four is 0
    w, scores = shift.weights(X), AsGiven().score_many(X)
    model = ABERS["frozen"](shift=shift)
    for n in range(50):
        pairs = model.predict_one(X[n]).pairs
        for k in CLASSES:
            wanted = naive.isotonic_pair(scores[:n, k], y[:n] == k, w[:n], scores[n, k], w[n])
            assert pairs[k] == pytest.approx(wanted, abs=1e-12)
        model.learn_one(X[n], int(y[n]))


@pytest.mark.parametrize("name", ABERS)
def test_weighted_departures_of_venn_abers_cancel(name):
    """Over a weighted choice of the last example each class's probability under the true hypothesis is calibrated."""
    X, y = data(14, seed=6)
    w = TILT.weights(X)
    for shift, exact in ((TILT, True), (None, False)):
        by_pair = {}
        for last in range(14):
            rest = np.delete(np.arange(14), last)
            pairs = taught(ABERS[name](shift=shift), X[rest], y[rest]).predict_one(X[last]).pairs
            for k in CLASSES:
                hit = int(y[last] == k)
                value = round(pairs[k, hit], 9)
                by_pair[k, value] = by_pair.get((k, value), 0.0) + w[last] * (hit - pairs[k, hit])
        off = max(abs(total) for total in by_pair.values()) / w.sum()
        assert off < 1e-9 if exact else off > 0.005
