"""Learners that are fitted anew at set numbers of examples: as predictors, and as experts for a mixture."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from venn._compiled.mixture import shares_of_scores
from venn.labels import HasLabels, Real, checked_labels, space_of
from venn.machines.fit_ahead import Fits, trees_imported
from venn.machines.number_experts import Process, QuantileForest
from venn.machines.objects import Query, clean_object, clean_row, clean_rows
from venn.machines.stack import KINDS, Learners, dense
from venn.machines.threads import asked, one_thread
from venn.parameters import above_one, integer, with_methods
from venn.prediction import Floats, Forecast, Integers, Label
from venn.predictors.history import AtSetTimes, History, restored_features, restored_history
from venn.predictors.inductive_base import Inductive
from venn.predictors.learning import Predictor, elementary, put
from venn.saved import (
    array,
    component,
    own,
    param,
    part,
    restored_bool,
    restored_finite,
    restored_int,
    state,
)
from venn.schedules import FIRST, PrefixRestart, Schedule, checked_schedule
from venn.turns import asks


@component
class FittedAnew(AtSetTimes):
    """Base of learners that keep all examples until the last fit, and are fitted to them when a schedule says so."""

    n: int = state(restored_int, start=0)
    _features: int | None = state(restored_features, own(lambda m: m.n), start=None)
    _history: History | None = state(
        restored_history, own(lambda m: m.n), start=own(lambda m: History(space_of(m))), within=True
    )

    def derive(self) -> None:
        """Find the next fit."""
        self.space = space_of(self)
        self._look_forward()

    def settled(self, time: int) -> int:
        """Return to how many examples, the first ones, it is fitted at a time."""
        return time

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example, and fit if the schedule says so.

        Raises
        ------
        Exception
            Whatever is raised where it cannot be fitted: the example is learned, and the forecasts of the previous fit
            remain until the next.
        """
        self.keep_many(*(prepared or self.prepare(x, y)))

    def keep_many(self, rows: Any, codes: Any) -> None:
        """Learn checked rows and codes; none may lie beyond the next fit."""
        self._features = rows.shape[1]
        self.n += len(rows)
        self._keep(rows, codes, np.zeros(len(rows), np.bool_))


# ------------------------------------------------------------------------------------------------------------- refitted
# Any batch classifier as an online predictor: fitted anew at set times, to all examples so far.


def _unfitted(name: str, estimator: Any) -> Any:
    wanted = "a classifier object with methods fit and predict_proba"
    return fresh(with_methods(name, estimator, wanted, "fit", "predict_proba"))


def _that_trains(name: str, schedule: Any) -> Schedule:
    schedule = PrefixRestart() if schedule is None else checked_schedule(name, schedule)
    if not schedule.trains:
        raise ValueError(f"{name} must be one that trains, got {schedule!r}")
    return schedule


