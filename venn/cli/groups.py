"""Predictors within the groups that a column names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from venn.cli.errors import did_you_mean
from venn.cli.predictors import FORECASTER
from venn.labels import Real, space_of
from venn.online.forecaster import Forecaster
from venn.online.panel import Panel
from venn.predictors.adaptive import Adaptive
from venn.predictors.groups import by_group

NAME_OTHERS = "name predictors that have groups, such as --predictors conformal,abers"
NAME_OTHERS_OF_NUMBERS = (
    "name predictors of numbers that have groups, such as --predictors distribution,intervals, without --adaptive"
)


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
        raise click.UsageError(f"--groups does not go with {FORECASTER}: {NAME_OTHERS}")
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
