"""Keeps the examples so far, for later trainings."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.labels import LabelSpace
from venn.machines import frozen
from venn.machines.machine import grown
from venn.machines.sparse import SparseRows, rows_of
from venn.machines.store import SparsePool
from venn.machines.tables import TableRows
from venn.prediction import Bools, Integers
from venn.saved import checked_keys, held_array, held_finite, held_int, held_rows


class History:
    """The examples so far, for later trainings. The first example's objects decide whether all are kept sparse."""

    def __init__(self, space: LabelSpace) -> None:
        self.space = space
        self.n = 0
        self._X = np.zeros((0, 0))
        self._sparse: SparsePool | None = None
        self._codes = np.zeros(0, space.kept)
        self._calibrates = np.zeros(0, np.bool_)

    @property
    def state(self) -> dict[str, Any]:
        """The examples so far."""
        return dict(zip(("X", "codes", "calibrates"), self.examples, strict=True))

    def restore(self, state: Any) -> None:
        """Take over the examples of a `state`, having none, or raise a ValueError."""
        checked_keys("history", state, ("X", "codes", "calibrates"))
        X, codes, calibrates = state["X"], state["codes"], state["calibrates"]
        n = held_rows("codes", codes)
        if n:
            d = np.shape(X)[-1]
            held_int("number of features", d, 1)
            if not (isinstance(X, SparseRows) and X.shape == (n, d)):  # SparseRows are checked when made
                held_finite("X", X, (n, d))
            if not self.space.holds(held_array("codes", codes, (n,), self.space.kept)):
                raise ValueError(f"codes must be those of {self.space.told}")
            self.append(X, codes, held_array("calibrates", calibrates, (n,), np.bool_))
        elif any(held_rows(name, value) for name, value in state.items()):
            raise ValueError("history must hold the examples learned, got some of none")

    def append(self, X: frozen.ObjectRows, codes: Integers, calibrates: Bools) -> None:
        """Keep examples, and whether each calibrated when it came."""
        n = self.n + len(X)
        if n == self.n:
            return
        if isinstance(X, TableRows):
            raise TypeError(f"X must be rows of numbers for a machine that is trained, got {X!r}")
        if n > len(self._codes):
            self._codes, self._calibrates = grown(self._codes, 2 * n), grown(self._calibrates, 2 * n)
        if self.n == 0 and isinstance(X, SparseRows):
            self._sparse = SparsePool(X.features)
        if self._sparse is not None:
            self._sparse.put(self.n, X if isinstance(X, SparseRows) else rows_of(X))
            self._sparse.keep(n - 1)
        else:
            if n > len(self._X):
                self._X = grown(self._X.reshape(-1, X.shape[1]), 2 * n, X.shape[1])
            self._X[self.n : n] = X.toarray() if isinstance(X, SparseRows) else X
        self._codes[self.n : n], self._calibrates[self.n : n] = codes, calibrates
        self.n = n

    @property
    def examples(self) -> tuple[Any, Integers, Bools]:
        """(n, d) objects, `SparseRows` where they are sparse, (n,) class codes, (n,) whether they calibrated."""
        X = self._X[: self.n] if self._sparse is None else self._sparse.held(self.n)
        return X, self._codes[: self.n], self._calibrates[: self.n]


def held_history(name: str, state: Any, n: int) -> Any:
    """Return the state of a history of n examples, or None where there is none any more; or say what it must be."""
    if state is not None and held_rows("codes", dict(state).get("codes")) != n:
        raise ValueError(f"{name} must hold the {n} examples learned, got {len(state['codes'])}")
    return state


def held_features(name: str, features: Any, n: int, known: int | None = None) -> int | None:
    """Return the number of features, None before the first of n examples where it is not `known`; or say what it is."""
    if n and known is None:
        return held_int(name, features, 1)
    if features != known:
        raise ValueError(f"{name} must be {known!r}, got {features!r}")
    return known
