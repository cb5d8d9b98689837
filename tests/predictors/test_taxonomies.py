"""Taxonomies and the machines of objects: against their definitions, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import LABELS, OBJECTS, labels, learned, objects, refused
from naive import taxonomies as naive
from naive.venn import matrix

import venn
from venn.machines.machine import ScoreTable
from venn.taxonomies import (
    AdaptiveMarginBins,
    Argmax,
    ByScores,
    Gap,
    Grouped,
    LeaveOneOut,
    MarginBins,
    RunnerUp,
    ScoreBins,
    Threshold,
    TopScoreBins,
    TopTwo,
)


def first_feature(x):
    return float(x[0])


def parity(x):
    return int(np.floor(x).sum()) % 2


# The engine's object and the oracle's function.
PAIRS = {
    "argmax": (Argmax(), naive.argmax), "top two": (TopTwo(), naive.top_two),
    "threshold": (Threshold(), naive.threshold(0.75)), "threshold .5": (Threshold(0.5), naive.threshold(0.5)),
    "runner-up": (RunnerUp(), naive.runner_up(0.25)), "gap": (Gap(), naive.gap(0.5)),
    "gap .1": (Gap(0.1), naive.gap(0.1)), "margin": (MarginBins(), naive.margin_bins((0.5, 1.0, 1.5))),
    "margin fine": (MarginBins((0.1, 0.2, 0.25, 2.0)), naive.margin_bins((0.1, 0.2, 0.25, 2.0))),
    "top score": (TopScoreBins((-0.5, 0.0, 1.0)), naive.top_score_bins((-0.5, 0.0, 1.0))),
    "adaptive": (AdaptiveMarginBins(), naive.adaptive),
}  # fmt: skip
TWO_CLASSES = {
    "score": (ScoreBins(), naive.score_bins(4, -2, 2)),
    "score odd": (ScoreBins(5, -1, 2), naive.score_bins(5, -1, 2)),
}
MACHINES = {
    "svm": lambda c: venn.OneVsAllSVM(venn.RBF(0.5), 1.0, range(c)),
    "least squares": lambda c: venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(c)),
    "centroid": lambda c: NearestCentroid(range(c)),
}


class ByPosition(ByScores):
    """Broken: examples of equal margin are ranked by their place in the bag."""

    def categories(self, scores):
        ranks = np.empty(len(scores), np.int64)
        ranks[np.argsort(scores[:, 0].round(1), kind="stable")] = np.arange(len(scores))
        return 3 * ranks // len(scores)

    def class_of(self, category, c):
        return 0


# Against the definition: scores to categories ---------------------------------------------------------------------


def tied(rng, n, c):
    """Return (n, c) scores, many of them equal or off by less than the grid, some of the edges among them."""
    scores = rng.choice([-1.0, -0.5, 0.0, 0.05, 0.1, 0.25, 1.0, 2.5], size=(n, c)) + rng.choice(
        [0.0, 1e-10], size=(n, c)
    )
    general = rng.random(n) < 0.3
    scores[general] = rng.normal(size=(general.sum(), c))
    return scores


def assert_same_categories(codes, expected):
    """Equal as partitions: one code for each category."""
    assert len(set(zip(codes.tolist(), expected, strict=True))) == len(set(codes.tolist())) == len(set(expected))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("c", [2, 3, 5])
def test_categories_match_the_definition(name, c):
    rng = np.random.default_rng(c)
    taxonomy, definition = PAIRS[name]
    for n in (1, 2, 9, 60):
        scores = tied(rng, n, c)
        kept = scores.copy()
        codes = taxonomy.categories(scores)
        assert codes.dtype == np.int64
        assert_same_categories(codes, definition(scores))
        assert np.array_equal(scores, kept)
        # The category stands for the top class, the same in all of them.
        assert [taxonomy.class_of(int(code), c) for code in codes] == Argmax().categories(scores).tolist()
        assert np.array_equal(taxonomy.categories(np.asfortranarray(scores)), codes)


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_score_bins_match_the_definition(name):
    rng = np.random.default_rng(0)
    taxonomy, definition = TWO_CLASSES[name]
    f = np.concatenate([tied(rng, 200, 1)[:, 0], np.linspace(-3, 3, 121)])
    for scores in (np.column_stack([-f, f]), tied(rng, 200, 2)):
        codes, expected = taxonomy.categories(scores), definition(scores)
        assert_same_categories(codes, expected)
        assert [taxonomy.class_of(int(code), 2) for code in codes] == [top for top, _ in expected]


def test_scores_beyond_the_grid_have_a_category():
    assert Argmax().categories([[-1e308, 1e308], [1e308, -1e308], [0.0, 1e303]]).tolist() == [1, 0, 1]


def test_a_tie_of_two_classes_belongs_to_the_first():
    scores = np.array([[0.0, 0.0], [1e-9, -1e-9], [-1e-9, 1e-9]])
    for taxonomy in (ScoreBins(), MarginBins(), Threshold(), AdaptiveMarginBins(), TopTwo()):
        assert [taxonomy.class_of(int(code), 2) for code in taxonomy.categories(scores)] == [0, 0, 0]


def test_equal_shares_do_not_exceed_their_own_level():
    """Softmax of c equal scores is 1/c, whatever the scores: rounding must not decide."""
    for c in (2, 3, 4, 7):
        scores = np.repeat(np.linspace(-3, 3, 50)[:, None], c, axis=1)
        assert (Threshold(1 / c).categories(scores) == 0).all()
        assert (RunnerUp(1 / c).categories(scores) == 0).all()


# Against the definition: tables to counts ----------------------------------------------------------------------------


def by_definition(definition, table):
    """Return the (c, c) counts of a table: every example once, the category of the last."""
    c = len(table.negative)
    counts = np.zeros((c, c), int)
    for j in range(c):
        categories = definition(table.scores(j))
        for category, code in zip(categories, table.codes(j), strict=True):
            counts[j, code] += category == categories[-1]
    return counts


def random_table(rng, c, m):
    negative, positive = tied(rng, m + 3, c).T.copy(), tied(rng, m + 3, c).T.copy()
    codes, weights = rng.integers(0, c, m), rng.integers(0, 4, m)
    codes[weights == 0] = -1  # means nothing there
    grid = rng.integers(0, 2, (2, m + 3)).astype(float)
    return ScoreTable(negative, positive, codes, weights, int(rng.integers(m)), grid)


@pytest.mark.parametrize("name", [*PAIRS, *TWO_CLASSES])
def test_counts_of_weighted_tables_match_the_definition(name):
    rng = np.random.default_rng(len(name))
    taxonomy, definition = {**PAIRS, **TWO_CLASSES}[name]
    for c in (2,) if name in TWO_CLASSES else (2, 3, 4):
        for m in (1, 2, 5, 30, 60):
            table = random_table(rng, c, m)
            kept = [np.copy(part) for part in table]
            counts = taxonomy.count_table(table)
            assert np.array_equal(counts.labels, by_definition(definition, table))
            assert np.array_equal(ByScores.count_table(taxonomy, table).labels, counts.labels)
            for j in range(c):
                assert counts.categories[j] == taxonomy.categories(table.scores(j))[-1]
            assert all(np.array_equal(a, b) for a, b in zip(table, kept, strict=True))


def test_adaptive_bins_of_many_examples():
    """Enough for several bins in each class, with ties and without."""
    rng = np.random.default_rng(5)
    for m in (300, 500):
        table = random_table(rng, 3, m)
        assert np.array_equal(AdaptiveMarginBins().count_table(table).labels, by_definition(naive.adaptive, table))
        scores = table.negative + rng.normal(size=table.negative.shape)
        table = table._replace(negative=scores, positive=scores + 0.1)
        assert np.array_equal(AdaptiveMarginBins().count_table(table).labels, by_definition(naive.adaptive, table))


def test_number_of_adaptive_bins_is_the_cube_root():
    for n, bins in ((1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (63, 3), (64, 4), (999, 9), (1000, 10)):
        scores = np.column_stack([np.arange(1.0, n + 1), np.zeros(n)])
        codes = AdaptiveMarginBins().categories(scores)
        assert np.unique(codes).tolist() == list(range(0, 2 * bins, 2))
        sizes = np.bincount(codes)[::2]
        assert sizes.max() - sizes.min() <= 1  # quantiles


# Against the definition: streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["svm", "least squares"])
@pytest.mark.parametrize("kind", ["grid", "few", "normal", "repeats"])
def test_probabilities_equal_the_definition_at_every_step(machine, kind):
    """From the machine's own scores of the examples one by one; those have an oracle of their own."""
    rng = np.random.default_rng(len(machine) + len(kind))
    leave_one_out = machine == "least squares"
    n = 15
    X = objects(kind, rng, n)
    y = labels("noise", rng, X, 3)
    engine = MACHINES[machine](3)
    models = {
        name: venn.TransductiveVenn(engine, LeaveOneOut(taxonomy) if leave_one_out else taxonomy)
        for name, (taxonomy, _) in PAIRS.items()
    }
    for i in range(n):
        answer = engine.hypotheses(X[i])
        scores = [answer.leave_one_out(j) if leave_one_out else answer.scores(j) for j in range(3)]
        for name, (_, definition) in PAIRS.items():
            expected = matrix([definition(s) for s in scores], y[:i], 3)
            prediction = models[name].predict_one(X[i])
            assert np.array_equal(prediction.probabilities, expected), f"{name}, step {i}"
            if leave_one_out:
                assert prediction.guaranteed == "predicted label"
                assert prediction.label == definition(scores[0])[-1][0]
        engine.learn_one(X[i], y[i])


