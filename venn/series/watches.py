"""Watchers of a series: one bets on the p-values of the next value, one looks at the account of each horizon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from venn.monitors.alarms import CUSUM, Alarm
from venn.monitors.change_point import ChangePoint
from venn.monitors.martingales import Power
from venn.monitors.verdict import DOUBTFUL, Verdict
from venn.monitors.watching import AGAIN, Case, Watching
from venn.prediction import Floats
from venn.saved import component, own, restored_int, state

RARE = 10_000  # steps from one false alarm to the next, were p-values uniform
LEAST = 1e-3  # p-value: those of ranks may be 0
FAR, NEAR = 0.5, 0.25  # shares of the bound at which an account rings, and below which that has ended


@component
class SeriesWatch(Watching):
    """Bets against the p-values of the next value: do values still come as they came among the last ones?

    The p-values are ranks among the last 500 answers. They are nearly uniform while nothing changes, but that is no
    theorem: an alarm is a reason to look, not a proof.

    Examples
    --------
    >>> watch = SeriesWatch()
    >>> rung = [watch.update(0.001) for _ in range(40)]
    >>> watch.verdict().state
    'doubtful'
    """

    sees = "p-values"
    about = "p-values"
    calm = "the next values come as the last ones did"

    _bets: CUSUM = state(None, start=own(lambda _: CUSUM(Power(0.4), threshold=RARE)))

    @property
    def n(self) -> int:
        """Number of p-values."""
        return int(self._bets.n)

    def update(self, p: float) -> tuple[Alarm, ...]:
        """Bet on one p-value; return the alarm if it rings now."""
        alarm = self._bets.update(max(p, LEAST))
        rung = () if alarm is None else self.rang(alarm)
        self.pass_by()
        return rung


@component
class AccountWatch(Watching):
    """Rings when the account of a horizon has used up half of its bound.

    An account keeps its bound on any series, and the price of that is width. Where misses have used up half of it, the
    intervals of this horizon are far wider than the forecasts say, and grow to the whole line; where hits have, they
    shrink to nothing. That rings, once for each horizon, and lasts until less than a quarter is used up.

    Examples
    --------
    >>> watch = AccountWatch()
    >>> [one.sentence[:58] for one in watch.update(np.array([[0.1], [0.5], [0.0]]), (0.1,))]
    ['The intervals of horizon 2 at 0.1 missed too often: 0.5 of']
    >>> watch.update(np.array([[0.1], [0.4], [0.0]]), (0.1,)), watch.verdict().state
    ((), 'doubtful')
    >>> watch.update(np.array([[0.1], [0.2], [0.0]]), (0.1,)), watch.verdict().state
    ((), 'as claimed')
    """

    sees = "accounts"
    about = "accounts"
    calm = "no account has used up half of its bound"

    n: int = state(restored_int, start=0)

    def update(self, used: Floats, levels: tuple[float, ...]) -> tuple[Alarm, ...]:
        """Look at the (H + 1, l) shares of the bounds that are used up, > 0 by misses; return the alarms that ring."""
        self.n += 1
        size = np.abs(used)
        lasting = {one.part for one in self.cases if not one.ended}
        if not lasting and size.max() < FAR:
            return ()
        rung = list[Alarm]()
        for row, k in enumerate(size.argmax(axis=1).tolist()):
            name = "bands" if row == len(used) - 1 else f"horizon {row + 1}"
            if name in lasting and size[row, k] < NEAR:
                for one in self.cases:
                    if one.part == name and not one.ended:
                        self._put(replace(one, ended=self.n, how=AGAIN))
            elif name not in lasting and size[row, k] >= FAR:
                missed = used[row, k] > 0
                often, where = ("often", "grow to the whole line") if missed else ("seldom", "shrink to nothing")
                of = "The bands" if name == "bands" else f"The intervals of {name}"
                sentence = (
                    f"{of} at {levels[k]:g} missed too {often}: {size[row, k]:.2g} of their bound is used up, and they "
                    f"{where}."
                )
                change = ChangePoint(self.n, self.n, self.n)
                self._note(Case(self.n, self.n, change, self.about, "accounts", sentence, part=name))
                rung.append(Alarm(self.n, type(self).__name__, 0.0, sentence, name))
        return self._took(rung)

    def verdict(self) -> Verdict:
        """Return "doubtful" while an account has used up too much of its bound, with the first of them."""
        found = next((one for one in self.cases if not one.ended), None)
        if found is None:
            return super().verdict()
        details = f"{DOUBTFUL}: since {found.change}; {found.reason}"
        return Verdict(DOUBTFUL, found.first, found.change, self.about, found.detector, details, reason=found.reason)
