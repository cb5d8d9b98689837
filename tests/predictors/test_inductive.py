"""Inductive Venn predictors against the definition after every step; blocks, state, guarantees."""

import copy
import pickle

import numpy as np
import pytest
from conftest import labels, objects
from inductive_cases import (
    SCHEDULES,
    TAXONOMIES,
    AboveMedian,
    Centroids,
    Failing,
    OneCategory,
    blocks_are_the_loop,
    frozen,
    lssvm,
    mirrored,
    places_do_not_count,
)
from naive import inductive as naive
from naive import taxonomies as naive_taxonomies

import venn
from venn.predictors.blocks import ManyMultiprobabilities
from venn.predictors.counts import MarginBag, counter
from venn.predictors.inductive import CrossVenn, InductiveVenn
from venn.schedules import FixedCalibration, FreshSplit, NoTraining, Prefix, PrefixRestart, RandomAssignment
from venn.taxonomies import AdaptiveMarginBins, Threshold

# Against the definition ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize(("kind", "sequence"), [("grid", "signal"), ("repeats", "late"), ("normal", "noise")])
def test_every_step_is_the_definition(name, taxonomy, kind, sequence):
    rng = np.random.default_rng(len(name) + len(kind))
    schedule, split = SCHEDULES[name]
    ours, theirs = TAXONOMIES[taxonomy]
    N, c = 36, 3
    X = objects(kind, rng, N)
    y = labels(sequence, rng, X, c)
    score = naive.least_squares(0.5, 2.0)
    model = InductiveVenn(lssvm(c), ours, schedule=schedule)
    for n in range(N):
        P = model.predict_one(X[n])
        assert np.allclose(P.probabilities, naive.predict(X, y, X[n], split(n), c, score, theirs), atol=1e-12)
        model.learn_one(X[n], int(y[n]))
    assert model.n == N


def test_categories_of_the_whole_bag_are_those_of_the_definition():
    """A taxonomy of the package that looks at all examples, with a class for every category."""
    rng = np.random.default_rng(2)
    X = objects("grid", rng, 50) + 0.3 * rng.normal(size=(50, 2))
    y = labels("signal", rng, X, 2).tolist()
    scorer = frozen()
    model = InductiveVenn(scorer, AdaptiveMarginBins())
    for n in range(50):
        categories = AdaptiveMarginBins().categories(scorer.score_many(X[: n + 1]))
        beside = [y[i] for i in range(n) if categories[i] == categories[n]]
        prediction = model.predict_one(X[n])
        assert np.array_equal(prediction.probabilities, naive.matrix([beside.count(0), beside.count(1)]))
        assert prediction.label == AdaptiveMarginBins().class_of(int(categories[n]), 2)
        model.learn_one(X[n], y[n])


def test_width_and_curves():
    """Width 1 / (m + 1); mean lower bound 1 - UEP / N, mean upper bound 1 - LEP / N; argmax of counts."""
    rng = np.random.default_rng(4)
    X = objects("grid", rng, 80)
    y = labels("signal", rng, X, 3)
    model, sizes = InductiveVenn(lssvm(3), schedule=Prefix(first=10), rule=venn.prediction.RowMean()), []
    twin = copy.deepcopy(model)
    for n in range(80):
        split = naive.prefix(n, 0.7, 10)
        counts = naive.counts(X, y, X[n], split, 3, naive.least_squares(0.5, 2.0))
        sizes.append(sum(counts))
        assert twin.predict_one(X[n]).index == counts.index(max(counts))
        twin.learn_one(X[n], int(y[n]))
    curves = venn.replay(zip(X, y.tolist(), strict=True), model, progress=False)["InductiveVenn"]
    assert np.allclose(curves.per_step.width, 1 / (np.array(sizes) + 1), atol=1e-15, rtol=0)
    N = np.arange(1, 81)
    assert abs(curves.lower - (1 - curves.uep / N)).max() < 1e-12
    assert abs(curves.upper - (1 - curves.lep / N)).max() < 1e-12


# Labels inside the calibration set do not reach the scorer -----------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
def test_labels_of_calibration_examples_do_not_reach_the_scorer(name):
    rng = np.random.default_rng(5)
    schedule, split = SCHEDULES[name]
    N = 45
    X = objects("normal", rng, N)
    y = labels("signal", rng, X, 3)
    calibration = split(N)[1]
    other = y.copy()
    other[calibration] = rng.permutation((y[calibration] + 1) % 3)
    assert not np.array_equal(y, other)
    first, second = (InductiveVenn(lssvm(3), schedule=schedule) for _ in range(2))
    first.learn_many(X, y)
    second.learn_many(X, other)
    for x in X[:10]:
        assert np.array_equal(first.scorer.scores(x), second.scorer.scores(x))
    train = split(N)[0]
    changed = y.copy()
    changed[train[0]] = (y[train[0]] + 1) % 3
    third = InductiveVenn(lssvm(3), schedule=schedule)
    third.learn_many(X, changed)
    assert not np.array_equal(first.scorer.scores(X[0]), third.scorer.scores(X[0]))  # labels of the others do


