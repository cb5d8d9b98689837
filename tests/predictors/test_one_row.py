"""One row goes through a forecaster in one step: to the last bit as each part asks, scores and learns by itself."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from venn.machines.machine import NotConverged
from venn.nonconformity import APS
from venn.online import checkpoint
from venn.online.forecaster import Forecaster
from venn.online.one_row import RowStep
from venn.predictors.expert_mixture import ExpertMixture
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_base import Inductive

N, CHANGE = 240, 150  # rows; labels mean others from there on
FOREST = RandomForestClassifier(8, random_state=0)
NINE = [f"c{k}" for k in range(9)]  # the forest has seen eight of them
LATE = {"transductive": 40, "last": 160}  # it trains at 40, 56, 78, 110, 154


def rows(classes, n, seed, change=10**6):
    """Rows of 4 columns with ties, and their labels, or numbers, which change from some row on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    if classes is float:
        return X, (X[:, 0] + rng.normal(size=n) + 4 * (np.arange(n) >= change)).tolist()
    scores = 4 * X @ np.random.default_rng(9).normal(size=(4, classes)) + rng.gumbel(size=(n, classes))
    return X, [f"c{code}" for code in (scores.argmax(axis=1) + (np.arange(n) >= change)) % classes]


def fitted(estimator, classes=2):
    return estimator.fit(*rows(classes, 300, 1))


def singly(monkeypatch):
    """Let each part be asked and taught by itself."""
    monkeypatch.setattr(RowStep, "of", classmethod(lambda cls, learners: None))


def gone_through(make, X, y):
    """What is said of rows in turn, and what is left: a file, alarms, verdict."""
    model, said = make(), []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i % 3:  # some rows are learned without having been asked about
            said.append(str(model.predict_one(x).to_dict()))
        if i % 5 == 2:  # and some as a server does it
            model.learn_one(x, label, model.prepare(x, label))
        else:
            model.learn_one(x, label)
    monitors = model.monitors.values()
    watched = [(one.alarms, str(one.snapshot())) for one in monitors]
    return said, checkpoint.pack(model), watched, str(model.verdict())


CASES = {
    "log odds": (2, lambda: Forecaster(scorer=fitted(LogisticRegression()))),
    "no probabilities": (2, lambda: Forecaster(scorer=fitted(LinearSVC()), on_change="keep")),
    "forest": (3, lambda: Forecaster(scorer=fitted(FOREST, 3), measure=APS(), floor=0.6)),
    "nine classes": (9, lambda: Forecaster(NINE, scorer=fitted(FOREST, 9))),
    "own machines": (2, lambda: Forecaster(["c0", "c1"], **LATE)),
    "regressor": (float, lambda: Forecaster(scorer=fitted(RandomForestRegressor(8, random_state=0), float))),
    "numbers": (float, lambda: Forecaster(float, **LATE)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_row_goes_as_each_part_takes_it(case, monkeypatch):
    """Across fits of the pool, trainings, and an alarm at which it begins anew."""
    classes, make = CASES[case]
    data = rows(classes, N, 2, CHANGE)
    together = gone_through(make, *data)
    singly(monkeypatch)
    assert gone_through(make, *data) == together


def test_rows_are_taken_by_the_step_and_not_by_each_part(monkeypatch):
    """Otherwise the other tests would compare nothing."""
    monkeypatch.delattr(Inductive, "commit")
    monkeypatch.delattr(InductiveVennAbers, "predict_one")
    model = Forecaster(scorer=fitted(LogisticRegression()))
    gone_through(lambda: model, *rows(2, 40, 2))
    assert model.n == 40


def test_a_step_that_leaves_out_a_mixture_says_something_else(monkeypatch):
    """The comparison above sees it."""
    make, data = CASES["log odds"][1], rows(2, 60, 2)
    right = gone_through(make, *data)
    monkeypatch.setattr(ExpertMixture, "weigh_heard", lambda self, codes, heard: None)
    assert gone_through(make, *data) != right


def test_what_was_noted_before_others_were_learned_is_weighed_as_it_was_noted(monkeypatch):
    """Mixtures weigh what was heard then; all else learns as it is now."""

    def through():
        model = Forecaster(scorer=fitted(LogisticRegression()))
        X, y = rows(2, 60, 2)
        noted = model.prepare(X[0], y[0])
        for x, label in zip(X[1:], y[1:], strict=True):
            model.learn_one(x, label)
        model.learn_one(X[0], y[0], noted)
        return checkpoint.pack(model)

    together = through()
    singly(monkeypatch)
    assert through() == together


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [([1.0, 2.0], "c0", "4 features"), ([1.0, np.nan, 0.0, 0.0], "c0", "finite"), ([0.0] * 4, "c7", "c7")],
)
def test_a_refused_row_leaves_all_as_it_was(x, y, said):
    model = Forecaster(scorer=fitted(LogisticRegression()))
    gone_through(lambda: model, *rows(2, 30, 2))
    before = checkpoint.pack(model)
    for refused in (lambda: model.learn_one(x, y), lambda: model.prepare(x, y)):
        with pytest.raises(ValueError, match=said):
            refused()
    assert checkpoint.pack(model) == before


def test_what_one_part_fails_at_the_others_learn(monkeypatch):
    """The error is raised after all have learned, and the monitors have seen the row."""

    def fail(self, *given):
        raise NotConverged("no training today")

    model = Forecaster(scorer=fitted(LogisticRegression()))
    gone_through(lambda: model, *rows(2, 30, 2))
    with monkeypatch.context() as spoilt:
        spoilt.setattr(type(model["sets"]), "learn_row", fail)
        with pytest.raises(NotConverged, match="today"):
            model.learn_one([0.0] * 4, "c1")
    assert (model.n, model["sets"].n, model.monitors["sets"].n) == (31, 30, 31)


def test_a_note_of_another_forecaster_is_refused():
    one, other = (Forecaster(scorer=fitted(LogisticRegression())) for _ in range(2))
    with pytest.raises(ValueError, match="prepared"):
        one.learn_one([0.0] * 4, "c1", other.prepare([0.0] * 4, "c1"))
    assert one.n == 0


def test_whoever_looks_at_a_monitor_between_rows_changes_nothing():
    """Curves take steps in together; whoever reads them gets all."""
    X, y = rows(2, 100, 2)
    alone, looked = (Forecaster(scorer=fitted(LogisticRegression())) for _ in range(2))
    for i in range(100):
        for model in (alone, looked):
            model.learn_one(X[i], y[i])
        for monitor in looked.monitors.values() if i % 7 == 3 else ():
            assert monitor.n == i + 1
            monitor.snapshot()
            monitor.figures()
    assert checkpoint.pack(alone) == checkpoint.pack(looked)
    assert str(alone.monitors["intervals"].snapshot()) == str(looked.monitors["intervals"].snapshot())
