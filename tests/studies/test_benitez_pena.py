"""The study of Benitez-Pena et al. (2020): its parts against definitions, the paper's facts, nothing twice."""

import sys
from pathlib import Path

import numpy as np
import pytest
from test_rueping import one_thread  # noqa: F401

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from benitez_pena import answers, constrained, control, machines, published, sets, study, tables  # noqa: E402
from benitez_pena.methods import ALL, BOUNDED, PAPER, RESAMPLED, methods  # noqa: E402

# The paper -------------------------------------------------------------------------------------------


def test_the_grid_is_the_papers_in_the_usual_scale():
    assert [2 * C for C in machines.CS] == list(published.CS)
    assert (machines.CS[0], machines.CS[-1], len(machines.CS)) == (2**-6, 2**4, 11)


# Sets ------------------------------------------------------------------------------------------------


DIFFERENT = {"diabetes": (9, 0, 5), "leukemia": (0, 1, 0), "srbct": (0, 1286, 0), "heart": (130, 0, 80),
             "adult": (1, 0, 0), "cervical": (0, -4, 0), "banknote": (0, -1, 0)}  # fmt: skip


def loaded(name):
    try:
        return sets.load(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", published.SETS)
def test_a_set_differs_from_table_2_as_is_said(name):
    data = loaded(name)
    ours = (len(data.y), data.attributes, int(data.y.sum()))
    assert tuple(np.subtract(ours, published.SIZES[name]).tolist()) == DIFFERENT.get(name, (0, 0, 0))
    assert (sets.SOURCES[name].said == "the same") == (name not in DIFFERENT and name != "colon")


def test_unknown_values_are_filled_by_medians_of_the_training_part():
    X = np.array([[1.0, 5], [3, np.nan], [4, 7], [np.nan, 9], [np.nan, 11]])
    y = np.array([0, 1, 0, 1, 0])
    fold = sets.prepared(X, y, np.array([0, 1, 2]), np.array([3, 4]))
    first, second = np.array([1.0, 3, 4]), np.array([5.0, 6, 7])
    expected = np.column_stack([
        (np.array([3.0, 3.0]) - first.mean()) / first.std(), (np.array([9.0, 11]) - second.mean()) / second.std()
    ])  # fmt: skip
    np.testing.assert_allclose(fold.new, expected)
    np.testing.assert_allclose(fold.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(fold.X.std(axis=0), 1)


def test_new_objects_change_nothing_in_the_training_part_and_constant_columns_go():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(12, 3)), np.ones(12)])
    X[11, 3] = 5.0  # constant where it is trained
    y = np.arange(12) % 2
    rest, out = np.arange(8), np.arange(8, 12)
    fold = sets.prepared(X, y, rest, out)
    assert fold.X.shape == (8, 3)
    other = X.copy()
    other[out] *= 100
    np.testing.assert_array_equal(sets.prepared(other, y, rest, out).X, fold.X)


def test_a_rotation_keeps_inner_products():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 40)), np.arange(10) % 2
    rest, out = np.arange(7), np.arange(7, 10)
    fold = sets.prepared(X, y, rest, out)
    Z = (X - X[rest].mean(axis=0)) / X[rest].std(axis=0)
    assert fold.X.shape == (7, 10)
    assert fold.features == 40
    both = np.concatenate([fold.X, fold.new])
    np.testing.assert_allclose(both @ both.T, Z @ Z.T, atol=1e-9)


# Losses and ranks ------------------------------------------------------------------------------------


def test_losses_are_those_of_the_definitions():
    rng = np.random.default_rng(2)
    y, p = rng.integers(0, 2, 50), rng.choice([0.0, 0.3, 0.5, 1.0], 50)
    squares = [(label - q) ** 2 for label, q in zip(y.tolist(), p.tolist(), strict=True)]
    of = {label: [s for s, own in zip(squares, y, strict=True) if own == label] for label in (0, 1)}
    clipped = [min(max(q, 0.001), 0.999) for q in p.tolist()]
    log = [-np.log(q if label else 1 - q) for q, label in zip(clipped, y, strict=True)]
    wrong = [(q >= 0.5) != bool(label) for q, label in zip(p, y, strict=True)]
    expected = [np.mean(each) for each in (squares, of[1], of[0], log, wrong)]
    np.testing.assert_allclose(answers.losses(p, y), expected)
    assert np.isnan(answers.losses(np.array([0.5]), np.array([0]))[answers.POSITIVES])