@component
class Refitted(FittedAnew):
    """Point forecasts by a batch classifier that is fitted anew at set times, to all examples so far.

    So estimators that do not learn online can join those that do, in a `Panel` or a replay. Between two fits
    the forecasts are those of the last fit; before the first they are uniform. Classes that were not among the examples
    of a fit have probability 0 until the next. If there was only one class the estimator is not fitted: that
    class has probability 1. These forecasts carry no guarantee.

    Each fit costs what a fit of the estimator costs. All examples are kept until the schedule says that there will be
    no further fit.

    Parameters
    ----------
    estimator : classifier with `fit(X, y)` and `predict_proba(X)`
        As in scikit-learn. It does not change; unfitted copies of it are fitted to (n, d) float64 objects and (n,)
        labels. One that draws at random should have a fixed seed; it then starts from that seed at each fit.
    classes : sequence of distinct labels
        They must be of types that the estimator can sort.
    schedule : Schedule, default PrefixRestart()
        Only its times of training matter, not its calibration. `PrefixRestart(first, growth, last)`
        fits at growing numbers of examples, `FreshSplit()` after every one.

    Attributes
    ----------
    machine : None
        There is no machine that a panel may teach or share.
    n : int
        Number of examples learned.
    fitted : classifier or None
        The last fitted classifier; None before the first fit, and if there was one class only. Do not fit it again.
    fitted_to : int
        Number of examples at the last successful fit; 0 before.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from venn.schedules import PrefixRestart
    >>> model = Refitted(LogisticRegression(), ["no", "yes"], schedule=PrefixRestart(first=4))
    >>> model.predict_one([0.1])
    Forecast('no': 0.500)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.1]).label
    'no'
    """

    estimator: Any = param(_unfitted, foreign=True)
    classes: tuple[Label, ...] = param(checked_labels, 2)
    schedule: Schedule = param(_that_trains, default=None, kw_only=True)

    fitted_to: int = state(restored_int, 0, own(lambda m: m.n), start=0)
    _proba: Floats = state(  # used when no estimator is asked
        restored_finite,
        own(lambda m: (len(m.classes),)),
        start=own(lambda m: np.full(len(m.classes), 1 / len(m.classes))),
    )
    _columns: Integers | None = state(array(None, of=np.int64, below="classes", none=True), start=None)
    fits: bool = state(restored_bool, start=False)  # whether `fitted` is a classifier
    fitted: Any = state(None, start=None, foreign=True)

    def derive(self) -> None:
        """Fit again if a file has the examples without the fitted estimator."""
        super().derive()
        if self.fits and self.fitted is None:
            if self._history is None or self._columns is None:
                raise ValueError("fitted must be one of the models, got none")
            # The fit is the same, as the estimator starts from its own seed each time.
            X, codes, _ = self._history.examples
            self._fit(X[: self.fitted_to], codes[: self.fitted_to])

    @property
    def state(self) -> dict[str, Any]:
        """The examples, and the fitted estimator if they are gone."""
        return super().state | ({"fitted": None} if self._history is not None else {})

    def predict_one(self, x: Any) -> Forecast:
        """Return the forecast for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers

        Raises
        ------
        ValueError, TypeError
            x is not as described, or the estimator's answer is not a distribution.
        """
        row = clean_object(x, self._features)
        if self.fitted is None:
            return Forecast(self._proba, self.classes)
        return Forecast(self._distribution(asked(self.fitted.predict_proba, row[None])), self.classes)

    def prepare(self, x: Any, y: Label) -> tuple[Floats, Integers]:
        """Return the example as rows and class codes, or raise what learning it would raise."""
        return clean_object(x, self._features)[None], np.array([self.space.encode(y)])

    def _fit(self, X: Any, codes: Integers, calibrated: Any = None) -> None:
        present = np.unique(codes)
        if len(present) == 1:
            self._proba = (np.arange(len(self.classes)) == present[0]).astype(np.float64)
            self.fits, self.fitted, self.fitted_to = False, None, len(codes)
            return
        estimator = fresh(self.estimator)
        with one_thread():
            asked(lambda rows: estimator.fit(rows, label_array(self.classes)[codes]), X.copy())
        found = np.asarray(estimator.classes_).tolist()
        if any(label not in self.classes for label in found):
            raise ValueError(f"estimator must have classes_ among {list(self.classes)!r}, got {found!r}")
        self._columns = self.space.encode_many(found)
        self.fits, self.fitted, self.fitted_to = True, estimator, len(codes)

    def _distribution(self, given: Any) -> Floats:
        """Return (c,) probabilities from those of the estimator's classes, (1, m), or say what is wrong with them."""
        p = np.asarray(given, np.float64)
        assert self._columns is not None
        # Sums of estimators that compute in float32 differ from 1 by rounding.
        if p.shape != (1, len(self._columns)) or not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-4:
            raise ValueError(
                f"estimator must give one probability for each of its {len(self._columns)} classes, with sum 1, "
                f"got {given!r}"
            )
        proba = np.zeros(len(self.classes))
        proba[self._columns] = p[0] / p.sum()
        return proba


def fresh(estimator: Any) -> Any:
    """Return a copy of the estimator that is not fitted."""
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    from sklearn.base import clone  # only when there is an estimator: the import takes a second

    return clone(estimator)


def label_array(classes: Sequence[Label]) -> Any:
    """Return (c,) labels as an array that returns them unchanged: of dtype object if numpy would change them."""
    array = np.asarray(classes) if len({type(label) for label in classes}) == 1 else None
    if array is None or array.ndim != 1 or array.tolist() != list(classes):
        array = np.empty(len(classes), object)
        array[:] = classes
    return array


