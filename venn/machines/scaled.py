"""A machine that scales its objects: by the first examples, which belong to no bag, or by declared ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from venn._compiled.sparse import Rows
from venn.machines.around import Around, PassesOn, given
from venn.machines.checks import checked_weight, clean_object
from venn.machines.machine import Hypotheses, Machine
from venn.machines.sparse import SparseRows, clean_sparse, is_sparse, rows_of
from venn.parameters import integer, number
from venn.prediction import Floats, Label
from venn.saved import checked_keys, held_array, held_bool, held_finite, held_rows, saved

FIRST = 30  # measured: see the class
QUARTILES = 1.349  # deviations between the quartiles of a Gaussian
HALF = math.sqrt(3)  # a uniform variable has variance 1 between -HALF and HALF


class ByFirst(PassesOn):
    """Base of what scales objects by the first of them, which it keeps until then, or by declared ranges."""

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return an object around this machine, which may have learned: `restore` says on what scale."""
        checked_keys("parameters", parameters, (cls.held, "first", "ranges"))
        held = parameters[cls.held]
        made = cls(**(parameters | {cls.held: held.fresh()}))
        setattr(made, cls.held, held)
        expect_scaled(held)
        return made

    def _expect_first(self, first: int | None, ranges: Iterable[tuple[float, float]] | None) -> None:
        self.first, self.ranges = first_or_ranges(first, ranges)
        self.fixed: Scale | None = None if self.ranges is None else of_ranges(self.ranges)
        self._rows: list[Any] = []  # the first objects, until they fix the scale
        self._labels: list[Label] = []  # theirs, where they are to be learned as well

    def _first_state(self) -> dict[str, Any]:
        """Return the first examples, and the scale that they have fixed."""
        scale = None if self.fixed is None or self.first is None else self.fixed.state
        rows = stacked(self._rows) if self._rows else None
        return {"codes": self.space.encode_many(self._labels), "rows": rows, "scale": scale}

    def _restore_first(self, state: dict[str, Any], learned: int, labelled: bool = True) -> None:
        """Take over what `_first_state` gave; `learned` are the examples inside, and labels are kept if `labelled`."""
        self.forget()  # what was said on another scale
        rows, scale = held_objects(state["rows"]), state["scale"]
        seen, started = len(rows), state["rows"] is not None
        if self.first is None:
            if seen or scale is not None:
                raise ValueError("scale must be that of the ranges, got another")
        elif scale is not None:
            if seen:
                raise ValueError(f"scale must be fixed by examples that are gone, got {seen} that are there")
            self.fixed = held_scale(scale)
        elif not seen < self.first or learned or started != (seen > 0):
            raise ValueError(f"rows must be fewer than {self.first}, with nothing learned, got {seen}")
        self._rows = rows
        codes = held_array("codes", state["codes"], (seen if labelled else 0,), self.space.kept)
        if not self.space.holds(codes):
            raise ValueError(f"codes must be those of {self.space.told}")
        self._labels = [self.space.decode(code) for code in codes]

    def _clean(self, x: Any) -> Any:
        """Return `x` in the form of the first object, dense or sparse, or say what is wrong with it."""
        return in_form(x, self.fixed, self._rows)


