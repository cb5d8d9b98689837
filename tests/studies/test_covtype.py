"""Forest Cover Type: what is published adds up, and the example does what it says on a few thousand rows."""

import gzip
import os
import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from naive import pairs as naive
from scipy.stats import mannwhitneyu

import streams
import venn
from venn.predictors.balanced import OFFSET, Balanced
from venn.shifts import PriorShift
from venn.smoothing import Smoothing

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import covtype  # noqa: E402
from covtype_study import protocol, published, stream  # noqa: E402
from covtype_study.pairs import Pairs, votes_and_margins, weights_of  # noqa: E402
from studies.store import Store  # noqa: E402

NOT_TESTED = 7 * (published.TRAIN + published.VALIDATION)


def test_weights_of_pairs_are_those_of_balanced_training():
    shift = PriorShift(protocol.BALANCED, published.PRIORS)
    for (a, b), want in {(0, 1): (0.856, 1.144), (1, 3): (1.981, 0.0192)}.items():
        of_a, of_b = weights_of(shift, a, b)
        assert (of_a, of_b) == pytest.approx(want, rel=2e-3)
        assert of_a == pytest.approx(2 * published.PRIORS[a] / (published.PRIORS[a] + published.PRIORS[b]))


def overlapping(n, seed, c=4):
    """Overlapping classes on a grid: ties, duplicates, equal objects with different labels."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % c)
    return np.round(rng.normal(size=(n, 2)) + 1.2 * np.column_stack([codes % 2, codes // 2])), codes


@pytest.mark.parametrize("operational", [None, (0.1, 0.4, 0.3, 0.2)], ids=["no shift", "shift"])
def test_each_pair_takes_the_parameters_of_fewest_weighted_errors(operational):
    (X, y), held = overlapping(60, 1), overlapping(40, 11)
    train, gammas, Cs = (0.25,) * 4, (2.0, 0.1, 0.5), (5.0, 0.2)

    def weights(a, b):
        return (1.0, 1.0) if operational is None else naive.class_weights(train, operational, a, b)

    want = naive.choices(X, y, held, 4, gammas, Cs, weights, 1e-8)
    shift = operational and PriorShift(train, operational)
    model = Pairs(X, y, held, Cs, gammas, shift, jobs=2, tol=1e-8)
    assert model.gamma.tolist() == [one[0] for one in want]
    assert model.C.tolist() == [one[1] for one in want]
    np.testing.assert_allclose(model.errors, [one[2] for one in want], rtol=1e-12)
    assert len(set(model.gamma)) > 1  # so that the machines are of several groups
    new = np.concatenate([held[0][:10], [[0.5, 0.5], [40.0, -40.0]]])
    decisions = np.array([[f(x) for *_, f in want] for x in new])
    np.testing.assert_allclose(model.decisions(new), decisions, atol=1e-6)
    assert model.scores(new).argmax(axis=1).tolist() == [naive.winner(row, 4) for row in decisions]


def test_votes_and_margins_are_those_of_loops():
    rng = np.random.default_rng(5)
    decisions = rng.integers(-2, 3, size=(200, 6)) * 1e-7 * 10.0 ** rng.integers(0, 8, size=(200, 1))
    got = votes_and_margins(list(combinations(range(4), 2)), decisions)
    np.testing.assert_allclose(got, [naive.votes(row, 4) for row in decisions], rtol=1e-12, atol=1e-12)


def labels(n=20_000):
    return np.random.default_rng(0).choice(7, n, p=published.PRIORS)


def test_parts_are_disjoint_balanced_and_complete():
    y = np.concatenate([np.tile(np.arange(7), published.TRAIN + published.VALIDATION), labels()])
    small = protocol.Size(100, 40, 5000, drawn_train=30, drawn_validation=9, stream=9000)
    for size, test in ((protocol.WHOLE, 20_000), (small, 5000)):
        parts = protocol.published_parts(y, size, 0)
        assert (
            len(np.unique(np.concatenate([parts.train, parts.validation, parts.rest])))
            == 7 * (size.train + size.validation) + test
        )
        assert parts.train.max() < 7 * published.TRAIN <= parts.validation.min()
        assert parts.validation.max() < NOT_TESTED <= parts.rest.min()
        assert (np.bincount(y[parts.train]) == size.train).all()
        assert (np.bincount(y[parts.validation]) == size.validation).all()
    drawn = protocol.drawn_parts(y, small, 0)
    assert len(np.unique(np.concatenate([drawn.train, drawn.validation, drawn.rest]))) == 7 * 39 + 9000
    assert (np.bincount(y[drawn.train]) == 30).all()
    assert (np.bincount(y[drawn.validation]) == 9).all()
    assert (drawn.rest < NOT_TESTED).any()


def test_the_rows_that_are_not_drawn_come_in_random_order():
    """No class comes later than the others: of the order by which rows were drawn the rare ones would."""
    y = labels()
    size = protocol.Size(drawn_train=50, drawn_validation=20)
    rest = protocol.drawn_parts(y, size, 0).rest
    order = np.random.default_rng(0).permutation(len(y))
    broken = order[~np.isin(order, np.concatenate([order[y[order] == k][:70] for k in range(7)]))]
    assert sorted(rest) != list(rest)

    def smallest(rows):
        places = np.arange(len(rows))
        return min(mannwhitneyu(places[y[rows] == k], places[y[rows] != k]).pvalue for k in range(7))

    assert smallest(rest) > 0.001 / 7 > smallest(broken)


def scores(y, seed):
    """Scores of a scorer that is often right."""
    return np.eye(7)[y] + np.random.default_rng(seed).normal(size=(len(y), 7)) * 0.6


def test_the_blocks_of_the_stream_are_those_of_the_balanced_predictor():
    """Kept by the same coins and asked at the same times, `Balanced` says the same."""
    y = labels(900)
    rows = scores(y, 1)
    balanced = Balanced(stream.predictor(), stream.KEEP, seed=3)
    kept = Smoothing(OFFSET + balanced.seed).block(0, len(y)) < stream.KEEP[y]
    for part, (said, _) in stream.replay(rows, y, kept, range(0, 900, 100)):
        want = balanced.learner.predict_many(rows[part])
        np.testing.assert_array_equal(said.probabilities, want.probabilities)
        for x, label in zip(rows[part], y[part], strict=True):
            balanced.learn_one(x, int(label))
    assert balanced.kept == kept.sum() > 5


@pytest.mark.parametrize("seed", [1, 2])
def test_departures_are_zero_in_the_mean_with_weights_and_not_without(seed):
    """Exact at any number of segments: a false alarm among the eight has probability 0.01 at most."""
    y = np.random.default_rng(seed).choice(7, 120_000, p=published.PRIORS)
    means = stream.experiments(scores(y, seed + 10), y, seed + 20, 1000)
    assert means.shape == (2, 120, 8)
    with_weights, without = (stream.bounds(one) for one in means)
    assert ((with_weights[:, 1] <= 0) & (with_weights[:, 2] >= 0)).all()
    assert ((without[:, 1] > 0) | (without[:, 2] < 0)).any()


def test_departures_are_those_of_the_row_of_the_true_label():
    model = stream.predictor(PriorShift.of_keeping(stream.KEEP))
    y = labels(300)
    model.learn_many(scores(y, 4), y)
    new = labels(40)[20:]
    block = model.predict_many(scores(new, 5))
    found = stream.departures(block, new)
    for i, label in enumerate(new):
        one = block[i]
        want = [float(k == label) - one.probabilities[label, k] for k in range(7)]
        np.testing.assert_allclose(found[i], [*want, want[one.index]], atol=1e-12)


@pytest.mark.parametrize("bag", [[0, 1], [0, 0, 1, 1], [3, 3, 5, 5, 6]])
def test_departures_sum_to_zero_over_the_orders_of_a_bag(bag):
    """Exactly, in each column, whoever of the bag comes last; for a class picked from the rows that is not so."""
    bag = np.array(bag)
    rows = np.tile(np.eye(7)[0], (len(bag), 1))  # all of one category
    total, of_picked = np.zeros(8), 0.0
    for last in range(len(bag)):
        model = stream.predictor()
        model.learn_many(np.delete(rows, last, axis=0), np.delete(bag, last))
        block = model.predict_many(rows[:1])
        found = stream.departures(block, bag[[last]])[0]
        total += found
        of_picked += found[venn.prediction.RowMean().choose(block.probabilities[0], None)]
    np.testing.assert_allclose(total, 0, atol=1e-12)
    assert of_picked < -0.1


def test_the_rows_that_the_file_begins_with_are_told_from_others_where_they_differ():
    rows = np.random.default_rng(0).permutation(40_000)
    y = np.where(rows < NOT_TESTED, rows % 7, np.random.default_rng(1).choice(7, 40_000, p=published.PRIORS))
    alike = scores(y, 2)
    other = alike.copy()
    other[(rows < NOT_TESTED) & (y == 1)] = scores(np.zeros(2160, int), 3)  # Lodgepole that looks like Spruce
    same, claims = stream.beginning(rows, alike, y)
    assert same.shape == (7, 3)
    assert (same[:, 2] > 1e-4).all()
    assert claims.shape == (2, 3)
    differs, _ = stream.beginning(rows, other, y)
    assert differs[1, 2] < 1e-10
    assert (differs[[0, 2, 3, 4, 5, 6], 2] > 1e-4).all()


def test_what_was_computed_is_not_computed_again(tmp_path):
    rng = np.random.default_rng(6)
    y = np.concatenate([np.tile(np.arange(7), published.TRAIN + published.VALIDATION), labels()])
    X = np.concatenate([scores(y, 7), rng.normal(size=(len(y), 5))], axis=1)
    size = protocol.Size(30, 20, 2500, (1.0, 10.0), (0.03, 0.1), part=1000)
    parts = protocol.published_parts(y, size, 0)
    shifts = protocol.shifts(y, parts)
    assert list(shifts) == ["standard", "adjusted", "adjusted to the test part"]
    runs, counts = [], []
    for _ in range(2):
        store, steps = Store(tmp_path), []
        runs.append(protocol.done("adjusted", X, y, parts, shifts["adjusted"], size, 1, store, steps.append))
        counts.append((store.computed, len(steps)))
    assert counts == [(4, protocol.stages(parts, size)), (0, protocol.stages(parts, size))]
    assert (runs[0].scores == runs[1].scores).all()
    matrix = runs[0].confusion(y[parts.rest])
    assert (matrix.sum(axis=1) == np.bincount(y[parts.rest], minlength=7)).all()
    assert published.accuracy(matrix) == (runs[0].scores.argmax(axis=1) == y[parts.rest]).mean() > 0.5


@pytest.fixture
def some_rows(monkeypatch):
    """The file has the rows that are not tested, and one in eighteen of the others."""
    folder = os.environ.get("STREAMS_DATA")
    if not folder or not Path(folder, "covtype.csv.gz").exists():
        pytest.skip("STREAMS_DATA names no folder with covtype.csv.gz")
    with gzip.open(Path(folder, "covtype.csv.gz"), "rt") as file:
        lines = file.readlines()[1:]
    rows = np.loadtxt(lines[:NOT_TESTED] + lines[NOT_TESTED::18], delimiter=",", dtype=np.int16)
    y = rows[:, -1].astype(int)

    def load(name, scale):
        assert (name, scale) == ("covtype", False)
        return streams.from_arrays(rows[:, :-1], y.tolist(), classes=range(1, 8), scale=scale)

    monkeypatch.setattr(streams, "load", load)
    return y - 1


@pytest.mark.program
def test_the_example_prints_its_answer(some_rows, tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    covtype.main(["--quick", "--jobs", "1"])
    assert re.search(
        r"standard +accuracy 0\.\d+ \(paper 0\.7220\)(.|\n)*adjusted +accuracy 0\.\d+ \(paper 0\.7341\)(.|\n)*"
        r"stream, weights(.|\n)*stream, no weights(.|\n)*figure: runs/covtype\.png",
        capsys.readouterr().out,
    )
    text = (tmp_path / "runs/covtype.md").read_text()
    rest = protocol.published_parts(some_rows, protocol.QUICK, covtype.SEED).rest
    for name in ("standard", "adjusted"):
        lines = text.split(f"### Confusion matrix, {name}:")[1].splitlines()[4:11]
        ours = np.array([[int(cell) for cell in re.findall(r" (\d+) \(", line)] for line in lines])
        assert ours.shape == (7, 7)
        assert (ours.sum(axis=1) == np.bincount(some_rows[rest], minlength=7)).all()