@pytest.mark.parametrize("kind", OBJECTS)
def test_centroid_scores_equal_the_definition_at_every_step(kind):
    rng = np.random.default_rng(len(kind))
    X = objects(kind, rng, 19)
    y = labels(LABELS[len(kind) % len(LABELS)], rng, X, 3)
    machine = NearestCentroid(range(3))
    models = {
        name: (venn.TransductiveVenn(machine, LeaveOneOut(taxonomy)), definition)
        for name, (taxonomy, definition) in {
            "nearest": (Argmax(), naive.argmax),
            "far": (TopScoreBins([-0.7]), naive.top_score_bins([-0.7])),
        }.items()
    }
    for i in range(19):
        answer = machine.hypotheses(X[i])
        expected = [naive.centroid(X[: i + 1], [*y[:i], j], 3, True) for j in range(3)]
        for j in range(3):
            assert np.allclose(answer.leave_one_out(j), expected[j], atol=1e-9, rtol=1e-9)
            training = naive.centroid(X[: i + 1], [*y[:i], j], 3, False)
            assert np.allclose(answer.scores(j), training, atol=1e-9, rtol=1e-9)
        for model, definition in models.values():
            P = matrix([definition(scores) for scores in expected], y[:i], 3)
            assert np.array_equal(model.predict_one(X[i]).probabilities, P), f"step {i}"
        machine.learn_one(X[i], y[i])
        assert_bags_equal(
            machine, X[: i + 1], y[: i + 1], lambda X, y, leave_one_out: naive.centroid(X, y, 3, leave_one_out)
        )


