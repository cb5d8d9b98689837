"""Predictions and decision rules: what they derive from their matrix."""

import copy
import pickle

import numpy as np
import pytest

import venn
from venn.online.outlook import Outlook
from venn.prediction import (
    CategoryClass,
    ClassIntervals,
    Forecast,
    Maximin,
    Multiprobability,
    PredictionSet,
    RowMean,
    plain,
)
from venn.predictors import ManyClassIntervals, ManyForecasts, ManyMultiprobabilities
from venn.predictors.blocks import ManyMixedForecasts, ManyPredictionSets

MATRIX = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]


def matrix(rows=MATRIX):
    return np.array(rows, float)


def test_interval_of_the_predicted_class():
    prediction = Multiprobability(matrix(), ("a", "b", "c"))
    assert prediction.label == "a"
    assert (prediction.lower, prediction.upper, prediction.width) == (0.25, 0.75, 0.5)
    assert np.array_equal(prediction.proba, [0.5, 1 / 3, 0.5 / 3])
    assert prediction.classes == ("a", "b", "c")
    assert repr(prediction) == "Multiprobability('a': [0.250, 0.750])"


@pytest.mark.parametrize(
    ("prediction", "name", "said"),
    [
        (Multiprobability(matrix(), "abc"), "set", ": it is what predictors of sets, such as Conformal, say"),
        (Forecast(np.array([0.5, 0.5]), "ab"), "probabilities", ": it is what Venn predictors, such as Trans"),
        (ClassIntervals(np.full((2, 2), 0.5), "ab"), "confidence", ": it is what predictors of sets"),
        (PredictionSet(np.array([0.5, 0.2]), "ab"), "lower", ": it is what predictors of probabilities, such as"),
        (PredictionSet(np.array([0.5, 0.2]), "ab"), "pairs", ": it is what Venn-Abers predictors"),
        (PredictionSet(np.array([0.5, 0.2]), "ab"), "sets", ""),
    ],
)
def test_what_another_prediction_says_is_known_here(prediction, name, said):
    with pytest.raises(AttributeError) as caught:
        getattr(prediction, name)
    start = f"{type(prediction).__name__} has no attribute {name!r}"
    assert str(caught.value).startswith(start + said)
    assert said or str(caught.value) == start
    assert not hasattr(prediction, name)
    for twin in (copy.copy(prediction), copy.deepcopy(prediction), pickle.loads(pickle.dumps(prediction))):
        assert repr(twin) == repr(prediction)


def test_rules_pick_different_classes():
    rows = [[0.9, 0.1], [0.3, 0.7]]
    assert Multiprobability(matrix(rows), (0, 1)).label == 0
    rows = [[0.95, 0.05, 0.0], [0.0, 0.5, 0.5], [0.55, 0.4, 0.05]]
    assert Multiprobability(matrix(rows), (0, 1, 2)).label == 0
    assert Multiprobability(matrix(rows), (0, 1, 2), Maximin()).label == 1
    assert Multiprobability(matrix(rows), (0, 1, 2), CategoryClass(), category_class=2).label == 2


@pytest.mark.parametrize("rule", [RowMean(), Maximin()])
def test_ties_go_to_the_first_class(rule):
    prediction = Multiprobability(np.eye(3), ("z", "y", "x"), rule)
    assert prediction.label == "z"
    assert (prediction.lower, prediction.upper) == (0, 1)


def test_a_rule_of_the_users_own():
    class Last:
        def choose(self, probabilities, category_class):
            return len(probabilities) - 1

    prediction = Multiprobability(matrix(), ("a", "b", "c"), Last())
    assert prediction.label == "c"
    assert prediction.guaranteed == "realised row"


def test_what_is_guaranteed_hangs_on_the_rule():
    assert Multiprobability(matrix(), "abc").guaranteed == "realised row"
    assert Multiprobability(matrix(), "abc", RowMean(), category_class=0).guaranteed == "realised row"
    assert Multiprobability(matrix(), "abc", Maximin()).guaranteed == "realised row"
    assert Multiprobability(matrix(), "abc", CategoryClass(), category_class=1).guaranteed == "predicted label"
    assert Multiprobability(matrix(), "abc", RowMean(), guaranteed="nothing").guaranteed == "nothing"


