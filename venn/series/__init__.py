"""Series many steps ahead: distributions for the next values, intervals with a long-run error rate on any series."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
