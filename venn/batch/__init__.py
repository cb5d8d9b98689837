"""Machines trained once, on all examples at a time: for the published comparisons and for scikit-learn's users."""

import lazy_loader

# `__init__.pyi` lists the names: one is imported when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
