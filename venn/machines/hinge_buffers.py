"""The arrays of support vector machines of the hinge loss, which compiled functions share: they grow, and are saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from venn._compiled.buffers import Branches, Objects, Scratch, Solved
from venn._compiled.path import EVENTS
from venn.machines.examples import PlacedTable
from venn.machines.machine import doubled, grown
from venn.prediction import Floats, Integers
from venn.saved import checked_keys, held_codes, held_finite

# Extra columns of a matrix beyond its room, a power of two: else all rows would start at one place of the cache.
OFFSET = 8
SAVED = ("kernel", "beta", "score", "state", "bias", "drift", "size", "members", "inverse")


class HingeBuffers:
    """The arrays of k machines over the same objects. To grow is to replace arrays: take none along.

    Parameters
    ----------
    examples : PlacedTable
        The examples at the objects.
    machines : int
    sides : int
        Number of suppositions about a new object.

    Attributes
    ----------
    objects : Objects
    solved : Solved
        The current machines.
    branches : Branches
        The answers to all suppositions about the object asked about last.
    scratch : Scratch
    room, margin_room : int
        Objects, and members of a margin, that there is room for.
    """

    def __init__(self, examples: PlacedTable, machines: int, sides: int) -> None:
        self.examples, self.sides, k, s = examples, sides, machines, sides
        self.room = self.margin_room = 0
        self.objects = Objects(np.zeros((0, 0)), np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 2), np.int64))
        self.solved = Solved(
            np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 0), np.int8), np.zeros(k),
            np.zeros((k, 0), np.int64), np.zeros(k, np.int64), np.zeros((k, 0, 0)), np.zeros((k, 0, 0)), np.zeros(k),
        )  # fmt: skip
        counters = np.zeros((3, k, s), np.int64)
        self.branches = Branches(
            np.zeros((s, k, 0)), np.zeros((s, k, 0)), np.zeros((s, k, 0), np.int8), counters[0], counters[1],
            np.zeros((k, s, 0), np.int64), np.zeros((k, s, 0), np.bool_), counters[2],
            np.zeros((k, s, EVENTS, OFFSET)), np.zeros((k, s, EVENTS)), np.zeros((k, s), np.bool_), np.zeros((k, s)),
        )  # fmt: skip
        self._set_scratch()

    def _set_scratch(self) -> None:
        """Make scratch of the sizes that the rooms have now."""
        self.scratch = self.new_scratch()
        self.beside: list[Scratch] = []  # that of each thread that has solved something, while it is not in use

    def new_scratch(self) -> Scratch:
        """Return scratch for one thread."""
        width = self.room + EVENTS + 8
        return Scratch(
            np.arange(max(self.room, self.margin_room)), np.empty((9, self.margin_room)), np.empty((12, width)),
            np.empty(width, np.int64), np.empty(self.margin_room * width),
        )  # fmt: skip

    def make_room(self, objects: int) -> None:
        """Make room for `objects` distinct objects; capacities double."""
        if objects <= self.room:
            return
        room = self.room = doubled(self.room, objects)
        kernel, positive, total, sizes = self.objects
        s, k = self.branches.beta.shape[:2]
        self.objects = Objects(
            grown(kernel, room, room + OFFSET), grown(positive, k, room), grown(total, k, room), sizes
        )
        old, asked = self.solved, self.branches
        self.solved = old._replace(
            beta=grown(old.beta, k, room), score=grown(old.score, k, room), state=grown(old.state, k, room)
        )
        self.branches = asked._replace(
            beta=grown(asked.beta, s, k, room), score=grown(asked.score, s, k, room),
            state=grown(asked.state, s, k, room),
        )  # fmt: skip
        self._set_scratch()

    def make_margin_room(self, size: int) -> None:
        """Make room for margins of `size` members and a path's events; capacities double."""
        need = size + EVENTS + 4
        if need <= self.margin_room:
            return
        s, k = self.branches.beta.shape[:2]
        room = self.margin_room = doubled(max(128, self.margin_room), need)
        old, asked = self.solved, self.branches
        self.solved = old._replace(
            members=grown(old.members, k, room),
            inverse=grown(old.inverse, k, room, room + OFFSET),
            spare=grown(old.spare, k, room, room + OFFSET),
        )
        self.branches = asked._replace(
            index=grown(asked.index, k, s, room),
            alive=grown(asked.alive, k, s, room),
            terms=np.zeros((k, s, EVENTS, room + OFFSET)),
        )
        self._set_scratch()

    def take(self, machines: Mapping[int, Solved]) -> None:
        """Replace machines by those given in separate arrays."""
        self.make_margin_room(max((int(machine.size[0]) for machine in machines.values()), default=0))
        solved = self.solved
        for k, machine in machines.items():
            count, m = machine.beta.shape[1], int(machine.size[0])
            solved.beta[k, :count], solved.score[k, :count] = machine.beta[0], machine.score[0]
            solved.state[k, :count], solved.bias[k] = machine.state[0], machine.bias[0]
            solved.drift[k] = machine.drift[0]
            solved.size[k], solved.members[k, :m] = m, machine.members[0, :m]
            solved.inverse[k, : m + 1, : m + 1] = machine.inverse[0, : m + 1, : m + 1]

    def move(self, last: int, p: int) -> None:
        """Let the last object take the place of another one, which no machine depends on."""
        kernel, solved = self.objects.kernel, self.solved
        members = solved.members
        members[(members == last) & (np.arange(members.shape[1]) < solved.size[:, None])] = p
        kernel[p, :last] = kernel[last, :last]
        kernel[p, p] = kernel[last, last]
        kernel[:last, p] = kernel[p, :last]
        for values in (self.objects.positive, self.objects.total, solved.beta, solved.score, solved.state):
            values[:, p] = values[:, last]

    @property
    def state(self) -> dict[str, Any]:
        """What is saved: half of the kernel, and the machines with their margins."""
        count = self.examples.count
        kernel, solved, size = self.objects.kernel, self.solved, self.solved.size
        widest = int(size.max())
        members, inverse = solved.members[:, :widest].copy(), solved.inverse[:, : widest + 1, : widest + 1].copy()
        for own, square, used in zip(members, inverse, size.tolist(), strict=True):
            own[used:] = 0
            bordered = used + 1 if used else 0
            square[bordered:] = square[:, bordered:] = 0.0
        return {
            "kernel": kernel[np.tril_indices(count)], "beta": solved.beta[:, :count],
            "score": solved.score[:, :count], "state": solved.state[:, :count], "bias": solved.bias,
            "drift": solved.drift, "size": size, "members": members, "inverse": inverse,
        }  # fmt: skip

    def restore(self, state: Any) -> None:
        """Take over a `state` of machines over as many objects, or raise a ValueError."""
        checked_keys("buffers", state, SAVED)
        k, m = len(self.solved.bias), self.examples.count
        if m == 0:
            return
        held = held_finite("kernel", state["kernel"], (m * (m + 1) // 2,))
        size: Integers = held_codes("size", state["size"], (k,), 0, m + 1)
        widest = int(size.max())
        self.make_room(m)
        self.make_margin_room(widest)
        solved, kernel = self.solved, self.objects.kernel
        solved.size[:] = size
        solved.members[:, :widest] = held_codes("members", state["members"], (k, widest), 0, m)
        solved.inverse[:, : widest + 1, : widest + 1] = held_finite(
            "inverse", state["inverse"], (k, widest + 1, widest + 1)
        )
        solved.state[:, :m] = held_codes("state", state["state"], (k, m), -2, 3, np.int8)
        numbers: dict[str, Floats] = {
            "beta": solved.beta[:, :m], "score": solved.score[:, :m], "bias": solved.bias, "drift": solved.drift
        }  # fmt: skip
        for name, own in numbers.items():
            own[:] = held_finite(name, state[name], own.shape)
        lower = np.tril_indices(m)
        kernel[lower] = kernel.T[lower] = held
