"""Where the p-values of a monitor come from: events whose probability under the true hypothesis is calibrated."""

from __future__ import annotations

from typing import Any, Protocol

from venn.monitors.outcomes import Outcomes
from venn.parameters import Parameters
from venn.prediction import EACH_CLASS, ERROR_RATE, PREDICTED_LABEL, REALISED_ROW, Label
from venn.saved import saved


class Source(Protocol):
    """What a monitor asks of a source: p-values that are uniform and independent while all is well."""

    @property
    def name(self) -> str:
        """In few words, for tables."""

    @property
    def of_event(self) -> bool:
        """Whether they are those of an event, whose deviations have a band."""

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the p-values are a theorem for predictions of this kind and guarantee."""

    def read(self, steps: Outcomes, tau: Any) -> tuple[Any, Any]:
        """Return the p-value of one step, or those of n, and the deviations.

        `tau` is uniform random and breaks ties. A deviation is 1{event} minus the event's probability under the true
        hypothesis; None where there is no event.
        """


class Event(Parameters):
    """Base of sources that look at one event, such as "the predicted label is right".

    Let P be the event's probability under the true hypothesis. The p-value is tau (1 - P) if the
    event did not happen and (1 - P) + tau P if it did. A small one speaks for an event that failed though it was
    likely, so many small ones for too many failures.

    Theorem. The p-value is the smoothed conformal p-value of the example among those of its category,
    nonconformity being the event's failure; which event it is must follow from the category and the bag, labels
    included, as the row of the true label does. So while the examples are exchangeable the p-values of successive
    steps are independent and uniform, and every test martingale on them is valid at all times: for transductive
    predictors, and for inductive ones by a schedule that is exact "online". By other schedules each is uniform by
    itself.
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
        missed *= missed > 0.0  # sums of probabilities may be above 1 in their last bits
        p = happened * missed + tau * (happened * (1.0 - missed) + (1 - happened) * missed)
        return p, happened - (1.0 - missed)


@saved
class PredictedLabel(Event):
    """The event "the predicted label is the true one", where that label is guaranteed.

    A theorem for a `Multiprobability` that says "predicted label": there the label is known from the
    category alone. For other rules it is not, and a monitor refuses it.

    Examples
    --------
    >>> PredictedLabel().suits("Multiprobability", "predicted label")
    True
    """

    name = "predicted label"

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the predicted label is guaranteed."""
        return guaranteed == PREDICTED_LABEL

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return the hits, and the probability of the predicted label in the row of the true one."""
        return steps.predicted == steps.truth, steps.own


@saved
class RealisedRow(Event):
    """The event "the most probable class in the row of the true label is the true one".

    A theorem for every `Multiprobability` of a valid Venn predictor, whatever rule picks the predicted label.

    Examples
    --------
    >>> RealisedRow().suits("Multiprobability", "realised row")
    True
    """

    name = "realised row"

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the row of the true label is calibrated."""
        return guaranteed in (PREDICTED_LABEL, REALISED_ROW)

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return whether the row's best class was the true one, and its probability there."""
        return steps.realised_class == steps.truth, steps.realised


@saved
class OneClass(Event):
    """The event "the label is class k", or its opposite where that is likelier under the true hypothesis.

    A theorem for every `Multiprobability` of a valid Venn predictor and for `ClassIntervals`. Which of the two
    events it is follows from the row of the true label, as its probability does, so the p-values stay independent and
    uniform; and what is unlikely always has a small one. With "the label is class k" throughout, labels that are
    exchanged make small and large p-values in equal numbers, which few martingales bet on.

    Parameters
    ----------
    label : label
    code : int
        Its position among the classes.

    Examples
    --------
    >>> OneClass("yes", 1).name
    "class 'yes'"
    """

    def __init__(self, label: Label, code: int) -> None:
        if isinstance(code, bool) or not isinstance(code, int) or code < 0:
            raise ValueError(f"code must be the position of a class, an integer >= 0, got {code!r}")
        self.label = label
        self.code = code

    @property
    def name(self) -> str:  # type: ignore[override]
        """In few words, for tables."""
        return f"class {self.label!r}"

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the probability of a fixed class under the true hypothesis is calibrated."""
        return guaranteed in (PREDICTED_LABEL, REALISED_ROW, EACH_CLASS)

    def event(self, steps: Outcomes) -> tuple[Any, Any]:
        """Return whether the likelier of "class k" and "not class k" happened, and its probability."""
        probability = steps.row[self.code]
        likely = probability >= 0.5
        return (steps.truth == self.code) == likely, 1.0 - probability + likely * (2.0 * probability - 1.0)


@saved
class TrueLabel(Parameters):
    """The smoothed p-value of the true label, by a conformal predictor.

    A theorem for every `PredictionSet` that says "error rate", by a predictor that is exact online: transductive, or
    inductive by such a schedule. By other schedules each p-value is uniform, but they depend on each other.

    Examples
    --------
    >>> TrueLabel().suits("PredictionSet", "error rate")
    True
    """

    name = "true label"
    of_event = False

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Whether the p-values of the true labels are uniform."""
        return guaranteed == ERROR_RATE

    def read(self, steps: Outcomes, tau: Any) -> tuple[Any, None]:
        """Return the p-values as they are, for `tau` is in them already; there is no event."""
        return steps.probability, None


def usual_sources(guaranteed: str, classes: tuple[Label, ...]) -> tuple[Source, ...]:
    """Return the sources that a monitor takes when it is not told: all of them theorems, perhaps none."""
    known: dict[str, tuple[Source, ...]] = {
        PREDICTED_LABEL: (PredictedLabel(),),
        REALISED_ROW: (RealisedRow(),),
        EACH_CLASS: tuple(OneClass(label, code) for code, label in enumerate(classes)),
        ERROR_RATE: (TrueLabel(),),
    }
    return known.get(guaranteed, ())
