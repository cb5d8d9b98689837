"""What is kept of machines that keep the objects themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from venn.machines.kept import KeptMachine, Part, checked_sizes, distinct_columns, kept_arrays, put_arrays
from venn.machines.machine import grown
from venn.machines.store import doubled
from venn.saved import held_array, held_codes


class KeptObjects(KeptMachine):
    """What is kept of machines that keep the objects themselves."""

    common = (
        Part("_columns", ("d", "m")),
        Part("_labels", ("m",), "c", np.int64),
        Part("_weights", ("m",), dtype=np.int64),
        Part("_history", ("n",), "m", np.int64),
    )
    own: tuple[Part, ...] = ()
    _features: int | None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.parts = cls.common + cls.own

    def _lengths(self: Any) -> dict[str, int]:
        return {"k": getattr(self, "k", 0), "c": len(self.classes)}

    @property
    def state(self: Any) -> dict[str, Any]:
        """What was learned."""
        sizes = self._lengths() | {"d": len(self._columns), "m": self._count, "n": self.n}
        read = kept_arrays(self, self.parts, sizes) if self.n else {part.path: None for part in self.parts}
        return read | {"n": self.n, "columns": self._count, "features": self._features}

    def restore(self: Any, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        super().restore(state)
        d, m, n = checked_sizes(state, "columns")
        if n == 0:
            if any(state[part.path] is not None for part in self.parts):
                raise ValueError("a machine without examples must have no objects")
            return
        sizes = self._lengths() | {"d": d, "m": m, "n": n}
        self._check_arrays(state, sizes)
        if not np.array_equal(np.bincount(state["_history"], minlength=m), state["_weights"]):
            raise ValueError("_weights must be the numbers of examples of each column")
        contents = list(zip(distinct_columns(state["_columns"]), state["_labels"].tolist(), strict=True))
        if len(set(contents)) != m:
            raise ValueError("examples of different columns must differ")
        if not (np.linalg.norm(state["_columns"], axis=0) <= self._largest * (1 + 1e-9)).all():
            raise ValueError(f"objects must have a norm of at most {self._largest:g}")
        self._check_state(state, sizes)
        self._make_room(m, d)
        room = doubled(len(self._history), n)
        self._history = grown(self._history, room)
        put_arrays(self, self.parts, state)
        self._where = {content: column for column, content in enumerate(contents)}
        self.n, self._count, self._features = n, m, d

    def _check_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        """Refuse a state that contradicts itself."""


class KeptNeighbours(KeptObjects):
    """What is kept of `NearestNeighbours`: with the levels of each column."""

    own = (
        Part("_levels.distance", ("m", "L"), dtype=None),
        Part("_levels.votes", ("m", "L", "c"), dtype=np.int64),
        Part("_levels.used", ("m",), dtype=np.int64),
        Part("_levels.sums", ("m", "c"), dtype=np.int64),
        Part("_levels.reach", ("m",), dtype=None),
    )

    @property
    def state(self: Any) -> dict[str, Any]:
        """What was learned; levels without spare room."""
        held = super().state
        if self.n:
            m, used = self._count, self._levels.used[: self._count]
            deepest = int(used.max())
            beyond = np.arange(deepest) >= used[:, None]
            held["_levels.distance"] = np.where(beyond, 0.0, self._levels.distance[:m, :deepest])
            held["_levels.votes"] = np.where(beyond[:, :, None], 0, self._levels.votes[:m, :deepest])
        return held

    def _lengths(self: Any) -> dict[str, int]:
        return super()._lengths() | {"L": 0}

    def _check_arrays(self, state: dict[str, Any], sizes: Mapping[str, int]) -> None:
        depth = np.shape(state["_levels.distance"])[1:] or (0,)
        if not 1 <= depth[0] <= sizes["k"] + 1:
            raise ValueError(f"levels must be from 1 to {sizes['k'] + 1}, got {depth[0]}")
        super()._check_arrays(state, {**sizes, "L": depth[0]})

    def _check_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        distance, votes, used, sums, reach = (state[part.path] for part in self.own)
        m, depth = distance.shape
        held_codes("used levels", used, (m,), 1, depth + 1)
        held_array("_levels.distance", distance, (m, depth))
        held_array("_levels.reach", reach, (m,))
        here = np.arange(depth) < used[:, None]
        at_each = np.where(here, votes.sum(axis=2), 1)
        total, last = sums.sum(axis=1), distance[np.arange(m), used - 1]
        rising = (np.diff(distance, axis=1) > 0) | ~here[:, 1:]
        most = state["n"]
        wanted = sizes["k"] + 1
        good = (
            (votes >= 0).all() and (votes <= most).all() and (at_each >= 1).all() and rising.all()
            and np.isfinite(distance).all() and (distance >= 0).all() and (votes[~here] == 0).all()
            and (sums == votes.sum(axis=1)).all()
            and (total - votes[np.arange(m), used - 1].sum(axis=1) < wanted).all()
            and (reach == np.where(total >= wanted, last, np.inf)).all()
        )  # fmt: skip
        if not good:
            raise ValueError("levels must be those of the nearest examples of each column")


class KeptCentroid(KeptObjects):
    """What is kept of `NearestCentroid`: exact sums and numbers of the examples of each class."""

    own = (Part("_sums", ("c", "d")), Part("_errors", ("c", "d")), Part("_sizes", ("c",), dtype=np.int64))

    def _check_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        numbers_of = np.bincount(state["_labels"][state["_history"]], minlength=sizes["c"])
        if not np.array_equal(state["_sizes"], numbers_of):
            raise ValueError("_sizes must be the numbers of examples of each class")


class KeptDistances(KeptObjects):
    """What is kept of `NeighbourDistances`: for each column, the nearest examples of each class and their scores."""

    own = (Part("_nearest", ("c", "m", "k"), dtype=None), Part("_others", ("c", "m")), Part("_own", ("m",)))

    def _check_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        nearest = held_array("_nearest", state["_nearest"], (sizes["c"], sizes["m"], sizes["k"]))
        if not ((nearest >= 0).all() and (nearest[:, :, 1:] >= nearest[:, :, :-1]).all()):
            raise ValueError("_nearest must be ascending distances")
