"""Whether what predictors claim holds: test martingales, bounds, calibration, alarms.

The main objects are exported by `venn`; here are the parts that fewer need: sources of p-values for a monitor,
measures of calibration on arrays, criteria of efficiency of prediction sets.
"""

from venn.monitors.calibration import classwise_ece, ece, hosmer_lemeshow, reliability
from venn.monitors.efficiency import Efficiency, EfficiencyTotals, efficiency
from venn.monitors.losses import brier, log_loss, sharpness
from venn.monitors.sources import OneClass, PredictedLabel, RealisedRow, TrueLabel

__all__ = [
    "Efficiency",
    "EfficiencyTotals",
    "OneClass",
    "PredictedLabel",
    "RealisedRow",
    "TrueLabel",
    "brier",
    "classwise_ece",
    "ece",
    "efficiency",
    "hosmer_lemeshow",
    "log_loss",
    "reliability",
    "sharpness",
]
