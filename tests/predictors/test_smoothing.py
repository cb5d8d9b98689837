"""The random numbers that break ties: addressed by step, the same however they are read, and nobody else's."""

import numpy as np
import pytest
from scipy import stats

from venn.smoothing import BLOCK, Smoothing

LEVEL = 1e-3  # of each test of a true hypothesis; a false one must be refused at 1e-6
REFUSED = 1e-6


@pytest.mark.parametrize("seed", [0, 5, 2**63, 10**30])
def test_a_number_is_its_place_in_any_block(seed):
    """Whatever was read before, in whatever order, across the blocks that are drawn at a time."""
    whole = Smoothing(seed).block(0, 3 * BLOCK + 7)
    assert ((whole >= 0) & (whole < 1)).all()
    smoothing = Smoothing(seed)
    for n in (0, BLOCK - 1, BLOCK, 3 * BLOCK + 6, 1, 0, 2 * BLOCK, BLOCK - 1, 17):
        assert smoothing.at(n) == Smoothing(seed).at(n) == whole[n]
    for start, count in ((0, 1), (3, 0), (BLOCK - 2, 5), (BLOCK, BLOCK), (1, 3 * BLOCK)):
        assert np.array_equal(smoothing.block(start, count), whole[start : start + count])
    far = 10**12 + 3
    assert smoothing.at(far) == smoothing.block(far - 2, 5)[2]


SEQUENCES = {  # of digests, one for each step
    "of one object": lambda n: np.full(n, 12345, np.uint64),
    "of no numbers": lambda n: np.zeros(n, np.uint64),
    "counted": lambda n: np.arange(n, dtype=np.uint64),
    "of other objects": lambda n: np.random.default_rng(1).integers(0, 2**64, n, np.uint64),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_numbers_of_the_objects_of_steps_pass_for_uniform_and_independent(name):
    """As many as there are tests share the level."""
    digests = SEQUENCES[name](50_000)
    smoothing = Smoothing(7)
    numbers = smoothing.of_each(100, digests)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert stats.kstest(numbers, "uniform").pvalue > LEVEL / 20
    for lag in (1, 2, BLOCK):
        assert dependence(numbers[:-lag], numbers[lag:]) > LEVEL / 20
    assert dependence(numbers, smoothing.block(100, 50_000)) > LEVEL / 20  # those of a step without an object
    for i in (0, 1, BLOCK, 3 * BLOCK + 1):
        assert smoothing.at(100 + i, int(digests[i])) == smoothing.of(100 + i, digests[i : i + 1])[0] == numbers[i]


@pytest.mark.parametrize("name", list(SEQUENCES)[2:])
@pytest.mark.parametrize("n", [0, 1, 10**12])
def test_numbers_of_the_objects_of_one_step_pass_for_uniform_and_independent(n, name):
    digests = SEQUENCES[name](50_000)
    numbers, later = (Smoothing(2).of(step, digests) for step in (n, n + 1))
    assert stats.kstest(numbers, "uniform").pvalue > LEVEL / 24
    assert dependence(numbers[:-1], numbers[1:]) > LEVEL / 24
    assert dependence(numbers, later) > LEVEL / 24
    assert dependence(numbers, Smoothing(3).of(n, digests)) > LEVEL / 24
    assert len(np.unique(numbers)) == 50_000


def test_numbers_of_objects_are_the_same_everywhere_and_for_ever():
    """A journal is believed only if its predictions come again."""
    numbers = Smoothing(0).of(0, np.array([0, 1, 2**64 - 1], np.uint64))
    assert numbers.tolist() == [0.012040708350056217, 0.2552562783885455, 0.08633318300199377]
    assert Smoothing(0).block(0, 1).tolist() == [16598428098453321379 // 2**11 / 2**53]


def dependence(first, second):
    """Return the p-value of independence and uniformity of pairs, on a grid of 8 x 8."""
    cells = np.histogram2d(first, second, bins=8, range=[[0, 1], [0, 1]])[0]
    return stats.chisquare(cells.ravel()).pvalue


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_numbers_pass_for_uniform_and_independent(seed):
    numbers = Smoothing(seed).block(0, 100_000)
    assert stats.kstest(numbers, "uniform").pvalue > LEVEL
    for lag in (1, 2, BLOCK):
        assert dependence(numbers[:-lag], numbers[lag:]) > LEVEL


@pytest.mark.parametrize("n", [0, 1000])
def test_numbers_of_neighbouring_seeds_are_independent(n):
    """Studies take seeds 0, 1, 2, ...: the numbers of one step over the seeds."""
    numbers = np.array([Smoothing(seed).block(n, 1)[0] for seed in range(4001)])
    assert stats.kstest(numbers, "uniform").pvalue > LEVEL
    assert dependence(numbers[:-1], numbers[1:]) > LEVEL
    assert len(np.unique(numbers)) == 4001


OTHERS = {  # what a user may draw labels, objects or shuffles by, with the same seed
    "default_rng": np.random.default_rng,
    "a list": lambda seed: np.random.default_rng([seed]),
    "two numbers": lambda seed: np.random.default_rng([seed, 0]),
    "spawned": lambda seed: np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0]),
    "RandomState": lambda seed: np.random.RandomState(seed % 2**32),
}


class Unsalted(Smoothing):
    """What it would be without the salt."""

    def block(self, start, count):
        return np.random.Generator(np.random.PCG64(self.seed).advance(start)).random(count)


def shared(smoothing, other):
    """Return how many of the first 2000 numbers are numbers of the other, and how dependent both are in step."""
    ours, theirs = smoothing.block(0, 2000), other.random(2000)
    return len(np.intersect1d(ours, theirs)), dependence(ours, theirs)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("seed", [0, 1, 42, 2**32, 2**40 + 1])
def test_numbers_are_independent_of_those_of_numpy_with_the_same_seed(name, seed):
    common, p = shared(Smoothing(seed), OTHERS[name](seed))
    assert common == 0
    assert p > LEVEL / 25


def test_without_the_salt_they_are_not():
    common, p = shared(Unsalted(0), np.random.default_rng(0))
    assert common == 2000
    assert p < REFUSED


def test_there_are_no_numbers_before_the_first():
    smoothing = Smoothing(0)
    for ask in (lambda: smoothing.at(-1), lambda: smoothing.at(-BLOCK - 3), lambda: smoothing.block(-1, 2),
                lambda: smoothing.block(0, -1)):  # fmt: skip
        with pytest.raises(ValueError, match="start and count must be integers >= 0"):
            ask()
    assert smoothing.at(0) == Smoothing(0).at(0)
