"""Predictions for many objects in arrays, with a class of block for each kind of prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from json import JSONEncoder
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from venn.parameters import spelled
from venn.prediction import (
    OF_SETS,
    REALISED_ROW,
    SUM,
    TIE,
    ClassIntervals,
    Floats,
    Forecast,
    Integers,
    Label,
    MixedForecast,
    Multiprobability,
    PredictionSet,
    Rule,
    Says,
    SaysPairs,
    SaysProbabilities,
    SaysRows,
    SaysSets,
    significance,
)
from venn.saved import arguments_of

#: Predictions that have an array, a row of their block, and beside it only what all of the block have.
OF_A_ROW: tuple[type[Any], ...] = (Forecast, MixedForecast, ClassIntervals, PredictionSet)
dumps = JSONEncoder(allow_nan=False).encode


class Many(Says[Floats]):
    """Base of all blocks: an array with a row for each object, the classes, and what a prediction says of each row.

    Parameters
    ----------
    rows : (n, ...) array
        Kept without a copy, and read-only from now on.
    classes : sequence of c labels
    """

    one: ClassVar[type[Any]]  #: class of a prediction, made from a row and the classes
    arrays: ClassVar[tuple[str, ...]] = ("rows",)  #: parameters of the constructor with a row for each object

    def __init__(self, rows: NDArray[Any], classes: Sequence[Label]) -> None:
        self.rows = rows.view()
        self.rows.setflags(write=False)
        vars(self)[self.numbers] = self.rows
        self.classes = tuple(classes)

    @property
    def guaranteed(self) -> str:
        """What is proved about each prediction."""
        return self.one.guaranteed

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Any:
        """Return the prediction for object i."""
        return self.one(self.rows[i], self.classes)

    def each(self) -> list[Any]:
        """Return the prediction for each object, as item i is; all are checked at once, which is faster.

        Examples
        --------
        >>> ManyForecasts(np.array([[0.25, 0.75], [0.5, 0.5]]), ("no", "yes")).each()
        [Forecast('yes': 0.750), Forecast('no': 0.500)]
        """
        rows = self.rows
        fine = self.one in OF_A_ROW and len(rows) and rows.dtype == np.float64
        # Written so that NaN fails: what may be refused, or divided by its sum, is made one by one.
        fine = fine and rows.min() >= 0 and rows.max() <= 1
        if fine and issubclass(self.one, Forecast):
            fine = np.abs(rows.sum(axis=-1) - 1).max() <= SUM / 2
        if not fine:
            return [self[i] for i in range(len(self))]
        found = [self[0]]
        beside = dict(vars(found[0]))
        for row in rows[1:]:
            one = object.__new__(self.one)
            own = row.copy()
            own.setflags(write=False)
            vars(one).update(beside)
            vars(one)[self.numbers] = own
            found.append(one)
        return found

    def of_rows(self, rows: Callable[[str], NDArray[Any]]) -> Self:
        """Return a block like this one; a function turns each of its arrays into the new one."""
        given: dict[str, Any] = {name: getattr(self, name) for name in arguments_of(type(self))}
        return type(self)(**given | {name: rows(name) for name in self.arrays if given[name] is not None})

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return one block of the rows of all, in order; at least one block, all like the first."""
        return blocks[0].of_rows(lambda name: np.concatenate([getattr(block, name) for block in blocks]))

    def taken(self, which: Integers) -> Self:
        """Return the predictions at some places, in their order."""
        return self.of_rows(lambda name: getattr(self, name)[which])

    def _first(self, values: Floats) -> Integers:
        return values.argmax(axis=-1)

    def _number(self, values: Any) -> Floats:
        return values

    def _own(self, values: Floats) -> Floats:
        return values[np.arange(len(self)), self.index]

    def _labels_at(self, codes: Integers) -> list[Label]:
        return [self.classes[k] for k in codes.tolist()]

    @property
    def labels(self) -> list[Label]:
        """The predicted classes."""
        return self._labels_at(self.index)

    def plain(self) -> list[dict[str, Any]]:
        """Return what `venn.prediction.plain` returns for each object's prediction, to the last bit, but faster.

        Examples
        --------
        >>> ManyForecasts(np.array([[0.25, 0.75]]), ("no", "yes")).plain()[0]["probabilities"]
        {'no': 0.25, 'yes': 0.75}
        """
        keys, spelt, columns = [], [spelled(label) for label in self.classes], list[Any]()
        for key, value in self._said.items():
            keys.append(key)
            if isinstance(value, str):
                columns.append([value] * len(self))
            elif isinstance(value, np.ndarray) and value.ndim > 1:
                columns.append([dict(zip(spelt, row, strict=True)) for row in value.tolist()])
            else:
                columns.append(value.tolist() if isinstance(value, np.ndarray) else value)
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def _said(self) -> dict[str, Any]:
        """What `plain` writes: labels or an array with a row for each object, or a text for all."""
        names = {name: "probabilities" if name == "proba" else name for name in self.says}
        return {key: self.labels if name == "label" else getattr(self, name) for name, key in names.items()}

    def json(self) -> list[str]:
        """Return the JSON of what `plain` returns for each object, to the byte as `json.dumps` writes it, but faster.

        Examples
        --------
        >>> ManyForecasts(np.array([[0.25, 0.75]]), ("no", "yes")).json()[0][:59]
        '{"label": "yes", "best": "yes", "lower": 0.75, "upper": 0.7'
        """
        if not len(self):
            return []
        said, spelt = self._said, [spelled(label) for label in self.classes]
        numbers = [value.reshape(len(self), -1) for value in said.values() if isinstance(value, np.ndarray)]
        table = np.concatenate(numbers, axis=1)
        if table.dtype != np.float64 or not np.isfinite(table).all() or len(set(spelt)) < len(spelt):
            return [dumps(one) for one in self.plain()]
        texts, place, width = _texts_of(table.ravel()), 0, table.shape[1]
        labels = {label: dumps(label) for label in self.classes}
        pieces, columns = [], list[Sequence[str]]()
        for key, value in said.items():
            if isinstance(value, str):
                piece = dumps(value).replace("%", "%%")
            elif isinstance(value, list):
                piece = "%s"
                columns.append([labels[label] for label in value])
            else:
                count, hole = value[0].size, "[%s, %s]" if value.ndim > 2 else "%s"
                columns += [texts[place + k :: width] for k in range(count)]
                place += count
                each = [f"{dumps(name)}: ".replace("%", "%%") + hole for name in spelt]
                piece = hole if value.ndim == 1 else f"{{{', '.join(each)}}}"
            pieces.append(f"{dumps(key)}: {piece}")
        template = f"{{{', '.join(pieces)}}}"
        return [template % row for row in zip(*columns, strict=True)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} objects, classes {list(self.classes)!r})"


