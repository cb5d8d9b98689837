"""Balancing: the predictor on what is kept of a stream, by coins that are fair."""

import numpy as np
import pytest
import scipy.sparse
from conftest import learned
from inductive_cases import Centroids, frozen
from test_priors import MODELS, SHIFT, examples, numbers, squares

import venn
from venn.predictors.balanced import OFFSET, Balanced
from venn.predictors.inductive_conformal import InductiveConformal
from venn.shifts import PriorShift
from venn.smoothing import Smoothing


@pytest.mark.parametrize("name", MODELS)
def test_balanced_is_the_predictor_on_what_is_kept(name):
    X, y = examples(8, 60)
    keep = (0.25, 1.0, 0.5)
    model = Balanced(MODELS[name](None), keep, seed=5)
    inner = MODELS[name](PriorShift.of_keeping(keep))
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        assert np.array_equal(numbers(model.predict_one(x)), numbers(inner.predict_one(x)))
        kept = model.kept
        model.learn_one(x, label)
        if model.kept > kept:
            inner.learn_one(x, label)
        assert model.n == i + 1
        assert model.kept > kept or label != 1
    assert np.bincount(y)[1] < model.kept < 60


def test_coins_are_fair_and_not_the_numbers_that_break_ties():
    n = 20000
    model = Balanced(venn.InductiveVenn(frozen()), (0.3, 0.9), seed=0)
    codes = np.arange(n) % 2
    kept = np.zeros(n, bool)
    coins = Smoothing(OFFSET + model.seed).block(0, n)
    for i in range(400):
        before = model.kept
        model.learn_one([0.0, 0.0], int(codes[i]))
        kept[i] = model.kept > before
    assert np.array_equal(kept[:400], (coins < np.array([0.3, 0.9])[codes])[:400])
    for seed in (InductiveConformal(frozen()).seed, OFFSET + model.seed + 1):
        assert abs(np.corrcoef(coins, Smoothing(seed).block(0, n))[0, 1]) < 4 / np.sqrt(n)


FEW = {
    "all wait for a training": lambda: venn.InductiveVenn(squares(), None, schedule=venn.schedules.PrefixRestart(8)),
    "fixed scorer": lambda: venn.InductiveVenn(frozen(3)),
    "p-values": lambda: InductiveConformal(squares(), schedule=venn.schedules.Prefix(0.5, first=4), seed=7),
}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("sparse", [False, True])
def test_balanced_takes_many_as_one_after_another(name, sparse):
    if sparse and name == "fixed scorer":
        pytest.skip("of dense objects")
    X, y = examples(12, 70)
    given = scipy.sparse.csr_array(X) if sparse else X
    keep = (0.25, 1.0, 0.5)
    single, learns, replays = (Balanced(FEW[name](), keep, seed=4) for _ in range(3))
    said = []
    for i, label in enumerate(y.tolist()):
        said.append(numbers(single.predict_one(given[[i]] if sparse else X[i])))
        single.learn_one(given[[i]] if sparse else X[i], label)
    blocks = [replays.replay_many(given[a:b], y[a:b]) for a, b in ((0, 0), (0, 25), (25, 26), (26, 70))]
    assert all(np.array_equal(numbers(one), own) for one, own in zip((p for b in blocks for p in b), said, strict=True))
    learns.learn_many(given[:31], y[:31].tolist())
    learns.learn_many(given[31:], y[31:])
    assert (single.n, single.kept) == (learns.n, learns.kept) == (replays.n, replays.kept)
    assert 0 < single.kept < single.n == 70
    for other in (learns, replays):
        block = other.predict_many(given)
        for i in range(70):
            assert np.array_equal(numbers(block[i]), numbers(single.predict_one(given[[i]] if sparse else X[i])))


