"""Monitors: does a predictor keep its claims? Test martingales, bounds, calibration, alarms.

`venn` exports the main objects. Here are parts that are needed less often: sources of p-values for a monitor,
measures of calibration on arrays.
"""

import lazy_loader

# `__init__.pyi` lists the names: one is imported when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
