"""Replay a stream through one predictor or a panel: predict each example, then learn it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from itertools import islice
from time import perf_counter
from typing import Any, Literal, TypeGuard, overload

import numpy as np

from venn.monitors.benches import PREDICTIONS, seen
from venn.monitors.floor import FloorWatch
from venn.monitors.kinds import KINDS
from venn.monitors.monitor import Monitor
from venn.monitors.shared_level import trainings_of
from venn.monitors.watching import Watches
from venn.online.forecaster import Forecaster
from venn.online.in_blocks import InBlocks
from venn.online.panel import Panel, panel_of
from venn.online.record import Record
from venn.parameters import by_name, flag, integer
from venn.prediction import Label, Prediction
from venn.predictors.inductive_base import check_stream
from venn.predictors.learning import Predictor, names_among
from venn.predictors.refits import LATE
from venn.show.terminal import Progress

# -------------------------------------------------------------------------------------------------------------- at hand

AT_A_TIME = 512  # events; a call of a hundred trees then costs little for each, and few are scored in vain


def at_hand(events: object) -> bool:
    """Whether all events have arrived, so that a block waits for nothing: a list, or `arrived` is True."""
    return isinstance(events, list | tuple) or getattr(events, "arrived", False) is True


def parts_of(events: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield events in lists of some hundred; an error of the iteration is raised after the events before it.

    Examples
    --------
    >>> list(parts_of("abc"))
    [['a', 'b', 'c']]
    """
    rest = iter(events)
    while True:
        block: list[Any] = []
        failure: Exception | None = None
        try:
            for event in islice(rest, AT_A_TIME):
                block.append(event)
        except Exception as error:
            failure = error
        if block:
            yield block
        if failure is not None:
            raise failure
        if len(block) < AT_A_TIME:
            return


# ------------------------------------------------------------------------------------------------------------ replaying

AT_MOST = 5  # first examples that are compared with those a machine was tuned on


class MeansAlone:
    """What a replay keeps where it keeps no single step: of each predictor the means of all steps and of the latest."""

    seconds = 0.0

    def __init__(self, panel: Panel) -> None:
        self.space = panel.space
        self.told = {name: Monitor(panel.space, sources=()) for name in panel}

    def __len__(self) -> int:
        return next(iter(self.told.values())).n

    def update(self, predictions: Mapping[str, Prediction], y: Label) -> None:
        """Take note of one step."""
        for name, one in self.told.items():
            one.update(predictions[name], y)

    def update_many(self, blocks: Mapping[str, Any], labels: Sequence[Label]) -> None:
        """Take note of many steps, as one by one."""
        codes = self.space.encode_many(labels)
        for name, one in self.told.items():
            one.go_on(one.scored(blocks[name], codes))

    def running(self, name: str) -> str:
        """Return a predictor's results so far as text."""
        shown = self.told[name].snapshot()
        return f"{name}: {KINDS[shown['predictions']].running(shown['curves'])}"


@overload
def replay(
    stream: Iterable[tuple[Any, Label]], predictor: Predictor | Panel | None = None, *,
    progress: bool | None = None, steps: int | None = None, monitors: Mapping[str, Watches] | None = None,
    record: Literal[True] = True,
) -> Record: ...  # fmt: skip


@overload
def replay(
    stream: Iterable[tuple[Any, Label]], predictor: Predictor | Panel | None = None, *,
    progress: bool | None = None, steps: int | None = None, monitors: Mapping[str, Watches] | None = None,
    record: Literal[False],
) -> dict[str, Monitor]: ...  # fmt: skip


