"""Conformal predictors and nonconformity measures: the definition after every step, symmetry, purity, bad input."""

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import KERNELS, LABELS, OBJECTS, halved, labels, learned, objects
from naive import conformal as naive
from naive import mixture as naive_mixture
from naive.coins import coin

import venn
from venn.machines.machine import ScoreTable
from venn.nonconformity import Margin, OwnScore, ScoreMeasure, Share
from venn.prediction import PredictionSet
from venn.predictors.transductive import Conformal, p_values

RBF, rbf = KERNELS["rbf"]


def hinge(c=3, C=1.0):
    return venn.OneVsAllSVM(RBF, C, range(c))


def squares(c=3, C=1.0):
    return venn.LeastSquaresSVM(RBF, C, range(c))


def centroids(c=3, C=1.0):
    return NearestCentroid(range(c))


def mixture(c=3, C=1.0):
    return venn.machines.Mixture(venn.machines.Bank(RBF, range(c), (C, 10 * C)))


class Denied(ScoreMeasure):
    """A measure of our own: softmax denies the own class."""

    pointwise = True

    def values(self, scores, codes):
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return 1 - shares[np.arange(len(codes)), codes] / shares.sum(axis=1)


class FromMedian(ScoreMeasure):
    """A measure that looks at all examples: how far the own score is from the median of all own scores."""

    leave_one_out = False

    def values(self, scores, codes):
        own = scores[np.arange(len(codes)), codes]
        return abs(own - np.median(own))


def naive_denied(bag, y, c, kernel, C):
    scores = naive.least_squares.leave_one_out(kernel(bag, bag), y, c, C)
    return [1 - np.exp(row[label]) / np.exp(row).sum() for row, label in zip(scores, y, strict=True)]


def naive_from_median(bag, y, c, kernel, C):
    scores = naive.least_squares.training(kernel(bag, bag), y, c, C)
    own = [row[label] for row, label in zip(scores, y, strict=True)]
    return [abs(value - np.median(own)) for value in own]


def naive_own(bag, y, c, kernel, C):
    scores = naive.least_squares.leave_one_out(kernel(bag, bag), y, c, C)
    return [-row[label] for row, label in zip(scores, y, strict=True)]


def naive_shares(bag, y, c, kernel, C):
    said = naive_mixture.forecasts([kernel(bag, bag)], (C, 10 * C), y, c, 1.0)
    return [-np.log(row[label] / row.sum()) for row, label in zip(said, y, strict=True)]


CASES = {  # machine, measure, its definition, steps
    "margin": (hinge, Margin(leave_one_out=False), naive.margin, 9),
    "span leave-one-out margin": (hinge, Margin(), naive.span_margin, 9),
    "squares, margin": (squares, Margin(leave_one_out=False), naive.squares_margin, 9),
    "squares, leave-one-out margin": (squares, Margin(), naive.squares_leave_one_out_margin, 9),
    "squares, softmax": (squares, Denied(), naive_denied, 8),
    "squares, median": (squares, FromMedian(), naive_from_median, 9),
    "squares, own score": (squares, OwnScore(), naive_own, 9),
    "mixture, shares": (mixture, Share(), naive_shares, 9),
}


# The definition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), halved(OBJECTS, CASES))
def test_p_values_equal_the_definition_at_every_step(name, kind):
    make, measure, definition, n = CASES[name]
    seed = len(name) + len(kind)
    C = (0.1, 1.0, 10.0)[seed % 3]
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)
    y = labels(LABELS[seed % len(LABELS)], rng, X, 3)
    machine = make(C=C)
    models = [Conformal(machine, measure, conditional, smoothed=True, seed=seed) for conditional in (False, True)]
    plain = [Conformal(machine, measure, conditional, smoothed=False) for conditional in (False, True)]
    for i in range(n):
        bags = naive.bags(definition, X[:i], y[:i], X[i], 3, rbf, C)
        for model, tau in [(model, coin(seed, i, X[i])) for model in models] + [(model, 1.0) for model in plain]:
            prediction = model.predict_one(X[i])
            expected = [naive.p_value(values, codes, tau, model.label_conditional) for values, codes in bags]
            assert abs(prediction.p_values - expected).max() < 1e-12, (i, tau)
            assert isinstance(prediction, PredictionSet)
            assert prediction.smoothed == model.smoothed
        models[0].learn_one(X[i], int(y[i]))


