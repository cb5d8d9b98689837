"""Defensive forecasting: probabilities with a theorem on any sequence, whatever makes it."""

from __future__ import annotations

from math import lgamma, log, sqrt
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.any_sequence import add_features, coordinates, defensive_forecast
from venn.labels import Classes
from venn.machines.kernels import Kernel, checked_kernel
from venn.machines.machine import grown
from venn.machines.scale import Placing, Scale, checked_scale, fixed_by, held_placing
from venn.machines.store import Content, ObjectStore
from venn.parameters import integer, optional, positive
from venn.prediction import Floats, Forecast, Label
from venn.predictors.learning import Predictor
from venn.saved import component, held_finite, held_float, held_int, own, param, state

LARGEST_GAMMA = 50.0  # of forecasts: with more, the powers of its series leave double precision
NEGLIGIBLE = log(2.0**-60)  # of the terms of the series
EXPLAINED = 1e-10  # an object of which the landmarks leave less than this part of K(x, x) is no new landmark
ROUNDING = 1e-9


class Inequality(NamedTuple):
    """The inequality of defensive forecasting for the examples so far.

    Examples
    --------
    >>> inequality = Inequality(n=50, left=8.0, right=9.0, missed=0.0)
    >>> inequality.holds, inequality.bound()  # whatever f of norm 1: its residuals add up to at most this
    (True, 3.0)
    """

    n: int  #: examples
    left: float  #: sum over all pairs of examples of r_i r_j k_ij, with r = y - p
    right: float  #: sum over all examples of p (1 - p) k_ii
    missed: float  #: what landmarks leave out: sum of |r| sqrt(K(x, x) - what the landmarks give); 0 without landmarks

    @property
    def holds(self) -> bool:
        """Whether left <= right, up to rounding; it always does."""
        return self.left <= self.right + ROUNDING * (1.0 + self.right)

    def bound(self, norm: float = 1.0) -> float:
        """Return what |sum of (y - p) f(p, x)| is at most, for every f whose norm in the kernel's space is `norm`."""
        return norm * (sqrt(self.right) + self.missed)


class Bracket(NamedTuple):
    """What follows from an object before its label is known."""

    key: bytes
    x: Content
    features: Floats  #: kernel of the objects with x; by landmarks its coordinates
    forecast: float
    past: float  #: sum of r_i k_i at the forecast
    by_object: float  #: the part of it that belongs to objects
    own: float  #: 1 + K(x, x) as the landmarks give it
    left_out: float  #: of K(x, x) by the landmarks
    new: bool  #: whether x is kept


def _two_labels(name: str, classes: Any) -> tuple[Label, ...]:
    if len(labels := Classes(classes).labels) != 2:
        raise ValueError(f"{name} must be two labels, for the theorem is about two, got {list(classes)!r}")
    return labels


def _checked_gamma(name: str, gamma: Any) -> float:
    if positive(name, gamma) > LARGEST_GAMMA:
        raise ValueError(f"{name} must be at most {LARGEST_GAMMA:g}, got {gamma!r}")
    return float(gamma)


def _teaching(name: str, scale: Any) -> Any:
    given = checked_scale(name, scale)
    return Scale(given.first, given.ranges, teach=True) if given else given


def roots_of(gamma: float) -> Floats:
    """Return the roots of the terms of the series of the kernel of forecasts, those that are not negligible."""
    rate, terms = 2.0 * gamma, 1
    while terms * log(rate) - lgamma(terms + 1.0) > NEGLIGIBLE or terms < rate:
        terms += 1
    return np.exp([0.5 * (j * log(rate) - lgamma(j + 1.0)) for j in range(terms)])


