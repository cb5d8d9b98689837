"""The objects of a machine by place, dense or sparse, and their kernel; machines that keep objects so."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from operator import attrgetter, methodcaller
from typing import Any, TypeAlias

import numpy as np

from venn._compiled.rows import Rows
from venn.labels import checked_labels
from venn.machines.base import ExampleTable
from venn.machines.kernels import Kernel, checked_kernel, needs_scale
from venn.machines.machine import checked_class_weights, checked_weight, code_of, doubled, grown
from venn.machines.objects import in_form
from venn.machines.scale import OnScale
from venn.machines.sparse import SparseRows, is_sparse
from venn.parameters import positive
from venn.prediction import Floats, Integers, Label
from venn.saved import base, checked_keys, own, param, restored_finite, state
from venn.turns import asks

Content: TypeAlias = Floats | SparseRows  #: one object in the form in which it is kept; `tobytes()` is its key
NONE: Floats = np.empty((0, 0))
NEARER = 1 / 16  # another reference is worth its cost if an object's squared length falls to this share
LARGEST_KERNEL = 1e100  # of kernel values: products of a few of them stay finite, and their inverses above 0
ENOUGH, FAR = 30, 100.0  # objects whose columns are compared, and how many times as large one spread may be as another


class ScaleWarning(UserWarning):
    """The columns of a machine's objects have spreads so far apart that distances hardly depend on some of them.

    It names two such columns. Scale them beforehand, or give the machine `scale=True`; a `Forecaster` scales by itself.
    Where the columns are meant to be so, `scale=False` silences it.

    Examples
    --------
    >>> import warnings, venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ScaleWarning)
    ...     for i in range(40):
    ...         machine.learn_one([i % 7, 1e6 * (i % 5)], "yes" if i % 2 else "no")
    """


def far_apart(columns: Floats) -> tuple[int, int, Floats] | None:
    """Return the columns of largest and of smallest spread where they differ too much, and all spreads; else None.

    A rare indicator has a small spread but the range 1: both spread and range must differ. Constant columns do not
    count.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        spreads: Floats = columns.std(axis=1)
        ranges = np.ptp(columns, axis=1)
    varies = np.flatnonzero((ranges > 0) & (spreads > 0))
    if varies.size < 2:
        return None
    wide, narrow = varies[spreads[varies].argmax()], varies[spreads[varies].argmin()]
    far = spreads[wide] > FAR * spreads[narrow] and ranges[wide] > FAR * ranges[narrow]
    return (int(wide), int(narrow), spreads) if far else None


class DenseObjects:
    """Objects by feature: the columns of a matrix."""

    def __init__(self, features: int) -> None:
        self.features = features
        self.columns = np.zeros((features, 0))

    def make_room(self, n: int) -> None:
        """Make room for n objects; capacities double."""
        room = self.columns.shape[1]
        if n > room:
            self.columns = grown(self.columns, self.features, doubled(room, n))

    def put(self, place: int, x: Floats) -> None:
        """Set the object at a place."""
        self.make_room(place + 1)
        self.columns[:, place] = x

    def keep(self, place: int) -> None:
        """Hold the object at a place: nothing to do."""

    def at(self, place: int) -> Floats:
        """Return a copy of the object at a place: with one feature a column is contiguous, and would be shared."""
        return self.columns[:, place].copy()

    def of(self, places: Integers) -> Floats:
        """Return the features by column of the objects at some places."""
        return self.columns[:, places]

    def remove(self, place: int, n: int) -> None:
        """Remove one of n objects; later ones move up."""
        self.columns[:, place : n - 1] = self.columns[:, place + 1 : n].copy()

    def insert(self, place: int, n: int, x: Floats) -> None:
        """Put back an object among n others, where it was."""
        self.columns[:, place + 1 : n + 1] = self.columns[:, place:n].copy()
        self.columns[:, place] = x

    def row(self, kernel: Kernel, n: int, x: Floats, out: Floats, reference: Floats | None = None) -> None:
        """Set `out[:n]` to the kernel of `x` with the first n objects, all less a reference if there is one."""
        if reference is None:
            kernel.row(self.columns, n, x, out)
        else:
            kernel.row(self.columns[:, :n] - reference[:, None], n, x - reference, out)

    def itself(self, kernel: Kernel, x: Floats, out: Floats, reference: Floats | None = None) -> None:
        """Set `out[0]` to K(x, x), of `x` less a reference if there is one."""
        x = x if reference is None else x - reference
        kernel.row(x[:, None], 1, x, out)

    def held(self, n: int) -> Floats:
        """Return the first n objects."""
        return self.columns[:, :n]

    def hold(self, columns: Floats) -> None:
        """Take over what `held` returned."""
        self.columns = columns.copy()


