"""The fast path for one row: it is scored once, and all predictors and monitors read these scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from venn.machines.objects import Query
from venn.prediction import Floats
from venn.predictors.distribution_inductive import InductiveDistribution
from venn.predictors.distribution_mixture import DistributionMixture
from venn.predictors.expert_mixture import ExpertMixture, Weighing
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.refits import NumberRefits, Refits, ScorerForecast

BY_SCORES = InductiveVennAbers, InductiveConformal, InductiveDistribution
REFITTED = Refits, NumberRefits  # their predictions change only with a fit
WEIGHED = ExpertMixture, DistributionMixture


class RowAnswer(NamedTuple):
    """What a `RowStep` knows of a question that it has answered."""

    step: RowStep
    row: Any  #: the object, (1, d)
    scores: dict[int, Floats]  #: (1, c) scores by the `id` of the predictor that reads them
    heard: dict[int, Any]  #: the experts' predictions by the `id` of their mixture


class RowStep:
    """Lets all predictors of a panel answer and learn one row, where they depend on scores alone.

    The object is cleaned and scored once. Each part predicts and learns as it would by itself, to the last bit.
    """

    def __init__(self, learners: Sequence[Any]) -> None:
        self.learners = learners
        self.scoring = [one for one in learners if type(one) in BY_SCORES]
        self.refitted = [one for one in learners if type(one) in REFITTED]
        self.forecasts = [(one, one.read) for one in learners if type(one) is ScorerForecast]
        self.mixtures = [one.owner for one in learners if isinstance(one, Weighing)]

    @classmethod
    def of(cls, learners: Sequence[Any]) -> RowStep | None:
        """Return the fast path for these predictors; None where one learns in another way or takes other objects."""
        step = cls(learners)
        known = len(step.scoring) + len(step.refitted) + len(step.forecasts) + len(step.mixtures)
        fine = known == len(learners) and all(type(one) in WEIGHED for one in step.mixtures)
        fine = fine and all(type(read) in BY_SCORES for _, read in step.forecasts)
        taken = {(one.feature_names, one.takes_gaps) for one in step.scoring} | {(None, False) for _ in step.refitted}
        return step if fine and len(taken) == 1 and step.scoring else None

    def answer(self, question: Query) -> None:
        """Put the predictions for an object into its question, or raise why it is refused."""
        said, latest, found = question.said, None, None
        scores: dict[int, Floats] = {}
        heard: dict[int, Any] = {}
        row = self.scoring[0].row_of(question.x)
        for one in self.scoring:
            by = one.scores_by
            if found is None or by is not latest or one.shift is not None:
                found, latest = one.read(row), None if one.shift else by
            scores[id(one)] = found
            said[id(one)] = one.said_of(row, found)
        for one in self.refitted:
            said[id(one)] = one.said_of(row)
        for one, read in self.forecasts:
            said[id(one)] = one.of_scores(scores[id(read)], read)[:, 0]
        for mixture in self.mixtures:
            each = heard[id(mixture)] = mixture.heard([_prediction(one, said) for one in mixture.experts])
            said[id(mixture)] = mixture.of_heard(each)
        question.answered = RowAnswer(self, row, scores, heard)

    def learn(self, now: RowAnswer, code: Any, heard: dict[int, Any]) -> None:
        """Teach all predictors an example, even if one fails; raise the first error. Mixtures weigh their experts."""
        failure: Exception | None = None
        row, scores, codes = now.row, now.scores, np.array([code])
        for one in self.learners:
            try:
                if isinstance(one, Weighing):
                    one.owner.weigh_heard(codes, heard[id(one.owner)])
                elif id(one) in scores:
                    one.learn_row(row, codes, scores[id(one)])
                elif type(one) is not ScorerForecast:
                    one.keep_many(row, codes)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure


def _prediction(predictor: Any, said: dict[int, Any]) -> Any:
    """Return a prediction: a known one, or one combined from known ones."""
    if id(predictor) not in said:
        said[id(predictor)] = predictor.combined([_prediction(one, said) for one in predictor.asked])
    return said[id(predictor)]
