"""How columns are scaled: by the first objects, so that every column varies by 1, or by declared ranges."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.sparse import Rows
from venn.machines.sparse import SparseRows, rows_of
from venn.prediction import Floats
from venn.saved import held_finite, held_rows

QUARTILES = 1.349  # deviations between the quartiles of a Gaussian
HALF = math.sqrt(3)  # a uniform variable has variance 1 between -HALF and HALF


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


def fixed_by(rows: list[Any]) -> ColumnScale:
    """Return the scale of at least one clean object; it does not depend on their order, nor does its last bit."""
    objects = stacked(rows)
    return ColumnScale(root_mean_squares(objects)) if isinstance(objects, SparseRows) else middle(objects)


def of_ranges(ranges: tuple[tuple[float, float], ...]) -> ColumnScale:
    """Return the scale on which each range goes from -HALF to HALF."""
    low, high = np.array(ranges).T
    return ColumnScale((high / 2 - low / 2) / HALF, low / 2 + high / 2)


def held_scale(state: Any) -> ColumnScale:
    """Return the scale of a `ColumnScale.state`, or raise a ValueError if it is not one."""
    rows = held_rows("scale", state)
    if rows not in (1, 2, 3):
        raise ValueError(f"scale must have 1 to 3 rows, got {rows}")
    held_finite("scale", state, (rows, state.shape[-1]))
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
        stretch = deviations(np.arcsinh(columns / spread))
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
