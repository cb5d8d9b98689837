"""The kinds of prediction of numbers: distributions and intervals, scored by coverage, width, and proper scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from struct import Struct
from typing import Any, ClassVar

import numpy as np

from venn._compiled.distribution import add_numbers
from venn._compiled.outcomes import BRIER, PROBABILITY
from venn.distribution import GUARANTEES, NestedIntervals, NormalDistribution, NumberPrediction, PredictiveDistribution
from venn.labels import LabelSpace
from venn.monitors.curves import Outcomes, StepCurves
from venn.monitors.evidence import Scored
from venn.monitors.kind import LEVEL, NUMBER, ErrorKind, Judged, Recalled
from venn.prediction import ERROR_RATE, LEVELS, Bools, Floats, Integers, Label

LEVEL_ARRAY = np.array(LEVELS)
LEVEL_PLACE = LEVELS.index(LEVEL)
ERRORS, FINITE, WIDTHS, INTERVAL_SCORES = (
    tuple(f"{what}_{level}" for level in LEVELS) for what in ("error", "finite", "width", "score")
)
COLUMNS = ("absolute_error", "crps", *ERRORS, *FINITE, *WIDTHS, *INTERVAL_SCORES)
PLACES = np.dtype("<i8")
OF_TIES, OF_INTERVALS = 64, 128  # beside a guarantee: which ends a journal keeps
KEPT_ENDS = {OF_TIES: ("lows", "highs"), OF_INTERVALS: ("lower", "upper")}
STRAYS = Struct("<Q")


@dataclass(frozen=True, eq=False, repr=False)
class NumberCurves(StepCurves):
    """How the predictions of numbers of one predictor fared over n steps; arrays of length n."""

    #: True labels.
    truth: Floats
    #: Point forecasts.
    label: Floats
    #: P-values of the true labels: uniform and independent on exchangeable data, by conformal predictors.
    p_true: Floats
    #: Continuous ranked probability scores; 0 for predictions that are no distributions.
    crps: Floats
    #: (levels, n) lower ends of the intervals at the significance levels 0.01, 0.05, 0.1 and 0.2; may be infinite.
    lower: Floats
    #: (levels, n) upper ends.
    upper: Floats

    def errors(self, epsilon: float) -> Integers:
        """Return (n,) number of labels outside their interval so far, at one of the significance levels."""
        return np.cumsum(self.columns[f"error_{epsilon}"], dtype=np.int64)

    def width(self, epsilon: float) -> Floats:
        """Return (n,) mean width of the finite intervals so far at one of the levels; infinite before the first."""
        columns = self.columns
        finite = np.cumsum(columns[f"finite_{epsilon}"])
        total = np.cumsum(columns[f"width_{epsilon}"])
        return np.divide(total, finite, out=np.full(len(total), inf), where=finite > 0)

    def __len__(self) -> int:
        return len(self.truth)

    def __repr__(self) -> str:
        if not len(self):
            return "NumberCurves(0 steps)"
        rate, width = self.errors(LEVEL)[-1] / len(self), self.width(LEVEL)[-1]
        return f"NumberCurves({len(self)} steps: at {LEVEL} error rate {rate:.3f}, mean width {width:.4g})"


class NumberKind(ErrorKind):
    """Predictions of a number: an error is a true label outside the interval.

    Widths and interval scores are means over steps with a finite interval. A journal keeps an abridged prediction: its
    intervals at the levels of records and its p-values, on a coarser scale, not all of its points.
    """

    attribute, wanted = "label", "a number"
    columns = COLUMNS
    table: ClassVar[Mapping[str, str]] = {
        "crps": "CRPS", "absolute_error": "abs. error", "error_0.05": "error .05", "error_0.1": "error .1",
        "error_0.2": "error .2", "width_0.05": "width .05", "width_0.1": "width .1", "score_0.1": "score .1",
    }  # fmt: skip
    means = (*COLUMNS[:2], *ERRORS, *WIDTHS, *INTERVAL_SCORES, "finite_0.05")
    what = "intervals"
    judged = Judged(f"interval at {LEVEL}", "in it?", "yes", "no", "intervals missed the number")
    spread = ("width_", "width of an interval")
    whole = False

    def chosen(self, prediction: Any) -> None:
        """Return None: all that a number prediction chooses is rounded."""

    # ------------------------------------------------------------------ scoring

    def breadth(self, space: LabelSpace) -> int:
        """Return the number of ends of intervals."""
        return 2 * len(LEVELS)

    def scored(
        self, prediction: NumberPrediction, name: str, space: LabelSpace, truth: Any, numbers: Floats, row: Floats
    ) -> float:
        """Write p-value, score and the ends of intervals; return the point forecast."""
        numbers[:] = 0.0
        numbers[PROBABILITY] = prediction.p_value(truth)
        numbers[BRIER] = self.crps(prediction, truth)
        for place, level in enumerate(LEVELS):
            row[2 * place : 2 * place + 2] = prediction.interval(level)
        return prediction.label

    def crps(self, prediction: Any, truth: float) -> float:
        """Return the continuous ranked probability score of a distribution."""
        return prediction.crps(truth)

    def hit(self, step: Outcomes) -> bool:
        """Whether the label is in the interval at 0.05."""
        return bool(step.row[2 * LEVEL_PLACE] <= step.truth <= step.row[2 * LEVEL_PLACE + 1])

    def add(self, steps: Scored, clip: float, sums: Floats, table: Floats) -> Bools:
        """Write the columns of n steps into the rows of `table`; return where the label is in the interval at 0.05."""
        add_numbers(steps.numbers[:, BRIER], steps.rows, steps.truths, steps.predicted, LEVEL_ARRAY, sums, table)
        return np.asarray(table[:, COLUMNS.index(f"error_{LEVEL}")] == 0.0)

    def finished(self, means: Mapping[str, float]) -> dict[str, float]:
        """Return the means, those of widths and scores over the finite intervals only; infinite where there is none.

        And as the accuracy, the share of labels inside the interval at 0.05.
        """
        found = {name: mean for name, mean in means.items() if name != "crps" or "crps" in self.means}
        for kind in (WIDTHS, INTERVAL_SCORES):
            for name, finite in zip(kind, FINITE, strict=True):
                found[name] = found[name] / found[finite] if found[finite] > 0 else inf
        found["accuracy"] = 1.0 - found[f"error_{LEVEL}"]
        return found

    # ----------------------------------------------------------------- verdicts

    def may_err_less(self, guaranteed: str) -> bool:
        """Whether intervals are conformal: they end at examples, and may miss the true label less often."""
        return guaranteed == ERROR_RATE

    # ------------------------------------------------------------------ records

    def curves(self, steps: Outcomes, clip: float) -> NumberCurves:  # type: ignore[override]
        """Return the columns and cumulative curves of n steps."""
        lower, upper = steps.row[::2], steps.row[1::2]
        columns = self.averaged(Scored.of(steps), clip)
        return NumberCurves(columns, steps.truth, steps.predicted, steps.probability, steps.brier, lower, upper)

    def running(self, means: Mapping[str, float]) -> str:
        """Return a predictor's means so far as text."""
        error, width = means[f"error_{LEVEL}"], means[f"width_{LEVEL}"]
        return f"abs. error {means['absolute_error']:.4g}, at {LEVEL} error rate {error:.3f}, mean width {width:.4g}"

    def breadth_so_far(self, curves: Any) -> str:
        """Return the mean width of the finite intervals at 0.05."""
        return f"mean width {curves.width(LEVEL)[-1]:.4g}"

    # -------------------------------------------------------------------- views

    def claim(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return the interval at 0.05."""
        lower, upper = _ends(prediction)
        return f"{lower:.6g} to {upper:.6g}"

    def right(self, prediction: Any, y: Label) -> bool:
        """Whether the true label is in the interval at 0.05."""
        lower, upper = _ends(prediction)
        return bool(lower <= y <= upper)  # type: ignore[operator]

    def recalled(self, steps: Outcomes, step: int, labels: tuple[Label, ...], guaranteed: str) -> Recalled:
        """Return the point forecast and the interval at 0.05."""
        lower, upper = steps.row[2 * LEVEL_PLACE : 2 * LEVEL_PLACE + 2, step].tolist()
        return Recalled(self, float(steps.predicted[step]), lower, upper)


def _ends(prediction: Any) -> tuple[float, float]:
    if isinstance(prediction, Recalled):
        return prediction.lower, prediction.upper
    return prediction.interval(LEVEL)


class PredictiveDistributionKind(NumberKind):
    """Predictive distributions made of points. A journal keeps some of the points, with their places."""

    of: ClassVar[type[Any]] = PredictiveDistribution
    beside = Struct("<BQId3d")
    arrays = (("points", NUMBER), ("places", PLACES))
    centred = False  #: whether there is a point forecast beside the points

    def kept(self, prediction: Any) -> Any:
        """Return the abridged prediction."""
        return prediction.abridged(LEVELS)

    def shape(self, space: LabelSpace, *known: Any) -> tuple[int, ...]:
        """Return the number of points."""
        return (known[2],)

    def known(self, prediction: Any) -> tuple[Any, ...]:
        """Return the guarantee, the numbers of points and of those that are kept, and the other parameters.

        With the guarantee stands which ends are kept: of ties, and of intervals.
        """
        p = prediction
        ends = sum(flag for flag, names in KEPT_ENDS.items() if getattr(p, names[0], None) is not None)
        return GUARANTEES.index(p.guaranteed) + ends, p.n, len(p.points), p.tau, p.origin, p.grid, p.label

    def encode(self, prediction: Any) -> bytes:
        """Return a prediction as bytes; equal predictions make equal bytes."""
        kept, found = self.kept(prediction), super().encode(prediction)
        for flag, names in KEPT_ENDS.items():
            if found[0] & flag:
                found += b"".join(np.ascontiguousarray(getattr(kept, name), NUMBER).tobytes() for name in names)
        return found + STRAYS.pack(kept.strays) if found[0] & OF_INTERVALS else found

    def decode(self, content: bytes, start: int, space: LabelSpace) -> tuple[Any, int]:
        """Return the prediction found in `content` from `start` on, bit for bit, and where it ends."""
        flags, m = (self.beside.unpack_from(content, start)[i] for i in (0, 2))
        after, more = start + self.beside.size + 2 * m * NUMBER.itemsize, dict[str, Any]()
        for flag, names in KEPT_ENDS.items():
            for name in names if flags & flag else ():
                more[name] = np.frombuffer(content, NUMBER, m, after)
                after += more[name].nbytes
        if flags & OF_INTERVALS:
            (more["strays"],) = STRAYS.unpack_from(content, after)
            after += STRAYS.size
        found, end = super().decode(content, start, space)
        made: Any = found
        if not more:
            return made, end
        return self.of(
            made.points, made.tau, made.places, made.n, made.origin, made.grid, made.guaranteed, **more
        ), after

    def made(self, *kept: Any) -> Any:
        """Return the prediction of these points."""
        points, places, _, guaranteed, n, _, tau, origin, grid, label = kept
        forecast = (label,) if self.centred else ()
        return self.of(points, *forecast, tau, places, n, origin, grid, GUARANTEES[guaranteed % OF_TIES])


class NestedIntervalsKind(PredictiveDistributionKind):
    """Nested intervals: no distribution, so there is no score of one."""

    of, centred = NestedIntervals, True
    table: ClassVar[Mapping[str, str]] = {key: name for key, name in NumberKind.table.items() if key != "crps"}
    means = tuple(name for name in NumberKind.means if name != "crps")

    def crps(self, prediction: Any, truth: float) -> float:
        """Return 0: there is no distribution."""
        return 0.0


class NormalKind(NumberKind):
    """Normal distributions: a journal keeps all of one."""

    of = NormalDistribution
    whole = True
    beside, arrays = Struct("<dd"), ()

    def known(self, prediction: NormalDistribution) -> tuple[float, float]:
        """Return mean and deviation."""
        return prediction.mean, prediction.deviation

    def made(self, *kept: Any) -> Any:
        """Return the prediction of these."""
        return NormalDistribution(*kept[1:])