def replay(
    stream: Iterable[tuple[Any, Label]],
    predictor: Predictor | Panel | None = None,
    *,
    progress: bool | None = None,
    steps: int | None = None,
    monitors: Mapping[str, Watches] | None = None,
    record: bool = True,
) -> Record | dict[str, Monitor]:
    """Predict every example, then reveal its label, score it and learn it.

    Parameters
    ----------
    stream : iterable of (x, y)
        If it has a `name` (str) or a length, the record and the progress bar use them. If all of it is at hand (a
        stream of `streams`, a list), a forecaster takes it in blocks; no answer depends on that.
    predictor : Predictor or Panel, optional
        By default, for a stream that declares its classes, `Forecaster(stream.classes)`, or `Forecaster(float)` where
        labels are numbers. A predictor continues from what it has learned, and the record's title says after how many
        examples. If the same examples are replayed twice, they are twice in a bag, and no guarantee holds. A single
        predictor appears in the record under the name of its class.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default when stderr is a terminal.
    steps : int >= 1, optional
        Stop after this many examples, or at the end of the stream.
    monitors : mapping of str to Monitor, or another Watches, optional
        By name of a predictor: each receives every prediction and its label. What sees objects or examples has any
        other name.
    record : bool, default True
        Whether to keep what was said at every step, some 300 bytes for each. Without it memory grows by the scores of
        those that calibrate alone, some 150 bytes for each step where there are two classes.

    Returns
    -------
    Record, or dict of str to Monitor
        Without a record a monitor for each predictor that bets on nothing: its snapshot has the means of all steps and
        of the latest, and how well the probabilities are calibrated.

    Raises
    ------
    TypeError
        The stream does not iterate (x, y) pairs: a table, an array, a string or a mapping. Or there is no predictor,
        and the stream has no `classes`.
    ValueError
        The stream is empty, its `features` are in another order than the columns that a given scorer was fitted to, a
        label is unknown, or the predictor refuses an example. Errors of a predictor or machine pass through with a note
        that names the step; earlier steps stay learned. To keep the record of an interrupted run, write the loop by
        hand as in `Record`.

    Examples
    --------
    >>> import streams, venn
    >>> stream = streams.gaussians(40, seed=0)
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=stream.classes)
    >>> record = replay(stream, venn.Panel(abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine)))
    >>> len(record), record.names
    (40, ('abers', 'sets'))
    >>> bool((record["abers"].lower <= record["abers"].upper).all())
    True
    """
    _check(stream, steps)
    panel = panel_of(default_for(stream) if predictor is None else predictor)
    watched = by_name("monitors", monitors, "monitors")
    by_name("monitors", {name: one for name, one in watched.items() if _sees(one) == PREDICTIONS}, "monitors", panel)
    data = getattr(stream, "name", None)
    kept = MeansAlone(panel) if not flag("record", record) else Record(
        panel.space,
        tuple(panel),
        data=data if isinstance(data, str) else None,
        parameters={name: repr(predictor) for name, predictor in panel.items()},
        before=learned_before(panel),
        restarts=trainings_of(panel),
    )  # fmt: skip
    first = next(iter(panel))
    start = perf_counter()
    known: Any = getattr(stream, "known", stream)
    # What can be read once, or has no end, is read in its turn.
    total = length(known, steps)
    if at_hand(known) and iter(known) is not known and total is not None:
        with suppress(Exception):  # what is wrong with an example is said in its turn
            panel.foresee(list(islice(known, min(LATE, steps or LATE))), total <= LATE)
    with Progress(length(stream, steps), progress) as bar:
        for n in _recorded(stream, panel, kept, watched, steps):
            if bar.due():
                bar.update(n, kept.running(first))
        if not len(kept):
            raise ValueError("the stream is empty: there is nothing to replay")
        bar.update(len(kept), kept.running(first))
    kept.seconds = perf_counter() - start
    return kept.told if isinstance(kept, MeansAlone) else kept


def _recorded(
    stream: Iterable[Any], panel: Panel, record: Record | MeansAlone, watched: Mapping[str, Any], steps: int | None
) -> Iterator[int]:
    """Replay and record, in blocks if all events are at hand; yield the number of steps so far."""
    if not (at_hand(stream) and not watched and isinstance(panel, InBlocks)):
        for n, x, predictions, y in advance(stream, panel, steps=steps):
            _record(n, x, predictions, y, record, watched)
            yield n
        return
    _check_for(stream, panel, steps)
    met = _tunings(panel)
    for block in parts_of(islice(stream, steps)):
        done, before, labels = len(record), panel.n, [example[1] for example in block if _is_pair(example)]
        try:
            if len(labels) < len(block) or not panel.by_scores:
                raise TypeError("not all are pairs, or each takes its time")
            record.update_many(panel.replay_many([example[0] for example in block], labels), labels)
        except Exception as error:
            if panel.n > before:
                error.add_note(f"at step {done + panel.n - before + 1} of the replay")
                raise
            for n, x, predictions, y in _advance(block, panel, done + 1, met):  # errors are raised in turn
                _record(n, x, predictions, y, record, watched)
        yield len(record)


def _record(
    n: int, x: Any, predictions: Mapping[str, Prediction], y: Label, record: Record | MeansAlone,
    watched: Mapping[str, Any],
) -> None:  # fmt: skip
    """Record a step, and let monitors watch it."""
    try:
        record.update(predictions, y)
        for name, monitor in watched.items():
            show(monitor, name, x, predictions, y)
    except Exception as error:
        error.add_note(f"at step {n} of the replay")
        raise


def show(monitor: Any, name: str, x: Any, predictions: Mapping[str, Prediction], y: Label) -> None:
    """Show a monitor one step."""
    if isinstance(monitor, FloorWatch):
        monitor.see(monitor.among(predictions), y)
    else:
        monitor.update(*seen(_sees(monitor), x, predictions.get(name), y))


def _sees(monitor: Any) -> str:
    """Return what a monitor takes; by default predictions and labels."""
    return str(getattr(monitor, "sees", PREDICTIONS))


def default_for(stream: object) -> Forecaster:
    """Return the default predictor for a stream."""
    classes = getattr(stream, "classes", None)
    if classes is None:
        raise TypeError(
            "predictor must be given for a stream without classes, such as venn.Forecaster(classes), "
            f"got {stream!r:.80}"
        )
    return Forecaster(classes or float)


