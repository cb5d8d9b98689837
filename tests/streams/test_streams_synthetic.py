"""Synthetic streams: the probabilities they state are true, and a broken stream breaks where it says and only there.

Statistical tests have fixed seeds; a true claim is refused at LEVEL, a false one must be refused at 1e-6.
"""

import pickle

import numpy as np
import pytest
from conftest import refused
from scipy import stats
from scipy.sparse import csr_array

import streams

LEVEL = 1e-3


def refusal(stream, probabilities=None, rows=slice(None)):
    """Return the least p-value, over classes and weights, of "each label has the stated probabilities".

    Given the objects the sum of w(x) (1{y = k} - p_k(x)) has mean 0 and a known variance; Bonferroni over all.
    """
    P = (stream.probabilities if probabilities is None else probabilities)[rows]
    X, hits = stream.X[rows], np.eye(len(stream.classes))[stream.y[rows]]
    weights = np.column_stack([np.ones(len(X)), X[:, :2], np.sin(3 * X[:, :2])])
    sums = weights.T @ (hits - P)
    possible = P.max(axis=0) > 0
    assert not hits[:, ~possible].any()
    deviations = np.sqrt((weights**2).T @ (P * (1 - P)))
    p = 2 * stats.norm.sf(abs(sums[:, possible] / deviations[:, possible]))
    return min(1.0, p.min() * p.size)


def bayes(x, centres, spread, proportions):
    """Return P(y | x) from the densities of one object, by definition."""
    density = [
        share * stats.multivariate_normal(centre, spread**2 * np.eye(len(x))).pdf(x)
        for share, centre in zip(proportions, centres, strict=True)
    ]
    return np.array(density) / sum(density)


# Probabilities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "features", "turn"), [(2, 2, 0.0), (3, 2, 60.0), (4, 5, -30.0)])
def test_probabilities_are_those_of_bayes(classes, features, turn):
    proportions = np.arange(1, classes + 1)
    stream = streams.gaussians(40, classes, features=features, spread=0.7, proportions=proportions, turn=turn, seed=1)
    angles = [2 * np.pi * k / classes + np.pi * turn / 180 for k in range(classes)]
    centres = [[np.cos(a), np.sin(a)] + [0.0] * (features - 2) for a in angles]
    for x, P in zip(stream.X, stream.probabilities, strict=True):
        assert pytest.approx(bayes(x, centres, 0.7, proportions / proportions.sum()), abs=1e-12) == P


@pytest.mark.parametrize(("spread", "certain"), [(1e-200, True), (1e-160, True), (1e160, False), (1e200, False)])
def test_probabilities_of_any_spread(spread, certain):
    stream = streams.gaussians(50, spread=spread)
    assert np.isfinite(stream.X).all()
    np.testing.assert_allclose(stream.probabilities.sum(axis=1), 1)
    own = stream.probabilities[np.arange(50), stream.y]
    np.testing.assert_allclose(own, 1.0 if certain else 1 / 3)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_labels_follow_the_stated_probabilities(classes, spread):
    stream = streams.gaussians(5000, classes, spread=spread, proportions=range(1, classes + 1), seed=2)
    assert refusal(stream) > LEVEL
    wrong = stream.probabilities**2
    assert refusal(stream, wrong / wrong.sum(axis=1, keepdims=True)) < 1e-6


def test_classes_have_their_proportions_and_objects_their_spread():
    stream = streams.gaussians(20_000, 3, spread=0.3, proportions=(0.6, 0.3, 0.1), seed=3)
    counts = np.bincount(stream.y)
    assert stats.chisquare(counts, 20_000 * np.array([0.6, 0.3, 0.1])).pvalue > LEVEL
    own = stream.X[stream.y == 0] - [1.0, 0.0]
    assert stats.kstest(own.ravel() / 0.3, "norm").pvalue > LEVEL


