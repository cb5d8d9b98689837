"""Whether what predictors claim holds: test martingales, bounds, calibration, alarms.

The main objects are exported by `venn`; here are the parts that fewer need: sources of p-values for a monitor,
measures of calibration on arrays, criteria of efficiency of prediction sets.
"""

import lazy_loader

# `__init__.pyi` lists the names: one is imported when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