@component
class Defensive(Predictor):
    """Probabilities of two classes that no test of a kernel can refute, on any sequence: no assumption about the data.

    The forecast p of the second class is the one at which, whichever label comes, the kernel's best test against the
    forecasts so far does not gain (K29). With r = y - p, y = 1 for the second class, and the kernel

        k((p, x), (q, z)) = exp(-gamma (p - q)^2) + K(x, z),

    sum_ij r_i r_j k_ij <= sum_i p_i (1 - p_i) k_ii **on every sequence**, also one made by an adversary who sees each
    forecast before choosing the label. Hence |sum_i r_i f(p_i, x_i)| <= |f| sqrt(sum_i p_i (1 - p_i) k_ii) for every f
    of the kernel's space, where the right side grows as the root of the number of examples: wherever a smooth
    function of forecast and object looks, as many labels come as were forecast. `certificate` has both sides for the
    examples so far. This is calibration and resolution of averages; nothing is said of one forecast, and it is no
    statement about probabilities under exchangeability: `guaranteed` of a prediction is "nothing", and
    `on_any_sequence` of the predictor is "defensive forecasting".

    A forecast may be exactly 0 or 1 and wrong: the theorem is about averages, so clip it where log loss counts.

    The theorem is about forecasts at the time of learning: each label is learned before the next forecast. Where labels
    come late, it holds of the forecasts made when they come. Nothing may be forgotten: a window voids it.

    Without landmarks a step costs O(n d) and memory grows with n. **With landmarks** the first objects that are not
    explained by those before are kept, at most so many; memory is O(M d + M^2) and a step O(M d + M^2). The
    theorem then holds as it stands with another kernel in place of K, that of the coordinates by the landmarks. For
    functions of K's own space it costs an addend: |sum r f| <= |f| (sqrt(right) + missed), with
    missed = sum |r| sqrt(K(x, x) - K by the landmarks), which grows with n unless the landmarks explain the objects. It
    is in the certificate as a number.

    Parameters
    ----------
    kernel : Kernel
        K, of objects: such as `RBF(0.5)`.
    classes : sequence of two labels
    gamma : float > 0, at most 50, default 10
        Of the kernel of forecasts: the larger, the finer the differences of forecasts that are tested.
    landmarks : int >= 1, optional
        How many objects are kept. By default all.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`; by default they are taken as they are. K sees distances, so without a scale
        the column of the largest numbers decides alone. Until the first objects have fixed it all count as equal, and
        forecasts are made by the labels so far: they always teach, and no example is lost. The theorem is then about
        the objects as scaled.

    Attributes
    ----------
    n : int
        Number of examples learned.
    on_any_sequence : str
        "defensive forecasting".

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or an object or label.

    References
    ----------
    Vovk, Takemura & Shafer (2005), "Defensive forecasting"; Vovk (2005), "Non-asymptotic calibration and resolution",
    arXiv:cs/0506004. The landmarks' addend follows by projection.

    Examples
    --------
    The label is always the one that the forecast thinks less likely; on average the forecasts are right all the same:

    >>> import venn
    >>> model = Defensive(venn.RBF(1.0), ["no", "yes"])
    >>> errors = []
    >>> for _ in range(100):
    ...     p = model.predict_one([0.0]).proba[1]
    ...     y = "yes" if p < 0.5 else "no"
    ...     errors.append((y == "yes") - p)
    ...     model.learn_one([0.0], y)
    >>> bool(abs(sum(errors)) / 100 < 0.05), model.certificate.holds
    (True, True)
    """

    on_any_sequence = "defensive forecasting"

    kernel: Kernel = param(checked_kernel)
    classes: Any = param(_two_labels)
    gamma: float = param(_checked_gamma, default=10.0, kw_only=True)
    landmarks: int | None = param(optional, integer, 1, default=None, kw_only=True)
    scale: Any = param(_teaching, default=None, kw_only=True)
    n: int = state(held_int, start=0)
    _placing: Placing | None = state(
        held_placing, own(attrgetter("_placing")),
        start=own(lambda m: Placing(m.scale, Classes(m.classes)) if m.scale else None), within=True,
    )  # fmt: skip
    _store: ObjectStore = state(start=own(lambda m: ObjectStore(m.kernel, m.scale is not None)), within=True)
    # r by object; with landmarks the sum of r times the coordinates
    _weights: Floats = state(held_finite, own(lambda m: (m.kept,)), start=own(lambda _: np.zeros(0)))
    _factor: Floats = state(
        held_finite, own(lambda m: (0 if m.landmarks is None else m.kept,) * 2), start=own(lambda _: np.zeros((0, 0)))
    )
    _of_forecasts: Floats = state(
        held_finite, own(lambda m: roots_of(m.gamma).shape), start=own(lambda m: np.zeros_like(roots_of(m.gamma)))
    )
    _of_objects: float = state(held_float, start=0.0)
    _right: float = state(held_float, start=0.0)
    _missed: float = state(held_float, start=0.0)

    def derive(self) -> None:
        """Take the labels, and the roots of the series."""
        self.space = Classes(self.classes)
        self._roots = roots_of(self.gamma)
        self._asked: Bracket | None = None

    @property
    def kept(self) -> int:
        """Number of objects kept."""
        return self._store.n

    # ---------------------------------------------------------------------- use

    @property
    def certificate(self) -> Inequality:
        """Both sides of the inequality for the examples learned so far."""
        of_forecasts = float(self._of_forecasts @ self._of_forecasts)
        return Inequality(self.n, of_forecasts + self._of_objects, self._right, self._missed)

    def _question(self, x: Any) -> Bracket:
        clean = self._store.clean(x if self._placing is None else self._placing.place(x))
        key = clean.tobytes()
        if self._asked is None or self._asked.key != key:
            self._asked = self._answered(key, clean)
        return self._asked

    def _answered(self, key: bytes, x: Content) -> Bracket:
        kept = self.kept
        row = self._store.row_with(kept, x)
        whole, left_out, new, features = float(row[kept]), 0.0, True, row[:kept]
        of_object, own = 0.0, whole
        if self.landmarks is None:
            of_object = float(self._weights @ features)
        else:
            features = np.empty(kept)
            given = float(coordinates(self._factor, kept, row, features))
            of_object = float(self._weights @ features)
            new = kept < self.landmarks and whole - given > EXPLAINED * whole
            own, left_out = (whole, 0.0) if new else (given, max(0.0, whole - given))
        p, past = defensive_forecast(self.gamma, self._roots, self._of_forecasts, of_object, 1.0 + own)
        return Bracket(key, x, features, float(p), past, of_object, 1.0 + own, left_out, new)

    def predict_one(self, x: Any) -> Forecast:
        """Return the forecast for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row if the kernel takes one
        """
        p = self._question(x).forecast
        return Forecast(np.array([1.0 - p, p]), self.classes)

    def note(self, x: Any, y: Label) -> tuple[Bracket, int]:
        """Return what is known before the label, and its code; raise what learning would raise."""
        asked = self._question(x)
        return asked, self.space.encode(y)

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        noted : optional
            What `note` returned.
        """
        asked, code = self.note(x, y) if noted is None else noted
        r, p, kept = code - asked.forecast, asked.forecast, self.kept
        if asked.new:
            self._keep(asked)
        if self.landmarks is None:
            self._weights[kept] = r
        else:
            self._weights[:kept] += r * asked.features
            if asked.new:
                self._weights[kept] = r * self._factor[kept, kept]
            self._missed += abs(r) * sqrt(asked.left_out)
        self._of_objects += r * (2.0 * asked.by_object + r * (asked.own - 1.0))
        add_features(p, self.gamma, self._roots, r, self._of_forecasts)
        self._right += p * (1.0 - p) * asked.own
        self.n += 1
        self._asked = None
        placing = self._placing
        if placing is not None and placing.open:
            rows = [*placing.rows, placing.in_form(x)]
            placing.advance(rows, [*placing.labels, y], fixed_by(rows) if len(rows) == placing.scale.first else None)

    def _keep(self, asked: Bracket) -> None:
        """Keep an object, with room for its numbers."""
        kept = self.kept
        self._store.look(kept)
        self._store.put(kept, asked.x)
        self._store.keep(kept)
        self._weights = grown(self._weights, kept + 1)
        if self.landmarks is not None:
            self._factor = grown(self._factor, kept + 1, kept + 1)
            self._factor[kept, :kept] = asked.features
            given = float(asked.features @ asked.features)
            self._factor[kept, kept] = sqrt(asked.own - 1.0 - given)
