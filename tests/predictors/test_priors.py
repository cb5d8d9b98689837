"""Prior shifts: their weights, predictors that count by them against the definition, frequencies by EM."""

import copy

import numpy as np
import pytest
from conftest import labels, learned, objects
from inductive_cases import Centroids, frozen
from naive import priors as naive
from naive.coins import coin
from sklearn.linear_model import LogisticRegression

import venn
from venn.nonconformity import Margin
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.transductive import Conformal
from venn.shifts import PriorShift, operational_priors

SHIFT = PriorShift((0.5, 0.3, 0.2), (0.1, 0.3, 0.6))
IMPOSSIBLE = PriorShift((0.5, 0.3, 0.2), (0.25, 0.0, 0.75))
SHIFTS = {"shift": SHIFT, "a class that cannot come": IMPOSSIBLE}


def squares(c=3):
    return venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, range(c))


def examples(seed, n=40, kind="grid", c=3):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)
    return X, labels("noise", rng, X, c)


# The parameter object ------------------------------------------------------------------------------------------------


def test_weights_are_quotients_of_priors_times_costs():
    shift = PriorShift((0.5, 0.25, 0.25), [0.2, 0.3, 0.5], costs=np.array([1, 2, 0.5]))
    assert shift.ratios == pytest.approx([0.4, 1.2, 2.0])
    assert shift.weights == pytest.approx([0.4, 2.4, 1.0])
    assert shift.train @ shift.ratios == pytest.approx(1)  # mean one over the training examples
    assert np.array_equal(PriorShift.of_costs((3, 1)).weights, [3, 1])
    assert np.array_equal(PriorShift.of_costs((3, 1, 7)).ratios, [1, 1, 1])
    keep = np.array([0.1, 0.5, 1.0])
    assert PriorShift.of_keeping(keep).ratios * keep == pytest.approx(np.full(3, 1.6 / 3))


HALF = (0.5, 0.5)


