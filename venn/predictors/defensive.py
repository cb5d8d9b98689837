"""Defensive forecasting: probabilities with a theorem on any sequence, whatever makes it."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.defensive import add_features, coordinates, defensive_forecast
from venn.labels import Classes, HasLabels
from venn.machines.columns import fixed_by
from venn.machines.kernels import Kernel, checked_kernel
from venn.machines.machine import grown
from venn.machines.scale import Placing, Scale, ScaleLike, checked_scale
from venn.machines.sparse import SparseRows
from venn.machines.store import Content, ObjectStore
from venn.parameters import integer, positive
from venn.prediction import Floats, Forecast, Label
from venn.predictors.learning import Predictor
from venn.saved import held_finite, held_float, held_int, held_rows, saved

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


@saved
class Defensive(HasLabels, Predictor):
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

    def __init__(
        self,
        kernel: Kernel,
        classes: Sequence[Label],
        *,
        gamma: float = 10.0,
        landmarks: int | None = None,
        scale: ScaleLike = None,
    ) -> None:
        self.kernel = checked_kernel("kernel", kernel)
        self.space = Classes(classes)
        if len(self.classes) != 2:
            raise ValueError(f"classes must be two labels, for the theorem is about two, got {list(classes)!r}")
        self.gamma = positive("gamma", gamma)
        if self.gamma > LARGEST_GAMMA:
            raise ValueError(f"gamma must be at most {LARGEST_GAMMA:g}, got {gamma!r}")
        self.landmarks = None if landmarks is None else integer("landmarks", landmarks, 1)
        given = checked_scale("scale", scale)
        self.scale = Scale(given.first, given.ranges, teach=True) if given else given
        self._placing = Placing(self.scale, self.space) if self.scale else None
        rate, terms = 2.0 * self.gamma, 1
        while terms * log(rate) - lgamma(terms + 1.0) > NEGLIGIBLE or terms < rate:
            terms += 1
        self._roots: Floats = np.exp([0.5 * (j * log(rate) - lgamma(j + 1.0)) for j in range(terms)])
        self.n = 0
        self._store = ObjectStore(self.kernel)
        self._store.scaled = self.scale is not None
        self._kept = 0
        self._weights = np.zeros(0)  # r by object; with landmarks the sum of r times the coordinates
        self._factor = np.zeros((0, 0))
        self._of_forecasts = np.zeros(terms)
        self._of_objects = self._right = self._missed = 0.0
        self._asked: Bracket | None = None

    def __repr__(self) -> str:
        kept = "" if self.landmarks is None else f", landmarks={self.landmarks}"
        kept += "" if self.scale is None else f", scale={self.scale!r}"
        return f"Defensive({self.kernel!r}, classes={list(self.classes)!r}, gamma={self.gamma}{kept})"

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """The objects kept, what was made of the others, and both sides of the inequality."""
        kept = self._kept
        objects = self._store.held(kept) if kept else None
        return {
            "n": self.n,
            "objects": objects.copy() if isinstance(objects, np.ndarray) else objects,
            "weights": self._weights[:kept].copy(),
            "factor": None if self.landmarks is None else self._factor[:kept, :kept].copy(),
            "of_forecasts": self._of_forecasts.copy(),
            "of_objects": self._of_objects,
            "right": self._right,
            "missed": self._missed,
            "placing": None if self._placing is None else self._placing.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        super().restore(state)
        objects, self._asked = state["objects"], None
        self.n, kept = held_int("n", state["n"]), held_rows("weights", state["weights"])
        self._kept, self._weights = kept, held_finite("weights", state["weights"], (kept,)).copy()
        if self.landmarks is not None:
            self._factor = held_finite("factor", state["factor"], (kept, kept)).copy()
        self._of_forecasts = held_finite("of_forecasts", state["of_forecasts"], self._roots.shape).copy()
        self._of_objects = held_float("of_objects", state["of_objects"])
        self._right, self._missed = (held_float(name, state[name]) for name in ("right", "missed"))
        if self._placing is not None:
            self._placing.restore(state["placing"])
        if isinstance(objects, SparseRows) and len(objects) != kept:
            raise ValueError(f"objects must be {kept}, one for each weight, got {len(objects)}")
        if kept:
            if not isinstance(objects, SparseRows):
                held_finite("objects", objects, (held_rows("objects", objects), kept))
            self._store.hold(objects)

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
        kept = self._kept
        row = self._store.row_with(kept, x)
        whole, left_out, new, features = float(row[kept]), 0.0, True, row[:kept]
        of_object, own = 0.0, whole
        if self.landmarks is None:
            of_object = float(self._weights[:kept] @ features)
        else:
            features = np.empty(kept)
            given = float(coordinates(self._factor, kept, row, features))
            of_object = float(self._weights[:kept] @ features)
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
        r, p, kept = code - asked.forecast, asked.forecast, self._kept
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
        kept = self._kept
        self._store.look(kept)
        self._store.put(kept, asked.x)
        self._store.keep(kept)
        if kept >= len(self._weights):
            room = max(16, 2 * kept)
            self._weights = grown(self._weights, room)
            if self.landmarks is not None:
                self._factor = grown(self._factor, room, room)
        if self.landmarks is not None:
            self._factor[kept, :kept] = asked.features
            given = float(asked.features @ asked.features)
            self._factor[kept, kept] = sqrt(asked.own - 1.0 - given)
        self._kept = kept + 1
