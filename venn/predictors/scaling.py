"""Scaling baselines: one map from scores to probabilities for each one-against-all machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from venn._compiled.scaling import (
    apply_bins,
    apply_isotonic,
    apply_platt,
    fit_bins,
    fit_isotonic,
    fit_platt,
    ranges,
    totals_of,
)
from venn.machines.machine import Machine, NotConverged, checked_machine
from venn.prediction import Floats, Forecast, Integers, Label, Parameters


class _Reading(NamedTuple):
    """A bag as the maps want it, by object."""

    n: int
    scores: Floats  # (c, m) finite
    positives: Integers  # (c, m) examples of each class
    totals: Integers  # (m,) examples
    readers: set[int]  # scalers that have fitted to it


#: Scalers on one machine read the same bag after an example: the last one of training, and of deleted scores.
_last_readings: WeakKeyDictionary[Any, dict[bool, _Reading]] = WeakKeyDictionary()


def _read(machine: Machine, deleted: bool, reader: int) -> _Reading:
    """Return the bag as it is now."""
    bag = machine.deleted_bag if deleted else machine.bag
    scores, positives = np.ascontiguousarray(bag.scores), np.ascontiguousarray(bag.counts.T)
    totals, finite = totals_of(scores, positives)
    if not finite:
        raise ValueError(f"scores must be finite, got {scores[~np.isfinite(scores)][0]}")
    return _Reading(machine.n, scores, positives, totals, {reader})


def _read_once(machine: Machine, deleted: bool, reader: int) -> _Reading:
    """Return the bag after an example; one already read by another scaler on the machine will do."""
    try:
        readings = _last_readings.setdefault(machine, {})
    except TypeError:  # the machine has no hash, or cannot be referred to weakly
        return _read(machine, deleted, reader)
    reading = readings.get(deleted)
    # Who comes again has reason to: the bag has changed.
    if reading is None or reading.n != machine.n or reader in reading.readers:
        reading = readings[deleted] = _read(machine, deleted, reader)
    reading.readers.add(reader)
    return reading


class Scaler:
    """What Platt, Binning and Isotonic share: everything but the binary map.

    Machine k's map is fitted to its scores of the examples learned, positives those of class k. The new
    object's scores are mapped, divided by their sum (all zero: the uniform distribution), and the class
    of largest probability is predicted, ties to the first. Before the first example the forecast is
    uniform. Maps are fitted after every learned example, so predicting changes nothing.

    Training scores are optimistic about the examples they come from. With `deleted=True` each example's
    score is that of the machines without it, which is not. Either way these forecasts carry no guarantee: they
    are the baselines that Venn predictors are compared with.

    A subclass says how to `_fit` c binary maps and how to `_apply` them.

    References
    ----------
    Lambrou, Papadopoulos & Gammerman (2012).
    """

    def __init__(self, machine: Machine, deleted: bool = False) -> None:
        self.machine = checked_machine(machine)
        self.deleted = _truth("deleted", deleted)
        self._refit(_read)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.machine!r}{self._parameters()}, deleted={self.deleted})"

    def _parameters(self) -> str:
        return ""

    def _fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        """Fit map k to `scores[k]`, (c, m) finite, with `positives[k]` of `totals` (m,) examples; m >= 1.

        Other scalers on the machine are given the same arrays: read them only.
        """
        raise NotImplementedError

    def _apply(self, test_scores: Floats) -> Floats:
        """Return the (c,) probabilities by the maps; each is that of one class against all others."""
        raise NotImplementedError

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.machine.classes

    def predict_one(self, x: Any) -> Forecast:
        """Return the forecast for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers

        Raises
        ------
        RuntimeError
            The machine has learned examples that this predictor has not been told of, or the last fit failed.
        """
        machine = self.machine
        if machine.n != self._fitted:
            found = "a failed fit"
            if self._fitted >= 0:
                found = f"a fit to {self._fitted}: share a machine in a Panel"
            raise RuntimeError(
                f"{type(self).__name__} needs a fit to all {machine.n} examples of its machine, got {found}"
            )
        test_scores = machine.hypotheses(x).test_scores  # also before the first example: refuses a bad x
        c = len(machine.classes)
        if machine.n == 0:
            return Forecast(np.full(c, 1.0 / c), machine.classes)
        probabilities = self._apply(np.ascontiguousarray(test_scores, np.float64))
        total = probabilities.sum()
        proba = probabilities / total if total > 0 else np.full(c, 1.0 / c)
        return Forecast(proba, machine.classes)

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example: the machine first, then the maps.

        Raises
        ------
        ValueError, TypeError
            The machine refuses the example; nothing is learned.
        """
        self.machine.learn_one(x, y)
        self.after_learning(x, y)

    def after_learning(self, x: Any, y: Label) -> None:
        """Fit the maps to the scores of the machine, which has learned the example already."""
        self._refit(_read_once)

    def _refit(self, read: Callable[[Machine, bool, int], _Reading]) -> None:
        # Until the fit has succeeded there is none: after an error predict_one refuses to answer.
        self._fitted = -1
        if self.machine.n > 0:
            reading = read(self.machine, self.deleted, id(self))
            self._fit(reading.scores, reading.positives, reading.totals)
        self._fitted = self.machine.n


