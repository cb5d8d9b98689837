"""Labels late, out of order, twice, never, unknown: each prediction is that of a predictor made anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from conftest import OBJECTS, objects
from naive import late
from test_late_labels import CLASSES, MAKERS, state

import venn
from venn.online.chain import encode
from venn.online.checkpoint import pack

from .tally import Tally

REFUSED = (ValueError, TypeError)


def trial(rng: np.random.Generator, tally: Tally) -> None:
    name = str(rng.choice(list(MAKERS)))
    n = int(rng.integers(1, 15))
    X = objects(str(rng.choice(OBJECTS)), rng, n)
    y = [CLASSES[k] for k in rng.integers(0, 3, n)]
    journaled = rng.random() < 0.5
    patience = int(rng.integers(1, 10)) if rng.random() < 0.3 else None
    path = Path("run.db")

    def start() -> venn.Online:
        journal = venn.online.Journal(path, every=int(rng.integers(1, 20)), share=1) if journaled else None
        return venn.Online(MAKERS[name](), venn.Monitor(CLASSES), journal, patience=patience)

    online = start()
    plain: list[tuple[object, ...]] = []
    said, waiting, done = [], [], []
    asked = 0
    while asked < n or (waiting and rng.random() < 0.8):
        what = rng.random()
        if what < 0.45 and asked < n:
            said.append(online.ask(X[asked], asked))
            plain.append(("ask", asked, X[asked]))
            waiting.append(asked)
            asked += 1
            if patience is not None:
                done += [i for i in waiting if asked - i > patience]
                waiting = [i for i in waiting if asked - i <= patience]
        elif what < 0.8 and waiting:
            i = waiting.pop(int(rng.integers(len(waiting))))
            online.answer(i, y[i])
            plain.append((i, y[i]))
            done.append(i)
        elif what < 0.95:
            refuse(online, n, asked, waiting, done, rng, tally)
        elif journaled:
            online.close() if rng.random() < 0.5 else online.journal.close()
            online = start()
    tally.same(set(online.pending) == set(waiting), "who waits", (online.pending, waiting))
    for step, (ours, theirs) in enumerate(zip(said, late.predictions(MAKERS[name], plain), strict=True)):
        tally.same(encode({"": ours}) == encode({"": theirs}), f"{name}: a prediction", (step, ours, theirs, plain))
    expected = venn.Monitor(CLASSES)
    answered = [event for event in plain if len(event) == 2]
    for (_, label), prediction in zip(answered, late.now(MAKERS[name], plain), strict=True):
        expected.update(prediction, label)
    monitor = next(iter(online.monitors.values()))
    tally.same(pack(monitor) == pack(expected), f"{name}: what the monitor has heard", plain)
    if journaled:
        online.close()


def refuse(
    online: venn.Online, n: int, asked: int, waiting: list[int], done: list[int], rng: np.random.Generator, tally: Tally
) -> None:
    """Do something that must be refused; nothing may change."""
    before = state(online)
    kind = int(rng.integers(6))
    attempts = {
        0: lambda: online.answer(n + 7, "a"),
        1: lambda: online.answer(done[int(rng.integers(len(done)))], "a") if done else online.answer("x", "a"),
        2: lambda: online.answer(waiting[0], "unknown") if waiting else online.answer(None, "a"),
        3: lambda: online.ask([float("nan")] * 2, "new"),
        4: lambda: online.ask([0.5, 1.0, 2.0, 3.0, 4.0], "new") if online.answered else online.ask([], "new"),
        5: lambda: online.ask([0.5, 1.0], waiting[0]) if waiting else online.expire("nobody"),
    }
    try:
        attempts[kind]()
    except REFUSED:
        tally.same(state(online) == before, f"refused ({kind}), and something has changed", (kind, online))
        return
    tally.fail(f"not refused ({kind})", (online, asked, waiting, done))