def test_a_seed_determines_the_stream_and_another_gives_another():
    first, again, other = (streams.gaussians(50, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    turned = streams.gaussians(50, seed=4, turn=90)
    assert np.array_equal(turned.y, first.y)
    assert refusal(streams.gaussians(3000, seed=4, turn=90), streams.gaussians(3000, seed=4).probabilities) < 1e-6


def test_a_stream_is_not_made_of_the_numbers_that_others_draw_with_its_seed():
    stream = streams.gaussians(3000, 2, seed=3)
    kept = streams.label_shift(stream, 0, (1, 1), seed=3)
    for made in (stream, kept):
        drawn = np.random.default_rng(3).random(len(made))  # as by whoever breaks ties at random
        assert stats.ks_2samp(drawn[made.y == 0], drawn[made.y == 1]).pvalue > LEVEL
    for seed in range(5):  # as by default: one seed for the stream and for the selection
        shifted = streams.label_shift(streams.gaussians(3000, 2, seed=seed), 0, (3, 1), seed=seed)
        assert stats.binomtest(int((shifted.y == 0).sum()), len(shifted), 0.75).pvalue > LEVEL


def test_selections_and_pickles_keep_the_probabilities_with_their_examples():
    stream = streams.gaussians(30, 3, seed=6)
    known = {x.tobytes(): P for x, P in zip(stream.X, stream.probabilities, strict=True)}
    broken = streams.flip_labels(stream, 30)
    for part in (stream.shuffle(1), stream.take(7), stream.drop(9), pickle.loads(pickle.dumps(stream)), broken):
        assert isinstance(part, streams.Synthetic)
        assert all(np.array_equal(known[x.tobytes()], P) for x, P in zip(part.X, part.probabilities, strict=True))
        assert len(part.probabilities) == len(part)
        with pytest.raises(ValueError, match="read-only"):
            part.probabilities[0, 0] = 1.0
    assert repr(pickle.loads(pickle.dumps(stream.shuffle(1)))) == repr(stream.shuffle(1))


# Breaks -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["synthetic", "plain"])
def stream(request):
    made = streams.gaussians(3000, 3, seed=7)
    if request.param == "synthetic":
        return made
    names = np.array(["a", "b", "c"])[made.y]
    return streams.from_arrays(made.X, names, name="plain", scale=True)


BREAKS = {
    "flip_labels": lambda stream, after: streams.flip_labels(stream, after),
    "change_point": lambda stream, after: streams.change_point(stream, stream.shuffle(1), after),
    "label_shift": lambda stream, after: streams.label_shift(stream, after, (1, 0, 3), seed=2),
    "gradual": lambda stream, after: streams.gradual(stream, stream.shuffle(1), after, 500),
    "covariate_shift": lambda stream, after: streams.covariate_shift(stream, after, 1),
    "unit_change": lambda stream, after: streams.unit_change(stream, after),
    "seasonal": lambda stream, after: streams.seasonal(stream, after),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_a_break_leaves_what_came_before_and_the_source_as_they_were(stream, kind):
    X, y = stream.X.copy(), stream.y.copy()
    broken = BREAKS[kind](stream, 1000)
    again = BREAKS[kind](stream, 1000)
    assert np.array_equal(stream.X, X)
    assert np.array_equal(stream.y, y)
    assert np.array_equal(broken.X[:1000], X[:1000])
    assert np.array_equal(broken.y[:1000], y[:1000])
    same = np.array_equal(broken.y[1000:1100], y[1000:1100])
    assert not (same and np.array_equal(broken.X[1000:1100], X[1000:1100]))
    assert np.array_equal(broken.X, again.X)
    assert np.array_equal(broken.y, again.y)
    assert (broken.name, broken.classes, broken.features) == (stream.name, stream.classes, stream.features)
    assert broken.scaling == stream.scaling
    assert repr(broken).startswith(f"<Stream {stream.name!r}.{kind}(1000): {len(broken)} examples")
    assert type(broken) is type(stream)
    assert list(broken)[5][1] == list(stream)[5][1]
    if isinstance(stream, streams.Synthetic):
        assert np.array_equal(broken.probabilities[:1000], stream.probabilities[:1000])
        assert refusal(broken, rows=slice(1000, None)) > LEVEL


def test_flipped_labels_are_the_next_class(stream):
    broken = streams.flip_labels(stream, after=1000)
    following = dict(zip(stream.classes, (*stream.classes[1:], stream.classes[0]), strict=True))
    labels = [y for _, y in stream]
    assert [y for _, y in broken] == labels[:1000] + [following[y] for y in labels[1000:]]
    assert np.array_equal(broken.X, stream.X)


def test_flipped_labels_do_not_follow_the_old_probabilities():
    stream = streams.gaussians(3000, 2, seed=8)
    assert refusal(streams.flip_labels(stream, 1000), stream.probabilities) < 1e-6


def test_change_point_joins_two_streams():
    before, then = streams.gaussians(100, seed=9), streams.gaussians(50, turn=45, seed=10)
    joined = streams.change_point(before, then, after=30)
    assert [(x.tolist(), y) for x, y in joined] == [(x.tolist(), y) for x, y in (*before.take(30), *then)]
    assert np.array_equal(joined.probabilities[30:], then.probabilities)
    assert len(streams.change_point(before, then, after=0)) == 50
    plain = streams.from_arrays(then.X, then.y, classes=(0, 1, 2))
    assert type(streams.change_point(before, plain, 30)) is streams.Stream


def test_label_shift_has_the_proportions_asked_for_and_the_same_objects_in_each_class():
    stream = streams.gaussians(30_000, 3, proportions=(0.2, 0.3, 0.5), seed=11)
    shifted = streams.label_shift(stream, after=5000, proportions={0: 0.6, 2: 0.4}, seed=1).drop(5000)
    counts = np.bincount(shifted.y, minlength=3)
    assert counts[1] == 0
    assert stats.binomtest(int(counts[0]), int(counts.sum()), 0.6).pvalue > LEVEL
    for k in (0, 2):  # P(x | y) as it was
        for j in range(2):
            assert stats.ks_2samp(shifted.X[shifted.y == k, j], stream.X[stream.y == k, j]).pvalue > LEVEL
    assert refusal(shifted) > LEVEL
    unshifted = streams.gaussians(30_000, 3, proportions=(0.2, 0.3, 0.5), seed=11)
    rows = {x.tobytes(): P for x, P in zip(unshifted.X, unshifted.probabilities, strict=True)}
    assert refusal(shifted, np.array([rows[x.tobytes()] for x in shifted.X])) < 1e-6


def test_label_shift_to_one_class_keeps_all_of_it_in_order():
    stream = streams.gaussians(200, 3, seed=12)
    shifted = streams.label_shift(stream, after=50, proportions=(0, 0, 7))
    rows = np.concatenate([np.arange(50), 50 + np.flatnonzero(stream.y[50:] == 2)])
    assert np.array_equal(shifted.X, stream.X[rows])
    assert np.array_equal(shifted.probabilities[50:], np.tile([0.0, 0.0, 1.0], (len(rows) - 50, 1)))


# Bad input ----------------------------------------------------------------------------------------------------------


test_gaussians_refuse = refused(lambda arguments: streams.gaussians(**{"n": 10} | arguments), [
    ({"n": 0}, "n must be an integer >= 1, got 0"), ({"spread": 0}, "spread must be positive, got 0"),
    ({"classes": 1}, "classes must be an integer >= 2, got 1"),
    ({"features": 1}, "features must be an integer >= 2, got 1"),
    ({"seed": -1}, "seed must be an integer >= 0, got -1"),
    ({"spread": float("nan")}, "spread must be a finite number, got nan"),
    ({"proportions": (1, 2)}, "proportions must hold one number for each of 3 classes, got 2"),
    ({"proportions": (1, 0, 1)}, "proportions must be positive"),
    ({"proportions": (1, -1, 1)}, "proportions must be nonnegative with a positive sum"),
    ({"proportions": (1, float("nan"), 1)}, "proportions must be a finite number, got nan"),
])  # fmt: skip


def test_breaks_refuse_bad_parameters():
    stream = streams.gaussians(10, 2, seed=13)
    one = streams.from_arrays([[0.0, 1.0]] * 4, ["a"] * 4, classes=("a", "b"))
    for act, message in (
        (lambda: streams.flip_labels([(1, 2)], 3), r"stream must be a Stream, got \[\(1, 2\)\]"),
        (lambda: streams.flip_labels(stream, 11), "after must be at most the 10 examples of stream, got 11"),
        (lambda: streams.flip_labels(stream, -1), "after must be an integer >= 0, got -1"),
        (lambda: streams.flip_labels(stream, True), "after must be an integer >= 0, got True"),
        (lambda: streams.flip_labels(stream, 1.5), "after must be an integer >= 0, got 1.5"),
        (lambda: streams.change_point(stream, None, 3), "then must be a Stream, got None"),
        (lambda: streams.change_point(None, stream, 3), "before must be a Stream, got None"),
        (lambda: streams.change_point(stream, one, 3), "then must have the classes of before"),
        (
            lambda: streams.change_point(stream, streams.gaussians(10, 2, features=3), 3),
            "then must have the features of before",
        ),
        (lambda: streams.label_shift(stream, 3, (1, 1, 1)), "one number for each of 2 classes, got 3"),
        (lambda: streams.label_shift(stream, 3, (0, 0)), "nonnegative with a positive sum"),
        (lambda: streams.label_shift(stream, 3, {"x": 1}), r"proportions must be of the classes \(0, 1\), got 'x'"),
        (lambda: streams.label_shift(stream, 3, 0.5), "proportions must be a sequence of 2 numbers or a mapping"),
        (lambda: streams.label_shift(stream, 3, (1, 1), seed="x"), "seed must be an integer >= 0, got 'x'"),
        (lambda: streams.gradual(stream, stream.take(9), 3, 5), "then must have the 10 examples of before, got 9"),
        (lambda: streams.covariate_shift(stream, 3, 2), "column must be one of the 2 of the stream, got 2"),
        (lambda: streams.seasonal(stream, 3, strength=2), "strength must"),
        (lambda: streams.label_shift(one, 0, (1, 1)), "0 for a class that never occurs, got 0.5 for 'b'"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            act()


@pytest.mark.parametrize("kinds", [(True, True), (True, False), (False, True)])
def test_a_change_between_sparse_and_dense_streams_keeps_the_kind_of_the_first(kinds):
    X = np.array([[0.0, 1.5], [0.0, 0.0], [2.0, 0.0]])
    parts = [streams.from_arrays(csr_array(X) if sparse else X, ["a", "b", "a"]) for sparse in kinds]
    whole = streams.change_point(*parts, after=2)
    found = [row.toarray()[0] if kinds[0] else row for row, _ in whole]
    assert [row.tolist() for row in found] == [*X[:2].tolist(), *X.tolist()]
