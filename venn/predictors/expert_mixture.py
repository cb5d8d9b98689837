"""Mixes the forecasts of experts; its log loss is never much above that of the best one, on any sequence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from venn._compiled.mixture import mix_experts
from venn.labels import HasLabels, label_space
from venn.machines.stack import common, fitted_pool
from venn.parameters import fraction, integer, optional, real_array
from venn.prediction import Floats, Integers, Label, MixedForecast
from venn.predictors.blocks import ManyMixedForecasts
from venn.predictors.learning import Combined, Predictor, checked_predictor
from venn.saved import (
    Given,
    component,
    own,
    param,
    restored_codes,
    restored_finite,
    restored_float,
    restored_int,
    restored_rows,
    state,
)

FLOOR = 1e-4  # share of the uniform distribution added to each expert, so that one zero excludes none
WHOLE = 100  # examples after which that share falls, as 1 / n
POOLED = 0.8  # weight of the pool before the first example; the experts have the rest in equal parts
KEPT = 2000  # latest forecasts to which the pool is fitted
NOBODY = np.array([-1])  # the code of an object without a label
RIDGE = 1.0  # weight of the first exponents, in examples


def restored_experts(name: str, predictors: Any) -> tuple[Any, ...]:
    """Return predictors of the same classes, or say what is wrong with them."""
    if isinstance(predictors, str) or not isinstance(predictors, Sequence) or not predictors:
        raise TypeError(f"{name} must be a sequence of at least one predictor, got {predictors!r}")
    experts = tuple(checked_predictor(name, one) for one in predictors)
    if len({id(one) for one in experts}) < len(experts):
        raise ValueError(f"{name} must be different objects, got one twice in {predictors!r}")
    classes = tuple(experts[0].classes)
    for one in experts:
        if tuple(one.classes) != classes:
            raise ValueError(f"{name} must have the same classes, got {classes!r} and {one.classes!r}")
    return experts


def checked_exponents(name: str, exponents: Any, m: int) -> tuple[float, ...]:
    """Return exponents as numbers, or say what is wrong with them."""
    requirement = f"{name} must be {m} numbers >= 0, one for each expert"
    found = real_array(exponents, requirement)
    if found.shape != (m,) or not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError(f"{requirement}, got {exponents!r}")
    return tuple(found.tolist())


def _prior(model: ExpertMixture) -> Floats:
    """Return the (M + 1,) weights before the first example."""
    return np.append(np.full(model.m, (1 - POOLED) / model.m), POOLED)


def _powers(model: ExpertMixture) -> Floats:
    """Return the (M,) powers in the pool before the first example."""
    return np.full(model.m, 1 / model.m) if model.exponents is None else np.array(model.exponents)


class OfExperts(HasLabels, Combined[Any]):
    """Base of mixtures."""

    experts: tuple[Any, ...]
    share: float
    _seen: int
    _prior: Floats
    _weights: Floats

    @cached_property
    def m(self) -> int:
        """Number of experts, of all predictors together."""
        return sum(experts_in(one) for one in self.experts)

    @property
    def machine(self) -> Any:
        """The machine that the first expert with one reads."""
        return next((one.machine for one in self.experts if one.machine is not None), None)

    @property
    def n(self) -> int:
        """Number of examples learned."""
        return int(getattr(self.experts[0], "n", self._seen))

    @property
    def asked(self) -> tuple[Any, ...]:
        """The experts."""
        return self.experts

    @cached_property
    def dealt(self) -> tuple[Any, Floats, Floats]:
        """Logarithms for dealing out weights anew: the part kept, each one's share of the rest, the least weight."""
        return np.log1p(-self.share), np.log(self.share * self._prior), np.log1p(-self.share * (1 - self._prior))

    def moved(self, lost: Floats) -> Floats:
        """Return the logarithms of weights after these losses and after a share is dealt out by the first weights."""
        kept, dealt, _ = self.dealt
        weights = self._weights - lost
        weights -= np.logaddexp.reduce(weights)
        found: Floats = np.logaddexp(weights + kept, dealt)
        return found


