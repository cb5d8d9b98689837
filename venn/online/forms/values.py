"""The classes of which a checkpoint keeps the constructor's parameters, or a state of plain data, and no more."""

from __future__ import annotations

from venn import nonconformity, schedules, smoothing, taxonomies
from venn.machines import kernels
from venn.maps import beta, beta_calibration, classes, merges, sigmoids, sollich, steps
from venn.monitors import alarms, bins, bounds, evidence, martingales, monitor, sequences, sources
from venn.online.forms.base import DataForm, Form, GeneratorForm, RunningForm, register
from venn.prediction import (
    CategoryClass,
    ClassIntervals,
    Forecast,
    Maximin,
    Multiprobability,
    PredictionSet,
    RowMean,
)
from venn.predictors import score_sources
from venn.predictors.cross import Fold
from venn.predictors.protected import BrierLoss, LogLoss
from venn.priors import PriorShift

SCORE_MAPS = (
    sigmoids.Platt, sigmoids.Softmax, sigmoids.Sigma01, sigmoids.SigmaPP, steps.Binning, steps.Isotonic,
    steps.EqualWidth, steps.EqualFrequency, beta.Beta2, beta.BetaScaling, beta_calibration.BetaCalibration,
    classes.Temperature, classes.OneVsAll, sollich.Sollich, merges.LogMerge, merges.BrierMerge,
)  # fmt: skip
PREDICTIONS = (Forecast, Multiprobability, ClassIntervals, PredictionSet)
FITTED = (
    sigmoids.FittedConstant, sigmoids.FittedSigmoid, sigmoids.FittedSigma01, sigmoids.FittedSigmaPP, steps.FittedBins,
    steps.FittedIsotonic, classes.FittedTemperature, classes.FittedOneVsAll, beta.BetaTransform, beta.Shift,
    beta.FittedBeta2, beta.FittedBetaScaling, beta_calibration.FittedBetaCalibration, sollich.FittedSollich,
    alarms.Alarm,
)  # fmt: skip
VALUES = (
    kernels.RBF, kernels.Linear, kernels.Polynomial, RowMean, Maximin, CategoryClass, PriorShift, LogLoss, BrierLoss,
    nonconformity.Margin, nonconformity.DistanceRatio, nonconformity.Multiplier, taxonomies.Argmax, taxonomies.Deleted,
    taxonomies.TopTwo, taxonomies.Threshold, taxonomies.RunnerUp, taxonomies.Gap, taxonomies.MarginBins,
    taxonomies.AdaptiveMarginBins, taxonomies.ScoreBins, taxonomies.Grouped, taxonomies.Dissent,
    taxonomies.TopScoreBins, schedules.PrefixRestart, schedules.Prefix, schedules.FreshSplit,
    schedules.RandomAssignment, schedules.FixedCalibration, schedules.NoTraining, Fold, score_sources.TrainingScores,
    score_sources.DeletedScores, score_sources.HeldOutScores, score_sources.CrossFittedScores, sources.PredictedLabel,
    sources.RealisedRow, sources.OneClass, sources.TrueLabel, bins.WidthBins, bins.MassBins, smoothing.Smoothing,
)  # fmt: skip
RUNNING = (
    martingales.Power, martingales.SimpleMixture, martingales.PlugIn, martingales.BetaPlugIn, martingales.SimpleJumper,
    martingales.CompositeJumper, martingales.Sleeper, alarms.Ville, alarms.CUSUM, alarms.ShiryaevRoberts,
    bounds.DeviationBand, bounds.ForwardEProcess, sequences.StitchedBound, sequences.EmpiricalBernstein,
    sequences.BettingBound, evidence.Exchangeability, evidence.PointForecasts, bins.CalibrationBins, monitor.Monitor,
)  # fmt: skip

register(
    *(Form(kind) for kind in (*VALUES, *SCORE_MAPS, *PREDICTIONS)),
    *(DataForm(kind) for kind in FITTED),
    *(RunningForm(kind) for kind in RUNNING),
    GeneratorForm(),
)
