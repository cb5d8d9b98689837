"""Venn-Abers that forgets: after any deletion it is, to the last bit, one that never learned the example."""

import numpy as np
import pytest
from naive import abers as naive

from venn.maps import VennAbers


def contents(calibrator):
    state = calibrator.state
    return state["scores"].tolist(), state["blocks"].tolist()


@pytest.mark.parametrize("size", [1, 3, 40])
@pytest.mark.parametrize("distinct", [1, 4, 30, 10_000])
def test_a_window_is_one_that_only_ever_learned_the_window(size, distinct):
    """With few distinct scores every one is many examples, and most deletions leave a lighter point behind."""
    rng = np.random.default_rng([size, distinct])
    n = 400
    scores = rng.integers(0, distinct, n) / 7
    y = (rng.random(n) < scores / (distinct / 7)).astype(int)
    sliding = VennAbers()
    for step in range(n):
        sliding.insert(scores[step], y[step])
        if step >= size:
            sliding.delete(scores[step - size], y[step - size])
        if step % 20:
            continue
        first = max(0, step + 1 - size)
        own, labels = scores[first : step + 1], y[first : step + 1]
        anew = VennAbers()
        anew.insert_many(own, labels)
        assert len(sliding) == len(anew) == len(own)
        assert contents(sliding) == contents(anew)
        for s in (own[0], own[-1], own.min() - 1, own.max() + 1, rng.random() * distinct / 7):
            answer = sliding.query(s)
            assert answer == anew.query(s)
            assert answer == pytest.approx(naive.refitted(own, labels, s), abs=1e-12)


@pytest.mark.parametrize("order", ["first in first out", "last in first out", "at random", "by score"])
def test_inserted_then_deleted_is_nothing(order):
    rng = np.random.default_rng(len(order))
    kept, passing = rng.normal(size=300).round(1), rng.normal(size=700).round(1)
    labels, others = rng.integers(0, 2, 300), rng.integers(0, 2, 700)
    calibrator = VennAbers()
    calibrator.insert_many(kept, labels)
    before = contents(calibrator), calibrator.query_many(passing).tobytes()
    calibrator.insert_many(passing, others)
    places = np.arange(700)
    if order == "last in first out":
        places = places[::-1]
    elif order == "at random":
        rng.shuffle(places)
    elif order == "by score":
        places = passing.argsort(kind="stable")
    for i in places:
        calibrator.delete(passing[i], others[i])
    assert (contents(calibrator), calibrator.query_many(passing).tobytes()) == before


def test_a_label_that_is_not_held_at_a_score_that_is():
    calibrator = VennAbers()
    calibrator.insert_many([0.5, 0.5, 0.5], [1, 1, 0])
    calibrator.delete(0.5, 0)
    for _ in range(2):
        before = contents(calibrator)
        with pytest.raises(ValueError, match=r"score and y must be those of a calibration example, got \(0.5, 0\)"):
            calibrator.delete(0.5, 0)
        assert contents(calibrator) == before
        calibrator.delete(0.5, 1)
    with pytest.raises(ValueError, match=r"score and y must be .*, got \(0.5, 1\)"):
        calibrator.delete(0.5, 1)
    assert len(calibrator) == 0


@pytest.mark.parametrize("size", [3, 96, 97, 200])
def test_at_no_score_can_a_label_be_deleted_that_only_others_hold(size):
    """The first, the second and the last score of a leaf; with 96 scores a leaf is full."""
    labels = np.random.default_rng(size).integers(0, 2, size)
    calibrator = VennAbers()
    calibrator.insert_many(np.arange(size) / 7, labels)
    before = contents(calibrator)
    for score, y in zip((np.arange(size) / 7).tolist(), labels.tolist(), strict=True):
        with pytest.raises(ValueError, match="must be those of a calibration example"):
            calibrator.delete(score, 1 - y)
    assert contents(calibrator) == before


@pytest.mark.parametrize("order", ["at random", "by score"])
def test_room_that_was_given_back_is_used_again(order):
    """Three times from 2 scores to 300 and back: what was freed is taken in the same order, or in another."""
    rng = np.random.default_rng(len(order))
    sliding, held = VennAbers(), []
    for _ in range(3):
        scores, labels = rng.normal(size=300), rng.integers(0, 2, 300)
        for score, y in zip(scores.tolist(), labels.tolist(), strict=True):
            sliding.insert(score, y)
            held.append((score, y))
        held.sort() if order == "by score" else rng.shuffle(held)
        for size in (len(held), 150, 20, 2):
            while len(held) > size:
                score, y = held.pop()
                sliding.delete(float(score), int(y))
            own, left = np.array([score for score, _ in held]), np.array([int(y) for _, y in held])
            anew = VennAbers()
            anew.insert_many(own, left)
            assert contents(sliding) == contents(anew)
            for s in (own.min() - 1, float(np.median(own)), own.max(), rng.normal()):
                assert sliding.query(s) == pytest.approx(naive.refitted(own, left, s), abs=1e-12)
