"""The jobs, each with its streams and its contenders."""

from typing import Any, NamedTuple

import venn
from venn.nonconformity import APS, LAC, RAPS
from venn.predictors import LeaveOneOutScores

from .bags import BruteSVM, hinge, online_cp_sets, online_cp_venn, ours, squares
from .forecasters import calibrated, logistic, river_model
from .scorers import (
    CrepesSets,
    Cross,
    Denied,
    MAPIEAbers,
    MAPIESets,
    OursAbersBatch,
    OursOnScorer,
    OursReplay,
    OursSets,
    OursSetsOnline,
    SklearnPrefit,
    TorchCPSets,
    TwoRefits,
    VennAbersBatch,
    VennAbersPackage,
    positive,
)
from .tasks import Size


class Contender(NamedTuple):
    """A contender for a job: its distribution ("ours" for us), its title, and a function that makes it from a task."""

    library: str
    title: str
    make: Any
    same: str = ""  # title of a contender that is the same by definition, for comparison


class Job(NamedTuple):
    """One table: the streams, the contenders, and whether one calibration set serves all objects."""

    streams: dict[str, Size]
    contenders: list[Contender]
    fixed: bool = False


TRANSDUCTIVE = dict.fromkeys(("gaussians", "pima", "car"), Size(0, 0, 500))
KERNEL = {"kernel": "rbf", "sigma": lambda task: task.sigma}
A, CP, VA, CR, MA, RI, SK = "ours", "online-cp", "venn-abers", "crepes", "mapie", "river", "scikit-learn"
TC = "torchcp"


def window(task):
    return venn.SlidingWindow(squares(task), 1000)


def scaled(map_, machine=squares):
    return ours(lambda task: venn.ScoreCalibrator(machine(task), map_, LeaveOneOutScores()))


def measured(title, measure, there, options, at_mapie=None, **ours_too):
    """Return who makes sets by one measure of strangeness, calibrated once: ours, TorchCP, and MAPIE if it has it."""
    found = [
        Contender(A, title, lambda t: OursSets(t, measure=measure, **ours_too)),
        Contender(TC, title, lambda t: TorchCPSets(t, there, **options)),
    ]
    return [*found, Contender(MA, title, lambda t: MAPIESets(t, at_mapie))] if at_mapie else found


def mended(task):
    from river import linear_model

    return venn.predictors.ExpertMixture([venn.adapters.FromRiver(linear_model.LogisticRegression(), task.classes)])


