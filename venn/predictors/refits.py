"""Experts for a mixture: learners that are fitted anew at growing numbers of examples, and a scorer's own say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from venn.labels import HasLabels, label_space
from venn.machines.frozen import clean_row, clean_rows
from venn.machines.learners import KINDS, Learners
from venn.parameters import above_one, integer
from venn.prediction import Floats, Integers, Label
from venn.predictors.history import History
from venn.predictors.inductive_base import Inductive
from venn.predictors.learning import Predictor
from venn.saved import held_int, saved
from venn.schedules import PrefixRestart


@saved
class Refits(HasLabels, Predictor):
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

    def __init__(self, classes: Sequence[Label], first: int = 50, growth: float = 1.4, last: int = 100_000) -> None:
        self.space = label_space(tuple(classes))
        self.first, self.growth = integer("first", first, 1), above_one("growth", growth)
        self.last = integer("last", last, self.first)
        self._schedule = PrefixRestart(self.first, self.growth, self.last)
        self.n = 0
        self._features: int | None = None
        self._next = self._schedule.next_training(0)
        self._history: History | None = History(self.space)
        self.learners: Learners | None = None

    @property
    def state(self) -> dict[str, Any]:
        """What was fitted, and the examples for later fits."""
        history = None if self._history is None else self._history.state
        return {"n": self.n, "features": self._features, "history": history, "learners": self.learners}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        super().restore(state)
        self.n, self.learners = held_int("n", state["n"]), state["learners"]
        self._features = None if not self.n else held_int("features", state["features"], 1)
        self._next = self._schedule.next_training(self.n)
        if (state["history"] is None) != (self._next is None):
            raise ValueError("history must be there as long as fits are to come, and no longer")
        self._history = None if self._next is None else History.restored(state["history"], self.n, self.space)
        if not isinstance(self.learners, Learners | None):
            raise ValueError(f"learners must be Learners or None, got {self.learners!r}")
        if self.learners is not None and (self.learners.c, self.learners.scale.shape[1]) != (
            len(self.classes), self._features,
        ):  # fmt: skip
            raise ValueError(f"learners must be of {len(self.classes)} classes and {self._features} features")

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


@saved
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

    def __init__(self, predictor: Any) -> None:
        given = getattr(predictor, "given", None)
        if not isinstance(predictor, Inductive) or not (log_odds(given) or getattr(given, "probabilities", False)):
            raise TypeError(f"predictor must be an inductive one with a scorer of probabilities, got {predictor!r}")
        self.predictor = predictor
        self.space = predictor.space

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
