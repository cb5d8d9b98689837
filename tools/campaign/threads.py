"""Threads that share a model, beside one that does the same alone."""

from __future__ import annotations

import numpy as np
import test_turns

from venn.description import same_content
from venn.turns import turn_of

from .tally import Tally


def threads(rng: np.random.Generator, tally: Tally) -> None:
    """Four threads ask while one learns: each answer is that of a state between two examples."""
    name = str(rng.choice(list(test_turns.MODELS)))
    model, told, done = test_turns.MODELS[name](), [], []
    shown = test_turns.examples_for(model)
    held = int(rng.integers(0, 12))
    test_turns.taught(model, shown[:held])
    ask, several = test_turns.asking(model), hasattr(model, "predict_many") and rng.random() < 0.3
    orders = [rng.permutation(len(test_turns.ASKED)).tolist() for _ in range(4)]

    def question(order: list[int]) -> None:
        while len(done) < len(shown) - held:
            for i in order[:2]:
                before = len(done)
                told.append((i, before, ask(test_turns.ASKED[i]), len(done)))

    def teach() -> None:
        for x, y in shown[held:]:
            if several:
                model.predict_many(test_turns.ASKED)
            with turn_of(model):
                model.learn_one(x, y)
                done.append(None)

    test_turns.together(teach, *[lambda one=one: question(one) for one in orders])
    twin = test_turns.taught(test_turns.MODELS[name](), shown[:held])
    said = [[test_turns.asking(twin)(x) for x in test_turns.ASKED]]
    for x, y in shown[held:]:
        twin.learn_one(x, y)
        said.append([test_turns.asking(twin)(x) for x in test_turns.ASKED])
    for i, first, found, last in told[:: max(1, len(told) // 100)]:
        # The teacher writes down that it has learned before its turn ends, so its latest word may be heard early.
        tally.same(any(same_content(found, one[i]) for one in said[first : last + 2]), f"threads: {name}", (i, found))
    tally.same(same_content(ask(test_turns.ASKED[0]), said[-1][0]), f"threads: {name} at last", held)
