"""Online Venn prediction over exact incremental support vector machines.

>>> import venn
>>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
>>> model = venn.TransductiveVenn(machine, venn.Argmax())
>>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no")]:
...     prediction = model.predict_one(x)
...     model.learn_one(x, y)
>>> prediction
Multiprobability('no': [0.333, 1.000])
"""

import lazy_loader

# A name is imported when it is first asked for: whoever trains no machine waits for no compiler. The stub beside
# this file lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
