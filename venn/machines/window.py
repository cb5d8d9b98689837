"""Machines around a machine; one holds the latest examples only: it learns the new one, then unlearns the oldest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from venn.labels import LabelSpace, space_of
from venn.machines.machine import Hypotheses, Machine, NotConverged, checked_machine
from venn.machines.scale import scale_of
from venn.parameters import integer, with_methods
from venn.prediction import Floats, Label
from venn.saved import Saved, component, param, restored_int, state
from venn.turns import TakesTurns, asks, changes


def passed_on(name: str, said: str) -> Any:
    """Return a property that reads the same one of the machine inside."""
    return property(lambda around: getattr(getattr(around, around.held), name), doc=said)


class Around(TakesTurns, Saved):
    """Base of machines around a machine: it learns through them, and what they do not change is passed on."""

    held: ClassVar[str] = "machine"  #: parameter, and attribute, that holds the machine

    @property
    def _held(self) -> Any:
        return getattr(self, self.held)

    def _turns_with(self) -> Iterable[Any]:
        return (self._held,)

    classes: ClassVar[Any] = passed_on("classes", "Labels in class order.")
    n: ClassVar[Any] = passed_on("n", "Number of examples held.")
    learned: ClassVar[Any] = passed_on("learned", "Number of examples that the machine has ever learned.")
    tuning: ClassVar[Any] = passed_on("tuning", "The result of `tune`, if it chose the machine's parameters.")
    residual: ClassVar[Any] = passed_on("residual", "Worst violation of its optimality conditions over those held.")
    bag: ClassVar[Any] = passed_on("bag", "Training scores of the examples held.")
    leave_one_out_bag: ClassVar[Any] = passed_on("leave_one_out_bag", "Leave-one-out scores of the examples held.")

    @property
    def space(self) -> LabelSpace:
        """What labels may be."""
        return space_of(self._held)

    @property
    def exact_leave_one_out(self) -> bool:
        """Whether leave-one-out scores are those of machines solved without the example."""
        return bool(self._held.exact_leave_one_out)

    def fresh(self) -> Self:
        """Return a machine with the same parameters, also inside, that has learned nothing."""
        return type(self)(**(self.parameters | {self.held: self._held.fresh()}))

    def expect_leave_one_out(self) -> None:
        """Prepare the machine for readers of leave-one-out scores at every step."""
        self._held.expect_leave_one_out()

    def forget(self) -> None:
        """Drop the answer that the machine remembers."""
        self._held.forget()

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        self._held.check(x, y)

    @changes
    def learn_one(self, x: Any, y: Label) -> None:
        """Teach the machine one example; a refused one leaves no trace."""
        self._held.learn_one(x, y)


def _checked_forgetting(name: str, machine: Any) -> Any:
    """Return a machine that can forget, or say what is wrong with it."""
    checked_machine(name, machine)
    if isinstance(machine, SlidingWindow):
        raise TypeError(f"{name} must be the machine itself, not a window on one, got {machine!r}")
    scale = scale_of(machine)
    if scale is not None and scale.teach:
        raise ValueError(f"scale must not teach a machine that forgets, got {machine!r}")
    wanted = "one that can forget, with a method 'unlearn_one', such as LeastSquaresSVM"
    return with_methods(name, machine, wanted, "unlearn_one")


@component
class SlidingWindow(Around):
    """A machine that holds the latest `size` examples, as if it had never met an older one, up to rounding.

    Scores are those of a machine that learned only the window, up to about 1e-8. Readers that compare scores on a grid,
    as all taxonomies do, give the same answer to the last bit; maps that jump at a tie, as `Binning`, may fall on its
    other side.

    Predictors use it like any machine. A new object is compared with the whole window, so the augmented
    bag has up to size + 1 examples; when its label comes, it is learned and the oldest unlearned. Memory and time of a
    step are bounded, however long the stream is.

    What is known. If the stream is exchangeable, so are the window and the new example: each single prediction is as
    valid as its predictor says of one, whatever has been forgotten. Until the first example is forgotten everything
    holds as without a window, also for many steps together. After that, statements about many steps no longer hold: the
    oldest example's value tells something about the newest, so successive p-values, each uniform, depend a little on
    each other. If examples are independent, p-values more than `size` steps apart are independent too. So the error
    rate over m steps exceeds its level by t or more with probability at most exp(-2 m t^2 / (size + 1)).

    What is not known. It is not known that errors are binomial, or that alarms keep their level: a martingale that bets
    on the p-values of a sliding window is, strictly, none. Nor is anything known of a stream that changes, which is
    what windows are for: a window with examples from before and after a change is not exchangeable. The same holds
    where examples are refused because a machine cannot be solved, which takes extreme settings: the content of the
    window then depends on their values.

    Parameters
    ----------
    machine : Machine
        One that can forget, with a method `unlearn_one`, and has learned at most `size` examples. The window trains
        it from now on; nobody else may train it, as that changes what the window holds.
    size : int >= 1

    Attributes
    ----------
    machine : Machine
        The machine inside; another one after a `restart` that keeps nothing. Do not train it.
    forgotten : int
        Number of examples learned and forgotten since; `learned` is the number of all. A restart forgets the scale that
        examples have fixed, too: they count here from then on.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), chapter 2, for exchangeable bags; Janson (2004), "Large deviations for sums of
    partly dependent random variables", for the bound.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> window = SlidingWindow(machine, size=4)
    >>> for x, y in [([5.0], "yes"), ([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     window.learn_one(x, y)
    >>> window.n, window.forgotten, window.scores([0.0]).round(3)
    (4, 1, array([ 0.977, -0.977]))
    >>> window.restart()
    >>> window.n, window.forgotten
    (0, 5)
    """

    machine: Any = param(_checked_forgetting)
    size: int = param(integer, 1)
    forgotten: int = state(restored_int, start=0)

    def derive(self) -> None:
        """Refuse a machine that has learned too much."""
        if self.machine.n > self.size:
            raise ValueError(
                f"machine must have learned at most size = {self.size} examples, got one of {self.machine.n}"
            )

    # ------------------------------------------------------------------ reading

    @property
    def learned(self) -> int:
        """Number of examples ever learned, including those forgotten since."""
        learned: int = self.machine.learned
        return learned + self.forgotten

    @asks
    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""
        return self.machine.scores(x)

    @asks
    def hypotheses(self, x: Any, weight: float | None = None) -> Hypotheses:
        """Answer for every hypothesis about `x` in the window; solved once, remembered until a label is learned.

        Parameters
        ----------
        x : (d,) finite numbers
        weight : float > 0, optional
            Only for a machine with weights of examples.
        """
        return self.machine.hypotheses(x, *given(weight))

    # ----------------------------------------------------------------- learning

    def learn_one(self, x: Any, y: Label, weight: float | None = None) -> None:
        """Learn one example, then forget the oldest where there are more than `size`.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        weight : float >= 0, optional
            Only for a machine with weights of examples; with weight 0 none is learned, and none forgotten.

        Raises
        ------
        TypeError, ValueError, NotConverged
            As raised by the machine; nothing is then learned or forgotten.
        """
        machine = self.machine
        machine.learn_one(x, y, *given(weight))
        while machine.n > self.size:
            try:
                machine.unlearn_one()
            except NotConverged:
                machine.unlearn_one(machine.n - 1)
                raise
            self.forgotten += 1

    @changes
    def unlearn_one(self, i: int = 0) -> None:
        """Forget the i-th example held, in order of arrival; the window then has room for one more.

        Raises
        ------
        TypeError, ValueError, NotConverged
            As raised by the machine; nothing is forgotten then.
        """
        self.machine.unlearn_one(i)
        self.forgotten += 1

    @changes
    def restart(self, keep: int = 0) -> None:
        """Forget all but the latest `keep` examples; all stay where there are fewer.

        Parameters
        ----------
        keep : int >= 0, default 0

        Raises
        ------
        TypeError, ValueError
            `keep` is not as described; nothing is forgotten.
        NotConverged
            As raised by the machine; the window then holds more than `keep` examples, the latest.
        """
        keep = integer("keep", keep, 0)
        if keep == 0 and self.machine.learned > 0:
            # All at once, without solving anything that could fail; earlier answers become invalid.
            self.machine.forget()
            self.forgotten += self.machine.learned
            self.machine = self.machine.fresh()
        while self.n > keep:
            self.unlearn_one()


def given(weight: float | None) -> tuple[float, ...]:
    """Return the arguments to pass on, without a weight where none is given: not every machine takes weights."""
    return () if weight is None else (weight,)


def inside(machine: Machine) -> Any:
    """Return the machine in a window, or the machine itself."""
    return machine.machine if isinstance(machine, SlidingWindow) else machine


def taught(machine: Any) -> Any:
    """Return what is taught where a predictor reads this machine: the bank of a member, or the machine itself."""
    while isinstance(machine, Around) and not isinstance(machine, SlidingWindow):
        machine = getattr(machine, machine.held)
    return machine
