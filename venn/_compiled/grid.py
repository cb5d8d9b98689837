"""Scores in whole steps of a grid, to the bit as numpy computes them; whether numbers are finite."""

import numpy as np

from venn._compiled.jit import loops

# Not `compiled`: a fused multiply and add would round otherwise than numpy does, and move scores to other steps.
plainly = loops(error_model="numpy", nogil=True)


@plainly
def on_grid_within(scores, largest, grid, offset, out):  # type: ignore[no-untyped-def]
    """Set out[i] to scores[i], at most `largest` in size, times `grid` plus `offset`, rounded.

    Parameters
    ----------
    scores : (n,) float64, no NaN
    largest, grid, offset : float
    out : (n,) float64
    """
    for i in range(len(scores)):
        out[i] = np.rint(min(max(scores[i], -largest), largest) * grid + offset)


@plainly
def mirror(scores, grid, out):  # type: ignore[no-untyped-def]
    """Set out[i, 0] to what mirrors out[i, 1] where the two scores of row i add up to 0 or to 1, but for one step.

    Parameters
    ----------
    scores : (n, 2) float64
    grid : float
    out : (n, 2) float64
        The scores in whole steps.
    """
    for i in range(len(scores)):
        both = scores[i, 0] + scores[i, 1]
        sum_ = 0.0 if abs(both) < 0.5 else 1.0
        if abs(both - sum_) * grid <= 1.0:
            out[i, 0] = sum_ * grid - out[i, 1]


@plainly
def all_finite(values):  # type: ignore[no-untyped-def]
    """Return whether (n,) float64 values are all finite: for a few of them faster than numpy."""
    for value in values:  # noqa: SIM110 - compiled
        if not np.isfinite(value):
            return False
    return True


@plainly
def margin_steps(scores, grid, offset, out):  # type: ignore[no-untyped-def]
    """Set out[i, j] to the largest other score of row i less score j, times `grid` plus `offset`, rounded.

    Returns
    -------
    bool
        Whether no number is NaN.

    Parameters
    ----------
    scores, out : (n, c) float64
    grid, offset : float
    """
    fine = True
    for i in range(len(scores)):
        first = second = -np.inf  # the two largest
        place = -1
        for k in range(scores.shape[1]):
            value = scores[i, k]
            if value > first:
                first, second, place = value, first, k
            elif value > second:
                second = value
            fine &= value == value
        for j in range(scores.shape[1]):
            rival = second if j == place else first
            out[i, j] = np.rint((rival - scores[i, j]) * grid + offset)
            fine &= out[i, j] == out[i, j]
    return fine
