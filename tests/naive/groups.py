"""Mondrian prediction by definition: every example of another group is struck off before anything is compared."""

import numpy as np

from naive import abers_by_class, conformal
from naive import inductive_conformal as inductive


def within(groups):
    """Return which of the examples are in the group of the last one."""
    return [i for i, group in enumerate(groups) if group == groups[-1]]


def p_values(bags, groups, tau, label_conditional=False):
    """Return the p-value of every label, from the (nonconformity, labels) of the bag under each."""
    beside = within(groups)
    return [
        conformal.p_value([values[i] for i in beside], [labels[i] for i in beside], tau, label_conditional)
        for values, labels in bags
    ]


def pairs(scores, labels, groups, c):
    """Return (c, 2) Venn-Abers pairs from c arrays (n + 1, c) of scores under each hypothesis."""
    beside = within(groups)
    return abers_by_class.pairs([s[beside] for s in scores], [labels[i] for i in beside[:-1]], c)


def inductive_p_values(scores, labels, groups, tau, c, label_conditional=False):
    """Return the p-value of every label from (n + 1, c) scores by one scorer, the new example last."""
    beside = within(groups)
    rows, own = np.asarray(scores)[beside], [labels[i] for i in beside[:-1]]
    values = [inductive.on_grid(a) for a in inductive.margins(rows[:-1], own)]
    answer = []
    for j in range(c):
        new = inductive.on_grid(inductive.margins(rows[-1:], [j])[0])
        others = [a for a, y in zip(values, own, strict=True) if y == j or not label_conditional] + [new]
        answer.append((sum(a > new for a in others) + tau * sum(a == new for a in others)) / len(others))
    return answer
