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

from venn.calibrators import (
    BrierMerge,
    LogMerge,
    OneVsAllAbers,
    OneVsOneAbers,
    VennAbers,
    cross_venn_abers,
    venn_abers,
)
from venn.machines.frozen import FrozenScorer
from venn.machines.kernels import RBF, Linear, Polynomial
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.machine import NotConverged
from venn.machines.objects import NearestCentroid, NearestNeighbours
from venn.machines.one_vs_all import OneVsAllSVM
from venn.machines.tuning import Tuning, tune
from venn.online.panel import Panel
from venn.online.record import Record
from venn.online.replay import replay
from venn.prediction import CategoryClass, ClassIntervals, Forecast, Maximin, Multiprobability, RowMean
from venn.predictors.abers import InductiveVennAbers
from venn.predictors.classwise import TransductiveVennAbers
from venn.predictors.cross import CrossVenn
from venn.predictors.inductive import InductiveVenn
from venn.predictors.scaling import Binning, EqualFrequency, EqualWidth, Isotonic, Platt
from venn.predictors.schedules import FixedCalibration, FreshSplit, NoTraining, Prefix, PrefixRestart, RandomAssignment
from venn.predictors.transductive import TransductiveVenn
from venn.taxonomies import (
    AdaptiveMarginBins,
    Argmax,
    Deleted,
    Dissent,
    Gap,
    Grouped,
    MarginBins,
    RunnerUp,
    ScoreBins,
    Threshold,
    TopScoreBins,
    TopTwo,
)

__all__ = [
    "RBF",
    "AdaptiveMarginBins",
    "Argmax",
    "Binning",
    "BrierMerge",
    "CategoryClass",
    "ClassIntervals",
    "CrossVenn",
    "Deleted",
    "Dissent",
    "EqualFrequency",
    "EqualWidth",
    "FixedCalibration",
    "Forecast",
    "FreshSplit",
    "FrozenScorer",
    "Gap",
    "Grouped",
    "InductiveVenn",
    "InductiveVennAbers",
    "Isotonic",
    "LeastSquaresSVM",
    "Linear",
    "LogMerge",
    "MarginBins",
    "Maximin",
    "Multiprobability",
    "NearestCentroid",
    "NearestNeighbours",
    "NoTraining",
    "NotConverged",
    "OneVsAllAbers",
    "OneVsAllSVM",
    "OneVsOneAbers",
    "Panel",
    "Platt",
    "Polynomial",
    "Prefix",
    "PrefixRestart",
    "RandomAssignment",
    "Record",
    "RowMean",
    "RunnerUp",
    "ScoreBins",
    "Threshold",
    "TopScoreBins",
    "TopTwo",
    "TransductiveVenn",
    "TransductiveVennAbers",
    "Tuning",
    "VennAbers",
    "cross_venn_abers",
    "replay",
    "tune",
    "venn_abers",
]

__version__ = "0.1.0"