class SparsePool:
    """Sparse rows that grow. New entries go where there is room; entries of removed rows stay for a while."""

    def __init__(self, features: int) -> None:
        self.features = features
        self._starts, self._stops = np.zeros((2, 64), np.int64)
        self._indices, self._values = np.zeros(64, np.int32), np.zeros(64)
        self._end = 0  # end of the entries of rows that are held

    def put(self, place: int, rows: SparseRows) -> None:
        """Set the rows from a place on. Rows put before and not held are lost."""
        starts, stops, indices, values = rows.packed().arrays
        last, end = place + len(starts), self._end + len(indices)
        if last > len(self._starts):
            room = doubled(len(self._starts), last)
            self._starts, self._stops = grown(self._starts, room), grown(self._stops, room)
        if end > len(self._indices):
            room = doubled(len(self._indices), end)
            self._indices, self._values = grown(self._indices, room), grown(self._values, room)
        self._indices[self._end : end], self._values[self._end : end] = indices, values
        self._starts[place:last], self._stops[place:last] = starts + self._end, stops + self._end

    def keep(self, place: int) -> None:
        """Hold the rows up to that at a place."""
        self._end = max(self._end, int(self._stops[place]))

    def held(self, n: int) -> SparseRows:
        """Return the first n rows; the entries are shared."""
        return SparseRows(Rows(self._starts[:n], self._stops[:n], self._indices, self._values), self.features)

    def hold(self, rows: SparseRows) -> None:
        """Take over what `held` returned."""
        self.put(0, rows)
        if len(rows):
            self.keep(len(rows) - 1)


class SparseObjects(SparsePool):
    """Objects by their nonzeros."""

    columns = NONE

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self._gone = 0  # entries of removed objects
        self._work = np.zeros(features)  # zeros between two calls

    def at(self, place: int) -> SparseRows:
        """Return the object at a place."""
        return self.held(place + 1)[place].packed()

    def of(self, places: Integers) -> Floats:
        """Return no features: readers of whole columns do not use sparse ones."""
        return NONE

    def remove(self, place: int, n: int) -> None:
        """Remove one of n objects; later ones move up."""
        self._gone += int(self._stops[place] - self._starts[place])
        for ends in (self._starts, self._stops):
            ends[place : n - 1] = ends[place + 1 : n].copy()
        self._tidy(n - 1)

    def insert(self, place: int, n: int, x: SparseRows) -> None:
        """Put back an object among n others, where it was."""
        self.put(n, x)  # makes room
        for ends in (self._starts, self._stops):
            ends[place : n + 1] = np.append(ends[n], ends[place:n])
        self.keep(place)

    def _tidy(self, n: int) -> None:
        """Close the gaps between the entries of the n objects, once removed entries outnumber them."""
        if self._gone > max(1024, self._end - self._gone):
            rows = self.held(n).packed()
            self._end = self._gone = 0
            self.hold(rows)

    def row(self, kernel: Any, n: int, x: SparseRows, out: Floats, reference: None = None) -> None:
        """Set `out[:n]` to the kernel of `x` with the first n objects; sparse ones have no reference."""
        kernel.sparse_row(self.held(n), n, x, self._work, out)

    def itself(self, kernel: Any, x: SparseRows, out: Floats, reference: None = None) -> None:
        """Set `out[0]` to K(x, x)."""
        kernel.sparse_row(x, 1, x, self._work, out)