# The order within the training set and within the calibration set says nothing ---------------------------------------

OWN = [
    venn.Argmax(), venn.taxonomies.TopTwo(), Threshold(0.6), venn.taxonomies.RunnerUp(0.3),
    venn.taxonomies.Gap(0.2), venn.taxonomies.MarginBins(),
    venn.taxonomies.TopScoreBins([-0.5, 0.5]), AdaptiveMarginBins(), venn.taxonomies.ScoreBins(),
]  # fmt: skip


@pytest.mark.parametrize("taxonomy", OWN, ids=repr)
@pytest.mark.parametrize("c", [2, 3])
def test_mirror_images_share_a_category_whatever_the_order(taxonomy, c):
    if c == 3 and isinstance(taxonomy, venn.taxonomies.ScoreBins):
        pytest.skip("for two classes")
    X, y, seen, labels_, asked = mirrored(c)
    rng = np.random.default_rng(6)
    answers = []
    for _ in range(4):
        first, then = rng.permutation(32), rng.permutation(40)
        machine = venn.LeastSquaresSVM(venn.RBF(0.3), 10, range(c))
        model = InductiveVenn(machine, taxonomy, schedule=PrefixRestart(32, last=32))
        model.learn_many(np.concatenate([X[first], seen[then]]), [*y[first], *labels_[then]])
        answers.append(model.predict_many(asked).counts)
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    assert len(np.unique(answers[0], axis=0)) > 1


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("taxonomy", [None, Threshold(0.6), AdaptiveMarginBins()], ids=repr)
def test_shuffling_within_what_trains_and_what_calibrates(name, taxonomy):
    schedule, split = SCHEDULES[name]
    places_do_not_count(lambda: InductiveVenn(lssvm(3), taxonomy, schedule=schedule), split, lambda many: many.counts)


# Margins in order ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [2, 4, 50, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_margins_in_order_give_the_bins_of_the_definition(seed, levels):
    """At every step, by single examples and by many, with ties of all sorts: the bag put into categories anew."""
    rng = np.random.default_rng(seed)
    c = 2 + seed % 3
    S, y = rng.integers(0, levels, size=(70, c)) / levels, rng.integers(0, c, 70)
    asked = rng.integers(0, levels, size=(2, c)) / levels
    reader = counter(AdaptiveMarginBins(), tuple(range(c)), venn.prediction.CategoryClass())
    assert type(reader) is MarginBag
    n = 0
    while n < 70:
        block = reader.predict(asked)
        for row, counts, top in zip(asked, block.counts, block.category_classes, strict=True):
            categories = naive_taxonomies.adaptive(np.array([*S[:n], row]))
            beside = [y[i] for i in range(n) if categories[i] == categories[n]]
            assert counts.tolist() == [beside.count(k) for k in range(c)]
            assert top == categories[n][0]
        more = int(rng.integers(1, 20)) if rng.random() < 0.2 else 1
        if rng.random() < 0.5:
            reader.add(S[n : n + more], y[n : n + more])
        else:
            reader.replay(S[n : n + more], y[n : n + more], np.ones(len(S[n : n + more]), bool))
        n += more


# Blocks --------------------------------------------------------------------------------------------------------------


def makers():
    for name, (schedule, _) in SCHEDULES.items():
        for taxonomy in (None, AboveMedian(), Threshold()):
            yield f"{name}-{taxonomy}", lambda s=schedule, t=taxonomy: InductiveVenn(lssvm(3), t, schedule=s)
    yield "frozen", lambda: InductiveVenn(frozen(3))
    yield "frozen, all examples", lambda: InductiveVenn(frozen(3), AboveMedian())
    yield (
        "frozen, fixed",
        lambda: InductiveVenn(frozen(3), None, schedule=FixedCalibration(7), rule=venn.prediction.Maximin()),
    )
    yield "row mean", lambda: InductiveVenn(frozen(3), Threshold(), rule=venn.prediction.RowMean())


MAKERS = dict(makers())


@pytest.mark.parametrize("name", MAKERS)
def test_blocks_say_what_the_loop_says(name):
    blocks_are_the_loop(MAKERS[name], assert_same)


