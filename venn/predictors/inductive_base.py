"""The base of inductive predictors: a scorer trained on some examples, its scores calibrated on others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import zip_longest
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.random import default_rng

from venn.labels import HasLabels, space_of
from venn.machines.machine import check_names
from venn.machines.objects import ObjectRows, clean_row, clean_rows
from venn.machines.stack import BaseStack
from venn.parameters import has_methods, instance
from venn.prediction import Bools, Floats, Integers, Label
from venn.predictors.history import AtSetTimes, History, restored_features, restored_history
from venn.predictors.learning import Predictor, of_classes
from venn.predictors.merging import Calibration, MergingReader, checked_parts
from venn.saved import Given, array, base, is_saved, own, param, restored_int, state
from venn.schedules import NoTraining, PrefixRestart, Schedule, checked_schedule
from venn.shifts import CovariateShift
from venn.turns import asks, changes, turn_of

Many = TypeVar("Many")


def learned_by(machine: Any) -> int:
    """Return how many examples a machine ever learned: its `learned`, or else its `n`."""
    return machine.learned if hasattr(machine, "learned") else machine.n


def score_rows(scorer: Any, rows: ObjectRows) -> Floats:
    """Return the (n, c) scores of n objects, by the scorer's own method for many if it has one."""
    many = getattr(scorer, "score_rows", None) or getattr(scorer, "score_many", None)
    if many is not None:
        return many(rows)
    scores = np.empty((len(rows), len(scorer.classes) or 1))  # of numbers: one forecast
    for i, out in enumerate(scores):
        out[:] = scorer.scores(rows[i])
    return scores


def checked_scorer(name: str, machine: Any) -> Any:
    """Return a scorer fitted elsewhere, or a machine that has learned nothing; or say what is wrong with it."""
    if not has_methods(machine, "scores"):
        raise TypeError(
            f"{name} must be a machine or a FrozenScorer, with a method 'scores', got {machine!r}; a fitted "
            "scikit-learn classifier is wrapped as FrozenScorer(classifier), a regressor as FrozenRegressor(regressor)"
        )
    if learns(machine) and not callable(getattr(machine, "fresh", None)):
        raise TypeError(f"{name} must have a method 'fresh', to be trained anew, got {machine!r}")
    if learns(machine) and learned_by(machine) != 0:
        raise ValueError(
            f"{name} must have learned nothing, as the schedule says what it learns, got one of "
            f"{learned_by(machine)} examples"
        )
    return machine


def scorer_of_classes(name: str, machine: Any) -> Any:
    """Return a scorer of classes, or a machine that has learned nothing; or say what is wrong with it."""
    return of_classes(checked_scorer(name, machine), "InductiveDistribution")


def learns(machine: Any) -> bool:
    """Whether what gives scores is trained by a schedule."""
    return any(callable(getattr(machine, name, None)) for name in ("learn_one", "fit_rows"))


def fitting_schedule(name: str, schedule: Any, machine: Any) -> Schedule:
    """Return the schedule, by default the one that suits the machine; or say what is wrong with it."""
    if schedule is None:
        return PrefixRestart() if learns(machine) else NoTraining()
    if checked_schedule(name, schedule).trains != learns(machine):
        wanted = "that trains the machine" if learns(machine) else "without training for a scorer that does not learn"
        raise ValueError(f"{name} must be one {wanted}, got {schedule!r} for {type(machine).__name__}")
    return schedule


GIVEN = own(lambda model: model.given)  # for the check of a schedule
ALWAYS = np.ones(1, np.bool_)  # whether an example calibrates


def to_train(machine: Any) -> Any:
    """Return a machine like this one to be trained."""
    fresh = machine.fresh()
    expect = getattr(fresh, "expect_training", None)  # tells a machine that its scale need not spend examples
    if expect is not None:
        expect()
    return fresh


def _restored_trained(name: str, machine: Any, given: Any, trains: bool) -> Any:
    # The repr of a user's own machine may hold an address.
    alike = type(machine) is type(given) and (not is_saved(machine) or repr(machine) == repr(given))
    if not alike if trains else machine is not None:
        raise ValueError(f"{name} must be {f'one like {given!r}' if trains else 'None'}, got {machine!r}")
    return machine


