"""Makes a panel from a configuration: machines with kernel and C, the predictors on them, and what wraps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import click

from venn.cli import numbers
from venn.cli.errors import did_you_mean
from venn.cli.options import Config, MachineTable
from venn.cli.predictors import ADAPTIVE, FORECASTER, PREDICTORS, WINDOWED
from venn.labels import Real, space_of
from venn.machines.hinge import OneVsAllSVM
from venn.machines.kernel_ridge import KernelRidge
from venn.machines.kernels import RBF, Kernel, Linear, MultiscaleLaplacian, Polynomial
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.scale import FIRST, Scale
from venn.machines.window import SlidingWindow
from venn.monitors.shared_level import together
from venn.online.forecaster import Forecaster
from venn.online.panel import Panel
from venn.predictors.adaptive import Adaptive
from venn.predictors.groups import by_group
from venn.predictors.learning import Predictor
from venn.predictors.restarting import Restarting

Gamma = float | Literal["auto"]

#: Title of each kind of machine that is chosen, and what makes it of a kernel, C, classes if it has any, and a scale.
MACHINES: dict[str, tuple[str, Callable[..., Any]]] = {
    "squares": ("least-squares SVM", LeastSquaresSVM),
    "hinge": ("one-vs-all SVM", OneVsAllSVM),
    "ridge": ("kernel ridge regression", KernelRidge),
}
# gamma of the RBF kernel and C for the data of Lambrou, Papadopoulos & Gammerman (2012). They tuned the width but
# print no value: these are ours.
SETTINGS = {
    "car": {"squares": (0.5, 10.0), "hinge": (0.1, 10.0)},
    "wine_red": {"squares": (0.1, 1.0), "hinge": (0.1, 1.0)},
}
DEFAULT_C, DEFAULT_DEGREE = 10.0, 3
#: For each parameter of kernels, the kernels that have it.
OF_KERNELS = {"gamma": ("rbf", "poly"), "degree": ("poly",), "coef0": ("poly",)}
CHOOSING = ("kernel", *OF_KERNELS, "C")  # the keys that choose a machine

NAME_OTHERS = "name predictors that have groups, such as --predictors conformal,abers"
NAME_OTHERS_OF_NUMBERS = (
    "name predictors of numbers that have groups, such as --predictors distribution,intervals, without --adaptive"
)


class Choice(NamedTuple):
    """What is chosen for a kind of machine."""

    kernel: Kernel
    C: float
    note: str = ""  #: on how it was chosen


Choices = dict[str, Choice]  # by kind of machine


def check_kernel(config: Config) -> None:
    """Refuse parameters that the kernel does not have."""
    machine = config.machine
    for key, kernels in OF_KERNELS.items():
        if getattr(machine, key) is not None and kernel_of(machine) not in kernels:
            where, other = config.where("machine", key), kernel_of(machine)
            raise click.UsageError(f"{where} belongs to the kernel {' or '.join(kernels)}, not to {other}")


def kernel_of(machine: MachineTable) -> str:
    """Return the name of the kernel: of several widths, unless something else was given."""
    return machine.kernel or ("laplacian" if machine.gamma is None else "rbf")


def usual_gamma(width: int | None) -> Gamma:
    """Return 1 / encoded features; "auto" is the same, where the first object says how many there are."""
    return "auto" if width is None else 1 / width


def given_kernel(machine: MachineTable, width: int | None) -> Kernel | None:
    """Return the kernel that was given, for objects of `width` encoded features; None if its width is to be chosen."""
    kernel = kernel_of(machine)
    if kernel == "laplacian":
        return MultiscaleLaplacian()
    if kernel == "linear":
        return Linear()
    if kernel == "poly":
        degree = DEFAULT_DEGREE if machine.degree is None else machine.degree
        coef0 = 1.0 if machine.coef0 is None else machine.coef0
        return Polynomial(degree, machine.gamma or usual_gamma(width), coef0)
    return None if machine.gamma is None else RBF(machine.gamma)


def known_choices(data: str, machine: MachineTable) -> Choices | None:
    """Return the choices known to suit a data set; None if none are known or another kernel was given."""
    if machine.kernel not in (None, "rbf") or data not in SETTINGS:
        return None
    found, note = SETTINGS[data], _by_default(machine)
    return {kind: Choice(RBF(machine.gamma or gamma), machine.C or C, note) for kind, (gamma, C) in found.items()}


def usual_choices(data: str, machine: MachineTable, width: int | None) -> Choices:
    """Return the choices without tuning: known ones, given ones, or defaults."""
    kernel = given_kernel(machine, width) or RBF(usual_gamma(width))
    usual = Choice(kernel, machine.C or DEFAULT_C, _by_default(machine))
    return known_choices(data, machine) or dict.fromkeys(MACHINES, usual)


def _by_default(machine: MachineTable) -> str:
    """Return a note on which parameters were not given."""
    keys = {"laplacian": ("kernel", "C"), "linear": ("C",)}.get(kernel_of(machine), ("gamma", "C"))
    free = [key for key in keys if getattr(machine, key) is None]
    return f", by default: {', '.join(free)}" if free else ""


def choose_nothing(names: Sequence[str]) -> bool:
    """Whether none of the predictors stands on a machine whose kernel and C are chosen.

    Examples
    --------
    >>> choose_nothing(["forecaster"]), choose_nothing(["forecaster", "abers"])
    (True, False)
    """
    return not any(_behind(name)[0] in MACHINES for name in names)


def refuse_choices(config: Config, names: Sequence[str], classes: Sequence[Any], others: Sequence[str] = ()) -> None:
    """Refuse options that choose a machine, `others` among them, where no predictor has anything to choose.

    Without `classes` labels are numbers. A given value is refused even if it equals the default, since it would have no
    effect.
    """
    given = [config.where("machine", key) for key in CHOOSING if key in config.given("machine")]
    given += others
    if given:
        default = ", the default" if list(names) == [FORECASTER] else ""
        raise click.UsageError(
            f"{given[0]} chooses nothing of a {FORECASTER}{default}: leave it out, or name predictors that it is for, "
            f"such as --predictors {'abers' if classes else 'distribution'}"
        )


def as_a_whole(config: Config, live: bool) -> bool:
    """Whether columns are standardised over the whole data: if it is at hand and no option says otherwise."""
    return config.machine.scale is None and not live


def watched_columns(config: Config, live: bool, features: Sequence[str] | None) -> Sequence[str] | None:
    """Return names of columns as messages show them, marked where a column is standardised."""
    if features is None or not as_a_whole(config, live):
        return features
    return [f"{name}, standardised" for name in features]


def panel_of(
    config: Config,
    names: Sequence[str],
    choices: Choices,
    classes: Sequence[Any],
    features: Sequence[str] | None,
    say: Callable[[str], None],
    live: bool = False,
) -> Panel:
    """Return a panel of the predictors, as a configuration wants them.

    Parameters
    ----------
    config : Config
    names : sequence of str
        Of the predictors: all of classes, or all of numbers.
    choices : dict
        For each kind of machine that they read.
    classes : sequence of labels
        Empty where labels are numbers.
    features : sequence of str, optional
        Names of the encoded features, if they are known.
    say : callable
        Receives a text that says which predictors read which machine.
    live : bool, default False
        Whether objects come as they are; else, unless the configuration says otherwise, they were standardised over
        the whole data.

    Raises
    ------
    click.UsageError
        Settings do not go together.
    """
    scale, window = config.machine.scale, config.machine.window
    standardised = as_a_whole(config, live)
    with_forecaster = FORECASTER in names and config.predictor.adaptive
    if scale is None and live and (not classes or with_forecaster or kernel_of(config.machine) == "laplacian"):
        # Nobody has scaled what comes live, and the default kernel wants alike columns. A kernel that is given takes
        # them as they are, but in adaptive sets beside a forecaster, which do as it does.
        scale = True
    first = 0 if standardised or scale is False else FIRST
    unscaled = "standardised beforehand" if standardised else "taken as they are"
    columns = f"scaled by the first {first}" if first else unscaled
    machines: dict[str, Any] = {}  # what predictors read, by kind
    if FORECASTER in names:
        if window is not None:
            raise click.UsageError(
                f"--window does not go with {FORECASTER}, which forgets nothing: name others, such as --predictors "
                f"{','.join(WINDOWED if classes else numbers.WINDOWED)}"
            )
        told = "forecast, intervals and sets" if classes else "a distribution, and a forecast"
        say(f"{FORECASTER}: {told}, with nothing to choose; columns {columns}")
    for kind, (title, make) in MACHINES.items():
        readers = [name for name in names if _behind(name)[0] == kind]
        if readers:
            kernel, C, note = choices[kind]
            # In a window the first examples are forgotten, too.
            by_first = Scale(teach=kind == "ridge" and window is None) if scale else None
            machine = make(kernel, C, *([classes] if classes else []), scale=False if standardised else by_first)
            note += f", scaled by the first {FIRST} examples" if scale else ""
            if window is not None:
                machine, note = SlidingWindow(machine, window), f"{note}, the latest {window} examples"
            machines[kind] = machine
            say(f"{', '.join(readers)}: {title} with {kernel!r}, C={C:g}{note}")

    def one(name: str) -> Predictor:
        if name in ADAPTIVE:  # the predictor itself may restart: its p-values tell when, adaptive ones do not
            return Adaptive(one(ADAPTIVE[name]))
        kind, make = _behind(name)
        if not config.monitor.restart_on_alarm:
            return make(machines[kind])
        return _restarting(make(machines[kind].fresh()), config, names, classes)  # each has its own window

    beside = {name: one(name) for name in names if name != FORECASTER}
    level, groups = config.monitor.level, config.predictor.groups
    if FORECASTER in names:
        panel: Panel = Forecaster(classes or float, beside=beside, level=level, first=first)
    else:
        panel = Panel(**beside)
    if groups is not None and features is None:
        where = config.where("predictor", "groups")
        raise click.UsageError(f"{where} needs the columns' names: {config.where('source', 'features')}")
    return panel if groups is None else within_groups(panel, groups, features or (), say)


def _behind(name: str) -> tuple[str, Callable[[Any], Predictor]]:
    """Return the kind of machine that a predictor reads, and how to make it."""
    return PREDICTORS[name] if name in PREDICTORS else numbers.PREDICTORS[name]


def _restarting(predictor: Any, config: Config, names: Sequence[str], classes: Sequence[Any]) -> Restarting:
    """Return a predictor that restarts its window by a monitor, with a share of the level for each of the names."""
    watch = config.monitor
    shares = together(names, classes or Real(), level=watch.level, run_length=watch.run_length)
    return Restarting(predictor, next(iter(shares.values())), watch.keep or 0)


def positions_of(column: str, features: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of a column's features: one, or those that encode its values.

    Examples
    --------
    >>> positions_of("colour", ["age", "colour=red", "colour=blue"])
    (1, 2)
    """
    found = tuple(i for i, name in enumerate(features) if name == column or name.startswith(f"{column}="))
    if not found:
        columns = list(dict.fromkeys(name.partition("=")[0] for name in features))
        close = did_you_mean(column, columns)
        raise click.UsageError(f"--groups must be a column, of {', '.join(columns)}, got {column!r}{close}")
    return found


def within_groups(panel: Panel, column: str, features: Sequence[str], say: Callable[[str], None]) -> Panel:
    """Return a panel of the same predictors within the groups of equal values in a column.

    Adaptive sets are then made of p-values within the groups: their thresholds stay those of all examples.
    """
    positions = positions_of(column, features)
    if isinstance(panel, Forecaster):
        others = NAME_OTHERS if panel.classes else NAME_OTHERS_OF_NUMBERS
        raise click.UsageError(f"--groups does not go with {FORECASTER}: {others}")
    grouped = {}
    for name, one in panel.items():
        try:
            inside = by_group(one.predictor if isinstance(one, Adaptive) else one, positions)
        except TypeError:
            others = NAME_OTHERS_OF_NUMBERS if isinstance(space_of(one), Real) else NAME_OTHERS
            raise click.UsageError(f"--groups does not go with {name}: {others}") from None
        grouped[name] = Adaptive(inside, one.levels) if isinstance(one, Adaptive) else inside
    say(f"within groups by {column}: each example is compared with those of its group only")
    return Panel(**grouped)
