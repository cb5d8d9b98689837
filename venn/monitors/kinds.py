"""The kinds of prediction: for each one object that says how its predictions are scored, averaged, kept and shown.

To add a kind of prediction:

1. The prediction itself, a frozen value, in `venn/prediction.py`, with `classes`, `index`, `label`, `guaranteed`
   and `says`, the names of all that JSON and data frames have of it.
2. A compiled function that scores one of them against the true label, in `venn/_compiled/outcomes.py`. It writes
   nine numbers, which `Outcomes` names, and a row of `Kind.breadth` more.
3. A subclass of `Kind`, in a file of its own. What it does not define is inherited from `Kind`.
4. One object of that class at the end of `ALL` below: its place there is its code in journals.

Monitors, records, journals, tables and pages then know it: none of them asks what kind a prediction is. Views draw the
columns that a kind says it has (`lower` and `upper` as a band, `error_0.05` beside its level).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, ClassVar

import numpy as np

from venn._compiled.outcomes import (
    add_graded,
    add_set,
    score_each_pairs,
    score_each_point,
    score_each_rows,
    score_each_set,
    score_pairs,
    score_point,
    score_rows,
    score_set,
)
from venn.labels import LabelSpace
from venn.monitors.alarms import shares
from venn.monitors.bounds import ForwardEProcess, deviation_radius
from venn.monitors.curves import Curves, Outcomes, PerStep, SetCurves
from venn.monitors.evidence import Evidence, PointForecasts, Scored
from venn.monitors.kind import LEVEL, ErrorKind, Judged, Kind, Recalled
from venn.monitors.number_kinds import NestedIntervalsKind, NormalKind, PredictiveDistributionKind
from venn.monitors.sources import level_shares, usual_sources
from venn.parameters import Parameters
from venn.prediction import (
    ERROR_RATE,
    LEVELS,
    LOG_LOSS,
    LONG_RUN,
    NOTHING,
    PREDICTED_LABEL,
    REALISED_ROW,
    Bools,
    CategoryClass,
    ClassIntervals,
    Floats,
    Forecast,
    Label,
    Maximin,
    MixedForecast,
    Multiprobability,
    Prediction,
    PredictionSet,
    RowMean,
    Rule,
)
from venn.saved import component, param

GUARANTEES = (PREDICTED_LABEL, REALISED_ROW, NOTHING)
RULES: tuple[type, ...] = (RowMean, Maximin, CategoryClass)
OWN_RULE = len(RULES)
MIXED = "mixed"  # shown if a predictor's guarantees differ
MOST_LABELS = 12  # most labels shown of such a set
LEVEL_ARRAY = np.array(LEVELS)
AT_LEVELS = tuple(f"{what}_{level}" for what in ("error", "size") for level in LEVELS)


class ProbabilityKind(Kind):
    """Predictions with a lower and an upper probability of the predicted label, and a point forecast."""

    wanted = "probabilities of sum 1"
    columns = (
        "accuracy", "lower", "upper", "log_loss", "brier", "confidence", "realised_accuracy", "realised", "clipped",
    )  # fmt: skip
    table: ClassVar[Mapping[str, str]] = {
        "accuracy": "accuracy", "lower": "lower", "upper": "upper", "width": "width", "log_loss": "log loss",
        "brier": "Brier",
    }  # fmt: skip
    means = tuple(table)
    figures = frozenset({"curves", "reliability"})
    interval = True  #: whether lower and upper differ

    def add(self, steps: Scored, clip: float, sums: Floats, table: Floats) -> Bools:
        """Write the columns of n steps into the rows of `table`, and add them to `sums`; return which were right."""
        add_graded(steps.predicted, steps.truths, steps.numbers, steps.rows, clip, sums, table)
        return np.asarray(steps.predicted == steps.truths)

    def said(self, means: Mapping[str, float], span: str, guaranteed: str) -> str:
        """Return the mean claim and the accuracy as text; where only the realised row is calibrated, those of it."""
        if guaranteed == REALISED_ROW:
            claimed, hits = shares(means["realised"], means["realised_accuracy"])
            return f"the row of the true label claims {claimed} for its best class, which is right in {hits} {span}"
        lower, upper, hits = shares(means["lower"], means["upper"], means["accuracy"])
        band = lower if lower == upper else f"{lower} to {upper}"
        claims = {NOTHING: "nothing is guaranteed, it says", LOG_LOSS: "it says"}.get(guaranteed, "it claims")
        return f"{claims} {band} and is right in {hits} {span}"

    def finished(self, means: Mapping[str, float]) -> dict[str, float]:
        """Return the means, and that of the width."""
        return {**means, "width": means.get("width", means["upper"] - means["lower"])}

    def departure(self, means: Mapping[str, float], size: int, guaranteed: str) -> float:
        """Return 2 N d^2, by Azuma and Hoeffding; d: distance of a mean of N steps from what is claimed for it.

        A theorem for a guaranteed label and for the realised row; for all others it is descriptive.
        """
        if guaranteed == REALISED_ROW:
            gap = abs(means["realised_accuracy"] - means["realised"])
        else:
            gap = max(means["lower"] - means["accuracy"], means["accuracy"] - means["upper"], 0.0)
        return 2 * size * gap**2

    def losses(self, means: Mapping[str, float], frequencies: Floats) -> tuple[float, float]:
        """Return the mean Brier score, and that of the frequencies of the classes."""
        return means["brier"], float(1 - frequencies @ frequencies)

    def curves(self, steps: Outcomes, clip: float) -> Curves:
        """Return the cumulative curves of n steps."""
        found = self.averaged(Scored.of(steps), clip)
        found["width"] = found["upper"] - found["lower"]
        same: dict[str, Any] = {
            name: np.array(getattr(steps, name)) for name in ("confidence", "probability", "unanimous")
        }
        read: dict[str, Any] = {
            name: found[name].copy() for name in ("lower", "upper", "width", "log_loss", "brier", "realised")
        }
        shown = PerStep(
            hit=found["accuracy"] == 1.0, realised_hit=found["realised_accuracy"] == 1.0, **same, **read,
        )  # fmt: skip
        columns = {name: found[name] for name in Curves.means}
        return Curves(columns, shown, self.interval, int(found["clipped"].sum()))

    def running(self, means: Mapping[str, float]) -> str:
        """Return a predictor's means so far as text."""
        lower, upper = means["lower"], means["upper"]
        claim = f"in [{lower:.3f}, {upper:.3f}]" if upper > lower else f"claimed {lower:.3f}"
        return f"accuracy {means['accuracy']:.3f} {claim}"

    def conclusion(self, name: str, curves: Any, guaranteed: str) -> str | None:
        """Return the final accuracy, and whether it was inside its band, as text.

        Where the predicted label is guaranteed, the sum of departures stays below sqrt(N ln(2 / 0.05) / 2) in at
        least 19 runs of 20.
        """
        accuracy, lower, upper, inside = curves.accuracy[-1], curves.lower[-1], curves.upper[-1], curves.inside
        share = "at every step" if inside.all() else f"at {int(inside.sum())} of {len(inside)} steps"
        end = f"{'inside' if inside[-1] else 'outside'} its band [{lower:.3f}, {upper:.3f}]"
        if not inside[-1] and guaranteed == PREDICTED_LABEL:
            gap, chance = max(lower - accuracy, accuracy - upper), deviation_radius(len(curves)) / len(curves)
            end += f" by {gap:.4f}, {'within' if gap <= chance else 'BEYOND'} the {chance:.3f} of 19 valid runs in 20"
        elif not inside[-1] and upper > lower:
            end += ", which is not guaranteed of the predicted class"
        return f"{name}: the accuracy, {accuracy:.3f}, ends {end}; inside {share}."

    def claim(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return the bounds of the predicted label, or its probability where they agree."""
        lower, upper = f"{prediction.lower:.3f}", f"{prediction.upper:.3f}"
        return lower if lower == upper else f"{lower} to {upper}"

    def best(self, prediction: Any, tell: Callable[[Label], str]) -> str:
        """Return the class of the largest probability, and that, as short text if it is not the label; else nothing."""
        if isinstance(prediction, Recalled) or prediction.best == prediction.label:
            return ""  # a record does not know the point forecast
        return f"{tell(prediction.best)} {prediction.proba.max():.3f}"

    def right(self, prediction: Any, y: Label) -> bool:
        """Whether the predicted label was the true one."""
        return bool(prediction.label == y)

    def recalled(self, steps: Outcomes, step: int, labels: tuple[Label, ...], guaranteed: str) -> Recalled:
        """Return the predicted label and its bounds."""
        return Recalled(self, labels[steps.predicted[step]], float(steps.lower[step]), float(steps.upper[step]))


class ForecastKind(ProbabilityKind):
    """Point forecasts. Nothing is guaranteed about them; a forward e-process bets against their probabilities."""

    of, attribute, score = Forecast, "proba", staticmethod(score_point)
    score_each = staticmethod(score_each_point)
    figures = ProbabilityKind.figures | {"martingales"}
    interval = False

    def evidence(self, level: float, memory: int, classes: tuple[Label, ...]) -> tuple[Evidence, ...]:
        """Return the evidence against the probabilities of the predicted labels and of the classes."""
        sources = usual_sources(PREDICTED_LABEL, classes)
        shared = zip(sources, level_shares(sources), strict=True)
        return tuple(PointForecasts(source, share * level, memory) for source, share in shared)

    def evidence_path(self, steps: Outcomes) -> Floats:
        """Return the natural logarithm of that evidence after each of n steps."""
        claimed = np.minimum(steps.lower, 1.0)
        return ForwardEProcess().update_many(steps.predicted == steps.truth, claimed, claimed)

    def conclusion(self, name: str, curves: Any, guaranteed: str) -> None:
        """Return None: there is no band to compare with."""


class MixedForecastKind(ForecastKind):
    """Point forecasts by a mixture of experts, of whose total log loss something is proved."""

    of = MixedForecast


@component
class Chosen(Parameters):
    """Replaces a user's own rule when a prediction is read back: only its choice is known."""

    index: int = param()

    def choose(self, probabilities: Floats, category_class: int | None) -> int:
        """Return what the rule chose."""
        return self.index


class MultiprobabilityKind(ProbabilityKind):
    """Multiprobabilities. A journal also keeps the guarantee, the rule, its choice, and the category's class."""

    of, attribute, score = Multiprobability, "probabilities", staticmethod(score_rows)
    score_each = staticmethod(score_each_rows)
    beside = Struct("<BBii")

    def shape(self, space: LabelSpace, *known: Any) -> tuple[int, ...]:
        """Return the shape of the numbers of a prediction."""
        return (len(space.labels),) * 2

    def known(self, prediction: Multiprobability) -> tuple[int, ...]:
        """Return guarantee, rule, predicted class, and the class of the category or -1."""
        rule = RULES.index(type(prediction.rule)) if type(prediction.rule) in RULES else OWN_RULE
        category = -1 if prediction.category_class is None else prediction.category_class
        return GUARANTEES.index(prediction.guaranteed), rule, prediction.index, category

    def made(self, *kept: Any) -> Multiprobability:
        """Return the prediction with these numbers and with what was kept beside them."""
        numbers, labels, guaranteed, rule, index, category = kept
        if not 0 <= index < len(labels) or not -1 <= category < len(labels):
            raise ValueError(f"classes {index} and {category} of {len(labels)}")
        chosen: Rule = Chosen(index) if rule == OWN_RULE else RULES[rule]()
        return Multiprobability(numbers, labels, chosen, None if category < 0 else category, GUARANTEES[guaranteed])


class ClassIntervalsKind(ProbabilityKind):
    """Two probabilities for each class."""

    of: ClassVar[type[Any]] = ClassIntervals
    attribute, score, wanted = "pairs", staticmethod(score_pairs), "probabilities"
    score_each = staticmethod(score_each_pairs)

    def shape(self, space: LabelSpace, *known: Any) -> tuple[int, ...]:
        """Return the shape of the numbers of a prediction."""
        return len(space.labels), 2


class SetKind(ErrorKind):
    """Prediction sets: an error is a true label that is not in the set."""

    of, attribute, score, wanted = PredictionSet, "p_values", staticmethod(score_set), "p-values"
    score_each = staticmethod(score_each_set)
    columns = means = ("accuracy", "credibility", "confidence", *AT_LEVELS)
    table: ClassVar[Mapping[str, str]] = {
        "accuracy": "accuracy", "error_0.01": "error .01", "error_0.05": "error .05", "error_0.1": "error .1",
        "error_0.2": "error .2", "size_0.05": "size .05", "confidence": "confidence",
    }  # fmt: skip
    what = "sets"
    judged = Judged(f"set at {LEVEL}", "in it?", "yes", "no", "sets missed the label")
    beside = Struct("<B")

    def may_err_less(self, guaranteed: str) -> bool:
        """Whether p-values are plain: their sets may miss the true label less often."""
        return guaranteed != ERROR_RATE

    def add(self, steps: Scored, clip: float, sums: Floats, table: Floats) -> Bools:
        """Write the columns of n steps into the rows of `table`, and add them to `sums`; return which were right."""
        add_set(steps.predicted, steps.truths, steps.numbers, steps.rows, LEVEL_ARRAY, sums, table)
        return np.asarray(steps.predicted == steps.truths)

    def losses(self, means: Mapping[str, float], frequencies: Floats) -> tuple[float, float]:
        """Return the share of labels that were not the least strange one, and that of the most frequent class."""
        return 1 - means["accuracy"], float(1 - frequencies.max())

    def curves(self, steps: Outcomes, clip: float) -> SetCurves:
        """Return the cumulative curves of n steps."""
        return SetCurves(self.averaged(Scored.of(steps), clip), steps.row.T.copy(), np.array(steps.truth, np.int64))

    def running(self, means: Mapping[str, float]) -> str:
        """Return a predictor's means so far as text."""
        error, size = means[f"error_{LEVEL}"], means[f"size_{LEVEL}"]
        return f"accuracy {means['accuracy']:.3f}, at {LEVEL} error rate {error:.3f}, {size:.2f} labels a set"

    def breadth_so_far(self, curves: Any) -> str:
        """Return the mean number of labels in a set at 0.05."""
        return f"{curves.set_size(LEVEL)[-1]:.2f} labels a set"

    def known(self, prediction: PredictionSet) -> tuple[int, ...]:
        """Return whether the p-values are smoothed, plus 2 where the error rate is a long-run one."""
        return (int(prediction.smoothed) + 2 * (prediction.guaranteed == LONG_RUN),)

    def chosen(self, prediction: PredictionSet) -> Any:
        """Return the least strange label, and the sets."""
        return prediction.index, [prediction.set(level) for level in LEVELS]

    def made(self, *kept: Any) -> PredictionSet:
        """Return the prediction of these p-values."""
        p_values, labels, known = kept
        return PredictionSet(p_values, labels, bool(known & 1), LONG_RUN if known & 2 else None)

    def claim(self, prediction: PredictionSet, tell: Callable[[Label], str]) -> str:
        """Return the labels of the set at 0.05, only the first ones if there are many."""
        members = prediction.set(LEVEL)
        more = f" and {len(members) - MOST_LABELS} more" if len(members) > MOST_LABELS else ""
        return f"{{{', '.join(map(tell, members[:MOST_LABELS]))}{more}}}"

    def right(self, prediction: PredictionSet, y: Label) -> bool:
        """Whether the true label is in the set at 0.05."""
        return y in prediction.set(LEVEL)

    def recalled(self, steps: Outcomes, step: int, labels: tuple[Label, ...], guaranteed: str) -> PredictionSet:
        """Return the prediction."""
        long_run = LONG_RUN if guaranteed == LONG_RUN else None
        return PredictionSet(steps.row[:, step], labels, guaranteed == ERROR_RATE, long_run)


FORECAST = ForecastKind()
#: New kinds come last: journals hold the places of these.
ALL: tuple[Kind, ...] = (
    FORECAST, MultiprobabilityKind(), ClassIntervalsKind(), SetKind(),
    PredictiveDistributionKind(), NestedIntervalsKind(), NormalKind(), MixedForecastKind(),
)  # fmt: skip
KINDS = {kind.name: kind for kind in ALL}


def kind_of(prediction: Any, who: str = "a predictor") -> Kind:
    """Return the kind of a prediction, or of what a record keeps of one; raise TypeError for anything else."""
    kind = prediction.kind if isinstance(prediction, Recalled) else KINDS.get(type(prediction).__name__)
    if kind is None:
        raise TypeError(f"{who} must predict one of {', '.join(KINDS)}, got {prediction!r}")
    return kind


def kept(predictions: Mapping[str, Prediction]) -> dict[str, Prediction]:
    """Return predictions as a journal keeps them: what is read back from it is equal to these."""
    return {name: kind_of(prediction, name).kept(prediction) for name, prediction in predictions.items()}


class Scorer:
    """Scores the predictions of one predictor, all of one kind and with the same classes.

    Scoring leaves no trace; `keep` is called for a prediction that counts.

    Parameters
    ----------
    name : str
        Of the predictor, for messages.
    space : LabelSpace
        Of the labels.
    """

    def __init__(self, name: str, space: LabelSpace) -> None:
        self.name = name
        self.space = space
        self.kind: Kind | None = None  # known from the first prediction on
        self.guaranteed: str | None = None

    def score(self, prediction: Prediction, truth: Any, numbers: Floats, row: Floats) -> Any:
        """Write the scores of a prediction for the true code into `numbers` (9,) and `row` (c,).

        Returns
        -------
        code
            Of the predicted label.

        Raises
        ------
        TypeError
            Not a prediction, or one of another kind than before.
        ValueError
            A prediction with other classes, or with invalid numbers.
        """
        kind = self.kind
        if kind is None or type(prediction) is not kind.of:
            other = kind_of(prediction, self.name)
            if kind is not None:
                raise TypeError(f"{self.name} must keep to one kind of prediction, {kind.name}, got {prediction!r}")
            kind = other
        if prediction.classes != self.space.labels:
            raise ValueError(f"{self.name} must predict the classes {self.space.labels!r}, got {prediction.classes!r}")
        return kind.scored(prediction, self.name, self.space, truth, numbers, row)

    def keep(self, prediction: Prediction) -> None:
        """Remember the kind and the guarantee of a prediction that counts."""
        self.kind = kind_of(prediction, self.name)
        if prediction.guaranteed != self.guaranteed:
            self.guaranteed = prediction.guaranteed if self.guaranteed is None else MIXED
