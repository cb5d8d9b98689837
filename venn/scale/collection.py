"""Calibrates and scores one inductive predictor over a collection of blocks larger than memory, by merging parts."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence, Sized
from contextlib import closing
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from venn.monitors.calibration import CLIP
from venn.monitors.scorecard import Scorecard, SetScorecard
from venn.predictors.counts import CategoryCounts
from venn.predictors.inductive_base import Inductive
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.merging import Calibration, checked_unordered
from venn.show.terminal import Progress

if TYPE_CHECKING:
    from distributed import Client, Future
else:  # for those who ask for hints while running, as dataclass tools do
    Client = Future = Any

ROWS = 1 << 16  # scored at a time, so that the memory for predictions does not grow with the block
WINDOW = 64  # blocks in one tree of merges; two trees run at a time
FAN = 8  # parts that one task merges

Predictor = TypeVar("Predictor", bound=Inductive[Any])
Leaf = Callable[[Any, int, Any], Any]


def calibrate(
    predictor: Predictor, X: Any, y: Any = None, *, client: Client | None = None, progress: bool | None = None
) -> Predictor:
    """Return a copy of the predictor, also calibrated on a collection that need not fit in memory.

    The result is the same, to the last bit, as by `predictor.learn_many` of all examples at once, whatever the blocks
    and the number of processes: the calibrations of blocks are merged, and merging is exact. This assumes that the
    scorer gives a row the same score in every block, as a `FrozenScorer` of a linear model does. Other scores may
    differ in their last bits; scores are compared on a grid of 1e-6, which hides this except for scores next to a
    grid's edge.

    Parameters
    ----------
    predictor : InductiveVenn, InductiveVennAbers or InductiveConformal
        Its scorer is not trained, its schedule is `NoTraining()`; it does not change.
    X : dask array, dask DataFrame or iterable of blocks
        An array (n, d), in chunks of rows. Or a table with the columns that the scorer was fitted to. Or blocks: tuples
        (rows, labels), or `dask.delayed` objects or functions without arguments that return such a tuple. These are
        computed where they are used, and again if a process dies, so they must give the same each time. A table may
        have the name of its label column instead of labels.
    y : dask array or Series, or str, optional
        Labels (n,), in the same chunks as the rows of X; or the name of the table's label column. None if X is an
        iterable.
    client : distributed.Client, optional
        Its processes do the work: ``Client("tcp://HOST:8786")`` of a Dask scheduler, or ``Client(n_workers=4,
        threads_per_worker=1)`` of this machine. By default this process does the work, a block at a time.
    progress : bool, optional
        Show a progress bar on stderr; by default if that is a terminal.

    Returns
    -------
    predictor of the same class

    Raises
    ------
    TypeError, ValueError
        The predictor is of another kind or may be trained, X and y are not aligned, or a block holds a bad object or
        label, or cannot be sent to the cluster; the message names the block, as its partition counted from 0.
    Exception
        Raised by a function or a `dask.delayed` object: of the same built-in type, or the nearest that takes a
        text, with the partition in the message. On a cluster, errors of `dask.delayed` objects come unchanged.

    Notes
    -----
    Memory holds a block, its calibration, and some such parts that wait to be merged. A table of counts is as large as
    the taxonomy. A Venn-Abers calibrator takes about 40 bytes for each *distinct* score and class on the grid of 1e-6,
    so round the scores to three digits if there are very many; 2^31 - 1 examples at most. A conformal predictor keeps
    every score: 8 to 16 bytes an example.

    Examples
    --------
    >>> import venn
    >>> from sklearn.svm import LinearSVC
    >>> from venn.scale import calibrate, score
    >>> rng = np.random.default_rng(0)
    >>> def make():
    ...     X = rng.normal(size=(100, 2))
    ...     return X, np.where(X[:, 0] > rng.normal(size=100), "yes", "no")
    >>> model = venn.InductiveVenn(venn.FrozenScorer(LinearSVC().fit(*make())))
    >>> model = calibrate(model, (make() for _ in range(10)))
    >>> model.n
    1000
    >>> card = score(model, (make() for _ in range(10)))
    >>> card.n, card.labels_in_band
    (1000, 0)
    >>> card.lower < card.upper
    True
    """
    _checked(predictor)
    checked_unordered(predictor)
    return predictor.calibrated(_reduced(predictor, X, y, _calibrated, predictor.calibration, client, progress))


def score(
    predictor: Inductive[Any],
    X: Any,
    y: Any = None,
    *,
    bins: int | None = None,
    clip: float = CLIP,
    client: Client | None = None,
    progress: bool | None = None,
) -> Scorecard | SetScorecard:
    """Return a scorecard of a predictor's predictions over a collection, all from its present state; it learns nothing.

    The result is the same, but for rounding, as by `score_block` of the whole. See `calibrate` for what this assumes
    and for the parameters. A worker that dies costs the time of its blocks and changes nothing.

    Parameters
    ----------
    predictor : inductive predictor
    X, y, client, progress
        As for `calibrate`.
    bins : int >= 1, optional
        By default 10 for a `Scorecard`, 20 for a `SetScorecard`.
    clip : float in (0, 1), default 1e-15
        For the log loss.

    Returns
    -------
    Scorecard or SetScorecard
        The latter for `InductiveConformal`.

    Raises
    ------
    TypeError, ValueError
        As for `calibrate`.

    Examples
    --------
    >>> import streams, venn
    >>> from sklearn.linear_model import LogisticRegression
    >>> stream = streams.synthetic.gaussians(300, classes=2, seed=0)
    >>> X, y = stream.X, list(stream.y)
    >>> scorer = venn.FrozenScorer(LogisticRegression().fit(X[:100], y[:100]), (0, 1))
    >>> model = venn.InductiveVennAbers(scorer)
    >>> for x, label in zip(X[100:200], y[100:200]):
    ...     model.learn_one(x, label)
    >>> card = score(model, [(X[200:], y[200:])])  # one block in memory; otherwise arrays of dask
    >>> card.n
    100
    """
    _checked(predictor)
    empty = _card(predictor, bins, clip)
    return _reduced(predictor, X, y, _Scored(bins, clip).leave, empty, client, progress)


def score_block(
    predictor: Inductive[Any], X: Any, y: Any, *, bins: int | None = None, clip: float = CLIP
) -> Scorecard | SetScorecard:
    """Return a scorecard of a predictor's predictions on one block in memory; `score` merges these.

    Parameters
    ----------
    predictor : inductive predictor
    X : (n, d) finite numbers
    y : sequence of n labels
    bins, clip
        As for `score`.

    Raises
    ------
    TypeError, ValueError
        For a bad object or label.

    Examples
    --------
    >>> import streams, venn
    >>> from sklearn.linear_model import LogisticRegression
    >>> stream = streams.synthetic.gaussians(300, classes=2, seed=0)
    >>> X, y = stream.X, list(stream.y)
    >>> scorer = venn.FrozenScorer(LogisticRegression().fit(X[:100], y[:100]), (0, 1))
    >>> model = venn.InductiveVennAbers(scorer)
    >>> for x, label in zip(X[100:200], y[100:200]):
    ...     model.learn_one(x, label)
    >>> card = score_block(model, X[200:], y[200:])
    >>> card.n
    100
    """
    _checked(predictor)
    card, reader = _card(predictor, bins, clip), predictor.calibration.reader
    rows, codes = predictor.checked_examples(X, y)
    for start in range(0, len(rows), ROWS):
        part, truth = rows[start : start + ROWS], codes[start : start + ROWS]
        if isinstance(card, SetScorecard) or not isinstance(reader, CategoryCounts) or predictor.scorer is None:
            card.update_many(predictor.predict_rows(part), truth)
        else:
            block, table = reader.predict_table(predictor.scores_of(part), truth)
            which, labels = np.nonzero(table)
            card.update_many(block.taken(which), labels, table[which, labels])
    return card


def _card(predictor: Inductive[Any], bins: int | None, clip: float) -> Scorecard | SetScorecard:
    if isinstance(predictor, InductiveConformal):
        return SetScorecard(predictor.classes, bins=20 if bins is None else bins)
    return Scorecard(predictor.classes, 10 if bins is None else bins, clip)


def _checked(predictor: Any) -> None:
    if not isinstance(predictor, Inductive):
        raise TypeError(f"predictor must be an inductive predictor, such as InductiveVenn, got {predictor!r}")


# ------------------------------------------------------------------------------------ the work on one block


def _calibrated(predictor: Any, i: int, block: Any) -> Calibration:
    part = predictor.calibrated()
    _on_block(part.learn_many, i, block)
    return part.calibration


class _Scored(NamedTuple):
    bins: int | None
    clip: float

    def leave(self, predictor: Any, i: int, block: Any) -> Any:
        return _on_block(lambda X, y: score_block(predictor, X, y, bins=self.bins, clip=self.clip), i, block)


def _on_block(work: Callable[[Any, Any], Any], i: int, block: Any) -> Any:
    """Compute a block and work on it; errors name the partition."""
    try:
        block = _computed(block)
        if callable(block):
            block = block()
        if not isinstance(block, tuple) or len(block) != 2:
            raise TypeError(f"X must hold blocks that are tuples (rows, labels), got {type(block)!r}: {short(block)}")
        X, y = block
        if isinstance(y, str) and hasattr(X, "columns"):
            X, y = _split(X, y)
        return work(X, y.to_numpy() if hasattr(y, "to_numpy") else y)
    except Exception as error:
        raise _of_partition(i, error) from error


def _of_partition(i: int, error: Exception) -> Exception:
    """Return an error that names the partition, of the same built-in type or the nearest that takes a text."""
    text = str(error) if type(error).__module__ == "builtins" else f"{type(error).__name__}: {error}"
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins":
            try:
                return kind(f"partition {i}: {text}")
            except TypeError:  # such as UnicodeDecodeError, which takes five arguments
                continue
    raise AssertionError("an exception is an Exception")


def _split(table: Any, column: str) -> tuple[Any, Any]:
    """Return a table without its label column, and that column."""
    if column not in table.columns:
        raise ValueError(f"y must be a column of X, got {column!r} for {list(table.columns)!r}")
    return table[[name for name in table.columns if name != column]], table[column]  # of pandas and polars alike


def _merged(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total


# ------------------------------------------------------------------------------------ all blocks


def _reduced(
    predictor: Any, X: Any, y: Any, leaf: Leaf, start: Any, client: Client | None, progress: bool | None
) -> Any:
    """Return `start` merged with the results of `leaf` for every block."""
    blocks, number = _blocks(X, y)
    total, done = start, 0
    with (
        Progress(number, progress) as bar,
        closing(_here(predictor, blocks, leaf) if client is None else _there(predictor, blocks, leaf, client)) as parts,
    ):
        for part, merged in parts:
            total, done = total.merge(part), done + merged
            if bar.due() or done == number:
                bar.update(done, "blocks")
    return total


def _here(predictor: Any, blocks: Iterable[Any], leaf: Leaf) -> Generator[tuple[Any, int], None, None]:
    """Yield the result of each block, computed in this process."""
    for i, block in enumerate(blocks):
        yield leaf(predictor, i, block), 1


def _computed(block: Any) -> Any:
    """Return a block whose delayed parts are computed."""
    if not any(hasattr(part, "__dask_graph__") for part in (block if isinstance(block, tuple) else (block,))):
        return block
    from dask.base import compute

    # One thread: Dask's own would compete with those of the scorer.
    return compute(block, scheduler="synchronous")[0]


def _there(predictor: Any, blocks: Iterable[Any], leaf: Leaf, client: Client) -> Generator[tuple[Any, int], None, None]:
    """Yield the results of windows of blocks, computed on a cluster and merged there by a tree."""
    from dask.delayed import delayed
    from distributed import Client as Given

    if not isinstance(client, Given):
        raise TypeError(f"client must be a distributed.Client or None, got {client!r}")
    # Sent to the scheduler once, as a task like any other rather than as scattered data: scattered data is lost with
    # the last process that holds it, a task is done again.
    sent = client.submit(_same, predictor, pure=False)
    numbered = enumerate(blocks)
    waiting: deque[tuple[Future[Any], int]] = deque()
    try:
        while True:
            window = list(itertools.islice(numbered, WINDOW))
            if window:
                do, merge = delayed(leaf, pure=False), delayed(_merged, pure=False)
                tree = [do(sent, i, block) for i, block in window]
                while len(tree) > 1:
                    tree = [merge(tree[at : at + FAN]) for at in range(0, len(tree), FAN)]
                waiting.append((_submitted(client, tree[0], window), len(window)))
            if not waiting:
                return
            if not window or len(waiting) > 1:
                future, merged = waiting.popleft()
                part = future.result()
                future.release()
                yield part, merged
    finally:
        client.cancel([future for future, _ in waiting])


def _same(thing: Any) -> Any:
    return thing


def _submitted(client: Client, tree: Any, window: list[tuple[int, Any]]) -> Future[Any]:
    """Send the work on a window of blocks to the cluster; if that fails, name the block that is the cause."""
    try:
        future: Future[Any] = client.compute(tree)
    except Exception:
        import cloudpickle  # which Dask uses to send objects

        for i, block in window:
            try:
                cloudpickle.dumps(block)
            except Exception as error:
                raise TypeError(
                    f"partition {i}: X must hold blocks that can be pickled, to be sent to a cluster, got "
                    f"{short(block)}: {error}"
                ) from error
        raise
    return future


def _blocks(X: Any, y: Any) -> tuple[Iterable[Any], int | None]:
    """Return the blocks, and how many there are, if that is known."""
    if not hasattr(X, "__dask_graph__"):
        if y is not None:
            raise TypeError(
                f"y must be left out if X is an iterable of blocks (rows, labels), got {type(y).__name__}; "
                "for examples in memory use predictor.learn_many and score_block"
            )
        if isinstance(X, np.ndarray | str) or hasattr(X, "columns") or not isinstance(X, Iterable):
            raise TypeError(f"X must be a dask collection or an iterable of blocks (rows, labels), got {type(X)!r}")
        return X, len(X) if isinstance(X, Sized) else None
    if hasattr(X, "columns"):
        parts = X.to_delayed()
        if isinstance(y, str):
            return [(part, y) for part in parts], len(parts)
    elif getattr(X, "ndim", 0) == 2:
        if X.numblocks[1] != 1:
            raise ValueError(f"X must be in chunks of whole rows, got chunks {X.chunks}: X.rechunk({{1: -1}})")
        parts = list(X.to_delayed()[:, 0])
    else:
        raise TypeError(f"X must be a two-dimensional dask array or a dask DataFrame, got {type(X)!r}")
    if not hasattr(y, "__dask_graph__") or getattr(y, "ndim", 0) != 1:
        column = " or the name of a column" if hasattr(X, "columns") else ""
        raise TypeError(f"y must be a dask array (n,) or Series{column}, got {type(y)!r}")
    labels = list(np.ravel(np.array(y.to_delayed(), object)))
    if len(labels) != len(parts):
        raise ValueError(f"y must be in {len(parts)} chunks, one for each of X, got {len(labels)}")
    known = [getattr(one, "chunks", None) for one in (X, y)]
    if None not in known:
        for i, (rows, own) in enumerate(zip(known[0][0], known[1][0], strict=True)):  # type: ignore[index]
            if rows == rows and own == own and rows != own:  # NaN: not known
                raise ValueError(f"partition {i}: y must hold a label for each of {rows} rows of X, got {own}")
    return list(zip(parts, labels, strict=True)), len(parts)
