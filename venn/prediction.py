"""Predictions, made before the label is revealed: immutable values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from venn.parameters import (
    Parameters,
    array_of,
    flag,
    is_number,
    members,
    python_value,
    real_array,
    spelled,
    with_methods,
)
from venn.saved import component, saved

__all__ = [
    "CategoryClass", "ClassIntervals", "Forecast", "Maximin", "Multiprobability", "PredictionSet",
    "RowMean",
]  # fmt: skip

Label = Hashable
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Value = TypeVar("Value", float, Floats)  # of one object a float, of many (n,) float64


FEW = 8  # classes: for fewer a plain loop is faster than numpy
LEVELS = (0.01, 0.05, 0.1, 0.2)  # of significance, at which sets and intervals are scored and written
TIE = 1e-12  # means of probabilities closer than this are equal
SUM = 1e-9  # how far from 1 a sum of float64 probabilities may be
ROUNDINGS = 2  # of shorter numbers: units of the last place for each class by which their sum may be off,
COARSE = 0.01  # and how far at most
PREDICTED_LABEL = "predicted label"
REALISED_ROW = "realised row"
EACH_CLASS = "each class"
ERROR_RATE = "error rate"
ERROR_BOUND = "error bound"
LONG_RUN = "long-run error rate"
OF_SETS = ERROR_BOUND, ERROR_RATE  # what sets of plain p-values keep, and of smoothed ones
LOG_LOSS = "log loss"
CRPS = "CRPS"
NOTHING = "nothing"

# Attributes that only some predictions have, and which ones these are.
ELSEWHERE = {
    **dict.fromkeys(("set", "p_values", "credibility", "confidence"), "predictors of sets, such as Conformal,"),
    **dict.fromkeys(
        ("best", "bounds", "intervals", "lower", "upper", "width", "proba"),
        "predictors of probabilities, such as TransductiveVenn,",
    ),
    **dict.fromkeys(("probabilities", "unanimous"), "Venn predictors, such as TransductiveVenn,"),
    "pairs": "Venn-Abers predictors, such as TransductiveVennAbers,",
}


def _best(means: Floats) -> int:
    """Return the position of the largest mean of rows; ties go to the first class."""
    # Means of equal counts may differ in their last bit.
    return int((means >= means.max() - TIE).argmax())


class Rule(Protocol):
    """A decision rule: from the multiprobability matrix to the predicted class.

    A rule may have an attribute `guaranteed`: what is proved about predictions made by it. Without one only the
    calibration of the realised row is.
    """

    def choose(self, probabilities: Floats, category_class: int | None) -> int:
        """Return the position of the predicted class.

        Parameters
        ----------
        probabilities : (c, c) float64
            Row j: distribution over the classes under the hypothesis that the new label is class j.
        category_class : int or None
            Class of the new example's category, where it is the same under every hypothesis.
        """


def checked_rule(name: str, rule: Any) -> Rule:
    """Return the rule, or say what is wrong with it."""
    return with_methods(name, rule, "a rule object, with a method 'choose', such as RowMean()", "choose")


@component
class RowMean(Parameters):
    """Predict the class of largest mean probability over the hypotheses; ties go to the first class.

    References
    ----------
    Lambrou, Papadopoulos & Gammerman (2012).

    Examples
    --------
    >>> RowMean().choose(np.array([[0.75, 0.25], [0.3, 0.7]]), None)
    0
    """

    guaranteed = REALISED_ROW

    def choose(self, probabilities: Floats, category_class: int | None) -> int:
        """Return the position of the class of largest mean probability over the (c, c) rows."""
        return _best(probabilities.mean(axis=0))


@component
class Maximin(Parameters):
    """Predict the class whose smallest probability over the hypotheses is largest; ties go to the first class.

    Examples
    --------
    >>> Maximin().choose(np.array([[0.75, 0.25], [0.5, 0.5]]), None)
    0
    """

    guaranteed = REALISED_ROW

    def choose(self, probabilities: Floats, category_class: int | None) -> int:
        """Return the position of the class whose smallest probability in the (c, c) rows is largest."""
        return int(probabilities.min(axis=0).argmax())


@component
class CategoryClass(Parameters):
    """Predict the class that the new example's category stands for, such as the class of its largest score.

    Where the category stands for the same class under every hypothesis, the category alone determines the predicted
    label, and the label's probability of being right is calibrated: under exchangeability E[1{y = label} | category,
    bag] is the realised row at the label, and lies between the lower and the upper probability. No rule that looks at
    all rows has this property: it picks the class that happens to look best.

    Raises
    ------
    ValueError
        From `choose` and from predictors, where the class of the category may depend on the hypothesis: there
        the label would not be determined.

    Examples
    --------
    >>> CategoryClass().choose(np.array([[0.75, 0.25], [0.5, 0.5]]), 1)
    1
    """

    guaranteed = PREDICTED_LABEL
    needs_class = True

    def choose(self, probabilities: Floats, category_class: int | None) -> int:
        """Return the class of the category.

        Raises
        ------
        ValueError
            The category does not stand for one class under every hypothesis.
        """
        if category_class is None:
            raise ValueError(
                "CategoryClass() needs a category of the same class under every hypothesis, got one that may "
                "depend on it: use RowMean() or Maximin(), or LeaveOneOut(taxonomy) on a LeastSquaresSVM"
            )
        return category_class


def fitting_rule(name: str, rule: Any, taxonomy: Any, stands: bool) -> Rule:
    """Return the rule, by default the one that suits a taxonomy; or say what is wrong with it.

    Whether the categories stand for classes, each for the same under every hypothesis, `stands` says.
    """
    if rule is None:
        return CategoryClass() if stands else RowMean()
    if getattr(checked_rule(name, rule), "needs_class", False) and not stands:
        raise ValueError(
            f"{name} must be RowMean() or Maximin() for {taxonomy!r}, whose category of the new example may depend on "
            f"the supposed label, or stands for no class, got {rule!r}"
        )
    return rule


def _numbers(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return a copy of numbers of this shape, or say what is wrong with them."""
    array = real_array(values, f"{name} must be numbers of shape {shape}").copy()
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def distributions(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return a read-only copy of the distributions along the last axis, or say what is wrong with them."""
    array = _numbers(name, values, shape)
    # Written so that NaN fails, by its sum. For a few numbers a plain loop is faster than numpy.
    if array.ndim == 1:
        row = array.tolist()
        fine = min(row) >= 0 and abs(sum(row) - 1) <= SUM
    else:
        fine = array.min() >= 0 and np.abs(array.sum(axis=-1) - 1).max() <= SUM
    if not fine:
        array = _of_short_numbers(name, array, np.asarray(values).dtype)
    array.setflags(write=False)
    return array


def sum_may_miss(given: np.dtype[Any], c: int) -> float:
    """Return how far from 1 the sum of c probabilities of a type may be: shorter floats than float64 round more."""
    if given.kind != "f" or given.itemsize >= 8:
        return SUM
    # Who divides by a sum of c numbers is off by the rounding of each.
    return min(COARSE, ROUNDINGS * c * float(np.finfo(given).eps))


def _of_short_numbers(name: str, array: Floats, given: np.dtype[Any]) -> Floats:
    """Return distributions divided by their sums, where the type of what was given explains these; or refuse them."""
    rows = array.reshape(-1, array.shape[-1])
    sums, off = rows.sum(axis=1), sum_may_miss(given, rows.shape[1])
    wrong = ~((rows.min(axis=1) >= 0) & (np.abs(sums - 1) <= off))
    if wrong.any() or off == SUM:
        i = int(wrong.argmax())
        row = f"row {i} of " if array.ndim > 1 else ""
        found = f"{row}sum {float(sums[i])!r} and smallest {float(rows[i].min())!r}"
        raise ValueError(f"{name} must be nonnegative with sum 1, got {found}")
    return array / sums.reshape(*array.shape[:-1], 1)


class Says(Generic[Value]):
    """What one prediction and a block of many say: of arrays whose last axes are those of one object.

    Below, (..., c) is (c,) of one object and (n, c) of many.
    """

    classes: tuple[Label, ...]
    numbers: ClassVar[str]  #: the array with all that is said, which the constructor takes first
    says: ClassVar[tuple[str, ...]]  #: the attributes that `plain` writes
    largest: ClassVar[str] = "proba"  #: (..., c) values by which the predicted class is the largest

    @cached_property
    def index(self) -> Any:
        """Position of the predicted class, of each object; ties go to the first class."""
        return self._first(getattr(self, self.largest))

    def _first(self, values: Floats) -> Any:
        """Return where (..., c) values are the largest."""
        raise NotImplementedError

    def _number(self, values: Any) -> Value:
        """Return (...) values as numbers."""
        raise NotImplementedError

    def _own(self, values: Floats) -> Value:
        """Return those of (..., c) values that are of the predicted class."""
        raise NotImplementedError

    def _computed(self, values: Floats) -> Floats:
        """Return what is computed once."""
        return values


class SaysProbabilities(Says[Value]):
    """Base of what says a lower and an upper probability of each class, and one point forecast, `proba`."""

    says = ("label", "best", "lower", "upper", "proba", "intervals", "guaranteed")

    @cached_property
    def proba(self) -> Floats:
        """(..., c) point forecast: one probability for each class."""
        raise NotImplementedError

    @property
    def bounds(self) -> Floats:
        """(2, ..., c) smallest and largest probability of each class; equal in a point forecast."""
        return np.array([self.proba, self.proba])

    @property
    def intervals(self) -> Floats:
        """(..., c, 2) the same, smallest and largest beside each other."""
        return np.moveaxis(self.bounds, 0, -1)

    @property
    def lower(self) -> Value:
        """Smallest probability of the predicted class."""
        return self._own(self.bounds[0])

    @property
    def upper(self) -> Value:
        """Largest probability of the predicted class."""
        return self._own(self.bounds[1])

    @property
    def width(self) -> Value:
        """Upper minus lower."""
        return self.upper - self.lower


class SaysPairs(SaysProbabilities[Value]):
    """Base of what says two probabilities of each class, in (..., c, 2) `pairs`."""

    pairs: Floats

    @cached_property
    def proba(self) -> Floats:
        """(..., c) point forecast: means of the pairs, divided by their sum; uniform if all are 0."""
        mean = self.pairs.mean(axis=-1)
        total = mean.sum(axis=-1, keepdims=True)
        return self._computed(np.where(total > 0, mean / np.where(total > 0, total, 1), 1 / len(self.classes)))

    @property
    def bounds(self) -> Floats:
        """(2, ..., c) smaller and larger probability of each class."""
        return np.array([self.pairs.min(axis=-1), self.pairs.max(axis=-1)])


class SaysRows(SaysProbabilities[Value]):
    """Base of what says a distribution for each hypothesis, in (..., c, c) `probabilities`."""

    probabilities: Floats

    @cached_property
    def proba(self) -> Floats:
        """(..., c) mean of the rows: the point forecast."""
        return self._computed(self.probabilities.mean(axis=-2))

    @property
    def bounds(self) -> Floats:
        """(2, ..., c) smallest and largest probability of each class over the hypotheses."""
        return np.array([self.probabilities.min(axis=-2), self.probabilities.max(axis=-2)])


class SaysSets(Says[Value]):
    """Base of what says a p-value of each class, in (..., c) `p_values`."""

    p_values: Floats
    numbers = largest = "p_values"
    says = ("label", "p_values", "guaranteed")

    @property
    def credibility(self) -> Value:
        """Largest p-value: how well the object fits with its best label."""
        return self._own(self.p_values)

    @property
    def confidence(self) -> Value:
        """One minus the second largest p-value: the largest 1 - epsilon at which the set has one label or none."""
        return 1.0 - self._number(np.partition(self.p_values, -2)[..., -2])


class One(Says[float]):
    """Base of a prediction for one object."""

    def _first(self, values: Floats) -> int:
        return int(values.argmax())

    def _number(self, values: Any) -> float:
        return float(values)

    def _own(self, values: Floats) -> float:
        return float(values[self.index])

    def _computed(self, values: Floats) -> Floats:
        values.setflags(write=False)
        return values

    @property
    def label(self) -> Label:
        """The predicted class: the one that `guaranteed`, `lower` and `upper` speak of. See `best` for another."""
        return self.classes[self.index]

    @classmethod
    def unchecked(cls, numbers: Floats, classes: tuple[Label, ...], **others: Any) -> Self:
        """Return the prediction of numbers that nobody else changes: nothing is checked, copied or left out."""
        new = cls.__new__(cls)
        numbers.setflags(write=False)
        new.__dict__ = {"classes": classes, cls.numbers: numbers, **others}
        return new

    if not TYPE_CHECKING:  # a type checker should still report missing attributes

        def __getattr__(self, name: str) -> NoReturn:
            who = f": it is what {ELSEWHERE[name]} say" if name in ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{who}", name=name, obj=self)


class OneOfProbabilities(One, SaysProbabilities[float]):
    """Base of a prediction for one object with probabilities."""

    @property
    def best(self) -> Label:
        """The class of the largest probability in `proba`, which is also the label; ties go to the first class."""
        return self.classes[int(self.proba.argmax())]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label!r}: [{self.lower:.3f}, {self.upper:.3f}])"


@saved
class Forecast(OneOfProbabilities):
    """A point forecast: one probability for each class.

    Parameters
    ----------
    proba : (c,) float64
        Probabilities in class order; nonnegative, sum 1.
    classes : sequence of c labels

    Attributes
    ----------
    guaranteed : str
        "nothing": nothing is proved about it.

    Raises
    ------
    ValueError, TypeError
        `proba` is no distribution over the classes: of another length, negative, or of another sum than 1.

    Examples
    --------
    >>> forecast = Forecast(np.array([0.2, 0.8]), ("no", "yes"))
    >>> forecast.label, forecast.lower, forecast.upper
    ('yes', 0.8, 0.8)
    """

    guaranteed, numbers = NOTHING, "proba"

    def __init__(self, proba: Floats, classes: Sequence[Label]) -> None:
        self.classes = tuple(map(python_value, members("classes", classes, "labels")))
        self.proba = distributions("proba", proba, (len(self.classes),))

    def __repr__(self) -> str:
        return f"Forecast({self.label!r}: {self.lower:.3f})"


@saved
class MixedForecast(Forecast):
    """A point forecast by an `ExpertMixture`.

    Attributes
    ----------
    guaranteed : str
        "log loss": on any sequence the total log loss of such forecasts is hardly larger than that of the best expert.
        Of a single probability nothing is proved.

    Examples
    --------
    >>> MixedForecast(np.array([0.2, 0.8]), ("no", "yes")).guaranteed
    'log loss'
    """

    guaranteed = LOG_LOSS


@saved
class Multiprobability(OneOfProbabilities, SaysRows[float]):
    """One label distribution for each hypothesis about the new label.

    Exactly one row is the row of the true label. Under exchangeability that *realised* row is
    perfectly calibrated; which row it is cannot be known before the label, hence the interval.

    Parameters
    ----------
    probabilities : (c, c) float64
        Row j: distribution over the classes, in class order, under the hypothesis that the new
        label is class j.
    classes : sequence of c labels
    rule : Rule, default RowMean()
        Picks the predicted class.
    category_class : int, optional
        Class of the new example's category, where it is the same under every hypothesis.
    guaranteed : str, optional
        What is proved about this prediction; by default what the rule says.

    Attributes
    ----------
    guaranteed : str
        "predicted label": E[1{y = label} | category, bag] lies in [lower, upper]. "realised row": only the
        row of the true label is calibrated. "nothing": no such statement is proved.

    Raises
    ------
    ValueError, TypeError
        A row is no distribution over the classes, the rule cannot choose from the rows, or `guaranteed` is unknown.

    References
    ----------
    Vovk, Shafer & Nouretdinov (2003), "Self-calibrating probability forecasting".

    Examples
    --------
    >>> prediction = Multiprobability(np.array([[0.5, 0.5], [0.25, 0.75]]), ("no", "yes"))
    >>> prediction.label, prediction.lower, prediction.upper
    ('yes', 0.5, 0.75)
    >>> prediction.unanimous, prediction.guaranteed
    (False, 'realised row')

    The label of `CategoryClass` is guaranteed, and may have a small probability:

    >>> prediction = Multiprobability(np.array([[0.36, 0.64], [0.16, 0.84]]), ("dry", "rain"), CategoryClass(), 0)
    >>> prediction.label, prediction.guaranteed, prediction.best
    ('dry', 'predicted label', 'rain')
    """

    numbers = "probabilities"

    def __init__(
        self,
        probabilities: Floats,
        classes: Sequence[Label],
        rule: Rule | None = None,
        category_class: int | None = None,
        guaranteed: str | None = None,
    ) -> None:
        self.classes = tuple(map(python_value, members("classes", classes, "labels")))
        self.probabilities = distributions("probabilities", probabilities, (len(self.classes),) * 2)
        self.rule: Rule = RowMean() if rule is None else checked_rule("rule", rule)
        self.category_class = category_class
        self.index = self.rule.choose(self.probabilities, category_class)  # refuses now what it cannot choose from
        self.guaranteed: str = getattr(self.rule, "guaranteed", REALISED_ROW) if guaranteed is None else guaranteed
        if self.guaranteed not in (PREDICTED_LABEL, REALISED_ROW, NOTHING):
            known = ", ".join(map(repr, (PREDICTED_LABEL, REALISED_ROW, NOTHING)))
            raise ValueError(f"guaranteed must be one of {known}, got {self.guaranteed!r}")

    @cached_property
    def index(self) -> int:
        """Position of the predicted class, which the rule picks."""
        return self.rule.choose(self.probabilities, self.category_class)

    @property
    def best(self) -> Label:
        """The class of the largest probability in `proba`; ties go to the first class.

        Nothing is guaranteed about it. The rule chooses `label`: by `RowMean` the two are the same; by `CategoryClass`
        the label is the class of the category, as only for that one a theorem holds.
        """
        return self.classes[_best(self.proba)]

    @property
    def unanimous(self) -> bool:
        """True when every row has the same most probable class."""
        best = self.probabilities.argmax(axis=1)
        return bool((best == best[0]).all())


@saved
class ClassIntervals(OneOfProbabilities, SaysPairs[float]):
    """Two probabilities for each class: a binary multiprobability of the event "the label is this class".

    Under exchangeability, for each class k, the probability under the true hypothesis (`pairs[k, 1]` if
    the label is k, `pairs[k, 0]` otherwise) is perfectly calibrated.

    Parameters
    ----------
    pairs : (c, 2) float64 in [0, 1]
        Probability of each class if the label is another one, and if it is this one.
        The second may be the smaller one.
    classes : sequence of c labels

    Attributes
    ----------
    guaranteed : str
        "each class": the statement above. It does not cover the point forecast or the class that happens
        to be predicted.

    Raises
    ------
    ValueError, TypeError
        `pairs` does not have shape (c, 2), or holds a number outside [0, 1]; or `classes` is no sequence.

    References
    ----------
    Vovk & Petej (2014), "Venn-Abers predictors".

    Examples
    --------
    >>> prediction = ClassIntervals(np.array([[0.2, 0.4], [0.5, 0.7]]), ("no", "yes"))
    >>> prediction.label, prediction.lower, prediction.upper
    ('yes', 0.5, 0.7)
    >>> prediction.proba.round(3)
    array([0.333, 0.667])
    """

    guaranteed, numbers = EACH_CLASS, "pairs"

    def __init__(self, pairs: Floats, classes: Sequence[Label]) -> None:
        self.classes = tuple(map(python_value, members("classes", classes, "labels")))
        clean = _numbers("pairs", pairs, (len(self.classes), 2))
        # Written so that NaN fails.
        if not (clean.min() >= 0 and clean.max() <= 1):
            raise ValueError(f"pairs must be probabilities in [0, 1], got {pairs!r}")
        clean.setflags(write=False)
        self.pairs = clean

    @cached_property
    def proba(self) -> Floats:
        """(c,) point forecast: means of the pairs, divided by their sum; uniform if all are 0."""
        if len(self.pairs) >= FEW:
            return super().proba
        # The same bits as numpy gives, which adds fewer than eight numbers in order, in a fifth of the time.
        mean = [(p0 + p1) / 2 for p0, p1 in self.pairs.tolist()]
        total = 0.0
        for p in mean:  # not sum(), which compensates for rounding in later versions of Python
            total += p
        return self._computed(np.array([p / total if total > 0 else 1 / len(mean) for p in mean]))


def significance(epsilon: Any) -> float:
    """Return a significance level as a float, or say what it must be."""
    if type(epsilon) is not float and not is_number(epsilon):
        raise TypeError(f"epsilon must be a number in [0, 1], got {epsilon!r}")
    # Written so that NaN fails.
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must lie in [0, 1], got {epsilon!r}")
    return float(epsilon)


@saved
class PredictionSet(One, SaysSets[float]):
    """A p-value for each class, and with them a set of labels for every significance level.

    The p-value of a class is small when the new example, with that label, would look unusual among the
    others. Under exchangeability the smoothed p-value of the true label is uniform on [0, 1]: the set at level
    epsilon misses the true label with probability epsilon. Plain p-values err on the side of larger sets: at most
    epsilon. By `Conformal`, and by `InductiveConformal` where its schedule is exact online, both without a `shift`, the
    smoothed p-values of successive steps are also independent, and so are the errors.

    Parameters
    ----------
    p_values : (c,) float64 in [0, 1]
        In class order.
    classes : sequence of c labels
    smoothed : bool, default True
        Ties are broken at random, so that the p-value of the true label is exactly uniform.
    guaranteed : str, optional
        What is proved about this prediction; by default what follows from `smoothed`.

    Attributes
    ----------
    guaranteed : str
        "error rate": at each step the set at level epsilon misses the true label with probability epsilon, for
        smoothed p-values; "error bound": with at most that probability, for plain ones. Whether steps are independent
        depends on the predictor. "long-run error rate", by `Adaptive`: nothing about this step alone; over the stream
        the share of errors at each of the predictor's levels is close to that level, however the stream was made.

    Raises
    ------
    ValueError, TypeError
        For p-values that are not numbers, of another shape or out of range, or for fewer than two classes.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 2 and 4.

    Examples
    --------
    >>> prediction = PredictionSet(np.array([0.03, 0.4, 0.07]), ("a", "b", "c"))
    >>> prediction.set(0.05), prediction.set(0.1)
    (('b', 'c'), ('b',))
    >>> prediction.label, prediction.credibility, round(prediction.confidence, 2)
    ('b', 0.4, 0.93)
    """

    def __init__(
        self, p_values: Floats, classes: Sequence[Label], smoothed: bool = True, guaranteed: str | None = None
    ) -> None:
        self.classes = tuple(map(python_value, members("classes", classes, "labels")))
        if len(self.classes) < 2:
            raise ValueError(f"classes must hold at least 2 labels, got {classes!r}")
        given = array_of(p_values)
        if given.dtype.kind not in "fiu":
            raise TypeError(f"p_values must be numbers in [0, 1], got {p_values!r}")
        clean = given.astype(np.float64)  # a copy
        if clean.shape != (len(self.classes),):
            raise ValueError(f"p_values must have shape {(len(self.classes),)}, got {clean.shape}")
        # Written so that NaN fails. For a few numbers a plain loop is faster than numpy.
        if not all(0 <= p <= 1 for p in clean.tolist()):
            raise ValueError(f"p_values must lie in [0, 1], got {p_values!r}")
        clean.setflags(write=False)
        self.p_values = clean
        self.smoothed = flag("smoothed", smoothed)
        usual = OF_SETS[self.smoothed]
        if guaranteed not in (None, usual, LONG_RUN):
            raise ValueError(f"guaranteed must be {usual!r} or {LONG_RUN!r}, got {guaranteed!r}")
        self.guaranteed: str = usual if guaranteed is None else guaranteed

    def set(self, epsilon: float) -> tuple[Label, ...]:
        """Return the labels of p-value above `epsilon`, in class order; it may be empty.

        Parameters
        ----------
        epsilon : float in [0, 1]
            Significance level: the chance of an error.

        Raises
        ------
        ValueError, TypeError
            `epsilon` is not as described.
        """
        level = significance(epsilon)
        return tuple(label for label, p in zip(self.classes, self.p_values.tolist(), strict=True) if p > level)

    def __repr__(self) -> str:
        return f"PredictionSet({self.label!r}: confidence {self.confidence:.3f}, credibility {self.credibility:.3f})"


Prediction = Forecast | Multiprobability | ClassIntervals | PredictionSet


def plain(prediction: Any) -> dict[str, Any]:
    """Return all that a prediction of one object says, for JSON and for frames: arrays by class.

    Examples
    --------
    >>> plain(PredictionSet([0.5, 0.25], ("no", "yes")))
    {'label': 'no', 'p_values': {'no': 0.5, 'yes': 0.25}, 'guaranteed': 'error rate'}

    Raises
    ------
    TypeError
        Its class does not declare what it says.
    """
    says = getattr(prediction, "says", None)
    if says is None:
        raise TypeError(f"prediction must be of a class that declares in 'says' what it says, got {prediction!r}")
    said = {"probabilities" if name == "proba" else name: getattr(prediction, name) for name in says}
    return {
        name: dict(zip(map(spelled, prediction.classes), value.tolist(), strict=True))
        if isinstance(value, np.ndarray)
        else value
        for name, value in said.items()
    }
