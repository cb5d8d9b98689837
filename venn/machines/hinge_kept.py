"""What is kept of hinge-loss machines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from venn.machines.kept import KeptMachine, Part, checked_objects, checked_sizes, kept_arrays, put_arrays
from venn.machines.store import doubled
from venn.saved import held_array, held_bool, held_codes, held_finite, held_float, held_rows

HEAD = ("placing", "n", "objects", "features", "scale", "spans_kept")
# What a state holds beside that and the parts.
OWN = ("_columns", "kernel", "size", "members", "inverse", "extras", "extra_weights", "extra_numbers", "spans")


class KeptHinge(KeptMachine):
    """What is kept of hinge-loss machines: objects, half of their kernel, examples, solutions, margins."""

    parts = (
        Part("_first", ("m",), "c", np.int64),
        Part("_first_weight", ("m",)),
        Part("_equal", ("m",), dtype=np.int64),
        Part("_objects.positive", ("k", "m")),
        Part("_objects.total", ("k", "m")),
        Part("_solved.beta", ("k", "m")),
        Part("_solved.score", ("k", "m")),
        Part("_solved.state", ("k", "m"), dtype=np.int8),
        Part("_solved.bias", ("k",)),
        Part("_solved.drift", ("k",)),
        Part("_history", (2, "n"), dtype=np.int64),
        Part("_weights", ("n",)),
    )

    @property
    def state(self: Any) -> dict[str, Any]:
        """What was learned."""
        held = super().state | {
            "n": self.n, "objects": self._count, "features": self._features, "scale": self._scale,
            "spans_kept": self._spans.kept,
        }  # fmt: skip
        return held | (self._learned() if self.n else dict.fromkeys((*(part.path for part in self.parts), *OWN)))

    def _learned(self: Any) -> dict[str, Any]:
        sizes = {"m": self._count, "k": len(self.signs), "n": self.n}
        size, widest = self._solved.size, int(self._solved.size.max())
        inverse = self._solved.inverse[:, : widest + 1, : widest + 1].copy()
        members = self._solved.members[:, :widest].copy()
        for own, square, used in zip(members, inverse, size.tolist(), strict=True):
            own[used:] = 0
            bordered = used + 1 if used else 0
            square[bordered:] = square[:, bordered:] = 0.0
        spans = self._spans
        return kept_arrays(self, self.parts, sizes) | {
            "_columns": self._store.held(self._count),
            "kernel": packed_rows(self._objects.kernel, self._count),
            "size": size,
            "members": members,
            "inverse": inverse,
            "extras": np.array([like[:2] for like in self._extras], np.int64).reshape(-1, 2),
            "extra_weights": np.array([like[2] for like in self._extras], np.float64),
            "extra_numbers": np.array(list(self._extras.values()), np.int64),
            # Spans that are not kept are recomputed, to the last bit, from what a machine has learned.
            "spans": spans.known[:, : self._count] if spans.kept and spans.known.size else None,
        }

    def restore(self: Any, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        super().restore(state)
        self._spans.kept = held_bool("spans_kept", state["spans_kept"])
        d, m, n = checked_sizes(state, "objects")
        scale = held_float("scale", state["scale"], 0.0)
        if n:
            self._check_state(state, {"d": d, "m": m, "k": len(self.signs), "n": n, "c": len(self.classes)})
            self._restore_arrays(state, m, n)
        elif any(value is not None for name, value in state.items() if name not in HEAD):
            raise ValueError("a machine without examples must have no objects")
        self._scale = scale

    def _restore_arrays(self: Any, state: dict[str, Any], m: int, n: int) -> None:
        widest = int(state["size"].max())
        self._store.hold(state["_columns"])
        self._make_room(m)
        self._make_margin_room(widest)
        room = doubled(self._history.shape[1], n)
        self._history, self._weights = np.zeros((2, room), np.int64), np.zeros(room)
        put_arrays(self, self.parts, state)
        kernel, packed = self._objects.kernel, state["kernel"]
        for i in range(m):
            kernel[i, : i + 1] = packed[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
            kernel[: i + 1, i] = kernel[i, : i + 1]
        self._solved.size[:] = state["size"]
        self._solved.members[:, :widest] = state["members"]
        self._solved.inverse[:, : widest + 1, : widest + 1] = state["inverse"]
        self.n, self._count = n, m
        self._where = {self._store.key(i): i for i in range(m)}
        self._extras = extras_of(state)
        np.add.at(self._counts, (state["_history"][1], state["_history"][0]), 1)
        of_class = self._counts.sum(axis=1)
        self._objects.sizes[:, 0] = (self.signs > 0) @ of_class
        self._objects.sizes[:, 1] = (self.signs != 0) @ of_class
        if state["spans"] is not None:
            self._spans.make_room(self._room)
            self._spans.known[:, :m] = state["spans"]

    def _check_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        """Refuse a state that contradicts itself."""
        self._check_arrays(state, sizes)
        m, n, k, c = (sizes[name] for name in ("m", "n", "k", "c"))
        held_finite("kernel", state["kernel"], (m * (m + 1) // 2,))
        size = held_codes("size", state["size"], (k,), 0, m + 1)
        widest = int(size.max())
        members = held_codes("members", state["members"], (k, widest), 0, m)
        held_finite("inverse", state["inverse"], (k, widest + 1, widest + 1))
        if state["spans"] is not None:
            held_array("spans", state["spans"], (k, m))
        objects, codes = state["_history"]
        held_codes("the objects of the history", objects, (n,), 0, m)
        held_codes("the classes of the history", codes, (n,), 0, c)
        held_codes("_solved.state", state["_solved.state"], (k, m), -2, 3, np.int8)
        for own, used, states in zip(members, size.tolist(), state["_solved.state"], strict=True):
            if not np.array_equal(np.sort(own[:used]), np.flatnonzero(np.abs(states) == 1)):
                raise ValueError("the members of a margin must be the objects whose state says so")
        if not (state["_solved.drift"] >= 0).all():
            raise ValueError("drift must be >= 0")
        if not ((state["_weights"] > 0).all() and (state["_objects.total"] >= 0).all()):
            raise ValueError("weights must be > 0")
        if len(set(checked_objects(state["_columns"], sizes["d"], m))) != m:
            raise ValueError("objects must be distinct")
        further = held_rows("extras", state["extras"])
        held_array("extras", state["extras"], (further, 2), np.int64)
        held_finite("extra_weights", state["extra_weights"], (further,))
        held_codes("extra_numbers", state["extra_numbers"], (further,), 1, n + 1)
        found = Counter(zip(objects.tolist(), codes.tolist(), state["_weights"].tolist(), strict=True))
        firsts = zip(range(m), state["_first"].tolist(), state["_first_weight"].tolist(), strict=True)
        listed = dict(zip(firsts, state["_equal"].tolist(), strict=True))
        extras = extras_of(state)
        if listed.keys() & extras.keys() or found != listed | extras:
            raise ValueError("the distinct examples must be those of the history")


def extras_of(state: dict[str, Any]) -> dict[tuple[int, int, float], int]:
    """Return the examples that differ from the first at their object, with the number of each."""
    pairs, weights = state["extras"].tolist(), state["extra_weights"].tolist()
    return {
        (p, code, weight): number
        for (p, code), weight, number in zip(pairs, weights, state["extra_numbers"].tolist(), strict=True)
    }


def packed_rows(square: Any, m: int) -> Any:
    """Return the lower triangle of a symmetric matrix, row after row."""
    packed = np.empty(m * (m + 1) // 2)
    for i in range(m):
        packed[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] = square[i, : i + 1]
    return packed
