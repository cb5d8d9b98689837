"""Predictive distributions by a ridge machine around a stack: all examples teach, the later ones are ranked."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from venn.distribution import PredictiveDistribution
from venn.labels import Real
from venn.machines.digests import digests_of
from venn.machines.kernel_ridge import KernelRidge, Lines
from venn.machines.kernels import MultiscaleLaplacian
from venn.machines.number_stack import NumberFit
from venn.machines.objects import ObjectRows, clean_row
from venn.machines.scale import Scale, ScaleLike, checked_scale
from venn.machines.shapes import PLAIN, Shape, nearest, within
from venn.machines.stack import dense
from venn.parameters import instance, integer, optional
from venn.prediction import Floats
from venn.predictors.refits import FittedAhead
from venn.saved import component, own, param, part, restored_int, state
from venn.schedules import Prefix, Schedule, checked_schedule
from venn.smoothing import Smoothing

C = 10.0  # of the machine before the first training
LANDMARKS = 2000


def first_ridge(scale: Any) -> KernelRidge:
    """Return the machine before the first training."""
    return KernelRidge(MultiscaleLaplacian(), C, scale=scale)


@component
class StackedDistribution(FittedAhead):
    """Predictive distributions for a number with nothing to choose, for up to some thousands of examples.

    At growing numbers of examples trees, their weights, a penalty and a model of the spread are fitted to the first
    examples, as a `NumberStack` does it. Around that stands kernel ridge regression, exact online: it learns what the
    trees leave of all labels, divided by the spread. Ranks as those of `ConformalDistribution` are then made of
    studentised residuals of the later examples, which the fit has not seen. So intervals are wide in proportion to the
    spread, and the more so the farther an object is from the others.

    Labels are taken in one of two shapes, of the examples that the fit is made of: as they are, but for those far out,
    or as logarithms from one usual deviation on. So one wild label makes no interval wide, and skewed labels get skewed
    intervals. If some numbers are labels again and again, as zeros and counts are, intervals end at such numbers, where
    the fit has seen none between them. Where that is better they reach to the quantiles of a forest at least. All of
    this is chosen by intervals of the examples of the fit, each by parts that have not seen it.

    Before the first training it is a `ConformalDistribution` on a `KernelRidge` with its scale. The first examples fix
    the shape in which it takes labels, where they fix the scale: only those far out are drawn near.

    Theorems when examples are exchangeable: given the examples that the last training has used, all later ones are
    treated alike. So `p_value` of the true label is uniform on [0, 1] at each step; and from one training to the next
    the p-values are independent. Intervals miss with probability at most epsilon: later labels where the fit has seen
    none count as the strangest, below and above. How narrow intervals are is no theorem.

    Parameters
    ----------
    schedule : Schedule, optional
        When to train, and on which share. By default `Prefix(0.6, first=125)`.
    scale : Scale, default Scale(teach=True)
        Of the objects until the first training.
    seed : int >= 0, default 0
        Of the random numbers that break ties, one for each step and object.

    Attributes
    ----------
    n : int
        Number of examples learned.
    fit : NumberFit or None
        What was fitted last.
    shape : Shape or None
        How labels are taken; None: as they are.
    strays : int
        Number of later labels where, by the fit, there are none.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> model = StackedDistribution(Prefix(0.5, first=40))
    >>> rng = np.random.default_rng(0)
    >>> for x in rng.uniform(size=(60, 2)):
    ...     model.learn_one(x, 2 * x[0])
    >>> prediction = model.predict_one([0.5, 0.5])
    >>> bool(abs(prediction.label - 1) < 0.2), prediction.guaranteed
    (True, 'error rate')
    """

    questioned = True

    schedule: Schedule = param(checked_schedule, default=Prefix(0.6, first=125))
    scale: ScaleLike = param(checked_scale, default=Scale(teach=True))
    seed: int = param(integer, 0, default=0)

    fit: NumberFit | None = state(part(NumberFit, features="_features"), start=None)
    _fitted: int = state(restored_int, 0, own(attrgetter("n")), start=0)
    strays: int = state(restored_int, 0, own(attrgetter("n")), start=0)
    shape: Shape | None = state(optional, instance, Shape, "a Shape", start=None)
    _ridge: Any = state(part(KernelRidge, none=False, learned="n"), start=own(lambda m: first_ridge(m.scale)))

    classes, space = (), Real()

    def settled(self, time: int) -> int:
        """Return how many examples, the first ones, train at a time."""
        calibrates = self.schedule.split(np.ones(time, np.bool_), np.random.default_rng(0))
        return time - int(np.count_nonzero(calibrates))

    def derive(self) -> None:
        """Find the next training; set up the draws that break ties."""
        super().derive()
        self._smoothing = Smoothing(self.seed)
        self._asked: tuple[bytes, tuple[Any, float, float]] | None = None  # the last object in the machine's form

    # --------------------------------------------------------------- predicting

    def predict_one(self, x: Any) -> PredictiveDistribution:
        """Return the predictive distribution for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        """
        row = clean_row(x, self._features)
        offset, size, lines = self._answer(row)
        tau = self._smoothing.at(self.n, int(digests_of(row)[0]))
        points = np.sort(lines.critical_points(slice(self._spent(lines), None)))
        if not len(points):
            origin = size * float(lines.test_scores[0]) + offset
            return PredictiveDistribution([], tau, origin=origin if self.shape is None else self.shape.back(origin))
        # Labels are compared as the machine knows them: shaped, less what the trees say, and divided by the spread.
        points, origin, grid = size * points + offset, size * lines.origin + offset, size * lines.grid
        if self.shape is None:
            return PredictiveDistribution(points, tau, origin=origin, grid=grid)
        ties = [self.shape.back(one) for one in (points, points - grid, points + grid)]
        lower = upper = None
        if self.fit is not None:
            lower, upper = self.fit.ends(dense(row), *ties[1:])
            near = nearest(self.fit.gaps, ties[0])  # the point is such a number up to rounding
            ties[0] = np.where((ties[1] <= near) & (near <= ties[2]), near, ties[0])
        return PredictiveDistribution(
            ties[0], tau, lows=ties[1], highs=ties[2], lower=lower, upper=upper, strays=self.strays
        )

    def _spent(self, lines: Lines) -> int:
        """Return how many of the first examples are not ranked."""
        return lines.aside if self.fit is None else self._fitted

    def _placed(self, row: ObjectRows) -> tuple[Any, float, float]:
        """Return an object in the machine's form, the trees' forecast, and its spread relative to the mean spread."""
        if self.fit is None:
            return row[0], 0.0, 1.0
        placed = self.fit.place(row)
        said, spreads = self.fit.around(placed)
        return self.fit.stretched(placed)[0], float(said[0]), float(spreads[0]) / (self.fit.spread * self.fit.unit)

    @staticmethod
    def _astray(fit: NumberFit | None, labels: Any) -> int:
        """Return how many labels lie where the fit has seen none."""
        return 0 if fit is None else int(np.count_nonzero(within(fit.gaps, labels)[0]))

    def _shaped(self, labels: Any) -> Any:
        """Return labels as they are fitted to."""
        return labels if self.shape is None else self.shape.of(labels)

    def _answer(self, row: ObjectRows) -> tuple[float, float, Lines]:
        key = row.tobytes()
        if self._asked is None or self._asked[0] != key:
            self._asked = key, self._placed(row)
        placed, offset, size = self._asked[1]
        return offset, size, self._ridge.answer(placed)

    # ----------------------------------------------------------------- learning

    def prepare(self, x: Any, y: Any) -> tuple[ObjectRows, Floats]:
        """Return the example as rows and labels, or raise what learning it would raise: the machine solves for it."""
        row, label = clean_row(x, self._features), self.space.encode(y)
        if self.fit is None:
            self._ridge.check(row[0], label)
        self._answer(row)
        return row, np.array([label])

    def commit(self, x: Any, y: Any, prepared: Any = None) -> None:
        """Learn one example, and train if the schedule says so.

        Raises
        ------
        NotConverged
            A training failed: the example is learned, and what was fitted before goes on.
        """
        row, labels = prepared or self.prepare(x, y)
        key, label = row.tobytes(), labels.item()
        placed, offset, size = self._asked[1] if self._asked and self._asked[0] == key else self._placed(row)
        self._ridge.learn_one(placed, (self._shaped(label) - offset) / size)
        self.strays += self._astray(self.fit, label)
        before = self.fit
        super().commit(x, y, (row, labels))
        if self._history is not None and before is self.fit and self.shape is None and self.n == self._ridge.aside:
            self._take_shape(*self._history.examples)

    def _take_shape(self, X: Any, labels: Any, calibrates: Any) -> None:
        """Fix the shape of labels, with the scale, by the first examples, which are not ranked."""
        shape, ridge = Shape.fitted(labels, PLAIN), first_ridge(self.scale)
        for row, label in zip(X, shape.of(labels), strict=True):
            ridge.learn_one(row, float(label))
        self.shape, self._ridge = shape, ridge

    def _made(self) -> tuple[Any, ...]:
        return NumberFit.of_all, LANDMARKS

    def _take(self, fit: Any, X: Any, codes: Any) -> None:
        """Teach all examples to a new machine that uses the fit to the first ones."""
        labels, (fit, offsets, spreads) = codes, fit
        m, placed = len(offsets), fit.place(X)
        later = fit.around(placed[m:])
        offsets, spreads = (np.concatenate(both) for both in zip((offsets, spreads), later, strict=True))
        targets = (fit.shape.of(labels) - offsets) * (fit.spread * fit.unit / spreads)
        ridge = KernelRidge(MultiscaleLaplacian(), fit.C, scale=False)
        for row, target in zip(fit.stretched(placed), targets, strict=True):
            ridge.learn_one(row, target)
        self.fit, self._ridge, self._fitted, self._asked, self.shape = fit, ridge, m, None, fit.shape
        self.strays = self._astray(fit, labels[m:])