def assert_same(block, i, prediction):
    assert np.array_equal(block[i].probabilities, prediction.probabilities)
    assert np.array_equal(block.probabilities[i], prediction.probabilities)
    assert (block.labels[i], block.index[i]) == (prediction.label, prediction.index)
    assert (block.lower[i], block.upper[i]) == (prediction.lower, prediction.upper)
    assert block.width[i] == prediction.width
    assert np.allclose(block.proba[i], prediction.proba, atol=1e-15)
    assert block[i].guaranteed == block.guaranteed == prediction.guaranteed


def test_a_block_is_a_frozen_value():
    model = InductiveVenn(frozen())
    block = model.replay_many([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    before = block.probabilities.copy()
    model.learn_many([[0.0, 1.0]] * 5, [1] * 5)
    assert np.array_equal(block.probabilities, before)
    with pytest.raises(ValueError, match="read-only"):
        block.counts[0] = 1
    with pytest.raises(IndexError):
        block[2]
    assert repr(block) == "ManyMultiprobabilities(2 objects, classes [0, 1])"
    assert ManyMultiprobabilities.join([block, block]).labels == block.labels * 2


# What is guaranteed --------------------------------------------------------------------------------------------------


def test_guarantees():
    assert InductiveVenn(frozen()).predict_one([0.0, 0.0]).guaranteed == "predicted label"
    assert InductiveVenn(frozen(), OneCategory()).predict_one([0.0, 0.0]).guaranteed == "realised row"
    assert InductiveVenn(frozen(), rule=venn.prediction.Maximin()).predict_one([0.0, 0.0]).guaranteed == "realised row"
    assert CrossVenn(lssvm(2)).predict_one([0.0, 0.0]).guaranteed == "nothing"
    with pytest.raises(ValueError, match="rule must be"):
        InductiveVenn(frozen(), OneCategory(), rule=venn.prediction.CategoryClass())


def test_what_schedules_promise_online():
    promised = {kind: kind.online for kind in (PrefixRestart, Prefix, FreshSplit, RandomAssignment, FixedCalibration)}
    assert promised == {
        PrefixRestart: "exact", Prefix: "exact within a period", FreshSplit: "not proved", RandomAssignment: "broken",
        FixedCalibration: "broken",
    }  # fmt: skip
    assert InductiveVenn(frozen()).schedule == NoTraining()
    assert NoTraining().online == "exact"


# State: purity, pickles, panels --------------------------------------------------------------------------------------


def test_the_machine_given_is_never_taught():
    machine = lssvm(2)
    model = InductiveVenn(machine, schedule=PrefixRestart(4))
    model.learn_many(np.arange(20.0).reshape(10, 2), [0, 1] * 5)
    assert machine.n == 0
    assert model.scorer.n == 8


def test_beside_others_in_a_panel():
    rng = np.random.default_rng(14)
    X = objects("grid", rng, 40)
    y = labels("signal", rng, X, 2).tolist()
    machine = lssvm(2)
    panel = venn.Panel(
        transductive=venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())),
        inductive=InductiveVenn(machine.fresh(), schedule=PrefixRestart(8)),
        cross=CrossVenn(machine.fresh(), first=8),
        frozen=InductiveVenn(frozen()),
    )
    alone = InductiveVenn(machine.fresh(), schedule=PrefixRestart(8))
    record = venn.replay(zip(X, y, strict=True), panel, progress=False)
    assert np.array_equal(record["inductive"].per_step.lower, alone.replay_many(X, y).lower)
    assert "PrefixRestart(" in record.parameters["inductive"]
    with pytest.raises(ValueError, match="x must be finite"):
        panel.learn_one([0.0, np.nan], 0)
    assert panel["inductive"].n == panel["cross"].n == panel["frozen"].n == machine.n == 40


def test_history_goes_when_no_training_is_to_come():
    model = InductiveVenn(Centroids([0, 1]), schedule=PrefixRestart(10, last=25))
    model.learn_many(np.ones((19, 3)), [0] * 19)
    size = len(pickle.dumps(model))
    model.learn_many(np.ones((1, 3)), [1])
    assert model.schedule.next_training(model.n) is None
    assert len(pickle.dumps(model)) < size
    smaller = len(pickle.dumps(model))
    model.learn_many(np.ones((500, 3)), [0] * 500)
    assert len(pickle.dumps(model)) <= smaller + 64


def test_a_training_that_fails_leaves_predictions_that_say_nothing():
    model = InductiveVenn(Failing([0, 1]), schedule=FreshSplit(0.5, seed=1))
    X = np.arange(30.0)[:, None]
    failures, spoke = 0, 0
    for n in range(30):
        try:
            model.learn_one(X[n], n % 2)
        except venn.machines.NotConverged:
            failures += 1
            assert model.scorer is None
            assert np.array_equal(model.predict_one(X[0]).probabilities, np.eye(2))
        else:
            spoke += n > 13
        assert model.n == n + 1
    assert failures > 3
    assert spoke > 3
