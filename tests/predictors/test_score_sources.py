"""Where a scaler's scores come from: equal to their definitions after every step."""

import numpy as np
import pytest
from naive import scaling as naive
from sklearn.svm import LinearSVC

import venn

CLASSES = ("a", "b", "c")
SOURCES = {
    "training": venn.predictors.TrainingScores(),
    "leave_one_out": venn.predictors.LeaveOneOutScores(),
    "restart": venn.predictors.HeldOutScores(venn.schedules.PrefixRestart(first=5, growth=1.5)),
    "assigned": venn.predictors.HeldOutScores(venn.schedules.RandomAssignment(0.4, seed=3, first=4)),
    "fresh": venn.predictors.HeldOutScores(venn.schedules.FreshSplit(0.4, seed=1)),
    "cross": venn.predictors.CrossFittedScores(3, seed=2, first=4, growth=1.5, last=20),
}


def squares():
    return venn.LeastSquaresSVM(venn.RBF(0.7), C=5, classes=CLASSES)


def examples(n=36, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)) / 2
    y = np.where(rng.random(n) < 0.7, X.sum(axis=1).astype(int), rng.integers(0, 3, n))
    return X, [CLASSES[k % 3] for k in y]


def trained(X, y, rows):
    machine = squares()
    for i in rows:
        machine.learn_one(X[i], y[i])
    return machine


def expected_forecast(rows, y, test_scores):
    """Platt scaling by definition, of rows (score, example); uniform without any."""
    if not rows:
        return np.full(3, 1 / 3)
    scores = np.array([score for score, _ in rows]).T
    return naive.forecast(naive.platt, scores, [CLASSES.index(y[i]) for _, i in rows], test_scores)


def says_then_learns(model, rows, y, n, test_scores):
    """Compare the forecast of example n with Platt scaling of rows (score, example), and learn it."""
    x = examples()[0][n]
    expected = expected_forecast(rows, y, test_scores)
    np.testing.assert_allclose(model.predict_one(x).proba, expected, rtol=0, atol=1e-7)
    model.learn_one(x, y[n])


def test_scores_held_out_by_a_fixed_assignment():
    """Each example is drawn into the calibration set once; the machine is trained at 4, 8, 16 and 32."""
    X, y = examples()
    model = venn.ScoreCalibrator(squares(), venn.maps.Platt(), SOURCES["assigned"])
    calibrates = np.random.default_rng(3).random(len(X)) < 0.4
    for n in range(len(X)):
        size = max((t for t in (0, 4, 8, 16, 32) if t <= n), default=0)
        machine = trained(X, y, [i for i in range(size) if not calibrates[i]])
        rows = [(machine.scores(X[i]), i) for i in range(n) if calibrates[i]] if machine.n else []
        says_then_learns(model, rows, y, n, machine.scores(X[n]))


def test_scores_held_out_after_each_training():
    X, y = examples()
    model = venn.ScoreCalibrator(squares(), venn.maps.Platt(), SOURCES["restart"])
    for n in range(len(X)):
        size = max((t for t in (0, 5, 7, 10, 15, 22, 33) if t <= n), default=0)
        machine = trained(X, y, range(size))
        rows = [(machine.scores(X[i]), i) for i in range(size, n)] if size else []
        says_then_learns(model, rows, y, n, machine.scores(X[n]))


def test_cross_fitted_scores():
    """Held-out scores of every fold, pooled; the new object's score by the machine that knows all."""
    X, y = examples()
    model = venn.ScoreCalibrator(squares(), venn.maps.Platt(), SOURCES["cross"])
    fold = np.floor(np.random.default_rng(2).random(len(X)) * 3)
    for n in range(len(X)):
        size = max((t for t in (0, 4, 6, 9, 13, 19) if t <= n), default=0)  # 28 is beyond the last
        rows = []
        for k in range(3):
            machine = trained(X, y, [i for i in range(size) if fold[i] != k])
            rows += [(machine.scores(X[i]), i) for i in range(n) if fold[i] == k and machine.n]
        says_then_learns(model, rows, y, n, trained(X, y, range(n)).scores(X[n]))


def test_a_scorer_fitted_elsewhere():
    X, y = examples()
    scorer = venn.FrozenScorer(LinearSVC().fit(X[:15], y[:15]))
    model = venn.ScoreCalibrator(scorer, venn.maps.Platt(), venn.predictors.HeldOutScores())
    for n in range(15, len(X)):
        rows = [(scorer.scores(X[i]), i) for i in range(15, n)]
        says_then_learns(model, rows, y, n, scorer.scores(X[n]))
    with pytest.raises(TypeError, match="machine must be"):
        venn.ScoreCalibrator(scorer, venn.maps.Platt())


