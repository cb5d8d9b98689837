"""Many predictors side by side on one stream. A machine that several of them read is solved once and learns once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from venn.labels import HasLabels, space_of
from venn.machines.objects import Query, clean_rows
from venn.machines.window import taught
from venn.monitors.episodes import Episodes, episodes_of
from venn.monitors.floor import FloorWatch
from venn.monitors.monitor import Monitor
from venn.monitors.verdict import Verdict
from venn.parameters import has_methods
from venn.prediction import Label, Prediction
from venn.predictors.blocks import block_of
from venn.predictors.expert_mixture import Weighing
from venn.predictors.learning import Combined, Predictor, checked_predictor, elementary, put, teach_all
from venn.saved import Saved, saved
from venn.turns import TakesTurns, asks, changes, turn_of

Given = TypeVar("Given")


class Prepared(list[Any]):
    """What `Panel.prepare` returned for an example. A class of its own, so that no other list is taken for it."""

    told: Mapping[str, Prediction] | None = None  #: predictions by name, where the label came late
    question: Query  #: the object with all that was computed for it
    step: Any = None  #: a `RowStep` that prepares everything itself; the list is empty then


@saved
class Panel(TakesTurns, HasLabels, Saved, Mapping[str, Predictor]):
    """Several predictors on one stream.

    Predictors that hold the same machine object share it: its hypotheses are solved once a step
    and the label is learned once. The same holds of predictors on members and mixtures of one `Bank`,
    and of predictors that also stand inside an `ExpertMixture`.

    Parameters
    ----------
    **predictors : Predictor
        Names and predictors, in the order of display. All must have the same classes.
        Each predictor object has one name. Machines may be shared or not.

    Attributes
    ----------
    classes : tuple of labels
    space : LabelSpace
        What labels may be.
    monitors : dict of str to Monitor
        Monitors that the panel itself updates as it learns, by name of a predictor. Only a `Forecaster` has any.

    Raises
    ------
    TypeError
        A predictor without a name, a value that is not a predictor, or a machine without `check`.
    ValueError
        No predictor, one predictor under two names, or classes that differ.

    Notes
    -----
    A refused example leaves every machine and predictor as it was: everything that can refuse it, a machine's `check`
    and a predictor's `prepare`, comes before anything learns, and several machines solve before any learns.

    Examples
    --------
    A predictor that counts labels only, alone in a panel:

    >>> import numpy as np
    >>> from venn.prediction import Forecast
    >>> from venn.predictors import Predictor
    >>> class Frequencies(Predictor):
    ...     classes = ("no", "yes")
    ...     def __init__(self):
    ...         self.counts = np.ones(2)
    ...     def predict_one(self, x):
    ...         return Forecast(self.counts / self.counts.sum(), self.classes)
    ...     def commit(self, x, y, prepared=None):
    ...         self.counts[self.classes.index(y)] += 1
    >>> panel = Panel(frequencies=Frequencies())
    >>> panel.learn_one([0.0], "yes")
    >>> panel.predict_one([0.0])
    {'frequencies': Forecast('yes': 0.667)}
    """

    def __init__(self, /, *unnamed: object, **predictors: Predictor) -> None:
        if unnamed:
            raise TypeError(f"predictors go by name, Panel(venn=model, ...), got {', '.join(map(repr, unnamed))}")
        if not predictors:
            raise ValueError("a panel needs at least one predictor, got none")
        for name, predictor in predictors.items():
            checked_predictor(name, predictor)
            if predictor.machine is not None and not has_methods(predictor.machine, "check", "learn_one"):
                raise TypeError(f"{name} must read a machine with check and learn_one, got {predictor.machine!r}")
        first, *others = predictors
        self.space = space_of(predictors[first])
        seen = {id(predictors[first]): first}
        for name in others:
            space = space_of(predictors[name])
            if space != self.space:
                raise ValueError(
                    f"predictors must have the same classes, got {self.space.told} in {first}, {space.told} in {name}"
                )
            twin = seen.setdefault(id(predictors[name]), name)
            if twin != name:
                raise ValueError(f"{twin} and {name} are the same predictor object: it would learn twice")
        self._predictors = predictors
        self._learners = elementary(predictors.values())
        self.monitors: dict[str, Monitor] = {}
        self.floors: dict[str, FloorWatch] = {}

    def _turns_with(self) -> Iterable[Any]:
        return self._predictors.values()

    @property
    def parameters(self) -> dict[str, Any]:
        """The predictors by name."""
        return dict(self)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a panel of these predictors."""
        return cls(**parameters)

    @property
    def machines(self) -> tuple[Any, ...]:
        """The distinct machines, each once: those that the predictors read now."""
        read = [machine for predictor in self._learners if (machine := predictor.machine) is not None]
        return tuple({id(machine): machine for machine in map(taught, read)}.values())

    def __getitem__(self, name: str) -> Predictor:
        return self._predictors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._predictors)

    def __len__(self) -> int:
        return len(self._predictors)

    # Two panels are never equal: their contents learn.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={predictor!r}" for name, predictor in self._predictors.items())
        return f"Panel({inside})"

    def watch_by(self, monitors: Mapping[str, Given]) -> dict[str, Given]:
        """Replace its own monitors by given ones of the same names; return the rest, which it does not update."""
        if not isinstance(monitors, Mapping):
            raise TypeError(f"monitors must be a mapping of names to monitors, got {monitors!r}")
        own: dict[str, Any] = {name: one for name, one in monitors.items() if name in self.monitors}
        for name, one in own.items():
            if not isinstance(one, Monitor):
                raise TypeError(f"monitors must hold a Monitor of {name}, which the model watches itself, got {one!r}")
        self.monitors |= own
        return {name: one for name, one in monitors.items() if name not in own}

    def episodes(self) -> Episodes:
        """Return the changes that its own monitors have seen, each from its first alarm to its end.

        Questions are numbered as examples were learned; in an `Online`, `online.episodes()` knows their times and ids.
        """
        return episodes_of(self.monitors | self.floors)

    @property
    def inner(self) -> dict[str, Any]:
        """Monitors inside predictors, under names that no predictor has."""
        return {
            part if len(self) == 1 else f"{part} of {name}": one
            for name, predictor in self._predictors.items()
            for part, one in getattr(predictor, "watches", {}).items()
        }

    @property
    def in_turn(self) -> bool:
        """Whether each question is answered before the next one, as in a series; a question given up is a gap."""
        return any(getattr(one, "in_turn", False) for one in self._predictors.values())

    def advised(self, verdict: Verdict) -> Verdict:
        """Return a verdict with what may be done about it, where the model knows."""
        return verdict

    @asks
    def predict_one(self, x: Any) -> dict[str, Prediction]:
        """Return the prediction of every predictor by name; nothing is learned."""
        return self._predicted(x)

    def _predicted(self, x: Any) -> dict[str, Any]:
        question = self._question(x)
        return {name: self._prediction(predictor, question) for name, predictor in self._predictors.items()}

    def _question(self, x: Any) -> Query:
        """Return the question about an object, or the question itself. A subclass may know earlier answers."""
        return x if type(x) is Query else Query(x)

    def _prediction(self, predictor: Any, question: Query) -> Any:
        """Return a predictor's prediction; it is made once for each question."""
        said, key = question.said, id(predictor)
        if key not in said:
            if isinstance(predictor, Combined):
                said[key] = predictor.combined([self._prediction(part, question) for part in predictor.asked])
            else:
                said[key] = predictor.predict_one(put(predictor, question))
        return said[key]

    @asks
    def predict_many(self, X: Any) -> dict[str, Any]:
        """Return the predictions of every predictor for many objects, all from the present state; nothing is learned.

        Prediction i is that of `predict_one` for row i, to the last bit if the scores are: see `FrozenScorer`.
        Predictors with a `predict_many` of their own, the inductive ones, score all objects in one call.

        Parameters
        ----------
        X : (n, d) finite numbers
            An array, sparse or not. If all predictors have a `FrozenScorer` fitted to a table, a table with the same
            columns too.

        Returns
        -------
        dict of str to block or list
            By name. A block (`ManyForecasts`, `ManyClassIntervals`, ...) where there is one for their kind of
            prediction, otherwise a list.

        Raises
        ------
        ValueError, TypeError
            X is not as described.

        Examples
        --------
        >>> import venn
        >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
        >>> panel = venn.Panel(venn=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine))
        >>> for i in range(20):
        ...     panel.learn_one([i / 20], "yes" if i > 10 else "no")
        >>> panel.predict_many([[0.1], [0.9]])["venn"].labels
        ['no', 'yes']
        """
        asked = elementary(self._predictors.values(), asked=True)
        found = {id(one): one.predict_many(X) for one in asked if has_methods(one, "predict_many")}
        singly = [one for one in asked if id(one) not in found]
        if singly:
            rows = clean_rows(X, None, missing=True)  # each predictor has its own check
            # Object by object: a machine that several predictors read is asked once about each.
            said = [[one.predict_one(rows[i]) for one in singly] for i in range(len(rows))]
            found |= {id(one): block_of([each[k] for each in said]) for k, one in enumerate(singly)}
        return {name: self._found(predictor, found) for name, predictor in self._predictors.items()}

    def _found(self, predictor: Any, found: dict[int, Any]) -> Any:
        """Return predictions for many objects: those `found` by the predictor's identity, or combined of such."""
        if id(predictor) not in found:
            found[id(predictor)] = predictor.combined_many([self._found(part, found) for part in predictor.asked])
        return found[id(predictor)]

    def merge(self, other: Self) -> Self:
        """Return a new panel that has learned the examples of both, which do not change.

        Parameters
        ----------
        other : Panel
            With the same names, and predictors that merge with those of this one: inductive ones with the same given
            scorer and the schedule `NoTraining()`, and combinations of such. What trains or keeps a bag has learned its
            examples in an order, and does not merge.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described; the message names the difference.

        Examples
        --------
        >>> import venn
        >>> from sklearn.svm import LinearSVC
        >>> scorer = venn.FrozenScorer(LinearSVC().fit([[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]))
        >>> here, there = (venn.Panel(abers=venn.InductiveVennAbers(scorer)) for _ in range(2))
        >>> here.learn_one([0.2], "no")
        >>> there.learn_one([1.1], "yes")
        >>> here.merge(there)["abers"].n
        2
        """
        return type(self).made_of(self._merged(other))

    def _merged(self, other: Any) -> dict[str, Any]:
        """Return the merged predictors by name, or say why these panels do not merge."""
        if type(other) is not type(self):
            raise TypeError(f"other must be a {type(self).__name__}, to be merged with one, got {other!r}")
        if list(other) != list(self):
            raise ValueError(f"other must have the predictors {', '.join(self)}, to be merged, got {', '.join(other)}")
        merged: dict[int, Any] = {}
        with turn_of(self, other):
            return {name: _both(name, predictor, other[name], merged) for name, predictor in self._predictors.items()}

    def foresee(self, examples: Sequence[tuple[Any, Label]], whole: bool = False) -> None:
        """Announce the examples that it will learn first, so that fits to them begin early; no answer depends on it.

        Where these are the whole stream, no fit that falls due after it is begun before more have come.
        """
        for one in self._learners:
            if has_methods(one, "foresee"):
                one.foresee(examples, whole)

    def prepare(self, x: Any, y: Label, told: Mapping[str, Prediction] | None = None, late: int = 0) -> Prepared:
        """Return what the predictors note before anything learns; raise what `learn_one(x, y)` would raise.

        All machines solve their problems, so that learning can begin.

        Parameters
        ----------
        x : object
        y : one of `classes`
        told : mapping of str to prediction, optional
            What was said of the object when it was asked about, if its label came late.
        late : int >= 0, default 0
            Number of examples learned since then.

        Raises
        ------
        TypeError, ValueError, NotConverged
            As `learn_one` raises them, or `told` is no mapping.
        """
        if told is not None and not isinstance(told, Mapping):
            raise TypeError(f"told must be what was said by each predictor, by its name, got {told!r}")
        machines = self.machines
        prepared = self._prepared(x, y, machines)
        if late and told is not None:
            prepared.told = told
            for name, predictor in self.items():
                if isinstance(predictor, Predictor) and not isinstance(predictor, Combined):
                    place = next(i for i, one in enumerate(self._learners) if one is predictor)
                    prepared[place] = predictor.prepare_late(prepared[place], told[name], late)
        for machine in machines:
            machine.hypotheses(put(machine, prepared.question))
        return prepared

    def _prepared(self, x: Any, y: Label, machines: Sequence[Any]) -> Prepared:
        self.space.check(y)
        question = self._question(x)
        for machine in machines:
            machine.check(put(machine, question), y)
        prepared = Prepared([
            predictor.compared([self._prediction(one, question) for one in predictor.owner.experts])
            if isinstance(predictor, Weighing) else predictor.prepare(put(predictor, question), y)
            for predictor in self._learners
        ])  # fmt: skip
        prepared.question = question
        return prepared

    def _check_prepared(self, prepared: Any) -> None:
        if type(prepared) is not Prepared or len(prepared) != len(self._learners):
            raise ValueError(f"prepared must be what prepare(x, y) returned, got {prepared!r}")

    @changes
    def learn_one(self, x: Any, y: Label, prepared: Prepared | None = None) -> None:
        """Teach every distinct machine once, then every predictor.

        Parameters
        ----------
        x : object
        y : one of `classes`
        prepared : optional
            What `prepare(x, y)` has just returned.

        Raises
        ------
        ValueError
            The label is not one of the classes, or a machine refuses the example. Nothing is learned.
        NotConverged
            A machine cannot be solved: nothing is learned. Or a scaler's own fit fails: the machines and all
            other predictors have learned the example.
        """
        self._teach(x, y, prepared)

    def _teach(self, x: Any, y: Label, prepared: Prepared | None) -> None:
        # Only solving can still fail: several machines solve before any learns; a single one solves as it learns.
        machines = self.machines
        if prepared is None:
            prepared = self.prepare(x, y) if len(machines) > 1 else self._prepared(x, y, machines)
        self._check_prepared(prepared)
        for machine in machines:
            machine.learn_one(put(machine, prepared.question), y)
        try:
            teach_all(self._learners, prepared.question, y, prepared)
        finally:
            if any([one.settle() for one in self._predictors.values() if isinstance(one, Combined)]):
                self._learners = elementary(self._predictors.values())

    @changes
    def skip(self, x: Any) -> None:
        """Tell predictors that no answer comes. Predictors of a series take it as a missing value; others ignore it."""
        for one in self._learners:
            if getattr(one, "in_turn", False):
                one.skip(x)


