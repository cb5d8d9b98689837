"""Loops of block pivoting: a margin's matrix, coefficients moved to ends, and a test of every object's state."""

import numpy as np

from venn._compiled.dense import add_rows
from venn._compiled.jit import compiled
from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS, level_above, level_below, segment


@compiled
def inner_products(K, root, others, ridge, matrix):  # type: ignore[no-untyped-def]
    """Set the upper triangle of `matrix` to inner products of the others' features relative to the root's.

    `ridge` is added to each K(x, x), that of the root included.
    """
    row, own = K[root], K[root, root]
    for a in range(others.size):
        there = K[others[a]]
        away = there[root] - own - ridge
        for b in range(a, others.size):
            matrix[a, b] = there[others[b]] - row[others[b]] - away
        matrix[a, a] += ridge


@compiled
def send_to_ends(K, count, positive, total, C, state, beta, score):  # type: ignore[no-untyped-def]
    """Put the coefficients of all non-members at the ends given by their states, and update scores."""
    moved, by = np.empty(count, np.int64), np.empty(count)
    n = 0
    for i in range(count):
        end = beta[i]
        if state[i] == ABOVE:
            end = -C * (total[i] - positive[i])
        elif state[i] == MIDDLE:
            end = C * (2.0 * positive[i] - total[i])
        elif state[i] == BELOW:
            end = C * positive[i]
        if end != beta[i]:
            moved[n] = i
            by[n] = end - beta[i]
            beta[i] = end
            n += 1
    add_rows(score, count, K, moved, by, n)


@compiled
def judge(count, positive, total, C, small, near, beta, score, state, guess):  # type: ignore[no-untyped-def]
    """Set `guess` to the states implied by coefficients and scores.

    Objects change places if they are beyond a level, or their segment, by more than `small`. Returns (number of
    changes, worst violation, number of members strictly inside their segment).
    """
    wrong, off, worst, balance = 0, 0, 0.0, 0.0
    for i in range(count):
        balance += beta[i]
        here = state[i]
        guess[i] = here
        if here in (PLUS, MINUS):
            low, high = segment(here, positive[i], total[i] - positive[i], C)
            off += abs(beta[i] - low) > near and abs(beta[i] - high) > near
            over, under = (beta[i] - high) / C, (low - beta[i]) / C
            worst = max(worst, over, under)
            # The score of a dependent member follows from the other members only.
            higher = score[i] - here
            worst = max(worst, abs(higher))
            if over > small or (higher < -2.0 * small and not under > small):
                guess[i] = MIDDLE if here == PLUS else BELOW
            elif under > small or higher > 2.0 * small:
                guess[i] = ABOVE if here == PLUS else MIDDLE
        else:
            over = score[i] - level_above(here, positive[i])
            under = level_below(here, total[i] - positive[i]) - score[i]
            worst = max(worst, over, under)
            if over > small:
                guess[i] = PLUS if here == MIDDLE else MINUS
            elif under > small:
                guess[i] = MINUS if here == MIDDLE else PLUS
        wrong += guess[i] != here
    return wrong, max(worst, abs(balance) / C), off
