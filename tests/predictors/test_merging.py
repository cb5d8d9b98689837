"""What is learned of parts merges to what is learned of the whole, in any order and grouping.

What predicts does so to the last bit. Sums, which only describe, do so but for rounding.
"""

import math
import pickle
from functools import cache

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import merging as naive
from naive.merging import alike
from sklearn.linear_model import LogisticRegression

import venn
from venn.maps.abers import VennAbers
from venn.monitors.scorecard import Scorecard, SetScorecard
from venn.monitors.sums import CalibrationBins
from venn.online.checkpoint import pack, unpack
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_base import Inductive
from venn.predictors.inductive_conformal import InductiveConformal
from venn.shifts import PriorShift

CLASSES = ("a", "b", "c")
SHIFT = PriorShift((0.5, 0.25, 0.25), (0.2, 0.3, 0.5))


class Given:
    """A scorer of objects that are their own scores."""

    classes = CLASSES
    features = 3
    feature_names = None

    def __init__(self, scale=1.0):
        self.scale = scale

    def __repr__(self):
        return "Given()"  # as that of an estimator, it does not say all

    def scores(self, x):
        return np.asarray(x) * self.scale

    def score_many(self, X):
        return np.asarray(X) * self.scale


# Every kind: made of some of the examples, and all that it says -------------------------------------------------------


