"""Figures of arrays; matplotlib, an extra, is imported when a figure is drawn."""

from venn.show.plot.distributions import Diagram, p_values, reliability
from venn.show.plot.steps import Curve, curves, errors, martingales

__all__ = ["Curve", "Diagram", "curves", "errors", "martingales", "p_values", "reliability"]
