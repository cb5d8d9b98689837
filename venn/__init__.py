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

from venn.machines.kernels import RBF, Linear, Polynomial
from venn.machines.machine import NotConverged
from venn.machines.one_vs_all import OneVsAllSVM
from venn.online.panel import Panel
from venn.online.record import Record
from venn.online.replay import replay
from venn.prediction import Forecast, Maximin, Multiprobability, RowMean
from venn.predictors.scaling import Binning, EqualFrequency, EqualWidth, Isotonic, Platt
from venn.predictors.transductive import TransductiveVenn
from venn.taxonomies import Argmax

__all__ = [
    "RBF",
    "Argmax",
    "Binning",
    "EqualFrequency",
    "EqualWidth",
    "Forecast",
    "Isotonic",
    "Linear",
    "Maximin",
    "Multiprobability",
    "NotConverged",
    "OneVsAllSVM",
    "Panel",
    "Platt",
    "Polynomial",
    "Record",
    "RowMean",
    "TransductiveVenn",
    "replay",
]

__version__ = "0.1.0"
