"""A journal goes on with the same own models made anew, wherever these lie in memory."""

import gc

import numpy as np
import pytest
from conftest import halved
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import venn
from venn.online import checkpoint, loop


class Bare:
    """A scorer without a repr of its own."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        first = np.clip(np.asarray(X, float)[:, 0], 0.1, 0.9)
        return np.c_[1 - first, first]


class Told(Bare):
    """One whose repr holds an address, of itself or of a part."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text.format(self=self, address=hex(id(self)), part=object())


def through_a_function():
    def half(X):
        return np.asarray(X) / 2

    model = make_pipeline(FunctionTransformer(half), LogisticRegression())
    return model.fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])


SCORERS = {
    "bare": Bare, "function": through_a_function, "bare address": lambda: Told("Told({address})"),
    "part": lambda: Told("Told(part={part!r})"),
}  # fmt: skip
PREDICTORS = {
    "forecaster": lambda scorer: venn.Forecaster(scorer=scorer),
    "abers": lambda scorer: venn.InductiveVennAbers(venn.FrozenScorer(scorer)),
    "handed over": lambda scorer: venn.predictors.Switch(
        venn.InductiveConformal(venn.FrozenScorer(scorer)),
        venn.InductiveConformal(
            venn.LeastSquaresSVM(venn.Linear(), 1.0, ["no", "yes"]), schedule=venn.schedules.Prefix(0.5, first=4)
        ),
    ),
}


@pytest.mark.parametrize(("scorer", "predictor"), halved(SCORERS, PREDICTORS))
def test_a_run_goes_on_with_its_model_made_anew(scorer, predictor, tmp_path):
    alive = []  # so that no two lie at one address
    for life in range(3):
        alive.append(SCORERS[scorer]())
        gc.collect()
        with venn.Online(PREDICTORS[predictor](alive[-1]), journal=tmp_path / "run.db") as online:
            assert online.asked == 2 * life
            for i in range(2):
                online.ask([i / 2], f"{life} {i}")
                online.answer(f"{life} {i}", "yes")
    alive.append(type("Other", (Bare,), {})())
    with pytest.raises(venn.online.JournalError, match="must hold a run"):
        venn.Online(PREDICTORS[predictor](alive[-1]), journal=tmp_path / "run.db")


def test_a_journal_of_another_version_goes_on_where_its_predictions_are_the_same(tmp_path, monkeypatch):
    """Its objects are described in other words, and its checkpoints cannot be read: all is learned again."""

    def run(path, steps, gamma=1.0):
        model = venn.Conformal(venn.LeastSquaresSVM(venn.RBF(gamma), 1.0, ["no", "yes"]))
        with venn.Online(model, venn.Monitor(model.classes), journal=path) as online:
            for i in steps:
                online.ask([i % 5 / 5], i)
                online.answer(i, "yes" if i % 5 > 2 else "no")
            return checkpoint.pack(online.panel), checkpoint.pack(dict(online.monitors))

    with monkeypatch.context() as before:
        before.setattr(checkpoint, "VERSION", 1)
        before.setattr(loop, "described", lambda thing: f"<{type(thing).__name__}>")
        run(tmp_path / "run.db", range(20))
    assert run(tmp_path / "run.db", range(20, 30)) == run(tmp_path / "undisturbed.db", range(30))
    with pytest.raises(venn.online.JournalError, match=r"holds another one\. If another version of venn wrote it"):
        run(tmp_path / "run.db", range(30, 31), gamma=2.0)
