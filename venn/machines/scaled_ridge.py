"""Ridge regression that scales its objects by the first examples, which teach and stand in no bag."""

from __future__ import annotations

from typing import Any

from venn.machines.around import given
from venn.machines.first_aside import FARTHEST, FirstAside
from venn.machines.kernel_ridge import KernelRidge, Lines
from venn.machines.scaled import Scaled
from venn.prediction import Floats
from venn.saved import saved


@saved
class ScaledRidge(FirstAside, Scaled):
    """Kernel ridge regression that scales every column, for raw tables of numbers: no example is lost.

    As by `Scaled` the first 30 objects fix the centre and the spread of each column; but these examples are then
    learned like all others. They stand in no bag: distributions and intervals rank the later ones only. All that is
    guaranteed holds:

    - From then on the first 30 are given. Machine and scale are functions of them and of the bag, in which every
      example, the new one included, is treated alike.
    - Until then the bag holds all examples and the new one, and the scale is that of all their objects, the new one's
      included. It is another for each question, so the machine is made anew for each: cheap while there are few.

    A value beyond 10 deviations counts as 10, among the first examples too: a column that was constant at first, or one
    that drifts away, does not drown all others. It forgets nothing; in a window `Scaled(KernelRidge(...))` stands.

    Parameters
    ----------
    machine : KernelRidge
        One that has learned nothing. It is taught by this object from now on, and by nobody else.
    first : int >= 2, default 30
        Number of examples that fix the scale. Not with `ranges`.
    ranges : sequence of (low, high), optional
        Finite numbers, low < high, one pair for each column: no example is needed, and all stand in the bag.

    Attributes
    ----------
    n : int
        Number of examples in the bag.
    aside : int
        Number of those that have fixed the scale: they teach only.
    learned : int
        Number of all examples.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or objects lie too far apart to be scaled.

    Examples
    --------
    >>> import venn
    >>> machine = ScaledRidge(venn.machines.KernelRidge(venn.RBF(0.5), C=10), first=10)
    >>> model = venn.predictors.ConformalDistribution(machine)
    >>> for i in range(50):
    ...     model.learn_one([i * 1e6, 1e-3 * (i % 2)], i + 5.0 * (i % 2))
    >>> machine.learned, machine.n, machine.aside
    (50, 40, 10)
    >>> lower, upper = model.predict_one([25e6, 1e-3]).interval(0.1)
    >>> lower < 30 < upper
    True
    """

    def __init__(self, machine: KernelRidge, first: int | None = None, ranges: Any = None) -> None:
        if not isinstance(machine, KernelRidge):
            raise TypeError(f"machine must be a KernelRidge, got {machine!r}; for others there is Scaled")
        one: Any = machine
        super().__init__(one, first, ranges)
        self._trains = True

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it is not a possible one."""
        super().restore(state)
        if not self._trains or self.n < 0:
            raise ValueError(f"trains must be True, and the first {self.first} examples learned")

    # ------------------------------------------------------------------ reading

    def scores(self, x: Any) -> Floats:
        """Return the (1,) forecast for `x` by the machine as it is, without `x`; 0 before the first example."""
        placed = self._placed(self._clean(x))
        return self.current.scores(placed)

    def hypotheses(self, x: Any, weight: float | None = None) -> Lines:  # type: ignore[override]
        """Answer, for every label of `x`, with the residuals of all examples, of which the first ones do not count.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        weight : float > 0, optional
            Of the new example.
        """
        machine, placed = self._to_ask(self._clean(x))
        lines: Lines = machine.hypotheses(placed, *given(weight))
        lines.aside = self.aside
        return lines

    unlearn_one: Any = None  # what was learned first stays

    # ------------------------------------------------------------------ scaling

    def _scaled(self, row: Any) -> Any:
        """Return a clean object as the machine inside meets it."""
        return super()._scaled(row) if self.fixed is None else self.fixed.place(row, FARTHEST)