def assert_bags_equal(machine, X, y, definition):
    """The bag and the leave-one-out bag hold every example once, with its score."""
    for bag, leave_one_out in ((machine.bag, False), (machine.leave_one_out_bag, True)):
        expected = definition(X, y, leave_one_out)
        ours = sorted(
            (code, *np.round(bag.scores[:, entry], 6))
            for entry, counts in enumerate(bag.counts)
            for code, count in enumerate(counts)
            for _ in range(count)
        )
        assert np.allclose(ours, sorted((code, *np.round(row, 6)) for code, row in zip(y, expected, strict=True)))


# Groups -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["svm", "least squares", "centroid"])
@pytest.mark.parametrize("kind", ["grid", "few", "repeats"])
@pytest.mark.parametrize(("by", "inner"), [(0, "argmax"), (first_feature, "adaptive"), (parity, "top two")])
def test_grouped_equals_the_definition_at_every_step(machine, kind, by, inner):
    rng = np.random.default_rng(len(kind))
    X = objects(kind, rng, 20)
    y = labels("noise", rng, X, 3)
    engine = MACHINES[machine](3)
    taxonomy, definition = PAIRS[inner]
    leave_one_out = machine != "svm"
    grouped = Grouped(by, taxonomy)
    model = venn.TransductiveVenn(engine, LeaveOneOut(grouped) if leave_one_out else grouped)
    group = (lambda x: x[by]) if isinstance(by, int) else by
    for i in range(20):
        answer = engine.hypotheses(X[i])
        groups = [group(x) for x in X[: i + 1]]
        scores = [answer.leave_one_out(j) if leave_one_out else answer.scores(j) for j in range(3)]
        expected = matrix([naive.within(groups, definition)(s) for s in scores], y[:i], 3)
        assert np.array_equal(model.predict_one(X[i]).probabilities, expected), f"step {i}"
        engine.learn_one(X[i], y[i])


