"""Labels that are numbers on the command line: when they count as numbers, and the predictors for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from streams.checks import means_missing
from streams.header import column_texts
from streams.schema import PLAIN, Numeric, is_number
from venn.cli.predictors import FORECASTER, LAST_TRAINING
from venn.predictors.adaptive_intervals import AdaptiveIntervals
from venn.predictors.distribution import ConformalDistribution, ConformalIntervals
from venn.predictors.distribution_inductive import InductiveDistribution
from venn.predictors.learning import Predictor
from venn.schedules import PrefixRestart


def _inductive(machine: Any) -> Predictor:
    return InductiveDistribution(machine.fresh(), schedule=PrefixRestart(last=LAST_TRAINING))


# The machine that a predictor reads, and how to make it. Adaptive intervals have a long-run error rate on any stream.
PREDICTORS: dict[str, tuple[str, Callable[[Any], Predictor]]] = {
    "distribution": ("ridge", ConformalDistribution),
    "intervals": ("ridge", ConformalIntervals),
    "inductive_distribution": ("ridge", _inductive),
    "adaptive_intervals": ("ridge", lambda machine: AdaptiveIntervals(ConformalIntervals(machine))),
    "inductive_adaptive_intervals": ("ridge", lambda machine: AdaptiveIntervals(_inductive(machine))),
}
INDUCTIVE = ("inductive_distribution", "inductive_adaptive_intervals")
WINDOWED = ("distribution", "intervals")  # predictors that may stand on a window: a forecaster does not forget
ZEROS = re.compile(r"\s*[+-]?0\d", re.ASCII)  # how codes begin
MOST_CLASSES = 50  # up to so many distinct whole numbers count as names of classes


def with_adaptive(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names with that of adaptive intervals, on the machine of the others.

    Examples
    --------
    >>> with_adaptive(["distribution"]), with_adaptive(["forecaster"])
    (('distribution', 'adaptive_intervals'), ('forecaster', 'inductive_adaptive_intervals'))
    """
    few = set(names) <= {*INDUCTIVE, FORECASTER}  # their memory does not grow
    beside = "inductive_adaptive_intervals" if few else "adaptive_intervals"
    return tuple(dict.fromkeys([*names, beside]))


def holds_numbers(path: Path, label: str, delimiter: str, how: Numeric = PLAIN, missing: Sequence[str] = ()) -> bool:
    """Whether a column of a CSV file holds numbers, written in this way, rather than classes.

    It does if all present fields are finite numbers, and some are not whole or more than 50 differ. 007 is
    the name of a class.
    """
    seen: set[str] = set()
    whole = True
    for text in column_texts(path, label, delimiter):
        if text in seen or means_missing(text) or text.strip() in missing:
            continue
        if not is_number(text, how) or ZEROS.match(text):
            return False
        number = how.read(text)
        if len(seen) <= MOST_CLASSES:
            seen.add(text)
        whole = whole and number.is_integer()
    return bool(seen) and (not whole or len(seen) > MOST_CLASSES)


def check_names(predictors: Sequence[str], numbers: bool) -> None:
    """Refuse predictors of classes where labels are numbers, and the other way round."""
    for name in predictors:
        if name != FORECASTER and (name in PREDICTORS) != numbers:
            known = ", ".join([FORECASTER, *PREDICTORS])
            raise click.UsageError(
                f"labels are numbers here: --predictors must be of {known}, got {name}; --no-numbers takes them as "
                "classes"
                if numbers
                else f"labels are classes here, and {name} predicts numbers: --numbers takes them as numbers"
            )
