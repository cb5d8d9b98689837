"""What follows from the factor of a ridge system, and what its last example has changed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from venn.machines.machine import grown
from venn.prediction import Floats
from venn.saved import held_finite, held_float, held_int


class RidgeSolution:
    """What follows from the kernel, the ridge and the targets; a system may hold the current one and a fresh one.

    Attributes
    ----------
    factor : (>= n (n + 1) / 2,) float64
        Inverse Cholesky factor W of M = K + ridge, W M W' = I, packed by rows.
    sums, diagonal : (>= n,) float64
        M^-1 1, and the diagonal of M^-1.
    solutions : (t, >= n) float64
        M^-1 targets.
    bases : (t,) float64
        Sums of the solutions.
    total : float
        Sum of `sums`.
    certified : int
        Number of examples when all equations were checked last.
    reference : (d,) float64 or None
        What objects are less before the kernel sees them.
    sweep : (4, >= n) float64 or None
        A weight of each example, the kernel matrix times these weights, the root of K(x, x), and the largest root so
        far: by them all equations are checked at once. It is not saved; None until it is needed.
    """

    def __init__(self, room: int, outputs: int, reference: Floats | None = None) -> None:
        self.reference = reference
        self.sweep: Floats | None = None
        self.factor = np.empty(room * (room + 1) // 2)
        self.sums, self.diagonal = np.zeros((2, room))
        self.solutions = np.zeros((outputs, room))
        self.bases = np.zeros(outputs)
        self.total = 0.0
        self.certified = 0

    def grow(self, n: int, room: int) -> None:
        """Make room while n examples are held."""
        self.sums, self.diagonal = grown(self.sums, room), grown(self.diagonal, room)
        self.solutions = grown(self.solutions, len(self.bases), room)
        if self.sweep is not None:
            self.sweep = grown(self.sweep, 4, room)
        factor, used = np.empty(room * (room + 1) // 2), n * (n + 1) // 2
        factor[:used] = self.factor[:used]
        self.factor = factor

    def trimmed(self, n: int) -> RidgeSolution:
        """Return a copy for n examples, without spare room."""
        copy = RidgeSolution(n, len(self.bases), self.reference)
        copy.factor[:] = self.factor[: n * (n + 1) // 2]
        copy.take_back(self.kept(n))
        copy.certified = self.certified
        return copy

    def state(self, n: int) -> dict[str, Any]:
        """Return what is saved of n examples: the packed factor, and what follows from it up to the last bits."""
        return {
            "factor": self.factor[: n * (n + 1) // 2], "sums": self.sums[:n], "diagonal": self.diagonal[:n],
            "solutions": self.solutions[:, :n], "bases": self.bases, "total": float(self.total),
            "certified": self.certified, "reference": self.reference,
        }  # fmt: skip

    def restore(self, state: dict[str, Any], n: int, features: int | None) -> None:
        """Take over a `state` of n examples, for which there is room, or raise a ValueError."""
        factor, reference = self.factor[: n * (n + 1) // 2], state["reference"]
        arrays = {"sums": self.sums[:n], "diagonal": self.diagonal[:n], "solutions": self.solutions[:, :n]}
        for name, own in (arrays | {"factor": factor, "bases": self.bases}).items():
            own[:] = held_finite(name, state[name], own.shape)
        self.total = held_float("total", state["total"])
        self.certified = held_int("certified", state["certified"])
        if reference is not None:
            self.reference = held_finite("reference", reference, (features or 0,)).copy()

    def kept(self, n: int) -> KeptRows:
        """Return copies of everything about n examples except the factor."""
        total = float(self.total)  # one of numpy's where the compiler is off
        return KeptRows(
            self.sums[:n].copy(), self.diagonal[:n].copy(), self.solutions[:, :n].copy(), self.bases.copy(), total
        )

    def take_back(self, kept: KeptRows) -> None:
        """Take over what was kept."""
        n = len(kept.sums)
        self.sums[:n], self.diagonal[:n], self.solutions[:, :n] = kept.sums, kept.diagonal, kept.solutions
        self.bases[:], self.total = kept.bases, kept.total


class KeptRows(NamedTuple):
    """What is computed from a factor and changes with every example."""

    sums: Floats
    diagonal: Floats
    solutions: Floats
    bases: Floats
    total: float


def changed_by_last(before: Any, n: int, c: int) -> KeptRows | None:
    """Return what the last learned example has changed: forgetting that example restores it."""
    if before is None:
        return None
    if n < 0 or not isinstance(before, list) or len(before) != 5:
        raise ValueError(f"before must be what the last example learned has changed, got {before!r}")
    shapes: tuple[tuple[int, ...], ...] = ((n,), (n,), (c, n), (c,))
    sums, diagonal, solutions, bases = (
        held_finite("before", array, shape).copy() for array, shape in zip(before[:4], shapes, strict=True)
    )
    return KeptRows(sums, diagonal, solutions, bases, held_float("before", before[4]))
