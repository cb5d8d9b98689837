"""Bootstrap resamples of two classes, and the machines that are trained on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from venn._compiled.linear_svm import project
from venn.batch.linear_svm import Design, LinearSVM, Start
from venn.prediction import Floats, Integers

TOLERANCE = 1e-6  # of the objective: about 1 vote in 10 000 differs from an exact fit's


class Draw(NamedTuple):
    """A resample, as multiplicities of the examples; `out` are the examples left out."""

    counts: Integers  #: (n,)
    out: Integers


def resampled(codes: Integers, resamples: int, random: Any) -> Iterator[Draw]:
    """Yield resamples that contain both classes."""
    n = len(codes)
    for _ in range(resamples):
        while True:
            counts = np.bincount(random.randint(n, size=n), minlength=n)
            if 0 < counts @ codes < n:
                break
        yield Draw(counts, np.flatnonzero(counts == 0))


class Linear:
    """Scorers w . x + b for all values of C and resamples, trained on these objects."""

    def __init__(self, X: Floats, y: Floats, Cs: Sequence[float]) -> None:
        self.design = Design(X)
        self.signs = y
        self.machines = [LinearSVM(C, TOLERANCE) for C in Cs]
        # Resamples differ little from the whole set: for each C their fits start from its fit.
        self.starts: list[Start] = []
        room = self.design.room()
        for machine in self.machines:
            last = self.starts[-1] if self.starts else None
            self.starts.append(machine.solved(self.design, y, None, None, last, room).start)

    def fit(self, draw: Draw) -> tuple[list[Any], list[str]]:
        """Return the scorers of each C, and the outcome of each fit."""
        room, weights = self.design.room(), draw.counts.astype(np.float64)
        found = [
            machine.solved(self.design, self.signs, weights, None, start, room).start.u
            for machine, start in zip(self.machines, self.starts, strict=True)
        ]
        return found, ["optimal"] * len(found)

    def own_scores(self, scorer: Floats, some: Integers) -> Floats:
        """Return scores of some of the training objects."""
        out = np.empty(self.design.n)
        project(self.design.rows, some, scorer, out)
        return out[some]

    def packed(self, scorers: list[list[Any]]) -> list[Any]:
        """Return scorers by C and resample in the form that `reader` takes, and release the training objects."""
        self.starts, self.signs = [], np.zeros(0)  # not needed any more
        self.design.forget()
        return [np.array(own) for own in scorers]

    def reader(self, X: Floats) -> Callable[[Any], Floats]:
        """Return a function from the scorers of one C to (n, B) scores of the objects."""
        inside = self.design.moved(X)

        def scores(own: Floats) -> Floats:
            return inside @ own[:, :-1].T + own[:, -1]

        return scores


class Fitted:
    """The same with fitted estimators as scorers."""

    def __init__(self, X: Floats, y: Any, base: Any, Cs: Sequence[float]) -> None:
        self.X, self.y = X, y
        self.bases = [clone(base).set_params(C=C) for C in Cs]
        self.weighted = has_fit_parameter(base, "sample_weight")

    def fit(self, draw: Draw) -> tuple[list[Any], list[str]]:
        """Return the scorers of each C, None if a fit failed, and the outcome of each fit."""
        found: list[Any] = []
        outcomes = []
        for base in self.bases:
            model = clone(base)
            try:
                if self.weighted:
                    some = np.flatnonzero(draw.counts)
                    model.fit(self.X[some], self.y[some], sample_weight=draw.counts[some].astype(np.float64))
                else:
                    rows = np.repeat(np.arange(len(self.X)), draw.counts)
                    model.fit(self.X[rows], self.y[rows])
            except (ValueError, RuntimeError) as error:
                self.error = error
                found.append(None)
                outcomes.append(type(error).__name__)
            else:
                found.append(model)
                outcomes.append(str(getattr(model, "status_", "fitted")))
        return found, outcomes

    def own_scores(self, scorer: Any, some: Integers) -> Floats:
        """Return scores of some of the training objects."""
        return np.asarray(scorer.decision_function(self.X[some]), np.float64)

    def packed(self, scorers: list[list[Any]]) -> list[Any]:
        """Return scorers by C and resample in the form that `reader` takes, and release the training objects."""
        self.X, self.y = np.zeros((0, 0)), np.zeros(0)  # not needed any more
        return scorers

    def reader(self, X: Floats) -> Callable[[Any], Floats]:
        """Return a function from the scorers of one C to (n, B) scores of the objects."""
        return lambda own: np.column_stack([scorer.decision_function(X) for scorer in own])