def _texts_of(values: Floats) -> list[str]:
    """Return finite numbers as `json.dumps` writes them."""
    texts = msgspec.json.encode(values.tolist())[1:-1].decode().split(",")
    sizes = np.abs(values)
    for i in np.flatnonzero((sizes >= 1e16) | ((sizes < 1e-4) & (sizes > 0.0))).tolist():  # with an exponent
        texts[i] = repr(values.item(i))
    return texts


class ManyOfProbabilities(Many, SaysProbabilities[Floats]):
    """Base of blocks of predictions with probabilities."""

    @property
    def best(self) -> list[Label]:
        """The classes of the largest probabilities in `proba`; ties go to the first class.

        Only a rule of `ManyMultiprobabilities` may choose other `labels`: see `Multiprobability.best`.
        """
        return self._labels_at(self._first(self.proba))


def shares(labels: NDArray[Any], ratios: Floats) -> Floats:
    """Return the label distributions of categories whose examples are weighted by class.

    A hypothesis is false if its label cannot come, so its row may be anything. It is made the mean of the other rows,
    which changes neither the bounds nor the mean of all rows.

    Parameters
    ----------
    labels : (..., c, c) numbers >= 0
        Row j: examples of each class in the category of the new example, which itself counts as one of class j.
    ratios : (c,) float64 >= 0, some > 0
        Weight of an example of each class.
    """
    masses = labels * ratios
    possible = ratios > 0
    totals = masses.sum(axis=-1, keepdims=True)
    rows: Floats = masses / np.where(totals > 0, totals, 1.0)
    if not possible.all():
        true = rows[..., possible, :]
        mean = np.clip(true.mean(axis=-2), true.min(axis=-2), true.max(axis=-2))  # a mean of equals may differ
        rows[..., ~possible, :] = mean[..., None, :]
    return rows


