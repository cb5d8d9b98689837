"""Compiled counting against plain numpy, on scores that are mostly tied."""

import numpy as np
import pytest
from naive.venn import on_grid

from venn._compiled.counting import TILE, count_argmax


def plain(negative, positive, labels, weights, test):
    """Return the (c, c) counts by definition: build the score table of each hypothesis, take its argmax."""
    c = negative.shape[0]
    counts = np.zeros((c, c), int)
    for j in range(c):
        table = negative.copy()
        table[j] = positive[j]
        categories = on_grid(table).argmax(axis=0)
        beside = (categories == categories[test]) & (weights > 0)
        np.add.at(counts[j], labels[beside], weights[beside])
        counts[j, j] += 1
    return counts


def tied(rng, c, n, values):
    """Return two (c, n) score tables drawn from few values, some of them off by less than the grid."""
    draw = rng.choice(np.linspace(-1, 1, values), size=(2, c, n))
    return draw + rng.choice([0.0, 1e-9, -1e-9], size=draw.shape)


@pytest.mark.parametrize("c", [2, 3, 4, 7, 8, 9, 16, 17, 20])
@pytest.mark.parametrize("values", [2, 3, 50])
def test_counts_match_the_definition(c, values):
    rng = np.random.default_rng(c * 100 + values)
    for n in (1, 2, 5, TILE - 1, TILE, TILE + 1, 5000):
        negative, positive = tied(rng, c, n, values)
        labels = rng.integers(0, c, n)
        weights = rng.integers(0, 4, n)
        test = int(rng.integers(n))
        counts, _ = count_argmax(negative, positive, n, labels, weights, test)
        assert counts.dtype == np.int64
        assert np.array_equal(counts, plain(negative, positive, labels, weights, test))


@pytest.mark.parametrize("c", [2, 3, 8, 9, 20])
def test_random_tables_of_every_size(c):
    rng = np.random.default_rng(c)
    for n in range(1, 60):
        negative, positive = tied(rng, c, n, int(rng.integers(1, 5)))
        labels, weights = rng.integers(0, c, n), rng.integers(0, 3, n)
        test = int(rng.integers(n))
        assert np.array_equal(
            count_argmax(negative, positive, n, labels, weights, test)[0],
            plain(negative, positive, labels, weights, test),
        )


def test_an_empty_bag_counts_the_new_example_alone():
    """No weight at the test object itself: it is counted once, as class j, under hypothesis j."""
    counts, _ = count_argmax(np.full((3, 1), -1.0), np.full((3, 1), 1.0), 1, np.array([-1]), np.array([0]), 0)
    assert np.array_equal(counts, np.eye(3))
    # n = 0: the test object lies beyond those counted.
    counts, _ = count_argmax(np.zeros((3, 1)), np.zeros((3, 1)), 0, np.zeros(0, int), np.zeros(0, int), 0)
    assert np.array_equal(counts, np.eye(3))


def test_buffers_wider_than_the_bag():
    rng = np.random.default_rng(0)
    negative, positive = tied(rng, 4, 700, 4)
    labels, weights = rng.integers(0, 4, 700), np.ones(700, int)
    counts, _ = count_argmax(negative, positive, 600, labels, weights, 3)
    assert np.array_equal(counts, plain(negative[:, :600], positive[:, :600], labels[:600], weights[:600], 3))


def test_an_object_without_examples_is_not_counted_whatever_its_label():
    rng = np.random.default_rng(1)
    negative, positive = tied(rng, 3, 40, 2)
    labels, weights = rng.integers(0, 3, 40), rng.integers(0, 2, 40)
    expected = plain(negative, positive, labels, weights, 5)
    labels[weights == 0] = -1
    assert np.array_equal(count_argmax(negative, positive, 40, labels, weights, 5)[0], expected)


def test_arguments_are_left_alone():
    rng = np.random.default_rng(2)
    negative, positive = tied(rng, 3, 40, 3)
    labels, weights = rng.integers(0, 3, 40), rng.integers(0, 3, 40)
    before = [a.copy() for a in (negative, positive, labels, weights)]
    count_argmax(negative, positive, 40, labels, weights, 5)
    assert all(np.array_equal(a, b) for a, b in zip((negative, positive, labels, weights), before, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_the_grid_is_set_off_by_a_part_of_a_step(seed):
    """Scores of any size, many of them a fraction of a grid step apart."""
    rng = np.random.default_rng(seed)
    negative, positive = rng.normal(size=(2, 3, 3000)) * 10.0 ** rng.integers(-7, 4, size=3000)
    positive += rng.integers(-2, 3, size=(3, 3000)) * 3e-7
    labels, weights = rng.integers(0, 3, 3000), np.ones(3000, int)
    for test in range(5):
        counts, _ = count_argmax(negative, positive, 3000, labels, weights, test)
        assert np.array_equal(counts, plain(negative, positive, labels, weights, test))
