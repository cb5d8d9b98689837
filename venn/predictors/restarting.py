"""Predictors that start again or change: a window that restarts at an alarm, and a switch from few examples to many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from venn.labels import HasLabels, space_of
from venn.machines.window import taught
from venn.parameters import has_methods, integer, optional, with_methods
from venn.prediction import Label, Prediction
from venn.predictors.inductive_base import Inductive
from venn.predictors.learning import AroundPredictor, Combined, checked_predictor, copied_predictor, elementary, said_by
from venn.saved import component, described, own, param, part, restored_int, restored_like, restored_text, state

# ----------------------------------------------------------------------------------------------------------- restarting
# A predictor whose window restarts when a monitor of its predictions rings.

SEEDS = 1 << 64  # distance of the seeds of two starts: users' seeds are never this large


class Watcher(Protocol):
    """Says when the predictions no longer hold; `Monitor` is one."""

    def update(self, prediction: Any, y: Label) -> Sequence[Any]:
        """Take in a prediction and the label that was then revealed; return the alarms that ring now."""

    def fresh(self, seed: int) -> Watcher:
        """Return a watcher with the same parameters but this seed, which has seen nothing."""


def checked_monitor(name: str, monitor: Any) -> Watcher:
    """Return the monitor, or say what is wrong with it."""
    return with_methods(name, monitor, "a monitor object, such as Monitor(classes)", "update", "fresh")


@component
class Restarting(HasLabels, AroundPredictor):
    """A predictor on a sliding window that starts anew when its monitor rings.

    At every example to learn it first makes its prediction, gives the monitor the prediction and the label, and then
    learns. If an alarm rings, the window forgets all but the latest `keep` examples, and a fresh monitor, with random
    numbers of its own, takes over.

    What is proved, for an exchangeable stream. An alarm is a function of the examples up to it; given those, the later
    ones are still exchangeable. So with keep=0 everything that holds at the start of a stream holds again at a restart,
    given the past: each prediction is valid; until the window is full again, so are the statements about many steps;
    and each start rings falsely with at most the level's probability, for the detectors of the monitor that have a
    level. Of N starts at most N times the level ring falsely on average. Once the window slides, each prediction
    remains valid, but nothing is proved about alarms: see `SlidingWindow`. With keep > 0 the kept examples are among
    those that made the alarm ring, so they and the new one are not exchangeable given the alarm: nothing is proved
    until the last of them has left the window. Keeping them may still be better, as a short memory is worth more than
    none.

    What is not proved. When the stream has changed, an alarm comes after a delay that no theorem bounds; predictions in
    between are not valid, nor is what is kept from before. With keep=0, if the examples after the alarm are
    exchangeable, all the above holds of them; but nobody can know that they are. And a monitor of one predictor's
    errors notices only changes that show in those errors.

    Parameters
    ----------
    predictor : predictor
        It reads a `SlidingWindow`, within groups if `by_group` made it, and nobody else teaches it. It is copied, but
        its window is not, so other predictors of a `Panel` may read the window too; they find it restarted.
    monitor : Watcher
        A pattern, such as `Monitor(classes)`; fresh copies are used.
    keep : int >= 0, default 0
        Number of latest examples that survive a restart, at most the size of the window.
    seed : int >= 0, default 0
        Seed of the monitors' random numbers, which differ for each start.

    Attributes
    ----------
    predictor : predictor
        The copy. Do not teach it.
    watching : Watcher
        The monitor since the last restart.
    n : int
        Number of examples learned.
    restarts : tuple of int
        Values of `n` at which the window restarted.
    alarms : tuple
        The alarms that rang at each restart.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> import venn
    >>> from venn.machines.window import SlidingWindow
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> base = venn.Conformal(SlidingWindow(machine, size=500))
    >>> model = Restarting(base, venn.Monitor(base.classes))
    >>> rng = np.random.default_rng(0)
    >>> for step in range(600):  # the labels change places at step 300
    ...     x = rng.normal(size=1)
    ...     model.learn_one(x, "yes" if (x[0] > 0) == (step < 300) else "no")
    >>> len(model.restarts), 300 < model.restarts[0] < 340, model.machine.n == 600 - model.restarts[0]
    (1, True, True)
    """

    unnamed = 2

    predictor: Any = param(copied_predictor)
    monitor: Watcher = param(checked_monitor)
    keep: int = param(integer, 0, default=0)
    seed: int = param(integer, 0, default=0)

    n: int = state(restored_int, start=0)
    watching: Watcher = state(restored_like, start=own(lambda model: model.monitor.fresh(seed=model.seed)))
    _restarts: list[tuple[int, tuple[Any, ...]]] = state(part(list, none=False), start=own(lambda _: []))

    def derive(self) -> None:
        """Find the window that the predictor reads."""
        window = taught(getattr(self.predictor, "machine", None))
        if not has_methods(window, "restart"):
            raise TypeError(f"predictor must read a machine that can restart, a SlidingWindow, got {self.predictor!r}")
        size = getattr(window, "size", self.keep)
        if self.keep > size:
            raise ValueError(f"keep must be at most the size of the window, {size}, got {self.keep}")
        self.space = space_of(self.predictor)

    @property
    def restarts(self) -> tuple[int, ...]:
        """Values of `n` at which the window restarted."""
        return tuple(n for n, _ in self._restarts)

    @property
    def alarms(self) -> tuple[tuple[Any, ...], ...]:
        """The alarms that rang at each restart; they count steps from the previous start."""
        return tuple(rung for _, rung in self._restarts)

    def predict_one(self, x: Any) -> Prediction:
        """Return the predictor's prediction for `x` now; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.predictor.predict_one(x)

    def prepare(self, x: Any, y: Label) -> tuple[Prediction, Any]:
        """Return the prediction for `x` before anything learns, with what the predictor prepares; or refuse it."""
        self.space.check(y)
        return self.predict_one(x), self.predictor.prepare(x, y)

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example that the machine has already learned: monitor and predictor; restart if an alarm rings.

        Raises
        ------
        RuntimeError
            `prepared` is missing, so the prediction from before the machine learned is unknown. The predictor has
            learned the example, the monitor has not seen it.
        NotConverged
            The predictor's own fit fails, or the window stops short of `keep` examples; all have learned the example.
        """
        self.n += 1
        if prepared is None:
            self._refuse_unprepared(x, y)
        prediction, of_predictor = prepared
        rung: Sequence[Any] = ()
        try:
            rung = self.watching.update(prediction, y)
        finally:
            try:
                self.predictor.commit(x, y, of_predictor)
            finally:
                if rung:
                    self._restart(tuple(rung))

    def _restart(self, rung: tuple[Any, ...]) -> None:
        taught(self.machine).restart(self.keep)  # first: if it fails, there is no restart
        self._restarts.append((self.n, rung))
        self.watching = self.monitor.fresh(seed=self.seed + SEEDS * len(self._restarts))


# ------------------------------------------------------------------------------------------------------------ hand over
# From few examples to many: a predictor that keeps all examples hands over to one that keeps few.


def _described(model: Switch) -> str:
    return f"Switch({described(model.early)}, {described(model.late)})"


@component
class Switch(HasLabels, Combined[Any]):
    """Answers by a transductive predictor while examples are few, by an inductive one from its first training on.

    Both learn from the beginning. The inductive one says nothing before its first training; until then the other one
    answers, and afterwards it is dropped, with its machine. When that happens is fixed beforehand by the number of
    examples, so every single answer keeps its guarantee. What is proved about sums over a stream holds within each
    period, from one training to the next.

    Parameters
    ----------
    early : Predictor
        Answers first; its machine is shared in a `Panel` as usual.
    late : Inductive, or an `Averaged` of such
        With a schedule that trains, such as `Prefix(0.5, first=1000, last=2000)`: half of the first 1000 examples train
        its machine, the others calibrate it at once. In a `Panel`, several hand-overs may share one.

    Attributes
    ----------
    early : Predictor or None
        None after the hand-over.
    late : Predictor
    n : int
        Number of examples learned.

    Raises
    ------
    TypeError, ValueError
        `late` is not inductive, never trains, has learned other numbers of examples, has other classes, or makes
        predictions of another kind.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> schedule = venn.schedules.Prefix(0.5, first=4)
    >>> model = Switch(venn.Conformal(machine), venn.InductiveConformal(machine.fresh(), schedule=schedule))
    >>> for x, y in [([5.0], "yes"), ([0.0], "no"), ([1.0], "yes"), ([0.1], "no")]:
    ...     print(model.over, end=" ")
    ...     model.learn_one(x, y)
    False False False False
    >>> model.over, model.machine
    (True, None)
    """

    early: Any = param(optional, checked_predictor)
    late: Any = param(checked_predictor)

    _described: str = state(restored_text, start=own(_described))  # the same before and after the hand-over

    def derive(self) -> None:
        """Check that both predict the same kind of thing; after the switch there is one."""
        early, late = self.early, self.late
        parts = elementary([late])
        if not all(isinstance(part, Inductive) for part in parts):
            raise TypeError(f"late must be an inductive predictor, such as InductiveVennAbers, got {late!r}")
        if not all(part.trains for part in parts):
            raise ValueError(f"late must have a schedule that trains, got {late!r}")
        self.space = space_of(late)
        if early is None:
            return
        if space_of(early) != self.space:
            raise ValueError(f"early and late must have the same classes, got {early.classes!r} and {late.classes!r}")
        says = [said_by(early), said_by(late)]
        if None not in says and says[0] is not says[1]:
            first, second = (one.__name__ for one in says if one is not None)
            raise TypeError(
                f"early and late must say the same kind of thing, got {first} of {early!r} and {second} of {late!r}"
            )

    def __repr__(self) -> str:
        return self._described

    @property
    def _trained(self) -> bool:
        return all(part.scorer is not None for part in elementary([self.late]))

    @property
    def over(self) -> bool:
        """Whether `late` answers now."""
        return self.early is None

    @property
    def machine(self) -> Any:
        """The machine of `early`, which a panel teaches and shares; None after the switch."""
        return None if self.early is None else self.early.machine

    @property
    def n(self) -> int:
        """Number of examples learned."""
        return int(self.late.n)

    @property
    def predictors(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The predictors that learn: both, or the late one alone."""
        return (self.late,) if self.early is None else (self.early, self.late)

    @property
    def asked(self) -> tuple[Any, ...]:
        """The predictor that answers."""
        return (self.late if self.early is None else self.early,)

    def combined(self, predictions: Sequence[Any]) -> Any:
        """Return the only prediction."""
        (prediction,) = predictions
        return prediction

    def combined_many(self, blocks: Sequence[Any]) -> Any:
        """Return the only predictions."""
        (block,) = blocks
        return block

    def of(self, parts: Sequence[Any]) -> Switch:
        """Return a switch between other predictors that have learned nothing."""
        early, late = parts
        return Switch(early, late)

    def settle(self) -> bool:
        """Drop the early predictor, and its machine, after the first training of the late one."""
        done = self.early is not None and self._trained
        if done:
            self.early = None
        return done