DEFINITIONS = {Margin: naive.margins, OwnScore: naive.own, Share: naive.shares}


@pytest.mark.parametrize("c", [2, 3, 4, 5, 9, 12])
@pytest.mark.parametrize("m", [1, 40, 2049])
@pytest.mark.parametrize("measure", [Margin(), OwnScore(), Share()], ids=["margin", "own", "share"])
def test_the_compiled_path_equals_the_definition_on_any_table(measure, m, c):
    """Chunks of four classes, tiles of 2048 examples, ties everywhere, several examples at a column or none."""

    class Plainly(ScoreMeasure):
        pointwise = True
        values = type(measure).values
        _check = getattr(measure, "_check", None)
        _totals, _of = (getattr(measure, name, None) for name in ("_totals", "_of"))

    class Repeated(Plainly):
        pointwise = False

    rng = np.random.default_rng(c * m)
    negative, positive = rng.integers(-2, 3, size=(2, c, m + 3)) / 2
    if isinstance(measure, Share):  # all of them 0, one alone, and what was rounded
        negative, positive = rng.choice([-1e-4, 0.0, 0.1, 0.2, 0.5], size=(2, c, m + 3))
        negative[:, m:] = positive[:, m:] = -7.0
    weights = rng.integers(0, 3, m)
    for test in {0, m // 2, m - 1}:
        table = ScoreTable(negative, positive, rng.integers(0, c, m), weights, test)
        fast = measure.rank_table(table)
        for slow in (Plainly(), Repeated()):
            assert all(np.array_equal(a, b) for a, b in zip(fast, slow.rank_table(table), strict=True))
        for j in range(c) if m <= 40 else ():
            definition = DEFINITIONS[type(measure)]
            values = definition(table.scores(j).tolist(), table.codes(j).tolist())
            steps = [naive.on_grid(value) for value in values]
            for y in range(c):
                mine = [v for v, code in zip(steps, table.codes(j), strict=True) if code == y]
                counts = sum(v > steps[-1] for v in mine), sum(v == steps[-1] for v in mine), len(mine)
                assert counts == (fast.greater[j, y], fast.equal[j, y], fast.total[j, y])


def test_a_subclass_with_values_of_its_own_is_ranked_by_them():
    class Own(Margin):
        def values(self, scores, codes):
            return -super().values(scores, codes)

    class Same(Margin):
        pass

    machine = learned(centroids(), [[0.0], [1.0], [2.0], [3.5], [1.0]], [0, 1, 2, 0, 0])
    answer = machine.hypotheses([0.25])
    ranks, own, same = (measure.rank(answer) for measure in (Margin(), Own(), Same()))
    assert all(np.array_equal(a, b) for a, b in zip(ranks, same, strict=True))
    assert np.array_equal(own.greater, ranks.total - ranks.greater - ranks.equal)
    assert not np.array_equal(own.greater, ranks.greater)


def test_p_values_by_hand():
    """Own less rival distance from the mean of the others.

    At 1, as "a", it is -10 for the new example and -9.5, -7.5, -7 and -9 for 0, 2, 10 and 12; as "b" it is 10 and
    all others are below -3. At 6, as "a", it is 0, the others -7, -8, -16/3 and -22/3; as "b" the mirror image.
    """
    model = Conformal(NearestCentroid(["a", "b"]), smoothed=False)
    learned(model, [[0.0], [2.0], [10.0], [12.0]], ["a", "a", "b", "b"])
    assert model.predict_one([1.0]).p_values.tolist() == [1.0, 0.2]
    assert model.predict_one([6.0]).p_values.tolist() == [0.2, 0.2]


# Ties and the numbers that break them ---------------------------------------------------------------------------------


def test_objects_that_are_asked_about_at_one_step_have_numbers_of_their_own():
    """As those of one `predict_p` of a `ConformalClassifier`."""
    model = Conformal(NearestCentroid(range(2)), seed=5)
    p = np.array([model.predict_one([float(x)]).p_values[0] for x in range(400)])
    assert p.tolist() == [coin(5, 0, [x]) for x in range(400)]
    assert len(np.unique(p)) == 400
    assert [model.predict_one([float(x)]).p_values[0] for x in reversed(range(400))] == p[::-1].tolist()


def test_equal_objects_tie():
    """A hundred equal objects, 30 of one class: with nothing to tell them apart, p is tau of the own class's ties."""
    machine = learned(squares(2), np.ones((100, 2)), [int(i < 30) for i in range(100)])
    tau = coin(3, 100, [1.0, 1.0])
    p = Conformal(machine, Margin(), seed=3).predict_one([1.0, 1.0]).p_values
    # Under either hypothesis the 30 or 31 of the rare class are the stranger ones.
    assert p == pytest.approx([(30 + tau * 71) / 101, tau * 31 / 101], abs=1e-15)
    conditional = Conformal(machine, Margin(), label_conditional=True, seed=3)
    assert conditional.predict_one([1.0, 1.0]).p_values == pytest.approx([tau, tau], abs=1e-15)


def test_p_values_of_ranks():
    greater, equal, total = np.array([[2, 1], [0, 4]]), np.array([[1, 3], [0, 1]]), np.array([[5, 6], [4, 7]])
    ranks = CASES["margin"][1].rank(hinge(2).hypotheses([0.0]))._replace(greater=greater, equal=equal, total=total)
    assert p_values(ranks, 0.25).tolist() == [(3 + 1.0) / 11, (4 + 0.25) / 11]
    assert p_values(ranks, 0.25, label_conditional=True).tolist() == [(2 + 0.25) / 5, (4 + 0.25) / 7]
    for tau in (-0.1, 1.2, np.nan, np.inf):
        with pytest.raises(ValueError, match="tau must"):
            p_values(ranks, tau)
    for tau in ("x", None, True):
        with pytest.raises(TypeError, match="tau must"):
            p_values(ranks, tau)


# Symmetry, purity, copies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_shuffling_the_past_changes_nothing(name, conditional):
    make, measure = CASES[name][:2]
    rng = np.random.default_rng(len(name))
    X = objects("grid", rng, 40) + rng.integers(0, 2, size=(40, 1)) / 7
    y = labels("noise", rng, X, 3)
    answers = []
    for _ in range(5):
        order = rng.permutation(40)
        model = learned(Conformal(make(C=3.0), measure, conditional), X[order], y[order].tolist())
        answers.append([model.predict_one(x).p_values for x in (*X[:6], X[0] + 0.1)])
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


# Values ---------------------------------------------------------------------------------------------------------------


def test_values_beyond_the_grid_compare_as_infinite():
    class Huge(ScoreMeasure):
        pointwise = True

        def values(self, scores, codes):
            return np.where(codes == 1, 1e305, -1e305)

    model = learned(Conformal(squares(2), Huge(), smoothed=False), [[0.0], [1.0]], [0, 1])
    assert model.predict_one([0.0]).p_values.tolist() == [1.0, 2 / 3]


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (lambda scores, codes: scores, r"values must be \(3,\) numbers.*shape \(3, 2\)"),
        (lambda scores, codes: 1.0, r"values must be \(3,\) numbers.*shape \(\)"),
        (lambda scores, codes: codes[:-1], r"values must be \(3,\) numbers.*shape \(2,\)"),
        (
            lambda scores, codes: np.where(scores[:, 0] > 0.5, np.nan, 0.0),
            r"values must not be NaN, got it for the scores \[(1\.|0\.99)",
        ),
    ],
)
def test_a_measure_that_errs_leaves_no_trace(values, says):
    class Bad(ScoreMeasure):
        def values(self, scores, codes):
            return values(scores, codes)

    machine = learned(squares(2), [[0.0], [1.0]], [0, 1])
    bad, good = Conformal(machine, Bad()), Conformal(machine)
    before = good.predict_one([0.5]).p_values
    with pytest.raises(ValueError, match=says):
        bad.predict_one([0.5])
    assert np.array_equal(good.predict_one([0.5]).p_values, before)
    assert machine.n == 2
