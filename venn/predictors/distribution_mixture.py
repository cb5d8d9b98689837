"""Mixes the distributions of several predictors of numbers; its loss is never much above that of the best one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from venn._compiled.distribution import mix_numbers, mixed_points, weigh_numbers
from venn.distribution import PredictiveDistribution
from venn.labels import Real
from venn.machines.shapes import PLAIN, Shape
from venn.parameters import fraction, instance, integer, optional, real_array
from venn.prediction import CRPS, Floats, Integers
from venn.predictors.expert_mixture import OfExperts, Weighing, restored_experts
from venn.predictors.refits import LEVELS
from venn.saved import Given, component, own, param, restored_finite, restored_float, restored_int, state

QUANTILES = len(LEVELS)  # quantiles that stand for an expert's distribution
RANKS = 1 << 40  # probabilities are whole numbers of such parts


def _restored_numbers(name: str, predictors: Any) -> tuple[Any, ...]:
    experts = restored_experts(name, predictors)
    if experts[0].classes:
        raise ValueError(f"{name} must predict numbers, got {experts[0]!r}")
    return experts


EACH = own(lambda model: (model.m,))


@component
class DistributionMixture(OfExperts):
    """A predictive distribution made of those of several experts, with a theorem on any sequence.

    The experts are predictors of numbers, of any kind that says distributions; 100 quantiles of each count. The
    forecast's distribution function is at each number u, where the experts' are F_i(u) and their weights w_i:
    F(u) = 1/2 + (1/4) ln(sum w_i exp(-2 (1 - F_i(u))^2) / sum w_i exp(-2 F_i(u)^2)). That is nearly the weighted mean.
    After each label a weight is multiplied by exp(-2 s / span), s the continuous ranked probability score (CRPS) of its
    expert; then a small share of all weights is dealt out anew.

    Theorem, for any sequence of objects and numbers: after every step the total CRPS `loss` is at most
    `losses[i] + allowance[i]` for every expert i. `span` is the largest distance so far of two numbers that an expert's
    quantiles or a label were at one step; it need not be known beforehand. If it were, the allowance would be
    span / 2 times ln M for M experts and `share` for each step. Where it grows, each allowance grows by half of that,
    times minus the logarithm of the expert's weight at the time. An expert that says nothing yet counts as if it had
    said what the others say together. If labels come late the statement is about the forecasts made again when each
    label came.

    Parameters
    ----------
    predictors : sequence of at least one Predictor
        Their predictions have points or quantiles, or are (k, 100) quantiles at .005, .015, ... of k experts, NaN where
        one says nothing yet. In a `Panel` that also holds a predictor, it is asked and taught once.
    share : float in (0, 1), default 0.001
        Of the weights that is dealt out anew after each step.
    first : int >= 0, default 0
        From so many examples on labels more than 10 usual deviations from the median of these count by a logarithm
        beyond that, so that after one wild label the others still move the weights. The first ones move none; all of
        the theorem is then about the later examples, on that scale. 0: labels count as they are, from the first one on.

    Attributes
    ----------
    weights : (M,) float64
        Of the experts now.
    loss : float
        Total CRPS of the forecasts, in the unit of labels.
    shape : Shape or None
        How labels count.
    losses : (M,) float64
        Total CRPS of the experts.
    allowance : (M,) float64
        How much more `loss` may be than each of them, at most.
    span : float
        As above.
    n : int
        Number of examples learned.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; by `predict_one` for a prediction that is no distribution.

    References
    ----------
    V'yugin & Trunov (2021), "Online aggregation of probability forecasts with confidence", for a known span.

    Examples
    --------
    >>> import venn
    >>> ridges = [venn.machines.KernelRidge(venn.RBF(0.5), C) for C in (0.1, 10.0)]
    >>> model = DistributionMixture([venn.predictors.ConformalDistribution(ridge) for ridge in ridges])
    >>> rng = np.random.default_rng(0)
    >>> for x in rng.normal(size=(60, 1)):
    ...     model.learn_one(x, 3 * x[0])
    >>> model.predict_one([1.0]).guaranteed, bool((model.loss <= model.losses + model.allowance).all())
    ('CRPS', True)
    >>> bool(model.weights[1] > model.weights[0])
    True
    """

    predictors: Any = param(_restored_numbers, kept_as="experts")
    share: float = param(fraction, default=0.001)
    first: int = param(integer, 0, default=0)

    _seen: int = state(restored_int, start=0)
    loss: float = state(restored_float, 0.0, start=0.0)
    losses: Floats = state(restored_finite, EACH, start=own(lambda m: np.zeros(m.m)))
    allowance: Floats = state(restored_finite, EACH, start=own(lambda m: np.zeros(m.m)))
    span: float = state(restored_float, 0.0, start=0.0)
    _weights: Floats = state(restored_finite, EACH, start=own(lambda m: np.full(m.m, -np.log(m.m))))
    _labels: Floats = state(restored_finite, own(lambda m: (min(m._seen, m.first),)), start=np.zeros(0))  # noqa: SLF001
    shape: Shape | None = state(optional, instance, Shape, "a Shape", start=None)

    def derive(self) -> None:
        """Collect the parts that learn."""
        self.space = Real()
        self._prior = np.full(self.m, 1 / self.m)
        self.predictors = (*self.experts, Weighing(self))

    @property
    def weights(self) -> Floats:
        """(M,) weights of the experts, of sum 1."""
        return np.exp(self._weights)

    def of(self, parts: Sequence[Any]) -> Self:
        """Return a mixture of other experts, which has weighed nothing."""
        return type(self)(parts, self.share, self.first)

    def joined(self, other: Self, parts: Sequence[Any]) -> Self:
        """Return a mixture of these experts with the losses and evidence of two mixtures added."""
        made, one, two = self.of(parts), self.state, other.state
        both = {name: one[name] + two[name] for name in ("seen", "loss", "losses", "allowance")}
        weights = one["weights"] + two["weights"] - np.log(self._prior)
        # From a span of 0 on: what begins anew is allowed anew.
        made.restore(Given(one | both | {"weights": weights - np.logaddexp.reduce(weights), "span": 0.0}))
        return made

    def combined(self, predictions: Sequence[Any]) -> PredictiveDistribution:
        """Return the mixture of the experts' predictions, one by each of the predictors."""
        return self.of_heard(self.heard(predictions))

    def of_heard(self, heard: tuple[PredictiveDistribution, Floats]) -> PredictiveDistribution:
        """Return the mixture of the experts' quantiles."""
        return heard[0]

    def heard(self, predictions: Sequence[Any]) -> tuple[PredictiveDistribution, Floats]:
        """Return the forecast, and the (M, 100) quantiles of the experts' predictions."""
        said = np.concatenate([quantiles_of(one) for one in predictions])
        return mixed(said, self._weights), said

    def weigh(self, label: float, heard: tuple[PredictiveDistribution, Floats]) -> None:
        """Weigh the experts by an example's label and their predictions, as `heard` returned them."""
        (merged, said), shape = heard, (self.m, QUANTILES)
        label = self.space.encode(label)
        requirement = f"said must be {shape} quantiles, as the method heard returns them"
        if real_array(said, requirement).shape != shape:
            raise ValueError(f"{requirement}, got {said!r}")
        if self._seen < self.first:
            self._look_at(label)
            return
        said, points = np.ascontiguousarray(said, np.float64), merged.points.copy()
        if self.shape is not None:  # one call for all: calls cost more than the work
            near = self.shape.drawn_near(np.concatenate([said.ravel(), points, [label]]))
            said, points, label = near[: said.size].reshape(shape), near[said.size : -1], near.item(-1)
        sums = self._sums()
        weigh_numbers(said, points, merged.places.copy(), RANKS, label, *self._shares, sums)
        self._take(sums, 1)

    def weigh_heard(self, labels: Floats, heard: tuple[PredictiveDistribution, Floats]) -> None:
        """Do the same for an array of one label."""
        self.weigh(labels.item(), heard)

    def _look_at(self, label: float) -> None:
        """Record one of the first labels, which change no weight."""
        self._seen += 1
        self._labels = np.append(self._labels, label)
        if self._seen == self.first:
            self.shape = Shape.fitted(self._labels, PLAIN)

    def heard_many(self, blocks: Sequence[Any]) -> Floats:
        """Return the (n, M, 100) quantiles of the experts, of predictions for many objects by each predictor."""
        return np.concatenate([quantiles_of_many(block) for block in blocks], axis=1)

    def weigh_many(self, labels: Floats, each: Floats) -> list[PredictiveDistribution]:
        """Weigh the experts by examples in turn; return the forecast of each before it was learned.

        Parameters
        ----------
        labels : (n,) float64
        each : (n, M, 100) float64
            As `heard_many` returns them.
        """
        made: list[PredictiveDistribution] = []
        while self._seen < self.first and len(made) < len(labels):
            made.append(mixed(each[len(made)], self._weights))
            self._look_at(float(labels[len(made) - 1]))
        labels, each = labels[len(made) :], np.ascontiguousarray(each[len(made) :])
        near, of_labels = each, labels
        if self.shape is not None:
            near, of_labels = self.shape.drawn_near(each), self.shape.drawn_near(labels)
        n, values, sums = len(labels), each.reshape(len(each), self.m * QUANTILES), self._sums()
        which, places = np.empty((2, n, 2 * self.m * QUANTILES), np.int64)
        sizes, order = np.empty(n, np.int64), np.argsort(values, axis=1, kind="stable")
        mix_numbers(each, order, near, of_labels, RANKS, *self._shares, sums, which, places, sizes)
        self._take(sums, n)
        for row, at, places_of, size in zip(values, which, places, sizes.tolist(), strict=True):
            made.append(_of_points(row[at[:size]], places_of[:size].copy()))
        return made

    def block(self, forecasts: list[PredictiveDistribution]) -> list[PredictiveDistribution]:
        """Return its forecasts as a list: mixtures of numbers have no block."""
        return forecasts

    @cached_property
    def _shares(self) -> tuple[float, Floats]:
        """The constants of a compiled loop for the shares that are dealt out."""
        kept, *dealt = self.dealt
        return float(kept), np.array(dealt)

    def _sums(self) -> Floats:
        """Return the four sums of a step as a loop reads and changes them."""
        sums = np.zeros((4, max(self.m, 2)))
        sums[:3, : self.m] = self._weights, self.losses, self.allowance
        sums[3, :2] = self.loss, self.span
        return sums

    def _take(self, sums: Floats, count: int) -> None:
        """Take over the sums after so many further steps."""
        self._weights, self.losses, self.allowance = sums[:3, : self.m]
        self.loss, self.span = sums[3, :2].tolist()
        self._seen += count


