"""The predictors behind their names, and a panel of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import click

from venn.machines.kernels import RBF, Kernel, Linear, MultiscaleRBF, Polynomial
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.machine import Machine
from venn.machines.one_vs_all import OneVsAllSVM
from venn.machines.scaled import FIRST, Scaled
from venn.machines.window import SlidingWindow
from venn.maps.beta import Beta2, BetaScaling
from venn.maps.beta_calibration import BetaCalibration
from venn.maps.classes import Temperature
from venn.maps.contract import ScoreMap
from venn.maps.sigmoids import Platt, Sigma01, SigmaPP, Softmax
from venn.maps.steps import Binning, Isotonic
from venn.online.forecaster import Forecaster
from venn.online.panel import Panel
from venn.predictors.adaptive import Adaptive
from venn.predictors.conformal import Conformal
from venn.predictors.defensive import Defensive
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.learning import Predictor
from venn.predictors.scaling import Scaler
from venn.predictors.transductive import TransductiveVenn
from venn.predictors.transductive_abers import TransductiveVennAbers
from venn.schedules import PrefixRestart
from venn.taxonomies import AdaptiveMarginBins, Argmax, Deleted

MACHINES: dict[str, tuple[str, Callable[..., Machine]]] = {
    "squares": ("least-squares SVM", LeastSquaresSVM),
    "hinge": ("one-vs-all SVM", OneVsAllSVM),
}

SCALED: dict[str, Callable[[], ScoreMap]] = {
    "platt": Platt, "binning": Binning, "isotonic": Isotonic, "softmax": Softmax, "sigma01": Sigma01,
    "sigma_pp": SigmaPP, "beta": BetaScaling, "beta2": Beta2, "beta_calibration": BetaCalibration,
    "temperature": Temperature,
}  # fmt: skip
TRAINED: dict[str, Callable[..., Predictor]] = {
    "inductive": InductiveVenn, "inductive_abers": InductiveVennAbers, "inductive_conformal": InductiveConformal,
}  # fmt: skip


def _scaled(map: Callable[[], ScoreMap], machine: Machine) -> Predictor:
    return Scaler(machine, map())


def _inductive(kind: Callable[..., Predictor], machine: Machine) -> Predictor:
    return kind(machine.fresh(), schedule=PrefixRestart(last=LAST_TRAINING))


# The machine that a predictor reads, and how to make it.
PREDICTORS: dict[str, tuple[str, Callable[[Any], Predictor]]] = {
    "forecaster": ("bank", lambda machine: machine),  # three predictors at once, see `panel_of`
    "abers": ("squares", TransductiveVennAbers),
    "deleted": ("squares", lambda machine: TransductiveVenn(machine, Deleted(AdaptiveMarginBins()))),
    "venn": ("hinge", lambda machine: TransductiveVenn(machine, Argmax())),
    **{name: ("hinge", partial(_scaled, map)) for name, map in SCALED.items()},
    "conformal": ("squares", Conformal),
    "defensive": ("classes", lambda given: Defensive(MultiscaleRBF(), given[0], landmarks=LANDMARKS, first=given[1])),
    **{name: ("squares", partial(_inductive, kind)) for name, kind in TRAINED.items()},
}
# Sets with a long-run error rate on any stream, made from those of another predictor.
ADAPTIVE = {"adaptive": "conformal", "inductive_adaptive": "inductive_conformal"}
PREDICTORS |= {name: PREDICTORS[of] for name, of in ADAPTIVE.items()}
# What ranks how well labels fit their objects, beside those that count how often events happen.
CONFORMAL = {
    "abers": "conformal", "deleted": "conformal", "inductive": "inductive_conformal",
    "inductive_abers": "inductive_conformal",
}  # fmt: skip
FORECASTER = "forecaster"
DEFENSIVE = "defensive"
# Beside the forecaster, on the data of the published study: its predictors.
PUBLISHED = ("venn", "platt", "binning", "isotonic")
STUDY = "Lambrou, Papadopoulos and Gammerman (2012)"
WINDOWED = ("abers", "deleted", "conformal")  # what stands on a window: a forecaster does not forget
INDUCTIVE = ("inductive_abers", "inductive", "inductive_conformal")
ALSO_ADAPTIVE = (
    "Also predict sets, or intervals for numbers, whose long-run error rate holds on any stream, from conformal ones."
)
LANDMARKS = 1000  # objects that a defensive forecaster keeps
LAST_TRAINING = 2048  # examples: an inductive predictor then keeps its scorer, and its memory
# gamma of the RBF kernel and C for the data of Lambrou, Papadopoulos & Gammerman (2012). They tuned the width but
# print no value: these are ours.
SETTINGS = {
    "squares": {"car": (0.5, 10.0), "wine_red": (0.1, 1.0)},
    "hinge": {"car": (0.1, 10.0), "wine_red": (0.1, 1.0)},
}
DEFAULT_C = 10.0
WATCHED = FORECASTER
DEFAULTS = f"{FORECASTER}; on {' and '.join(SETTINGS['hinge'])} also {', '.join(PUBLISHED)}, of the published study"
DEFAULT_DEGREE = 3
KERNELS = ("rbf", "linear", "poly")
#: For each parameter of kernels, the kernels that have it.
OF_KERNELS = {"gamma": ("rbf", "poly"), "degree": ("poly",), "coef0": ("poly",)}


def default_predictors(data: str | None) -> tuple[str, ...]:
    """Return the names of the predictors that stand on a stream if none are named: the same on every length.

    Parameters
    ----------
    data : str or None
        Name of the data set or path of the file; None where no comparison with the published study is wanted.

    Examples
    --------
    >>> default_predictors("own.csv")
    ('forecaster',)
    """
    return (FORECASTER, *PUBLISHED) if data in SETTINGS["hinge"] else (FORECASTER,)


def choose_nothing(names: Sequence[str]) -> bool:
    """Whether none of the predictors stands on a machine whose kernel and C are chosen.

    Examples
    --------
    >>> choose_nothing(["forecaster", "defensive"]), choose_nothing(["forecaster", "abers"])
    (True, False)
    """
    return not any(PREDICTORS[name][0] in MACHINES for name in names)


def refuse_choices(given: Sequence[str], names: Sequence[str]) -> None:
    """Refuse options that choose a machine where no predictor has anything to choose."""
    if given:
        default = ", the default" if list(names) == [FORECASTER] else ""
        told = {FORECASTER: f"a {FORECASTER}", DEFENSIVE: f"a {DEFENSIVE} {FORECASTER}"}
        alone = " or ".join(told[name] for name in names)
        raise click.UsageError(
            f"{given[0]} chooses nothing of {alone}{default}: leave it out, or name predictors that it is for, such as "
            "--predictors abers"
        )


def with_conformal(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, and conformal predictors on the machines of the Venn and Venn-Abers ones that have none.

    Examples
    --------
    >>> with_conformal(["abers", "deleted"]), with_conformal(["forecaster"]), with_conformal(["venn", "conformal"])
    (('abers', 'deleted', 'conformal'), ('forecaster',), ('venn', 'conformal'))
    """
    beside = dict.fromkeys(CONFORMAL[name] for name in names if name in CONFORMAL)
    return (*names, *(name for name in beside if name not in names))


