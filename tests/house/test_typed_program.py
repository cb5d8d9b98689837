"""A user's program. mypy reads it as strictly as it reads the packages, so that what is declared is also what comes."""

from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, Ridge

import streams
import venn
from venn.distribution import PredictiveDistribution
from venn.maps import Platt
from venn.monitors import Alarm, Verdict
from venn.online import NumberOutlook, Outlook
from venn.prediction import ClassIntervals, Label, Prediction

Floats = npt.NDArray[np.float64]


def test_a_forecaster_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,outcome\n" + "".join(f"{i / 40},{'yes' if i > 20 else 'no'}\n" for i in range(40)))
    stream = streams.from_csv(table, label="outcome", shuffle=0)
    assert_type(stream, streams.Stream)
    model = venn.Forecaster(stream.classes, first=2, floor=0.5)
    for x, y in stream:
        outlook: Outlook = model.predict_one(x)
        assert_type(outlook.proba, Floats)
        assert_type(outlook.intervals, Floats)
        assert_type(outlook.set(0.05), tuple[Label, ...])
        of_label: float = outlook[y]
        model.learn_one(x, y)
    assert_type(model.verdict(), Verdict)
    assert_type(model.monitors, dict[str, venn.Monitor])
    venn.save(tmp_path / "model", model)
    again: venn.Forecaster = venn.load(tmp_path / "model")
    assert_type(again.n, int)
    assert again.n == len(stream) == 40
    assert isinstance(outlook, Outlook)
    assert isinstance(of_label, float)


def test_a_forecaster_of_numbers() -> None:
    model = venn.Forecaster(float)
    for x, y in streams.waves(10, seed=0):
        model.learn_one(x, y)
    outlook: NumberOutlook = model.predict_one(x)
    low, high = outlook.interval(0.5)
    assert_type(low, float)
    assert_type(outlook.mean, float)
    assert low < high


def test_a_panel_whose_labels_come_late(tmp_path: Path) -> None:
    stream = streams.load("car", shuffle=0).take(20)
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=stream.classes)
    panel = venn.Panel(
        venn=venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())),
        platt=venn.ScoreCalibrator(machine, Platt()),
    )
    monitor = venn.Monitor(stream.classes)
    alarms: tuple[Alarm, ...] = ()
    with venn.Online(panel, journal=tmp_path / "run.db") as online:
        for event in streams.teach(stream, streams.Delayed(5)):
            if isinstance(event, streams.Question):
                said: dict[str, Prediction] = online.ask(event.x, id=event.id)
                asked = event.id
            else:
                alarms += online.answer(event.id, event.y)
        record = online.record()
    assert_type(record, venn.Record)
    assert_type(panel.predict_one(np.zeros(6)), dict[str, Prediction])
    alarms += monitor.update(said["venn"], stream.classes[0])
    assert not alarms
    assert asked == 20
    assert len(record.truth) == 20


def test_what_was_fitted_elsewhere() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    abers = venn.InductiveVennAbers(venn.FrozenScorer(LogisticRegression().fit(X[:30], y[:30])))
    abers.learn_one(X[30], bool(y[30]))
    intervals = abers.predict_one(X[31])
    assert_type(intervals, ClassIntervals)
    assert isinstance(intervals, ClassIntervals)
    around = venn.ConformalRegressor(Ridge(), cv=3).fit(X, X[:, 1])
    assert_type(around, venn.ConformalRegressor)
    assert_type(around.predict_interval(X), Floats)
    distributions = venn.ConformalRegressor().fit(X, X[:, 1]).predict_distribution(X[:2])
    assert_type(distributions, list[PredictiveDistribution])
    assert_type(venn.VennClassifier().fit(X, y).predict_proba(X), Floats)
    assert isinstance(distributions[0], PredictiveDistribution)