RIVER = [
    Contender(RI, "`LogisticRegression`", river_model("logistic")),
    Contender(RI, "`GaussianNB`", river_model("bayes")),
    Contender(RI, "`HoeffdingAdaptiveTreeClassifier`", river_model("tree")),
    Contender(RI, "`ARFClassifier`", river_model("forest")),
]
DEFAULT, TRAINING = "leave-one-out (default)", "training scores"
PACKAGE = "`InductiveVennAbers`"
JOBS = {
    # RBF kernel, gamma and C as in the rows; hinge loss, training scores, argmax, as published. scikit-learn: 2c `SVC`
    # fits a step (tolerance 1e-3) on a kernel matrix kept between steps. The last row is our recommended one.
    "venn_svm": Job(
        TRANSDUCTIVE,
        [
            Contender(A, "`OneVsAllSVM`, `Argmax`", ours(lambda t: venn.TransductiveVenn(hinge(t), venn.Argmax()))),
            Contender(SK, "`SVC`, 2c fits a step", BruteSVM, "`OneVsAllSVM`, `Argmax`"),
            Contender(A, "`LeastSquaresSVM`, leave-one-out, adaptive bins", ours(lambda t: venn.TransductiveVenn(
                squares(t), venn.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins())))),
        ],
    ),
    # The same kernel (a = 1 / C in online-cp's kernel ridge, which has no bias and is fitted to 0 and 1; ours has one);
    # online-cp's defaults for its solver (smo_tol 1e-3, 5000 iterations), k = 5 for neighbours. Point forecasts: ours
    # the mean of each pair, normalised; online-cp `.point`.
    "abers_full": Job(
        TRANSDUCTIVE,
        [
            Contender(A, f"`LeastSquaresSVM`, {DEFAULT}", ours(lambda t: venn.TransductiveVennAbers(squares(t)))),
            Contender(A, f"`LeastSquaresSVM`, {TRAINING}",
                      ours(lambda t: venn.TransductiveVennAbers(squares(t), leave_one_out=False))),
            Contender(A, f"`OneVsAllSVM`, {TRAINING}",
                      ours(lambda t: venn.TransductiveVennAbers(hinge(t), leave_one_out=False))),
            Contender(CP, "kernel ridge", online_cp_venn("VennAbersPredictor", scorer="kernel_ridge",
                                                         a=lambda t: 1 / t.C, **KERNEL)),
            Contender(CP, "SVM", online_cp_venn("VennAbersPredictor", scorer="svm", C=lambda t: t.C, **KERNEL)),
            Contender(CP, "neighbours", online_cp_venn("VennAbersPredictor", scorer="knn", k=5)),
        ],
    ),
    # One logistic regression, fitted to the first 1000 examples, is the scorer of all (its time in nobody's row); then
    # each object is asked about and its label calibrates. Point forecast p1 / (1 - p0 + p1).
    "abers_online": Job(
        dict.fromkeys(("gaussians, 2 classes", "adult"), Size(1000, 0, 3000)),
        [
            Contender(A, PACKAGE, lambda t: OursOnScorer(t, venn.InductiveVennAbers)),
            Contender(A, f"{PACKAGE}, one call", lambda t: OursReplay(t, venn.InductiveVennAbers), PACKAGE),
            Contender(VA, "`VennAbers`, fitted at each step", VennAbersPackage, PACKAGE),
            Contender(SK, "`IsotonicRegression`, two fits a step", TwoRefits, PACKAGE),
        ],
    ),
    # The same, fitted to 2000 examples, calibrated on the next 2000, all objects in one call. Cross: five folds of all
    # 4000, with the fits of the model. Of seven classes the peers pair class with class; ours take one against all.
    "abers_batch": Job(
        {"adult": Size(2000, 2000, 10_000), "covtype": Size(2000, 2000, 5000)},
        [
            Contender(A, PACKAGE, lambda t: OursAbersBatch()),
            Contender(VA, "`VennAbersCalibrator`", lambda t: VennAbersBatch()),
            Contender(MA, "`VennAbersCalibrator`, prefit", lambda t: MAPIEAbers()),
            *(Contender(SK, f"`CalibratedClassifierCV`, {how}", lambda t, how=how: SklearnPrefit(t, how))
              for how in ("sigmoid", "isotonic", "temperature")),
            *(Contender(one, "cross: `VennAbersCalibrator`", lambda t, one=one: Cross(t, one)) for one in (A, VA, MA)),
        ],
        True,
    ),
    # Smoothed p-values, a random number of each library's own. SVM: nonconformity is the signed margin by training
    # scores in online-cp; ours: the best other score less the own. Neighbours of online-cp: k = 1.
    "conformal_full": Job(
        TRANSDUCTIVE,
        [
            Contender(A, "`LeastSquaresSVM`, `Margin()` (default)", ours(lambda t: venn.Conformal(squares(t)))),
            Contender(A, f"`OneVsAllSVM`, {TRAINING}",
                      ours(lambda t: venn.Conformal(hinge(t), venn.nonconformity.Margin(leave_one_out=False)))),
            Contender(CP, "`ConformalSupportVectorMachine`",
                      online_cp_sets("ConformalSupportVectorMachine", C=lambda t: t.C, **KERNEL)),
            Contender(CP, "`ConformalNearestNeighboursClassifier`",
                      online_cp_sets("ConformalNearestNeighboursClassifier", k=1)),
        ],
    ),
    # A logistic regression, calibrated once, all objects in one call. Rows of one name are by one measure; randomised
    # and smoothed where the library does so by default. RAPS: weight .01 beyond 2 labels; MAPIE chooses both on a fifth
    # of the calibration examples. Two groups: is the first feature positive?
    "sets_fixed": Job(
        {"adult": Size(2000, 999, 10_000), "covtype": Size(2000, 999, 10_000), "optdigits": Size(1500, 999, 3000)},
        [
            *measured("LAC", LAC(), "LAC", {}, "lac"),
            Contender(CR, "LAC", CrepesSets),
            *measured("APS", APS(), "APS", {}, "aps"),
            *measured("RAPS", RAPS(weight=0.01, free=2), "RAPS", {"penalty": 0.01, "kreg": 2}, "raps"),
            *measured("APS by class", APS(), "APS", {"by_class": True}, label_conditional=True),
            Contender(A, "LAC within two groups", lambda t: OursSets(t, positive, measure=LAC())),
            Contender(CR, "LAC within two groups", lambda t: CrepesSets(t, mc=positive)),
        ],
        True,
    ),
    # Fitted to the first 2000 half-hours, calibrated on the next 100, then one after the other. No peer has adaptive
    # sets of labels: MAPIE's and TorchCP's are for numbers.
    "drift": Job(
        {"elec2, in order of time": Size(2000, 100, 10_000)},
        [
            Contender(A, "`InductiveConformal`", lambda t: OursSetsOnline(t, measure=Denied())),
            Contender(A, "`Adaptive(InductiveConformal)`", lambda t: OursSetsOnline(t, True, measure=Denied())),
            Contender(CR, "`WrapClassifier`, online, one call", lambda t: CrepesSets(t, online=True)),
            Contender(MA, "`SplitConformalClassifier`, lac, calibrated once", MAPIESets),
        ],
    ),
    # Features standardised beforehand. river: its defaults (forest: 10 trees), one against all where a linear model has
    # more classes. scikit-learn: fitted anew at 64, 128, 256, ... examples; the calibrated ones, five folds, without
    # classes of fewer than five examples. Our maps and Venn-Abers read leave-one-out scores.
    "stream": Job(
        dict.fromkeys(("gaussians", "car", "wine_red"), Size(0, 0, 1000)),
        [
            *RIVER,
            Contender(SK, "`LogisticRegression`, refitted", logistic()),
            Contender(SK, "`CalibratedClassifierCV(SVC())`, sigmoid", calibrated("sigmoid")),
            Contender(SK, "`CalibratedClassifierCV(SVC())`, isotonic", calibrated("isotonic")),
            Contender(A, "`ScoreCalibrator`, Platt", scaled(venn.maps.Platt())),
            Contender(A, "`ScoreCalibrator`, isotonic", scaled(venn.maps.Isotonic())),
            Contender(A, "`TransductiveVennAbers`", ours(lambda t: venn.TransductiveVennAbers(squares(t)))),
            Contender(A, PACKAGE, ours(lambda t: venn.InductiveVennAbers(squares(t)))),
        ],
    ),
    # With what bounds memory: a window of 1000 for ours that keep examples, no training beyond 2048 for the others.
    "long_stream": Job(
        {"adult": Size(0, 0, 4000)},
        [
            *RIVER,
            Contender(SK, "`LogisticRegression`, refitted", logistic(2048)),
            Contender(SK, "`CalibratedClassifierCV(SVC())`, sigmoid", calibrated("sigmoid", 2048)),
            Contender(A, "`ScoreCalibrator`, Platt, window", scaled(venn.maps.Platt(), window)),
            Contender(A, "`TransductiveVennAbers`, window", ours(lambda t: venn.TransductiveVennAbers(window(t)))),
            Contender(A, PACKAGE, ours(lambda t: venn.InductiveVennAbers(
                squares(t), schedule=venn.schedules.PrefixRestart(last=2048)))),
            Contender(A, "`ExpertMixture` over river's logistic regression", ours(mended)),
        ],
    ),
}  # fmt: skip