def test_ranks_share_ties():
    found = answers.mean_ranks([[0.1, 0.2, 0.2 + 1e-15, 0.4], [0.3, 0.1, 0.2, 0.2]])
    np.testing.assert_allclose(found, [2.5, 1.75, 2.5, 3.25])


# Methods ---------------------------------------------------------------------------------------------


def made(n=40, m=20, d=2, noise=0.7, seed=0):
    """Return a fold of a made-up set, and the labels of its new objects."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, d))
    y = (X[:, 0] + noise * rng.normal(size=n + m) > 0).astype(np.int64)
    return sets.prepared(X, y, np.arange(n), np.arange(n, n + m)), y[n:]


def test_scores_are_held_out_where_they_say_so():
    fold, _ = made()
    n = len(fold.y)
    scores = machines.svm_scores(fold, 5, seed=1)
    C, signs = float(scores["C"]), 2.0 * fold.y - 1

    def again(rows):
        fit = machines.path(fold.X[rows], signs[rows], (C,))[0]
        return fit.scores(fold.X), fit.scores(fold.new)

    for k in range(5):
        out = scores["part"] == k
        own, new = again(~out)
        np.testing.assert_allclose(scores["cross"][out], own[out], atol=1e-3)
        np.testing.assert_allclose(scores["new_by_part"][k], new, atol=1e-3)
    own, new = again(np.setdiff1d(np.arange(n), scores["held"]))
    np.testing.assert_allclose(scores["held_scores"], own[scores["held"]], atol=1e-3)
    np.testing.assert_allclose(scores["held_new"], new, atol=1e-3)
    np.testing.assert_allclose(scores["new"], again(np.arange(n))[1], atol=1e-3)
    assert machines.CS[int(np.argmax(scores["accuracies"]))] == C


def test_every_method_gives_probabilities_and_bounds_that_enclose():
    fold, y = made(seed=1)
    scores = machines.svm_scores(fold, 5, seed=1)
    for name, method in methods().items():
        found = method.probabilities(fold, scores)
        assert found["p"].shape == y.shape
        assert ((found["p"] >= 0) & (found["p"] <= 1)).all()
        if name in BOUNDED:
            assert (found["lower"] <= found["p"] + 1e-12).all()
            assert (found["p"] <= found["upper"] + 1e-12).all()
    assert set(methods()) | set(RESAMPLED) == set(ALL)


def test_a_large_part_takes_the_inductive_predictor_with_the_counts_of_the_definition():
    from benitez_pena.methods import TransductiveVenn

    fold, _ = made(seed=2)
    scores = machines.svm_scores(fold, 5, seed=1)
    found = TransductiveVenn(largest=10).probabilities(fold, scores)
    m = len(scores["held"])
    y = fold.y[scores["held"]]
    for i, own in enumerate(scores["held_new"]):
        bag = np.append(scores["held_scores"], own)
        top = (bag > 0) == (own > 0)
        margins = np.abs(bag)
        r = np.array([(margins[top] < each).sum() for each in margins])
        bins = int(np.floor(top.sum() ** (1 / 3) + 1e-9))
        bin_of = r * bins // top.sum()
        same = top & (bin_of == bin_of[m])
        count, size = y[same[:m]].sum(), same[:m].sum()
        np.testing.assert_allclose(
            [found["lower"][i], found["upper"][i]], [count / (size + 1), (count + 1) / (size + 1)]
        )


# Resamples and control -------------------------------------------------------------------------------


PLAN = control.Plan(resamples=15, splits=1, largest=16, most_new=20, few=3, Cs=(0.1,), levels=(0.5, 0.9), seconds=20.0)


def test_moving_the_threshold_moves_positives_up_and_negatives_with_them():
    fold, y = made(seed=3)
    found = control.resampled(fold, y, PLAN, seed=0)
    assert set(found["Cs"].tolist()) <= set(machines.CS)
    assert found["C"] in found["Cs"]
    for p, thresholds in zip(found["controlled"], found["thresholds"], strict=True):
        assert (np.diff(thresholds) >= 0).all()
        assert (np.diff(p, axis=0) >= -1e-12).all()
        assert (p >= found["p"] - 1e-12).all()
    own = found["controlled"][1]  # by the labels of the new objects: reached, always
    for share, p in zip(control.SHARES, own, strict=True):
        assert answers.reached(p, y)[0] >= share - 1e-9


def test_more_cs_count_the_more_accuracy_may_be_lost():
    fold, y = made(seed=4)
    none, all_ = (control.resampled(fold, y, control.Plan(resamples=15, epsilon=epsilon), 0) for epsilon in (0.0, 1.0))
    assert all_["Cs"].tolist() == list(machines.CS)
    np.testing.assert_allclose(none["p"], none["best"])  # here one C alone is the most accurate
    np.testing.assert_allclose(none["best"], all_["best"])


def test_constrained_problems_are_all_accounted_for():
    rng = np.random.default_rng(5)
    X = rng.integers(-2, 3, (60, 2)).astype(float)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(np.int64)
    found = control.constrained(sets.Set("made up", X, y, 2, "x"), PLAN, 0)
    assert found["outcomes"].sum(axis=1).tolist() == [3, 3]
    assert (int(found["trained"]), int(found["new"])) == (16, 20)
    assert found["Ctrl1"].shape == found["Ctrl2"].shape == (2, 3)


def test_without_scip_the_heuristic_is_counted_as_such(monkeypatch):
    monkeypatch.setattr(constrained, "pyscipopt", None)
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(np.int64)
    outcomes = control.constrained(sets.Set("made up", X, y, 2, "x"), PLAN, 0)["outcomes"]
    found = dict(zip(control.OUTCOMES, outcomes.sum(axis=0).tolist(), strict=True))
    assert found["optimal"] + found["heuristic"] == 6
    assert found["heuristic"] > 0


# Orderings, where P(y = 1 | x) is known --------------------------------------------------------------


# Nothing twice ---------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A study that takes a second: 40 examples under the name of a set, two folds, few resamples."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(np.int64)
    monkeypatch.setattr(sets, "load", lambda name: sets.Set(name, X, y, 3, "made up"))
    return study.Study(("divorce",), folds=2, inner=3, resamples=6, plan=PLAN)


RESULTS = 2 * (1 + len(ALL) - len(RESAMPLED) + 1) + 1  # scores, methods and resamples of each fold; one split


def test_an_interrupted_study_goes_on_where_it_stopped(small, tmp_path):
    whole, computed = study.run(small, tmp_path / "whole")
    assert computed == RESULTS

    class Stop(Exception):
        pass

    def stop(task):
        raise Stop

    with pytest.raises(Stop):
        study.run(small, tmp_path / "parts", done=stop)
    first = len(list((tmp_path / "parts").iterdir()))
    assert 0 < first < RESULTS
    found, computed = study.run(small, tmp_path / "parts")
    assert computed == RESULTS - first
    again, computed = study.run(small, tmp_path / "parts")
    assert computed == 0
    for one in (whole, found, again):  # the document tells the seconds of the constrained problems
        one["divorce", "control", 0] = {**one["divorce", "control", 0], "seconds": 0.0}
    pages = [tables.document(answers.Answers(small, one)) for one in (whole, found, again)]
    outcomes = np.concatenate([one["divorce", "control", 0]["outcomes"] for one in (whole, found)])
    if not outcomes[:, 1].any():  # SCIP goes by the clock
        assert pages[0] == pages[1]
    assert pages[1] == pages[2]


def test_the_tables_have_every_set_and_method(small, tmp_path):
    found, _ = study.run(small, tmp_path)
    one = answers.Answers(small, found)
    text = "\n".join(tables.document(one))
    for name in (*ALL, "divorce", "Ctrl2"):
        assert f"| {name} |" in text or f" {name} " in text
    assert "nan" not in text
    said, theirs, ours = tables.claims(one)[0]
    assert (said.split()[0], theirs) == ("bootstrap", ["divorce"])
    assert set(ours) <= {"divorce"}
    assert set(PAPER) <= set(tables.RANKED)