# --------------------------------------------------------------------------------------------------------------- refits
# Experts for a mixture: learners that are fitted anew at growing numbers of examples, and a scorer's own say.


LATE, SHARE = 2000, 0.95  # from so many examples on, those after the first share are not fitted to
SLOW = 150  # examples that are known: here fits to fewer are made before another process has begun
OFTEN = 1.2  # ratio of the numbers of examples at two late fits to classes


class FittedAhead(FittedAnew):
    """Base of learners whose late fits another process makes, since the examples of each are known early."""

    def derive(self) -> None:
        """Begin without a fit in another process."""
        super().derive()
        self._fits = Fits()

    def _made(self) -> tuple[Any, ...]:
        """Return the function that makes a fit, from objects, labels and further arguments."""
        raise NotImplementedError

    def _take(self, fit: Any, X: Any, codes: Any) -> None:
        """Use a finished fit from this number of examples on."""
        raise NotImplementedError

    def _fit(self, X: Any, codes: Any, calibrated: Any) -> None:
        (make, *more), m = self._made(), self.settled(len(codes))
        self._take(self._fits.to(make, dense(X[:m]), codes[:m], *more), X, codes)

    def _expect(self, X: Any, codes: Any) -> None:
        make, *more = self._made()
        self._fits.begin(make, dense(X), codes, *more)


class LateExperts(FittedAhead):
    """Base of experts for a mixture: at growing numbers of examples they are fitted to all, or to most of them."""

    questioned = True

    first: int
    growth: float
    last: int

    @property
    def times(self) -> Schedule:
        """It says when to fit."""
        return PrefixRestart(self.first, self.growth, self.last)

    def settled(self, time: int) -> int:
        """Return to how many examples, the first ones, it is fitted at a time."""
        return time if time < LATE else math.floor(SHARE * time)

    def predict_one(self, x: Any) -> Floats:
        """Return what each expert says of one object, in rows; NaN before the first fit."""
        return self.said_of(clean_row(x, self._features))

    def said_of(self, row: Any) -> Floats:
        """Return the same of a checked object."""
        raise NotImplementedError

    @asks
    def predict_many(self, X: Any) -> Floats:
        """Return the (3, n, c) probabilities, or (n, 3, 100) quantiles, for n objects; NaN before the first fit."""
        return self._predicted(clean_rows(X, self._features))

    def _predicted(self, rows: Any) -> Floats:
        raise NotImplementedError

    def prepare(self, x: Any, y: Label) -> tuple[Any, Any]:
        """Return the example as rows and labels or class codes, or raise what learning it would raise."""
        return clean_row(x, self._features), np.array([self.space.encode(y)])


