"""A bank's members mixed into one forecast, each weighed by how well it forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.mixture import apply_mixture, fit_mixture, mixture_tables
from venn.machines.bank import BankHypotheses, BankView
from venn.machines.base import BaseHypotheses, Reread, in_bag
from venn.machines.machine import Bag, NotConverged, Tables
from venn.machines.window import inside
from venn.parameters import positive
from venn.prediction import Floats
from venn.saved import component, param
from venn.turns import asks


@component
class Mixture(BankView):
    """The members of a bank, mixed into one forecast of each class. On it `TransductiveVennAbers` is called V-mix.

    For when no kernel width and no penalty is known. For class k the label is "k or not". The scores of each member
    go through Platt's sigmoid, of slope >= 0, fitted to all examples; the member's weight is in proportion to
    exp(-rate L), L its log loss on them, summed; the weighted mean of the forecasts is the score.

    All of this is done anew under each of the two hypotheses about the new example, which is one of the examples then.
    So every example is treated alike, and the pairs of `TransductiveVennAbers` on a mixture are Venn predictions as on
    any machine: "each class" is guaranteed, without any examples set aside. The score of the new example depends on the
    hypothesis: "predicted label" is not guaranteed by taxonomies on it.

    It reads the bank and learns nothing itself; to teach it is to teach the bank. In `InductiveVennAbers` and
    `InductiveConformal` sigmoids and weights are those of the examples that train.

    Parameters
    ----------
    bank : Bank, or SlidingWindow on one
    rate : float > 0, default 1
        How fast weights fall as losses grow: 1 suits the three members of a bank by default, 0.25 about twelve.
    whole : bool, default False
        Whether examples that only teach, see `Scale`, count like all others: nothing is guaranteed then.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.
    NotConverged
        On reading scores: a sigmoid could not be fitted, or as raised by the bank.

    Notes
    -----
    Scores of members are compared on the grid of 1e-6 before sigmoids are fitted, as by taxonomies. With two classes
    the forecast of the second is one minus that of the first. Newton's method starts at each question from the
    sigmoids of the examples, and these from nothing: no answer depends on earlier ones.

    References
    ----------
    Vovk & Petej (2014), "Venn-Abers predictors"; Platt (1999); Vovk (1990), "Aggregating strategies", for the weights.

    Examples
    --------
    >>> import venn
    >>> from venn.machines import Bank
    >>> bank = Bank(venn.machines.MultiscaleRBF(), ["no", "yes"])
    >>> model = venn.TransductiveVennAbers(Mixture(bank))
    >>> for i in range(40):
    ...     model.learn_one([i / 40], "yes" if i > 20 else "no")
    >>> model.predict_one([0.2])
    ClassIntervals('no': [0.952, 1.000])
    >>> Mixture(bank).scores([0.2]).round(2)
    array([0.98, 0.02])
    """

    probabilities = True  # what scores are
    exact_leave_one_out = False  # the new example's scores depend on its supposed label

    rate: float = param(positive, default=1.0)
    questioned = True

    def derive(self) -> None:
        """Start without results of earlier questions."""
        self._asked: MixtureHypotheses | None = None

    @property
    @asks
    def residual(self) -> float:
        """Worst error of the equations of the bank's members."""
        return self.bank.residual

    def fitted(self) -> tuple[Floats, Floats]:
        """Return sigmoids (M, c, 3) and weights (c, M), from leave-one-out scores of the examples, at least one."""
        bank = inside(self.bank)  # which keeps them for all its mixtures
        found = bank.sigmoids.get(self.rate)
        if found is None:
            found = bank.sigmoids[self.rate] = self._fitted_to(bank.member_bags(True))
        return found

    def _fitted_to(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return sigmoids and weights by (M, c, n) scores of the examples learned."""
        members, c, _ = scores.shape
        maps, weights = np.zeros((members, c, 3)), np.zeros((c, members))
        check_fit(fit_mixture(scores, inside(self.bank).labels, self.rate, maps, weights))
        return maps, weights

    def mixed(self, scores: Floats) -> Floats:
        """Return the (c, m) forecasts for objects of (M, c, m) scores; 1 / c before the first example."""
        out = np.full(scores.shape[1:], 1 / scores.shape[1])
        if len(inside(self.bank).labels):
            apply_mixture(*self.fitted(), scores, out)
        return out

    def _bag(self, leave_one_out: bool) -> Bag:
        bank, aside = inside(self.bank), self._aside
        scores = bank.member_bags(leave_one_out)
        mixed = np.empty(scores.shape[1:])
        if scores.shape[2]:
            apply_mixture(*self._fitted_to(scores), scores, mixed)
        return Bag(mixed[:, aside:], bank.counts[aside:])

    @asks
    def scores(self, x: Any) -> Floats:
        """Return the (c,) forecasts for `x`; sigmoids and weights come from leave-one-out scores.

        They need not sum to 1. Before the first example they are 1 / c each.
        """
        return self.mixed(inside(self.bank).member_scores(x)[:, :, None])[:, 0]

    @asks
    def score_many(self, X: Any) -> Floats:
        """Return the (n, c) forecasts for n objects: row by row those of `scores`, to the bit.

        Parameters
        ----------
        X : (n, d) finite numbers
        """
        return self.mixed(inside(self.bank).member_scores_many(X)).T

    @asks
    def hypotheses(self, x: Any) -> BaseHypotheses:
        """Answer for every hypothesis about `x`; computed when it is read, and remembered as the bank's answer is."""
        return in_bag(MixtureHypotheses(inside(self.bank).answer(x), self), self._aside)


class MixtureHypotheses(Reread):
    """What a mixture would look like if the new object had each of the labels.

    Parameters
    ----------
    answer : BankHypotheses
        The bank's answer.
    mixture : Mixture
        Of the bank.
    """

    def __init__(self, answer: BankHypotheses, mixture: Mixture) -> None:
        super().__init__(answer)
        self._mixture = mixture

    @property
    def test_scores(self) -> Floats:  # type: ignore[override]
        """(c,) forecasts for the object by the mixture that has not seen it."""
        self.check_current()
        members = np.array([member.test_scores for member in self.answer.members])
        return self._mixture.mixed(members[:, :, None])[:, 0]

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the forecasts of all examples: one table for all hypotheses."""
        self.check_current()
        ready, which = self.answer.mixed, (self._mixture.rate, leave_one_out)
        if which not in ready:
            first, negative, positive = self.answer.member_tables(leave_one_out)
            below, above = np.empty((2, negative.shape[1], len(first.labels)))
            start = self._mixture.fitted()[0] if len(first.labels) > 1 else np.zeros((len(negative), len(below), 3))
            check_fit(mixture_tables(negative, positive, first.labels, self._mixture.rate, start, below, above))
            ready[which] = first._replace(negative=below, positive=above)
        table = ready[which]
        return [(table, np.arange(len(table.negative)))]


def check_fit(failed: int) -> None:
    """Raise if a member's sigmoid could not be fitted."""
    if failed >= 0:
        raise NotConverged(f"the sigmoid of member {failed} must converge, got no optimum for its scores")