class Platt(Scaler):
    """Sigmoid p = 1 / (1 + exp(A f + B)), fitted by maximum likelihood to Platt's soft targets.

    With N+ positives and N- negatives the targets are (N+ + 1) / (N+ + 2) and 1 / (N- + 2), hence the
    optimum is finite for separable data too. It is unique, and found by Newton's method from the
    previous optimum until the last step moves no logit by more than 1e-7 (the error left is about the
    square of that), so where the search starts does not show.

    One class only gives its target everywhere. When all scores are equal the data do not determine
    the slope A: it is 0, and p the mean target. A is not bounded: scores that order the classes the
    wrong way round give A > 0.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    deleted : bool, default False
        Fit to the score of each example by the machines without it.

    Attributes
    ----------
    coefficients : (c, 2) float64
        A and B of each machine.

    Raises
    ------
    NotConverged
        On learning, when 100 steps do not reach the optimum from either start (squares of scores that
        overflow or vanish); no forecast is given until a later fit converges.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines"; Lin, Lin & Weng (2007), "A note on
    Platt's probabilistic outputs for support vector machines".

    Examples
    --------
    >>> import venn
    >>> model = Platt(venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"]))
    >>> model.predict_one([0.0])
    Forecast('no': 0.500)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Forecast('no': 0.750)
    """

    _maps: Floats | None = None  # (c, 3) slope, offset, centre: u = slope * (f - centre) + offset

    @property
    def coefficients(self) -> Floats:
        """(c, 2) A and B of each machine; NaN before the first example."""
        if self._maps is None:
            return np.full((len(self.classes), 2), np.nan)
        slope, offset, centre = self._maps.T
        return np.column_stack([slope, offset - slope * centre])

    def _fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        start = np.full((len(scores), 3), np.nan) if self._maps is None else self._maps
        maps, failed = fit_platt(scores, positives, totals, start)
        if failed >= 0:
            raise NotConverged(
                f"the sigmoid of class {self.classes[failed]!r} must converge, got no optimum for scores "
                f"from {scores[failed].min()} to {scores[failed].max()}; the machine has learned the example"
            )
        self._maps = maps

    def _apply(self, test_scores: Floats) -> Floats:
        p: Floats = apply_platt(self._maps, test_scores)
        return p


class Edges(Protocol):
    """Where the bins of `Binning` meet."""

    def cuts(self, scores: Floats, totals: Integers, bins: int) -> Floats:
        """Return (c, bins - 1) nondecreasing cuts for scores (c, m) with totals (m,) examples each.

        Bin 0 lies below the first cut; a score equal to a cut belongs to the bin above.
        """


class EqualWidth(Parameters):
    """Cuts that divide the range of the scores into equal parts.

    Examples
    --------
    >>> EqualWidth().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([1, 1, 1]), 4)
    array([[1., 2., 3.]])
    """

    def cuts(self, scores: Floats, totals: Integers, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts low + i / bins * (high - low)."""
        low, high = ranges(scores)
        cuts: Floats = low + (high - low) * (np.arange(1, bins) / bins)
        return cuts


class EqualFrequency(Parameters):
    """Cuts that give every bin as many examples as ties allow.

    Of n examples in order of score, counted from 0, cut i is the score of example floor(i n / bins).

    Examples
    --------
    >>> EqualFrequency().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([2, 1, 1]), 2)
    array([[1.]])
    """

    def cuts(self, scores: Floats, totals: Integers, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts."""
        ranks = np.arange(1, bins) * totals.sum() // bins
        cuts = np.empty((len(scores), bins - 1))
        for row, f in zip(cuts, scores, strict=True):
            order = f.argsort()
            row[:] = f[order[totals[order].cumsum().searchsorted(ranks, side="right")]]
        return cuts


def _number_of_bins(bins: Any) -> int:
    if isinstance(bins, bool | np.bool_) or not isinstance(bins, int | np.integer):
        raise TypeError(f"bins must be an integer >= 1, got {bins!r}")
    if bins < 1:
        raise ValueError(f"bins must be an integer >= 1, got {bins!r}")
    return int(bins)


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