@component
class Refits(LateExperts):
    """A forest, boosted trees and a logistic regression, fitted anew again and again: experts for a mixture.

    For an `ExpertMixture`. A prediction is an array with a row for each of the three. A row is NaN before the first
    fit, and where a learner predicts unseen examples worse than the frequencies of the classes (the log names it). They
    are fitted to all examples so far; where these are 2000 or more, to the first 95 %. Those are known before, so that
    another process makes the fit while the stream goes on.

    Parameters
    ----------
    classes : sequence of distinct labels
    first : int >= 1, default 50
        Examples at the first fit.
    growth : float > 1, default 1.4
        Ratio of the numbers of examples at two fits, 1.2 or less from 2000 on: their number grows as the logarithm of
        that of the examples.
    last : int >= first, default 100000
        No fit beyond that many examples; memory does not grow after that.

    Attributes
    ----------
    n : int
        Number of examples learned.
    learners : Learners or None
        What was fitted last.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> model = Refits(["no", "yes"], first=40)
    >>> rng = np.random.default_rng(0)
    >>> for x in rng.normal(size=(40, 2)):
    ...     model.learn_one(x, "yes" if x[0] > 0 else "no")
    >>> model.predict_one([2.0, 0.0]).argmax(axis=1).tolist()
    [1, 1, 1]
    """

    experts_inside = KINDS

    classes: tuple[Label, ...] = param(checked_labels)
    first: int = param(integer, 1, default=50)
    growth: float = param(above_one, default=1.4)
    last: int = param(integer, FIRST, default=100_000)

    learners: Learners | None = state(part(Learners, c="classes", features="_features"), start=None)

    @property
    def times(self) -> Schedule:
        """It says when to fit."""
        if self.n < LATE or self.n >= self.last:
            return super().times
        return PrefixRestart(max(self.first, LATE), min(self.growth, OFTEN), self.last)

    def said_of(self, row: Any) -> Floats:
        """Return the (3, c) probabilities for a checked object; NaN before the first fit."""
        return self._predicted(row)[:, 0]

    def _predicted(self, rows: Any) -> Floats:
        if self.learners is None:
            return np.full((KINDS, len(rows), len(self.classes)), np.nan)
        return self.learners.answers(dense(rows))

    def foresee(self, examples: Sequence[tuple[Any, Label]], whole: bool = False) -> None:
        """Let another process make the fits to these examples, the first ones, while they are learned.

        Raises
        ------
        TypeError, ValueError
            An example cannot be learned.
        """
        super().foresee(examples, whole)
        times, time = list[int](), self.times.next_training(0)
        while time is not None and time <= len(examples):
            times, time = [*times, time], self.times.next_training(time)
        late = [time for time in times if time < LATE and (time >= SLOW or not trees_imported())]
        if late and late[-1] >= SLOW and not self.n:
            objects, labels = zip(*examples[: late[-1]], strict=True)
            rows = dense(clean_rows(objects, None))
            self._fits.foresee(Learners.fitted, rows, self.space.encode_many(labels), late, len(self.classes))

    def _made(self) -> tuple[Any, ...]:
        return Learners.fitted, len(self.classes)

    def _take(self, fit: Any, X: Any, codes: Any) -> None:
        self.learners = fit
        fit.tell("an expert of the forecast", self.settled(self.n))


OF_NUMBERS = 3
LEVELS = (np.arange(100) + 0.5) / 100  # levels of the quantiles that experts of numbers predict
NORMAL = ndtri(LEVELS)


@component
class NumberRefits(LateExperts):
    """All labels, a forest whose leaves hold them, and a Gaussian process, fitted anew again and again: experts.

    For a `DistributionMixture`. A prediction is an array with 100 quantiles for each of the three, NaN before the first
    fit. They are fitted to all examples so far; where these are 2000 or more, to the first 95 %, by another process, as
    `Refits` are.

    Parameters
    ----------
    first, growth
        As of `Refits`.
    last : int >= first, default 20000
        No fit beyond that many examples; memory does not grow after that.

    Attributes
    ----------
    n : int
        Number of examples learned.
    forest : QuantileForest or None
    process : Process or None
        What was fitted last.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> model = NumberRefits(first=40)
    >>> rng = np.random.default_rng(0)
    >>> for x in rng.normal(size=(40, 2)):
    ...     model.learn_one(x, x[0])
    >>> labels, forest, process = model.predict_one([2.0, 0.0])
    >>> bool(labels[50] < forest[50] < process[50])
    True
    """

    classes, space, experts_inside = (), Real(), OF_NUMBERS

    first: int = param(integer, 1, default=50)
    growth: float = param(above_one, default=1.4)
    last: int = param(integer, FIRST, default=20_000)

    forest: QuantileForest | None = state(part(QuantileForest, features="_features"), start=None)
    process: Process | None = state(part(Process, features="_features"), start=None)

    def said_of(self, row: Any) -> Floats:
        """Return the (3, 100) quantiles for a checked object; NaN before the first fit."""
        return self._predicted(row)[0]

    def _predicted(self, rows: Any) -> Floats:
        said = np.full((len(rows), OF_NUMBERS, len(LEVELS)), np.nan)
        if self.forest is not None and self.process is not None:
            labels = self.forest.labels
            said[:, 0] = labels[(LEVELS * len(labels)).astype(np.int64)]
            said[:, 1] = self.forest.quantiles(rows, LEVELS)
            said[:, 2] = self.process.quantiles(rows, NORMAL)
        return said

    def _made(self) -> tuple[Any, ...]:
        return both_fitted, self.process

    def _take(self, fit: Any, X: Any, codes: Any) -> None:
        self.process, self.forest = fit


