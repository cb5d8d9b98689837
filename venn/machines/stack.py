"""Several kinds of classifiers in one scorer: what inductive predictors train when there are many examples."""

from __future__ import annotations

from typing import Any, Self
from zlib import crc32

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from venn._compiled.landmarks import landmark_scores
from venn.labels import checked_labels, label_space
from venn.machines.frozen import clean_row
from venn.machines.kernels import MultiscaleLaplacian, rate_of
from venn.machines.learners import KINDS, Learners, dense
from venn.machines.machine import NotConverged
from venn.machines.pools import fitted_pool
from venn.parameters import integer, optional
from venn.prediction import Floats, Integers
from venn.saved import Saved, component, held_finite, held_int, own, param, state

KERNEL = MultiscaleLaplacian()
PENALTIES = (0.3, 3.0, 30.0)  # of the kernel machines
START = (0.3, 0.3, 0.1, 0.0, 1.0, 0.0)  # exponents of learners, and weights of kernel machines, before any evidence
RIDGE = 1.0
FLOOR = 1e-4
TINY = 1e-300
TRIED = 3  # every third of the landmarks is left out once, to weigh the parts


def _held_fit(name: str, fit: Any, stack: Stack) -> Any:
    if not isinstance(fit, Fit | None) or (fit is None) != (stack.learned == 0):
        raise ValueError(f"{name} must be what {stack.learned} examples are fitted by, got {fit!r}")
    c, d = len(stack.classes), stack.features
    if fit is not None and (fit.learners.c, len(fit.learners.scale[0])) != (c, d):
        raise ValueError(f"{name} must be of {c} classes and {d} features")
    return fit


