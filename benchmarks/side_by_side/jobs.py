"""The jobs, each with its streams and its contenders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import venn

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


@dataclass(frozen=True)
class Contender:
    """A contender for a job: its distribution ("ours" for us), its title, and a function that makes it from a task."""

    library: str
    title: str
    make: Any
    same: str = ""  # title of a contender that is the same by definition, for comparison
    fixed: bool = False  # one calibration set for all objects
    only: str = ""  # the only stream that it runs on


@dataclass(frozen=True)
class Job:
    """One table: the question, the settings that all share, the streams, the contenders."""

    name: str
    title: str
    settings: str
    streams: dict[str, Size]
    contenders: list[Contender]


SMALL = Size(0, 0, 500)
TRANSDUCTIVE = {"gaussians": SMALL, "pima": SMALL, "car": SMALL}
KERNEL = {"kernel": "rbf", "sigma": lambda task: task.sigma}
A, CP, VA, CR, MA, RI, SK = "ours", "online-cp", "venn-abers", "crepes", "mapie", "river", "scikit-learn"
TC = "torchcp"


def window(task):
    return venn.SlidingWindow(squares(task), 1000)


def leave_one_out(map_, machine=squares):
    return ours(lambda task: venn.ScoreCalibrator(machine(task), map_, venn.predictors.LeaveOneOutScores()))


def measured(title, measure, there, options, at_mapie=None, **ours_too):
    """Return who makes sets by one measure of strangeness, calibrated once: ours, TorchCP, and MAPIE if it has it."""
    return [
        Contender(A, title, lambda t: OursSets(t, measure=measure, **ours_too), fixed=True),
        Contender(TC, title, lambda t: TorchCPSets(t, there, **options), fixed=True),
        *([Contender(MA, title, lambda t: MAPIESets(t, at_mapie), fixed=True)] if at_mapie else []),
    ]


JOBS = [
    Job(
        "venn_svm",
        "Transductive Venn over support vector machines",
        "RBF kernel, gamma and C as below; hinge loss, training scores, argmax, as published. scikit-learn: 2c `SVC` "
        "fits a step (tolerance 1e-3) on a kernel matrix kept between steps. The last row is our recommended one.",
        TRANSDUCTIVE,
        [
            Contender(A, "`OneVsAllSVM`, `Argmax`", ours(lambda t: venn.TransductiveVenn(hinge(t), venn.Argmax()))),
            Contender(SK, "`SVC`, 2c fits a step", BruteSVM, "`OneVsAllSVM`, `Argmax`"),
            Contender(
                A,
                "`LeastSquaresSVM`, leave-one-out, adaptive bins",
                ours(
                    lambda t: venn.TransductiveVenn(squares(t), venn.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins()))
                ),
            ),
        ],
    ),
    Job(
        "abers_full",
        "Full (transductive) Venn-Abers",
        "RBF kernel, gamma and C as below (a = 1 / C in online-cp's kernel ridge, which has no bias and is fitted to "
        "0 and 1; ours has one), training scores where not said; online-cp's defaults for its solver (smo_tol 1e-3, "
        "5000 iterations), k = 5 for neighbours. Point forecasts: ours the mean of each pair, normalised; online-cp "
        "`.point`.",
        TRANSDUCTIVE,
        [
            Contender(
                A, "`LeastSquaresSVM`, leave-one-out (default)", ours(lambda t: venn.TransductiveVennAbers(squares(t)))
            ),
            Contender(
                A,
                "`LeastSquaresSVM`, training scores",
                ours(lambda t: venn.TransductiveVennAbers(squares(t), leave_one_out=False)),
            ),
            Contender(
                A,
                "`OneVsAllSVM`, training scores",
                ours(lambda t: venn.TransductiveVennAbers(hinge(t), leave_one_out=False)),
            ),
            Contender(
                CP,
                "kernel ridge",
                online_cp_venn("VennAbersPredictor", scorer="kernel_ridge", a=lambda t: 1 / t.C, **KERNEL),
            ),
            Contender(CP, "SVM", online_cp_venn("VennAbersPredictor", scorer="svm", C=lambda t: t.C, **KERNEL)),
            Contender(CP, "neighbours", online_cp_venn("VennAbersPredictor", scorer="knn", k=5)),
        ],
    ),
    Job(
        "abers_online",
        "Inductive Venn-Abers, each label joining the calibration set",
        "One logistic regression, fitted by scikit-learn to the first 1000 examples, is the scorer of all (its time "
        "in nobody's row); then each object is asked about and its label calibrates. The calibration set starts "
        "empty. Point forecast p1 / (1 - p0 + p1). The package has no insertion: it is fitted anew at each step.",
        {"gaussians, 2 classes": Size(1000, 0, 3000), "adult": Size(1000, 0, 3000)},
        [
            Contender(A, "`InductiveVennAbers`", lambda t: OursOnScorer(t, venn.InductiveVennAbers)),
            Contender(
                A,
                "`InductiveVennAbers`, one call",
                lambda t: OursReplay(t, venn.InductiveVennAbers),
                "`InductiveVennAbers`",
            ),
            Contender(VA, "`VennAbers`, fitted at each step", VennAbersPackage, "`InductiveVennAbers`"),
            Contender(SK, "`IsotonicRegression`, two fits a step", TwoRefits, "`InductiveVennAbers`"),
        ],
    ),
    Job(
        "abers_batch",
        "Venn-Abers and scalings, calibrated once",
        "The same logistic regression, fitted to 2000 examples, calibrated on the next 2000, 10 000 objects (covtype "
        "5000) in one call. Seconds: calibration and prediction. Cross: five folds of all 4000, with the fits of the "
        "model. Of seven classes the peers pair class with class; ours take one "
        "against all. Deviations in brackets: one calibration set serves all objects, so no bound of sums is proved "
        "for anybody.",
        {"adult": Size(2000, 2000, 10_000), "covtype": Size(2000, 2000, 5000)},
        [
            Contender(A, "`InductiveVennAbers`", lambda t: OursAbersBatch(), fixed=True),
            Contender(VA, "`VennAbersCalibrator`", lambda t: VennAbersBatch(), fixed=True),
            Contender(MA, "`VennAbersCalibrator`, prefit", lambda t: MAPIEAbers(), fixed=True),
            Contender(SK, "`CalibratedClassifierCV`, sigmoid", lambda t: SklearnPrefit(t, "sigmoid"), fixed=True),
            Contender(SK, "`CalibratedClassifierCV`, isotonic", lambda t: SklearnPrefit(t, "isotonic"), fixed=True),
            Contender(
                SK, "`CalibratedClassifierCV`, temperature", lambda t: SklearnPrefit(t, "temperature"), fixed=True
            ),
            Contender(A, "cross: `VennAbersCalibrator`", lambda t: Cross(t, A), fixed=True),
            Contender(VA, "cross: `VennAbersCalibrator`", lambda t: Cross(t, VA), fixed=True),
            Contender(MA, "cross: `VennAbersCalibrator`", lambda t: Cross(t, MA), fixed=True),
        ],
    ),
    Job(
        "conformal_full",
        "Full conformal prediction",
        "RBF kernel, gamma and C as below; smoothed p-values, a random number of each library's own. SVM: "
        "nonconformity is the signed margin by training scores in online-cp, against all examples for two classes and"
        " those of the supposed class for more; ours: the best other score less the own. Neighbours of "
        "online-cp: ratio of the distances to the nearest of the own and of other classes, k = 1. Limits: binomial.",
        TRANSDUCTIVE,
        [
            Contender(A, "`LeastSquaresSVM`, `Margin()` (default)", ours(lambda t: venn.Conformal(squares(t)))),
            Contender(
                A,
                "`OneVsAllSVM`, training scores",
                ours(lambda t: venn.Conformal(hinge(t), venn.nonconformity.Margin(leave_one_out=False))),
            ),
            Contender(
                CP,
                "`ConformalSupportVectorMachine`",
                online_cp_sets("ConformalSupportVectorMachine", C=lambda t: t.C, **KERNEL),
            ),
            Contender(
                CP,
                "`ConformalNearestNeighboursClassifier`",
                online_cp_sets("ConformalNearestNeighboursClassifier", k=1),
            ),
        ],
    ),
    Job(
        "conformal_fixed",
        "Inductive conformal sets, calibrated once",
        "The same logistic regression, fitted to 2000 examples, calibrated on the next 999, 10 000 objects in one "
        "call; nonconformity 1 - p of the own class in all (MAPIE's lac, crepes's hinge). crepes and ours smoothed "
        "unless said; MAPIE is not. Limits: beta-binomial, for all objects share one calibration set (by class: not "
        "exact, the numbers by class differ).",
        {"adult": Size(2000, 999, 10_000), "covtype": Size(2000, 999, 10_000)},
        [
            Contender(A, "`InductiveConformal`", lambda t: OursSets(t, measure=Denied()), fixed=True),
            Contender(
                A,
                "`InductiveConformal`, not smoothed",
                lambda t: OursSets(t, measure=Denied(), smoothed=False),
                fixed=True,
            ),
            Contender(CR, "`WrapClassifier`", CrepesSets, fixed=True),
            Contender(MA, "`SplitConformalClassifier`, lac", MAPIESets, fixed=True),
            Contender(MA, "`SplitConformalClassifier`, aps", lambda t: MAPIESets(t, "aps"), fixed=True),
            Contender(
                A,
                "by class: `label_conditional=True`",
                lambda t: OursSets(t, measure=Denied(), label_conditional=True),
                fixed=True,
            ),
            Contender(CR, "by class: `class_cond=True`", lambda t: CrepesSets(t, class_cond=True), fixed=True),
        ],
    ),
    Job(
        "measures_fixed",
        "Measures of strangeness and groups, calibrated once",
        "A logistic regression fitted to 2000 examples, calibrated on the next 999, 10 000 objects in one call "
        "(optdigits: 1500, 999, 3000). Rows of one name are by one measure; randomised and smoothed where the library "
        "does so by default. RAPS: weight .01 beyond 2 labels; MAPIE chooses both on a fifth of the calibration "
        "examples. SAPS: weight .05. Two groups: is the first feature positive? Limits as above.",
        {"covtype": Size(2000, 999, 10_000), "optdigits": Size(1500, 999, 3000)},
        [
            *measured("LAC", venn.nonconformity.LAC(), "LAC", {}, "lac"),
            *measured("APS", venn.nonconformity.APS(), "APS", {}, "aps"),
            *measured(
                "RAPS", venn.nonconformity.RAPS(weight=0.01, free=2), "RAPS", {"penalty": 0.01, "kreg": 2}, "raps"
            ),
            *measured("SAPS", venn.nonconformity.SAPS(weight=0.05), "SAPS", {"weight": 0.05}),
            *measured("top-k", venn.nonconformity.TopK(), "TOPK", {}, "top_k"),
            *measured("APS by class", venn.nonconformity.APS(), "APS", {"by_class": True}, label_conditional=True),
            Contender(
                A,
                "LAC within two groups",
                lambda t: OursSets(t, positive, measure=venn.nonconformity.LAC()),
                fixed=True,
            ),
            Contender(CR, "LAC within two groups", lambda t: CrepesSets(t, mc=positive), fixed=True),
        ],
    ),
    Job(
        "drift",
        "Sets on a stream in order of time",
        "The same logistic regression, fitted to the first 2000 half-hours, calibrated on the next 100, then one after "
        "the other as below. No peer has adaptive sets of labels: MAPIE's and TorchCP's are for numbers. Limits: "
        "binomial, of independent errors; on a stream that drifts only the adaptive row promises anything.",
        {"elec2, in order of time": Size(2000, 100, 10_000)},
        [
            Contender(A, "`InductiveConformal`", lambda t: OursSetsOnline(t, measure=Denied())),
            Contender(
                A, "`Adaptive(InductiveConformal)`", lambda t: OursSetsOnline(t, adaptive=True, measure=Denied())
            ),
            Contender(CR, "`WrapClassifier`, online, one call", lambda t: CrepesSets(t, online=True)),
            Contender(MA, "`SplitConformalClassifier`, lac, calibrated once", MAPIESets),
        ],
    ),
    Job(
        "conformal_online",
        "Inductive conformal sets, each label joining the calibration set",
        "As above, calibrated on 100 examples first, then prequentially: crepes with `online=True` in one call that "
        "takes objects and labels, ours one example at a time, and in one call by `replay_many`. Limits: binomial. "
        "MAPIE calibrates once.",
        {"adult": Size(2000, 100, 3000), "covtype": Size(2000, 100, 3000)},
        [
            Contender(A, "`InductiveConformal`", lambda t: OursSetsOnline(t, measure=Denied())),
            Contender(
                A,
                "`InductiveConformal`, one call",
                lambda t: OursReplay(t, venn.InductiveConformal, measure=Denied()),
                "`InductiveConformal`",
            ),
            Contender(CR, "`WrapClassifier`, online, one call", lambda t: CrepesSets(t, online=True)),
            Contender(
                A,
                "by class: `label_conditional=True`",
                lambda t: OursSetsOnline(t, measure=Denied(), label_conditional=True),
            ),
            Contender(
                A,
                "by class, one call",
                lambda t: OursReplay(t, venn.InductiveConformal, measure=Denied(), label_conditional=True),
                "by class: `label_conditional=True`",
            ),
            Contender(
                CR,
                "by class: `class_cond=True`, online, one call",
                lambda t: CrepesSets(t, online=True, class_cond=True),
            ),
        ],
    ),
    Job(
        "stream",
        "Probabilities in a stream",
        "Features standardised beforehand for all. river: its defaults (forest: 10 trees), one against all where a "
        "linear model has more classes. scikit-learn: fitted anew at 64, 128, 256, ... examples; the calibrated ones,"
        " five folds, without classes of fewer than five examples. RBF kernel, gamma and C as below, for `SVC` and "
        "ours. Our scalings and Venn-Abers read leave-one-out scores of a least-squares machine, `InductiveVennAbers` "
        "trains at 32, 64, 128, ... examples.",
        {"gaussians": Size(0, 0, 1000), "car": Size(0, 0, 1000), "wine_red": Size(0, 0, 1000)},
        [
            Contender(RI, "`LogisticRegression`", river_model("logistic")),
            Contender(RI, "`GaussianNB`", river_model("bayes")),
            Contender(RI, "`HoeffdingAdaptiveTreeClassifier`", river_model("tree")),
            Contender(RI, "`ARFClassifier`", river_model("forest")),
            Contender(SK, "`LogisticRegression`, refitted", logistic()),
            Contender(SK, "`CalibratedClassifierCV(SVC())`, sigmoid", calibrated("sigmoid")),
            Contender(SK, "`CalibratedClassifierCV(SVC())`, isotonic", calibrated("isotonic")),
            Contender(A, "`ScoreCalibrator`, Platt", leave_one_out(venn.maps.Platt())),
            Contender(A, "`ScoreCalibrator`, isotonic", leave_one_out(venn.maps.Isotonic())),
            Contender(A, "`TransductiveVennAbers`", ours(lambda t: venn.TransductiveVennAbers(squares(t)))),
            Contender(A, "`InductiveVennAbers`", ours(lambda t: venn.InductiveVennAbers(squares(t)))),
        ],
    ),
    Job(
        "long_stream",
        "Probabilities in a longer stream",
        "As above, with what bounds memory: a window of 1000 for ours that keep examples, no training beyond 2048 for"
        " those that set examples aside and for what is refitted. `ExpertMixture` is ours around river's model.",
        {"adult": Size(0, 0, 4000)},
        [
            Contender(RI, "`LogisticRegression`", river_model("logistic")),
            Contender(RI, "`GaussianNB`", river_model("bayes")),
            Contender(RI, "`HoeffdingAdaptiveTreeClassifier`", river_model("tree")),
            Contender(RI, "`ARFClassifier`", river_model("forest")),
            Contender(SK, "`LogisticRegression`, refitted", logistic(2048)),
            Contender(SK, "`CalibratedClassifierCV(SVC())`, sigmoid", calibrated("sigmoid", 2048)),
            Contender(A, "`ScoreCalibrator`, Platt, window", leave_one_out(venn.maps.Platt(), window)),
            Contender(A, "`TransductiveVennAbers`, window", ours(lambda t: venn.TransductiveVennAbers(window(t)))),
            Contender(
                A,
                "`InductiveVennAbers`",
                ours(lambda t: venn.InductiveVennAbers(squares(t), schedule=venn.schedules.PrefixRestart(last=2048))),
            ),
            Contender(A, "`ExpertMixture` over river's logistic regression", ours(lambda t: mended(t))),
        ],
    ),
]


def mended(task):
    from river import linear_model

    return venn.predictors.ExpertMixture([venn.adapters.FromRiver(linear_model.LogisticRegression(), task.classes)])