class Binning(Scaler):
    """Histogram binning: the rate of positives among the examples in the new score's bin.

    Scores outside the training range belong to the end bins; a bin without examples takes the rate of
    the nearest bin with some, counted in bins, the lower of two. When all scores are equal there is one bin.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    bins : int >= 1, default 10
    edges : Edges, default EqualWidth()
        `EqualWidth()`, `EqualFrequency()`, or an object with the same method.
    laplace : bool, default False
        Rate (n+ + 1) / (n + 2) instead of n+ / n in a bin with n examples, n+ positive: no zeros, so the
        log loss stays finite.
    deleted : bool, default False
        Fit to the score of each example by the machines without it.

    References
    ----------
    Zadrozny & Elkan (2001); Lambrou, Papadopoulos & Gammerman (2012) use 10 bins.

    Examples
    --------
    >>> import venn
    >>> model = Binning(venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"]), bins=2, laplace=True)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Forecast('no': 0.750)
    """

    def __init__(
        self,
        machine: Machine,
        bins: int = 10,
        edges: Edges | None = None,
        laplace: bool = False,
        deleted: bool = False,
    ) -> None:
        self.bins = _number_of_bins(bins)
        if edges is not None and (isinstance(edges, type) or not callable(getattr(edges, "cuts", None))):
            raise TypeError(f"edges must be an object with a method 'cuts', such as EqualWidth(), got {edges!r}")
        self.edges: Edges = EqualWidth() if edges is None else edges
        self.laplace = _truth("laplace", laplace)
        super().__init__(machine, deleted)

    def _parameters(self) -> str:
        return f", bins={self.bins}, edges={self.edges!r}, laplace={self.laplace}"

    def _fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        cuts = np.ascontiguousarray(self.edges.cuts(scores, totals, self.bins), np.float64)
        increasing = cuts.shape == (len(scores), self.bins - 1)
        if increasing:
            rates, increasing = fit_bins(scores, positives, totals, cuts, self.laplace)
        if not increasing:
            raise ValueError(f"edges must give {len(scores)} rows of {self.bins - 1} nondecreasing cuts, got {cuts!r}")
        self._cuts, self._rates = cuts, rates

    def _apply(self, test_scores: Floats) -> Floats:
        p: Floats = apply_bins(self._cuts, self._rates, test_scores)
        return p


class Isotonic(Scaler):
    """The nondecreasing map of least squared error: pool adjacent violators, equal scores pooled first.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    interpolation : {"step", "linear"}, default "step"
        Between two neighbouring training scores: "step" takes the value of the lower one, "linear" goes
        straight from one value to the other. Outside the training scores both are constant.
    deleted : bool, default False
        Fit to the score of each example by the machines without it.

    Notes
    -----
    Where a machine separates its training examples, "step" gives 0 to every new score in the gap, and where
    all machines do so the forecast is uniform; "linear" does not have this defect.

    References
    ----------
    Zadrozny & Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates". Violating neighbours are replaced by their mean weighted by examples; Lambrou,
    Papadopoulos & Gammerman (2012) print the plain mean of the two, which is not the least-squares fit.

    Examples
    --------
    >>> import venn
    >>> model = Isotonic(venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"]))
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.5], "no"), ([0.5], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.5]).proba, model.predict_one([0.9]).proba
    (array([0.5, 0.5]), array([0., 1.]))
    """

    _order: Integers | None = None  # (c, m) sorts the scores of the last step

    def __init__(self, machine: Machine, interpolation: str = "step", deleted: bool = False) -> None:
        if not isinstance(interpolation, str) or interpolation not in ("step", "linear"):
            raise ValueError(f"interpolation must be 'step' or 'linear', got {interpolation!r}")
        self.interpolation = interpolation
        super().__init__(machine, deleted)

    def _parameters(self) -> str:
        return f", interpolation={self.interpolation!r}"

    def _fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        # Scores move little in one step, so the last order nearly sorts them. Objects join at the end; were
        # there fewer than before, the last order would mean nothing.
        order = self._order
        if order is None or order.shape[1] > scores.shape[1]:
            order = np.zeros((len(scores), 0), np.int64)
        self._order, self._first, self._last, self._value = fit_isotonic(scores, positives, totals, order)

    def _apply(self, test_scores: Floats) -> Floats:
        linear = self.interpolation == "linear"
        p: Floats = apply_isotonic(self._first, self._last, self._value, linear, test_scores)
        return p
