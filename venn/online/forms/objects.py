"""What a checkpoint keeps of machines that keep the objects themselves, and of what stands around machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from venn.machines.distances import NeighbourDistances
from venn.machines.machine import grown
from venn.machines.objects import NearestCentroid, NearestNeighbours, ObjectMachine
from venn.online.forms.base import register
from venn.online.forms.contents import distinct_columns
from venn.online.forms.machines import MachineForm, Part, checked_sizes
from venn.saved import checked_keys, held_array, held_codes


class ObjectsForm(MachineForm):
    """What `NearestNeighbours`, `NearestCentroid` and `NeighbourDistances` have in common."""

    known = "_codes classes n _features _asked _where _count _room _distances"
    common = (
        Part("_columns", ("d", "m")),
        Part("_labels", ("m",), "c", np.int64),
        Part("_weights", ("m",), dtype=np.int64),
        Part("_history", ("n",), "m", np.int64),
    )
    own: tuple[Part, ...] = ()

    def __init__(self, kind: type[ObjectMachine]) -> None:
        super().__init__(kind)
        self.parts = self.common + self.own

    def _sizes(self, thing: Any) -> dict[str, int]:
        return {"k": getattr(thing, "k", 0), "c": len(thing.classes)}

    def _held(self, thing: Any) -> dict[str, Any]:
        sizes = self._sizes(thing) | {"d": len(thing._columns), "m": thing._count, "n": thing.n}
        read = self._read(thing, sizes) if thing.n else {part.path: None for part in self.parts}
        return read | {"n": thing.n, "columns": thing._count, "features": thing._features}

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let a machine have learned what the state says."""
        checked_keys("state", state, self.state(thing))
        d, m, n = checked_sizes(state, "columns")
        if n == 0:
            if any(state[part.path] is not None for part in self.parts):
                raise ValueError("a machine without examples must have no objects")
            return
        sizes = self._sizes(thing) | {"d": d, "m": m, "n": n}
        self._checked(state, sizes)
        if not np.array_equal(np.bincount(state["_history"], minlength=m), state["_weights"]):
            raise ValueError("_weights must be the numbers of examples of each column")
        contents = list(zip(distinct_columns(state["_columns"]), state["_labels"].tolist(), strict=True))
        if len(set(contents)) != m:
            raise ValueError("examples of different columns must differ")
        if not (np.linalg.norm(state["_columns"], axis=0) <= thing._largest * (1 + 1e-9)).all():
            raise ValueError(f"objects must have a norm of at most {thing._largest:g}")
        self._check(thing, state, sizes)
        thing._make_room(m, d)
        room = len(thing._history)
        while room < n:
            room *= 2
        thing._history = grown(thing._history, room)
        self._fill(thing, state)
        thing._where = {content: column for column, content in enumerate(contents)}
        thing.n, thing._count, thing._features = n, m, d

    def _check(self, thing: Any, state: dict[str, Any], sizes: dict[str, int]) -> None:
        """Refuse what contradicts itself."""


class NeighboursForm(ObjectsForm):
    """Of `NearestNeighbours`: the levels of each column."""

    known = ObjectsForm.known + " k"
    own = (
        Part("_levels.distance", ("m", "L"), dtype=None),
        Part("_levels.votes", ("m", "L", "c"), dtype=np.int64),
        Part("_levels.used", ("m",), dtype=np.int64),
        Part("_levels.sums", ("m", "c"), dtype=np.int64),
        Part("_levels.reach", ("m",), dtype=None),
    )

    def _held(self, thing: Any) -> dict[str, Any]:
        held = super()._held(thing)
        if thing.n:
            m, used = thing._count, thing._levels.used[: thing._count]
            deepest = int(used.max())
            beyond = np.arange(deepest) >= used[:, None]
            held["_levels.distance"] = np.where(beyond, 0.0, thing._levels.distance[:m, :deepest])
            held["_levels.votes"] = np.where(beyond[:, :, None], 0, thing._levels.votes[:m, :deepest])
        return held

    def _sizes(self, thing: Any) -> dict[str, int]:
        return super()._sizes(thing) | {"L": 0}

    def _checked(self, state: dict[str, Any], sizes: Mapping[str, int]) -> None:
        depth = np.shape(state["_levels.distance"])[1:] or (0,)
        if not 1 <= depth[0] <= sizes["k"] + 1:
            raise ValueError(f"levels must be from 1 to {sizes['k'] + 1}, got {depth[0]}")
        super()._checked(state, {**sizes, "L": depth[0]})

    def _check(self, thing: Any, state: dict[str, Any], sizes: dict[str, int]) -> None:
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


class CentroidForm(ObjectsForm):
    """Of `NearestCentroid`: exact sums and numbers of the examples of each class."""

    known = ObjectsForm.known.replace("_distances", "")
    own = (Part("_sums", ("c", "d")), Part("_errors", ("c", "d")), Part("_sizes", ("c",), dtype=np.int64))

    def _check(self, thing: Any, state: dict[str, Any], sizes: dict[str, int]) -> None:
        numbers_of = np.bincount(state["_labels"][state["_history"]], minlength=sizes["c"])
        if not np.array_equal(state["_sizes"], numbers_of):
            raise ValueError("_sizes must be the numbers of examples of each class")


class DistancesForm(ObjectsForm):
    """Of `NeighbourDistances`: the nearest of each class to each column, and the scores that follow."""

    known = ObjectsForm.known + " k"
    own = (Part("_nearest", ("c", "m", "k"), dtype=None), Part("_others", ("c", "m")), Part("_own", ("m",)))

    def _check(self, thing: Any, state: dict[str, Any], sizes: dict[str, int]) -> None:
        nearest = held_array("_nearest", state["_nearest"], (sizes["c"], sizes["m"], sizes["k"]))
        if not ((nearest >= 0).all() and (nearest[:, :, 1:] >= nearest[:, :, :-1]).all()):
            raise ValueError("_nearest must be ascending distances")


# ------------------------------------------------------------------- what stands beside machines


register(
    NeighboursForm(NearestNeighbours),
    CentroidForm(NearestCentroid),
    DistancesForm(NeighbourDistances),
)
