"""Labels by lot: a draw with a known chance decides whose label is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from venn.monitors.alarms import shares
from venn.monitors.floor import FloorWatch
from venn.monitors.kinds import kind_of
from venn.monitors.monitor import WINDOW
from venn.monitors.verdict import Verdict
from venn.parameters import Parameters, integer, is_number, optional, probability, with_methods
from venn.prediction import CRPS, LOG_LOSS, NOTHING, Label, Prediction, distributions
from venn.predictors.blocks import block_of
from venn.saved import component, param
from venn.smoothing import Smoothing

DRAWS = 0x10775  # so that draws are independent of the numbers that break ties, whose seed is often the same
ENOUGH = 30  # open questions from which on a verdict mentions them


def _function(name: str, value: Any) -> Any:
    """Return a function, or say what it must be."""
    return with_methods(name, value, "a function of an object that returns a chance", "__call__")


class Draw(NamedTuple):
    """What was drawn for a question."""

    chance: float
    wanted: bool


class Asked(NamedTuple):
    """What `Online.ask` returns where labels are asked for by lot.

    Examples
    --------
    >>> prediction, wanted = Asked("yes", True)
    >>> wanted
    True
    """

    prediction: Any  #: as without lots
    wanted: bool  #: whether to find out its label; an answer to any other question is refused


@component
class Lot(Parameters):
    """Asks for the label of each question with a chance, whatever the question: `Online(model, labels=Lot(.1))`.

    Where labels are dear, most questions go without one. The drawn ones are as good a sample as if all had come: with
    one chance for all, labelled examples are exchangeable where all are, and every promise holds that holds where
    labels come late. A floor is judged on all questions (`venn.monitors.Floor`): z = f + xi (loss - f) / chance, where
    xi is 1 for a label that was drawn and f is what the prediction itself expects, has the mean of the loss.

    A judge may say what f is: `Online(model, labels=Lot(.1), judge=function)`. The mean of z is that of the loss
    whatever it says. So a good judge shortens the time to an alarm, and a bad one makes no false alarm more likely.

    Parameters
    ----------
    chance : float in (0, 1]
        The chance of each question; with `by` the least.
    by : function, optional
        Of an object, returns the chance of its label, from `chance` to 1. Predictors that guarantee something are then
        refused: their examples would need weights.
    seed : int >= 0, default 0
        Question n draws the number n of this seed; so a journal goes on with the same draws.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> lot = Lot(0.25)
    >>> sum(lot.draw(number, [0.0]).wanted for number in range(1, 1001))
    243
    """

    chance: float = param(probability)
    by: Callable[[Any], float] | None = param(optional, _function, default=None, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)

    def derive(self) -> None:
        """Set up the draws."""
        self._numbers = Smoothing(self.seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lot) and other.parameters == self.parameters

    def __hash__(self) -> int:
        return hash(tuple(self.parameters.values()))

    def draw(self, number: int, x: Any) -> Draw:
        """Return the chance of a question, and whether its label is wanted.

        Raises
        ------
        TypeError, ValueError
            `by` returns something else than a chance from the least one to 1.
        """
        chance = self.chance if self.by is None else probability("by", self.by(x))
        if chance < self.chance:
            raise ValueError(f"by must return chances from {self.chance:g} to 1, got {chance!r} for {x!r}")
        return Draw(chance, self._numbers.at(number, DRAWS) < chance)

    def check(self, predictions: Mapping[str, Prediction]) -> None:
        """Refuse predictors whose guarantee would not hold with labels by lot."""
        for name, one in predictions.items() if self.by is not None else ():
            if one.guaranteed not in (NOTHING, LOG_LOSS, CRPS):
                raise ValueError(
                    f"labels must be drawn with one chance for all: {name} guarantees {one.guaranteed!r}, and where "
                    f"the chance depends on the object its examples would need weights, got {self!r}"
                )


#: A judge's guess: a predicted loss, or a probability for each class; None without a judge.
Judged = float | list[float] | None
JUDGED = "venn judged "  # and the event of a question, beside the positions of sources in a journal


def judged_by(judge: Callable[[Any, Any], Any], x: Any, said: Any, classes: Sequence[Label]) -> float | list[float]:
    """Return what a judge says of a question.

    Raises
    ------
    TypeError, ValueError
        It is neither a number in [0, 1] nor a probability for each class.
    """
    found = judge(x, said)
    wanted = f"a number in [0, 1], the predicted loss, or a probability for each of {len(classes)} classes"
    if is_number(found):
        if not 0 <= found <= 1:
            raise ValueError(f"judge must return {wanted}, got {found!r}")
        return float(found)
    if isinstance(found, Mapping):
        if set(found) != set(classes):
            raise ValueError(f"judge must return {wanted}, got those of {list(found)!r}")
        found = [found[label] for label in classes]
    if not classes:
        raise TypeError(f"judge must return a number in [0, 1], the predicted loss, got {found!r}")
    return [float(one) for one in distributions("judge", found, (len(classes),))]


def expected_loss(judged: float | list[float], watch: FloorWatch, said: Prediction) -> float:
    """Return the loss, by a floor, that a judge predicts for a prediction."""
    if not isinstance(judged, list):
        return judged
    chances = zip(said.classes, judged, strict=True)
    return min(sum(chance * watch.loss_of(said, label) for label, chance in chances if chance), 1.0)


class Unsettled(NamedTuple):
    """A question whose loss does not count yet, because an earlier loss is not known."""

    number: int
    chance: float
    guesses: dict[str, float]  #: predicted losses, by the name of the floor


class Settling:
    """Gives floors the losses of all questions in the order of the questions, as their theorem wants it.

    A question whose label was not drawn is known at once, one whose label comes late holds up those after it. A label
    that was drawn and never comes counts as no loss: a false alarm stays as rare.
    """

    def __init__(self) -> None:
        self._queue: deque[Unsettled] = deque()
        self._losses: dict[int, dict[str, float] | None] = {}  # of those drawn: None until the label comes

    def ask(self, number: int, draw: Draw, guesses: dict[str, float]) -> None:
        """Add a question."""
        self._queue.append(Unsettled(number, draw.chance, guesses))
        if draw.wanted:
            self._losses[number] = None

    def resolve(self, number: int, losses: dict[str, float]) -> None:
        """Record the losses of a question, none if its label never comes. Questions that were not drawn are ignored."""
        if number in self._losses:
            self._losses[number] = losses

    def settled(self) -> Iterator[tuple[Unsettled, dict[str, float] | None]]:
        """Yield the questions that count now, with the losses of those whose labels were drawn, and forget them."""
        while self._queue:
            number = self._queue[0].number
            losses = self._losses.get(number)
            if losses is None and number in self._losses:
                return
            self._losses.pop(number, None)
            yield self._queue.popleft(), losses

    @property
    def state(self) -> dict[str, Any]:
        """The questions, oldest first, and what is known of those that were drawn."""
        return {"queue": [tuple(one) for one in self._queue], "losses": list(self._losses.items())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state."""
        self._queue, self._losses = deque(Unsettled(*one) for one in state["queue"]), dict(state["losses"])


