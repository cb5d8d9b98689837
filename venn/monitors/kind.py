"""What monitors, records, journals and views need from a kind of prediction; `kinds.py` has the kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import inf, log, prod
from struct import Struct
from typing import Any, ClassVar, NamedTuple

import numpy as np

from venn._compiled.outcomes import FINE
from venn.labels import LabelSpace
from venn.monitors.alarms import shares
from venn.monitors.bounds import binomial_limits
from venn.monitors.curves import Curves, Outcomes, SetCurves
from venn.monitors.evidence import Evidence, Scored
from venn.prediction import LONG_RUN, Bools, Floats, Integers, Label, Prediction

NUMBER = np.dtype("<f8")
TOLERANCE = 1e-6


LEVEL = 0.05  # significance level of the sets and intervals that are shown one by one


def xlogy(x: float, y: float) -> float:
    """Return x ln y, 0 for x = 0."""
    return x * log(y) if x > 0 else 0.0


class Judged(NamedTuple):
    """The words for the outcome of a prediction: what is shown, the question about it, and its two answers."""

    said: str = "predicted"
    asked: str = "right?"
    yes: str = "right"
    no: str = "wrong"
    failed: str = "outcomes wrong"  #: of several


class Kind(ABC):
    """One kind of prediction: how its predictions are scored, averaged, kept and shown."""

    of: ClassVar[type[Any]]  #: class of the predictions
    attribute: ClassVar[str]  #: attribute of a prediction with all its numbers
    wanted: ClassVar[str]  #: requirement on these numbers, for messages
    score: ClassVar[Callable[..., int]]  #: compiled: (numbers, predicted, truth, scores (9,), row) -> FINE, or not
    score_each: ClassVar[Callable[..., int] | None] = None  #: the same of n: the number of the first that is not fine
    columns: ClassVar[tuple[str, ...]]  #: columns that a monitor averages, in the order of `add`
    means: ClassVar[tuple[str, ...]]  #: columns of `curves` whose means a record gives
    table: ClassVar[Mapping[str, str]]  #: those of `means` shown in tables, and their headings
    figures: ClassVar[frozenset[str]]  #: a record's figures of it: "curves", "errors", "martingales", "reliability"
    calibrated: ClassVar[bool] = True  #: whether `confidence` is the probability of a hit
    spread: ClassVar[tuple[str, str]] = ("size_", "labels in a set")  #: of columns by level, and the axis of pages
    judged: ClassVar[Judged] = Judged()
    whole: ClassVar[bool] = True  #: whether a journal keeps all of a prediction
    beside = Struct("<")  #: numbers that a journal keeps before the arrays
    arrays: ClassVar[tuple[tuple[str, np.dtype[Any]], ...]]  #: arrays that it keeps, all of one shape; by default one

    def __init_subclass__(cls) -> None:
        if "of" in vars(cls) and "arrays" not in vars(cls) and hasattr(cls.of, "numbers"):
            cls.arrays = ((cls.of.numbers, NUMBER),)

    @property
    def name(self) -> str:
        """In files, snapshots and messages: the name of the class of its predictions."""
        return self.of.__name__

    # ------------------------------------------------------------------ scoring

    def shape(self, space: LabelSpace, *known: Any) -> tuple[int, ...]:
        """Return the shape of the numbers of a prediction, by what a journal keeps beside them."""
        return (len(space.labels),)

    def breadth(self, space: LabelSpace) -> int:
        """Return the length of the row of a step."""
        return len(space.labels)

    def scored(self, prediction: Any, name: str, space: LabelSpace, truth: Any, numbers: Floats, row: Floats) -> Any:
        """Write the scores of a prediction for the true code into `numbers` and `row`; return the predicted code.

        Raises
        ------
        ValueError
            The prediction, of the predictor `name`, holds invalid numbers.
        """
        raw, predicted = getattr(prediction, self.attribute), prediction.index
        if len(raw) != len(row) or self.score(raw, predicted, truth, numbers, row) != FINE:
            raise ValueError(f"{name} must predict {self.wanted}, got {raw!r}")
        return predicted

    def scored_many(
        self, block: Any, name: str, space: LabelSpace, truths: Integers, numbers: Floats, rows: Floats
    ) -> Any:
        """Write the scores of n predictions, a block of them, for true codes; return the (n,) predicted codes.

        Raises
        ------
        ValueError
            One of them holds invalid numbers.
        """
        raw, predicted, fine = getattr(block, self.attribute), block.index, 0
        if raw.shape[1:] == self.shape(space) and self.score_each is not None:
            fine = self.score_each(raw, predicted, truths, numbers, rows)
        if fine < len(raw):
            raise ValueError(f"{name} must predict {self.wanted}, got {raw[fine]!r}")
        return predicted

    def hit(self, step: Outcomes) -> bool:
        """Whether the prediction of one step was right."""
        return bool(step.predicted == step.truth)

    def finished(self, means: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers to show, given the means of columns."""
        return dict(means)

    @abstractmethod
    def add(self, steps: Scored, clip: float, sums: Floats, table: Floats) -> Bools:
        """Write the columns of n steps into the rows of `table`, and add them to `sums`; return which were right."""

    def averaged(self, steps: Scored, clip: float) -> dict[str, Floats]:
        """Return the columns of n steps by name: the one place where predictions are scored for means and curves."""
        table = np.empty((len(steps.truths), len(self.columns)))
        self.add(steps, clip, np.zeros(len(self.columns)), table)
        return dict(zip(self.columns, table.T, strict=True))

    def evidence(self, level: float, memory: int, classes: tuple[Label, ...]) -> tuple[Evidence, ...]:
        """Return the evidence against the claims of these predictions where nothing is guaranteed."""
        return ()

    def evidence_path(self, steps: Outcomes) -> Floats:
        """Return the natural logarithm of that evidence after each of n steps; 0 where there is none."""
        return np.zeros(len(steps.truth))

    # ----------------------------------------------------------------- verdicts

    @abstractmethod
    def said(self, means: Mapping[str, float], span: str, guaranteed: str) -> str:
        """Return claim and outcome on average over the steps of `span`, as text."""

    def doubt(self, means: Mapping[str, float], span: str, guaranteed: str) -> str:
        """Return the same if they differ by more than chance."""
        return f"{self.said(means, span, guaranteed)}, which chance hardly explains"

    @abstractmethod
    def departure(self, means: Mapping[str, float], size: int, guaranteed: str) -> float:
        """Return ln(2 / chance), where chance bounds the probability that means over `size` steps depart as much.

        A theorem for one range of steps that is fixed beforehand, while the guarantee holds, unless the kind says
        otherwise.
        """

    def losses(self, means: Mapping[str, float], frequencies: Floats) -> tuple[float, float] | None:
        """Return the mean loss, and that of guessing by the frequencies (c,) of the classes; None for numbers."""
        return None

    # ------------------------------------------------------------------ records

    @abstractmethod
    def curves(self, steps: Outcomes, clip: float) -> Curves | SetCurves:
        """Return the cumulative curves of n steps."""

    @abstractmethod
    def running(self, means: Mapping[str, float]) -> str:
        """Return a predictor's `means` so far as text."""

    @abstractmethod
    def conclusion(self, name: str, curves: Any, guaranteed: str) -> str | None:
        """Compare the whole run with the claim of the predictor `name`, as text; None: its mean says enough."""

    # ----------------------------------------------------------------- journals

    def kept(self, prediction: Any) -> Prediction:
        """Return the prediction as a journal keeps it."""
        return prediction

    def encode(self, prediction: Any) -> bytes:
        """Return a prediction as bytes; equal predictions make equal bytes."""
        kept: Any = self.kept(prediction)
        found = self.beside.pack(*self.known(kept))
        for name, kind in self.arrays:
            found += np.asarray(getattr(kept, name), kind).tobytes()
        return found

    def decode(self, content: bytes, start: int, space: LabelSpace) -> tuple[Prediction, int]:
        """Return the prediction found in `content` from `start` on, bit for bit, and where it ends."""
        known, arrays = self.beside.unpack_from(content, start), []
        start, shape = start + self.beside.size, self.shape(space, *known)
        for _, kind in self.arrays:
            arrays.append(np.frombuffer(content, kind, prod(shape), start).reshape(shape))
            start += arrays[-1].nbytes
        return self.made(*arrays, space.labels, *known), start

    def known(self, prediction: Any) -> tuple[Any, ...]:
        """Return what a journal keeps of a prediction beside its arrays."""
        return ()

    def apart(self, one: Any, other: Any) -> float:
        """Return the largest relative difference of the numbers of two kept predictions.

        It is infinite where they differ in more: in size, or in what they choose.
        """
        (chosen, numbers), (chosen_too, others) = map(self._read, (one, other))
        if chosen != chosen_too:
            return inf
        off = ~((numbers == others) | (np.isnan(numbers) & np.isnan(others)))
        if not off.any():
            return 0.0
        largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
        if not largest or not np.isfinite([numbers[off], others[off]]).all():
            return inf
        return float(np.abs(numbers[off] - others[off]).max()) / largest

    def _read(self, prediction: Any) -> tuple[list[Any], Floats]:
        """Return the part of a kept prediction that must be equal, and the numbers that rounding may change."""
        chosen: list[Any] = [self.chosen(prediction)]
        numbers: list[float] = []
        for value in self.known(prediction):
            (numbers if isinstance(value, float) else chosen).append(value)
        for name, kind in self.arrays:
            array = np.ascontiguousarray(getattr(prediction, name), kind)
            chosen.append(array.shape if kind == NUMBER else array.tobytes())
            numbers += array.ravel().tolist() if kind == NUMBER else []
        return chosen, np.array(numbers, np.float64)

    def chosen(self, prediction: Any) -> Any:
        """Return what a prediction chooses by its numbers."""
        return prediction.index

    def made(self, *kept: Any) -> Prediction:
        """Return the prediction of its arrays, the labels and what was kept beside them, or raise ValueError."""
        return self.of(*kept)

    # -------------------------------------------------------------------- views

    @abstractmethod
    def claim(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return a prediction's claim as short text; `tell` turns a label into text."""

    def judged_by(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return as short text what is compared with the outcome: the label, or the whole set or interval."""
        return tell(prediction.label)

    def best(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return the class of the largest probability, and that, as short text if it is not the label; else nothing."""
        return ""

    @abstractmethod
    def right(self, prediction: Any, y: Label) -> bool:
        """Whether the claim was right."""

    @abstractmethod
    def recalled(self, steps: Outcomes, step: int, labels: tuple[Label, ...], guaranteed: str) -> Any:
        """Return what a record still knows of the prediction of a step, for `claim` and `right`."""


class ErrorKind(Kind):
    """Base of sets and intervals. An error is a true label that they miss."""

    what: ClassVar[str]  #: what errs, for sentences
    figures: ClassVar[frozenset[str]] = frozenset({"errors"})
    calibrated = False

    def judged_by(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return the set or the interval."""
        return self.claim(prediction, tell)

    @abstractmethod
    def may_err_less(self, guaranteed: str) -> bool:
        """Whether fewer errors than the level says are as claimed."""

    def said(self, means: Mapping[str, float], span: str, guaranteed: str) -> str:
        """Return the error rate at 0.05 as text."""
        errors, level = shares(means[f"error_{LEVEL}"], LEVEL)
        return f"its {self.what} at level {level} miss the label in {errors} {span}"

    def doubt(self, means: Mapping[str, float], span: str, guaranteed: str) -> str:
        """Return the error rate, and on which side of 0.05 it is."""
        side = "more often" if means[f"error_{LEVEL}"] > LEVEL else "more seldom"
        return f"{self.said(means, span, guaranteed)}, {side} than chance explains"

    def departure(self, means: Mapping[str, float], size: int, guaranteed: str) -> float:
        """Return N kl(e, 0.05), by Chernoff; e: error rate over N steps.

        0 for fewer errors where fewer are allowed, and for a long-run error rate: it holds whatever happens, and there
        is no chance in it.
        """
        errors = means[f"error_{LEVEL}"]
        if guaranteed == LONG_RUN or (errors <= LEVEL and self.may_err_less(guaranteed)):
            return 0.0
        return size * (xlogy(errors, errors / LEVEL) + xlogy(1 - errors, (1 - errors) / (1 - LEVEL)))

    def conclusion(self, name: str, curves: Any, guaranteed: str) -> str:
        """Compare the number of errors with the central 95 % of the binomial distribution that the theorem gives.

        There is no chance in a long-run error rate.
        """
        n, errors = len(curves), int(curves.errors(LEVEL)[-1])
        if guaranteed == LONG_RUN:
            kept = f"{errors / n:.3f}: on any stream the rate tends to {LEVEL}"
        else:
            low, high = binomial_limits(0.95, n, LEVEL)
            low = 0 if self.may_err_less(guaranteed) else low
            kept = f"{'within' if low <= errors <= high else 'BEYOND'} the {low} to {high} of 19 valid runs in 20"
        missed = f"{errors} of {n} {self.what} at significance {LEVEL} missed the true label"
        return f"{name}: {missed}, {kept}; {self.breadth_so_far(curves)}."

    @abstractmethod
    def breadth_so_far(self, curves: Any) -> str:
        """Return as text how large the sets or intervals at 0.05 were on average."""


class Recalled(NamedTuple):
    """The part of a prediction with probabilities that a record keeps."""

    kind: Kind
    label: Label
    lower: float
    upper: float

    @property
    def says(self) -> tuple[str, ...]:
        """The attributes that `plain` writes."""
        return "label", "lower", "upper"
