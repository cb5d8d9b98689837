"""Sources of a monitor's p-values: events whose probability under the true hypothesis is calibrated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from venn._compiled import evidence as compiled
from venn.monitors.curves import Outcomes
from venn.parameters import Parameters, integer
from venn.prediction import EACH_CLASS, ERROR_RATE, PREDICTED_LABEL, REALISED_ROW, Label
from venn.saved import component, param


class Source(Protocol):
    """What a monitor needs from a source: p-values that are uniform and independent while the claim holds."""

    @property
    def name(self) -> str:
        """A short name, for tables."""

    @property
    def of_event(self) -> bool:
        """Whether the p-values belong to an event, whose deviations have a band."""

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether a theorem makes the p-values uniform for predictions of this kind and guarantee."""

    def read(self, steps: Outcomes, tau: Any) -> tuple[Any, Any]:
        """Return the p-value of one step, or those of n, and the deviations.

        `tau` is uniform random and breaks ties. A deviation is 1{event} minus the event's probability under the true
        hypothesis; None if there is no event.
        """


class Event(Parameters):
    """Base of sources that look at one event, such as "the predicted label is right".

    Let P be the event's probability under the true hypothesis. The p-value is tau (1 - P) if the event did not
    happen and (1 - P) + tau P if it did. A small p-value means that a likely event failed; many small ones mean too
    many failures.

    Theorem. The p-value is the smoothed conformal p-value of the example among those of its category, where
    nonconformity is the event's failure. The choice of the event must follow from the category and the bag, labels
    included, as the row of the true label does. So while the examples are exchangeable the p-values of successive
    steps are independent and uniform, and every test martingale on them is valid at all times: for transductive
    predictors, and for inductive ones with a schedule that is exact "online". With other schedules each p-value is
    uniform by itself.
    """

    name = "event"
    of_event = True

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return whether the event happened, and its probability under the true hypothesis."""
        raise NotImplementedError

    def read(self, steps: Outcomes, tau: Any) -> tuple[Any, Any]:
        """Return the p-value of one step, or those of n, and the deviations."""
        happened, probability = self.event(steps)
        missed = 1.0 - probability
        missed *= missed > 0.0  # sums of probabilities may exceed 1 in their last bits
        p = happened * missed + tau * (happened * (1.0 - missed) + (1 - happened) * missed)
        return p, happened - (1.0 - missed)


@component
class PredictedLabel(Event):
    """The event "the predicted label is the true one", for predictions that guarantee the label.

    A theorem for a `Multiprobability` that guarantees the "predicted label": there the label follows from the
    category alone. With other rules it does not, and a monitor refuses it.

    Examples
    --------
    >>> PredictedLabel().suits("Multiprobability", "predicted label")
    True
    """

    name = "predicted label"
    words = "the predicted label was right"
    loop = compiled.LABEL_RIGHT

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the predicted label is guaranteed."""
        return guaranteed == PREDICTED_LABEL

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return the hits, and the probability of the predicted label in the row of the true one."""
        return steps.predicted == steps.truth, steps.own


@component
class RealisedRow(Event):
    """The event "the most probable class in the row of the true label is the true one".

    A theorem for every `Multiprobability` of a valid Venn predictor, whatever rule picks the predicted label.

    Examples
    --------
    >>> RealisedRow().suits("Multiprobability", "realised row")
    True
    """

    name = "realised row"
    words = "the best class of the true label's row was right"
    loop = compiled.ROW_RIGHT

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the row of the true label is calibrated."""
        return guaranteed in (PREDICTED_LABEL, REALISED_ROW)

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return whether the row's best class was the true one, and its probability there."""
        return steps.realised_class == steps.truth, steps.realised