EACH = own(lambda model: (model.m + 1,))  # the experts, and the pool


@component
class ExpertMixture(OfExperts):
    """A forecast made of those of several experts, with a theorem on any sequence, and usually sharper than each.

    The experts are predictors, of any kind that says probabilities. The forecast is their weighted mean. After each
    label a weight is multiplied by the probability that its expert gave to it; then a small share of all weights is
    dealt out anew, so that an expert that was bad and has become good is heard soon.

    One more expert stands among them, the *pool*: the product of the experts' probabilities, each to a power >= 0,
    times a factor for each class, normalised. Powers and factors are those of the lowest log loss on the latest
    forecasts. It is often sharper than every mean, and proves nothing; the mixture follows it as long as it is good.
    Of one expert the pool is a recalibrated version, which mends a forecast that is too bold or too timid.

    Theorem, for any sequence of objects and labels: after every step the total log loss `loss` is at most
    `losses[i] + allowance[i]` for every expert i. An expert's forecasts count with some of the uniform distribution in
    them: .0001 of it, and from n = 100 examples on .01 / n. So `losses[i]` is at most .01 (2 + ln(n / 100)) more than
    what the expert loses by itself, and a label that it excludes costs it ln(c) + ln(100 n) at most, for c classes.
    The allowance is ln(5 M) for M experts at the start, .2 for the pool, and grows by `share` a step. Against
    experts that change m times the same holds with about m ln(1 / share) more. An expert that says nothing yet counts
    as if it had said what the others say together. If labels come late the statement is about the forecasts made again
    when each label came.

    Parameters
    ----------
    predictors : sequence of at least one Predictor
        Their predictions have `proba`, or are (k, c) probabilities of k experts, NaN where one says nothing yet. In a
        `Panel` that also holds a predictor, it is asked and taught once.
    exponents : sequence of float >= 0, optional
        Of each expert in the pool at the start; by default 1 / M for M experts.
    share : float in (0, 1), default 0.001
        Of the weights that is dealt out anew after each step.

    Attributes
    ----------
    weights : (M + 1,) float64
        Of the experts and, last, of the pool, now.
    loss : float
        Total log loss of the forecasts.
    losses : (M + 1,) float64
        Total log losses of the experts and of the pool.
    allowance : (M + 1,) float64
        How much more `loss` may be than each of them, at most.
    n : int
        Number of examples learned.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; by `predict_one` for a prediction without probabilities.

    References
    ----------
    DeSantis, Markowsky & Wegman (1988), "Learning probabilistic prediction functions"; Herbster & Warmuth (1998),
    "Tracking the best expert"; for experts that sleep Freund, Schapire, Singer & Warmuth (1997). Pools: Genest &
    Zidek (1986), "Combining probability distributions".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> abers, platt = venn.TransductiveVennAbers(machine), venn.ScoreCalibrator(machine, venn.maps.Platt())
    >>> model = ExpertMixture([abers, platt])
    >>> for i in range(40):
    ...     model.learn_one([i % 2 + i / 40], "yes" if i % 2 else "no")
    >>> forecast = model.predict_one([0.2])
    >>> forecast.label, forecast.guaranteed
    ('no', 'log loss')
    >>> bool((model.loss <= model.losses + model.allowance).all())
    True
    """

    predictors: Any = param(restored_experts, kept_as="experts")
    exponents: Sequence[float] | None = param(optional, checked_exponents, own(lambda m: m.m), default=None)
    share: float = param(fraction, default=0.001)

    _seen: int = state(restored_int, start=0)
    _due: int = state(restored_int, 1, start=own(lambda _: next_fit(0)))
    loss: float = state(restored_float, 0.0, start=0.0)
    losses: Floats = state(restored_finite, EACH, start=own(lambda m: np.zeros(m.m + 1)))
    allowance: Floats = state(restored_finite, EACH, start=own(lambda m: -np.log(_prior(m))))
    _weights: Floats = state(restored_finite, EACH, start=own(lambda m: np.log(_prior(m))))
    _powers: Floats = state(restored_finite, own(lambda m: (m.m,)), start=own(lambda m: _powers(m)))
    _biases: Floats = state(
        restored_finite,
        own(lambda m: (len(m.experts[0].classes),)),
        start=own(lambda m: np.zeros(len(m.experts[0].classes))),
    )

    def derive(self) -> None:
        """Start without forecasts."""
        self.space = label_space(tuple(self.experts[0].classes))
        self._first, self._prior = _powers(self), _prior(self)
        self._sums = np.empty((4, self.m + 1))  # the four sums of a step as a loop reads them
        self._summed: Any = None  # the weights for which the sums were made; other weights make them out of date
        m, c = self.m, len(self.classes)
        self._logs, self._codes = np.zeros((0, m, c)), np.zeros(0, np.int64)  # a ring, and its labels
        self.predictors = (*self.experts, Weighing(self))  # the parts that learn; the last one weighs the experts

    @property
    def state(self) -> dict[str, Any]:
        """Weights, losses, the pool, and the latest forecasts, oldest first."""
        return super().state | {"logs": self._latest(self._logs), "codes": self._latest(self._codes)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it is not one."""
        super().restore(state)
        kept = restored_rows("logs", state["logs"])
        if kept != min(self._seen, KEPT):
            raise ValueError(f"logs must be of the latest {min(self._seen, KEPT)} examples, got {kept}")
        logs = restored_finite("logs", state["logs"], (kept, self.m, len(self.classes)))
        codes = restored_codes("codes", state["codes"], (kept,), 0, len(self.classes))
        at = self._seen % KEPT if kept == KEPT else 0
        self._logs, self._codes = np.roll(logs, at, axis=0), np.roll(codes, at)

    def _latest(self, ring: Any) -> Any:
        """Return the entries of a ring, oldest first."""
        kept = ring[: min(self._seen, KEPT)]
        return np.roll(kept, -(self._seen % KEPT), axis=0) if self._seen > KEPT else kept.copy()

    # ------------------------------------------------------------------ reading

    @property
    def weights(self) -> Floats:
        """(M + 1,) weights of the experts and of the pool, of sum 1."""
        return np.exp(self._weights)

    def of(self, parts: Sequence[Any]) -> Self:
        """Return a mixture of other experts, which has weighed nothing."""
        return type(self)(parts, self.exponents, self.share)

    def first_experts(self, count: int) -> Self:
        """Return a mixture of the first experts, which has weighed nothing."""
        experts = self.experts[:count]
        exponents = None if self.exponents is None else self.exponents[: sum(map(experts_in, experts))]
        return type(self)(experts, exponents, self.share)

    def joined(self, other: Self, parts: Sequence[Any]) -> Self:
        """Return a mixture of these experts with the losses and evidence of two mixtures added."""
        made, one, two = self.of(parts), self.state, other.state
        weights = one["weights"] + two["weights"] - np.log(self._prior)
        both = {name: one[name] + two[name] for name in ("seen", "loss", "losses", "allowance")}
        latest = {name: np.concatenate([one[name], two[name]])[-KEPT:] for name in ("logs", "codes")}
        weighed = {"weights": weights - np.logaddexp.reduce(weights), "due": both["seen"] + 1}
        made.restore(Given(one | both | latest | weighed))
        if both["seen"]:
            made.fit_pool()
        return made

    def combined(self, predictions: Sequence[Any]) -> MixedForecast:
        """Return the mixture of the experts' predictions, one by each of the predictors."""
        return self.of_heard(self.heard(predictions))

    def of_heard(self, heard: Floats) -> MixedForecast:
        """Return the mixture of (M, c) probabilities of the experts."""
        forecast, classes = self._mixed(heard[None], NOBODY)[0][0], self.space.labels
        if min(forecast.tolist()) > 0:  # for speed; of sum 1 it is anyway
            return MixedForecast.unchecked(forecast, classes)
        return MixedForecast(forecast, classes)  # it says which values are no probabilities

    def merged(self, rows: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Return the (c,) forecast, and what each expert and the pool (M + 1, c) say, as it counts."""
        out, logs = self._mixed(np.concatenate(rows)[None], NOBODY)
        return out[0], np.exp(logs[0])

    @cached_property
    def _fixed(self) -> tuple[Floats, Floats]:
        """The constants of a compiled loop for the shares that are dealt out."""
        kept, *dealt = self.dealt
        return np.array([kept, FLOOR, WHOLE]), np.array(dealt)

    def heard(self, predictions: Sequence[Any]) -> Floats:
        """Return the (M, c) probabilities of the experts, of the predictions of one object."""
        classes, rows = self.space.labels, []
        for one in predictions:
            rows.append(one if isinstance(one, np.ndarray) else said_by(one, classes))
        return np.concatenate(rows)

    def heard_many(self, blocks: Sequence[Any]) -> Floats:
        """Return the (n, M, c) probabilities of the experts, of predictions for many objects."""
        each = zip(blocks, self.experts, strict=True)
        rows = [said_by_many(block, experts_in(one), self.classes) for block, one in each]
        return np.ascontiguousarray(np.concatenate(rows).swapaxes(0, 1))

    def combined_many(self, blocks: Sequence[Any]) -> ManyMixedForecasts:
        """Return the mixtures of predictions for many objects, which each of the predictors has made."""
        each = self.heard_many(blocks)
        return self.block(self._mixed(each, np.full(len(each), -1))[0])

    def block(self, forecasts: Floats) -> ManyMixedForecasts:
        """Return its (n, c) forecasts as a block."""
        return ManyMixedForecasts(forecasts, self.classes)

    def _mixed(self, each: Floats, codes: Integers) -> tuple[Floats, Floats]:
        """Return (n, c) forecasts, and (n, M + 1, c) logarithms of what counts; learn where a code is not -1."""
        n, m, c = each.shape
        logs, out = np.empty((n, m + 1, c)), np.empty((n, c))
        if self._summed is not self._weights:
            sums = self._sums = np.empty((4, m + 1))
            sums[0], sums[1], sums[2], sums[3, 0] = self._weights, self.losses, self.allowance, self.loss
            self._summed = self._weights
        sums = self._sums if codes is NOBODY else self._sums.copy()
        mix_experts(each, codes, self._seen, *self._fixed, self._powers, self._biases, sums, logs, out)
        if codes is not NOBODY:
            self._sums, self.loss = sums, sums.item(3, 0)
            self._weights, self.losses, self.allowance = sums[:3]
            self._summed = self._weights
        return out, logs

    # ----------------------------------------------------------------- learning

    def weigh(self, code: int, heard: Floats) -> None:
        """Weigh the experts by a class code and their (M, c) probabilities, as `heard` returned them."""
        self.weigh_many(np.array([integer("code", code, 0, len(self.classes) - 1)]), np.asarray(heard)[None])

    def weigh_heard(self, codes: Integers, heard: Floats) -> None:
        """Do the same for an array of one class code, unchecked."""
        self._learn(codes, heard[None])

    def weigh_many(self, codes: Integers, each: Floats) -> Floats:
        """Weigh the experts by examples in turn, and fit the pool when it is time.

        Parameters
        ----------
        codes : (n,) int64
            Class codes from 0 to c - 1.
        each : (n, M, c) float64
            Probabilities, NaN where an expert says nothing.

        Returns
        -------
        (n, c) float64
            The forecast of each example before it was learned.
        """
        shape = len(codes), self.m, len(self.classes)
        requirement = f"heard must be {shape[1:]} probabilities of each example, as the method heard returns them"
        fine = real_array(each, requirement).shape == shape
        if not fine or not ((each >= 0).all() or ((each >= 0) | np.isnan(each)).all()):
            raise ValueError(f"{requirement}, got {each!r}")
        out, done = np.empty((shape[0], shape[2])), 0
        while done < len(codes):
            part = slice(done, done + max(1, self._due - self._seen))
            out[part] = self._learn(codes[part], each[part])
            done += len(codes[part])
        return out

    def _learn(self, codes: Integers, each: Floats) -> Floats:
        """Weigh the experts by examples before the next fit of the pool, and fit that if it is time."""
        out, logs = self._mixed(each, codes)
        self._keep(logs, codes)
        if self._seen >= self._due:
            self.fit_pool()
        return out

    def _keep(self, logs: Floats, codes: Integers) -> None:
        """Keep the experts' probabilities, as long as the pool may be fitted to them."""
        seen, self._seen = self._seen, self._seen + len(codes)
        if (last := min(KEPT, self._seen)) > len(self._codes):
            room = min(KEPT, max(64, 2 * last))
            for name in ("_logs", "_codes"):
                ring = getattr(self, name)
                grown = np.zeros((room, *ring.shape[1:]), ring.dtype)
                grown[: len(ring)] = ring
                setattr(self, name, grown)
        at = seen % KEPT
        places: Any = slice(at, at + 1) if len(codes) == 1 else np.arange(seen, self._seen)[-KEPT:] % KEPT
        self._logs[places], self._codes[places] = logs[-KEPT:, : self.m], codes[-KEPT:]

    def fit_pool(self) -> None:
        """Fit the pool to the latest forecasts, from its last solution."""
        self._due, kept = next_fit(self._seen), min(self._seen, KEPT)
        logs, codes = self._logs[:kept], self._codes[:kept]
        often = common(codes, len(self.classes))
        self._powers, self._biases = fitted_pool(
            logs[often], codes[often], self._first, RIDGE * self.m, (self._powers, self._biases)
        )


class Weighing(Predictor):
    """Weighs the experts of a mixture. It is a part of its own, so that a panel teaches shared experts only once."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.classes = owner.classes

    def __repr__(self) -> str:
        return f"Weighing({self.owner!r})"

    def prepare(self, x: Any, y: Label) -> Floats:
        """Return what the experts say of x before it is learned."""
        self.owner.space.check(y)
        return self.compared([one.predict_one(x) for one in self.owner.experts])

    def compared(self, predictions: Sequence[Any]) -> Any:
        """Return the experts' probabilities, to be compared with the label."""
        return self.owner.heard(predictions)

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Weigh the experts by their prepared probabilities."""
        if prepared is None:
            raise ValueError("prepared must be what prepare(x, y) returned, got None")
        self.owner.weigh(self.owner.space.encode(y), prepared)


def next_fit(n: int) -> int:
    """Return after how many examples the pool is fitted next."""
    return n + max(20 if n < 60 else 50, n // 20)


def experts_in(predictor: Any) -> int:
    """Return how many experts a predictor's predictions hold."""
    return int(getattr(predictor, "experts_inside", 1))


def said_by(prediction: Any, classes: Sequence[Label] | None = None) -> Floats:
    """Return the (k, c) probabilities of a prediction; refuse one without, or in another order of classes."""
    if isinstance(prediction, np.ndarray):
        return prediction
    if not hasattr(prediction, "proba"):
        raise TypeError(f"predictors must give probabilities, got {prediction!r}")
    check_order(prediction, classes)
    return prediction.proba[None]


def check_order(said: Any, classes: Sequence[Label] | None) -> None:
    """Refuse a prediction or block with other classes, or in another order."""
    found: Any = getattr(said, "classes", classes)
    if classes is not None and found is not classes and tuple(found) != classes:
        raise ValueError(f"predictors must have the classes {classes}, in this order, got {tuple(found)}")


def said_by_many(block: Any, k: int, classes: tuple[Label, ...]) -> Floats:
    """Return the (k, n, c) probabilities of a block or a list of predictions; refuse others."""
    if isinstance(block, np.ndarray):
        return block
    if hasattr(block, "proba"):
        check_order(block, classes)
        return block.proba[None]
    return np.array([said_by(one, classes) for one in block]).reshape(-1, k, len(classes)).swapaxes(0, 1)
