"""Calibrated probabilities and prediction sets for data streams, with a proof and with alarms.

>>> import venn
>>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
>>> model = venn.TransductiveVenn(machine, venn.Argmax())
>>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no")]:
...     prediction = model.predict_one(x)
...     model.learn_one(x, y)
>>> prediction
Multiprobability('no': [0.333, 1.000])

What is needed most stands here; the rooms have all names: `venn.taxonomies`, `venn.maps`, `venn.monitors` and so on.
"""

import lazy_loader

# A name is imported when it is first asked for: whoever trains no machine waits for no compiler. The stub beside
# this file lists them.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.4.0"


def __getattr__(name: str) -> object:
    try:
        return _imported(name)
    except AttributeError:
        if name in __all__ or name.startswith("_"):  # ours, and its module has an error; or asked by some tool
            raise
    import difflib
    import importlib.util

    there = importlib.util.find_spec
    rooms = [importlib.import_module(f"venn.{one}") for one in __all__ if there(f"venn.{one}")]
    known = {one: room.__name__ for room in rooms for one in room.__all__} | dict.fromkeys(__all__, "venn")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    question = f": did you mean {known[near[0]]}.{near[0]}?" if near else ""
    if name.isidentifier() and there(f"venn.{name}") is not None:
        question = f": it is a module, import venn.{name} first"
    # Python asks the same below tracebacks of its own, not in notebooks; without an object it leaves it to us.
    raise AttributeError(f"module 'venn' has no attribute {name!r}{question}", name=name, obj=None)
