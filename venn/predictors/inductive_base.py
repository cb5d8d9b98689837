"""The base of inductive predictors: a scorer trained on some examples, its scores calibrated on others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from venn.covariates import CovariateShift
from venn.labels import HasLabels, space_of
from venn.machines import frozen
from venn.machines.checks import check_names
from venn.machines.frozen import clean_row, clean_rows
from venn.parameters import has_methods
from venn.prediction import Bools, Floats, Integers, Label
from venn.predictors.history import History
from venn.predictors.learning import Predictor, of_classes
from venn.predictors.merging import Calibration, Reader, checked_parts
from venn.saved import held_bool, held_codes, held_int, held_rows, is_saved
from venn.schedules import NoTraining, PrefixRestart, Schedule, checked_schedule
from venn.turns import turn_of

Many = TypeVar("Many")


def learned_by(machine: Any) -> int:
    """Return how many examples a machine ever learned: `learned`, or `n` where a user's own machine has only that."""
    return machine.learned if hasattr(machine, "learned") else machine.n


def score_rows(scorer: Any, rows: frozen.ObjectRows) -> Floats:
    """Return the (n, c) scores of n objects, by the scorer's own method for many if it has one."""
    many = getattr(scorer, "score_rows", None) or getattr(scorer, "score_many", None)
    if many is not None:
        return many(rows)
    scores = np.empty((len(rows), len(scorer.classes) or 1))  # of numbers: one forecast
    for i, out in enumerate(scores):
        out[:] = scorer.scores(rows[i])
    return scores


