"""What the command line makes of labels that are numbers: it decides, says so, and has predictors for them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from streams.schema import is_number, with_point
from streams.tables import opened
from venn.cli.predictors import DEFAULT_C, LAST_TRAINING, with_around
from venn.machines.kernel_ridge import KernelRidge
from venn.machines.kernels import Kernel, MultiscaleRBF
from venn.machines.scaled import Scaled
from venn.machines.scaled_ridge import ScaledRidge
from venn.online.panel import Panel
from venn.predictors.adaptive_intervals import AdaptiveIntervals
from venn.predictors.distribution import ConformalDistribution, ConformalIntervals
from venn.predictors.distribution_inductive import InductiveDistribution
from venn.predictors.learning import Predictor
from venn.schedules import PrefixRestart

PREDICTORS: dict[str, Callable[[Any], Predictor]] = {
    "distribution": ConformalDistribution,
    "intervals": ConformalIntervals,
    "inductive_distribution": lambda machine: InductiveDistribution(
        machine.fresh(), schedule=PrefixRestart(last=LAST_TRAINING)
    ),
}
#: Intervals with a long-run error rate on any stream, made from those of another predictor.
ADAPTIVE = {"adaptive_intervals": "intervals", "inductive_adaptive_intervals": "inductive_distribution"}


def _adaptive(of: str) -> Callable[[Any], Predictor]:
    return lambda machine: AdaptiveIntervals(PREDICTORS[of](machine))


PREDICTORS |= {name: _adaptive(of) for name, of in ADAPTIVE.items()}
INDUCTIVE = ("inductive_distribution", "inductive_adaptive_intervals")
FEW, MANY = ("distribution", "intervals"), ("inductive_distribution",)
MOST_TRANSDUCTIVE = 6000  # examples; above, memory exceeds half a gigabyte and steps some milliseconds
MOST_CLASSES = 50  # whole numbers: as many are still taken for names of classes


def with_adaptive(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, and that of adaptive intervals: on the machine of the others among them.

    Examples
    --------
    >>> with_adaptive(["distribution"]), with_adaptive(["inductive_distribution"])
    (('distribution', 'adaptive_intervals'), ('inductive_distribution', 'inductive_adaptive_intervals'))
    """
    beside = "inductive_adaptive_intervals" if set(names) <= set(INDUCTIVE) else "adaptive_intervals"
    return tuple(dict.fromkeys([*names, beside]))


def is_long(n: int) -> bool:
    """Whether n examples are too many to keep them all."""
    return n > MOST_TRANSDUCTIVE


def holds_numbers(path: Path, label: str, delimiter: str, decimal: str = ".") -> bool:
    """Whether a column of a CSV file is one of numbers rather than of classes.

    It is if all fields are finite numbers, and some are not whole, or more than 50 differ.
    """
    seen: set[str] = set()
    whole = True
    with opened(path) as lines:
        rows = (row for row in csv.reader(lines, delimiter=delimiter) if row)
        place = next(rows).index(label)
        for row in rows:
            text = row[place] if place < len(row) else ""
            if text in seen:
                continue
            if not is_number(text, decimal == ","):
                return False
            number = float(with_point(text) if decimal == "," else text)
            if len(seen) <= MOST_CLASSES:
                seen.add(text)
            whole = whole and number.is_integer()
    return bool(seen) and (not whole or len(seen) > MOST_CLASSES)


def check_names(predictors: Sequence[str], numbers: bool) -> None:
    """Refuse predictors of classes where labels are numbers, and the other way round."""
    for name in predictors:
        if (name in PREDICTORS) != numbers:
            known = ", ".join(PREDICTORS)
            raise click.UsageError(
                f"labels are numbers here: --predictors must be of {known}, got {name}; --classes takes them as classes"
                if numbers
                else f"labels are classes here, and {name} predicts numbers: --numbers takes them as numbers"
            )


def panel_of_numbers(
    predictors: Sequence[str],
    kernel: Kernel | None,
    C: float | None,
    say: Callable[[str], None],
    window: int | None = None,
    scale: bool = False,
    restarting: Callable[[Any], Predictor] | None = None,
) -> Panel:
    """Return a panel of predictors of numbers, which share one machine; it says what it is.

    Parameters
    ----------
    predictors : sequence of str
        Of `PREDICTORS`.
    kernel : Kernel, optional
        By default one of several widths.
    C : float, optional
    say : callable
        Receives a text that says which predictors read which machine.
    window : int, optional
        Number of latest examples that the machine holds.
    scale : bool, default False
        Whether the first examples fix the scale of the columns.
    restarting : callable, optional
        Turns a predictor into one that restarts its window; each then has its own window.
    """
    solver, penalty = MultiscaleRBF() if kernel is None else kernel, DEFAULT_C if C is None else C
    scaling = ScaledRidge if window is None else Scaled  # a window forgets the first examples, too
    machine, scaled, windowed = with_around(KernelRidge(solver, penalty), scale, window, scaling)
    note = "" if kernel is not None and C is not None else ", by default"
    say(f"{', '.join(predictors)}: kernel ridge regression with {solver!r}, C={penalty:g}{note}{scaled}{windowed}")
    if restarting is None:
        return Panel(**{name: PREDICTORS[name](machine) for name in predictors})
    return Panel(**{name: restarting(PREDICTORS[name](machine.fresh())) for name in predictors})
