"""Count what one step calls: functions of ours, the files they stand in, moves from one file to another.

    python -m tools.walk

Few files and few moves mean that a reader who follows a step has little to open. The step is number 101 of Car, after
100 like it; of the forecaster around a given forest it is one of many learned in blocks. Compiled loops count as one
call each, comprehensions not at all.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import streams
import venn
from tools import ROOT

STEP = 101
OURS = tuple(f"{ROOT / package}/" for package in ("venn", "streams"))


class Walk(NamedTuple):
    """What a call has gone through.

    Attributes
    ----------
    calls : int
        Calls of our functions.
    files : int
        Files in which these stand.
    moves : int
        Times that the next function called stands in another file than the last.
    """

    calls: int
    files: int
    moves: int


def walked(call: Callable[[], Any]) -> Walk:
    """Call something, and return what it went through.

    >>> walked(lambda: venn.RBF(0.5)).files > 0
    True
    """
    files: list[str] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and not code.co_name.startswith("<"):
            files.append(code.co_filename)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(len(files), len(set(files)), sum(one != other for one, other in pairwise(files)))


def steps() -> Iterator[tuple[str, Walk]]:
    """Return the calls of the table, by name, with what each went through."""
    examples = list(streams.load("car", shuffle=0).take(STEP))
    classes = streams.load("car").classes
    (*before, (x, y)) = examples

    def transductive() -> Any:
        machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=classes)
        return venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax()))

    for name, model in {"TransductiveVenn": transductive(), "Forecaster": venn.Forecaster(classes)}.items():
        for each, label in before:
            model.predict_one(each)
            model.learn_one(each, label)
        yield f"{name}.predict_one", walked(partial(model.predict_one, x))
        yield f"{name}.learn_one", walked(partial(model.learn_one, x, y))
    with tempfile.TemporaryDirectory() as folder:
        journal, monitor = Path(folder) / "run.db", {"TransductiveVenn": venn.Monitor(classes)}
        with venn.Online(transductive(), monitor, journal) as online:
            for i, (each, label) in enumerate(before):
                online.ask(each, i)
                online.answer(i, label)
            yield "Online.ask", walked(lambda: online.ask(x, STEP))
            yield "Online.answer", walked(lambda: online.answer(STEP, y))
    late, (first, _), (second, label) = late_forecaster(), *before[:2]
    late.predict_one(first)
    yield "given forest: predict_one", walked(partial(late.predict_one, second))
    yield "given forest: learn_one", walked(partial(late.learn_one, second, label))
    yield "given forest: both", walked(lambda: (late.predict_one(x), late.learn_one(x, y)))


def late_forecaster() -> Any:
    """Return a forecaster around a forest, which has learned a thousand examples."""
    from sklearn.ensemble import RandomForestClassifier

    car = list(streams.load("car", shuffle=0).take(1700))
    objects, labels = [x for x, _ in car], [y for _, y in car]
    forest = RandomForestClassifier(100, random_state=0, n_jobs=1).fit(objects[:500], labels[:500])
    model = venn.Forecaster(scorer=forest)
    model.learn_many(objects[500:1500], labels[500:1500])
    return model


def main() -> None:
    print(f"{'call':<30}{'calls':>7}{'files':>7}{'moves':>7}")
    for name, walk in steps():
        print(f"{name:<30}{walk.calls:>7}{walk.files:>7}{walk.moves:>7}")


if __name__ == "__main__":
    main()