@pytest.mark.parametrize(
    ("call", "bad", "says"),
    [
        (lambda bad: operational_priors([HALF], bad), ((0.5, 0.4), (1.0,), ("0.5", "0.5"), None), "train must be"),
        (lambda bad: PriorShift(bad, HALF), ((1.0, 0.0),), "train must be probabilities > 0 of at least 2 classes"),
        (lambda bad: PriorShift(bad, HALF), ((1e-320, 1.0),), "train must leave finite weights"),
        (lambda bad: PriorShift(HALF, bad), ((0.2, 0.3, 0.5),), "operational must (be|hold).*got"),
        (PriorShift.of_costs, ("ab", (True, 1), ("1", "2"), 3, (10**400, 1)), "costs must be"),
        (PriorShift.of_costs, ((1,),), "at least 2 classes"),
        (lambda bad: operational_priors(bad, HALF),
         ([], [[0.5, 0.6]], [[1.5, -0.5]], [[0.5, np.nan]], [0.5, 0.5], [[0.2, 0.3, 0.5]], np.zeros((0, 2)), "ab",
          [["0.5", "0.5"]], [[True, False]], None), "proba must"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_wrong_is_refused(call, bad, says):
    for one in bad:
        with pytest.raises((TypeError, ValueError), match=says):
            call(one)


def test_a_class_that_weighs_nothing_is_no_weight_of_a_machine():
    with pytest.raises(ValueError, match="class_weights must be 3 finite numbers > 0"):
        venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, range(3), class_weights=IMPOSSIBLE.weights)
    assert venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, range(3), class_weights=SHIFT.weights).classes == (0, 1, 2)


# Predictors ----------------------------------------------------------------------------------------------------------

MODELS = {
    "transductive": lambda shift: venn.TransductiveVenn(squares(), venn.LeaveOneOut(venn.Argmax()), shift=shift),
    "training scores": lambda shift: venn.TransductiveVenn(squares(), venn.Argmax(), shift=shift),
    "adaptive": lambda shift: venn.TransductiveVenn(squares(), shift=shift),
    "inductive": lambda shift: venn.InductiveVenn(
        Centroids(range(3)), None, schedule=venn.schedules.PrefixRestart(9), shift=shift
    ),
    "inductive adaptive": lambda shift: venn.InductiveVenn(
        frozen(3), venn.taxonomies.AdaptiveMarginBins(), shift=shift
    ),
    "row mean": lambda shift: venn.InductiveVenn(frozen(3), rule=venn.prediction.RowMean(), shift=shift),
    "cross": lambda shift: venn.predictors.CrossVenn(Centroids(range(3)), folds=3, first=9, shift=shift),
    "conformal": lambda shift: Conformal(squares(), shift=shift),
    "plain": lambda shift: Conformal(squares(), smoothed=False, shift=shift),
    "conditional": lambda shift: Conformal(squares(), label_conditional=True, shift=shift),
    "inductive conformal": lambda shift: InductiveConformal(
        Centroids(range(3)), None, schedule=venn.schedules.PrefixRestart(9), shift=shift
    ),
    "inductive plain": lambda shift: InductiveConformal(frozen(3), smoothed=False, shift=shift),
    "inductive conditional": lambda shift: InductiveConformal(frozen(3), label_conditional=True, shift=shift),
}


def numbers(prediction):
    return getattr(prediction, "probabilities", None) if hasattr(prediction, "probabilities") else prediction.p_values


@pytest.mark.parametrize("name", MODELS)
def test_no_shift_and_shifts_that_change_nothing_give_the_same_bits(name):
    X, y = examples(1, 30)
    none = MODELS[name](None)
    same = [MODELS[name](PriorShift((0.2, 0.3, 0.5), (0.2, 0.3, 0.5))), MODELS[name](PriorShift.of_costs((1, 5, 25)))]
    same.append(MODELS[name](PriorShift.of_keeping((0.3, 0.3, 0.3))))
    for x, label in zip(X, y.tolist(), strict=True):
        answer = numbers(none.predict_one(x))
        assert all(np.array_equal(numbers(model.predict_one(x)), answer) for model in same)
        for model in (none, *same):
            model.learn_one(x, label)


@pytest.mark.parametrize("name", ["conformal", "conditional", "inductive conditional"])
def test_a_class_that_does_not_come_in_use_has_p_value_0(name):
    X, y = examples(1, 30)
    model = learned(MODELS[name](PriorShift((0.2, 0.3, 0.5), (0.0, 0.4, 0.6))), X, y.tolist())
    assert all((model.predict_one(x).p_values > 0).tolist() == [False, True, True] for x in X)


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_transductive_venn_is_the_definition(kind, leave_one_out):
    shift = SHIFTS[kind]
    possible = shift.ratios > 0
    X, y = examples(2)
    machine = squares()
    taxonomy = venn.LeaveOneOut(venn.Argmax()) if leave_one_out else venn.Argmax()
    model = venn.TransductiveVenn(machine, taxonomy, shift=shift)
    for x, label in zip(X, y.tolist(), strict=True):
        answer = machine.hypotheses(x)
        of = answer.leave_one_out if leave_one_out else answer.scores
        past, weights = answer.labels.tolist(), shift.ratios.tolist()
        wanted = [
            naive.row(venn.Argmax().categories(of(j)), [*past, j], weights, 3) for j in range(3) if weights[j] > 0
        ]
        P = model.predict_one(x)
        assert P.probabilities[possible] == pytest.approx(np.array(wanted), abs=1e-12)
        bounds_come_from_hypotheses_that_may_be_true(P, possible)
        machine.learn_one(x, label)


def bounds_come_from_hypotheses_that_may_be_true(P, possible):
    rows = P.probabilities[possible]
    assert P.proba == pytest.approx(rows.mean(axis=0), abs=1e-12)
    assert (P.lower, P.upper) == (rows[:, P.index].min(), rows[:, P.index].max())
    assert (P.probabilities[:, ~possible] == 0).all()
    if isinstance(P.rule, venn.prediction.RowMean):
        assert possible[P.index]


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("taxonomy", [venn.Argmax(), venn.taxonomies.AdaptiveMarginBins()], ids=["argmax", "adaptive"])
@pytest.mark.parametrize("rule", [None, venn.prediction.RowMean()], ids=["category class", "row mean"])
def test_inductive_venn_is_the_definition(kind, taxonomy, rule):
    shift = SHIFTS[kind]
    possible = np.flatnonzero(shift.ratios > 0)
    X, y = examples(3, kind="repeats")
    scorer = frozen(3)
    model = venn.InductiveVenn(scorer, taxonomy, rule=rule, shift=shift)
    block = copy.deepcopy(model).replay_many(X, y)
    scores = scorer.score_many(X)
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        categories = taxonomy.categories(scores[: i + 1])
        wanted = [naive.row(categories, [*y[:i], j], shift.ratios.tolist(), 3) for j in possible]
        P = model.predict_one(x)
        assert P.probabilities[possible] == pytest.approx(np.array(wanted), abs=1e-12)
        bounds_come_from_hypotheses_that_may_be_true(P, shift.ratios > 0)
        for one in (block, model.predict_many(x[None])):
            k = i if one is block else 0
            assert np.array_equal(one[k].probabilities, P.probabilities)
            assert one.labels[k] == P.label
            assert one.lower[k] == pytest.approx(P.lower, abs=1e-12)
            assert one.upper[k] == pytest.approx(P.upper, abs=1e-12)
            assert one.probabilities[k] == pytest.approx(P.probabilities, abs=1e-15)
            assert one.proba[k] == pytest.approx(P.proba, abs=1e-15)
        model.learn_one(x, label)


def test_only_one_class_can_come():
    """The interval is a point: 1 for that class, 0 for the one that the category stands for."""
    shift = PriorShift((0.5, 0.25, 0.25), (0, 1, 0))
    X, y = examples(4, 20)
    for rule, lower in ((venn.prediction.RowMean(), 1.0), (venn.prediction.CategoryClass(), None)):
        model = venn.InductiveVenn(frozen(3), rule=rule, shift=shift)
        block = model.replay_many(X, y)
        expected = (block.index == 1).astype(float) if lower is None else np.ones(20)
        assert np.array_equal(block.lower, expected)
        assert np.array_equal(block.upper, expected)
        assert [block[i].lower for i in range(20)] == expected.tolist()
    p = InductiveConformal(frozen(3), smoothed=False, shift=shift).replay_many(X, y).p_values
    assert (p[:, [0, 2]] == 0).all()
    assert (p[:, 1] > 0).all()


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("smoothed", [False, True])
def test_conformal_is_the_definition(kind, conditional, smoothed):
    shift = SHIFTS[kind]
    weights = shift.ratios.tolist()
    X, y = examples(5)
    machine = squares()
    model = Conformal(machine, None, conditional, smoothed, seed=3, shift=shift)
    for n, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        answer = machine.hypotheses(x)
        tau = coin(3, n, x) if smoothed else 1.0
        p = model.predict_one(x).p_values
        for j in range(3):
            codes = np.append(answer.labels, j)
            steps = Margin().steps(answer.leave_one_out(j), codes)
            wanted = 0 if weights[j] == 0 else naive.p_value(steps, codes.tolist(), weights, tau, conditional)
            assert p[j] == pytest.approx(wanted, abs=1e-12)
        machine.learn_one(x, label)


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("conditional", [False, True])
def test_inductive_conformal_is_the_definition(kind, conditional):
    shift = SHIFTS[kind]
    weights = shift.ratios.tolist()
    X, y = examples(6, kind="repeats")
    scorer = frozen(3)
    model = InductiveConformal(scorer, None, schedule=None, label_conditional=conditional, seed=4, shift=shift)
    block = copy.deepcopy(model).replay_many(X, y)
    scores = scorer.score_many(X)
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        p = model.predict_one(x).p_values
        for j in range(3):
            codes = np.append(y[:i], j)
            steps = Margin().steps(scores[: i + 1], codes)
            tau = coin(4, i, x)
            wanted = 0 if weights[j] == 0 else naive.p_value(steps, codes.tolist(), weights, tau, conditional)
            assert p[j] == pytest.approx(wanted, abs=1e-12)
        assert np.array_equal(block.p_values[i], p)
        assert np.array_equal(model.predict_many(x[None]).p_values[0], p)
        model.learn_one(x, label)


@pytest.mark.parametrize("name", ["adaptive", "inductive adaptive", "row mean", "conformal", "inductive conformal"])
def test_shuffling_what_is_counted_changes_nothing(name):
    X, y = examples(7, 30)
    answers = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(30)
        if name == "inductive conformal":
            order = np.append(np.arange(18), 18 + np.random.default_rng(seed).permutation(12))  # those that calibrate
        model = learned(MODELS[name](SHIFT), X[order], y[order].tolist())
        answers.append([numbers(model.predict_one(x)) for x in X[:8]])
    exact = name not in ("conformal", "inductive conformal")
    assert np.allclose(answers, answers[0], rtol=0, atol=0 if exact else 1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_shifts_show_and_are_checked(name):
    for shift in SHIFTS.values():
        model = MODELS[name](shift)
        assert repr(model).endswith(f"shift={shift!r})")
        again = model.under(shift)
        assert repr(again) == repr(model)
        assert repr(model.under(None)) == repr(model).replace(f", shift={shift!r}", "")
        assert model.predict_one([0.0, 1.0]).guaranteed == MODELS[name](None).predict_one([0.0, 1.0]).guaranteed
    with pytest.raises(ValueError, match=r"shift must be of the 3 classes \[0, 1, 2\], got PriorShift"):
        MODELS[name](PriorShift((0.5, 0.5), (0.1, 0.9)))
    for bad in ((0.2, 0.3, 0.5), "shift", PriorShift):
        with pytest.raises(TypeError, match="shift must be a PriorShift, got"):
            MODELS[name](bad)


# Frequencies by expectation maximisation -----------------------------------------------------------------------------


@pytest.mark.parametrize("c", [2, 3, 5])
def test_estimated_priors_are_the_likeliest(c):
    rng = np.random.default_rng(c)
    train = rng.dirichlet(np.full(c, 5))
    proba = rng.dirichlet(np.full(c, 0.5), size=60)
    found = operational_priors(proba, train)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert naive.likelihood(found, proba, train) >= naive.likelihood(naive.likeliest(proba, train), proba, train) - 1e-9
    assert found == pytest.approx(naive.likeliest(proba, train), abs=1e-3)
    assert naive.one_round(found, proba, train) == pytest.approx(found, abs=1e-8)
    for other in rng.dirichlet(np.ones(c), size=50):
        assert naive.likelihood(found, proba, train) >= naive.likelihood(other, proba, train)


def test_estimated_priors_where_classes_look_alike():
    """Where the likelihood is nearly flat and rounds alone are slow. By concavity the largest rate bounds the gap."""
    rng = np.random.default_rng(9)
    train = np.full(4, 0.25)
    y = rng.choice(4, 1000, p=(0.1, 0.2, 0.3, 0.4))
    density = np.exp(0.2 * (np.eye(4)[y] + rng.normal(size=(1000, 4))))
    proba = density / density.sum(axis=1, keepdims=True)
    found = operational_priors(proba, train)
    rates = naive.one_round(found, proba, train) / found
    assert rates.max() <= 1 + 2e-9
    plain = train
    for _ in range(20):
        plain = naive.one_round(plain, proba, train)
    assert naive.likelihood(found, proba, train) > naive.likelihood(plain, proba, train)


@pytest.mark.parametrize("apart", [1e-2, 1e-3, 1e-5])
def test_estimated_priors_where_classes_can_hardly_be_told_apart(apart):
    """The likelihood is nearly flat: without extrapolation that helps, ten thousand rounds do not get there."""
    rng = np.random.default_rng(1)
    train = np.full(2, 0.5)
    proba = 0.5 + 0.5 * apart * rng.normal(size=2000)
    proba = np.column_stack([proba, 1 - proba])
    found = operational_priors(proba, train)
    assert (naive.one_round(found, proba, train) <= (1 + 2e-9) * found).all()


def test_estimated_priors_where_the_answer_is_known():
    train = (0.25, 0.75)
    assert operational_priors([[0.25, 0.75]] * 9, train).tolist() == [0.25, 0.75]  # nothing is said
    certain = np.eye(2)[[0, 0, 0, 1]]
    assert operational_priors(certain, train) == pytest.approx([0.75, 0.25], abs=1e-9)
    assert operational_priors(certain[:3], train) == pytest.approx([1, 0], abs=1e-9)
    # The edge of the simplex, where rounds are slow: all rows favour the first class beyond its prior.
    assert operational_priors([[0.3, 0.7], [0.26, 0.74]], train) == pytest.approx([1, 0], abs=1e-6)


def test_estimated_priors_find_the_frequencies_of_a_shifted_stream():
    """With the true P(y | x) the estimate is consistent; it does not know a label."""
    import streams

    before = streams.gaussians(20000, classes=3, spread=0.7, seed=3)
    after = streams.label_shift(before, 0, (0.7, 0.1, 0.2), seed=4)
    squares = ((after.X[:, None] - np.array([[1, 0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])) ** 2).sum(axis=2)
    density = np.exp(-squares / (2 * 0.7**2))
    proba = density / density.sum(axis=1, keepdims=True)  # as though classes were equally frequent
    found = operational_priors(proba, (1 / 3,) * 3)
    assert abs(found - np.bincount(after.y) / len(after)).max() < 0.02
    assert abs(proba.mean(axis=0) - found).max() > 0.08  # the naive answer


def test_estimated_priors_take_the_short_numbers_of_a_classifier():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=400) > 0.5).astype(int) + (X[:, 1] > 1)
    proba = LogisticRegression().fit(X, y).predict_proba(X)
    assert proba.dtype == np.float32
    assert (abs(proba.astype(np.float64).sum(axis=1) - 1) > 1e-9).any()
    exact = proba.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    train = (0.5, 0.25, 0.25)
    assert np.array_equal(operational_priors(proba, train), operational_priors(exact, train))
    proba[33] *= 1.001
    with pytest.raises(ValueError, match=r"^proba must be nonnegative .* got row 33 of sum 1\.00\d+ and smallest"):
        operational_priors(proba, train)
