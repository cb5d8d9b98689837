"""Keeps the examples so far, for later trainings at set times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from venn.labels import LabelSpace
from venn.machines.fit_ahead import Awaited
from venn.machines.machine import grown
from venn.machines.objects import ObjectRows
from venn.machines.sparse import SparseRows, rows_of
from venn.machines.store import SparsePool
from venn.machines.tables import TableRows
from venn.prediction import Bools, Integers
from venn.predictors.learning import Predictor
from venn.saved import checked_keys, restored_array, restored_finite, restored_int, restored_rows
from venn.schedules import Schedule


class KeptExamples:
    """Objects and codes in the order in which they came. The first one decides whether all are kept sparse."""

    def __init__(self, space: LabelSpace) -> None:
        self.space = space
        self.n = 0
        self._X = np.zeros((0, 0))
        self._sparse: SparsePool | None = None
        self._codes = np.zeros(0, space.kept)

    def put(self, X: ObjectRows, codes: Integers) -> None:
        """Keep further examples."""
        n = self.n + len(X)
        if isinstance(X, TableRows):
            raise TypeError(f"X must be rows of numbers for a machine that is trained, got {X!r}")
        if n > len(self._codes):
            self._codes = grown(self._codes, 2 * n)
        if self.n == 0 and isinstance(X, SparseRows):
            self._sparse = SparsePool(X.features)
        if self._sparse is not None:
            self._sparse.put(self.n, X if isinstance(X, SparseRows) else rows_of(X))
            self._sparse.keep(n - 1)
        else:
            if n > len(self._X):
                self._X = grown(self._X.reshape(-1, X.shape[1]), 2 * n, X.shape[1])
            self._X[self.n : n] = X.toarray() if isinstance(X, SparseRows) else X
        self._codes[self.n : n] = codes
        self.n = n

    def first(self, n: int) -> tuple[Any, Integers]:
        """Return the first n objects, `SparseRows` where they are sparse, and codes."""
        return self._sparse.held(n) if n and self._sparse is not None else self._X[:n], self._codes[:n]

    def hold(self, n: int, X: Any, codes: Integers) -> bool:
        """Whether these are the examples after the first n, to the last bit; of sparse ones that is not looked at."""
        if self._sparse is not None or not isinstance(X, np.ndarray) or n + len(X) > self.n:
            return False
        part = slice(n, n + len(X))
        return self._X[part].tobytes() == X.tobytes() and self._codes[part].tobytes() == codes.tobytes()


class History:
    """The examples so far, for later trainings. Histories of one stream may share what they hold."""

    def __init__(self, space: LabelSpace) -> None:
        self.space = space
        self.n = 0
        self._held = KeptExamples(space)
        self._calibrates = np.zeros(0, np.bool_)

    @property
    def state(self) -> dict[str, Any]:
        """The examples so far."""
        return dict(zip(("X", "codes", "calibrates"), self.examples, strict=True))

    def restore(self, state: Any) -> None:
        """Take over the examples of a `state`, having none, or raise a ValueError."""
        checked_keys("history", state, ("X", "codes", "calibrates"))
        X, codes, calibrates = state["X"], state["codes"], state["calibrates"]
        n = restored_rows("codes", codes)
        if n:
            d = np.shape(X)[-1]
            restored_int("number of features", d, 1)
            if not (isinstance(X, SparseRows) and X.shape == (n, d)):  # SparseRows are checked when made
                restored_finite("X", X, (n, d))
            if not self.space.holds(restored_array("codes", codes, (n,), self.space.kept)):
                raise ValueError(f"codes must be those of {self.space.told}")
            self.append(X, codes, restored_array("calibrates", calibrates, (n,), np.bool_))
        elif any(restored_rows(name, value) for name, value in state.items()):
            raise ValueError("history must hold the examples learned, got some of none")

    def append(self, X: ObjectRows, codes: Integers, calibrates: Bools) -> None:
        """Keep examples, and whether each calibrated when it came."""
        n = self.n + len(X)
        if n == self.n:
            return
        if self._held.n > self.n and not self._held.hold(self.n, X, codes):  # from here on they differ
            before, self._held = self._held.first(self.n), KeptExamples(self.space)
            if self.n:
                self._held.put(*before)
        if self._held.n == self.n:
            self._held.put(X, codes)
        if n > len(self._calibrates):
            self._calibrates = grown(self._calibrates, 2 * n)
        self._calibrates[self.n : n] = calibrates
        self.n = n

    def share(self, other: History) -> None:
        """Hold examples together with another history, if both have the same ones."""
        if self.n == other.n and self.space == other.space and other._held.hold(0, *self._held.first(self.n)):
            self._held = other._held

    @property
    def examples(self) -> tuple[Any, Integers, Bools]:
        """(n, d) objects, `SparseRows` where they are sparse, (n,) class codes, (n,) whether they calibrated."""
        X, codes = self._held.first(self.n)
        return X, codes, self._calibrates[: self.n]


class AtSetTimes(Predictor):
    """Base of what keeps all examples until the last fit, and is fitted to them whenever a schedule says so."""

    n: int
    schedule: Schedule
    settled: Any  #: a function from the time of a fit to the number of its first examples; None: not known before
    _history: History | None
    _end: float = math.inf  # how many examples come, where that is known

    @property
    def times(self) -> Schedule:
        """It says when to fit."""
        return self.schedule

    @property
    def due(self) -> int | None:
        """Number of examples at the next fit; None if there is none."""
        return self._next.due

    def _look_forward(self) -> None:
        """Schedule the next fit, whose examples may be known early."""
        following = None if self._history is None else self.times.next_training(self.n)
        self._next = Awaited(following, self.settled)

    def foresee(self, examples: Sequence[Any], whole: bool = False) -> None:
        """Announce the examples that come next; where these are all, a fit due later begins when more have come."""
        if whole:
            self._end = self.n + len(examples)

    def _keep(self, rows: Any, codes: Any, calibrates: Bools) -> bool:
        """Keep the latest examples for the next fit, and make it if due; return whether it was."""
        if self._history is None:
            return False
        self._history.append(rows, codes, calibrates)
        if self.n == self.due:
            examples = self._history.examples
            self._look_forward()
            if self._next.due is None:
                self._history = None
            self._fit(*examples)
            return True
        due_later = self.n <= self._end < (self.due or 0)
        if not due_later and (known := self._next.known(self.n)):
            X, codes, _ = self._history.examples
            self._expect(X[:known], codes[:known])
        return False

    def _fit(self, X: Any, codes: Any, calibrated: Bools) -> None:
        """Fit to (n, d) objects and (n,) labels or class codes; which of them calibrated when they came."""
        raise NotImplementedError

    def _expect(self, X: Any, codes: Any) -> None:
        """Begin the next fit in another process if its examples are known early."""


def share_histories(predictors: Iterable[Any]) -> None:
    """Let predictors with the same examples share them; one that learns other examples later gets its own copy."""
    found = [one for predictor in predictors if isinstance(one := getattr(predictor, "_history", None), History)]
    for one in found[1:]:
        one.share(found[0])


def restored_history(name: str, state: Any, n: int) -> Any:
    """Return the state of a history of n examples, or None where there is none any more; or say what it must be."""
    if state is not None and restored_rows("codes", dict(state).get("codes")) != n:
        raise ValueError(f"{name} must hold the {n} examples learned, got {len(state['codes'])}")
    return state


def restored_features(name: str, features: Any, n: int, known: int | None = None) -> int | None:
    """Return the number of features, None before the first of n examples where it is not `known`; or say what it is."""
    if n and known is None:
        return restored_int(name, features, 1)
    if features != known:
        raise ValueError(f"{name} must be {known!r}, got {features!r}")
    return known