def quantiles_of(prediction: Any) -> Floats:
    """Return the (k, 100) quantiles of a prediction, NaN where it says nothing yet; or say that it has none."""
    if isinstance(prediction, np.ndarray):
        return prediction
    if isinstance(prediction, PredictiveDistribution):
        if not prediction.n:
            return np.full((1, QUANTILES), np.nan)
        at = prediction.places.searchsorted(LEVELS * prediction.n)
        return prediction.settled[np.minimum(at, len(prediction.points) - 1)][None]
    if not hasattr(prediction, "crps"):
        raise TypeError(f"predictors must give distributions, got {prediction!r}")
    return np.array([[prediction.quantile(q) for q in LEVELS.tolist()]])


def quantiles_of_many(block: Any) -> Floats:
    """Return the (n, k, 100) quantiles of predictions for n objects."""
    return block if isinstance(block, np.ndarray) else np.array([quantiles_of(one) for one in block])


def mixed(said: Floats, weights: Floats) -> PredictiveDistribution:
    """Return the mixture of (M, 100) quantiles with (M,) logarithms of weights; all at 0 if no expert has any."""
    values = said.ravel()
    which, places = np.empty((2, 2 * len(values)), np.int64)
    size = mixed_points(np.ascontiguousarray(said), values.argsort(kind="stable"), weights, RANKS, which, places)
    return _of_points(values[which[:size]], places[:size].copy())


def _of_points(points: Floats, places: Integers) -> PredictiveDistribution:
    """Return a mixture of these points, or say what is wrong with them; at 0 without any."""
    if not np.isfinite(points).all():
        return PredictiveDistribution(points, places=places, n=RANKS)
    n = RANKS if len(points) else 0
    return PredictiveDistribution.unchecked(points, places, n, guaranteed=CRPS)
