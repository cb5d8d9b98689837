"""Online Venn prediction over exact incremental support vector machines.

>>> import venn
>>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
>>> model = venn.TransductiveVenn(machine, venn.Argmax())
>>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no")]:
...     prediction = model.predict_one(x)
...     model.learn_one(x, y)
>>> prediction
Multiprobability('no': [0.500, 1.000])
"""

from venn.machines.kernels import RBF, Linear, Polynomial
from venn.machines.machine import NotConverged
from venn.machines.one_vs_all import OneVsAllSVM
from venn.prediction import Forecast, Maximin, Multiprobability, RowMean
from venn.predictors.transductive import TransductiveVenn
from venn.taxonomies import Argmax

__all__ = [
    "RBF",
    "Argmax",
    "Forecast",
    "Linear",
    "Maximin",
    "Multiprobability",
    "NotConverged",
    "OneVsAllSVM",
    "Polynomial",
    "RowMean",
    "TransductiveVenn",
]

__version__ = "0.1.0"