def learned_before(panel: Panel) -> dict[str, int]:
    """Return how many examples predictors have learned, where they report any."""
    counts: dict[str, int] = {}
    for name, predictor in panel.items():
        if predictor.machine is not None:  # the machine may have learned more than this predictor
            n = predictor.machine.learned
        else:
            each = (getattr(part, "n", None) for part in (predictor, getattr(predictor, "predictor", None)))
            n = next((n for n in each if isinstance(n, int)), 0)
        if n:
            counts[name] = n
    return counts


def _tuning(predictor: Any) -> Any:
    """Return the result of `tune` for a predictor's machine, if it chose the parameters."""
    return getattr(predictor, "tuning", None) if predictor.machine is None else predictor.machine.tuning


def length(stream: object, steps: int | None) -> int | None:
    """Return the number of steps that a replay will make, where it can be known."""
    total = len(stream) if isinstance(stream, Sized) else None
    return total if steps is None else steps if total is None else min(steps, total)


def advance(
    stream: Iterable[tuple[Any, Label]], panel: Panel, *, steps: int | None = None
) -> Iterator[tuple[int, Any, dict[str, Prediction], Label]]:
    """Predict every example, then reveal its label and learn it: the loop of `replay`, a step at a time.

    Yields
    ------
    n : int
        Number of the step, from 1.
    x : object
    predictions : dict of str to prediction
        Made before the label was known; the example has been learned by now.
    y : label

    Raises
    ------
    TypeError, ValueError
        As `replay` does.
    """
    _check_for(stream, panel, steps)
    for step in _advance(stream, panel, 1, _tunings(panel)):
        yield step
        if step[0] == steps:
            break


def _tunings(panel: Panel) -> dict[Any, int]:
    """Return, for each machine's tuning, how many of the first examples it was made on: none so far."""
    return {tuning: 0 for predictor in panel.values() if (tuning := _tuning(predictor))}


def _advance(
    examples: Iterable[Any], panel: Panel, first: int, met: dict[Any, int]
) -> Iterator[tuple[int, Any, dict[str, Prediction], Label]]:
    """Do what `advance` does, without checks; the first step has the number `first`."""
    for n, example in enumerate(examples, first):
        x, y = _pair(example, n)
        try:
            predictions = panel.predict_one(x)
            for tuning in met if n <= AT_MOST else ():
                met[tuning] += tuning.met(x, y)
                _warn_of_tuning(tuning, n, met[tuning])
            panel.learn_one(x, y)
        except Exception as error:
            error.add_note(f"at step {n} of the replay")
            raise
        yield n, x, predictions, y


def _check_for(stream: object, panel: Panel, steps: int | None) -> None:
    """Refuse streams that the panel cannot replay, such as one with columns in another order than its scorer's."""
    _check(stream, steps)
    for predictor in panel.values():
        check_stream(stream, names_among([predictor]))


def _check(stream: object, steps: int | None) -> None:
    if steps is not None:
        integer("steps", steps, 1)
    _refuse_tables(stream)


def _warn_of_tuning(tuning: Any, n: int, met: int) -> None:
    """Warn when the first examples of the stream are among those that a machine was tuned on."""
    if n == AT_MOST and met == n:
        warnings.warn(
            f"the machine was tuned on {tuning.n} examples, and this stream begins with examples among them: those "
            "learned again are not exchangeable with new ones, and no guarantee holds; replay the rest, such as "
            f"stream.drop({tuning.n})",
            UserWarning,
            stacklevel=6,
        )


def _refuse_tables(stream: object) -> None:
    """Raise for streams that would iterate, mostly silently, as something other than (x, y) pairs."""
    kind = type(stream).__name__
    pair_of_arrays = isinstance(stream, tuple | list) and len(stream) == 2 and isinstance(stream[0], np.ndarray)
    if isinstance(stream, str | bytes):
        found = f"the {kind} {stream!r}: streams.load(name) opens a named data set"
    # The class is checked, as a lazy frame would warn about its columns.
    elif any(hasattr(type(stream), name) for name in ("__dataframe__", "iloc", "columns")):
        found = f"a {kind}, which iterates by column: pass streams.from_frames(frame, label, classes=...) or "
        found += "zip(features.to_numpy(), labels) instead"
    elif isinstance(stream, Mapping):
        found = f"a {kind}, which iterates by key: pass zip(features, labels) instead"
    elif isinstance(stream, np.ndarray) or pair_of_arrays:
        found = f"arrays in a {kind}: pass zip(X, y) instead"
    elif isinstance(stream, Iterable):
        return
    else:
        found = repr(stream)
    raise TypeError(f"stream must iterate (x, y) pairs, got {found}")


def _is_pair(example: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(example, tuple | list) and len(example) == 2


def _pair(example: object, step: int) -> tuple[Any, Any]:
    if _is_pair(example):
        return example[0], example[1]
    raise TypeError(f"step {step}: the stream must give pairs (x, y), got {example!r}")