class Inductive(HasLabels, Predictor, Generic[Many]):
    """Base of inductive predictors: a scorer, a schedule that says when it is trained, a reader of its scores.

    The schedule decides which examples train and which calibrate; the reader turns calibration scores into
    predictions. If a training set contains the last one, only the rest is learned; otherwise a fresh machine
    learns all of it.

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing; it is never taught, only its `fresh()` copies are.
    reader : Reader
    schedule : Schedule

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

    held_as: ClassVar[tuple[tuple[str, str], ...]] = (("machine", "given"),)
    shift: Any = None

    def __init__(self, machine: Any, reader: Reader, schedule: Schedule) -> None:
        self.given = machine
        self.schedule = schedule
        self._reader = reader
        self.space = space_of(machine)
        self._features: int | None = getattr(machine, "features", None)
        self.feature_names: tuple[str, ...] | None = getattr(machine, "feature_names", None)
        self._missing: bool = getattr(machine, "missing", False)  # whether NaN is the scorer's to take or to refuse
        self._rng = np.random.default_rng(schedule.seed)
        self.n = 0
        self._next = schedule.next_training(0)
        self._history = None if self._next is None else History(self.space)
        self._training_set = np.zeros(0, np.int64)  # examples that `_machine` has learned
        self._machine = machine if self._next is None else self._fresh()
        self.scorer = machine if self._next is None else None
        self._asked: tuple[bytes, Floats] | None = None  # the last object and its scores by `_machine`

    @property
    def tuning(self) -> Any:
        """How the machine's kernel and C were chosen, if `tune` chose them."""
        return getattr(self.given, "tuning", None)

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """What was learned: the examples that are still of use, the trained machine, the calibration examples."""
        trains = self._history is not None
        return {
            "n": self.n,
            "features": self._features,
            "draws": self._rng,
            "history": None if self._history is None else self._history.state,
            "trained_on": self._training_set if trains else None,
            "machine": None if self._machine is self.given else self._machine,
            "scores": self.scorer is not None,
            "reader": self._reader.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        super().restore(state)
        n, features = held_int("n", state["n"]), state["features"]
        if (n == 0 or self._features is not None) and features != self._features:
            raise ValueError(f"features must be {self._features!r}, got {features!r}")
        if n:
            held_int("features", features, 1)
        draws = state["draws"]
        if not isinstance(draws, np.random.Generator) or type(draws.bit_generator) is not type(self._rng.bit_generator):
            raise ValueError(f"draws must be a generator as of a new predictor, got {draws!r}")
        trains = self._next is not None
        self._restore_history(state, n)
        machine, scores = state["machine"], held_bool("scores", state["scores"])
        self._restore_machine(machine, trains)
        self.n, self._features, self._rng = n, features, draws
        self.scorer = self._machine if scores else None
        self._asked = None
        self._reader.restore(state["reader"])

    def _restore_history(self, state: dict[str, Any], n: int) -> None:
        if state["history"] is None:
            self._history = self._next = None
            return
        if self._next is None:
            raise ValueError(f"history must be None by {self.schedule!r}, got one")
        self._history = History.restored(state["history"], n, self.space)
        self._next = self.schedule.next_training(n)
        if n and np.shape(state["history"]["X"])[1] != state["features"]:
            raise ValueError(f"history must be of {state['features']} features")
        m = held_rows("trained_on", state["trained_on"])
        self._training_set = held_codes("trained_on", state["trained_on"], (m,), 0, n).copy()

    def _restore_machine(self, machine: Any, trains: bool) -> None:
        if machine is None:
            if trains:
                raise ValueError("machine must be one that the schedule trains, got none")
            return
        # The repr of a user's own machine may hold an address.
        alike = not is_saved(machine) or repr(machine) == repr(self.given)
        if not trains or type(machine) is not type(self.given) or not alike:
            raise ValueError(f"machine must be one like {self.given!r}, got {machine!r}")
        if self._history is not None and learned_by(machine) != len(self._training_set):
            raise ValueError(
                f"machine must have learned {len(self._training_set)} examples, got one of {learned_by(machine)}"
            )
        self._machine = machine

    @property
    def calibration(self) -> Calibration:
        """What remains of the calibration examples: it merges with that of others and can go to another process."""
        return Calibration(self._reader, self.n, self._features)

    def calibrated(self, calibration: Calibration | None = None) -> Self:
        """Return a predictor with the same parameters and this calibration, by default none."""
        new = type(self).made_of(self.parameters)
        if calibration is not None:
            new.restore(
                new.state | {"n": calibration.n, "features": calibration.features, "reader": calibration.reader.state}
            )
        return new

    def _row(self, x: Any) -> frozen.ObjectRows:
        """Return one object as (1, d) float64, or say what is wrong with it."""
        return clean_row(x, self._features, self.feature_names, self._missing)

    # --------------------------------------------------------------- predicting

    def expect(self, objects: Sequence[Any]) -> None:
        """Let a given scorer score objects that have arrived in one call; no answer depends on it."""
        if self._history is None and has_methods(self._machine, "expect"):
            self._machine.expect(objects)

    def predict_block(self, x: Any) -> Many:
        """Return the prediction for one object, as a block of one; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.predict_rows(self._row(x))

    def predict_one(self, x: Any) -> Any:
        """Return the prediction for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        block: Any = self.predict_rows(self._row(x))
        return block[0]

    @property
    def nothing(self) -> Any:
        """What it says of an object before its first training."""
        block: Any = self._reader.nothing(1)
        return block[0]

    def predict_rows(self, rows: frozen.ObjectRows) -> Many:
        """Return predictions for objects that have been checked."""
        return self.finished(self._predict(rows), rows, self.n, False)

    def finished(self, block: Many, rows: frozen.ObjectRows, step: int, in_turn: bool) -> Many:
        """Return predictions from the reader's output for objects: all at one step, or in turn from that step on."""
        return block

    def _predict(self, rows: frozen.ObjectRows) -> Many:
        # Objects are scored even before there is a scorer: a machine that knows nothing refuses bad ones.
        scores = self.scores_of(rows)
        return self._reader.nothing(len(rows)) if self.scorer is None else self._reader.predict(scores)

    def scores_of(self, rows: frozen.ObjectRows) -> Floats:
        """Return what the reader receives of rows; that of the last object asked about is kept."""
        if len(rows) != 1:
            return self._read(rows)
        key = rows.tobytes()
        if self._asked is None or self._asked[0] != key:
            self._asked = key, self._read(rows)
        return self._asked[1]

    def scores_of_one(self, x: Any) -> Floats:
        """Return the (1, c) scores of one object, by the scorer as it is."""
        return self.scores_of(self._row(x))[:, : len(self.space.labels)]

    def scores_of_many(self, X: Any) -> Floats:
        """Return the (n, c) scores of n objects, by the scorer as it is."""
        rows = clean_rows(X, self._features, self.feature_names, self._missing)
        return self.scores_of(rows)[:, : len(self.space.labels)]

    def _read(self, rows: frozen.ObjectRows) -> Floats:
        """Return what the reader receives of n objects: (n, c) scores, beside them their weights, if these differ."""
        scores, shift = score_rows(self._machine, rows), self.shift
        return np.column_stack([scores, shift.weights(rows)]) if isinstance(shift, CovariateShift) else scores

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

    def note(self, x: Any, y: Label) -> tuple[frozen.ObjectRows, Integers]:
        """Return the example as rows and class codes, or raise what learning it would raise."""
        row = self._row(x)
        self.scores_of(row)
        return row, np.array([self.space.encode(y)])

    def check_many(self, X: Any, y: Any = None) -> None:
        """Raise what `learn_many(X, y)` would raise for a bad example, and learn nothing."""
        self.scores_of(self.checked_examples(X, y)[0])

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example, and train if the schedule says so.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        noted : optional
            What `note` returned.

        Raises
        ------
        NotConverged
            A training failed: the example is learned, and predictions say nothing until the next training.
        """
        rows, codes = noted or self.note(x, y)
        if self._history is not None:
            self._advance(rows, codes, predict=False)
            return
        scores, calibrates = self.scores_of(rows), self.schedule.calibrates(self.n, 1, self._rng)
        if self.scorer is not None and calibrates[0]:
            self._reader.add(scores, codes)
        self._features = rows.shape[1]
        self.n += 1

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

    def checked_examples(self, X: Any, y: Any = None) -> tuple[frozen.ObjectRows, Integers]:
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

    def _advance(self, rows: frozen.ObjectRows, codes: Integers, predict: bool) -> list[Many]:
        """Learn examples, all at once between two trainings; return their predictions if wanted."""
        blocks = [self._reader.nothing(0)]
        # Everything is checked before anything is learned: a later machine is of the same kind.
        scores = self.scores_of(rows)
        start, trained = 0, False
        while start < len(rows):
            stop = len(rows) if self._next is None else min(len(rows), start + self._next - self.n)
            part = slice(start, stop)
            if trained:
                scores[part] = self._read(rows[part])
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

    def _train(self, X: frozen.ObjectRows, codes: Integers, calibrated: Bools) -> None:
        """Train the scorer and calibrate it, each on the examples that the schedule chooses."""
        calibrates = self.schedule.split(calibrated, self._rng)
        self._next = self.schedule.next_training(self.n)
        if self._next is None:
            self._history = None
        self.scorer = None
        self._asked = None
        self._reader.clear()
        at_once = has_methods(self._machine, "fit_rows")
        if at_once or calibrates[self._training_set].any():  # or an example was learned that now calibrates
            self._forget()
        news = ~calibrates
        news[self._training_set] = False
        try:
            if at_once and news.any():
                self._machine.fit_rows(X[news], codes[news])
            for i in [] if at_once else np.flatnonzero(news):
                self._machine.learn_one(X[i], self.space.decode(codes[i]))
            scores = self._read(X[calibrates])
        except BaseException:
            self._forget()
            raise
        self._training_set = np.flatnonzero(~calibrates)
        if len(self._training_set):
            self.scorer = self._machine
            self._reader.add(scores, codes[calibrates])

    def _fresh(self) -> Any:
        """Return a machine to be trained."""
        machine = self.given.fresh()
        expect = getattr(machine, "expect_training", None)  # of a machine whose scale spends examples
        if expect is not None:
            expect()
        return machine

    def _forget(self) -> None:
        self._machine = self._fresh()
        self._training_set = np.zeros(0, np.int64)


def check_stream(stream: Any, names: tuple[str, ...] | None) -> None:
    """Raise if features of a stream stand at other places than where a scorer with these names takes them.

    Its rows carry no names. Features of other names, as of codes of text, go by position.
    """
    features = getattr(stream, "features", None)
    if names is None or not isinstance(features, tuple | list):
        return
    if any(feature in names and feature != name for feature, name in zip_longest(features, names)):
        check_names("stream must have the features", features, names)


def with_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Return objects and labels: those given, or those of a stream given in place of both."""
    codes, classes = getattr(X, "y", None), getattr(X, "classes", None)
    if y is not None:
        return X, y
    if not (isinstance(codes, np.ndarray) and isinstance(classes, tuple) and hasattr(X, "X")):
        raise TypeError(f"y must be given, or a stream of `streams` for X, which has labels, got {X!r} alone")
    return X.X, [classes[code] for code in codes.tolist()] if classes else codes.tolist()


def schedule_of_classes(machine: Any, schedule: Schedule | None) -> Schedule:
    """Return the schedule for a machine of classes, or say what is wrong with either."""
    schedule = schedule_for(machine, schedule)
    of_classes(machine, "InductiveDistribution")
    return schedule


def schedule_for(machine: Any, schedule: Schedule | None) -> Schedule:
    """Return the schedule, by default the one that suits the machine; or say what is wrong with either."""
    if not has_methods(machine, "scores"):
        raise TypeError(
            f"machine must be a machine or a FrozenScorer, with a method 'scores', got {machine!r}; a fitted "
            "scikit-learn classifier is wrapped as FrozenScorer(classifier), a regressor as FrozenRegressor(regressor)"
        )
    learns = any(callable(getattr(machine, name, None)) for name in ("learn_one", "fit_rows"))
    if learns and not callable(getattr(machine, "fresh", None)):
        raise TypeError(f"machine must have a method 'fresh', to be trained anew, got {machine!r}")
    if learns and learned_by(machine) != 0:
        raise ValueError(
            "machine must have learned nothing, as the schedule says what it learns, got one of "
            f"{learned_by(machine)} examples"
        )
    if schedule is None:
        return PrefixRestart() if learns else NoTraining()
    if checked_schedule("schedule", schedule).trains != learns:
        wanted = "that trains the machine" if learns else "without training for a scorer that does not learn"
        raise ValueError(f"schedule must be one {wanted}, got {schedule!r} for {type(machine).__name__}")
    return schedule
