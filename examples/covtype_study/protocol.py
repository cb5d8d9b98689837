"""The published protocol: train and choose on balanced parts, score all other rows; every result kept."""

import pickle
from dataclasses import dataclass

import numpy as np

from covtype_study.pairs import Pairs
from covtype_study.published import PRIORS, TRAIN, VALIDATION
from venn.shifts import PriorShift

CONTINUOUS = 10  # columns; the other 44 are 0 or 1 and do not change
CLASSES = 7
BALANCED = (1 / CLASSES,) * CLASSES


@dataclass(frozen=True)
class Size:
    """The size of the study.

    Parameters
    ----------
    train, validation : int
        Rows of each class for the published protocol.
    test : int or None
        Test rows, drawn at random; None for all.
    Cs, gammas : tuple of float
        The values that each pair chooses from.
    drawn_train, drawn_validation : int
        Rows of each class that train the stream's scorer, and that choose its parameters.
    stream : int or None
        Rows of the stream; None for all rows that are not drawn.
    segment : int
        Rows of one experiment of the test of validity.
    part : int
        Rows scored between two reports of progress.
    """

    train: int = TRAIN
    validation: int = VALIDATION
    test: int | None = None
    Cs: tuple = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    gammas: tuple = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
    drawn_train: int = 800
    drawn_validation: int = 250
    stream: int | None = None
    segment: int = 2000
    part: int = 50_000


WHOLE = Size()
QUICK = Size(60, 20, 3000, (1.0, 10.0), (1 / 16, 1 / 4), 60, 20, 6000, 1000)


@dataclass(frozen=True)
class Parts:
    """Row numbers that train, that choose, and that are scored."""

    train: np.ndarray
    validation: np.ndarray
    rest: np.ndarray


def published_parts(y, size, seed):
    """Return the parts of the paper, given by the file's order; a random subset of each if less is wanted."""
    rng = np.random.default_rng(seed)
    end, stop = CLASSES * TRAIN, CLASSES * (TRAIN + VALIDATION)

    def some(rows, n):
        own = [rng.permutation(rows[y[rows] == k])[:n] for k in range(CLASSES)]
        return np.sort(np.concatenate(own))

    train, validation = some(np.arange(end), size.train), some(np.arange(end, stop), size.validation)
    rest = np.arange(stop, len(y))
    return Parts(train, validation, rest if size.test is None else np.sort(rng.choice(rest, size.test, replace=False)))


def drawn_parts(y, size, seed):
    """Return balanced parts drawn at random from the whole file, and all other rows in random order."""
    rng = np.random.default_rng(seed)
    both = size.drawn_train + size.drawn_validation
    drawn = [rng.permutation(np.flatnonzero(y == k))[:both] for k in range(CLASSES)]
    # An order of its own: the remaining part of the first one begins without rare classes.
    rest = rng.permutation(np.setdiff1d(np.arange(len(y)), np.concatenate(drawn)))[: size.stream]
    train, validation = (
        np.concatenate([one[part] for one in drawn])
        for part in (slice(size.drawn_train), slice(size.drawn_train, both))
    )
    return Parts(train, validation, rest)


def shifts(y, parts):
    """Return the three runs of the paper: the prior shift of each."""
    test = np.bincount(y[parts.rest], minlength=CLASSES) / len(parts.rest)
    return {
        "standard": None,
        "adjusted": PriorShift(BALANCED, PRIORS),
        "adjusted to the test part": PriorShift(BALANCED, test),
    }


@dataclass(frozen=True)
class Run:
    """A machine's choices, and its scores of the rows that neither trained it nor chose its parameters."""

    C: np.ndarray
    gamma: np.ndarray
    errors: np.ndarray
    support: np.ndarray
    scores: np.ndarray
    seconds: tuple  # of the processor: to choose and train, to score

    def confusion(self, y):
        """Return (c, c) counts: rows are actual classes, columns predicted ones."""
        cells = np.bincount(y * CLASSES + self.scores.argmax(axis=1), minlength=CLASSES**2)
        return cells.reshape(CLASSES, CLASSES)


def done(name, X, y, parts, shift, size, jobs, store, step):
    """Choose, train and score; finished work is not done again.

    Parameters
    ----------
    name : str
    X, y : (n, 54) and (n,) arrays
        The whole file.
    parts : Parts
    shift : PriorShift or None
        Of the machines, and of their validation errors.
    size : Size
    jobs : int
        Threads.
    store : Store
    step : callable
        Called with a description after every stage.
    """
    mean, deviation = (f(X[parts.train, :CONTINUOUS], axis=0) for f in (np.mean, np.std))

    def objects(rows):
        found = X[rows]
        found[:, :CONTINUOUS] = (found[:, :CONTINUOUS] - mean) / deviation
        return found

    def trained():
        held = objects(parts.validation), y[parts.validation]
        model = Pairs(objects(parts.train), y[parts.train], held, size.Cs, size.gammas, shift, jobs)
        return {"model": np.frombuffer(pickle.dumps(model), np.uint8)}

    key = {"size": size, "train": parts.train, "validation": parts.validation, "shift": shift}
    key = {what: value.tolist() if isinstance(value, np.ndarray) else repr(value) for what, value in key.items()}
    title = name.replace(" ", "-")
    step(f"{name}: 21 pairs")
    kept = store.of(f"{title}-machine", key, trained)
    model, seconds = pickle.loads(kept["model"].tobytes()), float(kept["seconds"])
    scores, scoring = [], 0.0
    for start in range(0, len(parts.rest), size.part):
        rows = parts.rest[start : start + size.part]
        step(f"{name}: scores")
        kept = store.of(
            f"{title}-scores-{start}",
            key | {"rows": rows.tolist()},
            lambda rows=rows: {"scores": model.scores(objects(rows))},
        )
        scores.append(kept["scores"])
        scoring += float(kept["seconds"])
    return Run(model.C, model.gamma, model.errors, model.support, np.concatenate(scores), (seconds, scoring))


def stages(parts, size):
    """Return how often `done` calls `step`."""
    return 1 + -(-len(parts.rest) // size.part)
