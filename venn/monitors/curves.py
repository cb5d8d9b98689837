"""A prediction and its outcome in numbers, the curves of these, and how efficient prediction sets are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from venn.monitors.sums import class_codes, p_value_rows
from venn.prediction import LEVELS, Floats, Integers, significance

# ------------------------------------------------------------------------------------------------------------- outcomes
# A prediction and its outcome in numbers: the same for a monitor and for a record.


class Outcomes(NamedTuple):
    """One step in Python numbers, or n steps: then each field is an array of n, and the row is (c, n).

    For a prediction set `probability` is the p-value of the true label, `own` the p-value of the predicted label,
    `confidence` one minus the second largest, and the other numbers are 0.
    """

    truth: Any  #: code of the true label
    predicted: Any  #: code of the predicted label
    lower: Any  #: smallest probability of the predicted label over the hypotheses
    upper: Any  #: largest one
    confidence: Any  #: probability of the predicted label by the point forecast
    probability: Any  #: probability of the true label by the point forecast
    brier: Any  #: sum over the classes of (1{y = k} - p_k)^2, by the point forecast
    own: Any  #: probability of the predicted label under the true hypothesis
    realised: Any  #: largest probability in the row of the true label; `own` for class intervals
    realised_class: Any  #: its class
    unanimous: Any  #: all hypotheses have the same most probable class
    row: Any  #: (c,) probabilities under the true hypothesis: the row of the true label, one of each pair, p-values

    def part(self, which: slice) -> Self:
        """Return some of n steps; views."""
        return type(self)(*(column[..., which] for column in self))


def outcome(truth: int, predicted: int, numbers: Floats, row: Floats) -> Outcomes:
    """Return one step from what a scorer wrote."""
    # Written out because a monitor does this at every step.
    lower, upper, confidence, probability, brier, own, realised, realised_class, unanimous = numbers.tolist()
    return Outcomes(
        truth, predicted, lower, upper, confidence, probability, brier, own, realised, int(realised_class),
        unanimous == 1.0, row.tolist(),
    )  # fmt: skip


def outcomes(truth: NDArray[Any], predicted: NDArray[Any], numbers: Floats, rows: Floats) -> Outcomes:
    """Return n steps from what a scorer wrote: numbers (n, 9), rows (n, c)."""
    *scores, realised_class, unanimous = numbers.T
    return Outcomes._make([truth, predicted, *scores, realised_class.astype(np.int64), unanimous == 1.0, rows.T])


# ------------------------------------------------------------------------------------------------------- set efficiency
# Efficiency of prediction sets: ten criteria, for each of which smaller is better.


@dataclass(frozen=True, eq=False, repr=False)
class Efficiency:
    """The ten criteria at each of n steps, in arrays of length n; smaller is better.

    Six are prior: they need no labels. Four are observed: only false labels count. Five depend on a
    significance level epsilon, by the set of labels of p-value above it; the other five on the p-values alone.

    A criterion is conditionally proper if it rewards knowledge of the distribution: if the distribution is known and
    there are unlimited examples, ranking labels by their conditional probabilities given the object is then optimal.
    That is a theorem for `sum_of_p_values`, `size`, `observed_fuzziness` and `observed_excess`; not for the
    other six, which another ranking may make smaller if there are more than two classes. With two classes
    U is F, M is E, OU is OF and OM is OE.

    Attributes
    ----------
    epsilon : float
        Significance level of the sets.
    proper : tuple of str
        Names of the criteria that are conditionally proper.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej & Gammerman (2017), "Criteria of efficiency for set-valued
    classification", Annals of Mathematics and Artificial Intelligence; arXiv:1603.04416.

    Examples
    --------
    >>> from venn.monitors import efficiency
    >>> of_steps = efficiency([[0.75, 0.25], [0.5, 0.625]], truth=[0, 0], epsilon=0.3)
    >>> of_steps
    Efficiency(2 steps, epsilon 0.3)
    >>> of_steps.size, of_steps.observed_excess
    (array([1., 2.]), array([0., 1.]))
    """

    proper: ClassVar[tuple[str, ...]] = ("sum_of_p_values", "size", "observed_fuzziness", "observed_excess")

    #: S: sum of the p-values of all labels, from 0 to c. Conditionally proper.
    sum_of_p_values: Floats
    #: N: number of labels in the set, from 0 to c. Conditionally proper.
    size: Floats
    #: U: second largest p-value, one minus the confidence.
    unconfidence: Floats
    #: F: sum of all p-values except the largest.
    fuzziness: Floats
    #: M: 1 if the set has more than one label, else 0.
    multiple: Floats
    #: E: number of labels in the set beyond the first; 0 for an empty set.
    excess: Floats
    #: OU: largest p-value of a false label.
    observed_unconfidence: Floats
    #: OF: sum of the p-values of the false labels. Conditionally proper.
    observed_fuzziness: Floats
    #: OM: 1 if the set has a false label, else 0.
    observed_multiple: Floats
    #: OE: number of false labels in the set. Conditionally proper.
    observed_excess: Floats
    epsilon: float

    def __len__(self) -> int:
        return len(self.size)

    @property
    def means(self) -> dict[str, float]:
        """Mean over all steps of each criterion, by its name.

        Raises
        ------
        ValueError
            There are no steps.
        """
        if not len(self):
            raise ValueError("means are of at least one step, got 0")
        return {name: float(getattr(self, name).mean()) for name in CRITERIA}

    def __repr__(self) -> str:
        return f"Efficiency({len(self)} steps, epsilon {self.epsilon:g})"


CRITERIA = tuple(one.name for one in fields(Efficiency)[:-1])


def efficiency(p_values: Any, truth: Any, epsilon: float = 0.05) -> Efficiency:
    """Return the ten criteria of efficiency at every step; for a prefix or window, pass its slice.

    Parameters
    ----------
    p_values : (n, c) float64 in [0, 1], c >= 2
        Of each label at each step, in class order.
    truth : (n,) int from 0 to c - 1
        Class code of the true label.
    epsilon : float in [0, 1], default 0.05
        The set of a step holds the labels of p-value above it.

    Raises
    ------
    ValueError, TypeError
        An argument is not as described.

    Examples
    --------
    >>> criteria = efficiency([[0.75, 0.25, 0.125], [0.5, 0.625, 0.0]], truth=[0, 0], epsilon=0.2)
    >>> criteria.sum_of_p_values, criteria.size, criteria.observed_excess
    (array([1.125, 1.125]), array([2., 2.]), array([1., 1.]))
    >>> criteria.means["unconfidence"], criteria.means["observed_unconfidence"]
    (0.375, 0.4375)
    """
    p = p_value_rows("p_values", p_values)
    labels = class_codes("truth", truth, *p.shape)
    level = significance(epsilon)
    false = np.ones(p.shape, np.bool_)
    false[np.arange(len(p)), labels] = False
    inside = p > level
    size, false_inside = inside.sum(axis=1), (inside & false).sum(axis=1)
    top_two = np.partition(p, -2, axis=1)[:, -2:]
    return Efficiency(
        sum_of_p_values=p.sum(axis=1),
        size=size.astype(np.float64),
        unconfidence=top_two[:, 0].copy(),
        # Not the sum minus the largest: that could fall below 0 by rounding.
        fuzziness=np.partition(p, -1, axis=1)[:, :-1].sum(axis=1),
        multiple=(size > 1).astype(np.float64),
        excess=np.maximum(size - 1, 0).astype(np.float64),
        observed_unconfidence=np.where(false, p, 0.0).max(axis=1),
        observed_fuzziness=np.where(false, p, 0.0).sum(axis=1),
        observed_multiple=(false_inside > 0).astype(np.float64),
        observed_excess=false_inside.astype(np.float64),
        epsilon=level,
    )


# --------------------------------------------------------------------------------------------------------------- curves
# How one predictor fared: step by step, and in the cumulative curves of the field.

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class PerStep:
    """What one predictor said at each of n steps, and how it fared; arrays of length n."""

    #: The predicted label was the true one.
    hit: Bools
    #: Smallest probability of the predicted label over the hypotheses.
    lower: Floats
    #: Largest one; equal to `lower` for a point forecast.
    upper: Floats
    #: Upper minus lower.
    width: Floats
    #: Probability of the predicted label by the point forecast.
    confidence: Floats
    #: Probability of the true label by the point forecast.
    probability: Floats
    #: Minus its natural logarithm, clipped below at `Record.clip`.
    log_loss: Floats
    #: Sum over the classes of (1{y = k} - p_k)^2, in [0, 2].
    brier: Floats
    #: The most probable class in the row of the true label was the true one; for class intervals, `hit`.
    realised_hit: Bools
    #: The probability of that class in that row; calibrated under exchangeability.
    #:
    #: For class intervals the probability of the predicted class under the true hypothesis: each fixed class is
    #: calibrated, the one that happens to be predicted need not be.
    realised: Floats
    #: All rows had the same most probable class; for class intervals, both hypotheses.
    unanimous: Bools


class StepCurves(ABC):
    """Base of curves: columns with a number of each of n steps, and for each curve the means of its column so far."""

    means: ClassVar[tuple[str, ...]] = ()  # the curves that are attributes

    @property
    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """Of each step what the curves are means of, by the name of the curve."""

    def __getattr__(self, name: str) -> Floats:
        if name not in self.means:
            raise AttributeError(f"no attribute {name!r} in {type(self).__name__}")
        return _means_so_far(self.columns[name])


def _means_so_far(values: NDArray[Any]) -> Floats:
    return np.cumsum(values, dtype=np.float64) / np.arange(1, len(values) + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Curves(StepCurves):
    """Cumulative curves of one predictor over n steps; arrays of length n.

    Entry N - 1 of a mean is the mean of the first N steps. The error form counts instead:
    ``lower = 1 - uep / N`` and ``upper = 1 - lep / N``.

    Attributes
    ----------
    accuracy, lower, upper, width : (n,) float64
        Means of the hits, of the bounds and of their widths.
    log_loss, brier : (n,) float64
        Mean losses, the first in nats.
    realised_accuracy, realised : (n,) float64
        Means of the realised-row hits and probabilities; the first must approach the second on exchangeable data.
    """

    means = ("accuracy", "lower", "upper", "width", "log_loss", "brier", "realised_accuracy", "realised")

    #: The steps behind the curves.
    per_step: PerStep
    #: Whether the predictor gave intervals; False for point forecasts.
    interval: bool
    #: Steps whose true label had a probability below `Record.clip`.
    clipped: int

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Of each step what the curves are means of, by the name of the curve."""
        steps = self.per_step
        same = {name: getattr(steps, name) for name in ("lower", "upper", "width", "log_loss", "brier")}
        return {"accuracy": steps.hit, **same, "realised_accuracy": steps.realised_hit, "realised": steps.realised}

    @property
    def errors(self) -> Integers:
        """(n,) number of errors so far."""
        return np.cumsum(~self.per_step.hit, dtype=np.int64)

    @property
    def lep(self) -> Floats:
        """(n,) lower error probability: sum of (1 - upper)."""
        return np.cumsum(1.0 - self.per_step.upper)

    @property
    def uep(self) -> Floats:
        """(n,) upper error probability: sum of (1 - lower)."""
        return np.cumsum(1.0 - self.per_step.lower)

    @property
    def inside(self) -> Bools:
        """Where the accuracy lies between the lower and the upper curve, rounding of the sums aside."""
        return (self.lower <= self.accuracy + 1e-12) & (self.accuracy <= self.upper + 1e-12)

    def __len__(self) -> int:
        return len(self.per_step.hit)

    def __repr__(self) -> str:
        if not len(self):
            return "Curves(0 steps)"
        return (
            f"Curves({len(self)} steps: accuracy {self.accuracy[-1]:.3f} "
            f"in [{self.lower[-1]:.3f}, {self.upper[-1]:.3f}])"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SetCurves(StepCurves):
    """How the prediction sets of one predictor fared over n steps.

    At significance level epsilon the set holds the labels of p-value above epsilon; an error is a true
    label that is not in it.

    Attributes
    ----------
    accuracy, credibility, confidence : (n,) float64
        Means so far of the hits of the label of largest p-value, of that p-value, of one minus the second largest.
    """

    means = ("accuracy", "credibility", "confidence")

    #: (n, c) p-values.
    p_values: Floats
    #: (n,) codes of the true labels.
    truth: Integers

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Of each step what the curves are means of, by the name of the curve."""
        second, largest = np.partition(self.p_values, -2, axis=1)[:, -2:].T
        return {
            "accuracy": self.p_values.argmax(axis=1) == self.truth,
            "credibility": largest,
            "confidence": 1.0 - second,
            **{f"error_{level}": self.p_true <= level for level in LEVELS},
            **{f"size_{level}": (self.p_values > level).sum(axis=1) for level in LEVELS},
        }

    @property
    def p_true(self) -> Floats:
        """(n,) p-values of the true labels: uniform and independent on exchangeable data, where they are smoothed."""
        return self.p_values[np.arange(len(self)), self.truth]

    def errors(self, epsilon: float) -> Integers:
        """Return (n,) number of errors so far at a significance level in [0, 1]."""
        return np.cumsum(self.p_true <= significance(epsilon), dtype=np.int64)

    def set_size(self, epsilon: float) -> Floats:
        """Return (n,) mean number of labels in the sets so far at a significance level in [0, 1]."""
        return _means_so_far((self.p_values > significance(epsilon)).sum(axis=1))

    def efficiency(self, epsilon: float = 0.05) -> Efficiency:
        """Return the ten criteria of efficiency, those of sets at a significance level in [0, 1]."""
        return efficiency(self.p_values, self.truth, epsilon)

    def __len__(self) -> int:
        return len(self.truth)

    def __repr__(self) -> str:
        if not len(self):
            return "SetCurves(0 steps)"
        rate, size = self.errors(0.05)[-1] / len(self), self.set_size(0.05)[-1]
        return f"SetCurves({len(self)} steps: at 0.05 error rate {rate:.3f}, {size:.2f} labels a set)"


def per_step(o: Outcomes, clip: float) -> PerStep:
    """Return the columns of steps, scored with the given clip."""
    with np.errstate(divide="ignore"):  # clip = 0 asks for infinite losses
        log_loss = -np.log(np.maximum(o.probability, clip))
    same = ("lower", "upper", "confidence", "probability", "brier", "realised", "unanimous")
    return PerStep(
        hit=o.predicted == o.truth,
        width=o.upper - o.lower,
        log_loss=log_loss,
        realised_hit=o.realised_class == o.truth,
        **{name: getattr(o, name).copy() for name in same},
    )
