"""A fitted model's answers about a few objects, by which another model in its place is recognised."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from venn.machines.sparse import SparseRows
from venn.machines.tables import TableRows
from venn.prediction import Floats
from venn.saved import restored_finite

MOST, CELLS, LEAST = 64, 1 << 15, 4  # objects that are kept: so many, in so many cells together, and at least so many
# A model on another machine, or in single precision, differs by last bits; a retrained one by more than that.
OF_RANGE, OF_SIZE = 1e-5, 1e-6  # largest difference of answers of one model: shares of their range, and of their size
DICE = 4.0  # of a model that draws random numbers: times the largest difference of two of its answers
MUST = "models must be the fitted estimators that were in use"


class AnotherModel(ValueError):
    """Raised where a model is given in the place of another one, whose scores were calibrated."""


class ReferenceAnswers:
    """Keeps the first objects that a fitted model was asked about, with its answers; no answer depends on them.

    Files hold them beside the state, of which they are no part. Answers are compared, and not the model's own arrays:
    those depend on the version of its library.
    """

    def __init__(self) -> None:
        self._answers: dict[bytes, tuple[Any, Floats]] = {}
        self.full = False  # whether there are enough

    def note(self, rows: Any, answers: Floats) -> None:
        """Keep clean rows and their (n, c) answers, each object once, until there are enough."""
        if self.full:
            return
        most = max(LEAST, min(MOST, CELLS // rows.shape[1]))
        for i in range(len(rows)):
            row = rows[i : i + 1]
            self._answers.setdefault(row.tobytes(), (row, answers[i : i + 1].copy()))
            if len(self._answers) >= most:
                self.full = True
                return

    @property
    def told(self) -> list[tuple[Any, Floats]]:
        """Objects and (n, c) answers as a file holds them: arrays, sparse rows, lists of cells."""
        together: dict[Any, list[tuple[Any, Floats]]] = {}
        for row, answer in list(self._answers.values()):  # another thread may add to them
            together.setdefault((type(row), row.shape[1]), []).append((row, answer))
        told: list[tuple[Any, Floats]] = []
        for (kind, _), pairs in together.items():
            if kind is SparseRows:
                told += pairs
                continue
            rows = np.concatenate([row.cells if kind is TableRows else row for row, _ in pairs])
            told.append((rows.tolist() if kind is TableRows else rows, np.concatenate([one for _, one in pairs])))
        return told

    def recall(self, told: Any, clean: Callable[[Any], Any], ask: Callable[[Any], Floats]) -> None:
        """Compare what a model says with what was told, and keep that.

        One that answers the same object in two ways is compared as well as that allows, with a warning.

        Parameters
        ----------
        told : list of pairs
        clean, ask : function
            They make clean rows of many objects, and (n, c) answers of those.

        Raises
        ------
        AnotherModel
            It says something else, or refuses an object.
        ValueError
            Nothing of this form was told.
        """
        if not isinstance(told, list) or not all(isinstance(one, tuple) and len(one) == 2 for one in told):
            raise ValueError(f"told must be objects and answers, got {told!r:.60}")
        try:
            kept = [(clean(rows), answers) for rows, answers in told]
        except Exception as error:
            raise AnotherModel(f"{MUST}, got one that does not take the objects which they took: {error}") from error
        for rows, answers in kept:
            width = answers.shape[1] if isinstance(answers, np.ndarray) and answers.ndim == 2 else 0
            restored_finite("told", answers, (len(rows), width))
        if len({answers.shape[1] for _, answers in kept}) > 1:
            raise ValueError("told must be answers of one length")
        if kept:
            _compare(kept, ask)
        for rows, answers in kept:
            self.note(rows, answers)


def _compare(kept: list[tuple[Any, Floats]], ask: Callable[[Any], Floats]) -> None:
    said = np.concatenate([answers for _, answers in kept])
    near = OF_RANGE * np.ptp(said, axis=0) + OF_SIZE * np.abs(said).max(axis=0)
    with suppress(Exception):  # one that takes an object at a time says so here
        if _off(np.concatenate([ask(rows) for rows, _ in kept]), said, near) <= 0:
            return
    alone = [rows[i : i + 1] for rows, _ in kept for i in range(len(rows))]
    try:
        # As it was asked before, for what is scored in a block may differ; and again, for it may throw dice.
        found, again = (np.concatenate([ask(row) for row in alone]) for _ in range(2))
    except Exception as error:
        raise AnotherModel(
            f"{MUST}, got one that refuses an object which they took: {str(error).partition(chr(10))[0]}"
        ) from error
    if found.shape != said.shape:
        raise AnotherModel(f"{MUST}, got one that answers {found.shape[1]} numbers and not {said.shape[1]}")
    dice = np.abs(again - found).max(axis=0) if _off(again, found, near) > 0 else 0.0
    if _off(found, said, near + DICE * dice) <= 0:
        if np.any(dice):
            warnings.warn(
                "a fitted model answers the same object in two ways: whether it is the one that was in use is known no "
                "better than that",
                stacklevel=2,
            )
        return
    i, k = np.unravel_index(np.argmax(np.abs(found - said) - near), said.shape)
    raise AnotherModel(
        f"{MUST}, got one that says other things of the same objects, such as {found[i, k]:.6g} in place of "
        f"{said[i, k]:.6g}: what was calibrated is the other model"
    )


def _off(one: Floats, other: Floats, near: Floats) -> float:
    """Return by how much the difference of answers exceeds what is allowed."""
    return np.inf if one.shape != other.shape else float((np.abs(one - other) - near).max())
