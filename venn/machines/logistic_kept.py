"""What is kept of kernel logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.machines.kept import KeptMachine, Part, checked_objects, checked_sizes, kept_arrays, put_arrays
from venn.machines.machine import grown
from venn.machines.store import NONE, doubled
from venn.prediction import Integers
from venn.saved import held_codes, held_float, held_int, held_rows


class KeptLogistic(KeptMachine):
    """What is kept of kernel logistic regression: packed kernel and inverses, solutions, examples."""

    parts = (
        Part("_kernel", ("m_packed",)),
        Part("_masses", ("c", "m")),
        Part("_total", ("m",)),
        Part("_beta", ("c", "m")),
        Part("_score", ("c", "m")),
        Part("_bias", ("c",)),
        Part("_levels", ("c", "m"), dtype=np.int64),
        Part("_inverse", ("c", "m_packed")),
        Part("_sums", ("c", "m")),
        Part("_diagonals", ("c", "m")),
        Part("_places", (3, "e"), dtype=np.int64),
        Part("_weight", ("e",)),
        Part("_history", ("n",), "e", np.int64),
        Part("_sizes", ("c",), dtype=np.int64),
    )

    @staticmethod
    def _lengths(m: int, n: int, c: int, e: int) -> dict[str, int]:
        return {"m": m, "n": n, "c": c, "e": e, "m_packed": m * (m + 1) // 2}

    @property
    def state(self: Any) -> dict[str, Any]:
        """What was learned."""
        sizes = self._lengths(self._count, self.n, len(self.classes), self._weight.size)
        return kept_arrays(self, self.parts, sizes) | {
            "_columns": self._store.held(self._count) if self.n else NONE,
            "n": self.n, "objects": self._count, "features": self._features, "scale": self._scale,
            "changes": self._changes,
        }  # fmt: skip

    def restore(self: Any, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        super().restore(state)
        d, m, n = checked_sizes(state, "objects")
        self._changes = held_int("changes", state["changes"])
        c, e = len(self.classes), held_rows("_weight", state["_weight"])
        self._check_arrays(state, self._lengths(m, n, c, e))
        objects, codes, counts = state["_places"]
        held_codes("objects", objects, (e,), 0, m)
        held_codes("classes", codes, (e,), 0, c)
        held_codes("numbers", counts, (e,), 1, n + 1)
        in_order: Integers = codes[state["_history"]]
        agree = (
            np.array_equal(np.bincount(state["_history"], minlength=e), counts)
            and np.array_equal(np.bincount(in_order, minlength=c), state["_sizes"])
            and len(np.unique(objects)) == m
        )
        examples = zip(objects.tolist(), codes.tolist(), state["_weight"].tolist(), strict=True)
        self._examples = {like: place for place, like in enumerate(examples)}
        contents = checked_objects(state["_columns"], d, m)
        self._where = {content: i for i, content in enumerate(contents)}
        if not agree or len(self._examples) != e or len(self._where) != m:
            raise ValueError("the distinct examples must be those of the history")
        if not ((state["_weight"] > 0).all() and (state["_total"] > 0).all() and (state["_masses"] >= 0).all()):
            raise ValueError("weights must be > 0")
        self._scale = held_float("scale", state["scale"], 0.0)
        if n:
            self._store.hold(state["_columns"])
            self._make_room(m)
        room = doubled(self._history.size, n)
        self._history = grown(self._history, room)
        self._places, self._weight = np.zeros((3, e), np.int64), np.zeros(e)
        put_arrays(self, self.parts, state)
        self.n, self._count = n, m
