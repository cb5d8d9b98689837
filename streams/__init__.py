"""Streams of labelled examples: named data sets, CSV files and arrays, one example at a time.

>>> import streams
>>> stream = streams.load("car", shuffle=0)
>>> stream
<Stream 'car'.shuffle(0): 1728 examples, 6 features, 4 classes>
>>> for x, y in stream.take(2):
...     print(x.shape, y)
(6,) good
(6,) good

A stream is re-iterable and knows its `.classes`, `.features` and length; the objects `x` are read-only
rows of float64 and the labels `y` Python objects. Scaling and encoding are fixed beforehand or computed
over the whole stream, never fitted on its past (see `Scaling`). `gaussians` makes a stream whose label
probabilities are known; `flip_labels`, `change_point` and `label_shift` break any stream at a step.
"""

import importlib.util
import sys

import lazy_loader

# `__init__.pyi` lists the names: one is imported when it is first asked for, and so is a module.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in __all__:
        return _imported(name)
    if name.isidentifier() and not name.startswith("_") and importlib.util.find_spec(f"streams.{name}"):
        return importlib.import_module(f"streams.{name}")
    # With the module Python asks "Did you mean" below a traceback.
    raise AttributeError(f"module 'streams' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
