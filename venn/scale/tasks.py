"""Many replays: each is a pure task that can be done anywhere; its result is named by what it depends on."""

from __future__ import annotations

import logging
import os
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from venn.online.panel import Panel
from venn.online.replaying import replay
from venn.parameters import integer
from venn.saved import described
from venn.scale.cluster import MISSING, Cluster, client_of
from venn.scale.results import Results
from venn.scale.task import Task, may_be_label, plain
from venn.show.terminal import Progress

if TYPE_CHECKING:
    from distributed import Client
else:  # for those who ask for hints while running, as dataclass tools do
    Client = Any

AHEAD = 4  # waiting tasks per thread of the cluster: enough to keep it busy, few enough for memory
BESIDE = " Or another replay on the same workers did: replays(tasks, folder) does them again."
log = logging.getLogger("venn")


def grid(
    *,
    stream: Mapping[str, Callable[..., Iterable[Any]]],
    predictor: Mapping[str, Callable[..., Any]],
    shuffle: Iterable[int | None] = (None,),
    steps: int | None = None,
    edition: int = 0,
    **parameters: Iterable[Any],
) -> list[Task]:
    """Return a task for each combination of stream, predictor, shuffle and parameters.

    Parameters
    ----------
    stream : mapping of str to callable
        By the name that the table shows. Called where the task is done, as ``make(shuffle=seed)``, or ``make()`` if
        the seed is None; returns (x, y) pairs and has `classes`. Such as ``functools.partial(streams.load, "car")``.
    predictor : mapping of str to callable
        Called as ``make(classes, **parameters)``; returns a predictor, or a `Panel`, which replays several for little
        more than the price of one.
    shuffle : iterable of int or None, default (None,)
        Seeds of the order.
    steps : int >= 1, optional
        Stop after so many examples.
    edition : int, default 0
        See `Task`.
    **parameters : iterables
        Values of the predictors' parameters; every predictor receives all of them.

    Returns
    -------
    list of Task
        Grids add up: ``grid(...) + grid(...)``.

    Raises
    ------
    TypeError, ValueError
        See `Task`.

    Examples
    --------
    >>> import streams, venn
    >>> def sharp(classes, C):
    ...     return venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), C, classes))
    >>> car = partial(streams.load, "car")
    >>> tasks = grid(stream={"car": car}, predictor={"sharp": sharp}, shuffle=range(3), C=[1, 10])
    >>> len(tasks)
    6
    >>> tasks[0].labels
    {'stream': 'car', 'predictor': 'sharp', 'shuffle': 0, 'C': 1}
    """
    made: dict[str, Any] = {"stream": stream, "predictor": predictor}
    for name, given in made.items():
        if not isinstance(given, Mapping) or not all(isinstance(k, str) and callable(v) for k, v in given.items()):
            raise TypeError(f"{name} must be a mapping of names to functions, got {given!r}")
    for name, values in {"shuffle": shuffle, **parameters}.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"{name} must be several values, such as a list, got {values!r}")
    seeds = [plain(seed) for seed in shuffle]  # once: it may be an iterator
    columns = {name: [plain(value) for value in values] for name, values in parameters.items()}
    called = {name: _labels(values) for name, values in columns.items()}
    return [
        Task(
            {"stream": a, "predictor": b, "shuffle": seed, **{name: called[name][i] for name, i in places.items()}},
            partial(make_both, stream[a], predictor[b], seed, **{name: columns[name][i] for name, i in places.items()}),
            steps,
            edition,
        )
        for a, b in product(stream, predictor)
        for seed, *row in product(seeds, *(range(len(values)) for values in columns.values()))
        for places in [dict(zip(columns, row, strict=True))]
    ]


def _labels(values: Sequence[Any]) -> list[Any]:
    """Return the table's names for values: plain values themselves, others by their repr, numbered if not unique."""
    texts = [None if may_be_label(one) else described(one) for one in values]
    return [
        value if text is None else f"{text} #{place}" if texts.count(text) > 1 else text
        for place, (value, text) in enumerate(zip(values, texts, strict=True))
    ]


def make_both(
    stream: Callable[..., Any], predictor: Callable[..., Any], shuffle: int | None, /, **parameters: Any
) -> tuple[Iterable[Any], Any]:
    """Return the stream and the predictor of a task made by `grid`."""
    examples = stream() if shuffle is None else stream(shuffle=shuffle)
    if not hasattr(examples, "classes"):
        raise TypeError(f"stream must have classes, which the predictor is made for, got {type(examples).__name__}")
    return examples, predictor(examples.classes, **parameters)


