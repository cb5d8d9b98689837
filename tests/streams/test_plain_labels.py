"""Labels that come as scalars of numpy or Arrow are Python's own values, wherever classes are given."""

import json

import numpy as np
import pytest

import streams
import venn
from venn.labels import Classes

PLAIN = {"str": ["down", "up"], "int": [0, 1], "float": [1.5, 2.5], "bool": [False, True]}


def arrow(labels):
    return list(pytest.importorskip("pyarrow").array(labels))


WAYS = {
    "sorted": lambda labels: sorted(set(np.array(labels))), "list": lambda labels: list(np.unique(labels)),
    "array": np.array, "arrow": arrow,
}  # fmt: skip


def of_machine(classes):
    return venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, classes))


TAKE = {
    "Classes": lambda classes: Classes(classes).labels,
    "machine": lambda classes: venn.LeastSquaresSVM(venn.Linear(), 1.0, classes).classes,
    "conformal": lambda classes: of_machine(classes).classes,
    "forecaster": lambda classes: venn.Forecaster(classes).classes,
    "prediction": lambda classes: venn.PredictionSet([0.5, 0.5], classes).classes,
    "form": lambda classes: streams.Form(classes=classes).classes,
}


@pytest.mark.parametrize("take", TAKE.values(), ids=TAKE)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("kind", PLAIN)
def test_classes_are_values_of_python(kind, way, take):
    found = take(way(PLAIN[kind]))
    assert list(found) == PLAIN[kind]
    assert [type(label) for label in found] == [type(label) for label in PLAIN[kind]]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_label_may_come_as_such_a_scalar(way):
    model = of_machine(["down", "up"])
    for x, y in zip(range(4), 2 * [*way(["down", "up"])], strict=True):
        model.learn_one([float(x)], y)
    assert repr(model) == repr(of_machine(way(["down", "up"])))
    assert json.dumps(model.predict_one([1.0]).label) in ('"down"', '"up"')
    with pytest.raises(ValueError, match=r"one of the classes \['down', 'up'\]"):
        model.learn_one([0.0], np.str_("left"))


def test_a_journal_goes_on_however_its_classes_come(tmp_path):
    for turn, classes in enumerate([list(np.unique(["down", "up"])), ["down", "up"], np.array(["down", "up"])]):
        with venn.Online(of_machine(classes), journal=tmp_path / "run.db") as online:
            assert len(online.pending) == 0
            online.ask([float(turn)], id=turn)
            online.answer(turn, classes[turn % 2])


def test_a_journal_that_kept_scalars_of_numpy_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("venn.parameters.python_value", lambda value: value)
    with venn.Online(of_machine(list(np.unique(["down", "up"]))), journal=tmp_path / "run.db") as online:
        online.ask([0.0], id="first")
    assert "np.str_" in repr(of_machine(list(np.unique(["down", "up"]))))
    monkeypatch.undo()
    with venn.Online(of_machine(["down", "up"]), journal=tmp_path / "run.db") as online:
        online.answer("first", "up")