@component
class OneClass(Event):
    """The event "the label is class k", or its opposite if that is likelier under the true hypothesis.

    A theorem for every `Multiprobability` of a valid Venn predictor and for `ClassIntervals`. The row of the true
    label determines which of the two events is used, and its probability, so the p-values stay independent and
    uniform; and unlikely outcomes always have small p-values. So it sees probabilities that are too sure or not sure
    enough, as where labels are exchanged. `ClassShare` sees what cancels here: a class that comes too often, whether
    it was likely or not.

    Parameters
    ----------
    label : label
    code : int
        Its position among the classes.

    Raises
    ------
    TypeError, ValueError
        `code` is no integer >= 0.

    Examples
    --------
    >>> OneClass("yes", 1).name
    "class 'yes'"
    """

    loop = compiled.LIKELIER

    label: Label = param()
    code: int = param(integer, 0)

    @property
    def name(self) -> str:  # type: ignore[override]
        """A short name, for tables."""
        return f"class {self.label!r}"

    @property
    def words(self) -> str:
        """What it is that happened, for sentences."""
        return f"the likelier of {self.label!r} and the rest was true"

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the probability of a fixed class under the true hypothesis is calibrated."""
        return guaranteed in (PREDICTED_LABEL, REALISED_ROW, EACH_CLASS)

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return whether the likelier of "class k" and "not class k" happened, and its probability."""
        probability = steps.row[self.code]
        likely = probability >= 0.5
        return (steps.truth == self.code) == likely, 1.0 - probability + likely * (2.0 * probability - 1.0)


@component
class ClassShare(OneClass):
    """The event "the label is class k", however likely it was.

    A theorem wherever that of `OneClass` is one: the event is fixed beforehand. It sees a class that comes more or
    less often than its probabilities add up to: another share of the classes, an intercept that moves with the
    seasons. `OneClass` may see nothing of this: what comes too often where it is likely then comes too often where it
    is unlikely, and the likelier of the two is right as often as it should be.

    Parameters
    ----------
    label : label
    code : int
        Its position among the classes.

    Raises
    ------
    TypeError, ValueError
        `code` is no integer >= 0.

    Examples
    --------
    >>> ClassShare("yes", 1).name
    "share of class 'yes'"
    """

    loop = compiled.CLASS

    @property
    def name(self) -> str:  # type: ignore[override]
        """A short name, for tables."""
        return f"share of class {self.label!r}"

    @property
    def words(self) -> str:
        """What it is that happened, for sentences."""
        return f"class {self.label!r} came"

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return whether the label was the class, and the probability of that."""
        return steps.truth == self.code, steps.row[self.code]


@component
class TrueLabel(Parameters):
    """The smoothed p-value of the true label, by a conformal predictor.

    A theorem for every `PredictionSet` that guarantees the "error rate", if the predictor is exact online:
    transductive, or inductive with such a schedule. With other schedules each p-value is uniform, but they depend on
    each other.

    Examples
    --------
    >>> TrueLabel().suits("PredictionSet", "error rate")
    True
    """

    name = "true label"
    words = "the ranks of the true labels (p-values)"
    of_event = False
    loop = compiled.P_VALUE

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the p-values of the true labels are uniform."""
        return guaranteed == ERROR_RATE

    def read(self, steps: Outcomes, tau: Any) -> tuple[Any, None]:
        """Return the p-values unchanged, as they include `tau` already; there is no event."""
        return steps.probability, None


def usual_sources(guaranteed: str, classes: tuple[Label, ...]) -> tuple[Source, ...]:
    """Return the sources that a monitor takes when it is not told: all of them theorems, perhaps none.

    Of two classes each is the contrary of the other, and what is said of one is said of both.

    Examples
    --------
    >>> [source.name for source in usual_sources("each class", ("no", "yes"))]
    ["class 'yes'", "share of class 'yes'"]
    """
    codes = list(enumerate(classes))[len(classes) == 2 :]
    sure: dict[str, tuple[Source, ...]] = {
        PREDICTED_LABEL: (PredictedLabel(),),
        REALISED_ROW: (RealisedRow(),),
        EACH_CLASS: tuple(OneClass(label, code) for code, label in codes),
    }
    if guaranteed in sure:
        return *sure[guaranteed], *(ClassShare(label, code) for code, label in codes)
    return (TrueLabel(),) if guaranteed == ERROR_RATE else ()


def level_shares(sources: Sequence[Source]) -> list[float]:
    """Return the share of the level of each source: kinds of sources have equal shares, and so have those of a kind.

    So what costs the level of a monitor of many classes is one more kind of event, not the number of classes.

    Examples
    --------
    >>> level_shares([RealisedRow(), ClassShare("a", 0), ClassShare("b", 1)])
    [0.5, 0.25, 0.25]
    """
    kinds = Counter(map(type, sources))
    return [1 / (len(kinds) * kinds[type(source)]) for source in sources]
