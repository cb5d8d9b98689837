"""The recommended predictors as one model: give it the classes, float, or a fitted estimator, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from venn.labels import Real
from venn.machines.frozen import FrozenScorer
from venn.machines.frozen_numbers import FrozenRegressor
from venn.machines.number_stack import NumberStack
from venn.machines.objects import Query
from venn.machines.scale import FIRST, checked_ranges
from venn.monitors.floor import FLOOR, Floor, FloorWatch, floor_of
from venn.monitors.monitor import Monitor
from venn.monitors.shared_level import together, trainings
from venn.monitors.verdict import CHANGED, USELESS, Verdict, worst
from venn.nonconformity.own import usual_measure
from venn.online.forecaster_parts import (
    FIT,
    GROWTH,
    SHARE,
    given_parts,
    own_bank,
    own_parts,
    own_scale,
    with_further,
    with_given,
)
from venn.online.in_blocks import InBlocks
from venn.online.number_outlook import DISTRIBUTION, NumberOutlook, NumberOutlooks
from venn.online.one_row import RowStep
from venn.online.outlook import FORECAST, INTERVALS, SETS, Outlook, Outlooks, Parts
from venn.online.panel import Panel, Prepared
from venn.parameters import by_name, fraction, integer, members, one_of, optional
from venn.prediction import Label
from venn.predictors.distribution_inductive import InductiveDistribution
from venn.predictors.distribution_mixture import DistributionMixture
from venn.predictors.distribution_stacked import StackedDistribution
from venn.predictors.history import share_histories
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.learning import Predictor, elementary
from venn.predictors.refits import NumberRefits
from venn.predictors.restarting import Switch
from venn.saved import checked_keys, restored_int, saved
from venn.schedules import Prefix
from venn.turns import asks

CHOSEN = ("transductive", "last", "first", "ranges", "level", "on_change", "floor", "own")
GIVEN = "Retrain or invert the model."
RESTART, KEEP = "restart", "keep"
LAST = 100_000  # examples, by default: after so many nothing trains any more
FITTED, FIRST_FIT = 0.6, 125  # of numbers: share of the examples that trees are fitted to, and when they first are
LAST_FIT = 20_000  # and, of numbers, at their last
ELSEWHERE = ": venn.ForecasterClassifier has it, or venn.ConformalRegressor where labels are numbers"
NUMBERS = {int, float}  # types of what a plain row holds


@saved
class Forecaster(InBlocks):
    """The recommended predictors as one model, with nothing to choose: for a stream of examples of any length.

    It is a `Panel` of three predictors, and may stand wherever a panel may: in `Online`, `replay`, a checkpoint.

    - "forecast": probabilities to decide by, an `ExpertMixture`. Its total log loss is hardly larger than that of the
      best of its experts, whatever happens; of a single probability nothing is proved.
    - "intervals": a lower and an upper probability for each class, with the guarantee "each class".
    - "sets": conformal sets of labels, with the guarantee "error rate".

    Without a scorer all examples count in every answer until there are `transductive` of them. Experts of the forecast
    are then a `Mixture` of kernel machines, by itself and calibrated by Venn-Abers, and a forest, boosted trees and a
    logistic regression that are fitted anew at growing numbers of examples. From `transductive` examples on a `Stack`
    of all these is trained on seven tenths of the examples; the others and all later ones calibrate it. It is trained
    again at twice, four times, ... as many, up to `last`; after that memory and time for a step no longer grow. When
    that happens depends on the number of examples only, so each answer keeps its guarantee.

    Of numbers, `Forecaster(float)`, it has two predictors. Its outlooks have `interval(0.1)` by "distribution", with
    the guarantee "error rate": up to `transductive` examples that is a `StackedDistribution`, kernel ridge regression
    around trees, with a spread; from then on an `InductiveDistribution` on a `NumberStack`, trained as above. They have
    `mean`, `median`, `quantile(q)` and `cdf(y)` by "forecast", a `DistributionMixture` of that one, of a forest whose
    leaves hold labels, a Gaussian process, and all labels: its total CRPS is hardly larger than that of the best.

    Columns may have any units: a `Scale` makes them alike. Until there are `first` examples, each answer is on the
    scale of all objects so far and the new one. Then the scale is fixed; these examples teach and count in the
    forecast, but not in intervals and sets, whose guarantees rest on the later ones: with none of these yet, intervals
    are [0, 1] again, and narrow from there on. Labels are not looked at for the scale.

    When an alarm says that the stream has changed, what was learned before would mislead: the forecaster forgets all
    examples and begins anew. Its promises hold from there on, and the verdict says so. In the forecast alone a forest,
    boosted trees and a regression go on with all examples, beside new ones: if the alarm was false little is lost.

    Parameters
    ----------
    classes : sequence of labels, or float, optional
        All labels that may come, float for numbers; by default those of the scorer.
    scorer : fitted classifier or regressor, optional
        Of scikit-learn's kind; for numbers also a `FrozenRegressor`, which may have a spread. Its scores are calibrated
        as the stream goes; it must not have been fitted to these examples. Of more than two classes intervals and sets
        rest on its `predict_proba`, where there is one.
    transductive : int >= 2, default 2000
        Number of examples up to which every answer uses all of them.
    last : int >= transductive, optional
        Number of examples up to which it trains and keeps them, 100000 by default.
    first : int >= 2, or 0, default 30
        Number of examples that fix the scale of the columns; 0 takes objects as they are. Not with a scorer, which has
        its own scale.
    ranges : sequence of (low, high), optional
        Instead of `first`, the range of each column, such as those of instruments: no example is spent.
    level : float in (0, 1), default 0.01
        Probability that the verdict is ever "changed" although nothing has changed; for each example .00001 more, see
        `Monitor` on `run_length`. Bets begin anew at each training, and each period has its share of the level. One
        third is kept for the objects, which the commands watch beside it: all tell the same story.
    on_change : "restart" or "keep", default "restart"
        Whether it begins anew when an alarm says that the stream has changed. "keep" keeps all examples: intervals and
        sets then say what they would say of an unchanged stream.
    beside : mapping of str to Predictor, optional
        Other predictors on the same stream, for comparison. They do not begin anew.
    floor : Floor or float, optional
        What must hold of the forecast, an accuracy if it is a number: see `venn.monitors.Floor`. A `FloorWatch`,
        "floor", watches it; an alarm of it does not make the forecaster begin anew. Of numbers it is about
        the forecast's own intervals, `outlook["forecast"].interval(0.05)` for an accuracy, of which nothing is proved.
    measure : nonconformity measure on scores, optional
        What makes the sets around a given classifier, as in `InductiveConformal`: by default the one of the smallest
        sets. `venn.nonconformity` has others, such as `APS()`, whose sets grow where an object is hard.
    experts : sequence of Predictor, optional
        Further experts of the forecast, of any kind that says probabilities of the same classes, or distributions where
        labels are numbers: see docs/add_expert.md. They go on as they are when the forecaster begins anew.

    Attributes
    ----------
    classes : tuple of labels
    monitors : dict of str to Monitor
        They watch the intervals and the sets; of numbers the distribution.
    floors : dict of str to FloorWatch
        What watches the floor, if there is one.
    own : (int, int)
        Places of the given experts among those of the forecast: from the first on, up to the second.

    Raises
    ------
    TypeError, ValueError
        Neither classes nor a scorer, a class with the name of a predictor, or a parameter that is not as described.

    Examples
    --------
    >>> import streams, venn
    >>> stream = streams.load("breast_cancer", shuffle=0).take(60)
    >>> model = venn.Forecaster(stream.classes)
    >>> for x, y in stream:
    ...     outlook = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> outlook.label == y, outlook.set(0.1)
    (True, ('malignant',))
    >>> print(model.verdict())
    intervals: Wait, too early to say: 60 of 320 examples.

    Labels that are numbers:

    >>> model = venn.Forecaster(float)
    >>> for x, y in streams.waves(80, seed=0):
    ...     outlook = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> outlook
    NumberOutlook(median -0.4544, mean -0.4161, -1.923 to 1.032 at 0.1)
    """

    parts: ClassVar[tuple[str, ...]] = (FORECAST, INTERVALS, SETS)  #: names of its own predictors
    main: ClassVar[str] = INTERVALS  #: the one that is asked how many examples it has learned, and of what scorer
    claiming: ClassVar[tuple[str, ...]] = (INTERVALS, SETS)  #: those whose claims are watched
    calibrates: ClassVar[type] = InductiveVennAbers  #: class of the main one, if there is a given scorer
    outlook: ClassVar[type[Parts]] = Outlook
    outlooks: ClassVar[type[Parts]] = Outlooks

    def __new__(cls, classes: Any = None, *, scorer: Any = None, **chosen: Any) -> Self:
        """Return a forecaster of classes, or of numbers."""
        kind: Any = NumberForecaster if cls is Forecaster and of_numbers(classes, scorer) else cls
        return super().__new__(kind)

    def __init__(
        self,
        classes: Sequence[Label] | type[float] | None = None,
        *,
        scorer: Any = None,
        transductive: int = 2000,
        last: int | None = None,
        first: int | None = None,
        ranges: Iterable[tuple[float, float]] | None = None,
        level: float = 0.01,
        on_change: str = "restart",
        beside: Mapping[str, Predictor] | None = None,
        floor: Floor | float | None = None,
        measure: Any = None,
        experts: Sequence[Predictor] = (),
    ) -> None:
        self.transductive = integer("transductive", transductive, 2)
        self.last = max(LAST, self.transductive) if last is None else integer("last", last, self.transductive)
        self.level = fraction("level", level)
        self.floor: Floor | None = optional("floor", floor, floor_of)
        self.first: int | None = None
        self.ranges: tuple[tuple[float, float], ...] | None = None
        if scorer is not None:
            if first is not None or ranges is not None:
                raise TypeError("first and ranges must not be given with a scorer, which has its own scale")
            parts = self._calibrating(self._frozen(scorer, classes), measure)
        elif measure is not None:
            raise TypeError(f"measure must be given with a scorer only, around which it makes sets, got {measure!r}")
        else:
            parts = self._learning(classes, first, ranges)
        self.own = 0, 0
        if given := members("experts", experts, "predictors"):
            forecast = with_given(parts[FORECAST], given)
            parts[FORECAST], several = forecast, len(forecast.experts)
            self.own = several - len(given), several
        self.on_change = one_of("on_change", on_change, (RESTART, KEEP))
        others = by_name("beside", beside, "predictors")
        for name in parts.keys() & others.keys():
            raise ValueError(f"beside must have other names than {', '.join(parts)}, got {name!r}")
        super().__init__(**parts, **others)
        for name in self.keys() & set(self.space.labels):
            raise ValueError(f"classes must have other names than the predictors {', '.join(self)}, got {name!r}")
        self.watch()

    def _frozen(self, scorer: Any, classes: Any) -> Any:
        """Return a given scorer, which no longer learns."""
        return _wrapped(FrozenScorer, scorer, classes)

    def _calibrating(self, scorer: Any, measure: Any) -> dict[str, Predictor]:
        """Return the predictors that calibrate a frozen scorer, with sets by this measure."""
        return given_parts(scorer, measure)

    def _learning(self, classes: Any, first: Any, ranges: Any) -> dict[str, Predictor]:
        """Return the predictors without a scorer, and take over their scale."""
        if classes is None:
            raise TypeError("Forecaster needs classes, the labels that may come, or a fitted scorer, got neither")
        if hasattr(classes, "predict"):
            raise TypeError(f"classes must be labels, got {classes!r}: a classifier is given as scorer=...")
        if isinstance(classes, type):
            raise TypeError(f"classes must be labels, or float where labels are numbers, got {classes!r}")
        bank = own_bank(classes, first, ranges)
        self.first, self.ranges = (bank.scale.first, bank.scale.ranges) if bank.scale else (0, None)
        return own_parts(bank, self.transductive, self.last)

    @property
    def told(self) -> str:
        """What it was given as classes."""
        return repr(list(self.classes))

    def watch(self) -> None:
        """Begin to watch, having seen nothing."""
        share_histories(self._learners)
        self._before = 0  # examples learned before it began anew
        self._asked: Query | None = None  # the last one
        self._stepped: tuple[Any, RowStep | None] = None, None  # of which learners, and their step
        watched = {name: self[name] for name in self.claiming}
        self.monitors = together(watched, self.space, level=self.level, spare=1)
        if self.floor is not None:
            if FLOOR in self:
                raise ValueError(f"beside must not hold {FLOOR!r}, the name of what watches the floor, got {self!r}")
            self.floors[FLOOR] = FloorWatch(self.floor, predictor=FORECAST)

    def __repr__(self) -> str:
        main: Any = self[self.main]
        scorer = "" if isinstance(main, Switch) else f", scorer={main.given!r}"
        scale = "" if self.first is None else f", first={self.first}"
        scale += "" if self.ranges is None else f", ranges={self.ranges!r}"
        others = {name: one for name, one in self.items() if name not in self.parts}
        beside = f", beside={others!r}" if others else ""
        chosen = f"transductive={self.transductive}, last={self.last}{scale}, level={self.level}"
        chosen += "" if self.on_change == RESTART else f", on_change={self.on_change!r}"
        chosen += "" if self.floor is None else f", floor={self.floor!r}"
        sets: Any = self.get(SETS)
        usual = sets is None or not scorer or repr(sets.measure) == repr(usual_measure(sets.given))
        chosen += "" if usual else f", measure={sets.measure!r}"
        experts = f", experts={list(self.given_experts)!r}" if self.given_experts else ""
        return f"Forecaster({self.told}{scorer}, {chosen}{beside}{experts})"

    @property
    def given_experts(self) -> tuple[Any, ...]:
        """The experts of the forecast that were given, as they are now."""
        forecast: Any = self[FORECAST]
        return tuple(forecast.experts[slice(*self.own)])

    def joined_by(self, expert: Predictor) -> Self:
        """Return one that has learned nothing, with one more expert of its forecast.

        Raises
        ------
        ValueError
            This one has learned something.
        """
        if self.n:
            raise ValueError(f"a forecaster must have learned nothing to be joined by an expert, got {self.n} examples")
        forecast: Any = self[FORECAST]
        forecast = with_given(forecast, [expert])
        several = len(forecast.experts)
        own = (self.own[0] if self.given_experts else several - 1, several)
        made: Self = type(self).made_of(self.parameters | {"predictors": dict(self) | {FORECAST: forecast}, "own": own})
        return made

    # -------------------------------------------------------------------- state

    @property
    def parameters(self) -> dict[str, Any]:
        """The predictors as they are, and what was chosen."""
        return {"predictors": dict(self)} | {name: getattr(self, name) for name in CHOSEN}

    @property
    def state(self) -> dict[str, Any]:
        """What watches, and how many examples were learned before it began anew."""
        return {"monitors": self.monitors, "floors": self.floors, "before": self._before}

    if not TYPE_CHECKING:  # a type checker should still report missing attributes

        def __getattr__(self, name: str) -> NoReturn:
            who = ELSEWHERE * (name in ("fit", "partial_fit", "predict", "predict_proba"))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{who}", name=name, obj=self)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a forecaster of these predictors."""
        parameters = {"own": (0, 0)} | parameters  # of a file without, from before there were any
        checked_keys("parameters", parameters, ("predictors", *CHOSEN))
        made = cls.__new__(cls)
        made.transductive = integer("transductive", parameters["transductive"], 2)
        made.last = integer("last", parameters["last"], made.transductive)
        made.level = fraction("level", parameters["level"])
        made.floor = optional("floor", parameters["floor"], floor_of)
        made.first = None if parameters["first"] is None else integer("first", parameters["first"], 0)
        made.ranges = None if parameters["ranges"] is None else checked_ranges("ranges", parameters["ranges"])
        predictors = parameters["predictors"]
        if not isinstance(predictors, dict) or tuple(predictors)[: len(cls.parts)] != cls.parts:
            raise ValueError(f"predictors must begin with {', '.join(cls.parts)}, got {predictors!r}")
        if not isinstance(predictors[cls.main], Switch | cls.calibrates):
            raise ValueError(f"{cls.main} must be those of a Forecaster, got {predictors[cls.main]!r}")
        Panel.__init__(made, **predictors)
        made.own = _restored_places("own", parameters["own"], predictors[FORECAST])
        made.on_change = one_of("on_change", parameters["on_change"], (RESTART, KEEP))
        made.watch()
        return made

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what watches."""
        super().restore(state)
        monitors = state["monitors"]
        if not isinstance(monitors, dict) or monitors.keys() != self.monitors.keys():
            raise ValueError(f"monitors must be those of {', '.join(self.monitors)}, got {monitors!r}")
        for name, monitor in monitors.items():
            if not isinstance(monitor, Monitor) or monitor.space != self.space:
                raise ValueError(f"monitors must be like {self.monitors[name]!r}, got {monitor!r}")
        floors = state["floors"]
        if not isinstance(floors, dict) or [type(one) for one in floors.values()] != [FloorWatch] * len(self.floors):
            raise ValueError(f"floors must be like {self.floors!r}, got {floors!r}")
        self.monitors, self.floors = monitors, floors
        self._before = restored_int("before", state["before"])

    # ------------------------------------------------------------------ in use

    @property
    def n(self) -> int:
        """Number of examples learned."""
        main: Any = self[self.main]
        return self._before + int(main.n)

    def predict_one(self, x: Any) -> Any:
        """Return the outlook for one object; nothing is learned."""
        return self.outlook(self._predicted(x))

    def predict_many(self, X: Any) -> Any:
        """Return the outlooks for many objects, (n, d), all from the present state; nothing is learned."""
        return self.outlooks(super().predict_many(X))

    def merge(self, other: Self) -> Self:
        """Return a new forecaster that has calibrated the given scorer on the examples of both, which do not change.

        Its intervals and sets are, to the last bit, those of one that has learned all the examples. The weights of its
        forecast add up the evidence of both, gathered in the order of each; so they may differ a little from those of
        one stream. If only one of the two has begun anew, the forecast has no evidence: its experts are those that both
        have, and are weighed from the start. It watches anew, and the verdicts of the parts stay with them.

        Parameters
        ----------
        other : Forecaster
            With the same parameters and the same scorer, as for `Panel.merge`.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described, or there is no given scorer.
        """
        if isinstance(other, Forecaster) and other.own != self.own:
            raise ValueError(
                f"other must have the experts {list(self.given_experts)!r}, to be merged, "
                f"got {list(other.given_experts)!r}"
            )
        predictors = self._merged(other)
        for name in ("transductive", "last", "level", "on_change", "floor"):
            if getattr(other, name) != getattr(self, name):
                raise ValueError(
                    f"other must have the {name} {getattr(self, name)!r}, to be merged, got {getattr(other, name)!r}"
                )
        return type(self).made_of(self.parameters | {"predictors": predictors})

    def _merged(self, other: Any) -> dict[str, Any]:
        """Return the merged predictors; of a forecast that began anew, only the experts that the other has, too."""
        if type(other) is not type(self) or list(other) != list(self):
            return super()._merged(other)  # it says what is wrong
        forecasts: list[Any] = [one[FORECAST] for one in (self, other)]
        least = min(len(one.experts) for one in forecasts)
        if all(len(one.experts) == least for one in forecasts):
            return super()._merged(other)
        panels = zip((self, other), forecasts, strict=True)
        one, two = (Panel(**{**each, FORECAST: forecast.first_experts(least)}) for each, forecast in panels)
        return dict(one.merge(two))

    def _question(self, x: Any) -> Query:
        """Return the question about an object; the last one since the last example is remembered."""
        x = x.x if type(x) is Query else x
        key, asked, step = content_of(x), self._asked, self._row_step
        if key is None or asked is None or asked.key != key:
            asked = self._asked = Query(x, key)
        asked.x = x  # the other one may have been changed since
        if step is not None and (asked.answered is None or asked.answered.step is not step):
            step.answer(asked)
        return asked

    def ask_anew(self) -> None:
        """Forget the last question: an expert that is told what to say may say something else of the same object."""
        self._asked = None

    @property
    def _row_step(self) -> RowStep | None:
        """How all that learns takes one row, where that is known."""
        learners, step = self._stepped
        if learners is not self._learners:
            step = RowStep.of(self._learners)
            self._stepped = self._learners, step
        return step

    def prepare(self, x: Any, y: Label, told: Mapping[str, Any] | None = None, late: int = 0) -> Prepared:
        """Return what the predictors note before anything learns: see `Panel.prepare`."""
        if told is None and self._row_step is not None:
            self.space.encode(y)
            prepared = Prepared()
            prepared.question = question = self._question(x)
            prepared.step = question.answered.step
            return prepared
        return super().prepare(x, y, told, late)

    def _check_prepared(self, prepared: Any) -> None:
        if getattr(prepared, "step", None) is None or prepared.step is not self._row_step:
            super()._check_prepared(prepared)

    def _teach(self, x: Any, y: Label, prepared: Prepared | None) -> None:
        if prepared is None or prepared.step is None:
            super()._teach(x, y, prepared)
        else:  # mixtures weigh what was prepared; all else learns now
            heard, question = prepared.question.answered.heard, prepared.question
            now = question if question is self._asked else self._question(x)
            prepared.step.learn(now.answered, self.space.encode(y), heard)

    def learn_one(self, x: Any, y: Label, prepared: Prepared | None = None) -> None:
        """Learn one example; the monitors first compare it with what is said of it."""
        predictors = self._predictors
        main: Any = predictors[self.main]
        n = main.n
        if prepared is None:
            prepared = self.prepare(x, y)
        else:
            self._check_prepared(prepared)
        question, told = prepared.question, prepared.told or {}
        if question is not self._asked:  # it has learned since
            question = self._question(x)
        said = {name: self._prediction(predictors[name], question) for name in self.monitors}
        if self.floors and FORECAST not in told:
            told = {FORECAST: self._prediction(self[FORECAST], question)}
        try:
            self._teach(x, y, prepared)
        finally:
            self._asked = None
            if main.n > n:  # the example counts, even if a predictor's own fit has failed
                rung = [one.update(said[name], y) for name, one in self.monitors.items()]
                for floor in self.floors.values():
                    floor.see(floor.among(told), y)
                if any(rung) and self._begins_anew and self._changed:
                    self._begin_anew()

    @property
    def _begins_anew(self) -> bool:
        return self.on_change == RESTART

    @property
    def _changed(self) -> bool:
        return any(self.monitors[name].verdict().state == CHANGED for name in self.claiming)

    def _begin_anew(self) -> None:
        """Forget all examples, as after a change: a new bag, new bets, and the promises of a new stream."""
        main: Any = self[self.main]
        if self.first is None and self.ranges is None:
            parts = self._calibrating(main.given, None)
            sets: Any = self.get(SETS)  # of the same measure; of numbers there are none
            parts |= {} if sets is None else {SETS: sets.calibrated()}
        else:
            parts = self._learning(self.classes, self.first, self.ranges)
        given, forecast = self.given_experts, parts[FORECAST]
        if given:
            forecast = with_given(forecast, given)
        parts[FORECAST] = with_further(forecast, self[FORECAST], given) if self.classes else forecast
        before = self.n
        self._predictors.update(parts)
        self._learners = elementary(self._predictors.values())
        share_histories(self._learners)
        self._before = before
        for name, monitor in self.monitors.items():
            monitor.begin_anew(trainings(self[name]))

    @asks
    def verdict(self, given: Mapping[str, Monitor] | None = None) -> Verdict:
        """Return whether the model does what it claims, in one sentence: the worst verdict of its monitors.

        Parameters
        ----------
        given : mapping of str to Monitor, optional
            By name, monitors of the predictions that were given to a user: see `Monitor.verdict`.

        Raises
        ------
        TypeError
            `given` is something else.
        """
        told = {} if given is None else given
        if not isinstance(told, Mapping):
            raise TypeError(f"given must be a mapping of names to monitors, got {told!r}")
        found = {name: one.verdict(told.get(name)) for name, one in self.monitors.items()}
        return self.advised(worst(found | {name: one.verdict() for name, one in self.floors.items()}))

    def advised(self, verdict: Verdict) -> Verdict:
        """Return a verdict with what may be done: what calibrates a given scorer cannot turn it round."""
        given = verdict.state in (CHANGED, USELESS) and not isinstance(self[self.main], Switch)
        return replace(verdict, advice=GIVEN) if given else verdict


@saved
class NumberForecaster(Forecaster):
    """The `Forecaster` where labels are numbers: `Forecaster(float)` makes it."""

    parts = (DISTRIBUTION, FORECAST)
    claiming = (DISTRIBUTION,)
    main = DISTRIBUTION
    calibrates = InductiveDistribution
    outlook, outlooks = NumberOutlook, NumberOutlooks

    def _frozen(self, scorer: Any, classes: Any) -> Any:
        return scorer if isinstance(scorer, FrozenRegressor) else _wrapped(FrozenRegressor, scorer)

    def _calibrating(self, scorer: Any, measure: Any) -> dict[str, Predictor]:
        if measure is not None:
            raise TypeError(f"measure must be given for a classifier only, whose sets it makes, got {measure!r}")
        distribution = InductiveDistribution(scorer)
        return {DISTRIBUTION: distribution, FORECAST: DistributionMixture([distribution], first=FIRST)}

    def _learning(self, classes: Any, first: Any, ranges: Any) -> dict[str, Predictor]:
        scale = own_scale(first, ranges)
        self.first, self.ranges = (scale.first, scale.ranges) if scale else (0, None)
        fits = Prefix(FITTED, first=FIRST_FIT, last=max(FIRST_FIT, self.transductive - 1))
        schedule = Prefix(SHARE, self.transductive, GROWTH, self.last)
        late = InductiveDistribution(NumberStack(), schedule=schedule)
        distribution = Switch(StackedDistribution(fits, scale), late)
        refits = NumberRefits(min(FIT, self.last), last=min(self.last, LAST_FIT))
        return {DISTRIBUTION: distribution, FORECAST: DistributionMixture([distribution, refits], first=FIRST)}

    @property
    def told(self) -> str:
        """What it was given as classes."""
        return "float"


def of_numbers(classes: Any, scorer: Any) -> bool:
    """Whether labels are numbers: declared by float, or since a scorer is a regressor.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> of_numbers(float, None), of_numbers(["no", "yes"], None)
    (True, False)
    >>> of_numbers(None, LinearRegression()), of_numbers(None, LogisticRegression())
    (True, False)
    """
    if classes is None and scorer is not None:
        return isinstance(scorer, FrozenRegressor) or _is_regressor(scorer)
    return classes is float or isinstance(classes, Real)


def _is_regressor(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(estimator))
    except (AttributeError, TypeError):  # not scikit-learn's own: whoever calibrates it says what is wrong with it
        return False


def content_of(x: Any) -> Any:
    """Return what tells an object from others, of an array or a row of numbers; None for any other."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
        return x.shape, x.dtype, x.tobytes()
    if isinstance(x, list | tuple) and {*map(type, x)} <= NUMBERS:
        try:
            return None if any(map(isnan, x)) else tuple(map(float, x))
        except OverflowError:  # an integer that no float holds: whoever is asked about it says so
            return None
    return None