def replays(
    tasks: Iterable[Task],
    folder: str | os.PathLike[str],
    *,
    cluster: Cluster = None,
    workers: int | None = None,
    records: bool = True,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Do many replays in parallel; finished ones are kept, and skipped by the next call.

    Only this process uses the folder: workers need the data and the code, but no shared disk. Each result appears
    whole or not at all. A task whose worker dies is done again by another one. A task that fails is kept with its
    error, stops no other, and is tried again by the next call. So after an interrupt, a power failure, or the repair of
    a task, the same call continues the work.

    Parameters
    ----------
    tasks : iterable of Task
        As made by `grid`.
    folder : str or path
        For the results: ``NAME.json`` with the summary, ``NAME.npz`` with the `Record`.
    cluster : str or distributed.Client, optional
        Address of a Dask scheduler, or a client. By default processes of this machine, one thread each.
    workers : int >= 0, optional
        Processes of the local cluster; by default one for each core. 0: one task after the other in this process,
        without Dask.
    records : bool, default True
        Whether to keep the record of every step, in addition to the means.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default when stderr is a terminal.

    Returns
    -------
    list of dict
        A row for each task, in their order, and for each predictor of a panel; `pandas.DataFrame` takes them. A row has
        the labels of its task (`predictor` is "name/member" for the members of a panel); `examples`, their number;
        `seconds` of the replay; the means that `Record.means` returns; `guaranteed`; `record`, the file; `error`, the
        text of the error, or None. A task that failed has one row, without means.

    Raises
    ------
    ImportError
        Without Dask, unless `workers` is 0: pip install 'dask[array,dataframe]' distributed.
    TypeError
        An item is not a Task, or a task cannot be sent to another process.
    OSError
        The folder cannot be written, or the scheduler is gone. Finished results are kept.

    Notes
    -----
    The digest of a task covers names, arguments and the source text of the functions that it names itself, but not the
    functions that these call, nor the data: after a change there raise `edition`. A second run of a task gives the same
    bytes of its record; for this reason the record's `seconds` is 0.

    A script that uses the local cluster must put its work under ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import streams, tempfile, venn
    >>> def sharp(classes, C):
    ...     return venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), C, classes))
    >>> tasks = grid(stream={"car": partial(streams.load, "car")}, predictor={"sharp": sharp}, steps=30, C=[1, 10])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = replays(tasks, folder, workers=0)
    ...     again = replays(tasks, folder, workers=0)  # reads
    >>> [(row["predictor"], row["C"], row["examples"], row["error"]) for row in rows], rows == again
    ([('sharp', 1, 30, None), ('sharp', 10, 30, None)], True)
    """
    tasks = list(tasks)
    for task in tasks:
        if not isinstance(task, Task):
            raise TypeError(f"tasks must be Tasks, as grid() makes them, got {task!r}")
    if workers is not None:
        integer("workers", workers, 0)
    if workers == 0 and cluster is not None:
        raise ValueError("workers must be left out if a cluster is given, which has its own, got 0")
    results = Results(folder, records)
    known = {task.digest: results.read(task) for task in tasks}
    todo = list({task.digest: task for task in tasks if not known[task.digest]}.values())
    failed = 0
    with Progress(len(tasks), progress) as bar:
        done = len(tasks) - len(todo)
        bar.count(done, len(tasks), f"{done} done before")
        for task, outcome in _done(todo, cluster, workers, records) if todo else ():
            known[task.digest] = results.keep(task, outcome)
            done, failed = done + 1, failed + (outcome["error"] is not None)
            bar.count(done, len(tasks), f"replays{f', {failed} failed' if failed else ''}")
    if failed:
        first = next(one for task in tasks if (one := known[task.digest])["error"] is not None)
        log.warning("%d of %d replays failed, the first with %s", failed, len(tasks), first["error"])
    return [row for task in tasks for row in results.rows(task, known[task.digest])]


def run(task: Task, records: bool = True) -> dict[str, Any]:
    """Do a task, in any process; return its outcome, an error instead of raising."""
    start = time.perf_counter()
    try:
        stream, predictor = task.make()
        record = replay(stream, predictor, progress=False, steps=task.steps)
    except (Exception, SystemExit) as error:  # even if it wants to exit: the process is not its own
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        text = f"{type(error).__name__}: {error}{notes}"
        return _failure(text, "".join(traceback.format_exception(error)), time.perf_counter() - start)
    seconds, record.seconds = record.seconds, 0.0  # so that the file of a second run is the same
    seed = task.labels.get("shuffle")
    record.shuffle = seed if type(seed) is int else None
    return {
        "examples": len(record),
        "seconds": seconds,
        "error": None,
        "panel": isinstance(predictor, Panel),
        "means": record.means(),
        "guaranteed": record.guaranteed,
        "record": record if records else None,
    }


def _failure(text: str, trace: str | None = None, seconds: float = 0.0) -> dict[str, Any]:
    return {"examples": 0, "seconds": seconds, "error": text, "trace": trace, "record": None}


def _done(
    tasks: Sequence[Task], cluster: Cluster, workers: int | None, records: bool
) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Yield tasks as they finish, with their outcomes."""
    if workers == 0:
        for task in tasks:
            yield task, run(task, records)
        return
    _check_sendable(tasks)
    with client_of(cluster, workers) as client:
        yield from _scattered(tasks, client, records)


def _check_sendable(tasks: Iterable[Task]) -> None:
    try:
        import cloudpickle
    except ImportError as error:
        raise ImportError(MISSING) from error
    for task in tasks:
        try:
            cloudpickle.dumps(task)
        except Exception as error:
            raise TypeError(
                f"tasks must be objects that can be sent to other processes, got {task!r}: {error}"
            ) from error


def _scattered(tasks: Sequence[Task], client: Client, records: bool) -> Iterator[tuple[Task, dict[str, Any]]]:
    from distributed import KilledWorker, as_completed

    call = uuid.uuid4().hex[:8]  # two calls must not share anything
    rest = iter(tasks)
    running: dict[str, Task] = {}

    def more(count: int) -> list[Any]:
        found = []
        for task in islice(rest, count):
            key = f"replay-{task.digest}-{call}"
            running[key] = task
            found.append(client.submit(run, task, records, key=key))
        return found

    threads = sum(client.nthreads().values())
    waiting = as_completed(more(AHEAD * max(1, threads)), loop=client.loop)
    for future in waiting:
        task = running.pop(future.key)
        if future.cancelled():
            raise OSError("the Dask scheduler has dropped the replays: call again to go on, finished results are kept")
        error = future.exception()
        # Not an error of the replay, which would be its result: its workers died of it, or cannot load the code.
        innocent = BESIDE if isinstance(error, KilledWorker) else ""
        yield task, future.result() if error is None else _failure(f"{type(error).__name__}: {error}{innocent}")
        future.release()
        for new in more(1):
            waiting.add(new)