def test_one_grouped_taxonomy_reads_several_machines():
    """What it remembers of one machine's objects says nothing about another's."""
    rng = np.random.default_rng(0)
    shared = Grouped(parity, Argmax())
    machines = [NearestCentroid(range(2)) for _ in range(2)] + [MACHINES["least squares"](2)]
    for step in range(30):
        for machine, d in zip(machines, (2, 3, 2), strict=True):
            x = rng.integers(0, 3, d)
            fresh = LeaveOneOut(Grouped(parity, Argmax())).count(machine.hypotheses(x))
            assert np.array_equal(LeaveOneOut(shared).count(machine.hypotheses(x)).labels, fresh.labels), step
            machine.learn_one(x, int(rng.integers(2)))


def test_groups_are_asked_for_once_for_each_object():
    calls = []

    def by(x):
        calls.append(tuple(x))
        return x[0]

    machine = NearestCentroid(range(2))
    model = venn.TransductiveVenn(machine, LeaveOneOut(Grouped(by, Argmax())))
    for i in range(20):
        model.predict_one([i % 3, i])
        model.learn_one([i % 3, i], i % 2)
    assert len(calls) == 20


test_grouped_refuses_what_is_no_group = refused(lambda by: Grouped(by, Argmax()), [
    (None, TypeError, "by must be"), ("x", TypeError, "by must be"), (True, TypeError, "by must be"),
    (-1, ValueError, "by must be"), (list, TypeError, "by must be"), (1.0, TypeError, "by must be"),
])  # fmt: skip


def test_grouped_refuses_what_it_cannot_group():
    machine = NearestCentroid(range(2))
    for by, error in ((lambda x: [x], TypeError), (lambda x: float("nan"), ValueError), (2, ValueError)):
        model = venn.TransductiveVenn(machine, LeaveOneOut(Grouped(by, Argmax())))
        with pytest.raises(error, match="by must"):
            model.predict_one([0.0, 1.0])
    with pytest.raises(TypeError, match="must hold the objects"):
        Grouped(0, Argmax()).count_table(
            random_table(np.random.default_rng(0), 2, 5)._replace(objects=np.empty((0, 0)))
        )
    with pytest.raises(TypeError, match=r"LeaveOneOut\(Grouped\(by"):
        Grouped(0, LeaveOneOut(Argmax()))
    with pytest.raises(TypeError, match="taxonomy must"):
        LeaveOneOut(LeaveOneOut(Argmax()))


