"""Sollich's map: normalised likelihoods by their definition, the softmax at C = 1, at home in a Scaler."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import venn
from venn.maps.classes import OneVsAll
from venn.maps.sigmoids import Softmax
from venn.maps.sollich import FittedSollich, Sollich

SCORES = np.concatenate([np.linspace(-4, 4, 161), [-1.0, 1.0, 0.0]])
EXAMPLES = ([-1.0, 0.5, 2.0], [0, 1, 1])


def by_definition(f, C):
    """Return the likelihood of y = 1 divided by the sum of both."""
    likelihood = [np.exp(-C * np.maximum(0.0, 1 - y * f)) for y in (1, -1)]
    return likelihood[0] / sum(likelihood)


@pytest.mark.parametrize("C", [1 / 64, 0.5, 1.0, 3.0, 32.0])
def test_equals_the_normalised_likelihood(C):
    p = Sollich(C).fit(*EXAMPLES)(SCORES)
    np.testing.assert_allclose(p, by_definition(SCORES, C), rtol=1e-12)
    inside, beyond = np.abs(SCORES) <= 1, np.abs(SCORES) >= 1
    np.testing.assert_allclose(p[inside], 1 / (1 + np.exp(-2 * C * SCORES[inside])), rtol=1e-12)
    far = SCORES[beyond]
    np.testing.assert_allclose(p[beyond], 1 / (1 + np.exp(-C * (far + np.sign(far)))), rtol=1e-12)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_continuous_at_the_margin_monotone_and_symmetric(C):
    fitted = Sollich(C).fit(*EXAMPLES)
    for edge in (-1.0, 1.0):
        near = fitted(np.array([edge - 1e-9, edge, edge + 1e-9]))
        assert np.ptp(near) <= 1e-8 * C
    p = fitted(np.sort(SCORES))
    assert (np.diff(p) >= 0).all()
    np.testing.assert_allclose(p + p[::-1], 1, atol=1e-15)


def test_with_C_one_it_is_the_softmax_inside_the_margin_and_not_beyond():
    ours, softmax = Sollich(1.0).fit(*EXAMPLES), Softmax().fit(*EXAMPLES)
    inside = SCORES[np.abs(SCORES) <= 1]
    np.testing.assert_allclose(ours(inside), softmax(inside), rtol=1e-14)
    assert abs(ours([2.0]) - softmax([2.0]))[0] > 0.01


def test_far_scores_and_large_C_do_not_overflow():
    extreme = np.array([-1.7e308, -1e300, 0.0, 1e300, 1.7e308])
    np.testing.assert_array_equal(Sollich(1e3).fit(*EXAMPLES)(extreme), [0, 0, 0.5, 1, 1])


def test_the_data_say_nothing_but_are_checked():
    first = Sollich(2.0).fit(*EXAMPLES)
    assert first == Sollich(2.0).fit([9.0, 9.0], [0, 0], [1.0, 3.0]) == FittedSollich(2.0)
    assert first != FittedSollich(1.0)
    for arguments, message in (
        (([np.nan], [1]), "scores"),
        (([0.0], [2]), "labels"),
        (([0.0], [1], [-1.0]), "weights must be >= 0"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            Sollich(2.0).fit(*arguments)


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "1", None, True], ids=repr)
def test_a_bad_C_is_named(C):
    with pytest.raises((ValueError, TypeError), match="C must"):
        Sollich(C)


def test_it_is_a_value():
    thing = Sollich(0.5)
    assert repr(thing) == "Sollich(C=0.5)"
    assert eval(repr(thing)) == thing == copy.deepcopy(thing) == pickle.loads(pickle.dumps(thing))
    assert hash(thing) == hash(Sollich(0.5))
    assert thing != Sollich(1.0)


def test_in_a_scaler_it_maps_the_scores_of_the_machine():
    machine = venn.OneVsAllSVM(venn.Linear(), C=0.5, classes=[0, 1])
    model = venn.Scaler(machine, Sollich(0.5), venn.predictors.TrainingScores())
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = int(rng.integers(0, 2))
        model.learn_one(rng.normal(size=2) + y, y)
    x = [0.4, 0.7]
    p = by_definition(machine.scores(x), 0.5)
    np.testing.assert_allclose(model.predict_one(x).proba, p / p.sum(), atol=1e-12)
    assert OneVsAll(Sollich(0.5)).fit(rng.normal(size=(9, 3)), np.arange(9) % 3)(np.zeros((1, 3))) == pytest.approx(
        1 / 3
    )
