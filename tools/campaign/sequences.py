"""Adversaries who see what was said: the theorems without probability hold at every step of any stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from conftest import OBJECTS, objects
from test_contract import CLASSES

import venn
from venn.predictors import Adaptive, calibeating
from venn.predictors.adaptive import ConstantSteps, DecayingSteps

from .tally import Tally


def contrary(worth: np.ndarray, rng: np.random.Generator) -> int:
    """The label that was thought least likely."""
    return int(worth.argmin())


def helpful(worth: np.ndarray, rng: np.random.Generator) -> int:
    """The label that was thought most likely, to draw thresholds the other way."""
    return int(worth.argmax())


def coin(worth: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.integers(len(worth)))


def in_turns(worth: np.ndarray, rng: np.random.Generator) -> int:
    """Some steps against what was said, some with it."""
    return contrary(worth, rng) if rng.random() < 0.5 else helpful(worth, rng)


ADVERSARIES: tuple[Callable[[np.ndarray, np.random.Generator], int], ...] = (contrary, helpful, coin, in_turns)


def trial(rng: np.random.Generator, tally: Tally) -> None:
    n = int(rng.integers(20, 120))
    X = objects(str(rng.choice(OBJECTS)), rng, n)
    adversary = ADVERSARIES[rng.integers(len(ADVERSARIES))]
    (adaptive, by_bins)[rng.integers(2)](X, adversary, rng, tally)


def adaptive(X: np.ndarray, adversary: Any, rng: np.random.Generator, tally: Tally) -> None:
    """Errors of adaptive sets at each level keep their bound after each label, also where labels are late."""
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=1.0, classes=CLASSES)
    levels = sorted(rng.choice([0.01, 0.05, 0.1, 0.2, 0.5], int(rng.integers(1, 4)), replace=False).tolist())
    size = float(rng.choice([0.005, 0.05, 0.5]))
    steps = ConstantSteps(size) if rng.random() < 0.5 else DecayingSteps(size)
    model = Adaptive(venn.Conformal(machine), levels, steps)
    online = venn.Online(model)
    waiting: list[tuple[int, int]] = []
    for i, x in enumerate(X):
        said: venn.PredictionSet = online.ask(x, i)
        waiting.append((i, adversary(said.p_values, rng)))
        while waiting and rng.random() < 0.7:
            step, code = waiting.pop(int(rng.integers(len(waiting))))
            online.answer(step, CLASSES[code])
            for one in model.certificates:
                off = abs(one.errors - one.level * one.n)
                tally.same(off <= one.bound + 1e-6, "adaptive: errors beyond their bound", (i, one, levels, steps))


def by_bins(X: np.ndarray, adversary: Any, rng: np.random.Generator, tally: Tally) -> None:
    """A Venn predictor on a given scorer with fixed bins keeps near the best constants by bin."""
    centres = rng.normal(size=(3, X.shape[1]))

    class Scorer:
        classes_ = np.array(CLASSES)

        def decision_function(self, X: np.ndarray) -> np.ndarray:
            return -((np.asarray(X)[:, None] - centres) ** 2).sum(axis=2)

        def predict(self, X: np.ndarray) -> np.ndarray:
            return self.classes_[self.decision_function(X).argmax(axis=1)]

    model = venn.InductiveVenn(venn.FrozenScorer(Scorer()), venn.Argmax())
    for i, x in enumerate(X):
        model.learn_one(x, CLASSES[adversary(model.predict_one(x).proba, rng)])
        found = calibeating(model)
        tally.same(found.regret <= found.bound + 1e-6, "calibeating: beyond its bound", (i, found))