@pytest.mark.parametrize("c", [2, 3, 4, 7])
def test_equal_counts_are_ties_whatever_their_last_bits(c):
    """(count_k + 1{k = j}) / (m + 1): the row means are ordered as the counts are."""
    rng = np.random.default_rng(c)
    for _ in range(300):
        counts = rng.integers(0, 6, c)
        rows = (counts + np.eye(c)) / (counts.sum() + 1)
        assert Multiprobability(rows, range(c)).index == int(counts.argmax())


def test_the_category_class_may_depend_on_the_hypothesis():
    with pytest.raises(ValueError, match="same class under every hypothesis"):
        Multiprobability(matrix(), "abc", CategoryClass())


def test_class_intervals():
    prediction = ClassIntervals(np.array([[0.5, 0.75], [0.25, 0.0], [0.0, 0.5]]), "abc")
    assert (prediction.label, prediction.lower, prediction.upper, prediction.width) == ("a", 0.5, 0.75, 0.25)
    assert np.allclose(prediction.proba, [0.625, 0.125, 0.25])
    assert prediction.guaranteed == "each class"
    assert repr(prediction) == "ClassIntervals('a': [0.500, 0.750])"
    assert ClassIntervals(np.zeros((2, 2)), "ab").proba.tolist() == [0.5, 0.5]
    assert ClassIntervals(np.array([[0.0, 0.1], [0.75, 0.25]]), "ab").lower == 0.25  # the second may be smaller
    for bad in ([[0.0, 1.5], [0, 0]], [[-0.1, 0.5], [0, 0]], [[np.nan, 0.5], [0, 0]]):
        with pytest.raises(ValueError, match="pairs must be probabilities"):
            ClassIntervals(np.array(bad), "ab")
    with pytest.raises(ValueError, match="pairs must have shape"):
        ClassIntervals(np.zeros((3, 2)), "ab")


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        (MATRIX, False),
        ([[0.6, 0.4], [0.6, 0.4]], True),
        ([[0.6, 0.4], [0.5, 0.5]], True),  # a tie within a row goes to the first class
        ([[0.4, 0.6], [0.5, 0.5]], False),
        ([[1.0, 0.0], [0.0, 1.0]], False),
    ],
)
def test_unanimous_means_one_argmax_for_all_rows(rows, answer):
    prediction = Multiprobability(matrix(rows), range(len(rows)))
    assert prediction.unanimous is answer


def test_forecast_claims_no_interval():
    forecast = Forecast(np.array([0.25, 0.5, 0.25]), ("a", "b", "c"))
    assert (forecast.label, forecast.index) == ("b", 1)
    assert forecast.lower == forecast.upper == 0.5
    assert forecast.width == 0
    assert repr(forecast) == "Forecast('b': 0.500)"
    assert Forecast(np.array([0.5, 0.5]), (1, 2)).label == 1


@pytest.mark.parametrize(
    "prediction",
    [
        Forecast(np.array([0.25, 0.75]), ("a", "b")), Multiprobability(np.eye(2), ("a", "b"), Maximin()),
        ClassIntervals(np.array([[0.25, 0.5], [0.5, 0.75]]), ("a", "b")),
        PredictionSet([0.25, 0.5], ("a", "b")),
    ],
    ids=lambda prediction: type(prediction).__name__,
)  # fmt: skip
def test_no_array_that_a_prediction_holds_can_be_written(prediction):
    """A prediction is shared by monitors and records: what one of them wrote would be another's answer."""
    held = [value for value in vars(prediction).values() if isinstance(value, np.ndarray)]
    assert held
    assert not any(array.flags.writeable for array in (*held, getattr(prediction, "proba", held[0])))