def watched(names: Iterable[str]) -> list[str]:
    """Return the names of the predictors to monitor: all but a forecaster's forecast, which claims nothing of one step.

    Examples
    --------
    >>> watched(["forecast", "intervals", "sets", "platt"]), watched(["forecast"])
    (['intervals', 'sets', 'platt'], ['forecast'])
    """
    found = list(names)
    forecasters = [FORECAST, INTERVALS, SETS], [DISTRIBUTION, FORECAST]
    return [one for one in found if one != FORECAST] if found[:3] in forecasters or found[:2] in forecasters else found


def _restored_places(name: str, value: Any, forecast: Any) -> tuple[int, int]:
    """Return places of experts in a forecast, from one on up to another; or say what they must be."""
    experts = len(getattr(forecast, "experts", ()))
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{name} must be two places, got {value!r}")
    first = integer(name, value[0], 0, experts)
    return first, integer(name, value[1], first, experts)


def _wrapped(kind: Any, scorer: Any, *given: Any) -> Any:
    """Return a scorer that no longer learns; the wrapper's parameter is called `estimator`, the user's `scorer`."""
    try:
        return kind(scorer, *given)
    except (TypeError, ValueError) as error:
        if not str(error).startswith("estimator must"):
            raise
        raise type(error)(str(error).replace("estimator", "scorer", 1)) from error.__cause__