@component
class Stack(Saved):
    """A forest, boosted trees, a logistic regression and kernel machines in one scorer, with nothing to choose.

    It is fitted to many examples at once, by an inductive predictor: see `InductiveVennAbers`. The scores of an
    object are the logarithms of the odds of each class, by a product of powers of what its parts say; the powers are
    fitted to what each part says of examples that it has not seen, all of them among those that train. The kernel
    machines are least squares with three penalties on the first `landmarks` examples.

    Copies that `fresh` makes of one stack share what is fitted to the same examples: the second costs nothing.

    Parameters
    ----------
    classes : sequence of at least 2 distinct labels
    landmarks : int >= 1, default 2000
        Most examples that the kernel machines learn: time for an object and memory grow with it.

    Attributes
    ----------
    learned : int
        Number of examples that it is fitted to.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> from venn.schedules import Prefix
    >>> model = venn.InductiveVennAbers(Stack(["no", "yes"]), schedule=Prefix(0.7, first=60))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> model.learn_many(X, ["yes" if x[0] > 0 else "no" for x in X])
    >>> model.predict_one([2.0, 0.0]).label
    'yes'
    """

    log_odds = True  #: what scores are

    classes: Any = param(checked_labels, 2)
    landmarks: int = param(integer, 1, default=2000)
    learned: int = state(held_int, start=0)
    features: int | None = state(optional, held_int, 1, start=None)
    fit: Any = state(_held_fit, own(lambda stack: stack), start=None)

    def derive(self) -> None:
        """Forget what copies share."""
        self.space = label_space(self.classes)
        self.latest: dict[int, Fit] = {}  # by a checksum of the examples, shared by copies: the last one alone

    def fresh(self) -> Self:
        """Return one that is fitted to nothing."""
        new = super().fresh()
        new.latest = self.latest
        return new

    def fit_rows(self, X: Any, codes: Integers) -> None:
        """Fit all parts to (n, d) objects and (n,) class codes, n >= 1, and forget what was fitted before.

        Raises
        ------
        NotConverged
            A part cannot be fitted.
        """
        X = dense(X)
        key = crc32(codes.tobytes(), crc32(X.tobytes()))
        found = self.latest.get(key)
        if found is None:
            try:
                found = Fit.of(X, codes, len(self.classes), self.landmarks)
            except (ValueError, np.linalg.LinAlgError) as error:
                raise NotConverged(f"the stack must be fitted to {len(X)} examples: {error}") from error
            self.latest.clear()
            self.latest[key] = found
        self.fit, self.learned, self.features = found, len(X), X.shape[1]

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of one object; 0 before anything is fitted."""
        return self.score_rows(clean_row(x, self.features, None, False))[0]

    def score_rows(self, rows: Any) -> Floats:
        """Return the (n, c) scores of n objects."""
        if self.fit is None:
            return np.zeros((len(rows), len(self.classes)))
        return self.fit.scores(rows)


def _held_learners(name: str, learners: Any) -> Learners:
    if not isinstance(learners, Learners):
        raise ValueError(f"{name} must be Learners, got {learners!r}")
    return learners


@component
class Fit(Saved):
    """What a stack has fitted: its parts, and how they are put together.

    Parameters
    ----------
    learners : Learners
    columns : (d, m) float64
        Scaled landmarks.
    coefficients : (3, c, m) float64
    bases : (3, c) float64
    powers : (6,) float64
    biases : (c,) float64
    """

    learners: Learners = param(_held_learners)
    columns: Floats = param(held_finite, own(lambda fit: (fit.learners.scale.shape[-1], np.shape(fit.columns)[-1])))
    coefficients: Floats = param(held_finite, own(lambda fit: (len(PENALTIES), fit.learners.c, fit.columns.shape[1])))
    bases: Floats = param(held_finite, own(lambda fit: (len(PENALTIES), fit.learners.c)))
    powers: Floats = param(held_finite, (KINDS + len(PENALTIES),))
    biases: Floats = param(held_finite, own(lambda fit: (fit.learners.c,)))

    def derive(self) -> None:
        """Remember nothing."""
        self._asked: tuple[bytes, Floats] | None = None

    @classmethod
    def of(cls, X: Floats, codes: Integers, c: int, landmarks: int) -> Self:
        """Return what is fitted to n examples."""
        first = slice(0, landmarks)
        part = np.arange(0, min(len(X), landmarks), TRIED)
        learners, said = Learners.fitted_and_tried(X, codes, c, part)
        columns = np.ascontiguousarray(learners.place(X[first]).T)
        targets = np.where(codes[first, None] == np.arange(c), 1.0, -1.0)
        gram = kernel_rows(columns, columns.T)
        coefficients, bases, left_out = zip(*[ridge(gram, targets, 1 / C) for C in PENALTIES], strict=True)
        logs = np.concatenate([logarithms(said), np.array(left_out)[:, part]]).swapaxes(0, 1)
        powers, biases = fitted_pool(np.ascontiguousarray(logs), codes[part], np.array(START), RIDGE)
        arrays = np.array(coefficients).swapaxes(1, 2), np.array(bases)
        return cls(learners, columns, np.ascontiguousarray(arrays[0]), arrays[1], powers, biases)

    def scores(self, rows: Any) -> Floats:
        """Return the (n, c) logarithms of odds for n objects; those of the last single one are kept."""
        X = dense(rows)
        if len(X) != 1:
            return self._scores(X)
        key = X.tobytes()
        if self._asked is None or self._asked[0] != key:
            self._asked = key, self._scores(X)
        return self._asked[1].copy()

    def _scores(self, X: Floats) -> Floats:
        placed = np.ascontiguousarray(self.learners.place(X))
        total = np.tile(self.biases, (len(X), 1))
        for power, logs in zip(self.powers, logarithms(self.learners.probas_of(placed)), strict=False):
            total += power * logs
        rate = rate_of(KERNEL.gamma, placed.shape[1])
        landmark_scores(
            self.columns, placed, np.array(KERNEL.widths) * rate, KERNEL.linear, rate, self.powers[KINDS:],
            self.coefficients, self.bases, total,
        )  # fmt: skip
        return odds(total)


def kernel_rows(columns: Floats, objects: Floats) -> Floats:
    """Return the (n, m) kernel of n objects (n, d) with m landmarks (d, m)."""
    rows = np.empty((len(objects), columns.shape[1]))
    for x, row in zip(np.ascontiguousarray(objects), rows, strict=True):
        KERNEL.row(columns, len(row), x, row)
    return rows


def ridge(gram: Floats, targets: Floats, penalty: float) -> tuple[Floats, Floats, Floats]:
    """Return (m, c) coefficients, (c,) constants, and (m, c) scores of each example by the others (least squares)."""
    m = len(gram)
    inverse = cho_solve(cho_factor(gram + penalty * np.eye(m), lower=True), np.eye(m))
    sums = inverse.sum(axis=0)
    total = sums.sum()
    bases = sums @ targets / total
    coefficients = inverse @ targets - sums[:, None] * bases
    left = np.diag(inverse) - sums**2 / total
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = targets - coefficients / left[:, None]
    return coefficients, bases, np.where(np.isfinite(left_out), left_out, 0.0)


def logarithms(said: Floats) -> Floats:
    """Return logarithms of probabilities (.., c), none of them 0; where there are none all classes are alike."""
    c = said.shape[-1]
    return np.log((1 - FLOOR) * np.where(np.isnan(said), 1 / c, said) + FLOOR / c)


def odds(total: Floats) -> Floats:
    """Return the (n, c) logarithms of the odds of each class, given logarithms of probabilities up to a constant."""
    if total.shape[1] == 2:  # of two classes one is the other's opposite, to the last bit
        return (total[:, :1] - total[:, 1:]) * [1.0, -1.0]
    off = total - total.max(axis=1, keepdims=True)
    shares = np.exp(off)
    out = np.empty_like(off)
    for k in range(out.shape[1]):
        out[:, k] = off[:, k] - np.log(np.maximum(np.delete(shares, k, axis=1).sum(axis=1), TINY))
    return out
