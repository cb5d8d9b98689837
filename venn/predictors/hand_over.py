"""From few examples to many: a predictor that keeps all examples hands over to one that keeps few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from venn.labels import HasLabels, space_of
from venn.parameters import optional
from venn.predictors.inductive_base import Inductive
from venn.predictors.learning import Combined, checked_predictor, elementary, said_by
from venn.saved import component, described, held_text, own, param, state


def _described(model: HandOver) -> str:
    return f"HandOver({described(model.early)}, {described(model.late)})"


@component
class HandOver(HasLabels, Combined[Any]):
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
    >>> model = HandOver(venn.Conformal(machine), venn.InductiveConformal(machine.fresh(), schedule=schedule))
    >>> for x, y in [([5.0], "yes"), ([0.0], "no"), ([1.0], "yes"), ([0.1], "no")]:
    ...     print(model.over, end=" ")
    ...     model.learn_one(x, y)
    False False False False
    >>> model.over, model.machine
    (True, None)
    """

    early: Any = param(optional, checked_predictor)
    late: Any = param(checked_predictor)

    _described: str = state(held_text, start=own(_described))  # the same before and after the hand-over

    def derive(self) -> None:
        """Compare the two; after the hand-over there is one."""
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
        """The machine of `early`, which a panel teaches and shares; None after the hand-over."""
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
        return self.predictors[:1]

    def combined(self, predictions: Sequence[Any]) -> Any:
        """Return the only prediction."""
        (prediction,) = predictions
        return prediction

    def combined_many(self, blocks: Sequence[Any]) -> Any:
        """Return the only predictions."""
        (block,) = blocks
        return block

    def of(self, parts: Sequence[Any]) -> HandOver:
        """Return a hand-over between other predictors, neither of which has learned."""
        early, late = parts
        return HandOver(early, late)

    def settle(self) -> bool:
        """Drop the early predictor, and its machine, after the first training of the late one."""
        done = self.early is not None and self._trained
        if done:
            self.early = None
        return done
