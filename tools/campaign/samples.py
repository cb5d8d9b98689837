"""What the campaign calls with and on: small examples, files, and things that have learned something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from test_contract import CLASSES, small_stream, squares

import streams
import venn

X, Y = small_stream(0, 20)
CODES = np.array([CLASSES.index(label) for label in Y])
P = np.random.default_rng(0).dirichlet(np.ones(3), 20)
NUMBERS = np.tile(X, (3, 1))[:56], np.tile(CODES, 3)[:56] + 0.5 * (np.arange(56) % 3)  # past a fit and a training


def frozen() -> Any:
    return venn.FrozenScorer(LinearSVC().fit(X, Y))


def file(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def csv() -> str:
    return file("good.csv", "a,b,label\n1,2,x\n2,1,y\n0,0,x\n")


def lines() -> str:
    return file("good.jsonl", '{"id": 1, "x": [0.5, 1.0]}\n{"id": 1, "y": "a"}\n')


def online() -> Any:
    made = venn.Online(venn.TransductiveVenn(squares()), venn.Monitor(CLASSES))
    for x, y in zip(X[:6], Y[:6], strict=True):
        made.ask(x)
        made.answer(made.asked, y)
    made.ask(X[6], "open")
    return made


def record() -> Any:
    return venn.replay(
        zip(X, Y, strict=True), venn.Panel(TransductiveVenn=venn.TransductiveVenn(squares())), progress=False
    )


def stream() -> Any:
    return streams.from_arrays(X, Y, classes=CLASSES)


def block() -> Any:
    model = venn.InductiveVenn(frozen())
    model.learn_many(X, Y)
    return model.predict_many(X)


def sets() -> Any:
    model = venn.InductiveConformal(frozen())
    model.learn_many(X, Y)
    return model.predict_many(X)


def carded(kind: Any, of: Any) -> Any:
    card = kind(CLASSES)
    card.update_many(of(), CODES)
    return card


def journal() -> Any:
    online = venn.Online(venn.TransductiveVenn(squares()), venn.Monitor(CLASSES), "some.db")
    online.ask(X[0], 1)
    online.answer(1, "a")
    online.close()
    return Path("some.db")


def abers() -> Any:
    made = venn.maps.VennAbers()
    made.insert_many(P[:, 0], CODES == 0)
    return made


def updated(monitor: Any, steps: Any) -> Any:
    for step in steps:
        monitor.update(*step)
    return monitor


def fitted(estimator: Any) -> Callable[[], Any]:
    return lambda: estimator().fit(X, Y)


def river() -> Any:
    model = venn.RiverClassifier(venn.TransductiveVenn(squares()))
    for row, y in zip(X[:8], Y[:8], strict=True):
        model.learn_one(dict(zip("pq", row.tolist(), strict=True)), y)
    return model