class OnGiven(HasLabels, Predictor):
    """Base of predictors that are given a scorer, or a machine whose copies they train."""

    given: Any
    shift: Any = None

    @property
    def tuning(self) -> Any:
        """How the machine's kernel and C were chosen, if `tune` chose them."""
        return getattr(self.given, "tuning", None)


class OnScores(OnGiven):
    """Base of inductive predictors: their parameters, a scorer and a schedule."""

    schedule: Schedule

    def new_reader(self) -> MergingReader:
        """Return a reader that has no calibration examples."""
        raise NotImplementedError

    @property
    def trains(self) -> bool:
        """Whether the schedule ever trains the machine."""
        return self.schedule.next_training(0) is not None


@base
class Inductive(OnScores, AtSetTimes, Generic[Many]):
    """Base of inductive predictors: a scorer, a schedule that says when it is trained, a reader of its scores.

    The schedule decides which examples train and which calibrate; the reader turns calibration scores into
    predictions. If a training set contains the last one, only the rest is learned; otherwise a fresh machine
    learns all of it.

    Attributes
    ----------
    given : Machine or FrozenScorer
        The machine as it was given. Do not teach it.
    feature_names : tuple of str or None
        Columns of the table that a given scorer was fitted to.
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Do not teach it.
    """

    n: int = state(restored_int, start=0)
    _features: int | None = state(
        restored_features, own(lambda m: m.n), own(lambda m: getattr(m.given, "features", None)),
        start=own(lambda m: getattr(m.given, "features", None)),
    )  # fmt: skip
    _draws: Any = state(instance, np.random.Generator, "a generator", start=own(lambda m: default_rng(m.schedule.seed)))
    _history: History | None = state(
        restored_history, own(lambda m: m.n), start=own(lambda m: History(space_of(m.given)) if m.trains else None),
        within=True,
    )  # fmt: skip
    _trained_on: Integers = state(array(None, of=np.int64, below="n"), start=own(lambda _: np.zeros(0, np.int64)))
    _trained: Any = state(
        _restored_trained, GIVEN, own(lambda m: m.trains),
        start=own(lambda m: to_train(m.given) if m.trains else None),
    )  # fmt: skip
    _reader: Any = state(None, start=own(lambda m: m.new_reader()), within=True)

    def derive(self) -> None:
        """Inspect the scorer, and find the next training."""
        self.space = space_of(self.given)
        self.feature_names: tuple[str, ...] | None = getattr(self.given, "feature_names", None)
        self._missing: bool = getattr(self.given, "missing", False)  # whether the scorer itself takes or refuses NaN
        self._machine = self.given if self._trained is None else self._trained
        self._look_forward()
        self.scorer = self._machine if self._trained is None or len(self._trained_on) else None
        self._asked: tuple[bytes, Floats] | None = None  # the content of the last object, and its scores by `_machine`

    @property
    def calibration(self) -> Calibration:
        """The state of calibration. It merges with that of other predictors, and can go to another process."""
        return Calibration(self._reader, self.n, self._features)

    def calibrated(self, calibration: Calibration | None = None) -> Self:
        """Return a predictor with the same parameters and a given calibration, by default an empty one."""
        new = type(self).made_of(self.parameters)
        if calibration is not None:
            read = {"n": calibration.n, "features": calibration.features, "reader": calibration.reader.state}
            new.restore(Given(new.state | read))
        return new

    @property
    def takes_gaps(self) -> bool:
        """Whether objects may hold NaN, which the scorer itself takes or refuses."""
        return self._missing

    def row_of(self, x: Any) -> ObjectRows:
        """Return one object as (1, d) float64, or say what is wrong with it."""
        return clean_row(x, self._features, self.feature_names, self._missing)

    # --------------------------------------------------------------- predicting

    @asks
    def predict_block(self, x: Any) -> Many:
        """Return the prediction for one object, as a block of one; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.predict_rows(self.row_of(x))

    def predict_one(self, x: Any) -> Any:
        """Return the prediction for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.said_of(*self.scored(x))

    def said_of(self, rows: ObjectRows, scores: Floats) -> Any:
        """Return the prediction for a checked object, from the reader's input."""
        read = self._reader.nothing(1) if self.scorer is None else self._reader.predict(scores)
        block: Any = self.finished(read, rows, self.n, False)
        return block[0]

    @property
    def nothing(self) -> Any:
        """The prediction before the first training."""
        block: Any = self._reader.nothing(1)
        return block[0]

    def predict_rows(self, rows: ObjectRows) -> Many:
        """Return predictions for objects that have been checked."""
        return self.finished(self._predict(rows), rows, self.n, False)

    def finished(self, block: Many, rows: ObjectRows, step: int, in_turn: bool) -> Many:
        """Return predictions from the reader's output for objects: all at one step, or in turn from that step on."""
        return block

    def _predict(self, rows: ObjectRows) -> Many:
        # Objects are scored even before there is a scorer: a machine that knows nothing refuses bad ones.
        scores = self.scores_of(rows)
        return self._reader.nothing(len(rows)) if self.scorer is None else self._reader.predict(scores)

    def scores_of(self, rows: ObjectRows) -> Floats:
        """Return the reader's input for rows; that of the latest object is kept."""
        if len(rows) != 1:
            return self.read(rows)
        key, asked = rows.tobytes(), self._asked
        if asked is None or asked[0] != key:
            asked = self._asked = key, self.read(rows)
        return asked[1]

    def scored(self, x: Any) -> tuple[ObjectRows, Floats]:
        """Return an object as a row, and the reader's input for it; that of the latest object is kept."""
        rows = self.row_of(x)
        return rows, self.scores_of(rows)

    def scores_of_one(self, x: Any) -> Floats:
        """Return the (1, c) scores of one object, by the scorer as it is."""
        return self.scored(x)[1][:, : len(self.space.labels)]

    def scores_of_many(self, X: Any) -> Floats:
        """Return the (n, c) scores of n objects, by the scorer as it is."""
        rows = clean_rows(X, self._features, self.feature_names, self._missing)
        return self.scores_of(rows)[:, : len(self.space.labels)]

    def read(self, rows: ObjectRows) -> Floats:
        """Return the reader's input for n objects: (n, c) scores, and a column of weights if these differ."""
        scores, shift = score_rows(self._machine, rows), self.shift
        return np.column_stack([scores, shift.weights(rows)]) if isinstance(shift, CovariateShift) else scores

    @asks
    def predict_many(self, X: Any) -> Many:
        """Return predictions for many objects, all from the present state; leaves no trace.

        Parameters
        ----------
        X : (n, d) finite numbers
            An array; for a `FrozenScorer` fitted to a table also a table with the same columns, here and below.

        Raises
        ------
        ValueError, TypeError
            X is not as described.
        """
        return self.predict_rows(clean_rows(X, self._features, self.feature_names, self._missing))

    # ------------------------------------------------------------------ merging

    def merge(self, other: Self) -> Self:
        """Return a new predictor that has calibrated on the examples of both, which do not change.

        Parts merge exactly: whatever the order and grouping, the answers are, to the last bit, those of a predictor
        that has learned all the examples. One that has learned nothing changes nothing.

        Parameters
        ----------
        other : of the same class
            With the same parameters and the same scorer: the same object, a copy, or one saved and loaded, compared by
            content. Both have the schedule `NoTraining()`, which treats all examples alike: in other schedules the
            number of examples before decides which train or calibrate.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described; the message names the difference.
        """
        with turn_of(self, other):
            checked_parts(self, other)
            return self.calibrated(self.calibration.merge(other.calibration))

    # ----------------------------------------------------------------- learning

    def prepare(self, x: Any, y: Label) -> tuple[ObjectRows, Integers]:
        """Return the example as rows and class codes, or raise what learning it would raise."""
        return self.scored(x)[0], np.array([self.space.encode(y)])

    def check_many(self, X: Any, y: Any = None) -> None:
        """Raise what `learn_many(X, y)` would raise for a bad example, and learn nothing."""
        self.scores_of(self.checked_examples(X, y)[0])

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example, and train if the schedule says so.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        prepared : optional
            What `prepare` returned.

        Raises
        ------
        NotConverged
            A training failed: the example is learned, and predictions say nothing until the next training.
        """
        rows, codes = prepared or self.prepare(x, y)
        self.learn_row(rows, codes, self.scores_of(rows))

    def learn_row(self, rows: ObjectRows, codes: Integers, scores: Floats) -> None:
        """Learn one checked example from the reader's input; train if it is time."""
        calibrates = ALWAYS if self.takes_blocks else self.schedule.calibrates(self.n, 1, self._draws)
        if self.scorer is not None and calibrates[0]:
            self._reader.add(scores, codes)
        self._features = rows.shape[1]
        self.n += 1
        if self._history is not None:
            self._keep(rows, codes, calibrates)

    @changes
    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn many examples; the same as `learn_one` for each in turn, and faster.

        Parameters
        ----------
        X : (n, d) finite numbers
            Or a stream of `streams`, which has the labels: then leave out y.
        y : sequence of n labels

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them; nothing is learned.
        NotConverged
            As raised by `learn_one`; examples up to that training are learned.
        """
        self._advance(*self.checked_examples(X, y), predict=False)

    @changes
    def replay_many(self, X: Any, y: Any = None) -> Many:
        """Predict, then learn, each example in turn; the same as the loop over `predict_one` and `learn_one`.

        Parameters
        ----------
        X : (n, d) finite numbers
            Or a stream of `streams`, which has the labels: then leave out y.
        y : sequence of n labels

        Returns
        -------
        block of predictions
            Row i is the prediction for X[i] after the examples before it have been learned.

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them; nothing is learned.
        NotConverged
            As raised by `learn_one`; examples up to that training are learned, their predictions are lost.
        """
        start = self.n
        rows, codes = self.checked_examples(X, y)
        return self.finished(self._reader.join(self._advance(rows, codes, predict=True)), rows, start, True)

    def checked_examples(self, X: Any, y: Any = None) -> tuple[ObjectRows, Integers]:
        """Return n objects as rows and their class codes, or say what is wrong with them."""
        check_stream(X, self.feature_names)
        X, y = with_labels(X, y)
        rows = clean_rows(X, self._features, self.feature_names, self._missing)
        if isinstance(y, str | bytes | Mapping) or hasattr(y, "columns") or not isinstance(y, Iterable):
            raise TypeError(f"y must be a sequence of {len(rows)} labels, got {y!r}")
        labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
        if len(labels) != len(rows):
            raise ValueError(f"y must hold a label for each of {len(rows)} rows of X, got {len(labels)}")
        return rows, self.space.encode_many(labels)

    def scores_alone(self, X: Any) -> Floats:
        """Return the reader's input for n objects, each as if it were alone, to the last bit."""
        rows = clean_rows(X, self._features, self.feature_names, self._missing)
        if self.shift is None and has_methods(self._machine, "score_alone"):
            return self._machine.score_alone(rows)
        return np.concatenate([self.read(rows[i : i + 1]) for i in range(len(rows))])

    @property
    def scores_by(self) -> Any:
        """The object that gives the scores now; predictors with the same one have the same scores."""
        fit = self._machine.fit if isinstance(self._machine, BaseStack) else None
        return self._machine if fit is None else fit

    @cached_property
    def takes_blocks(self) -> bool:
        """Whether `replay_scored` knows its schedule: all examples calibrate at once."""
        return type(self.schedule).calibrates is Schedule.calibrates

    def predict_scored(self, rows: ObjectRows, scores: Floats) -> Many:
        """Return predictions from the scores of objects, all from the present state; there must be a scorer."""
        return self.finished(self._reader.predict(scores), rows, self.n, False)

    def replay_scored(self, rows: ObjectRows, codes: Integers, scores: Floats) -> Many:
        """Predict each example from its scores, then calibrate on it, in turn; `take_back` or `keep_many` must follow.

        No example may lie beyond the next training.
        """
        known, start = self.scorer is not None, self.n
        every = np.ones(len(rows), np.bool_)
        block = self._reader.replay(scores, codes, every) if known else self._reader.nothing(len(rows))
        self._features = rows.shape[1]
        self.n += len(rows)
        return self.finished(block, rows, start, True)

    def take_back(self, codes: Integers, scores: Floats) -> None:
        """Forget the latest examples that `replay_scored` has taken in, of these class codes and scores."""
        if self.scorer is not None:
            self._reader.take_back(scores, codes)
        self.n -= len(codes)

    def keep_many(self, rows: ObjectRows, codes: Integers) -> None:
        """Keep examples that `replay_scored` has taken in for later trainings, and train if it is time."""
        self._keep(rows, codes, np.ones(len(rows), np.bool_))

    def _advance(self, rows: ObjectRows, codes: Integers, predict: bool) -> list[Many]:
        """Learn examples, all at once between two trainings; return their predictions if wanted."""
        blocks = [self._reader.nothing(0)]
        scores = self.scores_of(rows)  # checked before anything is learned: a later machine is of the same kind
        start, trained = 0, False
        while start < len(rows):
            stop = len(rows) if self._next.due is None else min(len(rows), start + self._next.due - self.n)
            part = slice(start, stop)
            if trained:
                scores[part] = self.read(rows[part])
            calibrates = self.schedule.calibrates(self.n, stop - start, self._draws)
            if self.scorer is None:
                blocks.append(self._reader.nothing(stop - start))
            elif predict:
                blocks.append(self._reader.replay(scores[part], codes[part], calibrates))
            else:
                self._reader.add(scores[part][calibrates], codes[part][calibrates])
            self._features = rows.shape[1]
            self.n += stop - start
            start = stop
            trained = self._keep(rows[part], codes[part], calibrates) or trained
        return blocks

    @property
    def settled(self) -> Any:
        """Return the number of examples that a training uses; None if they are not known before."""
        return self.schedule.settled if has_methods(self._machine, "expect_rows") else None

    def _expect(self, X: Any, codes: Any) -> None:
        self._machine.expect_rows(X, codes)

    def _fit(self, X: ObjectRows, codes: Integers, calibrated: Bools) -> None:
        """Train the scorer and calibrate it, each on the examples that the schedule chooses."""
        calibrates = self.schedule.split(calibrated, self._draws)
        self.scorer = None
        self._asked = None
        self._reader.clear()
        at_once = has_methods(self._machine, "fit_rows")
        if at_once or calibrates[self._trained_on].any():  # or an example was learned that now calibrates
            self._forget()
        news = ~calibrates
        news[self._trained_on] = False
        try:
            if at_once and news.any():
                self._machine.fit_rows(X[news], codes[news])
            for i in [] if at_once else np.flatnonzero(news):
                self._machine.learn_one(X[i], self.space.decode(codes[i]))
            scores = self.read(X[calibrates])
        except BaseException:
            self._forget()
            raise
        self._trained_on = np.flatnonzero(~calibrates)
        if len(self._trained_on):
            self.scorer = self._machine
            self._reader.add(scores, codes[calibrates])

    def _forget(self) -> None:
        self._trained = self._machine = to_train(self.given)
        self._trained_on = np.zeros(0, np.int64)


@base
class InductivePart(Inductive[Many]):
    """An inductive predictor as a part of another predictor, which gives it a reader."""

    machine: Any = param(scorer_of_classes, kept_as="given")
    reader: MergingReader = param()
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None)

    def new_reader(self) -> MergingReader:
        """Return the reader that it was given."""
        return self.reader


def check_stream(stream: Any, names: tuple[str, ...] | None) -> None:
    """Raise if a stream's features are in another order than a scorer with these names takes them.

    Its rows carry no names. Features of other names, as of codes of text, go by position.
    """
    features = getattr(stream, "features", None)
    if names is None or not isinstance(features, tuple | list):
        return
    if any(feature in names and feature != name for feature, name in zip_longest(features, names)):
        check_names("stream must have the features", features, names)


def with_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Return objects and labels, from arguments or from a stream in their place."""
    codes, classes = getattr(X, "y", None), getattr(X, "classes", None)
    if y is not None:
        return X, y
    if not (isinstance(codes, np.ndarray) and isinstance(classes, tuple) and hasattr(X, "X")):
        raise TypeError(f"y must be given, or a stream of `streams` for X, which has labels, got {X!r} alone")
    return X.X, [classes[code] for code in codes.tolist()] if classes else codes.tolist()
