"""Inductive Venn-Abers: equal to two isotonic refits after every insertion and deletion, ties included."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from conftest import halved
from naive import abers as naive
from sklearn.isotonic import IsotonicRegression

from venn._compiled import hull_tree, hulls
from venn.maps import VennAbers, venn_abers

TOLERANCE = 1e-9


def close(answer, expected):
    assert np.allclose(answer, expected, rtol=0, atol=TOLERANCE), (answer, expected)


def signal(rng, scores):
    """Return labels that follow the scores, with noise."""
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-np.clip(scores, -30, 30)))).astype(int)


# After every step -----------------------------------------------------------------------------------------


def test_every_insertion_of_ten_thousand_with_ties():
    """Thirty distinct scores: exact fractions at every step, later at two of ten, at a tied and at an untied score."""
    rng = np.random.default_rng(0)
    scores = rng.integers(-15, 15, 10_000) / 5
    labels = signal(rng, scores)
    calibrator, counts = VennAbers(), {}
    for n, (score, y) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        if n < 1500 or n % 10 < 2:
            s = float(scores[rng.integers(n + 1)]) + 0.1 * (n % 2)
            assert calibrator.query(s) == naive.pooled(counts, s)
        calibrator.insert(score, y)
        count = counts.setdefault(score, [0, 0])
        count[0] += 1
        count[1] += y
        if n % 500 == 0:
            close(calibrator.query(s), naive.refitted(scores[: n + 1], labels[: n + 1], s))
    assert len(calibrator) == 10_000


def test_every_insertion_of_ten_thousand_without_ties():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=10_000)
    labels = signal(rng, 2 * scores)
    calibrator, bag = VennAbers(), naive.Bag()
    for n, (score, y) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        if n < 2000 or n % 10 < 2:
            s = float(rng.normal()) if n % 2 else float(scores[rng.integers(n + 1)])
            answer = calibrator.query(s)
            assert max(bag.errors(s, answer)) <= TOLERANCE
            if n < 100 or n % 250 == 0:
                close(answer, naive.refitted(bag.scores, bag.labels, s))
        calibrator.insert(score, y)
        bag.insert(score, y)


def compare(calibrator, bag, rng, n):
    """Ask at a tied score, and in turn beside it, at both ends and anywhere."""
    asked = [float(rng.normal())]
    if len(bag.scores):
        tied = float(bag.scores[rng.integers(len(bag.scores))])
        others = float(np.nextafter(tied, np.inf)), float(bag.scores[0]) - 1, float(bag.scores[-1]), asked[0]
        asked = [tied, others[n % 4]]
    for s in asked:
        assert max(bag.errors(s, calibrator.query(s))) <= TOLERANCE


@pytest.mark.parametrize("seed", range(6))
def test_deletions_in_between(seed):
    """The set grows to some hundreds of examples and shrinks to few, twice."""
    rng = np.random.default_rng(seed)
    decimals = 1 if seed % 2 else 9
    calibrator, bag, held = VennAbers(), naive.Bag(), []
    for n in range(2000):
        if held and rng.random() < (0.25 if n % 1000 < 600 else 0.95):
            score, y = held.pop(int(rng.integers(len(held))))
            calibrator.delete(score, y)
            bag.delete(score, y)
        else:
            score = float(np.round(rng.normal(), decimals))
            y = int(rng.random() < (0.5, 1 / (1 + np.exp(-2 * score)), 0.05)[seed % 3])
            calibrator.insert(score, y)
            bag.insert(score, y)
            held.append((score, y))
        assert len(calibrator) == len(held)
        compare(calibrator, bag, rng, n)
    for score, y in held:
        calibrator.delete(score, y)
    assert calibrator.query(0.0) == (0.0, 1.0)


@pytest.mark.parametrize("window", [1, 70, 500])
def test_a_sliding_window(window):
    rng = np.random.default_rng(window)
    scores = np.sin(np.arange(1500) / 200) + rng.normal(size=1500) / 3
    labels = signal(rng, 3 * scores)
    calibrator, bag = VennAbers(), naive.Bag()
    for n, (score, y) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        calibrator.insert(score, y)
        bag.insert(score, y)
        if n >= window:
            calibrator.delete(scores[n - window], labels[n - window])
            bag.delete(scores[n - window], labels[n - window])
        compare(calibrator, bag, rng, n)


ORDERS = {
    "increasing": lambda rng, n: np.arange(n) / 7,
    "decreasing": lambda rng, n: -np.arange(n) / 7,
    "all equal": lambda rng, n: np.full(n, 0.3),
    "inwards": lambda rng, n: np.where(np.arange(n) % 2, 1.0, -1.0) * (n - np.arange(n)),
    "outwards": lambda rng, n: np.where(np.arange(n) % 2, 1.0, -1.0) * np.arange(n),
    "between": lambda rng, n: 1 / (1.0 + np.arange(n)),
    "any size": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-320, 308, n),
    "neighbours": lambda rng, n: 1 + rng.integers(0, n, n) * np.finfo(float).eps,
    "two heaps": lambda rng, n: rng.integers(0, 2, n) * 1e300 + rng.integers(0, 4, n),
}
LABELS = {
    "noise": lambda rng, scores: rng.integers(0, 2, len(scores)), "signal": signal,
    "rare": lambda rng, scores: (rng.random(len(scores)) < 0.01).astype(int),
    "turns": lambda rng, scores: np.arange(len(scores)) % 2, "ones": lambda rng, scores: np.ones(len(scores), int),
    "separated": lambda rng, scores: (scores > np.median(scores)).astype(int),
    "upside down": lambda rng, scores: (scores < np.median(scores)).astype(int),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "order"), halved(LABELS, ORDERS))
def test_adversarial_orders(order, labels):
    rng = np.random.default_rng(3)
    scores = ORDERS[order](rng, 400)
    y = LABELS[labels](rng, scores)
    calibrator, bag = VennAbers(), naive.Bag()
    for n in range(400):
        calibrator.insert(scores[n], y[n])
        bag.insert(scores[n], y[n])
        if n % 7 == 0:
            for s in (scores[rng.integers(n + 1)], scores[n], -scores[n] / 3):
                assert max(bag.errors(s, calibrator.query(s))) <= TOLERANCE
    for s in rng.choice(scores, 5):
        close(calibrator.query(s), naive.refitted(scores, y, s))
    for n in rng.permutation(400)[:370]:
        calibrator.delete(scores[n], y[n])
        bag.delete(scores[n], y[n])
        if n % 11 == 0:
            s = scores[rng.integers(400)]
            assert max(bag.errors(s, calibrator.query(s))) <= TOLERANCE


@pytest.mark.parametrize("seed", range(3))
def test_growth_in_one_place(seed):
    """New scores fall beside the newest ones, so the tree is rebalanced deep down, on either side."""
    rng = np.random.default_rng(seed)
    calibrator, bag = VennAbers(), naive.Bag()
    low, high = 0.0, 1.0
    for n in range(4000):
        score = (low + high) / 2 if n < 40 else float(rng.uniform(low, high))
        if n % (40, 7, 400)[seed] == 0:
            low, high = ((low, score), (score, high))[(n // 40) % 2] if high - low > 1e-9 else (rng.random(), 1.0)
        y = int(rng.random() < score)
        calibrator.insert(score, y)
        bag.insert(score, y)
        if n % 10 == 0:
            compare(calibrator, bag, rng, n // 10)


# Definitions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_oracles_agree_and_the_formula_is_minimax(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        n = int(rng.integers(1, 25))
        scores, labels = rng.integers(0, 12, n) / 4, rng.integers(0, 2, n)
        bag, counts = naive.Bag(), {}
        for score, y in zip(scores.tolist(), labels.tolist(), strict=True):
            bag.insert(score, y)
            count = counts.setdefault(score, [0, 0])
            count[0] += 1
            count[1] += y
        s = float(rng.integers(-1, 26) / 8)
        expected = naive.minimax(scores, labels, s)
        close(naive.refitted(scores, labels, s), expected)
        close(naive.pooled(counts, s), expected)
        assert max(bag.errors(s, expected)) <= TOLERANCE
        assert max(bag.errors(s, np.array(expected) + 1e-6)) > 1e-7  # a wrong claim is seen
        calibrator = VennAbers()
        calibrator.insert_many(scores, labels)
        close(calibrator.query(s), expected)
        close(venn_abers(scores, labels, [s])[0], expected)


def test_pooling_adjacent_violators_weighs_blocks():
    """Labels 1, 1, 0 give 2/3 three times; replacing pairs by plain averages would leave 1, 1/2, 1/2."""
    assert venn_abers([1, 2], [1, 1], [3])[0, 0] == 2 / 3
    assert venn_abers([2, 3], [1, 0], [1])[0, 1] == 2 / 3
    assert naive.pava([1, 1, 1], [1, 1, 0]) == [Fraction(2, 3)] * 3
    close(IsotonicRegression().fit_transform([1, 2, 3], [1, 1, 0]), 2 / 3)


def test_tied_scores_are_one_point():
    """A hundred equal objects, 25 positive: the answers are 25/101 and 26/101 in any order of the labels."""
    for labels in ([1] * 25 + [0] * 75, [0] * 75 + [1] * 25):
        calibrator = VennAbers()
        for y in labels:
            calibrator.insert(0.5, y)
        assert calibrator.query(0.5) == (25 / 101, 26 / 101)


def test_the_empty_set_says_nothing():
    assert VennAbers().query(3.0) == (0.0, 1.0)
    assert len(VennAbers()) == 0
    assert np.array_equal(VennAbers().query_many([1.0, 2.0]), [[0, 1], [0, 1]])
    assert np.array_equal(venn_abers([], [], [1.0, 2.0]), [[0, 1], [0, 1]])
    assert VennAbers().query_many([]).shape == venn_abers([1.0], [0], []).shape == (0, 2)


@pytest.mark.parametrize("seed", range(10))
def test_the_gap_is_at_least_one_in_k_plus_one(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 300))
    scores = rng.integers(0, 1 + 10 * (seed % 5), k) / 3
    labels = signal(rng, scores - scores.mean())
    p = venn_abers(scores, labels, np.append(scores, rng.normal(size=20)))
    assert (p[:, 1] - p[:, 0] >= 1 / (k + 1) - 1e-15).all()
    if seed % 5 == 0:  # all tied: equality
        close(p[0, 1] - p[0, 0], 1 / (k + 1))


def test_fits_grow_with_the_score():
    rng = np.random.default_rng(8)
    scores = rng.normal(size=3000)
    calibrator = VennAbers()
    calibrator.insert_many(scores, signal(rng, scores))
    p = calibrator.query_many(np.sort(rng.normal(size=1000)))
    assert (np.diff(p, axis=0) >= 0).all()


def test_counts_are_exact_when_they_are_large():
    """Millions of examples at few scores, rates that nearly agree: fractions, to the last bit."""
    rng = np.random.default_rng(9)
    for _ in range(2):
        m = 250
        totals = rng.integers(1, 40_000, m)
        ones = np.clip(totals // 3 + rng.integers(-1, 2, m), 0, totals)
        scores = np.repeat(np.arange(float(m)), totals)
        labels = np.concatenate([np.repeat([1, 0], [a, t - a]) for t, a in zip(totals, ones, strict=True)])
        calibrator = VennAbers()
        calibrator.insert_many(scores, labels)
        counts = {float(i): [int(t), int(a)] for i, (t, a) in enumerate(zip(totals, ones, strict=True))}
        for i in rng.integers(0, m, 15).tolist():
            score, y = float(i) + 0.5 * (i % 2), i % 3 == 0
            assert calibrator.query(score) == naive.pooled(counts, score)
            calibrator.insert(score, y)
            count = counts.setdefault(score, [0, 0])
            count[0] += 1
            count[1] += y


def test_validity_and_what_lacks_it():
    """y - p_y has mean 0 wherever p_y falls; isotonic regression without the new example is too sure."""
    rng = np.random.default_rng(10)
    valid, broken = [], []
    for _ in range(3000):
        scores = rng.integers(0, 8, 21) / 8
        labels = (rng.random(21) < 0.2 + 0.6 * scores).astype(int)
        p = venn_abers(scores[:-1], labels[:-1], scores[-1:])[0, labels[-1]]
        if p > 0.8:
            valid.append(labels[-1] - p)
        distinct, where = np.unique(scores[:-1], return_inverse=True)
        fits = naive.pava(np.bincount(where), np.bincount(where, weights=labels[:-1]))
        fit = float(fits[np.abs(distinct - scores[-1]).argmin()])
        if fit > 0.8:
            broken.append(labels[-1] - fit)
    assert abs(np.mean(valid)) < 4 * np.std(valid) / np.sqrt(len(valid))
    assert np.mean(broken) < -4 * np.std(broken) / np.sqrt(len(broken))


# The multiset alone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [1, 2, 9])
def test_order_and_way_of_arrival_do_not_show(decimals):
    rng = np.random.default_rng(decimals)
    scores = np.round(rng.normal(size=1500), decimals)
    labels = signal(rng, scores)
    asked = np.append(rng.choice(scores, 200), rng.normal(size=200))
    expected = venn_abers(scores, labels, asked)
    for way in range(5):
        order = rng.permutation(1500)
        calibrator = VennAbers()
        if way < 2:
            for i in order:
                calibrator.insert(scores[i], labels[i])
        elif way == 2:
            for part in np.array_split(order, 60):
                calibrator.insert_many(scores[part], labels[part])
        elif way == 3:
            calibrator.insert_many(np.append(scores, asked), np.append(labels, np.ones(400, int)))
            for s in asked:
                calibrator.delete(s, 1)
        else:
            calibrator.insert_many(scores[order[:1490]], labels[order[:1490]])
            calibrator = pickle.loads(pickle.dumps(calibrator))
            twin = copy.deepcopy(calibrator)
            calibrator.insert_many(scores[order[1490:]], labels[order[1490:]])
            assert len(twin) == 1490
        assert np.array_equal(calibrator.query_many(asked), expected)
        assert all(calibrator.query(s) == tuple(p) for s, p in zip(asked[:50], expected, strict=False))


def test_minus_zero_is_zero():
    calibrator = VennAbers()
    for score, y in [(0.0, 1), (-0.0, 0), (-0.0, 1)]:
        calibrator.insert(score, y)
    assert calibrator.query(-0.0) == calibrator.query(0.0) == (2 / 4, 3 / 4)
    assert np.array_equal(venn_abers([0.0, -0.0, 0.0], [1, 0, 1], [-0.0]), [[2 / 4, 3 / 4]])
    calibrator.delete(-0.0, 1)
    calibrator.delete(0.0, 1)
    assert len(calibrator) == 1


def test_memory_follows_the_number_of_scores():
    """Leaves stay full enough and the tree balanced, whatever comes and goes."""
    rng = np.random.default_rng(11)
    calibrator = VennAbers()
    scores = np.append(np.arange(20_000.0), rng.normal(size=20_000) * 10_000)
    calibrator.insert_many(scores[:100], np.zeros(100, int))
    for part in np.array_split(scores[100:], 2000):
        calibrator.insert_many(part, np.zeros(len(part), int))

    def leaves(link):
        nodes = calibrator.nodes
        if link < 0:
            return 1
        left, right = (leaves(nodes[link, side]) for side in (hulls.LEFT, hulls.RIGHT))
        assert left <= 3 * right
        assert right <= 3 * left
        return left + right

    def used():
        return leaves(calibrator.nodes[0, hull_tree.ROOT])

    assert used() <= 3 * len(scores) / hulls.WIDTH
    for score in scores[:39_000]:
        calibrator.delete(score, 0)
    assert used() <= 8 * 1000 / hulls.WIDTH
    room = len(calibrator.nodes)
    for score in scores[:30_000]:
        calibrator.insert(score, 1)
    assert len(calibrator.nodes) == room  # rows given back are used again


# Bad input ------------------------------------------------------------------------------------------------

BAD_SCORES = [np.nan, np.inf, -np.inf, 10**400, "0.5", None, True, np.True_, 1j, [0.5], np.array([0.5]), np.array(0.5)]
BAD_LABELS = [2, -1, 0.5, "1", None, np.nan, [1], np.array([1, 0]), 1j]


@pytest.mark.parametrize("bad", BAD_SCORES, ids=str)
def test_refused_scores(bad):
    calibrator = VennAbers()
    calibrator.insert(0.0, 0)
    before = calibrator.query(0.0)
    for ask in (lambda: calibrator.insert(bad, 1), lambda: calibrator.delete(bad, 0), lambda: calibrator.query(bad)):
        with pytest.raises((TypeError, ValueError), match="score must be a finite number, got"):
            ask()
    assert calibrator.query(0.0) == before


@pytest.mark.parametrize("bad", BAD_LABELS, ids=str)
def test_refused_labels(bad):
    calibrator = VennAbers()
    calibrator.insert(0.0, 0)
    for ask in (calibrator.insert, calibrator.delete):
        with pytest.raises(ValueError, match="y must be 0, 1, False or True, got"):
            ask(0.0, bad)
    with pytest.raises(ValueError, match="labels must"):
        calibrator.insert_many([0.0, 0.0], [0, bad] if np.ndim(bad) == 0 else bad[:1])
    assert len(calibrator) == 1


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, np.nan], [0, 1], "scores must be finite, got nan at 1"),
        ([1.0, -np.inf], [0, 1], "scores must be finite, got -inf at 1"),
        ([1.0, "a"], [0, 1], "scores must be a sequence of numbers"),
        ([True, False], [0, 1], "scores must be a sequence of numbers"),
        ([[1.0, 2.0]], [0, 1], "scores must have 1 dimension"),
        (1.0, [0], "scores must have 1 dimension"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), [0, 1], "scores must have no masked values"),
        ([1.0, 2.0], [0], "labels must have shape"),
        ([1.0, 2.0], [0, 2], "labels must be 0, 1, False or True, got .*2.* at 1"),
        ([1.0, 2.0], ["0", "1"], "labels must be 0, 1, False or True"),
    ],
)
def test_refused_batches_leave_no_trace(scores, labels, message):
    calibrator = VennAbers()
    calibrator.insert(0.0, 0)
    with pytest.raises((TypeError, ValueError), match=message):
        calibrator.insert_many(scores, labels)
    with pytest.raises((TypeError, ValueError), match="calibration_" + message):
        venn_abers(scores, labels, [0.0])
    if message.startswith("scores"):
        with pytest.raises((TypeError, ValueError), match=message):
            calibrator.query_many(scores)
        with pytest.raises((TypeError, ValueError), match=message):
            venn_abers([1.0], [1], scores)
    assert len(calibrator) == 1


def test_what_is_not_there_cannot_be_deleted():
    calibrator = VennAbers()
    with pytest.raises(ValueError, match=r"score and y must be those of a calibration example, got \(0.5, 1\)"):
        calibrator.delete(0.5, 1)
    calibrator.insert_many([0.5, 0.5, 0.7], [1, 0, 1])
    calibrator.delete(0.5, 1)
    for score, y in [(0.5, 1), (0.7, 0), (0.6, 1), (0.9, 1)]:
        with pytest.raises(ValueError, match="score and y must be those of"):
            calibrator.delete(score, y)
    assert len(calibrator) == 2


def test_no_more_examples_than_can_be_counted():
    calibrator = VennAbers()
    calibrator.nodes[0, hull_tree.TOTAL] = hulls.LIMIT * hulls.ONE
    with pytest.raises(OverflowError, match="at most 2147483647 examples, got 2147483648"):
        calibrator.insert(0.0, 1)
    with pytest.raises(OverflowError, match="at most"):
        calibrator.insert_many([0.0], [1])


def test_one_number_may_come_in_many_forms():
    calibrators = [VennAbers() for _ in range(4)]
    for score, y in [(1, 0), (2, 1), (2, 0), (3, 1)]:
        forms = [(score, y), (float(score), bool(y)), (np.float32(score), np.int8(y)), (np.int64(score), np.bool_(y))]
        for calibrator, (s, label) in zip(calibrators, forms, strict=True):
            calibrator.insert(s, label)
    assert len({calibrator.query(2) for calibrator in calibrators}) == 1


# Merges ---------------------------------------------------------------------------------------------------


def test_a_state_holds_as_many_examples_as_can_be_counted_and_no_more():
    """Two blocks of equal counts: with the largest number of examples, and with one more."""
    half = hulls.LIMIT // 2
    calibrator = VennAbers()
    for more, fits in ((1, True), (2, False)):
        counts = np.array([half, half + more], np.int64)
        state = calibrator.state | {"scores": np.array([0.0, 1.0]), "blocks": counts << 32 | counts // 2}
        if fits:
            calibrator.restore(state)
        else:
            with pytest.raises(ValueError, match=f"at most {hulls.LIMIT} examples"):
                calibrator.restore(state)