class ManyMultiprobabilities(ManyOfProbabilities, SaysRows[Floats]):
    """Predictions for n objects by counts: many `Multiprobability` predictions, in arrays.

    With m the number of calibration examples in an object's category, row j of its multiprobability is
    (counts + 1{k = j}) / (m + 1), hence the interval of a class is [counts, counts + 1] / (m + 1). With ratios an
    example of class k, also the new one, counts as ratios[k] examples.

    Parameters
    ----------
    counts : (n, c) numbers >= 0
        Calibration examples of each class in the category of each object.
    classes : sequence of c labels
    rule : Rule
        Picks the predicted class.
    category_classes : (n,) int64, optional
        Class that the category of each object stands for, if categories stand for classes.
    guaranteed : str, optional
        The guarantee of each prediction; by default the rule's.
    ratios : (c,) float64 >= 0, some > 0, optional
        Weight of an example of each class; 1 by default.

    Examples
    --------
    >>> import venn
    >>> block = ManyMultiprobabilities(np.array([[0, 0], [1, 3]]), ("no", "yes"), venn.prediction.RowMean())
    >>> block.labels, block.lower, block.upper
    (['no', 'yes'], array([0. , 0.6]), array([1. , 0.8]))
    >>> block[1]
    Multiprobability('yes': [0.600, 0.800])
    """

    one: ClassVar[type[Any]] = Multiprobability
    numbers, arrays = "counts", ("counts", "category_classes")
    counts: NDArray[Any]

    def __init__(
        self,
        counts: NDArray[Any],
        classes: Sequence[Label],
        rule: Rule,
        category_classes: Integers | None = None,
        guaranteed: str | None = None,
        ratios: Floats | None = None,
    ) -> None:
        super().__init__(counts, classes)
        self.ratios = ratios
        self.rule = rule
        self.category_classes = category_classes
        self._guaranteed: str = getattr(rule, "guaranteed", REALISED_ROW) if guaranteed is None else guaranteed

    @property
    def guaranteed(self) -> str:
        """What is proved about each prediction."""
        return self._guaranteed

    def __getitem__(self, i: int) -> Multiprobability:
        """Return the prediction for object i."""
        counts = self.counts[i]
        known = None if self.category_classes is None else int(self.category_classes[i])
        labels = counts + np.eye(len(self.classes))
        rows = labels / (counts.sum() + 1) if self.ratios is None else shares(labels, self.ratios)
        return Multiprobability(rows, self.classes, self.rule, known, self.guaranteed)

    @cached_property
    def sizes(self) -> NDArray[Any]:
        """(n,) number of calibration examples in each category."""
        return self.counts.sum(axis=1)

    @cached_property
    def index(self) -> Integers:
        """(n,) positions of the predicted classes."""
        if getattr(self.rule, "needs_class", False) and self.category_classes is not None:
            return self.category_classes
        return np.array([self[i].index for i in range(len(self))], np.int64)

    @property
    def lower(self) -> Floats:
        """(n,) smallest probabilities of the predicted classes over the hypotheses."""
        if self.ratios is not None:
            return self._weighted_bounds[0]
        return self._own(self.counts) / (self.sizes + 1)

    @property
    def upper(self) -> Floats:
        """(n,) largest ones."""
        if self.ratios is not None:
            return self._weighted_bounds[1]
        return (self._own(self.counts) + 1) / (self.sizes + 1)

    @cached_property
    def _weighted_bounds(self) -> tuple[Floats, Floats]:
        """(n,) smallest and largest probabilities of the predicted classes."""
        ratios, index = np.asarray(self.ratios), self.index
        masses = self.counts * ratios
        own, total = self._own(masses), masses.sum(axis=1)
        # Smallest under the hypothesis of the heaviest other class; 1 if no other class can come.
        others = np.array([np.delete(ratios, k).max() for k in range(len(ratios))])[index]
        lower: Floats = np.divide(own, total + others, out=np.ones(len(self)), where=others > 0)
        upper: Floats = np.divide(
            own + ratios[index], total + ratios[index], out=np.zeros(len(self)), where=ratios[index] > 0
        )
        return lower, upper

    @property
    def probabilities(self) -> Floats:  # type: ignore[override]
        """(n, c, c) multiprobabilities."""
        rows: Floats = self.counts[:, None, :] + np.eye(len(self.classes))
        if self.ratios is not None:
            return shares(rows, self.ratios)
        rows /= (self.sizes + 1)[:, None, None]
        return rows

    @property
    def best(self) -> list[Label]:
        """The classes of the largest probabilities in `proba`; ties go to the first class."""
        means = self.proba
        largest = (means >= means.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
        return self._labels_at(largest)


class ManyClassIntervals(ManyOfProbabilities, SaysPairs[Floats]):
    """Predictions for n objects: many `ClassIntervals`, in arrays.

    Parameters
    ----------
    rows : (n, c, 2) float64 in [0, 1]
        Also `pairs`: probability of each class when the label is supposed to be another class, and when it is supposed
        to be this one.
    classes : sequence of c labels

    Examples
    --------
    >>> block = ManyClassIntervals(np.array([[[0.2, 0.4], [0.5, 0.7]], [[0.0, 1.0], [0.0, 1.0]]]), ("no", "yes"))
    >>> block.labels, block.lower, block.upper
    (['yes', 'no'], array([0.5, 0. ]), array([0.7, 1. ]))
    >>> block[0]
    ClassIntervals('yes': [0.500, 0.700])
    """

    one: ClassVar[type[Any]] = ClassIntervals
    numbers = "pairs"


class ManyForecasts(ManyOfProbabilities):
    """Predictions for n objects: many `Forecast` predictions, in arrays.

    Parameters
    ----------
    rows : (n, c) float64
        Also `proba`: probabilities in class order; each row nonnegative, of sum 1.
    classes : sequence of c labels

    Examples
    --------
    >>> block = ManyForecasts(np.array([[0.2, 0.8], [0.5, 0.5]]), ("no", "yes"))
    >>> block.labels, block.lower, block.upper
    (['yes', 'no'], array([0.8, 0.5]), array([0.8, 0.5]))
    >>> block[0]
    Forecast('yes': 0.800)
    """

    one: ClassVar[type[Any]] = Forecast
    numbers = "proba"


class ManyMixedForecasts(ManyForecasts):
    """Predictions for n objects by an `ExpertMixture`: many `MixedForecast` predictions, in arrays.

    Examples
    --------
    >>> ManyMixedForecasts(np.array([[0.2, 0.8]]), ("no", "yes")).guaranteed
    'log loss'
    """

    one = MixedForecast


class ManyPredictionSets(Many, SaysSets[Floats]):
    """Predictions for n objects: many `PredictionSet` predictions, in arrays.

    Parameters
    ----------
    rows : (n, c) float64 in [0, 1]
        Also `p_values`: of each class, in class order.
    classes : sequence of c labels
    smoothed : bool, default True
        Whether ties are broken at random, so that the p-value of the true label is exactly uniform.

    Examples
    --------
    >>> block = ManyPredictionSets(np.array([[0.03, 0.4, 0.07], [0.25, 0.5, 0.0]]), ("a", "b", "c"))
    >>> block.sets(0.05)
    [('b', 'c'), ('a', 'b')]
    >>> block.labels, block.credibility, block.confidence
    (['b', 'b'], array([0.4, 0.5]), array([0.93, 0.75]))
    >>> block[1]
    PredictionSet('b': confidence 0.750, credibility 0.500)
    """

    one = PredictionSet

    def __init__(self, rows: Floats, classes: Sequence[Label], smoothed: bool = True) -> None:
        super().__init__(rows, classes)
        self.smoothed = smoothed

    @property
    def guaranteed(self) -> str:
        """What is proved about each prediction."""
        return OF_SETS[self.smoothed]

    def __getitem__(self, i: int) -> PredictionSet:
        """Return the prediction for object i."""
        return PredictionSet(self.p_values[i], self.classes, self.smoothed)

    def sets(self, epsilon: float) -> list[tuple[Label, ...]]:
        """Return for each object the labels of p-value above `epsilon`, in class order.

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
        inside = (self.p_values > level).tolist()
        return [tuple(label for label, holds in zip(self.classes, row, strict=True) if holds) for row in inside]


#: The blocks that predictions made one by one are put in.
BLOCKS: dict[type, type[Many]] = {
    many.one: many for many in (ManyForecasts, ManyMixedForecasts, ManyClassIntervals, ManyPredictionSets)
}


def block_of(predictions: Sequence[Any]) -> Any:
    """Return predictions of one kind as a block; unchanged if there are none, or no block of their kind."""
    first, kinds = next(iter(predictions), None), {type(one) for one in predictions}
    many = BLOCKS.get(type(first)) if len(kinds) == 1 else None
    if many is None:
        return predictions
    _, *others = arguments_of(many)
    rows = np.array([getattr(one, many.numbers) for one in predictions])
    return many(rows, *(getattr(first, name) for name in others))


def joined(blocks: Sequence[Any]) -> Any:
    """Join blocks, or lists of predictions, in order: into one block, or into a list if their kind has no block."""
    if len({type(one) for one in blocks}) == 1 and hasattr(blocks[0], "join"):
        return type(blocks[0]).join(blocks)
    return block_of([one for block in blocks for one in block])