def test_what_is_no_distribution():
    for bad in ([3.0, -2.0], [np.nan, 1.0], [0.5, 0.6], [1.0]):
        with pytest.raises(ValueError, match="proba must"):
            Forecast(np.array(bad), ("a", "b"))
    with pytest.raises(ValueError, match="probabilities must have shape"):
        Multiprobability(np.array([[0.5, 0.5]]), ("a", "b"))
    with pytest.raises(ValueError, match="probabilities must be nonnegative"):
        Multiprobability(np.array([[0.5, 0.5], [0.5, 0.4]]), ("a", "b"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("c", [2, 3, 10])
def test_distributions_in_short_numbers_are_divided_by_their_sums(c, dtype):
    rng = np.random.default_rng(0)
    weights = rng.random((500, c)).astype(dtype)
    rows = weights / weights.sum(axis=1, keepdims=True)
    exact = rows.astype(np.float64)
    assert (abs(exact.sum(axis=1) - 1) > 1e-9).any()
    for row, numbers in zip(rows, exact, strict=True):
        proba = Forecast(row, range(c)).proba
        assert proba.dtype == np.float64
        assert abs(proba.sum() - 1) <= 1e-15 * c if abs(numbers.sum() - 1) > 1e-9 else np.array_equal(proba, numbers)
        assert abs(proba - numbers).max() <= c * np.finfo(dtype).eps
    with pytest.raises(ValueError, match=r"proba must be nonnegative with sum 1, got sum 1\.0"):
        Forecast(np.array([1.03, *[0.0] * (c - 1)], dtype), range(c))


def test_a_wrong_distribution_is_named_by_its_row_and_sum():
    rows = np.full((300, 300), 1 / 300)
    rows[7, :2] += 0.25, -0.5
    with pytest.raises(ValueError, match="probabilities must be nonnegative") as caught:
        Multiprobability(rows, range(300))
    assert str(caught.value).startswith("probabilities must be nonnegative with sum 1, got row 7 of sum 0.75")
    assert "smallest -0.49" in str(caught.value)
    assert len(str(caught.value)) < 150
    with pytest.raises(ValueError, match="got row 1 of sum nan"):
        Multiprobability(np.array([[0.5, 0.5], [np.nan, 0.5]], np.float32), ("a", "b"))
    one = np.array([0.3, 0.1, 0.6 + 5e-10])  # as they come, to the bit
    assert np.array_equal(Forecast(one, ("a", "b", "c")).proba, one)


def test_prediction_sets():
    prediction = PredictionSet(np.array([0.25, 0.5, 0.5]), "abc")
    assert (prediction.label, prediction.index) == ("b", 1)  # ties go to the first class
    assert (prediction.credibility, prediction.confidence) == (0.5, 0.5)
    assert prediction.set(0) == ("a", "b", "c")
    assert prediction.set(0.25) == prediction.set(np.float64(0.3)) == ("b", "c")  # above, not at, epsilon
    assert prediction.set(0.5) == prediction.set(1) == ()
    assert (prediction.guaranteed, PredictionSet([0.5, 1], "ab", False).guaranteed) == ("error rate", "error bound")
    with pytest.raises(ValueError, match="read-only"):
        prediction.p_values[0] = 0
    for twin in (copy.deepcopy(prediction), pickle.loads(pickle.dumps(prediction))):
        assert twin.label == "b"
        assert np.array_equal(twin.p_values, prediction.p_values)
    given = np.array([0.5, 0.25])
    kept = PredictionSet(given, "ab")
    given[:] = 1
    assert kept.p_values.tolist() == [0.5, 0.25]
    assert repr(prediction) == "PredictionSet('b': confidence 0.500, credibility 0.500)"


def test_what_is_no_p_value():
    for bad in ([np.nan, 0.5], [0.5, np.nan], [-0.1, 0.5], [0.5, 1.1], [np.inf, 0.0]):
        with pytest.raises(ValueError, match=r"p_values must lie in \[0, 1\], got"):
            PredictionSet(np.array(bad), "ab")
    for bad in (["0.5", "0.2"], [True, False], None, [None, 0.5], [0.5j, 0.5]):
        with pytest.raises(TypeError, match=r"p_values must be numbers in \[0, 1\], got"):
            PredictionSet(bad, "ab")
    for bad in ([0.5], [[0.5, 0.5]], 0.5):
        with pytest.raises(ValueError, match=r"p_values must have shape \(2,\)"):
            PredictionSet(bad, "ab")
    with pytest.raises(ValueError, match="classes must hold at least 2 labels"):
        PredictionSet([0.5], "a")


def test_what_is_no_significance_level():
    prediction = PredictionSet([0.5, 0.2], "ab")
    for bad in (-0.1, 1.1, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\], got"):
            prediction.set(bad)
    for bad in ("0.1", None, True, [0.1]):
        with pytest.raises(TypeError, match=r"epsilon must be a number in \[0, 1\], got"):
            prediction.set(bad)


@pytest.mark.parametrize("bad", [10**400, "x", None, [1.0, 2.0], 1j], ids=["huge", "text", "none", "list", "complex"])
def test_what_is_no_number_is_refused_by_name(bad):
    """An integer that no float holds among them."""
    for make, name in (
        (lambda: Forecast([bad, 1.0], ("a", "b")), "proba"),
        (lambda: Multiprobability([[bad, 1.0], [0.0, 1.0]], ("a", "b")), "probabilities"),
        (lambda: ClassIntervals([[bad, 1.0], [0.0, 1.0]], ("a", "b")), "pairs"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            make()


def test_the_best_class_may_not_be_the_guaranteed_label():
    rows = [[0.36, 0.64], [0.16, 0.84]]
    prediction = Multiprobability(matrix(rows), ("dry", "rain"), CategoryClass(), category_class=0)
    assert (prediction.label, prediction.best) == ("dry", "rain")
    assert np.allclose(prediction.proba, [0.26, 0.74])
    assert (prediction.lower, prediction.upper) == (0.16, 0.36)  # of the label
    assert Multiprobability(matrix(rows), ("dry", "rain")).best == "rain"


@pytest.mark.parametrize("c", [2, 3, 7])
def test_where_no_rule_differs_the_best_class_is_the_label(c):
    rng = np.random.default_rng(c)
    for _ in range(200):
        counts = rng.integers(0, 4, c)  # with ties, whose means differ in their last bits
        rows = (counts + np.eye(c)) / (counts.sum() + 1)
        proba = rows.mean(axis=0)
        for prediction in (
            Multiprobability(rows, range(c)),
            Forecast(proba / proba.sum(), range(c)),
            ClassIntervals(rows[:, :2], range(c)),
        ):
            assert prediction.best == prediction.label


def test_sets_have_no_best_class():
    with pytest.raises(AttributeError, match="no attribute 'best': it is what predictors of probabilities"):
        _ = PredictionSet([0.5, 0.2], "ab").best


@pytest.mark.parametrize("ratios", [None, np.array([1.0, 0.5, 2.0])])
def test_blocks_have_the_best_classes_of_their_predictions(ratios):
    rng = np.random.default_rng(0)
    classes = ("a", "b", "c")
    counts, pairs = rng.integers(0, 4, (60, 3)), rng.integers(0, 5, (60, 3, 2)) / 4
    proba = pairs.mean(axis=2) + 0.1
    proba /= proba.sum(axis=1, keepdims=True)
    for block in (
        ManyMultiprobabilities(counts, classes, CategoryClass(), rng.integers(0, 3, 60), ratios=ratios),
        ManyMultiprobabilities(counts, classes, RowMean(), ratios=ratios),
        ManyClassIntervals(pairs, classes),
        ManyForecasts(proba, classes),
    ):
        assert block.best == [block[i].best for i in range(len(block))]


def test_an_outlook_says_where_a_forecast_is_not_of_the_interval():
    pairs, p_values = (
        ClassIntervals(np.array([[0.2, 0.4], [0.6, 0.8]]), ("a", "b")),
        PredictionSet([0.5, 0.5], ("a", "b")),
    )
    for chance, said in ((0.3, False), (0.1, True)):
        forecast = Forecast(np.array([chance, 1 - chance]), ("a", "b"))
        outlook = Outlook({"forecast": forecast, "intervals": pairs, "sets": p_values})
        assert ("outside its brackets, which another predictor gives" in repr(outlook)) == said


def test_what_declares_nothing_to_say_is_refused_by_name():
    with pytest.raises(TypeError, match=r"prediction must be of a class that declares in 'says' .* got 3.5"):
        venn.prediction.plain(3.5)


@pytest.mark.parametrize("kind", [ManyForecasts, ManyMixedForecasts, ManyClassIntervals, ManyPredictionSets])
def test_the_predictions_of_a_block_made_at_once_are_its_items(kind):
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(3), size=20)
    if kind is ManyClassIntervals:
        rows = np.stack([rows / 2, rows], axis=-1)
    block = kind(rows, ("a", "b", "c"))
    for one, item in zip(block.each(), [block[i] for i in range(20)], strict=True):
        assert type(one) is type(item)
        assert list(vars(one)) == list(vars(item))
        own, other = getattr(one, block.numbers), getattr(item, block.numbers)
        assert (own.tobytes(), own.flags.writeable, own.base) == (other.tobytes(), False, None)
        assert plain(one) == plain(item)
    assert kind(rows[:0], ("a", "b", "c")).each() == []
    wrong = rows.copy()
    wrong[7, 0] = np.nan
    with pytest.raises(ValueError, match="must"):
        kind(wrong, ("a", "b", "c")).each()
    if kind is ManyForecasts:
        with pytest.raises(ValueError, match="sum"):
            kind(rows * 0.99, ("a", "b", "c")).each()
