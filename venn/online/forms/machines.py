"""What a checkpoint keeps of machines, and what must hold of it before compiled code, which checks nothing, sees it.

A machine is made anew by its constructor, makes room as it would have by itself, and has its numbers put there. What
can be told from those to the last bit is not kept, nor is room to spare.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.logistic import KernelLogisticRegression
from venn.machines.machine import grown
from venn.machines.one_vs_all import OneVsAllSVM
from venn.machines.one_vs_one import OneVsOneSVM
from venn.machines.ridge import Kept
from venn.machines.store import NONE
from venn.machines.tuning import Tuning
from venn.online.forms.base import Form, register
from venn.online.forms.contents import checked_objects
from venn.prediction import Integers
from venn.saved import checked_keys, held_array, held_codes, held_finite, held_float, held_int, held_rows


class Part(NamedTuple):
    """An array that a machine keeps: the filled corner of a larger one."""

    path: str
    shape: tuple[int | str, ...]  # numbers, and names of sizes
    below: str | None = None  # integers from 0 to below this size; None for finite numbers
    dtype: Any = np.float64

    def lengths(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape in numbers."""
        return tuple(sizes[size] if isinstance(size, str) else size for size in self.shape)


class MachineForm(Form):
    """What the forms of machines share."""

    parts: tuple[Part, ...] = ()
    #: Attributes, beside the parameters, that a machine sets itself or that are of no later use.
    known = ""

    def _read(self, thing: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
        corners = {part.path: tuple(slice(0, length) for length in part.lengths(sizes)) for part in self.parts}
        return {path: attrgetter(path)(thing)[corner] for path, corner in corners.items()}

    def _checked(self, state: dict[str, Any], sizes: Mapping[str, int]) -> None:
        """Refuse arrays of other shapes and types than the parts', indices out of range, and what is not finite."""
        for part in self.parts:
            shape = part.lengths(sizes)
            if part.below is not None:
                held_codes(part.path, state[part.path], shape, 0, sizes[part.below], part.dtype)
            elif part.dtype is np.float64:
                held_finite(part.path, state[part.path], shape)
            else:
                held_array(part.path, state[part.path], shape, part.dtype)

    def _fill(self, thing: Any, state: dict[str, Any]) -> None:
        for part in self.parts:
            array = state[part.path]
            attrgetter(part.path)(thing)[tuple(slice(0, length) for length in array.shape)] = array

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return what the constructor takes, and what chose it."""
        return super().parameters(thing) | {"tuning": thing.tuning}

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return a machine that has learned nothing."""
        tuning = parameters.pop("tuning", None)
        if tuning is not None and not isinstance(tuning, Tuning):
            raise ValueError(f"tuning must be what tune found, got {tuning!r}")
        machine = super().make(parameters)
        machine.tuning = tuning
        return machine

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what the machine has learned; an attribute that this form does not know makes it fail."""
        unknown = vars(thing).keys() - set(self.known.split()) - {part.path.split(".")[0] for part in self.parts}
        unknown -= self._attributes.keys() | {"tuning"}
        if unknown:
            raise TypeError(f"{self.name} must have no attributes that a checkpoint does not know, got {unknown}")
        return self._held(thing)

    @abstractmethod
    def _held(self, thing: Any) -> dict[str, Any]: ...


def checked_sizes(state: dict[str, Any], count: str) -> tuple[int, int, int]:
    """Return the numbers of features, entries and examples that a state says there are."""
    n, m = held_int("n", state["n"]), held_int(count, state[count])
    if m > n or (m == 0) != (n == 0):
        raise ValueError(f"{count} must be the number of distinct ones of {n} examples, got {m}")
    features = state["features"]
    if (features is None) != (n == 0):
        raise ValueError(f"features must be known of {n} examples, got {features!r}")
    return (held_int("features", features, 1) if n else 0), m, n


def packed_rows(square: Any, m: int) -> Any:
    """Return the lower triangle of a symmetric matrix, row after row."""
    packed = np.empty(m * (m + 1) // 2)
    for i in range(m):
        packed[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] = square[i, : i + 1]
    return packed


# ------------------------------------------------------------------------------- hinge machines


HEAD = ("n", "objects", "features", "scale", "spans_kept")
OWN = tuple(
    Part(name, ())
    for name in (
        "_columns", "kernel", "size", "members", "inverse", "extras", "extra_weights", "extra_numbers", "spans"
    )
)  # fmt: skip


class HingeForm(MachineForm):
    """Of `OneVsAllSVM` and `OneVsOneSVM`: objects, the lower triangle of their kernel, examples, solutions, margins."""

    known = """_codes classes signs n _store _count _where _asked _extras _scale _room _margin_room _counts _scratch
        class_weights _values _group _side _unit _joining _branches _spans _held _beside"""
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

    def _held(self, thing: Any) -> dict[str, Any]:
        held = {
            "n": thing.n, "objects": thing._count, "features": thing._features, "scale": thing._scale,
            "spans_kept": thing._spans.kept,
        }  # fmt: skip
        return held | (self._learned(thing) if thing.n else dict.fromkeys(part.path for part in self.parts + OWN))

    def _learned(self, thing: Any) -> dict[str, Any]:
        sizes = {"m": thing._count, "k": len(thing.signs), "n": thing.n}
        size, widest = thing._solved.size, int(thing._solved.size.max())
        inverse = thing._solved.inverse[:, : widest + 1, : widest + 1].copy()
        members = thing._solved.members[:, :widest].copy()
        for own, square, used in zip(members, inverse, size.tolist(), strict=True):
            own[used:] = 0
            bordered = used + 1 if used else 0
            square[bordered:] = square[:, bordered:] = 0.0
        spans = thing._spans
        return self._read(thing, sizes) | {
            "_columns": thing._store.held(thing._count),
            "kernel": packed_rows(thing._objects.kernel, thing._count),
            "size": size,
            "members": members,
            "inverse": inverse,
            "extras": np.array([like[:2] for like in thing._extras], np.int64).reshape(-1, 2),
            "extra_weights": np.array([like[2] for like in thing._extras], np.float64),
            "extra_numbers": np.array(list(thing._extras.values()), np.int64),
            # Those not kept are computed anew from what a machine has learned, to the last bit.
            "spans": spans.known[:, : thing._count] if spans.kept and spans.known.size else None,
        }

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let a machine have learned what the state says."""
        checked_keys("state", state, self.state(thing).keys())
        if type(state["spans_kept"]) is not bool:
            raise ValueError(f"spans_kept must be True or False, got {state['spans_kept']!r}")
        thing._spans.kept = state["spans_kept"]
        d, m, n = checked_sizes(state, "objects")
        scale = held_float("scale", state["scale"], 0.0)
        if n:
            self._check(state, {"d": d, "m": m, "k": len(thing.signs), "n": n, "c": len(thing.classes)})
            self._set(thing, state, m, n)
        elif any(value is not None for name, value in state.items() if name not in HEAD):
            raise ValueError("a machine without examples must have no objects")
        thing._scale = scale

    def _set(self, thing: Any, state: dict[str, Any], m: int, n: int) -> None:
        widest = int(state["size"].max())
        thing._store.hold(state["_columns"])
        thing._make_room(m)
        thing._make_margin_room(widest)
        room = thing._history.shape[1]
        while room < n:
            room *= 2
        thing._history, thing._weights = np.zeros((2, room), np.int64), np.zeros(room)
        self._fill(thing, state)
        kernel, packed = thing._objects.kernel, state["kernel"]
        for i in range(m):
            kernel[i, : i + 1] = packed[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
            kernel[: i + 1, i] = kernel[i, : i + 1]
        thing._solved.size[:] = state["size"]
        thing._solved.members[:, :widest] = state["members"]
        thing._solved.inverse[:, : widest + 1, : widest + 1] = state["inverse"]
        thing.n, thing._count = n, m
        thing._where = {thing._store.key(i): i for i in range(m)}
        thing._extras = self._extras(state)
        np.add.at(thing._counts, (state["_history"][1], state["_history"][0]), 1)
        of_class = thing._counts.sum(axis=1)
        thing._objects.sizes[:, 0] = (thing.signs > 0) @ of_class
        thing._objects.sizes[:, 1] = (thing.signs != 0) @ of_class
        if state["spans"] is not None:
            thing._spans.make_room(thing._room)
            thing._spans.known[:, :m] = state["spans"]

    @staticmethod
    def _extras(state: dict[str, Any]) -> dict[tuple[int, int, float], int]:
        pairs, weights = state["extras"].tolist(), state["extra_weights"].tolist()
        return {
            (p, code, weight): number
            for (p, code), weight, number in zip(pairs, weights, state["extra_numbers"].tolist(), strict=True)
        }

    def _check(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        """Refuse what contradicts itself."""
        self._checked(state, sizes)
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
        told = Counter(zip(objects.tolist(), codes.tolist(), state["_weights"].tolist(), strict=True))
        firsts = zip(range(m), state["_first"].tolist(), state["_first_weight"].tolist(), strict=True)
        listed = dict(zip(firsts, state["_equal"].tolist(), strict=True))
        extras = self._extras(state)
        if listed.keys() & extras.keys() or told != listed | extras:
            raise ValueError("the distinct examples must be those of the history")


# ------------------------------------------------------------------------- least-squares machines


class LeastSquaresForm(MachineForm):
    """Of `LeastSquaresSVM`: the packed factor and what follows from it but for the last bits."""

    known = "_codes classes class_weights _values _group n _store _asked _system _tables"
    parts = (
        Part("_labels", ("n",), "c", np.int64),
        Part("_weights", ("n",)),
        Part("_system.ridge", ("n",)),
        Part("_system.solution.factor", ("n_factor",)),
        Part("_system.solution.sums", ("n",)),
        Part("_system.solution.diagonal", ("n",)),
        Part("_system.solution.solutions", ("c", "n")),
        Part("_system.solution.bases", ("c",)),
    )

    @staticmethod
    def _sizes(n: int, c: int) -> dict[str, int]:
        return {"n": n, "c": c, "n_factor": n * (n + 1) // 2}

    def _held(self, thing: Any) -> dict[str, Any]:
        return self._read(thing, self._sizes(thing.n, len(thing.classes))) | {
            "_columns": thing._store.held(thing.n) if thing.n else NONE,
            "n": thing.n,
            "features": thing._features,
            "probe": thing._system.probe,
            "certified": thing._system.solution.certified,
            "total": float(thing._system.solution.total),
            "before": None if thing._system.before is None else list(thing._system.before),
        }

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let a machine have learned what the state says."""
        checked_keys("state", state, self.state(thing))
        n = held_int("n", state["n"])
        d, _, _ = checked_sizes(state, "n")
        self._checked(state, self._sizes(n, len(thing.classes)))
        checked_objects(state["_columns"], d, n)
        system, solution = thing._system, thing._system.solution
        system.probe, solution.certified = held_int("probe", state["probe"]), held_int("certified", state["certified"])
        total = held_float("total", state["total"])
        if not ((state["_weights"] > 0).all() and (state["_system.ridge"] > 0).all()):
            raise ValueError("weights must be > 0")
        if n:
            thing._store.hold(state["_columns"])
            thing._make_room(n)
        self._fill(thing, state)
        system.targets[:, :n] = thing._targets(state["_labels"])
        thing.n = system.n = n
        solution.total, system.before = total, self._before(state["before"], n - 1, len(thing.classes))

    @staticmethod
    def _before(before: Any, n: int, c: int) -> Kept | None:
        """Return what the last example learned has changed: forgetting it brings that back."""
        if before is None:
            return None
        if n < 0 or not isinstance(before, list) or len(before) != 5:
            raise ValueError(f"before must be what the last example learned has changed, got {before!r}")
        shapes: tuple[tuple[int, ...], ...] = ((n,), (n,), (c, n), (c,))
        sums, diagonal, solutions, bases = (
            held_finite("before", array, shape).copy() for array, shape in zip(before[:4], shapes, strict=True)
        )
        return Kept(sums, diagonal, solutions, bases, held_float("before", before[4]))


# ----------------------------------------------------------------------------- logistic regression


class LogisticForm(MachineForm):
    """Of `KernelLogisticRegression`: packed kernel and inverses, solutions, examples."""

    known = """_codes classes class_weights n _store _asked _where _examples _count _room _scale _group _side _unit
        _pairs _betas _scores _biases _joined _work _changes"""
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

    def _sizes(self, m: int, n: int, c: int, e: int) -> dict[str, int]:
        return {"m": m, "n": n, "c": c, "e": e, "m_packed": m * (m + 1) // 2}

    def _held(self, thing: Any) -> dict[str, Any]:
        sizes = self._sizes(thing._count, thing.n, len(thing.classes), thing._weight.size)
        return self._read(thing, sizes) | {
            "_columns": thing._store.held(thing._count) if thing.n else NONE,
            "n": thing.n, "objects": thing._count, "features": thing._features, "scale": thing._scale,
            "changes": thing._changes,
        }  # fmt: skip

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let a machine have learned what the state says."""
        checked_keys("state", state, self.state(thing))
        d, m, n = checked_sizes(state, "objects")
        thing._changes = held_int("changes", state["changes"])
        c, e = len(thing.classes), held_rows("_weight", state["_weight"])
        self._checked(state, self._sizes(m, n, c, e))
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
        thing._examples = {like: place for place, like in enumerate(examples)}
        contents = checked_objects(state["_columns"], d, m)
        thing._where = {content: i for i, content in enumerate(contents)}
        if not agree or len(thing._examples) != e or len(thing._where) != m:
            raise ValueError("the distinct examples must be those of the history")
        if not ((state["_weight"] > 0).all() and (state["_total"] > 0).all() and (state["_masses"] >= 0).all()):
            raise ValueError("weights must be > 0")
        thing._scale = held_float("scale", state["scale"], 0.0)
        if n:
            thing._store.hold(state["_columns"])
            thing._make_room(m)
        room = thing._history.size
        while room < n:
            room *= 2
        thing._history = grown(thing._history, room)
        thing._places, thing._weight = np.zeros((3, e), np.int64), np.zeros(e)
        self._fill(thing, state)
        thing.n, thing._count = n, m


register(
    HingeForm(OneVsAllSVM),
    HingeForm(OneVsOneSVM),
    LeastSquaresForm(LeastSquaresSVM),
    LogisticForm(KernelLogisticRegression),
)
