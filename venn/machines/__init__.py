"""Machines: underlying algorithms kept exact online; every predictor reads their answers under each hypothesis."""

import lazy_loader

# `__init__.pyi` lists the names: each is imported at its first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
