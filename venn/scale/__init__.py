"""Work beyond one process's time or memory: collections and many streams.

Collections: `calibrate` and `score` one inductive predictor over blocks that need not fit in memory, by merging their
results exactly. Many streams, each with a model of its own, and one answer: `Fleet`.
"""

import lazy_loader

# `__init__.pyi` lists the names; Dask is imported when one of them needs it.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
