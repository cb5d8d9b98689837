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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from venn.adapters.cross_fitting import CrossVennAbers
from venn.calibrators import (
    BrierMerge,
    LogMerge,
    OneVsAllAbers,
    OneVsOneAbers,
    VennAbers,
    cross_venn_abers,
    venn_abers,
)
from venn.calibrators.beta import Beta2, BetaScaling
from venn.calibrators.beta_calibration import BetaCalibration
from venn.calibrators.classes import OneVsAll, Temperature
from venn.calibrators.maps import Platt, Sigma01, SigmaPP, Softmax
from venn.calibrators.sollich import Sollich
from venn.calibrators.steps import Binning, EqualFrequency, EqualWidth, Isotonic
from venn.machines.distances import NeighbourDistances
from venn.machines.frozen import FrozenScorer
from venn.machines.kernels import RBF, Linear, Polynomial
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.logistic import KernelLogisticRegression
from venn.machines.machine import NotConverged
from venn.machines.objects import NearestCentroid, NearestNeighbours
from venn.machines.one_vs_all import OneVsAllSVM
from venn.machines.one_vs_one import OneVsOneSVM
from venn.machines.tuning import Tuning, tune
from venn.machines.window import SlidingWindow
from venn.monitors.alarms import CUSUM, Alarm, ShiryaevRoberts, Ville
from venn.monitors.bounds import DeviationBand, ForwardEProcess
from venn.monitors.martingales import (
    BetaPlugIn,
    CompositeJumper,
    PlugIn,
    Power,
    SimpleJumper,
    SimpleMixture,
    Sleeper,
)
from venn.monitors.monitor import Monitor
from venn.monitors.sequences import BettingBound, EmpiricalBernstein, StitchedBound
from venn.nonconformity import DistanceRatio, Margin, Multiplier
from venn.online.checkpoint import load, save
from venn.online.journal import Journal, JournalError
from venn.online.loop import Online
from venn.online.panel import Panel
from venn.online.record import Record
from venn.online.replay import replay
from venn.online.watch import Watch
from venn.prediction import (
    CategoryClass,
    ClassIntervals,
    Forecast,
    Maximin,
    Multiprobability,
    PredictionSet,
    RowMean,
)
from venn.predictors.abers import InductiveVennAbers
from venn.predictors.balanced import Balanced
from venn.predictors.classwise import TransductiveVennAbers
from venn.predictors.conformal import Conformal
from venn.predictors.cross import CrossVenn
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.protected import BrierLoss, LogLoss, Protected
from venn.predictors.refitted import Refitted
from venn.predictors.restarting import Restarting
from venn.predictors.scaling import Scaler
from venn.predictors.schedules import FixedCalibration, FreshSplit, NoTraining, Prefix, PrefixRestart, RandomAssignment
from venn.predictors.score_sources import CrossFittedScores, DeletedScores, HeldOutScores, TrainingScores
from venn.predictors.transductive import TransductiveVenn
from venn.priors import PriorShift, operational_priors
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

if TYPE_CHECKING:
    from venn.adapters.bootstrap import BootstrapSVC
    from venn.adapters.constrained import ClassWeightScan, ConstrainedSVC, Infeasible, Scip
    from venn.adapters.pairwise import PairwiseSVC
    from venn.adapters.posterior import PosteriorSVC
    from venn.adapters.svc import ProbabilitySVC

__all__ = [
    "CUSUM",
    "RBF",
    "AdaptiveMarginBins",
    "Alarm",
    "Argmax",
    "Balanced",
    "Beta2",
    "BetaCalibration",
    "BetaPlugIn",
    "BetaScaling",
    "BettingBound",
    "Binning",
    "BootstrapSVC",
    "BrierLoss",
    "BrierMerge",
    "CategoryClass",
    "ClassIntervals",
    "ClassWeightScan",
    "CompositeJumper",
    "Conformal",
    "ConstrainedSVC",
    "CrossFittedScores",
    "CrossVenn",
    "CrossVennAbers",
    "Deleted",
    "DeletedScores",
    "DeviationBand",
    "Dissent",
    "DistanceRatio",
    "EmpiricalBernstein",
    "EqualFrequency",
    "EqualWidth",
    "FixedCalibration",
    "Forecast",
    "ForwardEProcess",
    "FreshSplit",
    "FrozenScorer",
    "Gap",
    "Grouped",
    "HeldOutScores",
    "InductiveConformal",
    "InductiveVenn",
    "InductiveVennAbers",
    "Infeasible",
    "Isotonic",
    "Journal",
    "JournalError",
    "KernelLogisticRegression",
    "LeastSquaresSVM",
    "Linear",
    "LogLoss",
    "LogMerge",
    "Margin",
    "MarginBins",
    "Maximin",
    "Monitor",
    "Multiplier",
    "Multiprobability",
    "NearestCentroid",
    "NearestNeighbours",
    "NeighbourDistances",
    "NoTraining",
    "NotConverged",
    "OneVsAll",
    "OneVsAllAbers",
    "OneVsAllSVM",
    "OneVsOneAbers",
    "OneVsOneSVM",
    "Online",
    "PairwiseSVC",
    "Panel",
    "Platt",
    "PlugIn",
    "Polynomial",
    "PosteriorSVC",
    "Power",
    "PredictionSet",
    "Prefix",
    "PrefixRestart",
    "PriorShift",
    "ProbabilitySVC",
    "Protected",
    "RandomAssignment",
    "Record",
    "Refitted",
    "Restarting",
    "RowMean",
    "RunnerUp",
    "Scaler",
    "Scip",
    "ScoreBins",
    "ShiryaevRoberts",
    "Sigma01",
    "SigmaPP",
    "SimpleJumper",
    "SimpleMixture",
    "Sleeper",
    "SlidingWindow",
    "Softmax",
    "Sollich",
    "StitchedBound",
    "Temperature",
    "Threshold",
    "TopScoreBins",
    "TopTwo",
    "TrainingScores",
    "TransductiveVenn",
    "TransductiveVennAbers",
    "Tuning",
    "VennAbers",
    "Ville",
    "Watch",
    "cross_venn_abers",
    "load",
    "operational_priors",
    "replay",
    "save",
    "tune",
    "venn_abers",
]

__version__ = "0.1.0"


# Whoever uses no estimator does not pay for the import of scikit-learn's.
_ESTIMATORS = {
    "BootstrapSVC": "bootstrap",
    "ClassWeightScan": "constrained",
    "ConstrainedSVC": "constrained",
    "Infeasible": "constrained",
    "PairwiseSVC": "pairwise",
    "PosteriorSVC": "posterior",
    "ProbabilitySVC": "svc",
    "Scip": "constrained",
}


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(import_module(f"venn.adapters.{_ESTIMATORS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
