"""Invariants of taxonomies, and their validity: departures cancel, those of broken ones do not."""

import numpy as np
import pytest
from conftest import halved, labels, learned, leaving_out, objects
from test_taxonomies import MACHINES, PAIRS, ByPosition, parity, tied

import venn
from venn.taxonomies import AdaptiveMarginBins, Argmax, ByScores, Grouped, LeaveOneOut, ScoreBins, TopScoreBins

# Invariants ---------------------------------------------------------------------------------------------------------


def shuffled_answers(engine, taxonomy, seed, rounds=4):
    rng = np.random.default_rng(seed)
    X = objects("grid", rng, 40) + rng.integers(0, 2, size=(40, 1)) / 7
    y = labels("noise", rng, X, 3 if engine(3).classes == (0, 1, 2) and not isinstance(taxonomy, ScoreBins) else 2)
    c = int(y.max()) + 1
    answers = []
    for _ in range(rounds):
        order = rng.permutation(40)
        model = learned(venn.TransductiveVenn(engine(c), taxonomy), X[order], y[order])
        answers.append(np.array([model.predict_one(x).probabilities for x in [*X[:8], X[0] + 0.1]]))
    return answers


@pytest.mark.parametrize(("machine", "name"), halved(MACHINES, [*PAIRS, "grouped"]))
def test_shuffling_the_past_changes_no_bit(machine, name):
    taxonomy = Grouped(parity, AdaptiveMarginBins()) if name == "grouped" else PAIRS[name][0]
    answers = shuffled_answers(MACHINES[machine], taxonomy if machine == "svm" else LeaveOneOut(taxonomy), len(name))
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


def test_a_class_that_changes_with_the_hypothesis_is_noticed():
    class Fickle(ByScores):
        """Its class hangs on the scores of all examples: it must not be predicted."""

        def categories(self, scores):
            return np.full(len(scores), int(scores.sum() > 0))

        def class_of(self, category, c):
            return category

    model = learned(
        venn.TransductiveVenn(MACHINES["least squares"](2), LeaveOneOut(Fickle())), [[0.0], [1.0], [2.0]], [0, 1, 1]
    )
    with pytest.raises(RuntimeError, match="one class under every hypothesis"):
        [model.predict_one([x]) for x in np.linspace(-3, 3, 61)]


def test_shuffling_tells_a_taxonomy_by_position():
    answers = shuffled_answers(MACHINES["centroid"], LeaveOneOut(ByPosition()), 1)
    assert not all(np.array_equal(answer, answers[0]) for answer in answers)


@pytest.mark.parametrize("name", PAIRS)
def test_permuting_the_rows_permutes_the_categories_and_equal_rows_share_one(name):
    rng = np.random.default_rng(3)
    taxonomy, _ = PAIRS[name]
    scores = tied(rng, 40, 3)[rng.integers(0, 40, 120)]
    codes = taxonomy.categories(scores)
    order = rng.permutation(120)
    assert np.array_equal(taxonomy.categories(scores[order]), codes[order])
    assert len({(*row, code) for row, code in zip(scores.tolist(), codes.tolist(), strict=True)}) == len(
        {tuple(row) for row in scores.tolist()}
    )


def test_position_is_told_by_its_rows_too():
    scores = np.zeros((9, 2))
    assert len(set(ByPosition().categories(scores).tolist())) > 1


# Validity ----------------------------------------------------------------------------------------------------------
# Over the choice of the last example of one bag the departures of the realised row cancel exactly, and so do
# those of the predicted label where it is the class of the category; see test_validity.py.


def departures(prediction, y):
    """Return 1{y = k} - row of y at k, for each class k, and the same for the predicted label as the last."""
    row = prediction.probabilities[y]
    return np.append(np.eye(len(row))[y] - row, float(prediction.label == y) - row[prediction.index])


def over_the_bag(model_of, X, y):
    """Return the (n, c + 1) departures of each example when it comes last."""
    return np.array([departures(model.predict_one(X[i]), y[i]) for i, model in leaving_out(model_of, X, y)])


SHARP = {name: LeaveOneOut(pair[0]) for name, pair in PAIRS.items()}


@pytest.mark.parametrize("taxonomy", [ScoreBins(), ScoreBins(3, -1, 2), TopScoreBins([-1.0, -0.5, 2.0])], ids=repr)
def test_departures_cancel_for_two_classes(taxonomy):
    rng = np.random.default_rng(8)
    X = objects("grid", rng, 24)
    y = labels("noise", rng, X, 2)
    D = over_the_bag(lambda: venn.TransductiveVenn(MACHINES["centroid"](2), LeaveOneOut(taxonomy)), X, y)
    assert abs(D.mean(axis=0)).max() < 1e-12


@pytest.mark.parametrize("inner", ["argmax", "adaptive"])
def test_departures_cancel_within_each_group(inner):
    rng = np.random.default_rng(4)
    X = objects("grid", rng, 30)
    y = np.where(rng.random(30) < 0.2 + 0.3 * X[:, 0], 1, 0)
    grouped = LeaveOneOut(Grouped(0, PAIRS[inner][0]))
    D = over_the_bag(lambda: venn.TransductiveVenn(MACHINES["centroid"](2), grouped), X, y)
    alone = over_the_bag(lambda: venn.TransductiveVenn(MACHINES["centroid"](2), SHARP[inner]), X, y)
    assert abs(alone.mean(axis=0)).max() < 1e-12
    for value in range(3):
        assert abs(D[X[:, 0] == value].mean(axis=0)).max() < 1e-12
    # Without groups the departures cancel over all, not within each.
    assert max(abs(alone[X[:, 0] == value].mean(axis=0)).max() for value in range(3)) > 0.02


def test_departures_of_broken_taxonomies_do_not_cancel():
    class OwnPlace(ByScores):
        """Broken: the last row is known for the new example."""

        def categories(self, scores):
            categories = Argmax().categories(scores)
            categories[:-1][scores[:-1].max(axis=1) < -0.7] = 9
            return categories

    rng = np.random.default_rng(1)
    X = objects("grid", rng, 30)
    y = labels("signal", rng, X, 3)
    for broken in (ByPosition(), OwnPlace()):
        D = over_the_bag(
            lambda broken=broken: venn.TransductiveVenn(MACHINES["centroid"](3), LeaveOneOut(broken)), X, y
        )
        assert abs(D.mean(axis=0)).max() > 0.005, broken
