"""Efficiency of prediction sets: ten criteria, for each of which smaller is better."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from venn.monitors.checks import class_codes, p_value_rows
from venn.monitors.sums import rounded, total
from venn.prediction import Floats, significance


@dataclass(frozen=True, eq=False, repr=False)
class Efficiency:
    """The ten criteria at each of n steps, in arrays of length n; smaller is better.

    Six are prior: they need no labels. Four are observed: only false labels count. Five depend on a
    significance level epsilon, by the set of labels of p-value above it; the other five on the p-values alone.

    A criterion is conditionally proper if it rewards knowledge of the distribution: if the distribution is known and
    there are unlimited examples, ranking labels by their conditional probabilities given the object is then optimal.
    That is a theorem for `sum_of_p_values`, `size`, `observed_fuzziness` and `observed_excess`; not for the
    other six, which another ranking may make smaller if there are more than two classes. With two classes
    U is F, M is E, OU is OF and OM is OE.

    Attributes
    ----------
    epsilon : float
        Significance level of the sets.
    proper : tuple of str
        Names of the criteria that are conditionally proper.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej & Gammerman (2017), "Criteria of efficiency for set-valued
    classification", Annals of Mathematics and Artificial Intelligence; arXiv:1603.04416.

    Examples
    --------
    >>> from venn.monitors import efficiency
    >>> of_steps = efficiency([[0.75, 0.25], [0.5, 0.625]], truth=[0, 0], epsilon=0.3)
    >>> of_steps
    Efficiency(2 steps, epsilon 0.3)
    >>> of_steps.size, of_steps.observed_excess
    (array([1., 2.]), array([0., 1.]))
    """

    proper: ClassVar[tuple[str, ...]] = ("sum_of_p_values", "size", "observed_fuzziness", "observed_excess")

    #: S: sum of the p-values of all labels, from 0 to c. Conditionally proper.
    sum_of_p_values: Floats
    #: N: number of labels in the set, from 0 to c. Conditionally proper.
    size: Floats
    #: U: second largest p-value, one minus the confidence.
    unconfidence: Floats
    #: F: sum of all p-values except the largest.
    fuzziness: Floats
    #: M: 1 if the set has more than one label, else 0.
    multiple: Floats
    #: E: number of labels in the set beyond the first; 0 for an empty set.
    excess: Floats
    #: OU: largest p-value of a false label.
    observed_unconfidence: Floats
    #: OF: sum of the p-values of the false labels. Conditionally proper.
    observed_fuzziness: Floats
    #: OM: 1 if the set has a false label, else 0.
    observed_multiple: Floats
    #: OE: number of false labels in the set. Conditionally proper.
    observed_excess: Floats
    epsilon: float

    def __len__(self) -> int:
        return len(self.size)

    @property
    def means(self) -> dict[str, float]:
        """Mean over all steps of each criterion, by its name.

        Raises
        ------
        ValueError
            There are no steps.
        """
        if not len(self):
            raise ValueError("means are of at least one step, got 0")
        return {name: rounded(total(getattr(self, name)), len(self)) for name in CRITERIA}

    def __repr__(self) -> str:
        return f"Efficiency({len(self)} steps, epsilon {self.epsilon:g})"


CRITERIA = tuple(one.name for one in fields(Efficiency)[:-1])


def efficiency(p_values: Any, truth: Any, epsilon: float = 0.05) -> Efficiency:
    """Return the ten criteria of efficiency at every step; for a prefix or window, pass its slice.

    Parameters
    ----------
    p_values : (n, c) float64 in [0, 1], c >= 2
        Of each label at each step, in class order.
    truth : (n,) int from 0 to c - 1
        Class code of the true label.
    epsilon : float in [0, 1], default 0.05
        The set of a step holds the labels of p-value above it.

    Raises
    ------
    ValueError, TypeError
        An argument is not as described.

    Examples
    --------
    >>> criteria = efficiency([[0.75, 0.25, 0.125], [0.5, 0.625, 0.0]], truth=[0, 0], epsilon=0.2)
    >>> criteria.sum_of_p_values, criteria.size, criteria.observed_excess
    (array([1.125, 1.125]), array([2., 2.]), array([1., 1.]))
    >>> criteria.means["unconfidence"], criteria.means["observed_unconfidence"]
    (0.375, 0.4375)
    """
    p = p_value_rows("p_values", p_values)
    labels = class_codes("truth", truth, *p.shape)
    level = significance(epsilon)
    false = np.ones(p.shape, np.bool_)
    false[np.arange(len(p)), labels] = False
    inside = p > level
    size, false_inside = inside.sum(axis=1), (inside & false).sum(axis=1)
    top_two = np.partition(p, -2, axis=1)[:, -2:]
    return Efficiency(
        sum_of_p_values=p.sum(axis=1),
        size=size.astype(np.float64),
        unconfidence=top_two[:, 0].copy(),
        # Not the sum minus the largest: that could fall below 0 by rounding.
        fuzziness=np.partition(p, -1, axis=1)[:, :-1].sum(axis=1),
        multiple=(size > 1).astype(np.float64),
        excess=np.maximum(size - 1, 0).astype(np.float64),
        observed_unconfidence=np.where(false, p, 0.0).max(axis=1),
        observed_fuzziness=np.where(false, p, 0.0).sum(axis=1),
        observed_multiple=(false_inside > 0).astype(np.float64),
        observed_excess=false_inside.astype(np.float64),
        epsilon=level,
    )
