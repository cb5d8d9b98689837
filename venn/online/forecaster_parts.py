"""The predictors of a forecaster of classes, and the experts of its forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from venn.machines.bank import Bank
from venn.machines.frozen import FrozenScorer
from venn.machines.kernels import MultiscaleLaplacian
from venn.machines.mixture import Mixture
from venn.machines.scale import Scale
from venn.machines.stack import Stack
from venn.nonconformity import Share
from venn.online.outlook import FORECAST, INTERVALS, SETS
from venn.parameters import integer
from venn.prediction import Label
from venn.predictors.distribution_mixture import DistributionMixture
from venn.predictors.expert_mixture import ExpertMixture, experts_in
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.learning import Predictor
from venn.predictors.refits import Refits, ScorerForecast, log_odds
from venn.predictors.restarting import Switch
from venn.predictors.transductive import Conformal, TransductiveVennAbers
from venn.schedules import Prefix

SHARE = 0.7  # of the examples at a training: they train, the rest calibrates
GROWTH = 1.4  # of the examples from one training of what calibrates to the next
OWN_FIRST = (0.1, 1.0)  # exponents of Venn-Abers and of a given classifier itself: the pool begins so
FIT = 50  # examples at the first fit of the forecast's other learners
EXPONENTS = (1.2, 0.0, 0.1, 0.0, 0.0)  # of Venn-Abers, its scorer, forest, boosted trees, regression: at first


def given_parts(scorer: FrozenScorer, measure: Any) -> dict[str, Predictor]:
    """Return the predictors that calibrate a scorer."""
    intervals = InductiveVennAbers(scorer)
    forecast = ExpertMixture([intervals])
    if getattr(intervals.given, "probabilities", False) or log_odds(intervals.given):
        forecast = ExpertMixture([intervals, ScorerForecast(intervals)], OWN_FIRST)
    read = intervals.given if measure is None or getattr(measure, "of_probabilities", False) else scorer
    return {FORECAST: forecast, INTERVALS: intervals, SETS: InductiveConformal(read, measure)}


def with_given(forecast: Any, given: Sequence[Any]) -> Any:
    """Return a mixture that has weighed nothing, of further experts as well: they have no part in its pool at first."""
    if isinstance(forecast, DistributionMixture):
        return forecast.of([*forecast.experts, *given])
    exponents = forecast.exponents or (1.0,)  # of one expert alone
    experts = [*forecast.experts, *given]
    more = [getattr(one, "exponent", 0.0) for one in given for _ in range(experts_in(one))]
    return ExpertMixture(experts, (*exponents, *more), forecast.share)


def with_further(anew: Any, before: Any, given: Sequence[Any] = ()) -> ExpertMixture:
    """Return a mixture that begins anew, in which the last expert that learns goes on with all examples.

    It is what was fitted anew, or the calibration of a given scorer. So a false alarm costs little; after a true one it
    soon weighs nothing. The `given` experts, which both have, go on anyway.
    """
    passed = {id(one) for one in given}
    own = [one for one in before.experts if not isinstance(one, ScorerForecast) and id(one) not in passed]
    return with_given(anew, own[-1:])


def own_scale(first: Any, ranges: Any) -> Scale | Literal[False]:
    """Return a scale that a forecaster finds, or that of declared ranges; False: objects are taken as they are."""
    as_it_is = ranges is None and first is not None and integer("first", first, 0) == 0
    return False if as_it_is else Scale(first, ranges, teach=True)


def own_bank(classes: Sequence[Label], first: Any, ranges: Any) -> Bank:
    """Return the bank of a forecaster, on its scale."""
    return Bank(MultiscaleLaplacian(), classes, scale=own_scale(first, ranges))


def own_parts(bank: Bank, transductive: int, last: int) -> dict[str, Predictor]:
    """Return the predictors on a bank of machines, and on the stacks that come after it."""
    stack, schedule = Stack(bank.classes), Prefix(SHARE, transductive, GROWTH, last)
    abers = InductiveVennAbers(stack, schedule=schedule)
    early = TransductiveVennAbers(Mixture(bank))
    # No interval is claimed of the forecast: there the examples that have fixed the scale count, too.
    every = TransductiveVennAbers(Mixture(bank, whole=True)) if bank.scale and bank.scale.first else early
    calibrated = Switch(every, abers)
    experts = [calibrated, ScorerForecast(calibrated), Refits(bank.classes, min(FIT, last), last=last)]
    return {
        FORECAST: ExpertMixture(experts, EXPONENTS),
        INTERVALS: Switch(early, abers),
        SETS: Switch(Conformal(early.machine, Share()), InductiveConformal(stack, schedule=schedule)),
    }