def check_row(kernel: Kernel, row: Floats, x: Content) -> None:
    """Raise where the kernel of `x` is not finite, or so large that products of its values may not be."""
    if not np.abs(row).max(initial=0.0) <= LARGEST_KERNEL:  # NaN is not
        raise ValueError(
            f"x must have finite kernel values, of at most {LARGEST_KERNEL:g}, got {x} which has not by {kernel!r}"
        )


class ObjectStore:
    """The objects of a machine by place, from 0 on, in one form, and their kernel.

    The first object decides between dense and sparse; later ones are converted, so that equal objects are one object in
    whatever form they come. An object put at the place after the last stays until another is put there, unless it is
    kept.

    Parameters
    ----------
    kernel : Kernel
    scaled : bool
        Whether objects come on a scale, or are meant to be as they are, see `Scale`.

    Attributes
    ----------
    n : int
        Number of objects kept.
    features : int or None
        Number of features of every object; None where none is kept, and any number may come.
    """

    def __init__(self, kernel: Any, scaled: bool = False) -> None:
        self.kernel = kernel
        self.n = 0
        self.features: int | None = None
        self.scaled = scaled
        self._looked = False  # whether their spreads were compared
        self._objects: Any = DenseObjects(0)

    @property
    def columns(self) -> Floats:
        """(d, >= n) features by column; empty where objects are sparse."""
        return self._objects.columns

    def clean(self, x: Any) -> Content:
        """Return `x` as it would be kept here, or say what is wrong with it."""
        if not self.scaled and needs_scale(self.kernel):
            raise ValueError(
                f"gamma='scale' needs columns of a known variance, got {self.kernel!r} in a machine that does not "
                "scale: give the machine scale=True, or take gamma='auto', which is 1 / d"
            )
        if is_sparse(x) and not hasattr(self.kernel, "sparse_row"):
            raise TypeError(
                f"kernel must have a method 'sparse_row' for sparse objects, got {self.kernel!r}: pass x.toarray()[0]"
            )
        return in_form(x, self.features, is_sparse(x) if self.features is None else self._sparse)

    @property
    def _sparse(self) -> bool:
        return isinstance(self._objects, SparseObjects)

    def _for(self, x: Content) -> Any:
        """Return where the first object would be kept."""
        kind, features = SparseObjects if isinstance(x, SparseRows) else DenseObjects, x.shape[-1]
        known = type(self._objects) is kind and self._objects.features == features
        return self._objects if known else kind(features)

    def make_room(self, n: int) -> None:
        """Make room for n dense objects; capacities double."""
        self._objects.make_room(n)

    def put(self, place: int, x: Content) -> None:
        """Set the object at a place: the last one, or the one after it."""
        if self.features is None:
            self._objects = self._for(x)
        self._objects.put(place, x)

    def keep(self, place: int) -> None:
        """Hold the object at a place."""
        self._objects.keep(place)
        self.features = self._objects.features
        self.n = max(self.n, place + 1)

    def clear(self) -> None:
        """Empty the store: objects of another kind and length may come."""
        self.n, self.features = 0, None
        self._objects = DenseObjects(0)

    def key(self, place: int) -> bytes:
        """Return the content of an object as bytes."""
        return self._objects.at(place).tobytes()

    def of(self, places: Integers) -> Floats:
        """Return the features by column of the objects at some places; empty where they are sparse."""
        return self._objects.of(places)

    def remove(self, place: int, n: int) -> Content:
        """Remove one of n objects, and return it; later ones move up."""
        x = self.at(place)
        self._objects.remove(place, n)
        self.n = n - 1
        return x

    def insert(self, place: int, n: int, x: Content) -> None:
        """Put back an object among n others, where it was."""
        self._objects.insert(place, n, x)
        self.n = n + 1

    def at(self, place: int) -> Content:
        """Return the object at a place."""
        return self._objects.at(place)

    def row(
        self, n: int, x: Content, out: Floats, reference: Floats | None = None, kernel: Kernel | None = None
    ) -> None:
        """Set `out[:n]` to the kernel, or another one, of `x` with the first n objects, all less a reference."""
        self._objects.row(self.kernel if kernel is None else kernel, n, x, out, reference)

    def row_of(self, place: int, n: int, out: Floats, reference: Floats | None = None) -> None:
        """Set `out[:n]` to the kernel of the object at a place with the first n, all less a reference."""
        self.row(n, self.at(place), out, reference)

    def row_with(self, n: int, x: Content, reference: Floats | None = None, kernel: Kernel | None = None) -> Floats:
        """Return the (n + 1,) kernel of `x` with the first n objects and itself, or say that it is not finite.

        All less a reference, and by another kernel, where these are given.
        """
        kernel = self.kernel if kernel is None else kernel
        row = np.empty(n + 1)
        if n:
            self.row(n, x, row, reference, kernel)
        (self._objects if n else self._for(x)).itself(kernel, x, row[n:], reference)
        check_row(kernel, row, x)
        return row

    def nearer(self, n: int, x: Content, length: float, kernel: Kernel | None = None) -> Floats | None:
        """Return one of the first n objects that a new `x` is much nearer to than to the present reference.

        It is the one next to the median of each column, so that few far objects do not matter; `x` itself where there
        is no other. `length` is K(x, x) by the present reference. None where there is no such object, where objects are
        sparse, and for a kernel to which a machine with a bias is not indifferent.
        """
        kernel = self.kernel if kernel is None else kernel
        if isinstance(x, SparseRows) or not getattr(kernel, "of_distances", False):
            return None
        least = np.empty(1)
        self._objects.itself(kernel, x, least, x)
        if least[0] > NEARER * length:
            return None
        objects = np.column_stack([self.columns[:, :n], x])
        with np.errstate(over="ignore"):
            away = ((objects - np.median(objects, axis=1)[:, None]) ** 2).sum(axis=0)
        reference: Floats = objects[:, away[:n].argmin() if n else 0].copy()
        self._objects.itself(kernel, x, least, reference)
        return reference if least[0] <= NEARER * length else None

    def held(self, n: int) -> Content:
        """Return the first n objects: dense ones by column, sparse ones as rows."""
        return self._objects.held(n)

    def look(self, n: int) -> None:
        """Compare the spreads of the columns once, when there are enough objects; warn where they are far apart.

        Called before one more is learned: where warnings are errors, it is not.
        """
        if n < ENOUGH or self._looked:
            return
        self._looked = True
        if self.scaled or self._sparse or not getattr(self.kernel, "of_distances", False):
            return
        found = far_apart(self.columns[:, :ENOUGH])
        if found is not None:
            wide, narrow, spreads = found
            warnings.warn(
                f"column {wide} has a standard deviation of {spreads[wide]:.3g} over the first {ENOUGH} objects, and "
                f"column {narrow} one of {spreads[narrow]:.3g}: nothing scales, so distances hardly depend on the "
                "latter. Scale the columns beforehand, or give the machine scale=True (--scale on the command line, "
                "where the predictor takes it); a Forecaster scales by itself",
                ScaleWarning,
                stacklevel=3,
            )

    def hold(self, objects: Content) -> None:
        """In an empty store, take over what `held` returned, with at least one object."""
        sparse = isinstance(objects, SparseRows)
        self.n = objects.shape[0 if sparse else 1]
        self._looked = self.n > ENOUGH
        self.features = objects.shape[1] if sparse else objects.shape[0]
        self._objects = (SparseObjects if sparse else DenseObjects)(self.features)
        self._objects.hold(objects)

    @property
    def state(self) -> dict[str, Any]:
        """The objects."""
        return {"objects": self.held(self.n) if self.n else NONE}

    def restore(self, state: Any) -> None:
        """Take over the objects of a state, or say what is wrong with them."""
        checked_keys("store", state, ("objects",))
        objects = state["objects"]
        if not isinstance(objects, SparseRows):
            if np.ndim(objects) != 2:
                raise ValueError(f"objects must be columns of numbers, got {objects!r}")
            restored_finite("objects", objects, objects.shape)
        self.clear()
        if objects.shape[0 if isinstance(objects, SparseRows) else 1]:
            self.hold(objects)

    def trimmed(self, n: int, kernel: Kernel | None = None) -> ObjectStore:
        """Return a copy that holds the first n objects without spare room, by default with the same kernel."""
        copy = ObjectStore(self.kernel if kernel is None else kernel, self.scaled)
        if n:
            copy.hold(self.held(n))
        return copy