def test_the_same_map_on_all_sources_in_one_panel():
    """Alone or in a panel, with the machine shared where it can be, the forecasts are the same."""
    X, y = examples()
    shared = squares()
    panel = venn.Panel(
        **{name: venn.ScoreCalibrator(shared, venn.maps.Isotonic("linear"), source) for name, source in SOURCES.items()}
    )
    alone = {
        name: venn.ScoreCalibrator(squares(), venn.maps.Isotonic("linear"), source) for name, source in SOURCES.items()
    }
    seen = {name: [] for name in SOURCES}
    for x, label in zip(X, y, strict=True):
        for name, forecast in panel.predict_one(x).items():
            np.testing.assert_array_equal(forecast.proba, alone[name].predict_one(x).proba)
            seen[name].append(forecast.proba)
        panel.learn_one(x, label)
        for model in alone.values():
            model.learn_one(x, label)
    assert shared.n == len(X)
    assert len({np.array(values).tobytes() for values in seen.values()}) == len(SOURCES)
    assert {name for name, model in panel.items() if model.machine is None} == {"restart", "assigned", "fresh"}


@pytest.mark.parametrize("name", ["restart", "assigned", "fresh", "cross"])
def test_machines_that_have_learned_are_refused(name):
    machine = squares()
    machine.learn_one([0.0, 0.0], "a")
    with pytest.raises(ValueError, match="machine must have learned nothing"):
        venn.ScoreCalibrator(machine, venn.maps.Platt(), SOURCES[name])


def test_equal_machines_do_not_share_their_scores():
    """A machine may be equal to another by its parameters, and have learned other examples."""

    class ByParameters(venn.LeastSquaresSVM):
        def __eq__(self, other):
            return type(self) is type(other)

        def __hash__(self):
            return 0

    X, y = examples(12)
    machines = [ByParameters(venn.RBF(0.7), C=5, classes=CLASSES) for _ in range(2)]
    models = [venn.ScoreCalibrator(machine, venn.maps.Isotonic()) for machine in machines]
    for i in range(6):
        for model, at in zip(models, (i, 11 - i), strict=True):
            model.learn_one(X[at], y[at])
    for model, machine in zip(models, machines, strict=True):
        alone = venn.ScoreCalibrator(machine, venn.maps.Isotonic())  # reads the scores by itself
        np.testing.assert_array_equal(model.predict_one(X[3]).proba, alone.predict_one(X[3]).proba)


def test_cross_fitted_scores_need_every_example():
    machine = squares()
    model = venn.ScoreCalibrator(machine, venn.maps.Platt(), venn.predictors.CrossFittedScores())
    model.learn_one([0.0, 0.0], "a")
    machine.learn_one([1.0, 0.0], "b")
    with pytest.raises(RuntimeError, match="all 2 examples of its machine, got a fit to 1: share a machine"):
        model.predict_one([0.0, 0.0])
    with pytest.raises(RuntimeError, match="must learn all 3 examples of its machine, got 2"):
        model.learn_one([0.0, 1.0], "b")


class Failing(venn.LeastSquaresSVM):
    """Its second training fails."""

    trained = 0

    def fresh(self):
        return self

    def expect_training(self):
        pass  # it has learned

    def learn_one(self, x, y):
        if self.n == 3:
            raise venn.machines.NotConverged("not today")
        super().learn_one(x, y)


def test_a_failed_training_is_reported_and_the_example_learned():
    machine = Failing(venn.RBF(1.0), C=1, classes=CLASSES)
    model = venn.ScoreCalibrator(
        machine, venn.maps.Platt(), venn.predictors.HeldOutScores(venn.schedules.PrefixRestart(first=2))
    )
    X, y = examples(8)
    for i in range(3):
        model.learn_one(X[i], y[i])
    assert not np.allclose(model.predict_one(X[0]).proba, 1 / 3)
    with pytest.raises(venn.machines.NotConverged, match="not today"):
        model.learn_one(X[3], y[3])
    assert model.n == 4
    np.testing.assert_array_equal(model.predict_one(X[0]).proba, 1 / 3)  # no scorer: nothing is said


class Sulking(venn.LeastSquaresSVM):
    """Cannot be trained while `sulks`."""

    sulks = False

    def learn_one(self, x, y):
        if self.sulks:
            raise venn.machines.NotConverged("not today")
        super().learn_one(x, y)

    def fresh(self):
        return Sulking(self.kernel, C=self.C, classes=self.classes)


def test_after_a_failed_training_every_fold_has_the_example(monkeypatch):
    X, y = examples(30)
    machine = squares()
    machine.fresh = Sulking(venn.RBF(0.7), C=5, classes=CLASSES).fresh
    model, untroubled = (venn.ScoreCalibrator(one, venn.maps.Platt(), SOURCES["cross"]) for one in (machine, squares()))
    for i in range(30):
        untroubled.learn_one(X[i], y[i])
        if i == 5:  # 6 examples: trainings of all folds
            monkeypatch.setattr(Sulking, "sulks", True)
            with pytest.raises(venn.machines.NotConverged, match="not today"):
                model.learn_one(X[i], y[i])
            monkeypatch.setattr(Sulking, "sulks", False)
        else:
            model.learn_one(X[i], y[i])
        assert model.n == i + 1
    expected = untroubled.predict_one(X[3]).proba
    np.testing.assert_allclose(model.predict_one(X[3]).proba, expected, rtol=0, atol=1e-10)  # fitted from elsewhere
