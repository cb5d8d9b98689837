"""The predictors behind their names, and which stand where none are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from venn.machines.machine import Machine
from venn.maps.beta_calibration import BetaCalibration
from venn.maps.binning import Binning
from venn.maps.contract import ScoreMap
from venn.maps.isotonic import Isotonic
from venn.maps.platt import Platt
from venn.maps.temperature import Temperature
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.learning import Predictor
from venn.predictors.scaling import ScoreCalibrator
from venn.predictors.transductive import Conformal, TransductiveVenn, TransductiveVennAbers
from venn.schedules import PrefixRestart
from venn.taxonomies import AdaptiveMarginBins, Argmax, LeaveOneOut

SCALED: dict[str, Callable[[], ScoreMap]] = {
    "platt": Platt, "binning": Binning, "isotonic": Isotonic, "beta_calibration": BetaCalibration,
    "temperature": Temperature,
}  # fmt: skip
TRAINED: dict[str, Callable[..., Predictor]] = {
    "inductive": InductiveVenn, "inductive_abers": InductiveVennAbers, "inductive_conformal": InductiveConformal,
    "inductive_conformal_by_class": partial(InductiveConformal, label_conditional=True),
}  # fmt: skip


def _scaled(map: Callable[[], ScoreMap], machine: Machine) -> Predictor:
    return ScoreCalibrator(machine, map())


def _inductive(kind: Callable[..., Predictor], machine: Machine) -> Predictor:
    return kind(machine.fresh(), schedule=PrefixRestart(last=LAST_TRAINING))


# The machine that a predictor reads, and how to make it.
PREDICTORS: dict[str, tuple[str, Callable[[Any], Predictor]]] = {
    "forecaster": ("bank", lambda machine: machine),  # three predictors at once, see `panels.panel_of`
    "abers": ("squares", TransductiveVennAbers),
    "leave_one_out": ("squares", lambda machine: TransductiveVenn(machine, LeaveOneOut(AdaptiveMarginBins()))),
    "venn": ("hinge", lambda machine: TransductiveVenn(machine, Argmax())),
    **{name: ("hinge", partial(_scaled, map)) for name, map in SCALED.items()},
    "conformal": ("squares", Conformal),
    "conformal_by_class": ("squares", partial(Conformal, label_conditional=True)),
    **{name: ("squares", partial(_inductive, kind)) for name, kind in TRAINED.items()},
}
# Sets with a long-run error rate on any stream, made from those of another predictor.
ADAPTIVE = {"adaptive": "conformal", "inductive_adaptive": "inductive_conformal"}
PREDICTORS |= {name: PREDICTORS[of] for name, of in ADAPTIVE.items()}
# Beside a predictor that counts how often events happen, one on the same machine that ranks how well labels fit.
CONFORMAL = {
    "abers": "conformal", "leave_one_out": "conformal", "inductive": "inductive_conformal",
    "inductive_abers": "inductive_conformal",
}  # fmt: skip
FORECASTER = "forecaster"
# Beside the forecaster, on the data of the published study: its predictors.
STUDY = "Lambrou, Papadopoulos and Gammerman (2012)"
STUDIED = ("car", "wine_red")
PUBLISHED = ("venn", "platt", "binning", "isotonic")
BY_CLASS = ("conformal_by_class", "inductive_conformal_by_class")  # whose risk holds within each class
WINDOWED = ("abers", "leave_one_out", "conformal", BY_CLASS[0])  # what stands on a window: a forecaster does not forget
INDUCTIVE = ("inductive_abers", "inductive", "inductive_conformal", BY_CLASS[1], "inductive_adaptive")
LAST_TRAINING = 2048  # examples: an inductive predictor then keeps its scorer, and its memory


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
    return (FORECASTER, *PUBLISHED) if data in STUDIED else (FORECASTER,)


def with_conformal(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, and conformal predictors on the machines of the Venn and Venn-Abers ones that have none.

    Examples
    --------
    >>> with_conformal(["abers", "platt"]), with_conformal(["forecaster"]), with_conformal(["venn", "conformal"])
    (('abers', 'platt', 'conformal'), ('forecaster',), ('venn', 'conformal'))
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
