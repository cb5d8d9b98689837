"""Pairs of classes: chosen and weighted as by definition, fast as it is exact, and inside inductive predictors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from naive import pairs as naive
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import venn
from venn._compiled.pairs import rbf_values
from venn.batch.pairwise import PairwiseSVC, pair_signs, votes_and_margins
from venn.machines.frozen import FrozenScorer
from venn.priors import PriorShift

TOL = 1e-8
LABELS = np.array(["ant", "bee", "cow", "dog"])
TRAIN, OPERATIONAL = (0.25, 0.25, 0.25, 0.25), (0.1, 0.4, 0.3, 0.2)
SHIFT = PriorShift(TRAIN, OPERATIONAL)


def examples(n=80, c=4, seed=0):
    """Overlapping classes on a grid: ties, duplicates, equal objects with different labels."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % c)
    return np.round(rng.normal(size=(n, 2)) + 1.2 * np.column_stack([codes % 2, codes // 2])), codes


# The tolerance is that at which a weight of 2 and two copies come out alike to what the checks want.
@parametrize_with_checks([PairwiseSVC(tol=TOL)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------- equal to definitions


@pytest.mark.parametrize("c", [2, 3, 4])
def test_with_one_parameter_for_all_it_is_the_machine_of_scikit_learn(c):
    X, codes = examples(c=c)
    theirs = SVC(C=2.0, decision_function_shape="ovo", tol=TOL).fit(X, LABELS[codes])
    ours = PairwiseSVC(C=2.0, tol=TOL).fit(X, LABELS[codes])
    decisions = theirs.decision_function(X).reshape(len(X), -1)
    # Of two classes theirs is > 0 for the second; their solver keeps kernel values in single precision.
    np.testing.assert_allclose(ours.pair_decisions(X), decisions * (-1 if c == 2 else 1), atol=1e-6)
    np.testing.assert_allclose(ours.gamma_, 1 / (2 * X.var()), rtol=1e-12)
    if c == 2:
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("shift", [None, SHIFT], ids=["no shift", "shift"])
@pytest.mark.parametrize("seed", [1, 5])
def test_each_pair_takes_the_parameters_of_fewest_weighted_errors(shift, seed):
    (X, y), held = examples(60, seed=seed), examples(40, seed=seed + 10)
    gammas, Cs = (2.0, 0.1, 0.5), (5.0, 0.2)

    def weights(a, b):
        return (1.0, 1.0) if shift is None else naive.class_weights(TRAIN, OPERATIONAL, a, b)

    want = naive.choices(X, y, held, 4, gammas, Cs, weights, TOL)
    model = PairwiseSVC(C=Cs, gamma=gammas, shift=shift, tol=TOL).fit(X, y, validation=held)
    assert model.pairs_.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert model.gamma_.tolist() == [one[0] for one in want]
    assert model.C_.tolist() == [one[1] for one in want]
    np.testing.assert_allclose(model.errors_, [one[2] for one in want], rtol=1e-12)
    assert len(set(model.gamma_)) > 1  # so that the machines are of several groups
    new = np.concatenate([held[0][:10], [[0.5, 0.5], [40.0, -40.0]]])
    decisions = np.array([[f(x) for *_, f in want] for x in new])
    np.testing.assert_allclose(model.pair_decisions(new), decisions, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(new), [naive.votes(row, 4) for row in decisions], atol=1e-5)
    assert model.predict(new).tolist() == [naive.winner(row, 4) for row in decisions]


def test_of_equal_errors_the_smaller_c_then_the_smaller_gamma():
    X, y = np.array([[0.0], [0.1], [9.0], [9.1]]), np.array([0, 0, 1, 1])
    model = PairwiseSVC(C=[10, 1, 100], gamma=np.array([3.0, 0.5, 1.0])).fit(X, y, validation=(X, y))
    assert (model.C_[0], model.gamma_[0], model.errors_[0]) == (1.0, 0.5, 0.0)


def test_no_decision_is_an_error():
    """Both classes at one point: the decision value is zero everywhere."""
    X, y = np.zeros((4, 1)), np.array([0, 0, 1, 1])
    model = PairwiseSVC(gamma=1.0).fit(X, y, validation=(X, y))
    assert model.errors_.tolist() == [1.0]
    assert model.predict(X).tolist() == [0] * 4  # the first class


def test_of_two_classes_the_sign_decides_however_small():
    """No machine votes, and the margin does, as it does of more classes."""
    model = PairwiseSVC(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    near = np.array([[0.5 - 1e-8], [0.5 + 1e-8]])
    assert (abs(model.decision_function(near)) < 1e-7).all()
    assert model.predict(near).tolist() == [0, 1]


def test_copies_sample_weights_and_weights_of_classes_are_the_same():
    X, y = examples(40)
    ratios = np.array([1, 3, 2, 2])
    shift = PriorShift(np.full(4, 0.25), ratios / 8)
    of_pair = {(a, b): shift.pair(a, b) for a in range(4) for b in range(a + 1, 4)}
    shifted = PairwiseSVC(C=1.0, gamma=0.5, shift=shift, tol=1e-9).fit(X, y).pair_decisions(X)
    for i, (a, b) in enumerate(of_pair):
        mean = ratios[[a, b]].mean()  # weights have mean 1 over the pair, copies have not
        assert of_pair[a, b] == pytest.approx(ratios[[a, b]] / mean)
        model = PairwiseSVC(C=1.0 / mean, gamma=0.5, tol=1e-9)
        rows = np.repeat(np.arange(len(y)), ratios[y])
        np.testing.assert_allclose(model.fit(X[rows], y[rows]).pair_decisions(X)[:, i], shifted[:, i], atol=1e-6)
        weighted = model.fit(X, y, sample_weight=ratios[y]).pair_decisions(X)
        np.testing.assert_allclose(weighted[:, i], shifted[:, i], atol=1e-6)


def test_an_example_of_weight_zero_is_none():
    X, y = examples(40)
    weights = np.where(np.arange(40) % 5 == 0, 0.0, 2.0)
    keep = weights > 0
    one, other = PairwiseSVC().fit(X, y, weights), PairwiseSVC().fit(X[keep], y[keep], weights[keep])
    assert (one.pair_decisions(X) == other.pair_decisions(X)).all()
    without = PairwiseSVC().fit(X, y, np.where(y == 3, 0.0, 1.0))
    assert without.classes_.tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------- fast, and exact


@pytest.mark.parametrize("gamma", [1e-9, 0.01, 1.0, 300.0])
def test_kernel_values_are_those_of_exp(gamma):
    rng = np.random.default_rng(0)
    S, X = rng.normal(size=(700, 3)), rng.normal(size=(5, 3)) * 3
    X[0] = S[3]
    columns = np.sort(rng.choice(700, 600, replace=False))
    out = np.full((6, 600), -1.0)
    rbf_values(X @ S.T, (X**2).sum(axis=1), (S**2).sum(axis=1), columns.astype(np.uint64), gamma, out)
    # The tail: where e^-x is not a normal number any more it stays at the smallest that is.
    np.testing.assert_allclose(out[:5], rbf_kernel(X, S[columns], gamma), rtol=1e-13 + 1e-13 * gamma, atol=1e-300)
    assert (out[5] == -1).all()
    assert (out[:5] <= 1).all()


def test_exp_is_good_to_the_last_bits_over_its_whole_range():
    x = np.linspace(0, 700, 100_001)
    out = np.empty((1, len(x)))
    rbf_values(np.zeros((1, len(x))), np.zeros(1), x, np.arange(len(x), dtype=np.uint64), 1.0, out)
    # The distance to a power of two is a difference of numbers up to 1010.
    np.testing.assert_allclose(out[0], np.exp(-x), rtol=3e-13)
    near = x < 30
    np.testing.assert_allclose(out[0][near], np.exp(-x[near]), rtol=1e-14)


def test_blocks_threads_and_single_rows_say_the_same(monkeypatch):
    X, y = examples(90)
    model = PairwiseSVC(C=(1, 5), gamma=(0.3, 1.0)).fit(X, y, validation=examples(40, seed=3))
    new = np.random.default_rng(4).normal(size=(101, 2))
    values, votes = model.pair_decisions(new), model.decision_function(new)
    threads = clone(model).set_params(n_jobs=2).fit(X, y, validation=examples(40, seed=3))
    np.testing.assert_allclose(threads.pair_decisions(X), model.pair_decisions(X), rtol=1e-12, atol=1e-12)
    monkeypatch.setattr("venn.batch.pairwise.NUMBERS", 1)  # sixteen rows at a time
    for one in (model, threads):
        np.testing.assert_allclose(one.pair_decisions(new), values, rtol=1e-12, atol=1e-12)
    alone = np.array([model.decision_function(x[None])[0] for x in new])
    np.testing.assert_allclose(alone, votes, rtol=1e-12, atol=1e-12)
    assert model.pair_decisions(new[:1]).shape == (1, 6)


def test_votes_and_margins_are_those_of_loops():
    rng = np.random.default_rng(5)
    decisions = rng.integers(-2, 3, size=(200, 6)) * 1e-7 * 10.0 ** rng.integers(0, 8, size=(200, 1))
    got = votes_and_margins(pair_signs(4), decisions.T).T
    np.testing.assert_allclose(got, [naive.votes(row, 4) for row in decisions], rtol=1e-12, atol=1e-12)
    whole = rng.integers(-3, 4, size=(500, 6)).astype(float)  # sums of margins without rounding: ties are ties
    got = votes_and_margins(pair_signs(4), whole.T).argmax(axis=0)
    assert got.tolist() == [naive.winner(row, 4) for row in whole]


# ------------------------------------------------------------------------------- inside predictors


def test_it_scores_for_an_inductive_predictor_with_a_shift():
    X, y = examples(80)
    scorer = PairwiseSVC(gamma=0.5, shift=SHIFT).fit(X, LABELS[y])
    (P, p), (Q, _) = examples(100, seed=7), examples(30, seed=8)
    model = venn.InductiveVenn(FrozenScorer(scorer), shift=SHIFT)
    assert model.classes == tuple(LABELS)
    model.learn_many(P, LABELS[p])
    block = model.predict_many(Q)
    categories, asked = (scorer.decision_function(rows).argmax(axis=1) for rows in (P, Q))
    ratios = np.divide(OPERATIONAL, TRAIN)
    for i, category in enumerate(asked):
        beside = p[categories == category]
        for j in range(4):
            masses = [ratios[k] * ((beside == k).sum() + (k == j)) for k in range(4)]
            np.testing.assert_allclose(block.probabilities[i, j], np.divide(masses, sum(masses)), rtol=1e-12)
        assert block.labels[i] == LABELS[category] == scorer.predict(Q[i : i + 1])[0]


# ------------------------------------------------------------------------------- a good citizen


def test_it_is_kept_pickled_and_named():
    X, y = examples(40)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = PairwiseSVC(shift=SHIFT).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (pickle.loads(pickle.dumps(model)).decision_function(frame) == model.decision_function(frame)).all()
    assert model.n_support_.shape == model.errors_.shape == (6,)
    assert np.isnan(model.errors_).all()
    assert "PriorShift" in repr(model)
    with pytest.raises(NotFittedError):
        PairwiseSVC().pair_decisions(X)


BAD = {
    "C": ({"C": 0}, {}, ValueError, r"C must be a finite number > 0, got 0"),
    "one of C": ({"C": (1, -2)}, {}, ValueError, r"C must be a finite number > 0, got -2"),
    "no C": ({"C": ()}, {}, TypeError, r"C must be a finite number > 0, got \(\)"),
    "gamma": ({"gamma": "auto"}, {}, TypeError, r"gamma must be a finite number > 0, got 'auto'"),
    "tol": ({"tol": np.nan}, {}, ValueError, r"tol must be a finite number > 0, got nan"),
    "kind of shift": ({"shift": (0.5, 0.5)}, {}, TypeError, r"shift must be a PriorShift, got \(0\.5, 0\.5\)"),
    "size of shift": (
        {"shift": PriorShift((0.5, 0.5), (0.9, 0.1))}, {}, ValueError, r"shift must be of 4 classes, .*, got PriorShift"
    ),
    "a class that cannot come": (
        {"shift": PriorShift(TRAIN, (0.5, 0.3, 0.2, 0.0))}, {}, ValueError, r"operational priors > 0, got PriorShift"
    ),
    "weights": ({}, {"sample_weight": [1.0]}, ValueError, r"sample_weight must have shape \(80,\), .* got \(1,\)"),
    "a weight": ({}, {"sample_weight": [-1.0] + [1.0] * 79}, ValueError, r"sample_weight must be >= 0, got -1\.0 at 0"),
    "no weight": ({}, {"sample_weight": np.zeros(80)}, ValueError, r"sample_weight must be > 0 .* zero for all 80"),
    "choice": ({"C": (1, 2), "gamma": 1.0}, {}, ValueError, r"validation must be given to choose from C .*got None"),
    "choice by scale": ({"C": (1, 2)}, {}, ValueError, r"validation must be given to choose from C .*got None"),
    "kind": ({}, {"validation": 3}, TypeError, r"validation must be a pair \(X, y\), got int"),
    "rows": (
        {}, {"validation": (np.zeros((3, 2)), [0, 1])}, ValueError, r"validation must .* of 3 rows, .* shape \(2,\)"
    ),
    "columns": ({}, {"validation": (np.zeros((3, 1)), [0, 1, 2])}, ValueError, r"X has 1 features, .* expecting 2"),
    "classes": ({}, {"validation": (np.zeros((2, 2)), [0, 1])}, ValueError, r"validation .* each class of y, got none"),
    "other classes": (
        {}, {"validation": (np.zeros((5, 2)), range(5))}, ValueError, r"validation must .* the classes of y, .*got 4"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "given", "kind", "says"), BAD.values(), ids=list(BAD))
def test_bad_input_is_refused_and_leaves_no_trace(parameters, given, kind, says):
    X, y = examples(80)
    model = PairwiseSVC().fit(X, y)
    before = model.decision_function(X)
    model.set_params(**parameters)
    known = set(vars(model))
    with pytest.raises(kind, match=says):
        model.fit(X, y, **given)
    assert set(vars(model)) == known
    assert (model.decision_function(X) == before).all()