def examples(seed, n=40):
    """Scores with many ties, class codes that have to do with them, and p-values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, 3)) / 4 + rng.choice([0.0, 0.0, 1e-9, 0.1], (n, 3))
    y = np.where(rng.random(n) < 0.6, X.argmax(axis=1), rng.integers(0, 3, n))
    return X, y, rng.random((n, 3))


ASKED = examples(99, 25)


def predictor(make):
    def learned(part):
        X, y, _ = part
        model = make()
        if len(y):
            model.learn_many(X, [CLASSES[k] for k in y])
        return model

    def said(model):
        block = model.predict_many(ASKED[0])
        return [
            getattr(block, name).tobytes()
            for name in ("probabilities", "pairs", "p_values", "proba")
            if hasattr(block, name)
        ]

    return learned, said, Inductive.merge


def abers_of(part):
    X, y, _ = part
    model = VennAbers()
    model.insert_many(X[:, 0], y == 0)
    return model


def bins_of(part):
    _, y, p = part
    monitor = CalibrationBins(4)
    for confidence, label in zip(p[:, 0].tolist(), y.tolist(), strict=True):
        monitor.update(confidence, label == 0)
    return monitor


def carded(make, scorer):
    @cache  # made when it is asked for: whoever only collects the tests compiles nothing
    def model():
        learned = make()
        learned.learn_many(ASKED[0], [CLASSES[k] for k in ASKED[1]])
        return learned

    def of(part):
        X, y, _ = part
        card = scorer(CLASSES)
        if len(y):
            card.update_many(model().predict_many(X), y)
        return card

    return of, lambda card: card.state, scorer.merge  # a text may round its sums the other way


def inductive(*parameters, **named):
    return lambda: InductiveVenn(Given(), *parameters, **named)


KINDS = {
    "counts": predictor(inductive(venn.taxonomies.TopScoreBins([-0.5, 0.25]))),
    "counts by class": predictor(inductive(shift=SHIFT)),
    "bag": predictor(inductive(venn.taxonomies.AdaptiveMarginBins())),
    "abers by class": predictor(lambda: InductiveVennAbers(Given())),
    "ranks": predictor(lambda: InductiveConformal(Given())),
    "ranks within classes": predictor(lambda: InductiveConformal(Given(), label_conditional=True, smoothed=False)),
    "weighted ranks": predictor(lambda: InductiveConformal(Given(), shift=SHIFT)),
    "abers": (abers_of, lambda model: (len(model), model.query_many(ASKED[0][:, 0]).tobytes()), VennAbers.merge),
    "bins": (
        bins_of, lambda monitor: (monitor.n, monitor.ece, monitor.reliability, monitor.state), CalibrationBins.merge,
    ),
    "scorecard": carded(inductive(venn.taxonomies.TopTwo()), Scorecard),
    "scorecard of intervals": carded(lambda: InductiveVennAbers(Given()), Scorecard),
    "scorecard of sets": carded(lambda: InductiveConformal(Given()), SetScorecard),
}  # fmt: skip


def at_random(parts, merge, rng):
    """Merge parts in random order and grouping."""
    parts = list(parts)
    while len(parts) > 1:
        first, second = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(merge(first, second))
    return parts[0]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), number=st.integers(1, 6))
def test_parts_merge_to_the_whole(kind, seed, number):
    make, said, merge = KINDS[kind]
    rng = np.random.default_rng(seed)
    whole = examples(seed)
    which = rng.integers(0, number, 40)
    parts = [tuple(array[which == i] for array in whole) for i in range(number)]
    parts += [tuple(array[:0] for array in whole)] * int(rng.integers(2))
    made = [make(part) for part in parts]
    before = [pickle.dumps(said(one)) for one in made] if kind != "one against all" else []
    assert alike(said(at_random(made, merge, rng)), said(make(whole)))
    assert before == [pickle.dumps(said(made[i])) for i in range(len(before))], "a part changed"


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_one_changes_nothing_and_the_other_half_does(kind):
    make, said, merge = KINDS[kind]
    whole = examples(3)
    empty, some, rest = (make(tuple(array[part] for array in whole)) for part in (slice(0), slice(25), slice(25, 40)))
    assert alike(said(merge(empty, some)), said(some))
    assert alike(said(merge(some, empty)), said(some))
    assert alike(said(merge(some, rest)), said(merge(rest, some)))
    assert not alike(said(merge(some, rest)), said(some))
    assert merge(empty, some) is not some


# What scorecards say --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        inductive(venn.taxonomies.RunnerUp(0.5)), inductive(shift=SHIFT), lambda: InductiveVennAbers(Given()),
    ],
)  # fmt: skip
def test_a_scorecard_says_what_the_definitions_say(make):
    model = make()
    model.learn_many(ASKED[0], [CLASSES[k] for k in ASKED[1]])
    X, y, _ = examples(8, 60)
    block = model.predict_many(X)
    if hasattr(block, "probabilities"):
        bounds = block.probabilities
    else:
        bounds = block.pairs.transpose(0, 2, 1) if hasattr(block, "pairs") else block.proba[:, None]
    rows = list(zip(block.proba.tolist(), bounds.min(axis=1).tolist(), bounds.max(axis=1).tolist(), strict=True))
    card = Scorecard(CLASSES, bins=5, clip=0.2)
    card.update_many(block, y)
    said = naive.scorecard(rows, block.index.tolist(), y.tolist(), 0.2, 5)
    assert (card.n, card.errors, card.log_loss.clipped) == (60, said["errors"], said["clipped"])
    assert said["clipped"] > 0
    assert card.accuracy == pytest.approx(1 - said["errors"] / 60)
    assert card.log_loss.value == pytest.approx(said["log_loss"], rel=1e-14)
    assert card.brier == pytest.approx(said["brier"], rel=1e-14)
    assert (card.lower, card.upper) == pytest.approx((said["lower"], said["upper"]))
    assert card.width == pytest.approx(said["upper"] - said["lower"], abs=1e-15)
    found = [(one["frequency"], one["lower"], one["upper"]) for one in card.frequencies]
    assert alike(found, said["classes"])
    assert card.labels_in_band == sum(low <= rate <= high for rate, low, high in said["classes"])
    assert alike([(one["count"], one["confidence"], one["accuracy"]) for one in card.reliability], said["bins"])
    gaps = sum(abs(count * (rate - p)) for count, p, rate in said["bins"]) / 60
    assert card.ece == pytest.approx(gaps, abs=1e-14)


def test_predictions_that_come_often_count_as_often():
    model = inductive()()
    model.learn_many(ASKED[0], [CLASSES[k] for k in ASKED[1]])
    X, y, _ = examples(9, 12)
    times = np.arange(12) % 4
    often, one_by_one = Scorecard(CLASSES), Scorecard(CLASSES)
    often.update_many(model.predict_many(X), y, times)
    one_by_one.update_many(model.predict_many(np.repeat(X, times, axis=0)), np.repeat(y, times))
    assert alike(often.table, one_by_one.table)
    assert often != Scorecard(CLASSES)


@pytest.mark.parametrize("kind", ["scorecard", "scorecard of sets"])
def test_a_scorecard_is_kept_in_a_file(kind):
    card = KINDS[kind][0](examples(4))
    other = unpack(pack(card))
    assert other == card == pickle.loads(pickle.dumps(card))
    table = card.state["table"]
    for damaged in ({}, None, table | {"n": [0.0]}, {name: [math.nan] for name in table}):
        with pytest.raises((TypeError, ValueError), match="must"):
            other.restore({"table": damaged})
    assert other == card


# What does not belong together ----------------------------------------------------------------------------------------


def model_of(make=InductiveVenn, scorer=None, **named):
    return make(Given() if scorer is None else scorer, **named)


REFUSED = {
    "taxonomy": (model_of(), model_of(taxonomy=venn.taxonomies.TopTwo()), "TopTwo"),
    "rule": (model_of(), model_of(rule=venn.prediction.RowMean()), "RowMean"),
    "shift": (model_of(), model_of(shift=SHIFT), "PriorShift"),
    "scorer": (model_of(), model_of(scorer=Given(2.0)), "other must have the scorer"),
    "predictor": (model_of(), model_of(InductiveVennAbers), "must be a InductiveVenn, to be merged with one"),
    "smoothing": (model_of(InductiveConformal), model_of(InductiveConformal, seed=1), "seed=1"),
    "conditions": (
        model_of(InductiveConformal), model_of(InductiveConformal, label_conditional=True), "conditional=True",
    ),
    "schedule": (model_of(schedule=venn.schedules.FixedCalibration(5)),) * 2 + (r"schedule NoTraining\(\)",),
    "training": (venn.InductiveVenn(NearestCentroid(CLASSES)),) * 2 + (r"schedule NoTraining\(\)",),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_predictors_that_differ_are_not_merged(name):
    one, other, says = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=says):
        one.merge(other)


test_parts_that_differ_are_not_merged = refused(lambda one, other: one.merge(other), [
    (VennAbers(), 3, "other must be a VennAbers"),
    (CalibrationBins(4), CalibrationBins(5), "other must have the parameters"),
    (CalibrationBins(4), Scorecard(CLASSES), "other must be a CalibrationBins"),
    (Scorecard(CLASSES), Scorecard(CLASSES[::-1]), "other must have the parameters"),
    (Scorecard(CLASSES), Scorecard(CLASSES, clip=0.1), "other must have the parameters"),
    (Scorecard(CLASSES), SetScorecard(CLASSES), "other must be a Scorecard"),
])  # fmt: skip


def test_copies_of_a_scorer_are_the_same_scorer():
    one, other = model_of(), pickle.loads(pickle.dumps(model_of()))
    one.learn_one([0.0, 1.0, 0.5], "b")
    other.learn_one([1.0, 0.0, 0.5], "a")
    assert one.merge(other).n == 2
    assert (one.n, other.n) == (1, 1)


@pytest.mark.parametrize("make", [InductiveVenn, InductiveVennAbers, InductiveConformal])
def test_one_that_was_saved_merges(make, tmp_path):
    estimator = LogisticRegression().fit(ASKED[0], [("a", "b")[int(k > 0)] for k in ASKED[1]])
    X, codes, _ = examples(6)
    y = [("a", "b")[int(k > 0)] for k in codes]
    first, rest, whole = (make(venn.FrozenScorer(estimator)) for _ in range(3))
    first.learn_many(X[:25], y[:25])
    rest.learn_many(X[25:], y[25:])
    whole.learn_many(X, y)
    venn.save(tmp_path / "first", first)
    loaded = venn.load(tmp_path / "first", [estimator])
    said = KINDS["counts"][1]
    assert said(loaded.merge(rest)) == said(rest.merge(loaded)) == said(whole) != said(rest)
    venn.save(tmp_path / "both", loaded.merge(rest))
    again = venn.load(tmp_path / "both", [estimator])
    assert (again.n, said(again)) == (whole.n, said(whole))


@pytest.mark.parametrize("make", [Scorecard, SetScorecard])
def test_classes_of_scorecards_are_python_labels(make):
    for classes, plain in ((np.array(["a", "b"]), ("a", "b")), ([np.int64(0), np.int64(1)], (0, 1))):
        card = make(classes)
        assert repr(card) == repr(make(plain))
        assert card.merge(make(plain)) == make(plain)
        assert card.classes == plain
    assert make(iter("ab")) == make(("a", "b"))
    with pytest.raises(TypeError, match="classes must be a sequence of labels, got the string 'ab'"):
        make("ab")
    with pytest.raises(ValueError, match="classes must be distinct, got 'a' twice"):
        make(["a", "a"])


def test_what_hangs_on_the_order_has_no_merge():
    for kind in (venn.Monitor, venn.monitors.DeviationBand, venn.monitors.ForwardEProcess, venn.TransductiveVenn):
        assert not hasattr(kind, "merge")
