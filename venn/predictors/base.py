"""What inductive predictors share: a scorer trained on some examples, its scores calibrated on others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from venn.labels import Classes, HasLabels
from venn.machines import frozen
from venn.machines.frozen import clean_row, clean_rows
from venn.parameters import has_methods
from venn.prediction import Bools, Floats, Integers, Label
from venn.predictors.history import History
from venn.predictors.learning import Alone
from venn.predictors.merging import merged
from venn.predictors.schedules import NoTraining, PrefixRestart, Schedule, checked_schedule

Block = TypeVar("Block")


class Reader(Protocol[Block]):
    """What makes predictions of the scores of calibration examples, all by one scorer."""

    def clear(self) -> None:
        """Forget all calibration examples."""

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""

    def predict(self, scores: Floats) -> Block:
        """Return the predictions for n objects of (n, c) scores, each as if it came alone; leaves no trace."""

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Block:
        """Predict, then take in where it calibrates, each example in turn; return the predictions."""

    def nothing(self, n: int) -> Block:
        """Return the predictions for n objects that are made before there is a scorer."""

    def join(self, blocks: list[Block]) -> Block:
        """Return one block of all, in order."""


def score_rows(scorer: Any, rows: frozen.Block) -> Floats:
    """Return the (n, c) scores of n objects, by the scorer's own way for many where it has one."""
    many = getattr(scorer, "score_many", None)
    if many is not None:
        scores: Floats = many(rows)
        return scores
    scores = np.empty((len(rows), len(scorer.classes)))
    for i, out in enumerate(scores):
        out[:] = scorer.scores(rows[i])
    return scores