def with_adaptive(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, and that of adaptive sets beside the conformal ones among them, or else of inductive ones.

    Examples
    --------
    >>> with_adaptive(("inductive_abers", "inductive_conformal"))
    ('inductive_abers', 'inductive_conformal', 'inductive_adaptive')
    """
    beside = [name for name, of in ADAPTIVE.items() if of in names]
    if not beside:
        beside = [
            "adaptive" if set(names) & set(WINDOWED) else "inductive_adaptive"
        ]  # the latter's memory does not grow
    return (*names, *(name for name in beside if name not in names))


def known_choices(
    data: str | None, gamma: float | None, C: float | None
) -> dict[str, tuple[Kernel, float, str]] | None:
    """Return kernel, C and a note for each kind of machine where they are known for a data set, else None."""
    if not all(data in known for known in SETTINGS.values()):
        return None
    known = {kind: SETTINGS[kind][data or ""] for kind in MACHINES}
    note = by_default(gamma=gamma, C=C)
    return {kind: (RBF(gamma or width), C or penalty, note) for kind, (width, penalty) in known.items()}


def by_default(**parameters: float | None) -> str:
    """Return a note on which parameters were not given.

    Examples
    --------
    >>> by_default(gamma=None, C=3.0), by_default(C=3.0)
    (', by default: gamma', '')
    """
    free = [name for name, value in parameters.items() if value is None]
    return f", by default: {', '.join(free)}" if free else ""


def with_around(
    machine: Any, scale: bool | None, window: int | None, scaling: Callable[[Any], Any] = Scaled
) -> tuple[Any, str, str]:
    """Return a machine with what is to stand around it, and notes on its scale and its window."""
    scaled = windowed = ""
    if scale:
        machine = scaling(machine)
        scaled = f", scaled by the first {machine.first} examples"
    if window is not None:
        machine, windowed = SlidingWindow(machine, window), f", the latest {window} examples"
    return machine, scaled, windowed


def make_kernel(name: str, gamma: float | Literal["auto"], degree: int | None, coef0: float | None) -> Kernel:
    """Return the kernel of this name; None stands for its usual parameters."""
    if name == "linear":
        return Linear()
    if name == "rbf":
        return RBF(gamma)
    return Polynomial(DEFAULT_DEGREE if degree is None else degree, gamma, 1.0 if coef0 is None else coef0)


def panel_of(
    predictors: Sequence[str],
    choices: Mapping[str, tuple[Kernel, float, str]],
    classes: Sequence[Any],
    say: Callable[[str], None],
    window: int | None = None,
    restarting: Callable[[Any], Predictor] | None = None,
    scale: bool | None = None,
    level: float = 0.01,
    standardised: bool = False,
) -> Panel:
    """Return a panel of the predictors.

    Parameters
    ----------
    predictors : sequence of str
        Of `PREDICTORS`.
    choices : mapping
        Kernel, C and a note on them for each kind of machine.
    classes : sequence of labels
    say : callable
        Receives a text that says which predictors read which machine.
    window : int, optional
        Number of latest examples that a machine holds.
    restarting : callable, optional
        Turns a predictor into one that restarts its window; each then has its own window.
    scale : bool, optional
        Whether the first examples fix the scale of the columns. By default only a forecaster's do.
    standardised : bool, default False
        Whether the columns come standardised over the whole data, so that a forecaster spends no example on it.
    level : float in (0, 1), default 0.01
        Chance that a forecaster's verdict is ever "changed" although nothing has changed.
    """
    machines: dict[str, Any] = {}
    others = [name for name in predictors if name != FORECASTER]
    first = 0 if standardised or scale is False else FIRST
    columns = "standardised beforehand" if standardised else f"scaled by the first {FIRST}"
    columns = "taken as they are" if scale is False else columns
    if len(others) < len(predictors):
        if window is not None:
            raise click.UsageError(
                f"--window does not go with {FORECASTER}, which forgets nothing: name others, such as --predictors "
                f"{','.join(WINDOWED)}"
            )
        say(f"{FORECASTER}: forecast, intervals and sets, with nothing to choose; columns {columns}")
    for kind, (title, make) in MACHINES.items():
        readers = [name for name in predictors if PREDICTORS[name][0] == kind]
        if readers:
            solver, penalty, note = choices[kind]
            machines[kind], scaled, windowed = with_around(make(solver, penalty, classes), scale, window)
            say(f"{', '.join(readers)}: {title} with {solver!r}, C={penalty:g}{note}{scaled}{windowed}")

    if DEFENSIVE in predictors:
        if window is not None:
            raise click.UsageError(f"--window does not go with {DEFENSIVE}")
        say(f"{DEFENSIVE}: a theorem on any sequence, by a kernel and {LANDMARKS} landmarks; columns {columns}")

    def one(name: str) -> Predictor:
        if name in ADAPTIVE:  # the predictor itself may restart: its p-values tell when, adaptive ones do not
            return Adaptive(one(ADAPTIVE[name]))
        kind, make = PREDICTORS[name]
        if name == DEFENSIVE:
            return make((classes, first))
        return make(machines[kind]) if restarting is None else restarting(make(machines[kind].fresh()))

    beside = {name: one(name) for name in others}
    if len(others) == len(predictors):
        return Panel(**beside)
    return Forecaster(classes, beside=beside, level=level, first=first)