@saved
class Scaled(ByFirst, Around):
    """A machine that scales every object before it learns it, or answers about it.

    Machines with kernels, neighbours or centroids measure distances: where one column counts in millions and another in
    thousandths, they see the first alone. Scaling by the mean and the standard deviation of all examples seen so far
    would void what is guaranteed: a new object would be scaled by the older ones, but they not by it. Here the scale is
    fixed before anything is learned, in one of two ways.

    - `Scaled(machine, first=30)`: the first 30 examples give each column's mean and standard deviation, and do nothing
      else. They belong to no bag, so all later ones are treated alike, and every guarantee holds. Until then
      nothing is known: intervals are [0, 1], and p-values are uniform random numbers. Labels are not looked at.
    - `Scaled(machine, ranges=[(low, high), ...])`: each column has a declared range, as of an instrument. No example is
      spent. A column becomes one from -1.73 to 1.73: variance 1 if it is uniform. Values outside are allowed.

    A column that is constant over the first examples is only centred. Sparse objects keep their zeros: by the first
    examples columns are divided by their root mean square, without centring; with ranges they become dense.

    In an inductive predictor the first training examples fix the scale, and are then learned as well: training examples
    calibrate nothing, so none needs to be spent. Its scorer knows nothing before `first` examples have trained it. A
    window stands around: `SlidingWindow(Scaled(machine), size)`; a restart that keeps nothing fixes the scale anew.

    How many? Mean log loss of steps 100 to 500 by Venn-Abers on `LeastSquaresSVM(RBF("auto"), C=10)`, columns times
    1e-3 to 1e6, over eight sets of ten shuffles (`benchmarks/scaled.py`): not scaled .713; by the first 10 .457, 20
    .452, 30 .453, 50 .455, 100 .484; standardised over the whole file beforehand .445.

    Parameters
    ----------
    machine : Machine
        One that has learned nothing. It is trained by this object from now on, and by nobody else.
    first : int >= 2, default 30
        Number of examples that fix the scale. Not with `ranges`.
    ranges : sequence of (low, high), optional
        Finite numbers, low < high, one pair for each column.

    Attributes
    ----------
    machine : Machine
        The machine inside, which meets scaled objects only. Do not train it.
    n : int
        Number of examples held: without those that fix the scale.
    learned : int
        Number of all examples, including those.
    center, scale : (d,) float64 or None
        What is subtracted, and what divides; None as long as nothing is fixed, and `center` for sparse objects.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; or an object that does not stay finite when scaled.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF("auto"), C=10, classes=["no", "yes"])
    >>> model = venn.TransductiveVennAbers(Scaled(machine, first=4))
    >>> for x, y in [([0.1, 1e6], "no"), ([0.3, 3e6], "yes"), ([0.2, 4e6], "no"), ([0.2, 2e6], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.machine.n, model.machine.learned, model.machine.center
    (0, 4, array([2.0e-01, 2.5e+06]))
    >>> model.predict_one([0.1, 1e6])
    ClassIntervals('no': [0.000, 1.000])
    >>> Scaled(machine.fresh(), ranges=[(0, 1), (0, 1e6)])
    Scaled(LeastSquaresSVM(RBF(gamma='auto'), C=10.0, classes=['no', 'yes']), ranges=((0.0, 1.0), (0.0, 1000000.0)))
    """

    def __init__(
        self, machine: Machine, first: int | None = None, ranges: Iterable[tuple[float, float]] | None = None
    ) -> None:
        super().__init__(machine)
        if isinstance(machine, Around):
            raise TypeError(f"machine must be the machine itself, with what is around it outside, got {machine!r}")
        if machine.learned != 0:
            raise ValueError(f"machine must have learned nothing, got one of {machine.learned} examples, not scaled")
        self._expect_first(first, ranges)
        self._trains = False
        expect_scaled(self.machine)

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """The scale by examples, or the examples so far that will fix it."""
        return {"trains": self._trains} | self._first_state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it is not a possible one."""
        super().restore(state)
        self._trains = held_bool("trains", state["trains"])
        self._restore_first(state, self.machine.learned, self._trains)

    # ------------------------------------------------------------------ reading

    @property
    def center(self) -> Floats | None:
        """(d,) what is subtracted; None as long as nothing is fixed, and for sparse objects."""
        return None if self.fixed is None else self.fixed.center

    @property
    def scale(self) -> Floats | None:
        """(d,) what divides; None as long as nothing is fixed."""
        return None if self.fixed is None else self.fixed.spread

    @property
    def learned(self) -> int:
        """Number of examples ever learned, including those that fix the scale."""
        learned: int = self.machine.learned
        if self.first is None or self.fixed is None or self._trains:
            return learned + len(self._rows)
        return learned + self.first

    def expect_training(self) -> None:
        """Let the machine learn the first examples too, once they have fixed the scale.

        For inductive predictors, whose training examples are in no bag. Called before anything is learned.

        Raises
        ------
        RuntimeError
            Something is learned already.
        """
        if self.learned:
            raise RuntimeError(f"expect_training must come before the first example, got {self.learned} learned")
        self._trains = True

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""
        return self.machine.scores(self._scaled(self._clean(x)))

    def hypotheses(self, x: Any, weight: float | None = None) -> Hypotheses:
        """Answer for every hypothesis about `x`, scaled; solved once, remembered until a label is learned.

        Parameters
        ----------
        x : (d,) finite numbers
        weight : float > 0, optional
            Only for a machine with weights of examples.
        """
        return self.machine.hypotheses(self._scaled(self._clean(x)), *given(weight))

    # ----------------------------------------------------------------- learning

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        self.machine.check(self._scaled(self._clean(x)), y)

    def learn_one(self, x: Any, y: Label, weight: float | None = None) -> None:
        """Learn one example, or let it help to fix the scale.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        weight : float >= 0, optional
            Only for a machine with weights of examples, and, where the first examples are learned, once they have fixed
            the scale. An example of weight 0 is passed over, and any other counts once for the scale.

        Raises
        ------
        TypeError, ValueError, NotConverged
            As raised by the machine, or the scale of the first examples cannot be computed: nothing is learned then.
        """
        row = self._clean(x)
        if self.fixed is not None:
            self.machine.learn_one(self._scaled(row), y, *given(weight))
            return
        self.machine.check(self._scaled(row), y)
        if weight is not None:
            if self._trains:
                raise TypeError(f"weight must not be given while training examples fix the scale, got {weight!r}")
            if checked_weight(weight) == 0:
                return
            self.machine.hypotheses(self._scaled(row), weight)  # refuses what it would refuse to learn
        rows, labels = [*self._rows, row], [*self._labels, y] if self._trains else []
        if len(rows) < (self.first or 0):
            self.forget()
            self._rows, self._labels = rows, labels
            return
        self._fix(rows, labels)

    def _fix(self, rows: list[Any], labels: list[Label]) -> None:
        """Fix the scale by the first objects; teach them to the machine where labels are given."""
        scale = fixed_by(rows)
        machine = self.machine
        if labels:
            machine = self.machine.fresh()  # so that a refused example leaves no trace
            expect_scaled(machine)
            for row, label in zip(rows, labels, strict=True):
                machine.learn_one(scale.place(row), label)
        self.machine.forget()
        self.machine, self.fixed = machine, scale
        self._rows, self._labels = [], []

    @property
    def unlearn_one(self) -> Any:
        """Forget the i-th example held, in order of arrival; only where the machine can. The scale stays."""
        return self.machine.unlearn_one

    # ------------------------------------------------------------------ scaling

    def _scaled(self, row: Any) -> Any:
        """Return a clean object as the machine inside meets it: as long as the scale is not known, all are equal."""
        if self.fixed is None:
            nothing = np.zeros(row.shape[-1])
            return rows_of(nothing[None]) if isinstance(row, SparseRows) else nothing
        return self.fixed.place(row)


class Scale(NamedTuple):
    """How columns are scaled: z = (x - center) / spread, and where there is a `stretch`, asinh(z) / stretch."""

    spread: Floats
    center: Floats | None = None  #: None for sparse objects, which keep their zeros
    stretch: Floats | None = None  #: None for ranges and sparse objects

    @property
    def state(self) -> Floats:
        """(1, d), (2, d) or (3, d): spread, center and stretch of a scale that examples have fixed, those it has."""
        return np.array([one for one in self if one is not None])

    def place(self, row: Any, farthest: float = math.inf) -> Any:
        """Return a clean object on this scale, no value farther than so many deviations; or say that it has none."""
        sparse = isinstance(row, SparseRows)
        with np.errstate(over="ignore"):
            if sparse:
                starts, stops, indices, values = row.packed().arrays
                values = values / self.spread[indices]
            else:
                values = (row - self.center) / self.spread
        if not np.isfinite(values).all():
            where = int(np.flatnonzero(~np.isfinite(values))[0])
            feature, given = (indices[where], row.packed().arrays.values[where]) if sparse else (where, row[where])
            raise ValueError(f"x must stay finite when scaled, got {given} at feature {feature}, which has not")
        if self.stretch is not None:
            values = np.arcsinh(values) / self.stretch
        values = np.clip(values, -farthest, farthest)
        if not sparse:
            return values
        made = SparseRows(Rows(starts, stops, indices, values), row.features)
        return made if values.all() else rows_of(made.toarray())  # a sparse row holds no zero


def fixed_by(rows: list[Any]) -> Scale:
    """Return the scale of at least one clean object; it does not depend on their order, nor does its last bit."""
    objects = stacked(rows)
    return Scale(root_mean_squares(objects)) if isinstance(objects, SparseRows) else middle(objects)


def of_ranges(ranges: tuple[tuple[float, float], ...]) -> Scale:
    """Return the scale on which each range goes from -HALF to HALF."""
    low, high = np.array(ranges).T
    return Scale((high / 2 - low / 2) / HALF, low / 2 + high / 2)


def in_form(x: Any, scale: Scale | None, rows: list[Any]) -> Any:
    """Return `x` in the form of earlier objects, of a scale or these rows, dense or sparse; or say what is wrong."""
    features, sparse = None, is_sparse(x)
    if scale is not None:
        features, sparse = len(scale.spread), scale.center is None
    elif rows:
        features, sparse = rows[0].shape[-1], isinstance(rows[0], SparseRows)
    if is_sparse(x):
        row = clean_sparse("x", x, features)
        return row if sparse else row.toarray()[0]
    dense = clean_object(x, features)
    return rows_of(dense[None]) if sparse else dense


def held_objects(rows: Any) -> list[Any]:
    """Return the objects of a state, which `stacked` has put together; none for None."""
    if rows is None:
        return []
    if not isinstance(rows, SparseRows):
        held_finite("rows", rows, (held_rows("rows", rows), rows.shape[-1]))
    return [rows[i] for i in range(len(rows))]


def held_scale(state: Any) -> Scale:
    """Return the scale of a `Scale.state`, or raise a ValueError if it is not one."""
    rows = held_rows("scale", state)
    if rows not in (1, 2, 3):
        raise ValueError(f"scale must have 1 to 3 rows, got {rows}")
    held_finite("scale", state, (rows, state.shape[-1]))
    scale = Scale(*state.copy())
    for divisor in (scale.spread, scale.stretch):
        if divisor is not None and not (divisor > 0).all():
            raise ValueError(f"scale must divide by numbers > 0, got {divisor.min()}")
    return scale


def expect_scaled(machine: Any) -> None:
    """Let a machine know that its objects are scaled, if it wants to: those with kernels do."""
    expect = getattr(machine, "expect_scaled", None)
    if expect is not None:
        expect()


def scales(machine: Any) -> bool:
    """Whether a machine, or what is inside it, scales its objects."""
    while isinstance(machine, Around):
        if isinstance(machine, Scaled):
            return True
        machine = machine.machine
    return False


def first_or_ranges(first: Any, ranges: Any) -> tuple[int | None, tuple[tuple[float, float], ...] | None]:
    """Return by how many first examples the scale is fixed, or by which ranges; the other is None."""
    if ranges is None:
        return integer("first", FIRST if first is None else first, 2), None
    if first is not None:
        raise ValueError(f"first must not be given with ranges, which fix the scale, got {first!r}")
    return None, checked_ranges(ranges)


def checked_ranges(ranges: Any) -> tuple[tuple[float, float], ...]:
    """Return pairs of numbers, or say what is wrong with them."""
    requirement = f"ranges must be pairs (low, high) of finite numbers, low < high, one for each column, got {ranges!r}"
    if isinstance(ranges, str | bytes) or not isinstance(ranges, Iterable):
        raise TypeError(requirement)
    try:
        clean = tuple((number("low", low), number("high", high)) for low, high in ranges)
    except (TypeError, ValueError) as error:
        raise type(error)(requirement) from None
    if not clean or any(not low < high or not high / 2 - low / 2 > 0 for low, high in clean):
        raise ValueError(requirement)
    return clean


def stacked(rows: list[Any]) -> Any:
    """Return the objects as one array (k, d), or as sparse rows."""
    if not isinstance(rows[0], SparseRows):
        return np.array(rows)
    entries = [row.packed().arrays for row in rows]
    stops = np.cumsum([len(one.indices) for one in entries])
    indices, values = (np.concatenate(parts) for parts in zip(*[(e.indices, e.values) for e in entries], strict=True))
    return SparseRows(Rows(np.append(0, stops)[:-1], stops, indices, values), rows[0].features)


def middle(X: Floats) -> Scale:
    """Return the scale of columns by their middle half, which values far out do not move.

    The centre is the median, the spread the distance of the quartiles / 1.349, as of a Gaussian its deviation; where
    the quartiles are equal, the standard deviation; in a constant column 1. The stretch is then the deviation of
    asinh((x - centre) / spread), so that every column varies by 1. To the last bit the same in whatever order the rows
    are: they are sorted first.
    """
    columns = np.sort(X, axis=0)
    constant = columns[0] == columns[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        low, center, high = quantiles(columns)
        columns = columns - center
        spread = (high - low) / QUARTILES
        flat = ~(spread > 0)
        spread[flat] = deviations(columns[:, flat])
        spread[constant] = 1.0
        _check_scale(spread, np.where(np.isfinite(columns).all(axis=0), center, np.nan))
        stretch = deviations(np.arcsinh(columns / spread))
    stretch[~(stretch > 0)] = 1.0
    return Scale(spread, center, stretch)


def quantiles(columns: Floats) -> Floats:
    """Return the quartiles (3, d) of sorted columns (n, d), linear between two of them; no halfway sum overflows."""
    places = np.array([0.25, 0.5, 0.75]) * (len(columns) - 1)
    below = places.astype(np.int64)
    share = (places - below)[:, None]
    return columns[below] * (1 - share) + columns[np.minimum(below + 1, len(columns) - 1)] * share


def deviations(columns: Floats) -> Floats:
    """Return the standard deviation of sorted columns."""
    off = columns - columns.mean(axis=0)
    peak = np.abs(off).max(axis=0, initial=0.0)
    peak[~(peak > 0)] = 1.0  # so that squares neither overflow nor vanish
    return peak * np.sqrt(np.mean((off / peak) ** 2, axis=0))


def root_mean_squares(rows: SparseRows) -> Floats:
    """Return the root mean square of each column of sparse rows; that of an empty one is 1."""
    _, _, indices, values = rows.packed().arrays
    sizes = np.abs(values)
    order = np.lexsort((sizes, indices))  # the same sum in whatever order the rows are
    indices, sizes = indices[order], sizes[order]
    peak = np.ones(rows.features)
    some = np.unique(indices)
    peak[some] = 0.0
    np.maximum.at(peak, indices, sizes)
    sums = np.bincount(indices, (sizes / peak[indices]) ** 2, minlength=rows.features)
    scale = peak * np.sqrt(sums / len(rows))
    scale[sums == 0] = 1.0
    _check_scale(scale, np.zeros(1))
    return scale


def _check_scale(scale: Floats, center: Floats) -> None:
    bad = ~((scale > 0) & np.isfinite(scale) & np.isfinite(center))
    if bad.any():
        raise ValueError(f"x must leave the first examples near enough to scale, got feature {int(bad.argmax())}")
