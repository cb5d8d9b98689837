"""Venn-Abers by class over the augmented bag: two isotonic regressions for every class, refitted every time."""

import numpy as np

from naive.abers import fit_at_last
from naive.venn import on_grid


def pair(scores_not, scores_of, labels, k):
    """Return (p0, p1) of the event "class k".

    `scores_not` and `scores_of` (n + 1,) are the scores of machine k under the two hypotheses, the new
    example last; `labels` are those of the n others.
    """
    answer = []
    for side, scores in enumerate((scores_not, scores_of)):
        s = on_grid(scores)
        t = np.append(np.asarray(labels) == k, side).astype(float)
        answer.append(fit_at_last(s, t))
    return answer


def pairs(scores, labels, c):
    """Return (c, 2) pairs from c arrays (n + 1, c) of scores under each hypothesis."""
    others = [next(j for j in range(c) if j != k) for k in range(c)]
    return np.array([pair(scores[others[k]][:, k], scores[k][:, k], labels, k) for k in range(c)])
