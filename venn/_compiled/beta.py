"""Squared error of interpolated log-odds: the inner loop of the search for a dispersion."""

from venn._compiled.jit import compiled
from venn._compiled.scaling import sigmoid


@compiled
def squared_error(cell, share, widths, value, slope, weights, targets):  # type: ignore[no-untyped-def]
    """Return the weighted squared error of probabilities whose log-odds are a cubic Hermite spline.

    Parameters
    ----------
    cell : (n,) int64, the node at or before each place
    share : (n,) float64 in [0, 1), how far it is from there to the next node
    widths : (m,) float64, distance from each node to the next; the last is not used
    value, slope : (m,) float64, log-odds and their derivatives at the nodes
    weights, targets : (n,) float64

    Returns
    -------
    float
    """
    last = value.size - 1
    total = 0.0
    for i in range(cell.size):
        a = cell[i]
        b = min(a + 1, last)
        s = share[i]
        t = 1.0 - s
        ends = (t + 3.0 * s) * t * t * value[a] + (s + 3.0 * t) * s * s * value[b]
        u = ends + widths[a] * s * t * (t * slope[a] - s * slope[b])
        total += weights[i] * (sigmoid(-u) - targets[i]) ** 2
    return total
