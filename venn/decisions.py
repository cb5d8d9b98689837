"""Decisions by what predictors say: expected costs from lower and upper probabilities, and when not to answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.special import bdtr

from venn.parameters import Parameters, fraction, integer, is_number, share, with_methods
from venn.prediction import (
    ERROR_BOUND,
    ERROR_RATE,
    NOTHING,
    Floats,
    Label,
    Multiprobability,
    PredictionSet,
)
from venn.saved import component, param

__all__ = [
    "CostTable", "Decision", "Hurwicz", "LeastRegret", "MeanCost", "WorstCase", "answer", "answer_threshold", "decide",
    "error_among_answered", "expected_costs",
]  # fmt: skip

COST_BOUND = "cost bound"
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
HALVINGS = 60

Highest: TypeAlias = Callable[[Floats], float]  #: the largest expectation of (c,) values over what is thought possible


class CostTable:
    """What each action costs under each label.

    Parameters
    ----------
    costs : mapping of action to mapping of label to number
        Every action has a cost, a finite number, for every label. A gain is a negative cost.

    Attributes
    ----------
    actions : tuple
        In the order given; ties go to the first.

    Raises
    ------
    TypeError, ValueError
        The table is not as described.

    Examples
    --------
    >>> table = CostTable({"treat": {"ill": 1.0, "well": 1.0}, "wait": {"ill": 10.0, "well": 0.0}})
    >>> table.of(("well", "ill")).tolist()
    [[1.0, 1.0], [0.0, 10.0]]
    """

    def __init__(self, costs: Mapping[Hashable, Mapping[Label, float]]) -> None:
        if not isinstance(costs, Mapping) or not all(isinstance(row, Mapping) for row in costs.values()):
            raise TypeError(f"costs must be a mapping of actions to mappings of labels to numbers, got {costs!r}")
        if not costs:
            raise ValueError("costs must hold at least one action, got none")
        self.actions: tuple[Hashable, ...] = tuple(costs)
        self._labels = tuple(costs[self.actions[0]])
        for action, row in costs.items():
            if set(row) != set(self._labels):
                raise ValueError(
                    f"costs must be of the labels {list(self._labels)!r}, got {list(row)!r} for {action!r}"
                )
            for label, cost in row.items():
                if not is_number(cost):
                    raise TypeError(f"costs must be numbers, got {cost!r} for {action!r} under {label!r}")
                if not np.isfinite(float(cost)):
                    raise ValueError(f"costs must be finite, got {cost!r} for {action!r} under {label!r}")
        self._costs = {action: {label: float(cost) for label, cost in row.items()} for action, row in costs.items()}

    def __repr__(self) -> str:
        return f"CostTable({self._costs!r})"

    def of(self, classes: Sequence[Label]) -> Floats:
        """Return (a, c) costs of the actions under the classes, in their order.

        Raises
        ------
        ValueError
            The classes are not the labels of the table.
        """
        if set(classes) != set(self._labels):
            raise ValueError(f"costs must be of the classes {list(classes)!r}, got {list(self._labels)!r}")
        return np.array([[row[label] for label in classes] for row in self._costs.values()])


class DecisionRule(Protocol):
    """A rule that chooses an action: it gives each a value, and the smallest wins."""

    def values(self, costs: Floats, highest: Highest, forecast: Floats | None) -> Floats:
        """Return a value for each of the actions.

        Parameters
        ----------
        costs : (a, c) float64
        highest : callable
            The largest expectation of (c,) values over what is thought possible.
        forecast : (c,) float64 or None
            The point forecast, where there is one.
        """


@component
class WorstCase(Parameters):
    """Take the action whose largest expected cost is smallest (maximin utility).

    References
    ----------
    Gilboa & Schmeidler (1989), "Maxmin expected utility with non-unique prior".

    Examples
    --------
    >>> from venn.prediction import ClassIntervals
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> prediction = ClassIntervals(np.array([[0.85, 0.99], [0.01, 0.15]]), ("well", "ill"))
    >>> decision = decide(table, prediction, WorstCase())  # waiting may cost 1.5, treating costs 1
    >>> decision.action, decision.value
    ('treat', 1.0)
    """

    def values(self, costs: Floats, highest: Highest, forecast: Floats | None) -> Floats:
        """Return (a,) the largest expected cost of each action, from (a, c) costs."""
        return np.array([highest(row) for row in costs])


@component
class Hurwicz(Parameters):
    """Take the action of the smallest mixture of its smallest and its largest expected cost.

    Parameters
    ----------
    optimism : float in [0, 1], default 0.5
        Weight of the smallest one; with 0 it is `WorstCase`.

    Raises
    ------
    TypeError, ValueError
        The parameter is not as described.

    References
    ----------
    Hurwicz (1951), "Optimality criteria for decision making under ignorance".

    Examples
    --------
    >>> from venn.prediction import ClassIntervals
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> prediction = ClassIntervals(np.array([[0.85, 0.99], [0.01, 0.15]]), ("well", "ill"))
    >>> decision = decide(table, prediction, Hurwicz(0.5))  # waiting costs .1 to 1.5, treating 1
    >>> decision.action, round(decision.value, 9)
    ('wait', 0.8)
    """

    optimism: float = param(share, default=0.5)

    def values(self, costs: Floats, highest: Highest, forecast: Floats | None) -> Floats:
        """Return (a,) the mixture for each action, from (a, c) costs."""
        mixed = [-self.optimism * highest(-row) + (1.0 - self.optimism) * highest(row) for row in costs]
        return np.array(mixed)


@component
class LeastRegret(Parameters):
    """Take the action that, at worst, costs least more than the best one would have in expectation (minimax regret).

    References
    ----------
    Savage (1951), "The theory of statistical decision".

    Examples
    --------
    >>> from venn.prediction import ClassIntervals
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> prediction = ClassIntervals(np.array([[0.85, 0.99], [0.01, 0.15]]), ("well", "ill"))
    >>> decision = decide(table, prediction, LeastRegret())  # waiting is dearer by at most .5, treating by at most .9
    >>> decision.action, round(decision.value, 9)
    ('wait', 0.5)
    """

    def values(self, costs: Floats, highest: Highest, forecast: Floats | None) -> Floats:
        """Return (a,) the largest regret of each action, from (a, c) costs.

        The expectation is linear, so each rival is tried by itself.
        """
        return np.array([max(highest(row - rival) for rival in costs) for row in costs])


@component
class MeanCost(Parameters):
    """Take the action of the smallest expected cost by the point forecast, `proba`.

    Examples
    --------
    >>> from venn.prediction import Forecast
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> decide(table, Forecast(np.array([0.75, 0.25]), ("well", "ill")), MeanCost()).action
    'treat'
    """

    def values(self, costs: Floats, highest: Highest, forecast: Floats | None) -> Floats:
        """Return (a,) the expected cost of each action, from (a, c) costs and the (c,) forecast.

        Raises
        ------
        TypeError
            There is no point forecast: the prediction is a set of labels.
        """
        if forecast is None:
            raise TypeError("prediction must have a point forecast for MeanCost(), got one of sets of labels")
        return costs @ forecast


class Decision(NamedTuple):
    """An action, and what is known of its cost.

    Examples
    --------
    >>> from venn.prediction import ClassIntervals
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> prediction = ClassIntervals(np.array([[0.85, 0.99], [0.01, 0.15]]), ("well", "ill"))
    >>> decision = decide(table, prediction)
    >>> decision.action, decision.upper, decision.guaranteed
    ('treat', 1.0, 'nothing')
    """

    action: Hashable
    lower: float  #: smallest expected cost of the action over what is thought possible; of sets the smallest cost
    upper: float  #: largest one
    value: float  #: of the rule, for the action: what it made smallest
    guaranteed: str  #: "cost bound" or "nothing", see `decide`


def expected_costs(costs: CostTable, prediction: Any, epsilon: float | None = None) -> Floats:
    """Return the smallest and the largest expected cost of every action.

    Parameters
    ----------
    costs : CostTable
    prediction : prediction, or Outlook
        - A `Multiprobability`: over its rows. For an action fixed beforehand the row of the true label is calibrated,
          and so is the expected cost by it: the true mean cost of the action, given that row, lies between.
        - `ClassIntervals` and an `Outlook`: over all distributions within the intervals of the classes. Where there is
          none, all intervals are widened by the same number, as small as possible.
        - A `Forecast`: by its probabilities; both are equal.
        - A `PredictionSet`: over the labels in its set at `epsilon`, all labels if it is empty. These are costs, not
          expected ones.
    epsilon : float in [0, 1], optional
        Significance level, for sets only.

    Returns
    -------
    (2, a) float64
        In the order of `costs.actions`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> from venn.prediction import ClassIntervals
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> expected_costs(table, ClassIntervals(np.array([[0.7, 0.9], [0.1, 0.3]]), ("well", "ill"))).round(3).tolist()
    [[1.0, 1.0], [1.0, 3.0]]
    """
    matrix, highest, _ = _read(costs, prediction, epsilon)
    return np.array([[-highest(-row) for row in matrix], [highest(row) for row in matrix]])


def decide(
    costs: CostTable, prediction: Any, rule: DecisionRule | None = None, *, epsilon: float | None = None
) -> Decision:
    """Return the action that a rule takes on a prediction, with the bounds of its cost.

    What is promised (`Decision.guaranteed`):

    - "cost bound", for conformal sets: whatever the rule, with probability at least 1 - epsilon the action costs at
      most `upper`. For the set contains the true label with that probability, and `upper` is the largest cost over the
      set. Requirements are those of the sets: exchangeable examples.
    - "nothing" for all others: the bounds hold, on average, for an action that is fixed beforehand. An action that is
      chosen because its bounds look best may turn out worse than they say, as with labels chosen by the rows.

    Parameters
    ----------
    costs : CostTable
    prediction : prediction, or Outlook
        As for `expected_costs`. Of an `Outlook` the intervals are read; its sets are `outlook["sets"]`.
    rule : WorstCase, Hurwicz, LeastRegret, MeanCost or your own, default WorstCase()
        Ties go to the first action.
    epsilon : float in [0, 1], optional
        Significance level, for sets only.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> from venn.prediction import ClassIntervals, PredictionSet
    >>> table = CostTable({"treat": {"well": 1.0, "ill": 1.0}, "wait": {"well": 0.0, "ill": 10.0}})
    >>> prediction = ClassIntervals(np.array([[0.85, 0.99], [0.01, 0.15]]), ("well", "ill"))
    >>> [decide(table, prediction, rule).action for rule in (WorstCase(), Hurwicz(0.8), LeastRegret(), MeanCost())]
    ['treat', 'wait', 'wait', 'wait']
    >>> decision = decide(table, PredictionSet(np.array([0.6, 0.02]), ("well", "ill")), epsilon=0.05)
    >>> decision.action, decision.upper, decision.guaranteed
    ('wait', 0.0, 'cost bound')
    """
    rule = WorstCase() if rule is None else rule
    with_methods("rule", rule, "a rule object, with a method 'values', such as WorstCase()", "values")
    matrix, highest, forecast = _read(costs, prediction, epsilon)
    values = np.asarray(rule.values(matrix, highest, forecast), np.float64)
    if values.shape != (len(matrix),) or np.isnan(values).any():
        raise ValueError(f"rule must give a number for each of {len(matrix)} actions, got {values!r} from {rule!r}")
    best = int(values.argmin())
    valid = isinstance(prediction, PredictionSet) and prediction.guaranteed in (ERROR_RATE, ERROR_BOUND)
    lower, upper = -float(highest(-matrix[best])), float(highest(matrix[best]))
    return Decision(costs.actions[best], lower, upper, float(values[best]), COST_BOUND if valid else NOTHING)


def _read(costs: Any, prediction: Any, epsilon: float | None) -> tuple[Floats, Highest, Floats | None]:
    """Return the costs in the order of the classes, the largest expectation of values, and the point forecast."""
    if not isinstance(costs, CostTable):
        raise TypeError(f"costs must be a CostTable, got {costs!r}")
    if isinstance(prediction, PredictionSet):
        if epsilon is None:
            raise TypeError("epsilon must be given for sets of labels, got None")
        members = set(prediction.set(epsilon)) or set(prediction.classes)
        inside = np.array([label in members for label in prediction.classes])
        return costs.of(prediction.classes), lambda values: float(values[inside].max()), None
    if epsilon is not None:
        raise TypeError(
            f"epsilon must be left out, as it belongs to sets of labels, got {epsilon!r} for {prediction!r}"
        )
    if isinstance(prediction, Multiprobability):
        rows = prediction.probabilities
        return costs.of(prediction.classes), lambda values: float((rows @ values).max()), prediction.proba
    if hasattr(prediction, "intervals"):  # of an outlook
        lower, upper = np.asarray(prediction.intervals, np.float64).T
    elif hasattr(prediction, "bounds"):
        lower, upper = np.asarray(prediction.bounds, np.float64)
    else:
        raise TypeError(f"prediction must be one with probabilities or p-values, or an outlook, got {prediction!r}")
    return costs.of(prediction.classes), _over_box(lower, upper), prediction.proba


def _over_box(lower: Floats, upper: Floats) -> Highest:
    """Return the largest expectation over the distributions within bounds of the classes."""
    low, high = lower, upper
    if low.sum() > 1.0 or high.sum() < 1.0:
        least, most = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (least + most)
            low, high = np.maximum(lower - middle, 0.0), np.minimum(upper + middle, 1.0)
            least, most = (least, middle) if low.sum() <= 1.0 <= high.sum() else (middle, most)
        low, high = np.maximum(lower - most, 0.0), np.minimum(upper + most, 1.0)

    def highest(values: Floats) -> float:
        rest, total = 1.0 - low.sum(), float(values @ low)
        for k in np.argsort(-values, kind="stable").tolist():  # what is left goes to the largest values first
            given = min(rest, float(high[k] - low[k]))
            total += given * float(values[k])
            rest -= given
        return total

    return highest


# Not answering ---------------------------------------------------------------------------------------------------


def answer(prediction: PredictionSet, epsilon: float) -> tuple[Label, ...]:
    """Return the label if the set at `epsilon` has just one, else nothing: abstain.

    Promised, where sets keep their error rate: an object is **answered wrongly with probability at most epsilon**, at
    every step; over N steps with predictors that are exact online the number of wrong answers is at most a binomial
    number (N, epsilon). That is an error rate among *all* objects. Among the answered ones alone it may be larger: see
    `error_among_answered` for what the past tells, and `answer_threshold` for a promise.

    Parameters
    ----------
    prediction : PredictionSet
    epsilon : float in [0, 1]

    Returns
    -------
    tuple of one label, or of none

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> prediction = PredictionSet(np.array([0.6, 0.02, 0.07]), ("a", "b", "c"))
    >>> answer(prediction, 0.1), answer(prediction, 0.05)
    (('a',), ())
    """
    if not isinstance(prediction, PredictionSet):
        raise TypeError(f"prediction must be a PredictionSet, got {prediction!r}")
    members = prediction.set(epsilon)
    return members if len(members) == 1 else ()


def error_among_answered(steps: int, answered: int, epsilon: float, delta: float = 0.05) -> float:
    """Return what the share of errors among the answered objects is at most, but for a chance of `delta`.

    For `answer` at a fixed `epsilon`, over a number of steps that was fixed beforehand, on exchangeable data with a
    predictor that is exact online: wrong answers are at most a binomial number (steps, epsilon), so but for a
    probability of `delta` they are at most its quantile, and this is the quantile over the number of answers.

    Parameters
    ----------
    steps : int >= 1
    answered : int from 0 to `steps`
    epsilon : float in (0, 1)
    delta : float in (0, 1), default 0.05

    Returns
    -------
    float in [0, 1]
        1 if nothing was answered: nothing is known.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> error_among_answered(1000, 800, 0.05)
    0.0775
    """
    n, found = integer("steps", steps, 1), integer("answered", answered, 0)
    if found > n:
        raise ValueError(f"answered must be at most {n} steps, got {answered!r}")
    level, chance = fraction("epsilon", epsilon), fraction("delta", delta)
    counts = np.arange(n + 1)
    most = int(np.argmax(bdtr(counts, n, level) >= 1.0 - chance))
    return min(1.0, most / found) if found else 1.0


def answer_threshold(
    confidence: Any, right: Any, error: float, *, delta: float = 0.05, levels: Sequence[float] = LEVELS
) -> float:
    """Return how confident a fixed predictor must be to answer, so that its error among what it answers is promised.

    Promised: with probability at least 1 - delta over the calibration examples, P(wrong | confidence >= threshold) <=
    error for a new example. Requirements: the calibration examples and the new one are independent draws from one
    distribution (exchangeability is not enough); the predictor was fixed before them and learns nothing afterwards; and
    `levels` were chosen without looking at them. The confidence may be any number: its truth is not used.

    Each level is tested by itself: were the error rate above `error`, so few wrong ones among the examples at least as
    confident would have a probability of at most delta / number of levels. The lowest level that passes is returned.

    Parameters
    ----------
    confidence : (n,) numbers
        Of the predicted label, such as the largest of `proba`.
    right : (n,) bool
        Whether the predicted label was the true one.
    error : float in (0, 1)
    delta : float in (0, 1), default 0.05
    levels : sequence of numbers, optional

    Returns
    -------
    float
        Infinite where no level passes: then never answer.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Geifman & El-Yaniv (2017), "Selective classification for deep neural networks"; Angelopoulos, Bates, Candès,
    Jordan & Lei (2021), "Learn then test", arXiv:2110.01052.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 2000)
    >>> right = rng.random(2000) < confidence
    >>> answer_threshold(confidence, right, 0.1), answer_threshold(confidence, right, 0.01)
    (0.9, inf)
    """
    values, hits = np.asarray(confidence, np.float64), np.asarray(right)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"confidence must be (n,) finite numbers, got {confidence!r}")
    if hits.shape != values.shape or hits.dtype != np.bool_:
        raise ValueError(f"right must be ({len(values)},) True or False, one for each confidence, got {right!r}")
    wanted, chance = fraction("error", error), fraction("delta", delta)
    tried = sorted({float(level) for level in levels})
    if not tried or not np.isfinite(tried).all():
        raise ValueError(f"levels must be at least one finite number, got {levels!r}")
    for level in tried:
        answered = values >= level
        wrong, n = int((answered & ~hits).sum()), int(answered.sum())
        if n and bdtr(wrong, n, wanted) <= chance / len(tried):
            return level
    return inf
