"""What is kept of machines on one ridge system: objects, labels, weights, the factor and its solutions."""

from __future__ import annotations

from typing import Any, ClassVar

from venn.machines.kept import Part, checked_objects, checked_sizes, kept_arrays, put_arrays
from venn.machines.machine import grown
from venn.machines.ridge import RidgeSystem
from venn.machines.store import NONE, Remembering
from venn.saved import held_int


class KeptRidge(Remembering):
    """Base of machines on one ridge system; a subclass says what else it keeps in `own` and `_own_state`."""

    common = (
        Part("_weights", ("n",)),
        Part("_system.ridge", ("n",)),
        Part("_system.solution.factor", ("n_factor",)),
        Part("_system.solution.sums", ("n",)),
        Part("_system.solution.diagonal", ("n",)),
        Part("_system.solution.solutions", ("t", "n")),
        Part("_system.solution.bases", ("t",)),
    )
    own: ClassVar[tuple[Part, ...]] = ()
    _system: RidgeSystem
    _labels: Any
    _weights: Any  # of each example, without that of its class

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.parts = cls.own + cls.common

    def _make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        self._system.make_room(n)
        room = self._system.room
        if room > len(self._labels):
            self._labels, self._weights = grown(self._labels, room), grown(self._weights, room)

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machine is then the one that has learned the others.

        By plane rotations of the factor's rows, in place and stable; the last example's row is simply dropped.
        Forgetting the last learned example at once, and not in a copy, restores every bit. Predictors that number
        their steps need a `SlidingWindow`, which counts what it forgets.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Its place in order of arrival, 0 the oldest; later ones move up.

        Raises
        ------
        TypeError, ValueError
            For any other `i`.
        NotConverged
            When an equation misses the tolerance of 1e-7; then nothing is forgotten.

        References
        ----------
        Gill, Golub, Murray & Saunders (1974), "Methods for modifying matrix factorizations"; here of the inverse.

        Examples
        --------
        >>> import venn
        >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
        >>> for x, y in [([5.0], "yes"), ([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.unlearn_one()
        >>> machine.n, machine.scores([0.0]).round(3)
        (4, array([ 0.977, -0.977]))
        """
        n, i = self.n, self._leaving(i)
        self.forget()
        self._system.remove(i)
        for values in (self._labels, self._weights):
            values[i : n - 1] = values[i + 1 : n].copy()
        self.n = n - 1

    def _lengths(self, n: int) -> dict[str, int]:
        return {"n": n, "t": len(self._system.targets), "n_factor": n * (n + 1) // 2}

    def _own_state(self) -> dict[str, Any]:
        """Return what the machine keeps besides arrays and what all keep."""
        return {}

    def _take_own(self, state: dict[str, Any]) -> None:
        """Take over what `_own_state` gave, or raise; the arrays have been checked, and are not taken over yet."""

    @property
    def state(self) -> dict[str, Any]:
        """The packed factor, and what follows from it up to the last bits."""
        system, n = self._system, self.n
        return (
            super().state
            | kept_arrays(self, self.parts, self._lengths(n))
            | {
                "_columns": self._store.held(n) if n else NONE,
                "n": n,
                "features": self._features,
                "probe": system.probe,
            }
            | system.counters
            | self._own_state()
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        state = {"reference": None} | state  # files written before there was one are without it
        super().restore(state)
        n = held_int("n", state["n"])
        d, _, _ = checked_sizes(state, "n")
        self._check_arrays(state, self._lengths(n))
        checked_objects(state["_columns"], d, n)
        probe = held_int("probe", state["probe"])
        if not ((state["_weights"] > 0).all() and (state["_system.ridge"] > 0).all()):
            raise ValueError("weights must be > 0")
        self._take_own(state)
        if n:
            self._store.hold(state["_columns"])
            self._make_room(n)
        put_arrays(self, self.parts, state)
        self._system.restore(n, d, probe, state)
        self.n = n
