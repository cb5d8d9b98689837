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
def all_finite(values):  # type: ignore[no-untyped-def]
    """Return whether (n,) float64 values are all finite: for a few of them faster than numpy."""
    for value in values:  # noqa: SIM110 - compiled
        if not np.isfinite(value):
            return False
    return True