def test_balanced_takes_many_or_none():
    X, y = examples(13, 20)
    model = Balanced(venn.InductiveVenn(frozen(3)), (1e-9, 1e-9, 1.0), seed=2)
    for take in (model.learn_many, model.replay_many):
        with pytest.raises(ValueError, match="y must be one of the classes"):
            take(X, [*y[:-1].tolist(), 7])
        with pytest.raises(ValueError, match="X must be finite"):
            take(np.where(np.arange(20)[:, None] == 19, np.nan, X), y)
        assert (model.n, model.kept) == (0, 0)
    whole_bag = Balanced(MODELS["transductive"](None), (1, 1, 1))
    for take in (lambda: whole_bag.predict_many(X), lambda: whole_bag.replay_many(X, y)):
        with pytest.raises(TypeError, match="predictor must be inductive"):
            take()


def test_balanced_counts_what_came_before_a_training_failed():
    class Never(Centroids):
        def fresh(self):
            return Never(self.classes)

        def learn_one(self, x, y):
            raise venn.machines.NotConverged("always")

    X, y = examples(14, 60, c=2)
    y = y % 2
    models = [
        Balanced(venn.InductiveVenn(Never(range(2)), None, schedule=venn.schedules.PrefixRestart(5)), (0.3, 0.6))
        for _ in "abc"
    ]
    with pytest.raises(venn.machines.NotConverged):
        learned(models[0], X, y.tolist())
    for take in (models[1].learn_many, models[2].replay_many):
        with pytest.raises(venn.machines.NotConverged):
            take(X, y)
    assert {(model.n, model.kept) for model in models} == {(models[0].n, 5)}


def test_balanced_stands_in_a_panel_and_has_a_machine_of_its_own():
    machine = squares()
    given = venn.TransductiveVenn(machine, venn.Argmax())
    panel = venn.Panel(all=given, balanced=Balanced(given, (0.2, 0.2, 0.2), seed=1))
    X, y = examples(10, 30)
    for x, label in zip(X, y.tolist(), strict=True):
        panel.predict_one(x)
        panel.learn_one(x, label)
    assert machine.n == panel["balanced"].n == 30
    assert 0 < panel["balanced"].kept < 20


def test_balanced_refuses_also_what_it_would_drop():
    model = Balanced(MODELS["transductive"](None), (1e-9, 1e-9, 1.0), seed=2)
    for _ in range(5):
        model.learn_one([0.0, 1.0], 0)
    model.learn_one([0.0, 1.0], 2)
    for x, y, match in (([np.nan, 0], 0, "x must"), ([0.0], 0, "x must"), ([0.0, 0.0], 7, "y must")):
        with pytest.raises(ValueError, match=match):
            model.learn_one(x, y)
    assert (model.n, model.kept) == (6, 1)


def test_what_cannot_be_balanced_is_refused():
    good = MODELS["inductive"]
    for bad in (None, "venn", squares(), venn.ScoreCalibrator(squares(), venn.maps.Platt()), venn.InductiveVenn):
        with pytest.raises(TypeError, match="predictor must be one that weighs by class"):
            Balanced(bad, (1, 1, 1))
    with pytest.raises(ValueError, match="predictor must be without a shift"):
        Balanced(good(SHIFT), (1, 1, 1))
    with pytest.raises(ValueError, match="predictor must have learned nothing, got one of 3 examples"):
        Balanced(learned(good(None), *(a[:3] for a in examples(1))), (1, 1, 1))
    for keep in ((0, 1, 1), (1, 1, 1.1), (1, 1, -1), (1, np.nan, 1), (1,)):
        with pytest.raises(ValueError, match="keep must be probabilities in"):
            Balanced(good(None), keep)
    with pytest.raises(ValueError, match=r"keep must hold a probability for each of \[0, 1, 2\], got"):
        Balanced(good(None), (1, 1))
    for keep in ("abc", (True, 1, 1), 0.5, None):
        with pytest.raises(TypeError, match="keep must be"):
            Balanced(good(None), keep)
