"""Taxonomies: rules that put examples into categories by their scores, and that treat all examples alike."""

import lazy_loader

# `__init__.pyi` lists the names: one is imported when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
