"""Hostile arguments for everything public: taken, or refused in words that help, with nothing changed or lost."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from test_contract import learned, numbers

import streams
import venn
from venn.online import checkpoint

from . import subjects
from .hostile import VALUES
from .tally import Tally, place

REFUSALS = (
    ValueError, TypeError, KeyError, OSError, NotImplementedError,
    venn.online.JournalError, venn.machines.NotConverged, streams.BadMessage,
)  # fmt: skip
HANG = 20  # seconds
FUNCTIONS = subjects.functions()
BEYOND = (MemoryError, OverflowError)  # sizes that no memory holds; other overflows are failures


class Hangs(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def timed() -> Iterator[None]:
    """Raise `Hangs` in what takes too long by the clock, unless other programs had the processor."""
    begun, used = time.monotonic(), time.process_time()

    def ring(*_: Any) -> None:
        if time.process_time() - used < HANG / 2 and time.monotonic() - begun < 5 * HANG:
            signal.setitimer(signal.ITIMER_REAL, HANG)
            return
        raise Hangs

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def spoilt(makers: dict[str, Callable[[], Any]], rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, str]]:
    """Return arguments of which one or two are hostile, and the names of these."""
    chosen: dict[str, str] = {}
    if makers:
        most = 2 if rng.random() < 0.15 else 1
        for name in rng.choice(list(makers), min(most, len(makers)), replace=False).tolist():
            chosen[name] = str(rng.choice(list(VALUES)))
    given = {name: VALUES[chosen[name]]() if name in chosen else make() for name, make in makers.items()}
    return given, chosen


def bound(function: Any, given: dict[str, Any]) -> Any:
    """Call a function with arguments by name, those that go by place first."""
    positional, named = [], {}
    for one in inspect.signature(function).parameters.values():
        if one.name not in given:
            continue
        if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL):
            positional.append(given[one.name])
        else:
            named[one.name] = given[one.name]
    return function(*positional, **named)


def drained(result: Any) -> Any:
    """Take a few items of what is lazy, and close what was opened."""
    if inspect.isgenerator(result) or isinstance(result, Iterator):
        return [one for one, _ in zip(result, range(50), strict=False)]
    if isinstance(result, contextlib.AbstractContextManager) and hasattr(result, "gen"):
        with result as inside:
            return inside
    return result


def helpful(error: BaseException, function: Any) -> bool:
    """Whether a message names a parameter and says what was required or given; of a path Python says it."""
    text = str(error)
    if isinstance(error, OSError | UnicodeEncodeError) or "os.PathLike" in text or "null byte" in text:
        return True
    known = set(inspect.signature(function).parameters) | {"argument", "a machine", "journal"}
    named = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in known)
    says = any(word in text for word in ("must", "got", "cannot", "need", "not ", "no "))
    return named and says


def requirement(error: BaseException) -> str:
    """Return how a message begins: what is required, without what was given."""
    return str(error).partition(", got")[0].partition("\n")[0][:60]


def snapshot(subject: Any) -> Any:
    """Return what a subject has learned, as bytes or plain data, or None if there is no way to tell."""
    if isinstance(subject, venn.Online):
        return checkpoint.pack([subject.panel, subject.monitors, subject.told]), subject.pending, subject.asked
    if isinstance(subject, venn.Record):
        return len(subject), str(subject.means())
    try:
        return checkpoint.pack(subject)
    except (TypeError, ValueError):
        return None


def judge(
    name: str, function: Any, given: dict[str, Any], chosen: dict[str, str], tally: Tally, words: bool = True
) -> tuple[bool, Any]:
    """Make a call; return whether it was taken, and what it gave. What is wrong goes to the tally."""
    what = f"{name}({', '.join(chosen)})"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for category in (DeprecationWarning, FutureWarning, ResourceWarning):
            warnings.filterwarnings("ignore", category=category)
        try:
            with timed(), contextlib.redirect_stdout(io.StringIO()):
                result = drained(bound(function, given))
            taken, met = True, "taken"
        except Hangs:
            if "wait" in chosen:
                tally.note("waits as it was told")
            else:
                tally.fail(f"{what}: takes more than {HANG} s", chosen)
            return False, None
        except BEYOND as error:
            if isinstance(error, OverflowError) and "index-sized" not in str(error):
                tally.fail(f"{what}: OverflowError at {place(error)}", f"{chosen}: {error}")
            tally.note("out of memory")
            return False, None
        except REFUSALS as error:
            taken, result, met = False, None, f"{type(error).__name__}: {requirement(error)}"
            if words and not helpful(error, function):
                crude = f"{what}: a message that does not help, {type(error).__name__} at {place(error)}"
                tally.remark(crude, f"{chosen}: {error}")
        except Exception as error:
            sub = Tally()
            sub.escaped(error)
            tally.fail(f"{what}: {type(error).__name__} at {place(error)}", f"{chosen}\n{sub.failures[0][1]}")
            return False, None
        for one in said if words else ():
            # Scores come from machines, which check: of numbers that these never give there is only a warning.
            # Of numbers of more than 32 bits scikit-learn's trees warn before they refuse them.
            inner = name.endswith((".categories", ".margins")) or name.startswith("FrozenScorer of trees")
            inner = inner and one.category is RuntimeWarning
            (tally.remark if inner else tally.fail)(
                f"{what}: a warning, {one.category.__name__}", f"{chosen}: {one.message} {one.filename}:{one.lineno}"
            )
    tally.compared += 1
    tally.note("taken" if taken else "refused")
    tally.outcomes.append(f"{name}({', '.join(f'{one}: {value}' for one, value in chosen.items())}) {met}")
    return taken, result


def sane(name: str, result: Any, chosen: dict[str, str], tally: Tally) -> None:
    """Check that predictions about a hostile object are probabilities, too."""
    for one in result.values() if isinstance(result, dict) else [result]:
        if isinstance(one, venn.Multiprobability | venn.Forecast | venn.PredictionSet | venn.prediction.ClassIntervals):
            said = numbers(one)
            if said.dtype.kind not in "fiu":
                tally.fail(f"{name}: probabilities that are no numbers", f"{chosen}: {one!r}")
                continue
            tally.same(np.isfinite(said).all() and (said >= 0).all() and (said <= 1 + 1e-12).all(),
                       f"{name}: no probabilities", (chosen, one))  # fmt: skip


def used(name: str, made: Any, chosen: dict[str, str], tally: Tally) -> None:
    """Check that an object that was made can be shown, and learns and predicts, or refuses to."""
    try:
        repr(made)
        if type(made).__name__ in subjects.ESTIMATORS:
            return
        if hasattr(made, "learn_one") and not isinstance(made, venn.RiverClassifier):
            labels = [label for label in made.classes for _ in range(3)][:9] if hasattr(made, "classes") else []
            learned(made, subjects.X[: len(labels)], labels)
            ask = getattr(made, "predict_one", None) or made.hypotheses
            sane(name, ask(subjects.X[0]), chosen, tally)
        elif hasattr(made, "update") and hasattr(made, "log"):
            for p in (0.0, 0.3, 1.0):
                made.update(p)
        tally.compared += 1
    except (*REFUSALS, RuntimeError):
        tally.note("made, and refused in use")
    except BEYOND:
        tally.note("out of memory")
    except Exception as error:
        sub = Tally()
        sub.escaped(error)
        tally.fail(f"{name}({', '.join(chosen)}) is made and breaks in use: {type(error).__name__} at {place(error)}",
                   f"{chosen}\n{sub.failures[0][1]}")  # fmt: skip


def call_function(rng: np.random.Generator, tally: Tally, name: str) -> None:
    function = FUNCTIONS[name]
    makers = subjects.arguments(name.removeprefix("streams."), function)
    if makers is None:
        return
    for _ in range(8):
        given, chosen = spoilt(makers, rng)
        taken, result = judge(name, function, given, chosen, tally, name not in subjects.ESTIMATORS)
        if taken and inspect.isclass(function):
            with warnings.catch_warnings(record=True) as said, timed():
                warnings.simplefilter("always")
                used(name, result, chosen, tally)
            for one in said:
                if issubclass(one.category, RuntimeWarning):
                    tally.fail(f"{name}({', '.join(chosen)}) is made and warns in use: {one.category.__name__}",
                               f"{chosen}: {one.message} {one.filename}:{one.lineno}")  # fmt: skip


def call_method(rng: np.random.Generator, tally: Tally, owner: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject = subjects.INSTANCES[owner]()
    words = owner not in subjects.ESTIMATORS
    names = list(subjects.methods(subject))
    if not names:
        return
    before = snapshot(subject)
    for method in rng.choice(names, 8).tolist():
        function = getattr(subject, method)
        makers = subjects.arguments(method, function)
        if makers is None:
            continue
        makers |= {key: make for key, make in subjects.OF_METHODS.get(method, {}).items() if key in makers}
        if isinstance(subject, venn.RiverClassifier) and "x" in makers:
            makers["x"] = lambda: {"p": 0.5, "q": 1.0}
        if "other" in makers:
            makers["other"] = subjects.INSTANCES[owner]
        given, chosen = spoilt(makers, rng)
        name = f"{owner}.{method}"
        taken, result = judge(name, function, given, chosen, tally, words)
        if taken:
            sane(name, result, chosen, tally)
            before = snapshot(subject)
        elif before is not None:
            after = snapshot(subject)
            tally.same(after == before, f"{name}({', '.join(chosen)}): refused, and something has changed", chosen)
            before = after
    if hasattr(subject, "close"):
        subject.close()


def trial(rng: np.random.Generator, tally: Tally) -> None:
    """Some calls of one function, or of some methods of one object."""
    state = np.geterr(), sys.getrecursionlimit()
    call, names = (call_function, FUNCTIONS) if rng.random() < 0.5 else (call_method, subjects.INSTANCES)
    call(rng, tally, str(rng.choice(list(names))))
    tally.same((np.geterr(), sys.getrecursionlimit()) == state, "settings of numpy or Python have changed")
