"""A question is made once: whoever answers it, a machine cleans its object once."""

from __future__ import annotations

import numpy as np
import pytest

import venn
from venn.machines.store import Storing

CLASSES = ("no", "yes")
ROWS = np.random.default_rng(0).normal(size=(40, 3))
LABELS = [CLASSES[int(x[0] > 0)] for x in ROWS]


def panel():
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=CLASSES)
    return venn.Panel(abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine))


@pytest.mark.parametrize(("make", "asking", "learning"), [(panel, 1, 1), (lambda: venn.Forecaster(CLASSES), 1, 0)])
def test_a_machine_cleans_the_object_of_a_question_once(make, asking, learning, monkeypatch):
    model, cleaned = make(), []
    for x, y in zip(ROWS[:30], LABELS[:30], strict=True):
        model.learn_one(x, y)
    own = Storing._kept  # noqa: SLF001
    monkeypatch.setattr(Storing, "_kept", lambda self, x: cleaned.append(x) or own(self, x))
    for x, y in zip(ROWS[30:], LABELS[30:], strict=True):
        cleaned.clear()
        model.predict_one(x)
        assert len(cleaned) == asking
        cleaned.clear()
        model.learn_one(x, y)
        assert len(cleaned) == learning


def test_what_was_noted_before_the_scale_was_fixed_is_cleaned_again():
    def on_scale():
        machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=CLASSES, scale=venn.machines.Scale(first=5))
        model = venn.Panel(abers=venn.TransductiveVennAbers(machine))
        for x, y in zip(ROWS[:4], LABELS[:4], strict=True):
            model.learn_one(100 * x, y)
        return model

    early, late = on_scale(), on_scale()
    prepared = early.prepare(100 * ROWS[5], LABELS[5])
    for model in (early, late):
        model.learn_one(100 * ROWS[4], LABELS[4])
    early.learn_one(100 * ROWS[5], LABELS[5], prepared)
    late.learn_one(100 * ROWS[5], LABELS[5])
    for model in (early, late):
        for x, y in zip(ROWS[6:12], LABELS[6:12], strict=True):
            model.learn_one(100 * x, y)
    one, other = (model["abers"].machine.scores(100 * ROWS[5]).tolist() for model in (early, late))
    assert one == other


def test_what_a_user_wrote_in_a_machine_gets_the_object_and_says_the_same():
    class Own(venn.LeastSquaresSVM):
        def hypotheses(self, x, weight=1.0):
            assert isinstance(x, np.ndarray)
            return super().hypotheses(x, weight)

    ours = panel()
    machine = Own(venn.RBF(0.5), C=10, classes=CLASSES)
    theirs = venn.Panel(abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine))
    for x, y in zip(ROWS, LABELS, strict=True):
        one, other = ours.predict_one(x), theirs.predict_one(x)
        assert one["abers"].intervals.tolist() == other["abers"].intervals.tolist()
        assert one["sets"].p_values.tolist() == other["sets"].p_values.tolist()
        ours.learn_one(x, y)
        theirs.learn_one(x, y)