def both_fitted(X: Floats, labels: Floats, last: Process | None) -> tuple[Process, QuantileForest]:
    """Return a process, by the last one, and a forest."""
    process = Process.fitted(X, labels, last)
    return process, QuantileForest.fitted_unseen(X, labels, process.shape, np.zeros(0))[0]


def _with_probabilities(name: str, predictor: Any) -> Any:
    inside = elementary([predictor])
    if not inside or not all(_says_probabilities(one) for one in inside):
        raise TypeError(f"{name} must be an inductive one with a scorer of probabilities, got {predictor!r}")
    return predictor


def _says_probabilities(predictor: Any) -> bool:
    given = predictor.given if isinstance(predictor, Inductive) else getattr(predictor, "machine", None)
    return log_odds(given) or bool(getattr(given, "probabilities", False))


@component
class ScorerForecast(HasLabels, Predictor):
    """The uncalibrated probabilities of a predictor's scorer, as an expert for a mixture.

    It learns nothing: the predictor does, which must stand in the same `Panel` or mixture.

    Parameters
    ----------
    predictor : Inductive, or Switch
        Its scorer gives probabilities, as a `FrozenScorer` by `predict_proba` and a `Stack` do; of a `Switch`
        the early machine, too, as a `Mixture` does. Whoever answers there is read.

    Raises
    ------
    TypeError
        `predictor` is something else.

    Examples
    --------
    >>> import venn
    >>> from sklearn.naive_bayes import GaussianNB
    >>> fitted = GaussianNB().fit([[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"])
    >>> abers = venn.InductiveVennAbers(venn.FrozenScorer(fitted, method="predict_proba"))
    >>> ScorerForecast(abers).predict_one([1.0]).shape
    (1, 2)
    """

    questioned = True

    predictor: Any = param(_with_probabilities)

    def derive(self) -> None:
        """Set the labels."""
        self.space = self.predictor.space

    def around(self, predictor: Any) -> ScorerForecast:
        """Return the same expert for another predictor, as in a merge."""
        return ScorerForecast(predictor)

    @property
    def n(self) -> int:
        """Number of examples learned by the predictor."""
        return int(self.predictor.n)

    @property
    def read(self) -> Any:
        """The predictor that has the scorer now."""
        if isinstance(self.predictor, Inductive):
            return self.predictor
        return elementary([self.predictor], asked=True)[0]

    def predict_one(self, x: Any) -> Floats:
        """Return the (1, c) probabilities for one object; NaN before there is a scorer."""
        asked = self.read
        if isinstance(asked, Inductive):
            return shares_of(asked.scores_of_one(x), asked.scorer is not None, asked.given)[:, 0]
        given = put(asked.machine, x) if isinstance(x, Query) else x
        return shares_of(asked.machine.scores(given)[None], self.n > 0, asked.machine)[:, 0]

    def of_scores(self, scores: Floats, read: Any = None) -> Floats:
        """Return the (1, n, c) probabilities for n objects, by their scores; `read` is known to some who ask."""
        read = self.read if read is None else read
        return shares_of(scores[:, : len(self.space.labels)], read.scorer is not None, read.given)

    @asks
    def predict_many(self, X: Any) -> Floats:
        """Return the (1, n, c) probabilities for n objects; NaN before there is a scorer."""
        asked = self.read
        if isinstance(asked, Inductive):
            return self.of_scores(asked.scores_of_many(X))
        return shares_of(asked.machine.score_many(X), self.n > 0, asked.machine)


def shares_of(scores: Floats, known: bool, scorer: Any) -> Floats:
    """Return (1, n, c) probabilities by the (n, c) scores of a scorer, NaN where it is not `known`."""
    if not known:
        return np.full((1, *scores.shape), np.nan)
    out = np.empty((1, *scores.shape))
    shares_of_scores(np.ascontiguousarray(scores), bool(getattr(scorer, "log_odds", False)), out[0])
    return out


def log_odds(scorer: Any) -> bool:
    """Whether the scores of a scorer are logarithms of odds."""
    return bool(getattr(scorer, "log_odds", False))