@base
class Storing(OnScale):
    """Base of machines that keep objects in a store."""

    _store: Any = state(start=own(methodcaller("_new_store")), within=True)
    _examples: Any = state(start=own(methodcaller("_new_examples")), within=True)

    def _new_store(self) -> ObjectStore:
        return ObjectStore(self.kernel, self.scale is not None)  # type: ignore[attr-defined]

    def _new_examples(self) -> ExampleTable:
        return ExampleTable(self._store, len(self.classes))

    @property
    def _features(self) -> int | None:
        return self._store.features

    @property
    def _columns(self) -> Floats:
        return self._store.columns

    def _kept(self, x: Any) -> Content:
        return self._store.clean(x)


@base
class Remembering(Storing):
    """Base of machines that solve for an object once, and remember the answer."""

    @asks
    def hypotheses(self, x: Any, weight: float = 1.0) -> Any:
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Solved once and remembered until a label is learned or another object asked about; asking changes no later
        answer.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        weight : float > 0, default 1
            Of the new example; it is multiplied by that of its supposed class.

        Returns
        -------
        BaseHypotheses
            It holds this machine's arrays: read it before the next question.
        """
        return self.answer(x, positive("weight", weight))

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machines as they are, without `x`; (1,) the forecast of a number.

        Least-squares machines and ridge regression give 0 before the first example.
        """
        x = self._clean(x)
        key, asked = x.tobytes(), self._asked
        return asked.test_scores.copy() if asked is not None and asked.key == key else self._scores_now(x, key)

    def _scores_now(self, x: Content, key: bytes) -> Floats:
        """Return the scores of a clean object that nobody has just asked about."""
        raise NotImplementedError


def all_one(value: Any) -> bool:
    """Whether a number, or all of an array, is 1: then `repr` leaves it out."""
    return bool(np.all(value == 1))


@base
class StoreWeighing(Remembering):
    """Base of classifiers that keep objects in a store, and learn examples of any weight."""

    threads = 1

    kernel: Kernel = param(checked_kernel)
    C: float = param(positive)
    classes: Any = param(checked_labels, 2)
    class_weights: Any = param(checked_class_weights, own(attrgetter("classes")), default=None, unsaid=all_one)

    @abstractmethod
    def _learn(self, answer: Any, label: int, weight: float) -> None:
        """Learn the example that an answer is about, of this class and weight."""

    def learn_one(self, x: Any, y: Label, weight: float = 1.0) -> None:
        """Learn one example: the solution found for its label becomes the machine.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        y : one of `classes`
        weight : float >= 0, default 1
            The example counts as that many equal ones; with weight 0 nothing is learned.
        """
        label, weight = code_of(y, self._codes), checked_weight(weight)
        if weight == 0:
            self._clean(x)
        elif not self._begun(x, y, weight):
            self._store.look(self._store.n)
            self._learn(self.answer(x, weight), label, weight)