def test_the_function_cannot_change_the_machine():
    def spoiler(x):
        x[:] = 7.0
        return 0

    machine = NearestCentroid(range(2))
    model = venn.TransductiveVenn(machine, LeaveOneOut(Grouped(spoiler, Argmax())))
    for i in range(4):
        model.predict_one([float(i)])
        model.learn_one([float(i)], i % 2)
    assert machine.scores([0.1]).tolist() == [-0.9, -1.9]


# Values and their refusals --------------------------------------------------------------------------------------------


def test_a_used_grouped_taxonomy_is_still_the_same_value():
    used = Grouped(parity, Argmax())
    machine = learned(NearestCentroid(range(2)), [[0.0], [1.0]], [0, 1])
    LeaveOneOut(used).count(machine.hypotheses([0.5]))
    for twin in (used, copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        assert twin == Grouped(parity, Argmax())
        assert LeaveOneOut(twin).count(machine.hypotheses([0.5])).labels.sum() > 0
    assert "array" not in repr(used)


def test_score_bins_are_for_two_classes():
    model = venn.TransductiveVenn(NearestCentroid(range(3)), LeaveOneOut(ScoreBins()))
    with pytest.raises(ValueError, match="classes must be two"):
        model.predict_one([0.0])
    with pytest.raises(ValueError, match="must"):
        ScoreBins(4, 2, -2)


@pytest.mark.parametrize("answer", [np.zeros(3, int), np.zeros((5, 1), int), np.zeros(5), np.array(list("abcde"))])
@pytest.mark.parametrize("pointwise", [True, False])
def test_a_taxonomy_must_give_one_integer_for_each_row(answer, pointwise):
    class Odd(ByScores):
        def categories(self, scores):
            return answer[: len(scores)]

    Odd.pointwise = pointwise
    machine = learned(NearestCentroid(range(2)), [[float(i)] for i in range(4)], [0, 1, 0, 1])
    with pytest.raises(ValueError, match="categories must be"):
        Odd().count(machine.hypotheses([9.0]))


# The machines of objects ----------------------------------------------------------------------------------------------


def test_stale_answers_say_so():
    machine = learned(NearestCentroid(["a", "b", "c"]), [[0.0], [1.0]], ["a", "b"])
    first = machine.hypotheses([0.5])
    assert machine.hypotheses([0.5]) is first
    table = first.leave_one_out_table.negative.copy()
    machine.bag, machine.leave_one_out_bag  # noqa: B018
    assert np.array_equal(first.leave_one_out_table.negative, table)
    machine.hypotheses([0.7])
    for ask in (lambda: first.table, lambda: first.leave_one_out(0), lambda: first.labels, lambda: first.scores(0)):
        with pytest.raises(RuntimeError, match="out of date"):
            ask()
    second = machine.hypotheses([0.7])
    machine.learn_one([0.7], "a")
    with pytest.raises(RuntimeError, match="out of date"):
        second.leave_one_out_table  # noqa: B018
    with pytest.raises(ValueError, match="j must be"):
        machine.hypotheses([0.0]).scores(3)


@pytest.mark.parametrize("taxonomy", [Argmax(), TopTwo(), Threshold(), AdaptiveMarginBins(), ScoreBins()], ids=repr)
@pytest.mark.parametrize(
    "scores",
    [[0.5, 1.0], [[1.0]], "ab", [["a", "b"]], [[1.0], [1.0, 2.0]], np.array([[10**400, 1]], object), 0.5],
    ids=repr,
)
def test_scores_that_are_no_table_are_refused(taxonomy, scores):
    with pytest.raises((TypeError, ValueError), match="scores must"):
        taxonomy.categories(scores)
