"""The scale of a machine: how its columns become alike, by the first examples or by declared ranges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from operator import attrgetter, not_
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from venn._compiled.rows import Rows, put_on_scale
from venn.labels import LabelSpace, space_of
from venn.machines.base import KeptMachine
from venn.machines.machine import checked_place, code_of
from venn.machines.objects import Query, in_form, object_of
from venn.machines.sparse import SparseRows, is_sparse, rows_of
from venn.parameters import TRUTH, Parameters, flag, integer, number, optional
from venn.prediction import Floats, Label
from venn.saved import (
    base,
    checked_keys,
    component,
    own,
    param,
    restored_array,
    restored_bool,
    restored_finite,
    restored_rows,
    state,
)

QUARTILES = 1.349  # deviations between the quartiles of a Gaussian
HALF = math.sqrt(3)  # a uniform variable has variance 1 between -HALF and HALF
NONE = np.empty(0)
NOT_FINITE = "x must stay finite when scaled, got {} at feature {}, which has not"


class ColumnScale(NamedTuple):
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
        if not isinstance(row, SparseRows):  # one object, or several
            rows, d = np.ascontiguousarray(row, np.float64), len(self.spread)
            if rows.shape[-1] != d:
                raise ValueError(f"x must have {d} features, as the scale has, got {rows.shape[-1]}")
            values, stretch = np.empty(rows.shape), NONE if self.stretch is None else self.stretch
            each, out = rows.reshape(-1, d), values.reshape(-1, d)
            where = put_on_scale(each, self.spread, self.center, stretch, farthest, out)
            if where >= 0:
                raise ValueError(NOT_FINITE.format(rows.flat[where], where % d))
            return values
        starts, stops, indices, given = row.packed().arrays
        with np.errstate(over="ignore"):
            values = given / self.spread[indices]
        finite = np.isfinite(values)
        if farthest == math.inf and not finite.all():  # else it counts as farthest, as all far ones do
            where = int(np.flatnonzero(~finite)[0])
            raise ValueError(NOT_FINITE.format(given[where], indices[where]))
        if farthest < math.inf:
            values = np.minimum(np.maximum(values, -farthest), farthest)
        made = SparseRows(Rows(starts, stops, indices, values), row.features)
        return made if values.all() else rows_of(made.toarray())  # a sparse row holds no zero


def fixed_by(rows: list[Any]) -> ColumnScale:
    """Return the scale of at least one clean object; it does not depend on their order, nor does its last bit."""
    objects = stacked(rows)
    return ColumnScale(root_mean_squares(objects)) if isinstance(objects, SparseRows) else middle(objects)


def of_ranges(ranges: tuple[tuple[float, float], ...]) -> ColumnScale:
    """Return the scale on which each range goes from -HALF to HALF."""
    low, high = np.array(ranges).T
    return ColumnScale((high / 2 - low / 2) / HALF, low / 2 + high / 2)


def restored_scale(state: Any) -> ColumnScale:
    """Return the scale of a `ColumnScale.state`, or raise a ValueError if it is not one."""
    rows = restored_rows("scale", state)
    if rows not in (1, 2, 3):
        raise ValueError(f"scale must have 1 to 3 rows, got {rows}")
    restored_finite("scale", state, (rows, state.shape[-1]))
    return ColumnScale(*state.copy())


def stacked(rows: list[Any]) -> Any:
    """Return the objects as one array (k, d), or as sparse rows."""
    if not isinstance(rows[0], SparseRows):
        return np.array(rows)
    entries = [row.packed().arrays for row in rows]
    stops = np.cumsum([len(one.indices) for one in entries])
    indices, values = (np.concatenate(parts) for parts in zip(*[(e.indices, e.values) for e in entries], strict=True))
    return SparseRows(Rows(np.append(0, stops)[:-1], stops, indices, values), rows[0].features)


def middle(X: Floats) -> ColumnScale:
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
        stretch = deviations(np.arcsinh(np.clip(columns / spread, -LARGEST_FLOAT, LARGEST_FLOAT)))
    stretch[~(stretch > 0)] = 1.0
    return ColumnScale(spread, center, stretch)


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


FIRST = 30  # measured: see the class
LARGEST_FLOAT = float(np.finfo(np.float64).max)
FARTHEST = 10.0  # deviations from the centre, where the first examples teach


def restored_objects(rows: Any) -> list[Any]:
    """Return the objects of a state, which `stacked` has put together; none for None."""
    if rows is None:
        return []
    if not isinstance(rows, SparseRows):
        restored_finite("rows", rows, (restored_rows("rows", rows), rows.shape[-1]))
    return [rows[i] for i in range(len(rows))]


def checked_first(name: str, first: Any, ranges: Any) -> int | None:
    """Return how many first examples fix the scale; None where ranges do."""
    if ranges is None:
        return integer(name, FIRST if first is None else first, 2)
    if first is not None:
        raise ValueError(f"{name} must not be given with ranges, which fix the scale, got {first!r}")
    return None


def checked_ranges(name: str, ranges: Any) -> tuple[tuple[float, float], ...]:
    """Return pairs of numbers, or say what is wrong with them."""
    requirement = f"{name} must be pairs (low, high) of finite numbers, low < high, one for each column, got {ranges!r}"
    if isinstance(ranges, str | bytes) or not isinstance(ranges, Iterable):
        raise TypeError(requirement)
    try:
        clean = tuple((number("low", low), number("high", high)) for low, high in ranges)
    except (TypeError, ValueError) as error:
        raise type(error)(requirement) from None
    if not clean or not all(high / 2 - low / 2 > 0 for low, high in clean):
        raise ValueError(requirement)
    return clean


@component
class Scale(Parameters):
    """How a machine scales objects before it learns them, or answers about them: its parameter `scale`.

    Machines with kernels, neighbours or centroids measure distances: where one column counts in millions and another in
    thousandths, they see the first alone. Scaling by the mean and the standard deviation of all examples seen so far
    would void what is guaranteed: a new object would be scaled by the older ones, but they not by it. Here the scale is
    fixed before anything stands in the bag. Labels are not looked at.

    - `Scale(30)`, or `scale=30`: the first 30 objects give each column's centre and spread, and do nothing else. They
      belong to no bag, so all later ones are treated alike, and every guarantee holds. Until then nothing is known:
      intervals are [0, 1], and p-values are uniform random numbers.
    - `Scale(30, teach=True)`: these examples teach the machine as well, and still stand in no bag: predictors count the
      later ones only, a `Mixture` and a `Member` of the machine too. Until then the bag holds all examples and the new
      one, and the scale is that of all their objects, the new one's included. It treats them alike, but is another for
      each question, so the machine is made anew for each: cheap while there are few. From then on the first 30 are
      given: scale and machine are functions of them and of the bag, in which every example, the new one included, is
      treated alike. Given the bag without its order, no earlier answer says which of its examples came last, so
      conformal p-values of successive steps stay independent. Such a machine forgets nothing.
    - `Scale(ranges=[(low, high), ...])`: each column has a declared range, as of an instrument. No example is spent. A
      column becomes one from -1.73 to 1.73: variance 1 if it is uniform. Values outside are allowed.

    Centre and spread are the median and the distance of the quartiles, that of a Gaussian being its deviation; then
    comes asinh, divided so that the column varies by 1. Values far out move no scale, and are drawn near. A column that
    is constant over the first examples is only centred. Sparse objects keep their zeros: by the first examples columns
    are divided by their root mean square, without centring; with ranges they become dense. Where the first examples
    teach, a value beyond 10 deviations counts as 10: a column that was constant at first, or one that drifts away, does
    not drown all others.

    In an inductive predictor the first training examples fix the scale, and are then learned as well: training examples
    calibrate nothing, so none needs to be spent. Its scorer knows nothing before `first` examples have trained it,
    unless they teach. In a `SlidingWindow` the scale stays; a restart that keeps nothing fixes it anew.

    How many? Twenty to fifty: fewer fix a scale badly, and more are spent without one.

    A machine with a scale has besides: `fixed`, which is None until the scale is fixed, and has `center`, `spread` and
    `stretch` of each column then; `learned`, the number of all examples, where `n` is that of those held; and `aside`,
    how many of these were first and stand in no bag.

    Parameters
    ----------
    first : int >= 2, default 30
        Number of examples that fix the scale. Not with `ranges`.
    ranges : sequence of (low, high), optional
        Finite numbers, low < high, one pair for each column.
    teach : bool, default False
        Whether the first examples teach the machine, too: a `Bank` or a `KernelRidge`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. By the machine: an object does not stay finite when scaled, or the first lie
        too far apart.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF("auto"), C=10, classes=["no", "yes"], scale=4)
    >>> model = venn.TransductiveVennAbers(machine)
    >>> for x, y in [([0.1, 1e6], "no"), ([0.3, 3e6], "yes"), ([0.2, 4e6], "no"), ([0.2, 2e6], "yes")]:
    ...     model.learn_one(x, y)
    >>> machine.n, machine.learned, machine.fixed.center
    (0, 4, array([2.0e-01, 2.5e+06]))
    >>> model.predict_one([0.1, 1e6])
    ClassIntervals('no': [0.000, 1.000])
    >>> Scale(ranges=[(0, 1), (0, 1e6)])
    Scale(ranges=((0.0, 1.0), (0.0, 1000000.0)))
    """

    first: int | None = param(checked_first, own(attrgetter("ranges")), default=None)
    ranges: Any = param(optional, checked_ranges, default=None)
    teach: bool = param(flag, default=False, unsaid=not_)


#: What a machine takes as its `scale`: an integer is the number of first examples, True the usual one.
ScaleLike: TypeAlias = Scale | int | None


def checked_scale(name: str, scale: Any, machine: Any = None) -> Scale | Literal[False] | None:
    """Return the parameter `scale` of a machine, or say what is wrong with it."""
    if isinstance(scale, TRUTH):
        return Scale() if scale else False
    made = scale if isinstance(scale, Scale) or scale is None else Scale(integer(name, scale, 2))
    if made is not None and made.teach and machine is not None and not machine.teaches:
        raise ValueError(f"{name} must not teach a {type(machine).__name__}, got {scale!r}")
    return made


def restored_placing(name: str, state: Any, placing: Any) -> Any:
    """Return the state of a `Placing`, or None where there is none."""
    if (state is None) != (placing is None):
        raise ValueError(f"{name} must be {'None' if placing is None else f'that of {placing.scale!r}'}, got {state!r}")
    return state


class Placing:
    """Puts objects on the scale of a machine: collects the first objects, fixes the scale by them, then applies it.

    Attributes
    ----------
    now : ColumnScale or None
        None as long as nothing is known: all objects count as equal.
    open : bool
        Whether first objects are still to fix it.
    learns : bool
        Whether the machine learns the first examples as well.
    """

    def __init__(self, scale: Scale, space: LabelSpace) -> None:
        self.scale = scale
        self.space = space
        self.now: ColumnScale | None = None if scale.ranges is None else of_ranges(scale.ranges)
        self.open = scale.ranges is None
        self.learns = scale.teach
        self.rows: list[Any] = []  # the first objects, until they fix the scale
        self.labels: list[Label] = []  # theirs, where they are learned as well

    @property
    def changes(self) -> bool:
        """Whether the scale is another for each question: that of all objects so far and the new one."""
        return self.open and self.scale.teach

    @property
    def spent(self) -> int:
        """Number of examples seen and not, or not yet, learned."""
        if self.open:
            return 0 if self.scale.teach else len(self.rows)
        return 0 if self.learns else self.scale.first or 0

    def in_form(self, x: Any) -> Any:
        """Return `x` in the form of earlier objects, dense or sparse, or say what is wrong with it."""
        if self.now is not None:
            return in_form(x, len(self.now.spread), self.now.center is None)
        if self.rows:
            return in_form(x, self.rows[0].shape[-1], isinstance(self.rows[0], SparseRows))
        return in_form(x, None, is_sparse(x))

    def place(self, x: Any) -> Any:
        """Return `x` on the scale as it is now."""
        row = self.in_form(x)
        if self.now is not None:
            return self.now.place(row, self._farthest)
        nothing = np.zeros(row.shape[-1])
        return rows_of(nothing[None]) if isinstance(row, SparseRows) else nothing

    @property
    def _farthest(self) -> float:
        """Number of deviations at which a farther value is cut off."""
        return FARTHEST if self.scale.teach else math.inf

    def check(self, x: Any) -> None:
        """Raise where `x` would spoil the scale that it has a part in."""
        if self.open and (self.scale.teach or len(self.rows) + 1 == self.scale.first):
            row = self.in_form(x)
            fixed_by([*self.rows, row]).place(row, self._farthest)

    def advance(self, rows: list[Any], labels: list[Label], now: ColumnScale | None) -> None:
        """Go on with these first objects, and this scale: it is fixed if they are enough."""
        self.open, self.now = len(rows) < (self.scale.first or 0), now
        self.rows, self.labels = (rows, labels) if self.open else ([], [])

    @property
    def state(self) -> dict[str, Any]:
        """The scale that examples have fixed, or the first of them, which will fix it."""
        return {
            "scale": None if self.open or self.now is None else self.now.state,
            "rows": stacked(self.rows) if self.rows else None,
            "codes": self.space.encode_many(self.labels),
            "learns": self.learns,
        }

    def restore(self, state: Any) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        space = self.space
        checked_keys("placing", state, ("scale", "rows", "codes", "learns"))
        self.learns, self.rows = restored_bool("learns", state["learns"]), restored_objects(state["rows"])
        codes = restored_array("codes", state["codes"], (len(self.rows) if self.learns else 0,), space.kept)
        if not space.holds(codes):
            raise ValueError(f"codes must be those of {space.told}")
        self.labels = [space.decode(code) for code in codes]
        if self.scale.first is not None:
            self.open = state["scale"] is None
            self.now = None if self.open else restored_scale(state["scale"])


@base
class OnScale(KeptMachine):
    """Base of machines that keep objects: every object enters by `_clean`, where it is scaled if they have a scale."""

    teaches: ClassVar[bool] = False  #: whether a `Scale` may teach
    #: Whether a `Query` may come in place of an object. What users write in subclasses of ours gets the object.
    questioned: ClassVar[bool] = True
    scale: Any = param(checked_scale, own(lambda machine: machine), default=None, kw_only=True)
    placing: Placing | None = state(
        restored_placing, own(attrgetter("placing")),
        start=own(lambda m: Placing(m.scale, space_of(m)) if m.scale else None), within=True,
    )  # fmt: skip

    def __init_subclass__(cls, **named: Any) -> None:
        cls.questioned = cls.__module__.startswith("venn.")
        super().__init_subclass__(**named)

    def derive(self) -> None:
        """Number the classes, and find the scale again that holds now."""
        self._codes = {label: code for code, label in enumerate(self.classes)}
        self.aside, placing = 0, self.placing  # the first examples that teach only stand in no bag
        if placing is not None and placing.scale.teach:
            if placing.rows:
                placing.now = fixed_by(placing.rows)
            self.aside = 0 if placing.open else placing.scale.first or 0

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of examples in the machine."""
        return self._examples.n

    @property
    def fixed(self) -> ColumnScale | None:
        """The scale once it is fixed: `center`, `spread` and `stretch` of each column."""
        return None if self.placing is None or self.placing.open else self.placing.now

    @property
    def learned(self) -> int:
        """Number of examples ever learned, those that only fix the scale too: a window counts what it forgets."""
        return self.n if self.placing is None else self.n + self.placing.spent

    def expect_training(self) -> None:
        """Learn the first examples too, once they have fixed the scale.

        For inductive predictors, whose training examples are in no bag. Called before anything is learned.

        Raises
        ------
        RuntimeError
            Something is learned already.
        """
        if self.learned:
            raise RuntimeError(f"expect_training must come before the first example, got {self.learned} learned")
        if self.placing is not None:
            self.placing.learns = True

    # ------------------------------------------------------------------ objects

    @property
    @abstractmethod
    def _features(self) -> int | None:
        """Number of features; None before the first object."""

    @abstractmethod
    def _kept(self, x: Any) -> Any:
        """Return an object as it is kept here, or say what is wrong with it."""

    def _clean(self, x: Any) -> Any:
        """Return an object, on the scale, as it is kept here, or say what is wrong with it; of a question once."""
        if type(x) is Query:
            # Where one of these has changed, the clean object may be another.
            now = id(self), self.n, self._features, id(self.placing and self.placing.now)
            if now not in x.said:
                x.said[now] = self._clean(x.x)
            return x.said[now]
        return self._kept(x if self.placing is None else self.placing.place(x))

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        self._clean(x)
        if self.placing is not None:
            self.placing.check(object_of(x))
        self._check_label(y)

    def _check_label(self, y: Label) -> None:
        """Raise what is wrong with a label."""
        code_of(y, self._codes)

    def answer(self, x: Any, weight: float = 1.0) -> Any:
        """Return the answer about an object in which all examples stand, those that only teach too."""
        if self.placing is not None and self.placing.changes:
            x = object_of(x)
            return self._made_for(self.placing, self.placing.in_form(x)).answer(x, weight)
        return self._answered(self._clean(x), weight)

    # ---------------------------------------------------------- the first objects

    def _begun(self, x: Any, y: Label, weight: float = 1.0) -> bool:
        """Take in one of the first examples, if the scale is still to be fixed; return whether it was one."""
        placing = self.placing
        if placing is None or not placing.open:
            return False
        if placing.learns and weight != 1:
            raise TypeError(f"weight must be 1 while examples that are learned fix the scale, got {weight!r}")
        row, twin = placing.in_form(object_of(x)), None
        rows, labels = [*placing.rows, row], [*placing.labels, y] if placing.learns else []
        last = len(rows) == placing.scale.first
        now = fixed_by(rows) if last or placing.changes else None
        if placing.changes:
            twin = self._made_for(placing, row)
            twin.learn_one(row, y)
        else:
            self._answered(self._clean(row), weight)  # raises if the example could not be learned
            if now is not None and placing.learns:
                twin = self._taught(now, rows, labels)
        self.forget()
        if twin is not None:  # it has refused nothing, and takes the place of this machine
            vars(self).update({name: v for name, v in vars(twin).items() if name not in ("placing", "_turn")})
        placing.advance(rows, labels, now)
        self.aside = len(rows) if last and placing.scale.teach else 0
        return True

    def _made_for(self, placing: Placing, row: Any) -> Any:
        """Return a machine that has learned all examples so far, on the scale of their objects and a new one."""
        key = row.tobytes()
        if self._made is None or self._made[0] != key:
            made = self._taught(fixed_by([*placing.rows, row]), placing.rows, placing.labels)
            self.forget()
            self._made = key, made
        return self._made[1]

    def _taught(self, scale: ColumnScale, rows: list[Any], labels: list[Label]) -> Any:
        """Return a machine with the same parameters that has learned these examples, on a fixed scale."""
        made: Any = self.fresh()
        made.placing.now, made.placing.open = scale, False
        for row, label in zip(rows, labels, strict=True):
            made.learn_one(row, label)
        return made

    def _leaving(self, i: Any) -> int:
        """Return the place of an example to be forgotten, or say what is wrong with it."""
        if self.placing is not None and self.placing.scale.teach:
            raise TypeError(f"scale must not teach where examples are forgotten, got {self.scale!r}")
        return checked_place(i, self.n)

    def forget(self) -> None:
        """Drop the answer that is remembered; those who hold it can no longer read it."""
        super().forget()
        if self._made is not None:
            self._made[1].forget()
            self._made = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_made": None}


def scale_of(machine: Any) -> Scale | None:
    """Return the scale of a machine, which may be a user's own; None if it has none."""
    scale = getattr(machine, "scale", None)
    return scale if isinstance(scale, Scale) else None