def panel_of(predictor: Any) -> Panel:
    """Return a panel as it is, one predictor as a panel under the name of its class."""
    if isinstance(predictor, Panel):
        return predictor
    return Panel(**{type(checked_predictor("predictor", predictor)).__name__: predictor})


def _both(name: str, one: Any, other: Any, merged: dict[int, Any]) -> Any:
    """Return two predictors merged; parts that several share are merged once, by the identity of the first one's."""
    if id(one) not in merged:
        if isinstance(one, Combined) and type(other) is type(one):
            if len(one.predictors) != len(other.predictors):
                raise ValueError(f"other must have the {name} {one!r}, to be merged, got {other!r}")
            parts = zip(one.predictors, other.predictors, strict=True)
            both = [_both(name, own, theirs, merged) for own, theirs in parts if not isinstance(own, Weighing)]
            merged[id(one)] = one.joined(other, both)
        elif has_methods(one, "around") and type(other) is type(one):
            merged[id(one)] = one.around(_both(name, one.predictor, other.predictor, merged))
        elif has_methods(one, "merge"):
            merged[id(one)] = one.merge(other)
        else:
            raise ValueError(
                f"{name} must calibrate a given scorer, to be merged, got {one!r}: it learns examples in their order, "
                "so parts of a stream do not make up the whole"
            )
    return merged[id(one)]
