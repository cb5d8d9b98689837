"""Squared spans, from which the deleted scores of support vector machines of the hinge loss are computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.buffers import Branches, Objects, Solved
from venn._compiled.span import delete_standing, delete_step
from venn.machines.examples import PlacedTable
from venn.prediction import Floats, Integers
from venn.saved import checked_keys, held_array, held_bool


class Entries(NamedTuple):
    """Examples whose deleted scores are wanted: objects, class codes, and weights times those of the classes."""

    objects: Integers
    codes: Integers
    weights: Floats


class Spans:
    """The squared span of each bounded object by each machine: its distance from the span of the free support vectors.

    One costs the square of the margin's size. So the spans by the current machines are computed once. Where they are
    `kept`, learning updates them by the rank-one terms of its path; else they are computed anew after it. What the
    machine was made for decides which, never what it was asked: the last bits differ.

    Parameters
    ----------
    examples : PlacedTable
        The examples at the objects.
    signs : (machines, c) of +1 or -1
        Whether examples of a class are positive or negative for a machine.
    sides : int
        What a machine may suppose of a new object.

    Attributes
    ----------
    kept : bool
        Whether learning updates spans.
    known : (machines, room) float64
        Spans by the current machines, NaN where unknown. Empty until one is needed.
    """

    def __init__(self, examples: PlacedTable, signs: NDArray[np.int8], sides: int) -> None:
        self.examples = examples
        self.signs = signs
        self.kept = False
        self.known = np.zeros((len(signs), 0))
        self._supposed = np.zeros((sides, len(signs), 0))  # by the branches about the object asked about last

    def make_room(self, room: int) -> None:
        """Make room for as many objects."""
        old = self.known.shape[1]
        if old < room:
            # What is known stays: the amount of room depends on questions too.
            known, self.known = self.known, np.full((len(self.signs), room), np.nan)
            self.known[:, :old] = known
            self._supposed = np.full((len(self._supposed), *self.known.shape), np.nan)

    def standing(
        self,
        C: float,
        scale: float,
        objects: Objects,
        solved: Solved,
        count: int,
        entries: Entries,
        test: int = -1,
    ) -> Floats:
        """Return the (machines, entries) deleted scores by the current machines; `test` is not their example."""
        self.make_room(objects.positive.shape[1])
        scores = np.empty((len(self.signs), entries.objects.size))
        delete_standing(
            count, scale, C, self.signs, objects, solved, self.known, *entries, test, scores,
        )  # fmt: skip
        return scores

    def supposing(
        self,
        p: int,
        supposed: Floats,
        C: float,
        scale: float,
        objects: Objects,
        solved: Solved,
        branches: Branches,
        count: int,
        entries: Entries,
        test: int,
    ) -> Floats:
        """Return the (sides, machines, entries) deleted scores under suppositions about object p.

        `supposed` are the weights of the new example, 0 where nothing is supposed. The new example is entry `test`.
        """
        self.make_room(objects.positive.shape[1])
        # Zeros where a machine has no such supposition: readers compare such scores before they ignore them.
        scores = np.zeros((*supposed.shape, entries.objects.size))
        delete_step(
            p, count, scale, C, self.signs, supposed, objects, solved, branches, self.known, self._supposed, *entries,
            test, scores,
        )  # fmt: skip
        return scores

    def take(self, sides: Integers, count: int) -> None:
        """Take over the spans by the branches `sides`."""
        if not self.kept:
            self.known.fill(np.nan)
            return
        self.known[:, :count] = self._supposed[sides, np.arange(len(sides)), :count]

    def forget_machines(self, machines: list[int]) -> None:
        """Drop the spans by machines that have changed."""
        self.known[machines] = np.nan

    def forget_object(self, p: int) -> None:
        """Drop the spans of an object: its place holds another one now."""
        self.known[:, p : p + 1] = np.nan

    def move(self, p: int, to: int) -> None:
        """Move the spans of an object."""
        known = self.known[:, p : p + 1]
        self.known[:, to : to + 1] = known if known.size else np.nan

    @property
    def state(self) -> dict[str, Any]:
        """Spans that are kept; others are computed again, to the last bit, from what a machine has learned."""
        known = self.known[:, : self.examples.count] if self.kept and self.known.size else None
        return {"kept": self.kept, "known": known}

    def restore(self, state: Any) -> None:
        """Take over a `state`, or raise a ValueError."""
        checked_keys("spans", state, ("kept", "known"))
        self.kept, known = held_bool("kept", state["kept"]), state["known"]
        self.known = np.zeros((len(self.signs), 0))
        if known is not None:
            self.known = held_array("known", known, (len(self.signs), self.examples.count)).copy()
