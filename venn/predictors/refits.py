"""Experts for a mixture: learners that are fitted anew at growing numbers of examples, and a scorer's own say."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from scipy.special import expit

from venn.labels import HasLabels, checked_labels, label_space
from venn.machines.frozen import clean_row, clean_rows
from venn.machines.stack import KINDS, Learners
from venn.parameters import above_one, integer
from venn.prediction import Floats, Integers, Label
from venn.predictors.history import History, held_features, held_history
from venn.predictors.inductive_base import Inductive
from venn.predictors.learning import Predictor
from venn.saved import component, held_int, own, param, state
from venn.schedules import FIRST, PrefixRestart


def _held_learners(name: str, learners: Any, c: int, d: int | None) -> Learners | None:
    if not isinstance(learners, Learners | None):
        raise ValueError(f"{name} must be Learners or None, got {learners!r}")
    if learners is not None and (learners.c, learners.scale.shape[1]) != (c, d):
        raise ValueError(f"{name} must be of {c} classes and {d} features")
    return learners


@component
class Refits(Predictor):
    """A forest, boosted trees and a logistic regression, fitted anew to all examples so far: experts for a mixture.

    For an `ExpertMixture`. A prediction is an array with a row for each of the three, NaN before the first fit.

    Parameters
    ----------
    classes : sequence of distinct labels
    first : int >= 1, default 50
        Examples at the first fit.
    growth : float > 1, default 1.4
        Ratio of the numbers of examples at two fits: their number grows as the logarithm of that of the examples.
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

    n: int = state(held_int, start=0)
    _features: int | None = state(held_features, own(lambda m: m.n), start=None)
    _history: History | None = state(
        held_history, own(lambda m: m.n), start=own(lambda m: History(label_space(m.classes))), within=True
    )
    learners: Learners | None = state(
        _held_learners, own(lambda m: len(m.classes)), own(attrgetter("_features")), start=None
    )

    def derive(self) -> None:
        """Look at when it fits next."""
        self.space = label_space(self.classes)
        self._schedule = PrefixRestart(self.first, self.growth, self.last)
        self._next = None if self._history is None else self._schedule.next_training(self.n)

    def predict_one(self, x: Any) -> Floats:
        """Return the (3, c) probabilities for one object; NaN before the first fit."""
        return self._said(clean_row(x, self._features))[:, 0]

    def predict_many(self, X: Any) -> Floats:
        """Return the (3, n, c) probabilities for n objects; NaN before the first fit."""
        return self._said(clean_rows(X, self._features))

    def _said(self, rows: Any) -> Floats:
        if self.learners is None:
            return np.full((KINDS, len(rows), len(self.classes)), np.nan)
        return self.learners.probas(rows)

    def note(self, x: Any, y: Label) -> tuple[Any, Integers]:
        """Return the example as rows and class codes, or raise what learning it would raise."""
        return clean_row(x, self._features), np.array([self.space.encode(y)])

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example, and fit when it is time."""
        rows, codes = noted or self.note(x, y)
        self._features = rows.shape[1]
        self.n += 1
        if self._history is None:
            return
        self._history.append(rows, codes, np.ones(1, np.bool_))
        if self.n == self._next:
            X, labels, _ = self._history.examples
            self.learners = Learners.fitted(X, labels, len(self.classes))
            self._next = self._schedule.next_training(self.n)
            if self._next is None:
                self._history = None


def _with_probabilities(name: str, predictor: Any) -> Any:
    given = getattr(predictor, "given", None)
    if not isinstance(predictor, Inductive) or not (log_odds(given) or getattr(given, "probabilities", False)):
        raise TypeError(f"{name} must be an inductive one with a scorer of probabilities, got {predictor!r}")
    return predictor


@component
class ScorerForecast(HasLabels, Predictor):
    """What the scorer of an inductive predictor says by itself, not calibrated: an expert for a mixture.

    It learns nothing: the inductive predictor does, which must stand in the same `Panel` or mixture.

    Parameters
    ----------
    predictor : Inductive
        Its scorer gives probabilities, as a `FrozenScorer` by `predict_proba` and a `Stack` do.

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

    predictor: Any = param(_with_probabilities)

    def derive(self) -> None:
        """Say what labels may be."""
        self.space = self.predictor.space

    def around(self, predictor: Any) -> ScorerForecast:
        """Return the same of another predictor, as when two are merged."""
        return ScorerForecast(predictor)

    @property
    def n(self) -> int:
        """Number of examples learned by the predictor."""
        return int(self.predictor.n)

    def _said(self, scores: Floats) -> Floats:
        n, c = scores.shape
        if self.predictor.scorer is None:
            return np.full((1, n, c), np.nan)
        shares = expit(scores) if log_odds(self.predictor.given) else np.clip(scores, 0.0, 1.0)
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / c)[None]

    def predict_one(self, x: Any) -> Floats:
        """Return the (1, c) probabilities for one object; NaN before there is a scorer."""
        return self._said(self.predictor.scores_of_one(x))[:, 0]

    def predict_many(self, X: Any) -> Floats:
        """Return the (1, n, c) probabilities for n objects; NaN before there is a scorer."""
        return self._said(self.predictor.scores_of_many(X))


def log_odds(scorer: Any) -> bool:
    """Whether the scores of a scorer are logarithms of odds."""
    return bool(getattr(scorer, "log_odds", False))