class Inductive(HasLabels, Alone, Generic[Block]):
    """Base of inductive predictors: a scorer, a schedule that says when it is trained, a reader of its scores.

    What examples train and what examples calibrate is the schedule's business; how calibration scores become
    predictions is the reader's. A training set that contains the last one is learned on top of it,
    otherwise a fresh machine starts from nothing.

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing; it is never taught itself, its `fresh()` ones are.
    reader : Reader
    schedule : Schedule

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Not to be taught.
    """

    def __init__(self, machine: Any, reader: Reader[Block], schedule: Schedule) -> None:
        self._given = machine
        self.schedule = schedule
        self._reader = reader
        self.space = Classes(machine.classes)
        self._features: int | None = getattr(machine, "features", None)
        self._names: tuple[str, ...] | None = getattr(machine, "feature_names", None)
        self._rng = np.random.default_rng(schedule.seed)
        self.n = 0
        self._next = schedule.next_training(0)
        self._history = None if self._next is None else History()
        self._training_set = np.zeros(0, np.int64)  # examples that `_machine` has learned
        self._machine = machine if self._next is None else machine.fresh()
        self.scorer = machine if self._next is None else None
        self._asked: tuple[bytes, Floats] | None = None  # the last object and its scores by `_machine`

    @property
    def tuning(self) -> Any:
        """What chose the machine's kernel and C, if `tune` did."""
        return getattr(self._given, "tuning", None)

    def _row(self, x: Any) -> frozen.Block:
        """Return one object as (1, d) float64, or say what is wrong with it."""
        return clean_row(x, self._features, self._names)

    # --------------------------------------------------------------- predicting

    def predict_block(self, x: Any) -> Block:
        """Return the prediction for one object, as a block of one; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        rows = self._row(x)
        return self._finished(self._predict(rows), rows, None)

    def _finished(self, block: Block, rows: frozen.Block, start: int | None) -> Block:
        """Return predictions made of what the reader says of objects: asked about now, or at steps from `start` on."""
        return block

    def _predict(self, rows: frozen.Block) -> Block:
        # Scored before there is a scorer too: by a machine that knows nothing, which refuses what it must.
        scores = self._scores(rows)
        return self._reader.nothing(len(rows)) if self.scorer is None else self._reader.predict(scores)

    def _scores(self, rows: frozen.Block) -> Floats:
        """Return the scores of rows; one that was asked about last is not scored again."""
        if len(rows) != 1:
            return score_rows(self._machine, rows)
        key = rows.tobytes()
        if self._asked is None or self._asked[0] != key:
            self._asked = key, score_rows(self._machine, rows)
        return self._asked[1]

    def predict_many(self, X: Any) -> Block:
        """Return predictions for many objects, all from what is known now; leaves no trace.

        Parameters
        ----------
        X : (n, d) finite numbers
            An array; of a `FrozenScorer` fitted to a table also one with the same columns, here and below.

        Raises
        ------
        ValueError, TypeError
            X is not that.
        """
        rows = clean_rows(X, self._features, self._names)
        return self._finished(self._predict(rows), rows, None)

    # ------------------------------------------------------------------ merging

    def merge(self, other: Self) -> Self:
        """Return a new predictor that has calibrated on the examples of both; they stay as they are.

        Parts merge exactly: whatever the order and grouping, the answers are, to the last bit, those of one that has
        learned all the examples, and one that has learned nothing changes nothing.

        Parameters
        ----------
        other : of the same class
            With the same parameters and the same scorer: that, a copy, or one that has been saved and loaded, compared
            by content. Both by `NoTraining()`, which treats all examples alike: by other schedules it hangs on the
            number of the examples before which of them train or calibrate.

        Raises
        ------
        TypeError, ValueError
            It is not that; the message names the difference.
        """
        both: Self = merged(self, other)
        return both

    # ----------------------------------------------------------------- learning

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        self._scores(self._row(x))
        self.space.check(y)

    def check_many(self, X: Any, y: Any) -> None:
        """Raise what `learn_many(X, y)` would raise for a bad example, and learn nothing."""
        self._scores(self._examples(X, y)[0])

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example, and train if the schedule says so.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`

        Raises
        ------
        ValueError, TypeError
            For a bad object or label; nothing is learned.
        NotConverged
            A training failed: the example is learned, and predictions say nothing until the next training.
        """
        self._advance(self._row(x), np.array([self.space.encode(y)]), predict=False)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn many examples; the same as `learn_one` for each in turn, and faster.

        Parameters
        ----------
        X : (n, d) finite numbers
        y : sequence of n labels

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them; nothing is learned.
        NotConverged
            As by `learn_one`; examples up to that training are learned.
        """
        self._advance(*self._examples(X, y), predict=False)

    def replay_many(self, X: Any, y: Any) -> Block:
        """Predict, then learn, each example in turn; the same as the loop over `predict_one` and `learn_one`.

        Parameters
        ----------
        X : (n, d) finite numbers
        y : sequence of n labels

        Returns
        -------
        block of predictions
            Row i is what is said of X[i] when the examples before it have been learned.

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them; nothing is learned.
        NotConverged
            As by `learn_one`; examples up to that training are learned, their predictions are lost.
        """
        start = self.n
        rows, codes = self._examples(X, y)
        return self._finished(self._reader.join(self._advance(rows, codes, predict=True)), rows, start)

    def _examples(self, X: Any, y: Any) -> tuple[frozen.Block, Integers]:
        rows = clean_rows(X, self._features, self._names)
        if isinstance(y, str | bytes | Mapping) or hasattr(y, "columns") or not isinstance(y, Iterable):
            raise TypeError(f"y must be a sequence of {len(rows)} labels, got {y!r}")
        labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
        if len(labels) != len(rows):
            raise ValueError(f"y must hold a label for each of {len(rows)} rows of X, got {len(labels)}")
        return rows, self.space.encode_many(labels)

    def _advance(self, rows: frozen.Block, codes: Integers, predict: bool) -> list[Block]:
        """Learn examples, all at once between two trainings; return their predictions if wanted."""
        blocks = [self._reader.nothing(0)]
        # All that can be refused is refused before anything is learned: a later machine is of the same kind.
        scores = self._scores(rows)
        start, trained = 0, False
        while start < len(rows):
            stop = len(rows) if self._next is None else min(len(rows), start + self._next - self.n)
            part = slice(start, stop)
            if trained:
                scores[part] = score_rows(self._machine, rows[part])
            calibrates = self.schedule.calibrates(self.n, stop - start, self._rng)
            if self.scorer is None:
                blocks.append(self._reader.nothing(stop - start))
            elif predict:
                blocks.append(self._reader.replay(scores[part], codes[part], calibrates))
            else:
                self._reader.add(scores[part][calibrates], codes[part][calibrates])
            self._features = rows.shape[1]
            self.n += stop - start
            start = stop
            if self._history is not None:
                self._history.append(rows[part], codes[part], calibrates)
                if self.n == self._next:
                    self._train(*self._history.examples)
                    trained = True
        return blocks

    def _train(self, X: frozen.Block, codes: Integers, calibrated: Bools) -> None:
        """Train the scorer and calibrate it, each on what the schedule says of all examples so far."""
        calibrates = self.schedule.split(calibrated, self._rng)
        self._next = self.schedule.next_training(self.n)
        if self._next is None:
            self._history = None
        self.scorer = None
        self._asked = None
        self._reader.clear()
        if calibrates[self._training_set].any():  # learned already, and no longer to be
            self._forget()
        news = ~calibrates
        news[self._training_set] = False
        try:
            for i in np.flatnonzero(news):
                self._machine.learn_one(X[i], self.classes[codes[i]])
            scores = score_rows(self._machine, X[calibrates])
        except BaseException:
            self._forget()
            raise
        self._training_set = np.flatnonzero(~calibrates)
        if len(self._training_set):
            self.scorer = self._machine
            self._reader.add(scores, codes[calibrates])

    def _forget(self) -> None:
        self._machine = self._given.fresh()
        self._training_set = np.zeros(0, np.int64)


def schedule_for(machine: Any, schedule: Schedule | None) -> Schedule:
    """Return the schedule, by default the one that suits the machine; or say what is wrong with the two."""
    if not has_methods(machine, "scores"):
        raise TypeError(
            f"machine must be a machine or a FrozenScorer, with a method 'scores', got {machine!r}; a fitted "
            "scikit-learn classifier is wrapped as FrozenScorer(classifier)"
        )
    learns = callable(getattr(machine, "learn_one", None))
    if learns and not callable(getattr(machine, "fresh", None)):
        raise TypeError(f"machine must have a method 'fresh', to be trained anew, got {machine!r}")
    if learns and machine.n != 0:
        raise ValueError(
            f"machine must have learned nothing, for the schedule says what it learns, got one of {machine.n} examples"
        )
    if schedule is None:
        return PrefixRestart() if learns else NoTraining()
    if checked_schedule(schedule).trains != learns:
        wanted = "that trains the machine" if learns else "without training for a scorer that does not learn"
        raise ValueError(f"schedule must be one {wanted}, got {schedule!r} for {type(machine).__name__}")
    return schedule