class Unlabelled(NamedTuple):
    """What a predictor claims for questions whose label has not come."""

    questions: int
    lower: float  #: mean lower probability of the predicted label
    upper: float

    def __str__(self) -> str:
        lower, upper = shares(self.lower, self.upper)
        claim = lower if lower == upper else f"{lower} to {upper}"
        return (
            f"for {self.questions:,} questions that wait for their label it claims {claim}; nothing is proved of that "
            "if the stream has changed"
        )


def unlabelled(predictions: Iterable[Prediction]) -> Unlabelled | None:
    """Return the mean claims of the latest of these predictions; None without predictions or claims."""
    latest: Iterator[Any] = islice(predictions, WINDOW)
    found = [one for one in latest if kind_of(one).calibrated]
    if not found:
        return None
    block = block_of(found)  # all at once, to the last bit, for this is looked up often
    if block is found:
        lower, upper = sum(one.lower for one in found), sum(one.upper for one in found)
    else:
        lower, upper = sum(block.lower.tolist()), sum(block.upper.tolist())
    lower, upper = lower / len(found), upper / len(found)
    return Unlabelled(len(found), lower, min(upper, 1.0))


def with_waiting(verdict: Verdict, waiting: Unlabelled | None) -> Verdict:
    """Return a verdict that mentions the open questions, if they are many."""
    if waiting is None or waiting.questions < ENOUGH:
        return verdict
    return replace(verdict, details=f"{verdict.details}; {waiting}")
